//! Ports: used up, slower than their sisters, at their line rate; and adapters of a client that hang together on one,
//! or lead to one VIOS.
//! What has lost the fabric, and what was never mapped, is in `fabric.rs`.

pub(in crate::advise) mod both_servers;
mod by_nmon;
mod one_port;

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Draft, Severity};
use super::link;
use super::mapping::clients_on;
use super::measure::{Counter, fcstat_seconds};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::thresholds::{BYTES_PER_GBIT, LINE_RATE_SHARE, ONE_SERVER_OTHERS};
use super::view::{Role, View, count, shown};
use super::vscsi;
use crate::capture::{At, Fcstat, HmcRow, NpivPort, Read, Report, ScsiMap};
use crate::trace::{Figure, Term, number};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "npiv-ports-full",
        about: "a port has no NPIV ports or port names left",
        on: Kind::Port,
        evidence: "lsnports on each VIOS",
        weight: 1.0,
        applies: |view, port| {
            Applicability::where_that(listed(view, port.host, port.device).is_some())
        },
        judge: full,
    },
    Rule {
        name: "fc-speed",
        about: "a port runs slower than its sisters",
        on: Kind::Port,
        evidence: "fcstat fcsN of every port",
        weight: 1.2,
        applies: |view, port| {
            let last = view.fcstats(port.host, port.device).last();
            Applicability::where_that(last.is_some_and(|last| last.speed_running_gbit.is_some()))
        },
        judge: speed,
    },
    Rule {
        name: "fc-line-rate",
        about: "a port moves as much as its speed allows",
        on: Kind::Port,
        evidence: "fcstat -D fcsN of every port, twice, some minutes apart, or once beside a file of nmon",
        weight: 1.4,
        applies: |view, port| {
            let twice = view.fcstats(port.host, port.device).len() > 1;
            Applicability::where_that(twice || by_nmon::shows(view, port))
        },
        judge: |view, port, out| {
            line_rate(view, port, out);
            if out.drafts.is_empty() {
                by_nmon::judge(view, port, out);
            }
        },
    },
    Rule {
        name: "vfchost-one-port",
        about: "all adapters of a client hang on one port",
        on: Kind::Server,
        evidence: "lsmap -all -npiv and lsnports on each VIOS, lspath on the client",
        weight: 1.0,
        applies: one_port::applies,
        judge: one_port::judge,
    },
    Rule {
        name: "client-one-vios",
        about: "all virtual adapters of a client lead to one VIOS",
        on: Kind::System,
        evidence: "lshwres -r virtualio --rsubtype fc --level lpar (and scsi) on the HMC, or lsmap -all and lsmap -all -npiv on each VIOS",
        weight: 1.0,
        applies: |view, system| {
            let listed = virtual_adapters(view, system.host).next().is_some();
            let beside = !vscsi_beside(view, system.host).is_empty()
                || both_servers::has_beside(view, system.host);
            Applicability::where_that(listed || beside)
        },
        judge: |view, system, out| {
            one_server(view, system, out);
            one_server_of_two(view, system.host, out);
            both_servers::mapped(view, system.host, out);
        },
    },
    Rule {
        name: "client-paths-one-vios",
        about: "a client has adapters to two VIOS, and reaches its disks over one",
        on: Kind::System,
        evidence: "lspath on each client, and lsmap -all -npiv on each VIOS",
        weight: 1.0,
        applies: both_servers::applies,
        judge: both_servers::reached,
    },
];

/// The port in the last `lsnports`.
fn listed<'a>(view: &View<'a>, host: usize, device: &str) -> Option<&'a NpivPort> {
    let lists = view.of(host).filter_map(Report::lsnports);
    lists.last()?.ports.iter().find(|port| port.name == device)
}

