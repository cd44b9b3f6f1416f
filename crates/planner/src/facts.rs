//! What is known about PowerVM: limits, thresholds, attributes, levels, adapters and measured costs, each with its source.
//!
//! Facts stand in data files (`crates/planner/facts/*.toml`, compiled in), never in code. Each says where it comes from
//! and whether it was read there (`confirmed`). A user's own file in the same format adds facts and replaces them by
//! their key, whole; what such a file may not do is told with the key, what was expected and how to mend it.

mod error;
pub mod id;
mod level;
mod raw;

pub use error::FactsError;
pub use level::{Level, LevelError, Product, Verdict};

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fabric::negotiate::Policy;
use serde::{Deserialize, Serialize};

use crate::trace::{Figure, Origin, Source, Term};

/// A number, or a range where the source gives one or nobody knows better.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Number {
    /// Its key.
    pub id: String,
    /// The value; the lower end where it is a range.
    pub low: f64,
    /// The upper end; equal to `low` when the value is exact.
    pub high: f64,
    /// The unit, as text for people.
    pub unit: String,
    /// What it is, in a sentence.
    pub meaning: String,
    /// Where it comes from.
    pub source: Source,
}

impl Number {
    /// The term that stands for it in a formula.
    pub fn term(&self, name: &str) -> Term {
        Term::range(name, self.low, self.high, &self.unit, Origin::Fact(self.source.clone()))
    }
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// `yes` and `no`, `true` and `false` are words in AIX; this is a TOML boolean.
    Switch(bool),
    /// A whole number.
    Number(i64),
    /// A word.
    Word(String),
}

impl Setting {
    /// The number, where it is one.
    pub fn as_number(&self) -> Option<i64> {
        match self {
            Setting::Number(number) => Some(*number),
            Setting::Switch(_) | Setting::Word(_) => None,
        }
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Setting::Switch(value) => value.fmt(f),
            Setting::Number(value) => value.fmt(f),
            Setting::Word(value) => value.fmt(f),
        }
    }
}

/// An attribute of a device as the original has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attribute {
    /// The kind of device: one of [`DEVICES`].
    pub device: String,
    /// Its name.
    pub name: String,
    /// Least value, where it is a number with a known range.
    pub min: Option<i64>,
    /// Greatest value.
    pub max: Option<i64>,
    /// The words that it takes, where it is a word.
    pub words: Vec<String>,
    /// What it is when nobody sets it, where that is known.
    pub default: Option<Setting>,
    /// What it does, in a sentence.
    pub meaning: String,
    /// What has to happen before a change takes effect, where that is known.
    pub effect: Option<String>,
    /// Where the fact comes from.
    pub source: Source,
}

/// The kinds of device whose attributes are known.
///
/// `fcs` is a physical port, `fcs-client` a client's virtual Fibre Channel adapter at levels with multi-queue and
/// `fcs-client-single` the same before; `hdisk-vios` is a disk of the Virtual I/O Server, `hdisk-vscsi` a client's disk
/// over virtual SCSI, `hdisk-lu` a client's disk that is a LU, `hdisk-pool` a LUN of a shared storage pool.
pub const DEVICES: [&str; 12] = [
    "fcs",
    "fcs-client",
    "fcs-client-single",
    "fscsi",
    "hdisk",
    "hdisk-lu",
    "hdisk-pool",
    "hdisk-vios",
    "hdisk-vscsi",
    "sea",
    "vfchost",
    "viosnpiv0",
];

/// A Fibre Channel adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Adapter {
    /// Its feature code.
    pub feature: String,
    /// What it is called.
    pub name: String,
    /// Link speed.
    pub link_gbit: u32,
    /// Ports, where a source says so.
    pub ports: Option<u32>,
    /// Whether it supports multi-queue NPIV, where a source says so.
    pub multi_queue: Option<bool>,
    /// Most I/O queues of a port, where a source says so.
    pub io_queues_max: Option<u32>,
    /// Where the fact comes from.
    pub source: Source,
}

/// The least levels of one product for a feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Requirement {
    /// The feature: `npiv-multi-queue`, …
    pub feature: String,
    /// Whose level.
    pub product: Product,
    /// The least level of each release that has one; a release newer than all of them does too.
    pub at_least: Vec<Level>,
    /// Where the fact comes from.
    pub source: Source,
}

impl Requirement {
    /// Judges a level.
    pub fn judge(&self, level: &Level) -> Verdict {
        level.judge(&self.at_least)
    }
}

/// A machine type and model and its processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Type and model, as in `9080-M9S`.
    pub model: String,
    /// What it is called.
    pub name: String,
    /// The generation of its processor, as in `POWER9`.
    pub generation: String,
    /// Where the fact comes from.
    pub source: Source,
}

/// How clients of one system negotiate again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientPolicy {
    /// The system: `aix`, `linux`, …
    pub system: Product,
    /// How it behaves.
    pub policy: Policy,
    /// Where the fact comes from.
    pub source: Source,
}

/// Where the text of a source says something else than its own numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// Its key.
    pub id: String,
    /// What the text says.
    pub says: String,
    /// What the source's own numbers say.
    pub numbers: String,
    /// What the planner goes by.
    pub used: String,
    /// The figures that it touches, by their names.
    #[serde(skip)]
    pub figures: Vec<String>,
    /// The source.
    pub source: Source,
}

