//! `entstat`: what it prints, of plain numbers.

use super::text::lines;

/// What the original calls a virtual Ethernet adapter.
pub(super) const VIRTUAL: &str = "Virtual I/O Ethernet Adapter (l-lan)";
/// And a shared one.
pub(super) const SHARED: &str = "Shared Ethernet Adapter";

/// What is behind it here.
pub(super) const UPLINK: &str = "Ethernet uplink (TAP)";
pub(super) const UPLINK_PACKET: &str = "Ethernet uplink (packet sockets)";
pub(super) const UPLINK_XDP: &str = "Ethernet uplink (AF_XDP sockets)";
/// And where several are one.
pub(super) const AGGREGATE: &str = "EtherChannel / 802.3ad Link Aggregation";

/// Frames of one adapter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Frames {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) received: u64,
    pub(super) received_bytes: u64,
    /// Of those that came in, the ones that nobody was to get.
    pub(super) refused: u64,
    /// For whatever reason, in both directions.
    pub(super) dropped: u64,
    /// For their VLAN.
    pub(super) filtered: u64,
    /// For an address that no bridge forwards.
    pub(super) reserved: u64,
    /// Since the kernel refused them.
    pub(super) failed: u64,
    /// For want of memory.
    pub(super) no_memory: u64,
}

/// An adapter as `entstat` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntReport {
    pub(super) name: String,
    pub(super) device_type: String,
    /// As it is configured; none where the host has it.
    pub(super) mac: Option<String>,
    pub(super) seconds: u64,
    pub(super) up: bool,
    /// None where they are not counted.
    pub(super) frames: Option<Frames>,
    /// What a virtual adapter has beside that.
    pub(super) lan: Option<Lan>,
    /// Of one that is made of several.
    pub(super) aggregate: Option<Aggregate>,
}

/// Several adapters that are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Aggregate {
    /// Which of them frames take.
    pub(super) way: Way,
    pub(super) members: Vec<EntReport>,
}

/// Which members frames take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// One: the first, or one behind it.
    One { first: bool },
    /// Each flow has one of them.
    Each,
}

/// A virtual adapter in its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lan {
    pub(super) pvid: u16,
    pub(super) vlans: Vec<u16>,
    pub(super) network: String,
    /// Of a trunk adapter: its priority, and whether it is bridged.
    pub(super) trunk: Option<(u64, bool)>,
}

/// A shared adapter with what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeaReport {
    pub(super) own: EntReport,
    /// Its frames are handed over to a channel of its own.
    pub(super) thread: bool,
    /// Packets of its network may be longer than 1500 bytes.
    pub(super) jumbo: bool,
    pub(super) real: EntReport,
    pub(super) trunks: Vec<EntReport>,
    /// What it is to its partner.
    pub(super) failover: Option<HighAvailability>,
}

/// A shared adapter that takes part in failover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HighAvailability {
    pub(super) state: String,
    pub(super) bridge_mode: String,
    /// Times that it began to bridge.
    pub(super) primary: u64,
    /// As the attribute says it.
    pub(super) mode: String,
    pub(super) priority: u64,
}

const RULE: &str = "--------------------------------------------------------------";

/// `entstat` of one adapter.
pub(super) fn adapter(report: &EntReport) -> String {
    let two = |left: String, right: String| format!("{left:<46}{right}");
    let mut all = vec![
        format!("ETHERNET STATISTICS ({}) :", report.name),
        format!("Device Type: {}", report.device_type),
    ];
    all.extend(report.mac.iter().map(|mac| format!("Hardware Address: {mac}")));
    all.extend([elapsed(report.seconds), String::new()]);
    if let Some(frames) = report.frames {
        all.extend([
            two("Transmit Statistics:".to_owned(), "Receive Statistics:".to_owned()),
            two("-".repeat(20), "-".repeat(19)),
            two(format!("Packets: {}", frames.sent), format!("Packets: {}", frames.received)),
            two(
                format!("Bytes: {}", frames.sent_bytes),
                format!("Bytes: {}", frames.received_bytes),
            ),
            format!("Transmit Errors: {}", frames.failed),
            two(String::new(), format!("Packets Dropped: {}", frames.refused)),
            String::new(),
        ]);
    }
    let running = if report.up { " Running" } else { "" };
    all.extend(["General Statistics:".to_owned(), "-------------------".to_owned()]);
    all.extend(report.frames.map(|frames| format!("No mbuf Errors: {}", frames.no_memory)));
    all.extend([
        format!("Driver Flags: Up Broadcast{running} "),
        "\tSimplex ChecksumOffload LargeSend".to_owned(),
    ]);
    if let Some(lan) = &report.lan {
        all.extend(virtual_part(lan));
    }
    lines(&all)
}

