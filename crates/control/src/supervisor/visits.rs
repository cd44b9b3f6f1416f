//! Who came to an adapter, who left it, and what a client negotiated anew, as the accounts of its data plane tell it.
//!
//! A data plane remembers the last clients of each adapter with their times ([`VisitStatus`]), so that those who came and went between two
//! accounts are told, and each at the time at which it was so. One of an earlier version says no more than how many there were: of
//! these the last is told, at the time of the account.

use crate::caller::Caller;
use crate::model::loss::has_client;
use crate::trail::Kind;
use protocol::message::{AdapterStatus, Status, VisitStatus};
use std::collections::BTreeMap;

/// Something that happened to an adapter, shared ones among them; without a time, just now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) at_ms: Option<u64>,
    pub(super) kind: Kind,
    pub(super) adapter: String,
    pub(super) message: String,
}

/// What happened between two accounts. With `known_until` it is the first of this server: then all counts that a data plane remembers of an
/// adapter after that moment, in milliseconds since 1970.
pub(super) fn between(
    before: &Status,
    now: &Status,
    known_until: Option<impl Fn(&str) -> u64>,
) -> Vec<Seen> {
    // Of another life it says nothing.
    let known = before.adapters.iter().filter(|_| before.pid == now.pid);
    let known: BTreeMap<&str, &AdapterStatus> =
        known.map(|earlier| (earlier.spec.name.as_str(), earlier)).collect();
    let mut all = Vec::new();
    for adapter in &now.adapters {
        let name = adapter.spec.name.as_str();
        let earlier = known.get(name).copied();
        let mut seen = match &known_until {
            Some(until) if !adapter.visits.is_empty() => after(adapter, until(name)),
            _ => visits(earlier, adapter),
        };
        seen.extend(earlier.into_iter().flat_map(|earlier| renegotiated(earlier, adapter)));
        let seen = seen.into_iter().map(|(at_ms, kind, message)| Seen {
            at_ms,
            kind,
            adapter: name.to_owned(),
            message,
        });
        all.extend(seen);
    }
    all.extend(now.uplinks.iter().filter_map(|uplink| {
        let (sea, is) = (&uplink.spec.failover.as_ref()?.sea, uplink.failover.as_ref()?);
        let earlier = before.uplinks.iter().find(|earlier| earlier.spec.name == uplink.spec.name);
        let was = earlier.filter(|_| before.pid == now.pid).and_then(|it| it.failover.as_ref());
        // The first account of this server tells what there was before it.
        let tells = known_until.is_none() && was.map(|was| was.since_ms) != Some(is.since_ms);
        tells.then(|| Seen {
            at_ms: Some(is.since_ms),
            kind: Kind::Failover,
            adapter: sea.clone(),
            message: format!("{}: {}", is.state, is.reason),
        })
    }));
    all
}

type Told = (Option<u64>, Kind, String);

fn came(visit: &VisitStatus) -> Told {
    let who = visit.client.map(|client| format!(", {}", Caller::from(client))).unwrap_or_default();
    let message = format!("connection {}{who}", visit.connection);
    (Some(visit.came_at_ms), Kind::ClientConnected, message)
}

fn left(visit: &VisitStatus) -> Option<Told> {
    let reason = visit.reason.as_deref().unwrap_or("it closed the connection");
    visit.left_at_ms.map(|at| (Some(at), Kind::ClientLeft, reason.to_owned()))
}

