//! Several clients at one port: their queues, what bounds them, what they may take, and what is counted.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::fc::expect;
use crate::machine::Guest;
use crate::scenario::World;
use crate::trunkline::Trunkline;
use anyhow::{Context as _, Result, anyhow, ensure};

const LIMIT: Duration = Duration::from_secs(900);

/// How long counters may take to move on a busy machine.
const COUNTED: Duration = Duration::from_secs(60);

const QUEUES: [u16; 3] = [1, 4, 64];

/// Drivers take as many queues as there may be CPUs, so all three have what the adapter offers.
const SCRIPT: &str = "
    for adapter in 0 1 2; do
        within 60 has_disk 0 0 $adapter
        disk=$(disk_of 0 0 $adapter)
        echo queues.$adapter=$(queues $disk)
        fio_verify --name=v --filename=/dev/$disk --size=4m --numjobs=2 --offset_increment=4m
    done
    step explain
    slow=$(disk_of 0 1 1)
    fio --name=load --thread --filename=/dev/$slow --size=32m --rw=randread --bs=64k --direct=1 --ioengine=libaio \\
        --iodepth=64 --time_based --runtime=600 >/tmp/load 2>&1 &
    load=$!
    step counted
    kill -0 $load || { cat /tmp/load; fail 'the load ended'; }
    kill $load
    wait $load || true
    # The driver is taken off and put back: every queue stops, the device is reset and starts again.
    for round in 1 2 3; do
        host=$(ls /sys/class/scsi_host | sort -V | tail -n 1)
        device=$(basename $(readlink -f /sys/class/scsi_host/$host/device/..))
        echo $device >/sys/bus/virtio/drivers/virtio_scsi/unbind
        echo $device >/sys/bus/virtio/drivers/virtio_scsi/bind
        within 60 has_disk 0 0 2
        fio_verify --name=again --filename=/dev/$(disk_of 0 0 2) --size=2m
    done
    echo again=$(queues $(disk_of 0 0 2))";

/// Clients with 1, 4 and 64 queues in one guest.
pub(crate) fn negotiate(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    let slow = ["--delay-us-min", "2000", "--delay-us-max", "5000", "--delay-seed", "7"];
    server.volume("one", "64MiB", &[])?;
    server.volume("two", "64MiB", &slow)?;
    server.order("port create fcs0")?;
    server.order("target create t0 --id 0 --luns 0=one,1=two")?;
    let mut guest = Guest::new(&world.kit).possible_cpus(64);
    for (index, queues) in QUEUES.into_iter().enumerate() {
        guest = guest.adapter(server.fc_adapter(&format!("vfchost{index}"), queues)?);
    }
    server.order("zone create z0 --members vfchost0,vfchost1,vfchost2,t0")?;
    server.order("mask create m0 --initiators vfchost0,vfchost1,vfchost2 --targets t0")?;
    let transcript = guest.run_with(SCRIPT, LIMIT, |step, _| match step {
        "explain" => explain(&server),
        "counted" => counted(&server),
        _ => Err(anyhow!("unexpected step {step}")),
    })?;
    let transcript = transcript.ok()?;
    expect(
        &transcript,
        &[("queues.0", "1"), ("queues.1", "4"), ("queues.2", "64"), ("again", "64")],
    )
}

/// What `adapter explain` says of an adapter: its channels, who limits them, and the client's queues.
fn explained(server: &Trunkline, adapter: &str) -> Result<(Value, Value, Value)> {
    let text = server.order(&format!("adapter explain {adapter} -o json"))?;
    let all: Value = serde_json::from_str(&text).context("`adapter explain` is not JSON")?;
    let terms = all["terms"].as_array().cloned().unwrap_or_default();
    let client = terms.iter().find(|term| term["term"] == "client");
    let client = client.map_or(Value::Null, |term| term["count"].clone());
    Ok((all["channels"].clone(), all["limited_by"].clone(), client))
}

/// The terms of each client, and how two of them bind as soon as they are set.
fn explain(server: &Trunkline) -> Result<()> {
    for (index, queues) in QUEUES.into_iter().enumerate() {
        let (channels, by, client) = explained(server, &format!("vfchost{index}"))?;
        ensure!(client == queues, "the client of vfchost{index} has {client} queues, not {queues}");
        let alone = queues > 1 || (channels == 1 && by == "client");
        ensure!(alone, "vfchost{index}: {channels} channels, limited by {by}");
    }
    for (order, back, by) in [
        (
            "adapter set vfchost2 --limit-intr true",
            "adapter set vfchost2 --unset limit_intr",
            "limit_intr",
        ),
        ("port set fcs0 --num-io-queues 1", "port set fcs0 --unset num_io_queues", "port"),
    ] {
        server.order(order)?;
        let (channels, limit, _) = explained(server, "vfchost2")?;
        ensure!(channels == 1 && limit == by, "{order}: {channels} channels, limited by {limit}");
        server.order(back)?;
    }
    let map = server.order("ioscli lsmap -all -npiv -fmt :")?;
    let logged_in = map.lines().filter(|line| line.contains(":LOGGED_IN:fcs0:")).count();
    ensure!(logged_in == QUEUES.len(), "{logged_in} are logged in\n{map}");
    let report = server.order("ioscli fcstat fcs0")?;
    for what in ["Input Requests", "Output Requests", "Input Bytes", "Output Bytes"] {
        ensure!(number(&report, what, ':')? > 0, "no {what}\n{report}");
    }
    Ok(())
}

/// A client that is given too little for the load that it has: what it takes from the adapter's pools and waits for is counted.
fn counted(server: &Trunkline) -> Result<()> {
    let stats = || server.order("ioscli cat vfchost1/stats");
    let before = stats()?;
    ensure!(number(&before, "Queues used by the client", '=')? == 4, "{before}");
    let subq = number(&before, "Number of SUBQ channels", '=')?;
    ensure!((1..=4).contains(&subq), "{before}");
    ensure!(number(&before, "Channels negotiated", '=')? == subq, "{before}");
    // The first is the command queue.
    ensure!(before.matches("Commands received").count() as u64 == subq + 1, "{before}");
    ensure!(number(&before, "No Command Resource", '=')? == 0, "{before}");
    // The driver has asked for every target that there could be.
    ensure!(number(&before, "Commands with errors", '=')? == 0, "{before}");
    server.order("adapter set vfchost1 --num-cmd-elems 20 --num-local-cmds 1 --bufs-per-cmd 1")?;
    let deadline = Instant::now() + COUNTED;
    loop {
        let now = stats()?;
        let grew =
            |what| -> Result<bool> { Ok(number(&now, what, '=')? > number(&before, what, '=')?) };
        if grew("Commands from global pool")? && grew("No Command Resource")? {
            break;
        }
        ensure!(Instant::now() < deadline, "the counters do not move\n{before}\n{now}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let back = "--unset num_cmd_elems --unset num_local_cmds --unset bufs_per_cmd";
    server.order(&format!("adapter set vfchost1 {back}")).map(drop)
}

/// The number behind a name in one of the reports.
fn number(report: &str, name: &str, separator: char) -> Result<u64> {
    let value = report.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then(|| value.trim())
    });
    value.and_then(|value| value.parse().ok()).ok_or_else(|| anyhow!("no {name}\n{report}"))
}
