//! Reads `fcstat`.

use super::{Fcstat, QueueUse, Resources, Traffic, TwoWay};
use crate::page::{Page, put};
use crate::text::{Line, Lines, Plain, after_start, count, number};
use crate::{At, Read, Report, Wwn};

/// The heading under which a line stands; the same keys come under several.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// What is known of the adapter, its link counters, the driver's.
    Adapter,
    /// A list of protocol names, which nothing needs.
    Protocols,
    Resources(Protocol),
    Traffic(Protocol),
    AdapterQueue,
    ProtocolQueue,
    /// Queue statistics of another protocol.
    OtherQueue,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Ip,
    Scsi,
    Nvme,
}

/// How a line was taken.
enum Taken {
    Yes,
    /// The line is known, its value is not.
    Doubtful(&'static str),
    No,
}

impl Taken {
    fn of(understood: bool) -> Self {
        if understood {
            Taken::Yes
        } else {
            Taken::Doubtful("the value is no number, or it stands there twice")
        }
    }
}

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut report = empty(page);
    let mut section = Section::Adapter;
    let mut loose = Resources::default();
    let mut groups = Groups::default();
    let mut any = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if let Some(name) = after_start(text, "FIBRE CHANNEL STATISTICS REPORT") {
            if any {
                break;
            }
            page.device_is(name.trim_start_matches([':', ' ']), line.at);
            page.take();
            any = true;
            continue;
        }
        let (joined, lines) = join(line, page.ahead());
        let whole = joined.as_deref().unwrap_or(text);
        if masked_name(page, whole, line) {
            page.take_lines(lines);
            any = true;
            continue;
        }
        let taken = match may_be_cut(line) {
            Some(doubt) => doubt,
            None if section == Section::Adapter
                && (without_heading(&mut report, &mut loose, whole, line)
                    || (page.filter.is_some() && groups.take(whole, line))) =>
            {
                Taken::Yes
            }
            None => take(&mut report, &mut section, whole, line),
        };
        match taken {
            Taken::Yes | Taken::Doubtful(_) => {
                if let Taken::Doubtful(why) = taken {
                    page.doubt(line, why);
                }
                page.take_lines(lines);
                any = true;
            }
            Taken::No if error(page, line) => any = true,
            Taken::No if section == Section::Protocols && text.contains(['(', ')']) => {
                page.take();
            }
            Taken::No if !page.goes_on(line) => break,
            Taken::No => {}
        }
    }
    any.then(|| {
        groups.settle(page, &mut report);
        judge(page, &report);
        report.head = page.close();
        Report::Fcstat(Box::new(report))
    })
}

/// A name or number that was made unreadable.
fn masked_name(page: &mut Page<'_>, text: &str, line: Line<'_>) -> bool {
    let names = ["World Wide ", "Serial Number", "Port FC ID", "Node WWN", "Port WWN"];
    let field = text.split_key().filter(|_| names.iter().any(|name| text.starts_with(name)));
    field.is_some_and(|(key, value)| page.mask(key.bare_end(), value.bare(), line.at))
}

/// A file that ends within a line may have lost part of its number. Only behind the keys with which whole reports end is
/// the number believed.
fn may_be_cut(line: Line<'_>) -> Option<Taken> {
    let last = ["Output Bytes", "Adapter Effective max transfer value"];
    let doubtful =
        !line.ended && line.text.contains(':') && !last.iter().any(|key| line.text.contains(key));
    doubtful.then_some(Taken::Doubtful("the file ends in this line; its value may be cut"))
}

/// Resource counts whose heading a filter has taken away. IP over FC counts two of them, SCSI counts three and comes
/// first of those that do: the three that end with the first `No Command Resource Count` are SCSI's.
fn without_heading(report: &mut Fcstat, loose: &mut Resources, text: &str, line: Line<'_>) -> bool {
    let resource_count = text.starts_with("No ");
    let Some((key, value)) = text.split_key().filter(|_| resource_count) else { return false };
    if key == "No DMA Resource Count" {
        *loose = Resources::default();
    }
    let Some(place) = resource(loose, key) else { return false };
    let taken = count(value.bare()).is_some_and(|value| put(place, value, line.at));
    if taken && loose.no_command.is_some() && report.resources == Resources::default() {
        report.resources = *loose;
    }
    taken
}

