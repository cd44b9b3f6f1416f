//! [`Disk`]: a file whose reads and writes this process answers, when and as the test says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::LOST;
use crate::wire::{self, Message};

/// What the kernel wants of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Data out of it.
    Read,
    /// Data into it.
    Write,
    /// `fsync`.
    Flush,
    /// `fallocate`.
    Allocate,
    /// What `stat` tells.
    Look,
}

/// As many as there are.
const KINDS: usize = 5;

/// What a disk does wrong, from time to time, while it says that all is well. To the client of a server it looks as if the server did it: so it
/// shows whether a test would see that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A write is answered and not done.
    Drop,
    /// A write is answered and done later.
    Late,
    /// A write is done, answered, and later done again.
    Twice,
}

/// Of so many writes one is done wrong.
const SPOILT_OF: u64 = 8;
/// What cannot be read by itself.
const PAGE: u64 = 4096;
/// What is written whole or not at all when the power goes.
const SECTOR: usize = 512;
/// How long after its answer such a write is done.
const LATE: Duration = Duration::from_millis(150);

/// How a disk is made.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Its size.
    pub bytes: u64,
    /// The kernel answers buffered writes from its cache and writes them back later. Without, it asks the disk at once.
    pub write_back: bool,
}

/// A regular file at [`Disk::path`], to be opened by whoever is tested. Every request that reaches it has passed through the kernel.
#[derive(Debug)]
pub struct Disk {
    folder: tempfile::TempDir,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: File,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    content: Vec<u8>,
    /// From which byte on.
    hold: [Option<u64>; KINDS],
    fail: [Option<i32>; KINDS],
    /// Pages that cannot be read until they are written.
    bad: BTreeSet<u64>,
    served: [u64; KINDS],
    /// Bytes that writes brought.
    written: u64,
    slow: Option<(Duration, Duration)>,
    /// When each of the requests that it works on at a time has ended; none: it works on all of them.
    busy: Vec<Instant>,
    spoil: Option<Fault>,
    /// What each sector held at the last flush and since, the oldest first, but for what it holds now: of a disk with a volatile cache.
    cached: Option<BTreeMap<usize, Vec<[u8; SECTOR]>>>,
    /// It has no power.
    off: bool,
    random: u64,
    held: Vec<Held>,
    closed: bool,
}

/// A request that the kernel waits for.
#[derive(Debug)]
struct Held {
    /// None: it was answered, and is done late or once more.
    unique: Option<u64>,
    work: Work,
    /// When it is served; none: when the test says so.
    due: Option<Instant>,
}

#[derive(Debug)]
enum Work {
    Read { offset: u64, len: u32 },
    Write { offset: u64, data: Vec<u8>, durable: bool },
    Flush,
    Allocate { offset: u64, len: u64, mode: u32 },
    Look,
}

impl Work {
    fn kind(&self) -> Kind {
        match self {
            Work::Read { .. } => Kind::Read,
            Work::Write { .. } => Kind::Write,
            Work::Flush => Kind::Flush,
            Work::Allocate { .. } => Kind::Allocate,
            Work::Look => Kind::Look,
        }
    }

    /// The first byte behind it.
    fn end(&self) -> u64 {
        match self {
            Work::Read { offset, len } => offset.saturating_add(u64::from(*len)),
            Work::Write { offset, data, .. } => offset.saturating_add(data.len() as u64),
            Work::Flush | Work::Look => u64::MAX,
            Work::Allocate { offset, len, .. } => offset.saturating_add(*len),
        }
    }
}

impl Disk {
    /// A disk of that many zeroes, whose buffered writes reach it at once.
    ///
    /// # Panics
    ///
    /// As [`Disk::with`].
    #[must_use]
    pub fn new(bytes: u64) -> Disk {
        Disk::with(Options { bytes, write_back: false })
    }

