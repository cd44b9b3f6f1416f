//! The rules of virtual Fibre Channel and virtual SCSI.

use crate::error::ApiError;
use crate::model::san::{self, dataplane_of_port, max_adapters};
use crate::model::{Desired, home};
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Object, attr};
use fabric::san::{San, Wwpn};
use std::collections::BTreeMap;

/// Checks everything that has to do with ports, targets, zones, masks and virtual target devices.
pub(super) fn check(desired: &Desired) -> Result<(), ApiError> {
    let fabric = san::san(desired);
    names(desired)?;
    ports(desired)?;
    targets(desired)?;
    unique_wwpns(&fabric)?;
    masks(&fabric)?;
    vtds(desired)
}

fn refuse(
    object: Object,
    name: &str,
    attribute: &str,
    problem: String,
    help: String,
) -> Result<(), ApiError> {
    Err(ApiError::invalid(format!("{object} `{name}`: {problem}")).on(attribute).help(help))
}

/// In zones and masks, a name must mean one thing.
fn names(desired: &Desired) -> Result<(), ApiError> {
    let fc = desired[Object::Adapter]
        .iter()
        .filter(|(_, set)| attr::adapter::KIND.value(set) == AdapterKind::Fc);
    let fc = fc.map(|(name, _)| (Object::Adapter, name));
    for (object, name) in
        fc.chain(desired[Object::Target].keys().map(|name| (Object::Target, name)))
    {
        if name.parse::<Wwpn>().is_ok() {
            let problem = "the name could be a WWPN".to_owned();
            return refuse(object, name, "name", problem, "choose another name".to_owned());
        }
        if object == Object::Target && desired[Object::Adapter].contains_key(name) {
            let problem = "an adapter has that name, and zones name both".to_owned();
            return refuse(object, name, "name", problem, "choose another name".to_owned());
        }
    }
    for mention in desired.mentions().filter(|m| m.of.objects.contains(&Object::Target)) {
        let name = &mention.of.name;
        let set = desired[Object::Adapter].get(name);
        if !desired[Object::Target].contains_key(name)
            && set.is_some_and(|set| attr::adapter::KIND.value(set) != AdapterKind::Fc)
        {
            let (object, whose) = mention.by;
            let problem = format!("adapter `{name}` is no virtual Fibre Channel adapter");
            let help = "name adapters of the kind `fc`".to_owned();
            return refuse(object, whose, mention.attribute, problem, help);
        }
    }
    Ok(())
}

fn ports(desired: &Desired) -> Result<(), ApiError> {
    for (name, set) in &desired[Object::Port] {
        let Some(host) = attr::port::HOST.of(set) else { continue };
        if !crate::hba::is_host(host) {
            let problem = format!("`{host}` is no name of an HBA");
            let help = "name it as the kernel does, such as `host3`: see /sys/class/fc_host";
            return refuse(Object::Port, name, "host", problem, help.to_owned());
        }
    }
    for (name, set) in &desired[Object::Adapter] {
        let Some(port) = attr::adapter::PORT.of(set) else { continue };
        let theirs = dataplane_of_port(desired, port);
        if theirs != home(set) {
            let problem = format!(
                "port `{port}` is of data plane `{theirs}`, the adapter of `{}`",
                home(set)
            );
            let help = format!(
                "map it to a port of `{}`, or make the adapter with `dataplane = \"{theirs}\"`",
                home(set)
            );
            return refuse(Object::Adapter, name, "port", problem, help);
        }
    }
    let mut mapped: BTreeMap<&str, u64> = BTreeMap::new();
    for port in desired[Object::Adapter].values().filter_map(|set| attr::adapter::PORT.of(set)) {
        *mapped.entry(port).or_default() += 1;
    }
    for port in desired[Object::Port].keys() {
        let limit = max_adapters(desired, port);
        let mapped = mapped.get(port.as_str()).copied().unwrap_or(0);
        if mapped > limit {
            let problem = format!("{mapped} adapters would be mapped to it, and it takes {limit}");
            let help = "map some to another port; see its `link_speed` and `max_adapters`";
            return refuse(Object::Port, port, "max_adapters", problem, help.to_owned());
        }
    }
    Ok(())
}

