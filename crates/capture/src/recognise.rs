//! Which report a line begins.
//!
//! Most reports have a heading of their own and are recognised by it, whether or not a command stands before them. The
//! others (`lsattr`, forms made with `-fmt`) are recognised by the command, and without one only where their lines
//! cannot be anything else.

use super::announced::{self, Announced};
use super::label::{self, Label};
use super::prompt::{self, Command, Part, Prompt};
use super::text::{self, Line, Lines};
use super::{
    At, diskpaths, errpt, hmc, hmc_messages, host, hosts, interfaces, lscfg, lsmap, part, storage,
    volumes,
};

/// The readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Fcstat,
    FcstatClient,
    FcLatency,
    Lsattr,
    LsattrValue,
    LsattrRange,
    LsdevAttr,
    LsmapScsi,
    LsmapNpiv,
    LsmapNet,
    Lsnports,
    Lsnportlogin,
    IostatD,
    Entstat,
    Seastat,
    Lparstat,
    Lssp,
    LuList,
    PvList,
    FailureGroupList,
    TierList,
    AlertList,
    VfcStats,
    Level,
    DiskPaths,
    Errpt,
    Lscfg,
    Prtconf,
    LsmapVnic,
    Vmstat,
    Svmon,
    Lsps,
    Lsvg,
    Df,
    ClusterStatus,
    Multipath,
    Interfaces,
    Ethtool,
    Uptime,
    HmcList,
    HmcMessages,
    Nmon,
    Part,
}

/// The report whose heading this line is; `ahead` begins with it.
pub(super) fn heading(line: Line<'_>, ahead: Lines<'_>) -> Option<Kind> {
    let text = line.trimmed();
    let starts = |start: &str| text::after_start(text, start).is_some();
    match text.as_bytes().first()?.to_ascii_uppercase() {
        b'F' if starts("FIBRE CHANNEL STATISTICS REPORT") => Some(Kind::Fcstat),
        b'E' if starts("ETHERNET STATISTICS (") => Some(Kind::Entstat),
        b'A' if text.starts_with("AAA,") => Some(Kind::Nmon),
        b'<' if (starts("<?xml") || starts("<vios_advisor")) && part::is_report(ahead) => {
            Some(Kind::Part)
        }
        b'A' if starts("Advanced Statistics for SEA") => Some(Kind::Seastat),
        b'S' if words(text, &["SVSA", "Physloc"]) => Some(Kind::LsmapScsi),
        b'S' if words(text, &["SVEA", "Physloc"]) => Some(Kind::LsmapNet),
        b'S' if starts("System configuration:") => system_configuration(ahead),
        b'N' if starts("Node Name") && text.contains(':') => Some(Kind::Lparstat),
        b'N' if starts("Number of CMD queues") => Some(Kind::VfcStats),
        b'N' if words(text, &["Name", "Physloc", "ClntID"]) => Some(map_of_clients(ahead)),
        b'N' | b'S' if diskpaths::columns(text).is_some() => Some(Kind::DiskPaths),
        b'N' if words(text, &["Name", "Mtu", "Network"]) => Some(Kind::Interfaces),
        b'N' if text == "NIC statistics:" => Some(Kind::Ethtool),
        b'S' if text.starts_with("Settings for ") && text.ends_with(':') => Some(Kind::Ethtool),
        b'I' if words(text, &["Iface", "MTU"]) => Some(Kind::Interfaces),
        b'C' if starts("Commands received") && text.contains('=') => Some(Kind::VfcStats),
        b'N' if words(text, &["name", "physloc", "fabric"]) => Some(Kind::Lsnports),
        b'L' if is_login(text) => Some(Kind::Lsnportlogin),
        b'H' if text.starts_with("HSCL") && hmc_messages::is_message(text) => {
            Some(Kind::HmcMessages)
        }
        b'H' if words(text, &["hostname", "dev", "wwpn"]) => Some(Kind::FcstatClient),
        b'D' if words(text, &["dev", "wwpn", "inreqs"]) => Some(Kind::FcstatClient),
        b'A' if words(text, &["attribute", "value", "description"]) => Some(Kind::LsdevAttr),
        b'%' if words(text, &["%user", "%sys", "%wait"]) => Some(Kind::Lparstat),
        b'D' if starts("Detailed information on Hypervisor Calls") => Some(Kind::Lparstat),
        b'D' if diskpaths::is_statistics(text, ahead) => Some(Kind::DiskPaths),
        b'D' if (starts("DEV#:") || starts("DEVICE#:")) && text.contains("DEVICE NAME:") => {
            Some(Kind::DiskPaths)
        }
        b'I' | b'L' if errpt::is_heading(text) && errpt::is_entry(text, ahead) => Some(Kind::Errpt),
        b'K' if words(text, &["kthr", "memory"]) => Some(Kind::Vmstat),
        b'R' if words(text, &["r", "b", "avm", "fre"]) => Some(Kind::Vmstat),
        b'U' if starts("Unit:") && svmon(ahead) => Some(Kind::Svmon),
        b'S' if words(text, &["size", "inuse", "free", "pin"]) => Some(Kind::Svmon),
        b'S' if starts("System Model: ") => Some(Kind::Prtconf),
        b'D' if starts("Disks:") && text.contains("xfers") => Some(Kind::IostatD),
        b'P' if words(text, &["page", "space", "physical"]) => Some(Kind::Lsps),
        b'V' if starts("VOLUME GROUP:") => Some(Kind::Lsvg),
        b'F' if words(text, &storage::GROUPS) => Some(Kind::FailureGroupList),
        b'F' if volumes::is_df(text) => Some(Kind::Df),
        b'C' if words(text, &["Cluster", "Name", "State"]) => Some(Kind::ClusterStatus),
        b'C' if starts("Cluster Name:") && storage::is_block(text) => Some(Kind::ClusterStatus),
        b'T' if words(text, &["total", "paging", "space"]) => Some(Kind::Lsps),
        b'0'..=b'9' if host::is_uptime(text) => Some(Kind::Uptime),
        b'0'..=b'9' if interfaces::is_ip_row(text) => Some(Kind::Interfaces),
        b'P' | b'L' | b'T' => pool(text, ahead),
        _ => by_column(text),
    }
}

