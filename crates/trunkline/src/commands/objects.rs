//! The verbs of objects.

use super::filter::{self, Filter};
use super::lists::{self, Act, List};
use super::{
    dataplane, events, groups, images, logins, pool_top, pools, rescue, sea_clients, snapshots,
    tiers, top, trace, vlans, wait,
};
use crate::cli::objects::{
    AdapterVerb, DataPlaneVerb, LinkArgs, MediumVerb, NetworkVerb, ObjectCommand, PortVerb,
    SeaVerb, SnapshotVerb, TargetVerb, Verb, VolumeVerb, ZoneVerb,
};
use crate::cli::pools::{DetachArgs, OpenArgs};
use crate::cli::{EditArgs, Global, How, NewArgs, ResizeArgs};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{self, or_dash, pairs, print, table};
use control::api::{DoneView, FindingView, ItemList};
use control::error::ApiError;
use control::server::{
    AdapterView, DataPlaneView, Explanation, FailoverView, LinkView, MemberView, ObjectView,
    VolumeView,
};
use fabric::attribute::{Attribute, AttributeError, Attributes, Object, Value, attr};
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

mod explained;

/// `trunkline NOUN VERB`
pub(crate) fn run(global: &Global, command: ObjectCommand) -> Result<(), Failure> {
    let ObjectCommand { object, verb } = command;
    match verb {
        Verb::Create(new, attributes) => create(global, object, &new, &attributes),
        Verb::List(args) => list(global, object, &args.filters),
        Verb::Show(args) => show(global, object, &args.names),
        Verb::Wait(args) => wait::wait(global, object, &args),
        Verb::Set(edit, attributes) => set(global, object, &edit, &attributes),
        Verb::Remove(args) => remove(global, object, &args.names, args.how),
        Verb::Pvs(filters) => pools::pvs(global, &filters),
        Verb::Volume(VolumeVerb::Resize(args)) => resize(global, &args),
        Verb::Volume(VolumeVerb::Accept(args)) => {
            act(global, object, &args.names, args.how, "accept")
        }
        Verb::Volume(VolumeVerb::Recreate(args)) => {
            act(global, object, &args.names, args.how, "recreate")
        }
        Verb::Adapter(AdapterVerb::Explain(arg)) => {
            let path = format!("{}/explain", path(object, &arg.name)?);
            let explanation: Explanation = Client::new(global)?.get(&path)?;
            print(global, &explanation, explained::explanation_text)
        }
        Verb::Adapter(AdapterVerb::Reconfigure(args)) => {
            act(global, object, &args.names, args.how, "reconfigure")
        }
        Verb::Adapter(AdapterVerb::ResetMarks(arg)) | Verb::Port(PortVerb::ResetMarks(arg)) => {
            Client::new(global)?.post(&format!("{}/reset-marks", path(object, &arg.name)?))
        }
        Verb::Port(PortVerb::Map { adapter, port, how }) => {
            patch(global, Object::Adapter, &[adapter], &attr::adapter::PORT, Some(&port), how)
        }
        Verb::Port(PortVerb::Unmap { adapters, how }) => {
            patch(global, Object::Adapter, &adapters, &attr::adapter::PORT, None, how)
        }
        Verb::Port(PortVerb::Down(LinkArgs { ports, how })) => {
            patch(global, Object::Port, &ports, &attr::port::LINK, Some("down"), how)
        }
        Verb::Port(PortVerb::Up(LinkArgs { ports, how })) => {
            patch(global, Object::Port, &ports, &attr::port::LINK, None, how)
        }
        Verb::Port(PortVerb::Logins) => logins::logins(global),
        Verb::Port(PortVerb::Explain(arg)) => top::explain(global, &arg.name),
        Verb::Port(PortVerb::Top(args)) => top::top(global, &args),
        Verb::Medium(MediumVerb::Load { medium, vtd, how }) => {
            patch(global, Object::Vtd, &[vtd], &attr::vtd::MEDIUM, Some(&medium), how)
        }
        Verb::Medium(MediumVerb::Unload { vtds, how }) => {
            patch(global, Object::Vtd, &vtds, &attr::vtd::MEDIUM, None, how)
        }
        Verb::PurgeLus(pool, numbers, dry_run) => {
            let path = path(Object::Pool, &pool)?;
            let how = How { dry_run, force: false, no_wait: false };
            let (path, body) = (format!("{path}/purge{}", query(how)), json!({ "lus": numbers }));
            let answer: DoneView = Client::new(global)?.send(Method::POST, &path, Some(&body))?;
            done(global, &answer, dry_run)
        }
        Verb::MoveLu(name, tier, how) => {
            patch(global, Object::Volume, &[name], &attr::volume::TIER, Some(&tier), how)
        }
        Verb::DetachLus(DetachArgs { names, dry_run, no_wait }) => {
            act(global, object, &names, How { dry_run, force: false, no_wait }, "detach")
        }
        Verb::ScrubPools(DetachArgs { names, dry_run, no_wait }) => {
            act(global, object, &names, How { dry_run, force: false, no_wait }, "scrub")
        }
        Verb::GrowPvs(pool) => {
            let how = How { dry_run: false, force: false, no_wait: false };
            act(global, Object::Pool, &[pool], how, "grow")
        }
        Verb::OpenPool(OpenArgs { name, force, dry_run }) => {
            act(global, object, &[name], How { dry_run, force, no_wait: false }, "open")
        }
        Verb::ImportLu(args) => images::import(global, *args),
        Verb::ExportLu(args) => images::export(global, *args),
        Verb::CloneLu(new, snapshot, size) => {
            snapshots::clone(global, &new, &snapshot, size.as_deref())
        }
        Verb::Snapshot(SnapshotVerb::Rollback { snapshot, volumes, how }) => {
            let path = format!("{}/rollback{}", path(Object::Snapshot, &snapshot)?, query(how));
            let body = json!({ "volumes": volumes });
            let answer: DoneView = Client::new(global)?.send(Method::POST, &path, Some(&body))?;
            done(global, &answer, how.dry_run)
        }
        Verb::ChangeGroups(pool, act, how) => groups::change(global, &pool, &act, how),
        Verb::Failgrps(filters) => pools::failgrps(global, &filters),
        Verb::Tiers(filters) => tiers::tiers(global, &filters),
        Verb::Tier(pool, tier) => tiers::tier(global, &pool, &tier),
        Verb::Failgrp(pool, group) => pools::failgrp(global, &pool, &group),
        Verb::ExplainPool(pool, pv) => pools::explain(global, &pool, pv.as_deref()),
        Verb::TopPools(args) => pool_top::top(global, &args),
        Verb::CheckPools => check(global, "/v1/pool-check"),
        Verb::RescuePool(pvs, write) => rescue::rescue(global, &pvs, write),
        Verb::ExplainLu(name) => pools::explain_lu(global, &name),
        Verb::Target(TargetVerb::AddLun { target, luns, how }) => {
            lists::change(global, List::Luns, &target, Act::Add(&luns), how)
        }
        Verb::Target(TargetVerb::RemoveLun { target, luns, how }) => {
            lists::change(global, List::Luns, &target, Act::Remove(&luns), how)
        }
        Verb::Zone(ZoneVerb::AddMember { zone, members, how }) => {
            lists::change(global, List::Members, &zone, Act::Add(&members), how)
        }
        Verb::Zone(ZoneVerb::RemoveMember { zone, members, how }) => {
            lists::change(global, List::Members, &zone, Act::Remove(&members), how)
        }
        Verb::Network(NetworkVerb::Trace(args)) => trace::trace(global, &args),
        Verb::Vlans(network) => vlans::list(global, network.as_deref()),
        Verb::Vlan(vlan, network) => vlans::show(global, vlan, network.as_deref()),
        Verb::Sea(SeaVerb::Check) => check(global, "/v1/sea-check"),
        Verb::Sea(SeaVerb::Clients { sea, clear }) => sea_clients::clients(global, &sea, clear),
        Verb::DataPlane(DataPlaneVerb::Restart(args)) => {
            let path = path(object, &args.name)?;
            let how = How { dry_run: false, force: args.force, no_wait: args.no_wait };
            let path = format!("{path}/restart{}", query(how));
            let answer: DoneView = Client::new(global)?.send(Method::POST, &path, None)?;
            goes_on(answer.operation);
            Ok(())
        }
        Verb::Process(args) => dataplane::process(*args),
    }
}

