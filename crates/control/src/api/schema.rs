//! Schemas of attributes, made from the table.

use fabric::attribute::{Attribute, Attributes, Default, Kind, Object};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::openapi::{OneOfBuilder, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// Attributes of a volume.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VolumeAttributes(pub Attributes);

/// Attributes of an adapter.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AdapterAttributes(pub Attributes);

/// Attributes of a data plane.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DataplaneAttributes(pub Attributes);

/// Attributes of a virtual target device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VtdAttributes(pub Attributes);

/// Attributes of a medium.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MediumAttributes(pub Attributes);

/// Attributes of a port.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PortAttributes(pub Attributes);

/// Attributes of a target.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TargetAttributes(pub Attributes);

/// Attributes of a zone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ZoneAttributes(pub Attributes);

/// Attributes of a mask.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MaskAttributes(pub Attributes);

macro_rules! schema_from_table {
    ($type:ty, $object:expr) => {
        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                attributes($object)
            }
        }
        impl ToSchema for $type {}
    };
}

schema_from_table!(VolumeAttributes, Object::Volume);
schema_from_table!(AdapterAttributes, Object::Adapter);
schema_from_table!(DataplaneAttributes, Object::DataPlane);
schema_from_table!(VtdAttributes, Object::Vtd);
schema_from_table!(MediumAttributes, Object::Medium);
schema_from_table!(PortAttributes, Object::Port);
schema_from_table!(TargetAttributes, Object::Target);
schema_from_table!(ZoneAttributes, Object::Zone);
schema_from_table!(MaskAttributes, Object::Mask);

fn attributes(object: Object) -> RefOr<Schema> {
    let mut schema = ObjectBuilder::new()
        .description(Some(format!(
            "Attributes of a {object}. `null` puts one back to its default."
        )))
        // Those for tests are not listed here and still allowed.
        .additional_properties(Some(AdditionalProperties::FreeForm(true)));
    for attribute in object.attributes().filter(|attribute| !attribute.hidden) {
        schema = schema.property(attribute.name, value(attribute));
    }
    schema.into()
}

fn value(attribute: &Attribute) -> RefOr<Schema> {
    let kinds = match attribute.kinds {
        [] => String::new(),
        list => format!(" Of the kind {}.", list.join(" or ")),
    };
    let description = format!(
        "{}{kinds} Takes effect: {}. Default: {}.",
        attribute.meaning,
        attribute.effect.word(),
        attribute.default_text()
    );
    let number = || typed(Type::Integer);
    let text = || typed(Type::String);
    let schema = match attribute.kind {
        Kind::Switch => typed(Type::Boolean),
        Kind::Number { min, max } | Kind::PowerOfTwo { min, max } => {
            number().minimum(Some(min)).maximum(Some(max))
        }
        Kind::NumberOf(list) => number().enum_values(Some(list.to_vec())),
        Kind::Word(list) => text().enum_values(Some(list.to_vec())),
        Kind::Text { bytes_max } => text().max_length(Some(bytes_max)),
        Kind::Size { min, max } => {
            let bytes = number().minimum(Some(min)).maximum(Some(max));
            return OneOfBuilder::new()
                .item(bytes)
                .item(text().examples(["10GiB"]))
                .description(Some(description))
                .into();
        }
        Kind::Name(_)
        | Kind::Names(_)
        | Kind::Members
        | Kind::LunMap
        | Kind::Luns
        | Kind::Wwpn
        | Kind::WwpnPair
        | Kind::WwpnPrefix
        | Kind::Naa
        | Kind::Path
        | Kind::Cpus
        | Kind::Mode => text(),
    };
    let schema = match attribute.default {
        Default::Fixed(text) => {
            schema.default(attribute.parse(text).ok().and_then(|v| serde_json::to_value(v).ok()))
        }
        _ => schema,
    };
    schema.description(Some(description)).into()
}

fn typed(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(kind)
}
