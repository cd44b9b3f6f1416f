//! A TX queue inside its channel: frames are judged, forwarded, and handed over. One that finds no room at its destination may wait for it ([`crate::held`]).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use channel::elements::Wake;
use channel::{Io, NO_PART, Peers, RunningQueue};
use memory::{IoBuf, clock};
use protocol::stats::QueueCounter;
use switch::{Egress, HEAD_BYTES, NetHeader, Offload, PortId, Reason, View};
use vring::Head;

use crate::copy::Source;
use crate::counter_of;
use crate::handler::{NetHandler, Side};
use crate::held::{Held, go_on};
use crate::network::Port;
use crate::receive::SEGMENTS;
use crate::replica::{Replica, Way};
use crate::talks::Teller;
use crate::trace::{Decision, Event, Watch, unless};
use crate::waiting::{Around, Frame, store};

/// So many lines of a frame are asked for when its head is taken: they come from its sender's CPU while the channel takes the other heads of the batch.
const EXPECTED_LINES: usize = 2;

/// The TX queue of a pair.
pub(crate) struct Sender {
    replica: Rc<RefCell<Replica>>,
    port: Arc<Port>,
    pair: u16,
    header: usize,
    /// Heads that were taken and not given back, with their buffers; none: a chain that breaks the rules.
    taken: Vec<(Head, Option<usize>)>,
    /// The turn's relay was asked for.
    asked: bool,
    held: Box<Held>,
    bufs: Vec<IoBuf>,
    room: Box<Room>,
    teller: Teller,
    /// What wakes the queue itself.
    wake: Wake,
    /// In how many pieces a frame of the last batches was cut: what a head is charged when it is taken, since nobody knows then what is behind it.
    cuts: usize,
}

impl Sender {
    pub(crate) fn new(
        replica: Rc<RefCell<Replica>>,
        port: Arc<Port>,
        pair: u16,
        header: usize,
        size: u16,
        io: &Io,
    ) -> Sender {
        port.pairs[usize::from(pair)].sent.store(true, Relaxed);
        let held = Box::new(Held::new(replica.borrow().network().bells.hang(io.wake())));
        Sender {
            replica,
            port,
            pair,
            header,
            taken: Vec::with_capacity(usize::from(size)),
            asked: false,
            held,
            bufs: Vec::with_capacity(SEGMENTS),
            room: Box::default(),
            teller: Teller::default(),
            wake: io.wake(),
            cuts: 0,
        }
    }

    /// The channel has the queue no more.
    pub(crate) fn close(&mut self) {
        self.replica.borrow().network().bells.take_down(self.held.bell);
    }

