//! What a user's own facts change in what the advisor says.

use super::disks::{Disk, QUICK};
use super::{captures, lsattr};
use planner::advise::advise;
use planner::facts::Facts;

fn depth() -> String {
    lsattr("payroll", "hdisk4", &[("queue_depth", "20"), ("reserve_policy", "no_reserve")])
}

/// What is slow is a matter of the array: a file of the user's own facts says another threshold, or that the rule is to be
/// silent.
#[test]
fn a_users_file_changes_a_threshold_and_silences_a_rule() {
    let slow = Disk { tps: 120.0, service: 48.0, in_service: 6.0, ..QUICK }.text() + &depth();
    let quick = QUICK.text() + &depth();
    let of = |text: &str, own: &str| {
        let mut facts = Facts::builtin();
        facts.extend(own).unwrap();
        advise(&captures(&[("a.txt", text)]), &facts)
    };
    let rules = |text: &str, own: &str| -> Vec<&str> {
        of(text, own).findings.iter().map(|finding| finding.rule).collect()
    };
    let service = |ms: &str| {
        format!(
            "[source.own]\ntext = \"our array\"\n[number.\"disk.service-ms-max\"]\nvalue = {ms}\nunit = \"ms\"\n\
             meaning = \"Slow.\"\nsource = \"own\"\nconfirmed = true\n"
        )
    };
    assert_eq!(rules(&slow, ""), ["disk-slow"]);
    assert_eq!(rules(&slow, &service("60")), [""; 0]);
    assert_eq!(rules(&quick, &service("0.5")), ["disk-slow"]);
    let silent = "[rule.disk-slow]\nsilent = true\nwhy = \"tape staging, slow by design\"\n";
    let advice = of(&slow, silent);
    assert_eq!(advice.findings, []);
    let said: Vec<_> = advice.silenced.iter().map(|one| (one.rule, one.why.as_str())).collect();
    assert_eq!(said, [("disk-slow", "tape staging, slow by design")]);
    assert!(advice.coverage.iter().all(|judged| judged.rule != "disk-slow"));
    let wrong =
        Facts::builtin().extend("[rule.disk-slw]\nsilent = true\nwhy = \"\"\n").unwrap_err();
    assert!(wrong.to_string().contains("disk-slw"), "{wrong}");
}
