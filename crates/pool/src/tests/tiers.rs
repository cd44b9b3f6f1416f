//! LUs in several tiers, and on their way from one to another, between crashes.

use std::collections::BTreeSet;

use super::coalesce::COALESCE;
use super::layers::{ask_for, delete, flush, rollback, setup, snapshot};
use super::world::{POLICY, SERVER};
use super::*;
use crate::choose::{GATHERED, LAYERS};
use crate::pool::{Fault, Pool};

fn set_tier(lu: u32, tier: u8) -> Step {
    ask_for(Request::SetTier { lu, tier })
}

const CLONE: Step = Step::Ask(Request::Clone { snapshot: S, asked: 0 });

fn checkpoint() -> Step {
    ask_for(Request::Checkpoint)
}

/// PVs by tier and failure group, each with so many chunks.
pub(super) fn pool_of_tiers(pvs: &[(u8, u8)], chunks: u32) -> World {
    let pv = |(number, (tier, group)): (u8, &(u8, u8))| NewPv {
        pv: Uuid([number; 16]),
        chunks,
        tier: *tier,
        group: *group,
    };
    fresh(&(1..).zip(pvs).map(pv).collect::<Vec<_>>())
}

const PLAIN: [(u8, u8); 4] = [(0, 0), (0, 0), (1, 0), (1, 0)];
const MIRRORED: [(u8, u8); 4] = [(0, 0), (0, 1), (1, 0), (1, 1)];

fn setups() -> Vec<Setup> {
    let create = ask_for(Request::Create { chunks: 2, thick: false, tier: 0, asked: 0 });
    let begin = [create, create, write(A, 0, 12 * KIB), write(B, 70 * KIB, 4 * KIB), flush(A)];
    let more = [write(A, CHUNK_BYTES, 4 * KIB), flush(A), flush(B), checkpoint()];
    let above = [snapshot(&[A]), write(A, 4 * KIB, 4 * KIB), write(A, 62 * KIB, 4 * KIB), flush(A)];
    let mut plain = pool_of_tiers(&PLAIN, 8);
    vec![
        setup(&mut plain, "plain", &begin),
        setup(&mut plain, "plain, checkpointed", &more),
        setup(&mut plain, "above a snapshot", &above),
    ]
}

/// The snapshot of the first LU in the last of these.
const S: u32 = 3;

fn alphabet() -> Vec<Step> {
    let mut all = vec![
        write(A, 0, 4 * KIB),
        write(A, 62 * KIB, 4 * KIB),
        write(A, CHUNK_BYTES, 4 * KIB),
        write(B, 70 * KIB, 4 * KIB),
        ask_for(Request::Write { extent: part(A, 4 * KIB, 4 * KIB), durable: true }),
        ask_for(Request::Zeroes(part(A, 2 * KIB, 64 * KIB))),
        ask_for(Request::Discard(part(A, 0, CHUNK_BYTES))),
        flush(A),
        flush(B),
        resize(A, 1),
        resize(A, 3),
        delete(A),
        delete(S),
        rollback(A, S),
        CLONE,
        COALESCE,
        snapshot(&[A]),
        checkpoint(),
        Step::Kill,
        Step::Kill,
    ];
    for tier in [0, 1, 1, 1] {
        all.extend([set_tier(A, tier), set_tier(B, tier)]);
    }
    all
}

