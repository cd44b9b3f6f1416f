use super::*;
use serde_json::{Value, json};

fn queue_totals(counters: Value, device: (u64, u64)) -> Value {
    let (count, mean) = device;
    let device = json!({"count": count, "mean_ns": mean, "p50_ns": mean, "p90_ns": mean, "p99_ns": mean, "p999_ns": mean});
    json!({"counters": counters, "latency": {"device": device}})
}

fn stats(totals: Value, busy: [u64; 2]) -> StatsView {
    let channel =
        |n: usize| json!({"dataplane": "main", "channel": n, "counters": {"busy_ns": busy[n]}});
    let adapter = json!({"adapter": "vhost0", "dataplane": "main", "total": totals, "queues": []});
    serde_json::from_value(json!({"adapters": [adapter], "channels": [channel(0), channel(1)]}))
        .unwrap()
}

fn status(channels_max: u32) -> StatusView {
    let adapter = json!({
        "name": "vhost0", "state": "running", "kind": "block", "volume": "disk0", "socket": "/s", "serial": "disk0",
        "dataplane": "main", "client_queues": 4, "channels": 2, "channels_max": channels_max,
        "limited_by": "data_plane", "channel_of_queue": [0, 1, 0, 1], "connections": 1, "features": [],
        "attributes": {}, "effective": {},
    });
    let volume = json!({
        "name": "disk0", "state": "ready", "dataplane": "main", "adapters": ["vhost0"],
        "attributes": {"limit_iops": 1000}, "effective": {},
    });
    serde_json::from_value(json!({
        "version": "0", "pid": 1, "run_dir": "/r", "state_dir": "/s", "dataplanes": [],
        "volumes": [volume], "adapters": [adapter], "failures": [],
    }))
    .unwrap()
}

/// Ten seconds between an adapter's counters and later ones.
fn judged(before: Value, after: Value, busy_s: [u64; 2], channels_max: u32) -> Health {
    let device = (1000, 100_000);
    Readings {
        status: status(channels_max),
        before: stats(queue_totals(before, device), [0, 0]),
        after: stats(queue_totals(after, (2000, 100_000)), busy_s.map(|s| s * 1_000_000_000)),
        seconds: 10.0,
    }
    .judge(&Facts::builtin())
}

fn rules(health: &Health) -> Vec<&'static str> {
    health.findings.iter().map(|finding| finding.rule).collect()
}

#[test]
fn a_server_without_waits_is_left_alone() {
    let health = judged(
        json!({"commands_received": 5000, "wait_throttled": 5000, "errors_gone": 3}),
        json!({"commands_received": 105_000, "wait_throttled": 5900, "errors_gone": 3}),
        [5, 6],
        2,
    );
    assert_eq!(rules(&health), Vec::<&str>::new(), "what happened before does not count");
    assert!(health.summary().ends_with("nothing to mend."), "{}", health.summary());
}

#[test]
fn what_commands_waited_for_is_named() {
    let health = judged(
        json!({"commands_received": 0}),
        json!({"commands_received": 1000, "wait_throttled": 10, "wait_no_dma": 500, "wait_back_end_full": 9,
               "wait_delay": 1000, "errors_no_space": 1}),
        [0, 0],
        2,
    );
    assert_eq!(rules(&health), ["server-no-space", "server-no-buffer", "server-throttled"]);
    let throttled = &health.findings[2];
    assert_eq!(throttled.command.as_deref(), Some("trunkline volume set disk0 --unset limit_iops"));
    assert!((throttled.figures[0].low - 1.0).abs() < 1e-9);
    assert!(health.findings[0].title.contains("disk0: the file system under it is full"));
}

#[test]
fn an_adapter_with_little_to_do_is_not_judged() {
    let health =
        judged(json!({}), json!({"commands_received": 99, "wait_throttled": 99}), [10, 10], 2);
    assert_eq!(rules(&health), Vec::<&str>::new());
    assert_eq!(health.quiet, ["vhost0"]);
}

#[test]
fn channels_are_full_only_if_all_are_and_there_may_be_no_more() {
    let after = || json!({"commands_received": 100_000});
    let health = judged(json!({}), after(), [10, 9], 2);
    assert_eq!(rules(&health), ["server-channels-full"]);
    assert!(
        health.findings[0].effect.contains("give the data plane more"),
        "{:?}",
        health.findings[0]
    );
    assert_eq!(rules(&judged(json!({}), after(), [10, 8], 2)), Vec::<&str>::new(), "one has time");
    assert_eq!(
        rules(&judged(json!({}), after(), [10, 10], 4)),
        Vec::<&str>::new(),
        "placement may spread"
    );
}

#[test]
fn the_device_is_judged_by_what_it_did_meanwhile() {
    let counters = || json!({"commands_received": 100_000});
    let readings = |before: (u64, u64), after: (u64, u64)| Readings {
        status: status(2),
        before: stats(queue_totals(json!({}), before), [0, 0]),
        after: stats(queue_totals(counters(), after), [0, 0]),
        seconds: 10.0,
    };
    let facts = Facts::builtin();
    // A thousand commands of 100 µs before, a thousand of 40 ms since.
    let slow = readings((1000, 100_000), (2000, 20_050_000)).judge(&facts);
    assert_eq!(rules(&slow), ["server-device-slow"]);
    assert!(
        (slow.findings[0].figures[0].low - 40.0).abs() < 0.001,
        "{:?}",
        slow.findings[0].figures
    );
    // The other way round.
    let fast = readings((1000, 40_000_000), (2000, 20_050_000)).judge(&facts);
    assert_eq!(rules(&fast), Vec::<&str>::new());
}

#[test]
fn a_data_plane_that_began_anew_counts_from_zero() {
    let health = judged(
        json!({"commands_received": 900_000, "wait_no_dma": 800_000}),
        json!({"commands_received": 1000, "wait_no_dma": 100}),
        [0, 0],
        2,
    );
    assert_eq!(rules(&health), ["server-no-buffer"]);
    assert!((health.findings[0].figures[0].low - 10.0).abs() < 1e-9);
}
