//! What the queues of a SCSI adapter are allowed.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::Sizes;

/// What a queue of a SCSI adapter carries (virtio 1.3, clause 5.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScsiRole {
    /// Task management.
    Control,
    /// Events, from the server to the client.
    Event,
    /// Commands.
    Request,
}

/// What a queue of a SCSI adapter is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScsiLimits {
    /// Most commands that are active at once: this queue's share of the adapter's `num_cmd_elems`, at least 1. More wait, counted as
    /// `WaitNoCommand`.
    pub commands: u16,
    /// So many of them are the queue's own (`num_local_cmds`), at least 1. Each one more is taken from the adapter's [`CommandPool`],
    /// counted as `GlobalCommands`.
    pub local: u16,
    /// Data segments for which each of its own commands has room (`bufs_per_cmd`). Longer lists are shared by all queues of the channel,
    /// counted as `GlobalBuffers`.
    pub buffers: u16,
    /// Most task management functions of a control queue that are under way at once (`num_sp_cmd_elem`), at least 1. More wait in order,
    /// counted as `WaitNoCommand`.
    pub functions: u16,
    /// VIRTIO_SCSI_F_INOUT was negotiated.
    pub inout: bool,
    /// Sizes that the driver has set.
    pub sizes: Sizes,
}

/// The commands that the queues of an adapter share beyond those of their own. A queue whose own are all active borrows some at a time, and
/// gives them back when it has nothing to do: so channels that are busy do not write to this word for every command.
#[derive(Debug)]
pub struct CommandPool {
    free: AtomicU32,
}

impl CommandPool {
    /// With so many commands.
    #[must_use]
    pub fn new(commands: u32) -> CommandPool {
        CommandPool { free: AtomicU32::new(commands) }
    }

    /// How many are free.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.free.load(Relaxed)
    }

    /// Takes up to so many; how many there were. A count and no memory, so no order of memory operations matters.
    pub(crate) fn take(&self, count: u16) -> u16 {
        let most = |free: u32| free.min(u32::from(count));
        let before = self.free.fetch_update(Relaxed, Relaxed, |free| Some(free - most(free)));
        // At most `count`.
        before.map_or(0, |free| most(free) as u16)
    }

    pub(crate) fn give_back(&self, count: u16) {
        self.free.fetch_add(u32::from(count), Relaxed);
    }
}
