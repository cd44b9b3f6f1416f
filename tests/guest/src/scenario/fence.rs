//! Who may do what: persistent reservations and masks.

use std::time::Duration;

use super::fc::expect;
use crate::machine::Guest;
use crate::scenario::World;
use crate::trunkline::Trunkline;
use anyhow::{Result, anyhow, ensure};

const LIMIT: Duration = Duration::from_secs(900);

/// Two nodes, each with a path of its own: both write under a reservation for registrants, then one fences the other, which is
/// writing just then.
const SCRIPT_FENCE: &str = "
    within 60 has_disk 0 0 0
    within 60 has_disk 0 0 1
    ours=/dev/$(sg_of 0 0 0) theirs=/dev/$(sg_of 0 0 1)
    our_disk=/dev/$(disk_of 0 0 0) their_disk=/dev/$(disk_of 0 0 1)
    sg_persist --out --register-ignore --param-sark=0xa1 --param-aptpl $ours
    sg_persist --out --register-ignore --param-sark=0xb2 --param-aptpl $theirs
    sg_persist --out --reserve --param-rk=0xa1 --prout-type=5 $ours
    dd if=/dev/urandom of=$our_disk bs=64k count=16 oflag=direct
    dd if=/dev/urandom of=$their_disk bs=64k count=16 seek=16 oflag=direct
    fio --name=victim --thread --filename=$their_disk --offset=32m --size=16m --rw=randwrite --bs=4k --direct=1 \\
        --ioengine=libaio --iodepth=16 --time_based --runtime=60 >/tmp/victim 2>&1 &
    victim=$!
    sleep 2
    kill -0 $victim || { cat /tmp/victim; fail 'the victim was not writing'; }
    sg_persist --out --preempt-abort --param-rk=0xa1 --param-sark=0xb2 --prout-type=5 $ours
    if wait $victim; then cat /tmp/victim; fail 'the fenced node went on writing'; fi
    fenced";

