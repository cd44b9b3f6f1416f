//! The truth table, against a naive oracle; single steps.

use super::*;

pub(super) fn vid(number: u16) -> Vid {
    Vid::new(number).unwrap()
}

pub(super) fn vids(numbers: &[u16]) -> VidSet {
    numbers.iter().copied().map(vid).collect()
}

pub(super) fn settings(mode: Mode, priority: u8, vlans: &[(u16, u16)]) -> Settings {
    let vlans = vlans.iter().map(|(number, trunk)| (vid(*number), *trunk)).collect();
    Settings { mode, priority, failback: Failback::AtOnce, vlans }
}

/// Two adapters that hear each other, and the tokens of what they bridge.
struct Pair {
    machines: [Machine; 2],
    tokens: BTreeMap<Vid, usize>,
}

impl Pair {
    fn carry_out(&mut self, who: usize, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Take(wanted) => {
                    let free = |vid: &Vid| !self.tokens.contains_key(vid);
                    let got: VidSet = wanted.into_iter().filter(free).collect();
                    self.tokens.extend(got.iter().map(|vid| (*vid, who)));
                    let acts = self.machines[who].step(Event::Got(got));
                    self.carry_out(who, acts);
                }
                Act::Close(_) => {
                    let acts = self.machines[who].step(Event::Quiet);
                    self.carry_out(who, acts);
                }
                Act::GiveBack(back) => {
                    back.iter().for_each(|vid| assert_eq!(self.tokens.remove(vid), Some(who)));
                }
                Act::Open(_) => {}
                Act::Say(beacon) => {
                    let acts = self.machines[1 - who].step(Event::Heard(beacon));
                    self.carry_out(1 - who, acts);
                }
            }
        }
    }

    fn settle(&mut self) {
        for _ in 0..3 * PATIENCE {
            for who in 0..2 {
                let acts = self.machines[who].step(Event::Beat);
                self.carry_out(who, acts);
            }
        }
    }

    fn tell(&mut self, who: usize, event: Event) {
        let acts = self.machines[who].step(event);
        self.carry_out(who, acts);
        self.settle();
    }

    fn states(&self) -> [State; 2] {
        [0, 1].map(|who| self.machines[who].state().0)
    }
}

fn pair(one: Settings, other: Settings) -> Pair {
    let machines = [Machine::new(1, one), Machine::new(2, other)];
    let mut pair = Pair { machines, tokens: BTreeMap::new() };
    pair.settle();
    pair
}

/// As IBM's documents say it, line by line: of the same mode the lower priority is primary; `auto` is before `standby`; sharing needs both and two trunks.
#[test]
fn every_line_of_the_truth_table() {
    use Mode::{Auto, Sharing, Standby};
    let both = [(10, 0), (20, 1)];
    for (one, other) in [Auto, Standby, Sharing]
        .into_iter()
        .flat_map(|one| [Auto, Standby, Sharing].map(|other| (one, other)))
    {
        for priorities in [[1, 2], [2, 1]] {
            let pair =
                pair(settings(one, priorities[0], &both), settings(other, priorities[1], &both));
            let first = match (one, other) {
                (Standby, Auto | Sharing) => false,
                (Auto | Sharing, Standby) => true,
                _ => priorities[0] < priorities[1],
            };
            let loses = |mode| if mode == Standby { State::Standby } else { State::Backup };
            let expected = match (one, other, first) {
                (Sharing, Sharing, true) => [State::PrimarySharing, State::BackupSharing],
                (Sharing, Sharing, false) => [State::BackupSharing, State::PrimarySharing],
                (_, _, true) => [State::Primary, loses(other)],
                (_, _, false) => [loses(one), State::Primary],
            };
            assert_eq!(pair.states(), expected, "{one:?} {other:?} {priorities:?}");
        }
    }
}

