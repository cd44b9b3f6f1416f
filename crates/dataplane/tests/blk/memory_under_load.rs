//! A client's memory changes, goes away or comes back elsewhere while requests are in flight; so do its clients.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::raw::{Front, Ring, WRITE, code, until};
use crate::common::{Server, load};
use partition::load::{LoadOptions, Report};
use protocol::message::{AdapterState, Request, VolumeSpec};
use protocol::stats::QueueCounter;
use vring::GuestAddr;
use vring::driver::DriverMemory;

/// Two adapters on one channel and one volume.
fn pair(volume: impl FnOnce(&Server) -> VolumeSpec) -> (Server, PathBuf, PathBuf) {
    let server = Server::new(1);
    server.must(Request::PutVolume(volume(&server)));
    let first = server.put_adapter(|_| ());
    let second = server.put_adapter(|spec| *spec = server.adapter("vhost1"));
    (server, first, second)
}

/// A verified load on a part of the disk that nobody else uses, for as long as `work` takes and no shorter than a moment.
fn beside<T>(socket: &Path, work: impl FnOnce() -> T) -> (T, Report) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            let mut rounds = Vec::new();
            while !over.load(Ordering::Relaxed) || rounds.is_empty() {
                rounds.push(load(
                    socket,
                    &LoadOptions {
                        offset: 32 << 20,
                        depth: 8,
                        read_percent: 50,
                        verify: true,
                        seed: rounds.len() as u64,
                        duration: Duration::from_millis(200),
                        ..LoadOptions::default()
                    },
                ));
            }
            rounds.pop().expect("one round at least")
        });
        let result = work();
        over.store(true, Ordering::Relaxed);
        (result, neighbour.join().expect("the neighbour noticed nothing"))
    })
}

/// Eight reads of four blocks each, the data into `to`.
fn offer_reads(ring: &Ring, to: u64) -> Vec<u16> {
    let heads: Vec<u16> = (0..8).map(|head| head * 4).collect();
    for (place, head) in heads.iter().enumerate() {
        let at = to + 4096 * place as u64;
        ring.request(*head, 0, 8 * place as u64, (at, 2048, WRITE));
    }
    ring.offer(&heads);
    heads
}

#[track_caller]
fn all_good(ring: &Ring, heads: &[u16]) {
    for head in heads {
        assert_eq!(ring.status_of(*head), 0, "head {head}");
    }
}

#[test]
fn a_guest_that_truncates_its_memory_breaks_its_own_adapter_only() {
    let volumes: [fn(&Server) -> VolumeSpec; 3] =
        [|server| server.ram(64), |server| server.file(64), |server| server.slow(64)];
    for volume in volumes {
        let (server, socket, other) = pair(volume);
        let ((), report) = beside(&other, || {
            for _ in 0..3 {
                let (front, ring) = Front::ready(&socket);
                for _ in 0..10 {
                    offer_reads(&ring, ring.data.guest.0);
                    ring.wait();
                }
                offer_reads(&ring, ring.data.guest.0);
                front.memory.file().set_len(0).unwrap();
                until("the adapter is broken", || {
                    ring.kick();
                    server.adapter_named("vhost0").state == AdapterState::Broken
                });
                let reason = server.adapter_named("vhost0").reason.unwrap();
                assert!(reason.contains("truncated its shared memory"), "{reason}");
                drop((front, ring));
                until("the client is gone", || {
                    server.adapter_named("vhost0").state == AdapterState::Listening
                });
                // What happened stays to be read.
                assert!(server.adapter_named("vhost0").reason.unwrap().contains("truncated"));
            }
        });
        assert_eq!(report.failure_count, 0);
        assert_eq!(server.count_of("vhost0", QueueCounter::RingErrors), 3);
        assert_eq!(server.count_of("vhost0", QueueCounter::Active), 0);
        assert_eq!(server.count_of("vhost1", QueueCounter::Errors), 0);
        let (_front, ring) = Front::ready(&socket);
        ring.works();
    }
}

/// The end of the memory only: the rings stay, the data buffers go.
#[test]
fn a_guest_that_cuts_off_its_buffers_gets_errors_or_is_stopped() {
    let (server, socket, other) = pair(|server| server.file(64));
    let ((), report) = beside(&other, || {
        let (front, ring) = Front::ready(&socket);
        let [guest, size, _, _] = front.regions()[0];
        front.memory.file().set_len(size / 2).unwrap();
        let heads = offer_reads(&ring, guest + size - (64 << 10));
        until("the requests end or the queue stops", || {
            let ended = heads.iter().all(|head| ring.status_of(*head) == 1);
            ended || server.adapter_named("vhost0").state == AdapterState::Broken
        });
    });
    assert_eq!(report.failure_count, 0);
    let (_front, ring) = Front::ready(&socket);
    ring.works();
}

#[test]
fn memory_is_replaced_with_nothing_in_flight() {
    let (server, socket, other) = pair(|server| server.slow(64));
    let ((), report) = beside(&other, || {
        let (front, ring) = Front::ready(&socket);
        for _ in 0..3 {
            let heads = offer_reads(&ring, ring.data.guest.0);
            let regions = front.regions();
            assert!(front.set_mem_table(&regions, front.memory.file()));
            // Answered when everything was done that had been taken; what was not is done now.
            ring.wait();
            all_good(&ring, &heads);
        }
        assert_eq!(server.adapter_named("vhost0").state, AdapterState::Running);
    });
    assert_eq!(report.failure_count, 0);
}

