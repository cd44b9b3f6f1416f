//! Why a virtual Ethernet adapter is down, or slower than it could be.

use crate::model::Desired;
use crate::model::loss::has_client;
use crate::model::resolve::network::{connection, sea_of, vlans};
use crate::server::objects::MemberView;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attributes, Object, attr};
use protocol::message::{AdapterState, AdapterStatus, Status, UplinkSpec};
use protocol::stats::{QueueCounter, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// Something that keeps frames away, or makes them cost more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CardFinding {
    /// What is so.
    pub what: String,
    /// What mends it.
    pub fix: String,
}

/// Frames that were lost for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LostFrames {
    /// The reason; the counter is `drop_` and this.
    pub reason: String,
    /// How many, since the data plane was started.
    pub frames: u64,
    /// What it means.
    pub meaning: String,
    /// What to look at.
    pub fix: String,
}

/// A virtual Ethernet adapter: what keeps frames away from it, and what makes it slow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CardExplanation {
    /// Whether frames can pass.
    pub up: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub down: Vec<CardFinding>,
    /// What makes it slower than it could be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow: Vec<CardFinding>,
    /// Frames that the client sent and got.
    pub sent: u64,
    /// Those that it got.
    pub received: u64,
    /// Frames that were lost on the way to it or from it, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostFrames>,
}

/// What to look at when frames are lost for that reason.
fn remedy(reason: &str) -> &'static str {
    match reason {
        "rx_no_buffer" | "full_ring" => {
            "the receiver is too slow, or its driver is not running: give it CPU time, more queues, or send less"
        }
        "vlan_filter" | "no_tx_target" => {
            "compare `pvid` and `vlans` of both sides; see whether the receiver is connected"
        }
        "port_down" => "see whether the client of the other adapter has gone",
        "mtu_exceeded" => "lower the MTU in the guest, or raise that of the network",
        "spoof_mac" => "give the guest the address of `mac`, or set `any_mac`",
        "spoof_arp" | "spoof_ip" | "spoof_nd" => {
            "give the guest an address of `addresses`, or add its own there; one that forwards for others needs theirs"
        }
        "dhcp_server" => "stop the DHCP server in the guest, or set `dhcp_server`",
        "router_advert" => "stop what advertises routes in the guest (radvd), or set `router`",
        "header_chain" => {
            "it sends what cannot be judged while it is held to `addresses`, `dhcp_server` or `router`; lift these if it has to"
        }
        "qos_drop" => {
            "it sends more than `limit_tx_bytes_per_s` or `limit_tx_frames_per_s` allow: raise them, or their bursts"
        }
        "rx_qos_drop" => {
            "it sends to an adapter more than its `limit_rx_bytes_per_s` or `limit_rx_frames_per_s` allow: raise them there"
        }
        "storm_broadcast" | "storm_multicast" | "storm_unknown" => {
            "find what sends so many to all (a loop behind the guest?), or raise `storm_broadcast`, `storm_multicast` or `storm_unknown`"
        }
        "private_port" => "none if these two shall not talk; else take `private` off one of them",
        "mirror_copy" => {
            "its own frames are not lost: who watches it is too slow or away, see the adapter that its `mirror` names"
        }
        "mirror_only" => "a monitor sends nothing: take `monitor` off it if it shall",
        "rx_buffer_too_small" => "use a driver with mergeable buffers (QEMU: mrg_rxbuf=on)",
        "standby" => {
            "another server bridges the VLAN, or this one has no token: see `trunkline sea show`"
        }
        "failure" => "take the uplink's interface up (`ip link set NAME up`)",
        "invalid_hwol" | "guest_memory" | "pkt_too_small" => "the sender's driver is broken",
        "same_port" => "none: the receiver is behind the same adapter",
        _ => "`trunkline network trace --lost` shows the frames",
    }
}

fn finding(what: impl Into<String>, fix: impl Into<String>) -> CardFinding {
    CardFinding { what: what.into(), fix: fix.into() }
}

/// The VLANs of an adapter.
fn vlans_of(set: &Attributes) -> BTreeSet<u16> {
    let pvid = u16::try_from(attr::adapter::PVID.value(set)).unwrap_or_default();
    let more = vlans(attr::adapter::VLANS.value(set)).unwrap_or_default();
    more.into_iter().chain([pvid]).collect()
}

