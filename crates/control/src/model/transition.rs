//! From one desired state to another: whether it may be, and what changes.

use super::neighbours::Neighbours;
use super::{Desired, Key, pools};
use crate::error::{ApiError, Code};
use crate::paths::Paths;
use fabric::attribute::{Attribute, Attributes, Default, Effect, Object, Value, attr};
use fabric::units::format_size;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a user has allowed in so many words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allow {
    /// Volumes may become smaller, which loses what lies beyond.
    pub shrink: bool,
    /// Clients that are connected may lose what they use.
    pub force: bool,
}

/// What happens to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// It is made.
    Create,
    /// Some of its attributes change.
    Change,
    /// It goes away.
    Remove,
}

/// A change of one attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttributeChange {
    /// Which.
    pub attribute: String,
    /// What was set; nothing when it stood at its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What is set now; nothing when it goes back to its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// When it takes effect; nothing for a new object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_effect: Option<String>,
}

/// A change of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// What happens.
    pub verb: Verb,
    /// The noun: `volume`, `adapter`, `dataplane`, …
    #[schema(value_type = String)]
    pub object: Object,
    /// Its name.
    pub name: String,
    /// The attributes; of a removed object none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<AttributeChange>,
}

impl Change {
    /// An object that is there gets another value at once, of what is an attribute to a reader alone.
    pub(crate) fn live(
        object: Object,
        name: &str,
        attribute: &str,
        from: Option<String>,
        to: String,
    ) -> Change {
        let attribute = AttributeChange {
            attribute: attribute.to_owned(),
            from,
            to: Some(to),
            takes_effect: Some(Effect::Live.word().to_owned()),
        };
        let name = name.to_owned();
        Change { verb: Verb::Change, object, name, attributes: vec![attribute] }
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verb = match self.verb {
            Verb::Create => "create",
            Verb::Change => "change",
            Verb::Remove => "remove",
        };
        write!(f, "{verb} {} {}", self.object, self.name)?;
        let values = self.attributes.iter().map(|one| {
            let to = one.to.as_deref().unwrap_or("default");
            format!("{}={to}", one.attribute)
        });
        let values: Vec<String> = values.collect();
        if values.is_empty() { Ok(()) } else { write!(f, " ({})", values.join(", ")) }
    }
}

/// A transition that may be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The state after it, every value in its one form.
    pub next: Desired,
    /// What changes, in the order in which it is carried out.
    pub changes: Vec<Change>,
}

/// Judges a transition. An empty list of changes means that there is nothing to do.
pub fn transition(
    now: &Desired,
    next: &Desired,
    paths: &Paths,
    allow: Allow,
) -> Result<Transition, ApiError> {
    let mut neighbours = Neighbours::default();
    neighbours.follow(now, paths);
    transition_beside(&neighbours, now, next, paths, allow)
}

/// The same, where it is known who has to do with whom in `now`. It costs what the change touches.
pub fn transition_beside(
    neighbours: &Neighbours,
    now: &Desired,
    next: &Desired,
    paths: &Paths,
    allow: Allow,
) -> Result<Transition, ApiError> {
    removals_are_free(neighbours, now, next)?;
    let next = neighbours.validate(next, paths)?;
    let mut changes = Vec::new();
    let in_order = Object::in_order();
    for object in in_order.iter().rev().copied() {
        let differences = now.differences(object, &next).into_iter();
        let gone = differences.filter(|difference| difference.after.is_none());
        changes.extend(gone.map(|difference| Change {
            verb: Verb::Remove,
            object,
            name: difference.name().to_owned(),
            attributes: Vec::new(),
        }));
    }
    for object in in_order {
        for difference in now.differences(object, &next) {
            let Some(after) = &difference.after else { continue };
            let (name, set) = &**after;
            let before = difference.before.as_ref().map(|entry| &entry.1);
            if let Some(before) = before {
                let users = || neighbours.users(now, &[], &(object, name.clone()));
                may_change(now, &next, &users, (object, name), (before, set), allow)?;
                if object == Object::Pool {
                    pools::may_change(now, name, (before, set), paths)?;
                }
            }
            changes.extend(change(object, name, before, set));
        }
    }
    Ok(Transition { next, changes })
}

/// A better answer than "there is no such volume" when it is there and about to be removed.
fn removals_are_free(
    neighbours: &Neighbours,
    now: &Desired,
    next: &Desired,
) -> Result<(), ApiError> {
    let touched = now.touched(next);
    for key @ (object, name) in &touched {
        if next[*object].contains_key(name) || (*object == Object::DataPlane && name == super::MAIN)
        {
            continue;
        }
        let users = neighbours.users(next, &touched, key);
        if !users.is_empty() {
            return Err(in_use(*object, name, &users));
        }
    }
    Ok(())
}

