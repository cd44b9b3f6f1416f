//! The commands that only show.

use super::devices::{self, AttributeRow};
use super::fcstat::{self, Detail};
use super::maps::{self, ListOptions, SCSI_FIELDS};
use super::npiv::{self, NPIV_FIELDS};
use super::sea;
use super::system::{self, System, Thing};
use super::watch;
use super::words::Words;
use super::{Context, wrong};
use crate::exit::Failure;
use control::error::ApiError;
use control::server::AdapterView;
use fabric::attribute::Object;
use fabric::san::Wwpn;

/// `fcstat`
pub(super) fn fcstat(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    if words.has("-client") {
        return clients(context);
    }
    let Some((device, before)) = words.plain.split_last() else {
        return Err(wrong(
            "fcstat needs a device",
            "`trunkline ioscli lsdev -type adapter` lists them",
        ));
    };
    let system = System::load(context)?;
    if let Some(duration) = words.one("-l") {
        let interval = before.first().map(String::as_str);
        let adapters = counted(&system, device)?;
        let names: Vec<&str> = adapters.iter().map(|adapter| adapter.name.as_str()).collect();
        watch::layers(context, device, &names, duration, interval)?;
        return Ok(String::new());
    }
    if let Some(more) = before.first() {
        return Err(wrong(format!("`{more}` is one word too many"), "`fcstat DEVICE`"));
    }
    let mut baselines = system::baselines(context)?;
    let (key, adapter) = match words.one("-n") {
        Some(wwpn) => {
            let wwpn: Wwpn =
                wwpn.parse().map_err(|why: String| wrong(why, "`fcstat -n WWPN PORT`"))?;
            let adapter = system.adapter_with(device, wwpn).ok_or_else(no_device)?;
            (adapter.name.as_str(), Some(adapter))
        }
        None => (device.as_str(), system.adapter(device)),
    };
    if words.has("-z") {
        let baseline = match (adapter, system.port(device)) {
            (Some(adapter), _) => system.baseline(adapter),
            (None, Some(port)) => system.port_baseline(port),
            (None, None) => return Err(no_device()),
        };
        baselines.put(key, baseline)?;
    }
    let base = baselines.get(key);
    let report = match (adapter, system.port(device)) {
        (Some(adapter), _) => system.adapter_report(adapter, base),
        (None, Some(port)) => system.port_report(port, base),
        (None, None) => return Err(no_device()),
    };
    let detail = if words.has("-e") || words.has("-D") { Detail::Driver } else { Detail::Plain };
    Ok(fcstat::report(&report, detail))
}

/// The adapters whose counters make up those of a device.
fn counted<'a>(system: &'a System, device: &str) -> Result<Vec<&'a AdapterView>, Failure> {
    match (system.adapter(device), system.port(device)) {
        (Some(adapter), _) => Ok(vec![adapter]),
        (None, Some(_)) => Ok(system.adapters_on(device)),
        (None, None) => Err(no_device()),
    }
}

/// `fcstat -client`
fn clients(context: &Context<'_>) -> Result<String, Failure> {
    let system = System::load(context)?;
    let node = rustix::system::uname();
    let host = node.nodename().to_string_lossy();
    Ok(npiv::clients(&system.client_rows(&host, &system::baselines(context)?)))
}

/// `lsnports`
pub(super) fn lsnports(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let system = System::load(context)?;
    if system.ports.is_empty() {
        let text =
            "E_NO_NPIV_PORTS(62): there are no ports; `trunkline port create fcs0` makes one";
        return Err(Failure::Original { text: text.to_owned(), code: 62 });
    }
    let ports: Vec<_> = system.ports.iter().map(|port| system.npiv_port(port)).collect();
    Ok(npiv::ports(&ports, words.one("-fmt")))
}

/// As the original says it.
fn no_device() -> Failure {
    Failure::Original { text: "Error accessing ODM\nDevice not found".to_owned(), code: 1 }
}

/// `cat`, of the one file that there is.
pub(super) fn cat(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let path = words.plain.first().map_or("", String::as_str);
    let own = context.global.paths().stats_folder();
    let own = format!("{}/", own.display());
    let place = ["/proc/sys/adapter/vfc/", &own].into_iter().find_map(|all| path.strip_prefix(all));
    let client = path.strip_prefix("/proc/sys/adapter/fc/").unwrap_or(path);
    if let Some((name, "hostinfo")) = client.split_once('/') {
        return host_of(&System::load(context)?, name);
    }
    let Some((name, "stats")) = place.unwrap_or(path).split_once('/') else {
        return Err(wrong(
            format!("there is no file `{path}` here"),
            "the files are /proc/sys/adapter/vfc/ADAPTER/stats and /proc/sys/adapter/fc/ADAPTER/hostinfo",
        ));
    };
    let system = System::load(context)?;
    let adapter = system.adapter(name).ok_or_else(|| system::not_found(name))?;
    Ok(system.file(adapter).text())
}

