//! [`Plain`]: a READ or WRITE that nothing stands in the way of.
//!
//! Nearly all commands are such ones, and if their volume answers at once they need no [`Task`]: what it would go through is known when
//! they begin. It is the same as with [`Task::begin`], in fewer instructions, and a test holds the two against each other.

use block::OpKind;

use super::decode::{Extent, durable, fua, writable};
use super::medium::{Job, Out, Stage};
use super::{Task, exists};
use crate::exclusion::{Permit, Writer};
use crate::table::{self, Verb};
use crate::unit::{Nexus, flag};

/// What such a command asks of the volume, on all of its buffers. A write has its permit: it goes on, with [`Plain::end`] or
/// [`Task::take_over`].
#[derive(Debug)]
#[must_use]
pub struct Plain {
    /// What.
    pub op: OpKind,
    /// First byte of the volume.
    pub offset: u64,
    /// Number of bytes: those of the buffers.
    pub len: u64,
    permit: Option<Permit>,
}

impl Plain {
    /// Of a command with buffers of so many bytes. `None`: it is none, or something stands in its way, or its buffers are not just as long as it
    /// says. Then nothing has changed, and [`Task::begin`] finds out what becomes of it.
    ///
    /// # Panics
    ///
    /// When the writer belongs to another logical unit: a defect of the caller.
    #[inline]
    pub fn of(
        nexus: &Nexus,
        writer: &Writer,
        cdb: &[u8; 16],
        (out_bytes, in_bytes): (u64, u64),
    ) -> Option<Plain> {
        assert!(writer.leads_to(&nexus.unit().exclusion), "the writer of another unit");
        let unit = nexus.unit();
        let spec = table::find(cdb[0], cdb[1]).ok()?;
        let reads = match spec.verb {
            Verb::Read => true,
            Verb::Write => false,
            _ => return None,
        };
        let extent = Extent::of(cdb);
        let (offset, len) = extent.bytes(unit);
        let whole = if reads { (0, len) } else { (len, 0) };
        let naca = cdb.get(spec.usage.len() - 1).is_none_or(|control| control & 0x04 != 0);
        let is_free = nexus.gate().is_open()
            && exists(unit, spec.needs)
            && !naca
            && (!spec.needs_medium || unit.flags() & flag::NO_MEDIUM == 0);
        if len == 0 || (out_bytes, in_bytes) != whole || !is_free || !extent.is_plain(unit, cdb) {
            return None;
        }
        if reads {
            let flushes = fua(cdb) && unit.volatile_cache;
            let plain = Plain { op: OpKind::Read, offset, len, permit: None };
            return (!flushes).then_some(plain);
        }
        if writable(unit).is_err() {
            return None;
        }
        let permit = Some(writer.enter(offset..offset + len)?);
        Some(Plain { op: OpKind::Write { fua: durable(unit, cdb) }, offset, len, permit })
    }

    /// Whether its buffers are data-in.
    #[inline]
    #[must_use]
    pub fn reads(&self) -> bool {
        self.op == OpKind::Read
    }

    /// The volume has done it: the command has ended, with GOOD and all bytes moved.
    #[inline]
    pub fn end(self, writer: &Writer) {
        if let Some(permit) = self.permit {
            writer.leave(permit);
        }
    }
}

impl Task {
    /// Goes on with a command whose request was given to the volume, or refused by it, as if it had begun with [`Task::begin`].
    ///
    /// # Panics
    ///
    /// When another command is under way.
    #[inline]
    pub fn take_over(&mut self, plain: Plain) {
        assert!(self.is_idle(), "a command is under way");
        let Plain { op, offset: at, len, permit } = plain;
        let fua = matches!(op, OpKind::Write { fua: true });
        self.job = Job { at, len, wanted: len, moved: len, fua, ..Job::NOTHING };
        self.stage = Stage::Out(if op == OpKind::Read { Out::Read } else { Out::Write });
        (self.permit, self.aborted) = (permit, false);
    }
}