fn full(view: &View<'_>, port: &Object<'_>, out: &mut Out) {
    let Some(listed) = listed(view, port.host, port.device) else { return };
    let what = match (listed.ports_free, listed.wwpns_free) {
        (0, _) if listed.ports_total > 0 => "NPIV ports",
        (_, 0) if listed.wwpns_total > 0 => "target port names",
        _ => return,
    };
    let others =
        view.of(port.host).filter_map(Report::lsnports).last().map_or(&[][..], |list| &list.ports);
    let room: Vec<String> = others
        .iter()
        .filter(|other| other.fabric && other.ports_free > 0 && other.wwpns_free > 0)
        .map(|other| format!("{} ({})", other.name, other.ports_free))
        .collect();
    let mut draft = Draft::new(
        "npiv-ports-full",
        port.host,
        view.object(port.host, port.device),
        Severity::Warning,
        format!("{} has no {what} left", port.device),
    )
    .see([listed.at])
    .figure(shown("NPIV ports", f64::from(listed.ports_total), "", listed.at))
    .because("No further adapter can be mapped to it.");
    if !room.is_empty() {
        draft = draft.because(format!("With ports left: {}.", room.join(", ")));
    }
    out.push(
        draft
            .effect("Map new clients to another port of the same fabric, and spread some of this one's before the next comes.")
            .harm("A client that is mapped to another port loses that path for a moment.")
            .weigh(0.95, 0.8),
    );
}

/// The switch that a port is at, by the domain in its address; one of a fabric, where two fabrics may have the same.
fn domain(samples: &[&Fcstat]) -> Option<u32> {
    Some(samples.last()?.port_fc_id?.value >> 16).filter(|domain| *domain != 0)
}

fn running(samples: &[&Fcstat]) -> Option<Read<u32>> {
    samples.last()?.speed_running_gbit
}

fn able(samples: &[&Fcstat]) -> Option<Read<u32>> {
    samples.last()?.speed_supported_gbit
}

fn speed(view: &View<'_>, port: &Object<'_>, out: &mut Out) {
    let samples = view.fcstats(port.host, port.device);
    if view.is_virtual(port.host, port.device, samples) == Some(true) {
        return;
    }
    let (Some(own), Some(can)) = (running(samples), able(samples)) else { return };
    if own.value >= can.value || own.value == 0 {
        return;
    }
    let here = domain(samples);
    let near = |host: usize| host == port.host || view.same_machine(host, port.host);
    let others = view.fc_ports().iter().filter(|((host, device), others)| {
        near(*host)
            && (*host, *device) != (port.host, port.device)
            && view.is_virtual(*host, device, others) != Some(true)
            && (*host == port.host || view.role(*host) != Role::Client)
            && able(others).is_some_and(|read| read.value >= can.value)
    });
    // The switch may be slower than the card: only a port that runs faster shows that this one could. It is one of this
    // system, or one of the same machine at the same switch; and where all at this switch run alike, it is the switch.
    let mut faster: Option<(usize, &str, Read<u32>)> = None;
    let (mut alike, mut faster_here) = (false, false);
    for ((host, device), others) in others {
        let Some(other) = running(others) else { continue };
        let same_switch = here.is_some() && domain(others) == here;
        let more =
            other.value > own.value && able(others).map(|read| read.value) == Some(can.value);
        alike |= same_switch && other.value == own.value;
        faster_here |= same_switch && other.value > own.value;
        // A port of the same system says more than one of another.
        let nearer = faster.is_none_or(|(of, ..)| of != port.host && *host == port.host);
        if more && (*host == port.host || same_switch) && nearer {
            faster = Some((*host, *device, other));
        }
    }
    let Some((host, device, other)) = faster.filter(|_| faster_here || !alike) else { return };
    let sister = if host == port.host { device.to_owned() } else { view.object(host, device) };
    let title = format!(
        "{} runs at {} Gbit/s where {sister} runs at {}",
        port.device, own.value, other.value
    );
    out.push(
        Draft::new("fc-speed", port.host, view.object(port.host, port.device), Severity::Warning, title)
            .see([own.at, can.at, other.at])
            .figure(shown("speed now", f64::from(own.value), "Gbit/s", own.at))
            .figure(shown("speed supported", f64::from(can.value), "Gbit/s", can.at))
            .because("Both can do the same: the negotiation of this one fell back, or its switch port is fixed.")
            .effect("Look at the speed that the switch port is set to, and at transceiver and cable of this port. Nothing is to be changed on the VIOS.")
            .harm("A switch port that is set anew drops the link for a moment.")
            .weigh(0.9, 1.0),
    );
}

/// How much of its line a port uses in its busier direction, between the first and the last capture.
pub(super) fn line_share(samples: &[&Fcstat]) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    let line = f64::from(last.speed_running_gbit?.value) * BYTES_PER_GBIT;
    let (seconds, _) = fcstat_seconds(first, last).filter(|(seconds, _)| *seconds > 0.0)?;
    let grew = |read: fn(&Fcstat) -> Option<Read<u64>>| Counter::over(samples, read)?.growth();
    let ways = [grew(|f| f.traffic.input_bytes), grew(|f| f.traffic.output_bytes)];
    let most = ways.into_iter().flatten().fold(0.0, f64::max);
    (line > 0.0).then(|| most / seconds / line)
}

