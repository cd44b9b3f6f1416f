//! Virtual Fibre Channel and virtual SCSI over the API.

use super::*;
use fabric::attribute::Object;
use protocol::message::LinkSpec;

/// Two volumes, a port, a target with both as LUNs, an adapter on the port, zoned and masked.
pub(super) const SAN: &str = r#"
[dataplane.main]
wwpn_prefix = "c0:50:76:00:00:01"
[volume.a]
kind = "null"
size = 4096
[volume.b]
kind = "null"
size = 8192
[port.fcs0]
[port.fcs1]
[target.t]
luns = "0=a,1=b"
ports = "fcs0"
[adapter.f]
kind = "fc"
port = "fcs0"
[zone.z]
members = "f,t"
[mask.m]
initiators = "f"
targets = "t"
"#;

impl Bench {
    pub(super) async fn san() -> Bench {
        let bench = Bench::new().await;
        bench.apply(SAN).await;
        bench
    }

    pub(super) async fn apply(&self, text: &str) -> Value {
        let (status, applied) = self.text("POST", "/v1/apply?prune=true", text.to_owned()).await;
        assert_eq!(status, 200, "{applied}");
        let applied: Value = serde_json::from_str(&applied).unwrap();
        assert_eq!(applied["failures"], json!([]));
        applied
    }

