//! The statistics file of a virtual Fibre Channel adapter, as `/proc/sys/adapter/vfc/vfchostN/stats` of the original.

use crate::server::AdapterView;
use protocol::stats::QueueCounter;
use std::collections::BTreeMap;

/// What the file shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdapterFile {
    /// Commands of the control and event queues; one number each.
    pub command_queues: Vec<u64>,
    /// Commands of each channel that was negotiated: those of every queue whose number leaves its number behind, as clients of the original
    /// put their queues on channels.
    pub channels: Vec<u64>,
    /// Further figures, by what is printed before the equals sign.
    pub more: Vec<(&'static str, u64)>,
}

/// The counters behind those of the queues, and the name under which each is printed.
pub const MORE: [(QueueCounter, &str); 21] = [
    (QueueCounter::GlobalCommands, "Commands from global pool"),
    (QueueCounter::GlobalBuffers, "Buffers from global pool"),
    (QueueCounter::WaitNoCommand, "No Command Resource"),
    (QueueCounter::WaitNoDma, "No DMA Resource"),
    (QueueCounter::WaitNoElement, "No Adapter Elements"),
    (QueueCounter::WaitBackEndFull, "Waits for the back end"),
    (QueueCounter::WaitThrottled, "Waits for rate limit"),
    (QueueCounter::Active, "Active commands"),
    (QueueCounter::ActiveMax, "High water mark of active commands"),
    (QueueCounter::Pending, "Pending commands"),
    (QueueCounter::PendingMax, "High water mark of pending commands"),
    (QueueCounter::Waiting, "Active commands that wait"),
    (QueueCounter::InDevice, "Commands in the device"),
    (QueueCounter::ControlRequests, "Control requests"),
    (QueueCounter::CheckConditions, "Check conditions"),
    (QueueCounter::UnitAttentions, "Unit attentions"),
    (QueueCounter::ReservationConflicts, "Reservation conflicts"),
    (QueueCounter::Aborted, "Commands aborted"),
    (QueueCounter::Errors, "Commands with errors"),
    (QueueCounter::Resubmitted, "Commands done again after a restart"),
    (QueueCounter::Moves, "Moves between channels"),
];

/// Queues and channels, in the order of [`AdapterView::queue_numbers`].
const NUMBERS: [&str; 6] = [
    "Queues offered",
    "Queues of the client",
    "Queues used by the client",
    "Channels negotiated",
    "Channels running",
    "CPUs they are bound to",
];

/// Queues of a SCSI adapter that carry no I/O: control and event.
const FIXED: u32 = 2;

impl AdapterFile {
    /// Of an adapter, the commands that each of its queues received, and its counters.
    pub fn of(
        adapter: &AdapterView,
        received: &BTreeMap<u32, u64>,
        counted: impl Fn(QueueCounter) -> u64,
    ) -> AdapterFile {
        let fixed = if adapter.kind == "block" { 0 } else { FIXED };
        // What the client negotiated: it has one channel at least while it is here, and with one it is a single-queue client, whose
        // commands all come on the command queue.
        let negotiated = match adapter.kind.as_str() {
            _ if !adapter.has_client() || adapter.client_queues == 0 => 0,
            "fc" if adapter.channels_max == 1 => 0,
            _ => adapter.channels_max as usize,
        };
        let mut channels = vec![0_u64; negotiated];
        let mut command_queue = 0_u64;
        for (queue, commands) in received {
            let counted = match queue.checked_sub(fixed) {
                Some(number) if negotiated > 0 => &mut channels[number as usize % negotiated],
                _ => &mut command_queue,
            };
            *counted = counted.saturating_add(*commands);
        }
        let numbers = NUMBERS.into_iter().zip(adapter.queue_numbers().map(|(_, count)| count));
        let more = MORE.iter().map(|(counter, shown)| (*shown, counted(*counter)));
        AdapterFile {
            command_queues: if fixed == 0 { Vec::new() } else { vec![command_queue] },
            channels,
            more: numbers.chain(more).collect(),
        }
    }

    /// The file.
    pub fn text(&self) -> String {
        let (own, channels) = (self.command_queues.len(), self.channels.len());
        let heads = [("CMD queues   ", own), ("SUBQ channels", channels)]
            .map(|(what, count)| format!("Number of {what} = {count}"));
        let queues = self.command_queues.iter().chain(&self.channels);
        let queues = queues.map(|commands| format!("Commands received  = {commands}"));
        let more = self.more.iter().map(|(name, value)| format!("{name} = {value}"));
        let lines = heads.into_iter().chain(queues).chain(more);
        lines.fold("\n".to_owned(), |text, line| text + &line + "\n")
    }
}
