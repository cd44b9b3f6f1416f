//! LUs that come from files and go into them, as operations.

use super::*;
use protocol::message::LuStatus;
use std::path::PathBuf;

const BYTES: u64 = 1 << 20;

impl Bench {
    /// An LU of 1 MiB that its data plane has, and a snapshot of it that is made.
    async fn lu(&self) -> String {
        let pv = self.dir.path().join("pv");
        std::fs::write(&pv, b"a PV").unwrap();
        let text =
            format!("[pool.p]\npvs={pv:?}\n[volume.v]\nkind=\"lu\"\npool=\"p\"\nsize={BYTES}\n");
        let (code, told) = self.text("POST", "/v1/apply", text.clone()).await;
        assert!(code < 300, "{told}");
        let fake = self.fake("main");
        let (uuid, asked) = {
            let books = fake.books();
            let spec::VolumeKind::Lu(lu) = &books.status.volumes[0].spec.kind else { panic!() };
            (books.status.pools[0].spec.uuid.clone(), lu.asked)
        };
        {
            let books = &mut fake.books();
            books.status.volumes[0].identity =
                Some(spec::FileIdentity::Lu { pool: uuid, number: 3, bytes: BYTES });
            let lu = |number, origin, asked| LuStatus {
                bytes: BYTES,
                ..super::pools::lu(number, origin, asked)
            };
            books.status.pools[0].lus = vec![lu(3, None, asked)];
        }
        self.set("volumes/v", json!({"limit_iops": 7})).await;
        text
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    async fn image(&self, verb: &str, file: &std::path::Path) -> (u16, Value) {
        self.call("POST", &format!("/v1/volumes/v/{verb}"), json!({ "file": file })).await
    }

    /// Parts of files that nobody has finished.
    fn parts(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.dir.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains(".trunkline-")).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_lu_comes_from_a_file_and_goes_into_one_that_has_its_name_when_it_is_whole() {
    let bench = Bench::new().await;
    bench.lu().await;
    let from = bench.file("from", &[7; 5000]);
    let (code, told) = bench.image("import?dry_run=true", &from).await;
    assert!(code == 200 && bench.fake("main").books().copies.is_empty(), "{told}");
    let (code, told) = bench.image("import", &from).await;
    assert!(code == 200 && told["changes"].to_string().contains("from"), "{told}");
    let to = bench.dir.path().join("to");
    let (code, told) = bench.image("export", &to).await;
    assert!(code == 200 && to.is_file() && bench.parts().is_empty(), "{told}");
    assert_eq!(bench.fake("main").books().passed, ["LU 3", "LU 3"], "each with its file");
    let shown = bench.get("/v1/operations").await;
    let kinds: Vec<_> =
        shown["items"].as_array().unwrap().iter().map(|it| (&it["kind"], &it["step"])).collect();
    let done = json!("done");
    assert_eq!(kinds, [(&json!("import"), &done), (&json!("export"), &done)], "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_do_not_fit_or_are_somebody_s_are_refused() {
    let bench = Bench::new().await;
    bench.lu().await;
    let long = bench.file("long", &[]);
    std::fs::File::options().write(true).open(&long).unwrap().set_len(BYTES + 1).unwrap();
    let good = bench.file("good", &[7; 512]);
    let qcow2 = [b"QFI\xfb\0\0\0\x03\0\0\0\0\0\0\0\x68".as_slice(), &[0; 88]].concat();
    let backed = bench.file("backed", &qcow2);
    for (verb, file, why) in [
        ("import", long, "lu resize v 1052672"),
        ("import", bench.dir.path().join("none"), "No such file"),
        ("import", bench.dir.path().to_owned(), "no regular file"),
        ("import", bench.dir.path().join("pv"), "a PV of pool `p`"),
        ("import", backed, "a backing file"),
        ("import", PathBuf::from("good"), "no absolute path"),
        ("export", good.clone(), "is there already"),
        ("export", bench.dir.path().join("none/to"), "is no folder"),
    ] {
        let (code, told) = bench.image(verb, &file).await;
        assert!(code >= 400 && told.to_string().contains(why), "{verb} {file:?}: {told}");
    }
    let export = json!({"file": bench.dir.path().join("to"), "snapshot": "nobody"});
    let (code, told) = bench.call("POST", "/v1/volumes/v/export", export).await;
    assert!(code == 404 && told.to_string().contains("nobody"), "{told}");
    let volume = json!({"name": "n", "attributes": {"kind": "null", "size": "1GiB"}});
    assert_eq!(bench.call("POST", "/v1/volumes", volume).await.0, 201);
    let (code, told) = bench.call("POST", "/v1/volumes/n/import", json!({ "file": good })).await;
    assert!(code == 400 && told.to_string().contains("is no LU"), "{told}");
    assert!(bench.fake("main").books().copies.is_empty() && bench.parts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_cancelled_or_goes_on_under_the_next_server_and_data_plane() {
    let bench = Bench::new().await;
    bench.lu().await;
    bench.fake("main").books().holds_copies = true;
    let (from, to) = (bench.file("from", &[7; 5000]), bench.dir.path().join("to"));
    let begin = async |bench: &Bench, verb: &str, file: &PathBuf| {
        let (code, told) = bench.image(&format!("{verb}?wait=false"), file).await;
        assert!(code == 200, "{told}");
        told["operation"].as_u64().unwrap()
    };
    let ended =
        async |bench: &Bench, id: u64| bench.get(&format!("/v1/operations/{id}?wait_s=60")).await;
    let id = begin(&bench, "import", &from).await;
    let busy = {
        let fake = bench.fake("main");
        eventually(|| !fake.books().copies.is_empty()).await;
        bench.image("export", &to).await
    };
    assert!(busy.0 == 409 && busy.1.to_string().contains("operation wait"), "{busy:?}");
    let cancel = format!("/v1/operations/{id}/cancel");
    assert_eq!(bench.call("POST", &cancel, Value::Null).await.0, 200);
    let shown = ended(&bench, id).await;
    assert!(shown["step"] == "undone" && shown.to_string().contains("holds a part"), "{shown}");
    bench.fake("main").books().copies.clear();
    let id = begin(&bench, "export", &to).await;
    {
        let fake = bench.fake("main");
        eventually(|| !fake.books().copies.is_empty()).await;
    }
    assert_eq!(bench.parts().len(), 1);
    assert_eq!(
        bench.call("POST", &format!("/v1/operations/{id}/cancel"), Value::Null).await.0,
        200
    );
    let shown = ended(&bench, id).await;
    assert!(shown["step"] == "undone" && bench.parts().is_empty() && !to.exists(), "{shown}");
    // The server ends, and the next one asks how far it is.
    bench.fake("main").books().copies.clear();
    let id = begin(&bench, "export", &to).await;
    {
        let fake = bench.fake("main");
        eventually(|| !fake.books().copies.is_empty()).await;
    }
    let bench = bench.restart().await;
    bench.fake("main").books().copies.values_mut().for_each(|copy| copy.over = true);
    let shown = ended(&bench, id).await;
    assert!(shown["step"] == "done" && to.is_file() && bench.parts().is_empty(), "{shown}");
    // The data plane dies, and the next one begins again.
    bench.fake("main").books().copies.clear();
    let id = begin(&bench, "import", &from).await;
    let fake = bench.fake("main");
    eventually(|| !fake.books().copies.is_empty()).await;
    fake.kill();
    let shown = ended(&bench, id).await;
    assert!(shown["step"] == "done" && !bench.fake("main").is(&fake), "{shown}");
    assert_eq!(bench.fake("main").books().passed, ["LU 3"]);
}
