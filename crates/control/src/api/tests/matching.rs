//! `ETag` and `If-Match`: who changes what was read does not undo what another has done meanwhile.

use super::*;

impl Bench {
    /// Status, tag and body.
    async fn tagged(
        &self,
        method: &str,
        path: &str,
        if_match: Option<&str>,
        body: Value,
    ) -> (u16, String, Value) {
        let stream = tokio::net::UnixStream::connect(self.server.paths().api()).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = hyper::Request::builder().method(method).uri(path).header("host", "t");
        let request =
            if_match.iter().fold(request, |request, tag| request.header("if-match", *tag));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        let tag = response.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, tag.unwrap_or_default(), serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    async fn tag(&self, path: &str) -> String {
        self.tagged("GET", path, None, Value::Null).await.1
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_what_has_changed_since_it_was_read_is_refused() {
    let bench = Bench::new().await;
    bench.disk().await;
    let (path, queues) = ("/v1/adapters/a", |n: u32| json!({"attributes": {"queues": n}}));
    let first = bench.tag(path).await;
    assert!(first.starts_with('"') && first.ends_with('"'), "{first}");
    assert_eq!(bench.tag(path).await, first);
    assert_eq!(bench.tagged("PATCH", path, Some(&first), queues(4)).await.0, 200);
    let second = bench.tag(path).await;
    assert_ne!(second, first);
    for method in ["PATCH", "DELETE"] {
        let (status, _, refusal) = bench.tagged(method, path, Some(&first), queues(2)).await;
        assert_eq!((status, &refusal["code"]), (412, &json!("changed")), "{refusal}");
        assert!(refusal["message"].as_str().unwrap().contains("adapter `a` has changed"));
    }
    assert_eq!(bench.get(path).await["attributes"]["queues"], 4);
    // A state does not change it, another object does not, and putting it back does.
    bench.call("PATCH", "/v1/volumes/v", json!({"attributes": {"limit_iops": 9}})).await;
    assert_eq!(bench.tag(path).await, second);
    let list = format!("{first}, {second}");
    assert_eq!(bench.tagged("PATCH", path, Some(&list), queues(8)).await.0, 200);
    assert_eq!(bench.tag(path).await, first);
    assert_eq!(bench.tagged("PATCH", path, Some("*"), queues(3)).await.0, 200);
    assert_eq!(
        bench.tagged("DELETE", path, Some(&bench.tag(path).await), Value::Null).await.0,
        200
    );
    assert_eq!(bench.tagged("DELETE", path, Some(&first), Value::Null).await.0, 404);
    // The data plane that is always there has one, too, with or without attributes.
    let main = "/v1/dataplanes/main";
    let (status, refusal) = bench.call("DELETE", main, Value::Null).await;
    assert_eq!(status, 409, "{refusal}");
    assert!(refusal["message"].as_str().unwrap().contains("always there"), "{refusal}");
    let tag = bench.tag(main).await;
    let poll = json!({"attributes": {"poll_us_max": 7}});
    assert_eq!(bench.tagged("PATCH", main, Some(&tag), poll.clone()).await.0, 200);
    assert_eq!(bench.tagged("PATCH", main, Some(&tag), poll).await.0, 412);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_eight_who_add_to_a_zone_at_once_none_loses_what_it_added() {
    let bench = Arc::new(Bench::new().await);
    let zone = json!({"name": "z", "attributes": {}});
    assert_eq!(bench.call("POST", "/v1/zones", zone).await.0, 201);
    let add = |bench: Arc<Bench>, who: u32| async move {
        for one in 0..4 {
            let member = format!("c0:50:76:00:00:00:{who:02x}:{one:02x}");
            loop {
                let (_, tag, view) = bench.tagged("GET", "/v1/zones/z", None, Value::Null).await;
                let members = view["effective"]["members"].as_str().unwrap_or_default().to_owned();
                let members =
                    if members.is_empty() { member.clone() } else { format!("{members},{member}") };
                let body = json!({"attributes": {"members": members}});
                match bench.tagged("PATCH", "/v1/zones/z", Some(&tag), body).await {
                    (200, ..) => break,
                    (412, ..) => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    };
    let mut writers = tokio::task::JoinSet::new();
    (0..8).for_each(|who| drop(writers.spawn(add(Arc::clone(&bench), who))));
    writers.join_all().await;
    let zone = bench.get("/v1/zones/z").await;
    assert_eq!(zone["effective"]["members"].as_str().unwrap().split(',').count(), 32, "{zone}");
}
