//! What tests need of the kernel: disks that misbehave *below* its file systems, and namespaces.
//!
//! A wrapper in the server ([`Delayed`, `Faulty`] of `block`) waits or fails before the I/O has reached the kernel, so at the death of a
//! process nothing of it is under way there, and no page of the kernel's cache is ever lost. These do it on the other side:
//!
//! ```text
//!  server ── io_uring ──▶ kernel: page cache, direct I/O ──▶ Disk      a file that this process answers for (FUSE)
//!                                                       └─▶ Loop ─▶ any file: a block device; on a Disk, or in a Tmpfs that is full
//!                                                             └─▶ Ext4  a file system on it, which can be frozen
//! ```
//!
//! A [`Disk`] holds requests until the test lets them go, serves them late and out of order, or fails them; with a write-back cache it
//! loses pages that were answered long ago. Whoever submitted a request can be killed while the kernel still has it.
//!
//! All of this is root's. [`is_root`] says so where it is not, past the test runner; a test returns then. Tests of the project run as root.

mod disk;
mod elsewhere;
mod mounts;
mod wire;

use std::path::Path;
use std::process::Command;

pub use disk::{Disk, Fault, Kind, Options};
pub use elsewhere::Elsewhere;
pub use mounts::{Ext4, Loop, Tmpfs};

const NOT_TESTED: &str = "NOT TESTED: ";

/// Says what a test leaves out, past the test runner, which shows the output of failing tests only.
///
/// # Panics
///
/// When there is no standard error to write to.
pub fn not_tested(what: &str) {
    use std::io::Write as _;
    writeln!(std::io::stderr(), "{NOT_TESTED}{what}").expect("stderr");
}

/// Whether this process may mount and make devices; if not, `what` is said not to be tested.
#[must_use]
pub fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        not_tested(&format!("{what}, because that needs root"));
    }
    root
}

/// Whether somebody accepts connections at the Unix socket `path`, as `/proc/net/unix` tells it. A server that binds its socket and listens
/// afterwards refuses whoever comes when the file is there; and one that serves a single client must not be tried.
///
/// # Panics
///
/// When there is no table of sockets.
#[must_use]
pub fn listens(path: &Path) -> bool {
    const ACCEPTS: u32 = 0x1_0000;
    let table = std::fs::read_to_string("/proc/net/unix").expect("a table of sockets");
    // `Num RefCount Protocol Flags Type St Inode Path`
    table.lines().any(|line| {
        let flags = line.split_ascii_whitespace().nth(3).map(|word| u32::from_str_radix(word, 16));
        let bound = line.find('/').map(|at| Path::new(&line[at..]));
        bound == Some(path) && flags.is_some_and(|flags| flags.is_ok_and(|of| of & ACCEPTS != 0))
    })
}

/// Runs an ignored test of this test program by itself in new namespaces, which the options of `unshare` (util-linux) name. Before it, `setup` is done
/// there, lines of a shell. What the test says it leaves out, this one does.
///
/// # Panics
///
/// When the namespaces or the setup are refused, or the test fails.
#[track_caller]
pub fn in_namespaces(options: &[&str], setup: &str, test: &str) {
    let script = format!("{setup}\nexec \"$0\" --exact \"$1\" --ignored --nocapture");
    let run = Command::new("unshare")
        .args(options)
        .args(["sh", "-ec", &script])
        .arg(std::env::current_exe().expect("a test program has a path"))
        .arg(test)
        .output()
        .expect("unshare of util-linux");
    let told = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && told.contains("1 passed"), "unshare {options:?}: {told}");
    told.lines().filter_map(|line| line.strip_prefix(NOT_TESTED)).for_each(not_tested);
}

/// The same with a tmpfs of so many MiB and no more, whose folder an environment variable names.
#[track_caller]
pub fn in_small_file_system(variable: &str, mebibytes: u32, test: &str) {
    let folder = tempfile::tempdir().expect("folder");
    let setup = format!(
        "export {variable}='{}'\nmount -t tmpfs -o size={mebibytes}m none \"${variable}\"",
        folder.path().display()
    );
    in_namespaces(&["--user", "--map-root-user", "--mount"], &setup, test);
}

/// The same in a network namespace, where a test may make interfaces; only root may.
#[track_caller]
pub fn in_network_namespace(test: &str) {
    if is_root("interfaces of the host") {
        in_namespaces(&["--net"], "", test);
    }
}

/// How long a test waits for something that must happen.
pub(crate) const LOST: std::time::Duration = std::time::Duration::from_secs(60);

#[cfg(test)]
mod tests;
