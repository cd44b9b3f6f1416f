//! [`Task`]: one command from its CDB to its status, as a state machine that does no I/O.
//!
//! # How it is driven
//!
//! ```text
//!             begin ──► Step::Done ──────────────────────────► status, sense, residual
//!               │  ▲
//!               ▼  └──────── resume(Input) ◄───────────────┐
//!   Step::Submit ── the volume ── Input::Block(result) ────┤
//!   Step::Scratch ── a piece of memory is free ── Ready ───┤
//!   Step::Wait ── some time ── Ready ──────────────────────┤
//!   Step::Store ── the state is on a disk ── Stored(bool) ─┤
//!   Step::Abort ── nobody's command is left ── Ready ──────┘
//! ```
//!
//! The caller keeps the task in the command's slot, with the buffers, and gives a [`Context`] with each call. A task asks for one
//! thing at a time. READ, WRITE and everything else that goes to the volume allocates nothing; commands that only answer or change
//! state may allocate up to some tens of KiB.
//!
//! # What the caller promises
//!
//! - A request is given to the volume with exactly the memory that [`Memory`] names, and its result comes back once.
//! - `writer` is always the same channel's, since a write in flight is counted in it.
//! - Scratch memory has [`SCRATCH_BYTES`] bytes, belongs to the task from [`Input::Ready`] after [`Step::Scratch`] until
//!   [`Step::Done`], and is aligned as the volume likes it.
//! - A task that was begun is driven to [`Step::Done`], or ended by [`Task::abort`].
//!
//! # Setting aside
//!
//! A volume may hold a request back for long, since its client is limited. What the task has that others need (the permit to write, an exclusive range,
//! scratch memory) must not wait with it: [`Task::set_aside`] gives it back, and the task gets it anew when the time has come.
//!
//! # Aborting
//!
//! [`Task::abort`] ends a task at once unless something is out at the volume or being stored. Then the task ends with that:
//! it asks for nothing more. So an aborted write happened or did not, and never happens later; COMPARE AND WRITE that is aborted
//! between its read and its write has not written. One thing is still asked for: when PREEMPT AND ABORT was stored, the registrations are gone,
//! and the commands of those who had them go too before it ends: who sees that a key is gone relies on it. Two of them which abort each other
//! would wait for each other; so whoever has commands aborted for PREEMPT AND ABORT does not wait for one that says [`Aborted::Behind`].

mod answer;
mod decode;
mod medium;
mod plain;
mod sequence;

use block::{IoError, OpKind};
use memory::IoBuf;

use crate::attention::Level;
use crate::data::Data;
use crate::exclusion::{Claim, Permit, Writer};
use crate::nexus::{Lun, NexusId};
use crate::ports::AccessState;
use crate::reservation::Persistent;
use crate::sense::{Sense, SenseKey, Status, code};
use crate::table::{self, Access, Needs, Path, Spec, Unknown, Verb};
use crate::unit::{LogicalUnit, Nexus, flag};

use medium::{Job, Out, Stage};
pub use plain::Plain;

/// Bytes of scratch memory: what a command compares or repeats at a time.
pub const SCRATCH_BYTES: usize = 64 * 1024;

/// What a task works with.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Who asks, and which logical unit.
    pub nexus: &'a Nexus,
    /// The channel's way to write to the logical unit.
    pub writer: &'a Writer,
    /// The LUNs that the client sees at this target, ascending.
    pub luns: &'a [Lun],
    /// What the client sends.
    pub data_out: Data<'a>,
    /// Where the client wants its answer.
    pub data_in: Data<'a>,
    /// Memory of the server; [`IoBuf::EMPTY`] until the task asked for it.
    pub scratch: IoBuf,
}

/// Which memory a request works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// None: flush, discard, write zeroes.
    None,
    /// The client's data-out buffers, behind this many bytes.
    DataOut(u64),
    /// The client's data-in buffers, behind this many bytes.
    DataIn(u64),
    /// The first bytes of the scratch memory.
    Scratch,
}

/// A request to the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRequest {
    /// What.
    pub op: OpKind,
    /// First byte of the volume.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// Where from or where to.
    pub memory: Memory,
    /// Marks of those that have let it through before it was set aside ([`Task::set_aside`]; [`block::Request::passed`]).
    pub passed: u8,
}

/// What a task asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Give this to the volume, and answer with [`Input::Block`].
    Submit(BlockRequest),
    /// Find [`SCRATCH_BYTES`] of memory, and answer with [`Input::Ready`] and the memory in the context.
    Scratch,
    /// Another command is in the way. Answer with [`Input::Ready`] when one of the channel's requests has completed, or
    /// a hundred microseconds later.
    Wait,
    /// Store this so that it survives a power loss, and answer with [`Input::Stored`].
    Store(Box<Persistent>),
    /// Abort all commands of these I_T nexuses to this logical unit, on every channel, but for this one; answer with
    /// [`Input::Ready`] when none of them is left.
    Abort(Vec<NexusId>),
    /// The command has ended.
    Done(Done),
}

