//! The three forms of an answer: what they promise for every answer, on one that is as hostile as a capture can be.

use planner::capture::At;
use planner::report::{
    self, Answer, Bar, Bars, Block, Chart, Limit, Line, Mark, Point, Section, Series, Table, Tone,
    text,
};
use planner::trace::{Figure, Term};

const NASTY: &str =
    "</style><script>alert(1)</script>\"' & \u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}evil\r\n";

/// An answer whose every text is `words`.
struct Sample {
    words: &'static str,
}

impl Answer for Sample {
    fn kind(&self) -> &'static str {
        "sample"
    }

    fn title(&self) -> String {
        format!("Title {}", self.words)
    }

    fn summary(&self) -> String {
        format!("Summary {}", self.words)
    }

    fn sections(&self) -> Vec<Section> {
        let word = self.words;
        let mut table = Table::new(word, &["name", "#count"]);
        table.row([word, "12"]);
        table.row(["short"]);
        let at = At { file: 0, line: 7 };
        let terms = vec![
            Term::read("active", 614.0, word, at),
            Term::read("pending", 993.0, "commands", at),
        ];
        let line = Line {
            title: word.to_owned(),
            unit: word.to_owned(),
            series: vec![
                Series { name: word.to_owned(), points: points(&[1.0, 5.0, f64::NAN, 3.0]) },
                Series { name: "flat".to_owned(), points: points(&[2.0, 2.0]) },
                Series::default(),
            ],
            marks: vec![Mark { seconds: 60.0, label: word.to_owned() }],
            limit: Some(Limit { value: 4.0, label: word.to_owned() }),
        };
        let bar = |label: &str, value| Bar { label: label.to_owned(), value, tone: Tone::Warning };
        let bars = Bars {
            title: word.to_owned(),
            unit: String::new(),
            bars: vec![bar(word, 614.0), bar("limit", 1024.0)],
        };
        vec![
            Section::new(format!("Heading {word}"), Tone::Critical)
                .paragraph(word)
                .block(Block::Labelled { label: word.to_owned(), text: word.to_owned() })
                .block(Block::List(vec![word.to_owned()]))
                .block(Block::Command(word.to_owned()))
                .block(Block::Figures(vec![Figure::new(
                    "needed",
                    "commands",
                    "active + pending",
                    terms,
                )]))
                .block(Block::Places(vec![at, At { file: 9, line: 1 }]))
                .block(Block::Table(table)),
            Section::new("Drawings", Tone::Plain)
                .block(Block::Chart(Chart::Line(line)))
                .block(Block::Chart(Chart::Bars(bars))),
        ]
    }

    fn file_name(&self, file: u32) -> Option<String> {
        (file == 0).then(|| format!("capture{}.txt", self.words))
    }

    fn line_text(&self, at: At) -> Option<String> {
        (at.file == 0).then(|| format!("  line {} {}", at.line, self.words))
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(self.words)
    }
}

fn points(values: &[f64]) -> Vec<Point> {
    let seconds = (0..values.len()).map(|at| 60.0 * f64::from(u8::try_from(at).unwrap_or(0)));
    seconds.zip(values).map(|(seconds, value)| Point { seconds, value: *value }).collect()
}

#[test]
fn a_terminal_gets_no_control_character() {
    for explain in [false, true] {
        let shown = text::text(
            &Sample { words: NASTY },
            &text::Options { width: 60, colour: false, explain },
        );
        let acting: Vec<char> = shown.chars().filter(|c| c.is_control() && *c != '\n').collect();
        assert_eq!(acting, Vec::<char>::new(), "{shown}");
        assert!(!shown.contains('\u{202e}'));
    }
}

#[test]
fn colour_is_used_only_where_asked_for_and_always_ended() {
    let plain = text::text(&Sample { words: "word" }, &text::Options::default());
    assert!(!plain.contains('\u{1b}'));
    let coloured = text::text(
        &Sample { words: "word" },
        &text::Options { colour: true, ..text::Options::default() },
    );
    let starts = coloured.matches("\u{1b}[").count();
    assert!(starts > 0 && starts == 2 * coloured.matches("\u{1b}[0m").count(), "{coloured:?}");
}

#[test]
fn text_keeps_to_the_width_except_for_commands() {
    let words =
        "several words that have to be broken somewhere because there are many of them in here";
    for width in [40, 60, 100] {
        let shown =
            text::text(&Sample { words }, &text::Options { width, ..text::Options::default() });
        for line in shown.lines().filter(|line| {
            !line.contains("$ ")
                && !line.contains(".txt:")
                && !line.contains('█')
                && !line.contains('▁')
        }) {
            assert!(line.chars().count() <= width + 2, "{width}: {line}");
        }
    }
}

#[test]
fn commands_between_backticks_are_code_on_a_page() {
    let page = report::html::html(&Sample { words: "run `errpt <a>` twice" });
    assert!(page.contains("<p>run <code>errpt &lt;a&gt;</code> twice</p>"), "{page}");
    assert!(page.contains(">run <code>errpt &lt;a&gt;</code> twice</td>"), "{page}");
    // One alone is a character.
    assert!(report::html::html(&Sample { words: "a ` b" }).contains("<p>a ` b</p>"));
}

#[test]
fn a_page_escapes_everything_and_loads_nothing() {
    let page = report::html::html(&Sample { words: NASTY });
    assert!(!page.contains("<script"), "{page}");
    assert_eq!(page.matches("</style>").count(), 1);
    assert!(page.contains("&lt;script&gt;"));
    for reference in ["http:", "https:", "src=", "href=", "url(", "@import", "javascript:"] {
        assert!(!page.contains(reference), "{reference} in {page}");
    }
    assert!(page.contains("default-src 'none'"));
    // Browsers keep what is folded in a box of its own, which printing has to open.
    let print = page.split_once("@media print").expect("a style for paper").1;
    assert!(print.contains("details::details-content{content-visibility:visible"), "{print}");
    assert!(page.contains("<svg"));
    assert!(!page.chars().any(|c| c.is_control() && c != '\n'));
    assert!(!page.contains('\u{202e}') && !page.contains("NaN"));
}

#[test]
fn json_has_its_version_and_the_files() {
    let json = report::json(&Sample { words: NASTY }).expect("JSON");
    let read: serde_json::Value = serde_json::from_str(&json).expect("reads back");
    assert_eq!(read["version"], report::VERSION);
    assert_eq!(read["kind"], "sample");
    assert_eq!(read["answer"], NASTY);
    assert_eq!(read["files"].as_array().map(Vec::len), Some(1));
}

#[test]
fn explaining_prints_formula_values_and_places() {
    let options = text::Options { explain: true, ..text::Options::default() };
    let shown = text::text(&Sample { words: "" }, &options);
    for part in ["= active + pending", "614 + 993", "1,607", "capture.txt, line 7"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn a_sparkline_shows_the_shape() {
    assert_eq!(report::sparkline(&[0.0, 50.0, 100.0]), "▁▅█");
    assert_eq!(report::sparkline(&[3.0, 3.0]), "▄▄");
    assert_eq!(report::sparkline(&[]), "");
    assert_eq!(report::sparkline(&[f64::NAN, 0.0, 1.0]).chars().count(), 3);
}

#[test]
fn a_small_answer_reads_well() {
    insta::assert_snapshot!(text::text(
        &Sample { words: "word" },
        &text::Options { width: 72, ..text::Options::default() }
    ));
}
