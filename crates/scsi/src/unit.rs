//! [`LogicalUnit`]: what all channels and I_T nexuses share of a disk, and [`Nexus`], one I_T nexus's view of it.
//!
//! # What is shared, and what it costs
//!
//! | state | written | how the I/O path reads it |
//! |---|---|---|
//! | capacity, mode bits, medium | by MODE SELECT, START STOP UNIT, a resize, another medium | two loads from a line that nobody writes meanwhile |
//! | unit attentions, what reservations and port groups allow | when something happens | one load of the I_T nexus's own word, which is 0 |
//! | registrations, reservations, who prevents removal | by PERSISTENT RESERVE OUT and the like | never; under a lock |
//! | exclusive ranges | by COMPARE AND WRITE | see [`crate::exclusion`]; a write counts itself in its channel's own line |
//!
//! So two channels that read and write write no common line. A change of the reservations computes, under the lock, the
//! level of each I_T nexus anew and stores it in that nexus's word: the path of an I/O needs no lookup and no snapshot, and
//! a command that is judged after PERSISTENT RESERVE OUT was answered is judged by the new state.

mod drive;

pub(crate) use drive::OPTICAL_BLOCK_BYTES;
pub use drive::{Medium, RemovalPrevented};

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use block::Geometry;

use crate::attention::{Attention, Gate, Level};
use crate::exclusion::{Exclusion, Writer};
use crate::identity::Identity;
use crate::nexus::NexusId;
use crate::ports::{AccessState, PortGroup};
use crate::reservation::{Change, Persistent, Registration, Reservation, Reservations};
use crate::sense::Status;
use crate::table::Needs;
use crate::task::SCRATCH_BYTES;

/// Bits that commands change and the I/O path reads.
pub(crate) mod flag {
    /// Write cache enabled: a write is answered before it is durable.
    pub(crate) const WCE: u32 = 1;
    /// Software write protection.
    pub(crate) const SWP: u32 = 2;
    /// Sense data with descriptors.
    pub(crate) const D_SENSE: u32 = 4;
    /// No medium can be used: one of the next two.
    pub(crate) const NO_MEDIUM: u32 = 8;
    /// The tray is open.
    pub(crate) const TRAY_OPEN: u32 = 16;
    /// There is no medium in the drive.
    pub(crate) const EMPTY: u32 = 32;
    /// What a reset leaves as it is.
    pub(crate) const MEDIUM: u32 = NO_MEDIUM | TRAY_OPEN | EMPTY;
}

/// What kind of device a logical unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum UnitKind {
    /// A disk: SBC-3, peripheral device type 0.
    #[default]
    Disk,
    /// A CD or DVD drive that reads: MMC-6, peripheral device type 5. Its blocks have 2048 bytes, and its medium can be ejected.
    Optical,
}

/// What a logical unit makes of reservations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reserving {
    /// They survive a power loss if a client asks for that (APTPL).
    #[default]
    Kept,
    /// They end with the logical unit, since there is nothing to keep them in.
    Lost,
    /// There are none: the commands do not exist. For a disk that clients of other servers reach, of whose reservations nothing is known here.
    Refused,
}

/// How a logical unit is made.
#[derive(Debug, Clone)]
pub struct UnitSpec {
    /// What INQUIRY says.
    pub identity: Identity,
    /// What kind of device it is.
    pub kind: UnitKind,
    /// Shape and abilities of the volume. An optical drive takes the capacity from it and nothing else; the volume's blocks may have at
    /// most 2048 bytes.
    pub geometry: Geometry,
    /// Refuse writes, whatever the volume can do.
    pub read_only: bool,
    /// Let the client give blocks back (UNMAP), if the volume can.
    pub thin: bool,
    /// The medium can be ejected and loaded, as that of an optical drive always can.
    pub removable: bool,
    /// A medium is there from the beginning. A drive without one has no volume, and what the geometry says does not count.
    pub loaded: bool,
    /// It is becoming ready, and does not do so: another one takes its place when it is. Until then it says who it is, and nothing else (SPC-4,
    /// 6.6.1); what the geometry says does not count.
    pub awaited: bool,
    /// MAXIMUM TRANSFER LENGTH in bytes. It is at least 256 blocks, the longest transfer of the shortest CDBs.
    pub transfer_bytes_max: u64,
    /// What becomes of reservations.
    pub reserving: Reserving,
}