/// `lsmap`
pub(super) fn lsmap(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let system = System::load(context)?;
    if words.has("-net") {
        return sea::map(&system, words);
    }
    let (adapters, npiv) = match (words.one("-vadapter"), words.has("-all")) {
        (Some(name), false) => {
            let adapter = system.adapter(name).ok_or_else(|| system::not_found(name))?;
            (vec![adapter], adapter.kind == "fc")
        }
        (None, true) => {
            let npiv = words.has("-npiv");
            let wanted = |adapter: &&AdapterView| {
                (adapter.kind == "fc") == npiv && adapter.kind != "ethernet"
            };
            (system.status.adapters.iter().filter(wanted).collect(), npiv)
        }
        _ => return Err(wrong("lsmap needs -all or -vadapter ADAPTER", "give one of the two")),
    };
    if words.has("-npiv") && !npiv {
        let name = words.one("-vadapter").unwrap_or_default();
        return Err(wrong(
            format!("{name} is no virtual Fibre Channel adapter"),
            "leave -npiv out",
        ));
    }
    let fields = words.fields(if npiv { NPIV_FIELDS } else { SCSI_FIELDS })?;
    let form = ListOptions { delimiter: words.one("-fmt"), fields };
    if npiv {
        let maps: Vec<_> = adapters.into_iter().map(|adapter| system.npiv_map(adapter)).collect();
        return Ok(npiv::maps(&maps, form));
    }
    let maps: Vec<_> = adapters.into_iter().map(|adapter| system.scsi_map(adapter)).collect();
    Ok(maps::scsi(&maps, form, words.has("-dec")))
}

/// `lsdev`
pub(super) fn lsdev(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let system = System::load(context)?;
    if words.has("-slots") {
        let slot = |name: &str| Some((system.place(name)?, name.to_owned()));
        let names = system.devices().into_iter().map(|(_, device)| device.name);
        return Ok(devices::slots(&names.filter_map(|name| slot(&name)).collect::<Vec<_>>()));
    }
    let Some(device) = words.one("-dev") else {
        if let Some(flag) = ["-attr", "-range"].into_iter().find(|flag| words.has(flag)) {
            return Err(wrong(format!("{flag} is of one device"), "say which: `-dev DEVICE`"));
        }
        return list(&system, words);
    };
    let thing = system.thing(device)?;
    if words.has("-vpd") {
        return Ok(vpd(&system, &thing));
    }
    if words.has("-range") {
        let name = words.one("-range").or_else(|| words.one("-attr"));
        let name = name.ok_or_else(|| wrong("-range needs NAME", "`-range num_io_queues`"))?;
        return range(&thing, name);
    }
    match (words.has("-attr"), words.one("-attr")) {
        (true, Some(name)) => {
            let row = AttributeRow::of(thing.attribute(name)?, thing.effective);
            Ok(devices::value(&row))
        }
        (true, None) => Ok(devices::lsdev(&rows(&thing, device))),
        (false, _) => {
            let all = system.devices().into_iter().map(|(_, device)| device);
            let one: Vec<_> = all.filter(|found| found.name == thing.name).collect();
            Ok(devices::list(&one))
        }
    }
}

fn vpd(system: &System, thing: &Thing<'_>) -> String {
    let known = system.devices().into_iter().map(|(_, device)| device);
    let description = known.into_iter().find(|device| device.name == thing.name);
    let description = description.map(|device| device.description).unwrap_or_default();
    let place = system.place(thing.name);
    let mut facts = Vec::new();
    if let Some(adapter) = system.adapter(thing.name) {
        for (what, wwpn) in
            ["Network Address", "Alternate Network Address"].iter().zip(&adapter.wwpns)
        {
            facts.push((*what, wwpn.replace(':', "").to_uppercase()));
        }
        if !adapter.serial.is_empty() && adapter.kind == "block" {
            facts.push(("Serial Number", adapter.serial.clone()));
        }
    }
    if let Some(port) = system.port(thing.name) {
        facts.push(("Network Address", format!("{:016X}", super::san::port_wwpn(port))));
    }
    if let Some(volume) = system.status.volumes.iter().find(|volume| volume.name == thing.name) {
        let path = system::text(&volume.effective, "path");
        facts.extend(path.map(|path| ("File", path.to_owned())));
        facts.extend(volume.bytes.map(|bytes| ("Size in bytes", bytes.to_string())));
    }
    facts.extend(place.clone().map(|place| ("Hardware Location Code", place)));
    devices::vpd(thing.name, &place.unwrap_or_default(), &description, &facts)
}

/// `hostinfo`, and `cat` of the file of that name: what the client of an adapter is told of this server on AIX.
pub(super) fn hostinfo(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let Some(name) = words.plain.first() else {
        return Err(wrong("hostinfo needs an adapter", "`hostinfo vfchost0`"));
    };
    host_of(&System::load(context)?, name)
}

