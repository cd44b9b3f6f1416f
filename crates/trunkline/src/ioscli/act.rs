//! The commands that change something.

use super::media::remove;
use super::system::{System, Thing};
use super::words::Words;
use super::{Context, wrong};
use crate::cli::How;
use crate::commands::objects;
use crate::exit::Failure;
use control::api::DoneView;
use control::error::ApiError;
use fabric::attribute::{Attribute, Attributes, Effect, Kind, Object};
use hyper::Method;
use serde_json::{Map, Value, json};

/// `chdev`
pub(super) fn chdev(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let help = "`chdev -dev DEVICE -attr NAME=VALUE`";
    let device = words.one("-dev").or_else(|| words.one("-l"));
    let device = device.ok_or_else(|| wrong("chdev needs -dev DEVICE", help))?;
    let pairs: Vec<&String> = words.all("-attr").iter().chain(words.all("-a")).collect();
    if pairs.is_empty() {
        return Err(wrong("chdev needs -attr NAME=VALUE", help));
    }
    let system = System::load(context)?;
    let thing = system.thing(device)?;
    let mut changes = Map::new();
    let mut later = Vec::new();
    for pair in pairs {
        let (attribute, value) = attribute_of(&thing, pair)?;
        if waits(&thing, attribute, &value) {
            later.push(attribute);
        }
        changes.insert(attribute.name.to_owned(), value);
    }
    let perm = words.has("-perm") || words.has("-P");
    if let (false, Some(attribute)) = (perm, later.first()) {
        return Err(busy(device, attribute));
    }
    patch(context, thing.object, thing.name, Value::Object(changes))?;
    let notes = later.iter().map(|attribute| {
        format!("{} takes effect with the {}", attribute.name, attribute.effect.word())
    });
    let mut text = vec![format!("{device} changed")];
    text.extend(notes);
    Ok(text.join("\n"))
}

/// Attributes of an object that is yet to be made, as the API takes them.
pub(super) fn given(pairs: &[String], object: Object) -> Result<Map<String, Value>, Failure> {
    let effective = Attributes::new();
    let thing = Thing { object, name: object.noun(), effective: &effective, in_use: false };
    let all = pairs.iter().map(|pair| attribute_of(&thing, pair));
    all.map(|one| one.map(|(attribute, value)| (attribute.name.to_owned(), value))).collect()
}

/// What `NAME=VALUE` sets, and to what.
fn attribute_of(thing: &Thing<'_>, pair: &str) -> Result<(&'static Attribute, Value), Failure> {
    let split = pair.split_once('=');
    let (name, text) =
        split.ok_or_else(|| wrong(format!("`{pair}` is no NAME=VALUE"), "-attr NAME=VALUE"))?;
    let (name, text) = match thing.object {
        Object::Uplink => super::lnagg::here(name, text)?,
        _ => (name, text),
    };
    if thing.object == Object::Sea {
        super::sea::refuse_what_is_not_built(name, text)?;
    }
    let attribute = thing.attribute(name)?;
    Ok((attribute, value(thing, attribute, text)?))
}

/// A value as the API takes it: its default when nothing is given; numbers may be hexadecimal, as the original
/// writes sizes.
fn value(thing: &Thing<'_>, attribute: &Attribute, text: &str) -> Result<Value, Failure> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let hex = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let numeric =
        matches!(attribute.kind, Kind::Number { .. } | Kind::Size { .. } | Kind::NumberOf(_));
    let decimal = hex.filter(|_| numeric).map(|number| number.to_string());
    let lower = (attribute.kind == Kind::Switch).then(|| text.to_lowercase());
    let value = attribute.parse(decimal.or(lower).as_deref().unwrap_or(text));
    let value = value.map_err(|error| ApiError::attribute(thing.name, error))?;
    Ok(json!(value))
}

