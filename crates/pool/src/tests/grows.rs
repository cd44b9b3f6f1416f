//! PVs that grow.

use super::full::pool_of;
use super::layers::{ask_for, delete, flush};
use super::*;
use crate::format::SystemKind;
use crate::make::{homes_for, maps_for};

fn grow(pv: u16, chunks: u32) -> Step {
    ask_for(Request::GrowPv { pv, chunks })
}

fn checkpoint() -> Step {
    ask_for(Request::Checkpoint)
}

#[test]
fn no_crash_loses_what_is_on_pvs_that_grow() {
    let beyond = write(B, CHUNK_BYTES, 4 * KIB);
    let known: Known = vec![
        ("full", vec![beyond, grow(0, 9), flush(B), checkpoint()]),
        ("full", vec![grow(1, 8), beyond, flush(B), Step::Kill, grow(1, 9), checkpoint()]),
        ("checkpointed", vec![grow(0, 8), grow(0, 9), write(A, 0, 4 * KIB), flush(A)]),
        ("written", vec![grow(2, 9), remove_pv(2), checkpoint(), flush(A)]),
        ("written", vec![remove_pv(0), grow(0, 9), grow(1, 9), flush(A)]),
    ];
    let own = [grow(0, 8), grow(0, 9), grow(1, 9), grow(2, 8), beyond, checkpoint(), remove_pv(2)];
    let alphabet = [&own[..], &super::alphabet()].concat();
    let setups = setups();
    assert_keeps(images_max(), |explorer| {
        explorer.all(&setups, (known.clone(), 4, &[0, u32::MAX]), (&alphabet, 4))
    });
}

#[test]
fn no_crash_loses_what_is_on_two_legs_of_pvs_that_grow() {
    let [one, other] = [Step::Lose(0), Step::Lose(1)];
    let begin = [write(A, 0, 4 * KIB), grow(0, 10)];
    let end = [write(A, CHUNK_BYTES, 4 * KIB), flush(A), Step::Return, checkpoint()];
    let mut known: Known = Vec::new();
    for setup in ["two", "quiet"] {
        for lost in [one, other] {
            known.push((setup, [&begin[..], &[lost], &end].concat()));
            known.push((setup, [&[lost][..], &begin, &end].concat()));
            known.push((setup, [&[lost, Step::Return][..], &begin, &end, &[Step::Kill]].concat()));
        }
    }
    let own = [grow(0, 9), grow(1, 9), grow(0, 10), grow(2, 9)];
    let alphabet = [&own[..], &own, &super::mirror::alphabet()].concat();
    let setups = super::mirror::setups();
    assert_keeps(images_max(), |explorer| {
        explorer.all(&setups, (known.clone(), 4, &[0, u32::MAX]), (&alphabet, 4))
    });
}

#[test]
fn who_waits_for_space_goes_on_when_a_pv_grows() {
    let mut world = world("full");
    let paused = ask(&mut world, write(B, CHUNK_BYTES, 4 * KIB));
    assert!(world.oracle.is_open(paused));
    assert_eq!(fault(&mut world, grow(1, 7)), None, "it is as large");
    assert!(world.oracle.is_open(paused));
    assert_eq!(fault(&mut world, grow(1, 6)), Some(Fault::PvUnfit));
    assert_eq!(fault(&mut world, grow(7, 9)), Some(Fault::NoSuchPv));
    assert_eq!(fault(&mut world, grow(1, 9)), None);
    assert!(!world.oracle.is_open(paused));
    let pv = world.pool.pvs().nth(1).unwrap();
    assert_eq!((pv.chunks, pv.own + pv.used + pv.free), (9, 9));
    let [tier] = world.pool.tiers()[..] else { panic!("one tier") };
    assert_eq!((tier.chunks, tier.used + tier.free, tier.waiting), (8, 8, 0));
    world.kill().unwrap();
    world.rest();
    assert_eq!(world.pool.pvs().nth(1).unwrap().chunks, 9);
    world.judge_now().unwrap();
}

