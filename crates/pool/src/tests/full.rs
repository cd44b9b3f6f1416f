//! Pools without space: who waits, who does not, and in which order they go on.

use super::*;

#[test]
fn a_full_pool_pauses_writes_that_need_space_and_nothing_else() {
    let mut world = world("full");
    let needs_space = [CHUNK_BYTES, 0].map(|at| ask(&mut world, write(4, at, 4 * KIB)));
    assert_eq!(needs_space.map(|tag| world.oracle.is_open(tag)), [false; 2], "there is no LU 4");
    let paused = ask(&mut world, write(B, CHUNK_BYTES, 4 * KIB));
    assert!(world.oracle.is_open(paused));
    for step in [
        write(A, 0, 4 * KIB),
        write(A, 300 * KIB, 4 * KIB),
        Step::Ask(Request::Flush { lu: B }),
        Step::Ask(Request::Read(part(B, CHUNK_BYTES, 4 * KIB))),
        Step::Ask(Request::Zeroes(part(A, 0, 64 * KIB))),
        Step::Ask(Request::Checkpoint),
    ] {
        let tag = ask(&mut world, step);
        assert!(!world.oracle.is_open(tag), "{step:?} waits");
    }
    assert_eq!(world.pool.paused(), 1);
    assert_eq!(world.pool.paused_requests().into_iter().collect::<Vec<_>>(), [(paused, B)]);
    ask(&mut world, Step::Ask(Request::Discard(part(A, CHUNK_BYTES, CHUNK_BYTES))));
    assert!(!world.oracle.is_open(paused), "there is space, and it goes on unaided");
    assert_eq!(world.pool.paused(), 0);
}

#[test]
fn the_space_of_a_thick_lu_is_nobody_elses() {
    let mut world = world("almost full");
    let create = |chunks| Step::Ask(Request::Create { chunks, thick: true, tier: 0, asked: 0 });
    let lus = world.pool.lus().count();
    ask(&mut world, create(2));
    assert_eq!(world.pool.lus().count(), lus, "one chunk is free");
    ask(&mut world, create(1));
    assert_eq!(world.pool.lus().count(), lus + 1);
    let thick = world.pool.lus().last().unwrap().0;
    let thin = ask(&mut world, write(B, CHUNK_BYTES, 4 * KIB));
    assert!(world.oracle.is_open(thin));
    let own = ask(&mut world, write(thick, 0, 4 * KIB));
    assert!(!world.oracle.is_open(own));
    ask(&mut world, Step::Ask(Request::Delete { lu: thick }));
    assert!(!world.oracle.is_open(thin), "the thick one is gone, and so is what it had set aside");
}

#[test]
fn a_request_that_waits_is_called_back_and_others_go_on() {
    let mut world = world("full");
    let [first, second] =
        [0, 4 * KIB].map(|at| ask(&mut world, write(B, CHUNK_BYTES + at, 4 * KIB)));
    assert!(!world.cancel(99), "nobody");
    let mapped = ask(&mut world, write(A, 0, 4 * KIB));
    assert!(!world.cancel(mapped), "it was answered");
    assert!(world.cancel(first));
    world.rest();
    assert_eq!([first, second].map(|tag| world.oracle.is_open(tag)), [false, true]);
    assert!(!world.cancel(first), "once");
    ask(&mut world, Step::Ask(Request::Discard(part(A, CHUNK_BYTES, CHUNK_BYTES))));
    assert!(!world.oracle.is_open(second));
    // Of a request with two parts one has space; the other is called back, and with it the request.
    let mut world = self::world("almost full");
    let both = ask(&mut world, write(1, 0, 2 * CHUNK_BYTES));
    let new = ask(&mut world, write(B, CHUNK_BYTES, 4 * KIB));
    assert_eq!([both, new].map(|tag| world.oracle.is_open(tag)), [false, true]);
    assert!(world.cancel(new));
    world.rest();
    assert_eq!((world.pool.paused(), world.oracle.is_open(new)), (0, false));
}

