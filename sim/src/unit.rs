//! What the clients of a unit know of each other: whose commands are sent, who is here, and what a function that was answered has ended.

use std::collections::{BTreeMap, BTreeSet};

use crate::oracle::{Stamp, Ticket};

/// Names a command: whose it is, and its token.
pub type Name = (usize, u64);

/// What the clients of a unit know of each other.
#[derive(Debug, Default)]
pub struct Unit {
    /// Commands that are sent, with the write that each is, if it is one.
    pub sent: BTreeMap<Name, Option<Ticket>>,
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
}

impl Unit {
    /// A client is there, or is there again: none of its queues is.
    pub fn introduce(&mut self, client: usize) {
        if self.shifts.len() == client {
            self.shifts.push(1);
            self.visits.push(0);
            self.arrived.push(None);
        }
    }

    /// The hosts of the clients have lost their power.
    pub fn lose_power(&mut self) {
        self.sent.clear();
        self.due.clear();
        self.won.clear();
    }

    /// The queues of a client begin to come or go, or are all here again.
    pub fn shift(&mut self, client: usize) {
        if let Some(shifts) = self.shifts.get_mut(client) {
            *shifts += 1;
        }
    }

    /// All queues of a client have come for the first time in a visit of its.
    pub fn arrive(&mut self, client: usize) {
        if let Some(arrived) = self.arrived.get_mut(client) {
            *arrived = Some(self.visits[client]);
        }
        self.shift(client);
    }

    /// A client goes, to come again.
    pub fn leave(&mut self, client: usize) {
        if let Some(visits) = self.visits.get_mut(client) {
            *visits += 1;
        }
        self.shift(client);
    }

    /// The process dies: no queue is here.
    pub fn die(&mut self) {
        self.deaths += 1;
        self.visits.iter_mut().for_each(|visits| *visits += 1);
        self.shifts.iter_mut().for_each(|shifts| *shifts += 1 + *shifts % 2);
    }
}