#[test]
fn a_change_of_the_mode_moves_the_bridge_there_and_back() {
    let vlans = [(10, 0), (20, 1)];
    let mut pair = pair(settings(Mode::Auto, 1, &vlans), settings(Mode::Auto, 2, &vlans));
    assert_eq!(pair.states(), [State::Primary, State::Backup]);
    pair.tell(0, Event::Settings(settings(Mode::Standby, 1, &vlans)));
    assert_eq!(pair.states(), [State::Standby, State::Primary]);
    assert_eq!(pair.machines[0].state().1, Cause::PartnerPreferred);
    pair.tell(0, Event::Settings(settings(Mode::Auto, 1, &vlans)));
    assert_eq!(pair.states(), [State::Primary, State::Backup]);
    // One that does not yield.
    pair.tell(1, Event::Settings(settings(Mode::Disabled, 2, &vlans)));
    assert_eq!(pair.states(), [State::Backup, State::Primary]);
}

#[test]
fn limbo_ends_when_the_link_is_back() {
    let vlans = [(10, 0)];
    let mut pair = pair(settings(Mode::Auto, 1, &vlans), settings(Mode::Auto, 2, &vlans));
    pair.tell(0, Event::Link(false));
    assert_eq!(pair.states(), [State::Limbo, State::Primary]);
    assert_eq!(pair.machines[1].state().1, Cause::PartnerInLimbo);
    pair.tell(1, Event::Link(false));
    assert_eq!(pair.states(), [State::Limbo, State::Limbo]);
    pair.tell(1, Event::Link(true));
    assert_eq!(pair.states(), [State::Limbo, State::Primary]);
    pair.tell(0, Event::Link(true));
    assert_eq!(pair.states(), [State::Primary, State::Backup]);
}

#[test]
fn who_is_answered_bridges_and_if_neither_is_it_is_as_before() {
    let vlans = [(10, 0), (20, 1)];
    let mut pair = pair(settings(Mode::Auto, 1, &vlans), settings(Mode::Standby, 2, &vlans));
    pair.tell(0, Event::Reaches(false));
    assert_eq!(pair.states(), [State::Backup, State::Primary]);
    let causes = [0, 1].map(|who| pair.machines[who].state().1);
    assert_eq!(causes, [Cause::Unanswered, Cause::PartnerUnanswered]);
    pair.tell(1, Event::Reaches(false));
    assert_eq!(pair.states(), [State::Primary, State::Standby]);
    assert_eq!(pair.machines[0].state().1, Cause::Preferred);
    pair.tell(1, Event::Reaches(true));
    assert_eq!(pair.states(), [State::Backup, State::Primary]);
    // A link that is down is worse than an address that does not answer.
    pair.tell(1, Event::Link(false));
    assert_eq!(pair.states(), [State::Primary, State::Limbo]);
    pair.tell(1, Event::Link(true));
    pair.tell(0, Event::Reaches(true));
    assert_eq!(pair.states(), [State::Primary, State::Standby]);
    // Nobody shares with one that is not answered, and who never yields asks in vain.
    let sharing = || settings(Mode::Sharing, 1, &vlans);
    pair.tell(1, Event::Settings(settings(Mode::Sharing, 2, &vlans)));
    pair.tell(0, Event::Settings(sharing()));
    assert_eq!(pair.states(), [State::PrimarySharing, State::BackupSharing]);
    pair.tell(0, Event::Reaches(false));
    assert_eq!(pair.states(), [State::Backup, State::Primary]);
    pair.tell(0, Event::Settings(Settings { mode: Mode::Disabled, ..sharing() }));
    assert_eq!(pair.states(), [State::Primary, State::Backup]);
}

#[test]
fn shared_vlans_go_to_who_is_left_and_differing_ones_to_who_has_them() {
    let both = [(10, 0), (20, 1), (30, 2)];
    let mut pair = pair(settings(Mode::Sharing, 1, &both), settings(Mode::Sharing, 2, &both));
    assert_eq!(*pair.machines[0].open(), vids(&[10, 30]));
    assert_eq!(*pair.machines[1].open(), vids(&[20]));
    assert_eq!(pair.machines[1].state(), (State::BackupSharing, Cause::Shared));
    pair.tell(0, Event::Link(false));
    assert_eq!(*pair.machines[1].open(), vids(&[10, 20, 30]));
    pair.tell(0, Event::Link(true));
    assert_eq!(*pair.machines[0].open(), vids(&[10, 30]));
    // What only one has is that one's.
    pair.tell(0, Event::Settings(settings(Mode::Auto, 1, &both[..1])));
    assert_eq!(*pair.machines[1].open(), vids(&[20, 30]));
    assert_eq!(*pair.machines[0].open(), vids(&[10]));
}

