use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;

mod marks;

/// A queue whose client keeps `depth` commands outstanding.
struct Client {
    hold: QueueElements,
    bell: Arc<Bell>,
    depth: usize,
    held: usize,
    active: usize,
    /// How many commands have ended.
    ended: usize,
    /// What it begins never ends.
    hangs: bool,
}

/// What wakes a client.
#[derive(Default)]
struct Bell {
    rung: AtomicBool,
    /// Where its world looks who was woken, and its place there.
    world: OnceLock<(Arc<Mutex<Vec<usize>>>, usize)>,
}

impl Bell {
    fn ring(&self) {
        if !self.rung.swap(true, Relaxed)
            && let Some((woken, place)) = self.world.get()
        {
            woken.lock().unwrap().push(*place);
        }
    }
}

impl Client {
    fn new(adapter: &Arc<Elements>, queue: u16, own: u16, depth: usize) -> Client {
        let bell = Arc::<Bell>::default();
        let rings = Arc::clone(&bell);
        let hold = QueueElements::new(adapter, queue, own, Box::new(move || rings.ring()));
        Client { hold, bell, depth, held: 0, active: 0, ended: 0, hangs: false }
    }

    /// Takes what came and what was held, as far as it may; how many became active.
    fn take(&mut self) -> usize {
        self.held = self.depth.saturating_sub(self.active);
        let before = self.active;
        while self.held > 0 && !matches!(self.hold.admit(|| self.held), Admission::Wait(_)) {
            self.held -= 1;
            self.active += 1;
        }
        self.hold.rest(|| Waits { held: self.held, waiting: 0 }, 0);
        self.active - before
    }

    fn end(&mut self) {
        self.active -= 1;
        self.ended += 1;
        self.hold.dismiss();
        self.hold.rest(|| Waits { held: self.held, waiting: 0 }, 0);
    }
}

/// Clients on a clock that has no seconds: each command takes about [`LATENCY`].
struct World {
    clients: Vec<Client>,
    /// Who was woken and has not looked.
    woken: Arc<Mutex<Vec<usize>>>,
    /// Whose commands end at each moment, around which the clock goes in circles: none takes longer than a round.
    ends: Vec<Vec<usize>>,
    now: u64,
    random: u64,
    active: usize,
    /// The most that were active at once, and the sum of what was active at each moment.
    most: usize,
    sum: usize,
}

const LATENCY: u64 = 1000;

impl World {
    fn new(clients: Vec<Client>) -> World {
        let woken = Arc::<Mutex<Vec<usize>>>::default();
        for (place, Client { bell, .. }) in clients.iter().enumerate() {
            assert!(bell.world.set((Arc::clone(&woken), place)).is_ok());
            if bell.rung.swap(false, Relaxed) {
                bell.ring();
            }
        }
        let ends = vec![Vec::new(); 2 * LATENCY as usize];
        let mut world =
            World { clients, woken, ends, now: 0, random: 1, active: 0, most: 0, sum: 0 };
        for client in 0..world.clients.len() {
            world.begin(client);
        }
        world
    }

    fn begin(&mut self, client: usize) {
        let begun = self.clients[client].take();
        self.active += begun;
        self.most = self.most.max(self.active);
        if self.clients[client].hangs {
            return;
        }
        for _ in 0..begun {
            // xorshift64: times from a half to one and a half.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let end = self.now + LATENCY / 2 + self.random % (LATENCY + 1);
            self.ends[(end % (2 * LATENCY)) as usize].push(client);
        }
    }

    /// Whoever was woken looks, until nobody is.
    fn wake(&mut self) {
        loop {
            let Some(client) = self.woken.lock().unwrap().pop() else { return };
            self.clients[client].bell.rung.store(false, Relaxed);
            self.begin(client);
            let client = &mut self.clients[client];
            client.hold.woken(client.held);
        }
    }

