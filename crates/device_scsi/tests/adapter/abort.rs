//! Commands that end early, and commands that wait: aborts under load, reservations, few slots, little scratch memory.

use memory::random::Random;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel as pipe, sync_channel};
use std::time::Duration;

use crate::common::*;
use block::Volume;
use channel::Drain;
use device_scsi::Response;
use device_scsi::{
    AbortReason, AbortScope, AbortTarget, LunEntry, OffPath, Place, ScsiRole, Services,
};
use protocol::stats::QueueCounter;

fn far(after: Duration) -> Arc<dyn Volume> {
    Arc::new(Far { inner: ram(1 << 20), after })
}

#[test]
fn an_aborted_write_never_happens_later() {
    let client = Client::new(2);
    let volume = ram(1 << 20);
    let one = entry(&delayed(Arc::clone(&volume), 10, 400, 11));
    let setup = Setup::new(&map(&[(0, 0, &one)]));
    let mut rig = client.queue(ScsiRole::Request, &setup, 0);
    rig.ready(0, 0);
    let plain = entry(&volume);
    let mut reader = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &plain)])), 1);
    reader.ready(0, 0);
    let mut random = Random::new(77);
    let (mut ended, mut aborted) = (0, 0);
    for round in 1..=150_u64 {
        let count = 8 + random.below(24) as u32;
        for at in 0..count {
            let data = vec![(round % 250) as u8 + 1; 4096];
            rig.add(&Request::write(0, 0, at * 8, data).with_id(u64::from(at)));
        }
        rig.kick();
        std::thread::sleep(Duration::from_micros(random.below(300)));
        let scope = AbortScope {
            unit: Arc::clone(one.nexus.unit()),
            target: AbortTarget::Nexuses(vec![one.nexus.id()]),
            except: None,
            reason: AbortReason::Reset,
        };
        let left = client.channels[0].abort_all(scope).wait().unwrap();
        // Everything is answered now, and what is on the disk stays there.
        let mut answers = BTreeMap::new();
        while let Some(answer) = rig.poll() {
            answers.insert(answer.id, (answer.response, answer.status));
        }
        assert_eq!(answers.len(), count as usize, "not all were answered when the abort was");
        let reset = (Response::Reset as u8, 0);
        let reset_count = answers.values().filter(|answer| **answer == reset).count();
        assert_eq!(reset_count as u32, left, "{answers:?}");
        let before: Vec<Vec<u8>> =
            (0..count).map(|at| reader.ask(&Request::read(0, 0, at * 8, 8)).good()).collect();
        for (id, answer) in &answers {
            let bytes = &before[*id as usize];
            assert!(bytes.iter().all(|byte| *byte == bytes[0]));
            let happened = bytes[0] == (round % 250) as u8 + 1;
            match *answer {
                (0, 0) => assert!(happened),
                answer => assert_eq!(answer, reset),
            }
        }
        std::thread::sleep(Duration::from_micros(500));
        for (at, bytes) in before.iter().enumerate() {
            let after = reader.ask(&Request::read(0, 0, at as u32 * 8, 8)).good();
            assert_eq!(&after, bytes, "a write that was aborted happened later");
        }
        (ended, aborted) = (ended + answers.len() - reset_count, aborted + reset_count);
    }
    assert!(ended > 100 && aborted > 100, "{ended} {aborted}");
    assert_eq!(rig.count(QueueCounter::Aborted), aborted as u64);
}

/// Waits until a channel has taken so many commands of an I_T nexus: a kick may come after a message that was posted later.
fn until_under_way(channel: &Channel, nexus: &scsi::Nexus, count: u32) {
    let scope = AbortScope {
        unit: Arc::clone(nexus.unit()),
        target: AbortTarget::Nexuses(vec![nexus.id()]),
        except: None,
        reason: AbortReason::Aborted,
    };
    while channel.query(scope.clone()).wait() != Some(count) {
        std::thread::yield_now();
    }
}

