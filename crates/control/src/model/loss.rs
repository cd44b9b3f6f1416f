//! What a change takes from clients that are connected.
//!
//! [`losses`] is pure: two states and the adapters with a client go in, what those clients lose comes out. A client loses
//! something when its adapter goes, gets another socket, volume or initiator, or does not show a LUN any more that it showed; when the link of
//! its last path to a unit goes down; when it is taken off a VLAN, or its last way out of the host goes. It also does
//! when it could not go on after the death of its data plane, since what it uses would not be offered any more, or its socket would not be
//! its user's to open: what is in force with the next connection is in force for those that connect again.
//! Everything else (limits, channels, a medium in a drive, more LUNs, another data plane) it keeps its disks through.

mod network;
mod paths;
mod socket;

pub(crate) use socket::{Identity, identify};

use super::resolve::Wanted;
use crate::error::{ApiError, Code};
use protocol::message::{
    AdapterSpec, AdapterState, AdapterStatus, ClientStatus, DeviceSpec, Initiator,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What is known of a client stays with the data plane when it leaves.
pub(crate) fn has_client(adapter: &AdapterStatus) -> bool {
    use AdapterState::{Connecting, Failed, Listening};
    !matches!(adapter.state, Listening | Connecting | Failed)
}

/// Whether an adapter's client will not connect again when its data plane ends, as far as can be told: that of a SCSI device that has not
/// acknowledged SHARED_OBJECT (ADR 0013).
pub(crate) fn stays_away(adapter: &AdapterStatus) -> bool {
    has_client(adapter)
        && adapter.spec.scsi().is_some()
        && !adapter.features.iter().any(|feature| feature == "shared_object")
}

/// A client that a change takes something from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Loss {
    /// The adapter to which it is connected.
    pub adapter: String,
    /// What it loses, in words.
    pub what: String,
}

/// The adapters with a client, and what is known of each client.
pub type Connected = BTreeMap<String, Client>;

/// A client that is connected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Client {
    /// How many queues it has.
    pub queues: u16,
    /// Its process and its user, where they are known.
    pub process: Option<ClientStatus>,
    /// Who it is to the file system, where that was looked up: only where a socket is given to somebody else.
    pub(crate) identity: Option<Identity>,
}

/// Two states, and who is connected.
struct Between<'a> {
    now: &'a BTreeMap<String, Wanted>,
    next: &'a BTreeMap<String, Wanted>,
    connected: &'a Connected,
}

impl<'a> Between<'a> {
    /// The other adapters of the same client that stay as they are connected, as they will be: the same process is the same machine.
    fn others(&self, adapter: &'a str) -> impl Iterator<Item = &'a AdapterSpec> + use<'a> {
        let (connected, next) = (self.connected, self.next);
        let process = |name: &str| Some(connected.get(name)?.process?.pid);
        let own = process(adapter);
        let same =
            move |name: &&String| own.is_some() && name.as_str() != adapter && process(name) == own;
        connected.keys().filter(same).filter_map(move |name| of(next, name))
    }
}

/// What the clients of these adapters lose when what data planes shall be becomes another, by data plane.
pub fn losses(
    now: &BTreeMap<String, Wanted>,
    next: &BTreeMap<String, Wanted>,
    connected: &Connected,
) -> Vec<Loss> {
    let between = Between { now, next, connected };
    let ways = network::Ways::between(&between);
    let lost = |(adapter, client): (&String, &Client)| {
        let (before, after) = (of(now, adapter)?, of(next, adapter));
        let what = lost(before, after, client.queues).or_else(|| {
            let after = after?;
            paths::lost(&between, before, after)
                .or_else(|| network::lost(before, after))
                .or_else(|| ways.lost(before))
                .or_else(|| socket::lost(before, after, client))
        })?;
        Some(Loss { adapter: adapter.clone(), what })
    };
    connected.iter().filter_map(lost).collect()
}

/// An adapter as its data plane gets it.
fn of<'a>(all: &'a BTreeMap<String, Wanted>, adapter: &str) -> Option<&'a AdapterSpec> {
    all.values().find_map(|wanted| wanted.adapters.get(adapter))
}

