//! `disk-max-transfer`: a LUN that two servers give with different greatest transfers.

use super::change::Change;
use super::disk::twins;
use super::disk_behind::in_front_of;
use super::finding::{Draft, NoCommand, Severity};
use super::out::Out;
use super::rule::Object;
use super::view::{View, as_f64};
use crate::capture::{At, PathState, Report};
use crate::trace::{Figure, Term};

const NAME: &str = "max_transfer";

pub(super) fn judge(view: &View<'_>, disk: &Object<'_>, out: &mut Out) {
    let Some((own, own_at)) = view.number(disk.host, disk.device, NAME) else { return };
    let of = |(host, twin): (usize, &str)| {
        let (value, at) = view.number(host, twin, NAME)?;
        let printed = &view.attribute(host, twin, NAME)?.value;
        view.backs(host, twin).then(|| (value, at, printed, view.object(host, twin)))
    };
    let twins = twins(view, (disk.host, disk.device));
    let most = twins.into_iter().filter_map(of).max_by(|one, two| one.0.total_cmp(&two.0));
    let Some((most, at, printed, twin)) = most.filter(|(most, ..)| *most > own) else { return };
    let terms =
        vec![Term::read("there", most, "bytes", at), Term::read("here", own, "bytes", own_at)];
    let mut draft = Draft::new(
        "disk-max-transfer",
        disk.host,
        disk.label.clone(),
        Severity::Warning,
        format!("{} takes smaller transfers than {twin}, which is the same LUN", disk.device),
    )
    .see([own_at, at])
    .figure(Figure::new("what the other takes more", "bytes", "there − here", terms))
    .because("A client takes the greatest transfer of the first path it finds. A path whose server takes less is then not configured, or its large requests fail.");
    for (client, at) in unconfigured(view, (disk.host, disk.device)) {
        draft = draft.see([at]).because(format!(
            "{} has a path to it that is not in use: that is what it looks like.",
            view.spoken(client)
        ));
    }
    let draft = match room(view, disk.host, most) {
        Room::Enough => {
            draft.change(&Change::new(view, disk.host, disk.device).set(NAME, printed.as_str()))
        }
        Room::Less(port, has, at) => draft.see([at]).unknown(NoCommand {
            values: format!("{NAME}={printed}"),
            look_up: vec![format!("max_xfer_size of {port}, which is {has} and has to be as much first")],
            already: None,
        }),
        Room::Unknown => draft.unknown(NoCommand {
            values: format!("{NAME}={printed}"),
            look_up: vec![format!(
                "max_xfer_size of the ports, which has to be as much: lsdev -dev fcsN -attr max_xfer_size on {}",
                view.spoken(disk.host)
            )],
            already: None,
        }),
    };
    out.push(
        draft
            .effect("Both servers take the same. It takes effect when the disk is configured again (unmapped for a moment, or at the server's restart); then cfgmgr on the client brings the path.")
            .harm("The port has to take as much (max_xfer_size); where it does not, the disk is not configured.")
            .weigh(0.85, 1.1),
    );
}

/// Whether the ports of a system take transfers of this size.
enum Room {
    Enough,
    /// This one takes less.
    Less(String, String, At),
    Unknown,
}

fn room(view: &View<'_>, host: usize, size: f64) -> Room {
    const TRANSFER: &str = "max_xfer_size";
    let ports = view.devices(host, "fcs");
    let takes = |port| Some((port, view.number(host, port, TRANSFER)?));
    let known: Vec<(&str, (f64, At))> = ports.into_iter().filter_map(takes).collect();
    match known.iter().find(|(_, (has, _))| *has < size) {
        Some((port, (_, at))) => {
            let printed = view.attribute(host, port, TRANSFER).map(|one| one.value.to_string());
            Room::Less(view.object(host, port), printed.unwrap_or_default(), *at)
        }
        None if !known.is_empty() => Room::Enough,
        // No port takes less than the least that may be set.
        None => {
            let least = view.allowed(host, "", &["fcs"], TRANSFER).min;
            if least.is_some_and(|least| size <= as_f64(least)) {
                Room::Enough
            } else {
                Room::Unknown
            }
        }
    }
}

/// The clients whose disk in front of this one is known and has a path that is not configured, with its line.
fn unconfigured(view: &View<'_>, backing: (usize, &str)) -> Vec<(usize, At)> {
    let clients = view.clients_of(backing.0).into_iter();
    let one = clients.filter_map(|client| {
        let disk = in_front_of(view, backing, client)?;
        let list = view.of(client).filter_map(Report::disk_paths).last()?;
        let lost = |state| matches!(state, PathState::Defined | PathState::Missing);
        let path = list.paths.iter().find(|path| path.disk == disk && lost(path.state))?;
        Some((client, path.at))
    });
    one.collect()
}
