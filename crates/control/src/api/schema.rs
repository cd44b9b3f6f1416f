//! What the document of the API says of objects, made from the table.

use super::plumbing::{ChangeQuery, DoneView};
use crate::error::ApiError;
use crate::server::{AdapterView, DataPlaneView, ObjectView, VolumeView};
use fabric::attribute::{Attribute, Default, Kind, Object};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use utoipa::openapi::path::{HttpMethod, Operation, ParameterIn};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{OneOfBuilder, OpenApi, PathItem, Ref, RefOr};
use utoipa::{IntoParams, ToSchema};

/// Adds paths and schemas of all objects.
pub(super) fn add_objects(document: &mut OpenApi) {
    let tag = |object: Object| {
        TagBuilder::new().name(object.noun()).description(Some(capital(object.about()))).build()
    };
    let tags = Object::ALL.map(tag).into_iter();
    document.tags = Some(tags.chain(document.tags.take().unwrap_or_default()).collect());
    let mut schemas = Vec::new();
    VolumeView::schemas(&mut schemas);
    AdapterView::schemas(&mut schemas);
    DataPlaneView::schemas(&mut schemas);
    for object in Object::ALL {
        let attributes = |what: &str| {
            let mut attributes = reference(&attributes_of(object));
            attributes["description"] = what.into();
            attributes
        };
        let (of_new, of_change) =
            (attributes("What differs from the defaults."), attributes("The attributes."));
        let name = "A letter or a digit, then letters, digits, `-`, `_` or `.`; at most 253.";
        let new = json!({
            "type": "object", "description": format!("A new {object}."), "required": ["name"],
            "properties": {"attributes": of_new, "name": {"type": "string", "description": name}},
            "additionalProperties": false,
        });
        let change = json!({
            "type": "object", "required": ["attributes"], "properties": {"attributes": of_change},
            "description": "Attributes to change; `null` puts one back to its default.",
            "additionalProperties": false,
        });
        schemas.push((attributes_of(object), attributes_schema(object)));
        schemas.push((format!("New{object:?}"), made(new)));
        schemas.push((format!("Change{object:?}"), made(change)));
        for (path, method, operation) in operations(object) {
            document.paths.add_path_operation(path, vec![method], made::<Operation>(operation));
        }
    }
    schemas.extend([
        view_schema::<VolumeView>(Some(Object::Volume)),
        view_schema::<AdapterView>(Some(Object::Adapter)),
        view_schema::<DataPlaneView>(Some(Object::DataPlane)),
        view_schema::<ObjectView>(None),
    ]);
    document.components.get_or_insert_default().schemas.extend(schemas);
}

/// The schema of a view, in which the attributes are those of its object, if it is of one only.
fn view_schema<V: ToSchema>(object: Option<Object>) -> (String, RefOr<Schema>) {
    let mut schema = V::schema();
    if let (RefOr::T(Schema::Object(view)), Some(object)) = (&mut schema, object) {
        for name in ["attributes", "effective"] {
            let Some(RefOr::T(Schema::Object(own))) = view.properties.get(name) else { continue };
            let mut attributes = Ref::from_schema_name(attributes_of(object));
            attributes.description = own.description.clone().unwrap_or_default();
            view.properties.insert(name.to_owned(), attributes.into());
        }
    }
    (V::name().into_owned(), schema)
}

/// What an object is shown as.
fn view_of(object: Object) -> std::borrow::Cow<'static, str> {
    match object {
        Object::Volume => VolumeView::name(),
        Object::Adapter => AdapterView::name(),
        Object::DataPlane => DataPlaneView::name(),
        _ => ObjectView::name(),
    }
}

/// Says of each answer what it is, where nothing was said: a document without that is not valid.
pub(super) fn describe_answers(document: &mut OpenApi) {
    for path in document.paths.paths.values_mut() {
        let PathItem { get, put, post, delete, patch, .. } = path;
        for operation in [get, put, post, delete, patch].into_iter().flatten() {
            for (status, answer) in &mut operation.responses.responses {
                let RefOr::T(answer) = answer else { continue };
                if answer.description.is_empty() {
                    answer.description = match status.as_str() {
                        "200" => "Done, or what was asked for.",
                        "201" => "Made.",
                        "202" | "204" => "It is being done.",
                        "default" => "Why it was refused, or could not be done.",
                        _ => "See `message`.",
                    }
                    .to_owned();
                }
            }
        }
    }
}

