//! Reservations, as clients meet them.

use super::Bench;
use super::bench::Answer;
use super::disk::cdb;
use crate::wire::{be32, be64};
use crate::{Nexus, Persistent, ReservationType, Sense, Status, code};

pub(super) const TESTS: &[fn(&mut Bench)] =
    &[register, reserve_and_release, clear, preempt, hand_over, persistence, reserve_of_spc2];

/// PERSISTENT RESERVE OUT with a basic parameter list.
pub(super) fn out(
    bench: &mut Bench,
    client: &Nexus,
    action: u8,
    kind: u8,
    keys: (u64, u64),
    aptpl: bool,
) -> Answer {
    let mut list = [keys.0.to_be_bytes(), keys.1.to_be_bytes(), [0; 8]].concat();
    list[20] = u8::from(aptpl);
    bench.command(client, &[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], &list, 0)
}

const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;
const CLEAR: u8 = 3;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const REGISTER_AND_IGNORE: u8 = 6;

fn report(bench: &mut Bench, client: &Nexus, action: u8) -> Vec<u8> {
    let data = bench.command(client, &[0x5e, action, 0, 0, 0, 0, 0, 0xff, 0xff, 0], &[], 0xffff);
    data.good()
}

fn keys(bench: &mut Bench, client: &Nexus) -> (u32, Vec<u64>) {
    let data = report(bench, client, 0);
    assert_eq!(be32(&data, 4) as usize, data.len() - 8);
    (be32(&data, 0), data[8..].chunks(8).map(|key| be64(key, 0)).collect())
}

fn held(bench: &mut Bench, client: &Nexus) -> Option<(u64, u8)> {
    let data = report(bench, client, 1);
    assert_eq!(be32(&data, 4) as usize, data.len() - 8);
    (data.len() > 8).then(|| (be64(&data, 8), data[21]))
}

fn good(answer: &Answer) {
    assert_eq!(answer.status, Status::Good, "{:x?}", answer.sense);
}

fn conflict(answer: &Answer) {
    assert_eq!(answer.status, Status::ReservationConflict, "{:x?}", answer.sense);
}

fn ready(bench: &mut Bench, client: &Nexus) {
    good(&bench.command(client, &[0; 6], &[], 0));
}

fn told(bench: &mut Bench, client: &Nexus, code: u16) {
    assert_eq!(bench.command(client, &[0; 6], &[], 0).code(), code);
}

fn register(bench: &mut Bench) {
    let (a, b) = (bench.client(1), bench.client(2));
    conflict(&out(bench, &a, REGISTER, 0, (5, 7), false));
    good(&out(bench, &a, REGISTER, 0, (0, 0), false));
    assert_eq!(keys(bench, &a), (0, vec![]), "nothing was asked for");
    good(&out(bench, &a, REGISTER, 0, (0, 7), false));
    conflict(&out(bench, &a, REGISTER, 0, (8, 9), false));
    good(&out(bench, &a, REGISTER, 0, (7, 9), false));
    good(&out(bench, &b, REGISTER_AND_IGNORE, 0, (99, 3), false));
    assert_eq!(keys(bench, &b), (3, vec![9, 3]));
    let cut = bench.command(&a, &[0x5e, 0, 0, 0, 0, 0, 0, 0, 8, 0], &[], 100).good();
    assert_eq!((cut.len(), be32(&cut, 4)), (8, 16), "the length is that of all");
    good(&out(bench, &a, REGISTER_AND_IGNORE, 0, (0, 0), false));
    good(&out(bench, &b, REGISTER, 0, (3, 0), false));
    assert_eq!(keys(bench, &a), (5, vec![]));
    for action in [RESERVE, RELEASE, CLEAR, PREEMPT, PREEMPT_AND_ABORT] {
        conflict(&out(bench, &a, action, 1, (0, 1), false));
    }
    let list = [0; 40];
    for len in [0, 1, 23, 25, 40] {
        let order = [0x5f, REGISTER, 0, 0, 0, 0, 0, 0, len, 0];
        let answer = bench.command(&a, &order, &list[..usize::from(len)], 0);
        assert_eq!(answer.code(), code::PARAMETER_LIST_LENGTH);
    }
    let answer = bench.command(&a, &[0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0], &list[..23], 0);
    assert_eq!(answer.code(), code::PARAMETER_LIST_LENGTH);
    // SPEC_I_PT: without its list, and with what is no REGISTER.
    let mut list = [0; 24];
    (list[15], list[20]) = (1, 0x08);
    for action in REGISTER..=REGISTER_AND_IGNORE {
        let answer = bench.command(&a, &[0x5f, action, 1, 0, 0, 0, 0, 0, 24, 0], &list, 0);
        let expected = Sense::illegal(code::PARAMETER_LIST_LENGTH);
        let expected = if action == REGISTER { expected } else { Sense::parameter(20) };
        assert_eq!(answer.sense, Some(expected));
    }
    let capabilities = report(bench, &a, 2);
    assert_eq!(capabilities, [0, 8, 0x1d, 0x80, 0xea, 0x01, 0, 0]);
}

