//! The advice and the trends as they are shown.

use super::{Port, SHORT, VIRTUAL, captures, lsattr, timed};
use planner::advise::advise;
use planner::capture::At;
use planner::facts::Facts;
use planner::report::{self, Answer, advice::AdviceReport, html::html, text, trends::trends};

fn file() -> String {
    SHORT.text() + &lsattr("payroll", "fcs0", &[("num_cmd_elems", "200")])
}

#[test]
fn advice_reads_well_on_a_terminal() {
    let (text_of_file, facts) = (file(), Facts::builtin());
    let captures = captures(&[("payroll.txt", &text_of_file)]);
    let mut advice = advise(&captures, &facts);
    advice.not_checked.truncate(2);
    let line = |at: At| {
        text_of_file.lines().nth(usize::try_from(at.line).unwrap_or(1) - 1).map(str::to_owned)
    };
    let report = AdviceReport { advice: &advice, captures: &captures, line: Some(&line) };
    insta::assert_snapshot!(
        "advice",
        text::text(&report, &text::Options { width: 90, ..text::Options::default() })
    );
    insta::assert_snapshot!(
        "advice_explained",
        text::text(&report, &text::Options { width: 90, explain: true, colour: false })
    );
}

#[test]
fn the_three_forms_say_the_same() {
    let captures = captures(&[("<payroll>.txt", &file())]);
    let advice = advise(&captures, &Facts::builtin());
    let report = AdviceReport { advice: &advice, captures: &captures, line: None };
    let page = html(&report);
    let json: serde_json::Value =
        serde_json::from_str(&report::json(&report).expect("JSON")).expect("reads back");
    let command = "chdev -l fcs0 -a num_cmd_elems=2048 -P";
    assert!(
        page.contains(command)
            && page.contains("&lt;payroll&gt;.txt")
            && !page.contains("<payroll>")
    );
    assert_eq!(json["answer"]["findings"][0]["command"], command);
    assert_eq!(json["answer"]["findings"][0]["severity"], "warning");
    assert_eq!(json["files"][0], "<payroll>.txt");
    let explained =
        text::text(&report, &text::Options { explain: true, ..text::Options::default() });
    for finding in &advice.findings {
        for figure in &finding.figures {
            assert!(explained.contains(&figure.value()), "{figure}");
            assert!(figure.low.is_finite(), "{figure:?}");
        }
    }
}

#[test]
fn what_is_missing_is_grouped_by_what_to_capture() {
    let captures = captures(&[(
        "payroll.txt",
        &(VIRTUAL.text()
            + &lsattr("payroll", "fcs0", &[("num_cmd_elems", "200")])
            + &super::lsdev("viosa1", "vfchost0", &[("limit_intr", "false")])),
    )]);
    let advice = advise(&captures, &Facts::builtin());
    let report = AdviceReport { advice: &advice, captures: &captures, line: None };
    let options = text::Options { width: 160, ..text::Options::default() };
    let brief = text::text(&report, &options);
    let full = text::text(&report, &text::Options { explain: true, ..options });
    // One row for a command, with every rule that waits for it.
    let row = brief.lines().find(|line| line.contains("mq-too-many-queues")).expect("a row");
    assert!(row.contains("mq-too-few-queues") && row.contains("mq-shared-port"), "{row}");
    assert_eq!(brief.matches("Not checked").count(), 1, "{brief}");
    assert_eq!(full.matches("Not checked").count(), 1, "{full}");
    // Of bridges and pools there is nothing: one line, and no row.
    assert!(!brief.contains("sea-") && !brief.contains("ssp-"), "{brief}");
    assert!(brief.contains("--explain lists the commands"), "{brief}");
    assert!(brief.contains("shared Ethernet adapters, shared storage pools"), "{brief}");
    for not in &advice.not_checked {
        assert!(full.contains(not.rule), "{}", not.rule);
        assert!(not.missing.ends_with(&not.capture), "{not:?}");
    }
    assert!(brief.lines().count() < full.lines().count(), "{brief}");
    // The page and JSON have the whole list, once.
    assert_eq!(html(&report).matches("Not checked").count(), 1);
    assert!(html(&report).contains("ssp-full"));
}

