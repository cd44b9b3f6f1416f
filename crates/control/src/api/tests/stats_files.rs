//! The statistics files under the run folder.

use super::*;

const SAN: &str = "[port.fcs0]\n[adapter.vfchost0]\nkind=\"fc\"\nport=\"fcs0\"\nqueues=16\n";

async fn shows(bench: &Bench, wanted: &[&str]) {
    let file = bench.server.paths().stats_file("vfchost0");
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    let all = |text: &str| wanted.iter().all(|line| text.lines().any(|other| other == *line));
    let wait = eventually(|| all(&read()));
    let seen = tokio::time::timeout(Duration::from_secs(120), wait).await;
    assert!(seen.is_ok(), "{wanted:?} in {}", read());
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_files_follow_the_client_and_go_with_the_adapter() {
    let bench = Bench::new().await;
    let folder = bench.server.paths().stats_folder();
    bench.text("POST", "/v1/apply", SAN.to_owned()).await;
    let none =
        ["Number of SUBQ channels = 0", "Queues offered = 16", "Queues used by the client = 0"];
    shows(&bench, &none).await;
    let fake = bench.fake("main");
    let client = |queues: u16, channels: &[u32]| {
        let adapter = &mut fake.books().status.adapters[0];
        adapter.state = if queues == 0 { AdapterState::Listening } else { AdapterState::Running };
        (adapter.client_queues, adapter.client_num_io_queues) = (queues, 2 * queues);
        adapter.channel_of_queue = channels.to_vec();
    };
    fake.books().status.channels =
        (0..4).map(|index| ChannelStatus { index, cpu: Some(index / 2), queues: 0 }).collect();
    client(8, &[0, 1, 2, 0, 1, 2, 0, 1]);
    for (queue, commands) in
        (2..10).zip([1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000])
    {
        let stats = fake.queue_stats("vfchost0", queue).unwrap();
        stats.add(QueueCounter::CommandsReceived, commands);
    }
    fake.queue_stats("vfchost0", 0).unwrap().add(QueueCounter::CommandsReceived, 7);
    let many = [
        "Number of CMD queues    = 1",
        "Commands received  = 7",
        "Number of SUBQ channels = 4",
        "Commands received  = 10001",
        "Commands received  = 10001000",
        "Queues of the client = 16",
        "Queues used by the client = 8",
        "Channels negotiated = 4",
        "Channels running = 3",
        "CPUs they are bound to = 2",
    ];
    shows(&bench, &many).await;
    // A single-queue client has no channels: all its commands came on the CMD queue.
    let body = json!({"attributes": {"limit_intr": true}});
    assert_eq!(bench.call("PATCH", "/v1/adapters/vfchost0", body).await.0, 200);
    client(8, &[0; 8]);
    let one = ["Number of SUBQ channels = 0", "Channels negotiated = 1", "Channels running = 1"];
    shows(&bench, &[&one[..], &["Commands received  = 11111118"]].concat()).await;
    client(0, &[]);
    shows(&bench, &["Number of SUBQ channels = 0", "Channels negotiated = 0"]).await;
    // Files of a server that was killed are not taken for the truth.
    std::fs::create_dir_all(folder.join("vfchost9")).unwrap();
    std::fs::write(folder.join("vfchost9/stats"), "old").unwrap();
    let bench = bench.restart().await;
    shows(&bench, &["Queues offered = 16"]).await;
    assert!(!folder.join("vfchost9").exists());
    let old = folder.with_extension("old");
    eventually(|| !old.exists()).await;
    // Nor those that such a server was about to remove.
    for folder in [&folder, &old] {
        std::fs::create_dir_all(folder.join("vfchost9")).unwrap();
        std::fs::write(folder.join("vfchost9/stats"), "old").unwrap();
    }
    let bench = bench.restart().await;
    assert!(!folder.join("vfchost9").exists());
    let older = folder.with_extension("older");
    eventually(|| !old.exists() && !older.exists()).await;
    shows(&bench, &["Queues offered = 16"]).await;
    assert_eq!(bench.call("DELETE", "/v1/adapters/vfchost0", Value::Null).await.0, 200);
    eventually(|| !folder.join("vfchost0").exists()).await;
    bench.text("POST", "/v1/apply", SAN.to_owned()).await;
    shows(&bench, &["Queues offered = 16"]).await;
    bench.server.end().await;
    assert!(!folder.exists(), "nobody keeps them true any more");
}
