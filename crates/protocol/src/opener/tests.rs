//! A data plane is given what was granted to it, and nothing by any other name.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;

use spec::{FileSpec, RamSpec, UplinkKind, UplinkSpec};

use super::*;
use crate::message::MINOR;

/// A folder with a file, and an opener for it.
struct Bench {
    folder: PathBuf,
    grants: Arc<Mutex<Grants>>,
    witnesses: Arc<Witnesses>,
    opener: Opener,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let folder = std::env::temp_dir().join(format!("opener-{}-{name}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("secret"), "secret").unwrap();
        let grants = Arc::new(Mutex::new(Grants::default()));
        let bench = Bench { folder, grants, witnesses: Arc::default(), opener: Opener::default() };
        bench.come();
        bench
    }

    /// A control plane comes.
    fn come(&self) {
        let line = serve(Arc::clone(&self.grants), Arc::clone(&self.witnesses), Arc::new(NoTokens));
        self.opener.attach(line.unwrap(), MINOR);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn grant(&self, name: &str, read_only: bool) {
        let spec = VolumeSpec::new("v", FileSpec::new(self.path(name)));
        locked(&self.grants).volume(&VolumeSpec { read_only, ..spec });
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

const NEW: OFlags = OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL);

fn refused<T: std::fmt::Debug>(result: io::Result<T>) -> bool {
    result.unwrap_err().to_string().ends_with("the data plane was not given it")
}

#[test]
fn a_file_comes_only_as_it_was_granted() {
    let bench = Bench::new("file");
    let path = bench.path("disk");
    assert!(refused(bench.opener.file(&path, NEW)));
    bench.grant("disk", false);
    let mut file = bench.opener.file(&path, NEW).unwrap();
    file.write_all(b"data").unwrap();
    let taken = bench.opener.file(&path, NEW).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    let odd = bench.opener.file(&path, OFlags::RDWR | OFlags::TRUNC).unwrap_err();
    assert_eq!(odd.raw_os_error(), Some(Errno::INVAL.raw_os_error()));
    let mut text = String::new();
    bench.opener.again(file.as_fd()).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "data");
    bench.opener.sync_folder_of(&path).unwrap();
    // By another name it is another file.
    assert!(refused(bench.opener.file(&bench.path("secret"), OFlags::RDONLY)));
    symlink(bench.path("disk"), bench.path("link")).unwrap();
    assert!(refused(bench.opener.file(&bench.path("link"), OFlags::RDONLY)));
    assert!(refused(bench.opener.remove(&bench.path("secret"))));
    bench.opener.remove(&path).unwrap();
    assert!(!path.exists());
}

#[test]
fn what_is_read_only_stays_so() {
    let bench = Bench::new("read-only");
    bench.grant("secret", true);
    let path = bench.path("secret");
    assert!(refused(bench.opener.file(&path, OFlags::RDWR)));
    assert!(refused(bench.opener.file(&path, OFlags::WRONLY)));
    assert!(refused(bench.opener.remove(&path)));
    let file = bench.opener.file(&path, OFlags::RDONLY).unwrap();
    let again = bench.opener.again(file.as_fd()).unwrap();
    assert!((&again).write_all(b"x").is_err());
}

#[test]
fn a_descriptor_that_only_names_a_file_does_not_become_one_that_reads_it() {
    let bench = Bench::new("names");
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let named = rustix::fs::open(bench.path("secret"), flags, Mode::empty()).unwrap();
    let error = bench.opener.again(named.as_fd()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()));
}

#[test]
fn of_the_kernels_files_those_that_volumes_are_opened_by() {
    let bench = Bench::new("texts");
    assert!(bench.opener.text(Path::new("/proc/locks")).is_ok());
    assert_eq!(bench.opener.text(Path::new("/proc/self/comm")).map_err(|_| ()), Err(()));
    for known in [
        "/proc/1/comm",
        "/sys/dev/block/7:0/queue/discard_max_bytes",
        "/sys/dev/block/259:12/../wwid",
    ] {
        assert!(Grants::text(Path::new(known)).is_ok(), "{known}");
    }
    for other in [
        "/proc/1/mem",
        "/proc/self/environ",
        "/proc/1/../1/comm",
        "/sys/dev/block/7:0/../../../../etc/shadow",
        "/sys/dev/block/../block/7:0/serial",
        "/sys/dev/block/7:0/../../serial",
        "/etc/shadow",
    ] {
        assert!(refused(bench.opener.text(Path::new(other))), "{other}");
    }
}

#[test]
fn sockets_in_the_role_that_they_were_granted_in() {
    let bench = Bench::new("sockets");
    let path = bench.path("a.sock");
    assert!(refused(bench.opener.listen(&path, 0o600)));
    let mut spec = AdapterSpec::new("a", &path, spec::BlockSpec::on("v"));
    locked(&bench.grants).adapter(&spec);
    let (listener, place) = bench.opener.listen(&path, 0o600).unwrap();
    assert!(refused(bench.opener.connect(&path)), "it is to listen there");
    reach(&path).unwrap();
    listener.accept().unwrap();
    spec.socket_role = SocketRole::Client;
    locked(&bench.grants).adapter(&spec);
    bench.opener.connect(&path).unwrap();
    listener.accept().unwrap();
    *locked(&bench.grants) = Grants::default();
    bench.opener.leave(place.clone());
    assert!(path.exists(), "it is not the data plane's any more");
    locked(&bench.grants).own_socket(&path);
    bench.opener.leave(place);
    assert!(!path.exists());
}

#[test]
fn an_interface_as_what_it_was_granted() {
    let bench = Bench::new("interface");
    // No such interface can be: its name is too long.
    let spec = |kind| UplinkSpec { kind, ..UplinkSpec::on("net", "an-interface-of-17") };
    let kinds = [UplinkKind::Tap, UplinkKind::Packet, UplinkKind::Xdp];
    let ask = |kind| match kind {
        UplinkKind::Xdp => bench.opener.xdp(&spec(kind)).map(|opened| opened.keeps.into()),
        _ => bench.opener.uplink(&spec(kind), None, false).map(|one| vec![one]),
    };
    for granted in kinds {
        locked(&bench.grants).uplink(&spec(granted));
        for kind in kinds {
            let answer = ask(kind).unwrap_err().to_string();
            let given = !answer.ends_with("the data plane was not given it");
            assert_eq!(given, kind == granted, "{answer}");
        }
        let mut these = Grants::default();
        these.uplink(&spec(granted));
        locked(&bench.grants).take(&these, &Grants::default());
        assert!(refused(ask(granted)));
    }
}

#[test]
fn an_interface_where_it_was_granted() {
    let bench = Bench::new("namespace");
    let spec = |netns: Option<&str>| {
        let netns = netns.map(PathBuf::from);
        UplinkSpec { netns, ..UplinkSpec::on("net", "an-interface-of-17") }
    };
    let places = [None, Some("/run/netns/no-such"), Some("/dev/null")];
    let ask = |at: Option<&str>| bench.opener.uplink(&spec(at), None, false);
    let link = |at: Option<&str>| bench.opener.link(Interface::of(&spec(at)));
    let links = |at: Option<&str>| bench.opener.links(at.map(Path::new));
    for granted in places {
        let mut these = Grants::default();
        these.uplink(&spec(granted));
        these.links.insert(Interface::of(&spec(granted)));
        locked(&bench.grants).add(&these);
        for place in places {
            let answer = ask(place).unwrap_err().to_string();
            let named = place.is_none_or(|place| answer.contains(place));
            let given = !answer.ends_with("the data plane was not given it") && named;
            assert_eq!(given, place == granted, "{answer}");
            let answer = link(place).unwrap_err();
            let given = !answer.to_string().ends_with("the data plane was not given it");
            assert_eq!(given, place == granted, "{answer}");
            let given = match links(place) {
                Ok(_) => place.is_none(),
                Err(error) => !error.to_string().ends_with("the data plane was not given it"),
            };
            assert_eq!(given, place == granted);
        }
        locked(&bench.grants).take(&these, &Grants::default());
    }
    // One of an earlier version would look into its own namespace.
    let line =
        serve(Arc::clone(&bench.grants), Arc::clone(&bench.witnesses), Arc::new(NoTokens)).unwrap();
    bench.opener.attach(line, KNOWS_NAMESPACES - 1);
    locked(&bench.grants).uplink(&spec(Some("/dev/null")));
    for answer in [
        ask(Some("/dev/null")).unwrap_err(),
        bench.opener.link(Interface::of(&spec(Some("/dev/null")))).unwrap_err(),
        links(None).unwrap_err(),
    ] {
        assert!(answer.to_string().contains("of an earlier version"), "{answer}");
    }
}

#[test]
fn sockets_for_those_for_whom_they_were_granted() {
    use std::os::unix::fs::MetadataExt;
    let bench = Bench::new("access");
    let path = bench.path("a.sock");
    let mut spec = AdapterSpec::new("a", &path, spec::BlockSpec::on("v"));
    spec.socket_mode = 0o640;
    locked(&bench.grants).adapter(&spec);
    let mode = || std::fs::metadata(&path).unwrap().mode() & 0o777;
    // Whatever the data plane asks for.
    let (_listener, place) = bench.opener.listen(&path, 0o666).unwrap();
    assert_eq!(mode(), 0o640);
    spec.socket_mode = 0o600;
    let mut next = Grants::default();
    next.adapter(&spec);
    locked(&bench.grants).add(&next);
    bench.opener.permit(&place).unwrap();
    assert_eq!(mode(), 0o600);
    spec.socket_group = Some("no-such-one".to_owned());
    locked(&bench.grants).adapter(&spec);
    let error = bench.opener.permit(&place).unwrap_err().to_string();
    assert!(error.contains("a.sock: there is no group `no-such-one`"), "{error}");
    *locked(&bench.grants) = Grants::default();
    assert!(refused(bench.opener.permit(&place)));
    assert_eq!(mode(), 0o600);
}

#[test]
fn without_a_control_plane_nothing_is_opened() {
    let bench = Bench::new("away");
    let path = bench.path("memory");
    locked(&bench.grants).volume(&VolumeSpec::new("v", RamSpec::new(&path)));
    let (ours, theirs) = UnixStream::pair().unwrap();
    bench.opener.attach(theirs.into(), MINOR);
    drop(ours);
    let error = bench.opener.file(&path, NEW).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotConnected);
    // The next one is asked again.
    bench.come();
    bench.opener.file(&path, NEW).unwrap();
}

