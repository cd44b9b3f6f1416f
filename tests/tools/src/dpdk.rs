//! Programs that use DPDK, of Debian's packages: fetched with apt and unpacked, without being installed.
//!
//! Their packages depend on hundreds of others. What a program and the drivers that it is given load is a part of them. Which they are `ldd` says, and Debian's rule how packages of
//! libraries are named.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::command::text;
use crate::debian::{candidate_version, unpack_all};

/// What makes a program's output come by lines although nobody reads it on a terminal: a part of coreutils.
const BY_LINES: [&str; 2] =
    ["/usr/libexec/coreutils/libstdbuf.so", "/usr/lib/coreutils/libstdbuf.so"];

/// Who fetches.
static FETCHING: Mutex<()> = Mutex::new(());

/// What is wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Packages; the first one's version is that of all.
    pub(crate) packages: &'static [&'static str],
    /// Programs, below the root.
    pub(crate) programs: &'static [&'static str],
    /// Drivers that they load at a start, as their packages begin: a number follows. And as their files do.
    pub(crate) drivers: &'static [(&'static str, &'static str)],
}

/// Programs, ready to run.
#[derive(Debug)]
pub(crate) struct Unpacked {
    pub(crate) root: PathBuf,
    /// Where their drivers are, and beside it the libraries.
    drivers: PathBuf,
}

impl Unpacked {
    /// Takes them from the folder `cache`, or fetches them.
    pub(crate) fn fetch(cache: &Path, wanted: &Wanted) -> Result<Unpacked, String> {
        let Wanted { name, packages, .. } = wanted;
        let version = candidate_version(packages[0])?.replace([':', '/'], "_");
        let home = cache.join(format!("{name}-{version}"));
        // Tests of one program want it together: one of them fetches it.
        let _alone = FETCHING.lock().unwrap_or_else(PoisonError::into_inner);
        if !home.exists() {
            let partial = cache.join(format!("{name}.partial-{}", std::process::id()));
            let fetched = fetch_into(&partial, wanted).map_err(|error| {
                format!("Debian's {name} could not be fetched: {error}\nMend the way to the machine's Debian archive (`apt-get update`)")
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
        Ok(Unpacked { root, drivers })
    }

    /// The command line of a program as it begins. Its output comes by lines, and it loads drivers.
    pub(crate) fn command(
        &self,
        program: &str,
        drivers: &[(&str, &str)],
    ) -> Result<Command, String> {
        let mut preload: Vec<String> = BY_LINES
            .iter()
            .filter(|path| Path::new(path).exists())
            .map(|path| (*path).to_owned())
            .collect();
        for (_, file) in drivers {
            preload.push(file_of(&self.drivers, file)?);
        }
        let mut command = Command::new(self.root.join(program));
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

fn fetch_into(home: &Path, wanted: &Wanted) -> Result<(), String> {
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
    let mut packages: BTreeSet<String> =
        wanted.packages.iter().map(|package| (*package).to_owned()).collect();
    for (package, _) in wanted.drivers {
        packages.insert(numbered(package)?);
    }
    loop {
        download(home, &packages)?;
        let missing = missing(home, wanted)?;
        if missing.is_empty() {
            return Ok(());
        }
        let more: Result<BTreeSet<_>, _> =
            missing.iter().map(|library| package_of(library, &known)).collect();
        let more = more?;
        if more == packages {
            return Err(format!("{missing:?} are not in {more:?}"));
        }
        packages = more;
    }
}

fn download(home: &Path, packages: &BTreeSet<String>) -> Result<(), String> {
    text(Command::new("apt-get").args(["download", "-q"]).args(packages).current_dir(home))?;
    unpack_all(home, home)
}

/// The libraries that are neither here nor on the machine.
fn missing(root: &Path, wanted: &Wanted) -> Result<BTreeSet<String>, String> {
    let drivers = drivers(root)?;
    let mut files: Vec<PathBuf> =
        wanted.programs.iter().map(|program| root.join(program)).collect();
    for (_, file) in wanted.drivers {
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
