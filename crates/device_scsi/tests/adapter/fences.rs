//! PERSISTENT RESERVE OUT over a store that hangs: every service action, and everything that can happen to it meanwhile.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use channel::Drain;
use device_scsi::{
    AbortReason, AbortScope, AbortTarget, LunEntry, LunMap, OffPath, Response, ScsiRole,
};
use scsi::{InitiatorId, NexusId};

/// Service actions, each with a type and what has to be reserved before: nothing, by the one who sends it, or by the other.
const ACTIONS: [(u8, Holder); 8] = [
    (0, Holder::Nobody),
    (1, Holder::Nobody),
    (2, Holder::Me),
    (3, Holder::Other),
    (4, Holder::Other),
    (PREEMPT_AND_ABORT, Holder::Other),
    (6, Holder::Nobody),
    (MOVE, Holder::Me),
];
const PREEMPT_AND_ABORT: u8 = 5;
const MOVE: u8 = 7;
/// Write Exclusive.
const KIND: u8 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Nobody,
    Me,
    Other,
}

/// What happens while it is being stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Aborted(AbortReason),
    /// The LUN leaves the client's map.
    LunGoes,
    /// The client leaves, and its queue stops.
    ClientGoes,
}

const MEANWHILE: [Meanwhile; 5] = [
    Meanwhile::Aborted(AbortReason::Aborted),
    Meanwhile::Aborted(AbortReason::Reset),
    Meanwhile::Aborted(AbortReason::TaskAborted),
    Meanwhile::LunGoes,
    Meanwhile::ClientGoes,
];

fn out(action: u8, key: u64, action_key: u64) -> Request {
    let mut list = [key.to_be_bytes(), action_key.to_be_bytes()].concat();
    if action == MOVE {
        // APTPL; target port 1; the TransportID of initiator port 2.
        list.extend([0, 1, 0, 1, 0, 0, 0, 24]);
        list.extend(InitiatorId::Fc(2).encode());
    } else {
        list.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    }
    let cdb = [0x5f, action, KIND, 0, 0, 0, 0, 0, list.len() as u8, 0];
    Request { out: list, ..Request::new(0, 0, &cdb) }
}

fn next(off_path: &Mutex<Receiver<OffPath>>) -> OffPath {
    off_path.lock().unwrap().recv_timeout(Duration::from_secs(20)).unwrap()
}

/// Sends it, and has it stored.
fn must(client: &Client, rig: &mut Rig, request: &Request) {
    rig.ready(0, 0);
    rig.add(request);
    rig.kick();
    let OffPath::Store { answer, .. } = client.off_path() else { panic!("{request:?}") };
    answer.send(true);
    rig.wait().good();
}

fn all(nexus: &scsi::Nexus, target: AbortTarget, reason: AbortReason) -> AbortScope {
    AbortScope { unit: Arc::clone(nexus.unit()), target, except: None, reason }
}

/// What is left to do off the path when the store has ended: PREEMPT AND ABORT has the victim's commands aborted, whatever became of it.
fn finish(
    off_path: &Mutex<Receiver<OffPath>>,
    channels: &[Channel],
    victims: Option<&[NexusId]>,
    ended: impl FnOnce() -> bool,
) {
    let Some(victims) = victims else { return };
    let OffPath::Abort { scope, answer } = next(off_path) else { panic!("no abort") };
    assert!(matches!(&scope.target, AbortTarget::Nexuses(whose) if whose == victims));
    assert!(!ended(), "it was answered before the commands of its victims had ended");
    let count = |channel: &Channel| channel.abort_all(scope.clone()).wait().unwrap();
    assert_eq!(channels.iter().map(count).sum::<u32>(), 3);
    answer.send(());
}

