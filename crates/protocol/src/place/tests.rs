//! What is at a path stays, unless it is a socket that nobody listens on.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};

fn folder() -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("place-{}-{number}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    folder
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_socket_has_its_permissions_and_serves() {
    let folder = folder();
    let path = folder.join("a.sock");
    let (listener, place) = listen(&path, &Access::of_mode(0o666)).unwrap();
    assert_eq!(mode(&path), 0o666);
    reach(&path).unwrap().write_all(b"x").unwrap();
    let mut byte = [0];
    listener.accept().unwrap().0.read_exact(&mut byte).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no draft is left");
    place.remove();
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn nobody_is_no_owner() {
    let access = |owner: &str| Access { owner: Some(owner.into()), ..Access::of_mode(0o600) };
    let problem = access("4294967295").check().unwrap_err();
    assert!(problem.to_string().contains("is the number of no user"), "{problem}");
    let access = Access { group: Some("4294967295".into()), ..access("4294967294") };
    assert!(access.check().unwrap_err().to_string().contains("no group"));
}

/// Whoever gets through finds it as it is to be: who may use it is said before anybody is listened to.
#[test]
fn nobody_gets_in_before_it_is_said_who_may() {
    const SOCKETS: usize = 2000;
    let folder = folder();
    // Each by a name of its own, so that what is found there is what was knocked at.
    let path = |number: usize| folder.join(format!("{number}.sock"));
    let draft = |number: usize| folder.join(draft(path(number).file_name().unwrap()));
    let now = AtomicUsize::new(0);
    let early = std::thread::scope(|scope| {
        let knocks = scope.spawn(|| {
            let mut early = 0;
            loop {
                let number = now.load(Ordering::Relaxed);
                if number == SOCKETS {
                    return early;
                }
                let through = reach(&draft(number)).is_ok();
                let found = std::fs::metadata(draft(number));
                let found = found.or_else(|_| std::fs::metadata(path(number)));
                early += u32::from(through && found.is_ok_and(|it| it.mode() & 0o777 != 0o600));
            }
        });
        for number in 0..SOCKETS {
            now.store(number, Ordering::Relaxed);
            drop(listen(&path(number), &Access::of_mode(0o600)).unwrap());
        }
        now.store(SOCKETS, Ordering::Relaxed);
        knocks.join().unwrap()
    });
    assert_eq!(early, 0, "got through when others could");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_or_a_link_is_not_replaced() {
    let folder = folder();
    let (file, link) = (folder.join("disk.img"), folder.join("link"));
    std::fs::write(&file, "a disk").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for path in [&file, &link, &folder] {
        let error = listen(path, &Access::of_mode(0o777)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        assert!(error.to_string().contains("no socket"), "{error}");
    }
    // Nor is a file that is called as the draft.
    std::fs::write(folder.join(".b.sock.new"), "a disk").unwrap();
    assert!(listen(&folder.join("b.sock"), &Access::of_mode(0o777)).is_err());
    for name in ["disk.img", ".b.sock.new"] {
        assert_eq!(std::fs::read(folder.join(name)).unwrap(), b"a disk");
    }
    assert_ne!(mode(&file), 0o777, "nobody's permissions were changed through the link");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_socket_in_use_is_not_replaced_and_one_left_behind_is() {
    let folder = folder();
    let path = folder.join("a.sock");
    let (listener, place) = listen(&path, &Access::of_mode(0o600)).unwrap();
    assert_eq!(listen(&path, &Access::of_mode(0o600)).unwrap_err().kind(), ErrorKind::AddrInUse);
    // Full: whoever comes now would wait.
    let mut waiting = Vec::new();
    while let Ok(stream) = reach(&path) {
        waiting.push(stream);
    }
    assert_eq!(reach(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(listen(&path, &Access::of_mode(0o600)).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(listener);
    let (_successor, next) = listen(&path, &Access::of_mode(0o640)).unwrap();
    assert_eq!(mode(&path), 0o640);
    place.remove();
    assert!(path.exists(), "it is the successor's");
    next.remove();
    assert!(!path.exists());
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn a_path_that_just_fits_is_taken() {
    let folder = folder();
    let length = ADDRESS_BYTES_MAX - folder.as_os_str().len() - 1;
    let path = folder.join("s".repeat(length));
    let (_listener, place) = listen(&path, &Access::of_mode(0o600)).unwrap();
    reach(&path).unwrap();
    place.remove();
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn long_names_that_begin_alike_are_made_under_different_ones() {
    let [one, other] = ["a", "b"].map(|end| draft(OsStr::new(&format!("{}{end}", "x".repeat(80)))));
    assert_ne!(one, other);
    assert!(one.as_os_str().len() < ADDRESS_BYTES_MAX);
}

#[test]
fn a_claim_is_held_for_a_life() {
    let folder = folder();
    let socket = folder.join("a.sock");
    assert_eq!(claimant(&socket).unwrap(), None);
    let first = claim(&socket).unwrap();
    assert_eq!(claimant(&socket).unwrap(), Some(std::process::id()));
    let error = claim(&socket).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
    drop(first);
    assert_eq!(claimant(&socket).unwrap(), None);
    claim(&socket).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

/// Given by root; without that right it is said, and nothing is left behind.
#[test]
fn a_socket_belongs_to_whom_it_is_given() {
    let folder = folder();
    let path = folder.join("a.sock");
    let (owner, group) = (Some("65534".to_owned()), Some("daemon".to_owned()));
    let access = Access { mode: 0o640, owner, group };
    if !rustix::process::geteuid().is_root() {
        let error = listen(&path, &access).unwrap_err();
        assert!(error.to_string().contains("user 65534 and group daemon"), "{error}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        std::fs::remove_dir(folder).unwrap();
        return;
    }
    let (_listener, place) = listen(&path, &access).unwrap();
    let of = |path: &Path| {
        let file = std::fs::symlink_metadata(path).unwrap();
        (file.uid(), file.gid(), mode(path))
    };
    let daemon = of(&path).1;
    assert_ne!(daemon, 0);
    assert_eq!(of(&path), (65534, daemon, 0o640));
    place.permit(&Access { group: Some("7".to_owned()), ..access }).unwrap();
    assert_eq!(of(&path), (65534, 7, 0o640));
    // Nobody's any more, it is who made it again.
    place.permit(&Access::of_mode(0o666)).unwrap();
    assert_eq!(of(&path), (0, 0, 0o666));
    // What is there instead is not touched.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    let before = of(&path);
    assert_eq!(place.permit(&Access::of_mode(0o777)).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(of(&path), before);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Whatever it leads to: another's file, or the socket itself.
#[test]
fn permissions_are_not_given_through_a_link() {
    let folder = folder();
    let (path, moved, file) =
        (folder.join("a.sock"), folder.join("moved.sock"), folder.join("disk.img"));
    let (_listener, place) = listen(&path, &Access::of_mode(0o600)).unwrap();
    std::fs::rename(&path, &moved).unwrap();
    std::fs::write(&file, "a disk").unwrap();
    for target in [&file, &moved] {
        let before = mode(target);
        std::os::unix::fs::symlink(target, &path).unwrap();
        let error = place.permit(&Access::of_mode(0o666)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert_eq!(mode(target), before);
        std::fs::remove_file(&path).unwrap();
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn who_is_not_known_is_named_before_anything_is_made() {
    let folder = folder();
    let nobody = Some("no-such-one".to_owned());
    for (access, what) in [
        (Access { owner: nobody.clone(), ..Access::of_mode(0o600) }, "no user `no-such-one`"),
        (Access { group: nobody.clone(), ..Access::of_mode(0o600) }, "no group `no-such-one`"),
    ] {
        assert!(access.check().unwrap_err().to_string().contains(what));
        assert!(listen(&folder.join("a.sock"), &access).unwrap_err().to_string().contains(what));
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "nothing is left");
    std::fs::remove_dir(folder).unwrap();
}
