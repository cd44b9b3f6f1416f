//! Handlers of ports, targets, zones, masks, virtual target devices and media: all alike.

use super::plumbing::{Answer, Body, ChangeQuery, DoneView, ItemList, Query};
use crate::refusal::Refusal;
use crate::server::{ObjectView, Server};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use fabric::attribute::{Attributes, Object, Value};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// The five handlers of one noun.
macro_rules! objects {
    (
        $(#[$doc:meta])*
        $module:ident, $object:expr, $attributes:ident, $new:ident, $change:ident,
        $tag:literal, $all:literal, $one:literal,
        $list_id:literal, $show_id:literal, $create_id:literal, $set_id:literal, $remove_id:literal
    ) => {
        $(#[$doc])*
        pub(super) mod $module {
            use super::*;
            use crate::api::schema::$attributes;

            /// A new one.
            #[derive(Debug, Deserialize, ToSchema)]
            #[serde(deny_unknown_fields)]
            #[schema(as = $new)]
            pub(crate) struct New {
                /// A letter, then letters, digits, `-` or `_`; at most 32.
                name: String,
                /// What differs from the defaults.
                #[serde(default)]
                #[schema(value_type = $attributes)]
                attributes: Attributes,
            }

            /// Attributes to change; `null` puts one back to its default.
            #[derive(Debug, Deserialize, ToSchema)]
            #[serde(deny_unknown_fields)]
            #[schema(as = $change)]
            pub(crate) struct Edit {
                /// The attributes.
                #[schema(value_type = $attributes)]
                attributes: BTreeMap<String, Option<Value>>,
            }

            /// All of them.
            #[utoipa::path(get, path = $all, tag = $tag, operation_id = $list_id,
                responses((status = 200, body = ItemList<ObjectView>)))]
            pub(crate) async fn list(
                State(server): State<Arc<Server>>,
            ) -> Json<ItemList<ObjectView>> {
                Json(ItemList { items: server.objects($object) })
            }

            /// One.
            #[utoipa::path(get, path = $one, tag = $tag, operation_id = $show_id,
                params(("name" = String, Path, description = "Its name")),
                responses((status = 200, body = ObjectView), (status = "default", body = Refusal)))]
            pub(crate) async fn show(
                State(server): State<Arc<Server>>,
                Path(name): Path<String>,
            ) -> Answer<ObjectView> {
                Ok(Json(server.object($object, &name)?))
            }

            /// Makes one.
            ///
            /// When the data plane cannot do it, nothing is made.
            #[utoipa::path(post, path = $all, tag = $tag, operation_id = $create_id,
                params(ChangeQuery), request_body = New,
                responses((status = 201, body = DoneView), (status = "default", body = Refusal)))]
            pub(crate) async fn create(
                State(server): State<Arc<Server>>,
                Query(query): Query<ChangeQuery>,
                Body(new): Body<New>,
            ) -> Result<(StatusCode, Json<DoneView>), Refusal> {
                let manner = query.manner();
                let done = server.create($object, &new.name, new.attributes, manner).await?;
                Ok((StatusCode::CREATED, Json(done.into())))
            }

            /// Changes one.
            ///
            /// Each attribute says when a change takes effect. When the data plane cannot do it, nothing changes.
            #[utoipa::path(patch, path = $one, tag = $tag, operation_id = $set_id,
                params(ChangeQuery, ("name" = String, Path, description = "Its name")),
                request_body = Edit,
                responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
            pub(crate) async fn set(
                State(server): State<Arc<Server>>,
                Path(name): Path<String>,
                Query(query): Query<ChangeQuery>,
                Body(edit): Body<Edit>,
            ) -> Answer<DoneView> {
                let manner = query.manner();
                Ok(Json(server.set($object, &name, edit.attributes, manner).await?.into()))
            }

            /// Removes one.
            #[utoipa::path(delete, path = $one, tag = $tag, operation_id = $remove_id,
                params(ChangeQuery, ("name" = String, Path, description = "Its name")),
                responses((status = 200, body = DoneView), (status = "default", body = Refusal)))]
            pub(crate) async fn remove(
                State(server): State<Arc<Server>>,
                Path(name): Path<String>,
                Query(query): Query<ChangeQuery>,
            ) -> Answer<DoneView> {
                let manner = query.manner();
                Ok(Json(server.remove($object, &name, manner).await?.into()))
            }
        }
    };
}

objects!(
    /// Ports.
    ports, Object::Port, PortAttributes, NewPort, ChangePort,
    "port", "/v1/ports", "/v1/ports/{name}",
    "list_ports", "show_port", "create_port", "set_port", "remove_port"
);
objects!(
    /// Targets.
    targets, Object::Target, TargetAttributes, NewTarget, ChangeTarget,
    "target", "/v1/targets", "/v1/targets/{name}",
    "list_targets", "show_target", "create_target", "set_target", "remove_target"
);
objects!(
    /// Zones.
    zones, Object::Zone, ZoneAttributes, NewZone, ChangeZone,
    "zone", "/v1/zones", "/v1/zones/{name}",
    "list_zones", "show_zone", "create_zone", "set_zone", "remove_zone"
);
objects!(
    /// Masks.
    masks, Object::Mask, MaskAttributes, NewMask, ChangeMask,
    "mask", "/v1/masks", "/v1/masks/{name}",
    "list_masks", "show_mask", "create_mask", "set_mask", "remove_mask"
);
objects!(
    /// Virtual target devices.
    vtds, Object::Vtd, VtdAttributes, NewVtd, ChangeVtd,
    "vtd", "/v1/vtds", "/v1/vtds/{name}",
    "list_vtds", "show_vtd", "create_vtd", "set_vtd", "remove_vtd"
);
objects!(
    /// Media.
    media, Object::Medium, MediumAttributes, NewMedium, ChangeMedium,
    "medium", "/v1/media", "/v1/media/{name}",
    "list_media", "show_medium", "create_medium", "set_medium", "remove_medium"
);
