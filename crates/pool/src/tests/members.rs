//! PVs are added and removed, and what an opening refuses.

use std::collections::BTreeMap;

use super::full::pool_of;
use super::*;
use crate::choose::NotChosen;
use crate::format::{MemberState, SystemKind};
use crate::pool::{Fault, Lookup, NotOpened, Pool, Removal};
use world::{POLICY, SERVER};

fn add(number: u8, chunks: u32) -> Step {
    Step::Ask(Request::AddPv(NewPv { pv: Uuid([number; 16]), chunks, tier: 0, group: 0 }))
}

fn remove(pv: u16) -> Step {
    Step::Ask(Request::RemovePv { pv })
}

/// What is on the PVs, without those of some numbers.
fn without(world: &World, gone: &[u16]) -> Pages {
    let pages = world.disks.now().iter().filter(|((pv, _), _)| !gone.contains(pv));
    pages.map(|(key, page)| (*key, page.clone())).collect()
}

fn open(pages: &Pages) -> Result<Pool, NotOpened> {
    Pool::open(&mut Image::new(pages), SERVER, None, POLICY)
}

#[test]
fn a_pv_is_added_and_who_waits_for_space_goes_on() {
    let mut world = world("full");
    let paused = ask(&mut world, write(B, CHUNK_BYTES, 4 * KIB));
    assert!(world.oracle.is_open(paused));
    assert_eq!(fault(&mut world, add(4, 7)), None);
    assert!(!world.oracle.is_open(paused));
    let pvs: Vec<_> = world.pool.pvs().collect();
    assert_eq!(pvs.len(), 4);
    assert_eq!((pvs[3].chunks, pvs[3].own, pvs[3].used, pvs[3].free), (7, 3, 4, 0));
    let [tier] = world.pool.tiers()[..] else { panic!("one tier") };
    assert_eq!((tier.chunks, tier.used, tier.free, tier.set_aside, tier.waiting), (10, 7, 3, 0, 0));
    assert_eq!(tier.promised, 2 + 2 + 3);
    let lus: Vec<_> = world.pool.lu_spaces().map(|lu| (lu.lu, lu.chunks, lu.allocated)).collect();
    assert_eq!(lus, [(A, 2, 2), (B, 2, 2), (3, 3, 3)]);
    assert_eq!(fault(&mut world, add(4, 7)), Some(Fault::PvKnown));
    assert_eq!(fault(&mut world, add(5, 3)), Some(Fault::PvUnfit));
    assert_eq!(open(&without(&world, &[])).unwrap().superblock().members.len(), 4);
}

/// The first PV, which has copies of the journal, leaves; the new one takes them over.
#[test]
fn a_pv_is_removed_when_what_it_has_is_elsewhere() {
    let mut world = world("full");
    assert_eq!(fault(&mut world, remove(0)), Some(Fault::NoSpace));
    assert_eq!(fault(&mut world, remove(7)), Some(Fault::NoSuchPv));
    ask(&mut world, add(4, 9));
    let tag = world.submit(Request::RemovePv { pv: 0 });
    let mut seen: Vec<Removal> = Vec::new();
    while world.step() {
        seen.extend(world.pool.removals());
    }
    assert!(!world.oracle.is_open(tag));
    assert!(seen.iter().all(|now| now.planned == 1 && now.moved <= 1 && now.failed == 0));
    assert!(seen.windows(2).all(|two| two[0].moved <= two[1].moved), "it never goes back");
    assert_eq!(seen.iter().map(|now| now.moved).max(), Some(1));
    let superblock = world.pool.superblock();
    assert_eq!(superblock.members[0].state, MemberState::Gone);
    let journals = superblock.extents.iter().filter(|own| own.pv == 3).count();
    assert_eq!(journals, 4, "map, home records, journal, pages of LUs");
    assert_eq!(fault(&mut world, remove(0)), Some(Fault::NoSuchPv));
    assert!(world.disks.now()[&(0, 0)].iter().all(|byte| *byte == 0), "its label is erased");
    // Without it, and without the two others that have copies, the pool is what it was.
    let pool = open(&without(&world, &[0])).unwrap();
    assert_eq!(pool.lus().collect::<Vec<_>>(), world.pool.lus().collect::<Vec<_>>());
    assert_eq!(pool.lu_spaces().map(|lu| lu.allocated).sum::<u32>(), 6);
    assert_eq!(pool.removals().count(), 0);
}

