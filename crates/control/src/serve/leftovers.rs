//! What earlier servers left in the folders: data planes that no state names, memory and files that no object has.
//!
//! All of it is looked at once, when a server starts and before it tells data planes anything. A data plane in the folder is adopted if
//! the state names it; one that it does not name was being removed when its server died, and is ended, unless it has clients: then
//! it is left alone, and said so. Files of removed objects go, so that no later object of the name finds them.

use super::{ServeError, system};
use crate::link::{Link, LinkError, SocketLink};
use crate::model::Desired;
use crate::model::loss::has_client;
use crate::model::pools;
use crate::model::resolve::{adapter_socket, volume_path};
use crate::paths::Paths;
use crate::supervisor::{Launcher, ProcessLauncher, forget};
use fabric::attribute::Object;
use protocol::message::{Reply, Request, Status};
use protocol::place::claimant;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Whether a file in one of the server's folders is one of its own making.
type Ours = fn(&Path) -> bool;

/// That the folders are this server's, for as long as it lives.
#[derive(Debug)]
pub(super) struct Owner {
    _claim: protocol::place::Claim,
}

/// Claims the folder of the sockets, and sees that the data planes in it belong to the folder of the state.
pub(super) fn claim(paths: &Paths) -> Result<Owner, ServeError> {
    let claim = protocol::place::claim(&paths.api()).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => ServeError::InUse {
            what: format!("the folder {}", paths.run.display()),
            pid: claimant(&paths.api()).ok().flatten().filter(|pid| *pid != 0),
        },
        _ => system("the folder of the sockets")(error),
    })?;
    let note = paths.run.join("trunkline.state");
    let ours = paths.state.as_os_str().as_encoded_bytes();
    let theirs = std::fs::read(&note).unwrap_or_default();
    let living = data_planes(paths).into_iter().find(|name| lives(paths, name));
    if let Some(name) = living.filter(|_| !theirs.is_empty() && theirs != ours) {
        return Err(ServeError::Folder(format!(
            "data plane `{name}` in {} belongs to the state in {}, not to that in {}; start the server of that state, or end \
             its data planes there with `trunkline stop --with-dataplanes`",
            paths.run.display(),
            String::from_utf8_lossy(&theirs),
            paths.state.display()
        )));
    }
    stays(paths)?;
    std::fs::write(&note, ours).map_err(system(note.display().to_string()))?;
    Ok(Owner { _claim: claim })
}

/// Sees that no data plane of this state is left in another folder of sockets, as that of another environment, and notes this one.
fn stays(paths: &Paths) -> Result<(), ServeError> {
    let note = paths.state.join("trunkline.run");
    let before = std::fs::read(&note).unwrap_or_default();
    let ours = paths.run.as_os_str().as_encoded_bytes();
    if before == ours {
        return Ok(());
    }
    if !before.is_empty() {
        let there = Paths { run: OsStr::from_bytes(&before).into(), ..paths.clone() };
        let of = std::fs::read(there.run.join("trunkline.state")).unwrap_or_default();
        let living = data_planes(&there).into_iter().find(|name| lives(&there, name));
        let living = living.filter(|_| of == paths.state.as_os_str().as_encoded_bytes());
        if let Some(name) = living {
            return Err(ServeError::Folder(format!(
                "data plane `{name}` of the state in {} is still there in {}, and this server's sockets were to be in {}; start it with \
                 the environment that it had (XDG_RUNTIME_DIR), or end its data planes there with `trunkline stop --with-dataplanes`",
                paths.state.display(),
                there.run.display(),
                paths.run.display()
            )));
        }
    }
    // Where there is no room for it, that is as it was before.
    if let Err(error) = std::fs::write(&note, ours) {
        tracing::warn!(%error, note = %note.display(), "the folder of the sockets is not noted beside the state");
    }
    Ok(())
}

/// Data planes of which there is a trace: a socket, or a claim.
fn data_planes(paths: &Paths) -> BTreeSet<String> {
    let entries = std::fs::read_dir(&paths.run).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let name = name.strip_prefix("dataplane-")?;
        let name = name.strip_suffix(".sock").or_else(|| name.strip_suffix(".lock"))?;
        Some(name.to_owned())
    });
    names.collect()
}

/// Whether there is a process, answering or not.
fn lives(paths: &Paths, name: &str) -> bool {
    let socket = paths.dataplane(name);
    let claimed = claimant(&socket).is_ok_and(|pid| pid.is_some());
    claimed || !matches!(SocketLink::connect(&socket), Err(LinkError::Absent))
}

/// A data plane's account of itself; nothing if it does not answer.
fn account(link: &mut dyn Link) -> Option<Status> {
    match link.call(&Request::Status, &[]) {
        Ok((Reply::Status(status), _)) => Some(status),
        _ => None,
    }
}

/// Refuses a state without objects beside data planes that serve some: it is not theirs.
pub(super) fn belong(paths: &Paths, desired: &Desired) -> Result<(), ServeError> {
    if !desired.is_empty() {
        return Ok(());
    }
    for name in data_planes(paths) {
        let status = match SocketLink::connect(&paths.dataplane(&name)) {
            Ok(mut link) => account(&mut link),
            Err(LinkError::Absent) => continue,
            Err(_) => None,
        };
        let what = match status {
            Some(status) if status.adapters.is_empty() && status.volumes.is_empty() => continue,
            Some(status) => format!(
                "process {} serves {} volumes and {} adapters",
                status.pid,
                status.volumes.len(),
                status.adapters.len()
            ),
            None => "it lives and does not answer".to_owned(),
        };
        return Err(ServeError::Folder(format!(
            "the state in {} has no objects, but data plane `{name}` is there: {what}. Starting would take all of it away. Bring \
             the state back (`trunkline serve --restore` takes the last good copy), or end the data plane first: `kill` its process",
            paths.state.display()
        )));
    }
    Ok(())
}

