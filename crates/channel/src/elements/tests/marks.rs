//! High-water marks: of an adapter over its queues, and of a port over its adapters.

use super::*;

/// An adapter whose mark is kept, and how many of it are active now.
struct Marked {
    adapter: Arc<Elements>,
    mark: AdapterStats,
    clients: Vec<Client>,
    now: u64,
}

impl Marked {
    fn new(queues: u16) -> Marked {
        let region = protocol::stats::StatsRegion::create(1).unwrap();
        let mark = region.adapter("a").unwrap();
        Marked::of(Elements::alone(share(1000), queues), mark, queues)
    }

    fn of(adapter: Arc<Elements>, mark: AdapterStats, queues: u16) -> Marked {
        adapter.set_mark(mark);
        let clients = (0..queues).map(|queue| Client::new(&adapter, queue, 5, 0)).collect();
        Marked { adapter, mark, clients, now: 0 }
    }

    /// A round of one queue, after which so many of its commands are active.
    fn set(&mut self, queue: usize, active: usize) {
        let client = &mut self.clients[queue];
        for _ in client.active..active {
            assert_ne!(client.hold.admit(|| 0), Admission::Wait(Shortage::Adapter));
        }
        (active..client.active).for_each(|_| client.hold.dismiss());
        client.active = active;
        client.hold.rest(Waits::default, self.now);
    }

    fn active(&self) -> u64 {
        self.clients.iter().map(|client| client.active as u64).sum()
    }
}

/// Two queues that are busy one after the other, and then together: the mark is no sum of theirs.
#[test]
fn the_mark_is_of_all_queues_at_once_and_begins_again() {
    let mut of = Marked::new(2);
    of.set(0, 8);
    of.set(0, 0);
    of.set(1, 8);
    of.set(1, 0);
    assert_eq!(of.mark.active_max(), 8);
    // A look that found nothing is 20 µs ago.
    of.now += of.clients[0].hold.watch.every / 500;
    of.set(0, 6);
    of.set(1, 6);
    assert_eq!(of.mark.active_max(), 12);
    of.set(0, 5);
    of.adapter.reset_mark();
    assert_eq!(of.mark.active_max(), 11);
    of.set(0, 0);
    of.set(1, 0);
    of.adapter.reset_mark();
    assert_eq!(of.mark.active_max(), 0);
    // A queue that went has no part any more.
    of.clients.remove(1);
    of.clients.push(Client::new(&of.adapter, 1, 5, 0));
    of.set(0, 3);
    of.set(1, 3);
    assert_eq!(of.mark.active_max(), 6);
}

#[test]
fn the_mark_of_what_waits_is_of_all_queues_at_once_and_begins_again() {
    let mut of = Marked::new(2);
    let now = of.now;
    let wait = |of: &mut Marked, queue: usize, held: usize| {
        of.clients[queue].hold.rest(|| Waits { held, waiting: 0 }, now);
        of.mark.pending_max()
    };
    assert_eq!(wait(&mut of, 0, 10), 10);
    assert_eq!(wait(&mut of, 0, 2), 10);
    assert_eq!(wait(&mut of, 1, 12), 14, "neither the highest of a queue, nor the sum of such");
    assert_eq!(wait(&mut of, 0, 0), 14);
    of.adapter.reset_mark();
    assert_eq!(of.mark.pending_max(), 12, "what waits now");
    assert_eq!(wait(&mut of, 1, 3), 12);
    // What waits at a queue that goes waits no more.
    of.clients.remove(1);
    of.adapter.reset_mark();
    assert_eq!(of.mark.pending_max(), 0);
    assert_eq!(wait(&mut of, 0, 1), 1);
}

#[test]
fn the_mark_of_what_waits_in_the_server_is_of_all_queues_at_once() {
    let mut of = Marked::new(2);
    let now = of.now;
    let wait = |of: &mut Marked, queue: usize, waiting: usize| {
        of.clients[queue].hold.rest(|| Waits { held: 3, waiting }, now);
        of.mark.waiting_max()
    };
    assert_eq!(wait(&mut of, 0, 10), 10);
    assert_eq!(wait(&mut of, 0, 2), 10);
    assert_eq!(wait(&mut of, 1, 9), 11);
    assert_eq!(of.mark.pending_max(), 6);
    wait(&mut of, 1, 1);
    of.adapter.reset_mark();
    assert_eq!((of.mark.waiting_max(), of.mark.pending_max()), (3, 6));
    of.clients.clear();
    of.adapter.reset_mark();
    assert_eq!((of.mark.waiting_max(), of.mark.pending_max()), (0, 0));
}

/// A port whose mark is kept, and a queue of each of its adapters.
fn marked_port(adapters: u16) -> (Arc<Port>, PortStats, Vec<Marked>) {
    let region = protocol::stats::StatsRegion::create(1).unwrap();
    let port = Port::new(4096);
    let of = (0..adapters).map(|number| {
        let mark = region.adapter(&format!("a{number}")).unwrap();
        port.set_mark(region.map_adapter(mark, Some("fcs0")).unwrap());
        Marked::of(Elements::new(&port, share(1000), 1), mark, 1)
    });
    let of: Vec<Marked> = of.collect();
    let mark = region.map_adapter(of[0].mark, Some("fcs0")).unwrap();
    (port, mark, of)
}

