//! The house: which crate may use which, and which may contain unsafe code.

use std::collections::BTreeMap;
use std::fs;

use crate::run::{self, Context};
use crate::tidy;
use anyhow::{Context as _, Result, anyhow};

/// Every crate and the crates of ours that it may name, from the ground up. Dev-dependencies are free.
const ARROWS: &[(&str, &[&str])] = &[
    ("memory", &[]),
    ("uring", &["memory"]),
    ("vring", &["memory"]),
    ("spec", &[]),
    ("confine", &[]),
    ("block", &["memory", "uring", "spec"]),
    ("protocol", &["memory", "spec"]),
    ("scsi", &["memory", "block"]),
    ("switch", &[]),
    ("pool", &[]),
    ("pool_io", &["memory", "uring", "spec", "block", "pool"]),
    ("channel", &["memory", "uring", "vring", "block", "protocol"]),
    ("device_blk", &["memory", "vring", "block", "protocol", "channel"]),
    ("device_net", &["memory", "uring", "vring", "spec", "block", "protocol", "channel", "switch"]),
    ("device_scsi", &["memory", "vring", "spec", "block", "protocol", "channel", "scsi"]),
    (
        "dataplane",
        &[
            "confine",
            "memory",
            "uring",
            "vring",
            "spec",
            "block",
            "pool",
            "pool_io",
            "scsi",
            "switch",
            "protocol",
            "channel",
            "device_blk",
            "device_net",
            "device_scsi",
        ],
    ),
    ("fabric", &[]),
    ("control", &["spec", "protocol", "fabric"]),
    ("capture", &[]),
    ("planner", &["fabric", "capture"]),
    ("partition", &["memory", "vring"]),
    (
        "trunkline",
        &["confine", "dataplane", "control", "fabric", "partition", "planner", "protocol"],
    ),
    // For tests alone.
    ("testkit", &[]),
    ("tools", &[]),
    // Not shipped: the benchmarks drive servers with the client's library.
    ("bench", &["memory", "partition", "protocol", "spec", "testkit", "tools"]),
    (
        "trunkline-sim",
        &[
            "memory",
            "uring",
            "vring",
            "spec",
            "block",
            "pool_io",
            "protocol",
            "channel",
            "device_scsi",
            "dataplane",
            "fabric",
            "control",
        ],
    ),
    ("guest", &["testkit", "tools"]),
    ("xtask", &["testkit", "tools"]),
];

/// The crates whose code runs for every I/O, and the process around them.
pub(crate) fn data_path() -> impl Iterator<Item = &'static str> {
    let process = ARROWS.iter().find(|(name, _)| *name == "dataplane");
    let (process, below) = process.expect("the data plane has its row");
    below.iter().chain([process]).copied()
}

/// Tests that may say it elsewhere: a global allocator cannot be written without, nor system calls that nobody should make.
const UNSAFE_TESTS: &[&str] = &[
    "crates/confine/tests/arbitrary_code.rs",
    "crates/dataplane/tests/allocation.rs",
    "crates/pool/tests/memory.rs",
];

/// The crates without I/O, clock and threads: they also run in a browser. `cargo xtask wasm` compiles them for one.
const PURE: &[&str] = &["spec", "fabric", "capture", "planner", "switch", "pool"];

/// What a pure crate may not name outside its tests.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::time",
    "std::thread",
    "std::process",
    "std::env",
    "std::os",
    "std::io",
];

/// The crates that may say `allow(unsafe_code)`.
const UNSAFE: &[&str] = &["memory", "uring", "vring"];

/// Fails with every arrow that the table does not have.
pub(crate) fn check(context: &Context) -> Result<()> {
    let mut wrong = Vec::new();
    let ours: BTreeMap<&str, Vec<&str>> = context
        .metadata
        .members()
        .map(|member| {
            let shipped =
                member.dependencies.iter().filter(|needed| needed.kind.as_deref() != Some("dev"));
            (member.name.as_str(), shipped.map(|needed| needed.name.as_str()).collect())
        })
        .collect();
    for (member, needed) in &ours {
        let needed = needed.iter().copied().filter(|name| ours.contains_key(name));
        wrong.extend(judge(member, needed));
    }
    for member in context.metadata.members() {
        let manifest =
            fs::read_to_string(&member.manifest_path).context("cannot read a manifest")?;
        if !inherits_lints(&manifest) {
            wrong.push(format!(
                "{}: its Cargo.toml must have `[lints] workspace = true`",
                member.name
            ));
        }
        let folder = member.manifest_path.parent().unwrap_or(&context.root);
        for file in tidy::files(folder, "rs")? {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let may = UNSAFE.contains(&member.name.as_str())
                || UNSAFE_TESTS.iter().any(|test| file.ends_with(test));
            if !may && text.lines().any(opens_unsafe) {
                wrong.push(format!("{}: unsafe code is for {UNSAFE:?} only", file.display()));
            }
            if PURE.contains(&member.name.as_str()) && !is_test(&file) {
                wrong.extend(text.lines().filter_map(impurity).map(|what| {
                    format!("{}: {} is pure, and this names {what}", file.display(), member.name)
                }));
            }
        }
    }
    if wrong.is_empty() {
        println!("{} crates checked", ours.len());
        return Ok(());
    }
    Err(anyhow!(wrong.join("\n")))
}

