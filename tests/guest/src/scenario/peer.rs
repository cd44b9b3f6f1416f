//! The control for all others: the same guest on a server that is not ours.

use std::fs::File;
use std::time::Duration;

use crate::bios;
use crate::conformance::Results;
use crate::machine::{Disk, Guest};
use crate::scenario::World;
use crate::server::StorageDaemon;
use anyhow::{Context as _, Result, anyhow, ensure};

pub(crate) fn filesystem(world: &World) -> Result<()> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let image = folder.path().join("disk.img");
    let size: u64 = 256 << 20;
    File::create(&image).and_then(|file| file.set_len(size)).context("cannot create the image")?;
    let server = StorageDaemon::start(folder.path(), &image, 2)?;
    let guest = Guest::new(&world.kit).disk(Disk::new(&server.socket, 2));
    let transcript = guest.run(
        "echo queues=$(queues vda)
         echo bytes=$(blockdev --getsize64 /dev/vda)
         mkfs.ext4 -q /dev/vda
         mount -t ext4 -o discard /dev/vda /mnt
         fio_verify --name=v --filename=/mnt/data --size=16m
         umount /mnt
         fsck.ext4 -fn /dev/vda",
        Duration::from_secs(180),
    )?;
    let transcript = transcript.ok()?;
    ensure!(transcript.value("queues")? == "2", "queues: {}", transcript.report());
    ensure!(transcript.value("bytes")? == size.to_string(), "size: {}", transcript.report());
    Ok(())
}

pub(crate) fn bios(world: &World) -> Result<()> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let image = folder.path().join("disk.img");
    let mut contents = bios::boot_sectors("read by SeaBIOS");
    contents.resize(1 << 20, 0);
    std::fs::write(&image, &contents).context("cannot write the image")?;
    let server = StorageDaemon::start(folder.path(), &image, 1)?;
    let text = bios::boot(&world.kit.qemu, &Disk::new(&server.socket, 1), Duration::from_secs(60))?;
    ensure!(text == "read by SeaBIOS", "the boot sector printed {text:?}");
    Ok(())
}

/// QEMU's own virtio-scsi adapter with one disk, and what the tools say about it.
const SCSI: &str = "
    within 30 has_disk 0 0
    sg=/dev/$(sg_of 0 0) disk=$(disk_of 0 0)
    lsscsi -g
    sg_inq $sg
    echo serial=$(sg_inq --page=0x80 $sg | sed -n 's/.*Unit serial number: *//p')
    echo naa=$(sg_vpd --page=di --quiet $sg | grep -i 0x | head -n 1 | tr -d ' ')
    echo luns=$(sg_luns $sg | grep -c '^ *[0-9a-f]\\{16\\}')
    echo queues=$(queues $disk)
    echo bytes=$(blockdev --getsize64 /dev/$disk)
    sg_vpd --page=bl $sg | head -n 3
    sg_vpd --page=lbpv $sg | head -n 3
    # There are no persistent reservations there: what counts is that the tool asked and understood the answer.
    sg_persist --in --read-keys $sg && echo persist=0 || echo persist=$?
    dd if=/dev/urandom of=/dev/$disk bs=64k count=16 oflag=direct
    sg_unmap --lba=0 --num=256 --force $sg
    [ $(dd if=/dev/$disk bs=64k count=2 iflag=direct | tr -d '\\0' | wc -c) = 0 ] || fail 'what was unmapped is still there'
    sg_reset --device $sg
    sg_turs $sg || sg_turs $sg
    conformance $sg
    mkfs.ext4 -q /dev/$disk
    mount -t ext4 /dev/$disk /mnt
    fio_verify --name=v --filename=/mnt/data --size=4m
    umount /mnt";

/// The tools for SCSI work in the guest, and libiscsi's tests find of QEMU's disk what they find everywhere.
pub(crate) fn scsi(world: &World) -> Result<()> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let image = folder.path().join("disk.img");
    let size: u64 = 64 << 20;
    File::create(&image).and_then(|file| file.set_len(size)).context("cannot create the image")?;
    let file = format!("driver=file,node-name=peer,discard=unmap,filename={}", image.display());
    let guest = Guest::new(&world.kit).qemu(&[
        "-blockdev",
        &file,
        "-device",
        "virtio-scsi-pci,id=hba,num_queues=2",
        "-device",
        "scsi-hd,bus=hba.0,drive=peer,serial=PEER0001,wwn=0x5005076300c0ffee",
    ]);
    let transcript = guest.run(SCSI, Duration::from_secs(300))?.ok()?;
    let bytes = size.to_string();
    let expected = [
        ("serial", "PEER0001"),
        ("naa", "0x5005076300c0ffee"),
        ("luns", "1"),
        ("queues", "2"),
        ("bytes", bytes.as_str()),
        // Invalid opcode, says sg_persist.
        ("persist", "9"),
    ];
    for (key, value) in expected {
        let seen = transcript.value(key)?;
        ensure!(seen == value, "{key} is {seen}, not {value}\n{}", transcript.report());
    }
    let results = Results::of(&transcript)?;
    let [results] = results.as_slice() else {
        return Err(anyhow!("no results of libiscsi's tests\n{}", transcript.report()));
    };
    println!("{:<24} libiscsi's tests of QEMU's disk: {}", "", results.summary());
    // Debian 12's QEMU 7.2 passes 178 of 230.
    ensure!(
        (170..results.total()).contains(&results.passed()),
        "this is not what QEMU's disk does\n{}",
        transcript.report()
    );
    Ok(())
}