/// `list`: objects with a state by how they are, the others by what was set.
fn list(global: &Global, object: Object, filters: &[Filter]) -> Result<(), Failure> {
    fn all<T: DeserializeOwned + Serialize>(
        global: &Global,
        (object, filters): (Object, &[Filter]),
        table: impl Fn(&[T]) -> String,
    ) -> Result<(), Failure> {
        let path = format!("/v1/{}", object.collection());
        let list: ItemList<serde_json::Value> = Client::new(global)?.get(&path)?;
        let items = filter::those(object, list.items, filters)?.into_iter();
        let items: Result<Vec<T>, _> = items.map(serde_json::from_value).collect();
        print(global, &items.map_err(Failure::other)?, |items| table(items))
    }
    let of = (object, filters);
    match object {
        Object::Volume => all(global, of, volume_table),
        Object::Adapter => all(global, of, adapter_table),
        Object::DataPlane => all(global, of, dataplane_table),
        _ => all(global, of, |objects| object_table(object, objects)),
    }
}

/// `show`: of one object what the API answers, of several a list.
fn show(global: &Global, object: Object, names: &[String]) -> Result<(), Failure> {
    fn all<T: DeserializeOwned + Serialize>(
        global: &Global,
        (object, names): (Object, &[String]),
        page: impl Fn(&T) -> String,
    ) -> Result<(), Failure> {
        let client = Client::new(global)?;
        if let [name] = names {
            return print(global, &client.get::<T>(&path(object, name)?)?, page);
        }
        let (mut found, mut failed) = (Vec::<T>::new(), None);
        for name in names {
            match path(object, name).and_then(|path| client.get(&path)) {
                Ok(one) => found.push(one),
                Err(failure) => {
                    failure.report(global.output);
                    failed.get_or_insert(failure.code());
                }
            }
        }
        if !found.is_empty() {
            print(global, &found, |all| all.iter().map(page).collect::<Vec<_>>().join("\n\n"))?;
        }
        failed.map_or(Ok(()), |code| Err(Failure::Reported(code)))
    }
    let of = (object, names);
    match object {
        Object::Volume => all(global, of, volume_page),
        Object::Adapter => all(global, of, adapter_page),
        Object::DataPlane => all(global, of, dataplane_page),
        _ => all(global, of, |view| object_page(object, view)),
    }
}

