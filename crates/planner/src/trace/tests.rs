use super::*;

fn term(name: &str, value: f64) -> Term {
    Term::given(name, value, "")
}

fn value(formula: &str, terms: &[Term]) -> Option<(f64, f64)> {
    formula::evaluate(formula, terms)
}

#[test]
fn formulas_are_reckoned_as_written() {
    let terms =
        [term("high-water active", 614.0), term("high-water pending", 993.0), term("a", 2.0)];
    assert_eq!(value("high-water active + high-water pending", &terms), Some((1607.0, 1607.0)));
    assert_eq!(value("2 + 3 × 4 − 6 ÷ 3", &[]), Some((12.0, 12.0)));
    assert_eq!(value("(2 + 3) * (4 - 6) / 4", &[]), Some((-2.5, -2.5)));
    assert_eq!(value("8 ÷ 2 ÷ 2", &[]), Some((2.0, 2.0)));
    assert_eq!(value("10 − 4 − 3", &[]), Some((3.0, 3.0)));
    assert_eq!(value("−a + 5", &terms), Some((3.0, 3.0)));
    assert_eq!(value("min(a, 3, 1) + max(a, 7)", &terms), Some((8.0, 8.0)));
    assert_eq!(value("round_up(1.42, 0.5)", &[]), Some((1.5, 1.5)));
    assert_eq!(value("round_up(1.5, 0.5)", &[]), Some((1.5, 1.5)));
    assert_eq!(value("round_down(510 ÷ (20 + 3), 1)", &[]), Some((22.0, 22.0)));
    assert_eq!(value("round_down(0.3 ÷ 0.1, 1)", &[]), Some((3.0, 3.0)));
}

#[test]
fn what_has_no_value_is_none() {
    let terms = [term("a", 2.0), Term::range("r", -1.0, 1.0, "", Origin::Given)];
    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    let wrong = [
        "",
        "a +",
        "b",
        "a a",
        "1 ÷ 0",
        "a ÷ r",
        "(a",
        "a)",
        "min()",
        "round_up(a)",
        "ab",
        "round_up(a, r)",
        "1.2.3",
        &deep,
    ];
    for formula in wrong {
        assert_eq!(value(formula, &terms), None, "{formula}");
    }
    assert!(Figure::new("x", "", "1 ÷ 0", vec![]).low.is_nan());
    assert_eq!(Figure::new("x", "", "1 ÷ 0", vec![]).value(), "—");
}

#[test]
fn the_longest_name_at_a_place_is_meant() {
    let terms = [term("rate", 2.0), term("rate of b", 5.0), term("b", 7.0)];
    assert_eq!(value("rate of b × b", &terms), Some((35.0, 35.0)));
    assert_eq!(formula::substitute("rate of b × b + rate", &terms), "5 × 7 + 2");
    assert_eq!(formula::substitute("bb and ab", &terms), "bb and ab");
}

#[test]
fn ranges_hold_every_value_that_can_come_about() {
    // A grid of points within the bounds is the oracle: no point may lie outside.
    let formulas = ["a × b − c", "a ÷ c + b", "min(a, b) × max(b, c)", "round_up(a × c, 0.5) − b"];
    let bounds = [(-3.0, 2.0), (0.5, 4.0), (1.5, 1.75)];
    let terms: Vec<Term> = ["a", "b", "c"]
        .iter()
        .zip(bounds)
        .map(|(name, (low, high))| Term::range(name, low, high, "", Origin::Given))
        .collect();
    for formula in formulas {
        let (low, high) = value(formula, &terms).unwrap();
        for step in 0..1000_u32 {
            let at = |place: u32, (low, high): (f64, f64)| {
                low + (high - low) * f64::from(step / 10_u32.pow(place) % 10) / 9.0
            };
            let point: Vec<Term> = (0..3_u32)
                .zip(["a", "b", "c"])
                .map(|(place, name)| term(name, at(place, bounds[place as usize])))
                .collect();
            let (exact, same) = value(formula, &point).unwrap();
            assert_eq!(exact, same);
            assert!(
                low - 1e-9 <= exact && exact <= high + 1e-9,
                "{formula}: {exact} in {low}..{high}"
            );
        }
    }
}

#[test]
fn numbers_as_people_read_them() {
    let cases = [
        (2_348_810_240.0, "2,348,810,240"),
        (1.423_521, "1.42"),
        (1.5, "1.5"),
        (0.0, "0"),
        (-0.000_000_000_000_000_000_1, "0"),
        (0.000_012_345, "0.0000123"),
        (0.806, "0.806"),
        (999.96, "1,000"),
        (-1234.56, "-1,234.6"),
        (f64::NAN, "—"),
        (f64::INFINITY, "—"),
        (100.0, "100"),
    ];
    for (value, text) in cases {
        assert_eq!(number(value), text);
    }
}

