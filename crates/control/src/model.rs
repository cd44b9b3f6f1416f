//! The desired state: which objects there are, with the attributes that were set on them.
//!
//! [`Desired`] is what the store keeps, what a configuration file says and what `export` writes.
//! It is plain data, a map by object ([`fabric::attribute`] has the table of these); the rules live beside it:
//!
//! - [`allocations`] gives out what is kept for good: WWPNs, numbers of targets, LUNs of virtual target devices;
//! - [`files`] is what is known of the files of volumes;
//! - [`discovered`] is what the host's HBAs show;
//! - [`mod@san`] makes the fabric of it, which says who sees which LUN;
//! - [`map`] keeps them, so that states share what they have in common;
//! - [`validate`] says whether a state makes sense as a whole;
//! - [`neighbours`] knows what of a state a change has to do with, so that the rest need not be judged again;
//! - [`loss`] says what a change takes from clients that are connected;
//! - [`transition`] says whether one may become another while clients run, and what changes;
//! - [`resolve`] makes the specifications that data planes get.
//!
//! All of it is pure.

pub mod allocations;
pub mod discovered;
pub mod files;
pub mod loss;
pub mod map;
mod naa;
pub mod neighbours;
pub mod pools;
pub mod resolve;
pub mod san;
pub mod seas;
pub mod transition;
pub mod validate;

#[cfg(test)]
pub(crate) mod samples;

use allocations::Allocations;
use discovered::Discovered;
use fabric::attribute::typed::{Attr, Typed, by};
use fabric::attribute::{
    Attribute, Attributes, Default, Kind as AttributeKind, Named, Object, Value, attr,
};
use map::{Difference, SharedMap};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// The data plane that there always is.
pub const MAIN: &str = "main";

/// Named objects of one kind.
pub type Objects = SharedMap<Attributes>;

/// An object of a state.
pub type Key = (Object, String);

/// The desired state: by object, what was set on each of its name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "Written")]
pub struct Desired {
    /// Shared between states until one of them changes: what a change does not touch is neither copied nor compared for it.
    pub(crate) objects: [Objects; Object::ALL.len()],
    /// What was given out. No configuration has it: it only grows.
    pub allocations: Allocations,
    /// What the host's HBAs show. It is looked up, and kept nowhere.
    pub discovered: Arc<Discovered>,
}

/// A state as it is written: a member for each object of which there are some, by its noun.
#[derive(Deserialize)]
struct Written {
    #[serde(flatten)]
    objects: BTreeMap<String, Objects>,
    #[serde(default, rename = "given")]
    allocations: Allocations,
}

impl Serialize for Desired {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for object in Object::ALL.into_iter().filter(|object| !self[*object].is_empty()) {
            map.serialize_entry(object.noun(), &self[object])?;
        }
        map.serialize_entry("given", &self.allocations)?;
        map.end()
    }
}

impl TryFrom<Written> for Desired {
    type Error = String;

    fn try_from(written: Written) -> Result<Desired, String> {
        let mut desired = Desired { allocations: written.allocations, ..Desired::default() };
        for (noun, objects) in written.objects {
            let unknown = || format!("there are no objects `{noun}`");
            desired[Object::of_noun(&noun).ok_or_else(unknown)?] = objects;
        }
        Ok(desired)
    }
}

impl Index<Object> for Desired {
    type Output = Objects;

    fn index(&self, object: Object) -> &Objects {
        &self.objects[object as usize]
    }
}

impl IndexMut<Object> for Desired {
    fn index_mut(&mut self, object: Object) -> &mut Objects {
        &mut self.objects[object as usize]
    }
}

/// An object on which nothing is set.
static NOTHING: Attributes = Attributes::new();

