//! Fences as clusters put them up: by a fence agent, on devices of several paths.

use anyhow::{Result, anyhow, ensure};

use super::fence::{HOSTS, HOSTS_ROUNDS, keys_left, shared, two_hosts, without};
use crate::packages;
use crate::scenario::World;

/// One device of both paths. What multipathd would do is done here: a path that has gone and come back is taken in again by `remap`.
const MULTIPATH: &str = "
    table() { echo \"0 $(blockdev --getsz $1) multipath 0 0 1 1 round-robin 0 2 1 $1 1 $2 1\"; }
    map() {
        paths
        table $disks | dmsetup --noudevsync $1 shared
    }
    remap() {
        map load
        dmsetup --noudevsync resume shared
    }
    map create
    node=/dev/dm-0
    # A path that is gone is found out by what is sent there.
    noticed() { for look in 1 2 3; do dd if=$node of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null || true; done; }
    fence_agent() {
        noticed
        fence_scsi --action=$1 --key=$2 --devices=$node --aptpl >/tmp/agent 2>&1 || { cat /tmp/agent; return 1; }
    }";

/// The host that fences. In the first round it does not: then what it looks for must be there.
const SCRIPT_FENCER: &str = "
    within 20 fence_agent on a1
    step reserved
    round=0
    while [ $round -lt $ROUNDS ]; do
        step victim-writes.$round
        [ $round -eq 0 ] || within 20 fence_agent off b2
        behind_the_fence
        remap
        echo keys.$round=$(sg_persist --in --read-keys $node | grep -o '0x[0-9a-f]*$' | sort -u | tr '\\n' ' ')
        step ended.$round
        round=$((round + 1))
    done";

/// The host that is fenced: it writes all the time, to the device of both paths.
const SCRIPT_VICTIM: &str = "
    writer() {
        while [ ! -e /tmp/over ]; do
            if dd if=/dev/urandom of=$node bs=64k count=16 seek=256 oflag=direct 2>/dev/null; then
                echo >>/tmp/good
            else
                echo >>/tmp/bad
            fi
        done
    }
    step reserved
    round=0
    while [ $round -lt $ROUNDS ]; do
        : >/tmp/good
        : >/tmp/bad
        rm -f /tmp/over
        within 20 fence_agent on b2
        writer &
        writer=$!
        within 60 grows /tmp/good 3
        step victim-writes.$round
        step fenced.$round
        go_on
        step looked.$round
        : >/tmp/over
        wait $writer
        echo good.$round=$(wc -l </tmp/good)
        remap
        step ended.$round
        round=$((round + 1))
    done";

/// What `fence_scsi` puts up holds, while paths of both hosts fail and come back; and a round without it is found out.
pub(crate) fn fence_agent(world: &World) -> Result<()> {
    let programs = packages::cluster(&world.kit.cache)?;
    let mut server = shared(world)?;
    let cli = server.caller();
    let mut round = 0;
    let scripts = [SCRIPT_FENCER, SCRIPT_VICTIM].map(|script| format!("{MULTIPATH}\n{script}"));
    let (first, second) =
        two_hosts(world, &mut server, &[programs], (&scripts[0], &scripts[1]), |step| {
            let (ours, theirs) = (HOSTS[round % 2], HOSTS[2 + round / 2 % 2]);
            match step.split('.').next() {
                Some("victim-writes") if round % 2 == 0 => without(&cli, &[ours, theirs]),
                Some("fenced") if round % 2 == 1 => without(&cli, &[ours, theirs]),
                Some("looked") => {
                    round += 1;
                    without(&cli, &[])
                }
                _ => Ok(()),
            }
        })
        .map_err(|error| anyhow!("{error:#}\n{}", server.log()))?;
    for round in 0..HOSTS_ROUNDS {
        let keys = first.value(&format!("keys.{round}"))?.trim();
        ensure!(keys == keys_left(round), "round {round}: keys {keys}\n{}", first.report());
        // One may have been done before the fence, and counted behind it.
        let good: u32 = second.value(&format!("good.{round}"))?.trim().parse()?;
        ensure!((round == 0) == (good > 1), "round {round}: {good} writes were done");
    }
    Ok(())
}
