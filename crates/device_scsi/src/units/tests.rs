use std::path::PathBuf;

use block::NullVolume;
use scsi::{NexusId, Persistent, Registration, Reservation};

use super::*;

fn spec() -> UnitSpec {
    UnitSpec { name: "lu0".into(), ..UnitSpec::disk("v", 0x3000_0000_0000_0001) }
}

type Case = (&'static str, UnitSpec, Option<Arc<dyn Volume>>);

fn volume(block_size: u32) -> Option<Arc<dyn Volume>> {
    Some(Arc::new(NullVolume::new("v", 1 << 20, block_size, false, false)))
}

#[test]
fn a_specification_that_makes_no_sense_says_what_mends_it() {
    let cases: [Case; 4] = [
        ("vendor is", UnitSpec { vendor: "TRUNKLINE".into(), ..spec() }, volume(512)),
        ("serial is", UnitSpec { serial: "a\nb".into(), ..spec() }, volume(512)),
        ("2048", UnitSpec { kind: UnitKind::Optical, ..spec() }, volume(4096)),
        (
            "no folder",
            UnitSpec { keep: Some(PathBuf::from("/nowhere/at/all")), ..spec() },
            volume(512),
        ),
    ];
    for (expected, spec, volume) in cases {
        let failure = Unit::new(spec, volume, None).err().expect(expected);
        assert!(failure.message.contains(expected), "{failure:?}");
        assert!(failure.help.is_some_and(|help| !help.is_empty()));
    }
}

#[test]
fn kept_reservations_are_shown_and_fence_from_the_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lu0.pr");
    let nexus = |wwpn, port| NexusId { initiator: InitiatorId::Fc(wwpn), port };
    let state = Persistent {
        registrations: vec![
            Registration { nexus: nexus(1, 1), key: 11, all_ports: false },
            Registration {
                nexus: NexusId { initiator: InitiatorId::Srp([7; 16]), port: 2 },
                key: 12,
                all_ports: true,
            },
        ],
        reservation: Some(Reservation {
            kind: ReservationType::WriteExclusive,
            holder: nexus(1, 1),
        }),
    };
    keep::write(&path, &state).unwrap();
    let unit =
        Unit::new(UnitSpec { keep: Some(path.clone()), ..spec() }, volume(512), None).unwrap();
    let status = unit.status();
    assert_eq!((status.bytes, status.medium, status.registrations.len()), (1 << 20, true, 2));
    assert_eq!(status.registrations[1].initiator, Initiator::Srp { id: [7; 16] });
    let held = status.reservation.unwrap();
    assert_eq!((held.kind.as_str(), held.aptpl), ("Write Exclusive", true));
    assert_eq!(held.holder, Some(Initiator::Fc { wwpn: 1 }));
    // A damaged file keeps the unit from being made.
    std::fs::write(&path, b"TLPR").unwrap();
    assert!(Unit::new(UnitSpec { keep: Some(path), ..spec() }, volume(512), None).is_err());
}

#[test]
fn a_drive_without_a_medium_says_so() {
    let drive = UnitSpec { kind: UnitKind::Optical, volume: None, ..spec() };
    let unit = Unit::new(drive, None, None).unwrap();
    let status = unit.status();
    assert_eq!((status.bytes, status.medium), (0, false));
    unit.load_medium(2048 * 10);
    assert_eq!((unit.status().bytes, unit.status().medium), (20480, true));
    unit.take_medium().unwrap();
    assert!(!unit.status().medium);
}
