//! The captures sorted by system and time, and the questions that rules ask of them.
//!
//! Which report belongs to which system is [`crate::model`]'s; here are the questions.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::elements::{self, Usage};
use super::logins::{self, OnFabric};
use super::mapping::{self, Npiv};
use super::multipath::{self, Ways};
use super::network::{self, Wire};
use super::paths::{self, Path};
use super::rule::Object;
use super::sea::{self, Bridge};
use super::{disk, disk_behind, sea_pair, vscsi};
use crate::capture::{
    Allowed, At, Attribute, Captures, DiskSample, Fcstat, Head, LoggedError, LsattrRange, Report,
    ScsiMap, System as Printed,
};
use crate::facts::{Facts, Level, Product, Verdict};
pub(super) use crate::model::Role;
use crate::model::{Model, System};
use crate::trace::{Figure, Term};

/// The captures as rules see them.
pub(super) struct View<'a> {
    captures: &'a Captures,
    pub(super) facts: &'a Facts,
    pub(super) model: Model,
    /// The reports of each host, in the order of time.
    reports: Vec<Vec<&'a Report>>,
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
    ways: OnceCell<Vec<Ways<'a>>>,
    attributes: OnceCell<Attributes<'a>>,
    wires: OnceCell<Vec<Wire<'a>>>,
    disk_errors: OnceCell<DiskErrors<'a>>,
}

/// What error logs have of each disk of each host.
pub(super) type DiskErrors<'a> = BTreeMap<(usize, &'a str), Vec<&'a LoggedError>>;

/// The lists of attributes of each device of each host, in the order of time.
type Attributes<'a> = BTreeMap<usize, BTreeMap<&'a str, Vec<List<'a>>>>;

/// One list of a device's attributes.
#[derive(Clone, Copy)]
struct List<'a> {
    head: &'a Head,
    attributes: &'a [Attribute],
    /// What the device works by, where others show what is set.
    in_force: bool,
    /// What a command set; it lists nothing else.
    change: bool,
}

impl<'a> List<'a> {
    fn named(&self, name: &str) -> Option<&'a Attribute> {
        self.attributes.iter().rfind(|attribute| attribute.name == name)
    }
}

/// The samples of each disk of a host.
pub(super) type DiskSamples<'a> = BTreeMap<&'a str, Vec<&'a DiskSample>>;

/// Places where nothing is.
static NO_DISKS: DiskSamples<'static> = BTreeMap::new();

impl<'a> View<'a> {
    pub(super) fn new(captures: &'a Captures, facts: &'a Facts) -> Self {
        let model = Model::of(captures);
        let mut reports: Vec<Vec<&Report>> = vec![Vec::new(); model.systems.len()];
        for (at, report) in captures.reports.iter().enumerate() {
            reports[model.owner(at)].push(report);
        }
        for own in &mut reports {
            crate::model::in_order(captures, own);
        }
        Self { captures, facts, model, reports, found: Found::default() }
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

    /// The path through a virtual adapter.
    pub(super) fn path(&self, vios: usize, device: &str) -> Option<&Path<'a>> {
        self.paths().iter().find(|path| path.vios == vios && path.device == device)
    }

    pub(super) fn on_fabric(&self) -> &[OnFabric<'a>] {
        self.found.on_fabric.get_or_init(|| logins::on_fabric(self))
    }

    pub(super) fn vhosts(&self) -> &[(usize, &'a ScsiMap)] {
        self.found.vhosts.get_or_init(|| vscsi::vhosts(self))
    }

    /// The Ethernet adapters of every system.
    pub(super) fn wires(&self) -> &[Wire<'a>] {
        self.found.wires.get_or_init(|| network::wires(self))
    }

    /// The entries of error logs that are errors of disks.
    pub(super) fn disk_errors(&self) -> &DiskErrors<'a> {
        self.found.disk_errors.get_or_init(|| multipath::disk_errors(self))
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
        self.found.backing.get_or_init(|| disk_behind::backing_disks(self))
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

    /// The paths to the disks of a host.
    pub(super) fn ways(&self, host: usize) -> &Ways<'a> {
        let all = self
            .found
            .ways
            .get_or_init(|| self.hosts().map(|host| multipath::ways_of(self, host)).collect());
        &all[host]
    }

    /// Every `fcstat` of a port, in the order of time.
    pub(super) fn fcstats<'s>(&'s self, host: usize, device: &'s str) -> &'s [&'s Fcstat] {
        self.fc_ports().get(&(host, device)).map_or(&[], Vec::as_slice)
    }

