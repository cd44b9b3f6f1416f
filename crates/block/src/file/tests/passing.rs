//! Results that say nothing about the medium.

use super::*;

/// The numbers for a signal, the kernel's own of which some file systems let through, and one for what was short.
const PASSING: [i32; 6] = [libc::EINTR, 512, 513, 514, 516, libc::EAGAIN];

/// Submits, also where the lane wants some time between two tries.
fn again(lane: &mut Scripted, op: OpKind, done: u64) {
    loop {
        match lane.submit(op, 8192, done) {
            Submit::Pending => return,
            Submit::Park { reason: Wait::BackEndFull, until: Some(until) } => {
                std::thread::sleep(until.saturating_duration_since(std::time::Instant::now()));
            }
            other => panic!("{op:?}: {other:?}"),
        }
    }
}

#[test]
fn what_was_interrupted_is_done_again_and_nothing_is_taken_for_lost() {
    let place = Place::new();
    let path = place.make(MIB);
    for cache in [CacheMode::Direct, CacheMode::Buffered] {
        for write_through in [false, true] {
            let change = |file: &mut FileSpec| file.cache = cache;
            let spec = VolumeSpec { block_size: 4096, write_through, ..patient(&path, change) };
            let volume = file_volume(&spec);
            let mut lane = Scripted::new(&volume);
            for op in [
                OpKind::Read,
                WRITE,
                OpKind::Write { fua: true },
                OpKind::Discard,
                OpKind::WriteZeroes { unmap: true, fua: true },
                OpKind::WriteZeroes { unmap: false, fua: false },
            ] {
                for errno in PASSING {
                    again(&mut lane, op, 0);
                    let outcome = lane.complete(Some(-errno));
                    assert_eq!(outcome, Some(Outcome::Again { done: 0 }), "{op:?}, errno {errno}");
                }
                again(&mut lane, op, 0);
                // The last step of zeroes that are to be durable.
                while lane.complete(None).is_none() {}
            }
            assert!(!volume.shared.poisoned.load(Ordering::SeqCst));
        }
    }
}

#[test]
fn a_flush_that_was_interrupted_is_done_again_for_all_that_wait_for_it() {
    let place = Place::new();
    let volume = file_volume(&spec(place.make(MIB), |_| {}));
    let mut lane = Scripted::new(&volume);
    for errno in PASSING {
        assert_eq!(lane.submit(OpKind::Flush, 0, 0), Submit::Pending);
        assert_eq!(lane.submit(OpKind::Flush, 0, 0), Submit::Pending);
        assert_eq!(lane.complete(Some(-errno)), None, "errno {errno}: a pause");
        assert_eq!(lane.complete(None), None, "the pause is over");
        assert_eq!(lane.complete(Some(-errno)), None, "and once more");
        assert_eq!(lane.complete(None), None);
        let done = Some(Outcome::Done(Ok(())));
        assert_eq!(lane.complete(None), done);
        // The second came when the first had begun.
        assert_eq!(lane.complete(None), done);
        assert!(!volume.shared.poisoned.load(Ordering::SeqCst), "errno {errno}");
    }
}
