//! Clients of the policy `aix`, which keep what they have agreed on when they came.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_reconfigured_aix_client_gets_all_that_it_can_have() {
    let bench = Bench::san().await;
    bench.set("adapters/f", json!({"policy": "aix", "num_per_range": 2})).await;
    {
        let fake = bench.fake("main");
        let mut books = fake.books();
        books
            .status
            .channels
            .extend((2..16).map(|index| ChannelStatus { index, ..Default::default() }));
        let adapter = &mut books.status.adapters[0];
        (adapter.state, adapter.client_queues, adapter.connections) = (AdapterState::Running, 8, 1);
    }
    let channels = || bench.fake("main").books().status.adapters[0].spec.channels;
    let reconfigure = |query: &str| {
        let path = format!("/v1/adapters/f/reconfigure{query}");
        let bench = &bench;
        async move { bench.call("POST", &path, json!({})).await }
    };
    bench.set("adapters/f", json!({"num_per_range": 6})).await;
    assert_eq!(channels(), 2);
    let (status, foretold) = reconfigure("?dry_run=true").await;
    assert_eq!((status, channels()), (200, 2), "{foretold}");
    let (status, done) = reconfigure("").await;
    assert_eq!((status, channels()), (200, 6), "{done}");
    assert_eq!(done, foretold);
    let change = &done["changes"][0]["attributes"][0];
    assert_eq!((&change["from"], &change["to"]), (&json!("2"), &json!("6")));
    assert_eq!(bench.get("/v1/adapters/f/explain").await["limited_by"], "num_per_range");
    // It is a client of the policy as before: what it gives up now stays given up.
    bench.set("adapters/f", json!({"num_per_range": 3})).await;
    bench.set("adapters/f", json!({"num_per_range": 7})).await;
    assert_eq!(channels(), 3);
    // A client that came again would have the old number until the next change.
    bench.fake("main").books().status.adapters[0].connections = 2;
    assert_eq!(reconfigure("").await.0, 200);
    assert_eq!(channels(), 7);
    assert_eq!(reconfigure("").await.1["changes"], json!([]));
    assert_eq!(bench.call("POST", "/v1/adapters/g/reconfigure", json!({})).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aix_client_does_not_grow_back_while_it_stays() {
    let bench = Bench::san().await;
    bench.set("adapters/f", json!({"policy": "aix", "num_per_range": 2})).await;
    {
        let fake = bench.fake("main");
        let mut books = fake.books();
        books
            .status
            .channels
            .extend((2..16).map(|index| ChannelStatus { index, ..Default::default() }));
        let adapter = &mut books.status.adapters[0];
        (adapter.state, adapter.client_queues, adapter.connections) = (AdapterState::Running, 8, 1);
    }
    let channels = || bench.fake("main").books().status.adapters[0].spec.channels;
    bench.set("adapters/f", json!({"num_per_range": 6})).await;
    assert_eq!(channels(), 2);
    let explained = bench.get("/v1/adapters/f/explain").await;
    assert_eq!(explained["limited_by"], "earlier");
    // The next client begins anew, with what holds when it comes.
    bench.fake("main").books().status.adapters[0].connections = 2;
    bench.set("adapters/f", json!({"num_per_range": 7})).await;
    assert_eq!(channels(), 6);
    // Without a client there is nothing to remember.
    bench.fake("main").books().status.adapters[0].state = AdapterState::Listening;
    bench.set("adapters/f", json!({"num_per_range": 8})).await;
    assert_eq!(channels(), 8);
}
