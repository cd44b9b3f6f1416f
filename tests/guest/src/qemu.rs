//! Which QEMU runs a guest: the machine's own, or one that connects SCSI devices again.
//!
//! Until 8.2 a vhost-user-scsi device stays dead once its server has ended, and Debian 12 has 7.2. What guests need that outlive a data
//! plane comes from Debian's backports, beside it: apt fetches and verifies it with lists of its own, and nothing is installed. It loads the
//! libraries of the machine's own QEMU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use anyhow::{Context as _, Error, Result, anyhow, ensure};
use tools::debian::unpack_all;

/// The first that connects SCSI devices again.
const RECONNECTS: (u32, u32) = (8, 2);

/// The first whose chardevs count the wait in milliseconds, and soon the only way to say it.
const COUNTS_MILLISECONDS: (u32, u32) = (9, 2);

/// Where Debian 12's is, and the key that apt verifies it with.
const ARCHIVE: &str = "http://deb.debian.org/debian";
const SUITE: &str = "bookworm-backports";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The emulator, and what it reads at a start.
const PACKAGES: [&str; 3] = ["qemu-system-x86", "qemu-system-data", "seabios"];

/// Folders of firmware in these packages.
const FIRMWARE: [&str; 2] = ["usr/share/qemu", "usr/share/seabios"];

/// An emulator.
#[derive(Debug, Clone)]
pub(crate) struct Qemu {
    program: PathBuf,
    firmware: Vec<PathBuf>,
    version: (u32, u32),
}

impl Qemu {
    /// The machine's own.
    pub(crate) fn installed() -> Result<Qemu> {
        Qemu::at(PathBuf::from("qemu-system-x86_64"), Vec::new())
    }

    /// One that connects SCSI devices again: the machine's own, or one of Debian's backports, from `cache` or fetched.
    pub(crate) fn that_reconnects(cache: &Path) -> Result<Qemu> {
        let own = Qemu::installed()?;
        if own.version >= RECONNECTS {
            return Ok(own);
        }
        let home = cache.join(format!("qemu-{SUITE}"));
        if !home.exists() {
            let partial = cache.join(format!("qemu-{SUITE}.partial"));
            fetch(&partial).map_err(|error| unavailable(&own, &error))?;
            fs::rename(&partial, &home).context("cannot name QEMU's folder")?;
        }
        let home = home.canonicalize().context("cannot find QEMU's folder")?;
        let firmware = FIRMWARE.iter().map(|folder| home.join("root").join(folder)).collect();
        let qemu = Qemu::at(home.join("root/usr/bin/qemu-system-x86_64"), firmware)
            .map_err(|error| unavailable(&own, &error))?;
        ensure!(qemu.version >= RECONNECTS, "{} has only QEMU {:?}", home.display(), qemu.version);
        Ok(qemu)
    }

    fn at(program: PathBuf, firmware: Vec<PathBuf>) -> Result<Qemu> {
        let text = command::text(Command::new(&program).arg("--version"))?;
        let version = version_of(&text).ok_or_else(|| anyhow!("no version of QEMU in {text:?}"))?;
        Ok(Qemu { program, firmware, version })
    }

    /// Its command line, as it begins.
    pub(crate) fn command(&self) -> Command {
        let mut qemu = command::bound(&self.program);
        for folder in &self.firmware {
            qemu.arg("-L").arg(folder);
        }
        qemu
    }

    /// What a chardev says to connect again, every second.
    pub(crate) fn reconnect_option(&self) -> &'static str {
        if self.version >= COUNTS_MILLISECONDS { ",reconnect-ms=1000" } else { ",reconnect=1" }
    }

    /// Whether it connects a SCSI device again.
    pub(crate) fn reconnects_scsi(&self) -> bool {
        self.version >= RECONNECTS
    }
}

fn version_of(text: &str) -> Option<(u32, u32)> {
    let version = text.split_whitespace().skip_while(|word| *word != "version").nth(1)?;
    let mut numbers = version.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn unavailable(own: &Qemu, error: &anyhow::Error) -> anyhow::Error {
    let (major, minor) = own.version;
    anyhow!(
        "guests that outlive a data plane need QEMU {}.{} or later. This machine has {major}.{minor}, and that of \
         {SUITE} ({ARCHIVE}) could not be had:\n{error:#}\nInstall a later QEMU, as Debian 13 has it, or mend the way \
         to that archive",
        RECONNECTS.0,
        RECONNECTS.1
    )
}

/// Fetches and unpacks the packages. apt has lists, a cache and one source of its own there, and what it knows of proxies from the machine.
fn fetch(home: &Path) -> Result<()> {
    if home.exists() {
        fs::remove_dir_all(home).with_context(|| format!("cannot clear {}", home.display()))?;
    }
    let [lists, kept, root] = ["lists", "cache", "root"].map(|name| home.join(name));
    for folder in [&lists, &kept, &root] {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let home = home.canonicalize().context("cannot find the folder for QEMU")?;
    let sources = home.join("sources.list");
    fs::write(&sources, format!("deb [signed-by={KEYRING}] {ARCHIVE} {SUITE} main\n"))
        .context("cannot write apt's list of sources")?;
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        // It verifies signatures by a script, which needs more than tests may have.
        apt.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir(&home);
        for (name, value) in [
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::State::lists", "lists"),
            ("Dir::Cache", "cache"),
        ] {
            apt.arg("-o").arg(format!("{name}={}", home.join(value).display()));
        }
        // The folder may be where apt's own user does not get to.
        apt.args(["-o", "Dir::Etc::sourceparts=-", "-o", "APT::Sandbox::User=root"]);
        apt.args(["-o", "Acquire::Retries=3", "-o", "APT::Update::Error-Mode=any", "-q"]);
        command::output(apt.args(arguments)).map(drop)
    };
    apt(&["update"])?;
    let wanted = PACKAGES.map(|package| format!("{package}/{SUITE}"));
    apt(&[&["download"], wanted.each_ref().map(String::as_str).as_slice()].concat())?;
    unpack_all(&home, &root).map_err(Error::msg)?;
    for folder in [&lists, &kept] {
        fs::remove_dir_all(folder).with_context(|| format!("cannot clear {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn versions_are_read_as_debian_prints_them() {
        let debian =
            "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)\nCopyright";
        assert_eq!(version_of(debian), Some((10, 0)));
        assert_eq!(version_of("QEMU emulator version 7.2.22 (Debian 1:7.2)"), Some((7, 2)));
        assert_eq!(version_of("QEMU emulator"), None);
    }
}
