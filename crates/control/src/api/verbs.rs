//! What some objects have beside the five verbs of all.

use super::plumbing::{Answer, Body, ChangeQuery, DoneView, ItemList, Path, Query};
use crate::error::ApiError;
use crate::image::Format;
use crate::operation::Way;
use crate::server::{
    ChangeOptions, Expected, Explanation, FileAct, ImageRequest, PoolExplanation, PortExplanation,
    SeaClientsView, Server, TraceQuery, TraceView, VlanView,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use fabric::attribute::{Object, Value, attr};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use utoipa::ToSchema;

/// A new size.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Resize {
    /// Bytes, or a text such as `20GiB`.
    #[schema(value_type = String)]
    size: Value,
    /// Allow the volume to become smaller, which loses what lies beyond.
    #[serde(default)]
    shrink: bool,
}

/// Changes the size of a volume.
///
/// Running guests see the new size at once.
#[utoipa::path(post, path = "/v1/volumes/{name}/resize", tag = "volume", operation_id = "resize_volume",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the volume")),
    request_body = Resize,
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn resize(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
    Body(resize): Body<Resize>,
) -> Answer<DoneView> {
    let mut options = query.options();
    options.allow.shrink = resize.shrink;
    let change = BTreeMap::from([(attr::volume::SIZE.name.to_owned(), Some(resize.size))]);
    Ok(Json(server.set(Object::Volume, &name, change, Expected::default(), options).await?.into()))
}

/// Takes the file that is there now as the volume's own, with what is in it.
///
/// For a volume that failed because its file was replaced or is shorter: after a backup was put back, for example.
#[utoipa::path(post, path = "/v1/volumes/{name}/accept", tag = "volume", operation_id = "accept_volume",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the volume")),
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn accept(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let ChangeOptions { dry_run, wait, .. } = query.options();
    Ok(Json(server.renew_file(&name, FileAct::Accept, (dry_run, wait)).await?.into()))
}

/// Makes an empty file for the volume.
///
/// For a volume that failed because its file is missing. What was in it is not brought back.
#[utoipa::path(post, path = "/v1/volumes/{name}/recreate", tag = "volume", operation_id = "recreate_volume",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the volume")),
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn recreate(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let ChangeOptions { dry_run, wait, .. } = query.options();
    Ok(Json(server.renew_file(&name, FileAct::Recreate, (dry_run, wait)).await?.into()))
}

/// Forgets the channels that the client of an adapter under the policy `aix` had.
///
/// They are negotiated anew, at once.
#[utoipa::path(post, path = "/v1/adapters/{name}/reconfigure", tag = "adapter", operation_id = "reconfigure_adapter",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the adapter")),
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn reconfigure(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let dry_run = query.options().dry_run;
    Ok(Json(server.reconfigure(&name, dry_run).await?.into()))
}

/// Why an adapter has as many channels as it has.
#[utoipa::path(get, path = "/v1/adapters/{name}/explain", tag = "adapter", operation_id = "explain_adapter",
    params(("name" = String, Path, description = "Name of the adapter")),
    responses((status = 200, body = Explanation), (status = "default", body = ApiError)))]
pub(super) async fn explain(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<Explanation> {
    Ok(Json(server.explain(&name).await?))
}

/// The high-water marks of an adapter and its queues begin again, at what is there now.
///
/// Nothing else is touched: counters go on.
#[utoipa::path(post, path = "/v1/adapters/{name}/reset-marks", tag = "adapter", operation_id = "reset_marks_of_adapter",
    params(("name" = String, Path, description = "Name of the adapter")),
    responses((status = 204, description = "They begin again"), (status = "default", body = ApiError)))]
pub(super) async fn reset_marks(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    server.reset_marks(Object::Adapter, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The high-water marks of a port begin again, at what is there now on all its adapters.
///
/// Nothing else is touched: counters go on, and so do the marks of its adapters.
#[utoipa::path(post, path = "/v1/ports/{name}/reset-marks", tag = "port", operation_id = "reset_marks_of_port",
    params(("name" = String, Path, description = "Name of the port")),
    responses((status = 204, description = "They begin again"), (status = "default", body = ApiError)))]