/// Queues and traffic whose headings a filter has taken away. A key that comes again begins the next of them, and their order
/// is always the same: the adapter's queue and the protocol's; IP over FC, SCSI, and NVMe where there is any.
#[derive(Default)]
struct Groups {
    queues: Vec<QueueUse>,
    traffic: Vec<Traffic>,
}

impl Groups {
    fn take(&mut self, text: &str, line: Line<'_>) -> bool {
        let Some((key, value)) = text.split_key() else { return false };
        let key = key.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let Some(value) = count(value.bare()) else { return false };
        next_of(&mut self.queues, |group| queue(group, &key), value, line.at)
            || next_of(&mut self.traffic, |group| traffic(group, &key), value, line.at)
    }

    /// Gives the report what can be told apart; of one group alone nobody can say which it is.
    fn settle(self, page: &mut Page<'_>, report: &mut Fcstat) {
        match self.queues[..] {
            [] => {}
            [adapter, protocol] => {
                (report.adapter_queue, report.protocol_queue) = (adapter, protocol);
            }
            _ => page.incomplete("which queue the commands are of cannot be told"),
        }
        match self.traffic[..] {
            [] => {}
            [ip, scsi] => (report.ip_traffic, report.traffic) = (ip, scsi),
            [ip, scsi, nvme] => {
                (report.ip_traffic, report.traffic, report.nvme_traffic) = (ip, scsi, nvme);
            }
            _ => page.incomplete("which protocol the requests are of cannot be told"),
        }
    }
}

/// Puts a value into the last group, or into a new one where that has it already; `false` where the key is none of its.
fn next_of<T: Default>(
    groups: &mut Vec<T>,
    place: impl Fn(&mut T) -> Option<Place<'_>>,
    value: u64,
    at: At,
) -> bool {
    const MOST: usize = 8;
    if place(&mut T::default()).is_none() || groups.len() > MOST {
        return false;
    }
    let full = |group: &mut T| place(group).is_none_or(|place| place.is_some());
    if groups.last_mut().is_none_or(full) {
        groups.push(T::default());
    }
    let place = groups.last_mut().and_then(place);
    place.is_some_and(|place| put(place, value, at))
}

/// What the command says instead of a report.
fn error(page: &mut Page<'_>, line: Line<'_>) -> bool {
    let text = line.trimmed();
    let known = [
        "Error reading statistics",
        "Error accessing ODM",
        "Device not found",
        "Error opening device",
    ];
    if !known.iter().any(|start| text.starts_with(start)) {
        return false;
    }
    page.take();
    page.incomplete(&format!("fcstat says: {text}"));
    true
}

/// Terminals wrap the longest lines, and mail more of them. A key whose value stands on the next line and a bracket that is closed there are
/// put together; `None` is the usual line that is whole. With it, how many lines there are.
fn join(line: Line<'_>, mut ahead: Lines<'_>) -> (Option<String>, usize) {
    let text = line.text;
    let open = text.starts_with("Device Type") && text.contains('(') && !text.contains(')');
    let no_value = text.ends_with(':');
    if !open && !no_value {
        return (None, 1);
    }
    ahead.next();
    match ahead.enumerate().find(|(_, next)| !next.is_blank()) {
        Some((blank, next)) if no_value && is_value(line.trimmed(), next.trimmed()) => {
            (Some(format!("{} {}", line.trimmed(), next.trimmed())), blank + 2)
        }
        Some((_, next)) if open && next.text.ends_with(')') && !next.text.contains(':') => {
            (Some(format!("{}{}", line.trimmed(), next.text)), 2)
        }
        _ => (None, 1),
    }
}

