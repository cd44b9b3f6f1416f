//! The captures sorted by system and time, and the questions that rules ask of them.
//!
//! Not every report says which partition it came from. What says nothing is given to the system it must belong to,
//! where only one fits: by the other reports in its file, by what only a VIOS or only a client prints, by a name like
//! `vios1` in the file's own name. Where several fit it stays a system of its own, and is called by its role.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::elements::{self, Usage};
use super::logins::{self, OnFabric};
use super::mapping::{self, Npiv};
use super::paths::{self, Path};
use super::rule::Object;
use super::sea::{self, Bridge};
use super::{disk, sea_pair, vscsi};
use crate::capture::{
    Allowed, At, Attribute, Captures, DiskSample, Fcstat, LsattrRange, Report, ScsiMap, System,
};
use crate::facts::{Facts, Level, Product, Verdict};
use crate::trace::{Figure, Term};

/// What kind of system it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// A Virtual I/O Server.
    Vios,
    /// Anything else: a client.
    Client,
    /// Nothing speaks for either.
    Unknown,
}

/// One system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Host {
    name: Option<String>,
    role: Role,
}

/// The captures as rules see them.
pub(super) struct View<'a> {
    pub(super) facts: &'a Facts,
    hosts: Vec<Host>,
    /// The reports in the order of their time, each with its host.
    reports: Vec<(usize, &'a Report)>,
    found: Found<'a>,
}

/// What several rules ask for, found once.
#[derive(Default)]
struct Found<'a> {
    npiv: OnceCell<Vec<Npiv<'a>>>,
    fc_ports: OnceCell<BTreeMap<Device<'a>, Vec<&'a Fcstat>>>,
    usages: OnceCell<Vec<Usage<'a>>>,
    paths: OnceCell<Vec<Path<'a>>>,
    on_fabric: OnceCell<Vec<OnFabric<'a>>>,
    vhosts: OnceCell<Vec<(usize, &'a ScsiMap)>>,
    bridges: OnceCell<Vec<Bridge<'a>>>,
    pairs: OnceCell<Vec<(usize, usize)>>,
    backing: OnceCell<BTreeSet<Device<'a>>>,
    disks: OnceCell<Vec<DiskSamples<'a>>>,
}

/// The samples of each disk of a host.
pub(super) type DiskSamples<'a> = BTreeMap<&'a str, Vec<&'a DiskSample>>;

/// Places where nothing is.
static NO_DISKS: DiskSamples<'static> = BTreeMap::new();

impl<'a> View<'a> {
    pub(super) fn new(captures: &'a Captures, facts: &'a Facts) -> Self {
        let names = names(captures);
        let mut hosts = named_hosts(captures, &names);
        let owners = owners(captures, &names, &mut hosts);
        // Beside a VIOS, what shows no sign of being one is a client of it.
        if hosts.iter().any(|host| host.role == Role::Vios) {
            let unknown = |host: &&mut Host| host.role == Role::Unknown && host.name.is_some();
            hosts.iter_mut().filter(unknown).for_each(|host| host.role = Role::Client);
        }
        let mut reports: Vec<(usize, &Report)> =
            owners.into_iter().zip(&captures.reports).collect();
        sort_by_time(&mut reports);
        Self { facts, hosts, reports, found: Found::default() }
    }

    /// Every mapping of a virtual Fibre Channel adapter.
    pub(super) fn npiv(&self) -> &[Npiv<'a>] {
        self.found.npiv.get_or_init(|| mapping::npiv(self))
    }

    /// What adapters use of their resources.
    pub(super) fn usages(&self) -> &[Usage<'a>] {
        self.found.usages.get_or_init(|| elements::usages(self))
    }

