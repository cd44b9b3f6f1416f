//! Reading and writing units: what is taken, what is refused, and that writing is the inverse.

use super::*;
use proptest::prelude::*;

#[test]
fn sizes_are_read_with_binary_units_only() {
    assert_eq!(parse_size("4096"), Ok(4096));
    assert_eq!(parse_size("4096B"), Ok(4096));
    assert_eq!(parse_size("64MiB"), Ok(64 << 20));
    assert_eq!(parse_size(" 10 gib "), Ok(10 << 30));
    assert_eq!(parse_size("1.5GiB"), Ok(3 << 29));
    for wrong in ["", "GiB", "-1", "1.GiB", ".5GiB", "1.2.3MiB", "0x10", "1.3KiB", "16EiB", "1Zib"]
    {
        assert!(parse_size(wrong).is_err(), "{wrong} was taken");
    }
    assert_eq!(
        parse_size("10GB").unwrap_err(),
        "`GB` can mean powers of 1000 or of 1024; write `10GiB`, or bytes"
    );
}

#[test]
fn cpu_lists_are_read_as_sets() {
    assert_eq!(parse_cpus("2-5,8").unwrap(), BTreeSet::from([2, 3, 4, 5, 8]));
    assert_eq!(parse_cpus("").unwrap(), BTreeSet::new());
    assert_eq!(format_cpus(&BTreeSet::from([0, 1, 2, 7, 9])), "0-2,7,9");
    for wrong in ["a", "5-2", "1,", "1-", "-3", "4096", "0-99999999999"] {
        assert!(parse_cpus(wrong).is_err(), "{wrong} was taken");
    }
}

#[test]
fn modes_are_octal() {
    assert_eq!(parse_mode("0660"), Ok(0o660));
    assert_eq!(parse_mode("0o600"), Ok(0o600));
    assert_eq!(format_mode(0o660), "0660");
    assert_eq!(format_mode(0o7), "0007");
    for wrong in ["", "0888", "7777", "rw-rw----"] {
        assert!(parse_mode(wrong).is_err(), "{wrong} was taken");
    }
}

proptest! {
    #[test]
    fn a_written_size_is_read_back(bytes: u64) {
        prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
    }

    #[test]
    fn a_written_round_size_is_read_back(n in 0u64..1 << 14, shift in 0u32..=50) {
        prop_assert_eq!(parse_size(&format_size(n << shift)), Ok(n << shift));
    }

    #[test]
    fn a_written_cpu_set_is_read_back(cpus in proptest::collection::btree_set(0usize..=CPU_MAX, 0..64)) {
        prop_assert_eq!(parse_cpus(&format_cpus(&cpus)), Ok(cpus));
    }

    #[test]
    fn a_written_mode_is_read_back(mode in 0u32..=0o777) {
        prop_assert_eq!(parse_mode(&format_mode(mode)), Ok(mode));
    }

    #[test]
    fn no_text_panics(text in ".{0,24}") {
        let _ = (parse_size(&text), parse_cpus(&text), parse_mode(&text));
    }
}

#[test]
fn days_are_told_in_what_one_would_say() {
    let told = [0, 3600, 7300, 86_400, 200_000, 864_000].map(format_days);
    assert_eq!(told, ["0 hours", "1 hour", "2 hours", "24 hours", "2 days", "10 days"]);
}