/// What snapshots and clones had on it comes free while it leaves: that nobody else writes does not keep it.
#[test]
fn a_pv_on_which_containers_come_free_last_is_removed() {
    use super::layers::{C, S, delete, world_of};
    for (pv, later) in (0..3).flat_map(|pv| (0..60).map(move |later| (pv, later))) {
        let mut world = world_of("above");
        let tag = world.submit(Request::RemovePv { pv });
        for _ in 0..later {
            world.step();
        }
        for lu in [A, S, C] {
            ask(&mut world, delete(lu));
        }
        while world.step() {}
        assert!(!world.oracle.is_open(tag), "PV {pv}, {later} steps later");
        let state = world.pool.superblock().members[usize::from(pv)].state;
        assert_eq!(state, MemberState::Gone, "PV {pv}, {later} steps later");
    }
}

#[test]
fn a_removal_is_called_back_and_what_has_moved_comes_back() {
    let mut world = pool_of(30, 6);
    for lu in 1..=6 {
        (0..3).for_each(|vchunk| _ = ask(&mut world, write(lu, vchunk * CHUNK_BYTES, 4 * KIB)));
    }
    let state = |world: &World| world.pool.superblock().members[2].state;
    // Before it has begun, and while chunks move.
    for moved in [0, 1] {
        let removal = world.submit(Request::RemovePv { pv: 2 });
        while moved > 0 && world.pool.removals().next().is_none_or(|now| now.moved < moved) {
            assert!(world.step());
        }
        assert_eq!(state(&world) == MemberState::Leaving, moved > 0);
        assert_eq!(fault(&mut world, keep_pv(2)), None);
        assert_eq!((state(&world), world.pool.removals().count()), (MemberState::In, 0));
        assert_eq!(world.faults.get(&removal), Some(&Fault::Cancelled));
        let used: Vec<_> = world.pool.pvs().map(|pv| pv.used).collect();
        assert!(used.iter().sum::<u32>() == 18 && used[2] >= 4, "{used:?}");
        assert_eq!(open(&without(&world, &[])).unwrap().removals().count(), 0);
    }
    assert_eq!(fault(&mut world, keep_pv(2)), None, "it stays as it is");
    assert_eq!(fault(&mut world, keep_pv(9)), Some(Fault::NoSuchPv));
    // Not when it is about to be gone.
    let removal = world.submit(Request::RemovePv { pv: 2 });
    while world.pool.removals().next().is_none_or(|now| now.moved < now.planned) {
        assert!(world.step());
    }
    world.rest();
    assert_eq!(fault(&mut world, keep_pv(2)), Some(Fault::NoSuchPv));
    assert!(!world.oracle.is_open(removal) && !world.faults.contains_key(&removal));
}

/// A PV that leaves cannot be read for a while: what could not be copied is told, and moves when it is tried again.
#[test]
fn chunks_that_could_not_be_copied_are_tried_again() {
    let mut world = pool_of(30, 6);
    for lu in 1..=6 {
        (0..3).for_each(|vchunk| _ = ask(&mut world, write(lu, vchunk * CHUNK_BYTES, 4 * KIB)));
    }
    world.unreadable = Some(2);
    let tag = world.submit(Request::RemovePv { pv: 2 });
    world.rest();
    let now = |world: &World| world.pool.removals().next().map(|now| (now.moved, now.failed));
    assert_eq!((now(&world), world.pool.failed_moves()), (Some((0, 6)), 6));
    assert_eq!(world.faults.get(&tag), Some(&Fault::Medium), "who waits for it is told");
    // In vain: it is as it was, also while it is tried.
    world.move_again();
    assert_eq!((now(&world), world.pool.failed_moves()), (Some((0, 6)), 0));
    world.rest();
    assert_eq!((now(&world), world.pool.failed_moves()), (Some((0, 6)), 6));
    // An LU goes that had some of them.
    ask(&mut world, Step::Ask(Request::Delete { lu: 1 }));
    let (_, failed) = now(&world).unwrap();
    assert!(failed < 6, "{failed} of those that are there");
    world.unreadable = None;
    world.rest();
    assert_eq!(world.pool.failed_moves(), failed, "nothing happens by itself");
    world.move_again();
    world.rest();
    assert_eq!((now(&world), world.pool.failed_moves()), (None, 0));
    assert_eq!(world.pool.superblock().members[2].state, MemberState::Gone);
    let shadow = world.shadow();
    world::judge(Image::new(world.disks.now()), Some(&shadow), &world.oracle, None).unwrap();
}

