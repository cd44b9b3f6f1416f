//! The attributes of an adapter as they hold, and what bounds its commands.

use super::{AttributeSource, CommandTermView, CommandsView, PortExplanation};
use crate::model::{Desired, home, resolve};
use crate::paths::Paths;
use fabric::attribute::{Attribute, Attributes, Object, Value, attr};
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
        let own = desired.effective(attribute, set);
        let (value, source) = match elsewhere(desired, set, attribute) {
            Some((value, source)) => (Some(value), source),
            None => (
                own.or_else(|| derived(name, set, paths, attribute)),
                desired.source(attribute, set),
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
    attribute: &'static Attribute,
) -> Option<(Value, String)> {
    let own = desired.effective(attribute, set)?;
    use attr::adapter as a;
    if *attribute == *a::NUM_CMD_ELEMS {
        let (port, _, granted) = resolve::granted(desired, set)?;
        let bounds = granted.limit == CommandTerm::Port;
        bounds.then(|| (Value::Number(granted.commands.into()), format!("port {port}")))
    } else if *attribute == *a::MAX_XFER_SIZE {
        let port = a::PORT.of(set)?;
        let of_port = attr::port::MAX_XFER_SIZE.value(desired[Object::Port].get(port)?);
        let bounds = Some(of_port) < own.as_number();
        bounds.then(|| (Value::Number(of_port), format!("port {port}")))
    } else if *attribute == *a::NUM_PER_RANGE && own.as_number() == Some(0) {
        let theirs = attr::dataplane::NUM_PER_RANGE;
        let dataplane = desired.dataplane(home(set));
        let source = match theirs.is_set(dataplane) {
            true => format!("dataplane {}", home(set)),
            false => "default".to_owned(),
        };
        Some((Value::Number(theirs.value(dataplane)), source))
    } else if *attribute == *a::READ_ONLY {
        let volume = a::VOLUME.of(set)?;
        let bounds = attr::volume::READ_ONLY.value(desired[Object::Volume].get(volume)?);
        bounds.then(|| (Value::Switch(true), format!("volume {volume}")))
    } else {
        None
    }
}

/// What goes without saying; none where that is nothing.
fn derived(name: &str, set: &Attributes, paths: &Paths, attribute: &Attribute) -> Option<Value> {
    use attr::adapter as a;
    let tenth = |rate: u64| (rate > 0).then(|| Value::Number((rate / 10).max(1)));
    if *attribute == *a::SOCKET {
        let path = resolve::adapter_socket(name, set, paths);
        Some(Value::Text(path.display().to_string()))
    } else if *attribute == *a::SERIAL {
        Some(Value::Text(resolve::adapter_serial(set)))
    } else if *attribute == *a::LIMIT_IOPS_BURST {
        tenth(a::LIMIT_IOPS.value(set))
    } else if *attribute == *a::LIMIT_BYTES_BURST {
        tenth(a::LIMIT_BYTES_PER_S.value(set))
    } else {
        None
    }
}

/// Why the client of a virtual Fibre Channel adapter may have as many commands active as it may.
pub(super) fn commands(desired: &Desired, set: &Attributes) -> CommandsView {
    let source = |attribute| desired.source(attribute, set);
    let own = resolve::narrow32(attr::adapter::NUM_CMD_ELEMS.value(set));
    let alone = Granted { commands: own, part: None, limit: CommandTerm::Adapter };
    let found = resolve::granted(desired, set);
    let granted = found.map_or(alone, |(_, _, granted)| granted);
    let (port, part) = match found {
        None => ("it is mapped to no port".to_owned(), "it is mapped to no port".to_owned()),
        Some((port, budget, _)) => {
            let adapters = match budget.adapters {
                1 => "its adapter asks".to_owned(),
                count => format!("its {count} adapters ask"),
            };
            let part = match granted.part {
                None => format!("{adapters} for {}: there is enough for all", budget.asked),
                Some(_) => format!(
                    "{adapters} for {}; while all wait, `share` {} ({}) of {} counts",
                    budget.asked,
                    attr::adapter::SHARE.value(set),
                    source(attr::adapter::SHARE.line()),
                    budget.shares
                ),
            };
            (format!("port `{port}`, attribute `num_cmd_elems`"), part)
        }
    };
    let elements = found.map(|(_, budget, _)| budget.elements);
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
                format!(
                    "attribute `num_cmd_elems` ({})",
                    source(attr::adapter::NUM_CMD_ELEMS.line())
                ),
            ),
            view(CommandTerm::Port, elements, port),
            view(CommandTerm::PortShare, granted.part, part),
        ],
        short: None,
    }
}

impl CommandsView {
    /// Says that the client waits for its port, if it does.
    pub(super) fn fall_short(&mut self, port: Option<PortExplanation>) {
        let Some(port) = port else { return };
        self.limited_by = CommandTerm::PortShare;
        self.remedy.clone_from(&port.remedy);
        self.terms.iter_mut().for_each(|term| term.limits = term.term == self.limited_by);
        self.short = Some(port);
    }
}
