use super::*;
use proptest::prelude::*;

/// Puts a value under a name, or takes the name out.
fn step() -> impl Strategy<Value = (String, Option<u8>)> {
    ("[ab]{0,3}", proptest::option::weighted(0.7, 0u8..3))
}

fn steps() -> impl Strategy<Value = Vec<(String, Option<u8>)>> {
    proptest::collection::vec(step(), 0..40)
}

fn carry_out(
    map: &mut SharedMap<u8>,
    plain: &mut BTreeMap<String, u8>,
    steps: &[(String, Option<u8>)],
) {
    for (name, value) in steps {
        match value {
            Some(value) => {
                assert_eq!(map.insert(name.clone(), *value), plain.insert(name.clone(), *value));
            }
            None => assert_eq!(map.remove(name), plain.remove(name)),
        }
    }
}

proptest! {
    #[test]
    fn it_is_a_map(first in steps(), second in steps()) {
        let (mut map, mut plain) = (SharedMap::default(), BTreeMap::new());
        carry_out(&mut map, &mut plain, &first);
        let (before, plain_before) = (map.clone(), plain.clone());
        carry_out(&mut map, &mut plain, &second);
        for (map, plain) in [(&before, &plain_before), (&map, &plain)] {
            prop_assert!(map.iter().eq(plain.iter()), "{map:?} {plain:?}");
            prop_assert_eq!((map.len(), map.iter().len()), (plain.len(), plain.len()));
            prop_assert_eq!(map, &plain.clone().into_iter().collect::<SharedMap<u8>>());
        }
        prop_assert_eq!(before == map, plain_before == plain);
        let found = before.differences(&map);
        let found = found.iter().map(|difference| {
            let value = |entry: &Option<Entry<u8>>| entry.as_ref().map(|entry| entry.1);
            (difference.name().to_owned(), (value(&difference.before), value(&difference.after)))
        });
        let names: BTreeMap<&String, ()> =
            plain_before.keys().chain(plain.keys()).map(|name| (name, ())).collect();
        let expected = names.into_keys().map(|name| {
            (name.clone(), (plain_before.get(name).copied(), plain.get(name).copied()))
        });
        let expected: Vec<_> = expected.filter(|(_, (before, after))| before != after).collect();
        prop_assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_changed_in_place_is_changed_in_one_copy(first in steps(), name in "[ab]{0,3}") {
        let (mut map, mut plain) = (SharedMap::default(), BTreeMap::new());
        carry_out(&mut map, &mut plain, &first);
        let before = map.clone();
        prop_assert_eq!(map.get_mut(&name).map(|value| *value += 10), plain.get_mut(&name).map(|value| *value += 10));
        prop_assert!(map.iter().eq(plain.iter()));
        prop_assert!(before.values().all(|value| *value < 10));
        map.retain(|_, value| *value < 10);
        plain.retain(|_, value| *value < 10);
        prop_assert!(map.iter().eq(plain.iter()));
    }
}

/// Counts how often it is compared.
#[derive(Debug, Clone)]
struct Counted(u64);

thread_local! {
    static COMPARED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl PartialEq for Counted {
    fn eq(&self, other: &Counted) -> bool {
        COMPARED.set(COMPARED.get() + 1);
        self.0 == other.0
    }
}

#[test]
fn what_two_maps_share_is_not_looked_at() {
    let map: SharedMap<Counted> = (0..10_000).map(|n| (format!("n{n}"), Counted(n))).collect();
    let mut next = map.clone();
    next.get_mut("n77").unwrap().0 = 1;
    next.remove("n4711");
    next.insert("x".to_owned(), Counted(0));
    let names: Vec<String> =
        map.differences(&next).iter().map(|one| one.name().to_owned()).collect();
    assert_eq!(names, ["n4711", "n77", "x"]);
    assert!(COMPARED.get() < 10, "{}", COMPARED.get());
    fn depth(link: &Link<Counted>) -> usize {
        link.as_ref().map_or(0, |node| 1 + depth(&node.left).max(depth(&node.right)))
    }
    assert!(depth(&map.0) < 80, "{}", depth(&map.0));
}
