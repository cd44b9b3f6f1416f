//! What `cargo metadata` says, as far as the checks need it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::run::{self};
use anyhow::{Context as _, Result};

/// A workspace with all its dependencies.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    /// Every package of the graph.
    pub(crate) packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    resolve: Resolve,
    /// Where cargo builds.
    pub(crate) target_directory: PathBuf,
}

/// One package.
#[derive(Deserialize)]
pub(crate) struct Package {
    id: String,
    /// Its name in the registry.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// An SPDX expression, if it names one.
    pub(crate) license: Option<String>,
    /// Where it comes from; none for a folder of this repository.
    pub(crate) source: Option<String>,
    /// Its Cargo.toml.
    pub(crate) manifest_path: PathBuf,
    /// What its manifest asks for.
    pub(crate) dependencies: Vec<Dependency>,
}

/// One line under a manifest's dependencies.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    /// The package's name, whatever the manifest calls it.
    pub(crate) name: String,
    /// None for a normal dependency, else "dev" or "build".
    pub(crate) kind: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    kind: Option<String>,
    target: Option<String>,
}

impl EdgeKind {
    /// Part of the program that users run: not for tests, not for build scripts, not for model checkers.
    fn is_shipped(&self) -> bool {
        let checker = ["cfg(kani)", "cfg(fuzzing)"];
        self.kind.is_none()
            && !self.target.as_deref().is_some_and(|target| checker.contains(&target))
    }
}

impl Metadata {
    /// Asks cargo, which must not have to change the lock file.
    pub(crate) fn read(manifest: &Path) -> Result<Metadata> {
        let mut command = Command::new(run::cargo());
        command
            .args(["metadata", "--locked", "--format-version", "1", "--manifest-path"])
            .arg(manifest);
        serde_json::from_str(&run::captured(&mut command)?).context("cannot read cargo metadata")
    }

    /// Packages that lie in this repository.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// Everything that the member `name` is built from and ships with, itself included, each with the package that
    /// asked for it first.
    pub(crate) fn shipped_with(&self, name: &str) -> BTreeMap<&str, Option<&str>> {
        let names: BTreeMap<&str, &str> = self
            .packages
            .iter()
            .map(|package| (package.id.as_str(), package.name.as_str()))
            .collect();
        let nodes: BTreeMap<&str, &Node> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let mut found = BTreeMap::new();
        let mut waiting: Vec<(&str, Option<&str>)> = self
            .members()
            .filter(|member| member.name == name)
            .map(|member| (member.id.as_str(), None))
            .collect();
        while let Some((id, asked_by)) = waiting.pop() {
            if found.contains_key(names[id]) {
                continue;
            }
            found.insert(names[id], asked_by);
            for edge in &nodes[id].deps {
                if edge.dep_kinds.iter().any(EdgeKind::is_shipped) {
                    waiting.push((&edge.pkg, Some(names[id])));
                }
            }
        }
        found
    }
}