/// What the caller answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The volume's answer.
    Block(Result<(), IoError>),
    /// What was asked for is there, or it is time to try again.
    Ready,
    /// The state is stored, or could not be.
    Stored(bool),
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Its status.
    pub status: Status,
    /// With CHECK CONDITION.
    pub sense: Option<Sense>,
    /// Bytes that the CDB called for.
    pub wanted: u64,
    /// Bytes that went through the buffers.
    pub moved: u64,
}

/// The difference between what a command called for and the buffer that there was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residual {
    /// None.
    Exact,
    /// So many bytes of the buffer were not used.
    Under(u64),
    /// So many bytes more would have been needed.
    Over(u64),
}

impl Done {
    fn good(wanted: u64, moved: u64) -> Done {
        Done { status: Status::Good, sense: None, wanted, moved }
    }

    fn check(sense: Sense) -> Done {
        Done { status: Status::CheckCondition, sense: Some(sense), wanted: 0, moved: 0 }
    }

    fn status(status: Status) -> Done {
        Done { status, sense: None, wanted: 0, moved: 0 }
    }

    /// Against a buffer of this length.
    #[must_use]
    pub fn residual(&self, buffer: u64) -> Residual {
        match (self.wanted > buffer, self.moved < buffer) {
            (true, _) => Residual::Over(self.wanted - buffer),
            (false, true) => Residual::Under(buffer - self.moved),
            (false, false) => Residual::Exact,
        }
    }
}

/// What became of [`Task::abort`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aborted {
    /// The task has ended.
    Now,
    /// Something is out; the task ends with its answer.
    Later,
    /// The task itself does nothing more. It ends when the commands have that it has had aborted.
    Behind,
}

/// A command. See the module.
#[derive(Debug)]
pub struct Task {
    stage: Stage,
    job: Job,
    permit: Option<Permit>,
    claim: Option<Claim>,
    aborted: bool,
    /// Marks of requests that were set aside: of one that reads, and of one that writes.
    passed: [u8; 2],
}

impl Default for Task {
    fn default() -> Task {
        Task::new()
    }
}

impl Task {
    /// No command yet.
    #[must_use]
    pub const fn new() -> Task {
        Task {
            stage: Stage::Idle,
            job: Job::NOTHING,
            permit: None,
            claim: None,
            aborted: false,
            passed: [0; 2],
        }
    }

    /// Whether no command is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// Begins a command. CDBs longer than sixteen bytes are looked at as far as that; what this target knows ends there.
    ///
    /// # Panics
    ///
    /// When another command is under way, or the writer belongs to another logical unit: defects of the caller.
    #[inline(always)] // At one place in a handler, where what comes of it is looked at.
    pub fn begin(&mut self, cx: &Context<'_>, cdb: &[u8]) -> Step {
        assert!(self.is_idle(), "a command is under way");
        assert!(cx.writer.leads_to(&cx.nexus.unit().exclusion), "the writer of another unit");
        self.aborted = false;
        match cdb.first_chunk() {
            Some(whole) => self.begin_whole(cx, whole, cdb.len()),
            None => self.begin_short(cx, cdb),
        }
    }

    #[inline]
    fn begin_whole(&mut self, cx: &Context<'_>, cdb: &[u8; 16], len: usize) -> Step {
        match judge(cx.nexus, cdb, len) {
            Ok(spec) => self.dispatch(cx, spec, cdb),
            Err(done) => Step::Done(done),
        }
    }

    /// With zeroes behind the end, so that no field is missing.
    #[cold]
    fn begin_short(&mut self, cx: &Context<'_>, cdb: &[u8]) -> Step {
        let mut bytes = [0; 16];
        bytes[..cdb.len()].copy_from_slice(cdb);
        self.begin_whole(cx, &bytes, cdb.len())
    }

    #[inline]
    fn dispatch(&mut self, cx: &Context<'_>, spec: &Spec, cdb: &[u8; 16]) -> Step {
        match spec.verb {
            Verb::Read => self.begin_read(cx, cdb),
            Verb::Write => self.begin_write(cx, cdb),
            _ => self.dispatch_rare(cx, spec, cdb),
        }
    }