#[test]
fn regions_come_and_go_while_requests_run() {
    let (server, socket, other) = pair(|server| server.slow(64));
    let ((), report) = beside(&other, || {
        let (front, ring) = Front::ready(&socket);
        let extra = DriverMemory::with_regions(&[(GuestAddr(1 << 40), 1 << 20)]).unwrap();
        let mut region = [0; 4];
        for spec in extra.regions().unwrap() {
            region = [spec.guest.0, spec.size, spec.user.0, spec.offset];
        }
        for _ in 0..3 {
            let heads = offer_reads(&ring, ring.data.guest.0);
            assert!(front.add_region(&region, extra.file()));
            ring.wait();
            all_good(&ring, &heads);
            let heads = offer_reads(&ring, 1 << 40);
            assert!(front.remove_region(&region));
            ring.wait();
            // Taken before the region went: served. Seen after: a bad address.
            assert!(heads.iter().all(|head| ring.status_of(*head) <= 1));
            let heads = offer_reads(&ring, 1 << 40);
            ring.wait();
            assert!(heads.iter().all(|head| ring.status_of(*head) == 1));
        }
        assert!(server.count_of("vhost0", QueueCounter::BadChains) >= 24);
        assert_eq!(server.adapter_named("vhost0").state, AdapterState::Running);
        // The region that the rings are in.
        offer_reads(&ring, ring.data.guest.0);
        assert!(front.remove_region(&front.regions()[0]));
        let status = server.adapter_named("vhost0");
        assert_eq!(status.state, AdapterState::Broken);
        let reason = status.reason.unwrap();
        assert!(reason.contains("is not in one region"), "{reason}");
    });
    assert_eq!(report.failure_count, 0);
}

/// As firmware does it before an operating system: other rings in another memory, after the first ones were stopped.
#[test]
fn a_client_comes_back_with_another_memory_layout_over_the_same_connection() {
    let (server, socket, other) = pair(|server| server.slow(64));
    let ((), report) = beside(&other, || {
        let (mut front, ring) = Front::ready(&socket);
        let heads = offer_reads(&ring, ring.data.guest.0);
        until("all are taken", || server.count_of("vhost0", QueueCounter::CommandsReceived) == 8);
        assert_eq!(front.stop(0), 8);
        assert_eq!(ring.used_index(), 8, "stopped with requests in flight");
        all_good(&ring, &heads);
        let layout = [(GuestAddr(0), 1 << 20), (GuestAddr(1 << 32), 7 << 20)];
        front.memory = Arc::new(DriverMemory::with_regions(&layout).unwrap());
        front.share_memory();
        let ring = front.start(0, 128);
        let heads = offer_reads(&ring, ring.data.guest.0);
        ring.wait();
        all_good(&ring, &heads);
        ring.works();
    });
    assert_eq!(report.failure_count, 0);
    assert_eq!(server.count_of("vhost0", QueueCounter::RingErrors), 0);
}

#[test]
fn a_reset_under_load_is_answered_with_nothing_in_flight() {
    let (server, socket, other) = pair(|server| server.slow(64));
    let ((), report) = beside(&other, || {
        let (front, first) = Front::ready(&socket);
        let mut ring = first;
        for round in 1..=5 {
            let heads = offer_reads(&ring, ring.data.guest.0);
            until("all are taken", || {
                server.count_of("vhost0", QueueCounter::CommandsReceived) == 8 * round
            });
            assert!(front.accepted(code::RESET_DEVICE, &[], &[]));
            assert_eq!(ring.used_index(), 8, "a reset with requests in flight");
            all_good(&ring, &heads);
            // Nothing is taken from a ring that was reset.
            offer_reads(&ring, ring.data.guest.0);
            assert_eq!(server.adapter_named("vhost0").client_queues, 0);
            ring = front.start(0, 64);
        }
        ring.works();
    });
    assert_eq!(report.failure_count, 0);
    assert_eq!(server.count_of("vhost0", QueueCounter::Active), 0);
}

#[test]
fn a_client_that_dies_under_load_is_followed_by_the_next_one_at_once() {
    let (server, socket, other) = pair(|server| server.slow(64));
    let ((), report) = beside(&other, || {
        for round in 1..=10_u64 {
            let (front, ring) = Front::ready(&socket);
            assert_eq!(server.adapter_named("vhost0").connections, round);
            offer_reads(&ring, ring.data.guest.0);
            if round % 2 == 0 {
                until("some are taken", || server.count_of("vhost0", QueueCounter::Active) > 0);
            }
            drop((front, ring));
        }
        let (_front, ring) = Front::ready(&socket);
        ring.works();
        assert_eq!(server.adapter_named("vhost0").reason, None);
    });
    assert_eq!(report.failure_count, 0);
    until("nothing is left", || server.count_of("vhost0", QueueCounter::Active) == 0);
}
