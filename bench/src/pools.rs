//! Storage pools: an LU against the volume that it is cut from, over several PVs, above a snapshot, and while it takes its space.
//!
//! Everything is in a tmpfs, so that what is measured is not the disk; where an LU is compared with a volume, behind loop devices, since a file in a tmpfs is read and written
//! by the channel itself and a PV never is. The server is `trunkline serve` with all of it on one CPU: one channel, and the pools' thread beside it.

mod returns;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use partition::load::{LoadOptions, Order};
use testkit::Loop;

use crate::cases::OURS;
use crate::figure::{Round, Series};
use crate::peer::{Aio, Node, Settings, StorageDaemon};
use crate::served::Server;
use crate::stage::{self, Contestant, Seat, Settled, Stage};

const MIB: u64 = 1 << 20;
/// A chunk of a pool.
const CHUNK: u64 = 64 * MIB;
/// Of an LU that is written whole, and of the volume beside it.
const LU_MIB: u64 = 1024;
/// Of the file that such an LU is cut from; the pool's own blocks and what is written above a snapshot have room as well.
const PV_MIB: u64 = 3072;
/// An LU of that many chunks is as large a table as a channel can be expected to look things up in.
const CHUNKS: u64 = 65_536;
/// First writes above a snapshot; the fill of a chunk's table of slots is in them, and what the page cache does is not.
const WRITES: u64 = 6_000;
/// What a disk with few heads does.
const SERVICE: Duration = Duration::from_millis(2);
const HEADS: usize = 4;
const SPREAD: usize = 4;
const SPREAD_PV_MIB: u64 = 4096;

/// A case of this module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pools {
    /// An LU that is written, against its device alone.
    Mapped { read_percent: u8 },
    /// The same, each request in a chunk of its own.
    Chunks,
    /// An LU on four slow PVs, against one of these.
    Spread,
    /// An LU of a mirrored pool on two slow PVs, against one of these; written before.
    Mirrored { read_percent: u8, depth: u16 },
    /// A mirrored LU on two slow PVs, one of which goes and returns.
    Returns { depth: u16 },
    /// Writes above a snapshot, each to a place that was not written since, and the same again.
    Snapshot(On),
    /// A thin LU that is written from its beginning to its end, against a thick one.
    Fill,
}

/// What PVs and images are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum On {
    /// Files in the tmpfs, which neither side's ring can read or write itself.
    Files,
    /// Block devices in memory, with direct I/O.
    Devices,
}

/// All cases: name, title, kind.
pub(crate) fn cases() -> Vec<(String, String, Pools)> {
    let case = |name: &str, title: &str, kind| (name.to_owned(), title.to_owned(), kind);
    vec![
        case(
            "pool-read",
            "4 KiB reads of an LU, and of the device alone",
            Pools::Mapped { read_percent: 100 },
        ),
        case(
            "pool-write",
            "4 KiB writes to an LU, and to the device alone",
            Pools::Mapped { read_percent: 0 },
        ),
        case(
            "pool-chunks",
            "4 KiB reads over 65,536 chunks, and of the device alone",
            Pools::Chunks,
        ),
        case("pool-spread", "an LU on four slow PVs, and one of these", Pools::Spread),
        case(
            "pool-mirror-write",
            "4 KiB writes to two slow PVs at a time, and to one of these",
            Pools::Mirrored { read_percent: 0, depth: 1 },
        ),
        case(
            "pool-mirror-read",
            "4 KiB reads of a mirrored LU on two slow PVs, and of one of these",
            Pools::Mirrored { read_percent: 100, depth: 64 },
        ),
        case(
            "pool-returns",
            "a mirrored LU on two slow PVs: while both are there, and while one gets what it missed",
            Pools::Returns { depth: 3 },
        ),
        case(
            "pool-returns-busy",
            "the same with PVs that have as much to do as they can",
            Pools::Returns { depth: 8 },
        ),
        case(
            "pool-snapshot",
            "4 KiB writes above a snapshot, and on qcow2",
            Pools::Snapshot(On::Files),
        ),
        case("pool-snapshot-device", "the same on block devices", Pools::Snapshot(On::Devices)),
        case("pool-fill", "a thin LU written in sequence, and a thick one", Pools::Fill),
    ]
}

