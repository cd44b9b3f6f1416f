//! The readers: one entry for each kind of report, with the command that prints it and the function that reads it.
//!
//! To add a reader beside its own module: its variant in [`Report`], an entry here, and a [`Kind`] with how it is
//! recognised ([`recognise`](super::recognise)): by its heading, else by its command.

use std::sync::LazyLock;

use super::page::Page;
use super::recognise::Kind;
use super::{
    Report, attributes, diskpaths, entstat, errpt, fcstat, hmc, hmc_messages, host, interfaces,
    iostat, latency, level, logins, lparstat, lscfg, lsmap, memory, nmon, part, ports, seastat,
    storage, vfcstats, volumes,
};

/// One reader.
pub struct Reader {
    kind: Kind,
    /// The command whose report it is, in one word.
    pub command: &'static str,
    /// The command as it is typed.
    pub typed: &'static str,
    /// Where the report's layout is described; `not confirmed` where nothing public shows it whole.
    pub layout: &'static str,
    /// Other programs whose reports it reads, or names when they are refused.
    also: &'static [&'static str],
    pub(super) read: for<'t> fn(&mut Page<'t>) -> Option<Report>,
}

impl Reader {
    const fn also(self, programs: &'static [&'static str]) -> Self {
        Self { also: programs, ..self }
    }

    fn programs(&self) -> impl Iterator<Item = &'static str> {
        let typed = self.typed.split(' ').next();
        typed.into_iter().chain(self.also.iter().copied())
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("kind", &self.kind).finish()
    }
}

const fn reader(
    kind: Kind,
    [command, typed, layout]: [&'static str; 3],
    read: for<'t> fn(&mut Page<'t>) -> Option<Report>,
) -> Reader {
    Reader { kind, command, typed, layout, also: &[], read }
}

/// The readers, each with what its layout is taken from.
pub fn readers() -> impl Iterator<Item = &'static Reader> {
    TABLE.iter()
}

