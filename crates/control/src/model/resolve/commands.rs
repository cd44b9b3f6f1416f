//! What the commands of a client may take, and what its port leaves to it.

use super::{narrow16, narrow32};
use crate::model::{AdapterKind, Desired, adapter_kind, text};
use fabric::attribute::{Attributes, Object};
use fabric::elements::{Budget, Claim, Granted};
use protocol::message::CommandSpec;
use std::collections::BTreeMap;

fn get(desired: &Desired, object: Object, set: &Attributes, name: &str) -> u64 {
    let value = desired.effective(object, set, name).and_then(|value| value.as_number());
    value.unwrap_or(0)
}

/// The name of the port that an adapter is mapped to.
fn port(set: &Attributes) -> Option<&str> {
    text(set, "port").filter(|_| adapter_kind(set) == AdapterKind::Fc)
}

fn claim(desired: &Desired, set: &Attributes) -> Claim {
    let number = |name| narrow32(get(desired, Object::Adapter, set, name));
    Claim { own: number("num_cmd_elems"), share: number("share") }
}

/// The command elements of each port, and what its adapters ask for.
pub(super) fn budgets(desired: &Desired) -> BTreeMap<&str, Budget> {
    let mut claims: BTreeMap<&str, Vec<Claim>> = BTreeMap::new();
    for set in desired.adapters.values() {
        if let Some(port) = port(set) {
            claims.entry(port).or_default().push(claim(desired, set));
        }
    }
    let all = claims.into_iter().filter_map(|(name, claims)| {
        let set = desired.ports.get(name)?;
        let elements = narrow32(get(desired, Object::Port, set, "num_cmd_elems"));
        Some((name, Budget::new(elements, claims)))
    });
    all.collect()
}

/// What the port of an adapter has for its clients, and what this one gets of it; none where it is mapped to no port.
pub fn granted<'a>(desired: &Desired, set: &'a Attributes) -> Option<(&'a str, Budget, Granted)> {
    let port = port(set)?;
    let budget = *budgets(desired).get(port)?;
    Some((port, budget, budget.grant(claim(desired, set))))
}

/// What the commands of an adapter may take.
pub(super) fn commands(
    desired: &Desired,
    set: &Attributes,
    budgets: &BTreeMap<&str, Budget>,
) -> CommandSpec {
    let number = |name| get(desired, Object::Adapter, set, name);
    let claim = claim(desired, set);
    let budget = port(set).and_then(|port| budgets.get(port));
    let port = port(set).and_then(|port| desired.ports.get(port));
    let of_port = port.map_or(u64::MAX, |port| get(desired, Object::Port, port, "max_xfer_size"));
    CommandSpec {
        num_cmd_elems: budget.map_or(claim.own, |budget| budget.grant(claim).commands),
        num_sp_cmd_elem: narrow32(number("num_sp_cmd_elem")),
        num_local_cmds: narrow32(number("num_local_cmds")),
        bufs_per_cmd: narrow32(number("bufs_per_cmd")),
        queue_depth: narrow16(number("queue_depth")),
        max_xfer_bytes: number("max_xfer_size").min(of_port),
    }
}