fn by_column(text: &str) -> Option<Kind> {
    if is_disk_heading(text) {
        return Some(Kind::IostatD);
    }
    None
}

/// `hdisk0          xfer:  %tm_act      bps      tps      bread      bwrtn`
pub(super) fn is_disk_heading(text: &str) -> bool {
    if text.as_bytes().last() != Some(&b'n') {
        return false;
    }
    let mut columns = text.split_ascii_whitespace();
    columns.next().is_some() && columns.next() == Some("xfer:") && columns.next() == Some("%tm_act")
}

/// Whether the text begins with these words, in whatever case.
pub(super) fn words(text: &str, wanted: &[&str]) -> bool {
    // Most lines begin with another word.
    let other = |first: &&str| text::after_start(text, first).is_none();
    if wanted.first().is_some_and(other) && !text.starts_with(|c: char| c.is_ascii_whitespace()) {
        return false;
    }
    let mut found = text.split_ascii_whitespace();
    wanted.iter().all(|word| found.next().is_some_and(|found| found.eq_ignore_ascii_case(word)))
}

/// `System configuration:` heads the reports of several commands.
fn system_configuration(mut ahead: Lines<'_>) -> Option<Kind> {
    let line = ahead.next()?;
    if line.text.contains(" type=") {
        return Some(Kind::Lparstat);
    }
    let next = ahead.peek_text()?.trimmed();
    if words(next, &["kthr"]) || words(next, &["r", "b"]) {
        return Some(Kind::Vmstat);
    }
    (is_disk_heading(next) || (next.starts_with("Disks:") && next.contains("xfers")))
        .then_some(Kind::IostatD)
}

/// `lsmap -npiv` and `lsmap -vnic` have one heading; the row below its rule tells them apart.
fn map_of_clients(ahead: Lines<'_>) -> Kind {
    let row = ahead.skip(1).take(16).find(|line| line.text.contains(char::is_alphabetic));
    match row {
        Some(row) if row.trimmed().starts_with("vnicserver") => Kind::LsmapVnic,
        _ => Kind::LsmapNpiv,
    }
}

