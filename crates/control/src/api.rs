//! The API: HTTP with JSON over a Unix socket.
//!
//! Each handler is a few lines over [`Server`]; what can be asked stands in `docs/openapi.json`, which
//! is made from the table of objects and from the handlers of what these have not in common. Errors are a
//! [`ApiError`](crate::error::ApiError) as JSON.
//!
//! Who may connect is decided by the socket's owner and mode: everybody who can open it is an
//! administrator.

mod objects;
mod operations;
mod plumbing;
mod schema;
mod state;
mod verbs;
mod visitors;

pub use operations::OperationView;
pub use plumbing::{DoneView, ItemList};
pub use state::{AppliedView, AttributeView, EventsView};
pub use verbs::FindingView;
pub use visitors::{VISITORS_MAX, Visitor, Visitors};

use crate::server::Server;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header;
use axum::response::IntoResponse;
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
    components(schemas(crate::error::ApiError)),
    tags((name = "server", description = "The server as a whole"))
)]
struct Document;

/// What is there beside the five handlers of every object.
fn routes() -> OpenApiRouter<Arc<Server>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(verbs::resize))
        .routes(routes!(verbs::accept))
        .routes(routes!(verbs::recreate))
        .routes(routes!(verbs::explain))
        .routes(routes!(verbs::explain_port))
        .routes(routes!(verbs::explain_pool))
        .routes(routes!(verbs::explain_lu))
        .routes(routes!(verbs::reconfigure))
        .routes(routes!(verbs::reset_marks))
        .routes(routes!(verbs::reset_port_marks))
        .routes(routes!(verbs::restart))
        .routes(routes!(verbs::purge))
        .routes(routes!(verbs::scrub))
        .routes(routes!(verbs::open_pool))
        .routes(routes!(verbs::grow_pvs))
        .routes(routes!(verbs::rollback))
        .routes(routes!(verbs::detach))
        .routes(routes!(verbs::import))
        .routes(routes!(verbs::export))
        .routes(routes!(verbs::check_seas))
        .routes(routes!(verbs::sea_clients))
        .routes(routes!(verbs::clear_sea_clients))
        .routes(routes!(verbs::check_pools))
        .routes(routes!(verbs::trace))
        .routes(routes!(verbs::vlans))
        .routes(routes!(operations::list))
        .routes(routes!(operations::show))
        .routes(routes!(operations::cancel))
        .routes(routes!(state::logins))
        .routes(routes!(state::status))
        .routes(routes!(state::apply))
        .routes(routes!(state::export))
        .routes(routes!(state::stats))
        .routes(routes!(state::flight))
        .routes(routes!(state::events))
        .routes(routes!(state::attributes))
        .routes(routes!(state::stop))
        .routes(routes!(state::metrics))
}

/// The document that describes the API.
pub fn openapi() -> String {
    let mut document = routes().into_openapi();
    schema::add_objects(&mut document);
    schema::describe_answers(&mut document);
    let mut text = document.to_pretty_json().expect("the document is plain data");
    text.push('\n');
    text
}

/// `/openapi.json`.
async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], openapi())
}

/// The API of a server.
pub fn router(server: Arc<Server>) -> Router {
    let (router, _) = routes().split_for_parts();
    router
        .merge(objects::routes())
        .route("/openapi.json", axum::routing::get(document))
        .fallback(plumbing::no_such_path)
        .method_not_allowed_fallback(plumbing::no_such_method)
        .layer(DefaultBodyLimit::max(crate::config::BYTES_MAX))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&server), plumbing::admit))
        .with_state(server)
}

#[cfg(test)]
mod tests;
