//! Paths that an earlier capture has and the last one has not.

use super::{advice, silent, top};
use planner::advise::Severity;

const FOUR: &str =
    "Enabled hdisk0 fscsi0\nEnabled hdisk0 fscsi1\nEnabled hdisk1 fscsi0\nEnabled hdisk1 fscsi1\n";
const TWO: &str = "Enabled hdisk0 fscsi0\nEnabled hdisk1 fscsi0\n";

fn lspath(rows: &str) -> String {
    format!("db1:/> lspath\n{rows}")
}

#[test]
fn paths_that_are_in_no_state_any_more_are_told() {
    for (before, after) in [
        ("db1_20240427.txt", "db1_20240428.txt"),
        ("db1_before.txt", "db1_after.txt"),
        ("db1.vorher", "db1.nachher"),
    ] {
        let finding = top(&[(before, &lspath(FOUR)), (after, &lspath(TWO))], "disk-paths-failed");
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.title.starts_with("2 of 4 paths of db1, all those over fscsi1"),
            "{}",
            finding.title
        );
        assert_eq!(finding.command, None);
        // More than before is none the less.
        silent(&[(before, &lspath(TWO)), (after, &lspath(FOUR))]);
    }
    // In one session the later one stands behind.
    let session = lspath(FOUR) + &lspath(TWO) + "db1:/> oslevel -s\n7200-05-07-2346\n";
    top(&[("a.txt", &session)], "disk-paths-failed");
}

#[test]
fn what_tells_no_order_or_was_taken_away_whole_is_left_alone() {
    // Which of the two is the later one nothing tells.
    silent(&[("a.txt", &lspath(FOUR)), ("b.txt", &lspath(TWO))]);
    // A disk that is gone, and a storage port that another one stands for.
    let less = "Enabled hdisk0 fscsi0\nEnabled hdisk0 fscsi1\n";
    silent(&[("db1_20240427.txt", &lspath(FOUR)), ("db1_20240428.txt", &lspath(less))]);
    let port = |last: char| {
        format!(
            "db1:/> lspath -F \"name parent connection status\"\nhdisk0 fscsi0 500507680c2120b{last},1000000000000 Enabled\nhdisk0 fscsi1 500507680c2220b{last},1000000000000 Enabled\n"
        )
    };
    silent(&[("db1_20240427.txt", &port('5')), ("db1_20240428.txt", &port('6'))]);
    // A day that stands before its month and year sorts as no date.
    let advice = advice(&[("db1_30042024.txt", &lspath(FOUR)), ("db1_01052024.txt", &lspath(TWO))]);
    assert_eq!(advice.findings.len(), 0);
}

#[test]
fn what_was_mended_meanwhile_is_left_alone_whatever_the_files_are_called() {
    let failed = "Enabled hdisk0 fscsi0\nFailed hdisk0 fscsi1\n";
    let mended = "Enabled hdisk0 fscsi0\nEnabled hdisk0 fscsi1\n";
    let (before, after) = ("db1_before.txt", "db1_after.txt");
    silent(&[(before, &lspath(failed)), (after, &lspath(mended))]);
    top(&[(before, &lspath(mended)), (after, &lspath(failed))], "disk-paths-failed");
}
