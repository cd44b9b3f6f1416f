//! Thresholds that are the advisor's own: no source states them. They decide what is noise.
//!
//! Published thresholds (150,000 IOPS, six I/Os per queue, 15 ms, 16 LUNs …) are facts with a source and are not here.

use crate::facts::Facts;
use crate::trace::{Origin, Source, Term};

/// A term for one of the thresholds here.
pub(super) fn own(name: &str, value: f64, unit: &str) -> Term {
    let text = "threshold of this advisor, chosen to keep noise out";
    Term::new(
        name,
        value,
        unit,
        Origin::Fact(Source { id: "advisor".into(), text: text.into(), confirmed: false }),
    )
}

/// A number of the data files.
pub(super) fn fact(facts: &Facts, id: &str) -> f64 {
    facts.number(id).low
}

/// Waits per request from which growth between two captures is more than noise …
pub(super) const GROWTH_SHARE: f64 = 0.0005;
/// … and the least growth that counts.
pub(super) const GROWTH_LEAST: f64 = 50.0;
/// A growth of so many is told from a smaller share on: a day's mean hides the minutes that it is of …
pub(super) const MANY_LEAST: f64 = 1000.0;
/// … which is this one …
pub(super) const MANY_SHARE: f64 = 0.0001;
/// … or this one, where something else shows the want: buffers that were all in use, a sister that has more and does not wait.
pub(super) const SHOWN_SHARE: f64 = 0.00002;
/// Packets a second that a physical Ethernet adapter loses between two captures, from which a smaller share is told …
pub(super) const LOST_PER_SECOND: f64 = 10.0;
/// … in the mean; over so many seconds and more, which hide bursts, …
pub(super) const LOST_LONG_SECONDS: f64 = 21_600.0;
/// … so many a second …
pub(super) const LOST_PER_SECOND_LONG: f64 = 0.5;
/// … which is this one of the packets that arrived.
pub(super) const LOST_SHARE: f64 = 0.0001;
/// The share of all requests that makes the newest of several intervals one of load: what did not grow in it is over.
pub(super) const QUIET_SHARE: f64 = 0.1;
/// The same for a counter that was seen once, since its reset: a share of the requests …
pub(super) const ONCE_SHARE: f64 = 0.0005;
/// … and the least count.
pub(super) const ONCE_LEAST: f64 = 1000.0;
/// A count seen once without the traffic beside it.
pub(super) const ONCE_ALONE: f64 = 10_000.0;

/// The share of the elements set that was in use when requests waited; below it the number set may not be in force …
pub(super) const IN_FORCE_LEAST: f64 = 0.5;
/// … and where those that waited would have had room, too.
pub(super) const IN_FORCE_SHARE: f64 = 0.85;

/// What an adapter of a client does at most, as a share of a busy one's requests, to count as idle …
pub(super) const IDLE_SHARE: f64 = 0.02;
/// … and the least that the busy one did.
pub(super) const IDLE_TIMES: f64 = 10_000.0;

/// Frames with a wrong CRC that grew between two captures.
pub(super) const CRC_GROWTH: f64 = 3.0;
/// Words that were no words, likewise.
pub(super) const WORD_GROWTH: f64 = 50.0;
/// Times the link, its signal or its synchronisation was lost, likewise.
pub(super) const LOSS_GROWTH: f64 = 3.0;
/// The same three since the last reset.
pub(super) const CRC_ONCE: f64 = 100.0;
/// Words.
pub(super) const WORD_ONCE: f64 = 10_000.0;
/// Losses.
pub(super) const LOSS_ONCE: f64 = 100.0;