/// A small LU beside others is on all PVs as a large one is, so that each of them works for it.
#[test]
fn the_chunks_of_an_lu_take_turns_on_the_pvs() {
    let mut world = pool_of(60, 0);
    let sizes = [7, 12, 1, 9];
    for chunks in sizes {
        ask(&mut world, Step::Ask(Request::Create { chunks, thick: false, tier: 0, asked: 0 }));
    }
    for (lu, chunks) in (1..).zip(sizes) {
        let mut on = [0; 3];
        for vchunk in (0..chunks).map(u64::from) {
            ask(&mut world, write(lu, vchunk * CHUNK_BYTES, 4 * KIB));
            let at = part(lu, vchunk * CHUNK_BYTES, 4 * KIB);
            let Lookup::There { legs: [(pv, _), _], .. } = world.pool.lookup(at) else {
                panic!("it is there")
            };
            on[usize::from(pv)] += 1;
        }
        let [least, most] = [on.iter().min(), on.iter().max()].map(|count| *count.unwrap());
        assert!(most - least <= 1, "LU {lu} has {on:?}");
    }
    let used: Vec<u32> = world.pool.pvs().map(|pv| pv.used).collect();
    assert!(used.iter().all(|used| (8..=11).contains(used)), "{used:?}");
}

/// Nothing of a PV that leaves can be read, neither chunks nor home records: who works with the others does not notice, and what could not be copied moves when it can.
#[test]
fn a_checkpoint_needs_no_home_record_that_cannot_be_read() {
    let mut world = pool_of(30, 6);
    for lu in 1..=6 {
        (0..3).for_each(|vchunk| _ = ask(&mut world, write(lu, vchunk * CHUNK_BYTES, 4 * KIB)));
    }
    (1..=6).for_each(|lu| _ = ask(&mut world, Step::Ask(Request::Flush { lu })));
    ask(&mut world, Step::Ask(Request::Checkpoint));
    // Who opens it now knows the place of no home record.
    world.kill().unwrap();
    world.rest();
    (world.unreadable, world.own_unreadable) = (Some(2), Some(2));
    let removal = world.submit(Request::RemovePv { pv: 2 });
    world.rest();
    assert_eq!(world.faults.get(&removal), Some(&Fault::Medium), "who waits for it is told");
    // An LU goes that nobody has worked with: its chunks are free, and their home records have to say so.
    assert_eq!(fault(&mut world, Step::Ask(Request::Delete { lu: 1 })), None);
    for _ in 0..2 {
        assert_eq!(fault(&mut world, Step::Ask(Request::Checkpoint)), None);
    }
    assert!(world.pool.is_serving());
    assert_eq!(fault(&mut world, write(2, 4 * KIB, 4 * KIB)), None);
    let now = world.pool.removals().next().map(|now| (now.moved > 0, now.failed > 0));
    assert_eq!(now, Some((true, true)), "what is left is what was not deleted");
    // It can be read again, here and by whoever opens it.
    world.unreadable = None;
    world.kill().unwrap();
    world.rest();
    assert_eq!(world.pool.superblock().members[2].state, MemberState::Gone);
    world::judge(Image::new(world.disks.now()), None, &world.oracle, None).unwrap();
}

