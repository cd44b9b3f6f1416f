//! The power goes under a storage pool, on disks with volatile caches: of what was not flushed each sector holds whatever it held since the last flush, and the memory of the data plane is gone.
//! What a client had flushed is there, nothing comes back that was overwritten by then, what nobody wrote is zeros, and the pool opens by itself.
//!
//! A few rounds here; `cargo xtask torture power --rounds 200` for many.

use std::time::{Duration, Instant};

use memory::random::Random;
use partition::blk::{Done, Queue, Request as Ask, Slot, SlotPlan, Status};
use partition::session::{Session, SessionOptions, StartPlan};
use protocol::message::{AdapterSpec, BlockSpec, FileIdentity, PoolSpec, Request};
use spec::{LuSpec, VolumeSpec};
use testkit::{Disk, is_root};

use super::mirror::pool_of;
use crate::common::process::Process;

const CHUNK: u64 = 64 << 20;
const BLOCK: usize = 4096;
const SECTOR: usize = 512;
/// Chunks of the LU, and blocks in each that are written to: neighbours, and others far apart.
const CHUNKS: u64 = 3;
const EACH: u64 = 24;
/// Writes under way at most.
const DEPTH: usize = 8;
/// How long something may take that waits for nobody.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many rounds the long form is for.
const ROUNDS: &str = "TRUNKLINE_POWER_ROUNDS";

#[test]
fn what_was_flushed_survives_cuts_of_power() {
    cuts(8);
}

#[test]
#[ignore = "long: cargo xtask torture power"]
fn as_many_cuts_as_are_asked_for() {
    cuts(std::env::var(ROUNDS).expect("how many").parse().expect("a number"));
}

fn cuts(rounds: u64) {
    if !is_root("disks with a volatile cache, below the kernel") {
        return;
    }
    for (name, mirrored) in [("plain", false), ("mirrored", true)] {
        let mut place = Place::new(mirrored);
        let mut blocks = vec![Block::default(); (CHUNKS * EACH) as usize];
        let mut sum = Sum::default();
        for round in 0..rounds {
            place.round(&mut Random::new(round + 1), &mut blocks, &mut sum);
        }
        let Sum { writes, flushes, found } = sum;
        println!(
            "{name}: {rounds} cuts, {writes} writes, {flushes} flushes; {found} sectors had what was not flushed"
        );
        assert!(flushes > 0 && writes > 0);
    }
}

/// What was done in all rounds.
#[derive(Default)]
struct Sum {
    writes: u64,
    flushes: u64,
    /// Sectors that had something newer than the last flush.
    found: u64,
}

/// What is known of a block, in versions of it; 0 is zeros.
#[derive(Clone, Default)]
struct Block {
    issued: u32,
    /// The last one since the power was there.
    answered: u32,
    /// What each sector holds at least.
    floor: [u32; BLOCK / SECTOR],
    /// The version that is under way.
    slot: Option<Slot>,
}

impl Block {
    fn at(number: usize) -> u64 {
        let (chunk, place) = (number as u64 / EACH, number as u64 % EACH);
        // Half of them side by side, the others each in a block of the pool's of its own.
        let within = if place < EACH / 2 { place * BLOCK as u64 } else { place * (1 << 20) };
        chunk * CHUNK + within
    }

    fn word(number: usize, version: u32, sector: usize) -> [u8; 8] {
        (1 << 63 | (number as u64) << 40 | u64::from(version) << 8 | sector as u64).to_le_bytes()
    }

    fn content(number: usize, version: u32) -> Vec<u8> {
        let words = SECTOR / 8;
        (0..BLOCK / SECTOR)
            .flat_map(|sector| Block::word(number, version, sector).repeat(words))
            .collect()
    }

    /// The version that each sector holds is one that it may, and is held from now on.
    fn judge(&mut self, number: usize, held: &[u8]) -> u64 {
        let mut newer = 0;
        for (sector, bytes) in held.chunks(SECTOR).enumerate() {
            let word = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            let version = if word == 0 { 0 } else { (word >> 8) as u32 };
            let whole = match version {
                0 => vec![0; SECTOR],
                _ => Block::word(number, version, sector).repeat(SECTOR / 8),
            };
            assert!(
                bytes == whole,
                "block {number}, sector {sector} holds {word:#x}, and not all of that"
            );
            let (least, most) = (self.floor[sector], self.issued);
            assert!(
                (least..=most).contains(&version),
                "block {number}, sector {sector} holds version {version}: {least} was flushed, {most} the last"
            );
            newer += u64::from(version > least);
            self.floor[sector] = version;
        }
        newer
    }
}

/// A pool on disks that lose what is not flushed, and a host that dies with them.
struct Place {
    folder: tempfile::TempDir,
    memory: tempfile::TempDir,
    disks: [Disk; 2],
    pool: PoolSpec,
    known: Option<FileIdentity>,
}

