//! The file in which a logical unit's persistent reservations survive (APTPL, SPC-4, 5.13.5).
//!
//! A fence that is lost without a word lets a server that was shut out write again. So a file that cannot be understood is never
//! taken for an empty one: whoever reads it learns what is wrong and what mends it.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use protocol::message::{Failure, FailureCode};
use scsi::Persistent;

mod steps;

/// More bytes than any state has.
const BYTES_MAX: u64 = 1 << 20;

/// Reads what was kept for a unit. There is no file: nothing was.
///
/// # Errors
///
/// When the file cannot be read, or is damaged, or was written by a later version.
pub(crate) fn read(unit: &str, path: &Path) -> Result<Persistent, Failure> {
    let refused = |what: String, help: String| Failure {
        code: FailureCode::System,
        message: format!("unit {unit}: the kept reservations in {}: {what}", path.display()),
        help: Some(help),
    };
    let long = std::fs::metadata(path).is_ok_and(|found| found.len() > BYTES_MAX);
    let bytes = match std::fs::read(path) {
        _ if long => Vec::new(),
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // A folder that is not there, or cannot be synced, has kept nothing.
            let _ = steps::settle(folder_of(path), sync_all);
            return Ok(Persistent::default());
        }
        Err(error) => {
            let help = "let the data plane's user read the file, and put the unit again".to_owned();
            return Err(refused(error.to_string(), help));
        }
    };
    // Of a process that died before it was synced: whoever is told of it now relies on it.
    steps::settle(folder_of(path), sync_all).map_err(|error| {
        let help =
            "see to it that the file system can be written to, and put the unit again".to_owned();
        refused(format!("they cannot be brought to the disk: {error}"), help)
    })?;
    Persistent::decode(&bytes).map_err(|error| {
        let help = format!(
            "make sure that no server is alive that the reservations shut out; then `rm {}`, and the unit starts without reservations",
            path.display()
        );
        refused(error.to_string(), help)
    })
}

/// Replaces what is kept: after an error it is what it was before. When this returns, it survives a power loss.
pub(crate) fn write(path: &Path, state: &Persistent) -> std::io::Result<()> {
    if memory::planted("kept-nowhere") {
        return Ok(());
    }
    let link = |from: &Path, to: &Path| std::fs::hard_link(from, to);
    write_and(path, state, link, sync_all)
}

fn sync_all(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// With `sync` for the folder: it may fail when the new state is in its place already, where a later start would find it. Then the old one is put back,
/// which `link` has given another name, or a copy of it where the file system has no hard links; and brought to the disk, if that can be.
fn write_and(
    path: &Path,
    state: &Persistent,
    link: impl Fn(&Path, &Path) -> std::io::Result<()>,
    sync: impl Fn(&Path) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let folder = folder_of(path);
    let mut draft = path.as_os_str().to_owned();
    // No name of an object has this sign.
    draft.push("~new");
    let draft = Path::new(&draft);
    let mut file = steps::create(draft)?;
    steps::write(&mut file, &state.encode())?;
    steps::sync(&file)?;
    let mut old = path.as_os_str().to_owned();
    old.push("~old");
    let old = Path::new(&old);
    let kept = match steps::link(path, old, &link) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // Of a process that died here: what is in place is the later one.
            steps::remove(old)?;
            steps::link(path, old, &link)
        }
        other => other,
    };
    let first = match kept {
        Ok(()) => false,
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(_) => match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(error) => return Err(error),
            Ok(bytes) => {
                // It may be another name of what is in place, which is not to be cut.
                match steps::remove(old) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                let mut copy = steps::create(old)?;
                steps::write(&mut copy, &bytes)?;
                steps::sync(&copy)?;
                false
            }
        },
    };
    steps::rename(draft, path)?;
    let synced = steps::sync_folder(folder, &sync);
    match (&synced, first) {
        (Ok(()), true) => {}
        (Ok(()), false) => drop(steps::remove(old)),
        (Err(_), first) => {
            if first {
                steps::remove(path)?;
            } else {
                steps::rename(old, path)?;
            }
            // Else the new one might be there after a power loss, though its client was told that it is not.
            let _ = steps::sync_folder(folder, &sync);
        }
    }
    steps::crash_point();
    synced
}

