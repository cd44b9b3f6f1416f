//! `trunkline dataplane --socket`: the process itself.

use crate::cli::DataplaneRunArgs;
use crate::exit::Failure;
use control::error::ApiError;

/// Becomes the data plane.
pub(crate) fn process(args: DataplaneRunArgs) -> Result<(), Failure> {
    if args.detach {
        // It fails only for the leader of a process group, which no signal to another group reaches.
        let _ = rustix::process::setsid();
    }
    super::start_log(&args.log)?;
    let refuse = |problem| Failure::from(ApiError::invalid(format!("--cpus: {problem}")));
    let cpus = fabric::units::parse_cpus(&args.cpus).map_err(refuse)?;
    let options = dataplane::Options {
        socket: args.socket.unwrap_or_default(),
        // At most `fabric::units::CPU_MAX`.
        cpus: cpus.into_iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect(),
        channels: args.channels,
        poll_us_max: args.poll_us_max,
        confine: args.confine,
    };
    tracing::info!(name = %args.name, pid = std::process::id(), "data plane starts");
    dataplane::run(&options).map_err(Failure::other)
}
