//! A data plane that dies again and again under a guest: of its network cards no descriptor is lost or used twice, and of its disks no write.
//!
//! Between two deaths each data plane is followed by one that takes over in good order. A descriptor of a network card that came back twice would be found
//! by the guest's driver, which says that it is no head and stops the queue. One that is lost is missing from what the device can use: while QEMU stands
//! still no buffer is posted, and as many frames as there are in the ring must be delivered, not one less.

use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

use crate::command;
use crate::machine::Guest;
use crate::qmp::Qmp;
use crate::scenario::{World, fault, net};
use crate::trunkline::Trunkline;
use anyhow::{Context as _, Result, ensure};

/// How often it dies.
const KILLS: usize = 100;
/// Of each ring, as QEMU makes them.
const RING: u16 = 256;
const CARDS: [&str; 2] = ["ent0", "ent1"];
const FRAMES: Traffic<'_> =
    Traffic { adapters: &CARDS, counters: &["rx_frames"], some: RING as u64 };
/// For all of it.
const LIMIT: Duration = Duration::from_secs(3600);
/// For one thing to come about, on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

/// In a network namespace nothing is sent that is not asked for.
const QUIET: &str = "for all in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$all; done";

const SCRIPT: &str = "
    sh -c \"$QUIET\"
    there sh -c \"$QUIET\"
    connect
    # Three questions for a neighbour may all fall into times without a data plane; who sends would be told that there is none.
    arp -i eth0 -s 192.0.2.2 02:00:5e:00:00:02
    there arp -i eth1 -s 192.0.2.1 02:00:5e:00:00:01
    there iperf3 -s >/dev/null 2>&1 &
    within 30 iperf3 -c 192.0.2.2 -n 1000 >/dev/null 2>&1
    {
        iperf3 -c 192.0.2.2 --bidir -u -b 8M -l 1000 -t 86400 >/tmp/iperf 2>&1 || true
        [ -e /tmp/over ] || { echo 'the stream ended:'; tail -n 5 /tmp/iperf; dmesg | tail -n 5; }
    } &
    step kills
    touch /tmp/over
    killall iperf3
    sleep 1
    step rest
    within 30 ping -c 1 -W 1 192.0.2.2 >/dev/null
    transfer
    dmesg >/tmp/dmesg
    ! grep -i 'is not a head\\|out of range\\|NETDEV WATCHDOG' /tmp/dmesg || fail 'the driver complains'
    kill $other";

/// Under the machine's own QEMU.
pub(crate) fn installed(world: &World) -> Result<()> {
    run(world, Guest::new(&world.kit))
}

/// Under one that connects SCSI adapters again.
pub(crate) fn later(world: &World) -> Result<()> {
    run(world, Guest::new(&world.kit).that_reconnects())
}

fn run(world: &World, mut guest: Guest<'_>) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        println!("NOT TESTED: deaths under network cards of a guest, because that needs root");
        return Ok(());
    }
    let mut server = Trunkline::start_apart(&world.server)?;
    server.order("network create net0")?;
    command::output(server.beside("sh").args(["-c", QUIET]))?;
    server.order("uplink create up0 --network net0")?;
    command::output(server.beside("ip").args(["addr", "add", "192.0.2.9/24", "dev", "up0"]))?;
    for (number, name) in CARDS.iter().enumerate() {
        let mac = format!("02:00:5e:00:00:0{}", number + 1);
        let socket = server.network_card(name, &mac, "")?;
        guest = guest.card(name, &mac, &socket, 1);
    }
    let mut times = Vec::new();
    let script = format!("QUIET='{QUIET}'{}{SCRIPT}", net::CARDS_APART);
    let transcript = guest.run_with(&script, LIMIT, |step, qmp| match step {
        "kills" => {
            times = kills(&mut server, &FRAMES).with_context(|| server.log())?;
            Ok(())
        }
        _ => every_buffer_is_there(&server, qmp),
    })?;
    transcript.ok()?;
    say("frames passed both ways", times);
    Ok(())
}

/// A block device, a virtual Fibre Channel disk and a virtual SCSI disk: each is written and compared without end.
const DISKS: &str = "
    within 60 has_disk 0 0 0
    within 60 has_disk 0 0 1
    disks=\"vda $(disk_of 0 0 0) $(disk_of 0 0 1)\"
    started=
    job() {
        fio --thread --verify=crc32c --verify_fatal=1 --ioengine=libaio --direct=1 --bs=4k --iodepth=16 --rw=randwrite \\
            --name=$1 --filename=/dev/$1 --size=16m --numjobs=2 --offset_increment=16m --randseed=$2 $3 >/tmp/fio.$1 2>&1
    }
    again() {
        round=0
        while [ ! -e /tmp/over ]; do
            round=$((round + 1))
            job $1 $round --do_verify=1 || return 1
        done
        job $1 $round --verify_only
    }
    for disk in $disks; do
        again $disk &
        started=\"$started $!\"
    done
    step kills
    touch /tmp/over
    set -- $disks
    for one in $started; do
        wait $one || fail \"$1: $(head -c 2000 /tmp/fio.$1)\"
        shift
    done";

