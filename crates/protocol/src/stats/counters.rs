//! The registry: everything that is counted, with its name, unit, kind and meaning.

/// What a number counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Pieces.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds (seconds in `/metrics`).
    Nanoseconds,
}

/// How a number moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only up.
    Counter,
    /// Up and down.
    Gauge,
    /// The highest value of the gauge before it in the table.
    HighWater,
    /// The highest of single values that a counter adds up.
    Longest,
    /// The lowest of them; 0 where there was none.
    Shortest,
}

/// One row of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterInfo {
    /// Name in the CLI and the API; `/metrics` adds prefix and suffix.
    pub name: &'static str,
    /// How it moves.
    pub kind: Kind,
    /// What it counts in.
    pub unit: Unit,
    /// What it means.
    pub help: &'static str,
}

impl CounterInfo {
    /// Whether it is left out where it is 0: it counts frames, which disks have none of, and most reasons to lose one never occur.
    #[must_use]
    pub fn is_left_out(&self) -> bool {
        ["tx_", "rx_", "drop_", "handed_"].iter().any(|prefix| self.name.starts_with(prefix))
    }
}

macro_rules! registry {
    ($(#[$doc:meta])* $registry:ident { $($variant:ident $name:literal $kind:ident $unit:ident $help:literal)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum $registry { $(#[doc = $help] $variant),* }

        impl $registry {
            /// All of them, in the order of the table.
            pub const ALL: &'static [$registry] = &[$($registry::$variant),*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Its row.
            #[must_use]
            pub fn info(self) -> CounterInfo {
                match self {
                    $($registry::$variant => CounterInfo {
                        name: $name, kind: Kind::$kind, unit: Unit::$unit, help: $help,
                    }),*
                }
            }
        }
    };
}

registry! {
    /// What is counted for each queue.
    QueueCounter {
        CommandsReceived "commands_received" Counter Count "Commands taken from the ring."
        Active "commands_active" Gauge Count "Commands that the server works on: they have their command element, and are in the server or in the device."
        ActiveMax "commands_active_max" HighWater Count "Most commands that were active at once."
        Pending "commands_pending" Gauge Count "Commands that are held until a command element is free. They are not active."
        PendingMax "commands_pending_max" HighWater Count "Most commands that were held at once."
        Reads "reads" Counter Count "Reads completed."
        Writes "writes" Counter Count "Writes completed."
        Flushes "flushes" Counter Count "Flushes completed."
        Discards "discards" Counter Count "Discards completed."
        WriteZeroes "write_zeroes" Counter Count "Write-zeroes requests completed."
        GetIds "get_ids" Counter Count "Requests for the serial number completed."
        ReadBytes "read_bytes" Counter Bytes "Bytes read by completed reads."
        WrittenBytes "written_bytes" Counter Bytes "Bytes written by completed writes."
        Errors "errors" Counter Count "Commands answered with an error."
        ErrorsNoSpace "errors_no_space" Counter Count "Writes that failed because the file system under the volume is full."
        ErrorsGone "errors_gone" Counter Count "Commands that failed because the volume's file or device is gone."
        Unsupported "unsupported" Counter Count "Commands of a type, or with flags, that the adapter does not serve."
        OutOfRange "out_of_range" Counter Count "Commands beyond the end of the volume or not a multiple of its block size."
        BadChains "bad_chains" Counter Count "Descriptor chains that break the rules: outside of memory, loops, too short."
        RingErrors "ring_errors" Counter Count "Times the queue was stopped because its ring breaks the rules."
        WaitThrottled "wait_throttled" Counter Count "Times a command waited for the volume's rate limit."
        WaitNoDma "wait_no_dma" Counter Count "Times a command waited for a buffer: a bounce buffer or a long segment list."
        WaitBackEndFull "wait_back_end_full" Counter Count "Times a command waited because the back end took no more."
        WaitDelay "wait_delay" Counter Count "Times a command waited for the modelled service time of a delay."
        WaitPool "wait_pool" Counter Count "Times a command waited for its storage pool: a first write, zeroes, a discard, a flush."
        WaitPoolFull "wait_pool_full" Counter Count "Times a command that needs space came to a storage pool that has none."
        Rounds "rounds" Counter Count "Commands that a volume served in more than one round."
        Kicks "kicks" Counter Count "Notifications received from the client."
        Notifications "notifications" Counter Count "Notifications sent to the client."
        NotificationsSpared "notifications_spared" Counter Count "Batches of completions that needed no notification."
        Resubmitted "resubmitted" Counter Count "Commands done again after a restart, from the in-flight region."
        Starts "starts" Counter Count "Times the queue was started."
        ControlRequests "control_requests" Counter Count "SCSI commands that are neither reads nor writes, and task management functions."
        CheckConditions "check_conditions" Counter Count "SCSI commands that ended with CHECK CONDITION, unit attentions among them."
        UnitAttentions "unit_attentions" Counter Count "Unit attentions that the client was told."
        ReservationConflicts "reservation_conflicts" Counter Count "SCSI commands that another client's reservation refused."
        Aborted "aborted" Counter Count "SCSI commands that were aborted by task management, resets, or a changed mask."
        WaitNoCommand "wait_no_command" Counter Count "Times a command waited because num_cmd_elems commands were active (No Command Resource)."
        GlobalCommands "global_commands" Counter Count "Commands that were active beyond the num_local_cmds of their queue."
        GlobalBuffers "global_buffers" Counter Count "Segment lists that came from the channel's shared pool, because the queue's own were in use or too short (bufs_per_cmd)."
        Moves "moves" Counter Count "Times the queue was moved to another channel while it ran."
        WaitNoElement "wait_no_adapter_element" Counter Count "Times a command waited because the num_cmd_elems of the port were lent (No Adapter Elements)."
        Waiting "commands_waiting" Gauge Count "Active commands that wait in the server for a limit, a buffer, a modelled delay or room in the back end."
        WaitingMax "commands_waiting_max" HighWater Count "Most active commands that waited in the server at once."
        InDevice "commands_in_device" Gauge Count "Active commands that are with the volume."
        TimedReads "timed_reads" Counter Count "Reads that a volume was asked for, failed ones too: those of which the times are."
        ReadServer "read_server_ns" Counter Nanoseconds "Time that these reads spent in the server, waits included."
        ReadDevice "read_device_ns" Counter Nanoseconds "Time that these reads spent with the volume."
        TimedWrites "timed_writes" Counter Count "Writes that a volume was asked for, failed ones too: those of which the times are."
        WriteServer "write_server_ns" Counter Nanoseconds "Time that these writes spent in the server, waits included."
        WriteDevice "write_device_ns" Counter Nanoseconds "Time that these writes spent with the volume."
        ReadShortest "read_device_ns_min" Shortest Nanoseconds "Shortest time that one of these reads spent with the volume, since the start or `adapter reset-marks`."
        ReadLongest "read_device_ns_max" Longest Nanoseconds "Longest time that one of these reads spent with the volume."
        WriteShortest "write_device_ns_min" Shortest Nanoseconds "Shortest time that one of these writes spent with the volume, since the start or `adapter reset-marks`."
        WriteLongest "write_device_ns_max" Longest Nanoseconds "Longest time that one of these writes spent with the volume."
        TxFrames "tx_frames" Counter Count "Frames that the client sent and that went on."
        TxBytes "tx_bytes" Counter Bytes "Bytes of these frames. One that is to be segmented counts once."
        RxFrames "rx_frames" Counter Count "Frames that the client got."
        RxBytes "rx_bytes" Counter Bytes "Bytes of these frames. One that was segmented on its way counts once."
        DropPktTooSmall "drop_pkt_too_small" Counter Count "Frames that were lost: shorter than its headers."
        DropPktTooBig "drop_pkt_too_big" Counter Count "Frames that were lost: longer than any frame may be."
        DropMacInvalidSource "drop_mac_invalid_source" Counter Count "Frames that were lost: the source is a group's address, or zero."
        DropMacIeeeMacControl "drop_mac_ieee_mac_control" Counter Count "Frames that were lost: the destination is one of 01:80:c2:00:00:00 to 0f, which no bridge forwards."
        DropVlanFilter "drop_vlan_filter" Counter Count "Frames that were lost: the port is not a member of the frame's VLAN, or takes no untagged frames."
        DropInvalidHwol "drop_invalid_hwol" Counter Count "Frames that were lost: the virtio-net header contradicts the frame, or uses what was not negotiated."
        DropSkbGsoSeg "drop_skb_gso_seg" Counter Count "Frames that were lost: the frame would be cut into too many segments."
        DropSpoofMac "drop_spoof_mac" Counter Count "Frames that were lost: the source MAC address is not one of the port's."
        DropSpoofArp "drop_spoof_arp" Counter Count "Frames that were lost: the sender of an ARP packet is not the port's."
        DropSpoofIp "drop_spoof_ip" Counter Count "Frames that were lost: the source IP address is not one of the port's."
        DropSpoofNd "drop_spoof_nd" Counter Count "Frames that were lost: a neighbour discovery packet announces what is not the port's."
        DropDhcpServer "drop_dhcp_server" Counter Count "Frames that were lost: the port may not answer as a DHCP server."
        DropRouterAdvert "drop_router_advert" Counter Count "Frames that were lost: the port may not advertise itself as a router."
        DropHeaderChain "drop_header_chain" Counter Count "Frames that were lost: a guarded port sent headers that cannot be judged: too long, broken, or cut into fragments."
        DropStormBroadcast "drop_storm_broadcast" Counter Count "Frames that were lost: more broadcasts than the port may send."
        DropStormMulticast "drop_storm_multicast" Counter Count "Frames that were lost: more multicasts than the port may send."
        DropStormUnknown "drop_storm_unknown" Counter Count "Frames that were lost: more frames to unknown destinations than the port may send."
        DropQosDrop "drop_qos_drop" Counter Count "Frames that were lost: above the port's rate."
        DropSamePort "drop_same_port" Counter Count "Frames that were lost: the destination is behind the port that the frame came from."
        DropPrivatePort "drop_private_port" Counter Count "Frames that were lost: both ports are private."
        DropMirrorOnly "drop_mirror_only" Counter Count "Frames that were lost: the port only receives mirrored frames."
        DropNoTxTarget "drop_no_tx_target" Counter Count "Frames that were lost: no other port is in the VLAN, or none wants the group."
        DropMtuExceeded "drop_mtu_exceeded" Counter Count "Frames that were lost: longer than the destination's MTU."
        DropPortDown "drop_port_down" Counter Count "Frames that were lost: the destination is not connected, or its queue is stopped."
        DropRxNoBuffer "drop_rx_no_buffer" Counter Count "Frames that were lost: the destination posted no buffers in time."
        DropRxBufferTooSmall "drop_rx_buffer_too_small" Counter Count "Frames that were lost: the destination's buffers are shorter than the frame."
        DropFullRing "drop_full_ring" Counter Count "Frames that were lost: what waits for the destination has no more room: the ring to its channel, or what the kernel keeps for an interface."
        DropNoMem "drop_nomem" Counter Count "Frames that were lost: no room for a copy."
        DropFailure "drop_failure" Counter Count "Frames that were lost: the destination refused it: the kernel for an uplink."
        DropGuestMemory "drop_guest_memory" Counter Count "Frames that were lost: the sender's or the destination's memory is gone, or its descriptors are broken."
        DropStandby "drop_standby" Counter Count "Frames that were lost: this server does not bridge the VLAN now: another does."
        DropRxQosDrop "drop_rx_qos_drop" Counter Count "Frames that were lost: above the rate of the port that it was for."
        DropMirrorCopy "drop_mirror_copy" Counter Count "Frames that were lost: a copy for a port that watches; the frame itself was not."
        DropInactive "drop_inactive" Counter Count "Frames that were lost: it came by a member of an aggregated uplink that is not the active one."
        HandedOver "handed_over" Counter Count "Frames that the queue sent on to one on another channel, once for each. Each was copied once more, and woke that channel perhaps."
    }
}

impl Kind {
    /// Of two parts the value of both, where it is no sum of theirs.
    #[must_use]
    pub fn of_both(self, one: u64, other: u64) -> Option<u64> {
        match self {
            Kind::Counter | Kind::Gauge => None,
            Kind::HighWater | Kind::Longest => Some(one.max(other)),
            Kind::Shortest if one == 0 || other == 0 => Some(one.max(other)),
            Kind::Shortest => Some(one.min(other)),
        }
    }
}

impl QueueCounter {
    /// What is counted for LUNs, too.
    pub const OF_LUN: &'static [QueueCounter] = &[
        QueueCounter::Reads,
        QueueCounter::Writes,
        QueueCounter::ReadBytes,
        QueueCounter::WrittenBytes,
        QueueCounter::ControlRequests,
        QueueCounter::Flushes,
        QueueCounter::Discards,
        QueueCounter::WriteZeroes,
        QueueCounter::Errors,
        QueueCounter::CheckConditions,
        QueueCounter::UnitAttentions,
        QueueCounter::ReservationConflicts,
        QueueCounter::Aborted,
        QueueCounter::TimedReads,
        QueueCounter::ReadServer,
        QueueCounter::ReadDevice,
        QueueCounter::TimedWrites,
        QueueCounter::WriteServer,
        QueueCounter::WriteDevice,
        QueueCounter::ReadShortest,
        QueueCounter::ReadLongest,
        QueueCounter::WriteShortest,
        QueueCounter::WriteLongest,
    ];
}