fn lost(before: &AdapterSpec, after: Option<&AdapterSpec>, queues: u16) -> Option<String> {
    let volume = |spec: &AdapterSpec| spec.block().map(|block| block.volume.clone());
    let disk = |volume: String| format!("its disk (volume `{volume}`)");
    let Some(after) = after else {
        let other = || match &before.device {
            DeviceSpec::Ethernet(card) => format!("its network `{}`", card.network),
            _ => "the adapter with all its LUNs".to_owned(),
        };
        return Some(volume(before).map_or_else(other, disk));
    };
    if let (Some(from), to) = (volume(before), volume(after))
        && to.as_ref() != Some(&from)
    {
        return Some(disk(from));
    }
    if (&before.socket, before.socket_role) != (&after.socket, after.socket_role) {
        return Some(format!("its socket {}", before.socket.display()));
    }
    if initiator(before) != initiator(after) {
        return Some("its login: it would be another initiator".to_owned());
    }
    let (shown, left) = (luns(before), luns(after));
    let gone: Vec<String> = shown
        .iter()
        .filter(|(place, unit)| left.get(place) != Some(*unit))
        .map(|((target, lun), unit)| format!("LUN {lun} of target {target} ({unit})"))
        .collect();
    if !gone.is_empty() {
        return Some(gone.join(", "));
    }
    let why = not_offered(before, after, queues)?;
    let what = volume(before).map_or_else(|| "the adapter".to_owned(), disk);
    Some(format!("{what} when it connects again, as after a restart of the data plane: {why}"))
}

/// What a client with so many queues may use, and does not find when it connects again.
fn not_offered(before: &AdapterSpec, after: &AdapterSpec, queues: u16) -> Option<String> {
    let AdapterSpec { queues: offered, queue_size, withhold, device, .. } = after;
    if *offered < before.queues.min(queues) {
        return Some(format!("it has {queues} queues, and `queues` would be {offered}"));
    }
    if *queue_size < before.queue_size {
        return Some(format!(
            "its queues may be longer than {queue_size}, as `queue_size` would be"
        ));
    }
    if let Some(feature) = withhold.iter().find(|feature| !before.withhold.contains(feature)) {
        return Some(format!("`{feature}` would not be offered"));
    }
    let (DeviceSpec::Block(then), DeviceSpec::Block(now)) = (device, &before.device) else {
        return None;
    };
    let gone = [
        (then.read_only && !now.read_only, "it would be read-only"),
        (now.discard && !then.discard, "`discard` would not be offered"),
        (now.write_cache && !then.write_cache, "`write_cache` would not be offered"),
    ];
    gone.into_iter().find(|(gone, _)| *gone).map(|(_, what)| what.to_owned())
}

fn initiator(spec: &AdapterSpec) -> Option<Initiator> {
    spec.scsi().map(|scsi| scsi.initiator)
}

/// By target and number: the units that a client sees.
fn luns(spec: &AdapterSpec) -> BTreeMap<(u64, u64), &str> {
    let targets = spec.scsi().into_iter().flat_map(|scsi| &scsi.targets);
    targets
        .flat_map(|target| {
            let place = |lun: &u16| (u64::from(target.id), u64::from(*lun));
            target.luns.iter().map(move |(lun, unit)| (place(lun), unit.as_str()))
        })
        .collect()
}

/// Why a change is not made.
pub fn refusal(losses: &[Loss]) -> ApiError {
    let each = |lose: &str| {
        let all = losses.iter().map(|loss| format!("`{}`{lose} {}", loss.adapter, loss.what));
        all.collect::<Vec<_>>().join("; ")
    };
    let message = match losses.len() {
        1 => format!("the client of adapter {}", each(" loses")),
        _ => format!("clients of adapters lose: {}", each("")),
    };
    ApiError::new(Code::InUse, message).help(
        "stop the client first, or take it away nevertheless: `--force` (in the API `force=true`)",
    )
}

#[cfg(test)]
mod tests;
