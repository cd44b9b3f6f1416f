//! `trunkline dataplane`: the process, and the noun.

use super::objects;
use crate::cli::{DataplaneArgs, DataplaneCommand, DataplaneRunArgs, Global};
use crate::client::Client;
use crate::exit::Failure;
use control::refusal::Refusal;
use fabric::attribute::Object;

/// The noun's verbs, or, without one, the process itself.
pub(crate) fn run(global: &Global, args: DataplaneArgs) -> Result<(), Failure> {
    let Some(command) = args.command else {
        return process(args.run);
    };
    let object = Object::DataPlane;
    match command {
        DataplaneCommand::List => objects::list_dataplanes(global),
        DataplaneCommand::Show(arg) => objects::show_dataplane(global, &arg.name),
        DataplaneCommand::Create { object: new, options } => {
            objects::create(global, object, &new, options.0)
        }
        DataplaneCommand::Set { object: edit, options } => {
            objects::set(global, object, &edit, options.0)
        }
        DataplaneCommand::Restart(arg) => {
            Client::new(global)?.post(&format!("/v1/dataplanes/{}/restart", arg.name))
        }
        DataplaneCommand::Remove(args) => objects::remove(global, object, &args),
    }
}

/// Becomes the data plane.
fn process(args: DataplaneRunArgs) -> Result<(), Failure> {
    if args.detach {
        // It fails only for the leader of a process group, which no signal to another group reaches.
        let _ = rustix::process::setsid();
    }
    super::start_log(&args.log)?;
    let refuse = |problem| Failure::from(Refusal::invalid(format!("--cpus: {problem}")));
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