/// A verb without arguments, on each of the objects.
fn act(
    global: &Global,
    object: Object,
    names: &[String],
    how: How,
    verb: &str,
) -> Result<(), Failure> {
    let client = Client::new(global)?;
    each(global, names, how, |name| {
        let path = format!("{}/{verb}{}", path(object, name)?, query(how));
        client.send(Method::POST, &path, None)
    })
}

/// The same for each name: all are tried, and each that fails is reported.
fn each(
    global: &Global,
    names: &[String],
    how: How,
    change: impl Fn(&str) -> Result<DoneView, Failure>,
) -> Result<(), Failure> {
    let mut all = DoneView::default();
    let mut failed = None;
    for name in names {
        match change(name) {
            Ok(answer) => add(&mut all, answer),
            Err(failure) if names.len() == 1 => return Err(failure),
            Err(failure) => {
                failure.report(global.output);
                failed.get_or_insert(failure.code());
            }
        }
    }
    if failed.is_none() || !all.changes.is_empty() {
        done(global, &all, how.dry_run)?;
    }
    failed.map_or(Ok(()), |code| Err(Failure::Reported(code)))
}

/// `sea check` and `pool check`
fn check(global: &Global, path: &str) -> Result<(), Failure> {
    let found: ItemList<FindingView> = Client::new(global)?.get(path)?;
    print(global, &found.items, |items| items.iter().map(finding).collect::<Vec<_>>().join("\n"))?;
    if found.items.is_empty() { Ok(()) } else { Err(Failure::Found) }
}

