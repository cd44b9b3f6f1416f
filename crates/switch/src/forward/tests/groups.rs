//! Multicast: who gets a group, with one channel and with several.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const GROUP: [u8; 6] = [1, 0, 0x5e, 1, 2, 3];

fn igmp(body: &[u8], to: [u8; 4]) -> Vec<u8> {
    frame(GROUP, station(7), &ipv4(2, [10, 0, 0, 7], to, body))
}

/// A moment at which the ports of [`old`] do not get everything any more.
const LATER_S: u64 = 1000;

/// A switch whose ports have been there for a while.
fn old(ports: &[PortSpec]) -> Switch {
    let mut switch = switch(ports);
    switch.age(0);
    switch
}

#[test]
fn a_group_goes_to_its_members_and_towards_routers_while_there_is_a_querier() {
    let mut switch = old(&[(); 5].map(|()| PortSpec::access(vid(1))));
    let data = frame(GROUP, station(1), &ipv4(17, [10, 0, 0, 1], [239, 1, 2, 3], &[0; 8]));
    let report = |kind: u8| igmp(&[kind, 0, 0, 0, 239, 1, 2, 3], [239, 1, 2, 3]);
    let query = igmp(&[0x11, 100, 0, 0, 0, 0, 0, 0], [224, 0, 0, 1]);
    let mut at = |now_s, from, frame: &[u8]| {
        send(&mut switch, (LATER_S + now_s) * SECOND, from, frame).unwrap()
    };
    // Nobody asks, so nothing that was said is believed for long: to all.
    assert_eq!(at(0, 2, &report(0x16)), [0, 1, 3, 4]);
    assert_eq!(at(0, 1, &data), [0, 2, 3, 4]);
    // A querier behind 0: reports go to it alone; the group to it and to the member, when all have had the time to answer.
    assert_eq!(at(1, 0, &query), [1, 2, 3, 4]);
    assert_eq!(at(26, 1, &data), [0, 2, 3, 4]);
    assert_eq!(at(27, 1, &data), [0, 2]);
    assert_eq!(at(28, 3, &report(0x12)), [0]);
    // Version 3: two records, one of them to exclude nothing, which is to join.
    let v3 = [0x22, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 239, 9, 9, 9, 4, 0, 0, 0, 239, 1, 2, 3];
    assert_eq!(at(28, 4, &igmp(&v3, [224, 0, 0, 22])), [0]);
    assert_eq!(at(28, 1, &data), [0, 2, 3, 4]);
    // A leave: two seconds for others to object.
    at(30, 3, &igmp(&[0x17, 0, 0, 0, 239, 1, 2, 3], [224, 0, 0, 2]));
    assert_eq!(at(31, 1, &data), [0, 2, 3, 4]);
    assert_eq!(at(32, 1, &data), [0, 2, 4]);
    // Near groups go to all, and so does all once the querier keeps quiet.
    let near = frame(GROUP, station(1), &ipv4(17, [10, 0, 0, 1], [224, 0, 0, 251], &[0; 8]));
    assert_eq!(at(32, 1, &near), [0, 2, 3, 4]);
    assert_eq!(at(1 + 255, 1, &data), [0, 2, 3, 4]);
}

