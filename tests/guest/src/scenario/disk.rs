//! What a guest sees of a disk in ordinary life.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use crate::bios;
use crate::machine::{Disk, Guest};
use crate::scenario::World;
use crate::trunkline::Trunkline;
use anyhow::{Context as _, Result, ensure};

const LIMIT: Duration = Duration::from_secs(300);

/// A filesystem with three files; the host looks at the image while the largest is there and after it is trimmed.
const SCRIPT_FILL: &str = "
    mkfs.ext4 -q /dev/vda
    mount -t ext4 /dev/vda /mnt
    fio_verify --name=kept --filename=/mnt/kept --size=16m --fsync=64
    dd if=/dev/urandom of=/mnt/random bs=1M count=8
    dd if=/dev/urandom of=/mnt/gone bs=1M count=64
    sync
    echo sum=$(cat /mnt/kept /mnt/random | md5sum | cut -d' ' -f1)
    step full
    rm /mnt/gone
    sync
    fstrim -v /mnt
    umount /mnt";

/// The same disk in a later boot.
const SCRIPT_AGAIN: &str = "
    fsck.ext4 -fn /dev/vda
    mount -t ext4 -o ro /dev/vda /mnt
    echo sum=$(cat /mnt/kept /mnt/random | md5sum | cut -d' ' -f1)
    umount /mnt
    # The whole disk is given up, and reads as zeroes where the device says that it does.
    blkdiscard -f /dev/vda
    blkdiscard -f --zeroout --offset 0 --length 1m /dev/vda
    [ $(head -c 1m /dev/vda | tr -d '\\0' | wc -c) = 0 ] || fail 'zeroes were not written'";

/// One guest with three disks of 1, 4 and 64 queues. Drivers take as many as there may be CPUs, so 64 CPUs are
/// possible and two are there.
pub(crate) fn queues(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    let mut guest = Guest::new(&world.kit).possible_cpus(64);
    for queues in [1, 4, 64] {
        let (volume, adapter) = (format!("q{queues}"), format!("vhost{queues}"));
        server.volume(&volume, "64MiB", &[])?;
        let socket = server.adapter(&adapter, &volume, &["--queues", &queues.to_string()])?;
        guest = guest.disk(Disk::new(socket, queues));
    }
    let script = "for disk in vda vdb vdc; do
            echo $disk=$(queues $disk)
            fio_verify --name=$disk --filename=/dev/$disk --size=8m --numjobs=2 --offset_increment=8m
        done
        # The driver is taken off and put back: every queue stops, the device is reset and starts again.
        for round in 1 2 3; do
            for device in /sys/bus/virtio/drivers/virtio_blk/virtio*; do
                device=$(basename $device)
                echo $device >/sys/bus/virtio/drivers/virtio_blk/unbind
                echo $device >/sys/bus/virtio/drivers/virtio_blk/bind
            done
            fio --name=again --thread --filename=/dev/vdc --size=8m --rw=randread --bs=4k --direct=1 \\
                --ioengine=libaio --iodepth=16 >/tmp/fio.out || fail \"$(cat /tmp/fio.out)\"
        done";
    let transcript = guest.run(script, LIMIT)?.ok()?;
    for (disk, queues) in [("vda", "1"), ("vdb", "4"), ("vdc", "64")] {
        let seen = transcript.value(disk)?;
        ensure!(
            seen == queues,
            "{disk} has {seen} queues instead of {queues}\n{}",
            transcript.report()
        );
    }
    Ok(())
}

/// A filesystem is made, filled, trimmed and checked; a second boot finds the same data; what was trimmed takes no space.
pub(crate) fn filesystem(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    let image = server.volume("root", "256MiB", &[])?;
    let socket = server.adapter("vhost0", "root", &["--queues", "2"])?;
    let guest = || Guest::new(&world.kit).disk(Disk::new(&socket, 2));
    let mut full = 0;
    let first = guest().run_with(SCRIPT_FILL, LIMIT, |_, _| {
        full = fs::metadata(&image).context("cannot stat the image")?.blocks() * 512;
        Ok(())
    })?;
    let first = first.ok()?;
    let trimmed = fs::metadata(&image).context("cannot stat the image")?.blocks() * 512;
    ensure!(
        trimmed + (48 << 20) < full,
        "fstrim of 64 MiB freed {} bytes of the image\n{}",
        full.saturating_sub(trimmed),
        first.report()
    );
    let second = guest().run(SCRIPT_AGAIN, LIMIT)?.ok()?;
    ensure!(
        first.value("sum")? == second.value("sum")?,
        "the second boot read other data\n{}\n{}",
        first.report(),
        second.report()
    );
    Ok(())
}

