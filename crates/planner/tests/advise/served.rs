//! A running Trunkline server: two readings, judged by the same engine.

use std::collections::BTreeMap;

use planner::advise::{Advice, Kind, State, advise, rules};
use planner::capture::{AdapterReading, Captures, Reading};
use planner::facts::Facts;
use planner::report::{Answer, advice::AdviceReport};

/// An adapter's counters, its device (commands, mean in ns), and seconds that its two channels worked.
struct At<'a> {
    counters: &'a [(&'a str, u64)],
    device: (u64, u64),
    busy_s: [u64; 2],
}

const IDLE: At<'static> = At { counters: &[], device: (1000, 100_000), busy_s: [0, 0] };

fn reading(seconds: f64, at: &At<'_>, channels_max: u32) -> Reading {
    let counters = at.counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let adapter = AdapterReading {
        name: "vhost0".into(),
        volume: "disk0".into(),
        channels: 2,
        channels_max,
        limited_by: "data plane".into(),
        remedy: "give the data plane more channels".into(),
        limits: BTreeMap::from([("limit_iops".to_owned(), "1000".to_owned())]),
        counters,
        device: Some((at.device.0, at.device.0 * at.device.1)),
        busy_ns: (0..).zip(at.busy_s.map(|seconds| seconds * 1_000_000_000)).collect(),
    };
    Reading { host: "host1".into(), seconds, adapters: vec![adapter] }
}

/// Ten seconds between two readings, and the lines that stand for them.
fn judged(
    before: &At<'_>,
    after: &At<'_>,
    channels_max: u32,
) -> (Advice, Captures, [Vec<String>; 2]) {
    let mut captures = Captures::new();
    let first = captures.take_server("first", None, &reading(0.0, before, channels_max));
    let second = captures.take_server("second", None, &reading(10.0, after, channels_max));
    (advise(&captures, &Facts::builtin()), captures, [first, second])
}

fn found(before: &At<'_>, after: &At<'_>, channels_max: u32) -> Vec<&'static str> {
    let (advice, ..) = judged(before, after, channels_max);
    advice.findings.iter().map(|finding| finding.rule).collect()
}

const WORKED: At<'static> = At { counters: &[("commands_received", 100_000)], ..IDLE };

#[test]
fn a_server_without_waits_is_left_alone_and_every_rule_on_it_was_judged() {
    let before = At {
        counters: &[("commands_received", 5000), ("wait_throttled", 5000), ("errors_gone", 3)],
        ..IDLE
    };
    let after = At {
        counters: &[("commands_received", 105_000), ("wait_throttled", 5900), ("errors_gone", 3)],
        device: (2000, 100_000),
        busy_s: [5, 6],
    };
    let (advice, captures, _) = judged(&before, &after, 2);
    assert_eq!(advice.findings, [], "what happened before does not count");
    assert!(advice.is_whole(), "{:?}", advice.coverage);
    let of_server = rules().filter(|rule| rule.on == Kind::Served).count();
    assert_eq!(advice.coverage.len(), of_server, "no rule of PowerVM is asked: {advice:?}");
    assert_eq!(advice.not_checked, [], "and none is said to lack a capture");
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
    assert!(report.summary().starts_with("Nothing to change: all 9"), "{}", report.summary());
}

#[test]
fn rules_on_a_server_are_not_asked_of_powervm() {
    let advice = super::advice(&[("a.txt", "v1:/> ioslevel\n3.1.4.10\n")]);
    assert!(!advice.not_checked.iter().any(|not| not.rule.starts_with("server-")), "{advice:?}");
}

#[test]
fn what_commands_waited_for_is_named_with_its_lines() {
    let before = At { counters: &[("commands_received", 0)], ..IDLE };
    let after = At {
        counters: &[
            ("commands_received", 1000),
            ("wait_throttled", 10),
            ("wait_no_dma", 500),
            ("wait_back_end_full", 9),
            ("wait_delay", 1000),
            ("errors_no_space", 1),
        ],
        ..IDLE
    };
    let (advice, _, lines) = judged(&before, &after, 2);
    let said: Vec<&str> = advice.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(said, ["server-no-space", "server-no-buffer", "server-throttled"]);
    let [no_space, _, throttled] = advice.findings.as_slice() else { panic!("{advice:?}") };
    assert!(no_space.title.contains("disk0: the file system under it is full"), "{no_space:?}");
    assert!(throttled.title.contains("limit_iops=1000 of volume disk0"), "{throttled:?}");
    assert!((throttled.figures[0].low - 1.0).abs() < 1e-9);
    let shown: Vec<&str> = throttled
        .evidence
        .iter()
        .map(|at| lines[at.file as usize][at.line as usize - 1].as_str())
        .collect();
    assert!(shown.contains(&"vhost0 wait_throttled 10"), "{shown:?}");
    assert!(shown.contains(&"volume disk0 limit_iops 1000"), "{shown:?}");
    assert!(advice.findings.iter().all(|finding| finding.system == "host1"));
}