impl UnitSpec {
    /// A disk of a volume.
    #[must_use]
    pub fn new(identity: Identity, geometry: Geometry) -> UnitSpec {
        UnitSpec {
            identity,
            kind: UnitKind::Disk,
            geometry,
            read_only: false,
            thin: true,
            removable: false,
            loaded: true,
            awaited: false,
            transfer_bytes_max: 32 << 20,
            reserving: Reserving::Kept,
        }
    }

    /// A disk that is becoming ready.
    #[must_use]
    pub fn awaited(identity: Identity) -> UnitSpec {
        // Any that a volume can have.
        let geometry = Geometry { block_size: 512, ..optical_geometry(0) };
        UnitSpec { awaited: true, loaded: false, ..UnitSpec::new(identity, geometry) }
    }

    /// An optical drive with a medium of so many bytes, or an empty one. Nothing of it is kept through a power loss.
    #[must_use]
    pub fn optical(identity: Identity, medium: Option<u64>) -> UnitSpec {
        let geometry = optical_geometry(medium.unwrap_or(0));
        let loaded = medium.is_some();
        let spec = UnitSpec::new(identity, geometry);
        let kind = UnitKind::Optical;
        UnitSpec { kind, removable: true, loaded, reserving: Reserving::Lost, ..spec }
    }
}

/// What an optical drive makes of a volume: nothing is written, given back, or held in a cache.
fn optical_geometry(bytes: u64) -> Geometry {
    Geometry {
        bytes,
        block_size: OPTICAL_BLOCK_BYTES,
        physical_block_size: OPTICAL_BLOCK_BYTES,
        optimal_io_size: 0,
        discard: false,
        write_zeroes: false,
        read_only: true,
        write_cache: false,
    }
}

/// The most blocks of one WRITE SAME: 16 MiB of 512-byte blocks, so that one of them cannot occupy a channel for long.
pub(crate) const WRITE_SAME_BLOCKS_MAX: u32 = 32768;
/// The most blocks of one UNMAP.
pub(crate) const UNMAP_BLOCKS_MAX: u32 = 1 << 20;
/// The most descriptors of one UNMAP.
pub(crate) const UNMAP_DESCRIPTORS_MAX: u32 = 256;

/// A logical unit.
#[derive(Debug)]
pub struct LogicalUnit {
    hot: Hot,
    pub(crate) identity: Identity,
    pub(crate) kind: UnitKind,
    pub(crate) read_only: bool,
    pub(crate) removable: bool,
    /// The volume has a cache that loses what it holds in a power failure.
    pub(crate) volatile_cache: bool,
    pub(crate) physical_block_size: u32,
    pub(crate) optimal_io_size: u32,
    pub(crate) transfer_blocks_max: u32,
    /// UNMAP exists.
    pub(crate) thin: bool,
    /// Blocks that were given back read as zeroes.
    pub(crate) unmapped_is_zero: bool,
    /// The volume can write zeroes by itself.
    pub(crate) write_zeroes: bool,
    /// Reservations can survive a power loss.
    pub(crate) keeps: bool,
    /// It is becoming ready.
    pub(crate) awaited: bool,
    pub(crate) exclusion: Arc<Exclusion>,
    shared: Mutex<Shared>,
}

/// What the I/O path reads, in a line that is not written on it.
#[derive(Debug)]
#[repr(align(128))]
struct Hot {
    bytes: AtomicU64,
    flags: AtomicU32,
    block_size: u32,
    /// Commands that need one of these do not exist.
    lacks: Needs,
}

