//! The API over a real socket, with data planes that keep the books.

mod aix;
mod bodies;
mod clients;
mod files;
mod hba;
mod images;
mod matching;
mod networks;
mod operations;
mod pool_seen;
mod pools;
mod san;
mod silence;
mod size;
mod starting;
mod stats_files;
mod trail;

use crate::fake::{FakeDataPlane, FakeLauncher};
use crate::link::{Link, LinkError};
use crate::model::resolve::DataPlaneSpec;
use crate::model::transition::Allow;
use crate::paths::Paths;
use crate::server::{ChangeOptions, ConfigFile, OnFailure, Server};
use crate::store::{RedbStore, Store};
use crate::supervisor::Launcher;
use fabric::attribute::Object;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use protocol::message::{AdapterState, ChannelStatus};
use protocol::stats::{ChannelCounter, Latency, QueueCounter};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server in a folder of its own, and the data planes that it started.
struct Bench {
    dir: tempfile::TempDir,
    launchers: Arc<Mutex<BTreeMap<String, FakeLauncher>>>,
    server: Arc<Server>,
    serving: tokio::task::JoinHandle<()>,
}

impl Bench {
    async fn new() -> Bench {
        Bench::with(tempfile::tempdir().unwrap(), Arc::default(), BTreeMap::new()).await
    }

    async fn with(
        dir: tempfile::TempDir,
        launchers: Arc<Mutex<BTreeMap<String, FakeLauncher>>>,
        listeners: BTreeMap<String, OwnedFd>,
    ) -> Bench {
        let paths = Paths { sys: dir.path().join("sys"), ..Paths::in_one(dir.path()) };
        let store = RedbStore::open(&paths.store()).unwrap();
        Bench::on(dir, launchers, listeners, (paths, Box::new(store))).await
    }

    async fn on(
        dir: tempfile::TempDir,
        launchers: Arc<Mutex<BTreeMap<String, FakeLauncher>>>,
        listeners: BTreeMap<String, OwnedFd>,
        (paths, store): (Paths, Box<dyn Store>),
    ) -> Bench {
        let make = {
            let (paths, launchers) = (paths.clone(), Arc::clone(&launchers));
            move |name: &str| -> Box<dyn Launcher> {
                let mut all = launchers.lock().unwrap();
                let fresh = || FakeLauncher::new(paths.dataplane(name));
                Box::new(all.entry(name.to_owned()).or_insert_with(fresh).clone())
            }
        };
        Bench::serve(
            dir,
            launchers,
            Server::start(paths, store, Box::new(make), listeners).await.unwrap(),
        )
    }

    fn serve(
        dir: tempfile::TempDir,
        launchers: Arc<Mutex<BTreeMap<String, FakeLauncher>>>,
        server: Arc<Server>,
    ) -> Bench {
        let path = server.paths().api();
        let _ = std::fs::remove_file(&path);
        let listener = tokio::net::UnixListener::bind(path).unwrap();
        let router = super::router(Arc::clone(&server));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Bench { dir, launchers, server, serving }
    }

    /// The control plane ends and another one starts; the data planes go on.
    async fn restart(self) -> Bench {
        self.serving.abort();
        let _ = self.serving.await;
        self.server.end().await;
        // Connections that are being closed hold the server, and with it the store's lock.
        eventually(|| Arc::strong_count(&self.server) == 1).await;
        drop(self.server);
        Bench::with(self.dir, self.launchers, BTreeMap::new()).await
    }

    /// Its data plane is of an earlier version, whose messages are one frame.
    async fn with_an_earlier_program(&self) {
        self.fake("main").become_earlier();
        let frame = Some(protocol::socket::FRAME_BYTES_MAX);
        eventually(|| self.server.supervisor_views()["main"].message_bytes_max == frame).await;
    }

    fn fake(&self, dataplane: &str) -> FakeDataPlane {
        self.launchers.lock().unwrap()[dataplane].current().unwrap()
    }

