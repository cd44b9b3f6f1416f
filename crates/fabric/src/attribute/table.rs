//! The table of attributes.

use super::Default::{Derived, Fixed as Is, Inherit, Required};
use super::Effect::{Fixed, Live, NextConnect, Restart, Unused};
use super::Kind::{
    Cpus, LunMap, Luns, Members, Mode, Naa, Name, Names, Number, NumberOf, Path, PowerOfTwo, Size,
    Switch, Text, Word, Wwpn, WwpnPair, WwpnPrefix,
};
use super::Object::{Adapter, DataPlane, Mask, Medium, Port, Target, Volume, Vtd, Zone};
use super::{Attribute, Default, Effect, Kind, Object};

/// Rates and counts have no natural greatest value; this one keeps sums of them within 64 bits.
const RATE_MAX: u64 = 1 << 42;
/// The largest volume: 8 EiB less a block is what a file offset can name.
const SIZE_MAX: u64 = 1 << 62;
/// Ten seconds: a longer delay is longer than the time-outs of common guests.
const DELAY_US_MAX: u64 = 10_000_000;

/// Seeds stay within the signed integers of TOML.
const SEED_MAX: u64 = i64::MAX as u64;

const PPM: Kind = Number { min: 0, max: 1_000_000 };
const RATE: Kind = Number { min: 0, max: RATE_MAX };
const BLOCK_SIZES: Kind = NumberOf(&[512, 4096]);
const TRANSFER: Kind = Size { min: 128 << 10, max: 16 << 20 };
const COMMANDS: Kind = Number { min: 1, max: 64 };
const WAIT_MODES: Kind = Word(&["poll", "adaptive", "interrupt"]);

const RESERVATIONS: Kind = Word(&["local", "refuse"]);

/// Kinds of adapter.
const BLOCK: &[&str] = &["block"];
const FC: &[&str] = &["fc"];
const SCSI: &[&str] = &["fc", "scsi"];
const CHANNELS: &[&str] = &["block", "scsi"];
/// Kinds of virtual target device.
const DISK: &[&str] = &["disk"];
const OPTICAL: &[&str] = &["optical"];

/// One line, visible.
const fn line(
    object: Object,
    name: &'static str,
    kind: Kind,
    default: Default,
    effect: Effect,
    unit: &'static str,
    meaning: &'static str,
) -> Attribute {
    Attribute { object, name, kind, default, unit, effect, meaning, hidden: false, kinds: &[] }
}

/// One line for tests: it works, and stands in no help.
const fn hidden(attribute: Attribute) -> Attribute {
    Attribute { hidden: true, ..attribute }
}

/// One line for objects of these kinds.
const fn of(kinds: &'static [&'static str], attribute: Attribute) -> Attribute {
    Attribute { kinds, ..attribute }
}

