//! The loads, as the user gives them.

use serde::{Deserialize, Serialize};

use super::given::Given;
use super::sea;
use super::storage;
use super::total::Sizing;
use crate::facts::Facts;

/// Everything that one Virtual I/O Server has to carry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workloads {
    /// The server itself.
    pub vios: Vios,
    /// Shared Ethernet adapters.
    pub sea: Vec<Sea>,
    /// Clients over virtual Fibre Channel.
    pub virtual_fc: Vec<VirtualFc>,
    /// Clients over virtual SCSI to disks or logical volumes.
    pub vscsi: Vec<Vscsi>,
    /// Clients of a shared storage pool.
    pub ssp: Vec<Ssp>,
}

impl Workloads {
    /// These loads and those of another server, on this one.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.sea.extend(other.sea.iter().cloned());
        self.virtual_fc.extend(other.virtual_fc.iter().cloned());
        self.vscsi.extend(other.vscsi.iter().cloned());
        self.ssp.extend(other.ssp.iter().cloned());
        self
    }
}

/// The Virtual I/O Server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Vios {
    /// Clock of its processors; without it, that of the tables.
    pub clock_ghz: Option<Given<f64>>,
    /// How it gets processors; without it, both are told.
    pub processors: Option<Processors>,
    /// What to add in a shared partition, as a part of the load; without it, the range of the facts.
    pub contingency: Option<f64>,
}

/// How a partition gets processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Processors {
    /// Whole ones of its own.
    Dedicated,
    /// A share, with an entitlement.
    Shared,
}

/// One shared Ethernet adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sea {
    /// What to call it.
    #[serde(default)]
    pub name: Option<String>,
    /// Streamed data in MB/s, where 1 MB is 1024 × 1024 bytes; both directions together.
    #[serde(default = "nothing")]
    pub streaming_mb: Given<f64>,
    /// Whether data streams one way or both ways at a time.
    #[serde(default)]
    pub direction: Direction,
    /// 1500, or 9000 for jumbo frames.
    #[serde(default = "mtu")]
    pub mtu: u32,
    /// The attribute `thread`; without it, the default.
    #[serde(default)]
    pub threaded: Option<bool>,
    /// Requests with their responses each second.
    #[serde(default = "nothing")]
    pub transactions: Given<f64>,
    /// Bytes of a request and of its response.
    #[serde(default = "transaction_bytes")]
    pub transaction_bytes: Given<u32>,
}

fn nothing() -> Given<f64> {
    0.0.into()
}

fn mtu() -> u32 {
    1500
}

fn transaction_bytes() -> Given<u32> {
    64.into()
}

/// The directions in which data streams at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// One way.
    #[default]
    Simplex,
    /// Both ways.
    Duplex,
}

/// Clients over virtual Fibre Channel that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtualFc {
    /// What to call them.
    #[serde(default)]
    pub name: Option<String>,
    /// Virtual adapters.
    #[serde(default = "one")]
    pub adapters: Given<u32>,
    /// I/Os each second, of all adapters together.
    pub iops: Given<f64>,
    /// Bytes of an I/O.
    pub block_bytes: Given<u32>,
    /// Queues of each adapter; without it, the default.
    #[serde(default)]
    pub queues: Option<Given<u32>>,
    /// Response time of an I/O; without it, a range of the facts.
    #[serde(default)]
    pub latency_ms: Option<Given<f64>>,
}

/// Clients over virtual SCSI that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vscsi {
    /// What to call them.
    #[serde(default)]
    pub name: Option<String>,
    /// I/Os each second, of all of them together.
    pub iops: Given<f64>,
    /// Bytes of an I/O.
    pub block_bytes: Given<u32>,
    /// What stands behind the disks.
    #[serde(default)]
    pub backing: Backing,
    /// Disks of one client; with it, the adapters that it needs are told.
    #[serde(default)]
    pub disks: Option<Given<u32>>,
    /// `queue_depth` of the client's disks; without it, the default.
    #[serde(default)]
    pub queue_depth: Option<Given<u32>>,
}

/// What stands behind a virtual SCSI disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backing {
    /// A physical disk or LUN.
    #[default]
    Disk,
    /// A logical volume.
    Volume,
}

/// Clients of a shared storage pool, which are reached over virtual SCSI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ssp {
    /// What to call it.
    #[serde(default)]
    pub name: Option<String>,
    /// I/Os each second through this server.
    pub iops: Given<f64>,
    /// Bytes of an I/O.
    pub block_bytes: Given<u32>,
    /// Clients of this server.
    pub clients: Given<u32>,
    /// Size of the pool in TB.
    pub pool_tb: Given<f64>,
    /// LUNs of the pool; without it, the number that is recommended.
    #[serde(default)]
    pub luns: Option<Given<u32>>,
    /// `queue_depth` of the pool's LUNs; without it, the default.
    #[serde(default)]
    pub lun_depth: Option<Given<u32>>,
    /// `queue_depth` of a client's LU; without it, the default.
    #[serde(default)]
    pub lu_depth: Option<Given<u32>>,
}

fn one() -> Given<u32> {
    1.into()
}

/// Loads that cannot be sized.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// Not TOML, an unknown key, or a value of the wrong type: the reader's message has line and key.
    #[error("the workloads cannot be read: {0}")]
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
}

/// Largest number that is taken for a rate or a size: beyond it a unit was mistaken.
const LARGEST: f64 = 1e12;

