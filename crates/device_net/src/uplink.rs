//! An uplink: a port of a network behind which is an interface of the host, by descriptors of it. One descriptor is a queue of its channel; what kinds there are only
//! [`crate::line`] knows.
//!
//! ```text
//!   senders' queues ─► take_in ─┬─► a slot ─► write ─┐
//!   inbox (other channels) ─────┘                    interface
//!   receivers' queues ◄─ relay ◄─ a slot ◄─ reads ◄──┘
//! ```
//!
//! No operation waits (`RWF_NOWAIT`, `MSG_DONTWAIT`), so each is over when the kernel has taken it: no slot is ever out at
//! somebody who may keep it. When the descriptor can be read, a batch of reads is begun; a read that finds nothing ends it, and the channel's poll tells when there is more. The
//! batch grows while all of it brings frames, so that a lone frame costs a few empty reads and a stream one system call for many.
//!
//! # Standby
//!
//! A VLAN that another server bridges is in standby ([`switch::PortSpec::standby`]): the switch passes nothing of it, in either direction. Everything that passes an
//! uplink is judged on the channels of its descriptors: what comes with each batch, what goes when it is made into what the kernel takes, also if it waited in an
//! inbox. So a VLAN is [quiet](UplinkPort::is_quiet) when each of these channels has taken the change over and what it had written before is with the kernel.
//!
//! Where the right to bridge is a lease, all VLANs are in standby from a [deadline](UplinkPort::pass_until) on, which channels look at with each batch of frames:
//! nobody has to say so, and a process that was stopped finds it passed.
//!
//! # Several interfaces
//!
//! The descriptors of an [aggregated](switch::Aggregation) uplink are those of its members, all of one port: what the switch has learned says nothing of members, and none gets what came
//! by another. What leaves takes a queue of the member that the switch names, and what comes by one that is not in use is counted and goes no further.
//!
//! # An address that is asked for
//!
//! A [question](UplinkPort::ask) goes out and its answer is heard past the network, so also while all VLANs are in standby. The answer to it is nobody else's, and goes no further.

mod port;
mod tallies;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use channel::elements::Wake;
use channel::{Io, Peers, RunningQueue};
use memory::{IoBuf, Lasting};
use protocol::stats::QueueCounter;
use spec::UplinkKind;
use switch::{
    ANNOUNCEMENT_BYTES, Announcement, ETHERNET_BYTES, HEAD_BYTES, Offload, Question, Reason, Said,
    Scratch, Switch, Vid, View,
};
use uring::{Op, WriteFlags};

use crate::copy::{Source, write_piece};
use crate::counter_of;
use crate::handler::NetHandler;
use crate::line::{self, HEADER_BYTES, Without};
use crate::network::PARCEL_BYTES;
use crate::replica::Replica;
use crate::talks::Teller;
use crate::trace::{Decision, Event, Watch, unless};
use crate::transmit::{Room, Sent, send};
use crate::waiting::{Around, Frame, Waiting, store};
use crate::xdp::{Ended, Xdp, XdpSocket};

pub use port::UplinkPort;
pub(crate) use tallies::Tallies;

/// Room for the longest frame with what a descriptor gives with it.
const SLOT_BYTES: usize = PARCEL_BYTES + 4096;
/// Most frames that are read in one turn.
const READS: u16 = 32;
/// A batch that brought more bytes than these is followed by a smaller one: others have their turn.
const READ_BYTES: usize = 256 << 10;
/// Room for an announcement.
const ANNOUNCING_BYTES: usize = 4096;
/// How many reads a lone frame begins.
const READS_FIRST: u16 = 2;
/// The type of ARP frames.
const ARP: [u8; 2] = [8, 6];
/// Frames that are on their way to the kernel.
const WRITES: u16 = 32;

