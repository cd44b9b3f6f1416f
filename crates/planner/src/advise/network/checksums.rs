//! Frames that arrive with a wrong checksum: the wire, not the load.

use super::Wire;
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::thresholds::{
    FRAME_CRC_GROWTH, FRAME_CRC_ONCE, FRAME_CRC_ONCE_SHARE, FRAME_CRC_SHARE, own,
};
use crate::advise::view::{View, as_f64};
use crate::trace::{Figure, Term, number};

/// `net-crc`: IEEE 802.3 lets one bit in 10¹² arrive wrong, one frame of 1,500 bytes in 80 million; a wire that is broken
/// is far beyond that.
pub(super) fn judge(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let Some(crc) = wire.counter(|adapter| adapter.received.crc) else { return };
    let Some(packets) = wire.counter(|adapter| adapter.received.packets) else { return };
    let grown = crc.growth().zip(packets.growth());
    let (wrong, of, least, share, confidence) = match grown {
        Some((wrong, of)) => (wrong, of, FRAME_CRC_GROWTH, FRAME_CRC_SHARE, 0.93),
        // Frames with a wrong checksum are none of the packets received where the driver counts so.
        None => {
            let all = packets.value();
            (as_f64(crc.last.value), all, FRAME_CRC_ONCE, FRAME_CRC_ONCE_SHARE, 0.6)
        }
    };
    if wrong < least || wrong < (of + wrong) * share {
        return;
    }
    let title = format!("{} receives frames with a wrong checksum", wire.name);
    let terms = vec![
        Term::read("wrong", wrong, "frames", crc.last.at),
        Term::read("good", of, "frames", packets.last.at),
    ];
    let formula = "wrong × 1000000 ÷ (wrong + good)";
    let figure = Figure::new("frames with a wrong checksum in a million", "", formula, terms);
    let why = match grown {
        Some(_) => format!(
            "CRC Errors grew by {} between the captures{}.",
            number(wrong),
            if crc.is_over().is_some() { "" } else { ": it happens now" }
        ),
        None => format!(
            "CRC Errors is {} since the counters' reset; one capture cannot show whether it still grows.",
            number(wrong)
        ),
    };
    let growth = crc.growth_figure("growth of CRC Errors", "frames");
    let draft = wire
        .draft(view, "net-crc", Severity::Warning, title)
        .see(crc.places())
        .because(why)
        .unless_over(&crc)
        .because("The card throws such a frame away and the sender has to notice. A wire in order has one in 80 million at the most (IEEE 802.3, one bit in 10^12), whatever its load.");
    out.push(
        growth
            .into_iter()
            .fold(draft, Draft::figure)
            .figure(figure)
            .figure(Figure::plain(own("frames in a million from which it is no noise", share * 1e6, "")))
            .effect("Look at the cable, the transceivers at both ends and the switch port's own counters; on copper also at the duplex of both ends. No command on this system mends it.")
            .harm("The link is down while a cable or a transceiver is exchanged: move the traffic first.")
            .weigh(confidence, 1.0),
    );
}
