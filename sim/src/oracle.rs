//! What a disk may answer: for each sector the values that it may have, from what was asked of it and when that was answered.
//!
//! - A read returns a value that was written before the read ended, unless another one has surely replaced it.
//! - A write that was answered has replaced what was there before it began. Of writes that overlap in time any may be the last.
//! - A write that failed, or that nobody has answered, may have happened or not; from its answer on nothing of it happens any more.
//! - A read during which nothing was written settles which of the possible values it is.

use std::collections::{BTreeMap, BTreeSet};

/// A value of a sector: the number of the write that it is from; 0: zeroes.
pub type Stamp = u64;

/// Names a request that is under way.
pub type Ticket = u64;

#[derive(Debug, Default, Clone)]
struct Sector {
    /// What may be there while nothing is written.
    possible: BTreeSet<Stamp>,
    /// Writes under way, each with those that were under way at any time beside it, and their values.
    open: BTreeMap<Ticket, Open>,
}

#[derive(Debug, Clone)]
struct Open {
    stamp: Stamp,
    /// Values of writes that overlap.
    beside: BTreeSet<Stamp>,
    /// The old value may stay: a discard.
    may_stay: bool,
}

#[derive(Debug)]
struct Read {
    sectors: std::ops::Range<u64>,
    allowed: Vec<BTreeSet<Stamp>>,
    /// No write overlapped, for each sector.
    alone: Vec<bool>,
}

/// A disk as it may be.
#[derive(Debug)]
pub struct Disk {
    sectors: Vec<Sector>,
    reads: BTreeMap<Ticket, Read>,
    writes: BTreeMap<Ticket, std::ops::Range<u64>>,
    next: Ticket,
}

impl Disk {
    /// Of so many sectors, all zeroes.
    pub fn new(sectors: u64) -> Disk {
        let blank = Sector { possible: BTreeSet::from([0]), open: BTreeMap::new() };
        Disk {
            sectors: vec![blank; sectors as usize],
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            next: 1,
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.next += 1;
        self.next
    }

    /// A read begins.
    pub fn read(&mut self, sectors: std::ops::Range<u64>) -> Ticket {
        let ticket = self.ticket();
        let of = |at: u64| {
            let sector = &self.sectors[at as usize];
            let open = sector.open.values().map(|open| open.stamp);
            (sector.possible.iter().copied().chain(open).collect(), sector.open.is_empty())
        };
        let (allowed, alone) = sectors.clone().map(of).unzip();
        self.reads.insert(ticket, Read { sectors, allowed, alone });
        ticket
    }

    /// A write of one value begins; 0 is zeroes. `may_stay`: it may as well leave what is there.
    pub fn write(&mut self, sectors: std::ops::Range<u64>, stamp: Stamp, may_stay: bool) -> Ticket {
        let ticket = self.ticket();
        for at in sectors.clone() {
            let sector = &mut self.sectors[at as usize];
            let mut beside = BTreeSet::new();
            for open in sector.open.values_mut() {
                open.beside.insert(stamp);
                beside.insert(open.stamp);
            }
            sector.open.insert(ticket, Open { stamp, beside, may_stay });
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

    /// A write was answered: that it was done, or that it failed.
    pub fn written(&mut self, ticket: Ticket, done: bool) {
        let sectors = self.writes.remove(&ticket).expect("it was begun");
        for at in sectors {
            let sector = &mut self.sectors[at as usize];
            let open = sector.open.remove(&ticket).expect("it is under way");
            if done && !open.may_stay {
                // What was possible before it began and is not of one that overlaps is gone.
                sector.possible.retain(|stamp| open.beside.contains(stamp));
            }
            sector.possible.insert(open.stamp);
            sector.possible.extend(&open.beside);
        }
    }

    /// A write was not made after all. Nothing has seen it.
    pub fn forget(&mut self, ticket: Ticket) {
        for at in self.writes.remove(&ticket).expect("it was begun") {
            self.sectors[at as usize].open.remove(&ticket);
        }
    }

    /// A read was answered with these values, or failed.
    pub fn was_read(&mut self, ticket: Ticket, values: Option<&[Stamp]>) -> Result<(), String> {
        let read = self.reads.remove(&ticket).expect("it was begun");
        for (index, value) in values.unwrap_or_default().iter().enumerate() {
            let at = read.sectors.start + index as u64;
            if !read.allowed[index].contains(value) {
                return Err(format!(
                    "sector {at} was read as {value}, and it can only be one of {:?}",
                    read.allowed[index]
                ));
            }
            if read.alone[index] {
                self.sectors[at as usize].possible = BTreeSet::from([*value]);
            }
        }
        Ok(())
    }

    /// Nothing is under way: what the medium has.
    pub fn rests(&self, at: u64, value: Stamp) -> Result<(), String> {
        let Sector { possible, open } = &self.sectors[at as usize];
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
    fn an_older_value_never_returns() {
        let mut disk = Disk::new(4);
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
        let mut disk = Disk::new(1);
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
        let mut disk = Disk::new(1);
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
}
