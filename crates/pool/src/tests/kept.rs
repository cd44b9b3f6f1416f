//! Whole pools as they were written once: with snapshots and a clone (`above`), with those and mirrored (`mirrored`), mirrored with checksums (`active`). What is on the PVs of version 1 opens as long as there is a version 1.
//!
//! `kept/NAME.image` has all sectors that were ever written: the PV (2 bytes), the sector (8), whether it is one byte over and over (1), and that byte, or all 512; numbers are little-endian. Where
//! there is none for a setup, `UPDATE_DOCS=1` writes it; one that is there never changes.

use std::path::PathBuf;
use std::rc::Rc;

use super::disk::SECTOR;
use super::*;
use crate::format::{JOURNAL_BLOCK_BYTES, SUPERBLOCK_AT, SystemKind};
use crate::pool::superblocks;

const PAGE: u64 = 4096;
const SECTORS: usize = PAGE as usize / SECTOR;

fn setups() -> impl Iterator<Item = Setup> {
    let kept = |setup: &Setup| matches!(setup.name, "above" | "mirrored");
    layers::setups().into_iter().filter(kept).chain(sums::setups().into_iter().take(1))
}

fn place(name: &str) -> PathBuf {
    let name = format!("src/tests/kept/{}.image", name.replace(' ', "-"));
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn encode(pages: &Pages) -> Vec<u8> {
    let mut all = Vec::new();
    for ((pv, page), bytes) in pages {
        let first = page * SECTORS as u64;
        for (sector, bytes) in (first..).zip(bytes.chunks(SECTOR)) {
            let same = bytes.iter().all(|byte| *byte == bytes[0]);
            all.extend(pv.to_le_bytes());
            all.extend(sector.to_le_bytes());
            all.push(u8::from(same));
            all.extend(if same { &bytes[..1] } else { bytes });
        }
    }
    all
}

fn decode(mut all: &[u8]) -> Pages {
    let nothing = Pages::new();
    let mut image = Image::new(&nothing);
    while !all.is_empty() {
        let (head, rest) = all.split_at(11);
        let pv = u16::from_le_bytes(head[..2].try_into().unwrap());
        let sector = u64::from_le_bytes(head[2..10].try_into().unwrap());
        let (bytes, rest) = rest.split_at(if head[10] == 1 { 1 } else { SECTOR });
        let bytes = if head[10] == 1 { vec![bytes[0]; SECTOR] } else { bytes.to_vec() };
        let write = Write { pv, at: sector * SECTOR as u64, bytes: Rc::new(bytes) };
        image.apply(&write, Part::All);
        all = rest;
    }
    image.pages()
}

/// What was kept, and what is to be found there.
fn kept() -> impl Iterator<Item = Setup> {
    setups().map(|setup| {
        let path = place(setup.name);
        if std::env::var_os("UPDATE_DOCS").is_some() && !path.exists() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, encode(&setup.pages)).unwrap();
        }
        let image = std::fs::read(&path);
        let image = image.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Setup { pages: decode(&image), ..setup }
    })
}

fn wipe(image: &mut Image<'_>, pv: u16, at: u64, bytes: usize) {
    image.apply(&Write { pv, at, bytes: Rc::new(vec![0; bytes]) }, Part::All);
}

#[test]
fn what_was_kept_is_read_as_it_was_written() {
    for setup in setups() {
        assert!(decode(&encode(&setup.pages)) == setup.pages, "{}", setup.name);
    }
}

#[test]
fn pools_of_version_1_open_and_hold_what_they_held() {
    for setup in kept() {
        let judged = judge(Image::new(&setup.pages), None, &setup.oracle, None);
        judged.unwrap_or_else(|wrong| panic!("{}: {wrong}", setup.name));
    }
}

/// Whichever two of the three it are, and whichever half of the copies of the superblock.
#[test]
fn two_copies_of_the_journal_or_half_of_the_superblocks_are_not_needed() {
    for setup in kept() {
        let mut image = Image::new(&setup.pages);
        let found = superblocks(&mut image, 0).unwrap();
        let newest = found.into_iter().max_by_key(|(copy, _)| copy.sequence).unwrap().0;
        let ring = newest.blocks_of(SystemKind::Journal, 0, JOURNAL_BLOCK_BYTES as u64);
        let places = |pv| {
            let offsets = (0..ring).map(|block| block * JOURNAL_BLOCK_BYTES as u64);
            let place = |offset| newest.place_of(SystemKind::Journal, 0, pv, offset);
            offsets.filter_map(place).collect::<Vec<_>>()
        };
        let without_journals = |pvs: &[u16]| {
            let mut image = Image::new(&setup.pages);
            for (pv, at) in pvs.iter().flat_map(|pv| places(*pv).into_iter().map(|at| (*pv, at))) {
                wipe(&mut image, pv, at, JOURNAL_BLOCK_BYTES);
            }
            image
        };
        let judged = |image: Image<'_>, what: &str| {
            let judged = judge(image, None, &setup.oracle, None);
            judged.unwrap_or_else(|wrong| panic!("{}, {what}: {wrong}", setup.name));
        };
        assert!((0..3).all(|pv| !places(pv).is_empty()), "{}", setup.name);
        for gone in [[0, 1], [0, 2], [1, 2]] {
            judged(without_journals(&gone), &format!("without the journals of {gone:?}"));
        }
        for gone in [[0, 1], [2, 3], [0, 2], [1, 2_usize]] {
            let mut image = Image::new(&setup.pages);
            for pv in 0..3 {
                for copy in gone {
                    wipe(&mut image, pv, SUPERBLOCK_AT[copy], PAGE as usize);
                }
            }
            judged(image, &format!("without the superblocks {gone:?}"));
        }
        // The last one says what was flushed since the root, where something was.
        if setup.name == "above" {
            assert!(judge(without_journals(&[0, 1, 2]), None, &setup.oracle, None).is_err());
        }
    }
}