/// Both places of a home record are damaged, and the journal has bits of its chunk: which others there were is not known, and is not made up from these.
#[test]
fn what_is_written_in_a_chunk_is_not_made_up() {
    let mut world = world("checkpointed");
    ask(&mut world, write(A, 70 * KIB, 4 * KIB));
    ask(&mut world, Step::Ask(Request::Flush { lu: A }));
    let Lookup::There { legs: [(pv, at), _], .. } = world.pool.lookup(part(A, 0, 4 * KIB)) else {
        panic!("it is there")
    };
    let superblock = world.pool.superblock();
    let home = superblock.place_of(SystemKind::Homes, 0, pv, 8192 * (at / CHUNK_BYTES)).unwrap();
    let mut pages = without(&world, &[]);
    let mut image = Image::new(&pages);
    let bytes = std::rc::Rc::new(vec![0xee; 8192]);
    image.apply(&Write { pv, at: home, bytes }, Part::All);
    pages = image.pages();
    let mut world = World::open(pages, world.oracle, None).unwrap();
    world.rest();
    let read = |lu, at| Step::Ask(Request::Read(part(lu, at, 4 * KIB)));
    for at in [0, 70 * KIB] {
        assert_eq!(fault(&mut world, read(A, at)), Some(Fault::Medium));
    }
    // Others are as they were, and a checkpoint makes up nothing either.
    for _ in 0..2 {
        assert_eq!(fault(&mut world, read(B, 0)), None);
        assert_eq!(fault(&mut world, Step::Ask(Request::Checkpoint)), None);
        assert_eq!(fault(&mut world, read(A, 0)), Some(Fault::Medium));
    }
    // What is gone is gone; its space is not.
    assert_eq!(fault(&mut world, Step::Ask(Request::Resize { lu: A, chunks: 1 })), None);
    assert_eq!(fault(&mut world, Step::Ask(Request::Delete { lu: A })), None);
    assert_eq!(world.pool.pvs().map(|pv| pv.used).sum::<u32>(), 1);
}

/// So are those that were to go where less is.
#[test]
fn chunks_that_could_not_be_copied_to_a_new_pv_are_tried_again() {
    let mut world = pool_of(24, 6);
    for lu in 1..=6 {
        (0..3).for_each(|vchunk| _ = ask(&mut world, write(lu, vchunk * CHUNK_BYTES, 4 * KIB)));
    }
    world.unreadable = Some(1);
    ask(&mut world, add(4, 60));
    world.rest();
    let before = world.pool.balance();
    assert!(before.failed > 0 && before.over == before.planned, "{before:?}");
    assert_eq!(world.pool.failed_moves(), before.failed);
    world.move_again();
    world.rest();
    assert_eq!(world.pool.balance().failed, before.failed);
    world.unreadable = None;
    world.move_again();
    world.rest();
    assert_eq!((world.pool.balance().failed, world.pool.failed_moves()), (0, 0));
    let used: Vec<u32> = world.pool.pvs().map(|pv| pv.used).collect();
    assert!(used[1] < 6 && used[3] > 6, "{used:?}");
    world.move_again();
    assert!(!world.step(), "there is nothing to try");
}

#[test]
fn the_last_pv_stays() {
    let mut world = fresh(&[NewPv { pv: Uuid([1; 16]), chunks: 9, tier: 0, group: 0 }]);
    assert_eq!(fault(&mut world, remove(0)), Some(Fault::NoSpace));
    // With a second one it may go, and all that the pool knows goes with it to that.
    ask(&mut world, Step::Ask(Request::Create { chunks: 2, thick: false, tier: 0, asked: 0 }));
    ask(&mut world, write(1, 0, 4 * KIB));
    ask(&mut world, add(2, 9));
    assert_eq!(fault(&mut world, remove(0)), None);
    let pool = open(&without(&world, &[0])).unwrap();
    assert_eq!(pool.lu_spaces().map(|lu| (lu.chunks, lu.allocated)).collect::<Vec<_>>(), [(2, 1)]);
}

/// A PV is added to a pool that is well filled: chunks move there with no command, while clients write, and nothing is lost.
#[test]
fn chunks_move_to_a_new_pv_until_all_have_their_share() {
    let mut world = pool_of(24, 6);
    for lu in 1..=6 {
        (0..3).for_each(|vchunk| _ = ask(&mut world, write(lu, vchunk * CHUNK_BYTES, 4 * KIB)));
    }
    let used = |world: &World| world.pool.pvs().map(|pv| pv.used).collect::<Vec<_>>();
    assert_eq!((used(&world), world.pool.balance().planned), (vec![6, 6, 6], 0));
    let Step::Ask(request) = add(4, 11) else { panic!("a request") };
    world.submit(request);
    let mut last = 0;
    for round in 0.. {
        if round % 8 == 0 {
            world.submit(Request::Write {
                extent: part(
                    1 + round / 8 % 6,
                    u64::from(round) % 3 * CHUNK_BYTES + 4 * KIB,
                    4 * KIB,
                ),
                durable: round % 16 == 0,
            });
        }
        if round >= 400 && !world.step() {
            break;
        }
        world.step();
        let now = world.pool.balance();
        assert!(now.over <= now.planned && (now.over >= last || now.over == 0), "{now:?}");
        last = now.over;
        if round >= 400 {
            world.rest();
        }
    }
    assert_eq!((world.pool.balance().planned, world.pool.balance().over), (4, 4));
    // A block of each, once, although clients write meanwhile.
    assert_eq!(world.copied, BTreeMap::from([(3, 4)]));
    let used = used(&world);
    assert!(
        used.iter().sum::<u32>() == 18 && used.iter().all(|used| (4..=5).contains(used)),
        "{used:?}"
    );
    let shadow = world.shadow();
    world::judge(Image::new(world.disks.now()), Some(&shadow), &world.oracle, None).unwrap();
}

