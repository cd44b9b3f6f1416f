//! What a run found out.

use serde::Serialize;

use super::options::LoadOptions;
use crate::hist::Latency;

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// A request ended with an error.
    Io,
    /// A block did not hold what was last acknowledged.
    Corrupt,
    /// A request did not come back.
    Stuck,
    /// The server broke the ring.
    Ring,
    /// The server went away, or did not stop in order.
    Server,
}

/// One thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
    /// In which queue, where that can be said.
    pub queue: Option<u16>,
    /// What happened, with the operation.
    pub message: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.queue {
            Some(queue) => write!(out, "queue {queue}: {}", self.message),
            None => out.write_str(&self.message),
        }
    }
}

/// What the server said about itself.
#[derive(Clone, Debug, Serialize)]
pub struct ServerFacts {
    /// Virtio feature bits offered.
    pub features: u64,
    /// Virtio feature bits in use.
    pub features_used: u64,
    /// Protocol feature bits offered.
    pub protocol_features: u64,
    /// Protocol feature bits in use.
    pub protocol_features_used: u64,
    /// Queues offered.
    pub queues: u16,
    /// Size of the disk.
    pub capacity_bytes: u64,
    /// Its block size.
    pub block_size: u32,
    /// Whether a restart of the server loses no request.
    pub tracks_inflight: bool,
}

/// What one queue did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueReport {
    /// Its index.
    pub queue: u16,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Requests that ended with an error.
    pub errors: u64,
    /// Requests per second.
    pub iops: f64,
    /// Kicks sent.
    pub kicks: u64,
    /// Latency of its reads and writes.
    pub latency: Latency,
}

/// What the I/O cost on this side.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClientCost {
    /// CPU time of the I/O threads.
    pub cpu_ns: u64,
    /// The same for one request.
    pub cpu_ns_per_io: f64,
    /// Kicks sent.
    pub kicks: u64,
    /// Requests sent again because a SCSI device asked for that: unit attentions, aborts, BUSY.
    pub sent_again: u64,
    /// Interrupts received.
    pub interrupts: u64,
    /// Times a thread woke up for an interrupt.
    pub wake_ups: u64,
    /// Requests completed for each of them; none in poll mode.
    pub ios_per_wake_up: Option<f64>,
}

/// What the I/O cost the server's process.
#[derive(Clone, Debug, Serialize)]
pub struct ServerCost {
    /// CPU time of all its threads.
    pub cpu_ns: u64,
    /// The same for one request.
    pub cpu_ns_per_io: f64,
    /// The same as a share of one CPU.
    pub cpu_share: f64,
}

/// What verification covered.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Blocks compared in all.
    pub blocks_checked: u64,
    /// Of these, in the pass over everything at the end.
    pub blocks_read_back: u64,
    /// Blocks that were not what they had to be.
    pub blocks_corrupt: u64,
}

/// A restart of the server that the run survived.
#[derive(Clone, Debug, Serialize)]
pub struct Restart {
    /// When, from the start of the run.
    pub at_seconds: f64,
    /// From the loss of the connection until the rings were served again.
    pub pause_seconds: f64,
}

/// A finished run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was asked.
    pub options: LoadOptions,
    /// What the server said about itself.
    pub server: ServerFacts,
    /// Length of the measurement.
    pub seconds: f64,
    /// Reads and writes completed in it.
    pub operations: u64,
    /// Reads and writes per second.
    pub iops: f64,
    /// Bytes moved per second.
    pub bytes_per_second: f64,
    /// Latency of reads and writes together.
    pub latency: Latency,
    /// Latency of reads.
    pub read_latency: Latency,
    /// Latency of writes.
    pub write_latency: Latency,
    /// Every queue.
    pub queues: Vec<QueueReport>,
    /// Cost on this side.
    pub client: ClientCost,
    /// Cost of the server, if its process is known.
    pub server_cost: Option<ServerCost>,
    /// Verification, if asked for.
    pub verify: Option<VerifyReport>,
    /// Restarts of the server.
    pub restarts: Vec<Restart>,
    /// The first things that went wrong.
    pub failures: Vec<Failure>,
    /// All things that went wrong.
    pub failure_count: u64,
}

impl Report {
    /// Whether nothing went wrong.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failure_count == 0
    }
}

/// Where a run stands, for a progress bar.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What it is doing.
    pub stage: Stage,
    /// From 0 to 1: how much of the measurement is done.
    pub fraction: f64,
    /// Requests completed since the start.
    pub operations: u64,
    /// Requests per second since the last call.
    pub iops: f64,
}

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Running, not yet measuring.
    WarmUp,
    /// Measuring.
    Measuring,
    /// Waiting for the last requests, or reading everything back.
    Finishing,
    /// Without a server, trying to reach its successor.
    Reconnecting,
}
