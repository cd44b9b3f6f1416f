//! The event log of an adapter: who was there.

use super::*;

/// Numbers of the connections that came, and the times of all comings and goings, in the order of the log.
fn logins(server: &Server) -> (Vec<String>, Vec<u64>) {
    // An account of the data plane is taken.
    server.try_status().unwrap();
    let events: Value = serde_json::from_str(&server.ok("events --of vhost0 -o json")).unwrap();
    let of_kind = |event: &&Value, kind: &str| event["kind"] == kind;
    let events = events.as_array().unwrap();
    let came = events.iter().filter(|event| of_kind(event, "client_connected"));
    let came = came.map(|event| {
        let message = event["message"].as_str().unwrap();
        assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
        message.split(',').next().unwrap().to_owned()
    });
    let both = |event: &&Value| of_kind(event, "client_connected") || of_kind(event, "client_left");
    let times = events.iter().filter(both).map(|event| event["at_ms"].as_u64().unwrap());
    (came.collect(), times.collect())
}

#[test]
fn each_client_is_in_the_event_log_at_its_time_whoever_looked_meanwhile() {
    const STAY: Duration = Duration::from_millis(50);
    let mut server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1MiB");
    server.ok("adapter create vhost0 --volume v");
    let socket = server.path("vhost0.sock");
    let visit = || {
        let client = UnixStream::connect(&socket).unwrap();
        std::thread::sleep(STAY);
        drop(client);
        std::thread::sleep(STAY);
    };
    (0..3).for_each(|_| visit());
    let (came, times) = logins(&server);
    assert_eq!(came, ["connection 1", "connection 2", "connection 3"]);
    assert_eq!(times.len(), 6);
    let least = u64::try_from(STAY.as_millis()).unwrap() * 9 / 10;
    assert!(times.windows(2).all(|pair| pair[0] + least <= pair[1]), "{times:?}");
    // While there is no control plane.
    server.kill();
    visit();
    server.serve(&[]);
    server.until("what the data plane remembers", |server| logins(server).0.len() == 4);
    let (came, later) = logins(&server);
    assert_eq!((came[3].as_str(), &later[..6], later.len()), ("connection 4", &times[..], 8));
}
