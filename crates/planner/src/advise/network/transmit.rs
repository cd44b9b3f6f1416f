//! `net-transmit-queue`: packets that found the queue of a physical adapter full on their way out.

use super::Wire;
use crate::advise::finding::Severity;
use crate::advise::measure::waits;
use crate::advise::out::Out;
use crate::advise::view::{View, as_f64, shown};

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
