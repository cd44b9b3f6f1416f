//! What a guest sees when a process of the server ends, or its own queues stop, while it does I/O.
//!
//! All of it on a disk that is slow inside the kernel and answers out of order: on a fast one hardly anything is in flight when something
//! breaks, and a server without any in-flight tracking would pass. The control proves that this disk is slow enough.

use std::time::Duration;

use serde_json::json;

use crate::machine::{Disk, Guest, Transcript};
use crate::scenario::World;
use crate::trunkline::Trunkline;
use anyhow::{Result, anyhow, ensure};

const LIMIT: Duration = Duration::from_secs(300);

/// fio writes and verifies in the background while the host does something; then it must finish without an error.
/// What it wrote is read once more afterwards.
const SCRIPT: &str = "
    job='--name=v --filename=/dev/vda --size=32m --numjobs=2 --offset_increment=32m'
    fio_verify $job &
    fio=$!
    sleep 2
    step fault
    kill -0 $fio || fail 'fio was done before the fault'
    watch $fio vda
    fio --thread --verify=crc32c --verify_only --ioengine=libaio --direct=1 --bs=4k --iodepth=16 \\
        --rw=randwrite --randrepeat=1 $job >/tmp/again.out || fail \"$(cat /tmp/again.out)\"";

/// Runs the script on a slow disk with two queues; `fault` happens while fio runs.
fn under_load(
    world: &World,
    attributes: &[&str],
    mut fault: impl FnMut(&mut Trunkline, &mut crate::qmp::Qmp) -> Result<()>,
) -> Result<Transcript> {
    let mut server = Trunkline::start(&world.server)?;
    server.slow_volume("slow", 64)?;
    let mut all = vec!["--queues", "2"];
    all.extend(attributes);
    let disk = Disk::new(server.adapter("vhost0", "slow", &all)?, 2);
    let listens = attributes.contains(&"client");
    let disk = if listens { disk.listening() } else { disk.reconnecting() };
    let guest = Guest::new(&world.kit).disk(disk);
    let outcome = guest.run_with(SCRIPT, LIMIT, |_, qmp| fault(&mut server, qmp));
    outcome.map_err(|error| anyhow!("{error:#}\n{}", server.log()))
}

/// Three crashes, far enough apart for the guest to be back at work.
fn crashes(server: &mut Trunkline) -> Result<()> {
    for _ in 0..3 {
        server.crash_data_plane()?;
        std::thread::sleep(Duration::from_secs(2));
    }
    Ok(())
}

/// The data plane is killed three times: the guest waits, reconnects and loses nothing.
pub(crate) fn data_plane(world: &World) -> Result<()> {
    let transcript = under_load(world, &[], |server, _| crashes(server))?.ok()?;
    no_errors(&transcript)
}

