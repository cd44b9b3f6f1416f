//! Partners of two servers whose tokens are leases in a real etcd, in a network namespace of the test's own: whatever is killed or stopped, the world outside is
//! bridged once at most, and by whoever is left.

use super::*;
use partition::net::Pair;
use partition::session::Session;
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

#[test]
fn partners_of_two_servers_bridge_once_at_most_whatever_dies() {
    testkit::in_network_namespace("tokens::in_a_namespace");
}

struct Etcd {
    folder: tempfile::TempDir,
    child: Child,
}

const TOKEN: &str = "etcd:http://127.0.0.1:2379/trunkline/net0";

impl Etcd {
    fn run(folder: &tempfile::TempDir) -> Child {
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(folder.path().join("data"));
        for (option, port) in [("client", 2379), ("peer", 2380)] {
            command.arg(format!("--listen-{option}-urls=http://127.0.0.1:{port}"));
        }
        command.args(["--advertise-client-urls=http://127.0.0.1:2379"]);
        command.args(["--initial-advertise-peer-urls=http://127.0.0.1:2380"]);
        command.args(["--initial-cluster=default=http://127.0.0.1:2380"]);
        let mut options = std::fs::File::options();
        let log = options.create(true).append(true).open(folder.path().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().expect("etcd of etcd-server")
    }

    fn start() -> Etcd {
        let folder = tempfile::tempdir().unwrap();
        let child = Etcd::run(&folder);
        Etcd { folder, child }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn again(&mut self) {
        self.child = Etcd::run(&self.folder);
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const MAGIC: &[u8] = b"number ";

/// Something that runs until it is asked for what it has.
struct Thread<T> {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Thread<T> {
    fn start(body: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Thread<T> {
        let stop: Arc<AtomicBool> = Arc::default();
        let its = Arc::clone(&stop);
        Thread { stop, thread: std::thread::spawn(move || body(&its)) }
    }

    fn end(self) -> T {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap()
    }
}

/// The world outside: broadcasts with numbers, each sent once.
fn world() -> Thread<u32> {
    let socket = UdpSocket::bind("10.9.0.1:9").unwrap();
    socket.set_broadcast(true).unwrap();
    Thread::start(move |stop| {
        let mut number = 0u32;
        while !stop.load(Relaxed) {
            number += 1;
            let _ = socket.send_to(&[MAGIC, &number.to_be_bytes()].concat(), "10.9.0.255:9");
            std::thread::sleep(Duration::from_millis(1));
        }
        number
    })
}

/// The numbers of all frames that come to a guest.
fn listen((session, mut pairs): (Session, Vec<Pair>)) -> Thread<Vec<u32>> {
    Thread::start(move |stop| {
        let _session = session;
        let rx = &mut pairs[0].rx;
        let mut numbers = Vec::new();
        while !stop.load(Relaxed) {
            while let Some(received) = rx.receive().unwrap() {
                let frame = &received.frame;
                let at = frame.windows(MAGIC.len()).position(|it| it == MAGIC);
                let number = at.and_then(|at| frame[at + MAGIC.len()..].first_chunk());
                numbers.extend(number.copied().map(u32::from_be_bytes));
            }
            // Nobody answers one whose data plane has died.
            let _ = rx.post(usize::MAX, 4096);
            std::thread::sleep(Duration::from_millis(1));
        }
        numbers
    })
}

/// One of the two servers, with all that has come to its guests.
struct Side {
    server: Server,
    listening: Option<Thread<Vec<u32>>>,
    came: Vec<u32>,
}

impl Side {
    fn start(uplink: &str, priority: u8) -> Side {
        let server = Server::start(&[]);
        server.ok("network create net0");
        server.ok("adapter create ent0 --kind ethernet --network net0");
        server.ok(&format!("uplink create {uplink}"));
        server.ok("trunk create ent5 --network net0");
        server.ok(&format!(
            "sea create ent6 --real-adapter {uplink} --virt-adapters ent5 --pvid-adapter ent5 \
             --pvid 1 --token {TOKEN} --ha-mode auto --priority {priority}"
        ));
        server.ok(&format!("uplink wait {uplink}"));
        ip(&format!("link set {uplink} master br0"));
        let mut side = Side { server, listening: None, came: Vec::new() };
        side.listen();
        side
    }

    /// With another guest, for another data plane.
    fn listen(&mut self) {
        self.came.extend(self.listening.take().into_iter().flat_map(Thread::end));
        self.listening = Some(listen(networks::client(&self.server, "ent0")));
    }

    fn until(&self, state: &str) {
        self.server.until(state, |server| server.ok("sea show ent6").contains(state));
    }

    /// Another data plane with another guest.
    fn comes_back(&mut self) {
        self.server.until("its uplink", |server| server.run("uplink wait up1").status.success());
        self.server.until("its adapter", |server| {
            server.ok("adapter show ent0 -o json").contains("\"listening\"")
        });
        self.listen();
    }
}

fn signal(pid: Pid, signal: Signal) {
    kill_process(pid, signal).unwrap();
}

#[test]
#[ignore = "in a namespace"]
fn in_a_namespace() {
    ip("link set lo up");
    ip("link add br0 type bridge mcast_snooping 0");
    ip("link set br0 up");
    ip("addr add 10.9.0.1/24 dev br0");
    let mut etcd = Etcd::start();
    let world = world();
    let (mut one, mut other) = (Side::start("up1", 1), Side::start("up2", 2));
    let control = |side: &Side| {
        let pid = side.server.child.as_ref().unwrap().id();
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    };
    one.until("PRIMARY");
    other.until("BACKUP: the partner's mode or priority is the better one");

    // The data plane alone, which is started again.
    one.server.kill_plane();
    one.comes_back();
    one.until("PRIMARY");
    other.until("BACKUP");

    // The control plane alone: nobody renews, and what goes on forwarding stops.
    let plane = one.server.plane_pid();
    one.server.kill();
    other.until("PRIMARY");
    one.server.serve(&[]);
    assert_eq!(one.server.plane_pid(), plane, "it was adopted");
    one.until("PRIMARY");
    other.until("BACKUP");

    // Another one, at once.
    one.server.kill();
    one.server.serve(&[]);
    one.until("PRIMARY");
    other.until("BACKUP");

    // Stopped in whatever it does, either of them, and continued.
    for pid in [plane, control(&one)] {
        signal(pid, Signal::STOP);
        other.until("PRIMARY");
        signal(pid, Signal::CONT);
        one.until("PRIMARY");
        other.until("BACKUP");
    }

    // Both, as when a host dies.
    one.server.kill();
    signal(plane, Signal::KILL);
    other.until("PRIMARY");
    one.server.serve(&[]);
    one.comes_back();
    one.until("PRIMARY");
    other.until("BACKUP");

    // Without etcd nobody has a token, and each says why; with it they go on.
    etcd.kill();
    for side in [&one, &other] {
        side.until("bridges VLANs none");
        side.until("etcd at 127.0.0.1:2379");
    }
    let why = one.server.ok("adapter explain ent0");
    assert!(why.contains("etcd at 127.0.0.1:2379"), "{why}");
    one.server.until("frames that are lost", |server| {
        server.ok("stats up1 -o json").contains("drop_standby")
    });
    etcd.again();
    one.until("PRIMARY");
    other.until("BACKUP");
    assert!(one.server.ok("events --of ent6").contains("etcd at 127.0.0.1:2379"));

    // One that is taken away in order leaves nothing behind.
    one.server.ok("sea remove ent6 --force");
    other.until("PRIMARY");

    let sent = world.end();
    for side in [&mut one, &mut other] {
        side.came.extend(side.listening.take().unwrap().end());
        assert!(side.came.len() > 500, "{} of {sent}", side.came.len());
    }
    let all = |side: &Side| side.came.iter().copied().collect::<BTreeSet<u32>>();
    let (mine, its) = (all(&one), all(&other));
    assert_eq!(mine.len() + its.len(), one.came.len() + other.came.len(), "one came twice");
    let both: Vec<&u32> = mine.intersection(&its).collect();
    assert!(both.is_empty(), "by both sides: {both:?}");
}
