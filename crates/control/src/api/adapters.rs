//! Handlers of adapters.

use super::plumbing::{Answer, Body, ChangeQuery, DoneView, ItemList, Query};
use super::schema::AdapterAttributes;
use crate::refusal::Refusal;
use crate::server::{AdapterView, Explanation, Server};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use fabric::attribute::{Attributes, Object, Value};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// A new adapter.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewAdapter)]
pub(super) struct New {
    /// A letter, then letters, digits, `-` or `_`; at most 32.
    name: String,
    /// What differs from the defaults.
    #[serde(default)]
    #[schema(value_type = AdapterAttributes)]
    attributes: Attributes,
}

/// Attributes to change; `null` puts one back to its default.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeAdapter)]
pub(super) struct Edit {
    /// The attributes.
    #[schema(value_type = AdapterAttributes)]
    attributes: BTreeMap<String, Option<Value>>,
}

/// All adapters.
#[utoipa::path(get, path = "/v1/adapters", tag = "adapter", operation_id = "list_adapters",
    responses((status = 200, body = ItemList<AdapterView>)))]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Json<ItemList<AdapterView>> {
    Json(ItemList { items: server.status().await.adapters })
}

/// One adapter.
#[utoipa::path(get, path = "/v1/adapters/{name}", tag = "adapter", operation_id = "show_adapter",
    params(("name" = String, Path, description = "Name of the adapter")),
    responses((status = 200, body = AdapterView), (status = "default", body = Refusal)))]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<AdapterView> {
    let mut all = server.status().await.adapters.into_iter();
    let found = all.find(|item| item.name == name);
    found.map(Json).ok_or_else(|| server.not_found(Object::Adapter, &name))
}

/// Makes a adapter.
///
/// When the data plane cannot do it, nothing is made.
#[utoipa::path(post, path = "/v1/adapters", tag = "adapter", operation_id = "create_adapter", params(ChangeQuery),
    request_body = New,
    responses((status = 201, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn create(
    State(server): State<Arc<Server>>,
    Query(query): Query<ChangeQuery>,
    Body(new): Body<New>,
) -> Result<(StatusCode, Json<DoneView>), Refusal> {
    let manner = query.manner();
    let done = server.create(Object::Adapter, &new.name, new.attributes, manner).await?;
    Ok((StatusCode::CREATED, Json(done.into())))
}

/// Changes a adapter.
///
/// Each attribute says when a change takes effect. When the data plane cannot do it, nothing changes.
#[utoipa::path(patch, path = "/v1/adapters/{name}", tag = "adapter", operation_id = "set_adapter",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the adapter")),
    request_body = Edit,
    responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn set(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
    Body(edit): Body<Edit>,
) -> Answer<DoneView> {
    let manner = query.manner();
    Ok(Json(server.set(Object::Adapter, &name, edit.attributes, manner).await?.into()))
}

/// Removes a adapter.
#[utoipa::path(delete, path = "/v1/adapters/{name}", tag = "adapter", operation_id = "remove_adapter",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the adapter")),
    responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn remove(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let manner = query.manner();
    Ok(Json(server.remove(Object::Adapter, &name, manner).await?.into()))
}

/// Forgets the channels that the client of an adapter under the policy `aix` had.
///
/// They are negotiated anew, at once.
#[utoipa::path(post, path = "/v1/adapters/{name}/reconfigure", tag = "adapter", operation_id = "reconfigure_adapter",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the adapter")),
    responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
pub(super) async fn reconfigure(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let dry_run = query.manner().dry_run;
    Ok(Json(server.reconfigure(&name, dry_run).await?.into()))
}

/// Why an adapter has as many channels as it has.
#[utoipa::path(get, path = "/v1/adapters/{name}/explain", tag = "adapter", operation_id = "explain_adapter",
    params(("name" = String, Path, description = "Name of the adapter")),
    responses((status = 200, body = Explanation), (status = "default", body = Refusal)))]
pub(super) async fn explain(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<Explanation> {
    Ok(Json(server.explain(&name).await?))
}
