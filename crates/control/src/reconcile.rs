//! What to tell a data plane so that it becomes what it shall be.
//!
//! [`reconcile`] is pure: the wanted objects and the data plane's own account of itself go in, the
//! actions come out in an order in which each is allowed when its turn comes:
//!
//! 1. adapters go that are not wanted, or that stand in the way of a change;
//! 2. volumes go that are not wanted, or that must be opened anew;
//! 3. volumes come, change their limits, change their size;
//! 4. adapters come or change.
//!
//! Promises, which the tests hold it to: carrying out all actions reaches the wanted objects; then
//! there are no more actions; and an adapter that is as wanted, on a volume that is as wanted, is not
//! touched. So adopting a running data plane interrupts nothing.

use crate::model::resolve::Wanted;
use protocol::message::{
    AdapterSpec, AdapterState, AdapterStatus, Request, Status, VolumeKind, VolumeSpec, VolumeStatus,
};
use std::collections::{BTreeMap, BTreeSet};

/// One message to the data plane, and whom it is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Disconnect and remove an adapter.
    RemoveAdapter(String),
    /// Close a volume.
    RemoveVolume(String),
    /// Open a volume, or change its limits.
    PutVolume(VolumeSpec),
    /// Change a volume's capacity.
    ResizeVolume {
        /// Which.
        name: String,
        /// The new capacity.
        bytes: u64,
        /// It becomes smaller; the user allowed that when the size was accepted.
        shrink: bool,
    },
    /// Make an adapter, or change it.
    PutAdapter(AdapterSpec),
}

impl Action {
    /// The message.
    pub fn request(&self) -> Request {
        match self.clone() {
            Action::RemoveAdapter(name) => Request::RemoveAdapter { name },
            Action::RemoveVolume(name) => Request::RemoveVolume { name },
            Action::PutVolume(spec) => Request::PutVolume(spec),
            Action::ResizeVolume { name, bytes, shrink } => {
                Request::ResizeVolume { name, bytes, shrink }
            }
            Action::PutAdapter(spec) => Request::PutAdapter(spec),
        }
    }

    /// The volume or adapter that it is about.
    pub fn subject(&self) -> Subject {
        match self {
            Action::RemoveAdapter(name) => Subject::Adapter(name.clone()),
            Action::RemoveVolume(name) | Action::ResizeVolume { name, .. } => {
                Subject::Volume(name.clone())
            }
            Action::PutVolume(spec) => Subject::Volume(spec.name.clone()),
            Action::PutAdapter(spec) => Subject::Adapter(spec.name.clone()),
        }
    }
}

/// A volume or an adapter by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A volume.
    Volume(String),
    /// An adapter.
    Adapter(String),
}

/// The actions that make `actual` what is `wanted`.
pub fn reconcile(wanted: &Wanted, actual: &Status) -> Vec<Action> {
    let volumes: BTreeMap<&str, &VolumeStatus> =
        actual.volumes.iter().map(|status| (status.spec.name.as_str(), status)).collect();
    let adapters: BTreeMap<&str, &AdapterStatus> =
        actual.adapters.iter().map(|status| (status.spec.name.as_str(), status)).collect();

    let reopened: BTreeSet<&str> = volumes
        .iter()
        .filter(|(name, status)| {
            wanted.volumes.get(**name).is_none_or(|spec| must_reopen(spec, &status.spec))
        })
        .map(|(name, _)| *name)
        .collect();
    let remade: BTreeSet<&str> = adapters
        .iter()
        .filter(|(name, status)| {
            wanted.adapters.get(**name).is_none_or(|spec| must_remake(spec, &status.spec))
                || reopened.iter().any(|volume| status.spec.uses_volume(volume))
                || status.state == AdapterState::Failed
        })
        .map(|(name, _)| *name)
        .collect();

    let mut actions: Vec<Action> = Vec::new();
    actions.extend(remade.iter().map(|name| Action::RemoveAdapter((*name).to_owned())));
    actions.extend(reopened.iter().map(|name| Action::RemoveVolume((*name).to_owned())));
    for (name, spec) in &wanted.volumes {
        match volumes.get(name.as_str()).filter(|_| !reopened.contains(name.as_str())) {
            None => actions.push(Action::PutVolume(spec.clone())),
            Some(status) => actions.extend(change_volume(spec, status)),
        }
    }
    for (name, spec) in &wanted.adapters {
        let kept = adapters.get(name.as_str()).filter(|_| !remade.contains(name.as_str()));
        if kept.is_none_or(|status| status.spec != *spec) {
            actions.push(Action::PutAdapter(spec.clone()));
        }
    }
    actions
}

/// Whether the differences between two specifications of a volume need it closed and opened again:
/// anything that a client notices but by its speed. Its size has a message of its own.
fn must_reopen(wanted: &VolumeSpec, actual: &VolumeSpec) -> bool {
    let kind = match (&wanted.kind, &actual.kind) {
        (VolumeKind::File { path: a, .. }, VolumeKind::File { path: b, .. }) if a == b => {
            wanted.kind.clone()
        }
        _ => actual.kind.clone(),
    };
    let alike = VolumeSpec {
        kind,
        limit: wanted.limit,
        delay: wanted.delay,
        fault: wanted.fault.clone(),
        bytes: wanted.bytes,
        ..actual.clone()
    };
    alike != *wanted
}

/// Whether an adapter must be made again: its socket or its volume is another.
fn must_remake(wanted: &AdapterSpec, actual: &AdapterSpec) -> bool {
    wanted.block().map(|block| &block.volume) != actual.block().map(|block| &block.volume)
        || wanted.socket != actual.socket
        || wanted.socket_role != actual.socket_role
        || wanted.socket_mode != actual.socket_mode
}

/// What changes of a volume that stays open: how it behaves, then its size.
fn change_volume(wanted: &VolumeSpec, actual: &VolumeStatus) -> Vec<Action> {
    let mut actions = Vec::new();
    // The size goes its own way: with it, this would be a change that needs the volume closed.
    let spec = VolumeSpec { bytes: actual.spec.bytes, ..wanted.clone() };
    if spec != actual.spec {
        actions.push(Action::PutVolume(spec));
    }
    if let Some(bytes) = wanted.bytes.filter(|bytes| *bytes != actual.bytes) {
        let shrink = bytes < actual.bytes;
        actions.push(Action::ResizeVolume { name: wanted.name.clone(), bytes, shrink });
    }
    actions
}

#[cfg(test)]
mod tests;
