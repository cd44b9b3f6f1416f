//! A TX queue inside its channel: frames are judged, forwarded, and handed over.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use channel::{Io, NO_PART, Peers, RunningQueue};
use memory::IoBuf;
use protocol::stats::QueueCounter;
use switch::{Egress, HEAD_BYTES, NetHeader, Offload, Reason, View};
use vring::Head;

use crate::copy::Source;
use crate::counter_of;
use crate::handler::{NetHandler, Side};
use crate::network::Port;
use crate::receive::SEGMENTS;
use crate::replica::{Replica, Way};
use crate::talks::Teller;
use crate::trace::{Decision, Event, Watch, unless};
use crate::waiting::{Around, Frame, store};

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
    teller: Teller,
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
            teller: Teller::default(),
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
        let tracer = replica.tracer();
        let at = (&mut *replica, now_ns);
        unless!(tracer, watch => self.send_all(io, queue, peers, at, watch));
    }

    fn send_all<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        peers: &mut dyn Peers<NetHandler>,
        (replica, now_ns): (&mut Replica, u64),
        watch: W,
    ) {
        let mut taken = std::mem::take(&mut self.taken);
        for (head, readable) in taken.drain(..) {
            let judged = match readable {
                Some(readable) => {
                    let command = queue.command(head);
                    self.bufs.clear();
                    self.bufs.extend_from_slice(&command.all(&mut io.lists)[..readable]);
                    let (port, pair, header) = (&*self.port, self.pair, self.header);
                    let teller = &mut self.teller;
                    let sent = Sent { port, pair, bufs: &self.bufs, header, teller };
                    send(io, queue, peers, (&mut *replica, now_ns, watch), sent, &mut self.to)
                }
                None => {
                    queue.count(QueueCounter::BadChains, 1);
                    replica.switch.refused(self.port.id, Reason::GuestMemory);
                    watch.note(|| Event {
                        number: watch.number(),
                        from: self.port.id,
                        to: None,
                        vid: None,
                        head: &[],
                        len: 0,
                        decision: Decision::Lost(Reason::GuestMemory),
                    });
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
    pub(crate) port: &'a Port,
    /// The pair that it came by.
    pub(crate) pair: u16,
    /// Header and frame.
    pub(crate) bufs: &'a [IoBuf],
    /// Bytes of the header.
    pub(crate) header: usize,
    /// Who keeps the table of that pair.
    pub(crate) teller: &'a mut Teller,
}

/// Sends a frame to all that get it; how many bytes it has. An error is for all of them.
pub(crate) fn send<W: Watch>(
    io: &mut Io,
    queue: &RunningQueue,
    peers: &mut dyn Peers<NetHandler>,
    (replica, now_ns, watch): (&mut Replica, u64, W),
    Sent { port, pair, bufs, header, teller }: Sent<'_>,
    to: &mut Vec<Egress>,
) -> Result<usize, Reason> {
    let from = port.id;
    let talks = &port.pairs[usize::from(pair)].talks;
    let whole: usize = bufs.iter().map(|buf| buf.len()).sum();
    let source = Source { bufs, skip: header };
    let number = watch.number();
    let len = whole.saturating_sub(header);
    // The header and the frame's first bytes, at once.
    let mut start = [0; NetHeader::BYTES + HEAD_BYTES];
    let start = &mut start[..whole.min(header + HEAD_BYTES)];
    Source { skip: 0, ..source }.read(0, start);
    let (header_bytes, first) = start.split_at(header.min(whole));
    let judged = whole.checked_sub(header).ok_or(Reason::PktTooSmall).and_then(|len| {
        let mut its = [0; NetHeader::BYTES];
        its[..header].copy_from_slice(header_bytes);
        let view = View::new(first, len)?;
        let spec = replica.switch.spec(from).ok_or(Reason::PortDown)?;
        Ok((view, Offload::judge(&NetHeader::read(&its), &view, spec.may, spec.trusted)?))
    });
    let forwarded = match judged {
        Ok((view, offload)) => {
            let forwarded = replica.switch.forward(now_ns, from, &view, to);
            if let Some(news) = replica.switch.take_news() {
                replica.tell(news);
            }
            forwarded.map(|()| (view, offload))
        }
        Err(reason) => {
            replica.switch.refused(from, reason);
            Err(reason)
        }
    };
    watch.note(|| Event {
        number,
        from,
        to: None,
        vid: View::new(first, len).ok().and_then(|view| replica.switch.came_in(from, &view)),
        head: first,
        len,
        decision: match &forwarded {
            Ok(_) => Decision::Sent(to.len()),
            Err(reason) => Decision::Lost(*reason),
        },
    });
    let (view, offload) = forwarded?;
    for egress in &*to {
        let frame = Frame { from, view, source, offload, egress: *egress, number };
        let at = (&mut *replica, now_ns, watch);
        let told = |to| teller.note(talks, egress.port, to);
        if let Err(reason) = hand_over(io, (queue, peers), at, &frame, pair, told) {
            replica.switch.lost(egress.port, reason);
            // Who is watched has lost nothing.
            let reason = if egress.mirror { Reason::MirrorCopy } else { reason };
            queue.count(counter_of(reason), 1);
            let switch = &mut replica.switch;
            Around { switch, watch }.note(&frame, Decision::Lost(reason));
        }
    }
    Ok(view.len())
}

/// Hands a frame to a queue of its destination, which counts what becomes of it from then on. Who keeps the sender's table is told the number of its pair.
fn hand_over<W: Watch>(
    io: &mut Io,
    (sender, peers): (&RunningQueue, &mut dyn Peers<NetHandler>),
    (replica, now_ns, watch): (&mut Replica, u64, W),
    frame: &Frame<'_>,
    number: u16,
    told: impl FnOnce(u16),
) -> Result<(), Reason> {
    let way = replica.way_to(frame.egress.port, number).ok_or(Reason::PortDown)?;
    replica.switch.admits(now_ns, frame.egress, frame.view.len())?;
    let around = &mut Around { switch: &mut replica.switch, watch };
    match way {
        Way::Away(port, number) => {
            let pair = &port.pairs[usize::from(number)];
            told(number);
            store(pair, around, frame, 0)?;
            sender.count(QueueCounter::HandedOver, 1);
            pair.ring();
            Ok(())
        }
        Way::Here(id, number) => {
            told(number);
            let Some((handler, queue)) = peers.get(id) else {
                // It was asked back, to be moved as a rule: what comes meanwhile waits for who has it next.
                let port = replica.port(frame.egress.port).filter(|_| peers.is_leaving(id));
                let port = port.ok_or(Reason::PortDown)?;
                let around = &Around { switch: &mut replica.switch, watch };
                store(&port.pairs[usize::from(number)], around, frame, 0)?;
                sender.count(QueueCounter::HandedOver, 1);
                return Ok(());
            };
            match &mut handler.0 {
                Side::Rx(receiver) => {
                    if let Err(error) = receiver.take_in(io, queue, around, frame) {
                        peers.ring_broke(id, error);
                    }
                }
                Side::Uplink(uplink) => uplink.take_in(io, queue, around, frame),
                Side::Tx(_) => return Err(Reason::PortDown),
            }
            Ok(())
        }
    }
}