#[test]
fn a_figure_shows_formula_values_and_sources() {
    let source = Source { id: "sea".into(), text: "SEA sizing".into(), confirmed: true };
    let figure = Figure::new(
        "processors",
        "processors",
        "bytes/s × cycles/byte ÷ clock",
        vec![
            term("bytes/s", 209_715_200.0),
            Term::new("cycles/byte", 11.2, "cycles/byte", Origin::Fact(source.clone())),
            Term::read("clock", 1.65e9, "Hz", At { file: 1, line: 7 }),
        ],
    );
    let shown =
        "1.42 processors (bytes/s × cycles/byte ÷ clock = 209,715,200 × 11.2 ÷ 1,650,000,000)";
    assert_eq!(figure.to_string(), shown);
    let text = explain(&figure);
    for line in ["  cycles/byte = 11.2 cycles/byte: SEA sizing [sea]", "file 2, line 7", ": given"]
    {
        assert!(text.contains(line), "{text}");
    }
    assert!(figure.confirmed());
    let doubtful = Origin::Fact(Source { confirmed: false, ..source });
    let guess = Figure::plain(Term::range("x", 1.0, 2.0, "ms", doubtful));
    assert_eq!(guess.to_string(), "1 to 2 ms");
    assert!(!guess.confirmed() && explain(&guess).contains("unconfirmed"));
}

#[test]
fn what_rests_on_an_assumption_says_so_to_the_end() {
    let guess = Source { id: "a".into(), text: "a guess".into(), confirmed: false };
    let first = Figure::plain(Term::new("x", 2.0, "", Origin::Fact(guess)));
    let second = Figure::new("y", "", "x × 2", vec![Term::of(&first)]);
    let third = Figure::new("z", "", "y + 1", vec![Term::of(&second)]);
    assert!(!second.confirmed() && !third.confirmed());
    assert!(explain(&third).contains("y = 4: computed, in part from what is unconfirmed"));
    let sure = Figure::new("y", "", "2 × 2", vec![]);
    assert!(Figure::new("z", "", "y + 1", vec![Term::of(&sure)]).confirmed());
}

/// A formula as a tree: the oracle reckons it directly.
#[derive(Debug, Clone)]
enum Tree {
    Number(u32),
    Name(usize),
    Two(char, Box<Tree>, Box<Tree>),
    Least(Box<Tree>, Box<Tree>),
}

const NAMES: [&str; 4] = ["a", "a b", "high-water", "cycles/byte"];

impl Tree {
    fn text(&self) -> String {
        match self {
            Tree::Number(number) => number.to_string(),
            Tree::Name(name) => NAMES[*name].to_owned(),
            Tree::Two(sign, a, b) => format!("({} {sign} {})", a.text(), b.text()),
            Tree::Least(a, b) => format!("min({}, {})", a.text(), b.text()),
        }
    }

    fn reckon(&self, values: &[f64; 4]) -> f64 {
        match self {
            Tree::Number(number) => f64::from(*number),
            Tree::Name(name) => values[*name],
            Tree::Two(sign, a, b) => {
                let (a, b) = (a.reckon(values), b.reckon(values));
                match sign {
                    '+' => a + b,
                    '−' => a - b,
                    '×' => a * b,
                    _ => a / b,
                }
            }
            Tree::Least(a, b) => a.reckon(values).min(b.reckon(values)),
        }
    }
}

fn tree() -> impl proptest::strategy::Strategy<Value = Tree> {
    use proptest::prelude::*;
    let leaf = prop_oneof![(0u32..1000).prop_map(Tree::Number), (0usize..4).prop_map(Tree::Name)];
    leaf.prop_recursive(5, 40, 2, |inner| {
        let two = (prop::sample::select(vec!['+', '−', '×', '÷']), inner.clone(), inner.clone());
        prop_oneof![
            4 => two.prop_map(|(sign, a, b)| Tree::Two(sign, Box::new(a), Box::new(b))),
            1 => (inner.clone(), inner).prop_map(|(a, b)| Tree::Least(Box::new(a), Box::new(b))),
        ]
    })
}

proptest::proptest! {
    #[test]
    fn a_formula_is_what_its_tree_is(tree in tree(), values in proptest::array::uniform4(-50.0f64..50.0)) {
        let terms: Vec<Term> = NAMES.iter().zip(values).map(|(name, value)| term(name, value)).collect();
        let direct = tree.reckon(&values);
        match value(&tree.text(), &terms) {
            Some((low, high)) => {
                proptest::prop_assert!(low == high);
                let near = (low - direct).abs() <= 1e-9 * direct.abs().max(1.0);
                proptest::prop_assert!(near, "{}: {low}, {direct}", tree.text());
            }
            // Only a division by zero, or by something that is infinite already, has no value.
            None => proptest::prop_assert!(tree.text().contains('÷')),
        }
    }

    #[test]
    fn no_formula_makes_it_panic(text in "[a-c0-9+×÷−*/(), .]{0,40}|\\PC{0,20}", name in "\\PC{0,6}") {
        let figure = Figure::new("x", "", &text, vec![term("a", 2.0), term(&name, 3.0)]);
        proptest::prop_assert!(!figure.to_string().is_empty());
        proptest::prop_assert!(!explain(&figure).is_empty());
    }
}
