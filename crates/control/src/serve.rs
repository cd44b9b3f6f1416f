//! `trunkline serve`: folders, store, API socket, signals.
//!
//! Signals that end the control plane leave the data planes running, unless `with_dataplanes` says
//! otherwise.

mod system;

pub use system::{Passed, passed_sockets};

use crate::api;
use crate::config;
use crate::keeper::ProcessLauncher;
use crate::model::transition::Allow;
use crate::paths::Paths;
use crate::refusal::Refusal;
use crate::server::{Manner, OnFailure, Server};
use crate::store::{RedbStore, StoreError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long answers that are under way may take when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// What `trunkline serve` was told.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folders.
    pub paths: Paths,
    /// The configuration that is to be the desired state; without it the stored one stays.
    pub config: Option<PathBuf>,
    /// The program that is started as `PROGRAM dataplane …`: this one.
    pub program: PathBuf,
    /// End the data planes when the control plane ends.
    pub with_dataplanes: bool,
}

/// Why the server could not start or had to end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What happened.
        source: io::Error,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The configuration.
    #[error("{}: {refusal}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        refusal: Refusal,
    },
}

fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServeError {
    let what = what.into();
    move |source| ServeError::System { what, source }
}

/// Runs a server until a signal or the API stops it. Needs a runtime with several threads.
pub async fn serve(options: Options) -> Result<(), ServeError> {
    let paths = options.paths.clone();
    // Machines of other users must get to the sockets; one folder for all holds the state as well.
    make_dir(&paths.run, if paths.run == paths.state { 0o700 } else { 0o755 })?;
    make_dir(&paths.state, 0o700)?;
    if let Some(dir) = paths.ram("any").parent() {
        make_dir(dir, 0o700)?;
    }
    // The store's lock makes this the only server here, so a socket that is left over is stale.
    let store = RedbStore::open(&paths.store())?;
    let Passed { api: passed, adapters } = passed_sockets().map_err(system("passed sockets"))?;
    let listener = match passed {
        Some(listener) => listener,
        None => {
            let path = paths.api();
            system::listen(&path, 0o660).map_err(system(format!("socket {}", path.display())))?
        }
    };
    let listener = tokio::net::UnixListener::from_std(listener).map_err(system("API socket"))?;
    let launch = {
        let (paths, program) = (paths.clone(), options.program.clone());
        move |name: &str| -> Box<dyn crate::keeper::Launcher> {
            let (socket, log) = (paths.dataplane(name), paths.dataplane_log(name));
            Box::new(ProcessLauncher::new(program.clone(), socket, log))
        }
    };
    let config = options.config.as_deref().map(read_config).transpose()?;
    let server = Server::start(paths, Box::new(store), Box::new(launch), adapters).await?;
    if options.with_dataplanes {
        server.end_dataplanes_too();
    }
    if let Some((path, text)) = config
        && let Err(error) = apply(&server, path, &text).await
    {
        server.end().await;
        return Err(error);
    }
    let troubles = server.troubles();
    for trouble in &troubles {
        tracing::warn!("{trouble}; it is tried again");
    }
    let without = if troubles.is_empty() { "" } else { ", without a data plane so far" };
    tracing::info!(socket = %server.paths().api().display(), "ready{without}");
    system::notify_ready();
    run(listener, Arc::clone(&server)).await?;
    server.end().await;
    Ok(())
}

/// Serves the API until something asks for the end.
async fn run(listener: tokio::net::UnixListener, server: Arc<Server>) -> Result<(), ServeError> {
    let mut term = signal(SignalKind::terminate()).map_err(system("SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(system("SIGINT"))?;
    let (ending, end) = tokio::sync::watch::channel(false);
    let stop = {
        let server = Arc::clone(&server);
        async move {
            tokio::select! {
                _ = term.recv() => tracing::info!("SIGTERM"),
                _ = interrupt.recv() => tracing::info!("SIGINT"),
                () = server.stopped() => tracing::info!("asked to stop"),
            }
            let _ = ending.send(true);
        }
    };
    let late = async move {
        let mut end = end;
        // An error means that the sender is gone, which is the end as well.
        let _ = end.wait_for(|ending| *ending).await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        result = axum::serve(listener, api::router(server)).with_graceful_shutdown(stop) => {
            result.map_err(system("API socket"))
        }
        () = late => Ok(()),
    }
}

fn make_dir(path: &Path, mode: u32) -> Result<(), ServeError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(system(format!("folder {}", path.display())))
}

fn read_config(path: &Path) -> Result<(&Path, String), ServeError> {
    let text = std::fs::read_to_string(path).map_err(system(path.display().to_string()))?;
    Ok((path, text))
}

/// Makes the configuration the desired state.
async fn apply(server: &Server, path: &Path, text: &str) -> Result<(), ServeError> {
    let refused = |refusal| ServeError::Config { path: path.to_owned(), refusal };
    let mut wanted = config::read(text).map_err(refused)?;
    if let Some(folder) = std::path::absolute(path).ok().as_deref().and_then(Path::parent) {
        config::resolve_paths(&mut wanted, folder);
    }
    let manner = Manner { dry_run: false, allow: Allow::default(), on_failure: OnFailure::Keep };
    let edit = |desired: &mut crate::model::Desired| {
        *desired = wanted;
        Ok(())
    };
    let done = server.change(manner, edit).await.map_err(refused)?;
    for failure in done.failures {
        tracing::warn!("{failure}; it is tried again");
    }
    Ok(())
}
