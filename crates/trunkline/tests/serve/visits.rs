//! The event log of an adapter: who was there.

use std::io::{Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

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
    let mut server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1MiB");
    server.ok("adapter create vhost0 --volume v");
    let socket = server.path("vhost0.sock");
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    // When it came at the earliest, was there already, and left at the earliest.
    let visit = || {
        let came = now();
        let mut client = UnixStream::connect(&socket).unwrap();
        // GET_FEATURES; who is answered is being served.
        client.write_all(&[1_u32, 1, 0].map(u32::to_ne_bytes).concat()).unwrap();
        client.read_exact(&mut [0; 20]).unwrap();
        let there = now();
        std::thread::sleep(Duration::from_millis(2));
        [came, there, now()]
    };
    let visits = [visit(), visit(), visit()];
    server.until("the last one's leaving", |server| logins(server).1.len() >= 6);
    let (came, times) = logins(&server);
    assert_eq!(came, ["connection 1", "connection 2", "connection 3"]);
    assert_eq!(times.len(), 6);
    for (at, [came, there, left]) in visits.into_iter().enumerate() {
        assert!((came..=there).contains(&times[2 * at]), "{visits:?}: {times:?}");
        // One client is served at a time.
        let next = times.get(2 * at + 2).copied().unwrap_or(u64::MAX);
        assert!((left..=next).contains(&times[2 * at + 1]), "{visits:?}: {times:?}");
    }
    // While there is no control plane.
    server.kill();
    visit();
    server.serve(&[]);
    server.until("what the data plane remembers", |server| logins(server).1.len() >= 8);
    let (came, later) = logins(&server);
    assert_eq!((came[3].as_str(), &later[..6], later.len()), ("connection 4", &times[..], 8));
}
