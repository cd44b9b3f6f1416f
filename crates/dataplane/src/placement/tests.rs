use proptest::prelude::*;
use protocol::message::BlockSpec;

use super::*;

fn spec(channels: u16, placement: Placement) -> AdapterSpec {
    AdapterSpec {
        queues: 8,
        channels,
        queue_size: 256,
        placement,
        ..AdapterSpec::new("vhost0", "/s", BlockSpec::on("v"))
    }
}

#[test]
fn spread_uses_every_allowed_channel_from_the_quietest_on() {
    let load = [5, 1, 3, 4];
    assert_eq!(initial(&spec(0, Placement::Spread), 6, &load), [1, 2, 3, 0, 1, 2]);
    assert_eq!(initial(&spec(2, Placement::Spread), 4, &load), [1, 2, 1, 2]);
    assert_eq!(initial(&spec(0, Placement::Spread), 2, &load), [1, 2]);
    assert_eq!(initial(&spec(0, Placement::Adaptive), 3, &load), [1, 1, 1]);
    assert_eq!(initial(&spec(0, Placement::Spread), 3, &[0]), [0, 0, 0]);
}

fn load(unit: usize, channel: usize, share: f64) -> UnitLoad {
    UnitLoad { adapter: 0, unit, channel, allowed: 2, share, stays: false }
}

#[test]
fn a_busy_channel_gives_a_queue_away_and_a_quiet_one_takes_it() {
    let queues = [load(0, 0, 0.45), load(1, 0, 0.45)];
    assert_eq!(rebalance(&[0.9, 0.0], &queues, &[]), [Move { adapter: 0, unit: 0, to: 1 }]);
    assert_eq!(rebalance(&[0.6, 0.0], &queues, &[]), [], "not busy enough");
    assert_eq!(rebalance(&[0.9, 0.85], &queues, &[]), [], "the other one is no better off");
    assert_eq!(rebalance(&[0.9, 0.0], &[load(0, 0, 0.9)], &[]), [], "one queue has one channel");
}

#[test]
fn an_adapter_that_may_use_one_channel_leaves_a_busy_one_with_all_that_it_has_there() {
    let disk = UnitLoad { adapter: 1, unit: 0, channel: 0, allowed: 1, share: 0.45, stays: false };
    let other = UnitLoad { adapter: 2, ..disk };
    assert_eq!(rebalance(&[0.9, 0.0], &[disk, other], &[]), [Move { adapter: 1, unit: 0, to: 1 }]);
    let both = [disk, UnitLoad { unit: 1, ..disk }];
    assert_eq!(rebalance(&[0.9, 0.0], &both, &[]), [], "it would be on two");
}

#[test]
fn queues_fold_when_one_channel_is_enough_for_all() {
    let queues = [load(0, 0, 0.1), load(1, 1, 0.1)];
    assert_eq!(rebalance(&[0.1, 0.1], &queues, &[]), [Move { adapter: 0, unit: 1, to: 0 }]);
    assert_eq!(
        rebalance(&[0.3, 0.3], &[load(0, 0, 0.3), load(1, 1, 0.3)], &[]),
        [],
        "together too much"
    );
}

/// A card of one pair, on a channel, with a share of it.
fn card(adapter: usize, channel: usize, share: f64) -> UnitLoad {
    UnitLoad { adapter, unit: 0, channel, allowed: 1, share, stays: false }
}

fn talk(one: usize, other: usize, frames: f64) -> Talk {
    Talk { between: [one, other], frames }
}

#[test]
fn those_that_talk_are_brought_together_where_there_is_room() {
    let cards = [card(0, 0, 0.1), card(1, 1, 0.1)];
    let together = [Move { adapter: 0, unit: 0, to: 1 }];
    assert_eq!(rebalance(&[0.1, 0.1], &cards, &[talk(0, 1, 5000.0)]), together);
    assert_eq!(rebalance(&[0.1, 0.1], &cards, &[talk(0, 1, 50.0)]), [], "not worth a move");
    // A disk on the one channel: they meet on the other.
    let other = [Move { adapter: 1, unit: 0, to: 0 }];
    assert_eq!(rebalance(&[0.1, 0.4], &cards, &[talk(0, 1, 5000.0)]), other);
    assert_eq!(rebalance(&[0.4, 0.4], &cards, &[talk(0, 1, 5000.0)]), [], "no room");
    let stays = [UnitLoad { stays: true, ..cards[0] }, cards[1]];
    assert_eq!(rebalance(&[0.1, 0.1], &stays, &[talk(0, 1, 5000.0)]), other);
    let stay = stays.map(|card| UnitLoad { stays: true, ..card });
    assert_eq!(rebalance(&[0.1, 0.1], &stay, &[talk(0, 1, 5000.0)]), []);
}

