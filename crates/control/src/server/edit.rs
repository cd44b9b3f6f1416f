//! One object: made, changed, removed; if that is asked for, only as it was when the caller read it.

use super::shared::{ChangeOptions, Done, Server, not_found};
use crate::error::{ApiError, Code};
use crate::model::{Desired, MAIN};
use fabric::attribute::{Attributes, Object, Value};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

/// What an object must be to be changed: as one of those that the caller has read, by their tags.
#[derive(Debug, Clone, Default)]
pub struct Expected(Option<Vec<String>>);

impl Expected {
    /// From the header `If-Match`: tags as `tag` makes them, separated by commas, or `*` for any.
    pub fn read(header: &str) -> Expected {
        if header.trim() == "*" {
            return Expected(None);
        }
        Expected(Some(header.split(',').map(|tag| tag.trim().to_owned()).collect()))
    }

    fn check(&self, object: Object, name: &str, set: &Attributes) -> Result<(), ApiError> {
        let Some(tags) = &self.0 else { return Ok(()) };
        if tags.contains(&tag(set)) {
            return Ok(());
        }
        let what = format!("{object} `{name}` has changed since it was read");
        Err(ApiError::new(Code::Changed, what).help("read it again and make the change from that"))
    }
}

/// The tag of an object as it is set: another one when an attribute is set otherwise.
pub(super) fn tag(set: &Attributes) -> String {
    let mut hasher = DefaultHasher::new();
    for (name, value) in set {
        // Neither has a zero byte.
        hasher.write(name.as_bytes());
        hasher.write_u8(0);
        hasher.write(value.to_string().as_bytes());
        hasher.write_u8(0);
    }
    format!("\"{:016x}\"", hasher.finish())
}

/// Why the data plane that every server has is not removed.
fn main_stays() -> ApiError {
    let what = format!("data plane `{MAIN}` is always there, and has no attributes that could go");
    ApiError::new(Code::InUse, what).help("`trunkline stop --with-dataplanes` ends it")
}

impl Server {
    /// Makes an object.
    pub async fn create(
        &self,
        object: Object,
        name: &str,
        set: Attributes,
        options: ChangeOptions,
    ) -> Result<Done, ApiError> {
        let name = name.to_owned();
        self.change(options, move |desired| {
            let objects = &mut desired[object];
            if objects.contains_key(&name) || (object == Object::DataPlane && name == MAIN) {
                return Err(ApiError::new(
                    Code::Exists,
                    format!("{object} `{name}` exists already"),
                )
                .help(format!("change it with `trunkline {object} set {name} …`")));
            }
            objects.insert(name.clone(), set.clone());
            Ok(())
        })
        .await
    }

    /// Changes attributes of an object; `None` puts one back to its default.
    pub async fn set(
        &self,
        object: Object,
        name: &str,
        changes: BTreeMap<String, Option<Value>>,
        expected: Expected,
        options: ChangeOptions,
    ) -> Result<Done, ApiError> {
        let name = name.to_owned();
        self.change(options, move |desired| {
            if object == Object::DataPlane && name == MAIN {
                desired[Object::DataPlane].or_default(MAIN);
            }
            if !desired[object].contains_key(&name) {
                return Err(not_found(desired, object, &name));
            }
            let set = desired[object].or_default(&name);
            expected.check(object, &name, set)?;
            for (attribute, value) in &changes {
                if object.attribute(attribute).is_none() {
                    let kind = object.kind_of(set);
                    let error =
                        fabric::attribute::AttributeError::unknown_of(object, kind, attribute);
                    return Err(ApiError::attribute(&name, error));
                }
                match value {
                    Some(value) => set.insert(attribute.clone(), value.clone()),
                    None => set.remove(attribute),
                };
            }
            Ok(())
        })
        .await
    }

    /// Removes an object. Of the data plane `main` the attributes go; it stays.
    pub async fn remove(
        &self,
        object: Object,
        name: &str,
        expected: Expected,
        options: ChangeOptions,
    ) -> Result<Done, ApiError> {
        let name = name.to_owned();
        self.change(options, move |desired: &mut Desired| {
            let stays = object == Object::DataPlane && name == MAIN;
            let absent = || if stays { main_stays() } else { not_found(desired, object, &name) };
            let set = desired[object].get(&name).ok_or_else(absent)?;
            expected.check(object, &name, set)?;
            desired[object].remove(&name);
            Ok(())
        })
        .await
    }
}
