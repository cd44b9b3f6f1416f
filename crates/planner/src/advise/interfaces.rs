//! `net-interface`: what the lists of interfaces tell, of Linux above all: packets that are lost, and a link that is gone.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Draft, Severity};
use super::measure::{Counter, by_time, waits};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::thresholds::{ERRORS_OF_INTERFACE, OTHER_DROPS_SHARE};
use super::view::View;
use crate::capture::{Interface, Interfaces, Report};
use crate::trace::number;

const RULE: &str = "net-interface";

pub(super) const RULES: &[Rule] = &[Rule {
    name: RULE,
    about: "an interface loses packets or has errors, or has lost its link",
    on: Kind::System,
    evidence: "netstat -in, or ip -s link and ethtool -S on Linux, twice, some minutes apart",
    weight: 0.9,
    applies: |view, system| {
        let listed = view.of(system.host).any(|report| report.interfaces().is_some());
        Applicability::where_that(listed)
    },
    judge,
}];

/// An interface in one list.
type Sample<'a> = (&'a Interfaces, &'a Interface);

fn by_name<'a>(view: &View<'a>, host: usize) -> BTreeMap<&'a str, Vec<Sample<'a>>> {
    let mut of: BTreeMap<&str, Vec<Sample<'a>>> = BTreeMap::new();
    for list in view.of(host).filter_map(Report::interfaces) {
        for one in &list.interfaces {
            of.entry(&one.name.value).or_default().push((list, one));
        }
    }
    for samples in of.values_mut() {
        by_time(
            view,
            samples,
            |sample| &sample.0.head,
            |_| None,
            |sample| sample.1.received.packets.map(|read| read.value),
        );
    }
    of
}

fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let own = view.wires().iter().filter(|wire| wire.host == system.host);
    let asked: BTreeSet<String> = own.map(|wire| wire.name.to_owned()).collect();
    for (name, samples) in by_name(view, system.host) {
        if name == "lo" || name.starts_with("lo0") {
            continue;
        }
        // What the adapter itself was asked tells more.
        if name.strip_prefix("en").is_some_and(|number| asked.contains(&format!("ent{number}"))) {
            continue;
        }
        no_link(view, system, name, &samples, out);
        losses(view, system, name, &samples, out);
    }
}

fn no_link(
    view: &View<'_>,
    system: &Object<'_>,
    name: &str,
    samples: &[Sample<'_>],
    out: &mut Out,
) {
    let said = samples.iter().rev().find_map(|(_, one)| one.up);
    let Some(up) = said.filter(|up| !up.value) else { return };
    // A spare without a cable has carried nothing.
    let used =
        samples.iter().any(|(_, one)| one.received.packets.is_some_and(|read| read.value > 0));
    if !used {
        return;
    }
    out.push(
        Draft::new(RULE, system.host, view.object(system.host, name), Severity::Critical, format!("{name} has no link"))
            .see([up.at])
            .see(samples.iter().rev().find_map(|(_, one)| one.received.packets).map(|read| read.at))
            .because("It is up for the system, has carried packets, and has no carrier now.")
            .effect("Of a physical or logical port look at the cable, the transceiver and the switch port; of a vNIC at its backing devices on the VIOS (lsmap -all -vnic).")
            .harm("None by looking.")
            .weigh(0.9, 1.0),
    );
}

fn losses(view: &View<'_>, system: &Object<'_>, name: &str, samples: &[Sample<'_>], out: &mut Out) {
    let all: Vec<&Interface> = samples.iter().map(|(_, one)| *one).collect();
    let received = Counter::over(&all, |one| one.received.packets);
    let object = || view.object(system.host, name);
    // Protocols that nobody listens to are counted as dropped, too, on Linux: some a second, and never many.
    let dropped =
        Counter::over(&all, |one| one.received.dropped).filter(|counter| counter.first.is_some());
    let requests: Vec<Counter> = received.into_iter().collect();
    if let Some(dropped) = dropped
        && let Some(of) = waits("packets dropped", dropped, &requests)
        && dropped.growth().is_some_and(|growth| {
            received
                .and_then(|all| all.growth())
                .is_none_or(|all| growth >= all * OTHER_DROPS_SHARE)
        })
    {
        let title = format!("{name} drops packets that it receives");
        out.push(
            of.tell(Draft::new(RULE, system.host, object(), Severity::Warning, title))
                .because("What arrives faster than it is taken finds no buffer.")
                .effect("Of a virtual Ethernet adapter of Linux (ibmveth) raise the number of its receive buffers: the files pool3/num and pool4/num and their kin below /sys/devices/vio/*/, active=1 first; of another adapter `ethtool -g` and `ethtool -G … rx`. Then see whether the partition has processors enough: buffers that are taken late are the same as too few.")
                .harm("More memory for buffers; nothing else.")
                .weigh(of.confidence.min(0.85), 1.0),
        );
    }
    for (which, pick) in [
        ("received", (|one: &Interface| one.received.errors) as fn(&Interface) -> _),
        ("sent", |one: &Interface| one.sent.errors),
    ] {
        let Some(counter) = Counter::over(&all, pick) else { continue };
        let Some(growth) = counter.growth().filter(|growth| *growth >= ERRORS_OF_INTERFACE) else {
            continue;
        };
        let title = format!("{name} has errors on packets that are {which}");
        let draft = Draft::new(RULE, system.host, object(), Severity::Warning, title)
            .see(counter.places())
            .because(format!("They grew by {} between the captures.", number(growth)));
        let draft = counter
            .growth_figure("growth of errors", "packets")
            .into_iter()
            .fold(draft, Draft::figure);
        out.push(
            draft
                .effect("The list does not say which: entstat -d of the adapter (ethtool -S on Linux), twice, some minutes apart, does.")
                .harm("None by looking.")
                .unless_over(&counter)
                .weigh(0.75, 0.9),
        );
    }
}