/// Under all kinds of disks.
pub(crate) fn disks(world: &World) -> Result<()> {
    let (mut server, guest) = fault::every_kind_of_disk(world)?;
    let mut times = Vec::new();
    let outcome = guest.run_with(DISKS, LIMIT, |_, _| {
        times = kills(
            &mut server,
            &Traffic {
                adapters: &["vhost0", "vfchost0", "vhost1"],
                counters: &["reads", "writes"],
                some: 100,
            },
        )?;
        Ok(())
    });
    let transcript = outcome.with_context(|| server.log())?.ok()?;
    fault::no_errors(&transcript)?;
    say("all disks answered", times);
    Ok(())
}

/// What shows that a guest is at work.
struct Traffic<'a> {
    adapters: &'a [&'a str],
    /// Of these the sum.
    counters: &'a [&'a str],
    /// Of each adapter, more than is under way.
    some: u64,
}

fn say(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let [median, longest] = [times[times.len() / 2], times[times.len() - 1]];
    let count = times.len();
    println!(
        "{:<24} {count} deaths; {what} {median:.2?} after one (median), {longest:.2?} at most",
        ""
    );
}

/// Kills it, and returns how long after each death every adapter was served.
fn kills(server: &mut Trunkline, traffic: &Traffic<'_>) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    while times.len() < KILLS {
        passes(server, traffic, traffic.some + times.len() as u64 * 7 % 211)?;
        let died = Instant::now();
        server.crash_data_plane()?;
        if times.len() % 5 == 4 {
            // It dies again while it is told of the rings, or just before, or just after.
            server.crash_data_plane()?;
        }
        wait("answers after a death", || {
            Ok(counted(server, traffic)?.iter().all(|count| *count > 0))
        })?;
        times.push(died.elapsed());
        passes(server, traffic, traffic.some)?;
        // After one that died in its first half minute the server waits longer and longer.
        server.order("dataplane restart main")?;
    }
    Ok(times)
}

/// What the data plane that is there has done of each adapter; nothing before there is one.
fn counted(server: &Trunkline, traffic: &Traffic<'_>) -> Result<Vec<u64>> {
    let stats = server.cli(&["stats", "-o", "json"])?;
    let stats: Value = serde_json::from_str(&stats).context("`stats -o json` is not JSON")?;
    let all = stats["adapters"].as_array().context("no adapters")?;
    let of = |name: &&str| {
        let adapter = all.iter().find(|adapter| adapter["adapter"] == **name);
        let count = |counter: &&str| adapter?["total"]["counters"][*counter].as_u64();
        traffic.counters.iter().filter_map(count).sum()
    };
    Ok(traffic.adapters.iter().map(of).collect())
}

/// Waits until there is so much more of each adapter.
fn passes(server: &Trunkline, traffic: &Traffic<'_>, more: u64) -> Result<()> {
    let before = counted(server, traffic)?;
    wait("all to go on", || {
        let now = counted(server, traffic)?;
        Ok(now.iter().zip(&before).all(|(now, before)| *now >= before + more))
    })
}

fn wait(what: &str, mut until: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + WAIT;
    while !until()? {
        ensure!(Instant::now() < end, "gave up waiting for {what} after {WAIT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// While nobody sends: all that the guest sent came back to it, and each buffer that it has posted can be used.
fn every_buffer_is_there(server: &Trunkline, qmp: &mut Qmp) -> Result<()> {
    let mut look = || -> Result<Vec<[u16; 2]>> {
        let of = |card: &&str| {
            let device = format!("/machine/peripheral/{card}/virtio-backend");
            Ok([qmp.outstanding(&device, 0)?, qmp.outstanding(&device, 1)?])
        };
        CARDS.iter().map(of).collect()
    };
    let mut rings = look()?;
    let rest = wait("rings at rest", || {
        std::thread::sleep(Duration::from_secs(1));
        let before = std::mem::replace(&mut rings, look()?);
        // Linux posts buffers anew when some are missing, not each by itself.
        let full = rings.iter().all(|[posted, sent]| *posted > RING / 2 && *sent == 0);
        Ok(full && rings == before)
    });
    rest.with_context(|| format!("buffers and frames in the rings: {rings:?}"))?;
    let qemu = qmp.process()?;
    kill_process(qemu, Signal::STOP).context("cannot stop QEMU")?;
    let filled = fill(server);
    kill_process(qemu, Signal::CONT).context("cannot let QEMU go on")?;
    let posted = rings.iter().map(|[posted, _]| u64::from(*posted));
    let (filled, posted) = (filled?, posted.collect::<Vec<_>>());
    ensure!(filled == posted, "of {posted:?} buffers {filled:?} were used");
    Ok(())
}

/// More frames for everybody than a ring takes, while nobody takes them out; how many each card has got.
fn fill(server: &Trunkline) -> Result<Vec<u64>> {
    let before = counted(server, &FRAMES)?;
    let namespace = server.namespace()?;
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || -> Result<()> {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), network).context("cannot enter it")?;
            let socket = UdpSocket::bind("192.0.2.9:0").context("cannot open a socket")?;
            socket.set_broadcast(true).context("cannot send to all")?;
            for _ in 0..2 * RING {
                socket.send_to(&[0; 64], "192.0.2.255:9").context("cannot send")?;
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        });
        sender.join().expect("it does not panic")
    })?;
    let mut now = counted(server, &FRAMES)?;
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let later = counted(server, &FRAMES)?;
        if now == later {
            return Ok(now.iter().zip(&before).map(|(now, before)| now - before).collect());
        }
        now = later;
    }
}