#[test]
fn what_cannot_be_opened_is_named() {
    let world = world("written");
    let [one, two, three] = [1, 2, 3].map(|number| Uuid([number; 16]));
    let error = |pages: &Pages| open(pages).unwrap_err();
    assert_eq!(error(&without(&world, &[1, 2])), NotOpened::Missing(vec![two, three]));
    assert_eq!(error(&without(&world, &[0])), NotOpened::Missing(vec![one]));
    let NotOpened::NotChosen(NotChosen::NoQuorum { found: 0 }) = error(&Pages::new()) else {
        panic!("there is nothing")
    };
    // Two disks in each other's place.
    let swap = |pv: u16| [0, 2, 1][usize::from(pv)];
    let swapped = without(&world, &[]).into_iter().map(|((pv, at), page)| ((swap(pv), at), page));
    let misplaced = NotOpened::Misplaced { number: 1, expected: two, found: three };
    assert_eq!(error(&swapped.collect()), misplaced);
    // The third is of another pool.
    let (_, parts) =
        make(Uuid([8; 16]), &[NewPv { pv: Uuid([7; 16]), chunks: 7, tier: 0, group: 0 }]).unwrap();
    let mut pages = without(&world, &[2]);
    let mut image = Image::new(&pages);
    for (_, at, bytes) in parts.into_iter().flatten() {
        image.apply(&Write { pv: 2, at, bytes: std::rc::Rc::new(bytes) }, Part::All);
    }
    pages = image.pages();
    let (first, second) = (Uuid([9; 16]), Uuid([8; 16]));
    let pools = NotChosen::Pools { first, second, pv: Uuid([7; 16]) };
    assert_eq!(error(&pages), NotOpened::NotChosen(pools));
}

/// Two servers that did not see each other opened it, each with what it had.
#[test]
fn two_sides_that_went_on_alone_are_both_named() {
    let setup = setups().into_iter().find(|setup| setup.name == "written").unwrap();
    let sides = [1, 2].map(|chunks| {
        let mut world = World::open(setup.pages.clone(), setup.oracle.clone(), None).unwrap();
        world.rest();
        ask(&mut world, Step::Ask(Request::Create { chunks, thick: false, tier: 0, asked: 0 }));
        ask(&mut world, Step::Ask(Request::Checkpoint));
        world
    });
    let mut pages = without(&sides[0], &[2]);
    pages.extend(without(&sides[1], &[0, 1]));
    let [one, two, three] = [1, 2, 3].map(|number| Uuid([number; 16]));
    let Err(NotOpened::NotChosen(NotChosen::Fork { first, second, .. })) = open(&pages) else {
        panic!("a fork")
    };
    let mut found = [first, second];
    found.sort();
    assert_eq!(found, [vec![one, two], vec![three]]);
}

/// Each of them has room without the other one alone.
#[test]
fn of_two_removals_at_once_that_leave_no_room_one_is_refused() {
    let mut world = super::mirror::world_of("quiet");
    let tags = [0, 2].map(|pv| world.submit(Request::RemovePv { pv }));
    world.rest();
    let faults = tags.map(|tag| world.faults.get(&tag).copied());
    assert_eq!(faults, [None, Some(Fault::NoSpace)]);
    let states = [0, 1, 2].map(|pv| super::mirror::state(&world, pv));
    assert_eq!(states, [MemberState::Gone, MemberState::In, MemberState::In]);
    world.judge_now().unwrap();
}
