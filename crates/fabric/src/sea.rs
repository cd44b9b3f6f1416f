//! What is wrong with a set of shared Ethernet adapters: rules over a plain description of one host's servers and clients.
//!
//! The rules are those that IBM's documents state or that its support checks for, and what is known to have looped networks.
//! What is not known of a configuration (`None`) breaks no rule.

use crate::finding::rules;
use std::collections::{BTreeMap, BTreeSet};

pub use crate::finding::Severity;

/// How a shared adapter takes part in failover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HaMode {
    /// It bridges whatever others do.
    Disabled,
    /// By priority.
    Auto,
    /// It yields to one that is `Auto`.
    Standby,
    /// Its VLANs are shared out between both.
    Sharing,
}

/// What a shared adapter says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It bridges all.
    Primary,
    /// It bridges none.
    Backup,
    /// It was told to bridge none.
    Standby,
    /// It bridges its part, and has the say.
    PrimarySharing,
    /// It bridges its part.
    BackupSharing,
}

/// How much of its VLANs a shared adapter bridges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BridgeMode {
    /// All.
    All,
    /// Some.
    Partial,
    /// None.
    None,
}

/// A virtual Ethernet adapter of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualAdapter {
    /// Such as `ent5`.
    pub name: String,
    /// The virtual switch that it is on.
    pub vswitch: String,
    /// Port VLAN ID.
    pub pvid: u16,
    /// More VLANs.
    pub vids: Vec<u16>,
    /// Trunk priority, if it may reach beyond the host; 1 is preferred.
    pub trunk: Option<u8>,
    /// Whether it passes frames now.
    pub active: Option<bool>,
    /// Whether it has buffers for control frames.
    pub control_buffers: Option<bool>,
}

/// A shared Ethernet adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedAdapter {
    /// Such as `ent10`.
    pub name: String,
    /// VLAN of untagged frames from the uplink.
    pub pvid: u16,
    /// The virtual adapter that gets them.
    pub pvid_adapter: String,
    /// All that it bridges, by name.
    pub virt_adapters: Vec<String>,
    /// The adapter of its control channel; without one, partners find each other on VLAN 4095.
    pub ctl_chan: Option<String>,
    /// How it takes part in failover.
    pub ha_mode: HaMode,
    /// The attribute of that name.
    pub adapter_reset: Option<bool>,
    /// What it says that it is.
    pub state: Option<State>,
    /// What it bridges.
    pub bridge_mode: Option<BridgeMode>,
    /// Which members of its uplink are down, and why, if it is an aggregate.
    pub down: Option<String>,
}

/// A server with all its virtual and shared adapters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Virtual adapters.
    pub adapters: Vec<VirtualAdapter>,
    /// Shared adapters.
    pub seas: Vec<SharedAdapter>,
}

/// A client's virtual adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAdapter {
    /// Whose it is.
    pub client: String,
    /// The virtual switch that it is on.
    pub vswitch: String,
    /// Port VLAN ID.
    pub pvid: u16,
}

