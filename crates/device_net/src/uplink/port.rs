//! An uplink as who changes it has it: its port in its network.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard};

use protocol::message::TallyReport;
use spec::{AggregateMode, RateSpec, UplinkKind, UplinkSpec};
use switch::{Aggregation, Links, Offloads, PortSpec, Question, Takes, Vid, Vids};

use crate::bounds::Bounds;
use crate::config;
use crate::handler::{Behind, Descriptor};
use crate::network::{Bundle, Network, Networks, Pair, Port};
use crate::uplink::Tallies;

/// How often a member that has taken over says so again.
const AGAIN: u64 = 5;

/// An uplink in its network.
#[derive(Debug)]
pub struct UplinkPort {
    network: Arc<Network>,
    port: Arc<Port>,
    bounds: Mutex<Bounds>,
    /// What it does not leave to a partner.
    bridged: Mutex<BTreeSet<Vid>>,
}

impl UplinkPort {
    /// Enters the network that the specification names, with room for so many descriptors of each member. Nothing comes by it before [`UplinkPort::show`].
    #[must_use]
    pub fn join(networks: &Networks, spec: &UplinkSpec, members: &[u16]) -> UplinkPort {
        let network = networks.named(&spec.network);
        let mut all = 0;
        let pairs = |count: &u16| {
            let first = all;
            all += count;
            first..all
        };
        let members: Box<[Range<u16>]> = members.iter().map(pairs).collect();
        let bundle = spec.aggregate.as_ref().map(|aggregate| Bundle {
            how: match aggregate.mode {
                AggregateMode::ActiveBackup => Aggregation::ActiveBackup,
                AggregateMode::Hash => Aggregation::Hash,
            },
            members,
            up: AtomicU64::new(0),
            gone: AtomicU64::new(0),
            again: AtomicU64::new(0),
        });
        let port = network.join_by(&spec.name, all, bundle);
        if spec.failover.as_ref().is_some_and(|failover| failover.lease().is_some()) {
            port.until_ns.store(0, Release);
        }
        UplinkPort { network, port, bounds: Mutex::default(), bridged: Mutex::default() }
    }

