//! [`Port`]: what a lane of the load generator drives, a block device's queue or a LUN behind a SCSI device's.
//!
//! A SCSI client sends again what was answered with a unit attention, with BUSY or with an abort that somebody else caused, as the driver of a
//! guest does; a lane sees one request that took longer.

use memory::IoBuf;
use serde::Serialize;
use vring::driver::{AddError, DriverQueue, UsedError};

use crate::blk::{self, Slot, Status};
use crate::scsi::cdb::{self, Transfer};
use crate::scsi::{self, Command, address};

/// What a lane asks for. Offsets and lengths are bytes, multiples of the disk's block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Read { offset: u64, bytes: u32 },
    Write { offset: u64, bytes: u32 },
    Flush,
}

/// Which LUN of a SCSI device is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScsiLun {
    /// The target.
    pub target: u8,
    /// Its LUN.
    pub lun: u16,
}

/// The disk under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    pub(super) capacity_bytes: u64,
    pub(super) block_size: u32,
    pub(super) read_only: bool,
    pub(super) flush: bool,
}

pub(super) enum Port {
    Block(blk::Queue),
    Scsi(ScsiPort),
}

/// A LUN behind a request queue.
pub(super) struct ScsiPort {
    queue: scsi::Queue,
    lun: [u8; 8],
    block_shift: u32,
    /// What each slot does, to be sent again.
    requests: Box<[Request]>,
    again: u64,
}

/// A request that came back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) slot: Slot,
    pub(super) good: bool,
}

/// Calls the same method of either queue.
macro_rules! either {
    ($port:expr, $queue:ident => $call:expr) => {
        match $port {
            Port::Block($queue) => $call,
            Port::Scsi(ScsiPort { queue: $queue, .. }) => $call,
        }
    };
}

impl Port {
    pub(super) fn scsi(queue: scsi::Queue, lun: ScsiLun, block_size: u32) -> Port {
        Port::Scsi(ScsiPort {
            requests: vec![Request::Flush; queue.depth()].into_boxed_slice(),
            queue,
            lun: address(lun.target, lun.lun),
            block_shift: block_size.trailing_zeros(),
            again: 0,
        })
    }

    pub(super) fn depth(&self) -> usize {
        either!(self, queue => queue.depth())
    }

    pub(super) fn busy(&self) -> usize {
        either!(self, queue => queue.busy())
    }

    pub(super) fn kicks(&self) -> u64 {
        either!(self, queue => queue.kicks())
    }

    /// Requests that were sent again.
    pub(super) fn again(&self) -> u64 {
        match self {
            Port::Block(_) => 0,
            Port::Scsi(port) => port.again,
        }
    }

    pub(super) fn ring(&self) -> &DriverQueue {
        either!(self, queue => queue.ring())
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<Slot> {
        either!(self, queue => queue.take())
    }

    #[inline]
    pub(super) fn give_back(&mut self, slot: Slot) {
        either!(self, queue => queue.give_back(slot));
    }

    #[inline]
    pub(super) fn data(&self, slot: Slot) -> IoBuf {
        either!(self, queue => queue.data(slot))
    }

    #[inline]
    pub(super) fn submit(&mut self, slot: Slot, request: Request) -> Result<(), AddError> {
        match self {
            Port::Block(queue) => queue.submit(
                slot,
                match request {
                    Request::Read { offset, bytes } => blk::Request::Read { offset, bytes },
                    Request::Write { offset, bytes } => blk::Request::Write { offset, bytes },
                    Request::Flush => blk::Request::Flush,
                },
            ),
            Port::Scsi(port) => {
                port.requests[usize::from(slot.0)] = request;
                port.submit(slot, request)
            }
        }
    }

    #[inline]
    pub(super) fn publish(&mut self) -> std::io::Result<()> {
        either!(self, queue => queue.publish())
    }

    /// A request that came back for good, if there is one.
    #[inline]
    pub(super) fn poll(&mut self) -> Result<Option<Done>, UsedError> {
        match self {
            Port::Block(queue) => {
                let done = queue.poll()?;
                Ok(done.map(|done| Done { slot: done.slot, good: done.status == Status::Ok }))
            }
            Port::Scsi(port) => port.poll(),
        }
    }

    /// How a request that came back ended, in words.
    pub(super) fn describe(&self, slot: Slot) -> String {
        match self {
            Port::Block(queue) => format!("{:?}", queue.status(slot)),
            Port::Scsi(port) => {
                let reply = port.queue.reply(slot);
                let sense = reply
                    .sense_code()
                    .map(|(key, code)| format!(", sense key {key:#x} code {code:#06x}"))
                    .unwrap_or_default();
                format!("response {}, status {:#04x}{sense}", reply.response, reply.status)
            }
        }
    }

    #[inline]
    pub(super) fn enable_interrupts(&mut self) -> bool {
        either!(self, queue => queue.enable_interrupts())
    }

    pub(super) fn disable_interrupts(&mut self) {
        either!(self, queue => queue.disable_interrupts());
    }
}

impl ScsiPort {
    #[inline]
    fn submit(&mut self, slot: Slot, request: Request) -> Result<(), AddError> {
        let (lun, tag) = (self.lun, u64::from(slot.0));
        let command = |cdb, data_out, data_in| Command { lun, tag, cdb, data_out, data_in };
        let transfer = |write, offset: u64, bytes: u32| {
            Transfer::new(write, offset >> self.block_shift, bytes >> self.block_shift)
        };
        match request {
            Request::Read { offset, bytes } => {
                let read = transfer(false, offset, bytes);
                self.queue.submit(slot, &command(read.cdb(), 0, bytes))
            }
            Request::Write { offset, bytes } => {
                let write = transfer(true, offset, bytes);
                self.queue.submit(slot, &command(write.cdb(), bytes, 0))
            }
            Request::Flush => self.queue.submit(slot, &command(&cdb::SYNCHRONIZE_CACHE, 0, 0)),
        }
    }

    #[inline]
    fn poll(&mut self) -> Result<Option<Done>, UsedError> {
        while let Some(slot) = self.queue.poll()? {
            if self.queue.good(slot) {
                return Ok(Some(Done { slot, good: true }));
            }
            if !self.sent_again(slot) {
                return Ok(Some(Done { slot, good: false }));
            }
        }
        Ok(None)
    }

    #[cold]
    fn sent_again(&mut self, slot: Slot) -> bool {
        let reply = self.queue.reply(slot);
        if !reply.try_again() {
            return false;
        }
        // The others on this queue wait as well: they go to the same unit.
        if reply.becoming_ready() {
            std::thread::sleep(scsi::READY_IN);
        }
        // Its descriptors have just become free. A kick fails only when the counter is full: then the server is awake.
        let sent = self.submit(slot, self.requests[usize::from(slot.0)]).is_ok()
            && self.queue.publish().is_ok();
        self.again += u64::from(sent);
        sent
    }
}