/// Compiles the pure crates for a browser.
pub(crate) fn wasm(context: &Context) -> Result<()> {
    const TARGET: &str = "wasm32-unknown-unknown";
    run::visible(context.command("rustup").args(["target", "add", TARGET]))?;
    for name in PURE {
        run::visible(
            &mut context.cargo(&["check", "--locked", "--lib", "--target", TARGET, "-p", name]),
        )?;
    }
    Ok(())
}

/// A file that is no part of the shipped crate.
fn is_test(file: &std::path::Path) -> bool {
    let name = |part: std::path::Component<'_>| {
        let text = part.as_os_str().to_string_lossy().into_owned();
        text == "tests" || text == "examples" || text == "tests.rs"
    };
    file.components().any(name)
}

/// What a line of a pure crate names and must not; comments may.
fn impurity(line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    IMPURE.iter().copied().find(|what| code.contains(what))
}

fn judge<'a>(member: &str, needed: impl Iterator<Item = &'a str>) -> Vec<String> {
    let row = ARROWS.iter().find(|(name, _)| *name == member);
    // What stands outside the house and in no row may use none of its crates.
    let allowed = row.map_or(&[][..], |(_, allowed)| allowed);
    needed
        .filter(|name| !allowed.contains(name))
        .map(|name| format!("{member} must not depend on {name}: it may use {allowed:?}"))
        .collect()
}

fn inherits_lints(manifest: &str) -> bool {
    let parsed: Option<toml::Table> = manifest.parse().ok();
    parsed.is_some_and(|table| {
        table.get("lints").and_then(|lints| lints.get("workspace"))
            == Some(&toml::Value::Boolean(true))
    })
}

/// A line that switches the lint off: `allow(unsafe_code)` or `expect(unsafe_code)` in an attribute.
fn opens_unsafe(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#")
        && line.contains("unsafe_code")
        && !line.contains("forbid(")
        && !line.contains("deny(")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_that_points_up_is_refused() {
        assert!(judge("device_blk", ["vring", "channel"].into_iter()).is_empty());
        assert_eq!(judge("channel", ["device_blk"].into_iter()).len(), 1);
        assert_eq!(judge("vring", ["channel"].into_iter()).len(), 1);
        assert_eq!(judge("control", ["dataplane"].into_iter()).len(), 1);
        assert_eq!(judge("unknown", ["memory"].into_iter()).len(), 1);
    }

    #[test]
    fn the_table_points_down_only() {
        for (index, (name, allowed)) in ARROWS.iter().enumerate() {
            for used in *allowed {
                let at = ARROWS.iter().position(|(other, _)| other == used);
                assert!(at.is_some_and(|at| at < index), "{name} -> {used}");
            }
        }
    }

    #[test]
    fn a_pure_crate_names_no_file_and_no_clock() {
        assert_eq!(impurity("use std::time::Instant;"), Some("std::time"));
        assert_eq!(impurity("use std::fmt; // not std::fs"), None);
        assert!(is_test("crates/planner/src/lpm/tests.rs".as_ref()));
        assert!(is_test("crates/planner/tests/lpm.rs".as_ref()));
        assert!(!is_test("crates/planner/src/lpm.rs".as_ref()));
    }

    #[test]
    fn lines_that_open_unsafe_are_found() {
        assert!(opens_unsafe("#![allow(unsafe_code)] // UNSAFE: why"));
        assert!(opens_unsafe("    #[expect(unsafe_code)]"));
        assert!(!opens_unsafe("#![forbid(unsafe_code)]"));
        assert!(!opens_unsafe("// allow(unsafe_code) is for others"));
        assert!(inherits_lints("[lints]\nworkspace = true\n"));
        assert!(!inherits_lints("[package]\nname = \"x\"\n"));
    }
}