/// What is said of a port that does as much as its speed allows, however that was found.
fn at_line_rate(
    view: &View<'_>,
    port: &Object<'_>,
    running: Read<u32>,
    word: &str,
    places: impl IntoIterator<Item = At>,
) -> Draft {
    let speed = running.value;
    let line = number(f64::from(speed) * BYTES_PER_GBIT / 1e6);
    let object = view.object(port.host, port.device);
    let title = format!("{} {word} as much as its {speed} Gbit/s allow", port.device);
    Draft::new("fc-line-rate", port.host, object, Severity::Warning, title)
        .see(places)
        .see([running.at])
        .because(format!("A port of {speed} Gbit/s moves about {line} MB/s in one direction."))
        .effect("Spread the clients over more ports, or use a faster one. No setting of queues or elements helps.")
        .harm("A client that is mapped to another port loses that path for a moment.")
}

/// Who has a port beside each other.
fn shared(view: &View<'_>, port: &Object<'_>, draft: Draft) -> Draft {
    match clients_on(view.npiv(), port.host, port.device).map_or(0, |all| all.len()) {
        clients @ 2.. => draft.because(format!("{clients} clients share it.")),
        _ => draft,
    }
}

fn line_rate(view: &View<'_>, port: &Object<'_>, out: &mut Out) {
    let samples = view.fcstats(port.host, port.device);
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return };
    let (Some(running), Some((seconds, term))) =
        (last.speed_running_gbit, fcstat_seconds(first, last))
    else {
        return;
    };
    if view.is_virtual(port.host, port.device, samples) == Some(true) || seconds <= 0.0 {
        return;
    }
    let line = f64::from(running.value) * BYTES_PER_GBIT;
    let directions = [
        ("receives", Counter::over(samples, |sample| sample.traffic.input_bytes)),
        ("sends", Counter::over(samples, |sample| sample.traffic.output_bytes)),
    ];
    for (word, counter) in directions {
        let Some((counter, growth)) =
            counter.and_then(|counter| Some((counter, counter.growth()?)))
        else {
            continue;
        };
        let rate = growth / seconds;
        if rate < line * LINE_RATE_SHARE {
            continue;
        }
        let bytes = counter.growth_figure("bytes between the captures", "bytes");
        let terms =
            vec![Term::new("bytes", growth, "bytes", crate::trace::Origin::Computed), term.clone()];
        let draft = at_line_rate(view, port, running, word, counter.places());
        let mut draft = shared(view, port, bytes.into_iter().fold(draft, Draft::figure));
        if let Some(dumped) = link::dumped(samples) {
            let by = number(dumped.growth().unwrap_or(0.0));
            draft = draft.see(dumped.places()).because(format!("Dumped Frames grew by {by} meanwhile: more is asked of the port than its line carries (oversubscription). Cable and optics are good where the other counters of the link stand still."));
        }
        out.push(
            draft.figure(Figure::new("rate", "bytes/s", "bytes ÷ seconds", terms)).weigh(0.9, 1.0),
        );
        return;
    }
}

/// A client's virtual adapter as the HMC lists it.
#[derive(Clone, Copy)]
struct Listed<'a> {
    /// The machine that the command named.
    machine: Option<&'a str>,
    row: &'a HmcRow,
    /// It is one of Fibre Channel.
    fibre: bool,
    /// The client, by its number or else by its name; and its server likewise.
    client: &'a str,
    server: &'a str,
}

/// The HMC's rows of the clients' virtual adapters.
fn virtual_adapters<'a>(view: &View<'a>, host: usize) -> impl Iterator<Item = Listed<'a>> {
    let lists: Vec<_> = view.of(host).filter_map(Report::hmc_list).collect();
    lists.into_iter().flat_map(move |list| {
        let machine = list.system.as_ref().map(|read| read.value.as_str());
        let of_fibre = list.resource().contains("--rsubtype fc");
        list.rows.iter().filter_map(move |row| {
            let either = |id: &str, name: &str| row.field(id).or_else(|| row.field(name));
            let client = either("lpar_id", "lpar_name")?;
            let server =
                either("remote_lpar_id", "remote_lpar_name").filter(|server| *server != "any")?;
            let fits =
                row.field("adapter_type") == Some("client") && row.field("slot_num").is_some();
            let fibre = of_fibre || row.field("wwpns").is_some();
            fits.then_some(Listed { machine, row, fibre, client, server })
        })
    })
}