registry! {
    /// What is counted for each channel.
    ChannelCounter {
        Turns "turns" Counter Count "Turns of the channel's loop that found work."
        Commands "commands" Counter Count "Commands completed."
        Wakeups "wakeups" Counter Count "Times the channel slept and was woken."
        Enters "enters" Counter Count "io_uring_enter calls."
        Busy "busy_ns" Counter Nanoseconds "Time spent in turns that found work."
        Spin "spin_ns" Counter Nanoseconds "Time spent looking for work while there was none, before it came or the channel went to sleep."
        Sleep "sleep_ns" Counter Nanoseconds "Time spent asleep."
        SpinHits "spin_hits" Counter Count "Times looking for work found some before sleep."
        SpinWindow "spin_window_ns" Gauge Nanoseconds "How long the channel now looks for work before it sleeps."
        Queues "queues" Gauge Count "Queues that the channel owns."
        Messages "messages" Counter Count "Messages handled: start, stop, move."
        SleepPrice "sleep_price_ns" Gauge Nanoseconds "What a sleep is worth in time of looking, and the longest look: `poll_us_max`, or what was measured."
        PriceProbes "sleep_price_probes" Counter Count "Timers that woke the channel and said what a sleep costs here (`poll_us_max = auto`)."
        PriceChanges "sleep_price_changes" Counter Count "Times that what they said moved `sleep_price_ns`."
    }
}