fn reserve_and_release(bench: &mut Bench) {
    let (a, b) = (bench.client(1), bench.client(2));
    good(&out(bench, &a, REGISTER, 0, (0, 0xa), false));
    good(&out(bench, &b, REGISTER, 0, (0, 0xb), false));
    for kind in ReservationType::ALL {
        let (all, code) = (kind.all_registrants(), kind as u8);
        good(&out(bench, &a, RESERVE, code, (0xa, 0), false));
        good(&out(bench, &a, RESERVE, code, (0xa, 0), false));
        assert_eq!(held(bench, &b), Some((if all { 0 } else { 0xa }, code)));
        let full = report(bench, &a, 3);
        assert_eq!((full.len(), full[8 + 12], full[8 + 13]), (8 + 2 * 48, 1, code));
        assert_eq!(full[8 + 48 + 12] == 1, all, "who else holds it");
        let second = out(bench, &b, RESERVE, code, (0xb, 0), false);
        if all {
            good(&second)
        } else {
            conflict(&second)
        }
        conflict(&out(bench, &b, RESERVE, if code == 1 { 3 } else { 1 }, (0xb, 0), false));
        conflict(&out(bench, &a, RELEASE, code, (0xb, 0), false));
        let wrong = if code == 1 { 3 } else { 1 };
        let answer = out(bench, &a, RELEASE, wrong, (0xa, 0), false);
        assert_eq!(answer.code(), code::INVALID_RELEASE);
        if !all {
            good(&out(bench, &b, RELEASE, code, (0xb, 0), false));
            assert!(held(bench, &a).is_some(), "it was not b's");
        }
        good(&out(bench, &a, RELEASE, code, (0xa, 0), false));
        assert_eq!(held(bench, &a), None);
        if kind.registrants() {
            told(bench, &b, code::RESERVATIONS_RELEASED);
        }
        ready(bench, &b);
        ready(bench, &a);
        good(&out(bench, &a, RELEASE, code, (0xa, 0), false));
    }
    assert_eq!(keys(bench, &a).0, 2, "RESERVE and RELEASE do not count");
    for kind in [0, 2, 4, 9, 15] {
        let answer = out(bench, &a, RESERVE, kind, (0xa, 0), false);
        assert_eq!(answer.sense, Some(Sense::cdb_bit(2, 3)));
    }
    let answer = out(bench, &a, RESERVE, 0x11, (0xa, 0), false);
    assert_eq!(answer.sense, Some(Sense::cdb_bit(2, 7)));
    // The holder leaves: a registrants-only reservation ends with it, and the others are told.
    good(&out(bench, &a, RESERVE, 5, (0xa, 0), false));
    good(&out(bench, &a, REGISTER, 0, (0xa, 0), false));
    told(bench, &b, code::RESERVATIONS_RELEASED);
    assert_eq!(held(bench, &b), None);
    // All registrants: it lasts until the last one has left.
    good(&out(bench, &a, REGISTER, 0, (0, 0xa), false));
    good(&out(bench, &a, RESERVE, 7, (0xa, 0), false));
    good(&out(bench, &a, REGISTER, 0, (0xa, 0), false));
    assert_eq!(held(bench, &a), Some((0, 7)));
    good(&out(bench, &b, REGISTER, 0, (0xb, 0), false));
    assert_eq!(held(bench, &a), None);
}

fn clear(bench: &mut Bench) {
    let (a, b, c) = (bench.client(1), bench.client(2), bench.client(3));
    good(&out(bench, &a, REGISTER, 0, (0, 0xa), false));
    good(&out(bench, &b, REGISTER, 0, (0, 0xb), false));
    good(&out(bench, &a, RESERVE, 3, (0xa, 0), false));
    conflict(&out(bench, &c, CLEAR, 0, (0, 0), false));
    good(&out(bench, &b, CLEAR, 0, (0xb, 0), false));
    told(bench, &a, code::RESERVATIONS_PREEMPTED);
    ready(bench, &a);
    ready(bench, &b);
    ready(bench, &c);
    assert_eq!((keys(bench, &c), held(bench, &c)), ((3, vec![]), None));
}

