use super::*;

const NA: u8 = 136;
const OVERRIDE: u8 = 0x20;
const OWN: [u8; 16] = [0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];

fn station(id: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, id])
}

fn of(frame: &[u8]) -> Option<Claim> {
    let view = View::new(frame, frame.len()).unwrap();
    let claim = Claim::of(&view);
    assert!(claim.is_none() || Claim::may_be_in(&view));
    claim
}

fn arp(operation: u8, sender: (Mac, [u8; 4])) -> Vec<u8> {
    let link = [&[0xff; 6][..], &station(1).0, &[8, 6]].concat();
    let body = [&[0, 1, 8, 0, 6, 4, 0, operation][..], &sender.0.0, &sender.1, &[0; 10]].concat();
    [link, body].concat()
}

/// An advertisement with these flags and options, and that hop limit.
fn advertisement(flags: u8, target: [u8; 16], options: &[u8], hops: u8) -> Vec<u8> {
    let message = [&[NA, 0, 0, 0, flags, 0, 0, 0][..], &target, options].concat();
    let link = [&[0x33, 0x33, 0, 0, 0, 1][..], &station(1).0, &[0x86, 0xdd]].concat();
    let ip = [0x60, 0, 0, 0, 0, message.len() as u8, 58, hops];
    [&link[..], &ip, &OWN, &[0xff; 16], &message].concat()
}

#[test]
fn a_station_speaks_for_itself() {
    let address = [10, 0, 0, 5];
    let claim = Some(Claim { address: address.into(), router: false });
    for operation in [1, 2] {
        assert_eq!(of(&arp(operation, (station(1), address))), claim);
        assert_eq!(of(&arp(operation, (station(2), address))), None, "for another one");
    }
    for nobody in [[0; 4], [224, 0, 0, 1], [255; 4], [127, 0, 0, 1]] {
        assert_eq!(of(&arp(1, (station(1), nobody))), None, "{nobody:?}");
    }
    // Behind a tag as well.
    let mut tagged = arp(1, (station(1), address));
    tagged.splice(12..12, [0x81, 0, 0, 20]);
    assert_eq!(of(&tagged), claim);
}

#[test]
fn an_advertisement_that_overrides_is_a_claim() {
    let own = [&[2, 1][..], &station(1).0].concat();
    let other = [&[2, 1][..], &station(2).0].concat();
    let nonce = [14, 1, 0, 0, 0, 0, 0, 0];
    let claim = |router| Some(Claim { address: OWN.into(), router });
    assert_eq!(of(&advertisement(OVERRIDE, OWN, &own, 255)), claim(false));
    assert_eq!(of(&advertisement(OVERRIDE | 0xc0, OWN, &own, 255)), claim(true));
    assert_eq!(of(&advertisement(OVERRIDE, OWN, &[], 255)), claim(false));
    assert_eq!(of(&advertisement(OVERRIDE, OWN, &[&nonce[..], &own].concat(), 255)), claim(false));
    // One that does not override is a proxy's, or one of several who have the address.
    assert_eq!(of(&advertisement(0x40, OWN, &own, 255)), None);
    assert_eq!(of(&advertisement(OVERRIDE, OWN, &other, 255)), None);
    assert_eq!(of(&advertisement(OVERRIDE, OWN, &[&own[..], &other].concat(), 255)), None);
    assert_eq!(of(&advertisement(OVERRIDE, OWN, &own, 254)), None, "it came from afar");
    assert_eq!(of(&advertisement(OVERRIDE, [0xff; 16], &own, 255)), None);
    for broken in [&own[..7], &[2, 0, 0, 0, 0, 0, 0, 0], &[2, 9, 0, 0, 0, 0, 0, 0]] {
        assert_eq!(of(&advertisement(OVERRIDE, OWN, broken, 255)), None);
    }
    // Whatever else is ICMPv6 is none, and what is cut off is not guessed.
    let mut asks = advertisement(OVERRIDE, OWN, &own, 255);
    asks[54] = 135;
    assert_eq!(of(&asks), None);
    let whole = advertisement(OVERRIDE, OWN, &own, 255);
    for known in 14..whole.len() {
        let view = View::new(&whole[..known], whole.len()).unwrap();
        assert_eq!(Claim::of(&view), None);
    }
}

fn news(id: u8, port: u16) -> Sighting {
    Sighting { mac: station(id), vid: Vid::new(1).unwrap(), port: PortId(port), claim: None }
}

fn address(last: u8) -> Claim {
    Claim { address: [10, 0, 0, last].into(), router: false }
}

fn all(claims: &Claims) -> Vec<(Mac, u8)> {
    let last = |claim: Claim| match claim.address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(_) => 0,
    };
    claims.all().map(|(mac, _, claim)| (mac, last(claim))).collect()
}

#[test]
fn an_address_is_whose_who_claimed_it_last() {
    let mut claims = Claims::new(8, 75);
    assert!(claims.hear(100, news(1, 0), address(5), 4));
    assert!(!claims.hear(101, news(1, 0), address(5), 4), "nothing new");
    assert!(claims.hear(175, news(1, 0), address(5), 4), "said again before others would forget");
    assert!(claims.hear(176, news(2, 1), address(5), 4));
    assert_eq!(all(&claims), [(station(2), 5)]);
    assert!(claims.hear(176, news(1, 0), address(5), 4));
    assert_eq!(all(&claims), [(station(1), 5)]);
    // Also where there is no room for the one who has it now: the one before has it no more.
    assert!(claims.hear(178, news(2, 1), address(5), 0));
    assert_eq!(all(&claims), []);
}

#[test]
fn a_flood_of_claims_fills_its_own_quota_and_tells_little() {
    let mut claims = Claims::new(8, 75);
    assert!(claims.hear(100, news(9, 1), address(250), 4));
    let told = (0..200).filter(|last| claims.hear(100, news(1, 0), address(*last), 4)).count();
    assert_eq!((told, all(&claims).len()), (4, 5));
    // What was not heard of for a while gives way to what is new.
    assert!(!claims.hear(110, news(1, 0), address(3), 4));
    assert!(!claims.hear(129, news(1, 0), address(200), 4));
    let told = (200..240).filter(|last| claims.hear(130, news(1, 0), address(*last), 4)).count();
    assert_eq!(told, 3);
    assert!(all(&claims).contains(&(station(1), 3)) && all(&claims).contains(&(station(9), 250)));
    // All together are no more than there is room for.
    for port in 2..9 {
        for last in 10..14 {
            let _ = claims.hear(130, news(1, port), address(last), 4);
        }
    }
    assert_eq!(claims.entries.len(), 8);
    claims.flush(PortId(0));
    assert!(all(&claims).len() < 8);
    // Those of stations that are gone make room.
    (0..16).for_each(|_| claims.age(|mac, _| mac == station(9)));
    assert_eq!(all(&claims), [(station(9), 250)]);
}
