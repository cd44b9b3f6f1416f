//! A leg goes, misses what is written, and returns: what clients wait while it gets that, against what they waited before, in the same round.
//!
//! Clients have 3 requests under way, 30 % of them writes, which go to both legs: each disk, which works on four at a time, has about two, half of what it can. With 8 the disks have as
//! much as they can. Nothing of that is the server's CPU. Of the disk that goes every operation fails, as one whose path is gone.
//!
//! Each round has a pool of its own: a PV that is lost again and again is left alone for longer each time. A server that is asked how far it is takes a little CPU, so it is asked in all parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use partition::load::{LoadOptions, Order};
use rustix::io::Errno;
use testkit::Kind;

use super::{House, LU_MIB, MIB, disks, fill, slow, writing};
use crate::figure::{Figure, Round, Series};
use crate::served::Server;
use crate::stage::{self, Seat, Settled};

/// How long the disk fails; it is found to be well again up to ten seconds later.
const AWAY: Duration = Duration::from_secs(4);
/// It has to be over by then.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often the server is asked how far it is.
const LOOK: Duration = Duration::from_millis(250);
/// Of so little time nobody asks how much is left, and so much passes before it can be known.
const SHORT: Duration = Duration::from_secs(3);

/// All rounds.
pub(super) fn run(settled: &Settled, depth: u16) -> Result<Vec<Series>> {
    let mut all = [
        Series::new("both legs", "before a leg went"),
        Series::new("one leg", "while one was away"),
        Series::new("returning", "while it got what it missed"),
        Series::new("both again", "afterwards"),
    ];
    for number in 0..settled.rounds {
        for (series, round) in all.iter_mut().zip(round(settled, depth, number)?) {
            series.rounds.push(round);
        }
    }
    Ok(all.into())
}

/// How far it is that a PV gets what it missed.
#[derive(Debug, Clone, Copy)]
struct Far {
    at: Instant,
    planned: u64,
    left: Option<u64>,
}

/// What the server says: whether a PV is away, and how far one is that returns.
fn look(server: &Server) -> Result<(bool, Option<Far>)> {
    let pool = server.look("pools/p0")?;
    let space = &pool["space"];
    let pvs = space["pvs"].as_array().with_context(|| format!("no PVs in {pool}"))?;
    let is = |state: &str| pvs.iter().any(|pv| pv["state"] == state);
    let resync = &space["resync"];
    let far = || Far {
        at: Instant::now(),
        planned: resync["planned_bytes"].as_u64().unwrap_or(0),
        left: resync["left_s"].as_u64(),
    };
    Ok((is("away"), is("resyncing").then(far)))
}

/// A load until somebody says that it is over, who looks at the server now and then.
fn until(
    server: &Server,
    seat: &Seat,
    load: LoadOptions,
    mut over: impl FnMut(&Server) -> Result<bool> + Send,
) -> Result<Round> {
    let flag = Arc::new(AtomicBool::new(false));
    let load = LoadOptions { until: Some(Arc::clone(&flag)), duration: PATIENCE, ..load };
    std::thread::scope(|threads| {
        let looks = threads.spawn(move || {
            let ended = loop {
                std::thread::sleep(LOOK);
                match over(server) {
                    Ok(false) => {}
                    ended => break ended,
                }
            };
            flag.store(true, Relaxed);
            ended
        });
        let round = stage::driven(seat, &load);
        looks.join().expect("it does not panic")?;
        round
    })
}

/// What was written and not flushed before a PV went would be copied as well.
fn flush(settled: &Settled, seat: &Seat) -> Result<()> {
    let few = writing(settled, Order::Random, 4096, 1, 4);
    stage::driven(seat, &LoadOptions { flush_every: Some(1), ..few }).map(drop)
}

fn round(settled: &Settled, depth: u16, number: usize) -> Result<[Round; 4]> {
    let disks = disks(2);
    let house = House::new(settled)?;
    let mirror = disks[1].0.display().to_string();
    house.pool(&[&disks[0].0], LU_MIB * MIB, &[], &["--mirror", &mirror])?;
    let seat = house.lu_seat("an LU with two copies")?;
    fill(settled, &seat)?;
    flush(settled, &seat)?;
    slow(&disks);
    let server = &house.server;
    let load = |part: u64| LoadOptions {
        depth,
        read_percent: 70,
        length: Some(LU_MIB * MIB),
        seed: 10 * number as u64 + part,
        ..settled.load()
    };
    let whole = || {
        let begun = Instant::now();
        let length = settled.warm_up + 3 * settled.duration;
        move |server: &Server| {
            let (away, far) = look(server)?;
            ensure!(!away && far.is_none(), "a PV is away that nobody took away");
            Ok(begun.elapsed() >= length)
        }
    };
    let before = until(server, &seat, load(1), whole())?;
    flush(settled, &seat)?;
    // Either has a turn.
    let (goes, stays) = (&disks[1 - number % 2].1, &disks[number % 2].1);
    let fail = |errno: Option<Errno>| {
        let all = [Kind::Read, Kind::Write, Kind::Flush];
        all.into_iter().for_each(|kind| goes.fail(kind, errno.map(Errno::raw_os_error)));
    };
    fail(Some(Errno::IO));
    let (mut went, mut seen, lost) = (false, false, Instant::now());
    let one = until(server, &seat, load(2), |server| {
        let (away, far) = look(server)?;
        seen |= away;
        if !went && lost.elapsed() >= AWAY {
            ensure!(seen, "the PV is not away");
            went = true;
            fail(None);
        }
        if lost.elapsed() >= PATIENCE {
            bail!("the PV does not return");
        }
        Ok(went && far.is_some())
    })?;
    // The one that stayed is written to by clients alone, and that other as much; what it got beside is what is copied to it.
    let (copied, begun) =
        (i128::from(goes.written()) - i128::from(stays.written()), Instant::now());
    let mut told: Vec<Far> = Vec::new();
    let warm_up = Duration::ZERO;
    let mut returning = until(server, &seat, LoadOptions { warm_up, ..load(3) }, |server| {
        let (_, far) = look(server)?;
        told.extend(far);
        ensure!(begun.elapsed() < PATIENCE, "it is not over: {told:?}");
        Ok(far.is_none())
    })?;
    let over = Instant::now();
    let copied = i128::from(goes.written()) - i128::from(stays.written()) - copied;
    let planned = told.iter().map(|far| far.planned).max().unwrap_or(0);
    returning.insert(Figure::Ms, (over - begun).as_secs_f64() * 1e3);
    returning.insert(Figure::OfMissed, copied as f64 / planned as f64);
    if let Some(factor) = worst(&told, begun, over) {
        returning.insert(Figure::LeftFactor, factor);
    }
    let after = until(server, &seat, load(4), whole())?;
    // Whoever uses the disks ends before them.
    drop(house);
    Ok([before, one, returning, after])
}

/// How wrong the time was at most that was told to be left.
fn worst(told: &[Far], begun: Instant, over: Instant) -> Option<f64> {
    let long = |far: &&Far| far.at >= begun + SHORT && far.at + SHORT <= over;
    let factor = |far: &Far| {
        let (left, was) = (far.left? as f64, (over - far.at).as_secs_f64());
        Some((left / was).max(was / left))
    };
    told.iter().filter(long).filter_map(factor).max_by(f64::total_cmp)
}
