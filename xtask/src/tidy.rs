//! Small rules that no other tool keeps: file sizes, and paths in documents that must exist.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::Context;
use anyhow::{Context as _, Result, anyhow};

/// Lines of code in one file; comments and blank lines are free.
const CODE_LINES_MAX: usize = 600;

/// Folders with sources of ours.
const SOURCES: &[&str] = &["bench", "crates", "fuzz", "sim", "tests", "xtask"];

/// A path in a document that begins like this must exist.
const PATH_PREFIXES: &[&str] =
    &["crates/", "docs/", "xtask/", "tests/", "fuzz/", "sim/", "bench/", ".ci/"];

/// Fails with everything that is wrong.
pub(crate) fn check(context: &Context) -> Result<()> {
    let mut wrong = Vec::new();
    let mut sources = 0;
    for folder in SOURCES {
        for file in files(&context.root.join(folder), "rs")? {
            let text = read(&file)?;
            let lines = code_lines(&text);
            if lines > CODE_LINES_MAX {
                wrong.push(format!(
                    "{}: {lines} lines of code, {CODE_LINES_MAX} are the limit",
                    file.display()
                ));
            }
            sources += 1;
        }
    }
    let mut documents = vec![context.root.join("ARCHITECTURE.md"), context.root.join("README.md")];
    documents.extend(files(&context.root.join("docs"), "md")?);
    for document in &documents {
        for path in named_paths(&read(document)?) {
            if !context.root.join(path).exists() {
                wrong.push(format!("{}: `{path}` does not exist", document.display()));
            }
        }
    }
    if wrong.is_empty() {
        println!("{sources} source files and {} documents checked", documents.len());
        return Ok(());
    }
    Err(anyhow!(wrong.join("\n")))
}

/// All files below a folder with that extension; build outputs and hidden folders are left out.
pub(crate) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in
            fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?
        {
            let path = entry.context("cannot list a folder")?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                waiting.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn code_lines(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// Words between backticks that look like a path of this repository. A line number after a colon is left off;
/// patterns and placeholders are not paths.
fn named_paths(text: &str) -> Vec<&str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter_map(|word| word.split(':').next())
        .filter(|word| PATH_PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
        .filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_are_free() {
        assert_eq!(code_lines("//! Doc\n\nfn main() {\n    // why\n    run(); // what\n}\n"), 3);
    }

    #[test]
    fn paths_are_found_between_backticks() {
        let text = "See `crates/vring/src/lib.rs:12` and `docs/guide`, not crates/x or `crates/*`.\n`let x`";
        assert_eq!(named_paths(text), ["crates/vring/src/lib.rs", "docs/guide"]);
    }
}