/// Whether a change would have to wait: for the client, or for the data plane.
fn waits(thing: &Thing<'_>, attribute: &Attribute, value: &Value) -> bool {
    let waits = matches!(attribute.effect, Effect::NextConnect | Effect::Restart);
    let now = json!(thing.effective.get(attribute.name));
    waits && thing.in_use && now != *value
}

/// As the original says it, with what mends it here.
fn busy(device: &str, attribute: &Attribute) -> Failure {
    Failure::Original {
        text: format!(
            "Method error (chdev):\n        0514-062 Cannot perform the requested function because the\n                 \
             specified device is busy.\n{device} is in use, and {} takes effect with the {}: add -perm to keep the \
             change until then",
            attribute.name,
            attribute.effect.word()
        ),
        code: 1,
    }
}

/// `rmdev`
pub(super) fn rmdev(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let help = "`rmdev -dev DEVICE`, or `rmdev -dl DEVICE` as on AIX";
    let device = words.one("-dev").or_else(|| words.one("-l"));
    let device = device.ok_or_else(|| wrong("rmdev needs -dev DEVICE", help))?;
    if words.has("-ucfg") || words.has("-l") && !words.has("-d") {
        let what = "a device that is defined is configured: it can only be removed";
        return Err(wrong(what, &format!("{help}; {UNCONFIGURE}")));
    }
    let system = System::load(context)?;
    let thing = system.thing(device)?;
    if thing.object == Object::DataPlane && device == super::system::NPIV {
        return Err(wrong(format!("{device} is no object of its own"), "it is always there"));
    }
    let own: Vec<&str> = match words.has("-recursive") {
        true => system.vtds_of(thing.name),
        false => Vec::new(),
    };
    let mut lines = Vec::new();
    for vtd in own {
        remove(context, Object::Vtd, vtd)?;
        lines.push(format!("{vtd} deleted"));
    }
    remove(context, thing.object, thing.name)?;
    lines.push(format!("{device} deleted"));
    Ok(lines.join("\n"))
}

/// What comes nearest to it.
const UNCONFIGURE: &str = "`vfcmap -vadapter ADAPTER -fcp` takes an adapter off its port";

/// `cfgdev`
pub(super) fn cfgdev(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    // Devices are there as soon as they are made, and HBAs are looked at all the time: what is left is to say whether it is so.
    let system = System::load(context)?;
    let Some(device) = words.one("-dev") else { return Ok(String::new()) };
    let thing = system.thing(device)?;
    let all = system.devices().into_iter().map(|(_, device)| device);
    let down = |found: super::devices::Device| found.name == thing.name && !found.available;
    if all.into_iter().any(down) {
        let what = format!("{device} is not available");
        let help = "it is tried again by itself; `trunkline status` says why";
        return Err(ApiError::new(control::error::Code::Unavailable, what).help(help).into());
    }
    Ok(format!("{device} Available"))
}

/// `vfcmap`
pub(super) fn vfcmap(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let help =
        "`vfcmap -vadapter ADAPTER -fcp PORT`; -fcp without a port takes the adapter off its port";
    let adapter =
        words.one("-vadapter").ok_or_else(|| wrong("vfcmap needs -vadapter ADAPTER", help))?;
    if !words.has("-fcp") {
        return Err(wrong("vfcmap needs -fcp", help));
    }
    let port = words.one("-fcp").filter(|port| !port.is_empty());
    patch(context, Object::Adapter, adapter, json!({ "port": port }))?;
    Ok(format!("{adapter} changed"))
}

impl Context<'_> {
    /// How a change is made, as the API's query.
    pub(super) fn how(&self) -> String {
        objects::query(How { dry_run: false, force: self.force, no_wait: false })
    }
}

/// Changes an object.
pub(super) fn patch(
    context: &Context<'_>,
    object: Object,
    name: &str,
    changes: Value,
) -> Result<(), Failure> {
    let path = format!("{}{}", objects::path(object, name)?, context.how());
    let body = json!({ "attributes": changes });
    let done: DoneView = context.client.send(Method::PATCH, &path, Some(&body))?;
    objects::waiting(&done.waiting)
}
