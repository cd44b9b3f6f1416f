//! The simulator as a program, where it is built.
#![cfg(feature = "sim")]

use std::process::{Command, Output};

fn simulate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trunkline-sim")).args(arguments).output().unwrap()
}

#[test]
fn a_seed_tells_the_same_story_whenever_it_runs() {
    for part in ["data", "pool", "control"] {
        let tell = || simulate(&["--part", part, "--seed", "7", "--trace"]);
        let (once, again) = (tell(), tell());
        assert!(once.status.success(), "{}", String::from_utf8_lossy(&once.stdout));
        assert!(once.stdout.len() > 1_000, "a story has lines");
        assert!(once.stdout == again.stdout, "part {part} told two stories");
    }
}

#[test]
fn a_wrong_option_is_told_from_a_fault_that_was_found() {
    let wrong = simulate(&["--sead", "7"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--sead"));
    // Seeds that are too few for a control find none of its faults.
    assert_eq!(simulate(&["--help"]).status.code(), Some(0));
}

/// What once failed, as it was made small.
#[test]
fn what_was_found_is_not_found_again() {
    // A PV that has returned fails again before a container has its page there.
    let without = "deaths,power,moves,short,limits,delays,liars,hangs";
    let pool = ["--part", "pool", "--seed", "222", "--salt", "15", "--clients", "1"];
    let found = simulate(&[&pool[..], &["--requests", "10", "--without", without]].concat());
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stdout));
}
