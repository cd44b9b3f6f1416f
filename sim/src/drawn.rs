//! What a seed draws before its run begins: the volume, the adapters, what goes wrong and how often.

use std::path::Path;

use memory::sim;
use spec::{
    AdapterSpec, BlockSpec, CacheMode, CommandSpec, DelaySpec, DeviceSpec, FileSpec, Initiator,
    LimitSpec, PortShare, ScsiSpec, TargetSpec, VolumeSpec, WaitMode,
};
use uring::sim::Faults;

use crate::client::SECTOR;
use crate::world::{CHANNELS_MAX, CLIENTS_MAX};

/// What the seed drew for the whole run.
#[derive(Debug)]
pub struct Drawn {
    pub channels: u32,
    pub wait: WaitMode,
    pub poll_us_max: Option<u32>,
    pub sectors: u64,
    pub spec: VolumeSpec,
    pub faults: Faults,
    /// SCSI adapters, with these bounds, on a port of so many elements.
    pub scsi: Option<(CommandSpec, Option<u32>)>,
    /// The limit of one of the clients.
    pub limited: Option<(usize, LimitSpec)>,
    /// A death once in so many steps.
    pub death_every: u64,
    pub move_every: u64,
    pub change_every: u64,
    /// So many deaths for one of the whole host.
    pub power_every: u64,
}

fn seldom(often: u64, rare: u64) -> u64 {
    match sim::pick(3) {
        0 => 0,
        1 => often,
        _ => rare,
    }
}

/// A limit on requests, that is soon reached: what may be served at once is less than what a run asks.
pub fn limit() -> LimitSpec {
    let (iops, iops_burst) = (10_000 << sim::pick(4), 1 + sim::pick(16) as u64);
    LimitSpec { iops, iops_burst, ..LimitSpec::default() }
}

impl Drawn {
    pub fn draw(path: &Path) -> Drawn {
        let sectors = 8 << sim::pick(5);
        let cache = if sim::once_in(2) { CacheMode::Direct } else { CacheMode::Buffered };
        let read_only = sim::once_in(5);
        let file = FileSpec { cache, create: !read_only, ..FileSpec::new(path) };
        let mut spec =
            VolumeSpec { bytes: Some(sectors * SECTOR), ..VolumeSpec::new("disk", file) };
        spec.read_only = read_only;
        spec.write_through = sim::once_in(4);
        if sim::once_in(4) {
            spec.limit = Some(limit());
        }
        if sim::once_in(4) {
            let delay = DelaySpec { min_us: 5, max_us: 200, seed: 7, ..DelaySpec::default() };
            spec.delay = Some(delay);
        }
        Drawn {
            channels: 1 + sim::pick(CHANNELS_MAX) as u32,
            wait: [WaitMode::Poll, WaitMode::Adaptive, WaitMode::Interrupt][sim::pick(3)],
            poll_us_max: [Some(1), Some(4), Some(8), Some(16), Some(32), None][sim::pick(6)],
            sectors,
            spec,
            faults: Faults {
                short: seldom(3, 30),
                read_error: seldom(20, 200),
                write_error: seldom(20, 200),
                sync_error: seldom(5, 50),
                passing: seldom(4, 40),
                takes_nothing: seldom(8, 80),
                poll_ends: seldom(4, 40),
                notify_lost: 0,
            },
            scsi: (!sim::once_in(3)).then(|| {
                let commands = CommandSpec {
                    num_cmd_elems: 1 << sim::pick(7),
                    num_local_cmds: 1 + sim::pick(4) as u32,
                    num_sp_cmd_elem: 1 + sim::pick(3) as u32,
                    bufs_per_cmd: 1 + sim::pick(3) as u32,
                    ..CommandSpec::default()
                };
                let port = sim::once_in(2).then(|| 2 << sim::pick(6));
                (commands, port)
            }),
            limited: sim::once_in(2).then(|| (sim::pick(CLIENTS_MAX), limit())),
            // Reads that outlive their process are all that can go wrong there.
            death_every: if read_only { 100 } else { seldom(150, 1_500) },
            move_every: seldom(100, 1_000),
            change_every: seldom(200, 2_000),
            power_every: seldom(2, 8),
        }
    }

    /// The adapter of a client.
    pub fn adapter(&self, number: usize, queues: u16) -> AdapterSpec {
        let device = match &self.scsi {
            None => {
                let read_only = self.spec.read_only;
                DeviceSpec::from(BlockSpec { read_only, ..BlockSpec::on("disk") })
            }
            Some((commands, port)) => {
                let wwpn = 0xc050_7600_0000_0000 + number as u64;
                let luns = [(0, "disk".to_owned())].into();
                let wwpn_of_target = Some(0x5005_0768_0000_0000);
                let target = TargetSpec { id: 0, wwpn: wwpn_of_target, port: 1, luns };
                let port = port.map(|elements| PortShare {
                    name: "fcs0".into(),
                    num_cmd_elems: elements,
                    share: 1 + number as u32,
                });
                let scsi = ScsiSpec::new(Initiator::Fc { wwpn }, vec![target]);
                let limit = self.limited.filter(|(limited, _)| *limited == number);
                let limit = limit.map(|(_, limit)| limit);
                DeviceSpec::from(ScsiSpec { commands: *commands, port, limit, ..scsi })
            }
        };
        let name = format!("client{number}");
        AdapterSpec { queues, wait: self.wait, ..AdapterSpec::new(name, "none", device) }
    }
}
