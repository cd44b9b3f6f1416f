//! Command elements: how many commands of a client are active at once, and of all clients of a port together.
//!
//! An element is a right to one active command. A port has so many, an adapter may have so many of them, and each queue that runs keeps a
//! few at hand. They are no queue's own: whoever has work borrows what is idle, wherever it lies.
//!
//! ```text
//!   port      what is not lent                                       under the lock of the books
//!   adapter   at most its `elements`; what it has is lent to its queues
//!   queue     free ones at hand: one atomic word on its own line     taken and put back without the lock
//! ```
//!
//! While a queue has some at hand it writes to no line but its own, and that once for the commands of a turn. Without, it borrows: first what the port has not lent, a lot at a time,
//! then what lies idle at other queues. Where there is nothing, it waits, and *presses* the queues whose elements it could have: a flag in
//! their words, which they see when they put one back. Then they hand it over, and the one that waited is woken; nobody looks twice.
//!
//! Who has work for an element keeps it, unless another one that waits has less: of the queues of an adapter in number, of the adapters of a
//! port in relation to their shares. So shares count only while elements are short, what is lent comes back with the next command that ends,
//! and no element is idle while there is a command for it. One thing is kept back: the last thirty-second of a port's elements is for
//! adapters that have less than their part, so that a disk that hangs behind one adapter leaves something to those that come.
//!
//! `tests/loom.rs` checks the hand-over in all interleavings.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use memory::clock;
use protocol::stats::{AdapterStats, PortStats};

use crate::sync::{AtomicU32, Mutex};
use books::{Books, Member, Pace};

mod books;
#[cfg(all(test, not(feature = "loom")))]
mod tests;

/// Somebody waits for an element of this queue; beside the number of those at hand.
const PRESSED: u32 = 1 << 31;

/// How many a queue borrows at a time, at least, while nobody waits.
const LOT: u32 = 16;

/// Wakes a queue that waits, from any thread, without waiting itself: it is to look whether it has elements now.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// What an adapter may have of its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// At most so many elements.
    pub elements: u32,
    /// Its weight among adapters that wait; 0 counts as 1.
    pub weight: u32,
}

/// Who has too few elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// The adapter has all that it may have.
    Adapter,
    /// The port has lent all that it has.
    Port,
}

/// Whether another command may become active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// As one of the queue's own.
    Own,
    /// Beyond these.
    Global,
    /// Not now; the queue will be woken.
    Wait(Shortage),
}

/// What a queue shows of itself: read and written by its channel, by others when they lack elements or look at the mark.
#[derive(Debug)]
#[repr(align(128))]
struct Local {
    /// The elements at hand, and [`PRESSED`].
    word: AtomicU32,
    /// How many of its commands were active when it rested.
    active: AtomicU32,
    /// While no queue of the adapter has more active than its part, all together are no more than the mark says.
    part: AtomicU32,
    /// The same of the port and its mark.
    port_part: AtomicU32,
}

impl Local {
    fn new() -> Local {
        let part = || AtomicU32::new(u32::MAX);
        Local {
            word: AtomicU32::new(0),
            active: AtomicU32::new(0),
            part: part(),
            port_part: part(),
        }
    }

    fn free(&self) -> u32 {
        self.word.load(Relaxed) & !PRESSED
    }

