//! Reads `entstat` and `netstat -v`.

use super::{
    Aggregation, Buffers, Entstat, Ethernet, Lacp, Packets, Sea, VirtualEthernet, memory_read,
};
use super::{link_read, sea_read};
use crate::page::{Page, put};
use crate::prompt;
use crate::text::{Line, Plain, after_start, count, number};
use crate::{At, Info, Read, Report};

pub(super) const DOUBT: &str = "the value is no number, or it stands there twice";

/// Where the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// The counters that every adapter prints.
    Common,
    /// `Driver Flags` go on in the lines below.
    Flags,
    /// The virtual adapter's own part, outside its buffers.
    Virtual,
    /// Its memory and transmit buffers, which nothing needs.
    Memory,
    /// Its receive buffers.
    Buffers,
    /// The part that an adapter's driver prints.
    Device,
    /// What an aggregation says of itself.
    Aggregation,
    /// What a member of one says of its negotiation.
    Lacp,
    /// The shared adapter's own part.
    Sea,
}

struct Reading {
    adapters: Vec<Ethernet>,
    sea: Option<Sea>,
    state: sea_read::State,
    section: Section,
    /// Lines between adapters that name the next one.
    seen_elapsed: bool,
    /// The state that is read is the partner's.
    partner: bool,
    /// The aggregation whose members come next, by its place.
    aggregation: Option<usize>,
}

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut reading = Reading {
        adapters: Vec::new(),
        sea: None,
        state: sea_read::State::default(),
        section: Section::Common,
        seen_elapsed: false,
        partner: false,
        aggregation: None,
    };
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if let Some(name) = after_start(text, "ETHERNET STATISTICS (") {
            if reading.is_another_run(name, page) {
                break;
            }
            reading.open(name.split(')').next().unwrap_or(""), line, page);
            page.take();
            continue;
        }
        let alone = text.as_bytes().last() == Some(&b':');
        let below = alone.then(|| page.below(&[])).flatten();
        let below = below.filter(|(word, _)| number(word).is_some());
        let joined = below.map(|(word, lines)| (format!("{} {word}", line.text), lines));
        let known = is_rule(text)
            || match &joined {
                Some((text, _)) => reading.take(page, Line { text, ..line }),
                None => reading.take(page, line),
            };
        if known {
            page.take_lines(joined.map_or(1, |(_, lines)| lines));
            continue;
        }
        let of_driver = reading.section == Section::Device && is_of_driver(line);
        if !(of_driver && page.passes(line) || page.goes_on(line)) {
            break;
        }
    }
    if reading.adapters.is_empty() && reading.sea.is_none() {
        return None;
    }
    reading.judge(page);
    let Reading { adapters, sea, .. } = reading;
    Some(Report::Entstat(Box::new(Entstat { head: page.close(), adapters, sea })))
}

/// More adapters than any partition has.
const MOST: usize = 4096;

fn is_rule(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'-' | b'=' | b' ' | b'\t'))
}

/// Whether the line can be one of those that a card's driver prints beyond what is used: `PCI Mode: PCI-Express X8`,
/// `Number of RX mbufs: 7` below a heading, a row of a table.
fn is_of_driver(line: Line<'_>) -> bool {
    const KEY: usize = 64;
    const VALUE: usize = 48;
    let text = line.trimmed();
    let indented = line.text.starts_with(['\t', ' ']);
    let short = |(key, value): (&str, &str)| {
        key.len() <= KEY && value.len() <= VALUE && !value.ends_with('.')
    };
    text.split_once(':').map_or(indented && text.len() <= VALUE, short)
}

impl Reading {
    /// An adapter that is printed again begins another run; so does a second shared adapter, whose parts follow it.
    fn is_another_run(&self, rest: &str, page: &Page<'_>) -> bool {
        let name = rest.split(')').next().unwrap_or("");
        let seen = self.adapters.iter().any(|adapter| adapter.name.value == name);
        let mut ahead = page.ahead();
        ahead.next();
        let shared =
            ahead.peek_text().is_some_and(|next| next.text.contains("Shared Ethernet Adapter"));
        seen || self.adapters.len() == MOST || (shared && self.sea.is_some())
    }

