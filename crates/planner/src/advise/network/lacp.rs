//! The negotiation of a member of an aggregation with its switch.

use super::Wire;
use crate::advise::finding::Severity;
use crate::advise::out::Out;
use crate::advise::thresholds::{LACP_HEARD_SHARE, LACP_LEAST};
use crate::advise::view::{View, as_f64, shown};
use crate::capture::{At, Ethernet, Lacp, LacpSide};
use crate::trace::number;

/// Whether the partner was never heard: its system is all zero, or what stands there is assumed.
fn unheard(lacp: &Lacp) -> Option<At> {
    let zero = lacp
        .partner
        .system
        .as_ref()
        .filter(|system| system.value.bytes().all(|byte| matches!(byte, b'0' | b'-' | b':')));
    let assumed = lacp.actor.defaulted.filter(|read| read.value).map(|read| read.at);
    zero.map(|system| system.at).or(assumed)
}

pub(super) fn partner(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let Some(lacp) = wire.last().lacp.as_ref().filter(|_| wire.link_down().is_none()) else {
        return;
    };
    let Some(at) = unheard(lacp) else { return two_partners(view, wire, lacp, out) };
    let of = wire.aggregation().map_or("the aggregation", |of| &of.name.value);
    let sisters = wire.run.adapters.iter().filter(|other| other.name.value != wire.name);
    let heard = sisters.filter_map(|other| other.lacp.as_ref()).any(|lacp| unheard(lacp).is_none());
    let mut draft = wire
        .draft(
            view,
            "net-lacp-partner",
            Severity::Warning,
            format!("{} hears no partner for LACP", wire.name),
        )
        .see([at])
        .see(lacp.actor.defaulted.filter(|read| read.value).map(|read| read.at))
        .see(lacp.received.map(|read| read.at));
    if let (Some(received), Some(sent)) = (lacp.received, lacp.transmitted) {
        draft = draft.because(format!(
            "It sent {} LACPDUs and received {}.",
            number(as_f64(sent.value)),
            number(as_f64(received.value))
        ));
    }
    let why = match heard {
        true => {
            "Another member hears its partner, so this side speaks LACP: the switch port of this one does not, or belongs to another group."
        }
        false => "No member hears one: the switch ports do not speak LACP.",
    };
    out.push(
        draft
            .because(why)
            .effect(format!("No command on this system mends it. Have the switch port of {} configured for LACP in the group of {of}'s other ports, or find the wrong cable.", wire.name))
            .harm("None on this system.")
            .weigh(0.95, 1.0),
    );
}

/// A member that hears a switch, but another one than the members that carry the aggregation.
fn two_partners(view: &View<'_>, wire: &Wire<'_>, lacp: &Lacp, out: &mut Out) {
    let sides = [&lacp.actor, &lacp.partner];
    let apart = |side: &&LacpSide| side.in_sync.filter(|read| !read.value);
    let Some(left_out) = sides.iter().find_map(apart) else { return };
    let (Some(own), Some(of)) = (lacp.partner.system.as_ref(), wire.aggregation()) else {
        return out_of_sync(view, wire, left_out.at, out);
    };
    let members = of.aggregation.iter().flat_map(|of| &of.members);
    let others = members.filter(|name| *name != wire.name).filter_map(|name| {
        let other = wire.run.adapters.iter().find(|other| other.name.value == *name)?;
        let lacp = other.lacp.as_ref()?;
        let carries = lacp.actor.in_sync?.value && unheard(lacp).is_none();
        let system = lacp.partner.system.as_ref().filter(|_| carries)?;
        (!system.value.eq_ignore_ascii_case(&own.value)).then_some((name, system))
    });
    let Some((name, system)) = others.into_iter().next() else {
        return out_of_sync(view, wire, left_out.at, out);
    };
    let of = &of.name.value;
    out.push(
        wire.draft(
            view,
            "net-lacp-partner",
            Severity::Warning,
            format!("{} hears another partner than the rest of {of}", wire.name),
        )
        .see([own.at, system.at, left_out.at])
        .because(format!(
            "The partner of {} is {}, that of {name} is {}: two switches that are no pair, or two groups. One aggregation has one partner, so {} is left out of it and carries nothing.",
            wire.name, own.value, system.value, wire.name
        ))
        .effect(format!("No command on this system mends it. Cable the members of {of} to one switch and one group there, or make the two switches one multi-chassis aggregation."))
        .harm("None on this system.")
        .weigh(0.95, 1.0),
    );
}

