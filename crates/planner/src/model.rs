//! Who is who: the systems behind captures, and which report belongs to which.
//!
//! ```text
//! reports ─→ sightings (names, marks, keys) ─→ join by what identifies ─→ systems
//! ```
//!
//! A report says something of the system that printed it, and often of others too: `lsmap` of a VIOS names its clients,
//! `fcstat -client` their WWPNs. Each of these is a *sighting*. Sightings are joined only by what identifies: a WWPN, a
//! MAC address, a physical location code, machine serial number with partition id, the name of a host or a partition.
//! Two files without identity stand apart. What a file is called names its system to a reader where nothing in the file
//! does, and joins files of one folder that are called by one host (`capture::called`); it is no name that
//! a command is made for.
//!
//! A system has one of each *mark*: one host name, one WWPN behind `fcs0`, one serial number. Sightings whose marks
//! contradict each other are two systems, whatever else they share. Then the same name in one file, and after that in
//! one folder, still joins what does not contradict.
//!
//! The order of files does not matter.

mod identity;
mod sighting;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::capture::{At, Captures, Report, Taken};

/// The systems of some captures.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Every system, by name and then by what else is known of it.
    pub systems: Vec<System>,
    /// The system of each report.
    owners: Vec<usize>,
    /// The system that a line of another system's report names: a client of `lsmap`, a row of `fcstat -client`.
    named: BTreeMap<At, usize>,
    /// How each system is called.
    labels: Vec<String>,
}

/// What can tell two systems of one name apart, best first.
const TELLING: [fn(&System) -> Option<String>; 4] = [
    |system| system.machine.clone(),
    |system| system.partition_id.map(|id| format!("partition {id}")),
    |system| system.wwpns.values().next().cloned(),
    |system| system.files.first().cloned(),
];

/// One partition, be it a VIOS or a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct System {
    /// Its host name, without domain.
    pub host: Option<String>,
    /// Its name on the HMC.
    pub partition: Option<String>,
    /// A name that another system gives it.
    pub alias: Option<String>,
    /// What its files are called by, which names it to a reader and to nobody else.
    pub filed: Option<String>,
    /// The files that are its by nothing but what they are called.
    #[serde(skip)]
    pub(crate) by_name: BTreeSet<u32>,
    /// Type, model and serial number of the machine: `9009-42A*78A1B2C`, as an HMC takes it for `-m`; the serial number
    /// alone where no more is known.
    pub machine: Option<String>,
    /// Its number on that machine.
    pub partition_id: Option<u32>,
    /// The WWPNs of its ports, by device.
    pub wwpns: BTreeMap<String, String>,
    /// The files with reports of its own, by name.
    pub files: BTreeSet<String>,
    /// What kind of system it is.
    pub role: Role,
}

/// What kind of system it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A Virtual I/O Server.
    Vios,
    /// Anything else: a client.
    Client,
    /// A host with a running Trunkline server.
    Trunkline,
    /// Nothing speaks for either.
    #[default]
    Unknown,
}

impl System {
    /// What it is called, if anything tells.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        [&self.host, &self.partition, &self.alias].into_iter().find_map(Option::as_deref)
    }

    fn label(&self) -> String {
        let role = match self.role {
            Role::Vios => "the VIOS",
            Role::Client => "the client",
            Role::Trunkline => "the Trunkline server",
            Role::Unknown => "the system",
        };
        match (self.name(), self.files.first(), self.partition_id) {
            (Some(name), ..) => name.to_owned(),
            (None, ..) if self.filed.is_some() => self.filed.clone().unwrap_or_default(),
            (None, Some(file), _) => format!("{role} of {file}"),
            (None, None, Some(id)) => format!("partition {id}"),
            (None, None, None) => match self.wwpns.values().next() {
                Some(wwpn) => format!("{role} with {wwpn}"),
                None => role.to_owned(),
            },
        }
    }
}

impl Model {
    /// The systems of these captures.
    #[must_use]
    pub fn of(captures: &Captures) -> Self {
        let mut model = identity::join(captures);
        model.label();
        model
    }

    /// The system of a report, by its place among the captures.
    #[must_use]
    pub fn owner(&self, report: usize) -> usize {
        self.owners.get(report).copied().unwrap_or(0)
    }

    /// The system that a line of another's report names.
    #[must_use]
    pub fn named_at(&self, at: At) -> Option<usize> {
        self.named.get(&at).copied()
    }

    /// How a user reads a system: its name, with what tells it apart where another has the same name; without a name
    /// its role and the file.
    #[must_use]
    pub fn spoken(&self, system: usize) -> &str {
        self.labels.get(system).map_or("this system", String::as_str)
    }