    fn open(&mut self, name: &str, line: Line<'_>, page: &mut Page<'_>) {
        if self.adapters.is_empty() {
            page.device_is(name, line.at);
        }
        self.section = Section::Common;
        self.seen_elapsed = false;
        self.partner = false;
        if let Some(of) =
            self.aggregation.and_then(|index| self.adapters.get_mut(index)?.aggregation.as_mut())
        {
            of.members.push(name.to_owned());
            let all = of.adapters.is_some_and(|count| {
                usize::try_from(count.value).is_ok_and(|count| of.members.len() >= count)
            });
            if all {
                self.aggregation = None;
            }
        }
        self.adapters.push(Ethernet {
            at: line.at,
            name: Read { value: name.to_owned(), at: line.at },
            device_type: None,
            mac: None,
            elapsed_seconds: None,
            transmitted: Packets::default(),
            received: Packets::default(),
            queue_max: None,
            queue_overflow: None,
            no_mbuf_errors: None,
            late_collisions: None,
            reset_count: None,
            data_rate: None,
            driver_flags: Vec::new(),
            link_status: None,
            speed: None,
            speed_selected: None,
            logical_link_status: None,
            aggregation: None,
            lacp: None,
            virtual_adapter: None,
            details: Vec::new(),
        });
    }

    /// Whether the line was understood, or is known and not needed.
    fn take(&mut self, page: &mut Page<'_>, line: Line<'_>) -> bool {
        let text = line.trimmed();
        if self.heading(text, line.at) {
            return true;
        }
        if self.section != Section::Sea
            && page.filter.is_some()
            && sea_read::failover_alone(&mut self.sea, self.adapters.is_empty(), page, line)
        {
            return true;
        }
        if self.section == Section::Sea {
            if let Some(sea) = &mut self.sea {
                return sea_read::take(sea, &mut self.state, page, line);
            }
            return false;
        }
        if let Some(sea) = &mut self.sea
            && sea_read::names_member(sea, text, line.at)
        {
            return true;
        }
        if self.adapters.is_empty()
            && page.filter.is_some()
            && let Some(name) =
                page.device().filter(|name| name.starts_with("ent")).map(str::to_owned)
        {
            // A filter has taken away the heading; the command names the adapter.
            self.open(&name, line, page);
            let known = self.take(page, line);
            if !known {
                self.adapters.clear();
            }
            return known;
        }
        let Some(adapter) = self.adapters.last_mut() else { return false };
        if let Some(own) = &mut adapter.virtual_adapter
            && memory_read::total(own, text, line.at)
        {
            return true;
        }
        match self.section {
            Section::Flags if is_flags(line) => {
                adapter.driver_flags.extend(text.split_ascii_whitespace().map(str::to_owned));
                true
            }
            Section::Memory => memory_read::memory(text),
            // Some drivers print the negotiation in their own part, without a heading.
            Section::Device if link_read::begins_member(text) => {
                self.section = Section::Lacp;
                let of = adapter.lacp.get_or_insert_default();
                link_read::member(of, &mut self.partner, page, line)
            }
            Section::Device => {
                common(adapter, page, line, &mut self.seen_elapsed) || detail(adapter, line)
            }
            Section::Aggregation => {
                let of = adapter.aggregation.get_or_insert_default();
                link_read::aggregation(of, page, line)
            }
            Section::Lacp => {
                let of = adapter.lacp.get_or_insert_default();
                link_read::member(of, &mut self.partner, page, line)
            }
            Section::Buffers => buffers(adapter, page, line),
            Section::Virtual => {
                virtual_field(adapter, page, line)
                    || common(adapter, page, line, &mut self.seen_elapsed)
                    || memory_read::memory(text)
            }
            Section::Flags | Section::Common | Section::Sea => {
                let before = adapter.driver_flags.len();
                let known = common(adapter, page, line, &mut self.seen_elapsed);
                self.section = if adapter.driver_flags.len() > before {
                    Section::Flags
                } else {
                    Section::Common
                };
                if !known && page.filter.is_some() && link_read::is_of_member(text) {
                    self.section = Section::Lacp;
                    self.partner = false;
                    let of = adapter.lacp.get_or_insert_default();
                    return link_read::member(of, &mut self.partner, page, line);
                }
                known
            }
        }
    }

