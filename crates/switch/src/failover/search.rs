//! All orders of everything that can happen to two adapters, breadth first: no VLAN ever has two bridges, and from everywhere there is a way to one.
//!
//! What can happen: beats in any order; beacons lost, doubled, overtaken; a process stopped and continued, killed (its tokens are free) and started,
//! both at once at the beginning; links down and up; other settings; the data path quiet at any time after a close, or not yet.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::tests::{settings, vid};
use super::*;

/// Beacons of one sender that are on their way.
const UNDER_WAY: usize = 1;

#[derive(Debug, Clone, Hash)]
struct Node {
    /// None: killed.
    machine: Option<Machine>,
    stopped: bool,
    /// What the data path bridges, whether it was told to stop or not.
    bridges: VidSet,
    /// What of that it was told to stop.
    stops: VidSet,
    /// Which of the settings it has.
    setting: usize,
    under_way: Vec<Beacon>,
}

#[derive(Debug, Clone, Hash)]
struct World {
    nodes: [Node; 2],
    /// Who has the token of each VLAN.
    tokens: BTreeMap<Vid, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Happens {
    Beat,
    /// The oldest or the newest beacon arrives; it may come again.
    Hears {
        newest: bool,
        again: bool,
    },
    Loses,
    Stop,
    Continue,
    Kill,
    Start,
    Link(bool),
    Reload,
    Quiet,
}

const HAPPENS: [Happens; 12] = [
    Happens::Beat,
    Happens::Hears { newest: false, again: false },
    Happens::Hears { newest: false, again: true },
    Happens::Hears { newest: true, again: false },
    Happens::Loses,
    Happens::Stop,
    Happens::Continue,
    Happens::Kill,
    Happens::Start,
    Happens::Link(false),
    Happens::Link(true),
    Happens::Quiet,
];

/// What both are set to, and to what each may be set anew.
struct Case {
    settings: [Vec<Settings>; 2],
    planted: Option<Planted>,
}

impl Case {
    fn of(modes: [&[Mode]; 2], priorities: [u8; 2], vlans: &[(u16, u16)]) -> Case {
        let of = |who: usize| {
            modes[who].iter().map(|mode| settings(*mode, priorities[who], vlans)).collect()
        };
        Case { settings: [of(0), of(1)], planted: None }
    }

    fn machine(&self, who: usize, setting: usize) -> Machine {
        let machine = Machine::new(who as u64, self.settings[who][setting].clone());
        Machine { planted: self.planted, ..machine }
    }

    fn begin(&self) -> World {
        let node = |who| Node {
            machine: Some(self.machine(who, 0)),
            stopped: false,
            bridges: VidSet::new(),
            stops: VidSet::new(),
            setting: 0,
            under_way: Vec::new(),
        };
        World { nodes: [node(0), node(1)], tokens: BTreeMap::new() }
    }

    /// None: that cannot happen now.
    fn after(&self, world: &World, who: usize, happens: Happens) -> Option<World> {
        let mut world = world.clone();
        let node = &mut world.nodes[who];
        match happens {
            Happens::Stop if node.machine.is_some() && !node.stopped => node.stopped = true,
            Happens::Continue if node.stopped => node.stopped = false,
            Happens::Kill if node.machine.is_some() => {
                let setting = node.setting;
                let under_way = std::mem::take(&mut node.under_way);
                *node = Node { setting, under_way, ..self.begin().nodes[who].clone() };
                node.machine = None;
                world.tokens.retain(|_, holder| *holder != who);
            }
            Happens::Start if node.machine.is_none() => {
                node.machine = Some(self.machine(who, node.setting));
            }
            Happens::Loses if !node.under_way.is_empty() => drop(node.under_way.remove(0)),
            _ if node.machine.is_none() || node.stopped => return None,
            Happens::Beat => world.step(who, Event::Beat),
            Happens::Link(up) if node.machine.as_ref()?.fit != up => {
                world.step(who, Event::Link(up));
            }
            Happens::Reload if self.settings[who].len() > 1 => {
                node.setting = (node.setting + 1) % self.settings[who].len();
                let settings = self.settings[who][node.setting].clone();
                world.step(who, Event::Settings(settings));
            }
            Happens::Quiet if !node.stops.is_empty() => {
                let stops = std::mem::take(&mut node.stops);
                node.bridges = &node.bridges - &stops;
                world.step(who, Event::Quiet);
            }
            Happens::Hears { newest, again } => {
                let under_way = &mut world.nodes[1 - who].under_way;
                let at = if newest { under_way.len().checked_sub(1)? } else { 0 };
                let beacon = under_way.get(at)?.clone();
                if !again {
                    under_way.remove(at);
                }
                world.step(who, Event::Heard(beacon));
            }
            _ => return None,
        }
        Some(world)
    }
}

impl World {
    fn step(&mut self, who: usize, event: Event) {
        let acts = self.nodes[who].machine.as_mut().expect("it lives").step(event);
        for act in acts {
            let node = &mut self.nodes[who];
            match act {
                Act::Take(wanted) => {
                    let free = |vid: &Vid| !self.tokens.contains_key(vid);
                    let got: VidSet = wanted.into_iter().filter(free).collect();
                    self.tokens.extend(got.iter().map(|vid| (*vid, who)));
                    self.step(who, Event::Got(got));
                }
                Act::Open(vids) => node.bridges.extend(vids),
                Act::Close(vids) => node.stops.extend(vids),
                Act::GiveBack(vids) => {
                    self.tokens.retain(|vid, holder| *holder != who || !vids.contains(vid));
                    // A data path that was not told knows nothing of it.
                }
                Act::Say(beacon) => {
                    node.under_way.push(beacon);
                    if node.under_way.len() > UNDER_WAY {
                        node.under_way.remove(0);
                    }
                }
            }
        }
    }

