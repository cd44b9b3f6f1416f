//! A server that is not done with its start.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_changes_wait_and_an_end_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths { sys: dir.path().join("sys"), ..Paths::in_one(dir.path()) };
    let store: Box<dyn Store> = Box::new(RedbStore::open(&paths.store()).unwrap());
    let launchers: Arc<Mutex<BTreeMap<String, FakeLauncher>>> = Arc::default();
    let make = {
        let (paths, launchers) = (paths.clone(), Arc::clone(&launchers));
        move |name: &str| -> Box<dyn Launcher> {
            let launcher = FakeLauncher::new(paths.dataplane(name));
            launchers.lock().unwrap().insert(name.to_owned(), launcher.clone());
            Box::new(launcher)
        }
    };
    let server = Server::load(paths, store, Box::new(make), BTreeMap::new()).unwrap();
    let bench = Bench::serve(dir, launchers, server);
    let status = bench.get("/v1/status").await;
    assert!(status["starting"] == true && status["dataplanes"][0]["state"] == "down", "{status}");
    let volume = json!({"name": "v", "attributes": {"kind": "null", "size": 4096}});
    let change = bench.call("POST", "/v1/volumes", volume);
    tokio::pin!(change);
    let early = tokio::time::timeout(Duration::from_millis(100), &mut change).await;
    assert!(early.is_err(), "{early:?}");
    assert_eq!(bench.call("POST", "/v1/stop", Value::Null).await.0, 202);
    bench.server.bring_up().await;
    bench.server.has_started();
    assert_eq!(change.await.0, 201);
    assert_eq!(bench.get("/v1/status").await["starting"], Value::Null);
    assert_eq!(bench.fake("main").books().status.volumes.len(), 1);
}
