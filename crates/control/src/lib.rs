//! The control process: what a server shall be, and making it so.
//!
//! - [`model`]: the desired state and its rules; [`config`] reads and writes it as TOML; [`store`]
//!   keeps it over restarts.
//! - [`mod@reconcile`]: what to tell a data plane, as a pure function; [`supervisor`] tells it, over a
//!   [`link`], and keeps its process alive.
//! - [`operation`]: work that may take long, as a pure function of how far it is and what is known.
//! - [`server`] puts these together; [`api`] is its face over HTTP, [`metrics`] the one for
//!   Prometheus; [`trail`] remembers what happened.
//!
//! The control process never maps guest memory and is on no I/O's path: it can stop, crash or be
//! replaced while data planes go on. Guests cannot reach it; what comes over its socket is from
//! administrators, and is still checked in full.

pub mod api;
pub mod caller;
pub mod config;
pub mod error;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod hba;
pub mod image;
pub mod link;
pub mod metrics;
pub mod model;
pub mod operation;
pub mod paths;
pub mod reconcile;
pub mod serve;
pub mod server;
pub mod statistics;
pub mod store;
mod sum;
pub mod supervisor;
pub mod tokens;
pub mod trail;
mod trouble;
#[cfg(not(feature = "sim"))]
mod turns;
#[cfg(feature = "sim")]
pub mod turns;
