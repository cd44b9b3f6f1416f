//! What arbitrary code can do in a confined process: the test runs itself again as a process that confines itself as a data plane does, and
//! then tries everything that a guest who has taken it over would try.
#![allow(unsafe_code)] // System calls that no safe wrapper makes, or makes so wrongly.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libc::*;

const FOLDER: &str = "TRUNKLINE_TEST_CONFINED";

/// Runs one of the programs below, in a folder that has: `kept/` (its own), `secret`, a socket that listens, and the descriptor of `disk` as its standard
/// input.
fn run(program: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("kept")).unwrap();
    std::fs::write(path("secret"), "secret").unwrap();
    std::fs::write(path("disk"), [0; 4096]).unwrap();
    let _listener = UnixListener::bind(path("api.sock")).unwrap();
    let disk = File::options().read(true).write(true).open(path("disk")).unwrap();
    // Somebody of the same user, who is not to be harmed.
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", program, "--ignored", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder.path())
        .env("TRUNKLINE_TEST_OTHER", other.id().to_string())
        .stdin(Stdio::from(disk))
        .output()
        .unwrap();
    assert!(other.try_wait().unwrap().is_none(), "a process outside has ended");
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(std::fs::read_to_string(path("secret")).unwrap(), "secret");
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 4, "{names:?}");
    output
}

#[track_caller]
fn passes(program: &str) {
    let output = run(program);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}\n{out}\n{err}", output.status.signal());
    assert!(out.contains("1 passed"), "{out}");
}

fn folder() -> PathBuf {
    PathBuf::from(std::env::var_os(FOLDER).expect("started by another test"))
}

fn other() -> pid_t {
    std::env::var("TRUNKLINE_TEST_OTHER").unwrap().parse().unwrap()
}

/// As `dataplane::run` does it.
fn confine_data_plane() {
    confine::files(&folder().join("kept")).unwrap();
    confine::interfaces().unwrap();
    confine::data_plane().unwrap();
}

/// A call by its number; the error where there is one.
fn call(number: c_long, arguments: &[usize]) -> Result<c_long, c_int> {
    let a = |index: usize| arguments.get(index).copied().unwrap_or(0);
    // SAFETY: pointers among the arguments are of statics and locals that live through the call.
    let result = unsafe { syscall(number, a(0), a(1), a(2), a(3), a(4), a(5)) };
    if result < 0 {
        Err(std::io::Error::last_os_error().raw_os_error().unwrap())
    } else {
        Ok(result)
    }
}

fn denied(path: impl AsRef<Path>) {
    let path = path.as_ref();
    for options in [
        File::options().read(true),
        File::options().write(true),
        File::options().append(true).create(true),
    ] {
        let error = options.open(path).expect_err(&path.display().to_string());
        let missing = !path.exists() && error.raw_os_error() == Some(ENOENT);
        assert!(missing || error.raw_os_error() == Some(EACCES), "{}: {error}", path.display());
    }
}

#[test]
fn code_in_a_data_plane_opens_nothing_that_it_was_not_given() {
    passes("opens_files");
}

