//! Virtual and physical Fibre Channel adapters against each other: the budget of a port, transfer sizes, error
//! recovery, and the WWPNs of a client.

use std::collections::BTreeSet;

use super::change::Change;
use super::elements::Usage;
use super::finding::{Draft, Severity};
use super::logins;
use super::mapping::Npiv;
use super::multipath;
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule, always};
use super::view::{Device, Role, View, as_f64, parse_number};
use crate::capture::{At, Attribute};
use crate::trace::{Figure, Term, number};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "fc-error-recovery",
        about: "a broken path is noticed late, or one that moves is lost",
        on: Kind::Protocol,
        evidence: "lsattr -El fscsiN of every protocol device",
        weight: 1.0,
        applies: always,
        judge: error_recovery,
    },
    Rule {
        name: "fc-wwpn-second-missing",
        about: "one WWPN of a client is not logged in where its sibling is",
        on: Kind::Client,
        evidence: "lsmap -all -npiv on each VIOS; lsnportlogin on the HMC after a login of all",
        weight: 1.0,
        applies: always,
        judge: logins::judge,
    },
    Rule {
        name: "fc-max-xfer-mismatch",
        about: "a client's largest transfer is larger than its port's",
        on: Kind::Port,
        evidence: "max_xfer_size of each client's fcsN and of the VIOS port it is mapped to, with lsmap -all -npiv",
        weight: 1.0,
        applies: |view, port| {
            let virtual_adapter =
                view.is_virtual(port.host, port.device, view.fcstats(port.host, port.device));
            Applicability::where_that(
                virtual_adapter == Some(true) || view.role(port.host) == Role::Client,
            )
        },
        judge: transfer_size,
    },
];

/// The clients' elements against the port's, where the port shows pressure.
///
/// Clients may have more elements than their port as long as they are not busy together: most sites have. So the sum
/// alone is no fault; it is the explanation once the port runs out.
pub(super) fn oversubscribed(view: &View<'_>, usage: &Usage<'_>, out: &mut Out) {
    const RULE: &str = "fc-port-oversubscribed";
    let maps = view.npiv();
    let here: Vec<&Npiv<'_>> = maps
        .iter()
        .filter(|map| map.vios == usage.host && map.port() == Some(usage.device))
        .collect();
    let Some(waits) = usage.pressure() else { return };
    let clients: BTreeSet<_> = here.iter().filter_map(|map| map.client_key()).collect();
    if maps.iter().all(|map| map.vios != usage.host) {
        out.lack("", format!("lsmap -all -npiv on {}", view.spoken(usage.host)));
    }
    let terms = client_elements(view, &here, out);
    let Some((port, port_at)) = view.number(usage.host, usage.device, "num_cmd_elems") else {
        out.lack("num_cmd_elems", view.show_attributes(usage.host, usage.device));
        return;
    };
    let sum: f64 = terms.iter().map(|term| term.low).sum();
    if clients.len() < 2 || terms.len() < 2 || sum <= port {
        return;
    }
    let total = sum_figure("sum of the clients' elements", terms.clone());
    let ratio_terms =
        vec![Term::of(&total).named("sum"), Term::read("port", port, "elements", port_at)];
    let ratio = Figure::new("oversubscription", "", "sum ÷ port", ratio_terms);
    let lines = terms.iter().filter_map(|term| match &term.origin {
        crate::trace::Origin::Capture(at) => Some(*at),
        _ => None,
    });
    let title = format!(
        "{} clients may have {} commands active, the port {}",
        clients.len(),
        number(sum),
        number(port)
    );
    let mut draft = Draft::new(RULE, usage.host, view.object(usage.host, usage.device), Severity::Warning, title)
        .see(waits.counter.places())
        .see([port_at])
        .see(lines)
        .see(here.iter().map(|map| map.map.at))
        .because(waits.why)
        .unless_over(&waits.counter)
        .because("The clients together may send more commands than the port has elements for. That alone is common and harmless; here the port does run out.")
        .weigh(waits.confidence, 1.1);
    for figure in [total, ratio].into_iter().chain(waits.figures) {
        draft = draft.figure(figure);
    }
    let draft = enlarge(view, usage, port, sum, draft);
    out.push(draft.harm("More commands reach the fabric at a time; the latency of storage that is already busy rises for everybody."));
}

