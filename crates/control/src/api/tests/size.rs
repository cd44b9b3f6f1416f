//! States that are large.

use super::*;
use crate::config;
use crate::model::transition::Allow;
use std::fmt::Write;

/// Adapters that all see one target with so many LUNs, whose names are long.
fn many(adapters: usize, luns: usize) -> String {
    let name = |lun: usize| format!("v{lun:0>30}");
    let mut text = "[port.p]\nmax_adapters = 255\n".to_owned();
    let mut map = Vec::new();
    for lun in 0..luns {
        let _ = write!(text, "[volume.{}]\nkind = \"null\"\nsize = \"1MiB\"\n", name(lun));
        map.push(format!("{lun}={}", name(lun)));
    }
    let _ = write!(text, "[target.t]\nluns = \"{}\"\n", map.join(","));
    let names: Vec<String> = (0..adapters).map(|n| format!("f{n}")).collect();
    for name in &names {
        let _ = write!(text, "[adapter.{name}]\nkind = \"fc\"\nport = \"p\"\n");
    }
    let names = names.join(",");
    let _ = write!(text, "[zone.z]\nmembers = \"{names},t\"\n");
    let _ = write!(text, "[mask.m]\ninitiators = \"{names}\"\ntargets = \"t\"\n");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_data_plane_of_an_earlier_program_cannot_be_asked_about_is_refused_before_it_is_stored()
 {
    let bench = Bench::new().await;
    bench.with_an_earlier_program().await;
    let options = ChangeOptions {
        dry_run: false,
        allow: Allow::default(),
        on_failure: OnFailure::Keep,
        wait: true,
    };
    let small = config::read(&many(2, 20)).unwrap();
    bench.server.apply(small, false, options).await.unwrap();
    let before = bench.server.desired();
    // 255 adapters with 2,000 LUNs each: more than a frame, which is the most that the fake takes.
    let large = config::read(&many(255, 2000)).unwrap();
    let refusal = bench.server.apply(large, false, options).await.unwrap_err();
    assert!(refusal.message.contains("its messages carry 16777216"), "{refusal}");
    assert_eq!(bench.server.desired(), before);
    let status = bench.get("/v1/status").await;
    assert_eq!(status["dataplanes"][0]["state"], "running");
    assert_eq!(status["adapters"].as_array().unwrap().len(), 2, "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_data_planes_shall_be_is_worked_out_once_for_a_change() {
    let bench = Bench::new().await;
    bench.disk().await;
    let count = || bench.server.resolutions.load(std::sync::atomic::Ordering::Relaxed);
    let before = count();
    let limit = serde_json::json!({ "attributes": { "limit_iops": 5000 } });
    let (status, answer) = bench.call("PATCH", "/v1/volumes/v", limit).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(count() - before, 1, "of what it was is known, and nobody asks anew for what it is");
}

/// Adapters of virtual Fibre Channel, each with a zone and ten masks of one LUN, ten to a target.
fn fabric(adapters: usize) -> String {
    let mut text = String::new();
    for target in 0..adapters.div_ceil(10) {
        let _ = writeln!(text, "[target.t{target}]\nluns = \"0=v{target}\"");
        let _ = writeln!(text, "[volume.v{target}]\nkind = \"null\"\nsize = \"1MiB\"");
    }
    for n in 0..adapters {
        let (port, target) = (n / 100, n / 10);
        if n % 100 == 0 {
            let _ = writeln!(text, "[port.p{port}]\nmax_adapters = 255");
        }
        let _ = writeln!(text, "[adapter.f{n}]\nkind = \"fc\"\nport = \"p{port}\"");
        let _ = writeln!(text, "[zone.z{n}]\nmembers = \"f{n},t{target}\"");
        for lun in 0..10 {
            let _ = writeln!(
                text,
                "[mask.m{n}x{lun}]\ninitiators = \"f{n}\"\ntargets = \"t{target}\"\nluns = \"{lun}=0\""
            );
        }
    }
    text
}

/// Of how many objects it is worked out anew what data planes shall be, for each of some changes, and how many a data plane is asked for.
async fn worked_out(adapters: usize) -> Vec<(&'static str, u64, u64)> {
    let bench = Bench::new().await;
    let options = ChangeOptions {
        dry_run: false,
        allow: Allow::default(),
        on_failure: OnFailure::Keep,
        wait: true,
    };
    let state = config::read(&fabric(adapters)).unwrap();
    bench.server.apply(state, false, options).await.unwrap();
    let count = || bench.server.resolved_objects.load(std::sync::atomic::Ordering::Relaxed);
    let asked = || bench.fake("main").books().asked.1;
    let (looks, since) = (bench.fake("main").books().asked.0, std::time::Instant::now());
    let set = |attribute: &str, value: Value| json!({ "attributes": { attribute: value } });
    let new = |name: &str, attributes: Value| json!({ "name": name, "attributes": attributes });
    // That it was done is heard with the next change.
    let first = set("limit_iops", json!(4000));
    assert_eq!(bench.call("PATCH", "/v1/volumes/v1", first).await.0, 200);
    let mut all = Vec::new();
    for (method, path, body) in [
        ("PATCH", "/v1/volumes/v1", set("limit_iops", json!(5000))),
        ("PATCH", "/v1/adapters/f3", set("queues", json!(3))),
        ("PATCH", "/v1/masks/m3x0", set("luns", json!("all"))),
        ("PATCH", "/v1/targets/t1", set("luns", json!("0=v1,1=v0"))),
        ("POST", "/v1/volumes", new("w", json!({ "kind": "null", "size": 4096 }))),
        ("POST", "/v1/adapters", new("w", json!({ "volume": "w" }))),
        ("POST", "/v1/adapters", new("g", json!({ "kind": "fc", "port": "p0" }))),
        ("DELETE", "/v1/adapters/w", Value::Null),
        ("DELETE", "/v1/zones/z3", Value::Null),
    ] {
        let (before, known) = (count(), asked());
        let (status, answer) = bench.call(method, path, body).await;
        assert!(status < 300, "{method} {path}: {answer}");
        all.push((path, count() - before, asked() - known));
    }
    let (before, known) = (count(), asked());
    let one = config::read("[volume.v0]\nkind = \"null\"\nsize = \"2MiB\"\n").unwrap();
    bench.server.apply(one, false, options).await.unwrap();
    all.push(("apply", count() - before, asked() - known));
    // All that it has is asked for now and then, by the clock.
    let seconds = since.elapsed().as_secs();
    let looks = bench.fake("main").books().asked.0 - looks;
    assert!(looks <= 2 + seconds / 5, "{looks} looks at everything in {seconds} s");
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn what_data_planes_shall_be_is_worked_out_of_what_a_change_has_to_do_with() {
    let (few, many) = (worked_out(40).await, worked_out(400).await);
    let objects = |all: &[(&'static str, u64, u64)]| -> Vec<(&str, u64)> {
        all.iter().map(|(path, objects, _)| (*path, *objects)).collect()
    };
    assert_eq!(objects(&few), objects(&many));
    // That something was done is heard with the next change or, on a slow machine, with the one before, and asked for once more.
    let asked = |all: &[(_, _, u64)]| all.iter().map(|(.., asked)| *asked).sum::<u64>();
    let differ = asked(&few).abs_diff(asked(&many));
    assert!(differ <= many.len() as u64, "{few:?}, {many:?}");
    assert!(many.iter().all(|(_, objects, _)| (1..250).contains(objects)), "{many:?}");
    assert!(many.iter().all(|(.., asked)| *asked < 250), "{many:?}");
}