/// A pool of three PVs with so many chunks for data, and LUs of four chunks.
pub(super) fn pool_of(data: u32, lus: u32) -> World {
    let pv = |number: u8| NewPv { pv: Uuid([number; 16]), chunks: 5 + data / 3, tier: 0, group: 0 };
    let mut world = fresh(&[1, 2, 3].map(pv));
    for _ in 0..lus {
        ask(&mut world, Step::Ask(Request::Create { chunks: 4, thick: false, tier: 0, asked: 0 }));
    }
    world
}

/// Twenty writers fill a pool, are cut back, and go on: first come, first served, and what needs no space never waits.
#[test]
fn what_waits_goes_on_in_the_order_in_which_it_came() {
    let mut world = pool_of(30, 20);
    let mut random = Random(5);
    let (mut waited, mut went_on) = (0, 0);
    // Who waits, in the order in which they came, with their chunks.
    let mut waiting: Vec<(u64, (u32, u64))> = Vec::new();
    for _ in 0..3000 {
        let (lu, vchunk) = (1 + random.below(20) as u32, random.below(4) as u64);
        let at = vchunk * CHUNK_BYTES;
        let tag = match random.below(8) {
            0..4 => {
                let tag = ask(&mut world, write(lu, at, 4 * KIB));
                if world.oracle.is_open(tag) {
                    waiting.push((tag, (lu, vchunk)));
                    waited += 1;
                }
                None
            }
            4 => Some(Request::Discard(part(lu, at, CHUNK_BYTES))),
            5 => Some(Request::Flush { lu }),
            6 => Some(Request::Zeroes(part(lu, at, 64 * KIB))),
            _ => Some(Request::Read(part(lu, at, 4 * KIB))),
        };
        if let Some(request) = tag {
            let tag = ask(&mut world, Step::Ask(request));
            assert!(!world.oracle.is_open(tag), "{request:?} waits");
        }
        // Those that went on came before all that wait, but for those of which the chunk has come meanwhile.
        let still = world.pool.paused_requests();
        assert!(still.keys().all(|tag| waiting.iter().any(|(waits, _)| waits == tag)));
        let first = waiting.iter().position(|(tag, _)| still.contains_key(tag));
        for (index, (tag, key)) in waiting.iter().enumerate() {
            let early = first.is_some_and(|first| index > first) && !still.contains_key(tag);
            let mapped = waiting[..index]
                .iter()
                .any(|(before, same)| same == key && !still.contains_key(before));
            assert!(!early || mapped, "{tag} of {key:?} did not wait for its turn");
        }
        went_on += waiting.len() - still.len();
        waiting.retain(|(tag, _)| still.contains_key(tag));
    }
    assert!(waited > 300 && went_on > 200, "{waited} waited, {went_on} went on");
    for lu in 1..=10 {
        ask(&mut world, Step::Ask(Request::Delete { lu }));
    }
    ask(&mut world, Step::Ask(Request::Flush { lu: 20 }));
    for lu in 11..=19 {
        ask(&mut world, Step::Ask(Request::Delete { lu }));
    }
    assert_eq!(world.pool.paused(), 0);
    assert!(waiting.iter().all(|(tag, _)| !world.oracle.is_open(*tag)));
}

/// Whether a write to the beginning of a chunk is answered.
fn writes(world: &mut World, lu: u32, vchunk: u64) -> bool {
    let tag = ask(world, write(lu, vchunk * CHUNK_BYTES, 4 * KIB));
    !world.oracle.is_open(tag)
}

fn reserve(world: &mut World, lus: &[(u32, u32)], forced: bool) -> Vec<u32> {
    world.change(|pool| pool.set_reserves(lus.iter().copied().collect(), forced))
}

fn tier(world: &World) -> crate::TierSpace {
    world.pool.tiers()[0]
}

