//! Values that are set and not in force: `chdev -P` without a restart, `lsattr -P` beside `lsattr -E`, and defaults.

use super::{PHYSICAL, Port, SHORT, advice, lsattr, lsdev, npiv, top};
use planner::advise::Finding;

fn set(value: &str) -> String {
    lsattr("payroll", "fcs0", &[("num_cmd_elems", value), ("max_xfer_size", "0x100000")])
}

/// The same list by another flag: `-Pl`, `-Dl`.
fn by(flag: &str, value: &str) -> String {
    let list = set(value);
    assert!(list.contains("lsattr -El "), "{list}");
    list.replace("lsattr -El ", &format!("lsattr {flag} "))
}

fn first(parts: &[&str]) -> Finding {
    top(&[("a.txt", &(SHORT.text() + &parts.concat()))], "fc-virtual-elements")
}

fn says(finding: &Finding, words: &str) -> bool {
    finding.reasoning.iter().any(|why| why.contains(words))
}

const CHANGED: &str = "payroll:/> chdev -l fcs0 -a num_cmd_elems=2048 -P\nfcs0 changed\n";

#[test]
fn what_is_set_already_is_not_set_again() {
    let (old, new) = (set("200"), set("2048"));
    let in_force = by("-Pl", "200");
    for parts in [
        &[old.as_str(), CHANGED, &new][..],
        &[CHANGED, &new],
        &[&new, &in_force],
        &[&in_force, &new],
    ] {
        let finding = first(parts);
        assert_eq!((finding.command.as_deref(), finding.look_up.len()), (None, 0), "{parts:?}");
        assert!(says(&finding, "num_cmd_elems=2048 is set already, for later"), "{finding:?}");
        assert!(finding.effect.contains("configured again or the system is restarted"));
    }
}

#[test]
fn a_smaller_value_for_later_is_raised_and_the_undoing_brings_it_back() {
    let finding = first(&[&set("200"), &CHANGED.replace("2048", "500"), &set("500")]);
    assert_eq!(finding.command.as_deref(), Some("chdev -l fcs0 -a num_cmd_elems=2048 -P"));
    assert_eq!(finding.undo.as_deref(), Some("chdev -l fcs0 -a num_cmd_elems=500 -P"));
}

#[test]
fn a_value_that_nothing_ever_came_near_may_not_be_in_force() {
    // 2,048 are set, 180 were ever active, and 4,419,300 requests waited.
    let finding = first(&[&set("2048")]);
    assert_eq!(finding.command, None);
    assert!(says(&finding, "may have been set for later"), "{:?}", finding.reasoning);
    let look_up = ["which value is in force: lsattr -Pl fcs0 as root on payroll"];
    assert_eq!(finding.look_up, look_up);
    // Not where it is known to be in force, nor where most was in use.
    assert!(!says(&first(&[&set("2048"), &by("-Pl", "2048")]), "not be in force"));
    assert!(!says(&first(&[&set("200")]), "not be in force"));
}

/// Requests wait at a port whose number was raised and never taken over: a still greater one is no cure.
#[test]
fn a_value_in_doubt_is_not_raised_further() {
    let set = |value| lsattr("viosa1", "fcs0", &[("num_cmd_elems", value)]);
    let early = Port { no_elements: 100, active_high: 500, pending_high: 611, ..PHYSICAL };
    let late = Port { no_elements: 90_512, ..early.later(600, 1_000_000) };
    let finding = |value| {
        let late = late.text() + &set(value);
        top(&[("a.txt", &early.text()), ("b.txt", &late)], "fc-physical-elements")
    };
    assert!(finding("500").command.is_some());
    let doubted = finding("2048");
    assert_eq!(doubted.command, None);
    assert!(doubted.look_up[0].starts_with("which value is in force"), "{doubted:?}");
}

#[test]
fn defaults_are_not_what_is_set() {
    let text = SHORT.text() + &by("-Dl", "200");
    let mut captures = planner::capture::Captures::new();
    captures.read("a.txt", text.as_bytes(), None);
    assert_eq!(captures.refused.len(), 1);
    let facts = planner::facts::Facts::builtin();
    let finding = &planner::advise::advise(&captures, &facts).findings[0];
    assert_eq!((finding.rule, finding.command.as_deref()), ("fc-virtual-elements", None));
    assert!(finding.look_up.iter().any(|what| what.contains("lsattr -El fcs0")), "{finding:?}");
}

