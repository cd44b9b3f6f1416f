use std::collections::BTreeMap;

use block::Geometry;
use proptest::prelude::*;
use scsi::{Identity, InitiatorId, LogicalUnit, Naa, NexusId, UnitSpec};

use super::*;

fn entry() -> LunEntry {
    let geometry = Geometry {
        bytes: 1 << 20,
        block_size: 512,
        physical_block_size: 512,
        optimal_io_size: 0,
        discard: false,
        write_zeroes: false,
        read_only: false,
        write_cache: false,
    };
    let unit = LogicalUnit::new(UnitSpec::new(Identity::new("lun", Naa::local(1)), geometry));
    let nexus = unit.attach(NexusId { initiator: InitiatorId::Fc(1), port: 1 }, None);
    LunEntry { nexus: Arc::new(nexus), volume: None }
}

fn lun(number: u16) -> Lun {
    Lun::new(number).unwrap()
}

#[test]
fn what_stands_twice_is_refused() {
    let target = |id, numbers: &[u16]| Target {
        id,
        luns: numbers.iter().map(|number| (lun(*number), entry())).collect(),
    };
    let twice = LunMap::new(vec![target(3, &[]), target(4, &[]), target(3, &[])]);
    assert_eq!(twice.unwrap_err(), LunMapError::Target(3));
    let twice = LunMap::new(vec![target(3, &[7, 1, 7])]);
    assert_eq!(twice.unwrap_err(), LunMapError::Lun { target: 3, lun: 7 });
}

#[test]
fn a_target_without_logical_units_is_there() {
    let map = LunMap::new(vec![Target { id: 255, luns: Vec::new() }]).unwrap();
    assert!(map.has_target(255) && !map.has_target(0));
    assert_eq!((map.find(255, lun(0)), map.luns(255).len()), (None, 0));
    assert_eq!((map.first_target(), LunMap::empty().first_target()), (Some(255), None));
    assert!((0..=255).all(|target| !LunMap::empty().has_target(target)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_address_is_found_as_a_plain_map_finds_it(
        seen in proptest::collection::btree_map(
            any::<u8>(),
            proptest::collection::btree_set(prop_oneof![0..300_u16, 0..=Lun::MAX], 0..12),
            0..12,
        ),
        asked in proptest::collection::vec((any::<u8>(), 0..=Lun::MAX), 50),
    ) {
        let one = entry();
        let target = |(id, luns): (&u8, &std::collections::BTreeSet<u16>)| Target {
            id: *id,
            luns: luns.iter().rev().map(|number| (lun(*number), one.clone())).collect(),
        };
        let map = LunMap::new(seen.iter().rev().map(target).collect()).unwrap();
        let all = seen.iter().flat_map(|(id, luns)| luns.iter().map(|number| (*id, *number)));
        let plain: BTreeMap<(u8, u16), usize> = all.zip(0..).collect();
        for (address, number) in &plain {
            prop_assert_eq!(map.find(address.0, lun(address.1)), Some(*number));
            let (target, found, _) = map.entries().nth(*number).unwrap();
            prop_assert_eq!((target, found.number()), *address);
        }
        for (id, number) in asked {
            prop_assert_eq!(map.has_target(id), seen.contains_key(&id));
            prop_assert_eq!(map.find(id, lun(number)), plain.get(&(id, number)).copied());
            let luns: Vec<u16> = map.luns(id).iter().map(|lun| lun.number()).collect();
            let expected: Vec<u16> = seen.get(&id).into_iter().flatten().copied().collect();
            prop_assert_eq!(luns, expected);
        }
    }
}