/// Runs one.
pub(crate) fn run(stage: &mut Stage<'_>, kind: Pools) -> Result<Vec<Series>> {
    match kind {
        Pools::Mapped { read_percent } => mapped(stage, read_percent),
        Pools::Chunks => chunks(stage),
        Pools::Spread => spread(stage),
        Pools::Mirrored { read_percent, depth } => mirrored(stage, read_percent, depth),
        Pools::Returns { depth } => returns::run(stage.settled, depth),
        Pools::Snapshot(on) => snapshot(stage.settled, on),
        Pools::Fill => filled(stage.settled),
    }
}

/// Files in the tmpfs, and block devices over them.
struct Media {
    loops: Vec<Loop>,
    files: tempfile::TempDir,
}

impl Media {
    fn new(settled: &Settled) -> Result<Media> {
        let files = tempfile::Builder::new()
            .prefix("trunkline-bench")
            .tempdir_in(&settled.tmpfs)
            .context("cannot make a folder in the tmpfs")?;
        Ok(Media { loops: Vec::new(), files })
    }

    /// A file without content, or a device over one.
    fn make(&mut self, on: On, name: &str, bytes: u64) -> Result<PathBuf> {
        let path = self.files.path().join(name);
        let made = File::create(&path).and_then(|file| file.set_len(bytes));
        made.with_context(|| format!("cannot make {}", path.display()))?;
        if on == On::Files {
            return Ok(path);
        }
        let device = Loop::new(&path, 512);
        let path = device.path().to_owned();
        self.loops.push(device);
        Ok(path)
    }
}

/// A server, and what it is on; all of it ends with this, the server first.
struct House {
    server: Server,
    media: Media,
    /// For sockets, which have to have short paths.
    _folder: tempfile::TempDir,
}

impl House {
    fn new(settled: &Settled) -> Result<House> {
        let folder = stage::folder()?;
        let server = Server::start(&settled.server, folder.path(), &[settled.server_cpu])?;
        Ok(House { server, media: Media::new(settled)?, _folder: folder })
    }

    /// A pool on one PV, and an LU of it.
    fn lu(&mut self, on: On, pv_bytes: u64, lu_bytes: u64, words: &[&str]) -> Result<()> {
        let pv = self.media.make(on, "pv", pv_bytes)?;
        self.pool(&[&pv], lu_bytes, words, &[])
    }

    /// A pool on several PVs, with more said of it, and an LU of it, with more said of that.
    fn pool(&self, pvs: &[&Path], lu_bytes: u64, words: &[&str], more: &[&str]) -> Result<()> {
        let pvs: Vec<String> = pvs.iter().map(|pv| pv.display().to_string()).collect();
        let pvs = pvs.join(",");
        self.server.ask(&[&["pool", "create", "p0", "--pvs", &pvs], more].concat())?;
        let size = lu_bytes.to_string();
        self.server
            .ask(&[&["lu", "create", "lu0", "--pool", "p0", "--size", &size], words].concat())?;
        Ok(())
    }

    fn lu_seat(&self, about: &str) -> Result<Seat> {
        self.server.seat("lu0", "lu0", about)
    }

    /// The same without a pool.
    fn plain(&self, path: &Path) -> Result<Seat> {
        let path = path.display().to_string();
        self.server.ask(&["volume", "create", "plain", "--kind", "file", "--path", &path])?;
        self.server.seat("plain", "plain", "a volume without a pool")
    }
}

/// A load that writes, as fast as it comes.
fn writing(
    settled: &Settled,
    order: Order,
    block_bytes: u32,
    depth: u16,
    operations: u64,
) -> LoadOptions {
    LoadOptions {
        order,
        block_bytes,
        depth,
        read_percent: 0,
        operations: Some(operations),
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(120),
        ..settled.load()
    }
}

/// Writes all of a volume once, in sequence.
fn fill(settled: &Settled, seat: &Seat) -> Result<Round> {
    stage::driven(seat, &writing(settled, Order::Sequential, 1 << 20, 4, LU_MIB))
}