    fn run_until(&mut self, end: u64) {
        while self.now < end {
            self.now += 1;
            let mut ends = std::mem::take(&mut self.ends[(self.now % (2 * LATENCY)) as usize]);
            for client in ends.drain(..) {
                self.active -= 1;
                self.clients[client].end();
                self.begin(client);
                self.wake();
            }
            // Nothing ends at the moment at which it began.
            self.ends[(self.now % (2 * LATENCY)) as usize] = ends;
            self.sum += self.active;
        }
    }

    /// Commands that end in the time of one, when all is in motion: as many as are active on average, by Little's law.
    fn throughput(&mut self) -> f64 {
        self.run_until(2 * LATENCY);
        let before = self.sum;
        self.run_until(3 * LATENCY);
        (self.sum - before) as f64 / LATENCY as f64
    }
}

fn share(elements: u32) -> Share {
    Share { elements, weight: 100 }
}

/// As many commands end as elements and outstanding commands allow, and no more are active.
fn is_borne_out(queues: u16, running: u16, elements: u32, own: u16, depth: usize) {
    let adapter = Elements::new(&Port::new(4096), share(elements), queues);
    let clients = (0..running).map(|queue| Client::new(&adapter, queue, own, depth)).collect();
    let mut world = World::new(clients);
    let bound = (usize::from(running) * depth).min(elements as usize);
    let throughput = world.throughput();
    let what =
        format!("{running} of {queues} queues, {elements} elements, depth {depth}, own {own}");
    assert!(throughput >= 0.95 * bound as f64, "{what}: {throughput} of {bound}");
    assert!(world.most <= elements as usize, "{what}: {} active", world.most);
    assert_eq!(adapter.active() as usize, world.active, "{what}");
}

