//! `vnic-backing-device`: a backing device of a vNIC that could carry nothing, by the VIOS or by the HMC, and a vNIC that has
//! one only.
//!
//! A vNIC has up to six backing devices, of which one carries; that a spare is out of order shows only when it is needed.
//! Devices behind one physical port are one finding: the port is what is to be looked at, the vNICs are what it affects.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::view::View;
use crate::capture::{At, HmcRow, Report, VnicMap};

const RULE: &str = "vnic-backing-device";

pub(super) const RULES: &[Rule] = &[Rule {
    name: RULE,
    about: "a backing device of a vNIC is out of order, or there is one only",
    on: Kind::System,
    evidence: "lsmap -all -vnic on each VIOS, lshwres -r virtualio --rsubtype vnic (or vnicbkdev) on the HMC",
    weight: 1.1,
    applies: |view, system| {
        let told = view.of(system.host).filter_map(Report::hmc_list).flat_map(|list| &list.rows);
        let told = told.flat_map(|row| backings(system.host, "", row)).next().is_some();
        Applicability::where_that(told || maps(view, system.host).next().is_some())
    },
    judge: |view, system, out| {
        for port in ports(view).iter().filter(|port| port.host() == Some(system.host)) {
            out.push(port.finding(view));
        }
        single(view, system, out);
    },
}];

/// The adapters of a VIOS, as they were mapped last.
fn maps<'a>(view: &View<'a>, host: usize) -> impl Iterator<Item = &'a VnicMap> {
    let last = view.of(host).filter_map(Report::lsmap_vnic).last();
    last.into_iter().flat_map(|list| &list.adapters)
}

/// A backing device, as the HMC tells it.
#[derive(Clone, Copy)]
struct Backing<'a> {
    host: usize,
    at: At,
    machine: &'a str,
    client: &'a str,
    /// The vNIC's slot in the client.
    slot: &'a str,
    vios: &'a str,
    /// The SR-IOV adapter's number and its port's.
    adapter: &'a str,
    port: &'a str,
    logical: &'a str,
    status: &'a str,
    active: bool,
}

impl Backing<'_> {
    /// A device of a partition that is switched off says nothing of its port.
    fn is_out_of_order(&self) -> bool {
        let well = ["operational", "powered off", "unknown"];
        !well.iter().any(|word| self.status.eq_ignore_ascii_case(word))
    }
}

/// The backing devices in a row: of `--rsubtype vnicbkdev` one, of `--rsubtype vnic` all of a vNIC.
fn backings<'a>(host: usize, machine: &'a str, row: &'a HmcRow) -> Vec<Backing<'a>> {
    let field = |name| row.field(name).unwrap_or("");
    let (client, slot) = (field("lpar_name"), field("slot_num"));
    let of = |vios, adapter, port, logical, status, active: &str| Backing {
        host,
        at: row.at,
        machine,
        client,
        slot,
        vios,
        adapter,
        port,
        logical,
        status,
        active: active == "1",
    };
    if let (Some(vios), Some(status), Some(_)) =
        (row.field("vios_lpar_name"), row.field("status"), row.field("failover_priority"))
    {
        let [adapter, port, logical] =
            ["sriov_adapter_id", "sriov_physical_port_id", "sriov_logical_port_id"].map(field);
        return vec![of(vios, adapter, port, logical, status, field("is_active"))];
    }
    // `sriov/VIOS/ID/ADAPTER/PORT/LOGICAL/…` and `sriov/LOGICAL/ACTIVE/STATUS`.
    let states: BTreeMap<&str, (&str, &str)> = field("backing_device_states")
        .split(',')
        .filter_map(|state| match state.split('/').collect::<Vec<_>>()[..] {
            [_, logical, active, status] => Some((logical, (active, status))),
            _ => None,
        })
        .collect();
    let device = |device: &'a str| match device.split('/').collect::<Vec<_>>()[..] {
        [_, vios, _, adapter, port, logical, ..] => {
            let (active, status) = *states.get(logical)?;
            Some(of(vios, adapter, port, logical, status, active))
        }
        _ => None,
    };
    field("backing_devices").split(',').filter_map(device).collect()
}

/// Every backing device that an HMC tells, as it was listed last.
fn told<'a>(view: &View<'a>) -> Vec<Backing<'a>> {
    let mut all: BTreeMap<[&str; 3], Backing<'a>> = BTreeMap::new();
    for (host, report) in view.reports() {
        let Some(list) = report.hmc_list() else { continue };
        let machine = list.system.as_ref().map_or("", |read| read.value.as_str());
        for backing in list.rows.iter().flat_map(|row| backings(host, machine, row)) {
            let key = [machine, backing.client, backing.logical];
            // One list after the other on one console; the line of a device of its own tells most.
            let better = all.get(&key).is_none_or(|known| {
                known.status.eq_ignore_ascii_case(backing.status) || known.host == host
            });
            if better {
                all.insert(key, backing);
            }
        }
    }
    all.into_values().collect()
}

