//! Network: frames of 64 bytes between two clients, beside OVS on DPDK; and what both take while nothing happens.
//!
//! One testpmd has both ports, by DPDK's virtio-user, and sends on by each what it gets by the other, so that frames go round. It has one CPU and the switch the other. Whoever
//! takes part is started for its round and ended with it: OVS has its CPU for itself, whether there are frames or not.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use protocol::message::{AdapterSpec, Request, SocketRole};
use spec::EthernetSpec;
use tools::ovs::Ovs;
use tools::testpmd::Testpmd;

use crate::cases::OURS;
use crate::figure::{Figure, Round, Series};
use crate::ours::{DataPlane, Plan};
use crate::process::{self, Process};
use crate::stage::{self, Settled};
use anyhow::{Context as _, Result, anyhow};

/// Label of OVS on DPDK.
const OVS: &str = "ovs-dpdk";
/// Descriptors of each ring.
const RING: u16 = 256;
/// Bursts of 32 frames that are sent by each port at the beginning.
const BURSTS: u32 = 4;
/// An idle switch is watched for so many times as long as idle adapters are.
const IDLE_TIMES: u32 = 3;
/// How long anything may take that testpmd is asked for.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// What a case measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Net {
    /// Frames that go round.
    Frames,
    /// Both ports connected, and no frame.
    Idle,
}

/// Names and titles of the cases.
pub(crate) fn cases() -> Vec<(String, String, Net)> {
    vec![
        (
            "net-frames".to_owned(),
            "frames of 64 bytes between two clients; the peer: OVS on DPDK".to_owned(),
            Net::Frames,
        ),
        (
            "net-idle".to_owned(),
            "a switch with two clients and no frames; the peer: OVS on DPDK".to_owned(),
            Net::Idle,
        ),
    ]
}

/// Plays both in turn.
pub(crate) fn run(settled: &Settled, what: Net) -> Result<Vec<Series>> {
    let cache = settled.disk.parent().unwrap_or(&settled.disk).to_owned();
    let testpmd = Testpmd::fetch(&cache.join("testpmd")).map_err(|error| anyhow!("{error}"))?;
    let ovs = Ovs::fetch(&cache.join("ovs")).map_err(|error| anyhow!("{error}"))?;
    let mut ours = Series::new(OURS, "a data plane with one channel, settings as users get them");
    let mut theirs = Series::new(OVS, "Debian's OVS, one PMD thread, no huge pages, action NORMAL");
    let rounds = if what == Net::Idle { 1 } else { settled.rounds };
    for _ in 0..rounds {
        let folder = stage::folder()?;
        let plane = start_ours(settled, folder.path())?;
        let round = measure(settled, &testpmd, folder.path(), plane.pid(), what);
        ours.rounds.push(round.context(OURS)?);
        drop(plane);
        let folder = stage::folder()?;
        let switch = start_ovs(settled, &ovs, folder.path())?;
        let round = measure(settled, &testpmd, folder.path(), switch.switch.pid(), what);
        theirs.rounds.push(round.context(OVS)?);
    }
    Ok(vec![ours, theirs])
}

pub(crate) fn socket(folder: &Path, port: u8) -> PathBuf {
    folder.join(format!("port{port}.sock"))
}

pub(crate) fn mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port + 1]
}

