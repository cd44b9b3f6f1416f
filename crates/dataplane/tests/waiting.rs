//! Clients that try to make others wait for them.

mod common;

use std::os::fd::AsFd;
use std::time::Duration;

use common::raw::Front;
use common::{Server, null};
use protocol::message::{LimitSpec, Request, VolumeSpec};

/// An eventfd's flags and counter are the client's too: with a full counter and without O_NONBLOCK, a write waits for as long as the
/// client likes.
#[test]
fn a_full_notification_descriptor_stops_nobody_else() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(64)));
    let socket = server.put_adapter(|_| ());
    let other = server.put_adapter(|spec| *spec = server.adapter("vhost1"));
    let (_front, neighbour) = Front::ready(&other);
    let (_hostile, ring) = Front::ready(&socket);
    ring.works();
    for descriptor in [ring.call.as_fd(), ring.error.as_fd()] {
        rustix::fs::fcntl_setfl(descriptor, rustix::fs::OFlags::NONBLOCK).unwrap();
        let _ = rustix::io::read(descriptor, &mut [0; 8]);
        rustix::io::write(descriptor, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        rustix::fs::fcntl_setfl(descriptor, rustix::fs::OFlags::empty()).unwrap();
    }
    for _ in 0..3 {
        ring.read(0, 0);
        ring.offer(&[0]);
        std::thread::sleep(Duration::from_millis(50));
        neighbour.works();
    }
    // A ring error wants to tell the error descriptor as well.
    ring.offer(&[u16::MAX]);
    std::thread::sleep(Duration::from_millis(50));
    neighbour.works();
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    neighbour.works();
}

/// 256 reads at one a second would take four minutes.
#[test]
fn an_adapter_can_be_removed_while_its_client_is_throttled() {
    let server = Server::new(1);
    let limit = Some(LimitSpec { iops: 1, ..LimitSpec::default() });
    server.must(Request::PutVolume(VolumeSpec { limit, ..server.ram(16) }));
    let socket = server.put_adapter(|_| ());
    let (_front, ring) = Front::ready(&socket);
    let heads: Vec<u16> = (0..20).map(|head| head * 3).collect();
    heads.iter().for_each(|head| ring.read(*head, 0));
    ring.offer(&heads);
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
}
