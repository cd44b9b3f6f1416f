//! Against the crate `virtio-queue`: chains of all sorts, and whole conversations.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use virtio_queue::{Queue as OracleQueue, QueueT};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

use super::{INDIRECT, NEXT, WRITE};
use crate::driver::{DriverConfig, DriverMemory, DriverQueue, Segment};
use crate::split::{Chain, ChainError, Head, Queue, chain};
use crate::testing::{Pair, Walked, desc_bytes, plain, pop_all, walk};
use crate::{GuestAddr, MemTable, UserAddr};

const SIZE: u16 = 16;
/// Two regions that touch and one apart, so that buffers cross borders and miss memory.
const REGIONS: [(GuestAddr, u64); 3] = [
    (GuestAddr(0x10_0000), 0x1_0000),
    (GuestAddr(0x11_0000), 0x1_0000),
    (GuestAddr(0x40_0000), 0x1_0000),
];

fn oracle_memory(memory: &DriverMemory) -> GuestMemoryMmap {
    let regions = memory.regions().unwrap().into_iter().map(|spec| {
        let size = usize::try_from(spec.size).unwrap();
        let region = MmapRegion::from_file(FileOffset::new(spec.file, spec.offset), size).unwrap();
        GuestRegionMmap::new(region, GuestAddress(spec.guest.0)).unwrap()
    });
    GuestMemoryMmap::from_regions(regions.collect()).unwrap()
}

fn oracle_queue(driver: &DriverQueue, table: &MemTable) -> OracleQueue {
    let addresses = driver.addresses();
    let split = |user: UserAddr| {
        let guest = table.guest_of(table.user(user, 1).unwrap()).unwrap().0;
        (Some(guest as u32), Some((guest >> 32) as u32))
    };
    let mut queue = OracleQueue::new(1024).unwrap();
    let (low, high) = split(addresses.desc);
    queue.set_desc_table_address(low, high);
    let (low, high) = split(addresses.avail);
    queue.set_avail_ring_address(low, high);
    let (low, high) = split(addresses.used);
    queue.set_used_ring_address(low, high);
    queue.set_size(driver.config().size);
    queue.set_event_idx(driver.config().event_idx);
    queue.set_next_avail(driver.used_index());
    queue.set_next_used(driver.used_index());
    queue.set_ready(true);
    queue
}

#[derive(Clone, Debug)]
struct Entry {
    addr: u64,
    len: u32,
    flags: u16,
    next: u16,
}

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        12 => 0x10_8000u64..0x10_f000,
        4 => 0x40_0000u64..0x40_f000,
        2 => 0x10_fff0u64..0x11_0010,
        1 => 0x11_fff0u64..0x12_0010,
        1 => any::<u64>(),
    ]
}

fn length() -> impl Strategy<Value = u32> {
    prop_oneof![20 => 1u32..0x800, 2 => Just(0u32), 1 => any::<u32>()]
}

/// Entries of a table of `count`: mostly a line of descriptors in order, then broken. `table`: the
/// address of a table that indirect ones refer to.
fn entries(count: u16, table: u64) -> impl Strategy<Value = Vec<Entry>> {
    let entry = (address(), length(), 0u16..3, 0u16..count + 2, 0u16..24, 1u32..12);
    let size = usize::from(count);
    (prop::collection::vec(entry, size), 0..=size).prop_map(move |(raw, writable_from)| {
        let mut entries = Vec::new();
        for (i, (addr, len, ends, next, oddity, table_len)) in raw.into_iter().enumerate() {
            let direction = if i >= writable_from { WRITE } else { 0 };
            let in_line = i as u16 + 1;
            let mut entry = Entry { addr, len, flags: NEXT | direction, next: in_line };
            if ends == 0 {
                entry.flags &= !NEXT;
            }
            match oddity {
                0 => entry.next = next,
                1 => entry.flags ^= WRITE,
                2..=4 => {
                    let rest = table_len % 5 / 4;
                    entry = Entry {
                        addr: table + u64::from(rest),
                        len: table_len * 16 + rest * 3,
                        flags: INDIRECT | if oddity == 4 { WRITE } else { 0 },
                        next,
                    };
                }
                5 => entry.flags |= 0xfff0,
                _ => {}
            }
            entries.push(entry);
        }
        entries
    })
}

