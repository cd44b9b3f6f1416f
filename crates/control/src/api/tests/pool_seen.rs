//! What goes on in storage pools, and how their LUs lie on PVs.

use super::*;
use protocol::message::LuStatus;
use protocol::stats::Latency;

#[tokio::test(flavor = "multi_thread")]
async fn an_lu_says_how_it_lies_what_its_clients_do_and_what_they_wait_for() {
    let bench = Bench::new().await;
    let pv = bench.dir.path().join("pv").display().to_string();
    let text = format!(
        "[pool.p]\npvs={pv:?}\n[volume.db]\nkind=\"lu\"\npool=\"p\"\nsize=\"1GiB\"\n[adapter.a]\nvolume=\"db\"\n"
    );
    let (code, told) = bench.text("POST", "/v1/apply", text).await;
    assert!(code < 300, "{told}");
    let fake = bench.fake("main");
    let stats = fake.queue_stats("a", 0).unwrap();
    for (counter, by) in [
        (QueueCounter::Reads, 10),
        (QueueCounter::Writes, 5),
        (QueueCounter::Flushes, 5),
        (QueueCounter::ReadBytes, 40_960),
        (QueueCounter::WaitPool, 4),
        (QueueCounter::WaitPoolFull, 2),
    ] {
        stats.add(counter, by);
    }
    stats.record(Latency::Device, 1000, 20);
    let volume = bench.get("/v1/volumes/db/explain").await;
    let waits = json!([{ "adapter": "a", "commands": 20, "wait_pool": 4, "wait_pool_full": 2 }]);
    assert_eq!(volume["waits"], waits, "{volume}");
    assert!(bench.get("/v1/pools/p/explain").await.get("layout").is_none(), "of an LU alone");
    {
        let pool = &mut fake.books().status.pools[0];
        let (number, bytes, mapped_bytes) = (3, 1 << 30, 3 << 26);
        pool.lus = vec![LuStatus { number, bytes, mapped_bytes, paused: 2, ..LuStatus::default() }];
        pool.paused = 2;
    }
    let uuid = fake.books().status.pools[0].spec.uuid.clone();
    fake.books().status.volumes[0].identity =
        Some(spec::FileIdentity::Lu { pool: uuid, number: 3, bytes: 1 << 30 });
    // The server learns the number with the next change.
    bench.set("volumes/db", json!({ "limit_iops": 7 })).await;
    let volume = bench.get("/v1/volumes/db/explain").await;
    let layout = &volume["layout"];
    assert_eq!(
        [&layout["mapped"], &layout["whole"], &layout["half"], &layout["paused"]],
        [3, 3, 0, 2]
    );
    let on = json!([{ "pv": pv, "failgrp": "Default", "chunks": 3 }]);
    assert_eq!((&layout["pvs"], &layout["failgrps"]), (&on, &json!({ "Default": 3 })), "{volume}");
    let pool = bench.get("/v1/pools/p").await;
    let lu = &pool["space"]["lus"][0];
    assert_eq!((&lu["volume"], &lu["paused"]), (&json!("db"), &json!(2)), "{pool}");
    let traffic = &lu["traffic"];
    let told = [&traffic["reads"], &traffic["writes"], &traffic["timed"], &traffic["took_ns"]];
    assert_eq!(told, [10, 5, 20, 20_000], "{pool}");
    assert!(pool["space"]["pvs"][0].get("traffic").is_none(), "its data plane did not say it");
    // One of an earlier version does not know.
    bench.with_an_earlier_program().await;
    let volume = bench.get("/v1/volumes/db/explain").await;
    assert!(volume.get("layout").is_none() && volume["lu"] == "db", "{volume}");
}
