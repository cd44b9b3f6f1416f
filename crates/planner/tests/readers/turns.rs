//! Hosts that take turns line by line, and text that only looks like what they print.

use super::pasted::{host, text};
use super::{only, read_bytes};

/// What is read of a file, without the numbers of lines, and without the file's own remarks.
fn told(bytes: &[u8]) -> Vec<serde_json::Value> {
    fn without_lines(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.retain(|name, _| !matches!(name.as_str(), "at" | "first" | "last" | "line"));
                fields.values_mut().for_each(without_lines);
            }
            serde_json::Value::Array(list) => list.iter_mut().for_each(without_lines),
            serde_json::Value::String(text) => {
                *text = text.split(|c: char| c.is_ascii_digit()).collect::<Vec<_>>().join("0");
            }
            _ => {}
        }
    }
    let captures = read_bytes(bytes);
    let values = captures.reports.iter().map(|report| serde_json::to_value(report).unwrap());
    values
        .map(|mut value| {
            // A number is a counter, or a line; those of texts are of lines that they name.
            without_lines(&mut value);
            value
        })
        .collect()
}

/// Hosts that answer at a time: each line is its host's, and keeps its place in the file.
#[test]
fn lines_of_hosts_that_alternate_are_sorted_apart() {
    // Without their prompts.
    let both = |name: &str| {
        let text = text(name);
        let lines = text.lines().skip_while(|line| !line.starts_with("FIBRE CHANNEL"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (one, two) = (both("fcstat-physical"), both("fcstat-old"));
    let mixed: String =
        one.iter().zip(&two).map(|(one, two)| format!("vios1: {one}\nvios2: {two}\n")).collect();
    let typed = "admin# xdsh vios1,vios2 fcstat fcs0\n";
    // Also far down in a long file.
    let below = format!("{}\n{mixed}", "nothing of interest\n".repeat(5000));
    for text in [format!("{typed}{mixed}"), mixed, below] {
        let captures = read_bytes(text.as_bytes());
        let notes = &captures.files[0].notes;
        assert!(notes.iter().any(|note| note.contains("host by host")), "{notes:?}");
        let hosts: Vec<_> = captures.fcstats().map(|fcstat| host(&fcstat.head)).collect();
        assert_eq!(hosts, [Some("vios1"), Some("vios2")]);
        let wwpn = captures.fcstats().next().unwrap().wwpn.unwrap();
        let line = text.lines().nth(usize::try_from(wwpn.at.line).unwrap() - 1).unwrap();
        assert!(line.starts_with("vios1: World Wide Port Name"), "{line}");
    }
}

/// The fixtures that can be told apart without their commands.
static SPOKEN: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| {
    let names = [
        "fcstat-physical",
        "fcstat-old",
        "entstat-sea",
        "lsmap-all",
        "lsmap-npiv",
        "vmstat",
        "lparstat-i",
        "errpt-a",
        "lspath",
        "lsattr",
    ];
    names.iter().map(|name| text(name)).collect()
});

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    /// However the lines of several hosts come, what is read is what each host gives by itself.
    #[test]
    fn hosts_that_take_turns_say_what_they_say_one_by_one(
        picks in proptest::collection::vec(0..SPOKEN.len(), 2..5),
        turns in proptest::collection::vec((0_usize..5, 1_usize..4), 600),
        style in 0..3,
    ) {
        let dressed: Vec<Vec<String>> = picks
            .iter()
            .enumerate()
            .map(|(index, pick)| {
                let dress = |line: &str| match style {
                    2 => format!("[vios{index}] {line}\n"),
                    _ => format!("vios{index}: {line}\n"),
                };
                SPOKEN[*pick].lines().map(dress).collect()
            })
            .collect();
        let typed = if style == 0 { "admin# clsh all report\n" } else { "" };
        let apart: String = dressed.iter().flatten().map(String::as_str).collect();
        let mut rest: Vec<_> = dressed.iter().map(|lines| lines.iter()).collect();
        // Each speaks first in its order.
        let mut mixed: String = rest.iter_mut().filter_map(Iterator::next).map(String::as_str).collect();
        for (host, count) in turns {
            let host = host % rest.len();
            mixed.extend(rest[host].by_ref().take(count).map(String::as_str));
        }
        mixed.extend(rest.into_iter().flatten().map(String::as_str));
        let (mixed, apart) = (format!("{typed}{mixed}"), format!("{typed}{apart}"));
        let whole = told(apart.as_bytes());
        proptest::prop_assert!(!whole.is_empty());
        proptest::prop_assert_eq!(told(mixed.as_bytes()), whole);
    }
}

/// Prose, settings and programs name rows and headings, and hold no report.
#[test]
fn prose_is_no_capture() {
    let settings = |key: &str| {
        format!(
            "cause = \"\"\"\nThe path over vscsi0 failed, hdisk0 is reserved.\n\"\"\"\n{key} [\n    \"client.txt: hcheck_interval 0\",\n    \"client.txt: Failed  hdisk0  vscsi0\",\n    \"vios1.txt: up 1 day\",\n    \"lydwh.txt: 512...2048 (+1)\",\n    \"skodb.txt: LABEL:          SC_DISK_ERR2\",\n]\n"
        )
    };
    let rows = "shows = [\n    \"odensedb.txt: Enabled hdisk0 sas0\",\n    \"odensedb.txt: Failed hdisk7 fscsi1\",\n]\n";
    let program = "struct Row {\n    label: String,\n    label: errpt,\n}\nconst ROWS: [&str; 2] = [\n    \"Failed hdisk3 fscsi1\",\n    \"Failed hdisk4 fscsi1\",\n];\n";
    for text in [&settings("shows ="), &settings("let shows = vec!"), rows, program] {
        let captures = read_bytes(text.as_bytes());
        assert_eq!(captures.reports, [], "{text}");
    }
    // A list of JSON may hold a capture that is nothing but rows.
    let list = "{\n  \"stdout_lines\": [\n    \"Enabled hdisk0 fscsi0\",\n    \"Failed hdisk0 fscsi1\"\n  ]\n}\n";
    assert_eq!(only(read_bytes(list.as_bytes()).disk_paths_all()).paths.len(), 2);
    // What was written about the systems of the tests.
    let folder = format!("{}/tests/field", env!("CARGO_MANIFEST_DIR"));
    let mut read = 0;
    for kind in ["faulty", "healthy", "damaged"] {
        for case in std::fs::read_dir(format!("{folder}/{kind}")).unwrap() {
            let path = case.unwrap().path().join("manifest.toml");
            let captures = read_bytes(&std::fs::read(&path).unwrap());
            assert_eq!(captures.reports, [], "{}", path.display());
            read += 1;
        }
    }
    assert!(read > 250, "{read}");
}