pub(super) async fn reset_port_marks(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    server.reset_marks(Object::Port, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Who has the command elements of a port, who waits for them, and who has more than its part.
#[utoipa::path(get, path = "/v1/ports/{name}/explain", tag = "port", operation_id = "explain_port",
    params(("name" = String, Path, description = "Name of the port")),
    responses((status = 200, body = PortExplanation), (status = "default", body = ApiError)))]
pub(super) async fn explain_port(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<PortExplanation> {
    Ok(Json(server.explain_port(&name)?))
}

/// What is wrong with a storage pool, since when, and what to do about it.
#[utoipa::path(get, path = "/v1/pools/{name}/explain", tag = "pool", operation_id = "explain_pool",
    params(("name" = String, Path, description = "Name of the storage pool")),
    responses((status = 200, body = PoolExplanation), (status = "default", body = ApiError)))]
pub(super) async fn explain_pool(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<PoolExplanation> {
    Ok(Json(server.explain_pool(&name).await?))
}

/// What is wrong with an LU and its storage pool, since when, and what to do about it.
#[utoipa::path(get, path = "/v1/volumes/{name}/explain", tag = "volume", operation_id = "explain_volume",
    params(("name" = String, Path, description = "Name of a volume of the kind `lu`")),
    responses((status = 200, body = PoolExplanation), (status = "default", body = ApiError)))]
pub(super) async fn explain_lu(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<PoolExplanation> {
    Ok(Json(server.explain_lu(&name).await?))
}

/// LUs of a storage pool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Purge {
    /// Their numbers.
    lus: BTreeSet<u32>,
}

/// Removes LUs of a storage pool that are nobody's, with what is in them.
///
/// Such LUs were made by a data plane that died before the server knew of it, or belong to a lost store.
#[utoipa::path(post, path = "/v1/pools/{name}/purge", tag = "pool", operation_id = "purge_pool",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the storage pool")),
    request_body = Purge,
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn purge(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
    Body(purge): Body<Purge>,
) -> Answer<DoneView> {
    let dry_run = query.options().dry_run;
    Ok(Json(server.purge_lus(name, purge.lus, dry_run).await?.into()))
}

/// All that is written in a storage pool is read from every PV that has it, and compared.
///
/// It goes on while clients work, and is an operation that can be cancelled. What cannot be read on one PV of a mirrored pool is written there again; what differs is told and left alone.
#[utoipa::path(post, path = "/v1/pools/{name}/scrub", tag = "pool", operation_id = "scrub_pool",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the storage pool")),
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn scrub(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let ChangeOptions { dry_run, wait, .. } = query.options();
    Ok(Json(server.scrub_pool(name, dry_run, wait).await?.into()))
}

/// A storage pool that is not open is opened now, or it is said why not.
///
/// With `force` also one of which a whole failure group is missing that may have gone on without the PVs that are there: what it answered since is lost, and if it did, it does not return.
#[utoipa::path(post, path = "/v1/pools/{name}/open", tag = "pool", operation_id = "open_pool",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the storage pool")),
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn open_pool(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let ChangeOptions { dry_run, allow, .. } = query.options();
    Ok(Json(server.open_pool(&name, allow.force, dry_run).await?.into()))
}

/// All that is there on PVs of a storage pool whose devices have become larger is used from now on.
///
/// The pool is open, and clients work meanwhile; what waits for space goes on. A PV that is away is as large as it was until it is asked for again.
#[utoipa::path(post, path = "/v1/pools/{name}/grow", tag = "pool", operation_id = "grow_pvs",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the storage pool")),
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn grow_pvs(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    Ok(Json(server.grow_pvs(&name, query.options().dry_run).await?.into()))
}

/// A file that an LU comes from.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Import {
    /// Its absolute path.
    #[schema(value_type = String)]
    file: PathBuf,
    /// How it keeps what it holds; found out where it is left out.
    format: Option<Format>,
}

