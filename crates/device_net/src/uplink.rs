//! An uplink: a port of a network behind which is the host, by descriptors of a TAP. One descriptor is a queue of its channel.
//!
//! ```text
//!   senders' queues ─► take_in ─┬─► a slot ─► write ─┐
//!   inbox (other channels) ─────┘                    TAP
//!   receivers' queues ◄─ relay ◄─ a slot ◄─ reads ◄──┘
//! ```
//!
//! No operation waits (`RWF_NOWAIT`, which a TAP knows since Linux 6.4), so each is over when the kernel has taken it: no slot is ever out at
//! somebody who may keep it. When the descriptor can be read, a batch of reads is begun; a read that finds nothing ends it, and the channel's poll tells when there is more. The
//! batch grows while all of it brings frames, so that a lone frame costs a few empty reads and a stream one system call for many.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use channel::elements::Wake;
use channel::{Io, Peers, RunningQueue};
use memory::{IoBuf, Lasting, clock};
use protocol::stats::QueueCounter;
use spec::UplinkSpec;
use switch::{Egress, NetHeader, Offloads, PortSpec, Reason, Scratch, Switch, Takes, Vid, Vids};
use uring::{Op, WriteFlags};

use crate::copy::{Place, Source};
use crate::counter_of;
use crate::handler::{Behind, NetHandler};
use crate::network::{Network, Networks, PARCEL_BYTES, Pair, Parcel, Port};
use crate::receive::{Frame, store};
use crate::replica::Replica;
use crate::transmit::{Sent, send};

/// Bytes of the header before each frame, as the descriptor was set up.
const HEADER_BYTES: usize = NetHeader::BYTES;
/// Room for a header and the longest frame.
const SLOT_BYTES: usize = PARCEL_BYTES + 4096;
/// Most frames that are read in one turn.
const READS: u16 = 32;
/// A batch that brought more bytes than these is followed by a smaller one: others have their turn.
const READ_BYTES: usize = 256 << 10;
/// How many reads a lone frame begins.
const READS_FIRST: u16 = 2;
/// What a read of a descriptor without frames says (EAGAIN).
const NOTHING_THERE: i32 = -11;
/// Frames that are on their way to the kernel.
const WRITES: u16 = 32;

/// An uplink in its network.
#[derive(Debug)]
pub struct UplinkPort {
    network: Arc<Network>,
    port: Arc<Port>,
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
        let port = network.join(descriptors);
        let uplink = UplinkPort { network, port };
        uplink.port.pairs.iter().try_for_each(Pair::make_inbox)?;
        Ok(uplink)
    }

    /// It takes part as the specification says.
    pub fn show(&self, spec: &UplinkSpec) {
        let all = [Offloads::CSUM, Offloads::TSO4, Offloads::TSO6, Offloads::ECN];
        let offloads = all.into_iter().fold(Offloads::NONE, Offloads::with);
        let port = PortSpec {
            pvid: Vid::new(spec.pvid),
            vids: spec.vids.iter().filter_map(|number| Vid::new(*number)).collect::<Vids>(),
            takes: Takes { offloads, mtu: usize::from(spec.mtu) },
            may: offloads,
            trusted: true,
            // All the stations of the world outside.
            macs_max: usize::MAX,
            groups_max: usize::MAX,
            ..PortSpec::access(Vid::new(1).expect("a VLAN"))
        };
        self.port.pairs.iter().for_each(|pair| pair.open.store(true, Relaxed));
        self.network.set(&self.port, Some(port));
    }

    /// What is behind the queue of a descriptor.
    #[must_use]
    pub fn behind(&self) -> Behind {
        let (network, port) = (Arc::clone(&self.network), Arc::clone(&self.port));
        Behind { network, port, features: 0, uplink: true }
    }
}

impl Drop for UplinkPort {
    fn drop(&mut self) {
        self.network.leave(&self.port);
    }
}

/// A descriptor of an uplink inside its channel.
pub(crate) struct Uplink {
    replica: Rc<RefCell<Replica>>,
    port: Arc<Port>,
    pair: u16,
    /// For reading, then for writing.
    slots: Lasting,
    scratch: Box<Scratch>,
    to: Vec<Egress>,
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
    /// Of each slot for writing: bytes of the frame whose last part it has, or 0.
    ends: [usize; WRITES as usize],
    /// The frame that waits for slots, before those in the inbox.
    waiting: Option<Box<Parcel>>,
}

