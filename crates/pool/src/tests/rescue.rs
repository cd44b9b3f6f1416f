//! Pools of which something is lost that opens them: what a rescue finds, and what there is then.

use super::layers::{ask_for, flush, snapshot};
use super::tiers::pool_of_tiers;
use super::world::{Found as Bytes, read_all};
use super::*;
use crate::format::{Kind, Page, PageKind, SystemKind};
use crate::pool::{Found, NotOpened, Rescue, rescue};

const PLAIN: [(u8, u8); 3] = [(0, 0); 3];
const MIRRORED: [(u8, u8); 4] = [(0, 0), (0, 1), (0, 0), (0, 1)];

fn checkpoint() -> Step {
    ask_for(Request::Checkpoint)
}

/// Three LUs of which one is gone, with a checkpoint behind all that is in them.
fn written(pvs: &[(u8, u8)]) -> World {
    let mut world = pool_of_tiers(pvs, 12);
    for _ in 0..3 {
        ask(&mut world, ask_for(Request::Create { chunks: 3, thick: false, tier: 0, asked: 0 }));
    }
    for step in [
        write(A, 0, 12 * KIB),
        write(A, 2 * CHUNK_BYTES, 4 * KIB),
        write(3, 0, 4 * KIB),
        write(B, CHUNK_BYTES + 60 * KIB, 8 * KIB),
        ask_for(Request::Delete { lu: 3 }),
        flush(A),
        flush(B),
        checkpoint(),
    ] {
        ask(&mut world, step);
    }
    world
}

/// What is on the PVs without the pool's own blocks of some kinds.
fn without(world: &World, kinds: &[SystemKind]) -> Pages {
    let own = world.pool.superblock().extents.iter().filter(|own| kinds.contains(&own.kind));
    let ranges: Vec<_> = own
        .map(|own| {
            let first = u64::from(own.chunk) * CHUNK_BYTES / 4096;
            (own.pv, first..first + u64::from(own.count) * CHUNK_BYTES / 4096)
        })
        .collect();
    let gone =
        |(pv, page): &(u16, u64)| ranges.iter().any(|(of, range)| of == pv && range.contains(page));
    let pages = world.disks.now().iter().filter(|(key, _)| !gone(key));
    pages.map(|(key, page)| (*key, page.clone())).collect()
}

fn rescued(pages: &Pages) -> (Rescue, Pages) {
    let rescue = rescue(&mut Image::new(pages)).unwrap();
    let mut image = Image::new(pages);
    for (pv, at, bytes) in rescue.writes.clone() {
        image.apply(&Write { pv, at, bytes: std::rc::Rc::new(bytes) }, Part::All);
    }
    (rescue, image.pages())
}

/// What LUs hold, by the parts of them that are read, without what lies behind the last chunk of a guessed one.
fn all(pages: &Pages) -> Bytes {
    read_all(Image::new(pages), None, None).unwrap().1
}

const KINDS: [SystemKind; 3] = [SystemKind::Journal, SystemKind::Lus, SystemKind::Map];

#[test]
fn what_was_checkpointed_is_there_whatever_is_lost_but_home_records() {
    for pvs in [&PLAIN[..], &MIRRORED] {
        let world = written(pvs);
        let before = all(world.disks.now());
        assert!(before.iter().any(|(.., bytes)| bytes[0] != 0));
        for lost in 0..8_u32 {
            let kinds: Vec<_> =
                (0..3).filter(|bit| lost >> bit & 1 == 1).map(|bit| KINDS[bit]).collect();
            let pages = without(&world, &kinds);
            let (rescue, then) = rescued(&pages);
            let found = |which: fn(&Found) -> bool| rescue.found.iter().any(which);
            assert_eq!(found(|it| *it == Found::NoJournal), kinds.contains(&KINDS[0]), "{kinds:?}");
            assert_eq!(found(|it| *it == Found::NoLus(0)), kinds.contains(&KINDS[1]));
            assert_eq!(found(|it| matches!(it, Found::NoMap { .. })), kinds.contains(&KINDS[2]));
            assert!(!found(|it| matches!(
                it,
                Found::Twice { .. } | Found::Nobodys { .. } | Found::Unknown(_)
            )));
            let guessed = kinds.contains(&KINDS[1]);
            let lus: Vec<_> =
                rescue.lus.iter().map(|lu| (lu.lu, lu.chunks, lu.mapped, lu.guessed)).collect();
            let of_b = if guessed { 2 } else { 3 };
            assert_eq!(lus, [(A, 3, 2, guessed), (B, of_b, 1, guessed)], "{kinds:?}");
            if guessed {
                let opened = crate::pool::Pool::open(
                    &mut Image::new(&pages),
                    world::SERVER,
                    None,
                    world::POLICY,
                );
                assert!(matches!(opened, Err(NotOpened::NoLus(0))), "there is no other way");
            }
            // All that was in chunks, and zeros where nothing was.
            let now = all(&then);
            for (lu, at, bytes) in &before {
                let there = now.iter().find(|(other, from, _)| (other, from) == (lu, at));
                match there {
                    Some((.., found)) => {
                        assert_eq!(found, bytes, "LU {lu} byte {at}, without {kinds:?}")
                    }
                    None => assert!(guessed && bytes.iter().all(|byte| *byte == 0)),
                }
            }
            // Whoever asks again finds nothing to do.
            let again = crate::pool::rescue(&mut Image::new(&then)).unwrap();
            let rest =
                again.found.iter().filter(|it| !matches!(it, Found::NoJournal | Found::Journal(_)));
            assert_eq!(rest.count(), 0, "{:?}", again.found);
            // It works as ever: a new LU gets a number that none had.
            let mut world = World::open(then, Oracle::default(), None).unwrap();
            world.rest();
            ask(
                &mut world,
                ask_for(Request::Create { chunks: 1, thick: false, tier: 0, asked: 0 }),
            );
            let new = world.pool.lus().last().unwrap().0;
            assert!(new > 3 && (!guessed || new > 1000), "{new}");
            assert!(world.pool.is_serving());
        }
    }
}

