//! What a guest sees of a virtual Fibre Channel adapter in ordinary life.

use std::time::Duration;

use crate::conformance::{Explained, Results};
use crate::machine::{Guest, Transcript};
use crate::scenario::World;
use crate::trunkline::Trunkline;
use anyhow::{Result, anyhow, ensure};

const LIMIT: Duration = Duration::from_secs(900);

/// Fails unless the guest reported exactly these values.
pub(super) fn expect(transcript: &Transcript, values: &[(&str, &str)]) -> Result<()> {
    for (key, value) in values {
        let seen = transcript.value(key)?;
        ensure!(seen == *value, "{key} is {seen}, not {value}\n{}", transcript.report());
    }
    Ok(())
}

/// Everything of each LUN, then the commands of an administrator.
const SCRIPT_SEE: &str = "
    within 60 has_disk 0 0
    within 60 has_disk 0 5
    # Linux counts LUNs from 256 on with their addressing method: 300 is 0x412c.
    within 60 has_disk 1 $((0x412c))
    lsscsi -g
    echo units=$(lsscsi | wc -l)
    echo targets=$(lsscsi | cut -d: -f3 | sort -u | tr '\\n' ' ')
    about() {
        disk=$(disk_of $1 $2) sg=/dev/$(sg_of $1 $2)
        sg_inq $sg >/tmp/inq
        echo $3.vendor=$(sed -n 's/ Vendor identification: *//p' /tmp/inq)
        echo $3.product=$(sed -n 's/ Product identification: *//p' /tmp/inq)
        echo $3.serial=$(sed -n 's/ Unit serial number: *//p' /tmp/inq)
        echo $3.naa=$(sg_vpd --page=di_lu --quiet $sg | grep -o '0x[0-9a-f]*' | head -n 1)
        echo $3.port=$(sg_vpd --page=di_port --quiet $sg | grep -o '0x[0-9a-f]*' | head -n 1)
        echo $3.bytes=$(blockdev --getsize64 /dev/$disk)
        echo $3.capacity=$(sg_readcap --brief --16 $sg)
        echo $3.block=$(cat /sys/block/$disk/queue/logical_block_size)
        echo $3.ro=$(cat /sys/block/$disk/ro)
        echo $3.luns=$(sg_luns --quiet $sg | tr -d ' ' | tr '\\n' ' ')
        echo $3.pages=$(sg_vpd --raw --page=0 $sg | hexdump -v -e '1/1 \"%02x\"')
        echo $3.queues=$(queues $disk)
    }
    about 0 0 first
    about 0 5 second
    about 1 $((0x412c)) third
    sg=/dev/$(sg_of 0 0) disk=$(disk_of 0 0)
    echo wellknown=$(sg_luns --select=2 --quiet $sg | grep -c c101)
    sg_readcap $sg
    sg_rtpg --decode $sg
    sg_opcodes $sg | wc -l
    for page in bl bdc lbpv; do sg_vpd --page=$page $sg; done
    sg_persist --in --report-capabilities $sg
    sg_persist --out --register --param-sark=0x1234 $sg
    sg_persist --out --reserve --param-rk=0x1234 --prout-type=1 $sg
    echo holder=$(sg_persist --in --read-reservation $sg | sed -n 's/ *Key=//p')
    sg_persist --out --release --param-rk=0x1234 --prout-type=1 $sg
    sg_persist --out --register --param-rk=0x1234 $sg
    dd if=/dev/urandom of=/dev/$disk bs=64k count=16 oflag=direct
    sg_unmap --lba=0 --num=256 --force $sg
    [ $(dd if=/dev/$disk bs=64k count=2 iflag=direct | tr -d '\\0' | wc -c) = 0 ] || fail 'what was unmapped is still there'
    sg_reset --device $sg
    # What a reset leaves to be told is told once.
    sg_turs $sg || sg_turs $sg
    fio_verify --name=v --filename=/dev/$disk --size=8m";