/// Whether the text can be the value of a key that stands alone on the line before.
fn is_value(key: &str, text: &str) -> bool {
    let word = !text.contains([' ', ':', '-']);
    let described =
        ["World Wide", "Serial", "Firmware", "ZA", "Option ROM", "Port Type", "Attention"];
    let speed = key.starts_with("Port Speed") && text.ends_with("GBIT");
    number(text).is_some()
        || speed
        || (word && described.iter().any(|start| key.starts_with(start)))
}

fn take(report: &mut Fcstat, section: &mut Section, text: &str, line: Line<'_>) -> Taken {
    let Some((key, value)) = text.split_key() else {
        return heading(section, text);
    };
    let (key, value) = (key.bare_end(), value.bare());
    if value.is_empty() && matches!(key, "FC-4 TYPES" | "FC-4 TYPES (ULP mappings)" | "FC4 Types") {
        *section = Section::Protocols;
        return Taken::Yes;
    }
    if *section == Section::Protocols {
        if matches!(key, "Supported" | "Active" | "Supported ULPs" | "Active ULPs") {
            return Taken::Yes;
        }
        *section = Section::Adapter;
    }
    let squeezed;
    let key = if key.starts_with("High water") && key.contains("  ") {
        squeezed = key.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        squeezed.as_str()
    } else {
        key
    };
    match counter(report, *section, key) {
        // Counters that the adapter does not have; a virtual one counts nothing of a link.
        Some(_) if matches!(value, "UNSUPPORTED" | "UNKNOWN" | "N/A" | "-1") => Taken::Yes,
        Some(place) => Taken::of(count(value).is_some_and(|value| put(place, value, line.at))),
        None => described(report, key, value, line.at),
    }
}

fn heading(section: &mut Section, text: &str) -> Taken {
    let protocol = if text.starts_with("IP over FC") {
        Protocol::Ip
    } else if text.starts_with("FC SCSI") {
        Protocol::Scsi
    } else if text.starts_with("FC NVMe") || text.starts_with("FC-NVMe") || text.starts_with("NVMe")
    {
        Protocol::Nvme
    } else {
        match text {
            "Driver Statistics" | "FC4 Types" | "FC-4 TYPES" => {
                *section =
                    if text.starts_with('D') { Section::Adapter } else { Section::Protocols };
                return Taken::Yes;
            }
            _ if text.starts_with("Transmit Statistics") || text.starts_with("-----") => {
                return Taken::Yes;
            }
            _ => return Taken::No,
        }
    };
    *section = if text.ends_with("Traffic Statistics") {
        Section::Traffic(protocol)
    } else if text.ends_with("Driver Information") {
        Section::Resources(protocol)
    } else if text.ends_with("Queue Statistics") {
        match (protocol, text.contains("Protocol Driver")) {
            (Protocol::Scsi, false) => Section::AdapterQueue,
            (Protocol::Scsi, true) => Section::ProtocolQueue,
            _ => Section::OtherQueue,
        }
    } else {
        return Taken::No;
    };
    Taken::Yes
}

type Place<'r> = &'r mut Option<Read<u64>>;

/// The place of a counter.
fn counter<'r>(report: &'r mut Fcstat, section: Section, key: &str) -> Option<Place<'r>> {
    let of_section = match section {
        Section::Resources(protocol) => resource(
            of_protocol(
                protocol,
                &mut report.ip_resources,
                &mut report.resources,
                &mut report.nvme_resources,
            ),
            key,
        ),
        Section::Traffic(protocol) => traffic(
            of_protocol(
                protocol,
                &mut report.ip_traffic,
                &mut report.traffic,
                &mut report.nvme_traffic,
            ),
            key,
        ),
        Section::AdapterQueue => queue(&mut report.adapter_queue, key),
        Section::ProtocolQueue => queue(&mut report.protocol_queue, key),
        Section::Adapter | Section::Protocols | Section::OtherQueue => None,
    };
    if of_section.is_some() {
        return of_section;
    }
    Some(match key {
        "Seconds Since Last Reset" => &mut report.seconds_since_reset,
        "LIP Count" => &mut report.lip,
        "NOS Count" => &mut report.nos,
        "Error Frames" => &mut report.error_frames,
        "Dumped Frames" => &mut report.dumped_frames,
        "Link Failure Count" => &mut report.link_failures,
        "Loss of Sync Count" => &mut report.sync_losses,
        "Loss of Signal" | "Loss of Signal Count" => &mut report.signal_losses,
        "Primitive Seq Protocol Error Count" | "Primitive Seq Protocol Err Count" => {
            &mut report.sequence_errors
        }
        "Invalid Tx Word Count" => &mut report.invalid_words,
        "Invalid CRC Count" => &mut report.invalid_crcs,
        "Elastic buffer overrun count" => &mut report.elastic_overruns,
        "Number of interrupts" => &mut report.interrupts,
        "Number of spurious interrupts" => &mut report.spurious_interrupts,
        "Long term DMA pool size" => &mut report.long_term_dma_bytes,
        "I/O DMA pool size" => &mut report.io_dma_bytes,
        "Adapter Effective max transfer value" => &mut report.max_transfer_bytes,
        _ => return None,
    })
}

