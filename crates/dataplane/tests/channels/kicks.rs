//! Clients that kick when nobody asks them to.

use protocol::stats::QueueCounter;

use super::turns::{Client, Stand};

/// As often as a queue that looks by itself is found empty before its client is asked to kick, and once more.
const TURNS: usize = 300;

/// Turns in which another client has work, so that the channel does not sleep.
fn busy_turns(stand: &mut Stand, other: &mut Client, turns: usize) {
    for _ in 0..turns {
        other.read(1, 512);
        assert!(stand.channel.turn());
        assert_eq!(other.answers(), 1);
    }
}

#[test]
fn nobody_listens_to_a_client_that_kicks_for_nothing() {
    let mut stand = Stand::new();
    let (mut loud, mut other) = (stand.block("loud", false), stand.block("other", false));
    let heard = |loud: &Client| loud.count(QueueCounter::Kicks);
    for round in 1..=3 {
        let before = heard(&loud);
        for _ in 0..2 * TURNS {
            // While its queue is looked at anyway.
            loud.read(1, 512);
            (0..10).for_each(|_| loud.kick());
            busy_turns(&mut stand, &mut other, 1);
            assert_eq!(loud.answers(), 1);
        }
        let needless = heard(&loud) - before;
        assert!(
            (1..100).contains(&needless),
            "{needless} of 6,000 kicks were heard in round {round}"
        );

        // It is found empty, and asked to kick; of kicks that nobody heard the channel hears once, and looks in vain.
        busy_turns(&mut stand, &mut other, 2 * TURNS);
        let before = heard(&loud);
        loud.read(1, 512);
        busy_turns(&mut stand, &mut other, 10);
        assert_eq!((loud.answers(), heard(&loud)), (0, before), "nobody looks in round {round}");
        loud.kick();
        busy_turns(&mut stand, &mut other, 2);
        assert_eq!((loud.answers(), heard(&loud)), (1, before + 1), "in round {round}");
    }
}

/// One that kicks for each request, and waits for its answer before the next, is heard each time.
#[test]
fn a_client_that_kicks_once_too_often_is_heard() {
    let mut stand = Stand::new();
    let (mut client, mut other) = (stand.block("client", false), stand.block("other", false));
    for round in 0..5 {
        busy_turns(&mut stand, &mut other, TURNS);
        client.read(1, 512);
        client.kick();
        client.kick();
        busy_turns(&mut stand, &mut other, 2);
        assert_eq!(client.answers(), 1, "in round {round}");
    }
}
