//! A stream of uncut TCP frames of 64 KB from one client to another, beside a bridge of the kernel with two TAPs: what arrives for each second of CPU time of generator, server
//! and softirq together.
//!
//! ```text
//! trunkline   generator ── card ──► channel ──► card ── generator
//! bridge      generator ── write ── TAP ── bridge ── TAP ── read ── generator
//! ```
//!
//! One thread sends and receives. It neither makes nor looks at what follows the head of a frame, so that what is measured is the way between. Beside our server it sleeps while it
//! has nothing to do: time that it would spend looking is nobody's cost. The kernel does all of its part within the generator's system calls, in a network namespace, where this program
//! is started again.

use std::fs;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use partition::net::HEADER_BYTES;
use partition::traffic::{HEADERS, Kind};
use protocol::message::{AdapterSpec, Request};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use spec::EthernetSpec;

use crate::cases::OURS;
use crate::figure::{Figure, Round, Series};
use crate::net::{in_namespace, mac, socket};
use crate::net_neighbours::{Party, RING};
use crate::ours::{DataPlane, Plan};
use crate::process;
use crate::stage::{self, Settled};
use anyhow::{Context as _, Result, anyhow, ensure};

/// Label of the kernel's bridge.
const BRIDGE: &str = "bridge";
/// Bytes of a packet: 45 segments, for an MTU of 1500.
const PACKET: u32 = 45 * 1448 + HEADERS;
const MTU: u16 = 1500;
/// Frames on their way to our server: 4 MiB, so that it need not wait for the generator.
const WINDOW: u16 = 64;
/// Frames that are written before they are read, of the bridge: it is quickest so, since they stay in the CPU's cache.
const BURST: u16 = 8;
/// Bytes of a buffer, and how many there are each way: for all that may come between two looks, and few more, since all are used in turn.
const BUFFER_BYTES: u32 = 66_048;
const BUFFERS: u16 = WINDOW + 8;
/// How long the generator sleeps when nothing came: as long as a few frames take.
const NAP: Duration = Duration::from_micros(20);
/// Within which time the first frame has to arrive.
const FIRST: Duration = Duration::from_secs(5);
const TAPS: [&str; 2] = ["tap0", "tap1"];

/// Plays both in turn.
pub(crate) fn run(settled: &Settled) -> Result<Vec<Series>> {
    let mut ours = Series::new(OURS, "a data plane with one channel, settings as users get them");
    let mut theirs = Series::new(BRIDGE, "a bridge of the kernel with two TAPs");
    for _ in 0..settled.rounds {
        let folder = stage::folder()?;
        let round = measure_ours(settled, folder.path());
        ours.rounds.push(round.context(OURS)?);
        let round = measure_bridge(settled);
        theirs.rounds.push(round.context(BRIDGE)?);
    }
    Ok(vec![ours, theirs])
}

/// What was carried, and what it took.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Carried {
    frames: u64,
    /// Of all that took part, and of the server alone.
    cpu_ns: u64,
    server_ns: u64,
    passed_ns: u64,
}

impl Carried {
    fn round(self) -> Round {
        let Carried { frames, cpu_ns, server_ns, passed_ns } = self;
        let (frames, cpu, passed) = (frames as f64, cpu_ns as f64 / 1e9, passed_ns as f64 / 1e9);
        Round::from([
            (Figure::FramesPerS, frames / passed),
            (Figure::ServerCpuUs, server_ns as f64 / 1e3 / frames),
            (Figure::CpuPercent, cpu / passed * 100.0),
            (Figure::MibPerCpuS, frames * f64::from(PACKET) / f64::from(1 << 20) / cpu),
        ])
    }
}

/// Runs a generator for so long after a warm-up; what a turn gives are the frames that have come.
fn carry(
    (warm_up, duration): (Duration, Duration),
    server_ns: impl Fn() -> Result<u64>,
    mut turn: impl FnMut() -> Result<u64>,
) -> Result<Carried> {
    let begun = Instant::now();
    while turn()? == 0 {
        ensure!(begun.elapsed() < FIRST, "no frame arrives");
    }
    let mut run = |time: Duration| -> Result<(u64, Duration)> {
        let (since, mut frames) = (Instant::now(), 0);
        loop {
            frames += turn()?;
            let passed = since.elapsed();
            if passed >= time {
                return Ok((frames, passed));
            }
        }
    };
    run(warm_up)?;
    let used = || Ok::<_, anyhow::Error>([server_ns()?, thread_ns(), softirq_ns()?]);
    let before = used()?;
    let (frames, passed) = run(duration)?;
    let after = used()?;
    let all = |used: [u64; 3]| used.iter().sum::<u64>();
    let (cpu_ns, server_ns) = (all(after) - all(before), after[0] - before[0]);
    Ok(Carried { frames, cpu_ns, server_ns, passed_ns: passed.as_nanos() as u64 })
}

fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// What the kernel has done in interrupts, on all CPUs: nobody's own time.
fn softirq_ns() -> Result<u64> {
    let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    let ticks = interrupts(&stat).context("/proc/stat is not understood")?;
    Ok(ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second())
}

