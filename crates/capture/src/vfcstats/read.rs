//! Reads the statistics file of a virtual Fibre Channel server adapter.

use super::{Named, VfcStats};
use crate::page::{Page, put};
use crate::text::number;
use crate::{Read, Report};

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut command_queues = None;
    let mut channels = None;
    let mut commands_received: Vec<Read<u64>> = Vec::new();
    let mut named: Vec<Named> = Vec::new();
    while let Some(line) = page.peek() {
        let Some((name, value)) = line.trimmed().split_once('=') else {
            if !page.goes_on(line) {
                break;
            }
            continue;
        };
        let (name, value, at) = (name.trim(), number(value.trim()), line.at);
        if name == "Number of CMD queues" && command_queues.is_some() {
            break;
        }
        let Some(value) = value else {
            if !page.goes_on(line) {
                break;
            }
            continue;
        };
        page.take();
        if !line.ended && name != "Commands received" {
            page.doubt(line, "the file ends in this line; its value may be cut");
            continue;
        }
        match name {
            "Number of CMD queues" => drop(put(&mut command_queues, value, at)),
            "Number of SUBQ channels" => drop(put(&mut channels, value, at)),
            "Commands received" => commands_received.push(Read { value, at }),
            _ => {}
        }
        named.push(Named { at, name: name.to_owned(), value });
    }
    if named.is_empty() {
        return None;
    }
    judge(page, channels, &commands_received);
    Some(Report::VfcStats(VfcStats {
        head: page.close(),
        command_queues,
        channels,
        commands_received,
        named,
    }))
}

/// Every channel has a count of its own, and the command queue one more.
fn judge(page: &mut Page<'_>, channels: Option<Read<u64>>, received: &[Read<u64>]) {
    let Some(channels) = channels else {
        page.incomplete("the number of channels is missing");
        return;
    };
    let wanted = channels.value.saturating_add(1);
    let found = u64::try_from(received.len()).unwrap_or(u64::MAX);
    if found < wanted {
        page.incomplete(&format!("{found} of {wanted} counts of commands received"));
    }
}
