//! Shared Ethernet adapters: `mkvdev -sea`, `lsmap -net` and `entstat`.

use super::act::given;
use super::entstat::{
    self, AGGREGATE, Aggregate, EntReport, Frames, HighAvailability, Lan, SHARED, SeaReport,
    UPLINK, UPLINK_PACKET, UPLINK_XDP, VIRTUAL, Way,
};
use super::maps::{self, Backing, ListOptions, NET_FIELDS, NetMap};
use super::media::create;
use super::system::{System, not_found, number, text};
use super::words::Words;
use super::{Context, seastat, wrong};
use crate::commands::sea_clients;
use crate::exit::Failure;
use control::model::resolve::network::vlans;
use control::server::{ObjectView, PassedView};
use fabric::attribute::{Attributes, Object};
use fabric::san::words;
use protocol::stats::QueueCounter;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `mkvdev -sea`
pub(super) fn make(context: &Context<'_>, typed: &Words) -> Result<String, Failure> {
    let help = "`mkvdev -sea ent1 -vadapter ent5 -default ent5 -defaultid 1`";
    let one = |flag: &str| {
        let missing = || wrong(format!("mkvdev -sea needs {flag}"), help);
        typed.one(flag).ok_or_else(missing)
    };
    let vlan: u16 =
        one("-defaultid")?.parse().map_err(|_| wrong("-defaultid is no number of a VLAN", help))?;
    let mut attributes = given(typed.all("-attr"), Object::Sea)?;
    for (name, value) in [
        ("real_adapter", json!(one("-sea")?)),
        ("virt_adapters", json!(one("-vadapter")?)),
        ("pvid_adapter", json!(one("-default")?)),
        ("pvid", json!(vlan)),
    ] {
        attributes.insert(name.to_owned(), value);
    }
    let name = match typed.one("-dev") {
        Some(name) => name.to_owned(),
        None => free_name(&System::load(context)?),
    };
    create(context, Object::Sea, &name, Value::Object(attributes))?;
    Ok(format!("{name} Available"))
}

/// Attributes of the original that there are not, with why, or what there is instead.
const NOT_BUILT: &[(&[&str], &str)] = &[
    (
        &["health_time", "link_time", "adapter_reset"],
        "there is no such part of failover: see ha_mode, ctl_chan, token, priority, netaddr, fb_delay, noauto_failback and link",
    ),
    (
        &["nthreads", "queue_size", "hash_algo"],
        "a bridge has no threads of its own: with thread=1 one channel bridges",
    ),
    (&["largesend", "large_receive"], "TCP segments always pass as they are"),
    (&["jumbo_frames"], "set `mtu` of the network"),
    (&["gvrp", "lldpsvc", "qos_mode", "iso_mode"], "leave it out"),
];

/// Says so of an attribute that there is not.
pub(super) fn refuse_what_is_not_built(name: &str, value: &str) -> Result<(), Failure> {
    match NOT_BUILT.iter().find(|(names, _)| names.contains(&name)) {
        Some((_, help)) => Err(wrong(format!("{name}={value} is not built"), help)),
        None => Ok(()),
    }
}

/// The first of `ent0`, `ent1`, … that no device has.
pub(super) fn free_name(system: &System) -> String {
    let taken: Vec<String> = system.devices().into_iter().map(|(_, device)| device.name).collect();
    let names = (0_u32..).map(|number| format!("ent{number}"));
    names.into_iter().find(|name| !taken.contains(name)).expect("there are more numbers")
}

/// `lsmap -net`
pub(super) fn map(system: &System, typed: &Words) -> Result<String, Failure> {
    let trunks: Vec<&ObjectView> = match (typed.one("-vadapter"), typed.has("-all")) {
        (Some(name), false) => vec![system.trunk(name).ok_or_else(|| not_found(name))?],
        (None, true) => system.trunks.iter().collect(),
        _ => return Err(wrong("lsmap needs -all or -vadapter ADAPTER", "give one of the two")),
    };
    let fields = typed.fields(NET_FIELDS)?;
    let maps: Vec<NetMap> = trunks.into_iter().map(|trunk| system.net_map(trunk)).collect();
    Ok(maps::net(&maps, ListOptions { delimiter: typed.one("-fmt"), fields }))
}

