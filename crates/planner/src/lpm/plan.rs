//! What the user says about client, servers and moves.

use std::collections::BTreeMap;

use fabric::negotiate::Policy;
use fabric::suggest::nearest;
use serde::{Deserialize, Serialize};

use crate::capture::At;
use crate::facts::{Facts, Product};

/// A client, the servers, and what happens in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The client that moves.
    pub client: Client,
    /// The servers by name, where it is now among them.
    pub server: BTreeMap<String, Server>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// The lines of captures that values come from, by their keys: `client.queues`, `server.a.num_io_queues`.
    #[serde(skip)]
    pub lines: BTreeMap<String, At>,
}

/// The client partition and its virtual Fibre Channel adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Its operating system.
    pub system: System,
    /// The level of the operating system.
    pub level: Option<String>,
    /// The server where it is now.
    pub at: String,
    /// Queues that it has now; without it, as many as it gets where it is.
    pub queues: Option<u32>,
    /// Its attribute `num_io_queues`; without it, the default.
    pub num_io_queues: Option<u32>,
    /// How it negotiates again; without it, what is known of its system.
    pub policy: Option<Policy>,
}

/// A client's operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// AIX.
    Aix,
    /// IBM i.
    Ibmi,
    /// Linux of any distribution, by the level of its kernel.
    Linux,
    /// SUSE Linux Enterprise Server.
    Sles,
    /// Red Hat Enterprise Linux.
    Rhel,
}

impl System {
    /// Whose level the client's is.
    pub fn product(self) -> Product {
        match self {
            System::Aix => Product::Aix,
            System::Ibmi => Product::Ibmi,
            System::Linux => Product::Linux,
            System::Sles => Product::Sles,
            System::Rhel => Product::Rhel,
        }
    }
}

/// A server: the managed system, its Virtual I/O Server, and the port to which the client's adapter is mapped there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Machine type and model, as in `9080-M9S`.
    pub machine: Option<String>,
    /// Processor generation, as in `POWER9`, where the machine is not in the data.
    pub generation: Option<String>,
    /// Level of the Power firmware, as in `FW950.20`.
    pub firmware: Option<String>,
    /// Level of the Virtual I/O Server, as in `3.1.2.10`.
    pub vios: Option<String>,
    /// Feature code of the Fibre Channel adapter, as in `EN1A`.
    pub adapter: Option<String>,
    /// `num_io_queues` of the port; without it, the default.
    pub num_io_queues: Option<u32>,
    /// `num_per_range` of the virtual adapter; without it, the default, which inherits.
    pub num_per_range: Option<u32>,
    /// `num_per_range` of `viosnpiv0`; without it, the default.
    pub viosnpiv0_num_per_range: Option<u32>,
    /// `limit_intr` of the virtual adapter; without it, false.
    pub limit_intr: Option<bool>,
    /// Virtual adapters that are active on the port already, without the client's.
    pub port_adapters: Option<u32>,
}

/// Something that makes client and server negotiate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// The client moves to a server.
    Move(String),
    /// The client's adapter is configured anew, or the client restarted, where it is.
    Reconfigure,
    /// The server restarts or the adapter is mapped anew, where the client is.
    Renegotiate,
}

/// A plan that cannot be worked out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LpmError {
    /// Not TOML, an unknown key, or a value of the wrong type: the reader's message has line and key.
    #[error("the plan cannot be read: {0}")]
    Syntax(String),
    /// A value that cannot be.
    #[error("{key}: {expected}; {fix}")]
    Value {
        /// The key, with its table.
        key: String,
        /// What was expected.
        expected: String,
        /// How to mend it.
        fix: String,
    },
    /// The client cannot have the queues that it is said to have.
    #[error(
        "client.queues: {queues} queues cannot be at `{at}`, where at most {most} come about; correct the levels or attributes of `{at}`, or leave `queues` out"
    )]
    Contradiction {
        /// What was given.
        queues: u32,
        /// Where.
        at: String,
        /// What can be.
        most: u32,
    },
    /// More is unknown than can be followed.
    #[error("too much is unknown ({0}); give the levels of some of the servers")]
    TooManyUnknown(String),
}

