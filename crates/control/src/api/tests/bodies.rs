//! What is sent and cannot be taken as it is.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_attribute_that_is_there_twice_is_refused() {
    let bench = Bench::new().await;
    bench.disk().await;
    for (method, path, body) in [
        (
            "POST",
            "/v1/volumes",
            r#"{"name":"w","attributes":{"kind":"null","size":512,"size":1024}}"#,
        ),
        ("PATCH", "/v1/volumes/v", r#"{"attributes":{"limit_iops":100,"limit_iops":null}}"#),
    ] {
        let (status, text) = bench.text(method, path, body.to_owned()).await;
        assert_eq!(status, 400, "{text}");
        assert!(text.contains("duplicate attribute `"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_text_is_refused_as_everything_else_is() {
    let bench = Bench::new().await;
    for path in ["/v1/volumes/%ff%fe", "/v1/operations/abc", "/v1/%ff"] {
        let (status, text) = bench.text("GET", path, String::new()).await;
        assert!((400..500).contains(&status), "{path}: {status}");
        let refusal: Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"));
        assert!(refusal["message"].is_string(), "{path}: {refusal}");
    }
    for path in ["/v1/apply", "/v1/volumes"] {
        let (status, text) = bench.text("POST", path, vec![0xff]).await;
        assert_eq!(status, 400, "{path}: {text}");
        let refusal: Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"));
        assert_eq!(refusal["code"], "invalid");
    }
}