const TABLE: &[Reader] = &[
    reader(
        Kind::Fcstat,
        [
            "fcstat",
            "fcstat -D fcs0",
            "AIX 7.3 commands reference, `fcstat`; outputs in public support articles",
        ],
        fcstat::report,
    ),
    reader(
        Kind::FcstatClient,
        ["fcstat", "fcstat -client", "Power Virtual I/O Server commands reference, `fcstat`"],
        fcstat::client_report,
    ),
    reader(
        Kind::FcLatency,
        [
            "fcstat",
            "fcstat -l 20 5 fcs0",
            "AIX 7.3 commands reference, `fcstat`; its examples are pictures: not confirmed",
        ],
        latency::report,
    ),
    reader(
        Kind::Lsattr,
        ["lsattr", "lsattr -El fcs0", "AIX 7.3 commands reference, `lsattr`"],
        attributes::lsattr,
    ),
    reader(
        Kind::LsattrValue,
        [
            "lsattr",
            "lsattr -El hdisk0 -a queue_depth -F value",
            "AIX 7.3 commands reference, `lsattr`, flag `-F`",
        ],
        attributes::value,
    ),
    reader(
        Kind::LsattrRange,
        [
            "lsattr",
            "lsattr -Rl fcs0 -a num_cmd_elems",
            "AIX 7.3 commands reference, `lsattr`, flag `-R`; a range in the article on num_cmd_elems",
        ],
        attributes::range,
    ),
    reader(
        Kind::LsdevAttr,
        ["lsdev", "lsdev -dev fcs0 -attr", "Power Virtual I/O Server commands reference, `lsdev`"],
        attributes::lsdev,
    ),
    reader(
        Kind::LsmapScsi,
        ["lsmap", "lsmap -all", "Power Virtual I/O Server commands reference, `lsmap`"],
        lsmap::scsi,
    ),
    reader(
        Kind::LsmapNpiv,
        [
            "lsmap",
            "lsmap -all -npiv",
            "Power Virtual I/O Server commands reference, `lsmap`, flag `-npiv`",
        ],
        lsmap::npiv,
    ),
    reader(
        Kind::LsmapNet,
        [
            "lsmap",
            "lsmap -all -net",
            "Power Virtual I/O Server commands reference, `lsmap`, flag `-net`",
        ],
        lsmap::net,
    ),
    reader(
        Kind::Lsnports,
        ["lsnports", "lsnports", "Power Virtual I/O Server commands reference, `lsnports`"],
        ports::report,
    ),
    reader(
        Kind::Lsnportlogin,
        [
            "lsnportlogin",
            "lsnportlogin -m S924 --filter lpar_names=aix1",
            "HMC commands reference, `lsnportlogin`; no public output: not confirmed",
        ],
        logins::report,
    ),
    reader(
        Kind::IostatD,
        ["iostat", "iostat -D 30 4", "AIX 7.3 commands reference, `iostat`, flags `-D` and `-l`"],
        iostat::report,
    )
    .also(&["viostat"]),
    reader(
        Kind::Entstat,
        [
            "entstat",
            "entstat -all ent8",
            "Power Virtual I/O Server commands reference, `entstat`; AIX 7.3 commands reference, `entstat` and `netstat -v`",
        ],
        entstat::report,
    )
    .also(&["netstat"]),
    reader(
        Kind::Seastat,
        ["seastat", "seastat -d ent8", "Power Virtual I/O Server commands reference, `seastat`"],
        seastat::report,
    ),
    reader(
        Kind::Lparstat,
        [
            "lparstat",
            "lparstat 30 4",
            "AIX 7.3 commands reference, `lparstat`, flags `-i` and `-H`",
        ],
        lparstat::report,
    ),
    reader(
        Kind::Lssp,
        ["lssp", "lssp -clustername prod", "Power Virtual I/O Server commands reference, `lssp`"],
        storage::lssp,
    ),
    reader(
        Kind::LuList,
        [
            "lu",
            "lu -list",
            "Power Virtual I/O Server commands reference, `lu` and `lssp -bd`; some forms not confirmed",
        ],
        storage::lu_list,
    ),
    reader(
        Kind::PvList,
        [
            "pv",
            "pv -list",
            "Power Virtual I/O Server commands reference, `pv` and `lspv`; some forms not confirmed",
        ],
        storage::pv_list,
    )
    .also(&["lspv"]),
    reader(
        Kind::FailureGroupList,
        [
            "failgrp",
            "failgrp -list",
            "Power Virtual I/O Server commands reference, `failgrp`; no public output: not confirmed",
        ],
        storage::groups,
    ),
    reader(
        Kind::TierList,
        [
            "tier",
            "tier -list",
            "Power Virtual I/O Server commands reference, `tier`; no public output: not confirmed",
        ],
        storage::tiers,
    ),
    reader(
        Kind::AlertList,
        [
            "alert",
            "alert -list",
            "Power Virtual I/O Server commands reference, `alert`; no public output: not confirmed",
        ],
        storage::alerts,
    ),
    reader(
        Kind::VfcStats,
        [
            "cat",
            "cat /proc/sys/adapter/vfc/vfchost0/stats",
            "IBM article on NPIV multi-queue: the first lines and those of the queues; the rest not confirmed",
        ],
        vfcstats::report,
    ),
    reader(
        Kind::Level,
        [
            "oslevel",
            "ioslevel",
            "Power Virtual I/O Server commands reference, `ioslevel`; AIX 7.3 commands reference, `oslevel`",
        ],
        level::report,
    ),
    reader(
        Kind::DiskPaths,
        [
            "lspath",
            "lspath",
            "AIX 7.3 commands reference, `lspath` and `lsmpio`; SDDPCM user's guide, `pcmpath`; heading of the `lspath` of a VIOS not confirmed",
        ],
        diskpaths::report,
    )
    .also(&["lsmpio", "pcmpath", "datapath"]),
    reader(
        Kind::Errpt,
        ["errpt", "errpt -a", "AIX 7.3 commands reference, `errpt`; the RSCT message format"],
        errpt::report,
    ),
    reader(
        Kind::Lscfg,
        ["lscfg", "lscfg -vpl fcs0", "AIX 7.3 commands reference, `lscfg`"],
        lscfg::report,
    ),
    reader(
        Kind::Prtconf,
        ["prtconf", "prtconf", "AIX 7.3 commands reference, `prtconf`"],
        host::prtconf,
    ),
    reader(
        Kind::LsmapVnic,
        [
            "lsmap",
            "lsmap -all -vnic",
            "Power Virtual I/O Server commands reference, `lsmap`, flag `-vnic`",
        ],
        lsmap::vnic,
    ),
    reader(
        Kind::Vmstat,
        ["vmstat", "vmstat 5 4", "AIX 7.3 commands reference, `vmstat`"],
        memory::vmstat,
    ),
    reader(
        Kind::Svmon,
        ["svmon", "svmon -G", "AIX 7.3 commands reference, `svmon`, global report"],
        memory::svmon,
    ),
    reader(Kind::Lsps, ["lsps", "lsps -a", "AIX 7.3 commands reference, `lsps`"], memory::lsps),
    reader(
        Kind::Lsvg,
        ["lsvg", "lsvg -p rootvg", "AIX 7.3 commands reference, `lsvg`; Power Virtual I/O Server commands reference, `lsvg`"],
        volumes::lsvg,
    ),
    reader(Kind::Df, ["df", "df -g", "AIX 7.3 commands reference, `df`"], volumes::df),
    reader(
        Kind::ClusterStatus,
        [
            "cluster",
            "cluster -status -clustername prod",
            "Power Virtual I/O Server commands reference, `cluster`; outputs in public articles on shared storage pools",
        ],
        storage::status,
    ),
    reader(
        Kind::Multipath,
        ["multipath", "multipath -ll", "manual of multipath-tools, `multipath`; outputs in public documentation of distributions"],
        diskpaths::multipath,
    ),
    reader(
        Kind::Interfaces,
        [
            "netstat",
            "netstat -in",
            "AIX 7.3 commands reference, `netstat`, flag `-i`; manuals of iproute2 and net-tools",
        ],
        interfaces::report,
    )
    .also(&["ip"]),
    reader(
        Kind::Ethtool,
        [
            "ethtool",
            "ethtool -S eth0",
            "manual of ethtool; names of counters in the drivers of the Linux kernel (ibmveth, mlx5)",
        ],
        interfaces::ethtool,
    ),
    reader(
        Kind::Uptime,
        ["uptime", "uptime", "AIX 7.3 commands reference, `uptime`"],
        host::uptime,
    ),
    reader(
        Kind::HmcList,
        [
            "lssyscfg",
            "lssyscfg -r lpar -m S924",
            "HMC commands reference, `lssyscfg` and `lshwres`",
        ],
        hmc::report,
    )
    .also(&["lshwres"]),
    reader(
        Kind::HmcMessages,
        [
            "migrlpar",
            "migrlpar -o v -m S922 -t S924 -p aix1",
            "HMC commands reference, `migrlpar`; messages in public articles on partition mobility",
        ],
        hmc_messages::report,
    ),
    reader(
        Kind::Nmon,
        ["nmon", "nmon -f", "AIX 7.3 documentation of `nmon`; public files"],
        nmon::report,
    ),
    reader(
        Kind::Part,
        [
            "part",
            "part -i 30",
            "Power Virtual I/O Server commands reference, `part`; no file is public: not confirmed",
        ],
        part::report,
    ),
];

