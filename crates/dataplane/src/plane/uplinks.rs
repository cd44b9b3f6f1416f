//! Uplinks: each a port of its network, with the descriptors of the host's interfaces behind it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use device_net::TraceError;
use protocol::message::{
    Failure, FailureCode, Reply, TallySpec, TraceSpec, UplinkSpec, UplinkStatus,
};
use protocol::stats::NAME_BYTES_MAX;
use spec::{Change, change};
use switch::Links;

use super::lines::Lines;
use super::{Plane, failure, in_use, not_found};
use crate::adapter::PlaneContext;
use crate::failover::{Failover, standby};
use crate::lock::locked;

/// An uplink that is connected.
pub(crate) struct Uplink {
    spec: UplinkSpec,
    lines: Arc<Lines>,
    failover: Option<Failover>,
}

impl Plane {
    pub(super) fn put_uplink(&self, spec: UplinkSpec) -> Result<Reply, Failure> {
        check(&spec)?;
        let _changing = locked(&self.changes);
        let change = |uplink: &mut Uplink| uplink.change(&spec);
        let known = self.state().uplinks.get_mut(&spec.name).map(change).transpose()?;
        let done = match known {
            None => {
                let uplink = Uplink::start(&self.context, spec)?;
                self.state().uplinks.insert(uplink.spec.name.clone(), uplink);
                Ok(Reply::Done)
            }
            Some(None) => return Ok(Reply::Done),
            Some(Some(lines)) => {
                let moved = lines.place(spec.thread);
                if let Some(uplink) = self.state().uplinks.get_mut(&spec.name) {
                    // Whoever asked asks again.
                    uplink.spec.thread ^= moved.is_err();
                }
                moved.map(|()| Reply::Done)
            }
        };
        self.keep_a_channel();
        done
    }

    pub(super) fn remove_uplink(&self, name: &str) -> Result<Reply, Failure> {
        let _changing = locked(&self.changes);
        let uplink = self.state().uplinks.remove(name);
        uplink.ok_or_else(|| not_found("uplink", name))?.remove();
        self.keep_a_channel();
        Ok(Reply::Done)
    }

    /// The last channel is kept for uplinks as long as there is one with `thread`.
    fn keep_a_channel(&self) {
        let keeps = self.state().uplinks.values().any(|uplink| uplink.spec.thread);
        if self.context.keeps_one.swap(keeps, SeqCst) != keeps {
            self.balancer.activity().ring();
        }
    }

    /// What has passed an uplink that counts it.
    pub(super) fn tallies(&self, spec: &TallySpec) -> Result<Reply, Failure> {
        let state = self.state();
        let uplink = state.uplinks.get(&spec.uplink);
        let uplink = uplink.ok_or_else(|| not_found("uplink", &spec.uplink))?;
        Ok(Reply::Tallies(uplink.lines.port().tallies(spec.clear)))
    }

    /// Frames of a network are watched.
    pub(super) fn trace(&self, spec: &TraceSpec) -> Result<Reply, Failure> {
        let TraceSpec { network, port, .. } = spec;
        let report = self.context.services.ethernet.trace(spec);
        report.map(Reply::Trace).map_err(|error| match error {
            TraceError::Network => {
                let message = format!("no adapter is on the network {network}");
                failure(FailureCode::NotFound, message, "create an adapter on it first")
            }
            TraceError::Port => {
                let port = port.clone().unwrap_or_default();
                let message = format!("{port} is not on the network {network} now");
                failure(FailureCode::NotFound, message, "name an adapter or an uplink that is")
            }
            TraceError::Busy => {
                let message = format!("somebody else watches frames of the network {network}");
                failure(
                    FailureCode::InUse,
                    message,
                    "wait until that has ended, at most 10 seconds",
                )
            }
        })
    }
}

impl Uplink {
    fn start(context: &PlaneContext, spec: UplinkSpec) -> Result<Uplink, Failure> {
        let lines = Lines::start(context, &spec)?;
        let _ = lines.port().show(&spec, &standby(&spec));
        let mut uplink = Uplink { spec: spec.clone(), lines, failover: None };
        if let Some(failover) = &spec.failover {
            let port = Arc::clone(uplink.lines.port());
            match Failover::start((&context.outside, &context.carriers), &spec, failover, port) {
                Ok(failover) => uplink.failover = Some(failover),
                Err(error) => {
                    let path = failover.control.display();
                    let which =
                        if failover.lease().is_some() { "the place" } else { "the control file" };
                    let what = format!("{}: {which} {path}: {error}", failover.sea);
                    uplink.remove();
                    let help =
                        "name a file in a folder that is there and that both servers may write";
                    return Err(failure(FailureCode::System, what, help));
                }
            }
        }
        Ok(uplink)
    }

    /// Takes another specification over, as far as that needs no descriptor to move; those that are to move.
    fn change(&mut self, spec: &UplinkSpec) -> Result<Option<Arc<Lines>>, Failure> {
        if change::uplink(&self.spec, spec) == Change::Recreate {
            let user = "what it was made with: its network, its kind, its interface, its members and its control file or place in etcd";
            let what = format!("uplink {}", spec.name);
            return Err(in_use(what, user, "remove the uplink first"));
        }
        match &self.failover {
            Some(failover) => failover.set(spec),
            None => drop(self.lines.port().show(spec, &BTreeSet::new())),
        }
        let before = std::mem::replace(&mut self.spec, spec.clone());
        Ok((before.thread != spec.thread).then(|| Arc::clone(&self.lines)))
    }

    /// Takes the descriptors back and closes them.
    pub(super) fn remove(self) {
        // Nobody else bridges before nothing of this one is on its way.
        let tokens = self.failover.map(Failover::stop);
        self.lines.end();
        drop(tokens);
    }

    pub(super) fn status(&self) -> UplinkStatus {
        UplinkStatus {
            spec: self.spec.clone(),
            channel_of_queue: self.lines.channels(),
            failover: self.failover.as_ref().map(Failover::status),
            way: if self.spec.aggregate.is_none() { self.lines.way() } else { None },
            members: if self.spec.aggregate.is_none() { Vec::new() } else { self.lines.members() },
        }
    }
}

fn check(spec: &UplinkSpec) -> Result<(), Failure> {
    let invalid = |what: String, help: &str| {
        Err(failure(FailureCode::Invalid, format!("uplink {}: {what}", spec.name), help))
    };
    if spec.name.len() > NAME_BYTES_MAX {
        return invalid("its name is too long".to_owned(), "use at most 256 bytes");
    }
    let names = spec.members();
    if names.is_empty() || names.len() > Links::MAX {
        let what = format!("{} members", names.len());
        return invalid(what, "name 2 to 64");
    }
    if names.iter().any(|member| member.name.len() > NAME_BYTES_MAX) {
        return invalid("the name of a member is too long".to_owned(), "use at most 256 bytes");
    }
    let mut vlans = spec.vids.iter().chain([&spec.pvid]);
    if let Some(vid) = vlans.find(|vid| !(1..=4094).contains(*vid)) {
        return invalid(format!("VLAN {vid}"), "use 1 to 4094");
    }
    Ok(())
}