fn svmon(ahead: Lines<'_>) -> bool {
    ahead.take(4).any(|line| words(line.trimmed(), &["size", "inuse", "free"]))
}

/// The reports of pools and of volume groups share their headings; what follows the pool's name tells them apart.
fn pool(text: &str, ahead: Lines<'_>) -> Option<Kind> {
    if words(text, &["Pool", "Size(mb)"]) {
        return Some(Kind::Lssp);
    }
    let upper = text.get(..12).unwrap_or(text).to_ascii_uppercase();
    if upper.starts_with("LU NAME") || upper.starts_with("LU_NAME") {
        return Some(Kind::LuList);
    }
    if upper.starts_with("LV NAME ") || (upper.starts_with("PV_NAME ") && text.contains("PV STATE"))
    {
        return Some(Kind::Lsvg);
    }
    if is_lun_heading(&upper, text) {
        return Some(Kind::PvList);
    }
    if !upper.starts_with("POOL_") && !upper.starts_with("TIER_NAME") {
        return storage::is_alerts(text).then_some(Kind::AlertList);
    }
    if words(text, &storage::TIERS) {
        return Some(Kind::TierList);
    }
    for line in ahead.filter(|line| !line.is_blank()).take(4) {
        let text = line.trimmed();
        if ["POOL_SIZE", "FREE_SPACE", "TOTAL_LU_SIZE"].iter().any(|key| text.starts_with(key)) {
            return Some(Kind::Lssp);
        }
        if text.starts_with("LU_NAME") {
            return Some(Kind::LuList);
        }
        if text.starts_with("PV_NAME") {
            return Some(Kind::PvList);
        }
        if words(text, &storage::GROUPS) {
            return Some(Kind::FailureGroupList);
        }
    }
    None
}

/// `PV_NAME  SIZE(MB)  STATE  UDID`, and the first line of a LUN's block.
fn is_lun_heading(start: &str, text: &str) -> bool {
    let columns = start.starts_with("PV_NAME ") || start.starts_with("PV NAME ");
    (columns && text.contains("SIZE(MB)")) || start.starts_with("PV_NAME:")
}

/// `lpar_name=aix1,…,wwpn=c050760a11f2003c,wwpn_status=1,…`; an older HMC may print the fields in another order.
fn is_login(text: &str) -> bool {
    text.starts_with("lpar_") && text.contains(",wwpn=")
}

/// A list without heading whose rows cannot be anything else; `ahead` begins with its first line.
pub(super) fn without_heading(line: Line<'_>, ahead: Lines<'_>) -> Option<Kind> {
    const ROWS: [Kind; 6] =
        [Kind::LsattrRange, Kind::Level, Kind::DiskPaths, Kind::Errpt, Kind::Lscfg, Kind::HmcList];
    let text = line.trimmed();
    if let Some(kind) = ROWS.into_iter().find(|kind| kind.is_row(line)) {
        return Some(kind);
    }
    if let Some(kind) = formatted(text) {
        return Some(kind);
    }
    let rows = || ahead.take(2).filter(|line| is_attribute(line.text)).count();
    (is_attribute(line.text) && rows() == 2).then_some(Kind::Lsattr)
}

impl Kind {
    /// Whether a line has the form of a row of this list, which has no heading.
    #[inline]
    pub(super) fn is_row(self, line: Line<'_>) -> bool {
        let text = line.trimmed();
        match self {
            Kind::LsattrRange => is_span(text),
            Kind::Level => is_level(text),
            Kind::DiskPaths => diskpaths::is_row(text),
            Kind::Errpt => errpt::is_row(text),
            Kind::Lscfg => lscfg::is_device_row(text),
            Kind::HmcList => hmc::is_row(text),
            Kind::Lsattr => is_attribute(line.text),
            _ => false,
        }
    }
}

/// `20...2048 (+1)`
pub(super) fn is_span(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && text[digits..].starts_with("...") && text.ends_with(')')
}