fn finding(one: &FindingView) -> String {
    let FindingView { severity, rule, place, about, what, arithmetic, fix } = one;
    let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
    let numbers = if arithmetic.is_empty() { String::new() } else { format!("\n  {arithmetic}") };
    format!("{severity}: {place}: {rule}: {what}{about}{numbers}\n  {fix}")
}

/// The API's path of an object. A name that can be none is refused here: it could be a path.
pub(crate) fn path(object: Object, name: &str) -> Result<String, Failure> {
    fabric::attribute::check_name(name).map_err(ApiError::invalid)?;
    Ok(format!("/v1/{}/{name}", object.collection()))
}

pub(crate) fn query(how: How) -> String {
    format!("?dry_run={}&force={}&wait={}", how.dry_run, how.force, !how.no_wait)
}

pub(crate) fn done(global: &Global, done: &DoneView, dry_run: bool) -> Result<(), Failure> {
    print(global, done, |done| output::changes(&done.changes, &done.losses, dry_run))?;
    output::warn(&done.warnings);
    goes_on(done.operation);
    waiting(&done.waiting)
}

/// That a change was not waited for.
pub(crate) fn goes_on(operation: Option<u64>) {
    if let Some(id) = operation {
        output::tell(&format!("operation {id} goes on: `trunkline operation wait {id}`"));
    }
}

/// What several changes came to: each may be for another data plane.
fn add(all: &mut DoneView, one: DoneView) {
    all.changes.extend(one.changes);
    all.losses.extend(one.losses);
    all.warnings.extend(one.warnings);
    all.waiting.extend(one.waiting);
    all.operation = one.operation.or(all.operation);
}

/// That something was stored and waits for a data plane.
pub(crate) fn waiting(all: &[ApiError]) -> Result<(), Failure> {
    all.first().map_or(Ok(()), |refusal| Err(Failure::Waiting(refusal.clone())))
}

/// `create`
pub(super) fn create(
    global: &Global,
    object: Object,
    new: &NewArgs,
    attributes: &Attributes,
) -> Result<(), Failure> {
    let body = json!({ "name": new.name, "attributes": attributes });
    let path = format!("/v1/{}{}", object.collection(), query(new.how));
    let answer: DoneView = Client::new(global)?.send(Method::POST, &path, Some(&body))?;
    done(global, &answer, new.how.dry_run)
}

/// `set`
fn set(
    global: &Global,
    object: Object,
    edit: &EditArgs,
    attributes: &Attributes,
) -> Result<(), Failure> {
    let mut changes = json!(attributes);
    for name in &edit.unset {
        let name = name.replace('-', "_");
        if object.attribute(&name).is_none() {
            let error = AttributeError::unknown(object, &name);
            return Err(ApiError::attribute(&edit.name, error).into());
        }
        changes[name] = serde_json::Value::Null;
    }
    let path = format!("{}{}", path(object, &edit.name)?, query(edit.how));
    let body = json!({ "attributes": changes });
    let answer: DoneView = Client::new(global)?.send(Method::PATCH, &path, Some(&body))?;
    done(global, &answer, edit.how.dry_run)
}

/// The same name in an attribute of some objects, or none.
fn patch(
    global: &Global,
    object: Object,
    names: &[String],
    attribute: &Attribute,
    to: Option<&str>,
    how: How,
) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let body = json!({ "attributes": { attribute.name: to } });
    each(global, names, how, |name| {
        let path = format!("{}{}", path(object, name)?, query(how));
        client.send(Method::PATCH, &path, Some(&body))
    })
}

/// `remove`
fn remove(global: &Global, object: Object, names: &[String], how: How) -> Result<(), Failure> {
    let client = Client::new(global)?;
    each(global, names, how, |name| {
        let path = format!("{}{}", path(object, name)?, query(how));
        client.send(Method::DELETE, &path, None)
    })
}

