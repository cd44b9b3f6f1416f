//! `net-vlan`: packets of VLANs that an adapter is not in, and a VLAN in which it is alone.

use super::Wire;
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::sea::{vlan_list, vlans};
use crate::advise::thresholds::GROWTH_LEAST;
use crate::advise::view::View;
use crate::capture::VirtualEthernet;
use crate::trace::number;

/// The share of the packets of other VLANs that Transmit Errors grow by, where these are what the adapter sends.
const SENT: f64 = 0.9;

pub(super) fn on_same_switch(one: &VirtualEthernet, two: &VirtualEthernet) -> bool {
    let [one, two] = [one, two].map(|of| of.switch.as_ref().map(|read| &read.value));
    one == two
}

pub(super) fn judge(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    strays(view, wire, out);
    if out.drafts.is_empty() {
        super::unbridged::unheard(view, wire, out);
    }
}

fn strays(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let Some(counter) = wire.counter(|adapter| adapter.virtual_adapter.as_ref()?.invalid_vlan)
    else {
        return;
    };
    let Some(growth) = counter.growth().filter(|growth| *growth >= GROWTH_LEAST) else { return };
    let Some(own) = wire.last().virtual_adapter.as_ref() else { return };
    let mine = vlans(own);
    // What the adapter could not send is among its own errors of sending.
    let failed = wire.counter(|adapter| adapter.transmitted.errors);
    let unsent = failed.and_then(|counter| counter.growth()).map(|unsent| unsent >= growth * SENT);
    let sends = unsent == Some(true);
    let mut draft = wire
        .draft(
            view,
            "net-vlan",
            Severity::Warning,
            match sends {
                true => format!("{} sends packets of VLANs that it is not in", wire.name),
                false => format!("{} has packets of VLANs that it is not in", wire.name),
            },
        )
        .see(counter.places())
        .unless_over(&counter)
        .see(mine.values().copied())
        .because(format!(
            "Invalid VLAN ID Packets grew by {} between the captures.",
            number(growth)
        ))
        .because(format!("It is in {}.", vlan_list(mine.keys())));
    if let Some(failed) = failed.filter(|_| sends) {
        draft = draft.see(failed.places()).because("Transmit Errors grew by as many: this system itself tags frames with a VLAN that its adapter has not.");
    }
    draft = counter
        .growth_figure("growth of Invalid VLAN ID Packets", "packets")
        .into_iter()
        .fold(draft, Draft::figure);
    let mut missing = false;
    for bridge in view.bridges() {
        for (trunk, of) in bridge.trunks(view) {
            let theirs = vlans(of);
            if !on_same_switch(own, of) || theirs.is_empty() {
                continue;
            }
            let absent: Vec<&u16> = mine.keys().filter(|vlan| !theirs.contains_key(vlan)).collect();
            missing |= !absent.is_empty();
            let words = match absent.is_empty() {
                true => String::new(),
                false => format!(", and not {}", vlan_list(absent)),
            };
            draft = draft.see(theirs.values().copied()).because(format!(
                "{} of {} bridges {}{words}.",
                trunk.name.value,
                view.object(bridge.host, bridge.name),
                vlan_list(theirs.keys())
            ));
        }
    }
    out.push(
        draft
            .effect(match sends {
                true => "Look for the VLAN devices above this adapter (lsdev -C -c adapter, lsattr -El entN -a vlan_tag_id): give the virtual adapter their VLANs on the HMC, or take away the device that nobody needs. What it sends there reaches nobody.",
                false => "Put the client's VLAN among those of the trunk adapters on both VIOS and on the switch ports, or the client on the VLAN that was meant. That is done on the HMC.",
            })
            .harm(super::unbridged::HARM)
            .weigh(if missing { 0.9 } else { 0.6 }, 1.0),
    );
}
