//! What holds for every capture, however broken.

use super::{PHYSICAL, Port, VIRTUAL, lsattr, lsdev, npiv};
use planner::advise::{advise, rule};
use planner::capture::{Captures, Taken};
use planner::facts::Facts;
use proptest::prelude::*;

/// Good captures of most kinds, to be broken.
fn whole() -> Vec<String> {
    let fixtures = format!("{}/tests/readers", env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<_> = std::fs::read_dir(fixtures)
        .expect("the fixtures")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.retain(|path| path.extension().is_some_and(|ext| ext == "txt"));
    names.sort();
    let mut texts: Vec<String> = names
        .iter()
        .map(|path| String::from_utf8_lossy(&std::fs::read(path).expect("a fixture")).into_owned())
        .collect();
    let short = Port { no_command: 4_419_300, no_dma: 99_000_000, pending_high: 2022, ..VIRTUAL };
    let port = Port { no_elements: 4_128_362, pending_high: 993, crcs: 5000, ..PHYSICAL };
    texts.push(
        short.text()
            + &lsattr(
                "payroll",
                "fcs0",
                &[("num_cmd_elems", "200"), ("num_io_queues", "1"), ("max_xfer_size", "0x400000")],
            ),
    );
    texts.push(
        port.text()
            + &lsdev(
                "viosa1",
                "fcs0",
                &[("num_cmd_elems", "1024"), ("num_io_queues", "2"), ("max_xfer_size", "0x100000")],
            ),
    );
    texts.push(port.later(600, 120_000_000).text());
    texts.push(npiv(
        "viosa1",
        &[
            ("vfchost0", 5, "payroll", "fcs0", "fcs0", 6),
            ("vfchost1", 5, "payroll", "fcs1", "fcs1", 0),
        ],
    ));
    texts.push(lsdev("viosa1", "vfchost0", &[("limit_intr", "true")]));
    texts
}

/// What an answer promises, whatever was read.
fn holds(captures: &Captures) -> Result<(), TestCaseError> {
    let facts = Facts::builtin();
    let advice = advise(captures, &facts);
    prop_assert_eq!(&advise(captures, &facts), &advice);
    for finding in &advice.findings {
        prop_assert!(rule(finding.rule).is_some(), "{}", finding.rule);
        prop_assert!(!finding.evidence.is_empty(), "{}", finding.rule);
        for at in &finding.evidence {
            let file = captures.files.get(usize::try_from(at.file).unwrap_or(usize::MAX));
            prop_assert!(
                file.is_some_and(|file| (1..=file.lines.max(1)).contains(&at.line)),
                "{:?}",
                at
            );
        }
        prop_assert!(
            !finding.reasoning.is_empty()
                && !finding.title.is_empty()
                && !finding.effect.is_empty()
                && !finding.harm.is_empty(),
            "{finding:?}"
        );
        prop_assert!(finding.score.is_finite() && finding.score >= 0.0);
        prop_assert!((0.0..=1.0).contains(&finding.confidence));
        for command in finding
            .command
            .iter()
            .chain(finding.undo.as_ref().filter(|_| finding.command.is_some()))
        {
            let plain = command
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b" _.,:+-=/()*".contains(&byte));
            let own_words = command.starts_with("The old value is not");
            prop_assert!(plain || own_words, "{command}");
        }
        if let Some(command) = &finding.command {
            prop_assert!(
                ["chdev ", "chhwres ", "vfcmap ", "chpath "]
                    .iter()
                    .any(|start| command.starts_with(start)),
                "{command}"
            );
            within(command)?;
        }
    }
    prop_assert!(advice.findings.windows(2).all(|pair| pair[0].score >= pair[1].score));
    Ok(())
}

/// Values proposed lie within the widest range that any source gives.
fn within(command: &str) -> Result<(), TestCaseError> {
    let ranges = [
        ("num_cmd_elems", 20, 8192),
        ("num_io_queues", 1, 64),
        ("queue_depth", 1, 512),
        ("num_local_cmds", 1, 64),
        ("bufs_per_cmd", 1, 64),
        ("pvid", 1, 4095),
    ];
    for set in command.split(' ').filter_map(|word| word.split_once('=')) {
        if let Some((_, low, high)) = ranges.iter().find(|(name, ..)| *name == set.0) {
            let value: u64 = set.1.parse().map_err(|_| TestCaseError::fail(command.to_owned()))?;
            prop_assert!((*low..=*high).contains(&value), "{command}");
        }
    }
    Ok(())
}

/// Other numbers, other words, lines lost or doubled.
fn broken(text: &str, edits: &[(usize, u8, u64)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (at, kind, number) in edits {
        if lines.is_empty() {
            break;
        }
        let at = at % lines.len();
        match kind % 6 {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let digits = lines[at].rfind(|c: char| c.is_ascii_digit());
                if let Some(end) = digits {
                    let start = lines[at][..end]
                        .rfind(|c: char| !c.is_ascii_digit())
                        .map_or(0, |before| before + 1);
                    lines[at].replace_range(start..=end, &number.to_string());
                }
            }
            3 => lines[at] = lines[at].replace("hdisk", "h;reboot$(x)"),
            4 => lines[at] = lines[at].replace("fcs0", &format!("fcs{}", number % 4)),
            _ => lines.truncate(at + 1),
        }
    }
    lines.join("\n")
}

