//! Why a frame was not delivered: one list for counters, command line, API, metrics and traces.

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// Why a frame was not delivered to one of its destinations. Names are those of Linux's drop reasons, or of Open vSwitch's
        /// counters, where they have one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Reason {
            /// All of them, in the order of the counters.
            pub const ALL: &[Reason] = &[$(Reason::$name,)+];

            /// Its word in output, metrics and captures.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Reason::$name => $word,)+ }
            }

            /// What it means, in a sentence or two.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Reason::$name => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

reasons! {
    /// Shorter than its headers.
    PktTooSmall = "pkt_too_small",
    /// Longer than any frame may be.
    PktTooBig = "pkt_too_big",
    /// The source is a group's address, or zero.
    MacInvalidSource = "mac_invalid_source",
    /// The destination is one of 01:80:c2:00:00:00 to 0f, which no bridge forwards.
    MacIeeeMacControl = "mac_ieee_mac_control",
    /// The port is not a member of the frame's VLAN, or takes no untagged frames.
    VlanFilter = "vlan_filter",
    /// The virtio-net header contradicts the frame, or uses what was not negotiated.
    InvalidHwol = "invalid_hwol",
    /// The frame would be cut into too many segments.
    SkbGsoSeg = "skb_gso_seg",
    /// The source MAC address is not one of the port's.
    SpoofMac = "spoof_mac",
    /// The sender of an ARP packet is not the port's.
    SpoofArp = "spoof_arp",
    /// The source IP address is not one of the port's.
    SpoofIp = "spoof_ip",
    /// A neighbour discovery packet announces what is not the port's.
    SpoofNd = "spoof_nd",
    /// The port may not answer as a DHCP server.
    DhcpServer = "dhcp_server",
    /// The port may not advertise itself as a router.
    RouterAdvert = "router_advert",
    /// A guarded port sent headers that cannot be judged: too long, broken, or cut into fragments.
    HeaderChain = "header_chain",
    /// More broadcasts than the port may send.
    StormBroadcast = "storm_broadcast",
    /// More multicasts than the port may send.
    StormMulticast = "storm_multicast",
    /// More frames to unknown destinations than the port may send.
    StormUnknown = "storm_unknown",
    /// Above the port's rate.
    QosDrop = "qos_drop",
    /// The destination is behind the port that the frame came from.
    SamePort = "same_port",
    /// Both ports are private.
    PrivatePort = "private_port",
    /// The port only receives mirrored frames.
    MirrorOnly = "mirror_only",
    /// No other port is in the VLAN, or none wants the group.
    NoTxTarget = "no_tx_target",
    /// Longer than the destination's MTU.
    MtuExceeded = "mtu_exceeded",
    /// The destination is not connected, or its queue is stopped.
    PortDown = "port_down",
    /// The destination posted no buffers in time.
    RxNoBuffer = "rx_no_buffer",
    /// The destination's buffers are shorter than the frame.
    RxBufferTooSmall = "rx_buffer_too_small",
    /// What waits for the destination has no more room: the ring to its channel, or what the kernel keeps for an interface.
    FullRing = "full_ring",
    /// No room for a copy.
    NoMem = "nomem",
    /// The destination refused it: the kernel for an uplink.
    Failure = "failure",
    /// The sender's or the destination's memory is gone, or its descriptors are broken.
    GuestMemory = "guest_memory",
    /// This server does not bridge the VLAN now: another does.
    Standby = "standby",
    /// Above the rate of the port that it was for.
    RxQosDrop = "rx_qos_drop",
    /// A copy for a port that watches; the frame itself was not.
    MirrorCopy = "mirror_copy",
    /// It came by a member of an aggregated uplink that is not the active one.
    Inactive = "inactive",
}

/// Frames of one port in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    /// Frames that came through.
    pub frames: u64,
    /// Their bytes, from the destination address to the end of the payload; a frame to be segmented counts once.
    pub bytes: u64,
    dropped: [u64; Reason::ALL.len()],
}

impl Counters {
    pub(crate) const NEW: Counters =
        Counters { frames: 0, bytes: 0, dropped: [0; Reason::ALL.len()] };

    /// Frames that were dropped for that reason.
    #[must_use]
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Frames that were dropped for any.
    #[must_use]
    pub fn dropped_all(&self) -> u64 {
        self.dropped.iter().sum()
    }

    #[inline]
    pub(crate) fn pass(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }

    pub(crate) fn drop(&mut self, reason: Reason) {
        self.dropped[reason as usize] += 1;
    }
}