fn play(action: u8, holder: Holder, meanwhile: Meanwhile, stored: bool) {
    let client = Client::new(2);
    let volume = ram(1 << 20);
    let mine = entry(&volume);
    let unit = Arc::clone(mine.nexus.unit());
    let theirs = LunEntry { nexus: attach(&unit, 2), volume: Some(stuck(Arc::clone(&volume))) };
    let mut me = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &mine)])), 0);
    let mut they = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &theirs)])), 1);
    must(&client, &mut me, &out(0, 0, 1));
    must(&client, &mut they, &out(0, 0, 2));
    match holder {
        Holder::Nobody => {}
        Holder::Me => must(&client, &mut me, &out(1, 1, 0)),
        Holder::Other => must(&client, &mut they, &out(1, 2, 0)),
    }
    if holder != Holder::Me {
        (0..3).for_each(|at| they.add(&Request::write(0, 0, at, vec![9; 512])));
        they.kick();
        let own = all(&theirs.nexus, AbortTarget::Everybody, AbortReason::Aborted);
        while client.channels[1].query(own.clone()).wait() != Some(3) {
            std::thread::yield_now();
        }
    }
    let before = unit.registrations();
    let action_key = if matches!(action, 4 | PREEMPT_AND_ABORT) { 2 } else { 7 };
    me.ready(0, 0);
    me.add(&out(action, 1, action_key));
    me.kick();
    // The store hangs: nothing is answered, and nothing has changed.
    let OffPath::Store { answer, .. } = client.off_path() else { panic!("no store") };
    let victims = [nexus_id(2)];
    let victims = (action == PREEMPT_AND_ABORT && stored).then_some(&victims[..]);
    let expected = match meanwhile {
        Meanwhile::Aborted(reason) => {
            let scope = all(&mine.nexus, AbortTarget::Nexuses(vec![nexus_id(1)]), reason);
            let aborted = client.channels[0].abort_all(scope);
            client.channels[0].run(|| ());
            assert!(me.poll().is_none());
            assert_eq!(unit.registrations(), before);
            answer.send(stored);
            finish(&client.off_path, &client.channels, victims, || me.poll().is_some());
            assert_eq!(aborted.wait(), Some(1));
            match reason {
                AbortReason::Aborted => (Response::Aborted as u8, 0),
                AbortReason::Reset => (Response::Reset as u8, 0),
                AbortReason::TaskAborted => (0, 0x40),
            }
        }
        Meanwhile::LunGoes => {
            let gone = client.channels[0].set_luns(me.id(), Arc::new(LunMap::empty()));
            client.channels[0].run(|| ());
            assert!(me.poll().is_none());
            answer.send(stored);
            finish(&client.off_path, &client.channels, victims, || me.poll().is_some());
            assert_eq!(gone.wait(), Some(Ok(())));
            (0, 0x40)
        }
        Meanwhile::ClientGoes => {
            let (off_path, channels) = (&client.off_path, &client.channels);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    answer.send(stored);
                    finish(off_path, channels, victims, || false);
                });
                me.stop(Drain::Ordinary);
            });
            if stored { (0, 0) } else { (0, 2) }
        }
    };
    let end = me.poll().expect("it has ended");
    assert_eq!((end.response, end.status), expected);
    assert_eq!(unit.registrations() != before, stored);
    if victims.is_some() {
        (0..3).for_each(|_| assert_eq!(they.poll().expect("aborted").status, 0x40));
    }
    // What comes next is not in its way.
    must(&client, &mut they, &out(6, 0, 9));
    let rest = all(&theirs.nexus, AbortTarget::Everybody, AbortReason::Reset);
    assert!(client.channels[1].abort_all(rest).wait().is_some());
}

#[test]
fn whatever_happens_while_it_is_stored_it_happens_or_does_not_and_its_victims_end() {
    for (action, holder) in ACTIONS {
        for meanwhile in MEANWHILE {
            for stored in [true, false] {
                println!("action {action}, {meanwhile:?}, stored: {stored}");
                play(action, holder, meanwhile, stored);
            }
        }
    }
}

