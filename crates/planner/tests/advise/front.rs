//! The first page and the tables of a page: nothing is said twice.

use planner::advise::advise;
use planner::capture::Captures;
use planner::facts::Facts;
use planner::report::{Answer, Block, Detail, advice::AdviceReport, html::html};
use std::collections::BTreeSet;
use std::path::Path;

fn faulty(folder: &str, files: &[&str]) -> Captures {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/field/faulty").join(folder);
    let mut captures = Captures::new();
    for name in files {
        captures.read(name, &std::fs::read(folder.join(name)).expect("a capture"), None);
    }
    captures
}

/// Two bridges whose control channels are on different VLANs: neither hears the other, both are primary, and the VLAN is
/// what is to be mended.
fn bridges_apart() -> Captures {
    faulty("108-control-channels-of-two-vlans", &["1-bernvio1.txt", "2-bernvio2.txt"])
}

#[test]
fn control_channels_apart_are_one_finding() {
    let findings = advise(&bridges_apart(), &Facts::builtin()).findings;
    let said: Vec<_> = findings.iter().map(|one| (one.rule, one.title.as_str())).collect();
    assert_eq!(said, [("sea-control-channel", "the control channels are on VLAN 98 and VLAN 99")]);
}

/// Each of a pair counts every change of the primary.
#[test]
fn a_primary_that_changes_again_and_again_is_one_finding() {
    let files = ["lulvio1-0.txt", "lulvio1-1.txt", "lulvio2-0.txt", "lulvio2-1.txt"];
    let advice = advise(&faulty("62-failover-back-and-forth", &files), &Facts::builtin());
    let said: Vec<_> = advice
        .findings
        .iter()
        .map(|one| (one.rule, one.object.as_str(), one.evidence.len()))
        .collect();
    assert_eq!(said, [("sea-failover", "ent8 on lulvio1 and ent8 on lulvio2", 4)]);
    for name in ["lulvio1", "lulvio2"] {
        let system = advice.systems.iter().find(|system| system.name == name).expect(name);
        assert_eq!(system.warnings, 1, "{name}");
    }
    let one = advise(&faulty("62-failover-back-and-forth", &files[..2]), &Facts::builtin());
    assert_eq!(one.findings[0].object, "ent8 on lulvio1");
}

/// Two ports of two servers that wait for the same slow device: one place to look.
#[test]
fn what_is_mended_in_one_place_is_one_thing_to_do() {
    let files = ["vio1-1.txt", "vio1-2.txt", "vio2-1.txt", "vio2-2.txt"];
    let captures = faulty("83-slow-drain-seen-from-two-servers", &files);
    let advice = advise(&captures, &Facts::builtin());
    assert_eq!(advice.findings.len(), 2);
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
    let sections = report.sections();
    let first = sections.iter().find(|section| section.heading == "What to do first");
    let blocks = &first.expect("a first page").blocks;
    assert_eq!(blocks.len(), 1, "{blocks:?}");
    assert!(format!("{blocks:?}").contains("Also fcs0 on aarvio"), "{blocks:?}");
}

#[test]
fn the_depth_of_a_pools_luns_is_one_finding() {
    let files = ["1-nicssp1.txt", "2-nicssp2.txt", "3-nicl07.txt"];
    let captures = faulty("107-depth-of-one-node-of-a-pool", &files);
    let findings = advise(&captures, &Facts::builtin()).findings;
    let rules: Vec<&str> = findings.iter().map(|one| one.rule).collect();
    assert_eq!(rules, ["ssp-depth"]);
}

#[test]
fn what_is_about_two_systems_counts_for_both() {
    let advice = advise(&bridges_apart(), &Facts::builtin());
    for name in ["bernvio1", "bernvio2"] {
        let system = advice.systems.iter().find(|system| system.name == name).expect(name);
        let of = advice.findings.iter().filter(|finding| finding.object.contains(name)).count();
        assert_eq!(system.critical + system.warnings + system.notes, of, "{name}");
    }
}

#[test]
fn what_is_to_be_done_first_is_said_once() {
    let captures = faulty("61-depth-eight-everywhere", &["DlRT.txt", "sunvio1.txt", "sunvio2.txt"]);
    let advice = advise(&captures, &Facts::builtin());
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
    let sections = report.sections();
    let first = sections.iter().find(|section| section.heading == "What to do first");
    let said: Vec<String> =
        first.expect("a first page").blocks.iter().map(|block| format!("{block:?}")).collect();
    let rules: BTreeSet<&str> = advice.findings.iter().map(|finding| finding.rule).collect();
    assert!(advice.findings.len() > rules.len());
    assert_eq!(said.len(), rules.len().min(3), "{said:#?}");
    assert!(said[0].contains("Also hdisk2 on sundb"), "{said:#?}");
}

#[test]
fn the_tables_of_a_page_say_once_what_is_the_same() {
    let captures = bridges_apart();
    let advice = advise(&captures, &Facts::builtin());
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
    let mut tables = 0;
    for section in report.sections().into_iter().filter(|one| one.detail == Detail::Full) {
        // The column of what is gathered in a row: the captures, the rules.
        let gathered = ["Not checked", "Coverage"].contains(&section.heading.as_str());
        for block in &section.blocks {
            let Block::Table(table) = block else { continue };
            if !gathered {
                continue;
            }
            tables += 1;
            let mut seen = BTreeSet::new();
            for row in &table.rows {
                let mut row = row.clone();
                row.remove(2);
                assert!(seen.insert(row.clone()), "{}: twice {row:?}", section.heading);
            }
        }
    }
    assert!(tables > 3, "{tables}");
    let page = html(&report);
    for judged in &advice.coverage {
        assert!(page.contains(judged.rule), "{}", judged.rule);
    }
}