/// Two adapters whose commands wait one after the other, and then together.
#[test]
fn the_mark_of_what_waits_for_a_port_is_of_all_its_adapters_at_once() {
    let (port, mark, mut of) = marked_port(2);
    let mut wait = |adapter: usize, held: usize| {
        of[adapter].clients[0].hold.rest(|| Waits { held, waiting: 1 }, 0);
        mark.pending_max()
    };
    assert_eq!(wait(0, 10), 10);
    assert_eq!(wait(0, 0), 10);
    assert_eq!(wait(1, 8), 10, "no sum of its adapters' marks");
    assert_eq!(wait(0, 7), 15);
    // What an adapter forgets, its port does not.
    of[0].adapter.reset_mark();
    let mut wait = |adapter: usize, held: usize| {
        of[adapter].clients[0].hold.rest(|| Waits { held, waiting: 1 }, 0);
        mark.pending_max()
    };
    assert_eq!(wait(0, 8), 16);
    wait(0, 1);
    port.reset_mark();
    assert_eq!(mark.pending_max(), 9, "what waits now");
}

/// Two adapters whose commands wait in the server one after the other, and then together.
#[test]
fn the_mark_of_what_waits_in_the_server_for_a_port_is_of_all_its_adapters_at_once() {
    let (port, mark, mut of) = marked_port(2);
    let mut wait = |adapter: usize, waiting: usize| {
        of[adapter].clients[0].hold.rest(|| Waits { held: 2, waiting }, 0);
        mark.waiting_max()
    };
    assert_eq!(wait(0, 10), 10);
    assert_eq!(wait(0, 0), 10);
    assert_eq!(wait(1, 8), 10, "no sum of its adapters' marks");
    assert_eq!(wait(0, 7), 15);
    wait(0, 1);
    port.reset_mark();
    assert_eq!((mark.waiting_max(), mark.pending_max()), (9, 4), "what waits now");
    of.remove(0);
    port.reset_mark();
    assert_eq!((mark.waiting_max(), mark.pending_max()), (8, 2), "what waits at one that is there");
}

/// Two adapters that are busy one after the other, and then together.
#[test]
fn the_mark_of_a_port_is_of_all_its_adapters_at_once_and_begins_again() {
    let (port, mark, mut of) = marked_port(2);
    assert!(mark.active_max_at_ms() > 0, "since when it is kept");
    let every = of[0].clients[0].hold.watch.every;
    of[0].set(0, 8);
    of[0].set(0, 0);
    of[1].set(0, 8);
    of[1].set(0, 0);
    assert_eq!(mark.active_max(), 8, "no sum of its adapters' marks");
    of.iter_mut().for_each(|of| of.now += every);
    of[0].set(0, 6);
    // That found nothing new, so the next look is some 40 µs away.
    of[1].now += every / 100;
    of[1].set(0, 6);
    assert_eq!(mark.active_max(), 12);
    assert_eq!(of.iter().map(|of| of.mark.active_max()).collect::<Vec<_>>(), [8, 8]);
    // What an adapter forgets, its port does not, and what the port forgets, its adapters do not.
    of[0].adapter.reset_mark();
    assert_eq!(mark.active_max(), 12);
    of[1].set(0, 5);
    port.reset_mark();
    assert_eq!((mark.active_max(), of[1].mark.active_max()), (11, 8));
    of.iter_mut().for_each(|of| of.now += every);
    of[0].set(0, 7);
    assert_eq!(mark.active_max(), 12);
    // An adapter that went has no part any more.
    drop(of.remove(0));
    of[0].now += every;
    of[0].set(0, 12);
    assert_eq!(mark.active_max(), 12);
    of[0].now += every;
    of[0].set(0, 13);
    assert_eq!(mark.active_max(), 13);
}

/// What a queue had of the mark when it went, others have when it comes back.
#[test]
fn a_queue_that_comes_has_no_part_of_a_ports_mark() {
    let (_port, mark, mut of) = marked_port(2);
    let every = of[0].clients[0].hold.watch.every;
    of[0].set(0, 10);
    of[1].now += every / 100;
    of[1].set(0, 10);
    assert_eq!(mark.active_max(), 20);
    of[0].clients.clear();
    of[1].now += 2 * every;
    of[1].set(0, 20);
    assert_eq!(mark.active_max(), 20);
    let again = Client::new(&of[0].adapter, 0, 5, 0);
    of[0].clients.push(again);
    of[0].now = of[1].now + every / 10;
    of[0].set(0, 10);
    assert_eq!(mark.active_max(), 30);
}

