//! What guests see of a network.

use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::command;
use crate::machine::{Disk, Guest};
use crate::scenario::World;
use crate::trunkline::Trunkline;
use anyhow::{Context as _, Result, ensure};

const LIMIT: Duration = Duration::from_secs(300);

/// Two network cards, each alone in a namespace, so that what one sends goes through the server: `there` runs a command beside the other one, `connect`
/// sets both up, and `transfer` sends a file to the other one, by TCP with what the driver leaves to the other side: checksums and segments.
pub(super) const CARDS_APART: &str = "
    unshare -n sleep 100000 &
    other=$!
    there() { nsenter -t $other -n \"$@\"; }
    within 10 there true
    sleep 1
    ip link set eth1 netns $other
    connect() {
        ip addr add 192.0.2.1/24 dev eth0
        ip link set eth0 up
        there ip addr add 192.0.2.2/24 dev eth1
        there ip link set eth1 up
        within 30 ping -c 1 -W 1 192.0.2.2 >/dev/null
    }
    head -c 16m /dev/urandom >/tmp/sent
    mkfifo /tmp/hold
    exec 3<>/tmp/hold
    transfer() {
        # Its input stays open: at the end of that it would hang up.
        there nc -l -p 5001 <&3 >/tmp/received &
        listener=$!
        sleep 1
        nc 192.0.2.2 5001 </tmp/sent
        wait $listener
        [ \"$(md5sum </tmp/sent)\" = \"$(md5sum </tmp/received)\" ] || fail \"other bytes arrived, $(wc -c </tmp/received) of $(wc -c </tmp/sent)\"
    }";

const SCRIPT: &str = "
    echo mac=$(cat /sys/class/net/eth0/address)
    connect
    ping -c 5 -s 1472 -W 5 192.0.2.2 >/tmp/ping || fail \"$(cat /tmp/ping)\"
    # More than one packet: fragments.
    ping -c 3 -s 8000 -W 5 192.0.2.2 >/tmp/ping || fail \"$(cat /tmp/ping)\"
    transfer
    step killed
    within 30 ping -c 1 -W 1 192.0.2.2 >/dev/null
    transfer
    kill $other";

/// Two cards of a guest exchange packets, also when the data plane was killed.
pub(crate) fn exchange(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    server.order("network create net0")?;
    let mut guest = Guest::new(&world.kit);
    let mut macs = Vec::new();
    for (index, pairs) in [1, 2].into_iter().enumerate() {
        let name = format!("ent{index}");
        let mac = format!("02:00:5e:00:00:0{}", index + 1);
        let socket = server.network_card(&name, &mac, "")?;
        guest = guest.card(&name, &mac, &socket, pairs);
        macs.push(mac);
    }
    let script = format!("{CARDS_APART}{SCRIPT}");
    let transcript = guest.run_with(&script, LIMIT, |_, _| server.crash_data_plane())?.ok()?;
    ensure!(transcript.value("mac")? == macs[0], "another address\n{}", transcript.report());
    let stats = server.cli(&["stats", "ent1", "-o", "json"])?;
    ensure!(stats.contains("rx_frames"), "nothing was counted: {stats}");
    Ok(())
}

/// One card. What has no tag goes to 192.0.2.1, what is of VLAN 20 to 198.51.100.1.
const OUTSIDE: &str = "
    cat >/tmp/lease <<'END'
#!/bin/sh
[ \"$1\" = bound ] && ip addr add $ip/24 dev $interface
exit 0
END
    chmod +x /tmp/lease
    lease() {
        ip addr flush dev eth0
        udhcpc -i eth0 -n -q -t 20 -T 1 -s /tmp/lease >/tmp/dhcp 2>&1 || fail \"$(cat /tmp/dhcp)\"
        ip addr show dev eth0 | grep -q 'inet 192.0.2.1[0-9][0-9]/24' || fail \"$(cat /tmp/dhcp)\"
    }
    # Both directions at the rate that this machine can do; each ends with what arrived. A server of iperf3 that still ends a stream, as it may on a
    # busy machine, turns the next one away: each direction has its own.
    stream() {
        for back in '-p 5201' '-p 5202 -R'; do
            iperf3 -c $1 -t 1 -P 2 $back >/tmp/iperf 2>&1 || fail \"$(cat /tmp/iperf)\"
            echo \"to $1 $back: $(awk '/SUM.*receiver/ { print $6, $7 }' /tmp/iperf)\"
        done
    }
    fetch() {
        [ \"$(wget -q -O - http://$1/bytes | md5sum)\" = \"$(wget -q -O - http://$1/sum)\" ] || fail \"other bytes came from $1\"
    }
    [ $(ls -d /sys/class/net/eth0/queues/rx-* | wc -l) = 2 ] || fail 'not two pairs'
    ip link set eth0 mtu $MTU up
    lease
    ip link add link eth0 name eth0.20 type vlan id 20
    ip link set eth0.20 up
    ip addr add 198.51.100.2/24 dev eth0.20
    within 30 ping -c 1 -W 1 198.51.100.1 >/dev/null
    for host in 192.0.2.1 198.51.100.1; do
        # The longest packet, and one that is cut.
        for bytes in $((MTU - 28)) $((2 * MTU)); do
            ping -c 3 -s $bytes -W 5 $host >/tmp/ping || fail \"$(cat /tmp/ping)\"
        done
        fetch $host
        stream $host
    done
    # A stream goes on when the data plane dies.
    iperf3 -c 192.0.2.1 -p 5203 -t 14 >/tmp/held 2>&1 &
    held=$!
    sleep 2
    step killed
    sleep 5
    step killed
    wait $held || fail \"$(cat /tmp/held)\"
    lease
    for host in 192.0.2.1 198.51.100.1; do
        within 30 ping -c 1 -W 1 $host >/dev/null
        fetch $host
        stream $host
    done";

/// A program that ends with the test.
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        // Errors mean that it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is outside: a server of addresses, one of files, and one that streams.
fn outside(server: &Trunkline) -> Result<Vec<Helper>> {
    for line in
        ["link set lo up", "addr add 192.0.2.1/24 dev up0", "addr add 198.51.100.1/24 dev up1"]
    {
        command::output(server.beside("ip").args(line.split(' ')))?;
    }
    let (conf, files) = (server.path("udhcpd.conf"), server.path("files"));
    let lease = server.path("leases");
    let text = format!(
        "start 192.0.2.100\nend 192.0.2.199\ninterface up0\nlease_file {0}\npidfile {0}.pid\noption subnet 255.255.255.0\n",
        lease.display()
    );
    fs::write(&lease, "").context("cannot write the leases")?;
    fs::write(&conf, text).context("cannot write the configuration of the DHCP server")?;
    fs::create_dir(&files).context("cannot make a folder for files")?;
    let bytes: Vec<u8> = (0..8_u32 << 20).map(|at| (at * 13 + at / 251) as u8).collect();
    fs::write(files.join("bytes"), bytes).context("cannot write a file")?;
    let sum = command::text(
        command::bound("sh").args(["-c", "md5sum <\"$0\""]).arg(files.join("bytes")),
    )?;
    fs::write(files.join("sum"), sum).context("cannot write a sum")?;
    let mut dhcp = server.beside("busybox");
    dhcp.args(["udhcpd", "-f"]).arg(conf);
    let mut web = server.beside("busybox");
    web.args(["httpd", "-f", "-p", "80", "-h"]).arg(files);
    let iperf = ["5201", "5202", "5203"].map(|port| {
        let mut iperf = server.beside("iperf3");
        iperf.args(["-s", "-p", port]);
        iperf
    });
    let start = |mut program: std::process::Command| {
        let program = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Helper(program.spawn().context("cannot start a program of the world outside")?))
    };
    [dhcp, web].into_iter().chain(iperf).map(start).collect()
}

/// All that a guest with a disk and a network card has, whose network is bridged by shared adapters.
const ALL: &str = r#"
[volume.root]
kind = "file"
path = "IMAGE"
size = "64MiB"
create = true

[adapter.vhost0]
volume = "root"
queues = 2

[network.net0]
mtu = 9000

[adapter.ent0]
kind = "ethernet"
network = "net0"
mac = "02:00:5e:00:00:01"
vlans = "20"

[uplink.up0]
[uplink.up1]

[trunk.trunk1]
network = "net0"
[trunk.trunk20]
network = "net0"
pvid = 20

[sea.sea1]
real_adapter = "up0"
virt_adapters = "trunk1"
pvid_adapter = "trunk1"
pvid = 1

[sea.sea20]
real_adapter = "up1"
virt_adapters = "trunk20"
pvid_adapter = "trunk20"
pvid = 20
"#;

/// A guest reaches the world outside: by uplinks of its network, or, with a disk beside its card, by shared adapters, all of which one file says.
pub(crate) fn uplink(world: &World) -> Result<()> {
    reaches_outside(world, || Guest::new(&world.kit))
}

/// The same under a QEMU that connects SCSI adapters again.
pub(crate) fn uplink_later(world: &World) -> Result<()> {
    reaches_outside(world, || Guest::new(&world.kit).that_reconnects())
}

fn reaches_outside<'a>(world: &'a World, guest: impl Fn() -> Guest<'a>) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        println!("NOT TESTED: uplinks under a guest, because that needs root");
        return Ok(());
    }
    for mtu in [1500, 9000] {
        let mut server = Trunkline::start_apart(&world.server)?;
        let mac = "02:00:5e:00:00:01";
        let (mut guest, mut script) = (guest(), format!("MTU={mtu}\n{OUTSIDE}"));
        if mtu == 9000 {
            let (file, image) = (server.path("all.toml"), server.path("root.img"));
            let all = ALL.replace("IMAGE", &image.display().to_string());
            fs::write(&file, all).context("cannot write the configuration")?;
            server.cli(&["apply", &file.display().to_string()])?;
            guest = guest.disk(Disk::new(server.socket("vhost0"), 2).reconnecting());
            script += "\nfio_verify --name=disk --filename=/dev/vda --size=8m";
        } else {
            server.order(&format!("network create net0 --mtu {mtu}"))?;
            server.order("uplink create up0 --network net0")?;
            server.order("uplink create up1 --network net0 --pvid 20")?;
            server.network_card("ent0", mac, "--vlans 20")?;
        }
        let _outside = outside(&server)?;
        let guest = guest.card("ent0", mac, &server.socket("ent0"), 2);
        let transcript = guest.run_with(&script, LIMIT, |_, _| server.crash_data_plane())?.ok()?;
        let lines = transcript.output.lines().filter(|line| line.starts_with("to "));
        lines.for_each(|line| println!("{:<24} MTU {mtu} {line}", ""));
        let stats = server.cli(&["stats", "up0", "-o", "json"])?;
        for counter in ["rx_frames", "tx_frames"] {
            ensure!(!stats.contains(&format!("\"{counter}\": 0,")), "no {counter}: {stats}");
        }
    }
    Ok(())
}