/// `entstat`
pub(super) fn entstat(context: &Context<'_>, typed: &Words) -> Result<String, Failure> {
    let Some(name) = typed.plain.first() else {
        return Err(wrong("entstat needs a device", "`entstat -all ent6`"));
    };
    let system = System::load(context)?;
    let whole = typed.has("-all") || typed.has("-d");
    let is_its = |sea: &&ObjectView| sea.name == *name;
    let sea = system.seas.iter().find(is_its).or_else(|| system.sea_of(name));
    let passed = sea.map(|sea| passed(context, sea)).unwrap_or_default();
    if let Some(sea) = sea.filter(is_its) {
        let report = system.sea_report(sea, &passed)?;
        let text = if whole { entstat::shared(&report) } else { entstat::adapter(&report.own) };
        return Ok(text);
    }
    let mut report = system.ent_report(name, &passed)?;
    report.lan = report.lan.filter(|_| whole);
    Ok(if whole { entstat::whole(&report) } else { entstat::adapter(&report) })
}

/// What trunk adapters of a shared one have passed, by name, where it is counted, and its data plane can be asked.
fn passed(context: &Context<'_>, sea: &ObjectView) -> Passed {
    if text(&sea.effective, "accounting") != Some("enabled") {
        return Passed::new();
    }
    let view = sea_clients::ask(&context.client, &sea.name, false);
    let trunks = view.map(|view| view.trunks).unwrap_or_default();
    trunks.into_iter().map(|one| (one.trunk, one.passed)).collect()
}

type Passed = BTreeMap<String, PassedView>;

/// A trunk adapter sends what came from the world outside, and receives what goes there.
fn of_trunk(passed: PassedView) -> Frames {
    let PassedView { sent_frames, sent_bytes, received_frames, received_bytes } = passed;
    Frames {
        sent: received_frames,
        sent_bytes: received_bytes,
        received: sent_frames,
        received_bytes: sent_bytes,
        ..Frames::default()
    }
}

/// `seastat`
pub(super) fn seastat(context: &Context<'_>, typed: &Words) -> Result<String, Failure> {
    let Some(name) = typed.one("-d") else {
        return Err(wrong("seastat needs -d and a shared Ethernet adapter", "`seastat -d ent6`"));
    };
    let clear = typed.has("-c");
    let criteria = seastat::criteria(typed.all("-s"))?;
    if clear && !criteria.is_empty() {
        return Err(wrong("-c clears all that is counted", "leave -s out"));
    }
    let mut clients = sea_clients::ask(&context.client, name, clear)?.clients;
    if clear {
        return Ok(String::new());
    }
    clients.retain(|one| criteria.iter().all(|criterion| criterion.fits(one)));
    Ok(seastat::report(name, &clients))
}

impl System {
    fn trunk(&self, name: &str) -> Option<&ObjectView> {
        self.trunks.iter().find(|trunk| trunk.name == name)
    }

    fn uplink(&self, name: &str) -> Option<&ObjectView> {
        self.status.uplinks.iter().find(|uplink| uplink.name == name)
    }

    /// The shared adapter that bridges a trunk adapter.
    fn sea_of(&self, trunk: &str) -> Option<&ObjectView> {
        let bridges = |sea: &&ObjectView| {
            let names = text(&sea.effective, "virt_adapters").unwrap_or_default();
            words(names).any(|name| name == trunk)
        };
        self.seas.iter().find(bridges)
    }

    /// Where a device of a network is: the original has a place for each.
    fn net_place(&self, name: &str, network: &str) -> String {
        self.place_at(self.home_of_network(network), &format!("V1-C-{name}"))
    }

