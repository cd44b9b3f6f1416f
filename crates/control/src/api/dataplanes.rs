//! Handlers of data planes.

use super::plumbing::{Answer, Body, ChangeQuery, DoneView, ItemList, Query};
use super::schema::DataplaneAttributes;
use crate::refusal::Refusal;
use crate::server::{DataPlaneView, Server};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use fabric::attribute::{Attributes, Object, Value};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// A new data plane.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewDataPlane)]
pub(super) struct New {
    /// A letter, then letters, digits, `-` or `_`; at most 32.
    name: String,
    /// What differs from the defaults.
    #[serde(default)]
    #[schema(value_type = DataplaneAttributes)]
    attributes: Attributes,
}

/// Attributes to change; `null` puts one back to its default.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeDataPlane)]
pub(super) struct Edit {
    /// The attributes.
    #[schema(value_type = DataplaneAttributes)]
    attributes: BTreeMap<String, Option<Value>>,
}

/// All data planes.
#[utoipa::path(get, path = "/v1/dataplanes", tag = "dataplane", operation_id = "list_dataplanes",
    responses((status = 200, body = ItemList<DataPlaneView>)))]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Json<ItemList<DataPlaneView>> {
    Json(ItemList { items: server.status().await.dataplanes })
}

/// One data plane.
#[utoipa::path(get, path = "/v1/dataplanes/{name}", tag = "dataplane", operation_id = "show_dataplane",
    params(("name" = String, Path, description = "Name of the data plane")),
    responses((status = 200, body = DataPlaneView), (status = "default", body = Refusal)))]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<DataPlaneView> {
    let mut all = server.status().await.dataplanes.into_iter();
    let found = all.find(|item| item.name == name);
    found.map(Json).ok_or_else(|| server.not_found(Object::DataPlane, &name))
}

/// Makes a data plane.
///
/// When the data plane cannot do it, nothing is made.
#[utoipa::path(post, path = "/v1/dataplanes", tag = "dataplane", operation_id = "create_dataplane", params(ChangeQuery),
    request_body = New,
    responses((status = 201, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn create(
    State(server): State<Arc<Server>>,
    Query(query): Query<ChangeQuery>,
    Body(new): Body<New>,
) -> Result<(StatusCode, Json<DoneView>), Refusal> {
    let manner = query.manner();
    let done = server.create(Object::DataPlane, &new.name, new.attributes, manner).await?;
    Ok((StatusCode::CREATED, Json(done.into())))
}

/// Changes a data plane.
///
/// Each attribute says when a change takes effect. When the data plane cannot do it, nothing changes.
#[utoipa::path(patch, path = "/v1/dataplanes/{name}", tag = "dataplane", operation_id = "set_dataplane",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the data plane")),
    request_body = Edit,
    responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn set(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
    Body(edit): Body<Edit>,
) -> Answer<DoneView> {
    let manner = query.manner();
    Ok(Json(server.set(Object::DataPlane, &name, edit.attributes, manner).await?.into()))
}

/// Removes a data plane.
#[utoipa::path(delete, path = "/v1/dataplanes/{name}", tag = "dataplane", operation_id = "remove_dataplane",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the data plane")),
    responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn remove(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let manner = query.manner();
    Ok(Json(server.remove(Object::DataPlane, &name, manner).await?.into()))
}

/// Stops a data plane in good order and starts it with its present attributes.
///
/// Clients of its adapters wait meanwhile and lose nothing.
#[utoipa::path(post, path = "/v1/dataplanes/{name}/restart", tag = "dataplane",
    operation_id = "restart_dataplane",
    params(("name" = String, Path, description = "Name of the data plane")),
    responses((status = 204, description = "It runs again"), (status = "default", body = Refusal)))]
pub(super) async fn restart(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Refusal> {
    server.restart_dataplane(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}