    /// Headings of parts.
    fn heading(&mut self, text: &str, at: At) -> bool {
        if let Some(name) =
            text.strip_prefix("Statistics for adapters in the Shared Ethernet Adapter")
        {
            let name =
                (!name.bare().is_empty()).then(|| Read { value: name.bare().to_owned(), at });
            self.sea = Some(sea_read::empty(at, name));
            self.state = sea_read::State::default();
            self.section = Section::Sea;
            return true;
        }
        let kind = self.adapters.last().and_then(|adapter| adapter.device_type.as_ref());
        let names_driver = kind.is_some_and(|kind| {
            text.strip_prefix(kind.value.as_str())
                .is_some_and(|rest| matches!(rest.bare(), "" | "Specific Statistics:"))
        });
        let section = match text {
            "General Statistics:" => Section::Common,
            "Hypervisor Information" | "Transmit Information" => Section::Memory,
            "Receive Information" | "Receive Buffers" => Section::Buffers,
            _ if text.starts_with("Virtual I/O Ethernet Adapter") => Section::Virtual,
            "Device Statistics:" | "Specific Statistics:" => Section::Device,
            "IEEE 802.3ad Port Statistics:" => Section::Lacp,
            _ if link_read::is_aggregation(text) => Section::Aggregation,
            _ if names_driver || text.ends_with(" Specific Statistics:") => Section::Device,
            _ if text.starts_with("Transmit Statistics:") => Section::Common,
            _ => return false,
        };
        let inside = self.section != Section::Sea && !self.adapters.is_empty();
        if inside {
            self.section = section;
            if section == Section::Virtual
                && let Some(adapter) = self.adapters.last_mut()
            {
                adapter.virtual_adapter = Some(VirtualEthernet::default());
            }
            let place = self.adapters.len() - 1;
            if let Some(adapter) = self.adapters.last_mut() {
                match section {
                    Section::Aggregation => {
                        adapter.aggregation = Some(Aggregation::default());
                        self.aggregation = Some(place);
                    }
                    Section::Lacp => adapter.lacp = Some(Lacp::default()),
                    _ => {}
                }
            }
        }
        inside
    }

    /// Every adapter prints its driver's flags; what is missing before was cut off.
    fn judge(&self, page: &mut Page<'_>) {
        if self.adapters.is_empty() {
            page.incomplete("only lines of its failover are there");
        }
        if let Some(adapter) = self.adapters.iter().find(|adapter| adapter.driver_flags.is_empty())
        {
            page.incomplete(&format!("{} has no Driver Flags", adapter.name.value));
        }
        let shared = |adapter: &Ethernet| {
            adapter
                .device_type
                .as_ref()
                .is_some_and(|kind| kind.value.contains("Shared Ethernet Adapter"))
        };
        let all = ["-all", "-d"].iter().any(|flag| page.command_has(flag));
        if all && self.sea.is_none() && self.adapters.iter().any(shared) {
            page.incomplete("the statistics of the Shared Ethernet Adapter are missing");
        }
    }
}

/// More flags: indented, or words of letters and digits where mail has taken the indent.
fn is_flags(line: Line<'_>) -> bool {
    let word = |word: &str| word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let indented = line.text.starts_with([' ', '\t']);
    !line.text.contains(':') && (indented || line.text.split_ascii_whitespace().all(word))
}