/// The other servers of the machine whose virtual SCSI mappings were captured whole, where this one's were, too.
fn vscsi_beside(view: &View<'_>, host: usize) -> BTreeSet<usize> {
    let whole = |host: usize| {
        let mut maps = view.of(host).filter_map(Report::lsmap_scsi).peekable();
        maps.peek().is_some() && maps.all(|map| map.head.incomplete.is_none())
    };
    if !whole(host) {
        return BTreeSet::new();
    }
    view.hosts()
        .filter(|other| *other != host && view.same_machine(*other, host) && whole(*other))
        .collect()
}

/// An adapter of the same client on another server that has no target at all.
fn empty_twin<'a>(
    view: &View<'a>,
    host: usize,
    beside: &BTreeSet<usize>,
    adapter: &ScsiMap,
) -> Option<(usize, &'a ScsiMap)> {
    let id = adapter.client_partition?.value;
    let mut others = view.vhosts().iter().filter(|(server, other)| {
        let same = other.client_partition.is_some_and(|read| read.value == id);
        *server != host && beside.contains(server) && same
    });
    let (server, empty) = others.next()?;
    // The last one of a list that was cut may go on.
    let list = view
        .of(*server)
        .filter_map(Report::lsmap_scsi)
        .find(|list| list.adapters.iter().any(|of| of.at == empty.at))?;
    let whole = list.adapters.last().is_some_and(|last| last.at != empty.at)
        || both_servers::is_followed(view, &list.head);
    (others.next().is_none() && empty.devices.is_empty() && whole).then_some((*server, *empty))
}

/// `client-one-vios`: the second adapter is there, and nothing is mapped to it.
fn without_targets(
    view: &View<'_>,
    (host, adapter): (usize, &ScsiMap),
    (other, empty): (usize, &ScsiMap),
    both: usize,
) -> Draft {
    let id = adapter.client_partition.map_or(0, |read| read.value);
    let client = view.model.named_at(adapter.at).and_then(|client| view.called(client));
    let client = client.map_or_else(|| format!("partition {id}"), str::to_owned);
    let (here, there) = (view.object(host, &adapter.name), view.object(other, &empty.name));
    let others = if both == 1 {
        "1 other client has".to_owned()
    } else {
        format!("{both} other clients have")
    };
    let title =
        format!("no disk is mapped to {}: {client} has its disks over one server", empty.name);
    Draft::new("client-one-vios", other, there.clone(), Severity::Warning, title)
        .see([empty.at, adapter.at])
        .because(format!("{client} has an adapter on either server; {here} has its disks, {there} has no virtual target device. {others} disks from two servers."))
        .because("When that server is restarted, all of its disks are gone.")
        .effect(format!("Map the same disks to {there} (mkvdev -vdev hdiskN -vadapter {}; reserve_policy no_reserve on both servers first), run cfgmgr on the client, and see with lspath that each has two usable paths.", empty.name))
        .harm("None by adding the second way.")
        .weigh(0.9, 1.0)
}

