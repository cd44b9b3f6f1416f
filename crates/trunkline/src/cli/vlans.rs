//! VLANs, which are looked at and made by what is in them.

use super::objects::{ObjectCommand, Verb};
use clap::{ArgMatches, Command, Error, FromArgMatches, Subcommand};
use fabric::attribute::Object;

/// The noun.
pub(super) const NOUN: &str = "vlan";

#[derive(Debug, Subcommand)]
enum VlanVerb {
    /// List the VLANs of networks: who is in each, and which uplink or shared Ethernet adapter bridges it now
    #[command(visible_alias = "ls")]
    List {
        /// Only those of this network
        network: Option<String>,
    },
    /// Show a VLAN, on each network that has it
    #[command(after_help = "\
Examples:
  trunkline vlan show 10
  trunkline vlan show 10 net0")]
    Show {
        /// Its number
        vlan: u16,
        /// Only on this network
        network: Option<String>,
    },
}

pub(super) fn command() -> Command {
    let about = "VLANs of networks, by what is in them";
    let noun = Command::new(NOUN).about(about).alias("vlans");
    VlanVerb::augment_subcommands(noun.subcommand_required(true).arg_required_else_help(true))
}

/// What such a command means.
pub(super) fn read(matches: &ArgMatches) -> Result<ObjectCommand, Error> {
    let verb = match VlanVerb::from_arg_matches(matches)? {
        VlanVerb::List { network } => Verb::Vlans(network),
        VlanVerb::Show { vlan, network } => Verb::Vlan(vlan, network),
    };
    Ok(ObjectCommand { object: Object::Network, verb })
}
