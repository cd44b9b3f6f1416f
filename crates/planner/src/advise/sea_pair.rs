//! Shared Ethernet adapters in pairs: two VIOS that bridge the same VLANs must agree.

use std::collections::{BTreeMap, BTreeSet};

use super::change::Change;
use super::finding::{Draft, NoCommand, Severity};
use super::measure::seconds_between;
use super::out::Out;
use super::sea::{Bridge, vlan_list, vlans};
use super::thresholds::STANDBY_SECONDS;
use super::view::View;
use crate::capture::{At, Entstat, Read};
use crate::trace::number;

/// The switch and VLAN of each trunk, with its line. The switch is empty where the trunk's own statistics were not
/// captured and the list of the shared adapter alone has its VLANs.
type Covered = BTreeMap<(String, u16), At>;

fn covered<'a>(view: &View<'a>, bridge: &Bridge<'a>) -> Covered {
    let mut covered = BTreeMap::new();
    let trunks = bridge.trunks(view);
    for (_, of) in &trunks {
        let switch = of.switch.as_ref().map_or("", |read| read.value.as_str());
        covered.extend(vlans(of).into_iter().map(|(vlan, at)| ((switch.to_owned(), vlan), at)));
    }
    let shown = |name: &str| {
        let mut of = trunks.iter().filter(|(_, of)| of.port_vlan.is_some() && of.vlans.is_some());
        of.any(|(adapter, _)| adapter.name.value == name)
    };
    let listed = bridge.sea().map_or(&[][..], |sea| &sea.vlans);
    for trunk in listed.iter().filter(|trunk| !shown(&trunk.adapter)) {
        for vlan in &trunk.vlans {
            if !carries(&covered, ("", *vlan)) {
                covered.insert((String::new(), *vlan), trunk.at);
            }
        }
    }
    covered
}

/// Whether a VLAN is among them, on this switch as far as that is known.
fn carries(covered: &Covered, (switch, vlan): (&str, u16)) -> bool {
    covered.keys().any(|(other, own)| {
        *own == vlan && (other == switch || other.is_empty() || switch.is_empty())
    })
}

/// Whether two VIOS are of one machine; where the captures do not tell, names such as `vios1` and `vios2` do.
pub(super) fn are_partners(view: &View<'_>, one: usize, two: usize) -> bool {
    let machine = |host| view.system(host).and_then(|system| system.machine.as_ref());
    if one == two
        || view.called(one) == view.called(two)
        || (machine(one).is_some() && machine(two).is_some())
    {
        return view.called(one) != view.called(two) && view.same_machine(one, two);
    }
    let stem = |host| view.called(host).map(super::view::stem);
    stem(one).is_some() && stem(one) == stem(two)
}

/// Whether names alone may make a pair of them: two that do not fail over and bridge are more likely on two machines.
fn may_be_pair<'a>(view: &View<'a>, one: &Bridge<'a>, two: &Bridge<'a>) -> bool {
    [one, two].iter().any(|bridge| bridge.fails_over(view) != Some(false))
}

/// Bridges of partner VIOS that share a VLAN, by their places; each pair once, and only where the partner is the only
/// one.
pub(super) fn pairs<'a>(view: &View<'a>, bridges: &[Bridge<'a>]) -> Vec<(usize, usize)> {
    let keys: Vec<BTreeSet<(String, u16)>> =
        bridges.iter().map(|bridge| covered(view, bridge).into_keys().collect()).collect();
    let control = |at: usize| bridges[at].failover()?.control_vlan.map(|read| read.value);
    let is_alone = |at: usize| {
        bridges.iter().filter(|other| other.host == bridges[at].host).count() == 1
            && keys[at].is_empty()
    };
    // Where the VLANs of one were not captured, the VLAN on which they hear each other tells.
    let meets = |one: usize, two: usize| match keys[one].is_empty() || keys[two].is_empty() {
        true => match (control(one), control(two)) {
            (None, None) => {
                is_alone(one) && is_alone(two) && bridges[one].name == bridges[two].name
            }
            (one, two) => one.is_some() && one == two,
        },
        false => !keys[one].is_disjoint(&keys[two]),
    };
    let folders: Vec<BTreeSet<&str>> =
        bridges.iter().map(|bridge| view.folders(bridge.host)).collect();
    let mates = |at: usize| -> Vec<usize> {
        let fits = |other: &usize| {
            let (one, two) = (&bridges[at], &bridges[*other]);
            are_partners(view, two.host, one.host)
                && meets(at, *other)
                && (view.same_machine(one.host, two.host) || may_be_pair(view, one, two))
        };
        let all: Vec<usize> = (0..bridges.len()).filter(fits).collect();
        // Names alone fit many; captures of a pair lie together.
        let near = |other: &usize| !folders[at].is_disjoint(&folders[*other]);
        match all.iter().copied().filter(near).collect::<Vec<_>>() {
            near if all.len() > 1 && near.len() == 1 => near,
            _ => all,
        }
    };
    let mut pairs = Vec::new();
    for at in 0..bridges.len() {
        if let [mate] = mates(at)[..]
            && at < mate
            && mates(mate) == [at]
        {
            pairs.push((at, mate));
        }
    }
    pairs
}