#[test]
fn a_rule_that_waits_for_two_captures_says_of_what() {
    let bridge = |name| {
        super::lsdev(
            "viosa1",
            name,
            &[
                ("real_adapter", "ent0"),
                ("virt_adapters", "ent4"),
                ("pvid_adapter", "ent4"),
                ("pvid", "1"),
                ("jumbo_frames", "no"),
            ],
        )
    };
    let captures = captures(&[("a.txt", &(bridge("ent8") + &bridge("ent9")))]);
    let advice = advise(&captures, &Facts::builtin());
    let of: Vec<&str> = advice
        .not_checked
        .iter()
        .filter(|not| not.rule == "sea-thread")
        .map(|not| not.about.as_str())
        .collect();
    assert_eq!(of, ["ent8 on viosa1", "ent9 on viosa1"]);
}

#[test]
fn no_finding_is_said_in_so_many_words() {
    let captures = captures(&[("a.txt", &VIRTUAL.text())]);
    let advice = advise(&captures, &Facts::builtin());
    let report = AdviceReport { advice: &advice, captures: &captures, line: None };
    assert_eq!(
        report.summary(),
        "Nothing was found in what could be judged, in 1 report of 1 file; 1 judgement lacks a capture (see the coverage)."
    );
    // Only where every rule that applies was judged there is nothing to change.
    let whole = super::captures(&[(
        "a.txt",
        &lsattr("payroll", "fscsi0", &[("fc_err_recov", "fast_fail"), ("dyntrk", "yes")]),
    )]);
    let advice = advise(&whole, &Facts::builtin());
    let report = AdviceReport { advice: &advice, captures: &whole, line: None };
    assert_eq!(
        report.summary(),
        "Nothing to change: all 1 judgements that apply were made, in 2 reports of 1 file."
    );
    // A report that ends early may hide what would have been found.
    let mut cut = planner::capture::Captures::new();
    let text = VIRTUAL.text();
    cut.read("a.txt", &text.as_bytes()[..text.len() / 2], None);
    let advice = advise(&cut, &Facts::builtin());
    let report = AdviceReport { advice: &advice, captures: &cut, line: None };
    assert!(!report.summary().contains("Nothing to change"), "{}", report.summary());
    assert!(
        text::text(&report, &text::Options::default()).contains("Reports that may not be whole")
    );
}

#[test]
fn every_answer_ends_with_what_was_covered() {
    let captures = captures(&[("payroll.txt", &file())]);
    let advice = advise(&captures, &Facts::builtin());
    let report = AdviceReport { advice: &advice, captures: &captures, line: None };
    let brief = text::text(&report, &text::Options { width: 200, ..text::Options::default() });
    let coverage = &brief[brief.rfind("Coverage").expect("coverage")..];
    let row = coverage.lines().find(|line| line.contains("fcs0 on payroll")).expect("its row");
    assert!(row.contains("finding: fc-virtual-elements"), "{row}");
    for judged in &advice.coverage {
        let told = !judged.why.is_empty() && !judged.capture.is_empty();
        assert_eq!(told, judged.state == planner::advise::State::NotJudged, "{judged:?}");
    }
}