#[test]
fn one_command_is_found_by_its_name_wherever_it_waits() {
    let client = Client::new(1);
    let one = entry(&stuck(ram(1 << 20)));
    let mut setup = Setup::new(&map(&[(0, 0, &one), (1, 3, &one)]));
    (setup.elements, setup.limits.local) = (Some(elements(4)), 4);
    let mut rig = client.queue(ScsiRole::Request, &setup, 0);
    rig.ready(0, 0);
    for id in 0..12 {
        rig.add(&Request::write(0, 0, id as u32, vec![1; 512]).with_id(id));
    }
    rig.kick();
    let scope = |id| AbortScope {
        unit: Arc::clone(one.nexus.unit()),
        target: AbortTarget::One { adapter: Arc::clone(&client.adapter), nexus: nexus_id(1), id },
        except: None,
        reason: AbortReason::Aborted,
    };
    let channel = &client.channels[0];
    // Four are with the volume; eight wait for a slot.
    until_under_way(channel, &one.nexus, 12);
    for id in [11, 2, 5, 0] {
        assert_eq!(channel.query(scope(id)).wait(), Some(1));
        assert_eq!(channel.abort_all(scope(id)).wait(), Some(1));
        let answer = rig.poll().unwrap();
        assert_eq!((answer.id, answer.response), (id, Response::Aborted as u8));
        assert_eq!(answer.residual, 512);
        assert_eq!(channel.query(scope(id)).wait(), Some(0));
        assert_eq!(channel.abort_all(scope(id)).wait(), Some(0));
    }
    let set = AbortScope { target: AbortTarget::Nexuses(vec![nexus_id(1)]), ..scope(0) };
    assert_eq!(channel.query(set.clone()).wait(), Some(8));
    let others = AbortScope { target: AbortTarget::Nexuses(vec![nexus_id(2)]), ..scope(0) };
    assert_eq!(channel.query(others).wait(), Some(0));
    let all =
        AbortScope { target: AbortTarget::Everybody, reason: AbortReason::TaskAborted, ..set };
    assert_eq!(channel.abort_all(all).wait(), Some(8));
    for _ in 0..8 {
        let answer = rig.poll().unwrap();
        assert_eq!((answer.response, answer.status), (0, 0x40));
    }
    assert_eq!(rig.count(QueueCounter::Aborted), 12);
    assert_eq!(rig.count(QueueCounter::Pending), 0);
    rig.stop(Drain::Ordinary);
}

/// Of everything that is held and long.
fn all_of(unit: &LunEntry) -> AbortScope {
    AbortScope {
        unit: Arc::clone(unit.nexus.unit()),
        target: AbortTarget::Nexuses(vec![unit.nexus.id()]),
        except: None,
        reason: AbortReason::Reset,
    }
}

/// As many commands as a queue has places for, with fifty segments each, of which one is active.
fn long_and_held(client: &Client, unit: &LunEntry) -> Rig {
    let mut setup = Setup::new(&map(&[(0, 0, unit)]));
    (setup.elements, setup.limits.local, setup.limits.buffers) = (Some(elements(1)), 1, 100);
    let mut rig = client.queue(ScsiRole::Request, &setup, 0);
    rig.ready(0, 0);
    hold(client, unit, &mut rig);
    rig
}

fn hold(client: &Client, unit: &LunEntry, rig: &mut Rig) {
    let cuts: Vec<usize> = (0..48).map(|at| 51 + at * 16).collect();
    for id in 0..120 {
        let write = Request::write(0, 0, id as u32, vec![1; 1024]).with_id(id);
        rig.add(&Request { cuts: Some((cuts.clone(), vec![108])), ..write });
    }
    rig.kick();
    until_under_way(&client.channels[0], &unit.nexus, 120);
}

#[test]
fn commands_that_are_held_are_ended_in_pieces_between_which_others_have_their_turn() {
    let client = Client::new(1);
    let one = entry(&stuck(ram(1 << 20)));
    let mut rig = long_and_held(&client, &one);
    let published = |rig: &Rig| {
        rig.count(QueueCounter::Notifications) + rig.count(QueueCounter::NotificationsSpared)
    };
    let before = published(&rig);
    assert_eq!(client.channels[0].abort_all(all_of(&one)).wait(), Some(120));
    let ended: Vec<Answer> = std::iter::from_fn(|| rig.poll()).collect();
    assert_eq!(ended.len(), 120, "its answer is the last");
    assert!(ended.iter().all(|it| it.response == Response::Reset as u8));
    // A turn ends with a publication: so many turns it took, at least.
    let turns = published(&rig) - before;
    assert!(turns >= 10, "{turns} turns for 6,000 segments");
}

