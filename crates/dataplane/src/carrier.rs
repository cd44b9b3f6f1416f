//! Who wants to know whether interfaces of the host have a carrier.
//!
//! ```text
//!   kernel ── what changes, by a socket in each network namespace ──► carrier ──► who watches: uplinks, failover
//!   who opens ── sockets, and whether a namespace is still there ──►     │
//! ```
//!
//! One thread for all of a data plane, asleep while nothing happens. What could hang, which is a question to the control plane, is another thread's. Without a socket,
//! as of a namespace that is not there, the interfaces are asked for, one by one.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use memory::links::Links;
use protocol::opener::Interface;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::lock::locked;
use crate::outside::Outside;

/// How often a thing that has changed is told again, and for how long.
const EVERY: Duration = Duration::from_millis(250);
const AGAIN: Duration = Duration::from_millis(1500);
/// How often a socket is asked for that could not be had.
pub(crate) const RETRY: Duration = Duration::from_secs(1);
/// How often a namespace is looked for whose socket is there: its file may be gone, which nobody tells.
const LOOK: Duration = Duration::from_secs(2);

/// How an interface is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// It has one.
    Up,
    /// It has none.
    Down,
    /// There is no interface.
    Gone,
}

/// Called on the thread; it must not wait for anything outside.
type Told = Arc<dyn Fn(Carrier) + Send + Sync>;

/// All that is watched.
#[derive(Clone)]
pub(crate) struct Carriers(Arc<Shared>);

struct Shared {
    outside: Arc<Outside>,
    wake: OnceLock<OwnedFd>,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    last: u64,
    /// The thread is there.
    runs: bool,
    watched: BTreeMap<u64, (Interface, Told)>,
    answers: Vec<(Option<PathBuf>, Answer)>,
    /// Everything is told again until then.
    again: Option<Instant>,
}

/// What was asked for.
enum Answer {
    /// The namespace is there as before.
    Same,
    Socket(OwnedFd),
    /// There is none; how those are that were asked for one by one. Who did not answer says nothing new.
    Without(BTreeMap<String, Carrier>),
}

/// An interface is watched as long as this is there.
#[must_use]
pub(crate) struct Watch {
    number: u64,
    shared: Arc<Shared>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let gone = locked(&self.shared.all).watched.remove(&self.number);
        drop(gone);
        self.shared.wake();
    }
}

impl Carriers {
    pub(crate) fn new(outside: &Arc<Outside>) -> Carriers {
        let outside = Arc::clone(outside);
        Carriers(Arc::new(Shared { outside, wake: OnceLock::new(), all: Mutex::default() }))
    }

    /// Tells how an interface is, when that has changed, and now and then for a while afterwards.
    pub(crate) fn watch(
        &self,
        interface: Interface,
        told: impl Fn(Carrier) + Send + Sync + 'static,
    ) -> io::Result<Watch> {
        let shared = Arc::clone(&self.0);
        if shared.wake.get().is_none() {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            // Somebody else may have been first.
            let _ = shared.wake.set(eventfd(0, flags)?);
        }
        let mut all = locked(&shared.all);
        if !all.runs {
            let thread = std::thread::Builder::new().name("links".into());
            let its = Arc::clone(&shared);
            thread.spawn(move || Watcher { shared: its, places: BTreeMap::new() }.run())?;
            all.runs = true;
        }
        all.last += 1;
        let number = all.last;
        all.watched.insert(number, (interface, Arc::new(told)));
        all.again = Some(Instant::now() + AGAIN);
        drop(all);
        shared.wake();
        Ok(Watch { number, shared })
    }

    /// Everything is told again for a while.
    pub(crate) fn again(&self) {
        locked(&self.0.all).again = Some(Instant::now() + AGAIN);
        self.0.wake();
    }
}

impl Shared {
    fn wake(&self) {
        // It is full: the thread is awake.
        let _ = self.wake.get().map(|wake| rustix::io::write(wake, &1_u64.to_ne_bytes()));
    }
}

/// The thread.
struct Watcher {
    shared: Arc<Shared>,
    places: BTreeMap<Option<PathBuf>, Place>,
}

/// A network namespace.
#[derive(Default)]
struct Place {
    links: Option<Links>,
    /// How those are that were asked for, while there is no socket.
    asked: BTreeMap<String, Carrier>,
    asking: bool,
    due: Option<Instant>,
    /// What was told of each, by the number of its watch.
    told: BTreeMap<u64, Known>,
}

/// How an interface is, and which one of its name, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known(Carrier, Option<i32>);

impl Place {
    fn known(&self, name: &str) -> Option<Known> {
        let Some(links) = &self.links else {
            return self.asked.get(name).map(|carrier| Known(*carrier, None));
        };
        Some(match links.get(name)? {
            Some(link) if link.up => Known(Carrier::Up, Some(link.index)),
            Some(link) => Known(Carrier::Down, Some(link.index)),
            None => Known(Carrier::Gone, None),
        })
    }
}

impl Watcher {
    fn run(mut self) {
        let mut next = Instant::now();
        loop {
            let watched = {
                let mut all = locked(&self.shared.all);
                if all.watched.is_empty() {
                    all.runs = false;
                    all.answers.clear();
                    return;
                }
                all.watched.clone()
            };
            self.keep_places(&watched);
            self.take_answers();
            let now = Instant::now();
            self.ask(&watched, now);
            let until = locked(&self.shared.all).again;
            let again = until.is_some() && now >= next;
            if self.tell(&watched, again) {
                locked(&self.shared.all).again = Some(now + AGAIN);
            }
            if again {
                next = now + EVERY;
                let mut all = locked(&self.shared.all);
                all.again = all.again.filter(|until| *until > now);
            }
            let repeat = locked(&self.shared.all).again.map(|_| next);
            let due = self.places.values().filter(|it| !it.asking).filter_map(|it| it.due);
            self.wait(due.chain(repeat).min());
        }
    }