/// A descriptor as the oracle yields it: address, length, writable.
type Listed = (u64, u32, bool);

/// What the oracle yields of the next head, and whether it came to the chain's end.
fn oracle_walk(
    queue: &mut OracleQueue,
    memory: &GuestMemoryMmap,
) -> Option<(u16, Vec<Listed>, bool)> {
    let chain = queue.pop_descriptor_chain(memory)?;
    let head = chain.head_index();
    let all: Vec<_> = chain.collect();
    let complete = all.last().is_some_and(|desc| !desc.has_next());
    let list = all.iter().map(|d| (d.addr().0, d.len(), d.is_write_only())).collect();
    Some((head, list, complete))
}

/// The buffers that a complete list of descriptors comes to, by the naive way: byte ranges cut at
/// the regions' borders.
fn buffers(list: &[Listed]) -> (Vec<(u64, usize)>, bool) {
    let mut out = Vec::new();
    let mut sound = true;
    for &(addr, len, _) in list.iter().filter(|&&(_, len, _)| len > 0) {
        let end = addr.checked_add(u64::from(len));
        let mut pieces = Vec::new();
        let mut at = addr;
        for (GuestAddr(start), size) in REGIONS {
            if let Some(end) = end
                && (start..start + size).contains(&at)
                && at < end
            {
                let to = end.min(start + size);
                pieces.push((at, usize::try_from(to - at).unwrap()));
                at = to;
            }
        }
        if end != Some(at) {
            // What was found before the hole is there, too.
            pieces.push((0, 0));
            sound = false;
        }
        out.extend(pieces);
    }
    (out, sound)
}

fn judge(walked: &Walked, list: &[Listed], complete: bool) -> Result<(), TestCaseError> {
    let bytes: u64 = list.iter().map(|&(_, len, _)| u64::from(len)).sum();
    let with_bytes = || list.iter().filter(|&&(_, len, _)| len > 0);
    let ordered = with_bytes().map(|&(.., write)| write).is_sorted();
    match walked.error {
        None => {
            prop_assert!(complete && ordered && bytes > 0);
        }
        Some(error) if error.has_buffers() => match error {
            ChainError::LengthOverflow => {
                // The oracle stops as soon as the sum leaves 32 bits.
                prop_assert!(!complete);
                return Ok(());
            }
            ChainError::BadAddress(_) => prop_assert!(!buffers(list).1 || !complete),
            ChainError::WritableThenReadable => prop_assert!(!ordered || !complete),
            ChainError::Empty => prop_assert!(complete && bytes == 0),
            other => prop_assert!(false, "{other}"),
        },
        // The oracle ignores this one.
        Some(ChainError::IndirectNext) => return Ok(()),
        Some(_) => {
            prop_assert!(!complete);
            return Ok(());
        }
    }
    if !complete {
        // Only a sum beyond 32 bits may end the oracle's walk where ours has gone on.
        let ours = walked.readable_bytes + walked.writable_bytes;
        prop_assert!(ours > u64::from(u32::MAX), "{walked:?}");
        return Ok(());
    }
    prop_assert_eq!(&walked.bufs, &buffers(list).0);
    let written: u64 = with_bytes().filter(|d| d.2).map(|d| u64::from(d.1)).sum();
    prop_assert_eq!(walked.writable_bytes, written);
    prop_assert_eq!(walked.readable_bytes, bytes - written);
    Ok(())
}

