//! What a disk may answer: for each sector the values that it may have, from what was asked of it and when that was answered.
//!
//! - A read returns a value that was written before the read ended, unless another one has surely replaced it.
//! - A write that was answered has replaced what was there before it began. Of writes that overlap in time any may be the last.
//! - A write that failed, or that nobody has answered, may have happened or not; from its answer on nothing of it happens any more.
//! - A read during which nothing was written settles which of the possible values it is.
//! - From the answer of a write on, or from that of a function that has ended it, its value appears where the medium does not have it at that
//!   moment no more.
//! - A write that was refused has never happened.
//! - After a power failure a sector has what it may have had at any time since the last flush that was answered began. After a flush that has told of a
//!   loss none succeeds.

use std::collections::{BTreeMap, BTreeSet};

use uring::sim::{self as kernel, Errors};

/// A value of a sector: the number of the write that it is from; 0: zeroes.
pub(crate) type Stamp = u64;

/// Names a request that is under way.
pub(crate) type Ticket = u64;

#[derive(Debug, Default, Clone)]
struct Sector {
    /// What may be there while nothing is written.
    possible: BTreeSet<Stamp>,
    /// What may be there after a power failure.
    durable: BTreeSet<Stamp>,
    /// Writes under way, each with those that were under way at any time beside it, and their values.
    open: BTreeMap<Ticket, Open>,
}

#[derive(Debug, Clone)]
struct Open {
    stamp: Stamp,
    /// Values of writes that overlap.
    beside: BTreeSet<Stamp>,
    /// The same with those that do not appear any more: they may be what is durable.
    beside_ever: BTreeSet<Stamp>,
    /// The old value may stay: a discard.
    may_stay: bool,
    /// Its value does not appear any more.
    barred: bool,
    /// A read has returned its value.
    seen: bool,
    /// It is durable when it was answered.
    through: bool,
}

impl Open {
    fn see(&mut self) {
        self.seen = true;
    }
}

impl Sector {
    /// A value that will not appear any more.
    fn strike(&mut self, stamp: Stamp) {
        self.possible.remove(&stamp);
        for open in self.open.values_mut() {
            open.beside.remove(&stamp);
        }
    }
}

/// Values of which there are few.
#[derive(Debug)]
struct Allowed(Vec<Stamp>);

impl Allowed {
    fn contains(&self, stamp: &Stamp) -> bool {
        self.0.contains(stamp)
    }

    fn insert(&mut self, stamp: Stamp) {
        if !self.0.contains(&stamp) {
            self.0.push(stamp);
        }
    }
}

#[derive(Debug)]
struct Read {
    sectors: std::ops::Range<u64>,
    allowed: Vec<Allowed>,
    /// No write overlapped, for each sector.
    alone: Vec<bool>,
}

/// Says what these sectors of the medium have now; none: they are not there, or not yet.
pub(crate) type Look = Box<dyn Fn(std::ops::Range<u64>) -> Vec<Option<Stamp>>>;

/// A disk as it may be.
pub(crate) struct Disk {
    medium: Look,
    /// A write that was answered is durable.
    write_through: bool,
    sectors: Vec<Sector>,
    reads: BTreeMap<Ticket, Read>,
    writes: BTreeMap<Ticket, std::ops::Range<u64>>,
    next: Ticket,
    /// Nobody may write.
    read_only: bool,
    /// It was smaller at some time.
    was_cut: bool,
    /// It is an LU of a pool, which may have a good copy of everything whatever fails.
    pub pool: Option<bool>,
}

/// What a request asks of the medium, for what may excuse that it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touch {
    Reads,
    Writes,
    Flushes,
    /// Reads, and then writes.
    Compares,
}

fn failed(touch: Touch) -> String {
    format!("it fails, and nothing has ({touch:?})")
}