#[test]
fn after_a_restart_the_value_holds() {
    let text = [set("200").as_str(), CHANGED, "payroll:/> shutdown -Fr\n", &set("2048")].concat();
    let advice = advice(&[("a.txt", &(SHORT.text() + &text))]);
    let finding = &advice.findings[0];
    assert!(!says(finding, "is set already"), "{finding:?}");
}

/// The files of one system in pieces: the change is in another one than the list that shows what it set.
#[test]
fn a_change_in_another_file_counts() {
    let found = |files: &[(&str, &str)]| top(files, "fc-virtual-elements");
    let (short, old, new) = (SHORT.text(), set("200"), set("2048"));
    for files in [
        [("a.txt", CHANGED), ("b.txt", &new), ("c.txt", &short)],
        [("a.txt", &short), ("b.txt", &new), ("c.txt", CHANGED)],
        [("a.txt", &old), ("b.txt", CHANGED), ("c.txt", &short)],
    ] {
        let finding = found(&files);
        assert_eq!((finding.command.as_deref(), finding.look_up.len()), (None, 0), "{files:?}");
        assert!(says(&finding, "num_cmd_elems=2048 is set already, for later"), "{finding:?}");
    }
    // Nothing was changed where the system did not say so.
    let failed = CHANGED.replace("fcs0 changed", "Method error (/etc/methods/chgfc):");
    let finding = found(&[("a.txt", &failed), ("b.txt", &old), ("c.txt", &short)]);
    assert_eq!(finding.command.as_deref(), Some("chdev -l fcs0 -a num_cmd_elems=2048 -P"));
}

#[test]
fn a_restart_after_the_change_is_told_by_the_uptime() {
    let changed = format!("payroll:/> date\nMon Mar  2 10:00:00 CET 2026\n{CHANGED}");
    let later = |up: &str| {
        let uptime = format!("10:00AM   up {up},  2 users,  load average: 1.23, 1.10, 1.05\n");
        let head = "payroll:/> date\nTue Mar  3 10:00:00 CET 2026\npayroll:/> uptime\n";
        format!("{head}{uptime}{}{}", SHORT.text(), set("500"))
    };
    let changed = changed.replace("2048", "500");
    let look_up = |up| {
        let files = [("a.txt", changed.as_str()), ("b.txt", &later(up))];
        let finding = top(&files, "fc-virtual-elements");
        assert_eq!(finding.command, None);
        finding.look_up[0].clone()
    };
    // 500 are in force then, though 180 were the most that was ever active; without a restart nobody knows what is.
    assert!(look_up("2 hrs").starts_with("which value is in force"), "{}", look_up("2 hrs"));
    assert!(
        look_up("9 days").starts_with("num_cmd_elems as it stands now"),
        "{}",
        look_up("9 days")
    );
}

/// `fcstat` says with which transfer size the adapter works.
#[test]
fn another_transfer_size_in_the_statistics_is_a_doubt() {
    let port = Port { no_dma: 700_000, no_command: 0, no_elements: 0, ..SHORT };
    let list = |value| lsattr("payroll", "fcs0", &[("max_xfer_size", value)]);
    let behind = npiv("viosa1", &[("vfchost0", 5, "payroll", "fcs0", "fcs0", 6)])
        + &lsdev("viosa1", "fcs0", &[("max_xfer_size", "0x800000")]);
    let found = |value| {
        let client = port.text() + &list(value);
        top(&[("a.txt", &client), ("b.txt", &behind)], "fc-dma-resource")
    };
    assert_eq!(
        found("0x100000").command.as_deref(),
        Some("chdev -l fcs0 -a max_xfer_size=0x200000 -P")
    );
    let doubted = found("0x200000");
    assert_eq!(doubted.command, None);
    assert!(doubted.look_up[0].contains("lsattr -Pl fcs0"), "{:?}", doubted.look_up);
}
