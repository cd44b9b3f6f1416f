//! Blocks that are zeroed, and of which that is not said yet, while a leg of their chunk goes elsewhere: where it goes is what others have left there.

use super::layers::{ask_for, flush};
use super::mirror::{add_to, alphabet, checkpoint, durable, setups, world_of};
use super::*;

/// Zeros, where the LU has another block besides.
fn zeroes() -> Step {
    ask_for(Request::Zeroes(part(A, 0, 64 * KIB)))
}

fn discard() -> Step {
    ask_for(Request::Discard(part(A, 0, 64 * KIB)))
}

fn more() -> Step {
    write(A, 70 * KIB, 4 * KIB)
}

/// Sequences in which a leg goes elsewhere while a block is zeroed.
fn known() -> Known {
    let [one, other] = [Step::Lose(0), Step::Lose(1)];
    let mut all = Vec::new();
    for clear in [zeroes(), discard()] {
        for to in [move_to(1), move_to(2)] {
            all.push(("checkpointed", vec![more(), flush(A), clear, to]));
            all.push(("checkpointed", vec![more(), flush(A), clear, to, Step::Look]));
            all.push(("three", vec![more(), flush(A), to, clear, durable(), flush(A)]));
            all.push(("quiet", vec![more(), clear, to, flush(A), Step::Kill]));
        }
        for gone in [remove_pv(0), remove_pv(1), remove_pv(2)] {
            all.push(("three", vec![more(), flush(A), add_to(0), clear, gone]));
        }
        for lost in [one, other] {
            all.push(("two", vec![more(), flush(A), lost, clear, Step::Return]));
            all.push(("quiet", vec![more(), flush(A), clear, lost, Step::Return, flush(A)]));
        }
        all.push(("two", vec![more(), flush(A), one, add_to(1), clear, remove_pv(0)]));
        all.push(("two", vec![more(), flush(A), other, add_to(0), clear, remove_pv(1)]));
    }
    all
}

fn explore(explorer: &mut Explorer, setups: &[Setup]) -> Result<(), String> {
    let (zero, looks) = ([zeroes(), discard(), more(), flush(A)], [Step::Look; 4]);
    let alphabet = [&alphabet()[..], &zero, &zero, &looks].concat();
    explorer.all(setups, (known(), 4, &[0, u32::MAX]), (&alphabet, 5))
}

#[test]
fn no_crash_shows_what_others_left_where_a_zeroed_block_goes() {
    let setups = setups();
    assert_keeps(images_max(), |explorer| explore(explorer, &setups));
}

#[test]
fn that_a_block_is_written_on_one_leg_alone_is_found() {
    let setups = setups();
    assert_found(&[Rule::WrittenOnAll], 40_000, |explorer| explore(explorer, &setups));
}

/// The zeros were answered and not flushed, and the move is durable: what was there before they came may be there again, zeros may, and nothing else.
#[test]
fn a_zeroed_block_of_a_chunk_that_moved_is_zeros_or_what_it_was() {
    for (clear, to) in [zeroes(), discard()].into_iter().zip([1, 2]).flat_map(|(clear, to)| {
        [(clear, move_to(to)), (clear, move_to(3 - to)), (clear, remove_pv(to))]
    }) {
        let mut world = world_of("three");
        ask(&mut world, add_to(1));
        for step in [more(), flush(A), clear, to] {
            assert_ne!(fault(&mut world, step), Some(Fault::Medium));
        }
        let image = Image::new(world.disks.stable());
        let judged = judge(image, None, &world.oracle, None);
        assert!(judged.is_ok(), "{clear:?}, {to:?}: {judged:?}");
    }
}

/// As above, and when the pool is opened again nobody can read what the home record says of where the leg has gone: what is there counts for nothing.
fn unread(broken: Option<Rule>) -> Result<(), String> {
    for (clear, to) in [zeroes(), discard()].into_iter().flat_map(|clear| [(clear, 1), (clear, 2)])
    {
        let mut world = world_of("three");
        for step in [more(), flush(A), clear, move_to(to), checkpoint()] {
            assert_ne!(fault(&mut world, step), Some(Fault::Medium));
        }
        let (pages, oracle) = (world.disks.stable().clone(), world.oracle.clone());
        let mut again = World::open(pages, oracle, broken).unwrap();
        again.own_unreadable = Some(to);
        again.judge_now()?;
    }
    Ok(())
}

#[test]
fn a_leg_of_which_it_is_not_known_what_is_written_is_made_of_the_other() {
    unread(None).unwrap();
    assert!(unread(Some(Rule::KnownFirst)).is_err(), "that is what the rule is for");
}
