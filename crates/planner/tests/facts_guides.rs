//! The two guides: every number of their examples, and every fact that they name, is what the program says.

use planner::facts::{Facts, id};
use planner::lpm::Plan;
use planner::report::{Answer, Block};
use planner::size::Workloads;

const LPM: &str = include_str!("../../../docs/guide/planner-lpm.md");
const SIZING: &str = include_str!("../../../docs/guide/planner-sizing.md");

/// A TOML example of a guide and the rows of the first table after it.
struct Example {
    toml: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split(" | ").map(|cell| cell.trim().to_owned()).collect()
}

/// The examples whose fence has this information string.
fn examples(guide: &str, fence: &str) -> Vec<Example> {
    let opening = format!("\n```{fence}\n");
    guide
        .split(&opening)
        .skip(1)
        .map(|rest| {
            let (toml, after) = rest.split_once("\n```").unwrap();
            let table = after.lines().skip(1).skip_while(|line| !line.starts_with('|'));
            let mut rows = table.take_while(|line| line.starts_with('|')).map(cells);
            let head = rows.next().unwrap_or_default();
            Example { toml: toml.to_owned(), head, rows: rows.skip(1).collect() }
        })
        .collect()
}

#[test]
fn the_outcomes_in_the_guide_are_those_of_the_program() {
    let facts = Facts::builtin();
    let examples = examples(LPM, "toml");
    assert_eq!(examples.len(), 2);
    for example in examples {
        assert_eq!(example.head, ["step", "at", "queues", "because"]);
        let outcome = Plan::read(&example.toml, &facts).unwrap().outcome(&facts).unwrap();
        let sections = outcome.sections();
        let Some(Block::Table(table)) = sections[0].blocks.first() else { panic!("no table") };
        assert_eq!(table.rows, example.rows, "{}", example.toml);
    }
    let linux = self::examples(LPM, "toml")[0].toml.replace("\"aix\"", "\"linux\"");
    let linux = linux.replace("\"7200-05-03-2135\"", "\"6.4\"");
    let outcome = Plan::read(&linux, &facts).unwrap().outcome(&facts).unwrap();
    assert_eq!(outcome.stages[2].queues(), Some(8));
}

#[test]
fn the_figures_in_the_guide_are_those_of_the_program() {
    let facts = Facts::builtin();
    let examples = examples(SIZING, "toml");
    assert_eq!(examples.len(), 4);
    for example in examples {
        assert_eq!(example.head, ["figure", "value", "put in"]);
        assert!(example.rows.len() >= 6);
        let sizing = Workloads::read(&example.toml).unwrap().size(&facts).unwrap();
        let of_parts = sizing.parts.iter().flat_map(|part| &part.figures);
        let all: Vec<_> = of_parts.chain(&sizing.totals).collect();
        for row in &example.rows {
            let shown = |figure: &planner::trace::Figure| {
                vec![figure.name.clone(), figure.value(), figure.put_in()]
            };
            let found = all.iter().any(|figure| shown(figure) == *row);
            let near: Vec<_> = all.iter().filter(|f| f.name == row[0]).map(|f| shown(f)).collect();
            assert!(found, "{row:?} is not there; there are {near:?}");
        }
    }
}

#[test]
fn the_files_in_the_guides_can_be_taken_as_they_are() {
    let mut facts = Facts::builtin();
    for guide in [LPM, SIZING] {
        for example in examples(guide, "toml facts") {
            facts.extend(&example.toml).unwrap();
        }
    }
    assert_eq!(facts.adapter("EN1J").unwrap().io_queues_max, Some(16));
    assert_eq!(facts.number(id::VFC_CYCLES_PER_IO_MULTI).high, 31_000.0);
}

#[test]
fn the_tables_in_the_guides_repeat_the_facts() {
    let facts = Facts::builtin();
    let row = |guide: &str, start: &str| {
        let line = guide.lines().find(|line| line.starts_with(start));
        cells(line.unwrap_or_else(|| panic!("no line starts with {start}")))
    };
    for (start, family) in [("| `threaded = true`", "threaded"), ("| `threaded = false`", "plain")]
    {
        let kinds = ["1500.simplex", "1500.duplex", "9000.simplex", "9000.duplex"];
        for (cell, kind) in row(SIZING, start)[1..].iter().zip(kinds) {
            let number = facts.number(&format!("sea.cycles-per-byte.{family}.{kind}"));
            assert_eq!(cell.parse(), Ok(number.low), "{kind}");
        }
    }
    let mut named = 0;
    for line in SIZING.lines().filter(|line| line.starts_with("| `")) {
        let cells = cells(line);
        let key = cells[0].split('`').nth(1).unwrap();
        let Some(number) = facts.find(key) else { continue };
        named += 1;
        let span = if number.low == number.high {
            number.low.to_string()
        } else {
            format!("{} to {}", number.low, number.high)
        };
        if !cells[1].contains("table above") {
            assert!(cells[1].starts_with(&span), "{key}: {span}, not {}", cells[1]);
        }
        assert_eq!(cells[1].contains("(unconfirmed)"), !number.source.confirmed, "{key}");
        assert_eq!(cells[2], number.unit, "{key}");
    }
    assert!(named >= 13, "{named}");
    for (start, device, name) in [
        ("| the client's own attribute", "fcs-client", "num_io_queues"),
        ("| the virtual adapter's attribute", "vfchost", "num_per_range"),
        ("| the VIOS-wide attribute", "viosnpiv0", "num_per_range"),
        ("| the port's attribute", "fcs", "num_io_queues"),
    ] {
        let known = facts.attribute(device, name).unwrap();
        let default = known.default.as_ref().unwrap();
        let text = format!("{} to {}, {default}", known.min.unwrap(), known.max.unwrap());
        let cell = &row(LPM, start)[2];
        assert!(cell.starts_with(&text), "{cell}: {text}");
    }
}