/// The command elements of each client adapter on a port.
fn client_elements(view: &View<'_>, here: &[&Npiv<'_>], out: &mut Out) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for map in here {
        let Some(adapter) = map.client_adapter() else { continue };
        let name = format!("{} {adapter}", map.client_spoken());
        match map.client.and_then(|client| view.number(client, adapter, "num_cmd_elems")) {
            Some((elements, at)) if !terms.iter().any(|term| term.name == name) => {
                terms.push(Term::read(&name, elements, "elements", at));
            }
            Some(_) => {}
            None => out
                .lack("num_cmd_elems", format!("lsattr -El {adapter} on {}", map.client_spoken())),
        }
    }
    terms
}

/// The command that gives the port as many elements as its clients have, or as many as it may.
fn enlarge(view: &View<'_>, usage: &Usage<'_>, port: f64, sum: f64, draft: Draft) -> Draft {
    let limits = view.allowed(usage.host, usage.device, &["fcs"], "num_cmd_elems");
    match limits.fit_or_max(sum).filter(|target| as_f64(*target) > port) {
        Some(target) => {
            let change = Change::new(view, usage.host, usage.device);
            let rest = if as_f64(target) < sum { " It does not cover the sum: the rest of the way is to move clients to another port or to lower num_cmd_elems of clients that do not need theirs." } else { "" };
            draft
                .change(&change.set("num_cmd_elems", target.to_string()))
                .effect(format!("The port takes {} commands at a time; the counter stops growing once the adapter is configured again.{rest}", number(as_f64(target))))
        }
        None => draft.effect("The port's num_cmd_elems is already at the greatest value. Next step: move clients to another physical port (vfcmap), or lower num_cmd_elems of clients that do not need theirs."),
    }
}

/// A sum whose terms are named by clients; formulas cannot hold their names, so they are numbered.
fn sum_figure(name: &str, mut terms: Vec<Term>) -> Figure {
    let names: Vec<String> = (1..=terms.len()).map(|at| format!("client{at}")).collect();
    for (term, name) in terms.iter_mut().zip(&names) {
        term.name.clone_from(name);
    }
    Figure::new(name, "elements", &names.join(" + "), terms)
}

/// `fc-error-recovery`: `fc_err_recov` and `dyntrk` of a protocol device.
fn error_recovery(view: &View<'_>, fscsi: &Object<'_>, out: &mut Out) {
    let (host, device) = (fscsi.host, fscsi.device);
    let value = |name| view.attribute(host, device, name);
    // Both are for a port at a switch; at a loop they are not supported, and a port without a cable has nothing to recover.
    if value("attach").is_some_and(|of| of.value == "al" || of.value == "none") {
        return;
    }
    let wrong =
        |name, good: &str| value(name).filter(|attribute: &&Attribute| attribute.value != good);
    // Where one path is all there is, a delayed command comes through and a failed one does not.
    let slow =
        wrong("fc_err_recov", "fast_fail").filter(|_| !multipath::has_single_paths(view, host));
    let still = wrong("dyntrk", "yes");
    if value("fc_err_recov").is_none() || value("dyntrk").is_none() {
        out.lack("fc_err_recov and dyntrk", view.show_attributes(host, device));
    }
    let mut change = Change::new(view, host, device);
    let mut reasons = Vec::new();
    if slow.is_some() {
        change = change.set("fc_err_recov", "fast_fail");
        reasons.push("fc_err_recov is delayed_fail: when a switch reports that a target is gone, commands still wait for their timeout before another path is tried.");
    }
    if still.is_some() {
        change = change.set("dyntrk", "yes");
        reasons.push("dyntrk is not yes: a target whose address in the fabric changes (a cable moved to another switch port) is lost instead of followed.");
    }
    let lines: Vec<At> =
        [slow, still].into_iter().flatten().map(|attribute| attribute.at).collect();
    if lines.is_empty() {
        return;
    }
    // Each of the two has its own effect.
    let (mut effect, mut harm) = (String::new(), "None that is known.");
    if slow.is_some() {
        effect += "Commands on a broken path fail within seconds and go on over another one. ";
        harm = "With one path only, fast_fail reports an error where a delayed command would have come through: set it where there are at least two.";
    }
    if still.is_some() {
        effect += "A target that moves in the fabric is found again by itself. ";
    }
    effect += "It takes effect when the device is configured again or the system is restarted.";
    let title = match slow {
        Some(_) => "a broken path is noticed late",
        None => "a target that moves in the fabric is lost",
    };
    let title = title.to_owned();
    let mut draft =
        Draft::new("fc-error-recovery", host, view.object(host, device), Severity::Warning, title)
            .see(lines);
    for reason in &reasons {
        draft = draft.because(*reason);
    }
    let confidence = if slow.is_some() { 0.85 } else { 0.6 };
    out.push(draft.change(&change).effect(effect).harm(harm).weigh(confidence, 0.9));
}

