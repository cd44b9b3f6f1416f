//! What clients do that no table shows at a glance.

use super::*;
use crate::Step;
use crate::wire::be32;

fn name(initiator: u64, port: u16) -> NexusId {
    NexusId { initiator: InitiatorId::Fc(initiator), port }
}

fn world(names: &[(u64, u16)]) -> World {
    World::of(names.iter().map(|(initiator, port)| name(*initiator, *port)), |_| {})
}

fn registered(world: &World) -> Vec<NexusId> {
    world.unit.registrations().0.into_iter().map(|each| each.nexus).collect()
}

/// REGISTER AND IGNORE EXISTING KEY with flags of byte 20.
fn register(world: &mut World, client: usize, key: u64, flags: u8) -> crate::Done {
    let mut list = [0_u64.to_be_bytes(), key.to_be_bytes(), [0; 8]].concat();
    list[20] = flags;
    world.send(client, &[0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0], &list)
}

const ALL_TG_PT: u8 = 0x04;
const APTPL: u8 = 0x01;

/// `sg_persist --preempt` without a type.
#[test]
fn preempt_judges_scope_and_type_only_when_it_makes_a_reservation() {
    for action in [4, 5] {
        for kind in [0, 0x0f, 0x15] {
            let mut world = World::new(3);
            for client in 0..3 {
                assert_eq!(world.out(client, 0, 0, (0, client as u64 + 1)), Status::Good);
            }
            // Nothing is reserved.
            assert_eq!(world.out(0, action, kind, (1, 3)), Status::Good, "type {kind}");
            assert_eq!(registered(&world), [Bench::name(0), Bench::name(1)]);
            world.hush();
            // Somebody else holds it.
            assert_eq!(world.out(1, 1, 5, (2, 0)), Status::Good);
            assert_eq!(world.out(2, 0, 0, (0, 3)), Status::Good);
            assert_eq!(world.out(0, action, kind, (1, 3)), Status::Good, "type {kind}");
            assert_eq!(registered(&world), [Bench::name(0), Bench::name(1)]);
            // The holder goes: now the type is that of the new reservation.
            assert_eq!(world.out(0, action, kind, (1, 2)), Status::CheckCondition);
            assert_eq!(world.out(0, action, 1, (1, 2)), Status::Good);
        }
    }
}

#[test]
fn a_reservation_moves_only_to_a_target_port_that_there_is() {
    let mut world = world(&[(1, 1), (2, 2)]);
    assert!(register(&mut world, 0, 1, 0).sense.is_none());
    assert_eq!(world.out(0, 1, 1, (1, 0)), Status::Good);
    let mut hand_over = |port: u16| {
        let mut list = [1_u64.to_be_bytes(), 9_u64.to_be_bytes()].concat();
        list.extend([0, 0]);
        list.extend(port.to_be_bytes());
        list.extend([0, 0, 0, 24]);
        list.extend(InitiatorId::Fc(2).encode());
        world.send(0, &[0x5f, 7, 0, 0, 0, 0, 0, 0, 48, 0], &list)
    };
    for port in [0, 3, 999, 65535] {
        assert_eq!(hand_over(port).sense, Some(Sense::parameter(18)), "port {port}");
    }
    assert_eq!(hand_over(2).status, Status::Good);
    assert_eq!(world.unit.registrations().1.map(|held| held.holder), Some(name(2, 2)));
}

#[test]
fn who_is_registered_for_all_target_ports_is_so_through_those_that_come() {
    let mut world = world(&[(1, 1), (2, 1)]);
    register(&mut world, 0, 7, ALL_TG_PT);
    register(&mut world, 1, 8, 0);
    assert_eq!(world.out(0, 1, 5, (7, 0)), Status::Good);
    let through = |world: &mut World, initiator: u64, port: u16| {
        let client = world.unit.attach(name(initiator, port), None);
        while client.gate().take().is_some() {}
        world.clients.push(client);
        let cdb = [0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];
        world.send(world.clients.len() - 1, &cdb, &[1; 512]).status
    };
    assert_eq!(through(&mut world, 1, 2), Status::Good, "the same initiator port");
    assert_eq!(through(&mut world, 2, 2), Status::ReservationConflict, "not for all ports");
    // Preempted through one, it is so through all, and for those that come.
    assert_eq!(world.out(1, 4, 5, (8, 7)), Status::Good);
    assert_eq!(through(&mut world, 1, 3), Status::ReservationConflict);
    // What was said of one port alone is not said of others.
    register(&mut world, 0, 7, ALL_TG_PT);
    register(&mut world, 0, 0, 0);
    assert_eq!(through(&mut world, 1, 4), Status::ReservationConflict);
}