#[test]
fn an_mld_querier_is_none_for_ipv4_and_reports_are_read() {
    let mut switch = old(&[(); 4].map(|()| PortSpec::access(vid(1))));
    let group = [0xff, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    let local = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let mac = [0x33, 0x33, 0, 0, 0, 9];
    let nodes = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let mld = |to: [u8; 16], body: &[u8]| {
        // Hop-by-hop with a router alert, as MLD has it.
        let body = [&[58, 0, 5, 2, 0, 0, 1, 0], body].concat();
        frame(mac, station(7), &ipv6(0, local, to, &body))
    };
    let data = frame(mac, station(1), &ipv6(17, local, group, &[0; 8]));
    let v4 = frame(GROUP, station(1), &ipv4(17, [10, 0, 0, 1], [239, 1, 2, 3], &[0; 8]));
    let query = mld(nodes, &[&[130, 0, 0, 0, 0, 0, 0, 0][..], &[0; 16]].concat());
    let report = mld(group, &[&[143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0][..], &group].concat());
    let mut at = |now_s, from, frame: &[u8]| {
        send(&mut switch, (LATER_S + now_s) * SECOND, from, frame).unwrap()
    };
    assert_eq!(at(0, 0, &query), [1, 2, 3]);
    assert_eq!(at(0, 2, &report), [0]);
    assert_eq!(at(26, 1, &data), [0, 2]);
    assert_eq!(at(26, 1, &v4), [0, 2, 3]);
}

#[test]
fn a_port_that_says_more_than_is_kept_gets_everything() {
    let mut switch = old(&[(); 4].map(|()| PortSpec::access(vid(1))));
    send(&mut switch, LATER_S * SECOND, 0, &query()).unwrap();
    let now_ns = (LATER_S + 26) * SECOND;
    for group in 0..20 {
        let report = igmp(&[0x16, 0, 0, 0, 239, 0, 0, group], [239, 0, 0, group]);
        assert_eq!(send(&mut switch, now_ns, 2, &report), Ok(vec![0]));
    }
    let data = frame(GROUP, station(1), &ipv4(17, [10, 0, 0, 1], [239, 1, 2, 3], &[0; 8]));
    assert_eq!(send(&mut switch, now_ns, 1, &data), Ok(vec![0, 2]));
    // A report that goes further than the bytes that are known.
    let long = [&[0x22, 0, 0, 0, 0, 0, 0, 99][..], &[0; 800]].concat();
    send(&mut switch, now_ns, 3, &igmp(&long, [224, 0, 0, 22])).unwrap();
    assert_eq!(send(&mut switch, now_ns, 1, &data), Ok(vec![0, 2, 3]));
}

#[test]
fn a_guarded_port_cannot_become_a_querier() {
    let mut guarded = PortSpec::access(vid(1));
    guarded.guard.router = false;
    let mut switch = old(&[guarded, PortSpec::access(vid(1)), PortSpec::access(vid(1))]);
    send(&mut switch, LATER_S * SECOND, 0, &query()).unwrap();
    assert_eq!(send(&mut switch, (LATER_S + 26) * SECOND, 1, &data(3)), Ok(vec![0, 2]));
}

const ALL_HOSTS: [u8; 4] = [224, 0, 0, 1];

fn query() -> Vec<u8> {
    igmp(&[0x11, 100, 0, 0, 0, 0, 0, 0], ALL_HOSTS)
}

/// A report of version 2, or a leave.
fn report(kind: u8, last: u8) -> Vec<u8> {
    igmp(&[kind, 0, 0, 0, 239, 1, 2, last], [239, 1, 2, last])
}

/// A report of version 3: of each group what is done.
fn records(all: &[(u8, u8)]) -> Vec<u8> {
    let count = all.len() as u8;
    let records = all.iter().flat_map(|(kind, last)| [*kind, 0, 0, 0, 239, 1, 2, *last]);
    let body: Vec<u8> = [0x22, 0, 0, 0, 0, 0, 0, count].into_iter().chain(records).collect();
    igmp(&body, [224, 0, 0, 22])
}

fn data(last: u8) -> Vec<u8> {
    frame(GROUP, station(1), &ipv4(17, [10, 0, 0, 1], [239, 1, 2, last], &[0; 8]))
}

/// Channels with the same ports, which tell each other what they learn.
struct Channels(Vec<Switch>);

impl Channels {
    fn new(channels: usize, ports: usize) -> Channels {
        let ports = vec![PortSpec::access(vid(1)); ports];
        Channels((0..channels).map(|_| switch(&ports)).collect())
    }

    /// A frame comes; what is learned of it is lost on its way to one of the others, perhaps. Where it goes, and how much was told.
    fn tell(
        &mut self,
        (now_s, channel, from): (u64, usize, u16),
        frame: &[u8],
        misses: Option<usize>,
    ) -> (Vec<u16>, usize) {
        self.0.iter_mut().for_each(|switch| switch.age(now_s * SECOND));
        let to = send(&mut self.0[channel], now_s * SECOND, from, frame).unwrap_or_default();
        let mut count = 0;
        while let Some(news) = self.0[channel].take_news() {
            count += 1;
            for (at, other) in self.0.iter_mut().enumerate().filter(|(at, _)| *at != channel) {
                match misses {
                    Some(misses) if misses == at => other.miss(),
                    _ => other.learn(now_s * SECOND, news),
                }
            }
        }
        (to, count)
    }

    fn send(&mut self, now_s: u64, channel: usize, from: u16, frame: &[u8]) -> Vec<u16> {
        self.tell((now_s, channel, from), frame, None).0
    }

    /// Who gets a group, by each channel.
    fn reaches(&mut self, now_s: u64, last: u8) -> Vec<Vec<u16>> {
        (0..self.0.len()).map(|channel| self.send(now_s, channel, 0, &data(last))).collect()
    }
}

#[test]
fn what_one_channel_hears_of_groups_holds_on_all() {
    // 0 leads to a querier and is on the last channel alone (`thread`); clients' queues are on the others.
    let mut channels = Channels::new(3, 4);
    channels.send(0, 2, 0, &data(3));
    let mut asked = 0;
    for now_s in LATER_S..LATER_S + 1000 {
        if (now_s - LATER_S).is_multiple_of(125) {
            channels.send(now_s, 2, 0, &query());
            asked = now_s;
        }
        // Each answers some time later.
        if now_s == asked + 3 {
            assert_eq!(channels.send(now_s, 0, 1, &report(0x16, 3)), [0]);
        }
        if now_s == asked + 9 {
            assert_eq!(channels.send(now_s, 1, 2, &records(&[(2, 3), (2, 4)])), [0]);
        }
        let all = channels.reaches(now_s, 3);
        if now_s < LATER_S + 26 {
            assert_eq!(all, vec![vec![1, 2, 3]; 3], "{now_s}: not all have answered");
        } else {
            assert_eq!(all, vec![vec![1, 2]; 3], "{now_s}");
            assert_eq!(channels.reaches(now_s, 4), vec![vec![2]; 3]);
            assert_eq!(channels.reaches(now_s, 5), vec![Vec::<u16>::new(); 3]);
        }
    }
    // Who leaves, leaves everywhere, and comes back everywhere.
    let now_s = LATER_S + 1000;
    channels.send(now_s, 0, 1, &report(0x17, 3));
    assert_eq!(channels.reaches(now_s + 1, 3), vec![vec![1, 2]; 3]);
    assert_eq!(channels.reaches(now_s + 2, 3), vec![vec![2]; 3]);
    channels.send(now_s + 2, 1, 2, &records(&[(3, 3), (4, 3)]));
    channels.send(now_s + 3, 1, 1, &report(0x16, 3));
    assert_eq!(channels.reaches(now_s + 6, 3), vec![vec![1, 2]; 3]);
}

#[test]
fn only_questions_that_everybody_answers_have_groups_withheld() {
    let mut private = PortSpec::access(vid(1));
    private.private = true;
    let ports = [private.clone(), private, PortSpec::access(vid(1)), PortSpec::access(vid(1))];
    let pim = frame(GROUP, station(7), &ipv4(103, [10, 0, 0, 7], [224, 0, 0, 13], &[0x20; 8]));
    // A private port does not reach all, a question about one group is no question about others, and routers that say hello ask nothing.
    let of_one = igmp(&[0x11, 100, 0, 0, 239, 1, 2, 3], [239, 1, 2, 3]);
    for (from, asked) in [(0, query()), (2, of_one), (2, pim)] {
        let mut switch = old(&ports);
        for now_s in (LATER_S..LATER_S + 300).step_by(10) {
            send(&mut switch, now_s * SECOND, from, &asked).unwrap();
            assert_eq!(send(&mut switch, now_s * SECOND, 3, &data(3)), Ok(vec![0, 1, 2]));
        }
    }
    // With somebody who asks, too, the router's port gets what others do not.
    let mut switch = old(&ports);
    let pim = frame(GROUP, station(7), &ipv4(103, [10, 0, 0, 7], [224, 0, 0, 13], &[0x20; 8]));
    send(&mut switch, LATER_S * SECOND, 1, &pim).unwrap();
    send(&mut switch, LATER_S * SECOND, 2, &query()).unwrap();
    assert_eq!(send(&mut switch, (LATER_S + 26) * SECOND, 3, &data(3)), Ok(vec![1, 2]));
}

#[test]
fn a_port_that_changes_gets_everything_until_its_groups_are_known_again() {
    let mut channels = Channels::new(2, 4);
    channels.send(0, 0, 0, &data(3));
    channels.send(LATER_S, 0, 0, &query());
    channels.send(LATER_S + 1, 1, 1, &report(0x16, 3));
    assert_eq!(channels.reaches(LATER_S + 26, 3), vec![vec![1]; 2]);
    // A limit, a mirror, or another client.
    for switch in &mut channels.0 {
        switch.set_port(PortId(1), PortSpec::access(vid(1)));
    }
    assert_eq!(channels.reaches(LATER_S + 27, 3), vec![vec![1]; 2]);
    assert_eq!(channels.reaches(LATER_S + 27, 9), vec![vec![1]; 2]);
    // It answers the next question.
    channels.send(LATER_S + 125, 0, 0, &query());
    channels.send(LATER_S + 130, 0, 1, &report(0x16, 3));
    channels.send(LATER_S + 250, 0, 0, &query());
    channels.send(LATER_S + 260, 1, 1, &report(0x16, 3));
    assert_eq!(channels.reaches(LATER_S + 27 + 325, 3), vec![vec![1]; 2]);
    assert_eq!(channels.reaches(LATER_S + 27 + 325, 9), vec![vec![]; 2]);
}

#[test]
fn a_channel_that_missed_something_withholds_nothing_for_a_while() {
    let mut channels = Channels::new(2, 4);
    channels.send(0, 0, 0, &data(3));
    channels.send(LATER_S, 1, 0, &query());
    // Not told.
    send(&mut channels.0[0], (LATER_S + 1) * SECOND, 1, &report(0x16, 3)).unwrap();
    channels.0[1].miss();
    assert_eq!(channels.reaches(LATER_S + 26, 3), [vec![1], vec![1, 2, 3]]);
    channels.send(LATER_S + 125, 1, 0, &query());
    channels.send(LATER_S + 130, 0, 1, &report(0x16, 3));
    channels.send(LATER_S + 250, 1, 0, &query());
    channels.send(LATER_S + 255, 0, 1, &report(0x16, 3));
    assert_eq!(channels.reaches(LATER_S + 26 + 325, 3), vec![vec![1]; 2]);
}

#[test]
fn a_client_has_so_much_told_and_then_gets_everything() {
    let mut channels = Channels::new(2, 4);
    channels.send(0, 0, 0, &data(3));
    channels.send(LATER_S, 1, 0, &query());
    // It joins and leaves without end.
    let now_s = LATER_S + 30;
    let mut told = 0;
    for round in 0..1000 {
        let kind = if round % 2 == 0 { 4 } else { 3 };
        let all: Vec<(u8, u8)> = (0..7).map(|last| (kind, last)).collect();
        told += channels.tell((now_s, 0, 2), &records(&all), None).1;
    }
    // Its quota, its address, and that it is such a one.
    assert_eq!(told, 64 + 2);
    assert_eq!(channels.reaches(now_s, 9), vec![vec![2]; 2]);
    // And is it for as long as others do not know what it wants.
    channels.send(now_s + 100, 1, 0, &query());
    channels.send(now_s + 200, 1, 0, &query());
    assert_eq!(channels.reaches(now_s + 259, 9), vec![vec![2]; 2]);
}

#[test]
fn routers_of_one_port_take_no_room_from_others() {
    let mut trunk = PortSpec::access(vid(1));
    trunk.vids = Vids::ALL;
    let mut switch = old(&[trunk.clone(), trunk.clone(), trunk]);
    send(&mut switch, LATER_S * SECOND, 0, &query()).unwrap();
    let bare = query();
    for number in 2..1000u16 {
        let [high, low] = number.to_be_bytes();
        let tagged = [&bare[..12], &[0x81, 0, high, low], &bare[12..]].concat();
        send(&mut switch, (LATER_S + 1) * SECOND, 1, &tagged).unwrap();
    }
    let now_ns = (LATER_S + 30) * SECOND;
    // Who takes the room gets everything, and the first one is still known.
    assert_eq!(send(&mut switch, now_ns, 2, &report(0x16, 3)), Ok(vec![0]));
    assert_eq!(send(&mut switch, now_ns, 2, &data(3)), Ok(vec![0, 1]));
}

/// What happens in a network with several channels.
#[derive(Debug, Clone, Copy)]
enum Happens {
    /// Somebody behind a port joins or leaves a group, by a channel.
    Says(u16, u8, bool, usize),
    /// The querier asks; all answer within ten seconds.
    Asks(usize),
    /// A port changes at one channel.
    Changes(u16, usize),
    /// What others are told of the next frame is lost on its way to a channel, which knows that.
    Misses(usize),
    /// Nothing, for so many seconds.
    Passes(u64),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (1..5_u16, 0..10_u8, any::<bool>(), 0..3_usize)
            .prop_map(|(port, group, joins, by)| Happens::Says(port, group, joins, by)),
        2 => (0..3_usize).prop_map(Happens::Asks),
        1 => (1..5_u16, 0..3_usize).prop_map(|(port, by)| Happens::Changes(port, by)),
        1 => (0..3_usize).prop_map(Happens::Misses),
        6 => (0..130_u64).prop_map(Happens::Passes),
    ]
}