/// All facts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    sources: BTreeMap<String, String>,
    numbers: BTreeMap<String, Number>,
    attributes: BTreeMap<String, BTreeMap<String, Attribute>>,
    adapters: BTreeMap<String, Adapter>,
    requirements: BTreeMap<String, BTreeMap<Product, Requirement>>,
    machines: BTreeMap<String, Machine>,
    policies: BTreeMap<Product, ClientPolicy>,
    silenced: BTreeMap<String, String>,
    contradictions: BTreeMap<String, Contradiction>,
}

/// What stands for a number that no data file has: it compares with nothing, and prints as `—`.
static MISSING: Number = Number {
    id: String::new(),
    low: f64::NAN,
    high: f64::NAN,
    unit: String::new(),
    meaning: String::new(),
    source: Source { id: String::new(), text: String::new(), confirmed: false },
};

/// The data files, by their names; a file may cite the sources of those before it.
const FILES: [(&str, &str); 8] = [
    ("sources.toml", include_str!("../facts/sources.toml")),
    ("attributes.toml", include_str!("../facts/attributes.toml")),
    ("levels.toml", include_str!("../facts/levels.toml")),
    ("limits.toml", include_str!("../facts/limits.toml")),
    ("server.toml", include_str!("../facts/server.toml")),
    ("sizing.toml", include_str!("../facts/sizing.toml")),
    ("tuning.toml", include_str!("../facts/tuning.toml")),
    ("contradictions.toml", include_str!("../facts/contradictions.toml")),
];

impl Facts {
    /// The facts that come with the program.
    ///
    /// # Panics
    ///
    /// Never with the data files as they are: a test reads them all.
    pub fn builtin() -> Facts {
        // Reading takes longer than most advice.
        static BUILTIN: LazyLock<Facts> = LazyLock::new(|| {
            Facts::read_builtin().unwrap_or_else(|(file, error)| panic!("{file}: {error}"))
        });
        BUILTIN.clone()
    }

    fn read_builtin() -> Result<Facts, (&'static str, FactsError)> {
        let mut facts = Facts {
            sources: BTreeMap::new(),
            numbers: BTreeMap::new(),
            attributes: BTreeMap::new(),
            adapters: BTreeMap::new(),
            requirements: BTreeMap::new(),
            machines: BTreeMap::new(),
            policies: BTreeMap::new(),
            contradictions: BTreeMap::new(),
            silenced: BTreeMap::new(),
        };
        for (file, text) in FILES {
            facts.merge(text, raw::Whose::Ours).map_err(|error| (file, error))?;
        }
        Ok(facts)
    }

    /// Adds the facts of a user's file; one whose key is there already is replaced as a whole. After an error nothing
    /// has changed.
    pub fn extend(&mut self, text: &str) -> Result<(), FactsError> {
        let mut extended = self.clone();
        extended.merge(text, raw::Whose::Users)?;
        *self = extended;
        Ok(())
    }

    /// Why a user wants to hear nothing of this rule of the advisor.
    pub fn silenced(&self, rule: &str) -> Option<&str> {
        self.silenced.get(rule).map(String::as_str)
    }

    /// A number by its key, one of [`id`]; what is not there is not a number.
    pub fn number(&self, id: &str) -> &Number {
        self.find(id).unwrap_or(&MISSING)
    }

    /// A number by its key.
    pub fn find(&self, id: &str) -> Option<&Number> {
        self.numbers.get(id)
    }

    /// A number as a term of a formula.
    pub fn term(&self, id: &str, name: &str) -> Term {
        self.number(id).term(name)
    }

    /// All numbers whose keys begin so, in the order of their keys.
    pub fn numbers<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Number> {
        self.numbers.values().filter(move |number| number.id.starts_with(prefix))
    }

    /// An attribute of a kind of device, one of [`DEVICES`].
    pub fn attribute(&self, device: &str, name: &str) -> Option<&Attribute> {
        self.attributes.get(device)?.get(name)
    }

    /// All attributes of a kind of device.
    pub fn attributes(&self, device: &str) -> impl Iterator<Item = &Attribute> {
        self.attributes.get(device).into_iter().flat_map(BTreeMap::values)
    }

    /// An adapter by its feature code.
    pub fn adapter(&self, feature: &str) -> Option<&Adapter> {
        self.adapters.get(&feature.to_ascii_uppercase())
    }

    /// All adapters.
    pub fn adapters(&self) -> impl Iterator<Item = &Adapter> {
        self.adapters.values()
    }

    /// What a feature needs.
    pub fn requirements(&self, feature: &str) -> impl Iterator<Item = &Requirement> {
        self.requirements.get(feature).into_iter().flat_map(BTreeMap::values)
    }

    /// What a feature needs of one product.
    pub fn requirement(&self, feature: &str, product: Product) -> Option<&Requirement> {
        self.requirements.get(feature)?.get(&product)
    }

    /// How clients of a system negotiate again, where a source says so.
    pub fn policy(&self, system: Product) -> Option<&ClientPolicy> {
        self.policies.get(&system)
    }

    /// A source's contradiction by its key.
    pub fn contradiction(&self, id: &str) -> Option<&Contradiction> {
        self.contradictions.get(id)
    }

    /// The contradictions that touch one of these figures, by their keys.
    pub fn contradictions_of<'a>(
        &self,
        figures: impl Iterator<Item = &'a Figure> + Clone,
    ) -> Vec<Contradiction> {
        let touched =
            |one: &&Contradiction| figures.clone().any(|figure| one.figures.contains(&figure.name));
        self.contradictions.values().filter(touched).cloned().collect()
    }

    /// A machine by its type and model.
    pub fn machine(&self, model: &str) -> Option<&Machine> {
        self.machines.get(&model.to_ascii_uppercase())
    }
}

#[cfg(test)]
mod tests;
