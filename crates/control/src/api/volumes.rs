//! Handlers of volumes.

use super::plumbing::{Answer, Body, ChangeQuery, DoneView, ItemList, Query};
use super::schema::VolumeAttributes;
use crate::refusal::Refusal;
use crate::server::{FileAct, Server, VolumeView};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use fabric::attribute::{Attributes, Object, Value};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// A new volume.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewVolume)]
pub(super) struct New {
    /// A letter, then letters, digits, `-` or `_`; at most 32.
    name: String,
    /// What differs from the defaults.
    #[serde(default)]
    #[schema(value_type = VolumeAttributes)]
    attributes: Attributes,
}

/// Attributes to change; `null` puts one back to its default.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeVolume)]
pub(super) struct Edit {
    /// The attributes.
    #[schema(value_type = VolumeAttributes)]
    attributes: BTreeMap<String, Option<Value>>,
}

/// All volumes.
#[utoipa::path(get, path = "/v1/volumes", tag = "volume", operation_id = "list_volumes",
    responses((status = 200, body = ItemList<VolumeView>)))]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Json<ItemList<VolumeView>> {
    Json(ItemList { items: server.status().await.volumes })
}

/// One volume.
#[utoipa::path(get, path = "/v1/volumes/{name}", tag = "volume", operation_id = "show_volume",
    params(("name" = String, Path, description = "Name of the volume")),
    responses((status = 200, body = VolumeView), (status = "default", body = Refusal)))]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<VolumeView> {
    let mut all = server.status().await.volumes.into_iter();
    let found = all.find(|item| item.name == name);
    found.map(Json).ok_or_else(|| server.not_found(Object::Volume, &name))
}

/// Makes a volume.
///
/// When the data plane cannot do it, nothing is made.
#[utoipa::path(post, path = "/v1/volumes", tag = "volume", operation_id = "create_volume", params(ChangeQuery),
    request_body = New,
    responses((status = 201, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn create(
    State(server): State<Arc<Server>>,
    Query(query): Query<ChangeQuery>,
    Body(new): Body<New>,
) -> Result<(StatusCode, Json<DoneView>), Refusal> {
    let manner = query.manner();
    let done = server.create(Object::Volume, &new.name, new.attributes, manner).await?;
    Ok((StatusCode::CREATED, Json(done.into())))
}

/// Changes a volume.
///
/// Each attribute says when a change takes effect. When the data plane cannot do it, nothing changes.
#[utoipa::path(patch, path = "/v1/volumes/{name}", tag = "volume", operation_id = "set_volume",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the volume")),
    request_body = Edit,
    responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn set(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
    Body(edit): Body<Edit>,
) -> Answer<DoneView> {
    let manner = query.manner();
    Ok(Json(server.set(Object::Volume, &name, edit.attributes, manner).await?.into()))
}

/// Removes a volume.
#[utoipa::path(delete, path = "/v1/volumes/{name}", tag = "volume", operation_id = "remove_volume",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the volume")),
    responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn remove(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let manner = query.manner();
    Ok(Json(server.remove(Object::Volume, &name, manner).await?.into()))
}

/// A new size.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Resize {
    /// Bytes, or a text such as `20GiB`.
    #[schema(value_type = String)]
    size: Value,
    /// Allow the volume to become smaller, which loses what lies beyond.
    #[serde(default)]
    shrink: bool,
}

/// Changes the size of a volume.
///
/// Running guests see the new size at once.
#[utoipa::path(post, path = "/v1/volumes/{name}/resize", tag = "volume", operation_id = "resize_volume",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the volume")),
    request_body = Resize,
    responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn resize(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
    Body(resize): Body<Resize>,
) -> Answer<DoneView> {
    let mut manner = query.manner();
    manner.allow.shrink = resize.shrink;
    let change = BTreeMap::from([("size".to_owned(), Some(resize.size))]);
    Ok(Json(server.set(Object::Volume, &name, change, manner).await?.into()))
}

/// Takes the file that is there now as the volume's own, with what is in it.
///
/// For a volume that failed because its file was replaced or is shorter: after a backup was put back, for example.
#[utoipa::path(post, path = "/v1/volumes/{name}/accept", tag = "volume", operation_id = "accept_volume",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the volume")),
    responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn accept(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let dry_run = query.manner().dry_run;
    Ok(Json(server.renew_file(&name, FileAct::Accept, dry_run).await?.into()))
}

/// Makes an empty file for the volume.
///
/// For a volume that failed because its file is missing. What was in it is not brought back.
#[utoipa::path(post, path = "/v1/volumes/{name}/recreate", tag = "volume", operation_id = "recreate_volume",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the volume")),
    responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn recreate(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let dry_run = query.manner().dry_run;
    Ok(Json(server.renew_file(&name, FileAct::Recreate, dry_run).await?.into()))
}
