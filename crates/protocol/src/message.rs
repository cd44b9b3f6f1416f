//! Requests and replies. The specifications in them are those of [`spec`].

mod changes;
mod copy;
mod found;
mod scsi;
mod seen;
mod tallies;
mod trace;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use changes::{Account, Changes, Delta, Named, Selection};
pub use copy::{CopyAct, CopySpec, CopyStatus};
pub use found::{FoundBlock, FoundKind, FoundStatus, ScrubSpec, ScrubStatus};
pub use scsi::{RegistrationStatus, ReservationStatus, UnitStatus};
pub use seen::{LayoutSpec, LayoutStatus, OnPv};
pub use spec::*;
pub use tallies::{Passed, Tally, TallyReport, TallySpec};
pub use trace::{TraceRecord, TraceReport, TraceSpec};

/// The version of these messages. Peers with different versions part at [`Request::Hello`].
pub const VERSION: u32 = 2;

/// What peers of one version may know beyond it: the lower of the two numbers is spoken. 1: messages of several frames
/// ([`crate::socket`]), and [`Request::Changes`]. 2: [`Request::ResetMarks`]. 3: witnesses ([`crate::opener::Witnesses`]). 4:
/// [`Request::ResetPortMarks`]. 5: uplinks. 6: their failover. 7: storage pools. 8: [`Request::ChangesOf`]. 9:
/// [`Request::Trace`]. 10: snapshots, clones and [`Request::Rollback`]. 11: uplinks by packet sockets. 12: rollbacks of
/// several LUs at one moment ([`RollbackSpec::also`]). 13: [`Request::Detach`]. 15: failover by leases ([`crate::opener::Tokens`]).
/// 16: failure groups of a pool ([`PoolSpec::mirror`]).
/// 17: an address outside that is asked for ([`spec::FailoverSpec::netaddr`]). 18: a wait before a bridge goes back ([`spec::FailoverSpec::failback`]),
/// what clients of network cards are held to ([`spec::GuardSpec`]), tiers of a pool ([`PoolSpec::tiers`]), interfaces in network
/// namespaces ([`UplinkSpec::netns`]).
/// 19: uplinks by AF_XDP sockets ([`spec::UplinkKind::Xdp`]), and what they are like ([`UplinkStatus::way`]).
/// 20: [`Request::Scrub`], and what was found on the PVs of a pool ([`PoolStatus::found`]); uplinks with a channel of their own
/// ([`UplinkSpec::thread`]).
/// 21: checksums of LUs ([`spec::LuSpec::checksums`]), and what would be copied after a crash ([`PoolStatus::after_crash_bytes`]).
/// 22: losses that are made up for ([`crate::opener::Opener::made_up_for`]).
/// 24: a pool that is opened by one failure group alone ([`PoolSpec::alone`]); what holds where a pool is full, or nearly so ([`PoolSpec::full`]), in place of what 23 had for some of that;
/// [`Request::Layout`], and what goes on at PVs ([`PvStatus::traffic`]) and in LUs
/// ([`LuStatus::paused`]); [`Request::Copy`].
/// 25: what passes an uplink, by station ([`UplinkSpec::accounting`], [`Request::Tallies`]); uplinks of several interfaces ([`UplinkSpec::aggregate`]).
/// 26: what the kernel tells of interfaces ([`crate::opener::Opener::links`]); [`Request::GrowPvs`].
pub const MINOR: u32 = 26;

