//! Disks of one system that have errors at the same minutes: what they share is in trouble, and not each of them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Draft, add_new};

/// A disk that has errors in the log.
#[derive(Debug, Clone)]
pub(in crate::advise) struct FailingDisk {
    name: String,
    /// The minutes of its entries.
    minutes: BTreeSet<u64>,
}

/// So many disks are named.
const NAMED: usize = 12;

impl Draft {
    /// The disk that it is about, and the minutes in which it had errors.
    pub(in crate::advise) fn failing(mut self, name: &str, minutes: BTreeSet<u64>) -> Self {
        self.failing = Some(FailingDisk { name: name.to_owned(), minutes });
        self
    }

    /// Says it of all disks that had errors at the same minutes.
    fn speaks_for_failing(&mut self, others: Vec<Self>, spoken: &impl Fn(usize) -> String) {
        let own = self.failing.iter();
        let mut names: Vec<&str> = own
            .chain(others.iter().filter_map(|other| other.failing.as_ref()))
            .map(|disk| disk.name.as_str())
            .collect();
        names.sort_by_key(|name| (name.len(), *name));
        let all = names.len();
        names.truncate(NAMED);
        let named = match all - names.len() {
            0 => names.join(", "),
            more => format!("{}, {more} more", names.join(", ")),
        };
        let finding = &mut self.finding;
        finding.object = format!("{named} on {}", spoken(self.host));
        finding.title = format!("{all} disks have errors at the same minutes");
        finding.reasoning.retain(|why| !self.here.contains(why));
        let each = format!("Of {}: ", names.first().copied().unwrap_or("the first of them"));
        for why in &mut finding.reasoning {
            why.insert_str(0, &each);
        }
        finding.reasoning.insert(
            0,
            format!("The log has errors of {all} disks at the same minutes: disks do not fail together, what they share does."),
        );
        finding.effect = "Look at what these disks share: the array or its controller, the fabric, the VIOS or the adapter that they come over (lspath, errpt -a of all systems that use the array, at these minutes). Save their data first.".to_owned();
        finding.harm = "None by looking.".to_owned();
        for other in others {
            self.confidence = self.confidence.max(other.confidence);
            // One line of each: there are many.
            add_new(&mut self.finding.evidence, other.finding.evidence.into_iter().take(1));
        }
    }
}

/// Tells once of disks of a system whose errors are at the same minutes: most of those of each of them.
pub(in crate::advise) fn tell_failing_disks_once(
    drafts: &mut Vec<Draft>,
    spoken: &impl Fn(usize) -> String,
) {
    let mut groups: Vec<(usize, usize, Vec<usize>)> = Vec::new();
    let mut of_minute: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    for (index, draft) in drafts.iter().enumerate() {
        let Some(disk) = &draft.failing else { continue };
        let group_at = |minute: &u64| {
            let near = [*minute, minute.saturating_sub(1), minute.saturating_add(1)];
            near.iter().find_map(|minute| of_minute.get(&(draft.host, *minute)).copied())
        };
        let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
        for group in disk.minutes.iter().filter_map(group_at) {
            *shared.entry(group).or_default() += 1;
        }
        let most = shared.into_iter().max_by_key(|(group, shared)| (*shared, usize::MAX - group));
        let of = most.filter(|(group, shared)| {
            let minutes = groups.get(*group).map_or(0, |(_, minutes, _)| *minutes);
            shared * 2 > minutes.max(disk.minutes.len())
        });
        match of.and_then(|(group, _)| groups.get_mut(group)) {
            Some((_, _, others)) => others.push(index),
            None => {
                for minute in &disk.minutes {
                    of_minute.entry((draft.host, *minute)).or_insert(groups.len());
                }
                groups.push((index, disk.minutes.len(), Vec::new()));
            }
        }
    }
    groups.retain(|(_, _, others)| !others.is_empty());
    if groups.is_empty() {
        return;
    }
    let mut all: Vec<Option<Draft>> = std::mem::take(drafts).into_iter().map(Some).collect();
    for (leader, _, others) in groups {
        let others = others.into_iter().filter_map(|index| all.get_mut(index)?.take()).collect();
        if let Some(Some(leader)) = all.get_mut(leader) {
            leader.speaks_for_failing(others, spoken);
        }
    }
    drafts.extend(all.into_iter().flatten());
}