#[test]
fn one_question_that_takes_long_delays_no_other() {
    let bench = Bench::new("long");
    // Whoever opens a FIFO to read it waits for a writer.
    let fifo = bench.path("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::from(0o600), 0)
        .unwrap();
    bench.grant("fifo", false);
    bench.grant("disk", false);
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| bench.opener.file(&fifo, OFlags::RDONLY));
        bench.opener.file(&bench.path("disk"), NEW).unwrap();
        assert!(!waiting.is_finished());
        drop(std::fs::File::options().write(true).open(&fifo).unwrap());
        assert!(waiting.join().unwrap().is_ok());
    });
}

/// A disk that hangs keeps every question about its files.
#[test]
fn many_questions_about_one_folder_leave_answers_for_others() {
    let bench = Bench::new("hung");
    let folder = bench.path("hung");
    std::fs::create_dir(&folder).unwrap();
    let fifo = folder.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::from(0o600), 0)
        .unwrap();
    bench.grant("hung/fifo", false);
    bench.grant("disk", false);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        let (opener, fifo) = (&bench.opener, &fifo);
        for _ in 0..2 * QUESTIONS_MAX {
            let tell = tell.clone();
            threads.spawn(move || tell.send(opener.file(fifo, OFlags::RDONLY).err()).unwrap());
        }
        // Those for which there is no thread are told so at once.
        let half = QUESTIONS_MAX / 2;
        for refused in (0..2 * QUESTIONS_MAX - half).map(|_| told.recv().unwrap()) {
            assert_eq!(refused.and_then(|it| it.raw_os_error()), Some(Errno::AGAIN.raw_os_error()));
        }
        let other = bench.opener.file(&bench.path("disk"), NEW);
        // All that wait are let go, also where something was wrong.
        let writer = std::fs::File::options().write(true).open(fifo).unwrap();
        (0..half).for_each(|_| assert!(told.recv().unwrap().is_none()));
        drop(writer);
        other.unwrap();
    });
    // Nothing of it stays.
    bench.opener.file(&fifo, OFlags::RDONLY | OFlags::NONBLOCK).unwrap();
}

