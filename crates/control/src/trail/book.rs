//! A small file beside the trail, which is replaced as a whole: nobody finds half of it.

use crate::trouble::Trouble;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What it keeps over a restart of the server.
#[derive(Debug)]
pub(super) struct Book<T> {
    pub(super) all: Arc<T>,
    path: PathBuf,
    /// What it keeps, in words.
    what: &'static str,
    /// Why that is not kept.
    trouble: Trouble,
}

impl<T: Default + Serialize + DeserializeOwned> Book<T> {
    /// Goes on with what earlier servers kept. A file that cannot be read is begun anew.
    pub(super) fn open(path: PathBuf, what: &'static str) -> Book<T> {
        let all = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(path = %path.display(), %error, "{what} begin anew");
                T::default()
            }),
            Err(_) => T::default(),
        };
        Book { all: Arc::new(all), path, what, trouble: Trouble::default() }
    }

    pub(super) fn keep(&mut self) {
        let text = serde_json::to_vec(&*self.all).expect("plain values are JSON");
        match replace(&self.path, &text) {
            Ok(()) => self.trouble.is_over(),
            Err(error) => {
                let not_kept = format!("{} are not kept over a restart", self.what);
                self.trouble.came(&self.path, &error, &not_kept);
            }
        }
    }

    /// Tries again. Why it still cannot be kept, if so.
    pub(super) fn mend(&mut self) -> Option<String> {
        if self.trouble.why().is_some() {
            self.keep();
        }
        self.trouble.why().cloned()
    }
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    let written = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path));
    // What could not be written takes no room from who can write less.
    written.inspect_err(|_| drop(std::fs::remove_file(&draft)))
}
