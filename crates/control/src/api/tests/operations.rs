//! What takes long: it delays nothing but itself, is shown, can be left and cancelled, and survives the server.

use super::*;
use crate::model::Desired;
use crate::operation::{ENDED_MAX, Edit, Journal, Kind, Step, Work};
use crate::store::StoreError;
use protocol::message::Request;
use std::sync::atomic::{AtomicBool, Ordering};

impl Bench {
    /// A volume on this file, begun and not waited for.
    async fn begin(&self, name: &str, path: &str) -> u64 {
        let attributes = json!({"kind": "file", "path": path});
        let volume = json!({"name": name, "attributes": attributes});
        let (status, done) = self.call("POST", "/v1/volumes?wait=false", volume).await;
        assert_eq!(status, 201, "{done}");
        done["operation"].as_u64().unwrap()
    }

    async fn ended(&self, id: u64) -> Value {
        loop {
            let shown = self.get(&format!("/v1/operations/{id}?wait_s=60")).await;
            if shown["ended_ms"].is_number() {
                return shown;
            }
        }
    }

    async fn running(&self) -> Vec<Value> {
        let all = self.get("/v1/operations").await["items"].as_array().unwrap().clone();
        all.into_iter().filter(|operation| operation["ended_ms"].is_null()).collect()
    }

    fn lock(&self, path: &str) {
        self.fake("main").books().locked.insert(path.into(), "process 7 (qemu)".to_owned());
    }

