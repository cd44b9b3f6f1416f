//! Where things lie: the folder for sockets and the folder for state.

use fabric::attribute::{Attributes, attr};
use std::path::{Path, PathBuf};

/// The longest path that fits a Unix socket's address (`sun_path` less its final zero).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

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
        self.run.join(format!("dataplane-{name}.sock"))
    }

    /// What a data plane writes when nobody else collects it.
    pub fn dataplane_log(&self, name: &str) -> PathBuf {
        self.state.join(format!("dataplane-{name}.log"))
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
        self.reservations_folder().join(volume)
    }

    /// Where they all are.
    pub fn reservations_folder(&self) -> PathBuf {
        self.state.join("reservations")
    }

    /// The file of an optical medium with these attributes.
    pub fn medium(&self, name: &str, set: &Attributes) -> PathBuf {
        match attr::medium::PATH.of(set) {
            Some(path) if !attr::medium::COPY.value(set) => self.absolute(path),
            _ => self.state.join("media").join(format!("{name}.iso")),
        }
    }

    /// An adapter's socket when none was set.
    pub fn adapter(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.sock"))
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
        if self.run.starts_with("/run") {
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
    fn ram_lies_in_a_tmpfs() {
        assert_eq!(Paths::in_one("/run/t").ram("r"), PathBuf::from("/run/t/ram/r"));
        let ram = Paths::in_one("/home/u/t").ram("r");
        assert!(ram.starts_with("/dev/shm") && ram.ends_with("r"), "{ram:?}");
        assert!(ram.to_str().unwrap().starts_with("/dev/shm/trunkline-home-u-t-"), "{ram:?}");
    }
}