#[test]
fn who_hears_nobody_waits_and_then_takes_what_is_free() {
    let mut one = Machine::new(1, settings(Mode::Auto, 2, &[(10, 0), (20, 0)]));
    for _ in 0..PATIENCE {
        let acts = one.step(Event::Beat);
        assert!(matches!(&acts[..], [Act::Say(_)]), "{acts:?}");
        assert_eq!(one.state(), (State::Backup, Cause::Listening));
    }
    let acts = one.step(Event::Beat);
    assert_eq!(acts[0], Act::Take(vids(&[10, 20])));
    assert_eq!(one.step(Event::Got(vids(&[20]))), [Act::Open(vids(&[20]))]);
    assert_eq!(one.state().1, Cause::TokenTaken);
    // It goes on asking for the rest, and for nothing else.
    assert_eq!(one.step(Event::Beat)[0], Act::Take(vids(&[10])));
    // A partner that ended is not waited for.
    let mut other = Machine::new(2, settings(Mode::Auto, 2, &[(10, 0)]));
    assert_eq!(other.step(Event::Gone), []);
    assert_eq!(other.step(Event::Beat)[0], Act::Take(vids(&[10])));
}

#[test]
fn nothing_is_given_back_before_it_is_quiet() {
    let mut one = Machine::new(1, settings(Mode::Auto, 2, &[(10, 0), (20, 0)]));
    let _ = one.step(Event::Gone);
    let _ = one.step(Event::Got(vids(&[10, 20])));
    assert_eq!(one.step(Event::Link(false)), [Act::Close(vids(&[10, 20]))]);
    // Even if it is wanted again meanwhile.
    assert_eq!(one.step(Event::Link(true)), []);
    assert!(matches!(&one.step(Event::Beat)[..], [Act::Say(_)]));
    assert_eq!(one.state().1, Cause::Yielding);
    assert_eq!(one.step(Event::Quiet), [Act::GiveBack(vids(&[10, 20]))]);
    assert_eq!(one.step(Event::Beat)[0], Act::Take(vids(&[10, 20])));
}

/// A pair of which the first one is the better one, comes back so, and has just returned to a partner that bridges.
fn returned(failback: Failback) -> Pair {
    let vlans = [(10, 0), (20, 1)];
    let better = || Settings { failback, ..settings(Mode::Auto, 1, &vlans) };
    let mut pair = pair(better(), settings(Mode::Auto, 2, &vlans));
    // Nobody to wait for when both start.
    assert_eq!(pair.states(), [State::Primary, State::Backup]);
    pair.tell(0, Event::Link(false));
    assert_eq!(pair.states(), [State::Limbo, State::Primary]);
    pair.tell(0, Event::Link(true));
    pair
}

#[test]
fn who_comes_back_waits_as_long_as_it_is_told() {
    let mut at_once = returned(Failback::AtOnce);
    assert_eq!(at_once.states(), [State::Primary, State::Backup]);
    at_once.settle();

    let mut pair = returned(Failback::Delayed);
    assert_eq!(pair.states(), [State::Backup, State::Primary]);
    let causes = [0, 1].map(|who| pair.machines[who].state().1);
    assert_eq!(causes, [Cause::Waiting, Cause::PartnerWaits]);
    assert_eq!(pair.machines[0].waits(), Some(Failback::Delayed));
    pair.tell(0, Event::Waited);
    assert_eq!(pair.states(), [State::Primary, State::Backup]);
    assert_eq!(pair.machines[0].waits(), None);
    // A wait that ended says nothing of the next one.
    pair.tell(0, Event::Link(false));
    pair.tell(0, Event::Link(true));
    assert_eq!(pair.machines[0].waits(), Some(Failback::Delayed));
    // It is started anew.
    let settings = pair.machines[0].settings().clone();
    pair.tokens.retain(|_, holder| *holder != 0);
    pair.machines[0] = Machine::new(3, settings);
    pair.settle();
    assert_eq!(pair.states(), [State::Backup, State::Primary]);
    // What the address says is a return, too.
    pair.tell(0, Event::Waited);
    pair.tell(0, Event::Reaches(false));
    pair.tell(0, Event::Reaches(true));
    assert_eq!(pair.states(), [State::Backup, State::Primary]);

    let mut never = returned(Failback::ByHand);
    never.tell(0, Event::Waited);
    assert_eq!(never.states(), [State::Backup, State::Primary]);
    assert_eq!(never.machines[0].state().1, Cause::StaysBack);
}