impl Place {
    fn new(mirrored: bool) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let disks = [(); 2].map(|()| Disk::new(12 * CHUNK));
        let shadow = memory.path().join("shadow");
        let paths = disks.each_ref().map(Disk::path);
        let pool = match mirrored {
            true => PoolSpec { mirror: vec![paths[1].clone()], ..pool_of(&paths[..1], shadow) },
            false => pool_of(&paths, shadow),
        };
        disks.iter().for_each(Disk::volatile);
        Place { folder, memory, disks, pool, known: None }
    }

    /// A host starts, a client compares and works, and the power goes.
    fn round(&mut self, random: &mut Random, blocks: &mut [Block], sum: &mut Sum) {
        let fresh = self.known.is_none();
        self.pool.fresh = fresh;
        let lu = LuSpec { fresh, identity: self.known.clone(), ..LuSpec::of("p0") };
        let volume = VolumeSpec { bytes: Some(CHUNKS * CHUNK), ..VolumeSpec::new("v", lu) };
        let socket = self.folder.path().join("vhost0.sock");
        let adapter = AdapterSpec::new("vhost0", socket.clone(), BlockSpec::on("v"));
        let requests = [
            Request::PutPool(self.pool.clone()),
            Request::PutVolume(volume),
            Request::PutAdapter(adapter),
        ];
        let mut process = Process::start(self.folder.path(), &requests);
        self.known = process.status().volumes.remove(0).identity;
        let mut client = Client::connect(&socket);
        for (number, block) in blocks.iter_mut().enumerate() {
            sum.found += block.judge(number, &client.read(Block::at(number)));
            (block.answered, block.slot) = (0, None);
        }
        let end = random.below(160);
        for _ in 0..end {
            client.go_on(blocks);
            if random.below(12) == 0 {
                // What was answered by now is there from now on.
                let answered: Vec<u32> = blocks.iter().map(|block| block.answered).collect();
                if client.wait_for(blocks, Ask::Flush) != Status::Ok {
                    break;
                }
                for (block, answered) in blocks.iter_mut().zip(answered) {
                    block.floor.iter_mut().for_each(|floor| *floor = (*floor).max(answered));
                }
                sum.flushes += 1;
                continue;
            }
            let number = random.below(blocks.len() as u64) as usize;
            if blocks[number].slot.is_none() && client.queue.busy() < DEPTH {
                client.write(number, &mut blocks[number]);
                sum.writes += 1;
            }
        }
        let seed = random.below(u64::MAX);
        self.disks.iter().zip([seed, !seed]).for_each(|(disk, seed)| disk.cut(seed));
        process.kill();
        drop(client);
        for file in std::fs::read_dir(self.memory.path()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
        self.disks.iter().for_each(Disk::power);
    }
}

struct Client {
    _session: Session,
    queue: Queue,
}

impl Client {
    fn connect(socket: &std::path::Path) -> Client {
        let data_bytes = BLOCK as u32;
        let slots = SlotPlan { slots: 24, data_bytes, data_segments: 1, indirect: true };
        let plan = StartPlan { queues: 1, queue_size: 128, threads: 1, slots };
        let mut session = Session::connect(socket, &SessionOptions::default()).unwrap();
        let queue = session.start(&plan).unwrap().pop().unwrap();
        Client { _session: session, queue }
    }

    fn write(&mut self, number: usize, block: &mut Block) {
        let slot = self.queue.take().unwrap();
        block.issued += 1;
        block.slot = Some(slot);
        self.queue.data(slot).write(0, &Block::content(number, block.issued));
        let write = Ask::Write { offset: Block::at(number), bytes: BLOCK as u32 };
        self.queue.submit(slot, write).unwrap();
        self.queue.publish().unwrap();
    }

    /// What is over; that of a slot that is no block's is given back.
    fn go_on(&mut self, blocks: &mut [Block]) -> Option<(Slot, Status)> {
        while let Some(Done { slot, status, .. }) = self.queue.poll().unwrap() {
            let Some(block) = blocks.iter_mut().find(|block| block.slot == Some(slot)) else {
                return Some((slot, status));
            };
            assert_eq!(status, Status::Ok);
            (block.answered, block.slot) = (block.issued, None);
            self.queue.give_back(slot);
        }
        None
    }

    fn wait_for(&mut self, blocks: &mut [Block], ask: Ask) -> Status {
        let slot = self.queue.take().unwrap();
        self.queue.submit(slot, ask).unwrap();
        self.queue.publish().unwrap();
        let deadline = Instant::now() + PATIENCE;
        let (of, status) = loop {
            if let Some(over) = self.go_on(blocks) {
                break over;
            }
            assert!(Instant::now() < deadline, "{ask:?} waits");
            std::thread::sleep(Duration::from_micros(50));
        };
        assert_eq!(of, slot);
        self.queue.give_back(slot);
        status
    }

    fn read(&mut self, offset: u64) -> Vec<u8> {
        let read = Ask::Read { offset, bytes: BLOCK as u32 };
        assert_eq!(self.wait_for(&mut [], read), Status::Ok);
        // The slot is free, and nobody has it.
        let slot = self.queue.take().unwrap();
        let mut held = vec![0; BLOCK];
        self.queue.data(slot).read(0, &mut held);
        self.queue.give_back(slot);
        held
    }
}
