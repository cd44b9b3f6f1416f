//! How snapshots are shown, and clones made of them.

use super::events::time;
use super::objects::{create, path};
use crate::cli::{Global, NewArgs};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{or_dash, table};
use control::error::{ApiError, Code};
use control::server::{ObjectView, SnapshotView};
use fabric::attribute::words::VolumeKind;
use fabric::attribute::{Attributes, Object, Value, attr};
use fabric::units::format_size;

/// Snapshots, a line each.
pub(super) fn snapshot_table(snapshots: &[ObjectView]) -> String {
    let rows = snapshots.iter().map(|view| {
        let snapshot = view.snapshot.as_ref();
        let lus = view.effective.get(attr::snapshot::VOLUMES.name);
        let used = snapshot.map(|it| it.lus.iter().filter_map(|lu| lu.used_bytes).sum());
        vec![
            view.name.clone(),
            or_dash(view.state.as_ref()),
            or_dash(snapshot.map(|it| &it.pool)),
            or_dash(lus),
            or_dash(snapshot.and_then(|it| it.made_ms).map(time)),
            or_dash(used.map(format_size)),
        ]
    });
    table(&["SNAPSHOT", "STATE", "POOL", "LUS", "MADE", "USED"], &[5], rows.collect())
}

/// What stands below the attributes of one.
pub(super) fn lus(snapshot: &SnapshotView) -> String {
    let made = or_dash(snapshot.made_ms.map(time));
    let rows = snapshot.lus.iter().map(|lu| {
        vec![
            lu.volume.clone(),
            lu.number.to_string(),
            format_size(lu.size_bytes),
            or_dash(lu.used_bytes.map(format_size)),
        ]
    });
    let rows = table(&["LU", "NUMBER", "SIZE", "USED"], &[1, 2, 3], rows.collect());
    format!("in pool {}, made {made}\n\n{rows}", snapshot.pool)
}

/// `trunkline lu clone`
pub(super) fn clone(
    global: &Global,
    new: &NewArgs,
    text: &str,
    size: Option<&str>,
) -> Result<(), Failure> {
    let (name, lu) = text.split_once(':').unwrap_or((text, ""));
    let view: ObjectView = Client::new(global)?.get(&path(Object::Snapshot, name)?)?;
    let refuse = |problem: String, help: String| -> Failure {
        ApiError::new(Code::Invalid, problem).help(help).into()
    };
    let snapshot = view.snapshot.filter(|snapshot| snapshot.made_ms.is_some());
    let Some(snapshot) = snapshot else {
        let help = format!("see `trunkline snapshot show {name}`");
        return Err(refuse(format!("snapshot `{name}` is not made yet"), help));
    };
    let names: Vec<&str> = snapshot.lus.iter().map(|lu| lu.volume.as_str()).collect();
    if lu.is_empty() && names.len() > 1 {
        let help = format!("say of which, such as {name}:{}", names[0]);
        return Err(refuse(format!("snapshot `{name}` is of several LUs"), help));
    }
    if !lu.is_empty() && !names.contains(&lu) {
        let help = format!("it is of {}", names.join(", "));
        return Err(refuse(format!("snapshot `{name}` is not of `{lu}`"), help));
    }
    let text = |value: &str| Value::Text(value.to_owned());
    let attributes = [
        (attr::volume::KIND.name, text(VolumeKind::Lu.word())),
        (attr::volume::POOL.name, text(&snapshot.pool)),
        (attr::volume::SNAPSHOT.name, text(text_of(name, lu).as_str())),
    ];
    let size = size.map(|size| (attr::volume::SIZE.name, text(size)));
    let attributes: Attributes =
        attributes.into_iter().chain(size).map(|(name, value)| (name.to_owned(), value)).collect();
    create(global, Object::Volume, new, &attributes)
}

fn text_of(name: &str, lu: &str) -> String {
    if lu.is_empty() { name.to_owned() } else { format!("{name}:{lu}") }
}