/// Two target ports in one zone, with three LUNs; a third LUN is masked, and a third target is not zoned.
pub(crate) fn see(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    let naa = |digit: u8| format!("30000000000000{digit:02x}");
    for (volume, digit, block) in
        [("one", 1, "512"), ("two", 2, "4096"), ("three", 3, "512"), ("hidden", 4, "512")]
    {
        let (naa, serial) = (naa(digit), format!("SERIAL-{digit}"));
        let more = ["--block-size", block, "--naa", &naa, "--unit-serial", &serial];
        server.volume(volume, "64MiB", &more)?;
    }
    server.order("volume set three --read-only true")?;
    server.order("port create fcs0")?;
    let adapter = server.fc_adapter("vfchost0", 2)?;
    server.order("target create t0 --id 0 --luns 0=one,5=two,7=hidden --wwpn 5005076300000001")?;
    server.order("target create t1 --id 1 --luns 300=three --wwpn 5005076300000002")?;
    server.order("target create t2 --id 2 --luns 0=hidden")?;
    server.order("zone create z0 --members vfchost0,t0,t1")?;
    server.order("mask create m0 --initiators vfchost0 --targets t0 --luns 0,5")?;
    server.order("mask create m1 --initiators vfchost0 --targets t1,t2")?;
    let transcript = Guest::new(&world.kit).adapter(adapter).run(SCRIPT_SEE, LIMIT)?.ok()?;
    expect(
        &transcript,
        &[
            ("units", "3"),
            ("targets", "0 1"),
            ("first.vendor", "TRUNKLIN"),
            ("first.product", "VIRTUAL DISK"),
            ("first.serial", "SERIAL-1"),
            ("first.naa", "0x3000000000000001"),
            ("first.port", "0x5005076300000001"),
            ("first.bytes", "67108864"),
            ("first.block", "512"),
            ("first.ro", "0"),
            ("first.capacity", "0x20000 0x200"),
            ("first.luns", "0000000000000000 0005000000000000"),
            ("first.pages", "0000000700808386b0b1b2"),
            ("first.queues", "2"),
            ("second.serial", "SERIAL-2"),
            ("second.naa", "0x3000000000000002"),
            ("second.block", "4096"),
            ("second.capacity", "0x4000 0x1000"),
            ("third.serial", "SERIAL-3"),
            ("third.port", "0x5005076300000002"),
            ("third.luns", "412c000000000000"),
            ("third.ro", "1"),
            ("wellknown", "1"),
            ("holder", "0x1234"),
        ],
    )
}

/// Each step is something that the host does; what comes after it is what the guest then sees, by itself.
const SCRIPT_HOTPLUG: &str = "
    within 60 has_disk 0 0
    bytes() { [ $(blockdev --getsize64 /dev/$(disk_of $1 $2)) = $3 ]; }
    step add
    within 60 has_disk 0 1
    fio_verify --name=added --filename=/dev/$(disk_of 0 1) --size=4m
    step resize
    within 60 bytes 0 0 134217728
    fio_verify --name=grown --filename=/dev/$(disk_of 0 0) --offset=64m --size=4m
    step remove
    within 60 no_disk 0 1
    step zone
    within 60 has_disk 1 0
    fio_verify --name=zoned --filename=/dev/$(disk_of 1 0) --size=4m
    step unzone
    within 60 no_disk 1 0
    bytes 0 0 134217728
    # The other port reaches the second target only.
    step remap
    within 60 has_disk 1 0
    within 60 no_disk 0 0
    fio_verify --name=remapped --filename=/dev/$(disk_of 1 0) --size=4m
    step back
    within 60 has_disk 0 0
    within 60 no_disk 1 0
    fio_verify --name=back --filename=/dev/$(disk_of 0 0) --size=4m
    lsscsi";

/// LUNs come, grow and go, zones change and the adapter is remapped while the guest runs.
pub(crate) fn hotplug(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    for volume in ["one", "two", "three"] {
        server.volume(volume, "64MiB", &[])?;
    }
    server.order("port create fcs0")?;
    server.order("port create fcs1")?;
    let adapter = server.fc_adapter("vfchost0", 2)?;
    server.order("target create t0 --id 0 --luns 0=one,1=two --ports fcs0")?;
    server.order("target create t1 --id 1 --luns 0=three")?;
    server.order("zone create z0 --members vfchost0,t0")?;
    server.order("mask create m0 --initiators vfchost0 --targets t0,t1 --luns 0")?;
    let guest = Guest::new(&world.kit).adapter(adapter);
    let transcript = guest.run_with(SCRIPT_HOTPLUG, LIMIT, |step, _| {
        let orders: &[&str] = match step {
            "add" => &["mask set m0 --luns 0-1"],
            "resize" => &["volume resize one 128MiB"],
            "remove" => &["mask set m0 --luns 0 --force"],
            "zone" => &["zone set z0 --members vfchost0,t0,t1"],
            "unzone" => &["zone set z0 --members vfchost0,t0 --force"],
            "remap" => &["zone set z0 --members vfchost0,t0,t1", "port map vfchost0 fcs1 --force"],
            "back" => {
                &["zone set z0 --members vfchost0,t0 --force", "port map vfchost0 fcs0 --force"]
            }
            _ => return Err(anyhow!("unexpected step {step}")),
        };
        orders.iter().try_for_each(|order| server.order(order).map(drop))
    })?;
    transcript.ok().map(drop)
}

/// On a disk with blocks of 512 bytes and two paths.
const EXPLAINED_512: &[Explained] = &[
    Explained {
        test: "GetLBAStatus.UnmapSingle",
        why: "it asks for the status of block i + 1 and expects that of i plus the blocks of a physical block, which is the \
              same only where a physical block has one",
    },
    UNTIL_END,
    Explained {
        test: "MultipathIO.Simple",
        why: "the second path is told MODE PARAMETERS CHANGED by its first command, as SPC-4 wants it after the MODE SELECT \
              of ModeSense6.Control-SWP on the first path; the test takes it for an error",
    },
    Explained {
        test: "MultipathIO.CompareAndWrite",
        why: "it fills blocks 0 to 255 and compares 0 to 256; in block 256 is what an earlier test wrote",
    },
];