    /// It takes part as the specification says, and passes nothing of the VLANs in standby. What is on its way may still pass until it
    /// [is quiet](UplinkPort::is_quiet) since the number that is returned.
    pub fn show(&self, spec: &UplinkSpec, standby: &BTreeSet<Vid>) -> u64 {
        // The kernel does what an interface cannot, and what comes is as others have made it; but for AF_XDP, where frames are what is on the wire.
        let may = Offloads::ALL;
        let by_rings = |member: &UplinkSpec| member.kind == UplinkKind::Xdp;
        let offloads = if spec.members().iter().any(by_rings) { Offloads::NONE } else { may };
        let asked = (RateSpec::default(), RateSpec::default(), spec.storm);
        let bounds = locked(&self.bounds).kept(asked);
        let port = PortSpec {
            pvid: Vid::new(spec.pvid),
            vids: vids(spec).collect::<Vids>(),
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
        let vlans = vids(spec).chain(Vid::new(spec.pvid));
        *locked(&self.bridged) = vlans.filter(|vid| !standby.contains(vid)).collect();
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
        let mut open = self.port.pairs.iter().filter(|pair| pair.open.load(Acquire));
        open.all(|pair| pair.settled.load(Acquire) >= since)
    }

    /// Tells the world outside which stations of these VLANs are here, and with which addresses.
    pub fn announce(&self, vids: impl IntoIterator<Item = Vid>) {
        let Some(pair) = self.port.speaks_by() else { return };
        locked(&pair.announce).extend(vids);
        pair.ring();
    }

    /// Asks the world outside, or nobody from now on. How often it was [heard](UplinkPort::heard) tells the answer.
    pub fn ask(&self, question: Option<Question>) {
        self.port.asks.set(question);
        if let (Some(_), Some(pair)) = (question, self.port.speaks_by()) {
            pair.ask.store(true, Release);
            pair.ring();
        }
    }

    /// Frames that said that the address that is asked for is there.
    #[must_use]
    pub fn heard(&self) -> u64 {
        self.port.asks.heard.load(Relaxed)
    }

    /// The number of the first descriptor of a member, and for how many there is room.
    #[must_use]
    pub fn descriptors_of(&self, member: u16) -> Range<u16> {
        match &self.port.bundle {
            None => 0..self.port.pairs.len() as u16,
            Some(bundle) => bundle.members[usize::from(member)].clone(),
        }
    }

    /// Of an aggregated uplink: which of its members are up. Who becomes the active one tells the world outside who is behind it.
    pub fn set_up(&self, member: u16, up: bool) {
        let Some(bundle) = &self.port.bundle else { return };
        let own = 1 << member;
        let (before, after) = match up {
            true => {
                let before = bundle.up.fetch_or(own, AcqRel);
                (before, before | own)
            }
            false => {
                let before = bundle.up.fetch_and(!own, AcqRel);
                (before, before & !own)
            }
        };
        if bundle.how == Aggregation::ActiveBackup && Links(before).first() != Links(after).first()
        {
            bundle.again.store(AGAIN, Release);
            let bridged = locked(&self.bridged).clone();
            self.announce(bridged);
        }
    }

    /// The carrier of a member was looked at and is there: what was said when it took over is said again, since a port of a switch that has just come up may have passed nothing.
    pub fn say_again(&self, member: u16) {
        let Some(bundle) = &self.port.bundle else { return };
        let left = |left: u64| left.checked_sub(1).filter(|_| bundle.up().first() == Some(member));
        if bundle.again.fetch_update(AcqRel, Acquire, left).is_ok() {
            let bridged = locked(&self.bridged).clone();
            self.announce(bridged);
        }
    }

    /// Whether frames pass by a member now; none: it is down.
    #[must_use]
    pub fn passes_by(&self, member: u16) -> Option<bool> {
        match &self.port.bundle {
            None => Some(true),
            Some(bundle) => {
                let up = bundle.up();
                up.has(member).then(|| up.takes(bundle.how, member))
            }
        }
    }

    /// Whether any member is up.
    #[must_use]
    pub fn has_link(&self) -> bool {
        self.port.bundle.as_ref().is_none_or(|bundle| bundle.up() != Links::default())
    }

    /// Whether it was seen, since somebody asked, that the interface of a member is not there any more.
    #[must_use]
    pub fn lost(&self, member: u16) -> bool {
        let gone = |bundle: &Bundle| bundle.gone.fetch_and(!(1 << member), AcqRel);
        self.port.bundle.as_ref().is_some_and(|bundle| gone(bundle) >> member & 1 != 0)
    }

    /// A descriptor comes: there is room for frames that wait for it.
    ///
    /// # Errors
    ///
    /// When there is no memory for that.
    pub fn open(&self, number: u16) -> Result<(), String> {
        let pair = &self.port.pairs[usize::from(number)];
        pair.make_inbox()?;
        // Who saw late that the one before had gone may have left something.
        self.network.lose(pair);
        // All of them can be used.
        pair.sent.store(true, Relaxed);
        pair.open.store(true, Release);
        Ok(())
    }

    /// It has gone. What waits for it is lost.
    pub fn close(&self, number: u16) {
        let pair = &self.port.pairs[usize::from(number)];
        pair.open.store(false, Release);
        self.network.lose(pair);
    }

    /// What is behind the queue of a descriptor.
    #[must_use]
    pub fn behind(&self, descriptor: Descriptor) -> Behind {
        let (network, port) = (Arc::clone(&self.network), Arc::clone(&self.port));
        Behind { network, port, features: 0, uplink: Some(descriptor) }
    }
}

fn vids(spec: &UplinkSpec) -> impl Iterator<Item = Vid> {
    spec.vids.iter().filter_map(|number| Vid::new(*number))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a panic ends the process")
}

impl Drop for UplinkPort {
    fn drop(&mut self) {
        self.network.reset(&self.port);
        self.network.leave(&self.port);
    }
}