/// An adapter as it is now. None: it is no virtual Ethernet adapter.
pub(super) fn explain(
    desired: &Desired,
    name: &str,
    adapter: Option<&AdapterStatus>,
    account: Option<&Status>,
    snapshot: Option<&Snapshot>,
) -> Option<CardExplanation> {
    let set = desired[Object::Adapter].get(name)?;
    if attr::adapter::KIND.value(set) != AdapterKind::Ethernet {
        return None;
    }
    let count = |counter: QueueCounter| {
        let queues = snapshot.iter().flat_map(|snapshot| &snapshot.queues);
        queues.filter(|queue| queue.adapter == name).map(|queue| queue.get(counter)).sum::<u64>()
    };
    let down = down(desired, name, set, adapter, account);
    let slow = adapter.filter(|adapter| has_client(adapter)).map(|adapter| {
        let bridges = account.map(|account| bridges(desired, set, account)).unwrap_or_default();
        [slow(set, adapter), bridges].concat()
    });
    let drops = QueueCounter::ALL.iter().filter_map(|counter| {
        let info = counter.info();
        let reason = info.name.strip_prefix("drop_")?;
        let frames = Some(count(*counter)).filter(|frames| *frames > 0)?;
        let meaning = info.help.strip_prefix("Frames that were lost: ").unwrap_or(info.help);
        let (reason, meaning) = (reason.to_owned(), meaning.to_owned());
        Some(LostFrames { fix: remedy(&reason).to_owned(), reason, frames, meaning })
    });
    let mut lost: Vec<LostFrames> = drops.collect();
    lost.sort_by_key(|lost| std::cmp::Reverse(lost.frames));
    Some(CardExplanation {
        up: down.is_empty(),
        down,
        slow: slow.unwrap_or_default(),
        sent: count(QueueCounter::TxFrames),
        received: count(QueueCounter::RxFrames),
        lost,
    })
}

fn down(
    desired: &Desired,
    name: &str,
    set: &Attributes,
    adapter: Option<&AdapterStatus>,
    account: Option<&Status>,
) -> Vec<CardFinding> {
    let home = desired.dataplane_of_adapter(name);
    let Some(account) = account else {
        let what = format!("data plane `{home}` does not answer");
        return vec![finding(what, "see `trunkline status`; it is started again by itself")];
    };
    let mut all = Vec::new();
    match adapter.map(|adapter| (adapter.state, adapter.reason.as_deref().unwrap_or("unknown"))) {
        None => all.push(finding("the data plane has not made it yet", "see `trunkline status`")),
        Some((AdapterState::Listening | AdapterState::Connecting, _)) => all.push(finding(
            "no client is connected",
            format!("start the virtual machine with what `trunkline emit qemu {name}` prints"),
        )),
        Some((AdapterState::Failed, why)) => {
            all.push(finding(format!("its socket could not be made: {why}"), "see `reason`"));
        }
        Some((AdapterState::Broken, why)) => all.push(finding(
            format!("the client broke a rule: {why}"),
            "have the client reset the device: load its driver again, or restart it",
        )),
        Some((AdapterState::Connected, _)) => all.push(finding(
            "the client is connected, and its driver uses no queue",
            "load the driver in the guest (virtio_net), and take its interface up",
        )),
        Some((AdapterState::Running, _)) => {}
    }
    if attr::adapter::MONITOR.value(set) {
        let named = |set: &Attributes| attr::adapter::MIRROR.of(set) == Some(name);
        let watched = desired[Object::Adapter].values().any(named)
            || desired[Object::Uplink]
                .values()
                .any(|set| attr::uplink::MIRROR.of(set) == Some(name));
        if !watched {
            let what = "it is a monitor, and nobody names it as `mirror`";
            all.push(finding(what, "set `mirror` of those that it shall watch"));
        }
        return all;
    }
    let (mine, network) = (vlans_of(set), attr::adapter::NETWORK.of(set));
    let others = desired[Object::Adapter].iter().filter(|(other, its)| {
        let ethernet = attr::adapter::KIND.value(its) == AdapterKind::Ethernet;
        *other != name && ethernet && attr::adapter::NETWORK.of(its) == network
    });
    let near = others.filter(|(_, its)| !vlans_of(its).is_disjoint(&mine)).count();
    let uplinks = desired[Object::Uplink].iter().filter_map(|(uplink, its)| {
        let way = connection(desired, uplink, its)?;
        let shared = way.vids.iter().chain([&way.pvid]).any(|vid| mine.contains(vid));
        (Some(way.network) == network && shared).then_some((uplink, way))
    });
    let mut ways = 0;
    for (uplink, way) in uplinks {
        ways += 1;
        let Some(status) = account.uplinks.iter().find(|one| one.spec.name == *uplink) else {
            let what = format!("its way out of the host, uplink `{uplink}`, is not connected");
            all.push(finding(what, format!("see `trunkline uplink show {uplink}`")));
            continue;
        };
        if let Some(down) = MemberView::trouble(&status.members) {
            let what = format!("of uplink `{uplink}`, its way out of the host, {down}");
            let fix = "see to the cable, the port outside, and whether the interface is there";
            all.push(finding(what, fix));
        }
        let Some(failover) = &status.failover else { continue };
        let away = way.vids.iter().chain([&way.pvid]);
        let away = away.filter(|vid| mine.contains(vid) && !failover.bridges.contains(vid));
        let away: Vec<String> = away.map(ToString::to_string).collect();
        if !away.is_empty() {
            let sea = sea_of(desired, uplink).map_or(uplink.as_str(), |(sea, _)| sea);
            let (away, state) = (away.join(","), &failover.state);
            let why = &failover.reason;
            let what = format!("`{sea}` is {state} ({why}) and does not bridge VLANs {away}");
            let fix = "connect the machine to the partner's network as well, or see `sea show`";
            all.push(finding(what, fix));
        }
    }
    if near == 0 && ways == 0 {
        let vlans: Vec<String> = mine.iter().map(ToString::to_string).collect();
        let what = format!("nobody else of its network is in its VLANs ({})", vlans.join(","));
        let fix = "add an adapter or an uplink, or change `pvid` and `vlans`";
        all.push(finding(what, fix));
    }
    all
}

