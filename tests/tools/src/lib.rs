//! [`TOOLS`]: every program that the tests need from outside of cargo, the Debian package that has it, and who runs it.
//!
//! `cargo xtask test` installs what is missing, and runs its steps with a `PATH` of just these programs and the Rust toolchain: a
//! line that is missing here fails everywhere, not only on a machine that lacks the program. Guests get those of [`User::Guest`].
//! [`testpmd`] and [`ovs`] are fetched, since they would bring hundreds of packages.

pub mod command;
pub mod debian;
mod dpdk;
pub mod ovs;
pub mod testpmd;

use std::path::PathBuf;

/// Who runs a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The compilers, and xtask itself.
    Build,
    /// Tests, on this machine.
    Host,
    /// Scripts in guests; tests on this machine may, too.
    Guest,
}

/// A program.
#[derive(Debug)]
pub struct Tool {
    /// Its name.
    pub program: &'static str,
    /// The Debian packages that have it, by spaces: several where releases differ.
    pub packages: &'static str,
    /// Who runs it.
    pub user: User,
}

const fn tool(program: &'static str, packages: &'static str, user: User) -> Tool {
    Tool { program, packages, user }
}

/// All of them, by name.
pub const TOOLS: &[Tool] = &[
    tool("apt-cache", "apt", User::Host),
    tool("apt-get", "apt", User::Host),
    tool("ar", "binutils", User::Build),
    tool("as", "binutils", User::Build),
    tool("blkdiscard", "util-linux", User::Guest),
    tool("blockdev", "util-linux", User::Guest),
    tool("busybox", "busybox-static", User::Guest),
    // libFuzzer, of the fuzz targets, is C++.
    tool("c++", "g++", User::Build),
    tool("cc", "gcc", User::Build),
    tool("dmsetup", "dmsetup", User::Guest),
    tool("dpkg", "dpkg", User::Host),
    tool("dpkg-deb", "dpkg", User::Host),
    tool("env", "coreutils", User::Host),
    tool("etcd", "etcd-server", User::Host),
    tool("fio", "fio", User::Guest),
    tool("fsck.ext4", "e2fsprogs", User::Guest),
    tool("fsfreeze", "util-linux", User::Host),
    tool("fstrim", "util-linux", User::Guest),
    tool("gcc", "gcc", User::Build),
    tool("git", "git", User::Build),
    tool("gzip", "gzip", User::Host),
    tool("ip", "iproute2", User::Host),
    tool("iperf3", "iperf3", User::Guest),
    tool("iscsi-test-cu", "libiscsi-bin", User::Guest),
    tool("kill", "procps", User::Host),
    tool("ld", "binutils", User::Build),
    tool("ldd", "libc-bin", User::Host),
    tool("losetup", "mount", User::Host),
    tool("lsscsi", "lsscsi", User::Guest),
    tool("lz4", "lz4", User::Host),
    tool("md5sum", "coreutils", User::Host),
    tool("mkfifo", "coreutils", User::Host),
    tool("mkfs.ext4", "e2fsprogs", User::Guest),
    tool("mount", "mount", User::Host),
    tool("nsenter", "util-linux", User::Host),
    tool("qemu-img", "qemu-utils", User::Host),
    tool("qemu-storage-daemon", "qemu-system-common qemu-utils", User::Host),
    tool("qemu-system-x86_64", "qemu-system-x86", User::Host),
    tool("ranlib", "binutils", User::Build),
    tool("rm", "coreutils", User::Host),
    tool("setpriv", "util-linux", User::Host),
    tool("sg_get_lba_status", "sg3-utils", User::Guest),
    tool("sg_inq", "sg3-utils", User::Guest),
    tool("sg_luns", "sg3-utils", User::Guest),
    tool("sg_opcodes", "sg3-utils", User::Guest),
    tool("sg_persist", "sg3-utils", User::Guest),
    tool("sg_prevent", "sg3-utils", User::Guest),
    tool("sg_raw", "sg3-utils", User::Guest),
    tool("sg_readcap", "sg3-utils", User::Guest),
    tool("sg_requests", "sg3-utils", User::Guest),
    tool("sg_reset", "sg3-utils", User::Guest),
    tool("sg_rtpg", "sg3-utils", User::Guest),
    tool("sg_start", "sg3-utils", User::Guest),
    tool("sg_turs", "sg3-utils", User::Guest),
    tool("sg_unmap", "sg3-utils", User::Guest),
    tool("sg_vpd", "sg3-utils", User::Guest),
    tool("sh", "dash", User::Host),
    tool("sleep", "coreutils", User::Host),
    tool("systemd-analyze", "systemd", User::Host),
    tool("tar", "tar", User::Host),
    tool("timeout", "coreutils", User::Host),
    tool("umount", "mount", User::Host),
    tool("unshare", "util-linux", User::Host),
    tool("valgrind", "valgrind", User::Host),
    tool("xorrisofs", "xorriso", User::Host),
    tool("xz", "xz-utils", User::Host),
    tool("zstd", "zstd", User::Host),
];

/// Where a program is: on `PATH`, or in the administrator's folders, which an ordinary user's `PATH` lacks.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::TOOLS;

    #[test]
    fn each_program_stands_once_and_in_order() {
        assert!(TOOLS.windows(2).all(|pair| pair[0].program < pair[1].program));
    }
}