/// A physical port that backing devices lie behind and that is out of order.
#[derive(Default)]
struct Port<'a> {
    /// Its place, where a VIOS tells it.
    place: Option<&'a str>,
    maps: Vec<(usize, &'a VnicMap, At)>,
    told: Vec<Backing<'a>>,
}

/// The line that says that the adapter's backing device is out of order.
fn is_down(map: &VnicMap) -> Option<At> {
    map.backing.as_ref()?;
    let status = map.status.as_ref()?;
    (!status.value.eq_ignore_ascii_case("available")).then_some(status.at)
}

/// `U78DB.ND0.WZS0BIL-P0-C3-T0` of a logical port `…-T0-S1`.
fn place(map: &VnicMap) -> Option<&str> {
    let code = map.backing_physloc.as_ref()?.value.as_str();
    let (port, logical) = code.rsplit_once("-S")?;
    logical.bytes().all(|byte| byte.is_ascii_digit()).then_some(port)
}

/// Whether the device is this client's on this VIOS.
fn is_about(backing: &Backing<'_>, vios: Option<&str>, map: &VnicMap) -> bool {
    let client = map.client_name.as_ref().map(|read| read.value.as_str());
    let same =
        |told: &str, name: Option<&str>| name.is_some_and(|name| told.eq_ignore_ascii_case(name));
    same(backing.vios, vios) && same(backing.client, client)
}

/// The ports that are out of order, each with all that lies behind it.
fn ports<'a>(view: &View<'a>) -> Vec<Port<'a>> {
    let mut by_number: BTreeMap<[&str; 4], Port<'a>> = BTreeMap::new();
    for backing in told(view).into_iter().filter(Backing::is_out_of_order) {
        // Without the port's number each device stands for itself.
        let number = match backing.port {
            "" => backing.logical,
            port => port,
        };
        let key = [backing.machine, backing.vios, backing.adapter, number];
        by_number.entry(key).or_default().told.push(backing);
    }
    let mut all: Vec<Port<'a>> = by_number.into_values().collect();
    for host in view.hosts() {
        for map in maps(view, host) {
            let Some(at) = is_down(map) else { continue };
            let place = place(map);
            let here = |port: &Port<'_>| {
                let same = place.is_some() && port.place == place;
                let beside = port.maps.first().is_none_or(|(other, ..)| *other == host);
                let told = |one: &Backing<'_>| is_about(one, view.name(host), map);
                beside && (same || port.told.iter().any(told))
            };
            match all.iter().position(here) {
                Some(found) => {
                    all[found].place = all[found].place.or(place);
                    all[found].maps.push((host, map, at));
                }
                None => all.push(Port { place, maps: vec![(host, map, at)], told: Vec::new() }),
            }
        }
    }
    all
}

const EFFECT: &str = "Look at the port behind it: the cable, the transceiver, the port of the switch, and the state of the SR-IOV adapter on the HMC (lshwres -r sriov --rsubtype physport). When its link is back it is ready again by itself.";

impl Port<'_> {
    /// Where the finding is told: at the VIOS, else at the console.
    fn host(&self) -> Option<usize> {
        let vios = self.maps.first().map(|(host, ..)| *host);
        vios.or_else(|| self.told.iter().map(|one| one.host).min())
    }

    fn clients(&self) -> Vec<&str> {
        let told = self.told.iter().map(|one| one.client);
        let mapped = self
            .maps
            .iter()
            .filter_map(|(_, map, _)| Some(map.client_name.as_ref()?.value.as_str()));
        let all: BTreeSet<&str> = told.chain(mapped).filter(|name| !name.is_empty()).collect();
        all.into_iter().collect()
    }

    fn finding(&self, view: &View<'_>) -> Draft {
        let host = self.host().unwrap_or_default();
        let clients = self.clients();
        let spoken = match clients[..] {
            [] => "a client".to_owned(),
            _ => clients.join(", "),
        };
        let (object, title) = match (&self.maps[..], &self.told[..]) {
            ([(_, map, _)], _) if clients.len() < 2 => {
                let named = map.backing.as_ref().filter(|read| read.value != "N/A");
                let title = match named {
                    Some(backing) => format!(
                        "{}, which stands behind a vNIC of {spoken}, is out of order",
                        backing.value
                    ),
                    None => format!(
                        "what stands behind {}, a vNIC of {spoken}, is out of order",
                        map.name
                    ),
                };
                (view.object(host, &map.name), title)
            }
            ([], [one]) => (
                format!("vNIC of {} over {}", one.client, one.vios),
                format!("a backing device of {} on {} is out of order", one.client, one.vios),
            ),
            (maps, told) => {
                let on = match maps.first() {
                    Some((host, ..)) => view.spoken(*host),
                    None => told.first().map_or("", |one| one.vios),
                };
                let numbered = told.first().filter(|one| !one.adapter.is_empty());
                let object = match (self.place, numbered) {
                    (Some(place), _) => format!("port {place} on {on}"),
                    (None, Some(one)) => {
                        format!("port {} of SR-IOV adapter {} on {on}", one.port, one.adapter)
                    }
                    (None, None) => format!("a port on {on}"),
                };
                (object, format!("the port behind the vNICs of {spoken} is out of order"))
            }
        };
        // Whoever runs on it has lost its network, or has only what carries of it.
        let severity = match self.told.iter().any(|one| one.active) {
            true => Severity::Critical,
            false => Severity::Warning,
        };
        let mut draft = Draft::new(RULE, host, object, severity, title)
            .see(self.maps.iter().flat_map(|(_, map, at)| [*at, map.at]))
            .see(self.told.iter().map(|one| one.at));
        let said: BTreeSet<&str> = self.told.iter().map(|one| one.status).collect();
        if !said.is_empty() {
            let said: Vec<&str> = said.into_iter().collect();
            draft = draft.because(format!("The HMC says: {}.", said.join(", ")));
        }
        if let Some(one) = self.told.first().filter(|one| !one.adapter.is_empty()) {
            draft = draft.because(format!(
                "It is physical port {} of SR-IOV adapter {}.",
                one.port, one.adapter
            ));
        }
        draft
            .because("A vNIC moves to another of its backing devices when the one in use fails; it cannot move to this one.")
            .effect(EFFECT)
            .harm("None by looking.")
            .weigh(0.9, 1.0)
    }
}

