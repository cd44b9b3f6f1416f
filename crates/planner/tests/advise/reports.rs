//! The advice and the trends as they are shown.

use super::{Port, SHORT, VIRTUAL, advice, captures, lsattr, timed};
use planner::advise::advise;
use planner::capture::{At, Captures};
use planner::facts::Facts;
use planner::report::{
    self, Answer,
    advice::{AdviceReport, WithTrends},
    html::html,
    text,
    trends::trends,
};

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
    let report = AdviceReport {
        advice: &advice,
        captures: &captures,
        line: Some(&line),
        every_object: false,
    };
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
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
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
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
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
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
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
    let report =
        AdviceReport { advice: &advice, captures: &whole, line: None, every_object: false };
    assert_eq!(
        report.summary(),
        "Nothing to change: all 1 judgements that apply were made, in 2 reports of 1 file."
    );
    // A report that ends early may hide what would have been found.
    let mut cut = planner::capture::Captures::new();
    let text = VIRTUAL.text();
    cut.read("a.txt", &text.as_bytes()[..text.len() / 2], None);
    let advice = advise(&cut, &Facts::builtin());
    let report = AdviceReport { advice: &advice, captures: &cut, line: None, every_object: false };
    assert!(!report.summary().contains("Nothing to change"), "{}", report.summary());
    assert!(
        text::text(&report, &text::Options::default()).contains("Reports that may not be whole")
    );
}

