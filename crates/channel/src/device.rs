//! [`Device`]: what a device is for the session of its client, beside [`Handler`], which it is for channels.
//!
//! A session speaks vhost-user, keeps the queues and moves them; what is in the configuration space, what features mean, what stands
//! behind a queue and what a change of that does to a running client is the device's. Nothing here is on the path of an I/O. Locks that a
//! device takes are held for moments, and never while somebody waits for a channel.

use std::sync::Arc;

use block::Geometry;
use protocol::message::AdapterSpec;
use protocol::stats::StatsRegion;
use vring::InflightRegion;

use crate::Adapter;
use crate::handler::Handler;
use crate::mailbox::Pending;

/// Asks every channel about the commands of a scope, as [`crate::Channel::abort`]: one answer for each.
pub type AskChannels<S> = Box<dyn Fn(S) -> Vec<Pending<u32>> + Send>;

/// How a write to the configuration space takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// At once.
    Now,
    /// When the queues start again.
    WithNewQueues,
    /// It is refused.
    No,
}

/// Where a virtqueue of a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// About to be moved into a channel.
    Starts,
    /// In a channel.
    Runs,
    /// It will run: it is stopped for a change, its client has yet to enable it, or an earlier process has left commands of it in flight.
    Awaited,
    /// The client does not use it.
    Absent,
}

/// A volume that has another size now.
#[derive(Debug, Clone, Copy)]
pub struct Resized<'a> {
    /// Its name.
    pub volume: &'a str,
    /// What it is like now.
    pub geometry: &'a Geometry,
    /// Names of the logical units on it.
    pub units: &'a [String],
}

/// What a client is to be told.
#[derive(Debug)]
pub enum Tell<M> {
    /// Nothing.
    Nothing,
    /// The configuration space has changed.
    Config,
    /// Its queues tell it: the number of each, and the message.
    Messages(Vec<(u16, M)>),
}

/// A unit of a device ([`Device::TOGETHER`]) that talks with others: in what, as what, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Party {
    /// What tells the network from others that there are.
    pub network: usize,
    /// The port of its adapter.
    pub port: u16,
    /// Its number in the adapter.
    pub unit: u16,
}

/// The queues of a device, as far as it may touch them.
pub trait Queues<M> {
    /// Calls `change` with no queue running. What is ready to run afterwards runs.
    fn with_all_stopped(&mut self, change: &mut dyn FnMut());

    /// Sends each queue that runs the message that `message` makes for its number. Of the others nothing is under way then.
    fn tell(&mut self, message: &mut dyn FnMut(u16) -> Option<M>);
}

/// What a device is made with.
#[derive(Debug)]
pub struct Making<'a, S> {
    /// How the channels know its adapter.
    pub adapter: &'a Arc<Adapter>,
    /// What the data plane has for devices of its kind.
    pub service: &'a S,
    /// Where is counted.
    pub stats: &'a Arc<StatsRegion>,
}

