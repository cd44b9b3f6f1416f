//! What is asked of an uplink's port: tags in tags, a monitor, and bounds on storms; between two TAPs on a bridge of the kernel, in a network namespace of the
//! test's own.

use std::time::{Duration, Instant};

use crate::common::Server;
use crate::common::net::{How, PLAIN, ip, mac, quiet, wait};
use protocol::message::{Request, StormSpec, Tagging, UplinkSpec};
use protocol::stats::QueueCounter;

const ALL: [u8; 6] = [0xff; 6];

fn uplink(network: &str, name: &str) -> UplinkSpec {
    UplinkSpec { tagging: Tagging::Dot1ad, vids: vec![100], ..UplinkSpec::on(network, name) }
}

#[test]
#[ignore = "in a namespace"]
fn an_uplink_carries_tags_in_tags_is_watched_and_holds_storms_inside() {
    quiet();
    for channels in [1, 2] {
        let server = Server::new(channels);
        let watched = UplinkSpec { mirror: Some("ent3".to_owned()), ..uplink("other", "up1") };
        server.must(Request::PutUplink(uplink("net", "up0")));
        server.must(Request::PutUplink(watched.clone()));
        // A bridge of the kernel that knows no VLANs passes tags as they are. With snooping it would join groups itself.
        ip("link add br0 type bridge mcast_snooping 0");
        for port in ["up0", "up1"] {
            ip(&format!("link set {port} master br0"));
        }
        ip("link set br0 up");
        let mut near = server
            .client(1, How::default(), |card| (card.tagging, card.pvid) = (Tagging::Tunnel, 100));
        let mut far = server.client(2, How::default(), |card| {
            (card.tagging, card.pvid, card.network) = (Tagging::Tunnel, 100, "other".to_owned());
        });
        let mut ear = server.client(3, How::default(), |card| {
            (card.monitor, card.network) = (true, "other".to_owned());
        });
        let outside = |own: &[u8]| [&own[..12], &[0x88, 0xa8, 0, 100], &own[12..]].concat::<u8>();
        // The bridge forwards once its ports do.
        let own = near.frame(ALL, 1000, 60);
        wait("the frame at the other end", || {
            near.send(&PLAIN, &own);
            far.receive_within(Duration::from_millis(5))
        });
        let last = near.frame(ALL, 1001, 60);
        near.send(&PLAIN, &last);
        wait("the last of them", || (far.receive().frame == last).then_some(()));
        wait("the last of them", || (ear.receive().frame == outside(&last)).then_some(()));
        for (number, len) in (0..).zip([60, 300, 1400]) {
            let plain = near.frame(ALL, number, len);
            let own = [&plain[..12], &[0x81, 0, 0x40, 7], &plain[12..]].concat();
            near.send(&PLAIN, &own);
            assert_eq!((far.receive().frame, ear.receive().frame), (own.clone(), outside(&own)));
            let plain = far.frame(mac(1), number, len);
            let back = [&plain[..12], &[0x81, 0, 0, 8], &plain[12..]].concat();
            far.send(&PLAIN, &back);
            // What watches sees it as it was sent: the service tag is put on on its way out.
            assert_eq!((near.receive().frame, ear.receive().frame), (back.clone(), back));
        }
        let since = Instant::now();
        let storm = StormSpec { broadcast: 5, ..StormSpec::default() };
        server.must(Request::PutUplink(UplinkSpec { storm, ..watched.clone() }));
        let lost = || server.count_of("up1", QueueCounter::DropStormBroadcast);
        let mut passed = 0;
        for number in 0..100 {
            near.send(&PLAIN, &near.frame(ALL, number, 60));
            wait("it to be delivered or counted", || {
                passed += far.empty() as u64;
                ear.empty();
                (passed + lost() == u64::from(number) + 1).then_some(())
            });
        }
        let most = 5 + 5 * (since.elapsed().as_secs() + 1);
        assert!((5..=most).contains(&passed), "{passed} of at most {most}");
        // What is known passes.
        for number in 0..50 {
            let frame = near.frame(mac(2), number, 100);
            near.send(&PLAIN, &frame);
            assert_eq!(far.receive().frame, frame);
        }
        // And it is let go.
        server.must(Request::PutUplink(UplinkSpec { tagging: Tagging::Dot1q, ..watched }));
        near.send(&PLAIN, &near.frame(ALL, 0, 60));
        wait("the tag to be none of the port's", || {
            (server.count_of("up1", QueueCounter::DropNoTxTarget) >= 1).then_some(())
        });
        for name in ["up0", "up1"] {
            server.must(Request::RemoveUplink { name: name.to_owned() });
            ip(&format!("link del {name}"));
        }
        ip("link del br0");
    }
}

#[test]
fn an_uplink_carries_tags_in_tags_is_watched_and_holds_storms() {
    testkit::in_network_namespace(
        "port::an_uplink_carries_tags_in_tags_is_watched_and_holds_storms_inside",
    );
}
