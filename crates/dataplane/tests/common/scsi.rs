//! Units, SCSI adapters, and clients that send them commands.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use partition::blk::SlotPlan;
use partition::load::{LoadOptions, ScsiLun};
use partition::scsi::control::{Control, Events, Function};
use partition::scsi::{Queue, Reply, address, cdb, response, status};
use partition::session::{Device, ScsiQueues, Session, SessionOptions, StartPlan};
use protocol::message::{
    AdapterSpec, CommandSpec, DeviceSpec, FileSpec, Initiator, LinkSpec, Placement, PortShare,
    Request, ScsiSpec, TargetSpec, UnitSpec, VolumeSpec,
};

use super::{Server, volume};

/// Long enough for a machine that is busy with other tests.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// No unit attentions.
pub const NONE: [u16; 0] = [];

pub fn unit(name: &str, volume: &str) -> UnitSpec {
    let naa = 0x3000_0000_0000_0000 | name.bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte));
    UnitSpec {
        name: name.into(),
        serial: format!("serial of {name}"),
        ..UnitSpec::disk(volume, naa)
    }
}

pub fn commands() -> CommandSpec {
    CommandSpec {
        num_cmd_elems: 512,
        num_local_cmds: 64,
        bufs_per_cmd: 2,
        max_xfer_bytes: 4 << 20,
        ..CommandSpec::default()
    }
}

/// A target whose LUNs are these units.
pub fn target(id: u8, luns: &[(u16, &str)]) -> TargetSpec {
    TargetSpec {
        id,
        wwpn: Some(0x5005_0768_0000_0000 + u64::from(id)),
        port: u16::from(id) + 1,
        luns: luns.iter().map(|(lun, unit)| (*lun, (*unit).to_owned())).collect(),
    }
}

pub fn scsi(wwpn: u64, targets: Vec<TargetSpec>) -> ScsiSpec {
    ScsiSpec { commands: commands(), ..ScsiSpec::new(Initiator::Fc { wwpn }, targets) }
}

pub fn adapter(folder: &Path, number: u64, targets: Vec<TargetSpec>) -> AdapterSpec {
    let name = format!("vfchost{number}");
    let socket = folder.join(format!("{name}.sock"));
    AdapterSpec {
        queues: 4,
        placement: Placement::Spread,
        ..AdapterSpec::new(name, socket, scsi(0xc050_7600_0000_0000 + number, targets))
    }
}

/// The first adapter with its port and a LUN; unmapped, it has no targets either.
pub fn linked(folder: &Path, port: Option<&str>, link: LinkSpec) -> AdapterSpec {
    let targets = port.map(|_| target(0, &[(0, "lu0")]));
    let mut spec = adapter(folder, 0, targets.into_iter().collect());
    let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
    let share = |port: &str| PortShare { name: port.into(), num_cmd_elems: 200, share: 100 };
    (scsi.port, scsi.link) = (port.map(share), link);
    spec
}

/// A file of the test's folder.
pub fn file(folder: &Path, name: &str, mebibytes: u64) -> VolumeSpec {
    let path = folder.join(format!("{name}.raw"));
    let file = FileSpec { create: true, ..FileSpec::new(path) };
    VolumeSpec { name: name.into(), ..volume(file, mebibytes) }
}

impl Server {
    /// First bytes of the first eight blocks of volume `v<number>`, as they stand in its file at this moment. A read by a slow volume would
    /// come too late to see what is written too late.
    #[track_caller]
    pub fn in_file(&self, number: u16) -> Vec<u8> {
        let mut bytes = [0; 8 * 512];
        let file = std::fs::File::open(self.path(&format!("v{number}.raw"))).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
        bytes.iter().step_by(512).copied().collect()
    }

    /// Volumes `v0`, `v1`, … in files, with units `lu0`, `lu1`, … on them, and `vfchost0` with target 0 that has them as LUNs from 0.
    pub fn with_units(&self, count: u16, mebibytes: u64) -> PathBuf {
        self.units(count, mebibytes, |spec| spec);
        let names: Vec<String> = (0..count).map(|number| format!("lu{number}")).collect();
        let luns: Vec<(u16, &str)> = (0..).zip(names.iter().map(String::as_str)).collect();
        self.put_scsi(0, vec![target(0, &luns)])
    }

    pub fn units(&self, count: u16, mebibytes: u64, change: impl Fn(VolumeSpec) -> VolumeSpec) {
        for number in 0..count {
            let name = format!("v{number}");
            self.must(Request::PutVolume(change(file(self.dir.path(), &name, mebibytes))));
            let keep = Some(self.path(&format!("lu{number}.pr")));
            self.must(Request::PutUnit(UnitSpec { keep, ..unit(&format!("lu{number}"), &name) }));
        }
    }

    pub fn put_scsi(&self, number: u64, targets: Vec<TargetSpec>) -> PathBuf {
        let spec = adapter(self.dir.path(), number, targets);
        let socket = spec.socket.clone();
        self.must(Request::PutAdapter(spec));
        socket
    }
}

/// A client with one thread.
pub struct Client {
    pub session: Session,
    pub control: Control,
    pub events: Events,
    pub requests: Vec<Queue>,
}

impl Client {
    #[track_caller]
    pub fn connect(socket: &Path) -> Client {
        Client::with(socket, 2, 16, |_| ())
    }

