//! On an excerpt of what the tool says about QEMU's disk: whole suites, long repetitions cut, the summary counted anew.

use super::*;

const EXCERPT: &str = include_str!("excerpt.txt");

#[test]
fn names_verdicts_and_reasons_are_read() {
    let results = Results::parse(EXCERPT).unwrap();
    assert_eq!((results.total(), results.passed()), (21, 11));
    let failed: Vec<_> = results.failed().map(|(name, _)| name).collect();
    assert_eq!(
        failed,
        [
            "CompareAndWrite.DpoFua",
            "CompareAndWrite.Miscompare",
            "CompareAndWrite.Simple",
            "CompareAndWrite.Unwritten",
            "Verify10.BeyondEol",
            "Verify10.Dpo",
            "Verify10.Flags",
            "Verify10.Mismatch",
            "Verify10.Simple",
            "Verify10.ZeroBlocks",
        ]
    );
    let (_, why) = results.failed().find(|(name, _)| *name == "Verify10.Flags").unwrap();
    assert_eq!(
        why,
        [
            "[FAILED] VERIFY10 command failed with status 2 / sense key ILLEGAL_REQUEST(0x05) / ASCQ \
             INVALID_FIELD_IN_CDB(0x2400)",
            "1. test_verify10_flags.c:38  - CU_ASSERT_EQUAL(_r,0)",
        ]
    );
    assert_eq!(results.tests["ReadCapacity10.Simple"], Outcome::Passed);
    assert_eq!(
        results.tests["MultipathIO.Reset"],
        Outcome::Skipped("[SKIPPED] Multipath unavailable. Skipping test".to_owned())
    );
    assert_eq!(results.skipped().count(), 8);
    let last = &results.tests["Verify10.Mismatch"];
    assert!(!format!("{last:?}").contains("Suite"), "{last:?}");
}

#[test]
fn a_time_before_the_words_is_left_out() {
    let text = "Suite: A\n  Test: B ...    2026-11-22 09:18:37.098206     [SKIPPED] No iSCSI\npassed\n\
                Run Summary:    Type\n   tests  1  1  1  0  0\n";
    let results = Results::parse(text).unwrap();
    assert_eq!(results.skipped().collect::<Vec<_>>(), [("A.B", "[SKIPPED] No iSCSI")]);
}

#[test]
fn a_tool_that_ended_early_or_lines_that_are_lost_are_errors() {
    let cut = EXCERPT.split("Run Summary").next().unwrap();
    let error = Results::parse(cut).unwrap_err();
    assert_eq!(error.to_string(), "iscsi-test-cu ended after 21 tests");
    assert!(Results::parse("").is_err());
    // A verdict is missing.
    let lost = EXCERPT.replacen("...passed", "...", 1);
    assert!(Results::parse(&lost).unwrap_err().to_string().contains("counts"));
    let other = EXCERPT.replacen(" ...passed", " ...\nFAILED", 1);
    assert!(Results::parse(&other).is_err());
}

#[test]
fn only_what_is_explained_may_fail() {
    let all: Vec<String> = {
        let results = Results::parse(EXCERPT).unwrap();
        results.failed().map(|(name, _)| name.to_owned()).collect()
    };
    let explained: Vec<Explained> = all
        .iter()
        .map(|name| Explained { test: name.clone().leak(), why: "QEMU has its own view" })
        .collect();
    let results = Results::parse(EXCERPT).unwrap();
    results.judge(11, &explained).unwrap();
    assert!(results.judge(12, &explained).is_err(), "too few pass");
    let error = results.judge(11, &explained[1..]).unwrap_err().to_string();
    assert!(error.contains("without an explanation: [\"CompareAndWrite.DpoFua\"]"), "{error}");
    let more = [&explained[..], &[Explained { test: "ReadCapacity10.Simple", why: "?" }]].concat();
    let error = results.judge(11, &more).unwrap_err().to_string();
    assert!(error.contains("explained and not failed: [\"ReadCapacity10.Simple\"]"), "{error}");
}