#[derive(Debug)]
struct Shared {
    nexuses: Vec<Arc<View>>,
    reservations: Reservations,
    /// A change that is being stored.
    pending: Option<Change>,
    /// I_T nexuses that prevent the removal of the medium.
    prevent: Vec<NexusId>,
    port_groups: Vec<PortGroup>,
}

/// What a logical unit keeps for an I_T nexus.
#[derive(Debug)]
struct View {
    gate: Gate,
    /// Events of the media class that were not told yet, a bit for each.
    events: AtomicU8,
    id: NexusId,
    /// The target port's name.
    port_name: Option<u64>,
}

/// An I_T nexus with a logical unit (SAM-5: an I_T_L nexus). Channels share it; dropping the last reference means that the I_T
/// nexus is gone for this logical unit, which ends its RESERVE and its prevention of removal, and no persistent registration.
#[derive(Debug)]
pub struct Nexus {
    unit: Arc<LogicalUnit>,
    view: Arc<View>,
}

/// What became of PERSISTENT RESERVE OUT.
#[derive(Debug)]
pub(crate) enum Ordered {
    /// It is done; commands of these are to be aborted.
    Done(Vec<NexusId>),
    /// It is done when this is stored.
    Store(Persistent),
    /// Another change is being stored.
    Busy,
}

impl LogicalUnit {
    /// Makes a logical unit.
    ///
    /// # Panics
    ///
    /// When the geometry is none that a volume can have.
    #[must_use]
    pub fn new(spec: UnitSpec) -> Arc<LogicalUnit> {
        let optical = spec.kind == UnitKind::Optical;
        let geometry = if optical { optical_geometry(spec.geometry.bytes) } else { spec.geometry };
        let block_size = geometry.block_size;
        assert!(block_size.is_power_of_two() && block_size <= 4096, "a block size of {block_size}");
        let read_only = spec.read_only || geometry.read_only;
        let blocks = spec.transfer_bytes_max / u64::from(block_size);
        let cache = if geometry.write_cache { flag::WCE } else { 0 };
        let medium = if spec.loaded { 0 } else { flag::NO_MEDIUM | flag::EMPTY };
        let (bytes, flags) = (AtomicU64::new(geometry.bytes), AtomicU32::new(cache | medium));
        let thin = spec.thin && geometry.discard && !read_only;
        let removable = spec.removable || optical;
        let lacks = lacks(spec.kind, thin, removable, spec.reserving);
        Arc::new(LogicalUnit {
            hot: Hot { bytes, flags, block_size, lacks },
            identity: spec.identity,
            kind: spec.kind,
            read_only,
            removable,
            volatile_cache: geometry.write_cache,
            physical_block_size: geometry.physical_block_size.max(block_size),
            optimal_io_size: geometry.optimal_io_size,
            transfer_blocks_max: u32::try_from(blocks).unwrap_or(u32::MAX).max(256),
            thin,
            unmapped_is_zero: geometry.write_zeroes,
            write_zeroes: geometry.write_zeroes,
            keeps: spec.reserving == Reserving::Kept,
            awaited: spec.awaited,
            exclusion: Arc::new(Exclusion::default()),
            shared: Mutex::new(Shared {
                nexuses: Vec::new(),
                reservations: Reservations::default(),
                pending: None,
                prevent: Vec::new(),
                port_groups: Vec::new(),
            }),
        })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings an I_T nexus to the logical unit. It is told POWER ON first, since it has not spoken to it before. `port_name` is the
    /// WWPN of the target port, if it has one.
    #[must_use]
    pub fn attach(self: &Arc<LogicalUnit>, id: NexusId, port_name: Option<u64>) -> Nexus {
        let view = Arc::new(View {
            gate: Gate::new(Attention::PowerOn),
            events: AtomicU8::new(0),
            id,
            port_name,
        });
        let mut shared = self.shared();
        shared.reservations.arrive(id);
        view.gate.set_way(shared.way(id.port));
        view.gate.set_awaited(self.awaited);
        shared.nexuses.push(view.clone());
        shared.set_levels();
        Nexus { unit: self.clone(), view }
    }

    /// A channel's way to write to it. Made once per channel, used on its thread.
    #[must_use]
    pub fn writer(&self) -> Writer {
        self.exclusion.writer()
    }

    /// Capacity in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.hot.bytes.load(Ordering::Relaxed)
    }

