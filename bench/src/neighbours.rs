//! Isolation as a figure: a client that behaves, alone and beside one that does not, of one data plane.
//!
//! The client that behaves has a volume in memory and four requests of 4 KiB outstanding, so that what it waits for is the server. The other
//! one runs at the lowest priority: what is to be seen is the server, not who gets the client's CPU.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use partition::blk::SlotPlan;
use partition::load::{self, LoadOptions, ScsiLun};
use partition::scsi::control::Function;
use partition::session::{Device, Session, SessionOptions, StartPlan};
use protocol::message::{
    AdapterSpec, BlockSpec, CommandSpec, DeviceSpec, FileSpec, Initiator, LimitSpec, NullSpec,
    Placement, RamSpec, Request, ScsiSpec, TargetSpec, UnitSpec, VolumeKind, VolumeSpec,
};
use testkit::Ext4;

use crate::figure::Series;
use crate::ours::{DataPlane, Plan, Served};
use crate::stage::{self, Contestant, Seat, Stage};
use anyhow::{Context as _, Result, anyhow};

const MIB: u64 = 1 << 20;
/// How long the other client goes on before it looks whether it is over.
const STRETCH: Duration = Duration::from_millis(300);
/// LUN 0 of target 0.
const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];
/// Requests per second that the throttled client is given.
const LIMIT_IOPS: u64 = 200;

/// A case of this module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Neighbours {
    bad: Bad,
    served: Served,
    /// One: both clients are on it. Two: each has its own.
    channels: u32,
}

/// What the other client does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bad {
    /// Far more than its limit lets through.
    Throttled,
    /// Writes to a file system that is frozen.
    Hung,
    /// Reads in as many pieces as fit into a request.
    Chains,
    /// The largest requests.
    Requests,
    /// Comes and goes, with gigabytes of memory that nothing stands behind.
    Memory,
    /// Task management without end.
    Tasks,
}

impl Bad {
    const ALL: [(Bad, &'static str, &'static str); 6] = [
        (Bad::Throttled, "throttled", "one that wants far more than its limit"),
        (Bad::Hung, "hung", "one whose file system is frozen"),
        (Bad::Chains, "chains", "reads in 254 pieces of 8 KiB, of SCSI 126"),
        (Bad::Requests, "requests", "reads of 16 MiB, of SCSI 4 MiB"),
        (Bad::Memory, "memory", "one that comes and goes with 2 GiB of sparse memory"),
        (Bad::Tasks, "tasks", "a flood of task management"),
    ];
}

/// All cases: name, title, kind.
pub(crate) fn cases() -> Vec<(String, String, Neighbours)> {
    let mut cases = Vec::new();
    for (bad, word, what) in Bad::ALL {
        for (served, device) in [(Served::Block, "block"), (Served::Scsi, "scsi")] {
            if bad == Bad::Tasks && served == Served::Block {
                continue;
            }
            for (channels, where_to) in [(1, "on one channel"), (2, "on two channels")] {
                let name = format!("neighbours-{word}-{device}-{channels}");
                let title = format!("beside {what}; {device}, {where_to}");
                cases.push((name, title, Neighbours { bad, served, channels }));
            }
        }
    }
    cases
}

