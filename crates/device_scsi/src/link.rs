//! [`Link`]: the way of an adapter to its targets, which may be down.
//!
//! While it is down, queues leave their heads in the ring, for so long as the specification says; so a client does not notice a link that comes
//! back in time. After that its commands fail as those of a port without a link do, until it is back. The time runs here and
//! not at the channels, and beside nothing: [`Holds`] has a thread only while a link is awaited.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use channel::elements::Wake;

const UP: u8 = 0;
const HELD: u8 = 1;
const DOWN: u8 = 2;

/// Whether commands get to their targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// They do.
    Up,
    /// They wait for the link.
    Held,
    /// They fail.
    Down,
}

/// The link of an adapter. Channels read its state; who changes it wakes the queues.
pub struct Link {
    state: AtomicU8,
    books: Mutex<Books>,
    holds: Arc<Holds>,
}

#[derive(Default)]
struct Books {
    /// When it went down.
    since: Option<Instant>,
    /// Until when commands wait.
    until: Option<Instant>,
    wakes: Vec<(u64, Wake)>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Link").field(&self.state()).finish()
    }
}

/// A queue that is woken when the link changes, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Seat {
    link: Arc<Link>,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.link.books().wakes.retain(|(number, _)| *number != self.number);
    }
}

impl Seat {
    /// Of the link that it sits at.
    #[inline]
    pub(crate) fn state(&self) -> LinkState {
        self.link.state()
    }
}

impl Link {
    /// That is up, of no data plane.
    #[must_use]
    pub fn alone() -> Arc<Link> {
        Link::new(&Arc::default())
    }

    /// That is up.
    pub(crate) fn new(holds: &Arc<Holds>) -> Arc<Link> {
        let holds = Arc::clone(holds);
        Arc::new(Link { state: AtomicU8::new(UP), books: Mutex::default(), holds })
    }

    /// How it is. A queue that reads an old state is about to be woken.
    #[inline]
    pub(crate) fn state(&self) -> LinkState {
        match self.state.load(Ordering::Acquire) {
            UP => LinkState::Up,
            HELD => LinkState::Held,
            _ => LinkState::Down,
        }
    }

    /// For a queue that runs from now on.
    pub(crate) fn sit(self: &Arc<Link>, wake: Wake) -> Seat {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.books().wakes.push((number, wake));
        Seat { link: Arc::clone(self), number }
    }

    /// It goes down, or is down already: from the moment that it went, commands wait for so long.
    pub(crate) fn down(self: &Arc<Link>, hold: Duration) {
        let now = Instant::now();
        let until = {
            let mut books = self.books();
            let until = *books.since.get_or_insert(now) + hold;
            let is_held = until > now;
            books.until = is_held.then_some(until);
            self.set(&books, if is_held { HELD } else { DOWN });
            books.until
        };
        if until.is_some_and(|until| !self.holds.expect(until, self)) {
            // Nobody would end the wait.
            self.expire(until.unwrap_or(now));
        }
    }

    /// Queues begin nothing, until it is up or down.
    pub(crate) fn pause(&self) {
        let books = self.books();
        if self.state() == LinkState::Up {
            self.set(&books, HELD);
        }
    }

    /// It is there.
    pub(crate) fn up(&self) {
        let mut books = self.books();
        (books.since, books.until) = (None, None);
        self.set(&books, UP);
    }

    /// The time is over, unless it is another one by now.
    fn expire(&self, moment: Instant) {
        let mut books = self.books();
        if books.until.is_some_and(|until| until <= moment) {
            books.until = None;
            self.set(&books, DOWN);
        }
    }

    fn set(&self, books: &Books, state: u8) {
        if self.state.swap(state, Ordering::AcqRel) != state {
            books.wakes.iter().for_each(|(_, wake)| wake());
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("a panic ends the process")
    }
}

/// Links that are awaited, of a data plane.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    due: Vec<(Instant, Weak<Link>)>,
    /// Somebody looks at them.
    attended: bool,
}

