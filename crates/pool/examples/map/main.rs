//! How much memory the map of a pool takes, and how long it takes to open: PVs of a PiB in all, of which only the pool's own blocks exist.
//!
//! ```text
//! cargo run --release -p pool --example map -- make /dev/shm/map 1024 [two]
//! cargo run --release -p pool --example map -- open /dev/shm/map
//! ```
//!
//! The first makes the pool with the core itself, of so many TiB, with two legs where `two` is said, and writes to each chunk once. The second opens it
//! in a process that has done nothing else, and prints what that took.

mod filled;

use std::fs;
use std::path::Path;

use filled::{CHUNK, Filled};

/// Chunks of 16 TiB: what one LU has, and for each leg of it one PV.
const CHUNKS: u32 = 1 << 18;

/// Makes a pool of so many TiB, written everywhere.
fn make_map(folder: &Path, tebibytes: u64, two: bool) {
    let lus = tebibytes.div_ceil(16) as u32;
    let mut filled = Filled::make(folder, lus, CHUNKS, two);
    (0..lus).for_each(|_| _ = filled.write_lu(CHUNKS));
    filled.rest();
    println!("{lus} LUs of 16 TiB are written, in {:.1} s of CPU", cpu());
    println!("{} MiB at most, {} MiB now", memory("VmHWM:"), memory("VmRSS:"));
}

/// Opens it, and says what that took.
fn open_map(folder: &Path) {
    let (before, began) = (cpu(), std::time::Instant::now());
    let pool = Filled::open(folder).pool;
    let (took, passed) = (cpu() - before, began.elapsed().as_secs_f64());
    let spaces: Vec<_> = pool.lu_spaces().collect();
    let chunks: u64 = spaces.iter().map(|lu| u64::from(lu.allocated)).sum();
    let legs = spaces.first().map_or(0, |lu| lu.legs);
    let tebibytes = (chunks * CHUNK) as f64 / (1_u64 << 40) as f64;
    println!("{tebibytes:.1} TiB: {chunks} chunks, {legs} legs each");
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
