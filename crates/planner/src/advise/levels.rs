//! `vios-levels`: two VIOS of one machine of which one is too old for what the other can.

use super::finding::{Draft, Severity};
use super::out::Out;
use super::queues::FEATURE;
use super::rule::{Applicability, Kind, Object, Rule};
use super::view::{Role, View};

const RULE: &str = "vios-levels";

pub(super) const RULES: &[Rule] = &[Rule {
    name: RULE,
    about: "one VIOS of a machine is too old for the queues that the other offers",
    on: Kind::System,
    evidence: "ioslevel and lsmap -all -npiv on each VIOS",
    weight: 1.0,
    applies: |view, system| {
        let known = view.role(system.host) == Role::Vios && view.level(system.host).is_some();
        Applicability::where_that(known && mates(view, system.host).next().is_some())
    },
    judge,
}];

/// The other VIOS of its machine whose level is known and that serve a client of it.
fn mates(view: &View<'_>, host: usize) -> impl Iterator<Item = usize> {
    let clients = view.clients_of(host);
    let mate = move |other: &usize| {
        *other != host
            && view.role(*other) == Role::Vios
            && view.same_machine(host, *other)
            && view.level(*other).is_some()
            && !view.clients_of(*other).is_disjoint(&clients)
    };
    view.hosts().filter(mate)
}

fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let host = system.host;
    if !view.too_old_for(host, FEATURE) {
        return;
    }
    let Some(mate) = mates(view, host).find(|mate| !view.too_old_for(*mate, FEATURE)) else {
        return;
    };
    let (Some(own), Some(other)) = (view.level(host), view.level(mate)) else { return };
    let (own_name, mate_name) = (view.spoken(host).to_owned(), view.spoken(mate).to_owned());
    let title = format!(
        "{own_name} is at {}, its mate {mate_name} at {}",
        own.level.value, other.level.value
    );
    out.push(
        Draft::new(RULE, host, own_name.clone(), Severity::Warning, title)
            .see([own.level.at, other.level.at])
            .because(format!("{own_name} is too old for more than one queue of an adapter, {mate_name} offers several: the same client has fewer queues on one side than on the other."))
            .effect(format!("Update {own_name} to the level of {mate_name} while the clients run over the other one, then configure their adapters to it anew."))
            .harm("While it restarts, its clients have one path less: look first that every client has all of its paths over the other VIOS.")
            .weigh(0.85, 1.0),
    );
}
