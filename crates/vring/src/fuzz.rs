//! Rings as an attacker would fill them: mostly sane, then broken.
//!
//! [`fuzz_ring`] is one run, driven by bytes. A driver adds sane chains; between its steps
//! the bytes choose what is overwritten: descriptors, tables, the available ring, any
//! word of the rings. The device side serves what it finds. What has to hold is checked: nothing
//! panics, every buffer is inside the memory, no head is in flight twice, what is refused stays refused.
//! The first bytes choose features, size and index, and whether the in-flight region is filled
//! with rubbish before a restart.

use std::collections::BTreeSet;
use std::sync::Arc;

use memory::IoBuf;

use crate::driver::{DriverConfig, DriverMemory, DriverQueue};
use crate::inflight::{InflightQueue, InflightRegion};
use crate::mem::{GuestAddr, MemTable, UserAddr};
use crate::split::{Chain, ChainError, Head, Queue, QueueConfig};

#[cfg(test)]
mod tests;

/// Bytes as choices; zeroes when they are used up.
struct Choices<'d>(&'d [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    fn below(&mut self, bound: u16) -> u16 {
        self.u16() % bound.max(1)
    }
}

/// How a run ended, for those who want to know that runs reach far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Chains walked without an error.
    pub sound: u32,
    /// Chains refused.
    pub refused: u32,
    /// The ring made no sense at some time.
    pub stopped: bool,
    /// Heads resubmitted.
    pub resubmitted: u32,
}

const BASE: u64 = 0x1_0000;
const BYTES: u64 = 0x4_0000;
/// Where the buffers of sane chains are, beyond the rings.
const DATA: u64 = BASE + BYTES - 0x8000;

struct World {
    table: Arc<MemTable>,
    driver: DriverQueue,
    region: Option<InflightQueue>,
    indirect: bool,
    in_flight: BTreeSet<Head>,
    outcome: Outcome,
}

/// One run. Panics if something that must hold does not.
pub fn fuzz_ring(data: &[u8]) -> Outcome {
    let mut choices = Choices(data);
    let features = choices.byte();
    let size = 1 << (choices.byte() % 8);
    let halves = [(GuestAddr(BASE), BYTES / 2), (GuestAddr(BASE + BYTES / 2), BYTES / 2)];
    let regions = if features & 1 == 0 { &halves[..] } else { &[(GuestAddr(BASE), BYTES)] };
    let memory = Arc::new(DriverMemory::with_regions(regions).expect("memory for a run"));
    let config = DriverConfig {
        size,
        event_idx: features & 2 != 0,
        indirect_max: if features & 4 != 0 { 8 } else { 0 },
        in_order: features & 8 != 0,
    };
    let mut driver = DriverQueue::new(&memory, config).expect("there is room");
    driver.set_index(choices.u16());
    let region = (features & 16 != 0)
        .then(|| InflightRegion::create(1, size).expect("memory for a run").1)
        .and_then(|region| region.queue(0));
    let table = Arc::new(memory.table().expect("the same memory"));
    let in_flight = BTreeSet::new();
    let outcome = Outcome::default();
    let indirect = features & 4 != 0;
    let mut world = World { table, driver, region, indirect, in_flight, outcome };
    let mut device = world.start();
    while !choices.0.is_empty() {
        let Some(running) = device.as_mut() else { break };
        if !world.step(running, &mut choices) {
            world.outcome.stopped = true;
            world.drain(running);
            device = None;
            if choices.byte() & 1 == 0 {
                device = world.start();
            }
        }
    }
    if let Some(mut device) = device {
        world.drain(&mut device);
        device.stop();
    }
    world.outcome
}

impl World {
    /// Starts a device on what the last one left.
    fn start(&mut self) -> Option<Queue> {
        let config = QueueConfig {
            indirect: self.indirect,
            inflight: self.region.clone(),
            ..self.driver.device_config()
        };
        let mut device = config.start(Arc::clone(&self.table)).ok()?;
        while let Some(head) = device.resubmit_next() {
            assert!(self.in_flight.insert(head), "{head:?} resubmitted twice");
            self.outcome.resubmitted += 1;
        }
        Some(device)
    }

    /// One choice. False: the ring makes no sense any more.
    fn step(&mut self, device: &mut Queue, choices: &mut Choices<'_>) -> bool {
        match choices.byte() % 16 {
            0..=3 => self.add(choices),
            4..=6 => return self.serve(device, choices),
            7..=8 => self.complete(device, choices.u16()),
            9 => {
                device.publish();
                // What the device says may be rubbish only if somebody wrote rubbish into its ring.
                while let Ok(Some(_)) = self.driver.poll() {}
            }
            10 => {
                device.enable_kicks();
                device.disable_kicks();
            }
            11 => self.break_descriptor(choices),
            12 => self.break_table(choices),
            13 => self.break_available(choices),
            14 => self.break_anything(choices),
            _ => return self.restart(device, choices),
        }
        true
    }

    fn add(&mut self, choices: &mut Choices<'_>) {
        let shape = choices.byte();
        let buffer = |i: u64| (GuestAddr(DATA + i * 0x100), 0x80 + u32::from(shape));
        let all: [_; 6] = std::array::from_fn(|i| buffer(i as u64));
        let (readable, rest) = all.split_at(usize::from(shape % 4));
        let writable = &rest[..usize::from(shape / 4 % 4).min(rest.len())];
        let indirect = self.indirect && shape & 0x80 != 0;
        let _full = self.driver.add(readable, writable, u64::from(shape), indirect);
        if shape & 0x40 == 0 {
            self.driver.publish();
        }
    }