impl Desired {
    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.iter().all(|objects| objects.is_empty())
    }

    /// The objects of one kind in which another state differs, by name. What both share is not looked at.
    pub fn differences(&self, object: Object, next: &Desired) -> Vec<Difference<Attributes>> {
        self[object].differences(&next[object])
    }

    /// All objects in which another state differs, in the order of kinds and names.
    pub fn touched(&self, next: &Desired) -> Vec<Key> {
        let of = |object| {
            let differences = self.differences(object, next).into_iter();
            differences.map(move |difference| (object, difference.name().to_owned()))
        };
        Object::ALL.into_iter().flat_map(of).collect()
    }

    /// What was set on a data plane; [`MAIN`] exists even where nothing is.
    pub fn dataplane(&self, name: &str) -> &Attributes {
        self[Object::DataPlane].get(name).unwrap_or(&NOTHING)
    }

    /// Every mention of an object in another's attributes: who, and in which attribute.
    pub fn mentions(&self) -> impl Iterator<Item = Mention<'_>> {
        Object::ALL.into_iter().flat_map(move |object| {
            self[object].iter().flat_map(move |(name, set)| {
                object.attributes().flat_map(move |attribute| {
                    named(attribute, set).map(move |of| Mention {
                        by: (object, name),
                        attribute: attribute.name,
                        of,
                    })
                })
            })
        })
    }

    /// Every mention, by the name of who is mentioned.
    pub fn users(&self) -> Users<'_> {
        let mut users: BTreeMap<String, Vec<Mention<'_>>> = BTreeMap::new();
        for mention in self.mentions() {
            users.entry(mention.of.name.clone()).or_default().push(mention);
        }
        Users(users)
    }

    /// Names of all data planes, [`MAIN`] among them.
    pub fn dataplane_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self[Object::DataPlane].keys().cloned().collect();
        if !self[Object::DataPlane].contains_key(MAIN) {
            names.push(MAIN.to_owned());
        }
        names
    }

    /// By volume: the targets that have it as a LUN, and the LUN.
    pub fn luns(&self) -> BTreeMap<String, Vec<(&str, u16)>> {
        let mut luns: BTreeMap<String, Vec<(&str, u16)>> = BTreeMap::new();
        for (name, set) in &self[Object::Target] {
            for (lun, volume) in san::luns(set) {
                luns.entry(volume).or_default().push((name, lun));
            }
        }
        luns
    }

    /// The data plane of an adapter.
    pub fn dataplane_of_adapter(&self, adapter: &str) -> &str {
        self[Object::Adapter].get(adapter).map_or(MAIN, home)
    }

    /// The data plane of an uplink: that of the network that it connects, by itself or as a member. None: it connects nothing.
    pub fn dataplane_of_uplink(&self, uplink: &str) -> Option<&str> {
        let uplink = resolve::network::aggregate_of(self, uplink).unwrap_or(uplink);
        let set = self[Object::Uplink].get(uplink)?;
        let way = resolve::network::connection(self, uplink, set)?;
        Some(self[Object::Network].get(way.network).map_or(MAIN, home))
    }

    /// The data plane of a virtual target device: its adapter's.
    pub fn dataplane_of_vtd(&self, vtd: &str) -> &str {
        let adapter = self[Object::Vtd].get(vtd).and_then(|set| attr::vtd::ADAPTER.of(set));
        adapter.map_or(MAIN, |adapter| self.dataplane_of_adapter(adapter))
    }

    /// By volume: everything that has it open, and in which data plane.
    pub fn homes(&self) -> BTreeMap<String, Vec<Home<'_>>> {
        let mut homes: BTreeMap<String, Vec<Home<'_>>> = BTreeMap::new();
        let mut add = |volume: &str, home| homes.entry(volume.to_owned()).or_default().push(home);
        for (name, set) in &self[Object::Adapter] {
            if let Some(volume) = attr::adapter::VOLUME.of(set) {
                add(volume, (Object::Adapter, name.as_str(), home(set)));
            }
        }
        for (name, set) in &self[Object::Target] {
            for volume in san::luns(set).values() {
                add(volume, (Object::Target, name.as_str(), home(set)));
            }
        }
        for (name, set) in &self[Object::Vtd] {
            if let Some(volume) = attr::vtd::VOLUME.of(set) {
                add(volume, (Object::Vtd, name.as_str(), self.dataplane_of_vtd(name)));
            }
        }
        homes
    }

    /// The data plane that opens a volume: that of its users, else [`MAIN`], so that a volume
    /// that cannot be opened is known before an adapter needs it.
    pub fn dataplane_of_volume(&self, volume: &str) -> &str {
        let pool = self[Object::Volume].get(volume).and_then(|set| self.dataplane_of_lu(set));
        let homes = self.homes();
        let first = || homes.get(volume).and_then(|homes| homes.first());
        pool.unwrap_or_else(|| first().map_or(MAIN, |(_, _, home)| home))
    }

    /// The same, where it is known who has which volume open.
    fn dataplane_among<'a>(
        &'a self,
        homes: &BTreeMap<String, Vec<Home<'a>>>,
        volume: &str,
        set: &'a Attributes,
    ) -> &'a str {
        let first = homes.get(volume).and_then(|homes| homes.first());
        self.dataplane_of_lu(set).unwrap_or_else(|| first.map_or(MAIN, |(_, _, home)| home))
    }

    /// The data plane of an LU: that of its pool.
    fn dataplane_of_lu<'a>(&'a self, set: &'a Attributes) -> Option<&'a str> {
        Some(self[Object::Pool].get(pools::pool_of(set)?).map_or(MAIN, home))
    }

    /// The name that an object gives as its data plane, volume or the like: the first attribute for it.
    fn name_of(object: Object, set: &Attributes, related: Object) -> Option<&str> {
        let attribute = object.attributes().find(|a| a.kind == AttributeKind::Name(related))?;
        match (set.get(attribute.name), attribute.default) {
            (Some(value), _) => value.as_text(),
            (None, Default::Fixed(name)) => Some(name),
            (None, _) => None,
        }
    }

    /// What was set on the object from which this one inherits.
    fn parent(&self, object: Object, set: &Attributes, related: Object) -> Option<&Attributes> {
        self[related].get(Desired::name_of(object, set, related)?)
    }

    /// What holds of an attribute that is inherited where it is not set.
    pub fn inherited<'a, T: Typed + ?Sized>(
        &'a self,
        attribute: Attr<T, by::Inherit>,
        set: &'a Attributes,
    ) -> T::Out<'a> {
        attribute.value_by(set, &|related| self.parent(attribute.object, set, related))
    }

    /// An attribute's value after defaults and inheritance.
    pub fn effective(&self, attribute: &'static Attribute, set: &Attributes) -> Option<Value> {
        let related = |related| self.parent(attribute.object, set, related);
        fabric::attribute::effective(attribute, set, &related)
    }

    /// Where that value comes from: `set`, `default`, or the object that it is inherited from.
    pub fn source(&self, attribute: &'static Attribute, set: &Attributes) -> String {
        let (object, name) = (attribute.object, attribute.name);
        match attribute.default {
            _ if set.contains_key(name) => "set".to_owned(),
            Default::Inherit(parent) => {
                let whose = Desired::name_of(object, set, parent.object);
                let own = whose.and_then(|whose| self[parent.object].get(whose));
                match (whose, own.is_some_and(|own| own.contains_key(parent.name))) {
                    (Some(whose), true) => format!("{} {whose}", parent.object),
                    _ => "default".to_owned(),
                }
            }
            _ => "default".to_owned(),
        }
    }

    /// All attributes of an object that have a value after defaults and inheritance.
    pub fn effective_all(&self, object: Object, set: &Attributes) -> Attributes {
        let kind = object.kind_of(set);
        object
            .attributes()
            .filter(|attribute| attribute.is_of(kind))
            .filter(|attribute| !attribute.hidden || set.contains_key(attribute.name))
            .filter_map(|a| Some((a.name.to_owned(), self.effective(a, set)?)))
            .collect()
    }
}