impl LpmError {
    fn value(key: impl Into<String>, expected: impl Into<String>, fix: &str) -> LpmError {
        LpmError::Value { key: key.into(), expected: expected.into(), fix: fix.to_owned() }
    }

    pub(super) fn level(key: String, error: &crate::facts::LevelError) -> LpmError {
        LpmError::value(key, error.to_string(), "`trunkline plan lpm` reads no other form")
    }
}

/// The most steps of one plan.
const STEPS_MAX: usize = 100;

impl Plan {
    /// Reads a plan and judges its names and numbers.
    pub fn read(text: &str, facts: &Facts) -> Result<Plan, LpmError> {
        let plan: Plan =
            toml::from_str(text).map_err(|error| LpmError::Syntax(error.to_string()))?;
        plan.check(facts)?;
        Ok(plan)
    }

    /// Judges names and numbers; levels are judged when they are used.
    ///
    /// # Errors
    /// The first thing that cannot be, with how to mend it.
    pub fn check(&self, facts: &Facts) -> Result<(), LpmError> {
        self.known("client.at", &self.client.at)?;
        if self.steps.is_empty() || self.steps.len() > STEPS_MAX {
            let expected = format!("expected 1 to {STEPS_MAX} steps");
            let fix = "write what happens, as in steps = [{ move = \"b\" }, \"reconfigure\"]";
            return Err(LpmError::value("steps", expected, fix));
        }
        for (number, step) in self.steps.iter().enumerate() {
            if let Step::Move(to) = step {
                self.known(&format!("steps[{number}].move"), to)?;
            }
        }
        let client = &self.client;
        within(facts, "client.num_io_queues", client.num_io_queues, "fcs-client", "num_io_queues")?;
        within(facts, "client.queues", client.queues, "fcs-client", "num_io_queues")?;
        for (name, server) in &self.server {
            let key = |key: &str| format!("server.{name}.{key}");
            let numbers = [
                ("num_io_queues", server.num_io_queues, "fcs", "num_io_queues"),
                ("num_per_range", server.num_per_range, "vfchost", "num_per_range"),
                (
                    "viosnpiv0_num_per_range",
                    server.viosnpiv0_num_per_range,
                    "viosnpiv0",
                    "num_per_range",
                ),
            ];
            for (name, value, device, attribute) in numbers {
                within(facts, &key(name), value, device, attribute)?;
            }
        }
        Ok(())
    }

    /// Takes these keys of the server where the client is instead of what stands there.
    pub(super) fn take_here(&mut self, keys: &toml::Table) -> Result<(), LpmError> {
        let syntax = |error: &dyn std::fmt::Display| LpmError::Syntax(error.to_string());
        let here = self.server.entry(self.client.at.clone()).or_default();
        let mut all = toml::Table::try_from(&*here).map_err(|error| syntax(&error))?;
        for (key, value) in keys {
            self.lines.remove(&format!("server.{}.{key}", self.client.at));
            all.insert(key.clone(), value.clone());
        }
        *here = all.try_into().map_err(|error: toml::de::Error| syntax(&error.message()))?;
        Ok(())
    }

    fn known(&self, key: &str, name: &str) -> Result<(), LpmError> {
        if self.server.contains_key(name) {
            return Ok(());
        }
        let near = nearest(name, self.server.keys().map(String::as_str));
        let meant = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
        let expected = format!("expected the name of a server, not `{name}`{meant}");
        Err(LpmError::value(key, expected, "correct the name, or add the server's table"))
    }
}

/// A number within the range of the original's attribute.
fn within(
    facts: &Facts,
    key: &str,
    value: Option<u32>,
    device: &str,
    name: &str,
) -> Result<(), LpmError> {
    let Some((value, known)) = value.zip(facts.attribute(device, name)) else { return Ok(()) };
    let (min, max) = (known.min.unwrap_or(0), known.max.unwrap_or(i64::from(u32::MAX)));
    if (min..=max).contains(&i64::from(value)) {
        return Ok(());
    }
    let expected = format!("expected {min} to {max}, not {value}");
    Err(LpmError::value(key, expected, "give the value that `lsattr` or `lsdev -attr` prints"))
}
