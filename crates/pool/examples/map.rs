//! How much memory the map of a pool takes, and how long it takes to open: PVs of a PiB in all, of which only the pool's own blocks exist.
//!
//! ```text
//! cargo run --release -p pool --example map -- make /dev/shm/map 1024 [two]
//! cargo run --release -p pool --example map -- open /dev/shm/map
//! ```
//!
//! The first makes the pool with the core itself, of so many TiB, with two legs where `two` is said, and writes to each chunk once. The second opens it
//! in a process that has done nothing else, and prints what that took. Home records, which no opening reads, and clients' bytes are not kept.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use pool::format::{Extent as Area, SystemKind, Uuid};
use pool::{
    Effect, Extent, NewPv, Outcome, Payload, Policy, Pool, ReadFailed, Reply, Request, Source, make,
};

const SERVER: Uuid = Uuid(*b"the only server.");
const CHUNK: u64 = 64 << 20;
/// Chunks of 16 TiB: what one PV has for LUs, and what one LU has.
const CHUNKS: u32 = 1 << 18;
/// First writes under way at once.
const AT_ONCE: usize = 4096;

/// Files, each of which is a PV with nothing but the pool's own blocks.
struct Pvs(Vec<File>);

impl Source for Pvs {
    fn read(&mut self, pv: u16, at: u64, bytes: usize) -> Result<Vec<u8>, ReadFailed> {
        let mut all = vec![0; bytes];
        let read = self.0.get(usize::from(pv)).map(|file| file.read_exact_at(&mut all, at));
        match read {
            Some(Ok(())) => Ok(all),
            _ => Err(ReadFailed { pv, at }),
        }
    }

    fn is_there(&mut self, pv: u16) -> bool {
        usize::from(pv) < self.0.len()
    }
}

/// Whether it is one of the pool's own blocks that an opening reads.
fn is_kept(areas: &[Area], pv: u16, at: u64) -> bool {
    let chunk = at / CHUNK;
    let of = |area: &&Area| {
        let first = u64::from(area.chunk);
        area.pv == pv && (first..first + u64::from(area.count)).contains(&chunk)
    };
    chunk == 0 || areas.iter().find(of).is_some_and(|area| area.kind != SystemKind::Homes)
}

/// Carries out all that the pool wants; what was answered.
fn work(pool: &mut Pool, pvs: &Pvs, areas: &[Area]) -> Vec<Reply> {
    let mut answers = Vec::new();
    let mut todo: VecDeque<Effect> = pool.effects().into();
    while let Some(effect) = todo.pop_front() {
        let mut outcome = Outcome::Done;
        match &effect {
            Effect::Write { pv, at, what: Payload::Own(bytes), .. } if is_kept(areas, *pv, *at) => {
                pvs.0[usize::from(*pv)].write_all_at(bytes, *at).expect("there is room");
            }
            Effect::Read { pv, at, bytes, .. } => {
                let mut all = vec![0; *bytes as usize];
                pvs.0[usize::from(*pv)].read_exact_at(&mut all, *at).expect("it is there");
                outcome = Outcome::Bytes(all);
            }
            Effect::Answer { result, .. } => answers.push(result.expect("nothing fails here")),
            _ => {}
        }
        if let Some(op) = effect.number() {
            pool.done(op, outcome);
        }
        if todo.is_empty() {
            todo = pool.effects().into();
        }
    }
    answers
}

