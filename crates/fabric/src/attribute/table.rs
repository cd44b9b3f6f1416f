//! The table of objects and their attributes.
//!
//! A row is an object: its name in files, messages and commands, the last part of its path in the API, its name in headings, what it is,
//! and the attributes that stand in lists of it. Below it stand its attributes, the important ones first: name, the kinds of object that have it,
//! type, what it takes, default, when a change takes effect, unit, meaning. Each becomes a constant, such as `attr::volume::SIZE`.

use super::Default;
use super::Effect::{Fixed, Live, NextConnect, Restart, Unused};
use super::Kind::{
    Cpus, LunMap, Luns, Members, Mode, Naa, Name, Names, Number, NumberOf, NumberOrAuto, Path,
    PowerOfTwo, Size, Switch, Text, Word, Wwpn, WwpnPair, WwpnPrefix,
};
use super::object::{Row, lowered};
use super::typed::{Attr, OrAuto, by, fits};
use super::words::{
    Accounting, AdapterKind, Aggregation, Cache, Link, OnFull, Placement, Reservations, SocketRole,
    Tagging, UplinkKind, VolumeKind, VtdKind, Wait,
};
use super::{Attribute, Kind};
use crate::negotiate::Policy;
use crate::sea::HaMode;

/// Rates and counts have no natural greatest value; this one keeps sums of them within 64 bits.
const RATE_MAX: u64 = 1 << 42;
/// The largest volume: 8 EiB less a block is what a file offset can name.
const SIZE_MAX: u64 = 1 << 62;
/// Ten seconds: a longer delay is longer than the time-outs of common guests.
const LONGEST_DELAY_US: u64 = 10_000_000;

/// Seeds stay within the signed integers of TOML.
const SEED_MAX: u64 = i64::MAX as u64;

const PPM: Kind = Number { min: 0, max: 1_000_000 };
const RATE: Kind = Number { min: 0, max: RATE_MAX };
const BLOCK_SIZES: Kind = NumberOf(&[512, 4096]);
const TRANSFER: Kind = Size { min: 128 << 10, max: 16 << 20 };
const COMMANDS: Kind = Number { min: 1, max: 64 };

/// Kinds of adapter.
const BLOCK: &[&str] = &["block"];
const FC: &[&str] = &["fc"];
const SCSI: &[&str] = &["fc", "scsi"];
const NOT_FC: &[&str] = &["block", "scsi", "ethernet"];
const DISKS: &[&str] = &["block", "fc", "scsi"];
const ETHERNET: &[&str] = &["ethernet"];
/// Kinds of virtual target device.
const DISK: &[&str] = &["disk"];
const OPTICAL: &[&str] = &["optical"];

use Object::{Adapter, DataPlane, Medium, Network, Pool, Port, Trunk, Uplink, Volume};

