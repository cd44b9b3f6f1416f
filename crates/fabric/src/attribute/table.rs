//! The table of attributes.

use super::Default::{Derived, Fixed as Is, Inherit, Required};
use super::Effect::{Fixed, Live, NextConnect, Restart};
use super::Kind::{Cpus, Mode, Name, Number, NumberOf, Path, PowerOfTwo, Size, Switch, Text, Word};
use super::Object::{Adapter, DataPlane, Volume};
use super::{Attribute, Default, Effect, Kind, Object};

/// Rates and counts have no natural greatest value; this one keeps sums of them within 64 bits.
const RATE_MAX: u64 = 1 << 40;
/// The largest volume: 8 EiB less a block is what a file offset can name.
const SIZE_MAX: u64 = 1 << 62;
/// Ten seconds: a longer delay is longer than the time-outs of common guests.
const DELAY_US_MAX: u64 = 10_000_000;

const RATE: Kind = Number {
    min: 0,
    max: RATE_MAX,
};
const BLOCK_SIZES: Kind = NumberOf(&[512, 4096]);
const WAIT_MODES: Kind = Word(&["poll", "adaptive", "interrupt"]);

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
    Attribute {
        object,
        name,
        kind,
        default,
        unit,
        effect,
        meaning,
        hidden: false,
    }
}

/// One line for tests: it works, and stands in no help.
const fn hidden(attribute: Attribute) -> Attribute {
    Attribute {
        hidden: true,
        ..attribute
    }
}

