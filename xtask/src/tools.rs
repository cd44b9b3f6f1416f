//! What the tests need beyond the Rust toolchain, and how to get it.
//!
//! As root on a machine with apt, missing packages are installed. Otherwise the step fails and says what is missing
//! and the command that mends it. A missing tool never makes a test pass.

use std::path::PathBuf;

use crate::run::{self, Context, Failure, Result};

/// Programs and the Debian packages that have them (several where releases differ).
const TOOLS: &[(&str, &str)] = &[
    ("blkdiscard", "util-linux"),
    ("blockdev", "util-linux"),
    ("busybox", "busybox-static"),
    ("dpkg-deb", "dpkg"),
    ("fio", "fio"),
    ("fsck.ext4", "e2fsprogs"),
    ("fstrim", "util-linux"),
    ("g++", "g++"),
    ("gzip", "gzip"),
    ("ldd", "libc-bin"),
    ("lz4", "lz4"),
    ("mkfs.ext4", "e2fsprogs"),
    ("qemu-storage-daemon", "qemu-system-common qemu-utils"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("setpriv", "util-linux"),
    ("valgrind", "valgrind"),
    ("xorrisofs", "xorriso"),
    ("xz", "xz-utils"),
    ("zstd", "zstd"),
];

/// The package whose dependency is the kernel of the guest tests; downloaded, never installed.
const KERNEL: &str = "linux-image-cloud-amd64";

/// Checks everything, installs what it may.
pub(crate) fn ensure(context: &Context) -> Result {
    components(context)?;
    let missing = missing();
    let lists_missing = find("apt-cache").is_some() && !kernel_known(context);
    if missing.is_empty() && !lists_missing && find("apt-get").is_some() {
        println!("{} programs found, the guest's kernel is known to apt", TOOLS.len());
        return Ok(());
    }
    install(context, &missing)
}

fn missing() -> Vec<(&'static str, &'static str)> {
    TOOLS.iter().copied().filter(|(program, _)| find(program).is_none()).collect()
}

fn install(context: &Context, missing: &[(&str, &str)]) -> Result {
    let programs: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
    let mut packages: Vec<&str> =
        missing.iter().flat_map(|(_, packages)| packages.split(' ')).collect();
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
        return Err(Failure(format!(
            "missing programs: {programs:?}. There is no apt-get here, which the guest tests also need to fetch \
             {KERNEL}: run the tests on Debian, where this installs the programs: {mend}"
        )));
    }
    if !is_root(context) {
        return Err(Failure(format!(
            "missing: programs {programs:?}{}. Only root may install them; run as root: {mend}",
            if kernel_known(context) { "" } else { ", apt's package lists" }
        )));
    }
    println!("missing: {programs:?}");
    run::visible(context.command("apt-get").args(["update", "-q"]))?;
    if !packages.is_empty() {
        let mut install = context.command("apt-get");
        install.env("DEBIAN_FRONTEND", "noninteractive");
        install.args(["install", "-q", "-y", "--no-install-recommends"]).args(&packages);
        run::visible(&mut install)?;
    }
    let still: Vec<&str> = self::missing().into_iter().map(|(program, _)| program).collect();
    if !still.is_empty() {
        return Err(Failure(format!(
            "apt-get installed {packages:?}, but {still:?} are not on PATH"
        )));
    }
    if !kernel_known(context) {
        return Err(Failure(format!(
            "apt knows no {KERNEL}; is the machine's Debian mirror complete?"
        )));
    }
    Ok(())
}

/// rustfmt and clippy are parts of the toolchain that a minimal installation leaves out.
fn components(context: &Context) -> Result {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if run::captured(&mut context.cargo(&[subcommand, "--version"])).is_ok() {
            continue;
        }
        if find("rustup").is_none() {
            return Err(Failure(format!(
                "cargo {subcommand} is missing: install the {component} component"
            )));
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

/// A program on PATH or in the administrator's folders, which an ordinary user's PATH lacks.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}
