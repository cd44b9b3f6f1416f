//! Fences as clusters put them up: by a fence agent and by multipath-tools, on devices of several paths.

use anyhow::{Result, anyhow, ensure};

use super::fence::{HOSTS_ROUNDS, Harm, Paths, keys_left, shared, two_hosts};
use crate::packages;
use crate::scenario::World;

/// One device of both paths, by multipathd, which takes a path in again when it has come back. `$1` is the host's key.
const MULTIPATH: &str = "
    node=/dev/dm-0
    both_paths() { [ $(ls /sys/block/dm-0/slaves 2>/dev/null | wc -l) -eq 2 ]; }
    all_paths() {
        paths
        within 60 both_paths
    }
    multipathing() {
        paths
        mkdir -p /run /etc/multipath
        cat >/etc/multipath.conf <<END
defaults {
    find_multipaths no
    path_selector \"round-robin 0\"
    polling_interval 1
    max_polling_interval 1
    no_path_retry fail
    reservation_key 0x$1
}
END
        /lib/systemd/systemd-udevd --daemon
        udevadm trigger --action=add --subsystem-match=block
        udevadm settle
        multipathd
        all_paths
    }
    # A path that is gone is found out by what is sent there.
    noticed() { for look in 1 2 3; do dd if=$node of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null || true; done; }
    by_agent() {
        noticed
        fence_scsi --action=$1 --key=$2 --devices=$node --aptpl >/tmp/agent 2>&1 || { cat /tmp/agent; return 1; }
    }
    read_keys() { mpathpersist --in --read-keys $node >/tmp/keys 2>&1; }
    by_multipath() { mpathpersist --out \"$@\" $node >/tmp/agent 2>&1 || { cat /tmp/agent; return 1; }; }
    # fence_scsi and mpathpersist in turn.
    by_mpathpersist() { [ $((round % 2)) -eq 0 ]; }";

/// The host that fences. In the first round it does not: then what it looks for must be there.
const SCRIPT_FENCER: &str = "
    multipathing a1
    within 20 by_agent on a1
    within 20 by_multipath --register-ignore --param-sark=0xa1 --param-aptpl
    step reserved
    round=0
    while [ $round -lt $ROUNDS ]; do
        step victim-writes.$round
        if [ $round -eq 0 ]; then
            :
        elif by_mpathpersist; then
            within 20 by_multipath --preempt-abort --param-rk=0xa1 --param-sark=0xb2 --prout-type=5
        else
            within 20 by_agent off b2
        fi
        behind_the_fence
        all_paths
        within 20 read_keys
        echo keys.$round=$(grep -o '0x[0-9a-f]*$' /tmp/keys | sort -u | tr '\\n' ' ')
        step ended.$round
        round=$((round + 1))
    done";

/// The host that is fenced: it writes all the time, to the device of both paths.
const SCRIPT_VICTIM: &str = "
    multipathing b2
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
        if by_mpathpersist; then
            within 20 by_multipath --register-ignore --param-sark=0xb2 --param-aptpl
        else
            within 20 by_agent on b2
        fi
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
        all_paths
        step ended.$round
        round=$((round + 1))
    done";

/// What `fence_scsi` and `mpathpersist` put up holds, while paths of both hosts fail and come back and the data plane is killed; and a round without it is found out.
pub(crate) fn fence_agent(world: &World) -> Result<()> {
    let programs = packages::cluster(&world.kit.cache)?;
    let mut server = shared(world, Paths::Fc)?;
    let mut harm = Harm::to(Paths::Fc);
    let scripts = [SCRIPT_FENCER, SCRIPT_VICTIM].map(|script| format!("{MULTIPATH}\n{script}"));
    let scripts = (scripts[0].as_str(), scripts[1].as_str());
    let (first, second) =
        two_hosts(world, &mut server, &[programs], scripts, |server, step| harm.at(server, step))
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