    /// Every report with its host; those of a host in the order of time.
    pub(super) fn reports(&self) -> impl Iterator<Item = (usize, &'a Report)> + '_ {
        self.hosts().flat_map(|host| self.of(host).map(move |report| (host, report)))
    }

    /// The reports of one host, in the order of time.
    pub(super) fn of(&self, host: usize) -> impl Iterator<Item = &'a Report> + '_ {
        self.reports.get(host).into_iter().flatten().copied()
    }

    /// Every host.
    pub(super) fn hosts(&self) -> std::ops::Range<usize> {
        0..self.model.systems.len()
    }

    pub(super) fn system(&self, host: usize) -> Option<&System> {
        self.model.systems.get(host)
    }

    pub(super) fn role(&self, host: usize) -> Role {
        self.system(host).map_or(Role::Unknown, |system| system.role)
    }

    /// The host's name, where a capture tells it.
    pub(super) fn name(&self, host: usize) -> Option<&str> {
        self.system(host)?.name()
    }

    /// The same, or what its files are called by: enough to tell two of a pair.
    pub(super) fn called(&self, host: usize) -> Option<&str> {
        let system = self.system(host)?;
        system.name().or(system.filed.as_deref())
    }

    /// How a user reads it: `vios1`, `the VIOS of a.txt`.
    pub(super) fn spoken(&self, host: usize) -> &str {
        self.model.spoken(host)
    }

    /// Whether two hosts are known to be on one machine.
    pub(super) fn same_machine(&self, one: usize, two: usize) -> bool {
        let machine = |host| self.system(host).and_then(|system| system.machine.as_deref());
        machine(one).is_some() && machine(one) == machine(two)
    }

    /// The folders that a system's captures lie in.
    pub(super) fn folders(&self, host: usize) -> BTreeSet<&str> {
        let files = self.system(host).into_iter().flat_map(|system| &system.files);
        files.map(|file| file.rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder)).collect()
    }

    /// The hosts that a VIOS serves, as its mappings name them.
    pub(super) fn clients_of(&self, vios: usize) -> BTreeSet<usize> {
        let fibre = self.npiv().iter().filter(|map| map.vios == vios).filter_map(|map| map.client);
        let scsi = self.vhosts().iter().filter(|(owner, _)| *owner == vios);
        let scsi = scsi.filter_map(|(_, adapter)| self.model.named_at(adapter.at));
        fibre.chain(scsi).collect()
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

    /// The lists of a device's attributes, in the order of time.
    fn lists(&self, host: usize, device: &str) -> &[List<'a>] {
        let index = self.found.attributes.get_or_init(|| self.index_attributes());
        index.get(&host).and_then(|devices| devices.get(device)).map_or(&[], Vec::as_slice)
    }

    fn index_attributes(&self) -> Attributes<'a> {
        let mut index: Attributes<'a> = BTreeMap::new();
        for (host, report) in self.reports() {
            if let Some((device, attributes)) = attributes_of(report) {
                let in_force = report.lsattr().is_some_and(|report| report.in_force);
                let change = report.chdev().is_some();
                let list = List { head: report.head(), attributes, in_force, change };
                index.entry(host).or_default().entry(device).or_default().push(list);
            }
        }
        index
    }