/// An LU holds what a file holds, and zeros behind that. What was in it is gone.
///
/// It is an operation that can be cancelled: then the LU holds a part. Refused without `force` while clients use the LU: they would go on with what they remember of it.
#[utoipa::path(post, path = "/v1/volumes/{name}/import", tag = "volume", operation_id = "import_volume",
    params(ChangeQuery, ("name" = String, Path, description = "Name of a volume of the kind `lu`")),
    request_body = Import,
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn import(
    State(server): State<Arc<Server>>,
    Path(volume): Path<String>,
    Query(query): Query<ChangeQuery>,
    Body(Import { file, format }): Body<Import>,
) -> Answer<DoneView> {
    let ChangeOptions { dry_run, wait, allow, .. } = query.options();
    let asked = ImageRequest { volume, file, format, way: Way::Import };
    Ok(Json(server.image_lu(asked, (allow.force, dry_run, wait)).await?.into()))
}

/// A file that an LU goes into.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Export {
    /// Its absolute path, where nothing is.
    #[schema(value_type = String)]
    file: PathBuf,
    /// A snapshot of the LU that is meant, rather than the LU as it is.
    snapshot: Option<String>,
    /// How it keeps what it holds; `raw` where it is left out.
    format: Option<Format>,
}

/// A new file holds what an LU holds, or a snapshot of it. It has holes where there are zeros.
///
/// It is an operation that can be cancelled: then there is no file. Refused without `force` while clients use the LU and no snapshot is named: what they write meanwhile may be in it or not.
#[utoipa::path(post, path = "/v1/volumes/{name}/export", tag = "volume", operation_id = "export_volume",
    params(ChangeQuery, ("name" = String, Path, description = "Name of a volume of the kind `lu`")),
    request_body = Export,
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn export(
    State(server): State<Arc<Server>>,
    Path(volume): Path<String>,
    Query(query): Query<ChangeQuery>,
    Body(Export { file, snapshot, format }): Body<Export>,
) -> Answer<DoneView> {
    let ChangeOptions { dry_run, wait, allow, .. } = query.options();
    let asked = ImageRequest { volume, file, format, way: Way::Export { snapshot } };
    Ok(Json(server.image_lu(asked, (allow.force, dry_run, wait)).await?.into()))
}

/// LUs of a snapshot.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Rollback {
    /// Their volumes; none are all of them.
    volumes: Vec<String>,
}

/// The LUs of a snapshot hold again what it holds. What was written to them since is gone.
///
/// One after the other, each at one moment. Refused without `force` while clients use one: they would go on with what they remember of it.
#[utoipa::path(post, path = "/v1/snapshots/{name}/rollback", tag = "snapshot", operation_id = "rollback_snapshot",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the snapshot")),
    request_body = Rollback,
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn rollback(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
    Body(rollback): Body<Rollback>,
) -> Answer<DoneView> {
    let ChangeOptions { dry_run, allow, .. } = query.options();
    let how = (allow.force, dry_run);
    Ok(Json(server.rollback(name, rollback.volumes, how).await?.into()))
}

/// An LU shares nothing any more with snapshots and clones: what it shares is copied into its own space.
///
/// It goes on while clients work, and is an operation that can be cancelled. Refused while snapshots or clones need what the LU itself has. Of an LU that shares nothing it does nothing.
#[utoipa::path(post, path = "/v1/volumes/{name}/detach", tag = "volume", operation_id = "detach_volume",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the volume")),
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn detach(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let ChangeOptions { dry_run, wait, .. } = query.options();
    Ok(Json(server.detach_lu(name, dry_run, wait).await?.into()))
}

/// Something that is wrong with shared Ethernet adapters, or with storage pools.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FindingView {
    /// How bad it is: `loop`, which is refused in a new configuration, `fault` or `advice`.
    pub severity: String,
    /// The rule, as a word.
    pub rule: String,
    /// Where: data plane and shared adapter, or the client's adapter; or the pool.
    pub place: String,
    /// About what: adapters or VLANs, PVs or failure groups; may be empty.
    pub about: String,
    /// What is wrong.
    pub what: String,
    /// The numbers that it follows from, if it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arithmetic: String,
    /// What mends it.
    pub fix: String,
}

/// What is wrong with the shared Ethernet adapters and those that use them, worst first.
#[utoipa::path(get, path = "/v1/sea-check", tag = "sea", operation_id = "check_seas",
    responses((status = 200, body = ItemList<FindingView>)))]