/// Serial number, block size, read-only and capacity are what was set, and a read-only disk stays as it is.
pub(crate) fn attributes(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    server.volume("big", "64MiB", &["--block-size", "4096"])?;
    let image = server.volume("fixed", "16MiB", &[])?;
    fs::File::options()
        .write(true)
        .open(&image)
        .and_then(|file| file.write_all_at(b"not to be changed", 0))
        .context("cannot fill the image")?;
    let big = server.adapter("vhost0", "big", &["--serial", "SERIAL-0123456789AB"])?;
    let fixed = server.adapter("vhost1", "fixed", &["--read-only", "true"])?;
    let guest = Guest::new(&world.kit).disk(Disk::new(big, 2)).disk(Disk::new(fixed, 2));
    let transcript = guest.run(
        "for disk in vda vdb; do
             echo $disk.serial=$(cat /sys/block/$disk/serial)
             echo $disk.bytes=$(blockdev --getsize64 /dev/$disk)
             echo $disk.block=$(cat /sys/block/$disk/queue/logical_block_size)
             echo $disk.ro=$(cat /sys/block/$disk/ro)
             echo $disk.cache=$(cat /sys/block/$disk/cache_type)
         done
         echo $(head -c 17 /dev/vdb)
         fio_verify --name=v --filename=/dev/vda --size=8m
         # The driver refuses by itself; --setrw takes that away, and then the device has to.
         blockdev --setrw /dev/vdb || true
         if dd if=/dev/zero of=/dev/vdb bs=4k count=1 oflag=direct; then fail 'a read-only disk was written'; fi",
        LIMIT,
    )?;
    let transcript = transcript.ok()?;
    let expected = [
        ("vda.serial", "SERIAL-0123456789AB"),
        ("vda.bytes", "67108864"),
        ("vda.block", "4096"),
        ("vda.ro", "0"),
        ("vda.cache", "write back"),
        ("vdb.serial", "fixed"),
        ("vdb.bytes", "16777216"),
        ("vdb.block", "512"),
        ("vdb.ro", "1"),
    ];
    for (key, value) in expected {
        let seen = transcript.value(key)?;
        ensure!(seen == value, "{key} is {seen}, not {value}\n{}", transcript.report());
    }
    let bytes = fs::read(&image).context("cannot read the image")?;
    ensure!(bytes.starts_with(b"not to be changed"), "the read-only image was changed");
    Ok(())
}

/// A volume grows while the guest runs, and the guest uses the new part.
pub(crate) fn resize(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    server.volume("grows", "64MiB", &[])?;
    let socket = server.adapter("vhost0", "grows", &["--queues", "2"])?;
    let script = "echo before=$(blockdev --getsize64 /dev/vda)
        has() { [ $(blockdev --getsize64 /dev/vda) = $1 ]; }
        step resize
        within 20 has 134217728
        fio_verify --name=v --filename=/dev/vda --offset=64m --size=8m";
    let guest = Guest::new(&world.kit).disk(Disk::new(socket, 2));
    let transcript = guest.run_with(script, LIMIT, |_, _| {
        server.cli(&["volume", "resize", "grows", "128MiB"]).map(drop)
    })?;
    let transcript = transcript.ok()?;
    ensure!(transcript.value("before")? == "67108864", "{}", transcript.report());
    Ok(())
}

/// SeaBIOS reads and writes through the adapter, before and after a Linux guest used it.
pub(crate) fn bios(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    let image = server.volume("boot", "16MiB", &[])?;
    let text = "read by SeaBIOS";
    let sectors = bios::boot_sectors(text);
    let file =
        fs::File::options().read(true).write(true).open(&image).context("cannot open the image")?;
    file.write_all_at(&sectors, 0).context("cannot write the boot sector")?;
    let socket = server.adapter("vhost0", "boot", &[])?;
    let boot = || -> Result<()> {
        let printed = bios::boot(&world.kit.qemu, &Disk::new(&socket, 1), Duration::from_secs(60))?;
        ensure!(printed == text, "the boot sector printed {printed:?}\n{}", server.log());
        Ok(())
    };
    boot()?;
    let mut written = vec![0; bios::SECTOR];
    file.read_exact_at(&mut written, 2 * 512).context("cannot read the image")?;
    ensure!(written == sectors[bios::SECTOR..], "the BIOS's write did not arrive");
    let guest = Guest::new(&world.kit).disk(Disk::new(&socket, 4));
    guest.run("fio_verify --name=v --filename=/dev/vda --offset=1m --size=4m", LIMIT)?.ok()?;
    boot()
}
