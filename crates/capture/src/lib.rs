//! What commands printed, as it was read.
//!
//! Pure: no I/O, no clock, no threads. Whoever has the bytes gives them to [`Captures`]; the planner makes its answers of what is there then.
//!
//! A file holds whatever an administrator saved: one report, or a whole session with prompts, several commands and text
//! in between. Every report keeps the lines it came from, every value the line it stood on, and what is not understood
//! is kept with its line instead of being guessed at. A value that a level of AIX or VIOS does not print is `None`.
//!
//! Names of devices and partitions are taken from the prompt, the command or the report's own heading, and only where
//! they stand there; [`Head::device`] and [`Head::partition`] are `None` otherwise.

mod announced;
mod attributes;
pub mod called;
mod changes;
pub mod clean;
mod diskpaths;
mod dress;
mod entstat;
mod errpt;
mod fcstat;
mod foreign;
mod gzip;
mod hmc;
mod hmc_messages;
mod host;
mod hosts;
mod identity;
mod interfaces;
mod iostat;
mod label;
mod language;
mod latency;
mod level;
pub mod limits;
mod logins;
mod looping;
mod lparstat;
mod lscfg;
mod lsmap;
mod memory;
mod nmon;
mod packed;
mod page;
mod part;
mod ports;
mod prompt;
mod rates;
mod recognise;
mod seastat;
mod served;
mod session;
mod storage;
mod strip;
mod table;
mod text;
mod vfcstats;
mod volumes;

pub use attributes::{Allowed, Attribute, Lsattr, LsattrRange, LsdevAttr, Settable};
pub use changes::Chdev;
pub use diskpaths::{DiskPath, DiskPaths, PathState};
pub use entstat::{
    Aggregation, Buffers, Entstat, Ethernet, Failover, Lacp, LacpSide, Packets, Sea, SeaThread,
    Side, TrunkVlans, VirtualEthernet,
};
pub use errpt::{Errpt, LoggedError};
pub use fcstat::{ClientRow, Fcstat, FcstatClient, QueueUse, Resources, Traffic, TwoWay};
pub use hmc::{HmcList, HmcRow};
pub use hmc_messages::{HmcMessage, HmcMessages};
pub use host::{About, Host};
pub use identity::{Identifier, Identifies};
pub use interfaces::{Interface, Interfaces, Packets as InterfacePackets};
pub use iostat::{DiskQueue, DiskSample, IostatD, Service};
pub use latency::{FcLatency, LatencyRow};
pub use level::{Level, System};
pub use logins::{LoggedIn, Lsnportlogin, WwpnLogin, WwpnStatus};
pub use lparstat::{CpuSample, HypervisorCall, Info, Lparstat};
pub use lscfg::{Device, Lscfg};
pub use lsmap::{
    LsmapNet, LsmapNpiv, LsmapScsi, LsmapVnic, NetMap, NpivMap, ScsiMap, VnicMap, Vtd,
};
pub use memory::{Lsps, PagingSpace, Svmon, VmSample, Vmstat};
pub use nmon::{Nmon, NmonRow, NmonSection, NmonTime};
pub use part::{PartAdvice, PartReport};
pub use ports::{Lsnports, NpivPort};
pub use rates::{Change, Incomparable, Rate, Rates, rates};
pub use seastat::{SeaClient, Seastat};
pub use served::{AdapterReading, Elements, OnPort, Reading, Served, ServerStats};
pub use storage::{
    Alert, AlertList, ClusterStatus, FailureGroup, FailureGroupList, LogicalUnit, Lssp, LuList,
    Node, Pool, PoolLun, PvList, Tier, TierList,
};
pub use table::{Reader, readers};
pub use text::is_binary;
pub use text::is_masked;
pub use vfcstats::{Named, VfcStats};
pub use volumes::{Df, FileSystem, Lsvg, Member, VolumeGroup};

use std::borrow::Cow;

use serde::Serialize;

/// Where a value stood: every number of an answer can be traced to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct At {
    /// The file, by its order among those that were read; from 0.
    pub file: u32,
    /// The line in it; from 1.
    pub line: u32,
}

/// A value and the line that it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Read<T> {
    /// The value.
    pub value: T,
    /// Where it stood.
    pub at: At,
}

/// A World Wide Name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Wwn(pub u64);

impl Wwn {
    /// Whether it is one of those that a hypervisor gives to virtual adapters: of the kind that its first digit calls C.
    pub fn is_virtual(self) -> bool {
        self.0 >> 60 == 0xC
    }
}

impl std::fmt::Display for Wwn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, byte) in self.0.to_be_bytes().iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02x}")?;
        }
        Ok(())
    }
}

