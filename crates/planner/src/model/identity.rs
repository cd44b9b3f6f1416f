//! Joins sightings of the same system.
//!
//! Each way of joining is tried for all sightings at once: what shares a key by it, and would become one system by that,
//! is joined unless two of its sightings contradict each other. So the order of the files decides nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use smol_str::{SmolStr, format_smolstr};

use super::sighting::{Mark, Sighting, others, own};
use super::{Model, Role, System};
use crate::capture::{At, Captures, called};

/// Groups of sightings.
#[derive(Clone)]
struct Groups {
    parent: Vec<usize>,
}

impl Groups {
    fn new(count: usize) -> Self {
        Self { parent: (0..count).collect() }
    }

    fn find(&mut self, mut of: usize) -> usize {
        while let Some(parent) = self.parent.get(of).copied().filter(|parent| *parent != of) {
            // Halves the way for the next one.
            let above = self.parent.get(parent).copied().unwrap_or(parent);
            if let Some(slot) = self.parent.get_mut(of) {
                *slot = above;
            }
            of = above;
        }
        of
    }

    fn join(&mut self, one: usize, two: usize) {
        let (one, two) = (self.find(one), self.find(two));
        if let Some(slot) = self.parent.get_mut(one.max(two)) {
            *slot = one.min(two);
        }
    }
}

/// The systems of these captures.
pub(super) fn join(captures: &Captures) -> Model {
    let mut all: Vec<Sighting> =
        captures.reports.iter().enumerate().map(|(at, report)| own(at, report)).collect();
    all.extend(captures.reports.iter().flat_map(others));
    file_names(captures, &mut all);
    let names = names_of_files(&all);
    let mut groups = Groups::new(all.len());
    let in_file = |sighting: &Sighting| in_file(sighting, &names).into_iter().collect();
    step(&all, &mut groups, Mark::lasts, |_, sighting| in_file(sighting));
    sessions(captures, &all, &mut groups, |sighting| in_file(sighting));
    // A partition that exchanges an adapter stays the same: only what it is called can contradict its place.
    let places = placed(&all, &mut groups);
    let place = |at: usize| places.get(at).cloned().flatten().into_iter().collect();
    step(&all, &mut groups, Mark::is_of_system, |at, _| place(at));
    step(&all, &mut groups, Mark::is_any, |_, sighting| sighting.keys.clone());
    step(&all, &mut groups, Mark::is_any, |_, sighting| sighting.names.clone());
    step(&all, &mut groups, Mark::is_any, |_, sighting| {
        let file = usize::try_from(sighting.file).ok().and_then(|file| captures.files.get(file));
        let folder = folder(file.map_or("", |file| &file.name));
        sighting.names.iter().map(|name| format_smolstr!("{folder}/{name}")).collect()
    });
    step(&all, &mut groups, Mark::is_any, |_, sighting| {
        let file = usize::try_from(sighting.file).ok().and_then(|file| captures.files.get(file));
        let folder = folder(file.map_or("", |file| &file.name));
        let filed = sighting.filed.iter().map(|(name, _)| name);
        sighting.names.iter().chain(filed).map(|name| format_smolstr!("{folder}/{name}")).collect()
    });
    let places = placed(&all, &mut groups);
    let place = |at: usize| places.get(at).cloned().flatten().into_iter().collect();
    step(&all, &mut groups, Mark::is_of_system, |at, _| place(at));
    model(captures, &all, groups)
}

/// Machine and number of each sighting's system, which may have been told by different reports.
fn placed(all: &[Sighting], groups: &mut Groups) -> Vec<Option<SmolStr>> {
    let mut known: BTreeMap<usize, [Option<&str>; 2]> = BTreeMap::new();
    for (at, sighting) in all.iter().enumerate() {
        let of = known.entry(groups.find(at)).or_default();
        for (slot, mark) in of.iter_mut().zip([Mark::Serial, Mark::PartitionId]) {
            *slot = slot.or(sighting.marks.get(&mark));
        }
    }
    let key = |at| match known.get(&groups.find(at))? {
        [Some(serial), Some(id)] => Some(format_smolstr!("partition {id} of {serial}")),
        _ => None,
    };
    (0..all.len()).map(key).collect()
}

fn folder(name: &str) -> &str {
    name.rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder)
}

/// Takes what a file is called for the name of its system, where nothing in it names one.
fn file_names(captures: &Captures, all: &mut [Sighting]) {
    let named = names_of_files(all);
    let without = |file: &u32| named.get(file).is_none_or(BTreeSet::is_empty);
    let files: Vec<u32> = (0u32..).take(captures.files.len()).filter(without).collect();
    let called: BTreeMap<u32, (SmolStr, bool)> = files
        .into_iter()
        .filter_map(|file| {
            let info = captures.files.get(usize::try_from(file).ok()?)?;
            let called = called::of_file(&info.name);
            Some((file, (called.host?.into(), called.sure)))
        })
        .collect();
    for sighting in all.iter_mut().filter(|one| one.report.is_some() && one.managed.is_none()) {
        sighting.filed = called.get(&sighting.file).cloned();
    }
}