/// What the control plane asks. Each request gets one [`Reply`], in order. A change that has to wait for a disk goes on by itself
/// ([`FailureCode::Opening`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// First on every connection.
    Hello {
        /// The asker's [`VERSION`].
        version: u32,
        /// The asker's [`MINOR`].
        #[serde(default)]
        minor: u32,
    },
    /// Opens a volume. One with the same name and specification is left alone; a changed limit takes effect; another path is
    /// put under the units on it, which stay; anything else that differs is refused while it is in use. An opening that takes long
    /// goes on by itself ([`FailureCode::Opening`]).
    PutVolume(VolumeSpec),
    /// Changes a volume's capacity; connected clients are told.
    ResizeVolume {
        /// Name of the volume.
        name: String,
        /// New capacity.
        bytes: u64,
        /// Whether it may become smaller, which loses what lies beyond.
        shrink: bool,
    },
    /// Closes a volume that no adapter uses.
    RemoveVolume {
        /// Name of the volume.
        name: String,
        /// Whether it is gone for good, and with it the registrations of units that were on it.
        #[serde(default)]
        forget: bool,
    },
    /// Makes a SCSI logical unit, or changes it: another medium in an optical drive takes effect at once; anything else that differs
    /// is refused while an adapter's client sees the unit.
    PutUnit(UnitSpec),
    /// Removes a logical unit that no adapter's client sees. Who is registered with it is so again when it is made again.
    RemoveUnit {
        /// Name of the unit.
        name: String,
    },
    /// Creates an adapter and listens for its client; with a descriptor in the message, listens on that. The same
    /// specification again is left alone; a different one takes effect as each attribute says.
    PutAdapter(AdapterSpec),
    /// Disconnects the client, after what is in flight is done, and removes the adapter. It is there until then.
    RemoveAdapter {
        /// Name of the adapter.
        name: String,
    },
    /// Opens a storage pool, made first where that is said. The same specification again is left alone; other LUs that are no longer wanted are removed,
    /// and other snapshots made; anything else is refused.
    PutPool(PoolSpec),
    /// Closes it, when nothing of it is under way. Refused while a volume is on it.
    RemovePool {
        /// Name of the pool.
        name: String,
    },
    /// All that is there on PVs of a pool whose devices have become larger is used from now on.
    GrowPvs {
        /// Name of the pool.
        pool: String,
    },
    /// An LU holds again what a snapshot of it holds.
    Rollback(RollbackSpec),
    /// Detaches an LU, which goes on by itself: asks for [`Reply::Progress`] until it is done.
    Detach(DetachSpec),
    /// Reads all that is written in a pool from every leg, which goes on by itself: asks for [`Reply::Scrub`].
    Scrub(ScrubSpec),
    /// Asks for [`Reply::Layout`]: how what an LU has lies on the PVs of its pool.
    Layout(LayoutSpec),
    /// Copies a whole LU from a file or into one, which goes on by itself: asks for [`Reply::Copy`]. The file's descriptor comes with it.
    Copy(CopySpec),
    /// Connects a network to an interface of the host. The same specification again is left alone; another takes effect at once, or is refused if it is of
    /// another network or interface.
    PutUplink(UplinkSpec),
    /// Disconnects it.
    RemoveUplink {
        /// Name of the uplink.
        name: String,
    },
    /// The high-water marks of an adapter and its queues begin again, at what is there now. Nothing else is touched.
    ResetMarks {
        /// Name of the adapter.
        name: String,
    },
    /// The high-water marks of a port begin again, at what is there now. Nothing else is touched.
    ResetPortMarks {
        /// Name of the port.
        name: String,
    },
    /// Watches frames of a network: asks for [`Reply::Trace`].
    Trace(TraceSpec),
    /// Asks for [`Reply::Tallies`]: what has passed an uplink, by station and VLAN.
    Tallies(TallySpec),
    /// Asks for [`Reply::Status`].
    Status,
    /// Asks for [`Reply::Changes`]: what differs from what this connection was told last.
    Changes,
    /// Asks for [`Reply::Changes`] of what is named, as it is now, whether or not it has changed: what this costs does not depend on what else there is.
    ChangesOf(Selection),
    /// Asks for the descriptor of the statistics ([`crate::stats`]).
    Stats,
    /// Passes a socket on which a confined data plane asks for what it has to open ([`crate::opener`]).
    Opener,
    /// Finishes what is in flight and exits.
    Shutdown,
}

/// What the data plane answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To [`Request::Hello`].
    Hello {
        /// The answerer's [`VERSION`].
        version: u32,
        /// Its [`MINOR`].
        #[serde(default)]
        minor: u32,
        /// Its process id.
        pid: u32,
    },
    /// It is done.
    Done,
    /// To [`Request::Status`].
    Status(Status),
    /// To [`Request::Changes`] and [`Request::ChangesOf`].
    Changes(Changes),
    /// To [`Request::Trace`].
    Trace(TraceReport),
    /// To [`Request::Tallies`].
    Tallies(TallyReport),
    /// To [`Request::Detach`]: it goes on.
    Progress(ProgressStatus),
    /// To [`Request::Scrub`]: it goes on, or is over.
    Scrub(Box<ScrubStatus>),
    /// To [`Request::Layout`].
    Layout(Box<LayoutStatus>),
    /// To [`Request::Copy`]: it goes on, or is over.
    Copy(Box<CopyStatus>),
    /// To [`Request::Stats`]; one descriptor comes with it.
    Stats,
    /// It is not done.
    Error(Failure),
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub code: FailureCode,
    /// What is wrong, for a person.
    pub message: String,
    /// What mends it.
    #[serde(default)]
    pub help: Option<String>,
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The peer speaks another version.
    Version,
    /// The message was not understood.
    BadMessage,
    /// There is no such volume, unit or adapter.
    NotFound,
    /// Something uses it.
    InUse,
    /// A value is outside of what is possible.
    Invalid,
    /// The system refused.
    System,
    /// A volume is being opened, or a change waits for a disk, or for another change that does: it goes on by itself, ask again.
    Opening,
}

