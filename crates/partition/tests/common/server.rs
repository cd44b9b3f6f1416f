//! A small vhost-user-blk server in this process that is slow, completes out of order, and can be made to die.
//!
//! It exists to show that the client survives such a server, and that it notices when requests get lost. Data lies in
//! memory that outlives a crash. Not fast, not complete: one thread looks at all rings.

use std::fs::File;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memory::IoBuf;
use memory::random::Random;
use partition::config::feature;
use vhost::vhost_user::message::*;
use vhost::vhost_user::{
    BackendReqHandler, Error, GpuBackend, Result, VhostUserBackendReqHandlerMut,
};
use vring::{
    Chain, GuestAddr, Head, InflightRegion, MemTable, Queue, QueueConfig, RegionSpec, UserAddr,
};

const FEATURES: u64 = feature::FLUSH
    | feature::SEG_MAX
    | feature::BLK_SIZE
    | feature::MQ
    | feature::INDIRECT_DESC
    | feature::EVENT_IDX
    | feature::PROTOCOL_FEATURES
    | feature::VERSION_1;

/// What the server does wrong on purpose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manners {
    /// Queues that it says it has.
    pub(crate) queues: u16,
    /// Up to this long for one request.
    pub(crate) delay: Duration,
    /// Never completes the request with this number, counted from 1.
    pub(crate) swallow: Option<u64>,
    /// Hangs up when it is asked to stop a ring.
    pub(crate) hangs_up_at_the_end: bool,
}

/// A disk and a listening socket; servers for it come and go.
pub(crate) struct SlowServer {
    path: PathBuf,
    disk: Arc<Mutex<Vec<u8>>>,
    manners: Manners,
    running: Option<Running>,
}

struct Running {
    stop: Arc<AtomicBool>,
    connection: Arc<Mutex<Option<UnixStream>>>,
    thread: JoinHandle<()>,
}

impl SlowServer {
    pub(crate) fn new(folder: &Path, bytes: usize, manners: Manners) -> Self {
        let disk = Arc::new(Mutex::new(vec![0; bytes]));
        Self { path: folder.join("slow"), disk, manners, running: None }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.path
    }

    /// Starts a server for one client; one that is still there dies first.
    pub(crate) fn start(&mut self) {
        self.crash();
        let listener = UnixListener::bind(&self.path).expect("bind");
        let stop = Arc::new(AtomicBool::new(false));
        let connection = Arc::new(Mutex::new(None));
        let mut handler =
            Handler::new(Arc::clone(&self.disk), self.manners.clone(), Arc::clone(&stop));
        let (slot, stopped) = (Arc::clone(&connection), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let Ok((stream, _)) = listener.accept() else { return };
            *slot.lock().unwrap() = stream.try_clone().ok();
            let io = handler.start_io();
            let mut requests =
                BackendReqHandler::from_stream(stream, Arc::new(Mutex::new(handler)));
            while !stopped.load(Ordering::Acquire) && requests.handle_request().is_ok() {}
            stopped.store(true, Ordering::Release);
            if let Some(stream) = slot.lock().unwrap().as_ref() {
                // It may be gone already.
                let _ = stream.shutdown(Shutdown::Both);
            }
            io.join().expect("the I/O thread");
        });
        self.running = Some(Running { stop, connection, thread });
    }

    /// Dies with everything in flight.
    pub(crate) fn crash(&mut self) {
        let Some(running) = self.running.take() else { return };
        std::fs::remove_file(&self.path).expect("remove the socket");
        running.stop.store(true, Ordering::Release);
        if let Some(stream) = running.connection.lock().unwrap().take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        running.thread.join().expect("the server's thread");
    }
}

impl Drop for SlowServer {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.stop.store(true, Ordering::Release);
        match running.connection.lock().unwrap().take() {
            Some(stream) => drop(stream.shutdown(Shutdown::Both)),
            // Still in accept: a connection ends it.
            None => drop(UnixStream::connect(&self.path)),
        }
        let _ = running.thread.join();
    }
}

#[derive(Default)]
struct Vring {
    config: Option<QueueConfig>,
    call: Option<File>,
    kick: Option<File>,
}

struct Serving {
    queue: Queue,
    call: File,
    waiting: Vec<(Instant, Head)>,
}

type Served = Arc<Mutex<Vec<Option<Serving>>>>;

struct Handler {
    disk: Arc<Mutex<Vec<u8>>>,
    manners: Manners,
    stop: Arc<AtomicBool>,
    acked: u64,
    memory: Arc<MemTable>,
    vrings: Vec<Vring>,
    inflight: Option<InflightRegion>,
    served: Served,
}

impl Handler {
    fn new(disk: Arc<Mutex<Vec<u8>>>, manners: Manners, stop: Arc<AtomicBool>) -> Self {
        let queues = usize::from(manners.queues);
        Self {
            disk,
            manners,
            stop,
            acked: 0,
            memory: Arc::new(MemTable::empty()),
            vrings: (0..queues).map(|_| Vring::default()).collect(),
            inflight: None,
            served: Arc::new(Mutex::new((0..queues).map(|_| None).collect())),
        }
    }