fn careful(
    queue: &mut Queue,
    head: Head,
) -> (Result<(), ChainError>, Vec<(*mut u8, usize)>, usize) {
    let mut bufs = vec![memory::IoBuf::EMPTY; 8192];
    let mut out = Chain::new(&mut bufs);
    let mut hit = crate::mem::Span::NONE;
    let mem = Arc::clone(queue.mem());
    let result = chain::careful(&queue.rings, &mem, &mut hit, queue.indirect, head.0, &mut out);
    let (total, readable) = (out.total, out.readable);
    (result, bufs[..total].iter().map(|b| (b.as_ptr(), b.len())).collect(), readable)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any chain: what the oracle follows to the end we take with the same buffers, and what we
    /// call broken it does not follow to the end.
    #[test]
    fn chains_are_what_the_oracle_says(
        ring in entries(SIZE, 0x40_f000),
        table in entries(11, 0x40_f000),
        heads in prop::collection::vec(0..SIZE, 1..8),
        indirect_at in 0u64..3,
    ) {
        let memory = DriverMemory::with_regions(&REGIONS).unwrap();
        let pair = Pair::with_memory(memory, DriverConfig { indirect_max: 1, ..plain(SIZE) });
        for (i, e) in (0..).zip(&ring) {
            pair.set_desc(i, e.addr, e.len, e.flags, e.next);
        }
        for (i, e) in (0..).zip(&table) {
            let at = GuestAddr(0x40_f000 + i * 16 + indirect_at / 2);
            let bytes = desc_bytes(e.addr, e.len, e.flags, e.next);
            pair.memory.buf(at, 16).unwrap().write(0, &bytes);
        }
        let mut heads = heads;
        heads.sort_unstable();
        heads.dedup();
        pair.force_avail(0, &heads);
        let mut device = pair.device();
        let oracle_memory = oracle_memory(&pair.memory);
        let mut oracle = oracle_queue(&pair.driver, &pair.table);
        let popped = pop_all(&mut device);
        prop_assert_eq!(popped.len(), heads.len());
        for head in popped {
            let walked = walk(&mut device, head);
            let (oracle_head, list, complete) =
                oracle_walk(&mut oracle, &oracle_memory).expect("as many as ours");
            prop_assert_eq!(head.0, oracle_head);
            judge(&walked, &list, complete)?;
            // The two walks agree.
            let (result, bufs, readable) = careful(&mut device, head);
            prop_assert_eq!(result.err(), walked.error);
            prop_assert_eq!(readable, walked.readable);
            let lengths: Vec<_> = walked.bufs.iter().map(|b| b.1).collect();
            prop_assert_eq!(bufs.iter().map(|b| b.1).collect::<Vec<_>>(), lengths);
        }
    }
}

/// A step of a conversation.
#[derive(Clone, Debug)]
enum Step {
    Add { readable: usize, writable: usize, indirect: bool },
    Publish,
    Pop { limit: usize },
    Complete { which: Vec<prop::sample::Index>, written: u32 },
    EnableKicks,
    DisableKicks,
    Poll { limit: usize },
    EnableInterrupts,
    DisableInterrupts,
}

fn step() -> impl Strategy<Value = Step> {
    let add = |(readable, writable, indirect)| Step::Add { readable, writable, indirect };
    prop_oneof![
        6 => (0usize..4, 0usize..4, any::<bool>()).prop_map(add),
        4 => Just(Step::Publish),
        4 => (1usize..6).prop_map(|limit| Step::Pop { limit }),
        4 => (prop::collection::vec(any::<prop::sample::Index>(), 1..5), 0u32..64)
            .prop_map(|(which, written)| Step::Complete { which, written }),
        1 => Just(Step::EnableKicks),
        1 => Just(Step::DisableKicks),
        4 => (1usize..6).prop_map(|limit| Step::Poll { limit }),
        1 => Just(Step::EnableInterrupts),
        1 => Just(Step::DisableInterrupts),
    ]
}

/// One of two equal worlds: a driver, and what the device says.
struct World {
    pair: Pair,
    in_flight: VecDeque<u16>,
}

impl World {
    fn new(config: DriverConfig, index: u16) -> World {
        let mut pair = Pair::with_memory(DriverMemory::new(1 << 18).unwrap(), config);
        pair.driver.set_index(index);
        World { pair, in_flight: VecDeque::new() }
    }

    /// The driver's part of a step; its answer has to be the same in both worlds.
    fn drive(&mut self, step: &Step, buffer: Segment, token: u64) -> String {
        let driver = &mut self.pair.driver;
        match *step {
            Step::Add { readable, writable, indirect } => {
                let all = [buffer; 4];
                let added = driver.add(&all[..readable], &all[..writable], token, indirect);
                format!("{added:?}")
            }
            Step::Publish => format!("kick: {}", driver.publish()),
            Step::Poll { limit } => {
                let done: Vec<_> = (0..limit).map_while(|_| driver.poll().transpose()).collect();
                format!("{done:?}")
            }
            Step::EnableInterrupts => format!("more: {}", driver.enable_interrupts()),
            // Without event indices the oracle interrupts whatever the driver's flag says.
            Step::DisableInterrupts => {
                if driver.config().event_idx {
                    driver.disable_interrupts();
                }
                String::new()
            }
            _ => String::new(),
        }
    }