    /// Takes over a new capacity and tells every I_T nexus.
    pub fn set_bytes(&self, bytes: u64) {
        if self.hot.bytes.swap(bytes, Ordering::Relaxed) != bytes {
            self.tell_all(Attention::CapacityChanged);
        }
    }

    /// Establishes a unit attention for every I_T nexus: [`Attention::LunsChanged`] after a mask changed, for example.
    pub fn tell_all(&self, attention: Attention) {
        self.shared().nexuses.iter().for_each(|view| view.gate.establish(attention));
    }

    /// Who is registered, and the reservation: what an administrator is shown.
    #[must_use]
    pub fn registrations(&self) -> (Vec<Registration>, Option<Reservation>) {
        let shared = self.shared();
        (shared.reservations.registrations.clone(), shared.reservations.reservation)
    }

    /// Whether the registrations and the reservation are to survive a power loss (APTPL).
    #[must_use]
    pub fn keeps_reservations(&self) -> bool {
        self.shared().reservations.aptpl
    }

    /// Puts back what was kept through a power loss. Before any I_T nexus is served.
    pub fn restore(&self, kept: Persistent) {
        if !kept.is_sane() {
            return;
        }
        let mut shared = self.shared();
        shared.reservations = Reservations::restored(kept);
        shared.set_levels();
    }

    /// Takes over registrations and persistent reservation of the logical unit in whose place it comes, all of them, asked to be kept or not:
    /// to clients it is the same one. Before any I_T nexus is served.
    pub fn succeed(&self, before: &LogicalUnit) {
        let reservations = Reservations { reserve: None, ..before.shared().reservations.clone() };
        let mut shared = self.shared();
        shared.reservations = reservations;
        shared.set_levels();
    }

    /// Takes over the state of the target port groups, and tells every I_T nexus if it changed. From now on a way that is not
    /// active lets through what SPC-4, 5.15.2.4, says, and no more. An optical drive has no port groups.
    pub fn set_port_groups(&self, groups: Vec<PortGroup>) {
        let mut shared = self.shared();
        if self.kind == UnitKind::Disk && shared.port_groups != groups {
            shared.port_groups = groups;
            for view in &shared.nexuses {
                view.gate.set_way(shared.way(view.id.port));
            }
            shared.tell(|_| true, Attention::AccessStateChanged);
        }
    }

    /// Whether it is becoming ready, for another one to take its place.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.awaited
    }

    /// Smallest unit of a transfer in bytes.
    #[inline]
    #[must_use]
    pub fn block_size(&self) -> u32 {
        self.hot.block_size
    }

    /// Capacity in blocks.
    #[inline]
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.bytes() >> self.block_shift()
    }

    #[inline]
    pub(crate) fn block_shift(&self) -> u32 {
        self.hot.block_size.trailing_zeros()
    }

    #[inline]
    pub(crate) fn flags(&self) -> u32 {
        self.hot.flags.load(Ordering::Relaxed)
    }

    /// What it has not, and commands may need.
    #[inline]
    pub(crate) fn lacks(&self) -> Needs {
        self.hot.lacks
    }

    /// Clears some of [`flag`]; returns all as they were.
    fn clear_flags(&self, flags: u32) -> u32 {
        self.set_flag(flags, false)
    }

    /// Sets or clears some of [`flag`]; returns all as they were.
    pub(crate) fn set_flag(&self, flag: u32, on: bool) -> u32 {
        if on {
            self.hot.flags.fetch_or(flag, Ordering::Relaxed)
        } else {
            self.hot.flags.fetch_and(!flag, Ordering::Relaxed)
        }
    }

    /// The most blocks of one COMPARE AND WRITE: what fits the scratch memory and the one byte of the CDB.
    pub(crate) fn compare_blocks_max(&self) -> u8 {
        u8::try_from(SCRATCH_BYTES / self.block_size() as usize).unwrap_or(u8::MAX)
    }

    /// A reset of the logical unit (SAM-5, 6.3.3): RESERVE, the prevention of removal and mode parameters are gone; persistent
    /// reservations are not. Its commands have ended before.
    pub(crate) fn reset(&self, attention: Attention) {
        let defaults = if self.volatile_cache { flag::WCE } else { 0 };
        let keep = |flags: u32| Some(flags & flag::MEDIUM | defaults);
        let changed = self.hot.flags.fetch_update(Ordering::Relaxed, Ordering::Relaxed, keep);
        debug_assert!(changed.is_ok());
        let mut shared = self.shared();
        shared.prevent.clear();
        shared.reservations.reserve = None;
        shared.set_levels();
        shared.tell(|_| true, attention);
    }
}