    fn start_io(&mut self) -> JoinHandle<()> {
        let (served, stop) = (Arc::clone(&self.served), Arc::clone(&self.stop));
        let mut io = Io {
            disk: Arc::clone(&self.disk),
            manners: self.manners.clone(),
            rng: Random::new(9),
            taken: 0,
        };
        std::thread::spawn(move || {
            while !stop.load(Ordering::Acquire) {
                for serving in served.lock().unwrap().iter_mut().flatten() {
                    io.turn(serving);
                }
                std::thread::sleep(Duration::from_micros(50));
            }
        })
    }

    fn vring(&mut self, index: u32) -> Result<&mut Vring> {
        self.vrings.get_mut(index as usize).ok_or(Error::InvalidParam)
    }

    fn config(&mut self, index: u32) -> Result<&mut QueueConfig> {
        let acked = self.acked;
        let zero = UserAddr(0);
        Ok(self.vring(index)?.config.get_or_insert_with(|| QueueConfig {
            size: 0,
            desc: zero,
            avail: zero,
            used: zero,
            base: 0,
            at_used: false,
            event_idx: acked & feature::EVENT_IDX != 0,
            indirect: acked & feature::INDIRECT_DESC != 0,
            in_order: false,
            used_log: None,
            log: None,
            inflight: None,
        }))
    }
}

struct Io {
    disk: Arc<Mutex<Vec<u8>>>,
    manners: Manners,
    rng: Random,
    taken: u64,
}

impl Io {
    fn turn(&mut self, serving: &mut Serving) {
        while let Some(head) = serving.queue.resubmit_next() {
            self.take(serving, head);
        }
        // A ring that makes no sense is left alone from then on, as a real server would.
        if serving.queue.pending().is_err() {
            return;
        }
        while let Ok(Some(head)) = serving.queue.pop() {
            self.take(serving, head);
        }
        serving.queue.enable_kicks();
        let now = Instant::now();
        let mut index = 0;
        let mut any = false;
        while index < serving.waiting.len() {
            if serving.waiting[index].0 > now {
                index += 1;
                continue;
            }
            let (_, head) = serving.waiting.swap_remove(index);
            let written = self.serve(&mut serving.queue, head);
            serving.queue.put_used(head, written);
            any = true;
        }
        if any && serving.queue.publish() {
            (&serving.call).write_all(&1u64.to_ne_bytes()).expect("call");
        }
    }

    fn take(&mut self, serving: &mut Serving, head: Head) {
        self.taken += 1;
        let delay = self.rng.below(self.manners.delay.as_nanos() as u64 + 1);
        let delay = Duration::from_nanos(delay);
        let forever = Duration::from_secs(3600);
        let delay = if self.manners.swallow == Some(self.taken) { forever } else { delay };
        serving.waiting.push((Instant::now() + delay, head));
    }

    fn serve(&mut self, queue: &mut Queue, head: Head) -> u32 {
        let mut bufs = [IoBuf::EMPTY; 64];
        let mut chain = Chain::new(&mut bufs);
        // Without an in-flight region a restarted server may be led to a chain that is not one any more.
        let good = queue.chain(head, &mut chain).is_ok();
        let (readable, total) = (chain.readable, chain.total);
        if !good || readable == 0 || total == readable || bufs[0].len() != 16 {
            return 0;
        }
        let (kind, at) = header(bufs[0]);
        let status = bufs[total - 1];
        let mut disk = self.disk.lock().unwrap();
        let mut at = at as usize;
        let mut written = 1;
        let data = if kind == 0 { &bufs[readable..total - 1] } else { &bufs[1..readable] };
        for buf in data {
            let Some(range) = disk.get_mut(at..at + buf.len()) else { return 0 };
            if kind == 0 {
                buf.write(0, range);
                written += buf.len() as u32;
            } else {
                buf.read(0, range);
            }
            at += buf.len();
        }
        status.write(0, &[0]);
        written
    }
}

fn header(buf: IoBuf) -> (u32, u64) {
    let mut bytes = [0; 16];
    buf.read(0, &mut bytes);
    let kind = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
    let sector = u64::from_le_bytes(bytes[8..].try_into().expect("eight bytes"));
    (kind, sector * 512)
}

fn refuse<T>() -> Result<T> {
    Err(Error::InvalidOperation("not served here"))
}