fn targets(desired: &Desired) -> Result<(), ApiError> {
    let mut ids: BTreeMap<(&str, u64), &str> = BTreeMap::new();
    for (name, set) in &desired[Object::Target] {
        for port in fabric::san::words(attr::target::PORTS.value(set)) {
            let theirs = dataplane_of_port(desired, port);
            if theirs != home(set) {
                let problem = format!(
                    "port `{port}` is of data plane `{theirs}`, the target of `{}`",
                    home(set)
                );
                let help = "name ports of the target's data plane".to_owned();
                return refuse(Object::Target, name, "ports", problem, help);
            }
            let host = desired[Object::Port].get(port).and_then(|set| attr::port::HOST.of(set));
            if let Some(host) = host {
                let problem = format!("port `{port}` stands for the HBA {host}");
                let help = "its targets are those of the real fabric: name other ports".to_owned();
                return refuse(Object::Target, name, "ports", problem, help);
            }
        }
        let Some(id) = attr::target::ID.of(set) else { continue };
        if let Some(other) = ids.insert((home(set), id), name) {
            let problem = format!("target `{other}` has the number {id}");
            let help = "leave `id` out: the server gives a free one".to_owned();
            return refuse(Object::Target, name, "id", problem, help);
        }
    }
    Ok(())
}

fn unique_wwpns(fabric: &San) -> Result<(), ApiError> {
    let initiators = fabric.initiators.iter().flat_map(|(name, initiator)| {
        initiator.wwpns.into_iter().map(move |wwpn| (wwpn, Object::Adapter, name))
    });
    let targets = fabric.targets.iter().map(|(name, target)| (target.wwpn, Object::Target, name));
    let mut owners: BTreeMap<Wwpn, (Object, &String)> = BTreeMap::new();
    for (wwpn, object, name) in initiators.chain(targets) {
        if let Some((other, whose)) = owners.insert(wwpn, (object, name)) {
            let attribute = if object == Object::Adapter { "wwpns" } else { "wwpn" };
            let problem = format!("{wwpn} is a WWPN of {other} `{whose}`");
            let help = format!("leave `{attribute}` out: the server gives out new ones");
            return refuse(object, name, attribute, problem, help);
        }
    }
    Ok(())
}

/// No initiator has two LUNs of a target under one number.
fn masks(fabric: &San) -> Result<(), ApiError> {
    let expanded = fabric.expand();
    for (adapter, initiator) in &fabric.initiators {
        let conflict = initiator.wwpns.iter().find_map(|wwpn| expanded.conflict(*wwpn));
        if let Some((name, shown, [first, second])) = conflict {
            return Err(ApiError::invalid(format!(
                "masks give adapter `{adapter}` the LUNs {first} and {second} of target `{name}` under \
                 one number, {shown}"
            ))
            .on("luns")
            .help("give one of them another number, such as `luns = \"7=3\"`"));
        }
    }
    Ok(())
}

fn vtds(desired: &Desired) -> Result<(), ApiError> {
    let mut luns: BTreeMap<(&str, u64), &str> = BTreeMap::new();
    let mut volumes: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for (name, set) in &desired[Object::Vtd] {
        let adapter = attr::vtd::ADAPTER.of(set).unwrap_or_default();
        if desired[Object::Adapter]
            .get(adapter)
            .is_some_and(|a| attr::adapter::KIND.value(a) != AdapterKind::Scsi)
        {
            let problem = format!("adapter `{adapter}` is no virtual SCSI adapter");
            let help = format!(
                "name one of the kind `scsi`: `trunkline adapter create NAME --kind scsi`, not `{adapter}`"
            );
            return refuse(Object::Vtd, name, "adapter", problem, help);
        }
        if let Some(lun) = attr::vtd::LUN.of(set)
            && let Some(other) = luns.insert((adapter, lun), name)
        {
            let problem = format!("virtual target device `{other}` has LUN {lun}");
            let help = "leave `lun` out: the server gives a free one".to_owned();
            return refuse(Object::Vtd, name, "lun", problem, help);
        }
        if let Some(volume) = attr::vtd::VOLUME.of(set)
            && let Some(other) = volumes.insert((adapter, volume), name)
        {
            let problem =
                format!("`{other}` shows volume `{volume}` to adapter `{adapter}` already");
            return refuse(Object::Vtd, name, "volume", problem, "name another volume".to_owned());
        }
    }
    Ok(())
}