/// When a capture was taken, in seconds since a fixed moment.
///
/// Two of them can be subtracted when their zones are equal, or the summer and the winter of one: a line that `date`
/// printed names a zone by letters whose offset is not known, a time that the caller gave is in UTC and has no zone here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// Seconds since 1970 of the clock that was read.
    pub seconds: u64,
    /// The zone as `date` printed it; `None` is UTC.
    pub zone: Option<String>,
}

impl Taken {
    /// Seconds since 1970, in UTC.
    pub fn utc(seconds: u64) -> Self {
        Self { seconds, zone: None }
    }

    /// The clock by its winter name and the seconds that it shows: what `date` printed in summer can be held against
    /// what it printed in winter.
    #[must_use]
    pub fn clock(&self) -> (Option<&str>, u64) {
        const SUMMER: [(&str, &str); 8] = [
            ("CEST", "CET"),
            ("EEST", "EET"),
            ("WEST", "WET"),
            ("MEST", "MET"),
            ("EDT", "EST"),
            ("CDT", "CST"),
            ("MDT", "MST"),
            ("PDT", "PST"),
        ];
        let zone = self.zone.as_deref();
        match SUMMER.iter().find(|(summer, _)| Some(*summer) == zone) {
            Some((_, winter)) => (Some(winter), self.seconds.saturating_sub(3600)),
            None => (zone, self.seconds),
        }
    }
}

/// Where a report came from: what every report has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Head {
    /// The first line of it.
    pub first: At,
    /// The last line of it, in the same file.
    pub last: u32,
    /// The command as it was typed, when it stands there.
    pub command: Option<Read<String>>,
    /// The partition, from the prompt or from the report itself.
    pub partition: Option<Read<String>>,
    /// The device that the report is about, from the command or from the report's heading.
    pub device: Option<Read<String>>,
    /// When it was taken, if known.
    pub taken: Option<Taken>,
    /// Why it is believed to be incomplete; `None` when nothing speaks for that.
    pub incomplete: Option<Cow<'static, str>>,
    /// Lines inside the report that were not understood.
    pub unread: Vec<Unread>,
    /// Values that somebody made unreadable before handing the text on: the field is there, its value is `None`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<Masked>,
}

/// A value that was made unreadable, such as `0xC050760XXXXXXXXX`: it identifies nothing, and two of them are not equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Masked {
    /// Its line.
    pub at: At,
    /// The field, as the report calls it.
    pub field: String,
    /// As printed.
    pub text: String,
}

/// Text that was kept and not understood; lines that follow each other are one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// The first line.
    pub at: At,
    /// How many lines.
    pub lines: u32,
    /// The text, at most [`Unread::KEPT`] bytes of it.
    pub text: String,
    /// Why it was not understood.
    pub why: String,
}

impl Unread {
    /// So much text of one entry is kept.
    pub const KEPT: usize = 4096;
}

/// A report that was recognised and not read, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Its first line.
    pub at: At,
    /// How many lines.
    pub lines: u32,
    /// The command whose report it is.
    pub command: String,
    /// Why it is refused and how to mend it.
    pub why: String,
}

/// One file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileInfo {
    /// Its name as the caller gave it.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its lines.
    pub lines: u32,
    /// When it was taken, as the caller said.
    pub taken: Option<Taken>,
    /// What is odd about the file as a whole: bytes that are not text, a last line that ends early.
    pub notes: Vec<String>,
    /// From this line on nothing was read: the file holds more than is kept of one ([`limits`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out_from: Option<u32>,
}