    /// A medium from a file that takes its time: a sparse one of this many bytes.
    fn disc(&self, bytes: u64) -> String {
        let path = self.dir.path().join("disc.iso");
        std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Names in the folder of copies.
    fn copies(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.dir.path().join("media")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// The server dies and another one starts; `edit` is what it had on disk besides.
    async fn dies(
        self,
        edit: impl FnOnce(&mut crate::model::Desired, &mut crate::operation::Journal),
    ) -> Bench {
        self.serving.abort();
        let _ = self.serving.await;
        self.server.end().await;
        eventually(|| Arc::strong_count(&self.server) == 1).await;
        let path = self.server.paths().store();
        drop(self.server);
        let mut store = RedbStore::open(&path).unwrap();
        let (mut desired, mut journal) = (store.load().unwrap(), store.journal());
        edit(&mut desired, &mut journal);
        store.commit(&desired, &journal).unwrap();
        drop(store);
        Bench::with(self.dir, self.launchers, BTreeMap::new()).await
    }
}

fn create(object: Object, name: &str, set: Value) -> Edit {
    let after = Some(serde_json::from_value(set).unwrap());
    Edit { object, name: name.to_owned(), before: None, after, kept: false }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_file_delays_nobody_who_makes_other_objects() {
    let bench = Bench::new().await;
    bench.lock("/d/v");
    let id = bench.begin("v", "/d/v").await;
    // Still being opened, and everything else is done at once: by name, by configuration, to other data planes.
    bench.disk_as("w", "b").await;
    let text = "[volume.v]\nkind=\"file\"\npath=\"/d/v\"\n[volume.x]\nkind=\"null\"\nsize=4096\n";
    let (status, _) = bench.text("POST", "/v1/apply?dry_run=true", text.to_owned()).await;
    assert_eq!(status, 200);
    let plane = json!({"name": "side", "attributes": {}});
    assert_eq!(bench.call("POST", "/v1/dataplanes", plane).await.0, 201);
    assert_eq!(bench.call("DELETE", "/v1/adapters/b", Value::Null).await.0, 200);
    let shown = bench.get(&format!("/v1/operations/{id}")).await;
    assert_eq!((&shown["step"], &shown["can_cancel"]), (&json!("waiting"), &json!(true)));
    assert_eq!(shown["subjects"], json!(["volume v"]));
    assert_eq!(bench.running().await.len(), 1);
    bench.fake("main").books().locked.clear();
    assert_eq!(bench.ended(id).await["step"], "done");
    assert!(bench.server.desired()[Object::Volume].contains_key("v"));
}

impl Bench {
    async fn disk_as(&self, volume: &str, adapter: &str) {
        let new = json!({"name": volume, "attributes": {"kind": "null", "size": "1GiB"}});
        assert_eq!(self.call("POST", "/v1/volumes", new).await.0, 201);
        let new = json!({"name": adapter, "attributes": {"volume": volume}});
        assert_eq!(self.call("POST", "/v1/adapters", new).await.0, 201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_data_plane_delays_no_other() {
    let bench = Bench::new().await;
    let text = "[dataplane.side]\n[volume.v]\nkind=\"null\"\nsize=4096\n[adapter.a]\nvolume=\"v\"\ndataplane=\"side\"\n";
    assert_eq!(bench.text("POST", "/v1/apply", text.to_owned()).await.0, 200);
    let side = bench.fake("side");
    let silence = side.silence();
    // The first to ask finds that it is silent.
    bench.get("/v1/status").await;
    bench.disk_as("w", "b").await;
    assert!(bench.server.supervisor_views()["side"].silent.is_some());
    assert_eq!(bench.fake("main").books().status.adapters.len(), 1);
    // A volume without users is at home in the main one, which is not told before the other has let go: it is one file.
    let (status, done) = bench.call("DELETE", "/v1/adapters/a", Value::Null).await;
    assert_eq!(status, 200, "{done}");
    assert!(done["waiting"][0]["message"].as_str().unwrap().contains("`side`"), "{done}");
    assert_eq!(bench.fake("main").books().status.volumes.len(), 1);
    drop(silence);
    eventually(|| bench.fake("main").books().status.volumes.len() == 2).await;
    assert!(side.books().status.volumes.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cancelled_while_a_file_is_opened_leaves_nothing() {
    let bench = Bench::new().await;
    bench.lock("/d/v");
    let id = bench.begin("v", "/d/v").await;
    let cancel = format!("/v1/operations/{id}/cancel");
    let (status, shown) = bench.call("POST", &cancel, Value::Null).await;
    assert_eq!(status, 200, "{shown}");
    let shown = bench.ended(id).await;
    assert_eq!(shown["step"], "undone");
    assert_eq!(shown["error"]["message"], "it was cancelled");
    assert!(bench.server.desired()[Object::Volume].is_empty());
    assert!(bench.fake("main").books().status.opening.is_empty());
    let (status, refusal) = bench.call("POST", &cancel, Value::Null).await;
    assert_eq!(status, 409, "{refusal}");
    assert_eq!(bench.call("GET", "/v1/operations/77", Value::Null).await.0, 404);
    let (_, metrics) = bench.text("GET", "/metrics", String::new()).await;
    assert!(metrics.contains("trunkline_operations{state=\"undone\"} 1"), "{metrics}");
    let events = bench.get("/v1/events").await.to_string();
    assert!(events.contains(&format!("operation {id}, change of volume v, is undone")), "{events}");
}

/// A store whose disk is full for as long as somebody says so.
struct Filling(RedbStore, Arc<AtomicBool>);

impl Store for Filling {
    fn load(&mut self) -> Result<Desired, StoreError> {
        self.0.load()
    }

    fn journal(&self) -> Journal {
        self.0.journal()
    }

    fn commit(&mut self, next: &Desired, journal: &Journal) -> Result<(), StoreError> {
        if self.1.load(Ordering::Relaxed) {
            let problem = "No space left on device".to_owned();
            return Err(StoreError::Engine { path: "store".to_owned(), problem });
        }
        self.0.commit(next, journal)
    }

    fn mend(&mut self) -> Option<String> {
        self.1.load(Ordering::Relaxed).then(|| "copy: No room".to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_full_store_does_not_let_be_taken_back_is_told_and_taken_back_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths { sys: dir.path().join("sys"), ..Paths::in_one(dir.path()) };
    let full = Arc::new(AtomicBool::new(false));
    let store = Filling(RedbStore::open(&paths.store()).unwrap(), Arc::clone(&full));
    let on = (paths, Box::new(store) as Box<dyn Store>);
    let bench = Bench::on(dir, Arc::default(), BTreeMap::new(), on).await;
    bench.lock("/d/v");
    let id = bench.begin("v", "/d/v").await;
    full.store(true, Ordering::Relaxed);
    bench.call("POST", &format!("/v1/operations/{id}/cancel"), Value::Null).await;
    let said = format!(
        "it could not be taken back so far: the store store: No space left on device; operation {id} goes on trying"
    );
    while !bench.get("/v1/events").await.to_string().contains(&said) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(bench.server.desired()[Object::Volume].contains_key("v"));
    let failures = async || bench.get("/v1/status").await["failures"].to_string();
    let earlier = "copy: No room";
    while !failures().await.contains(earlier) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    full.store(false, Ordering::Relaxed);
    assert_eq!(bench.ended(id).await["step"], "undone");
    assert!(bench.server.desired()[Object::Volume].is_empty());
    while failures().await.contains(earlier) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_one_object_follow_each_other() {
    let bench = Bench::new().await;
    bench.lock("/d/v");
    let id = bench.begin("v", "/d/v").await;
    let adapter = json!({"name": "a", "attributes": {"volume": "v"}});
    let set = json!({"attributes": {"read_only": true}});
    let later = async {
        tokio::join!(
            bench.call("POST", "/v1/adapters", adapter.clone()),
            bench.call("PATCH", "/v1/volumes/v", set.clone()),
        )
    };
    // They wait for what becomes of the volume; it becomes nothing.
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(bench.running().await.len(), 1, "the others have not begun");
        bench.call("POST", &format!("/v1/operations/{id}/cancel"), Value::Null).await
    };
    let ((made, changed), cancelled) = tokio::join!(later, cancel);
    assert_eq!(cancelled.0, 200);
    assert_eq!((made.0, changed.0), (400, 404), "{} {}", made.1, changed.1);
    // It was there when that began, and is no suggestion.
    assert!(!changed.1["help"].as_str().unwrap().contains("did you mean"), "{}", changed.1);
    assert!(bench.server.desired().is_empty());
    assert!(bench.fake("main").books().status.volumes.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_configuration_wants_too_is_not_taken_back() {
    let bench = Bench::new().await;
    bench.lock("/d/v");
    let id = bench.begin("v", "/d/v").await;
    let text = "[volume.v]\nkind=\"file\"\npath=\"/d/v\"\n".to_owned();
    assert_eq!(bench.text("POST", "/v1/apply", text).await.0, 200);
    bench.call("POST", &format!("/v1/operations/{id}/cancel"), Value::Null).await;
    let ended = bench.ended(id).await;
    assert_eq!(ended["step"], "undone");
    let why = "but for volume `v`: it stays, since a configuration names it";
    assert!(ended["error"]["help"].as_str().unwrap_or_default().contains(why), "{ended}");
    assert!(bench.server.desired()[Object::Volume].contains_key("v"), "it is wanted");
    // Nor what a configuration has made another.
    bench.lock("/d/w");
    let id = bench.begin("w", "/d/w").await;
    let text = "[volume.w]\nkind=\"file\"\npath=\"/d/w\"\nread_only=true\n".to_owned();
    assert_eq!(bench.text("POST", "/v1/apply", text).await.0, 200);
    bench.call("POST", &format!("/v1/operations/{id}/cancel"), Value::Null).await;
    bench.ended(id).await;
    let volumes = &bench.server.desired()[Object::Volume];
    assert_eq!(volumes["w"]["read_only"], fabric::attribute::Value::Switch(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_configuration_only_mentions_is_taken_back_unless_somebody_uses_it() {
    let bench = Bench::new().await;
    bench.lock("/d/v");
    let cancel = async |id| {
        bench.call("POST", &format!("/v1/operations/{id}/cancel"), Value::Null).await;
        bench.ended(id).await
    };
    let text = "[adapter.a]\nvolume=\"v\"\n";
    let id = bench.begin("v", "/d/v").await;
    assert_eq!(bench.text("POST", "/v1/apply", text).await.0, 200);
    let ended = cancel(id).await;
    assert_eq!(ended["step"], "done", "{ended}");
    let why = "it stays and is tried again, since without it";
    assert!(ended["error"]["help"].as_str().unwrap_or_default().contains(why), "{ended}");
    assert!(bench.server.desired()[Object::Volume].contains_key("v"), "the adapter has it");
    // The configuration's adapter is gone when the next one is taken back.
    bench.lock("/d/w");
    let text = "[adapter.b]\nvolume=\"w\"\n";
    let id = bench.begin("w", "/d/w").await;
    assert_eq!(bench.text("POST", "/v1/apply", text).await.0, 200);
    let gone = "[volume.v]\nkind=\"file\"\npath=\"/d/v\"\n[adapter.a]\nvolume=\"v\"\n";
    let (status, applied) = bench.text("POST", "/v1/apply?prune=true", gone).await;
    assert_eq!(status, 200, "{applied}");
    assert_eq!(cancel(id).await["step"], "undone");
    let volumes = bench.server.desired()[Object::Volume].keys().cloned().collect::<Vec<_>>();
    assert_eq!(volumes, ["v"], "nothing stays of what was undone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_shown_and_cancelled_without_a_trace() {
    let bench = Bench::new().await;
    let path = bench.disc(64 << 30);
    let medium = json!({"name": "m", "attributes": {"path": path, "copy": true}});
    let (status, done) = bench.call("POST", "/v1/media?wait=false", medium.clone()).await;
    assert_eq!(status, 201, "{done}");
    let id = done["operation"].as_u64().unwrap();
    let show = format!("/v1/operations/{id}");
    let copying = loop {
        let shown = bench.get(&show).await;
        if shown["progress"]["unit"] == "bytes" && shown["progress"]["done"].as_u64() > Some(0) {
            break shown;
        }
    };
    assert_eq!((&copying["kind"], &copying["step"]), (&json!("copy"), &json!("copying")));
    assert_eq!(copying["progress"]["total"], json!(64u64 << 30));
    assert!(!bench.copies().is_empty());
    assert!(bench.server.desired().is_empty(), "nothing is there before it is whole");
    // It is in nobody's way.
    bench.disk().await;
    // Two of the same: the second one waits for what becomes of the first.
    let small = bench.dir.path().join("small.iso");
    std::fs::write(&small, b"disc").unwrap();
    let second = json!({"name": "m", "attributes": {"path": small, "copy": true}});
    let second = bench.call("POST", "/v1/media", second);
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        bench.call("POST", &format!("{show}/cancel"), Value::Null).await
    };
    let (second, cancelled) = tokio::join!(second, cancel);
    assert_eq!((second.0, cancelled.0), (201, 200), "{} {}", second.1, cancelled.1);
    assert_eq!(bench.ended(id).await["step"], "undone");
    assert_eq!(bench.copies(), ["m.iso"]);
    assert_eq!(std::fs::read(bench.dir.path().join("media/m.iso")).unwrap(), b"disc");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_takes_long_need_not_be_waited_for() {
    let bench = Bench::new().await;
    let path = bench.disc(1 << 20);
    let text = format!("[medium.m]\npath=\"{path}\"\ncopy=true\n");
    let (status, applied) = bench.text("POST", "/v1/apply?wait=false", text).await;
    assert_eq!(status, 200, "{applied}");
    let applied: Value = serde_json::from_str(&applied).unwrap();
    let id = applied["operation"].as_u64().unwrap_or_else(|| panic!("{applied}"));
    assert_eq!(bench.ended(id).await["step"], "done");
    assert_eq!(bench.copies(), ["m.iso"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_in_a_copy_leaves_nothing_of_it() {
    let bench = Bench::new().await;
    let path = bench.disc(4096);
    let set = json!({"path": path, "copy": true});
    for (left, copied) in [("m.1.part", false), ("m.iso", true)] {
        std::fs::create_dir_all(bench.dir.path().join("media")).unwrap();
        std::fs::write(bench.dir.path().join("media").join(left), b"half").unwrap();
        assert!(!bench.copies().is_empty(), "{copied}");
    }
    let bench = bench
        .dies(|_, journal| {
            let edits = vec![create(Object::Medium, "m", set)];
            let work = Work::Change { edits, files: BTreeMap::new() };
            assert_eq!(journal.begin(Kind::Copy, Step::Copying, work, 1), 1);
        })
        .await;
    let shown = bench.ended(1).await;
    assert_eq!(shown["step"], "undone", "{shown}");
    assert!(shown["error"]["message"].as_str().unwrap().contains("the server ended while"));
    assert_eq!(bench.copies(), Vec::<String>::new());
    assert!(bench.server.desired().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_in_a_create_finishes_it_or_takes_it_back() {
    let bench = Bench::new().await;
    bench.lock("/d/locked");
    let volume = |path: &str| json!({"kind": "file", "path": path});
    let bench = bench
        .dies(|desired, journal| {
            for (name, path) in [("good", "/d/good"), ("bad", "/missing/v"), ("late", "/d/locked")]
            {
                let edit = create(Object::Volume, name, volume(path));
                desired[Object::Volume].insert(name.to_owned(), edit.after.clone().unwrap());
                let files = [(name.to_owned(), None)].into();
                let work = Work::Change { edits: vec![edit], files };
                journal.begin(Kind::Change, Step::Waiting, work, 1);
            }
        })
        .await;
    assert_eq!(bench.ended(1).await["step"], "done");
    let bad = bench.ended(2).await;
    assert_eq!(bad["step"], "undone");
    assert!(bad["error"]["message"].as_str().unwrap().contains("no such file"), "{bad}");
    // Whoever asks for the third one's name waits, as before the crash.
    assert_eq!(bench.running().await.len(), 1);
    bench.fake("main").books().locked.clear();
    assert_eq!(bench.ended(3).await["step"], "done");
    let names: Vec<String> = bench.server.desired()[Object::Volume].keys().cloned().collect();
    assert_eq!(names, ["good", "late"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_finished_or_never_was() {
    let bench = Bench::new().await;
    bench.disk().await;
    let fake = bench.fake("main");
    // Another process than before serves: it was done. The same: a start of the server interrupts nobody.
    let bench = bench
        .dies(|_, journal| {
            for pid in [1, 4242] {
                let work = Work::Restart { dataplane: "main".to_owned(), pid: Some(pid) };
                journal.begin(Kind::Restart, Step::Restarting, work, 1);
            }
        })
        .await;
    let last = bench.get("/v1/operations").await["items"].as_array().unwrap().len();
    assert_eq!(last, 2);
    let ids: Vec<u64> = bench.get("/v1/operations").await["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_u64().unwrap())
        .collect();
    assert_eq!(bench.ended(ids[0]).await["step"], "done");
    assert_eq!(bench.ended(ids[1]).await["step"], "undone");
    assert!(bench.fake("main").is(&fake), "nobody was interrupted");
    // Two at once are one, and nobody else waits for it.
    let restart = || bench.call("POST", "/v1/dataplanes/main/restart", Value::Null);
    let (one, other) = tokio::join!(restart(), restart());
    assert_eq!((one.0, other.0), (200, 200), "{} {}", one.1, other.1);
    assert!(!bench.fake("main").is(&fake));
    let (status, done) =
        bench.call("POST", "/v1/dataplanes/main/restart?wait=false", Value::Null).await;
    assert_eq!(status, 200, "{done}");
    let id = done["operation"].as_u64().unwrap();
    assert_eq!(bench.ended(id).await["step"], "done");
    let (status, refusal) =
        bench.call("POST", &format!("/v1/operations/{id}/cancel"), Value::Null).await;
    assert_eq!(status, 409, "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_waited_for_long_is_not_kept_and_what_is_kept_is_bounded() {
    let bench = Bench::new().await;
    bench.disk().await;
    assert_eq!(bench.get("/v1/operations").await["items"], json!([]));
    for n in 0..ENDED_MAX + 5 {
        let set = json!({"attributes": {"limit_iops": 1000 + n}});
        let (status, done) = bench.call("PATCH", "/v1/volumes/v?wait=false", set).await;
        assert_eq!(status, 200, "{done}");
        bench.ended(done["operation"].as_u64().unwrap()).await;
    }
    assert_eq!(bench.get("/v1/operations").await["items"].as_array().unwrap().len(), ENDED_MAX);
}

/// The data plane that has an adapter lets go of it when a disk answers that hangs; only then does another one get it.
#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_with_a_hung_disk_moves_when_that_answers() {
    let bench = Bench::new().await;
    bench.disk().await;
    assert_eq!(bench.call("POST", "/v1/dataplanes", json!({"name": "side"})).await.0, 201);
    let made = |bench: &Bench| {
        let is_put = |request: &Request| matches!(request, Request::PutAdapter(_));
        bench.fake("side").books().log.iter().filter(|it| is_put(it)).count()
    };
    bench.fake("main").books().hung.insert("a".to_owned());
    let gone = "[dataplane.side]\n[volume.v]\nkind=\"null\"\nsize=\"1GiB\"\n";
    let waits = |(status, applied): (u16, String)| {
        assert_eq!(status, 200, "{applied}");
        let why = "adapter `a`: removed, waits for what its disks have under way";
        assert!(applied.contains(why), "{applied}");
    };
    waits(bench.text("POST", "/v1/apply?prune=true", gone.to_owned()).await);
    let there = json!({"name": "a", "attributes": {"volume": "v", "dataplane": "side"}});
    let (status, done) = bench.call("POST", "/v1/adapters?wait=false", there).await;
    assert_eq!(status, 201, "{done}");
    let id = done["operation"].as_u64().unwrap();
    // Time to do it wrong: everything is told again meanwhile.
    let network = json!({"name": "n", "attributes": {"dataplane": "side"}});
    assert_eq!(bench.call("POST", "/v1/networks", network).await.0, 201);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(made(&bench), 0, "the other one has it open");
    assert_eq!(bench.running().await.len(), 1, "it waits");
    bench.fake("main").books().hung.clear();
    let ended = bench.ended(id).await;
    assert_eq!((&ended["step"], made(&bench)), (&json!("done"), 1), "{ended}");
    assert_eq!(bench.fake("side").books().status.adapters.len(), 1);

    // The same of what nobody waits for.
    bench.fake("side").books().hung.insert("a".to_owned());
    assert_eq!(bench.text("POST", "/v1/apply?prune=true", gone.to_owned()).await.0, 200);
    let back = "[adapter.a]\nvolume=\"v\"\n";
    waits(bench.text("POST", "/v1/apply", back.to_owned()).await);
    assert_eq!(bench.fake("main").books().status.adapters.len(), 0);
    bench.fake("side").books().hung.clear();
    eventually(|| bench.fake("main").books().status.adapters.len() == 1).await;
}

/// Who changes what a client sees is answered when the client sees it no more, and a disk of the client's may take its time.
#[tokio::test(flavor = "multi_thread")]
async fn a_mask_has_changed_when_the_client_sees_it_so() {
    let bench = Bench::san().await;
    bench.fake("main").books().hung.insert("f".to_owned());
    let luns = json!({"attributes": {"luns": "0"}});
    let query = "/v1/masks/m?force=true&wait=false";
    let (status, done) = bench.call("PATCH", query, luns).await;
    assert_eq!(status, 200, "{done}");
    let id = done["operation"].as_u64().expect("it goes on");
    assert_eq!(bench.luns("f").len(), 2);
    // One that has nothing to do with that adapter is not held up.
    let volume = json!({"name": "c", "attributes": {"kind": "null", "size": 4096}});
    let (status, other) = bench.call("POST", "/v1/volumes", volume).await;
    assert_eq!((status, &other["operation"]), (201, &Value::Null), "{other}");
    assert_eq!(bench.running().await.len(), 1, "it waits");
    bench.fake("main").books().hung.clear();
    assert_eq!(bench.ended(id).await["step"], "done");
    assert_eq!(bench.luns("f").len(), 1);
}
