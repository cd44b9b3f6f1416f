//! What the clients of a unit know of each other: whose commands are sent, who is here, and what a function that was answered has ended.

use std::collections::{BTreeMap, BTreeSet};

use crate::fence::{Fence, Order};
use crate::oracle::{Disk, Stamp, Ticket};

/// Names a command: whose it is, and its token.
pub(crate) type Name = (usize, u64);

/// A client with all its queues and its unit: another value whenever that was not so meanwhile. `None`: it is not so.
pub(crate) type Presence = Option<(u64, u64)>;

/// What the clients of a unit know of each other.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// Commands that are sent, with the write that each is, if it is one.
    pub sent: BTreeMap<Name, Option<Ticket>>,
    /// Those of them whose client was shut out when they were under way.
    pub shut_out: BTreeSet<Name>,
    /// Commands whose end must be in the ring by now.
    pub due: BTreeSet<Name>,
    /// How often the queues of each client came or went, and whether they are all here: even.
    pub shifts: Vec<u64>,
    /// Deaths of the process.
    pub deaths: u64,
    /// How often each client has come, whether or not a process died in between.
    pub visits: Vec<u64>,
    /// The visit at which all queues of a client have come, by client.
    pub arrived: Vec<Option<u64>>,
    /// Values that COMPARE AND WRITE has replaced.
    pub won: BTreeSet<(u64, Stamp)>,
    /// Its reservations.
    pub fence: Fence,
    /// Orders for them that are sent.
    pub orders: BTreeMap<Name, Order>,
    /// How often the unit was taken from each client or given to it: begun and done. Modulo 4 it is [`Unit::THERE`], being taken, [`Unit::AWAY`], or
    /// being given.
    pub maps: Vec<u64>,
    /// What must not come to the medium while the unit is taken from a client.
    withdrawn: BTreeMap<usize, Vec<(u64, Stamp)>>,
    /// The medium was smaller at some time.
    pub was_cut: bool,
    /// Whatever ends commands, by client: how often that was asked for, and how many of these are under way.
    ends: Vec<(u64, u64)>,
}

impl Unit {
    /// A client that was shut out is registered again. What it had put into its rings by then, and nobody had looked at, may happen.
    pub(crate) fn let_in(&mut self, who: usize, disk: &mut Disk) {
        let theirs = self.shut_out.range((who, 0)..=(who, u64::MAX)).copied();
        for name in theirs.collect::<Vec<_>>() {
            self.shut_out.remove(&name);
            self.sent.get(&name).into_iter().flatten().for_each(|ticket| disk.unbar(*ticket));
        }
    }

    /// In `maps`: a client has the unit.
    pub(crate) const THERE: u64 = 0;
    /// A client has it not.
    pub(crate) const AWAY: u64 = 2;

    /// Whose commands a function may end.
    fn ended_by(&mut self, client: usize, subtype: u32) -> impl Iterator<Item = &mut (u64, u64)> {
        let all = matches!(subtype, 3 | 5);
        let mine = self.ends.iter_mut().enumerate();
        let mine = mine.filter(move |(number, _)| subtype != 6 && (all || *number == client));
        mine.map(|(_, ends)| ends)
    }

    /// A function is sent.
    pub(crate) fn function_begins(&mut self, client: usize, subtype: u32) {
        self.ended_by(client, subtype)
            .for_each(|(times, now)| (*times, *now) = (*times + 1, *now + 1));
    }

    /// It is answered.
    pub(crate) fn function_ends(&mut self, client: usize, subtype: u32) {
        self.ended_by(client, subtype).for_each(|(_, now)| *now -= 1);
    }

    /// Somebody is to be shut out, with his commands.
    pub(crate) fn abort_begins(&mut self) {
        self.ends.iter_mut().for_each(|(times, now)| (*times, *now) = (*times + 1, *now + 1));
    }

    /// That is answered.
    pub(crate) fn abort_ends(&mut self) {
        self.ends.iter_mut().for_each(|(_, now)| *now -= 1);
    }

    /// How often the commands of a client may have been ended; `None` while they may be now.
    pub(crate) fn ends_of(&self, client: usize) -> Option<u64> {
        let (times, now) = self.ends[client];
        (now == 0 && self.presence(client).is_some()).then_some(times)
    }

    /// Something happens to a client in which its commands may end.
    fn upsets(&mut self, client: usize) {
        if let Some((times, _)) = self.ends.get_mut(client) {
            *times += 1;
        }
    }

