//! What `trunkline plan` reads: files, folders and standard input.
//!
//! A file that cannot hold a capture (compressed, binary) is refused by name with what to do; in a folder it is passed over
//! with a warning, because folders hold other things too. Nothing of the contents is judged here.

use super::taken;
use crate::exit::Failure;
use control::error::ApiError;
use indicatif::{ProgressBar, ProgressStyle};
use planner::capture::{Taken, is_binary};
use planner::report::clean::clean;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// So much of a file decides whether it is text.
const PROBE: usize = 8 << 10;
/// The largest file that is read.
pub(super) const FILE_BYTES_MAX: usize = 256 << 20;
/// So much is read of all files together.
pub(super) const BYTES_MAX: usize = 1 << 30;
/// So much is read at a time.
const STEP: usize = 1 << 20;

/// Where the time of a file comes from. A line that `date` printed in the capture wins over both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Clock {
    /// A date in the file's name.
    FileName,
    /// When the file was last written.
    FileTime,
}

/// One file that can hold a capture.
#[derive(Debug)]
pub(super) struct Input {
    /// Its name for people.
    pub(super) name: String,
    /// What it holds.
    pub(super) bytes: Vec<u8>,
    /// When it was taken, if anything outside of it says so, and what.
    pub(super) taken: Option<(Taken, Clock)>,
}

/// Everything that was asked for.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// The files, in the order in which they were named; within a folder by name.
    pub(super) files: Vec<Input>,
    /// Files of folders that were passed over, each with the reason.
    pub(super) passed_over: Vec<String>,
}

/// Reads all that was named.
pub(super) fn gather(paths: &[PathBuf]) -> Result<Inputs, Failure> {
    let mut inputs = Inputs::default();
    let mut wanted: Vec<(PathBuf, bool)> = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = wanted.len();
            walk(path, &mut wanted, &mut inputs.passed_over)?;
            if wanted.len() == before {
                return Err(ApiError::invalid(format!("{}: there is no file in it", shown(path)))
                    .help("save what the commands printed there, one file per system and time")
                    .into());
            }
        } else {
            wanted.push((path.clone(), false));
        }
    }
    once_each(&mut wanted, &mut inputs.passed_over);
    let sizes = wanted.iter().filter_map(|(path, _)| path.metadata().ok()).map(|meta| meta.len());
    let bar = progress(sizes.sum());
    let mut room = BYTES_MAX;
    for (path, found) in wanted {
        let most = FILE_BYTES_MAX.min(room);
        let read =
            if path.as_os_str() == "-" { stdin(most, &bar) } else { file(&path, most, &bar) };
        match read {
            Ok(input) => {
                room -= input.bytes.len();
                inputs.files.push(input);
            }
            Err(Unfit::Content(problem, _)) if found => inputs.passed_over.push(problem),
            Err(Unfit::Content(problem, help)) => {
                return Err(ApiError::invalid(problem).help(help).into());
            }
            Err(Unfit::System(problem)) => return Err(Failure::other(problem)),
        }
    }
    bar.finish_and_clear();
    Ok(inputs)
}

/// A name for people: what stands in it does nothing to their terminal.
fn shown(path: &Path) -> String {
    clean(&path.display().to_string())
}

/// Leaves each file once, however it was named: a counter that is read twice has not grown.
fn once_each(wanted: &mut Vec<(PathBuf, bool)>, passed_over: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    wanted.retain(|(path, _)| {
        // What cannot be resolved is told when it is read.
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let new = seen.insert(real);
        if !new {
            passed_over.push(format!("{}: named more than once, read once", shown(path)));
        }
        new
    });
}

/// Why a file was not read.
enum Unfit {
    /// What is in it, and what to do.
    Content(String, String),
    /// The system did not give it out.
    System(String),
}

/// A bar over bytes on standard error, where that is a terminal.
fn progress(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {wide_msg}")
        .expect("the template is well-formed");
    bar.with_style(style)
}

