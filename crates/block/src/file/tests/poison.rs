//! A loss is told to all.

use super::*;

#[test]
fn a_failed_fdatasync_poisons_the_volume_for_writes() {
    let place = Place::new();
    let volume = file_volume(&spec(place.make(MIB), |_| {}));
    let (mut lane, mut other) = (Scripted::new(&volume), Scripted::new(&volume));
    assert_eq!(lane.round(OpKind::Flush, 0, 0, None), Outcome::Done(Ok(())));
    // One fails while another waits for the next: that one must not be told that all is well.
    assert_eq!(lane.submit(OpKind::Flush, 0, 0), Submit::Pending);
    assert_eq!(lane.submit(OpKind::Flush, 0, 0), Submit::Pending);
    assert_eq!(lane.complete(Some(-libc::EIO)), Some(Outcome::Done(Err(IoError::Io))));
    let second = lane.out.pop().map(|finish| finish.outcome);
    assert_eq!(second, Some(Outcome::Done(Err(IoError::Io))));
    for lane in [&mut lane, &mut other] {
        for op in
            [WRITE, OpKind::Flush, OpKind::Discard, OpKind::WriteZeroes { unmap: true, fua: false }]
        {
            assert_eq!(lane.submit(op, 4096, 0), Submit::Done(Err(IoError::Io)), "{op:?}");
        }
        assert_eq!(lane.round(OpKind::Read, 4096, 0, None), Outcome::Done(Ok(())));
    }
    drop((lane, other, volume));
    let volume = open(&patient(place.path(), |_| {})).expect("opened again");
    let mut bench = TestBench::new(&*volume, 8192);
    bench.write(0, &[1; 4096]).expect("healthy");
    bench.close();
}

/// An `fdatasync` that went well says nothing of a device that refused a durable write of another lane meanwhile.
#[test]
fn a_loss_that_was_found_meanwhile_is_told_to_the_flushes_that_were_under_way() {
    let place = Place::new();
    let volume = file_volume(&spec(place.make(MIB), |_| {}));
    let (mut lane, mut other) = (Scripted::new(&volume), Scripted::new(&volume));
    // One that is under way, and one that waits for the next.
    assert_eq!(lane.submit(OpKind::Flush, 0, 0), Submit::Pending);
    assert_eq!(lane.submit(OpKind::Flush, 0, 0), Submit::Pending);
    let lost = Outcome::Done(Err(IoError::Io));
    assert_eq!(other.round(OpKind::Write { fua: true }, 4096, 0, Some(-libc::EIO)), lost);
    assert_eq!(lane.complete(None), Some(lost));
    assert_eq!(lane.out.pop().map(|finish| finish.outcome), Some(lost));
}

/// What a device refuses, since another host has it, it has not lost.
#[test]
fn a_device_that_another_host_has_has_lost_nothing() {
    let place = Place::new();
    let volume = file_volume(&spec(place.make(MIB), |_| {}));
    let mut lane = Scripted::new(&volume);
    let fenced = Outcome::Done(Err(IoError::Fenced));
    for errno in [libc::EBADE, libc::ESHUTDOWN] {
        assert_eq!(lane.round(OpKind::Write { fua: true }, 4096, 0, Some(-errno)), fenced);
        assert_eq!(lane.round(OpKind::Flush, 0, 0, Some(-errno)), fenced);
    }
    assert_eq!(lane.round(WRITE, 4096, 0, None), Outcome::Done(Ok(())));
    assert_eq!(lane.round(OpKind::Flush, 0, 0, None), Outcome::Done(Ok(())));
}