    /// A count and no memory, here and below, so no order of memory operations matters: all that counts is in the one word.
    #[inline]
    fn take(&self) -> bool {
        let mut word = self.word.load(Relaxed);
        while word & !PRESSED != 0 {
            match self.word.compare_exchange_weak(word, word - 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Takes up to so many; how many there were. Where there is none the line stays with whoever has it.
    fn take_up_to(&self, most: u32) -> u32 {
        if self.free() == 0 {
            return 0;
        }
        let count = |word: u32| (word & !PRESSED).min(most);
        let before = self.word.fetch_update(Relaxed, Relaxed, |word| Some(word - count(word)));
        before.map_or(0, count)
    }

    /// Puts some back; the word after that.
    #[inline]
    fn put(&self, count: u32) -> u32 {
        self.word.fetch_add(count, Relaxed) + count
    }

    /// Under the lock, as is [`Local::release`]: so what is read here is no older flag.
    fn press(&self) {
        if self.word.load(Relaxed) & PRESSED == 0 {
            self.word.fetch_or(PRESSED, Relaxed);
        }
    }

    fn release(&self) {
        self.word.fetch_and(!PRESSED, Relaxed);
    }
}

/// How many there are now, of all queues together, and the most that there were.
#[derive(Debug)]
struct Level {
    now: AtomicU32,
    most: AtomicU32,
}

impl Level {
    fn new() -> Level {
        Level { now: AtomicU32::new(0), most: AtomicU32::new(0) }
    }

    /// A queue that had `before` has `after`. Whether that makes more than there ever were. Other queues write here, too: commands that wait are in
    /// no hurry.
    fn moves(&self, before: u32, after: u32) -> bool {
        if after <= before {
            if after < before {
                self.now.fetch_sub(before - after, Relaxed);
            }
            return false;
        }
        let now = self.now.fetch_add(after - before, Relaxed) + (after - before);
        // Another queue may find more at the same time: the highest stays.
        self.most.fetch_max(now, Relaxed) < now
    }

    fn most(&self) -> u32 {
        self.most.load(Relaxed)
    }

    /// The most begins again, at what there is.
    fn reset(&self) -> u32 {
        let now = self.now.load(Relaxed);
        self.most.store(now, Relaxed);
        now
    }
}

/// Both of [`Waits`].
#[derive(Debug)]
struct WaitLevels {
    held: Level,
    waiting: Level,
}

impl WaitLevels {
    fn new() -> WaitLevels {
        WaitLevels { held: Level::new(), waiting: Level::new() }
    }

    /// A queue that had `before` has `after`. Whether that makes more of one than there ever were.
    fn moves(&self, before: Waits, after: Waits) -> bool {
        let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let held = self.held.moves(small(before.held), small(after.held));
        self.waiting.moves(small(before.waiting), small(after.waiting)) | held
    }

    fn most(&self) -> [u32; 2] {
        [self.held.most(), self.waiting.most()]
    }

    fn reset(&self) -> [u32; 2] {
        [self.held.reset(), self.waiting.reset()]
    }
}

/// Commands of a queue that are not under way, by what they wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// For an element: they are not active.
    pub held: usize,
    /// In the server, active.
    pub waiting: usize,
}

/// The elements of a port.
#[derive(Debug)]
pub struct Port {
    books: Mutex<Books>,
    /// What waits on the queues of all its adapters.
    waits: WaitLevels,
}

impl Port {
    /// With so many elements.
    #[must_use]
    pub fn new(elements: u32) -> Arc<Port> {
        Arc::new(Port { books: Mutex::new(Books::new(elements)), waits: WaitLevels::new() })
    }

    /// It has so many from now on. What is lent beyond comes back as commands end.
    pub fn set_elements(&self, elements: u32) {
        self.books(|books| books.set_elements(elements));
    }

    /// Where the most commands that were active at once are kept, on all queues of all its adapters, the most that were held, and the most that waited
    /// in the server. What was there goes on. [`Elements::set_mark`] says what a mark tells; that of a port's active commands misses nothing that lasted for 20 ms. From 1,024
    /// queues on it is in proportion to their number, so that looking at all of them costs no more.
    pub fn set_mark(&self, mark: PortStats) {
        self.books(|books| books.set_port_mark(mark));
    }

    /// Its marks begin again, at what is active and what is held now. Nothing else is touched.
    pub fn reset_mark(&self) {
        self.books(|books| books.reset_port_mark(self.waits.reset()));
    }

    fn books<R>(&self, work: impl FnOnce(&mut Books) -> R) -> R {
        work(&mut self.books.lock().expect("no panic while the lock is held"))
    }
}

/// The elements of an adapter.
#[derive(Debug)]
pub struct Elements {
    port: Arc<Port>,
    account: usize,
    /// What waits on its queues; written when a queue's number of it has changed in a round.
    waits: WaitLevels,
}

impl Elements {
    /// Of a port, for so many queues.
    #[must_use]
    pub fn new(port: &Arc<Port>, share: Share, queues: u16) -> Arc<Elements> {
        let account = port.books(|books| books.open(share, queues));
        Arc::new(Elements { port: Arc::clone(port), account, waits: WaitLevels::new() })
    }

    /// Of no port: it has what it may have.
    #[must_use]
    pub fn alone(share: Share, queues: u16) -> Arc<Elements> {
        Elements::new(&Port::new(u32::MAX), share, queues)
    }

    /// Whether it is of no port.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.port.books(|books| books.is_unbounded())
    }

    /// It may have other ones from now on. What its queues have beyond comes back as commands end.
    pub fn set_share(&self, share: Share) {
        self.port.books(|books| books.set_share(self.account, share));
    }

    /// Where its high-water mark is kept: the most commands that were active at once, on all its queues.
    ///
    /// It says no more than what was active at once when queues rested, at the end of a round of commands. Each queue has a part of it
    /// and looks at the others when it has more than that active, so a maximum is seen when it is reached. Near the mark that would be for
    /// nothing again and again: after a look that found nothing new the next such one follows 20 µs later at the soonest, after many of them
    /// 10 ms later. What was active at once for 10 ms is never missed.
    pub fn set_mark(&self, mark: AdapterStats) {
        self.port.books(|books| books.set_mark(self.account, mark));
    }

    /// The marks begin again, at what is active and what waits now. Nothing else is touched.
    pub fn reset_mark(&self) {
        self.port.books(|books| books.reset_mark(self.account, self.waits.reset()));
    }

    /// Its mark or its port's is higher now. Under the lock, where a reset of them is.
    fn raise(&self) {
        let (own, port) = (&self.waits, &self.port.waits);
        self.port.books(|books| books.raise(self.account, own.most(), port.most()));
    }

    /// How many of its commands are active now.
    #[must_use]
    pub fn active(&self) -> u32 {
        self.port.books(|books| books.active(self.account))
    }

    /// Whose elements they are a part of.
    #[must_use]
    pub fn port(&self) -> &Arc<Port> {
        &self.port
    }
}

impl Drop for Elements {
    fn drop(&mut self) {
        self.port.books(|books| books.close(self.account));
    }
}

/// When a queue looks at its adapter's mark, in ticks.
#[derive(Debug)]
struct Watch {
    /// Before commands end, at least so often.
    every: u64,
    pace: Pace,
    /// At the port's mark, with more than its part of it.
    port_again: u64,
}

/// A queue's hold on the elements of its adapter, on its channel's thread.
#[derive(Debug)]
pub struct QueueElements {
    adapter: Arc<Elements>,
    local: Arc<Local>,
    queue: usize,
    /// How many it keeps at hand when it is idle.
    own: u32,
    active: u32,
    /// Those that its channel has taken up, and uses without looking at others, until it rests.
    hand: u32,
    /// What waited when it rested.
    waits: Waits,
    watch: Watch,
}

impl QueueElements {
    /// Of queue `queue` of an adapter, which runs now and keeps `own` at hand when it is idle. `wake` is called when it waited.
    ///
    /// # Panics
    ///
    /// When the adapter has no such queue, or it runs already.
    #[must_use]
    pub fn new(adapter: &Arc<Elements>, queue: u16, own: u16, wake: Wake) -> QueueElements {
        let queue = usize::from(queue);
        let local = adapter.port.books(|books| books.seat((adapter.account, queue), wake));
        QueueElements {
            adapter: Arc::clone(adapter),
            local,
            queue,
            own: u32::from(own),
            active: 0,
            hand: 0,
            waits: Waits::default(),
            watch: Watch {
                every: clock::ticks_per_second() / 100,
                pace: Pace::default(),
                port_again: 0,
            },
        }
    }