#[test]
#[ignore = "runs in a process of its own"]
fn opens_files() {
    let folder = folder();
    let before = File::open(folder.join("secret")).unwrap();
    confine_data_plane();
    let own = std::process::id();
    for path in [
        "/etc/shadow",
        "/etc/passwd",
        "/dev/mem",
        "/dev/kmsg",
        "/proc/self/mem",
        "/proc/self/maps",
        "/proc/self/root/etc/shadow",
    ] {
        denied(path);
    }
    for path in [
        format!("/proc/{}/mem", other()),
        format!("/proc/{own}/environ"),
        format!("/proc/{own}/task/{own}/mem"),
    ] {
        denied(path);
    }
    denied(folder.join("secret"));
    denied(folder.join("new"));
    denied(folder.join("kept/../secret"));
    denied("/dev/shm/trunkline-test-confined");
    std::fs::read_dir("/").unwrap_err();
    std::fs::read_dir(&folder).unwrap_err();
    // By a descriptor that only names it, or of one that is open.
    let flags = (O_PATH | O_CLOEXEC) as usize;
    let secret = std::ffi::CString::new(folder.join("secret").to_str().unwrap()).unwrap();
    let named = call(SYS_openat, &[AT_FDCWD as usize, secret.as_ptr() as usize, flags]).unwrap();
    denied(format!("/proc/self/fd/{named}"));
    denied(format!("/proc/self/fd/{}", before.as_raw_fd()));
    assert_eq!(call(SYS_open_by_handle_at, &[0, 0, 0]), Err(EPERM));
    // Out of the folder, and into it.
    let kept = folder.join("kept");
    std::fs::hard_link(folder.join("secret"), kept.join("link")).unwrap_err();
    std::os::unix::fs::symlink(folder.join("secret"), kept.join("link")).unwrap_err();
    std::fs::rename(folder.join("secret"), kept.join("secret")).unwrap_err();
    std::fs::remove_file(folder.join("secret")).unwrap_err();
    std::fs::remove_file(folder.join("api.sock")).unwrap_err();
    std::fs::create_dir(kept.join("folder")).unwrap_err();
    for number in [
        SYS_mknodat,
        SYS_mkdirat,
        SYS_symlinkat,
        SYS_fchmodat,
        SYS_fchownat,
        SYS_truncate,
        SYS_setxattr,
        SYS_utimensat,
    ] {
        assert_eq!(
            call(number, &[AT_FDCWD as usize, secret.as_ptr() as usize]),
            Err(EPERM),
            "{number}"
        );
    }
    // What it has stays of use: its disk, and its folder as reservations are stored there.
    let mut disk = std::io::stdin().lock();
    assert_eq!(disk.read(&mut [0; 64]).unwrap(), 64);
    let draft = kept.join("u.new");
    let mut file = File::options().write(true).create_new(true).open(&draft).unwrap();
    file.write_all(b"kept").unwrap();
    file.sync_all().unwrap();
    std::fs::rename(&draft, kept.join("u")).unwrap();
    std::fs::hard_link(kept.join("u"), kept.join("u.old")).unwrap();
    std::fs::remove_file(kept.join("u.old")).unwrap();
    File::open(&kept).unwrap().sync_all().unwrap();
    assert_eq!(std::fs::read(kept.join("u")).unwrap(), b"kept");
    before.read_at(&mut [0; 6], 0).unwrap();
}

#[test]
fn code_in_a_data_plane_reaches_nobody() {
    passes("reaches_out");
}

#[test]
#[ignore = "runs in a process of its own"]
fn reaches_out() {
    let folder = folder();
    confine_data_plane();
    for (domain, kind) in [
        (AF_INET, SOCK_STREAM),
        (AF_INET, SOCK_DGRAM),
        (AF_INET6, SOCK_STREAM),
        (AF_UNIX, SOCK_STREAM),
        (AF_UNIX, SOCK_DGRAM),
        (AF_NETLINK, SOCK_RAW),
        (AF_PACKET, SOCK_RAW),
        (AF_VSOCK, SOCK_STREAM),
        (AF_ALG, SOCK_SEQPACKET),
    ] {
        assert_eq!(call(SYS_socket, &[domain as usize, kind as usize]), Err(EPERM), "{domain}");
    }
    UnixStream::connect(folder.join("api.sock")).unwrap_err();
    // A pair of streams it can have, which is how it is answered; one that can be sent elsewhere it cannot.
    let (ours, theirs) = UnixStream::pair().unwrap();
    // SAFETY: numbers and bytes, of which zero is one.
    let mut address: sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = AF_UNIX as sa_family_t;
    let at = folder.join("api.sock");
    for (to, from) in address.sun_path.iter_mut().zip(at.as_os_str().as_encoded_bytes()) {
        *to = *from as c_char;
    }
    let (at, len) = (&raw const address as usize, size_of::<sockaddr_un>());
    let fd = ours.as_raw_fd() as usize;
    assert_eq!(call(SYS_connect, &[fd, at, len]), Err(EPERM));
    assert_eq!(call(SYS_bind, &[fd, at, len]), Err(EPERM));
    assert_eq!(call(SYS_listen, &[fd, 1]), Err(EPERM));
    let mut pair: [RawFd; 2] = [0; 2];
    for kind in [SOCK_DGRAM, SOCK_SEQPACKET] {
        let arguments = [AF_UNIX as usize, kind as usize, 0, pair.as_mut_ptr() as usize];
        assert_eq!(call(SYS_socketpair, &arguments), Err(EPERM));
    }
    let sent = call(SYS_sendto, &[fd, c"x".as_ptr() as usize, 1, 0, at, len]);
    assert!(matches!(sent, Err(EISCONN | EOPNOTSUPP)), "{sent:?}");
    drop(theirs);
}

