//! Shared Ethernet adapters, one at a time: threading, jumbo frames, default VLAN, VLANs within one VIOS, control
//! channel, what failover does to the link. The sizes of frames are in `sea_mtu.rs`.
//!
//! Several of these checks are among those that a support engineer published as code (pedz/Snapper, `seas.rb`). What
//! needs both VIOS of a pair is in `sea_pair.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::change::Change;
use super::finding::{Draft, Severity};
use super::measure::Counter;
use super::multipath::turned;
use super::network::without_link;
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule, always};
use super::thresholds::{FLAPS_A_DAY, FLAPS_GROWTH, FLAPS_ONCE};
use super::view::{Role, View, as_f64};
use super::{sea_mtu, sea_pair};
use crate::capture::{At, Attribute, Entstat, Ethernet, Failover, Report, Sea, VirtualEthernet};
use crate::facts::{Level, Product};
use crate::trace::number;

/// One shared Ethernet adapter, from its attributes and its statistics.
pub(super) struct Bridge<'a> {
    pub(super) host: usize,
    pub(super) name: &'a str,
    /// Its statistics, in the order of time.
    pub(super) runs: Vec<&'a Entstat>,
}

impl<'a> Bridge<'a> {
    pub(super) fn attribute(&self, view: &View<'a>, name: &str) -> Option<&'a Attribute> {
        view.attribute(self.host, self.name, name).filter(|attribute| !attribute.value.is_empty())
    }

    pub(super) fn sea(&self) -> Option<&'a Sea> {
        self.runs.iter().rev().find_map(|run| run.sea.as_ref())
    }

    pub(super) fn failover(&self) -> Option<&'a Failover> {
        self.sea()?.failover.as_ref()
    }

    /// A virtual adapter below it.
    fn adapter(&self, name: &str) -> Option<(&'a Ethernet, &'a VirtualEthernet)> {
        let of = |run: &&'a Entstat| run.adapters.iter().find(|adapter| adapter.name.value == name);
        let adapter = self.runs.iter().rev().find_map(of)?;
        Some((adapter, adapter.virtual_adapter.as_ref()?))
    }

    /// The virtual adapters below it, as captured last.
    pub(super) fn virtual_adapters(&self) -> Vec<(&'a Ethernet, &'a VirtualEthernet)> {
        let last = self
            .runs
            .iter()
            .rev()
            .find(|run| run.adapters.iter().any(|adapter| adapter.virtual_adapter.is_some()));
        let adapters = last.into_iter().flat_map(|run| &run.adapters);
        adapters.filter_map(|adapter| Some((adapter, adapter.virtual_adapter.as_ref()?))).collect()
    }

    /// The trunk adapters with their VLANs; the control channel is none of them.
    pub(super) fn trunks(&self, view: &View<'a>) -> Vec<(&'a Ethernet, &'a VirtualEthernet)> {
        let control = self.control_adapter(view);
        let mut all = self.virtual_adapters();
        all.retain(|(adapter, of)| {
            of.trunk.is_some_and(|read| read.value) && Some(adapter.name.value.as_str()) != control
        });
        all
    }

    fn control_adapter(&self, view: &View<'a>) -> Option<&'a str> {
        let attribute = self.attribute(view, "ctl_chan").map(|attribute| attribute.value.as_str());
        attribute.or_else(|| Some(self.sea()?.control_adapter.as_ref()?.value.as_str()))
    }

    /// The adapter to the outside: a physical one, or an aggregation.
    pub(super) fn real_adapter(&self, view: &View<'a>) -> Option<&'a str> {
        let attribute =
            self.attribute(view, "real_adapter").map(|attribute| attribute.value.as_str());
        attribute.or_else(|| Some(self.sea()?.real_adapter.as_ref()?.value.as_str()))
    }

    /// Whether it fails over; `None` when nothing tells.
    pub(super) fn fails_over(&self, view: &View<'a>) -> Option<bool> {
        match self.attribute(view, "ha_mode") {
            Some(attribute) => Some(attribute.value != "disabled"),
            None => self.sea().map(|sea| sea.failover.is_some()),
        }
    }

    pub(super) fn draft(
        &self,
        view: &View<'_>,
        rule: &'static str,
        severity: Severity,
        title: String,
    ) -> Draft {
        Draft::new(rule, self.host, view.object(self.host, self.name), severity, title)
    }
}

/// Every VLAN of a virtual adapter, with the line that names it.
pub(super) fn vlans(of: &VirtualEthernet) -> BTreeMap<u16, At> {
    let port = of.port_vlan.map(|read| (read.value, read.at));
    let tagged = of.vlans.iter().flat_map(|read| read.value.iter().map(|vlan| (*vlan, read.at)));
    tagged.chain(port).collect()
}

/// VLANs as a user reads them.
pub(super) fn vlan_list<'a>(vlans: impl IntoIterator<Item = &'a u16>) -> String {
    vlans.into_iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}