#[test]
fn a_queue_that_stops_behind_a_function_leaves_nothing_of_it_in_its_ring() {
    let client = Client::new(1);
    let one = entry(&stuck(ram(1 << 20)));
    let mut busy = long_and_held(&client, &one);
    let mut other = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &one)])), 0);
    for round in 0..50 {
        for id in 0..40 {
            other.add(&Request::write(0, 0, 1000 + id, vec![2; 512]).with_id(id.into()));
        }
        // They are in the ring, and nobody looks there of its own accord.
        other.driver.publish();
        let abort = client.channels[0].abort_all(all_of(&one));
        other.stop(Drain::Ordinary);
        let ended: Vec<Answer> = std::iter::from_fn(|| other.poll()).collect();
        assert_eq!(ended.len(), 40, "round {round}");
        assert!(ended.iter().all(|it| it.response == Response::Reset as u8), "{ended:?}");
        abort.wait().unwrap();
        while busy.poll().is_some() {}
        other.start(0);
        if round % 10 == 9 {
            hold(&client, &one, &mut busy);
        }
    }
}

#[test]
fn few_slots_and_shared_ones() {
    let client = Client::new(1);
    let one = entry(&delayed(ram(1 << 20), 50, 200, 11));
    let shared = elements(7);
    let mut setup = Setup::new(&map(&[(0, 0, &one)]));
    (setup.elements, setup.limits.local) = (Some(Arc::clone(&shared)), 2);
    let queue = |place| client.queue(ScsiRole::Request, &Setup { place, ..setup.clone() }, 0);
    let mut rigs: Vec<Rig> = (0..2).map(queue).collect();
    rigs[0].ready(0, 0);
    for _ in 0..20 {
        for rig in &mut rigs {
            (0..32).for_each(|at| rig.add(&Request::read(0, 0, at * 8, 8)));
            rig.kick();
        }
        for rig in &mut rigs {
            (0..32).for_each(|_| drop(rig.wait().good()));
        }
    }
    let sum = |counter| rigs.iter().map(|rig| rig.count(counter)).sum::<u64>();
    assert!(sum(QueueCounter::GlobalCommands) > 0);
    assert!(sum(QueueCounter::WaitNoCommand) > 0);
    // Taken and waiting ones are all active; of those that run there are never more than allowed.
    assert_eq!(sum(QueueCounter::Reads), 2 * 20 * 32);
    rigs.iter_mut().for_each(|rig| rig.stop(Drain::Ordinary));
    assert_eq!(shared.active(), 0);
}

#[test]
fn what_is_held_does_not_wait_for_its_delay_when_the_server_stops_its_queue() {
    let client = Client::new(1);
    let one = entry(&stuck(ram(1 << 20)));
    let mut setup = Setup::new(&map(&[(0, 0, &one)]));
    (setup.elements, setup.limits.local) = (Some(elements(4)), 4);
    let mut rig = client.queue(ScsiRole::Request, &setup, 0);
    rig.ready(0, 0);
    (0..12).for_each(|at| rig.add(&Request::write(0, 0, at, vec![1; 512])));
    rig.kick();
    until_under_way(&client.channels[0], &one.nexus, 12);
    let (stopped, told) = pipe();
    std::thread::spawn(move || {
        rig.stop(Drain::SkipWaits);
        stopped.send(rig).unwrap();
    });
    let mut rig = told.recv_timeout(Duration::from_secs(20)).expect("it waits");
    (0..12).for_each(|_| drop(rig.poll().unwrap().good()));
}

/// VERIFY(10) with BYTCHK 0: each needs scratch memory.
fn verify(lba: u32, blocks: u16) -> Request {
    Request::new(0, 0, &cdb10(0x2f, lba, blocks))
}

