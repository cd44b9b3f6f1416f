//! The attributes of an adapter as they hold, and what bounds its commands.

use super::{AttributeSource, CommandTermView, CommandsView};
use crate::model::{Desired, home, is_on, number, resolve, text};
use crate::paths::Paths;
use fabric::attribute::{Attribute, Attributes, Object, Value};
use fabric::elements::{CommandTerm, Granted};

/// The attributes of an adapter and where their values come from.
pub(super) fn attributes(
    desired: &Desired,
    name: &str,
    set: &Attributes,
    paths: &Paths,
) -> Vec<AttributeSource> {
    let kind = Object::Adapter.kind_of(set);
    let all = Object::Adapter.attributes().filter(|attribute| {
        attribute.is_of(kind) && (!attribute.hidden || set.contains_key(attribute.name))
    });
    let all = all.map(|attribute| {
        let own = desired.effective(Object::Adapter, set, attribute.name);
        let (value, source) = match elsewhere(desired, set, attribute) {
            Some((value, source)) => (Some(value), source),
            None => (
                own.or_else(|| derived(name, set, paths, attribute.name)),
                resolve::source(desired, Object::Adapter, set, attribute.name),
            ),
        };
        AttributeSource {
            attribute: attribute.name.to_owned(),
            value: value.map(|value| attribute.write(&value)).unwrap_or_default(),
            source,
        }
    });
    all.collect()
}

/// The value that holds where another object has the last word.
fn elsewhere(
    desired: &Desired,
    set: &Attributes,
    attribute: &Attribute,
) -> Option<(Value, String)> {
    let own = desired.effective(Object::Adapter, set, attribute.name)?;
    match attribute.name {
        "num_cmd_elems" => {
            let (port, _, granted) = resolve::granted(desired, set)?;
            let bounds = granted.limit == CommandTerm::PortShare;
            bounds.then(|| (Value::Number(granted.commands.into()), format!("port {port}")))
        }
        "max_xfer_size" => {
            let port = text(set, "port")?;
            let of_port =
                desired.effective(Object::Port, desired.ports.get(port)?, "max_xfer_size")?;
            (of_port.as_number() < own.as_number()).then(|| (of_port, format!("port {port}")))
        }
        "num_per_range" if own.as_number() == Some(0) => {
            let empty = Attributes::new();
            let dataplane = desired.dataplanes.get(home(set)).unwrap_or(&empty);
            let value = desired.effective(Object::DataPlane, dataplane, "num_per_range")?;
            let theirs = dataplane.contains_key("num_per_range");
            let source =
                if theirs { format!("dataplane {}", home(set)) } else { "default".to_owned() };
            Some((value, source))
        }
        "read_only" => {
            let volume = text(set, "volume")?;
            let bounds = is_on(desired.volumes.get(volume)?, "read_only");
            bounds.then(|| (Value::Switch(true), format!("volume {volume}")))
        }
        _ => None,
    }
}

/// What goes without saying; none where that is nothing.
fn derived(name: &str, set: &Attributes, paths: &Paths, attribute: &str) -> Option<Value> {
    let tenth = |rate| {
        let rate = number(set, rate).filter(|rate| *rate > 0)?;
        Some(Value::Number((rate / 10).max(1)))
    };
    match attribute {
        "socket" => {
            let path = resolve::adapter_socket(name, set, paths);
            Some(Value::Text(path.display().to_string()))
        }
        "serial" => Some(Value::Text(resolve::adapter_serial(set))),
        "limit_iops_burst" => tenth("limit_iops"),
        "limit_bytes_burst" => tenth("limit_bytes_per_s"),
        _ => None,
    }
}

/// Why the client of a virtual Fibre Channel adapter may have as many commands active as it may.
pub(super) fn commands(desired: &Desired, set: &Attributes) -> CommandsView {
    let source = |name| resolve::source(desired, Object::Adapter, set, name);
    let own = desired.effective(Object::Adapter, set, "num_cmd_elems");
    let own = resolve::narrow32(own.and_then(|value| value.as_number()).unwrap_or(0));
    let alone = Granted { commands: own, part: None, limit: CommandTerm::Adapter };
    let found = resolve::granted(desired, set);
    let granted = found.map_or(alone, |(_, _, granted)| granted);
    let port = match found {
        None => "it is mapped to no port".to_owned(),
        Some((port, budget, _)) => {
            let (has, adapters, asked) = (budget.elements, budget.adapters, budget.asked);
            let noun = if adapters == 1 { "adapter asks" } else { "adapters ask" };
            let whole = format!("port `{port}` has {has}, and its {adapters} {noun} for {asked}");
            let share = desired.effective(Object::Adapter, set, "share");
            match (granted.part, share.and_then(|share| share.as_number())) {
                (Some(_), Some(share)) => {
                    let from = source("share");
                    format!("{whole}: `share` {share} ({from}) of {}", budget.shares)
                }
                _ => whole,
            }
        }
    };
    let view = |term, count, source| CommandTermView {
        term,
        count,
        source,
        limits: granted.limit == term,
    };
    CommandsView {
        num_cmd_elems: granted.commands,
        limited_by: granted.limit,
        remedy: granted.limit.remedy().to_owned(),
        terms: vec![
            view(
                CommandTerm::Adapter,
                Some(own),
                format!("attribute `num_cmd_elems` ({})", source("num_cmd_elems")),
            ),
            view(CommandTerm::PortShare, granted.part, port),
        ],
    }
}