#[test]
fn what_was_read_is_shown_with_its_lines() {
    let captures = captures(&[("payroll.txt", &file())]);
    let model = planner::model::Model::of(&captures);
    let parsed = planner::report::parsed::Parsed { captures: &captures, model: &model };
    let shown = text::text(&parsed, &text::Options { width: 200, ..text::Options::default() });
    let line = |field: &str| {
        let row = shown.lines().find(|line| line.trim_start().starts_with(field));
        row.map(|row| row.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(line("resources.no_command").as_deref(), Some("resources.no_command 4419300 50"));
    assert_eq!(
        line("attributes.num_cmd_elems.value").as_deref(),
        Some("attributes.num_cmd_elems.value 200 63")
    );
    assert!(shown.contains("fcstat fcs0 on payroll"), "{shown}");
}

#[test]
fn markdown_holds_what_the_page_holds() {
    let captures = captures(&[("payroll.txt", &file())]);
    let advice = advise(&captures, &Facts::builtin());
    let report = AdviceReport { advice: &advice, captures: &captures, line: None };
    let text = planner::report::markdown::markdown(&report);
    for wanted in [
        "# Tuning advice",
        "chdev -l fcs0 -a num_cmd_elems=2048 -P",
        "## WARNING: Systems",
        "What to do first",
        "payroll.txt:50",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn trends_show_rates_before_and_after_a_change() {
    let set = |value| lsattr("payroll", "fcs0", &[("num_cmd_elems", value)]);
    let step = |at: u64, waits: u64| {
        Port { no_command: waits, ..SHORT.later(600 * at, 60_000 * at) }.text()
    };
    let files = [
        ("1.txt", step(0, 0) + &set("200"), 0),
        ("2.txt", step(1, 6000) + &set("200"), 600),
        ("3.txt", step(2, 12_000) + &set("2048"), 1200),
        ("4.txt", step(3, 12_000) + &set("2048"), 1800),
    ];
    let files: Vec<(&str, &str, u64)> =
        files.iter().map(|(name, text, at)| (*name, text.as_str(), *at)).collect();
    let trends = trends(&timed(&files), &Facts::builtin());
    assert_eq!(trends.changes.len(), 1);
    assert_eq!(
        (trends.changes[0].before.0.as_str(), trends.changes[0].after.0.as_str()),
        ("200", "2048")
    );
    let port = trends
        .things
        .iter()
        .find(|thing| thing.name == "fcstat fcs0 on payroll")
        .expect("the port");
    let waits = port
        .counters
        .iter()
        .find(|trend| trend.points.iter().any(|point| point.value == 10.0))
        .expect("the waits");
    assert_eq!((waits.before, waits.after), (Some(10.0), Some(0.0)), "{waits:?}");
    let shown = text::text(&trends, &text::Options { width: 120, ..text::Options::default() });
    insta::assert_snapshot!("trends", shown);
    let page = html(&trends);
    assert!(page.contains("<svg") && page.contains("num_cmd_elems=2048"));
}

/// What a change did to a disk: service times before and after it.
fn disk_over(before: &[f64], after: &[f64]) -> planner::report::trends::Trends {
    let one = |at: usize, service: f64| {
        let depth = if at < before.len() { "4" } else { "20" };
        lsattr("payroll", "hdisk4", &[("queue_depth", depth)])
            + &format!(
                "payroll:/> iostat -D\n\nSystem configuration: lcpu=8 drives=1 paths=2 vdisks=0\n\n\
                 hdisk4         xfer:  %tm_act      bps      tps      bread      bwrtn\n\
                 \x20                         40.0    20.5M   2500.0    16.4M       4.1M\n\
                 \x20              read:      rps  avgserv  minserv  maxserv   timeouts      fails\n\
                 \x20                       2000.0     {service:.1}      0.2     90.0           0          0\n"
            )
    };
    let texts: Vec<String> =
        before.iter().chain(after).enumerate().map(|(at, value)| one(at, *value)).collect();
    let names: Vec<String> = (0..texts.len()).map(|at| format!("{at}.txt")).collect();
    let files: Vec<(&str, &str, u64)> = (0..)
        .zip(names.iter().zip(&texts))
        .map(|(at, (name, text))| (name.as_str(), text.as_str(), 600 * at))
        .collect();
    trends(&timed(&files), &Facts::builtin())
}

#[test]
fn what_a_change_brought_is_held_against_the_noise() {
    use planner::report::trends::Effected;
    let verdict = |before: &[f64], after: &[f64]| {
        let trends = disk_over(before, after);
        let service = trends
            .things
            .iter()
            .flat_map(|thing| &thing.counters)
            .find(|trend| trend.name == "hdisk4 read service")
            .unwrap_or_else(|| panic!("{trends:?}"));
        assert_eq!(service.limit.as_ref().map(|limit| limit.value), Some(15.0));
        service.effect.expect("an effect").verdict
    };
    // The change is seen in the third capture, which still belongs to what was before.
    assert_eq!(verdict(&[20.0, 21.0], &[20.0, 8.0, 9.0, 8.5]), Effected::Better);
    assert_eq!(verdict(&[8.0, 9.0], &[8.0, 20.0, 21.0, 22.0]), Effected::Worse);
    assert_eq!(verdict(&[8.0, 20.0], &[14.0, 12.0, 19.0, 9.0]), Effected::Noise);
    assert_eq!(verdict(&[20.0, 21.0], &[20.0, 8.0]), Effected::Unsure, "one value");
    let better = disk_over(&[20.0, 21.0], &[20.0, 8.0, 9.0, 8.5]);
    let shown = text::text(&better, &text::Options { width: 140, ..text::Options::default() });
    assert!(
        shown.contains("OK What the last change brought") && shown.contains("better"),
        "{shown}"
    );
    assert!(shown.contains("slow from: 15"), "the threshold: {shown}");
    let marked = planner::report::markdown::markdown(&better);
    assert!(marked.contains("What the last change brought") && marked.contains("±"), "{marked}");
    let page = html(&better);
    assert!(page.contains("class=\"limit\"") && page.contains("class=\"multiples\""), "{page}");
}

#[test]
fn what_has_no_time_is_left_out_and_said_so() {
    let trends = trends(
        &captures(&[("a.txt", &SHORT.text()), ("b.txt", &SHORT.later(60, 10).text())]),
        &Facts::builtin(),
    );
    assert!(trends.things.is_empty());
    assert_eq!(trends.left_out, ["fcstat fcs0 on payroll: nothing says when it was captured"]);
}

/// Systems of one folder have clocks and changes of their own.
#[test]
fn systems_in_several_zones_are_each_compared_with_themselves() {
    let one = |host: &str, zone: &str, at: u64, depth: &str, service: f64| {
        format!(
            "{host}:/> date\nMon Jun  1 10:{at:02}:00 {zone} 2026\n\
             {host}:/> iostat -D\n\nSystem configuration: lcpu=8 drives=1 paths=2 vdisks=0\n\n\
             hdisk4         xfer:  %tm_act      bps      tps      bread      bwrtn\n\
             \x20                         40.0    20.5M   2500.0    16.4M       4.1M\n\
             \x20              read:      rps  avgserv  minserv  maxserv   timeouts      fails\n\
             \x20                       2000.0     {service:.1}      0.2     90.0           0          0\n"
        ) + &lsattr(host, "hdisk4", &[("queue_depth", depth)])
    };
    let texts: Vec<String> = (0..5)
        .flat_map(|at| {
            let depth = |changed: u64| if at < changed { "4" } else { "20" };
            [
                one("berlin", "CET", 10 * at, depth(2), if at < 3 { 20.0 } else { 8.0 }),
                one("boston", "EST", 10 * at + 5, depth(9), 3.0 + at as f64),
            ]
        })
        .collect();
    let names: Vec<String> = (0..texts.len()).map(|at| format!("{at}.txt")).collect();
    let files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let trends = trends(&captures(&files), &Facts::builtin());
    assert_eq!(trends.left_out, [] as [&str; 0]);
    assert_eq!(trends.changes.len(), 1, "{:?}", trends.changes);
    let service = |host: &str| {
        let thing = trends.things.iter().find(|thing| thing.name.ends_with(host)).expect(host);
        thing.counters.iter().find(|trend| trend.name == "hdisk4 read service").expect("it").clone()
    };
    assert_eq!(service("berlin").after, Some(8.0));
    assert_eq!(service("boston").after, None, "nothing was changed there");
}