fn of_protocol<T>(protocol: Protocol, ip: T, scsi: T, nvme: T) -> T {
    match protocol {
        Protocol::Ip => ip,
        Protocol::Scsi => scsi,
        Protocol::Nvme => nvme,
    }
}

fn resource<'r>(resources: &'r mut Resources, key: &str) -> Option<Place<'r>> {
    Some(match key {
        "No DMA Resource Count" => &mut resources.no_dma,
        "No Adapter Elements Count" => &mut resources.no_elements,
        "No Command Resource Count" => &mut resources.no_command,
        _ => return None,
    })
}

fn traffic<'r>(traffic: &'r mut Traffic, key: &str) -> Option<Place<'r>> {
    Some(match key {
        "Input Requests" => &mut traffic.input_requests,
        "Output Requests" => &mut traffic.output_requests,
        "Control Requests" => &mut traffic.control_requests,
        "Input Bytes" => &mut traffic.input_bytes,
        "Output Bytes" => &mut traffic.output_bytes,
        _ => return None,
    })
}

fn queue<'r>(queue: &'r mut QueueUse, key: &str) -> Option<Place<'r>> {
    Some(match key {
        "Number of active commands" => &mut queue.active,
        "High water mark of active commands" => &mut queue.active_high,
        "Number of pending commands" => &mut queue.pending,
        "High water mark of pending commands" => &mut queue.pending_high,
        "Number of commands in the Adapter Driver Held off queue" => &mut queue.held_off,
        "High water mark of number of commands in the Adapter Driver Held off queue" => {
            &mut queue.held_off_high
        }
        _ => return None,
    })
}

/// Lines whose value is not one number.
fn described(report: &mut Fcstat, key: &str, value: &str, at: At) -> Taken {
    let text = match key {
        "Device Type" => {
            let client =
                value.contains("vfc-client") || value.starts_with("Virtual Fibre Channel Client");
            put(&mut report.is_virtual, client, at);
            &mut report.device_type
        }
        "Serial Number" => &mut report.serial_number,
        "Option ROM Version" => &mut report.rom_version,
        "ZA" | "Firmware Version" => &mut report.firmware,
        "Class of Service" => &mut report.class_of_service,
        "Port Type" => &mut report.port_type,
        "Attention Type" => &mut report.attention_type,
        "Topology" => &mut report.topology,
        _ => return coded(report, key, value, at),
    };
    Taken::of(put(text, value.to_owned(), at))
}

fn coded(report: &mut Fcstat, key: &str, value: &str, at: At) -> Taken {
    match key {
        "World Wide Node Name" | "Node WWN" => {
            Taken::of(wwn(value).is_some_and(|wwn| put(&mut report.wwnn, wwn, at)))
        }
        "World Wide Port Name" | "Port WWN" => {
            Taken::of(wwn(value).is_some_and(|wwn| put(&mut report.wwpn, wwn, at)))
        }
        "Port FC ID" => {
            Taken::of(fc_id(value).is_some_and(|id| put(&mut report.port_fc_id, id, at)))
        }
        "Port Speed (supported)" => speed(&mut report.speed_supported_gbit, value, at),
        "Port Speed (running)" => speed(&mut report.speed_running_gbit, value, at),
        "Frames" => two_way(&mut report.frames, value, at),
        "Words" => two_way(&mut report.words, value, at),
        _ => Taken::No,
    }
}