/// The pair that the bridge is one of, by places.
fn pair_of(view: &View<'_>, bridge: &Bridge<'_>) -> Option<(usize, usize)> {
    let is = |at: usize| is_at(view, bridge, at);
    view.pairs().iter().copied().find(|(one, two)| is(*one) || is(*two))
}

/// Whether the bridge is the one at this place.
fn is_at(view: &View<'_>, bridge: &Bridge<'_>, at: usize) -> bool {
    let other = view.bridges().get(at);
    other.is_some_and(|other| other.host == bridge.host && other.name == bridge.name)
}

/// The partner, as a user reads it.
pub(super) fn partner(view: &View<'_>, bridge: &Bridge<'_>) -> Option<String> {
    let (one, two) = pair_of(view, bridge)?;
    let other = if is_at(view, bridge, one) { two } else { one };
    let other = view.bridges().get(other)?;
    Some(view.object(other.host, other.name))
}

/// The partner, for the first of a pair; what it lacks where none was captured.
fn mate<'v, 'a>(view: &'v View<'a>, bridge: &Bridge<'a>, out: &mut Out) -> Option<&'v Bridge<'a>> {
    let pair = pair_of(view, bridge);
    if pair.is_none() && bridge.fails_over(view) == Some(true) {
        out.lack(
            "the partner",
            "entstat -all entN and lsdev -dev entN -attr of both VIOS of the pair, in one run",
        );
    }
    pair.filter(|(one, _)| is_at(view, bridge, *one)).and_then(|(_, two)| view.bridges().get(two))
}

/// `sea-failover`, of a pair.
pub(super) fn failover<'a>(view: &View<'a>, one: &Bridge<'a>, out: &mut Out) {
    if let Some(two) = mate(view, one, out) {
        modes(view, one, two, out);
        states(view, one, two, out);
    }
}

fn draft<'a>(
    view: &View<'a>,
    rule: &'static str,
    severity: Severity,
    one: &Bridge<'a>,
    two: &Bridge<'a>,
    title: String,
) -> Draft {
    let object =
        format!("{} and {}", view.object(one.host, one.name), view.object(two.host, two.name));
    Draft::new(rule, one.host, object, severity, title)
}

/// The failover mode of a bridge, in lower case, and its line.
fn mode<'a>(view: &View<'a>, bridge: &Bridge<'a>) -> Option<(String, At)> {
    if let Some(attribute) = bridge.attribute(view, "ha_mode") {
        return Some((attribute.value.to_lowercase(), attribute.at));
    }
    let told = bridge.failover().and_then(|failover| failover.mode.as_ref());
    told.map(|read| (read.value.to_lowercase(), read.at))
}

