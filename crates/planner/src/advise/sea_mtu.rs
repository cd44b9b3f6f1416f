//! `sea-mtu`: frames that fit through one side of a shared Ethernet adapter and not through the other.

use std::collections::BTreeMap;

use super::change::Change;
use super::finding::{Draft, NoCommand, Severity};
use super::measure::Counter;
use super::out::Out;
use super::sea::Bridge;
use super::sea_pair;
use super::thresholds::REFUSED_GROWTH;
use super::view::{Role, View, as_f64};
use crate::capture::{At, Attribute, Interface, Read, Report, Sea};
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
            return;
        }
    } else if let Some(real) = real {
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
    let near = |host: usize| mapped.contains(&host) || view.same_machine(host, vios);
    let is_alone = has_no_other(view, vios);
    let small = if is_alone { small_networks(view) } else { Small::new() };
    for client in view.hosts().filter(|host| view.role(*host) != Role::Vios) {
        let is_near = near(client);
        let has_machine = || view.system(client).is_some_and(|system| system.machine.is_some());
        if !is_near && (!is_alone || has_machine()) {
            continue;
        }
        for (device, (mtu, at)) in large(view, client) {
            let other = smaller_beside(view, &small, client, device);
            if !is_near && other.is_none() {
                continue;
            }
            let title = format!(
                "{device} on {} sends {} byte frames, the bridge takes 1500",
                view.spoken(client),
                number(mtu)
            );
            let mut draft = bridge.draft(view, "sea-mtu", Severity::Warning, title);
            draft = mtu_finding(draft, [own.at, at]);
            if let Some((other, mtu, at)) = other {
                draft = draft.see([at]).because(format!(
                    "{other} is in the same network and has {}, which does not fit either.",
                    number(mtu)
                ));
            }
            out.push(match is_near {
                true => {
                    let change =
                        Change::new(view, bridge.host, bridge.name).set("jumbo_frames", "yes");
                    draft.change(&change).weigh(0.7, 1.0)
                }
                false => draft
                    .because("No capture says which bridge it is behind; none that was captured takes larger frames.")
                    .unknown(NoCommand {
                        look_up: vec![format!(
                            "which of the two is meant: mtu=1500 of {device} there, or large frames on the switch, the real adapters and the bridges"
                        )],
                        ..NoCommand::default()
                    })
                    .weigh(0.6, 1.0),
            });
        }
    }
}

/// By network, an interface that sends no larger frames than 1500 bytes: its system, its name, its MTU.
type Small<'a> = BTreeMap<&'a str, (usize, &'a str, Read<u64>)>;

fn interfaces<'v, 'a>(
    view: &'v View<'a>,
    host: usize,
) -> impl Iterator<Item = &'a Interface> + use<'v, 'a> {
    view.of(host).filter_map(Report::interfaces).flat_map(|list| &list.interfaces)
}

fn small_networks<'a>(view: &View<'a>) -> Small<'a> {
    let mut small = Small::new();
    for host in view.hosts() {
        for one in interfaces(view, host) {
            let Some(mtu) = one.mtu.filter(|mtu| mtu.value <= 1500) else { continue };
            for network in &one.networks {
                small.entry(network).or_insert((host, &one.name.value, mtu));
            }
        }
    }
    small
}

/// An interface of another system in the network of this one that sends no larger frames than 1500 bytes.
fn smaller_beside(
    view: &View<'_>,
    small: &Small<'_>,
    host: usize,
    device: &str,
) -> Option<(String, f64, At)> {
    let own = interfaces(view, host).filter(|one| one.name.value == device);
    let beside =
        own.flat_map(|one| &one.networks).filter_map(|network| small.get(network.as_str()));
    beside
        .filter(|(other, ..)| *other != host)
        .map(|(other, name, mtu)| (view.object(*other, name), as_f64(mtu.value), mtu.at))
        .next()
}

/// Whether there is no other machine than that of a VIOS, and no bridge that takes large frames: a client of which nothing
/// tells the machine may be behind these.
fn has_no_other<'a>(view: &View<'a>, vios: usize) -> bool {
    let mut servers = view.hosts().filter(|host| view.role(*host) == Role::Vios);
    let one = servers.all(|other| {
        other == vios || view.same_machine(other, vios) || sea_pair::are_partners(view, other, vios)
    });
    let small = |bridge: &Bridge<'a>| {
        bridge.attribute(view, "jumbo_frames").is_some_and(|of| of.value == "no")
    };
    one && view.bridges().iter().all(small)
}

/// The interfaces of a system that send frames larger than 1500 bytes over an Ethernet adapter.
fn large<'a>(view: &View<'a>, host: usize) -> BTreeMap<&'a str, (f64, At)> {
    let of_attributes = view.devices(host, "en").into_iter().filter_map(|device| {
        let (mtu, at) = view.number(host, device, "mtu")?;
        Some((device, (mtu, at)))
    });
    let lists = view.of(host).filter_map(Report::interfaces).flat_map(|list| &list.interfaces);
    let listed =
        lists.filter(|one| one.name.value.starts_with("en") || one.name.value.starts_with("eth"));
    let listed = listed.filter_map(|one| {
        let mtu = one.mtu?;
        Some((one.name.value.as_str(), (as_f64(mtu.value), mtu.at)))
    });
    let mut all: BTreeMap<&str, (f64, At)> = listed.collect();
    all.extend(of_attributes);
    all.retain(|_, (mtu, _)| *mtu > 1500.0 && *mtu < 65_000.0);
    all
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
        for (device, (mtu, at)) in large(view, client) {
            senders.push(format!("{device} on {} has {}", view.spoken(client), number(mtu)));
            draft = draft.see([at]);
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
