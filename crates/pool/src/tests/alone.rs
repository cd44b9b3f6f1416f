//! Pools that are opened by one failure group, because somebody says so.

use super::layers::flush;
use super::mirror::{checkpoint, durable, pages_of, state, world_of};
use super::world::{POLICY, SERVER};
use super::*;
use crate::choose::NotChosen;
use crate::pool::{NotOpened, Policy, Pool};

const ALONE: Policy = Policy { alone: true, ..POLICY };

/// A pool on what there was at one time, without a PV that nobody had seen go.
fn alone(world: &World, lost: u16) -> Result<World, NotOpened> {
    let (pages, oracle) = (world.disks.now().clone(), world.oracle.clone());
    World::open_without(pages, oracle, None, Some(lost), ALONE)
}

/// What is there is all that was answered; whoever was not there returns as one that was lost.
#[test]
fn one_failure_group_goes_on_alone_if_somebody_says_so_and_the_other_returns() {
    for (name, lost) in [("two", 0), ("two", 1), ("quiet", 1), ("three", 0)] {
        let before = world_of(name);
        let mut image = Image::new(before.disks.now()).without(Some(lost));
        let opened = Pool::open(&mut image, SERVER, None, POLICY);
        assert!(matches!(opened, Err(NotOpened::Undecided(ref pvs)) if pvs.len() == 1), "{name}");
        let mut world = alone(&before, lost).unwrap();
        world.rest();
        assert!(world.pool.is_serving() && world.pool.is_away(lost), "{name} without {lost}");
        for step in [write(A, 0, 4 * KIB), write(B, 70 * KIB, 4 * KIB), durable(), flush(A)] {
            assert_eq!(fault(&mut world, step), None, "{name} without {lost}");
        }
        // Nobody has to say it again.
        world.kill().unwrap();
        world.rest();
        assert_eq!(state(&world, lost.into()), MemberState::Stale);
        world.bring_back();
        world.rest();
        assert_eq!(state(&world, lost.into()), MemberState::In, "{name} without {lost}");
        world.judge_now().unwrap();
    }
}

/// Whatever was written when the power was cut, the pool opens with both, and has all that was answered: one that had not gone on yet had answered nothing.
#[test]
fn a_cut_while_a_pool_begins_to_go_on_alone_makes_no_two_sides() {
    let before = world_of("two");
    for lost in [0, 1] {
        let mut steps = 0;
        loop {
            let mut world = alone(&before, lost).unwrap();
            let tag = world.submit(Request::Write { extent: part(A, 0, 4 * KIB), durable: true });
            let mut left = steps;
            while left > 0 && world.step() {
                left -= 1;
            }
            let answered = !world.oracle.is_open(tag);
            for with_cache in [false, true] {
                let pages = if with_cache { world.disks.now() } else { world.disks.stable() };
                let (pages, oracle) = (pages.clone(), world.oracle.clone());
                let opened = World::open(pages, oracle, None);
                let mut both = opened.unwrap_or_else(|error| panic!("{steps}: {error}"));
                both.had_lost.insert(lost);
                both.judge_now().unwrap_or_else(|error| panic!("{steps}: {error}"));
            }
            if answered {
                break;
            }
            steps += 1;
        }
        assert!(steps > 10);
    }
}

/// Each side was opened alone: that is seen when they meet.
#[test]
fn two_sides_that_were_both_said_to_go_on_are_told_apart() {
    let before = world_of("two");
    let side = |lost| {
        let mut world = alone(&before, lost).unwrap();
        for step in [write(A, 0, 4 * KIB), durable(), checkpoint()] {
            assert_eq!(fault(&mut world, step), None);
        }
        world
    };
    let (mut first, second) = (side(1), side(0));
    let mut both = pages_of(&first, 0);
    both.extend(pages_of(&second, 1));
    let opened = Pool::open(&mut Image::new(&both), SERVER, None, ALONE);
    assert!(matches!(opened, Err(NotOpened::NotChosen(NotChosen::Fork { .. }))));
    first.disks.replace(1, pages_of(&second, 1));
    let returns = first.bring_back().unwrap();
    first.rest();
    assert_eq!(first.faults.get(&returns), Some(&Fault::Forked));
}

/// It says who may have gone on, and not that what is nowhere else is not needed.
#[test]
fn nobody_goes_on_without_what_is_nowhere_else() {
    let mut world = world_of("quiet");
    world.lose(1);
    assert_eq!(fault(&mut world, write(A, 0, 4 * KIB)), None);
    // The first has what the others never got, or nothing; and the two of the other group have each what the other lacks.
    for lost in [0, 2] {
        let opened = alone(&world, lost).map(|world| world.pool.is_away(lost));
        assert!(matches!(opened, Err(NotOpened::Missing(_))), "{lost}: {opened:?}");
    }
    let mut plain = super::world("written");
    plain.rest();
    assert!(matches!(alone(&plain, 0).map(|_| ()), Err(NotOpened::Missing(_))));
}
