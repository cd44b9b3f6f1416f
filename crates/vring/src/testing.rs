//! What the tests of several modules need: a driver and a device on the same memory.

use std::sync::Arc;

use memory::IoBuf;

use crate::driver::{DriverConfig, DriverMemory, DriverQueue};
use crate::inflight::InflightQueue;
use crate::mem::{GuestAddr, MemTable};
use crate::split::{Chain, ChainError, Head, Queue, QueueConfig};

/// A plain ring of `size`: no features.
pub(crate) fn plain(size: u16) -> DriverConfig {
    DriverConfig { size, event_idx: false, indirect_max: 0, in_order: false }
}

/// Both sides of a queue.
pub(crate) struct Pair {
    pub(crate) memory: Arc<DriverMemory>,
    pub(crate) table: Arc<MemTable>,
    pub(crate) driver: DriverQueue,
}

impl Pair {
    pub(crate) fn new(config: DriverConfig) -> Pair {
        Pair::with_memory(DriverMemory::new(4 << 20).unwrap(), config)
    }

    pub(crate) fn with_memory(memory: DriverMemory, config: DriverConfig) -> Pair {
        let memory = Arc::new(memory);
        let table = Arc::new(memory.table().unwrap());
        let driver = DriverQueue::new(&memory, config).unwrap();
        Pair { memory, table, driver }
    }

    pub(crate) fn device(&self) -> Queue {
        self.device_with(None)
    }

    pub(crate) fn device_with(&self, inflight: Option<InflightQueue>) -> Queue {
        let config = QueueConfig { inflight, ..self.driver.device_config() };
        config.start(Arc::clone(&self.table)).map_err(|(_, error)| error).unwrap()
    }

    pub(crate) fn alloc(&self, len: u32) -> (GuestAddr, u32) {
        (self.memory.alloc(len as usize, 16).unwrap().guest, len)
    }

    /// A 16-bit word of the available ring, by its index from the start.
    pub(crate) fn avail_word(&self, index: usize) -> IoBuf {
        self.at(self.driver.addresses().avail.0 + 2 * index as u64, 2)
    }

    /// A 16-bit word of the used ring.
    pub(crate) fn used_word(&self, index: usize) -> IoBuf {
        self.at(self.driver.addresses().used.0 + 2 * index as u64, 2)
    }

    fn at(&self, user: u64, len: u32) -> IoBuf {
        self.table.user(crate::UserAddr(user), len).unwrap()
    }

    /// Overwrites a descriptor of the ring's table.
    pub(crate) fn set_desc(&self, index: u16, addr: u64, len: u32, flags: u16, next: u16) {
        let at = self.driver.addresses().desc.0 + 16 * u64::from(index);
        self.at(at, 16).write(0, &desc_bytes(addr, len, flags, next));
    }

    /// Makes `heads` available behind the driver's back.
    pub(crate) fn force_avail(&self, from: u16, heads: &[u16]) {
        let mask = self.driver.config().size - 1;
        let mut index = from;
        for &head in heads {
            self.avail_word(2 + usize::from(index & mask)).write(0, &head.to_le_bytes());
            index = index.wrapping_add(1);
        }
        self.avail_word(1).write(0, &index.to_le_bytes());
    }
}

pub(crate) fn desc_bytes(addr: u64, len: u32, flags: u16, next: u16) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&addr.to_le_bytes());
    bytes[8..12].copy_from_slice(&len.to_le_bytes());
    bytes[12..14].copy_from_slice(&flags.to_le_bytes());
    bytes[14..].copy_from_slice(&next.to_le_bytes());
    bytes
}

/// Bytes of a word.
pub(crate) fn get16(buf: IoBuf) -> u16 {
    let mut bytes = [0; 2];
    buf.read(0, &mut bytes);
    u16::from_le_bytes(bytes)
}

/// Looks once and takes everything.
pub(crate) fn pop_all(queue: &mut Queue) -> Vec<Head> {
    queue.pending().unwrap();
    std::iter::from_fn(|| queue.pop().unwrap()).collect()
}

/// What a chain came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Walked {
    /// Guest address and length, readable ones first.
    pub(crate) bufs: Vec<(u64, usize)>,
    pub(crate) readable: usize,
    pub(crate) readable_bytes: u64,
    pub(crate) writable_bytes: u64,
    pub(crate) error: Option<ChainError>,
}

/// Walks a chain with room for everything.
pub(crate) fn walk(queue: &mut Queue, head: Head) -> Walked {
    let mut bufs = vec![IoBuf::EMPTY; 8192];
    let mut chain = Chain::new(&mut bufs);
    let error = queue.chain(head, &mut chain).err();
    let Chain { readable, total, readable_bytes, writable_bytes, .. } = chain;
    let mem = queue.mem();
    let bufs = bufs[..total]
        .iter()
        .map(|&buf| match buf.is_empty() {
            true => (0, 0),
            false => (mem.guest_of(buf).unwrap().0, buf.len()),
        })
        .collect();
    Walked { bufs, readable, readable_bytes, writable_bytes, error }
}
