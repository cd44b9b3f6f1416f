use std::collections::BTreeSet;

use super::*;

fn level(product: Product, text: &str) -> Level {
    Level::read(product, text).unwrap()
}

#[test]
fn the_data_files_are_read_and_do_not_hide_one_another() {
    let facts = Facts::read_builtin().unwrap_or_else(|(file, error)| panic!("{file}: {error}"));
    let mut seen = BTreeSet::new();
    for (file, text) in FILES {
        for line in text.lines().filter(|line| line.starts_with('[')) {
            assert!(seen.insert(line), "{file}: {line} stands in another file too");
        }
    }
    assert!(facts.attributes("fcs").count() >= 3);
    for device in DEVICES {
        assert!(facts.attributes(device).count() > 0, "{device}");
    }
}

#[test]
fn every_number_that_rules_use_is_there_and_every_one_has_a_meaning() {
    let facts = Facts::builtin();
    for id in id::ALL {
        assert!(facts.find(id).is_some(), "{id}");
    }
    for number in facts.numbers("") {
        assert!(!number.meaning.is_empty() && !number.unit.is_empty(), "{}", number.id);
        assert!(!number.source.text.is_empty(), "{}", number.id);
        let families = ["sea.cycles-per-byte.", "mq.gain-percent."];
        let family = families.iter().any(|family| number.id.starts_with(family))
            || id::size_of(&number.id).is_some();
        assert!(family || id::ALL.contains(&number.id.as_str()), "{}: nothing uses it", number.id);
    }
    assert!(facts.number("no.such").low.is_nan());
}

#[test]
fn assumptions_are_never_marked_as_read() {
    let facts = Facts::builtin();
    let doubtful = [
        "assumption",
        "general",
        "practice",
        "sea-limits",
        "ssp-limits",
        "vscsi-elements",
        "vscsi-tables",
    ];
    let numbers = facts.numbers("").map(|number| &number.source);
    let attributes = DEVICES.iter().flat_map(|device| facts.attributes(device)).map(|a| &a.source);
    let adapters = facts.adapters().map(|adapter| &adapter.source);
    let machines = facts.machines.values().map(|machine| &machine.source);
    let requirements = facts.requirements.values().flat_map(|r| r.values()).map(|r| &r.source);
    let mut judged = 0;
    for source in numbers.chain(attributes).chain(adapters).chain(machines).chain(requirements) {
        assert!(!(doubtful.contains(&source.id.as_str()) && source.confirmed), "{source:?}");
        judged += 1;
    }
    assert!(judged > 100, "{judged}");
}

#[test]
fn a_users_file_replaces_and_adds() {
    let mut facts = Facts::builtin();
    let own = r#"
        [source.mine]
        text = "measured here, 2026-11"
        [number."vfc.cycles-per-io.multi-queue"]
        value = 31000
        unit = "cycles/I/O"
        meaning = "measured"
        source = "mine"
        confirmed = true
        [adapter.EN1N]
        name = "64Gb"
        link_gbit = 64
        ports = 2
        multi_queue = true
        io_queues_max = 16
        source = "mine"
        confirmed = true
        [number."sea.cycles-per-transaction.plain.512"]
        value = 19000
        unit = "cycles/transaction"
        meaning = "measured"
        source = "mine"
        confirmed = true
    "#;
    facts.extend(own).unwrap();
    let number = facts.number(id::VFC_CYCLES_PER_IO_MULTI);
    assert_eq!((number.low, number.high, number.source.confirmed), (31000.0, 31000.0, true));
    assert_eq!(facts.adapter("en1n").unwrap().io_queues_max, Some(16));
    assert_eq!(facts.numbers("sea.cycles-per-transaction.plain.").count(), 3);
}