#[test]
fn scratch_memory_is_waited_for() {
    let client = Client::new(1);
    let one = entry(&far(Duration::from_micros(200)));
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &one)])), 0);
    rig.ready(0, 0);
    for at in 0..60 {
        rig.add(&verify(at, 600));
    }
    rig.kick();
    std::thread::sleep(Duration::from_micros(200));
    // With many of them parked. What was not taken by now is taken after the start.
    rig.stop(Drain::SkipWaits);
    rig.start(0);
    (0..60).for_each(|_| drop(rig.wait().good()));
    assert!(rig.count(QueueCounter::WaitNoDma) > 0);
}

#[test]
fn commands_that_wait_for_scratch_memory_can_be_aborted() {
    let client = Client::new(1);
    let one = entry(&far(Duration::from_millis(5)));
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &one)])), 0);
    rig.ready(0, 0);
    for _ in 0..3 {
        (0..30).for_each(|at| rig.add(&verify(at, 8)));
        rig.kick();
        let scope = AbortScope {
            unit: Arc::clone(one.nexus.unit()),
            target: AbortTarget::Everybody,
            except: None,
            reason: AbortReason::Reset,
        };
        assert_eq!(client.channels[0].abort_all(scope).wait(), Some(30));
        (0..30).for_each(|_| assert_eq!(rig.poll().unwrap().response, Response::Reset as u8));
    }
    assert!(rig.count(QueueCounter::WaitNoDma) > 0);
    rig.stop(Drain::Ordinary);
}

/// PERSISTENT RESERVE OUT with an action, a type, and keys.
fn reserve_out(action: u8, kind: u8, key: u64, new_key: u64, aptpl: bool) -> Request {
    let mut out = vec![0; 24];
    out[..8].copy_from_slice(&key.to_be_bytes());
    out[8..16].copy_from_slice(&new_key.to_be_bytes());
    out[20] = u8::from(aptpl);
    let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0];
    Request { out, ..Request::new(0, 0, &cdb) }
}

#[test]
fn reservations_are_stored_before_they_are_answered() {
    let client = Client::new(1);
    let one = entry(&ram(1 << 20));
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &one)])), 0);
    rig.ready(0, 0);
    for (stored, status) in [(false, 2), (true, 0)] {
        rig.add(&reserve_out(0, 0, 0, 0xabcd, true));
        rig.kick();
        let OffPath::Store { unit, state, answer } = client.off_path() else { panic!("no store") };
        assert!(Arc::ptr_eq(&unit, one.nexus.unit()));
        assert_eq!(state.registrations.len(), 1);
        client.channels[0].run(|| ());
        assert!(rig.poll().is_none());
        answer.send(stored);
        assert_eq!(rig.wait().status, status);
    }
    // Nobody stores it: that is a failure too. An abort meanwhile waits for the answer.
    rig.add(&reserve_out(0, 0, 0xabcd, 0, true));
    rig.kick();
    let OffPath::Store { answer, .. } = client.off_path() else { panic!("no store") };
    let scope = AbortScope {
        unit: Arc::clone(one.nexus.unit()),
        target: AbortTarget::Everybody,
        except: None,
        reason: AbortReason::Aborted,
    };
    let aborted = client.channels[0].abort_all(scope);
    client.channels[0].run(|| ());
    assert!(rig.poll().is_none());
    drop(answer);
    assert_eq!(aborted.wait(), Some(1));
    assert_eq!(rig.poll().unwrap().response, Response::Aborted as u8);
}