/// Every shared Ethernet adapter of every VIOS.
pub(super) fn bridges<'a>(view: &View<'a>) -> Vec<Bridge<'a>> {
    let mut bridges = Vec::new();
    for host in view.hosts().filter(|host| view.role(*host) != Role::Client) {
        let devices = view.devices(host, "ent").into_iter();
        let is_sea = |device: &&str| {
            ["pvid_adapter", "virt_adapters", "ha_mode", "ctl_chan"]
                .iter()
                .any(|name| view.attribute(host, device, name).is_some())
        };
        let mut names: BTreeSet<&str> = devices.filter(is_sea).collect();
        let runs: Vec<&Entstat> =
            view.of(host).filter_map(Report::entstat).filter(|run| run.sea.is_some()).collect();
        names.extend(runs.iter().filter_map(|run| sea_name(run)));
        for name in names {
            let runs = runs.iter().copied().filter(|run| sea_name(run) == Some(name)).collect();
            bridges.push(Bridge { host, name, runs });
        }
    }
    bridges
}

fn sea_name(run: &Entstat) -> Option<&str> {
    let own = run.sea.as_ref()?.name.as_ref();
    own.or(run.head.device.as_ref()).map(|read| read.value.as_str())
}

const EVIDENCE: &str = "entstat -all entN and lsdev -dev entN -attr of each shared Ethernet adapter, of both VIOS of a pair";

pub(super) const FLAPPING: &str = "Each change interrupts the network of the clients for a moment. Causes are a link that comes and goes, a control channel that loses packets, or an address to ping that does not always answer.";
pub(super) const FLAPPING_EFFECT: &str = "Look at the link of the real adapter, at the control packets of both VIOS, and at netaddr; errpt shows each change with its time.";

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "sea-thread",
        about: "frames are moved without threads beside virtual SCSI",
        on: Kind::Bridge,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: always,
        judge: |view, sea, out| {
            let Some(bridge) = view.bridge(sea) else { return };
            thread(view, bridge, out);
        },
    },
    Rule {
        name: "sea-mtu",
        about: "jumbo frames on one side only",
        on: Kind::Bridge,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: always,
        judge: |view, sea, out| {
            let Some(bridge) = view.bridge(sea) else { return };
            sea_mtu::mtu(view, bridge, out);
            sea_pair::jumbo(view, bridge, out);
            if out.drafts.is_empty() {
                sea_mtu::refused(view, bridge, out);
            }
        },
    },
    Rule {
        name: "sea-largesend",
        about: "large send is off on one of a pair",
        on: Kind::Bridge,
        evidence: EVIDENCE,
        weight: 0.9,
        applies: of_pair,
        judge: |view, sea, out| {
            let Some(bridge) = view.bridge(sea) else { return };
            sea_pair::large_send(view, bridge, out);
        },
    },
    Rule {
        name: "sea-failover",
        about: "the two shared Ethernet adapters do not fail over as a pair",
        on: Kind::Bridge,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: of_pair,
        judge: |view, sea, out| {
            let Some(bridge) = view.bridge(sea) else { return };
            state(view, bridge, out);
            flapping(view, bridge, out);
            sea_pair::failover(view, bridge, out);
        },
    },
    Rule {
        name: "sea-vlan",
        about: "VLANs overlap, or differ between the pair",
        on: Kind::Bridge,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: always,
        judge: |view, sea, out| {
            let Some(bridge) = view.bridge(sea) else { return };
            overlaps(view, bridge, out);
            sea_pair::vlan_sets(view, bridge, out);
        },
    },
    Rule {
        name: "sea-pvid",
        about: "the default VLAN differs from that of its trunk adapter",
        on: Kind::Bridge,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: always,
        judge: |view, sea, out| {
            let Some(bridge) = view.bridge(sea) else { return };
            default_vlan(view, bridge, out);
        },
    },
    Rule {
        name: "sea-control-channel",
        about: "the control channel cannot do its work",
        on: Kind::Bridge,
        evidence: EVIDENCE,
        weight: 1.15,
        applies: of_pair,
        judge: |view, sea, out| {
            let Some(bridge) = view.bridge(sea) else { return };
            control_channel(view, bridge, out);
            sea_pair::control_vlans(view, bridge, out);
        },
    },
    Rule {
        name: "sea-adapter-reset",
        about: "failover resets the real adapter",
        on: Kind::Bridge,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: of_pair,
        judge: |view, sea, out| {
            let Some(bridge) = view.bridge(sea) else { return };
            adapter_reset(view, bridge, out);
        },
    },
    Rule {
        name: "sea-priority",
        about: "trunk priorities collide",
        on: Kind::Bridge,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: always,
        judge: |view, sea, out| {
            let Some(bridge) = view.bridge(sea) else { return };
            sea_pair::uneven_trunks(view, bridge, out);
            sea_pair::priorities(view, bridge, out);
        },
    },
];

