//! What a seed draws before its run begins: the volume, the adapters, what goes wrong and how often.

use std::path::Path;

use memory::random::{Random, mix};
use memory::sim;
use spec::{
    AdapterSpec, BlockSpec, CacheMode, CommandSpec, DelaySpec, DeviceSpec, FileSpec, Initiator,
    LimitSpec, PortShare, ScsiSpec, TargetSpec, VolumeSpec, WaitMode,
};
use uring::sim::Faults;

use crate::client::SECTOR;
use crate::fence::KINDS;
use crate::less::Less;
use crate::liar;
use crate::options::Part;
use crate::pooled::Pooled;
use crate::world::{CHANNELS_MAX, CLIENTS_MAX};

/// What the seed drew for the whole run.
#[derive(Debug)]
pub(crate) struct Drawn {
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
    /// What is changed under clients: see `Changed`.
    pub changes: Vec<Changed>,
    /// What clients ask of reservations, if anything.
    pub orders: Option<Ordering>,
    /// Clients speak with their sessions in bytes.
    pub in_bytes: bool,
    /// A step of keeping reservations fails once in so many times.
    pub keep_fails: u64,
    /// The process dies in the middle of that, once in so many steps.
    pub keep_dies: u64,
    /// There is a client that lies.
    pub liar: Option<Lying>,
    /// The disk is an LU of this pool.
    pub pool: Option<Pooled>,
}

/// A client that lies, beside the others, with a volume of its own.
#[derive(Debug, Clone)]
pub(crate) struct Lying {
    /// It has a SCSI adapter.
    pub scsi: bool,
    pub direct: bool,
    /// Of its adapter or its volume.
    pub limit: Option<LimitSpec>,
    /// Its volume does not answer for a while, once in so many steps.
    pub hangs_every: u64,
    /// It goes, tells its memory anew and so on, once in so many steps.
    pub change_every: u64,
}

/// A matter of the seed's number, as [`SINGLED_OUT`].
const LIARS: u64 = 4;

impl Lying {
    fn draw(seed: u64) -> Option<Lying> {
        let mut random = Random::new(mix(seed ^ 0x11a2));
        let mut one_in = |count: u64| random.below(count) == 0;
        one_in(LIARS).then(|| Lying {
            scsi: one_in(2),
            direct: one_in(2),
            limit: one_in(3).then(|| LimitSpec {
                iops: 4_000,
                iops_burst: 4,
                ..LimitSpec::default()
            }),
            hangs_every: if one_in(2) { 0 } else { 200 },
            change_every: if one_in(2) { 60 } else { 400 },
        })
    }
}

/// How the client that lies is called, and what it has.
pub(crate) const LIAR: &str = "liar";

/// How clients order reservations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ordering {
    /// Instead of another command once in so many.
    pub every: u64,
    /// The type, mostly.
    pub kind: u8,
    /// They are to survive a power loss, mostly.
    pub aptpl: bool,
    /// As the nodes of a cluster do it, of which one shuts another one out: nothing else.
    pub fences: bool,
}

impl Ordering {
    fn draw() -> Ordering {
        let fences = sim::once_in(2);
        let kind = if fences { 5 } else { KINDS[sim::pick(KINDS.len())] };
        Ordering { every: 1 + sim::pick(8) as u64, kind, aptpl: sim::once_in(2), fences }
    }
}

/// What may be changed under clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    /// Their memory is told anew.
    Memory,
    /// A queue is disabled for a while.
    Enabled,
    /// High-water marks begin again.
    Marks,
    /// What their adapters may have.
    Bounds,
    /// They go, or their adapter is removed, and come again.
    Presence,
    /// Their memory is truncated under them, and they start again.
    Truncated,
    /// The unit is taken from one of them, or given again.
    Map,
    /// The unit is made anew.
    Unit,
    /// The volume gets another size.
    Size,
}

impl Changed {
    const ALL: [Changed; 9] = [
        Changed::Memory,
        Changed::Enabled,
        Changed::Marks,
        Changed::Bounds,
        Changed::Presence,
        Changed::Truncated,
        Changed::Map,
        Changed::Unit,
        Changed::Size,
    ];

    /// What happens.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Changed::Memory => "memory is told anew",
            Changed::Enabled => "a queue is disabled",
            Changed::Marks => "marks begin again",
            Changed::Bounds => "bounds change",
            Changed::Presence => "a client goes",
            Changed::Truncated => "a client is truncated",
            Changed::Map => "a LUN map changes",
            Changed::Unit => "a unit is made anew",
            Changed::Size => "a volume's size changes",
        }
    }

    fn draw(scsi: bool, read_only: bool) -> Vec<Changed> {
        let may = |changed: &Changed| match changed {
            Changed::Bounds => scsi,
            Changed::Truncated => sim::once_in(3),
            Changed::Map | Changed::Unit => scsi && sim::once_in(3),
            Changed::Size => !read_only && sim::once_in(3),
            _ => true,
        };
        Changed::ALL.into_iter().filter(may).collect()
    }
}

fn seldom(often: u64, rare: u64) -> u64 {
    match sim::pick(3) {
        0 => 0,
        1 => often,
        _ => rare,
    }
}

/// A limit on requests, that is soon reached: what may be served at once is less than what a run asks.
pub(crate) fn limit() -> LimitSpec {
    let (iops, iops_burst) = (1_000 << sim::pick(8), 1 + sim::pick(16) as u64);
    LimitSpec { iops, iops_burst, ..LimitSpec::default() }
}