#[test]
fn elements_are_divided_over_the_queues_that_have_work() {
    // One queue of a client that was offered 64 of them.
    is_borne_out(64, 1, 64, 5, 64);
    // More queues than elements.
    is_borne_out(64, 64, 20, 5, 4);
    // All own pools together are larger than what there is.
    is_borne_out(64, 64, 200, 64, 16);
    for queues in [1, 2, 3, 8, 16, 64] {
        for elements in [20, 64, 200, 1024, 2048] {
            for depth in [1, 2, 16, 64, 256] {
                is_borne_out(queues, queues, elements, 5, depth);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn throughput_is_what_outstanding_commands_and_elements_allow(
        queues in 1_u16..=64,
        running in 1_u16..=64,
        elements in 20_u32..=2048,
        own in 1_u16..=64,
        depth in 1_usize..=256,
    ) {
        is_borne_out(queues.max(running), running, elements, own, depth);
    }
}

/// All edges with each other: of queues, elements, depths and of what a queue keeps at hand.
#[test]
fn no_edge_gives_less_than_it_could() {
    for queues in [1, 2, 63, 64] {
        for elements in [20, 21, 2047, 2048] {
            for depth in [1, 2, 255, 256] {
                for own in [1, 64] {
                    is_borne_out(64, queues, elements, own, depth);
                }
            }
        }
    }
    for lent in [200, 4096] {
        for elements in [20, 2048] {
            for (queues, depth) in [(1, 1), (1, 256), (16, 1), (16, 256)] {
                busy_among_255(lent, elements, queues, 5, depth);
            }
        }
    }
}

/// Of the 129,856 pairs of 1 to 64 queues and 20 to 2,048 elements: each number of queues with every `step`th number of elements, so that each number
/// of elements is there with some of the queues; and each pair with one depth from 1 to 256, which are all there.
fn pairs(step: u32) {
    let mut depths = [false; 256];
    for queues in 1..=64_u16 {
        let first = 20 + u32::from(queues) * 7 % step;
        for elements in (first..=2048).step_by(step as usize) {
            let depth = 1 + (usize::from(queues) * 89 + elements as usize * 31) % 256;
            depths[depth - 1] = true;
            is_borne_out(64, queues, elements, 5, depth);
        }
    }
    assert!(depths.iter().all(|seen| *seen));
}

#[test]
fn no_pair_of_queues_and_elements_gives_less_than_it_could() {
    pairs(79);
}

/// Every pair there is.
#[test]
#[ignore = "takes six minutes of a CPU: cargo test -p channel no_pair_at_all -- --ignored"]
fn no_pair_at_all_gives_less_than_it_could() {
    pairs(1);
}

/// Of 255 adapters of a port one has work, and the others have had some.
#[test]
fn one_busy_adapter_among_255_has_the_port() {
    busy_among_255(2048, 2048, 8, 5, 256);
    busy_among_255(2048, 200, 1, 5, 256);
    busy_among_255(4096, 2048, 64, 64, 32);
    busy_among_255(200, 200, 16, 1, 64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn one_busy_adapter_among_255_has_what_it_may(
        lent in 200_u32..=4096,
        elements in 20_u32..=2048,
        queues in 1_u16..=16,
        own in 1_u16..=64,
        depth in 1_usize..=256,
    ) {
        busy_among_255(lent, elements, queues, own, depth);
    }
}

/// A port with so many elements, and its adapters, of which one keeps `depth` commands outstanding on each queue.
fn busy_among_255(lent: u32, elements: u32, queues: u16, own: u16, depth: usize) {
    let port = Port::new(lent);
    let adapters: Vec<_> =
        (0..255).map(|_| Elements::new(&port, share(elements), queues)).collect();
    let mut clients = Vec::new();
    for adapter in &adapters {
        clients.extend((0..queues).map(|queue| Client::new(adapter, queue, own, 1)));
    }
    // Each has had one command and keeps its own elements at hand, as far as they go.
    for client in &mut clients {
        assert_eq!(client.take(), 1);
        client.end();
        client.depth = 0;
    }
    clients[..usize::from(queues)].iter_mut().for_each(|client| client.depth = depth);
    let mut world = World::new(clients);
    let most = elements.min(lent) as usize;
    let bound = (usize::from(queues) * depth).min(most);
    let throughput = world.throughput();
    let what = format!(
        "{lent} elements, {elements} of them for {queues} queues of depth {depth}, own {own}"
    );
    assert!(throughput >= 0.95 * bound as f64, "{what}: {throughput} of {bound}");
    assert!(world.most <= most, "{what}: {} active", world.most);
}

/// Shares count while elements are short, and what was lent comes back in the time of one command.
#[test]
fn adapters_that_wait_share_by_weight_and_get_back_what_was_lent() {
    let port = Port::new(300);
    let share = |weight| Share { elements: 2048, weight };
    let adapters = [Elements::new(&port, share(100), 4), Elements::new(&port, share(200), 4)];
    let clients = |adapter| (0..4).map(move |queue| Client::new(adapter, queue, 5, 128));
    let mut world = World::new(adapters.iter().flat_map(clients).collect());
    let active = |world: &World| {
        let of = |range: std::ops::Range<usize>| {
            world.clients[range].iter().map(|client| client.active).sum::<usize>()
        };
        (of(0..4), of(4..8))
    };
    world.run_until(4 * LATENCY);
    let (one, two) = active(&world);
    assert!(one.abs_diff(100) <= 10 && two.abs_diff(200) <= 10, "{one} and {two}");
    // The heavier one falls silent, and all is lent to the other.
    world.clients[4..].iter_mut().for_each(|client| client.depth = 0);
    world.run_until(8 * LATENCY);
    let (one, two) = active(&world);
    assert!(one >= 285 && two == 0, "{one} and {two}");
    // It comes back: its part is there again when the longest command has ended twice.
    world.clients[4..].iter_mut().for_each(|client| client.depth = 128);
    (4..8).for_each(|client| world.begin(client));
    world.run_until(11 * LATENCY);
    let (one, two) = active(&world);
    assert!(one.abs_diff(100) <= 10 && two.abs_diff(200) <= 10, "{one} and {two}");
    assert!(world.most <= 300);
}

/// Within an adapter no queue is kept waiting by one that was first.
#[test]
fn queues_that_wait_have_the_same() {
    let adapter = Elements::new(&Port::new(2048), share(64), 3);
    let mut world = World::new((0..3).map(|queue| Client::new(&adapter, queue, 5, 100)).collect());
    world.run_until(4 * LATENCY);
    let active: Vec<usize> = world.clients.iter().map(|client| client.active).collect();
    assert!(active.iter().all(|active| active.abs_diff(21) <= 2), "{active:?}");
}

/// What each client's commands came to in the time of so many, when all is in motion.
fn ended_in(world: &mut World, commands: u64) -> Vec<usize> {
    let ended = |world: &World| world.clients.iter().map(|one| one.ended).collect::<Vec<_>>();
    world.run_until(4 * LATENCY);
    let before = ended(world);
    world.run_until((4 + commands) * LATENCY);
    ended(world).iter().zip(before).map(|(now, before)| now - before).collect()
}

/// More queues want elements than there are: each has one in turn.
#[test]
fn queues_beyond_the_elements_have_them_in_turn() {
    for (queues, elements, depth) in [(64, 20, 8), (21, 20, 1), (64, 63, 256), (40, 20, 2)] {
        let adapter = Elements::new(&Port::new(2048), share(elements), queues);
        let clients = (0..queues).map(|queue| Client::new(&adapter, queue, 5, depth)).collect();
        let ended = ended_in(&mut World::new(clients), 100);
        let even = 100 * elements as usize / usize::from(queues);
        let what = format!("{queues} queues, {elements} elements: {ended:?}");
        assert!(ended.iter().all(|count| *count >= even / 2 && *count <= even * 2), "{what}");
    }
}

/// More adapters want elements of a port than it has, whatever their weights are.
#[test]
fn adapters_beyond_the_elements_of_a_port_have_them_in_turn() {
    for weights in [[100, 100], [100, 1000], [1, 1000]] {
        let port = Port::new(20);
        let adapters: Vec<_> = (0..60)
            .map(|number| Share { elements: 2048, weight: weights[number % 2] })
            .map(|share| Elements::new(&port, share, 2))
            .collect();
        let clients = |adapter| (0..2).map(move |queue| Client::new(adapter, queue, 5, 16));
        let ended = ended_in(&mut World::new(adapters.iter().flat_map(clients).collect()), 200);
        assert!(ended.iter().all(|count| *count >= 8), "{weights:?}: {ended:?}");
    }
}

/// Adapters of a port, each with two queues and a depth of so many commands, and what the commands of each come to in the time of 400.
fn ended_by_adapter(elements: u32, weights: &[u32], depth: usize) -> Vec<usize> {
    let port = Port::new(elements);
    let share = |weight: &u32| Share { elements: 2048, weight: *weight };
    let adapters: Vec<_> =
        weights.iter().map(|weight| Elements::new(&port, share(weight), 2)).collect();
    let clients = |adapter| (0..2).map(move |queue| Client::new(adapter, queue, 5, depth));
    let ended = ended_in(&mut World::new(adapters.iter().flat_map(clients).collect()), 400);
    ended.chunks(2).map(|queues| queues.iter().sum()).collect()
}

/// Parts that are less than an element are had in turns, and weights count in them.
#[test]
fn shares_count_where_a_port_has_fewer_elements_than_adapters() {
    for depth in [1, 16] {
        let weights: Vec<u32> = (0..60).map(|number| [100, 300][number % 2]).collect();
        let ended = ended_by_adapter(20, &weights, depth);
        // 8,000 in all.
        for (weight, ended) in weights.iter().zip(&ended) {
            let part = 8000 * *weight as usize / (30 * 400);
            assert!(ended.abs_diff(part) <= part / 4, "{ended} of {part}: {ended:?}");
        }
        // One has more than an element, the others less; none is less often served than by a quarter of a mean weight.
        let weights = [&[1000][..], &[1; 30]].concat();
        let ended = ended_by_adapter(20, &weights, depth);
        let least = ended[1..].iter().min().unwrap();
        assert!(*least >= 400 * 20 / 31 / 8, "{ended:?}");
        if depth == 16 {
            assert!(ended[0] >= 8000 * 2 / 3, "{ended:?}");
        }
    }
}

/// What hangs behind one adapter keeps no more than its part, though its turns come like those of others.
#[test]
fn a_disk_that_hangs_takes_no_turns_of_others() {
    let port = Port::new(20);
    let adapters: Vec<_> = (0..40).map(|_| Elements::new(&port, share(2048), 1)).collect();
    let mut clients: Vec<_> =
        adapters.iter().map(|adapter| Client::new(adapter, 0, 5, 16)).collect();
    let hang = [0, 7];
    hang.iter().for_each(|hangs| clients[*hangs].depth = 0);
    let mut world = World::new(clients);
    world.run_until(LATENCY);
    for client in hang {
        (world.clients[client].hangs, world.clients[client].depth) = (true, 16);
        world.begin(client);
    }
    let ended = ended_in(&mut world, 100);
    assert_eq!(hang.map(|client| world.clients[client].active), [1, 1]);
    let even = 100 * 18 / 38;
    for (number, ended) in ended.iter().enumerate().filter(|(number, _)| !hang.contains(number)) {
        assert!(*ended >= even / 2, "{number}: {ended}");
    }
}

/// A disk that hangs behind one adapter: another one comes, and finds something.
#[test]
fn who_takes_all_leaves_something_to_those_that_come() {
    let port = Port::new(640);
    let greedy = Elements::new(&port, share(2048), 1);
    let other = Elements::new(&port, share(2048), 1);
    let mut hangs = Client::new(&greedy, 0, 5, 1000);
    assert_eq!(hangs.take(), 620);
    let mut comes = Client::new(&other, 0, 5, 16);
    assert_eq!(comes.take(), 16);
    assert_eq!(hangs.take(), 0);
    // Who is alone has all.
    let alone = Elements::new(&Port::new(640), share(2048), 1);
    assert_eq!(Client::new(&alone, 0, 5, 1000).take(), 640);
}

#[test]
fn a_queue_keeps_its_own_at_hand_and_what_is_beyond_goes_back() {
    let port = Port::new(100);
    let adapter = Elements::new(&port, share(100), 2);
    let mut client = Client::new(&adapter, 0, 5, 40);
    assert_eq!(client.take(), 40);
    assert_eq!(client.hold.local.free(), 0);
    client.depth = 0;
    client.held = 0;
    (0..40).for_each(|_| client.end());
    assert_eq!(client.hold.local.free(), 5);
    assert_eq!(port.books(|books| books.lent()), 5);
    drop(client);
    assert_eq!(port.books(|books| books.lent()), 0);
}

#[test]
fn why_a_command_waits_is_said() {
    let port = Port::new(100);
    let adapter = Elements::new(&port, share(30), 1);
    let other = Elements::new(&port, share(100), 1);
    let mut one = Client::new(&adapter, 0, 5, 31);
    assert_eq!(one.take(), 30);
    assert_eq!(one.hold.admit(|| 1), Admission::Wait(Shortage::Adapter));
    let mut two = Client::new(&other, 0, 5, 80);
    assert_eq!(two.take(), 70 - 100 / 32);
    assert_eq!(two.hold.admit(|| 1), Admission::Wait(Shortage::Port));
}

/// The port says who waits for it, and of the others who has most beyond its part.
#[test]
fn who_waits_and_who_holds_are_told() {
    let region = protocol::stats::StatsRegion::create(1).unwrap();
    let reader = protocol::stats::StatsReader::open(region.file()).unwrap();
    let port = Port::new(100);
    let named = |name: &str| {
        let adapter = Elements::new(&port, share(100), 1);
        adapter.set_mark(region.adapter(name).unwrap());
        adapter
    };
    let (much, some, few) = (named("much"), named("some"), named("few"));
    let mut clients = [(&much, 60), (&some, 34), (&few, 50)]
        .map(|(adapter, depth)| Client::new(adapter, 0, 1, depth));
    assert_eq!(clients.each_mut().map(Client::take), [60, 34, 6]);
    let told = || {
        let adapters = reader.snapshot().adapters;
        let short = |one: &protocol::stats::AdapterSnapshot| one.short_since_ms(u64::MAX).is_some();
        let told = adapters.into_iter().map(|one| (one.holds_up, short(&one), one.adapter));
        told.collect::<Vec<_>>()
    };
    let expected = |count, some| {
        vec![(count, false, "much".into()), (0, some, "some".into()), (0, true, "few".into())]
    };
    assert_eq!(told(), expected(1, false));
    // Who has its part and wants more is held up by the same one, and none by it.
    assert_eq!(clients[1].hold.admit(|| 1), Admission::Wait(Shortage::Port));
    assert_eq!(told(), expected(2, true));
    // What ends is theirs, and then the shortage is over.
    let [much, some, few] = &mut clients;
    (0..50).for_each(|_| much.end());
    (some.depth, few.depth) = (0, 0);
    assert_eq!((some.take(), few.take()), (0, 0));
    some.hold.woken(0);
    few.hold.woken(0);
    assert!(told().iter().all(|(_, short, _)| !short), "{:?}", told());
}

/// Bounds that change under load hold with the commands that end.
#[test]
fn bounds_change_while_commands_are_active() {
    let port = Port::new(400);
    let adapter = Elements::new(&port, share(300), 4);
    let mut world = World::new((0..4).map(|queue| Client::new(&adapter, queue, 5, 128)).collect());
    assert_eq!(adapter.active(), 300);
    adapter.set_share(share(20));
    world.run_until(2 * LATENCY);
    assert_eq!(adapter.active(), 20);
    adapter.set_share(share(400));
    world.wake();
    assert_eq!(adapter.active(), 400);
    port.set_elements(100);
    world.run_until(4 * LATENCY);
    assert_eq!(adapter.active(), 100);
    port.set_elements(200);
    world.wake();
    assert_eq!(adapter.active(), 200);
}

/// Real threads: nothing is lost, nothing is made, and who waits is woken.
#[test]
fn threads_take_and_give_back() {
    let adapter = Elements::new(&Port::new(2048), share(7), 4);
    let (most, now) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for queue in 0..4 {
            let (adapter, most, now) = (&adapter, &most, &now);
            scope.spawn(move || {
                let thread = std::thread::current();
                let wake: Wake = Box::new(move || thread.unpark());
                let mut hold = QueueElements::new(adapter, queue, 2, wake);
                let (mut done, mut active) = (0, 0);
                while done < 20_000 {
                    let held = 5 - active;
                    if held > 0 && !matches!(hold.admit(|| held), Admission::Wait(_)) {
                        active += 1;
                        most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
                        if done % 3 == 0 {
                            hold.rest(|| Waits { held: 5 - active, waiting: 0 }, 0);
                        }
                    } else if active > 0 {
                        active -= 1;
                        done += 1;
                        now.fetch_sub(1, Relaxed);
                        hold.dismiss();
                        hold.rest(|| Waits { held, waiting: 0 }, 0);
                    } else {
                        // A lost wake is a test that does not end.
                        std::thread::park();
                        hold.woken(held);
                    }
                }
                while active > 0 {
                    active -= 1;
                    now.fetch_sub(1, Relaxed);
                    hold.dismiss();
                    hold.rest(Waits::default, 0);
                }
            });
        }
    });
    assert!((5..=7).contains(&most.load(Relaxed)), "{most:?}");
    assert_eq!(adapter.port.books(|books| books.lent()), 0);
}
