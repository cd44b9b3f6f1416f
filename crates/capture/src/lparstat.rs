//! `lparstat`: the processors of a partition, its configuration with `-i`, hypervisor calls with `-H`.

mod read;

pub(super) use read::report;

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{At, Head, Read};

/// `lparstat`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lparstat {
    /// Where it came from; with `-i` the partition is `Node Name`.
    pub head: Head,
    /// `type`: `Shared`, `Dedicated`; with `-i` as `Type` prints it, `Shared-SMT-8`.
    pub kind: Option<Read<String>>,
    /// `mode`: `Capped`, `Uncapped`, `Donating`.
    pub mode: Option<Read<String>>,
    /// `smt`, as printed: `4`, `On`, `Off`.
    pub smt: Option<Read<String>>,
    /// Logical processors.
    pub lcpu: Option<Read<u64>>,
    /// Memory, MB.
    pub memory_mb: Option<Read<u64>>,
    /// Processors in the shared pool.
    pub pool_size: Option<Read<u64>>,
    /// Entitled processors.
    pub entitlement: Option<Read<f64>>,
    /// `Online Virtual CPUs`, from `-i`.
    pub virtual_cpus: Option<Read<u64>>,
    /// `Maximum Virtual CPUs`, from `-i`.
    pub virtual_cpus_max: Option<Read<u64>>,
    /// `Variable Capacity Weight`, from `-i`.
    pub weight: Option<Read<u64>>,
    /// `Partition Name`, from `-i`.
    pub partition_name: Option<Read<String>>,
    /// `Partition Number`, from `-i`.
    pub partition_number: Option<Read<u64>>,
    /// One for each interval.
    pub samples: Vec<CpuSample>,
    /// Every line of `-i`, also those that have a field of their own.
    pub info: Vec<Info>,
    /// The lines of `-H`.
    pub hypervisor: Vec<HypervisorCall>,
}

/// One interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CpuSample {
    /// `%user`.
    pub user: Option<Read<f64>>,
    /// `%sys`.
    pub system: Option<Read<f64>>,
    /// `%wait`.
    pub wait: Option<Read<f64>>,
    /// `%idle`.
    pub idle: Option<Read<f64>>,
    /// `physc`: processors used.
    pub physical: Option<Read<f64>>,
    /// `%entc`: of the entitlement.
    pub entitlement_percent: Option<Read<f64>>,
    /// `lbusy`, percent.
    pub logical_busy: Option<Read<f64>>,
    /// `app`: processors free in the pool.
    pub pool_free: Option<Read<f64>>,
    /// `vcsw`: virtual context switches.
    pub context_switches: Option<Read<f64>>,
    /// `phint`: phantom interrupts.
    pub phantom_interrupts: Option<Read<f64>>,
}

/// One line of `lparstat -i`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Info {
    /// The line.
    pub at: At,
    /// Before the colon; rows of a list that have the same fields share their names.
    #[serde(serialize_with = "shared")]
    pub name: Arc<str>,
    /// After it.
    pub value: String,
}

fn shared<S: Serializer>(name: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name)
}

/// One line of `lparstat -H`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HypervisorCall {
    /// The line.
    pub at: At,
    /// `send_crq`, `copy_rdma` …
    pub name: String,
    /// How often.
    pub calls: u64,
    /// Of all time, percent.
    pub total_percent: f64,
    /// Of the time in the hypervisor, percent.
    pub hypervisor_percent: f64,
    /// Average, ns.
    pub average_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

impl Lparstat {
    /// One that says nothing yet.
    #[must_use]
    pub fn empty(head: Head) -> Self {
        Self {
            head,
            kind: None,
            mode: None,
            smt: None,
            lcpu: None,
            memory_mb: None,
            pool_size: None,
            entitlement: None,
            virtual_cpus: None,
            virtual_cpus_max: None,
            weight: None,
            partition_name: None,
            partition_number: None,
            samples: Vec::new(),
            info: Vec::new(),
            hypervisor: Vec::new(),
        }
    }
}