rules! {
    UnknownAdapter "unknown-adapter" Fault "An adapter that is named is not there.",
        "Name an adapter of this server.";
    PvidDiffers "pvid-differs" Fault "The shared adapter's pvid is not the port VLAN ID of its pvid_adapter.",
        "Set pvid (-defaultid) to the port VLAN ID of the default adapter.";
    DefaultNotBridged "default-not-bridged" Fault "The pvid_adapter is not one of virt_adapters.",
        "Add it to virt_adapters (-vadapter).";
    AdapterReset "adapter-reset" Advice "adapter_reset is on: a failover resets the uplink.",
        "Set adapter_reset=no.";
    NotATrunk "not-a-trunk" Fault "A bridged adapter may not reach beyond the host.",
        "Make it a trunk adapter (access external network).";
    ControlIsTrunk "control-is-trunk" Loop "The control channel is a trunk adapter: its VLAN can be bridged.",
        "Use an adapter that is no trunk for ctl_chan.";
    ControlIsBridged "control-is-bridged" Loop "The VLAN of the control channel is also bridged, or of another pair's control channel.",
        "Give the control channel a VLAN of its own, which nothing else uses.";
    ControlBuffers "control-buffers" Fault "Without a control channel, the pvid_adapter needs control buffers.",
        "Set ctl_chan, or give the adapter control buffers.";
    StateAgainstMode "state-against-mode" Fault "State and bridge mode contradict each other.",
        "Look at the error log and the failover's counters; take the adapter out of service before anything else is changed.";
    ActiveAgainstMode "active-against-mode" Fault "A trunk adapter passes frames although its shared adapter bridges none, or none does although it bridges all.",
        "As for contradicting states.";
    VlanTwice "vlan-twice" Loop "Two trunk adapters of one server are in the same VLAN on the same virtual switch.",
        "Take the VLAN from one of them.";
    SwitchesDiffer "switches-differ" Fault "The trunk adapters of one shared adapter are on different virtual switches.",
        "Use adapters of one virtual switch.";
    PrioritiesDiffer "priorities-differ" Fault "The trunk adapters of one shared adapter have different priorities.",
        "Give all of them the same.";
    NoMate "no-mate" Fault "Failover is on, and no other server has a shared adapter with the same pvid on the same virtual switch.",
        "Make one, or set ha_mode=disabled.";
    FailoverOff "failover-off" Loop "Two servers bridge the same VLAN, and failover is off in one of them.",
        "Set ha_mode in both before the second one is connected: first the one with the better priority.";
    BridgedByStrangers "bridged-by-strangers" Loop "Shared adapters that are not partners bridge the same VLAN.",
        "Leave each VLAN to one pair: same pvid, two servers.";
    ControlDiffers "control-differs" Loop "Partners do not share a control channel: different VLANs, or only one has it. Both become primary.",
        "Use adapters of the same port VLAN ID and virtual switch for ctl_chan in both, or in none.";
    PriorityEqual "priority-equal" Loop "Partners have the same priority.",
        "Give each its own trunk priority.";
    VlansDiffer "vlans-differ" Fault "Partners do not bridge the same VLANs: after a failover some are cut off.",
        "Make the sets of trunk adapters equal, VLAN by VLAN.";
    BothBridge "both-bridge" Loop "Both partners bridge all.",
        "Set ha_mode=standby in one at once, then look for what keeps the partners from hearing each other.";
    NeitherBridges "neither-bridges" Fault "No partner bridges.",
        "Set ha_mode=auto in one.";
    SharingAlone "sharing-alone" Advice "Only one partner is set to sharing: it is an ordinary failover.",
        "Set ha_mode=sharing in both, the primary one first.";
    SharingOneTrunk "sharing-one-trunk" Advice "There is only one trunk adapter, so there is nothing to share out.",
        "Spread the VLANs over two trunk adapters or more.";
    MemberDown "member-down" Fault "A member of the aggregated uplink is down.",
        "See its reason (uplink show), then to its cable, the port outside, and whether its interface is there.";
    ClientOnTrunkPvid "client-on-trunk-pvid" Fault "A client uses the port VLAN ID of a trunk adapter that is not the default: its frames leave untagged, or not at all.",
        "Give that trunk adapter a port VLAN ID that nothing else uses, and the client's VLAN as an additional one.";
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What.
    pub rule: Rule,
    /// Where: server and adapter, both of two partners, or the client.
    pub place: String,
    /// About what: adapters or VLANs; may be empty.
    pub about: String,
}

/// A shared adapter with its server and what it names.
struct Seen<'a> {
    server: &'a Server,
    sea: &'a SharedAdapter,
    trunks: Vec<&'a VirtualAdapter>,
    control: Option<&'a VirtualAdapter>,
}

impl<'a> Seen<'a> {
    fn place(&self) -> String {
        format!("{}/{}", self.server.name, self.sea.name)
    }

    fn vswitch(&self) -> Option<&'a str> {
        self.trunks.first().map(|trunk| trunk.vswitch.as_str())
    }

    fn priority(&self) -> Option<u8> {
        self.trunks.iter().find_map(|trunk| trunk.trunk)
    }

    /// Virtual switch and VLAN of all that it bridges.
    fn vlans(&self) -> BTreeSet<(&'a str, u16)> {
        self.trunks.iter().flat_map(|trunk| vlans(trunk)).collect()
    }

    fn control_vlan(&self) -> Option<(&'a str, u16)> {
        self.control.map(|control| (control.vswitch.as_str(), control.pvid))
    }

    fn is_mate(&self, other: &Seen<'_>) -> bool {
        let apart = self.server.name != other.server.name;
        apart && self.sea.pvid == other.sea.pvid && self.vswitch() == other.vswitch()
    }
}

fn vlans(adapter: &VirtualAdapter) -> impl Iterator<Item = (&str, u16)> {
    let vids = adapter.vids.iter().chain([&adapter.pvid]);
    vids.map(|vid| (adapter.vswitch.as_str(), *vid))
}