/// Sequences in which something matters that chance finds late.
fn known() -> Known {
    vec![
        ("plain", vec![set_tier(A, 1), write(A, 0, 4 * KIB), flush(A), checkpoint()]),
        ("plain", vec![set_tier(A, 1), Step::Kill, set_tier(A, 0), flush(A)]),
        (
            "plain, checkpointed",
            vec![set_tier(A, 1), set_tier(B, 1), write(A, CHUNK_BYTES, 4 * KIB), flush(A)],
        ),
        (
            "plain, checkpointed",
            vec![set_tier(A, 1), snapshot(&[A]), write(A, 0, 4 * KIB), flush(A)],
        ),
        (
            "plain, checkpointed",
            vec![write(A, 0, 4 * KIB), set_tier(A, 1), delete(A), checkpoint()],
        ),
        ("above a snapshot", vec![set_tier(A, 1), write(A, 0, 4 * KIB), flush(A), checkpoint()]),
        ("above a snapshot", vec![set_tier(A, 1), rollback(A, S), write(A, 0, 512), flush(A)]),
        ("above a snapshot", vec![set_tier(A, 1), CLONE, snapshot(&[A]), write(A, 0, 512)]),
        ("above a snapshot", vec![set_tier(A, 1), delete(S), COALESCE, flush(A), checkpoint()]),
        ("above a snapshot", vec![delete(S), COALESCE, set_tier(A, 1), write(A, 0, 512), flush(A)]),
        ("above a snapshot", vec![set_tier(A, 1), Step::Kill, set_tier(A, 0), checkpoint()]),
    ]
}

#[test]
fn no_crash_loses_what_is_on_its_way_to_another_tier() {
    let count = assert_keeps(images_max(), |explorer| {
        explorer.all(&setups(), (known(), 6, &[0, u32::MAX]), (&alphabet(), 4))
    });
    assert!(count.second > count.images / 50, "{count:?}");
}

/// Of each LU: in which tier it is, its chunks there, and those elsewhere.
fn places(world: &World) -> Vec<(u8, u32, u32)> {
    let spaces = world.pool.lu_spaces();
    spaces.map(|lu| (lu.tier, lu.allocated - lu.astray, lu.astray)).collect()
}

fn used(world: &World) -> Vec<u32> {
    world.pool.pvs().map(|pv| pv.used).collect()
}

/// A pool with LUs of four chunks that are written, in tier 0.
fn written(pvs: &[(u8, u8)], chunks: u32, lus: u32) -> World {
    let mut world = pool_of_tiers(pvs, chunks);
    for lu in 1..=lus {
        ask(&mut world, ask_for(Request::Create { chunks: 4, thick: false, tier: 0, asked: 0 }));
        (0..3).for_each(|vchunk| _ = ask(&mut world, write(lu, vchunk * CHUNK_BYTES, 4 * KIB)));
    }
    world
}

#[test]
fn an_lu_moves_while_clients_work_and_what_is_new_comes_from_its_tier() {
    let mut world = written(&PLAIN, 20, 2);
    assert_eq!(places(&world), [(0, 3, 0), (0, 3, 0)]);
    let tag = world.submit(Request::SetTier { lu: A, tier: 1 });
    while world.oracle.is_open(tag) {
        assert!(world.step());
    }
    assert_eq!(places(&world)[0].0, 1, "it is answered when it is in the tier");
    let (mut seen, mut written) = (Vec::new(), 0);
    while world.step() {
        let now = places(&world)[0];
        seen.push((now.2, world.pool.balance()));
        if written < 20 {
            written += 1;
            world.submit(Request::Write {
                extent: part(A, written * 6 * KIB, 4 * KIB),
                durable: false,
            });
        }
    }
    assert_eq!(written, 20, "clients go on");
    assert!(seen.windows(2).all(|two| two[1].0 <= two[0].0), "it never goes back: {seen:?}");
    assert!(seen.iter().all(|(_, balance)| balance.over <= balance.planned));
    let planned = seen.iter().map(|(_, balance)| balance.planned).max();
    assert_eq!(planned, Some(3), "each once");
    assert_eq!(places(&world), [(1, 3, 0), (0, 3, 0)]);
    assert_eq!(used(&world).iter().sum::<u32>(), 6);
    // The other tier is empty but for it, and its PVs are filled alike.
    let of_tier = used(&world)[2..].to_vec();
    assert!(of_tier.iter().all(|used| (1..=3).contains(used)), "{of_tier:?}");
    ask(&mut world, write(A, 3 * CHUNK_BYTES, 4 * KIB));
    assert_eq!(places(&world)[0], (1, 4, 0));
    world.judge_now().unwrap();
    // Back again, after the process died on the way.
    let tag = world.submit(Request::SetTier { lu: A, tier: 0 });
    while world.oracle.is_open(tag) || places(&world)[0].2 > 2 {
        assert!(world.step());
    }
    world.kill().unwrap();
    world.rest();
    assert_eq!(places(&world)[0], (0, 4, 0));
    world.judge_now().unwrap();
    let shadow = world.shadow();
    world::judge(Image::new(world.disks.now()), Some(&shadow), &world.oracle, None).unwrap();
}