/// A descriptor of an uplink inside its channel.
pub(crate) struct Uplink {
    pub(crate) waiting: Waiting,
    kind: UplinkKind,
    /// In place of slots, but for one.
    xdp: Option<Box<Xdp>>,
    /// Who has that while no channel does.
    socket: Option<Arc<XdpSocket>>,
    /// For reading, then for writing.
    slots: Lasting,
    scratch: Box<Scratch>,
    room: Box<Room>,
    teller: Teller,
    wake: Wake,
    /// Slots that nothing is read into.
    idle: Vec<u16>,
    /// Frames that came, in their order: slot and bytes with the header.
    came: Vec<(u16, usize)>,
    /// Reads of this batch that are under way, and how many it was begun with.
    under_way: u16,
    batch: u16,
    /// A read of this batch found nothing.
    found_end: bool,
    /// More came since the batch was begun.
    more: bool,
    /// The turn's relay was asked for.
    asked: bool,
    /// Slots with nothing to be written.
    free: Vec<u16>,
    /// What is to be said of stations, the last one first.
    announcing: Vec<Announcement>,
    /// What is to be asked.
    asking: Option<Question>,
    /// Version of the network that was taken over last.
    saw: u64,
    /// Where it counts, if it does.
    tallies: Option<Arc<Tallies>>,
    /// Of each slot for writing: bytes of the frame whose last part it has, or 0.
    ends: [usize; WRITES as usize],
}

impl Uplink {
    /// Memory for [`Uplink::new`].
    pub(crate) fn slots() -> Result<Lasting, String> {
        Lasting::new(usize::from(READS + WRITES) * SLOT_BYTES + ANNOUNCING_BYTES)
            .map_err(|error| error.to_string())
    }

    pub(crate) fn new(
        kind: UplinkKind,
        xdp: Option<(Box<Xdp>, Arc<XdpSocket>)>,
        waiting: Waiting,
        slots: Lasting,
        wake: Wake,
    ) -> Uplink {
        let (xdp, socket) = xdp.unzip();
        Uplink {
            waiting,
            kind,
            xdp,
            socket,
            slots,
            scratch: Box::default(),
            room: Box::default(),
            teller: Teller::default(),
            wake,
            idle: (0..READS).collect(),
            came: Vec::with_capacity(usize::from(READS)),
            under_way: 0,
            batch: READS_FIRST,
            found_end: false,
            more: false,
            asked: false,
            free: (READS..READS + WRITES).collect(),
            announcing: Vec::new(),
            asking: None,
            saw: 0,
            tallies: None,
            ends: [0; WRITES as usize],
        }
    }

    /// The channel has it no more. What was asked of it and not done is left for the next one, as what waits is.
    pub(crate) fn close(&mut self) {
        debug_assert!(self.came.is_empty(), "what came is sent on in its turn");
        let pair = self.waiting.pair();
        let left = self.announcing.drain(..).map(|announcement| announcement.vid);
        pair.announce.lock().expect("a panic ends the process").extend(left);
        if self.asking.take().is_some() {
            pair.ask.store(true, Release);
        }
        if let (Some(xdp), Some(socket)) = (self.xdp.take(), &self.socket) {
            socket.put_back(xdp);
        }
        self.waiting.close();
    }

    /// There may be something to be read, or in the inbox.
    pub(crate) fn look(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        if self.under_way > 0 || !self.came.is_empty() {
            self.more = true;
        } else {
            self.read(io, queue);
        }
        if self.xdp.as_ref().is_some_and(|xdp| xdp.is_owed()) && queue.takes_heads() {
            self.tell(io, queue);
        }
        let replica = Rc::clone(&self.waiting.replica);
        let mut replica = replica.borrow_mut();
        let now_ns = replica.catch_up();
        let tracer = replica.tracer();
        self.follow(&replica);
        let opened = std::mem::take(
            &mut *self.waiting.pair().announce.lock().expect("a panic ends the process"),
        );
        if !opened.is_empty() {
            let of = |vid: Vid| opened.contains(&vid);
            let all = replica.switch.announcements(now_ns, self.waiting.port.id, of);
            self.announcing.extend(all.into_iter().rev());
        }
        if self.waiting.pair().ask.swap(false, Acquire) {
            self.asking = self.waiting.port.asks.question();
        }
        let switch = &mut replica.switch;
        unless!(tracer, watch => self.drain(io, queue, &mut Around { switch, watch }));
        self.settle();
    }