    async fn text(&self, method: &str, path: &str, body: impl Into<Bytes>) -> (u16, String) {
        let stream = tokio::net::UnixStream::connect(self.server.paths().api()).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = hyper::Request::builder().method(method).uri(path).header("host", "t");
        let request = request.body(Full::new(body.into())).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.text(method, path, body).await;
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, value) = self.call("GET", path, Value::Null).await;
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    /// A volume `v` and an adapter `a` on it.
    async fn disk(&self) {
        let volume = json!({"name": "v", "attributes": {"kind": "null", "size": "1GiB"}});
        assert_eq!(self.call("POST", "/v1/volumes", volume).await.0, 201);
        let adapter = json!({"name": "a", "attributes": {"volume": "v", "queues": 8}});
        assert_eq!(self.call("POST", "/v1/adapters", adapter).await.0, 201);
    }
}

/// Waits for something that happens on another thread.
async fn eventually(mut happened: impl FnMut() -> bool) {
    while !happened() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_made_shown_changed_and_removed() {
    let bench = Bench::new().await;
    bench.disk().await;
    let volume = bench.get("/v1/volumes/v").await;
    assert_eq!(volume["state"], "open");
    assert_eq!(volume["bytes"], 1 << 30);
    assert_eq!(volume["adapters"], json!(["a"]));
    assert_eq!(volume["effective"]["block_size"], 512);
    let adapter = bench.get("/v1/adapters/a").await;
    assert_eq!(adapter["state"], "listening");
    assert_eq!(adapter["serial"], "v");
    assert_eq!(adapter["attributes"], json!({"volume": "v", "queues": 8}));

    let (status, done) = bench
        .call("PATCH", "/v1/adapters/a", json!({"attributes": {"queues": null, "wait": "poll"}}))
        .await;
    assert_eq!(status, 200);
    assert_eq!(done["changes"][0]["attributes"][0]["from"], "8");
    assert_eq!(bench.fake("main").books().status.adapters[0].spec.queues, 64);

    let resize = json!({"size": "2GiB"});
    assert_eq!(bench.call("POST", "/v1/volumes/v/resize", resize).await.0, 200);
    assert_eq!(bench.get("/v1/volumes").await["items"][0]["bytes"], 2u64 << 30);

    assert_eq!(bench.call("DELETE", "/v1/volumes/v", Value::Null).await.0, 409);
    assert_eq!(bench.call("DELETE", "/v1/adapters/a", Value::Null).await.0, 200);
    assert_eq!(bench.call("DELETE", "/v1/volumes/v", Value::Null).await.0, 200);
    assert!(bench.fake("main").books().status.volumes.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_say_what_and_how_to_mend_it() {
    let bench = Bench::new().await;
    bench.disk().await;
    let post = |path, body| bench.call("POST", path, body);
    let again = json!({"name": "v", "attributes": {"kind": "null", "size": 4096}});
    let wrong = json!({"name": "w", "attributes": {"kind": "null", "sise": 4096}});
    for (answer, status, code) in [
        (post("/v1/volumes", again).await, 409, "exists"),
        (post("/v1/volumes", wrong).await, 400, "invalid"),
        (post("/v1/volumes", json!({"nmae": "v"})).await, 400, "invalid"),
        (post("/v1/apply?dry_rum=true", Value::Null).await, 400, "invalid"),
        (bench.call("GET", "/v1/adapters/b", Value::Null).await, 404, "not_found"),
        (bench.call("DELETE", "/v1/adapters/vv", Value::Null).await, 404, "not_found"),
        (bench.call("GET", "/v2/volumes", Value::Null).await, 404, "not_found"),
        (bench.call("PUT", "/v1/volumes", Value::Null).await, 405, "invalid"),
        (
            bench.call("PATCH", "/v1/adapters/a", json!({"attributes": {"volume": "w"}})).await,
            400,
            "invalid",
        ),
    ] {
        assert_eq!((answer.0, &answer.1["code"]), (status, &json!(code)), "{}", answer.1);
        assert!(answer.1["help"].is_string(), "{} without help", answer.1);
    }
    let (_, refusal) =
        post("/v1/volumes", json!({"name": "w", "attributes": {"knid": "null"}})).await;
    assert_eq!(refusal["attribute"], "knid");
    assert_eq!(refusal["help"], "did you mean `kind`?");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_changes_nothing() {
    let bench = Bench::new().await;
    bench.disk().await;
    let before = bench.server.desired();
    let body = json!({"name": "w", "attributes": {"kind": "null", "size": 4096}});
    let (_, done) = bench.call("POST", "/v1/volumes?dry_run=true", body).await;
    assert_eq!(done["changes"][0]["verb"], "create");
    assert_eq!(bench.call("DELETE", "/v1/adapters/a?dry_run=true", Value::Null).await.0, 200);
    let everything = "/v1/apply?dry_run=true&prune=true&force=true";
    let (_, applied) = bench.call("POST", everything, Value::Null).await;
    assert_eq!(applied["changes"].as_array().unwrap().len(), 2);
    assert_eq!(bench.server.desired(), before);
    assert_eq!(bench.fake("main").books().log.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_data_plane_cannot_make_leaves_nothing_behind() {
    let bench = Bench::new().await;
    let body = json!({"name": "v", "attributes": {"kind": "file", "path": "/missing/v.img"}});
    let (status, refusal) = bench.call("POST", "/v1/volumes", body).await;
    assert_eq!((status, &refusal["code"]), (500, &json!("failed")));
    assert!(refusal["message"].as_str().unwrap().contains("no such file"));
    assert_eq!(refusal["help"], "set `create = true` to make it");
    assert!(bench.server.desired()[Object::Volume].is_empty());
    assert_eq!(bench.get("/v1/status").await["failures"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_applied_exported_and_applied_again_without_effect() {
    let bench = Bench::new().await;
    bench.disk().await;
    let text = "[volume.v]\nkind = \"null\"\nsize = \"1GiB\"\n\n[adapter.b]\nvolume = \"v\"\n";
    let (status, applied) = bench.text("POST", "/v1/apply?prune=true", text.to_owned()).await;
    assert_eq!(status, 200, "{applied}");
    let (_, exported) = bench.text("GET", "/v1/export", String::new()).await;
    assert_eq!(exported, text);
    let count = bench.fake("main").books().log.len();
    let (_, again) = bench.text("POST", "/v1/apply", exported).await;
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap()["changes"], json!([]));
    assert_eq!(bench.fake("main").books().log.len(), count);
    let more = "[volume.w]\nkind = \"null\"\nsize = 4096\n".to_owned();
    assert_eq!(bench.text("POST", "/v1/apply", more).await.0, 200);
    assert_eq!(bench.server.desired()[Object::Volume].len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_applied_and_failed_stays_wanted_and_is_shown() {
    let bench = Bench::new().await;
    let text = "[volume.v]\nkind=\"file\"\npath=\"/missing/v\"\n[adapter.a]\nvolume=\"v\"\n";
    let (status, applied) = bench.text("POST", "/v1/apply", text.to_owned()).await;
    assert_eq!(status, 200);
    let applied: Value = serde_json::from_str(&applied).unwrap();
    assert_eq!(applied["failures"].as_array().unwrap().len(), 2);
    let status = bench.get("/v1/status").await;
    assert_eq!(status["volumes"][0]["state"], "failed");
    assert_eq!(status["adapters"][0]["state"], "failed");
    assert_eq!(status["failures"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_control_plane_adopts_and_disturbs_nothing() {
    let bench = Bench::new().await;
    bench.disk().await;
    let fake = bench.fake("main");
    let log = fake.books().log.clone();
    fake.books().status.adapters[0].state = AdapterState::Running;
    let bench = bench.restart().await;
    assert_eq!(fake.books().log, log);
    assert_eq!(bench.get("/v1/adapters/a").await["state"], "running");
    assert_eq!(bench.get("/v1/dataplanes/main").await["restarts"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_plane_that_dies_is_started_again_and_told_everything() {
    let bench = Bench::new().await;
    bench.disk().await;
    let first = std::mem::take(&mut bench.fake("main").books().log);
    bench.fake("main").kill();
    eventually(|| bench.fake("main").books().log.len() == first.len()).await;
    assert_eq!(bench.fake("main").books().log, first);
    assert_eq!(bench.server.supervisor_views()["main"].restarts, 1);
    let status = bench.get("/v1/status").await;
    assert_eq!(status["dataplanes"][0]["state"], "running");
    assert_eq!(status["adapters"][0]["state"], "listening");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_plane_is_restarted_on_request() {
    let bench = Bench::new().await;
    bench.disk().await;
    let (status, _) = bench.call("POST", "/v1/dataplanes/main/restart", Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(bench.fake("main").books().log.len(), 2);
    assert_eq!(bench.call("POST", "/v1/dataplanes/side/restart", Value::Null).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_moves_to_the_data_plane_of_its_adapter() {
    let bench = Bench::new().await;
    let volume = json!({"name": "v", "attributes": {"kind": "null", "size": 4096}});
    bench.call("POST", "/v1/volumes", volume).await;
    assert_eq!(bench.fake("main").books().status.volumes.len(), 1);
    assert_eq!(bench.call("POST", "/v1/dataplanes", json!({"name": "side"})).await.0, 201);
    let adapter = json!({"name": "a", "attributes": {"volume": "v", "dataplane": "side"}});
    assert_eq!(bench.call("POST", "/v1/adapters", adapter).await.0, 201);
    assert_eq!(bench.fake("main").books().status.volumes.len(), 0);
    assert_eq!(bench.fake("side").books().status.volumes.len(), 1);
    assert_eq!(bench.get("/v1/volumes/v").await["dataplane"], "side");
    assert_eq!(bench.call("DELETE", "/v1/dataplanes/side", Value::Null).await.0, 409);
    bench.call("DELETE", "/v1/adapters/a", Value::Null).await;
    assert_eq!(bench.call("DELETE", "/v1/dataplanes/side", Value::Null).await.0, 200);
    assert_eq!(bench.fake("main").books().status.volumes.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passed_socket_goes_with_its_adapter_and_goes_again_after_a_death() {
    let dir = tempfile::tempdir().unwrap();
    let listener = std::os::unix::net::UnixListener::bind(dir.path().join("passed")).unwrap();
    let listeners = BTreeMap::from([("a".to_owned(), OwnedFd::from(listener))]);
    let bench = Bench::with(dir, Arc::default(), listeners).await;
    bench.disk().await;
    assert_eq!(bench.fake("main").books().passed, ["a"]);
    bench.fake("main").books().passed.clear();
    bench.fake("main").kill();
    eventually(|| bench.fake("main").books().passed == ["a"]).await;
}

/// A data plane that cannot be started.
struct NoDataPlane;

impl Launcher for NoDataPlane {
    fn connect(&mut self) -> Result<Box<dyn Link>, LinkError> {
        Err(LinkError::Absent)
    }
    fn launch(&mut self, _: &DataPlaneSpec) -> std::io::Result<Box<dyn Link>> {
        Err(std::io::Error::other("no such program"))
    }
    fn started_with(&self) -> Option<DataPlaneSpec> {
        None
    }
    fn reap(&mut self) -> Option<String> {
        None
    }
    fn await_end(&mut self, _: bool) -> bool {
        true
    }
    fn socket(&self) -> &std::path::Path {
        std::path::Path::new("/nowhere")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_data_plane_everything_is_pending_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths::in_one(dir.path());
    let store = Box::new(RedbStore::open(&paths.store()).unwrap());
    let server = Server::start(paths, store, Box::new(|_| Box::new(NoDataPlane)), BTreeMap::new())
        .await
        .unwrap();
    let bench = Bench::serve(dir, Arc::default(), server);
    assert_eq!(bench.server.troubles().len(), 1, "`serve` says so");
    bench.disk().await;
    let volume = json!({"name": "w", "attributes": {"kind": "null", "size": "1GiB"}});
    let (code, done) = bench.call("POST", "/v1/volumes", volume).await;
    assert_eq!((code, &done["waiting"][0]["code"]), (201, &json!("unavailable")), "{done}");
    let why = done["waiting"][0]["message"].as_str().unwrap();
    assert_eq!(why, "data plane `main` is not running: no such program");
    // Its own attributes wait for its start in any case.
    let change = json!({"attributes": {"channels": 1}});
    let (_, done) = bench.call("PATCH", "/v1/dataplanes/main", change).await;
    assert_eq!(done["waiting"], Value::Null, "{done}");
    let status = bench.get("/v1/status").await;
    assert_eq!(status["dataplanes"][0]["state"], "down");
    assert_eq!(status["dataplanes"][0]["reason"], "no such program");
    assert_eq!(status["volumes"][0]["state"], "pending");
    assert_eq!(status["adapters"][0]["state"], "pending");
    assert_eq!(bench.get("/v1/stats").await["adapters"], json!([]));
    let (_, metrics) = bench.text("GET", "/metrics", String::new()).await;
    assert!(metrics.contains("trunkline_dataplane_up{dataplane=\"main\"} 0"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_are_summed_over_queues_and_shown_to_prometheus() {
    let bench = Bench::new().await;
    bench.disk().await;
    let fake = bench.fake("main");
    for queue in 0..2 {
        let stats = fake.queue_stats("a", queue).unwrap();
        stats.add(QueueCounter::Reads, 10);
        stats.add(QueueCounter::ReadBytes, 40960);
        stats.set_with_high_water(
            QueueCounter::Active,
            QueueCounter::ActiveMax,
            3 + u64::from(queue),
        );
        stats.record(Latency::Device, 5_000, 10);
    }
    fake.channel_stats(1).add(ChannelCounter::Sleep, 1_500_000_000);
    let stats = bench.get("/v1/stats?adapter=a").await;
    let total = &stats["adapters"][0]["total"];
    assert_eq!(total["counters"]["reads"], 20);
    assert_eq!(total["counters"]["commands_active"], 7);
    assert_eq!(total["counters"]["commands_active_max"], 4);
    assert_eq!(total["latency"]["device"]["count"], 20);
    assert_eq!(total["latency"]["device"]["mean_ns"], 5_000);
    assert_eq!(stats["adapters"][0]["queues"][1]["counters"]["reads"], 10);
    assert_eq!(stats["adapters"][0]["active_max_at_ms"], json!(null));
    let (_, text) = bench.text("GET", "/metrics", String::new()).await;
    for line in [
        "trunkline_dataplane_up{dataplane=\"main\"} 1",
        "trunkline_adapter_reads_total{adapter=\"a\"} 20",
        "trunkline_adapter_read_bytes_total{adapter=\"a\"} 81920",
        "trunkline_adapter_commands_active_max{adapter=\"a\"} 4",
        "trunkline_channel_sleep_seconds_total{dataplane=\"main\",channel=\"1\"} 1.5",
        "trunkline_latency_seconds_count{adapter=\"a\",stage=\"device\"} 20",
        "trunkline_latency_seconds_bucket{le=\"0.000016384\",adapter=\"a\",stage=\"device\"} 20",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    let samples = crate::metrics::strict::read(&text).unwrap();
    assert!(samples > 100, "{samples}");
    for line in [
        "trunkline_dataplane_state{dataplane=\"main\",state=\"running\"} 1",
        "trunkline_volume_state{volume=\"v\",state=\"open\"} 1",
        "trunkline_adapter_state{adapter=\"a\",state=\"listening\"} 1",
        "trunkline_latency_seconds_bucket{le=\"+Inf\",adapter=\"a\",stage=\"device\"} 20",
        "trunkline_events_total{kind=\"change\"} 2",
        concat!("trunkline_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    assert_eq!(bench.call("GET", "/v1/stats?adapter=b", Value::Null).await.0, 404);
    // A mark of all queues at once stands in for the highest of one.
    fake.queue_stats("a", 1).unwrap().set(QueueCounter::PendingMax, 4);
    fake.adapter_stats("a").unwrap().set_active_max(6, 77);
    let waited = bench.get("/v1/stats?adapter=a").await["adapters"][0]["total"].clone();
    assert_eq!(waited["counters"]["commands_pending_max"], 4, "of a data plane without that mark");
    fake.adapter_stats("a").unwrap().set_pending_max(9);
    let stats = bench.get("/v1/stats?adapter=a").await;
    assert_eq!(stats["adapters"][0]["total"]["counters"]["commands_active_max"], 6);
    assert_eq!(stats["adapters"][0]["total"]["counters"]["commands_pending_max"], 9);
    assert_eq!(stats["adapters"][0]["active_max_at_ms"], 77);
    let (_, text) = bench.text("GET", "/metrics", String::new()).await;
    assert!(text.contains("trunkline_adapter_commands_active_max{adapter=\"a\"} 6"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_of_an_uplink_are_those_of_the_data_plane_of_its_network() {
    let bench = Bench::new().await;
    let text = "[dataplane.side]\n[network.n]\ndataplane=\"side\"\n[uplink.up]\nnetwork=\"n\"\n";
    assert_eq!(bench.text("POST", "/v1/apply", text.to_owned()).await.0, 200);
    for (path, expected) in
        [("/v1/stats", vec!["main", "side"]), ("/v1/stats?adapter=up", vec!["side"])]
    {
        let stats = bench.get(path).await;
        let channels = stats["channels"].as_array().unwrap();
        let mut planes: Vec<_> =
            channels.iter().map(|channel| channel["dataplane"].as_str().unwrap()).collect();
        planes.sort_unstable();
        planes.dedup();
        assert_eq!(planes, expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn luns_are_summed_over_channels() {
    let bench = Bench::new().await;
    let adapter = json!({"name": "vfchost0", "attributes": {"kind": "fc"}});
    assert_eq!(bench.call("POST", "/v1/adapters", adapter).await.0, 201);
    let fake = bench.fake("main");
    for queue in 0..3 {
        fake.queue_stats("vfchost0", queue).unwrap();
    }
    for (place, channel) in [((0, 7), 1), ((0, 7), 0), ((1, 0), 1)] {
        let stats = fake.lun_stats("vfchost0", place, channel).unwrap();
        stats.add(QueueCounter::Writes, 10);
        stats.add(QueueCounter::WrittenBytes, 5120);
        stats.record(Latency::Server, 5_000, 10);
    }
    let stats = bench.get("/v1/stats?adapter=vfchost0").await;
    let luns = &stats["adapters"][0]["luns"];
    assert_eq!(luns.as_array().unwrap().len(), 2);
    assert_eq!((&luns[0]["target"], &luns[0]["lun"]), (&json!(0), &json!(7)));
    assert_eq!(luns[0]["channels"], json!([0, 1]));
    assert_eq!(luns[0]["counters"]["written_bytes"], 10240);
    assert_eq!(luns[0]["counters"]["starts"], Value::Null, "a queue's");
    assert_eq!(luns[0]["latency"]["server"]["count"], 20);
    assert_eq!(luns[1]["counters"]["writes"], 10);
    let names: Vec<_> = (0..3).map(|at| &stats["adapters"][0]["queues"][at]["name"]).collect();
    assert_eq!(names, ["control", "event", "0"]);
    let (_, text) = bench.text("GET", "/metrics", String::new()).await;
    for line in [
        "trunkline_lun_writes_total{adapter=\"vfchost0\",target=\"0\",lun=\"7\"} 20",
        "trunkline_lun_written_bytes_total{adapter=\"vfchost0\",target=\"1\",lun=\"0\"} 5120",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_flight_recorder_names_queues() {
    let bench = Bench::new().await;
    bench.disk().await;
    let fake = bench.fake("main");
    let slot = u32::try_from(fake.queue_stats("a", 3).unwrap().slot()).unwrap();
    fake.channel_stats(0).event(1_000, protocol::stats::FlightKind::Take, slot, 7);
    fake.channel_stats(0).event(2_000, protocol::stats::FlightKind::Sleep, slot, 0);
    let events = bench.get("/v1/flight?channel=0").await;
    assert_eq!(events[0]["event"], "take");
    assert_eq!(events[0]["subject"], "a/3");
    assert_eq!(events[0]["value"], 7);
    assert_eq!((&events[1]["event"], &events[1]["subject"]), (&json!("sleep"), &json!("-")));
    assert_eq!(bench.get("/v1/flight?channel=1").await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_explains_its_channels() {
    let bench = Bench::new().await;
    bench.disk().await;
    let explained = bench.get("/v1/adapters/a/explain").await;
    assert_eq!(
        (&explained["channels"], &explained["limited_by"]),
        (&json!(2), &json!("data_plane"))
    );
    bench.call("PATCH", "/v1/adapters/a", json!({"attributes": {"channels": 1}})).await;
    let explained = bench.get("/v1/adapters/a/explain").await;
    assert_eq!((&explained["channels"], &explained["limited_by"]), (&json!(1), &json!("adapter")));
    let put = |state, queues, channels: &[u32]| {
        let fake = bench.fake("main");
        let adapter = &mut fake.books().status.adapters[0];
        (adapter.state, adapter.client_queues) = (state, queues);
        adapter.client_num_io_queues = queues;
        adapter.channel_of_queue = channels.to_vec();
        adapter.features = vec!["MQ".to_owned()];
    };
    put(AdapterState::Running, 1, &[1]);
    let shown = bench.get("/v1/adapters/a").await;
    assert_eq!((&shown["limited_by"], &shown["channels"]), (&json!("client"), &json!(1)));
    bench.call("PATCH", "/v1/adapters/a", json!({"attributes": {"channels": 0}})).await;
    put(AdapterState::Running, 4, &[1, 1, 1, 1]);
    bench.fake("main").books().status.channels[1].cpu = Some(7);
    let shown = bench.get("/v1/adapters/a").await;
    assert_eq!((&shown["channels"], &shown["channels_max"]), (&json!(1), &json!(2)));
    assert_eq!(shown["cpus"], json!(1));
    let offered = shown["effective"]["queues"].as_u64().unwrap();
    let metrics = bench.text("GET", "/metrics", String::new()).await.1;
    let numbers = [
        ("offered", offered),
        ("num_io_queues", 4),
        ("used", 4),
        ("negotiated", 2),
        ("running", 1),
        ("cpus", 1),
    ];
    for (of, count) in numbers {
        let line = format!("trunkline_adapter_queues{{adapter=\"a\",of=\"{of}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    assert_eq!(shown["features"], json!(["MQ"]));
    // What is left of a client that is gone is not shown.
    put(AdapterState::Listening, 4, &[1, 1, 1, 1]);
    let shown = bench.get("/v1/adapters/a").await;
    assert_eq!((&shown["channels"], &shown["channels_max"]), (&json!(0), &json!(2)));
    assert_eq!((&shown["client_queues"], &shown["features"]), (&json!(0), &json!([])));
    assert_eq!(bench.get("/v1/adapters/a/explain").await["channel_of_queue"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_data_planes_only_when_told_to() {
    let bench = Bench::new().await;
    bench.disk().await;
    let socket = bench.server.paths().dataplane("main");
    assert!(std::os::unix::net::UnixStream::connect(&socket).is_ok());
    assert_eq!(bench.call("POST", "/v1/stop?dataplanes=true", Value::Null).await.0, 202);
    bench.server.stopped().await;
    bench.server.end().await;
    assert!(std::os::unix::net::UnixStream::connect(socket).is_err());
}

#[test]
fn the_openapi_document_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, super::openapi()).unwrap();
    }
    let document = std::fs::read_to_string(path).unwrap_or_default();
    assert!(document == super::openapi(), "{path} is stale: run this test with UPDATE_DOCS=1");
}

/// Every text behind `$ref`.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn the_openapi_document_is_one_by_the_schema_of_openapi() {
    // https://spec.openapis.org/oas/3.1/schema/2022-10-07, Apache-2.0.
    let schema: Value = serde_json::from_str(include_str!("tests/openapi-3.1.json")).unwrap();
    let document: Value = serde_json::from_str(&super::openapi()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong = |document: &Value| -> Vec<String> {
        let errors = validator.iter_errors(document);
        errors.map(|error| format!("{}: {error}", error.instance_path())).collect()
    };
    assert_eq!(wrong(&document), Vec::<String>::new());
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let place = reference.strip_prefix('#').unwrap_or(&reference);
        assert!(document.pointer(place).is_some(), "{reference} leads nowhere");
    }
    // It is a judge: an answer that is not described is none.
    let mut spoilt = document;
    let answer = &mut spoilt["paths"]["/v1/status"]["get"]["responses"]["200"];
    answer.as_object_mut().unwrap().remove("description");
    assert!(!wrong(&spoilt).is_empty());
}
