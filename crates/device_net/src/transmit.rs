//! A TX queue inside its channel: frames are judged, forwarded, and handed over.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use channel::{Io, NO_PART, Peers, RunningQueue};
use memory::IoBuf;
use protocol::stats::QueueCounter;
use switch::{Egress, HEAD_BYTES, NetHeader, Offload, PortId, Reason, View};
use vring::Head;

use crate::copy::Source;
use crate::counter_of;
use crate::handler::{NetHandler, Side};
use crate::network::Port;
use crate::receive::SEGMENTS;
use crate::replica::{Replica, Way};
use crate::waiting::{Frame, store};

/// The TX queue of a pair.
pub(crate) struct Sender {
    replica: Rc<RefCell<Replica>>,
    port: Arc<Port>,
    pair: u16,
    header: usize,
    /// Heads that were taken in this turn, with their buffers; none: a chain that breaks the rules.
    taken: Vec<(Head, Option<usize>)>,
    bufs: Vec<IoBuf>,
    to: Vec<Egress>,
}

impl Sender {
    pub(crate) fn new(
        replica: Rc<RefCell<Replica>>,
        port: Arc<Port>,
        pair: u16,
        header: usize,
        size: u16,
    ) -> Sender {
        port.pairs[usize::from(pair)].sent.store(true, Relaxed);
        Sender {
            replica,
            port,
            pair,
            header,
            taken: Vec::with_capacity(usize::from(size)),
            bufs: Vec::with_capacity(SEGMENTS),
            to: Vec::new(),
        }
    }

    /// A head was taken; of a sound chain, that many buffers are the frame's.
    pub(crate) fn begin(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        readable: Option<usize>,
    ) {
        if self.taken.is_empty() {
            io.relay(queue);
        }
        self.taken.push((head, readable));
    }

    /// Sends what was taken.
    pub(crate) fn relay(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        peers: &mut dyn Peers<NetHandler>,
    ) {
        let replica = Rc::clone(&self.replica);
        let mut replica = replica.borrow_mut();
        let now_ns = replica.catch_up();
        let mut taken = std::mem::take(&mut self.taken);
        for (head, readable) in taken.drain(..) {
            let judged = match readable {
                Some(readable) => {
                    let command = queue.command(head);
                    self.bufs.clear();
                    self.bufs.extend_from_slice(&command.all(&mut io.lists)[..readable]);
                    let (from, pair, header) = (self.port.id, self.pair, self.header);
                    let sent = Sent { from, pair, bufs: &self.bufs, header };
                    send(io, queue, peers, (&mut replica, now_ns), sent, &mut self.to)
                }
                None => {
                    queue.count(QueueCounter::BadChains, 1);
                    replica.switch.refused(self.port.id, Reason::GuestMemory);
                    Err(Reason::GuestMemory)
                }
            };
            match judged {
                Ok(bytes) => {
                    queue.count(QueueCounter::TxFrames, 1);
                    queue.count(QueueCounter::TxBytes, bytes as u64);
                }
                Err(reason) => queue.count(counter_of(reason), 1),
            }
            io.settle(queue, head, NO_PART, 0);
        }
        self.taken = taken;
    }
}

/// A frame that somebody has sent, behind its header.
pub(crate) struct Sent<'a> {
    /// Its port.
    pub(crate) from: PortId,
    /// The pair that it came by.
    pub(crate) pair: u16,
    /// Header and frame.
    pub(crate) bufs: &'a [IoBuf],
    /// Bytes of the header.
    pub(crate) header: usize,
}

/// Sends a frame to all that get it; how many bytes it has. An error is for all of them.
pub(crate) fn send(
    io: &mut Io,
    queue: &RunningQueue,
    peers: &mut dyn Peers<NetHandler>,
    (replica, now_ns): (&mut Replica, u64),
    Sent { from, pair, bufs, header }: Sent<'_>,
    to: &mut Vec<Egress>,
) -> Result<usize, Reason> {
    let whole: usize = bufs.iter().map(|buf| buf.len()).sum();
    let source = Source { bufs, skip: header };
    let mut first = [0; HEAD_BYTES];
    let judged = whole.checked_sub(header).ok_or(Reason::PktTooSmall).and_then(|len| {
        let mut its = [0; NetHeader::BYTES];
        Source { skip: 0, ..source }.read(0, &mut its[..header]);
        let first = &mut first[..len.min(HEAD_BYTES)];
        source.read(0, first);
        let view = View::new(first, len)?;
        let spec = replica.switch.spec(from).ok_or(Reason::PortDown)?;
        Ok((view, Offload::judge(&NetHeader::read(&its), &view, spec.may, spec.trusted)?))
    });
    let (view, offload) = judged.inspect_err(|reason| replica.switch.refused(from, *reason))?;
    if let Some(news) = replica.switch.forward(now_ns, from, &view, to)? {
        replica.tell(news);
    }
    for egress in &*to {
        let frame = Frame { from, view, source, offload, egress: *egress };
        if let Err(reason) = hand_over(io, peers, replica, now_ns, &frame, pair) {
            replica.switch.lost(egress.port, reason);
            queue.count(counter_of(reason), 1);
        }
    }
    Ok(view.len())
}

/// Hands a frame to a queue of its destination, which counts what becomes of it from then on.
fn hand_over(
    io: &mut Io,
    peers: &mut dyn Peers<NetHandler>,
    replica: &mut Replica,
    now_ns: u64,
    frame: &Frame<'_>,
    number: u16,
) -> Result<(), Reason> {
    match replica.way_to(frame.egress.port, number).ok_or(Reason::PortDown)? {
        Way::Away(port, pair) => {
            let pair = &port.pairs[pair];
            store(pair, frame, 0)?;
            pair.ring();
            Ok(())
        }
        Way::Here(id) => {
            let (handler, queue) = peers.get(id).ok_or(Reason::PortDown)?;
            let switch = &mut replica.switch;
            let taken = match &mut handler.0 {
                Side::Rx(receiver) => receiver.take_in(io, queue, switch, now_ns, frame),
                Side::Uplink(uplink) => {
                    uplink.take_in(io, queue, switch, now_ns, frame);
                    Ok(())
                }
                Side::Tx(_) => return Err(Reason::PortDown),
            };
            taken.map_err(|error| {
                peers.ring_broke(id, error);
                Reason::GuestMemory
            })
        }
    }
}