    /// A disk of zeroes.
    ///
    /// # Panics
    ///
    /// When it cannot be mounted: that is root's, and the kernel must have FUSE.
    #[must_use]
    pub fn with(options: Options) -> Disk {
        let folder = tempfile::tempdir().expect("folder");
        let place = folder.path().join("disk");
        File::create(&place).expect("a file to mount over");
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = device.expect("/dev/fuse (a kernel with CONFIG_FUSE_FS) is needed");
        let data =
            format!("fd={},rootmode=100000,user_id=0,group_id=0,allow_other\0", device.as_raw_fd());
        let data = std::ffi::CStr::from_bytes_with_nul(data.as_bytes()).expect("one zero");
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("testkit", &place, "fuse", flags, Some(data)).expect("mounting a FUSE file");
        let content = vec![0; usize::try_from(options.bytes).expect("fits memory")];
        let state = State { content, random: 1, ..State::default() };
        let inner = Inner { device, state: Mutex::new(state), changed: Condvar::new() };
        let inner = Arc::new(inner);
        // Both end with the mount, which may stay a little longer than this value when a dead process's I/O still has it open.
        let server = Arc::clone(&inner);
        std::thread::spawn(move || server.serve(options.write_back));
        let pacer = Arc::clone(&inner);
        std::thread::spawn(move || pacer.pace());
        let disk = Disk { folder, inner };
        if options.write_back {
            // The kernel answers for the size then, and begins with none.
            let file = File::options().write(true).open(disk.path()).expect("just mounted");
            file.set_len(options.bytes).expect("its size");
        }
        disk
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// From now on requests of this kind stay in the kernel.
    pub fn hold(&self, kind: Kind) {
        self.hold_from(kind, 0);
    }

    /// The same for those that reach behind this byte.
    pub fn hold_from(&self, kind: Kind, offset: u64) {
        self.inner.state().hold[kind as usize] = Some(offset);
    }

    /// Serves what was held, in its order, and everything that follows at once.
    pub fn release(&self, kind: Kind) {
        let mut state = self.inner.state();
        state.hold[kind as usize] = None;
        let all = std::mem::take(&mut state.held);
        let (free, kept) = all.into_iter().partition(|held: &Held| held.work.kind() == kind);
        state.held = kept;
        let free: Vec<Held> = free;
        free.into_iter().for_each(|held| self.inner.finish(&mut state, held));
    }

    /// How many requests of this kind the kernel waits for.
    #[must_use]
    pub fn held(&self, kind: Kind) -> usize {
        self.inner.state().held.iter().filter(|held| held.work.kind() == kind).count()
    }

    /// Waits until so many requests of a kind are held: then they are in the kernel, and here.
    ///
    /// # Panics
    ///
    /// When they do not come.
    pub fn wait_held(&self, kind: Kind, count: usize) {
        let deadline = Instant::now() + LOST;
        let mut state = self.inner.state();
        while state.held.iter().filter(|held| held.work.kind() == kind).count() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited for {count} of {kind:?}: {state:?}");
            state = self.inner.changed.wait_timeout(state, left).expect("no panic").0;
        }
    }

    /// From now on requests of this kind fail with this `errno`, or no longer do.
    pub fn fail(&self, kind: Kind, errno: Option<i32>) {
        self.inner.state().fail[kind as usize] = errno;
    }

    /// The 4 KiB at that byte cannot be read from now on, until all of them are written.
    pub fn bad(&self, offset: u64) {
        self.inner.state().bad.insert(offset / PAGE);
    }

    /// How many such there are.
    #[must_use]
    pub fn all_bad(&self) -> usize {
        self.inner.state().bad.len()
    }

    /// From now on every read and write takes a time between these, and they end out of order.
    pub fn slow(&self, shortest: Duration, longest: Duration) {
        self.inner.state().slow = Some((shortest, longest));
    }

    /// It works on so many slow requests at a time, and on no other before one of them has ended.
    pub fn depth(&self, depth: usize) {
        self.inner.state().busy = vec![Instant::now(); depth];
    }

    /// From now on a part of the writes is done wrong.
    pub fn spoil(&self, fault: Fault) {
        self.inner.state().spoil = Some(fault);
    }

    /// From now on what is written is in a cache that does not survive [`Disk::cut`], until it is flushed or was written durably.
    pub fn volatile(&self) {
        self.inner.state().cached = Some(BTreeMap::new());
    }

    /// The power goes. Each sector that is in a volatile cache holds what it held at the last flush or anything that was written to it since, whatever its neighbours do. All requests fail until
    /// [`Disk::power`].
    pub fn cut(&self, seed: u64) {
        let mut state = self.inner.state();
        state.random = seed;
        state.off = true;
        for (sector, versions) in state.cached.replace(BTreeMap::new()).unwrap_or_default() {
            let at = state.random(versions.len() + 1);
            if let Some(version) = versions.get(at) {
                state.content[sector * SECTOR..][..SECTOR].copy_from_slice(version);
            }
        }
        let all = std::mem::take(&mut state.held);
        all.into_iter().for_each(|held| self.inner.finish(&mut state, held));
    }

    /// The power is back.
    pub fn power(&self) {
        self.inner.state().off = false;
    }

    /// How many requests of this kind were served, well or badly.
    #[must_use]
    pub fn served(&self, kind: Kind) -> u64 {
        self.inner.state().served[kind as usize]
    }