    /// What must be true at any moment.
    fn broken(&self) -> Option<&'static str> {
        if self.nodes[0].bridges.intersection(&self.nodes[1].bridges).next().is_some() {
            return Some("two bridges");
        }
        let has = |who: usize, vid: &Vid| self.tokens.get(vid) == Some(&who);
        let without = |who: usize| self.nodes[who].bridges.iter().any(|vid| !has(who, vid));
        (without(0) || without(1)).then_some("a bridge without its token")
    }

    /// Nothing goes wrong any more, and both live: how it ends.
    fn settled(&self, case: &Case) -> World {
        let mut world = self.clone();
        for who in 0..2 {
            for calm in [Happens::Continue, Happens::Start] {
                world = case.after(&world, who, calm).unwrap_or(world);
            }
        }
        for _ in 0..4 * PATIENCE {
            for calm in
                [Happens::Beat, Happens::Hears { newest: true, again: false }, Happens::Quiet]
            {
                for who in 0..2 {
                    world = case.after(&world, who, calm).unwrap_or(world);
                }
            }
        }
        world
    }

    /// Every VLAN has one bridge, of an adapter whose link is up, if there is one.
    fn unfinished(&self) -> Option<&'static str> {
        let fit = |who: usize| {
            let machine = self.nodes[who].machine.as_ref().expect("it lives");
            machine.fit || machine.settings.mode == Mode::Disabled
        };
        let all: VidSet =
            self.nodes[0].machine.iter().flat_map(|m| m.settings.vlans.keys()).copied().collect();
        let bridged: VidSet = (0..2).flat_map(|who| &self.nodes[who].bridges).copied().collect();
        if (fit(0) || fit(1)) && bridged != all {
            return Some("a VLAN without a bridge");
        }
        let idle = (0..2).any(|who| !fit(who) && !self.nodes[who].bridges.is_empty());
        if idle {
            return Some("a bridge whose link is down");
        }
        let rank = |who: usize| {
            let Settings { mode, priority, .. } =
                self.nodes[who].machine.as_ref().expect("it lives").settings;
            (Machine::rank(mode, priority, who as u64), mode)
        };
        let ((one, first), (other, second)) = (rank(0), rank(1));
        // What does not yield keeps what it has, also of one that came to be like it.
        let free = first != second || !matches!(first, Mode::Sharing | Mode::Disabled);
        let worse = usize::from(one < other);
        let strays = free && fit(0) && fit(1) && !self.nodes[worse].bridges.is_empty();
        strays.then_some("a bridge at the wrong one")
    }
}

