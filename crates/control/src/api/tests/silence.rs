//! A data plane that is alive and does not answer.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn every_read_is_answered_from_what_is_known_and_says_how_old_it_is() {
    let bench = Bench::new().await;
    bench.disk().await;
    bench.fake("main").books().status.adapters[0].state = AdapterState::Running;
    bench.get("/v1/status").await;
    let fake = bench.fake("main");
    let silence = fake.silence();
    for path in ["/v1/adapters", "/v1/volumes/v", "/v1/logins", "/v1/adapters/a/explain"] {
        bench.get(path).await;
    }
    let status = bench.get("/v1/status").await;
    let plane = &status["dataplanes"][0];
    assert_eq!(plane["state"], "unresponsive", "{status}");
    assert!(plane["reason"].as_str().unwrap().starts_with("process 4242 has not answered for"));
    assert!(plane["age_s"].is_number() && plane["pid"] == 4242, "{plane}");
    assert_eq!(status["adapters"][0]["state"], "running", "as it was");
    assert!(status["adapters"][0]["age_s"].is_number(), "{status}");
    assert_eq!(status["volumes"][0]["state"], "open", "as it was");
    let (_, metrics) = bench.text("GET", "/metrics", String::new()).await;
    assert!(metrics.contains("trunkline_dataplane_up{dataplane=\"main\"} 0"), "{metrics}");
    // Still nobody takes the disk of a client that was there.
    assert_eq!(bench.call("DELETE", "/v1/adapters/a", Value::Null).await.0, 409);
    drop(silence);
    loop {
        let status = bench.get("/v1/status").await;
        if status["dataplanes"][0]["state"] == "running" {
            assert_eq!(status["dataplanes"][0]["age_s"], Value::Null);
            break;
        }
    }
    let (_, metrics) = bench.text("GET", "/metrics", String::new()).await;
    assert!(
        metrics.contains("trunkline_dataplane_silences_total{dataplane=\"main\"} 1"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_stored_and_carried_out_when_the_data_plane_answers() {
    let bench = Bench::new().await;
    bench.disk().await;
    let fake = bench.fake("main");
    let silence = fake.silence();
    let volume = json!({"name": "w", "attributes": {"kind": "null", "size": 4096}});
    let (status, done) = bench.call("POST", "/v1/volumes", volume).await;
    assert_eq!(status, 201, "{done}");
    let waiting = done["waiting"][0]["message"].as_str().unwrap();
    assert!(waiting.starts_with("data plane `main` is unresponsive: process 4242"), "{waiting}");
    drop(silence);
    eventually(|| fake.books().status.volumes.len() == 2).await;
    assert_eq!(bench.server.supervisor_views()["main"].restarts, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_control_plane_leaves_a_silent_data_plane_alone() {
    let bench = Bench::new().await;
    bench.disk().await;
    let fake = bench.fake("main");
    let silence = fake.silence();
    let bench = bench.restart().await;
    let status = bench.get("/v1/status").await;
    assert_eq!(status["dataplanes"][0]["state"], "unresponsive", "{status}");
    assert!(bench.fake("main").is(&fake), "no other was started");
    drop(silence);
    loop {
        let status = bench.get("/v1/status").await;
        if status["adapters"][0]["state"] == "listening" {
            break;
        }
    }
    assert!(bench.fake("main").is(&fake));
    assert_eq!(fake.books().log.len(), 2, "it was told nothing new");
}

#[tokio::test(flavor = "multi_thread")]
async fn applying_again_says_what_is_still_to_be_carried_out() {
    let bench = Bench::new().await;
    bench.disk().await;
    let text = "[volume.w]\nkind=\"null\"\nsize=4096\n";
    let apply = || async {
        let (status, applied) = bench.text("POST", "/v1/apply", text.to_owned()).await;
        assert_eq!(status, 200, "{applied}");
        serde_json::from_str::<Value>(&applied).unwrap()
    };
    let says = |applied: &Value, what: &str| {
        let message = applied["waiting"][0]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(what), "{applied}");
    };
    let fake = bench.fake("main");
    let silence = fake.silence();
    says(&apply().await, "data plane `main` is unresponsive");
    let again = apply().await;
    assert_eq!(again["changes"], json!([]));
    says(&again, "data plane `main` is unresponsive");
    drop(silence);
    eventually(|| fake.books().status.volumes.len() == 2).await;
    while bench.get("/v1/status").await["dataplanes"][0]["state"] != "running" {}
    assert_eq!(apply().await["waiting"], Value::Null, "it is carried out");
    // A data plane that is silent and has all that it shall have keeps nobody waiting.
    let silence = fake.silence();
    assert_eq!(apply().await["waiting"], Value::Null);
    drop(silence);
    fake.books().locked.insert("/d/l".into(), "process 7 (qemu)".to_owned());
    let text = "[volume.l]\nkind=\"file\"\npath=\"/d/l\"\n";
    for _ in 0..2 {
        let applied = bench.text("POST", "/v1/apply", text.to_owned()).await.1;
        says(&serde_json::from_str(&applied).unwrap(), "volume `l`: opening");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_a_silent_data_plane_has_still_is_not_made_again() {
    let bench = Bench::new().await;
    let volume = json!({"name": "r", "attributes": {"kind": "ram", "size": 4096}});
    assert_eq!(bench.call("POST", "/v1/volumes", volume.clone()).await.0, 201);
    // Nobody has asked for an account since.
    let fake = bench.fake("main");
    let silence = fake.silence();
    assert_eq!(bench.call("DELETE", "/v1/volumes/r", Value::Null).await.0, 200);
    let (status, refusal) = bench.call("POST", "/v1/volumes", volume.clone()).await;
    assert_eq!((status, &refusal["code"]), (409, &json!("in_use")), "{refusal}");
    let message = refusal["message"].as_str().unwrap();
    assert_eq!(message, "data plane `main` still has an earlier volume `r`");
    drop(silence);
    eventually(|| fake.books().status.volumes.is_empty()).await;
    assert_eq!(bench.call("POST", "/v1/volumes", volume).await.0, 201);
}
