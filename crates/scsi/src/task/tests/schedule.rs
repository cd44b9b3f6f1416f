//! Commands of several channels, in any order in which the volume may end their requests.
//!
//! What must hold: between the read and the end of the write of COMPARE AND WRITE nothing else is written there, begun or ended;
//! what was aborted asks for nothing more; what is set aside holds nothing and is not held back by the same again; nothing waits for ever; at the end
//! nobody holds anything.

use proptest::prelude::*;

use super::{BLOCK, World, compare, write};
use crate::sim::Slot;
use crate::{Aborted, BlockRequest, Input, Memory, Step};
use block::OpKind;

const SLOTS: usize = 6;

#[derive(Debug, Clone, Copy)]
enum Event {
    /// Begin a command in this slot, if it is free: a write, or COMPARE AND WRITE, of one block of few.
    Begin {
        slot: usize,
        compares: bool,
        lba: u8,
        blocks: u8,
    },
    /// Carry out what the slot has at the volume; or try again, if it waits.
    Go {
        slot: usize,
    },
    Abort {
        slot: usize,
    },
    /// The volume holds back what the slot asks of it, and has left this mark.
    SetAside {
        slot: usize,
        mark: u8,
    },
}

struct Running {
    slot: Slot,
    step: Option<Step>,
    range: std::ops::Range<u64>,
    compares: bool,
    aborted: bool,
    /// Marks that its requests must still have, of reads and of writes.
    marks: [u8; 2],
}

/// Whether a request is one that writes.
fn writes(request: &BlockRequest) -> bool {
    request.op != OpKind::Read
}

fn channel(slot: usize) -> usize {
    slot % 2
}

struct Schedule {
    world: World,
    running: Vec<Running>,
}

impl Schedule {
    fn new() -> Schedule {
        let free = || Running {
            slot: Slot::new(),
            step: None,
            range: 0..0,
            compares: false,
            aborted: false,
            marks: [0; 2],
        };
        Schedule { world: World::new(), running: (0..SLOTS).map(|_| free()).collect() }
    }

    /// A slot between its read and the end of its write.
    fn in_series(running: &Running) -> bool {
        running.compares && matches!(&running.step, Some(Step::Submit(_)))
    }

    fn note(&mut self, slot: usize, step: Step) {
        if let Step::Submit(request) = &step {
            let range = request.offset..request.offset + request.len;
            if writes(request) || self.running[slot].compares {
                self.nobody_else_in(slot, &range);
            }
            let marks = &mut self.running[slot].marks[usize::from(writes(request))];
            assert_eq!(request.passed & *marks, *marks, "what was let through is asked again");
        }
        let aborted = self.running[slot].aborted;
        assert!(!aborted || matches!(step, Step::Done(_)), "aborted, and asks for {step:?}");
        self.running[slot].step = if matches!(step, Step::Done(_)) { None } else { Some(step) };
    }

    /// No series of actions covers the range, but for this slot's own; and a series finds no write under way.
    fn nobody_else_in(&self, slot: usize, range: &std::ops::Range<u64>) {
        let mine_compares = self.running[slot].compares;
        for (index, other) in self.running.iter().enumerate() {
            let meets = other.range.start < range.end && range.start < other.range.end;
            if index == slot || !meets {
                continue;
            }
            assert!(!Self::in_series(other), "slots {slot} and {index} interfere");
            let out = matches!(&other.step, Some(Step::Submit(request)) if writes(request));
            assert!(!mine_compares || !out, "slot {index} is writing when {slot} begins");
        }
    }