#[test]
fn what_a_name_smuggles_in_never_reaches_a_command() {
    let text = lsdev("vios1", "fscsi0", &[("fc_err_recov", "delayed_fail;reboot")]);
    let mut captures = Captures::new();
    captures.read("a.txt", text.as_bytes(), None);
    let advice = advise(&captures, &Facts::builtin());
    assert_eq!(advice.findings.len(), 1);
    assert_eq!(advice.findings[0].command, None);
    assert_eq!(advice.findings[0].undo, None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn broken_captures_keep_the_promises(
        picked in proptest::collection::vec((0usize..64, proptest::collection::vec((0usize..400, any::<u8>(), prop_oneof![any::<u64>(), 0u64..5000]), 0..12)), 1..8),
        times in any::<bool>(),
    ) {
        let whole = whole();
        let mut captures = Captures::new();
        for (at, (pick, edits)) in picked.iter().enumerate() {
            let text = broken(&whole[pick % whole.len()], edits);
            let taken = times.then(|| Taken::utc(1000 * u64::try_from(at).unwrap_or(0)));
            captures.read(&format!("vios{at}.txt"), text.as_bytes(), taken);
        }
        holds(&captures)?;
    }

    #[test]
    fn any_bytes_keep_the_promises(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut captures = Captures::new();
        captures.read("noise", &bytes, None);
        holds(&captures)?;
    }
}

#[test]
fn counters_at_the_end_of_their_range_do_no_harm() {
    let text = super::PHYSICAL.text();
    let most = |name: &str, text: &str| {
        let lines = text.lines().map(|line| match line.trim_start().starts_with(name) {
            true => format!("{name}: {}", u64::MAX),
            false => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let full = most("Invalid CRC Count", &most("Invalid Tx Word Count", &text));
    assert_eq!(full.matches(&u64::MAX.to_string()).count(), 2, "{full}");
    let findings = super::advice(&[("a.txt", &full)]).findings;
    assert!(findings.iter().any(|one| one.rule == "fc-link-errors"), "{findings:?}");
}

/// Errors of the log that count more duplicates than a number holds, together.
#[test]
fn duplicates_at_the_end_of_their_range_are_many() {
    let entry = |hour: u32| {
        format!(
            "---------------------------------------------------------------------------\nLABEL:          FCP_ERR4\nIDENTIFIER:     B8FBD189\n\nDate/Time:       Wed Jul 15 {hour:02}:10:12 CEST 2026\nSequence Number: {hour}\nClass:           H\nType:            TEMP\nResource Name:   fcs0\n\nDescription\nLINK ERROR\n\nDuplicates\nNumber of duplicates\n{}\n",
            u64::MAX
        )
    };
    let text = format!(
        "vios1:/home/padmin $ date\nWed Jul 15 14:20:00 CEST 2026\nvios1:/home/padmin $ errpt -a\n{}{}{}",
        entry(12),
        entry(11),
        entry(10)
    );
    super::top(&[("a.txt", &text)], "adapter-errors");
}

/// Errors of the paths over two adapters, which together are more than a number holds.
#[test]
fn errors_of_paths_at_the_end_of_their_range_are_many() {
    let mut text = "aix1:/> pcmpath query device\n\nTotal Devices : 1\n\n\nDEV#:   2  DEVICE NAME: hdisk2  TYPE: 2145  ALGORITHM:  Load Balance\nSERIAL: 600507680C800FB1A000000000000A01\n==========================================================================\nPath#      Adapter/Path Name          State     Mode     Select     Errors\n".to_owned();
    for adapter in 0..3 {
        text += &format!(
            "    {adapter}           fscsi{adapter}/path{adapter}           OPEN   NORMAL    100200     {}\n",
            u64::MAX
        );
    }
    super::advice(&[("a.txt", &text)]);
}

/// Every number that stands alone, at the end of its range, in every system of the field.
#[test]
fn numbers_at_the_end_of_their_range_do_no_harm() {
    let greatest = |text: &str, last: bool| -> String {
        let lines = text.lines().map(|line| {
            let is_number = |word: &str| {
                word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            };
            let count = line.split(' ').filter(|word| is_number(word)).count();
            let mut seen = 0;
            let words = line.split(' ').map(|word| {
                seen += usize::from(is_number(word));
                match is_number(word) && (!last || seen == count) {
                    true => u64::MAX.to_string(),
                    false => word.to_owned(),
                }
            });
            words.collect::<Vec<_>>().join(" ")
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let tests = format!("{}/tests", env!("CARGO_MANIFEST_DIR"));
    let mut systems = 0;
    for kind in ["field/faulty", "field/healthy", "corpus/faults"] {
        for folder in std::fs::read_dir(format!("{tests}/{kind}")).expect("systems") {
            for last in [true, false] {
                let mut captures = Captures::new();
                for file in std::fs::read_dir(folder.as_ref().expect("one").path()).expect("files")
                {
                    let bytes = std::fs::read(file.expect("a file").path()).expect("a file");
                    let text = greatest(&String::from_utf8_lossy(&bytes), last);
                    captures.read("a.txt", text.as_bytes(), None);
                }
                let advice = advise(&captures, &Facts::builtin());
                assert!(advice.findings.iter().all(|finding| finding.score.is_finite()));
                let facts = Facts::builtin();
                let _ = planner::report::trends::trends(&captures, &facts);
                let _ = planner::size::captured(&captures, &facts);
                let _ = planner::lpm::captured_paths(&captures);
                systems += 1;
            }
        }
    }
    assert!(systems > 500, "{systems}");
}