/// Makes a pool of so many TiB, written everywhere.
fn make_map(folder: &Path, tebibytes: u64, two: bool) {
    fs::create_dir_all(folder).expect("a folder");
    let lus = tebibytes.div_ceil(16) as u32;
    // What one has beside what LUs take of it: its own blocks, and room for PVs that are not used alike.
    let spare = CHUNKS / 64;
    let new: Vec<NewPv> = (0..lus * (1 + u32::from(two)))
        .map(|number| {
            let mut pv = *b"a PV of this one";
            pv[..4].copy_from_slice(&number.to_le_bytes());
            let group = u8::from(number >= lus);
            NewPv { pv: Uuid(pv), chunks: CHUNKS + spare, tier: 0, group }
        })
        .collect();
    let files = (0..new.len()).map(|number| {
        let mut file = File::options();
        let file = file.read(true).write(true).create(true).truncate(true);
        let file = file.open(folder.join(format!("{number:04}"))).expect("a file");
        file.set_len(u64::from(CHUNKS + spare) * CHUNK).expect("as long as it has to be");
        file
    });
    let mut pvs = Pvs(files.collect());
    let (superblock, parts) = make(Uuid(*b"a pool of a PiB."), &new).expect("a pool");
    let areas = superblock.extents.clone();
    for (pv, at, bytes) in parts.into_iter().flatten() {
        if is_kept(&areas, pv, at) {
            pvs.0[usize::from(pv)].write_all_at(&bytes, at).expect("there is room");
        }
    }
    let mut pool = Pool::open(&mut pvs, SERVER, None, Policy::default()).expect("it opens");
    pool.start();
    work(&mut pool, &pvs, &areas);
    for _ in 0..lus {
        pool.submit(1, Request::Create { chunks: CHUNKS, thick: false, tier: 0, asked: 0 });
        let made = work(&mut pool, &pvs, &areas);
        let [Reply::Created(lu)] = made[..] else { panic!("{made:?}") };
        for first in (0..u64::from(CHUNKS)).step_by(AT_ONCE) {
            for vchunk in first..first + AT_ONCE as u64 {
                let extent = Extent { lu, at: vchunk * CHUNK, bytes: 4096 };
                pool.submit(vchunk, Request::Write { extent, durable: false });
            }
            let over = work(&mut pool, &pvs, &areas);
            assert_eq!(over.len(), AT_ONCE, "each is answered");
        }
    }
    pool.submit(1, Request::Checkpoint);
    work(&mut pool, &pvs, &areas);
    println!("{lus} LUs of 16 TiB are written, on {} PVs", new.len());
}

/// Opens it, and says what that took.
fn open_map(folder: &Path) {
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path()).collect();
    paths.sort();
    let open = |path| File::options().read(true).write(true).open(path).expect("a PV");
    let mut pvs = Pvs(paths.iter().map(open).collect());
    let (before, began) = (cpu(), std::time::Instant::now());
    let mut pool = Pool::open(&mut pvs, SERVER, None, Policy::default()).expect("it opens");
    let areas = pool.superblock().extents.clone();
    pool.start();
    work(&mut pool, &pvs, &areas);
    assert!(pool.is_serving());
    let (took, passed) = (cpu() - before, began.elapsed().as_secs_f64());
    let spaces: Vec<_> = pool.lu_spaces().collect();
    let chunks: u64 = spaces.iter().map(|lu| u64::from(lu.allocated)).sum();
    let legs = spaces.first().map_or(0, |lu| lu.legs);
    println!("{:.1} TiB: {chunks} chunks, {legs} legs each", chunks as f64 / f64::from(1 << 14));
    println!("opened in {passed:.2} s, {took:.2} s of CPU");
    println!("{} MiB at most, {} MiB now", memory("VmHWM:"), memory("VmRSS:"));
}

/// Seconds of CPU that this process has used (proc(5), `stat`).
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let after = stat.rsplit(')').next().expect("a name in parentheses");
    let ticks = after.split_whitespace().skip(11).take(2);
    ticks.map(|field| field.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
}

/// What the kernel says of this process's memory, in MiB (proc(5), `status`).
fn memory(what: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with(what)).expect("it is said");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("kB") >> 10
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let tebibytes = |text: &str| text.parse().expect("a number of TiB");
    match words[..] {
        ["make", folder, size] => make_map(folder.as_ref(), tebibytes(size), false),
        ["make", folder, size, "two"] => make_map(folder.as_ref(), tebibytes(size), true),
        ["open", folder] => open_map(folder.as_ref()),
        _ => println!("make FOLDER TIB [two], or open FOLDER"),
    }
}