/// A fault of the partner is none of its returns, and neither is somebody's hand.
#[test]
fn nobody_waits_for_a_partner_that_is_worse_off() {
    let faults: [&dyn Fn(&mut Pair); 4] = [
        &|pair| pair.tell(1, Event::Link(false)),
        &|pair| pair.tell(1, Event::Reaches(false)),
        &|pair| {
            // It is killed.
            pair.tokens.clear();
            pair.machines[1] = Machine::new(2, pair.machines[1].settings().clone());
            let acts = pair.machines[0].step(Event::Gone);
            pair.carry_out(0, acts);
            let acts = pair.machines[0].step(Event::Beat);
            pair.carry_out(0, acts);
            pair.settle();
        },
        &|pair| {
            let mode = Mode::Standby;
            let settings = Settings { mode, ..pair.machines[1].settings().clone() };
            pair.tell(1, Event::Settings(settings));
        },
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        for failback in [Failback::Delayed, Failback::ByHand] {
            let mut pair = returned(failback);
            fault(&mut pair);
            assert_eq!(pair.states()[0], State::Primary, "fault {number}, {failback:?}");
        }
    }
    let hands: [fn(&mut Settings); 4] = [
        |all| all.failback = Failback::AtOnce,
        |all| all.priority = 0,
        |all| all.mode = Mode::Disabled,
        |all| all.mode = Mode::Sharing,
    ];
    for (number, hand) in hands.into_iter().enumerate() {
        let mut pair = returned(Failback::ByHand);
        let mut settings = pair.machines[0].settings().clone();
        hand(&mut settings);
        pair.tell(0, Event::Settings(settings.clone()));
        assert_eq!(pair.states(), [State::Primary, State::Backup], "hand {number}");
    }
    // Of two that share the returning one waits for its part, and keeps nothing from the other.
    let mut pair = returned(Failback::Delayed);
    for who in [1, 0] {
        let mode = Mode::Sharing;
        let settings = Settings { mode, ..pair.machines[who].settings().clone() };
        pair.tell(who, Event::Settings(settings));
    }
    assert_eq!(pair.states(), [State::PrimarySharing, State::BackupSharing]);
    assert_eq!(pair.machines[1].state().1, Cause::Shared);
    pair.tell(0, Event::Link(false));
    pair.tell(0, Event::Link(true));
    assert_eq!(pair.states(), [State::Backup, State::Primary]);
    let causes = [0, 1].map(|who| pair.machines[who].state().1);
    assert_eq!(causes, [Cause::Waiting, Cause::PartnerWaits]);
    pair.tell(0, Event::Waited);
    assert_eq!(pair.states(), [State::PrimarySharing, State::BackupSharing]);
}

/// A lease that was lost, and the partner that has it since.
#[test]
fn a_lost_lease_is_a_return_as_well() {
    let vlans = [(10, 0)];
    let better = Settings { failback: Failback::ByHand, ..settings(Mode::Auto, 1, &vlans) };
    let mut pair = pair(better, settings(Mode::Auto, 2, &vlans));
    let acts = pair.machines[0].step(Event::Lost(vids(&[10])));
    assert_eq!(acts, [Act::Close(vids(&[10]))]);
    assert_eq!(pair.machines[0].step(Event::Quiet), [Act::GiveBack(vids(&[10]))]);
    pair.tokens.clear();
    let acts = pair.machines[1].step(Event::Gone);
    pair.carry_out(1, acts);
    let acts = pair.machines[1].step(Event::Beat);
    pair.carry_out(1, acts);
    pair.settle();
    assert_eq!(pair.states(), [State::Backup, State::Primary]);
}
