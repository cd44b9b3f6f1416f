//! The advisor against captures composed for one rule each: what it must say, and when it must be silent.

#[path = "advise/adapters.rs"]
mod adapters;
#[path = "advise/again.rs"]
mod again;
#[path = "advise/arbitrary.rs"]
mod arbitrary;
#[path = "advise/arrays.rs"]
mod arrays;
#[path = "advise/bridges.rs"]
mod bridges;
#[path = "advise/disks.rs"]
mod disks;
#[path = "advise/ethernet.rs"]
mod ethernet;
#[path = "advise/everyday.rs"]
mod everyday;
#[path = "advise/front.rs"]
mod front;
#[path = "advise/going_on.rs"]
mod going_on;
#[path = "advise/gone.rs"]
mod gone;
#[path = "advise/hmc_lists.rs"]
mod hmc_lists;
#[path = "advise/identity.rs"]
mod identity;
#[path = "advise/interfaces.rs"]
mod interfaces;
#[path = "advise/logins.rs"]
mod logins;
#[path = "advise/order.rs"]
mod order;
#[path = "advise/origins.rs"]
mod origins;
#[path = "advise/over_days.rs"]
mod over_days;
#[path = "advise/own_facts.rs"]
mod own_facts;
#[path = "advise/paths.rs"]
mod paths;
#[path = "advise/pending.rs"]
mod pending;
#[path = "advise/queues.rs"]
mod queues;
#[path = "advise/remedies.rs"]
mod remedies;
#[path = "advise/reports.rs"]
mod reports;
#[path = "advise/series.rs"]
mod series;
#[path = "advise/served.rs"]
mod served;
#[path = "advise/servers.rs"]
mod servers;
#[path = "advise/trends.rs"]
mod trends;
#[path = "advise/two_ways.rs"]
mod two_ways;

use planner::advise::{Advice, Finding, advise};
use planner::capture::{Captures, Taken};
use planner::facts::Facts;
use planner::report::Answer as _;
use planner::report::advice::AdviceReport;

/// The advice on files, in the order given.
fn advice(files: &[(&str, &str)]) -> Advice {
    advise(&captures(files), &Facts::builtin())
}

fn captures(files: &[(&str, &str)]) -> Captures {
    let mut captures = Captures::new();
    for (name, text) in files {
        captures.read(name, text.as_bytes(), None);
    }
    assert_eq!(captures.refused, [], "{files:?}");
    captures
}

/// The same with a time for each file.
fn timed(files: &[(&str, &str, u64)]) -> Captures {
    let mut captures = Captures::new();
    for (name, text, seconds) in files {
        captures.read(name, text.as_bytes(), Some(Taken::utc(*seconds)));
    }
    captures
}

/// The first finding, which must be of this rule.
#[track_caller]
fn top(files: &[(&str, &str)], rule: &str) -> Finding {
    let advice = advice(files);
    let rules: Vec<&str> = advice.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules.first().copied(), Some(rule), "{rules:?}");
    advice.findings[0].clone()
}

/// Nothing is advised.
#[track_caller]
fn silent(files: &[(&str, &str)]) {
    let advice = advice(files);
    let said: Vec<String> = advice
        .findings
        .iter()
        .map(|finding| format!("{}: {} ({:?})", finding.rule, finding.title, finding.reasoning))
        .collect();
    assert_eq!(said, Vec::<String>::new());
}

/// What an `fcstat -D` shows; the rest of the report is that of a healthy port.
#[derive(Clone, Copy)]
struct Port {
    system: &'static str,
    device: &'static str,
    is_virtual: bool,
    seconds: u64,
    no_dma: u64,
    no_elements: u64,
    no_command: u64,
    active: u64,
    active_high: u64,
    pending_high: u64,
    reads: u64,
    writes: u64,
    crcs: u64,
    link_failures: u64,
    words: u64,
}

const VIRTUAL: Port = Port {
    system: "payroll",
    device: "fcs0",
    is_virtual: true,
    seconds: 2_592_311,
    no_dma: 0,
    no_elements: 0,
    no_command: 0,
    active: 3,
    active_high: 61,
    pending_high: 2,
    reads: 56_629_940,
    writes: 12_007_000,
    crcs: 0,
    link_failures: 0,
    words: 0,
};

/// The published example: 200 elements, 180 active, 2022 pending, 4,419,300 waits.
const SHORT: Port = Port {
    no_command: 4_419_300,
    active_high: 180,
    pending_high: 2022,
    reads: 5_662_994,
    writes: 120_070,
    ..VIRTUAL
};

const PHYSICAL: Port = Port {
    system: "viosa1",
    is_virtual: false,
    active_high: 310,
    reads: 913_004_418,
    writes: 401_772_093,
    link_failures: 3,
    words: 219,
    ..VIRTUAL
};

