//! Who has a file, and beside whom.

use super::*;

#[test]
fn a_second_server_waits_for_the_lock_and_says_for_whom() {
    let place = Place::new();
    let path = place.make(MIB);
    let first = open(&spec(&path, |_| {})).expect("open");
    let mut events = Vec::new();
    let error = open_with(&spec(&path, |_| {}), &mut |event| events.push(event))
        .map(drop)
        .expect_err("locked");
    let me = format!("process {}", std::process::id());
    assert!(error.to_string().contains(&me), "{error}");
    assert!(error.to_string().contains("end that process"), "{error}");
    let [OpenEvent::WaitsForLock { holder }, ..] = &events[..] else { panic!("{events:?}") };
    assert!(holder.contains(&me), "{holder}");

    let patient = patient(&path, |_| {});
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| open(&patient).map(drop));
        std::thread::sleep(Duration::from_millis(30));
        drop(first);
        waiting.join().expect("thread").expect("the lock came free");
    });
    let reader = || VolumeSpec { read_only: true, ..spec(&path, |_| {}) };
    let readers = (open(&reader()).expect("open"), open(&reader()).expect("open"));
    assert!(refused(&spec(&path, |_| {})).contains("locked by"));
    drop(readers);
    open(&spec(&path, |_| {})).expect("nobody is left");
}

/// What is a part of a volume of several servers is open once in each slot, and for nobody else.
#[test]
fn each_slot_is_locked_by_itself() {
    let place = Place::new();
    let path = place.make(MIB);
    let whole = spec(&path, |_| {});
    let VolumeKind::File(file) = whole.kind.clone() else { unreachable!() };
    let part = |slot| open_part(&crate::Here, None, &whole, &file, slot, false, &mut |_| {});
    let text = |slot| part(slot).map(drop).expect_err("locked").to_string();
    let reader = VolumeSpec { read_only: true, ..whole.clone() };
    let me = format!("locked by process {}", std::process::id());
    let parts = [0, 63].map(|slot| part(slot).expect("free"));
    for slot in [0, 63] {
        assert!(text(slot).contains(&me), "{}", text(slot));
    }
    assert!(refused(&whole).contains(&me) && refused(&reader).contains(&me));
    drop(part(1).expect("free"));
    let [first, last] = parts;
    drop(first);
    drop(part(0).expect("free again"));
    assert!(refused(&reader).contains(&me));
    drop(last);
    for other in [&whole, &reader] {
        let other = open(other).expect("nobody has a slot");
        assert!(text(0).contains(&me) && text(63).contains(&me));
        drop(other);
    }
}

#[test]
fn the_lock_goes_with_the_last_lane() {
    let place = Place::new();
    let patient = patient(place.make(MIB), |_| {});
    for detach in [true, false] {
        let volume = open(&patient).expect("open");
        let mut bench = TestBench::new(&*volume, 8192);
        bench.write(0, &[1; 4096]).expect("write");
        drop(volume);
        // The lane still works: the volume's file lives as long as one of them does.
        bench.write(4096, &[2; 4096]).expect("write");
        assert!(refused(&spec(place.path(), |_| {})).contains("locked by"));
        if detach {
            bench.close()
        } else {
            drop(bench)
        }
        open(&patient).expect("free");
    }
}

/// Beside others, who lock and unlock all the time.
#[test]
fn who_holds_a_lock_is_found() {
    let folder = tempfile::tempdir().expect("folder");
    let made = |name: &str| File::create(folder.path().join(name)).expect("a file");
    let (mine, ended) = (made("mine"), AtomicBool::new(false));
    let others: Vec<File> = (0..16).map(|number| made(&number.to_string())).collect();
    flock(&mine, FlockOperation::NonBlockingLockExclusive).expect("locked");
    let missed = std::thread::scope(|scope| {
        for others in others.chunks(8) {
            let change = |operation| {
                others
                    .iter()
                    .for_each(|other| flock(other, operation).expect("nobody else has it"));
            };
            let ended = &ended;
            scope.spawn(move || {
                while !ended.load(Relaxed) {
                    change(FlockOperation::NonBlockingLockExclusive);
                    change(FlockOperation::Unlock);
                }
            });
        }
        let missed = (0..2000).filter(|_| lock::holder(&mine, &crate::Here).is_none()).count();
        ended.store(true, Relaxed);
        missed
    });
    assert_eq!(missed, 0, "of 2000");
}