    fn keep_places(&mut self, watched: &BTreeMap<u64, (Interface, Told)>) {
        let wanted = |netns: &Option<PathBuf>| watched.values().any(|(it, _)| it.netns == *netns);
        self.places.retain(|netns, _| wanted(netns));
        for (interface, _) in watched.values() {
            let new = || Place { due: Some(Instant::now()), ..Place::default() };
            self.places.entry(interface.netns.clone()).or_insert_with(new);
        }
        for place in self.places.values_mut() {
            place.told.retain(|number, _| watched.contains_key(number));
        }
    }

    fn take_answers(&mut self) {
        let answers = std::mem::take(&mut locked(&self.shared.all).answers);
        for (netns, answer) in answers {
            let Some(place) = self.places.get_mut(&netns) else { continue };
            place.asking = false;
            match answer {
                Answer::Same => (),
                Answer::Socket(socket) => place.links = Links::new(socket).ok(),
                Answer::Without(asked) => (place.links, place.asked) = (None, asked),
            }
            // What is about the namespace of the process is told by its socket alone.
            let pause = match place.links {
                Some(_) => netns.as_ref().map(|_| LOOK),
                None => Some(RETRY),
            };
            place.due = pause.map(|pause| Instant::now() + pause);
        }
    }

    fn ask(&mut self, watched: &BTreeMap<u64, (Interface, Told)>, now: Instant) {
        for (netns, place) in &mut self.places {
            if place.asking || place.due.is_none_or(|due| due > now) {
                continue;
            }
            let here = watched.values().filter(|(it, _)| it.netns == *netns);
            let interfaces: Vec<Interface> = here.map(|(it, _)| it.clone()).collect();
            let there = |it: &&Interface| {
                matches!(place.known(&it.name), Some(Known(Carrier::Up | Carrier::Down, Some(_))))
            };
            let there = interfaces.iter().find(there).cloned();
            let (shared, netns) = (Arc::clone(&self.shared), netns.clone());
            let asks = move || {
                let answer = asked(&shared.outside, netns.as_ref(), interfaces, there);
                locked(&shared.all).answers.push((netns, answer));
                shared.wake();
            };
            let thread = std::thread::Builder::new().name("link".into());
            place.asking = thread.spawn(asks).is_ok();
            place.due = Some(now + RETRY);
        }
    }

    /// Whether anything was new.
    fn tell(&mut self, watched: &BTreeMap<u64, (Interface, Told)>, again: bool) -> bool {
        let mut any = false;
        for (number, (interface, told)) in watched {
            let Some(place) = self.places.get_mut(&interface.netns) else { continue };
            let Some(now) = place.known(&interface.name) else { continue };
            let before = place.told.insert(*number, now);
            let new = before != Some(now);
            any |= new;
            // Another one of its name, and nobody has heard that the one before is gone.
            if let (Some(Known(_, Some(before))), Known(_, Some(now))) = (before, now)
                && before != now
            {
                told(Carrier::Gone);
            }
            if new || again {
                told(now.0);
            }
        }
        any
    }

    /// Until something is heard, or it is time.
    fn wait(&mut self, until: Option<Instant>) {
        let Some(wake) = self.shared.wake.get() else { return };
        let heard: Vec<bool> = {
            let links = self.places.values().filter_map(|place| place.links.as_ref());
            let fds = [wake.as_fd()].into_iter().chain(links.map(AsFd::as_fd));
            let mut fds: Vec<_> =
                fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            let pause = until.map(|until| until.saturating_duration_since(Instant::now()));
            let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
            // Interrupted: nothing is there.
            let _ = poll(&mut fds, pause.as_ref());
            fds.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        if heard[0] {
            let _ = rustix::io::read(wake, &mut [0; 8]);
        }
        let listening = self.places.values_mut().filter(|place| place.links.is_some());
        for (place, _) in listening.zip(&heard[1..]).filter(|(_, heard)| **heard) {
            if place.links.as_mut().is_some_and(|links| links.hear().is_err()) {
                (place.links, place.due) = (None, Some(Instant::now()));
            }
        }
    }
}

/// Asks who opens: whether a namespace is there as before, by an interface that its socket says is there; or for a socket.
fn asked(
    outside: &Outside,
    netns: Option<&PathBuf>,
    interfaces: Vec<Interface>,
    there: Option<Interface>,
) -> Answer {
    let gone = Some(Errno::NODEV.raw_os_error());
    let link = |interface: Interface| match outside.link(interface) {
        Ok(true) => Some(Carrier::Up),
        Ok(false) => Some(Carrier::Down),
        Err(error) if error.raw_os_error() == gone => Some(Carrier::Gone),
        Err(_) => None,
    };
    if there.is_some_and(|there| link(there) != Some(Carrier::Gone)) {
        return Answer::Same;
    }
    match outside.links(netns.map(PathBuf::as_path)) {
        Ok(socket) => Answer::Socket(socket),
        Err(_) => {
            let each = interfaces.into_iter();
            let known = |it: Interface| Some((it.name.clone(), link(it)?));
            Answer::Without(each.filter_map(known).collect())
        }
    }
}