    fn serve(&mut self, device: &mut Queue, choices: &mut Choices<'_>) -> bool {
        let room = usize::from(choices.byte() % 12);
        let Ok(count) = device.pending() else { return false };
        assert!(count <= device.size());
        loop {
            let head = match device.pop() {
                Ok(Some(head)) => head,
                Ok(None) => return true,
                Err(error) => {
                    assert_eq!(device.pop(), Err(error), "an error that goes away by itself");
                    return false;
                }
            };
            assert!(head.0 < device.size());
            if choices.byte() % 32 == 31 {
                device.undo_pop(head);
                return true;
            }
            assert!(self.in_flight.insert(head), "{head:?} in flight twice");
            self.walk(device, head, room);
        }
    }

    fn walk(&mut self, device: &mut Queue, head: Head, room: usize) {
        let mut small = [IoBuf::EMPTY; 12];
        let mut out = Chain::new(&mut small[..room]);
        let mut result = device.chain(head, &mut out);
        let mut large = Vec::new();
        if let Err(ChainError::TooLong { needed }) = result {
            assert!(needed > room && needed <= 4 * 1024, "{needed} buffers");
            large.resize(needed, IoBuf::EMPTY);
            out = Chain::new(&mut large);
            // Nobody writes in between here, so now it fits.
            result = device.chain(head, &mut out);
            assert!(!matches!(result, Err(ChainError::TooLong { .. })));
        }
        match result {
            Ok(()) => self.outcome.sound += 1,
            Err(_) => self.outcome.refused += 1,
        }
        assert!(out.readable <= out.total && out.total <= out.bufs.len());
        let mut sums = [0, 0];
        for (i, buf) in out.bufs[..out.total].iter().enumerate() {
            sums[usize::from(i >= out.readable)] += buf.len() as u64;
            if buf.is_empty() {
                assert!(result.is_err());
                continue;
            }
            let last = buf.slice(buf.len() - 1, 1);
            assert!(self.table.guest_of(*buf).is_some() && self.table.guest_of(last).is_some());
        }
        if result.is_ok() {
            assert_eq!(sums, [out.readable_bytes, out.writable_bytes]);
        }
    }

    fn complete(&mut self, device: &mut Queue, which: u16) {
        let at = usize::from(which) % self.in_flight.len().max(1);
        if let Some(&head) = self.in_flight.iter().nth(at) {
            self.in_flight.remove(&head);
            device.put_used(head, u32::from(which));
        }
    }

    fn drain(&mut self, device: &mut Queue) {
        while !self.in_flight.is_empty() {
            self.complete(device, 0);
        }
        device.publish();
        assert_eq!(device.in_flight(), 0);
    }

    fn write(&self, user: UserAddr, offset: u64, bytes: &[u8]) {
        // The cast fits: a few bytes.
        let at = self.table.user(UserAddr(user.0 + offset), bytes.len() as u32);
        if let Some(buf) = at {
            buf.write(0, bytes);
        }
    }

    /// A descriptor: flags and next within reason, the address now and then anything.
    fn descriptor(&self, choices: &mut Choices<'_>, count: u16) -> [u8; 16] {
        let oddity = choices.byte();
        let addr = match oddity % 8 {
            0 => choices.u64(),
            1 => BASE + BYTES / 2 - u64::from(choices.byte()),
            2 => BASE + BYTES - u64::from(choices.byte()),
            _ => BASE + u64::from(choices.u16()),
        };
        let len = match oddity / 8 % 4 {
            0 => u32::from(choices.u16()) << 16,
            1 => u32::from(choices.byte() % 8) * 16,
            _ => u32::from(choices.byte()),
        };
        let flags = u16::from(choices.byte() % 8);
        let next = choices.below(count + 2);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&addr.to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..14].copy_from_slice(&flags.to_le_bytes());
        bytes[14..].copy_from_slice(&next.to_le_bytes());
        bytes
    }

    fn break_descriptor(&self, choices: &mut Choices<'_>) {
        let size = self.driver.config().size;
        let index = choices.below(size);
        let bytes = self.descriptor(choices, size);
        self.write(self.driver.addresses().desc, u64::from(index) * 16, &bytes);
    }

    /// Somewhere a table may be: the tables are behind the rings.
    fn break_table(&self, choices: &mut Choices<'_>) {
        let at = u64::from(choices.below(1024)) * 16;
        let bytes = self.descriptor(choices, 8);
        self.write(self.driver.addresses().used, at, &bytes);
    }

    /// An entry, and the index one further, or anywhere.
    fn break_available(&self, choices: &mut Choices<'_>) {
        let size = self.driver.config().size;
        let avail = self.driver.addresses().avail;
        let head = choices.below(size + 1);
        let slot = u64::from(choices.below(size));
        self.write(avail, 4 + 2 * slot, &head.to_le_bytes());
        let index = match choices.byte() % 8 {
            0 => choices.u16(),
            1..=5 => self.driver.used_index().wrapping_add(choices.below(size + 1)),
            _ => return,
        };
        self.write(avail, 2, &index.to_le_bytes());
    }

    fn break_anything(&self, choices: &mut Choices<'_>) {
        let offset = u64::from(choices.below(4096));
        let bytes = choices.u16().to_le_bytes();
        self.write(self.driver.addresses().desc, offset & !1, &bytes);
    }

    /// The server dies without a word, rubbish may come into its region, and it starts again.
    fn restart(&mut self, device: &mut Queue, choices: &mut Choices<'_>) -> bool {
        let in_flight = std::mem::take(&mut self.in_flight);
        if let Some(region) = &self.region
            && choices.byte() & 1 == 1
        {
            region.scribble(usize::from(choices.u16()), choices.byte());
        }
        match self.start() {
            Some(next) => {
                *device = next;
                true
            }
            None => {
                // The last one has them still, and can be drained.
                self.in_flight = in_flight;
                false
            }
        }
    }
}
