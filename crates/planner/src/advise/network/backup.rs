//! `net-backup-ping`: an aggregation with a backup adapter that does not notice when its way is lost.
//!
//! The link of a virtual Ethernet adapter is up as long as the hypervisor is. An aggregation of virtual adapters learns only
//! by pinging an address that its server, or the switch behind it, is gone.

use super::Wire;
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::view::View;

pub(super) fn judge(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let attribute = |name| view.attribute(wire.host, wire.name, name);
    let backup = attribute("backup_adapter").filter(|one| one.value.starts_with("ent"));
    let (Some(backup), Some(address), Some(primary)) =
        (backup, attribute("netaddr"), attribute("adapter_names"))
    else {
        return;
    };
    if !["", "0", "none", "NONE"].contains(&address.value.as_str()) {
        return;
    }
    let own = |name: &&str| {
        view.wires().iter().find(|other| other.host == wire.host && other.name == *name)
    };
    let members: Vec<&str> = primary.value.split(',').map(str::trim).collect();
    let known: Vec<&Wire<'_>> = members.iter().filter_map(own).collect();
    if known.len() < members.len() {
        let show = format!("entstat -d {} on {}", wire.name, view.spoken(wire.host));
        return out.lack("whether its adapters are virtual", show);
    }
    // A physical link goes down with its cable or switch, which the driver sees.
    if !known.iter().all(|member| member.is_virtual()) {
        return;
    }
    let title = format!("{} never moves to its backup {}", wire.name, backup.value);
    let draft: Draft = wire.draft(view, "net-backup-ping", Severity::Warning, title);
    out.push(
        draft
            .see([address.at, backup.at, primary.at])
            .because(format!(
                "netaddr is {}: no address is pinged. {} is a virtual adapter, whose link is up as long as the hypervisor is: when its server or the network behind it is gone, nothing tells this partition.",
                if address.value.is_empty() { "empty" } else { &address.value },
                members.join(", ")
            ))
            .effect("Set netaddr to an address outside of the machine that always answers, such as the gateway; which one, only you know. Where shared Ethernet adapters with failover are behind the primary adapter, those do it and the backup is not needed.")
            .harm("An address that does not always answer makes the channel go back and forth.")
            .weigh(0.8, 0.9),
    );
}
