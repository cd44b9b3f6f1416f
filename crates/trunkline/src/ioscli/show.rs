//! The commands that only show.

use super::devices::{self, AttributeRow};
use super::fcstat::{self, Detail};
use super::maps::{self, Form, SCSI_FIELDS};
use super::queues;
use super::system::{self, System, Thing};
use super::watch;
use super::words::Words;
use super::{Context, wrong};
use crate::exit::Failure;
use control::refusal::Refusal;
use fabric::attribute::Object;

/// `fcstat`
pub(super) fn fcstat(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let Some((device, before)) = words.plain.split_last() else {
        return Err(wrong(
            "fcstat needs a device",
            "`trunkline ioscli lsdev -type adapter` lists them",
        ));
    };
    let system = System::load(context)?;
    let mut baselines = system::baselines(context)?;
    let Some(adapter) = system.adapter(device) else {
        return Err(no_device());
    };
    if let Some(duration) = words.one("-l") {
        let interval = before.first().map(String::as_str);
        watch::layers(context, device, &[&adapter.name], duration, interval)?;
        return Ok(String::new());
    }
    if let Some(more) = before.first() {
        return Err(wrong(format!("`{more}` is one word too many"), "`fcstat DEVICE`"));
    }
    if words.has("-z") {
        baselines.put(device, system.baseline(&[adapter]))?;
    }
    let report = system.adapter_report(adapter, baselines.get(device));
    let detail = if words.has("-e") || words.has("-D") { Detail::Driver } else { Detail::Plain };
    Ok(fcstat::report(&report, detail))
}

/// As the original says it.
fn no_device() -> Failure {
    Failure::Original { text: "Error accessing ODM\nDevice not found".to_owned(), code: 1 }
}

/// `cat`, of the one file that there is.
pub(super) fn cat(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let path = words.plain.first().map_or("", String::as_str);
    let place = path.strip_prefix("/proc/sys/adapter/vfc/").unwrap_or(path);
    let Some((name, "stats")) = place.split_once('/') else {
        return Err(wrong(
            format!("there is no file `{path}` here"),
            "the files are /proc/sys/adapter/vfc/ADAPTER/stats",
        ));
    };
    let system = System::load(context)?;
    let adapter = system.adapter(name).ok_or_else(|| system::not_found(name))?;
    Ok(queues::file(&system.file(adapter)))
}

/// `lsmap`
pub(super) fn lsmap(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let fields = words.all("-field");
    if let Some(unknown) = fields.iter().find(|field| !SCSI_FIELDS.contains(&field.as_str())) {
        let help = format!("the fields are {}", SCSI_FIELDS.join(", "));
        return Err(wrong(format!("there is no field `{unknown}`"), &help));
    }
    let form = Form { delimiter: words.one("-fmt"), fields };
    let system = System::load(context)?;
    let adapters: Vec<_> = match (words.one("-vadapter"), words.has("-all")) {
        (Some(name), false) => vec![system.adapter(name).ok_or_else(|| system::not_found(name))?],
        (None, true) => {
            system.status.adapters.iter().filter(|adapter| system::kind(adapter) != "fc").collect()
        }
        _ => return Err(wrong("lsmap needs -all or -vadapter ADAPTER", "give one of the two")),
    };
    let maps: Vec<_> = adapters.into_iter().map(|adapter| system.scsi_map(adapter)).collect();
    Ok(maps::scsi(&maps, form, words.has("-dec")))
}

/// `lsdev`
pub(super) fn lsdev(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let system = System::load(context)?;
    let Some(device) = words.one("-dev") else { return list(&system, words) };
    let thing = system.thing(device)?;
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

fn list(system: &System, words: &Words) -> Result<String, Failure> {
    let wanted: &[Object] = match (words.one("-type"), words.has("-virtual")) {
        (Some("adapter"), _) | (None, true) => &[Object::Adapter],
        (Some("disk"), _) => &[Object::Volume],
        (None, false) => &Object::ALL,
        (Some(other), _) => {
            return Err(wrong(format!("there is no type `{other}` here"), "adapter or disk"));
        }
    };
    let devices = system.devices().into_iter();
    let devices: Vec<_> =
        devices.filter(|(object, _)| wanted.contains(object)).map(|(_, device)| device).collect();
    Ok(devices::list(&devices))
}

/// The attributes of a device. `viosnpiv0` has those of NPIV alone.
fn rows(thing: &Thing<'_>, device: &str) -> Vec<AttributeRow> {
    let npiv = ["num_per_range", "num_local_cmds", "bufs_per_cmd"];
    let shown = |name: &str| device != system::NPIV || npiv.contains(&name);
    let kind = thing.object.kind_of(thing.effective);
    let own = thing.object.attributes().filter(|attribute| attribute.is_of(kind));
    let attributes = own.filter(|a| !a.hidden && shown(a.name));
    attributes.map(|attribute| AttributeRow::of(attribute, thing.effective)).collect()
}

fn range(thing: &Thing<'_>, name: &str) -> Result<String, Failure> {
    let attribute = thing.attribute(name)?;
    devices::range(attribute.kind)
        .map_err(|why| Refusal::invalid(format!("{name} has no range: {why}")).into())
}

/// `lsattr`
pub(super) fn lsattr(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let Some(device) = words.one("-l") else {
        return Err(wrong("lsattr needs -l DEVICE", "`lsattr -El DEVICE`"));
    };
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
    Ok(if words.has("-H") { devices::lsdev(&rows) } else { devices::lsattr(&rows) })
}