/// Everything that is wrong with the servers of one host, worst first.
#[must_use]
pub fn check(servers: &[Server], clients: &[ClientAdapter]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut seen = Vec::new();
    for server in servers {
        for sea in &server.seas {
            let named = |name: &str| server.adapters.iter().find(|adapter| adapter.name == name);
            let control = sea.ctl_chan.as_deref();
            let names = sea.virt_adapters.iter().map(String::as_str).chain(control);
            let missing =
                names.chain([sea.pvid_adapter.as_str()]).filter(|name| named(name).is_none());
            let place = format!("{}/{}", server.name, sea.name);
            for name in missing.collect::<BTreeSet<_>>() {
                let about = name.to_owned();
                found.push(Finding { rule: Rule::UnknownAdapter, place: place.clone(), about });
            }
            let trunks = sea.virt_adapters.iter().filter_map(|name| named(name)).collect();
            seen.push(Seen { server, sea, trunks, control: control.and_then(named) });
        }
    }
    for one in &seen {
        let mut say = |rule, about: String| found.push(Finding { rule, place: one.place(), about });
        alone(one, &mut say);
        states(one, &mut say);
        control(one, &seen, &mut say);
        let mates = seen.iter().filter(|other| one.is_mate(other)).count();
        if one.sea.ha_mode != HaMode::Disabled && mates == 0 {
            say(Rule::NoMate, format!("pvid {}", one.sea.pvid));
        }
    }
    for (index, one) in seen.iter().enumerate() {
        for other in &seen[index + 1..] {
            let place = format!("{} and {}", one.place(), other.place());
            let mut say =
                |rule, about: String| found.push(Finding { rule, place: place.clone(), about });
            let pair =
                one.is_mate(other) && seen.iter().filter(|third| one.is_mate(third)).count() == 1;
            between(one, other, pair, &mut say);
        }
    }
    for client in clients {
        let taken = seen.iter().flat_map(|one| one.trunks.iter().map(move |trunk| (one, trunk)));
        let mut taken = taken.filter(|(one, trunk)| trunk.name != one.sea.pvid_adapter);
        let hit =
            taken.find(|(_, trunk)| (&trunk.vswitch, trunk.pvid) == (&client.vswitch, client.pvid));
        if let Some((one, trunk)) = hit {
            let about = format!("VLAN {} of {}, {}", client.pvid, one.place(), trunk.name);
            found.push(Finding {
                rule: Rule::ClientOnTrunkPvid,
                place: client.client.clone(),
                about,
            });
        }
    }
    found.sort_by_key(|finding| (finding.rule.severity(), finding.clone()));
    found.dedup();
    found
}

/// Rules on one shared adapter as it is configured.
fn alone(one: &Seen<'_>, say: &mut impl FnMut(Rule, String)) {
    let sea = one.sea;
    let default = one.server.adapters.iter().find(|adapter| adapter.name == sea.pvid_adapter);
    if let Some(default) = default.filter(|default| default.pvid != sea.pvid) {
        say(
            Rule::PvidDiffers,
            format!("{} against {} of {}", sea.pvid, default.pvid, default.name),
        );
    }
    if !sea.virt_adapters.contains(&sea.pvid_adapter) {
        say(Rule::DefaultNotBridged, sea.pvid_adapter.clone());
    }
    if sea.adapter_reset == Some(true) {
        say(Rule::AdapterReset, String::new());
    }
    if let Some(down) = &sea.down {
        say(Rule::MemberDown, down.clone());
    }
    for trunk in one.trunks.iter().filter(|trunk| trunk.trunk.is_none()) {
        say(Rule::NotATrunk, trunk.name.clone());
    }
    let discovers = sea.ha_mode != HaMode::Disabled && sea.ctl_chan.is_none();
    if discovers && default.is_some_and(|default| default.control_buffers == Some(false)) {
        say(Rule::ControlBuffers, sea.pvid_adapter.clone());
    }
    if one.trunks.iter().any(|trunk| Some(trunk.vswitch.as_str()) != one.vswitch()) {
        say(Rule::SwitchesDiffer, String::new());
    }
    if one.trunks.iter().any(|trunk| trunk.trunk.is_some() && trunk.trunk != one.priority()) {
        say(Rule::PrioritiesDiffer, String::new());
    }
    if sea.ha_mode == HaMode::Sharing && one.trunks.len() < 2 {
        say(Rule::SharingOneTrunk, String::new());
    }
    let mut users: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    let trunks = one.server.adapters.iter().filter(|adapter| adapter.trunk.is_some());
    for (adapter, vlan) in
        trunks.flat_map(|adapter| vlans(adapter).map(move |vlan| (adapter, vlan)))
    {
        let users: &mut Vec<&str> = users.entry(vlan).or_default();
        if !users.contains(&adapter.name.as_str()) {
            users.push(&adapter.name);
        }
    }
    for ((vswitch, vid), users) in users {
        let own = users.iter().any(|name| sea.virt_adapters.iter().any(|one| one == name));
        if own && users.len() > 1 {
            say(Rule::VlanTwice, format!("VLAN {vid} on {vswitch}: {}", users.join(", ")));
        }
    }
}