/// The files of a folder and its folders, by name; hidden ones are left alone.
fn walk(
    folder: &Path,
    wanted: &mut Vec<(PathBuf, bool)>,
    passed_over: &mut Vec<String>,
) -> Result<(), Failure> {
    let fail = |error| Failure::other(format!("{}: {error}", shown(folder)));
    let entries = std::fs::read_dir(folder).map_err(fail)?;
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    paths.sort_by(|a, b| by_number(&a.to_string_lossy(), &b.to_string_lossy()));
    for path in paths {
        match path.metadata() {
            // A link to a folder could lead round in a circle.
            Ok(_) if path.is_dir() && path.is_symlink() => {
                passed_over.push(format!("{}: a link to a folder", shown(&path)));
            }
            Ok(meta) if meta.is_dir() => walk(&path, wanted, passed_over)?,
            Ok(meta) if meta.is_file() => wanted.push((path, true)),
            Ok(_) => passed_over.push(format!("{}: no ordinary file", shown(&path))),
            Err(error) => passed_over.push(format!("{}: {error}", shown(&path))),
        }
    }
    Ok(())
}

/// Names in the order of people: `2.txt` before `10.txt`.
fn by_number(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (run_a, run_b) = (digits(a), digits(b));
        if !run_a.is_empty() && !run_b.is_empty() {
            let (bare_a, bare_b) = (run_a.trim_start_matches('0'), run_b.trim_start_matches('0'));
            let order = bare_a.len().cmp(&bare_b.len()).then_with(|| bare_a.cmp(bare_b));
            if order != Ordering::Equal {
                return order;
            }
            // Equal numbers: `01` before `001` only if nothing else decides.
            (a, b) = (&a[run_a.len()..], &b[run_b.len()..]);
            continue;
        }
        match (a.chars().next(), b.chars().next()) {
            (Some(x), Some(y)) if x == y => (a, b) = (&a[x.len_utf8()..], &b[y.len_utf8()..]),
            (x, y) => return x.cmp(&y),
        }
    }
}

fn digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

fn stdin(most: usize, bar: &ProgressBar) -> Result<Input, Unfit> {
    let name = "standard input".to_owned();
    let bytes = drain(&name, &mut std::io::stdin().lock(), most, bar)?;
    Ok(Input { name, bytes, taken: None })
}

fn file(path: &Path, most: usize, bar: &ProgressBar) -> Result<Input, Unfit> {
    let name = shown(path);
    let system = |error: std::io::Error| Unfit::System(format!("{name}: {error}"));
    let mut file = std::fs::File::open(path).map_err(system)?;
    let meta = file.metadata().map_err(system)?;
    let bytes = drain(&name, &mut file, most, bar)?;
    let named = path.file_name().and_then(|name| taken::in_name(&name.to_string_lossy()));
    let written = || meta.modified().ok()?.duration_since(UNIX_EPOCH).ok();
    let taken = match named {
        Some(seconds) => Some((Taken::utc(seconds), Clock::FileName)),
        None => written().map(|time| (Taken::utc(time.as_secs()), Clock::FileTime)),
    };
    Ok(Input { name, bytes, taken })
}

/// Reads to the end; a file that is no text is given up after its first bytes, one that is too large when it is found so.
fn drain(
    name: &str,
    from: &mut dyn Read,
    most: usize,
    bar: &ProgressBar,
) -> Result<Vec<u8>, Unfit> {
    bar.set_message(name.to_owned());
    let mut bytes = Vec::new();
    let mut judged = false;
    loop {
        let read = from
            .take(u64::try_from(STEP).unwrap_or(u64::MAX))
            .read_to_end(&mut bytes)
            .map_err(|error| Unfit::System(format!("{name}: {error}")))?;
        if !judged {
            judge(name, &bytes[..bytes.len().min(PROBE)])?;
            judged = true;
        }
        if read == 0 {
            return Ok(bytes);
        }
        if bytes.len() > most {
            return Err(too_large(name, most));
        }
        bar.inc(u64::try_from(read).unwrap_or(0));
    }
}

