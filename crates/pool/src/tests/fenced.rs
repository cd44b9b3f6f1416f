//! Pools that another server takes over in the middle of what is under way.

use super::*;

fn requests() -> Vec<Request> {
    let all = mirror::alphabet().into_iter().chain(layers::alphabet());
    all.filter_map(|step| if let Step::Ask(request) = step { Some(request) } else { None })
        .collect()
}

fn setups() -> Vec<Setup> {
    mirror::setups().into_iter().chain(layers::setups()).collect()
}

/// Whichever PV refuses, and whatever is under way: from then on nothing is answered, nothing is written and nobody is away. What was answered before is there when the pool is opened again.
#[test]
fn a_pool_that_another_server_has_taken_answers_nobody_and_writes_nothing() {
    let (requests, setups) = (requests(), setups());
    let mut fenced = 0;
    for seed in 0..3000 {
        let mut random = Random(seed);
        (0..5).for_each(|_| _ = random.below(2));
        let setup = &setups[random.below(setups.len())];
        let mut world = World::open(setup.pages.clone(), setup.oracle.clone(), None).unwrap();
        world.rest();
        (world.random, world.schedule) = (random, Schedule::Any);
        let members = world.pool.superblock().members.len();
        let mut open = Vec::new();
        for step in 0..12 {
            let request = requests[world.random.below(requests.len())];
            open.push(world.submit(request));
            if step == 4 {
                world.taken_over = Some(world.random.below(members) as u16);
            }
            let turns = world.random.below(20);
            for _ in 0..turns {
                world.step();
                // Each begins when those before it are over, as the shell has it where they overlap.
                open.retain(|tag| world.oracle.is_open(*tag));
            }
            if world.pool.stopped().is_none() && world.random.below(3) > 0 {
                world.rest();
            }
        }
        world.rest();
        if world.pool.stopped() != Some(Fault::Fenced) {
            continue;
        }
        fenced += 1;
        open.retain(|tag| world.oracle.is_open(*tag));
        let before = world.pool.superblock().clone();
        for request in &requests {
            let tag = world.submit(*request);
            assert!(world.oracle.is_open(tag), "{}: {seed}: {request:?}", setup.name);
            assert_eq!(world.faults.get(&tag), Some(&Fault::Fenced), "{seed}: {request:?}");
            assert_eq!(world.flying().len(), 0, "{}: {seed}: {request:?}", setup.name);
        }
        assert!(!world.step(), "{seed}: something goes on");
        assert!(open.iter().all(|tag| world.oracle.is_open(*tag)), "{seed}");
        assert_eq!(*world.pool.superblock(), before);
        assert!((0..members as u16).all(|pv| !world.pool.is_away(pv)), "{}: {seed}", setup.name);
        world.taken_over = None;
        world.kill().unwrap_or_else(|error| panic!("{}: {seed}: {error}", setup.name));
        world.rest();
        let mut members = world.pool.superblock().members.iter();
        assert!(members.all(|member| member.state != MemberState::Stale), "{seed}");
        let members = world.pool.superblock().members.len() as u16;
        assert!((0..members).all(|pv| !world.pool.is_away(pv)), "{}: {seed}", setup.name);
        world.judge_now().unwrap_or_else(|wrong| panic!("{}: {seed}: {wrong}", setup.name));
    }
    assert!(fenced > 1000, "{fenced}");
}

/// What is to be added, or is away, may be somebody else's: it is not added, and does not return.
#[test]
fn a_pv_that_is_not_the_pool_s_now_fences_nothing() {
    let mut world = layers::pool([0, 1, 1], 8);
    let new = NewPv { pv: Uuid([4; 16]), chunks: 8, tier: 0, group: 1 };
    world.taken_over = Some(3);
    let tag = world.submit(Request::AddPv(new));
    world.rest();
    assert_eq!((world.pool.stopped(), world.faults.get(&tag)), (None, Some(&Fault::Medium)));
    world.lose(1);
    let checkpoint = world.submit(Request::Checkpoint);
    world.rest();
    assert!(world.pool.is_away(1) && !world.oracle.is_open(checkpoint));
    world.taken_over = Some(1);
    let tag = world.bring_back().unwrap();
    world.rest();
    assert!(world.faults.contains_key(&tag) && world.pool.is_away(1));
    assert_eq!(world.pool.stopped(), None);
    world.taken_over = None;
    let tag = world.bring_back();
    assert_eq!(tag, None, "nobody has lost it");
    let tag = world.submit(Request::ReturnPv { pv: 1 });
    world.rest();
    assert_eq!((world.faults.get(&tag), world.pool.is_away(1)), (None, false));
    world.judge_now().unwrap();
}
