//! Attributes of volumes, adapters, data planes and all else that has some: the one table, and how values are judged.
//!
//! An [`Attribute`] says everything there is to know about one knob: what it takes, what it is when
//! nobody sets it, from whom it inherits, and when a change takes effect. Validation in the API and
//! in the configuration file, the options and help of the command line, and the reference page are
//! made from the table; nobody repeats a range or a default elsewhere. In code an attribute is a constant
//! that knows its type (`attr::volume::SIZE`, see [`typed`]); by its name it is looked up only where the name
//! came from outside.
//!
//! ```text
//! objects! { … } ─┬─► Object            noun, collection, title, columns: API paths, commands, tables, reference page
//!                 ├─► attr::NOUN::NAME  Attr<type, default>: what control asks of a set of attributes
//!                 └─► attributes()      judging, help, schemas; Name(…) in them: references, in_order()
//! ```
//!
//! An object keeps only what was set ([`Attributes`]); [`effective`] adds defaults and inheritance.

mod names;
#[macro_use]
mod object;
mod reference;
mod table;
pub mod typed;
mod value;
pub mod words;

pub use names::Named;
pub use reference::markdown;
pub use table::{Object, attr};
pub use value::{AttributeError, NAME_BYTES_MAX, Value, check_name};

use std::collections::BTreeMap;

/// What an attribute takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Switch,
    /// A whole number within bounds, both included.
    Number {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// A number as [`Kind::Number`], or `auto`: the server finds it out.
    NumberOrAuto {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// A power of two within bounds, both included.
    PowerOfTwo {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// A number out of a list.
    NumberOf(&'static [u64]),
    /// A size in bytes within bounds, written with or without a binary unit.
    Size {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// A word out of a list.
    Word(&'static [&'static str]),
    /// Printable ASCII of at most so many bytes.
    Text {
        /// The longest that is taken.
        bytes_max: usize,
    },
    /// The name of another object.
    Name(Object),
    /// Names of other objects, separated by commas; kept sorted.
    Names(Object),
    /// Adapters, targets and WWPNs, separated by commas; kept sorted.
    Members,
    /// LUNs with their volumes, `0=data,1=logs`.
    LunMap,
    /// LUNs of a target, `0-3,7=5`, or `all`.
    Luns,
    /// A WWPN.
    Wwpn,
    /// Two WWPNs, separated by a comma.
    WwpnPair,
    /// The first six bytes of WWPNs.
    WwpnPrefix,
    /// An NAA identifier of eight bytes: sixteen hexadecimal digits, the first of them 2, 3 or 5.
    Naa,
    /// A path; relative ones are taken from the server's folder.
    Path,
    /// CPU numbers and ranges; empty means every CPU that the process may use.
    Cpus,
    /// Permission bits, octal.
    Mode,
}

/// What an attribute is when nobody sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// It must be set.
    Required,
    /// This value, in the notation that people write.
    Fixed(&'static str),
    /// The effective value of this attribute of the object that this one names: an adapter's volume
    /// or data plane.
    Inherit(&'static Attribute),
    /// The server works it out; the text says how.
    Derived(&'static str),
}

/// When a change of an attribute takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// At once, with I/O running.
    Live,
    /// When the adapter's client connects the next time.
    NextConnect,
    /// When the data plane is started the next time.
    Restart,
    /// Only while no adapter uses the volume; refused otherwise.
    Unused,
    /// Never: remove the object and make it again.
    Fixed,
}

impl Effect {
    /// The word for tables and help.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Live => "live",
            Effect::NextConnect => "next client connect",
            Effect::Restart => "restart of the data plane",
            Effect::Unused => "while no adapter uses it",
            Effect::Fixed => "fixed at creation",
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// Whose it is.
    pub object: Object,
    /// Its name in files and in the API; the command line writes `-` for `_`.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it is when nobody sets it.
    pub default: Default,
    /// The unit of a number, for headings; empty when it has none.
    pub unit: &'static str,
    /// When a change takes effect.
    pub effect: Effect,
    /// One or two plain sentences.
    pub meaning: &'static str,
    /// For tests only: left out of help and reference.
    pub hidden: bool,
    /// The kinds of its object (the values of the attribute `kind`) that have it; empty is all.
    pub kinds: &'static [&'static str],
}

impl Attribute {
    /// Whether an object of this kind has it.
    pub fn is_of(&self, kind: Option<&str>) -> bool {
        self.kinds.is_empty() || kind.is_some_and(|kind| self.kinds.contains(&kind))
    }
}

/// The attributes that were set on an object; those that were not are not in here.
pub type Attributes = BTreeMap<String, Value>;

/// Judges every attribute of an object and brings it into its one form; what is required and missing
/// is an error too, and what its kind does not have.
pub fn check(object: Object, given: &Attributes) -> Result<Attributes, AttributeError> {
    let checked = check_partial(object, given)?;
    let kind = object.kind_of(&checked);
    for attribute in object.attributes() {
        match (attribute.is_of(kind), checked.contains_key(attribute.name)) {
            (true, false) if attribute.default == Default::Required => {
                return Err(AttributeError::missing(attribute));
            }
            (false, true) => {
                return Err(AttributeError::not_of(attribute, kind.unwrap_or_default()));
            }
            _ => {}
        }
    }
    Ok(checked)
}

/// Judges attributes of which some may be missing: a change to an object.
pub fn check_partial(object: Object, given: &Attributes) -> Result<Attributes, AttributeError> {
    given
        .iter()
        .map(|(name, value)| {
            let attribute =
                object.attribute(name).ok_or_else(|| AttributeError::unknown(object, name))?;
            Ok((name.clone(), attribute.accept(value)?))
        })
        .collect()
}

/// The value of an attribute after defaults and inheritance; `None` when it has none or the server
/// derives it.
///
/// `related` gives the attributes set on the object that this one names; an object that cannot be
/// found counts as one on which nothing is set.
pub fn effective<'a>(
    attribute: &'static Attribute,
    set: &'a Attributes,
    related: &dyn Fn(Object) -> Option<&'a Attributes>,
) -> Option<Value> {
    let (line, value) = origin(attribute, set, related);
    match (value, line.default) {
        (Some(value), _) => Some(value.clone()),
        (None, Default::Fixed(text)) => line.parse(text).ok(),
        (None, _) => None,
    }
}

/// Where the value of an attribute comes from: the line that has the last word, and what was set there.
pub fn origin<'a>(
    attribute: &'static Attribute,
    set: &'a Attributes,
    related: &dyn Fn(Object) -> Option<&'a Attributes>,
) -> (&'static Attribute, Option<&'a Value>) {
    let mut line = attribute;
    let mut own = Some(set);
    loop {
        match (own.and_then(|set| set.get(line.name)), line.default) {
            (None, Default::Inherit(parent)) => {
                own = related(parent.object);
                line = parent;
            }
            (value, _) => return (line, value),
        }
    }
}

#[cfg(test)]
mod tests;