/// Hexadecimal with or without `0x`, also with colons.
pub(super) fn wwn(text: &str) -> Option<Wwn> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let hex: String = digits.chars().filter(|c| *c != ':').collect();
    let fits = (1..=16).contains(&hex.len()) && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then(|| u64::from_str_radix(&hex, 16).ok().map(Wwn)).flatten()
}

fn fc_id(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// `16 GBIT`; `UNKNOWN` is an answer, though not a number.
fn speed(place: &mut Option<Read<u32>>, value: &str, at: At) -> Taken {
    if value.eq_ignore_ascii_case("UNKNOWN") {
        return Taken::Yes;
    }
    let mut words = value.split_ascii_whitespace();
    let gbit = words.next().and_then(|word| word.parse().ok());
    let unit = words.next().is_none_or(|unit| unit.eq_ignore_ascii_case("GBIT"));
    Taken::of(gbit.filter(|_| unit).is_some_and(|gbit| put(place, gbit, at)))
}

/// `TX RX`, or `TX KEY: RX` as older levels print it.
fn two_way(place: &mut TwoWay, value: &str, at: At) -> Taken {
    // A virtual adapter counts no frames.
    let none = |word: &str| word == "-1" || word.ends_with(':');
    if value.starts_with("-1") && value.split_ascii_whitespace().all(none) {
        return Taken::Yes;
    }
    let mut numbers = value.split_ascii_whitespace().filter(|word| !word.ends_with(':')).map(count);
    let (Some(Some(transmitted)), received, None) =
        (numbers.next(), numbers.next(), numbers.next())
    else {
        return Taken::of(false);
    };
    let first = put(&mut place.transmitted, transmitted, at);
    match received {
        Some(Some(received)) => Taken::of(first && put(&mut place.received, received, at)),
        Some(None) => Taken::of(false),
        None => Taken::Doubtful("the received number is missing"),
    }
}

/// Every level ends its report with what SCSI moved.
fn judge(page: &mut Page<'_>, report: &Fcstat) {
    if report.resources.no_command.is_none() {
        page.incomplete("the counts under FC SCSI Adapter Driver Information are missing");
    } else if report.traffic.output_bytes.is_none() {
        page.incomplete("FC SCSI Traffic Statistics are missing or not whole");
    } else if page.lacks(&report.wwpn) || report.seconds_since_reset.is_none() {
        page.incomplete("the part with names and Seconds Since Last Reset is missing");
    }
}

fn empty(page: &mut Page<'_>) -> Fcstat {
    Fcstat {
        head: crate::Head::new(page.first()),
        device_type: None,
        is_virtual: None,
        serial_number: None,
        rom_version: None,
        firmware: None,
        wwnn: None,
        wwpn: None,
        class_of_service: None,
        speed_supported_gbit: None,
        speed_running_gbit: None,
        port_fc_id: None,
        port_type: None,
        attention_type: None,
        topology: None,
        seconds_since_reset: None,
        frames: TwoWay::default(),
        words: TwoWay::default(),
        lip: None,
        nos: None,
        error_frames: None,
        dumped_frames: None,
        link_failures: None,
        sync_losses: None,
        signal_losses: None,
        sequence_errors: None,
        invalid_words: None,
        invalid_crcs: None,
        elastic_overruns: None,
        ip_resources: Resources::default(),
        resources: Resources::default(),
        nvme_resources: Resources::default(),
        ip_traffic: Traffic::default(),
        traffic: Traffic::default(),
        nvme_traffic: Traffic::default(),
        interrupts: None,
        spurious_interrupts: None,
        long_term_dma_bytes: None,
        io_dma_bytes: None,
        adapter_queue: QueueUse::default(),
        protocol_queue: QueueUse::default(),
        max_transfer_bytes: None,
    }
}
