//! Legs that may differ, while something fails there.

use super::layers::flush;
use super::mirror::{checkpoint, durable, read_first, state, world_of};
use super::*;
use crate::pool::Lookup;

/// The legs of the first chunk: PVs, and where its first byte is.
fn legs(world: &World) -> [(u16, u64); 2] {
    let Lookup::There { legs, count: 2 } = world.pool.lookup(part(A, 0, 4 * KIB)) else {
        panic!("it is there twice")
    };
    legs
}

/// A crash left a write on the first leg alone, which cannot be read there.
fn what_the_other_leg_has(broken: Option<Rule>) -> Option<Fault> {
    let mut world = world_of("three");
    ask(&mut world, write(A, 0, 4 * KIB));
    let [(first, at), _] = legs(&world);
    let before = read_first(&mut world);
    let mut image = Image::new(world.disks.now());
    let bytes = std::rc::Rc::new(vec![0x5a; 4 << 10]);
    image.apply(&Write { pv: first, at, bytes }, Part::All);
    let mut world = World::open(image.pages(), world.oracle.clone(), broken).unwrap();
    (world.unreadable, world.clients_unreadable) = (Some(first), Some(first));
    while !world.pool.is_serving() {
        assert!(world.step());
    }
    let tag = world.submit(Request::Read(part(A, 0, 4 * KIB)));
    world.rest();
    if let Some(fault) = world.faults.get(&tag) {
        return Some(*fault);
    }
    assert!(world.found(tag) == before, "what the second leg has");
    world.rest();
    assert_eq!((world.pool.resync().failed, world.pool.failed_moves()), (0, 0));
    // The sectors that were written anew can be read.
    (world.unreadable, world.clients_unreadable) = (None, None);
    world.judge_now().unwrap();
    world.pool.last_leg = false;
    assert!(read_first(&mut world) == before);
    None
}

#[test]
fn what_cannot_be_read_on_the_first_leg_is_what_the_second_has() {
    assert_eq!(what_the_other_leg_has(None), None);
    let found = what_the_other_leg_has(Some(Rule::EitherLeg));
    assert_eq!(found, Some(Fault::Medium), "that is what the rule is for");
}

/// A write fails on one leg, of a PV that cannot be done without, at each point of the comparison of its chunk: whichever leg is read then has the same.
#[test]
fn a_write_that_fails_while_its_chunk_is_compared_leaves_no_two_truths() {
    let mut failed = 0;
    for point in 0..40 {
        let mut world = world_of("three");
        ask(&mut world, write(A, CHUNK_BYTES, 4 * KIB));
        ask(&mut world, write(A, 0, 4 * KIB));
        let second = legs(&world).map(|(pv, _)| pv).into_iter().max().unwrap();
        ask(&mut world, flush(A));
        // The other PV of the second failure group returns and lacks something.
        world.lose(3 - second);
        for step in [write(A, CHUNK_BYTES, 4 * KIB), write(B, 0, 4 * KIB), durable(), checkpoint()]
        {
            ask(&mut world, step);
        }
        world.unreadable = Some(0);
        world.bring_back();
        world.rest();
        if state(&world, usize::from(3 - second)) != MemberState::Returning {
            continue;
        }
        world.kill().unwrap();
        while !world.pool.is_serving() {
            assert!(world.step());
        }
        world.unreadable = None;
        (0..point).for_each(|_| _ = world.step());
        let tag = world.submit(Request::Write { extent: part(A, 0, 4 * KIB), durable: false });
        for _ in 0..30 {
            if world.fail_write(0) {
                failed += 1;
                break;
            }
            world.step();
        }
        world.rest();
        assert!(!world.oracle.is_open(tag));
        world.move_again();
        world.rest();
        let read = |world: &mut World, last| {
            world.pool.last_leg = last;
            read_first(world)
        };
        let [one, two] = [false, true].map(|last| read(&mut world, last));
        assert!(one == two, "failed at {point}");
    }
    assert!(failed > 5, "{failed}");
}