/// What `thread` of the shared adapters of its network means for it.
fn bridges(desired: &Desired, set: &Attributes, account: &Status) -> Vec<CardFinding> {
    let (mine, network) = (vlans_of(set), attr::adapter::NETWORK.of(set));
    let specs = account.uplinks.iter().map(|uplink| &uplink.spec);
    let passes = specs.filter(|spec| {
        let shared = spec.vids.iter().chain([&spec.pvid]).any(|vid| mine.contains(vid));
        spec.thread && shared && Some(spec.network.as_str()) == network
    });
    let finding = |spec: &UplinkSpec| {
        let sea = sea_of(desired, &spec.name).map_or(spec.name.as_str(), |(sea, _)| sea);
        if account.channels.len() > 1 {
            return finding(
                format!(
                    "what it exchanges with the world outside is handed over between two channels: `thread` of `{sea}` is 1"
                ),
                "set it to 0, unless the bridge would slow down disks of this data plane",
            );
        }
        finding(
            format!(
                "`{sea}` has `thread` 1 and no channel of its own, since the data plane has one: disks wait for the bridge as with 0"
            ),
            "give the data plane a second one (`channels`, `cpus`), or set `thread` to 0",
        )
    };
    passes.map(finding).collect()
}

fn slow(set: &Attributes, adapter: &AdapterStatus) -> Vec<CardFinding> {
    let has = |name: &str| adapter.features.iter().any(|feature| feature == name);
    let mut all = Vec::new();
    if adapter.state != AdapterState::Running {
        return all;
    }
    if !has("host_tso4") {
        all.push(finding(
            "the guest cuts its TCP streams itself: its driver or front end leaves segmentation off",
            "QEMU: csum=on,host_tso4=on,host_tso6=on; in the guest `ethtool -K IF tso on`",
        ));
    }
    if !has("guest_tso4") {
        all.push(finding(
            "what comes for it is cut and summed by the server: its driver takes no uncut TCP",
            "QEMU: guest_csum=on,guest_tso4=on,guest_tso6=on",
        ));
    } else if !attr::adapter::GUEST_OFFLOADS.value(set) {
        all.push(finding(
            "what comes for it is cut and summed by the server: `guest_offloads` is off",
            "set `guest_offloads`, unless the guest has switched them off as well (XDP)",
        ));
    }
    if !has("mrg_rxbuf") {
        all.push(finding(
            "each frame needs one buffer that is as long: its driver takes none in pieces",
            "QEMU: mrg_rxbuf=on",
        ));
    }
    // Pairs are offered, of two queues each.
    let offered = attr::adapter::QUEUES.value(set);
    if offered > 1 && adapter.client_queues <= 2 {
        all.push(finding(
            format!("the client uses one of {offered} pairs of queues"),
            "QEMU: mq=on and queues= of the netdev; in the guest `ethtool -L IF combined N`",
        ));
    }
    all
}
