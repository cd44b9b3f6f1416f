//! DPDK's testpmd as the client of network cards, by its driver of virtio-user.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use super::net::wait;

/// Descriptors of each of its rings.
pub const RING: u16 = 256;

/// A testpmd that takes commands.
pub struct Testpmd {
    child: Child,
    /// All that it has printed.
    said: Arc<Mutex<String>>,
    ports: usize,
}

/// What it has counted of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    pub received: u64,
    pub sent: u64,
}

/// Where a ring stands, as its memory says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stands {
    pub available: u16,
    pub used: u16,
}

impl Stands {
    /// Descriptors that the device has.
    pub fn out(self) -> u16 {
        self.available.wrapping_sub(self.used)
    }
}

impl Testpmd {
    /// Starts it with a port for each device, such as `path=/tmp/ent1.sock`.
    #[track_caller]
    pub fn start(devices: &[String], more: &[&str]) -> Testpmd {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let program = tools::testpmd::Testpmd::fetch(&target.join("testpmd")).unwrap();
        let mut command = program.command().unwrap();
        // Memory of 4 KiB pages in a memfd, no files of its own, and two threads that the scheduler places.
        let cpus = cpus();
        command.args(["--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m", "64"]);
        command.args(["--lcores", &format!("0@({cpus}),1@({cpus})")]);
        command.args(["--log-level", "pmd.net.virtio.init:debug"]);
        for (number, device) in devices.iter().enumerate() {
            let device = format!("net_virtio_user{number},queue_size={RING},{device}");
            command.args(["--vdev", &device]);
        }
        command
            .args(["--", "-i", "--nb-cores=1", "--no-flush-rx", "--total-num-mbufs=4096"])
            .args(more);
        // It ends with the pipe to it.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        read(child.stdout.take().unwrap(), &said);
        read(child.stderr.take().unwrap(), &said);
        Testpmd { child, said, ports: devices.len() }
    }

    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    #[track_caller]
    pub fn say(&mut self, command: &str) {
        assert_eq!(self.child.try_wait().unwrap(), None, "it has ended\n{}", self.said());
        writeln!(self.child.stdin.as_ref().unwrap(), "{command}").unwrap();
    }

    /// Says something and waits until it has answered with so many of these.
    #[track_caller]
    fn ask(&mut self, command: &str, answer: &str, times: usize) -> String {
        let before = self.said().len();
        self.say(command);
        wait(command, || {
            let said = self.said()[before..].to_owned();
            (said.matches(answer).count() >= times).then_some(said)
        })
    }

    /// Waits until it has all its ports.
    #[track_caller]
    pub fn ready(&mut self) {
        wait("testpmd to have its ports", || {
            assert_eq!(self.child.try_wait().unwrap(), None, "it has ended\n{}", self.said());
            self.said().contains("Checking link statuses").then_some(())
        });
    }

    /// Forwards no more.
    #[track_caller]
    pub fn stop(&mut self) {
        self.ask("stop", "Done.", 1);
    }

    /// What it has counted, port by port.
    #[track_caller]
    pub fn counted(&mut self) -> Vec<Counted> {
        let said = self.ask("show port stats all", "Tx-pps:", self.ports);
        let number = |line: &str, word: &str| -> Option<u64> {
            line.split_once(word)?.1.split_whitespace().next()?.parse().ok()
        };
        let all = |word: &str| -> Vec<u64> {
            said.lines().filter_map(|line| number(line, word)).collect()
        };
        let pairs = all("RX-packets:").into_iter().zip(all("TX-packets:"));
        let counted: Vec<_> = pairs.map(|(received, sent)| Counted { received, sent }).collect();
        assert_eq!(counted.len(), self.ports, "{said}");
        counted
    }

    /// Where the rings of a port with one pair of queues stand: that for receiving, and that for sending.
    #[track_caller]
    pub fn rings(&self, port: usize) -> [Stands; 2] {
        let said = self.said();
        let addresses = said.lines().filter_map(|line| line.split_once("vq_ring_virt_mem: 0x"));
        let address = |(_, hex): (&str, &str)| u64::from_str_radix(hex.trim(), 16).unwrap();
        let addresses: Vec<u64> = addresses.map(address).collect();
        assert_eq!(addresses.len(), 2 * self.ports, "one pair for each port\n{said}");
        let memory = File::open(format!("/proc/{}/mem", self.child.id())).unwrap();
        let index = |at| {
            let mut bytes = [0; 2];
            memory.read_exact_at(&mut bytes, at).unwrap();
            u16::from_le_bytes(bytes)
        };
        [0, 1].map(|queue| {
            let table = addresses[2 * port + queue];
            let available = table + 16 * u64::from(RING);
            // The used ring begins with a page.
            let used = (available + 4 + 2 * u64::from(RING)).next_multiple_of(4096);
            Stands { available: index(available + 2), used: index(used + 2) }
        })
    }

    /// Ends it in order.
    #[track_caller]
    pub fn quit(&mut self) {
        self.say("quit");
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}\n{}", self.said());
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.said();
            let lines: Vec<_> = said.lines().collect();
            eprintln!("testpmd said last:\n{}", lines[lines.len().saturating_sub(60)..].join("\n"));
        }
        // Errors mean that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Takes down what it prints.
fn read(from: impl Read + Send + 'static, said: &Arc<Mutex<String>>) {
    let said = Arc::clone(said);
    std::thread::spawn(move || {
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            said.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
    });
}

/// The CPUs that this process may use.
fn cpus() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.expect("the kernel tells it").trim().to_owned()
}
