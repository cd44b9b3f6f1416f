//! Counts what reading a capture costs per byte.
//!
//! One measured call reads a text of so many KiB, made by repeating a piece of the test captures:
//!
//! ```text
//! cargo build --release -p capture --example read_cost
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     --toggle-collect='read_cost::read' target/release/examples/read_cost 1000 readers/fcstat-german.txt
//! ```
//!
//! Arguments: KiB, then the piece: a file below the planner's `tests`, with `:LINE` that line of it alone, with `:FROM-LINE` the line
//! FROM once and then LINE again and again. Or `all KIB`: every file of the captures, every shape of line in them, alone and
//! below the command that stood before it, each repeated to so many KiB; the slowest are printed, in ns per byte. Or
//! `readers KIB TIMES`: of each file in `tests/readers`, repeated, the median of the CPU time that so many readings take; time
//! in which other programs ran does not count. Or
//! `answers KIB`: of the same pieces a digest of all that is read, a line each: what a change that makes reading cheaper must
//! leave as it is. (`advise_cost answers` of the planner is the same of advice on every folder of captures.)

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use capture::Captures;

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../planner/tests");
/// So many of the slowest are printed.
const SHOWN: usize = 40;

/// The measured function.
#[inline(never)]
fn read(bytes: &[u8]) -> Captures {
    let mut captures = Captures::new();
    captures.read("capture.txt", bytes, None);
    captures
}

/// What is read: `first` once, then `again` until there is enough.
fn text(first: &[u8], again: &[u8], kib: usize) -> Vec<u8> {
    let mut out = first.to_vec();
    while out.len() < kib << 10 {
        out.extend_from_slice(again);
    }
    out.truncate(kib << 10);
    out
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// The piece of that name: what stands once, and what is repeated.
fn piece(name: &str) -> (Vec<u8>, Vec<u8>) {
    let (file, wanted) = name.split_once(':').unwrap_or((name, ""));
    let bytes = std::fs::read(Path::new(TESTS).join(file)).expect("a file below tests");
    let all = lines(&bytes);
    let line = |number: &str| {
        let index = number.parse::<usize>().expect("a number of a line") - 1;
        all.get(index).expect("a line of the file").to_vec()
    };
    match wanted.split_once('-') {
        Some((first, again)) => (line(first), line(again)),
        None if wanted.is_empty() => (Vec::new(), bytes),
        None => (Vec::new(), line(wanted)),
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
    found.sort();
}

/// A line with every number alike.
fn shape(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    for byte in line {
        match byte {
            b'0'..=b'9' if out.last() == Some(&b'0') => {}
            b'0'..=b'9' => out.push(b'0'),
            other => out.push(*other),
        }
    }
    out
}

/// Names of all pieces.
fn pieces() -> Vec<String> {
    let (mut found, mut names, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    files(Path::new(TESTS), &mut found);
    for path in found {
        let bytes = std::fs::read(&path).expect("a file");
        let name = path.strip_prefix(TESTS).expect("below tests").display().to_string();
        if !matches!(path.extension().and_then(|end| end.to_str()), Some("txt" | "nmon" | "xml")) {
            continue;
        }
        names.push(name.clone());
        let mut typed: Option<(usize, Vec<u8>)> = None;
        for (index, line) in lines(&bytes).into_iter().enumerate() {
            let shape = shape(line);
            if line.contains(&b'$') || line.contains(&b'#') || line.contains(&b'>') {
                typed = Some((index + 1, shape.clone()));
            }
            let number = index + 1;
            if seen.insert((Vec::new(), shape.clone())) {
                names.push(format!("{name}:{number}"));
            }
            if let Some((at, command)) = &typed
                && seen.insert((command.clone(), shape))
            {
                names.push(format!("{name}:{at}-{number}"));
            }
        }
    }
    names
}

/// CPU time of this thread so far, in the program and in the kernel for it.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.expect("nanoseconds"))
}

/// What reading a long capture of each kind takes, the slowest first.
fn readers(kib: usize, times: usize) -> String {
    let mut medians: Vec<(Duration, String)> = Vec::new();
    for name in pieces().into_iter().filter(|name| !name.contains(':')) {
        if !name.starts_with("readers/") {
            continue;
        }
        let (first, again) = piece(&name);
        let bytes = text(&first, &again, kib);
        let once = || {
            let start = cpu_time();
            let captures = std::hint::black_box(read(&bytes));
            let taken = cpu_time() - start;
            drop(captures);
            taken
        };
        let mut taken: Vec<Duration> = std::iter::repeat_with(once).take(times).collect();
        taken.sort();
        medians.push((taken[times / 2], name));
    }
    medians.sort_by(|one, other| other.cmp(one));
    let mut out = String::new();
    for (median, name) in medians {
        let _ = writeln!(out, "{:6.3} s: {name}", median.as_secs_f64());
    }
    out
}

/// The better of two readings.
fn time(bytes: &[u8]) -> Duration {
    let once = || {
        let start = Instant::now();
        std::hint::black_box(read(bytes));
        start.elapsed()
    };
    once().min(once())
}

fn all(kib: usize) -> String {
    let mut out = String::new();
    let mut times: Vec<(f64, String)> = pieces()
        .into_iter()
        .map(|name| {
            let (first, again) = piece(&name);
            let bytes = text(&first, &again, kib);
            (time(&bytes).as_secs_f64() * 1e9 / bytes.len() as f64, name)
        })
        .collect();
    times.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    for (nanoseconds, name) in times.iter().take(SHOWN) {
        let _ = writeln!(out, "{nanoseconds:8.2} ns per byte: {name}");
    }
    let _ = writeln!(out, "{} pieces of {kib} KiB", times.len());
    out
}

fn digest(what: &impl std::fmt::Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{what:?}").hash(&mut hasher);
    hasher.finish()
}

/// What is read of each piece.
fn answers(kib: usize) -> String {
    let mut out = String::new();
    for name in pieces() {
        let (first, again) = piece(&name);
        let _ = writeln!(out, "{:016x} {name}", digest(&read(&text(&first, &again, kib))));
    }
    out
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [mode, kib] if mode == "answers" => print!("{}", answers(kib.parse().expect("KiB"))),
        [mode, kib, times] if mode == "readers" => {
            let times: usize = times.parse().expect("how often");
            print!("{}", readers(kib.parse().expect("KiB"), times.max(1)));
        }
        [mode, kib] if mode == "all" => print!("{}", all(kib.parse().expect("KiB"))),
        [kib, name] => {
            let (first, again) = piece(name);
            let bytes = text(&first, &again, kib.parse().expect("KiB"));
            let start = Instant::now();
            let captures = read(&bytes);
            let (seconds, reports) = (start.elapsed().as_secs_f64(), captures.reports.len());
            println!("{} bytes, {reports} reports, {seconds:.3} s", bytes.len());
        }
        _ => eprintln!(
            "read_cost KIB PIECE, read_cost all KIB, read_cost readers KIB TIMES, read_cost answers KIB"
        ),
    }
}
