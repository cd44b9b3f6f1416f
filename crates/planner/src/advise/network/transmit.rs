//! `net-transmit-queue`: packets that found the queue of a physical adapter full on their way out; `net-transmit-errors`:
//! packets that the adapter did not get sent.

use super::Wire;
use crate::advise::finding::{Draft, Severity};
use crate::advise::measure::{Counter, waits};
use crate::advise::out::Out;
use crate::advise::thresholds::{NO_CARRIER_GROWTH, RESETS_GROWTH, TIMEOUTS_GROWTH};
use crate::advise::view::{View, as_f64, shown};
use crate::trace::number;

/// The attributes that hold the size of the software queue, by driver.
const SIZES: [&str; 3] = ["tx_que_sz", "tx_que_size", "queue_size"];

pub(super) fn judge(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let Some(overflow) = wire.counter(|adapter| adapter.queue_overflow) else { return };
    let Some(packets) = wire.counter(|adapter| adapter.transmitted.packets) else { return };
    let Some(waits) = waits("S/W Transmit Queue Overflow", overflow, &[packets]) else { return };
    let title = format!("{} drops packets that it should send: its queue is full", wire.name);
    let mut draft = waits.tell(wire.draft(view, "net-transmit-queue", Severity::Warning, title));
    if let Some(most) = wire.last().queue_max {
        let name = "most packets in the queue";
        draft = draft.see([most.at]).figure(shown(name, as_f64(most.value), "packets", most.at));
    }
    let size = SIZES.iter().find_map(|name| {
        let (size, at) = view.number(wire.host, wire.name, name)?;
        Some((*name, size, at))
    });
    draft = match size {
        Some((name, size, at)) => draft.see([at]).figure(shown(name, size, "packets", at)),
        None => draft,
    };
    let show = view.show_attributes(wire.host, wire.name);
    // Where the aggregation sends all over this one, that is the cause.
    let of = wire.aggregation().map(|of| view.object(wire.host, &of.name.value));
    let draft = draft.through(of);
    out.push(
        draft
            .because("More is to be sent at a time than the port takes: it is too slow for the bursts, or the switch stops it (flow control), or the queue is short.")
            .effect(format!("See whether the port is at its line rate, and whose bursts they are (seastat). Where it is, the remedy is another port in an aggregation, or a faster one; where it is not, a longer queue: {show} names its attribute (tx_que_sz with most drivers) and lsattr -Rl what it may be, so no command is given."))
            .harm("A longer queue takes memory and lets packets wait longer; the adapter has to be configured again, which interrupts it.")
            .weigh(waits.confidence, 1.0),
    );
}

pub(super) fn errors(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    // Where the card resets itself meanwhile, that says more.
    let resets = wire.counter(|adapter| adapter.reset_count);
    if resets.and_then(|resets| resets.growth()).is_some_and(|by| by >= RESETS_GROWTH) {
        return;
    }
    let packets = wire.counter(|adapter| adapter.transmitted.packets);
    let underruns = wire.counter(|adapter| adapter.transmitted.dma);
    let underruns = underruns
        .zip(packets)
        .and_then(|(count, packets)| waits("DMA Underrun", count, &[packets]));
    let grown = |count: Option<Counter>, least: f64| {
        count.and_then(|count| Some((count, count.growth().filter(|growth| *growth >= least)?)))
    };
    let timeouts = wire.counter(|adapter| adapter.transmitted.timeouts);
    let timeouts = grown(timeouts, TIMEOUTS_GROWTH);
    // While the link is down there is no carrier, and that is told by itself; what has no cable sends nothing.
    let carrier = wire.counter(|adapter| adapter.transmitted.no_carrier);
    let carrier = grown(carrier, NO_CARRIER_GROWTH).filter(|_| {
        wire.is_used() && wire.last().link_status.is_some() && wire.link_down().is_none()
    });
    let named = underruns.is_some() || timeouts.is_some() || carrier.is_some();
    let errors = wire.counter(|adapter| adapter.transmitted.errors).filter(|_| !named);
    let errors = errors
        .zip(packets)
        .and_then(|(count, packets)| waits("Transmit Errors", count, &[packets]));
    if !named && errors.is_none() {
        return;
    }
    let title = format!("{} does not get its packets sent", wire.name);
    let mut draft = wire.draft(view, "net-transmit-errors", Severity::Warning, title);
    if let Some(waits) = &underruns {
        draft = waits.tell(draft).because(
            "DMA Underrun: a packet came too slowly from memory over the bus to be sent in one go.",
        );
    }
    if let Some((count, growth)) = timeouts {
        let figure = count.growth_figure("growth of Timeout Errors", "packets");
        draft = figure.into_iter().fold(draft.see(count.places()), Draft::figure).because(format!(
            "Timeout Errors grew by {} between the captures: the card did not say in time that it had sent something.",
            number(growth)
        ));
    }
    if let Some((count, growth)) = carrier {
        let figure = count.growth_figure("growth of No Carrier Sense", "packets");
        draft = figure.into_iter().fold(draft.see(count.places()), Draft::figure).because(format!(
            "No Carrier Sense grew by {} between the captures although there is a link: it goes and comes back, or one side is at half duplex.",
            number(growth)
        ));
    }
    if let Some(waits) = &errors {
        draft = waits.tell(draft).because(
            "Transmit Errors counts all that failed by the card or the network; none of the counters beside it says why.",
        );
    }
    let rest = if errors.is_some() { 0.7 } else { 0.85 };
    let confidence = underruns.or(errors).map_or(rest, |waits| waits.confidence);
    out.push(
        draft
            .because("It is the card, its firmware or its slot, or the switch that holds it up (flow control), not a queue of this system.")
            .effect("Look into the error log for this adapter (errpt -a), at its microcode, and at the XOFF packets that it received (entstat -d). Move the traffic to another port or to the other VIOS before it is serviced.")
            .harm("Moving the traffic interrupts it for as long as the failover takes.")
            .weigh(confidence, 1.0),
    );
}