fn mapped(stage: &mut Stage<'_>, read_percent: u8) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let load = LoadOptions { read_percent, ..settled.load() };
    let mut house = House::new(settled)?;
    house.lu(On::Devices, PV_MIB * MIB, LU_MIB * MIB, &[])?;
    let plain = house.media.make(On::Devices, "plain", LU_MIB * MIB)?;
    let seats = [house.lu_seat("an LU, written whole")?, house.plain(&plain)?];
    for seat in &seats {
        fill(settled, seat)?;
    }
    stage.play(&[
        Contestant::driven("lu", &seats[0], load.clone()),
        Contestant::driven("device", &seats[1], load),
    ])
}

fn chunks(stage: &mut Stage<'_>) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let mut house = House::new(settled)?;
    let bytes = CHUNKS * CHUNK;
    // The pool's own blocks are one chunk of 8,192 and a few more.
    house.lu(On::Devices, bytes + 128 * CHUNK, bytes, &[])?;
    let plain = house.media.make(On::Devices, "plain", bytes)?;
    let seats = [house.lu_seat("an LU of 4 TiB")?, house.plain(&plain)?];
    let strided = |load: LoadOptions| LoadOptions { stride: Some(CHUNK), ..load };
    for seat in &seats {
        stage::driven(seat, &strided(writing(settled, Order::Sequential, 4096, 32, CHUNKS)))?;
    }
    stage.play(&[
        Contestant::driven("lu", &seats[0], strided(settled.load())),
        Contestant::driven("device", &seats[1], strided(settled.load())),
    ])
}

/// Disks that are as fast as the machine, yet.
fn disks(count: usize) -> Vec<(PathBuf, testkit::Disk)> {
    let disk = |_| {
        let disk = testkit::Disk::new(SPREAD_PV_MIB * MIB);
        (disk.path(), disk)
    };
    (0..count).map(disk).collect()
}

/// Now they have few heads.
fn slow(disks: &[(PathBuf, testkit::Disk)]) {
    for (_, disk) in disks {
        disk.depth(HEADS);
        disk.slow(SERVICE, SERVICE);
    }
}

fn spread(stage: &mut Stage<'_>) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let disks = disks(SPREAD + 1);
    let house = House::new(settled)?;
    let pvs: Vec<&Path> = disks[1..].iter().map(|(path, _)| path.as_path()).collect();
    house.pool(&pvs, LU_MIB * MIB, &[], &[])?;
    let seats = [house.lu_seat("an LU on four PVs")?, house.plain(&disks[0].0)?];
    fill(settled, &seats[0])?;
    slow(&disks);
    let load = LoadOptions { depth: 64, ..settled.load() };
    let series = stage.play(&[
        Contestant::driven("four PVs", &seats[0], load.clone()),
        Contestant::driven("one disk", &seats[1], load),
    ]);
    // Whoever uses the disks ends before them.
    drop(house);
    series
}

/// Each copy is on one disk. Chunks are written to for the first time before: that each of them is marked as written to is not what is measured.
fn mirrored(stage: &mut Stage<'_>, read_percent: u8, depth: u16) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let disks = disks(3);
    let house = House::new(settled)?;
    house.pool(
        &[&disks[1].0],
        LU_MIB * MIB,
        &[],
        &["--mirror", &disks[2].0.display().to_string()],
    )?;
    let seats = [house.lu_seat("an LU with two copies")?, house.plain(&disks[0].0)?];
    for seat in &seats {
        fill(settled, seat)?;
    }
    slow(&disks);
    let length = Some(LU_MIB * MIB);
    let load = LoadOptions { depth, read_percent, length, ..settled.load() };
    let series = stage.play(&[
        Contestant::driven("two legs", &seats[0], load.clone()),
        Contestant::driven("one disk", &seats[1], load),
    ]);
    // Whoever uses the disks ends before them.
    drop(house);
    series
}

/// The labels of a contestant's two passes.
fn passes(label: &str, about: &str) -> [Series; 2] {
    ["first", "again"].map(|pass| Series::new(format!("{label}, {pass}"), about))
}