fn host_of(system: &System, name: &str) -> Result<String, Failure> {
    let adapter = system.adapter(name).ok_or_else(|| system::not_found(name))?;
    if adapter.kind != "fc" {
        let what = format!("{name} is no virtual Fibre Channel adapter");
        return Err(wrong(what, "`trunkline ioscli lsmap -all -npiv` lists these"));
    }
    let node = rustix::system::uname();
    let port = adapter.port.as_deref().and_then(|port| system.port(port));
    let rows = [
        ("VFC client adapter name", adapter.name.clone()),
        ("Client partition name", system::client_name(adapter).unwrap_or_default().to_owned()),
        ("Host partition name  (VIOS)", node.nodename().to_string_lossy().into_owned()),
        ("VFC host adapter name", adapter.name.clone()),
        ("VFC host adapter location code", system.adapter_place(adapter)),
        ("FC adapter name on VIOS", port.map(|port| port.name.clone()).unwrap_or_default()),
        (
            "FC adapter location code  on VIOS",
            port.map(|port| system.port_place(port)).unwrap_or_default(),
        ),
    ];
    let row = |(what, value): (&str, String)| format!("{what:<42}: {value}").trim_end().to_owned();
    Ok(super::text::lines(&rows.map(row)))
}

fn list(system: &System, words: &Words) -> Result<String, Failure> {
    let wanted: &[Object] = match (words.one("-type"), words.has("-virtual")) {
        (Some("adapter"), false) => {
            &[Object::Adapter, Object::Uplink, Object::Trunk, Object::Sea, Object::Port]
        }
        (Some("adapter"), true) => &[Object::Adapter],
        (None, true) => &[Object::Adapter, Object::Vtd],
        (Some("disk"), _) => &[Object::Volume],
        (Some("optical"), _) => &[Object::Medium],
        (None, false) => &Object::ALL,
        (Some(other), _) => {
            let what = format!("there is no type `{other}` here");
            return Err(wrong(what, "adapter, disk or optical"));
        }
    };
    let devices = system.devices().into_iter();
    let devices: Vec<_> =
        devices.filter(|(object, _)| wanted.contains(object)).map(|(_, device)| device).collect();
    if words.has("-vpd") {
        // It is the data plane, under another name.
        let devices = devices.iter().filter(|device| device.name != system::NPIV);
        let all = devices.map(|device| Ok(vpd(system, &system.thing(&device.name)?)));
        return Ok(all.collect::<Result<Vec<_>, Failure>>()?.join("\n"));
    }
    Ok(devices::list(&devices))
}

/// The attributes of a device. `viosnpiv0` has those of NPIV alone.
fn rows(thing: &Thing<'_>, device: &str) -> Vec<AttributeRow> {
    let npiv = ["num_per_range", "num_local_cmds", "bufs_per_cmd"];
    let shown = |name: &str| device != system::NPIV || npiv.contains(&name);
    let attributes = thing.attributes().filter(|attribute| shown(attribute.name));
    attributes.map(|attribute| AttributeRow::of(attribute, thing.effective)).collect()
}

fn range(thing: &Thing<'_>, name: &str) -> Result<String, Failure> {
    let attribute = thing.attribute(name)?;
    devices::range(thing.values_of(attribute))
        .map_err(|why| ApiError::invalid(format!("{name} has no range: {why}")).into())
}

/// `lsattr`
pub(super) fn lsattr(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let Some(device) = words.one("-l") else {
        return Err(wrong("lsattr needs -l DEVICE", "`lsattr -El DEVICE`"));
    };
    if words.has("-D") && (words.has("-E") || words.has("-R")) {
        return Err(wrong("-D, -E and -R exclude each other", "`lsattr -Dl DEVICE`"));
    }
    let system = System::load(context)?;
    let thing = system.thing(device)?;
    let names = words.all("-a");
    if words.has("-R") {
        let [name] = names else {
            return Err(wrong("-R needs one -a NAME", "`lsattr -Rl DEVICE -a NAME`"));
        };
        return range(&thing, name);
    }
    let rows = match names {
        [] => rows(&thing, device),
        names => {
            let row = |name: &String| Ok(AttributeRow::of(thing.attribute(name)?, thing.effective));
            names.iter().map(row).collect::<Result<_, Failure>>()?
        }
    };
    let rows: Vec<AttributeRow> = match words.has("-D") {
        true => {
            rows.into_iter().map(|row| AttributeRow { value: row.default.clone(), ..row }).collect()
        }
        false => rows,
    };
    if let Some(format) = words.one("-F") {
        let help = format!("the columns are {} and deflt", devices::COLUMNS.join(", "));
        return devices::formatted(&rows, format).map_err(|why| wrong(why, &help));
    }
    Ok(if words.has("-H") { devices::lsdev(&rows) } else { devices::lsattr(&rows) })
}