#[test]
fn a_file_that_is_written_has_one_witness_until_it_is_another_file() {
    let bench = Bench::new("witness");
    let path = bench.path("disk");
    let ask = |file: &File| bench.opener.testimony(&path, file.as_fd());
    let inode = |witness: &Testimony| {
        let file = witness.witness.as_ref().unwrap();
        rustix::fs::fstat(file).unwrap().st_ino
    };
    bench.grant("disk", false);
    let file = bench.opener.file(&path, NEW).unwrap();
    let first = ask(&file).unwrap();
    let flags = rustix::fs::fcntl_getfl(first.witness.as_ref().unwrap()).unwrap();
    assert!(!flags.intersects(OFlags::WRONLY | OFlags::RDWR), "it holds no lock of a writer's");
    // Both have moved a position that they share, and no other.
    rustix::fs::seek(first.witness.as_ref().unwrap(), rustix::fs::SeekFrom::Start(7)).unwrap();
    let position = |it: &Testimony| rustix::fs::tell(it.witness.as_ref().unwrap()).unwrap();
    let again = ask(&file).unwrap();
    assert_eq!((inode(&again), position(&again)), (inode(&first), 7), "the very one");
    std::fs::remove_file(&path).unwrap();
    let other = bench.opener.file(&path, NEW).unwrap();
    let new = ask(&other).unwrap();
    assert!(inode(&new) != inode(&first) && position(&new) == 0);
    // What may not be written has none.
    *locked(&bench.grants) = Grants::default();
    bench.grant("disk", true);
    assert!(refused(ask(&other)));
    assert_eq!(bench.witnesses.keep(|path| locked(&bench.grants).writes(path)).len(), 1);
}