fn preempt(bench: &mut Bench) {
    let (a, b, c) = (bench.client(1), bench.client(2), bench.client(3));
    for (client, key) in [(&a, 0xa), (&b, 0xb), (&c, 0xc)] {
        good(&out(bench, client, REGISTER, 0, (0, key), false));
    }
    let answer = out(bench, &b, PREEMPT, 1, (0xb, 0), false);
    assert_eq!(answer.sense, Some(Sense::parameter(8)));
    conflict(&out(bench, &b, PREEMPT, 1, (0xb, 0xdead), false));
    good(&out(bench, &a, RESERVE, 5, (0xa, 0), false));
    let write = cdb(0x2a, 0, 0, 0);
    ready(bench, &c);
    good(&out(bench, &b, PREEMPT_AND_ABORT, 3, (0xb, 0xa), false));
    assert_eq!(bench.take_aborted(), [a.id()]);
    assert_eq!(held(bench, &b), Some((0xb, 3)));
    told(bench, &a, code::REGISTRATIONS_PREEMPTED);
    told(bench, &c, code::RESERVATIONS_RELEASED);
    for fenced in [&a, &c] {
        conflict(&bench.command(fenced, &write, &[], 0));
        ready(bench, fenced);
    }
    assert_eq!(keys(bench, &a).1, [0xb, 0xc]);
    good(&out(bench, &b, PREEMPT, 3, (0xb, 0xc), false));
    assert_eq!(bench.take_aborted(), []);
    told(bench, &c, code::REGISTRATIONS_PREEMPTED);
    // Preempting oneself changes the type.
    good(&out(bench, &b, PREEMPT, 1, (0xb, 0xb), false));
    assert_eq!((held(bench, &b), keys(bench, &b).1), (Some((0xb, 1)), vec![0xb]));
    // All registrants: key 0 means everybody else.
    good(&out(bench, &b, RELEASE, 1, (0xb, 0), false));
    good(&out(bench, &a, REGISTER, 0, (0, 0xa), false));
    good(&out(bench, &b, RESERVE, 8, (0xb, 0), false));
    good(&out(bench, &a, PREEMPT, 6, (0xa, 0), false));
    told(bench, &b, code::REGISTRATIONS_PREEMPTED);
    assert_eq!((held(bench, &b), keys(bench, &b).1), (Some((0xa, 6)), vec![0xa]));
}

fn hand_over(bench: &mut Bench) {
    let (a, b) = (bench.client(1), bench.client(2));
    let give =
        |bench: &mut Bench, from: &Nexus, to: crate::NexusId, keys: (u64, u64), unregister| {
            let mut list = [keys.0.to_be_bytes(), keys.1.to_be_bytes()].concat();
            list.extend([0, u8::from(unregister) << 1]);
            list.extend(to.port.to_be_bytes());
            list.extend([0, 0, 0, 24]);
            list.extend(to.initiator.encode());
            bench.command(from, &[0x5f, 7, 0, 0, 0, 0, 0, 0, 48, 0], &list, 0)
        };
    good(&out(bench, &a, REGISTER, 0, (0, 0xa), false));
    conflict(&give(bench, &a, b.id(), (0xa, 0xb), false));
    good(&out(bench, &a, RESERVE, 1, (0xa, 0), false));
    conflict(&give(bench, &a, b.id(), (0xc, 0xb), false));
    assert_eq!(give(bench, &a, b.id(), (0xa, 0), false).sense, Some(Sense::parameter(8)));
    assert_eq!(give(bench, &a, a.id(), (0xa, 0xb), false).sense, Some(Sense::parameter(24)));
    good(&give(bench, &a, b.id(), (0xa, 0xb), false));
    assert_eq!((held(bench, &a), keys(bench, &a).1), (Some((0xb, 1)), vec![0xa, 0xb]));
    conflict(&give(bench, &a, b.id(), (0xa, 0xb), false));
    good(&give(bench, &b, a.id(), (0xb, 0xaa), true));
    assert_eq!((held(bench, &a), keys(bench, &a).1), (Some((0xaa, 1)), vec![0xaa]));
    let short = bench.command(&a, &[0x5f, 7, 0, 0, 0, 0, 0, 0, 47, 0], &[0; 47], 0);
    assert_eq!(short.code(), code::PARAMETER_LIST_LENGTH);
}