    /// Whether it waits for room, and takes no more heads meanwhile.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.held.until_ns.is_some()
    }

    /// A head was taken; of a sound chain, that many buffers are the frame's.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        readable: Option<usize>,
    ) {
        self.taken.push((head, readable));
        queue.charge(self.cuts);
        if readable.is_some() {
            queue.command(head).all(&mut io.lists)[0].expect_reads::<EXPECTED_LINES>();
        }
        // One that has waited for a list comes although the queue waits for room, and waits as well.
        if !self.waits() {
            self.ask_for_relay(io, queue);
        }
    }

    #[inline]
    fn ask_for_relay(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        if !self.asked {
            self.asked = true;
            io.relay(queue);
        }
    }

    /// There may be room.
    pub(crate) fn woken(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        if self.waits() && !self.asked {
            let (head, _) = self.taken[0];
            io.stop_waiting(queue, std::iter::once(head));
            self.ask_for_relay(io, queue);
        }
    }

    /// It has waited long enough.
    pub(crate) fn try_again(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        self.ask_for_relay(io, queue);
        // It takes heads again after that.
        (self.wake)();
    }

    /// Sends what was taken.
    pub(crate) fn relay(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        peers: &mut dyn Peers<NetHandler>,
    ) {
        self.asked = false;
        let replica = Rc::clone(&self.replica);
        let mut replica = replica.borrow_mut();
        let now_ns = replica.catch_up();
        let tracer = replica.tracer();
        let at = (&mut *replica, now_ns);
        unless!(tracer, watch => self.send_all(io, queue, peers, at, watch));
    }

    /// Sends all, or as far as there is room.
    fn send_all<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        peers: &mut dyn Peers<NetHandler>,
        (replica, now_ns): (&mut Replica, u64),
        watch: W,
    ) {
        let mut taken = std::mem::take(&mut self.taken);
        let (mut done, mut frames, mut bytes) = (0, 0, 0);
        self.room.cuts = 0;
        for (head, readable) in taken.iter().copied() {
            let judged = match readable {
                Some(readable) => {
                    let command = queue.command(head);
                    let one;
                    let bufs: &[IoBuf] = match &command.all(&mut io.lists)[..readable] {
                        // As most frames lie.
                        [first] => {
                            one = [*first];
                            &one
                        }
                        several => {
                            self.bufs.clear();
                            self.bufs.extend_from_slice(several);
                            &self.bufs
                        }
                    };
                    let (port, pair, header) = (&*self.port, self.pair, self.header);
                    let teller = &mut self.teller;
                    let sent = Sent { port, pair, bufs, header, teller };
                    let at = (&mut *replica, now_ns, watch);
                    match self.held.until_ns.take() {
                        None => {
                            send(io, queue, peers, at, sent, &mut self.room, Some(&mut self.held))
                        }
                        Some(_) => go_on(io, queue, peers, at, sent, &mut self.held),
                    }
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
            if let Some(until_ns) = self.held.until_ns {
                io.pause_until(queue, head, moment_of(until_ns, now_ns));
                break;
            }
            match judged {
                Ok(its) => {
                    frames += 1;
                    bytes += its as u64;
                }
                Err(reason) => queue.count(counter_of(reason), 1),
            }
            io.settle(queue, head, NO_PART, 0);
            done += 1;
        }
        if self.room.cuts > 0 || self.cuts > 0 {
            // One batch after which others had to wait is remembered for some.
            self.cuts = (self.room.cuts / done.max(1)).max(self.cuts - self.cuts.div_ceil(8));
        }
        queue.count(QueueCounter::TxFrames, frames);
        queue.count(QueueCounter::TxBytes, bytes);
        taken.drain(..done);
        self.taken = taken;
    }
}

/// The moment `at_ns` of a clock that shows `now_ns`.
#[cold]
fn moment_of(at_ns: u64, now_ns: u64) -> Instant {
    clock::instant() + Duration::from_nanos(at_ns.saturating_sub(now_ns))
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

/// What is needed of a frame while it is sent, and means nothing afterwards.
#[derive(Debug)]
pub(crate) struct Room {
    /// Its header and first bytes.
    first: [u8; NetHeader::BYTES + HEAD_BYTES],
    /// Who gets it.
    to: Vec<Egress>,
    /// Pieces that frames were cut into, since somebody looked.
    cuts: usize,
}

impl Room {
    /// The frame that was sent last, if it was of that length.
    pub(crate) fn view(&self, header: usize, len: usize) -> Result<View<'_>, Reason> {
        View::new(&self.first[header..][..len.min(HEAD_BYTES)], len)
    }
}

impl Default for Room {
    fn default() -> Room {
        Room { first: [0; NetHeader::BYTES + HEAD_BYTES], to: Vec::new(), cuts: 0 }
    }
}

/// Sends a frame to all that get it; how many bytes it has. An error is for all of them. Where its sender can wait it may wait for room, which `held` says then.
#[inline(always)] // At two places: what it is given is many words.
pub(crate) fn send<W: Watch>(
    io: &mut Io,
    queue: &RunningQueue,
    peers: &mut dyn Peers<NetHandler>,
    (replica, now_ns, watch): (&mut Replica, u64, W),
    Sent { port, pair, bufs, header, teller }: Sent<'_>,
    Room { first: start, to, cuts }: &mut Room,
    mut held: Option<&mut Held>,
) -> Result<usize, Reason> {
    let from = port.id;
    let talks = &port.pairs[usize::from(pair)].talks;
    let source = Source { bufs, skip: header };
    let whole = source.whole();
    let number = watch.number();
    let len = whole.saturating_sub(header);
    // The header and the frame's first bytes, at once.
    let start = &mut start[..whole.min(header + HEAD_BYTES)];
    Source { skip: 0, ..source }.read(0, start);
    let (header_bytes, first) = start.split_at(header.min(whole));
    let came = Came { from, number, first, len };
    if whole < header {
        return Err(came.refused(replica, watch, Reason::PktTooSmall));
    }
    let view = match View::new(first, len) {
        Ok(view) => view,
        Err(reason) => return Err(came.refused(replica, watch, reason)),
    };
    let Some(spec) = replica.switch.spec(from) else {
        return Err(came.refused(replica, watch, Reason::PortDown));
    };
    let its = match header_bytes.first_chunk() {
        Some(its) => NetHeader::read(its),
        None => {
            let mut its = [0; NetHeader::BYTES];
            its[..header].copy_from_slice(header_bytes);
            NetHeader::read(&its)
        }
    };
    let offload = match Offload::judge(&its, &view, spec.may, spec.trusted) {
        Ok(offload) => offload,
        Err(reason) => return Err(came.refused(replica, watch, reason)),
    };
    let forwarded = replica.switch.forward(now_ns, from, &view, to);
    if replica.switch.has_news() {
        replica.tell();
    }
    came.note(replica, watch, forwarded.map(|()| to.len()));
    forwarded?;
    if let Offload::Segment(_) = offload {
        let switch = &replica.switch;
        *cuts += to.iter().map(|egress| switch.cuts(*egress, &view, &offload)).sum::<usize>();
    }
    for (index, egress) in to.iter().enumerate() {
        let frame = Frame { from, view, source, offload, egress: *egress, number };
        let told = |to| teller.note(talks, egress.port, to);
        let mut handed =
            hand_over(io, (queue, peers), (&mut *replica, now_ns, watch), &frame, pair, Some(told));
        if handed == Err(Reason::FullRing)
            && let Some(held) = held.as_deref_mut()
        {
            let at = (&mut *replica, now_ns, watch);
            match held.wait(io, (queue, peers), at, &frame, pair, &to[index..]) {
                Some(result) => handed = result,
                None => break,
            }
        }
        if let Err(reason) = handed {
            lose(queue, Around { switch: &mut replica.switch, watch }, &frame, reason);
        }
    }
    Ok(view.len())
}

/// A frame that has come.
struct Came<'a> {
    from: PortId,
    number: u64,
    /// Its first bytes.
    first: &'a [u8],
    len: usize,
}

