//! LUs that are asked for again, by who does not know whether they were made.

use super::layers::{S, ask_for, setups};
use super::*;

/// Whenever the power fails while an LU is made, or a clone, who asks for it again has it once.
#[test]
fn an_lu_that_is_asked_for_again_is_made_once() {
    let setups = setups();
    let setup = setups.iter().find(|setup| setup.name == "above").unwrap();
    let open = |pages| {
        let mut world = World::open(pages, Oracle::default(), None).unwrap();
        world.rest();
        world
    };
    let count = |world: &World| world.pool.lu_spaces().filter(|lu| lu.origin.is_none()).count();
    let before = count(&open(setup.pages.clone()));
    let (mut none, mut one) = (0, 0);
    for asked in [7, 0] {
        let plain = Request::Create { chunks: 1, thick: false, tier: 0, asked };
        for request in [plain, Request::Clone { snapshot: S, asked }] {
            for steps in 0.. {
                let mut world = open(setup.pages.clone());
                let tag = world.submit(request);
                (0..steps).for_each(|_| _ = world.step());
                let over = !world.oracle.is_open(tag);
                for pages in [world.disks.stable().clone(), world.disks.now().clone()] {
                    let mut world = open(pages);
                    let there = count(&world) - before;
                    (none, one) = (none + usize::from(there == 0), one + usize::from(there == 1));
                    // Twice, the second while the first is under way.
                    world.submit(request);
                    ask(&mut world, ask_for(request));
                    let more = if asked == 0 { there + 2 } else { 1 };
                    assert_eq!(count(&world) - before, more, "after {steps} steps");
                    ask(&mut world, ask_for(Request::Checkpoint));
                    let mut world = open(world.disks.now().clone());
                    ask(&mut world, ask_for(request));
                    let more = if asked == 0 { more + 1 } else { 1 };
                    assert_eq!(count(&world) - before, more, "and from the pages");
                }
                if over {
                    break;
                }
            }
        }
    }
    assert!(none > 0 && one > 0);
}
