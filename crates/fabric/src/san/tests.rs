//! Who sees what, against a naive oracle; lists and names as people write them.

use super::*;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const PREFIX: &str = "c0:50:76:12:34:56";

fn wwpn(text: &str) -> Wwpn {
    text.parse().unwrap()
}

fn prefix() -> Prefix {
    PREFIX.parse().unwrap()
}

/// Few of each, so that they meet.
fn port_name() -> impl Strategy<Value = String> {
    select(&["fcs0", "fcs1"][..]).prop_map(str::to_owned)
}

fn member() -> impl Strategy<Value = Member> {
    prop_oneof![
        (0u64..4).prop_map(|n| Member::Name(format!("a{n}"))),
        (0u64..4).prop_map(|n| Member::Name(format!("t{n}"))),
        (0u64..8).prop_map(|n| Member::Wwpn(Wwpn(0x100 + n))),
        (0u64..4).prop_map(|n| Member::Wwpn(Wwpn(0x200 + n))),
    ]
}

fn members() -> impl Strategy<Value = BTreeSet<Member>> {
    btree_set(member(), 0..5)
}

fn luns() -> impl Strategy<Value = Luns> {
    prop_oneof![
        1 => Just(Luns::All),
        3 => btree_map(0u16..6, 0u16..6, 0..5).prop_map(Luns::Some),
    ]
}

fn target() -> impl Strategy<Value = (Vec<String>, BTreeMap<u16, String>)> {
    (vec(port_name(), 0..3), btree_map(0u16..6, "v[0-3]", 0..5))
}

fn san() -> impl Strategy<Value = San> {
    let mask = (members(), members(), luns());
    (
        vec(proptest::option::of(port_name()), 4),
        vec(target(), 0..4),
        vec(members(), 0..4),
        vec(mask.prop_map(|(initiators, targets, luns)| Mask { initiators, targets, luns }), 0..5),
        any::<bool>(),
    )
        .prop_map(|(adapters, targets, zones, masks, apart)| {
            let other = if apart { "side" } else { "main" };
            let numbered = |n: usize| n as u64;
            San {
                ports: [("fcs0", "main"), ("fcs1", other)]
                    .map(|(port, group)| (port.to_owned(), group.to_owned()))
                    .into(),
                initiators: adapters
                    .into_iter()
                    .enumerate()
                    .map(|(n, port)| {
                        let first = 0x100 + 2 * numbered(n);
                        (format!("a{n}"), Initiator { wwpns: [Wwpn(first), Wwpn(first + 1)], port })
                    })
                    .collect(),
                targets: targets
                    .into_iter()
                    .enumerate()
                    .map(|(n, (ports, luns))| {
                        let target = Target {
                            wwpn: Wwpn(0x200 + numbered(n)),
                            id: u8::try_from(n * 3).unwrap(),
                            group: "main".to_owned(),
                            ports: ports.into_iter().collect(),
                            luns,
                        };
                        (format!("t{n}"), target)
                    })
                    .collect(),
                zones,
                masks,
                remote: BTreeMap::new(),
            }
        })
}

/// The rule as a sentence: for every adapter, target, number and LUN, whether it is there.
fn oracle(san: &San, adapter: &str) -> BTreeMap<u8, (Wwpn, BTreeMap<u16, String>)> {
    let me = &san.initiators[adapter];
    let is = |member: &Member, wwpn: Wwpn| {
        let by_name = |name: &str| {
            san.initiators.iter().any(|(n, i)| n == name && i.wwpns.contains(&wwpn))
                || san.targets.iter().any(|(n, t)| n == name && t.wwpn == wwpn)
        };
        match member {
            Member::Wwpn(other) => *other == wwpn,
            Member::Name(name) => by_name(name),
        }
    };
    let among = |all: &BTreeSet<Member>, wwpn| all.iter().any(|member| is(member, wwpn));
    let mut seen = BTreeMap::new();
    for target in san.targets.values() {
        let port = me.port.as_ref().is_some_and(|port| {
            san.ports[port] == target.group
                && (target.ports.is_empty() || target.ports.iter().any(|p| p == port))
        });
        let zone = san.zones.iter().any(|z| among(z, me.wwpns[0]) && among(z, target.wwpn));
        if !port || !zone {
            continue;
        }
        let mut luns = BTreeMap::new();
        for shown in 0..8 {
            for (lun, volume) in &target.luns {
                let mask = san.masks.iter().any(|mask| {
                    let gives = match &mask.luns {
                        Luns::All => shown == *lun,
                        Luns::Some(map) => map.get(&shown) == Some(lun),
                    };
                    gives
                        && among(&mask.initiators, me.wwpns[0])
                        && among(&mask.targets, target.wwpn)
                });
                if mask {
                    luns.entry(shown).or_insert(volume.clone());
                }
            }
        }
        seen.insert(target.id, (target.wwpn, luns));
    }
    seen
}

fn seen(san: &San, adapter: &str) -> BTreeMap<u8, (Wwpn, BTreeMap<u16, String>)> {
    let all = san.expand().visible(adapter).into_iter();
    all.map(|(id, visible)| (id, (visible.wwpn, visible.luns))).collect()
}

