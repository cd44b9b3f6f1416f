//! `trunkline serve`: folders, store, API socket, signals.
//!
//! Signals that end the control plane leave the data planes running, unless `with_dataplanes` says
//! otherwise.

mod leftovers;
mod system;

pub use leftovers::end_without_server;
pub use system::{Passed, passed_sockets};

use crate::api::{self, VISITORS_MAX, Visitor, Visitors};
use crate::config;
use crate::error::ApiError;
use crate::model::transition::{Allow, Change, Verb};
use crate::model::validate::validate;
use crate::model::{Desired, loss};
use crate::paths::Paths;
use crate::server::{ChangeOptions, ConfigFile, OnFailure, Server};
use crate::store::{RedbStore, Store, StoreError};
use crate::supervisor::ProcessLauncher;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// How long a start waits for the server before it: one that was killed has its locks until the kernel has taken it apart.
const DYING_MAX: Duration = Duration::from_secs(3);

/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);

/// How long answers that are under way may take when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// What `trunkline serve` was told.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folders.
    pub paths: Paths,
    /// The configuration that is to be the desired state; without it the stored one stays.
    pub config: Option<PathBuf>,
    /// Remove what the configuration does not name.
    pub prune: bool,
    /// Put a store that cannot be read aside, and start from the last good copy of the state.
    pub restore: bool,
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
    /// Another server has them.
    #[error("{what} is in use by another `trunkline serve`{}; stop it, or use another --dir",
        pid.map(|pid| format!(", process {pid}")).unwrap_or_default())]
    InUse {
        /// The folder or the store.
        what: String,
        /// Its process, where that is known.
        pid: Option<u32>,
    },
    /// The folders belong to another server.
    #[error("{0}")]
    Folder(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The configuration.
    #[error("{}: {refusal}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        refusal: ApiError,
    },
}

fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServeError {
    let what = what.into();
    move |source| ServeError::System { what, source }
}

/// Runs a server until a signal or the API stops it. Needs a runtime with several threads.
pub async fn serve(options: Options) -> Result<(), ServeError> {
    more_descriptors();
    let mut paths = options.paths.clone();
    // Machines of other users must get to the sockets; one folder for all holds the state as well.
    make_dir(&paths.run, if paths.run == paths.state { 0o700 } else { 0o755 })?;
    make_dir(&paths.state, 0o700)?;
    // One folder has one name: data planes, and memory, are found by it.
    paths.run = canonical(&paths.run)?;
    paths.state = canonical(&paths.state)?;
    for folder in [&paths.run, &paths.state] {
        if let Some(who) = who_else_writes(folder) {
            let path = folder.display();
            tracing::warn!(
                %path,
                "{who} can put files of his own in the place of the state and the sockets here; use a folder that only this server's user can write"
            );
        }
    }
    if let Some(dir) = paths.ram("any").parent() {
        make_dir(dir, 0o700)?;
        is_ours(dir)?;
    }
    // The store is nobody's to touch before the folder is.
    let _owner = after_the_dying(|| leftovers::claim(&paths)).await?;
    let store = after_the_dying(|| match options.restore {
        true => Ok(RedbStore::restore(&paths.store())?),
        false => Ok(RedbStore::open(&paths.store())?),
    });
    let mut store = store.await?;
    let desired = store.load()?;
    leftovers::belong(&paths, &desired)?;
    if let Err(refusal) = validate(&desired, &paths) {
        tracing::error!(
            "the stored state breaks a rule: {refusal}; it is served as it is, mend it with the next change"
        );
    }
    if leftovers::end_data_planes(&paths, &desired, &options.program) {
        leftovers::sweep(&paths, &desired);
    }
    let Passed { api: passed, adapters } = passed_sockets().map_err(system("passed sockets"))?;
    let visitors = match passed {
        Some(listener) => Visitors::at(listener, VISITORS_MAX),
        None => Visitors::listen(&paths.api(), VISITORS_MAX),
    };
    let visitors = visitors.map_err(system("API socket"))?;
    let launch = {
        let (paths, program) = (paths.clone(), options.program.clone());
        move |name: &str| -> Box<dyn crate::supervisor::Launcher> {
            let (socket, log) = (paths.dataplane(name), paths.dataplane_log(name));
            let reservations = paths.reservations_folder();
            Box::new(ProcessLauncher::new(program.clone(), socket, log, reservations))
        }
    };
    let config = options.config.as_deref().map(read_config).transpose()?;
    let server = Server::load(paths, Box::new(store), Box::new(launch), adapters)?;
    if options.with_dataplanes {
        server.end_dataplanes_too();
    }
    let served = run(visitors, Arc::clone(&server));
    tokio::pin!(served);
    // Whoever asks is answered from the beginning, and may end it.
    let ended = async {
        tokio::select! {
            ended = &mut served => return ended,
            begun = begin(&server, config, options.prune) => begun?,
        }
        served.await
    };
    let ended = ended.await;
    server.end().await;
    ended?;
    if let Some(dir) = server.paths().ram("any").parent() {
        // Nothing happens where there is memory in it.
        let _ = std::fs::remove_dir(dir);
    }
    Ok(())
}

