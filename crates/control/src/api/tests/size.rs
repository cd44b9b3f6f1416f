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