    /// Takes over what has changed.
    fn follow(&mut self, replica: &Replica) {
        if self.saw != replica.version() {
            self.saw = replica.version();
            let tallies = self.waiting.pair().tallies.lock();
            self.tallies = tallies.expect("a panic ends the process").clone();
        }
    }

    /// What was written before the last change is with the kernel.
    fn settle(&self) {
        let through = self.xdp.as_ref().is_none_or(|xdp| xdp.is_through());
        if through && self.free.len() == usize::from(WRITES) {
            self.waiting.pair().settled.store(self.saw, Release);
        }
    }

    /// Begins a batch of reads.
    fn read(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        (self.found_end, self.more) = (false, false);
        if !queue.takes_heads() {
            return;
        }
        if let Some(xdp) = &mut self.xdp {
            self.found_end = xdp.receive(self.batch, queue);
            let frames = (0..xdp.received.len()).filter_map(|number| {
                let (_, bytes) = xdp.received.frame(number)?;
                Some((number as u16, bytes))
            });
            self.came.extend(frames);
            if !self.came.is_empty() {
                self.ask_for_relay(io, queue);
            }
            return;
        }
        for _ in 0..self.batch {
            let Some(slot) = self.idle.pop() else { break };
            let mut pieces = [IoBuf::EMPTY; 2];
            let room = slot_of(&self.slots, slot);
            let read = line::read(self.kind, queue.file(), room, &mut pieces);
            if !io.operate(queue, read, slot) {
                self.idle.push(slot);
                break;
            }
            self.under_way += 1;
        }
        if self.under_way == 0 {
            (self.wake)();
        }
    }

    /// A read or a write is over.
    pub(crate) fn operated(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        slot: u16,
        result: i32,
    ) {
        match self.xdp.as_mut().map(|xdp| xdp.operated(io, queue, slot, result)) {
            Some(Ended::GoOn) => return self.look(io, queue),
            Some(Ended::Told) => return self.told(io, queue),
            None | Some(Ended::Other) => {}
        }
        if slot >= READS {
            match std::mem::take(&mut self.ends[usize::from(slot - READS)]) {
                0 => {}
                bytes if result < 0 => {
                    self.note_gone(result);
                    let reason = line::refused(result);
                    queue.count(counter_of(reason), 1);
                    self.note_refused(slot, bytes, reason);
                }
                bytes => {
                    queue.count(QueueCounter::TxFrames, 1);
                    queue.count(QueueCounter::TxBytes, bytes as u64);
                }
            }
            self.free.push(slot);
            return self.told(io, queue);
        }
        self.under_way -= 1;
        match usize::try_from(result) {
            Ok(bytes) => self.came.push((slot, bytes)),
            Err(_) => {
                self.note_gone(result);
                let without = line::without(self.kind, result);
                if without != Without::Nothing {
                    // The interface is gone, as a rule.
                    queue.count(counter_of(Reason::Failure), 1);
                }
                self.found_end |= without != Without::Lost;
                self.idle.push(slot);
            }
        }
        if self.under_way == 0 {
            self.ask_for_relay(io, queue);
        }
    }

    /// An interface of several that is gone is opened anew by others when there is one again.
    fn note_gone(&self, error: i32) {
        if line::is_gone(error)
            && let Some(bundle) = &self.waiting.port.bundle
        {
            bundle.lose(self.waiting.number());
        }
    }

    /// The kernel has taken something: there may be room for what waits.
    fn told(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        self.settle();
        if !self.waiting.is_empty() || !self.announcing.is_empty() || self.asking.is_some() {
            self.ask_for_relay(io, queue);
        }
    }

    /// Tells who watches that the kernel did not take what is in a slot.
    #[cold]
    fn note_refused(&self, slot: u16, bytes: usize, reason: Reason) {
        let replica = self.waiting.replica.borrow();
        let Some(tracer) = replica.tracer() else { return };
        let mut head = [0; HEAD_BYTES];
        let len = bytes.min(HEAD_BYTES);
        slot_of(&self.slots, slot).slice(HEADER_BYTES, len).read(0, &mut head[..len]);
        let id = self.waiting.port.id;
        let view = View::new(&head[..len], bytes).ok();
        (&*tracer).note(|| Event {
            number: 0,
            from: id,
            to: Some(id),
            vid: view.and_then(|view| replica.switch.came_in(id, &view)),
            head: &head[..len],
            len: bytes,
            decision: Decision::Lost(reason),
        });
    }