#[test]
fn code_in_a_data_plane_changes_no_interface() {
    passes("changes_interfaces");
}

#[test]
#[ignore = "runs in a process of its own"]
fn changes_interfaces() {
    // By a socket that hears of interfaces: whether it may, for one that is not there.
    let socket = memory::links::open().unwrap();
    let asked = || {
        let mut message = vec![32, 0, 0, 0];
        message.extend(RTM_DELLINK.to_ne_bytes());
        message.extend(((NLM_F_REQUEST | NLM_F_ACK) as u16).to_ne_bytes());
        message.resize(20, 0);
        message.extend(i32::MAX.to_ne_bytes());
        message.resize(32, 0);
        let (fd, mut answer) = (socket.as_raw_fd() as usize, [0_u8; 256]);
        call(SYS_sendto, &[fd, message.as_ptr() as usize, 32, 0, 0, 0]).unwrap();
        let room = answer.as_mut_ptr() as usize;
        call(SYS_recvfrom, &[fd, room, answer.len(), 0, 0, 0]).unwrap();
        -i32::from_ne_bytes(answer[16..20].try_into().unwrap())
    };
    let may = rustix::thread::capabilities(None).unwrap().effective;
    if may.contains(rustix::thread::CapabilitySet::NET_ADMIN) {
        assert_eq!(asked(), ENODEV);
    }
    confine_data_plane();
    assert_eq!(asked(), EPERM);
    // What there is it may hear.
    assert!(memory::links::Links::new(socket).is_ok());
}

#[test]
fn code_in_a_data_plane_touches_no_other_process() {
    passes("touches_processes");
}

#[test]
#[ignore = "runs in a process of its own"]
fn touches_processes() {
    let ring = uring::Ring::new(&uring::RingConfig { entries: 8, ..Default::default() }).unwrap();
    confine_data_plane();
    let other = other() as usize;
    for signal in [0, SIGTERM, SIGKILL, SIGSTOP] {
        assert_eq!(call(SYS_kill, &[other, signal as usize]), Err(EPERM));
        assert_eq!(call(SYS_tgkill, &[other, other, signal as usize]), Err(EPERM));
        assert_eq!(call(SYS_tkill, &[other, signal as usize]), Err(EPERM));
    }
    assert_eq!(call(SYS_kill, &[usize::MAX, SIGKILL as usize]), Err(EPERM));
    signals_by_a_descriptor();
    assert_eq!(call(SYS_setns, &[usize::MAX, CLONE_NEWNET as usize]), Err(EPERM));
    #[rustfmt::skip]
    let calls = [
        SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_open, SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_rt_sigqueueinfo,
        SYS_execve, SYS_execveat, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot,
        SYS_unshare, SYS_setns, SYS_setuid, SYS_setresuid, SYS_capset, SYS_keyctl, SYS_add_key, SYS_init_module, SYS_finit_module,
        SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_clock_settime, SYS_sethostname, SYS_quotactl, SYS_shmget, SYS_msgget, SYS_semget,
        SYS_mq_open, SYS_memfd_secret, SYS_setpriority, SYS_sched_setscheduler, SYS_setsid, SYS_seccomp, SYS_io_uring_setup,
        SYS_io_setup, SYS_fanotify_init, SYS_inotify_init1, SYS_chdir, SYS_umask,
    ];
    for number in calls {
        assert_eq!(call(number, &[0, 0, 0, 0, 0, 0]), Err(EPERM), "{number}");
    }
    // Processes, by each of the calls that make them.
    assert_eq!(call(SYS_clone, &[SIGCHLD as usize]), Err(EPERM));
    assert_eq!(call(SYS_clone3, &[0, 0]), Err(ENOSYS));
    #[cfg(target_arch = "x86_64")]
    for number in [SYS_fork, SYS_vfork] {
        assert_eq!(call(number, &[]), Err(EPERM));
    }
    Command::new("/bin/true").spawn().unwrap_err();
    // Limits of others, and its own.
    let mut limit = rlimit { rlim_cur: 0, rlim_max: 0 };
    let at = &raw mut limit as usize;
    assert_eq!(call(SYS_prlimit64, &[other, RLIMIT_NOFILE as usize, 0, at]), Err(EPERM));
    assert_eq!(call(SYS_prlimit64, &[0, RLIMIT_NOFILE as usize, at, 0]), Err(EPERM));
    call(SYS_prlimit64, &[0, RLIMIT_NOFILE as usize, 0, at]).unwrap();
    // Code.
    let page = [
        0,
        4096,
        (PROT_READ | PROT_EXEC) as usize,
        (MAP_PRIVATE | MAP_ANONYMOUS) as usize,
        usize::MAX,
        0,
    ];
    assert_eq!(call(SYS_mmap, &page), Err(EPERM));
    let own = touches_processes as fn() as usize & !4095;
    assert_eq!(
        call(SYS_mprotect, &[own, 4096, (PROT_READ | PROT_WRITE | PROT_EXEC) as usize]),
        Err(EPERM)
    );
    assert_eq!(call(SYS_prctl, &[PR_SET_DUMPABLE as usize, 1]), Err(EPERM));
    // Drivers' doors, and what a ring can be told.
    assert_eq!(call(SYS_ioctl, &[0, TIOCSTI as usize, 0]), Err(EPERM));
    assert_eq!(call(SYS_ioctl, &[0, 0x2285 /* SG_IO */, 0]), Err(EPERM));
    for code in [
        0,  /* buffers */
        2,  /* files */
        9,  /* personality */
        11, /* restrictions */
        12, /* enable */
        20, /* ring fds */
    ] {
        assert_eq!(call(SYS_io_uring_register, &[0, code, 0, 0]), Err(EPERM), "{code}");
    }
    // Memory that a client keeps is sealed.
    let memory = call(SYS_memfd_create, &[c"kept".as_ptr() as usize, MFD_ALLOW_SEALING as usize]);
    let seal = [memory.unwrap() as usize, F_ADD_SEALS as usize, F_SEAL_SHRINK as usize];
    call(SYS_fcntl, &seal).unwrap();
    // Its threads and its rings go on.
    drop(ring);
    assert_eq!(std::thread::spawn(|| 7).join().unwrap(), 7);
}

