//! `cargo xtask torture`: the long forms of tests whose short ones run with all others.

use clap::{Args, Subcommand};

use crate::run::{self, Context, Result};

/// What is tortured.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The data plane dies with everything in flight, on disks that are slow below the kernel. Needs root and FUSE.
    Data {
        /// How often.
        #[arg(long, default_value_t = 1000)]
        kills: u32,
    },
}

/// Runs it, with its output.
pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result {
    let What::Data { kills } = arguments.what;
    let mut test = context.cargo(&["test", "--locked", "-p", "dataplane", "--test", "torture"]);
    test.args(["--", "--exact", "as_many_deaths_as_are_asked_for", "--ignored", "--nocapture"]);
    run::visible(test.env("TRUNKLINE_TORTURE_KILLS", kills.to_string()))
}