/// A rule for adapters that fail over.
fn of_pair(view: &View<'_>, sea: &Object<'_>) -> Applicability {
    match view.bridge(sea).and_then(|bridge| bridge.fails_over(view)) {
        Some(fails_over) => Applicability::where_that(fails_over),
        None => Applicability::Lacking {
            why: "whether it fails over was not captured".to_owned(),
            capture: format!("entstat -all {} on {}", sea.device, view.spoken(sea.host)),
        },
    }
}

/// `sea-thread`: no threads beside virtual SCSI or a pool.
fn thread<'a>(view: &View<'a>, bridge: &Bridge<'a>, out: &mut Out) {
    const RULE: &str = "sea-thread";
    let attribute = bridge.attribute(view, "thread").filter(|attribute| attribute.value == "0");
    let Some(attribute) = attribute else {
        if bridge.attribute(view, "thread").is_none() {
            out.lack(
                view.object(bridge.host, bridge.name),
                view.show_attributes(bridge.host, bridge.name),
            );
        }
        return;
    };
    let disks = view.of(bridge.host).find_map(|report| match report {
        Report::LsmapScsi(lsmap) => lsmap
            .adapters
            .iter()
            .find(|adapter| !adapter.devices.is_empty())
            .map(|adapter| adapter.at),
        Report::LuList(list) => list.lus.first().map(|lu| lu.at),
        Report::Lssp(pools) => {
            pools.pools.iter().find(|pool| super::ssp::is_shared(pool)).map(|pool| pool.at)
        }
        _ => None,
    });
    let Some(disks) = disks else {
        out.lack(
            view.object(bridge.host, bridge.name),
            format!("lsmap -all on {}", view.spoken(bridge.host)),
        );
        return;
    };
    let change = Change::new(view, bridge.host, bridge.name).live().set("thread", "1");
    out.push(
        bridge
            .draft(view, RULE, Severity::Warning, "frames are moved without threads beside virtual SCSI".into())
            .see([attribute.at, disks])
            .because("Without threads every frame is moved in interrupt context, which goes before the processes that serve virtual SCSI and pools: under network load the disks of all clients stall.")
            .because("thread=0 is for a VIOS that does nothing but Ethernet.")
            .change(&change)
            .effect("Disk and network share the processors evenly. Moving frames costs 16 to 20 % more cycles at an MTU of 1500 and 31 to 38 % more with jumbo frames.")
            .harm("More processor time for the same network load; check that the VIOS has it.")
            .weigh(0.92, 1.0),
    );
}

/// `sea-pvid`: the default VLAN of the bridge against that of its default trunk adapter.
fn default_vlan<'a>(view: &View<'a>, bridge: &Bridge<'a>, out: &mut Out) {
    const RULE: &str = "sea-pvid";
    let (Some(pvid), Some(adapter)) =
        (bridge.attribute(view, "pvid"), bridge.attribute(view, "pvid_adapter"))
    else {
        if !bridge.runs.is_empty() {
            out.lack(
                view.object(bridge.host, bridge.name),
                view.show_attributes(bridge.host, bridge.name),
            );
        }
        return;
    };
    let Some(port) = bridge.adapter(&adapter.value).and_then(|(_, of)| of.port_vlan) else {
        out.lack(
            view.object(bridge.host, bridge.name),
            format!("entstat -all {} on {}", bridge.name, view.spoken(bridge.host)),
        );
        return;
    };
    if pvid.number() == Some(u64::from(port.value)) {
        return;
    }
    let change = Change::new(view, bridge.host, bridge.name)
        .live()
        .lowering()
        .set("pvid", port.value.to_string());
    out.push(
        bridge
            .draft(view, RULE, Severity::Critical, format!("pvid is {}, but {} has port VLAN {}", pvid.value, adapter.value, port.value))
            .see([pvid.at, adapter.at, port.at])
            .because("Frames without a tag are given the bridge's pvid. When its default trunk adapter carries another VLAN, they go where nobody listens.")
            .change(&change)
            .effect("Untagged frames of the outside reach the clients of the default VLAN again.")
            .harm("Untagged traffic changes its VLAN at that moment: be sure which of the two values was meant.")
            .weigh(0.95, 1.0),
    );
}

