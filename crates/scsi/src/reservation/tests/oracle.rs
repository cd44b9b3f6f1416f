//! Persistent reservations once more, as a naive model, against the core.
//!
//! The model keeps a map of keys and a set of holders, and follows the sentences of SPC-4, 5.13, one by one, without the core's
//! types. Compared after each step: the status, keys, reservation and generation as PERSISTENT RESERVE IN tells them, what each
//! client may do, and what each is told.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::World;
use crate::attention::Attention;
use crate::wire::{be32, be64};
use crate::{InitiatorId, NexusId, ReservationType, Status};

const CLIENTS: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Order {
    client: usize,
    action: u8,
    kind: u8,
    key: u64,
    action_key: u64,
    /// Send the right key instead.
    honest: bool,
    /// ALL_TG_PT.
    all_ports: bool,
    /// SPEC_I_PT, with the initiator port of this number.
    also: Option<usize>,
}

/// Two initiator ports, each through two target ports.
fn name(client: usize) -> NexusId {
    NexusId { initiator: InitiatorId::Fc(client as u64 / 2), port: client as u16 % 2 + 1 }
}

#[derive(Debug, Default)]
struct Model {
    keys: BTreeMap<usize, u64>,
    /// Type and the one who made it.
    held: Option<(u8, usize)>,
    generation: u32,
    told: BTreeSet<(usize, Attention)>,
}

fn for_all(kind: u8) -> bool {
    kind == 7 || kind == 8
}

fn for_registrants(kind: u8) -> bool {
    (5..=8).contains(&kind)
}

impl Model {
    fn holders(&self) -> Vec<usize> {
        match self.held {
            None => vec![],
            Some((kind, _)) if for_all(kind) => self.keys.keys().copied().collect(),
            Some((_, one)) => vec![one],
        }
    }

    fn tell_registered_but(&mut self, one: usize, what: Attention) {
        let others: Vec<usize> = self.keys.keys().copied().filter(|each| *each != one).collect();
        self.told.extend(others.into_iter().map(|each| (each, what)));
    }

    /// Takes registrations away; a reservation without a holder is released.
    fn unregister(&mut self, who: &[usize], by: usize) {
        who.iter().for_each(|each| {
            self.keys.remove(each);
        });
        if let Some((kind, maker)) = self.held {
            let gone = if for_all(kind) { self.keys.is_empty() } else { who.contains(&maker) };
            if gone {
                self.held = None;
                if for_registrants(kind) {
                    self.tell_registered_but(by, Attention::ReservationsReleased);
                }
            }
        }
    }

    fn obey(&mut self, order: &Order) -> Status {
        let Order { client, action, kind, key, action_key, .. } = *order;
        let mine = self.keys.get(&client).copied();
        if action != 0 && order.also.is_some() {
            return Status::CheckCondition;
        }
        if action == 0 || action == 6 {
            return self.register(order);
        }
        let sane = ReservationType::decode(kind).is_some();
        if matches!(action, 1 | 2 | 4 | 5) && !sane {
            return Status::CheckCondition;
        }
        if mine != Some(key) {
            return Status::ReservationConflict;
        }
        match action {
            1 => self.reserve(client, kind),
            2 => self.release(client, kind),
            3 => {
                self.generation += 1;
                self.tell_registered_but(client, Attention::ReservationsPreempted);
                self.keys.clear();
                self.held = None;
                Status::Good
            }
            _ => self.preempt(client, kind, action_key),
        }
    }

    fn register(&mut self, order: &Order) -> Status {
        let Order { client, action, key, action_key, .. } = *order;
        let mine = self.keys.get(&client).copied();
        if action == 0 && mine.unwrap_or(0) != key {
            return Status::ReservationConflict;
        }
        if order.also.is_some() && mine.is_some() {
            return Status::CheckCondition;
        }
        if mine.is_none() && action_key == 0 {
            return Status::Good;
        }
        let mut whom = BTreeSet::from([client]);
        // The same initiator port at the other target port.
        let twin = client ^ 1;
        if order.all_ports {
            let theirs = self.keys.get(&twin).copied();
            if action == 0 && theirs.is_some_and(|theirs| theirs != key) {
                return Status::ReservationConflict;
            }
            if action == 6 || key == 0 || theirs.is_some() {
                whom.insert(twin);
            }
        }
        if let Some(initiator) = order.also.filter(|initiator| *initiator != client / 2) {
            let same_port = 2 * initiator + client % 2;
            let ports =
                if order.all_ports { vec![same_port, same_port ^ 1] } else { vec![same_port] };
            if ports.iter().any(|each| self.keys.contains_key(each)) {
                return Status::CheckCondition;
            }
            whom.extend(ports);
        }
        self.generation += 1;
        if action_key == 0 {
            self.unregister(&whom.into_iter().collect::<Vec<_>>(), client);
        } else {
            self.keys.extend(whom.into_iter().map(|each| (each, action_key)));
        }
        Status::Good
    }

    fn reserve(&mut self, client: usize, kind: u8) -> Status {
        match self.held {
            Some((now, _)) if now == kind && self.holders().contains(&client) => Status::Good,
            Some(_) => Status::ReservationConflict,
            None => {
                self.held = Some((kind, client));
                Status::Good
            }
        }
    }

    fn release(&mut self, client: usize, kind: u8) -> Status {
        if !self.holders().contains(&client) {
            return Status::Good;
        }
        if self.held.map(|(now, _)| now) != Some(kind) {
            return Status::CheckCondition;
        }
        self.held = None;
        if for_registrants(kind) {
            self.tell_registered_but(client, Attention::ReservationsReleased);
        }
        Status::Good
    }