#[test]
fn those_that_talk_leave_a_channel_that_a_disk_keeps_busy_and_meet_on_the_other() {
    let disk = UnitLoad { stays: true, ..card(9, 0, 0.7) };
    let mut units = [card(0, 0, 0.12), card(1, 0, 0.12), disk];
    let talks = [talk(0, 1, 5000.0)];
    let mut path = Vec::new();
    loop {
        let steps = rebalance(&busy_of(2, &units), &units, &talks);
        if steps.is_empty() {
            break;
        }
        steps.iter().for_each(|step| units[step.adapter].channel = step.to);
        path.extend(steps.iter().map(|step| (step.adapter, step.to)));
    }
    assert_eq!(path, [(0, 1), (1, 1)]);
    // Where both are too much for one, they stay parted.
    let units = [card(0, 0, 0.6), card(1, 1, 0.6)];
    assert_eq!(rebalance(&[0.6, 0.6], &units, &talks), []);
    let units = [card(0, 0, 0.45), card(1, 0, 0.45)];
    assert_eq!(rebalance(&[0.9, 0.0], &units, &talks), [Move { adapter: 0, unit: 0, to: 1 }]);
}

#[test]
fn an_adapter_is_not_folded_away_from_those_that_its_pairs_talk_with() {
    let two = |unit, channel| UnitLoad { unit, channel, allowed: 2, ..card(0, 0, 0.05) };
    let stays = |adapter, channel| UnitLoad { stays: true, ..card(adapter, channel, 0.05) };
    let units = [two(0, 0), two(1, 1), stays(1, 0), stays(2, 1)];
    let busy = busy_of(2, &units);
    let talks = [talk(0, 2, 1000.0), talk(1, 3, 1000.0)];
    assert_eq!(rebalance(&busy, &units, &talks), []);
    assert_eq!(rebalance(&busy, &units, &talks[..1]), [Move { adapter: 0, unit: 1, to: 0 }]);
}

#[test]
fn an_uplink_with_a_channel_of_its_own_has_the_last_one_as_long_as_there_is_another() {
    for (channels, open, descriptors) in
        [(1, 1, [0, 0, 0, 0]), (2, 1, [1, 1, 1, 1]), (3, 2, [2, 2, 2, 2])]
    {
        assert_eq!(
            (open_channels(channels, true), open_channels(channels, false)),
            (open, channels)
        );
        let on = |thread| [0, 1, 2, 3].map(|number| of_descriptor(number, channels, thread));
        assert_eq!(on(true), descriptors);
        assert_eq!(on(false), [0, 1, 2, 3].map(|number| number % channels));
    }
}

#[test]
fn clients_leave_a_channel_that_is_kept() {
    let stays = |adapter, unit, channel, allowed| UnitLoad {
        stays: true,
        unit,
        allowed,
        ..card(adapter, channel, 0.01)
    };
    // An adaptive one goes where some of it is, another to the quietest; one that is spread stays so, as far as it may.
    let units = [
        load(0, 0, 0.1),
        load(1, 2, 0.1),
        card(1, 2, 0.3),
        stays(2, 0, 2, 2),
        stays(2, 1, 2, 2),
        stays(3, 0, 2, 1),
        stays(3, 1, 2, 1),
    ];
    let moves = rebalance(&busy_of(3, &units)[..2], &units, &[]);
    let to: Vec<_> = moves.iter().map(|step| (step.adapter, step.unit, step.to)).collect();
    assert_eq!(to, [(0, 1, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0), (3, 0, 0), (3, 1, 0)]);
    assert_eq!(rebalance(&[0.1], &[load(0, 0, 0.1), load(1, 0, 0.1)], &[]), [], "all are off it");
}

/// How busy channels are with these.
fn busy_of(channels: usize, units: &[UnitLoad]) -> Vec<f64> {
    let mut busy = vec![0.0; channels];
    units.iter().for_each(|unit| busy[unit.channel] += unit.share);
    busy
}