    /// Makes a command active, if it may be; `held` is how many wait.
    #[inline]
    pub fn admit(&mut self, held: impl FnOnce() -> usize) -> Admission {
        if self.hand == 0
            && let Err(shortage) = self.take_up(held())
        {
            return Admission::Wait(shortage);
        }
        self.hand -= 1;
        self.active += 1;
        if self.active > self.own { Admission::Global } else { Admission::Own }
    }

    /// A command is no longer active. [`QueueElements::rest`] follows.
    #[inline]
    pub fn dismiss(&mut self) {
        self.active -= 1;
        self.hand += 1;
    }

    /// The channel has admitted and dismissed what it can for now, and turns to something else: what the queue has in its hand, others may
    /// have. `waits` is what waits, `now` the moment in ticks.
    #[inline]
    pub fn rest(&mut self, waits: impl Fn() -> Waits, now: u64) {
        if waits() != self.waits {
            self.note(waits());
        }
        if self.hand == 0 && self.active == self.local.active.load(Relaxed) {
            return;
        }
        if now >= self.watch.pace.due {
            self.look(now);
        }
        self.local.active.store(self.active, Relaxed);
        if self.hand > 0 {
            let word = self.local.put(std::mem::take(&mut self.hand));
            let at_hand = if self.active == 0 { self.own } else { !PRESSED };
            if word > at_hand {
                self.settle(waits().held);
            }
        }
        if self.active > self.local.part.load(Relaxed) && now >= self.watch.pace.again {
            self.look_beyond(now);
        }
        if self.active > self.local.port_part.load(Relaxed) && now >= self.watch.port_again {
            self.look_beyond_port(now);
        }
    }

