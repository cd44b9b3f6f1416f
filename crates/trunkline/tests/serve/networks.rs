//! Networks of a server, with clients of the test's own: why a card is down, and what becomes of frames.

use super::*;
use partition::blk::SlotPlan;
use partition::net::{HEADER_BYTES, Pair, Rx};
use partition::session::{Device, Session, SessionOptions, StartPlan};
use std::time::Instant;

pub(super) fn client(server: &Server, name: &str) -> (Session, Vec<Pair>) {
    let shown: Value =
        serde_json::from_str(&server.ok(&format!("adapter show {name} -o json"))).unwrap();
    let socket = PathBuf::from(shown["socket"].as_str().unwrap());
    let options = SessionOptions { device: Device::Net, ..SessionOptions::default() };
    let mut session = Session::connect(&socket, &options).unwrap();
    let slots = SlotPlan { slots: 32, data_bytes: 4096, data_segments: 1, indirect: false };
    let plan = StartPlan { queues: 2, queue_size: 256, threads: 1, slots };
    let mut pairs = session.start_net(&plan).unwrap();
    pairs[0].rx.post(usize::MAX, 4096).unwrap();
    (session, pairs)
}

/// A broadcast of so many bytes, and whatever has come is taken.
fn send(pairs: &mut [Pair], from: u8, len: usize) {
    let mut frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, from], &[0x88, 0xb5]].concat();
    frame.resize(len, from);
    let Pair { rx, tx } = &mut pairs[0];
    tx.reap().unwrap();
    tx.add(&[0; HEADER_BYTES], &frame).unwrap();
    tx.publish().unwrap();
    take(rx);
}

/// Takes what has come, and makes room for more.
fn take(rx: &mut Rx) {
    while rx.receive().unwrap().is_some() {}
    rx.post(usize::MAX, 4096).unwrap();
}

/// One sends to the other until the command has ended; what that printed.
fn while_it_runs(server: &Server, words: &str, (one, other): (&mut [Pair], &mut [Pair])) -> String {
    let mut command = server.command();
    command.args(words.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "{words} does not end");
        send(one, 1, 60);
        send(one, 1, 2000);
        take(&mut other[0].rx);
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn frames_are_followed_and_a_card_that_is_down_says_why() {
    let server = Server::start(&[]);
    server.ok("network create net0");
    server.ok("adapter create ent0 --kind ethernet --network net0");
    let alone = server.ok("adapter explain ent0");
    assert!(alone.contains("ent0: down") && alone.contains("no client is connected"), "{alone}");
    assert!(alone.contains("nobody else of its network"), "{alone}");
    server.ok("adapter create ent1 --kind ethernet --network net0");
    let (_first, mut one) = client(&server, "ent0");
    let (_second, mut two) = client(&server, "ent1");
    server.ok("adapter wait ent0 --for running");
    server.ok("adapter wait ent1 --for running");
    send(&mut two, 2, 60);
    let lines = while_it_runs(&server, "net trace --port ent1 --count 4", (&mut one, &mut two));
    assert_eq!(lines.lines().count(), 4, "{lines}");
    assert!(lines.contains("ent0 > ent1 02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff"), "{lines}");
    let told =
        while_it_runs(&server, "-o json network trace net0 --lost --count 4", (&mut one, &mut two));
    let all = serde_json::Deserializer::from_str(&told).into_iter::<Value>().map(Result::unwrap);
    let mut lost = all.filter(|it| it["to"] == "ent1").map(|it| it["reason"].clone());
    assert!(lost.any(|reason| reason == "mtu_exceeded"), "{told}");
    let file = server.path("a.pcapng");
    let words = format!("network trace --vlan 1 --count 10 --write {}", file.display());
    while_it_runs(&server, &words, (&mut one, &mut two));
    let capture = std::fs::read(&file).unwrap();
    assert_eq!(capture[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert!(capture.windows(4).any(|it| it == b"ent0"));
    let explained = server.ok("adapter explain ent1");
    assert!(explained.contains("ent1: frames pass"), "{explained}");
    assert!(explained.contains("lost: mtu_exceeded") && explained.contains("raise"), "{explained}");
    // The same name in the statistics and in the metrics.
    let stats = server.ok("stats ent1");
    assert!(stats.contains("drop_mtu_exceeded") && stats.contains("RX FRAMES"), "{stats}");
    for wrong in ["net trace nowhere", "net trace --mac ff:00", "net trace --port ent7 --for 1s"] {
        let run = server.run(wrong);
        assert!(!run.status.success(), "{wrong}: {run:?}");
    }
}
