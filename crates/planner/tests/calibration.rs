//! What was measured on a host: as a file of facts, beside the published tables, and against mixes that it was not measured for.

use planner::facts::Facts;
use planner::report::{self, Answer};
use planner::size::calibration::{
    Between, Calibration, Case, Check, Cost, Counted, Host, Load, Mix, Seen, Spread,
};
use planner::size::{Both, Workloads};
use proptest::prelude::*;

const CLOCK: f64 = 2.5e9;

fn host() -> Host {
    Host {
        processor: "a \"processor\"\nwith = signs [in] its name".to_owned(),
        clock_hz: CLOCK,
        clock_by: "given".to_owned(),
        version: "1.2.3".to_owned(),
        server_cpus: 2,
        between: Between::Clients,
    }
}

/// A round in which each unit took so many cycles.
fn round(units: u64, cycles: f64) -> Counted {
    Counted { units, cpu_seconds: units as f64 * cycles / CLOCK, seconds: 1.0 }
}

/// Every case at its own number of cycles: `cycles` says how many.
fn calibration(cycles: impl Fn(&Case) -> f64) -> Calibration {
    let cost = |case: Case| {
        let rounds = [1.2, 1.0, 0.9].map(|by| round(1_000_000, cycles(&case) * by)).to_vec();
        Cost { case, rounds }
    };
    Calibration::new(host(), Case::all().into_iter().map(cost).collect(), Facts::builtin())
}

fn facts_of(calibration: &Calibration) -> Facts {
    let mut facts = Facts::builtin();
    facts.extend(&calibration.facts()).unwrap();
    facts
}

fn processors(loads: &str, facts: &Facts) -> f64 {
    let sizing = Workloads::read(loads).unwrap().size(facts).unwrap();
    let processors = sizing.parts[0].processors.as_ref().unwrap();
    assert_eq!(processors.low, processors.high);
    processors.high
}

fn sea(
    threaded: bool,
    mb: f64,
    mtu: u32,
    direction: &str,
    transactions: f64,
    bytes: u32,
) -> String {
    format!(
        "[[sea]]\nthreaded = {threaded}\nstreaming_mb = {mb:?}\nmtu = {mtu}\ndirection = \"{direction}\"\n\
         transactions = {transactions:?}\ntransaction_bytes = {bytes}\n"
    )
}

/// A cost that no two cases share.
fn distinct(case: &Case) -> f64 {
    let at = Case::all().iter().position(|other| other == case).unwrap();
    2.0 + at as f64 * 0.37
}

#[test]
fn the_cells_are_those_of_the_published_tables_and_what_is_uncut() {
    let facts = Facts::builtin();
    let published = facts.numbers("sea.cycles-per-").count();
    let (mut with, mut without) = (0, 0);
    for case in Case::all() {
        match (facts.find(&case.key()), case.load) {
            (Some(_), _) => with += 1,
            (None, Load::Uncut { .. }) => without += 1,
            (None, _) => panic!("nothing is published of {}", case.key()),
        }
    }
    assert_eq!((with, without), (published, 4));
}

#[test]
fn the_file_has_the_medians_under_the_keys_of_the_tables() {
    let calibration = calibration(distinct);
    let facts = facts_of(&calibration);
    for case in Case::all() {
        let number = facts.find(&case.key()).unwrap();
        assert!((number.high / distinct(&case) - 1.0).abs() < 1e-9, "{}", case.key());
        assert_eq!((number.source.id.as_str(), number.source.confirmed), ("measured", true));
        assert!(number.meaning.contains("median of 3 rounds"), "{}", number.meaning);
    }
    let clock = facts.find("sea.reference-clock").unwrap();
    assert_eq!(clock.high, CLOCK);
    assert!(clock.meaning.contains("given"), "{}", clock.meaning);
    assert!(clock.source.text.contains("a \"processor\"with = signs"), "{}", clock.source.text);
}

#[test]
fn a_case_in_which_nothing_was_carried_is_left_out() {
    let mut calibration = calibration(distinct);
    calibration.costs[0].rounds[1].units = 0;
    let key = calibration.costs[0].case.key();
    assert!(!calibration.facts().contains(&key), "{}", calibration.facts());
    assert_eq!(facts_of(&calibration).find(&key).unwrap().source.id, "sea-sizing");
}

