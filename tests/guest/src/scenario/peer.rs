//! The control for all others: the same guest on a server that is not ours.

use std::fs::File;
use std::time::Duration;

use crate::bios;
use crate::failure::{Context, Result, check};
use crate::machine::{Disk, Guest};
use crate::scenario::World;
use crate::server::StorageDaemon;

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
    check!(transcript.value("queues")? == "2", "queues: {}", transcript.report());
    check!(transcript.value("bytes")? == size.to_string(), "size: {}", transcript.report());
    Ok(())
}

pub(crate) fn bios(_: &World) -> Result<()> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let image = folder.path().join("disk.img");
    let mut contents = bios::boot_sectors("read by SeaBIOS");
    contents.resize(1 << 20, 0);
    std::fs::write(&image, &contents).context("cannot write the image")?;
    let server = StorageDaemon::start(folder.path(), &image, 1)?;
    let text = bios::boot(&Disk::new(&server.socket, 1), Duration::from_secs(60))?;
    check!(text == "read by SeaBIOS", "the boot sector printed {text:?}");
    Ok(())
}