#[test]
fn what_is_wrong_in_a_users_file_is_named_and_changes_nothing() {
    let source = "[source.s]\ntext = \"t\"\n";
    let number = |id: &str, rest: &str| {
        format!(
            "{source}[number.\"{id}\"]\nmeaning = \"m\"\nsource = \"s\"\nconfirmed = true\n{rest}"
        )
    };
    let cases = [
        ("[numbr.x]\n".to_owned(), vec!["unknown field `numbr`", "`number`"]),
        (
            number("mq.iops-min", "value = 1\nunit = \"I/O/s\"\nvalu = 2"),
            vec!["unknown field `valu`"],
        ),
        (number("mq.iops-min", "value = \"x\"\nunit = \"I/O/s\""), vec!["invalid type", "value"]),
        (number("mq.iops-min", "value = 1\nvalue = 2\nunit = \"I/O/s\""), vec!["duplicate key"]),
        (
            number("mq.iops-mim", "value = 1\nunit = \"I/O/s\""),
            vec!["mq.iops-mim", "did you mean `mq.iops-min`?"],
        ),
        (
            number(
                "sea.cycles-per-transaction.plain.big",
                "value = 1\nunit = \"cycles/transaction\"",
            ),
            vec!["key of a number that is used"],
        ),
        (
            number("sea.cycles-per-transaction.plain.512", "value = 1\nunit = \"cycles\""),
            vec!["expected `cycles/transaction`"],
        ),
        (number("mq.iops-min", "value = 1\nunit = \"Hz\""), vec!["unit", "`I/O/s`", "convert"]),
        (
            number("mq.iops-min", "value = 1\nlow = 2\nunit = \"I/O/s\""),
            vec!["either `value`, or `low` and `high`"],
        ),
        (
            number("mq.iops-min", "low = 3\nhigh = 2\nunit = \"I/O/s\""),
            vec!["`low` not above `high`"],
        ),
        (number("mq.iops-min", "value = nan\nunit = \"I/O/s\""), vec!["expected numbers from 0"]),
        (
            number("mq.iops-min", "value = 1\nunit = \"I/O/s\"")
                .replace("source = \"s\"", "source = \"npiv-mc\""),
            vec!["number.\"mq.iops-min\".source", "did you mean `npiv-mq`?"],
        ),
        (
            format!("{source}[attribute.fsc.x]\nmeaning = \"m\"\nsource = \"s\"\nconfirmed = true"),
            vec!["attribute.fsc.x", "vfchost"],
        ),
        (
            format!(
                "{source}[attribute.fcs.x]\nmin = 3\ndefault = 2\nmeaning = \"m\"\nsource = \"s\"\nconfirmed = true"
            ),
            vec!["`min` ≤ `default` ≤ `max`"],
        ),
        (
            format!(
                "{source}[attribute.fcs.x]\nwords = [\"a\"]\ndefault = \"b\"\nmeaning = \"m\"\nsource = \"s\"\nconfirmed = true"
            ),
            vec!["expected one of a"],
        ),
        (
            format!(
                "{source}[requirement.f.aixx]\nat_least = [\"7.2\"]\nsource = \"s\"\nconfirmed = true"
            ),
            vec!["requirement.f.aixx", "sles"],
        ),
        (
            format!(
                "{source}[requirement.f.aix]\nat_least = [\"seven\"]\nsource = \"s\"\nconfirmed = true"
            ),
            vec!["`seven` is not a level of AIX", "7.2 TL5"],
        ),
        (
            format!("{source}[requirement.f.aix]\nat_least = []\nsource = \"s\"\nconfirmed = true"),
            vec!["at least one level"],
        ),
        (
            format!(
                "{source}[machine.X]\nname = \"x\"\ngeneration = \"fast\"\nsource = \"s\"\nconfirmed = true"
            ),
            vec!["machine.X.generation", "POWER9"],
        ),
        (
            format!(
                "{source}[adapter.X]\nname = \"x\"\nlink_gbit = 0\nports = 1\nsource = \"s\"\nconfirmed = true"
            ),
            vec!["adapter.X", "link_gbit"],
        ),
    ];
    let mut facts = Facts::builtin();
    let before = facts.clone();
    for (text, words) in cases {
        let error = facts.extend(&text).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{text}\n{error}\nlacks {word}");
        }
        assert!(facts == before);
    }
}

#[test]
fn levels_are_read_as_people_and_commands_write_them() {
    let cases: [(Product, &str, &[u32]); 16] = [
        (Product::Aix, "7.2 TL5 SP3", &[7, 2, 5, 3]),
        (Product::Aix, "7200-05-03-2135", &[7, 2, 5, 3, 2135]),
        (Product::Aix, "AIX 7.2 TL05", &[7, 2, 5]),
        (Product::Aix, "7.3", &[7, 3]),
        (Product::Aix, "6100-09", &[6, 1, 9]),
        (Product::Vios, "3.1.2.10", &[3, 1, 2, 10]),
        (Product::Vios, "VIOS 4.1", &[4, 1]),
        (Product::Firmware, "FW950.20", &[950, 20]),
        (Product::Firmware, "VM940_027", &[940]),
        (Product::Firmware, "940", &[940]),
        (Product::Ibmi, "7.4 TR6", &[7, 4, 6]),
        (Product::Ibmi, "V7R4M0 TR6", &[7, 4, 6]),
        (Product::Sles, "SLES 15 SP3", &[15, 3]),
        (Product::Rhel, "8.5", &[8, 5]),
        (Product::Server, "Power10", &[10]),
        (Product::Server, "P8", &[8]),
    ];
    for (product, text, parts) in cases {
        assert_eq!(level(product, text).parts(), parts, "{product} {text}");
    }
    for (product, text) in [
        (Product::Aix, ""),
        (Product::Aix, "seven"),
        (Product::Aix, "7.2 TL5 build x"),
        (Product::Vios, "3.1.x"),
        (Product::Firmware, "FW"),
        (Product::Vios, "1.2.3.4.5.6.7"),
        (Product::Vios, "99999999999"),
    ] {
        let error = Level::read(product, text).unwrap_err().to_string();
        assert!(error.contains("expected something like"), "{error}");
    }
}

