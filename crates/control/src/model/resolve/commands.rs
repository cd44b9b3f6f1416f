//! What the commands of a client may take, and what its port leaves to it.

use super::parts::{narrow16, narrow32};
use crate::model::Desired;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attributes, Object, attr};
use fabric::elements::{Budget, Claim, Granted};
use protocol::message::{CommandSpec, PortShare};

/// The name of the port that an adapter is mapped to.
fn port(set: &Attributes) -> Option<&str> {
    attr::adapter::PORT.of(set).filter(|_| attr::adapter::KIND.value(set) == AdapterKind::Fc)
}

/// What an adapter brings to the elements of its port.
pub fn claim(set: &Attributes) -> Claim {
    Claim {
        own: narrow32(attr::adapter::NUM_CMD_ELEMS.value(set)),
        share: narrow32(attr::adapter::SHARE.value(set)),
    }
}

/// What the port of an adapter has for its clients, and what this one gets of it; none where it is mapped to no port.
pub fn granted<'a>(desired: &Desired, set: &'a Attributes) -> Option<(&'a str, Budget, Granted)> {
    let name = port(set)?;
    let elements = narrow32(attr::port::NUM_CMD_ELEMS.value(desired[Object::Port].get(name)?));
    let of_port = desired[Object::Adapter].values().filter(|set| port(set) == Some(name));
    let budget = Budget::new(elements, of_port.map(claim));
    Some((name, budget, budget.grant(claim(set))))
}

/// What the client of an adapter has of its port.
pub(super) fn port_share(desired: &Desired, set: &Attributes) -> Option<PortShare> {
    let name = port(set)?;
    let num_cmd_elems = narrow32(attr::port::NUM_CMD_ELEMS.value(desired[Object::Port].get(name)?));
    let share = narrow32(attr::adapter::SHARE.value(set));
    Some(PortShare { name: name.to_owned(), num_cmd_elems, share })
}

/// What the commands of an adapter may take.
pub(super) fn commands(desired: &Desired, set: &Attributes) -> CommandSpec {
    let port = port(set).and_then(|port| desired[Object::Port].get(port));
    let of_port = port.map_or(u64::MAX, |port| attr::port::MAX_XFER_SIZE.value(port));
    CommandSpec {
        num_cmd_elems: narrow32(attr::adapter::NUM_CMD_ELEMS.value(set)),
        num_sp_cmd_elem: narrow32(attr::adapter::NUM_SP_CMD_ELEM.value(set)),
        num_local_cmds: narrow32(desired.inherited(attr::adapter::NUM_LOCAL_CMDS, set)),
        bufs_per_cmd: narrow32(desired.inherited(attr::adapter::BUFS_PER_CMD, set)),
        queue_depth: narrow16(attr::adapter::QUEUE_DEPTH.value(set)),
        max_xfer_bytes: attr::adapter::MAX_XFER_SIZE.value(set).min(of_port),
    }
}