#[test]
fn preempt_and_abort_ends_the_commands_of_others() {
    let client = Client::new(2);
    let volume = ram(1 << 20);
    let mine = entry(&volume);
    let theirs = device_scsi::LunEntry {
        nexus: attach(mine.nexus.unit(), 2),
        volume: Some(stuck(Arc::clone(&volume))),
    };
    let mut me = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &mine)])), 0);
    let mut they = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &theirs)])), 1);
    me.ready(0, 0);
    they.ready(0, 0);
    me.ask(&reserve_out(0, 0, 0, 1, false)).good();
    they.ask(&reserve_out(0, 0, 0, 2, false)).good();
    they.ask(&reserve_out(1, 3, 2, 0, false)).good();
    (0..5).for_each(|at| they.add(&Request::write(0, 0, at, vec![9; 512])));
    they.kick();
    until_under_way(&client.channels[1], &theirs.nexus, 5);
    me.add(&reserve_out(5, 3, 1, 2, false));
    me.kick();
    let OffPath::Abort { scope, answer } = client.off_path() else { panic!("no abort") };
    assert!(matches!(&scope.target, AbortTarget::Nexuses(whose) if *whose == [nexus_id(2)]));
    let counts: Vec<u32> = client
        .channels
        .iter()
        .map(|channel| channel.abort_all(scope.clone()).wait().unwrap())
        .collect();
    assert_eq!(counts, [0, 5]);
    answer.send(());
    me.wait().good();
    (0..5).for_each(|_| assert_eq!(they.poll().unwrap().status, 0x40));
    me.ask(&Request::write(0, 0, 0, vec![1; 512])).good();
    assert_eq!(they.ask(&Request::new(0, 0, &[0; 6])).check(), (6, 0x2a05));
    assert_eq!(they.ask(&Request::write(0, 0, 0, vec![2; 512])).status, 0x18);
    assert_eq!(they.count(QueueCounter::ReservationConflicts), 1);
}

#[test]
fn a_queue_stops_only_when_what_was_asked_off_the_path_is_answered() {
    let client = Client::new(1);
    let volume = ram(1 << 20);
    let mine = entry(&volume);
    let theirs = device_scsi::LunEntry { nexus: attach(mine.nexus.unit(), 2), volume: None };
    let setup = Setup::new(&map(&[(0, 0, &mine), (1, 0, &theirs)]));
    let mut rig = client.queue(ScsiRole::Request, &setup, 0);
    rig.ready(0, 0);
    rig.ready(1, 0);
    rig.ask(&reserve_out(0, 0, 0, 1, false)).good();
    let theirs_out =
        Request { address: [1, 1, 0, 0, 0, 0, 0, 0], ..reserve_out(0, 0, 0, 2, false) };
    rig.ask(&theirs_out).good();
    rig.add(&reserve_out(5, 3, 1, 2, false));
    rig.kick();
    let OffPath::Abort { answer, .. } = client.off_path() else { panic!("no abort") };
    let scope = AbortScope {
        unit: Arc::clone(mine.nexus.unit()),
        target: AbortTarget::Nexuses(vec![nexus_id(1)]),
        except: None,
        reason: AbortReason::Aborted,
    };
    // It ends behind its victims; the queue goes on, and stops only when the answer is there.
    let aborted = client.channels[0].abort_all(scope);
    rig.ask(&Request::read(0, 0, 0, 8)).good();
    let sent = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            sent.store(true, Ordering::SeqCst);
            answer.send(());
        });
        rig.stop(Drain::SkipWaits);
        assert!(sent.load(Ordering::SeqCst));
    });
    assert_eq!(aborted.wait(), Some(1));
    assert_eq!(rig.poll().unwrap().response, Response::Aborted as u8);
}

#[test]
fn compare_and_write_waits_for_writes_of_other_channels() {
    let client = Client::new(2);
    let volume = ram(1 << 20);
    let one = entry(&volume);
    let setup = Setup::new(&map(&[(0, 0, &one)]));
    let mut rigs: Vec<Rig> =
        (0..2).map(|channel| client.queue(ScsiRole::Request, &setup, channel)).collect();
    rigs[0].ready(0, 0);
    // Each adds 1 to a number on the disk, as often as it takes.
    let mut cdb = [0; 16];
    (cdb[0], cdb[13]) = (0x89, 1);
    std::thread::scope(|scope| {
        for rig in &mut rigs {
            scope.spawn(move || {
                let mut known = vec![0; 512];
                for _ in 0..200 {
                    loop {
                        let mut next = known.clone();
                        let number = u32::from_le_bytes(next[..4].try_into().unwrap()) + 1;
                        next[..4].copy_from_slice(&number.to_le_bytes());
                        let out = [known.clone(), next.clone()].concat();
                        rig.add(&Request { out, ..Request::new(0, 0, &cdb) });
                        rig.add(&Request::write(0, 0, 64, vec![3; 512]));
                        rig.kick();
                        let answers = [rig.wait(), rig.wait()];
                        if answers.iter().all(|answer| answer.status == 0) {
                            known = next;
                            break;
                        }
                        known = rig.ask(&Request::read(0, 0, 0, 1)).good();
                    }
                }
            });
        }
    });
    let end = rigs[0].ask(&Request::read(0, 0, 0, 1)).good();
    assert_eq!(u32::from_le_bytes(end[..4].try_into().unwrap()), 400);
}

