//! A volume's file that is missing or another one.

use super::*;
use crate::model::files::Made;
use protocol::message::{Request, VolumeKind};

impl Bench {
    /// What stands at a path from now on; the data plane dies and comes back.
    async fn with_file(&self, path: &str, inode: u64) {
        let fake = self.fake("main");
        fake.books().files.insert(path.into(), inode);
        let before = fake.books().status.volumes.len();
        assert!(before > 0);
        fake.kill();
        eventually(|| !self.fake("main").is(&fake)).await;
    }

    async fn volume(&self, name: &str) -> (String, String) {
        let volume = self.get(&format!("/v1/volumes/{name}")).await;
        let text = |field: &str| volume[field].as_str().unwrap_or_default().to_owned();
        (text("state"), text("reason"))
    }

    async fn until(&self, name: &str, state: &str) -> String {
        loop {
            let (now, reason) = self.volume(name).await;
            if now == state {
                return reason;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// A volume `w` and an adapter `b` on it.
    async fn disk_beside(&self) {
        let volume = json!({"name": "w", "attributes": {"kind": "null", "size": "1GiB"}});
        assert_eq!(self.call("POST", "/v1/volumes", volume).await.0, 201);
        let adapter = json!({"name": "b", "attributes": {"volume": "w"}});
        assert_eq!(self.call("POST", "/v1/adapters", adapter).await.0, 201);
    }

    async fn with_disk_in_a_file() -> Bench {
        let bench = Bench::new().await;
        let attributes = json!({"kind": "file", "path": "/d/v", "size": "1MiB", "create": true});
        let volume = json!({"name": "v", "attributes": attributes});
        bench.fake("main").books().files.insert("/d/v".into(), 0);
        assert_eq!(bench.call("POST", "/v1/volumes", volume).await.0, 201);
        let adapter = json!({"name": "a", "attributes": {"volume": "v"}});
        assert_eq!(bench.call("POST", "/v1/adapters", adapter).await.0, 201);
        bench
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_file_is_a_failed_volume_and_never_an_empty_disk() {
    let bench = Bench::with_disk_in_a_file().await;
    assert_eq!(bench.fake("main").books().files[std::path::Path::new("/d/v")], 1, "made once");
    bench.with_file("/d/v", 0).await;
    assert!(bench.until("v", "failed").await.contains("no such file"));
    assert_eq!(bench.get("/v1/adapters/a").await["state"], "failed");
    // Nor by a new control plane.
    let bench = bench.restart().await;
    assert!(bench.until("v", "failed").await.contains("no such file"));
    let (status, refusal) = bench.call("POST", "/v1/volumes/v/accept", Value::Null).await;
    assert_eq!(status, 500, "there is nothing to accept: {refusal}");
    assert_eq!(bench.call("POST", "/v1/volumes/v/recreate?dry_run=true", Value::Null).await.0, 200);
    assert_eq!(bench.volume("v").await.0, "failed");
    let (status, done) = bench.call("POST", "/v1/volumes/v/recreate", Value::Null).await;
    assert_eq!(status, 200, "{done}");
    assert_eq!(bench.volume("v").await.0, "open");
    assert_eq!(bench.get("/v1/adapters/a").await["state"], "listening");
    // Once: the next loss is one again.
    bench.with_file("/d/v", 0).await;
    bench.until("v", "failed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_file_is_taken_only_when_somebody_says_so() {
    let bench = Bench::with_disk_in_a_file().await;
    let (status, refusal) = bench.call("POST", "/v1/volumes/v/accept", Value::Null).await;
    assert_eq!((status, &refusal["code"]), (409, &json!("in_use")), "it is open");
    bench.with_file("/d/v", 2).await;
    assert!(bench.until("v", "failed").await.contains("another file is there now"));
    let (status, done) = bench.call("POST", "/v1/volumes/v/accept", Value::Null).await;
    assert_eq!(status, 200, "{done}");
    assert_eq!(bench.volume("v").await.0, "open");
    // It is the volume's own from now on, also for a control plane that comes later.
    let bench = bench.restart().await;
    bench.with_file("/d/v", 2).await;
    bench.until("v", "open").await;
    bench.with_file("/d/v", 1).await;
    bench.until("v", "failed").await;
    // Whoever does not wait for the data plane is told what goes on.
    let (_, done) = bench.call("POST", "/v1/volumes/v/accept?wait=false", Value::Null).await;
    let operation = format!("/v1/operations/{}?wait_s=60", done["operation"]);
    assert_eq!(bench.get(&operation).await["step"], "done", "{done}");
    assert_eq!(bench.volume("v").await.0, "open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_could_be_opened_only_later_is_recorded_then() {
    let bench = Bench::new().await;
    bench.fake("main").books().files.insert("/d/v".into(), 0);
    let text = "[volume.v]\nkind=\"file\"\npath=\"/d/v\"\nsize=\"1MiB\"\n";
    assert_eq!(bench.text("POST", "/v1/apply", text.to_owned()).await.0, 200);
    let recorded = || bench.server.desired().allocations.files["v"].clone();
    assert_eq!(recorded(), Made::New);
    bench.fake("main").books().files.insert("/d/v".into(), 1);
    eventually(|| matches!(recorded(), Made::Is(_))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_ram_volume_is_fresh_once() {
    let bench = Bench::new().await;
    let volume = json!({"name": "r", "attributes": {"kind": "ram", "size": "1MiB"}});
    assert_eq!(bench.call("POST", "/v1/volumes", volume).await.0, 201);
    let fresh = |bench: &Bench| {
        let fake = bench.fake("main");
        let books = fake.books();
        let put = books.log.iter().find_map(|request| match request {
            Request::PutVolume(spec) => Some(spec.kind.clone()),
            _ => None,
        });
        match put {
            Some(VolumeKind::Ram(ram)) => Some((ram.fresh, ram.identity.is_some())),
            _ => None,
        }
    };
    assert_eq!(fresh(&bench), Some((true, false)));
    let place = bench.server.paths().ram("r");
    bench.with_file(place.to_str().unwrap(), 1).await;
    eventually(|| fresh(&bench).is_some()).await;
    assert_eq!(fresh(&bench), Some((false, true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_file_delays_nothing_but_its_own_volume() {
    let bench = Bench::with_disk_in_a_file().await;
    bench.disk_beside().await;
    let fake = bench.fake("main");
    fake.books().locked.insert("/d/v".into(), "process 7 (qemu)".to_owned());
    bench.with_file("/d/v", 1).await;
    // Everything else is there, and how things are is told, while one is being opened.
    eventually(|| bench.fake("main").books().status.adapters.len() == 1).await;
    let reason = bench.until("v", "opening").await;
    assert!(reason.contains("opening for 3 s, waits for process 7 (qemu)"), "{reason}");
    assert_eq!(bench.volume("w").await.0, "open");
    assert_eq!(bench.get("/v1/adapters/b").await["state"], "listening");
    let adapter = bench.get("/v1/adapters/a").await;
    assert_eq!(adapter["state"], "pending");
    assert!(adapter["reason"].as_str().unwrap().contains("volume `v` is not open"), "{adapter}");
    assert_eq!(bench.get("/v1/status").await["failures"], json!([]));
    let more = "[volume.x]\nkind=\"null\"\nsize=4096\n".to_owned();
    let (status, applied) = bench.text("POST", "/v1/apply", more).await;
    assert_eq!(status, 200, "{applied}");
    assert!(!applied.contains("process 7"), "not its business: {applied}");
    bench.fake("main").books().locked.clear();
    bench.until("v", "open").await;
    eventually(|| bench.fake("main").books().status.adapters.len() == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_is_removed_while_it_is_opened_is_given_up() {
    let bench = Bench::new().await;
    bench.fake("main").books().locked.insert("/d/v".into(), "process 7".to_owned());
    let text = "[volume.v]\nkind=\"file\"\npath=\"/d/v\"\n";
    assert_eq!(bench.text("POST", "/v1/apply", text.to_owned()).await.0, 200);
    assert_eq!(bench.volume("v").await.0, "opening");
    assert_eq!(bench.call("DELETE", "/v1/volumes/v", Value::Null).await.0, 200);
    assert!(bench.fake("main").books().status.opening.is_empty());
}

/// A client that was there before the data plane died has connected again: to it, a LUN that is not there has failed.
#[tokio::test(flavor = "multi_thread")]
async fn a_lun_whose_volume_is_being_opened_is_there_and_becoming_ready() {
    let bench = Bench::with_disk_in_a_file().await;
    bench.disk_beside().await;
    assert_eq!(bench.call("DELETE", "/v1/adapters/a", Value::Null).await.0, 200);
    assert_eq!(bench.call("DELETE", "/v1/adapters/b", Value::Null).await.0, 200);
    let scsi = "[adapter.s]\nkind=\"scsi\"\n[vtd.d]\nadapter=\"s\"\nvolume=\"v\"\n[vtd.e]\nadapter=\"s\"\nvolume=\"w\"\n";
    assert_eq!(bench.text("POST", "/v1/apply", scsi.to_owned()).await.0, 200);
    let luns = behind_luns;
    let volume = |name: &str| Some(name.to_owned());
    eventually(|| luns(&bench) == Some(vec![volume("v"), volume("w")])).await;
    bench.fake("main").books().locked.insert("/d/v".into(), "process 7 (qemu)".to_owned());
    bench.with_file("/d/v", 1).await;
    eventually(|| luns(&bench) == Some(vec![None, volume("w")])).await;
    bench.until("v", "opening").await;
    // What cannot be opened at all stays what its client was told that it is.
    bench.fake("main").books().files.insert("/d/v".into(), 0);
    bench.fake("main").books().locked.clear();
    bench.until("v", "failed").await;
    assert_eq!(luns(&bench), Some(vec![None, volume("w")]));
    bench.fake("main").books().files.insert("/d/v".into(), 1);
    bench.until("v", "open").await;
    eventually(|| luns(&bench) == Some(vec![volume("v"), volume("w")])).await;
    // It was never there when the data plane began: no LUN, so that another way to it is taken.
    bench.with_file("/d/v", 0).await;
    eventually(|| luns(&bench) == Some(vec![volume("w")])).await;
}

/// What is behind the LUNs of adapter `s`.
fn behind_luns(bench: &Bench) -> Option<Vec<Option<String>>> {
    let fake = bench.fake("main");
    let books = &fake.books().status;
    let adapter = books.adapters.iter().find(|adapter| adapter.spec.name == "s")?;
    let volume = |name: &String| {
        let unit = books.units.iter().find(|unit| unit.spec.name == *name);
        unit.and_then(|unit| unit.spec.volume.clone())
    };
    Some(adapter.spec.scsi()?.targets[0].luns.values().map(volume).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drive_whose_medium_cannot_be_opened_is_empty_and_not_gone() {
    let bench = Bench::new().await;
    let iso = bench.dir.path().join("m.iso");
    std::fs::write(&iso, [0; 4096]).unwrap();
    let drive = "[medium.m]\npath=\"ISO\"\n[adapter.s]\nkind=\"scsi\"\n[vtd.cd]\nkind=\"optical\"\nadapter=\"s\"\nmedium=\"m\"\n";
    assert_eq!(
        bench.text("POST", "/v1/apply", drive.replace("ISO", iso.to_str().unwrap())).await.0,
        200
    );
    let medium = Some(vec![Some("optical.m".to_owned())]);
    eventually(|| behind_luns(&bench) == medium).await;
    let fake = bench.fake("main");
    fake.books().locked.insert(iso, "process 7 (qemu)".to_owned());
    fake.kill();
    eventually(|| !bench.fake("main").is(&fake)).await;
    eventually(|| behind_luns(&bench) == Some(vec![None])).await;
    bench.fake("main").books().locked.clear();
    eventually(|| behind_luns(&bench) == medium).await;
}