/// Every attribute there is, by object, the important ones first.
#[rustfmt::skip] // A table: one line of code per fact.
pub static TABLE: &[Attribute] = &[
    line(Volume, "kind", Word(&["file", "ram", "null"]), Required, Fixed, "",
        "What holds the data: a file or block device, memory, or nothing at all (writes vanish)."),
    of(&["file", "ram"], line(Volume, "path", Path, Derived("required for `file`; DIR/ram/NAME or /dev/shm for `ram`"), Fixed, "",
        "The file or block device of a `file` volume; for a `ram` volume the file in a tmpfs that \
         keeps its contents while the data plane restarts.")),
    line(Volume, "size", Size { min: 0, max: SIZE_MAX }, Derived("the size of the file or device"), Live, "bytes",
        "Size of the volume. A file that is smaller grows. A running guest sees the new size at \
         once. Only `volume resize --shrink` makes a volume smaller."),
    of(&["file"], line(Volume, "create", Switch, Is("false"), Live, "",
        "Make the file of a `file` volume if it is missing when the volume is made; needs `size`. It is made once: a file \
         that is missing later is a failed volume, never an empty disk.")),
    of(&["file"], line(Volume, "preallocate", Switch, Is("false"), Live, "",
        "Reserve the space of the file when it is made, so that it cannot run out later.")),
    of(&["file"], line(Volume, "cache", Word(&["auto", "direct", "buffered"]), Is("auto"), Live, "",
        "`direct` bypasses the page cache, `buffered` uses it, `auto` takes direct where the file \
         supports it.")),
    line(Volume, "block_size", BLOCK_SIZES, Is("512"), Unused, "bytes",
        "Logical block size: the smallest piece that a guest can read or write."),
    line(Volume, "read_only", Switch, Is("false"), Unused, "",
        "Refuse writes, on all adapters of this volume."),
    line(Volume, "shareable", Switch, Is("false"), Live, "",
        "Allow several adapters on this volume although it can be written: for guests with a \
         cluster file system. Others destroy their data."),
    of(&["null"], line(Volume, "zero_fill", Switch, Is("false"), Unused, "",
        "Reads of a `null` volume give zeroes; otherwise they leave the guest's buffer as it is.")),
    line(Volume, "naa", Naa, Derived("made from the server's identity and the volume's name"), Unused, "",
        "What SCSI clients know the volume by, wherever they see it; Linux makes \
         /dev/disk/by-id/wwn-0xNAA of it."),
    line(Volume, "unit_serial", Text { bytes_max: 32 }, Derived("the digits of `naa`"), Unused, "",
        "Serial number that SCSI clients see."),
    line(Volume, "reservations", RESERVATIONS, Derived("`refuse` for a device with `naa` set, else `local`"), Unused, "",
        "How SCSI reservations are answered. `local`: they hold between the clients of this server. `refuse`: not at all, \
         since clients of other servers reach the data under the same `naa`, and would not be held by them."),
    line(Volume, "limit_iops", RATE, Is("0"), Live, "I/Os per second",
        "Most requests per second over all adapters of the volume; 0 is no limit."),
    line(Volume, "limit_iops_burst", RATE, Derived("a tenth of a second of `limit_iops`"), Live, "I/Os",
        "How many requests may be served at once after a quiet time."),
    line(Volume, "limit_bytes_per_s", Size { min: 0, max: RATE_MAX }, Is("0"), Live, "bytes per second",
        "Most bytes per second over all adapters of the volume; 0 is no limit."),
    line(Volume, "limit_bytes_burst", Size { min: 0, max: RATE_MAX }, Derived("a tenth of a second of `limit_bytes_per_s`"), Live, "bytes",
        "How many bytes may be served at once after a quiet time."),
    line(Volume, "delay_us_min", Number { min: 0, max: DELAY_US_MAX }, Is("0"), Live, "µs",
        "Model of a slow disk: shortest service time of a request."),
    line(Volume, "delay_us_max", Number { min: 0, max: DELAY_US_MAX }, Is("0"), Live, "µs",
        "Model of a slow disk: longest service time of a request; requests overtake each other. 0 \
         is no delay."),
    line(Volume, "delay_depth", Number { min: 0, max: 1024 }, Is("0"), Live, "requests",
        "Model of a slow disk: how many requests are served at the same time; 0 is any number."),
    line(Volume, "delay_seed", Number { min: 0, max: SEED_MAX }, Is("0"), Live, "",
        "Model of a slow disk: the same seed gives the same service times."),
    hidden(line(Volume, "fault_read_error_ppm", PPM, Is("0"), Live, "ppm",
        "Share of the reads that fail.")),
    hidden(line(Volume, "fault_write_error_ppm", PPM, Is("0"), Live, "ppm",
        "Share of the writes that fail.")),
    hidden(line(Volume, "fault_torn_write_ppm", PPM, Is("0"), Live, "ppm",
        "Share of the writes that fail after a part was written.")),
    hidden(line(Volume, "fault_slow_ppm", PPM, Is("0"), Live, "ppm",
        "Share of the requests that take `fault_slow_us` longer.")),
    hidden(line(Volume, "fault_slow_us", Number { min: 0, max: DELAY_US_MAX }, Is("0"), Live, "µs",
        "How much longer.")),
    hidden(line(Volume, "fault_bad_offset", Size { min: 0, max: SIZE_MAX }, Is("0"), Live, "bytes",
        "First byte of a range in which every request fails.")),
    hidden(line(Volume, "fault_bad_length", Size { min: 0, max: SIZE_MAX }, Is("0"), Live, "bytes",
        "Length of a range in which every request fails; 0 is none.")),
    hidden(line(Volume, "fault_seed", Number { min: 0, max: SEED_MAX }, Is("0"), Live, "",
        "The same seed gives the same faults.")),

    line(Adapter, "kind", Word(&["block", "fc", "scsi"]), Is("block"), Fixed, "",
        "What the client sees: one disk (`block`), a virtual Fibre Channel adapter (`fc`), or a virtual \
         SCSI adapter (`scsi`)."),
    of(BLOCK, line(Adapter, "volume", Name(Volume), Required, Fixed, "",
        "The volume that the client sees as its disk.")),
    of(FC, line(Adapter, "port", Name(Port), Derived("not mapped"), Live, "",
        "The port that it is mapped to: the way to its targets. `trunkline port map` sets it.")),
    of(FC, line(Adapter, "wwpns", WwpnPair, Derived("given out when it is made, and kept"), Fixed, "",
        "Its two WWPNs. The first is logged in; the second is for a migration, which finds it zoned and \
         masked.")),
    line(Adapter, "dataplane", Name(DataPlane), Is("main"), Fixed, "",
        "The data plane that serves the adapter."),
    line(Adapter, "queues", Number { min: 1, max: 256 }, Is("64"), NextConnect, "queues",
        "Most queues that a client may use; it chooses how many (QEMU: num-queues). vhost-user \
         can name 256."),
    of(CHANNELS, line(Adapter, "channels", Number { min: 0, max: 256 }, Is("0"), Live, "channels",
        "Most channels that serve the client's queues; 0 is as many as the data plane has.")),
    line(Adapter, "queue_size", PowerOfTwo { min: 2, max: 1024 }, Is("1024"), NextConnect, "entries",
        "Longest ring that is taken from the client (QEMU: queue-size)."),
    of(BLOCK, line(Adapter, "serial", Text { bytes_max: 20 }, Derived("the first 20 characters of the volume's name"), NextConnect, "",
        "Serial number of the disk; Linux makes /dev/disk/by-id/virtio-SERIAL of it.")),
    of(BLOCK, line(Adapter, "read_only", Switch, Inherit(Volume, "read_only"), NextConnect, "",
        "The client cannot write. An adapter of a read-only volume is always read-only.")),
    of(BLOCK, line(Adapter, "write_cache", Switch, Is("true"), NextConnect, "",
        "Offer a write cache, which the client flushes. Off: every write is durable before it is \
         acknowledged, and slower for it.")),
    of(BLOCK, line(Adapter, "discard", Switch, Is("true"), NextConnect, "",
        "Offer discard and write-zeroes where the volume can do them.")),
    line(Adapter, "seg_max", Number { min: 1, max: 1022 }, Is("254"), NextConnect, "segments",
        "Most data segments per request that the client is told."),
    of(FC, line(Adapter, "num_per_range", Number { min: 0, max: 64 }, Is("0"), Live, "channels",
        "Most channels that serve the client's queues; 0 inherits the data plane's `num_per_range`.")),
    of(FC, line(Adapter, "limit_intr", Switch, Is("false"), Live, "",
        "Serve all queues of the client by one channel.")),
    of(FC, line(Adapter, "policy", Word(&["linux", "aix"]), Is("linux"), Live, "",
        "What a client that stays connected gets back of its channels when more can be had again: all \
         (`linux`), or no more than it had (`aix`).")),
    of(SCSI, line(Adapter, "num_cmd_elems", Number { min: 20, max: 2048 }, Is("1024"), Live, "commands",
        "Most commands of the client that are active at once; those beyond wait and are counted as No \
         Command Resource. The port's `num_cmd_elems` and `share` bound it.")),
    of(FC, line(Adapter, "share", Number { min: 1, max: 1000 }, Is("100"), Live, "",
        "Its weight among the adapters of its port, where these together ask for more `num_cmd_elems` than the port \
         has: twice the share is twice the part.")),
    of(FC, line(Adapter, "num_sp_cmd_elem", Number { min: 512, max: 2048 }, Is("512"), Live, "functions",
        "Most task management functions (aborts, resets) of the client that are under way at once; those beyond \
         wait in order and are counted as No Command Resource of queue 0.")),
    of(SCSI, line(Adapter, "num_local_cmds", COMMANDS, Inherit(DataPlane, "num_local_cmds"), Live, "commands",
        "Commands in each queue's own pool; those beyond come from a shared one, which is slower and counted.")),
    of(SCSI, line(Adapter, "bufs_per_cmd", COMMANDS, Inherit(DataPlane, "bufs_per_cmd"), Live, "segment lists",
        "Segment lists in each queue's own pool, for each of its commands; those beyond come from a shared \
         one, and are counted.")),
    of(SCSI, line(Adapter, "queue_depth", Number { min: 1, max: 1024 }, Is("64"), NextConnect, "commands",
        "Commands to one LUN that the client is told to send at once.")),
    of(SCSI, line(Adapter, "max_xfer_size", TRANSFER, Is("1MiB"), NextConnect, "bytes",
        "Longest transfer of one command that the client is told. The port's `max_xfer_size` bounds it.")),
    of(SCSI, line(Adapter, "limit_iops", RATE, Is("0"), Live, "I/Os per second",
        "Most requests per second of the client, all its LUNs together; 0 is no limit.")),
    of(SCSI, line(Adapter, "limit_iops_burst", RATE, Derived("a tenth of a second of `limit_iops`"), Live, "I/Os",
        "How many requests may be served at once after a quiet time.")),
    of(SCSI, line(Adapter, "limit_bytes_per_s", Size { min: 0, max: RATE_MAX }, Is("0"), Live, "bytes per second",
        "Most bytes per second of the client, all its LUNs together; 0 is no limit.")),
    of(SCSI, line(Adapter, "limit_bytes_burst", Size { min: 0, max: RATE_MAX }, Derived("a tenth of a second of `limit_bytes_per_s`"), Live, "bytes",
        "How many bytes may be served at once after a quiet time.")),
    line(Adapter, "wait", WAIT_MODES, Inherit(DataPlane, "wait"), Live, "",
        "How channels wait for this client: `poll` spins, `interrupt` sleeps, `adaptive` spins \
         only while that pays."),
    line(Adapter, "placement", Word(&["adaptive", "spread"]), Is("adaptive"), Live, "",
        "`adaptive` folds the queues onto fewer channels when there is little to do; `spread` \
         keeps them apart."),
    line(Adapter, "socket", Path, Derived("DIR/NAME.sock"), Fixed, "",
        "The vhost-user socket."),
    line(Adapter, "socket_role", Word(&["server", "client"]), Is("server"), Fixed, "",
        "Who listens at the socket: with `server` the adapter, and the client connects; with `client` \
         the client (QEMU: server=on), and the adapter connects to it, again and again."),
    line(Adapter, "mode", Mode, Is("0660"), Fixed, "",
        "Permission bits of the socket, where the adapter makes it."),
    hidden(line(Adapter, "withhold", Text { bytes_max: 128 }, Is(""), NextConnect, "",
        "Features that are not offered, separated by commas: inflight, event_idx, indirect, mq, \
         log, mem_slots.")),

    line(Vtd, "kind", Word(&["disk", "optical"]), Is("disk"), Fixed, "",
        "A disk on a volume, or a read-only optical drive."),
    line(Vtd, "adapter", Name(Adapter), Required, Fixed, "",
        "The virtual SCSI adapter whose client sees it."),
    of(DISK, line(Vtd, "volume", Name(Volume), Required, Fixed, "",
        "The volume behind the disk.")),
    of(OPTICAL, line(Vtd, "medium", Name(Medium), Derived("none: the drive is empty"), Live, "",
        "The medium in the drive. `trunkline media load` and `media unload` set it.")),
    line(Vtd, "lun", Number { min: 0, max: 255 }, Derived("the lowest that is free, kept"), Fixed, "",
        "Its LUN at the client."),

    line(Medium, "path", Path, Required, Fixed, "",
        "The ISO image. It is only read."),
    line(Medium, "copy", Switch, Is("false"), Fixed, "",
        "Take a copy into the server's state folder when the medium is made, instead of using the file \
         where it is."),

    line(Port, "dataplane", Name(DataPlane), Is("main"), Fixed, "",
        "The data plane of its adapters and targets."),
    line(Port, "host", Text { bytes_max: 16 }, Derived("none: its targets are the server's"), Fixed, "",
        "The Fibre Channel HBA of the host for which it stands, such as host3. Each adapter that is mapped to \
         it gets a virtual port there (NPIV) and sees the targets of the real fabric."),
    line(Port, "reservations", RESERVATIONS, Derived("`refuse`, where it stands for an HBA"), Unused, "",
        "How reservations of the disks that its HBA shows are answered. `refuse`: not at all, since clients of other \
         servers would not be held by them. `local`: between the clients of this server, if no other server has the disks."),
    line(Port, "num_io_queues", Number { min: 1, max: 16 }, Is("8"), Live, "queues",
        "Queues of the port: most channels that serve the queues of each of its adapters."),
    line(Port, "num_cmd_elems", Number { min: 200, max: 4096 }, Is("2048"), Live, "commands",
        "Bounds the `num_cmd_elems` of all its adapters together: where they ask for more, each has at most its part \
         by `share`, and at least 20."),
    line(Port, "max_xfer_size", TRANSFER, Is("16MiB"), NextConnect, "bytes",
        "Bounds the `max_xfer_size` of each of its adapters."),
    line(Port, "link_speed", NumberOf(&[4, 8, 16, 32, 64]), Is("32"), Live, "Gbit/s",
        "The speed for which it stands; `max_adapters` follows from it."),
    line(Port, "max_adapters", Number { min: 1, max: 1024 }, Derived("64 up to 16 Gbit/s, 255 above"), Live, "adapters",
        "Most adapters that can be mapped to it. Set it where yours differs from what goes with the link speed."),

    line(Target, "dataplane", Name(DataPlane), Is("main"), Fixed, "",
        "The data plane that has its volumes open."),
    line(Target, "luns", LunMap, Is(""), Live, "",
        "Its LUNs and the volume behind each. Several targets may have the same volume: its clients see \
         several paths to one disk."),
    line(Target, "ports", Names(Port), Is(""), Live, "",
        "The ports that reach it; empty is all ports of its data plane."),
    line(Target, "wwpn", Wwpn, Derived("given out when it is made, and kept"), Fixed, "",
        "Its name in the fabric."),
    line(Target, "id", Number { min: 0, max: 255 }, Derived("the lowest that is free, kept"), Fixed, "",
        "Its number at clients, which stands in their paths to disks (/dev/disk/by-path). Its relative \
         target port identifier is one more."),

    line(Zone, "members", Members, Is(""), Live, "",
        "Initiators and targets that see each other. An adapter stands for both of its WWPNs, a target for \
         its one."),

    line(Mask, "initiators", Members, Required, Live, "",
        "Who is given the LUNs. An adapter stands for both of its WWPNs."),
    line(Mask, "targets", Members, Required, Live, "",
        "The targets whose LUNs they are."),
    line(Mask, "luns", Luns, Is("all"), Live, "",
        "Which LUNs, and under which numbers the initiators have them."),

    line(DataPlane, "cpus", Cpus, Is(""), Restart, "",
        "CPUs that the channels run on, one channel per CPU in turn; empty is every CPU that the \
         process may use."),
    line(DataPlane, "channels", Number { min: 0, max: 256 }, Is("0"), Restart, "channels",
        "I/O threads; 0 is one per CPU of `cpus`."),
    line(DataPlane, "wait", WAIT_MODES, Is("adaptive"), Live, "",
        "How channels wait where the adapter does not say."),
    line(DataPlane, "poll_us_max", Number { min: 0, max: 10_000 }, Is("32"), Restart, "µs",
        "What a sleep is worth to `adaptive`, in time of looking for work: it never looks longer than \
         this before it sleeps, and only where looking is cheaper."),
    line(DataPlane, "num_per_range", Number { min: 4, max: 64 }, Is("8"), Live, "channels",
        "Most channels for the queues of each virtual Fibre Channel adapter whose own `num_per_range` is \
         0 (`viosnpiv0`)."),
    line(DataPlane, "num_local_cmds", COMMANDS, Is("5"), Live, "commands",
        "Commands in the pool of each queue of a SCSI client, where the adapter does not say (`viosnpiv0`)."),
    line(DataPlane, "bufs_per_cmd", COMMANDS, Is("10"), Live, "segment lists",
        "Segment lists for each of these commands, where the adapter does not say (`viosnpiv0`)."),
    line(DataPlane, "wwpn_prefix", WwpnPrefix, Derived("c0:50:76 and three bytes of the server's own"), Live, "",
        "The first six bytes of the WWPNs that are given out from now on. A prefix has 32768 pairs, and \
         none is given out twice."),
];
