//! What the tests need beyond the Rust toolchain, and how to get it.
//!
//! As root on a machine with apt, missing packages are installed. Otherwise the step fails and says what is missing
//! and the command that mends it. DPDK's testpmd is fetched in any case, and not installed. A missing tool never makes a test pass.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ::tools::testpmd::Testpmd;
use ::tools::{TOOLS, Tool, find};

use crate::run::{self, Context};
use anyhow::{Context as _, Result, anyhow};

/// Programs of the Rust toolchain that cargo finds by name.
const TOOLCHAIN: &[&str] =
    &["cargo", "cargo-clippy", "cargo-fmt", "clippy-driver", "rustc", "rustdoc", "rustfmt"];

/// The package whose dependency is the kernel of the guest tests; downloaded, never installed.
const KERNEL: &str = "linux-image-cloud-amd64";

/// Checks everything, installs what it may.
pub(crate) fn ensure(context: &Context) -> Result<()> {
    components(context)?;
    let missing = missing();
    let lists_missing = find("apt-cache").is_some() && !kernel_known(context);
    if missing.is_empty() && !lists_missing && find("apt-get").is_some() {
        println!("{} programs found, the guest's kernel is known to apt", TOOLS.len());
    } else {
        install(context, &missing)?;
    }
    // Not installed: tests look there.
    let testpmd = Testpmd::fetch(&context.target.join("testpmd"));
    testpmd.map(|_| println!("testpmd is there")).map_err(|error| anyhow!(error))
}

/// From now on the context's commands find the programs of the table and of the toolchain, and no others.
///
/// # Errors
///
/// When one is missing.
pub(crate) fn confine(context: &Context) -> Result<()> {
    if context.is_confined() {
        return Ok(());
    }
    let folder = context.target.join("path");
    // Steps beside these have what these have.
    if std::env::var_os("PATH").is_some_and(|path| path == folder.as_os_str()) {
        context.confine(folder);
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot clear {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let home = PathBuf::from(run::cargo());
    let beside =
        |program: &str| home.parent().map(|bin| bin.join(program)).filter(|at| at.is_file());
    let toolchain =
        TOOLCHAIN.iter().map(|program| (*program, beside(program).or_else(|| find(program))));
    let table = TOOLS.iter().map(|tool| (tool.program, find(tool.program)));
    for (program, found) in toolchain.chain(table) {
        let found = found.ok_or_else(|| {
            anyhow!("{program} is not installed; `cargo xtask test --only tools` installs it")
        })?;
        link(&found, &folder.join(program))?;
    }
    context.confine(folder);
    Ok(())
}

/// A link to a program. A script gets a script that runs it: it may look for its parts beside itself, as valgrind's does.
fn link(program: &Path, at: &Path) -> Result<()> {
    let mut start = [0; 2];
    let read = fs::File::open(program).and_then(|mut file| file.read_exact(&mut start));
    if read.is_err() || start != *b"#!" {
        return symlink(program, at).with_context(|| format!("cannot make {}", at.display()));
    }
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", program.display());
    fs::write(at, script)
        .and_then(|()| fs::set_permissions(at, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot make {}", at.display()))
}

fn missing() -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| find(tool.program).is_none()).collect()
}

fn install(context: &Context, missing: &[&Tool]) -> Result<()> {
    let programs: Vec<&str> = missing.iter().map(|tool| tool.program).collect();
    let mut packages: Vec<&str> =
        missing.iter().flat_map(|tool| tool.packages.split(' ')).collect();
    packages.sort_unstable();
    packages.dedup();
    let mut mend = "apt-get update".to_owned();
    if !packages.is_empty() {
        mend.push_str(&format!(
            " && apt-get install -y --no-install-recommends {}",
            packages.join(" ")
        ));
    }
    if find("apt-get").is_none() {
        return Err(anyhow!(
            "missing programs: {programs:?}. There is no apt-get here, which the guest tests also need to fetch \
             {KERNEL}: run the tests on Debian, where this installs the programs: {mend}"
        ));
    }
    if !is_root(context) {
        return Err(anyhow!(
            "missing: programs {programs:?}{}. Only root may install them; run as root: {mend}",
            if kernel_known(context) { "" } else { ", apt's package lists" }
        ));
    }
    println!("missing: {programs:?}");
    run::visible(context.command("apt-get").args(["update", "-q"]))?;
    if !packages.is_empty() {
        let mut install = context.command("apt-get");
        install.env("DEBIAN_FRONTEND", "noninteractive");
        install.args(["install", "-q", "-y", "--no-install-recommends"]).args(&packages);
        run::visible(&mut install)?;
    }
    let still: Vec<&str> = self::missing().iter().map(|tool| tool.program).collect();
    if !still.is_empty() {
        return Err(anyhow!("apt-get installed {packages:?}, but {still:?} are not on PATH"));
    }
    if !kernel_known(context) {
        return Err(anyhow!("apt knows no {KERNEL}; is the machine's Debian mirror complete?"));
    }
    Ok(())
}

/// rustfmt and clippy are parts of the toolchain that a minimal installation leaves out.
fn components(context: &Context) -> Result<()> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if run::captured(&mut context.cargo(&[subcommand, "--version"])).is_ok() {
            continue;
        }
        if find("rustup").is_none() {
            return Err(anyhow!(
                "cargo {subcommand} is missing: install the {component} component"
            ));
        }
        run::visible(context.command("rustup").args(["component", "add", component]))?;
    }
    Ok(())
}

fn kernel_known(context: &Context) -> bool {
    run::captured(context.command("apt-cache").args(["show", "--no-all-versions", KERNEL])).is_ok()
}

fn is_root(context: &Context) -> bool {
    run::captured(context.command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}