/// One or two `key: value` on a line; the left one is transmitted, the right one received.
fn common(
    adapter: &mut Ethernet,
    page: &mut Page<'_>,
    line: Line<'_>,
    seen_elapsed: &mut bool,
) -> bool {
    let text = line.trimmed();
    let indented = line.text.len() - text.len();
    let Some((key, rest)) = text.split_key() else {
        return text.starts_with("Specific Statistics");
    };
    let key = key.bare_end();
    if described(adapter, page, key, rest.bare(), line, seen_elapsed) {
        return true;
    }
    // A key far to the right stands in the received column alone.
    if indented > 20 {
        return set_received(adapter, page, key, rest.bare(), line);
    }
    let mut words = rest.bare_start().splitn(2, char::is_whitespace);
    let value = words.next().unwrap_or("");
    let left = set_transmitted(adapter, page, key, value, line);
    let right = words
        .next()
        .and_then(|right| right.bare().split_key())
        .is_none_or(|(key, value)| set_received(adapter, page, key.bare_end(), value.bare(), line));
    left && right
}

/// Counters that every adapter prints and that nothing needs.
const PASSED: &[&str] = &[
    "Bad Packets",
    "Current S/W+H/W Transmit Queue Length",
    "Broadcast Packets",
    "Multicast Packets",
    "Lost CTS Errors",
    "Alignment Errors",
    "Max Collision Errors",
    "Receive Collision Errors",
    "Deferred",
    "Packet Too Short Errors",
    "SQE Test",
    "Packet Too Long Errors",
    "Single Collision Count",
    "Receiver Start Count",
    "Multiple Collision Count",
    "Current HW Transmit Queue Length",
];

/// A line of the part that the driver prints: kept as it is. Lines without a colon are headings in it.
fn detail(adapter: &mut Ethernet, line: Line<'_>) -> bool {
    const MOST: usize = 1024;
    let Some((name, value)) = line.trimmed().split_key() else { return false };
    // `user@host:/path$ ` has a colon, too.
    let is_prompt = || name.contains('@') || value.bare_start().starts_with(['/', '~']);
    let fits = name.len() < 80
        && adapter.details.len() < MOST
        && !(is_prompt() && prompt::prompt(line.text).is_some());
    if fits {
        let (name, value) = (name.bare_end().to_owned(), value.bare().to_owned());
        adapter.details.push(Info { at: line.at, name: name.into(), value });
    }
    fits
}

fn set(page: &mut Page<'_>, place: &mut Option<Read<u64>>, value: &str, line: Line<'_>) -> bool {
    if !line.ended || !count(value).is_some_and(|value| put(place, value, line.at)) {
        page.doubt(
            line,
            if line.ended { DOUBT } else { "the file ends in this line; its value may be cut" },
        );
    }
    true
}

fn packets<'p>(packets: &'p mut Packets, key: &str) -> Option<&'p mut Option<Read<u64>>> {
    Some(match key {
        "Packets" => &mut packets.packets,
        "Bytes" => &mut packets.bytes,
        "Interrupts" => &mut packets.interrupts,
        "Transmit Errors" | "Receive Errors" => &mut packets.errors,
        "Packets Dropped" => &mut packets.dropped,
        "No Resource Errors" => &mut packets.no_resource,
        "DMA Overrun" => &mut packets.dma,
        "Packets Discarded by Adapter" => &mut packets.discarded,
        "CRC Errors" => &mut packets.crc,
        _ => return None,
    })
}