impl SizeError {
    pub(super) fn value(key: impl Into<String>, expected: &str, fix: &str) -> SizeError {
        SizeError::Value { key: key.into(), expected: expected.to_owned(), fix: fix.to_owned() }
    }
}

impl Workloads {
    /// Reads a TOML file.
    pub fn read(text: &str) -> Result<Workloads, SizeError> {
        toml::from_str(text).map_err(|error| SizeError::Syntax(error.to_string()))
    }

    /// Works out processors and memory.
    pub fn size(&self, facts: &Facts) -> Result<Sizing, SizeError> {
        self.check()?;
        let stored = !(self.vscsi.is_empty() && self.ssp.is_empty());
        let mut parts = Vec::new();
        for (number, sea) in self.sea.iter().enumerate() {
            parts.push(sea::size(facts, number + 1, sea, stored, &self.vios)?);
        }
        for (number, fc) in self.virtual_fc.iter().enumerate() {
            parts.push(storage::virtual_fc(facts, number + 1, fc, &self.vios));
        }
        for (number, vscsi) in self.vscsi.iter().enumerate() {
            parts.push(storage::vscsi(facts, number + 1, vscsi, &self.vios));
        }
        for (number, ssp) in self.ssp.iter().enumerate() {
            parts.push(storage::ssp(facts, number + 1, ssp, &self.vios));
        }
        Ok(Sizing::of(facts, self, parts))
    }

    /// Whether there is no load.
    pub fn is_empty(&self) -> bool {
        self.sea.is_empty()
            && self.virtual_fc.is_empty()
            && self.vscsi.is_empty()
            && self.ssp.is_empty()
    }

    fn check(&self) -> Result<(), SizeError> {
        if self.is_empty() {
            let expected = "expected at least one of [[sea]], [[virtual_fc]], [[vscsi]], [[ssp]]";
            return Err(SizeError::value("workloads", expected, "add a load"));
        }
        if let Some(clock) = &self.vios.clock_ghz
            && !(0.1..=20.0).contains(&clock.value())
        {
            let fix = "give the processor's clock, as in clock_ghz = 3.8";
            return Err(SizeError::value("vios.clock_ghz", "expected 0.1 to 20", fix));
        }
        rate("vios.contingency", self.vios.contingency.unwrap_or(0.0), 0.0, 10.0)?;
        for (number, sea) in self.sea.iter().enumerate() {
            rate(&format!("sea[{number}].streaming_mb"), sea.streaming_mb.value(), 0.0, LARGEST)?;
            rate(&format!("sea[{number}].transactions"), sea.transactions.value(), 0.0, LARGEST)?;
            count(&format!("sea[{number}].transaction_bytes"), Some(&sea.transaction_bytes))?;
        }
        for (number, fc) in self.virtual_fc.iter().enumerate() {
            rate(&format!("virtual_fc[{number}].iops"), fc.iops.value(), 0.0, LARGEST)?;
            let latency = fc.latency_ms.as_ref().map_or(1.0, Given::value);
            rate(&format!("virtual_fc[{number}].latency_ms"), latency, 0.001, 100_000.0)?;
            count(&format!("virtual_fc[{number}].block_bytes"), Some(&fc.block_bytes))?;
            count(&format!("virtual_fc[{number}].adapters"), Some(&fc.adapters))?;
            count(&format!("virtual_fc[{number}].queues"), fc.queues.as_ref())?;
        }
        for (number, vscsi) in self.vscsi.iter().enumerate() {
            rate(&format!("vscsi[{number}].iops"), vscsi.iops.value(), 0.0, LARGEST)?;
            count(&format!("vscsi[{number}].block_bytes"), Some(&vscsi.block_bytes))?;
            count(&format!("vscsi[{number}].disks"), vscsi.disks.as_ref())?;
            depth(&format!("vscsi[{number}].queue_depth"), vscsi.queue_depth.as_ref())?;
        }
        for (number, ssp) in self.ssp.iter().enumerate() {
            rate(&format!("ssp[{number}].iops"), ssp.iops.value(), 0.0, LARGEST)?;
            rate(&format!("ssp[{number}].pool_tb"), ssp.pool_tb.value(), 0.001, 1e6)?;
            count(&format!("ssp[{number}].block_bytes"), Some(&ssp.block_bytes))?;
            count(&format!("ssp[{number}].clients"), Some(&ssp.clients))?;
            count(&format!("ssp[{number}].luns"), ssp.luns.as_ref())?;
            depth(&format!("ssp[{number}].lun_depth"), ssp.lun_depth.as_ref())?;
            depth(&format!("ssp[{number}].lu_depth"), ssp.lu_depth.as_ref())?;
        }
        Ok(())
    }
}

fn rate(key: &str, value: f64, least: f64, most: f64) -> Result<(), SizeError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let expected = format!("expected {least} to {most}, not {value}");
    Err(SizeError::value(key, &expected, "correct the number or its unit"))
}

fn count(key: &str, value: Option<&Given<u32>>) -> Result<(), SizeError> {
    let value = value.map_or(1, Given::value);
    rate(key, f64::from(value), 1.0, f64::from(u32::MAX))
}

fn depth(key: &str, value: Option<&Given<u32>>) -> Result<(), SizeError> {
    rate(key, f64::from(value.map_or(1, Given::value)), 1.0, 256.0)
}