/// Brings the data planes up, applies the configuration, and says that it is ready.
async fn begin(
    server: &Server,
    config: Option<(&Path, String)>,
    prune: bool,
) -> Result<(), ServeError> {
    server.bring_up().await;
    let configured = config.is_some();
    if let Some((path, text)) = config
        && let Err(error) = apply(server, path, &text, prune).await
    {
        if server.desired().is_empty() {
            // It serves nobody.
            server.end_dataplanes_too();
        }
        return Err(error);
    }
    if configured {
        // One that was there before the configuration was read began with other attributes.
        for name in server.renew_dataplanes().await {
            tracing::warn!(
                "attributes of data plane `{name}` wait for a restart: `trunkline dataplane restart {name}`"
            );
        }
    }
    server.has_started();
    let troubles = server.troubles();
    for trouble in &troubles {
        tracing::warn!("{trouble}; it is tried again");
    }
    let without = if troubles.is_empty() { "" } else { ", without a data plane so far" };
    tracing::info!(socket = %server.paths().api().display(), "ready{without}");
    system::notify_ready();
    Ok(())
}

/// Does what another server may be in the way of; again for some time, since that may be ending.
async fn after_the_dying<T>(
    mut work: impl FnMut() -> Result<T, ServeError>,
) -> Result<T, ServeError> {
    let until = Instant::now() + DYING_MAX;
    loop {
        match work() {
            Err(ServeError::Store(StoreError::Busy(_)) | ServeError::InUse { .. })
                if Instant::now() < until =>
            {
                tokio::time::sleep(LOOK).await;
            }
            done => return done,
        }
    }
}

/// Serves the API until something asks for the end.
async fn run(visitors: Visitors, server: Arc<Server>) -> Result<(), ServeError> {
    let mut term = signal(SignalKind::terminate()).map_err(system("SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(system("SIGINT"))?;
    let hangup = SignalKind::hangup();
    // Who starts it with `nohup` wants it to go on.
    let mut hangup = match is_ignored(hangup) {
        true => None,
        false => Some(signal(hangup).map_err(system("SIGHUP"))?),
    };
    let (ending, end) = tokio::sync::watch::channel(false);
    let stop = {
        let server = Arc::clone(&server);
        async move {
            tokio::select! {
                _ = term.recv() => tracing::info!("SIGTERM"),
                _ = interrupt.recv() => tracing::info!("SIGINT"),
                Some(_) = async { Some(hangup.as_mut()?.recv().await) } => {
                    tracing::info!("SIGHUP: the terminal that it was started from is gone");
                }
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
    let service = api::router(server).into_make_service_with_connect_info::<Visitor>();
    tokio::select! {
        result = axum::serve(visitors, service).with_graceful_shutdown(stop) => {
            result.map_err(system("API socket"))
        }
        () = late => Ok(()),
    }
}

/// Whether this process was started with a signal ignored.
fn is_ignored(signal: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal.as_raw_value() - 1) & 1 == 1
}

fn make_dir(path: &Path, mode: u32) -> Result<(), ServeError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(system(format!("folder {}", path.display())))
}

/// As many descriptors as the system allows. Without more it goes on with what it has.
fn more_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!(%error, "the limit of descriptors stays");
    }
}

fn canonical(path: &Path) -> Result<PathBuf, ServeError> {
    path.canonicalize().map_err(system(format!("folder {}", path.display())))
}

/// Who beside root and the user of this process can write in a folder.
fn who_else_writes(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    let ours = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    match (ours, found.mode() & 0o002) {
        (false, _) => Some(format!("user {}", found.uid())),
        (true, 0o002) => Some("everybody".to_owned()),
        _ => None,
    }
}

/// That nobody else has made a folder at a place where everybody may.
fn is_ours(path: &Path) -> Result<(), ServeError> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::symlink_metadata(path).map_err(system(path.display().to_string()))?;
    if found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let whose = if found.is_dir() {
        format!("belongs to user {}, perhaps with the memory of that user's volumes", found.uid())
    } else {
        "is no folder".to_owned()
    };
    let path = path.display();
    Err(ServeError::Folder(format!(
        "{path} {whose}; use the user of this folder's server, or another --dir, or remove it"
    )))
}

