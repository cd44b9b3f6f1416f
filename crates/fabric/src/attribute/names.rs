//! Which other objects a value names.

use super::{Attribute, Kind, Object, Value};
use crate::san::{self, LunMap, Member};

/// A name in a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// What it may be the name of.
    pub objects: &'static [Object],
    /// The name.
    pub name: String,
}

impl Attribute {
    /// The objects that a value of this attribute names; none in a value that is not of its kind.
    pub fn names(&self, value: &Value) -> Vec<Named> {
        let Some(text) = value.as_text() else { return Vec::new() };
        let named = |name: String| Named { objects: self.kind.objects(), name };
        match self.kind {
            Kind::Name(_) => vec![named(text.to_owned())],
            Kind::Names(_) => san::words(text).map(|word| named(word.to_owned())).collect(),
            Kind::Members => {
                let members = san::read_members(text).unwrap_or_default().into_iter();
                let names = members.filter_map(|member| match member {
                    Member::Name(name) => Some(named(name)),
                    Member::Wwpn(_) => None,
                });
                names.collect()
            }
            Kind::LunMap => {
                let map = text.parse::<LunMap>().unwrap_or_default();
                map.0.into_values().map(named).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Kind {
    /// What values may be names of.
    pub fn objects(self) -> &'static [Object] {
        match self {
            Kind::Name(object) | Kind::Names(object) => one(object),
            Kind::Members => &[Object::Adapter, Object::Target],
            Kind::LunMap => &[Object::Volume],
            _ => &[],
        }
    }
}

/// One object as a list that lives for ever.
fn one(object: Object) -> &'static [Object] {
    std::slice::from_ref(&OBJECTS[object as usize])
}

static OBJECTS: [Object; Object::ALL.len()] = Object::ALL;
