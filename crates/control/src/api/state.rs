//! Handlers of the server as a whole.

use super::plumbing::{Answer, ItemList, Query, Text, waits};
use crate::config;
use crate::error::{ApiError, Code};
use crate::metrics;
use crate::model::loss::Loss;
use crate::model::transition::{Allow, Change};
use crate::server::{ChangeOptions, Done, LoginView, OnFailure, Server, StatusView};
use crate::statistics::{FlightView, StatsView};
use crate::trail::Event;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use fabric::attribute::Object;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// Everything: data planes, volumes, adapters and how they are.
#[utoipa::path(get, path = "/v1/status", tag = "server", responses((status = 200, body = StatusView)))]
pub(super) async fn status(State(server): State<Arc<Server>>) -> Json<StatusView> {
    Json(server.status().await)
}

/// How a configuration is applied.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ApplyQuery {
    /// Say what would change, and change nothing.
    #[serde(default)]
    dry_run: bool,
    /// Allow volumes to become smaller, which loses what lies beyond.
    #[serde(default)]
    shrink: bool,
    /// Remove the objects that the configuration does not name; without it they stay.
    #[serde(default)]
    prune: bool,
    /// Take disks from clients that are connected, too, and take a configuration that names nothing.
    #[serde(default)]
    force: bool,
    /// Answer when it is done; without it, as soon as it is stored, with the operation that goes on.
    #[serde(default = "waits")]
    wait: bool,
    /// The folder from which relative paths of volumes are taken; without it the server's.
    #[serde(default)]
    folder: Option<String>,
}

/// What applying came to.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AppliedView {
    /// What changed, or, with `dry_run`, what would; empty when there was nothing to do.
    pub changes: Vec<Change>,
    /// What data planes could not do; it is tried again.
    pub failures: Vec<ApiError>,
    /// Data planes that do not run now: what is for them is stored, and carried out when they do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<ApiError>,
    /// Objects that the configuration does not name and that stay (noun and name): `prune` removes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// What clients that are connected lost, or, with `dry_run`, would lose: without `force` it is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// What the next start of the server makes undone, since its configuration file says something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// With `wait=false`: the operation that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<u64>,
}

/// Makes the objects that a configuration names what it says.
///
/// Objects that it does not name stay, unless `prune` is given. A configuration that names nothing is refused without `force`. Applying the same configuration again changes nothing.
#[utoipa::path(post, path = "/v1/apply", tag = "server", params(ApplyQuery),
    request_body(content = String, content_type = "application/toml", description = "The configuration file"),
    responses((status = 200, body = AppliedView), (status = "default", body = ApiError)))]
pub(super) async fn apply(
    State(server): State<Arc<Server>>,
    Query(query): Query<ApplyQuery>,
    Text(body): Text,
) -> Answer<AppliedView> {
    let mut wanted = config::read(&body)?;
    if let Some(folder) = &query.folder {
        config::resolve_paths(&mut wanted, Path::new(folder));
    }
    let options = ChangeOptions {
        dry_run: query.dry_run,
        allow: Allow { shrink: query.shrink, force: query.force },
        on_failure: OnFailure::Keep,
        wait: query.wait,
    };
    let (done, others) = server.apply(wanted, query.prune, options).await?;
    let Done { changes, failures, waiting, losses, warnings, operation } = done;
    Ok(Json(AppliedView { changes, failures, waiting, others, losses, warnings, operation }))
}

/// The desired state as a configuration file.
#[utoipa::path(get, path = "/v1/export", tag = "server",
    responses((status = 200, body = String, content_type = "application/toml")))]
pub(super) async fn export(State(server): State<Arc<Server>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/toml")], config::write(&server.desired()))
}

/// Who is logged in where: every virtual Fibre Channel adapter with the targets and LUNs that it sees.
#[utoipa::path(get, path = "/v1/logins", tag = "port",
    responses((status = 200, body = ItemList<LoginView>)))]
pub(super) async fn logins(State(server): State<Arc<Server>>) -> Json<ItemList<LoginView>> {
    Json(ItemList { items: server.logins().await })
}

/// Which statistics.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StatsQuery {
    /// Only of this adapter.
    adapter: Option<String>,
    /// With whole histograms.
    #[serde(default)]
    histograms: bool,
}

/// The statistics: every queue, adapter and channel.
#[utoipa::path(get, path = "/v1/stats", tag = "server", params(StatsQuery),
    responses((status = 200, body = StatsView), (status = "default", body = ApiError)))]
pub(super) async fn stats(
    State(server): State<Arc<Server>>,
    Query(query): Query<StatsQuery>,
) -> Answer<StatsView> {
    Ok(Json(server.stats(query.adapter.as_deref(), query.histograms)?))
}

/// Which flight recorders.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FlightQuery {
    /// Only of this data plane.
    dataplane: Option<String>,
    /// Only of this channel.
    channel: Option<u32>,
}