/// What holds from then on.
const FENCED: &str = "
    fenced() {
        before=$(dd if=$our_disk bs=64k count=1 skip=512 iflag=direct | md5sum)
        if dd if=/dev/zero of=$their_disk bs=64k count=1 seek=512 oflag=direct; then fail 'the fenced node wrote'; fi
        if sg_unmap --lba=0 --num=8 --force $theirs; then fail 'the fenced node unmapped'; fi
        if sg_raw -s 512 -i /dev/zero $theirs 2a 00 00 00 00 00 00 00 01 00; then fail 'the fenced node wrote by sg'; fi
        [ \"$before\" = \"$(dd if=$our_disk bs=64k count=1 skip=512 iflag=direct | md5sum)\" ] || fail 'it was written'
        # It may read, and the others may write.
        dd if=$their_disk of=/dev/null bs=64k count=16 iflag=direct
        dd if=/dev/urandom of=$our_disk bs=64k count=16 oflag=direct
        echo keys=$(sg_persist --in --read-keys $ours | grep -o '0x[0-9a-f]*$' | tr '\\n' ' ')
        sg_persist --in --read-full-status $ours
    }";

/// A later boot, with other processes on the host.
const SCRIPT_STILL: &str = "
    within 60 has_disk 0 0 0
    within 60 has_disk 0 0 1
    ours=/dev/$(sg_of 0 0 0) theirs=/dev/$(sg_of 0 0 1)
    our_disk=/dev/$(disk_of 0 0 0) their_disk=/dev/$(disk_of 0 0 1)
    fenced
    # The way back: it registers anew.
    sg_persist --out --register-ignore --param-sark=0xb2 --param-aptpl $theirs
    dd if=/dev/urandom of=$their_disk bs=64k count=16 oflag=direct
    sg_persist --out --clear --param-rk=0xa1 $ours
    echo cleared=$(sg_persist --in --read-keys $ours | grep -c '^ *0x')";

/// The fenced node is refused, also after both processes of the server were killed.
pub(crate) fn fence(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    server.volume("shared", "64MiB", &[])?;
    server.order("port create fcs0")?;
    server.order("target create t0 --id 0 --luns 0=shared")?;
    let mut adapters = Vec::new();
    for name in ["vfchost0", "vfchost1"] {
        adapters.push(server.fc_adapter(name, 2)?);
    }
    server.order("zone create z0 --members vfchost0,vfchost1,t0")?;
    server.order("mask create m0 --initiators vfchost0,vfchost1 --targets t0")?;
    let guest = |server: &mut Trunkline, script: &str| -> Result<_> {
        let mut guest = Guest::new(&world.kit);
        for name in ["vfchost0", "vfchost1"] {
            guest = guest.adapter(server.scsi_adapter(name, 2)?);
        }
        let script = format!("{FENCED}\n{script}");
        let done = guest.run(&script, LIMIT).and_then(|transcript| transcript.ok());
        done.map_err(|error| anyhow!("{error:#}\n{}", server.log()))
    };
    let first = guest(&mut server, SCRIPT_FENCE)?;
    expect(&first, &[("keys", "0xa1")])?;
    server.crash_everything()?;
    let second = guest(&mut server, SCRIPT_STILL)?;
    expect(&second, &[("keys", "0xa1"), ("cleared", "0")])
}

/// LUNs of the target, of which masks give some.
const MASKED_LUNS: u32 = 6;

const MASK_ROUNDS: u32 = 30;

/// The LUNs that a round gives: always 0, of the others what the round's number says.
fn given(round: u32) -> Vec<u32> {
    let mixed = (round + 1).wrapping_mul(0x9e37_79b9) >> 16;
    (0..MASKED_LUNS).filter(|lun| *lun == 0 || mixed >> lun & 1 == 1).collect()
}

/// In each round the host changes the mask. From the moment that it is changed REPORT LUNS must name exactly what is given, and an
/// address that is guessed must lead nowhere. A disk that was there and is masked now answers no command.
const SCRIPT_MASK: &str = "
    within 60 has_disk 0 0
    sg=/dev/$(sg_of 0 0)
    host=$(ls /sys/class/scsi_host | head -n 1)
    fio --name=load --thread --filename=/dev/$(disk_of 0 0) --size=32m --rw=randrw --bs=4k --direct=1 --ioengine=libaio \\
        --iodepth=4 --time_based --runtime=600 >/tmp/load 2>&1 &
    load=$!
    round=0
    while [ $round -lt $ROUNDS ]; do
        step $round
        seen=
        for lun in $(sg_luns --quiet $sg | tr -d ' ' | cut -c 4); do seen=\"$seen$lun \"; done
        echo luns.$round=$seen
        reached=
        for lun in 0 1 2 3 4 5 6 7 8; do
            echo 0 0 $lun >/sys/class/scsi_host/$host/scan || true
            there=$(sg_of 0 $lun)
            if [ -n \"$there\" ] && dd if=/dev/$(disk_of 0 $lun) of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; then
                reached=\"$reached$lun \"
            fi
        done
        echo reached.$round=$reached
        kill -0 $load || { cat /tmp/load; fail 'the load ended'; }
        round=$((round + 1))
    done
    kill $load
    wait $load || true";

/// Masks change at random under I/O.
pub(crate) fn mask(world: &World) -> Result<()> {
    let mut server = Trunkline::start(&world.server)?;
    let mut luns = Vec::new();
    for lun in 0..MASKED_LUNS {
        server.volume(&format!("v{lun}"), "64MiB", &[])?;
        luns.push(format!("{lun}=v{lun}"));
    }
    server.order("port create fcs0")?;
    let adapter = server.fc_adapter("vfchost0", 2)?;
    server.order(&format!("target create t0 --id 0 --luns {}", luns.join(",")))?;
    server.order("zone create z0 --members vfchost0,t0")?;
    server.order("mask create m0 --initiators vfchost0 --targets t0 --luns 0")?;
    let text =
        |luns: &[u32], with: &str| luns.iter().map(u32::to_string).collect::<Vec<_>>().join(with);
    let script = SCRIPT_MASK.replace("$ROUNDS", &MASK_ROUNDS.to_string());
    let guest = Guest::new(&world.kit).adapter(adapter);
    let transcript = guest.run_with(&script, LIMIT, |step, _| {
        let round = step.parse().map_err(|_| anyhow!("unexpected step {step}"))?;
        server.order(&format!("mask set m0 --force --luns {}", text(&given(round), ","))).map(drop)
    })?;
    let transcript = transcript.ok()?;
    for round in 0..MASK_ROUNDS {
        let wanted = text(&given(round), " ");
        for what in ["luns", "reached"] {
            let seen = transcript.value(&format!("{what}.{round}"))?.trim();
            ensure!(
                seen == wanted,
                "round {round}: {what} {seen}, not {wanted}\n{}",
                transcript.report()
            );
        }
    }
    Ok(())
}
