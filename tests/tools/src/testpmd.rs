//! Debian's testpmd, the traffic generator of DPDK: fetched with apt and unpacked, without being installed.
//!
//! `dpdk-dev`, which has it, depends on hundreds of packages. What the program and its driver of virtio-user load is a quarter of them:
//! 48 packages of 5 MB, unpacked 21 MB, in three seconds. Which they are `ldd` says, and Debian's rule how packages of libraries are named.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::text;
use crate::debian::{candidate_version, unpack_all};

/// The program's package.
const PACKAGE: &str = "dpdk-dev";
const PROGRAM: &str = "usr/bin/dpdk-testpmd";
/// Drivers that it loads at a start, as their packages begin: a number follows. And as their files do.
const DRIVERS: [(&str, &str); 2] =
    [("librte-net-virtio", "librte_net_virtio"), ("librte-mempool-ring", "librte_mempool_ring")];
/// What makes a program's output come by lines although nobody reads it on a terminal: a part of coreutils.
const BY_LINES: [&str; 2] =
    ["/usr/libexec/coreutils/libstdbuf.so", "/usr/lib/coreutils/libstdbuf.so"];

/// The program, ready to run.
#[derive(Debug)]
pub struct Testpmd {
    root: PathBuf,
    /// Where its drivers are, and beside it the libraries.
    drivers: PathBuf,
}

impl Testpmd {
    /// Takes it from the folder `cache`, or fetches it.
    ///
    /// # Errors
    ///
    /// What could not be had, and how to mend it.
    pub fn fetch(cache: &Path) -> Result<Testpmd, String> {
        let home = cache.join(format!("testpmd-{}", version()?));
        if !home.exists() {
            let partial = cache.join(format!("testpmd.partial-{}", std::process::id()));
            let fetched = fetch_into(&partial).map_err(|error| {
                format!("Debian's testpmd could not be fetched: {error}\nMend the way to the machine's Debian archive (`apt-get update`)")
            });
            // Another process may have been first.
            let named = fetched.and_then(|()| match fs::rename(&partial, &home) {
                Err(error) if !home.exists() => Err(failed("name", &home)(error)),
                _ => Ok(()),
            });
            if named.is_err() || partial.exists() {
                let _ = fs::remove_dir_all(&partial);
            }
            named?;
        }
        let root = home.canonicalize().map_err(failed("find", &home))?;
        let drivers = drivers(&root)?;
        Ok(Testpmd { root, drivers })
    }

    /// Its command line, as it begins. Its output comes by lines.
    ///
    /// # Errors
    ///
    /// A part of it is missing.
    pub fn command(&self) -> Result<Command, String> {
        let mut preload: Vec<String> = BY_LINES
            .iter()
            .filter(|path| Path::new(path).exists())
            .map(|path| (*path).to_owned())
            .collect();
        for (_, file) in DRIVERS {
            preload.push(file_of(&self.drivers, file)?);
        }
        let mut command = Command::new(self.root.join(PROGRAM));
        // Plugins that are named on its command line it refuses below a folder that all may write to.
        command.env("LD_PRELOAD", preload.join(" ")).env("LD_LIBRARY_PATH", libraries(&self.root)?);
        command.env("_STDBUF_O", "L");
        Ok(command)
    }
}

fn failed(what: &str, path: &Path) -> impl Fn(std::io::Error) -> String {
    let said = format!("cannot {what} {}", path.display());
    move |error| format!("{said}: {error}")
}

fn version() -> Result<String, String> {
    Ok(candidate_version(PACKAGE)?.replace([':', '/'], "_"))
}

fn fetch_into(home: &Path) -> Result<(), String> {
    // Of a process that had the same number and died.
    let _ = fs::remove_dir_all(home);
    fs::create_dir_all(home).map_err(failed("create", home))?;
    let known = text(Command::new("apt-cache").arg("pkgnames"))?;
    let known: BTreeSet<&str> = known.lines().collect();
    let numbered = |start: &str| {
        let number = |name: &&&str| {
            let rest = name.strip_prefix(start).unwrap_or_default();
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
        };
        let found = known.iter().rfind(number);
        found.map(|name| (*name).to_owned()).ok_or_else(|| format!("apt knows no {start}"))
    };
    let mut packages = BTreeSet::from([PACKAGE.to_owned()]);
    for (package, _) in DRIVERS {
        packages.insert(numbered(package)?);
    }
    loop {
        download(home, &packages)?;
        let missing = missing(home)?;
        if missing.is_empty() {
            return Ok(());
        }
        let wanted: Result<BTreeSet<_>, _> =
            missing.iter().map(|library| package_of(library, &known)).collect();
        let wanted = wanted?;
        if wanted == packages {
            return Err(format!("{missing:?} are not in {wanted:?}"));
        }
        packages = wanted;
    }
}

