//! The desired state: which objects there are, with the attributes that were set on them.
//!
//! [`Desired`] is what the store keeps, what a configuration file says and what `export` writes.
//! It is plain data; the rules live beside it:
//!
//! - [`validate`] says whether a state makes sense as a whole;
//! - [`transition`] says whether one may become another while clients run, and what changes;
//! - [`resolve`] makes the specifications that data planes get.
//!
//! All of it is pure.

pub mod resolve;
pub mod transition;
pub mod validate;

#[cfg(test)]
pub(crate) mod samples;

use fabric::attribute::{Attributes, Object, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The data plane that there always is.
pub const MAIN: &str = "main";

/// Named objects of one kind.
pub type Objects = BTreeMap<String, Attributes>;

/// The desired state.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Desired {
    /// Data planes; [`MAIN`] exists even when it is not named here.
    #[serde(default, rename = "dataplane", skip_serializing_if = "BTreeMap::is_empty")]
    pub dataplanes: Objects,
    /// Volumes.
    #[serde(default, rename = "volume", skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: Objects,
    /// Adapters.
    #[serde(default, rename = "adapter", skip_serializing_if = "BTreeMap::is_empty")]
    pub adapters: Objects,
}

impl Desired {
    /// The objects of a kind.
    pub fn of(&self, object: Object) -> &Objects {
        match object {
            Object::Volume => &self.volumes,
            Object::Adapter => &self.adapters,
            Object::DataPlane => &self.dataplanes,
        }
    }

    /// The objects of a kind, to change.
    pub fn of_mut(&mut self, object: Object) -> &mut Objects {
        match object {
            Object::Volume => &mut self.volumes,
            Object::Adapter => &mut self.adapters,
            Object::DataPlane => &mut self.dataplanes,
        }
    }

    /// Names of all data planes, [`MAIN`] among them.
    pub fn dataplane_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.dataplanes.keys().cloned().collect();
        if !self.dataplanes.contains_key(MAIN) {
            names.push(MAIN.to_owned());
        }
        names
    }

    /// Adapters on a volume.
    pub fn adapters_of<'a>(&'a self, volume: &'a str) -> impl Iterator<Item = &'a str> {
        self.adapters
            .iter()
            .filter(move |(_, set)| text(set, "volume") == Some(volume))
            .map(|(name, _)| name.as_str())
    }

    /// The data plane of an adapter.
    pub fn dataplane_of_adapter(&self, adapter: &str) -> &str {
        self.adapters.get(adapter).and_then(|set| text(set, "dataplane")).unwrap_or(MAIN)
    }

    /// The data plane that opens a volume: that of its adapters, else [`MAIN`], so that a volume
    /// that cannot be opened is known before an adapter needs it.
    pub fn dataplane_of_volume(&self, volume: &str) -> &str {
        match self.adapters_of(volume).next() {
            Some(adapter) => self.dataplane_of_adapter(adapter),
            None => MAIN,
        }
    }

    /// An attribute's value after defaults and inheritance.
    pub fn effective(&self, object: Object, set: &Attributes, name: &str) -> Option<Value> {
        let attribute = object.attribute(name)?;
        let related = |related: Object| match related {
            Object::Volume => self.volumes.get(text(set, "volume")?),
            Object::DataPlane => self.dataplanes.get(text(set, "dataplane").unwrap_or(MAIN)),
            Object::Adapter => None,
        };
        fabric::attribute::effective(attribute, set, &related)
    }

    /// All attributes of an object that have a value after defaults and inheritance.
    pub fn effective_all(&self, object: Object, set: &Attributes) -> Attributes {
        object
            .attributes()
            .filter(|attribute| !attribute.hidden || set.contains_key(attribute.name))
            .filter_map(|a| Some((a.name.to_owned(), self.effective(object, set, a.name)?)))
            .collect()
    }
}

/// The text set for an attribute.
pub(crate) fn text<'a>(set: &'a Attributes, name: &str) -> Option<&'a str> {
    set.get(name).and_then(Value::as_text)
}

/// The number set for an attribute.
pub(crate) fn number(set: &Attributes, name: &str) -> Option<u64> {
    set.get(name).and_then(Value::as_number)
}

/// Whether a switch is set and on.
pub(crate) fn is_on(set: &Attributes, name: &str) -> bool {
    set.get(name).and_then(Value::as_switch).unwrap_or(false)
}