    fn preempt(&mut self, client: usize, kind: u8, victims: u64) -> Status {
        let everybody = self.held.is_some_and(|(now, _)| for_all(now));
        let holder_key = self.held.and_then(|(_, maker)| self.keys.get(&maker).copied());
        if victims == 0 && !everybody {
            return Status::CheckCondition;
        }
        let with_key = |model: &Model| -> Vec<usize> {
            model.keys.iter().filter(|(_, k)| **k == victims).map(|(c, _)| *c).collect()
        };
        let takes_over = if everybody { victims == 0 } else { holder_key == Some(victims) };
        if takes_over {
            let gone: Vec<usize> = if victims == 0 {
                self.keys.keys().copied().filter(|each| *each != client).collect()
            } else {
                with_key(self).into_iter().filter(|each| *each != client).collect()
            };
            gone.iter().for_each(|each| {
                self.keys.remove(each);
                self.told.insert((*each, Attention::RegistrationsPreempted));
            });
            let before = self.held.replace((kind, client));
            if before.map(|(now, _)| now) != Some(kind) {
                self.tell_registered_but(client, Attention::ReservationsReleased);
            }
        } else {
            let gone = with_key(self);
            if gone.is_empty() {
                return Status::ReservationConflict;
            }
            let others = gone.iter().filter(|each| **each != client);
            self.told.extend(others.map(|each| (*each, Attention::RegistrationsPreempted)));
            self.unregister(&gone, client);
        }
        self.generation += 1;
        Status::Good
    }

    /// May read, may write.
    fn access(&self, client: usize) -> (bool, bool) {
        match self.held {
            None => (true, true),
            Some((kind, _)) => {
                let member = for_registrants(kind) && self.keys.contains_key(&client);
                let full = member || self.holders().contains(&client);
                (full || matches!(kind, 1 | 5 | 7), full)
            }
        }
    }
}

/// What the core says now: generation, keys, and the reservation.
fn reported(world: &mut World) -> (u32, Vec<u64>, Option<(u64, u8)>) {
    let mut ask = |action: u8| {
        world.hush();
        let done = world.send(0, &[0x5e, action, 0, 0, 0, 0, 0, 2, 0, 0], &[]);
        assert_eq!(done.status, Status::Good);
        world.slot.read(usize::try_from(done.moved).expect("small"))
    };
    let (keys, held) = (ask(0), ask(1));
    let mut list: Vec<u64> = keys[8..].chunks(8).map(|key| be64(key, 0)).collect();
    list.sort_unstable();
    let held = (held.len() > 8).then(|| (be64(&held, 8), held[21]));
    (be32(&keys, 0), list, held)
}

fn check(world: &mut World, model: &Model) {
    let told: BTreeSet<(usize, Attention)> = (0..CLIENTS)
        .flat_map(|client| {
            let gate = world.clients[client].gate();
            std::iter::from_fn(|| gate.take()).map(|what| (client, what)).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(told, model.told);
    let mut keys: Vec<u64> = model.keys.values().copied().collect();
    keys.sort_unstable();
    let held =
        model.held.map(|(kind, maker)| (if for_all(kind) { 0 } else { model.keys[&maker] }, kind));
    assert_eq!(reported(world), (model.generation, keys, held));
    for client in 0..CLIENTS {
        let mut may = |opcode: u8| {
            let cdb = [opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            world.send(client, &cdb, &[]).status != Status::ReservationConflict
        };
        assert_eq!((may(0x28), may(0x2a)), model.access(client), "client {client}");
    }
}

fn send(world: &mut World, order: &Order) -> Status {
    let mut list = [order.key.to_be_bytes(), order.action_key.to_be_bytes(), [0; 8]].concat();
    list[20] = u8::from(order.all_ports) << 2 | u8::from(order.also.is_some()) << 3;
    if let Some(initiator) = order.also.filter(|_| order.action == 0) {
        list.extend(24_u32.to_be_bytes());
        list.extend(name(2 * initiator).initiator.encode());
    }
    let len = u8::try_from(list.len()).expect("short");
    let cdb = [0x5f, order.action, order.kind, 0, 0, 0, 0, 0, len, 0];
    world.send(order.client, &cdb, &list).status
}

fn orders() -> impl Strategy<Value = Order> {
    let kinds = prop_oneof![9 => prop::sample::select(vec![1_u8, 3, 5, 6, 7, 8]), 1 => 0..16_u8];
    let honest = prop::bool::weighted(0.9);
    let wide = (prop::bool::weighted(0.2), prop::option::weighted(0.1, 0..CLIENTS / 2));
    (0..CLIENTS, 0..7_u8, kinds, (0..4_u64, 0..4_u64), honest, wide).prop_map(
        |(client, action, kind, (key, action_key), honest, (all_ports, also))| Order {
            client,
            action,
            // SCOPE stays 0.
            kind: kind & 0x0f,
            key,
            action_key,
            honest,
            all_ports,
            also,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn reservations_are_as_the_sentences_of_spc4_say(orders in prop::collection::vec(orders(), 1..60)) {
        let mut world = World::of((0..CLIENTS).map(name), |_| {});
        let mut model = Model::default();
        for mut order in orders {
            if order.honest {
                order.key = model.keys.get(&order.client).copied().unwrap_or(0);
            }
            model.told.clear();
            let expected = model.obey(&order);
            let status = send(&mut world, &order);
            prop_assert_eq!(status, expected, "{:?} with {:?}", order, model);
            check(&mut world, &model);
        }
    }
}
