//! Networks over the API: frames that are watched, and cards that are down.

use protocol::message::{FailoverStatus, Passed, Tally};

use super::*;

const NETWORK: &str = "[network.net0]\n[adapter.ent0]\nkind = \"ethernet\"\nnetwork = \"net0\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_watched_is_refused() {
    let bench = Bench::new().await;
    bench.apply(NETWORK).await;
    let trace = |network: &str, body: Value| {
        let path = format!("/v1/networks/{network}/trace");
        let bench = &bench;
        async move { bench.call("POST", &path, body).await }
    };
    assert_eq!(trace("net9", json!({"id": 1})).await.0, 404);
    for (wrong, why) in [
        (json!({"id": 1, "mac": "ff"}), "no MAC address"),
        (json!({"id": 1, "vlan": 4095}), "1 to 4094"),
        (json!({"id": 1, "colour": "red"}), "colour"),
    ] {
        let (status, refusal) = trace("net0", wrong).await;
        assert!(status == 400 && refusal.to_string().contains(why), "{refusal}");
    }
    // It knows the first messages only.
    bench.with_an_earlier_program().await;
    let (status, refusal) = trace("net0", json!({"id": 1})).await;
    assert!(status == 400 && refusal.to_string().contains("earlier version"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_nobody_uses_is_down_and_says_why() {
    let bench = Bench::new().await;
    bench.apply(NETWORK).await;
    let explanation = bench.get("/v1/adapters/ent0/explain").await;
    let card = &explanation["card"];
    assert_eq!(card["up"], json!(false));
    let text = card["down"].to_string();
    assert!(text.contains("no client") && text.contains("emit qemu ent0"), "{text}");
    assert!(text.contains("nobody else of its network is in its VLANs (1)"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_says_what_the_thread_of_its_bridge_means() {
    let bench = Bench::new().await;
    let sea = |thread: u8| {
        format!(
            "{NETWORK}[uplink.ent1]\n[trunk.ent5]\nnetwork = \"net0\"\n[sea.ent2]\nreal_adapter = \"ent1\"\n\
             virt_adapters = \"ent5\"\npvid_adapter = \"ent5\"\npvid = 1\nthread = {thread}\n"
        )
    };
    let explained = |channels: usize| {
        let bench = &bench;
        async move {
            {
                let fake = bench.fake("main");
                let status = &mut fake.books().status;
                status.adapters[0].state = AdapterState::Running;
                status.channels.truncate(channels);
            }
            let all = bench.get("/v1/adapters/ent0/explain").await;
            (all["card"]["slow"].to_string(), all["terms"][2].clone())
        }
    };
    bench.apply(&sea(0)).await;
    let (slow, term) = explained(2).await;
    assert!(!slow.contains("thread") && term["count"] == 2, "{slow} {term}");
    bench.apply(&sea(1)).await;
    let (slow, term) = explained(2).await;
    assert!(slow.contains("`thread` of `ent2` is 1") && term["count"] == 1, "{slow} {term}");
    assert!(term["source"].as_str().unwrap().contains("without that of ent2 (thread=1)"), "{term}");
    let (slow, term) = explained(1).await;
    assert!(slow.contains("no channel of its own") && term["count"] == 1, "{slow} {term}");
    assert!(!term["source"].as_str().unwrap().contains("without"), "{term}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_says_how_many_of_its_pairs_its_client_uses() {
    let bench = Bench::new().await;
    // Of each pair two queues.
    for (offered, used, told) in [(1, 2, false), (2, 2, true), (2, 4, false), (16, 2, true)] {
        bench.apply(&format!("{NETWORK}queues = {offered}\n")).await;
        {
            let fake = bench.fake("main");
            let adapter = &mut fake.books().status.adapters[0];
            (adapter.state, adapter.client_queues) = (AdapterState::Running, used);
            adapter.features = vec!["host_tso4".to_owned()];
        }
        let slow = bench.get("/v1/adapters/ent0/explain").await["card"]["slow"].to_string();
        let text = format!("one of {offered} pairs");
        assert_eq!(slow.contains("pairs of queues"), told, "{offered} {used}: {slow}");
        assert!(!told || slow.contains(&text), "{slow}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_partners_bridge_now_is_checked_as_well() {
    let bench = Bench::new().await;
    let part = |number: u8| {
        format!(
            "[dataplane.d{number}]\n[network.net{number}]\ndataplane = \"d{number}\"\n[uplink.up{number}]\n[trunk.ent{number}]\nnetwork = \"net{number}\"\n[sea.sea{number}]\n\
             real_adapter = \"up{number}\"\nvirt_adapters = \"ent{number}\"\npvid_adapter = \"ent{number}\"\npvid = 1\n\
             ha_mode = \"auto\"\nctl_chan = \"/run/t/sea.lock\"\npriority = {number}\n"
        )
    };
    bench.apply(&(part(1) + &part(2))).await;
    let bench = &bench;
    let check = |states: [&'static str; 2], bridges: [&'static [u16]; 2]| async move {
        for (at, name) in ["d1", "d2"].into_iter().enumerate() {
            let fake = bench.fake(name);
            fake.books().status.uplinks[0].failover = Some(FailoverStatus {
                state: states[at].to_owned(),
                reason: String::new(),
                partner: None,
                bridges: bridges[at].to_vec(),
                takeovers: 0,
                since_ms: 0,
                answers: None,
            });
        }
        bench.get("/v1/sea-check").await["items"].to_string()
    };
    let fine = check(["PRIMARY", "BACKUP"], [&[1], &[]]).await;
    assert!(!fine.contains("both-bridge") && !fine.contains("neither-bridges"), "{fine}");
    let both = check(["PRIMARY", "PRIMARY"], [&[1], &[1]]).await;
    assert!(both.contains("both-bridge"), "{both}");
    let neither = check(["LIMBO", "BACKUP"], [&[], &[]]).await;
    assert!(neither.contains("neither-bridges") && !neither.contains("state-against"), "{neither}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_a_shared_adapter_is_shown_by_client_and_by_trunk_adapter() {
    let bench = Bench::new().await;
    let sea = |accounting: &str| {
        format!(
            "{NETWORK}[uplink.ent1]\n[trunk.ent5]\nnetwork = \"net0\"\n[trunk.ent7]\nnetwork = \"net0\"\npvid = 2\nvlans = \"20,30\"\n\
             [sea.ent2]\nreal_adapter = \"ent1\"\nvirt_adapters = \"ent5,ent7\"\npvid_adapter = \"ent5\"\npvid = 1\naccounting = \"{accounting}\"\n"
        )
    };
    bench.apply(&sea("disabled")).await;
    assert_eq!(bench.call("GET", "/v1/seas/ent9/clients", json!({})).await.0, 404);
    let (status, refusal) = bench.call("GET", "/v1/seas/ent2/clients", json!({})).await;
    assert!(status == 400 && refusal.to_string().contains("--accounting enabled"), "{refusal}");
    bench.apply(&sea("enabled")).await;
    let passed = |frames| Passed { frames, bytes: 100 * frames };
    let tally = |station, vlan, sent, received| Tally {
        station,
        vlan,
        sent: passed(sent),
        received: passed(received),
        ..Tally::default()
    };
    bench.fake("main").books().tallies = vec![
        tally(None, 1, 5, 6),
        Tally {
            address: Some([10, 0, 0, 7].into()),
            ..tally(Some([2, 0, 0, 0, 0, 0xaa]), 1, 3, 4)
        },
        tally(None, 20, 7, 8),
        Tally { priority: 5, ..tally(Some([2, 0, 0, 0, 0, 0xaa]), 20, 1, 2) },
        tally(None, 30, 10, 20),
    ];
    let seen = bench.get("/v1/seas/ent2/clients").await;
    let counts = |sent: u64, received: u64| {
        json!({
            "sent_frames": sent, "sent_bytes": 100 * sent,
            "received_frames": received, "received_bytes": 100 * received,
        })
    };
    let with = |counts: Value, more: Value| {
        let mut all = more;
        all.as_object_mut().unwrap().extend(counts.as_object().unwrap().clone());
        all
    };
    let mac = "02:00:00:00:00:aa";
    let wanted = json!({
        "clients": [
            with(counts(3, 4), json!({"mac": mac, "vlan": 1, "untagged": true, "priority": 0, "ip": "10.0.0.7"})),
            with(counts(1, 2), json!({"mac": mac, "vlan": 20, "untagged": false, "priority": 5})),
        ],
        "trunks": [
            with(counts(5, 6), json!({"trunk": "ent5"})),
            with(counts(17, 28), json!({"trunk": "ent7"})),
        ],
    });
    assert_eq!(seen, wanted);
    let (status, cleared) = bench.call("POST", "/v1/seas/ent2/clear-clients", json!({})).await;
    assert_eq!((status, cleared), (200, wanted));
    assert_eq!(bench.get("/v1/seas/ent2/clients").await["clients"], json!([]));
    bench.with_an_earlier_program().await;
    let (status, refusal) = bench.call("GET", "/v1/seas/ent2/clients", json!({})).await;
    assert!(status == 400 && refusal.to_string().contains("earlier version"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vlan_says_who_is_in_it_and_who_bridges_it() {
    let bench = Bench::new().await;
    bench
        .apply(
            "[network.net0]\n[network.net1]\n\
             [adapter.ent0]\nkind = \"ethernet\"\nnetwork = \"net0\"\nvlans = \"20\"\n\
             [adapter.ent3]\nkind = \"ethernet\"\nnetwork = \"net0\"\npvid = 20\n\
             [adapter.ent4]\nkind = \"ethernet\"\nnetwork = \"net0\"\npvid = 40\ntagging = \"tunnel\"\n\
             [adapter.ent8]\nkind = \"ethernet\"\nnetwork = \"net0\"\nmonitor = true\n\
             [uplink.ent1]\n[trunk.ent5]\nnetwork = \"net0\"\n[trunk.ent7]\nnetwork = \"net0\"\npvid = 2\nvlans = \"20,30\"\n\
             [sea.ent2]\nreal_adapter = \"ent1\"\nvirt_adapters = \"ent5,ent7\"\npvid_adapter = \"ent5\"\npvid = 1\n\
             ha_mode = \"sharing\"\nctl_chan = \"/run/t/sea.lock\"\npriority = 3\n\
             [uplink.ent9]\nnetwork = \"net1\"\npvid = 7\n",
        )
        .await;
    bench.fake("main").books().status.uplinks[0].failover = Some(FailoverStatus {
        state: "PRIMARY_SH".to_owned(),
        reason: String::new(),
        partner: None,
        bridges: vec![1, 30],
        takeovers: 0,
        since_ms: 0,
        answers: None,
    });
    let port = |name: &str, tagged: bool| json!({"adapter": name, "tagged": tagged});
    let sea = |trunk: &str, tagged: bool, state: &str| {
        json!({
            "uplink": "ent1", "sea": "ent2", "trunk": trunk, "priority": 3,
            "tagged": tagged, "state": state, "failover": "PRIMARY_SH",
        })
    };
    let vlan = |network: &str, vlan: u16, ports: Value, bridge: Option<Value>| {
        let mut view = json!({"network": network, "vlan": vlan, "ports": ports});
        if let Some(bridge) = bridge {
            view["bridge"] = bridge;
        }
        view
    };
    let alone = json!({"uplink": "ent9", "tagged": false, "state": "bridges"});
    let both = json!([port("ent0", true), port("ent3", false)]);
    let wanted = json!([
        vlan("net0", 1, json!([port("ent0", false)]), Some(sea("ent5", false, "bridges"))),
        vlan("net0", 20, both, Some(sea("ent7", true, "standby"))),
        vlan("net0", 30, json!([]), Some(sea("ent7", true, "bridges"))),
        vlan("net0", 40, json!([port("ent4", false)]), None),
        vlan("net1", 7, json!([]), Some(alone)),
    ]);
    assert_eq!(bench.get("/v1/vlans").await["items"], wanted);
}
