use std::io::Write;

use super::*;
use crate::message::{Reply, Request};

fn pair() -> (Connection, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Connection::new(ours), theirs)
}

#[test]
fn a_message_and_its_descriptor_arrive_together() {
    let (mut ours, theirs) = pair();
    let mut theirs = Connection::new(theirs);
    let (read, write) = rustix::pipe::pipe().unwrap();
    ours.send(&Request::Status, &[]).unwrap();
    ours.send(&Request::Stats, &[write.as_fd()]).unwrap();
    drop(write);
    let (first, fds) = theirs.receive::<Request>().unwrap();
    assert_eq!((first, fds.len()), (Request::Status, 0));
    let (second, fds) = theirs.receive::<Request>().unwrap();
    assert_eq!(second, Request::Stats);
    rustix::io::write(&fds[0], b"x").unwrap();
    let mut byte = [0];
    rustix::io::read(&read, &mut byte).unwrap();
    assert_eq!(&byte, b"x");
}

#[test]
fn a_closed_peer_is_told_from_half_a_message() {
    let (mut ours, theirs) = pair();
    drop(theirs);
    assert!(matches!(ours.receive::<Reply>(), Err(FrameError::Closed)));

    let (mut ours, mut theirs) = pair();
    theirs.write_all(&[200, 0, 0, 0, 1, 2, 3]).unwrap();
    drop(theirs);
    assert!(matches!(ours.receive::<Reply>(), Err(FrameError::Io(_))));
}

#[test]
fn a_frame_beyond_the_limit_is_refused_before_it_is_read() {
    let (mut ours, mut theirs) = pair();
    theirs.write_all(&u32::MAX.to_le_bytes()).unwrap();
    assert!(matches!(ours.receive::<Reply>(), Err(FrameError::TooLong(_))));
}

#[test]
fn rubbish_and_deep_nesting_are_malformed() {
    let rubbish: [&[u8]; 4] = [b"", &[0xff; 64], &[0x81; 100_000], &[0xa1, 0x65]];
    for bytes in rubbish {
        assert!(matches!(decode::<Request>(bytes), Err(FrameError::Malformed(_))));
    }
}

#[test]
fn unknown_fields_are_ignored_and_missing_ones_take_defaults() {
    #[derive(Serialize)]
    struct Later {
        name: &'static str,
        kind: crate::message::VolumeKind,
        block_size: u32,
        colour: &'static str,
    }
    let kind = crate::message::NullSpec { zero_fill: false }.into();
    let frame = encode(&Later { name: "v", kind, block_size: 512, colour: "blue" }).unwrap();
    let spec: crate::message::VolumeSpec = decode(&frame[4..]).unwrap();
    assert_eq!((spec.name.as_str(), spec.bytes, spec.read_only), ("v", None, false));
}
