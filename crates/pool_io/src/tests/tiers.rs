//! Pools of several tiers: PVs in each, and LUs that are cut from one.

use spec::TierSpec;

use super::*;
use crate::At;

/// Two PVs in the first tier and one in tier 3.
fn place() -> Place {
    place_of(12)
}

/// … of so many chunks each, some of which are the pool's own.
fn place_of(chunks: u64) -> Place {
    let mut place = Place::new(false, &[chunks; 3]);
    place.spec.tiers = vec![TierSpec { tier: 3, pvs: vec![place.spec.pvs[2].clone()] }];
    place
}

fn lu_in(pool: &PoolHandle, tier: Option<u8>, chunks: u64) -> Opened {
    let (spec, lu) = lu_spec(chunks * CHUNK_BYTES, false);
    pool.open_lu(&spec, &LuSpec { tier, ..lu }).unwrap_or_else(|error| panic!("{error}"))
}

fn used(pool: &PoolHandle) -> Vec<(u8, u32)> {
    pool.view().pvs.iter().map(|pv| (pv.space.tier, pv.space.used)).collect()
}

#[test]
fn an_lu_is_cut_from_the_pvs_of_its_tier() {
    let mut place = place();
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let room = |pool: &PoolHandle| -> Vec<(u8, u64)> {
        pool.view().tiers.iter().map(|tier| (tier.tier, tier.free)).collect()
    };
    assert_eq!(room(&pool), [(0, 14), (3, 7)]);
    let (first, _) = lu_in(&pool, None, 4);
    let (other, identity) = lu_in(&pool, Some(3), 4);
    for lu in [&first, &other] {
        let mut bench = TestBench::new(&**lu, MEMORY);
        (0..4).for_each(|chunk| bench.write(chunk * CHUNK_BYTES, &[7; 4096]).unwrap());
        bench.close();
    }
    comes(vec![(0, 2), (0, 2), (3, 4)], || used(&pool));
    comes((vec![(0, 10), (3, 3)], 13), || (room(&pool), pool.view().free));
    let tiers: Vec<u8> = pool.view().lus.iter().map(|lu| lu.tier).collect();
    assert_eq!(tiers, [0, 3]);
    let (spec, lu) = lu_spec(CHUNK_BYTES, false);
    let refused = pool.open_lu(&spec, &LuSpec { tier: Some(5), ..lu }).err().unwrap().to_string();
    assert!(refused.contains("add a PV to the tier"), "{refused}");
    // More PVs of that tier, and one of a new one; whatever is said of the others then.
    let new = [3, 4].map(|number| {
        let path = place.folder.path().join(format!("new{number}"));
        file(&path, 12);
        path
    });
    let paths =
        [(new[0].clone(), At { tier: 3, group: 0 }), (new[1].clone(), At { tier: 9, group: 0 })];
    pool.add_pvs(&Here, None, &paths, &mut |_| ()).unwrap();
    lu_in(&pool, Some(9), 1);
    drop((first, other));
    pool.close();
    place.spec.fresh = false;
    place.spec.pvs.extend(new);
    place.spec.tiers.clear();
    let pool = place.open(&pools);
    let tiers: Vec<u8> = pool.view().pvs.iter().map(|pv| pv.space.tier).collect();
    assert_eq!(tiers, [0, 0, 3, 3, 9]);
    let lu = old_lu(&pool, 4 * CHUNK_BYTES, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    (0..4).for_each(|chunk| assert!(bench.read(chunk * CHUNK_BYTES, 4096).unwrap() == [7; 4096]));
    bench.close();
    drop(lu);
    pool.close();
}

#[test]
fn each_tier_of_a_mirrored_pool_has_two_failure_groups_from_the_beginning() {
    let mut place = place();
    place.spec.mirror = vec![place.spec.pvs[1].clone()];
    let refused = place.refused();
    assert!(refused.contains("tier 3 of it has PVs of one failure group"), "{refused}");
    let path = place.folder.path().join("pv3");
    file(&path, 12);
    place.spec.pvs.push(path.clone());
    place.spec.mirror.push(path.clone());
    place.spec.tiers[0].pvs.push(path);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    lu_in(&pool, Some(3), 1);
    assert_eq!(pool.view().lus.iter().map(|lu| (lu.tier, lu.legs)).collect::<Vec<_>>(), [(3, 2)]);
    // While a tier has PVs of one group alone no LU is made in it.
    let new = place.folder.path().join("pv4");
    file(&new, 12);
    let at = At { tier: 4, group: 0 };
    pool.add_pvs(&Here, None, &[(new, at)], &mut |_| ()).unwrap();
    let (spec, lu) = lu_spec(CHUNK_BYTES, false);
    assert!(pool.open_lu(&spec, &LuSpec { tier: Some(4), ..lu }).is_err());
    pool.close();
}

/// An LU goes to another tier and back while a client works, over the death of the process.
#[test]
fn an_lu_goes_to_another_tier_under_its_client() {
    // There is room although what has just left is not given out again yet.
    let mut place = place_of(24);
    let mut pools = Pools::start().expect("a thread");
    let mut pool = place.open(&pools);
    let (mut lu, identity) = lu_in(&pool, None, 5);

    let number = number(&identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let mut values = [0_u8; 5];
    let mut random = Random::new(5);
    let mut work = |bench: &mut TestBench| {
        for _ in 0..4 {
            let chunk = random.below(5);
            let value = 1 + random.below(250) as u8;
            bench.write(chunk * CHUNK_BYTES + 4096, &[value; 8192]).unwrap();
            values[chunk as usize] = value;
            let chunk = random.below(5);
            let found = bench.read(chunk * CHUNK_BYTES + 4096, 8192).unwrap();
            assert!(found == [values[chunk as usize]; 8192], "chunk {chunk}");
        }
    };
    (0..20).for_each(|_| work(&mut bench));
    // What it writes from now on is above a snapshot, which goes along.
    pool.snapshot(&[number], 0).unwrap();
    (0..20).for_each(|_| work(&mut bench));
    let astray = |pool: &PoolHandle| -> (u8, u32) {
        let lus = pool.view().lus;
        let lu = lus.iter().find(|lu| lu.lu == number).expect("it is there");
        (lu.tier, lu.astray)
    };
    let refused = pool.set_tier(number, 7).unwrap_err().to_string();
    assert!(refused.contains("does not go to another tier"), "{refused}");
    for (life, tier) in [3, 0, 3].into_iter().enumerate() {
        pool.set_tier(number, tier).unwrap();
        assert_eq!(astray(&pool).0, tier);
        if life == 1 {
            bench.close();
            drop((lu, pool));
            pools.stop();
            place.spec.fresh = false;
            pools = Pools::start().expect("a thread");
            pool = place.open(&pools);
            lu = old_lu(&pool, 5 * CHUNK_BYTES, &identity);
            bench = TestBench::new(&*lu, MEMORY);
        }
        while astray(&pool) != (tier, 0) {
            let view = pool.view();
            assert!(view.balance.is_none_or(|moves| moves.moved <= moves.planned), "{view:?}");
            work(&mut bench);
        }
        work(&mut bench);
    }
    // Five chunks, and the container of what was written above the snapshot.
    assert_eq!(used(&pool), [(0, 0), (0, 0), (3, 6)]);
    bench.close();
    drop(lu);
    pool.close();
}