#[test]
fn every_answer_ends_with_what_was_covered() {
    let captures = captures(&[("payroll.txt", &file())]);
    let advice = advise(&captures, &Facts::builtin());
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
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
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
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

#[test]
fn fewer_waits_after_a_change_are_better() {
    let set = |value| lsattr("payroll", "fcs0", &[("num_cmd_elems", value)]);
    let waits = [0, 6000, 12_600, 18_000, 24_000, 24_000, 24_060, 24_060];
    let step = |at: usize| {
        let passed = 600 * u64::try_from(at).unwrap();
        let port = Port { no_command: waits[at], ..SHORT.later(passed, 100 * passed) };
        let value = if at < 4 { "200" } else { "2048" };
        (format!("{at}.txt"), port.text() + &set(value), passed)
    };
    let files: Vec<(String, String, u64)> = (0..waits.len()).map(step).collect();
    let files: Vec<(&str, &str, u64)> =
        files.iter().map(|(name, text, at)| (name.as_str(), text.as_str(), *at)).collect();
    let trends = trends(&timed(&files), &Facts::builtin());
    let mut all = trends.things.iter().flat_map(|thing| &thing.counters);
    let waits = all.find(|trend| trend.name == "no_command").expect("the waits");
    let brought = waits.effect.expect("an effect");
    assert_eq!(brought.verdict, planner::report::trends::Effected::Better, "{brought:?}");
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
    // The change is seen in the third capture, whose value is one of after it.
    assert_eq!(verdict(&[20.0, 21.0], &[20.0, 8.0, 9.0, 8.5]), Effected::Better);
    assert_eq!(verdict(&[8.0, 9.0], &[8.0, 20.0, 21.0, 22.0]), Effected::Worse);
    assert_eq!(verdict(&[8.0, 20.0], &[14.0, 12.0, 19.0, 9.0]), Effected::Noise);
    assert_eq!(verdict(&[20.0], &[20.0, 8.0]), Effected::Unsure, "one value");
    assert_eq!(
        verdict(&[20.0, 21.0], &[8.0, 8.2]),
        Effected::Better,
        "two on each side are enough"
    );
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

/// The page of an advice has what its captures show over time, and no more drawings than one looks at.
#[test]
fn the_page_of_an_advice_shows_what_its_captures_show_over_time() {
    let captures = Captures::new();
    let advice = advise(&captures, &Facts::builtin());
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
    let mut over_time = disk_over(&[20.0, 21.0], &[20.0, 8.0, 9.0, 8.5]);
    let with = |trends: &_| html(&WithTrends { report: &report, trends });
    let page = with(&over_time);
    for wanted in
        ["What was changed", "What the last change brought", "Over time", "class=\"limit\""]
    {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    assert_eq!(page.matches("<svg").count(), 1);
    assert!(page.find("Over time") < page.find("Not checked"));
    over_time.things = vec![over_time.things[0].clone(); 30];
    let page = with(&over_time);
    assert_eq!(page.matches("<svg").count(), 24);
    assert!(page.contains("6 more are not drawn here."));
    let nothing = with(&planner::report::trends::Trends::default());
    assert_eq!(nothing, html(&report));
}

#[test]
fn the_first_page_has_the_worst_first_and_the_tasks_before_many_systems() {
    let system = |name: &'static str, waits: u64| {
        Port { system: name, no_command: waits, ..SHORT }.text()
            + &lsattr(name, "fcs0", &[("num_cmd_elems", "200")])
    };
    let names = ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "z9"];
    let texts = names.map(|name| (name, system(name, if name == "z9" { 4_419_300 } else { 0 })));
    let page = |count: usize| {
        let last = &texts[names.len() - count..];
        let files: Vec<(&str, &str)> =
            last.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let (advice, captures) = (advice(&files), captures(&files));
        html(&AdviceReport {
            advice: &advice,
            captures: &captures,
            line: None,
            every_object: false,
        })
    };
    let place = |page: &str, what: &str| page.find(what).unwrap_or_else(|| panic!("no {what}"));
    let (few, many) = (page(2), page(9));
    assert!(place(&few, "Systems</h2>") < place(&few, "What to do first"));
    assert!(place(&many, "What to do first") < place(&many, "Systems</h2>"));
    assert!(place(&many, "<td class=\"\">z9") < place(&many, "<td class=\"\">a1"), "worst first");
    assert!(many.contains("id=\"front\"") && many.contains("#front:not(:last-child)"));
}

/// Lists of attributes that a loop prints without the names of their devices were read and are judged by nobody.
#[test]
fn attributes_of_an_unknown_device_leave_something_open() {
    let list = |interval: u32, policy: &str| {
        format!(
            "hcheck_interval {interval} Health Check Interval True+\nreserve_policy {policy} Reserve Policy True+\nqueue_depth 20 Queue DEPTH True+\n"
        )
    };
    let text = format!(
        "app9:/ # for d in hdisk4 hdisk5; do lsattr -El $d; done\n{}{}app9:/ # lspath\nEnabled hdisk4 sas0\nEnabled hdisk4 sas1\n",
        list(0, "single_path"),
        list(60, "no_reserve")
    );
    let captures = captures(&[("app9.txt", &text)]);
    let advice = advise(&captures, &Facts::builtin());
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
    let shown = text::text(&report, &text::Options { width: 900, ..text::Options::default() });
    assert!(!shown.contains("Nothing to change") && !shown.contains("0 judgements"), "{shown}");
    assert!(shown.contains("2 reports are not whole."), "{shown}");
    assert!(shown.contains("which device it is of"), "{shown}");
}

/// A log of paths that failed says nothing of how they are now, and a system with it is not healthy for that.
#[test]
fn paths_that_failed_by_the_log_alone_are_not_judged() {
    let log = |last: &str| {
        let mut log = "app9:/ # date\nThu Jan  7 10:00:00 CET 2027\napp9:/ # errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n".to_owned();
        log += last;
        log + "DE3B8540   0107091227 P H hdisk4         PATH HAS FAILED\n"
    };
    let lacking = |text: &str| {
        let captures = captures(&[("app9.txt", text)]);
        let advice = advise(&captures, &Facts::builtin());
        let mut rules = advice.not_checked.iter().filter(|of| of.rule == "disk-paths-failed");
        rules.any(|of| of.capture.contains("lspath on app9"))
    };
    assert!(lacking(&log("")));
    assert!(!lacking(&log("F31FFAC3   0107093027 I H hdisk4         PATH HAS RECOVERED\n")));
    // A failure of long ago is none of today.
    assert!(!lacking(&log("").replace("0107091227", "0102091227")));
}

/// Disks and dedicated processors have a course, too, though nothing else is in the file; disks in several sections are added up.
#[test]
fn a_file_of_nmon_with_disks_and_processors_alone_has_a_course() {
    let mut nmon = "AAA,progname,topas_nmon\nAAA,host,app3\nCPU_ALL,CPU Total app3,User%,Sys%,Wait%,Idle%,Busy,PhysicalCPUs\nDISKREAD,Disk Read KB/s app3,hdisk0,hdiskpower0\nDISKREAD1,Disk Read KB/s app3,hdisk300\nDISKXFER,Disk transfers per second app3,hdisk0\nDISKSERV,Disk Service Time msec/xfer app3,hdisk0\n".to_owned();
    for (tag, clock, busy) in [("T0001", "10:00:00", 20), ("T0002", "10:05:00", 95)] {
        nmon += &format!(
            "ZZZZ,{tag},{clock},07-JAN-2027\nCPU_ALL,{tag},{busy}.0,2.0,1.5,1.5,,4\nDISKREAD,{tag},100.5,100.5\nDISKREAD1,{tag},{busy}.0\nDISKXFER,{tag},12.0\nDISKSERV,{tag},{busy}.5\n"
        );
    }
    let trends = trends(&captures(&[("app3.nmon", &nmon)]), &Facts::builtin());
    let told = |name: &str| {
        let thing = trends.things.iter().find(|thing| thing.name == "nmon on app3").unwrap();
        let trend = thing.counters.iter().find(|trend| trend.name == name).unwrap();
        let values: Vec<f64> = trend.points.iter().map(|point| point.value).collect();
        (values, trend.limit.as_ref().map(|limit| limit.value))
    };
    assert_eq!(told("processors busy"), (vec![22.0, 97.0], Some(90.0)));
    assert_eq!(told("processors wait for disks"), (vec![1.5, 1.5], None));
    assert_eq!(told("all disks read"), (vec![120.5, 195.5], None));
    assert_eq!(told("all disks requests"), (vec![12.0, 12.0], None));
    assert_eq!(told("hdisk0 service"), (vec![20.5, 95.5], Some(15.0)));
}

/// A file of nmon has a course of its own, and so has an error log.
#[test]
fn one_file_of_nmon_and_one_error_log_have_a_course() {
    let row = |at: usize, used: f64, paged: u64| {
        format!(
            "ZZZZ,T{at:04},10:{:02}:01,12-NOV-2026\nLPAR,T{at:04},{used},2,1.00,0\nPAGE,T{at:04},{paged},{paged}\nFCREAD,T{at:04},20480.0\n",
            5 * at
        )
    };
    let nmon = "AAA,progname,nmon_aix\nAAA,host,vios7\nLPAR,Logical Partition vios7,PhysicalCPU,virtualCPUs,entitled,Capped\nPAGE,Paging vios7,pgsin,pgsout\nFCREAD,Fibre Channel Read KB/s,fcs0\n"
        .to_owned()
        + &row(1, 0.4, 0)
        + &row(2, 0.9, 30)
        + &row(3, 1.2, 45);
    let entry = |time: &str, kind: &str| {
        format!("{kind}\t{time} P H fcs0           LINK ERROR\n").replace('\t', "   ")
    };
    let log = "vios7:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n".to_owned()
        + &entry("1112113026", "7BFEEA1F")
        + &entry("1112113126", "7BFEEA1F")
        + &entry("1112090026", "7BFEEA1F")
        + "A6DF45AA   1112093026 I O RMCdaemon      The daemon is started.\n";
    let trends = trends(&captures(&[("a.nmon", &nmon), ("b.txt", &log)]), &Facts::builtin());
    let told = |thing: &str, trend: &str| -> (usize, Vec<f64>, Option<f64>) {
        let thing = trends.things.iter().find(|one| one.name == thing).expect("the course");
        let trend = thing.counters.iter().find(|one| one.name == trend).expect("the value");
        let points = trend.points.iter().map(|point| point.value).collect();
        (thing.captures, points, trend.limit.as_ref().map(|limit| limit.value))
    };
    let of_nmon = |trend| told("nmon on vios7", trend);
    assert_eq!(of_nmon("processors used"), (3, vec![0.4, 0.9, 1.2], Some(1.0)));
    assert_eq!(of_nmon("entitlement used"), (3, vec![40.0, 90.0, 120.0], Some(100.0)));
    assert_eq!(of_nmon("pages to and from paging space").1, [0.0, 60.0, 90.0]);
    assert_eq!(of_nmon("fcs0 read").1, [20480.0; 3]);
    let errors = told("errpt on vios7", "fcs0 LINK ERROR");
    assert_eq!(errors, (3, vec![1.0, 0.0, 2.0], None), "by the hour, without what only informs");
    let shown = text::text(&trends, &text::Options { width: 120, ..text::Options::default() });
    assert!(shown.contains("nmon on vios7: 3 intervals over 10 min"), "{shown}");
    assert!(shown.contains("errpt on vios7: 3 hours over 2 h"), "{shown}");
    assert!(html(&trends).contains("short of processors from"));
}

#[test]
fn captures_of_one_moment_are_no_course() {
    let run = "vios7:/> lparstat 1 1\n\nSystem configuration: type=Shared mode=Uncapped smt=4 lcpu=8 mem=4096MB psize=16 ent=1.00 \n\n%user  %sys  %wait  %idle physc %entc  lbusy  vcsw phint\n----- ----- ------ ------ ----- ----- ------ ----- -----\n 10.0  20.0    0.0   70.0  0.36  36.0    4.0   300     1 \n";
    let trends = trends(&timed(&[("a.txt", run, 50), ("b.txt", run, 50)]), &Facts::builtin());
    assert_eq!(trends.things, []);
    assert_eq!(
        trends.left_out,
        ["lparstat on vios7: all its captures have one time; put date before each"]
    );
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

/// `date` in one file, and in the others nothing but the file's time.
#[test]
fn a_capture_by_another_clock_is_left_out_with_what_to_do() {
    let port = |seconds: u64| SHORT.later(seconds, 10).text();
    let dated = format!("payroll:/> date\nMon Jun  1 10:00:00 CET 2026\n{}", port(90));
    let [one, two] = [port(0), port(60)];
    let files = [("a.txt", one.as_str(), 0), ("b.txt", &two, 60), ("c.txt", &dated, 90)];
    let trends = trends(&timed(&files), &Facts::builtin());
    let [said] = &trends.left_out[..] else { panic!("{:?}", trends.left_out) };
    for part in [
        "fcstat fcs0 on payroll, in c.txt: its time is by a `date` in CET",
        "that of most captures of payroll by UTC",
        "Put `date -u` before each capture",
    ] {
        assert!(said.contains(part), "{said}");
    }
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
                one("berlin", "CET", 10 * at, depth(2), if at < 2 { 20.0 } else { 8.0 }),
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

/// A compressed file that lost its end may have lost a finding.
#[test]
fn a_damaged_file_is_never_nothing_to_change() {
    let text = "aix7:/> lspath\nEnabled hdisk0 fscsi0\nEnabled hdisk0 fscsi1\n".repeat(40);
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    packed.extend(miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 1));
    let said = |bytes: &[u8]| {
        let mut captures = planner::capture::Captures::new();
        captures.read("a.gz", bytes, None);
        let advice = advise(&captures, &Facts::builtin());
        let report =
            AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
        text::text(&report, &text::Options { width: 200, ..text::Options::default() })
    };
    assert!(!said(&packed).contains("damaged"));
    let cut = said(&packed[..packed.len() - 8]);
    assert!(cut.contains("Reports that may not be whole") && cut.contains("a.gz: is compressed"));
    assert!(!cut.contains("Nothing to change"), "{cut}");
}
