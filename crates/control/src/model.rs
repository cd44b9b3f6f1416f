//! The desired state: which objects there are, with the attributes that were set on them.
//!
//! [`Desired`] is what the store keeps, what a configuration file says and what `export` writes.
//! It is plain data; the rules live beside it:
//!
//! - [`given`] gives out what is kept for good: WWPNs, numbers of targets, LUNs of virtual target devices;
//! - [`files`] is what is known of the files of volumes;
//! - [`found`] is what the host's HBAs show;
//! - [`mod@san`] makes the fabric of it, which says who sees which LUN;
//! - [`validate`] says whether a state makes sense as a whole;
//! - [`loss`] says what a change takes from clients that are connected;
//! - [`transition`] says whether one may become another while clients run, and what changes;
//! - [`resolve`] makes the specifications that data planes get.
//!
//! All of it is pure.

pub mod files;
pub mod found;
pub mod given;
pub mod loss;
pub mod resolve;
pub mod san;
pub mod transition;
pub mod validate;

#[cfg(test)]
pub(crate) mod samples;

use fabric::attribute::{Attributes, Named, Object, Value};
use found::Found;
use given::Given;
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
    /// Virtual target devices.
    #[serde(default, rename = "vtd", skip_serializing_if = "BTreeMap::is_empty")]
    pub vtds: Objects,
    /// Optical media.
    #[serde(default, rename = "medium", skip_serializing_if = "BTreeMap::is_empty")]
    pub media: Objects,
    /// Ports.
    #[serde(default, rename = "port", skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: Objects,
    /// Targets.
    #[serde(default, rename = "target", skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: Objects,
    /// Zones.
    #[serde(default, rename = "zone", skip_serializing_if = "BTreeMap::is_empty")]
    pub zones: Objects,
    /// Masks.
    #[serde(default, rename = "mask", skip_serializing_if = "BTreeMap::is_empty")]
    pub masks: Objects,
    /// What was given out. No configuration has it: it only grows.
    #[serde(default)]
    pub given: Given,
    /// What the host's HBAs show. It is looked up, and kept nowhere.
    #[serde(skip)]
    pub found: Found,
}

/// What an adapter shows its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdapterKind {
    /// One disk.
    Block,
    /// Virtual Fibre Channel.
    Fc,
    /// Virtual SCSI.
    Scsi,
}

/// The kind of an adapter with these attributes.
pub fn adapter_kind(set: &Attributes) -> AdapterKind {
    match text(set, "kind") {
        Some("fc") => AdapterKind::Fc,
        Some("scsi") => AdapterKind::Scsi,
        _ => AdapterKind::Block,
    }
}