#[test]
fn the_port_groups_are_the_same_by_every_path() {
    let mut world = world(&[(1, 1), (1, 2), (2, 3)]);
    let ask = |world: &mut World, client: usize| {
        world.send(client, &[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], &[]);
        world.slot.read(8 + 4 * 4)
    };
    let first = ask(&mut world, 0);
    assert_eq!(first[..12], [0, 0, 0, 20, 0, 0xcf, 0, 1, 0, 2, 0, 3]);
    assert_eq!(first[12..], [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]);
    for client in 0..3 {
        assert_eq!(ask(&mut world, client), first);
        // VPD 83h names the same group, and a port of it.
        world.send(client, &[0x12, 1, 0x83, 1, 0, 0], &[]);
        let page = world.slot.read(4 + usize::from(world.slot.read(4)[3]));
        let mut at = 4;
        let (mut port, mut group) = (None, None);
        while at < page.len() {
            let value = || be32(&page, at + 4);
            match page[at + 1] & 0x3f {
                0x14 => port = Some(value()),
                0x15 => group = Some(value()),
                _ => {}
            }
            at += 4 + usize::from(page[at + 3]);
        }
        assert_eq!(group, Some(1));
        assert!(first[12..].chunks(4).any(|each| port == Some(be32(each, 0))), "{port:?}");
    }
}

#[test]
fn what_no_power_loss_survives_is_not_promised() {
    let identity = crate::Identity::optical("drive", crate::Naa::local(3));
    let mut world = World::of([name(1, 1)].into_iter(), |spec| {
        *spec = crate::UnitSpec::optical(identity, Some(4096))
    });
    world.send(0, &[0x5e, 2, 0, 0, 0, 0, 0, 0, 8, 0], &[]);
    assert_eq!(world.slot.read(8)[2] & 0x01, 0, "PTPL_C");
    assert_eq!(register(&mut world, 0, 1, APTPL).sense, Some(Sense::parameter(20)));
    assert_eq!(register(&mut world, 0, 1, 0).status, Status::Good);
}

#[test]
fn the_self_test_passes_and_other_diagnostics_are_refused_spc4_send_diagnostic() {
    let mut world = World::new(2);
    for (byte1, expected) in [(0x04, None), (0x07, None), (0x00, None), (0x10, None)] {
        let done = world.send(0, &[0x1d, byte1, 0, 0, 0, 0], &[]);
        assert_eq!((done.status, done.sense), (Status::Good, expected), "{byte1:#x}");
    }
    // A background test; a code beside SELFTEST; a page.
    for (cdb, at) in [
        ([0x1d, 0x20, 0, 0, 0, 0], Sense::cdb_bit(1, 7)),
        ([0x1d, 0x24, 0, 0, 0, 0], Sense::cdb_bit(1, 7)),
        ([0x1d, 0x10, 0, 0, 4, 0], Sense::cdb(3)),
    ] {
        assert_eq!(world.send(0, &cdb, &[0; 4]).sense, Some(at), "{cdb:x?}");
    }
}

#[test]
fn extents_and_third_parties_are_refused_spc2_5_5_1() {
    let mut world = World::new(2);
    for opcode in [0x16, 0x17, 0x56, 0x57] {
        for bit in [0, 4] {
            let cdb = [opcode, 1 << bit, 0, 0, 0, 0, 0, 0, 0, 0];
            let len = if opcode < 0x20 { 6 } else { 10 };
            let sense = world.send(0, &cdb[..len], &[]).sense;
            assert_eq!(sense, Some(Sense::cdb_bit(1, bit)), "{opcode:#x}");
        }
    }
    assert_eq!(world.send(1, &[0x16, 0, 0, 0, 0, 0], &[]).status, Status::Good);
}

/// TAS is what is done: a command that another one aborted ends with TASK ABORTED.
#[test]
fn the_control_page_says_how_aborted_commands_end() {
    let mut world = World::new(2);
    world.send(0, &[0x1a, 0x08, 0x0a, 0, 255, 0], &[]);
    let page = world.slot.read(16);
    assert_eq!((page[4], page[4 + 5] & 0x40), (0x0a, 0x40));
    world.send(0, &[0x1a, 0x08, 0x4a, 0, 255, 0], &[]);
    assert_eq!(world.slot.read(16)[4 + 5], 0, "nobody can change it");
}

/// PREEMPT AND ABORT that is aborted while its store is under way: its registrations go, so the victim's commands go with them.
#[test]
fn an_aborted_preempt_and_abort_still_aborts_if_it_was_stored() {
    for stored in [true, false] {
        let mut world = World::new(2);
        for client in 0..2 {
            assert!(register(&mut world, client, client as u64 + 1, APTPL).sense.is_none());
        }
        assert_eq!(world.out(1, 1, 1, (2, 0)), Status::Good);
        let list = [1_u64.to_be_bytes(), 2_u64.to_be_bytes(), [0; 8]].concat();
        let World { slot, clients, writer, unit, .. } = &mut world;
        slot.prepare(&list, 512, 512);
        let store = slot.begin(&clients[0], writer, &[0x5f, 5, 1, 0, 0, 0, 0, 0, 24, 0]);
        assert!(matches!(store, Step::Store(_)), "{store:?}");
        assert_eq!(slot.abort(&clients[0], writer), crate::Aborted::Later);
        let mut step = slot.resume(&clients[0], writer, &store, crate::Input::Stored(stored));
        if stored {
            assert_eq!(step, Step::Abort(vec![clients[1].id()]));
            step = slot.resume(&clients[0], writer, &step, crate::Input::Ready);
        }
        let Step::Done(done) = step else { panic!("{step:?}") };
        assert_eq!(done.status, Status::TaskAborted);
        assert_eq!(unit.registrations().0.len(), if stored { 1 } else { 2 });
        let held = unit.registrations().1.map(|held| held.holder);
        assert_eq!(held, Some(clients[usize::from(!stored)].id()));
    }
}