fn resize(global: &Global, args: &ResizeArgs) -> Result<(), Failure> {
    let path = format!(
        "{}/resize{}",
        path(Object::Volume, &args.name)?,
        query(How { dry_run: args.dry_run, force: false, no_wait: args.no_wait })
    );
    let body = json!({ "size": args.size, "shrink": args.shrink });
    let answer: DoneView = Client::new(global)?.send(Method::POST, &path, Some(&body))?;
    done(global, &answer, args.dry_run)
}

/// Volumes below each other.
pub(crate) fn volume_table(volumes: &[VolumeView]) -> String {
    let rows = volumes.iter().map(|volume| {
        let get = |name: &str| or_dash(volume.effective.get(name));
        vec![
            volume.name.clone(),
            get("kind"),
            volume.bytes.map_or_else(|| "-".to_owned(), output::bytes),
            volume.state.clone(),
            or_dash(volume.access.as_ref()),
            or_dash(Some(used_by(volume, ",")).filter(|users| !users.is_empty())),
            or_dash(volume.attributes.get("path")),
        ]
    });
    table(&["VOLUME", "KIND", "SIZE", "STATE", "ACCESS", "USED BY", "PATH"], &[2], rows.collect())
}

/// Block adapters on a volume, targets that have it as a LUN, devices on it.
fn used_by(volume: &VolumeView, separator: &str) -> String {
    let all: Vec<&str> = volume.adapters.iter().chain(&volume.luns).map(String::as_str).collect();
    all.join(separator)
}

/// What an adapter shows its client: the volume of a disk, the way to LUNs.
fn shows(adapter: &AdapterView) -> String {
    match adapter.kind.as_str() {
        "fc" => or_dash(adapter.port.as_ref()),
        "scsi" => or_dash(Some(adapter.vtds.join(",")).filter(|vtds| !vtds.is_empty())),
        _ => adapter.volume.clone(),
    }
}

/// Adapters below each other.
pub(crate) fn adapter_table(adapters: &[AdapterView]) -> String {
    let rows = adapters.iter().map(|adapter| {
        vec![
            adapter.name.clone(),
            adapter.kind.clone(),
            shows(adapter),
            adapter.state.clone(),
            adapter.client_queues.to_string(),
            adapter.channels.to_string(),
            adapter.channels_max.to_string(),
            adapter.limited_by.to_string(),
            adapter.socket.clone(),
        ]
    });
    let heading =
        ["ADAPTER", "KIND", "ON", "STATE", "QUEUES", "CHANNELS", "AT MOST", "LIMITED BY", "SOCKET"];
    table(&heading, &[4, 5, 6], rows.collect())
}

/// Data planes below each other.
pub(crate) fn dataplane_table(dataplanes: &[DataPlaneView]) -> String {
    let rows = dataplanes.iter().map(|dataplane| {
        let note = match (&dataplane.reason, dataplane.restart_needed) {
            (Some(reason), _) => reason.clone(),
            (None, true) => "attributes wait for a restart".to_owned(),
            (None, false) => "-".to_owned(),
        };
        vec![
            dataplane.name.clone(),
            dataplane.state.clone(),
            or_dash(dataplane.pid),
            dataplane.channels.len().to_string(),
            dataplane.restarts.to_string(),
            note,
        ]
    });
    table(
        &["DATA PLANE", "STATE", "PID", "CHANNELS", "RESTARTS", "NOTE"],
        &[2, 3, 4],
        rows.collect(),
    )
}

/// Attributes as they hold, with a mark at those that were set.
fn attributes(object: Object, set: &Attributes, effective: &Attributes) -> Vec<(String, String)> {
    object
        .attributes()
        .filter_map(|attribute| {
            let value = effective.get(attribute.name)?;
            let mark = if set.contains_key(attribute.name) { "" } else { "  (default)" };
            Some((attribute.name.to_owned(), format!("{}{mark}", attribute.write(value))))
        })
        .collect()
}

fn page(mut head: Vec<(&str, String)>, attributes: Vec<(String, String)>) -> String {
    head.retain(|(_, value)| !value.is_empty());
    let mut rows: Vec<(String, String)> =
        head.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    rows.push((String::new(), String::new()));
    rows.extend(attributes);
    pairs(rows)
}