impl Disk {
    /// A request failed since the medium did: that has happened. What was asked when it had been so often is `since`. A write or a flush may fail
    /// for an earlier one, after which nobody knows what the medium has.
    pub(crate) fn may_fail(&self, touch: Touch, since: Errors) -> Result<(), String> {
        let now = kernel::errors();
        if let Some(mirrored) = self.pool {
            // What is written for the first time, or to the pool's own blocks, may have to be read before.
            let excused = !mirrored && (now.writes > 0 || now.reads > since.reads);
            return if excused { Ok(()) } else { Err(failed(touch)) };
        }
        let excused = match touch {
            Touch::Reads => self.was_cut || now.reads > since.reads,
            Touch::Writes => self.read_only || self.was_cut || now.writes > 0,
            Touch::Flushes => now.writes > 0,
            Touch::Compares => self.was_cut || now.writes > 0 || now.reads > since.reads,
        };
        if excused { Ok(()) } else { Err(failed(touch)) }
    }

    /// What was there before anybody wrote, and nobody writes.
    pub(crate) fn holds(&mut self, values: impl Iterator<Item = Stamp>) {
        self.read_only = true;
        for (sector, value) in self.sectors.iter_mut().zip(values) {
            sector.possible = BTreeSet::from([value]);
            sector.durable = BTreeSet::from([value]);
        }
    }

