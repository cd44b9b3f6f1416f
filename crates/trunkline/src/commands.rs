//! The commands.

pub(crate) mod dataplane;
pub(crate) mod events;
pub(crate) mod filter;
pub(crate) mod groups;
mod images;
pub(crate) mod lists;
pub(crate) mod logins;
mod lu_layout;
pub(crate) mod objects;
pub(crate) mod operation;
mod pool_top;
mod pools;
mod rescue;
pub(crate) mod sea_clients;
pub(crate) mod serve;
mod snapshots;
pub(crate) mod state;
pub(crate) mod stats;
mod tiers;
pub(crate) mod top;
pub(crate) mod trace;
mod vlans;
pub(crate) mod wait;

use crate::exit::Failure;
use std::io::IsTerminal;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Sends the log to standard error, without time where the journal adds it.
pub(crate) fn start_log(filter: &str) -> Result<(), Failure> {
    let filter: Targets =
        filter.parse().map_err(|error| Failure::other(format!("--log {filter}: {error}")))?;
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    let log = if std::env::var_os("JOURNAL_STREAM").is_some() {
        log.without_time().boxed()
    } else {
        log.boxed()
    };
    tracing_subscriber::registry().with(log.with_filter(filter)).init();
    Ok(())
}