/// The same on every kind of disk at once: three programs, each on its own.
const SCRIPT_KINDS: &str = "
    within 60 has_disk 0 0 0
    within 60 has_disk 0 0 1
    disks=\"vda $(disk_of 0 0 0) $(disk_of 0 0 1)\"
    started=
    job() { echo --name=$1 --filename=/dev/$1 --size=16m --numjobs=2 --offset_increment=16m; }
    common='--thread --verify=crc32c --ioengine=libaio --direct=1 --bs=4k --iodepth=16 --rw=randwrite --randrepeat=1'
    for disk in $disks; do
        fio $common --verify_fatal=1 --do_verify=1 $(job $disk) >/tmp/fio.$disk 2>&1 &
        started=\"$started $!\"
    done
    sleep 2
    step fault
    set -- $disks
    for fio in $started; do
        kill -0 $fio || { cat /tmp/fio.$1; fail \"fio was done with $1 before the fault\"; }
        shift
    done
    set -- $disks
    for fio in $started; do
        watch $fio $1 || { cat /tmp/fio.$1; fail \"fio failed on $1\"; }
        shift
    done
    for disk in $disks; do
        fio $common --verify_only $(job $disk) >/tmp/again 2>&1 || fail \"$(cat /tmp/again)\"
    done
    echo verified=$disks";

/// A guest with a block device, a virtual Fibre Channel disk and a virtual SCSI disk, all slow.
pub(super) fn every_kind_of_disk(world: &World) -> Result<(Trunkline, Guest<'_>)> {
    let mut server = Trunkline::start(&world.server)?;
    for name in ["block", "fc", "scsi"] {
        server.slow_volume(name, 32)?;
    }
    let disk = server.adapter("vhost0", "block", &["--queues", "2"])?;
    server.order("port create fcs0")?;
    let fc = server.fc_adapter("vfchost0", 2)?;
    server.order("target create t0 --id 0 --luns 0=fc")?;
    server.order("zone create z0 --members vfchost0,t0")?;
    server.order("mask create m0 --initiators vfchost0 --targets t0")?;
    server.order("adapter create vhost1 --kind scsi --queues 2")?;
    server.order("vtd create vtscsi0 --adapter vhost1 --kind disk --volume scsi --lun 0")?;
    let guest = Guest::new(&world.kit)
        .that_reconnects()
        .disk(Disk::new(disk, 2).reconnecting())
        .adapter(fc)
        .adapter(server.scsi_adapter("vhost1", 2)?);
    Ok((server, guest))
}

/// All of them under load when the data plane is killed; the last time, its disks can be opened only seconds later.
pub(crate) fn every_kind(world: &World) -> Result<()> {
    let (mut server, guest) = every_kind_of_disk(world)?;
    let outcome = guest.run_with(SCRIPT_KINDS, LIMIT, |_, _| {
        crashes(&mut server)?;
        server.crash_data_plane_and_lock(Duration::from_secs(4))
    });
    let transcript = outcome.map_err(|error| anyhow!("{error:#}\n{}", server.log()))?.ok()?;
    no_errors(&transcript)
}

/// The same with QEMU listening at the socket: each new data plane connects to it.
pub(crate) fn listening(world: &World) -> Result<()> {
    let role = ["--socket-role", "client"];
    no_errors(&under_load(world, &role, |server, _| crashes(server))?.ok()?)
}

/// The same without the in-flight region must go wrong, or the scenario above shows nothing.
pub(crate) fn control(world: &World) -> Result<()> {
    let transcript = under_load(world, &["--withhold", "inflight"], |server, _| crashes(server))?;
    // Only a stall, a failed verification or a complaint of the driver counts; a script that broke elsewhere shows nothing.
    let stalled = transcript.output.contains("no I/O completes");
    let failed = transcript.output.contains("guest: fio");
    let early = transcript.output.contains("before the fault");
    let lost = stalled || (failed && !early) || no_errors(&transcript).is_err();
    ensure!(
        lost,
        "without an in-flight region nothing was lost: the disk is too fast\n{}",
        transcript.report()
    );
    println!("lost, as it must be: {}", transcript.output.lines().last().unwrap_or("see console"));
    Ok(())
}

/// The control plane is killed and started again: the guest notices nothing and the data plane stays.
pub(crate) fn control_plane(world: &World) -> Result<()> {
    let transcript = under_load(world, &[], |server, _| {
        server.crash_control_plane()?;
        server.crash_control_plane()
    })?;
    no_errors(&transcript.ok()?)
}

/// QEMU stops and continues the guest: each time all queues stop with I/O in flight and start again.
pub(crate) fn pause(world: &World) -> Result<()> {
    let transcript = under_load(world, &[], |_, qmp| {
        for _ in 0..5 {
            qmp.execute("stop", json!({}))?;
            std::thread::sleep(Duration::from_millis(300));
            qmp.execute("cont", json!({}))?;
            std::thread::sleep(Duration::from_millis(700));
        }
        Ok(())
    })?;
    no_errors(&transcript.ok()?)
}

/// The guest's kernel reports failed requests and impossible completions of the disk.
pub(super) fn no_errors(transcript: &Transcript) -> Result<()> {
    for sign in ["I/O error", "is not a head", "out of range", "hung", "aborting", "reset"] {
        ensure!(
            !transcript.console.contains(sign),
            "the guest's kernel says `{sign}`\n{}",
            transcript.report()
        );
    }
    Ok(())
}