proptest! {
    #[test]
    fn a_lun_is_there_exactly_if_port_zone_and_mask_say_so(san in san()) {
        for adapter in san.initiators.keys() {
            prop_assert_eq!(seen(&san, adapter), oracle(&san, adapter));
        }
    }

    #[test]
    fn the_order_of_changes_does_not_matter(san in san(), swaps in vec(any::<(Index, Index)>(), 0..8)) {
        let mut other = san.clone();
        for (a, b) in swaps {
            if !other.zones.is_empty() {
                let (a, b) = (a.index(other.zones.len()), b.index(other.zones.len()));
                other.zones.swap(a, b);
            }
            if !other.masks.is_empty() {
                let (a, b) = (a.index(other.masks.len()), b.index(other.masks.len()));
                other.masks.swap(a, b);
            }
        }
        // What is given twice is given once.
        other.zones.extend(san.zones.first().cloned());
        other.masks.extend(san.masks.first().cloned());
        for adapter in san.initiators.keys() {
            prop_assert_eq!(seen(&san, adapter), seen(&other, adapter));
        }
    }

    #[test]
    fn without_port_zone_or_mask_nothing_is_left(san in san()) {
        let unmapped = |san: &San| {
            let mut san = san.clone();
            san.initiators.values_mut().for_each(|i| i.port = None);
            san
        };
        let no_zone = San { zones: Vec::new(), ..san.clone() };
        let no_mask = San { masks: Vec::new(), ..san.clone() };
        for adapter in san.initiators.keys() {
            prop_assert!(seen(&unmapped(&san), adapter).is_empty());
            prop_assert!(seen(&no_zone, adapter).is_empty());
            prop_assert!(seen(&no_mask, adapter).values().all(|(_, luns)| luns.is_empty()));
        }
    }

    #[test]
    fn a_target_stays_where_it_is_when_others_come_and_go(san in san(), gone in any::<Index>()) {
        if san.targets.is_empty() {
            return Ok(());
        }
        let name = san.targets.keys().nth(gone.index(san.targets.len())).unwrap().clone();
        let mut rest = san.clone();
        let gone = rest.targets.remove(&name).unwrap();
        for adapter in san.initiators.keys() {
            let mut before = seen(&san, adapter);
            before.remove(&gone.id);
            prop_assert_eq!(before, seen(&rest, adapter));
        }
    }

    #[test]
    fn conflicts_are_found(san in san()) {
        let expanded = san.expand();
        for initiator in san.initiators.values() {
            let wwpn = initiator.wwpns[0];
            let twice = san.targets.iter().find(|(name, target)| {
                let given = expanded.given(wwpn, name, target);
                let numbers: BTreeSet<u16> = given.iter().map(|(shown, _)| *shown).collect();
                numbers.len() < given.len()
            });
            let conflict = expanded.conflict(wwpn).map(|(name, ..)| name);
            prop_assert_eq!(conflict, twice.map(|(name, _)| name.as_str()));
        }
    }

    #[test]
    fn what_is_found_by_name_is_what_the_rule_says(san in san()) {
        let expanded = san.expand();
        let has = |members: &BTreeSet<Member>, wwpn: Wwpn| san.wwpns(members).contains(&wwpn);
        for (adapter, initiator) in &san.initiators {
            let Some(port) = &initiator.port else { continue };
            let wwpn = initiator.wwpns[0];
            let sees = |target: &Target| {
                let zoned = san.zones.iter().any(|z| has(z, wwpn) && has(z, target.wwpn));
                san.reaches(port, target) && zoned
            };
            let given = |target: &Target| -> BTreeSet<u16> {
                let masks = san.masks.iter();
                let masks = masks.filter(|m| has(&m.initiators, wwpn) && has(&m.targets, target.wwpn));
                let numbers = masks.flat_map(|mask| match &mask.luns {
                    Luns::All => target.luns.keys().copied().collect::<Vec<_>>(),
                    Luns::Some(map) => {
                        let map = map.iter().filter(|(_, lun)| target.luns.contains_key(lun));
                        map.map(|(shown, _)| *shown).collect()
                    }
                });
                numbers.collect()
            };
            let expected: BTreeMap<u8, BTreeSet<u16>> = san.targets.values()
                .filter(|target| sees(target))
                .map(|target| (target.id, given(target)))
                .collect();
            let found = expanded.visible(adapter).into_iter();
            let found: BTreeMap<u8, BTreeSet<u16>> =
                found.map(|(id, seen)| (id, seen.luns.into_keys().collect())).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_is_written_is_read_back(members in members(), luns in luns(), map in btree_map(0..=LUN_MAX, "[a-z][a-z0-9_-]{0,5}", 0..6)) {
        prop_assert_eq!(read_members(&write_members(&members)).unwrap(), members);
        if luns != Luns::Some(BTreeMap::new()) {
            prop_assert_eq!(luns.to_string().parse::<Luns>().unwrap(), luns);
        }
        let map = LunMap(map);
        prop_assert_eq!(map.to_string().parse::<LunMap>().unwrap(), map);
    }

    #[test]
    fn names_are_read_in_every_notation(number in 1..u64::MAX) {
        let wwpn = Wwpn(number);
        for text in [wwpn.to_string(), format!("{number:016x}"), format!("0x{number:016X}")] {
            prop_assert_eq!(text.parse::<Wwpn>().unwrap(), wwpn);
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,40}", near in "[0-9a-fx:=,é-]{0,24}") {
        for text in [text, near] {
            let _ = text.parse::<Wwpn>();
            let _ = text.parse::<Prefix>();
            let _ = text.parse::<Luns>();
            let _ = text.parse::<LunMap>();
            let _ = read_members(&text);
        }
    }

    #[test]
    fn nothing_is_given_out_twice(
        steps in vec(prop_oneof![Just(None), Just(Some(None)), (0u16..40).prop_map(|n| Some(Some(n)))], 1..60)
    ) {
        let mut ledger = Ledger::default();
        let mut out: BTreeSet<Wwpn> = BTreeSet::new();
        for step in steps {
            // A restart between all steps.
            let kept = serde_json::to_string(&ledger).unwrap();
            ledger = serde_json::from_str(&kept).unwrap();
            let given: Vec<Wwpn> = match step {
                None => ledger.take_pair(prefix()).unwrap().to_vec(),
                Some(None) => vec![ledger.take_one(prefix()).unwrap()],
                Some(Some(number)) => {
                    ledger.note([prefix().wwpn(number)]);
                    out.insert(prefix().wwpn(number));
                    continue;
                }
            };
            for wwpn in given {
                prop_assert!(out.insert(wwpn), "{wwpn} for the second time");
            }
        }
    }
}

#[test]
fn a_prefix_is_used_up_and_another_goes_on() {
    let mut ledger = Ledger::default();
    ledger.note([prefix().wwpn(9)]);
    let mut count = 0;
    while let Ok([first, second]) = ledger.take_pair(prefix()) {
        assert_eq!((first.0 % 2, second.0), (0, first.0 + 1));
        count += 1;
    }
    assert_eq!((count, ledger.pairs_left(prefix())), (32_767, 0));
    assert_eq!(ledger.take_one(prefix()), Err(UsedUp(prefix())));
    let other = Prefix::of_system(0xffff_ffff_ff00_0001);
    assert_eq!(other.to_string(), "c0:50:76:00:00:01");
    assert_eq!(ledger.take_pair(other).unwrap()[1], wwpn("c0:50:76:00:00:01:00:01"));
}

#[test]
fn what_is_no_name_is_refused() {
    assert_eq!(wwpn("C0:50:76:00:00:00:00:01").to_string(), "c0:50:76:00:00:00:00:01");
    for wrong in [
        "",
        "c0",
        "c0:50:76:00:00:00:00",
        "c0:50:76:00:00:00:00:01:02",
        "c0:50:76:00:00:00:00:0g",
        "c0:50:76:00:00:00:00:+1",
        "c0:5076:00:00:00:00:01",
        "0000000000000000",
        "ffffffffffffffff",
        "c05076000000000",
        "c05076000000000é",
    ] {
        assert!(wrong.parse::<Wwpn>().is_err(), "{wrong}");
    }
    for wrong in ["", "c0:50:76", "c0:50:76:00:00:00:00:01", "000000000000"] {
        assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
    }
    for wrong in ["a b", "../x", "c0:50", "-9"] {
        assert!(read_members(wrong).is_err(), "{wrong}");
    }
    for wrong in ["-1", "16384", "3-1", "1,1", "a", "1=", "=1", "0-16383,5"] {
        assert!(wrong.parse::<Luns>().is_err(), "{wrong}");
    }
    for wrong in ["0", "0=", "0=a b", "0=a,0=b", "x=a", "0=a=b"] {
        assert!(wrong.parse::<LunMap>().is_err(), "{wrong}");
    }
}

#[test]
fn lists_have_one_form() {
    let luns: Luns = "3, 0-1,2,7=5,9".parse().unwrap();
    assert_eq!(luns.to_string(), "0-3,7=5,9");
    assert_eq!("5=5,6=4".parse::<Luns>().unwrap().to_string(), "5,6=4");
    let members = read_members("t0, c050760000000001,a1").unwrap();
    assert_eq!(write_members(&members), "a1,t0,c0:50:76:00:00:00:00:01");
}

#[test]
fn numbers_of_targets_are_the_lowest_free_ones() {
    assert_eq!(free_id([0, 1, 3], []), Some(2));
    assert_eq!(free_id(0..=255, [0, 1]), Some(2));
    assert_eq!(free_id(0..=255, 0..=255), None);
}

#[test]
fn names_of_ports_differ_between_ports_and_servers() {
    let names = ["fcs0", "fcs1", "fcs01", "left1", "right1", "fcs8388608"];
    let of = |system| names.map(|port| Wwpn::of_port(Prefix::of_system(system), port));
    let all: BTreeSet<_> = of(0x11_2233).into_iter().chain(of(0x11_2234)).collect();
    assert_eq!(all.len(), 2 * names.len());
    assert_eq!(of(0x11_2233)[1].to_string(), "10:00:11:22:33:00:00:01");
}
