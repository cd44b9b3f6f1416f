//! Holders in a store that does what etcd does, in random orders: requests that are lost, late, or answered late; leases that run out as soon as they may; processes
//! that stop, end and come again; a control plane that goes on for the one before. Nobody has what another has.

use super::*;

const SECOND: u64 = 1_000_000_000;
/// A request that compares nothing.
const ANY: i64 = -1;

/// The store, with its clock.
#[derive(Debug, Clone, Default)]
struct Store {
    now_ns: u64,
    revision: i64,
    seen: Seen,
    /// When the leases of the two places run out.
    ends_ns: [u64; 2],
}

impl Store {
    fn go_on(&mut self, ns: u64) {
        self.now_ns += ns;
        for at in 0..2 {
            if self.seen[at].is_some() && self.now_ns >= self.ends_ns[at] {
                self.seen[at] = None;
                self.revision += 1;
            }
        }
    }

    /// A lease that was asked for at that moment is one of then: it may have been granted at once, and its use come later.
    fn carry_out(&mut self, put: &Put, granted_ns: u64) -> Done {
        let ends_ns = granted_ns + LEASE_S * SECOND;
        let there = !put.leased || self.now_ns < ends_ns;
        let same = put.changed == ANY || changed(&self.seen, put.key) == put.changed;
        let succeeded = there && same;
        if succeeded {
            self.revision += 1;
            let at = Key::ALL.iter().position(|key| *key == put.key).unwrap();
            let created = self.seen[at].as_ref().map_or(self.revision, |entry| entry.created);
            let changed = self.revision;
            self.seen[at] = put.value.clone().map(|value| Entry { value, created, changed });
            if put.leased {
                self.ends_ns[at] = ends_ns;
            }
        }
        Done { succeeded, revision: self.revision, lease_s: LEASE_S }
    }
}

/// A data plane with a control plane.
struct Holder {
    session: Session,
    wants: Wants,
    /// What was sent, with the moment of its lease.
    sent: Option<(Put, u64)>,
    /// What the data plane may do, until when.
    bridges: VlanSet,
    until_ns: u64,
}

impl Holder {
    fn new(identity: u64) -> Holder {
        let wants = Wants { identity, vids: vec![10, 20], ..Wants::default() };
        let (session, bridges) = (Session::new(identity), VlanSet::new());
        Holder { session, wants, sent: None, bridges, until_ns: 0 }
    }

    /// As the data plane does: what is lost first, then what is had, then for how long.
    fn exchange(&mut self, now_ns: u64) {
        let Some(has) = self.session.has() else { return };
        self.bridges = self.bridges.iter().copied().filter(|vid| has.contains(vid)).collect();
        self.until_ns = self.until_ns.max(self.session.until_ns());
        if now_ns < self.until_ns {
            self.bridges.extend(has.iter().filter(|vid| self.wants.vids.contains(vid)));
        }
    }