    /// Hands on what the queue does not need, after it was woken and has taken what it can.
    pub fn woken(&mut self, held: usize) {
        // Before the elements: who has them next counts what it does with them.
        self.local.active.store(self.active, Relaxed);
        self.local.put(std::mem::take(&mut self.hand));
        self.settle(held);
    }

    fn member(&self) -> Member {
        (self.adapter.account, self.queue)
    }

    /// Takes what is at hand, or borrows one.
    #[inline(never)]
    fn take_up(&mut self, held: usize) -> Result<(), Shortage> {
        self.hand = self.local.take_up_to(u32::MAX);
        if self.hand == 0 {
            self.borrow(held)?;
            self.hand = 1;
        }
        Ok(())
    }

    /// Other commands wait than when it rested before.
    #[cold]
    fn note(&mut self, waits: Waits) {
        let before = std::mem::replace(&mut self.waits, waits);
        let adapter = &*self.adapter;
        let higher = adapter.waits.moves(before, waits);
        if adapter.port.waits.moves(before, waits) | higher {
            adapter.raise();
        }
    }

    /// Looks at the mark; whether it is higher now. What was done at once was active by itself.
    #[cold]
    fn look(&mut self, now: u64) -> bool {
        let every = self.watch.every;
        self.watch.pace.looked(now, every);
        self.adapter.port.books(|books| {
            books.look_at_port_in_time(now, every);
            books.look(self.adapter.account, 1)
        })
    }

    /// Looks at the port's mark since it has more than its part of it, unless somebody did a moment ago.
    #[cold]
    fn look_beyond_port(&mut self, now: u64) {
        let every = self.watch.every;
        self.watch.port_again =
            self.adapter.port.books(|books| books.look_beyond_at_port(now, every));
    }

    /// Looks since it has more than its part.
    #[cold]
    fn look_beyond(&mut self, now: u64) {
        let found = self.look(now);
        let every = self.watch.every;
        self.watch.pace.looked_beyond(now, found, (every / 512, every));
    }

    #[cold]
    fn borrow(&mut self, held: usize) -> Result<(), Shortage> {
        let wanted = u32::try_from(held).unwrap_or(u32::MAX).max(1);
        self.adapter.port.books(|books| books.borrow(self.member(), wanted, self.own.max(LOT)))
    }

    #[cold]
    fn settle(&mut self, held: usize) {
        let wanted = u32::try_from(held).unwrap_or(u32::MAX);
        let keep = if self.active == 0 { self.own } else { u32::MAX };
        self.adapter.port.books(|books| books.settle(self.member(), wanted, keep));
    }
}

impl Drop for QueueElements {
    fn drop(&mut self) {
        self.note(Waits::default());
        // What is still active ends with its queue.
        self.local.active.store(0, Relaxed);
        self.local.put(self.active + self.hand);
        self.adapter.port.books(|books| books.leave(self.member()));
    }
}