fn read_config(path: &Path) -> Result<(&Path, String), ServeError> {
    let text = std::fs::File::open(path).and_then(config::text);
    let text = text.map_err(system(path.display().to_string()))?;
    Ok((path, text))
}

/// Applies the configuration. No start takes anything from a client that is connected: what would is left as it is, with a warning.
/// Nor does a rule that it breaks keep a server from its data planes that has a state to go on with.
async fn apply(server: &Server, path: &Path, text: &str, prune: bool) -> Result<(), ServeError> {
    let refused = |refusal| ServeError::Config { path: path.to_owned(), refusal };
    let mut wanted = config::read(text).map_err(refused)?;
    if let Some(folder) = std::path::absolute(path).ok().as_deref().and_then(Path::parent) {
        config::resolve_paths(&mut wanted, folder);
    }
    match apply_read(server, path, wanted, prune).await {
        Err(refusal) if server.desired().is_empty() => Err(refused(refusal)),
        Err(refusal) => {
            let path = path.display();
            tracing::error!(%path, "the configuration is not applied, the state stays as it was: {refusal}");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

async fn apply_read(
    server: &Server,
    path: &Path,
    wanted: Desired,
    prune: bool,
) -> Result<(), ApiError> {
    let file = ConfigFile::new(path.to_owned(), prune, &wanted);
    if file.names.is_empty() {
        tracing::warn!(path = %path.display(), "the configuration names no object; nothing is changed");
        return Ok(());
    }
    let mut options = ChangeOptions {
        dry_run: true,
        allow: Allow::default(),
        on_failure: OnFailure::Keep,
        wait: true,
    };
    let mut pruning = prune;
    loop {
        let (done, _) = server.apply(wanted.clone(), pruning, options).await?;
        if done.losses.is_empty() {
            break;
        }
        let why = loss::refusal(&done.losses);
        let path = path.display();
        let (left, mend) = if pruning {
            ("removed", format!("`trunkline apply --prune --force {path}`"))
        } else {
            ("changed", format!("`trunkline apply --force {path}`"))
        };
        tracing::warn!(%path, "{why}: nothing is {left}; to do it nevertheless: {mend}");
        if !pruning {
            server.has_file(file);
            return Ok(());
        }
        pruning = false;
    }
    options.dry_run = false;
    let (done, others) = server.apply(wanted, pruning, options).await?;
    server.has_file(file);
    for Change { verb, object, name, .. } in &done.changes {
        match verb {
            Verb::Create => tracing::info!("the configuration makes {object} `{name}`"),
            Verb::Change => tracing::info!("the configuration changes {object} `{name}`"),
            Verb::Remove => tracing::warn!("the configuration removes {object} `{name}`"),
        }
    }
    if !others.is_empty() {
        let (path, others) = (path.display(), others.join(", "));
        let how = if prune { "see above" } else { "`--prune` removes them" };
        tracing::info!(%path, others, "objects that the configuration does not name stay; {how}");
    }
    for failure in done.failures {
        tracing::warn!("{failure}; it is tried again");
    }
    Ok(())
}
