//! The last good copy of the state: the state as it was at some time (`control.good`), and what became of it since
//! (`control.good-log`).
//!
//! What is committed is in the copy when [`Good::follow`] returns, and costs what was changed: a line at the end of the log. A line begins
//! where the one before it ends, says what changed and what the state adds up to then; of a log that was cut the lines before are good, and
//! one that belongs to an earlier copy does not begin where this one ends. When the log has become longer than the state, it becomes part
//! of it: so over many changes the state is not written more often than the changes are.

use super::seal::{self, Seal, Sums, json};
use super::{given, is_at, newer};
use crate::model::Desired;
use crate::model::allocations::Allocations;
use crate::sum::sum;
use crate::trouble::Trouble;
use fabric::attribute::{Attributes, Object};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A log is not worked in before it has so many bytes.
const LOG_BYTES_MIN: u64 = 64 << 10;

/// The version of copies that this program writes. Version 2 had other seals, and no log.
const VERSION: u32 = 3;

/// A state in one file of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Copy {
    version: u32,
    desired: Desired,
    seal: Seal,
}

/// The same, as it is written.
#[derive(Serialize)]
struct CopyOf<'a> {
    version: u32,
    desired: &'a Desired,
    seal: Seal,
}

/// A line of the log, behind its sum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    from: Seal,
    to: Seal,
    /// By noun and name; without attributes where the object is gone.
    objects: Vec<(String, String, Option<Attributes>)>,
    /// Records of what was given out.
    given: Vec<(String, Option<serde_json::Value>)>,
    /// The rest of that.
    rest: Allocations,
}

/// The copy of a store that is written to.
#[derive(Debug)]
pub(super) struct Good {
    path: PathBuf,
    /// To its end; nothing while the copy is not known to be one.
    log: Option<File>,
    bytes: u64,
    log_bytes: u64,
    /// Why it is not kept.
    pub(super) trouble: Trouble,
    /// All that was ever written.
    #[cfg(test)]
    pub(super) written: u64,
}

pub(super) fn log_of(path: &Path) -> PathBuf {
    path.with_extension("good-log")
}

