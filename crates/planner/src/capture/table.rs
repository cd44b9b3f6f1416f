//! The readers: one entry for each kind of report, with the command that prints it and the function that reads it.
//!
//! To add a reader: a [`Kind`], an entry here, its variant in [`Report`], and how it is recognised
//! ([`recognise`](super::recognise)): by its heading, else by its command.

use super::page::Page;
use super::recognise::Kind;
use super::{
    Report, attributes, diskpaths, entstat, errpt, fcstat, hmc, host, iostat, latency, level,
    logins, lparstat, lscfg, lsmap, memory, nmon, part, ports, seastat, storage, vfcstats,
};

/// One reader.
pub(super) struct Reader {
    kind: Kind,
    /// The command whose report it is, in one word.
    pub(super) command: &'static str,
    pub(super) read: for<'t> fn(&mut Page<'t>) -> Option<Report>,
}

const fn reader(
    kind: Kind,
    command: &'static str,
    read: for<'t> fn(&mut Page<'t>) -> Option<Report>,
) -> Reader {
    Reader { kind, command, read }
}

const TABLE: &[Reader] = &[
    reader(Kind::Fcstat, "fcstat", fcstat::report),
    reader(Kind::FcstatClient, "fcstat", fcstat::client_report),
    reader(Kind::FcLatency, "fcstat", latency::report),
    reader(Kind::Lsattr, "lsattr", attributes::lsattr),
    reader(Kind::LsattrValue, "lsattr", attributes::value),
    reader(Kind::LsattrRange, "lsattr", attributes::range),
    reader(Kind::LsdevAttr, "lsdev", attributes::lsdev),
    reader(Kind::LsmapScsi, "lsmap", lsmap::scsi),
    reader(Kind::LsmapNpiv, "lsmap", lsmap::npiv),
    reader(Kind::LsmapNet, "lsmap", lsmap::net),
    reader(Kind::Lsnports, "lsnports", ports::report),
    reader(Kind::Lsnportlogin, "lsnportlogin", logins::report),
    reader(Kind::IostatD, "iostat", iostat::report),
    reader(Kind::Entstat, "entstat", entstat::report),
    reader(Kind::Seastat, "seastat", seastat::report),
    reader(Kind::Lparstat, "lparstat", lparstat::report),
    reader(Kind::Lssp, "lssp", storage::lssp),
    reader(Kind::LuList, "lu", storage::lu_list),
    reader(Kind::PvList, "pv", storage::pv_list),
    reader(Kind::VfcStats, "cat", vfcstats::report),
    reader(Kind::Level, "oslevel", level::report),
    reader(Kind::DiskPaths, "lspath", diskpaths::report),
    reader(Kind::Errpt, "errpt", errpt::report),
    reader(Kind::Lscfg, "lscfg", lscfg::report),
    reader(Kind::Prtconf, "prtconf", host::prtconf),
    reader(Kind::LsmapVnic, "lsmap", lsmap::vnic),
    reader(Kind::Vmstat, "vmstat", memory::vmstat),
    reader(Kind::Svmon, "svmon", memory::svmon),
    reader(Kind::Lsps, "lsps", memory::lsps),
    reader(Kind::Uptime, "uptime", host::uptime),
    reader(Kind::HmcList, "lssyscfg", hmc::report),
    reader(Kind::Nmon, "nmon", nmon::report),
    reader(Kind::Part, "part", part::report),
];

impl Kind {
    /// Its reader; every kind has one.
    pub(super) fn reader(self) -> Option<&'static Reader> {
        TABLE.iter().find(|reader| reader.kind == self)
    }
}