/// `sea-failover`: modes that do not make a pair.
fn modes<'a>(view: &View<'a>, one: &Bridge<'a>, two: &Bridge<'a>, out: &mut Out) {
    let (Some((first, at)), Some((second, other))) = (mode(view, one), mode(view, two)) else {
        return;
    };
    let words = [first.as_str(), second.as_str()];
    let off = words.iter().filter(|word| **word == "disabled").count();
    let (severity, why, fix): (_, _, &str) = if off > 0 {
        (
            Severity::Critical,
            "A bridge without failover always forwards. Both VIOS bridge the same VLANs, so frames go round in a loop as soon as both are up.",
            "auto",
        )
    } else if words.contains(&"sharing") && words != ["sharing", "sharing"] {
        (
            Severity::Warning,
            "Load is shared only where both bridges say sharing; as it is, one of them carries everything.",
            "sharing",
        )
    } else if words == ["standby", "standby"] {
        (
            Severity::Warning,
            "With standby on both, neither is meant to be primary; that is for the time of maintenance.",
            "auto",
        )
    } else {
        return left_standing_by(
            view,
            [(one, first.as_str(), at), (two, second.as_str(), other)],
            out,
        );
    };
    // The side to change: the one that does not say what the pair needs.
    let bridge = if words[0] == fix { two } else { one };
    let pair = draft(
        view,
        "sea-failover",
        severity,
        one,
        two,
        format!("ha_mode is {first} on one and {second} on the other"),
    )
    .see([at, other])
    .because(why);
    // Load is shared by VLANs: each bridge needs two trunk adapters for it.
    let alone = |bridge: &&Bridge<'a>| {
        let trunks = bridge.attribute(view, "virt_adapters");
        trunks.is_some_and(|list| !list.value.contains(','))
    };
    let lacking = [one, two].into_iter().find(alone).filter(|_| fix == "sharing");
    let pair = match lacking {
        Some(bridge) => pair
            .because(format!(
                "{} has one trunk adapter, and load can be shared by two and more only: sharing is not what this pair can do.",
                view.object(bridge.host, bridge.name)
            ))
            .unknown(NoCommand {
                look_up: vec!["which of the two is meant: ha_mode=auto on both, or sharing on both with a second trunk adapter of other VLANs on each".to_owned()],
                ..NoCommand::default()
            }),
        None => pair.change(&Change::new(view, bridge.host, bridge.name).live().set("ha_mode", fix)),
    };
    out.push(
        pair
            .effect("The pair agrees on one primary, or shares the load, over its control channel.")
            .harm("Changing ha_mode can move the primary, which interrupts the clients' network for a moment. The control channel must work before it is switched on.")
            .weigh(0.93, 1.0),
    );
}

/// `sea-failover`: a bridge that was set to stand by, as for maintenance, and never set back.
fn left_standing_by<'a>(view: &View<'a>, pair: [(&Bridge<'a>, &str, At); 2], out: &mut Out) {
    let of = |wanted: &str| pair.iter().find(|(_, mode, _)| *mode == wanted).copied();
    let (Some((bridge, _, at)), Some((other, mode, other_at))) =
        (of("standby"), of("auto").or(of("sharing")))
    else {
        return;
    };
    let mode_of = |run: &'a Entstat| {
        let mode = run.sea.as_ref()?.failover.as_ref()?.mode.as_ref()?;
        Some((mode.value.to_lowercase(), mode.at, run))
    };
    let modes: Vec<_> = bridge.runs.iter().copied().filter_map(mode_of).collect();
    let all = modes.iter().all(|(mode, ..)| mode == "standby");
    let seconds = modes
        .first()
        .zip(modes.last())
        .and_then(|(first, last)| seconds_between(&first.2.head, &last.2.head));
    // For the time of maintenance that is as it should be.
    let Some(seconds) = seconds.filter(|seconds| all && *seconds >= STANDBY_SECONDS) else {
        return;
    };
    let object = view.object(bridge.host, bridge.name);
    let title = format!("{object} is set to stand by");
    out.push(
        draft(view, "sea-failover", Severity::Warning, bridge, other, title)
            .see([at, other_at])
            .see(modes.iter().map(|(_, at, _)| *at))
            .because(format!(
                "ha_mode is standby there and {mode} at {}: it takes the bridge over only when the other one is gone, and gives it back at once, whatever the priorities say.",
                view.object(other.host, other.name)
            ))
            .because(format!(
                "It was so {} days before, too: longer than maintenance takes.",
                number((seconds / 86_400.0).floor())
            ))
            .change(&Change::new(view, bridge.host, bridge.name).live().set("ha_mode", mode))
            .effect("The pair goes by the priorities again.")
            .harm("The bridge with the lower priority number becomes primary, which interrupts the clients' network for a moment.")
            .weigh(0.85, 0.9),
    );
}