/// The data plane as it is now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Process id.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// Seconds since it was started.
    pub uptime_s: u64,
    /// What it gave up before it served anybody, and what it could not give up, for a person; empty where it gave up nothing.
    pub confinement: String,
    /// Its channels.
    pub channels: Vec<ChannelStatus>,
    /// Its volumes.
    pub volumes: Vec<VolumeStatus>,
    /// Volumes that are being opened.
    pub opening: Vec<OpeningStatus>,
    /// Its SCSI logical units.
    pub units: Vec<UnitStatus>,
    /// Its adapters.
    pub adapters: Vec<AdapterStatus>,
    /// Its uplinks.
    pub uplinks: Vec<UplinkStatus>,
    /// Its storage pools.
    pub pools: Vec<PoolStatus>,
}

/// What [`Status::confinement`] says of a process that gave up everything that it does not need.
pub const CONFINED: &str = "Landlock, seccomp";

/// A channel.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelStatus {
    /// Its number, also in the statistics.
    pub index: u32,
    /// The CPU that it runs on, if it is bound to one.
    pub cpu: Option<u32>,
    /// How many queues it owns.
    pub queues: u32,
}

/// A volume that is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VolumeStatus {
    /// Its specification.
    pub spec: VolumeSpec,
    /// Capacity in bytes.
    pub bytes: u64,
    /// How it is accessed (`direct`, `buffered`, `memory`, `none`), or what was noted when it was opened.
    pub access: String,
    /// What is wrong with it although it is open.
    #[serde(default)]
    pub trouble: Option<String>,
    /// A write was lost, and writes and flushes fail since.
    #[serde(default)]
    pub lost: bool,
    /// What is in it is gone when it is closed: its file was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// What its file or device is known by, if it has one.
    #[serde(default)]
    pub identity: Option<FileIdentity>,
}

/// A volume that is being opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpeningStatus {
    /// Its name.
    pub name: String,
    /// For how long, in milliseconds.
    pub since_ms: u64,
    /// Who has its file, as far as that can be told.
    pub waits_for: Option<String>,
}

/// An adapter that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterStatus {
    /// Its specification. It names every LUN, so that accounts share it.
    #[serde(with = "shared")]
    pub spec: Arc<AdapterSpec>,
    /// What it is doing.
    pub state: AdapterState,
    /// Why it is broken, or why the last client was disconnected.
    #[serde(default)]
    pub reason: Option<String>,
    /// Why nobody finds its socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<String>,
    /// Virtqueues for I/O that the client uses now.
    pub client_queues: u16,
    /// Those that its device has (`num_queues` of QEMU), whether its driver uses them or not, as far as its messages named them; 0 without a
    /// client, and from a data plane that does not say.
    #[serde(default)]
    pub client_num_io_queues: u16,
    /// Channel of each of them.
    pub channel_of_queue: Vec<u32>,
    /// How many clients have connected since it was created.
    pub connections: u64,
    /// The last [`VISITS_MAX`] of them, oldest first; empty from a data plane that does not say.
    #[serde(default)]
    pub visits: Vec<VisitStatus>,
    /// Names of the negotiated features that matter to an administrator.
    pub features: Vec<String>,
    /// The client's process; nothing without a client, from a data plane that does not say, or where its number cannot be known (another PID
    /// namespace).
    #[serde(default)]
    pub client: Option<ClientStatus>,
    /// It is about to be something else than its specification says: that is being carried out, or waits for the next client. A data plane that
    /// does not say has to be asked for what it shall be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub becoming: bool,
}

