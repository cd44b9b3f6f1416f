//! What a run of the load generator does, and what cannot be asked of it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;

use super::LoadError;
use super::port::{Disk, ScsiLun};
use crate::blk::SlotPlan;
use crate::session::{SessionOptions, StartPlan};

/// Which block comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Any, evenly.
    Random,
    /// The following one; every queue has its own part of the range.
    Sequential,
}

/// What is known of the blocks when a verified run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// Nothing: what was not written by this run is not compared.
    #[default]
    Anything,
    /// Zeros: what was never written is compared as well.
    Zeros,
    /// What a run with the same seed and blocks of the same size wrote to each once.
    Written,
}

/// How a thread waits for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitMode {
    /// Looks at the rings all the time; asks for no interrupts and makes no system call but kicks.
    Poll,
    /// Sleeps in one read of the eventfd that all its queues interrupt.
    Sleep,
}

/// A run of the load generator.
#[derive(Clone, Debug, Serialize)]
pub struct LoadOptions {
    /// A LUN behind a SCSI device; none: a block device.
    pub scsi: Option<ScsiLun>,
    /// Queues to use.
    pub queues: u16,
    /// Requests outstanding in each queue.
    pub depth: u16,
    /// Threads; one for each queue if not said.
    pub threads: Option<u16>,
    /// Entries of a ring; 128, or more where the depth needs it, if not said.
    pub queue_size: Option<u16>,
    /// Reads among the requests, in percent; the others are writes.
    pub read_percent: u8,
    /// Which block comes next.
    pub order: Order,
    /// Bytes of a request.
    pub block_bytes: u32,
    /// First byte of the disk to use.
    pub offset: u64,
    /// Bytes of the disk to use; up to its end if not said.
    pub length: Option<u64>,
    /// Bytes from the beginning of one block to that of the next; the blocks lie side by side if not said. Not while verifying.
    pub stride: Option<u64>,
    /// How long to measure.
    pub duration: Duration,
    /// Ends the measurement before, as soon as it is true; within some 20 ms.
    #[serde(skip)]
    pub until: Option<Arc<AtomicBool>>,
    /// How many requests to measure at most, over all queues.
    pub operations: Option<u64>,
    /// How long to run before measuring.
    pub warm_up: Duration,
    /// How to wait.
    pub wait: WaitMode,
    /// CPUs for the threads, in turn; none: anywhere.
    pub cpus: Vec<usize>,
    /// Seed of block numbers and patterns.
    pub seed: u64,
    /// Write patterns, check what is read, and read everything back at the end.
    pub verify: bool,
    /// While verifying: what the blocks hold before.
    pub holds: Holds,
    /// A flush after this many writes of a queue.
    pub flush_every: Option<u32>,
    /// Indirect descriptors.
    pub indirect: bool,
    /// Descriptors for the data of one request.
    pub data_segments: u16,
    /// Wait this long for a server that died to come back, instead of failing.
    pub reconnect: Option<Duration>,
    /// A request that takes longer than this is lost. Time without a server does not count.
    pub stuck_after: Duration,
    /// The server's process, to count its CPU time.
    pub server_pid: Option<u32>,
    /// How to talk to the server.
    #[serde(skip)]
    pub session: SessionOptions,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            scsi: None,
            queues: 1,
            depth: 32,
            threads: None,
            queue_size: None,
            read_percent: 100,
            order: Order::Random,
            block_bytes: 4096,
            offset: 0,
            length: None,
            stride: None,
            duration: Duration::from_secs(5),
            until: None,
            operations: None,
            warm_up: Duration::ZERO,
            wait: WaitMode::Sleep,
            cpus: Vec::new(),
            seed: 1,
            verify: false,
            holds: Holds::Anything,
            flush_every: None,
            indirect: false,
            data_segments: 1,
            reconnect: None,
            stuck_after: Duration::from_secs(30),
            server_pid: None,
            session: SessionOptions::default(),
        }
    }
}

/// Blocks that one run may verify; their states take 12 bytes each.
const VERIFY_BLOCKS_MAX: u64 = 1 << 26;

/// A part of the disk in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// First byte.
    pub(super) first_byte: u64,
    /// Blocks.
    pub(super) blocks: u64,
}

impl LoadOptions {
    /// Threads to use.
    pub(super) fn thread_count(&self) -> u16 {
        self.threads.unwrap_or(self.queues)
    }