/// The shortage of a port is the port's: raising the client's attribute would give it nothing.
#[test]
fn who_is_short_of_elements_is_told_apart() {
    for (counter, rule, raised) in [
        ("wait_no_command", "server-no-command", "`num_cmd_elems` of the adapter (up to 2048"),
        ("wait_no_adapter_element", "server-no-element", "`num_cmd_elems` of the port (up to 4096"),
    ] {
        let counters = [("commands_received", 1000), (counter, 100)];
        let (advice, ..) = judged(&IDLE, &At { counters: &counters, ..IDLE }, 2);
        let [finding] = advice.findings.as_slice() else { panic!("{advice:?}") };
        assert_eq!(finding.rule, rule);
        assert!(finding.effect.contains(raised), "{finding:?}");
    }
}

#[test]
fn an_adapter_with_little_to_do_is_not_judged_and_says_so() {
    let after = At {
        counters: &[("commands_received", 99), ("wait_throttled", 99)],
        busy_s: [10, 10],
        ..IDLE
    };
    let (advice, ..) = judged(&IDLE, &after, 2);
    assert_eq!(advice.findings, []);
    let open: Vec<&str> = advice
        .coverage
        .iter()
        .filter(|judged| judged.state == State::NotJudged)
        .map(|judged| judged.why.as_str())
        .collect();
    assert_eq!(open.len(), 7, "{open:?}");
    assert!(open[0].contains("fewer than 100 commands"), "{open:?}");
}

#[test]
fn channels_are_full_only_if_all_are_and_there_may_be_no_more() {
    let after = |busy_s| At { busy_s, ..WORKED };
    let (advice, ..) = judged(&IDLE, &after([10, 9]), 2);
    let [finding] = advice.findings.as_slice() else { panic!("{advice:?}") };
    assert_eq!(finding.rule, "server-channels-full");
    assert!(finding.effect.contains("give the data plane more"), "{finding:?}");
    assert_eq!(found(&IDLE, &after([10, 8]), 2), [""; 0], "one has time");
    assert_eq!(found(&IDLE, &after([10, 10]), 4), [""; 0], "placement may spread");
}

#[test]
fn the_device_is_judged_by_what_it_did_meanwhile() {
    // A thousand commands of 100 µs before, a thousand of 40 ms since; then the other way round.
    let at = |device| At { device, ..WORKED };
    let before = |device| At { device, ..IDLE };
    let (advice, ..) = judged(&before((1000, 100_000)), &at((2000, 20_050_000)), 2);
    let [finding] = advice.findings.as_slice() else { panic!("{advice:?}") };
    assert_eq!((finding.rule, finding.object.as_str()), ("server-device-slow", "volume disk0"));
    assert!((finding.figures[0].low - 40.0).abs() < 0.001, "{:?}", finding.figures);
    assert_eq!(found(&before((1000, 40_000_000)), &at((2000, 20_050_000)), 2), [""; 0]);
}

#[test]
fn a_data_plane_that_began_anew_counts_from_zero() {
    let before =
        At { counters: &[("commands_received", 900_000), ("wait_no_dma", 800_000)], ..IDLE };
    let after = At { counters: &[("commands_received", 1000), ("wait_no_dma", 100)], ..IDLE };
    let (advice, ..) = judged(&before, &after, 2);
    let [finding] = advice.findings.as_slice() else { panic!("{advice:?}") };
    assert_eq!(finding.rule, "server-no-buffer");
    assert!((finding.figures[0].low - 10.0).abs() < 1e-9);
}

#[test]
fn thresholds_of_a_server_are_facts_that_a_user_can_replace() {
    let mut facts = Facts::builtin();
    let mine = "[source.mine]\ntext = \"ours\"\n[number.\"server.waited-percent\"]\nvalue = 60\n\
                unit = \"% of the commands\"\nmeaning = \"Ours.\"\nsource = \"mine\"\nconfirmed = true\n";
    facts.extend(mine).unwrap();
    let after = At { counters: &[("commands_received", 1000), ("wait_no_dma", 500)], ..IDLE };
    let (_, captures, _) = judged(&IDLE, &after, 2);
    assert_eq!(advise(&captures, &Facts::builtin()).findings.len(), 1);
    assert_eq!(advise(&captures, &facts).findings, []);
}