    #[cold]
    fn dispatch_rare(&mut self, cx: &Context<'_>, spec: &Spec, cdb: &[u8; 16]) -> Step {
        match spec.verb {
            Verb::Read => self.begin_read(cx, cdb),
            Verb::Write => self.begin_write(cx, cdb),
            Verb::WriteAndVerify => self.begin_write_and_verify(cx, cdb),
            Verb::Verify => self.begin_verify(cx, cdb),
            Verb::WriteSame => self.begin_write_same(cx, cdb),
            Verb::Unmap => self.begin_unmap(cx, cdb),
            Verb::CompareAndWrite => self.begin_compare_and_write(cx, cdb),
            Verb::SynchronizeCache => self.begin_synchronize(cx, cdb),
            Verb::StartStop => self.begin_start_stop(cx, cdb),
            Verb::ReservationsOut => self.begin_reservations_out(cx, cdb),
            Verb::ReadCd => self.begin_read_cd(cx, cdb),
            _ => Step::Done(answer::answer(cx, spec, cdb)),
        }
    }

    /// Goes on with a command.
    ///
    /// # Panics
    ///
    /// When no command is under way.
    #[inline]
    pub fn resume(&mut self, cx: &Context<'_>, input: Input) -> Step {
        assert!(!self.is_idle(), "no command is under way");
        if self.aborted {
            // It was waiting for exactly this. A change of reservations that is stored has happened.
            if let (Stage::Store, Input::Stored(stored)) = (self.stage, input) {
                let abort = cx.nexus.stored(stored);
                if !abort.is_empty() {
                    self.stage = Stage::Aborting;
                    return Step::Abort(abort);
                }
            }
            return self.done(cx, Done::status(Status::TaskAborted));
        }
        self.proceed(cx, input)
    }

    /// Aborts the command. After [`Aborted::Now`] the task is idle again and its command has no status; after
    /// the others it ends with TASK ABORTED when what is out has come back and nothing is left to abort.
    pub fn abort(&mut self, cx: &Context<'_>) -> Aborted {
        if self.stage.is_out() || matches!(self.stage, Stage::Aborting) {
            self.aborted = true;
            let behind = matches!(self.stage, Stage::Aborting);
            return if behind { Aborted::Behind } else { Aborted::Later };
        }
        if !self.is_idle() {
            self.passed = [0; 2];
            self.done(cx, Done::status(Status::TaskAborted));
        }
        Aborted::Now
    }

    /// The request that the task has asked for was not begun, and will have to wait; `passed` says who has let it through already. Whether the task
    /// has given back what it held, its scratch memory as well: then the request is over, and the task asks for it again after
    /// [`Input::Ready`]. Otherwise it holds nothing that others could need, and the request is as it was.
    pub fn set_aside(&mut self, cx: &Context<'_>, passed: u8) -> bool {
        let Stage::Out(out) = self.stage else { return false };
        let Some((stage, writes)) = out.set_aside() else { return false };
        if memory::planted("permit-held") {
            return false;
        }
        self.stage = stage;
        self.passed[usize::from(writes)] = passed;
        if out == Out::CompareWrite {
            // What it has read is read again, and those that have let this through had let that through before.
            self.passed[0] |= passed;
        }
        self.release(cx);
        self.give_back(cx);
        true
    }

    /// Whether it was set aside and did not go on yet, or waits for something else that is not the volume's answer.
    #[must_use]
    pub fn is_aside(&self) -> bool {
        !self.stage.is_out()
    }

    /// Ends the command and gives back what it held.
    #[inline(always)]
    fn done(&mut self, cx: &Context<'_>, done: Done) -> Step {
        self.stage = Stage::Idle;
        self.release(cx);
        if self.claim.is_some() {
            self.passed = [0; 2];
            self.give_back(cx);
        }
        Step::Done(done)
    }

    /// Ends the write that is under way.
    #[inline]
    fn release(&mut self, cx: &Context<'_>) {
        if let Some(permit) = self.permit {
            self.permit = None;
            cx.writer.leave(permit);
        }
    }

    #[cold]
    fn give_back(&mut self, cx: &Context<'_>) {
        if let Some(claim) = self.claim.take() {
            cx.writer.give_back(claim);
        }
    }

    fn fail(&mut self, cx: &Context<'_>, sense: Sense) -> Step {
        self.done(cx, Done::check(sense))
    }
}