/// The names that stand in each file, of systems with reports of their own there.
fn names_of_files(all: &[Sighting]) -> BTreeMap<u32, BTreeSet<&str>> {
    let mut names: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for sighting in all.iter().filter(|sighting| sighting.report.is_some()) {
        names.entry(sighting.file).or_default().extend(sighting.marks.get(&Mark::Host));
    }
    names
}

/// What joins the reports of one file: the system's name; where the file has no more than one, whatever stands in it.
fn in_file(sighting: &Sighting, names: &BTreeMap<u32, BTreeSet<&str>>) -> Option<SmolStr> {
    sighting.report?;
    if let Some(system) = &sighting.managed {
        return Some(format_smolstr!("{} managed {system}", sighting.file));
    }
    let several = names.get(&sighting.file).is_some_and(|names| names.len() > 1);
    let name = sighting.marks.get(&Mark::Host).filter(|_| several);
    Some(format_smolstr!("{} {}", sighting.file, name.unwrap_or("")))
}

/// Joins what one file holds of a name, where the whole contradicts itself: each report with the one before it, until
/// one contradicts what was joined so far. Then another session has begun. What says nothing between the last report of
/// the one and the first of the other belongs to the one where the same `date` stands over it, else to neither.
fn sessions(
    captures: &Captures,
    all: &[Sighting],
    groups: &mut Groups,
    key: impl Fn(&Sighting) -> Vec<SmolStr>,
) {
    let mut by_key: BTreeMap<SmolStr, Vec<usize>> = BTreeMap::new();
    for (at, sighting) in all.iter().enumerate() {
        for key in key(sighting) {
            by_key.entry(key).or_default().push(at);
        }
    }
    for members in by_key.into_values() {
        let first = members.first().map(|at| groups.find(*at));
        if members.iter().any(|at| Some(groups.find(*at)) != first) {
            divide(captures, all, groups, &members);
        }
    }
}

fn divide(captures: &Captures, all: &[Sighting], groups: &mut Groups, members: &[usize]) {
    let mut marks: BTreeMap<&Mark, &str> = BTreeMap::new();
    // The members of this session, and those behind its last one that says something.
    let (mut certain, mut open): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut join = |members: &[usize]| {
        members.windows(2).for_each(|pair| groups.join(pair[0], pair[1]));
    };
    let taken = |at: usize| captures.reports.get(all[at].report?)?.head().taken.as_ref();
    let same_time = |one: usize, two: usize| taken(one).is_some() && taken(one) == taken(two);
    for at in members {
        let own = || {
            let counts = |mark: &Mark| mark.lasts() && *mark != Mark::Host;
            all[*at].marks.iter().filter(move |(mark, _)| counts(mark))
        };
        let other = own().any(|(mark, value)| marks.get(mark).is_some_and(|said| *said != value));
        if other {
            join(&certain);
            certain.clear();
            open.clear();
            marks.clear();
        }
        open.push(*at);
        let before = certain.last().is_some_and(|last| same_time(*last, *at));
        if before || own().next().is_some() {
            certain.append(&mut open);
            marks.extend(own());
        }
    }
    certain.append(&mut open);
    join(&certain);
}

/// Joins groups that share a key, where none of them contradicts another by the marks that count.
fn step(
    all: &[Sighting],
    groups: &mut Groups,
    counts: impl Fn(&Mark) -> bool,
    keys: impl Fn(usize, &Sighting) -> Vec<SmolStr>,
) {
    let mut wanted = groups.clone();
    let mut first: HashMap<SmolStr, usize> = HashMap::new();
    for (at, sighting) in all.iter().enumerate() {
        for key in keys(at, sighting) {
            let with = *first.entry(key).or_insert(at);
            wanted.join(with, at);
        }
    }
    drop(first);
    // The group to be, the mark, the group of now, what it says.
    let mut said: Vec<(usize, &Mark, usize, &str)> = Vec::new();
    for (at, sighting) in all.iter().enumerate() {
        let (group, now) = (wanted.find(at), groups.find(at));
        let marks = sighting.marks.iter().filter(|(mark, _)| counts(mark));
        said.extend(marks.map(|(mark, value)| (group, mark, now, value)));
    }
    said.sort_unstable();
    said.dedup();
    let contradicted: BTreeSet<usize> = said
        .chunk_by(|one, two| (one.0, one.1) == (two.0, two.1))
        .filter(|of_mark| contradict(of_mark))
        .filter_map(|of_mark| Some(of_mark.first()?.0))
        .collect();
    for at in 0..all.len() {
        let group = wanted.find(at);
        if !contradicted.contains(&group) {
            groups.join(group, at);
        }
    }
}

