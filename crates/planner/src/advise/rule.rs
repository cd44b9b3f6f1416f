//! A rule is an entry of a table: what it is called, what it is about, what it rests on, how it weighs, when it can
//! judge, and how it judges.
//!
//! ```text
//! captures → View → objects of each Kind
//!                     │  for each rule of that kind
//!                     ▼
//!                  applies ─→ Elsewhere            the rule is not about this object: no line in the coverage
//!                     │ └───→ Lacking(why, command) not judged, and what would decide
//!                     ▼ Judged
//!                  judge ──→ drafts | what it lacks | nothing: healthy
//! ```
//!
//! To add a rule: an entry in the `RULES` of its module, and the module's line in [`TABLE`]. `judge` is given one object
//! and speaks through [`Out`]; what it cannot judge it says there too ([`Out::lack`]), with the command whose output
//! would decide. A rule never looks whether another has spoken: one cause behind several findings is
//! [`causes`](super::causes)'s.

use super::out::Out;
use super::view::View;
use super::{
    client_cpu, cpu, disk, elements, fabric, fc, hmc_lists, hmc_refused, hmc_state, hmc_wwpns,
    interfaces, latency, levels, link, link_down, multipath, network, overload, queues, san, sea,
    served, ssp, ssp_nodes, vnic, vscsi,
};

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A partition or a VIOS as a whole.
    System,
    /// `fcsN`, physical or of a client.
    Port,
    /// `fscsiN`.
    Protocol,
    /// `vfchostN`.
    Server,
    /// From a client's adapter over `vfchostN` to the port, or as much of it as was captured.
    Path,
    /// A client as the fabric sees it: its WWPNs.
    Client,
    /// `hdiskN`.
    Disk,
    /// `vhostN`.
    Vhost,
    /// A shared Ethernet adapter.
    Bridge,
    /// A shared storage pool.
    Pool,
    /// `entN` that is no shared adapter.
    Ethernet,
    /// An adapter of a running Trunkline server.
    Served,
}

impl Kind {
    /// The kind as a heading has it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::System => "systems",
            Self::Port => "Fibre Channel ports",
            Self::Protocol => "Fibre Channel protocol devices",
            Self::Server => "virtual Fibre Channel server adapters",
            Self::Path => "paths of queues",
            Self::Client => "clients on the fabric",
            Self::Disk => "disks",
            Self::Vhost => "virtual SCSI server adapters",
            Self::Bridge => "shared Ethernet adapters",
            Self::Pool => "shared storage pools",
            Self::Ethernet => "Ethernet adapters",
            Self::Served => "adapters of Trunkline servers",
        }
    }
}

/// One thing that rules judge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object<'a> {
    pub(super) kind: Kind,
    /// As a user reads it: `fcs0 on vios1`.
    pub(super) label: String,
    /// The system it is on.
    pub(super) host: usize,
    /// Its own name.
    pub(super) device: &'a str,
    /// Its place in the list of its kind, where the view keeps one.
    pub(super) index: usize,
}

/// Whether a rule can judge an object by what was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Applicability {
    /// It can.
    Judged,
    /// The rule is about other objects.
    Elsewhere,
    /// It cannot, because of this; and this command's output would decide.
    Lacking { why: String, capture: String },
}

impl Applicability {
    /// Judged where that holds; otherwise the rule is about other objects.
    pub(super) fn where_that(holds: bool) -> Self {
        if holds { Self::Judged } else { Self::Elsewhere }
    }
}

/// One rule.
pub struct Rule {
    /// Its identifier: stable text for users.
    pub name: &'static str,
    /// What it looks for.
    pub about: &'static str,
    /// What it is about.
    pub on: Kind,
    /// The commands whose output it judges by.
    pub evidence: &'static str,
    /// How a finding weighs against others: causes come before their effects.
    pub weight: f64,
    pub(super) applies: for<'a> fn(&View<'a>, &Object<'a>) -> Applicability,
    pub(super) judge: for<'a> fn(&View<'a>, &Object<'a>, &mut Out),
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rule").field("name", &self.name).field("on", &self.on).finish()
    }
}

/// Rules that judge every object of their kind.
pub(super) fn always<'a>(_: &View<'a>, _: &Object<'a>) -> Applicability {
    Applicability::Judged
}

/// The rules, by the module that they stand in.
const TABLE: &[&[Rule]] = &[
    link::RULES,
    link_down::RULES,
    elements::RULES,
    fc::RULES,
    fabric::RULES,
    queues::RULES,
    disk::RULES,
    latency::RULES,
    vscsi::RULES,
    sea::RULES,
    ssp::RULES,
    ssp_nodes::RULES,
    cpu::RULES,
    client_cpu::RULES,
    network::RULES,
    network::OF_LISTS,
    interfaces::RULES,
    overload::RULES,
    san::RULES,
    multipath::RULES,
    multipath::OF_LOGS,
    levels::RULES,
    vnic::RULES,
    hmc_state::RULES,
    hmc_lists::RULES,
    hmc_refused::RULES,
    hmc_wwpns::RULES,
    served::RULES,
];

/// Every rule.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    TABLE.iter().copied().flatten()
}

/// The rule of that name.
#[must_use]
pub fn rule(name: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.name == name)
}
