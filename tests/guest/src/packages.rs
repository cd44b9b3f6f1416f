//! Programs of a cluster's nodes that no developer's machine shall have: Debian's packages, fetched and unpacked without being installed.
//!
//! Fence agents are Python, and so is a part of its library here. multipathd hears of paths from udev, so that is here, too. What they load of
//! others' libraries is the host's, as with all tools.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::cpio::Archive;
use crate::kit::{add_folder, real_parent};
use anyhow::{Context as _, Error, Result, anyhow, ensure};
use tools::debian::unpack_all;

/// Packages that are wanted for themselves.
const WANTED: &[&str] = &[
    "fence-agents",
    "python3-pexpect",
    "python3-ptyprocess",
    "multipath-tools",
    "liburcu8",
    "libjson-c5",
    "udev",
    // Its rules; the program is a tool.
    "dmsetup",
];
/// What brings Python, by whatever version it has in this release; of all that it depends on, the packages whose names begin so.
const PYTHON: &[&str] = &["python3-minimal", "libpython3-stdlib"];
const PYTHONS_OWN: &[&str] = &["python3", "libpython3", "libexpat", "libffi"];

/// What goes into the guest: folders or single files of the packages.
const INSIDE: &[&str] = &[
    "usr/bin/python3",
    "usr/lib/python3",
    "usr/lib/x86_64-linux-gnu",
    "lib/x86_64-linux-gnu",
    "usr/sbin/fence_scsi",
    "usr/share/fence/fencing.py",
    "sbin/multipath",
    "sbin/mpathpersist",
    "lib/libmpath",
    "lib/libmultipath",
    "lib/multipath/libchecktur",
    "lib/multipath/libprio",
    "bin/udevadm",
    "lib/systemd/systemd-udevd",
    "lib/udev/scsi_id",
    "lib/udev/rules.d/55-dm.rules",
    "lib/udev/rules.d/56-dm-mpath.rules",
    "lib/udev/rules.d/60-multipath.rules",
    "lib/udev/rules.d/95-dm-notify.rules",
];

/// What udev's own rules for disks come to here: a disk is known by what it says of itself. Others would ask programs that no guest has.
const DISKS: &str = "SUBSYSTEM==\"block\", ACTION!=\"remove\", KERNEL==\"sd*\", \
                     IMPORT{program}=\"/lib/udev/scsi_id --export --whitelisted -d $devnode\"\n";

/// The C library asks for it when a thread is cancelled, as multipathd's are, and `ldd` does not name it.
const UNWINDER: &str = "/lib/x86_64-linux-gnu/libgcc_s.so.1";
/// Parts of Python's library that no agent uses.
const OUTSIDE: &[&str] =
    &["lib2to3", "pydoc_data", "unittest", "distutils", "idlelib", "asyncio", "sqlite3", "wsgiref"];

/// Agents of devices that are asked over the Web need it, and all agents load it.
const PYCURL: &str = "class error(Exception):\n    pass\n";

/// Changes when what is made of the same packages does.
const LAYOUT: u32 = 2;

/// The archive that adds them to a guest, from `cache`, or made.
pub(crate) fn cluster(cache: &Path) -> Result<PathBuf> {
    let packages = packages()?;
    let versions = command::text(Command::new("apt-cache").arg("policy").args(&packages))?;
    let mut key = DefaultHasher::new();
    (LAYOUT, &packages, INSIDE, OUTSIDE).hash(&mut key);
    versions
        .lines()
        .filter(|line| line.contains("Candidate: "))
        .for_each(|line| line.hash(&mut key));
    let archive = cache.join(format!("cluster-{:016x}", key.finish()));
    if !archive.exists() {
        let home = tempfile::tempdir_in(cache).context("cannot make a folder for packages")?;
        let root = home.path().join("root");
        let mut apt = Command::new("apt-get");
        command::output(apt.arg("download").args(&packages).current_dir(home.path()))?;
        unpack_all(home.path(), &root).map_err(Error::msg)?;
        let partial = archive.with_extension("partial");
        fs::write(&partial, build(&root)?).context("cannot write the cluster's programs")?;
        fs::rename(&partial, &archive).context("cannot name the cluster's programs")?;
    }
    Ok(archive)
}

