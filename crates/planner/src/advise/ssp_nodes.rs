//! `ssp-node-down`: a VIOS of a cluster that is not in it.

use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::view::View;
use crate::capture::{Node, Report};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "ssp-node-down",
    about: "a node of a shared storage pool's cluster is down",
    on: Kind::System,
    evidence: "cluster -status -clustername C on one VIOS of the cluster",
    weight: 1.2,
    applies: |view, system| {
        let mut lists = view.of(system.host).filter_map(Report::cluster_status);
        Applicability::where_that(lists.next().is_some())
    },
    judge,
}];

/// Whether a node, or what it has of the pool, is out of order.
fn is_down(node: &Node) -> bool {
    let bad = |state: &str| !matches!(state, "OK" | "UP");
    bad(&node.state) || node.pool_state.as_deref().is_some_and(bad)
}

fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let Some(list) = view.of(system.host).filter_map(Report::cluster_status).last() else { return };
    let name = list.clusters.last().map_or("the cluster", |(name, _)| name.as_str());
    let up = list.nodes.iter().filter(|node| !is_down(node)).count();
    for node in list.nodes.iter().filter(|node| is_down(node)) {
        let state = match &node.pool_state {
            Some(pool) if node.state == "OK" => format!("{pool} with the pool"),
            _ => node.state.clone(),
        };
        let title = format!("{} is {state} in the cluster {name}", node.name);
        let mut draft = Draft::new("ssp-node-down", system.host, node.name.clone(), Severity::Critical, title)
            .see([node.at])
            .see(list.clusters.iter().map(|(_, state)| state.at))
            .because(format!("{up} of {} nodes of {name} are in order. What this one gives out of the pool its clients have over the other VIOS of their machine alone, if at all.", list.nodes.len()));
        if let Some((_, state)) = list.clusters.last() {
            draft =
                draft.because(format!("The cluster says of itself that it is {}.", state.value));
        }
        out.push(
            draft
                .effect("On that VIOS: whether it runs, and reaches the others by their host names (both ways) and the repository disk (lspath); lssrc -g cthags, lssrc -s vio_daemon. Then clstartstop -start -n CLUSTER -m NODE as padmin. The same level on all nodes is needed.")
                .harm("None by looking. Do not restart another node of the cluster meanwhile.")
                .weigh(0.93, 1.2),
        );
    }
}
