//! What a guest sees of a virtual SCSI adapter: a disk, and an optical drive whose media change.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::fc::expect;
use crate::command;
use crate::machine::Guest;
use crate::scenario::World;
use crate::trunkline::Trunkline;
use anyhow::{Context as _, Result, anyhow, ensure};

const LIMIT: Duration = Duration::from_secs(900);

const SCRIPT: &str = "
    within 60 has_disk 0 0
    disk=$(disk_of 0 0)
    drive() { ls $(scsi_device 0 1)/block; }
    within 60 test -e $(scsi_device 0 1)/block
    cd=/dev/$(drive) sg=/dev/$(sg_of 0 1)
    lsscsi -g
    mkfs.ext4 -q /dev/$disk
    mount -t ext4 /dev/$disk /mnt
    fio_verify --name=v --filename=/mnt/data --size=8m
    umount /mnt
    sum() {
        within 60 mount -t iso9660 -o ro $cd /mnt
        echo $1=$(cat /mnt/*.dat | md5sum | cut -d' ' -f1)
        umount /mnt
    }
    empty() { ! sg_turs $sg 2>/dev/null; }
    within 60 empty
    if mount -t iso9660 -o ro $cd /mnt; then fail 'an empty drive was mounted'; fi
    step load
    sum first
    if dd if=/dev/zero of=$cd bs=2k count=1; then fail 'a read-only medium was written'; fi
    step exchange
    sum second
    step unload
    within 60 empty
    step load
    sum again
    # A mounted medium is locked: the host is refused unless it insists.
    mount -t iso9660 -o ro $cd /mnt
    step locked
    umount /mnt
    # The guest ejects; what lies in the tray is there again when it closes the tray, and the host may take it out of there.
    sg_start --eject $sg
    within 60 empty
    sg_start --load $sg
    sum tray
    sg_start --eject $sg
    within 60 empty
    step unload
    sg_start --load $sg || true
    empty || fail 'the medium is still in the tray'
    step exchange
    sum last";

/// A disk and a drive: media are loaded, exchanged, unloaded by the host and ejected by the guest.
pub(crate) fn media(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    let mut sums = Vec::new();
    for (name, byte) in [("first", 1_u8), ("second", 2)] {
        let (folder, iso) =
            (server.path(&format!("{name}.d")), server.path(&format!("{name}.iso")));
        fs::create_dir(&folder).context("cannot make a folder")?;
        let file = folder.join("file.dat");
        fs::write(&file, vec![byte; 300_000]).context("cannot write a file")?;
        let sum = command::text(Command::new("md5sum").arg(&file))?;
        sums.push(sum.split_whitespace().next().unwrap_or_default().to_owned());
        command::output(
            Command::new("xorrisofs").args(["-quiet", "-J", "-R", "-o"]).arg(&iso).arg(&folder),
        )?;
        server.order(&format!("media create {name} --path {}", iso.display()))?;
    }
    server.volume("disk", "64MiB", &[])?;
    server.order("adapter create vhost0 --kind scsi --queues 2")?;
    server.order("vtd create vtscsi0 --adapter vhost0 --kind disk --volume disk --lun 0")?;
    server.order("vtd create vtopt0 --adapter vhost0 --kind optical --lun 1")?;
    let guest = Guest::new(&world.kit).adapter(server.scsi_adapter("vhost0", 2)?);
    let mut loads = 0;
    let transcript = guest.run_with(SCRIPT, LIMIT, |step, _| match step {
        "load" => {
            loads += 1;
            server.order("media load first vtopt0").map(drop)
        }
        "exchange" => server.order("media load second vtopt0").map(drop),
        "unload" => server.order("media unload vtopt0").map(drop),
        "locked" => {
            let outcome = server.order("media unload vtopt0");
            ensure!(outcome.is_err(), "a medium that the guest has locked was unloaded");
            Ok(())
        }
        _ => Err(anyhow!("unexpected step {step}")),
    })?;
    let transcript = transcript.ok()?;
    ensure!(loads == 2, "{}", transcript.report());
    expect(
        &transcript,
        &[
            ("first", &sums[0]),
            ("second", &sums[1]),
            ("again", &sums[0]),
            ("tray", &sums[0]),
            ("last", &sums[1]),
        ],
    )
}