/// A member that negotiates and does not come to an end, while others of the same aggregation carry it.
fn out_of_sync(view: &View<'_>, wire: &Wire<'_>, at: At, out: &mut Out) {
    let members = wire.aggregation().and_then(|of| of.aggregation.as_ref()).map(|of| &of.members);
    let is_member = |name: &String| members.is_none_or(|members| members.contains(name));
    let carries = |other: &&Ethernet| {
        let of = other.lacp.as_ref().filter(|_| is_member(&other.name.value));
        of.is_some_and(|of| {
            of.actor.in_sync.is_some_and(|read| read.value)
                && of.partner.in_sync.is_none_or(|read| read.value)
        })
    };
    let mut others = wire.run.adapters.iter().filter(|other| other.name.value != wire.name);
    let Some(sister) = others.find(carries) else { return };
    let carrying = sister.lacp.as_ref().and_then(|of| of.actor.in_sync).map(|read| read.at);
    out.push(
        wire.draft(
            view,
            "net-lacp-partner",
            Severity::Warning,
            format!("{} is out of sync with its partner and carries nothing", wire.name),
        )
        .see([at])
        .see(carrying)
        .because(format!(
            "{} is in sync: the aggregation runs over it, and {} is left out.",
            sister.name.value, wire.name
        ))
        .effect(format!("No command on this system mends it. Look at the switch port of {}: it belongs to another group, is not in the group's VLANs, or waits for a speed or a mode that the others have.", wire.name))
        .harm("None on this system.")
        .weigh(0.93, 1.0),
    );
}

pub(super) fn churn(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let Some(lacp) = wire.last().lacp.as_ref() else { return };
    if wire.link_down().is_some() || unheard(lacp).is_some() {
        return;
    }
    let synced = |adapter: &&Ethernet| {
        let lacp = adapter.lacp.as_ref()?;
        let expired = lacp.actor.expired.is_some_and(|read| read.value);
        Some(lacp.actor.in_sync?.value && !expired)
    };
    let states: Vec<bool> = wire.samples.iter().filter_map(synced).collect();
    let changed = states.windows(2).any(|pair| pair[0] != pair[1]);
    let (Some(received), Some(sent)) = (lacp.received, lacp.transmitted) else { return };
    let (heard, spoken) = (as_f64(received.value), as_f64(sent.value));
    let deaf = spoken >= LACP_LEAST && heard < spoken * LACP_HEARD_SHARE;
    if !changed && !deaf {
        return;
    }
    let mut draft = wire
        .draft(
            view,
            "net-lacp-churn",
            Severity::Warning,
            format!("{} leaves and joins its aggregation", wire.name),
        )
        .see([sent.at, received.at])
        .figure(shown("LACPDUs sent", spoken, "", sent.at))
        .figure(shown("LACPDUs received", heard, "", received.at));
    if changed {
        let places = wire
            .samples
            .iter()
            .filter_map(|adapter| Some(adapter.lacp.as_ref()?.actor.in_sync?.at));
        draft = draft.see(places).because("It was in sync in one capture and not in another.");
    }
    if deaf {
        draft = draft.because("The switch answers a small part of what is sent to it: its PDUs come late or get lost.");
    }
    out.push(
        draft
            .because("The link stays up, so it is the negotiation: timers that differ, or a switch that does not answer in time.")
            .effect("Compare the LACP timers (interval) of both sides, and look at the switch's log for the port. No command is needed here as long as interval is the same on both.")
            .harm("Changing the mode or the interval interrupts the aggregation.")
            .weigh(if changed { 0.9 } else { 0.7 }, 1.0),
    );
}