    pub(super) fn usage(&self, port: &Object<'_>) -> Option<&Usage<'a>> {
        self.usages().get(port.index)
    }

    pub(super) fn paths(&self) -> &[Path<'a>] {
        self.found.paths.get_or_init(|| paths::paths(self))
    }

    pub(super) fn on_fabric(&self) -> &[OnFabric<'a>] {
        self.found.on_fabric.get_or_init(|| logins::on_fabric(self))
    }

    pub(super) fn vhosts(&self) -> &[(usize, &'a ScsiMap)] {
        self.found.vhosts.get_or_init(|| vscsi::vhosts(self))
    }

    pub(super) fn bridges(&self) -> &[Bridge<'a>] {
        self.found.bridges.get_or_init(|| sea::bridges(self))
    }

    pub(super) fn bridge(&self, sea: &Object<'_>) -> Option<&Bridge<'a>> {
        self.bridges().get(sea.index)
    }

    /// The bridges that are a pair, by their places.
    pub(super) fn pairs(&self) -> &[(usize, usize)] {
        self.found.pairs.get_or_init(|| sea_pair::pairs(self, self.bridges()))
    }

    /// The disks that stand behind virtual SCSI targets.
    pub(super) fn backing(&self) -> &BTreeSet<Device<'a>> {
        self.found.backing.get_or_init(|| disk::backing_disks(self))
    }

    pub(super) fn backs(&self, host: usize, disk: &str) -> bool {
        self.backing().contains(&(host, disk))
    }

    /// The samples of each disk in the host's last `iostat`.
    pub(super) fn disk_samples(&self, host: usize) -> &DiskSamples<'a> {
        let all = self
            .found
            .disks
            .get_or_init(|| self.hosts().map(|host| disk::latest_run(self, host)).collect());
        all.get(host).unwrap_or(&NO_DISKS)
    }

    /// Every `fcstat` of a port, in the order of time.
    pub(super) fn fcstats<'s>(&'s self, host: usize, device: &'s str) -> &'s [&'s Fcstat] {
        self.fc_ports().get(&(host, device)).map_or(&[], Vec::as_slice)
    }

    /// Every report with its host, in the order of time.
    pub(super) fn reports(&self) -> impl Iterator<Item = (usize, &'a Report)> + '_ {
        self.reports.iter().copied()
    }

    /// The reports of one host.
    pub(super) fn of(&self, host: usize) -> impl Iterator<Item = &'a Report> + '_ {
        self.reports().filter(move |(owner, _)| *owner == host).map(|(_, report)| report)
    }

    /// Every host.
    pub(super) fn hosts(&self) -> std::ops::Range<usize> {
        0..self.hosts.len()
    }

    pub(super) fn role(&self, host: usize) -> Role {
        self.hosts.get(host).map_or(Role::Unknown, |host| host.role)
    }

    /// The host's name, where a capture tells it.
    pub(super) fn name(&self, host: usize) -> Option<&str> {
        self.hosts.get(host)?.name.as_deref()
    }

    /// How a user reads it: `vios1`, `the VIOS`, `the client`.
    pub(super) fn spoken(&self, host: usize) -> String {
        match (self.name(host), self.role(host)) {
            (Some(name), _) => name.to_owned(),
            (None, Role::Vios) => "the VIOS".to_owned(),
            (None, Role::Client) => "the client".to_owned(),
            (None, Role::Unknown) => "this system".to_owned(),
        }
    }

    /// `fcs0 on vios1`.
    pub(super) fn object(&self, host: usize, device: &str) -> String {
        format!("{device} on {}", self.spoken(host))
    }

    /// The command that prints a device's attributes on this host.
    pub(super) fn show_attributes(&self, host: usize, device: &str) -> String {
        match self.role(host) {
            Role::Vios => format!("lsdev -dev {device} -attr on {}", self.spoken(host)),
            _ => format!("lsattr -El {device} on {}", self.spoken(host)),
        }
    }

    /// Every attribute read for a device, in the order of time.
    fn attributes(&self, host: usize, device: &str) -> impl Iterator<Item = &'a Attribute> + '_ {
        let device = device.to_owned();
        self.of(host)
            .filter_map(attributes_of)
            .filter(move |(of, _)| *of == device)
            .flat_map(|(_, list)| list)
    }

    /// An attribute as it was read last.
    pub(super) fn attribute(&self, host: usize, device: &str, name: &str) -> Option<&'a Attribute> {
        self.attributes(host, device).filter(|attribute| attribute.name == name).last()
    }

    /// An attribute that is a number, and the line it stood on.
    pub(super) fn number(&self, host: usize, device: &str, name: &str) -> Option<(f64, At)> {
        let attribute = self.attribute(host, device, name)?;
        Some((as_f64(attribute.number()?), attribute.at))
    }

    /// Whether a system's level is known to be too old for a feature.
    pub(super) fn too_old_for(&self, host: usize, feature: &str) -> bool {
        let Some(level) = self.of(host).filter_map(Report::level).last() else { return false };
        let product = match level.system {
            System::Vios => Product::Vios,
            System::Aix => Product::Aix,
        };
        let needed = self.facts.requirement(feature, product);
        let level = Level::read(product, &level.level.value).ok();
        needed.zip(level).is_some_and(|(needed, level)| needed.judge(&level) == Verdict::NotMet)
    }

    /// The devices of a host whose attributes were read and whose name starts so.
    pub(super) fn devices(&self, host: usize, prefix: &str) -> BTreeSet<&'a str> {
        let all = self.of(host).filter_map(attributes_of).map(|(device, _)| device);
        all.filter(|device| is_numbered(device, prefix)).collect()
    }