    pub(super) async fn set(&self, object: &str, attributes: Value) {
        let body = json!({ "attributes": attributes });
        let (status, answer) = self.call("PATCH", &format!("/v1/{object}?force=true"), body).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// The LUNs that the data plane shows an adapter: target, number and unit.
    pub(super) fn luns(&self, adapter: &str) -> Vec<(u8, u16, String)> {
        let fake = self.fake("main");
        let books = fake.books();
        let status = books.status.adapters.iter().find(|a| a.spec.name == adapter).unwrap();
        let targets = &status.spec.scsi().unwrap().targets;
        let luns = targets.iter().flat_map(|target| {
            target.luns.iter().map(|(lun, unit)| (target.id, *lun, unit.clone()))
        });
        luns.collect()
    }
}

fn lun(target: u8, lun: u16, unit: &str) -> (u8, u16, String) {
    (target, lun, unit.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_configuration_again_changes_nothing() {
    let bench = Bench::san().await;
    assert_eq!(bench.luns("f"), [lun(0, 0, "a"), lun(0, 1, "b")]);
    assert!(bench.dir.path().join("reservations").is_dir());
    let log = bench.fake("main").books().log.clone();
    assert_eq!(bench.apply(SAN).await["changes"], json!([]));
    let (_, exported) = bench.text("GET", "/v1/export", String::new()).await;
    assert!(
        exported.contains("wwpns = \"c0:50:76:00:00:01:00:00,c0:50:76:00:00:01:00:01\""),
        "{exported}"
    );
    assert_eq!(bench.apply(&exported).await["changes"], json!([]));
    // Nor does a new control plane send anything.
    let bench = bench.restart().await;
    assert_eq!(bench.apply(SAN).await["changes"], json!([]));
    assert_eq!(bench.fake("main").books().log, log);
}

#[tokio::test(flavor = "multi_thread")]
async fn wwpns_are_not_given_again_after_removal_and_restart() {
    let bench = Bench::san().await;
    let pair = |view: &Value| view["wwpns"].clone();
    let first = pair(&bench.get("/v1/adapters/f").await);
    bench.apply("[dataplane.main]\nwwpn_prefix=\"c0:50:76:00:00:01\"\n").await;
    let bench = bench.restart().await;
    bench.apply(SAN).await;
    let second = pair(&bench.get("/v1/adapters/f").await);
    assert_ne!(first, second);
    // One that could not be made has used its pair up.
    bench.fake("main").books().refuse = Some("g".to_owned());
    let body = json!({"name": "g", "attributes": {"kind": "fc"}});
    assert_eq!(bench.call("POST", "/v1/adapters", body.clone()).await.0, 500);
    bench.fake("main").books().refuse = None;
    assert_eq!(bench.call("POST", "/v1/adapters", body).await.0, 201);
    let third = pair(&bench.get("/v1/adapters/g").await);
    assert_eq!(third[0], "c0:50:76:00:00:01:00:0a");
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_zones_and_masks_change_live() {
    let bench = Bench::san().await;
    bench.fake("main").books().status.adapters[0].state = AdapterState::Running;
    bench.set("masks/m", json!({"luns": "5=1"})).await;
    assert_eq!(bench.luns("f"), [lun(0, 5, "b")]);
    bench.set("adapters/f", json!({"port": "fcs1"})).await;
    assert_eq!(bench.luns("f"), []);
    bench.set("targets/t", json!({"ports": ""})).await;
    assert_eq!(bench.luns("f"), [lun(0, 5, "b")]);
    bench.set("zones/z", json!({"members": "t"})).await;
    assert_eq!(bench.luns("f"), []);
    let pair = bench.get("/v1/adapters/f").await["wwpns"].clone();
    let by_wwpn = format!("t,{}", pair[0].as_str().unwrap());
    bench.set("zones/z", json!({ "members": by_wwpn })).await;
    assert_eq!(bench.luns("f"), [lun(0, 5, "b")]);
    bench.set("adapters/f", json!({ "port": null })).await;
    assert_eq!(bench.luns("f"), []);
    assert_eq!(bench.get("/v1/adapters/f").await["state"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_say_who_is_where_with_which_name() {
    let bench = Bench::san().await;
    let logins = bench.get("/v1/logins").await;
    let login = &logins["items"][0];
    assert_eq!((&login["state"], &login["port"]), (&json!("no_client"), &json!("fcs0")));
    assert_eq!(login["wwpn"], "c0:50:76:00:00:01:00:00");
    assert_eq!(login["waiting_wwpn"], "c0:50:76:00:00:01:00:01");
    assert_eq!(login["targets"][0]["wwpn"], "c0:50:76:00:00:01:00:02");
    assert_eq!(login["targets"][0]["luns"][1]["volume"], "b");
    bench.fake("main").books().status.adapters[0].state = AdapterState::Running;
    assert_eq!(bench.get("/v1/logins").await["items"][0]["state"], "logged_in");
    bench.set("adapters/f", json!({ "port": null })).await;
    assert_eq!(bench.get("/v1/logins").await["items"][0]["state"], "not_mapped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_down_takes_the_links_of_its_adapters_and_nothing_else() {
    let bench = Bench::san().await;
    bench.fake("main").books().status.adapters[0].state = AdapterState::Running;
    let link = || {
        let fake = bench.fake("main");
        let books = fake.books();
        books.status.adapters[0].spec.scsi().unwrap().link
    };
    let state = async || bench.get("/v1/logins").await["items"][0]["state"].clone();
    assert_eq!(link(), LinkSpec::Up);
    let luns = bench.luns("f");
    assert!(!luns.is_empty());
    // Nothing is known of another path of its client.
    let body = json!({"attributes": {"link": "down"}});
    let refused = bench.call("PATCH", "/v1/ports/fcs0", body.clone()).await;
    assert_eq!(refused.0, 409, "{}", refused.1);
    let why = refused.1["message"].as_str().unwrap();
    assert!(why.contains("`f` loses its path to `") && why.contains("wait 15 s"), "{why}");
    assert_eq!(link(), LinkSpec::Up);
    let (_, planned) = bench.call("PATCH", "/v1/ports/fcs0?dry_run=true", body.clone()).await;
    assert_eq!(planned["losses"][0]["adapter"], "f", "{planned}");
    assert_eq!(bench.call("PATCH", "/v1/ports/fcs0?force=true", body).await.0, 200);
    assert_eq!(link(), LinkSpec::Down { hold_ms: 15_000 });
    assert_eq!((bench.luns("f"), state().await), (luns.clone(), json!("link_down")));
    bench.set("adapters/f", json!({"link_hold": 120})).await;
    assert_eq!(link(), LinkSpec::Down { hold_ms: 120_000 });
    bench.set("ports/fcs0", json!({"link": null})).await;
    assert_eq!((link(), state().await), (LinkSpec::Up, json!("logged_in")));
    bench.set("adapters/f", json!({"port": null})).await;
    assert_eq!((link(), bench.luns("f")), (LinkSpec::Down { hold_ms: 120_000 }, vec![]));
    bench.set("adapters/f", json!({"port": "fcs0"})).await;
    assert_eq!((link(), bench.luns("f")), (LinkSpec::Up, luns));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_an_adapter_and_of_a_port_say_what_happened_to_their_links() {
    let bench = Bench::san().await;
    bench.set("ports/fcs0", json!({"link": "down"})).await;
    bench.set("ports/fcs0", json!({"link": null})).await;
    bench.set("adapters/f", json!({"port": "fcs1"})).await;
    bench.set("adapters/f", json!({"port": null})).await;
    bench.set("volumes/a", json!({"limit_iops": 5})).await;
    let of = async |name: &str| -> Vec<String> {
        let answer = bench.get(&format!("/v1/events?of={name}")).await;
        let events = answer["events"].as_array().unwrap().iter();
        let links = events.filter(|event| event["kind"] != "change");
        links.map(|event| format!("{}: {}", event["kind"], event["message"])).collect()
    };
    let [down, up] = ["down\": \"taken down", "up\": \"up again"]
        .map(|what| format!("\"link_{what}; adapters on it: 1\""));
    let remapped = "\"remapped\": \"from port fcs0 to fcs1\"".to_owned();
    let unmapped = "\"link_down\": \"unmapped from port fcs1\"".to_owned();
    assert_eq!(of("f").await, [&down, &up, &remapped, &unmapped].map(Clone::clone));
    assert_eq!(of("fcs0").await, [&down, &up, &remapped].map(Clone::clone));
    assert_eq!(of("fcs1").await, [remapped, unmapped]);
    assert_eq!(of("a").await, [""; 0]);
    let all = bench.get("/v1/events?of=a").await;
    let last = all["events"].as_array().unwrap().last().unwrap();
    assert!(last["message"].as_str().unwrap().contains("limit_iops=5"), "{all}");
    // Who waits for one about a port is not answered because of others.
    let last = last["number"].as_u64().unwrap();
    let path = format!("/v1/events?of=fcs0&after={}&wait_s=1", last - 1);
    assert_eq!(bench.get(&path).await["events"], json!([]));
    // Of an adapter and a port also what happens to their data plane from then on, of others not.
    bench.server.trail().note(crate::trail::Kind::DataplaneDied, Some("main"), "killed");
    bench.server.trail().note(crate::trail::Kind::DataplaneDied, Some("other"), "killed");
    let died = "\"dataplane_died\": \"killed\"".to_owned();
    assert_eq!([of("f").await.pop(), of("fcs1").await.pop()], [Some(died.clone()), Some(died)]);
    assert_eq!((of("f").await.len(), of("a").await.len()), (5, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_links_is_counted_over_restarts_and_shown_everywhere() {
    let bench = Bench::san().await;
    let up = json!({"state": "up", "failures": 0, "recoveries": 0, "remaps": 0});
    assert_eq!(bench.get("/v1/ports/fcs0").await["link"], up);
    assert_eq!(bench.get("/v1/adapters/f").await["link"], up);
    assert_eq!(bench.get("/v1/zones/z").await["link"], Value::Null);
    bench.set("ports/fcs0", json!({"link": "down"})).await;
    assert_eq!(bench.get("/v1/adapters/f").await["link"]["state"], "down");
    bench.set("ports/fcs0", json!({"link": null})).await;
    bench.set("adapters/f", json!({"port": "fcs1"})).await;
    bench.set("adapters/f", json!({"port": null})).await;
    let bench = bench.restart().await;
    let counts = async |object: &str| {
        let link = bench.get(&format!("/v1/{object}")).await["link"].clone();
        let [failures, recoveries, remaps] =
            ["failures", "recoveries", "remaps"].map(|name| link[name].as_u64().unwrap());
        let last = link["last"]["message"].as_str().unwrap().to_owned();
        (link["state"].as_str().unwrap().to_owned(), failures, recoveries, remaps, last)
    };
    let expected = |state: &str, failures, recoveries, remaps, last: &str| {
        (state.to_owned(), failures, recoveries, remaps, last.to_owned())
    };
    assert_eq!(counts("adapters/f").await, expected("down", 2, 1, 1, "unmapped from port fcs1"));
    // A port is as it was when an adapter is unmapped.
    assert_eq!(counts("ports/fcs0").await, expected("up", 1, 1, 1, "from port fcs0 to fcs1"));
    assert_eq!(counts("ports/fcs1").await, expected("up", 0, 0, 1, "from port fcs0 to fcs1"));
    let last = bench.get("/v1/adapters/f").await["link"]["last"].clone();
    assert_eq!(last["kind"], "link_down");
    let (_, metrics) = bench.text("GET", "/metrics", String::new()).await;
    for line in [
        "trunkline_port_link_up{port=\"fcs0\"} 1",
        "trunkline_port_link_failures_total{port=\"fcs0\"} 1",
        "trunkline_port_remaps_total{port=\"fcs1\"} 1",
        "trunkline_adapter_link_up{adapter=\"f\"} 0",
        "trunkline_adapter_link_failures_total{adapter=\"f\"} 2",
        "trunkline_adapter_link_recoveries_total{adapter=\"f\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    // Another one of that name begins at nothing.
    assert_eq!(bench.text("DELETE", "/v1/adapters/f?force=true", String::new()).await.0, 409);
    bench.set("zones/z", json!({"members": "t"})).await;
    bench.set("masks/m", json!({"initiators": "c0:50:76:00:00:01:00:0a"})).await;
    let (status, answer) = bench.text("DELETE", "/v1/adapters/f?force=true", String::new()).await;
    assert_eq!(status, 200, "{answer}");
    let body = json!({"name": "f", "attributes": {"kind": "fc", "port": "fcs0"}});
    assert_eq!(bench.call("POST", "/v1/adapters", body).await.0, 201);
    assert_eq!(bench.get("/v1/adapters/f").await["link"], up);
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_that_cannot_run_are_named_for_as_long_as_it_is_so() {
    let bench = Bench::san().await;
    let of = async |object: &str| bench.get(object).await["warnings"].clone();
    assert_eq!(of("/v1/adapters/f").await, Value::Null);
    bench.set("adapters/f", json!({"num_per_range": 16})).await;
    let said = of("/v1/adapters/f").await;
    assert!(said[0].as_str().unwrap().contains("asks for 16 channels (`num_per_range`)"), "{said}");
    assert_eq!(bench.get("/v1/status").await["adapters"][0]["warnings"], said);
    bench.set("adapters/f", json!({"num_per_range": 2})).await;
    assert_eq!(of("/v1/adapters/f").await, Value::Null);
    bench.set("dataplanes/main", json!({"channels": 4, "cpus": "0"})).await;
    let said = of("/v1/dataplanes/main").await;
    assert!(said[0].as_str().unwrap().contains("4 channels and 1 CPUs"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_explains_every_term() {
    let bench = Bench::san().await;
    let limit = || async { bench.get("/v1/adapters/f/explain").await };
    let first = limit().await;
    assert_eq!((&first["channels"], &first["limited_by"]), (&json!(2), &json!("data_plane")));
    assert_eq!(first["then"], json!([8, "inherited"]));
    // Two that are as small: raising one of them brings nothing.
    bench.set("adapters/f", json!({"num_per_range": 2})).await;
    let tie = limit().await;
    let remedy = tie["remedy"].as_str().unwrap();
    assert!(remedy.contains("`num_per_range`") && remedy.contains("the data plane more"), "{tie}");
    assert_eq!((&tie["channels"], &tie["then"]), (&json!(2), &Value::Null));
    bench.set("adapters/f", json!({"num_per_range": null, "limit_intr": true})).await;
    let second = limit().await;
    assert_eq!((&second["channels"], &second["limited_by"]), (&json!(1), &json!("limit_intr")));
    assert!(second["remedy"].as_str().unwrap().contains("limit_intr"));
    let source = |name: &str| {
        let all = second["attributes"].as_array().unwrap();
        all.iter().find(|a| a["attribute"] == name).unwrap()["source"].clone()
    };
    assert_eq!(source("num_local_cmds"), "default");
    assert_eq!(source("limit_intr"), "set");
    bench.set("dataplanes/main", json!({"num_local_cmds": 9})).await;
    let third = limit().await;
    let all = third["attributes"].as_array().unwrap();
    let own = all.iter().find(|a| a["attribute"] == "num_local_cmds").unwrap();
    assert_eq!((&own["value"], &own["source"]), (&json!("9"), &json!("dataplane main")));
}

/// An attribute of an explanation: its value and where that comes from.
fn explained(explanation: &Value, name: &str) -> (String, String) {
    let all = explanation["attributes"].as_array().unwrap();
    let found = all.iter().find(|each| each["attribute"] == name).unwrap();
    let text = |field: &str| found[field].as_str().unwrap().to_owned();
    (text("value"), text("source"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attribute_says_where_its_value_comes_from() {
    let bench = Bench::san().await;
    let of = |value: &str, source: &str| (value.to_owned(), source.to_owned());
    let first = bench.get("/v1/adapters/f/explain").await;
    let kinds = Object::Adapter.attributes().filter(|a| a.is_of(Some("fc")) && !a.hidden);
    for attribute in kinds {
        let (value, source) = explained(&first, attribute.name);
        let none = ["limit_iops_burst", "limit_bytes_burst", "client_name", "owner", "group"];
        let none = none.contains(&attribute.name);
        assert_eq!(value.is_empty(), none, "{}", attribute.name);
        let set = ["kind", "port", "wwpns"].contains(&attribute.name);
        assert_eq!(source, if set { "set" } else { "default" }, "{}", attribute.name);
    }
    assert_eq!(explained(&first, "num_per_range"), of("8", "default"));
    assert!(explained(&first, "socket").0.ends_with("/f.sock"));
    bench.set("dataplanes/main", json!({"num_per_range": 5})).await;
    bench.set("ports/fcs0", json!({"max_xfer_size": "256KiB"})).await;
    bench.set("adapters/f", json!({"limit_iops": 70, "queue_depth": 9})).await;
    let second = bench.get("/v1/adapters/f/explain").await;
    assert_eq!(explained(&second, "num_per_range"), of("5", "dataplane main"));
    assert_eq!(explained(&second, "max_xfer_size"), of("256KiB", "port fcs0"));
    assert_eq!(explained(&second, "limit_iops_burst"), of("7", "default"));
    assert_eq!(explained(&second, "queue_depth"), of("9", "set"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_lends_its_commands_to_its_adapters() {
    let bench = Bench::san().await;
    let body = json!({"name": "g", "attributes": {"kind": "fc", "port": "fcs0"}});
    assert_eq!(bench.call("POST", "/v1/adapters", body).await.0, 201);
    // What each may have, how much the port has, and its share of that.
    let sent = |name: &str| {
        let fake = bench.fake("main");
        let books = fake.books();
        let mut adapters = books.status.adapters.iter();
        let adapter = adapters.find(|adapter| adapter.spec.name == name).unwrap();
        let scsi = adapter.spec.scsi().unwrap().clone();
        let port = scsi.port.map(|port| (port.name, port.num_cmd_elems, port.share));
        (scsi.commands.num_cmd_elems, port)
    };
    let on = |own, elements, share| (own, Some(("fcs0".to_owned(), elements, share)));
    assert_eq!((sent("f"), sent("g")), (on(1024, 2048, 100), on(1024, 2048, 100)));
    bench.set("ports/fcs0", json!({"num_cmd_elems": 1000})).await;
    bench.set("adapters/g", json!({"share": 300})).await;
    assert_eq!((sent("f"), sent("g")), (on(1024, 1000, 100), on(1024, 1000, 300)));
    let explanation = bench.get("/v1/adapters/f/explain").await;
    let commands = &explanation["commands"];
    assert_eq!(commands["num_cmd_elems"], 1000);
    assert_eq!(commands["limited_by"], "port");
    let counts: Vec<_> = (0..3).map(|term| commands["terms"][term]["count"].clone()).collect();
    assert_eq!(counts, [json!(1024), json!(1000), json!(250)]);
    let source = commands["terms"][2]["source"].as_str().unwrap();
    let asked = "its 2 adapters ask for 2048; while all wait, `share` 100 (default) of 400 counts";
    assert_eq!(source, asked);
    let bounded = ("1000".to_owned(), "port fcs0".to_owned());
    assert_eq!(explained(&explanation, "num_cmd_elems"), bounded);
    // Enough for all bounds nobody.
    bench.set("adapters/f", json!({"num_cmd_elems": 100})).await;
    bench.set("adapters/g", json!({"num_cmd_elems": 900})).await;
    let explanation = bench.get("/v1/adapters/g/explain").await;
    assert_eq!(explanation["commands"]["limited_by"], "adapter");
    assert_eq!(explanation["commands"]["terms"][2]["count"], json!(null));
    bench.set("adapters/g", json!({"port": null, "num_cmd_elems": 2000})).await;
    assert_eq!(sent("g"), (2000, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_data_plane_cannot_reset_marks_and_says_so() {
    let bench = Bench::san().await;
    // It knows the first messages only, and would answer this one with an error of its own.
    bench.with_an_earlier_program().await;
    let (status, refusal) = bench.call("POST", "/v1/adapters/f/reset-marks", json!({})).await;
    assert_eq!(status, 400, "{refusal}");
    let text = refusal.to_string();
    assert!(text.contains("earlier version") && text.contains("dataplane restart"), "{text}");
    assert_eq!(bench.call("POST", "/v1/adapters/x/reset-marks", json!({})).await.0, 404);
    let (status, refusal) = bench.call("POST", "/v1/ports/fcs0/reset-marks", json!({})).await;
    assert_eq!(status, 400, "{refusal}");
    let text = refusal.to_string();
    assert!(text.contains("port `fcs0`") && text.contains("earlier version"), "{text}");
    assert_eq!(bench.call("POST", "/v1/ports/x/reset-marks", json!({})).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused_and_says_what_mends_it() {
    let bench = Bench::san().await;
    bench.apply(&format!("{SAN}[adapter.disk]\nvolume=\"c\"\n[volume.c]\nkind=\"null\"\nsize=4096\n[adapter.s]\nkind=\"scsi\"\n[adapter.own]\nvolume=\"shared\"\n[volume.shared]\nkind=\"null\"\nsize=4096\nshareable=true\n")).await;
    let post = |path: &str, name: &str, attributes: Value| {
        let body = json!({"name": name, "attributes": attributes});
        let path = format!("/v1/{path}");
        let bench = &bench;
        async move { bench.call("POST", &path, body).await }
    };
    let conflict = json!({"initiators": "f", "targets": "t", "luns": "0=1"});
    let all = [
        (post("adapters", "g", json!({"kind": "fc", "volume": "a"})).await, "has no `volume`"),
        (post("adapters", "g", json!({"port": "fcs0", "volume": "a"})).await, "has no `port`"),
        (
            post("adapters", "g", json!({"kind": "fc", "port": "fcs9"})).await,
            "there is no port `fcs9`",
        ),
        (post("adapters", "g", json!({"volume": "a"})).await, "both as a disk and as a LUN"),
        (post("targets", "u", json!({"luns": "0=shared"})).await, "would pass by its reservations"),
        (post("adapters", "c050760000010009", json!({"kind": "fc"})).await, "could be a WWPN"),
        (post("targets", "f", json!({})).await, "an adapter has that name"),
        (post("targets", "u", json!({"luns": "0=nothing"})).await, "there is no volume `nothing`"),
        (post("targets", "u", json!({"luns": "0=c"})).await, "both as a disk and as a LUN"),
        (post("targets", "u", json!({"id": 0})).await, "target `t` has the number 0"),
        (post("targets", "u", json!({"wwpn": "c050760000010002"})).await, "is a WWPN of"),
        (post("zones", "y", json!({"members": "f,nobody"})).await, "there is no adapter or target"),
        (post("zones", "y", json!({"members": "disk"})).await, "no virtual Fibre Channel adapter"),
        (post("zones", "y", json!({"members": "../f"})).await, "is not a name"),
        (post("masks", "n", conflict).await, "under one number, 0"),
        (post("masks", "n", json!({"initiators": "f"})).await, "it must be set"),
        (
            post("vtds", "d", json!({"adapter": "f", "volume": "a"})).await,
            "is no virtual SCSI adapter",
        ),
        (
            post("vtds", "d", json!({"adapter": "s", "kind": "optical", "volume": "a"})).await,
            "has no `volume`",
        ),
        (post("media", "iso", json!({"path": "/nowhere.iso"})).await, "No such file"),
    ];
    for ((status, answer), problem) in all {
        assert!((400..=500).contains(&status), "{status} {answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains(problem), "{message}");
        assert!(answer["help"].is_string(), "{answer} without help");
    }
    for (path, problem) in [
        ("ports/fcs0", "port `fcs0` is used by"),
        ("targets/t", "target `t` is used by zone `z`"),
        ("volumes/a", "volume `a` is used by target `t`"),
        ("adapters/f", "adapter `f` is used by zone `z`"),
    ] {
        let (status, answer) = bench.call("DELETE", &format!("/v1/{path}"), Value::Null).await;
        assert_eq!(status, 409, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(problem), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_takes_as_many_adapters_as_its_speed_allows() {
    let bench = Bench::new().await;
    let all = |count: usize, speed: u32| -> String {
        let adapters = (0..count).map(|n| format!("[adapter.f{n}]\nkind=\"fc\"\nport=\"fcs0\"\n"));
        format!("[port.fcs0]\nlink_speed={speed}\n{}", adapters.collect::<String>())
    };
    for (count, speed, fits) in [(64, 16, true), (65, 16, false), (255, 32, true), (300, 32, false)]
    {
        let (status, answer) = bench.text("POST", "/v1/apply", all(count, speed)).await;
        assert_eq!(status == 200, fits, "{count} at {speed}: {answer}");
        assert!(fits || answer.contains("max_adapters"), "{answer}");
    }
    let more = all(300, 32).replace("link_speed", "max_adapters=300\nlink_speed");
    let (status, answer) = bench.text("POST", "/v1/apply", more).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(bench.fake("main").books().status.adapters.len(), 300);
    assert_eq!(bench.get("/v1/ports/fcs0").await["used_by"].as_array().unwrap().len(), 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn media_are_loaded_and_unloaded_under_a_running_client() {
    let bench = Bench::new().await;
    let iso = |name: &str| bench.dir.path().join(name);
    for name in ["0.iso", "1.iso"] {
        std::fs::write(iso(name), vec![0; 4096]).unwrap();
    }
    bench.apply(&format!(
        "[medium.m0]\npath=\"{}\"\n[medium.m1]\npath=\"{}\"\ncopy=true\n[adapter.s]\nkind=\"scsi\"\n\
         [vtd.cd]\nkind=\"optical\"\nadapter=\"s\"\n",
        iso("0.iso").display(),
        iso("1.iso").display()
    )).await;
    let medium = || bench.fake("main").books().status.units[0].spec.volume.clone();
    assert_eq!((bench.luns("s"), medium()), (vec![lun(0, 0, "optical.cd")], None));
    bench.set("vtds/cd", json!({"medium": "m0"})).await;
    assert_eq!(medium().as_deref(), Some("optical.m0"));
    bench.set("vtds/cd", json!({"medium": "m1"})).await;
    assert_eq!(medium().as_deref(), Some("optical.m1"));
    let copy = bench.dir.path().join("media/m1.iso");
    assert_eq!(std::fs::read(&copy).unwrap().len(), 4096);
    assert_eq!(bench.call("DELETE", "/v1/media/m1", Value::Null).await.0, 409);
    bench.set("vtds/cd", json!({ "medium": null })).await;
    assert_eq!(medium(), None);
    assert!(bench.fake("main").books().status.volumes.is_empty());
    assert_eq!(bench.call("DELETE", "/v1/media/m1", Value::Null).await.0, 200);
    assert!(!copy.exists() && iso("0.iso").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_go_with_their_volume() {
    let bench = Bench::san().await;
    let kept = bench.dir.path().join("reservations/b");
    std::fs::write(&kept, "kept").unwrap();
    bench.apply(&SAN.replace(",1=b", "")).await;
    assert!(kept.exists());
    bench
        .apply(&SAN.replace(",1=b", "").replace("[volume.b]\nkind = \"null\"\nsize = 8192\n", ""))
        .await;
    assert!(!kept.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lun_that_cannot_be_opened_leaves_the_others_alone() {
    let bench = Bench::san().await;
    let missing = format!(
        "{}[volume.x]\nkind=\"file\"\npath=\"/missing/x\"\n",
        SAN.replace("1=b", "1=b,2=x")
    );
    let (_, applied) = bench.text("POST", "/v1/apply", missing).await;
    let applied: Value = serde_json::from_str(&applied).unwrap();
    assert!(!applied["failures"].as_array().unwrap().is_empty());
    assert_eq!(bench.luns("f"), [lun(0, 0, "a"), lun(0, 1, "b")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_keeps_its_counters_and_says_who_waits_for_whom() {
    use protocol::stats::{QueueCounter, SHORT_STILL};
    let bench = Bench::san().await;
    for (name, elements) in [("g", 200), ("h", 200)] {
        let attributes = json!({"kind": "fc", "port": "fcs0", "num_cmd_elems": elements});
        let body = json!({"name": name, "attributes": attributes});
        assert_eq!(bench.call("POST", "/v1/adapters", body).await.0, 201);
    }
    bench.set("ports/fcs0", json!({"num_cmd_elems": 300})).await;
    let fake = bench.fake("main");
    let of_port = |stats: &Value, port: &str, counter: &str| {
        let mut ports = stats["ports"].as_array().unwrap().iter();
        ports.find(|one| one["port"] == port).unwrap()["counters"][counter].clone()
    };
    for (name, active, waits) in [("f", 190, 0), ("g", 80, 7), ("h", 30, 0)] {
        let queue = fake.queue_stats(name, 2).unwrap();
        queue.add(QueueCounter::Reads, 100);
        queue.add(QueueCounter::WaitNoElement, waits);
        queue.set(QueueCounter::Active, active);
    }
    fake.adapter_stats("g").unwrap().set_short(1000, SHORT_STILL);
    let port = bench.get("/v1/ports/fcs0/explain").await;
    assert_eq!((&port["active"], &port["num_cmd_elems"]), (&json!(300), &json!(300)));
    assert_eq!((&port["held_up_by"], &port["short_since_ms"]), (&json!("f"), &json!(1000)));
    let remedy = port["remedy"].as_str().unwrap();
    assert!(remedy.starts_with("raise the port's `num_cmd_elems`"), "{remedy}");
    let parts: Vec<_> = (0..3).map(|one| port["adapters"][one]["part"].clone()).collect();
    assert_eq!(parts, [json!(100), json!(100), json!(100)]);
    // Who waits is told that it is the port, and not its own bound.
    let waits = bench.get("/v1/adapters/g/explain").await["commands"].clone();
    assert_eq!((&waits["limited_by"], &waits["remedy"]), (&json!("port_share"), &json!(remedy)));
    assert_eq!(bench.get("/v1/adapters/h/explain").await["commands"]["short"], Value::Null);
    let text = bench.text("GET", "/metrics", String::new()).await.1;
    let line = "trunkline_port_wait_no_adapter_element_total{port=\"fcs0\",dataplane=\"main\"} 7";
    assert!(text.contains(line), "{text}");
    // Mapped elsewhere, what it did stays; what it does then is another port's.
    bench.set("adapters/g", json!({"port": "fcs1"})).await;
    fake.queue_stats("g", 3).unwrap().add(QueueCounter::Reads, 5);
    let stats = bench.get("/v1/stats").await;
    assert_eq!(of_port(&stats, "fcs0", "reads"), 300);
    assert_eq!(of_port(&stats, "fcs0", "wait_no_adapter_element"), 7);
    assert_eq!(of_port(&stats, "fcs1", "reads"), 5);
    let of_g = &stats["ports"][0]["adapters"][1];
    assert_eq!((&of_g["adapter"], &of_g["here"]), (&json!("g"), &json!(false)));
    assert_eq!(of_g["counters"]["reads"], 100);
    assert_eq!(bench.call("GET", "/v1/ports/none/explain", Value::Null).await.0, 404);
}
