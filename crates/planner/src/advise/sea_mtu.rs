//! `sea-mtu`: frames that fit through one side of a shared Ethernet adapter and not through the other.

use super::change::Change;
use super::finding::{Draft, Severity};
use super::measure::Counter;
use super::out::Out;
use super::sea::Bridge;
use super::thresholds::REFUSED_GROWTH;
use super::view::{Role, View};
use crate::capture::{At, Attribute, Sea};
use crate::trace::number;

/// `sea-mtu`: jumbo frames on one side only.
pub(super) fn mtu<'a>(view: &View<'a>, bridge: &Bridge<'a>, out: &mut Out) {
    const RULE: &str = "sea-mtu";
    let Some(own) = bridge.attribute(view, "jumbo_frames") else { return };
    let real = bridge.real_adapter(view);
    if let Some((real, of_real)) =
        real.and_then(|real| Some((real, view.attribute(bridge.host, real, "jumbo_frames")?)))
    {
        if of_real.value != own.value {
            let device = if own.value == "yes" { real } else { bridge.name };
            let change = Change::new(view, bridge.host, device).set("jumbo_frames", "yes");
            out.push(
                mtu_finding(
                    bridge.draft(
                        view,
                        RULE,
                        Severity::Warning,
                        format!(
                            "jumbo_frames is {} on the adapter and {} on {real} below it",
                            own.value, of_real.value
                        ),
                    ),
                    [own.at, of_real.at],
                )
                .change(&change)
                .because("Large frames fit through one of the two only.")
                .weigh(0.9, 1.0),
            );
        }
        return;
    }
    if let Some(real) = real {
        out.lack(view.object(bridge.host, bridge.name), view.show_attributes(bridge.host, real));
    }
    if own.value != "no" {
        return;
    }
    against_clients(view, bridge, own, out);
}

/// `sea-mtu`: a client that sends larger frames than the bridge takes.
fn against_clients<'a>(view: &View<'a>, bridge: &Bridge<'a>, own: &Attribute, out: &mut Out) {
    let vios = bridge.host;
    let mapped = view.clients_of(vios);
    let near = |host: &usize| mapped.contains(host) || view.same_machine(*host, vios);
    for client in view.hosts().filter(|host| view.role(*host) != Role::Vios).filter(near) {
        for device in view.devices(client, "en") {
            let Some((mtu, at)) = view
                .number(client, device, "mtu")
                .filter(|(mtu, _)| *mtu > 1500.0 && *mtu < 65_000.0)
            else {
                continue;
            };
            let change = Change::new(view, bridge.host, bridge.name).set("jumbo_frames", "yes");
            out.push(
                mtu_finding(
                    bridge.draft(
                        view,
                        "sea-mtu",
                        Severity::Warning,
                        format!(
                            "{} on {} sends {} byte frames, the bridge takes 1500",
                            device,
                            view.spoken(client),
                            number(mtu)
                        ),
                    ),
                    [own.at, at],
                )
                .change(&change)
                .weigh(0.7, 1.0),
            );
        }
    }
}

/// `sea-mtu`: packets that the bridge refuses as too large, again and again. Who sends them is told where a client's MTU
/// was captured that is greater than the bridge's.
pub(super) fn refused<'a>(view: &View<'a>, bridge: &Bridge<'a>, out: &mut Out) {
    let seas: Vec<&Sea> = bridge.runs.iter().filter_map(|run| run.sea.as_ref()).collect();
    let refused = Counter::over(&seas, |sea| sea.icmp_errors_sent);
    let grown = refused.and_then(|counter| Some((counter, counter.growth()?)));
    let Some((counter, growth)) = grown.filter(|(_, growth)| *growth >= REFUSED_GROWTH) else {
        return;
    };
    let title = format!("{} packets were too large for the bridge", number(growth));
    let mut draft = bridge
        .draft(view, "sea-mtu", Severity::Warning, title)
        .see(counter.places())
        .because("Packets that must not be fragmented and do not fit are refused with an ICMP message; what is not IP is dropped without one.");
    let figure = counter.growth_figure("growth of ICMP error packets sent", "packets");
    draft = figure.into_iter().fold(draft, Draft::figure);
    let dropped = Counter::over(&seas, |sea| sea.larger_than_mtu);
    if let Some(dropped) = dropped.filter(|dropped| dropped.growth() > Some(0.0)) {
        draft = draft.see(dropped.places());
    }
    let mut senders = Vec::new();
    for client in view.hosts().filter(|host| view.role(*host) != Role::Vios) {
        for device in view.devices(client, "en") {
            if let Some((mtu, at)) =
                view.number(client, device, "mtu").filter(|(mtu, _)| *mtu > 1500.0)
            {
                senders.push(format!("{device} on {} has {}", view.spoken(client), number(mtu)));
                draft = draft.see([at]);
            }
        }
    }
    let known = !senders.is_empty();
    if known {
        let which = senders.join(", ");
        draft = draft.because(format!("MTU above 1500 among the captured systems: {which}."));
    }
    if let Some(own) = bridge.attribute(view, "jumbo_frames") {
        draft = draft.see([own.at]).because(format!("jumbo_frames is {}.", own.value));
    }
    out.push(
        mtu_finding(draft, [])
            .effect("Large frames pass from end to end, or nobody sends them: set the MTU of the senders to 1500, or jumbo frames on the switch, the real adapter, the bridge and the other VIOS of the pair. Which of the two is wanted is not known from this.")
            .weigh(if known { 0.85 } else { 0.7 }, 1.0),
    );
}

fn mtu_finding(draft: Draft, lines: impl IntoIterator<Item = At>) -> Draft {
    draft
        .see(lines)
        .because("What does not fit is dropped or fragmented: small packets pass, large transfers hang or crawl.")
        .effect("Large frames pass from end to end. The switch ports and the other VIOS of the pair must have them, too.")
        .harm("The adapter is configured again for it, which interrupts the network of its clients: do it on the VIOS that is the backup. Where nothing needs large frames, set all sides to 1500 instead.")
}
