//! What all clients have: memory, an in-flight region, and driver queues that kick, sleep until they are notified, and are polled.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use dataplane::sim::{Front as Said, Ring};
use memory::sim;
use protocol::stats::QueueCounter;
use rustix::event::EventfdFlags;
use vring::driver::{Completion, DriverConfig, DriverMemory, DriverQueue};
use vring::{InflightRegion, UserAddr};

use crate::tally::Seen;

/// A driver's queue.
pub(crate) struct Line {
    pub number: u16,
    pub driver: DriverQueue,
    kick: OwnedFd,
    call: OwnedFd,
    owes_kick: bool,
    asleep: bool,
    /// Where the used index stood when there was last nothing to do but to wait, and for how long it has stood there so.
    stands: (u16, u64),
    /// What it has seen since the process began, or its adapter was made.
    pub seen: Seen,
    /// Completions that it has taken, and how many of the next are of an earlier process.
    taken: u16,
    before: u16,
    /// The last one it took is of this process.
    is_of_now: bool,
    /// Of how many heads nobody knows what this process has to do, at least and at most.
    left: (u16, u16),
    /// How many notifications there had been when it last looked.
    heard: u64,
}

/// What it says to a server, and its queues.
pub(crate) struct Front {
    pub name: String,
    pub memory: Arc<DriverMemory>,
    pub region: InflightRegion,
    /// The file of that.
    kept: File,
    pub config: DriverConfig,
    pub lines: Vec<Line>,
    /// Its memory is not what it was: it does nothing any more.
    pub is_gone: bool,
    /// What is counted of it is what it has seen.
    pub is_counted: bool,
}

/// What a line can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Can {
    /// It did what it owed.
    Kicked,
    /// Nothing: it sleeps.
    Sleeps,
    /// Anything.
    All,
}

pub(crate) fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd")
}

impl Front {
    /// With queues of these numbers.
    pub(crate) fn new(name: String, bytes: u64, config: DriverConfig, numbers: &[u16]) -> Front {
        // Of few sizes, so that addresses are used again. A client tells of others, since which of them it has is not the seed's.
        let memory = DriverMemory::new(bytes.next_power_of_two()).expect("memory");
        let memory = Arc::new(memory.told_at(UserAddr(0x7f00_0000_0000)));
        let count = numbers.iter().max().expect("a queue") + 1;
        let (kept, region) = InflightRegion::create(count, config.size).expect("a region");
        let line = |number: &u16| Line {
            number: *number,
            driver: DriverQueue::new(&memory, config).expect("a queue"),
            kick: eventfd(),
            call: eventfd(),
            owes_kick: false,
            asleep: false,
            stands: (0, 0),
            seen: Seen::default(),
            taken: 0,
            before: 0,
            is_of_now: true,
            left: (0, 0),
            heard: u64::MAX,
        };
        let lines = numbers.iter().map(line).collect();
        let (is_gone, is_counted) = (false, true);
        Front { name, memory, region, kept, config, lines, is_gone, is_counted }
    }

    /// What it tells a server before it speaks of its rings.
    pub(crate) fn says(&self, with_region: bool, in_bytes: bool) -> Said {
        let regions = self.memory.regions().expect("descriptors");
        let count = self.lines.iter().map(|line| line.number).max().expect("a queue") + 1;
        let kept = || self.kept.try_clone().expect("a descriptor");
        let inflight = with_region.then(|| (self.region.clone(), kept(), count, self.config.size));
        Said { config: self.config, regions, inflight, in_bytes }
    }

    /// What it tells of its rings.
    pub(crate) fn rings(&self) -> Vec<Ring> {
        self.lines.iter().map(Line::says).collect()
    }

    /// A part of its memory is taken away, and it does nothing any more.
    pub(crate) fn loses_memory(&mut self) {
        let pages = self.memory.file().metadata().expect("a memfd").len() / 4096;
        let bytes = sim::pick(pages as usize) as u64 * 4096;
        sim::met("a client's memory goes");
        sim::tell(|| format!("{}: its memory has {bytes} bytes from now on", self.name));
        self.memory.file().set_len(bytes).expect("a memfd");
        self.is_gone = true;
    }

    /// Why it waits for ever: what each queue with something under way lacks.
    pub(crate) fn laments(&mut self) -> String {
        let mut said = Vec::new();
        for line in self.lines.iter_mut().filter(|line| line.driver.in_flight() > 0) {
            let lack = match line.driver.poll() {
                Ok(Some(_)) if line.asleep => "an end is in the ring, and it was not notified",
                Ok(Some(_)) => "an end is in the ring",
                _ => "no end is in the ring",
            };
            said.push(format!("; {} queue {}: {lack}", self.name, line.number));
        }
        said.concat()
    }

    /// What has passed so far does not count: nobody was to serve it.
    pub(crate) fn is_served_anew(&mut self) {
        self.lines.iter_mut().for_each(|line| line.stands.1 = 0);
    }

    /// What is counted of it begins anew.
    pub(crate) fn is_counted_anew(&mut self) {
        self.is_counted = true;
        if self.is_gone {
            // Its rings are not read any more.
            return;
        }
        for line in &mut self.lines {
            let used = line.driver.used_index();
            line.before = used.wrapping_sub(line.taken);
            line.seen = Seen::default();
            let (heads, recorded) =
                self.region.queue(line.number).map_or((0, used), |part| part.recorded());
            // Where it died in the middle of publishing, some of these have been.
            line.left = (if recorded == used { heads } else { 0 }, heads);
        }
    }