/// Every attribute there is, by object, the important ones first.
#[rustfmt::skip] // A table: one line of code per fact.
pub static TABLE: &[Attribute] = &[
    line(Volume, "kind", Word(&["file", "ram", "null"]), Required, Fixed, "",
        "What holds the data: a file or block device, memory, or nothing at all (reads give \
         whatever, writes vanish)."),
    line(Volume, "path", Path, Derived("required for `file`; DIR/ram/NAME for `ram`"), Fixed, "",
        "The file or block device of a `file` volume; for a `ram` volume the file in a tmpfs that \
         keeps its contents while the data plane restarts."),
    line(Volume, "size", Size { min: 0, max: SIZE_MAX }, Derived("the size of the file or device"), Live, "bytes",
        "Size of the volume. Larger than the file: the file grows. A running guest sees the new \
         size at once."),
    line(Volume, "create", Switch, Is("false"), Fixed, "",
        "Make the file when it is missing; needs `size`."),
    line(Volume, "block_size", BLOCK_SIZES, Is("512"), Fixed, "bytes",
        "Logical block size: the smallest piece that a guest can read or write."),
    line(Volume, "read_only", Switch, Is("false"), Fixed, "",
        "Refuse writes, on all adapters of this volume."),
    line(Volume, "shareable", Switch, Is("false"), Live, "",
        "Allow several adapters on this volume although it can be written: for guests with a \
         cluster file system. Others destroy their data."),
    line(Volume, "cache", Word(&["auto", "direct", "buffered"]), Is("auto"), Fixed, "",
        "`direct` bypasses the page cache, `buffered` uses it, `auto` takes direct where the file \
         supports it."),
    line(Volume, "limit_iops", RATE, Is("0"), Live, "I/Os per second",
        "Most reads and writes per second over all adapters of the volume; 0 is no limit."),
    line(Volume, "limit_bytes_per_s", Size { min: 0, max: RATE_MAX }, Is("0"), Live, "bytes per second",
        "Most bytes per second over all adapters of the volume; 0 is no limit."),
    line(Volume, "limit_burst_ms", Number { min: 1, max: 60_000 }, Is("100"), Live, "ms",
        "How much of an unused rate is saved up: this many milliseconds of it may be spent at once."),
    line(Volume, "delay_us_min", Number { min: 0, max: DELAY_US_MAX }, Is("0"), Fixed, "µs",
        "Model of a slow disk: least service time of a request; 0 with `delay_us_max` 0 is no delay."),
    line(Volume, "delay_us_max", Number { min: 0, max: DELAY_US_MAX }, Is("0"), Fixed, "µs",
        "Model of a slow disk: greatest service time of a request. Requests finish out of order."),
    line(Volume, "delay_depth", Number { min: 1, max: 1024 }, Is("32"), Fixed, "requests",
        "Model of a slow disk: how many requests are served at the same time."),
    hidden(line(Volume, "fault_errors_per_million", Number { min: 0, max: 1_000_000 }, Is("0"), Fixed, "",
        "Fail this many of a million requests.")),
    hidden(line(Volume, "fault_torn_per_million", Number { min: 0, max: 1_000_000 }, Is("0"), Fixed, "",
        "Tear this many of a million writes: a part reaches the volume, and the request fails.")),
    hidden(line(Volume, "fault_seed", Number { min: 0, max: u64::MAX >> 1 }, Is("0"), Fixed, "",
        "Seed of faults and delays: the same seed gives the same run.")),

    line(Adapter, "volume", Name(Volume), Required, Fixed, "",
        "The volume that the client sees as its disk."),
    line(Adapter, "dataplane", Name(DataPlane), Is("main"), Fixed, "",
        "The data plane that serves the adapter."),
    line(Adapter, "queues", Number { min: 1, max: 256 }, Is("64"), NextConnect, "queues",
        "Most queues that a client may use; it chooses how many (QEMU: num-queues). vhost-user \
         can name 256."),
    line(Adapter, "channels", Number { min: 0, max: 1024 }, Is("0"), NextConnect, "channels",
        "Most channels that serve the client's queues; 0 is as many as the data plane has."),
    line(Adapter, "queue_size", PowerOfTwo { min: 2, max: 1024 }, Is("1024"), NextConnect, "entries",
        "Longest ring that is taken from the client (QEMU: queue-size)."),
    line(Adapter, "block_size", BLOCK_SIZES, Inherit(Volume, "block_size"), NextConnect, "bytes",
        "Logical block size that the client sees; not below the volume's."),
    line(Adapter, "serial", Text { bytes_max: 20 }, Derived("the first 20 characters of the volume's name"), Live, "",
        "Serial number of the disk; Linux makes /dev/disk/by-id/virtio-SERIAL of it."),
    line(Adapter, "read_only", Switch, Inherit(Volume, "read_only"), NextConnect, "",
        "The client cannot write. An adapter of a read-only volume is always read-only."),
    line(Adapter, "write_cache", Switch, Is("true"), NextConnect, "",
        "Offer a write cache, which the client flushes. Off: every write is durable before it is \
         acknowledged, and slower for it."),
    line(Adapter, "discard", Switch, Is("true"), NextConnect, "",
        "Offer discard and write-zeroes where the volume can do them."),
    line(Adapter, "seg_max", Number { min: 1, max: 1022 }, Is("254"), NextConnect, "segments",
        "Most data segments per request that the client is told."),
    line(Adapter, "wait", WAIT_MODES, Inherit(DataPlane, "wait"), Live, "",
        "How channels wait for this client: `poll` spins, `interrupt` sleeps, `adaptive` spins \
         only while that pays."),
    line(Adapter, "poll_us_max", Number { min: 0, max: 10_000 }, Inherit(DataPlane, "poll_us_max"), Live, "µs",
        "Longest that `adaptive` spins before it sleeps."),
    line(Adapter, "placement", Word(&["adaptive", "spread"]), Is("adaptive"), Live, "",
        "`adaptive` folds the queues onto fewer channels when there is little to do; `spread` \
         keeps them apart."),
    line(Adapter, "socket", Path, Derived("DIR/NAME.sock"), Fixed, "",
        "The vhost-user socket."),
    line(Adapter, "mode", Mode, Is("0660"), Fixed, "",
        "Permission bits of the socket."),

    line(DataPlane, "cpus", Cpus, Is(""), Restart, "",
        "CPUs that the channels run on, one channel per CPU in turn; empty is every CPU that the \
         process may use."),
    line(DataPlane, "channels", Number { min: 0, max: 1024 }, Is("0"), Restart, "channels",
        "I/O threads; 0 is one per CPU of `cpus`."),
    line(DataPlane, "wait", WAIT_MODES, Is("adaptive"), Live, "",
        "How channels wait where the adapter does not say."),
    line(DataPlane, "poll_us_max", Number { min: 0, max: 10_000 }, Is("32"), Live, "µs",
        "Longest that `adaptive` spins before it sleeps, where the adapter does not say."),
    line(DataPlane, "log", Word(&["error", "warn", "info", "debug", "trace"]), Is("info"), Restart, "",
        "How much the data plane writes to its log."),
];