fn create(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Puts a file in the place of another one, durably. What could not be written takes no room from who can write less.
fn replace(draft: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let write = || {
        let mut file = create(draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(draft, path)
    };
    write().inspect_err(|_| drop(std::fs::remove_file(draft)))
}

impl Good {
    /// Of a store that keeps its copy there.
    pub(super) fn new(path: PathBuf) -> Good {
        Good {
            path,
            log: None,
            bytes: 0,
            log_bytes: 0,
            trouble: Trouble::default(),
            #[cfg(test)]
            written: 0,
        }
    }

    /// Keeps a state that is known to be good. Without a copy there is no way back, and nothing else is lost.
    pub(super) fn keep(&mut self, good: &Desired, seal: Seal) {
        match self.write(good, seal) {
            Ok(()) => self.trouble.is_over(),
            Err(error) => {
                self.log = None;
                self.trouble.came(&self.path, &error, "no copy of the state is kept");
            }
        }
    }

    /// The same, where it holds `now`, which has that seal.
    pub(super) fn follow(&mut self, now: (&Desired, Seal), next: (&Desired, Seal)) {
        if !self.is_there() {
            return self.keep(next.0, next.1);
        }
        match self.append(now, next) {
            Ok(true) if self.log_bytes <= self.bytes.max(LOG_BYTES_MIN) => {}
            Ok(_) => self.keep(next.0, next.1),
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the copy of the state is written anew");
                self.keep(next.0, next.1);
            }
        }
    }

    /// Whether it is kept, and where it was: somebody may have removed it.
    pub(super) fn is_there(&self) -> bool {
        let log = self.log.as_ref();
        log.is_some_and(|log| is_at(&log_of(&self.path), log)) && self.path.exists()
    }

    fn write(&mut self, good: &Desired, seal: Seal) -> io::Result<()> {
        let draft = self.path.with_extension("good.new");
        let bytes = json(&CopyOf { version: VERSION, desired: good, seal });
        replace(&draft, &self.path, &bytes)?;
        let log = create(&log_of(&self.path))?;
        log.sync_all()?;
        (self.log, self.bytes, self.log_bytes) = (Some(log), bytes.len() as u64, 0);
        #[cfg(test)]
        (self.written += self.bytes);
        Ok(())
    }

    /// Whether there was something to append to.
    fn append(
        &mut self,
        (now, from): (&Desired, Seal),
        (next, to): (&Desired, Seal),
    ) -> io::Result<bool> {
        let Some(log) = &mut self.log else { return Ok(false) };
        let object = |(object, name): (Object, String)| {
            let set = next[object].get(&name).cloned();
            (object.noun().to_owned(), name, set)
        };
        let record = |(key, _, bytes): given::Differing| {
            let value = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose()?;
            Ok((key, value))
        };
        let given: Result<_, serde_json::Error> =
            given::differences(now, next).into_iter().map(record).collect();
        let step = Step {
            from,
            to,
            objects: now.touched(next).into_iter().map(object).collect(),
            given: given?,
            rest: given::rest(&next.allocations),
        };
        let step = json(&step);
        let mut line = format!("{:016x} ", sum(&[&step])).into_bytes();
        line.extend(step);
        line.push(b'\n');
        log.write_all(&line)?;
        log.sync_data()?;
        self.log_bytes += line.len() as u64;
        #[cfg(test)]
        (self.written += line.len() as u64);
        Ok(true)
    }
}

/// Why a copy says nothing.
pub(super) enum Unread {
    /// It cannot be read, whatever is in it.
    System(std::io::Error),
    /// It does not hold what was written.
    Damaged(String),
}

impl From<std::io::Error> for Unread {
    fn from(error: std::io::Error) -> Unread {
        Unread::System(error)
    }
}

impl From<String> for Unread {
    fn from(problem: String) -> Unread {
        Unread::Damaged(problem)
    }
}

/// The state in a copy, or why it cannot be had.
pub(super) fn read(path: &Path) -> Result<Desired, Unread> {
    let bytes = std::fs::read(path)?;
    let copy: Copy = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if copy.version > VERSION {
        return Err(newer(copy.version, VERSION).into());
    }
    let old = copy.version < VERSION;
    let seal = if old { seal::of_state_2(&copy.desired) } else { seal::of_state(&copy.desired) };
    if seal != copy.seal {
        return Err("its checksum does not fit".to_owned().into());
    }
    let mut state = copy.desired;
    // What an earlier program wrote has none; what lies there belongs to another copy.
    let log = match std::fs::read(log_of(path)) {
        _ if old => Vec::new(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        // Without what stands there the state would be an earlier one, in silence.
        log => log?,
    };
    let mut sums = Sums::of(&state);
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        match step(&state, sums, line) {
            Some(next) => (state, sums) = next,
            None => break,
        }
    }
    Ok(state)
}

/// What a line of the log makes of a state; nothing where it is cut, damaged, or of another copy.
fn step(now: &Desired, mut sums: Sums, line: &[u8]) -> Option<(Desired, Sums)> {
    let (told, bytes) = line.strip_suffix(b"\n")?.split_at_checked(17)?;
    if told != format!("{:016x} ", sum(&[bytes])).as_bytes() {
        return None;
    }
    let step: Step = serde_json::from_slice(bytes).ok()?;
    if step.from != sums.seal(&now.allocations) {
        return None;
    }
    let mut next = now.clone();
    for (noun, name, set) in step.objects {
        let object = Object::of_noun(&noun)?;
        match set {
            Some(set) => drop(next[object].insert(name, set)),
            None => drop(next[object].remove(&name)),
        }
    }
    let (files, maxima) = (next.allocations.files.clone(), next.allocations.maxima.clone());
    next.allocations = Allocations { files, maxima, ..step.rest };
    for (key, value) in step.given {
        let bytes = value.map(|value| json(&value));
        given::put(&mut next.allocations, &key, bytes.as_deref()).ok()?;
    }
    sums.follow(now, &next);
    (sums.seal(&next.allocations) == step.to).then_some((next, sums))
}