/// Most visits that a data plane remembers of an adapter.
pub const VISITS_MAX: usize = 8;

/// A client that is at an adapter, or was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitStatus {
    /// Its number among the connections of the adapter.
    pub connection: u64,
    /// Its process, where that is known.
    pub client: Option<ClientStatus>,
    /// When it came, in milliseconds since 1970.
    pub came_at_ms: u64,
    /// When it had left and nothing of it was in flight any more, likewise; nothing while it is there.
    pub left_at_ms: Option<u64>,
    /// Why it left, where that was not by closing the connection.
    pub reason: Option<String>,
}

/// An uplink that is connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UplinkStatus {
    /// Its specification.
    pub spec: UplinkSpec,
    /// Channel of each of its descriptors.
    pub channel_of_queue: Vec<u32>,
    /// Of one that takes part in failover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverStatus>,
    /// How frames pass between its interface and its sockets, where there are several ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
    /// Of one that has several interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberStatus>,
}

/// A member of an aggregated uplink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its name.
    pub name: String,
    /// What it is now.
    pub state: MemberState,
    /// Why it is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// As in [`UplinkStatus::way`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
}

/// What a member of an aggregated uplink is at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// Frames pass by it.
    Active,
    /// It is up, and another is the active one.
    Backup,
    /// It has no carrier, or no interface.
    Down,
}

/// What a shared Ethernet adapter is to its partner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailoverStatus {
    /// Such as `PRIMARY`.
    pub state: String,
    /// Why.
    pub reason: String,
    /// Mode and priority of the partner that is heard.
    pub partner: Option<String>,
    /// The VLANs that it bridges now.
    pub bridges: Vec<u16>,
    /// Times that it began to bridge.
    pub takeovers: u64,
    /// Since when it is in this state, in milliseconds since 1970.
    pub since_ms: u64,
    /// Whether the address that it asks for answers, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<bool>,
}

/// A storage pool that is open. Sizes are in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Its specification.
    pub spec: PoolSpec,
    /// Its PVs, in the order of its members.
    pub pvs: Vec<PvStatus>,
    /// Its LUs.
    pub lus: Vec<LuStatus>,
    /// What is free and set aside for nobody, in all tiers.
    pub free_bytes: u64,
    /// The same of each tier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierStatus>,
    /// Writes that wait for space.
    pub paused: u64,
    /// Writes that have waited for space since it was opened.
    pub pauses: u64,
    /// What is wrong with it although it is open.
    #[serde(default)]
    pub trouble: Option<String>,
    /// Chunks that move to where less is, after PVs have come or gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<ProgressStatus>,
    /// PVs that were away get what they missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync: Option<ProgressStatus>,
    /// What was changed lately in both failure groups, and would be copied from one to the other if the host died now. None: it is of an earlier version, and does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_crash_bytes: Option<u64>,
    /// Snapshots that were made just now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<SnapshotStatus>,
    /// What was found where its legs were read, since it was opened.
    #[serde(default, skip_serializing_if = "is_none_found")]
    pub found: FoundStatus,
}

fn is_none_found(found: &FoundStatus) -> bool {
    found.count() == 0
}

/// What is left in a tier of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierStatus {
    /// Its number.
    pub tier: u8,
    /// What is free and set aside for nobody.
    pub free_bytes: u64,
    /// Writes that wait for space in it.
    pub paused: u64,
    /// Writes that wait because it is nearly full and gives out space slowly.
    #[serde(default)]
    pub slowed: u64,
    /// Within the last minute some did.
    #[serde(default)]
    pub slows: bool,
}

/// A rollback of an LU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackSpec {
    /// The name of its pool.
    pub pool: String,
    /// Its number.
    pub lu: u32,
    /// The number of a snapshot of it.
    pub snapshot: u32,
    /// More LUs, each with a snapshot of it, that are rolled back at the same moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<(u32, u32)>,
    /// Also while clients use it.
    pub force: bool,
    /// A number that no other has: asked again with the same, what became of it is told.
    pub id: u64,
}

/// An LU that is to share nothing with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetachSpec {
    /// The name of its pool.
    pub pool: String,
    /// Its number.
    pub lu: u32,
    /// A number that no other has: what went wrong is told to who asks again with the same.
    pub id: u64,
    /// It is to go on sharing; done when that holds.
    #[serde(default)]
    pub stop: bool,
}