/// `fc-max-xfer-mismatch`: a client's `max_xfer_size` above that of its port.
fn transfer_size(view: &View<'_>, port: &Object<'_>, out: &mut Out) {
    const RULE: &str = "fc-max-xfer-mismatch";
    let size = |host, device| {
        let attribute: &Attribute = view.attribute(host, device, "max_xfer_size")?;
        Some((attribute, parse_number(&attribute.value)?))
    };
    let (client, adapter) = (port.host, port.device);
    let behind = pairs(view.npiv()).filter(|(of, _)| *of == (client, adapter));
    let mut judged = false;
    for (_, (vios, port)) in behind {
        let (Some((of_client, client_bytes)), Some((of_port, port_bytes))) =
            (size(client, adapter), size(vios, port))
        else {
            continue;
        };
        judged = true;
        if client_bytes <= port_bytes {
            continue;
        }
        let terms = vec![
            Term::read("client", as_f64(client_bytes), "bytes", of_client.at),
            Term::read("port", as_f64(port_bytes), "bytes", of_port.at),
        ];
        let title = format!(
            "{adapter} may send larger transfers than {port} on {} takes",
            view.spoken(vios)
        );
        let alone = is_alone(view, client, port_bytes);
        let change = match alone {
            true => Change::new(view, client, adapter)
                .set("max_xfer_size", of_port.value.as_str())
                .lowering(),
            false => Change::new(view, vios, port).set("max_xfer_size", of_client.value.as_str()),
        };
        let [why, effect, harm] = match alone {
            true => [
                "The other clients of its servers keep to what their ports take: this client is the one that differs, and its own value is changed without a server's restart.",
                "The client keeps to what its ports take. It takes effect when the device is configured again: at the client's restart.",
                "Its largest requests are divided. If they have to be that large, raise max_xfer_size of every port behind it on both VIOS first, one VIOS after the other.",
            ],
            false => [
                "",
                "Both sides agree once the port is configured again. The port behind each of the client's adapters needs it, on every VIOS that the client may migrate to as well.",
                "The port reserves more DMA memory. To lower the client's value instead is as good, where its transfers need not be that large.",
            ],
        };
        out.push(
            Draft::new(RULE, client, view.object(client, adapter), Severity::Critical, title)
                .see([of_client.at, of_port.at])
                .because(format!("max_xfer_size is {} on the client and {} on the VIOS port behind it.", of_client.value, of_port.value))
                .because("A client's value must not be larger than that of its VIOS: its disks can fail to configure, at the latest after the next restart or migration.")
                .because(why)
                .figure(Figure::new("client over port", "bytes", "client − port", terms))
                .change(&change)
                .effect(effect)
                .harm(harm)
                .weigh(0.9, 0.8),
        );
    }
    if !judged {
        let about = "max_xfer_size on both sides";
        out.lack(
            about,
            format!(
                "lsattr -El {adapter} on {}, lsmap -all -npiv and lsdev -attr of the port behind it on the VIOS",
                view.spoken(client)
            ),
        );
    }
}

/// Whether a client is the only one whose transfers are larger than its ports take, of several whose sizes are known.
fn is_alone(view: &View<'_>, client: usize, bytes: u64) -> bool {
    let servers: BTreeSet<usize> = pairs(view.npiv())
        .filter(|((of, _), _)| *of == client)
        .map(|(_, (vios, _))| vios)
        .collect();
    let mut others = pairs(view.npiv())
        .filter(|((of, _), (vios, _))| *of != client && servers.contains(vios))
        .filter_map(|((of, adapter), _)| {
            parse_number(&view.attribute(of, adapter, "max_xfer_size")?.value)
        })
        .peekable();
    others.peek().is_some() && others.all(|other| other <= bytes)
}

/// Client adapters and the ports behind them, by the mappings.
pub(super) fn pairs<'a>(maps: &[Npiv<'a>]) -> impl Iterator<Item = (Device<'a>, Device<'a>)> {
    maps.iter()
        .filter_map(|map| Some(((map.client?, map.client_adapter()?), (map.vios, map.port()?))))
}