/// The registrations are gone, and the commands of those who had them are about to end: somebody who sees the first relies on the second.
#[test]
fn preempt_and_abort_ends_behind_its_victims_whatever_happens_while_they_end() {
    for meanwhile in MEANWHILE {
        println!("{meanwhile:?}");
        let client = Client::new(1);
        let volume = ram(1 << 20);
        let (mine, theirs) = (entry(&volume), entry(&volume));
        let unit = Arc::clone(mine.nexus.unit());
        let theirs = LunEntry { nexus: attach(&unit, 2), ..theirs };
        let mut me = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &mine)])), 0);
        let mut they = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &theirs)])), 0);
        must(&client, &mut me, &out(0, 0, 1));
        must(&client, &mut they, &out(0, 0, 2));
        me.ready(0, 0);
        me.add(&out(PREEMPT_AND_ABORT, 1, 2));
        me.kick();
        let OffPath::Store { answer, .. } = client.off_path() else { panic!("no store") };
        answer.send(true);
        let OffPath::Abort { answer, .. } = client.off_path() else { panic!("no abort") };
        assert_eq!(unit.registrations().0.len(), 1);
        let channel = &client.channels[0];
        let not_yet = |me: &mut Rig| {
            channel.run(|| ());
            assert!(me.poll().is_none(), "it ended before the commands of its victims had");
        };
        let end = match meanwhile {
            Meanwhile::Aborted(reason) => {
                let target = AbortTarget::Nexuses(vec![nexus_id(1)]);
                let aborted = channel.abort_all(all(&mine.nexus, target, reason));
                not_yet(&mut me);
                answer.send(());
                assert_eq!(aborted.wait(), Some(1));
                true
            }
            Meanwhile::LunGoes => {
                let gone = channel.set_luns(me.id(), Arc::new(LunMap::empty()));
                not_yet(&mut me);
                answer.send(());
                assert_eq!(gone.wait(), Some(Ok(())));
                true
            }
            Meanwhile::ClientGoes => {
                answer.send(());
                me.stop(Drain::Ordinary);
                false
            }
        };
        let ended = me.poll().expect("it has ended");
        assert_eq!((ended.response, ended.status) != (0, 0), end, "{ended:?}");
    }
}

#[test]
fn two_preempt_and_abort_that_abort_each_other_end() {
    let client = Client::new(1);
    let mine = entry(&ram(1 << 20));
    let unit = Arc::clone(mine.nexus.unit());
    let theirs = LunEntry { nexus: attach(&unit, 2), ..mine.clone() };
    let mut rigs = [&mine, &theirs]
        .map(|entry| client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, entry)])), 0));
    let channel = &client.channels[0];
    let [me, they] = &mut rigs;
    must(&client, me, &out(0, 0, 1));
    must(&client, they, &out(0, 0, 2));
    let mut aborts = Vec::new();
    for (rig, keys) in [(&mut *me, (1, 2)), (&mut *they, (3, 1))] {
        if keys.0 == 3 {
            // Who was shut out comes back, while that is not over.
            must(&client, rig, &out(6, 0, 3));
        }
        rig.ready(0, 0);
        rig.add(&out(PREEMPT_AND_ABORT, keys.0, keys.1));
        rig.kick();
        let OffPath::Store { answer, .. } = client.off_path() else { panic!("no store") };
        answer.send(true);
        let OffPath::Abort { scope, answer } = client.off_path() else { panic!("no abort") };
        aborts.push((scope, answer));
    }
    // Both are asked for before one of them ends.
    let answers = [0, 1].map(|_| {
        let (scope, answer) = aborts.remove(0);
        let found = channel.abort_all(scope);
        let (told, hears) = std::sync::mpsc::channel();
        found.then(move |count| told.send(count).unwrap());
        assert_eq!(hears.recv_timeout(Duration::from_secs(20)), Ok(Some(1)));
        answer
    });
    answers.into_iter().for_each(|answer| answer.send(()));
    assert_eq!([me.wait(), they.wait()].map(|end| end.status), [0x40; 2]);
}