fn digest(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Searches all worlds within so many steps, or the first so many of them; what is wrong in one, with the way to it.
fn search(case: &Case, most: usize) -> Result<usize, (String, Vec<(usize, Happens)>)> {
    let begin = case.begin();
    let mut came_from: HashMap<u64, Option<(u64, usize, Happens)>> = HashMap::new();
    came_from.insert(digest(&begin), None);
    let mut next = VecDeque::from([begin]);
    while let Some(world) = next.pop_front() {
        let here = digest(&world);
        let wrong = world.broken().or_else(|| {
            // The end of some of them: each takes as long as a hundred.
            let end = here.is_multiple_of(32).then(|| world.settled(case));
            end.and_then(|end| end.broken().or_else(|| end.unfinished()))
        });
        if let Some(wrong) = wrong {
            let mut way = Vec::new();
            let mut at = here;
            while let Some((before, who, happens)) = came_from[&at] {
                way.push((who, happens));
                at = before;
            }
            way.reverse();
            return Err((wrong.to_owned(), way));
        }
        if came_from.len() >= most {
            continue;
        }
        for who in 0..2 {
            for happens in HAPPENS.into_iter().chain([Happens::Reload]) {
                let Some(then) = case.after(&world, who, happens) else { continue };
                if let std::collections::hash_map::Entry::Vacant(free) =
                    came_from.entry(digest(&then))
                {
                    free.insert(Some((here, who, happens)));
                    next.push_back(then);
                }
            }
        }
    }
    Ok(came_from.len())
}

/// As many worlds as a short test can look at; `cargo test -- --ignored` looks at all.
const SOME: usize = 8_000;

fn cases() -> Vec<Case> {
    use Mode::{Auto, Disabled, Sharing, Standby};
    let (one, two) = ([(10, 0)], [(10, 0), (20, 1)]);
    vec![
        Case::of([&[Auto], &[Auto]], [1, 2], &one),
        // Equal priorities, and settings that are changed meanwhile.
        Case::of([&[Auto, Standby], &[Auto]], [1, 1], &one),
        Case::of([&[Standby], &[Auto, Disabled]], [1, 2], &one),
        Case::of([&[Sharing, Auto], &[Sharing]], [1, 2], &two),
    ]
}

#[test]
fn no_vlan_ever_has_two_bridges() {
    for (number, case) in cases().into_iter().enumerate() {
        let seen = search(&case, SOME)
            .unwrap_or_else(|(what, way)| panic!("case {number}: {what}: {way:?}"));
        assert!(seen > 1_000, "case {number}: {seen}");
    }
}

#[test]
#[ignore = "minutes"]
fn no_vlan_ever_has_two_bridges_in_any_order() {
    for (number, case) in cases().into_iter().enumerate() {
        let seen = search(&case, usize::MAX);
        let seen = seen.unwrap_or_else(|(what, way)| panic!("case {number}: {what}: {way:?}"));
        println!("case {number}: {seen} states");
    }
}

#[test]
fn what_is_broken_on_purpose_is_found() {
    let all = [
        (Planted::GivesBackAtOnce, "a bridge without its token"),
        (Planted::OpensWithoutToken, "a bridge without its token"),
        (Planted::ForgetsAtReload, "a bridge at the wrong one"),
        (Planted::NeverYields, "a bridge at the wrong one"),
        (Planted::StaysInLimbo, "a bridge whose link is down"),
    ];
    for (planted, expected) in all {
        let found = cases()
            .into_iter()
            .find_map(|case| search(&Case { planted: Some(planted), ..case }, SOME).err());
        let (what, way) = found.unwrap_or_else(|| panic!("{planted:?} was not found"));
        assert_eq!(what, expected, "{planted:?}: {way:?}");
        assert!(!way.is_empty());
    }
}

#[test]
fn a_partner_that_stands_still_keeps_its_bridge() {
    let case = Case::of([&[Mode::Auto], &[Mode::Auto]], [1, 2], &[(10, 0)]);
    let mut world = case.begin().settled(&case);
    assert_eq!(world.tokens[&vid(10)], 0);
    world = case.after(&world, 0, Happens::Stop).expect("it runs");
    for _ in 0..4 * PATIENCE {
        world = case.after(&world, 1, Happens::Beat).expect("it lives");
    }
    assert_eq!(world.tokens[&vid(10)], 0);
    let waiting = world.nodes[1].machine.as_ref().expect("it lives");
    assert_eq!(waiting.state(), (State::Backup, Cause::TokenTaken));
    // Killed, it is followed with the next beat.
    world = case.after(&world, 0, Happens::Kill).expect("it is there");
    world = case.after(&world, 1, Happens::Beat).expect("it lives");
    assert_eq!(world.tokens[&vid(10)], 1);
}
