//! What guests see of a network.

use std::time::Duration;

use crate::machine::Guest;
use crate::scenario::World;
use crate::trunkline::Trunkline;
use anyhow::{Result, ensure};

const LIMIT: Duration = Duration::from_secs(300);

/// Two network cards, each alone in a namespace, so that what one sends goes through the server.
const SCRIPT: &str = "
    unshare -n sleep 100000 &
    other=$!
    there() { nsenter -t $other -n \"$@\"; }
    within 10 there true
    sleep 1
    ip link set eth1 netns $other
    echo mac=$(cat /sys/class/net/eth0/address)
    ip addr add 192.0.2.1/24 dev eth0
    ip link set eth0 up
    there ip addr add 192.0.2.2/24 dev eth1
    there ip link set eth1 up
    within 30 ping -c 1 -W 1 192.0.2.2 >/dev/null
    ping -c 5 -s 1472 -W 5 192.0.2.2 >/tmp/ping || fail \"$(cat /tmp/ping)\"
    # More than one packet: fragments.
    ping -c 3 -s 8000 -W 5 192.0.2.2 >/tmp/ping || fail \"$(cat /tmp/ping)\"
    # TCP, with what the driver leaves to the other side: checksums and segments.
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
    }
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
        let socket = server.network_card(&name, &mac)?;
        let chardev = format!("socket,id={name},path={},reconnect=1", socket.display());
        let netdev = format!("vhost-user,id={name}-net,chardev={name},queues={pairs}");
        let several = if pairs > 1 { ",mq=on" } else { "" };
        // QEMU 7.2 without KVM dies of a null pointer at the start of a vhost-user card that has MSI-X.
        let device =
            format!("virtio-net-pci,netdev={name}-net,mac={mac}{several},vectors=0,romfile=");
        guest = guest.qemu(&["-chardev", &chardev, "-netdev", &netdev, "-device", &device]);
        macs.push(mac);
    }
    let transcript = guest.run_with(SCRIPT, LIMIT, |_, _| server.crash_data_plane())?.ok()?;
    ensure!(transcript.value("mac")? == macs[0], "another address\n{}", transcript.report());
    let stats = server.cli(&["stats", "ent1", "-o", "json"])?;
    ensure!(stats.contains("rx_frames"), "nothing was counted: {stats}");
    Ok(())
}
