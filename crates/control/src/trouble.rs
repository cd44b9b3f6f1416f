//! Why a file beside the state is not written: told once, for as long as it is the same.

use std::io;
use std::path::Path;

#[derive(Debug, Default)]
pub(crate) struct Trouble(Option<String>);

impl Trouble {
    /// A file could not be written, and so something is not kept.
    pub(crate) fn came(&mut self, path: &Path, error: &io::Error, not_kept: &str) {
        let why = format!("{}: {error}", path.display());
        if self.0.as_ref() != Some(&why) {
            tracing::warn!(path = %path.display(), %error, "{not_kept}");
        }
        self.0 = Some(why);
    }

    /// It is written.
    pub(crate) fn is_over(&mut self) {
        self.0 = None;
    }

    /// Why it is not.
    pub(crate) fn why(&self) -> Option<&String> {
        self.0.as_ref()
    }
}
