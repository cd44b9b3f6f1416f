//! Where things lie: the folder for sockets and the folder for state.

use fabric::attribute::{Attributes, attr};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The longest path that fits a Unix socket's address (`sun_path` less its final zero).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The longest stem of a file that is named after an object: file systems take 255 bytes, and some files are written under a longer
/// name first.
const STEM_BYTES_MAX: usize = 200;
/// What stands for the rest of a name that is too long: a sign that no name has, and a sum over the whole name.
const SUM_BYTES: usize = 17;

/// A name, or as much of it as there is room for and a sum over all of it.
fn stem(name: &str, bytes_max: usize) -> Cow<'_, str> {
    // One with the sign is short already: it was found in a folder.
    if name.len() <= bytes_max || name.contains('~') {
        return name.into();
    }
    let kept = bytes_max.saturating_sub(SUM_BYTES);
    format!("{}~{:016x}", &name[..kept], crate::sum::sum(&[name.as_bytes()])).into()
}

/// Where a system has it.
const SYSFS: &str = "/sys";

/// The folders of a server. The first two may be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Sockets: the API, the data planes, the adapters.
    pub run: PathBuf,
    /// What must survive a restart of the host.
    pub state: PathBuf,
    /// The host's sysfs, with its devices beside it; tests have one of their own.
    pub sys: PathBuf,
}

impl Paths {
    /// Everything in one folder.
    pub fn in_one(dir: impl Into<PathBuf>) -> Paths {
        let run = dir.into();
        Paths { state: run.clone(), run, sys: SYSFS.into() }
    }

    /// The folders of a server that was told none: root's are the system's; others use their own
    /// run-time and state folders.
    pub fn standard() -> Paths {
        if rustix::process::geteuid().is_root() {
            let (run, state) = ("/run/trunkline".into(), "/var/lib/trunkline".into());
            return Paths { run, state, sys: SYSFS.into() };
        }
        let variable = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let home = variable("HOME").unwrap_or_else(|| "/tmp".into());
        let state = variable("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state"));
        let state = state.join("trunkline");
        let run =
            variable("XDG_RUNTIME_DIR").map_or_else(|| state.clone(), |dir| dir.join("trunkline"));
        Paths { run, state, sys: SYSFS.into() }
    }

    /// The API's socket.
    pub fn api(&self) -> PathBuf {
        self.run.join("trunkline.sock")
    }

    /// The socket on which a data plane takes messages.
    pub fn dataplane(&self, name: &str) -> PathBuf {
        self.socket("dataplane-", name)
    }

    /// What a data plane writes when nobody else collects it.
    pub fn dataplane_log(&self, name: &str) -> PathBuf {
        self.state.join(format!("dataplane-{}.log", stem(name, STEM_BYTES_MAX)))
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.state.join("control.redb")
    }

    /// What happened of late.
    pub fn events(&self) -> PathBuf {
        self.state.join("events.jsonl")
    }

    /// The file in which the reservations of a volume's logical unit are kept.
    pub fn reservations(&self, volume: &str) -> PathBuf {
        self.reservations_folder().join(&*stem(volume, STEM_BYTES_MAX))
    }

    /// Where they all are.
    pub fn reservations_folder(&self) -> PathBuf {
        self.state.join("reservations")
    }

    /// The file of an optical medium with these attributes.
    pub fn medium(&self, name: &str, set: &Attributes) -> PathBuf {
        match attr::medium::PATH.of(set) {
            Some(path) if !attr::medium::COPY.value(set) => self.absolute(path),
            _ => self.state.join("media").join(format!("{}.iso", stem(name, STEM_BYTES_MAX))),
        }
    }

    /// An adapter's socket when none was set.
    pub fn adapter(&self, name: &str) -> PathBuf {
        self.socket("", name)
    }

    /// A socket in the run-time folder. Its address has little room: a long name is cut, and made unlike others by a sum.
    fn socket(&self, before: &str, name: &str) -> PathBuf {
        let around = self.run.join(format!("{before}.sock")).as_os_str().len();
        let room = SOCKET_PATH_BYTES_MAX.saturating_sub(around).min(STEM_BYTES_MAX);
        self.run.join(format!("{before}{}.sock", stem(name, room)))
    }

    /// Where the statistics files are, as under `/proc/sys` of the original.
    pub fn stats_folder(&self) -> PathBuf {
        self.run.join("adapter/vfc")
    }

    /// The statistics file of a virtual Fibre Channel adapter.
    pub fn stats_file(&self, name: &str) -> PathBuf {
        self.stats_folder().join(name).join("stats")
    }

    /// The file of a RAM volume when none was set. It must lie in a tmpfs: the run-time folder of a
    /// system is one; elsewhere it is a folder in /dev/shm, whose name is made of the run-time folder's
    /// path so that no two servers have the same.
    pub fn ram(&self, name: &str) -> PathBuf {
        self.ram_where(name, run_is_memory())
    }

    /// The same where /run is in memory, or is not, as in many containers.
    fn ram_where(&self, name: &str, run_is_memory: bool) -> PathBuf {
        let name = &*stem(name, STEM_BYTES_MAX);
        if run_is_memory && self.run.starts_with("/run") {
            return self.run.join("ram").join(name);
        }
        let path = self.run.to_string_lossy();
        let shown: String = path.trim_matches('/').replace('/', "-");
        let start = shown.char_indices().nth_back(39).map_or(0, |(at, _)| at);
        let number = crate::sum::sum(&[self.run.as_os_str().as_encoded_bytes()]);
        PathBuf::from(format!("/dev/shm/trunkline-{}-{number:016x}", &shown[start..])).join(name)
    }

    /// A path out of an attribute: relative ones are taken from the run-time folder.
    pub fn absolute(&self, path: &str) -> PathBuf {
        normal(&self.run.join(path))
    }
}

