//! One cause, one finding: what several rules say of the same trouble becomes the one that is to be mended.
//!
//! Rules judge each object by itself and do not look at each other. Here a finding that another one explains is left out,
//! and one that may be the effect of another comes after it and says so.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Draft;
use super::view::parse_number;
use crate::capture::At;

/// Where the first rule speaks of an object, what the second says of it is the same trouble.
const EXPLAINS: [(&str, &str); 7] = [
    ("fc-port-oversubscribed", "fc-physical-elements"),
    ("sea-failover", "sea-vlan"),
    ("sea-control-channel", "sea-failover"),
    ("fc-link-errors", "adapter-errors"),
    ("fc-port-logged-out", "adapter-errors"),
    ("net-link-down", "adapter-errors"),
    ("net-crc", "adapter-errors"),
];

/// What may be the effect of a broken link.
const BEHIND_LINKS: [&str; 7] = [
    "fc-virtual-elements",
    "fc-physical-elements",
    "fc-port-oversubscribed",
    "fc-dma-resource",
    "disk-queue-depth",
    "disk-iops-limit",
    "disk-slow",
];

/// Leaves causes. What goes through a port that is logged out is told by that port.
pub(super) fn settle(mut drafts: Vec<Draft>) -> Vec<Draft> {
    let said: BTreeSet<(&str, String)> =
        drafts.iter().map(|draft| (draft.rule, draft.object().to_owned())).collect();
    drafts.retain(|draft| {
        let explained = |(cause, effect): &(&'static str, &str)| {
            *effect == draft.rule && said.contains(&(*cause, draft.object().to_owned()))
        };
        let port = draft.through.as_ref().is_some_and(|port| {
            draft.rule != "fc-port-logged-out"
                && said.contains(&("fc-port-logged-out", port.to_owned()))
        });
        // A pair whose control channels do not meet: neither hears the other.
        let of_pair = || {
            draft.rule == "sea-control-channel"
                && said.iter().any(|(rule, object)| {
                    let pair = object.split_once(" and ");
                    let one = |(one, two): (&str, &str)| [one, two].contains(&draft.object());
                    *rule == draft.rule && pair.is_some_and(one)
                })
        };
        !port && !of_pair() && !EXPLAINS.iter().any(explained)
    });
    // The depth of a pool's LUN is told once, by the pool.
    let depths: BTreeSet<(usize, At)> = drafts
        .iter()
        .filter(|draft| draft.rule == "ssp-depth")
        .flat_map(|draft| draft.evidence().iter().map(|at| (draft.host, *at)))
        .collect();
    let of_disk = ["disk-queue-depth", "disk-iops-limit"];
    drafts.retain(|draft| {
        let shown = |at: &At| depths.contains(&(draft.host, *at));
        !(of_disk.contains(&draft.rule) && draft.evidence().iter().any(shown))
    });
    let broken: BTreeSet<usize> = drafts
        .iter()
        .filter(|draft| draft.rule == "fc-link-errors")
        .map(|draft| draft.host)
        .collect();
    one_command_each(&mut drafts);
    for draft in &mut drafts {
        if broken.contains(&draft.host) && BEHIND_LINKS.contains(&draft.rule) {
            draft.behind("This host's link has errors; commands that are sent again fill queues. Mend the link first and look again.");
        }
    }
    drafts
}

/// An attribute of a device is set by one finding, the one with the greatest value.
fn one_command_each(drafts: &mut [Draft]) {
    let mut of: BTreeMap<(usize, String, &str), Vec<usize>> = BTreeMap::new();
    for (index, draft) in drafts.iter().enumerate() {
        for (device, attribute, _) in &draft.sets {
            let key = (draft.host, device.clone(), *attribute);
            of.entry(key).or_default().push(index);
        }
    }
    for ((_, device, attribute), indices) in of.into_iter().filter(|(_, all)| all.len() > 1) {
        let value = |index: usize| {
            let draft = drafts.get(index)?;
            let set = draft.sets.iter().find(|set| set.0 == device && set.1 == attribute)?;
            parse_number(&set.2)
        };
        let Some(best) =
            indices.iter().copied().max_by_key(|index| (value(*index), usize::MAX - index))
        else {
            continue;
        };
        let Some(rule) = drafts.get(best).map(|draft| draft.rule) else { continue };
        for index in indices.into_iter().filter(|index| *index != best) {
            if let Some(draft) = drafts.get_mut(index) {
                draft.gives_way(&device, attribute, rule);
            }
        }
    }
}