/// Frames a second that are handed over.
fn handed_over(units: &[UnitLoad], talks: &[Talk]) -> f64 {
    let parted = |talk: &&Talk| {
        let [one, other] = talk.between;
        units[one].channel != units[other].channel
    };
    talks.iter().filter(parted).map(|talk| talk.frames).sum()
}

proptest! {
    /// Whatever the load and who talks with whom: moves go to channels that exist, respect the contract, move none that stays, and come to rest; what is done for those that talk
    /// spares what it has to, and makes no channel busier than quiet. At rest nobody could come to whom it talks with by what is worth it.
    #[test]
    fn balancing_comes_to_rest(
        channels in 1_usize..6,
        shares in prop::collection::vec((0_usize..6, 0.0..0.5_f64, 0_usize..6), 1..14),
        bound in prop::collection::vec(prop::bool::weighted(0.2), 6),
        allowed in 1_usize..6,
        scattered in any::<bool>(),
        heard in prop::collection::vec((0_usize..14, 0_usize..14, 0.0..3000.0_f64), 0..20),
        scale in prop::sample::select(vec![0.02, 0.3, 1.0]),
        kept in any::<bool>(),
    ) {
        // One more, which was open until now: some are on it.
        let more = channels + usize::from(kept);
        let mut units: Vec<UnitLoad> = shares.iter().enumerate()
            .map(|(unit, (adapter, share, channel))| {
                let stays = bound[*adapter];
                // Those of an adapter that may be on so many begin on as many.
                let channel = if scattered { channel % allowed.min(channels) } else { 0 };
                let channel = if kept && adapter % 3 == 0 { channels } else { channel };
                UnitLoad { adapter: *adapter, unit, channel, allowed, share: share * scale, stays }
            })
            .collect();
        let talks: Vec<Talk> = heard.iter()
            .map(|(one, other, frames)| talk(one % units.len(), other % units.len(), *frames))
            .filter(|talk| talk.between[0] != talk.between[1])
            .collect();
        let mut steps = 0;
        loop {
            let busy = busy_of(more, &units);
            let moves = rebalance(&busy[..channels], &units, &talks);
            if moves.is_empty() {
                break;
            }
            let before = units.clone();
            let leaves = steps == 0 && units.iter().any(|unit| unit.channel == channels);
            for step in &moves {
                prop_assert!(step.to < channels);
                let unit = units[step.unit];
                let may = if leaves { unit.channel == channels } else { !unit.stays };
                prop_assert!(may);
                prop_assert_eq!(units[step.unit].adapter, step.adapter);
                prop_assert_ne!(units[step.unit].channel, step.to);
                units[step.unit].channel = step.to;
            }
            prop_assert!(units.iter().all(|unit| unit.channel < channels), "all at once");
            let after = busy_of(channels, &units);
            let relieved = moves.len() == 1 && {
                let from = before[moves[0].unit].channel;
                busy[from] > BUSY && after[from].max(after[moves[0].to]) < busy[from] - 0.1
            };
            if !relieved && !leaves {
                prop_assert!(after[moves[0].to] < QUIET + 1e-9, "{:?} to {:?}", busy, after);
                let more = handed_over(&units, &talks) - handed_over(&before, &talks);
                prop_assert!(more < SCATTER * 6.0, "{more} frames more are handed over");
            }
            for adapter in 0..6 {
                prop_assert!(channels_of(&units, adapter).len() <= allowed);
            }
            steps += 1;
            prop_assert!(steps < 200, "moves for ever");
        }
        // A card of one unit, all of whose talks are with one channel that has room.
        let busy = busy_of(channels, &units);
        for (at, unit) in units.iter().enumerate() {
            let single = units.iter().filter(|each| each.adapter == unit.adapter).count() == 1;
            let mut with = vec![0.0; channels];
            for talk in talks.iter().filter(|talk| talk.between.contains(&at)) {
                let peer = talk.between[usize::from(talk.between[0] == at)];
                with[units[peer].channel] += talk.frames;
            }
            let all: f64 = with.iter().sum();
            for (to, frames) in with.iter().enumerate() {
                let gain = frames - with[unit.channel];
                let is_worth_it = single && !unit.stays && to != unit.channel
                    && gain > TALK.max(all / 4.0) + 1e-6 && busy[to] + unit.share < QUIET - 1e-6;
                prop_assert!(!is_worth_it, "{unit:?} would spare {gain} on {to}");
            }
        }
    }
}