/// Whether the system has its run-time folder in a tmpfs. That does not change under a server.
fn run_is_memory() -> bool {
    const TMPFS_MAGIC: i128 = 0x0102_1994;
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        rustix::fs::statfs("/run").is_ok_and(|found| i128::from(found.f_type) == TMPFS_MAGIC)
    })
}

/// A path without `.` and with `..` taken back where it can be, so that one file has one name
/// (symbolic links apart).
fn normal(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_name() {
        let paths = Paths::in_one("/run/t");
        assert_eq!(paths.absolute("a.img"), PathBuf::from("/run/t/a.img"));
        assert_eq!(paths.absolute("/data/./x/../a.img"), PathBuf::from("/data/a.img"));
        assert_eq!(paths.absolute("../../../a"), PathBuf::from("/a"));
    }

    #[test]
    fn files_of_long_names_have_short_ones_that_differ() {
        let paths = Paths::in_one("/run/trunkline");
        let uuid = "pvc-0b7f1c5e-92a4-4c1c-a2ff-1d5a0a9b2a11";
        assert_eq!(paths.adapter(uuid), PathBuf::from(format!("/run/trunkline/{uuid}.sock")));
        let [one, other] = ["a", "b"].map(|end| format!("{}{end}", "x".repeat(252)));
        let files = |name: &str| {
            let iso = paths.medium(name, &Attributes::new());
            let sockets = [paths.adapter(name), paths.dataplane(name)];
            let files = [paths.ram(name), paths.reservations(name), iso, paths.dataplane_log(name)];
            (sockets, files)
        };
        let ((sockets, long), (of_other, long_of_other)) = (files(&one), files(&other));
        assert!(sockets.iter().all(|path| path.as_os_str().len() == SOCKET_PATH_BYTES_MAX));
        let short = |path: &PathBuf| path.file_name().is_some_and(|name| name.len() <= 220);
        assert!(long.iter().all(short), "{long:?}");
        assert!(sockets.iter().zip(&of_other).all(|(one, other)| one != other));
        assert!(long.iter().zip(&long_of_other).all(|(one, other)| one != other));
        // What is found in the folder leads back to the same file.
        let found = sockets[1].file_stem().unwrap().to_str().unwrap();
        assert_eq!(paths.dataplane(found.strip_prefix("dataplane-").unwrap()), sockets[1]);
    }

    #[test]
    fn ram_lies_in_a_tmpfs() {
        let system = Paths::in_one("/run/t");
        assert_eq!(system.ram_where("r", true), PathBuf::from("/run/t/ram/r"));
        let ram = system.ram_where("r", false);
        assert!(ram.starts_with("/dev/shm"), "{ram:?}");
        let ram = Paths::in_one("/home/u/t").ram("r");
        assert!(ram.starts_with("/dev/shm") && ram.ends_with("r"), "{ram:?}");
        assert!(ram.to_str().unwrap().starts_with("/dev/shm/trunkline-home-u-t-"), "{ram:?}");
    }
}