/// `sea-failover`: two primaries, or none.
fn states<'a>(view: &View<'a>, one: &Bridge<'a>, two: &Bridge<'a>, out: &mut Out) {
    let state = |bridge: &Bridge<'_>| bridge.failover().and_then(|failover| failover.state.clone());
    let (Some(first), Some(second)) = (state(one), state(two)) else { return };
    let title = match (first.value.as_str(), second.value.as_str()) {
        ("PRIMARY" | "PRIMARY_SH", "PRIMARY" | "PRIMARY_SH") => "both bridges are primary",
        ("BACKUP" | "BACKUP_SH" | "STANDBY", "BACKUP" | "BACKUP_SH" | "STANDBY") => {
            "neither bridge is primary"
        }
        _ => return,
    };
    let heard = |bridge: &Bridge<'_>| bridge.failover()?.control_in.filter(|read| read.value > 0);
    let (cause, lines) = match (heard(one), heard(two)) {
        (Some(first), Some(second)) => (
            "Both have had control packets from the other: they hear each other, or did. What tells is whether the counts still grow, and whether the captures are of the same minute.",
            vec![first.at, second.at],
        ),
        _ => (
            "The two do not hear each other: the control channel is broken, or its VLAN differs. The captures must be of the same minute to be sure.",
            Vec::new(),
        ),
    };
    out.push(
        draft(view, "sea-failover", Severity::Critical, one, two, title.to_owned())
            .see([first.at, second.at])
            .see(lines)
            .because(format!("The states are {} and {}; one of each pair has to be primary.", first.value, second.value))
            .because(cause)
            .effect("Compare the control channel of both (adapter, VLAN, packets in and out); the pair settles once they hear each other. To stop a loop at once, set ha_mode=standby on one of them.")
            .harm("With two primaries, frames are doubled or loop; take one out first and look afterwards.")
            .weigh(0.9, 1.0),
    );
}

/// The priority that a bridge has in its pair, and the line.
fn priority<'a>(view: &View<'a>, bridge: &Bridge<'a>) -> Option<Read<u32>> {
    let of_failover = bridge.failover().and_then(|failover| failover.priority);
    of_failover.or_else(|| bridge.trunks(view).into_iter().find_map(|(_, of)| of.priority))
}

/// `sea-priority`: the same priority on both.
pub(super) fn priorities<'a>(view: &View<'a>, one: &Bridge<'a>, out: &mut Out) {
    let Some(two) = mate(view, one, out) else { return };
    let (Some(first), Some(second)) = (priority(view, one), priority(view, two)) else { return };
    if first.value != second.value {
        return;
    }
    out.push(
        draft(view, "sea-priority", Severity::Critical, one, two, format!("both have trunk priority {}", first.value))
            .see([first.at, second.at])
            .because("The lower trunk priority is primary. With the same one on both nothing decides, and both may bridge.")
            .effect("Give the trunk adapters of one VIOS another priority (1 for the primary, 2 for the backup) on the HMC, in the profile, too.")
            .harm("The adapter has to be removed and added, or the VIOS restarted, for its priority to change: do it on the backup.")
            .weigh(0.95, 1.0),
    );
}

/// `sea-priority`: trunk adapters of one bridge with different priorities.
pub(super) fn uneven_trunks<'a>(view: &View<'a>, bridge: &Bridge<'a>, out: &mut Out) {
    let trunks = bridge.trunks(view);
    let mut priorities: Vec<Read<u32>> = trunks.iter().filter_map(|(_, of)| of.priority).collect();
    priorities.sort_by_key(|read| (read.value, read.at));
    let (Some(low), Some(high)) = (priorities.first(), priorities.last()) else { return };
    if low.value == high.value {
        return;
    }
    out.push(
        Draft::new("sea-priority", bridge.host, view.object(bridge.host, bridge.name), Severity::Warning, format!("its trunk adapters have priorities {} and {}", low.value, high.value))
            .see([low.at, high.at])
            .because("All trunk adapters of one bridge fail over together and must have one priority.")
            .effect("Give all of them the same priority on the HMC, in the profile, too.")
            .harm("The adapter has to be removed and added, or the VIOS restarted, for its priority to change: do it on the backup.")
            .weigh(0.85, 1.0),
    );
}

/// `sea-control-channel`: the VLAN of the control channel differs.
pub(super) fn control_vlans<'a>(view: &View<'a>, one: &Bridge<'a>, out: &mut Out) {
    let Some(two) = mate(view, one, out) else { return };
    let vlan = |bridge: &Bridge<'_>| bridge.failover().and_then(|failover| failover.control_vlan);
    let (Some(first), Some(second)) = (vlan(one), vlan(two)) else { return };
    if first.value == second.value {
        return;
    }
    out.push(
        draft(view, "sea-control-channel", Severity::Critical, one, two, format!("the control channels are on VLAN {} and VLAN {}", first.value, second.value))
            .see([first.at, second.at])
            .because("The two VIOS hear each other on the VLAN of the control channel only; on different ones each believes that it is alone.")
            .effect("Give both control adapters the same VLAN, one that nothing else uses, on the HMC, in the profile, too.")
            .harm("Until they agree both may bridge: set ha_mode=standby on one of them first.")
            .weigh(0.95, 1.0),
    );
}

