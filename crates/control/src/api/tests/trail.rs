//! What happened is remembered.

use super::*;

impl Bench {
    /// Kind, subject, result and message of each event behind a number.
    async fn events(&self, after: u64) -> Vec<(String, String, String, String)> {
        let answer = self.get(&format!("/v1/events?after={after}")).await;
        let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let row = |event: &Value| {
            let [kind, subject, result, message] =
                ["kind", "subject", "result", "message"].map(|key| text(event, key));
            (kind, subject, result, message)
        };
        answer["events"].as_array().unwrap().iter().map(row).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_remembered_with_what_became_of_them() {
    let bench = Bench::new().await;
    bench.disk().await;
    bench.call("DELETE", "/v1/volumes/v", Value::Null).await;
    bench.call("DELETE", "/v1/adapters/a?dry_run=true", Value::Null).await;
    let body = json!({"name": "m", "attributes": {"kind": "file", "path": "/missing/m"}});
    bench.call("POST", "/v1/volumes", body).await;
    let events = bench.events(0).await;
    let changes: Vec<(&str, &str)> = events
        .iter()
        .filter(|(kind, ..)| kind == "change")
        .map(|(_, _, result, message)| (result.as_str(), message.as_str()))
        .collect();
    assert_eq!(
        changes,
        [
            ("done", "create volume v (kind=null, size=1GiB)"),
            ("done", "create adapter a (volume=v, queues=8)"),
            ("refused", "volume `v` is used by adapter `a`"),
            ("failed", "volume `m`: /missing/m: no such file"),
        ]
    );
    assert_eq!(events[0].0, "server_started");
    // They are still there for the next server.
    let bench = bench.restart().await;
    let after = bench.events(0).await;
    assert_eq!(after[..events.len()], events);
    let kinds: Vec<&str> = after[events.len()..].iter().map(|event| event.0.as_str()).collect();
    assert_eq!(kinds, ["server_stopped", "server_started", "dataplane_adopted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_and_deaths_and_errors_are_remembered() {
    let bench = Bench::new().await;
    bench.disk().await;
    let last = bench.get("/v1/events").await["events"].as_array().unwrap().len() as u64;
    let client = |state, connections| {
        let fake = bench.fake("main");
        let adapter = &mut fake.books().status.adapters[0];
        (adapter.state, adapter.connections) = (state, connections);
    };
    client(AdapterState::Running, 1);
    bench.get("/v1/status").await;
    client(AdapterState::Listening, 1);
    bench.get("/v1/status").await;
    let stats = bench.fake("main").queue_stats("a", 0).unwrap();
    bench.get("/v1/status").await;
    stats.add(QueueCounter::Errors, 3);
    stats.add(QueueCounter::ErrorsNoSpace, 3);
    let volume = bench.get("/v1/volumes/v").await;
    assert_eq!(volume["state"], "full");
    assert!(volume["reason"].as_str().unwrap().contains("free some space"), "{volume}");
    bench.fake("main").kill();
    eventually(|| bench.server.supervisor_views()["main"].restarts == 1).await;
    let mut kinds = Vec::new();
    while kinds.last().map(String::as_str) != Some("dataplane_started") {
        kinds = bench.events(last).await.into_iter().map(|event| event.0).collect();
    }
    let expected =
        ["client_connected", "client_left", "volume_error", "dataplane_died", "dataplane_started"];
    assert_eq!(kinds, expected);
    // Whoever waits is told at once.
    let number = last + expected.len() as u64;
    let path = format!("/v1/events?after={number}&wait_s=60");
    let (told, ()) = tokio::join!(bench.get(&path), async {
        let body = json!({"attributes": {"queues": 2}});
        bench.call("PATCH", "/v1/adapters/a", body).await;
    });
    assert_eq!(told["events"][0]["message"], "change adapter a (queues=2)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_plane_that_cannot_come_up_with_new_attributes_runs_with_the_last_that_worked() {
    let bench = Bench::new().await;
    bench.disk().await;
    let launcher = bench.launchers.lock().unwrap()["main"].clone();
    *launcher.refuse.lock().unwrap() = Some(1);
    let set = json!({"attributes": {"channels": 1}});
    assert_eq!(bench.call("PATCH", "/v1/dataplanes/main", set).await.0, 200);
    let restart = bench.call("POST", "/v1/dataplanes/main/restart", Value::Null).await;
    let told = restart.1["message"].as_str().unwrap();
    assert!(told.contains("was restarted, and it runs with its earlier attributes"), "{told}");
    let plane = bench.get("/v1/dataplanes/main").await;
    assert_eq!((&plane["state"], &plane["restart_needed"]), (&json!("running"), &json!(true)));
    let reason = plane["reason"].as_str().unwrap();
    assert!(reason.starts_with("it runs with its earlier attributes"), "{reason}");
    assert_eq!(bench.get("/v1/adapters/a").await["state"], "listening");
    *launcher.refuse.lock().unwrap() = None;
    bench.call("POST", "/v1/dataplanes/main/restart", Value::Null).await;
    let plane = bench.get("/v1/dataplanes/main").await;
    assert_eq!((&plane["reason"], &plane["restart_needed"]), (&Value::Null, &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_are_for_users_and_groups_that_there_are() {
    let bench = Bench::new().await;
    bench.disk().await;
    let (_, before) = bench.text("GET", "/v1/export", String::new()).await;
    for (attribute, noun) in [("owner", "user"), ("group", "group")] {
        let set = json!({"attributes": {attribute: "no-such-one"}});
        let (status, refusal) = bench.call("PATCH", "/v1/adapters/a", set).await;
        assert_eq!((status, &refusal["attribute"]), (400, &json!(attribute)), "{refusal}");
        let what = format!("adapter `a`: there is no {noun} `no-such-one`");
        assert!(refusal["message"].as_str().unwrap().starts_with(&what), "{refusal}");
    }
    assert_eq!(bench.text("GET", "/v1/export", String::new()).await.1, before);
    let set = json!({"attributes": {"owner": "root", "group": "7", "mode": "0600"}});
    let (status, done) = bench.call("PATCH", "/v1/adapters/a", set).await;
    assert_eq!(status, 200, "{done}");
    let spec = bench.fake("main").books().status.adapters[0].spec.clone();
    let access = (spec.socket_owner.as_deref(), spec.socket_group.as_deref(), spec.socket_mode);
    assert_eq!(access, (Some("root"), Some("7"), 0o600));
}

#[tokio::test(flavor = "multi_thread")]
async fn cpus_that_are_not_there_are_refused_before_anything_is_stopped() {
    let bench = Bench::new().await;
    bench.disk().await;
    let set = json!({"attributes": {"cpus": "0,999"}});
    let (status, refusal) = bench.call("PATCH", "/v1/dataplanes/main", set).await;
    assert_eq!((status, &refusal["attribute"]), (400, &json!("cpus")), "{refusal}");
    assert!(refusal["message"].as_str().unwrap().contains("CPU 999 is not one"), "{refusal}");
    assert!(refusal["help"].as_str().unwrap().starts_with("these are: 0"), "{refusal}");
}
