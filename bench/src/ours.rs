//! The server of this repository: a data plane alone, told what to serve over its message socket.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use protocol::message::{
    AdapterSpec, BlockSpec, CacheMode, CommandSpec, DeviceSpec, FailureCode, FileSpec, Initiator,
    NullSpec, Reply, Request, ScsiSpec, TargetSpec, UnitSpec, VERSION, VolumeKind, VolumeSpec,
    WaitMode,
};
use protocol::socket::Connection;
use protocol::stats::{ChannelCounter, StatsReader};

use crate::process::{self, Process};
use crate::stage::VOLUME_BYTES;
use anyhow::{Context as _, Result, anyhow};

/// What an adapter makes of the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    /// A block device.
    Block,
    /// LUN 0 of target 0 of a virtual Fibre Channel adapter.
    Scsi,
}

/// How a data plane is started.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The kind of its adapters.
    pub(crate) served: Served,
    /// What it serves.
    pub(crate) volume: VolumeKind,
    /// Capacity; `None` is what the file has.
    pub(crate) bytes: Option<u64>,
    /// Threads for I/O, all on the server's CPU.
    pub(crate) channels: u32,
    /// Queues of an adapter.
    pub(crate) queues: u16,
    /// How channels wait.
    pub(crate) wait: WaitMode,
    /// Whether what a sleep is worth is measured (`poll_us_max = auto`).
    pub(crate) measures_sleep: bool,
}

impl Plan {
    /// A volume that does nothing, one queue on one channel, as users get it.
    pub(crate) fn null() -> Plan {
        let (channels, queues, wait) = (1, 1, WaitMode::Adaptive);
        let bytes = Some(VOLUME_BYTES);
        let (served, measures_sleep) = (Served::Block, false);
        Plan { served, volume: NULL, bytes, channels, queues, wait, measures_sleep }
    }

    /// The same on another volume.
    pub(crate) fn on(self, volume: VolumeKind) -> Plan {
        Plan { volume, ..self }
    }
}

/// A volume that does nothing, as large as the peer's.
pub(crate) const NULL: VolumeKind = VolumeKind::Null(NullSpec { zero_fill: false });

/// A file.
pub(crate) fn file(path: &Path, cache: CacheMode) -> VolumeKind {
    FileSpec { cache, ..FileSpec::new(path) }.into()
}

/// The volume as a logical unit.
fn unit() -> UnitSpec {
    UnitSpec { name: "unit".into(), ..UnitSpec::disk("volume", 0x3000_0000_0000_0001) }
}

/// A running data plane.
pub(crate) struct DataPlane {
    process: Process,
    connection: Connection,
    folder: PathBuf,
}

impl DataPlane {
    /// Starts a data plane on these CPUs, without volumes.
    pub(crate) fn start(binary: &Path, folder: &Path, cpus: &[usize], plan: &Plan) -> Result<Self> {
        let socket = folder.join("dataplane.sock");
        let mut command = process::on_cpus(cpus, binary);
        command.arg("dataplane").arg("--socket").arg(&socket);
        command.args(["--cpus", &process::list(cpus), "--channels", &plan.channels.to_string()]);
        if plan.measures_sleep {
            command.args(["--poll-us-max", "auto"]);
        }
        command.args(["--log", "warn"]);
        let mut process = Process::start(command, "dataplane", folder)?;
        let mut stream = None;
        process.wait_until(folder, || {
            stream = UnixStream::connect(&socket).ok();
            stream.is_some()
        })?;
        let stream = stream.ok_or_else(|| anyhow!("the data plane does not listen"))?;
        let mut plane =
            DataPlane { process, connection: Connection::new(stream), folder: folder.to_owned() };
        match plane.ask(&Request::Hello { version: VERSION, minor: 0 })?.0 {
            Reply::Hello { .. } => Ok(plane),
            other => Err(anyhow!("the data plane answered {other:?} to hello")),
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Opens the volume of a plan.
    pub(crate) fn put_volume(&mut self, plan: &Plan) -> Result<()> {
        let volume =
            VolumeSpec { bytes: plan.bytes, ..VolumeSpec::new("volume", plan.volume.clone()) };
        self.done(&Request::PutVolume(volume))
    }

    /// Makes an adapter with the settings that users get, and returns its socket.
    pub(crate) fn put_adapter(&mut self, plan: &Plan, index: usize) -> Result<PathBuf> {
        let socket = self.folder.join(format!("vhost{index}.sock"));
        let adapter = AdapterSpec {
            socket_mode: 0o600,
            queues: plan.queues,
            wait: plan.wait,
            ..AdapterSpec::new(format!("vhost{index}"), &socket, self.device(plan, index)?)
        };
        self.done(&Request::PutAdapter(adapter))?;
        Ok(socket)
    }

    /// The device of an adapter; makes the logical unit that it needs.
    fn device(&mut self, plan: &Plan, index: usize) -> Result<DeviceSpec> {
        if plan.served == Served::Block {
            return Ok(DeviceSpec::Block(BlockSpec::on("volume")));
        }
        self.done(&Request::PutUnit(unit()))?;
        let target = TargetSpec {
            id: 0,
            wwpn: Some(0x5000_0000_0000_0001),
            port: 1,
            luns: BTreeMap::from([(0, "unit".to_owned())]),
        };
        let initiator = Initiator::Fc { wwpn: 0xc050_7600_0000_0000 + 2 * index as u64 };
        let commands = CommandSpec { queue_depth: 128, ..CommandSpec::default() };
        Ok(ScsiSpec { commands, ..ScsiSpec::new(initiator, vec![target]) }.into())
    }

    /// Times that its channels were woken, from its own statistics.
    pub(crate) fn wake_ups(&mut self) -> Result<u64> {
        let (reply, mut fds) = self.ask(&Request::Stats)?;
        let (Reply::Stats, Some(fd)) = (&reply, fds.pop()) else {
            return Err(anyhow!("the data plane answered {reply:?} to stats"));
        };
        let reader = StatsReader::open(&File::from(fd))
            .context("cannot read the data plane's statistics")?;
        let channels = reader.snapshot().channels;
        Ok(channels.iter().map(|channel| channel.get(ChannelCounter::Wakeups)).sum())
    }

    /// Carries out a request.
    pub(crate) fn done(&mut self, request: &Request) -> Result<()> {
        match self.ask(request)?.0 {
            Reply::Done => Ok(()),
            // Another data plane lets go of the file now.
            Reply::Error(failure) if failure.code == FailureCode::Opening => {
                std::thread::sleep(std::time::Duration::from_millis(10));
                self.done(request)
            }
            Reply::Error(failure) => Err(anyhow!(
                "the data plane refuses {request:?}: {}{}",
                failure.message,
                failure.help.map(|help| format!("; {help}")).unwrap_or_default()
            )),
            other => Err(anyhow!("the data plane answered {other:?} to {request:?}")),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<(Reply, Vec<std::os::fd::OwnedFd>)> {
        self.connection.send(request, &[]).context("cannot ask the data plane")?;
        self.connection.receive().context("the data plane does not answer")
    }
}