/// Ends the data planes that the state does not name. Whether all of them are gone.
pub(super) fn end_data_planes(paths: &Paths, desired: &Desired, program: &Path) -> bool {
    let wanted = desired.dataplane_names().into_iter().map(|name| paths.dataplane(&name));
    // An adapter's name may be such that its socket looks like a data plane's.
    let adapters = desired[Object::Adapter].iter();
    let adapters = adapters.map(|(name, set)| adapter_socket(name, set, paths));
    let wanted: BTreeSet<PathBuf> = wanted.chain(adapters).collect();
    let mut all = true;
    for name in data_planes(paths) {
        // The name of a file may be a short one.
        let socket = paths.dataplane(&name);
        if wanted.contains(&socket) {
            continue;
        }
        let log = paths.dataplane_log(&name);
        let kept = paths.reservations_folder();
        let mut launcher = ProcessLauncher::new(program.to_owned(), socket.clone(), log, kept);
        let gone = match launcher.connect() {
            Ok(mut link) => end(&name, link.as_mut(), &mut launcher),
            Err(LinkError::Absent) => launcher.await_end(true),
            Err(error) => {
                tracing::warn!(dataplane = %name, "no state names this data plane, and {error}: it is killed");
                launcher.await_end(true)
            }
        };
        if gone {
            forget(&socket);
        }
        all &= gone;
    }
    all
}

/// Ends all data planes of a folder that has no server: who asks for that takes the disks of all their clients. Those that were ended.
pub fn end_without_server(paths: &Paths) -> Result<Vec<String>, ServeError> {
    let Ok(run) = paths.run.canonicalize() else { return Ok(Vec::new()) };
    let paths = &Paths { run, ..paths.clone() };
    if data_planes(paths).is_empty() {
        return Ok(Vec::new());
    }
    let _owner =
        protocol::place::claim(&paths.api()).map_err(system("the folder of the sockets"))?;
    let (mut ended, mut alive) = (Vec::new(), Vec::new());
    for name in data_planes(paths).into_iter().filter(|name| lives(paths, name)) {
        let (socket, log) = (paths.dataplane(&name), paths.dataplane_log(&name));
        let kept = paths.reservations_folder();
        let mut launcher = ProcessLauncher::new(PathBuf::new(), socket.clone(), log, kept);
        let gone = match launcher.connect() {
            Ok(mut link) => {
                // Its end is what tells.
                let _ = link.call(&Request::Shutdown, &[]);
                launcher.await_end(false)
            }
            Err(LinkError::Absent) => launcher.await_end(true),
            Err(_) => launcher.await_end(true),
        };
        if gone {
            forget(&socket);
        }
        if gone { &mut ended } else { &mut alive }.push(name);
    }
    if alive.is_empty() {
        return Ok(ended);
    }
    Err(ServeError::Folder(format!("still alive: data planes {}", alive.join(", "))))
}

fn end(name: &str, link: &mut dyn Link, launcher: &mut ProcessLauncher) -> bool {
    let Some(status) = account(link) else { return false };
    let clients = status.adapters.iter().filter(|adapter| has_client(adapter));
    let clients: Vec<&str> = clients.map(|adapter| adapter.spec.name.as_str()).collect();
    if !clients.is_empty() {
        tracing::error!(
            dataplane = %name,
            pid = status.pid,
            "no state names this data plane, and adapters of it have clients: {}; it is left alone. Make it and them part of the \
             state again (`trunkline dataplane create {name} …`), or end its process",
            clients.join(", ")
        );
        return false;
    }
    tracing::warn!(dataplane = %name, pid = status.pid, "no state names this data plane: it is ended");
    // Its end is what tells.
    let _ = link.call(&Request::Shutdown, &[]);
    launcher.await_end(false)
}

/// Whether somebody who lives has locked a file, as data planes do with what they have open.
fn is_locked(path: &Path) -> bool {
    let lock = rustix::fs::FlockOperation::NonBlockingLockShared;
    let file = std::fs::File::open(path);
    file.is_ok_and(|file| rustix::fs::flock(&file, lock) == Err(rustix::io::Errno::WOULDBLOCK))
}

/// Removes memory, reservations and unfinished copies that no object of the state has.
pub(super) fn sweep(paths: &Paths, desired: &Desired) {
    let used: BTreeSet<PathBuf> = desired[Object::Volume]
        .iter()
        .filter_map(|(name, set)| volume_path(name, set, paths))
        .chain(desired[Object::Medium].iter().map(|(name, set)| paths.medium(name, set)))
        .chain(desired[Object::Volume].keys().map(|name| paths.reservations(name)))
        .chain(desired[Object::Pool].values().map(|set| pools::shadow(set, paths)))
        .collect();
    let folder = |path: PathBuf| path.parent().map(Path::to_owned).unwrap_or_default();
    let all: [(PathBuf, Ours); 3] = [
        (folder(paths.ram("any")), |_| true),
        (folder(paths.reservations("any")), |_| true),
        // Whole images may have been put there by hand.
        (paths.state.join("media"), |path| path.extension().is_some_and(|end| end == "part")),
    ];
    for (folder, ours) in all {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if !file || !ours(&path) || used.contains(&path) {
                continue;
            }
            if is_locked(&path) {
                tracing::error!(
                    path = %path.display(),
                    "a data plane that no state names has this open, perhaps for clients: it is left alone. End that process, or start the \
                     server of its state"
                );
                continue;
            }
            match std::fs::remove_file(&path) {
                Ok(()) => {
                    tracing::warn!(path = %path.display(), "left behind by an object that is gone: removed")
                }
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a file of no more use stays")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
