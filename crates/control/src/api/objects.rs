//! The handlers of all objects: five, which serve every collection of the table. What one of them has beside that is
//! in [`verbs`](super::verbs).

use super::plumbing::{
    Answer, Body, ChangeQuery, DoneView, IfMatch, ItemList, Path, Query, unique,
};
use crate::error::ApiError;
use crate::server::{AnyView, Server};
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::routing::get;
use axum::{Json, Router};
use fabric::attribute::{Attributes, Object, Value};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A new object.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    name: String,
    #[serde(default, deserialize_with = "unique")]
    attributes: Attributes,
}

/// Attributes to change; `None` puts one back to its default.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    #[serde(deserialize_with = "unique")]
    attributes: BTreeMap<String, Option<Value>>,
}

type On = State<Arc<Server>>;
type How = Query<ChangeQuery>;

/// The routes of all objects.
pub(super) fn routes() -> Router<Arc<Server>> {
    Object::ALL.into_iter().fold(Router::new(), |router, o| {
        let all = format!("/v1/{}", o.collection());
        let one = format!("{all}/{{name}}");
        let every = get(move |on: On| list(o, on))
            .post(move |on: On, how: How, new: Body<New>| create(o, on, how, new));
        let each = get(move |on: On, name: Path<String>| show(o, on, name))
            .patch(
                move |on: On, name: Path<String>, how: How, as_read: IfMatch, edit: Body<Edit>| {
                    set(o, on, name, how, as_read, edit)
                },
            )
            .delete(move |on: On, name: Path<String>, how: How, as_read: IfMatch| {
                remove(o, on, name, how, as_read)
            });
        router.route(&all, every).route(&one, each)
    })
}

async fn list(object: Object, State(server): On) -> Json<ItemList<AnyView>> {
    Json(ItemList { items: server.objects(object).await })
}

async fn show(
    object: Object,
    State(server): On,
    Path(name): Path<String>,
) -> Result<([(HeaderName, String); 1], Json<AnyView>), ApiError> {
    let view = server.object(object, &name).await?;
    Ok(([(header::ETAG, view.tag())], Json(view)))
}

async fn create(
    object: Object,
    State(server): On,
    Query(how): How,
    Body(new): Body<New>,
) -> Result<(StatusCode, Json<DoneView>), ApiError> {
    let done = server.create(object, &new.name, new.attributes, how.options()).await?;
    Ok((StatusCode::CREATED, Json(done.into())))
}

async fn set(
    object: Object,
    State(server): On,
    Path(name): Path<String>,
    Query(how): How,
    IfMatch(expected): IfMatch,
    Body(edit): Body<Edit>,
) -> Answer<DoneView> {
    let done = server.set(object, &name, edit.attributes, expected, how.options()).await?;
    Ok(Json(done.into()))
}

async fn remove(
    object: Object,
    State(server): On,
    Path(name): Path<String>,
    Query(how): How,
    IfMatch(expected): IfMatch,
) -> Answer<DoneView> {
    Ok(Json(server.remove(object, &name, expected, how.options()).await?.into()))
}
