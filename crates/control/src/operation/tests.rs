//! A world in which operations are carried out, with facts in any order and a crash after any step: each ends, done or undone, and the world
//! is as it says.

use super::*;
use proptest::prelude::*;

/// What there is, beside what is kept of the operation.
#[derive(Debug, Clone, Default, PartialEq)]
struct World {
    /// What the store has of the change.
    stored: bool,
    /// A copy that is not the medium's yet, and one that is.
    part: bool,
    copy: bool,
    /// The data plane's process.
    process: u32,
    /// The user has not been asked again: how often the process was restarted for him.
    restarts: u32,
    /// A data plane copies what an LU shares; it shares nothing.
    copies: bool,
    apart: bool,
}

/// What happens next.
#[derive(Debug, Clone)]
enum Event {
    /// The next action succeeds.
    Success,
    /// It fails, if it can.
    Failure,
    /// A file is still being opened.
    Opening,
    /// The server dies before the action had any effect, or after that.
    Crash { late: bool },
    /// Somebody cancels.
    Cancel,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => Just(Event::Success),
        1 => Just(Event::Failure),
        1 => Just(Event::Opening),
        2 => any::<bool>().prop_map(|late| Event::Crash { late }),
        1 => Just(Event::Cancel),
    ]
}

fn error() -> ApiError {
    ApiError::new(Code::Failed, "no")
}

fn operation(kind: Kind, lasting: bool) -> Operation {
    let (step, work) = match kind {
        Kind::Restart => {
            let work = Work::Restart { dataplane: "main".to_owned(), pid: Some(1) };
            (Step::Restarting, work)
        }
        Kind::Detach => (Step::Detaching, Work::Detach { volume: "lu0".to_owned(), asked: 1 }),
        Kind::Import | Kind::Export => {
            let (way, step) = match kind {
                Kind::Import => (Way::Import, Step::Importing),
                _ => (Way::Export { snapshot: None }, Step::Exporting),
            };
            let (volume, file, format) = ("lu0".to_owned(), "/f".into(), Format::Raw);
            (step, Work::Image(Image { volume, file, way, format, force: false, asked: 1 }))
        }
        Kind::Scrub => (Step::Scrubbing, Work::Scrub { pool: "p0".to_owned(), asked: 1 }),
        kind => {
            let step = if kind == Kind::Copy { Step::Copying } else { Step::Waiting };
            (step, Work::Change { edits: Vec::new(), files: BTreeMap::new() })
        }
    };
    let mut journal = Journal::default();
    let id = journal.begin(kind, step, work, 5);
    let mut operation = journal.operations.remove(&id).unwrap();
    operation.lasting = lasting;
    operation
}

/// Does what is to be done as the shell does it: what is written with the step is written at once.
fn act(
    action: Action,
    event: &Event,
    operation: &mut Operation,
    facts: &mut Facts,
    world: &mut World,
) {
    let fails = matches!(event, Event::Failure);
    match action {
        Action::Nothing => {}
        Action::Copy => {
            world.part = true;
            facts.finished = Some(if fails { Err(error()) } else { Ok(()) });
        }
        Action::Commit if fails => facts.finished = Some(Err(error())),
        Action::Commit => {
            (world.part, world.copy) = (false, true);
            (operation.step, world.stored) = (Step::Waiting, true);
        }
        Action::Tell | Action::Wait => {
            facts.carried = match event {
                Event::Failure => Carried::Failed(error()),
                Event::Opening => Carried::Opening,
                _ => Carried::Holds,
            };
        }
        Action::Restart => {
            (world.process, world.restarts) = (world.process + 1, world.restarts + 1);
            facts.finished = Some(if fails { Err(error()) } else { Ok(()) });
        }
        Action::Detach | Action::Scrub | Action::Image if matches!(event, Event::Opening) => {
            world.copies = true
        }
        Action::Detach | Action::Scrub | Action::Image => {
            (world.copies, world.apart) = (false, world.apart || !fails);
            facts.finished = Some(if fails { Err(error()) } else { Ok(()) });
        }
        Action::GiveUp(why) => (operation.step, operation.error) = (Step::Cleaning, Some(why)),
        // A store that is full: nothing changes.
        Action::Revert(_) if fails => {}
        Action::Revert(why) => {
            world.stored = false;
            (operation.step, operation.error) = (Step::Cleaning, Some(why));
        }
        Action::Clean => {
            (world.part, world.copy, world.copies) = (false, false, false);
            facts.clean = true;
        }
        Action::End(step, why) => (operation.step, operation.error) = (step, why),
    }
}