impl VhostUserBackendReqHandlerMut for Handler {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }
    fn reset_owner(&mut self) -> Result<()> {
        refuse()
    }
    fn reset_device(&mut self) -> Result<()> {
        refuse()
    }
    fn get_features(&mut self) -> Result<u64> {
        Ok(FEATURES)
    }
    fn set_features(&mut self, features: u64) -> Result<()> {
        self.acked = features;
        Ok(())
    }
    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _: Option<bool>,
    ) -> Result<Option<Vec<u64>>> {
        let specs = regions.iter().zip(files).map(|(region, file)| RegionSpec {
            guest: GuestAddr(region.guest_phys_addr),
            user: UserAddr(region.user_addr),
            size: region.memory_size,
            offset: region.mmap_offset,
            file,
        });
        self.memory = Arc::new(MemTable::new(specs.collect()).map_err(|_| Error::InvalidParam)?);
        Ok(None)
    }
    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        self.config(index)?.size = num as u16;
        Ok(())
    }
    fn set_vring_addr(
        &mut self,
        index: u32,
        _: VhostUserVringAddrFlags,
        desc: u64,
        used: u64,
        avail: u64,
        _: u64,
    ) -> Result<()> {
        let config = self.config(index)?;
        (config.desc, config.used, config.avail) =
            (UserAddr(desc), UserAddr(used), UserAddr(avail));
        Ok(())
    }
    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        self.config(index)?.base = base as u16;
        Ok(())
    }
    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        if self.manners.hangs_up_at_the_end {
            return refuse();
        }
        loop {
            let mut served = self.served.lock().unwrap();
            let slot = served.get_mut(index as usize).ok_or(Error::InvalidParam)?;
            if slot.as_ref().is_none_or(|serving| serving.queue.in_flight() == 0) {
                let base = slot.take().map_or(0, |serving| serving.queue.stop().base);
                return Ok(VhostUserVringState::new(index, u32::from(base)));
            }
            drop(served);
            if self.stop.load(Ordering::Acquire) {
                return refuse();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    fn set_vring_kick(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        self.vring(u32::from(index))?.kick = fd;
        Ok(())
    }
    fn set_vring_call(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        self.vring(u32::from(index))?.call = fd;
        Ok(())
    }
    fn set_vring_err(&mut self, _: u8, _: Option<File>) -> Result<()> {
        Ok(())
    }
    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD)
    }
    fn set_protocol_features(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(u64::from(self.manners.queues))
    }
    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        let part = self.inflight.as_ref().and_then(|region| region.queue(index as u16));
        let memory = Arc::clone(&self.memory);
        let vring = self.vring(index)?;
        if let (true, Some(mut config), Some(call)) =
            (enable, vring.config.take(), vring.call.take())
        {
            config.inflight = part;
            let queue = config.start(memory).map_err(|_| Error::InvalidParam)?;
            let serving = Serving { queue, call, waiting: Vec::new() };
            self.served.lock().unwrap()[index as usize] = Some(serving);
        }
        Ok(())
    }
    fn get_config(&mut self, offset: u32, size: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        let mut config = vec![0; (offset + size).max(64) as usize];
        let sectors = self.disk.lock().unwrap().len() as u64 / 512;
        config[..8].copy_from_slice(&sectors.to_le_bytes());
        config[12..16].copy_from_slice(&62u32.to_le_bytes());
        config[20..24].copy_from_slice(&512u32.to_le_bytes());
        Ok(config[offset as usize..(offset + size) as usize].to_vec())
    }
    fn set_config(&mut self, _: u32, _: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        refuse()
    }
    fn set_gpu_socket(&mut self, _: GpuBackend) -> Result<()> {
        refuse()
    }
    fn get_shared_object(&mut self, _: VhostUserSharedMsg) -> Result<File> {
        refuse()
    }
    fn get_inflight_fd(&mut self, wanted: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        let (queues, size) = (wanted.num_queues, wanted.queue_size);
        let (file, _) =
            InflightRegion::create(queues, size).map_err(|_| Error::MemFdCreateError)?;
        let bytes = InflightRegion::bytes(queues, size);
        Ok((VhostUserInflight::new(bytes, 0, queues, size), file))
    }
    fn set_inflight_fd(&mut self, region: &VhostUserInflight, file: File) -> Result<()> {
        let VhostUserInflight { mmap_size, mmap_offset, num_queues, queue_size } = *region;
        let region = InflightRegion::open(&file, mmap_offset, mmap_size, num_queues, queue_size);
        self.inflight = Some(region.map_err(|_| Error::InvalidParam)?);
        Ok(())
    }
    fn get_max_mem_slots(&mut self) -> Result<u64> {
        refuse()
    }
    fn add_mem_region(
        &mut self,
        _: &VhostUserSingleMemoryRegion,
        _: File,
        _: Option<bool>,
    ) -> Result<Option<u64>> {
        refuse()
    }
    fn remove_mem_region(&mut self, _: &VhostUserSingleMemoryRegion) -> Result<()> {
        refuse()
    }
    fn set_device_state_fd(
        &mut self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        refuse()
    }
    fn check_device_state(&mut self) -> Result<()> {
        refuse()
    }
    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        refuse()
    }
    fn set_log_base(&mut self, _: &VhostUserLog, _: File) -> Result<()> {
        refuse()
    }
}
