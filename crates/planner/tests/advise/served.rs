//! A running Trunkline server: two readings, judged by the same engine.

use std::collections::BTreeMap;

use planner::advise::{Advice, Kind, State, advise, rules};
use planner::capture::{AdapterReading, Captures, Elements, OnPort, Reading};
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
        elements: None,
        port: None,
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

/// An adapter on a port, of which so many of a thousand commands waited for this reason, with its elements.
fn on_port(
    name: &str,
    waits: (&str, u64),
    own: Elements<u64>,
    port: Elements<u64>,
) -> AdapterReading {
    let counters = [("commands_received", 1000), waits];
    AdapterReading {
        name: name.into(),
        channels: 1,
        channels_max: 2,
        counters: counters.map(|(name, value)| (name.to_owned(), value)).into(),
        elements: Some(own),
        port: Some(OnPort {
            name: "fcs0".into(),
            elements: port,
            held_up_by: Some("vfchost0".into()),
        }),
        ..AdapterReading::default()
    }
}

fn judged_on_port(adapters: Vec<AdapterReading>) -> Advice {
    let mut captures = Captures::new();
    let reading = |seconds, adapters| Reading { host: "host1".into(), seconds, adapters };
    captures.take_server("first", None, &reading(0.0, Vec::new()));
    captures.take_server("second", None, &reading(10.0, adapters));
    advise(&captures, &Facts::builtin())
}

const OWN: Elements<u64> = Elements { now: 200, most: 2048, active_max: 200, pending_max: 312 };
const OF_PORT: Elements<u64> = Elements { now: 200, most: 4096, active_max: 200, pending_max: 400 };

/// An adapter whose own bound binds gets the elements that its marks ask for.
#[test]
fn an_adapter_that_is_short_of_elements_is_given_what_its_marks_ask_for() {
    let short =
        |own| judged_on_port(vec![on_port("vfchost0", ("wait_no_command", 100), own, OF_PORT)]);
    let advice = short(OWN);
    let [finding] = advice.findings.as_slice() else { panic!("{advice:?}") };
    assert_eq!((finding.rule, &*finding.object), ("server-no-command", "vfchost0 on host1"));
    let set = |value: u64| Some(format!("trunkline adapter set vfchost0 --num-cmd-elems {value}"));
    assert_eq!((finding.command.clone(), finding.undo.clone()), (set(512), set(200)));
    // Never more than may be set, never less than there is.
    let most = short(Elements { now: 2047, active_max: 2047, ..OWN });
    assert_eq!(most.findings[0].command, set(2048));
    for (fits, why) in [
        (Elements { now: 2048, active_max: 2048, ..OWN }, "the most that may be set"),
        (Elements { now: 1000, ..OWN }, "fit into what it has"),
    ] {
        let advice = short(fits);
        let [finding] = advice.findings.as_slice() else { panic!("{advice:?}") };
        assert_eq!((&finding.command, finding.look_up.len()), (&None, 1), "{finding:?}");
        assert!(finding.reasoning.iter().any(|said| said.contains(why)), "{finding:?}");
    }
}

/// The shortage of a port is the port's, once, whoever waits: raising a client's attribute would give it nothing.
#[test]
fn a_port_that_is_short_of_elements_is_one_finding() {
    let waits = |name, count| on_port(name, ("wait_no_adapter_element", count), OWN, OF_PORT);
    let advice =
        judged_on_port(vec![waits("vfchost0", 900), waits("vfchost1", 100), waits("vfchost2", 0)]);
    let [finding] = advice.findings.as_slice() else { panic!("{advice:?}") };
    assert_eq!((finding.rule, &*finding.object), ("server-no-element", "fcs0 on host1"));
    assert_eq!(finding.command.as_deref(), Some("trunkline port set fcs0 --num-cmd-elems 600"));
    for said in
        ["element` of vfchost0 grew", "element` of vfchost1 grew", "vfchost0 has most beyond"]
    {
        assert_eq!(
            finding.reasoning.iter().filter(|why| why.contains(said)).count(),
            1,
            "{finding:?}"
        );
    }
    let found = advice.coverage.iter().filter(|judged| judged.state == State::Finding);
    let found: Vec<&str> = found.map(|judged| judged.object.as_str()).collect();
    assert_eq!(found, ["vfchost0 on host1", "vfchost1 on host1"]);
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