/// Clients that came or went since an earlier account.
fn visits(earlier: Option<&AdapterStatus>, now: &AdapterStatus) -> Vec<Told> {
    let connections = earlier.map_or(0, |earlier| earlier.connections);
    let had = earlier.filter(|earlier| has_client(earlier)).map(|_| connections);
    let last = of_earlier_version(now);
    let remembered: Vec<&VisitStatus> = now.visits.iter().chain(&last).collect();
    let mut told = Vec::new();
    match remembered.iter().find(|visit| Some(visit.connection) == had) {
        Some(visit) => told.extend(left(visit)),
        // That was too long ago.
        None if had.is_some() => {
            told.push((None, Kind::ClientLeft, "it closed the connection".to_owned()));
        }
        None => {}
    }
    let first = remembered.first().map_or(now.connections + 1, |visit| visit.connection);
    if first > connections + 1 && last.is_none() {
        let message = format!("connections {} to {}, which left again", connections + 1, first - 1);
        told.push((None, Kind::ClientConnected, message));
    }
    for visit in remembered.into_iter().filter(|visit| visit.connection > connections) {
        told.push(came(visit));
        told.extend(left(visit));
    }
    told.into_iter().map(|(at, kind, message)| (at.filter(|at| *at > 0), kind, message)).collect()
}

/// The last visit, of a data plane that remembers none; at no time.
fn of_earlier_version(now: &AdapterStatus) -> Option<VisitStatus> {
    (now.visits.is_empty() && now.connections > 0).then(|| VisitStatus {
        connection: now.connections,
        client: now.client,
        came_at_ms: 0,
        left_at_ms: (!has_client(now)).then_some(0),
        reason: now.reason.clone(),
    })
}

/// Clients that came or went after a moment.
fn after(now: &AdapterStatus, moment: u64) -> Vec<Told> {
    let all = now.visits.iter().flat_map(|visit| std::iter::once(came(visit)).chain(left(visit)));
    all.filter(|(at, ..)| *at > Some(moment)).collect()
}

