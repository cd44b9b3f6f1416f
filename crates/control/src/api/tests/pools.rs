//! Storage pools, as far as they are looked at.

use super::*;
use protocol::message::{LuStatus, ProgressStatus, PvState, PvStatus};

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
            state: PvState::Active,
        };
        pool.pvs = vec![pv("/a", 1000, None), pv("/b", 500, Some(moves))];
        let lu = LuStatus {
            number: 7,
            bytes: 8000,
            mapped_bytes: 3000,
            thick: false,
            origin: None,
            shares: false,
            detaching: None,
        };
        pool.lus = vec![lu];
        (pool.free_bytes, pool.paused, pool.pauses) = (1000, 2, 9);
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
        "trunkline_pool_paused{pool=\"p\"} 2",
        "trunkline_pool_pauses_total{pool=\"p\"} 9",
        "trunkline_pv_size_bytes{pool=\"p\",pv=\"/b\"} 5000",
        "trunkline_pv_free_bytes{pool=\"p\",pv=\"/a\"} 1000",
        "trunkline_lu_size_bytes{pool=\"p\",lu=\"7\",volume=\"\"} 8000",
        "trunkline_lu_used_bytes{pool=\"p\",lu=\"7\",volume=\"\"} 3000",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is missing in\n{metrics}");
    }
    assert!(metrics.contains("trunkline_pool_state{pool=\"p\",state="), "{metrics}");
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