pub(super) async fn check_seas(State(server): State<Arc<Server>>) -> Json<ItemList<FindingView>> {
    let findings = server.check_seas().await.into_iter();
    let items = findings.map(|finding| FindingView {
        severity: finding.rule.severity().word().to_owned(),
        rule: finding.rule.word().to_owned(),
        place: finding.place,
        about: finding.about,
        what: finding.rule.what().to_owned(),
        arithmetic: String::new(),
        fix: finding.rule.fix().to_owned(),
    });
    Json(ItemList { items: items.collect() })
}

/// What has passed a shared Ethernet adapter by client and by trunk adapter, since its `accounting` was enabled or it was cleared.
#[utoipa::path(get, path = "/v1/seas/{name}/clients", tag = "sea", operation_id = "clients_of_sea",
    params(("name" = String, Path, description = "Name of the shared Ethernet adapter")),
    responses((status = 200, body = SeaClientsView), (status = "default", body = ApiError)))]
pub(super) async fn sea_clients(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<SeaClientsView> {
    Ok(Json(server.sea_clients(&name, false).await?))
}

/// The same, and the counts begin anew with nothing. Others are not touched: those of its uplink go on.
#[utoipa::path(post, path = "/v1/seas/{name}/clear-clients", tag = "sea", operation_id = "clear_clients_of_sea",
    params(("name" = String, Path, description = "Name of the shared Ethernet adapter")),
    responses((status = 200, body = SeaClientsView), (status = "default", body = ApiError)))]
pub(super) async fn clear_sea_clients(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<SeaClientsView> {
    Ok(Json(server.sea_clients(&name, true).await?))
}

/// What is wrong with storage pools and how they are laid out, worst first, with the arithmetic.
#[utoipa::path(get, path = "/v1/pool-check", tag = "pool", operation_id = "check_pools",
    responses((status = 200, body = ItemList<FindingView>)))]
pub(super) async fn check_pools(State(server): State<Arc<Server>>) -> Json<ItemList<FindingView>> {
    let findings = server.check_pools().await.into_iter();
    let items = findings.map(|finding| FindingView {
        severity: finding.rule.severity().word().to_owned(),
        rule: finding.rule.word().to_owned(),
        place: finding.place,
        about: finding.about,
        what: finding.rule.what().to_owned(),
        arithmetic: finding.arithmetic,
        fix: finding.rule.fix().to_owned(),
    });
    Json(ItemList { items: items.collect() })
}

/// Begins to watch frames of a network, or goes on: what became of each since it was asked last, where and why.
///
/// Nothing is told of what was before the first time. It costs the data plane something while it lasts, and nothing else.
#[utoipa::path(post, path = "/v1/networks/{name}/trace", tag = "network", operation_id = "trace_network",
    params(("name" = String, Path, description = "Name of the network")),
    request_body = TraceQuery,
    responses((status = 200, body = TraceView), (status = "default", body = ApiError)))]
pub(super) async fn trace(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Body(query): Body<TraceQuery>,
) -> Answer<TraceView> {
    Ok(Json(server.trace(&name, query).await?))
}

/// All VLANs of all networks: who is in each, and which uplink or shared Ethernet adapter bridges it now.
#[utoipa::path(get, path = "/v1/vlans", tag = "network", operation_id = "list_vlans",
    responses((status = 200, body = ItemList<VlanView>)))]
pub(super) async fn vlans(State(server): State<Arc<Server>>) -> Json<ItemList<VlanView>> {
    Json(ItemList { items: server.vlans().await })
}

/// Stops a data plane in good order and starts it with its present attributes.
///
/// Clients of its adapters wait meanwhile and lose nothing. Refused without `force` while there is one that would not connect again.
#[utoipa::path(post, path = "/v1/dataplanes/{name}/restart", tag = "dataplane",
    operation_id = "restart_dataplane",
    params(ChangeQuery, ("name" = String, Path, description = "Name of the data plane")),
    responses((status = 200, body = DoneView), (status = "default", body = ApiError)))]
pub(super) async fn restart(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ChangeQuery>,
) -> Answer<DoneView> {
    let ChangeOptions { allow, wait, .. } = query.options();
    Ok(Json(server.restart_dataplane(&name, allow.force, wait).await?.into()))
}
