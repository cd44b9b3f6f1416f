//! Reads the shared Ethernet adapter's own part of `entstat`.

use super::read::{DOUBT, vlans};
use super::{Failover, Sea, SeaThread, Side, TrunkVlans};
use crate::page::{Page, put};
use crate::text::{Line, Plain, count, is_device};
use crate::{At, Read};

/// Where the reader is within the part.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Top,
    Vlans,
    Real,
    Virtual,
    Other,
    Threads,
    Failover,
}

pub(super) fn empty(at: At, name: Option<Read<String>>) -> Sea {
    Sea {
        at,
        name,
        adapter_count: None,
        flags: None,
        flag_names: Vec::new(),
        vlans: Vec::new(),
        real_side: Side::default(),
        virtual_side: Side::default(),
        output_generated: None,
        output_dropped: None,
        output_failures: None,
        memory_failures: None,
        icmp_errors_sent: None,
        larger_than_mtu: None,
        thread_overflow: None,
        threads: Vec::new(),
        failover: None,
        real_adapter: None,
        virtual_adapters: Vec::new(),
        control_adapter: None,
    }
}

/// `Real Adapter: ent0` and the like, in the lines between the adapters.
pub(super) fn names_member(sea: &mut Sea, text: &str, at: At) -> bool {
    // Most lines are none of these: their first letter tells.
    if !text.starts_with(['R', 'V', 'C']) {
        return false;
    }
    let Some((key, name)) = text.split_once("Adapter:") else { return false };
    let read = || Read { value: name.bare().to_owned(), at };
    if !is_device(name.bare(), "ent") {
        return false;
    }
    match key.bare_end() {
        "Real" => sea.real_adapter = Some(read()),
        "Virtual" => sea.virtual_adapters.push(read()),
        "Control" | "Control Channel" => sea.control_adapter = Some(read()),
        _ => return false,
    }
    true
}

pub(super) fn take(sea: &mut Sea, state: &mut State, page: &mut Page<'_>, line: Line<'_>) -> bool {
    let text = line.trimmed();
    if heading(sea, state, text)
        || names_member(sea, text, line.at)
        || flag_name(sea, text, line.at)
    {
        return true;
    }
    if let Some(index) = thread_heading(text) {
        *state = State::Threads;
        sea.threads.push(thread(index, line.at));
        return true;
    }
    if more_vlans(sea, *state, text) {
        return true;
    }
    let Some((key, value)) = text.split_key() else {
        return *state == State::Threads && text.starts_with("SEA Default Queue");
    };
    let (key, value, at) = (key.bare_end(), value.bare(), line.at);
    let fits = match key {
        "Number of adapters" => {
            value.parse().ok().map(|count| put(&mut sea.adapter_count, count, at))
        }
        "SEA Flags" => {
            Some(u64::from_str_radix(value, 16).is_ok_and(|flags| put(&mut sea.flags, flags, at)))
        }
        _ if *state == State::Vlans && is_device(key, "ent") => trunk(sea, key, value, at),
        _ if *state == State::Failover => {
            failover(sea.failover.get_or_insert_default(), key, value, at)
        }
        _ => counter(sea, *state, key)
            .map(|place| count(value).is_some_and(|value| put(place, value, at))),
    };
    match fits {
        Some(true) => {}
        Some(false) => page.doubt(line, DOUBT),
        None => return false,
    }
    true
}

fn heading(sea: &mut Sea, state: &mut State, text: &str) -> bool {
    *state = match text {
        "VLAN Ids :" | "VLAN IDs :" | "VLAN Ids:" | "VLAN IDs:" => State::Vlans,
        "Real Side Statistics:" => State::Real,
        "Virtual Side Statistics:" => State::Virtual,
        "Other Statistics:" => State::Other,
        "SEA THREADS INFORMATION" => State::Threads,
        "High Availability Statistics:" => {
            sea.failover.get_or_insert_default();
            State::Failover
        }
        "Type of Packets Received:" => *state,
        _ => return false,
    };
    true
}

/// `< THREAD >`
fn flag_name(sea: &mut Sea, text: &str, at: At) -> bool {
    let Some(name) = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) else {
        return false;
    };
    sea.flag_names.push(Read { value: name.bare().to_owned(), at });
    true
}

/// `Thread .............. #0`
fn thread_heading(text: &str) -> Option<u32> {
    let rest = text.strip_prefix("Thread")?;
    rest.trim_start_matches([' ', '.']).strip_prefix('#')?.bare().parse().ok()
}

fn thread(index: u32, at: At) -> SeaThread {
    SeaThread { at, index, dropped: None, queued: None, average: None, count: None, max: None }
}

/// `ent5: 10 20 30`
fn trunk(sea: &mut Sea, adapter: &str, value: &str, at: At) -> Option<bool> {
    let Some(vlans) = vlans(value) else { return Some(false) };
    sea.vlans.push(TrunkVlans { at, adapter: adapter.to_owned(), vlans });
    Some(true)
}

/// A list of VLANs that goes on in the next line.
fn more_vlans(sea: &mut Sea, state: State, text: &str) -> bool {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let Some(more) = vlans(text) else { return false };
    let list = match state {
        State::Vlans => sea.vlans.last_mut().map(|trunk| &mut trunk.vlans),
        State::Failover => sea
            .failover
            .as_mut()
            .and_then(|failover| Some(&mut failover.shared_vlans.as_mut()?.value)),
        _ => None,
    };
    list.map(|list| list.extend(more)).is_some()
}