impl Holds {
    /// [`Link::expire`] is called at that moment. `false`: the system has no thread for it.
    fn expect(self: &Arc<Holds>, moment: Instant, link: &Arc<Link>) -> bool {
        let mut list = self.list.lock().expect("a panic ends the process");
        list.due.push((moment, Arc::downgrade(link)));
        if !list.attended {
            let holds = Arc::clone(self);
            let thread = std::thread::Builder::new().name("link-holds".to_owned());
            if thread.spawn(move || holds.attend()).is_err() {
                list.due.pop();
                return false;
            }
            list.attended = true;
        }
        self.changed.notify_all();
        true
    }

    /// Until no link is awaited.
    fn attend(&self) {
        let mut list = self.list.lock().expect("a panic ends the process");
        loop {
            let now = Instant::now();
            let due: Vec<_> = list.due.extract_if(.., |(moment, _)| *moment <= now).collect();
            if !due.is_empty() {
                drop(list);
                for link in due.iter().filter_map(|(_, link)| link.upgrade()) {
                    link.expire(now);
                }
                list = self.list.lock().expect("a panic ends the process");
                continue;
            }
            // Adapters that are gone, and links that are back, are awaited no more.
            list.due.retain(|(moment, link)| {
                link.upgrade().is_some_and(|link| link.is_awaited_at(*moment))
            });
            let Some(next) = list.due.iter().map(|(moment, _)| *moment).min() else {
                list.attended = false;
                return;
            };
            let time = next.saturating_duration_since(Instant::now());
            list = self.changed.wait_timeout(list, time).expect("a panic ends the process").0;
        }
    }
}

impl Link {
    fn is_awaited_at(&self, moment: Instant) -> bool {
        self.books().until == Some(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);
    const LONG: Duration = Duration::from_secs(3600);

    fn until(link: &Link, state: LinkState) {
        let begin = Instant::now();
        while link.state() != state {
            assert!(begin.elapsed() < PATIENCE, "{link:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn commands_wait_for_the_time_and_then_fail_and_each_queue_is_woken() {
        let link = Link::new(&Arc::default());
        let woken = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&woken);
        let seat = link.sit(Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        }));
        link.down(Duration::from_millis(20));
        until(&link, LinkState::Down);
        link.up();
        assert_eq!(seat.state(), LinkState::Up);
        assert_eq!(woken.load(Ordering::Relaxed), 3, "held, down, up");
        drop(seat);
        link.down(Duration::ZERO);
        assert_eq!((link.state(), woken.load(Ordering::Relaxed)), (LinkState::Down, 3));
    }

    #[test]
    fn a_time_counts_from_when_the_link_went_down_and_a_link_that_is_back_is_not_taken_down() {
        let link = Link::new(&Arc::default());
        link.down(LONG);
        assert_eq!(link.state(), LinkState::Held);
        // A shorter time is over already, a longer one is not.
        std::thread::sleep(Duration::from_millis(2));
        link.down(Duration::from_millis(1));
        assert_eq!(link.state(), LinkState::Down);
        link.down(LONG);
        assert_eq!(link.state(), LinkState::Held);
        link.up();
        link.expire(Instant::now() + 2 * LONG);
        assert_eq!(link.state(), LinkState::Up);
    }

    #[test]
    fn nobody_waits_for_links_that_are_back_or_gone() {
        let holds = Arc::<Holds>::default();
        let (stays, goes) = (Link::new(&holds), Link::new(&holds));
        stays.down(LONG);
        goes.down(LONG);
        drop(goes);
        stays.up();
        stays.down(Duration::from_millis(5));
        until(&stays, LinkState::Down);
        let begin = Instant::now();
        while holds.list.lock().unwrap().attended {
            assert!(begin.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(holds.list.lock().unwrap().due.is_empty());
    }
}