/// Whether two groups have nothing in common in what they say of one mark.
fn contradict(of_mark: &[(usize, &Mark, usize, &str)]) -> bool {
    let Some((_, _, _, value)) = of_mark.first() else { return false };
    if of_mark.iter().all(|(_, _, _, other)| other == value) {
        return false;
    }
    let mut different: BTreeSet<BTreeSet<&str>> = BTreeSet::new();
    for of_group in of_mark.chunk_by(|one, two| one.2 == two.2) {
        let values: BTreeSet<&str> = of_group.iter().map(|(_, _, _, value)| *value).collect();
        if !different.contains(&values) {
            if different.iter().any(|other| other.is_disjoint(&values)) {
                return true;
            }
            different.insert(values);
        }
    }
    false
}

/// The systems out of the groups.
fn model(captures: &Captures, all: &[Sighting], mut groups: Groups) -> Model {
    let mut members: BTreeMap<usize, Vec<&Sighting>> = BTreeMap::new();
    for (at, sighting) in all.iter().enumerate() {
        members.entry(groups.find(at)).or_default().push(sighting);
    }
    let mut systems: Vec<(System, At, Vec<&Sighting>)> = members
        .into_values()
        .map(|members| {
            let first = members.iter().filter_map(|one| place(captures, one)).min();
            (system(captures, &members), first.unwrap_or(At { file: 0, line: 0 }), members)
        })
        .collect();
    systems.sort_by(|(one, at, _), (two, other, _)| (one, at).cmp(&(two, other)));
    let mut model = Model { owners: vec![0; captures.reports.len()], ..Model::default() };
    for (index, (system, _, members)) in systems.into_iter().enumerate() {
        for member in members {
            if let Some(owner) = member.report.and_then(|report| model.owners.get_mut(report)) {
                *owner = index;
            }
            if let Some(at) = member.at {
                model.named.insert(at, index);
            }
        }
        model.systems.push(system);
    }
    model
}

fn place(captures: &Captures, sighting: &Sighting) -> Option<At> {
    let report = sighting.report.and_then(|report| captures.reports.get(report));
    sighting.at.or_else(|| Some(report?.head().first))
}

/// One system out of its sightings.
fn system(captures: &Captures, members: &[&Sighting]) -> System {
    let mark = |mark: &Mark| members.iter().find_map(|one| one.marks.get(mark)).map(str::to_owned);
    let machine_type = members.iter().find_map(|one| one.machine_type.clone());
    let serial = mark(&Mark::Serial);
    let marks = members.iter().flat_map(|one| one.marks.iter());
    let wwpns = marks.filter_map(|(mark, value)| match mark {
        Mark::Wwpn(device) => Some((device.to_string(), value.to_owned())),
        _ => None,
    });
    let own = members.iter().filter(|one| one.report.is_some()).map(|one| one.file);
    let files: BTreeSet<u32> = own.collect();
    let name = |file| Some(captures.files.get(usize::try_from(file).ok()?)?.name.clone());
    let host = mark(&Mark::Host);
    System {
        role: role(members, host.as_deref()),
        host: members.iter().filter_map(|one| one.shown.as_deref()).min().map(str::to_owned),
        partition: mark(&Mark::Partition),
        alias: members.iter().filter_map(|one| one.alias.as_deref()).min().map(str::to_owned),
        filed: members
            .iter()
            .filter_map(|one| one.filed.as_ref())
            .filter(|(_, sure)| *sure)
            .map(|(name, _)| name.to_string())
            .min(),
        by_name: members.iter().filter(|one| one.filed.is_some()).map(|one| one.file).collect(),
        machine: match (machine_type, serial) {
            (Some(kind), Some(serial)) => Some(format!("{kind}*{serial}")),
            (_, serial) => serial,
        },
        partition_id: mark(&Mark::PartitionId).and_then(|id| id.parse().ok()),
        wwpns: wwpns.collect(),
        files: files.into_iter().filter_map(name).collect(),
    }
}

/// What its own reports speak for, else what others call it, else its name.
fn role(members: &[&Sighting], host: Option<&str>) -> Role {
    let own = members.iter().filter(|one| one.report.is_some()).filter_map(|one| one.role);
    let told = own.min().or_else(|| members.iter().filter_map(|one| one.role).min());
    let by_name = || host.filter(|name| name.contains("vio")).map(|_| Role::Vios);
    told.or_else(by_name).unwrap_or_default()
}
