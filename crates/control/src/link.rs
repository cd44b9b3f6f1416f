//! The way to a data plane: one call, one answer.
//!
//! [`Link`] is what the supervisor ([`crate::supervisor`]) needs; [`SocketLink`] is the real one over a Unix
//! socket. Calls block, on the supervisor's own thread.

use protocol::message::{
    Account, Changes, Failure, FailureCode, MINOR, Reply, Request, Selection, VERSION,
};
use protocol::message::{AdapterSpec, DeviceSpec, UplinkKind, UplinkSpec, VolumeKind, VolumeSpec};
use protocol::place::reach;
use protocol::socket::{Connection, FrameError};
use spec::{Failback, FullSpec};
use std::io::ErrorKind;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long a data plane may take for one answer. Opening a volume may have to wait until the writes
/// of a data plane that died have landed, which took seconds where it was measured; preallocating a
/// large file takes longer still.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a data plane may take to say who it is. Whoever does not is stopped, or hangs.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection to a data plane.
pub trait Link: Send {
    /// Sends a request with descriptors and waits for its answer. [`Reply::Error`] is an answer.
    ///
    /// After a [`LinkError`] other than [`LinkError::TooLong`] the link is of no more use.
    fn call(
        &mut self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Reply, Vec<OwnedFd>), LinkError>;

    /// What the data plane has that differs from its account before, on this link; the first one has everything.
    fn account(&mut self) -> Result<Changes, LinkError>;

    /// The same of what is named, whether or not it differs; of a data plane of an earlier version, all that differs.
    fn account_of(&mut self, of: Selection) -> Result<Changes, LinkError>;

    /// The longest message that it carries, either way, in bytes.
    fn message_bytes_max(&self) -> u32;

    /// A stream that hangs up when the data plane goes away, for a thread that waits for just that.
    fn watch(&self) -> Option<UnixStream>;
}

/// Why a data plane did not answer.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Nobody listens on its socket.
    #[error("nobody listens there")]
    Absent,
    /// Somebody listens and does not answer: the process is stopped, or hangs.
    #[error("the data plane{} does not answer", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Silent {
        /// The process, if the system says which it is.
        pid: Option<u32>,
    },
    /// The request is longer than what the data plane takes. It was not sent, and the link is as it was.
    #[error("a message of {bytes} bytes, and the data plane takes {limit}")]
    TooLong {
        /// The length of the request.
        bytes: u64,
        /// What the data plane takes.
        limit: u32,
    },
    /// The connection failed.
    #[error("the data plane does not answer: {0}")]
    Frame(#[from] FrameError),
    /// The two programs have no message version in common.
    #[error("the data plane speaks another version of the messages: {}; restart it", .0.message)]
    Version(Failure),
    /// It answered with something else than what was asked for.
    #[error("the data plane answered with `{0}` out of turn")]
    OutOfTurn(String),
}

impl LinkError {
    /// Whether the other side may well be alive: it only took too long.
    pub fn is_silence(&self) -> bool {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        match self {
            LinkError::Silent { .. } => true,
            LinkError::Frame(FrameError::Io(error)) => {
                matches!(error.kind(), TimedOut | WouldBlock)
            }
            _ => false,
        }
    }
}

/// The process at the other end of a socket.
fn peer(stream: &UnixStream) -> Option<u32> {
    let pid = rustix::net::sockopt::socket_peercred(stream).ok()?.pid;
    u32::try_from(pid.as_raw_nonzero().get()).ok()
}

/// The process that listens on a socket, whether or not it answers.
pub(crate) fn listener(path: &Path) -> Option<u32> {
    peer(&reach(path).ok()?)
}

/// A [`Link`] over a Unix socket.
pub struct SocketLink {
    connection: Connection,
    /// Of the data plane's process.
    pid: u32,
    /// What it knows beyond the version.
    minor: u32,
    /// What one that always tells everything told last.
    told: Account,
}