fn too_large(name: &str, most: usize) -> Unfit {
    let (problem, help) = match most < FILE_BYTES_MAX {
        true => {
            let all = BYTES_MAX >> 20;
            (format!("{name}: with it there are more than {all} MiB"), "give fewer files at a time")
        }
        false => {
            let one = FILE_BYTES_MAX >> 20;
            let help = "divide it, as `split -C 100m FILE` does, between reports";
            (format!("{name}: larger than {one} MiB"), help)
        }
    };
    Unfit::Content(problem, help.to_owned())
}

/// What compressed files and archives begin with, and the command that unpacks them; gzip is read as it is.
const PACKED: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x9d", "compress", "uncompress -c"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
    (b"7z\xbc\xaf\x27\x1c", "7-zip", "7z x -so"),
];

/// Header and trailer of a file of gzip's (RFC 1952).
const GZIP_BYTES_MIN: usize = 18;

/// Refuses what cannot be text. UTF-16, as Windows tools save it, is text.
fn judge(name: &str, start: &[u8]) -> Result<(), Unfit> {
    if let Some((_, what, unpack)) = PACKED.iter().find(|(magic, ..)| start.starts_with(magic)) {
        let file = if name == "standard input" { "FILE" } else { name };
        return Err(Unfit::Content(
            format!("{name}: compressed ({what}), not a text"),
            format!("unpack it: `{unpack} {file} | trunkline plan advise -`"),
        ));
    }
    let gzip = start.starts_with(b"\x1f\x8b");
    if gzip && start.len() < GZIP_BYTES_MIN {
        return Err(Unfit::Content(
            format!("{name}: compressed (gzip), and cut off"),
            "fetch it again".to_owned(),
        ));
    }
    if !gzip && is_binary(start) {
        return Err(Unfit::Content(
            format!("{name}: a binary file, not a text"),
            "give it the text that the commands printed; of an archive or a snap, the files in it"
                .to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(result: Result<(), Unfit>) -> Option<(String, String)> {
        match result {
            Err(Unfit::Content(problem, help)) => Some((problem, help)),
            _ => None,
        }
    }

    #[test]
    fn packed_and_binary_files_are_refused_with_a_way_out() {
        let (problem, help) = content(judge("a b.bz2", b"BZh91AY")).unwrap();
        assert_eq!(problem, "a b.bz2: compressed (bzip2), not a text");
        assert_eq!(help, "unpack it: `bzip2 -dc a b.bz2 | trunkline plan advise -`");
        let (_, help) = content(judge("standard input", b"PK\x03\x04")).unwrap();
        assert!(help.contains("unzip -p FILE"), "{help}");
        let (problem, _) = content(judge("a.gz", b"\x1f\x8b\x08\0")).unwrap();
        assert_eq!(problem, "a.gz: compressed (gzip), and cut off");
        let (problem, _) = content(judge("core", b"\x7fELF\x02\0\0")).unwrap();
        assert_eq!(problem, "core: a binary file, not a text");
        // One pair tells nothing: what the reader does not take for UTF-16 is refused here.
        for start in [&b"a\0"[..], b"\0a", b"a\0b"] {
            let (problem, _) = content(judge("x", start)).expect("refused");
            assert_eq!(problem, "x: a binary file, not a text");
        }
    }

    #[test]
    fn text_of_every_kind_is_taken() {
        for text in ["", "$ fcstat fcs0\r\n", "BZ", "größer"] {
            assert!(judge("x", text.as_bytes()).is_ok(), "{text}");
        }
        assert!(judge("x", b"\xff\xfe$\0 \0").is_ok());
        assert!(judge("x", b"$\0 \0f\0c\0").is_ok(), "UTF-16 without a mark");
        let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
        assert!(judge("x.nmon.gz", packed).is_ok(), "gzip is unpacked by the planner");
        assert!(judge("x", b"gr\xf6\xdfer").is_ok(), "Latin-1");
    }

    #[test]
    fn files_of_a_folder_come_in_the_order_of_their_numbers() {
        let mut names = ["10.txt", "b", "2.txt", "a10b2", "1.txt", "a9", "a10b10", "02.txt", ""];
        names.sort_by(|a, b| by_number(a, b));
        let expected = ["", "1.txt", "2.txt", "02.txt", "10.txt", "a9", "a10b2", "a10b10", "b"];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_folder_is_read_through_and_says_what_it_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let write =
            |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
        std::fs::create_dir(dir.path().join("later")).unwrap();
        write("vios1-20260302.txt", b"one");
        write("later/two.txt", b"two");
        write("old.xz", b"\xfd7zXZ\0");
        write(".hidden", b"three");
        std::os::unix::fs::symlink(dir.path(), dir.path().join("round")).unwrap();
        let inputs = gather(&[dir.path().to_owned()]).unwrap();
        let texts: Vec<&[u8]> = inputs.files.iter().map(|input| &*input.bytes).collect();
        assert_eq!(texts, [&b"two"[..], b"one"]);
        let clocks: Vec<_> = inputs.files.iter().map(|f| f.taken.as_ref().unwrap().1).collect();
        assert_eq!(clocks, [Clock::FileTime, Clock::FileName]);
        assert_eq!(inputs.passed_over.len(), 2, "{:?}", inputs.passed_over);
        assert!(inputs.passed_over[0].contains("round: a link to a folder"));
        assert!(inputs.passed_over[1].contains("old.xz: compressed (xz)"));
    }

    #[test]
    fn what_is_named_twice_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let later = dir.path().join("later");
        std::fs::create_dir(&later).unwrap();
        std::fs::write(later.join("one.txt"), b"one").unwrap();
        std::os::unix::fs::symlink(later.join("one.txt"), dir.path().join("same.txt")).unwrap();
        let named = [dir.path().to_owned(), later.clone(), later.join("one.txt")];
        let inputs = gather(&named).unwrap();
        assert_eq!(inputs.files.len(), 1);
        assert_eq!(inputs.passed_over.len(), 3, "{:?}", inputs.passed_over);
        assert!(inputs.passed_over.iter().all(|said| said.ends_with("more than once, read once")));
    }

    #[test]
    fn a_name_that_repaints_the_terminal_is_shown_plain() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a\u{1b}[2Jb.txt"), b"one").unwrap();
        std::fs::write(dir.path().join("c\u{1b}[2Jd.xz"), b"\xfd7zXZ\0").unwrap();
        let inputs = gather(&[dir.path().to_owned()]).unwrap();
        assert!(inputs.files[0].name.ends_with("a·[2Jb.txt"), "{}", inputs.files[0].name);
        assert!(
            inputs.passed_over[0].contains("c·[2Jd.xz: compressed"),
            "{:?}",
            inputs.passed_over
        );
        let missing = dir.path().join("e\u{1b}f");
        let error = gather(&[missing]).unwrap_err().to_string();
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }

    /// What never ends, as `yes | trunkline plan advise -` does.
    #[test]
    fn what_is_too_large_is_not_read_to_its_end() {
        let bar = ProgressBar::hidden();
        let most = 3 * STEP;
        let mut endless = std::io::repeat(b'y');
        assert!(drain("x", &mut endless, most, &bar).is_err());
        assert_eq!(drain("x", &mut endless.take(3 << 20), most, &bar).ok().unwrap().len(), most);
        let said = |most| content(Err(too_large("x", most))).unwrap();
        assert_eq!(said(FILE_BYTES_MAX).0, "x: larger than 256 MiB");
        assert_eq!(said(17).0, "x: with it there are more than 1024 MiB");
    }

    #[test]
    fn what_is_named_must_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("x.txt");
        let error = gather(std::slice::from_ref(&missing)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: No such file", missing.display())), "{error}");
        let error = gather(&[dir.path().to_owned()]).unwrap_err().to_string();
        assert!(error.ends_with("there is no file in it"), "{error}");
    }
}
