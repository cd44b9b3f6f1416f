use super::*;
use proptest::option;
use proptest::prelude::*;

/// Eight queues everywhere, nobody in the way.
const EIGHT: NpivTerms = NpivTerms {
    client: None,
    client_num_io_queues: Some(8),
    num_per_range: 0,
    inherited: 8,
    data_plane: None,
    port: Some(8),
    limit_intr: false,
    levels: Levels::ALL,
    policy: Policy::Aix,
    earlier: None,
};

fn subqueues() -> impl Strategy<Value = Subqueues> {
    prop_oneof![
        4 => Just(Subqueues::Yes),
        1 => Just(Subqueues::No),
        1 => Just(Subqueues::NoUncounted),
    ]
}

fn levels() -> impl Strategy<Value = Levels> {
    let mostly = || prop::bool::weighted(0.85);
    (mostly(), mostly(), subqueues(), mostly())
        .prop_map(|(client, server, firmware, port)| Levels { client, server, firmware, port })
}

fn terms() -> impl Strategy<Value = NpivTerms> {
    let count = || 0u32..70;
    let counts = (option::of(count()), option::of(count()), count(), count(), option::of(count()));
    let rest = (option::of(count()), prop::bool::weighted(0.1), levels(), any::<bool>());
    (counts, rest, option::of(count())).prop_map(|(counts, rest, earlier)| NpivTerms {
        client: counts.0,
        client_num_io_queues: counts.1,
        num_per_range: counts.2,
        inherited: counts.3,
        data_plane: counts.4,
        port: rest.0,
        limit_intr: rest.1,
        levels: rest.2,
        policy: if rest.3 { Policy::Aix } else { Policy::Linux },
        earlier,
    })
}

/// Whether `channels` could serve this client, each rule asked by itself.
fn allowed(terms: &NpivTerms, channels: u32) -> bool {
    if channels == 1 {
        return true;
    }
    let within = |bound: Option<u32>| bound.is_none_or(|bound| channels <= bound);
    let offered = if terms.num_per_range > 0 { terms.num_per_range } else { terms.inherited };
    let everybody = terms.levels == Levels::ALL;
    let remembered = terms.policy == Policy::Linux || within(terms.earlier);
    everybody
        && !terms.limit_intr
        && channels <= offered
        && within(terms.client)
        && within(terms.client_num_io_queues)
        && within(terms.data_plane)
        && within(terms.port)
        && remembered
}

/// The naive oracle: counts up for as long as everybody agrees.
fn most_allowed(terms: &NpivTerms) -> u32 {
    (1..).take_while(|channels| allowed(terms, *channels)).last().unwrap()
}

proptest! {
    #[test]
    fn is_the_most_that_everybody_allows(terms in terms()) {
        prop_assert_eq!(negotiate_npiv(&terms).channels, most_allowed(&terms));
    }

    #[test]
    fn is_never_more_than_asked_for(terms in terms()) {
        let channels = negotiate_npiv(&terms).channels;
        for asked in [terms.client, terms.client_num_io_queues].into_iter().flatten() {
            prop_assert!(channels <= asked.max(1));
        }
        prop_assert!(channels >= 1);
    }

    #[test]
    fn every_term_is_named_once_and_exactly_the_smallest_limit(terms in terms()) {
        let answer = negotiate_npiv(&terms);
        let mut named: Vec<Term> = answer.offers.iter().map(|offer| offer.term).collect();
        named.sort_unstable();
        named.dedup();
        prop_assert_eq!(named.len(), answer.offers.len());
        for offer in &answer.offers {
            let smallest = offer.count.is_some_and(|count| count.max(1) == answer.channels);
            prop_assert_eq!(offer.limits, smallest);
            prop_assert!(offer.count.is_none_or(|count| count.max(1) >= answer.channels));
        }
        prop_assert!(answer.offers.iter().any(|offer| offer.limits && offer.term == answer.limit));
        if let Some((channels, term)) = answer.then {
            prop_assert!(channels > answer.channels);
            prop_assert!(answer.offers.iter().any(|o| o.term == term && o.count == Some(channels)));
        }
    }

    #[test]
    fn a_history_under_aix_only_shrinks(history in proptest::collection::vec(terms(), 1..12)) {
        let mut earlier = None;
        let mut least_agreed = None::<u32>;
        for mut terms in history {
            terms.policy = Policy::Aix;
            terms.earlier = earlier;
            let answer = negotiate_npiv(&terms);
            if let Some(least) = least_agreed {
                prop_assert!(answer.channels <= least);
                least_agreed = Some(answer.channels);
            } else if terms.levels.client && terms.levels.server
                && terms.levels.firmware != Subqueues::NoUncounted
            {
                least_agreed = Some(answer.channels);
            }
            prop_assert_eq!(answer.maximum, least_agreed);
            earlier = answer.maximum;
        }
    }

    #[test]
    fn a_history_under_linux_leaves_no_trace(terms in terms(), before in option::of(0u32..70)) {
        let of = |earlier| negotiate_npiv(&NpivTerms { policy: Policy::Linux, earlier, ..terms });
        prop_assert_eq!(of(before), of(None));
        prop_assert_eq!(of(before).maximum, None);
    }
}

#[test]
fn an_adapters_own_number_replaces_the_inherited_one() {
    let of = |num_per_range, inherited| {
        negotiate_npiv(&NpivTerms {
            client_num_io_queues: Some(16),
            port: Some(16),
            num_per_range,
            inherited,
            ..EIGHT
        })
    };
    assert_eq!((of(0, 8).channels, of(0, 8).limit), (8, Term::Inherited));
    assert_eq!((of(12, 8).channels, of(12, 8).limit), (12, Term::NumPerRange));
    assert_eq!((of(4, 8).channels, of(4, 8).limit), (4, Term::NumPerRange));
    assert_eq!(of(0, 8).then, Some((16, Term::ClientAttribute)));
}

#[test]
fn eight_then_four_then_eight_stays_at_four_until_reconfigured() {
    let with = |inherited, earlier| {
        let answer = negotiate_npiv(&NpivTerms { inherited, earlier, ..EIGHT });
        (answer.channels, answer.limit, answer.maximum)
    };
    assert_eq!(with(8, None), (8, Term::ClientAttribute, Some(8)));
    assert_eq!(with(16, Some(8)), (8, Term::ClientAttribute, Some(8)));
    assert_eq!(with(4, Some(8)), (4, Term::Inherited, Some(4)));
    assert_eq!(with(8, Some(4)), (4, Term::Earlier, Some(4)));
    assert_eq!(with(8, None).0, 8);
    assert!(Term::Earlier.remedy().contains("reconfigure"));
}

#[test]
fn limit_intr_overrides_everything() {
    let answer = negotiate_npiv(&NpivTerms { limit_intr: true, num_per_range: 64, ..EIGHT });
    assert_eq!((answer.channels, answer.limit), (1, Term::LimitIntr));
    assert_eq!(answer.then, Some((8, Term::ClientAttribute)));
}