/// The same by the mappings of two servers: a client that has disks from one alone, where the others have them from both.
fn one_server_of_two(view: &View<'_>, host: usize, out: &mut Out) {
    let beside = vscsi_beside(view, host);
    let mut clients: BTreeMap<u32, BTreeMap<usize, &ScsiMap>> = BTreeMap::new();
    for (server, adapter) in view.vhosts() {
        let id = adapter.client_partition.map(|read| read.value).filter(|id| *id != 0);
        let here = *server == host || beside.contains(server);
        if let Some(id) = id.filter(|_| here && !vscsi::disks_behind(adapter).is_empty()) {
            clients.entry(id).or_default().insert(*server, adapter);
        }
    }
    // What comes over Fibre Channel does not need two servers here.
    let fibre = |id: u32| {
        view.npiv().iter().any(|map| {
            (map.vios == host || beside.contains(&map.vios))
                && map.map.client_id.is_some_and(|read| read.value == id)
        })
    };
    let both = clients.values().filter(|servers| servers.len() > 1).count();
    let of_one = |(id, servers): &(&u32, &BTreeMap<usize, &ScsiMap>)| {
        servers.contains_key(&host) && servers.len() == 1 && !fibre(**id)
    };
    for (_, servers) in clients.iter().filter(of_one).filter(|_| both > 0) {
        let Some(adapter) = servers.get(&host) else { continue };
        if let Some((other, empty)) = empty_twin(view, host, &beside, adapter) {
            out.push(without_targets(view, (host, adapter), (other, empty), both));
        }
    }
    let alone: Vec<&ScsiMap> = clients
        .iter()
        .filter(|(id, servers)| servers.len() == 1 && !fibre(**id))
        .filter_map(|(_, servers)| servers.values().next().copied())
        .collect();
    if count(both) < ONE_SERVER_OTHERS * count(alone.len()) || beside.is_empty() {
        return;
    }
    let server = view.spoken(host);
    for adapter in alone {
        if empty_twin(view, host, &beside, adapter).is_some() {
            continue;
        }
        if clients.values().all(|servers| servers.get(&host).is_none_or(|own| own.at != adapter.at))
        {
            continue;
        }
        let id = adapter.client_partition.map_or(0, |read| read.value);
        let client = view.model.named_at(adapter.at).and_then(|client| view.name(client));
        let client = client.map_or_else(|| format!("partition {id}"), str::to_owned);
        let title = format!("all virtual SCSI disks of {client} come from {server}");
        out.push(
            Draft::new("client-one-vios", host, client, Severity::Warning, title)
                .see([adapter.at])
                .see(adapter.client_partition.map(|read| read.at))
                .because(format!("{} on {server} is its only adapter with disks; {both} other clients of the machine have theirs from two servers.", adapter.name))
                .because("When that server is restarted, all of its disks are gone.")
                .effect("Give it an adapter to the other VIOS, map the same disks there (reserve_policy no_reserve on both), and see with lspath on the client that each has two usable paths.")
                .harm("None by adding one; write it into the profile, too.")
                .weigh(0.85, 0.95),
        );
    }
}

/// The adapters of one kind of one client: machine, whether Fibre Channel, number or name on the machine.
type OfClient<'a> = (Option<&'a str>, bool, &'a str);

/// Redundancy is what others have: where no client of the machine has two servers, there are no two.
fn one_server(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let mut clients: BTreeMap<OfClient<'_>, BTreeMap<&str, Listed<'_>>> = BTreeMap::new();
    for of in virtual_adapters(view, system.host) {
        let Some(slot) = of.row.field("slot_num") else { continue };
        clients.entry((of.machine, of.fibre, of.client)).or_default().insert(slot, of);
    }
    let servers = |rows: &BTreeMap<&str, Listed<'_>>| -> BTreeSet<String> {
        rows.values().map(|of| of.server.to_owned()).collect()
    };
    for ((machine, fibre, _), rows) in &clients {
        let own = servers(rows);
        let spread = clients.iter().filter(|((other, kind, _), rows)| {
            (other, kind) == (machine, fibre) && servers(rows).len() > 1
        });
        let spread = spread.count();
        let Some(first) =
            rows.values().next().filter(|_| rows.len() > 1 && own.len() == 1 && spread > 0)
        else {
            continue;
        };
        let spoken = |name: &str, id: &str| {
            let named = first.row.field(name).map(str::to_owned);
            named.unwrap_or_else(|| format!("partition {id}"))
        };
        let (client, server) =
            (spoken("lpar_name", first.client), spoken("remote_lpar_name", first.server));
        let kind = if *fibre { "Fibre Channel" } else { "SCSI" };
        let title = format!("all virtual {kind} adapters of {client} lead to {server}");
        let slots: Vec<&str> = rows.keys().copied().collect();
        out.push(
            Draft::new("client-one-vios", system.host, client, Severity::Warning, title)
                .see(rows.values().map(|of| of.row.at))
                .because(format!("Slots {} lead to {server}; other clients of the machine ({spread}) have adapters to two servers.", slots.join(" and ")))
                .because("It has no redundancy: its paths look well until that server is restarted, then all of them are gone.")
                .effect("Give it an adapter to another VIOS, mapped there (and zoned, for Fibre Channel), see that its paths are usable, and take one of these away afterwards.")
                .harm("None by adding one; write it into the profile, too.")
                .weigh(0.9, 0.95),
        );
    }
}
