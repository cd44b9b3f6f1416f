//! `net-receive-errors`: frames that the card could not take for a reason that no other counter names; `net-no-mbuf`:
//! packets for which the system had no memory.

use super::Wire;
use crate::advise::finding::{Draft, Severity};
use crate::advise::measure::{Counter, waits};
use crate::advise::out::Out;
use crate::advise::thresholds::{NO_MBUF_GROWTH, UNNAMED_ERRORS_SHARE};
use crate::advise::view::View;
use crate::trace::number;

pub(super) fn received(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let Some(errors) = wire.counter(|adapter| adapter.received.errors) else { return };
    let Some(packets) = wire.counter(|adapter| adapter.received.packets) else { return };
    let Some(waits) = waits("Receive Errors", errors, &[packets]) else { return };
    let causes = [
        wire.counter(|adapter| adapter.received.crc),
        wire.counter(|adapter| adapter.received.dma),
        wire.counter(|adapter| adapter.received.no_resource),
        wire.counter(|adapter| adapter.received.discarded),
    ];
    let size = |counter: &Counter| match waits.grows {
        true => counter.growth().unwrap_or(0.0),
        false => counter.value(),
    };
    let named: f64 = causes.iter().flatten().map(size).sum();
    // What they are by name is told by the rules of these counters.
    if named > size(&errors) * (1.0 - UNNAMED_ERRORS_SHARE) {
        return;
    }
    let title = format!("{} receives frames that it cannot take", wire.name);
    let draft = wire.draft(view, "net-receive-errors", Severity::Warning, title);
    let speed = wire.last().speed.as_ref();
    out.push(
        waits
            .tell(draft)
            .see(causes.iter().flatten().map(|counter| counter.last.at))
            .see(speed.map(|read| read.at))
            .because(format!(
                "Wrong checksums, overruns of DMA, missing buffers and what the card discarded are {} of them: the rest are frames of a wrong length or alignment, or collisions.",
                number(named)
            ))
            .effect("See which error the driver's own part names (entstat -d), then compare with the switch port: duplex and speed of both ends, the greatest length of a frame (jumbo frames on one side only), cable and transceivers. No command on this system mends it.")
            .harm("None by looking. The link is down while a cable or a transceiver is exchanged: move the traffic first.")
            .weigh(waits.confidence, 1.0),
    );
}

pub(super) fn no_mbuf(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let Some(count) = wire.counter(|adapter| adapter.no_mbuf_errors) else { return };
    let Some(growth) = count.growth().filter(|growth| *growth >= NO_MBUF_GROWTH) else { return };
    let title = format!("{} finds no network memory", wire.name);
    let draft = wire
        .draft(view, "net-no-mbuf", Severity::Warning, title)
        .see(count.places())
        .unless_over(&count)
        .because(format!(
            "No mbuf Errors grew by {} between the captures: the driver asked for memory for packets and got none.",
            number(growth)
        ));
    let figure = count.growth_figure("growth of No mbuf Errors", "packets");
    out.push(
        figure
            .into_iter()
            .fold(draft, Draft::figure)
            .because("It is the system's memory for all network adapters (thewall, maxmbuf), not this adapter's buffers.")
            .effect("See who holds it: netstat -m (requests that failed, by size), and what may be used: no -o thewall, lsattr -El sys0 -a maxmbuf (0 leaves it to the system). Where maxmbuf was set, it is what limits. A leak of one socket or driver grows in netstat -m without an end. How much is needed is not known from this, so no command is given.")
            .harm("Network memory is pinned: what it takes is missing elsewhere.")
            .weigh(0.9, 1.0),
    );
}
