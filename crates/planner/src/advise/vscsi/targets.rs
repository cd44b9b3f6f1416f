//! `vscsi-target-down`: virtual target devices that a server has, and does not give.

use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::Object;
use crate::advise::view::View;
use crate::capture::{Read, ScsiMap, Vtd};

/// The disks of an adapter's client that are not available. Drives are left out, and adapters without a client, where
/// nobody misses what is left of one.
pub(in crate::advise) fn down(adapter: &ScsiMap) -> impl Iterator<Item = &Vtd> {
    let disks = super::disks_behind(adapter);
    let used = adapter.client_partition.is_none_or(|client| client.value != 0);
    adapter.devices.iter().filter(move |target| {
        let defined = |status: &Read<String>| status.value.eq_ignore_ascii_case("Defined");
        let drive = target.name.starts_with("vtopt") || target.name.starts_with("vttape");
        let disk = target.backing.is_none() && !drive || disks.contains(&target.at);
        used && disk && target.status.as_ref().is_some_and(defined)
    })
}

pub(super) fn judge(view: &View<'_>, vhost: &Object<'_>, out: &mut Out) {
    let Some((host, adapter)) = view.vhosts().get(vhost.index) else { return };
    let down: Vec<&Vtd> = down(adapter).collect();
    if down.is_empty() {
        return;
    }
    let names: Vec<&str> = down.iter().map(|target| target.name.as_str()).collect();
    let title = format!(
        "{} {} defined and not available",
        names.join(", "),
        if names.len() == 1 { "is" } else { "are" }
    );
    let mut draft = Draft::new(
        "vscsi-target-down",
        *host,
        view.object(*host, &adapter.name),
        Severity::Critical,
        title,
    )
    .see(down.iter().flat_map(|target| {
        [Some(target.at), target.status.as_ref().map(|status| status.at)].into_iter().flatten()
    }));
    let backing: Vec<&str> =
        down.iter().filter_map(|target| Some(target.backing.as_ref()?.value.as_str())).collect();
    draft = match backing.is_empty() {
        true => draft.because("Nothing stands behind: the server does not find the device any more."),
        false => draft.because(format!(
            "A target device is configured with what stands behind it ({}): the server did not find that when it configured it last.",
            backing.join(", ")
        )),
    };
    if let Some(client) = view.model.named_at(adapter.at) {
        draft = draft.because(format!(
            "{} does not reach the disk over this server, and has no other way where no other server gives it.",
            view.spoken(client)
        ));
    }
    out.push(
        draft
            .effect("Mend what is behind first: the LUN's mapping in the array, the zone, the paths (lspath on the server); then cfgdev there configures both. On the client the path comes back with its health check; before that nothing helps there.")
            .harm("None. Do not remove the target device: its LUN number, which the client knows the disk by, goes with it.")
            .weigh(0.9, 1.0),
    );
}