impl Port {
    fn text(&self) -> String {
        let kind = if self.is_virtual {
            "Virtual Fibre Channel Client Adapter (adapter/vdevice/IBM,vfc-client)"
        } else {
            "PCIe3 4-Port 16Gb FC Adapter (df1000e314101406) (adapter/pciex/df1000e31410140)"
        };
        let Port {
            system,
            device,
            seconds,
            no_dma,
            no_elements,
            no_command,
            active,
            active_high,
            pending_high,
            reads,
            writes,
            crcs,
            link_failures,
            words,
            ..
        } = self;
        format!(
            "{system}:/> fcstat -D {device}

FIBRE CHANNEL STATISTICS REPORT: {device}

Device Type: {kind}
World Wide Node Name: 0xC05076069D61000A
World Wide Port Name: 0xC05076069D61000A

Seconds Since Last Reset: {seconds}

\tTransmit Statistics\tReceive Statistics
\t-------------------\t------------------
Frames: 7731204117      \t18446220093
Words:  3305220147712   \t9116002385920

LIP Count: 0
NOS Count: 2
Error Frames:  0
Dumped Frames: 0
Link Failure Count: {link_failures}
Loss of Sync Count: 17
Loss of Signal: 5
Primitive Seq Protocol Error Count: 0
Invalid Tx Word Count: {words}
Invalid CRC Count: {crcs}

Driver Statistics
  Number of interrupts:   0
  Number of spurious interrupts:   0
  Long term DMA pool size:   0
  I/O DMA pool size:  0

  FC SCSI Adapter Driver Queue Statistics
    Number of active commands:   {active}
    High water mark  of active commands:   {active_high}
    Number of pending commands:   0
    High water mark of pending commands:   1
    Number of commands in the Adapter Driver Held off queue:  0
    High water mark of number of commands in the Adapter Driver Held off queue:  0

  FC SCSI Protocol Driver Queue Statistics
    Number of active commands:   {active}
    High water mark  of active commands:   {active_high}
    Number of pending commands:   0
    High water mark of pending commands:   {pending_high}

FC SCSI Adapter Driver Information
  No DMA Resource Count: {no_dma}
  No Adapter Elements Count: {no_elements}
  No Command Resource Count: {no_command}

FC SCSI Traffic Statistics
  Input Requests:   {reads}
  Output Requests:  {writes}
  Control Requests: 141655
  Input Bytes:  23424304056
  Output Bytes: 603911680

Adapter Effective max transfer value:   0x100000
"
        )
    }

    /// The same port so many seconds later, after so many more requests.
    fn later(&self, seconds: u64, requests: u64) -> Self {
        Self { seconds: self.seconds + seconds, reads: self.reads + requests, ..*self }
    }
}

/// `lsattr -El` as AIX prints it.
fn lsattr(system: &str, device: &str, sets: &[(&str, &str)]) -> String {
    let lines: Vec<String> = sets
        .iter()
        .map(|(name, value)| format!("{name:<15} {value:<12} Some description of it True"))
        .collect();
    format!(
        "{system}:/> oslevel -s\n7200-05-03-2148\n{system}:/> lsattr -El {device}\n{}\n",
        lines.join("\n")
    )
}

/// `lsdev -attr` as the VIOS prints it.
fn lsdev(system: &str, device: &str, sets: &[(&str, &str)]) -> String {
    let lines: Vec<String> = sets
        .iter()
        .map(|(name, value)| format!("{name:<15} {value:<12} Some description of it True"))
        .collect();
    let head = format!("{:<15} {:<12} {} {}", "attribute", "value", "description", "user_settable");
    format!(
        "{system}:/home/padmin> ioslevel\n3.1.4.21\n{system}:/home/padmin> lsdev -dev {device} -attr\n{head}\n\n{}\n",
        lines.join("\n")
    )
}

/// `lsmap -all -npiv`: one entry for each (vfchost, client id and name, port, client's adapter, ports logged in).
fn npiv(system: &str, maps: &[(&str, u32, &str, &str, &str, u32)]) -> String {
    let mut text = format!("{system}:/home/padmin> lsmap -all -npiv\n");
    for (name, id, client, port, adapter, ports) in maps {
        let status = if *ports > 0 { "LOGGED_IN" } else { "NOT_LOGGED_IN" };
        let flags = if *ports > 0 { "a<LOGGED_IN,STRIP_MERGE>" } else { "4<NOT_LOGGED>" };
        text.push_str(&format!(
            "Name          Physloc                            ClntID ClntName       ClntOS
------------- ---------------------------------- ------ -------------- -------
{name:<13} U9009.42A.78A1B2C-V1-C20           {id:>6} {client:<14} AIX

Status:{status}
FC name:{port:<24}FC loc code:U78D3.001.WZS0ABC-P1-C4-T1
Ports logged in:{ports}
Flags:{flags}
VFC client name:{adapter:<16}VFC client DRC:U9009.42A.78A1B2C-V5-C20

"
        ));
    }
    text
}

#[test]
fn that_a_file_was_read_in_part_is_said_first() {
    for cut in [false, true] {
        let mut captures = Captures::new();
        captures.read("a", b"vios1:/> oslevel -s\n7200-05-03-2148\n", None);
        captures.files[0].left_out_from = cut.then_some(3);
        let advice = advise(&captures, &Facts::builtin());
        let report =
            AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
        let summary = report.summary();
        assert_eq!(summary.contains("1 file was read in part"), cut, "{summary}");
        assert!(!cut || !summary.contains("Nothing to change"), "{summary}");
    }
}
