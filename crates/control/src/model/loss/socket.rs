//! Sockets that are given to somebody else: a client that is connected stays so, and does not get in again after the death of its data plane.

use super::{Client, Connected, of};
use crate::model::resolve::Wanted;
use protocol::message::{AdapterSpec, SocketRole};
use protocol::place::Access;
use std::collections::{BTreeMap, BTreeSet};

/// Who a process is to the file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) groups: BTreeSet<u32>,
}

/// Looks up who the clients are whose sockets a change gives to somebody else.
pub(crate) fn identify(
    connected: &mut Connected,
    (now, next): (&BTreeMap<String, Wanted>, &BTreeMap<String, Wanted>),
) {
    for (adapter, client) in connected {
        let (Some(before), Some(after)) = (of(now, adapter), of(next, adapter)) else { continue };
        if Access::of(before) != Access::of(after) {
            client.identity = client.process.and_then(|process| {
                let status =
                    std::fs::read_to_string(format!("/proc/{}/status", process.pid)).ok()?;
                // It may be another process by now, or have become somebody else.
                identity(&status).filter(|found| found.uid == process.uid)
            });
        }
    }
}

/// From `/proc/PID/status`.
fn identity(status: &str) -> Option<Identity> {
    let numbers = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    // Real, effective, saved, and that of the file system.
    let (uid, gid) = (*numbers("Uid:")?.get(3)?, *numbers("Gid:")?.get(3)?);
    Some(Identity { uid, groups: numbers("Groups:")?.into_iter().chain([gid]).collect() })
}

/// Whether a user may connect to a socket: that takes the permission to write.
fn may_connect(identity: &Identity, (owner, group): (u32, u32), mode: u32) -> bool {
    const WRITE: u32 = 0o2;
    let shift = match identity {
        Identity { uid: 0, .. } => return true,
        Identity { uid, .. } if *uid == owner => 6,
        Identity { groups, .. } if groups.contains(&group) => 3,
        Identity { .. } => 0,
    };
    (mode >> shift) & WRITE != 0
}

/// Why a client that is connected would not get in any more.
pub(super) fn lost(before: &AdapterSpec, after: &AdapterSpec, client: &Client) -> Option<String> {
    let accesses = [Access::of(before), Access::of(after)];
    if accesses[0] == accesses[1] || after.socket_role == SocketRole::Client {
        return None;
    }
    // Who is not known is refused by the data plane.
    let [then, next] = accesses.map(|access| Some((access.of_whom().ok()?, access.mode)));
    let ((owners, mode), uid) = (next?, client.process?.uid);
    // Where its groups are not known it came in by some that the socket had.
    let identity = client.identity.clone().unwrap_or_else(|| Identity {
        uid,
        groups: then.map(|((_, group), _)| group).into_iter().collect(),
    });
    let could = then.is_some_and(|(owners, mode)| may_connect(&identity, owners, mode));
    if may_connect(&identity, owners, mode) || !could {
        return None;
    }
    let ((owner, group), socket) = (owners, after.socket.display());
    Some(format!(
        "its socket {socket} when it connects again, as after a restart of the data plane: it is user {uid}, who could not \
         open what belongs to user {owner} and group {group} with mode {mode:04o}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_who_its_status_says() {
        let status = "Name:\tqemu\nUid:\t107\t107\t107\t107\nGid:\t36\t36\t36\t36\nFDSize:\t64\nGroups:\t11 36 \n";
        assert_eq!(identity(status), Some(Identity { uid: 107, groups: [11, 36].into() }));
        assert_eq!(identity("Name:\tqemu\nUid:\t107\n"), None);
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        assert_eq!(identity(&own).unwrap().uid, rustix::process::geteuid().as_raw());
    }

    #[test]
    fn the_first_class_that_fits_decides() {
        let user = Identity { uid: 107, groups: [36].into() };
        for (owners, mode, expected) in [
            ((107, 36), 0o600, true),
            ((107, 36), 0o066, false),
            ((0, 36), 0o060, true),
            ((0, 36), 0o606, false),
            ((0, 0), 0o606, true),
            ((0, 0), 0o660, false),
            ((0, 0), 0o664, false),
        ] {
            assert_eq!(may_connect(&user, owners, mode), expected, "{owners:?} {mode:o}");
        }
        assert!(may_connect(&Identity::default(), (107, 36), 0));
    }
}