/// One report.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Report {
    /// `fcstat fcsN`, also with `-e` or `-D`.
    Fcstat(Box<Fcstat>),
    /// `fcstat -client`.
    FcstatClient(FcstatClient),
    /// `fcstat -l`.
    FcLatency(FcLatency),
    /// `lsattr -El DEVICE`.
    Lsattr(Lsattr),
    /// `chdev`, where it says that it changed the device.
    Chdev(Chdev),
    /// `lsattr -Rl DEVICE -a ATTRIBUTE`, `lsdev -dev DEVICE -range ATTRIBUTE`.
    LsattrRange(LsattrRange),
    /// `lsdev -dev DEVICE -attr`.
    LsdevAttr(LsdevAttr),
    /// `lsmap -all`.
    LsmapScsi(LsmapScsi),
    /// `lsmap -all -npiv`.
    LsmapNpiv(LsmapNpiv),
    /// `lsmap -all -net`.
    LsmapNet(LsmapNet),
    /// `lsnports`.
    Lsnports(Lsnports),
    /// `lsnportlogin`, on an HMC.
    Lsnportlogin(Lsnportlogin),
    /// `iostat -D`.
    IostatD(IostatD),
    /// `entstat -all`, `entstat -d`, `netstat -v`.
    Entstat(Box<Entstat>),
    /// `seastat`.
    Seastat(Seastat),
    /// `lparstat`, also with `-i` or `-H`.
    Lparstat(Box<Lparstat>),
    /// `lssp`.
    Lssp(Lssp),
    /// `lu -list`, `lssp -bd`.
    LuList(LuList),
    /// `pv -list`, `lspv -clustername C -sp P`.
    PvList(PvList),
    /// `failgrp -list`.
    FailureGroupList(FailureGroupList),
    /// `tier -list`.
    TierList(TierList),
    /// `alert -list`.
    AlertList(AlertList),
    /// `/proc/sys/adapter/vfc/vfchostN/stats`.
    VfcStats(VfcStats),
    /// `ioslevel`, `oslevel -s`.
    Level(Level),
    /// `lspath`, `lsmpio`, `pcmpath query device`.
    DiskPaths(DiskPaths),
    /// `errpt`, `errpt -a`.
    Errpt(Errpt),
    /// `lscfg -vpl`, `lsdev -dev DEVICE -vpd`.
    Lscfg(Lscfg),
    /// `hostname`, `uname`, `prtconf`, `uptime`.
    Host(Host),
    /// `lsmap -all -vnic`.
    LsmapVnic(LsmapVnic),
    /// `vmstat`.
    Vmstat(Vmstat),
    /// `svmon -G`.
    Svmon(Svmon),
    /// `lsps -a`, `lsps -s`.
    Lsps(Lsps),
    /// `lsvg`, also with `-p` or `-l`.
    Lsvg(Lsvg),
    /// `df`.
    Df(Df),
    /// `netstat -in`, `ip -s link`.
    Interfaces(Interfaces),
    /// What an HMC answers to a command that it refuses.
    HmcMessages(HmcMessages),
    /// `cluster -status`.
    ClusterStatus(ClusterStatus),
    /// `lssyscfg`, `lshwres`.
    HmcList(HmcList),
    /// A file of nmon.
    Nmon(Box<Nmon>),
    /// A reading of a running Trunkline server.
    Server(Box<ServerStats>),
    /// The XML of IBM's advisor, `part`.
    Part(PartReport),
}

/// Everything that was read, file by file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Captures {
    /// The files, in the order in which they were read; [`At::file`] counts them.
    pub files: Vec<FileInfo>,
    /// The reports, in the order in which they stand.
    pub reports: Vec<Report>,
    /// Text outside reports that was not understood.
    pub unread: Vec<Unread>,
    /// Reports that were recognised and not read.
    pub refused: Vec<Refused>,
    /// How many lines the reports of the files have that were read.
    #[serde(skip)]
    lines: usize,
}

impl Captures {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one file; `taken` is when it was made, if the caller knows.
    ///
    /// Any bytes can be given: what is no report is kept in [`Captures::unread`]. What is beyond the [`limits`] is left
    /// out and said in the file's notes.
    pub fn read(&mut self, name: &str, bytes: &[u8], taken: Option<Taken>) {
        let before = self.reports.len();
        session::read(self, name, bytes, taken);
        let new = self.reports.iter().skip(before);
        self.lines += new.map(|report| report.head().lines()).sum::<usize>();
    }

    /// How much is kept: reports, and passages that belong to none.
    fn entries(&self) -> usize {
        self.reports.len() + self.unread.len() + self.refused.len()
    }

    /// The name of the file that `at` counts.
    pub fn file_name(&self, at: At) -> &str {
        let index = usize::try_from(at.file).unwrap_or(usize::MAX);
        self.files.get(index).map_or("", |file| &file.name)
    }

    /// The attributes of a device, from `lsattr` and `lsdev`; a report without a device's name is not searched.
    ///
    /// With `partition`, only reports that name that partition or none.
    pub fn attributes<'a>(
        &'a self,
        partition: Option<&'a str>,
        device: &'a str,
    ) -> impl Iterator<Item = &'a Attribute> {
        let fits = move |head: &Head| {
            let here = head.device.as_ref().is_some_and(|read| read.value == device);
            let from = head.partition.as_ref().map(|read| read.value.as_str());
            here && (partition.is_none() || from.is_none() || from == partition)
        };
        self.reports
            .iter()
            .filter_map(|report| match report {
                Report::Lsattr(report) => Some((&report.head, &report.attributes)),
                Report::LsdevAttr(report) => Some((&report.head, &report.attributes)),
                _ => None,
            })
            .filter(move |(head, _)| fits(head))
            .flat_map(|(_, attributes)| attributes)
    }
}