/// `entstat -d` of one adapter: the same, and all that it is made of.
pub(super) fn whole(report: &EntReport) -> String {
    let mut text = adapter(report);
    let Some(Aggregate { way, members }) = &report.aggregate else { return text };
    let heading = "Statistics for every adapter in the EtherChannel:";
    let way = match way {
        Way::One { first: true } => "Active channel: primary channel",
        Way::One { first: false } => "Active channel: backup adapter",
        Way::Each => "Hash mode: Source and destination TCP/UDP ports",
    };
    text += &lines(&[
        String::new(),
        heading.to_owned(),
        "-".repeat(heading.len()),
        String::new(),
        format!("Number of adapters: {}", members.len()),
        "Operating mode: Standard mode".to_owned(),
        way.to_owned(),
    ]);
    text.extend(members.iter().map(|member| format!("\n{RULE}\n{}", adapter(member))));
    text
}

fn elapsed(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    format!("Elapsed Time: {days} days {hours} hours {minutes} minutes {seconds} seconds")
}

fn virtual_part(lan: &Lan) -> Vec<String> {
    let truth = |is: bool| if is { "True" } else { "False" };
    let mut all = vec![
        String::new(),
        format!("{VIRTUAL} Specific Statistics:"),
        "---------------------------------------------------------".to_owned(),
        format!("Trunk Adapter: {}", truth(lan.trunk.is_some())),
    ];
    all.extend(
        lan.trunk
            .map(|(priority, active)| format!("  Priority: {priority}  Active: {}", truth(active))),
    );
    all.extend([
        format!("Port VLAN ID:  {:>4}", lan.pvid),
        format!("VLAN Tag IDs:  {}", list(&lan.vlans, "  ")),
        format!("Switch ID: {}", lan.network),
    ]);
    all
}

fn high_availability(of: &HighAvailability) -> Vec<String> {
    let mut mode = of.mode.clone();
    if let Some(first) = mode.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    vec![
        "High Availability Statistics:".to_owned(),
        format!("    State: {}", of.state),
        format!("    Bridge Mode: {}", of.bridge_mode),
        format!("    Number of Times Server became Primary: {}", of.primary),
        format!("    High Availability Mode: {mode}"),
        format!("    Priority: {}", of.priority),
    ]
}

fn list(vlans: &[u16], between: &str) -> String {
    match vlans {
        [] => "None".to_owned(),
        vlans => vlans.iter().map(u16::to_string).collect::<Vec<_>>().join(between),
    }
}

/// `entstat -all` of a shared adapter. What came from outside is received on the real side and transmitted on the virtual one.
pub(super) fn shared(report: &SeaReport) -> String {
    let frames = report.own.frames.unwrap_or_default();
    let flags = [
        (0x01, "THREAD", report.thread),
        (0x02, "LARGESEND", true),
        (0x04, "JUMBO_FRAMES", report.jumbo),
        (0x10, "LARGE_RECEIVE", true),
    ];
    let flags = flags.into_iter().filter(|(.., set)| *set);
    let mut all = vec![
        RULE.to_owned(),
        format!("Statistics for adapters in the Shared Ethernet Adapter {}", report.own.name),
        RULE.to_owned(),
        format!("Number of adapters: {}", report.trunks.len() + 1),
        format!("SEA Flags: {:08x}", flags.clone().map(|(bit, ..)| bit).sum::<u32>()),
    ];
    all.extend(flags.map(|(_, name, _)| format!("    < {name} >")));
    all.push("VLAN Ids :".to_owned());
    all.extend(report.trunks.iter().filter_map(|trunk| {
        let lan = trunk.lan.as_ref()?;
        let vlans = [&[lan.pvid][..], &lan.vlans].concat();
        Some(format!("    {}: {}", trunk.name, list(&vlans, " ")))
    }));
    let sides = [
        ("Real Side Statistics:", frames.refused, frames.received, frames.sent, Some(frames)),
        ("Virtual Side Statistics:", 0, frames.sent, frames.received, None),
    ];
    for (heading, refused, bridged, transmitted, lost) in sides {
        all.extend([
            heading.to_owned(),
            format!("    Packets received: {}", bridged + refused),
            format!("    Packets bridged: {bridged}"),
            "    Packets consumed: 0".to_owned(),
            "    Packets fragmented: 0".to_owned(),
            format!("    Packets transmitted: {transmitted}"),
        ]);
        if let Some(lost) = lost {
            all.push(format!("    Packets dropped: {}", lost.dropped));
            all.push(format!("    Packets filtered(VlanId): {}", lost.filtered));
            all.push(format!("    Packets filtered(Reserved address): {}", lost.reserved));
        }
    }
    all.extend([
        "Other Statistics:".to_owned(),
        format!("    Device output failures: {}", frames.failed),
        format!("    Memory allocation failures: {}", frames.no_memory),
    ]);
    all.extend(report.failover.iter().flat_map(high_availability));
    let below = [("Real", &report.real)].into_iter();
    let below = below.chain(report.trunks.iter().map(|trunk| ("Virtual", trunk)));
    let below =
        below.map(|(kind, one)| format!("{RULE}\n{kind} Adapter: {}\n\n{}", one.name, whole(one)));
    format!("{RULE}\n{}\n{}{}", adapter(&report.own), lines(&all), below.collect::<String>())
}
