//! The commands.

pub(crate) mod dataplane;
pub(crate) mod objects;
pub(crate) mod san;
pub(crate) mod serve;
pub(crate) mod state;
pub(crate) mod stats;
pub(crate) mod top;

use crate::exit::Failure;
use std::io::IsTerminal;

/// Sends the log to standard error, without time where the journal adds it.
pub(crate) fn start_log(filter: &str) -> Result<(), Failure> {
    let filter = tracing_subscriber::EnvFilter::try_new(filter)
        .map_err(|error| Failure::other(format!("--log {filter}: {error}")))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        log.without_time().init();
    } else {
        log.init();
    }
    Ok(())
}