    /// An attribute as it was read last.
    ///
    /// Where files without times show different values, nobody knows which of them holds. A value that was set for later
    /// is none.
    pub(super) fn attribute(&self, host: usize, device: &str, name: &str) -> Option<&'a Attribute> {
        let lists = self.lists(host, device);
        let beside = beside(lists);
        let mut last: Option<(&Head, &Attribute)> = None;
        for list in lists {
            let Some(attribute) =
                list.named(name).filter(|_| !self.is_for_later(host, list, &beside, name))
            else {
                continue;
            };
            if let Some((before, known)) = last
                && known.value != attribute.value
                && before.first.file != list.head.first.file
                && before.is_before(list.head).is_none()
            {
                return None;
            }
            last = Some((list.head, attribute));
        }
        last.map(|(_, attribute)| attribute)
    }

    /// Whether a list shows what a device works by (`lsattr -P`).
    pub(super) fn shows_in_force(&self, host: usize, device: &str) -> bool {
        self.lists(host, device).iter().any(|list| list.in_force)
    }

    /// What an attribute was set to for later, where nothing younger shows another value: the device does not work by it
    /// yet.
    pub(super) fn for_later(&self, host: usize, device: &str, name: &str) -> Option<&'a Attribute> {
        let beside = beside(self.lists(host, device));
        let set = || self.lists(host, device).iter().filter(|list| !list.in_force);
        let with = || set().filter(|list| list.named(name).is_some());
        let last = with().rfind(|list| self.is_for_later(host, list, &beside, name))?;
        let younger = |list: &&List<'_>| match last.head.first.file == list.head.first.file {
            true => last.head.first.line < list.head.first.line,
            false => last.head.is_before(list.head) == Some(true),
        };
        let other =
            with().filter(younger).any(|list| !self.is_for_later(host, list, &beside, name));
        last.named(name).filter(|_| !other)
    }

    /// Whether a list shows a value that was set for later: a command says so, or what is in force is shown beside it.
    /// What speaks beside the list is given.
    fn is_for_later(&self, host: usize, list: &List<'_>, beside: &[&List<'_>], name: &str) -> bool {
        let Some(attribute) = list.named(name).filter(|_| !list.in_force) else { return false };
        let mut in_force =
            beside.iter().filter(|other| other.in_force).filter_map(|other| other.named(name));
        if in_force.next_back().is_some_and(|other| other.value != attribute.value) {
            return true;
        }
        if attribute.pending {
            return !(list.change && self.has_restarted_since(host, list.head));
        }
        // The change stands in another file, and the list is not known to be older.
        let by = |change: &&List<'_>| {
            let set = change.named(name).filter(|set| set.pending && set.value == attribute.value);
            change.change
                && set.is_some()
                && change.head.first.file != list.head.first.file
                && list.head.is_before(change.head) != Some(true)
                && !self.has_restarted_since(host, change.head)
        };
        beside.iter().any(by)
    }

    /// Whether the system is known to have been started after what this says, by `uptime` or the error log.
    fn has_restarted_since(&self, host: usize, what: &Head) -> bool {
        let Some(then) = &what.taken else { return false };
        let since = |report: &Report| match report {
            Report::Host(host) => {
                let (up, now) = (host.about.up_seconds?, host.head.taken.as_ref()?);
                (now.zone == then.zone).then(|| now.seconds.checked_sub(up.value))?
            }
            Report::Errpt(log) => {
                let down = |entry: &&LoggedError| {
                    entry.description.to_ascii_uppercase().contains("SYSTEM SHUTDOWN BY USER")
                };
                log.entries
                    .iter()
                    .filter(down)
                    .filter_map(|e| Some(e.logged.as_ref()?.seconds))
                    .max()
            }
            _ => None,
        };
        self.of(host).filter_map(since).any(|started| started > then.seconds)
    }

    /// An attribute that is a number, and the line it stood on.
    pub(super) fn number(&self, host: usize, device: &str, name: &str) -> Option<(f64, At)> {
        let attribute = self.attribute(host, device, name)?;
        Some((as_f64(attribute.number()?), attribute.at))
    }

    /// The level of a system, as it was read last.
    pub(super) fn level(&self, host: usize) -> Option<&'a crate::capture::Level> {
        self.of(host).filter_map(Report::level).last()
    }

    /// Whether the system itself printed the values that an attribute may have.
    pub(super) fn range_captured(&self, host: usize, device: &str, name: &str) -> bool {
        let same = |range: &LsattrRange| {
            let on = range.head.device.as_ref().is_some_and(|read| read.value == device);
            on && range.attribute.as_deref() == Some(name)
        };
        self.of(host).filter_map(Report::lsattr_range).any(same)
    }

    /// Whether a system's level is known to be too old for a feature.
    pub(super) fn too_old_for(&self, host: usize, feature: &str) -> bool {
        let Some(level) = self.level(host) else { return false };
        let product = match level.system {
            Printed::Vios => Product::Vios,
            Printed::Aix => Product::Aix,
        };
        let needed = self.facts.requirement(feature, product);
        let level = Level::read(product, &level.level.value).ok();
        needed.zip(level).is_some_and(|(needed, level)| needed.judge(&level) == Verdict::NotMet)
    }

    /// The devices of a host whose attributes were read and whose name starts so.
    pub(super) fn devices(&self, host: usize, prefix: &str) -> BTreeSet<&'a str> {
        let index = self.found.attributes.get_or_init(|| self.index_attributes());
        let devices = index.get(&host).into_iter().flat_map(BTreeMap::keys).copied();
        devices.filter(|device| is_numbered(device, prefix)).collect()
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

    /// What the file of a report is called.
    pub(super) fn file(&self, head: &Head) -> &'a str {
        self.captures.file_name(head.first)
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
                super::measure::in_order(self, samples);
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

/// The lists that tell more of others: what is in force, and what was changed.
fn beside<'l, 'a>(lists: &'l [List<'a>]) -> Vec<&'l List<'a>> {
    lists.iter().filter(|list| list.in_force || list.change).collect()
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

/// The device and its attributes, of the reports that have them.
pub(super) fn attributes_of(report: &Report) -> Option<(&str, &[Attribute])> {
    let (head, list) = match report {
        Report::Lsattr(report) => (&report.head, &report.attributes),
        Report::LsdevAttr(report) => (&report.head, &report.attributes),
        Report::Chdev(report) => (&report.head, &report.attributes),
        _ => return None,
    };
    Some((head.device.as_ref()?.value.as_str(), list))
}

/// A name without what tells the two of a pair apart, its last letter or number: `vios1` and `vios2`, `viosA` and `viosB`.
pub(super) fn stem(name: &str) -> String {
    let host = name.split('.').next().unwrap_or_default();
    let without = host.trim_end_matches(|c: char| c.is_ascii_digit());
    let mut stem = without.to_ascii_lowercase();
    if without.len() == host.len() {
        stem.pop();
    }
    stem
}