    fn net_map(&self, trunk: &ObjectView) -> NetMap {
        let network = text(&trunk.effective, "network").unwrap_or_default();
        let sea = self.sea_of(&trunk.name).map(|sea| {
            let name = text(&sea.effective, "real_adapter").unwrap_or_default();
            let backing = Backing {
                name: name.to_owned(),
                available: self.uplink(name).is_some_and(is_connected),
                physloc: self.net_place(name, network),
            };
            (sea.name.clone(), backing)
        });
        NetMap { name: trunk.name.clone(), physloc: self.net_place(&trunk.name, network), sea }
    }

    fn sea_report(&self, sea: &ObjectView, passed: &Passed) -> Result<SeaReport, Failure> {
        let names = text(&sea.effective, "virt_adapters").unwrap_or_default();
        let trunks: Vec<EntReport> =
            words(names).map(|name| self.ent_report(name, passed)).collect::<Result<_, _>>()?;
        let real = text(&sea.effective, "real_adapter").unwrap_or_default();
        let real = self.ent_report(real, passed)?;
        let (name, device_type) = (sea.name.clone(), SHARED.to_owned());
        let own = EntReport { name, device_type, aggregate: None, ..real.clone() };
        let network = trunks.iter().find_map(|trunk| self.network(&trunk.lan.as_ref()?.network));
        let mtu = network.and_then(|network| number(&network.effective, "mtu"));
        let failover = sea.failover.as_ref().map(|view| HighAvailability {
            state: view.state.clone(),
            bridge_mode: view.bridge_mode.clone(),
            primary: view.takeovers,
            mode: text(&sea.effective, "ha_mode").unwrap_or_default().to_owned(),
            priority: number(&sea.effective, "priority").unwrap_or_default(),
        });
        let thread = number(&sea.effective, "thread") == Some(1);
        Ok(SeaReport { own, thread, jumbo: mtu > Some(1500), real, trunks, failover })
    }

    /// An adapter that is no shared one.
    fn ent_report(&self, name: &str, passed: &Passed) -> Result<EntReport, Failure> {
        let report = |device_type: &str, home: &str, up| EntReport {
            name: name.to_owned(),
            device_type: device_type.to_owned(),
            mac: None,
            seconds: self.seconds(home, None),
            up,
            frames: None,
            lan: None,
            aggregate: None,
        };
        if let Some(trunk) = self.trunk(name) {
            let sea = self.sea_of(name);
            let real = sea.and_then(|sea| text(&sea.effective, "real_adapter"));
            let up = real.and_then(|real| self.uplink(real)).is_some_and(is_connected);
            let priority = sea.and_then(|sea| number(&sea.effective, "priority")).unwrap_or(1);
            let mut lan = lan(&trunk.effective);
            // In failover it passes frames if one of its VLANs is bridged.
            let failover = sea.and_then(|sea| sea.failover.as_ref());
            let bridged = failover.is_none_or(|failover| {
                let mut own = lan.vlans.iter().chain([&lan.pvid]);
                own.any(|vlan| failover.vlans.contains(vlan))
            });
            lan.trunk = Some((priority, up && bridged));
            let home = self.home_of_network(&lan.network);
            let frames = passed.get(name).copied().map(of_trunk);
            return Ok(EntReport { frames, lan: Some(lan), ..report(VIRTUAL, home, up) });
        }
        let frames = Some(self.frames(name));
        if let Some(uplink) = self.uplink(name) {
            let report = report(
                device_type(&uplink.effective),
                self.home_of_uplink(uplink),
                is_connected(uplink),
            );
            return Ok(EntReport { frames, aggregate: self.aggregate(uplink, &report), ..report });
        }
        let card = self.adapter(name).filter(|adapter| adapter.kind == "ethernet");
        let card = card.ok_or_else(|| not_found(name))?;
        let mac = text(&card.effective, "mac").map(str::to_owned);
        let lan = Some(lan(&card.effective));
        Ok(EntReport { mac, frames, lan, ..report(VIRTUAL, &card.dataplane, card.has_client()) })
    }