fn volume_page(volume: &VolumeView) -> String {
    let head = vec![
        ("volume", volume.name.clone()),
        ("state", volume.state.clone()),
        ("reason", volume.reason.clone().unwrap_or_default()),
        ("capacity", volume.bytes.map(output::bytes).unwrap_or_default()),
        ("access", volume.access.clone().unwrap_or_default()),
        ("data plane", volume.dataplane.clone()),
        ("used by", used_by(volume, ", ")),
        ("naa of its LUN", volume.naa.clone().unwrap_or_default()),
    ];
    page(head, attributes(Object::Volume, &volume.attributes, &volume.effective))
}

/// What becomes of a client that does not connect again.
const STAYS_AWAY: &str = "the client does not come back (QEMU before 8.2, as far as can be told): its machine must be restarted, too";

/// How a link is, what became of it so far, and what was the last of it.
fn link(link: &LinkView) -> String {
    let counts = &link.counts;
    let mut text = format!(
        "{}; went down {}, was remapped {}",
        link.state,
        times(counts.failures),
        times(counts.remaps)
    );
    if let Some(last) = &counts.last {
        let by = last.by.map(|by| format!(", by {by}")).unwrap_or_default();
        text += &format!("; last: {}, {}{by}", events::time(last.at_ms), last.message);
    }
    text
}

fn times(count: u64) -> String {
    format!("{count} {}", if count == 1 { "time" } else { "times" })
}

/// The queues that a client uses, of those that it has.
fn client_queues(adapter: &AdapterView) -> String {
    match (adapter.client_queues, adapter.client_num_io_queues) {
        (used, 0) => used.to_string(),
        (used, has) => format!("{used} of {has}"),
    }
}

fn adapter_page(adapter: &AdapterView) -> String {
    let head = vec![
        ("adapter", adapter.name.clone()),
        ("state", adapter.state.clone()),
        ("reason", adapter.reason.clone().unwrap_or_default()),
        ("warning", adapter.warnings.join("; ")),
        ("WWPN logged in", adapter.wwpns.first().cloned().unwrap_or_default()),
        ("WWPN waiting", adapter.wwpns.get(1).cloned().unwrap_or_default()),
        ("link now", adapter.link.as_ref().map(link).unwrap_or_default()),
        ("devices", adapter.vtds.join(", ")),
        ("socket path", adapter.socket.clone()),
        ("serial number", adapter.serial.clone()),
        ("client queues", client_queues(adapter)),
        ("channels in use", adapter.channels.to_string()),
        (
            "channels at most",
            format!("{}, limited by the {}", adapter.channels_max, adapter.limited_by),
        ),
        ("client", adapter.client.map(|client| client.to_string()).unwrap_or_default()),
        ("after a restart", if adapter.stays_away { STAYS_AWAY } else { "" }.to_owned()),
        ("connections", adapter.connections.to_string()),
        ("features", adapter.features.join(", ")),
    ];
    page(head, attributes(Object::Adapter, &adapter.attributes, &adapter.effective))
}

fn dataplane_page(dataplane: &DataPlaneView) -> String {
    let channels: Vec<String> = dataplane
        .channels
        .iter()
        .map(|channel| {
            let cpu = channel.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
            format!("{}{cpu}: {} queues", channel.index, channel.queues)
        })
        .collect();
    let head = vec![
        ("data plane", dataplane.name.clone()),
        ("state", dataplane.state.clone()),
        ("reason", dataplane.reason.clone().unwrap_or_default()),
        ("process", dataplane.pid.map(|pid| pid.to_string()).unwrap_or_default()),
        ("version", dataplane.version.clone().unwrap_or_default()),
        ("confined by", dataplane.confinement.clone()),
        ("shown as of", dataplane.age_s.map(|s| format!("{s} s ago")).unwrap_or_default()),
        ("up for", dataplane.uptime_s.map(|s| format!("{s} s")).unwrap_or_default()),
        ("restarts", dataplane.restarts.to_string()),
        ("restart needed", if dataplane.restart_needed { "yes" } else { "no" }.to_owned()),
        ("channel", channels.join("; ")),
        ("warning", dataplane.warnings.join("; ")),
    ];
    page(head, attributes(Object::DataPlane, &dataplane.attributes, &dataplane.effective))
}