/// What a logical unit has not.
fn lacks(kind: UnitKind, thin: bool, removable: bool, reserving: Reserving) -> Needs {
    let when = |absent: bool, needs: Needs| if absent { needs } else { Needs::NOTHING };
    when(!thin, Needs::THIN_PROVISIONING)
        .and(when(!removable, Needs::REMOVABLE_MEDIUM))
        .and(when(kind != UnitKind::Disk, Needs::DISK))
        .and(when(kind != UnitKind::Optical, Needs::OPTICAL))
        .and(when(reserving == Reserving::Refused, Needs::RESERVATIONS))
}

impl Shared {
    /// The access state of a target port. Ports that are in no group are active.
    fn way(&self, port: u16) -> AccessState {
        let group = self.port_groups.iter().find(|group| group.ports.contains(&port));
        group.map_or(AccessState::ActiveOptimized, |group| group.state)
    }

    fn set_levels(&self) {
        for view in &self.nexuses {
            view.gate.set_level(self.reservations.level(view.id));
        }
    }

    fn tell(&self, whom: impl Fn(NexusId) -> bool, attention: Attention) {
        let told = self.nexuses.iter().filter(|view| whom(view.id));
        told.for_each(|view| view.gate.establish(attention));
    }

    /// Puts a change in place; whose commands are to be aborted.
    fn commit(&mut self, change: Change) -> Vec<NexusId> {
        self.reservations = change.next;
        // Who came while it was being stored.
        self.nexuses.iter().for_each(|view| self.reservations.arrive(view.id));
        self.set_levels();
        for (nexus, attention) in change.tell {
            self.tell(|each| each == nexus, attention);
        }
        change.abort
    }
}

impl Nexus {
    /// The logical unit.
    #[inline]
    #[must_use]
    pub fn unit(&self) -> &Arc<LogicalUnit> {
        &self.unit
    }

    /// Who it is.
    #[must_use]
    pub fn id(&self) -> NexusId {
        self.view.id
    }

    /// Establishes a unit attention for this I_T nexus.
    pub fn tell(&self, attention: Attention) {
        self.view.gate.establish(attention);
    }

    /// Clears a unit attention that was told otherwise. REPORT LUNS tells of changed LUNs, and this logical unit forgets
    /// [`Attention::LunsChanged`] by itself; the caller makes the I_T nexus's other logical units forget it as well (SAM-5, 5.14.6).
    pub fn forget(&self, attention: Attention) {
        self.view.gate.clear(attention);
    }

    /// The I_T nexus was lost and is back (SAM-5, 6.3.4): its RESERVE and its prevention of removal are gone, its registration
    /// is not. Its commands have ended before.
    pub fn lost(&self) {
        self.leave();
        self.tell(Attention::NexusLoss);
    }