#[test]
fn both_answers_stand_beside_each_other_with_their_advice() {
    let measured = facts_of(&calibration(|case| match case.load {
        Load::Transactions { .. } => 2000.0,
        _ => 0.5,
    }));
    let loads = Workloads::read(&sea(true, 200.0, 1500, "simplex", 0.0, 64)).unwrap();
    let both = Both::size(&loads, &Facts::builtin(), &measured).unwrap();
    let text = report::text::text(&both, &report::text::Options::default());
    // 200 × 1024 × 1024 × 11.2 ÷ 1.65 GHz, and × 0.5 ÷ 2.5 GHz.
    for part in [
        "1.42 processors: take 2 dedicated",
        "0.0419 processors, less than 0.5: take a shared partition, uncapped",
        "2.5 GHz",
        "~0.55 to 0.625",
    ] {
        assert!(
            text.split_whitespace().collect::<Vec<_>>().join(" ").contains(part),
            "{part}\n{text}"
        );
    }
    let notes = both.measured.notes.join(" ");
    assert!(notes.contains("the host that was measured, 2.5 GHz"), "{notes}");
    assert!(!notes.contains("1.65") && !notes.contains("POWER5"), "{notes}");
    let json = both.data().unwrap();
    assert_eq!(json["measured"]["dedicated"]["high"], 1.0);
    assert_eq!(json["published"]["dedicated"]["high"], 2.0);
}

#[test]
fn another_clock_scales_what_was_measured() {
    let facts = facts_of(&calibration(distinct));
    let load = sea(false, 500.0, 9000, "duplex", 0.0, 64);
    let here = processors(&load, &facts);
    let there = processors(&format!("[vios]\nclock_ghz = 5.0\n{load}"), &facts);
    assert!((here / there - 2.0).abs() < 1e-9, "{here} {there}");
}

#[test]
fn what_uncut_packets_cost_is_said_where_it_was_measured() {
    let load = sea(true, 200.0, 1500, "simplex", 0.0, 64);
    let notes = |facts: &Facts| {
        Workloads::read(&load).unwrap().size(facts).unwrap().parts[0].notes.join(" ")
    };
    assert!(!notes(&Facts::builtin()).contains("largesend"));
    let measured = facts_of(&calibration(|case| match case.load {
        Load::Uncut { .. } => 0.1,
        _ => 0.5,
    }));
    assert!(notes(&measured).contains("costs 20 % of that"), "{}", notes(&measured));
}

#[test]
fn threads_that_cost_nothing_more_are_not_spoken_of() {
    let facts = facts_of(&calibration(|case| if case.threaded { 0.5 } else { 0.6 }));
    let load = sea(true, 200.0, 1500, "simplex", 0.0, 64);
    let sizing = Workloads::read(&load).unwrap().size(&facts).unwrap();
    assert!(
        !sizing.parts[0].notes.join(" ").contains("threads add"),
        "{:?}",
        sizing.parts[0].notes
    );
}

#[test]
fn an_mtu_between_costs_what_packets_between_cost() {
    // A packet of 1500 bytes costs 16800 cycles, one of 9000 bytes 45000; one of 5250 bytes is in the middle.
    let cycles = 200.0 * 1024.0 * 1024.0 * ((16_800.0 + 45_000.0) / 2.0 / 5250.0);
    let got = processors(&sea(true, 200.0, 5250, "simplex", 0.0, 64), &Facts::builtin());
    assert!((got / (cycles / 1.65e9) - 1.0).abs() < 1e-9, "{got}");
    let text = sea(true, 200.0, 5250, "simplex", 0.0, 64);
    let sizing = Workloads::read(&text).unwrap().size(&Facts::builtin()).unwrap();
    assert!(sizing.parts[0].notes.join(" ").contains("no value for an MTU of 5250"));
}

#[test]
fn a_mix_is_held_against_what_it_took() {
    let facts = facts_of(&calibration(|_| 1.0));
    let mix = Mix::all()[0];
    // A cycle for each byte and each transaction: 1 MB and 500 transactions in half a second.
    let work = f64::from(1_000_500) / CLOCK;
    let seen = |by: f64| Seen {
        bytes: 1_000_000,
        transactions: 500,
        cpu_seconds: work * by,
        seconds: 0.5,
    };
    let check = Check::new(mix, vec![seen(1.0), seen(1.25), seen(0.8)], &facts).unwrap().unwrap();
    let Spread { low, median, high } = check.error_percent;
    assert!(
        (low + 20.0).abs() < 1e-6 && median.abs() < 1e-6 && (high - 25.0).abs() < 1e-6,
        "{check:?}"
    );
    assert!(Check::new(mix, Vec::new(), &facts).unwrap().is_none());
    let nothing = Seen { bytes: 0, transactions: 0, cpu_seconds: 0.0, seconds: 0.5 };
    assert!(Check::new(mix, vec![nothing], &facts).unwrap().is_none());
    let mut calibration = calibration(|_| 1.0);
    calibration.checks.push(check);
    assert!(calibration.summary().contains("Of 1 mixes"), "{}", calibration.summary());
    let json = calibration.data().unwrap();
    assert_eq!(json["checks"][0]["rounds"].as_array().unwrap().len(), 3);
}

