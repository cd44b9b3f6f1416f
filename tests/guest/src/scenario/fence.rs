//! Who may do what: persistent reservations and masks.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::fc::expect;
use crate::machine::{Guest, Transcript};
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
            # The disk of one that was found comes some time after it.
            [ -z \"$there\" ] || within 60 has_disk 0 $lun
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

/// What both of two hosts have: two paths to one LUN, which fail in turn, and keys for both. What a fence agent does, by the same program.
pub(super) const PATHS: &str = "
    paths() {
        within 60 has_disk 0 0 0
        within 60 has_disk 0 0 1
        sgs=\"/dev/$(sg_of 0 0 0) /dev/$(sg_of 0 0 1)\"
        disks=\"/dev/$(disk_of 0 0 0) /dev/$(disk_of 0 0 1)\"
    }
    # By the first path that takes it: an attention, or a path that is gone, is no answer.
    persist() {
        for attempt in 1 2 3; do
            for sg in $sgs; do
                if sg_persist \"$@\" $sg >/tmp/persist 2>&1; then return; fi
            done
        done
        cat /tmp/persist
        fail \"sg_persist $*\"
    }
    register() {
        for sg in $sgs; do
            within 20 sg_persist --out --register-ignore --param-sark=$1 --param-aptpl $sg
        done
    }
    # The host that is fenced writes here, wherever it gets through, a megabyte from the 16th on.
    # Where no path reads for long, that is said as what it is: what is told in its place looks like something else that was written.
    theirs() {
        for attempt in 1 2 3 4 5 6 7 8 9 10; do
            for disk in $disks; do
                if dd if=$disk of=/tmp/read bs=64k count=16 skip=256 iflag=direct 2>/dev/null; then
                    md5sum </tmp/read
                    return
                fi
            done
            sleep 1
        done
        fail 'no path reads'
    }
    # Whether that is written to while the other host goes on, over paths that go and come. In the first round nobody has shut it out, so it must be.
    behind_the_fence() {
        behind=$(theirs) || fail \"round $round: $behind\"
        step fenced.$round
        written=
        for look in 1 2 3 4; do
            sleep 1
            now=$(theirs) || fail \"round $round: $now\"
            [ \"$behind\" = \"$now\" ] || written=yes
        done
        if [ $round -eq 0 ]; then
            [ -n \"$written\" ] || fail 'nothing is written where there is no fence'
        else
            [ -z \"$written\" ] || fail \"round $round: written behind the fence\"
        fi
        step looked.$round
        now=$(theirs) || fail \"round $round: $now\"
        [ $round -eq 0 ] || [ \"$behind\" = \"$now\" ] || fail \"round $round: written behind the fence\"
    }
    grows() { [ $(wc -l <$1) -ge $2 ]; }
    # The other side of it: the writer has been refused for a while, or has gone on where nobody has shut it out.
    go_on() {
        : >/tmp/good
        : >/tmp/bad
        if [ $round -eq 0 ]; then within 60 grows /tmp/good 2; else within 60 grows /tmp/bad 6; fi
    }";

/// The host that fences, round by round; but for the first one.
const SCRIPT_FENCER: &str = "
    paths
    register 0xa1
    persist --out --reserve --param-rk=0xa1 --prout-type=5
    # A path that has just come back may have another name.
    read_keys() {
        paths
        for sg in $sgs; do
            if sg_persist --in --read-keys $sg >/tmp/keys 2>&1; then return; fi
        done
        return 1
    }
    step reserved
    round=0
    while [ $round -lt $ROUNDS ]; do
        step victim-writes.$round
        [ $round -eq 0 ] || persist --out --preempt-abort --param-rk=0xa1 --param-sark=0xb2 --prout-type=5
        behind_the_fence
        within 20 read_keys
        echo keys.$round=$(grep -o '0x[0-9a-f]*$' /tmp/keys | sort -u | tr '\\n' ' ')
        step ended.$round
        round=$((round + 1))
        paths
    done
    echo behind=$behind";

/// The host that is fenced. It writes all the time, by one path after the other, from before it is fenced until it is let in again.
const SCRIPT_VICTIM: &str = "
    paths
    writer() {
        while [ ! -e /tmp/over ]; do
            for disk in $disks; do
                if [ -b $disk ] && dd if=/dev/urandom of=$disk bs=64k count=16 seek=256 oflag=direct 2>/dev/null; then
                    echo >>/tmp/good
                else
                    echo >>/tmp/bad
                    # The disk went just then, and something else has its name.
                    [ ! -f $disk ] || rm $disk
                fi
            done
        done
    }
    step reserved
    round=0
    while [ $round -lt $ROUNDS ]; do
        : >/tmp/good
        : >/tmp/bad
        rm -f /tmp/over
        register 0xb2
        writer &
        writer=$!
        within 60 grows /tmp/good 3
        step victim-writes.$round
        step fenced.$round
        go_on
        step looked.$round
        : >/tmp/over
        wait $writer
        echo refused.$round=$(wc -l </tmp/bad)
        step ended.$round
        round=$((round + 1))
        paths
    done";

/// Another boot of both, with other processes on the host: the victim has not been let in.
const SCRIPT_FENCER_STILL: &str = "
    paths
    behind=$(theirs) || fail \"$behind\"
    step booted
    step tried
    now=$(theirs) || fail \"$now\"
    [ \"$behind\" = \"$now\" ] || fail 'written behind the fence'
    echo behind=$behind";
const SCRIPT_VICTIM_STILL: &str = "
    paths
    step booted
    for disk in $disks $disks; do
        if dd if=/dev/urandom of=$disk bs=64k count=16 seek=256 oflag=direct; then fail 'the fenced host wrote'; fi
    done
    step tried";

pub(super) const HOSTS_ROUNDS: u32 = 5;

/// The keys that are left after a round.
pub(super) fn keys_left(round: u32) -> &'static str {
    if round == 0 { "0xa1 0xb2" } else { "0xa1" }
}

/// Two guests that meet at the steps of the same name. Whoever comes last may have something done for both first.
struct Meeting<F> {
    here: Mutex<Here<F>>,
    changed: Condvar,
}

struct Here<F> {
    /// By step: how many have come. One more when it is done.
    counts: HashMap<String, u32>,
    both: F,
    /// One of them comes no more.
    is_over: bool,
}

impl<F: FnMut(&str) -> Result<()>> Meeting<F> {
    fn new(both: F) -> Meeting<F> {
        let here = Here { counts: HashMap::new(), both, is_over: false };
        Meeting { here: Mutex::new(here), changed: Condvar::new() }
    }

    fn here(&self) -> Result<MutexGuard<'_, Here<F>>> {
        self.here.lock().map_err(|_| anyhow!("the other guest's test has panicked"))
    }

    fn meet(&self, step: &str) -> Result<()> {
        let mut here = self.here()?;
        let Here { counts, both, .. } = &mut *here;
        let count = counts.entry(step.to_owned()).or_default();
        *count += 1;
        if *count == 2 {
            both(step)?;
            *count += 1;
            self.changed.notify_all();
            return Ok(());
        }
        let waits = |here: &mut Here<F>| here.counts.get(step) != Some(&3) && !here.is_over;
        let waited = self.changed.wait_timeout_while(here, LIMIT, waits);
        let (here, _) = waited.map_err(|_| anyhow!("the other guest's test has panicked"))?;
        ensure!(here.counts.get(step) == Some(&3), "the other guest did not come to {step}");
        Ok(())
    }

    fn leave(&self) -> Result<()> {
        self.here()?.is_over = true;
        self.changed.notify_all();
        Ok(())
    }
}

/// Boots the two hosts, each with two adapters and what is in `archives` besides, and runs a script on each.
pub(super) fn two_hosts(
    world: &World,
    server: &mut Trunkline,
    archives: &[PathBuf],
    (fencer, victim): (&str, &str),
    mut both: impl FnMut(&mut Trunkline, &str) -> Result<()> + Send,
) -> Result<(Transcript, Transcript)> {
    let mut guest = |names: [&str; 2]| -> Result<_> {
        let guest = Guest::new(&world.kit).that_reconnects();
        let mut guest = archives.iter().cloned().fold(guest, Guest::archive);
        for name in names {
            guest = guest.adapter(server.scsi_adapter(name, 2)?);
        }
        Ok(guest)
    };
    let guests = (guest(["a0", "a1"])?, guest(["b0", "b1"])?);
    let script =
        |own: &str| format!("{PATHS}\n{own}").replace("$ROUNDS", &HOSTS_ROUNDS.to_string());
    let meeting = Meeting::new(|step: &str| both(server, step));
    let run = |guest: Guest<'_>, own: &str| {
        let done = guest.run_with(&script(own), LIMIT, |step, _| meeting.meet(step));
        meeting.leave()?;
        done.and_then(Transcript::ok)
    };
    std::thread::scope(|threads| {
        let other = threads.spawn(|| run(guests.1, victim));
        let one = run(guests.0, fencer);
        let other = other.join().map_err(|_| anyhow!("the second guest's test has panicked"))?;
        match (one, other) {
            (Ok(one), Ok(other)) => Ok((one, other)),
            (one, other) => {
                let text = |outcome: Result<Transcript>| match outcome {
                    Ok(transcript) => transcript.report(),
                    Err(error) => format!("{error:#}"),
                };
                Err(anyhow!("--- fencer ---\n{}\n--- victim ---\n{}", text(one), text(other)))
            }
        }
    })
}

/// Adapters of the host that fences and of the one that is fenced, two each.
const ADAPTERS: [&str; 4] = ["a0", "a1", "b0", "b1"];

/// How both hosts have their LUN, by two paths each, which can be taken away.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Paths {
    /// Virtual Fibre Channel adapters, and a mask.
    Fc,
    /// Virtual SCSI adapters, and a virtual target device on each.
    Scsi,
}

/// A LUN that both hosts have by both adapters, on a disk that is slow inside the kernel.
pub(super) fn shared(world: &World, paths: Paths) -> Result<Trunkline> {
    let mut server = Trunkline::start(&world.server)?;
    server.slow_volume("shared", 64)?;
    match paths {
        Paths::Fc => {
            server.order("port create fcs0")?;
            server.order("target create t0 --id 0 --luns 0=shared")?;
            for name in ADAPTERS {
                server.fc_adapter(name, 2)?;
            }
            let all = ADAPTERS.join(",");
            server.order(&format!("zone create z0 --members {all},t0"))?;
            server.order(&format!("mask create m0 --initiators {all} --targets t0"))?;
        }
        Paths::Scsi => {
            for name in ADAPTERS {
                server.order(&format!("adapter create {name} --kind scsi --queues 2"))?;
                give_disk(&server, name)?;
            }
        }
    }
    Ok(server)
}

/// Gives a virtual SCSI adapter the disk.
fn give_disk(server: &Trunkline, adapter: &str) -> Result<()> {
    let what = format!("--adapter {adapter} --kind disk --volume shared --lun 0");
    server.order(&format!("vtd create vtscsi-{adapter} {what}")).map(drop)
}

/// What goes wrong in each round, for both hosts: a path is gone before the fence and the data plane dies behind it, or the other way round. Another path in each round.
pub(super) struct Harm {
    paths: Paths,
    round: usize,
    /// The adapters that have no path now.
    gone: Vec<&'static str>,
}

impl Harm {
    pub(super) fn to(paths: Paths) -> Harm {
        Harm { paths, round: 0, gone: Vec::new() }
    }

    /// Does what belongs to the step.
    pub(super) fn at(&mut self, server: &mut Trunkline, step: &str) -> Result<()> {
        let gone = [ADAPTERS[self.round % 2], ADAPTERS[2 + self.round / 2 % 2]];
        match (step.split('.').next(), self.round % 2) {
            (Some("victim-writes"), 0) | (Some("fenced"), 1) => self.take(server, &gone),
            (Some("victim-writes"), _) | (Some("fenced"), _) => server.crash_data_plane(),
            (Some("looked"), _) => {
                self.round += 1;
                self.take(server, &[])
            }
            _ => Ok(()),
        }
    }

    /// Takes the paths by these adapters away, and gives all others.
    fn take(&mut self, server: &Trunkline, gone: &[&'static str]) -> Result<()> {
        let before = std::mem::replace(&mut self.gone, gone.to_vec());
        if self.paths == Paths::Fc {
            let left: Vec<_> = ADAPTERS.into_iter().filter(|name| !gone.contains(name)).collect();
            let left = left.join(",");
            return server.order(&format!("mask set m0 --force --initiators {left}")).map(drop);
        }
        before.iter().try_for_each(|name| give_disk(server, name))?;
        gone.iter().try_for_each(|name| {
            server.order(&format!("vtd remove --force vtscsi-{name}")).map(drop)
        })
    }
}

/// Two hosts with paths by virtual Fibre Channel.
pub(crate) fn hosts(world: &World) -> Result<()> {
    fenced_hosts(world, Paths::Fc)
}

/// The same by virtual SCSI.
pub(crate) fn scsi_hosts(world: &World) -> Result<()> {
    fenced_hosts(world, Paths::Scsi)
}

/// Two hosts with two paths each: one shuts the other out while that writes all the time, paths of both fail and come back, and the data plane
/// is killed. A round without the fence is found out.
fn fenced_hosts(world: &World, paths: Paths) -> Result<()> {
    let mut server = shared(world, paths)?;
    let mut harm = Harm::to(paths);
    let scripts = (SCRIPT_FENCER, SCRIPT_VICTIM);
    let (first, _) =
        two_hosts(world, &mut server, &[], scripts, |server, step| harm.at(server, step))
            .map_err(|error| anyhow!("{error:#}\n{}", server.log()))?;
    for round in 0..HOSTS_ROUNDS {
        let keys = first.value(&format!("keys.{round}"))?.trim();
        ensure!(keys == keys_left(round), "round {round}: keys {keys}\n{}", first.report());
    }
    server.crash_everything()?;
    let scripts = (SCRIPT_FENCER_STILL, SCRIPT_VICTIM_STILL);
    let (second, _) = two_hosts(world, &mut server, &[], scripts, |_, _| Ok(()))
        .map_err(|error| anyhow!("{error:#}\n{}", server.log()))?;
    expect(&second, &[("behind", first.value("behind")?)])
}