/// Programs that tell of the session, or change what later reports show.
const SESSION: [&str; 3] = ["ioscli", "date", "chdev"];

/// What says which system or file it is begins no report by its name alone: a host can be called so.
const NAMES: [&str; 3] = ["ioslevel", "nmon", "part"];

/// The programs by their length.
static PROGRAMS: LazyLock<[Vec<&'static str>; 16]> = LazyLock::new(|| {
    let mut by_length: [Vec<&str>; 16] = Default::default();
    let read = TABLE.iter().flat_map(Reader::programs).filter(|name| !NAMES.contains(name));
    for name in read.chain(SESSION) {
        if let Some(same) = by_length.get_mut(name.len()).filter(|same| !same.contains(&name)) {
            same.push(name);
        }
    }
    by_length
});

/// Which lengths the programs have that begin with a letter.
static LENGTHS: LazyLock<[u32; 26]> = LazyLock::new(|| {
    let mut lengths = [0; 26];
    for name in PROGRAMS.iter().flatten() {
        if let Some(first) = name.bytes().next().filter(u8::is_ascii_lowercase) {
            lengths[usize::from(first - b'a')] |= 1 << name.len();
        }
    }
    lengths
});

/// Whether a line can begin with a program, by its first letters alone: `false` is sure.
pub(super) fn may_begin_program(line: &str) -> bool {
    let letters = line.bytes().take_while(u8::is_ascii_lowercase).take(PROGRAMS.len()).count();
    let bytes = line.as_bytes();
    // Behind a path there is another word.
    let path = || {
        let ends = |byte: &&u8| **byte == b'/' || byte.is_ascii_whitespace();
        if let Some(end) = bytes.iter().take(16).find(ends) {
            return *end == b'/';
        }
        let slash = memchr::memchr(b'/', bytes).and_then(|slash| bytes.get(..slash));
        slash.is_some_and(|before| !before.iter().any(u8::is_ascii_whitespace))
    };
    // What goes on in another way is another word.
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',');
    let fits = bytes
        .first()
        .filter(|first| first.is_ascii_lowercase())
        .is_some_and(|first| LENGTHS[usize::from(first - b'a')] & 1 << letters != 0)
        && !bytes.get(letters).is_some_and(goes_on);
    fits || path()
}