/// Runs a case.
pub(crate) fn run(stage: &mut Stage<'_>, case: Neighbours) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let folder = stage::folder()?;
    let cpus = [settled.server_cpu];
    let plan = Plan { channels: case.channels, ..Plan::null() };
    let mut plane = DataPlane::start(&settled.server, folder.path(), &cpus, &plan)?;
    let memory = tempfile::NamedTempFile::new_in(&settled.tmpfs).context("cannot make a file")?;
    memory.as_file().set_len(64 * MIB).context("cannot give a file its size")?;
    let frozen = (case.bad == Bad::Hung).then(|| Ext4::new(64 * MIB));
    let good = VolumeSpec::new("good", RamSpec::new(memory.path()));
    plane.done(&Request::PutVolume(good))?;
    plane.done(&Request::PutVolume(bad_volume(case.bad, frozen.as_ref())))?;
    let good = put_adapter(&mut plane, folder.path(), "good", 0, case.served)?;
    let bad = put_adapter(&mut plane, folder.path(), "bad", 1, case.served)?;
    let channels = if case.channels == 1 { "one channel" } else { "two channels" };
    let about = format!("data plane, {channels}, of a client with 4 requests outstanding");
    let seat = Seat::new(good, plane.pid(), about);
    let scsi = (case.served == Served::Scsi).then_some(ScsiLun { target: 0, lun: 0 });
    let load = LoadOptions { scsi, depth: 4, read_percent: 70, ..settled.load() };
    let trouble = Trouble { case, socket: bad, cpu: settled.client_cpu, scsi, frozen };
    stage.keep(Box::new((plane, memory)), folder);
    let contestants = [
        Contestant::driven("alone", &seat, load.clone()),
        Contestant::beside("beside", &seat, load, Box::new(move |over| trouble.make(over))),
    ];
    let series = stage.play(&contestants);
    // What the other client has goes before its server does.
    drop(contestants);
    series
}

fn bad_volume(bad: Bad, frozen: Option<&Ext4>) -> VolumeSpec {
    let null: VolumeKind = NullSpec { zero_fill: true }.into();
    let kind = frozen.map_or(null, |frozen| {
        FileSpec { create: true, ..FileSpec::new(frozen.path().join("disk")) }.into()
    });
    let bytes = Some(if frozen.is_some() { 32 * MIB } else { stage::VOLUME_BYTES });
    let limit = LimitSpec { iops: LIMIT_IOPS, iops_burst: 1, ..LimitSpec::default() };
    let limit = (bad == Bad::Throttled).then_some(limit);
    VolumeSpec { bytes, limit, ..VolumeSpec::new("bad", kind) }
}

fn put_adapter(
    plane: &mut DataPlane,
    folder: &Path,
    volume: &str,
    number: u64,
    served: Served,
) -> Result<PathBuf> {
    let device: DeviceSpec = match served {
        Served::Block => BlockSpec::on(volume).into(),
        Served::Scsi => {
            let naa = 0x3000_0000_0000_0001 + number;
            let unit = UnitSpec { name: volume.into(), ..UnitSpec::disk(volume, naa) };
            plane.done(&Request::PutUnit(unit))?;
            let luns = BTreeMap::from([(0, volume.to_owned())]);
            let wwpn = Some(0x5000_0000_0000_0001 + number);
            let target = TargetSpec { id: 0, wwpn, port: 1, luns };
            let initiator = Initiator::Fc { wwpn: 0xc050_7600_0000_0000 + 2 * number };
            let commands =
                CommandSpec { queue_depth: 128, max_xfer_bytes: 4 << 20, ..CommandSpec::default() };
            ScsiSpec { commands, ..ScsiSpec::new(initiator, vec![target]) }.into()
        }
    };
    let socket = folder.join(format!("{volume}.sock"));
    let adapter = AdapterSpec {
        socket_mode: 0o600,
        queues: 1,
        queue_size: 1024,
        placement: Placement::Spread,
        ..AdapterSpec::new(volume, &socket, device)
    };
    plane.done(&Request::PutAdapter(adapter))?;
    Ok(socket)
}

/// The client that does not behave.
struct Trouble {
    case: Neighbours,
    socket: PathBuf,
    cpu: usize,
    scsi: Option<ScsiLun>,
    frozen: Option<Ext4>,
}