    fn bridges(&self, now_ns: u64) -> VlanSet {
        if now_ns < self.until_ns { self.bridges.clone() } else { VlanSet::new() }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// What a run came to: how often somebody had a VLAN, or what went wrong.
fn run(seed: u64, spoil: impl Fn(&mut Put)) -> Result<u32, String> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut store = Store::default();
    let mut holders = [Holder::new(1), Holder::new(2)];
    let (mut next, mut had) = (3, 0);
    // Requests that nobody waits for any more.
    let mut late: Vec<(Put, u64)> = Vec::new();
    for step in 0..400 {
        let who = random.below(2) as usize;
        let holder = &mut holders[who];
        match random.below(16) {
            0..=5 if holder.sent.is_none() => {
                if let Ok(Some(mut put)) =
                    holder.session.next(&store.seen, &holder.wants, store.now_ns)
                {
                    spoil(&mut put);
                    holder.sent = Some((put, store.now_ns));
                }
            }
            0..=8 => {
                if let Some((put, before)) = holder.sent.take() {
                    match random.below(8) {
                        // Its answer is lost, or it comes later, or twice.
                        0 => drop(store.carry_out(&put, before)),
                        1 => late.push((put, before)),
                        2 => {
                            late.push((put.clone(), before));
                            let done = store.carry_out(&put, before);
                            holder.session.done(&put, done, before);
                        }
                        _ => {
                            let done = store.carry_out(&put, before);
                            holder.session.done(&put, done, before);
                        }
                    }
                }
            }
            9 if !late.is_empty() => {
                let (put, before) = late.swap_remove(random.below(late.len() as u64) as usize);
                store.carry_out(&put, before);
            }
            9..=11 => holder.exchange(store.now_ns),
            12 => {
                let vids = [&[][..], &[10], &[20], &[10, 20]][random.below(4) as usize];
                // What is given up is bridged no more before it is said.
                holder.wants.vids = vids.to_vec();
                holder.bridges.retain(|vid| vids.contains(vid));
            }
            13 if random.below(4) == 0 => {
                // Another control plane for the same data plane; what the one before sent is still on its way.
                late.extend(holder.sent.take());
                holder.session = Session::new(holder.wants.identity);
            }
            13 if random.below(6) == 0 => {
                // Another data plane; the control plane may take the one before out.
                late.extend(holder.sent.take());
                if random.below(2) == 0
                    && let Some(leave) = holder.session.leave(&store.seen)
                {
                    store.carry_out(&leave, store.now_ns);
                }
                *holder = Holder::new(next);
                next += 1;
            }
            14 if random.below(8) == 0 => store.go_on(3 * SECOND),
            _ => store.go_on(random.below(SECOND / 4)),
        }
        let [one, other] = &holders;
        let (one, other) = (one.bridges(store.now_ns), other.bridges(store.now_ns));
        if !one.is_disjoint(&other) {
            return Err(format!("step {step}: {one:?} and {other:?}"));
        }
        had += u32::from(!one.is_empty()) + u32::from(!other.is_empty());
    }
    Ok(had)
}

#[test]
fn nobody_has_what_another_has_in_any_order() {
    let mut had = 0;
    for seed in 1..4000 {
        had += run(seed, |_| ()).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
    assert!(had > 100_000, "{had}");
}

#[test]
fn a_change_of_the_tokens_that_compares_nothing_is_found() {
    let spoil = |put: &mut Put| {
        if put.key == Key::Tokens {
            put.changed = ANY;
        }
    };
    assert!((1..20_000).any(|seed| run(seed, spoil).is_err()));
}

#[test]
fn a_late_renewal_does_not_replace_a_newer_one() {
    for compares in [true, false] {
        let mut store = Store::default();
        let Holder { mut session, wants, .. } = Holder::new(1);
        let renewal = |session: &mut Session, store: &Store| {
            let mut put = session.next(&store.seen, &wants, store.now_ns).unwrap().unwrap();
            assert!(put.leased);
            put.changed = if compares { put.changed } else { ANY };
            put
        };
        let first = renewal(&mut session, &store);
        let done = store.carry_out(&first, 0);
        session.done(&first, done, 0);
        store.go_on(SECOND);
        let late = renewal(&mut session, &store);
        store.go_on(SECOND);
        let newer = renewal(&mut session, &store);
        let done = store.carry_out(&newer, 2 * SECOND);
        session.done(&newer, done, 2 * SECOND);
        assert_eq!(store.carry_out(&late, SECOND).succeeded, !compares);
        store.go_on(session.until_ns() - 1 - store.now_ns);
        assert_eq!(store.seen[0].is_some(), compares, "its lease is there until its deadline");
    }
}

#[test]
fn partners_share_what_both_want_in_turn_and_a_third_is_refused() {
    let mut store = Store::default();
    let mut holders = [Holder::new(1), Holder::new(2), Holder::new(3)];
    let settle = |holders: &mut [Holder], store: &mut Store| {
        for _ in 0..8 {
            for holder in holders.iter_mut() {
                let next = holder.session.next(&store.seen, &holder.wants, store.now_ns);
                if let Ok(Some(put)) = next {
                    let done = store.carry_out(&put, store.now_ns);
                    holder.session.done(&put, done, store.now_ns);
                }
            }
            store.go_on(SECOND / 10);
        }
    };
    holders[0].wants.beacon = vec![7];
    settle(&mut holders, &mut store);
    let has = |holder: &Holder| holder.session.has().cloned().unwrap_or_default();
    assert_eq!(has(&holders[0]), VlanSet::from([10, 20]));
    assert!(has(&holders[1]).is_empty());
    assert_eq!(holders[1].session.partner(), Some(&[7][..]));
    let third = &mut holders[2];
    let refused = third.session.next(&store.seen, &third.wants, store.now_ns).unwrap_err();
    assert!(refused.contains("for one pair"), "{refused}");
    holders[0].wants.vids = vec![20];
    settle(&mut holders, &mut store);
    assert_eq!([has(&holders[0]), has(&holders[1])], [[20].into(), [10].into()]);
    // The first one is stopped: its lease runs out, and the others go on.
    for _ in 0..5 {
        settle(&mut holders[1..2], &mut store);
    }
    assert_eq!(has(&holders[1]), VlanSet::from([10, 20]));
    // Another control plane for the second one finds what it has.
    let mut again = Holder::new(2);
    assert_eq!(again.session.has(), None);
    settle(std::slice::from_mut(&mut again), &mut store);
    assert_eq!(has(&again), VlanSet::from([10, 20]));
}