/// `7200-05-03-2148`, as `oslevel -s` prints.
fn is_level(text: &str) -> bool {
    text.len() == 15
        && text.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 | 10 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Whether a line can be a row of `lsattr -El`: a name, something, and `True` or `False` at its end.
pub(super) fn is_attribute(text: &str) -> bool {
    if !matches!(text.as_bytes().last(), Some(b'e' | b'+')) {
        return false;
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let name = text.bytes().position(|byte| !is_name(byte)).unwrap_or(text.len());
    let ends = text[name..].chars().next().is_none_or(char::is_whitespace);
    name > 0
        && ends
        && [" True", " False", " True+", "\tTrue", "\tFalse"].iter().any(|end| text.ends_with(end))
}

/// Rows made with `-fmt`, by their first field, for the delimiters in use.
fn formatted(text: &str) -> Option<Kind> {
    let end = memchr::memchr3(b':', b',', b';', text.as_bytes())?;
    let (name, delimiter) = (&text[..end], text[end..].chars().next()?);
    // Most lines have no location behind the first of these signs.
    if text.as_bytes().get(end + 1) != Some(&b'U') {
        return None;
    }
    match lsmap::field_count(text, delimiter) {
        12 if text::is_device(name, "vfchost") => Some(Kind::LsmapNpiv),
        3.. if text::is_device(name, "vhost") => Some(Kind::LsmapScsi),
        6 if text::is_device(name, "ent") => Some(Kind::LsmapNet),
        7.. if text::is_device(name, "fcs") => Some(Kind::Lsnports),
        _ => None,
    }
}

/// What a line is by itself, whatever stands before it: all but [`Class::Other`] ends a report.
#[derive(Debug, Clone, Copy)]
pub(super) enum Class<'t> {
    /// A prompt, with or without a command.
    Prompt(Prompt<'t>),
    /// A command without a prompt.
    Announced(Announced<'t>),
    /// What `date` printed.
    Date,
    /// It says which host speaks next.
    Hosts,
    /// The heading of a report.
    Heading(Kind),
    /// `ssh` says that a command run from afar has ended.
    Ended,
    /// Somebody has written of what the next lines are.
    Label(Label<'t>),
    /// A row of points, as `snap` prints above and below each command.
    Rule,
    /// A line of some report, or of none.
    Other,
}

impl<'t> Class<'t> {
    /// Looks at a line; `ahead` begins with it.
    pub(super) fn of(line: Line<'t>, ahead: Lines<'_>) -> Self {
        if let Some(prompt) = prompt::prompt(line.text) {
            // `# vios1 - lspath` is a comment of a script, and no prompt.
            let host =
                || prompt.partition.is_none().then(|| announced::announced(line.text)).flatten();
            if line.text.starts_with('#')
                && let Some(announced) = host().filter(|announced| announced.host.is_some())
            {
                return Class::Announced(announced);
            }
            if line.text.starts_with('#')
                && let Some(label) = label::heading(line, ahead)
            {
                return Class::Label(label);
            }
            // `# vios1 Fri Nov 20 06:00:00 CET 2026`, above what a script asked then.
            if line.text.starts_with('#') && prompt::date(line).is_some() {
                return Class::Date;
            }
            return Class::Prompt(prompt);
        }
        if let Some(typed) = announced::announced(line.text) {
            return Class::Announced(typed);
        }
        match prompt::of_snap(line.text) {
            Some("") => return Class::Rule,
            Some(typed) => return Class::Announced(Announced { host: None, typed }),
            None => {}
        }
        if prompt::date(line).is_some() {
            return Class::Date;
        }
        if hosts::heading(line, ahead).is_some() {
            return Class::Hosts;
        }
        if let Some(kind) = heading(line, ahead) {
            return Class::Heading(kind);
        }
        let named = ["Shared connection to ", "Connection to "];
        match line.text.starts_with(['S', 'C'])
            && named.iter().any(|start| line.text.starts_with(start))
            && prompt::connection_ended(line.text).is_some()
        {
            true => Class::Ended,
            false => label::heading(line, ahead).map_or(Class::Other, Class::Label),
        }
    }

    /// The report that begins there.
    pub(super) fn heading(self) -> Option<Kind> {
        match self {
            Class::Heading(kind) => Some(kind),
            _ => None,
        }
    }
}

/// What is known of lines that were looked at: a reader looks at those that it does not know, and the session at the same
/// again once the report has ended.
#[derive(Debug, Default)]
pub(super) struct Known<'t> {
    /// The line that was looked at last: of a table several have one number.
    last: Option<(&'t str, Class<'t>)>,
    /// Lines that are [`Class::Other`], in their order; with `true`, no row of a list without a heading either.
    pub(super) others: Vec<(At, bool)>,
}

impl<'t> Known<'t> {
    /// What the line is; `ahead` begins with it.
    #[inline]
    pub(super) fn class(&mut self, line: Line<'t>, ahead: Lines<'_>) -> Class<'t> {
        if let Some((text, class)) = self.last
            && std::ptr::eq(text, line.text)
        {
            return class;
        }
        self.class_anew(line, ahead)
    }

    fn class_anew(&mut self, line: Line<'t>, ahead: Lines<'_>) -> Class<'t> {
        let class = match self.other(line.at) {
            Some(_) => Class::Other,
            None => Class::of(line, ahead),
        };
        self.last = Some((line.text, class));
        class
    }

    /// What list without a heading the line may be a row of.
    pub(super) fn without_heading(&self, line: Line<'_>, ahead: Lines<'_>) -> Option<Kind> {
        match self.other(line.at) {
            Some(true) => None,
            _ => without_heading(line, ahead),
        }
    }

    fn other(&self, at: At) -> Option<bool> {
        let index = self.others.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        self.others.get(index).map(|(_, no_row)| *no_row)
    }
}

/// Whether a report ends before this line: another begins, a command was typed, or another host speaks.
pub(super) fn is_boundary(line: Line<'_>, ahead: Lines<'_>) -> bool {
    !matches!(Class::of(line, ahead), Class::Other)
}

/// What the command's report is.
pub(super) enum Expected {
    /// This one.
    Report(Kind),
    /// One that is not read, and what to run instead.
    Refused(&'static str),
    /// No report that is known here.
    Other,
}

/// Whether a flag has this letter, alone or among others.
fn has_letter(part: &Part<'_>, letter: char) -> bool {
    let flags = |arg: &&&str| arg.starts_with('-') && !arg.starts_with("--");
    part.args.iter().filter(flags).any(|arg| arg.contains(letter))
}

/// Whether the command prints the values that a device works by, where `lsattr -E` prints those of the database.
pub(super) fn in_force(part: &Part<'_>) -> bool {
    part.program == "lsattr" && has_letter(part, 'P')
}

/// The report that a command prints.
pub(super) fn by_command(part: &Part<'_>) -> Expected {
    let flag = |letter: char| has_letter(part, letter);
    let kind = match part.program {
        "fcstat" if part.has("-client") => Kind::FcstatClient,
        "fcstat" if part.has("-l") => Kind::FcLatency,
        "fcstat" if part.has("-t") => {
            return Expected::Refused("fcstat -t is not read; run fcstat without -t");
        }
        "fcstat" => Kind::Fcstat,
        "lsattr" if part.after("-F") == Some("value") && part.has("-a") => Kind::LsattrValue,
        "lsattr" if flag('F') || flag('O') => {
            return Expected::Refused("lsattr with -F or -O is not read; run lsattr -El DEVICE");
        }
        "lsattr" if flag('D') => {
            return Expected::Refused(
                "lsattr -D shows defaults, not what is set; run lsattr -El DEVICE",
            );
        }
        "lsattr" if flag('R') => Kind::LsattrRange,
        "lsattr" => Kind::Lsattr,
        "lsdev" if part.has("-range") => Kind::LsattrRange,
        "lsdev" if part.has("-attr") => Kind::LsdevAttr,
        "lsdev" if part.has("-vpd") => Kind::Lscfg,
        "lscfg" => Kind::Lscfg,
        "lspath" if part.has("-A") || flag('E') => return Expected::Other,
        "lspath" => Kind::DiskPaths,
        "lsmpio" if flag('a') || flag('q') || flag('z') => {
            return Expected::Refused(
                "this form of lsmpio is not read; run lsmpio, with -S or without, or lspath",
            );
        }
        "lsmpio" => Kind::DiskPaths,
        "pcmpath" | "datapath" if part.has("device") => Kind::DiskPaths,
        "pcmpath" | "datapath" => {
            return Expected::Refused("this form is not read; run pcmpath query device");
        }
        "errpt" => Kind::Errpt,
        "prtconf" if part.args.is_empty() => Kind::Prtconf,
        "vmstat" if !["-v", "-s", "-P", "-p", "-f", "-i"].iter().any(|form| part.has(form)) => {
            Kind::Vmstat
        }
        "svmon" if part.args.iter().any(|arg| arg.starts_with("-G")) => Kind::Svmon,
        "lsps" => Kind::Lsps,
        "lsvg" if part.plain(&[]).is_some() && !part.has("-o") => Kind::Lsvg,
        // Other units have other programs of that name, too: their heading tells.
        "df" if part.has("-g") => Kind::Df,
        "cluster" if part.has("-status") => Kind::ClusterStatus,
        "multipath" if part.has("-ll") || part.has("-l") => Kind::Multipath,
        "uptime" => Kind::Uptime,
        "lssyscfg" | "lshwres" => Kind::HmcList,
        "migrlpar" => Kind::HmcMessages,
        "lsmap" if part.has("-field") && !part.has("-fmt") => {
            return Expected::Refused(
                "lsmap with -field is read with -fmt only; run lsmap -all, with -npiv or -net",
            );
        }
        "lsmap" if part.has("-npiv") => Kind::LsmapNpiv,
        "lsmap" if part.has("-net") => Kind::LsmapNet,
        "lsmap" if part.has("-vnic") && !part.has("-fmt") && !part.has("-field") => Kind::LsmapVnic,
        "lsmap" if part.has("-vnic") || part.has("-clustername") => {
            return Expected::Refused(
                "this form of lsmap is not read; run lsmap -all, with -npiv or -net",
            );
        }
        "lsmap" => Kind::LsmapScsi,
        "lsnports" => Kind::Lsnports,
        "lsnportlogin" if part.has("-F") => {
            return Expected::Refused("lsnportlogin with -F is not read; run it without -F");
        }
        "lsnportlogin" => Kind::Lsnportlogin,
        "iostat" if flag('D') => Kind::IostatD,
        "viostat" if part.has("-extdisk") => Kind::IostatD,
        "iostat" | "viostat" => {
            return Expected::Refused("only iostat -D is read (viostat -extdisk on a VIOS)");
        }
        "entstat" => Kind::Entstat,
        "netstat" if part.has("-v") => Kind::Entstat,
        "ethtool" if part.has("-S") || !part.args.iter().any(|arg| arg.starts_with('-')) => {
            Kind::Ethtool
        }
        "netstat" if flag('i') || part.has("-state") => Kind::Interfaces,
        "ip" if ["link", "addr", "address", "a", "l"].iter().any(|word| part.has(word)) => {
            Kind::Interfaces
        }
        "seastat" => Kind::Seastat,
        "lparstat" => Kind::Lparstat,
        "lssp" if part.has("-bd") => Kind::LuList,
        "lssp" => Kind::Lssp,
        "lu" if part.has("-list") => Kind::LuList,
        "pv" | "lspv" if part.has("-capable") => {
            return Expected::Refused(
                "disks that could be added are not read; run pv -list for those of the pool",
            );
        }
        "pv" if part.has("-list") && !part.has("-fmt") && !part.has("-field") => Kind::PvList,
        "pv" if part.has("-list") => {
            return Expected::Refused("pv -list is read without -fmt and -field only");
        }
        "failgrp" | "tier" | "alert" if part.has("-list") && part.has("-fmt") => {
            return Expected::Refused("failgrp, tier and alert -list are read without -fmt only");
        }
        "failgrp" if part.has("-list") => Kind::FailureGroupList,
        "tier" if part.has("-list") => Kind::TierList,
        "alert" if part.has("-list") => Kind::AlertList,
        "lspv" if part.has("-clustername") && !part.has("-fmt") && !part.has("-field") => {
            Kind::PvList
        }
        "cat" if part.args.iter().any(|arg| arg.starts_with("/proc/sys/adapter/vfc/")) => {
            Kind::VfcStats
        }
        "ioslevel" => Kind::Level,
        "oslevel" if part.has("-s") => Kind::Level,
        _ => return Expected::Other,
    };
    Expected::Report(kind)
}

/// Why what a command printed is not read, although its report is known here.
pub(super) fn not_understood(command: &Command<'_>) -> String {
    let typed = command.typed.value;
    let filtered = |part: &&Part<'_>| part.program == "lsmap" && part.filter.is_some();
    let rows = command.parts.iter().find(filtered).map(|part| match part.has("-npiv") {
        true => "vfchost",
        false if part.has("-net") => "^ent",
        false => "vhost",
    });
    match rows {
        Some(rows) => format!(
            "printed by `{typed}`: which adapters these lines are of was filtered away; keep those rows, too: grep -E '{rows}|…'"
        ),
        None => format!("printed by `{typed}` and not understood"),
    }
}

/// The columns that a command asks for with `-F`, or the attributes whose values alone it asks for.
pub(super) fn format(part: &Part<'_>) -> Vec<String> {
    if part.program == "lsattr" {
        let asked = part.args.windows(2).filter(|pair| pair[0] == "-a").map(|pair| pair[1]);
        return asked.map(str::to_owned).collect();
    }
    let flag = match part.program {
        "lspath" | "lssyscfg" | "lshwres" => "-F",
        "lsmap" => "-field",
        _ => return Vec::new(),
    };
    let Some(index) = part.args.iter().position(|arg| arg.starts_with(flag)) else {
        return Vec::new();
    };
    let rest = part.args.get(index..).unwrap_or(&[]).iter().enumerate();
    // What begins with no letter is no column: somebody wrote down when it was asked.
    let words = rest.take_while(|(at, arg)| {
        *at == 0 || arg.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '"' | '\''))
    });
    words
        .flat_map(|(_, arg)| arg.trim_start_matches(flag).split([':', ',', ';', '|', ' ']))
        .map(|word| word.trim_matches(['"', '\'', '\\']).to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

/// The device that a command asks about, when it is written out.
pub(super) fn device<'t>(part: &Part<'t>) -> Option<&'t str> {
    let name = match part.program {
        // The last word: `-l` has one number or two.
        "fcstat" if part.has("-l") => part.args.last().copied(),
        "fcstat" => part.plain(&["-n", "-p", "-t"]),
        "lsattr" => {
            let index =
                part.args.iter().position(|arg| arg.starts_with('-') && arg.ends_with('l'))?;
            part.args.get(index + 1).copied()
        }
        "lsdev" => part.after("-dev"),
        "lscfg" | "lspath" | "lsmpio" => {
            let flag = |arg: &&str| arg.starts_with('-') && arg.ends_with('l');
            let index = part.args.iter().position(flag)?;
            part.args.get(index + 1).copied()
        }
        "entstat" | "ethtool" => part.plain(&[]),
        "seastat" => part.after("-d"),
        "cat" => part
            .args
            .iter()
            .find_map(|arg| arg.strip_prefix("/proc/sys/adapter/vfc/")?.split('/').next()),
        _ => None,
    }?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

/// The attribute, the pool or the system that a command asks for alone.
pub(super) fn attribute<'t>(part: &Part<'t>) -> Option<&'t str> {
    let name = match part.program {
        "lsattr" => part.after("-a"),
        "lsdev" => part.after("-range").or_else(|| part.after("-attr")),
        "pv" | "lspv" => part.after("-sp"),
        "lssp" => part.after("-clustername"),
        "lsnportlogin" | "lssyscfg" | "lshwres" => part.after("-m"),
        _ => None,
    }?;
    (!name.starts_with('-') && !name.contains('$')).then_some(name)
}