#[test]
fn an_lu_stays_where_the_other_tier_has_no_room_for_it() {
    // Five chunks for data in each tier.
    let mut world = written(&[(0, 0), (1, 0)], 10, 1);
    ask(&mut world, ask_for(Request::Create { chunks: 3, thick: true, tier: 1, asked: 0 }));
    let room = world.pool.room(1);
    assert_eq!(room, 2);
    assert_eq!(fault(&mut world, set_tier(A, 1)), Some(Fault::NoSpace), "it has three");
    assert_eq!(fault(&mut world, set_tier(A, 2)), Some(Fault::NoSpace), "there is none");
    assert_eq!(fault(&mut world, set_tier(9, 1)), Some(Fault::NoSuchLu));
    assert_eq!(fault(&mut world, set_tier(A, 0)), None, "it is there");
    assert_eq!(places(&world)[0], (0, 3, 0));
    // A thick one needs all that it may have.
    assert_eq!((world.pool.room(0), fault(&mut world, set_tier(B, 0))), (2, Some(Fault::NoSpace)));
    ask(&mut world, ask_for(Request::Discard(part(A, 0, CHUNK_BYTES))));
    assert_eq!((world.pool.room(0), fault(&mut world, set_tier(B, 0))), (3, None));
    assert_eq!([0, 1].map(|tier| world.pool.room(tier)), [0, 5]);
    assert_eq!(fault(&mut world, set_tier(A, 1)), None);
    assert_eq!([0, 1].map(|tier| world.pool.room(tier)), [2, 3]);
}

/// What is on its way has its place: others do not take it, and a write that waits goes on in the other tier.
#[test]
fn what_is_on_its_way_has_its_room_set_aside() {
    // Six chunks for data in each tier.
    let mut world = written(&[(0, 0), (1, 0)], 11, 2);
    for lu in [3, 4] {
        ask(&mut world, ask_for(Request::Create { chunks: 6, thick: false, tier: 1, asked: 0 }));
        assert_eq!(world.pool.lus().last().unwrap().0, lu);
    }
    // Tier 0 is full: who needs space there waits.
    let waits = ask(&mut world, write(A, 3 * CHUNK_BYTES, 4 * KIB));
    assert!(world.oracle.is_open(waits));
    assert_eq!(world.pool.tiers()[0].waiting, 1);
    world.unreadable = Some(0);
    let tag = world.submit(Request::SetTier { lu: A, tier: 1 });
    while world.oracle.is_open(tag) {
        assert!(world.step());
    }
    world.rest();
    assert!(!world.oracle.is_open(waits), "there is space in its new tier");
    assert_eq!((places(&world)[0], world.pool.failed_moves()), ((1, 1, 3), 3));
    // Three of tier 1 are set aside, one is used, two are left.
    assert_eq!((world.pool.room(1), world.pool.tiers()[1].set_aside), (2, 3));
    let [one, two, three] =
        [0, 1, 2].map(|vchunk| ask(&mut world, write(3, vchunk * CHUNK_BYTES, 4 * KIB)));
    assert_eq!([one, two, three].map(|tag| world.oracle.is_open(tag)), [false, false, true]);
    world.unreadable = None;
    world.move_again();
    world.rest();
    assert_eq!((places(&world)[0], world.pool.failed_moves()), ((1, 4, 0), 0));
    assert_eq!(world.pool.tiers()[1].set_aside, 0);
    assert!(world.oracle.is_open(three), "it is full");
    // The LU goes, and who waited goes on.
    ask(&mut world, ask_for(Request::Delete { lu: A }));
    assert!(!world.oracle.is_open(three));
}

/// The tier of an LU, its chunks there, and those elsewhere.
fn place(world: &World, lu: u32) -> (u8, u32, u32) {
    let space = world.pool.lu_spaces().find(|space| space.lu == lu).unwrap();
    (space.tier, space.allocated - space.astray, space.astray)
}