fn download(home: &Path, packages: &BTreeSet<String>) -> Result<(), String> {
    text(Command::new("apt-get").args(["download", "-q"]).args(packages).current_dir(home))?;
    unpack_all(home, home)
}

/// The libraries that are neither here nor on the machine.
fn missing(root: &Path) -> Result<BTreeSet<String>, String> {
    let drivers = drivers(root)?;
    let mut files = vec![root.join(PROGRAM)];
    for (_, file) in DRIVERS {
        files.push(drivers.join(file_of(&drivers, file)?));
    }
    let mut ldd = Command::new("ldd");
    let listing = text(ldd.args(&files).env("LD_LIBRARY_PATH", libraries(root)?))?;
    Ok(not_found(&listing))
}

fn not_found(listing: &str) -> BTreeSet<String> {
    let names = listing.lines().filter_map(|line| line.trim().strip_suffix(" => not found"));
    names.map(str::to_owned).collect()
}

/// The package of a library, by its name for the linker.
fn package_of(library: &str, known: &BTreeSet<&str>) -> Result<String, String> {
    // The drivers of one vendor's cards, which the program names although it has none.
    if library.starts_with("libmlx") {
        return Ok("ibverbs-providers".to_owned());
    }
    let (name, version) = library.split_once(".so.").unwrap_or((library, ""));
    let name = name.replace('_', "-").to_lowercase();
    let between = if name.ends_with(|last: char| last.is_ascii_digit()) { "-" } else { "" };
    let name = format!("{name}{between}{version}");
    // Debian 13 has renamed those in which a moment has 64 bits.
    let names = [name.clone(), format!("{name}t64")];
    let found = names.into_iter().find(|name| known.contains(name.as_str()));
    found.ok_or_else(|| format!("apt knows no {name} with {library}"))
}

/// The folder of the drivers: `usr/lib/TRIPLET/dpdk/pmds-VERSION`.
fn drivers(root: &Path) -> Result<PathBuf, String> {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let found = inside(&root.join("usr/lib"))
        .iter()
        .flat_map(|triplet| inside(&triplet.join("dpdk")))
        .find(|folder| {
            folder.file_name().is_some_and(|it| it.to_string_lossy().starts_with("pmds-"))
        });
    found.ok_or_else(|| format!("{} has no drivers of DPDK", root.display()))
}

/// A driver's file in that folder, by the name that the linker knows.
fn file_of(drivers: &Path, start: &str) -> Result<String, String> {
    let entries = fs::read_dir(drivers).map_err(failed("list", drivers))?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let found = names.filter(|name| name.starts_with(start)).min_by_key(String::len);
    found.ok_or_else(|| format!("{} has no {start}", drivers.display()))
}

fn libraries(root: &Path) -> Result<OsString, String> {
    let drivers = drivers(root)?;
    let beside = drivers.ancestors().nth(2).ok_or("no folder of libraries")?;
    let triplet = beside.file_name().ok_or("no folder of libraries")?;
    let folders = [beside.to_owned(), drivers.clone(), root.join("lib").join(triplet)];
    std::env::join_paths(folders).map_err(|error| format!("{}: {error}", root.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_lead_to_their_packages() {
        let known =
            ["librte-eal23", "librte-net-mlx5-23", "libnl-3-200", "libpcap0.8t64", "libfdt1"];
        let known = BTreeSet::from(known);
        for (library, package) in [
            ("librte_eal.so.23", "librte-eal23"),
            ("librte_net_mlx5.so.23", "librte-net-mlx5-23"),
            ("libnl-3.so.200", "libnl-3-200"),
            ("libpcap.so.0.8", "libpcap0.8t64"),
            ("libfdt.so.1", "libfdt1"),
            ("libmlx5.so.1", "ibverbs-providers"),
        ] {
            assert_eq!(package_of(library, &known).as_deref(), Ok(package));
        }
        let unknown = package_of("libgone.so.7", &known).unwrap_err();
        assert_eq!(unknown, "apt knows no libgone7 with libgone.so.7");
    }

    #[test]
    fn what_is_missing_is_read_as_ldd_prints_it() {
        let listing = "/root/usr/bin/dpdk-testpmd:\n\tlibm.so.6 => /lib/libm.so.6 (0x1)\n\
                       \tlibrte_eal.so.23 => not found\n\tlibnuma.so.1 => not found\n";
        let missing = not_found(listing);
        assert_eq!(missing.into_iter().collect::<Vec<_>>(), ["libnuma.so.1", "librte_eal.so.23"]);
    }
}
