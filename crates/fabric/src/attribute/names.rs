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
        let named = |objects: &'static [Object], name: String| Named { objects, name };
        match self.kind {
            Kind::Name(object) => vec![named(one(object), text.to_owned())],
            Kind::Names(object) => {
                san::words(text).map(|word| named(one(object), word.to_owned())).collect()
            }
            Kind::Members => {
                let members = san::read_members(text).unwrap_or_default().into_iter();
                let names = members.filter_map(|member| match member {
                    Member::Name(name) => Some(named(&[Object::Adapter, Object::Target], name)),
                    Member::Wwpn(_) => None,
                });
                names.collect()
            }
            Kind::LunMap => {
                let map = text.parse::<LunMap>().unwrap_or_default();
                map.0.into_values().map(|volume| named(&[Object::Volume], volume)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// One object as a list that lives for ever.
fn one(object: Object) -> &'static [Object] {
    let place = Object::ALL.iter().position(|other| *other == object);
    place.map_or(&[], |place| &OBJECTS[place..=place])
}

static OBJECTS: [Object; Object::ALL.len()] = Object::ALL;