/// The kernel sends a signal to whom a descriptor names when something can be read there: any signal, to any process of the same user.
fn signals_by_a_descriptor() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let told = |command: c_int, argument: c_int| {
        call(SYS_fcntl, &[ours.as_raw_fd() as usize, command as usize, argument as usize])
    };
    let asked = [told(10 /* F_SETSIG */, SIGKILL), told(F_SETOWN, other())];
    // Then it is sent, if that was taken.
    let _ = told(F_SETFL, O_ASYNC);
    theirs.write_all(b"x").unwrap();
    let owner = [1 /* F_OWNER_PID */, other()];
    let by_address = call(
        SYS_fcntl,
        &[ours.as_raw_fd() as usize, 15 /* F_SETOWN_EX */, owner.as_ptr() as usize],
    );
    assert_eq!((asked, by_address), ([Err(EPERM); 2], Err(EPERM)));
    for command in [F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ, F_SETLKW, F_OFD_SETLKW] {
        assert_eq!(told(command, 0), Err(EPERM), "{command}");
    }
}

#[test]
fn every_thread_is_confined_also_those_that_were_there() {
    passes("threads");
}

#[test]
#[ignore = "runs in a process of its own"]
fn threads() {
    let (told, tell) = std::sync::mpsc::channel();
    let (answer, answered) = std::sync::mpsc::channel();
    let earlier = std::thread::spawn(move || {
        tell.recv().unwrap();
        answer.send(call(SYS_socket, &[AF_INET as usize, SOCK_STREAM as usize])).unwrap();
    });
    confine::data_plane().unwrap();
    told.send(()).unwrap();
    assert_eq!(answered.recv().unwrap(), Err(EPERM));
    earlier.join().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
}

#[test]
fn a_control_plane_starts_processes_and_harms_none() {
    passes("controls");
}

