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
    assert!(matches!(ours.receive::<Reply>(), Err(FrameError::TooLong { .. })));
}

#[test]
fn a_message_longer_than_a_frame_arrives_whole_with_its_descriptor() {
    let (mut ours, theirs) = pair();
    let mut theirs = Connection::new(theirs);
    let length = 2 * FRAME_BYTES_MAX as usize + 5;
    let name = "n".repeat(length);
    let long = Request::RemoveVolume { name, forget: false };
    let refused = ours.send(&long, &[]).unwrap_err();
    assert!(matches!(refused, FrameError::TooLong { limit: FRAME_BYTES_MAX, .. }), "{refused}");
    ours.allow_parts();
    let reader = std::thread::spawn(move || {
        let (long, fds) = theirs.receive::<Request>().unwrap();
        let (next, _) = theirs.receive::<Request>().unwrap();
        (long, fds.len(), next)
    });
    ours.send(&long, &[std::io::stdin().as_fd()]).unwrap();
    // What was refused has left nothing on the line, and the next message begins where the long one ends.
    ours.send(&Request::Stats, &[]).unwrap();
    let (received, fds, next) = reader.join().unwrap();
    assert!(received == long, "it is another one");
    assert_eq!((fds, next), (1, Request::Stats));
    assert_eq!(size(&long).unwrap(), encode(&long, MESSAGE_BYTES_MAX).unwrap().len() as u64 - 4);
}

#[test]
fn a_message_without_an_end_is_refused() {
    let (mut ours, mut theirs) = pair();
    let writer = std::thread::spawn(move || {
        let part = vec![0; FRAME_BYTES_MAX as usize];
        while theirs
            .write_all(&header(part.len(), true))
            .and_then(|()| theirs.write_all(&part))
            .is_ok()
        {}
    });
    let refused = ours.receive::<Reply>().unwrap_err();
    assert!(matches!(refused, FrameError::TooLong { limit: MESSAGE_BYTES_MAX, .. }), "{refused}");
    drop(ours);
    writer.join().unwrap();
}

#[test]
fn a_peer_of_the_same_version_that_knows_less_is_understood() {
    #[derive(Serialize, serde::Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "snake_case")]
    enum Earlier {
        Hello { version: u32 },
    }
    let bytes = encode(&Earlier::Hello { version: 2 }, FRAME_BYTES_MAX).unwrap();
    assert_eq!(decode::<Request>(&bytes[4..]).unwrap(), Request::Hello { version: 2, minor: 0 });
    let bytes = encode(&Request::Hello { version: 2, minor: 1 }, FRAME_BYTES_MAX).unwrap();
    assert_eq!(decode::<Earlier>(&bytes[4..]).unwrap(), Earlier::Hello { version: 2 });
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
    let frame = {
        let later = Later { name: "v", kind, block_size: 512, colour: "blue" };
        encode(&later, FRAME_BYTES_MAX).unwrap()
    };
    let spec: crate::message::VolumeSpec = decode(&frame[4..]).unwrap();
    assert_eq!((spec.name.as_str(), spec.bytes, spec.read_only), ("v", None, false));
}
