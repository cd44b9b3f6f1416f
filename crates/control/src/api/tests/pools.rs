//! Storage pools, as far as they are looked at.

use super::*;
use crate::server::Told;
use protocol::message::{LuStatus, ProgressStatus, PvState, PvStatus, Request, Traffic};
use spec::{FullLuSpec, FullSpec};
use std::path::PathBuf;

#[tokio::test(flavor = "multi_thread")]
async fn how_full_a_pool_is_is_told_to_prometheus_and_that_it_is_full_to_whoever_reads_events() {
    let bench = Bench::new().await;
    bench.disk().await;
    let pool = bench.dir.path().join("pv");
    let text = format!("[pool.p]\npvs={pool:?}\nuuid=\"{}\"\n", "0123456789abcdef".repeat(2));
    let fake = bench.fake("main");
    let (code, told) = bench.text("POST", "/v1/apply", text).await;
    assert!(code < 300, "{told}");
    let (_, metrics) = bench.text("GET", "/metrics", String::new()).await;
    assert!(metrics.contains("trunkline_pool_paused{pool=\"p\"} 0"), "{metrics}");
    {
        let pool = &mut fake.books().status.pools[0];
        let moves =
            ProgressStatus { planned_bytes: 900, moved_bytes: 300, failed_bytes: 64, left_s: None };
        let pv = |path: &str, free_bytes, leaving| PvStatus {
            path: path.into(),
            uuid: path.to_owned(),
            bytes: 5000,
            free_bytes,
            leaving,
            group: 0,
            tier: 0,
            state: PvState::Active,
            ..PvStatus::default()
        };
        let busy = Traffic {
            in_flight: 3,
            reads: 40,
            writes: 20,
            others: 4,
            read_bytes: 163_840,
            written_bytes: 81_920,
            took_ns: 1_500_000_000,
            errors: 1,
        };
        pool.pvs = vec![pv("/a", 1000, None), pv("/b", 500, Some(moves))];
        pool.pvs[1].traffic = Some(busy);
        pool.lus = vec![LuStatus { bytes: 8000, mapped_bytes: 3000, ..lu(7, None, 0) }];
        (pool.free_bytes, pool.paused, pool.pauses) = (1000, 2, 9);
        pool.after_crash_bytes = Some(77);
    }
    let (_, metrics) = bench.text("GET", "/metrics", String::new()).await;
    for line in [
        "trunkline_pool_size_bytes{pool=\"p\"} 4000",
        "trunkline_pool_used_bytes{pool=\"p\"} 3000",
        "trunkline_pool_free_bytes{pool=\"p\"} 1000",
        "trunkline_pool_allocated_bytes{pool=\"p\"} 8000",
        "trunkline_pool_overcommit_bytes{pool=\"p\"} 4000",
        "trunkline_pool_to_move_bytes{pool=\"p\"} 600",
        "trunkline_pool_not_moved_bytes{pool=\"p\"} 64",
        "trunkline_pool_after_crash_bytes{pool=\"p\"} 77",
        "trunkline_pool_paused{pool=\"p\"} 2",
        "trunkline_pool_pauses_total{pool=\"p\"} 9",
        "trunkline_pv_size_bytes{pool=\"p\",pv=\"/b\"} 5000",
        "trunkline_pv_free_bytes{pool=\"p\",pv=\"/a\"} 1000",
        "trunkline_pv_in_flight{pool=\"p\",pv=\"/b\"} 3",
        "trunkline_pv_reads_total{pool=\"p\",pv=\"/b\"} 40",
        "trunkline_pv_writes_total{pool=\"p\",pv=\"/b\"} 20",
        "trunkline_pv_others_total{pool=\"p\",pv=\"/b\"} 4",
        "trunkline_pv_errors_total{pool=\"p\",pv=\"/b\"} 1",
        "trunkline_pv_read_bytes_total{pool=\"p\",pv=\"/b\"} 163840",
        "trunkline_pv_written_bytes_total{pool=\"p\",pv=\"/b\"} 81920",
        "trunkline_pv_operation_seconds_total{pool=\"p\",pv=\"/b\"} 1.5",
        "trunkline_lu_size_bytes{pool=\"p\",lu=\"7\",volume=\"\"} 8000",
        "trunkline_lu_used_bytes{pool=\"p\",lu=\"7\",volume=\"\"} 3000",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is missing in\n{metrics}");
    }
    assert!(metrics.contains("trunkline_pool_state{pool=\"p\",state="), "{metrics}");
    crate::metrics::strict::read(&metrics).unwrap();
    // One of an earlier version does not say it, which is not nothing.
    fake.books().status.pools[0].after_crash_bytes = None;
    let (_, metrics) = bench.text("GET", "/metrics", String::new()).await;
    assert!(!metrics.contains("trunkline_pool_after_crash_bytes{"), "{metrics}");
    crate::metrics::strict::read(&metrics).unwrap();
    let events = || async { bench.get("/v1/events?of=p").await["events"].clone() };
    let told = |events: &Value| -> Vec<(String, String)> {
        let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let all = events.as_array().unwrap().iter();
        let pools = all.filter(|event| text(event, "kind").starts_with("pool_"));
        pools.map(|event| (text(event, "kind"), text(event, "message"))).collect()
    };
    let full = ("pool_full".to_owned(), "it is full: 2 writes wait for space".to_owned());
    assert_eq!(told(&events().await), std::slice::from_ref(&full));
    fake.books().status.pools[0].paused = 0;
    bench.get("/v1/status").await;
    let space = ("pool_space".to_owned(), "no write waits for space any more".to_owned());
    assert_eq!(told(&events().await), [full, space]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_before_a_full_pool_is_told_once_to_all_who_look() {
    const HOUR: u64 = 3_600_000;
    let bench = Bench::new().await;
    bench.disk().await;
    let pv = bench.dir.path().join("pv");
    let more = "warn_days = 30\nwarn_overcommit_percent = 50\nwarn_percent = 90";
    let text = format!("[pool.p]\npvs={pv:?}\n{more}\n");
    let (code, told) = bench.text("POST", "/v1/apply", text.clone()).await;
    assert!(code < 300, "{told}");
    let fake = bench.fake("main");
    let (mut looked, now) = (Told::default(), protocol::now_ms());
    // It was filled by 100 in each of 24 hours.
    let fill = |hour: u64| {
        let pool = &mut fake.books().status.pools[0];
        let lu = |mapped_bytes| LuStatus { bytes: 16_000, mapped_bytes, ..lu(7, None, 0) };
        pool.lus = vec![lu(100 * hour)];
        (pool.pvs[0].bytes, pool.pvs[0].free_bytes) = (8_000, 8_000 - 100 * hour);
        pool.free_bytes = 8_000 - 100 * hour;
    };
    for hour in 0..=24 {
        fill(hour);
        bench.server.look_at_pools(&mut looked, now - (24 - hour) * HOUR).await;
    }
    let pool = bench.get("/v1/pools/p").await;
    let left = pool["space"]["full_in_s"].as_u64();
    assert!(left.is_some_and(|left| (56 * 3600..57 * 3600).contains(&left)), "{pool}");
    let words: Vec<&str> = pool["space"]["alerts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|alert| alert["alert"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["days", "overcommit"]);
    assert!(pool["reason"].as_str().unwrap().starts_with("at its pace it is full in 2 days"));
    let (_, metrics) = bench.text("GET", "/metrics", String::new()).await;
    for line in [
        "trunkline_pool_alert{pool=\"p\",alert=\"threshold\"} 0",
        "trunkline_pool_alert{pool=\"p\",alert=\"days\"} 1",
        "trunkline_pool_alert{pool=\"p\",alert=\"overcommit\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is missing in\n{metrics}");
    }
    assert!(metrics.contains("trunkline_tier_full_in_seconds{pool=\"p\",tier=\"SYSTEM\"} 20"));
    crate::metrics::strict::read(&metrics).unwrap();
    let events = || async { bench.get("/v1/events?of=p").await["events"].clone() };
    let told = |events: Value| -> Vec<String> {
        let of = |event: &Value| {
            format!(
                "{} {}",
                event["kind"].as_str().unwrap(),
                event["of"][0].as_str().unwrap_or_default()
            )
        };
        let all = events.as_array().unwrap().iter().map(of);
        all.filter(|text| text.starts_with("pool_")).collect()
    };
    // The one of its days came when a day of it was known.
    let both = ["pool_alert overcommit", "pool_alert days"];
    assert_eq!(told(events().await), both);
    // A server after this one knows what was told.
    let mut looked = Told::default();
    bench.server.look_at_pools(&mut looked, now).await;
    assert_eq!(told(events().await), both);
    let never = json!({ "attributes": { "warn_days": 0 } });
    let (code, told_of) = bench.call("PATCH", "/v1/pools/p", never).await;
    assert!(code < 300, "{told_of}");
    for _ in 0..20 {
        bench.server.look_at_pools(&mut looked, now).await;
    }
    let over = [&both[..], &["pool_alert_over days"]].concat();
    assert_eq!(told(events().await), over);
    // Another pool of that name is another.
    let (code, gone) = bench.text("DELETE", "/v1/pools/p", String::new()).await;
    assert!(code < 300, "{gone}");
    let (code, made) = bench.text("POST", "/v1/apply", text).await;
    assert!(code < 300, "{made}");
    fill(24);
    bench.server.look_at_pools(&mut looked, now).await;
    assert_eq!(told(events().await), [&over[..], &["pool_alert overcommit"]].concat());
    assert_eq!(bench.get("/v1/pools/p").await["space"]["full_in_s"], Value::Null);
}

/// A mirrored pool `p` of `a` and `c` in the server's folder; gives both paths.
async fn mirrored(bench: &Bench) -> [String; 2] {
    let [a, c] = ["a", "c"].map(|name| bench.dir.path().join(name).display().to_string());
    let text = format!("[pool.p]\npvs={a:?}\nmirror={c:?}\n");
    let (code, told) = bench.text("POST", "/v1/apply", text).await;
    assert!(code < 300, "{told}");
    [a, c]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pv_that_is_away_makes_its_pool_degraded_with_all_that_follows() {
    let bench = Bench::new().await;
    bench.disk().await;
    let [a, c] = mirrored(&bench).await;
    let fake = bench.fake("main");
    assert_eq!(fake.books().status.pools[0].spec.mirror, [PathBuf::from(&c)]);
    let pool = bench.get("/v1/pools/p").await;
    assert_eq!((&pool["state"], &pool["reason"]), (&json!("open"), &Value::Null), "{pool}");
    let groups = &pool["space"]["failgrps"];
    assert_eq!((&groups[0]["name"], &groups[1]["name"]), (&json!("Default"), &json!("Mirror")));
    assert_eq!(bench.get("/v1/pools/p/explain").await["findings"], json!([]));

    let set = |state, resync: Option<u64>| {
        let pool = &mut fake.books().status.pools[0];
        pool.pvs.iter_mut().find(|pv| pv.group == 1).unwrap().state = state;
        pool.trouble = None;
        pool.resync = resync.map(|planned_bytes| ProgressStatus {
            planned_bytes,
            moved_bytes: planned_bytes / 4,
            failed_bytes: 0,
            left_s: Some(7),
        });
    };
    set(PvState::Away, None);
    let why = format!("PV {c} is away (pulled): it is looked for");
    fake.books().status.pools[0].trouble = Some(why);
    let pool = bench.get("/v1/pools/p").await;
    assert_eq!(pool["state"], "degraded", "{pool}");
    let reason = pool["reason"].as_str().unwrap();
    assert!(reason.starts_with(&format!("away: PV {c} of failure group `Mirror`: pulled. ")));
    let pv = &pool["space"]["pvs"][1];
    assert!(pv["state"] == "away" && pv["since_ms"].as_u64().is_some(), "{pv}");
    let (_, metrics) = bench.text("GET", "/metrics", String::new()).await;
    for line in [
        "trunkline_pool_state{pool=\"p\",state=\"degraded\"} 1",
        "trunkline_failgrp_away{pool=\"p\",failgrp=\"Mirror\"} 1",
        "trunkline_failgrp_away{pool=\"p\",failgrp=\"Default\"} 0",
        "trunkline_pool_to_resync_bytes{pool=\"p\"} 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is missing in\n{metrics}");
    }
    let explained = bench.get("/v1/pools/p/explain").await;
    assert_eq!((&explained["state"], &explained["copies"]), (&json!("degraded"), &json!(2)));
    assert_eq!(explained["findings"].as_array().unwrap().len(), 1, "{explained}");
    let found = &explained["findings"][0];
    assert_eq!((&found["pv"], &found["since_ms"]), (&json!(c), &pv["since_ms"]), "{explained}");
    // The same to who asks for an LU of it.
    let lu = json!({ "name": "lu0", "attributes": { "kind": "lu", "pool": "p", "size": "64MiB" } });
    let (code, told) = bench.call("POST", "/v1/volumes", lu).await;
    assert!(code < 300, "{told}");
    let of_lu = bench.get("/v1/volumes/lu0/explain").await;
    assert_eq!((&of_lu["lu"], &of_lu["findings"][0]["pv"]), (&json!("lu0"), &json!(c)), "{of_lu}");
    let (code, told) = bench.call("GET", "/v1/volumes/v/explain", Value::Null).await;
    assert!(code == 400 && told.to_string().contains("is no LU"), "{code} {told}");
    // It cannot be taken out meanwhile, and what is wrong is said.
    let out = json!({ "attributes": { "mirror": bench.dir.path().join("d") } });
    let (code, told) = bench.call("PATCH", "/v1/pools/p", out).await;
    assert!(code >= 400 && told.to_string().contains("is away, and cannot be removed"), "{told}");

    // A control plane that comes later knows since when, and tells it no second time.
    let since = pv["since_ms"].clone();
    let bench = bench.restart().await;
    let known = async || bench.get("/v1/pools/p").await["space"]["pvs"][1]["since_ms"].clone();
    while known().await.is_null() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(known().await, since);
    set(PvState::Resyncing, Some(4096));
    let pool = bench.get("/v1/pools/p").await;
    assert_eq!(pool["state"], "degraded", "{pool}");
    assert!(pool["reason"].as_str().unwrap().ends_with("gets what was missed: 25 %, 7 s left"));
    assert_eq!(pool["space"]["failgrps"][1]["state"], "resyncing");
    set(PvState::Active, None);
    assert_eq!(bench.get("/v1/pools/p").await["state"], "open");
    let events = bench.get("/v1/events?of=p").await["events"].clone();
    let kinds: Vec<&str> =
        events.as_array().unwrap().iter().map(|it| &it["kind"]).filter_map(Value::as_str).collect();
    let told = ["pv_lost", "pv_returned", "resync_started", "resync_ended"];
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| told.contains(kind)).collect();
    assert_eq!(kinds, told, "{events}");
    let of_pv = bench.get(&format!("/v1/events?of={c}")).await["events"].clone();
    assert_eq!(of_pv.as_array().unwrap().len(), 2, "{of_pv}");
    assert!(!of_pv.to_string().contains(&a), "{of_pv}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_plane_of_an_earlier_version_is_asked_for_no_mirror() {
    let bench = Bench::new().await;
    bench.disk().await;
    bench.with_an_earlier_program().await;
    let folder = bench.dir.path();
    let pool = json!({ "pvs": folder.join("a"), "mirror": folder.join("c") });
    let pool = json!({ "name": "p", "attributes": pool });
    let (code, told) = bench.call("POST", "/v1/pools", pool).await;
    assert!(code >= 400 && told.to_string().contains("earlier version"), "{code} {told}");
    assert!(told.to_string().contains("mirror storage pools"), "{told}");
    assert_eq!(bench.get("/v1/pools").await["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn checksums_are_of_lus_of_mirrored_pools_which_have_no_snapshots() {
    let bench = Bench::new().await;
    bench.disk().await;
    mirrored(&bench).await;
    let plain = json!({ "name": "q", "attributes": { "pvs": bench.dir.path().join("q") } });
    assert!(bench.call("POST", "/v1/pools", plain).await.0 < 300);
    let lu = async |name: &str, pool: &str| {
        let set = json!({ "kind": "lu", "pool": pool, "size": "64MiB", "checksums": true });
        bench.call("POST", "/v1/volumes", json!({ "name": name, "attributes": set })).await
    };
    let (code, told) = lu("one", "q").await;
    assert!(code == 400 && told.to_string().contains("only in a pool with two failure"), "{told}");
    let (code, told) = lu("two", "p").await;
    assert!(code < 300, "{told}");
    let snapshot = json!({ "name": "s", "attributes": { "volumes": "two" } });
    let (code, told) = bench.call("POST", "/v1/snapshots", snapshot).await;
    assert!(code == 400 && told.to_string().contains("checksums, and no snapshots"), "{told}");
    // It stays what it was made as.
    let body = json!({ "attributes": { "checksums": false } });
    assert!(bench.call("PATCH", "/v1/volumes/two", body).await.0 >= 400);
    assert_eq!(bench.get("/v1/volumes/two").await["attributes"]["checksums"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_gets_no_second_failure_group_later_and_keeps_the_one_it_has() {
    let bench = Bench::new().await;
    bench.disk().await;
    let [_, c] = mirrored(&bench).await;
    let set = async |pool: &str, attribute: &str, value: Value| {
        let body = json!({ "attributes": { attribute: value } });
        bench.call("PATCH", &format!("/v1/pools/{pool}"), body).await
    };
    let d = bench.dir.path().join("d").display().to_string();
    let (code, told) = set("p", "mirror", json!("")).await;
    assert!(code == 400 && told.to_string().contains("cannot be without its second"), "{told}");
    let (code, told) = set("p", "mirror", json!(format!("{c},{d}"))).await;
    assert!(code < 300, "{told}");
    let (code, told) = set("p", "mirror_failgrp", json!("north")).await;
    assert!(code < 300, "{told}");
    assert_eq!(bench.get("/v1/pools/p").await["space"]["failgrps"][1]["name"], "north");
    let plain = json!({ "name": "q", "attributes": { "pvs": bench.dir.path().join("q") } });
    assert!(bench.call("POST", "/v1/pools", plain).await.0 < 300);
    let (code, told) = set("q", "mirror", json!(bench.dir.path().join("r"))).await;
    assert!(code == 400 && told.to_string().contains("is not mirrored, and cannot be"), "{told}");
}

pub(super) fn lu(number: u32, origin: Option<u32>, asked: u64) -> LuStatus {
    LuStatus {
        number,
        bytes: 1 << 30,
        mapped_bytes: 0,
        thick: false,
        checksums: false,
        tier: 0,
        astray_bytes: 0,
        origin,
        shares: false,
        asked,
        detaching: None,
        ..LuStatus::default()
    }
}

/// What a data plane has made and not told of yet is shown as nobody's: it does not go as such.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_made_is_not_purged() {
    let bench = Bench::new().await;
    let pv = bench.dir.path().join("pv");
    let text =
        format!("[pool.p]\npvs={pv:?}\n[volume.v]\nkind=\"lu\"\npool=\"p\"\nsize=\"1GiB\"\n");
    let (code, told) = bench.text("POST", "/v1/apply", text.clone()).await;
    assert!(code < 300, "{told}");
    let fake = bench.fake("main");
    let purge = async |number: u32| {
        bench.call("POST", "/v1/pools/p/purge", json!({ "lus": [number] })).await
    };
    let (uuid, asked) = {
        let books = fake.books();
        let spec::VolumeKind::Lu(lu) = &books.status.volumes[0].spec.kind else { panic!() };
        (books.status.pools[0].spec.uuid.clone(), lu.asked)
    };
    assert_ne!(asked, 0);
    fake.books().status.pools[0].lus = vec![lu(3, None, asked), lu(4, None, 17)];
    let (code, told) = purge(3).await;
    assert!(code == 409 && told.to_string().contains("is being made for volume `v`"), "{told}");
    let (code, told) = purge(4).await;
    assert!(code < 300, "{told}");
    // Its number comes to be known, and a snapshot of it is made.
    fake.books().status.volumes[0].identity =
        Some(spec::FileIdentity::Lu { pool: uuid, number: 3, bytes: 1 << 30 });
    bench.set("volumes/v", json!({"limit_iops": 7})).await;
    let (code, told) =
        bench.text("POST", "/v1/apply", format!("{text}[snapshot.s]\nvolumes=\"v\"\n")).await;
    assert!(code < 300, "{told}");
    fake.books().status.pools[0].lus =
        vec![lu(3, None, asked), lu(9, Some(3), 0), lu(12, Some(4), 0)];
    let (code, told) = purge(9).await;
    assert!(code == 409 && told.to_string().contains("is being made for snapshot `s`"), "{told}");
    let (code, told) = purge(12).await;
    assert!(code < 300, "another's: {told}");
}

/// What is wanted of an LU whose number was not known goes to its pool when that is.
#[tokio::test(flavor = "multi_thread")]
async fn an_lu_that_becomes_known_is_where_it_is_to_be_or_goes() {
    let bench = Bench::new().await;
    let [a, b, c] = ["a", "b", "c"].map(|name| bench.dir.path().join(name).display().to_string());
    let volume = |name: &str| {
        format!("[volume.{name}]\nkind=\"lu\"\npool=\"p\"\nsize=\"1GiB\"\ntier=\"fast\"\n")
    };
    let text = format!("[pool.p]\npvs=\"{a},fast:{b}\"\n{}{}", volume("v"), volume("w"));
    let (code, told) = bench.text("POST", "/v1/apply", text).await;
    assert!(code < 300, "{told}");
    let fake = bench.fake("main");
    let (uuid, asked) = {
        let books = fake.books();
        let spec::VolumeKind::Lu(lu) = &books.status.volumes[1].spec.kind else { panic!() };
        (books.status.pools[0].spec.uuid.clone(), lu.asked)
    };
    let told = || fake.books().status.pools[0].spec.clone();
    assert_eq!(told().placed, []);
    fake.books().status.volumes[0].identity =
        Some(spec::FileIdentity::Lu { pool: uuid, number: 3, bytes: 1 << 30 });
    bench.set("volumes/v", json!({"limit_iops": 7})).await;
    while told().placed != [spec::PlacedLu { lu: 3, tier: 1 }] {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // Nor what its writes do where the pool is full.
    let full = || told().full;
    assert_eq!(full(), FullSpec::default());
    let of = |reserve_bytes, pause_s| vec![FullLuSpec { lu: 3, reserve_bytes, pause_s }];
    bench.set("volumes/v", json!({"on_full": "error", "pause_max": 9})).await;
    assert_eq!(full().lus, of(0, Some(0)), "it waits not at all");
    bench.set("volumes/v", json!({"on_full": null, "reserve": "128MiB"})).await;
    assert_eq!(full().lus, of(128 << 20, Some(9)));
    bench.set("volumes/v", json!({"pause_max": null, "reserve": null})).await;
    bench.set("pools/p", json!({"throttle_percent": 90})).await;
    assert_eq!(full(), FullSpec { throttle_percent: Some(90), lus: Vec::new() });
    bench.set("pools/p", json!({"throttle_percent": 95})).await;
    assert_eq!(full(), FullSpec::default(), "a data plane of before is told nothing");
    // No more than there is of it.
    let change = json!({"attributes": {"reserve": "1EiB"}});
    let (code, refused) = bench.call("PATCH", "/v1/volumes/v", change).await;
    assert_eq!((code, &refused["attribute"]), (400, &json!("reserve")), "{refused}");
    // Of the other one the volume goes before its number is known.
    let (code, gone) = bench.call("DELETE", "/v1/volumes/w", Value::Null).await;
    assert!(code < 300, "{gone}");
    assert!(told().doomed.is_empty());
    fake.books().status.pools[0].lus = vec![lu(3, None, 1), lu(5, None, asked)];
    bench.set("pools/p", json!({ "pvs": format!("{a},fast:{b},{c}") })).await;
    while told().doomed != [5] {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Its pool is told of the move of an LU when that is known: who asked before hears what becomes of it all the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_move_of_an_lu_that_its_pool_refuses_is_refused_also_before_its_number_is_known() {
    let bench = Bench::new().await;
    let [a, b, c, d] =
        ["a", "b", "c", "d"].map(|name| bench.dir.path().join(name).display().to_string());
    let text = format!("[pool.p]\npvs=\"{a},fast:{b}\"\nmirror=\"{c},fast:{d}\"\n");
    let (code, told) = bench.text("POST", "/v1/apply", text.clone()).await;
    assert!(code < 300, "{told}");
    let fake = bench.fake("main");
    fake.books().refuse = Some("v".to_owned());
    let volume = "[volume.v]\nkind=\"lu\"\npool=\"p\"\nsize=\"1GiB\"\n";
    bench.text("POST", "/v1/apply", format!("{text}{volume}")).await;
    // It was made for somebody who was not told of it.
    let mark = bench.server.desired().allocations.pools.get("p").unwrap().making["v"];
    fake.books().status.pools[0].lus = vec![lu(3, None, mark)];
    fake.books().refuse = None;
    // Before, and when it is known.
    for _ in 0..2 {
        let to = json!({ "attributes": { "tier": "fast" } });
        let (code, told) = bench.call("PATCH", "/v1/volumes/v", to).await;
        let what = "LU 3 does not go to another tier";
        assert!(code >= 400 && told.to_string().contains(what), "{code} {told}");
        assert!(bench.get("/v1/volumes/v").await["attributes"]["tier"].is_null());
        assert_eq!(fake.books().status.pools[0].spec.placed, []);
    }
    // Where it is it may stay, and another change of its pool has nothing to do with it.
    bench.set("volumes/v", json!({ "tier": "SYSTEM" })).await;
    let (code, told) = bench
        .text("POST", "/v1/apply", text.replace(&format!("{c},"), &format!("{c},{a}2,")))
        .await;
    assert!(code < 300, "{told}");
    assert_eq!(fake.books().status.pools[0].spec.placed, [spec::PlacedLu { lu: 3, tier: 0 }]);
}

/// A unit on an LU that is made with it has its name, and is put once.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_gets_a_new_lu_under_the_name_that_it_keeps() {
    let bench = Bench::new().await;
    bench.disk().await;
    let fake = bench.fake("main");
    fake.books().makes_lus = true;
    let pv = bench.dir.path().join("pv");
    let uuid = "0123456789abcdef".repeat(2);
    let text = format!(
        "[pool.p]\npvs={pv:?}\nuuid=\"{uuid}\"\n[volume.lu]\nkind=\"lu\"\npool=\"p\"\nsize=4096\n\
         [adapter.s]\nkind=\"scsi\"\n[vtd.v]\nadapter=\"s\"\nvolume=\"lu\"\n"
    );
    let (code, told) = bench.text("POST", "/v1/apply", text.clone()).await;
    assert!(code < 300, "{told}");
    let naa = fake.books().status.units[0].spec.naa;
    assert_eq!(bench.get("/v1/volumes/lu").await["naa"], format!("{naa:016x}"));
    let luns = |books: &crate::fake::Books| {
        let adapter = books.status.adapters.iter().find(|adapter| adapter.spec.name == "s");
        adapter.and_then(|adapter| adapter.spec.scsi()).map(|scsi| scsi.targets[0].luns.len())
    };
    assert_eq!(luns(&fake.books()), Some(1));
    let put = |books: &crate::fake::Books| {
        let unit = |request: &&Request| matches!(request, Request::PutUnit(_));
        books.log.iter().filter(unit).count()
    };
    assert_eq!(put(&fake.books()), 1);
    bench.get("/v1/status").await;
    let (code, told) = bench.text("POST", "/v1/apply", text).await;
    assert!(code < 300, "{told}");
    assert_eq!(put(&fake.books()), 1);
}