#[test]
fn an_lu_goes_with_its_snapshots_and_not_with_another() {
    let mut world = written(&PLAIN, 20, 1);
    let features = |world: &World| world.pool.superblock().features[0];
    for at in [0, CHUNK_BYTES] {
        ask(&mut world, snapshot(&[A]));
        ask(&mut world, write(A, at, 4 * KIB));
    }
    assert_eq!(features(&world), LAYERS);
    // Three chunks, and a container for what was written above each snapshot.
    assert_eq!(place(&world, A), (0, 5, 0));
    let tag = world.submit(Request::SetTier { lu: A, tier: 1 });
    while world.oracle.is_open(tag) {
        assert!(world.step());
    }
    assert_eq!(place(&world, A), (1, 0, 5), "all of it is on its way");
    world.rest();
    assert_eq!((place(&world, A), used(&world)[..2].to_vec()), ((1, 5, 0), vec![0, 0]));
    assert_eq!(features(&world), LAYERS | GATHERED);
    world.judge_now().unwrap();
    let snapshots: Vec<u32> = world.pool.snapshots().map(|it| it.snapshot).collect();
    assert!(snapshots.iter().all(|snapshot| place(&world, *snapshot).0 == 1));
    assert_eq!(fault(&mut world, set_tier(snapshots[0], 0)), Some(Fault::SharesTier));
    // A clone would go as well.
    ask(&mut world, ask_for(Request::Clone { snapshot: snapshots[0], asked: 0 }));
    let clone = world.pool.lus().last().unwrap().0;
    assert_eq!(place(&world, clone).0, 1);
    for lu in [A, clone] {
        assert_eq!(fault(&mut world, set_tier(lu, 0)), Some(Fault::SharesTier));
    }
    assert_eq!(fault(&mut world, ask_for(Request::Detach { lu: clone })), None);
    for lu in [clone, A] {
        assert_eq!(fault(&mut world, set_tier(lu, 0)), None);
        world.rest();
        let (tier, _, astray) = place(&world, lu);
        assert_eq!((tier, astray), (0, 0));
    }
    assert_eq!(used(&world)[2..], [0, 0]);
    world.judge_now().unwrap();
    let pool = Pool::open(&mut Image::new(world.disks.now()), SERVER, None, POLICY).unwrap();
    assert!(pool.lu_spaces().all(|lu| (lu.tier, lu.astray) == (0, 0)));
}

/// What a thick LU may still write above its snapshots goes with it.
#[test]
fn a_thick_lu_with_a_snapshot_needs_room_for_all_that_it_may_have() {
    for (chunks, fits) in [(8, false), (9, true)] {
        let mut world = pool_of_tiers(&[(0, 0), (0, 0), (1, 0)], chunks);
        ask(&mut world, ask_for(Request::Create { chunks: 2, thick: true, tier: 0, asked: 0 }));
        ask(&mut world, write(A, 0, 4 * KIB));
        ask(&mut world, snapshot(&[A]));
        let tiers = |world: &World| world.pool.tiers();
        // 4,096 parts, and 2,000 slots in a container.
        assert_eq!((tiers(&world)[0].used, tiers(&world)[0].set_aside), (1, 3));
        let room = world.pool.room(1);
        assert_eq!(room, if fits { 4 } else { 3 });
        let refused = fault(&mut world, set_tier(A, 1));
        assert_eq!(refused, (!fits).then_some(Fault::NoSpace));
        let at = usize::from(fits);
        assert_eq!((tiers(&world)[at].used, tiers(&world)[at].set_aside), (1, 3));
    }
}