    /// What an uplink is made of that has members; `whole` is its own report.
    fn aggregate(&self, uplink: &ObjectView, whole: &EntReport) -> Option<Aggregate> {
        let named = text(&uplink.effective, "members")?;
        let its: Vec<&ObjectView> = words(named).filter_map(|name| self.uplink(name)).collect();
        let first = its.first().is_some_and(|first| first.state.as_deref() == Some("active"));
        let member = |member: &ObjectView| EntReport {
            name: member.name.clone(),
            device_type: device_type(&member.effective).to_owned(),
            up: is_connected(member),
            frames: Some(self.frames(&member.name)),
            ..whole.clone()
        };
        let way = match text(&uplink.effective, "mode") {
            Some("hash") => Way::Each,
            _ => Way::One { first },
        };
        Some(Aggregate { way, members: its.into_iter().map(member).collect() })
    }

    /// The data plane that has an uplink.
    fn home_of_uplink(&self, uplink: &ObjectView) -> &str {
        let of_sea = || {
            let is_its = |sea: &&ObjectView| {
                text(&sea.effective, "real_adapter") == Some(uplink.name.as_str())
            };
            let sea = self.seas.iter().find(is_its)?;
            let trunk = words(text(&sea.effective, "virt_adapters")?).next()?;
            text(&self.trunk(trunk)?.effective, "network")
        };
        let network = text(&uplink.effective, "network").or_else(of_sea);
        self.home_of_network(network.unwrap_or_default())
    }

    fn frames(&self, name: &str) -> Frames {
        // Of an aggregated uplink all of its members'.
        let members = self.uplink(name).and_then(|uplink| text(&uplink.effective, "members"));
        let names = words(members.unwrap_or_default()).chain([name]);
        let queues: Vec<_> = names.flat_map(|name| self.queues(name).into_values()).collect();
        let sum = |counter: QueueCounter| {
            let name = counter.info().name;
            queues.iter().filter_map(|queue| queue.get(name)).sum::<u64>()
        };
        let drops = QueueCounter::ALL.iter().copied();
        let drops = drops.filter(|counter| counter.info().name.starts_with("drop_"));
        Frames {
            sent: sum(QueueCounter::TxFrames),
            sent_bytes: sum(QueueCounter::TxBytes),
            received: sum(QueueCounter::RxFrames),
            received_bytes: sum(QueueCounter::RxBytes),
            refused: REFUSED.into_iter().map(sum).sum::<u64>(),
            dropped: drops.map(sum).sum::<u64>(),
            filtered: sum(QueueCounter::DropVlanFilter),
            reserved: sum(QueueCounter::DropMacIeeeMacControl),
            failed: sum(QueueCounter::DropFailure),
            no_memory: sum(QueueCounter::DropNoMem),
        }
    }
}

/// Why a frame that came by an uplink has no destination at all.
const REFUSED: [QueueCounter; 9] = [
    QueueCounter::DropPktTooSmall,
    QueueCounter::DropPktTooBig,
    QueueCounter::DropMacInvalidSource,
    QueueCounter::DropMacIeeeMacControl,
    QueueCounter::DropVlanFilter,
    QueueCounter::DropInvalidHwol,
    QueueCounter::DropSpoofMac,
    QueueCounter::DropSamePort,
    QueueCounter::DropNoTxTarget,
];

fn is_connected(uplink: &ObjectView) -> bool {
    ["connected", "active", "backup"].map(Some).contains(&uplink.state.as_deref())
}

/// What an uplink is.
pub(super) fn device_type(effective: &Attributes) -> &'static str {
    match (text(effective, "members"), text(effective, "kind")) {
        (Some(_), _) => AGGREGATE,
        (None, Some("packet")) => UPLINK_PACKET,
        (None, Some("xdp")) => UPLINK_XDP,
        (None, _) => UPLINK,
    }
}

/// A virtual adapter in its network, which is no trunk adapter.
fn lan(effective: &Attributes) -> Lan {
    let pvid = number(effective, "pvid").and_then(|vlan| u16::try_from(vlan).ok());
    Lan {
        pvid: pvid.unwrap_or(1),
        vlans: vlans(text(effective, "vlans").unwrap_or_default()).unwrap_or_default(),
        network: text(effective, "network").unwrap_or_default().to_owned(),
        trunk: None,
    }
}