/// A snapshot that was made, and of which the control plane did not know when it last said what it wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotStatus {
    /// See [`SnapshotSpec::id`].
    pub id: u64,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// What was made of each of its LUs.
    pub lus: Vec<FrozenStatus>,
}

/// What a snapshot has of an LU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenStatus {
    /// The number of the LU.
    pub lu: u32,
    /// Its own.
    pub number: u32,
    /// The size that the LU had.
    pub bytes: u64,
}

/// How far something is that moves chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressStatus {
    /// Bytes that are to move, and those that have; never more.
    pub planned_bytes: u64,
    /// Those that have moved.
    pub moved_bytes: u64,
    /// Bytes that could not be copied.
    #[serde(default)]
    pub failed_bytes: u64,
    /// Seconds until it is over, at the pace that it has had.
    #[serde(default)]
    pub left_s: Option<u64>,
}

/// A PV of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PvStatus {
    /// Where it is.
    pub path: PathBuf,
    /// Its UUID.
    pub uuid: String,
    /// What it has, in whole chunks.
    pub bytes: u64,
    /// What of it is nobody's.
    pub free_bytes: u64,
    /// It leaves: how far its chunks are elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<ProgressStatus>,
    /// Its failure group: 0, or 1 if it is of the mirror.
    #[serde(default)]
    pub group: u8,
    /// Its tier.
    #[serde(default, skip_serializing_if = "is_first")]
    pub tier: u8,
    /// Whether it is used.
    #[serde(default, skip_serializing_if = "is_active")]
    pub state: PvState,
    /// What goes on there; nothing where it is not open. None: it is of an earlier version, and does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

/// Whether a PV of a pool is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PvState {
    /// It is read and written.
    #[default]
    Active,
    /// It failed, or was not there when the pool was opened: the other failure group serves, and it is looked for.
    Away,
    /// It was away, and chunks have not got what it missed so far ([`PoolStatus::resync`]): no PV of the other group can be done without.
    Resyncing,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_first(tier: &u8) -> bool {
    *tier == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_nothing(bytes: &u64) -> bool {
    *bytes == 0
}

fn is_not(it: &bool) -> bool {
    !*it
}

fn is_active(state: &PvState) -> bool {
    *state == PvState::Active
}

/// An LU of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LuStatus {
    /// Its number.
    pub number: u32,
    /// What it was made with, in whole chunks.
    pub bytes: u64,
    /// What it has on PVs.
    pub mapped_bytes: u64,
    /// All of it is set aside.
    pub thick: bool,
    /// What it holds has checksums.
    #[serde(default, skip_serializing_if = "is_not")]
    pub checksums: bool,
    /// Its tier.
    #[serde(default, skip_serializing_if = "is_first")]
    pub tier: u8,
    /// What of it is on PVs of other tiers, and moves to its own.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub astray_bytes: u64,
    /// It is a snapshot of this LU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<u32>,
    /// It shares what it holds with others, or did.
    #[serde(default)]
    pub shares: bool,
    /// The mark with which it was asked for ([`LuSpec::asked`]); 0 for none.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub asked: u64,
    /// It is detached, or loses what it needs no more of what it shared: how far that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detaching: Option<ProgressStatus>,
    /// Requests of it that wait for space.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub paused: u64,
}

/// The process at the other end of an adapter's socket when it connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Its process id.
    pub pid: u32,
    /// Its user id.
    pub uid: u32,
}

/// What is shared is written as what it is.
mod shared {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        value: &Arc<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        T::serialize(value, serializer)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(deserializer).map(Arc::new)
    }
}

/// What an adapter is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdapterState {
    /// No client is connected.
    Listening,
    /// The client does not listen yet; it is tried again and again.
    Connecting,
    /// A client is connected and none of its queues runs.
    Connected,
    /// Queues run.
    Running,
    /// The client broke a rule; its queues are stopped until it connects again or resets the device.
    Broken,
    /// The socket could not be made.
    Failed,
}

impl AdapterState {
    /// As it is printed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            AdapterState::Listening => "listening",
            AdapterState::Connecting => "connecting",
            AdapterState::Connected => "connected",
            AdapterState::Running => "running",
            AdapterState::Broken => "broken",
            AdapterState::Failed => "failed",
        }
    }
}