    /// Once for all that ends in one turn.
    fn ask_for_relay(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        if !self.asked {
            self.asked = true;
            io.relay(queue);
        }
    }

    /// Sends on what came, and goes on reading if there may be more.
    pub(crate) fn relay(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        peers: &mut dyn Peers<NetHandler>,
    ) {
        self.asked = false;
        let replica = Rc::clone(&self.waiting.replica);
        let mut replica = replica.borrow_mut();
        let now_ns = replica.catch_up();
        let tracer = replica.tracer();
        let at = (&mut *replica, now_ns);
        unless!(tracer, watch => self.pass(io, queue, peers, at, watch));
        self.settle();
    }

    fn pass<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        peers: &mut dyn Peers<NetHandler>,
        (replica, now_ns): (&mut Replica, u64),
        watch: W,
    ) {
        self.follow(replica);
        if self.under_way == 0 {
            let mut all = 0;
            let question = self.waiting.port.asks.question();
            let takes = self.waiting.port.takes(self.waiting.number());
            for at in 0..self.came.len() {
                let (slot, bytes) = self.came[at];
                all += bytes;
                let came = match &self.xdp {
                    Some(_) => Ok(None),
                    None => line::came(self.kind, slot_of(&self.slots, slot), bytes).map(Some),
                };
                let (port, pair) = (Arc::clone(&self.waiting.port), self.waiting.number());
                let from = port.id;
                let came = came.as_ref().map(|came| match (came, &self.xdp) {
                    (Some(came), _) => came.bufs(),
                    (None, Some(xdp)) => xdp.received.frame(slot.into()).map_or(&[][..], |it| it.0),
                    (None, None) => &[],
                });
                let sent = match came {
                    Ok(_) if !takes => {
                        replica.switch.refused(from, Reason::Inactive);
                        Err(Reason::Inactive)
                    }
                    Ok(bufs) if question.is_some_and(|asks| self.is_answer(&asks, bufs)) => {
                        Ok(bytes.saturating_sub(HEADER_BYTES))
                    }
                    Ok(bufs) => {
                        let (port, teller) = (&*port, &mut self.teller);
                        let sent = Sent { port, pair, bufs, header: HEADER_BYTES, teller };
                        let at = (&mut *replica, now_ns, watch);
                        // What comes is not asked for: the kernel would throw it away instead.
                        let sent = send(io, queue, peers, at, sent, &mut self.room, None);
                        if let (Some(tallies), Ok(bytes)) = (&self.tallies, &sent)
                            && let Ok(view) = self.room.view(HEADER_BYTES, *bytes)
                            && let Some(vid) = replica.switch.came_in(from, &view)
                        {
                            tallies.received(&replica.switch, vid, &view);
                        }
                        sent
                    }
                    Err(reason) => {
                        replica.switch.refused(from, *reason);
                        Err(*reason)
                    }
                };
                match sent {
                    Ok(bytes) => {
                        queue.count(QueueCounter::RxFrames, 1);
                        queue.count(QueueCounter::RxBytes, bytes as u64);
                    }
                    Err(reason) => queue.count(counter_of(reason), 1),
                }
                if self.xdp.is_none() {
                    self.idle.push(slot);
                }
            }
            self.came.clear();
            if let Some(xdp) = &mut self.xdp {
                xdp.give_back();
            }
            self.batch = match (self.found_end, all > READ_BYTES) {
                (true, _) => READS_FIRST,
                (false, true) => (self.batch / 2).max(READS_FIRST),
                (false, false) => (self.batch * 2).min(READS),
            };
            if !self.found_end || self.more {
                match &mut self.xdp {
                    None => self.read(io, queue),
                    Some(xdp) => {
                        if queue.takes_heads() && !xdp.go_on(io, queue) {
                            (self.wake)();
                        }
                    }
                }
            }
        }
        self.drain(io, queue, &mut Around { switch: &mut replica.switch, watch });
    }

    /// Takes in a frame from a queue of the same channel.
    pub(crate) fn take_in<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        around: &mut Around<'_, W>,
        frame: &Frame<'_>,
    ) {
        if !self.waiting.is_empty() {
            self.drain(io, queue, around);
        }
        let mut arrived = 0;
        if self.waiting.is_empty() {
            match self.deliver(io, queue, around, frame, 0) {
                Ok(()) => return,
                Err(parts) => arrived = parts,
            }
        }
        if let Err(reason) = store(self.waiting.pair(), around, frame, arrived) {
            around.switch.lost(frame.egress.port, reason);
            queue.count(counter_of(reason), 1);
            around.note(frame, Decision::Lost(reason));
        }
    }

    /// Delivers what waits in the inbox; whether there were slots for all of it.
    fn deliver_all<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        around: &mut Around<'_, W>,
    ) -> bool {
        loop {
            while let Some(parcel) = self.waiting.next() {
                let frame = parcel.frame();
                let delivered = self.deliver(io, queue, around, &frame, parcel.arrived);
                if let Err(arrived) = delivered {
                    self.waiting.put_back(parcel, arrived);
                    // Who adds a frame need not ring: slots come back by themselves.
                    self.waiting.pair().rung.store(true, SeqCst);
                    return false;
                }
                self.waiting.free(parcel);
            }
            self.waiting.pair().rung.store(false, SeqCst);
            if self.waiting.is_empty() {
                return true;
            }
        }
    }

    /// Delivers what waits, as far as there are slots. Those that come back ask for this again.
    fn drain<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        around: &mut Around<'_, W>,
    ) {
        self.waiting.count_left(queue);
        // What waits stays for whoever has the descriptor next.
        if !queue.takes_heads() {
            return;
        }
        let all = self.deliver_all(io, queue, around);
        self.waiting.looked();
        if !all {
            return;
        }
        self.ask(io, queue);
        while let Some(next) = self.announcing.pop() {
            if !self.announce(io, queue, around, &next) {
                self.announcing.push(next);
                return;
            }
        }
    }

    /// Whether a frame is the answer to a question of this uplink's, and so for nobody else.
    fn is_answer(&self, question: &Question, bufs: &[IoBuf]) -> bool {
        let frame = Source { bufs, skip: HEADER_BYTES };
        let bytes: usize = bufs.iter().map(|piece| piece.len()).sum();
        let mut room = [0; ANNOUNCEMENT_BYTES];
        let head = &mut room[..ANNOUNCEMENT_BYTES.min(bytes.saturating_sub(HEADER_BYTES))];
        let mut kind = [0; 2];
        if head.len() < ETHERNET_BYTES {
            return false;
        }
        frame.read(ETHERNET_BYTES - kind.len(), &mut kind);
        if kind != ARP {
            return false;
        }
        frame.read(0, head);
        let said = View::new(head, head.len()).ok().and_then(|frame| question.hear(&frame));
        if said.is_some() {
            self.waiting.port.asks.heard.fetch_add(1, Relaxed);
        }
        said == Some(Said::Answer)
    }

    /// Asks, if there is a slot: past the switch, by which nothing may go while the uplink is in standby.
    fn ask(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        let Some(question) = self.asking else { return };
        if let Some(xdp) = &mut self.xdp {
            self.asking = None;
            // One that has no room is asked again.
            let _ = xdp.put_bytes(question.frame(&mut [0; ANNOUNCEMENT_BYTES]));
            return self.tell(io, queue);
        }
        let Some(slot) = self.free.pop() else { return };
        self.asking = None;
        let mut room = [0; ANNOUNCEMENT_BYTES];
        let frame = question.frame(&mut room);
        let memory = slot_of(&self.slots, slot);
        memory.write(0, &[0; HEADER_BYTES]);
        memory.write(HEADER_BYTES, frame);
        let bufs = &[memory.slice(0, HEADER_BYTES + frame.len())];
        let flags = WriteFlags { nowait: true, ..WriteFlags::NONE };
        if !io.operate(queue, Op::Write { file: queue.file(), bufs, offset: 0, flags }, slot) {
            self.free.push(slot);
        }
    }

    /// Tells the kernel of an uplink by rings that there is something to send.
    fn tell(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        if self.xdp.as_mut().is_some_and(|xdp| !xdp.tell(io, queue)) {
            (self.wake)();
        }
    }

    /// Says one thing of a station; false: there is no slot now.
    fn announce<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        around: &mut Around<'_, W>,
        next: &Announcement,
    ) -> bool {
        let from = self.waiting.port.id;
        let Some(egress) = around.switch.towards(from, next.vid) else { return true };
        let mut room = [0; ANNOUNCEMENT_BYTES];
        let bytes = next.frame(&mut room);
        let at = usize::from(READS + WRITES) * SLOT_BYTES;
        let memory = self.slots.buf(at, bytes.len()).expect("it has room for one");
        memory.write(0, bytes);
        let view = View::new(bytes, bytes.len()).expect("it is a frame");
        let source = Source { bufs: &[memory], skip: 0 };
        let (offload, number) = (Offload::None { valid: false }, around.watch.number());
        let frame = Frame { from, view, source, offload, egress, number };
        self.deliver(io, queue, around, &frame, 0).is_ok()
    }

    /// Makes a frame into what the kernel takes, and hands it over. An error says how many parts of it went before there were no slots.
    fn deliver<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        around: &mut Around<'_, W>,
        frame: &Frame<'_>,
        arrived: usize,
    ) -> Result<(), usize> {
        let Uplink { scratch, slots, free, ends, xdp, tallies, .. } = self;
        let Frame { view, source, offload, egress, from, .. } = *frame;
        // What is said in the name of stations they have not sent.
        let tallies = tallies.as_ref().filter(|_| from != egress.port);
        let tell = |switch: &Switch| {
            if let Some(tallies) = tallies
                && let Some(vid) = switch.leaves_in(egress, &view)
            {
                tallies.sent(switch, vid, &view);
            }
        };
        let mut pieces = match around.switch.adapt(egress, view, offload, scratch) {
            Ok(pieces) => pieces,
            Err(reason) => {
                queue.count(counter_of(reason), 1);
                around.note(frame, Decision::Lost(reason));
                return Ok(());
            }
        };
        if let Some(xdp) = xdp {
            let mut put = Ok(());
            while put.is_ok()
                && let Some(mut piece) = pieces.next()
            {
                put = xdp.put(source, &mut piece);
            }
            match put {
                Ok(()) => {
                    xdp.count(view.len());
                    tell(around.switch);
                    around.switch.delivered(egress.port, view.len());
                    around.note(frame, Decision::Delivered);
                }
                Err(reason) => {
                    around.switch.lost(egress.port, reason);
                    queue.count(counter_of(reason), 1);
                    around.note(frame, Decision::Lost(reason));
                }
            }
            // Also where nothing has room: what the kernel took is seen then.
            self.tell(io, queue);
            return Ok(());
        }
        let (mut number, mut last) = (0, None);
        while let Some(mut piece) = pieces.next() {
            if number >= arrived {
                let Some(slot) = free.pop() else { return Err(number) };
                let memory = [slot_of(slots, slot)];
                write_piece(source, &mut piece, &memory, HEADER_BYTES);
                let bufs = &[memory[0].slice(0, HEADER_BYTES + piece.len())];
                let flags = WriteFlags { nowait: true, ..WriteFlags::NONE };
                let write = Op::Write { file: queue.file(), bufs, offset: 0, flags };
                if !io.operate(queue, write, slot) {
                    free.push(slot);
                    last = None;
                    break;
                }
                last = Some(slot);
            }
            number += 1;
        }
        let Some(slot) = last else {
            around.switch.lost(egress.port, Reason::NoMem);
            queue.count(counter_of(Reason::NoMem), 1);
            around.note(frame, Decision::Lost(Reason::NoMem));
            return Ok(());
        };
        ends[usize::from(slot - READS)] = view.len();
        tell(around.switch);
        around.switch.delivered(egress.port, view.len());
        around.note(frame, Decision::Delivered);
        Ok(())
    }
}

fn slot_of(slots: &Lasting, slot: u16) -> IoBuf {
    slots.buf(usize::from(slot) * SLOT_BYTES, SLOT_BYTES).expect("slots are within their memory")
}