/// Once in so many seeds a run is about who waits for whom. That is a matter of the seed's number, and takes nothing from what else is drawn.
const SINGLED_OUT: u64 = 8;

impl Drawn {
    pub(crate) fn draw(path: &Path, part: Part, seed: u64) -> Drawn {
        let mut drawn = Drawn::draw_all(path);
        if part == Part::Pool {
            drawn.put_into_pool(seed);
        }
        if mix(seed).is_multiple_of(SINGLED_OUT) {
            drawn.single_out();
        }
        drawn.liar = Lying::draw(seed);
        let mut random = Random::new(mix(seed ^ 0x6ee9));
        drawn.keep_fails = [0, 0, 8, 60][random.below(4) as usize];
        if drawn.death_every > 0 {
            drawn.keep_dies = [0, 0, 12, 4][random.below(4) as usize];
            if drawn.keep_dies > 0
                && let Some(orders) = &mut drawn.orders
            {
                // What such a death leaves unsettled is seen where the power fails after it.
                (orders.aptpl, drawn.power_every) = (true, 2);
            }
        }
        drawn.faults.workers = drawn.liar.is_some();
        drawn
    }

    /// One SCSI client is held back by a limit of its own, and nobody else waits for time to pass, unless it is for that one.
    fn single_out(&mut self) {
        let Some((_, port)) = &mut self.scsi else { return };
        *port = None;
        let few = LimitSpec { iops: 2_000, iops_burst: 2, ..LimitSpec::default() };
        self.limited = Some((0, few));
        (self.spec.limit, self.spec.delay) = (None, None);
        self.faults.passing = 0;
        if self.wait == WaitMode::Poll {
            self.wait = WaitMode::Interrupt;
        }
    }

    fn draw_all(path: &Path) -> Drawn {
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
        let scsi = !sim::once_in(3);
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
                sync_error: seldom(3, 12),
                passing: seldom(4, 40),
                takes_nothing: seldom(8, 80),
                poll_ends: seldom(4, 40),
                notify_lost: 0,
                workers: false,
            },
            scsi: scsi.then(|| {
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
            death_every: if read_only { 25 } else { seldom(150, 1_500) },
            move_every: seldom(100, 1_000),
            change_every: seldom(200, 2_000),
            power_every: seldom(2, 8),
            changes: Changed::draw(scsi, read_only),
            orders: (scsi && sim::once_in(3)).then(Ordering::draw),
            in_bytes: sim::once_in(4),
            keep_fails: 0,
            keep_dies: 0,
            liar: None,
            pool: None,
        }
    }

    /// Leaves out what a run is to be without.
    pub(crate) fn reduce(&mut self, less: &Less) {
        let unless = |name: &str, often: &mut u64| *often *= u64::from(less.has(name));
        unless("deaths", &mut self.death_every);
        unless("deaths", &mut self.keep_dies);
        unless("power", &mut self.power_every);
        unless("moves", &mut self.move_every);
        unless("changes", &mut self.change_every);
        self.orders = self.orders.filter(|_| less.has("orders"));
        unless("short", &mut self.faults.short);
        unless("passing", &mut self.faults.passing);
        unless("pauses", &mut self.faults.takes_nothing);
        unless("pauses", &mut self.faults.poll_ends);
        unless("errors", &mut self.faults.read_error);
        unless("errors", &mut self.faults.write_error);
        unless("errors", &mut self.faults.sync_error);
        unless("errors", &mut self.keep_fails);
        if !less.has("limits") {
            (self.spec.limit, self.limited) = (None, None);
        }
        if !less.has("delays") {
            self.spec.delay = None;
        }
        if !less.has("liars") {
            self.liar = None;
        }
        if let Some(liar) = &mut self.liar {
            liar.hangs_every *= u64::from(less.has("hangs"));
        }
        if !less.has("channels") {
            self.channels = 1;
        }
    }

    /// The adapter of the client that lies, and its volume.
    pub(crate) fn of_liar(
        &self,
        lying: &Lying,
        queues: u16,
        path: &Path,
    ) -> (AdapterSpec, VolumeSpec) {
        let cache = if lying.direct { CacheMode::Direct } else { CacheMode::Buffered };
        let file = FileSpec { cache, create: true, ..FileSpec::new(path) };
        let bytes = Some(liar::SECTORS * SECTOR);
        let mut volume = VolumeSpec { bytes, ..VolumeSpec::new(LIAR, file) };
        let device = if lying.scsi {
            let luns = [(0, LIAR.to_owned())].into();
            let target = TargetSpec { id: 0, wwpn: Some(0x5005_0768_0000_0001), port: 1, luns };
            let scsi = ScsiSpec::new(Initiator::Fc { wwpn: 0xc050_7600_0000_0bad }, vec![target]);
            let commands = self.scsi.as_ref().map(|(commands, _)| *commands);
            let commands = commands.unwrap_or_default();
            DeviceSpec::from(ScsiSpec { commands, limit: lying.limit, ..scsi })
        } else {
            volume.limit = lying.limit;
            DeviceSpec::from(BlockSpec::on(LIAR))
        };
        (AdapterSpec { queues, wait: self.wait, ..AdapterSpec::new(LIAR, "none", device) }, volume)
    }

    /// The adapter of a client.
    pub(crate) fn adapter(&self, number: usize, queues: u16) -> AdapterSpec {
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
