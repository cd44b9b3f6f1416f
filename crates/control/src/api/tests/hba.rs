//! Ports that stand for an HBA of the host, over the API, with a tree that looks as the kernel's sysfs.

use super::*;
use crate::model::resolve;

const WWPNS: &str = "c0:50:76:00:00:01:00:00,c0:50:76:00:00:01:00:01";
const ORDER: &str = "c050760000010000:20000090fa000001";
const ADAPTER: &str = "[port.fcs0]\nhost=\"host3\"\n[port.fcs1]\nhost=\"host4\"\n[port.own]\n";

impl Bench {
    /// With two ports on HBAs, of which the host has the first, and one without.
    async fn hba() -> Bench {
        let bench = Bench::new().await;
        bench.hba_appears(3);
        let (status, applied) = bench.text("POST", "/v1/apply", ADAPTER.to_owned()).await;
        assert_eq!(status, 200, "{applied}");
        bench
    }

    fn sys(&self, path: &str, text: &str) {
        let path = self.dir.path().join("sys/class").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn order(&self, order: &str) -> String {
        let path = self.dir.path().join("sys/class/fc_host").join(order);
        std::fs::read_to_string(path).unwrap()
    }

    fn hba_appears(&self, number: u32) {
        let host = format!("fc_host/host{number}");
        self.sys(&format!("{host}/port_name"), "0x10000090fa000001\n");
        self.sys(&format!("{host}/node_name"), "0x20000090fa000001\n");
        self.sys(&format!("{host}/vport_create"), "");
        self.sys(&format!("{host}/vport_delete"), "");
    }

    /// What the kernel does after `vport_create`, and after `vport_delete`.
    fn vport_appears(&self) {
        self.sys("fc_host/host7/port_name", "0xc050760000010000\n");
    }

    fn vport_goes(&self) {
        std::fs::remove_dir_all(self.dir.path().join("sys/class/fc_host/host7")).unwrap();
    }

    fn lun_appears(&self, target: u8, lun: u16, device: &str) {
        let name = format!("0x500507680100000{target}\n");
        self.sys(&format!("fc_transport/target7:0:{target}/port_name"), &name);
        let folder = format!("scsi_device/7:0:{target}:{lun}/device");
        self.sys(&format!("{folder}/block/{device}/size"), "8\n");
        self.sys(&format!("{folder}/wwid"), &format!("naa.500000000000000{lun}\n"));
    }

    fn lun_goes(&self, target: u8, lun: u16) {
        let folder = format!("sys/class/scsi_device/7:0:{target}:{lun}");
        std::fs::remove_dir_all(self.dir.path().join(folder)).unwrap();
    }

    async fn map(&self, port: Value) -> (u16, Value) {
        let body = json!({"attributes": {"port": port}});
        self.call("PATCH", "/v1/adapters/f", body).await
    }

    async fn adapter_on(&self, port: &str) -> (u16, Value) {
        let attributes = json!({"kind": "fc", "port": port, "wwpns": WWPNS});
        self.call("POST", "/v1/adapters", json!({"name": "f", "attributes": attributes})).await
    }

    async fn shows(&self, luns: &[(u8, u16)]) {
        let wanted: Vec<_> = luns
            .iter()
            .map(|(target, lun)| (*target, *lun, format!("hba.500000000000000{lun}")))
            .collect();
        eventually(|| self.luns("f") == wanted).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_sees_what_appears_under_its_virtual_port() {
    let bench = Bench::hba().await;
    assert_eq!(bench.adapter_on("fcs0").await.0, 201);
    assert_eq!(bench.order("host3/vport_create"), ORDER);
    bench.vport_appears();
    bench.shows(&[]).await;
    bench.lun_appears(2, 0, "test-b");
    bench.lun_appears(2, 1, "test-c");
    bench.shows(&[(2, 0), (2, 1)]).await;
    bench.sys("fc_host/host3/vport_create", "");
    let spec = bench.fake("main").books().status.adapters[0].spec.clone();
    assert_eq!(spec.scsi().unwrap().targets[0].wwpn, Some(0x5005_0768_0100_0002));
    let volume = bench.fake("main").books().status.volumes[0].spec.clone();
    let device = bench.dir.path().join("dev/test-b");
    assert!(matches!(&volume.kind, spec::VolumeKind::File(file) if file.path == device));
    assert!(!volume.read_only);
    bench.lun_appears(5, 2, "test-d");
    bench.shows(&[(2, 0), (2, 1), (5, 2)]).await;
    let logins = bench.get("/v1/logins").await["items"][0].clone();
    assert_eq!(logins["targets"][1]["wwpn"], "50:05:07:68:01:00:00:05");
    assert_eq!(logins["targets"][1]["luns"][0]["naa"], "5000000000000002");
    // A new control plane finds all as it is, and goes on looking.
    let log = bench.fake("main").books().log.len();
    let bench = bench.restart().await;
    assert_eq!(bench.fake("main").books().log.len(), log);
    bench.lun_goes(2, 1);
    bench.shows(&[(2, 0), (5, 2)]).await;
    assert_eq!(bench.order("host3/vport_create"), "");
    assert_eq!(bench.order("host3/vport_delete"), "");
    assert_eq!(bench.call("DELETE", "/v1/adapters/f", Value::Null).await.0, 200);
    assert_eq!(bench.order("host3/vport_delete"), ORDER);
    assert!(bench.fake("main").books().status.volumes.is_empty());
    assert!(bench.fake("main").books().status.units.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_that_is_unmapped_has_no_virtual_port() {
    let bench = Bench::hba().await;
    bench.adapter_on("fcs0").await;
    bench.vport_appears();
    bench.lun_appears(0, 4, "test-b");
    bench.shows(&[(0, 4)]).await;
    // The disk goes before the virtual port does.
    assert_eq!(bench.map(Value::Null).await.0, 200);
    assert_eq!((bench.luns("f"), bench.order("host3/vport_delete")), (vec![], ORDER.to_owned()));
    bench.vport_goes();
    bench.sys("fc_host/host3/vport_delete", "");
    assert_eq!(bench.map(json!("own")).await.0, 200);
    assert_eq!(bench.order("host3/vport_delete"), "");
    assert_eq!(bench.luns("f"), []);
    let desired = bench.server.desired();
    assert!(desired.allocations.vports.is_empty() && desired.discovered.seen.is_empty());
    // Nobody looks any more; an adapter that comes later is looked after again.
    bench.hba_appears(4);
    assert_eq!(bench.map(json!("fcs1")).await.0, 200);
    assert_eq!(bench.order("host4/vport_create"), ORDER);
    bench.vport_appears();
    bench.shows(&[(0, 4)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_virtual_port_that_cannot_be_made_is_refused_or_tried_again() {
    let bench = Bench::hba().await;
    let (status, answer) = bench.adapter_on("fcs1").await;
    assert_eq!(status, 500);
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("host4 is no Fibre Channel HBA with NPIV"), "{message}");
    assert!(answer["help"].as_str().unwrap().contains("port map f PORT"), "{answer}");
    assert_eq!(bench.get("/v1/adapters").await["items"], json!([]));
    // What is applied stays, says what is wrong, and comes when it can.
    let adapter = format!("[adapter.f]\nkind=\"fc\"\nport=\"fcs1\"\nwwpns=\"{WWPNS}\"\n");
    let (status, applied) = bench.text("POST", "/v1/apply", format!("{ADAPTER}{adapter}")).await;
    assert!(status == 200 && applied.contains("no virtual port on host4"), "{applied}");
    let reason = bench.get("/v1/adapters/f").await["reason"].to_string();
    assert!(
        reason.contains("no virtual port on host4") && reason.contains("port map f"),
        "{reason}"
    );
    bench.hba_appears(4);
    eventually(|| bench.order("host4/vport_create") == ORDER).await;
    eventually(|| bench.server.desired().discovered.troubles.is_empty()).await;
    assert_eq!(bench.get("/v1/adapters/f").await["reason"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn zones_and_targets_of_the_server_are_not_on_an_hba() {
    let bench = Bench::hba().await;
    let san = format!(
        "{ADAPTER}[volume.v]\nkind=\"null\"\nsize=4096\n[target.t]\nluns=\"0=v\"\n\
         [adapter.f]\nkind=\"fc\"\nport=\"fcs0\"\nwwpns=\"{WWPNS}\"\n\
         [zone.z]\nmembers=\"f,t\"\n[mask.m]\ninitiators=\"f\"\ntargets=\"t\"\n"
    );
    bench.apply(&san).await;
    assert_eq!(bench.luns("f"), []);
    assert_eq!(bench.map(json!("own")).await.0, 200);
    assert_eq!(bench.luns("f"), [(0, 0, "v".to_owned())]);
    for (path, attributes, problem) in [
        ("targets/t", json!({"ports": "fcs0"}), "stands for the HBA host3"),
        ("ports/fcs0", json!({"host": "host4"}), "fixed"),
    ] {
        let body = json!({ "attributes": attributes });
        let (status, answer) = bench.call("PATCH", &format!("/v1/{path}"), body).await;
        assert!((400..500).contains(&status), "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(problem), "{answer}");
    }
    for host in ["../host3", "host", "3", "host+3"] {
        let body = json!({"name": "p", "attributes": {"host": host}});
        let (status, answer) = bench.call("POST", "/v1/ports", body).await;
        assert!(status == 422 || status == 400, "{status} {answer}");
        assert!(answer["message"].as_str().unwrap().contains("no name of an HBA"), "{answer}");
    }
    let desired = bench.server.desired();
    let wanted = resolve::wanted(&desired, "main", bench.server.paths());
    assert_eq!(wanted.volumes.len(), 1);
}
