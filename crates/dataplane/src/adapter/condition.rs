//! How an adapter is, and which clients it had.

use std::collections::VecDeque;

use protocol::message::{ClientStatus, VISITS_MAX, VisitStatus};
use protocol::now_ms;

use super::ended::Ended;

/// What the state of an adapter is made of. Locked for moments only, also by channels.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    pub(super) connected: bool,
    pub(super) client: Option<ClientStatus>,
    /// Queues that the client has.
    pub(super) num_io_queues: u16,
    /// Those that it uses, and their channels.
    pub(super) queues: u16,
    pub(super) channels: Vec<u32>,
    /// It has an in-flight region.
    pub(super) keeps_inflight: bool,
    /// The client broke a rule.
    pub(super) broken: bool,
    pub(super) reason: Option<String>,
    pub(super) connections: u64,
    /// The last [`VISITS_MAX`] clients, oldest first.
    pub(super) visits: VecDeque<VisitStatus>,
}

impl Condition {
    /// Somebody has connected; its number.
    pub(super) fn come(&mut self, client: Option<ClientStatus>) -> u64 {
        let mut before = std::mem::take(self);
        let connections = before.connections + 1;
        if before.visits.len() == VISITS_MAX {
            before.visits.pop_front();
        }
        before.visits.push_back(VisitStatus {
            connection: connections,
            client,
            came_at_ms: now_ms(),
            left_at_ms: None,
            reason: None,
        });
        let visits = before.visits;
        *self = Condition { connected: true, client, connections, visits, ..Condition::default() };
        connections
    }

    /// It has left, and its queues are at rest; how many it had, and why it left if that was not by closing the connection.
    pub(super) fn leave(&mut self, ended: &Ended) -> (u16, Option<String>) {
        let Condition { broken, reason, queues, connections, mut visits, .. } =
            std::mem::take(self);
        let reason = reason.filter(|_| broken || !ended.is_ordinary()).or_else(|| ended.reason());
        if let Some(visit) = visits.back_mut() {
            (visit.left_at_ms, visit.reason) = (Some(now_ms()), reason.clone());
        }
        *self = Condition { connections, visits, reason: reason.clone(), ..Condition::default() };
        (queues, reason)
    }

    pub(super) fn break_down(&mut self, queue: u16, what: &str) {
        self.broken = true;
        self.reason = Some(format!("queue {queue}: {what}"));
    }
}