proptest! {
    #[test]
    fn no_channel_withholds_what_a_port_asked_for(
        all in prop::collection::vec(happens(), 1..120),
    ) {
        let mut channels = Channels::new(3, 5);
        let mut wanted = BTreeSet::new();
        // When the question was asked that nobody has answered.
        let (mut now_s, mut asked, mut misses) = (5, None, None);
        for (number, one) in all.into_iter().enumerate() {
            let mut says = Vec::new();
            match one {
                Happens::Says(port, group, joins, by) => {
                    if joins {
                        wanted.insert((port, group));
                    } else {
                        wanted.remove(&(port, group));
                    }
                    says.push((by, port, report(if joins { 0x16 } else { 0x17 }, group)));
                }
                Happens::Asks(by) => {
                    asked = asked.or(Some(now_s));
                    says.push((by, 0, query()));
                }
                Happens::Changes(port, by) => {
                    channels.0[by].set_port(PortId(port), PortSpec::access(vid(1)));
                }
                Happens::Misses(channel) => misses = Some(channel),
                Happens::Passes(seconds) => {
                    now_s += seconds;
                    if let Some(at) = asked.take_if(|at| *at + 10 <= now_s) {
                        for (port, group) in &wanted {
                            let by = usize::from(port + u16::from(*group)) % 3;
                            channels.tell((at + 10, by, *port), &report(0x16, *group), None);
                        }
                    }
                }
            }
            for (by, port, frame) in says {
                channels.tell((now_s, by, port), &frame, misses.take());
            }
            for (port, group) in &wanted {
                for (channel, switch) in channels.0.iter_mut().enumerate() {
                    let to = send(switch, now_s * SECOND, 0, &data(*group)).unwrap_or_default();
                    prop_assert!(
                        to.contains(port),
                        "{number}: second {now_s}: channel {channel} withholds {group} from {port}"
                    );
                }
            }
        }
    }
}
