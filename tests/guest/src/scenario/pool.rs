//! What a guest sees of a mirrored thin LU, while all that is under it goes and comes, grows, fills up and dies: nothing.
//!
//! One program in the guest rewrites the same blocks round after round and compares each round with what it wrote. At every step the guest waits until
//! that has begun and ended a round more, so that what the host did happened under it, and does not wait for a time.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde_json::Value;
use testkit::Kind;

use super::fault::no_errors;
use crate::machine::{Disk, Guest};
use crate::scenario::World;
use crate::trunkline::Trunkline;
use anyhow::{Context as _, Result, anyhow, bail, ensure};

const LIMIT: Duration = Duration::from_secs(600);
const CHUNK: u64 = 64 << 20;
/// Of these the pool itself takes up to five.
const SMALL: u64 = 10;
/// Room for all that the guest ever writes.
const LARGE: u64 = 80;

/// `$1` is what a block holds beside its place. Each phase prints nothing, unless it fails.
const SCRIPT: &str = "
    pattern() {
        number=$1
        shift
        fio --thread --filename=/dev/vda --ioengine=libaio --direct=1 --verify=pattern --verify_fatal=1 \\
            --verify_pattern=0x$(printf %08x $number)%o --output-format=terse \"$@\" >/tmp/$name.out 2>&1 ||
            { head -c 2000 /tmp/$name.out >/tmp/failed; echo \"fio $*\" >>/tmp/failed; return 1; }
    }
    # What is written again and again: on both sides of the border of a chunk.
    again() {
        name=again
        pattern $1 --name=again --offset=126m --size=2m --numjobs=2 --offset_increment=2m --bs=4k \\
            --iodepth=16 --rw=randwrite --randrepeat=1 $2
    }
    # One part of 64 KiB in each chunk from $2 on, $3 of them.
    spread() {
        name=spread
        number=$1
        offset=$(($2 * 64))m
        count=$3
        shift 3
        pattern $number --name=spread --offset=$offset --size=$((count * 64))m --number_ios=$count --bs=64k \\
            --iodepth=1 --rw=write:65472k $*
    }
    writer() {
        while [ ! -e /tmp/over ] && [ ! -e /tmp/failed ]; do
            if [ -e /tmp/hold ]; then
                : >/tmp/held
                sleep 0.1
                continue
            fi
            rm -f /tmp/held
            round=$(($(cat /tmp/round) + 1))
            again $round --do_verify=1 || break
            echo $round >/tmp/next
            mv /tmp/next /tmp/round
        done
    }
    well() { [ ! -e /tmp/failed ] || fail \"$(cat /tmp/failed)\"; }
    reached() { well; [ $(cat /tmp/round) -ge $1 ]; }
    goes_on() { within 300 reached $(($(cat /tmp/round) + 2)); }
    is_held() { well; [ -e /tmp/held ]; }
    hold() { : >/tmp/hold; within 300 is_held; }
    release() { rm -f /tmp/hold; }
    zeros() { [ $(dd if=/dev/vda bs=64k skip=$(($1 * 1024)) count=1 iflag=direct | tr -d '\\0' | wc -c) = 0 ]; }

    echo 0 >/tmp/round
    spread 1000001 4 6 --do_verify=1 || well
    writer &
    writer=$!
    goes_on
    step leg-goes
    goes_on
    step leg-comes
    goes_on
    step pvs-come
    goes_on

    # What is written between a snapshot and its rollback was never there.
    hold
    frozen=$(cat /tmp/round)
    step snapshot
    release
    goes_on
    spread 1000002 4 7 --do_verify=1 || well
    hold
    step rollback
    again $frozen --verify_only || well
    spread 1000001 4 6 --verify_only || well
    zeros 10 || fail 'what was written after the snapshot is there after the rollback'
    step snapshot-goes
    release
    goes_on

    # More than there is room for: this one waits, and nobody else.
    spread 1000003 11 53 --do_verify=1 &
    spread=$!
    step full
    goes_on
    kill -0 $spread || { well; fail 'there was room for all'; }
    step extended
    wait $spread || well
    goes_on

    for death in data-plane control-plane both; do
        step $death-dies
        goes_on
    done
    : >/tmp/over
    wait $writer
    well
    again $(cat /tmp/round) --verify_only || well
    spread 1000001 4 6 --verify_only || well
    spread 1000003 11 53 --verify_only || well
    zeros 1 && zeros 3 && zeros 10 || fail 'something is where nothing was written'
    echo rounds=$(cat /tmp/round)";

/// A PV that goes while it is in use. Who is not root has none that fails: its file is moved away, which the next data plane sees.
enum Leg {
    Fails(testkit::Disk),
    Moves(PathBuf),
}

impl Leg {
    fn make(server: &Trunkline) -> Result<Leg> {
        if testkit::is_root("a PV that fails under guests (its file is moved away instead)") {
            return Ok(Leg::Fails(testkit::Disk::new(SMALL * CHUNK)));
        }
        pv(server, "leg", SMALL).map(Leg::Moves)
    }

    fn path(&self) -> PathBuf {
        match self {
            Leg::Fails(disk) => disk.path(),
            Leg::Moves(path) => path.clone(),
        }
    }

    fn go(&self, server: &mut Trunkline) -> Result<()> {
        match self {
            Leg::Fails(disk) => self.fail(disk, Some(Errno::IO.raw_os_error())),
            Leg::Moves(path) => {
                fs::rename(path, path.with_extension("away")).context("cannot move a PV")?;
                server.crash_data_plane()?;
            }
        }
        Ok(())
    }

    fn come(&self) -> Result<()> {
        match self {
            Leg::Fails(disk) => self.fail(disk, None),
            Leg::Moves(path) => {
                fs::rename(path.with_extension("away"), path).context("cannot move a PV")?;
            }
        }
        Ok(())
    }

    fn fail(&self, disk: &testkit::Disk, errno: Option<i32>) {
        [Kind::Read, Kind::Write, Kind::Flush].into_iter().for_each(|kind| disk.fail(kind, errno));
    }
}

fn pv(server: &Trunkline, name: &str, chunks: u64) -> Result<PathBuf> {
    let path = server.path(name);
    let made = File::create(&path).and_then(|file| file.set_len(chunks * CHUNK));
    made.with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}

fn pool(server: &Trunkline) -> Result<Value> {
    let shown = server.order("pool show p0 -o json")?;
    serde_json::from_str(&shown).context("`pool show -o json` is not JSON")
}

/// Waits until the pool is so. A server that was just killed may not answer yet.
fn until(server: &Trunkline, what: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
    let deadline = Instant::now() + LIMIT / 2;
    loop {
        match pool(server) {
            Ok(pool) if is(&pool) => return Ok(()),
            Err(error) if Instant::now() > deadline => return Err(error),
            _ => ensure!(Instant::now() < deadline, "{what} did not come"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// All PVs are there, and have what they are to have.
fn whole(pool: &Value) -> bool {
    let space = &pool["space"];
    pool["state"] == "open" && ["balance", "resync"].iter().all(|moves| space[moves].is_null())
}

fn writes_wait(pool: &Value) -> bool {
    pool["space"]["paused"].as_u64().is_some_and(|paused| paused > 0)
}

/// Two PVs more, one in each failure group.
fn extend(server: &Trunkline, names: [&str; 2], chunks: u64) -> Result<()> {
    for (name, group) in names.into_iter().zip(["Default", "Mirror"]) {
        let path = pv(server, name, chunks)?;
        server.order(&format!("pv add p0 {} --failgrp {group}", path.display()))?;
    }
    Ok(())
}

fn at(server: &mut Trunkline, leg: &Leg, step: &str) -> Result<()> {
    match step {
        "leg-goes" => {
            leg.go(server)?;
            until(server, "the loss of a PV", |pool| pool["state"] == "degraded")
        }
        "leg-comes" => {
            leg.come()?;
            until(server, "the return of a PV", whole)
        }
        "pvs-come" => {
            extend(server, ["e", "f"], SMALL)?;
            until(server, "an end of what moves to the new PVs", |pool| {
                whole(pool) && pool["space"]["pvs"].as_array().is_some_and(|pvs| pvs.len() == 6)
            })
        }
        "snapshot" => server.order("snapshot create s0 --volumes lu0").map(drop),
        "rollback" => server.order("snapshot rollback s0 --force").map(drop),
        "snapshot-goes" => server.order("snapshot remove s0").map(drop),
        "full" => {
            until(server, "a full pool", writes_wait)?;
            // What waits for space does so again after it was asked for anew.
            server.crash_everything()?;
            until(server, "a full pool again", writes_wait)
        }
        "extended" => {
            extend(server, ["g", "h"], LARGE)?;
            until(server, "writes that go on", |pool| pool["space"]["paused"] == 0)
        }
        "data-plane-dies" => server.crash_data_plane(),
        "control-plane-dies" => server.crash_control_plane(),
        "both-dies" => server.crash_everything(),
        other => bail!("unexpected step {other}"),
    }
}

/// The LU of a guest is on two failure groups; what happens to them is in the script.
pub(crate) fn mirror(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    let leg = Leg::make(&server)?;
    let [a, b, c] = [pv(&server, "a", SMALL)?, pv(&server, "b", SMALL)?, pv(&server, "c", SMALL)?]
        .map(|path| path.display().to_string());
    let d = leg.path();
    server.order(&format!("pool create p0 --pvs {a},{b} --mirror {c},{}", d.display()))?;
    server.order("lu create lu0 --pool p0 --size 4GiB")?;
    let socket = server.adapter("vhost0", "lu0", &["--queues", "2"])?;
    let guest = Guest::new(&world.kit).disk(Disk::new(socket, 2).reconnecting());
    let mut times = Vec::new();
    let outcome = guest.run_with(SCRIPT, LIMIT, |step, _| {
        let began = Instant::now();
        let done = at(&mut server, &leg, step);
        times.push(format!("{step} {:.1} s", began.elapsed().as_secs_f64()));
        done.with_context(|| format!("at the step {step}"))
    });
    let shown = || {
        let pool = server.order("pool show p0").unwrap_or_else(|error| format!("{error:#}"));
        format!("steps: {}\n--- pool ---\n{pool}\n{}", times.join(", "), server.log())
    };
    let transcript = outcome.and_then(|transcript| transcript.ok());
    let transcript = transcript.map_err(|error| anyhow!("{error:#}\n{}", shown()))?;
    no_errors(&transcript)?;
    let rounds: u64 = transcript.value("rounds")?.parse().context("the number of rounds")?;
    ensure!(rounds >= 20, "{rounds} rounds\n{}", transcript.report());
    until(&server, "an end of what moves", whole)
        .map_err(|error| anyhow!("{error:#}\n{}", shown()))?;
    let scrubbed = server.order("pool scrub p0")?;
    ensure!(scrubbed.contains("nothing is wrong"), "{scrubbed}\n{}", shown());
    println!("{rounds} rounds; steps: {}", times.join(", "));
    Ok(())
}
