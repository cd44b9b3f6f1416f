//! An uplink as who changes it has it: its port in its network.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex};

use protocol::message::TallyReport;
use spec::{RateSpec, UplinkKind, UplinkSpec};
use switch::{Offloads, PortSpec, Question, Takes, Vid, Vids};

use crate::bounds::Bounds;
use crate::config;
use crate::handler::{Behind, Descriptor};
use crate::network::{Network, Networks, Pair, Port};
use crate::uplink::Tallies;

/// An uplink in its network.
#[derive(Debug)]
pub struct UplinkPort {
    network: Arc<Network>,
    port: Arc<Port>,
    bounds: Mutex<Bounds>,
}

impl UplinkPort {
    /// Enters the network that the specification names, with so many descriptors. Nothing comes by it before [`UplinkPort::show`].
    ///
    /// # Errors
    ///
    /// When there is no memory for frames that wait.
    pub fn join(
        networks: &Networks,
        spec: &UplinkSpec,
        descriptors: u16,
    ) -> Result<UplinkPort, String> {
        let network = networks.named(&spec.network);
        let port = network.join(&spec.name, descriptors);
        if spec.failover.as_ref().is_some_and(|failover| failover.lease().is_some()) {
            port.until_ns.store(0, Release);
        }
        let uplink = UplinkPort { network, port, bounds: Mutex::default() };
        uplink.port.pairs.iter().try_for_each(Pair::make_inbox)?;
        Ok(uplink)
    }

    /// It takes part as the specification says, and passes nothing of the VLANs in standby. What is on its way may still pass until it
    /// [is quiet](UplinkPort::is_quiet) since the number that is returned.
    pub fn show(&self, spec: &UplinkSpec, standby: &BTreeSet<Vid>) -> u64 {
        // The kernel does what an interface cannot, and what comes is as others have made it; but for AF_XDP, where frames are what is on the wire.
        let may = Offloads::ALL;
        let offloads = if spec.kind == UplinkKind::Xdp { Offloads::NONE } else { may };
        let asked = (RateSpec::default(), RateSpec::default(), spec.storm);
        let bounds = self.bounds.lock().expect("a panic ends the process").kept(asked);
        let port = PortSpec {
            pvid: Vid::new(spec.pvid),
            vids: spec.vids.iter().filter_map(|number| Vid::new(*number)).collect::<Vids>(),
            standby: standby.iter().copied().collect::<Vids>(),
            takes: Takes { offloads, mtu: usize::from(spec.mtu) },
            may,
            trusted: true,
            // All the stations of the world outside.
            macs_max: usize::MAX,
            groups_max: usize::MAX,
            // Of clients' addresses there are as many again as have room.
            claims_max: 1024,
            storm: bounds.storm,
            tagging: config::tagging(spec.tagging),
            ..PortSpec::access(Vid::new(1).expect("a VLAN"))
        };
        self.port.pairs.iter().for_each(|pair| pair.open.store(true, Relaxed));
        self.count(|counts| counts != spec.accounting, spec.accounting);
        let version = self.network.set(&self.port, Some(port), spec.mirror.as_deref());
        self.port.pairs.iter().for_each(Pair::ring);
        version
    }

    /// It counts in new tables from now on, or no more, as far as what it does now is to be changed.
    fn count(&self, changes: impl Fn(bool) -> bool, counts: bool) {
        for pair in &self.port.pairs {
            let mut tallies = pair.tallies.lock().expect("a panic ends the process");
            if changes(tallies.is_some()) {
                *tallies = counts.then(|| Arc::new(Tallies::new()));
            }
        }
    }

    /// What has passed, by VLAN and station. With `clear` it begins anew with nothing after that.
    #[must_use]
    pub fn tallies(&self, clear: bool) -> TallyReport {
        let mut all = BTreeMap::new();
        for pair in &self.port.pairs {
            let tallies = pair.tallies.lock().expect("a panic ends the process").clone();
            tallies.inspect(|tallies| tallies.add_to(&mut all));
        }
        if clear {
            self.count(|counts| counts, true);
            self.network.touch();
            self.port.pairs.iter().for_each(Pair::ring);
        }
        TallyReport { tallies: all.into_values().collect() }
    }

    /// Of one whose tokens are leases: it may pass frames until then ([`memory::clock::boot_ns`]).
    pub fn pass_until(&self, ns: u64) {
        let before = self.port.until_ns.swap(ns, Release);
        // What came meanwhile may be waiting for it.
        if before <= memory::clock::boot_ns() {
            self.port.pairs.iter().for_each(Pair::ring);
        }
    }

    /// Whether all that passes since has been judged by what was shown with that number, or later.
    #[must_use]
    pub fn is_quiet(&self, since: u64) -> bool {
        self.port.pairs.iter().all(|pair| pair.settled.load(Acquire) >= since)
    }

    /// Tells the world outside which stations of these VLANs are here, and with which addresses.
    pub fn announce(&self, vids: impl IntoIterator<Item = Vid>) {
        let Some(first) = self.port.pairs.first() else { return };
        first.announce.lock().expect("a panic ends the process").extend(vids);
        first.ring();
    }

    /// Asks the world outside, or nobody from now on. How often it was [heard](UplinkPort::heard) tells the answer.
    pub fn ask(&self, question: Option<Question>) {
        self.port.asks.set(question);
        if let (Some(_), Some(first)) = (question, self.port.pairs.first()) {
            first.ask.store(true, Release);
            first.ring();
        }
    }

    /// Frames that said that the address that is asked for is there.
    #[must_use]
    pub fn heard(&self) -> u64 {
        self.port.asks.heard.load(Relaxed)
    }

    /// What is behind the queue of a descriptor.
    #[must_use]
    pub fn behind(&self, descriptor: Descriptor) -> Behind {
        let (network, port) = (Arc::clone(&self.network), Arc::clone(&self.port));
        Behind { network, port, features: 0, uplink: Some(descriptor) }
    }
}

impl Drop for UplinkPort {
    fn drop(&mut self) {
        self.network.reset(&self.port);
        self.network.leave(&self.port);
    }
}