impl Uplink {
    pub(crate) fn new(
        replica: Rc<RefCell<Replica>>,
        port: Arc<Port>,
        pair: u16,
        io: &Io,
    ) -> Result<Uplink, String> {
        let slots = Lasting::new(usize::from(READS + WRITES) * SLOT_BYTES)
            .map_err(|error| error.to_string())?;
        let waiting = port.pairs[usize::from(pair)].kept().take();
        port.pairs[usize::from(pair)].opened(io.wake());
        replica.borrow_mut().enter(port.id, pair, io.opening());
        Ok(Uplink {
            replica,
            port,
            pair,
            slots,
            scratch: Box::default(),
            to: Vec::new(),
            wake: io.wake(),
            idle: (0..READS).collect(),
            came: Vec::with_capacity(usize::from(READS)),
            under_way: 0,
            batch: READS_FIRST,
            found_end: false,
            more: false,
            asked: false,
            free: (READS..READS + WRITES).collect(),
            ends: [0; WRITES as usize],
            waiting,
        })
    }

    pub(crate) fn close(&mut self) {
        let waiting = self.waiting.take();
        *self.pair().kept() = waiting;
        self.pair().set_bell(None);
        self.replica.borrow_mut().leave(self.port.id, self.pair);
    }

    fn pair(&self) -> &Pair {
        &self.port.pairs[usize::from(self.pair)]
    }

    fn slot(&self, slot: u16) -> IoBuf {
        let at = usize::from(slot) * SLOT_BYTES;
        self.slots.buf(at, SLOT_BYTES).expect("slots are within their memory")
    }

    /// There may be something to be read, or in the inbox.
    pub(crate) fn look(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        if self.under_way > 0 || !self.came.is_empty() {
            self.more = true;
        } else {
            self.read(io, queue);
        }
        let replica = Rc::clone(&self.replica);
        let mut replica = replica.borrow_mut();
        let now_ns = clock::to_ns(clock::ticks());
        replica.catch_up(now_ns);
        self.drain(io, queue, &mut replica.switch, now_ns);
    }

