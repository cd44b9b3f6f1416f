//! The statistics file of a virtual Fibre Channel adapter: `/proc/sys/adapter/vfc/vfchostN/stats`.

use super::text::lines;

/// What the file shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AdapterReport {
    /// Commands of the control and event queues; one number each.
    pub(super) command_queues: Vec<u64>,
    /// Commands of each channel that was negotiated: those of every queue whose number leaves its number behind, as clients of the original
    /// put their queues on channels.
    pub(super) channels: Vec<u64>,
    /// Further counters, by what is printed before the equals sign.
    pub(super) more: Vec<(&'static str, u64)>,
}

/// The counters behind those of the queues, and the name under which each is printed.
pub(super) const MORE: &[(&str, &str)] = &[
    ("global_commands", "Commands from global pool"),
    ("global_buffers", "Buffers from global pool"),
    ("wait_no_command", "No Command Resource"),
    ("wait_no_dma", "No DMA Resource"),
    ("wait_no_adapter_element", "No Adapter Elements"),
    ("wait_back_end_full", "Waits for the back end"),
    ("wait_throttled", "Waits for rate limit"),
    ("commands_active", "Active commands"),
    ("commands_active_max", "High water mark of active commands"),
    ("commands_pending", "Pending commands"),
    ("commands_pending_max", "High water mark of pending commands"),
    ("commands_waiting", "Active commands that wait"),
    ("commands_in_device", "Commands in the device"),
    ("control_requests", "Control requests"),
    ("check_conditions", "Check conditions"),
    ("unit_attentions", "Unit attentions"),
    ("reservation_conflicts", "Reservation conflicts"),
    ("aborted", "Commands aborted"),
    ("errors", "Commands with errors"),
    ("resubmitted", "Commands done again after a restart"),
    ("moves", "Moves between channels"),
];

/// The file.
pub(super) fn file(report: &AdapterReport) -> String {
    let mut all = vec![
        String::new(),
        format!("Number of CMD queues    = {}", report.command_queues.len()),
        format!("Number of SUBQ channels = {}", report.channels.len()),
    ];
    let queues = report.command_queues.iter().chain(&report.channels);
    all.extend(queues.map(|commands| format!("Commands received  = {commands}")));
    all.extend(report.more.iter().map(|(name, value)| format!("{name} = {value}")));
    lines(&all)
}