    /// Of so many sectors, all zeroes.
    pub(crate) fn new(sectors: u64, medium: Look, write_through: bool) -> Disk {
        let zeroes = BTreeSet::from([0]);
        let blank = Sector { possible: zeroes.clone(), durable: zeroes, open: BTreeMap::new() };
        Disk {
            medium,
            write_through,
            sectors: vec![blank; sectors as usize],
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            next: 1,
            read_only: false,
            was_cut: false,
            pool: None,
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.next += 1;
        self.next
    }

    /// A read begins.
    pub(crate) fn read(&mut self, sectors: std::ops::Range<u64>) -> Ticket {
        let ticket = self.ticket();
        let of = |at: u64| {
            let sector = &self.sectors[at as usize];
            let open = sector.open.values().filter(|open| !open.barred).map(|open| open.stamp);
            let all = sector.possible.iter().copied().chain(open);
            (Allowed(all.collect()), sector.open.is_empty())
        };
        let (allowed, alone) = sectors.clone().map(of).unzip();
        self.reads.insert(ticket, Read { sectors, allowed, alone });
        ticket
    }

    /// A write of one value begins; 0 is zeroes. `may_stay`: it may as well leave what is there.
    pub(crate) fn write(
        &mut self,
        sectors: std::ops::Range<u64>,
        stamp: Stamp,
        may_stay: bool,
    ) -> Ticket {
        let ticket = self.ticket();
        for at in sectors.clone() {
            let sector = &mut self.sectors[at as usize];
            let (mut beside, mut beside_ever) = (BTreeSet::new(), BTreeSet::new());
            for open in sector.open.values_mut() {
                open.beside.insert(stamp);
                open.beside_ever.insert(stamp);
                beside_ever.insert(open.stamp);
                if !open.barred {
                    beside.insert(open.stamp);
                }
            }
            let (barred, seen, through) = (false, false, false);
            let open = Open { stamp, beside, beside_ever, may_stay, barred, seen, through };
            sector.open.insert(ticket, open);
            sector.durable.insert(stamp);
        }
        for read in self.reads.values_mut() {
            for at in sectors.clone().filter(|at| read.sectors.contains(at)) {
                let index = (at - read.sectors.start) as usize;
                read.allowed[index].insert(stamp);
                read.alone[index] = false;
            }
        }
        self.writes.insert(ticket, sectors);
        ticket
    }

    /// Whether a write of this value to this sector is under way.
    pub(crate) fn is_written(&self, at: u64, stamp: Stamp) -> bool {
        self.sectors[at as usize].open.values().any(|open| open.stamp == stamp)
    }

    /// A write is durable when it was answered.
    pub(crate) fn through(&mut self, ticket: Ticket) {
        for at in self.writes[&ticket].clone() {
            let open = self.sectors[at as usize].open.get_mut(&ticket);
            open.expect("it is under way").through = true;
        }
    }

    /// What a write is to write to.
    pub(crate) fn sectors_of(&self, ticket: Ticket) -> std::ops::Range<u64> {
        self.writes[&ticket].clone()
    }

    /// Nothing of a write happens from now on: where the medium does not have its value now, that does not appear any more.
    pub(crate) fn bar(&mut self, ticket: Ticket) {
        let Some(sectors) = self.writes.get(&ticket).cloned() else { return };
        for (at, now) in sectors.clone().zip((self.medium)(sectors)) {
            let sector = &mut self.sectors[at as usize];
            let open = sector.open.get_mut(&ticket).expect("it is under way");
            let stamp = open.stamp;
            // Zeroes may be anybody's.
            let elsewhere = now.is_some_and(|now| now != stamp);
            if stamp != 0 && !open.barred && elsewhere {
                open.barred = true;
                sector.strike(stamp);
            }
        }
    }

    /// It may happen after all.
    pub(crate) fn unbar(&mut self, ticket: Ticket) {
        for at in self.writes.get(&ticket).cloned().into_iter().flatten() {
            let sector = &mut self.sectors[at as usize];
            let mut open = sector.open.remove(&ticket).expect("it is under way");
            open.barred = false;
            for other in sector.open.values_mut() {
                other.beside.insert(open.stamp);
            }
            let reads = self.reads.values_mut().filter(|read| read.sectors.contains(&at));
            reads.for_each(|read| {
                read.allowed[(at - read.sectors.start) as usize].insert(open.stamp)
            });
            sector.open.insert(ticket, open);
        }
    }

    /// Values of a write that the medium does not have now, with their sectors. Zeroes may be anybody's.
    pub(crate) fn absent(&self, ticket: Ticket) -> Vec<(u64, Stamp)> {
        let Some(sectors) = self.writes.get(&ticket).cloned() else { return Vec::new() };
        let each = sectors.clone().zip((self.medium)(sectors));
        let each = each.map(|(at, now)| (at, self.sectors[at as usize].open[&ticket].stamp, now));
        let each = each.filter(|(_, stamp, now)| *stamp != 0 && *now != Some(*stamp));
        each.map(|(at, stamp, _)| (at, stamp)).collect()
    }

    /// None of these values has come to the medium.
    pub(crate) fn stay_away(&self, values: &[(u64, Stamp)]) -> Result<(), String> {
        let came = |(at, stamp): &&(u64, Stamp)| (self.medium)(*at..at + 1) == [Some(*stamp)];
        match values.iter().find(came) {
            Some((at, stamp)) => Err(format!("{stamp} came to sector {at}")),
            None => Ok(()),
        }
    }

    /// The disk ends here from now on, and what was behind is gone.
    pub(crate) fn cut(&mut self, end: u64) {
        self.was_cut = true;
        let gone = self.sectors.iter_mut().skip(end as usize);
        for sector in gone {
            sector.possible = BTreeSet::from([0]);
            sector.durable = BTreeSet::from([0]);
            // Writes that are under way may have been judged when it has its size again.
            sector.durable.extend(sector.open.values().map(|open| open.stamp));
            for open in sector.open.values_mut() {
                open.beside.insert(0);
                open.beside_ever.insert(0);
            }
        }
        for read in self.reads.values_mut() {
            let first = read.sectors.start;
            for at in read.sectors.clone().filter(|at| *at >= end) {
                read.allowed[(at - first) as usize].insert(0);
                read.alone[(at - first) as usize] = false;
            }
        }
    }

    /// A write was refused: it has never happened.
    pub(crate) fn refused(&mut self, ticket: Ticket) -> Result<(), String> {
        let sectors = self.writes.remove(&ticket).expect("it was begun");
        for (at, now) in sectors.clone().zip((self.medium)(sectors)) {
            let sector = &mut self.sectors[at as usize];
            let Open { stamp, seen, .. } = sector.open.remove(&ticket).expect("it is under way");
            if stamp == 0 {
                sector.possible.insert(0);
                continue;
            }
            if seen || now == Some(stamp) {
                return Err(format!("sector {at} has {stamp} of a write that was refused"));
            }
            sector.strike(stamp);
        }
        Ok(())
    }

    /// Whether what a read has begun to read may be another value than one of these two.
    pub(crate) fn may_differ(&self, ticket: Ticket, values: [Stamp; 2]) -> bool {
        let read = &self.reads[&ticket];
        read.allowed.iter().flat_map(|it| &it.0).any(|stamp| !values.contains(stamp))
    }

    /// A flush begins.
    pub(crate) fn flush(&mut self) -> Ticket {
        self.read(0..self.sectors.len() as u64)
    }

    /// A flush was answered: that everything that was answered before it began is durable, or that something was lost.
    pub(crate) fn flushed(&mut self, ticket: Ticket, done: bool) {
        let Read { allowed, .. } = self.reads.remove(&ticket).expect("it was begun");
        if done {
            for (sector, allowed) in self.sectors.iter_mut().zip(allowed) {
                sector.durable.retain(|stamp| allowed.contains(stamp));
            }
        }
    }

    /// The power fails: nothing is under way any more.
    pub(crate) fn lose_power(&mut self) {
        self.reads.clear();
        self.writes.clear();
        for sector in &mut self.sectors {
            sector.open.clear();
            sector.possible.clone_from(&sector.durable);
        }
    }

    /// A write was answered: that it was done, or that it failed.
    pub(crate) fn written(&mut self, ticket: Ticket, done: bool) {
        self.bar(ticket);
        let sectors = self.writes.remove(&ticket).expect("it was begun");
        for at in sectors {
            let sector = &mut self.sectors[at as usize];
            let open = sector.open.remove(&ticket).expect("it is under way");
            if done && !open.may_stay && (self.write_through || open.through) {
                let open = &open;
                sector.durable.retain(|it| *it == open.stamp || open.beside_ever.contains(it));
            }
            if done && !open.may_stay {
                // What was possible before it began and is not of one that overlaps is gone.
                sector.possible.retain(|stamp| open.beside.contains(stamp));
            }
            if !open.barred {
                sector.possible.insert(open.stamp);
            }
            sector.possible.extend(&open.beside);
        }
    }

    /// A write was not made after all. Nothing has seen it.
    pub(crate) fn forget(&mut self, ticket: Ticket) {
        for at in self.writes.remove(&ticket).expect("it was begun") {
            self.sectors[at as usize].open.remove(&ticket);
        }
    }

    /// A read was answered with these values, or failed.
    pub(crate) fn was_read(
        &mut self,
        ticket: Ticket,
        values: Option<&[Stamp]>,
    ) -> Result<(), String> {
        let read = self.reads.remove(&ticket).expect("it was begun");
        for (index, value) in values.unwrap_or_default().iter().enumerate() {
            let at = read.sectors.start + index as u64;
            if !read.allowed[index].contains(value) {
                return Err(format!(
                    "sector {at} was read as {value}, and it can only be one of {:?}",
                    read.allowed[index].0
                ));
            }
            let sector = &mut self.sectors[at as usize];
            if read.alone[index] {
                sector.possible = BTreeSet::from([*value]);
            }
            sector.open.values_mut().filter(|open| open.stamp == *value).for_each(Open::see);
        }
        Ok(())
    }

    /// Nothing is under way: what the medium has.
    pub(crate) fn rests(&self, at: u64, value: Stamp) -> Result<(), String> {
        let Sector { possible, open, .. } = &self.sectors[at as usize];
        assert!(open.is_empty(), "writes are under way");
        match possible.contains(&value) {
            true => Ok(()),
            false => {
                Err(format!("sector {at} is {value} at rest, and can only be one of {possible:?}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_has_a_reason() {
        let look = || Box::new(|sectors: std::ops::Range<u64>| sectors.map(|_| None).collect());
        let mut disk = Disk::new(4, look(), false);
        for touch in [Touch::Reads, Touch::Writes, Touch::Flushes, Touch::Compares] {
            assert!(disk.may_fail(touch, Errors::default()).is_err(), "nothing has: {touch:?}");
        }
        disk.cut(2);
        assert!(disk.may_fail(Touch::Reads, Errors::default()).is_ok(), "it ends before");
        let mut disk = Disk::new(4, look(), false);
        disk.holds(1..=4);
        assert!(disk.may_fail(Touch::Writes, Errors::default()).is_ok(), "nobody may write");
        assert!(disk.may_fail(Touch::Reads, Errors::default()).is_err());
    }

    #[test]
    fn an_older_value_never_returns() {
        let mut disk = Disk::new(4, Box::new(|sectors| sectors.map(|_| None).collect()), false);
        let first = disk.write(0..2, 1, false);
        disk.written(first, true);
        let second = disk.write(0..1, 2, false);
        disk.written(second, true);
        let read = disk.read(0..2);
        assert!(disk.was_read(read, Some(&[2, 1])).is_ok());
        let read = disk.read(0..2);
        assert!(disk.was_read(read, Some(&[1, 1])).is_err());
    }

    #[test]
    fn of_writes_that_overlap_any_may_be_the_last() {
        let mut disk = Disk::new(1, Box::new(|sectors| sectors.map(|_| None).collect()), false);
        let first = disk.write(0..1, 1, false);
        let second = disk.write(0..1, 2, false);
        disk.written(second, true);
        disk.written(first, true);
        let read = disk.read(0..1);
        assert!(disk.was_read(read, Some(&[2])).is_ok());
        assert!(disk.rests(0, 1).is_err(), "the read has settled it");
    }

    #[test]
    fn what_failed_may_have_happened_and_what_is_unanswered_may_yet() {
        let mut disk = Disk::new(1, Box::new(|sectors| sectors.map(|_| None).collect()), false);
        let failed = disk.write(0..1, 1, false);
        disk.written(failed, false);
        for value in [0, 1] {
            assert!(disk.rests(0, value).is_ok());
        }
        let open = disk.write(0..1, 2, false);
        let read = disk.read(0..1);
        assert!(disk.was_read(read, Some(&[2])).is_ok());
        let read = disk.read(0..1);
        assert!(disk.was_read(read, Some(&[0])).is_ok(), "not settled while it is open");
        disk.written(open, true);
        assert!(disk.rests(0, 0).is_err());
    }

    /// Two durable writes overlap; what a third, which fails, has left for others to see is not on the platter.
    #[test]
    fn what_does_not_appear_may_be_durable() {
        let medium = std::rc::Rc::new(std::cell::Cell::new(0));
        let look = std::rc::Rc::clone(&medium);
        let mut disk = Disk::new(
            1,
            Box::new(move |sectors| sectors.map(|_| Some(look.get())).collect()),
            true,
        );
        let (first, second) = (disk.write(0..1, 1, false), disk.write(0..1, 2, false));
        let third = disk.write(0..1, 3, false);
        medium.set(3);
        disk.written(second, true);
        assert!(!disk.sectors[0].possible.contains(&2));
        disk.written(first, true);
        disk.written(third, false);
        disk.lose_power();
        assert!(disk.rests(0, 2).is_ok() && disk.rests(0, 0).is_err());
    }

    #[test]
    fn what_was_cut_off_is_zero_when_the_disk_has_its_size_again() {
        let mut disk = Disk::new(2, Box::new(|sectors| sectors.map(|_| None).collect()), false);
        let first = disk.write(0..2, 1, false);
        disk.written(first, true);
        disk.cut(1);
        assert!(disk.rests(0, 1).is_ok());
        assert!(disk.rests(1, 1).is_err() && disk.rests(1, 0).is_ok());
        let second = disk.write(1..2, 2, false);
        assert_eq!(disk.absent(second), [(1, 2)]);
        disk.written(second, true);
        assert!(disk.rests(1, 2).is_ok());
    }

    #[test]
    fn power_keeps_what_was_flushed() {
        let disk = || {
            let mut disk = Disk::new(1, Box::new(|sectors| sectors.map(|_| None).collect()), false);
            let first = disk.write(0..1, 1, false);
            disk.written(first, true);
            let flush = disk.flush();
            let second = disk.write(0..1, 2, false);
            disk.written(second, true);
            disk.flushed(flush, true);
            disk.lose_power();
            disk
        };
        for (value, may) in [(0, false), (1, true), (2, true)] {
            assert_eq!(disk().rests(0, value).is_ok(), may, "{value}");
        }
        let mut disk = disk();
        let third = disk.write(0..1, 3, false);
        disk.written(third, true);
        let flush = disk.flush();
        disk.flushed(flush, true);
        disk.lose_power();
        assert!(disk.rests(0, 3).is_ok() && disk.rests(0, 2).is_err());
    }
}
