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

fn load(queue: usize, channel: usize, share: f64) -> QueueLoad {
    QueueLoad { adapter: 0, queue, channel, allowed: 2, share }
}

#[test]
fn a_busy_channel_gives_a_queue_away_and_a_quiet_one_takes_it() {
    let queues = [load(0, 0, 0.45), load(1, 0, 0.45)];
    assert_eq!(rebalance(&[0.9, 0.0], &queues), [Move { adapter: 0, queue: 0, to: 1 }]);
    assert_eq!(rebalance(&[0.6, 0.0], &queues), [], "not busy enough");
    assert_eq!(rebalance(&[0.9, 0.85], &queues), [], "the other one is no better off");
    assert_eq!(rebalance(&[0.9, 0.0], &[load(0, 0, 0.9)]), [], "one queue has one channel");
}

#[test]
fn queues_fold_when_one_channel_is_enough_for_all() {
    let queues = [load(0, 0, 0.1), load(1, 1, 0.1)];
    assert_eq!(rebalance(&[0.1, 0.1], &queues), [Move { adapter: 0, queue: 1, to: 0 }]);
    assert_eq!(
        rebalance(&[0.3, 0.3], &[load(0, 0, 0.3), load(1, 1, 0.3)]),
        [],
        "together too much"
    );
}

proptest! {
    /// Whatever the load, moves go to channels that exist, respect the contract, and repeated steps under an unchanged load come to rest.
    #[test]
    fn balancing_comes_to_rest(
        channels in 1_usize..6,
        shares in prop::collection::vec((0_usize..3, 0.0..0.5_f64), 1..12),
        allowed in 1_usize..6,
    ) {
        let mut queues: Vec<QueueLoad> = shares.iter().enumerate()
            .map(|(queue, (adapter, share))| QueueLoad { adapter: *adapter, queue, channel: 0, allowed, share: *share })
            .collect();
        let mut steps = 0;
        loop {
            let mut busy = vec![0.0; channels];
            for queue in &queues {
                busy[queue.channel] += queue.share;
            }
            let moves = rebalance(&busy, &queues);
            if moves.is_empty() {
                break;
            }
            for step in moves {
                prop_assert!(step.to < channels);
                queues[step.queue].channel = step.to;
            }
            for adapter in 0..3 {
                prop_assert!(channels_of(&queues, adapter).len() <= allowed.max(1));
            }
            steps += 1;
            prop_assert!(steps < 100, "moves for ever");
        }
    }
}