/// `sea-control-channel`, as far as one VIOS shows it.
fn control_channel<'a>(view: &View<'a>, bridge: &Bridge<'a>, out: &mut Out) {
    const RULE: &str = "sea-control-channel";
    if bridge.fails_over(view) != Some(true) {
        return;
    }
    let control = bridge.control_adapter(view);
    if let Some((adapter, of)) = control.and_then(|control| bridge.adapter(control)) {
        let trunk = of.trunk.filter(|read| read.value);
        if let Some(trunk) = trunk {
            out.push(control_finding(bridge.draft(view, RULE, Severity::Critical, format!("the control channel {} is a trunk adapter", adapter.name.value)))
                .see([trunk.at])
                .because("The control channel must be an ordinary virtual adapter on a VLAN of its own; a trunk adapter carries bridged traffic and is switched by the failover that it is to control.")
                .weigh(0.95, 1.0));
            return;
        }
        let own: BTreeSet<u16> = vlans(of).into_keys().collect();
        let clash = bridge.trunks(view).into_iter().find_map(|(trunk, of)| {
            let (vlan, at) = vlans(of).into_iter().find(|(vlan, _)| own.contains(vlan))?;
            Some((trunk, vlan, at))
        });
        if let (Some((trunk, vlan, at)), Some(port)) = (clash, of.port_vlan) {
            out.push(control_finding(bridge.draft(view, RULE, Severity::Critical, format!("VLAN {vlan} of the control channel is bridged by {}", trunk.name.value)))
                .see([port.at, at])
                .because("The VLAN of the control channel must carry nothing else: bridged to the outside, the two VIOS hear more than each other.")
                .weigh(0.9, 1.0));
            return;
        }
    }
    if let Some((sent, heard)) = unheard(bridge) {
        out.push(control_finding(bridge.draft(view, RULE, Severity::Critical, "the other VIOS is not heard on the control channel".into()))
            .see([sent, heard])
            .because("Control packets go out and none come in: the two VIOS do not hear each other, and both may believe that they are alone.")
            .weigh(0.85, 1.0));
        return;
    }
    discovery(view, bridge, control, out);
}

/// The lines of control packets that go out and do not come in.
fn unheard(bridge: &Bridge<'_>) -> Option<(At, At)> {
    let failover = bridge.failover()?;
    let (sent, heard) = (failover.control_out?, failover.control_in?);
    (sent.value >= 100 && heard.value == 0).then_some((sent.at, heard.at))
}

/// Without an adapter of its own the control channel is discovered over the default trunk, which needs buffers for it.
fn discovery<'a>(view: &View<'a>, bridge: &Bridge<'a>, control: Option<&str>, out: &mut Out) {
    let Some(default) = bridge.attribute(view, "pvid_adapter").filter(|_| control.is_none()) else {
        return;
    };
    let Some((adapter, of)) = bridge.adapter(&default.value) else { return };
    let has_control = bridge.failover().is_some_and(|failover| failover.control_vlan.is_some());
    if has_control
        || of.buffers.is_empty()
        || of.buffers.iter().any(|buffers| buffers.kind.eq_ignore_ascii_case("control"))
    {
        return;
    }
    out.push(control_finding(bridge.draft(view, "sea-control-channel", Severity::Warning, "no control channel, and none can be discovered".into()))
        .see([default.at, adapter.at])
        .because(format!("ha_mode is on and ctl_chan is empty. The pair would then find each other over {}, but that adapter has no control buffers.", adapter.name.value))
        .weigh(0.75, 1.0));
}

fn control_finding(draft: Draft) -> Draft {
    draft
        .effect("Give each VIOS a virtual adapter that is no trunk, on a VLAN that nothing else uses, with the same id on both; name it in ctl_chan of both bridges (chdev -dev SEA -attr ctl_chan=entN), the backup first.")
        .harm("While the two do not agree, both can bridge at once, which makes a loop. Change the backup first, and watch the switch.")
}