/// Whenever it goes beside a snapshot, a clone or a rollback, one waits for the other, and all that is made is in its tier.
#[test]
fn what_is_made_of_an_lu_that_goes_to_another_tier_is_there_too() {
    let mut ways = BTreeSet::new();
    for made in [snapshot(&[A]), CLONE, rollback(A, S), delete(S)] {
        for first in [0, 1] {
            for steps in 0..60 {
                let mut world = pool_of_tiers(&PLAIN, 8);
                let create =
                    ask_for(Request::Create { chunks: 1, thick: false, tier: 1, asked: 0 });
                let begin = [create, create, write(A, 0, 512), snapshot(&[A]), set_tier(A, 0)];
                setup(&mut world, "", &begin);
                // A block of the journal is being written, and what is said then is not in the tables before the next.
                let extent = part(B, 0, 512);
                world.submit(Request::Write { extent, durable: false });
                let mut both = [set_tier(A, 1), made];
                both.rotate_left(first);
                let tags = both.map(|step| {
                    let Step::Ask(request) = step else { panic!("a request") };
                    let tag = world.submit(request);
                    (0..steps).for_each(|_| _ = world.step());
                    tag
                });
                world.rest();
                assert_eq!(world.pool.torn(), None, "{made:?}, {first}, {steps}");
                let faults = tags.iter().filter_map(|tag| world.faults.get(tag).copied());
                let faults: Vec<Fault> = faults.collect();
                // Where the clone was first, it would go as well.
                let refused = made == CLONE && faults == [Fault::SharesTier];
                assert!(faults.is_empty() || refused, "{made:?}, {first}, {steps}: {faults:?}");
                ways.insert((made == CLONE, refused));
                ask(&mut world, write(A, 4 * KIB, 512));
                world.judge_now().unwrap();
            }
        }
    }
    assert_eq!(ways.len(), 3, "a clone came before it, and behind it");
}

/// A snapshot that is made while its LU is on its way: all of it goes on.
#[test]
fn a_snapshot_of_what_is_on_its_way_is_in_the_new_tier() {
    let mut world = written(&PLAIN, 20, 1);
    world.unreadable = Some(0);
    ask(&mut world, set_tier(A, 1));
    ask(&mut world, snapshot(&[A]));
    ask(&mut world, write(A, 0, 4 * KIB));
    world.unreadable = None;
    world.move_again();
    world.rest();
    assert_eq!(used(&world)[..2], [0, 0], "{:?}", places(&world));
    world.judge_now().unwrap();
}

/// The last PV of a tier leaves only when no LU is in it, and one of a tier with what is astray when that has moved.
#[test]
fn a_tier_goes_when_no_lu_is_in_it() {
    let mut world = written(&[(0, 0), (1, 0), (0, 0)], 20, 1);
    ask(&mut world, ask_for(Request::Create { chunks: 1, thick: false, tier: 1, asked: 0 }));
    assert_eq!(
        fault(&mut world, ask_for(Request::RemovePv { pv: 1 })),
        Some(Fault::NoSpace),
        "LU 2 has nothing so far"
    );
    assert_eq!(fault(&mut world, set_tier(B, 0)), None);
    assert_eq!(fault(&mut world, ask_for(Request::RemovePv { pv: 1 })), None);
    assert_eq!(world.pool.tiers().len(), 1);
    assert_eq!(fault(&mut world, set_tier(A, 1)), Some(Fault::NoSpace));
    // One PV of the tier leaves while what is on it goes to another tier.
    let new = NewPv { pv: Uuid([9; 16]), chunks: 20, tier: 1, group: 0 };
    ask(&mut world, ask_for(Request::AddPv(new)));
    let tier = world.submit(Request::SetTier { lu: A, tier: 1 });
    let gone = world.submit(Request::RemovePv { pv: 0 });
    world.rest();
    assert!(!world.oracle.is_open(tier) && !world.oracle.is_open(gone));
    assert_eq!(places(&world)[0], (1, 3, 0));
    world.judge_now().unwrap();
    let pool = Pool::open(&mut Image::new(world.disks.now()), SERVER, None, POLICY).unwrap();
    assert_eq!(pool.lu_spaces().next().map(|lu| (lu.tier, lu.astray)), Some((1, 0)));
}

#[test]
fn an_lu_with_two_legs_stays_in_its_tier() {
    let mut world = written(&MIRRORED, 20, 1);
    assert_eq!(fault(&mut world, set_tier(A, 1)), Some(Fault::MirrorTier));
    assert_eq!(places(&world)[0], (0, 3, 0));
}
