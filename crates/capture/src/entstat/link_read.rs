//! Reads what an aggregation and its members print of their negotiation with the switch.

use super::{Aggregation, Lacp, LacpSide};
use crate::page::{Page, put};
use crate::text::{Line, Plain, count};
use crate::{At, Read};

const DOUBT: &str = "the value is not understood";

/// Whose state the lines are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Actor,
    Partner,
}

/// Whether the heading is that of an aggregation.
pub(super) fn is_aggregation(text: &str) -> bool {
    text.starts_with("Statistics for every adapter in the ")
}

/// Takes a line of the aggregation's own part.
pub(super) fn aggregation(of: &mut Aggregation, page: &mut Page<'_>, line: Line<'_>) -> bool {
    let Some((key, value)) = line.trimmed().split_key() else { return false };
    let (value, at) = (value.bare(), line.at);
    let count =
        |place: &mut Option<Read<u64>>| count(value).is_some_and(|count| put(place, count, at));
    let fits = match key.bare_end() {
        "Number of adapters" => value.parse().is_ok_and(|count| put(&mut of.adapters, count, at)),
        "Operating mode" => put(&mut of.mode, value.to_owned(), at),
        "Aggregation status" => put(&mut of.status, value.to_owned(), at),
        "Received LACPDUs" => count(&mut of.received),
        "Transmitted LACPDUs" => count(&mut of.transmitted),
        "Active channel" => put(&mut of.active_channel, value.to_owned(), at),
        "Hash mode" => put(&mut of.hash_mode, value.to_owned(), at),
        key => return is_passed(key),
    };
    if !fits {
        page.doubt(line, DOUBT);
    }
    true
}

/// Fields that nothing needs.
fn is_passed(key: &str) -> bool {
    const KEYS: [&str; 13] = [
        "IEEE 802.3ad Link Aggregation Statistics",
        "LACPDU Interval",
        "Aggregation status",
        "LACP activity",
        "LACP timeout",
        "Aggregation",
        "Received marker PDUs",
        "Transmitted marker PDUs",
        "Received marker response PDUs",
        "Transmitted marker response PDUs",
        "Received unknown PDUs",
        "Received illegal PDUs",
        "Hash mode",
    ];
    KEYS.contains(&key) || key.ends_with("Priority") || key.ends_with(" Port")
}

/// Whether a line can only be of a member's negotiation.
pub(super) fn begins_member(text: &str) -> bool {
    let key = text.split_key().map_or("", |(key, _)| key.bare_end());
    matches!(key, "Aggregation status" | "LACPDU Interval" | "Received LACPDUs" | "Actor System")
}

/// Whether a line is one of a member's negotiation, where a filter has left its heading out.
pub(super) fn is_of_member(text: &str) -> bool {
    let key = text.split_key().map_or("", |(key, _)| key.bare_end());
    begins_member(text)
        || matches!(
            key,
            "Actor State"
                | "Partner State"
                | "Partner System"
                | "Synchronization"
                | "Collecting"
                | "Distributing"
                | "Defaulted"
                | "Expired"
        )
}

/// Takes a line of a member's part.
pub(super) fn member(
    of: &mut Lacp,
    partner: &mut bool,
    page: &mut Page<'_>,
    line: Line<'_>,
) -> bool {
    let Some((key, value)) = line.trimmed().split_key() else { return false };
    let (key, value, at) = (key.bare_end(), value.bare(), line.at);
    match key {
        "Actor State" => *partner = false,
        "Partner State" => *partner = true,
        _ => {
            let fits = match key {
                "Received LACPDUs" => counter(&mut of.received, value, at),
                "Transmitted LACPDUs" => counter(&mut of.transmitted, value, at),
                "Received illegal PDUs" => counter(&mut of.illegal, value, at),
                _ => {
                    return named(of, key, value, at)
                        .or_else(|| state(of, *partner, key, value, at))
                        .map_or_else(
                            || is_passed(key),
                            |fits| {
                                if !fits {
                                    page.doubt(line, DOUBT);
                                }
                                true
                            },
                        );
                }
            };
            if !fits {
                page.doubt(line, DOUBT);
            }
        }
    }
    true
}

fn counter(place: &mut Option<Read<u64>>, value: &str, at: At) -> bool {
    count(value).is_some_and(|count| put(place, count, at))
}

/// `Actor System: 6C-AE-8B-49-90-E1`
fn named(of: &mut Lacp, key: &str, value: &str, at: At) -> Option<bool> {
    let (side, rest) = match key.split_once(' ')? {
        ("Actor", rest) => (Side::Actor, rest),
        ("Partner", rest) => (Side::Partner, rest),
        _ => return None,
    };
    let side = if side == Side::Partner { &mut of.partner } else { &mut of.actor };
    match rest {
        "System" => Some(put(&mut side.system, value.to_owned(), at)),
        "Operational Key" => Some(put(&mut side.key, value.to_owned(), at)),
        _ => None,
    }
}

/// `Defaulted: True`
fn state(of: &mut Lacp, partner: bool, key: &str, value: &str, at: At) -> Option<bool> {
    fn place<'s>(side: &'s mut LacpSide, key: &str) -> Option<&'s mut Option<Read<bool>>> {
        match key {
            "Synchronization" => Some(&mut side.in_sync),
            "Collecting" => Some(&mut side.collecting),
            "Distributing" => Some(&mut side.distributing),
            "Defaulted" => Some(&mut side.defaulted),
            "Expired" => Some(&mut side.expired),
            _ => None,
        }
    }
    // A filter may have left out where the partner's part begins.
    let told = !partner && place(&mut of.actor, key)?.is_some();
    let side = if partner || told { &mut of.partner } else { &mut of.actor };
    let place = place(side, key)?;
    let yes = match value {
        "IN_SYNC" | "Enabled" | "True" => true,
        "OUT_OF_SYNC" | "Disabled" | "False" => false,
        _ => return Some(false),
    };
    Some(put(place, yes, at))
}
