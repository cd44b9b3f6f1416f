use super::*;
use proptest::prelude::*;

fn claims() -> impl Strategy<Value = Vec<Claim>> {
    let claim = (LEAST..=2048, 0_u32..=1000).prop_map(|(own, share)| Claim { own, share });
    prop::collection::vec(claim, 1..300)
}

fn granted(port: u32, claims: &[Claim]) -> Vec<u32> {
    let budget = Budget::new(port, claims.iter().copied());
    claims.iter().map(|claim| budget.grant(*claim).commands).collect()
}

#[test]
fn each_has_its_own_while_there_is_enough() {
    let one = |own, share| Claim { own, share };
    for (port, claims, expected) in [
        (2048, vec![one(1024, 100), one(1024, 100)], vec![1024, 1024]),
        (2048, vec![one(1024, 100); 3], vec![682, 682, 682]),
        (2048, vec![one(2048, 300), one(2048, 100)], vec![1536, 512]),
        (2048, vec![one(2048, 100), one(100, 100)], vec![1024, 100]),
        (200, vec![one(1024, 100)], vec![200]),
        (200, vec![one(1024, 1000), one(1024, 1)], vec![199, 20]),
        (200, vec![one(20, 1); 11], vec![20; 11]),
    ] {
        assert_eq!(granted(port, &claims), expected, "{port} {claims:?}");
    }
    let budget = Budget::new(200, [one(1024, 1), one(200, 1)]);
    let whole = Granted { commands: 100, part: Some(100), limit: CommandTerm::PortShare };
    assert_eq!(budget.grant(one(1024, 1)), whole);
    let alone = Budget::new(200, [one(200, 1)]).grant(one(200, 1));
    assert_eq!(alone, Granted { commands: 200, part: None, limit: CommandTerm::Adapter });
}

proptest! {
    /// Only adapters that are left with the least can bring the sum above the port's.
    #[test]
    fn the_sum_stays_within_the_port(port in 1_u32..5000, claims in claims()) {
        let granted = granted(port, &claims);
        let above: u64 = granted.iter().map(|n| u64::from(*n)).sum();
        let floored: u64 = granted.iter().filter(|n| **n == LEAST).map(|n| u64::from(*n)).sum();
        prop_assert!(above <= u64::from(port) + floored);
        if floored == 0 {
            prop_assert!(above <= u64::from(port));
        }
    }

    #[test]
    fn nobody_gets_more_than_it_asks_for_or_less_than_the_least(
        port in 1_u32..5000,
        claims in claims(),
    ) {
        for (claim, commands) in claims.iter().zip(granted(port, &claims)) {
            prop_assert!((LEAST..=claim.own).contains(&commands));
        }
    }

    #[test]
    fn a_greater_share_never_gives_less_to_its_owner_or_more_to_others(
        port in 1_u32..5000,
        mut claims in claims(),
        at in any::<prop::sample::Index>(),
        by in 0_u32..1000,
    ) {
        let before = granted(port, &claims);
        let at = at.index(claims.len());
        claims[at].share += by;
        let after = granted(port, &claims);
        prop_assert!(after[at] >= before[at]);
        for other in (0..claims.len()).filter(|other| *other != at) {
            prop_assert!(after[other] <= before[other]);
        }
    }

    #[test]
    fn the_term_that_is_named_is_the_one_that_binds(port in 1_u32..5000, claims in claims()) {
        let budget = Budget::new(port, claims.iter().copied());
        for claim in &claims {
            let Granted { commands, part, limit } = budget.grant(*claim);
            prop_assert_eq!(commands, part.map_or(claim.own, |part| part.min(claim.own)));
            prop_assert_eq!(limit == CommandTerm::PortShare, commands < claim.own);
        }
    }
}