fn counter<'s>(sea: &'s mut Sea, state: State, key: &str) -> Option<&'s mut Option<Read<u64>>> {
    let key = key.bare();
    let side = match state {
        State::Real => &mut sea.real_side,
        State::Virtual => &mut sea.virtual_side,
        State::Threads => {
            return sea.threads.last_mut().and_then(|thread| thread_counter(thread, key));
        }
        _ => {
            return Some(match key {
                "Output packets generated" => &mut sea.output_generated,
                "Output packets dropped" => &mut sea.output_dropped,
                "Device output failures" => &mut sea.output_failures,
                "Memory allocation failures" => &mut sea.memory_failures,
                "ICMP error packets sent" => &mut sea.icmp_errors_sent,
                "Non IP packets larger than MTU" => &mut sea.larger_than_mtu,
                "Thread queue overflow packets" => &mut sea.thread_overflow,
                _ => return None,
            });
        }
    };
    Some(match key {
        "Packets received" => &mut side.received,
        "Packets bridged" => &mut side.bridged,
        "Packets consumed" => &mut side.consumed,
        "Packets fragmented" => &mut side.fragmented,
        "Packets transmitted" => &mut side.transmitted,
        "Packets dropped" => &mut side.dropped,
        "Packets filtered(VlanId)" => &mut side.filtered_vlan,
        "Packets filtered(Reserved address)" => &mut side.filtered_reserved,
        _ => return None,
    })
}

fn thread_counter<'s>(thread: &'s mut SeaThread, key: &str) -> Option<&'s mut Option<Read<u64>>> {
    Some(match key {
        "Queue full dropped packets" => &mut thread.dropped,
        "Queue packets queued" => &mut thread.queued,
        "Queue average packets queued" => &mut thread.average,
        "Queue packets count" => &mut thread.count,
        "Queue max packets queued" => &mut thread.max,
        _ => return None,
    })
}

/// What a filter has left of the failover without the headings before it: the keys are its own, but for the priority, which
/// a trunk adapter has, too, and which follows the state or the mode.
pub(super) fn failover_alone(
    sea: &mut Option<Sea>,
    headless: bool,
    page: &mut Page<'_>,
    line: Line<'_>,
) -> bool {
    let text = line.trimmed();
    let (key, value) = text.split_key().unwrap_or((text, ""));
    let (key, value) = (key.bare_end(), value.bare());
    let seen = sea.as_ref().and_then(|sea| sea.failover.as_ref());
    let own = match key {
        "State" => !value.is_empty() && is_state(value),
        "Priority" => {
            let after =
                |of: &Failover| (of.state.is_some() || of.mode.is_some()) && of.priority.is_none();
            seen.is_some_and(after) && value.parse::<u32>().is_ok()
        }
        "Control Channel PVID"
        | "Control Packets in"
        | "Control Packets out"
        | "Limbo Packets"
        | "Bridge Mode"
        | "VID shared"
        | "Number of Times Server became Backup"
        | "Number of Times Server became Primary"
        | "High Availability Mode" => true,
        _ => key == "High Availability Statistics",
    };
    // A virtual adapter's, of which nobody can say which it is: only where the adapters have lost their headings, too.
    let nobodys = key == "LAN State" || (key == "Priority" && value.contains("Active:"));
    if !own {
        return nobodys && headless;
    }
    let sea = sea.get_or_insert_with(|| empty(line.at, None));
    let of = sea.failover.get_or_insert_default();
    if failover(of, key, value, line.at) == Some(false) {
        page.doubt(line, DOUBT);
    }
    true
}

/// `PRIMARY_SH`
fn is_state(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// `None` when the key is not known, otherwise whether its value was understood.
fn failover(failover: &mut Failover, key: &str, value: &str, at: At) -> Option<bool> {
    let count =
        |place: &mut Option<Read<u64>>| count(value).is_some_and(|value| put(place, value, at));
    let text = |place: &mut Option<Read<String>>| put(place, value.to_owned(), at);
    Some(match key {
        "Control Channel PVID" => {
            value.parse().is_ok_and(|vlan| put(&mut failover.control_vlan, vlan, at))
        }
        "Control Packets in" => count(&mut failover.control_in),
        "Control Packets out" => count(&mut failover.control_out),
        "Keep-Alive Packets" => count(&mut failover.keep_alive),
        "Recovery Packets" => count(&mut failover.recovery),
        "Notify Packets" => count(&mut failover.notify),
        "Limbo Packets" => count(&mut failover.limbo),
        "State" => text(&mut failover.state),
        "Bridge Mode" => text(&mut failover.bridge_mode),
        "VID shared" => {
            vlans(value).is_some_and(|vlans| put(&mut failover.shared_vlans, vlans, at))
        }
        "Number of Times Server became Backup" => count(&mut failover.became_backup),
        "Number of Times Server became Primary" => count(&mut failover.became_primary),
        "High Availability Mode" => text(&mut failover.mode),
        "Priority" => value.parse().is_ok_and(|priority| put(&mut failover.priority, priority, at)),
        _ => return None,
    })
}