/// However many adapters are busy, and near the mark again and again, they look at it all together no oftener than one would.
#[test]
fn looks_at_the_mark_of_a_port_do_not_grow_with_its_adapters() {
    let (port, mark, mut of) = marked_port(64);
    let every = of[0].clients[0].hold.watch.every;
    let looks = || port.books(|books| books.looks_at_port());
    of.iter_mut().for_each(|of| of.set(0, 20));
    assert_eq!(mark.active_max(), 64 * 20);
    let before = looks();
    for round in 0..10_000_usize {
        let (one, other) = (round % 64, (round + 1) % 64);
        of.iter_mut().for_each(|of| of.now += every / 1000);
        of[one].set(0, 10);
        of[other].set(0, 30);
        of[one].set(0, 20);
        of[other].set(0, 20);
    }
    assert_eq!(mark.active_max(), 64 * 20);
    let count = looks() - before;
    assert!((10..60).contains(&count), "{count} looks in 100 ms");
}

/// What a queue has in its hand while it works is not active.
#[test]
fn elements_in_a_hand_are_not_active() {
    let mut of = Marked::new(2);
    of.set(0, 8);
    of.set(0, 0);
    assert_eq!(of.clients[0].hold.admit(|| 0), Admission::Own);
    of.set(1, 9);
    assert_eq!(of.mark.active_max(), 9);
}

/// After a calm a burst is seen at its height, though it lasts no time, and looks at the mark that find nothing get rare.
/// Elements that are handed on in the middle of a round, when their queue is woken, are not counted where they were.
#[test]
fn the_mark_is_never_above_the_elements() {
    let mut of = Marked::new(2);
    of.adapter.set_share(share(20));
    of.set(0, 20);
    let [one, other] = of.clients.get_disjoint_mut([0, 1]).unwrap();
    assert_eq!(other.hold.admit(|| 4), Admission::Wait(Shortage::Adapter));
    (0..4).for_each(|_| one.hold.dismiss());
    one.hold.woken(0);
    (0..4).for_each(|_| assert_ne!(other.hold.admit(|| 4), Admission::Wait(Shortage::Adapter)));
    of.now += other.hold.watch.every;
    other.hold.rest(Waits::default, of.now);
    assert!(other.hold.look(of.now) || of.mark.active_max() > 0);
    assert_eq!(of.mark.active_max(), 20);
}

#[test]
fn a_burst_is_seen_when_it_comes() {
    let mut of = Marked::new(4);
    (0..4).for_each(|queue| of.set(queue, 10));
    let every = of.clients[0].hold.watch.every;
    (0..4).for_each(|queue| of.set(queue, 2));
    of.now += 3 * every;
    (0..4).for_each(|queue| of.set(queue, 20));
    assert_eq!((of.mark.active_max(), of.active()), (80, 80));
    // One queue has more and others less, again and again, and all together have no more than ever.
    let looks = |of: &Marked| of.clients[0].hold.watch.pace.due;
    let (mut before, mut count) = (looks(&of), 0);
    for round in 0..10_000 {
        of.now += every / 1000;
        let more = round % 2 * 20;
        of.set(1, 20);
        of.set(0, 20 + more);
        of.set(1, 20 - more);
        count += u32::from(std::mem::replace(&mut before, looks(&of)) != before);
    }
    assert!((5..40).contains(&count), "{count} looks in 100 ms");
}

proptest! {
    /// Whatever the queues do and when: no more than was active at once, and what was active for 10 ms.
    #[test]
    fn the_mark_is_what_was_active_at_once(
        steps in proptest::collection::vec((0_usize..6, 0_usize..40, 0_u64..=1 << 13), 1..300),
    ) {
        let mut of = Marked::new(6);
        let every = of.clients[0].hold.watch.every;
        let (mut most, mut stood) = (0, 0);
        for (queue, active, later) in steps {
            let (before, later) = (of.active(), every * later * later / (1 << 24));
            of.now += later;
            of.set(queue, active);
            most = most.max(of.active()).max(1);
            stood = if later > every { stood.max(before) } else { stood };
            prop_assert!(of.mark.active_max() <= most, "{} > {most}", of.mark.active_max());
            let changed = of.active() != before;
            prop_assert!(!changed || of.mark.active_max() >= stood, "{} < {stood}", of.mark.active_max());
        }
    }

    /// The same of a port and its adapters, where 20 ms are what is never missed.
    #[test]
    fn the_mark_of_a_port_is_what_was_active_at_once(
        steps in proptest::collection::vec((0_usize..6, 0_usize..40, 0_u64..=1 << 13), 1..300),
    ) {
        let (_port, mark, mut of) = marked_port(6);
        let every = of[0].clients[0].hold.watch.every;
        let active = |of: &[Marked]| of.iter().map(Marked::active).sum::<u64>();
        let (mut most, mut stood) = (0, 0);
        for (adapter, commands, later) in steps {
            let (before, later) = (active(&of), 2 * every * later * later / (1 << 24));
            of.iter_mut().for_each(|of| of.now += later);
            of[adapter].set(0, commands);
            most = most.max(active(&of)).max(1);
            stood = if later > 2 * every { stood.max(before) } else { stood };
            prop_assert!(mark.active_max() <= most, "{} > {most}", mark.active_max());
            let changed = active(&of) != before;
            prop_assert!(!changed || mark.active_max() >= stood, "{} < {stood}", mark.active_max());
        }
    }
}