/// Rules on what a shared adapter says of itself.
fn states(one: &Seen<'_>, say: &mut impl FnMut(Rule, String)) {
    let Some(mode) = one.sea.bridge_mode else { return };
    let expected = one.sea.state.map(|state| match state {
        State::Primary => BridgeMode::All,
        State::Backup | State::Standby => BridgeMode::None,
        State::PrimarySharing | State::BackupSharing => BridgeMode::Partial,
    });
    if expected.is_some_and(|expected| expected != mode) {
        say(Rule::StateAgainstMode, String::new());
    }
    let wrong = match mode {
        BridgeMode::All => false,
        BridgeMode::Partial => return,
        BridgeMode::None => true,
    };
    for trunk in one.trunks.iter().filter(|trunk| trunk.active == Some(wrong)) {
        say(Rule::ActiveAgainstMode, trunk.name.clone());
    }
}

/// Rules on the control channel, which nothing may bridge.
fn control(one: &Seen<'_>, all: &[Seen<'_>], say: &mut impl FnMut(Rule, String)) {
    let (Some(control), Some(vlan)) = (one.control, one.control_vlan()) else { return };
    if control.trunk.is_some() {
        say(Rule::ControlIsTrunk, control.name.clone());
    }
    let strangers = all.iter().filter(|other| !std::ptr::eq(*other, one) && !one.is_mate(other));
    let shared = strangers.filter(|other| other.control_vlan() == Some(vlan)).map(Seen::place);
    let bridging = all.iter().filter(|other| other.vlans().contains(&vlan)).map(Seen::place);
    let users: BTreeSet<String> = shared.chain(bridging).collect();
    if !users.is_empty() {
        let users: Vec<String> = users.into_iter().collect();
        say(Rule::ControlIsBridged, format!("VLAN {}: {}", vlan.1, users.join(", ")));
    }
}

/// Rules on two shared adapters; `pair` says that they are partners and there is no third.
fn between(one: &Seen<'_>, other: &Seen<'_>, pair: bool, say: &mut impl FnMut(Rule, String)) {
    let (ours, theirs) = (one.vlans(), other.vlans());
    let common: Vec<String> = ours.intersection(&theirs).map(|(_, vid)| vid.to_string()).collect();
    let modes = [one.sea.ha_mode, other.sea.ha_mode];
    if !pair {
        // Two of one server that share a trunk adapter are strangers as well.
        if !common.is_empty() {
            say(Rule::BridgedByStrangers, format!("VLAN {}", common.join(", ")));
        }
        return;
    }
    if modes.contains(&HaMode::Disabled) {
        if !common.is_empty() {
            say(Rule::FailoverOff, format!("VLAN {}", common.join(", ")));
        }
        return;
    }
    if one.control_vlan() != other.control_vlan() {
        say(Rule::ControlDiffers, String::new());
    }
    if one.priority().is_some() && one.priority() == other.priority() {
        say(Rule::PriorityEqual, String::new());
    }
    let apart: Vec<String> =
        ours.symmetric_difference(&theirs).map(|(_, vid)| vid.to_string()).collect();
    if !apart.is_empty() {
        say(Rule::VlansDiffer, format!("VLAN {}", apart.join(", ")));
    }
    match (one.sea.bridge_mode, other.sea.bridge_mode) {
        (Some(BridgeMode::All), Some(mode)) | (Some(mode), Some(BridgeMode::All))
            if mode != BridgeMode::None =>
        {
            say(Rule::BothBridge, String::new());
        }
        (Some(BridgeMode::None), Some(BridgeMode::None)) => {
            say(Rule::NeitherBridges, String::new());
        }
        _ => {}
    }
    if modes.iter().filter(|mode| **mode == HaMode::Sharing).count() == 1 {
        say(Rule::SharingAlone, String::new());
    }
}

#[cfg(test)]
mod tests;