impl Came<'_> {
    /// It is refused before it could be forwarded.
    #[cold]
    fn refused<W: Watch>(&self, replica: &mut Replica, watch: W, reason: Reason) -> Reason {
        replica.switch.refused(self.from, reason);
        self.note(replica, watch, Err(reason));
        reason
    }

    /// Tells who watches to how many it goes.
    fn note<W: Watch>(&self, replica: &Replica, watch: W, sent: Result<usize, Reason>) {
        let Came { from, number, first, len } = *self;
        watch.note(|| Event {
            number,
            from,
            to: None,
            vid: View::new(first, len).ok().and_then(|view| replica.switch.came_in(from, &view)),
            head: first,
            len,
            decision: match sent {
                Ok(count) => Decision::Sent(count),
                Err(reason) => Decision::Lost(reason),
            },
        });
    }
}

/// Counts a frame that did not get into the hands of one of its destinations.
#[cold]
pub(crate) fn lose<W: Watch>(
    queue: &RunningQueue,
    around: Around<'_, W>,
    frame: &Frame<'_>,
    reason: Reason,
) {
    let Frame { egress, .. } = frame;
    around.switch.lost(egress.port, reason);
    // Who is watched has lost nothing.
    let reason = if egress.mirror { Reason::MirrorCopy } else { reason };
    queue.count(counter_of(reason), 1);
    around.note(frame, Decision::Lost(reason));
}

/// Hands a frame to a queue of its destination, which counts what becomes of it from then on. Who keeps the sender's table is told the number of its pair, and a limit admits it,
/// but not if it is handed over again.
#[inline(always)] // As `send`, in which it is; elsewhere frames have waited.
pub(crate) fn hand_over<W: Watch>(
    io: &mut Io,
    (sender, peers): (&RunningQueue, &mut dyn Peers<NetHandler>),
    (replica, now_ns, watch): (&mut Replica, u64, W),
    frame: &Frame<'_>,
    number: u16,
    first: Option<impl FnOnce(u16)>,
) -> Result<(), Reason> {
    let way = replica.way_to(frame.egress.port, number, &frame.view).ok_or(Reason::PortDown)?;
    if let Some(told) = first {
        replica.switch.admits(now_ns, frame.egress, frame.view.len())?;
        told(match way {
            Way::Away(_, number) | Way::Here(_, number) => number,
        });
    }
    let around = &mut Around { switch: &mut replica.switch, watch };
    match way {
        Way::Away(port, number) => {
            let pair = &port.pairs[usize::from(number)];
            store(pair, around, frame, 0)?;
            sender.count(QueueCounter::HandedOver, 1);
            pair.ring();
            Ok(())
        }
        Way::Here(id, number) => {
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
