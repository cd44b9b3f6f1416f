//! Two captures of the same thing.

use planner::capture::{Change, Incomparable, Report, Taken, rates};

use super::{fixture, read, read_bytes};

fn fcstat(replacements: &[(&str, &str)]) -> Report {
    let mut text = String::from_utf8(fixture("fcstat-physical")).expect("fixtures are UTF-8");
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    read_bytes(text.as_bytes()).reports.remove(0)
}

#[test]
fn the_age_of_the_counters_gives_the_time() {
    let earlier = fcstat(&[]);
    let later = fcstat(&[
        ("Reset: 2592311", "Reset: 2592411"),
        ("Count: 70412", "Count: 71412"),
        ("913004418", "913054418"),
    ]);
    let rates = rates(&earlier, &later).expect("the same adapter");
    assert_eq!((rates.seconds, rates.reset), (Some(100.0), Some(false)));
    let elements = rates.get("no_elements").expect("counted");
    assert_eq!((elements.grew(), elements.per_second()), (Some(1000), Some(10.0)));
    assert_eq!((elements.earlier.value, elements.later.at.line), (70_412, 54));
    assert_eq!(rates.get("input_requests").and_then(|rate| rate.per_second()), Some(500.0));
    assert_eq!(rates.get("no_dma").and_then(|rate| rate.grew()), Some(0));
}

#[test]
fn a_reset_gives_no_figures() {
    let earlier = fcstat(&[]);
    // Some counters are greater again all the same.
    let later = fcstat(&[("Reset: 2592311", "Reset: 60"), ("Count: 70412", "Count: 99999")]);
    let rates = rates(&earlier, &later).expect("the same adapter");
    assert_eq!((rates.seconds, rates.reset), (None, Some(true)));
    assert!(
        rates.counters.iter().all(|rate| rate.change == Change::Reset && rate.grew().is_none())
    );
}

#[test]
fn a_reset_is_found_by_the_clock_even_when_the_counters_are_older() {
    let text = |age: u32| {
        let text = String::from_utf8(fixture("fcstat-physical")).expect("fixtures are UTF-8");
        text.replace("Reset: 2592311", &format!("Reset: {age}"))
    };
    let mut captures = planner::capture::Captures::new();
    captures.read("earlier", text(100).as_bytes(), Some(Taken::utc(1_000_000)));
    captures.read("later", text(5000).as_bytes(), Some(Taken::utc(1_010_000)));
    let rates = rates(&captures.reports[0], &captures.reports[1]).expect("the same adapter");
    assert_eq!((rates.seconds, rates.reset), (Some(10_000.0), Some(true)));
}

#[test]
fn a_wrap_is_told_from_a_fall() {
    let near = [("Count: 70412", "Count: 4294967290"), ("Count: 18 ", "Count: 1000 ")];
    let later = [
        ("Reset: 2592311", "Reset: 2592321"),
        ("Count: 70412", "Count: 4"),
        ("Count: 18 ", "Count: 10 "),
    ];
    let rates = rates(&fcstat(&near), &fcstat(&later)).expect("the same adapter");
    let change = |name: &str| rates.get(name).map(|rate| rate.change);
    assert_eq!(change("no_elements"), Some(Change::Wrapped { bits: 32 }));
    assert_eq!(change("no_command"), Some(Change::Fell));
    assert_eq!(change("no_dma"), Some(Change::Grew { by: 0, per_second: Some(0.0) }));
}

#[test]
fn dates_between_the_commands_give_the_time() {
    let stats = "# cat /proc/sys/adapter/vfc/vfchost3/stats\nNumber of CMD queues    = 1\nNumber of SUBQ channels = 0\nCommands received  = ";
    let text = format!(
        "# date\nSun Nov 22 23:59:30 CET 2026\n{stats}1000\n# date\nMon Nov 23 00:00:30 CET 2026\n{stats}61000\n"
    );
    let captures = read_bytes(text.as_bytes());
    let [first, second] = &captures.reports[..] else { panic!("two reports") };
    let rates = rates(first, second).expect("the same adapter");
    assert_eq!((rates.seconds, rates.reset), (Some(60.0), None));
    assert_eq!(
        rates.get("queue 0 commands_received").and_then(|rate| rate.per_second()),
        Some(1000.0)
    );
}

/// The same counters at two times of `date`.
fn between(earlier: &str, later: &str) -> Option<f64> {
    let stats =
        "Number of CMD queues    = 1\nNumber of SUBQ channels = 0\nCommands received  = 5\n";
    let text = format!("$ date\n{earlier}\n{stats}$ date\n{later}\n{stats}");
    let captures = read_bytes(text.as_bytes());
    rates(&captures.reports[0], &captures.reports[1]).expect("the same adapter").seconds
}

#[test]
fn dates_of_different_zones_are_not_subtracted() {
    assert_eq!(between("Sun Mar 29 01:59:00 CET 2026", "Sun Mar 29 03:01:00 EET 2026"), None);
    assert_eq!(between("Sun Mar 29 01:59:00 CET 2026", "Sun Mar 29 03:01:00 UTC 2026"), None);
}

