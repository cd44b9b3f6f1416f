//! A pool whose own blocks are lost, on files.

use std::os::unix::fs::FileExt;

use pool::format::SystemKind;

use super::*;
use crate::rescue;

/// Overwrites the pool's own blocks of a kind on all its PVs.
fn destroy(place: &Place, kinds: &[SystemKind]) {
    for path in &place.spec.pvs {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut first = vec![0; 4096];
        file.read_exact_at(&mut first, pool::format::SUPERBLOCK_AT[0]).unwrap();
        let (superblock, here) = pool::format::Superblock::decode(&first, 0).unwrap();
        let own = superblock.extents.iter();
        for own in own.filter(|own| own.pv == here.member && kinds.contains(&own.kind)) {
            let nothing = vec![0x5a; 1 << 20];
            for mib in 0..u64::from(own.count) * 64 {
                file.write_all_at(&nothing, u64::from(own.chunk) * CHUNK_BYTES + (mib << 20))
                    .unwrap();
            }
        }
    }
}

#[test]
fn a_pool_without_its_journals_and_pages_is_made_again_from_home_records() {
    let mut place = Place::new(false, &[10, 10, 10]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, 4 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    for chunk in 0..4 {
        bench.write(chunk * CHUNK_BYTES + 8192, &[1 + chunk as u8; 4096]).unwrap();
    }
    // What home records say is from here.
    pool.core(pool::Request::Checkpoint).unwrap().unwrap();
    let busy = rescue(&place.spec.pvs, false).unwrap_err().to_string();
    assert!(busy.contains(&place.spec.pvs[0].display().to_string()), "{busy}");
    bench.close();
    drop(lu);
    pool.close();
    place.spec.fresh = false;
    let all = [SystemKind::Journal, SystemKind::Lus, SystemKind::Map];
    destroy(&place, &all);
    let refused = place.refused();
    assert!(refused.contains("page 0 of the LUs is damaged"), "{refused}");
    let seen = rescue(&place.spec.pvs, false).unwrap();
    assert_eq!(seen.lus.iter().map(|lu| (lu.mapped, lu.guessed)).collect::<Vec<_>>(), [(4, true)]);
    assert!(
        seen.writes > 0 && seen.found.iter().any(|it| it.starts_with("the journal is not there"))
    );
    assert_eq!(place.refused(), refused, "nothing was written");
    rescue(&place.spec.pvs, true).unwrap();
    let pool = place.open(&pools);
    let lu = old_lu(&pool, 4 * CHUNK_BYTES, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    for chunk in 0..4 {
        let found = bench.read(chunk * CHUNK_BYTES + 8192, 4096).unwrap();
        assert!(found == [1 + chunk as u8; 4096], "chunk {chunk}");
    }
    bench.close();
    drop(lu);
    pool.close();
    // A PV that is missing is told.
    let missing = rescue(&place.spec.pvs[..2], false).unwrap_err().to_string();
    assert!(missing.contains("are not there") || missing.contains("no two agree"), "{missing}");
}