/// The last level of a VIOS at which `adapter_reset` has to be `no` (IBM, shared Ethernet adapters for load sharing).
const RESETS_UP_TO: [u32; 4] = [2, 2, 4, 0];

/// Whether a level of a VIOS is this one or an older one.
fn is_up_to(level: &str, last: &[u32]) -> bool {
    Level::read(Product::Vios, level).is_ok_and(|level| level.parts() <= last)
}

/// `sea-adapter-reset`: a failover that takes the link down.
fn adapter_reset<'a>(view: &View<'a>, bridge: &Bridge<'a>, out: &mut Out) {
    let Some(attribute) =
        bridge.attribute(view, "adapter_reset").filter(|attribute| attribute.value == "yes")
    else {
        return;
    };
    if bridge.fails_over(view) == Some(false) {
        return;
    }
    let change = Change::new(view, bridge.host, bridge.name).live().set("adapter_reset", "no");
    let level = view.level(bridge.host);
    let old = level.filter(|level| is_up_to(&level.level.value, &RESETS_UP_TO));
    let draft = bridge
        .draft(
            view,
            "sea-adapter-reset",
            Severity::Warning,
            "failover resets the real adapter".into(),
        )
        .see([attribute.at])
        .see(old.map(|level| level.level.at));
    let draft = match (old, level) {
        (Some(_), _) => draft.because("At this level of the VIOS IBM asks for adapter_reset=no on both of a pair that shares the load."),
        (None, Some(_)) => draft.only_noted("It is the default, and IBM asks for no only up to VIOS 2.2.4.0, which this one is past: look at it where failovers take long."),
        (None, None) => draft.only_noted("It is the default, and IBM asks for no only up to VIOS 2.2.4.0; the level was not captured (ioslevel)."),
    };
    out.push(
        draft
            .because("With adapter_reset=yes the link goes down and up at every failover. A switch port then runs through its start-up, spanning tree included, and the clients wait for that long.")
            .change(&change)
            .effect("Failover sends gratuitous ARP only and takes a moment.")
            .harm("An old switch that ignores gratuitous ARP learns the new way late.")
            .weigh(0.8, 0.85),
    );
}

/// `sea-failover`, as far as one VIOS shows it: limbo, and a bridge mode that does not fit the state.
fn state<'a>(view: &View<'a>, bridge: &Bridge<'a>, out: &mut Out) {
    const RULE: &str = "sea-failover";
    let Some(failover) = bridge.failover() else { return };
    let Some(state) = &failover.state else { return };
    if state.value.contains("LIMBO") {
        let cut_off = bridge.runs.last().map(|run| without_link(run)).unwrap_or_default();
        out.push(
            bridge
                .draft(view, RULE, Severity::Critical, "the bridge is in limbo".into())
                .see([state.at])
                .see(failover.limbo.map(|read| read.at))
                .because("Limbo means that the bridge reaches neither its partner nor the outside: it does not forward.")
                .effect("Look at the link of the real adapter and at the address it pings (netaddr); the state leaves limbo by itself when they answer.")
                .harm("Nothing is changed here.")
                .through(cut_off.into_iter().map(|name| view.object(bridge.host, name)))
                .weigh(0.95, 1.0),
        );
        return;
    }
    let Some(mode) = &failover.bridge_mode else { return };
    let expected: &[&str] = match state.value.as_str() {
        "PRIMARY" => &["All"],
        "BACKUP" => &["None"],
        "PRIMARY_SH" | "BACKUP_SH" => &["Partial"],
        _ => return,
    };
    if expected.iter().any(|fits| fits.eq_ignore_ascii_case(&mode.value)) {
        return;
    }
    // Which word each level prints for a backup is not confirmed: alone it is no fault.
    let unsure = state.value == "BACKUP" && mode.value.eq_ignore_ascii_case("All");
    let (severity, confidence, impact) = match unsure {
        true => (Severity::Note, 0.4, 0.3),
        false => (Severity::Critical, 0.8, 1.0),
    };
    let doubt = match unsure {
        true => {
            " Nothing else that was captured says that it does otherwise, and not every level may print this word alike."
        }
        false => "",
    };
    out.push(
        bridge
            .draft(view, RULE, severity, format!("state {} with bridge mode {}", state.value, mode.value))
            .see([state.at, mode.at])
            .because(format!("A bridge in state {} should bridge {}.{doubt}", state.value, expected.join(" or ").to_lowercase()))
            .effect("Take entstat -all again: it may have been caught while switching. If it stays, set ha_mode to standby and back to auto on this VIOS.")
            .harm("A switch of the primary interrupts the network of the clients for a moment.")
            .weigh(confidence, impact),
    );
}