/// Whether a word is a program whose reports are read, or named when they are refused.
pub(super) fn is_program(word: &str) -> bool {
    PROGRAMS.get(word.len()).is_some_and(|same| same.contains(&word))
}

impl Kind {
    /// Its reader; every kind has one.
    pub(super) fn reader(self) -> Option<&'static Reader> {
        TABLE.iter().find(|reader| reader.kind == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::At;
    use crate::prompt;
    use crate::recognise::{Expected, by_command};

    #[test]
    fn programs_are_those_of_the_table() {
        for reader in readers() {
            for name in reader.programs().filter(|name| !NAMES.contains(name)) {
                assert!(name.len() < PROGRAMS.len() && is_program(name), "{name}");
            }
        }
        assert!(["viostat", "lshwres", "chdev"].iter().all(|name| is_program(name)));
        for name in PROGRAMS.iter().flatten() {
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name}");
            let lines = [(*name).to_owned(), format!("{name} -x"), format!("/usr/bin/{name}:")];
            assert!(lines.iter().all(|line| may_begin_program(line)), "{name}");
        }
        assert!(
            !["Number of", "lsattribute", "physical", "", "lssp_name=a", "date,time"]
                .iter()
                .any(|line| may_begin_program(line))
        );
        assert!(["", "ls", "lsattributes", "ioslevel"].iter().all(|name| !is_program(name)));
    }

    #[test]
    fn every_kind_has_one_reader_and_its_command_is_known() {
        for reader in readers() {
            let same = readers().filter(|other| other.kind == reader.kind);
            assert_eq!(same.count(), 1, "{reader:?}");
            let command = prompt::parse(reader.typed, At { file: 0, line: 1 });
            let by_command = by_command(&command.parts[0]);
            // These two are files, and known by what stands in them.
            let file = matches!(reader.kind, Kind::Nmon | Kind::Part);
            assert_ne!(
                file,
                matches!(by_command, Expected::Report(kind) if kind == reader.kind),
                "{reader:?}"
            );
        }
    }
}