fn set_transmitted(
    adapter: &mut Ethernet,
    page: &mut Page<'_>,
    key: &str,
    value: &str,
    line: Line<'_>,
) -> bool {
    if PASSED.contains(&key) {
        return true;
    }
    let place = match key {
        "Max Packets on S/W Transmit Queue" => Some(&mut adapter.queue_max),
        "S/W Transmit Queue Overflow" => Some(&mut adapter.queue_overflow),
        "No mbuf Errors" => Some(&mut adapter.no_mbuf_errors),
        "Adapter Reset Count" => Some(&mut adapter.reset_count),
        "Late Collision Errors" => Some(&mut adapter.late_collisions),
        "Adapter Data Rate" => Some(&mut adapter.data_rate),
        "DMA Underrun" => Some(&mut adapter.transmitted.dma),
        "Timeout Errors" => Some(&mut adapter.transmitted.timeouts),
        "No Carrier Sense" => Some(&mut adapter.transmitted.no_carrier),
        // A key that mail has moved to the left.
        "DMA Overrun" | "CRC Errors" | "Packets Discarded by Adapter" => {
            return set_received(adapter, page, key, value, line);
        }
        _ => packets(&mut adapter.transmitted, key),
    };
    place.is_some_and(|place| set(page, place, value, line))
}

fn set_received(
    adapter: &mut Ethernet,
    page: &mut Page<'_>,
    key: &str,
    value: &str,
    line: Line<'_>,
) -> bool {
    if key == "Late Collision Errors" {
        return set(page, &mut adapter.late_collisions, value, line);
    }
    PASSED.contains(&key)
        || packets(&mut adapter.received, key).is_some_and(|place| set(page, place, value, line))
}

/// Lines whose value is text.
fn described(
    adapter: &mut Ethernet,
    page: &mut Page<'_>,
    key: &str,
    value: &str,
    line: Line<'_>,
    seen_elapsed: &mut bool,
) -> bool {
    let at = line.at;
    let text = || value.to_owned();
    let fits = match key {
        "Device Type" => put(&mut adapter.device_type, text(), at),
        "Hardware Address" => page.mask(key, value, at) || put(&mut adapter.mac, text(), at),
        // A second one tells how long ago the driver reset some of the counters by itself.
        "Elapsed Time" if *seen_elapsed => true,
        "Elapsed Time" => {
            *seen_elapsed = true;
            elapsed(value).is_some_and(|seconds| put(&mut adapter.elapsed_seconds, seconds, at))
        }
        "Driver Flags" => {
            adapter.driver_flags.extend(value.split_ascii_whitespace().map(str::to_owned));
            true
        }
        "Media Speed Selected" => put(&mut adapter.speed_selected, text(), at),
        "Logical Port Link Status" => put(&mut adapter.logical_link_status, text(), at),
        "Link Status" | "Physical Port Link Status" | "Link status" | "Physical Link Status" => {
            put(&mut adapter.link_status, text(), at)
        }
        "Media Speed Running" | "Physical Port Speed" | "Physical Port Link Speed" => {
            put(&mut adapter.speed, text(), at)
        }
        _ => return false,
    };
    if !fits {
        page.doubt(line, DOUBT);
    }
    true
}

/// `1 days 18 hours 47 minutes 34 seconds`
fn elapsed(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [days, "days", hours, "hours", minutes, "minutes", seconds, "seconds"] = words[..] else {
        return None;
    };
    let read = |text: &str| text.parse::<u64>().ok().filter(|value| *value < 1_000_000_000);
    Some(read(days)? * 86_400 + read(hours)? * 3_600 + read(minutes)? * 60 + read(seconds)?)
}