/// Both legs of a chunk need space: one PV that grows is not enough.
#[test]
fn a_mirrored_pool_that_is_full_goes_on_when_pvs_of_both_groups_have_grown() {
    let pvs = [0, 1].map(|group| NewPv { pv: Uuid([group + 1; 16]), chunks: 7, tier: 0, group });
    let mut world = fresh(&pvs);
    let create = ask_for(Request::Create { chunks: 4, thick: false, tier: 0, asked: 0 });
    for step in [create, write(A, 0, 4 * KIB), write(A, CHUNK_BYTES, 4 * KIB)] {
        assert_eq!(fault(&mut world, step), None);
    }
    let paused = ask(&mut world, write(A, 2 * CHUNK_BYTES, 4 * KIB));
    assert!(world.oracle.is_open(paused));
    ask(&mut world, grow(0, 8));
    assert!(world.oracle.is_open(paused));
    ask(&mut world, grow(1, 9));
    assert!(!world.oracle.is_open(paused));
    world.judge_now().unwrap();
    // One that is away is as large as it was until it has returned.
    world.lose(1);
    ask(&mut world, write(A, 0, 4 * KIB));
    assert_eq!(fault(&mut world, grow(1, 12)), Some(Fault::Away));
    world.bring_back();
    world.rest();
    assert_eq!(fault(&mut world, grow(1, 12)), None);
    world.judge_now().unwrap();
}

/// Its further chunks have map pages and home records, for which there was no place before.
#[test]
fn a_pv_that_grows_far_gets_room_for_what_is_known_of_its_chunks() {
    for steps in 0.. {
        let pv = NewPv { pv: Uuid([1; 16]), chunks: 8190, tier: 0, group: 0 };
        let mut world = fresh(&[pv]);
        let create = ask_for(Request::Create { chunks: 4, thick: false, tier: 0, asked: 0 });
        for step in [create, write(A, 0, 4 * KIB), flush(A)] {
            ask(&mut world, step);
        }
        let tag = world.submit(Request::GrowPv { pv: 0, chunks: 16_400 });
        (0..steps).for_each(|_| _ = world.step());
        let over = !world.oracle.is_open(tag);
        world.kill().unwrap();
        world.rest();
        let chunks = world.pool.superblock().members[0].chunks;
        assert!(chunks == 16_400 || !over && chunks == 8190, "{chunks} after {steps} steps");
        ask(&mut world, grow(0, 16_400));
        let superblock = world.pool.superblock();
        let count = |kind| {
            let its = superblock.extents.iter().filter(|extent| extent.kind == kind);
            its.map(|extent| extent.count).sum::<u32>()
        };
        assert_eq!(count(SystemKind::Homes), homes_for(16_400));
        assert_eq!(count(SystemKind::Map), maps_for(16_400));
        assert_eq!(fault(&mut world, checkpoint()), None);
        world.judge_now().unwrap();
        if over {
            return;
        }
    }
}

/// What is behind the old end is used as what is before it.
#[test]
fn chunks_behind_the_old_end_are_kept_over_checkpoints_and_deaths() {
    let mut world = pool_of(3, 4);
    (0..3).for_each(|pv| _ = ask(&mut world, grow(pv, 2100)));
    for lu in 1..=4 {
        for vchunk in 0..4 {
            assert_eq!(fault(&mut world, write(lu, vchunk * CHUNK_BYTES, 4 * KIB)), None);
        }
        assert_eq!(fault(&mut world, flush(lu)), None);
    }
    // Three of them had room before it.
    assert_eq!(world.pool.pvs().map(|pv| pv.used).sum::<u32>(), 16);
    for step in [checkpoint(), write(1, 70 * KIB, 4 * KIB), delete(2), checkpoint()] {
        assert_eq!(fault(&mut world, step), None);
        world.kill().unwrap();
        world.rest();
        world.judge_now().unwrap();
        judge(Image::new(world.disks.now()), None, &world.oracle, None).unwrap();
    }
}
