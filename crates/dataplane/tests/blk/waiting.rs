//! Clients that try to make others wait for them.

use std::os::fd::AsFd;
use std::time::Duration;

use crate::common::raw::{Front, until};
use crate::common::scsi::{Client, target};
use crate::common::{Server, null};
use partition::scsi::{address, cdb};
use protocol::message::{LimitSpec, Request, VolumeSpec};
use protocol::stats::{ChannelCounter, QueueCounter};

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

/// Reads one at a time, each after the channel has gone to sleep.
fn slowly(server: &Server, ring: &crate::common::raw::Ring, reads: usize) -> u64 {
    let before = server.stats().channels[0].get(ChannelCounter::Wakeups);
    for _ in 0..reads {
        ring.works();
        std::thread::sleep(Duration::from_millis(1));
    }
    server.stats().channels[0].get(ChannelCounter::Wakeups) - before
}

#[test]
fn what_a_sleep_costs_is_learnt_while_there_is_work_and_wakes_no_idle_channel() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(64)));
    let (_front, ring) = Front::ready(&server.put_adapter(|_| ()));
    let of = |counter| server.stats().channels[0].get(counter);
    assert_eq!(of(ChannelCounter::SleepPrice), 32_000, "what is assumed");
    until("seven timers that woke it", || {
        slowly(&server, &ring, 100);
        of(ChannelCounter::PriceProbes) >= 7
    });
    assert!((2_000..=64_000).contains(&of(ChannelCounter::SleepPrice)));
    // A timer ends at most one of 64 sleeps, and one that was waited for in vain another.
    let woken = slowly(&server, &ring, 256);
    assert!(woken <= 256 + 2 * 256 / 64 + 2, "{woken} wake-ups");
    // The last timer may still be under way.
    std::thread::sleep(Duration::from_millis(50));
    let still = || [ChannelCounter::Wakeups, ChannelCounter::Enters, ChannelCounter::Turns].map(of);
    let before = still();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(still(), before, "nothing wakes an idle channel");
}

/// What is held back gives back what it had. That is news for nobody, and the channel goes to sleep.
#[test]
fn a_channel_sleeps_when_what_it_has_is_held_back() {
    let server = Server::new(1);
    let limit = Some(LimitSpec { write_iops: 2, write_iops_burst: 1, ..LimitSpec::default() });
    server.units(1, 16, |spec| VolumeSpec { limit, ..spec });
    let mut client = Client::connect(&server.put_scsi(0, vec![target(0, &[(0, "lu0")])]));
    let lun = address(0, 0);
    let same = client.read(lun, 7).repeat(2);
    // It holds what it has read when its write has to wait.
    for _ in 0..3 {
        let reply = client.past_attentions(lun, &cdb::compare_and_write(7, 1), &same, 0);
        assert!(reply.good(), "{reply:?}");
    }
    assert!(server.count_of("vfchost0", QueueCounter::WaitThrottled) > 0);
    let wakeups = || server.stats().channels[0].get(ChannelCounter::Wakeups);
    let before = wakeups();
    until("the channel sleeps between two commands", || {
        client.must(lun, &[0; 6], &[], 0);
        std::thread::sleep(Duration::from_millis(1));
        wakeups() > before + 3
    });
}