impl Trouble {
    /// Makes it until it is over.
    fn make(&self, over: &AtomicBool) -> Result<()> {
        // Threads begin with the priority of who starts them.
        rustix::process::setpriority_process(None, 19).context("cannot lower the priority")?;
        let scsi = self.scsi.is_some();
        let load = LoadOptions {
            scsi: self.scsi,
            cpus: vec![self.cpu],
            duration: STRETCH,
            stuck_after: Duration::from_secs(600),
            ..LoadOptions::default()
        };
        match self.case.bad {
            Bad::Throttled => self.load(&LoadOptions { depth: 64, data_segments: 4, ..load }, over),
            Bad::Hung => self.hang(&LoadOptions { depth: 64, read_percent: 0, ..load }, over),
            Bad::Chains => {
                // As many as a client may have, of 8 KiB.
                let data_segments: u16 = if scsi { 126 } else { 254 };
                let block_bytes = u32::from(data_segments) * 8192;
                let load = LoadOptions { depth: 16, block_bytes, indirect: true, ..load };
                self.load(&LoadOptions { data_segments, ..load }, over)
            }
            Bad::Requests => {
                let block_bytes = if scsi { 4 << 20 } else { 16 << 20 };
                self.load(&LoadOptions { depth: 16, block_bytes, ..load }, over)
            }
            Bad::Memory => self.come_and_go(over),
            Bad::Tasks => self.manage(over),
        }
    }

    fn load(&self, load: &LoadOptions, over: &AtomicBool) -> Result<()> {
        while !over.load(Relaxed) {
            let report = load::run(&self.socket, load, &mut |_| ()).context("the other client")?;
            if let Some(failure) = report.failures.first() {
                return Err(anyhow!("the other client: {failure:#}"));
            }
        }
        Ok(())
    }

    /// One stretch, which does not end before the file system lets it.
    fn hang(&self, load: &LoadOptions, over: &AtomicBool) -> Result<()> {
        let frozen = self.frozen.as_ref().expect("made for this case");
        frozen.freeze();
        let once = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let hung = threads.spawn(|| {
                let done = self.load(load, &once);
                (done, once.load(Relaxed))
            });
            while !over.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let hangs = !hung.is_finished();
            once.store(true, Relaxed);
            frozen.thaw();
            let (done, _) = hung.join().expect("it does not panic");
            done.and_then(|()| match hangs {
                true => Ok(()),
                false => Err(anyhow!("the frozen file system did not hang")),
            })
        })
    }

    fn session(&self) -> Result<Session> {
        let device = if self.scsi.is_some() { Device::Scsi } else { Device::Block };
        let options = SessionOptions { device, ..SessionOptions::default() };
        Session::connect(&self.socket, &options).context("the other client")
    }

    fn come_and_go(&self, over: &AtomicBool) -> Result<()> {
        let slots =
            SlotPlan { slots: 128, data_bytes: 16 << 20, data_segments: 1, indirect: false };
        let plan = StartPlan { queues: 1, queue_size: 1024, threads: 1, slots };
        while !over.load(Relaxed) {
            let mut session = self.session()?;
            if self.scsi.is_some() {
                session.start_scsi(&plan).map(drop).context("the other client")?;
            } else {
                session.start(&plan).map(drop).context("the other client")?;
            }
        }
        Ok(())
    }

    fn manage(&self, over: &AtomicBool) -> Result<()> {
        let mut session = self.session()?;
        let slots = SlotPlan { slots: 16, data_bytes: 4096, data_segments: 1, indirect: false };
        let plan = StartPlan { queues: 1, queue_size: 1024, threads: 1, slots };
        let mut queues = session.start_scsi(&plan).context("the other client")?;
        let functions =
            [Function::AbortTaskSet, Function::LogicalUnitReset, Function::QueryTaskSet];
        let mut out = 0;
        for function in functions.iter().cycle() {
            if over.load(Relaxed) {
                break;
            }
            queues.control.begin(*function, LUN, 1).context("the other client")?;
            out += 1;
            while out == 8 || out > 0 && over.load(Relaxed) {
                match queues.control.poll().context("the other client")? {
                    Some(_) => out -= 1,
                    None => std::thread::yield_now(),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trouble_is_made_for_both_devices_and_on_one_channel_and_two() {
        let cases = cases();
        assert_eq!(cases.len(), 5 * 2 * 2 + 2);
        assert!(cases.iter().any(|(name, ..)| name == "neighbours-tasks-scsi-2"));
    }
}