    /// The values that an attribute may have: from a capture, else from the data files by the kinds of device given.
    pub(super) fn allowed(&self, host: usize, device: &str, kinds: &[&str], name: &str) -> Limits {
        let same = |range: &&LsattrRange| {
            let on = range.head.device.as_ref().is_some_and(|read| read.value == device);
            on && range.attribute.as_deref() == Some(name)
        };
        let captured = self.of(host).filter_map(Report::lsattr_range).filter(same).last();
        if let Some(limits) = captured.and_then(Limits::captured) {
            return limits;
        }
        let fact = kinds.iter().find_map(|kind| self.facts.attribute(kind, name));
        fact.map_or(Limits::default(), |fact| Limits {
            min: fact.min.and_then(whole),
            max: fact.max.and_then(whole),
            steps: Vec::new(),
            at: None,
            source: Some(fact.source.clone()),
        })
    }

    /// Every `fcstat` of every port, in the order of time.
    pub(super) fn fc_ports(&self) -> &BTreeMap<Device<'a>, Vec<&'a Fcstat>> {
        self.found.fc_ports.get_or_init(|| {
            let mut ports: BTreeMap<Device<'a>, Vec<&Fcstat>> = BTreeMap::new();
            for (host, report) in self.reports() {
                let Some(fcstat) = report.fcstat() else { continue };
                let Some(device) = &fcstat.head.device else { continue };
                ports.entry((host, &device.value)).or_default().push(fcstat);
            }
            for samples in ports.values_mut() {
                super::measure::in_order(samples);
            }
            ports
        })
    }

    /// Whether a port is a client's virtual adapter; `None` when nothing tells.
    pub(super) fn is_virtual(
        &self,
        host: usize,
        device: &str,
        samples: &[&Fcstat],
    ) -> Option<bool> {
        if let Some(told) = samples.iter().rev().find_map(|fcstat| fcstat.is_virtual) {
            return Some(told.value);
        }
        if self.attribute(host, device, "num_sp_cmd_elem").is_some() {
            return Some(true);
        }
        match self.role(host) {
            Role::Vios => Some(false),
            _ => None,
        }
    }
}