/// Until the channel has taken it, nobody goes on with an off-path request: so the client can do something while a batch of heads is
/// taken.
fn off_path_by_hand(client: &mut Client) -> Receiver<OffPath> {
    let (sender, requests) = sync_channel(0);
    let off_path = Box::new(move |request| sender.send(request).unwrap());
    client.services = Arc::new(Services { off_path, region: None });
    requests
}

fn store(requests: &Receiver<OffPath>) -> channel::Answer<bool> {
    match requests.recv_timeout(Duration::from_secs(20)).unwrap() {
        OffPath::Store { answer, .. } => answer,
        other => panic!("{other:?}"),
    }
}

/// Two aborts of one batch of messages. The first ends a command; its head is used again, for one that the second has to wait for.
#[test]
fn an_abort_waits_for_a_command_with_the_head_of_one_that_has_ended() {
    let mut client = Client::new(1);
    let requests = off_path_by_hand(&mut client);
    let (quick, slow, other) =
        (entry(&ram(1 << 20)), entry(&stuck(ram(1 << 20))), entry(&ram(1 << 20)));
    let luns = map(&[(0, 0, &quick), (0, 1, &slow), (0, 2, &other)]);
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&luns), 0);
    (0..3).for_each(|lun| rig.ready(0, lun));
    rig.add(&Request::write(0, 1, 0, vec![1; 512]).with_id(100));
    rig.kick();
    until_under_way(&client.channels[0], &slow.nexus, 1);
    let scope = |entry: &LunEntry| AbortScope {
        unit: Arc::clone(entry.nexus.unit()),
        target: AbortTarget::Everybody,
        except: None,
        reason: AbortReason::Aborted,
    };
    let register = || reserve_out(0, 0, 0, 1, true);
    // The channel stands still twice: until both aborts are posted, and between them.
    let ((posted, until_posted), (between, until_between)) = (pipe::<()>(), pipe::<()>());
    let (reached, until_reached) = pipe();
    let channel = &client.channels[0];
    std::thread::scope(|threads| {
        threads.spawn(|| channel.run(move || until_posted.recv().unwrap()));
        // Too short, this and the next: the aborts are not in one batch, and nothing is shown.
        std::thread::sleep(Duration::from_millis(30));
        let first = channel.abort_all(scope(&slow));
        threads.spawn(|| {
            channel.run(move || {
                reached.send(()).unwrap();
                until_between.recv().unwrap();
            });
        });
        std::thread::sleep(Duration::from_millis(30));
        let second = channel.abort_all(scope(&quick));
        posted.send(()).unwrap();
        until_reached.recv().unwrap();
        // Eight are published together, with what the first abort has ended; the ninth waits for this thread.
        (0..8).for_each(|at| rig.add(&Request::read(0, 0, at, 1)));
        let elsewhere = Request { address: Place::encode(0, lun(2)), ..register() };
        rig.add(&elsewhere);
        rig.kick();
        between.send(()).unwrap();
        while rig.poll().is_none_or(|answer| answer.id != 100) {
            std::thread::yield_now();
        }
        rig.add(&register());
        rig.kick();
        let ninth = store(&requests);
        let again = store(&requests);
        assert_eq!(first.wait(), Some(1));
        let (answered, told) = pipe();
        second.then(move |count| answered.send(count).unwrap());
        ninth.send(true);
        channel.run(|| ());
        channel.run(|| ());
        assert!(told.try_recv().is_err(), "answered while a command of the scope is out");
        again.send(true);
        assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(Some(1)));
    });
    rig.stop(Drain::Ordinary);
}
