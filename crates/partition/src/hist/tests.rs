use super::*;

#[test]
fn buckets_are_contiguous_and_hold_what_they_say() {
    let mut last = 0;
    for value in 0..10_000u64 {
        let bucket = bucket_of(value);
        assert!(
            bucket == last || bucket == last + 1,
            "value {value}: bucket {bucket} after {last}"
        );
        assert!(value <= upper_bound(bucket));
        assert!(bucket == 0 || value > upper_bound(bucket - 1));
        last = bucket;
    }
    assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    assert_eq!(upper_bound(BUCKETS - 1), u64::MAX);
}

#[test]
fn every_power_of_two_is_known_to_a_64th() {
    for shift in 0..64 {
        for delta in [0u64, 1, 3] {
            let value = (1u64 << shift).saturating_add(delta);
            let bound = upper_bound(bucket_of(value));
            assert!(bound >= value && bound - value <= value / 64, "{value} became {bound}");
        }
    }
}

#[test]
fn quantiles_agree_with_a_sorted_list() {
    let mut rng = memory::random::Random::new(7);
    let (mut histogram, mut list) = (Histogram::new(), Vec::new());
    for _ in 0..20_000 {
        let value = rng.next() >> (20 + rng.below(40));
        histogram.record(value);
        list.push(value);
    }
    list.sort_unstable();
    for (p, rank) in [(0.5, 10_000), (0.9, 18_000), (0.99, 19_800), (0.999, 19_980), (1.0, 20_000)]
    {
        let (got, want) = (histogram.quantile(p), list[rank - 1]);
        assert!(got >= want && got - want <= want / 64, "p{p}: {got} for {want}");
    }
    assert_eq!(histogram.quantile(1.0), *list.last().unwrap());
}

#[test]
fn merging_is_the_same_as_recording_in_one() {
    let (mut one, mut two, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
    for value in [5u64, 80, 1_000_000, 3] {
        one.record(value);
        both.record(value);
    }
    for value in [9u64, u64::from(u32::MAX)] {
        two.record(value);
        both.record(value);
    }
    one.merge(&two);
    assert_eq!(one.summary(), both.summary());
    assert_eq!(one.count(), 6);
    one.clear();
    assert_eq!(one.summary(), Latency::default());
}
