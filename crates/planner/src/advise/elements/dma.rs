//! `fc-dma-resource`: transfers that wait for DMA memory, and which side has to be raised first.

use super::{Usage, sisters};
use crate::advise::change::Change;
use crate::advise::fc;
use crate::advise::finding::{Draft, NoCommand, Severity};
use crate::advise::measure::waits_from;
use crate::advise::out::Out;
use crate::advise::view::{Role, View, parse_number};
use crate::capture::{Attribute, Read};

/// Waits for DMA memory, on either layer.
pub(super) fn dma<'a>(view: &View<'a>, usage: &Usage<'a>, out: &mut Out) {
    const RULE: &str = "fc-dma-resource";
    let sizes = ["max_xfer_size", "lg_term_dma"];
    let waits = usage.no_dma.and_then(|counter| {
        let least = sisters::least_share(view, usage, counter, |usage| usage.no_dma, &sizes);
        waits_from("No DMA Resource Count", counter, &usage.requests, least)
    });
    let Some(waits) = waits else { return };
    let object = view.object(usage.host, usage.device);
    let attribute = view.attribute(usage.host, usage.device, "max_xfer_size");
    let mut draft = Draft::new(RULE, usage.host, object, Severity::Warning, "transfers wait for DMA memory".into())
        .see(waits.counter.places())
        .see(attribute.map(|attribute| attribute.at))
        .because(waits.why)
        .unless_over(&waits.counter)
        .because("This is not a shortage of command elements: the memory through which the adapter reaches data is full. Its size follows max_xfer_size.")
        .harm("The adapter reserves more DMA memory; where the slot has none left it fails to configure. A client's value must not be larger than that of its VIOS: raise the VIOS first.")
        .weigh(waits.confidence, 1.0);
    for figure in waits.figures {
        draft = draft.figure(figure);
    }
    let kinds: &[&str] = if usage.is_virtual == Some(true) { &["fcs-client"] } else { &["fcs"] };
    let limits = view.allowed(usage.host, usage.device, kinds, "max_xfer_size");
    let now = attribute.and_then(|attribute| parse_number(&attribute.value));
    let next = match now {
        Some(now) => limits.steps.iter().copied().find(|step| *step > now).or_else(|| {
            limits
                .steps
                .is_empty()
                .then(|| now.checked_mul(2))
                .flatten()
                .filter(|next| limits.max.is_none_or(|max| *next <= max))
        }),
        None => None,
    };
    if now.is_none() {
        let show = view.show_attributes(usage.host, usage.device);
        out.lack("max_xfer_size", show.as_str());
        let look_up = vec![format!("max_xfer_size as it stands now: {show}")];
        out.push(
            draft
                .unknown(NoCommand { look_up, ..NoCommand::default() })
                .effect("The next greater max_xfer_size gives the adapter a larger DMA window; which one that is follows from the one it has."),
        );
        return;
    }
    let Some(next) = next.filter(|next| *next <= 0x100_0000) else {
        out.push(draft.effect("max_xfer_size is already at its greatest value. Next step: spread the clients over more ports; lg_term_dma sizes the adapter's own control memory and can be raised too."));
        return;
    };
    let draft = match behind(view, usage, next) {
        Behind::Enough => {
            let change = Change::new(view, usage.host, usage.device);
            draft.change(&change.set("max_xfer_size", format!("{next:#x}")))
        }
        Behind::Less(server, port, attribute) => {
            let on = view.spoken(server);
            let change = Change::new(view, server, port);
            let change = change.set("max_xfer_size", format!("{next:#x}"));
            out.push(
                draft
                    .see([attribute.at])
                    .because(format!("The port behind it, {port} on {on}, stands at {}. A client above its port does not find its disks at its next start.", attribute.value))
                    .change(&change)
                    .effect(format!("First the server: {port} on {on} takes {next:#x} once it is configured again or the server is restarted. Then set max_xfer_size={next:#x} on {} of the client, for its next start: it gets a larger DMA window.", usage.device)),
            );
            return;
        }
        Behind::Unknown => {
            let look_up = vec![format!(
                "max_xfer_size of the port behind it, which must be {next:#x} at least before the client is raised, or its next start hangs: lsmap -all -npiv, and lsdev -dev fcsN -attr max_xfer_size, on its VIOS"
            )];
            let values = format!("max_xfer_size={next:#x}");
            draft.unknown(NoCommand { values, look_up, already: None })
        }
    };
    let mut draft = draft;
    if let Some(running) = running_transfer(view, usage).filter(|read| Some(read.value) != now) {
        let (device, on) = (usage.device, view.spoken(usage.host));
        draft = draft
            .see([running.at])
            .because(format!("The adapter works with {:#x}, by its statistics, and not with what is set: that is for later, or the server behind it allows less.", running.value))
            .in_doubt(format!("which value is in force: lsattr -Pl {device} as root on {on}"));
    }
    out.push(draft.effect("The adapter gets a larger DMA window and the counter stops growing. It takes effect when the adapter is configured again or the system is restarted."));
}

/// Whether the port behind an adapter takes transfers of this size.
enum Behind<'a> {
    /// It does, or there is none behind a physical port.
    Enough,
    /// This one takes less.
    Less(usize, &'a str, &'a Attribute),
    Unknown,
}

fn behind<'a>(view: &View<'a>, usage: &Usage<'a>, size: u64) -> Behind<'a> {
    let physical = match usage.is_virtual {
        Some(is_virtual) => !is_virtual,
        None => view.role(usage.host) == Role::Vios,
    };
    if physical {
        return Behind::Enough;
    }
    let own = fc::pairs(view.npiv()).filter(|(client, _)| *client == (usage.host, usage.device));
    let mut answer = Behind::Unknown;
    for (_, (server, port)) in own {
        let attribute = view.attribute(server, port, "max_xfer_size");
        match attribute.and_then(|one| Some((one, parse_number(&one.value)?))) {
            None => return Behind::Unknown,
            Some((one, takes)) if takes < size => return Behind::Less(server, port, one),
            Some(_) => answer = Behind::Enough,
        }
    }
    answer
}

/// The greatest transfer that the adapter works with, as its statistics say.
fn running_transfer(view: &View<'_>, usage: &Usage<'_>) -> Option<Read<u64>> {
    let samples = view.fcstats(usage.host, usage.device);
    samples.iter().rev().find_map(|fcstat| fcstat.max_transfer_bytes)
}