fn interrupts(stat: &str) -> Option<u64> {
    let mut numbers = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().skip(5);
    let mut next = || numbers.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

fn measure_ours(settled: &Settled, folder: &Path) -> Result<Round> {
    let cpus = [settled.server_cpu];
    let mut plane = DataPlane::start(&settled.server, folder, &cpus, &Plan::null())?;
    for port in [0, 1] {
        let adapter = AdapterSpec {
            socket_mode: 0o600,
            queues: 2,
            queue_size: RING,
            ..AdapterSpec::new(
                format!("ent{port}"),
                socket(folder, port),
                EthernetSpec::on("net", mac(port)),
            )
        };
        plane.done(&Request::PutAdapter(adapter))?;
    }
    let party = |port| Party::new(folder, port, (BUFFERS, BUFFER_BYTES), 0);
    let [mut sender, mut receiver] = [party(0)?, party(1)?];
    receiver.pair.rx.post(usize::MAX, BUFFER_BYTES)?;
    sender.pair.rx.post(usize::MAX, BUFFER_BYTES)?;
    // Who has sent is known, and is sent to.
    let macs = [mac(0), mac(1)];
    let hello = Kind::new(macs, 1, HEADERS, u32::from(MTU));
    receiver.pair.tx.add_head(&hello.header, &hello.head, hello.bytes)?;
    receiver.pair.tx.publish()?;
    let data = Kind::new(macs, 0, PACKET, u32::from(MTU));
    let pid = plane.pid();
    let carried = carry(
        (settled.warm_up, settled.duration),
        || Ok(process::usage(pid)?.cpu_ns),
        || {
            let (rx, tx) = (&mut receiver.pair.rx, &mut sender.pair.tx);
            let mut came = 0;
            while let Some(bytes) = rx.skim()? {
                ensure!(bytes == data.bytes, "a frame of {bytes} bytes arrived");
                came += 1;
            }
            if came > 0 {
                rx.post(usize::MAX, BUFFER_BYTES)?;
            }
            tx.reap()?;
            let before = tx.outstanding();
            while tx.outstanding() < usize::from(WINDOW)
                && tx.add_head(&data.header, &data.head, data.bytes)?
            {}
            if tx.outstanding() > before {
                tx.publish()?;
            }
            if came == 0 {
                std::thread::sleep(NAP);
            }
            Ok(came)
        },
    )?;
    Ok(carried.round())
}

/// Starts this program in a network namespace of its own, on the client's CPU.
fn measure_bridge(settled: &Settled) -> Result<Round> {
    let program = std::env::current_exe().context("this program has no path")?;
    let mut play = process::on_cpu(settled.client_cpu, program);
    play.args(["--bridge", &settled.duration.as_secs_f64().to_string()]);
    let mut command = in_namespace(&play);
    let output = command.output().context("cannot run unshare")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    let carried: Carried =
        serde_json::from_slice(&output.stdout).context("what it prints is not understood")?;
    Ok(carried.round())
}

/// Makes a bridge with two TAPs where it is, and prints what is carried over it.
pub(crate) fn play_bridge(duration: Duration) -> Result<()> {
    ip("link add br0 type bridge")?;
    ip("link set br0 up")?;
    let open = |tap| memory::tap::open(tap, MTU).with_context(|| format!("cannot open {tap}"));
    let taps = [open(TAPS[0])?, open(TAPS[1])?];
    for tap in TAPS {
        ip(&format!("link set {tap} master br0"))?;
    }
    let macs = [mac(0), mac(1)];
    let payload = vec![0; BUFFER_BYTES as usize];
    let mut buffer = vec![0; BUFFER_BYTES as usize];
    let hello = Kind::new(macs, 1, HEADERS, u32::from(MTU));
    send(&taps[1], &hello, &payload)?;
    let data = Kind::new(macs, 0, PACKET, u32::from(MTU));
    let carried = carry(
        (duration / 10, duration),
        || Ok(0),
        || {
            for _ in 0..BURST {
                send(&taps[0], &data, &payload)?;
            }
            let mut came = 0;
            loop {
                match rustix::io::read(&taps[1], &mut buffer[..]) {
                    // Others are the kernel's own.
                    Ok(bytes) => came += u64::from(bytes == HEADER_BYTES + data.bytes as usize),
                    Err(Errno::AGAIN) => return Ok(came),
                    Err(error) => return Err(anyhow!("cannot read {}: {error}", TAPS[1])),
                }
            }
        },
    )?;
    println!("{}", serde_json::to_string(&carried).context("it has no text")?);
    Ok(())
}

fn send(tap: &OwnedFd, kind: &Kind, payload: &[u8]) -> Result<()> {
    let rest = &payload[..kind.bytes as usize - kind.head.len()];
    let parts = [&kind.header[..], &kind.head, rest].map(IoSlice::new);
    rustix::io::writev(tap, &parts).context("cannot write a frame").map(drop)
}

fn ip(words: &str) -> Result<()> {
    let output = Command::new("ip").args(words.split(' ')).output().context("cannot run ip")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {words}: {said}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_the_sixth_and_seventh_number() {
        let stat = "cpu  1 2 3 4 5 60 7 8 0 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n";
        assert_eq!(interrupts(stat), Some(67));
        assert_eq!(interrupts("cpu  1 2"), None);
    }

    #[test]
    fn a_second_of_one_cpu_is_a_second() {
        let carried = Carried {
            frames: 1 << 20,
            cpu_ns: 2_000_000_000,
            server_ns: 1_000_000_000,
            passed_ns: 1_000_000_000,
        };
        let round = carried.round();
        assert_eq!(round[&Figure::CpuPercent], 200.0);
        assert_eq!(round[&Figure::MibPerCpuS], f64::from(PACKET) / 2.0);
    }
}
