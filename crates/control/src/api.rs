//! The API: HTTP with JSON over a Unix socket.
//!
//! Each handler is a few lines over [`Server`]; what can be asked stands in `docs/openapi.json`, which
//! is made from these handlers and from the table of attributes. Errors are a
//! [`Refusal`](crate::refusal::Refusal) as JSON.
//!
//! Who may connect is decided by the socket's owner and mode: everybody who can open it is an
//! administrator.

mod adapters;
mod dataplanes;
mod plumbing;
mod schema;
mod state;
mod volumes;

pub use plumbing::{DoneView, ItemList};
pub use schema::{AdapterAttributes, DataplaneAttributes, VolumeAttributes};
pub use state::{AppliedView, AttributeView};

use crate::server::Server;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Trunkline",
        description = "Control of a Trunkline server: volumes, adapters, data planes. Served on a \
                       Unix socket, by default /run/trunkline/trunkline.sock.",
        license(name = "Apache-2.0")
    ),
    components(schemas(crate::refusal::Refusal)),
    tags(
        (name = "volume", description = "What holds data"),
        (name = "adapter", description = "What clients connect to"),
        (name = "dataplane", description = "The processes that move I/O"),
        (name = "server", description = "The server as a whole")
    )
)]
struct Document;

fn routes() -> OpenApiRouter<Arc<Server>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(volumes::list, volumes::create))
        .routes(routes!(volumes::show, volumes::set, volumes::remove))
        .routes(routes!(volumes::resize))
        .routes(routes!(adapters::list, adapters::create))
        .routes(routes!(adapters::show, adapters::set, adapters::remove))
        .routes(routes!(adapters::explain))
        .routes(routes!(dataplanes::list, dataplanes::create))
        .routes(routes!(dataplanes::show, dataplanes::set, dataplanes::remove))
        .routes(routes!(dataplanes::restart))
        .routes(routes!(state::status))
        .routes(routes!(state::apply))
        .routes(routes!(state::export))
        .routes(routes!(state::stats))
        .routes(routes!(state::flight))
        .routes(routes!(state::attributes))
        .routes(routes!(state::stop))
        .routes(routes!(state::metrics))
}

/// The document that describes the API.
pub fn openapi() -> String {
    let document = routes().into_openapi();
    let mut text = document.to_pretty_json().expect("the document is plain data");
    text.push('\n');
    text
}

/// The API of a server.
pub fn router(server: Arc<Server>) -> Router {
    let (router, _) = routes().split_for_parts();
    router
        .route("/openapi.json", axum::routing::get(plumbing::openapi))
        .fallback(plumbing::no_such_path)
        .method_not_allowed_fallback(plumbing::no_such_method)
        .layer(DefaultBodyLimit::max(crate::config::BYTES_MAX))
        .with_state(server)
}

#[cfg(test)]
mod tests;