/// Of a folder of ten systems a terminal gets the coverage by system, and by object where that is asked for.
#[test]
fn the_coverage_of_many_systems_is_a_row_for_each() {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/field/faulty");
    let mut captures = Captures::new();
    let mut folders: Vec<_> = all.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders.iter().filter(|folder| {
        ["07", "08", "10", "26", "45", "46", "61"]
            .iter()
            .any(|number| folder.file_name().unwrap().to_string_lossy().starts_with(number))
    }) {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "txt") {
                let name = path.strip_prefix(&all).unwrap().display().to_string();
                captures.read(&name, &std::fs::read(&path).unwrap(), None);
            }
        }
    }
    let advice = advise(&captures, &Facts::builtin());
    let objects: BTreeSet<&str> = advice.coverage.iter().map(|one| one.object.as_str()).collect();
    let systems: BTreeSet<&str> = advice.coverage.iter().map(|one| one.system.as_str()).collect();
    assert!(systems.len() >= 10 && objects.len() > 100, "{} of {}", objects.len(), systems.len());
    let coverage = |every_object| {
        let report =
            AdviceReport { advice: &advice, captures: &captures, line: None, every_object };
        let of = |section: &planner::report::Section| {
            section.heading == "Coverage" && section.detail == Detail::Brief
        };
        let sections: Vec<_> = report.sections().into_iter().filter(of).collect();
        let [section] = &sections[..] else { panic!("{sections:?}") };
        let Some(Block::Table(table)) = section.blocks.first() else { panic!("{section:?}") };
        table.rows.clone()
    };
    let rows = coverage(false);
    assert_eq!(rows.iter().map(|row| row[0].as_str()).collect::<BTreeSet<_>>(), systems);
    assert_eq!(rows.len(), systems.len());
    // Every object is counted once.
    let counted = |row: &Vec<String>| -> usize {
        row[1..5].iter().map(|cell| cell.parse::<usize>().unwrap_or(0)).sum()
    };
    assert_eq!(rows.iter().map(counted).sum::<usize>(), objects.len());
    let named = |row: &&Vec<String>| row[5].contains(" and ") && row[5].contains("more");
    assert!(rows.iter().filter(named).count() > 0, "commands are bounded: {rows:#?}");
    assert_eq!(coverage(true).len(), objects.len());
}

/// The map is drawn: a box for each thing, however many ways lead through it, in the colour of what was found of it.
#[test]
fn the_map_is_drawn_with_what_was_found() {
    let page = |count: u32| {
        let names: Vec<String> = (0..count).map(|at| format!("vfchost{at}")).collect();
        let map = |(at, name)| (name, 10 + at, "db", "fcs0", "fcs0", 0);
        let maps: Vec<_> = (0..count).zip(names.iter().map(String::as_str)).map(map).collect();
        let ports = "vios1:/> lsnports\nname             physloc                        fabric tports aports swwpns  awwpns\nfcs0             U78D3.001.WZS0ABC-P1-C4-T1          0     64     62   2048    2044\n";
        let captures = super::captures(&[("a.txt", &(super::npiv("vios1", &maps) + ports))]);
        let advice = advise(&captures, &Facts::builtin());
        assert_eq!(advice.findings.first().map(|first| first.rule), Some("fc-port-logged-out"));
        html(&AdviceReport {
            advice: &advice,
            captures: &captures,
            line: None,
            every_object: false,
        })
    };
    let few = page(6);
    assert_eq!(few.matches("<svg class=\"ways\"").count(), 1);
    assert_eq!(few.matches("<title>vios1 fcs0</title>").count(), 1, "one box for all ways");
    let of_port = few
        .split("<title>vios1 fcs0</title>")
        .next()
        .and_then(|before| before.rsplit("<rect").next());
    assert!(of_port.is_some_and(|of| of.contains("critical")), "{of_port:?}");
    assert!(few.contains("<title>no fabric</title>"));
    assert_eq!(few.matches("class=\"way critical\"").count(), 6 + 6 + 1);
    // Two ports of which each has a fabric: whether it is the same one is not known.
    let ports = "vios1:/> lsnports\nname             physloc                        fabric tports aports swwpns  awwpns\nfcs0             U78D3.001.WZS0ABC-P1-C4-T1          1     64     62   2048    2044\nfcs1             U78D3.001.WZS0ABC-P1-C4-T2          1     64     62   2048    2044\n";
    let maps = super::npiv(
        "vios1",
        &[("vfchost0", 10, "db", "fcs0", "fcs0", 3), ("vfchost1", 10, "db", "fcs1", "fcs1", 3)],
    );
    let maps = maps.replacen(
        "FC name:fcs1                    FC loc code:U78D3.001.WZS0ABC-P1-C4-T1",
        "FC name:fcs1                    FC loc code:U78D3.001.WZS0ABC-P1-C4-T2",
        1,
    );
    let captures = super::captures(&[("a.txt", &(maps + ports))]);
    let advice = advise(&captures, &Facts::builtin());
    let report =
        AdviceReport { advice: &advice, captures: &captures, line: None, every_object: false };
    assert_eq!(html(&report).matches("<title>fabric</title>").count(), 2);
    // What no drawing can show stands in the table.
    let many = page(60);
    assert!(!many.contains("<svg class=\"ways\"") && many.contains("vfchost59"));
}