#[test]
fn the_clock_goes_forward_in_march_and_back_in_october() {
    let [spring, autumn] = [
        ["Sun Mar 29 01:59:00 CET 2026", "Sun Mar 29 03:01:00 CEST 2026"],
        ["Sun Oct 25 02:59:00 CEST 2026", "Sun Oct 25 02:01:00 CET 2026"],
    ];
    assert_eq!(between(spring[0], spring[1]), Some(120.0));
    assert_eq!(between(autumn[0], autumn[1]), Some(120.0));
    assert_eq!(between("Sun Mar 8 01:59:00 EST 2026", "Sun Mar 8 03:01:00 EDT 2026"), Some(120.0));
    // As scripts set it.
    assert_eq!(
        between("=== Sun Mar 29 01:59:00 CET 2026", "## Sun Mar 29 02:00:00 CET 2026 ##"),
        Some(60.0)
    );
}

#[test]
fn different_things_are_not_compared() {
    let other = fcstat(&[("REPORT: fcs2", "REPORT: fcs3")]);
    assert_eq!(
        rates(&fcstat(&[]), &other),
        Err(Incomparable::Subjects { earlier: "fcs2".to_owned(), later: "fcs3".to_owned() })
    );
    let pools = read("lssp").reports.remove(0);
    assert_eq!(rates(&pools, &pools), Err(Incomparable::NoCounters { command: "lssp" }));
    assert!(matches!(rates(&pools, &other), Err(Incomparable::Commands { .. })));
}

#[test]
fn every_client_has_counters_of_its_own() {
    let mut text = String::from_utf8(fixture("fcstat-client")).expect("fixtures are UTF-8");
    let earlier = read_bytes(text.as_bytes()).reports.remove(0);
    text = text.replace("33000100", "33000600");
    let later = read_bytes(text.as_bytes()).reports.remove(0);
    let rates = rates(&earlier, &later).expect("the same server");
    let grown: Vec<(&str, u64)> = rates
        .counters
        .iter()
        .filter_map(|rate| Some((rate.name.as_str(), rate.grew().filter(|by| *by > 0)?)))
        .collect();
    assert_eq!(grown, [("payroll fcs0 c0:50:76:07:1a:2b:00:10 input_requests", 500)]);
}

/// How a script prints a line of some day.
type Dress<'a> = &'a dyn Fn(u8, &str) -> String;

/// What a script picked of several ports, day by day: each line names its port, and may name its host and its day.
#[test]
fn values_that_name_their_port_line_by_line() {
    let day = |day: u8, waits: u32, dressed: Dress<'_>| {
        let of = |port: &str, waits: u32| {
            [
                format!("{port} Seconds Since Last Reset: {}", u32::from(day) * 86_400),
                format!("{port}   No Command Resource Count: {waits}"),
            ]
        };
        let lines = [of("fcs0", 0), of("fcs2", waits)].concat();
        lines.iter().map(|line| dressed(day, line)).collect::<String>()
    };
    let plain = |_: u8, line: &str| format!("{line}\n");
    let dated = |day: u8, line: &str| format!("2026-11-{day} {line}\n");
    let barred =
        |day: u8, line: &str| format!("odin-v1|2026-11-{day}|{}\n", line.replacen(' ', "|", 1));
    let logged = |day: u8, line: &str| format!("Nov {day} odin-v1 {line}\n");
    let dresses: [Dress<'_>; 4] = [&plain, &dated, &barred, &logged];
    for dressed in dresses {
        let text = [day(20, 500, dressed), day(21, 900, dressed)].concat();
        let captures = read_bytes(text.as_bytes());
        let found: Vec<_> = captures
            .fcstats()
            .map(|one| {
                let device = one.head.device.as_ref().map(|read| read.value.as_str());
                (device, one.resources.no_command.map(|read| read.value))
            })
            .collect();
        let all = [
            (Some("fcs0"), Some(0)),
            (Some("fcs2"), Some(500)),
            (Some("fcs0"), Some(0)),
            (Some("fcs2"), Some(900)),
        ];
        assert_eq!(found, all, "{text}");
        let taken: Vec<_> = captures.fcstats().filter_map(|one| one.head.taken.clone()).collect();
        if text.contains("2026") {
            assert_eq!(taken[3].seconds - taken[0].seconds, 86_400, "{text}");
        }
        if text.contains("odin") {
            let host = |one: &planner::capture::Fcstat| {
                one.head.partition.as_ref().is_some_and(|read| read.value == "odin-v1")
            };
            assert!(captures.fcstats().all(host), "{text}");
        }
    }
    // A list of devices is none of it.
    let text = "fcs0             Available   PCIe3 Adapter: dual\nfcs1             Available   PCIe3 Adapter: dual\n";
    assert_eq!(read_bytes(text.as_bytes()).reports.len(), 0);
}

/// The same of network ports, of two hosts and two days: the lines of one stop where those of another begin.
#[test]
fn values_of_one_port_of_two_hosts() {
    let block = |host: &str, day: u8, lost: u32| {
        format!(
            "{host}|2026-11-{day}|ent5|DMA Underrun: 0                  DMA Overrun: 4\n{host}|2026-11-{day}|ent5|Max Collision Errors: 0           No Resource Errors: {lost}\n{host}|2026-11-{day}|ent5|Link Status: Up\n"
        )
    };
    let text = [
        block("steu-a", 23, 88),
        block("steu-b", 23, 0),
        block("steu-a", 24, 99),
        block("steu-b", 24, 0),
    ]
    .concat();
    let captures = read_bytes(text.as_bytes());
    let hosts: Vec<_> = captures
        .entstats()
        .map(|one| {
            (
                one.head.partition.as_ref().map(|read| read.value.as_str()),
                one.adapters[0].name.value.as_str(),
            )
        })
        .collect();
    let of = |host| (Some(host), "ent5");
    assert_eq!(hosts, [of("steu-a"), of("steu-b"), of("steu-a"), of("steu-b")]);
}
