//! A file is made once, and known from then on.

use super::*;

/// What the volume is known by, and the volume.
fn known(spec: &VolumeSpec) -> (Arc<dyn Volume>, VolumeSpec) {
    let mut known = spec.clone();
    let mut note = |event| {
        if let OpenEvent::Identity(identity) = event {
            known.kind.settle(Some(identity));
        }
    };
    let volume = open_with(spec, &mut note).unwrap_or_else(|error| panic!("{error}"));
    (volume, known)
}

#[test]
fn a_file_is_made_once_and_nothing_else_is_taken_for_it() {
    let place = Place::new();
    let path = place.path();
    let first = VolumeSpec { bytes: Some(MIB), ..spec(&path, |file| file.create = true) };
    let (volume, mut known) = known(&first);
    drop(volume);
    assert!(open(&known).is_ok(), "the same again");
    // Whatever the specification asks for: it was made before.
    let VolumeKind::File(file) = &mut known.kind else { panic!("not a file") };
    (file.create, file.fresh) = (true, true);
    let aside = place.0.path().join("aside");
    std::fs::rename(&path, &aside).expect("move");
    let missing = refused(&known);
    assert!(missing.contains("volume recreate"), "{missing}");
    assert!(!path.exists(), "it was made anew");
    place.make(MIB);
    let other = refused(&known);
    assert!(other.contains("another file is there now"), "{other}");
    assert!(other.contains("volume accept"), "{other}");
    std::fs::rename(&aside, &path).expect("back");
    for left in [4096, 0] {
        File::options().write(true).open(&path).and_then(|f| f.set_len(left)).expect("cut");
        let cut = refused(&known);
        assert!(cut.contains(&format!("it has {left} bytes and had 1048576")), "{cut}");
        assert_eq!(std::fs::metadata(&path).expect("stat").len(), left);
    }
}

/// Whoever has it grow does that when it is open; where that fails, nobody has lost a disk. One that has begun to grow is no other file.
#[test]
fn a_file_that_was_to_grow_when_nobody_could_do_it_is_opened_as_it_is() {
    let place = Place::new();
    let (volume, mut known) = known(&spec(place.make(MIB), |_| {}));
    drop(volume);
    known.bytes = Some(3 * MIB);
    for bytes in [MIB, 2 * MIB] {
        File::options()
            .write(true)
            .open(place.path())
            .and_then(|f| f.set_len(bytes))
            .expect("grow");
        let volume = open(&known).expect("open");
        assert_eq!(volume.geometry().bytes, bytes);
    }
    let volume = open(&known).expect("open");
    volume.resize(3 * MIB).expect("grow");
    assert_eq!(volume.geometry().bytes, 3 * MIB);
}

/// And so does whoever has it cut; until then nobody's data is out of reach.
#[test]
fn a_file_that_was_to_be_cut_when_nobody_could_do_it_is_opened_as_it_is() {
    let place = Place::new();
    let (volume, mut known) = known(&spec(place.make(2 * MIB), |_| {}));
    drop(volume);
    known.bytes = Some(MIB);
    let volume = open(&known).expect("open");
    assert_eq!(volume.geometry().bytes, 2 * MIB);
    volume.resize(MIB).expect("cut");
    assert_eq!(volume.geometry().bytes, MIB);
    drop(volume);
    // Somebody else made it longer: that is not what was asked for.
    File::options().write(true).open(place.path()).and_then(|f| f.set_len(3 * MIB)).expect("grow");
    assert!(refused(&known).contains("has 3145728 bytes, but size says 1048576"));
}

#[test]
fn a_fresh_file_takes_nobodys_place() {
    let place = Place::new();
    let path = place.make(MIB);
    std::fs::write(&path, vec![7; MIB as usize]).expect("write");
    let fresh = VolumeSpec { bytes: Some(MIB), ..spec(&path, |file| file.fresh = true) };
    assert!(refused(&fresh).contains("is there already"));
    assert_eq!(std::fs::read(&path).expect("read")[0], 7);
    std::fs::remove_file(&path).expect("remove");
    assert!(open(&fresh).is_ok());
}