/// What one attribute names.
fn named(attribute: &'static Attribute, set: &Attributes) -> impl Iterator<Item = Named> + use<> {
    let named = set.get(attribute.name).map(|value| attribute.names(value));
    named.unwrap_or_default().into_iter()
}

/// What the attributes of one object name.
pub(crate) fn mentions_of(object: Object, set: &Attributes) -> impl Iterator<Item = Named> + '_ {
    object.attributes().flat_map(move |attribute| named(attribute, set))
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

/// Who names whom in a state, to be asked for one object after the other.
#[derive(Debug)]
pub struct Users<'a>(BTreeMap<String, Vec<Mention<'a>>>);

impl<'a> Users<'a> {
    /// The objects that name this one.
    pub fn of(&self, object: Object, name: &str) -> Vec<(Object, &'a str)> {
        let mentions = self.0.get(name).into_iter().flatten();
        let mut users: Vec<(Object, &str)> = mentions
            .filter(|mention| mention.of.objects.contains(&object))
            .map(|mention| (mention.by.0, mention.by.1.as_str()))
            .collect();
        users.dedup();
        users
    }
}

/// The data plane that an object names.
pub(crate) fn home(set: &Attributes) -> &str {
    // Ports and targets have the same.
    attr::adapter::DATAPLANE.value(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Paths;

    #[test]
    fn what_two_states_differ_in_is_found() {
        let text = "[volume.v]\nkind = \"null\"\nsize = 4096\n[adapter.a]\nvolume = \"v\"\n";
        let paths = Paths::in_one("/run/t");
        let now = validate::validate(&crate::config::read(text).unwrap(), &paths).unwrap();
        let mut next = now.clone();
        let size = attr::volume::SIZE.name.to_owned();
        next[Object::Volume].get_mut("v").unwrap().insert(size, Value::Number(8192));
        let next = validate::validate(&next, &paths).unwrap();
        assert_eq!(now.touched(&next), [(Object::Volume, "v".to_owned())]);
    }
}