/// Everything that is checked before a command is looked at in detail: is it known, may it be sent now.
#[inline]
fn judge(nexus: &Nexus, cdb: &[u8; 16], len: usize) -> Result<&'static Spec, Done> {
    let found = table::find(cdb[0], cdb[1]);
    if !nexus.gate().is_open() {
        attention(nexus, found.ok())?;
        becoming_ready(nexus, found.ok())?;
    }
    let spec = match found {
        Ok(spec) if len >= spec.usage.len() && exists(nexus.unit(), spec.needs) => spec,
        other => return Err(unknown(nexus.unit(), other, cdb, len)),
    };
    // NACA: there is no ACA here (SAM-5, 5.2; INQUIRY says NORMACA 0).
    let control = spec.usage.len() - 1;
    if cdb[control] & 0x04 != 0 {
        return Err(Done::check(Sense::cdb_bit(control as u16, 2)));
    }
    if !nexus.gate().is_open() {
        comes_through(nexus, spec)?;
        if !allowed(nexus.level(), spec, cdb) {
            return Err(Done::status(Status::ReservationConflict));
        }
    }
    if spec.needs_medium && nexus.unit().flags() & flag::NO_MEDIUM != 0 {
        return Err(Done::check(nexus.unit().not_ready()));
    }
    Ok(spec)
}

#[inline]
pub(crate) fn exists(unit: &LogicalUnit, needs: Needs) -> bool {
    needs.met(unit.lacks())
}

/// A logical unit that is becoming ready says who it is and which ways lead to it. Of everything else, known or not, it is not known yet what it
/// will make of it.
#[cold]
fn becoming_ready(nexus: &Nexus, spec: Option<&Spec>) -> Result<(), Done> {
    match nexus.unit().awaited && spec.is_none_or(|spec| spec.path != Path::Any) {
        true => Err(Done::check(nexus.unit().not_ready())),
        false => Ok(()),
    }
}

/// What the access state of the target port group lets through (SPC-4, 5.15.2.4 and 5.15.2.5).
#[cold]
fn comes_through(nexus: &Nexus, spec: &Spec) -> Result<(), Done> {
    let Some(state) = nexus.gate().way() else {
        return Ok(());
    };
    match (spec.path, state.refusal()) {
        (_, None) | (Path::Any, _) => Ok(()),
        (Path::Standby, _) if state == AccessState::Standby => Ok(()),
        (_, Some(code)) => Err(Done::check(Sense::new(SenseKey::NotReady, code))),
    }
}

/// A pending unit attention ends every command but those that must work always (SAM-5, 5.14.1; for the last two MMC-6, 4.1.6).
#[cold]
fn attention(nexus: &Nexus, spec: Option<&Spec>) -> Result<(), Done> {
    let exempt = [
        Verb::Inquiry,
        Verb::ReportLuns,
        Verb::RequestSense,
        Verb::GetConfiguration,
        Verb::EventStatus,
    ];
    let known = spec.filter(|spec| exists(nexus.unit(), spec.needs));
    if known.is_some_and(|spec| exempt.contains(&spec.verb)) {
        return Ok(());
    }
    nexus.gate().take().map_or(Ok(()), |attention| Err(Done::check(attention.sense())))
}

/// Why there is no such command. Rows of other kinds of units count as none.
#[cold]
fn unknown(unit: &LogicalUnit, found: Result<&Spec, Unknown>, cdb: &[u8; 16], len: usize) -> Done {
    let known = |row: &Spec| exists(unit, row.needs);
    let has_actions = || table::rows(cdb[0]).iter().any(|row| row.action.is_some() && known(row));
    Done::check(match found {
        _ if len == 0 => Sense::illegal(code::INVALID_OPCODE),
        Ok(spec) if known(spec) => Sense::illegal(code::INVALID_FIELD_IN_CDB),
        _ if has_actions() => Sense::cdb_bit(1, 4),
        _ => Sense::illegal(code::INVALID_OPCODE),
    })
}

/// What a reservation of others lets through (SPC-4, table 66; SBC-3, table 13).
#[cold]
fn allowed(level: Level, spec: &Spec, cdb: &[u8; 16]) -> bool {
    let harmless = match spec.verb {
        // START with no power condition.
        Verb::StartStop => cdb[4] & 0xf1 == 0x01,
        // Allowing, not preventing.
        Verb::PreventAllow => cdb[4] & 0x03 == 0,
        _ => false,
    };
    let access = match spec.verb {
        Verb::StartStop | Verb::PreventAllow if !harmless => Access::Write,
        _ => spec.access,
    };
    match (level, access) {
        (Level::Full, _) | (_, Access::Own) => true,
        (Level::Reserved, _) => spec.despite_reserve,
        (_, Access::Always) | (Level::Read, Access::Read) => true,
        (_, Access::Read | Access::Write) => false,
    }
}

/// A command to an address without a logical unit, or to the well-known one for REPORT LUNS (SPC-4, 6.6.1 and 8.2).
#[must_use]
pub fn unattached(well_known: bool, luns: &[Lun], data_in: &Data<'_>, cdb: &[u8]) -> Done {
    answer::unattached(well_known, luns, data_in, cdb)
}

#[cfg(test)]
mod tests;
