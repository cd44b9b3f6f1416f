//! `trunkline serve`.

use crate::cli::{Global, ServeArgs};
use crate::exit::Failure;
use control::error::{ApiError, Code};
use control::paths::Paths;
use control::serve::{Options, ServeError, serve};
use control::store::StoreError;

/// Runs the server until it is stopped.
pub(crate) fn run(global: &Global, args: ServeArgs) -> Result<(), Failure> {
    crate::commands::start_log(&args.log)?;
    let options = Options {
        paths: Paths { sys: args.sysfs, ..global.paths() },
        config: args.config,
        prune: args.prune,
        restore: args.restore,
        program: std::env::current_exe().map_err(Failure::other)?,
        with_dataplanes: args.with_dataplanes,
    };
    // Before there is a second thread, so that no inherited work is left out.
    if let Err(why) = confine::control_plane() {
        tracing::warn!(%why, "the control plane is not confined");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::other)?;
    runtime.block_on(serve(options)).map_err(|error| match error {
        ServeError::Config { path, refusal } => {
            ApiError { message: format!("{}: {}", path.display(), refusal.message), ..refusal }
                .into()
        }
        ServeError::Store(error) => {
            let damaged = !matches!(error, StoreError::Busy(_));
            let refusal = ApiError::new(Code::Failed, error.to_string());
            let help = "data planes go on meanwhile; `trunkline export --last-good` shows the last good copy of the state, \
                        `trunkline serve --restore` starts from it";
            if damaged { refusal.help(help) } else { refusal }.into()
        }
        other @ (ServeError::System { .. } | ServeError::InUse { .. } | ServeError::Folder(_)) => {
            Failure::other(other)
        }
    })
}