impl SocketLink {
    /// Connects and greets.
    pub fn connect(path: &Path) -> Result<SocketLink, LinkError> {
        let stream = reach(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => LinkError::Absent,
            // The backlog is full: nobody accepts.
            ErrorKind::WouldBlock => LinkError::Silent { pid: None },
            _ => LinkError::Frame(FrameError::Io(error)),
        })?;
        let pid = peer(&stream);
        let patience = |stream: &UnixStream, time| {
            stream.set_read_timeout(Some(time))?;
            stream.set_write_timeout(Some(time))
        };
        patience(&stream, HELLO_TIMEOUT).map_err(FrameError::Io)?;
        let mut link = SocketLink {
            connection: Connection::new(stream),
            pid: 0,
            minor: 0,
            told: Account::default(),
        };
        match link.call(&Request::Hello { version: VERSION, minor: MINOR }, &[]) {
            Ok((Reply::Hello { pid, minor, .. }, _)) => link.greeted(pid, minor),
            Ok((Reply::Error(failure), _)) => return Err(LinkError::Version(failure)),
            Ok((other, _)) => return Err(LinkError::OutOfTurn(format!("{other:?}"))),
            Err(error) if error.is_silence() => return Err(LinkError::Silent { pid }),
            Err(error) => return Err(error),
        }
        patience(link.connection.stream(), CALL_TIMEOUT).map_err(FrameError::Io)?;
        Ok(link)
    }

    fn greeted(&mut self, pid: u32, minor: u32) {
        (self.pid, self.minor) = (pid, minor.min(MINOR));
        if self.minor >= 1 {
            self.connection.allow_parts();
        }
    }

    fn ask(&mut self, question: &Request) -> Result<Changes, LinkError> {
        let mut reply = self.call(question, &[])?.0;
        if let Reply::Status(now) = reply {
            reply = self.told.tell(now);
        }
        match reply {
            Reply::Changes(changes) => Ok(changes),
            other => Err(LinkError::OutOfTurn(format!("{other:?}"))),
        }
    }

    /// The data plane's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl Link for SocketLink {
    fn call(
        &mut self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Reply, Vec<OwnedFd>), LinkError> {
        let (since, what) = needs(request);
        if self.minor < since {
            let older = Failure {
                code: FailureCode::Invalid,
                message: format!("the data plane is of an earlier version, which cannot {what}"),
                help: Some("restart it: `trunkline dataplane restart NAME`".to_owned()),
            };
            return Ok((Reply::Error(older), Vec::new()));
        }
        self.connection.send(request, fds).map_err(|error| match error {
            FrameError::TooLong { bytes, limit } => LinkError::TooLong { bytes, limit },
            error => LinkError::Frame(error),
        })?;
        Ok(self.connection.receive()?)
    }

    fn account(&mut self) -> Result<Changes, LinkError> {
        self.ask(&Account::question(self.minor))
    }

    fn account_of(&mut self, of: Selection) -> Result<Changes, LinkError> {
        match self.minor {
            ..8 => self.account(),
            _ => self.ask(&Request::ChangesOf(of)),
        }
    }

    fn message_bytes_max(&self) -> u32 {
        self.connection.message_bytes_max()
    }

    fn watch(&self) -> Option<UnixStream> {
        self.connection.stream().try_clone().ok()
    }
}