/// On a disk with blocks of 4096 bytes and one path.
const EXPLAINED_4096: &[Explained] = &[UNTIL_END];

const UNTIL_END: Explained = Explained {
    test: "WriteSame10.UnmapUntilEnd",
    why: "it unmaps with WRITE SAME and a block of FFh, and expects zeroes; unmapped blocks read as zeroes, so these must be \
          written (SBC-3, 4.7.3.4.4)",
};

/// libiscsi's tests: how many of its 230 pass at least.
const CONFORMANCE_LEAST: usize = 223;

/// libiscsi's tests on a disk with two paths, and on one with large blocks.
pub(crate) fn conformance(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    server.volume("small", "64MiB", &[])?;
    server.volume("large", "128MiB", &["--block-size", "4096"])?;
    server.order("port create fcs0")?;
    let first = server.fc_adapter("vfchost0", 2)?;
    let second = server.fc_adapter("vfchost1", 2)?;
    server.order("target create t0 --id 0 --luns 0=small,1=large")?;
    server.order("zone create z0 --members vfchost0,vfchost1,t0")?;
    server.order("mask create m0 --initiators vfchost0,vfchost1 --targets t0")?;
    let script = "
        within 60 has_disk 0 1 0
        within 60 has_disk 0 1 1
        for adapter in 0 1; do
            # Nothing is pending when the tests begin.
            for lun in 0 1; do sg_turs --number=2 /dev/$(sg_of 0 $lun $adapter) || true; done
        done
        conformance /dev/$(sg_of 0 0 0) /dev/$(sg_of 0 0 1)
        conformance /dev/$(sg_of 0 1 0)";
    let guest = Guest::new(&world.kit).adapter(first).adapter(second);
    let transcript = guest.run(script, LIMIT)?.ok()?;
    let results = Results::of(&transcript)?;
    let [small, large] = results.as_slice() else {
        return Err(anyhow!("{} results\n{}", results.len(), transcript.report()));
    };
    small.judge(CONFORMANCE_LEAST, EXPLAINED_512)?;
    large.judge(CONFORMANCE_LEAST, EXPLAINED_4096)
}

/// Filesystems on two LUNs with verified data on every queue, trimmed, while the control plane is killed.
const SCRIPT_LOAD: &str = "
    within 60 has_disk 0 0
    within 60 has_disk 0 1
    for lun in 0 1; do
        disk=$(disk_of 0 $lun)
        echo queues.$lun=$(queues $disk)
        mkfs.ext4 -q /dev/$disk
        mkdir -p /mnt/$lun
        mount -t ext4 /dev/$disk /mnt/$lun
    done
    jobs=
    for lun in 0 1; do
        fio --name=v$lun --thread --verify=crc32c --verify_fatal=1 --do_verify=1 --ioengine=libaio --direct=1 --bs=4k \\
            --iodepth=16 --rw=randwrite --randrepeat=1 --numjobs=2 --filename_format=/mnt/$lun/f.\\$jobnum --size=32m \\
            --loops=2 >/tmp/fio.$lun 2>&1 &
        jobs=\"$jobs $!\"
    done
    sleep 2
    step fault
    for job in $jobs; do watch $job $(disk_of 0 0) || { cat /tmp/fio.*; fail 'fio failed'; }; done
    for lun in 0 1; do
        rm /mnt/$lun/f.1
        sync
        fstrim -v /mnt/$lun
        umount /mnt/$lun
        fsck.ext4 -fn /dev/$(disk_of 0 $lun)
    done";

/// Several queues and LUNs under load, and the control plane killed meanwhile.
pub(crate) fn load(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    let slow = ["--delay-us-min", "200", "--delay-us-max", "5000", "--delay-seed", "7"];
    server.volume("one", "128MiB", &[])?;
    server.volume("two", "128MiB", &slow)?;
    server.order("port create fcs0")?;
    let adapter = server.fc_adapter("vfchost0", 4)?;
    server.order("target create t0 --id 0 --luns 0=one,1=two")?;
    server.order("zone create z0 --members vfchost0,t0")?;
    server.order("mask create m0 --initiators vfchost0 --targets t0")?;
    let guest = Guest::new(&world.kit).possible_cpus(4).adapter(adapter);
    let transcript = guest.run_with(SCRIPT_LOAD, LIMIT, |_, _| {
        server.crash_control_plane()?;
        server.crash_control_plane()
    })?;
    let transcript = transcript.ok()?;
    for sign in ["I/O error", "is not a head", "hung", "aborting"] {
        ensure!(!transcript.console.contains(sign), "`{sign}`\n{}", transcript.report());
    }
    expect(&transcript, &[("queues.0", "4"), ("queues.1", "4")])
}