/// The device of an adapter.
pub trait Device: Sized + Send + Sync + 'static {
    /// What a channel has for one of its queues.
    type Handler: Handler;
    /// What its specification leads to: everything that stands behind it.
    type Backing: Clone + Send;
    /// What a data plane has once for all devices of the kind.
    type Service: Send + Sync;

    /// Virtqueues before those for I/O.
    const FIXED_QUEUES: u16 = 0;

    /// So many queues for I/O in a row work with each other, and are always on one channel.
    const TOGETHER: u16 = 1;

    /// Whether its client is to tell its memory as one table (VHOST_USER_SET_MEM_TABLE) and never region by region.
    const ONE_TABLE: bool = false;

    /// Whether it gives buffers back in the order in which it took them, so that where a queue stands is what its used ring says.
    const IN_RING_ORDER: bool = false;

    /// Starts what a data plane has once.
    ///
    /// # Errors
    ///
    /// When the system gives no thread.
    fn service(
        ask: AskChannels<<Self::Handler as Handler>::Scope>,
    ) -> std::io::Result<Self::Service>;

    /// Ends it. No queue of such a device runs.
    fn end_service(_service: &Self::Service) {}

    /// The device of a specification.
    ///
    /// # Errors
    ///
    /// When specification and backing do not fit, or something behind it is being replaced.
    fn new(
        spec: &AdapterSpec,
        backing: &Self::Backing,
        making: &Making<'_, Self::Service>,
    ) -> Result<Arc<Self>, String>;

    /// Whether queues can run on a backing: nothing of it is being replaced.
    fn is_whole(backing: &Self::Backing) -> bool;

    /// Takes over of `next` what can change while a client is there.
    fn take_live_part(_live: &mut AdapterSpec, _next: &AdapterSpec) {}

    /// Features of the device itself.
    fn features(&self, spec: &AdapterSpec) -> u64;

    /// The configuration space now.
    fn config_space(&self, spec: &AdapterSpec) -> Vec<u8>;

    /// The client writes to the configuration space.
    fn set_config(&self, offset: usize, bytes: &[u8], features: u64) -> Written;

    /// The client has negotiated these.
    fn negotiated(&self, features: u64);

    /// The front end has told its guest the longest packet (VHOST_USER_NET_SET_MTU).
    ///
    /// # Errors
    ///
    /// It is no network device, or that is too long for its network.
    fn set_mtu(&self, _: u64) -> Result<(), String> {
        Err("the adapter is no network card".to_owned())
    }

    /// The guest has come here and does not say so itself: others are to hear where the station is (VHOST_USER_SEND_RARP).
    ///
    /// # Errors
    ///
    /// It is no network device.
    fn announce(&self, _: [u8; 6]) -> Result<(), String> {
        Err("the adapter is no network card".to_owned())
    }

    /// Names of negotiated features that matter to an administrator.
    fn feature_names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The driver has reset the device, and nothing of it is in flight. What was negotiated stays until it negotiates again.
    fn reset(&self) {}

    /// The client is gone, and nothing of it is in flight.
    fn client_lost(&self) {
        self.reset();
    }

    /// High-water marks that are one for all queues begin again.
    fn reset_marks(&self) {}

    /// The adapter goes.
    fn removed(&self) {}

    /// A virtqueue comes or goes. Told before it is stopped, before and after it is started; queues for I/O stop after the others.
    fn presence(&self, _queue: u16, _presence: Presence) {}

    /// The client has handed over, or been given, memory that it keeps when this process dies, as long as its driver lives.
    fn kept_memory(&self, _region: &InflightRegion) {}

    /// What virtqueue `index` gets; none while something behind the device is being replaced.
    fn behind(&self, index: u16, features: u64) -> Option<<Self::Handler as Handler>::Device>;

    /// Its first unit, if they talk with others.
    fn party(&self) -> Option<Party> {
        None
    }

    /// To whom its units have sent most, and how many frames: a number that grows, until one that has got few gives its place to another.
    fn talks(&self, _each: &mut dyn FnMut(Party, Party, u64)) {}

    /// Whether queues have something to run on.
    fn is_ready(&self) -> bool;

    /// Takes over what can be taken over of a specification while a client is there, with what is behind it now; or lets go of what is
    /// to be replaced. Queues are disturbed as little as can be.
    ///
    /// # Errors
    ///
    /// When channels cannot serve it; then nothing has changed.
    fn set_backing(
        &self,
        spec: &AdapterSpec,
        backing: &Self::Backing,
        queues: &mut dyn Queues<<Self::Handler as Handler>::Message>,
    ) -> Result<(), String>;

    /// A volume has another size.
    fn resized(
        &self,
        spec: &AdapterSpec,
        resized: &Resized<'_>,
    ) -> Tell<<Self::Handler as Handler>::Message>;
}