impl Desired {
    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        Object::ALL.into_iter().all(|object| self.of(object).is_empty())
    }

    /// The objects of a kind.
    pub fn of(&self, object: Object) -> &Objects {
        match object {
            Object::Volume => &self.volumes,
            Object::Adapter => &self.adapters,
            Object::Vtd => &self.vtds,
            Object::Medium => &self.media,
            Object::Port => &self.ports,
            Object::Target => &self.targets,
            Object::Zone => &self.zones,
            Object::Mask => &self.masks,
            Object::DataPlane => &self.dataplanes,
        }
    }

    /// The objects of a kind, to change.
    pub fn of_mut(&mut self, object: Object) -> &mut Objects {
        match object {
            Object::Volume => &mut self.volumes,
            Object::Adapter => &mut self.adapters,
            Object::Vtd => &mut self.vtds,
            Object::Medium => &mut self.media,
            Object::Port => &mut self.ports,
            Object::Target => &mut self.targets,
            Object::Zone => &mut self.zones,
            Object::Mask => &mut self.masks,
            Object::DataPlane => &mut self.dataplanes,
        }
    }

    /// Every mention of an object in another's attributes: who, and in which attribute.
    pub fn mentions(&self) -> impl Iterator<Item = Mention<'_>> {
        Object::ALL.into_iter().flat_map(move |object| {
            self.of(object).iter().flat_map(move |(name, set)| {
                object.attributes().flat_map(move |attribute| {
                    let named = set.get(attribute.name).map(|value| attribute.names(value));
                    named.unwrap_or_default().into_iter().map(move |of| Mention {
                        by: (object, name),
                        attribute: attribute.name,
                        of,
                    })
                })
            })
        })
    }

    /// The names in one attribute of an object.
    pub fn mentions_of(&self, object: Object, name: &str, attribute: &str) -> Vec<String> {
        let attribute = object.attribute(attribute);
        let value = self
            .of(object)
            .get(name)
            .zip(attribute)
            .and_then(|(set, attribute)| Some(attribute.names(set.get(attribute.name)?)));
        value.unwrap_or_default().into_iter().map(|named| named.name).collect()
    }

    /// The objects that name this one.
    pub fn users(&self, object: Object, name: &str) -> Vec<(Object, &str)> {
        let mut users: Vec<(Object, &str)> = self
            .mentions()
            .filter(|mention| mention.of.name == name && mention.of.objects.contains(&object))
            .map(|mention| (mention.by.0, mention.by.1.as_str()))
            .collect();
        users.dedup();
        users
    }

    /// Names of all data planes, [`MAIN`] among them.
    pub fn dataplane_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.dataplanes.keys().cloned().collect();
        if !self.dataplanes.contains_key(MAIN) {
            names.push(MAIN.to_owned());
        }
        names
    }

    /// Block adapters on a volume.
    pub fn adapters_of<'a>(&'a self, volume: &'a str) -> impl Iterator<Item = &'a str> {
        self.adapters
            .iter()
            .filter(move |(_, set)| text(set, "volume") == Some(volume))
            .map(|(name, _)| name.as_str())
    }

    /// Targets that have a volume as a LUN, and the LUN.
    pub fn luns_of(&self, volume: &str) -> Vec<(&str, u16)> {
        let all = self.targets.iter().flat_map(|(name, set)| {
            san::luns(set).into_iter().map(move |(lun, behind)| (name.as_str(), lun, behind))
        });
        all.filter(|(_, _, behind)| behind == volume).map(|(name, lun, _)| (name, lun)).collect()
    }

    /// Virtual target devices on a volume.
    pub fn vtds_of<'a>(&'a self, volume: &'a str) -> impl Iterator<Item = &'a str> {
        let all = self.vtds.iter().filter(move |(_, set)| text(set, "volume") == Some(volume));
        all.map(|(name, _)| name.as_str())
    }

    /// The data plane of an adapter.
    pub fn dataplane_of_adapter(&self, adapter: &str) -> &str {
        self.adapters.get(adapter).map_or(MAIN, home)
    }

    /// The data plane of a virtual target device: its adapter's.
    pub fn dataplane_of_vtd(&self, vtd: &str) -> &str {
        let adapter = self.vtds.get(vtd).and_then(|set| text(set, "adapter"));
        adapter.map_or(MAIN, |adapter| self.dataplane_of_adapter(adapter))
    }

    /// By volume: everything that has it open, and in which data plane.
    pub fn homes(&self) -> BTreeMap<String, Vec<Home<'_>>> {
        let mut homes: BTreeMap<String, Vec<Home<'_>>> = BTreeMap::new();
        let mut add = |volume: &str, home| homes.entry(volume.to_owned()).or_default().push(home);
        for (name, set) in &self.adapters {
            if let Some(volume) = text(set, "volume") {
                add(volume, (Object::Adapter, name.as_str(), home(set)));
            }
        }
        for (name, set) in &self.targets {
            for volume in san::luns(set).values() {
                add(volume, (Object::Target, name.as_str(), home(set)));
            }
        }
        for (name, set) in &self.vtds {
            if let Some(volume) = text(set, "volume") {
                add(volume, (Object::Vtd, name.as_str(), self.dataplane_of_vtd(name)));
            }
        }
        homes
    }

    /// The data plane that opens a volume: that of its users, else [`MAIN`], so that a volume
    /// that cannot be opened is known before an adapter needs it.
    pub fn dataplane_of_volume(&self, volume: &str) -> &str {
        self.homes().get(volume).and_then(|homes| homes.first()).map_or(MAIN, |(_, _, home)| home)
    }

    /// An attribute's value after defaults and inheritance.
    pub fn effective(&self, object: Object, set: &Attributes, name: &str) -> Option<Value> {
        let attribute = object.attribute(name)?;
        let related = |related: Object| match related {
            Object::Volume => self.volumes.get(text(set, "volume")?),
            Object::DataPlane => self.dataplanes.get(home(set)),
            _ => None,
        };
        fabric::attribute::effective(attribute, set, &related)
    }

    /// All attributes of an object that have a value after defaults and inheritance.
    pub fn effective_all(&self, object: Object, set: &Attributes) -> Attributes {
        let kind = object.kind_of(set);
        object
            .attributes()
            .filter(|attribute| attribute.is_of(kind))
            .filter(|attribute| !attribute.hidden || set.contains_key(attribute.name))
            .filter_map(|a| Some((a.name.to_owned(), self.effective(object, set, a.name)?)))
            .collect()
    }
}

/// Who has a volume open, and in which data plane.
pub type Home<'a> = (Object, &'a str, &'a str);

/// A mention of an object in another's attributes.
#[derive(Debug, Clone)]
pub struct Mention<'a> {
    /// Who names it.
    pub by: (Object, &'a String),
    /// In which attribute.
    pub attribute: &'static str,
    /// What is named.
    pub of: Named,
}

/// The data plane that an object names.
pub(crate) fn home(set: &Attributes) -> &str {
    text(set, "dataplane").unwrap_or(MAIN)
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
