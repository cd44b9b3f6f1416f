//! One cause, one finding: what several rules say of the same trouble becomes the one that is to be mended.
//!
//! Rules judge each object by itself and do not look at each other. Here a finding that another one explains is left out,
//! and one that may be the effect of another comes after it and says so.

use std::collections::{BTreeMap, BTreeSet};

use super::change::Setting;
use super::finding::{Array, Draft, tell_failing_disks_once};
use super::view::parse_number;
use crate::capture::At;

/// Where the first rule speaks of an object, what the second says of it is the same trouble.
const EXPLAINS: [(&str, &str); 9] = [
    ("fc-port-oversubscribed", "fc-physical-elements"),
    ("sea-failover", "sea-vlan"),
    ("sea-control-channel", "sea-failover"),
    ("fc-link-errors", "adapter-errors"),
    ("fc-port-logged-out", "adapter-errors"),
    ("net-link-down", "adapter-errors"),
    ("fc-link-down", "fc-link-errors"),
    ("fc-link-down", "adapter-errors"),
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

/// What these rules say of an object is the cause of all that goes through it.
const BREAKS: [&str; 7] = [
    "fc-link-down",
    "net-link-down",
    "fc-port-logged-out",
    "fc-adapter-unmapped",
    "fc-wwpn-second-missing",
    "vscsi-target-down",
    "net-one-member",
];

/// What keeps a virtual adapter from logging in, at its port or at the client's side of it.
const BEFORE_LOGIN: [&str; 2] = ["npiv-ports-full", "fc-max-xfer-mismatch"];

/// What keeps a client's adapter from configuring its disks.
const BEFORE_PATHS: [&str; 1] = ["fc-max-xfer-mismatch"];

/// The same of paths to disks alone.
const BROKEN: [&str; 1] = ["adapter-errors"];

/// Leaves causes. What goes through an adapter or a port that is not in use is told by that.
pub(super) fn settle(mut drafts: Vec<Draft>, spoken: impl Fn(usize) -> String) -> Vec<Draft> {
    tell_links_once(&mut drafts);
    tell_by_cause(&mut drafts);
    tell_by_adapter(&mut drafts);
    tell_what_may_be_behind(&mut drafts);
    tell_by_port(&mut drafts);
    tell_pairs_once(&mut drafts);
    tell_consequences(&mut drafts);
    let said: BTreeSet<(&str, String)> =
        drafts.iter().map(|draft| (draft.rule, draft.object().to_owned())).collect();
    drafts.retain(|draft| {
        let explained = |(cause, effect): &(&'static str, &str)| {
            *effect == draft.rule && said.contains(&(*cause, draft.object().to_owned()))
        };
        let breaks = |object: &String| {
            let by = |rule: &&'static str| said.contains(&(*rule, object.clone()));
            BREAKS.iter().any(by)
        };
        // A pair whose control channels do not meet: neither hears the other.
        let of_pair = || {
            draft.rule == "sea-control-channel"
                && said.iter().any(|(rule, object)| {
                    let pair = object.split_once(" and ");
                    let one = |(one, two): (&str, &str)| [one, two].contains(&draft.object());
                    *rule == draft.rule && pair.is_some_and(one)
                })
        };
        !draft.through.iter().any(breaks) && !of_pair() && !EXPLAINS.iter().any(explained)
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
    tell_storage_ports_once(&mut drafts, &spoken);
    tell_failing_disks_once(&mut drafts, &spoken);
    tell_arrays_once(&mut drafts, spoken);
    for draft in &mut drafts {
        if broken.contains(&draft.host) && BEHIND_LINKS.contains(&draft.rule) {
            draft.waits_for(
                "This host's link has errors; commands that are sent again fill queues. Mend the link first and look again.",
                "whether it goes on once the link is mended: the same captures again".to_owned(),
            );
        }
    }
    one_command_each(&mut drafts);
    drafts
}

/// A port that no client is logged in at is told with its link.
fn tell_links_once(drafts: &mut Vec<Draft>) {
    let logged_out = drafts.iter().filter(|draft| draft.rule == "fc-port-logged-out");
    let ports: BTreeSet<String> = logged_out.map(|draft| draft.object().to_owned()).collect();
    drafts.retain(|draft| !(draft.rule == "fc-link-down" && ports.contains(draft.object())));
}

fn take_out(drafts: &mut Vec<Draft>, gone: &BTreeSet<usize>) {
    let mut at = 0..;
    drafts.retain(|_| at.next().is_none_or(|at| !gone.contains(&at)));
}

/// Each cause, with the effect that it tells in its place.
fn tell_instead(drafts: &mut Vec<Draft>, told: &[(usize, usize)]) {
    for (cause, effect) in told {
        if let Ok([cause, effect]) = drafts.get_disjoint_mut([*cause, *effect]) {
            cause.explains(effect);
            cause.is_as_bad_as(effect);
        }
    }
    take_out(drafts, &told.iter().map(|(_, effect)| *effect).collect());
}

/// Each effect after the first of its causes, which are those of these rules about an object that it follows.
fn behind<'a>(
    drafts: &[Draft],
    causes_of: impl Fn(&Draft) -> &'a [&'a str],
) -> Vec<(usize, usize)> {
    let cause = |effect: &Draft| {
        let causes = causes_of(effect);
        drafts.iter().position(|draft| {
            causes.contains(&draft.rule)
                && effect.follows.iter().any(|object| object == draft.object())
        })
    };
    drafts.iter().enumerate().filter_map(|(at, effect)| Some((cause(effect)?, at))).collect()
}

/// Paths that are down are told by the adapter or the port whose trouble it is, with their lines.
fn tell_by_cause(drafts: &mut Vec<Draft>) {
    let paths = drafts.iter().enumerate().filter(|(_, draft)| draft.rule == "disk-paths-failed");
    let cause = |effect: &Draft, rules: &[&str]| {
        let of = |object: &String| {
            drafts.iter().position(|draft| rules.contains(&draft.rule) && draft.object() == object)
        };
        effect.through.iter().rev().find_map(of)
    };
    let told: Vec<(usize, usize)> = paths
        .filter_map(|(at, effect)| {
            Some((cause(effect, &BREAKS).or_else(|| cause(effect, &BROKEN))?, at))
        })
        .collect();
    let mut gone = BTreeSet::new();
    for (cause, effect) in told {
        if let Ok([one, other]) = drafts.get_disjoint_mut([cause, effect]) {
            one.explains(other);
            if BROKEN.contains(&one.rule) {
                one.is_as_bad_as(other);
                gone.insert(effect);
            }
        }
    }
    take_out(drafts, &gone);
}

/// A login that fails is told by what it fails for, and so are paths that an adapter could not configure.
fn tell_by_adapter(drafts: &mut Vec<Draft>) {
    let causes_of = |effect: &Draft| match effect.rule {
        "fc-wwpn-second-missing" => &BEFORE_LOGIN[..],
        "disk-paths-failed" => &BEFORE_PATHS[..],
        _ => &[],
    };
    let told = behind(drafts, causes_of);
    tell_instead(drafts, &told);
}

/// A disk of a server that the client's path may be down for comes before the path.
fn tell_what_may_be_behind(drafts: &mut [Draft]) {
    const KEEP_OUT: [&str; 2] = ["disk-reserve-policy", "disk-max-transfer"];
    for (cause, effect) in behind(drafts, |_| &KEEP_OUT) {
        if let Ok([cause, effect]) = drafts.get_disjoint_mut([cause, effect]) {
            cause.may_explain(effect);
        }
    }
}

/// What a pair comes to whose control channels do not meet, or whose priorities are one: two primaries, or none. And what one
/// of a pair comes to whose modes do not fit: a state that does not fit its bridge mode.
fn tell_consequences(drafts: &mut Vec<Draft>) {
    let of = |rule: &str| {
        let all = drafts.iter().enumerate().filter(move |(_, draft)| draft.rule == rule);
        all.map(|(at, draft)| (at, draft.object().to_owned())).collect::<Vec<_>>()
    };
    let is_pair = |object: &str| object.contains(" and ");
    let causes: Vec<(usize, String)> =
        ["sea-control-channel", "sea-priority"].into_iter().flat_map(of).collect();
    let (pairs, singles): (Vec<_>, Vec<_>) =
        of("sea-failover").into_iter().partition(|(_, object)| is_pair(object));
    let mut told = Vec::new();
    for (effect, object) in &pairs {
        let by = causes.iter().find(|(_, cause)| cause == object);
        told.extend(by.map(|(cause, _)| (*cause, *effect)));
    }
    for (effect, object) in &singles {
        let unfit = drafts.get(*effect).is_some_and(|draft| draft.title().starts_with("state "));
        let of_pair = |(_, pair): &&(usize, String)| {
            pair.split_once(" and ").is_some_and(|(one, two)| [one, two].contains(&object.as_str()))
        };
        let by = pairs.iter().filter(of_pair).find(|(pair, _)| {
            drafts.get(*pair).is_some_and(|draft| draft.title().starts_with("ha_mode is "))
        });
        told.extend(by.filter(|_| unfit).map(|(cause, _)| (*cause, *effect)));
    }
    tell_instead(drafts, &told);
}

/// The adapters of a port that lacks elements are told of by the port, with the lines of each.
fn tell_by_port(drafts: &mut Vec<Draft>) {
    let mut told: Vec<Draft> = Vec::with_capacity(drafts.len());
    for draft in drafts.drain(..) {
        let same = |other: &&mut Draft| {
            (other.rule, other.host, other.object()) == (draft.rule, draft.host, draft.object())
        };
        let told_once = draft.rule == "server-no-element";
        match told_once.then(|| told.iter_mut().find(same)).flatten() {
            Some(first) => first.joins(draft),
            None => told.push(draft),
        }
    }
    *drafts = told;
}

/// What both of a pair show is one trouble: the first of them says it.
fn tell_pairs_once(drafts: &mut Vec<Draft>) {
    let mut at = 0;
    while at < drafts.len() {
        let twin = drafts[at].twin.clone().and_then(|object| {
            let one = &drafts[at];
            let same = |other: &Draft| {
                (other.rule, other.object(), other.title()) == (one.rule, &object, one.title())
            };
            drafts.iter().skip(at + 1).position(same).map(|beyond| at + 1 + beyond)
        });
        if let Some(twin) = twin {
            let twin = drafts.remove(twin);
            drafts[at].speaks_for(&twin);
        }
        at += 1;
    }
}

/// A storage port that several systems have lost is one trouble.
fn tell_storage_ports_once(drafts: &mut Vec<Draft>, spoken: impl Fn(usize) -> String) {
    tell_once(
        drafts,
        |one| !one.storage_ports.is_empty(),
        |one, other| !other.storage_ports.is_disjoint(&one.storage_ports),
        |one, others| one.speaks_for_systems(others, &spoken),
    );
}

/// Slow disks of one array have one cause.
fn tell_arrays_once(drafts: &mut Vec<Draft>, spoken: impl Fn(usize) -> String) {
    let same = |one: &Draft, other: &Draft| {
        one.slow.as_ref().zip(other.slow.as_ref()).is_some_and(|(slow, of)| {
            let seen_by_all = matches!(slow.array, Array::Port(_));
            other.rule == one.rule
                && of.array == slow.array
                && (seen_by_all || other.host == one.host)
        })
    };
    let tell = |one: &mut Draft, others: Vec<Draft>| one.speaks_for_disks(others, &spoken);
    tell_once(drafts, |one| one.slow.is_some(), same, tell);
}

/// Of those that are the same trouble, each of which `may` be one, the first says it of all.
fn tell_once(
    drafts: &mut Vec<Draft>,
    may: impl Fn(&Draft) -> bool,
    same: impl Fn(&Draft, &Draft) -> bool,
    tell: impl Fn(&mut Draft, Vec<Draft>),
) {
    let mut at = 0;
    while at < drafts.len() {
        let one = &drafts[at];
        if may(one) && drafts[at + 1..].iter().any(|other| same(one, other)) {
            let rest = drafts.split_off(at + 1);
            let (others, rest): (Vec<Draft>, Vec<Draft>) =
                rest.into_iter().partition(|other| same(&drafts[at], other));
            drafts.extend(rest);
            tell(&mut drafts[at], others);
        }
        at += 1;
    }
}

/// An attribute of a device is set by one finding, the one with the greatest value.
fn one_command_each(drafts: &mut [Draft]) {
    let mut of: BTreeMap<(usize, String, &str), Vec<usize>> = BTreeMap::new();
    for (index, draft) in drafts.iter().enumerate() {
        for set in &draft.sets {
            let key = (set.host, set.device.clone(), set.attribute);
            of.entry(key).or_default().push(index);
        }
    }
    for ((host, device, attribute), indices) in of.into_iter().filter(|(_, all)| all.len() > 1) {
        let value = |index: usize| {
            let draft = drafts.get(index)?;
            let same = |set: &&Setting| {
                set.host == host && set.device == device && set.attribute == attribute
            };
            parse_number(&draft.sets.iter().find(same)?.value)
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