    fn chosen(&mut self, which: &[prop::sample::Index]) -> Vec<u16> {
        let take = |index: &prop::sample::Index| {
            let len = self.in_flight.len();
            (len > 0).then(|| self.in_flight.remove(index.index(len)).unwrap())
        };
        which.iter().filter_map(take).collect()
    }
}

fn oracle_turn(
    world: &mut World,
    queue: &mut OracleQueue,
    memory: &GuestMemoryMmap,
    step: &Step,
) -> String {
    match step {
        Step::Pop { limit } => {
            let heads: Vec<u16> = (0..*limit)
                .map_while(|_| queue.pop_descriptor_chain(memory).map(|c| c.head_index()))
                .collect();
            world.in_flight.extend(&heads);
            format!("{heads:?}")
        }
        Step::Complete { which, written } => {
            let heads = world.chosen(which);
            for &head in &heads {
                queue.add_used(memory, head, *written).unwrap();
            }
            let notify = !heads.is_empty() && queue.needs_notification(memory).unwrap();
            format!("interrupt: {notify}")
        }
        Step::EnableKicks => format!("more: {}", queue.enable_notification(memory).unwrap()),
        Step::DisableKicks => {
            queue.disable_notification(memory).unwrap();
            String::new()
        }
        _ => String::new(),
    }
}

fn our_turn(world: &mut World, queue: &mut Queue, step: &Step) -> String {
    match step {
        Step::Pop { limit } => {
            queue.pending().unwrap();
            let heads: Vec<u16> =
                (0..*limit).map_while(|_| queue.pop().unwrap()).map(|head| head.0).collect();
            world.in_flight.extend(&heads);
            format!("{heads:?}")
        }
        Step::Complete { which, written } => {
            for head in world.chosen(which) {
                queue.put_used(Head(head), *written);
            }
            format!("interrupt: {}", queue.publish())
        }
        Step::EnableKicks => format!("more: {}", queue.enable_kicks()),
        Step::DisableKicks => {
            queue.disable_kicks();
            String::new()
        }
        _ => String::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same conversation with the oracle and with us: heads, completions, kicks and interrupts
    /// are the same, step by step.
    #[test]
    fn conversations_are_those_of_the_oracle(
        steps in prop::collection::vec(step(), 1..120),
        event_idx in any::<bool>(),
        size in (0u32..6).prop_map(|log| 1u16 << log),
        index in prop_oneof![Just(0u16), 65520..=65535u16, any::<u16>()],
    ) {
        let config = DriverConfig { size, event_idx, indirect_max: 8, in_order: false };
        let mut theirs = World::new(config, index);
        let mut ours = World::new(config, index);
        let memory = oracle_memory(&theirs.pair.memory);
        let mut oracle = oracle_queue(&theirs.pair.driver, &theirs.pair.table);
        let mut device = ours.pair.driver.device_config()
            .start(Arc::clone(&ours.pair.table))
            .map_err(|(_, error)| TestCaseError::fail(error.to_string()))?;
        let buffer = (ours.pair.alloc(64), theirs.pair.alloc(64));
        prop_assert_eq!(buffer.0, buffer.1);
        for (token, step) in (0..).zip(&steps) {
            let said = (
                ours.drive(step, buffer.0, token),
                theirs.drive(step, buffer.0, token),
            );
            prop_assert_eq!(&said.0, &said.1, "driver at {:?}", step);
            let said = (
                our_turn(&mut ours, &mut device, step),
                oracle_turn(&mut theirs, &mut oracle, &memory, step),
            );
            prop_assert_eq!(&said.0, &said.1, "device at {:?}", step);
            prop_assert_eq!(usize::from(device.in_flight()), ours.in_flight.len());
        }
    }
}