/// The last events of each channel, oldest first.
#[utoipa::path(get, path = "/v1/flight", tag = "server", params(FlightQuery),
    responses((status = 200, body = Vec<FlightView>), (status = "default", body = ApiError)))]
pub(super) async fn flight(
    State(server): State<Arc<Server>>,
    Query(query): Query<FlightQuery>,
) -> Answer<Vec<FlightView>> {
    Ok(Json(server.flight(query.dataplane.as_deref(), query.channel)?))
}

/// Which events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// Only those with a higher number.
    #[serde(default)]
    after: u64,
    /// Only those since then, in milliseconds since 1970.
    #[serde(default)]
    since_ms: u64,
    /// Only those that are about this object; of an adapter or a port also those about its data plane.
    of: Option<String>,
    /// How many seconds to wait for one if there is none, at most 60.
    #[serde(default)]
    wait_s: u64,
}

/// Events, oldest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct EventsView {
    /// The events.
    pub events: Vec<Event>,
    /// The number up to which it was looked, for `after`: whoever follows needs no time, which clocks may set back.
    #[serde(default)]
    pub last: u64,
}

/// What was changed and by whom, and what happened to data planes, clients and volumes.
#[utoipa::path(get, path = "/v1/events", tag = "server", params(EventsQuery),
    responses((status = 200, body = EventsView), (status = "default", body = ApiError)))]
pub(super) async fn events(
    State(server): State<Arc<Server>>,
    Query(query): Query<EventsQuery>,
) -> Answer<EventsView> {
    let wait = Duration::from_secs(query.wait_s.min(60));
    let trail = server.trail();
    let home = query.of.as_deref().and_then(|name| server.home_of(name));
    let wanted = || match &query.of {
        None => trail.since(query.after, query.since_ms),
        Some(name) => trail.of(name, home.as_deref(), (query.after, query.since_ms)),
    };
    let some = async {
        let mut seen = query.after;
        loop {
            trail.beyond(seen).await;
            // Before the look: what comes meanwhile is beyond it.
            seen = trail.last();
            if !wanted().is_empty() {
                return;
            }
        }
    };
    // The end of the time is an answer, too.
    let _ = tokio::time::timeout(wait, some).await;
    let last = trail.last();
    Ok(Json(EventsView { events: wanted(), last }))
}

/// An attribute that objects can have.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AttributeView {
    /// Whose: `volume`, `adapter`, `dataplane`, …
    pub object: String,
    /// The kinds of its object that have it; empty is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Its name.
    pub name: String,
    /// What it takes.
    pub takes: String,
    /// What it is when nobody sets it.
    pub default: String,
    /// Its unit, if it has one.
    pub unit: String,
    /// When a change takes effect.
    pub takes_effect: String,
    /// What it means.
    pub meaning: String,
}

/// The table of attributes.
#[utoipa::path(get, path = "/v1/attributes", tag = "server",
    responses((status = 200, body = Vec<AttributeView>)))]
pub(super) async fn attributes() -> Json<Vec<AttributeView>> {
    Json(AttributeView::all())
}

impl AttributeView {
    /// The table, without what is for tests.
    pub fn all() -> Vec<AttributeView> {
        let all = Object::ALL.into_iter().flat_map(Object::attributes);
        all.filter(|attribute| !attribute.hidden).map(AttributeView::from).collect()
    }
}

impl From<&fabric::attribute::Attribute> for AttributeView {
    fn from(attribute: &fabric::attribute::Attribute) -> AttributeView {
        AttributeView {
            object: attribute.object.noun().to_owned(),
            kinds: attribute.kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            name: attribute.name.to_owned(),
            takes: attribute.kind.expectation(),
            default: attribute.default_text(),
            unit: attribute.unit.to_owned(),
            takes_effect: attribute.effect.word().to_owned(),
            meaning: attribute.meaning.to_owned(),
        }
    }
}

/// What to stop.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StopQuery {
    /// The data planes too: all I/O ends.
    #[serde(default)]
    dataplanes: bool,
}

/// Stops the control plane. I/O goes on, unless the data planes are to stop as well.
#[utoipa::path(post, path = "/v1/stop", tag = "server", params(StopQuery),
    responses((status = 202, description = "It stops when this answer is sent")))]
pub(super) async fn stop(
    State(server): State<Arc<Server>>,
    Query(query): Query<StopQuery>,
) -> Result<StatusCode, ApiError> {
    server.stop(query.dataplanes);
    Ok(StatusCode::ACCEPTED)
}

/// Statistics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
pub(super) async fn metrics(
    State(server): State<Arc<Server>>,
) -> Result<impl IntoResponse, ApiError> {
    let text = metrics::text(&server)
        .await
        .map_err(|_| ApiError::new(Code::Failed, "the metrics could not be written"))?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text))
}
