//! A frame that waits for room in the inbox of one of those that get it, and its sender with it: [`crate::patience`] says for how long.

use std::sync::atomic::Ordering::Relaxed;

use channel::{Io, Peers, RunningQueue};
use protocol::stats::QueueCounter;
use switch::{Egress, HEAD_BYTES, Offload, Reason, View};

use crate::copy::Source;
use crate::handler::NetHandler;
use crate::patience::Patience;
use crate::replica::Replica;
use crate::trace::Watch;
use crate::transmit::{Sent, hand_over, lose};
use crate::waiting::{Around, Frame};

/// The frame of a sending queue that waits, if one does. Of it is here what was looked at, since what was judged is what arrives; the rest is with its sender.
pub(crate) struct Held {
    /// The number by which the queue is woken.
    pub(crate) bell: u32,
    /// Until when a frame waits, if one does.
    pub(crate) until_ns: Option<u64>,
    patience: Patience,
    first: [u8; HEAD_BYTES],
    first_len: usize,
    len: usize,
    offload: Offload,
    number: u64,
    /// Those that have yet to get it.
    to: Vec<Egress>,
    /// The version of the network by which they were named.
    version: u64,
}

/// What became of a frame at one destination; none: it waits.
type Handed = Option<Result<(), Reason>>;

impl Held {
    pub(crate) fn new(bell: u32) -> Held {
        Held {
            bell,
            until_ns: None,
            patience: Patience::default(),
            first: [0; HEAD_BYTES],
            first_len: 0,
            len: 0,
            offload: Offload::None { valid: false },
            number: 0,
            to: Vec::new(),
            version: 0,
        }
    }

    /// The first of those that get a frame has no room for it: it waits for that, if it is to be waited for and there is none by now.
    #[cold]
    pub(crate) fn wait<W: Watch>(
        &mut self,
        io: &mut Io,
        way: (&RunningQueue, &mut dyn Peers<NetHandler>),
        at: (&mut Replica, u64, W),
        frame: &Frame<'_>,
        pair: u16,
        to: &[Egress],
    ) -> Handed {
        let (queue, version) = (way.0, at.0.version());
        let handed = self.wait_on(io, way, at, frame, pair);
        if handed.is_none() {
            queue.count(QueueCounter::WaitBackEndFull, 1);
            self.version = version;
            self.to.clear();
            self.to.extend_from_slice(to);
            let head = frame.view.head();
            self.first[..head.len()].copy_from_slice(head);
            (self.first_len, self.len) = (head.len(), frame.view.len());
            (self.offload, self.number) = (frame.offload, frame.number);
        }
        handed
    }

    /// The same of a frame that is kept.
    fn wait_on<W: Watch>(
        &mut self,
        io: &mut Io,
        way: (&RunningQueue, &mut dyn Peers<NetHandler>),
        (replica, now_ns, watch): (&mut Replica, u64, W),
        frame: &Frame<'_>,
        pair: u16,
    ) -> Handed {
        // Who watches others holds nobody up.
        let inbox = replica.inbox_of(frame.egress.port, pair, &frame.view);
        let inbox = inbox.filter(|_| !frame.egress.mirror);
        let Some((port, number)) = inbox else { return self.over(Err(Reason::FullRing)) };
        let its = &port.pairs[usize::from(number)];
        let most_ns = replica.network().patience_ns.load(Relaxed);
        let stands_still = its.stands_still.load(Relaxed);
        let Some(until_ns) = self.patience.until(most_ns, stands_still, now_ns) else {
            its.stands_still.store(true, Relaxed);
            return self.over(Err(Reason::FullRing));
        };
        its.waiters.wait(self.bell);
        let again = None::<fn(u16)>;
        let handed = hand_over(io, way, (replica, now_ns, watch), frame, pair, again);
        if handed != Err(Reason::FullRing) {
            return self.over(handed);
        }
        self.until_ns = Some(until_ns);
        None
    }

    fn over(&mut self, handed: Result<(), Reason>) -> Handed {
        self.patience.over();
        Some(handed)
    }
}

/// Goes on with the frame that has waited, which may wait again; how many bytes it has.
#[cold]
pub(crate) fn go_on<W: Watch>(
    io: &mut Io,
    queue: &RunningQueue,
    peers: &mut dyn Peers<NetHandler>,
    (replica, now_ns, watch): (&mut Replica, u64, W),
    Sent { port, pair, bufs, header, teller }: Sent<'_>,
    held: &mut Held,
) -> Result<usize, Reason> {
    let (first, len) = (held.first, held.len);
    let view = View::new(&first[..held.first_len], len).expect("it was looked at before");
    let (from, offload, number) = (port.id, held.offload, held.number);
    let source = Source { bufs, skip: header };
    let talks = &port.pairs[usize::from(pair)].talks;
    let mut waited = true;
    while let Some(egress) = held.to.first().copied() {
        let frame = Frame { from, view, source, offload, egress, number };
        let told =
            (!std::mem::take(&mut waited)).then_some(|to| teller.note(talks, egress.port, to));
        let at = (&mut *replica, now_ns, watch);
        // Another port may have the number by now.
        let handed = match at.0.is_as_of(egress.port, held.version) {
            true => hand_over(io, (queue, peers), at, &frame, pair, told),
            false => Err(Reason::PortDown),
        };
        let handed = if handed == Err(Reason::FullRing) {
            let at = (&mut *replica, now_ns, watch);
            held.wait_on(io, (queue, peers), at, &frame, pair)
        } else {
            held.over(handed)
        };
        match handed {
            None => break,
            Some(Ok(())) => {}
            Some(Err(reason)) => {
                lose(queue, Around { switch: &mut replica.switch, watch }, &frame, reason);
            }
        }
        held.to.remove(0);
    }
    Ok(len)
}