/// Whether so many changes since the counters' reset are more than updates of the VIOS make, where their age is known.
fn often(bridge: &Bridge<'_>, changes: f64) -> bool {
    const DAY: f64 = 86_400.0;
    let adapters = bridge.runs.last().into_iter().flat_map(|run| &run.adapters);
    let age = adapters.filter_map(|adapter| adapter.elapsed_seconds).map(|read| read.value).max();
    age.is_none_or(|seconds| changes >= as_f64(seconds) / DAY * FLAPS_A_DAY)
}

/// `sea-failover`: the primary changes again and again.
fn flapping<'a>(view: &View<'a>, bridge: &Bridge<'a>, out: &mut Out) {
    let seas: Vec<&Failover> =
        bridge.runs.iter().filter_map(|run| run.sea.as_ref()?.failover.as_ref()).collect();
    let counters =
        [Counter::over(&seas, |of| of.became_primary), Counter::over(&seas, |of| of.became_backup)];
    let Some(counter) = counters.into_iter().flatten().max_by_key(|counter| counter.last.value)
    else {
        return;
    };
    let (speaks, why, confidence) = match counter.growth() {
        Some(growth) => (
            growth >= FLAPS_GROWTH,
            format!("The primary changed {} times between the captures.", number(growth)),
            0.9,
        ),
        None => (
            counter.value() >= FLAPS_ONCE && often(bridge, counter.value()),
            format!(
                "The primary changed {} times since the counters were reset; a second capture shows whether it goes on.",
                number(counter.value())
            ),
            0.7,
        ),
    };
    // Where no two captures do, the log tells whether it goes on.
    let turned = match counter.growth() {
        Some(_) if speaks => None,
        _ => turned(view, bridge.host).and_then(|mut all| all.remove(bridge.name)),
    };
    let (speaks, why, confidence) = match &turned {
        Some(entries) => (
            true,
            format!(
                "By the error log it became primary or backup {} times in the day before the capture: it goes on.",
                entries.len()
            ),
            0.95,
        ),
        None => (speaks, why, confidence),
    };
    if !speaks {
        return;
    }
    let logged = turned.iter().flatten().take(8).map(|entry| entry.at);
    out.push(
        bridge
            .draft(
                view,
                "sea-failover",
                Severity::Warning,
                "the primary changes again and again".into(),
            )
            .twin(sea_pair::partner(view, bridge))
            .see(counter.places())
            .see(logged)
            .because(why)
            .because(FLAPPING)
            .effect(FLAPPING_EFFECT)
            .harm("Nothing is changed here.")
            .weigh(confidence, 0.95),
    );
}

/// `sea-vlan`: one VLAN on two trunk adapters of the same virtual switch in one VIOS. The later of two bridges says it.
fn overlaps<'a>(view: &View<'a>, bridge: &Bridge<'a>, out: &mut Out) {
    let mut seen: BTreeMap<(&str, u16), (&str, &str, At)> = BTreeMap::new();
    let before = view.bridges().iter().filter(|other| other.host == bridge.host);
    for of_host in before.take_while(|other| other.name != bridge.name).chain([bridge]) {
        for (adapter, of) in of_host.trunks(view) {
            let switch = of.switch.as_ref().map_or("", |read| read.value.as_str());
            for (vlan, at) in vlans(of) {
                let name = adapter.name.value.as_str();
                match seen.get(&(switch, vlan)) {
                    Some((on, other, first)) if *other != name && of_host.name == bridge.name => out.push(
                        bridge
                            .draft(view, "sea-vlan", Severity::Critical, format!("VLAN {vlan} is on two trunk adapters, {other} of {on} and {name}"))
                            .see([*first, at])
                            .because("Two trunk adapters of one VIOS that carry the same VLAN on the same virtual switch both take its frames: they are sent twice, or in a loop.")
                            .effect("Remove the VLAN from one of the two adapters on the HMC, in the profile, too.")
                            .harm("Clients whose traffic used the adapter that loses the VLAN are interrupted until the other one has learned them.")
                            .weigh(0.92, 1.0),
                    ),
                    Some(_) => {}
                    None => {
                        seen.insert((switch, vlan), (of_host.name, name, at));
                    }
                }
            }
        }
    }
}