fn in_use(object: Object, name: &str, users: &[Key]) -> ApiError {
    let first = users.first().map_or(Object::Adapter, |(user, _)| *user);
    let names: Vec<&str> =
        users.iter().filter(|(user, _)| *user == first).map(|(_, name)| name.as_str()).collect();
    let list = names.iter().map(|user| format!("`{user}`")).collect::<Vec<_>>().join(", ");
    let noun = if names.len() == 1 { first.noun() } else { first.collection() };
    let help = match first {
        Object::Adapter
            if matches!(object, Object::Volume | Object::Network | Object::DataPlane) =>
        {
            format!("remove the {noun} first: `trunkline adapter remove {}`", names.join(" "))
        }
        Object::Adapter => {
            format!("unmap the {noun} first: `trunkline port unmap {}`", names.join(" "))
        }
        Object::Vtd if object == Object::Medium => {
            format!("empty the drive first: `trunkline media unload {}`", names.join(" "))
        }
        Object::Vtd => {
            format!("remove the {noun} first: `trunkline vtd remove {}`", names.join(" "))
        }
        _ => format!("take it out of the {noun} first, or remove the {noun}"),
    };
    ApiError::new(Code::InUse, format!("{object} `{name}` is used by {noun} {list}")).help(help)
}

/// Whether an existing object may change in this way.
fn may_change(
    now: &Desired,
    next: &Desired,
    users: &dyn Fn() -> Vec<Key>,
    (object, name): (Object, &str),
    (before, after): (&Attributes, &Attributes),
    allow: Allow,
) -> Result<(), ApiError> {
    for (attribute, from, to) in differences(object, before, after) {
        // Spelling out a default, or leaving it to the default again, changes nothing.
        let same = now.effective(attribute, before) == next.effective(attribute, after);
        match attribute.effect {
            _ if same && !matches!(attribute.default, Default::Derived(_)) => {}
            Effect::Fixed => {
                return Err(ApiError::new(
                    Code::Fixed,
                    format!("{object} `{name}`: `{}` is fixed when it is made", attribute.name),
                )
                .on(attribute.name)
                .help(format!("remove {object} `{name}` and create it again")));
            }
            Effect::Unused => {
                let mut users = users();
                users.retain(|(user, whose)| next[*user].contains_key(whose));
                if !users.is_empty() {
                    return Err(in_use(object, name, &users).on(attribute.name));
                }
            }
            _ => {}
        }
        if *attribute == *attr::volume::SIZE && !allow.shrink {
            // One that never said its size has that of its file.
            let bytes = |value: Option<&Value>| value.and_then(Value::as_number);
            let has = bytes(from).or_else(|| now.bytes_of_file(name));
            may_resize(name, has, bytes(to))?;
        }
    }
    Ok(())
}

/// A volume that becomes smaller loses data, which must have been allowed.
fn may_resize(name: &str, from: Option<u64>, to: Option<u64>) -> Result<(), ApiError> {
    match (from, to) {
        (Some(from), Some(to)) if to < from => Err(ApiError::invalid(format!(
            "volume `{name}` would shrink from {} to {} and lose what lies beyond",
            format_size(from),
            format_size(to)
        ))
        .on(attr::volume::SIZE.name)
        .help("shrink the guest's file system first, then allow it with `--shrink`")),
        _ => Ok(()),
    }
}

type Difference<'a> = (&'static Attribute, Option<&'a Value>, Option<&'a Value>);

/// Attributes that differ in what was set.
fn differences<'a>(
    object: Object,
    before: &'a Attributes,
    after: &'a Attributes,
) -> Vec<Difference<'a>> {
    object
        .attributes()
        .map(|attribute| (attribute, before.get(attribute.name), after.get(attribute.name)))
        .filter(|(_, from, to)| from != to)
        .collect()
}

fn change(
    object: Object,
    name: &str,
    before: Option<&Attributes>,
    after: &Attributes,
) -> Option<Change> {
    let empty = Attributes::new();
    let attributes: Vec<AttributeChange> = differences(object, before.unwrap_or(&empty), after)
        .into_iter()
        .map(|(attribute, from, to)| AttributeChange {
            attribute: attribute.name.to_owned(),
            from: from.map(|value| attribute.write(value)),
            to: to.map(|value| attribute.write(value)),
            takes_effect: before.is_some().then(|| attribute.effect.word().to_owned()),
        })
        .collect();
    if before.is_some() && attributes.is_empty() {
        return None;
    }
    let verb = if before.is_some() { Verb::Change } else { Verb::Create };
    Some(Change { verb, object, name: name.to_owned(), attributes })
}

#[cfg(test)]
mod tests;
