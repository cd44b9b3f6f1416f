//! A queue of a network device inside its channel.

use std::sync::Arc;

use block::{Outcome, Tag};
use channel::{
    After, BATCH, BadChain, Handler, Io, Never, Opened, Peers, QueueResources, RunningQueue, Sweep,
    Walked,
};
use protocol::stats::QueueCounter;
use spec::UplinkKind;
use vring::{Head, QueueError};

use crate::config::{feature, header_bytes};
use crate::network::{Network, Port};
use crate::receive::Receiver;
use crate::replica::Shared;
use crate::transmit::Sender;
use crate::uplink::Uplink;
use crate::waiting::Waiting;
use crate::xdp::XdpSocket;

/// Segments of the lists that a TX queue has of its own: a frame in pages, as drivers send it, fits.
const LIST_SEGMENTS: usize = 24;

/// What is behind a queue of a network device.
#[derive(Clone)]
pub struct Behind {
    pub(crate) network: Arc<Network>,
    pub(crate) port: Arc<Port>,
    pub(crate) features: u64,
    /// It is a descriptor of an uplink and no virtqueue.
    pub(crate) uplink: Option<Descriptor>,
}

/// What a descriptor of an uplink is.
#[derive(Debug, Clone)]
pub enum Descriptor {
    /// One of a TAP, or a packet socket.
    File(UplinkKind),
    /// An AF_XDP socket, with what belongs to it.
    Xdp(Arc<XdpSocket>),
}

impl std::fmt::Debug for Behind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Behind").field("port", &self.port.id).finish_non_exhaustive()
    }
}

/// The handler of a network device's queues: even ones receive, odd ones send (clause 5.1.2).
pub struct NetHandler(pub(crate) Side);

pub(crate) enum Side {
    Rx(Box<Receiver>),
    Tx(Box<Sender>),
    Uplink(Box<Uplink>),
}

impl std::fmt::Debug for NetHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = match self.0 {
            Side::Rx(_) => "Rx",
            Side::Tx(_) => "Tx",
            Side::Uplink(_) => "Uplink",
        };
        f.debug_tuple("NetHandler").field(&side).finish()
    }
}

impl Handler for NetHandler {
    type Device = Behind;
    type Shared = Shared;
    type Message = Never;
    type Scope = Never;

    fn open(
        Behind { network, port, features, uplink }: Behind,
        shared: &mut Shared,
        io: &mut Io,
        queue: &QueueResources,
    ) -> Result<Opened<NetHandler>, String> {
        let replica = shared.of(&network, io.channel());
        if let Some(descriptor) = uplink {
            let slots = Uplink::slots()?;
            let (kind, xdp) = match descriptor {
                Descriptor::File(kind) => (kind, None),
                Descriptor::Xdp(socket) => {
                    let rings = socket.take(&queue.kick)?;
                    (UplinkKind::Xdp, Some((rings, socket)))
                }
            };
            let waiting = Waiting::open(replica, port, queue.number, io);
            let uplink = Uplink::new(kind, xdp, waiting, slots, io.wake());
            let handler = NetHandler(Side::Uplink(Box::new(uplink)));
            return Ok(Opened { pulls: true, is_asked: false, ..Opened::of(handler) });
        }
        let (number, size) = (queue.number / 2, queue.ring.size());
        let header = header_bytes(features);
        if queue.number % 2 == 1 {
            let sender = Sender::new(replica, port, number, header, size, io);
            let handler = NetHandler(Side::Tx(Box::new(sender)));
            let lists = (BATCH, LIST_SEGMENTS);
            return Ok(Opened { lists, ..Opened::of(handler) });
        }
        let how = (header, features & feature::MRG_RXBUF != 0);
        let waiting = Waiting::open(replica, port, number, io);
        let receiver = Receiver::new(waiting, how, size);
        let handler = NetHandler(Side::Rx(Box::new(receiver)));
        Ok(Opened { pulls: true, ..Opened::of(handler) })
    }

    fn close(&mut self, _: &mut Io) {
        match &mut self.0 {
            Side::Rx(receiver) => receiver.waiting.close(),
            Side::Uplink(uplink) => uplink.close(),
            Side::Tx(sender) => sender.close(),
        }
    }

    /// A sender takes nothing while a frame of its waits for room.
    #[inline]
    fn pauses(&mut self) -> bool {
        matches!(&self.0, Side::Tx(sender) if sender.waits())
    }

    fn woken(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        if let Side::Tx(sender) = &mut self.0 {
            sender.woken(io, queue);
        }
    }

    /// Frames leave in the order in which they came.
    #[inline]
    fn admit(&mut self, queue: &RunningQueue) -> Result<(), QueueCounter> {
        if queue.is_short_of_lists() { Err(QueueCounter::WaitNoDma) } else { Ok(()) }
    }

    #[inline]
    fn begin(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, walked: Walked) {
        self.sender().begin(io, queue, head, Some(walked.readable));
    }

    fn begin_bad(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, _: BadChain) {
        self.sender().begin(io, queue, head, None);
    }

    fn relay(&mut self, io: &mut Io, queue: &mut RunningQueue, peers: &mut dyn Peers<NetHandler>) {
        match &mut self.0 {
            Side::Uplink(uplink) => uplink.relay(io, queue, peers),
            _ => self.sender().relay(io, queue, peers),
        }
    }

    fn completed(&mut self, _: &mut Io, _: &mut RunningQueue, _: Head, _: Outcome) {
        unreachable!("a device without lanes")
    }

    fn try_again(&mut self, io: &mut Io, queue: &mut RunningQueue, _: Head) {
        self.sender().try_again(io, queue);
    }

    fn message(
        &mut self,
        _: &mut Io,
        _: &mut RunningQueue,
        message: Never,
    ) -> Result<Option<After<Never>>, QueueError> {
        match message {}
    }

    fn buffers_came(&mut self, io: &mut Io, queue: &mut RunningQueue) -> Result<(), QueueError> {
        match &mut self.0 {
            Side::Rx(receiver) => receiver.look(io, queue),
            Side::Uplink(uplink) => {
                uplink.look(io, queue);
                Ok(())
            }
            Side::Tx(_) => Ok(()),
        }
    }

    fn operated(&mut self, io: &mut Io, queue: &mut RunningQueue, mark: u16, result: i32) {
        let Side::Uplink(uplink) = &mut self.0 else {
            unreachable!("an operation that only an uplink begins");
        };
        uplink.operated(io, queue, mark, result);
    }

    fn concerns(&self, scope: &Never) -> bool {
        match *scope {}
    }

    fn abort(
        &mut self,
        _: &mut Io,
        _: &mut RunningQueue,
        scope: &Never,
        _: &mut Sweep,
        _: &mut Vec<Tag>,
    ) -> u32 {
        match *scope {}
    }
}

impl NetHandler {
    #[inline]
    fn sender(&mut self) -> &mut Sender {
        match &mut self.0 {
            Side::Tx(sender) => sender,
            _ => unreachable!("heads of a queue that pulls stay in the ring"),
        }
    }
}