/// The five operations of an object.
fn operations(object: Object) -> [(String, HttpMethod, Value); 5] {
    let (noun, collection) = (object.noun(), object.collection());
    let (all, one) = (format!("/v1/{collection}"), format!("/v1/{collection}/{{name}}"));
    let how = ChangeQuery::into_params(|| Some(ParameterIn::Query));
    let how: Vec<Value> = how.iter().map(|parameter| json!(parameter)).collect();
    let name = json!({
        "name": "name", "in": "path", "description": format!("Name of the {noun}"), "required": true,
        "schema": {"type": "string"},
    });
    let how_and_name: Vec<Value> = how.iter().chain([&name]).cloned().collect();
    let as_read = json!({
        "name": "If-Match", "in": "header", "required": false, "schema": {"type": "string"},
        "description": "The `ETag` with which it was read: refused with 412 when its attributes have changed since.",
    });
    let change: Vec<Value> = how_and_name.iter().chain([&as_read]).cloned().collect();
    let content = |schema: Value| json!({"application/json": {"schema": schema}});
    let view = reference(&view_of(object));
    let list = json!({
        "type": "object", "required": ["items"],
        "properties": {"items": {"type": "array", "items": view, "description": "By name."}},
    });
    let done = reference(&DoneView::name());
    let answers = |status: &str, schema: &Value| {
        json!({
            status: {"description": "", "content": content(schema.clone())},
            "default": {"description": "", "content": content(reference(&ApiError::name()))},
        })
    };
    let body = |what| json!({"content": content(reference(&format!("{what}{object:?}"))), "required": true});
    let mut shown = answers("200", &view);
    shown["200"]["headers"]["ETag"] = json!({
        "schema": {"type": "string"}, "description": "Of its attributes, for `If-Match`.",
    });
    let title = object.title().to_lowercase();
    [
        (
            all.clone(),
            HttpMethod::Get,
            json!({
                "tags": [noun], "summary": format!("All {title}."), "operationId": format!("list_{collection}"),
                "responses": {"200": {"description": "", "content": content(list)}},
            }),
        ),
        (
            all,
            HttpMethod::Post,
            json!({
                "tags": [noun], "summary": format!("Makes a new {noun}."), "operationId": format!("create_{noun}"),
                "description": "When the data plane cannot do it, nothing is made.",
                "parameters": how, "requestBody": body("New"), "responses": answers("201", &done),
            }),
        ),
        (
            one.clone(),
            HttpMethod::Get,
            json!({
                "tags": [noun], "summary": format!("One {noun}."), "operationId": format!("show_{noun}"),
                "parameters": [name], "responses": shown,
            }),
        ),
        (
            one.clone(),
            HttpMethod::Patch,
            json!({
                "tags": [noun], "summary": format!("Changes one {noun}."), "operationId": format!("set_{noun}"),
                "description": "Each attribute says when a change takes effect. When the data plane cannot do it, nothing changes.",
                "parameters": change, "requestBody": body("Change"), "responses": answers("200", &done),
            }),
        ),
        (
            one,
            HttpMethod::Delete,
            json!({
                "tags": [noun], "summary": format!("Removes one {noun}."), "operationId": format!("remove_{noun}"),
                "parameters": change, "responses": answers("200", &done),
            }),
        ),
    ]
}

/// A part of the document. What it is made from is written here and in the table.
fn made<T: DeserializeOwned>(part: Value) -> T {
    serde_json::from_value(part).expect("it is of the form that OpenAPI has")
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// The name of the schema of an object's attributes.
fn attributes_of(object: Object) -> String {
    format!("{object:?}Attributes")
}

fn attributes_schema(object: Object) -> RefOr<Schema> {
    let mut schema = ObjectBuilder::new()
        .description(Some(format!(
            "Attributes of a {object}. `null` puts one back to its default."
        )))
        // Those for tests are not listed here and still allowed.
        .additional_properties(Some(AdditionalProperties::FreeForm(true)));
    for attribute in object.attributes().filter(|attribute| !attribute.hidden) {
        schema = schema.property(attribute.name, value_schema(attribute));
    }
    schema.into()
}

fn value_schema(attribute: &Attribute) -> RefOr<Schema> {
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
        Kind::NumberOrAuto { min, max } => {
            return OneOfBuilder::new()
                .item(number().minimum(Some(min)).maximum(Some(max)))
                .item(text().enum_values(Some(["auto"])))
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