/// What the same client has otherwise than it had.
fn renegotiated(earlier: &AdapterStatus, now: &AdapterStatus) -> Vec<Told> {
    let same = has_client(earlier) && has_client(now) && earlier.connections == now.connections;
    let tell = |what: &str, before: u16, now: u16| {
        (before != now).then(|| (None, Kind::Renegotiated, format!("{what}: {before}, then {now}")))
    };
    let channels = tell("channels", earlier.spec.channels, now.spec.channels);
    // From none and to none is a start and a reset.
    let counts = earlier.client_queues != 0 && now.client_queues != 0;
    let queues = tell("queues of the client", earlier.client_queues, now.client_queues);
    channels.into_iter().chain(queues.filter(|_| counts)).filter(|_| same).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::message::{AdapterSpec, AdapterState};

    fn status(pid: u32, state: AdapterState, connections: u64) -> Status {
        let desired = crate::config::read(
            "[volume.v]\nkind=\"null\"\nsize=4096\n[adapter.a]\nvolume=\"v\"\n",
        );
        let paths = crate::paths::Paths::in_one("/run/t");
        let wanted = crate::model::resolve::wanted(&desired.unwrap(), "main", &paths);
        let spec: AdapterSpec = wanted.adapters["a"].clone();
        let (reason, channel_of_queue, features) = (None, Vec::new(), Vec::new());
        let adapter = AdapterStatus {
            spec: spec.into(),
            state,
            reason,
            hidden: None,
            client_queues: 0,
            client_num_io_queues: 0,
            channel_of_queue,
            connections,
            visits: Vec::new(),
            features,
            client: None,
            becoming: false,
        };
        Status { pid, adapters: vec![adapter], ..Status::default() }
    }

    fn since(before: &Status, now: &Status) -> Vec<(Option<u64>, Kind, String)> {
        let seen = between(before, now, None::<fn(&str) -> u64>);
        seen.into_iter().map(|seen| (seen.at_ms, seen.kind, seen.message)).collect()
    }

    #[test]
    fn another_number_of_channels_or_queues_under_a_client_is_seen() {
        let before = status(1, AdapterState::Running, 1);
        let mut now = before.clone();
        let mut spec = AdapterSpec::clone(&now.adapters[0].spec);
        spec.channels = 3;
        now.adapters[0].spec = spec.into();
        let message = "channels: 0, then 3".to_owned();
        assert_eq!(since(&before, &now), [(None, Kind::Renegotiated, message)]);
        assert_eq!(since(&status(1, AdapterState::Listening, 0), &now).len(), 1, "it has come");
        // Other queues of the same client; one that has none is about to have some.
        let mut more = now.clone();
        (now.adapters[0].client_queues, more.adapters[0].client_queues) = (2, 8);
        let message = "queues of the client: 2, then 8".to_owned();
        assert_eq!(since(&now, &more), [(None, Kind::Renegotiated, message)]);
        more.adapters[0].client_queues = 0;
        assert_eq!((since(&now, &more), since(&more, &now)), (vec![], vec![]));
    }

    #[test]
    fn of_a_data_plane_that_remembers_no_client_the_last_is_seen() {
        use AdapterState::{Listening, Running};
        use Kind::{ClientConnected as Came, ClientLeft as Left};
        for (before, now, expected) in [
            ((1, Listening, 0), (1, Listening, 0), vec![]),
            ((1, Listening, 0), (1, Running, 1), vec![Came]),
            ((1, Running, 1), (1, Running, 1), vec![]),
            ((1, Running, 1), (1, Listening, 1), vec![Left]),
            ((1, Running, 1), (1, Running, 2), vec![Left, Came]),
            ((1, Listening, 1), (1, Listening, 2), vec![Came, Left]),
            // Another process: its client has come to it.
            ((1, Running, 1), (2, Running, 1), vec![Came]),
        ] {
            let state = |(pid, state, connections)| status(pid, state, connections);
            let found = since(&state(before), &state(now));
            let kinds: Vec<(Option<u64>, Kind)> = found.iter().map(|it| (it.0, it.1)).collect();
            let expected: Vec<_> = expected.into_iter().map(|kind| (None, kind)).collect();
            assert_eq!(kinds, expected, "{before:?} to {now:?}");
        }
    }

    /// An account with these connections, each with the times of its coming and going.
    fn remembered(visits: &[(u64, u64, Option<u64>)]) -> Status {
        let last = visits.last().unwrap();
        let state = if last.2.is_some() { AdapterState::Listening } else { AdapterState::Running };
        let mut status = status(1, state, last.0);
        let visit = |&(connection, came_at_ms, left_at_ms): &(u64, u64, Option<u64>)| {
            let (client, reason) = (None, None);
            VisitStatus { connection, client, came_at_ms, left_at_ms, reason }
        };
        status.adapters[0].visits = visits.iter().map(visit).collect();
        status
    }

    #[test]
    fn clients_that_come_and_go_between_two_accounts_are_told_each_at_its_time() {
        use Kind::{ClientConnected as Came, ClientLeft as Left};
        let before = remembered(&[(1, 10, None)]);
        let all = [(1, 10, Some(20)), (2, 30, Some(40)), (3, 50, None)];
        let now = remembered(&all);
        let told = |found: Vec<(Option<u64>, Kind, String)>| {
            found.into_iter().map(|(at, kind, _)| (at.unwrap_or(0), kind)).collect::<Vec<_>>()
        };
        let expected = [(20, Left), (30, Came), (40, Left), (50, Came)];
        assert_eq!(told(since(&before, &now)), expected);
        assert_eq!(since(&now, &now), []);
        // Of more than are remembered, those before are counted.
        let late = remembered(&[(8, 70, Some(80)), (9, 90, None)]);
        let found = since(&now, &late);
        assert_eq!(found[1].2, "connections 4 to 7, which left again");
        assert_eq!(told(found), [(0, Left), (0, Came), (70, Came), (80, Left), (90, Came)]);
        // What another server noted is not told again, and what came after that is.
        let known_until = |name: &str| if name == "a" { 30 } else { 0 };
        let found = between(&now, &now, Some(known_until));
        let found: Vec<_> =
            found.into_iter().map(|seen| (seen.at_ms.unwrap(), seen.kind)).collect();
        assert_eq!(found, [(40, Left), (50, Came)]);
    }
}