#[test]
fn witnesses_of_open_files_are_brought_to_whoever_comes() {
    let mut bench = Bench::new("brought");
    for name in ["open", "closed"] {
        bench.grant(name, false);
    }
    let open = |name| {
        let file = bench.opener.file(&bench.path(name), NEW).unwrap();
        bench.opener.testimony(&bench.path(name), file.as_fd()).unwrap()
    };
    let (kept, closed) = (open("open"), open("closed"));
    drop(closed);
    let seek = |it: &OwnedFd, to| rustix::fs::seek(it, rustix::fs::SeekFrom::Start(to)).unwrap();
    seek(kept.witness.as_ref().unwrap(), 5);
    bench.witnesses = Arc::default();
    bench.come();
    // It asks again, as a successor does, and gets what its predecessor had.
    let file = File::open(bench.path("open")).unwrap();
    let again = bench.opener.testimony(&bench.path("open"), file.as_fd()).unwrap();
    assert_eq!(rustix::fs::tell(again.witness.as_ref().unwrap()).unwrap(), 5);
    let all = bench.witnesses.keep(|_| false);
    assert_eq!(all.len(), 1);
    // The file's lock would be held by a descriptor that writes.
    let writes = File::options().write(true).open(bench.path("open")).unwrap();
    let refused = bench.witnesses.take_back(&bench.path("open"), writes.into(), false);
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(Errno::BADF.raw_os_error()));
    let (pipe, _end) = std::io::pipe().unwrap();
    assert!(bench.witnesses.take_back(&bench.path("open"), pipe.into(), false).is_err());
}

#[test]
fn a_loss_that_is_noted_is_known_until_it_was_told() {
    let bench = Bench::new("noted");
    let path = bench.path("disk");
    bench.grant("disk", false);
    let file = bench.opener.file(&path, NEW).unwrap();
    let ask = || bench.opener.testimony(&path, file.as_fd()).unwrap();
    let first = ask();
    assert!(!first.lost);
    memory::cache::note_loss(first.witness.as_ref().unwrap().as_fd(), true).unwrap();
    drop(first);
    assert!(ask().lost && ask().lost);
    bench.witnesses.told(&path);
    assert!(!ask().lost);
}

#[test]
fn a_loss_that_is_made_up_for_is_known_no_longer() {
    let bench = Bench::new("made-up-for");
    let path = bench.path("disk");
    bench.grant("disk", false);
    let file = bench.opener.file(&path, NEW).unwrap();
    let ask = || bench.opener.testimony(&path, file.as_fd()).unwrap();
    memory::cache::note_loss(ask().witness.unwrap().as_fd(), true).unwrap();
    assert!(ask().lost);
    bench.opener.made_up_for(&path).unwrap();
    assert!(!ask().lost);
    // Of a file that it may not write nobody believes it.
    let other = bench.path("other");
    assert!(bench.opener.made_up_for(&other).is_err());
}

#[test]
fn a_witness_goes_with_its_file_to_the_next_data_plane_and_to_no_other_file() {
    let passing: Arc<Passing> = Arc::default();
    let [one, other] = [(); 2].map(|()| Witnesses::beside(&passing));
    let bench = Bench::new("passing");
    let path = bench.path("disk");
    let make = || OwnedFd::from(File::create_new(&path).unwrap());
    let again = || OwnedFd::from(File::open(&path).unwrap());
    let lose = |witness: &OwnedFd| memory::cache::note_loss(witness.as_fd(), true).unwrap();
    drop(make());
    let wanted = || BTreeSet::from([path.clone()]);
    assert!(passing.want(wanted()).is_empty());
    let (lost, witness) = one.of(&path, &again()).unwrap();
    assert!(!lost);
    lose(&witness);
    assert!(one.keep(|_| false).is_empty(), "it goes on");
    assert!(other.of(&path, &again()).unwrap().0);
    // There and back again, and then nobody is to write it.
    assert!(other.keep(|_| false).is_empty());
    assert!(one.of(&path, &again()).unwrap().0);
    assert!(one.keep(|_| false).is_empty());
    assert_eq!(passing.want(BTreeSet::new()).len(), 1);
    assert!(!other.of(&path, &again()).unwrap().0);
    assert_eq!(other.keep(|_| false).len(), 1);
    // Another file of the name.
    assert!(passing.want(wanted()).is_empty());
    lose(&one.of(&path, &again()).unwrap().1);
    assert!(one.keep(|_| false).is_empty());
    let kept = File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    drop(make());
    assert!(!other.of(&path, &again()).unwrap().0);
    drop(kept);
}
