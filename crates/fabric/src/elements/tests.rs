use super::*;
use proptest::prelude::*;

fn claims() -> impl Strategy<Value = Vec<Claim>> {
    let claim = (20_u32..=2048, 0_u32..=1000).prop_map(|(own, share)| Claim { own, share });
    prop::collection::vec(claim, 1..300)
}

fn granted(port: u32, claims: &[Claim]) -> Vec<Granted> {
    let budget = Budget::new(port, claims.iter().copied());
    claims.iter().map(|claim| budget.grant(*claim)).collect()
}

#[test]
fn each_has_its_own_up_to_the_port_and_a_part_while_others_wait() {
    let one = |own, share| Claim { own, share };
    let (adapter, port) = (CommandTerm::Adapter, CommandTerm::Port);
    for (elements, claims, expected) in [
        (2048, vec![one(1024, 100); 2], vec![(1024, None, adapter); 2]),
        (2048, vec![one(1024, 100); 3], vec![(1024, Some(682), adapter); 3]),
        (
            2048,
            vec![one(2048, 300), one(2048, 100)],
            vec![(2048, Some(1536), adapter), (2048, Some(512), adapter)],
        ),
        // Nobody has a part that is more than it may have.
        (
            2048,
            vec![one(2048, 100), one(100, 100)],
            vec![(2048, Some(1024), adapter), (100, Some(100), adapter)],
        ),
        (200, vec![one(1024, 100)], vec![(200, Some(200), port)]),
        (
            200,
            vec![one(1024, 1000), one(1024, 1)],
            vec![(200, Some(199), port), (200, Some(1), port)],
        ),
        (200, vec![one(200, 1)], vec![(200, None, adapter)]),
    ] {
        let found = granted(elements, &claims).into_iter();
        let found: Vec<_> = found.map(|one| (one.commands, one.part, one.limit)).collect();
        assert_eq!(found, expected, "{elements} {claims:?}");
    }
}

proptest! {
    /// Parts together are within the port, but for those of one command.
    #[test]
    fn the_parts_are_within_the_port(port in 1_u32..5000, claims in claims()) {
        let parts: Vec<u32> = granted(port, &claims).iter().filter_map(|one| one.part).collect();
        let least = parts.iter().filter(|part| **part == 1).count() as u64;
        let sum: u64 = parts.iter().map(|part| u64::from(*part)).sum();
        prop_assert!(sum <= u64::from(port) + least);
    }

    #[test]
    fn nobody_gets_more_than_it_asks_for_or_than_there_is(port in 1_u32..5000, claims in claims()) {
        for (claim, one) in claims.iter().zip(granted(port, &claims)) {
            prop_assert_eq!(one.commands, claim.own.min(port));
            prop_assert!(one.part.is_none_or(|part| (1..=claim.own).contains(&part)));
        }
    }
}