/// What came after the checkpoint is in the journal, which is taken up also where pages are lost.
#[test]
fn a_journal_that_is_there_is_taken_up() {
    let mut world = written(&PLAIN);
    for step in
        [write(B, 2 * CHUNK_BYTES, 4 * KIB), write(A, 70 * KIB, 4 * KIB), flush(A), flush(B)]
    {
        ask(&mut world, step);
    }
    let before = all(world.disks.now());
    let (rescue, then) = rescued(&without(&world, &KINDS[1..]));
    assert!(
        rescue.found.iter().any(|it| matches!(it, Found::Journal(blocks) if *blocks > 0)),
        "{:?}",
        rescue.found
    );
    assert_eq!(all(&then), before, "also what was mapped since");
    // Without it, it is as at the checkpoint, and nobody reads anything else than zeros or what was there.
    let (rescue, then) = rescued(&without(&world, &KINDS));
    assert!(rescue.found.contains(&Found::NoJournal));
    for (lu, at, bytes) in all(&then) {
        let was = before.iter().find(|(other, from, _)| (*other, *from) == (lu, at)).unwrap();
        let as_was = was.2 == bytes;
        assert!(as_was || bytes.iter().zip(&was.2).all(|(now, was)| *now == 0 || now == was));
    }
}

/// With the pages of LUs it is lost which layer lies over which: an LU holds what was in its own space, and containers stay where they are.
#[test]
fn of_snapshots_only_spaces_are_known_without_the_pages_of_lus() {
    let mut world = written(&PLAIN);
    for step in [
        snapshot(&[A]),
        write(A, 0, 4 * KIB),
        write(A, CHUNK_BYTES, 4 * KIB),
        flush(A),
        checkpoint(),
    ] {
        ask(&mut world, step);
    }
    let before = all(world.disks.now());
    // The map alone: all of it is there.
    let (rescue, then) = rescued(&without(&world, &[KINDS[0], KINDS[2]]));
    assert!(rescue.lus.iter().all(|lu| !lu.guessed && !lu.layer));
    assert_eq!(all(&then), before);
    let (rescue, then) = rescued(&without(&world, &KINDS));
    let layers: Vec<_> = rescue.lus.iter().filter(|lu| lu.layer).collect();
    assert_eq!((layers.len(), rescue.lus.len()), (1, 3), "{:?}", rescue.lus);
    let snapshot = before.iter().find(|(lu, at, _)| (*lu, *at) == (4, 0)).unwrap();
    let now = all(&then);
    let space = now.iter().find(|(lu, at, _)| (*lu, *at) == (A, 0)).unwrap();
    assert_eq!(space.2, snapshot.2, "as the snapshot was");
}

/// Two chunks that say to be the same, and one that is of nobody: the later one counts, and the pool opens.
#[test]
fn what_contradicts_itself_is_told_and_no_longer_hinders() {
    let mut world = written(&PLAIN);
    ask(&mut world, checkpoint());
    let superblock = world.pool.superblock().clone();
    let at = superblock.place_of(SystemKind::Map, 0, 1, 0).unwrap();
    let mut image = Image::new(world.disks.now());
    let mut pages = Vec::new();
    for copy in [0, 1] {
        let bytes = crate::pool::Source::read(&mut image, 1, at + u64::from(copy) * 65_536, 65_536)
            .unwrap();
        pages.extend(Page::decode(&bytes, superblock.pool, PageKind::Map, 1, 0, copy));
    }
    let mut page = pages.into_iter().max_by_key(|page| page.sequence).unwrap();
    let free = page.records.iter().rposition(|record| record.kind != Kind::System).unwrap() as u32;
    let wrong = |lu, vchunk, chunk| crate::format::Record {
        lu,
        vchunk,
        chunk,
        pv: 1,
        generation: 9,
        ..crate::format::Record::of(Kind::Map)
    };
    page.records[free as usize] = wrong(A, 0, free);
    page.records[free as usize - 1] = wrong(77, 0, free - 1);
    let copy = u64::from(page.copy);
    image.apply(
        &Write { pv: 1, at: at + copy * 65_536, bytes: std::rc::Rc::new(page.encode()) },
        Part::All,
    );
    let broken = image.pages();
    assert!(read_all(Image::new(&broken), None, None).is_err());
    let (rescue, then) = rescued(&broken);
    assert!(
        rescue.found.iter().any(|it| matches!(it, Found::Twice { lu: A, vchunk: 0, .. })),
        "{:?}",
        rescue.found
    );
    assert!(rescue.found.iter().any(|it| matches!(it, Found::Nobodys { lu: 77, .. })));
    assert_eq!(all(&then).len(), all(world.disks.now()).len());
}
