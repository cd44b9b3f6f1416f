//! The list of devices: the one place where they stand side by side.
//!
//! What a channel calls is chosen by a `match` here, so that nothing is called through a table on the path of an I/O; what a session calls,
//! likewise. A line names a device, its service and what it needs of `Storage`, its specification, and its room.

use std::sync::Arc;

use block::{LaneId, Outcome, Tag};
use channel::device::{self, Device, Making, Party, Presence, Resized, Tell, Written};
use channel::{
    After, BadChain, Drain, Handler, Io, Opened, Peers, QueueId, QueueResources, RunningQueue,
    Sweep, Walked,
};
use protocol::message::{AdapterSpec, DeviceSpec};
use protocol::stats::{Latency, QueueCounter, Span, StatsRegion, Timed};
use vring::{Head, InflightRegion, QueueError};

use crate::queues::Queues;
use crate::storage::Storage;

/// One enum of all devices for each type that a handler brings, and the handler of all of them.
macro_rules! devices {
    ($($(#[$about:meta])* $name:ident $kind:ident $spec:pat => $device:ty),+ $(,)?) => {
        /// The handler of a queue of any device.
        #[derive(Debug)]
        pub enum AnyHandler { $($(#[$about])* $name(HandlerOf<$device>)),+ }

        /// What is behind a queue of any device.
        #[derive(Debug)]
        pub enum Behind { $($(#[$about])* $name(<HandlerOf<$device> as Handler>::Device)),+ }

        /// What the queues of a channel share, by device.
        #[derive(Debug, Default)]
        pub struct Shared { $($kind: <HandlerOf<$device> as Handler>::Shared),+ }

        /// What a queue is told.
        #[derive(Debug)]
        pub enum Message { $($(#[$about])* $name(<HandlerOf<$device> as Handler>::Message)),+ }

        /// Commands that are to be aborted or counted.
        #[derive(Debug)]
        pub enum Scope { $($(#[$about])* $name(<HandlerOf<$device> as Handler>::Scope)),+ }

        impl Handler for AnyHandler {
            type Device = Behind;
            type Shared = Shared;
            type Message = Message;
            type Scope = Arc<Scope>;

            fn open(
                device: Behind,
                shared: &mut Shared,
                io: &mut Io,
                queue: &QueueResources,
            ) -> Result<Opened<AnyHandler>, String> {
                match device {
                    $(Behind::$name(device) => {
                        <HandlerOf<$device>>::open(device, &mut shared.$kind, io, queue)
                            .map(|opened| opened.map(AnyHandler::$name))
                    })+
                }
            }

            fn close(&mut self, io: &mut Io) {
                match self { $(AnyHandler::$name(handler) => handler.close(io)),+ }
            }

            #[inline]
            fn pauses(&mut self) -> bool {
                match self { $(AnyHandler::$name(handler) => handler.pauses()),+ }
            }

            fn cut(&mut self) {
                match self { $(AnyHandler::$name(handler) => handler.cut()),+ }
            }

            #[inline]
            fn admit(&mut self, queue: &RunningQueue) -> Result<(), QueueCounter> {
                match self { $(AnyHandler::$name(handler) => handler.admit(queue)),+ }
            }

            #[inline]
            fn rest(&mut self, queue: &RunningQueue, now: u64) {
                match self { $(AnyHandler::$name(handler) => handler.rest(queue, now)),+ }
            }

            fn woken(&mut self, io: &mut Io, queue: &mut RunningQueue) {
                match self { $(AnyHandler::$name(handler) => handler.woken(io, queue)),+ }
            }

            #[inline]
            fn begin(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, walked: Walked) {
                match self { $(AnyHandler::$name(handler) => handler.begin(io, queue, head, walked)),+ }
            }

            fn relay(&mut self, io: &mut Io, queue: &mut RunningQueue, peers: &mut dyn Peers<AnyHandler>) {
                match self {
                    $(AnyHandler::$name(handler) => {
                        handler.relay(io, queue, &mut Like::new(peers, |any| match any {
                            AnyHandler::$name(handler) => Some(handler),
                            _ => None,
                        }));
                    })+
                }
            }

            fn begin_again(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, walked: Walked) {
                match self { $(AnyHandler::$name(handler) => handler.begin_again(io, queue, head, walked)),+ }
            }

            fn begin_bad(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, bad: BadChain) {
                match self { $(AnyHandler::$name(handler) => handler.begin_bad(io, queue, head, bad)),+ }
            }

            fn operated(&mut self, io: &mut Io, queue: &mut RunningQueue, mark: u16, result: i32) {
                match self { $(AnyHandler::$name(handler) => handler.operated(io, queue, mark, result)),+ }
            }

            fn recover(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) -> bool {
                match self { $(AnyHandler::$name(handler) => handler.recover(io, queue, head)),+ }
            }

            fn ended_before(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) -> bool {
                match self { $(AnyHandler::$name(handler) => handler.ended_before(io, queue, head)),+ }
            }

            #[inline]
            fn completed(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, outcome: Outcome) {
                match self { $(AnyHandler::$name(handler) => handler.completed(io, queue, head, outcome)),+ }
            }

            fn try_again(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) {
                match self { $(AnyHandler::$name(handler) => handler.try_again(io, queue, head)),+ }
            }

            fn answered(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, answer: u32) {
                match self { $(AnyHandler::$name(handler) => handler.answered(io, queue, head, answer)),+ }
            }

            fn message(
                &mut self,
                io: &mut Io,
                queue: &mut RunningQueue,
                message: Message,
            ) -> Result<Option<After<Message>>, QueueError> {
                match (self, message) {
                    $((AnyHandler::$name(handler), Message::$name(message)) => {
                        let after = handler.message(io, queue, message)?;
                        Ok(after.map(|after| after.map(Message::$name)))
                    })+
                    (handler, message) => unreachable!("{message:?} is not for {handler:?}"),
                }
            }

            fn lane_of(&self, head: Head) -> Option<LaneId> {
                match self { $(AnyHandler::$name(handler) => handler.lane_of(head)),+ }
            }

            fn buffers_came(&mut self, io: &mut Io, queue: &mut RunningQueue) -> Result<(), QueueError> {
                match self { $(AnyHandler::$name(handler) => handler.buffers_came(io, queue)),+ }
            }

            fn concerns(&self, scope: &Arc<Scope>) -> bool {
                match (self, &**scope) {
                    $((AnyHandler::$name(handler), Scope::$name(scope)) => handler.concerns(scope),)+
                    _ => false,
                }
            }

            fn abort(
                &mut self,
                io: &mut Io,
                queue: &mut RunningQueue,
                scope: &Arc<Scope>,
                sweep: &mut Sweep,
                left: &mut Vec<Tag>,
            ) -> u32 {
                match (self, &**scope) {
                    $((AnyHandler::$name(handler), Scope::$name(scope)) => {
                        handler.abort(io, queue, scope, sweep, left)
                    })+
                    (handler, scope) => unreachable!("{scope:?} is not for {handler:?}"),
                }
            }

            #[inline]
            fn record(&self, part: u16, which: Latency, span: Span, count: u64) {
                match self { $(AnyHandler::$name(handler) => handler.record(part, which, span, count)),+ }
            }

            #[inline]
            fn record_timed(&self, part: u16, timed: &Timed) {
                match self { $(AnyHandler::$name(handler) => handler.record_timed(part, timed)),+ }
            }

            fn reset_marks(&self) {
                match self { $(AnyHandler::$name(handler) => handler.reset_marks()),+ }
            }
        }

        /// The device of an adapter.
        pub(crate) enum AnyDevice { $($(#[$about])* $name(Arc<$device>)),+ }

        /// What an adapter's specification leads to: everything behind its device.
        #[derive(Clone)]
        pub(crate) enum Backing { $($(#[$about])* $name(<$device as Device>::Backing)),+ }

        /// What a data plane has once for all devices of a kind.
        pub(crate) struct Services { $(pub(crate) $kind: <$device as Device>::Service),+ }

        impl Services {
            pub(crate) fn start(channels: &Arc<Vec<Channel>>) -> std::io::Result<Services> {
                Ok(Services { $($kind: {
                    let channels = Arc::clone(channels);
                    <$device>::service(Box::new(move |scope: <HandlerOf<$device> as Handler>::Scope| {
                        let scope = Arc::new(Scope::$name(scope));
                        channels.iter().map(|channel| channel.abort(Arc::clone(&scope))).collect()
                    }))?
                }),+ })
            }

            /// No queue runs.
            pub(crate) fn stop(&self) {
                $(<$device>::end_service(&self.$kind);)+
            }
        }

        impl Backing {
            /// What a specification leads to.
            pub(crate) fn of(spec: &AdapterSpec, storage: &Storage) -> Backing {
                match &spec.device { $($spec => Backing::$name(storage.$kind(spec))),+ }
            }

            /// Whether queues can run on it.
            pub(crate) fn is_whole(&self) -> bool {
                match self { $(Backing::$name(backing) => <$device>::is_whole(backing)),+ }
            }
        }

        /// Virtqueues of an adapter before those for I/O.
        pub(crate) fn fixed_queues(spec: &AdapterSpec) -> u16 {
            match &spec.device { $($spec => <$device>::FIXED_QUEUES),+ }
        }

        /// Takes over of `next` what can change while a client is there.
        pub(crate) fn take_live_part(live: &mut AdapterSpec, next: &AdapterSpec) {
            match &live.device { $($spec => <$device>::take_live_part(live, next)),+ }
        }

        impl AnyDevice {
            pub(crate) fn new(
                spec: &AdapterSpec,
                backing: &Backing,
                adapter: &Arc<channel::Adapter>,
                services: &Services,
                stats: &Arc<StatsRegion>,
            ) -> Result<AnyDevice, String> {
                match backing {
                    $(Backing::$name(backing) => {
                        let making = Making { adapter, service: &services.$kind, stats };
                        <$device>::new(spec, backing, &making).map(AnyDevice::$name)
                    })+
                }
            }

            pub(crate) fn fixed_queues(&self) -> u16 {
                match self { $(AnyDevice::$name(_) => <$device>::FIXED_QUEUES),+ }
            }

            pub(crate) fn together(&self) -> u16 {
                match self { $(AnyDevice::$name(_) => <$device>::TOGETHER),+ }
            }

            pub(crate) fn one_table(&self) -> bool {
                match self { $(AnyDevice::$name(_) => <$device>::ONE_TABLE),+ }
            }

            pub(crate) fn in_ring_order(&self) -> bool {
                match self { $(AnyDevice::$name(_) => <$device>::IN_RING_ORDER),+ }
            }

            pub(crate) fn features(&self, spec: &AdapterSpec) -> u64 {
                match self { $(AnyDevice::$name(device) => device.features(spec)),+ }
            }

            pub(crate) fn config_space(&self, spec: &AdapterSpec) -> Vec<u8> {
                match self { $(AnyDevice::$name(device) => device.config_space(spec)),+ }
            }

            pub(crate) fn set_config(&self, offset: usize, bytes: &[u8], features: u64) -> Written {
                match self { $(AnyDevice::$name(device) => device.set_config(offset, bytes, features)),+ }
            }

            pub(crate) fn set_mtu(&self, mtu: u64) -> Result<(), String> {
                match self { $(AnyDevice::$name(device) => device.set_mtu(mtu)),+ }
            }

            pub(crate) fn announce(&self, station: [u8; 6]) -> Result<(), String> {
                match self { $(AnyDevice::$name(device) => device.announce(station)),+ }
            }

            pub(crate) fn negotiated(&self, features: u64) {
                match self { $(AnyDevice::$name(device) => device.negotiated(features)),+ }
            }

            pub(crate) fn feature_names(&self) -> Vec<&'static str> {
                match self { $(AnyDevice::$name(device) => device.feature_names()),+ }
            }

            pub(crate) fn reset(&self) {
                match self { $(AnyDevice::$name(device) => device.reset()),+ }
            }

            pub(crate) fn client_lost(&self) {
                match self { $(AnyDevice::$name(device) => device.client_lost()),+ }
            }

            pub(crate) fn reset_marks(&self) {
                match self { $(AnyDevice::$name(device) => device.reset_marks()),+ }
            }

            pub(crate) fn removed(&self) {
                match self { $(AnyDevice::$name(device) => device.removed()),+ }
            }

            pub(crate) fn presence(&self, queue: u16, presence: Presence) {
                match self { $(AnyDevice::$name(device) => device.presence(queue, presence)),+ }
            }

            pub(crate) fn kept_memory(&self, region: &InflightRegion) {
                match self { $(AnyDevice::$name(device) => device.kept_memory(region)),+ }
            }

            pub(crate) fn behind(&self, index: u16, features: u64) -> Option<Behind> {
                match self { $(AnyDevice::$name(device) => device.behind(index, features).map(Behind::$name)),+ }
            }

            pub(crate) fn party(&self) -> Option<Party> {
                match self { $(AnyDevice::$name(device) => device.party()),+ }
            }

            pub(crate) fn talks(&self, each: &mut dyn FnMut(Party, Party, u64)) {
                match self { $(AnyDevice::$name(device) => device.talks(each)),+ }
            }

            pub(crate) fn is_ready(&self) -> bool {
                match self { $(AnyDevice::$name(device) => device.is_ready()),+ }
            }

            pub(crate) fn set_backing(
                &self,
                spec: &AdapterSpec,
                backing: &Backing,
                queues: &mut Queues,
            ) -> Result<(), String> {
                match (self, backing) {
                    $((AnyDevice::$name(device), Backing::$name(backing)) => {
                        device.set_backing(spec, backing, &mut Of(queues, Message::$name))
                    })+
                    _ => Err("it is another device".to_owned()),
                }
            }

            pub(crate) fn resized(&self, spec: &AdapterSpec, resized: &Resized<'_>) -> Tell<Message> {
                match self {
                    $(AnyDevice::$name(device) => match device.resized(spec, resized) {
                        Tell::Nothing => Tell::Nothing,
                        Tell::Config => Tell::Config,
                        Tell::Messages(messages) => {
                            let wrap = |(queue, message)| (queue, Message::$name(message));
                            Tell::Messages(messages.into_iter().map(wrap).collect())
                        }
                    }),+
                }
            }
        }
    };
}

devices! {
    /// The block device.
    Block block DeviceSpec::Block(_) => device_blk::BlkDevice,
    /// The SCSI host device.
    Scsi scsi DeviceSpec::Scsi(_) => device_scsi::ScsiDevice,
    /// The network device.
    Ethernet ethernet DeviceSpec::Ethernet(_) => device_net::NetDevice,
}

/// Channels of this data plane.
pub(crate) type Channel = channel::Channel<AnyHandler>;

type HandlerOf<D> = <D as Device>::Handler;

/// The queues of a channel whose handlers are of one device, for those.
struct Like<'a, F>(&'a mut dyn Peers<AnyHandler>, F);

impl<'a, F> Like<'a, F> {
    fn new<H>(peers: &'a mut dyn Peers<AnyHandler>, like: F) -> Like<'a, F>
    where
        F: Fn(&mut AnyHandler) -> Option<&mut H>,
    {
        Like(peers, like)
    }
}

impl<H, F: Fn(&mut AnyHandler) -> Option<&mut H>> Peers<H> for Like<'_, F> {
    fn get(&mut self, id: QueueId) -> Option<(&mut H, &mut RunningQueue)> {
        let (handler, queue) = self.0.get(id)?;
        Some(((self.1)(handler)?, queue))
    }

    fn is_leaving(&self, id: QueueId) -> bool {
        self.0.is_leaving(id)
    }

    fn ring_broke(&mut self, id: QueueId, error: QueueError) {
        self.0.ring_broke(id, error);
    }
}

/// The queues of an adapter, for its device: each of its messages becomes one of any device's.
struct Of<'a, F>(&'a mut Queues, F);

impl<M, F: Fn(M) -> Message> device::Queues<M> for Of<'_, F> {
    fn with_all_stopped(&mut self, change: &mut dyn FnMut()) {
        self.0.change_device(change);
    }

    fn tell(&mut self, message: &mut dyn FnMut(u16) -> Option<M>) {
        self.0.end_all_draining(Drain::SkipWaits);
        self.0.tell(&mut |number| message(number).map(&self.1));
    }
}
