use std::os::fd::AsFd as _;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;

const ROOM: usize = 12;

fn ip(words: &str) {
    let run = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(run.status.success(), "ip {words}: {}", String::from_utf8_lossy(&run.stderr));
}

fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn rings(queue: &Queue) -> Rings {
    Rings::new(queue.socket.as_fd(), &queue.memory).unwrap()
}

/// Tells the kernel that there is something to send; the number of its error.
fn kick(queue: &Queue) -> i32 {
    // SAFETY: nothing of this process's memory.
    let sent = unsafe {
        libc::sendto(queue.socket.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0)
    };
    if sent < 0 { io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
}

fn send(rings: &mut Rings, frame: &[u8], what: usize) -> bool {
    let Some(room) = rings.room(ROOM + frame.len()) else { return false };
    let all = [&[0xee; ROOM][..], frame].concat();
    all.chunks(CHUNK_BYTES).zip(room).for_each(|(piece, room)| room.write(0, piece));
    rings.push(ROOM, all.len());
    rings.mark(what);
    true
}

/// The frames that came next, behind their room.
fn receive(rings: &mut Rings) -> Vec<Vec<u8>> {
    wait("frames", || Some(try_receive(rings)).filter(|all| !all.is_empty()))
}

fn try_receive(rings: &mut Rings) -> Vec<Vec<u8>> {
    let mut received = Received::default();
    rings.receive(32, ROOM, &mut received);
    let whole = |number| {
        let (pieces, bytes) = received.frame(number).unwrap();
        let mut all = Vec::new();
        for piece in pieces {
            let mut bytes = vec![0; piece.len()];
            piece.read(0, &mut bytes);
            all.extend(bytes);
        }
        assert_eq!((all.len(), &all[..ROOM]), (bytes, &[0; ROOM][..]));
        all[ROOM..].to_vec()
    };
    let all = (0..received.len()).map(whole).collect();
    rings.give_back(&mut received);
    all
}

fn frame(number: usize, len: usize) -> Vec<u8> {
    let head = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &[0x88, 0xb5]].concat();
    head.into_iter()
        .chain((0..).map(|at: usize| (at * 7 + at / 251 + number) as u8))
        .take(len)
        .collect()
}

/// Two ends of a pair of interfaces.
fn pair() {
    let quiet = |of: &str| format!("/proc/sys/net/ipv6/conf/{of}/disable_ipv6");
    ["all", "default"].iter().for_each(|of| std::fs::write(quiet(of), "1").unwrap());
    ip("link add v0 mtu 9000 type veth peer name v1 mtu 9000");
    ip("link set v0 up");
    ip("link set v1 up");
}

#[test]
#[ignore = "in a namespace"]
fn frames_cross_by_rings_inside() {
    pair();
    let (a, b) = (open("v0").unwrap(), open("v1").unwrap());
    assert_eq!((a.queues.len(), b.queues.len()), (1, 1));
    let (mut from, mut to) = (rings(&a.queues[0]), rings(&b.queues[0]));
    // One that fits a chunk with its room, one that does not, and one of three; more often than there are chunks.
    for number in 1..1500 {
        let len = [60, 1514, CHUNK_BYTES - ROOM, CHUNK_BYTES - ROOM + 1, 9014][number % 5];
        let frame = frame(number, len);
        assert!(send(&mut from, &frame, number));
        assert_eq!(kick(&a.queues[0]), 0);
        assert_eq!((from.sent(), from.sent(), from.under_way()), (Some(number), None, 0));
        assert_eq!(receive(&mut to), [frame]);
    }
    // There and back.
    assert!(send(&mut to, &frame(7, 100), 1));
    assert_eq!(kick(&b.queues[0]), 0);
    assert_eq!(receive(&mut from), [frame(7, 100)]);
    // Somebody else finds the queue in use, until both descriptors are gone.
    assert_eq!(open("v0").unwrap_err().raw_os_error(), Some(libc::EBUSY));
    drop((a, from));
    let again = wait("the queue", || open("v0").ok());
    let mut from = rings(&again.queues[0]);
    assert!(send(&mut from, &frame(8, 100), 1));
    assert_eq!(kick(&again.queues[0]), 0);
    assert_eq!(receive(&mut to), [frame(8, 100)]);
}

#[test]
fn frames_cross_by_rings() {
    testkit::in_network_namespace("xdp::tests::frames_cross_by_rings_inside");
}

#[test]
#[ignore = "in a namespace"]
fn what_was_not_taken_is_taken_back_inside() {
    pair();
    let (a, b) = (open("v0").unwrap(), open("v1").unwrap());
    let (mut from, mut to) = (rings(&a.queues[0]), rings(&b.queues[0]));
    ip("link set v0 down");
    let mut sent = 0;
    for number in 1..2000 {
        sent += usize::from(send(&mut from, &frame(number, 5000), number));
        assert_eq!(kick(&a.queues[0]), libc::ENETDOWN);
        assert_eq!(from.sent(), None);
        if from.under_way() > 0 {
            assert_eq!((from.withdraw(), from.withdraw()), (Some(number), None));
        }
        assert_eq!((from.under_way(), from.void()), (0, 2 * sent as u32));
    }
    assert_eq!(sent, CHUNKS as usize / 2);
    ip("link set v0 up");
    // Nothing of it is sent, and there is room again once the kernel has looked.
    let mut came = Vec::new();
    wait("the frames to be sent", || {
        kick(&a.queues[0]);
        came.extend(try_receive(&mut to));
        (came.len() == CHUNKS as usize).then_some(())
    });
    assert!(came.iter().all(|frame| frame.len() == 60 && frame[6..12] == [0; 6]));
    assert_eq!(from.void(), 0);
    // All chunks are there.
    for round in 0..4 {
        for number in 0..CHUNKS as usize / 32 {
            wait("room", || send(&mut from, &frame(number, 60), round + 1).then_some(()));
            wait("the kernel", || {
                kick(&a.queues[0]);
                (from.under_way() == 0).then_some(())
            });
            assert_eq!(receive(&mut to), [frame(number, 60)]);
        }
    }
    // What comes while nobody looks is lost beyond the chunks that there are, and told.
    for number in 0..CHUNKS as usize + 100 {
        wait("room", || send(&mut from, &frame(number, 60), 1).then_some(()));
        wait("the kernel", || {
            kick(&a.queues[0]);
            (from.under_way() == 0).then_some(())
        });
    }
    let (mut received, mut came, mut lost) = (Received::default(), 0, 0);
    wait("the rest", || {
        lost += to.receive(32, ROOM, &mut received);
        came += received.len() as u64;
        to.give_back(&mut received);
        (came + lost >= u64::from(CHUNKS) + 100).then_some(())
    });
    assert_eq!((came, lost), (CHUNKS.into(), 100));
}

#[test]
fn what_was_not_taken_is_taken_back() {
    testkit::in_network_namespace("xdp::tests::what_was_not_taken_is_taken_back_inside");
}

#[test]
fn what_cannot_be_opened_is_told() {
    assert_eq!(open("no-such").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    assert_eq!(open("an-interface-of-17").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    let (file, _) = std::os::unix::net::UnixDatagram::pair().unwrap();
    let memory = rustix::fs::memfd_create("none", MemfdFlags::CLOEXEC).unwrap();
    assert!(Rings::new(file.as_fd(), &memory).is_err());
}