    fn begin(&mut self, slot: usize, compares: bool, lba: u8, blocks: u8) {
        if self.running[slot].step.is_some() {
            return;
        }
        let from = u64::from(lba) * BLOCK as u64;
        let len = usize::from(blocks) * BLOCK;
        self.running[slot].range = from..from + len as u64;
        (self.running[slot].compares, self.running[slot].aborted) = (compares, false);
        self.running[slot].marks = [0; 2];
        let cdb = if compares { compare(lba, blocks) } else { write(lba, blocks) };
        // It is compared with what is there now, so that it sometimes writes.
        let now = self.world.disk.bytes[lba as usize * BLOCK..][..len].to_vec();
        let new = vec![now[0].wrapping_add(slot as u8 + 1); len];
        let data = if compares { [now, new].concat() } else { new };
        let step = {
            let running = &mut self.running[slot];
            running.slot.prepare(&data, 0, usize::MAX);
            running.slot.begin(&self.world.client, &self.world.writers[channel(slot)], &cdb)
        };
        self.note(slot, step);
    }

    /// True when something moved.
    fn go(&mut self, slot: usize) -> bool {
        let Some(step) = self.running[slot].step.take() else { return false };
        let running = &mut self.running[slot];
        let input = match &step {
            Step::Submit(request) => {
                assert!(!matches!(request.memory, Memory::DataIn(_)));
                let scratch = running.slot.scratch();
                Input::Block(self.world.disk.carry_out(request, &running.slot, scratch))
            }
            _ => Input::Ready,
        };
        let writer = &self.world.writers[channel(slot)];
        let next = running.slot.resume(&self.world.client, writer, &step, input);
        let moved = next != step;
        self.note(slot, next);
        moved
    }

    fn set_aside(&mut self, slot: usize, mark: u8) {
        let running = &mut self.running[slot];
        let Some(Step::Submit(request)) = &running.step else { return };
        if running.aborted {
            return;
        }
        let passed = request.passed | mark;
        running.marks[usize::from(writes(request))] = passed;
        let writer = &self.world.writers[channel(slot)];
        assert!(running.slot.set_aside(&self.world.client, writer, passed));
        assert!(running.slot.task.is_aside());
        running.step = Some(Step::Wait);
    }

    fn abort(&mut self, slot: usize) {
        if self.running[slot].step.is_none() || self.running[slot].aborted {
            return;
        }
        let running = &mut self.running[slot];
        let writer = &self.world.writers[channel(slot)];
        match running.slot.abort(&self.world.client, writer) {
            Aborted::Now => running.step = None,
            Aborted::Later | Aborted::Behind => running.aborted = true,
        }
    }
}

fn events() -> impl Strategy<Value = Event> {
    let slot = 0..SLOTS;
    prop_oneof![
        3 => (slot.clone(), any::<bool>(), 0..4_u8, 1..3_u8)
            .prop_map(|(slot, compares, lba, blocks)| Event::Begin { slot, compares, lba, blocks }),
        6 => slot.clone().prop_map(|slot| Event::Go { slot }),
        1 => slot.clone().prop_map(|slot| Event::Abort { slot }),
        2 => (slot, 0..8_u8).prop_map(|(slot, mark)| Event::SetAside { slot, mark: 1 << mark }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn series_of_actions_are_not_interrupted(events in prop::collection::vec(events(), 1..150)) {
        let mut schedule = Schedule::new();
        for event in events {
            match event {
                Event::Begin { slot, compares, lba, blocks } => {
                    schedule.begin(slot, compares, lba, blocks);
                }
                Event::Go { slot } => {
                    schedule.go(slot);
                }
                Event::Abort { slot } => schedule.abort(slot),
                Event::SetAside { slot, mark } => schedule.set_aside(slot, mark),
            }
        }
        // Everything ends, without anything new.
        for _ in 0..100 {
            (0..SLOTS).for_each(|slot| {
                schedule.go(slot);
            });
        }
        prop_assert!(schedule.running.iter().all(|each| each.step.is_none() && each.slot.task.is_idle()));
        // And nothing is held: a COMPARE AND WRITE of everything goes through at once.
        schedule.begin(0, true, 0, 8);
        let steps = std::iter::from_fn(|| schedule.go(0).then_some(())).take(10).count();
        prop_assert_eq!(steps, 3, "scratch memory, read, write");
    }
}