    /// Nothing is in flight, as the server has left it written.
    pub(crate) fn is_idle(&self) -> bool {
        let parts = self.lines.iter().filter_map(|line| self.region.queue(line.number));
        parts.into_iter().all(|part| !part.has_heads())
    }
}

impl Line {
    fn says(&self) -> Ring {
        Ring {
            number: self.number,
            size: self.driver.config().size,
            addresses: self.driver.addresses(),
            base: self.driver.used_index(),
            kick: self.kick.try_clone().expect("a descriptor"),
            call: self.call.try_clone().expect("a descriptor"),
        }
    }

    /// Does what it owes, and hears whether it was notified.
    pub(crate) fn begin_step(&mut self, whose: &str) -> Can {
        if self.owes_kick {
            self.owes_kick = false;
            sim::tell(|| format!("{whose}: kicks queue {}", self.number));
            sim::bell();
            let written = rustix::io::write(&self.kick, &1_u64.to_ne_bytes());
            assert!(written.is_ok(), "{written:?}");
            return Can::Kicked;
        }
        if self.asleep {
            if !self.notified() {
                return Can::Sleeps;
            }
            self.asleep = false;
            self.driver.disable_interrupts();
        }
        Can::All
    }

    /// So many ns pass, since there is nothing to do but to wait for that. They count where the server has been told of something that is not done: what it is told of at
    /// their end has not waited for them.
    pub(crate) fn idles(&mut self, passes: u64) {
        let used = self.driver.used_index();
        let is_told = !self.owes_kick && self.driver.avail_index() != used;
        let before = if self.stands.0 == used { self.stands.1 } else { 0 };
        self.stands = (used, if is_told { before + passes } else { 0 });
    }

    /// For how many of these ns nothing of what the server has been told of this queue has been done.
    pub(crate) fn has_idled(&self) -> u64 {
        if self.stands.0 == self.driver.used_index() { self.stands.1 } else { 0 }
    }

    fn notified(&mut self) -> bool {
        let notices = sim::notices();
        if std::mem::replace(&mut self.heard, notices) == notices {
            return false;
        }
        let mut count = [0; 8];
        rustix::io::read(&self.call, &mut count).is_ok()
    }

    /// What was added can be seen; a kick may be owed.
    pub(crate) fn publish(&mut self) {
        self.owes_kick |= self.driver.publish();
    }

    /// Sleeps until it is notified, unless something is there.
    pub(crate) fn sleep(&mut self) {
        self.asleep = !self.driver.enable_interrupts();
    }

    /// What has ended.
    pub(crate) fn poll(&mut self) -> Result<Option<Completion>, String> {
        let polled = self.driver.poll().map_err(|error| format!("the used ring: {error}"))?;
        if polled.is_some() {
            self.taken = self.taken.wrapping_add(1);
            self.is_of_now = self.before == 0;
            self.before = self.before.saturating_sub(1);
            self.see(|seen| seen.answered += 1);
        }
        Ok(polled)
    }

    /// Notes what came of the last one.
    pub(crate) fn see(&mut self, note: impl FnOnce(&mut Seen)) {
        if self.is_of_now {
            note(&mut self.seen);
        }
    }

    /// What is counted of it is what it has seen.
    pub(crate) fn adds_up(&self, counted: impl Fn(QueueCounter) -> u64) -> Result<(), String> {
        let (least, most) = (u64::from(self.left.0), u64::from(self.left.1));
        let again = counted(QueueCounter::Resubmitted);
        if again < least || again > most {
            return Err(format!("{again} commands were recovered, of {least} to {most}"));
        }
        self.seen.is(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_of_the_same_memory_wherever_that_is() {
        let config = DriverConfig { size: 8, event_idx: false, indirect_max: 0, in_order: false };
        let front = || Front::new("client".into(), 1 << 20, config, &[0]);
        let fronts = [front(), front()];
        let [one, two] = fronts.each_ref().map(|front| {
            let addresses = front.lines[0].driver.addresses();
            let regions = front.memory.regions().expect("descriptors");
            (addresses.desc, addresses.avail, addresses.used, regions[0].user)
        });
        assert_eq!(one, two);
    }

    #[test]
    fn what_comes_at_the_end_of_a_wait_has_not_waited() {
        sim::begin(1, 0);
        let config = DriverConfig { size: 8, event_idx: false, indirect_max: 0, in_order: false };
        let mut front = Front::new("client".into(), 1 << 20, config, &[0]);
        let buf = front.memory.alloc(512, 512).unwrap();
        let line = &mut front.lines[0];
        line.idles(1000);
        assert_eq!(line.has_idled(), 0, "nothing is asked");
        assert!(line.driver.add(&[], &[(buf.guest, 512)], 1, false).is_ok());
        line.publish();
        assert!(line.owes_kick);
        line.idles(1000);
        assert_eq!(line.begin_step("client"), Can::Kicked);
        // Whoever looks only now sees a request that has been told of, after a wait.
        assert_eq!(line.has_idled(), 0, "it was not told of");
        line.idles(300);
        line.idles(200);
        assert_eq!(line.has_idled(), 500);
        front.is_served_anew();
        let line = &mut front.lines[0];
        assert_eq!(line.has_idled(), 0, "nobody was to serve it");
        line.idles(200);
        assert_eq!(line.has_idled(), 200);
        sim::end();
    }
}
