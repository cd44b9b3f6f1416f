//! Clients: what is in use is not taken away unasked, and which queues they have is told.

use super::*;

const DISK: &str =
    "[volume.v]\nkind = \"null\"\nsize = \"1GiB\"\n\n[adapter.a]\nvolume = \"v\"\nqueues = 8\n";

impl Bench {
    /// A disk, and a client that uses it.
    async fn disk_in_use(&self) {
        self.disk().await;
        self.fake("main").books().status.adapters[0].state = AdapterState::Running;
    }

    async fn apply_with(&self, query: &str, text: &str) -> (u16, Value) {
        let (status, answer) =
            self.text("POST", &format!("/v1/apply?{query}"), text.to_owned()).await;
        (status, serde_json::from_str(&answer).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_removes_what_it_does_not_name_only_when_told_to() {
    let bench = Bench::new().await;
    bench.disk().await;
    let other = "[volume.w]\nkind = \"null\"\nsize = 4096\n";
    let (status, applied) = bench.apply_with("", other).await;
    assert_eq!(status, 200, "{applied}");
    assert_eq!(applied["others"], json!(["volume v", "adapter a"]));
    assert_eq!(bench.server.desired()[Object::Adapter].len(), 1);
    let (_, planned) = bench.apply_with("prune=true&dry_run=true", other).await;
    assert_eq!(planned["changes"].as_array().unwrap().len(), 2, "{planned}");
    let (status, _) = bench.apply_with("prune=true", other).await;
    assert_eq!(status, 200);
    assert_eq!(bench.server.desired()[Object::Volume].keys().collect::<Vec<_>>(), ["w"]);
    assert!(bench.server.desired()[Object::Adapter].is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_names_nothing_is_an_error() {
    let bench = Bench::new().await;
    bench.disk().await;
    for (query, text) in [("", ""), ("prune=true", "# all of it\n"), ("prune=true", "\n")] {
        let (status, refusal) = bench.apply_with(query, text).await;
        assert_eq!(status, 400, "{query} {text:?}: {refusal}");
        assert!(refusal["help"].as_str().unwrap().contains("--prune --force"), "{refusal}");
    }
    assert_eq!(bench.server.desired()[Object::Adapter].len(), 1);
    assert_eq!(bench.apply_with("prune=true&force=true", "").await.0, 200);
    assert!(bench.server.desired()[Object::Volume].is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_plane_ends_under_a_client_that_stays_away_only_by_force() {
    let bench = Bench::new().await;
    let san = "[volume.v]\nkind=\"null\"\nsize=4096\n[adapter.s]\nkind=\"scsi\"\n[vtd.d]\nadapter=\"s\"\nvolume=\"v\"\n";
    assert_eq!(bench.apply_with("", san).await.0, 200);
    let client = |features: &[&str]| {
        let fake = bench.fake("main");
        let adapter = &mut fake.books().status.adapters[0];
        adapter.state = AdapterState::Running;
        adapter.features = features.iter().map(|name| (*name).to_owned()).collect();
    };
    let restart = |query: &'static str| bench.call("POST", query, Value::Null);
    // QEMU 7.2 keeps an in-flight region and does not connect again.
    client(&["inflight", "resize_events"]);
    let (status, refusal) = restart("/v1/dataplanes/main/restart").await;
    assert_eq!((status, &refusal["code"]), (409, &json!("in_use")), "{refusal}");
    assert!(refusal["message"].as_str().unwrap().contains("`s`: they are QEMU before 8.2"));
    assert_eq!(bench.get("/v1/adapters/s").await["stays_away"], true);
    assert_eq!(restart("/v1/dataplanes/main/restart?force=true").await.0, 200);
    // Who is lost by a death is named.
    client(&["inflight", "resize_events"]);
    bench.get("/v1/status").await;
    let old = bench.fake("main");
    old.kill();
    let lost = || {
        let events = bench.server.trail().since(0, 0);
        events.iter().any(|it| it.is_of("s") && it.message.contains("does not connect again"))
    };
    eventually(lost).await;
    let new = || Some(bench.fake("main")).filter(|fake| !fake.is(&old));
    eventually(|| new().is_some_and(|it| !it.books().status.adapters.is_empty())).await;
    client(&["inflight", "shared_object"]);
    assert_eq!(bench.get("/v1/adapters/s").await["stays_away"], Value::Null);
    let (status, answer) = restart("/v1/dataplanes/main/restart").await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lasts_until_a_volume_is_closed_is_given_up_only_by_force() {
    let bench = Bench::new().await;
    let file = bench.dir.path().join("v.img");
    let state =
        format!("[volume.v]\nkind=\"file\"\ncreate=true\nsize=4096\npath=\"{}\"\n", file.display());
    assert_eq!(bench.apply_with("", &state).await.0, 200);
    bench.fake("main").books().status.volumes[0].removed = true;
    let restart = |query: &'static str| bench.call("POST", query, Value::Null);
    let (status, refusal) = restart("/v1/dataplanes/main/restart").await;
    assert_eq!((status, &refusal["code"]), (409, &json!("in_use")), "{refusal}");
    assert!(
        refusal["message"].as_str().unwrap().starts_with("what is in volumes `v` would be lost")
    );
    // Nor by a start with other attributes.
    bench.server.renew_dataplanes().await;
    assert_eq!(bench.server.supervisor_views()["main"].restarts, 0);
    assert_eq!(restart("/v1/dataplanes/main/restart?force=true").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_is_taken_from_a_client_only_by_force() {
    let bench = Bench::new().await;
    bench.disk_in_use().await;
    let keep = "[volume.v]\nkind = \"null\"\nsize = \"1GiB\"\n";
    let (status, refusal) = bench.apply_with("prune=true", keep).await;
    assert_eq!((status, &refusal["code"]), (409, &json!("in_use")), "{refusal}");
    let delete = |path: &'static str| bench.call("DELETE", path, Value::Null);
    let (status, refusal) = delete("/v1/adapters/a").await;
    assert_eq!(status, 409, "{refusal}");
    let message = "the client of adapter `a` loses its disk (volume `v`)";
    assert_eq!(refusal["message"], message);
    assert!(refusal["help"].as_str().unwrap().contains("--force"));
    let (status, planned) = delete("/v1/adapters/a?dry_run=true").await;
    assert_eq!(status, 200);
    let hit = json!([{"adapter": "a", "what": "its disk (volume `v`)"}]);
    assert_eq!(planned["losses"], hit);
    assert_eq!(bench.fake("main").books().status.adapters.len(), 1, "nothing was taken so far");
    let (status, done) = delete("/v1/adapters/a?force=true").await;
    assert_eq!((status, &done["losses"]), (200, &hit));
    assert!(bench.fake("main").books().status.adapters.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lun_is_taken_from_a_client_only_by_force() {
    let bench = Bench::new().await;
    bench.apply(super::san::SAN).await;
    let running = |state| {
        for adapter in &mut bench.fake("main").books().status.adapters {
            adapter.state = state;
        }
    };
    running(AdapterState::Running);
    let desired = bench.server.desired();
    let mask = desired[Object::Mask].keys().next().unwrap();
    let zone = desired[Object::Zone].keys().next().unwrap();
    let adapter = desired[Object::Adapter].keys().next().unwrap();
    for (method, path, body) in [
        ("DELETE", format!("/v1/masks/{mask}"), Value::Null),
        ("DELETE", format!("/v1/zones/{zone}"), Value::Null),
        ("PATCH", format!("/v1/adapters/{adapter}"), json!({"attributes": {"port": null}})),
    ] {
        let (status, refusal) = bench.call(method, &path, body.clone()).await;
        assert_eq!((status, &refusal["code"]), (409, &json!("in_use")), "{path}: {refusal}");
        let (status, plan) = bench.call(method, &format!("{path}?dry_run=true"), body).await;
        assert_eq!(status, 200);
        assert!(!plan["losses"].as_array().unwrap().is_empty(), "{path}: {plan}");
    }
    assert_eq!(bench.server.desired(), desired);
    running(AdapterState::Listening);
    let (status, _) = bench.call("DELETE", &format!("/v1/masks/{mask}"), Value::Null).await;
    assert_eq!(status, 200, "there is no client");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_say_what_the_next_start_undoes() {
    let bench = Bench::new().await;
    bench.disk().await;
    let file = |prune| {
        let wanted = crate::config::read(DISK).unwrap();
        bench.server.has_file(ConfigFile::new("/etc/t.toml".into(), prune, &wanted));
    };
    file(false);
    let set = json!({"attributes": {"queues": 4}});
    let (_, done) = bench.call("PATCH", "/v1/adapters/a", set).await;
    let warning = done["warnings"][0].as_str().unwrap();
    assert!(warning.contains("as that file has them: adapter a; change the file"), "{warning}");
    let new = |name: &str| json!({"name": name, "attributes": {"kind": "null", "size": 4096}});
    let (_, done) = bench.call("POST", "/v1/volumes", new("w")).await;
    assert_eq!(done["warnings"], Value::Null, "{done}");
    file(true);
    let (_, done) = bench.call("POST", "/v1/volumes", new("x")).await;
    let warning = done["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("removes what it does not have, with its data: volume x"),
        "{warning}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_goes_on_when_its_caller_leaves() {
    let bench = Bench::new().await;
    bench.disk().await;
    let fake = bench.fake("main");
    let (held, release) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    let hold = {
        let fake = fake.clone();
        std::thread::spawn(move || {
            let _books = fake.books();
            held.0.send(()).unwrap();
            let _ = release.1.recv();
        })
    };
    held.1.recv().unwrap();
    let volume = json!({"kind": "null", "size": 4096});
    let set = serde_json::from_value(volume).unwrap();
    let options = ChangeOptions {
        dry_run: false,
        allow: Allow::default(),
        on_failure: OnFailure::Revert,
        wait: true,
    };
    let create = bench.server.create(Object::Volume, "w", set, options);
    // The data plane answers nothing, so that the caller is the first to give up.
    assert!(tokio::time::timeout(Duration::from_millis(300), create).await.is_err());
    drop(release.0);
    hold.join().unwrap();
    eventually(|| fake.books().status.volumes.len() == 2).await;
    eventually(|| bench.server.desired()[Object::Volume].len() == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applying_what_is_wanted_already_does_what_was_left_undone() {
    let bench = Bench::new().await;
    bench.disk().await;
    let fake = bench.fake("main");
    fake.books().status.adapters.clear();
    let (status, applied) = bench.apply_with("", DISK).await;
    assert_eq!((status, &applied["changes"]), (200, &json!([])));
    assert_eq!(fake.books().status.adapters.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_limit_alike_both_are_named_with_what_lifts_them() {
    let bench = Bench::new().await;
    bench.disk().await;
    let terms = bench.get("/v1/adapters/a/explain").await["terms"].clone();
    let data_plane = terms[2]["count"].clone();
    let change = json!({ "attributes": { "channels": data_plane } });
    assert_eq!(bench.call("PATCH", "/v1/adapters/a", change).await.0, 200);
    let answer = bench.get("/v1/adapters/a/explain").await;
    let limits = |at: usize| answer["terms"][at]["limits"] == json!(true);
    assert!(limits(1) && limits(2), "{answer}");
    let remedy = answer["remedy"].as_str().unwrap();
    assert!(
        remedy.contains("the adapter's `channels`") && remedy.contains("data plane"),
        "{remedy}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sleep_is_held_to_cost_is_explained() {
    let bench = Bench::new().await;
    bench.disk().await;
    let fake = bench.fake("main");
    {
        let adapter = &mut fake.books().status.adapters[0];
        (adapter.state, adapter.connections) = (AdapterState::Running, 1);
        (adapter.client_queues, adapter.channel_of_queue) = (2, vec![1, 1]);
    }
    let sleeps = || async { bench.get("/v1/adapters/a/explain").await["sleeps"].clone() };
    assert_eq!(sleeps().await, Value::Null, "of a data plane that does not say");
    fake.channel_stats(0).set(ChannelCounter::SleepPrice, 1000);
    fake.channel_stats(1).set(ChannelCounter::SleepPrice, 32_000);
    let told = sleeps().await;
    assert_eq!(told.as_array().unwrap().len(), 1, "one of each channel that it uses: {told}");
    assert_eq!(told[0]["source"], "attribute `poll_us_max`");
    bench.set("dataplanes/main", json!({"poll_us_max": "auto"})).await;
    fake.channel_stats(1).set(ChannelCounter::PriceProbes, 6);
    assert!(sleeps().await[0]["source"].as_str().unwrap().starts_with("assumed"));
    fake.channel_stats(1).set(ChannelCounter::PriceProbes, 7);
    fake.channel_stats(1).set(ChannelCounter::SleepPrice, 6_400);
    let measured = &sleeps().await[0];
    assert_eq!((&measured["channel"], &measured["sleep_price_ns"]), (&json!(1), &json!(6_400)));
    assert_eq!(measured["source"], "measured by 7 timers");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queues_that_a_client_has_are_a_term_beside_those_that_it_uses() {
    let bench = Bench::san().await;
    bench.set("adapters/f", json!({"num_per_range": 16})).await;
    bench.set("ports/fcs0", json!({"num_io_queues": 16})).await;
    let client = |has, uses| {
        let fake = bench.fake("main");
        let mut books = fake.books();
        let channels = (0..16).map(|index| ChannelStatus { index, ..Default::default() });
        books.status.channels = channels.collect();
        let adapter = &mut books.status.adapters[0];
        (adapter.state, adapter.connections) = (AdapterState::Running, 1);
        (adapter.client_num_io_queues, adapter.client_queues) = (has, uses);
    };
    let explained = || async {
        let answer = bench.get("/v1/adapters/f/explain").await;
        let terms = answer["terms"].as_array().unwrap().iter();
        let terms = terms.map(|term| {
            let (name, count) = (term["term"].as_str().unwrap(), term["count"].as_u64());
            (name.to_owned(), (count, term["limits"] == true))
        });
        let terms: std::collections::BTreeMap<_, _> = terms.collect();
        let remedy = answer["remedy"].as_str().unwrap().to_owned();
        (terms.get("client").copied(), terms.get("client_attribute").copied(), remedy, answer)
    };
    // A data plane that does not say.
    client(0, 4);
    let (used, has, remedy, _) = explained().await;
    assert_eq!((used, has), (Some((Some(4), true)), None));
    assert!(remedy.contains("num-queues"), "{remedy}");
    // The driver leaves some of them alone.
    client(8, 4);
    let (used, has, remedy, answer) = explained().await;
    assert_eq!((used, has), (Some((Some(4), true)), Some((Some(8), false))));
    assert!(remedy.contains("vCPUs") && !remedy.contains("num-queues"), "{remedy}");
    assert_eq!(answer["then"], json!([8, "client_attribute"]));
    let shown = bench.get("/v1/adapters/f").await;
    assert_eq!((&shown["client_queues"], &shown["client_num_io_queues"]), (&json!(4), &json!(8)));
    let metrics = bench.text("GET", "/metrics", String::new()).await.1;
    let line = "trunkline_adapter_queues{adapter=\"f\",of=\"num_io_queues\"} 8\n";
    assert!(metrics.contains(line), "{metrics}");
    // It uses all: more queues are what would help, and that is said once.
    client(4, 4);
    let (used, has, remedy, answer) = explained().await;
    assert_eq!((used, has), (Some((Some(4), true)), Some((Some(4), true))));
    assert_eq!(remedy, "give the client more queues (QEMU: num-queues)");
    assert_eq!(answer["then"], json!([16, "num_per_range"]));
}
