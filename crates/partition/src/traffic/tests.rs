use super::*;

fn options() -> TrafficOptions {
    TrafficOptions {
        stream: Some(Stream { packet: 1500, mtu: 1500, duplex: false, window: 40 }),
        requests: None,
        macs: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
        warm_up: Duration::ZERO,
        duration: Duration::from_millis(1),
        cpu: None,
    }
}

#[track_caller]
fn refused(options: &TrafficOptions, words: &str) {
    let error = options.check().unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn what_can_flow_is_taken() {
    options().check().unwrap();
    let requests = Some(Requests { bytes: 64, window: 20 });
    TrafficOptions { requests, ..options() }.check().unwrap();
    TrafficOptions { requests, stream: None, ..options() }.check().unwrap();
}

#[test]
fn what_cannot_flow_is_refused() {
    let stream = |stream| TrafficOptions { stream: Some(stream), ..options() };
    let own = options().stream.unwrap();
    refused(&TrafficOptions { stream: None, ..options() }, "neither");
    refused(&stream(Stream { packet: 52, ..own }), "packets of 52");
    refused(&stream(Stream { packet: 70_000, ..own }), "packets of 70000");
    refused(&stream(Stream { window: 1, ..own }), "two packets");
    refused(&stream(Stream { window: 41, duplex: true, ..own }), "61 frames");
    let requests =
        |bytes, window| TrafficOptions { requests: Some(Requests { bytes, window }), ..options() };
    refused(&requests(0, 1), "0 bytes");
    refused(&requests(64, 21), "61 frames");
    refused(&requests(1448, 1), "as long as");
}

#[test]
fn buffers_take_the_longest_frame() {
    assert_eq!(options().longest(), 1514);
    let requests = Some(Requests { bytes: 4096, window: 1 });
    assert_eq!(TrafficOptions { requests, ..options() }.longest(), 4162);
}