/// vNICs with one backing device, where others on the same console have more.
fn single(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let mut vnics: BTreeMap<[&str; 3], Vec<Backing<'_>>> = BTreeMap::new();
    for one in told(view).into_iter().filter(|one| one.host == system.host) {
        vnics.entry([one.machine, one.client, one.slot]).or_default().push(one);
    }
    one_server(system, &vnics, out);
    let Some(example) = vnics.values().find(|all| all.len() > 1) else { return };
    for all in vnics.values() {
        let [one] = all[..] else { continue };
        if one.is_out_of_order() || !one.active {
            continue;
        }
        let object = format!("vNIC of {} over {}", one.client, one.vios);
        let title = format!("the vNIC of {} has one backing device only", one.client);
        out.push(
            Draft::new(RULE, system.host, object, Severity::Warning, title)
                .see([one.at])
                .see(example.first().map(|other| other.at))
                .because(format!("It lies on {}; the vNIC of {} has {}.", one.vios, example[0].client, example.len()))
                .because("A restart of that VIOS, or a fault of that port, takes the network away.")
                .effect("Add a second backing device on a port of another VIOS, on the HMC (chhwres -r virtualio --rsubtype vnicbkdev), while the client runs.")
                .harm("It takes capacity of that port; the profile has to be changed, too.")
                .weigh(0.85, 1.0),
        );
    }
}

/// A vNIC whose backing devices all lie on one VIOS, where those of others lie on two.
fn one_server(system: &Object<'_>, vnics: &BTreeMap<[&str; 3], Vec<Backing<'_>>>, out: &mut Out) {
    fn servers<'a>(all: &[Backing<'a>]) -> BTreeSet<&'a str> {
        all.iter().map(|one| one.vios).collect()
    }
    let of_two: Vec<&Vec<Backing<'_>>> =
        vnics.values().filter(|all| servers(all).len() > 1).collect();
    let alone: Vec<&Vec<Backing<'_>>> =
        vnics.values().filter(|all| all.len() > 1 && servers(all).len() == 1).collect();
    // Where most are so, it is how they are meant.
    let Some(example) = of_two.first().filter(|_| of_two.len() > alone.len()) else { return };
    for all in alone {
        let Some(one) = all.first() else { continue };
        let object = format!("vNIC of {} over {}", one.client, one.vios);
        let title =
            format!("all backing devices of the vNIC of {} lie on {}", one.client, one.vios);
        let named: Vec<&str> = servers(example).into_iter().collect();
        let places: BTreeSet<_> = all.iter().map(|one| one.at).collect();
        out.push(
            Draft::new(RULE, system.host, object, Severity::Warning, title)
                .see(places)
                .see(example.first().map(|other| other.at))
                .because(format!("The vNIC of {} has its own on {}; {} of the machine are so.", example[0].client, named.join(" and "), of_two.len()))
                .because("The failover of a vNIC helps against a fault of a port; a restart of that VIOS takes all of its backing devices.")
                .effect("Add a backing device on a port of another VIOS, on the HMC (chhwres -r virtualio --rsubtype vnicbkdev), while the client runs, and take one of these away.")
                .harm("It takes capacity of that port; the profile has to be changed, too.")
                .weigh(0.85, 0.95),
        );
    }
}