proptest! {
    #[test]
    fn an_operation_ends_whatever_happens_and_says_what_is_there(
        kind in prop_oneof![Just(Kind::Change), Just(Kind::Copy), Just(Kind::Restart), Just(Kind::Detach), Just(Kind::Scrub),
            Just(Kind::Import), Just(Kind::Export)],
        lasting: bool,
        events in proptest::collection::vec(event(), 0..40),
    ) {
        let lasting = lasting && matches!(kind, Kind::Change | Kind::Copy);
        let mut operation = operation(kind, lasting);
        let mut world = World { stored: kind == Kind::Change, process: 1, ..World::default() };
        let mut facts = Facts::default();
        let quiet = std::iter::repeat_n(Event::Success, 12);
        let mut cancelled_in_time = false;
        for event in events.into_iter().chain(quiet) {
            match event {
                Event::Cancel if operation.can_cancel() => {
                    operation.cancelled = true;
                    cancelled_in_time = true;
                    continue;
                }
                Event::Crash { late } => {
                    if late {
                        let action = next(&operation, &facts);
                        act(action, &Event::Success, &mut operation, &mut facts, &mut world);
                    }
                    // Only what is kept is left; a server that starts brings a data plane up.
                    let same_process = world.process == 1;
                    facts = Facts { resumed: true, same_process, ..Facts::default() };
                    continue;
                }
                _ => {}
            }
            let action = next(&operation, &facts);
            act(action, &event, &mut operation, &mut facts, &mut world);
        }
        prop_assert!(operation.step.has_ended(), "{operation:?} {facts:?}");
        prop_assert!(!world.part, "part of a copy is left: {operation:?}");
        prop_assert_eq!(next(&operation, &facts), Action::Nothing);
        prop_assert!(world.restarts <= 1, "nobody asked twice");
        match (kind, operation.step) {
            (Kind::Restart, Step::Done) => prop_assert_eq!(world.process, 2),
            (Kind::Restart, _) => prop_assert!(operation.error.is_some()),
            (Kind::Detach | Kind::Scrub | Kind::Import | Kind::Export, Step::Done) => {
                prop_assert!(world.apart && !world.copies && !cancelled_in_time, "{operation:?}");
            }
            (Kind::Detach | Kind::Scrub | Kind::Import | Kind::Export, _) => {
                prop_assert!(!world.copies, "the data plane goes on: {operation:?}");
                prop_assert!(operation.error.is_some(), "it says why");
            }
            (kind, Step::Done) => {
                prop_assert!(world.stored && (world.copy || kind == Kind::Change));
                prop_assert!(!cancelled_in_time, "{operation:?}");
            }
            (_, _) => {
                prop_assert!(!world.stored && !world.copy, "{world:?}");
                prop_assert!(operation.error.is_some(), "it says why");
                prop_assert!(!lasting || kind == Kind::Copy, "what is to last is not taken back");
            }
        }
    }
}

#[test]
fn what_goes_on_is_kept_and_what_has_ended_is_bounded() {
    let mut journal = Journal::default();
    let work = || Work::Change { edits: Vec::new(), files: BTreeMap::new() };
    let first = journal.begin(Kind::Change, Step::Waiting, work(), 1);
    for at_ms in 0..3 * ENDED_MAX as u64 {
        let id = journal.begin(Kind::Copy, Step::Done, work(), at_ms);
        let operation = journal.operations.get_mut(&id).unwrap();
        (operation.shown, operation.ended_ms) = (id % 2 == 0, Some(at_ms));
        journal.prune();
    }
    assert_eq!(journal.operations.len(), 1 + ENDED_MAX);
    assert_eq!(journal.running().map(|operation| operation.id).collect::<Vec<_>>(), [first]);
    let last = journal.last;
    assert!(journal.operations.contains_key(&(last - last % 2)), "the newest stay");
    assert_eq!(journal.begin(Kind::Copy, Step::Copying, work(), 0), last + 1);
}