fn snapshot(settled: &Settled, on: On) -> Result<Vec<Series>> {
    let image = "qemu-storage-daemon, iothread";
    let mut series = [
        passes(OURS, "an LU above a snapshot"),
        passes("plain", "an LU without a snapshot, written before"),
        passes("internal", &format!("{image}, qcow2 with an internal snapshot")),
        passes("overlay", &format!("{image}, qcow2 overlay with extended_l2, clusters of 128 KiB")),
    ];
    for _ in 0..settled.rounds {
        let rounds = [
            above_snapshot(settled, on, true)?,
            above_snapshot(settled, on, false)?,
            on_qcow2(settled, on, true)?,
            on_qcow2(settled, on, false)?,
        ];
        for (series, rounds) in series.iter_mut().flatten().zip(rounds.into_iter().flatten()) {
            series.rounds.push(rounds);
        }
    }
    Ok(series.into_iter().flatten().collect())
}

/// The same places twice.
fn twice(settled: &Settled, seat: &Seat) -> Result<[Round; 2]> {
    let load = LoadOptions { seed: 7, ..writing(settled, Order::Random, 4096, 16, WRITES) };
    Ok([stage::driven(seat, &load)?, stage::driven(seat, &load)?])
}

fn above_snapshot(settled: &Settled, on: On, made: bool) -> Result<[Round; 2]> {
    let mut house = House::new(settled)?;
    house.lu(on, PV_MIB * MIB, LU_MIB * MIB, &[])?;
    let seat = house.lu_seat("an LU")?;
    fill(settled, &seat)?;
    if made {
        house.server.ask(&["snapshot", "create", "s0", "--volumes", "lu0"])?;
    }
    twice(settled, &seat)
}

fn on_qcow2(settled: &Settled, on: On, internal: bool) -> Result<[Round; 2]> {
    // Dropped last: whoever uses it ends before it.
    let mut media = Media::new(settled)?;
    let folder = stage::folder()?;
    let base = media.make(on, "base", PV_MIB * MIB)?;
    let over = media.make(on, "over", PV_MIB * MIB)?;
    let image = |words: &[&str], path: &Path| -> Result<()> {
        let output = Command::new("qemu-img").args(words).arg(path).output().context("qemu-img")?;
        ensure!(
            output.status.success(),
            "qemu-img {words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    };
    let size = (LU_MIB * MIB).to_string();
    let daemon = |path: &Path| -> Result<(StorageDaemon, Seat)> {
        let (aio, node) = match on {
            On::Files => (None, Node::Qcow2(path.to_owned())),
            On::Devices => (Some(Aio::Native), Node::Qcow2Device(path.to_owned())),
        };
        let settings = Settings { iothread: true, aio };
        let daemon = StorageDaemon::start(folder.path(), settled.server_cpu, &node, settings, 1)?;
        let seat = Seat::new(daemon.socket.clone(), daemon.pid(), "qcow2".to_owned());
        Ok((daemon, seat))
    };
    image(&["create", "-q", "-f", "qcow2", "-o", &format!("size={size}")], &base)?;
    {
        let (_daemon, seat) = daemon(&base)?;
        fill(settled, &seat)?;
    }
    let top = if internal {
        image(&["snapshot", "-q", "-c", "s0"], &base)?;
        &base
    } else {
        let backing = base.display().to_string();
        let options = "extended_l2=on,cluster_size=128k";
        image(
            &["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", &backing, "-o", options],
            &over,
        )?;
        &over
    };
    let (_daemon, seat) = daemon(top)?;
    twice(settled, &seat)
}

fn filled(settled: &Settled) -> Result<Vec<Series>> {
    let mut all = [
        Series::new("thin", "an LU that takes its space as it is written"),
        Series::new("thick", "an LU whose space is set aside"),
        Series::new("again", "the thin LU, written once more"),
    ];
    for _ in 0..settled.rounds {
        for thick in [false, true] {
            let mut house = House::new(settled)?;
            let words: &[&str] = if thick { &["--thick"] } else { &[] };
            house.lu(On::Files, PV_MIB * MIB, LU_MIB * MIB, words)?;
            let seat = house.lu_seat("an LU")?;
            all[usize::from(thick)].rounds.push(fill(settled, &seat)?);
            if !thick {
                all[2].rounds.push(fill(settled, &seat)?);
            }
        }
    }
    Ok(all.into())
}