/// One line for each kind of report: the accessor on [`Report`] and the iterator on [`Captures`].
macro_rules! kinds {
    ($($variant:ident $type:ident $one:ident $all:ident $command:literal,)*) => {
        impl Report {
            /// Where it came from.
            pub fn head(&self) -> &Head {
                match self { $(Report::$variant(report) => &report.head,)* }
            }

            pub(crate) fn head_mut(&mut self) -> &mut Head {
                match self { $(Report::$variant(report) => &mut report.head,)* }
            }

            /// The command that prints such a report.
            pub fn command(&self) -> &'static str {
                match self {
                    Report::Level(level) if level.system == System::Aix => "oslevel -s",
                    Report::DiskPaths(list) if list.is_of_linux() => "multipath -ll",
                    Report::Interfaces(list) if list.head.device.is_some() => "ethtool -S",
                    Report::Interfaces(list) if list.is_of_linux() => "ip -s link",
                    Report::HmcList(list) if list.is_of_hardware() => "lshwres",
                    _ => self.usual_command(),
                }
            }

            /// The command of most reports of its kind.
            fn usual_command(&self) -> &'static str {
                match self { $(Report::$variant(_) => $command,)* }
            }

            $(
                #[doc = concat!("The report, if it is one of `", $command, "`.")]
                pub fn $one(&self) -> Option<&$type> {
                    match self { Report::$variant(report) => Some(report), _ => None }
                }
            )*
        }

        impl Captures {
            $(
                #[doc = concat!("The reports of `", $command, "`.")]
                pub fn $all(&self) -> impl Iterator<Item = &$type> {
                    self.reports.iter().filter_map(Report::$one)
                }
            )*
        }
    };
}

kinds! {
    Fcstat Fcstat fcstat fcstats "fcstat",
    FcstatClient FcstatClient fcstat_client fcstat_clients "fcstat -client",
    FcLatency FcLatency fc_latency fc_latencies "fcstat -l",
    Lsattr Lsattr lsattr lsattrs "lsattr -El",
    Chdev Chdev chdev chdevs "chdev",
    LsattrRange LsattrRange lsattr_range lsattr_ranges "lsattr -Rl",
    LsdevAttr LsdevAttr lsdev_attr lsdev_attrs "lsdev -dev -attr",
    LsmapScsi LsmapScsi lsmap_scsi lsmap_scsis "lsmap -all",
    LsmapNpiv LsmapNpiv lsmap_npiv lsmap_npivs "lsmap -all -npiv",
    LsmapNet LsmapNet lsmap_net lsmap_nets "lsmap -all -net",
    Lsnports Lsnports lsnports lsnports_all "lsnports",
    Lsnportlogin Lsnportlogin lsnportlogin lsnportlogins "lsnportlogin",
    IostatD IostatD iostat_d iostat_ds "iostat -D",
    Entstat Entstat entstat entstats "entstat -all",
    Seastat Seastat seastat seastats "seastat",
    Lparstat Lparstat lparstat lparstats "lparstat",
    Lssp Lssp lssp lssps "lssp",
    LuList LuList lu_list lu_lists "lu -list",
    PvList PvList pv_list pv_lists "pv -list",
    FailureGroupList FailureGroupList failure_group_list failure_group_lists "failgrp -list",
    TierList TierList tier_list tier_lists "tier -list",
    AlertList AlertList alert_list alert_lists "alert -list",
    VfcStats VfcStats vfc_stats vfc_stats_all "cat /proc/sys/adapter/vfc/vfchostN/stats",
    Level Level level levels "ioslevel",
    DiskPaths DiskPaths disk_paths disk_paths_all "lspath",
    Errpt Errpt errpt errpts "errpt",
    Lscfg Lscfg lscfg lscfgs "lscfg -vpl",
    Host Host host hosts "uname",
    LsmapVnic LsmapVnic lsmap_vnic lsmap_vnics "lsmap -all -vnic",
    Vmstat Vmstat vmstat vmstats "vmstat",
    Svmon Svmon svmon svmons "svmon -G",
    Lsps Lsps lsps lspss "lsps -a",
    Lsvg Lsvg lsvg lsvgs "lsvg",
    Df Df df dfs "df -g",
    ClusterStatus ClusterStatus cluster_status cluster_statuses "cluster -status",
    Interfaces Interfaces interfaces interfaces_all "netstat -in",
    HmcMessages HmcMessages hmc_messages hmc_messages_all "migrlpar",
    HmcList HmcList hmc_list hmc_lists "lssyscfg",
    Nmon Nmon nmon nmons "nmon",
    Server ServerStats server servers "trunkline stats",
    Part PartReport part parts "part",
}
