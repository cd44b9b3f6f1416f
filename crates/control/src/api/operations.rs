//! Operations: what takes long, and what became of it.

use super::plumbing::{Answer, ItemList, Path, Query};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::operation::{Kind, Operation, Step};
use crate::server::{Progress, Server, Shown};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// An operation.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OperationView {
    /// Its number.
    pub id: u64,
    /// What kind of work.
    pub kind: Kind,
    /// How far it is; `done` and `undone` are the end.
    pub step: Step,
    /// What it is about: noun and name.
    pub subjects: Vec<String>,
    /// How much is done of what is in sight.
    pub progress: Progress,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Whether it can be cancelled now.
    pub can_cancel: bool,
    /// Why it was undone, or what is not as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
}

impl From<Shown> for OperationView {
    fn from(shown: Shown) -> OperationView {
        let (subjects, can_cancel) = (shown.operation.subjects(), shown.operation.can_cancel());
        let Operation { id, kind, step, caller, started_ms, ended_ms, error, .. } = shown.operation;
        let (progress, by) = (shown.progress, caller);
        OperationView {
            id,
            kind,
            step,
            subjects,
            progress,
            by,
            started_ms,
            ended_ms,
            can_cancel,
            error,
        }
    }
}

/// What goes on and what has ended of late, the oldest first.
///
/// A change of objects that data planes carry out at once is there only as long as it goes on.
#[utoipa::path(get, path = "/v1/operations", tag = "server", operation_id = "list_operations",
    responses((status = 200, body = ItemList<OperationView>)))]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Json<ItemList<OperationView>> {
    Json(ItemList { items: server.operations().into_iter().map(OperationView::from).collect() })
}

/// How long to wait.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WaitQuery {
    /// How many seconds to wait for its end if it goes on, at most 60.
    #[serde(default)]
    wait_s: u64,
}

/// One operation.
#[utoipa::path(get, path = "/v1/operations/{id}", tag = "server", operation_id = "show_operation",
    params(WaitQuery, ("id" = u64, Path, description = "Its number")),
    responses((status = 200, body = OperationView), (status = "default", body = ApiError)))]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Path(id): Path<u64>,
    Query(query): Query<WaitQuery>,
) -> Answer<OperationView> {
    let wait = Duration::from_secs(query.wait_s.min(60));
    match tokio::time::timeout(wait, server.operation_ended(id)).await {
        Ok(ended) => Ok(Json(ended?.into())),
        Err(_) => Ok(Json(server.operation(id)?.into())),
    }
}

/// Has an operation undone.
///
/// It goes on until nothing of it is left. Refused where it has ended, or is carried to its end whatever happens.
#[utoipa::path(post, path = "/v1/operations/{id}/cancel", tag = "server", operation_id = "cancel_operation",
    params(("id" = u64, Path, description = "Its number")),
    responses((status = 200, body = OperationView), (status = "default", body = ApiError)))]
pub(super) async fn cancel(
    State(server): State<Arc<Server>>,
    Path(id): Path<u64>,
) -> Answer<OperationView> {
    Ok(Json(server.cancel_operation(id).await?.into()))
}
