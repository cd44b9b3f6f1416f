//! The traffic that sizing measures with: everything arrives, and is what the server counts.

use std::process::Command;
use std::time::Duration;

use crate::common::Server;
use crate::common::net::{card, mac, quiet};
use partition::traffic::{
    self, HEADERS, Moment, Place, Requests, Stream, TrafficError, TrafficOptions,
};
use protocol::message::{AdapterSpec, Request, UplinkSpec};
use protocol::stats::QueueCounter;

/// A server with two cards, on one channel each where it has two.
fn server(channels: u32) -> Server {
    let server = Server::new(channels);
    for number in [1, 2] {
        let spec = card(server.dir.path(), number, |device| device.mtu = 9000);
        server.must(Request::PutAdapter(AdapterSpec { channels: 1, ..spec }));
    }
    server
}

fn options(stream: Option<Stream>, requests: Option<Requests>) -> TrafficOptions {
    TrafficOptions {
        stream,
        requests,
        macs: [mac(1), mac(2)],
        warm_up: Duration::from_millis(20),
        duration: Duration::from_millis(100),
        cpu: None,
    }
}

fn run(server: &Server, options: &TrafficOptions) -> Result<traffic::Tally, TrafficError> {
    let socket = |number: u8| server.dir.path().join(format!("ent{number}.sock"));
    let (one, other) = (socket(1), socket(2));
    let places = [Place::Card(&one), Place::Card(&other)];
    let mut told = Vec::new();
    let tally = traffic::run(places, options, &mut |moment| told.push(moment))?;
    assert_eq!((told.first(), told.last()), (Some(&Moment::Begin), Some(&Moment::End)));
    Ok(tally)
}

#[test]
fn streams_and_requests_arrive_whole_on_one_channel_and_on_two() {
    let stream = |packet, mtu, duplex| Some(Stream { packet, mtu, duplex, window: 20 });
    let requests = |bytes| Some(Requests { bytes, window: 10 });
    for channels in [1, 2] {
        for (stream, requests) in [
            (stream(1500, 1500, false), None),
            (stream(9000, 9000, true), None),
            (stream(45 * 1448 + HEADERS, 1500, true), None),
            (None, requests(64)),
            (stream(1500, 1500, true), requests(1024)),
        ] {
            let server = server(channels);
            let options = options(stream, requests);
            let tally = run(&server, &options).unwrap();
            assert_eq!(tally.stream_bytes > 0, stream.is_some(), "{options:?}: {tally:?}");
            assert_eq!(tally.transactions > 0, requests.is_some(), "{options:?}: {tally:?}");
            if let Some(stream) = stream {
                let payload = u64::from(stream.packet - HEADERS);
                assert_eq!(tally.stream_bytes % payload, 0, "whole packets: {tally:?}");
            }
            let count = |counter| ["ent1", "ent2"].map(|name| server.count_of(name, counter));
            let arrived: u64 = count(QueueCounter::RxFrames).iter().sum();
            assert!(arrived >= tally.frames, "{arrived} frames, {tally:?}");
            for lost in [QueueCounter::DropFullRing, QueueCounter::DropRxNoBuffer] {
                assert_eq!(count(lost), [0, 0], "{options:?}: {tally:?}");
            }
        }
    }
}

#[test]
fn frames_that_do_not_arrive_are_an_error() {
    let server = server(1);
    // Longer than the network's packets may be.
    let stream = Some(Stream { packet: 9200, mtu: 9200, duplex: false, window: 20 });
    let error = run(&server, &options(stream, None)).unwrap_err();
    assert!(matches!(error, TrafficError::Lost(20)), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none.sock");
    let requests = Some(Requests { bytes: 64, window: 1 });
    let options = options(None, requests);
    let error = traffic::run([Place::Card(&socket); 2], &options, &mut |_| ()).unwrap_err();
    assert!(matches!(error, TrafficError::Session(_)), "{error}");
}

const TAP: &str = "tap7";

fn is_there(interface: &str) -> bool {
    Command::new("ip").args(["link", "show", interface]).output().unwrap().status.success()
}

#[test]
#[ignore = "in a namespace"]
fn the_host_behind_a_tap_answers_until_its_uplink_goes_inside() {
    quiet();
    for channels in [1, 2] {
        let server = Server::new(channels);
        server.must(Request::PutAdapter(card(server.dir.path(), 1, |device| device.mtu = 9000)));
        server.must(Request::PutUplink(UplinkSpec { mtu: 9000, ..UplinkSpec::on("net", TAP) }));
        let socket = server.dir.path().join("ent1.sock");
        let places = [Place::Card(&socket), Place::Tap(TAP)];
        let stream = |packet, mtu, duplex| Some(Stream { packet, mtu, duplex, window: 20 });
        for options in [
            options(stream(1500, 1500, true), Some(Requests { bytes: 64, window: 10 })),
            options(stream(45 * 1448 + HEADERS, 1500, true), None),
        ] {
            let tally = traffic::run(places, &options, &mut |_| ()).unwrap();
            assert!(tally.stream_bytes > 0, "{options:?}: {tally:?}");
            assert_eq!(tally.transactions > 0, options.requests.is_some(), "{tally:?}");
        }
        assert!(is_there(TAP));
        server.must(Request::RemoveUplink { name: TAP.into() });
        assert!(!is_there(TAP), "it went with its uplink");
    }
}

#[test]
fn the_host_behind_a_tap_answers_until_its_uplink_goes() {
    testkit::in_network_namespace(
        "traffic::the_host_behind_a_tap_answers_until_its_uplink_goes_inside",
    );
}
