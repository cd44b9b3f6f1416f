//! What all handlers share: bodies, errors, answers.

use super::visitors::Visitor;
use crate::caller;
use crate::error::{ApiError, Code};
use crate::model::loss::Loss;
use crate::model::transition::{Allow, Change};
use crate::server::shared::Server;
use crate::server::{ChangeOptions, Done, Expected, OnFailure};
use axum::Json;
use axum::extract::{ConnectInfo, FromRequest, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::{self, DeserializeOwned, Error, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// An answer that is JSON, or a refusal.
pub(super) type Answer<T> = Result<Json<T>, ApiError>;

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = match self.code {
            Code::Invalid => StatusCode::BAD_REQUEST,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::Exists | Code::InUse | Code::Fixed => StatusCode::CONFLICT,
            Code::Changed => StatusCode::PRECONDITION_FAILED,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, Json(self)).into_response()
    }
}

/// A JSON body; one that cannot be read is a refusal like any other.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, ApiError> {
        let text = String::from_request(request, state)
            .await
            .map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
        serde_json::from_str(&text).map(Body).map_err(|error| {
            ApiError::invalid(format!("the body: {error}"))
                .help("see /openapi.json for what is expected")
        })
    }
}

/// A body that is a text; one that is none is a refusal like any other.
pub(super) struct Text(pub(super) String);

impl<S: Send + Sync> FromRequest<S> for Text {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Text, ApiError> {
        let text = String::from_request(request, state).await;
        text.map(Text).map_err(|rejection| ApiError::invalid(rejection.body_text()))
    }
}

/// An object whose keys are each there once: of two with one name one would be lost.
pub(super) fn unique<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Unique<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Unique<T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("attributes")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some((key, value)) = from.next_entry::<String, T>()? {
                if all.contains_key(&key) {
                    return Err(Error::custom(format!("duplicate attribute `{key}`")));
                }
                all.insert(key, value);
            }
            Ok(all)
        }
    }

    deserializer.deserialize_map(Unique(PhantomData))
}

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a question waits for the end of a start; then it is answered from what is known.
const START_WAIT: Duration = Duration::from_millis(900);

/// What every request passes: its body arrives in time, no change gets in front of a start, and what it does is done for its caller.
pub(super) async fn admit(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    let visitor = request.extensions().get::<ConnectInfo<Visitor>>().map(|info| info.0.clone());
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, crate::config::BYTES_MAX);
    let bytes = match tokio::time::timeout(BODY_TIMEOUT, bytes).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return ApiError::invalid(format!("the body: {error}")).into_response(),
        Err(_) => return ApiError::invalid("the body did not arrive in time").into_response(),
    };
    match (&parts.method, parts.uri.path()) {
        (&Method::GET, _) => {
            let _ = tokio::time::timeout(START_WAIT, server.started()).await;
        }
        // Nor does an end wait for it.
        (_, "/v1/stop") => {}
        _ => server.started().await,
    }
    let _busy = visitor.as_ref().map(Visitor::busy);
    let request = Request::from_parts(parts, bytes.into());
    caller::on_behalf_of(visitor.and_then(|visitor| visitor.caller), next.run(request)).await
}

/// A list of objects.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ItemList<T> {
    /// The objects, by name.
    pub items: Vec<T>,
}

/// What a change came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct DoneView {
    /// What changed, or, with `dry_run`, what would.
    pub changes: Vec<Change>,
    /// Data planes that do not run now: what is for them is stored, and carried out when they do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<ApiError>,
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

impl From<Done> for DoneView {
    fn from(done: Done) -> DoneView {
        let Done { changes, waiting, losses, warnings, operation, .. } = done;
        DoneView { changes, waiting, losses, warnings, operation }
    }
}

/// How a change to one object is made.
#[derive(Debug, Clone, Copy, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangeQuery {
    /// Say what would change, and change nothing.
    #[serde(default)]
    dry_run: bool,
    /// Take disks from clients that are connected, too.
    #[serde(default)]
    force: bool,
    /// Answer when it is done; without it, as soon as it is stored, with the operation that goes on.
    #[serde(default = "waits")]
    wait: bool,
}

pub(super) fn waits() -> bool {
    true
}

impl ChangeQuery {
    /// A change of one object is taken back when a data plane cannot do it.
    pub(super) fn options(self) -> ChangeOptions {
        let allow = Allow { force: self.force, ..Allow::default() };
        let (dry_run, wait) = (self.dry_run, self.wait);
        ChangeOptions { dry_run, allow, on_failure: OnFailure::Revert, wait }
    }
}

/// A query; one that cannot be read is a refusal like any other.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> axum::extract::FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &S,
    ) -> Result<Query<T>, ApiError> {
        axum::extract::Query::<T>::from_request_parts(parts, state)
            .await
            .map(|query| Query(query.0))
            .map_err(|rejection| ApiError::invalid(rejection.body_text()).help("see /openapi.json"))
    }
}

/// What stands in the path; what cannot be read is a refusal like any other.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> axum::extract::FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &S,
    ) -> Result<Path<T>, ApiError> {
        axum::extract::Path::<T>::from_request_parts(parts, state)
            .await
            .map(|path| Path(path.0))
            .map_err(|rejection| ApiError::invalid(rejection.body_text()).help("see /openapi.json"))
    }
}

/// The header `If-Match`.
pub(super) struct IfMatch(pub(super) Expected);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        _: &S,
    ) -> Result<IfMatch, ApiError> {
        // Several lines are one list.
        let mut lines = Vec::new();
        for line in parts.headers.get_all(header::IF_MATCH) {
            lines.push(line.to_str().map_err(|error| ApiError::invalid(error.to_string()))?);
        }
        let none = lines.is_empty();
        Ok(IfMatch(if none { Expected::default() } else { Expected::read(&lines.join(",")) }))
    }
}

pub(super) async fn no_such_path(request: Request) -> ApiError {
    ApiError::new(Code::NotFound, format!("there is no {}", request.uri().path()))
        .help("/openapi.json lists all paths")
}

pub(super) async fn no_such_method(request: Request) -> Response {
    let refusal =
        ApiError::invalid(format!("{} is not for {}", request.uri().path(), request.method()))
            .help("/openapi.json lists the methods of each path");
    (StatusCode::METHOD_NOT_ALLOWED, Json(refusal)).into_response()
}