/// The values that an attribute may have.
#[derive(Debug, Clone, Default)]
pub(super) struct Limits {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    /// Single values, where it takes only these; sorted.
    pub(super) steps: Vec<u64>,
    /// The line, where a capture tells.
    pub(super) at: Option<At>,
    /// The fact, where the data files tell.
    source: Option<crate::trace::Source>,
}

impl Limits {
    fn captured(range: &LsattrRange) -> Option<Self> {
        let mut limits = Self::default();
        for allowed in &range.allowed {
            let (low, high, at) = match allowed {
                Allowed::Span { low, high, at, .. } => (*low, *high, *at),
                Allowed::Value { value, at } => {
                    let value = parse_number(value)?;
                    limits.steps.push(value);
                    (value, value, *at)
                }
            };
            limits.min = Some(limits.min.map_or(low, |min| min.min(low)));
            limits.max = Some(limits.max.map_or(high, |max| max.max(high)));
            limits.at = Some(at);
        }
        limits.steps.sort_unstable();
        limits.max.is_some().then_some(limits)
    }

    /// The greatest value as a term of a formula.
    pub(super) fn max_term(&self, name: &str, unit: &str) -> Option<Term> {
        let max = as_f64(self.max?);
        match (&self.at, &self.source) {
            (Some(at), _) => Some(Term::read(name, max, unit, *at)),
            (None, Some(source)) => {
                Some(Term::new(name, max, unit, crate::trace::Origin::Fact(source.clone())))
            }
            (None, None) => None,
        }
    }

    /// The least allowed value that is not below what is wanted; `None` when the range ends below it.
    pub(super) fn fit(&self, wanted: f64) -> Option<u64> {
        if let Some(step) = self.steps.iter().find(|step| as_f64(**step) >= wanted) {
            return Some(*step);
        }
        let wanted = rounded(wanted)?.max(self.min.unwrap_or(0));
        (self.steps.is_empty() && self.max.is_none_or(|max| wanted <= max)).then_some(wanted)
    }

    /// Like [`fit`](Self::fit), but the greatest value where the range ends below.
    pub(super) fn fit_or_max(&self, wanted: f64) -> Option<u64> {
        self.fit(wanted).or(self.max)
    }
}

/// A number and the line it stood on.
pub(super) type Value = (f64, At);

/// A device of a system.
pub(super) type Device<'a> = (usize, &'a str);

/// A figure that shows one captured value.
pub(super) fn shown(name: &str, value: f64, unit: &str, at: At) -> Figure {
    Figure::plain(Term::read(name, value, unit, at))
}

/// A whole number as a number of a formula; exact up to 2^53, far above every counter that matters here.
#[allow(clippy::cast_precision_loss)]
pub(super) fn as_f64(value: u64) -> f64 {
    value as f64
}

/// A count as a number of a formula.
pub(super) fn count(value: usize) -> f64 {
    as_f64(u64::try_from(value).unwrap_or(u64::MAX))
}

/// The whole number at or above `value`, where it is one that an attribute can have.
pub(super) fn rounded(value: f64) -> Option<u64> {
    let up = value.ceil();
    (0.0..=9e15).contains(&up).then(|| format!("{up:.0}").parse().ok()).flatten()
}

fn whole(value: i64) -> Option<u64> {
    u64::try_from(value).ok()
}