objects! {
    /// Something that can be read and written by block.
    Volume volume = "volumes", "Volumes", "what holds data", [] {
        KIND: VolumeKind = Word(VolumeKind::WORDS), Required, Fixed, "",
            "What holds the data: a file or block device, memory, nothing at all (writes vanish), or a storage pool (`lu`).";
        PATH of(&["file", "ram"]): str = Path, Derived("required for `file`; DIR/ram/NAME or /dev/shm for `ram`"), Fixed, "",
            "The file or block device of a `file` volume; for a `ram` volume the file in a tmpfs that \
             keeps its contents while the data plane restarts.";
        SIZE: u64 = Size { min: 0, max: SIZE_MAX }, Derived("the size of the file or device"), Live, "bytes",
            "Size of the volume. A file that is smaller grows. A running guest sees the new size at \
             once. Only `volume resize --shrink` makes a volume smaller.";
        POOL of(&["lu"]): str = Name(Pool), Required, Fixed, "",
            "The storage pool of an LU.";
        THICK of(&["lu"]): bool = Switch, Is("false"), Fixed, "",
            "Set all of its space aside in its pool when it is made. Otherwise it takes space as it is written, in chunks of 64 MiB.";
        ON_FULL of(&["lu"]): OnFull = Word(OnFull::WORDS), Is("pause"), Live, "",
            "What becomes of writes that need space when its pool, or its tier of that, has none: they wait until there is some (`pause`), or fail at once, and the client is told that there is no space (`error`).";
        PAUSE_MAX of(&["lu"]): u64 = Number { min: 0, max: 1_000_000 }, Is("0"), Live, "s",
            "How long a write waits for space, with `on_full=pause`, before it fails; 0: for ever.";
        RESERVE of(&["lu"]): u64 = Size { min: 0, max: SIZE_MAX }, Is("0"), Live, "bytes",
            "So much of an LU that is not thick is set aside in its pool, in chunks of 64 MiB: what it has counts, of an LU with snapshots what it has written since the last. No more is set aside than its size.";
        CHECKSUMS of(&["lu"]): bool = Switch, Is("false"), Fixed, "",
            "Keep a checksum of each 4 KiB of what has not been written for a minute: what is read of that is what was written, from the other failure group where one has something else, or an error. \
             Only in a pool with two failure groups; such an LU has no snapshots.";
        NUMBER of(&["lu"]): u64 = Number { min: 1, max: 4_294_967_295 }, Derived("given by its pool when it is made"), Fixed, "",
            "An LU that is there and is nobody's, by the number that `pool show` has: it becomes this volume, with what is in it, and none is made. `trunkline lu adopt` sets it.";
        TIER of(&["lu"]): str = Text { bytes_max: 63 }, Derived("the default tier of its pool when it is made"), Live, "",
            "The tier of its pool that it is cut from: disks of one kind. `trunkline tier list` has those that there are. Set to another, what it has moves there while clients work.";
        SNAPSHOT of(&["lu"]): str = Text { bytes_max: 129 }, Derived("none: it begins with zeros"), Fixed, "",
            "The snapshot of which an LU is made: it begins with what that holds, is as large unless `size` says more, and takes space for what is written since. `NAME`, or `NAME:VOLUME` where \
             the snapshot is of several. `trunkline lu clone` sets it.";
        CREATE of(&["file"]): bool = Switch, Is("false"), Live, "",
            "Make the file of a `file` volume if it is missing when the volume is made; needs `size`. It is made once: a file \
             that is missing later is a failed volume, never an empty disk.";
        PREALLOCATE of(&["file"]): bool = Switch, Is("false"), Live, "",
            "Reserve the space of the file when it is made, so that it cannot run out later.";
        CACHE of(&["file"]): Cache = Word(Cache::WORDS), Is("auto"), Live, "",
            "`direct` bypasses the page cache, `buffered` uses it, `auto` takes direct where the file \
             supports it.";
        BLOCK_SIZE: u64 = BLOCK_SIZES, Is("512"), Unused, "bytes",
            "Logical block size: the smallest piece that a guest can read or write.";
        READ_ONLY: bool = Switch, Is("false"), Unused, "",
            "Refuse writes, on all adapters of this volume.";
        SHAREABLE: bool = Switch, Is("false"), Live, "",
            "Allow several adapters on this volume although it can be written: for guests with a \
             cluster file system. Others destroy their data.";
        ZERO_FILL of(&["null"]): bool = Switch, Is("false"), Unused, "",
            "Reads of a `null` volume give zeroes; otherwise they leave the guest's buffer as it is.";
        NAA: str = Naa, Derived("made from server and name; of an LU, pool and number"), Unused, "",
            "What SCSI clients know the volume by, wherever they see it; Linux makes \
             /dev/disk/by-id/wwn-0xNAA of it.";
        UNIT_SERIAL: str = Text { bytes_max: 32 }, Derived("the digits of `naa`"), Unused, "",
            "Serial number that SCSI clients see.";
        RESERVATIONS: Reservations = Word(Reservations::WORDS), Derived("`refuse` for a device with `naa` set, else `local`"), Unused, "",
            "How SCSI reservations are answered. `local`: they hold between the clients of this server. `refuse`: not at all, \
             since clients of other servers reach the data under the same `naa`, and would not be held by them.";
        LIMIT_IOPS: u64 = RATE, Is("0"), Live, "I/Os per second",
            "Most requests per second over all adapters of the volume; 0 is no limit.";
        LIMIT_IOPS_BURST: u64 = RATE, Derived("a tenth of a second of `limit_iops`"), Live, "I/Os",
            "How many requests may be served at once after a quiet time.";
        LIMIT_BYTES_PER_S: u64 = Size { min: 0, max: RATE_MAX }, Is("0"), Live, "bytes per second",
            "Most bytes per second over all adapters of the volume; 0 is no limit.";
        LIMIT_BYTES_BURST: u64 = Size { min: 0, max: RATE_MAX }, Derived("a tenth of a second of `limit_bytes_per_s`"), Live, "bytes",
            "How many bytes may be served at once after a quiet time.";
        DELAY_US_MIN: u64 = Number { min: 0, max: LONGEST_DELAY_US }, Is("0"), Live, "µs",
            "Model of a slow disk: shortest service time of a request.";
        DELAY_US_MAX: u64 = Number { min: 0, max: LONGEST_DELAY_US }, Is("0"), Live, "µs",
            "Model of a slow disk: longest service time of a request; requests overtake each other. 0 \
             is no delay.";
        DELAY_DEPTH: u64 = Number { min: 0, max: 1024 }, Is("0"), Live, "requests",
            "Model of a slow disk: how many requests are served at the same time; 0 is any number.";
        DELAY_SEED: u64 = Number { min: 0, max: SEED_MAX }, Is("0"), Live, "",
            "Model of a slow disk: the same seed gives the same service times.";
        FAULT_READ_ERROR_PPM hidden: u64 = PPM, Is("0"), Live, "ppm",
            "Share of the reads that fail.";
        FAULT_WRITE_ERROR_PPM hidden: u64 = PPM, Is("0"), Live, "ppm",
            "Share of the writes that fail.";
        FAULT_TORN_WRITE_PPM hidden: u64 = PPM, Is("0"), Live, "ppm",
            "Share of the writes that fail after a part was written.";
        FAULT_SLOW_PPM hidden: u64 = PPM, Is("0"), Live, "ppm",
            "Share of the requests that take `fault_slow_us` longer.";
        FAULT_SLOW_US hidden: u64 = Number { min: 0, max: LONGEST_DELAY_US }, Is("0"), Live, "µs",
            "How much longer.";
        FAULT_BAD_OFFSET hidden: u64 = Size { min: 0, max: SIZE_MAX }, Is("0"), Live, "bytes",
            "First byte of a range in which every request fails.";
        FAULT_BAD_LENGTH hidden: u64 = Size { min: 0, max: SIZE_MAX }, Is("0"), Live, "bytes",
            "Length of a range in which every request fails; 0 is none.";
        FAULT_SEED hidden: u64 = Number { min: 0, max: SEED_MAX }, Is("0"), Live, "",
            "The same seed gives the same faults.";
    }
    /// Storage from which LUs are cut.
    Pool pool = "pools", "Storage pools", "disks and files from which LUs are cut", [] {
        PVS: str = Text { bytes_max: 65_536 }, Required, Live, "",
            "Its PVs: paths of block devices or files, separated by commas. They must hold nothing when the pool is made, or when they are added to it. \
             What is on one that is taken out moves to the others of its tier first.";
        TIER: str = Text { bytes_max: 63 }, Is("SYSTEM"), Live, "",
            "What the tier of the PVs is called that are listed without one. A PV of another tier is listed as `TIER:PATH`; a pool has up to ten.";
        DEFAULT_TIER: str = Text { bytes_max: 63 }, Derived("the first tier: `tier`"), Live, "",
            "The tier that new LUs get for which none is said.";
        MIRROR: str = Text { bytes_max: 65_536 }, Is(""), Live, "",
            "The PVs of its second failure group, likewise. With them what is in its LUs is there twice, on a PV of `pvs` and on one of these, and clients go on \
             where either fails.";
        FAILGRP: str = Text { bytes_max: 63 }, Is("Default"), Live, "",
            "What the failure group of `pvs` is called.";
        MIRROR_FAILGRP: str = Text { bytes_max: 63 }, Is("Mirror"), Live, "",
            "What the failure group of `mirror` is called.";
        DATAPLANE: str = Name(DataPlane), Is("main"), Fixed, "",
            "The data plane that has it open.";
        WARN_PERCENT: u64 = Number { min: 1, max: 100 }, Is("80"), Live, "%",
            "From so much of it in use on `status` warns.";
        WARN_DAYS: u64 = Number { min: 0, max: 365 }, Is("7"), Live, "days",
            "`status` warns when it will be full within so many days, at the pace of the last day or of the last week, whichever is faster; 0: never.";
        WARN_OVERCOMMIT_PERCENT: u64 = Number { min: 0, max: 100_000 }, Is("0"), Live, "%",
            "`status` warns when its LUs could take so much beyond what there is, in percent of that; 0: never.";
        THROTTLE_PERCENT: u64 = Number { min: 1, max: 100 }, Is("95"), Live, "%",
            "From so much of it, or of a tier of it, in use on, space is given out slowly: what is left lasts an hour, or 64 MiB a second where that is more, after as much as a minute saves; 100: never. Writes that need none are not slowed.";
        UUID: str = Text { bytes_max: 36 }, Derived("drawn when it is made, and kept"), Fixed, "",
            "Its UUID, which stands on its PVs. Set it to open a pool that was made elsewhere.";
    }
    /// What LUs held at one moment.
    Snapshot snapshot = "snapshots", "Snapshots", "what LUs held at one moment", [VOLUMES] {
        VOLUMES: str = Names(Volume), Required, Fixed, "",
            "The LUs of which it is, at most 16, all of one storage pool: what each held at the same moment, which is when it is made. Their sizes stay as they are from then on.";
    }
    /// A server-side virtual adapter with one vhost-user socket.
    Adapter adapter = "adapters", "Adapters", "what virtual machines connect to", [] {
        KIND: AdapterKind = Word(AdapterKind::WORDS), Is("block"), Fixed, "",
            "What the client sees: one disk (`block`), a virtual Fibre Channel adapter (`fc`), a virtual \
             SCSI adapter (`scsi`), or a virtual Ethernet adapter (`ethernet`).";
        VOLUME of(BLOCK): str = Name(Volume), Required, Fixed, "",
            "The volume that the client sees as its disk.";
        NETWORK of(ETHERNET): str = Name(Network), Required, Fixed, "",
            "The network that it is connected to.";
        MAC of(ETHERNET): str = Text { bytes_max: 17 }, Derived("given out when it is made, and kept"), NextConnect, "",
            "Its MAC address. The virtual machine is told it (QEMU: mac).";
        ANY_MAC of(ETHERNET): bool = Switch, Is("true"), Live, "",
            "The client may send from other MAC addresses than its own, as one with a bridge of its own does. Off: such frames are lost, and \
             nobody else of the network can have its address.";
        ADDRESSES of(ETHERNET): str = Text { bytes_max: 1024 }, Is(""), Live, "",
            "IP addresses that the client may use, and no others: addresses and networks, such as `10.0.0.5,fd00::/64`; empty: any. What it sends from another \
             one, or claims to have by ARP or neighbour discovery, is lost. IPv6 addresses of the link (fe80::/10) are free unless one is listed.";
        DHCP_SERVER of(ETHERNET): bool = Switch, Is("true"), Live, "",
            "The client may answer as a DHCP server. Off: such answers are lost.";
        ROUTER of(ETHERNET): bool = Switch, Is("true"), Live, "",
            "The client may be a router of its network. Off: what it says as one (router advertisements, redirects) is lost, and its questions for memberships of \
             multicast groups are not followed. It may still forward packets.";
        LIMIT_TX_FRAMES_PER_S of(ETHERNET): u64 = RATE, Is("0"), Live, "frames per second",
            "Most frames per second that the client sends; what is above is lost. 0 is no limit. A frame that is to be segmented counts as one.";
        LIMIT_TX_FRAMES_BURST of(ETHERNET): u64 = RATE, Derived("a tenth of a second of `limit_tx_frames_per_s`"), Live, "frames",
            "How many frames it may send at once after a quiet time.";
        LIMIT_TX_BYTES_PER_S of(ETHERNET): u64 = Size { min: 0, max: RATE_MAX }, Is("0"), Live, "bytes per second",
            "Most bytes per second that the client sends; 0 is no limit.";
        LIMIT_TX_BYTES_BURST of(ETHERNET): u64 = Size { min: 0, max: RATE_MAX }, Derived("a tenth of a second of `limit_tx_bytes_per_s`"), Live, "bytes",
            "How many bytes it may send at once after a quiet time. A frame that is longer passes, and is paid for afterwards.";
        LIMIT_RX_FRAMES_PER_S of(ETHERNET): u64 = RATE, Is("0"), Live, "frames per second",
            "Most frames per second that the client gets, likewise.";
        LIMIT_RX_FRAMES_BURST of(ETHERNET): u64 = RATE, Derived("a tenth of a second of `limit_rx_frames_per_s`"), Live, "frames",
            "How many frames it gets at once after a quiet time.";
        LIMIT_RX_BYTES_PER_S of(ETHERNET): u64 = Size { min: 0, max: RATE_MAX }, Is("0"), Live, "bytes per second",
            "Most bytes per second that the client gets; 0 is no limit.";
        LIMIT_RX_BYTES_BURST of(ETHERNET): u64 = Size { min: 0, max: RATE_MAX }, Derived("a tenth of a second of `limit_rx_bytes_per_s`"), Live, "bytes",
            "How many bytes it gets at once after a quiet time.";
        STORM_BROADCAST of(ETHERNET): u64 = RATE, Is("0"), Live, "frames per second",
            "Most broadcasts per second that the client sends; what is above is lost. 0 is no limit.";
        STORM_MULTICAST of(ETHERNET): u64 = RATE, Is("0"), Live, "frames per second",
            "Most frames per second to other groups, likewise.";
        STORM_UNKNOWN of(ETHERNET): u64 = RATE, Is("0"), Live, "frames per second",
            "Most frames per second to stations that nobody has seen, which go to everybody, likewise.";
        PRIVATE of(ETHERNET): bool = Switch, Is("false"), Live, "",
            "The client exchanges frames with adapters of its network that are not private, and with uplinks, but not with others that are private.";
        MIRROR of(ETHERNET): str = Text { bytes_max: 253 }, Derived("none"), Live, "",
            "The name of an adapter of its network that gets a copy of every frame that the client sends and gets: one with `monitor`.";
        MONITOR of(ETHERNET): bool = Switch, Is("false"), Live, "",
            "The client gets copies of the frames of those that name its adapter as `mirror`. It gets no others, and what it sends is lost.";
        TAGGING of(ETHERNET): Tagging = Word(Tagging::WORDS), Is("dot1q"), Live, "",
            "Which tags say the VLAN of its frames. `dot1q`: those of 802.1Q. `dot1ad`: service tags (802.1ad, QinQ), with what customers tagged behind them. `tunnel`: none; \
             all that the client sends is of the VLAN `pvid`, with the tags that it has.";
        GUEST_OFFLOADS of(ETHERNET): bool = Switch, Is("true"), Live, "",
            "What comes for the client may be left to it uncut and without checksum, as far as its driver has negotiated that. Off for a guest that has \
             switched it off while it runs, of which its front end tells nobody: one with an XDP program on its interface.";
        PVID of(ETHERNET): u64 = Number { min: 1, max: 4094 }, Is("1"), Live, "",
            "The VLAN of its frames without a tag.";
        VLANS of(ETHERNET): str = Text { bytes_max: 256 }, Is(""), Live, "",
            "More VLANs, whose frames it sends and gets with a tag: numbers and ranges, such as `10,20-29`.";
        PORT of(FC): str = Name(Port), Derived("not mapped"), Live, "",
            "The port that it is mapped to: the way to its targets. `trunkline port map` sets it.";
        LINK_HOLD of(FC): u64 = Number { min: 0, max: 300 }, Is("15"), Live, "seconds",
            "How long the commands of the client wait when its link goes down: it is unmapped, or its port is taken down. A link that is back in time \
             it does not notice; after that they fail, so that multipath takes another path.";
        WWPNS of(FC): str = WwpnPair, Derived("given out when it is made, and kept"), Fixed, "",
            "Its two WWPNs. The first is logged in; the second is for a migration, which finds it zoned and \
             masked.";
        DATAPLANE: str = Name(DataPlane), Is("main"), Fixed, "",
            "The data plane that serves the adapter.";
        CLIENT_NAME: str = Text { bytes_max: 64 }, Is(""), Live, "",
            "The name of the machine behind it, for people: a client does not say who it is. `ioscli lsmap -npiv`, `fcstat -client` \
             and `hostinfo` show it.";
        QUEUES: u64 = Number { min: 1, max: 256 }, Is("64"), NextConnect, "queues",
            "Most queues for I/O that a client may use; it chooses how many (QEMU: num-queues). vhost-user \
             can name 256, two of which an adapter of the kind `fc` or `scsi` has for other things: 254 are its most. Of the kind `ethernet` it is pairs of \
             queues, 128 at most.";
        CHANNELS of(NOT_FC): u64 = Number { min: 0, max: 256 }, Is("0"), Live, "channels",
            "Most channels that serve the client's queues; 0 is as many as the data plane has.";
        QUEUE_SIZE: u64 = PowerOfTwo { min: 2, max: 1024 }, Is("1024"), NextConnect, "entries",
            "Longest ring that is taken from the client (QEMU: queue-size).";
        SERIAL of(BLOCK): str = Text { bytes_max: 20 }, Derived("the first 20 characters of the volume's name"), NextConnect, "",
            "Serial number of the disk; Linux makes /dev/disk/by-id/virtio-SERIAL of it.";
        READ_ONLY of(BLOCK): bool = Switch, Inherit(volume::READ_ONLY), NextConnect, "",
            "The client cannot write. An adapter of a read-only volume is always read-only.";
        WRITE_CACHE of(BLOCK): bool = Switch, Is("true"), NextConnect, "",
            "Offer a write cache, which the client flushes. Off: every write is durable before it is \
             acknowledged, and slower for it.";
        DISCARD of(BLOCK): bool = Switch, Is("true"), NextConnect, "",
            "Offer discard and write-zeroes where the volume can do them.";
        SEG_MAX of(DISKS): u64 = Number { min: 1, max: 1022 }, Is("254"), NextConnect, "segments",
            "Most data segments per request that the client is told.";
        NUM_PER_RANGE of(FC): u64 = Number { min: 0, max: 64 }, Is("0"), Live, "channels",
            "Most channels that serve the client's queues; 0 inherits the data plane's `num_per_range`.";
        LIMIT_INTR of(FC): bool = Switch, Is("false"), Live, "",
            "Serve all queues of the client by one channel.";
        POLICY of(FC): Policy = Word(Policy::WORDS), Is("linux"), Live, "",
            "What a client that stays connected gets back of its channels when more can be had again: all \
             (`linux`), or no more than it had (`aix`).";
        NUM_CMD_ELEMS of(SCSI): u64 = Number { min: 20, max: 2048 }, Is("1024"), Live, "commands",
            "Most commands of the client that are active at once, on all its queues together; those beyond wait and are \
             counted as No Command Resource. The port's `num_cmd_elems` bounds all its adapters together.";
        SHARE of(FC): u64 = Number { min: 1, max: 1000 }, Is("100"), Live, "",
            "Its weight among the adapters of its port, while commands of several wait for one of the port's `num_cmd_elems`: \
             twice the share is twice the part. What an adapter does not use is lent to the others.";
        NUM_SP_CMD_ELEM of(FC): u64 = Number { min: 512, max: 2048 }, Is("512"), Live, "functions",
            "Most task management functions (aborts, resets) of the client that are under way at once; those beyond \
             wait in order and are counted as No Command Resource of queue 0.";
        NUM_LOCAL_CMDS of(SCSI): u64 = COMMANDS, Inherit(dataplane::NUM_LOCAL_CMDS), Live, "commands",
            "Command elements that each running queue keeps at hand; what it needs beyond is borrowed, which is slower, and \
             counted. Another queue may take what is idle.";
        BUFS_PER_CMD of(SCSI): u64 = COMMANDS, Inherit(dataplane::BUFS_PER_CMD), Live, "segment lists",
            "Segment lists in each queue's own pool, for each of its commands; those beyond come from a shared \
             one, and are counted.";
        QUEUE_DEPTH of(SCSI): u64 = Number { min: 1, max: 1024 }, Is("64"), NextConnect, "commands",
            "Commands to one LUN that the client is told to send at once.";
        MAX_XFER_SIZE of(SCSI): u64 = TRANSFER, Is("1MiB"), NextConnect, "bytes",
            "Longest transfer of one command that the client is told. The port's `max_xfer_size` bounds it.";
        LIMIT_IOPS of(SCSI): u64 = RATE, Is("0"), Live, "I/Os per second",
            "Most requests per second of the client, all its LUNs together; 0 is no limit.";
        LIMIT_IOPS_BURST of(SCSI): u64 = RATE, Derived("a tenth of a second of `limit_iops`"), Live, "I/Os",
            "How many requests may be served at once after a quiet time.";
        LIMIT_BYTES_PER_S of(SCSI): u64 = Size { min: 0, max: RATE_MAX }, Is("0"), Live, "bytes per second",
            "Most bytes per second of the client, all its LUNs together; 0 is no limit.";
        LIMIT_BYTES_BURST of(SCSI): u64 = Size { min: 0, max: RATE_MAX }, Derived("a tenth of a second of `limit_bytes_per_s`"), Live, "bytes",
            "How many bytes may be served at once after a quiet time.";
        WAIT: Wait = Word(Wait::WORDS), Inherit(dataplane::WAIT), Live, "",
            "How channels wait for this client: `poll` spins, `interrupt` sleeps, `adaptive` spins \
             only while that pays.";
        PLACEMENT: Placement = Word(Placement::WORDS), Is("adaptive"), Live, "",
            "`adaptive` folds the queues onto fewer channels when there is little to do; `spread` \
             keeps them apart.";
        SOCKET: str = Path, Derived("DIR/NAME.sock"), Fixed, "",
            "The vhost-user socket.";
        SOCKET_ROLE: SocketRole = Word(SocketRole::WORDS), Is("server"), Fixed, "",
            "Who listens at the socket: with `server` the adapter, and the client connects; with `client` \
             the client (QEMU: server=on), and the adapter connects to it, again and again.";
        MODE: str = Mode, Is("0660"), Live, "",
            "Permission bits of the socket, where the adapter makes it.";
        OWNER: str = Text { bytes_max: 64 }, Is(""), Live, "",
            "The user that the socket is given to, where the adapter makes it: a name of `/etc/passwd`, or a number. Not set: the server's.";
        GROUP: str = Text { bytes_max: 64 }, Is(""), Live, "",
            "The group that the socket is given to, where the adapter makes it: a name of `/etc/group`, or a number. Not set: the server's.";
        WITHHOLD hidden: str = Text { bytes_max: 128 }, Is(""), NextConnect, "",
            "Features that are not offered, separated by commas: inflight, event_idx, indirect, mq, \
             log, mem_slots.";
    }
    /// A virtual target device: what a virtual SCSI adapter shows its client.
    Vtd vtd = "vtds", "Virtual target devices", "disks and optical drives of virtual SCSI adapters", [KIND, ADAPTER, LUN, VOLUME, MEDIUM] {
        KIND: VtdKind = Word(VtdKind::WORDS), Is("disk"), Fixed, "",
            "A disk on a volume, or a read-only optical drive.";
        ADAPTER: str = Name(Adapter), Required, Fixed, "",
            "The virtual SCSI adapter whose client sees it.";
        VOLUME of(DISK): str = Name(Volume), Required, Fixed, "",
            "The volume behind the disk.";
        MEDIUM of(OPTICAL): str = Name(Medium), Derived("none: the drive is empty"), Live, "",
            "The medium in the drive. `trunkline media load` and `media unload` set it.";
        LUN: u64 = Number { min: 0, max: 255 }, Derived("the lowest that is free, kept"), Fixed, "",
            "Its LUN at the client.";
    }
    /// An optical medium of the media repository.
    Medium medium = "media", "Optical media", "ISO images for optical drives", [PATH, COPY] {
        PATH: str = Path, Required, Fixed, "",
            "The ISO image. It is only read.";
        COPY: bool = Switch, Is("false"), Fixed, "",
            "Take a copy into the server's state folder when the medium is made, instead of using the file \
             where it is.";
    }
    /// The way of virtual Fibre Channel adapters to a set of targets.
    Port port = "ports", "Ports", "ways of virtual Fibre Channel adapters to targets", [DATAPLANE, LINK_SPEED, NUM_IO_QUEUES, MAX_ADAPTERS] {
        DATAPLANE: str = Name(DataPlane), Is("main"), Fixed, "",
            "The data plane of its adapters and targets.";
        HOST: str = Text { bytes_max: 16 }, Derived("none: its targets are the server's"), Fixed, "",
            "The Fibre Channel HBA of the host for which it stands, such as host3. Each adapter that is mapped to \
             it gets a virtual port there (NPIV) and sees the targets of the real fabric.";
        LINK: Link = Word(Link::WORDS), Is("up"), Live, "",
            "Whether commands of its adapters get to their targets. `trunkline port down` and `port up` set it.";
        RESERVATIONS: Reservations = Word(Reservations::WORDS), Derived("`refuse`, where it stands for an HBA"), Unused, "",
            "How reservations of the disks that its HBA shows are answered. `refuse`: not at all, since clients of other \
             servers would not be held by them. `local`: between the clients of this server, if no other server has the disks.";
        NUM_IO_QUEUES: u64 = Number { min: 1, max: 16 }, Is("8"), Live, "queues",
            "Queues of the port: most channels that serve the queues of each of its adapters.";
        NUM_CMD_ELEMS: u64 = Number { min: 200, max: 4096 }, Is("2048"), Live, "commands",
            "Most commands of all its adapters together that are active at once; those beyond wait and are counted as No \
             Adapter Elements. Whoever has work may have them; while several wait, each has its part by `share`.";
        MAX_XFER_SIZE: u64 = TRANSFER, Is("16MiB"), NextConnect, "bytes",
            "Bounds the `max_xfer_size` of each of its adapters.";
        LINK_SPEED: u64 = NumberOf(&[4, 8, 16, 32, 64]), Is("32"), Live, "Gbit/s",
            "The speed for which it stands; `max_adapters` follows from it.";
        MAX_ADAPTERS: u64 = Number { min: 1, max: 1024 }, Derived("64 up to 16 Gbit/s, 255 above"), Live, "adapters",
            "Most adapters that can be mapped to it. Set it where yours differs from what goes with the link speed.";
    }
    /// A target port with LUNs.
    Target target = "targets", "Targets", "target ports with LUNs", [ID, WWPN, PORTS, LUNS] {
        DATAPLANE: str = Name(DataPlane), Is("main"), Fixed, "",
            "The data plane that has its volumes open.";
        LUNS: str = LunMap, Is(""), Live, "",
            "Its LUNs and the volume behind each. Several targets may have the same volume: its clients see \
             several paths to one disk.";
        PORTS: str = Names(Port), Is(""), Live, "",
            "The ports that reach it; empty is all ports of its data plane.";
        WWPN: str = Wwpn, Derived("given out when it is made, and kept"), Fixed, "",
            "Its name in the fabric.";
        ID: u64 = Number { min: 0, max: 255 }, Derived("the lowest that is free, kept"), Fixed, "",
            "Its number at clients, which stands in their paths to disks (/dev/disk/by-path). Its relative \
             target port identifier is one more.";
    }
    /// Who sees whom.
    Zone zone = "zones", "Zones", "which adapters and targets see each other", [MEMBERS] {
        MEMBERS: str = Members, Is(""), Live, "",
            "Initiators and targets that see each other. An adapter stands for both of its WWPNs, a target for \
             its one.";
    }
    /// Who has which LUNs.
    Mask mask = "masks", "Masks", "which adapters have which LUNs of a target", [INITIATORS, TARGETS, LUNS] {
        INITIATORS: str = Members, Required, Live, "",
            "Who is given the LUNs. An adapter stands for both of its WWPNs.";
        TARGETS: str = Members, Required, Live, "",
            "The targets whose LUNs they are.";
        LUNS: str = Luns, Is("all"), Live, "",
            "Which LUNs, and under which numbers the initiators have them.";
    }
    /// A virtual switch.
    Network network = "networks", "Networks", "virtual switches, to which virtual Ethernet adapters are connected", [DATAPLANE, MTU] {
        DATAPLANE: str = Name(DataPlane), Is("main"), Fixed, "",
            "The data plane of its adapters.";
        MTU: u64 = Number { min: 576, max: 65_535 }, Is("1500"), NextConnect, "bytes",
            "Longest packet that its adapters get, without the Ethernet header. Clients are told it.";
    }
    /// What connects a network to the host.
    Uplink uplink = "uplinks", "Uplinks", "what connects networks to the world outside", [NETWORK, KIND, INTERFACE, PVID, VLANS] {
        NETWORK: str = Name(Network), Derived("none: a shared Ethernet adapter has it"), Fixed, "",
            "The network that it connects, by itself. Without one it is the real adapter of a shared Ethernet adapter, or connects nothing.";
        KIND: UplinkKind = Word(UplinkKind::WORDS), Is("tap"), Fixed, "",
            "What the interface is: `tap`, a TAP, behind which is the host; `packet`, one that is there and up, such as a network card, of which \
             everything that comes reaches the network and to which everything goes (packet sockets, for which `trunkline serve` needs CAP_NET_RAW); or `xdp`, the same past the \
             host's stack, which gets nothing of it (AF_XDP, for which it needs CAP_NET_ADMIN and CAP_BPF as well).";
        INTERFACE: str = Text { bytes_max: 15 }, Derived("its name"), Fixed, "",
            "The interface of the host. A TAP that is not there is made, and is there until `ip link del`; one that was made \
             before (`ip tuntap add NAME mode tap multi_queue vnet_hdr user USER`) needs no rights but to be its user's.";
        NETNS: str = Text { bytes_max: 255 }, Derived("that of `trunkline serve`"), Fixed, "",
            "The network namespace that the interface is in, and `link` of its shared adapter: a name, as of `ip netns add NAME`, or the whole path of its file. To enter it \
             `trunkline serve` needs CAP_SYS_ADMIN.";
        MEMBERS: str = Names(Uplink), Derived("none: it is one interface"), Live, "",
            "Other uplinks that are one together: 2 to 64, preferred in the order of their names, each with an interface of its own, and with nothing else set. What is \
             set here holds for all of them. With other members it is connected anew.";
        MODE: Aggregation = Word(Aggregation::WORDS), Is("active-backup"), Live, "",
            "Which of its `members` frames take. `active-backup`: the first one that is up, in both directions, whatever they are connected to. `hash`: of those that are up, all frames of a flow the \
             same (by MAC addresses, IP addresses and ports); the switch outside must take them for one, too (a static aggregate). With another mode it is connected anew.";
        PVID: u64 = Number { min: 1, max: 4094 }, Is("1"), Live, "",
            "The VLAN of frames without a tag.";
        VLANS: str = Text { bytes_max: 256 }, Is(""), Live, "",
            "More VLANs that it carries, with a tag: numbers and ranges, such as `10,20-29`.";
        STORM_BROADCAST: u64 = RATE, Is("0"), Live, "frames per second",
            "Most broadcasts per second that come by it; what is above is lost. 0 is no limit.";
        STORM_MULTICAST: u64 = RATE, Is("0"), Live, "frames per second",
            "Most frames per second to other groups, likewise.";
        STORM_UNKNOWN: u64 = RATE, Is("0"), Live, "frames per second",
            "Most frames per second to stations that nobody has seen, which go to everybody, likewise.";
        MIRROR: str = Name(Adapter), Derived("none"), Live, "",
            "An adapter of its network, with `monitor`, that gets a copy of every frame that comes and goes by it.";
        TAGGING: Tagging = Word(Tagging::WORDS), Is("dot1q"), Live, "",
            "Which tags say the VLAN of frames: `dot1q` (802.1Q), `dot1ad` (service tags of 802.1ad, QinQ), or `tunnel`: none, all of it is of the VLAN `pvid`.";
    }
    /// An adapter of the server itself on a network.
    Trunk trunk = "trunks", "Trunk adapters", "what shared Ethernet adapters bridge: the server's own virtual adapters on networks", [NETWORK, PVID, VLANS] {
        NETWORK: str = Name(Network), Required, Fixed, "",
            "The network that it is on.";
        PVID: u64 = Number { min: 1, max: 4094 }, Is("1"), Live, "",
            "Its port VLAN ID. That of the shared adapter's `pvid_adapter` is the VLAN of frames without a tag; that of any other trunk adapter is \
             not bridged, and no client should use it.";
        VLANS: str = Text { bytes_max: 256 }, Is(""), Live, "",
            "More VLANs, which are bridged with a tag: numbers and ranges, such as `10,20-29`.";
    }
    /// What bridges trunk adapters to an uplink.
    Sea sea = "seas", "Shared Ethernet adapters", "bridges from trunk adapters to an uplink", [REAL_ADAPTER, VIRT_ADAPTERS, PVID_ADAPTER, PVID, HA_MODE, CTL_CHAN, TOKEN, PRIORITY] {
        REAL_ADAPTER: str = Name(Uplink), Required, Fixed, "",
            "The uplink behind it, which has no network of its own.";
        VIRT_ADAPTERS: str = Names(Trunk), Required, Live, "",
            "The trunk adapters whose VLANs it bridges, all of one network.";
        PVID_ADAPTER: str = Name(Trunk), Required, Live, "",
            "The trunk adapter to which frames without a tag belong, one of `virt_adapters`.";
        PVID: u64 = Number { min: 1, max: 4094 }, Required, Live, "",
            "The VLAN of frames without a tag: the `pvid` of the `pvid_adapter`.";
        HA_MODE: HaMode = Word(HaMode::WORDS), Is("disabled"), Live, "",
            "Failover with a partner, another shared adapter that names the same `ctl_chan` or `token`. `auto`: of two the one with the lower `priority` bridges, the \
             other when it has gone or its link is down. `standby`: it yields to one that is not. `sharing`: if both are, the better one leaves every second trunk adapter \
             to the other. `disabled`: it does not yield; without `ctl_chan` and `token` it bridges whatever others do.";
        CTL_CHAN: str = Path, Derived("none: no failover"), Live, "",
            "The control file, on this host, that the partners share: who bridges a VLAN has its lock. It is made if it is not there; nobody may remove it. \
             With another one the uplink is connected anew.";
        TOKEN: str = Text { bytes_max: 512 }, Derived("none: partners are on this host"), Live, "",
            "A place in etcd instead of `ctl_chan`, for partners on two hosts: `etcd:http://HOST:PORT/PREFIX`, with several servers of one cluster \
             `etcd:http://HOST:PORT,http://HOST:PORT/PREFIX`. Who bridges a VLAN has a lease there, and stops before it runs out. With another one the uplink \
             is connected anew.";
        PRIORITY: u64 = Number { min: 1, max: 15 }, Is("1"), Live, "",
            "Of two partners of the same `ha_mode` the one with the lower number bridges.";
        LINK: str = Text { bytes_max: 15 }, Derived("the interface of `real_adapter`, or any of its members'"), Live, "",
            "The interface of the host without whose carrier it bridges nothing, if it has a `ctl_chan` or a `token`: such as the network card of the bridge that the \
             uplink's interface is attached to.";
        NETADDR: str = Text { bytes_max: 15 }, Is("0"), Live, "",
            "An IPv4 address outside that is asked for each second, such as the gateway's, without a tag and by ARP; 0: none. Of two partners, the one that it answers \
             is preferred, before `ha_mode` and `priority`; three questions in a row without an answer count as none, and three with one as one again.";
        FB_DELAY: u64 = Number { min: 0, max: 3600 }, Is("0"), Live, "seconds",
            "How long it waits, as the better one, before it takes the bridge back from a partner that is well, when its own trouble is over or it was started; 0: not at all. It waits \
             for no partner that has trouble, nor after a change of `ha_mode` or `priority` of either.";
        NOAUTO_FAILBACK: bool = Switch, Is("false"), Live, "",
            "It does not take the bridge back by itself, however long it waits: only when the partner has trouble, or after such a change.";
        THREAD: u64 = Number { min: 0, max: 1 }, Is("0"), Live, "",
            "0: the channels bridge, each for the queues that it has. 1: the last channel of the data plane bridges, and frames are handed over to it and from it; clients' queues leave it, so that no \
             disk waits for the work of the bridge. Where there is one channel it does that as with 0.";
        ACCOUNTING: Accounting = Word(Accounting::WORDS), Is("disabled"), Live, "",
            "`enabled`: what passes it is counted by client (MAC address and VLAN) and by trunk adapter, for `trunkline sea clients` and `ioscli seastat`. The counts begin \
             with nothing whenever it is enabled.";
    }
    /// A process that moves I/O.
    DataPlane dataplane = "dataplanes", "Data planes", "the processes that move I/O", [] {
        CPUS: str = Cpus, Is(""), Restart, "",
            "CPUs that the channels run on, one channel per CPU in turn; empty is every CPU that the \
             process may use.";
        CHANNELS: u64 = Number { min: 0, max: 256 }, Is("0"), Restart, "channels",
            "I/O threads; 0 is one per CPU of `cpus`.";
        WAIT: Wait = Word(Wait::WORDS), Is("adaptive"), Live, "",
            "How channels wait where the adapter does not say.";
        POLL_US_MAX: OrAuto = NumberOrAuto { min: 0, max: 10_000 }, Is("32"), Restart, "µs",
            "What a sleep is worth to `adaptive`, in time of looking for work: it never looks longer than \
             this before it sleeps, and only where looking is cheaper. `auto`: what a wake-up takes on this machine, as each \
             channel measures it, from 2 to 64; 32 until it has.";
        NUM_PER_RANGE: u64 = Number { min: 4, max: 64 }, Is("8"), Live, "channels",
            "Most channels for the queues of each virtual Fibre Channel adapter whose own `num_per_range` is \
             0 (`viosnpiv0`).";
        NUM_LOCAL_CMDS: u64 = COMMANDS, Is("5"), Live, "commands",
            "Command elements that each running queue of a SCSI client keeps at hand, where the adapter does not say (`viosnpiv0`).";
        BUFS_PER_CMD: u64 = COMMANDS, Is("10"), Live, "segment lists",
            "Segment lists for each of these commands, where the adapter does not say (`viosnpiv0`).";
        WWPN_PREFIX: str = WwpnPrefix, Derived("c0:50:76 and three bytes of the server's own"), Live, "",
            "The first six bytes of the WWPNs that are given out from now on. A prefix has 32768 pairs, and \
             none is given out twice.";
    }
}