#[test]
#[ignore = "runs in a process of its own"]
fn controls() {
    let raw = (SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC) as usize;
    // Whether its user has the right to one.
    let uplink = || call(SYS_socket, &[AF_PACKET as usize, raw, 0]).is_ok();
    let may = uplink();
    confine::control_plane().unwrap();
    // For etcd.
    let tcp = (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC) as usize;
    call(SYS_socket, &[AF_INET as usize, tcp, 0]).unwrap();
    for (domain, kind) in [
        (AF_INET, SOCK_RAW),
        (AF_INET, SOCK_DGRAM),
        (AF_INET6, SOCK_DGRAM),
        (AF_NETLINK, SOCK_RAW),
        (AF_PACKET, SOCK_RAW),
        (AF_PACKET, SOCK_DGRAM),
        (AF_XDP, SOCK_RAW),
    ] {
        assert_eq!(call(SYS_socket, &[domain as usize, kind as usize]), Err(EPERM), "{domain}");
    }
    // One for an uplink is the kernel's to judge, but hears nothing before it is bound.
    assert_eq!(uplink(), may);
    let hears = [AF_PACKET as usize, raw, usize::from((ETH_P_ALL as u16).to_be())];
    assert_eq!(call(SYS_socket, &hears), Err(EPERM));
    assert_ne!(call(SYS_socket, &[AF_XDP as usize, raw, 0]), Err(ENOSYS));
    assert_eq!(call(SYS_socket, &[AF_XDP as usize, raw, 1]), Err(EPERM));
    assert!(memory::links::open().is_ok());
    let other = [AF_NETLINK as usize, raw, NETLINK_AUDIT as usize];
    assert_eq!(call(SYS_socket, &other), Err(EPERM));
    // What gives frames to it is made, and nothing else is done by `bpf`: a size that no kernel knows comes before any right.
    for command in 0..64 {
        let made = [0, 2, 5, 28].contains(&command);
        let answer = call(SYS_bpf, &[command, 0, 1 << 20]);
        assert_eq!(answer == Err(EPERM), !made, "{command}: {answer:?}");
    }
    // A network namespace is the kernel's to judge.
    let none = (-1_isize).cast_unsigned();
    assert_eq!(call(SYS_setns, &[none, CLONE_NEWNET as usize]), Err(EBADF));
    for other in [CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET | CLONE_NEWNS, 0] {
        assert_eq!(call(SYS_setns, &[none, other as usize]), Err(EPERM), "{other:x}");
    }
    #[rustfmt::skip]
    let calls = [
        SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd, SYS_perf_event_open, SYS_mount, SYS_umount2,
        SYS_unshare, SYS_setns, SYS_setuid, SYS_init_module, SYS_kexec_load, SYS_keyctl, SYS_mknodat, SYS_open_by_handle_at,
    ];
    for number in calls {
        assert_eq!(call(number, &[0, 0, 0, 0, 0, 0]), Err(EPERM), "{number}");
    }
    UnixStream::connect(folder().join("api.sock")).unwrap();
    std::fs::read(folder().join("secret")).unwrap();
    // What it starts has the rest of it, and can give up more: a data plane makes its rings.
    assert!(Command::new("sleep").arg("0").status().unwrap().success());
    uring::Ring::new(&uring::RingConfig { entries: 8, ..Default::default() }).unwrap();
    confine_data_plane();
}

#[test]
fn without_landlock_the_rest_holds_and_it_is_said() {
    passes("kernel_without_landlock");
    passes("landlock_switched_off");
}

#[test]
#[ignore = "runs in a process of its own"]
fn kernel_without_landlock() {
    confine_without_landlock(ENOSYS, "the kernel has no Landlock");
}

#[test]
#[ignore = "runs in a process of its own"]
fn landlock_switched_off() {
    confine_without_landlock(EOPNOTSUPP, "Landlock is switched off");
}

/// What an older kernel answers to Landlock's calls is answered by a filter here.
fn confine_without_landlock(error: c_int, words: &str) {
    use seccompiler::SeccompAction::{Allow, Errno};
    let calls = [SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self];
    let rules = calls.map(|call| (call, vec![])).into();
    let (arch, errno) = (std::env::consts::ARCH.try_into().unwrap(), error.cast_unsigned());
    let filter = seccompiler::SeccompFilter::new(rules, Allow, Errno(errno), arch).unwrap();
    seccompiler::apply_filter(&seccompiler::BpfProgram::try_from(filter).unwrap()).unwrap();
    let unconfined = confine::files(&folder().join("kept")).unwrap_err();
    assert!(unconfined.0.contains(words), "{unconfined}");
    confine::data_plane().unwrap();
    // Files are as before, and nothing else is.
    std::fs::read(folder().join("secret")).unwrap();
    assert_eq!(call(SYS_socket, &[AF_UNIX as usize, SOCK_STREAM as usize]), Err(EPERM));
    assert_eq!(call(SYS_kill, &[other() as usize, SIGKILL as usize]), Err(EPERM));
    signals_by_a_descriptor();
    Command::new("/bin/true").spawn().unwrap_err();
}