/// A number as AIX prints attributes: decimal, or hexadecimal with `0x`.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Whether it is the prefix followed by digits: `fcs12`, not `fcsnet0`.
pub(super) fn is_numbered(device: &str, prefix: &str) -> bool {
    let digits = device.strip_prefix(prefix);
    digits.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The device and its attributes, of the two reports that have them.
pub(super) fn attributes_of(report: &Report) -> Option<(&str, &[Attribute])> {
    let (head, list) = match report {
        Report::Lsattr(report) => (&report.head, &report.attributes),
        Report::LsdevAttr(report) => (&report.head, &report.attributes),
        _ => return None,
    };
    Some((head.device.as_ref()?.value.as_str(), list))
}

fn sort_by_time(reports: &mut [(usize, &Report)]) {
    let zone = reports
        .first()
        .and_then(|(_, report)| report.head().taken.as_ref())
        .map(|taken| &taken.zone);
    let comparable = |(_, report): &(usize, &Report)| {
        report.head().taken.as_ref().map(|taken| &taken.zone) == zone
    };
    if zone.is_some() && reports.iter().all(comparable) {
        reports.sort_by_key(|(_, report)| report.head().taken.as_ref().map(|taken| taken.seconds));
    }
}

/// The name of each report's system, where the report or its file tells it.
fn names(captures: &Captures) -> Vec<Option<String>> {
    let mut in_file: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for report in &captures.reports {
        if let Some(partition) = &report.head().partition {
            in_file.entry(report.head().first.file).or_default().insert(&partition.value);
        }
    }
    let mut latest: Option<(u32, &str)> = None;
    let mut names = Vec::with_capacity(captures.reports.len());
    for report in &captures.reports {
        let file = report.head().first.file;
        let own = report.head().partition.as_ref().map(|read| read.value.as_str());
        if let Some(own) = own {
            latest = Some((file, own));
        }
        let only = || {
            in_file
                .get(&file)
                .filter(|all| all.len() == 1)
                .and_then(|all| all.iter().next().copied())
        };
        let before = || latest.filter(|(at, _)| *at == file).map(|(_, name)| name);
        let from_file = || system_in(captures.file_name(report.head().first));
        names.push(own.or_else(only).or_else(before).map(str::to_owned).or_else(from_file));
    }
    names
}

/// A system's name in the name of a file: a word like `vios1`, `viosa`, `lpar12`, `client2`, `aix3`.
fn system_in(file: &str) -> Option<String> {
    let words = file
        .rsplit(['/', '\\'])
        .take(2)
        .flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric()));
    let numbered = |word: &&str| {
        let word = word.to_ascii_lowercase();
        let after = ["vios", "vio", "lpar", "client", "aix"]
            .iter()
            .find_map(|prefix| word.strip_prefix(prefix));
        after.is_some_and(|rest| {
            let digits = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
            digits
                || (word.starts_with("vios")
                    && rest.len() == 1
                    && rest.bytes().all(|byte| byte.is_ascii_alphabetic()))
        })
    };
    words.filter(numbered).map(str::to_ascii_lowercase).next()
}

/// What kind of system prints such a report.
fn hint(report: &Report) -> Option<Role> {
    match report {
        Report::LsmapScsi(_) | Report::LsmapNpiv(_) | Report::LsmapNet(_) | Report::Lsnports(_) => {
            Some(Role::Vios)
        }
        Report::FcstatClient(_) | Report::VfcStats(_) | Report::Seastat(_) => Some(Role::Vios),
        Report::Lssp(_) | Report::LuList(_) | Report::PvList(_) | Report::LsdevAttr(_) => {
            Some(Role::Vios)
        }
        Report::Entstat(entstat) => entstat.sea.is_some().then_some(Role::Vios),
        Report::Fcstat(fcstat) => fcstat.is_virtual.filter(|read| read.value).map(|_| Role::Client),
        Report::Lsattr(_) => attributes_of(report).and_then(|(_, list)| hint_of_attributes(list)),
        Report::LsattrRange(range) => {
            let command = range.head.command.as_ref()?;
            command.value.contains("lsdev").then_some(Role::Vios)
        }
        Report::Level(level) => Some(match level.system {
            System::Vios => Role::Vios,
            System::Aix => Role::Client,
        }),
        Report::LsmapVnic(_) => Some(Role::Vios),
        Report::IostatD(_) | Report::Lparstat(_) | Report::Lsnportlogin(_) => None,
        Report::DiskPaths(_) | Report::Errpt(_) | Report::Lscfg(_) | Report::Host(_) => None,
        Report::Vmstat(_) | Report::Svmon(_) | Report::HmcList(_) => None,
    }
}