    pub(super) fn start_plan(&self) -> StartPlan {
        let entries = if self.indirect { 1 } else { self.data_segments.saturating_add(2) };
        let needed = self.depth.saturating_mul(entries).max(128);
        let queue_size =
            self.queue_size.unwrap_or(needed.checked_next_power_of_two().unwrap_or(u16::MAX));
        StartPlan {
            queues: self.queues,
            queue_size,
            threads: self.thread_count(),
            slots: SlotPlan {
                slots: self.depth,
                data_bytes: self.block_bytes,
                data_segments: self.data_segments,
                indirect: self.indirect,
            },
        }
    }

    /// Checks everything that the plan of the session does not, and gives every queue its part of the disk.
    pub(super) fn parts(&self, disk: &Disk) -> Result<Vec<Part>, LoadError> {
        let bad = |text: String| Err(LoadError::Options(text));
        if self.read_percent > 100 {
            return bad(format!("{} % reads: use 0 to 100", self.read_percent));
        }
        let unit = u64::from(disk.block_size.max(512));
        let block = u64::from(self.block_bytes);
        if block == 0 || !block.is_multiple_of(unit) || !self.offset.is_multiple_of(unit) {
            return bad(format!(
                "block size {block} at offset {}: both must be multiples of the disk's {unit} bytes",
                self.offset
            ));
        }
        if self
            .stride
            .is_some_and(|stride| self.verify || stride < block || !stride.is_multiple_of(unit))
        {
            return bad(format!(
                "a stride is a multiple of {unit} bytes, no less than a block, and not verified"
            ));
        }
        if disk.read_only && (self.verify || self.read_percent < 100) {
            return bad("the disk is read-only: use 100 % reads without verification".into());
        }
        if self.holds != Holds::Anything && !self.verify {
            return bad("what the blocks hold is compared only while verifying".into());
        }
        if self.flush_every.is_some() && !disk.flush {
            return bad("the server does not offer FLUSH: leave out --flush-every".into());
        }
        self.split(disk.capacity_bytes)
    }

    /// Bytes from one block to the next.
    pub(super) fn step(&self) -> u64 {
        self.stride.unwrap_or(u64::from(self.block_bytes))
    }

    fn split(&self, capacity: u64) -> Result<Vec<Part>, LoadError> {
        let bad = |text: String| Err(LoadError::Options(text));
        let block = self.step();
        let left = capacity.saturating_sub(self.offset);
        let length = self.length.unwrap_or(left);
        if length > left {
            return bad(format!(
                "{length} bytes from {} reach beyond the end of the disk at {capacity}",
                self.offset
            ));
        }
        let queues = u64::from(self.queues.max(1));
        let (all, each) = (length / block, length / block / queues);
        // Twice the depth, so that a verifying queue always finds a block that is not busy.
        let least = 2 * u64::from(self.depth);
        let own_parts = self.verify || self.order == Order::Sequential;
        if each == 0 || (self.verify && each < least) {
            return bad(format!(
                "{length} bytes are {each} blocks for each queue, at least {least} needed"
            ));
        }
        if self.verify && all > VERIFY_BLOCKS_MAX {
            return bad(format!(
                "{all} blocks to verify, at most {VERIFY_BLOCKS_MAX}: use --length"
            ));
        }
        let part = |index| {
            if own_parts {
                Part { first_byte: self.offset + index * each * block, blocks: each }
            } else {
                Part { first_byte: self.offset, blocks: all }
            }
        };
        Ok((0..queues).map(part).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verifying_queues_have_parts_of_their_own_and_random_readers_share() {
        let options = LoadOptions { queues: 3, depth: 2, verify: true, ..LoadOptions::default() };
        let parts = options.split(10 * 3 * 4096).expect("large enough");
        assert_eq!(parts[2], Part { first_byte: 2 * 10 * 4096, blocks: 10 });
        let shared = LoadOptions { verify: false, ..options };
        assert_eq!(
            shared.split(10 * 3 * 4096).expect("fits")[1],
            Part { first_byte: 0, blocks: 30 }
        );
    }

    #[test]
    fn a_range_beyond_the_end_or_too_small_says_so() {
        let options = LoadOptions { offset: 4096, length: Some(8192), ..LoadOptions::default() };
        let text = options.split(8192).expect_err("too far").to_string();
        assert!(text.contains("beyond the end of the disk at 8192"), "{text}");
        let verify = LoadOptions { verify: true, ..LoadOptions::default() };
        let text = verify.split(63 * 4096).expect_err("too small").to_string();
        assert!(text.contains("at least 64 needed"), "{text}");
    }

    #[test]
    fn the_ring_grows_with_the_depth() {
        let plan = |depth, indirect| {
            LoadOptions { depth, indirect, ..LoadOptions::default() }.start_plan()
        };
        assert_eq!(plan(32, false).queue_size, 128);
        assert_eq!(plan(128, false).queue_size, 512);
        assert_eq!(plan(256, true).queue_size, 256);
    }
}