/// Times a second that a request finds the disk's queue full.
pub(crate) const FULL_PER_SECOND: f64 = 2.0;
/// The same, as a share of the requests.
pub(super) const FULL_SHARE: f64 = 0.01;
/// Waiting in front of the disk, ms.
pub(super) const WAIT_MS: f64 = 0.5;
/// Requests that wait in front of the disk.
pub(super) const WAITING: f64 = 0.5;
/// A disk with less load than this a second is not judged.
pub(super) const IDLE_TPS: f64 = 10.0;
/// How far above the published service time a disk must be: 15 ms is a rule of thumb, not a cliff.
pub(super) const SLOW_FACTOR: f64 = 4.0 / 3.0;
/// Bytes per request from which the transfer itself takes a good part of the service time.
pub(super) const LARGE_IO: f64 = 262_144.0;
/// The share of a command's time from which one layer on its way is named.
pub(super) const LAYER_SHARE: f64 = 0.6;
/// How near to depth ÷ service time counts as running at the limit.
pub(super) const AT_LIMIT: f64 = 0.9;

/// Commands taken from the global queue, as a share of all.
pub(super) const GLOBAL_SHARE: f64 = 0.05;
/// By how many times the published conditions on queues must be met before the numbers on a path are judged.
pub(super) const QUEUES_FAR: f64 = 2.0;
/// A load that is an average since the reset has peaks of so many times its height.
pub(super) const AVERAGE_HIDES: f64 = 3.0;
/// How much of the busier direction the other one has to carry for traffic to count as going both ways.
pub(super) const BOTH_WAYS: f64 = 0.5;
/// Clients from which a shared port speaks without its load being known.
pub(super) const MANY_CLIENTS: usize = 8;

/// Free space of a pool, percent: about to fail, and to be mended soon.
pub(super) const FREE_CRITICAL: f64 = 5.0;
/// To be mended soon.
pub(crate) const FREE_WARNING: f64 = 10.0;
/// Days to full: likewise.
pub(super) const DAYS_CRITICAL: f64 = 7.0;
/// Days to full: to be mended soon.
pub(super) const DAYS_WARNING: f64 = 30.0;
/// LUs' size over the pool's, with less than half of it free.
pub(super) const OVERCOMMIT: f64 = 2.0;
/// The same, with less than a quarter free.
pub(super) const OVERCOMMIT_TIGHT: f64 = 1.5;

/// LUNs of a pool, as a share of the least that is advised …
pub(super) const LUNS_LEAST_SHARE: f64 = 0.5;
/// … and of what is advised for the size of a large one.
pub(super) const LUNS_SIZE_SHARE: f64 = 0.25;

