//! The statistics file of each virtual Fibre Channel adapter, written under the run folder once a second while something changes.
//!
//! Each is replaced as a whole, so that a reader sees one moment. They are there as long as the server is, which is who keeps them true.

use super::shared::Server;
use crate::paths::Paths;
use crate::statistics::{AdapterFile, MORE};
use crate::turns;
use fabric::attribute::words::AdapterKind;
use protocol::stats::QueueCounter;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How often they are looked at.
const EVERY: Duration = Duration::from_secs(1);
/// A look takes at most this part of the time.
const PART: u32 = 100;
/// How old what is known of a client may be: so often a data plane is asked.
const AGE: Duration = Duration::from_secs(5);
/// What changes with every command.
const PULSE: [QueueCounter; 3] =
    [QueueCounter::CommandsReceived, QueueCounter::Active, QueueCounter::Pending];

/// What was written.
#[derive(Debug, Default)]
pub(super) struct StatsFiles {
    /// By adapter.
    texts: BTreeMap<String, String>,
    /// What was counted then, by data plane and adapter.
    counted: BTreeMap<String, BTreeMap<String, [u64; PULSE.len()]>>,
    at: Option<Instant>,
    /// Whether the log has said that they cannot be written.
    failing: bool,
}

impl Server {
    /// Begins to keep the files.
    pub(super) fn keep_stats_files(&self) {
        forget_old(&self.paths);
        let (server, ended) = (Weak::clone(&self.myself), Arc::clone(&self.ended));
        tokio::spawn(async move {
            let mut took = Duration::ZERO;
            loop {
                tokio::time::sleep(EVERY.max(took * PART)).await;
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let Some(server) = server.upgrade() else { return };
                let start = turns::now();
                // Reading memory and writing small files of a tmpfs.
                turns::blocking(|| server.write_stats_files());
                took = turns::since(start);
            }
        });
    }

    /// There is nobody to keep them true.
    pub(super) fn remove_stats_files(&self) {
        let mut files = self.stats_files.lock().unwrap_or_else(PoisonError::into_inner);
        *files = StatsFiles::default();
        remove_all(&self.paths);
    }

    fn write_stats_files(&self) {
        let mut files = self.stats_files.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ended.load(Ordering::Relaxed) {
            return;
        }
        let readers: BTreeMap<_, _> = self
            .supervisor_views()
            .into_iter()
            .filter_map(|(name, view)| Some((name, view.stats?)))
            .collect();
        let counted: BTreeMap<_, _> =
            readers.iter().map(|(name, reader)| (name.clone(), reader.count(PULSE))).collect();
        if files.counted == counted && files.at.is_some_and(|at| turns::since(at) < AGE) {
            return;
        }
        files.counted = counted;
        files.at = Some(turns::now());
        let adapters = self.known_adapters(AdapterKind::Fc);
        let mut texts = BTreeMap::new();
        for (dataplane, reader) in &readers {
            let mut queues = reader.count_queues(MORE.map(|(counter, _)| counter));
            let mut received = reader.count_queues([QueueCounter::CommandsReceived]);
            let marks = reader.marks();
            for adapter in adapters.iter().filter(|adapter| adapter.dataplane == *dataplane) {
                let queues = queues.remove(&adapter.name).unwrap_or_default();
                let received = received.remove(&adapter.name).unwrap_or_default();
                let received = received.into_iter().map(|(queue, [n])| (u32::from(queue), n));
                let count = |counter: QueueCounter| {
                    let place = MORE.iter().position(|(other, _)| *other == counter);
                    let values = queues.values().filter_map(|values| values.get(place?));
                    match marks.get(&adapter.name) {
                        Some([active, _]) if counter == QueueCounter::ActiveMax => *active,
                        Some([_, pending]) if counter == QueueCounter::PendingMax => {
                            values.fold(*pending, |most, value| most.max(*value))
                        }
                        _ => values.fold(0, |sum: u64, value| sum.saturating_add(*value)),
                    }
                };
                let file = AdapterFile::of(adapter, &received.collect(), count);
                texts.insert(adapter.name.clone(), file.text());
            }
        }
        match files.write(texts, &self.paths) {
            Ok(()) => files.failing = false,
            Err(error) if !files.failing => {
                files.failing = true;
                tracing::warn!(%error, "the statistics files are not written; it is tried again");
            }
            Err(_) => {}
        }
    }
}

impl StatsFiles {
    /// Writes those that have changed, and removes those of adapters that are gone.
    fn write(&mut self, texts: BTreeMap<String, String>, paths: &Paths) -> io::Result<()> {
        let gone: Vec<String> =
            self.texts.keys().filter(|name| !texts.contains_key(*name)).cloned().collect();
        for name in gone {
            self.texts.remove(&name);
            remove(paths.stats_file(&name).parent().unwrap_or(&paths.run))?;
        }
        for (name, text) in texts {
            if self.texts.get(&name) != Some(&text) {
                replace(&paths.stats_file(&name), &text)?;
                self.texts.insert(name, text);
            }
        }
        Ok(())
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)?;
    let fresh = folder.join(".stats");
    std::fs::write(&fresh, text)?;
    std::fs::rename(&fresh, path)
}

fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What stands behind the name of the folder while it is being removed.
const ASIDE: [&str; 2] = ["old", "older"];

/// Those of a server that was killed are not true any more. They are out of the way at once; to remove those of thousands of adapters takes
/// a disk long, and who waits for the start of the server does not wait for that.
fn forget_old(paths: &Paths) {
    let folder = paths.stats_folder();
    let aside = aside(paths);
    let moved = aside.iter().any(|aside| std::fs::rename(&folder, aside).is_ok());
    if !moved && folder.exists() {
        return remove_all(paths);
    }
    let remove = move || aside.iter().for_each(|aside| forget(aside));
    if let Err(error) = turns::apart("old-statistics", remove) {
        tracing::warn!(%error, "old statistics files stay");
    }
}

/// Where they go. There are some already where a server was killed while it removed those of another one.
fn aside(paths: &Paths) -> [PathBuf; 2] {
    ASIDE.map(|extension| paths.stats_folder().with_extension(extension))
}

fn forget(folder: &Path) {
    if let Err(error) = remove(folder) {
        tracing::warn!(%error, folder = %folder.display(), "old statistics files stay");
    }
}

fn remove_all(paths: &Paths) {
    let folder = paths.stats_folder();
    forget(&folder);
    // They may be being removed.
    aside(paths).iter().for_each(|aside| drop(remove(aside)));
    // Only when it is empty.
    let _ = folder.parent().map(std::fs::remove_dir);
}