fn hint_of_attributes(list: &[Attribute]) -> Option<Role> {
    let has =
        |names: &[&str]| list.iter().any(|attribute| names.contains(&attribute.name.as_str()));
    if has(&["pvid_adapter", "virt_adapters", "limit_intr", "num_per_range", "bufs_per_cmd"]) {
        return Some(Role::Vios);
    }
    has(&["num_sp_cmd_elem"]).then_some(Role::Client)
}

/// The word that a name of a system or a file gives away.
fn hint_of_name(name: &str) -> Option<Role> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let has = |word: &str| name.contains(word);
    if has("vio") {
        return Some(Role::Vios);
    }
    ["client", "lpar", "aix"].into_iter().any(has).then_some(Role::Client)
}

/// What the name of a report's file gives away.
fn hint_of_file(captures: &Captures, report: &Report) -> Option<Role> {
    hint_of_name(captures.file_name(report.head().first))
}

/// The systems that have names.
fn named_hosts(captures: &Captures, names: &[Option<String>]) -> Vec<Host> {
    let mut roles: BTreeMap<&str, BTreeSet<Role>> = BTreeMap::new();
    for (name, report) in names.iter().zip(&captures.reports) {
        if let Some(name) = name {
            let hints = roles.entry(name).or_default();
            hints.extend(hint(report).or_else(|| hint_of_file(captures, report)));
        }
    }
    let told = |name: &str, hints: &BTreeSet<Role>| match hints.first() {
        Some(role) => *role,
        None => hint_of_name(name).unwrap_or(Role::Unknown),
    };
    roles
        .into_iter()
        .map(|(name, hints)| Host { name: Some(name.to_owned()), role: told(name, &hints) })
        .collect()
}

/// The host of each report; adds those that have no name.
fn owners(captures: &Captures, names: &[Option<String>], hosts: &mut Vec<Host>) -> Vec<usize> {
    let mut roles: BTreeMap<u32, BTreeSet<Role>> = BTreeMap::new();
    for (name, report) in names.iter().zip(&captures.reports) {
        if name.is_none() {
            let hints = roles.entry(report.head().first.file).or_default();
            hints.extend(hint(report).or_else(|| hint_of_file(captures, report)));
        }
    }
    let role_of = |hints: &BTreeSet<Role>| hints.first().copied().unwrap_or(Role::Unknown);
    let told: BTreeSet<Role> =
        roles.values().map(role_of).filter(|role| *role != Role::Unknown).collect();
    let named = hosts.len();
    let mut nameless: BTreeMap<Role, usize> = BTreeMap::new();
    let mut of_file: BTreeMap<u32, usize> = BTreeMap::new();
    for (file, hints) in &roles {
        let mut role = role_of(hints);
        let fits =
            |host: &Host| role == Role::Unknown || host.role == role || host.role == Role::Unknown;
        let fitting: Vec<usize> =
            (0..named).filter(|at| hosts.get(*at).is_some_and(fits)).collect();
        if let [only] = fitting[..] {
            of_file.insert(*file, only);
            continue;
        }
        // Files without any sign belong to the nameless system that there is, when there is one only.
        if role == Role::Unknown && told.len() == 1 {
            role = told.first().copied().unwrap_or(role);
        }
        let host = *nameless.entry(role).or_insert_with(|| {
            hosts.push(Host { name: None, role });
            hosts.len() - 1
        });
        of_file.insert(*file, host);
    }
    let find = |name: &Option<String>, report: &Report, hosts: &[Host]| match name {
        Some(_) => hosts.iter().position(|host| host.name == *name).unwrap_or(0),
        None => of_file.get(&report.head().first.file).copied().unwrap_or(0),
    };
    names.iter().zip(&captures.reports).map(|(name, report)| find(name, report, hosts)).collect()
}
