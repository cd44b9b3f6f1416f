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
mod objects;
mod plumbing;
mod schema;
mod state;
mod volumes;

pub use plumbing::{DoneView, ItemList};
pub use schema::{
    AdapterAttributes, DataplaneAttributes, MaskAttributes, MediumAttributes, PortAttributes,
    TargetAttributes, VolumeAttributes, VtdAttributes, ZoneAttributes,
};
pub use state::{AppliedView, AttributeView, EventsView};

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
        (name = "vtd", description = "What virtual SCSI adapters show"),
        (name = "medium", description = "Optical media"),
        (name = "port", description = "Ways of virtual Fibre Channel adapters to targets"),
        (name = "target", description = "Target ports with LUNs"),
        (name = "zone", description = "Who sees whom"),
        (name = "mask", description = "Who has which LUNs"),
        (name = "dataplane", description = "The processes that move I/O"),
        (name = "server", description = "The server as a whole")
    )
)]
struct Document;

/// The routes of a noun of [`objects`].
macro_rules! noun {
    ($router:expr, $module:ident) => {
        $router.routes(routes!(objects::$module::list, objects::$module::create)).routes(routes!(
            objects::$module::show,
            objects::$module::set,
            objects::$module::remove
        ))
    };
}

/// What virtual Fibre Channel and virtual SCSI have of their own.
fn san_routes() -> OpenApiRouter<Arc<Server>> {
    let router = OpenApiRouter::new().routes(routes!(state::logins));
    let router = noun!(router, ports);
    let router = noun!(router, targets);
    let router = noun!(router, zones);
    let router = noun!(router, masks);
    let router = noun!(router, vtds);
    noun!(router, media)
}

fn routes() -> OpenApiRouter<Arc<Server>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(volumes::list, volumes::create))
        .routes(routes!(volumes::show, volumes::set, volumes::remove))
        .routes(routes!(volumes::resize))
        .routes(routes!(volumes::accept))
        .routes(routes!(volumes::recreate))
        .routes(routes!(adapters::list, adapters::create))
        .routes(routes!(adapters::show, adapters::set, adapters::remove))
        .routes(routes!(adapters::explain))
        .routes(routes!(adapters::reconfigure))
        .routes(routes!(dataplanes::list, dataplanes::create))
        .routes(routes!(dataplanes::show, dataplanes::set, dataplanes::remove))
        .routes(routes!(dataplanes::restart))
        .routes(routes!(state::status))
        .routes(routes!(state::apply))
        .routes(routes!(state::export))
        .routes(routes!(state::stats))
        .routes(routes!(state::flight))
        .routes(routes!(state::events))
        .routes(routes!(state::attributes))
        .routes(routes!(state::stop))
        .routes(routes!(state::metrics))
        .merge(san_routes())
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
        .layer(axum::middleware::from_fn(plumbing::admit))
        .with_state(server)
}

#[cfg(test)]
mod tests;