    /// It is being taken from a client.
    pub(crate) fn take(&mut self, client: usize) {
        self.upsets(client);
        self.maps[client] += 1;
    }

    /// It is taken: of what the client has sent nothing happens.
    pub(crate) fn taken(&mut self, client: usize, disk: &Disk) {
        self.maps[client] += 1;
        let sent = self.sent.range((client, 0)..=(client, u64::MAX));
        let values = sent.filter_map(|(_, ticket)| *ticket).flat_map(|ticket| disk.absent(ticket));
        self.withdrawn.insert(client, values.collect());
    }

    /// It is being given to a client again.
    pub(crate) fn give(&mut self, client: usize, disk: &Disk) -> Result<(), String> {
        self.maps[client] += 1;
        self.look_at_withdrawn(client, disk)
    }

    /// It is given.
    pub(crate) fn given(&mut self, client: usize) {
        self.maps[client] += 1;
    }

    /// Nothing has come from clients that do not have the unit.
    fn look_at_withdrawn(&mut self, client: usize, disk: &Disk) -> Result<(), String> {
        let values = self.withdrawn.remove(&client).unwrap_or_default();
        let came = |what| format!("{what}, of client {client} from which the unit was taken");
        disk.stay_away(&values).map_err(came)
    }

    /// How a client is there.
    pub(crate) fn presence(&self, client: usize) -> Presence {
        let (shifts, maps) = (self.shifts[client], self.maps[client]);
        (shifts.is_multiple_of(2) && maps % 4 == Unit::THERE).then_some((shifts, maps))
    }

    /// A client is there, or is there again: none of its queues is.
    pub(crate) fn introduce(&mut self, client: usize) {
        if self.shifts.len() == client {
            self.shifts.push(1);
            self.visits.push(0);
            self.arrived.push(None);
            self.maps.push(0);
            self.ends.push((0, 0));
        }
    }

    /// The hosts of the clients have lost their power.
    pub(crate) fn lose_power(&mut self) {
        self.sent.clear();
        self.shut_out.clear();
        self.due.clear();
        self.won.clear();
        self.orders.clear();
        self.ends.iter_mut().for_each(|(_, now)| *now = 0);
        self.fence.lose_power();
    }

    /// The queues of a client begin to come or go, or are all here again.
    pub(crate) fn shift(&mut self, client: usize) {
        if let Some(shifts) = self.shifts.get_mut(client) {
            *shifts += 1;
        }
    }

    /// All queues of a client have come for the first time in a visit of its.
    pub(crate) fn arrive(&mut self, client: usize) {
        if let Some(arrived) = self.arrived.get_mut(client) {
            *arrived = Some(self.visits[client]);
        }
        self.shift(client);
    }

    /// A client goes, to come again.
    pub(crate) fn leave(&mut self, client: usize) {
        self.upsets(client);
        if let Some(visits) = self.visits.get_mut(client) {
            *visits += 1;
        }
        self.shift(client);
    }

    /// The process dies: no queue is here. The next one has the unit for everybody.
    pub(crate) fn die(&mut self, disk: &Disk) -> Result<(), String> {
        self.deaths += 1;
        self.fence.die();
        for client in 0..self.maps.len() {
            self.maps[client] = self.maps[client].next_multiple_of(4);
            self.look_at_withdrawn(client, disk)?;
        }
        self.visits.iter_mut().for_each(|visits| *visits += 1);
        self.shifts.iter_mut().for_each(|shifts| *shifts += 1 + *shifts % 2);
        (0..self.ends.len()).for_each(|client| self.upsets(client));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_for_what_concerns_their_client() {
        let mut unit = Unit::default();
        for client in 0..2 {
            unit.introduce(client);
            unit.arrive(client);
        }
        let before = unit.ends_of(1);
        assert!(before.is_some());
        // ABORT TASK SET of the other one; then CLEAR TASK SET.
        unit.function_begins(0, 1);
        assert_eq!((unit.ends_of(0), unit.ends_of(1)), (None, before));
        unit.function_ends(0, 1);
        unit.function_begins(0, 3);
        assert_eq!(unit.ends_of(1), None, "it may end at any time");
        unit.function_ends(0, 3);
        assert!(unit.ends_of(1).is_some() && unit.ends_of(1) != before);
        // A query ends nothing.
        let before = unit.ends_of(0);
        unit.function_begins(0, 6);
        assert_eq!(unit.ends_of(0), before);
    }
}