#[test]
fn mixes_are_not_in_the_tables() {
    for mix in Mix::all() {
        assert!(![64, 1024].contains(&mix.transaction_bytes), "{mix:?}");
    }
    assert_eq!(Mix::all().iter().filter(|mix| mix.threaded).count() * 2, Mix::all().len());
}

#[test]
fn a_median_is_of_numbers_only() {
    assert_eq!(Spread::of([3.0, 1.0]).unwrap().median, 2.0);
    assert_eq!(Spread::of([3.0, f64::NAN]), None);
    assert_eq!(Spread::of([]), None);
}

/// The cost of a unit between two that were measured, by hand.
fn between(x: f64, (x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> f64 {
    y0 + (x - x0) / (x1 - x0) * (y1 - y0)
}

proptest! {
    /// What a load costs is the sum of its packets and transactions, each at the cost that lies between those measured.
    #[test]
    fn sizing_is_the_sum_of_packets_and_transactions(
        costs in prop::collection::vec(0.05f64..30_000.0, Case::all().len()),
        threaded: bool,
        duplex: bool,
        mb in 0.0f64..5000.0,
        mtu in 1500u32..=9000,
        transactions in 1.0f64..1e6,
        bytes in 64u32..=1024,
    ) {
        let cases = Case::all();
        let cost = |case: &Case| costs[cases.iter().position(|other| other == case).unwrap()];
        let facts = facts_of(&calibration(cost));
        let direction = if duplex { "duplex" } else { "simplex" };
        let got = processors(&sea(threaded, mb, mtu, direction, transactions, bytes), &facts);
        let stream = |mtu| cost(&Case { threaded, load: Load::Stream { mtu, duplex } });
        let packet = between(
            mtu.into(),
            (1500.0, 1500.0 * stream(1500)),
            (9000.0, 9000.0 * stream(9000)),
        );
        let of = |bytes| cost(&Case { threaded, load: Load::Transactions { bytes } });
        let each = between(bytes.into(), (64.0, of(64)), (1024.0, of(1024)));
        let packets = mb * 1024.0 * 1024.0 / f64::from(mtu);
        let wanted = (packets * packet + transactions * each) / CLOCK;
        prop_assert!((got / wanted - 1.0).abs() < 1e-6, "{got} for {wanted}");
    }

    /// What was measured for the tables is said of itself, whatever was measured.
    #[test]
    fn a_load_of_the_tables_costs_what_it_took(
        costs in prop::collection::vec(0.05f64..30_000.0, Case::all().len()),
        at in 0..Case::all().len(),
    ) {
        let cases = Case::all();
        let cost = |case: &Case| costs[cases.iter().position(|other| other == case).unwrap()];
        let facts = facts_of(&calibration(cost));
        let case = cases[at];
        let text = match case.load {
            Load::Stream { mtu, duplex } => {
                let direction = if duplex { "duplex" } else { "simplex" };
                sea(case.threaded, 100.0, mtu, direction, 0.0, 64)
            }
            Load::Transactions { bytes } => sea(case.threaded, 0.0, 1500, "simplex", 1e5, bytes),
            Load::Uncut { .. } => return Ok(()),
        };
        let units = if matches!(case.load, Load::Stream { .. }) { 100.0 * 1024.0 * 1024.0 } else { 1e5 };
        let wanted = units * costs[at] / CLOCK;
        prop_assert!((processors(&text, &facts) / wanted - 1.0).abs() < 1e-9);
    }

    /// No file of costs, however it was corrected, makes sizing panic.
    #[test]
    fn a_file_corrected_by_hand_never_panics(
        mtu in any::<u32>(),
        value in prop_oneof![any::<f64>(), 0.0f64..100.0],
        asked in any::<u32>(),
    ) {
        let mut facts = Facts::builtin();
        let text = format!(
            "[source.x]\ntext = \"x\"\n[number.\"sea.cycles-per-byte.plain.{mtu}.simplex\"]\nvalue = {value:?}\n\
             unit = \"cycles/byte\"\nmeaning = \"x\"\nsource = \"x\"\nconfirmed = true\n"
        );
        // It may be refused.
        let _ = facts.extend(&text.replace("NaN", "nan"));
        let load = sea(false, 10.0, asked, "simplex", 10.0, 100);
        if let Ok(sizing) = Workloads::read(&load).unwrap().size(&facts) {
            let text = report::text::text(&sizing, &report::text::Options::default());
            prop_assert!(!text.is_empty());
        }
    }
}
