//! The tables hold together, whatever is said of them.

use proptest::prelude::*;

use super::*;
use crate::format::Uuid;
use crate::make::{NewPv, make};

fn tables() -> Tables {
    let pv = |number: u8| NewPv { pv: Uuid([number; 16]), chunks: 9, tier: 0, group: 0 };
    Tables::new(&make(Uuid([1; 16]), &[1, 2].map(pv)).unwrap().0)
}

fn record() -> impl Strategy<Value = Record> {
    let kinds = [
        Kind::None,
        Kind::Start,
        Kind::LuCreate,
        Kind::LuDelete,
        Kind::LuResize,
        Kind::Map,
        Kind::Free,
        Kind::Written,
        Kind::Cleared,
        Kind::System,
        Kind::Head,
        Kind::Part,
    ];
    let numbers = (0..3_u16, 0..10_u32, 0..4_u32, 0..4_u32, 0..3_u8, 0..2_u16, 0..33_u8);
    (prop::sample::select(kinds.to_vec()), numbers).prop_map(
        |(kind, (pv, chunk, lu, vchunk, leg, generation, flags))| Record {
            pv,
            chunk,
            lu,
            vchunk,
            leg,
            generation,
            flags,
            aux: 5,
            ..Record::of(kind)
        },
    )
}

proptest! {
    /// Records of any kind are applied or refused, and what is counted is what there is.
    #[test]
    fn whatever_a_journal_says_the_tables_hold_together(
        records in prop::collection::vec(record(), 0..200),
    ) {
        let mut tables = tables();
        let mut generations: BTreeMap<ChunkId, u16> = BTreeMap::new();
        for record in &records {
            if let Some(id) = tables.needs_bits(record) {
                tables.bits.insert(id, Bits::NONE);
            }
            if tables.apply(record).is_ok() && record.kind == Kind::Map {
                generations.insert(ChunkId { pv: record.pv, chunk: record.chunk }, record.generation);
            }
        }
        for (number, pv) in (0..).zip(&tables.pvs) {
            let free = pv.whose.iter().filter(|(lu, _)| *lu == 0).count();
            prop_assert_eq!(pv.free as usize, free);
            for (chunk, (lu, vchunk)) in (0..).zip(&pv.whose) {
                let id = ChunkId { pv: number, chunk };
                // It stays known when the chunk is given back, however that came.
                prop_assert_eq!(tables.generation(id), generations.get(&id).copied().unwrap_or(0));
                let Some(lu) = tables.lus.get(lu) else {
                    prop_assert!(*lu == 0 || *lu == SYSTEM, "{:?} of an LU that is not there", id);
                    continue;
                };
                let legs = lu.legs_of(vchunk & !LEG_BIT);
                let entry = legs[usize::from(vchunk & LEG_BIT != 0)];
                prop_assert_eq!(entry.chunk(), Some(id));
                prop_assert_eq!(tables.generation(id), entry.generation());
            }
        }
        for lu in tables.lus.values() {
            let mapped = lu.map.chunks(usize::from(lu.legs));
            let mapped = mapped.filter(|legs| legs.iter().any(|leg| leg.chunk().is_some()));
            prop_assert_eq!(lu.mapped as usize, mapped.count());
            let legs = lu.map.iter().filter(|entry| entry.chunk().is_some()).count();
            prop_assert_eq!(lu.pvs.values().sum::<u32>() as usize, legs);
        }
    }
}

#[test]
fn an_entry_has_all_of_a_leg() {
    let id = ChunkId { pv: 1023, chunk: (1 << 26) - 1 };
    let entry = Entry::new(id, 65535);
    assert_eq!((entry.chunk(), entry.generation()), (Some(id), 65535));
    assert_eq!(Entry::default().chunk(), None);
}

/// What later versions say by `FLAGS` of an LU, such as that its epoch is there, is not taken for something else.
#[test]
fn an_lu_of_a_later_version_is_refused() {
    let known = [0_u8, 2, 4, 8, 16].map(|role| [role, role | 1]).concat();
    for flags in 0..=u8::MAX {
        let record =
            Record { lu: 7, vchunk: 2, leg: 1, chunk: 3, flags, ..Record::of(Kind::LuCreate) };
        assert_eq!(tables().apply(&record).is_ok(), known.contains(&flags), "{flags}");
    }
}