/// `sea-vlan`: a VLAN that only one of the pair carries.
pub(super) fn vlan_sets<'a>(view: &View<'a>, one: &Bridge<'a>, out: &mut Out) {
    let Some(two) = mate(view, one, out) else { return };
    let (first, second) = (covered(view, one), covered(view, two));
    let only = |here: &Covered, there: &Covered| -> Vec<(u16, At)> {
        here.iter()
            .filter(|((switch, vlan), _)| !carries(there, (switch.as_str(), *vlan)))
            .map(|((_, vlan), at)| (*vlan, *at))
            .collect()
    };
    let missing: Vec<(u16, At)> =
        only(&first, &second).into_iter().chain(only(&second, &first)).collect();
    if missing.is_empty() {
        return;
    }
    let numbers: BTreeSet<u16> = missing.iter().map(|(vlan, _)| *vlan).collect();
    out.push(
        draft(view, "sea-vlan", Severity::Warning, one, two, format!("only one of the pair carries VLAN {}", vlan_list(&numbers)))
            .see(missing.iter().map(|(_, at)| *at))
            .see(first.values().chain(second.values()).copied().take(2))
            .because("After a failover the clients of such a VLAN have no network: the other VIOS does not bridge it.")
            .effect("Add the VLAN to a trunk adapter of the VIOS that lacks it, on the HMC, in the profile, too, or remove it from the other.")
            .harm("A VLAN that is added must be allowed at the switch port of that VIOS, too.")
            .weigh(0.9, 1.0),
    );
}

/// `sea-mtu`: jumbo frames on one of the pair.
pub(super) fn jumbo<'a>(view: &View<'a>, one: &Bridge<'a>, out: &mut Out) {
    let Some(two) = mate(view, one, out) else { return };
    let (Some(first), Some(second)) =
        (one.attribute(view, "jumbo_frames"), two.attribute(view, "jumbo_frames"))
    else {
        return;
    };
    if first.value == second.value {
        return;
    }
    let bridge = if first.value == "yes" { two } else { one };
    let change = Change::new(view, bridge.host, bridge.name).set("jumbo_frames", "yes");
    out.push(
        draft(view, "sea-mtu", Severity::Warning, one, two, "jumbo frames on one of the pair only".into())
            .see([first.at, second.at])
            .because("After a failover large frames are dropped: small packets pass, large transfers hang.")
            .change(&change)
            .effect(format!("Both take large frames. The real adapter and the switch port of {} must have them, too.", view.spoken(bridge.host)))
            .harm("The adapter is configured again for it: do it while it is the backup.")
            .weigh(0.88, 1.0),
    );
}

/// `sea-largesend`: off on one of the pair.
pub(super) fn large_send<'a>(view: &View<'a>, one: &Bridge<'a>, out: &mut Out) {
    const RULE: &str = "sea-largesend";
    let Some(two) = mate(view, one, out) else { return };
    let (Some(first), Some(second)) =
        (one.attribute(view, "largesend"), two.attribute(view, "largesend"))
    else {
        return;
    };
    if first.value == second.value {
        return;
    }
    let (off, on) = if first.value == "0" { (one, two) } else { (two, one) };
    let change = Change::new(view, off.host, off.name).live().set("largesend", "1");
    let now = off.failover().and_then(|failover| failover.state.as_ref());
    let now = now.filter(|state| state.value.starts_with("PRIMARY"));
    let when = match now {
        Some(state) => format!("It is the one that bridges now ({}).", state.value),
        None => {
            "After a failover to it the same traffic costs more processor time, or does not fit."
                .to_owned()
        }
    };
    out.push(
        off.draft(view, RULE, Severity::Warning, format!("largesend is off here and on at {}", view.object(on.host, on.name)))
            .see([first.at, second.at])
            .see(now.map(|state| state.at))
            .because("Without large send the bridge takes packets of one frame each from its clients, up to some forty times as many for the same bytes, and spends processor time on each.")
            .because(when)
            .change(&change)
            .effect("Clients that send large segments (mtu_bypass=on on AIX) hand them over whole, and the real adapter cuts them (large_send=yes there).")
            .harm("Clients of other systems must cope with large segments: try it in a quiet hour, and look at the receive errors of the clients on the same VIOS.")
            .weigh(0.8, 1.0),
    );
}