fn text_of(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// A data plane with two cards.
fn start_ours(settled: &Settled, folder: &Path) -> Result<DataPlane> {
    let mut plane =
        DataPlane::start(&settled.server, folder, &[settled.server_cpu], &Plan::null())?;
    for port in [0, 1] {
        let device = EthernetSpec::on("net", mac(port));
        let adapter = AdapterSpec {
            socket_mode: 0o600,
            socket_role: SocketRole::Client,
            queues: 2,
            queue_size: RING,
            ..AdapterSpec::new(format!("ent{port}"), socket(folder, port), device)
        };
        plane.done(&Request::PutAdapter(adapter))?;
    }
    Ok(plane)
}

/// OVS with a bridge of two ports.
struct Running {
    switch: Process,
    /// Ended after the switch.
    _database: Process,
}

fn start_ovs(settled: &Settled, ovs: &Ovs, folder: &Path) -> Result<Running> {
    let cpu = settled.server_cpu;
    let had = |result: Result<Command, String>| result.map_err(|error| anyhow!("{error}"));
    let mut database =
        Process::start(on_cpu(cpu, &had(ovs.database(folder))?), "ovsdb-server", folder)?;
    database.wait_until(folder, || UnixStream::connect(folder.join("db.sock")).is_ok())?;
    let set = |words: &[&str]| ovs.set(folder, words).map_err(|error| anyhow!("{error}"));
    set(&["--no-wait", "init"])?;
    let mask = format!("{:#x}", 1_u64 << cpu);
    set(&[
        "--no-wait",
        "set",
        "Open_vSwitch",
        ".",
        "other_config:dpdk-init=true",
        // Memory for two ports, and not for all that there could be.
        "other_config:per-port-memory=true",
        &format!("other_config:pmd-cpu-mask={mask}"),
        &format!("other_config:dpdk-lcore-mask={mask}"),
        "other_config:dpdk-extra=--no-huge --legacy-mem --no-shconf --no-pci --no-telemetry -m 256",
    ])?;
    let switch = in_namespace(&on_cpu(cpu, &had(ovs.switch(folder))?));
    let mut switch = Process::start(switch, "ovs-vswitchd", folder)?;
    switch.wait_until(folder, || folder.join("switch.ctl").exists())?;
    set(&["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"])?;
    for port in [0, 1] {
        let name = format!("v{port}");
        let path = format!("options:vhost-server-path={}", socket(folder, port).display());
        set(&[
            "add-port",
            "br0",
            &name,
            "--",
            "set",
            "Interface",
            &name,
            "type=dpdkvhostuserclient",
            &path,
        ])?;
    }
    Ok(Running { switch, _database: database })
}

/// A command on one CPU, with its environment.
fn on_cpu(cpu: usize, command: &Command) -> Command {
    let mut taskset = Command::new("taskset");
    taskset.arg("-c").arg(cpu.to_string());
    with(taskset, command)
}

/// A command in a network namespace of its own.
pub(crate) fn in_namespace(command: &Command) -> Command {
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    unshare.arg("--net");
    with(unshare, command)
}

/// A command that becomes another one.
fn with(mut first: Command, then: &Command) -> Command {
    first.arg("env");
    for (name, value) in then.get_envs() {
        let mut word = name.to_owned();
        word.push("=");
        word.push(value.unwrap_or_default());
        first.arg(word);
    }
    first.arg(then.get_program()).args(then.get_args());
    first
}

/// One round.
fn measure(
    settled: &Settled,
    program: &Testpmd,
    folder: &Path,
    server: u32,
    what: Net,
) -> Result<Round> {
    let mut testpmd = Generator::start(settled.client_cpu, program, folder)?;
    if what == Net::Idle {
        std::thread::sleep(settled.warm_up);
        let (before, since) = (process::usage(server)?, Instant::now());
        std::thread::sleep(settled.idle * IDLE_TIMES);
        let (after, watched) = (process::usage(server)?, since.elapsed());
        let share = (after.cpu_ns - before.cpu_ns) as f64 / watched.as_nanos() as f64;
        return Ok(Round::from([(Figure::CpuPercent, share * 100.0)]));
    }
    // Until the switch has both ports there is nobody to send to.
    testpmd.say(&format!("start tx_first {BURSTS}"))?;
    let end = Instant::now() + ANSWER_MAX;
    while testpmd.received()? == [0, 0] {
        if Instant::now() > end {
            return Err(anyhow!("no frame arrives\n{}", testpmd.said()));
        }
        testpmd.ask("stop", "Done.", 1)?;
        testpmd.say(&format!("start tx_first {BURSTS}"))?;
        std::thread::sleep(settled.warm_up);
    }
    std::thread::sleep(settled.warm_up);
    let (before, since, used) = (testpmd.received()?, Instant::now(), process::usage(server)?);
    std::thread::sleep(settled.duration);
    let (after, measured) = (testpmd.received()?, since.elapsed());
    let cpu_ns = process::usage(server)?.cpu_ns - used.cpu_ns;
    let frames = (after.iter().sum::<u64>() - before.iter().sum::<u64>()) as f64;
    if frames == 0.0 {
        return Err(anyhow!("no frame goes round\n{}", testpmd.said()));
    }
    Ok(Round::from([
        (Figure::FramesPerS, frames / measured.as_secs_f64()),
        (Figure::CpuPercent, cpu_ns as f64 / measured.as_nanos() as f64 * 100.0),
    ]))
}

/// A testpmd that takes commands, with a port for each socket.
struct Generator {
    child: Child,
    words: ChildStdin,
    log: PathBuf,
}

impl Generator {
    fn start(cpu: usize, program: &Testpmd, folder: &Path) -> Result<Generator> {
        let mut command = program.command().map_err(|error| anyhow!("{error}"))?;
        command.args(["--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m", "64"]);
        command.args(["--lcores", &format!("0@{cpu},1@{cpu}")]);
        for port in [0, 1] {
            let (mac, path) = (text_of(mac(port)), socket(folder, port));
            let device = format!(
                "net_virtio_user{port},queue_size={RING},path={},mac={mac},server=1",
                path.display()
            );
            command.args(["--vdev", &device]);
        }
        command.args(["--", "-i", "--nb-cores=1", "--total-num-mbufs=4096", "--no-flush-rx"]);
        for port in [0, 1] {
            command.arg(format!("--eth-peer={port},{}", text_of(mac(1 - port))));
        }
        let log = folder.join("testpmd.log");
        let out = fs::File::create(&log).context("cannot make a log file")?;
        let errors = out.try_clone().context("cannot make a log file")?;
        command.stdin(Stdio::piped()).stdout(out).stderr(errors);
        let mut child = command.spawn().context("cannot start testpmd")?;
        let words = child.stdin.take().ok_or_else(|| anyhow!("testpmd has no input"))?;
        let mut testpmd = Generator { child, words, log };
        testpmd.wait_for(0, "Checking link statuses", 1)?;
        Ok(testpmd)
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    fn say(&mut self, words: &str) -> Result<()> {
        writeln!(self.words, "{words}").context("testpmd takes no commands")
    }

    /// What it has said since then, once that has so many of these.
    fn wait_for(&mut self, since: usize, answer: &str, times: usize) -> Result<String> {
        let end = Instant::now() + ANSWER_MAX;
        loop {
            let said = self.said();
            let new = said.get(since..).unwrap_or_default();
            if new.matches(answer).count() >= times {
                return Ok(new.to_owned());
            }
            let ended = self.child.try_wait().context("cannot wait for testpmd")?;
            if ended.is_some() || Instant::now() > end {
                return Err(anyhow!("testpmd does not say {answer:?}:\n{said}"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn ask(&mut self, words: &str, answer: &str, times: usize) -> Result<String> {
        let since = self.said().len();
        self.say(words)?;
        self.wait_for(since, answer, times)
    }

    /// Frames that each port has got.
    fn received(&mut self) -> Result<[u64; 2]> {
        let said = self.ask("show port stats all", "Tx-pps:", 2)?;
        received(&said).ok_or_else(|| anyhow!("testpmd's statistics are not understood:\n{said}"))
    }
}

/// The frames of two ports in what testpmd prints of them.
fn received(said: &str) -> Option<[u64; 2]> {
    let mut counts = said.lines().filter_map(|line| {
        line.split_once("RX-packets:")?.1.split_whitespace().next()?.parse().ok()
    });
    Some([counts.next()?, counts.next()?])
}

impl Drop for Generator {
    fn drop(&mut self) {
        // Errors mean that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read_as_testpmd_prints_them() {
        let said = "  ####### NIC statistics for port 0  #######\n  RX-packets: 123        RX-missed: 0\n  \
                    TX-packets: 5\n  ####### NIC statistics for port 1  #######\n  RX-packets: 45 RX-missed: 0\n";
        assert_eq!(received(said), Some([123, 45]));
        assert_eq!(received("RX-packets: 1\n"), None);
    }

    #[test]
    fn a_command_that_becomes_another_one_has_its_environment() {
        let mut then = Command::new("program");
        then.arg("word").env("NAME", "a value");
        let all = on_cpu(1, &then);
        let words: Vec<_> = all.get_args().map(|word| word.to_string_lossy()).collect();
        assert_eq!(words, ["-c", "1", "env", "NAME=a value", "program", "word"]);
    }
}