    /// A label for each system, no two of them the same.
    fn label(&mut self) {
        let plain: Vec<String> = self.systems.iter().map(System::label).collect();
        let mut same: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (of, label) in plain.iter().enumerate() {
            same.entry(label).or_default().push(of);
        }
        let label = |of: usize| {
            let (plain, system) = (&plain[of], &self.systems[of]);
            let others = &same[plain.as_str()];
            if others.len() < 2 {
                return plain.clone();
            }
            let telling = |pick: fn(&System) -> Option<String>| {
                let own = pick(system)?;
                let same = |other: &&usize| pick(&self.systems[**other]).as_ref() == Some(&own);
                (others.iter().filter(same).count() == 1).then_some(own)
            };
            let apart = TELLING.into_iter().find_map(telling);
            let place = others.iter().position(|other| *other == of).unwrap_or(0) + 1;
            format!("{plain} ({})", apart.unwrap_or_else(|| format!("no. {place}")))
        };
        self.labels = (0..self.systems.len()).map(label).collect();
    }

    /// The reports of a system, in the order of time; where times do not tell, of the files' names.
    #[must_use]
    pub fn reports<'a>(&self, captures: &'a Captures, system: usize) -> Vec<&'a Report> {
        let mut own: Vec<&Report> = captures
            .reports
            .iter()
            .enumerate()
            .filter(|(at, _)| self.owner(*at) == system)
            .map(|(_, report)| report)
            .collect();
        in_order(captures, &mut own);
        own
    }
}

/// Puts reports in the order of time; where times do not tell, in that of the files' names and of their lines.
///
/// What stands before the first `date` of its file, as a `hostname` does, is of the time that follows.
pub(crate) fn in_order(captures: &Captures, reports: &mut Vec<&Report>) {
    let place = |report: &&Report| {
        let first = report.head().first;
        (earlier_first(captures.file_name(first)), first)
    };
    reports.sort_by_cached_key(place);
    let Some(usual) = usual_zone(reports.iter().copied()) else { return };
    let usual = Taken { seconds: 0, zone: usual };
    let own = |report: &Report| {
        let (zone, seconds) = report.head().taken.as_ref()?.clock();
        (zone == usual.clock().0).then_some(seconds)
    };
    let file = |at: usize| reports.get(at).map(|report| report.head().first.file);
    let mut times: Vec<Option<u64>> = reports.iter().map(|report| own(report)).collect();
    let inherit = |times: &mut Vec<Option<u64>>, at: usize, from: usize| {
        if times[at].is_none() && file(at) == file(from) {
            times[at] = times[from];
        }
    };
    for at in (1..times.len()).rev() {
        inherit(&mut times, at - 1, at);
    }
    for at in 1..times.len() {
        inherit(&mut times, at, at - 1);
    }
    let times: Option<Vec<u64>> = times.into_iter().collect();
    let Some(times) = times else { return };
    let mut timed: Vec<(u64, &Report)> = times.into_iter().zip(reports.iter().copied()).collect();
    timed.sort_by_key(|(seconds, _)| *seconds);
    *reports = timed.into_iter().map(|(_, report)| report).collect();
}

/// A file's name as names sort by the time that they tell of: what people call *before* stands before what they call *after*.
fn earlier_first(name: &str) -> Cow<'_, str> {
    const WORDS: [(&str, &str); 8] = [
        ("before", "0"),
        ("vorher", "0"),
        ("pre", "0"),
        ("old", "0"),
        ("after", "1"),
        ("nachher", "1"),
        ("post", "1"),
        ("new", "1"),
    ];
    let is_word = |word: &str| WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known));
    let split = || name.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let bare = |part: &str| part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len();
    if !split().any(|part| is_word(&part[..bare(part)]).is_some()) {
        return Cow::Borrowed(name);
    }
    split()
        .flat_map(|part| match is_word(&part[..bare(part)]) {
            Some((_, place)) => [*place, &part[bare(part)..]],
            None => [part, ""],
        })
        .collect::<String>()
        .into()
}

/// The clock that most of the reports were taken by.
pub(crate) fn usual_zone<'a>(reports: impl Iterator<Item = &'a Report>) -> Option<Option<String>> {
    let mut clocks: BTreeMap<&Option<String>, usize> = BTreeMap::new();
    for taken in reports.filter_map(|report| report.head().taken.as_ref()) {
        *clocks.entry(&taken.zone).or_default() += 1;
    }
    clocks.into_iter().max_by_key(|(_, count)| *count).map(|(zone, _)| zone.clone())
}