#[cfg(test)]
mod tests {
    use super::*;
    use scsi::{InitiatorId, NexusId, Registration, Reservation, ReservationType};

    fn state() -> Persistent {
        let nexus = NexusId { initiator: InitiatorId::Fc(0xc050_7600_0000_0001), port: 1 };
        let reservation = Reservation { kind: ReservationType::WriteExclusive, holder: nexus };
        let registrations = vec![Registration { nexus, key: 0xabcd, all_ports: false }];
        Persistent { registrations, reservation: Some(reservation) }
    }

    #[test]
    fn what_was_written_is_read_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lu0.pr");
        assert_eq!(read("lu0", &path), Ok(Persistent::default()));
        write(&path, &state()).unwrap();
        assert_eq!(read("lu0", &path), Ok(state()));
        write(&path, &Persistent::default()).unwrap();
        assert_eq!(read("lu0", &path), Ok(Persistent::default()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_damaged_file_is_never_taken_for_no_reservations() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lu0.pr");
        let whole = state().encode();
        for len in 0..whole.len() {
            std::fs::write(&path, &whole[..len]).unwrap();
            let failure = read("lu0", &path).expect_err("damaged");
            assert!(failure.message.contains("unit lu0"), "{failure:?}");
            assert!(failure.help.unwrap().contains("rm "));
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            std::fs::write(&path, &bytes).unwrap();
            assert!(read("lu0", &path).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_store_that_fails_at_the_very_end_is_not_found_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lu0.pr");
        let failed = || Err(std::io::Error::other("the folder's disk is gone"));
        let hard = |from: &Path, to: &Path| std::fs::hard_link(from, to);
        let none = |from: &Path, _: &Path| match from.exists() {
            true => Err(std::io::Error::from(ErrorKind::PermissionDenied)),
            false => Err(ErrorKind::NotFound.into()),
        };
        for link in [&hard as &dyn Fn(&Path, &Path) -> _, &none] {
            for kept in [Persistent::default(), state()] {
                assert!(write_and(&path, &state(), link, |_| failed()).is_err());
                assert_eq!(read("lu0", &path), Ok(Persistent::default()));
                assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
                write(&path, &kept).unwrap();
                assert!(write_and(&path, &Persistent::default(), link, |_| failed()).is_err());
                assert_eq!(read("lu0", &path), Ok(kept));
                assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
                std::fs::remove_file(&path).unwrap();
            }
        }
    }

    #[test]
    fn what_is_put_back_is_brought_to_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lu0.pr");
        let syncs = std::cell::Cell::new(0);
        let link = |from: &Path, to: &Path| std::fs::hard_link(from, to);
        let sync = |_: &Path| {
            // What is in place at the second one is what was there before.
            syncs.set(syncs.get() + 1);
            assert_eq!(read("lu0", &path).unwrap() == state(), syncs.get() == 1);
            Err(std::io::Error::other("the folder's disk is gone"))
        };
        assert!(write_and(&path, &state(), link, sync).is_err());
        assert_eq!(syncs.get(), 2);
    }

    #[test]
    fn another_name_of_what_is_kept_is_not_cut_where_there_are_no_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lu0.pr");
        let none = |_: &Path, _: &Path| Err(std::io::Error::from(ErrorKind::PermissionDenied));
        let failed = |_: &Path| Err(std::io::Error::other("the folder's disk is gone"));
        assert!(write_and(&path, &state(), none, sync_all).is_ok(), "nothing was kept");
        assert_eq!(read("lu0", &path), Ok(state()));
        // Of a process that died.
        std::fs::hard_link(&path, folder.path().join("lu0.pr~old")).unwrap();
        let before = File::open(&path).unwrap();
        assert!(write_and(&path, &Persistent::default(), none, failed).is_err());
        assert_eq!(before.metadata().unwrap().len(), state().encode().len() as u64);
        assert_eq!(read("lu0", &path), Ok(state()));
    }

    #[test]
    fn what_could_not_be_written_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lu0.pr");
        write(&path, &state()).unwrap();
        // The draft's place is taken by a folder.
        std::fs::create_dir(folder.path().join("lu0.pr~new")).unwrap();
        assert!(write(&path, &Persistent::default()).is_err());
        assert_eq!(read("lu0", &path), Ok(state()));
        assert!(write(&folder.path().join("none/lu0.pr"), &state()).is_err());
    }
}
