//! PVs that are removed without being there.

use super::layers::{ask_for, flush};
use super::mirror::{add_to, checkpoint, durable, open_without, state, world_of};
use super::world::{POLICY, SERVER};
use super::*;
use crate::pool::{Pool, Removal};

/// All that has a leg on a PV, by how many chunks each PV has.
fn used(world: &World) -> Vec<u32> {
    world.pool.pvs().map(|pv| pv.used).collect()
}

/// A PV is away for good: what was on it gets another leg on the other PV of its failure group, which then is enough, and it is no member any more.
#[test]
fn a_pv_that_is_away_is_removed_when_what_was_on_it_is_elsewhere() {
    let mut world = world_of("three");
    for step in [write(A, CHUNK_BYTES, 4 * KIB), flush(A)] {
        ask(&mut world, step);
    }
    let before = used(&world);
    assert_eq!((before[0], before[1] + before[2]), (3, 3));
    world.lose(1);
    assert_eq!(fault(&mut world, durable()), None);
    let tag = world.submit(Request::RemovePv { pv: 1 });
    let mut seen: Vec<Removal> = Vec::new();
    while world.step() {
        seen.extend(world.pool.removals());
    }
    assert!(!world.oracle.is_open(tag) && !world.faults.contains_key(&tag));
    let planned = seen.iter().map(|now| now.planned).max().unwrap();
    assert!(seen.iter().all(|now| now.pv == 1 && now.moved <= now.planned && now.failed == 0));
    assert_eq!(planned, before[1]);
    assert_eq!(seen.last().map(|now| now.moved), Some(planned));
    assert_eq!(state(&world, 1), MemberState::Gone);
    assert!(world.pool.superblock().members[1].left_while_away());
    assert_eq!(used(&world), [3, 3]);
    world.judge_now().unwrap();
    // Whichever of the others is lost, the rest has all of it.
    for lost in [0, 2] {
        let mut world = World::open(world.disks.now().clone(), world.oracle.clone(), None).unwrap();
        world.rest();
        world.lose(lost);
        assert_eq!(fault(&mut world, durable()), None, "without PV {lost}");
        assert!(world.pool.is_away(lost));
        world.judge_now().unwrap();
    }
}

/// In place of the only PV of a failure group another comes first.
#[test]
fn a_pv_that_is_away_is_replaced() {
    for (lost, group) in [(0, 1), (1, 0)] {
        let mut world = world_of("two");
        world.lose(lost);
        assert_eq!(fault(&mut world, durable()), None);
        assert_eq!(fault(&mut world, remove_pv(lost)), Some(Fault::NoSpace));
        assert_eq!(fault(&mut world, add_to(group)), None);
        let room = world.pool.room(0);
        assert_eq!(fault(&mut world, remove_pv(lost)), None);
        assert_eq!(state(&world, usize::from(lost)), MemberState::Gone);
        assert!(world.pool.room(0) <= room, "it was never counted twice");
        world.judge_now().unwrap();
        assert_eq!(fault(&mut world, write(A, CHUNK_BYTES, 4 * KIB)), None);
        // There is a copy of the journal in each group.
        let journals = Pool::journals(world.pool.superblock());
        assert_eq!(journals, [1 - lost, 2].into());
        assert!(open_without(&world, lost).is_ok());
        // And the one that is left may go, too.
        world.lose(1 - lost);
        assert_eq!(fault(&mut world, durable()), None);
        world.judge_now().unwrap();
        assert!(world.pool.is_away(1 - lost));
    }
}