    /// Bytes of all writes that were served well: what came twice counts twice.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.inner.state().written
    }

    /// What has reached the disk.
    ///
    /// # Panics
    ///
    /// When the range is outside.
    #[must_use]
    pub fn content(&self, offset: u64, len: usize) -> Vec<u8> {
        let offset = usize::try_from(offset).expect("inside");
        self.inner.state().content[offset..offset + len].to_vec()
    }

    /// Puts something on the disk behind the kernel's back.
    ///
    /// # Panics
    ///
    /// When the range is outside.
    pub fn fill(&self, offset: u64, bytes: &[u8]) {
        let offset = usize::try_from(offset).expect("inside");
        self.inner.state().content[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// The disk's size now.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inner.state().content.len() as u64
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        {
            let mut state = self.inner.state();
            state.hold = [None; KINDS];
            state.slow = None;
            state.closed = true;
            let all = std::mem::take(&mut state.held);
            all.into_iter().for_each(|held| self.inner.finish(&mut state, held));
        }
        self.inner.changed.notify_all();
        let done = unmount(self.path(), UnmountFlags::DETACH);
        assert!(std::thread::panicking() || done.is_ok(), "unmounting a disk: {done:?}");
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer that the kernel does not want, because the request was interrupted, is none of ours to judge.
    fn reply(&self, unique: u64, result: Result<&[u8], i32>) {
        let _ = (&self.device).write(&wire::answer(unique, result));
    }

    fn serve(&self, write_back: bool) {
        let mut buffer = vec![0; wire::MAX_WRITE + 8192];
        loop {
            let len = match (&self.device).read(&mut buffer) {
                Ok(len) => len,
                // A request was taken back, or we were interrupted.
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::ENOENT | libc::EINTR | libc::EAGAIN)
                    ) =>
                {
                    continue;
                }
                // ENODEV: unmounted.
                Err(_) => return,
            };
            let Some(message) = Message::new(&buffer[..len]) else { return };
            self.take(&message, write_back);
        }
    }

    fn take(&self, message: &Message<'_>, write_back: bool) {
        let unique = message.unique();
        let mut state = self.state();
        let bytes = state.content.len() as u64;
        let work = match message.opcode() {
            wire::READ => {
                let (offset, len) = message.range();
                Work::Read { offset, len }
            }
            wire::WRITE => Work::Write {
                offset: message.range().0,
                data: message.data().to_vec(),
                durable: message.is_durable(),
            },
            wire::FSYNC => Work::Flush,
            wire::GETATTR => Work::Look,
            wire::FALLOCATE => {
                let (offset, len, mode) = message.allocation();
                Work::Allocate { offset, len, mode }
            }
            other => {
                drop(state);
                return self.attend(other, message, bytes, write_back);
            }
        };
        let kind = work.kind() as usize;
        let hold = state.hold[kind].is_some_and(|offset| work.end() > offset);
        let due = if hold || kind == Kind::Look as usize { None } else { state.due() };
        let held = Held { unique: Some(unique), work, due };
        if hold || held.due.is_some() {
            state.held.push(held);
            drop(state);
            self.changed.notify_all();
        } else {
            self.finish(&mut state, held);
        }
    }

    /// Everything that is not I/O.
    fn attend(&self, opcode: u32, message: &Message<'_>, bytes: u64, write_back: bool) {
        let unique = message.unique();
        match opcode {
            wire::FORGET | wire::BATCH_FORGET | wire::INTERRUPT => {}
            wire::INIT => self.reply(unique, Ok(&wire::init(write_back))),
            wire::SETATTR => {
                let size = message.new_size().unwrap_or(bytes);
                let fits = usize::try_from(size).expect("fits memory");
                self.state().content.resize(fits, 0);
                self.reply(unique, Ok(&wire::attributes(size)));
            }
            wire::OPEN => self.reply(unique, Ok(&wire::opened())),
            wire::STATFS => self.reply(unique, Ok(&wire::statistics(bytes))),
            wire::RELEASE | wire::FLUSH | wire::DESTROY => self.reply(unique, Ok(&[])),
            _ => self.reply(unique, Err(libc::ENOSYS)),
        }
    }

    /// Does what was asked for and answers it.
    fn finish(&self, state: &mut State, held: Held) {
        let Some(unique) = held.unique else {
            // Without power nothing is done late, either.
            if !state.off {
                state.write(&held.work);
            }
            return;
        };
        let kind = held.work.kind() as usize;
        state.served[kind] += 1;
        if let Some(errno) = state.fail[kind].or(state.off.then_some(libc::EIO)) {
            return self.reply(unique, Err(errno));
        }
        match &held.work {
            Work::Read { offset, .. }
                if state
                    .bad
                    .range(offset / PAGE..held.work.end().div_ceil(PAGE))
                    .next()
                    .is_some() =>
            {
                return self.reply(unique, Err(libc::EIO));
            }
            Work::Write { offset, .. } => {
                let whole = offset.div_ceil(PAGE)..held.work.end() / PAGE;
                state.bad.retain(|page| !whole.contains(page));
            }
            _ => {}
        }
        match held.work {
            Work::Read { offset, len } => {
                let content = &state.content;
                let start = content.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
                let end = content.len().min(start + len as usize);
                self.reply(unique, Ok(&content[start..end]));
            }
            Work::Write { ref data, .. } => {
                let len = u32::try_from(data.len()).expect("bounded by MAX_WRITE");
                state.written += u64::from(len);
                let fault = state.spoil.filter(|_| state.served[kind].is_multiple_of(SPOILT_OF));
                if matches!(fault, None | Some(Fault::Twice)) {
                    state.write(&held.work);
                }
                if matches!(fault, Some(Fault::Late | Fault::Twice)) {
                    let due = Some(Instant::now() + LATE);
                    state.held.push(Held { unique: None, work: held.work, due });
                    self.changed.notify_all();
                }
                self.reply(unique, Ok(&wire::written(len)));
            }
            Work::Flush => {
                state.cached.iter_mut().for_each(BTreeMap::clear);
                self.reply(unique, Ok(&[]));
            }
            Work::Look => self.reply(unique, Ok(&wire::attributes(state.content.len() as u64))),
            Work::Allocate { offset, len, mode } => {
                let keeps = mode & libc::FALLOC_FL_KEEP_SIZE.cast_unsigned() != 0;
                let zeroes = mode & !libc::FALLOC_FL_KEEP_SIZE.cast_unsigned() != 0;
                let start = usize::try_from(offset).expect("fits memory");
                let end = start + usize::try_from(len).expect("fits memory");
                if !keeps && state.content.len() < end {
                    state.content.resize(end, 0);
                }
                let all = state.content.len();
                let (start, end) = (start.min(all), end.min(all));
                if zeroes {
                    state.keep(start, end);
                    state.content[start..end].fill(0);
                }
                self.reply(unique, Ok(&[]));
            }
        }
    }

    /// Serves what is due.
    fn pace(&self) {
        let mut state = self.state();
        while !state.closed {
            let now = Instant::now();
            while let Some(index) =
                state.held.iter().position(|held| held.due.is_some_and(|due| due <= now))
            {
                let held = state.held.remove(index);
                self.finish(&mut state, held);
            }
            let next = state.held.iter().filter_map(|held| held.due).min();
            let sleep = next.map_or(LOST, |due| due.saturating_duration_since(now));
            let waited = self.changed.wait_timeout(state, sleep);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    fn write(&mut self, work: &Work) {
        let Work::Write { offset, data, durable } = work else { return };
        let start = usize::try_from(*offset).expect("fits memory");
        let end = start + data.len();
        if self.content.len() < end {
            self.content.resize(end, 0);
        }
        self.keep(start, end);
        self.content[start..end].copy_from_slice(data);
        if let Some(cached) = self.cached.as_mut().filter(|_| *durable) {
            (start / SECTOR..end.div_ceil(SECTOR)).for_each(|sector| _ = cached.remove(&sector));
        }
    }

    /// Keeps what sectors hold, which are about to hold something else.
    fn keep(&mut self, start: usize, end: usize) {
        let Some(cached) = &mut self.cached else { return };
        for sector in start / SECTOR..end.div_ceil(SECTOR) {
            if let Some(now) = self.content.get(sector * SECTOR..(sector + 1) * SECTOR) {
                let now = now.try_into().expect("a sector");
                cached.entry(sector).or_default().push(now);
            }
        }
    }

    /// A number below another.
    fn random(&mut self, below: usize) -> usize {
        // A linear congruence is random enough.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) as usize % below
    }

    fn due(&mut self) -> Option<Instant> {
        let (shortest, longest) = self.slow?;
        // A linear congruence is random enough to end out of order.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let part = f64::from((self.random >> 33) as u32) / f64::from(1_u32 << 31);
        let takes = shortest + longest.saturating_sub(shortest).mul_f64(part);
        let now = Instant::now();
        let Some(free) = self.busy.iter_mut().min() else { return Some(now + takes) };
        *free = now.max(*free) + takes;
        Some(*free)
    }
}