#[test]
fn a_reserve_is_nobody_elses_and_what_an_lu_has_is_of_it() {
    let mut world = pool_of(6, 3);
    assert_eq!(reserve(&mut world, &[(1, 3), (2, 4)], false), [2], "seven of six");
    assert_eq!(tier(&world).set_aside, 3, "that of the other holds");
    assert_eq!(reserve(&mut world, &[(2, 4)], false), [0; 0]);
    assert!(writes(&mut world, 1, 0));
    assert_eq!(reserve(&mut world, &[(1, 3), (9, 1)], false), [0; 0]);
    assert_eq!(tier(&world).set_aside, 2, "it has one of three, and there is no LU 9");
    assert!(writes(&mut world, 2, 0) && writes(&mut world, 2, 1) && writes(&mut world, 2, 2));
    assert!(!writes(&mut world, 2, 3), "what is left is set aside");
    assert!(writes(&mut world, 1, 1) && writes(&mut world, 1, 2), "past those who wait");
    assert!(!writes(&mut world, 1, 3), "beyond its reserve it waits with the others");
    assert_eq!((tier(&world).set_aside, world.pool.paused()), (0, 2));
    // What it gives back is set aside for it again.
    ask(&mut world, Step::Ask(Request::Discard(part(1, 0, CHUNK_BYTES))));
    assert_eq!((tier(&world).set_aside, world.pool.paused()), (0, 1), "the second goes on");
    ask(&mut world, Step::Ask(Request::Discard(part(1, CHUNK_BYTES, 2 * CHUNK_BYTES))));
    assert_eq!((tier(&world).set_aside, world.pool.paused()), (2, 1), "nobody else has it");
    assert_eq!(reserve(&mut world, &[(1, 100)], false), [1], "it could have three more");
    assert_eq!(tier(&world).set_aside, 2, "it has what it had");
    assert_eq!(reserve(&mut world, &[], false), [0; 0]);
    assert_eq!((tier(&world).set_aside, world.pool.paused()), (0, 0));
}

#[test]
fn a_reserve_holds_for_what_is_written_above_a_snapshot() {
    let mut world = pool_of(6, 2);
    assert_eq!(reserve(&mut world, &[(1, 2)], false), [0; 0]);
    assert!(writes(&mut world, 1, 0) && writes(&mut world, 1, 1));
    assert_eq!(tier(&world).set_aside, 0);
    ask(&mut world, layers::snapshot(&[1]));
    assert_eq!(tier(&world).set_aside, 2, "its next writes go elsewhere");
    assert!(writes(&mut world, 2, 0) && writes(&mut world, 2, 1) && !writes(&mut world, 2, 2));
    assert!(writes(&mut world, 1, 0), "it has room for that");
}

/// A snapshot would set it aside anew: as of a thick LU, it is refused where there is no room.
#[test]
fn a_snapshot_of_an_lu_with_a_reserve_needs_room_for_that() {
    let mut world = pool_of(6, 2);
    assert_eq!(reserve(&mut world, &[(1, 3)], false), [0; 0]);
    assert!((0..2).all(|vchunk| writes(&mut world, 1, vchunk)));
    assert!(writes(&mut world, 2, 0));
    assert_eq!(
        fault(&mut world, layers::snapshot(&[1])),
        None,
        "three are free, one was set aside"
    );
    assert_eq!(tier(&world).set_aside, 3);
    assert_eq!(fault(&mut world, layers::snapshot(&[1])), None, "it has written nothing since");
    assert!(writes(&mut world, 1, 0));
    let third = fault(&mut world, layers::snapshot(&[1]));
    assert_eq!(third, Some(Fault::NoSpace), "it has one of three, two are free");
    assert_eq!(tier(&world).set_aside, 2);
}

