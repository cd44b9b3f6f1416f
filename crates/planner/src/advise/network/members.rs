//! `net-one-member`: an aggregation that sends nearly all over one of its members, which that fills.

use super::{Wire, megabits};
use crate::advise::change::Change;
use crate::advise::finding::{NoCommand, Severity};
use crate::advise::out::Out;
use crate::advise::thresholds::{MEMBER_FULL_SHARE, MEMBER_REST_SHARE, own};
use crate::advise::view::{View, as_f64, shown};
use crate::capture::At;
use crate::trace::{Figure, Origin, Term, number};

/// Bytes a second for each Mbit/s.
const BYTES_PER_MEGABIT: f64 = 125_000.0;

/// What a member sent a second between its first and its last capture.
struct Load<'w, 'a> {
    wire: &'w Wire<'a>,
    /// Bytes.
    rate: f64,
    places: [At; 2],
}

fn load<'w, 'a>(wire: &'w Wire<'a>) -> Option<Load<'w, 'a>> {
    let sent = wire.counter(|adapter| adapter.transmitted.bytes)?;
    let age = wire.counter(|adapter| adapter.elapsed_seconds)?;
    let seconds = age.growth().filter(|seconds| *seconds > 0.0)?;
    let first = sent.first?.at;
    Some(Load { wire, rate: sent.growth()? / seconds, places: [first, sent.last.at] })
}

/// The member that is full while the others do next to nothing; with what all send together.
fn full<'w, 'a>(view: &'w View<'a>, wire: &Wire<'_>) -> Option<(Load<'w, 'a>, f64)> {
    let members = &wire.last().aggregation.as_ref()?.members;
    let of = |name: &String| {
        let same = |other: &&Wire<'_>| other.host == wire.host && other.name == *name;
        load(view.wires().iter().find(same)?)
    };
    let loads: Option<Vec<Load<'_, '_>>> = members.iter().map(of).collect();
    let loads = loads.filter(|loads| loads.len() > 1)?;
    let all: f64 = loads.iter().map(|load| load.rate).sum();
    let most = loads.into_iter().max_by(|one, two| one.rate.total_cmp(&two.rate))?;
    let speed = megabits(&most.wire.last().speed.as_ref()?.value)?;
    let line = speed * BYTES_PER_MEGABIT;
    let alone = all - most.rate <= most.rate * MEMBER_REST_SHARE;
    (alone && most.rate >= line * MEMBER_FULL_SHARE).then_some((most, all))
}

/// Whether the member is told by its hash of addresses what to send: by ports it is one conversation, which no hash divides.
fn by_ports(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text == "src_dst_port" || (text.contains("source and destination") && text.contains("port"))
}

pub(super) fn judge(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    const NAME: &str = "hash_mode";
    let Some((most, all)) = full(view, wire) else { return };
    let attribute = view.attribute(wire.host, wire.name, NAME);
    let printed = wire.last().aggregation.as_ref().and_then(|of| of.hash_mode.as_ref());
    let mode = attribute.map(|set| (set.value.as_str(), set.at));
    let mode = mode.or_else(|| printed.map(|mode| (mode.value.as_str(), mode.at)));
    if mode.is_some_and(|(mode, _)| by_ports(mode)) {
        return;
    }
    let member = most.wire.name;
    let title = format!("nearly all that {} sends goes over {member}, which is full", wire.name);
    let terms = vec![
        Term::new("of the member", most.rate, "bytes/s", Origin::Computed),
        Term::new("of all members", all, "bytes/s", Origin::Computed),
    ];
    let mut draft = wire
        .draft(view, "net-one-member", Severity::Warning, title)
        .see(most.places)
        .figure(Figure::new("share of what is sent", "", "of the member ÷ of all members", terms))
        .figure(Figure::plain(own("the others together, at most", MEMBER_REST_SHARE, "of it")));
    if let Some(speed) = &most.wire.last().speed {
        draft = draft.see([speed.at]).because(format!(
            "{member} sent {} MB a second; its {} carry little more.",
            number((most.rate / 1e6).round()),
            speed.value
        ));
    }
    if let Some(overflow) = most.wire.counter(|adapter| adapter.queue_overflow)
        && let Some(growth) = overflow.growth().filter(|growth| *growth > 0.0)
    {
        let at = overflow.last.at;
        draft = draft.see(overflow.places()).figure(shown(
            "S/W Transmit Queue Overflow of it",
            as_f64(overflow.last.value),
            "packets",
            at,
        ));
        draft = draft.because(format!("Its queue overflowed {} times meanwhile.", number(growth)));
    }
    draft = match mode {
        Some((mode, at)) => draft.see([at]).because(format!(
            "The member is chosen by a hash ({mode}): what goes to one router or one address goes over one member."
        )),
        None => draft,
    };
    let change = Change::new(view, wire.host, wire.name).set(NAME, "src_dst_port");
    draft = match mode {
        Some(_) => draft.change(&change),
        // Where the mode is not known it may be that already, and one conversation fills the member.
        None => draft.unknown(NoCommand {
            values: change.values(),
            look_up: vec![format!(
                "how the member is chosen: {}",
                view.show_attributes(wire.host, wire.name)
            )],
            already: None,
        }),
    };
    out.push(
        draft
            .effect("Conversations are spread by their ports over all members. A single one still has one member. It takes effect when the adapter is configured again. What the switch sends is chosen by the switch's own hash.")
            .harm("The adapter has to be configured again, which interrupts it: over the other server meanwhile.")
            .weigh(0.85, 1.1),
    );
}