    #[inline]
    pub(crate) fn gate(&self) -> &Gate {
        &self.view.gate
    }

    pub(crate) fn port_name(&self) -> Option<u64> {
        self.view.port_name
    }

    /// The target port groups, the same for every I_T nexus. When nobody has named any, there is one, with all target ports.
    pub(crate) fn port_groups(&self) -> Vec<PortGroup> {
        let groups = self.unit.shared().port_groups.clone();
        if groups.is_empty() { vec![PortGroup::only(self.target_ports())] } else { groups }
    }

    /// Establishes a unit attention for all others.
    pub(crate) fn tell_others(&self, attention: Attention) {
        let me = self.id();
        self.unit.shared().tell(|each| each != me, attention);
    }

    /// How sense data is delivered: with descriptors, if a client has set D_SENSE, or fixed.
    #[must_use]
    pub fn descriptor_sense(&self) -> bool {
        self.unit.flags() & flag::D_SENSE != 0
    }

    fn leave(&self) {
        let me = self.id();
        let mut shared = self.unit.shared();
        shared.prevent.retain(|each| *each != me);
        if shared.reservations.reserve == Some(me) {
            shared.reservations.reserve = None;
            shared.set_levels();
        }
    }

    /// PREVENT ALLOW MEDIUM REMOVAL.
    pub(crate) fn prevent(&self, prevent: bool) {
        let me = self.id();
        let mut shared = self.unit.shared();
        shared.prevent.retain(|each| *each != me);
        if prevent {
            shared.prevent.push(me);
        }
    }

    /// The target ports that there are: those of the groups, and those through which anybody has come.
    pub(crate) fn target_ports(&self) -> Vec<u16> {
        let shared = self.unit.shared();
        let named = shared.port_groups.iter().flat_map(|group| group.ports.iter().copied());
        let mut ports: Vec<u16> =
            named.chain(shared.nexuses.iter().map(|view| view.id.port)).collect();
        ports.push(self.id().port);
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// RESERVE or RELEASE of SPC-2. While a change of the persistent reservations is being stored, which would not know of it, it
    /// has to be sent again.
    pub(crate) fn reserve(&self, reserve: bool) -> Status {
        let mut shared = self.unit.shared();
        if shared.pending.is_some() {
            return Status::Busy;
        }
        let state = &mut shared.reservations;
        let done = if reserve { state.reserve(self.id()) } else { state.release(self.id()) };
        shared.set_levels();
        if done.is_ok() { Status::Good } else { Status::ReservationConflict }
    }

    /// PERSISTENT RESERVE IN.
    pub(crate) fn reservations_in<T>(&self, look: impl FnOnce(&Reservations) -> T) -> T {
        look(&self.unit.shared().reservations)
    }

    /// Begins PERSISTENT RESERVE OUT.
    pub(crate) fn reservations_out<E>(
        &self,
        make: impl FnOnce(&Reservations) -> Result<Change, E>,
    ) -> Result<Ordered, E> {
        let mut shared = self.unit.shared();
        if shared.pending.is_some() {
            return Ok(Ordered::Busy);
        }
        let change = make(&shared.reservations)?;
        let (before, after) = (shared.reservations.persistent(), change.next.persistent());
        if before == after {
            return Ok(Ordered::Done(shared.commit(change)));
        }
        shared.pending = Some(change);
        Ok(Ordered::Store(after))
    }

    /// The change that was pending is stored, or could not be: it happens, or it does not.
    pub(crate) fn stored(&self, stored: bool) -> Vec<NexusId> {
        let mut shared = self.unit.shared();
        match shared.pending.take() {
            Some(change) if stored => shared.commit(change),
            _ => Vec::new(),
        }
    }

    /// What a reservation leaves to this I_T nexus.
    pub(crate) fn level(&self) -> Level {
        self.view.gate.level()
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        self.leave();
        let mut shared = self.unit.shared();
        shared.nexuses.retain(|view| !Arc::ptr_eq(view, &self.view));
    }
}
