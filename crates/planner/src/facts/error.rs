//! What a data file may do wrong.

/// A data file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FactsError {
    /// Not TOML, a key twice, an unknown key, or a value of the wrong type: the reader's message has line and key.
    #[error("the data file cannot be read: {0}")]
    Syntax(String),
    /// A key that nothing uses.
    #[error("{key}: {expected}; {fix}")]
    Key {
        /// The key, with its table.
        key: String,
        /// What was expected.
        expected: String,
        /// How to mend it.
        fix: String,
    },
}

impl FactsError {
    pub(super) fn key(key: impl Into<String>, expected: &str, fix: impl Into<String>) -> Self {
        FactsError::Key { key: key.into(), expected: expected.to_owned(), fix: fix.into() }
    }
}
