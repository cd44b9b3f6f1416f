//! Licences, sources and bans of dependencies, from `cargo metadata` and `deny.toml`.
//!
//! The file is cargo-deny's own, so who has that tool can use it; this check reads the same allow-list and needs nothing
//! but cargo. Advisory databases are not part of it: they need a network beyond the registry.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use crate::layers::data_path;
use crate::metadata::Metadata;
use crate::run::Context;
use crate::spdx;
use anyhow::{Context as _, Result, anyhow};

/// What must not be under the data path: it has threads that own their work, and no text formats.
const BANNED_BELOW_DATAPLANE: &[&str] = &[
    "async-executor",
    "async-std",
    "compio",
    "futures-executor",
    "glommio",
    "mio",
    "monoio",
    "serde_json",
    "smol",
    "tokio",
    "tokio-uring",
];

/// The only place that packages come from.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[derive(Deserialize)]
struct DenyFile {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    package: String,
    allow: Vec<String>,
}

/// Checks the workspace and the fuzz targets' own.
pub(crate) fn check(context: &Context) -> Result<()> {
    let path = context.root.join("deny.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let rules: DenyFile = toml::from_str(&text).context("deny.toml is not understood")?;
    let fuzz = Metadata::read(&context.root.join("fuzz/Cargo.toml")).context(
        "if the lock file is old: cargo update --workspace --manifest-path fuzz/Cargo.toml",
    )?;
    let mut wrong = Vec::new();
    for metadata in [&context.metadata, &fuzz] {
        for package in &metadata.packages {
            let name = format!("{} {}", package.name, package.version);
            if let Err(why) =
                judge_licence(&rules.licenses, &package.name, package.license.as_deref())
            {
                wrong.push(format!("{name}: {why}"));
            }
            if package.source.as_deref().is_some_and(|source| source != CRATES_IO) {
                wrong.push(format!("{name}: comes from {:?}, not from crates.io", package.source));
            }
        }
    }
    for member in data_path() {
        let shipped = context.metadata.shipped_with(member);
        for banned in BANNED_BELOW_DATAPLANE.iter().filter(|name| shipped.contains_key(*name)) {
            wrong
                .push(format!("{member} must not depend on {banned}: {}", chain(&shipped, banned)));
        }
    }
    wrong.sort();
    wrong.dedup();
    if wrong.is_empty() {
        println!(
            "{} packages and {} of the fuzz targets checked",
            context.metadata.packages.len(),
            fuzz.packages.len()
        );
        return Ok(());
    }
    Err(anyhow!(wrong.join("\n")))
}

fn judge_licence(
    rules: &Licenses,
    package: &str,
    licence: Option<&str>,
) -> std::result::Result<(), String> {
    let expression = licence.ok_or("names no licence")?;
    let excepted: Vec<&String> = rules
        .exceptions
        .iter()
        .filter(|rule| rule.package == package)
        .flat_map(|rule| &rule.allow)
        .collect();
    let allowed =
        |name: &str| rules.allow.iter().chain(excepted.iter().copied()).any(|entry| entry == name);
    match spdx::satisfied(expression, &allowed)? {
        true => Ok(()),
        false => Err(format!("licence `{expression}` is not in the allow-list of deny.toml")),
    }
}

/// Who brought `name` in, from it up to the member.
fn chain(shipped: &BTreeMap<&str, Option<&str>>, name: &str) -> String {
    let mut text = name.to_owned();
    let mut at = name;
    while let Some(Some(by)) = shipped.get(at) {
        text.push_str(" <- ");
        text.push_str(by);
        at = by;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_hold_for_their_package_only() {
        let rules = Licenses {
            allow: vec!["MIT".to_owned()],
            exceptions: vec![Exception {
                package: "special".to_owned(),
                allow: vec!["NCSA".to_owned()],
            }],
        };
        assert!(judge_licence(&rules, "special", Some("MIT AND NCSA")).is_ok());
        assert!(judge_licence(&rules, "other", Some("MIT AND NCSA")).is_err());
        assert!(judge_licence(&rules, "other", None).is_err());
    }

    #[test]
    fn a_banned_dependency_is_named_with_its_way_in() {
        let shipped =
            BTreeMap::from([("vring", None), ("helper", Some("vring")), ("tokio", Some("helper"))]);
        assert_eq!(chain(&shipped, "tokio"), "tokio <- helper <- vring");
    }
}
