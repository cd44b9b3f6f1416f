//! A PV that is an older copy of itself: somebody restored an image of it that was made while the pool was at work. Nothing that it says is believed, and what it has is made anew.

use super::layers::{ask_for, flush, pool};
use super::mirror::{checkpoint, state};
use super::world::POLICY;
use super::*;
use crate::pool::{NotOpened, Pool};

/// What is on a PV now.
fn image_of(world: &World, pv: u16) -> Pages {
    let pages = world.disks.now().iter().filter(|((of, _), _)| *of == pv);
    pages.map(|(key, page)| (*key, page.clone())).collect()
}

fn write_all(world: &mut World, times: u64) {
    for at in [0, CHUNK_BYTES, times * 64 * KIB] {
        assert_eq!(fault(world, write(A, at, 12 * KIB)), None);
    }
    assert_eq!(fault(world, flush(A)), None);
    // Nobody changes it any more: it is not active, by a root that both PVs have.
    world.look(true);
    world.rest();
    assert_eq!(fault(world, checkpoint()), None);
    assert_eq!(world.pool.active_chunks(), 0);
}

/// A pool with two legs, with what was on a PV before everything in it was written anew.
fn with_image(groups: [u8; 3], pv: u16) -> (World, Pages) {
    let mut world = pool(groups, 9);
    let create = ask_for(Request::Create { chunks: 2, thick: false, tier: 0, asked: 0 });
    assert_eq!(fault(&mut world, create), None);
    write_all(&mut world, 3);
    let image = image_of(&world, pv);
    write_all(&mut world, 5);
    (world, image)
}

/// The power is off and on, and that PV is another's.
fn again(world: &World, pv: u16, image: Pages) -> Result<World, NotOpened> {
    let mut pages = world.disks.now().clone();
    pages.retain(|(of, _), _| *of != pv);
    pages.extend(image);
    let mut world = World::open(pages, world.oracle.clone(), None)?;
    world.rest();
    Ok(world)
}

fn return_pv(world: &mut World, pv: u16) {
    assert_eq!(fault(world, Step::Ask(Request::ReturnPv { pv })), None);
    world.rest();
    assert_eq!(state(world, pv.into()), MemberState::In);
    world.judge_now().unwrap();
}

#[test]
fn one_that_returns_gets_all_of_its_chunks() {
    for pv in 0..3 {
        let (mut world, image) = with_image([1, 0, 1], pv);
        let used = world.pool.pvs().find(|of| of.pv == pv).unwrap().used;
        world.lose(pv);
        assert_eq!(fault(&mut world, write(A, 200 * KIB, 4 * KIB)), None);
        ask(&mut world, checkpoint());
        assert!(world.pool.is_away(pv));
        world.copied.clear();
        world.disks.replace(pv, image);
        world.bring_back();
        world.rest();
        assert_eq!(state(&world, pv.into()), MemberState::In);
        world.judge_now().unwrap();
        assert!(world.copied.len() as u32 >= used.min(1), "{:?}, {used}", world.copied);
    }
}

/// … also where it went before the pool was opened again.
#[test]
fn one_that_returns_to_a_pool_that_was_opened_without_it_does_too() {
    let (mut world, image) = with_image([1, 0, 1], 1);
    world.lose(1);
    assert_eq!(fault(&mut world, write(A, 200 * KIB, 4 * KIB)), None);
    world.kill().unwrap();
    world.rest();
    world.disks.replace(1, image);
    world.bring_back();
    world.rest();
    assert_eq!(state(&world, 1), MemberState::In);
    world.judge_now().unwrap();
}

#[test]
fn one_that_is_there_when_the_pool_is_opened_is_away() {
    for pv in 0..3 {
        let (world, image) = with_image([1, 0, 1], pv);
        let mut world = again(&world, pv, image).unwrap();
        assert_eq!(state(&world, pv.into()), MemberState::Stale);
        world.judge_now().unwrap();
        assert_eq!(fault(&mut world, write(A, 200 * KIB, 4 * KIB)), None);
        return_pv(&mut world, pv);
    }
}

#[test]
fn one_that_cannot_be_done_without_is_named() {
    for pv in 0..3_u16 {
        let (world, image) = with_image([0, 0, 0], pv);
        let uuid = Uuid([pv as u8 + 1; 16]);
        assert_eq!(again(&world, pv, image).map(drop).unwrap_err(), NotOpened::Older(vec![uuid]));
    }
    // Two of a mirror, one of each group.
    let (world, first) = with_image([1, 0, 1], 0);
    let (_, second) = with_image([1, 0, 1], 1);
    let mut pages = world.disks.now().clone();
    pages.retain(|(of, _), _| *of == 2);
    pages.extend(first);
    pages.extend(second);
    let opened = Pool::open(&mut Image::new(&pages), world::SERVER, None, POLICY);
    let both = [1, 2].map(|number| Uuid([number; 16]));
    assert_eq!(opened.map(drop).unwrap_err(), NotOpened::Older(both.to_vec()));
}

/// One that has the superblock before, since the power failed while the last was written, is none.
#[test]
fn one_that_lacks_what_was_being_written_is_believed() {
    let (world, _) = with_image([0, 0, 0], 0);
    let root = world.pool.superblock().sequence;
    for pv in 0..3_u16 {
        let mut world = again(&world, pv, image_of(&world, pv)).unwrap();
        assert!(world.pool.superblock().sequence > root);
        world.judge_now().unwrap();
    }
}