    /// Begins a batch of reads.
    fn read(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        (self.found_end, self.more) = (false, false);
        if !queue.takes_heads() {
            return;
        }
        for _ in 0..self.batch {
            let Some(slot) = self.idle.pop() else { break };
            let read =
                Op::Read { file: queue.file(), bufs: &[self.slot(slot)], offset: 0, nowait: true };
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
        if slot >= READS {
            match std::mem::take(&mut self.ends[usize::from(slot - READS)]) {
                0 => {}
                _ if result < 0 => queue.count(counter_of(Reason::Failure), 1),
                bytes => {
                    queue.count(QueueCounter::TxFrames, 1);
                    queue.count(QueueCounter::TxBytes, bytes as u64);
                }
            }
            self.free.push(slot);
            if self.has_waiting() {
                self.ask_for_relay(io, queue);
            }
            return;
        }
        self.under_way -= 1;
        match usize::try_from(result) {
            Ok(bytes) => self.came.push((slot, bytes)),
            Err(_) => {
                if result != NOTHING_THERE {
                    // The interface is gone, as a rule.
                    queue.count(counter_of(Reason::Failure), 1);
                }
                self.found_end = true;
                self.idle.push(slot);
            }
        }
        if self.under_way == 0 {
            self.ask_for_relay(io, queue);
        }
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
        let replica = Rc::clone(&self.replica);
        let mut replica = replica.borrow_mut();
        let now_ns = clock::to_ns(clock::ticks());
        replica.catch_up(now_ns);
        if self.under_way == 0 {
            let mut all = 0;
            for at in 0..self.came.len() {
                let (slot, bytes) = self.came[at];
                all += bytes;
                let bufs = [self.slot(slot).slice(0, bytes)];
                let (from, pair) = (self.port.id, self.pair);
                let sent = Sent { from, pair, bufs: &bufs, header: HEADER_BYTES };
                match send(io, queue, peers, (&mut replica, now_ns), sent, &mut self.to) {
                    Ok(bytes) => {
                        queue.count(QueueCounter::RxFrames, 1);
                        queue.count(QueueCounter::RxBytes, bytes as u64);
                    }
                    Err(reason) => queue.count(counter_of(reason), 1),
                }
                self.idle.push(slot);
            }
            self.came.clear();
            self.batch = match (self.found_end, all > READ_BYTES) {
                (true, _) => READS_FIRST,
                (false, true) => (self.batch / 2).max(READS_FIRST),
                (false, false) => (self.batch * 2).min(READS),
            };
            if !self.found_end || self.more {
                self.read(io, queue);
            }
        }
        self.drain(io, queue, &mut replica.switch, now_ns);
    }

    /// Takes in a frame from a queue of the same channel.
    pub(crate) fn take_in(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        switch: &mut Switch,
        now_ns: u64,
        frame: &Frame<'_>,
    ) {
        if self.has_waiting() {
            self.drain(io, queue, switch, now_ns);
        }
        let mut arrived = 0;
        if !self.has_waiting() {
            match self.deliver(io, queue, switch, now_ns, frame, 0) {
                Ok(()) => return,
                Err(parts) => arrived = parts,
            }
        }
        if let Err(reason) = store(self.pair(), frame, arrived) {
            switch.lost(frame.egress.port, reason);
            queue.count(counter_of(reason), 1);
        }
    }

    fn has_waiting(&self) -> bool {
        self.waiting.is_some() || self.pair().inbox().is_some_and(|inbox| !inbox.full.is_empty())
    }

    /// Delivers what waits, as far as there are slots. Those that come back ask for this again.
    fn drain(&mut self, io: &mut Io, queue: &mut RunningQueue, switch: &mut Switch, now_ns: u64) {
        let port = Arc::clone(&self.port);
        let pair = &port.pairs[usize::from(self.pair)];
        // What waits stays for whoever has the descriptor next.
        let Some(inbox) = pair.inbox().filter(|_| queue.takes_heads()) else { return };
        loop {
            while let Some(mut parcel) = self.waiting.take().or_else(|| inbox.full.pop()) {
                let (view, bufs) = (parcel.view(), [parcel.memory]);
                let source = Source { bufs: &bufs, skip: 0 };
                let frame = Frame { view, source, offload: parcel.offload, egress: parcel.egress };
                let arrived = parcel.arrived;
                if let Err(arrived) = self.deliver(io, queue, switch, now_ns, &frame, arrived) {
                    parcel.arrived = arrived;
                    self.waiting = Some(parcel);
                    // Who adds a frame need not ring: slots come back by themselves.
                    pair.rung.store(true, SeqCst);
                    return;
                }
                assert!(inbox.free.push(parcel).is_ok(), "it has room for all");
            }
            pair.rung.store(false, SeqCst);
            if inbox.full.is_empty() {
                return;
            }
        }
    }

    /// Makes a frame into what the kernel takes, and hands it over. An error says how many parts of it went before there were no slots.
    fn deliver(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        switch: &mut Switch,
        now_ns: u64,
        frame: &Frame<'_>,
        arrived: usize,
    ) -> Result<(), usize> {
        let Frame { view, source, offload, egress } = *frame;
        let mut scratch = std::mem::take(&mut self.scratch);
        let pieces = switch.adapt(now_ns, egress, view, offload, &mut scratch);
        let fate = match pieces {
            Ok(mut pieces) => {
                let (mut number, mut last) = (0, None);
                loop {
                    let Some(mut piece) = pieces.next() else { break Ok(last) };
                    if number >= arrived {
                        let Some(slot) = self.free.pop() else { break Err(number) };
                        let memory = [self.slot(slot)];
                        let range = piece.rest.clone();
                        let mut rest = Place::new(&memory, HEADER_BYTES + piece.head().len());
                        if piece.wants_sum() {
                            piece.fill(|sum| source.copy(range, &mut rest, Some(sum)));
                        } else {
                            source.copy(range, &mut rest, None);
                        }
                        memory[0].write(0, &piece.header.write());
                        memory[0].write(HEADER_BYTES, piece.head());
                        let whole = memory[0].slice(0, HEADER_BYTES + piece.len());
                        let flags = WriteFlags { nowait: true, ..WriteFlags::NONE };
                        let write =
                            Op::Write { file: queue.file(), bufs: &[whole], offset: 0, flags };
                        if !io.operate(queue, write, slot) {
                            self.free.push(slot);
                            break Ok(None);
                        }
                        last = Some(slot);
                    }
                    number += 1;
                }
            }
            Err(reason) => {
                queue.count(counter_of(reason), 1);
                self.scratch = scratch;
                return Ok(());
            }
        };
        self.scratch = scratch;
        match fate? {
            Some(slot) => {
                self.ends[usize::from(slot - READS)] = view.len();
                switch.delivered(egress.port, view.len());
            }
            None => {
                switch.lost(egress.port, Reason::NoMem);
                queue.count(counter_of(Reason::NoMem), 1);
            }
        }
        Ok(())
    }
}
