//! What several systems or several days have in common is one thing.

use super::{advice, captures, silent};
use planner::facts::Facts;
use planner::model::Model;
use planner::report::advice::AdviceReport;
use planner::report::text::{Options, text};
use planner::report::trends::{Trends, trends};

fn memory(day: u32, system: &str, of_third: u32) -> String {
    format!(
        "hscroot@hmc1:~> date\nMon Nov {day} 09:00:00 UTC 2026\n\
         hscroot@hmc1:~> lshwres -r mem -m {system} --level lpar -F lpar_name,lpar_id,curr_mem\n\
         vios1,1,8192\naixdb1,3,{of_third}\n"
    )
}

/// Object, attribute and values of each change.
fn changes(trends: &Trends) -> Vec<(&str, &str, &str, &str)> {
    let all = trends.changes.iter();
    all.map(|one| (&*one.object, &*one.attribute, &*one.before.0, &*one.after.0)).collect()
}

#[test]
fn lists_of_one_managed_system_meet_over_days() {
    let (one, two) = (memory(23, "S924A", 65_536), memory(24, "S924A", 98_304));
    let captures = captures(&[("a.txt", &one), ("b.txt", &two)]);
    let model = Model::of(&captures);
    assert_eq!(model.owner(0), model.owner(1));
    let trends = trends(&captures, &Facts::builtin());
    assert_eq!(changes(&trends), [("partition 3 on S924A", "curr_mem", "65536", "98304")]);
}

#[test]
fn a_managed_system_is_known_by_its_serial_number() {
    let one = memory(23, "Server-9009-42A-SN78A1B2C", 65_536);
    let two = memory(24, "9009-42A*78A1B2C", 98_304);
    let uname = "aixdb1:/> uname -L\n3 aixdb1\naixdb1:/> lsattr -El sys0 -a systemid\nsystemid IBM,0278A1B2C Hardware system identifier False\n";
    let captures = captures(&[("a.txt", &one), ("b.txt", &two), ("c.txt", uname)]);
    let model = Model::of(&captures);
    assert_eq!(model.owner(0), model.owner(1));
    let aix = model.systems.iter().filter(|system| system.partition_id == Some(3));
    assert_eq!(aix.map(|system| system.name()).collect::<Vec<_>>(), [Some("aixdb1")]);
}

#[test]
fn lists_of_two_managed_systems_stand_apart() {
    let one = memory(23, "Server-9009-42A-SN78A1B2C", 65_536);
    let two = memory(24, "Server-9009-42A-SN78A1B2D", 98_304);
    let captures = captures(&[("a.txt", &one), ("b.txt", &two)]);
    let model = Model::of(&captures);
    assert_ne!(model.owner(0), model.owner(1));
    assert_eq!(changes(&trends(&captures, &Facts::builtin())), []);
}

#[test]
fn a_level_that_changed_is_told_and_has_its_own_command() {
    let day = |day: u32, level: &str| {
        format!("aixdb1:/> date\nMon Nov {day} 09:00:00 UTC 2026\naixdb1:/> oslevel -s\n{level}\n")
    };
    let (one, two) = (day(23, "7200-05-03-2148"), day(24, "7200-05-04-2220"));
    let captures = captures(&[("a.txt", &one), ("b.txt", &two)]);
    assert_eq!(captures.reports[0].command(), "oslevel -s");
    let trends = trends(&captures, &Facts::builtin());
    assert_eq!(changes(&trends), [("aixdb1", "level", "7200-05-03-2148", "7200-05-04-2220")]);
}

fn paths(host: &str, disk: &str, failed: &str) -> String {
    let row = |adapter: &str, port: &str| {
        let state = if port == failed { "Failed" } else { "Enabled" };
        format!("{state} {disk} {adapter} {port},1000000000000\n")
    };
    let rows: String = ["fscsi0", "fscsi1"]
        .iter()
        .flat_map(|adapter| ["500507680c210001", "500507680c210002"].map(|port| row(adapter, port)))
        .collect();
    format!("{host}:/> lspath -F \"status name parent connection\"\n{rows}")
}