/// What is left of the PV that was removed shows up: it is no member, neither while the pool is open nor when it is opened, and nothing is written to it.
#[test]
fn one_that_was_removed_is_a_stranger_when_it_shows_up() {
    let mut world = world_of("three");
    world.lose(1);
    let of_it = |world: &World| -> Pages {
        let pages = world.disks.now().iter().filter(|((pv, _), _)| *pv == 1);
        pages.map(|(key, page)| (*key, page.clone())).collect()
    };
    assert_eq!(fault(&mut world, durable()), None);
    let had = of_it(&world);
    let tag = world.submit(Request::RemovePv { pv: 1 });
    let mut refused = 0;
    while world.oracle.is_open(tag) {
        if state(&world, 1) == MemberState::Dismissed && refused == 0 {
            refused = world.submit(Request::ReturnPv { pv: 1 });
            assert_eq!(world.faults.get(&refused), Some(&Fault::Dismissed));
            let keep = world.submit(Request::KeepPv { pv: 1 });
            assert_eq!(world.faults.get(&keep), Some(&Fault::Dismissed));
        }
        assert!(world.step());
    }
    assert!(refused > 0 && !world.faults.contains_key(&tag));
    world.lost = None;
    assert_eq!(fault(&mut world, ask_for(Request::ReturnPv { pv: 1 })), Some(Fault::NoSuchPv));
    for step in [durable(), checkpoint(), write(B, 0, 4 * KIB), flush(B)] {
        assert_eq!(fault(&mut world, step), None);
    }
    assert!(of_it(&world) == had, "not a byte was written");
    // With it, and by it alone.
    let shadow = world.shadow();
    judge(Image::new(world.disks.now()), Some(&shadow), &world.oracle, None).unwrap();
    world.kill().unwrap();
    world.rest();
    assert!(of_it(&world) == had);
    let mut image = Image::new(world.disks.now());
    let pool = Pool::open(&mut image, SERVER, None, POLICY).unwrap();
    assert_eq!(pool.superblock().members[1].state, MemberState::Gone);
}

/// It was leaving when it was lost: nobody has to ask again.
#[test]
fn a_pv_that_is_lost_while_it_leaves_goes_on_leaving() {
    for point in 0..40 {
        let mut world = world_of("three");
        ask(&mut world, write(A, CHUNK_BYTES, 4 * KIB));
        let tag = world.submit(Request::RemovePv { pv: 2 });
        while state(&world, 2) != MemberState::Leaving {
            assert!(world.step());
        }
        (0..point).for_each(|_| _ = world.step());
        let gone = state(&world, 2) == MemberState::Gone;
        world.lose(2);
        ask(&mut world, durable());
        let left = state(&world, 2) == MemberState::Gone;
        assert!(left && !world.oracle.is_open(tag), "lost at {point}: {:?}", state(&world, 2));
        assert!(gone || !world.faults.contains_key(&tag), "{point}: {:?}", world.faults.get(&tag));
        world.judge_now().unwrap();
    }
}

/// Two of a failure group are away, and nothing is made anew before one of them returns.
fn two_away() -> World {
    let mut world = world_of("three");
    world.lose(1);
    ask(&mut world, durable());
    assert_eq!(fault(&mut world, add_to(1)), None);
    world.lost = Some(2);
    ask(&mut world, checkpoint());
    assert!(world.pool.is_away(1) && world.pool.is_away(2));
    world
}

/// Chunks still lack the leg that it had: it is not gone before they have another. The rule is broken on purpose as well, and found.
#[test]
fn a_pv_that_is_away_is_gone_when_what_was_on_it_is_elsewhere() {
    for broken in [None, Some(Rule::WholeBeforeGone)] {
        let mut world = two_away();
        world.pool.broken = broken;
        ask(&mut world, ask_for(Request::RemovePv { pv: 1 }));
        assert!(!world.pool.halves().is_empty());
        assert_eq!(state(&world, 1) == MemberState::Gone, broken.is_some());
    }
}

/// Two of a failure group are away. What was on which is not known: the one that may return is waited for, unless it is removed as well.
#[test]
fn while_another_may_return_nothing_is_made_anew() {
    for both in [false, true] {
        let mut world = two_away();
        let tag = world.submit(Request::RemovePv { pv: 1 });
        world.rest();
        assert!(world.oracle.is_open(tag));
        assert_eq!(state(&world, 1), MemberState::Dismissed);
        assert_eq!(world.pool.resync().planned, 0);
        if both {
            assert_eq!(fault(&mut world, remove_pv(2)), None);
        } else {
            world.bring_back();
            world.rest();
        }
        assert_eq!(world.faults.get(&tag), None);
        assert_eq!(state(&world, 1), MemberState::Gone);
        let other = if both { MemberState::Gone } else { MemberState::In };
        assert_eq!(state(&world, 2), other);
        world.judge_now().unwrap();
        judge(Image::new(world.disks.now()), None, &world.oracle, None).unwrap();
    }
}