/// Mean use of the entitlement, percent: a capped partition has nothing beyond.
pub(crate) const CAPPED_PERCENT: f64 = 95.0;
/// The same of an uncapped one, which may borrow.
pub(crate) const UNCAPPED_PERCENT: f64 = 100.0;
/// Busy share of dedicated processors.
pub(crate) const DEDICATED_PERCENT: f64 = 90.0;
/// The share of its virtual processors from which a partition uses them all.
pub(super) const WHOLE_SHARE: f64 = 0.95;
/// Busy share of a client's processors, percent, from which they are worth a word.
pub(super) const CLIENT_BUSY_PERCENT: f64 = 95.0;
/// Resets of an Ethernet adapter between two captures: one is an event, several are a storm …
pub(super) const RESETS_GROWTH: f64 = 3.0;
/// … and since the counters' reset.
pub(super) const RESETS_ONCE: f64 = 100.0;
/// Packets of an Ethernet adapter whose sending timed out between two captures.
pub(super) const TIMEOUTS_GROWTH: f64 = 10.0;
/// Packets of an Ethernet adapter that found no carrier between two captures, with a link.
pub(super) const NO_CARRIER_GROWTH: f64 = 10.0;
/// The share of an adapter's receive errors that its own counters of causes leave open, from which these are told.
pub(super) const UNNAMED_ERRORS_SHARE: f64 = 0.5;
/// Packets that found no network memory between two captures.
pub(super) const NO_MBUF_GROWTH: f64 = 10.0;
/// Ethernet frames with a wrong checksum that grew between two captures …
pub(super) const FRAME_CRC_GROWTH: f64 = 10.0;
/// … and their share of the frames that arrived meanwhile.
pub(super) const FRAME_CRC_SHARE: f64 = 1e-6;
/// The same since the counters' reset …
pub(super) const FRAME_CRC_ONCE: f64 = 1000.0;
/// … and their share.
pub(super) const FRAME_CRC_ONCE_SHARE: f64 = 1e-5;
/// Packets that a shared adapter dropped at full queues between two captures.
pub(super) const SEA_DROPS_GROWTH: f64 = 10_000.0;
/// Errors on the paths over one adapter, from which that side is suspected when the others have next to none …
pub(super) const SIDE_ERRORS_LEAST: f64 = 100.0;
/// … which is less than this share of its.
pub(super) const SIDE_ERRORS_SHARE: f64 = 0.02;
/// LACPDUs that a member has sent before the answers to them are judged …
pub(super) const LACP_LEAST: f64 = 1000.0;
/// … and the share of them that a partner in order answers at least; it sends as many of its own.
pub(super) const LACP_HEARD_SHARE: f64 = 0.25;
/// The greatest numbers of receive buffers of a virtual Ethernet adapter by kind, with their attributes, as the AIX
/// documentation of its attributes has them; not confirmed on a system.
pub(super) const BUFFER_LIMITS: [(&str, &str, u64); 5] = [
    ("Tiny", "max_buf_tiny", 4096),
    ("Small", "max_buf_small", 4096),
    ("Medium", "max_buf_medium", 2048),
    ("Large", "max_buf_large", 256),
    ("Huge", "max_buf_huge", 128),
];
/// The share of its line that a member of an aggregation sends when it counts as full …
pub(super) const MEMBER_FULL_SHARE: f64 = 0.8;
/// … and what all others together send at most, as a share of that.
pub(super) const MEMBER_REST_SHARE: f64 = 0.25;
/// Bytes a second in one direction for each Gbit/s of a Fibre Channel port: 8 Gbit/s move 800 MB/s (FC-PI, 8b/10b and
/// faster codes at line rates chosen to keep that).
pub(super) const BYTES_PER_GBIT: f64 = 100e6;
/// The share of it from which a port counts as full.
pub(super) const LINE_RATE_SHARE: f64 = 0.9;
/// Errors of one disk in the error log …
pub(super) const DISK_ERRORS_LEAST: f64 = 3.0;
/// … within so many seconds before the capture.
pub(super) const DISK_ERRORS_WITHIN_SECONDS: u64 = 86_400;
/// Errors of one adapter in the error log in that time, with their duplicates …
pub(super) const ADAPTER_ERRORS_LEAST: f64 = 10.0;
/// … in so many different hours: a switch that is restarted makes many in one.
pub(super) const ADAPTER_ERRORS_HOURS: f64 = 3.0;
/// Different hours of the day before the capture in which paths to disks fail, by the error log.
pub(super) const FLAPPING_HOURS: f64 = 3.0;
/// Times that an Ethernet link is lost in that time, by the error log; what belongs to a restart does not count …
pub(super) const LINK_LOST_LEAST: f64 = 3.0;
/// … in different hours, or in so many stretches of so many seconds within half an hour and more …
pub(super) const LINK_LOST_APART_SECONDS: u64 = 600;
/// … a restart is so many seconds before and after the log was turned off or on, or the system shut down.
pub(super) const RESTART_SECONDS: u64 = 1800;
/// Times that a link is lost, by the error log, so many seconds apart …
pub(super) const LINK_AGAIN_APART_SECONDS: u64 = 3600;
/// … within so many seconds …
pub(super) const LINK_AGAIN_WITHIN_SECONDS: u64 = 604_800;
/// … and over so many, from which it is told though no day has many: so many times …
pub(super) const LINK_AGAIN_OVER_SECONDS: u64 = 86_400;
/// The times.
pub(super) const LINK_AGAIN_LEAST: f64 = 5.0;
/// … on so many days.
pub(super) const LINK_AGAIN_DAYS: usize = 3;
/// The share of the intervals of a file of nmon in which a port has to be at its line rate …
pub(super) const LINE_RATE_INTERVALS: f64 = 1.0 / 3.0;
/// … and the least number of them.
pub(super) const LINE_RATE_INTERVALS_LEAST: usize = 3;
/// The share of the intervals of a file of nmon with load in which a disk has to be slow …
pub(super) const SLOW_INTERVALS: f64 = 1.0 / 3.0;
/// … and the least number of them.
pub(super) const SLOW_INTERVALS_LEAST: usize = 3;
/// Pages to and from paging space a second, in the mean of all intervals.
pub(crate) const PAGES_PER_SECOND: f64 = 20.0;
/// Packets refused as too large between two captures. Finding out the greatest size on a way costs one each time, ten
/// minutes apart for each peer.
pub(super) const REFUSED_GROWTH: f64 = 1000.0;
/// Used share of paging space, percent, from which a burst may fill it …
pub(super) const PAGING_WARNING: f64 = 70.0;
/// … and from which little is left; AIX begins to end processes when it is full.
pub(super) const PAGING_CRITICAL: f64 = 90.0;
/// Changes of the primary since the counters' reset.
pub(super) const FLAPS_ONCE: f64 = 20.0;
/// The same a day, in the mean since that reset, where its time is known.
pub(super) const FLAPS_A_DAY: f64 = 0.2;
/// Times that a shared adapter became primary or backup in the day before the capture, by the error log: a failover with its
/// way back, for each of two servers, is fewer.
pub(super) const TURNS_IN_A_DAY: f64 = 6.0;
/// A shared adapter that is set to stand by was left so after maintenance, where it is in captures so many seconds apart.
pub(super) const STANDBY_SECONDS: f64 = 86_400.0;
/// Changes of the primary between two captures.
pub(super) const FLAPS_GROWTH: f64 = 2.0;
/// What a profile gives, of what the partition runs with, from which on it is told.
pub(super) const PROFILE_LESS: f64 = 0.5;
/// Errors of one disk in the last day of a log of which it is not known when it was taken, from which they are told.
pub(super) const DISK_ERRORS_UNDATED: f64 = 10.0;
/// So many clients with virtual SCSI disks from two servers show that one client with disks from one was forgotten.
pub(super) const ONE_SERVER_OTHERS: f64 = 3.0;
/// The same of Fibre Channel adapters, which are made by hand for each server: two others for each that has one.
pub(super) const ONE_SERVER_OTHERS_FIBRE: f64 = 2.0;
/// Packets that a virtual Ethernet adapter has sent without having received one, from which nobody hears it.
pub(super) const UNHEARD_PACKETS: f64 = 100.0;
/// Permanent errors of an adapter's hardware in the day before the capture: they are no event of the other side …
pub(super) const HARDWARE_ERRORS_LEAST: f64 = 2.0;
/// Errors of an adapter or its link that go on now: so many …
pub(super) const ERRORS_NOW_LEAST: f64 = 8.0;
/// … in so many different minutes …
pub(super) const ERRORS_NOW_MINUTES: f64 = 6.0;
/// … over so many seconds at least, which is longer than the restart of a switch …
pub(super) const ERRORS_NOW_OVER_SECONDS: u64 = 1800;
/// … within so many seconds, the last of them so long before the capture at most.
pub(super) const ERRORS_NOW_WITHIN_SECONDS: u64 = 7200;
/// The last of them.
pub(super) const ERRORS_NOW_LAST_SECONDS: u64 = 1800;
/// Errors of an interface between two lists of interfaces.
pub(super) const ERRORS_OF_INTERFACE: f64 = 100.0;
/// The share of the packets that an interface receives from which those are told that it drops: protocols that nobody
/// listens to are among them.
pub(super) const OTHER_DROPS_SHARE: f64 = 0.01;
/// Used share of a file system that a VIOS needs, percent.
pub(super) const FULL_PERCENT: f64 = 99.0;