#[test]
fn a_storage_port_that_two_systems_lost_is_one_finding() {
    let (one, two) =
        (paths("aix1", "hdisk1", "500507680c210002"), paths("aix2", "hdisk4", "500507680c210002"));
    let advice = advice(&[("a.txt", &one), ("b.txt", &two)]);
    let [found] = &advice.findings[..] else { panic!("{:?}", advice.findings) };
    assert_eq!((found.rule, found.object.as_str()), ("disk-paths-failed", "aix1 and aix2"));
    assert!(found.title.contains("500507680c210002"), "{}", found.title);
    assert_eq!(found.evidence.len(), 4);
}

/// What an answer on many systems says of each is what the first of them say.
#[test]
fn a_terminal_gets_the_first_findings_of_a_rule_and_the_rest_counted() {
    let lists: Vec<(String, String)> = (0..30)
        .map(|at| {
            let text = format!("aix{at}:/> lspath\nEnabled hdisk1 fscsi0\nFailed hdisk1 fscsi1\n");
            (format!("{at}.txt"), text)
        })
        .collect();
    let files: Vec<(&str, &str)> =
        lists.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let (captures, advice) = (captures(&files), advice(&files));
    assert_eq!(advice.findings.len(), 30);
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
    let told = |explain| {
        let text = text(&report, &Options { explain, ..Options::default() });
        let number =
            |line: &str| line.strip_prefix("CRITICAL ").and_then(|rest| rest.chars().next());
        let told = text.lines().filter_map(number).filter(|first| first.is_ascii_digit()).count();
        (told, text.contains("More of the same"))
    };
    assert_eq!(told(false), (20, true));
    assert_eq!(told(true), (30, false));
}

#[test]
fn two_storage_ports_of_two_systems_are_two_findings() {
    let (one, two) =
        (paths("aix1", "hdisk1", "500507680c210001"), paths("aix2", "hdisk4", "500507680c210002"));
    assert_eq!(advice(&[("a.txt", &one), ("b.txt", &two)]).findings.len(), 2);
}

#[test]
fn a_terminal_gets_the_beginning_of_a_long_list() {
    let one = "aix1:/> lsattr -Dl hdisk1\nqueue_depth 20 Queue DEPTH True\n\n";
    let mut captures = planner::capture::Captures::new();
    captures.read("a.txt", one.repeat(60).as_bytes(), None);
    assert_eq!(captures.refused.len(), 60);
    let advice = planner::advise::advise(&captures, &Facts::builtin());
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
    let rows = |explain| {
        let text = text(&report, &Options { explain, ..Options::default() });
        let rows = text.lines().filter(|line| line.contains("lsattr -Dl hdisk1")).count();
        (rows, text.contains("20 more: "))
    };
    assert_eq!(rows(false), (40, true));
    assert_eq!(rows(true), (60, false));
}

/// Counters that are younger and less in the later capture were reset between: nothing grew. One file has the time without a
/// zone, and all of them a host's name before it.
#[test]
fn counters_that_fall_after_a_boot_have_not_grown() {
    let capture = |first: &str, date: &str, age: u32, crcs: u32| {
        format!(
            "{first}# odin1 {date}\n# fcstat fcs0\n\nFIBRE CHANNEL STATISTICS REPORT: fcs0\n\nDevice Type: FC Adapter (adapter/pciex/df1000e21410f103)\n\nSeconds Since Last Reset: {age}\n\nError Frames:  0\nLink Failure Count: 0\nInvalid Tx Word Count: 0\nInvalid CRC Count: {crcs}\n\nFC SCSI Traffic Statistics\n  Input Requests:   {age}\n  Output Requests:  {age}\n"
        )
    };
    let files = [
        capture("", "Fri Nov 20 06:00:00 CET 2026", 31_101_220, 9),
        capture(
            "Script started on Tue Nov 24 06:00:00 2026\n",
            "Tue Nov 24 06:00:00 CET 2026",
            210_113,
            0,
        ),
        capture("", "Thu Nov 26 06:00:00 CET 2026", 382_913, 0),
    ];
    silent(&[("a.txt", &files[0]), ("b.txt", &files[1]), ("c.txt", &files[2])]);
}