/// The first PV, which may be any, is lost at some point while members change: it is away as at any other time, and the change goes on, or is told to have failed.
fn a_change_that_meets_a_loss(step: Step, before: &[Step]) {
    for (lost, point) in (0..4).flat_map(|lost| (0..60).map(move |point| (lost, point))) {
        let mut world = world_of("three");
        ask(&mut world, write(A, CHUNK_BYTES, 4 * KIB));
        for step in before {
            match step {
                Step::Lose(pv) => world.lose(*pv),
                step => _ = ask(&mut world, *step),
            }
        }
        let here = format!("{step:?}, {before:?}, PV {lost} lost at {point}");
        let Step::Ask(request) = step else { panic!("a request") };
        let tag = world.submit(request);
        (0..point).for_each(|_| _ = world.step());
        let away = world.lost;
        // Of another failure group none can be done without then.
        let group =
            |pv: u16| world.pool.superblock().members.get(usize::from(pv)).map(|it| it.group);
        if away.is_some_and(|away| group(away) != group(lost)) {
            continue;
        }
        if away.is_some_and(|away| away == lost || !world.pool.is_away(away)) {
            continue;
        }
        // The one that was away before stays so.
        world.lost = Some(lost);
        world.had_lost.insert(lost);
        let wrote = ask(&mut world, durable());
        assert!(world.pool.is_serving(), "it has stopped: {here}");
        assert!(!world.oracle.is_open(wrote), "{here}");
        let both = away.is_some() && world.pool.is_away(lost);
        if !both {
            world.judge_now().unwrap_or_else(|wrong| panic!("{wrong}\n  {here}"));
        }
        world.bring_back();
        world.rest();
        // What could not be copied to one that was lost is tried again by the shell.
        world.move_again();
        world.rest();
        if away.is_none() {
            assert!(!world.oracle.is_open(tag), "{here}");
            let states: Vec<_> =
                world.pool.superblock().members.iter().map(|member| member.state).collect();
            // One that had nothing of the pool yet is known by nobody.
            let strange = states.get(3) == Some(&MemberState::Stale);
            let is = |state: &MemberState| matches!(state, MemberState::In | MemberState::Gone);
            assert!(
                strange || states.iter().all(is),
                "{states:?}, {:?}, {:?}, {:?}: {here}",
                world.pool.resync(),
                world.pool.halves(),
                used(&world)
            );
            if strange {
                assert_eq!(fault(&mut world, remove_pv(3)), None, "{here}");
            }
        }
        world.judge_now().unwrap_or_else(|wrong| panic!("{wrong}\n  {here}"));
        if away.is_none() {
            let judged = judge(Image::new(world.disks.now()), None, &world.oracle, None);
            judged.unwrap_or_else(|wrong| panic!("{wrong}\n  {here}"));
        }
    }
}

#[test]
fn a_pv_that_fails_while_another_comes_is_away() {
    a_change_that_meets_a_loss(add_to(1), &[]);
    a_change_that_meets_a_loss(add_to(0), &[]);
}

#[test]
fn a_pv_that_fails_while_another_goes_is_away() {
    a_change_that_meets_a_loss(remove_pv(2), &[]);
    a_change_that_meets_a_loss(remove_pv(1), &[]);
    a_change_that_meets_a_loss(remove_pv(0), &[add_to(0)]);
}

#[test]
fn a_pv_that_fails_while_one_that_is_away_goes_is_away() {
    let begin = [add_to(1), Step::Lose(1), durable()];
    a_change_that_meets_a_loss(remove_pv(1), &begin);
}