fn virtual_field(adapter: &mut Ethernet, page: &mut Page<'_>, line: Line<'_>) -> bool {
    let Some(own) = &mut adapter.virtual_adapter else { return false };
    let text = line.trimmed();
    // The list of VLANs goes on in lines of numbers.
    if let Some(list) = &mut own.vlans
        && text.starts_with(|c: char| c.is_ascii_digit())
        && let Some(more) = vlans(text)
    {
        list.value.extend(more);
        return true;
    }
    let Some((key, value)) = text.split_key() else { return false };
    let (value, at) = (value.bare(), line.at);
    let fits = match key.bare_end() {
        "Trunk Adapter" => flag(value).is_some_and(|trunk| put(&mut own.trunk, trunk, at)),
        "Priority" => priority(own, value, at),
        "Port VLAN ID" => value.parse().is_ok_and(|vlan| put(&mut own.port_vlan, vlan, at)),
        "VLAN Tag IDs" => vlans(value).is_some_and(|vlans| put(&mut own.vlans, vlans, at)),
        "Switch ID" => put(&mut own.switch, value.to_owned(), at),
        "Hypervisor Send Failures" => {
            count(value).is_some_and(|count| put(&mut own.send_failures, count, at))
        }
        "Receiver Failures" => {
            count(value).is_some_and(|count| put(&mut own.receiver_failures, count, at))
        }
        "Invalid VLAN ID Packets" => {
            count(value).is_some_and(|count| put(&mut own.invalid_vlan, count, at))
        }
        "LAN State" => put(&mut own.lan_state, value.to_owned(), at),
        "Hypervisor Receive Failures" => {
            count(value).is_some_and(|count| put(&mut own.receive_failures, count, at))
        }
        "RQ Length"
        | "Filter MCast Mode"
        | "Filters"
        | "Enabled"
        | "Send Errors"
        | "ILLAN Attributes"
        | "No Copy Buffers"
        | "LPAR Active Memory Sharing" => true,
        _ => return false,
    };
    if !fits {
        page.doubt(line, DOUBT);
    }
    true
}

/// `1  Active: True`
fn priority(own: &mut VirtualEthernet, value: &str, at: At) -> bool {
    let (number, active) =
        value.split_once("Active:").map_or((value, None), |(left, right)| (left, Some(right)));
    let number = number.bare().parse().is_ok_and(|value| put(&mut own.priority, value, at));
    let active = active.is_none_or(|text| {
        flag(text.bare()).is_some_and(|active| put(&mut own.active, active, at))
    });
    number && active
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

/// `10  20  30`, or `None`.
pub(super) fn vlans(text: &str) -> Option<Vec<u16>> {
    if text.eq_ignore_ascii_case("None") || text.is_empty() {
        return Some(Vec::new());
    }
    text.split([' ', '\t', ','])
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().ok())
        .collect()
}

/// `Min Buffers   512   512   128   24   24`
fn buffers(adapter: &mut Ethernet, page: &mut Page<'_>, line: Line<'_>) -> bool {
    let Some(own) = &mut adapter.virtual_adapter else { return false };
    let text = line.trimmed();
    if let Some(kinds) = text.strip_prefix("Buffer Type") {
        let kinds = kinds.split_ascii_whitespace();
        own.buffers =
            kinds.map(|kind| Buffers { kind: kind.to_owned(), ..Buffers::default() }).collect();
        return true;
    }
    let rows = [
        "Min Buffers",
        "Max Buffers",
        "Allocated",
        "Registered",
        "Max Allocated",
        "Lowest Registered",
    ];
    let Some((row, values)) = rows.iter().find_map(|row| Some((*row, text.strip_prefix(row)?)))
    else {
        return memory_read::memory(text);
    };
    let values: Option<Vec<u64>> = values.split_ascii_whitespace().map(number).collect();
    let Some(values) = values.filter(|values| values.len() == own.buffers.len()) else {
        page.doubt(line, "not as many numbers as kinds of buffers");
        return true;
    };
    for (buffers, value) in own.buffers.iter_mut().zip(values) {
        let place = match row {
            "Min Buffers" => &mut buffers.min,
            "Max Buffers" => &mut buffers.max,
            "Allocated" => &mut buffers.allocated,
            "Registered" => &mut buffers.registered,
            "Max Allocated" => &mut buffers.max_allocated,
            _ => &mut buffers.lowest_registered,
        };
        put(place, value, line.at);
    }
    true
}
