//! What `adapter explain` prints.

use crate::commands::top;
use crate::output::{or_dash, table};
use control::server::{CardExplanation, CommandsView, Explanation};
use std::collections::BTreeSet;

/// Why it has as many channels as it has.
pub(super) fn explanation_text(explanation: &Explanation) -> String {
    let rows = explanation.terms.iter().map(|term| {
        let count = term.count.map_or_else(|| "no limit".to_owned(), |count| count.to_string());
        let mark = if term.limits { "<- limits" } else { "" };
        vec![term.term.to_string(), count, term.source.clone(), mark.to_owned()]
    });
    let noun = if explanation.channels == 1 { "channel" } else { "channels" };
    let mut text = format!(
        "{}: at most {} {noun}, limited by the {}\n\n{}\n\nfor more: {}",
        explanation.adapter,
        explanation.channels,
        explanation.limited_by,
        table(&["TERM", "COUNT", "FROM", ""], &[1], rows.collect()),
        explanation.remedy
    );
    if let Some((channels, limit)) = explanation.then {
        text += &format!("\nthen {channels} at most, limited by the {limit}");
    }
    let in_use: BTreeSet<&u32> = explanation.channel_of_queue.iter().collect();
    if !in_use.is_empty() {
        let places: Vec<String> =
            explanation.channel_of_queue.iter().map(ToString::to_string).collect();
        text += &format!(
            "\nin use now: {}; its queues are on channels {}",
            in_use.len(),
            places.join(" ")
        );
    }
    for sleep in &explanation.sleeps {
        let us = sleep.sleep_price_ns as f64 / 1000.0;
        let (channel, source) = (sleep.channel, &sleep.source);
        text +=
            &format!("\na sleep of channel {channel} is worth {us:.1} µs of looking ({source})");
    }
    if let Some(commands) = &explanation.commands {
        text += &format!("\n\n{}", commands_text(commands));
    }
    if let Some(card) = &explanation.card {
        text = format!("{}\n\n{text}", card_text(&explanation.adapter, card));
    }
    let rows = explanation.attributes.iter().map(|a| {
        let value = Some(&a.value).filter(|value| !value.is_empty());
        vec![a.attribute.clone(), a.source.clone(), or_dash(value)]
    });
    text + &format!("\n\n{}", table(&["ATTRIBUTE", "FROM", "VALUE"], &[], rows.collect()))
}

/// Whether frames pass, and how well.
fn card_text(name: &str, card: &CardExplanation) -> String {
    let state = if card.up { "frames pass" } else { "down" };
    let mut text =
        format!("{name}: {state}; {} frames sent, {} received", card.sent, card.received);
    for one in &card.down {
        text += &format!("\n  down: {}\n    {}", one.what, one.fix);
    }
    for one in &card.slow {
        text += &format!("\n  slow: {}\n    {}", one.what, one.fix);
    }
    for one in &card.lost {
        let (reason, frames, meaning) = (&one.reason, one.frames, &one.meaning);
        text += &format!("\n  lost: {reason}, {frames} frames: {meaning}\n    {}", one.fix);
    }
    text
}

fn commands_text(commands: &CommandsView) -> String {
    let rows = commands.terms.iter().map(|term| {
        let count = term.count.map_or_else(|| "no limit".to_owned(), |count| count.to_string());
        let mark = if term.limits { "<- limits" } else { "" };
        vec![term.term.to_string(), count, term.source.clone(), mark.to_owned()]
    });
    let mut text = format!(
        "at most {} commands active, limited by the {}\n\n{}\n\nfor more: {}",
        commands.num_cmd_elems,
        commands.limited_by,
        table(&["TERM", "COUNT", "FROM", ""], &[1], rows.collect()),
        commands.remedy
    );
    if let Some(port) = &commands.short {
        text += &format!("\n\nits commands wait for the port:\n\n{}", top::port_text(port));
    }
    text
}