    #[track_caller]
    pub fn with(
        socket: &Path,
        queues: u16,
        slots: u16,
        change: impl FnOnce(&mut SessionOptions),
    ) -> Client {
        let mut options =
            SessionOptions { device: Device::Scsi, timeout: PATIENCE, ..SessionOptions::default() };
        change(&mut options);
        let mut session = Session::connect(socket, &options).unwrap();
        let slots = SlotPlan { slots, data_bytes: 65536, data_segments: 1, indirect: false };
        let plan = StartPlan { queues, queue_size: 256, threads: 1, slots };
        let ScsiQueues { control, mut events, requests } = session.start_scsi(&plan).unwrap();
        events.offer(8).unwrap();
        Client { session, control, events, requests }
    }

    /// One command on the first queue.
    #[track_caller]
    pub fn send(&mut self, lun: [u8; 8], cdb: &[u8], out: &[u8], data_in: u32) -> Reply {
        self.requests[0].execute(lun, cdb, out, data_in, PATIENCE).unwrap()
    }

    /// One command until no unit attention is in the way.
    #[track_caller]
    pub fn past_attentions(&mut self, lun: [u8; 8], cdb: &[u8], out: &[u8], data_in: u32) -> Reply {
        for _ in 0..32 {
            let reply = self.send(lun, cdb, out, data_in);
            if !matches!(reply.sense_code(), Some((6, _))) {
                return reply;
            }
        }
        panic!("unit attentions without end");
    }

    /// A command that has to be done.
    #[track_caller]
    pub fn must(&mut self, lun: [u8; 8], cdb: &[u8], out: &[u8], data_in: u32) -> Vec<u8> {
        let reply = self.past_attentions(lun, cdb, out, data_in);
        assert!(reply.good(), "{cdb:x?}: {reply:?}");
        reply.data
    }

    /// The unit attentions that are pending, as they are told one after the other.
    #[track_caller]
    pub fn attentions(&mut self, lun: [u8; 8]) -> Vec<u16> {
        let mut told = Vec::new();
        loop {
            let reply = self.send(lun, &cdb::TEST_UNIT_READY, &[], 0);
            match reply.sense_code() {
                Some((6, code)) => told.push(code),
                _ => {
                    assert!(reply.good(), "{reply:?}");
                    return told;
                }
            }
        }
    }

    /// LUNs that REPORT LUNS tells.
    #[track_caller]
    pub fn report_luns(&mut self, target: u8) -> Vec<u16> {
        let data = self.must(address(target, 0), &cdb::report_luns(4096), &[], 4096);
        let bytes = u32::from_be_bytes(data[..4].try_into().unwrap()) as usize;
        data[8..8 + bytes]
            .chunks_exact(8)
            .map(|lun| u16::from_be_bytes([lun[0] & 0x3f, lun[1]]))
            .collect()
    }

    #[track_caller]
    pub fn blocks(&mut self, lun: [u8; 8]) -> u64 {
        let data = self.must(lun, &cdb::read_capacity(), &[], 32);
        u64::from_be_bytes(data[..8].try_into().unwrap()) + 1
    }

    #[track_caller]
    pub fn manage(&mut self, function: Function, lun: [u8; 8], tag: u64) -> u8 {
        self.control.manage(function, lun, tag, PATIENCE).unwrap()
    }

    /// PERSISTENT RESERVE OUT.
    #[track_caller]
    pub fn reserve(
        &mut self,
        lun: [u8; 8],
        action: u8,
        kind: u8,
        key: (u64, u64),
        aptpl: bool,
    ) -> Reply {
        let list = cdb::reserve_list(key.0, key.1, aptpl);
        self.past_attentions(lun, &cdb::reserve_out(action, kind), &list, 0)
    }

    /// Registers with a key, whatever was registered before.
    #[track_caller]
    pub fn register(&mut self, lun: [u8; 8], key: u64, aptpl: bool) {
        let reply = self.reserve(lun, action::REGISTER_AND_IGNORE, 0, (0, key), aptpl);
        assert!(reply.good(), "{reply:?}");
    }

    /// Writes one block.
    #[track_caller]
    pub fn write(&mut self, lun: [u8; 8], lba: u64, byte: u8) -> Reply {
        let write = cdb::Transfer::new(true, lba, 1);
        self.past_attentions(lun, write.cdb(), &[byte; 512], 0)
    }

    #[track_caller]
    pub fn read(&mut self, lun: [u8; 8], lba: u64) -> Vec<u8> {
        self.must(lun, cdb::Transfer::new(false, lba, 1).cdb(), &[], 512)
    }
}

/// Service actions of PERSISTENT RESERVE OUT.
pub mod action {
    pub const RESERVE: u8 = 1;
    pub const RELEASE: u8 = 2;
    pub const PREEMPT: u8 = 4;
    pub const PREEMPT_AND_ABORT: u8 = 5;
    pub const REGISTER_AND_IGNORE: u8 = 6;
}

/// Write Exclusive, Registrants Only.
pub const WRITE_EXCLUSIVE: u8 = 5;

pub fn conflicts(reply: &Reply) -> bool {
    (reply.response, reply.status) == (response::OK, status::RESERVATION_CONFLICT)
}

/// A LUN below 256 as events name it: as REPORT LUNS does.
pub fn in_event(target: u8, lun: u8) -> [u8; 8] {
    [1, target, 0, lun, 0, 0, 0, 0]
}

/// A load of a LUN.
pub fn on(target: u8, lun: u16, options: LoadOptions) -> LoadOptions {
    LoadOptions { scsi: Some(ScsiLun { target, lun }), ..options }
}

/// LUNs by number, for a change of masks.
pub fn luns(names: &[(u16, &str)]) -> BTreeMap<u16, String> {
    names.iter().map(|(lun, name)| (*lun, (*name).to_owned())).collect()
}
