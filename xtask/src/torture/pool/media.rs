//! What PVs are: files, loop devices over files, and disks that fail when they are told to.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use testkit::{Disk, Kind, Loop};

use crate::torture::kit::Dice;

use crate::torture::server::Server;
use anyhow::{Context as _, Result};

/// Ten chunks, of which the pool itself takes up to five.
const PV_BYTES: u64 = 10 << 26;

/// What a disk is asked for that may fail or hang.
const ASKED: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Flush];
/// How long a slow one takes for a request.
const SLOW: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(30));
/// What is compared is read in pieces of that.
const PAGE: u64 = 4096;
/// Clients write a header in each sector whose first 8 bytes end so, whatever the seed: nothing of the pool's own does.
const WRITTEN: [u8; 4] = [0x4c, 0x4b, 0x52, 0x54];

/// What this machine can.
#[derive(Debug, Clone, Copy)]
pub(super) struct Can {
    loops: bool,
    disks: bool,
}

impl Can {
    /// Tries it, and says what it cannot.
    pub(super) fn find() -> Can {
        let root = rustix::process::geteuid().is_root();
        let open = |path: &str| root && File::options().read(true).write(true).open(path).is_ok();
        let can = Can { loops: open("/dev/loop-control"), disks: open("/dev/fuse") };
        if !can.loops {
            println!("no loop devices here: PVs are files (root and /dev/loop-control are needed)");
        }
        if !can.disks {
            println!(
                "no disks that fail here: PVs go only while no data plane runs (root and /dev/fuse are needed)"
            );
        }
        can
    }
}

/// What a PV is on.
pub(super) enum Medium {
    File(PathBuf),
    Loop(Loop, PathBuf),
    Disk(Disk),
}

impl Medium {
    /// The next one: `number` is its own.
    pub(super) fn make(server: &Server, can: Can, number: u32, kind: usize) -> Result<Medium> {
        if kind == 0 && can.disks {
            return Ok(Medium::Disk(Disk::new(PV_BYTES)));
        }
        let path = server.path(&format!("pv{number}"));
        let made = File::create(&path).and_then(|file| file.set_len(PV_BYTES));
        made.with_context(|| format!("cannot make {}", path.display()))?;
        Ok(match kind == 1 && can.loops {
            true => Medium::Loop(Loop::new(&path, 512), path),
            false => Medium::File(path),
        })
    }

    pub(super) fn path(&self) -> PathBuf {
        match self {
            Medium::File(path) => path.clone(),
            Medium::Loop(device, _) => device.path().to_owned(),
            Medium::Disk(disk) => disk.path(),
        }
    }

    /// Whether it can be gone while it is open.
    pub(super) fn fails(&self) -> bool {
        matches!(self, Medium::Disk(_))
    }

    /// It takes everything that long, and answers nothing; then it goes on.
    pub(super) fn hang(&self, time: Duration) {
        if let Medium::Disk(disk) = self {
            ASKED.into_iter().for_each(|kind| disk.hold(kind));
            std::thread::sleep(time);
            ASKED.into_iter().for_each(|kind| disk.release(kind));
        }
    }

    /// It is slow from now on, or as it was.
    pub(super) fn slow(&self, slow: bool) {
        if let Medium::Disk(disk) = self {
            let (shortest, longest) = if slow { SLOW } else { Default::default() };
            disk.slow(shortest, longest);
        }
    }

    /// Changes up to so many of 4 KiB that clients wrote, by a bit each, without a word. How many those were.
    pub(super) fn flip(&self, dice: &mut Dice, most: u64) -> u64 {
        let Medium::Disk(disk) = self else { return 0 };
        let mut flipped = 0;
        for _ in 0..4096 {
            let at = dice.below((PV_BYTES / PAGE) as usize) as u64 * PAGE;
            if flipped < most && disk.content(at, 8)[4..] == WRITTEN {
                // Not in the header, so that it is found only where it is looked for.
                let place = at + 32 + dice.below(480) as u64;
                let byte = disk.content(place, 1)[0] ^ 1 << dice.below(8);
                disk.fill(place, &[byte]);
                flipped += 1;
            }
        }
        flipped
    }

    /// It fails, or is not there for who opens it; or is as before.
    pub(super) fn away(&self, away: bool) -> Result<()> {
        match self {
            Medium::Disk(disk) => {
                let errno = away.then(|| rustix::io::Errno::IO.raw_os_error());
                ASKED.into_iter().for_each(|kind| disk.fail(kind, errno));
                Ok(())
            }
            Medium::File(path) => {
                let other = path.with_extension("away");
                let (from, to) = if away { (path, &other) } else { (&other, path) };
                std::fs::rename(from, to).context("cannot move a file")
            }
            Medium::Loop(..) => Ok(()),
        }
    }
}

impl Drop for Medium {
    fn drop(&mut self) {
        if let Medium::File(path) | Medium::Loop(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}