pub(super) fn object_table(object: Object, objects: &[ObjectView]) -> String {
    if object == Object::Pool {
        return pools::pool_table(objects);
    }
    if object == Object::Snapshot {
        return snapshots::snapshot_table(objects);
    }
    let columns = object.columns();
    let with_state = objects.iter().any(|view| view.state.is_some());
    let mut heading = vec![object.noun().to_uppercase()];
    heading.extend(with_state.then(|| "STATE".to_owned()));
    heading.extend(columns.iter().map(|column| column.name.to_uppercase().replace('_', " ")));
    heading.push("USED BY".to_owned());
    let rows = objects.iter().map(|view| {
        let mut row = vec![view.name.clone()];
        row.extend(with_state.then(|| or_dash(view.state.as_ref())));
        let value = |column: &&Attribute| {
            or_dash(view.effective.get(column.name).filter(|value| !is_empty(value)))
        };
        row.extend(columns.iter().map(value));
        row.push(or_dash(Some(view.used_by.join(", ")).filter(|users| !users.is_empty())));
        row
    });
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    table(&heading, &[], rows.collect())
}

fn is_empty(value: &Value) -> bool {
    value.as_text() == Some("")
}

/// What a shared adapter is to its partner, in a line.
fn failover(view: &FailoverView) -> String {
    let vlans: Vec<String> = view.vlans.iter().map(u16::to_string).collect();
    let vlans = if vlans.is_empty() { "none".to_owned() } else { vlans.join(",") };
    let partner = view.partner.as_deref().unwrap_or("none is heard");
    let netaddr = match view.answers {
        None => "",
        Some(true) => "; netaddr answers",
        Some(false) => "; netaddr does not answer",
    };
    let FailoverView { state, reason, takeovers, .. } = view;
    format!(
        "{state}: {reason}; bridges VLANs {vlans}; partner: {partner}{netaddr}; takeovers: {takeovers}"
    )
}

/// A member of an uplink, in a word or two.
fn member(view: &MemberView) -> String {
    format!("{} {}", view.name, view.state)
}

fn object_page(object: Object, view: &ObjectView) -> String {
    let rows = object.attributes().filter_map(|attribute| {
        let value = attribute.write(view.effective.get(attribute.name)?);
        let source = view.sources.get(attribute.name).filter(|source| *source != "set");
        let source = source.map(|source| format!("  ({source})")).unwrap_or_default();
        Some((attribute.name.to_owned(), format!("{value}{source}")))
    });
    let head = vec![
        (object.noun(), view.name.clone()),
        ("state", view.state.clone().unwrap_or_default()),
        ("reason", view.reason.clone().unwrap_or_default()),
        ("way", view.way.clone().unwrap_or_default()),
        ("members now", view.members.iter().map(member).collect::<Vec<_>>().join(", ")),
        ("channels", view.channels.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        ("failover", view.failover.as_ref().map(failover).unwrap_or_default()),
        ("link now", view.link.as_ref().map(link).unwrap_or_default()),
        ("used by", view.used_by.join(", ")),
    ];
    let page = page(head, rows.collect());
    match (&view.space, &view.snapshot) {
        (Some(space), _) => format!("{page}\n\n{}", pools::space(space)),
        (None, Some(snapshot)) => format!("{page}\n\n{}", snapshots::lus(snapshot)),
        (None, None) => page,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::error::Code;

    #[test]
    fn of_several_changes_each_may_wait_for_a_data_plane_of_its_own() {
        let waits = ApiError::new(Code::Unavailable, "data plane `side` is not running");
        let first = DoneView { waiting: vec![waits], ..DoneView::default() };
        let mut all = DoneView::default();
        add(&mut all, first);
        add(&mut all, DoneView::default());
        assert!(matches!(waiting(&all.waiting), Err(Failure::Waiting(_))));
    }
}
