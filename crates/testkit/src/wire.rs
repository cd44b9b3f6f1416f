//! The messages of FUSE (`linux/fuse.h`, version 7.31) as far as one file needs them: little numbers at fixed places.

/// What the kernel asks for.
pub(crate) const GETATTR: u32 = 3;
pub(crate) const FORGET: u32 = 2;
pub(crate) const SETATTR: u32 = 4;
pub(crate) const OPEN: u32 = 14;
pub(crate) const READ: u32 = 15;
pub(crate) const WRITE: u32 = 16;
pub(crate) const STATFS: u32 = 17;
pub(crate) const RELEASE: u32 = 18;
pub(crate) const FSYNC: u32 = 20;
pub(crate) const FLUSH: u32 = 25;
pub(crate) const INIT: u32 = 26;
pub(crate) const INTERRUPT: u32 = 36;
pub(crate) const DESTROY: u32 = 38;
pub(crate) const BATCH_FORGET: u32 = 42;
pub(crate) const FALLOCATE: u32 = 43;

const ASYNC_READ: u32 = 1 << 0;
const BIG_WRITES: u32 = 1 << 5;
const ASYNC_DIO: u32 = 1 << 15;
const WRITEBACK_CACHE: u32 = 1 << 16;
const MAX_PAGES: u32 = 1 << 22;
const FATTR_SIZE: u32 = 1 << 3;
const FOPEN_KEEP_CACHE: u32 = 1 << 1;

/// Bytes of one read or write at most.
pub(crate) const MAX_WRITE: usize = 1 << 20;
const HEADER: usize = 40;

/// One message of the kernel.
pub(crate) struct Message<'a>(&'a [u8]);

impl<'a> Message<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Message<'a>> {
        (bytes.len() >= HEADER).then_some(Message(bytes))
    }

    pub(crate) fn opcode(&self) -> u32 {
        word(self.0, 4)
    }

    pub(crate) fn unique(&self) -> u64 {
        long(self.0, 8)
    }

    fn body(&self) -> &'a [u8] {
        &self.0[HEADER..]
    }

    /// Position and length of a read or write.
    pub(crate) fn range(&self) -> (u64, u32) {
        (long(self.body(), 8), word(self.body(), 16))
    }

    /// What a write brings.
    pub(crate) fn data(&self) -> &'a [u8] {
        &self.body()[40..]
    }

    /// Whether a write is over only when it is durable (`O_DSYNC`).
    pub(crate) fn is_durable(&self) -> bool {
        word(self.body(), 32) & libc::O_DSYNC.cast_unsigned() != 0
    }

    /// Position, length and mode of a fallocate.
    pub(crate) fn allocation(&self) -> (u64, u64, u32) {
        (long(self.body(), 8), long(self.body(), 16), word(self.body(), 24))
    }

    /// The new size, if that is what is to be changed.
    pub(crate) fn new_size(&self) -> Option<u64> {
        (word(self.body(), 0) & FATTR_SIZE != 0).then(|| long(self.body(), 16))
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// An answer: `Err` is an `errno`.
pub(crate) fn answer(unique: u64, result: Result<&[u8], i32>) -> Vec<u8> {
    let (error, body) = match result {
        Ok(body) => (0, body),
        Err(errno) => (-errno, &[][..]),
    };
    let len = u32::try_from(16 + body.len()).expect("bounded by MAX_WRITE");
    let mut bytes = Vec::with_capacity(16 + body.len());
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&error.to_le_bytes());
    bytes.extend_from_slice(&unique.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// 32-bit words, one after the other.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) fn init(write_back: bool) -> Vec<u8> {
    let cache = if write_back { WRITEBACK_CACHE } else { 0 };
    let flags = ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES | cache;
    // 512 requests in the background before the kernel holds others back; 256 pages in one.
    let background = 512 | 512 << 16;
    let max_write = u32::try_from(MAX_WRITE).expect("small");
    let mut body = words(&[7, 31, 1 << 20, flags, background, max_write, 1, 256]);
    body.resize(64, 0);
    body
}

pub(crate) fn attributes(bytes: u64) -> Vec<u8> {
    let mut body = vec![0; 16];
    for value in [1, bytes, bytes.div_ceil(512), 0, 0, 0] {
        body.extend_from_slice(&u64::to_le_bytes(value));
    }
    let (mode, links, block) = (0o100_666, 1, 4096);
    body.extend(words(&[0, 0, 0, mode, links, 0, 0, 0, block, 0]));
    body
}

pub(crate) fn opened() -> Vec<u8> {
    words(&[1, 0, FOPEN_KEEP_CACHE, 0])
}

pub(crate) fn written(bytes: u32) -> Vec<u8> {
    words(&[bytes, 0])
}

pub(crate) fn statistics(bytes: u64) -> Vec<u8> {
    let mut body = Vec::new();
    for value in [bytes / 4096, bytes / 4096, bytes / 4096, 1, 1] {
        body.extend_from_slice(&u64::to_le_bytes(value));
    }
    body.extend(words(&[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0]));
    body
}