fn packages() -> Result<BTreeSet<String>> {
    let mut depends = Command::new("apt-cache");
    depends.args(["depends", "--recurse", "--important"]);
    let listing = command::text(depends.args(PYTHON))
        .context("cannot look up Debian's Python (are the package lists there? apt-get update)")?;
    let own = |name: &&str| PYTHONS_OWN.iter().any(|start| name.starts_with(start));
    let python = listing.lines().filter(|line| !line.starts_with([' ', '<', '|'])).filter(own);
    let wanted = WANTED.iter().copied();
    Ok(python.filter(|name| !name.contains(':')).chain(wanted).map(str::to_owned).collect())
}

fn build(root: &Path) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    let (mut folders, mut libraries) = (BTreeSet::new(), BTreeSet::new());
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.sort();
    for path in &files {
        let inside = path.strip_prefix(root).expect("it was found there");
        let name = inside.to_string_lossy();
        if !INSIDE.iter().any(|start| name.starts_with(start))
            || inside.iter().any(|part| OUTSIDE.iter().any(|outside| part == *outside))
        {
            continue;
        }
        // In the guest `lib` is a link to `usr/lib`.
        let inside = if name.starts_with("usr/") {
            inside.to_owned()
        } else {
            Path::new("usr").join(inside)
        };
        let about =
            path.symlink_metadata().with_context(|| format!("cannot stat {}", path.display()))?;
        let bytes = if about.is_symlink() {
            Vec::new()
        } else {
            fs::read(path).with_context(|| format!("cannot read {}", path.display()))?
        };
        if bytes.starts_with(b"\x7fELF") {
            match libraries_of(path, root)? {
                Ok(found) => libraries.extend(found),
                // A part of Python that nobody here uses.
                Err(_) if name.contains("/lib-dynload/") => continue,
                Err(lacks) => return Err(anyhow!("{name} needs {lacks}, which is not installed")),
            }
        }
        add_folder(&mut archive, &mut folders, inside.parent().unwrap_or(Path::new("")));
        let inside = inside.to_string_lossy();
        if about.is_symlink() {
            let to =
                fs::read_link(path).with_context(|| format!("cannot read {}", path.display()))?;
            archive.symlink(&inside, &to.to_string_lossy());
        } else {
            archive.file(&inside, &bytes, about.permissions().mode() & 0o100 != 0);
        }
    }
    ensure!(folders.contains(Path::new("usr/share/fence")), "the packages have no fence agents");
    libraries.insert(real_parent(Path::new(UNWINDER))?);
    for library in libraries {
        let bytes =
            fs::read(&library).with_context(|| format!("cannot read {}", library.display()))?;
        let inside = library.strip_prefix("/").expect("libraries have absolute paths");
        add_folder(&mut archive, &mut folders, inside.parent().unwrap_or(Path::new("")));
        archive.file(&inside.to_string_lossy(), &bytes, true);
    }
    archive.file("usr/lib/python3/dist-packages/pycurl.py", PYCURL.as_bytes(), false);
    archive.file("usr/lib/udev/rules.d/50-disks.rules", DISKS.as_bytes(), false);
    Ok(archive.finish())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?
    {
        let path = entry.context("cannot list a package")?.path();
        if path.is_dir() && !path.is_symlink() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The host's libraries that a program or library loads, beside those of the packages; or the name of one that is nowhere.
fn libraries_of(path: &Path, root: &Path) -> Result<Result<Vec<PathBuf>, String>> {
    let own = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "lib"].map(|it| root.join(it));
    let own = std::env::join_paths(own).context("a folder's name has a colon")?;
    let listing = command::text(Command::new("ldd").arg(path).env("LD_LIBRARY_PATH", own))?;
    if let Some(line) = listing.lines().find(|line| line.contains("not found")) {
        return Ok(Err(line.split_whitespace().next().unwrap_or("something").to_owned()));
    }
    let words = listing.split_whitespace().filter(|word| word.starts_with('/'));
    let host = words.map(Path::new).filter(|word| !word.starts_with(root));
    Ok(Ok(host.map(real_parent).collect::<Result<_>>()?))
}