/// What gives space back in the end, and what somebody has asked for, does not wait for it.
#[test]
fn what_the_pool_copies_by_itself_is_not_slowed() {
    let mut world = pool_of(30, 2);
    assert!(writes(&mut world, 1, 0) && writes(&mut world, 1, 1));
    ask(&mut world, layers::snapshot(&[1]));
    let snapshot = world.pool.snapshots().last().unwrap().snapshot;
    ask(&mut world, Step::Ask(Request::Clone { snapshot, asked: 0 }));
    let clone = world.pool.lus().last().unwrap().0;
    world.change(|pool| pool.allow(0, Some(0)));
    let slowed = ask(&mut world, write(2, 0, 4 * KIB));
    let detaches = ask(&mut world, Step::Ask(Request::Detach { lu: clone }));
    assert_eq!((world.oracle.is_open(slowed), world.oracle.is_open(detaches)), (true, false));
    assert_eq!(world.faults.get(&detaches), None);
    assert!(!world.pool.shares(clone));
}

/// A reserve may be told where there is no room for it, a promise to a thick LU never.
#[test]
fn what_is_set_aside_for_thick_lus_comes_before_reserves() {
    let mut world = pool_of(6, 3);
    ask(&mut world, Step::Ask(Request::Create { chunks: 4, thick: true, tier: 0, asked: 0 }));
    let (reserved, thin, thick) = (1, 2, 4);
    assert_eq!(reserve(&mut world, &[(reserved, 4)], true), [0; 0]);
    assert!(!writes(&mut world, thin, 0), "nothing is left for it");
    assert!(writes(&mut world, reserved, 0) && writes(&mut world, reserved, 1));
    assert!(!writes(&mut world, reserved, 2), "the others are the thick one's");
    assert!((0..4).all(|vchunk| writes(&mut world, thick, vchunk)));
    assert_eq!((tier(&world).free, world.pool.paused()), (0, 2));
}

#[test]
fn a_tier_that_gives_out_so_many_chunks_slows_those_that_have_none_set_aside() {
    let mut world = pool_of(9, 3);
    assert_eq!(reserve(&mut world, &[(3, 1)], false), [0; 0]);
    world.change(|pool| pool.allow(0, Some(2)));
    assert!(writes(&mut world, 1, 0) && writes(&mut world, 1, 1));
    let slowed = [(1, 2), (2, 0), (2, 1)].map(|(lu, vchunk)| {
        let tag = ask(&mut world, write(lu, vchunk * CHUNK_BYTES, 4 * KIB));
        assert!(world.oracle.is_open(tag));
        tag
    });
    assert!(writes(&mut world, 3, 0), "that was set aside");
    assert!(writes(&mut world, 1, 0), "it has its chunk");
    assert_eq!((world.pool.slowed(), world.pool.paused(), world.pool.allowed(0)), (3, 0, Some(0)));
    assert_eq!((tier(&world).slowed, tier(&world).waiting), (3, 0));
    assert!(world.pool.paused_requests().is_empty(), "there is space");
    // A snapshot does not wait for them, and one of them can be called back.
    ask(&mut world, layers::snapshot(&[1]));
    assert_eq!(world.pool.lus().count(), 4);
    world.change(|pool| pool.allow(0, Some(1)));
    let left = slowed.into_iter().filter(|tag| world.oracle.is_open(*tag));
    let left: Vec<u64> = left.collect();
    assert_eq!(left.len(), 2, "one went on");
    assert!(world.cancel(left[0]));
    world.change(|pool| pool.allow(0, None));
    assert!(slowed.iter().all(|tag| !world.oracle.is_open(*tag)));
    assert_eq!((world.pool.slowed(), world.pool.allowed(0)), (0, None));
    // Where there is none they are paused, as ever.
    for (lu, vchunk) in (0..8).map(|number| (2 + number / 4, u64::from(number % 4))) {
        world.change(|pool| pool.allow(0, Some(1)));
        ask(&mut world, write(lu, vchunk * CHUNK_BYTES, 4 * KIB));
    }
    world.change(|pool| pool.allow(0, Some(0)));
    assert_eq!((tier(&world).free, world.pool.slowed()), (0, 0));
    assert!(world.pool.paused() > 0 && tier(&world).waiting == world.pool.paused());
}