fn persistence(bench: &mut Bench) {
    let (a, b) = (bench.client(1), bench.client(2));
    good(&out(bench, &a, REGISTER, 0, (0, 0xa), false));
    assert_eq!(bench.stored(), None, "nobody asked for it");
    good(&out(bench, &a, REGISTER, 0, (0xa, 0xa), true));
    assert_eq!(report(bench, &a, 2)[3], 0x81, "PTPL_A");
    good(&out(bench, &b, REGISTER, 0, (0, 0xb), true));
    good(&out(bench, &a, RESERVE, 3, (0xa, 0), false));
    let kept = bench.stored().cloned().expect("stored");
    assert_eq!(kept.registrations.len(), 2);
    assert_eq!(kept.reservation.map(|held| held.holder), Some(a.id()));
    // What cannot be stored does not happen.
    bench.can_store = false;
    let answer = out(bench, &a, CLEAR, 0, (0xa, 0), false);
    assert_eq!(answer.sense.map(|sense| sense.key), Some(crate::SenseKey::HardwareError));
    assert_eq!(keys(bench, &a).1, [0xa, 0xb]);
    ready(bench, &b);
    bench.can_store = true;
    // A reset takes nothing of it.
    bench.unit().reset(crate::Attention::UnitReset);
    told(bench, &b, code::DEVICE_RESET);
    conflict(&bench.command(&b, &cdb(0x28, 0, 0, 0), &[], 0));
    good(&out(bench, &b, CLEAR, 0, (0xb, 0), false));
    assert_eq!(bench.stored(), Some(&Persistent::default()));
    // After a power loss it is as it was; the generation counts anew.
    bench.unit().restore(kept);
    told(bench, &a, code::DEVICE_RESET);
    told(bench, &a, code::RESERVATIONS_PREEMPTED);
    assert_eq!((keys(bench, &a), held(bench, &a)), ((0, vec![0xa, 0xb]), Some((0xa, 3))));
    conflict(&bench.command(&b, &cdb(0x28, 0, 0, 0), &[], 0));
    good(&out(bench, &a, REGISTER, 0, (0xa, 0xa), false));
    assert_eq!(bench.stored(), Some(&Persistent::default()), "APTPL was taken back");
}

fn reserve_of_spc2(bench: &mut Bench) {
    let (a, b) = (bench.client(1), bench.client(2));
    let (reserve, release) = ([0x16, 0, 0, 0, 0, 0], [0x17, 0, 0, 0, 0, 0]);
    good(&bench.command(&a, &reserve, &[], 0));
    good(&bench.command(&a, &reserve, &[], 0));
    conflict(&bench.command(&b, &reserve, &[], 0));
    good(&bench.command(&b, &release, &[], 0));
    for refused in
        [vec![0; 6], vec![0x1a, 0, 0x3f, 0, 255, 0], cdb(0x28, 0, 0, 0), cdb(0x2a, 0, 0, 0)]
    {
        conflict(&bench.command(&b, &refused, &[], 255));
        assert_ne!(bench.command(&a, &refused, &[], 255).status, Status::ReservationConflict);
    }
    for allowed in [vec![0x12, 0, 0, 0, 36, 0], vec![0x03, 0, 0, 0, 18, 0], cdb(0x25, 0, 0, 0)] {
        good(&bench.command(&b, &allowed, &[], 64));
    }
    // Persistent commands conflict for both.
    for client in [&a, &b] {
        conflict(&out(bench, client, REGISTER, 0, (0, 1), false));
        conflict(&bench.command(client, &[0x5e, 0, 0, 0, 0, 0, 0, 0, 8, 0], &[], 8));
    }
    good(&bench.command(&a, &[0x57, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[], 0));
    good(&bench.command(&b, &[0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[], 0));
    drop(b);
    ready(bench, &a);
    // While somebody is registered RESERVE conflicts, but for those whom the reservation leaves everything.
    good(&out(bench, &a, REGISTER, 0, (0, 0xa), false));
    let b = bench.client(2);
    for client in [&a, &b] {
        conflict(&bench.command(client, &reserve, &[], 0));
        conflict(&bench.command(client, &release, &[], 0));
    }
    good(&out(bench, &a, RESERVE, 1, (0xa, 0), false));
    good(&bench.command(&a, &reserve, &[], 0));
    conflict(&bench.command(&b, &reserve, &[], 0));
    good(&out(bench, &a, CLEAR, 0, (0xa, 0), false));
    ready(bench, &b);
}