#[test]
fn a_level_is_judged_within_its_release() {
    let facts = Facts::builtin();
    let judge = |product, text: &str| {
        facts.requirement("npiv-multi-queue", product).unwrap().judge(&level(product, text))
    };
    for (product, text, verdict) in [
        (Product::Ibmi, "7.3 TR11", Verdict::NotMet),
        (Product::Ibmi, "7.3 TR12", Verdict::Met),
        (Product::Ibmi, "7.4 TR5", Verdict::NotMet),
        (Product::Ibmi, "7.4 TR6", Verdict::Met),
        (Product::Ibmi, "7.5", Verdict::Met),
        (Product::Ibmi, "7.2 TR9", Verdict::NotMet),
        (Product::Ibmi, "7.4", Verdict::Unknown),
        (Product::Aix, "7200-05-00-2038", Verdict::Met),
        (Product::Aix, "7200-04-06-2320", Verdict::NotMet),
        (Product::Aix, "7.3 TL0", Verdict::Met),
        (Product::Aix, "7.1 TL5", Verdict::NotMet),
        (Product::Aix, "7.2", Verdict::Unknown),
        (Product::Aix, "7", Verdict::Unknown),
        (Product::Aix, "6", Verdict::NotMet),
        (Product::Vios, "3.1.1.60", Verdict::NotMet),
        (Product::Vios, "3.1.2.0", Verdict::Met),
        (Product::Vios, "4.1.0", Verdict::Met),
        (Product::Vios, "2.2.6", Verdict::NotMet),
        (Product::Firmware, "FW930.40", Verdict::NotMet),
        (Product::Firmware, "FW940", Verdict::Met),
        (Product::Firmware, "FW1010.20", Verdict::Met),
        (Product::Server, "POWER8", Verdict::NotMet),
        (Product::Server, "Power10", Verdict::Met),
        (Product::Sles, "15 SP2", Verdict::NotMet),
        (Product::Sles, "12 SP5", Verdict::NotMet),
        (Product::Sles, "16", Verdict::Met),
        (Product::Rhel, "9", Verdict::Unknown),
    ] {
        assert_eq!(judge(product, text), verdict, "{product} {text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_a_level_or_a_file_panic(text in "[A-Za-z0-9 ._-]{0,12}|\\PC{0,12}") {
        for product in Product::ALL {
            if let Ok(level) = Level::read(product, &text) {
                let least = Level::read(product, product.example().split(" or ").next().unwrap()).unwrap();
                // A level is at least itself.
                proptest::prop_assert_eq!(level.judge(std::slice::from_ref(&level)), Verdict::Met);
                level.judge(&[least]);
            }
        }
        let mut facts = Facts::builtin();
        let before = facts.clone();
        let wrong = facts.extend(&format!("[number.\"{}\"]\nvalue = 1\n", text.escape_default()));
        proptest::prop_assert!(wrong.is_err() && facts == before);
    }
}

#[test]
fn a_contradiction_is_told_with_the_figures_that_it_touches() {
    let facts = Facts::builtin();
    let figure = |name: &str| Figure::plain(Term::given(name, 1.0, ""));
    let of = |names: &[&str]| -> Vec<String> {
        let figures: Vec<Figure> = names.iter().map(|name| figure(name)).collect();
        facts.contradictions_of(figures.iter()).into_iter().map(|one| one.id).collect()
    };
    assert_eq!(of(&["elements by the high-water rule", "free"]), ["high-water-sum"]);
    assert_eq!(of(&["commands that the clients may send"]), ["pool-outstanding"]);
    assert_eq!(of(&["free"]), Vec::<String>::new());
    let lpm = facts.contradiction("lpm-first-move-to-power9").unwrap();
    assert!(lpm.figures.is_empty() && lpm.source.id == "npiv-mq-lpm", "{lpm:?}");
}