/// The MINOR of the messages from which on a data plane does all that is asked, and what it is that an earlier one cannot: of several things that which came last.
fn needs(request: &Request) -> (u32, &'static str) {
    match request {
        Request::ResetMarks { .. } => (2, "reset marks"),
        Request::ResetPortMarks { .. } => (4, "reset marks of a port"),
        Request::PutUplink(spec) if spec.accounting => {
            (25, "count what passes a shared adapter by client (accounting)")
        }
        Request::PutUplink(spec) if spec.aggregate.is_some() => {
            (25, "have uplinks of several interfaces (members)")
        }
        Request::PutUplink(spec) if spec.thread => {
            (20, "give a shared adapter a channel of its own (thread=1)")
        }
        Request::PutUplink(spec) if spec.kind == UplinkKind::Xdp => {
            (19, "have uplinks of the kind xdp")
        }
        Request::PutUplink(spec) if spec.netns.is_some() => {
            (18, "have interfaces in another network namespace (netns)")
        }
        Request::PutUplink(UplinkSpec { failover: Some(failover), .. })
            if failover.failback != Failback::AtOnce =>
        {
            (18, "wait before they take a bridge back (fb_delay, noauto_failback)")
        }
        Request::PutUplink(spec) if !spec.is_plain() => (18, "do all that is asked of an uplink"),
        Request::PutUplink(spec)
            if spec.failover.as_ref().is_some_and(|failover| failover.netaddr.is_some()) =>
        {
            (17, "ask for an address outside (netaddr)")
        }
        Request::PutUplink(spec)
            if spec.failover.as_ref().is_some_and(|failover| failover.lease().is_some()) =>
        {
            (15, "fail over across hosts")
        }
        Request::PutUplink(spec) if spec.kind == UplinkKind::Packet => {
            (11, "have uplinks of the kind packet")
        }
        Request::PutUplink(spec) if spec.failover.is_some() => (6, "fail over"),
        Request::PutUplink(_) | Request::RemoveUplink { .. } => (5, "have uplinks"),
        Request::Rollback(spec) if !spec.also.is_empty() => (12, "roll back several LUs at once"),
        Request::Rollback(_) => (10, "roll LUs back"),
        Request::Detach(_) => (13, "detach LUs"),
        Request::Scrub(_) => (20, "scrub storage pools"),
        Request::Copy(_) => (24, "import and export LUs"),
        Request::GrowPvs { .. } => (26, "use what was added to PVs"),
        Request::Layout(_) => (24, "say how an LU lies on its PVs"),
        Request::PutPool(spec) if spec.alone => {
            (24, "open storage pools by one failure group alone")
        }
        Request::PutPool(spec) if spec.full != FullSpec::default() => {
            (24, "set space aside, slow writes, or let them fail where a pool is full")
        }
        Request::PutPool(spec) if !spec.tiers.is_empty() || !spec.placed.is_empty() => {
            (18, "have tiers in storage pools")
        }
        Request::PutVolume(VolumeSpec { kind: VolumeKind::Lu(lu), .. }) if lu.checksums => {
            (21, "keep checksums of LUs")
        }
        Request::PutVolume(VolumeSpec { kind: VolumeKind::Lu(lu), .. })
            if lu.tier.unwrap_or(0) != 0 =>
        {
            (18, "have tiers in storage pools")
        }
        Request::PutVolume(VolumeSpec { kind: VolumeKind::Lu(lu), .. })
            if lu.fresh && lu.snapshot.is_some() =>
        {
            (10, "make clones")
        }
        Request::PutPool(spec) if !spec.mirror.is_empty() => (16, "mirror storage pools"),
        Request::PutPool(spec) if !spec.snapshots.is_empty() => (10, "make snapshots"),
        Request::PutPool(_) | Request::RemovePool { .. } => (7, "serve storage pools"),
        Request::Trace(_) => (9, "watch frames"),
        Request::Tallies(_) => (25, "say what has passed a shared adapter by client"),
        Request::PutAdapter(AdapterSpec { device: DeviceSpec::Ethernet(card), .. })
            if !card.is_plain() =>
        {
            (18, "do all that is asked of a virtual Ethernet adapter")
        }
        _ => (0, ""),
    }
}

#[cfg(test)]
mod tests {
    use spec::{LuSpec, PoolSpec, SnapshotSpec, TierSpec};

    use super::*;

    #[test]
    fn of_all_that_a_pool_or_an_lu_asks_for_the_newest_counts() {
        let snapshot = SnapshotSpec { id: 1, lus: vec![1], given_up: false };
        let pools = (0..16).map(|bits| {
            let [snapshots, mirror, tiers, full] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            let newest =
                [(true, 7), (snapshots, 10), (mirror, 16), (tiers, 18), (full, 24)].to_vec();
            let spec = PoolSpec {
                snapshots: snapshots.then(|| snapshot.clone()).into_iter().collect(),
                mirror: mirror.then(|| "/m".into()).into_iter().collect(),
                full: FullSpec { throttle_percent: full.then_some(90), lus: Vec::new() },
                tiers: tiers.then(|| TierSpec { tier: 1, pvs: Vec::new() }).into_iter().collect(),
                ..PoolSpec::default()
            };
            (Request::PutPool(spec), newest)
        });
        let lus = (0..8).map(|bits| {
            let [clone, tier, checksums] = [1, 2, 4].map(|bit| bits & bit != 0);
            let newest = [(true, 0), (clone, 10), (tier, 18), (checksums, 21)].to_vec();
            let lu = LuSpec {
                fresh: clone,
                snapshot: clone.then_some(3),
                tier: tier.then_some(1),
                checksums,
                ..LuSpec::of("p")
            };
            (Request::PutVolume(VolumeSpec { kind: lu.into(), ..VolumeSpec::default() }), newest)
        });
        for (request, newest) in pools.chain(lus) {
            let newest = newest.into_iter().filter(|(asked, _)| *asked).map(|(_, minor)| minor);
            assert_eq!(Some(needs(&request).0), newest.max(), "{request:?}");
        }
    }
}
