//! System calls, as seccomp filters.

use std::collections::BTreeMap;

use libc::*;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter_all_threads,
};

use crate::Unconfined;

/// What is done with calls: by number, whatever their arguments, or where one of these conditions holds.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What a data plane calls, whatever the arguments. `openat` and its like are Landlock's to judge. None of these makes a socket, an
/// io_uring or a process, names another process, runs a program, or changes identity, mounts, clocks or modules.
#[rustfmt::skip]
const DATA_PLANE: &[c_long] = &[
    // Files that are open, and what Landlock leaves.
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2,
    SYS_lseek, SYS_fallocate, SYS_ftruncate, SYS_fsync, SYS_fdatasync, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs,
    SYS_fstatfs, SYS_flock, SYS_close, SYS_close_range, SYS_dup, SYS_dup3, SYS_openat, SYS_readlinkat, SYS_faccessat,
    SYS_faccessat2, SYS_unlinkat, SYS_renameat, SYS_renameat2, SYS_linkat, SYS_getcwd,
    // Memory.
    SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk, SYS_memfd_create, SYS_mlock, SYS_munlock, SYS_mincore, SYS_membarrier,
    SYS_get_mempolicy,
    // Threads and time.
    SYS_futex, SYS_set_robust_list, SYS_rseq, SYS_sigaltstack, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_sched_yield, SYS_sched_getaffinity, SYS_getpid, SYS_gettid, SYS_exit, SYS_exit_group, SYS_restart_syscall, SYS_getcpu,
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_getrandom, SYS_getuid,
    SYS_geteuid, SYS_getgid, SYS_getegid, SYS_uname, SYS_sysinfo, SYS_clone3,
    // Waiting.
    SYS_ppoll, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2, SYS_pipe2, SYS_io_uring_enter,
    // Sockets that came as descriptors.
    SYS_accept4, SYS_accept, SYS_sendmsg, SYS_recvmsg, SYS_sendto, SYS_recvfrom, SYS_shutdown, SYS_getsockopt, SYS_setsockopt,
    SYS_getsockname, SYS_getpeername,
];

/// The older names of some of these, which this architecture has too.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD_NAMES: &[c_long] = &[
    SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_unlink, SYS_rename, SYS_link, SYS_dup2, SYS_pipe, SYS_poll, SYS_epoll_wait,
    SYS_epoll_create, SYS_eventfd, SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_NAMES: &[c_long] = &[];

/// Questions to descriptors that a data plane asks. All others wait for a driver to have a defect.
const QUESTIONS: [u64; 4] = [FIONBIO, FIOCLEX, TCGETS, 0x1268 /* BLKSSZGET */];

/// What descriptors are told. Not among it: who is sent a signal, and which, when something happens to one (`F_SETOWN`, `F_SETSIG`), which would reach other
/// processes before Linux 6.12.
const OF_DESCRIPTORS: [u64; 9] = [
    F_DUPFD_CLOEXEC as u64,
    F_GETFD as u64,
    F_SETFD as u64,
    F_GETFL as u64,
    F_SETFL as u64,
    F_OFD_SETLK as u64,
    F_OFD_GETLK as u64,
    F_ADD_SEALS as u64,
    F_GET_SEALS as u64,
];

/// What a ring may be told when it works: which files it has, and how many workers (`linux/io_uring.h`).
const RING_CHANGES: [u64; 3] =
    [6 /* FILES_UPDATE */, 19 /* IOWQ_MAX_WORKERS */, 21 /* UNREGISTER_RING_FDS */];

/// Which of them it is, in the argument.
const RING_CHANGE: u64 = 0x7fff_ffff;

/// What the control plane has no use for. It is inherited by data planes, so nothing that these call at their start.
#[rustfmt::skip]
const NOT_CONTROL_PLANE: &[c_long] = &[
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_process_madvise, SYS_pidfd_getfd, SYS_perf_event_open,
    SYS_userfaultfd, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_move_mount, SYS_open_tree, SYS_fsopen, SYS_fsmount,
    SYS_fsconfig, SYS_fspick, SYS_mount_setattr, SYS_chroot, SYS_unshare, SYS_swapon, SYS_swapoff, SYS_reboot,
    SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_acct, SYS_quotactl, SYS_syslog,
    SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname, SYS_setdomainname, SYS_add_key,
    SYS_request_key, SYS_keyctl, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_personality, SYS_vhangup, SYS_nfsservctl,
    SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_setfsuid, SYS_setfsgid,
    SYS_mknodat, SYS_fanotify_init, SYS_lookup_dcookie,
];

/// What an uplink by AF_XDP needs of `bpf(2)`.
const BPF_OF_UPLINKS: [c_int; 4] = [
    0,  /* MAP_CREATE */
    2,  /* MAP_UPDATE_ELEM */
    5,  /* PROG_LOAD */
    28, /* LINK_CREATE */
];

#[cfg(target_arch = "x86_64")]
const NOT_CONTROL_PLANE_OLD: &[c_long] =
    &[SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_mknod, SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const NOT_CONTROL_PLANE_OLD: &[c_long] = &[];

/// From now on no thread of this process can make a system call that a running data plane does not make: they fail with `EPERM`. To be
/// called when all rings are made: no other is, and each of those has restrictions of its own.
///
/// # Errors
///
/// When the kernel has no seccomp: then nothing has changed.
pub fn data_plane() -> Result<(), Unconfined> {
    let mut rules: Rules = DATA_PLANE.iter().chain(OLD_NAMES).map(|call| (*call, vec![])).collect();
    let own = u64::try_from(rustix::process::getpid().as_raw_nonzero().get()).unwrap_or(0);
    let (unix, stream) = (AF_UNIX as u64, SOCK_STREAM as u64);
    let pair = |flags: c_int| all(vec![equal(0, unix)?, equal(1, stream | flags as u64)?]);
    let thread = CLONE_THREAD as u64;
    let data = PROT_EXEC as u64;
    let limited = (|| {
        // Threads, and no processes.
        rules.insert(SYS_clone, vec![all(vec![masked(0, thread, thread)?])?]);
        // No memory becomes code.
        rules.insert(SYS_mmap, vec![all(vec![masked(2, data, 0)?])?]);
        rules.insert(SYS_mprotect, vec![all(vec![masked(2, data, 0)?])?]);
        // Signals to itself: how a process aborts.
        rules.insert(SYS_tgkill, vec![all(vec![equal(0, own)?])?]);
        // Of itself, to be read only.
        rules.insert(SYS_prlimit64, vec![all(vec![equal(0, 0)?, whole(2, 0)?])?]);
        // Of the calling thread.
        rules.insert(SYS_sched_setaffinity, vec![all(vec![equal(0, 0)?])?]);
        rules.insert(SYS_prctl, any(0, [PR_SET_NAME as u64, PR_GET_NAME as u64])?);
        rules.insert(SYS_ioctl, any(1, QUESTIONS)?);
        rules.insert(SYS_fcntl, any(1, OF_DESCRIPTORS)?);
        // The ring may be named by its descriptor or by its registered number.
        let change = |code| all(vec![masked(1, RING_CHANGE, code)?]);
        let changes: Built<Vec<SeccompRule>> = RING_CHANGES.into_iter().map(change).collect();
        rules.insert(SYS_io_uring_register, changes?);
        // Where answers come from the control plane; a stream cannot be sent anywhere else.
        rules.insert(SYS_socketpair, vec![pair(0)?, pair(SOCK_CLOEXEC)?]);
        Ok(())
    })();
    limited.map_err(|error: seccompiler::BackendError| unconfined(&error))?;
    let refused = SeccompAction::Errno(EPERM as u32);
    // What it is asked to start is in memory, where no filter looks. glibc then takes `clone`.
    let newer = BTreeMap::from([(SYS_clone3, vec![])]);
    let unknown = SeccompAction::Errno(ENOSYS as u32);
    let first = compile(newer, SeccompAction::Allow, unknown)?;
    let second = compile(rules, refused, SeccompAction::Allow)?;
    apply(&[first, second])
}

/// From now on no thread of this process, nor a process that it starts, can trace or look into others, mount, load modules into the kernel, change identity,
/// clocks or names, enter a namespace other than one of networks, make devices, or make a socket other than a Unix one, one of an interface's packets or frames, one that hears of interfaces, or one for TCP: they fail with `EPERM`. Of code for the
/// kernel it can load what `bpf(2)` lets it, for an uplink by AF_XDP.
///
/// # Errors
///
/// When the kernel has no seccomp: then nothing has changed.
pub fn control_plane() -> Result<(), Unconfined> {
    let refused = NOT_CONTROL_PLANE.iter().chain(NOT_CONTROL_PLANE_OLD);
    let mut rules: Rules = refused.map(|call| (*call, vec![])).collect();
    let differs = |argument, from: c_int| {
        SeccompCondition::new(argument, Len::Dword, Op::Ne, u64::from(from.cast_unsigned()))
    };
    // For an uplink: one that hears nothing before it is bound.
    let (packet, raw) = (AF_PACKET as u64, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC);
    let xdp = AF_XDP as u64;
    // What the kernel tells of interfaces.
    let (netlink, route) = (AF_NETLINK as u64, NETLINK_ROUTE);
    // For etcd, as the runtime makes them.
    let (inet, inet6) = (AF_INET as u64, AF_INET6 as u64);
    let tcp = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    let sockets = (|| {
        let known = [AF_UNIX, AF_PACKET, AF_XDP, AF_INET, AF_INET6, AF_NETLINK];
        let unknown: Built<Vec<SeccompCondition>> =
            known.into_iter().map(|family| differs(0, family)).collect();
        Ok(vec![
            all(unknown?)?,
            all(vec![equal(0, inet)?, differs(1, tcp)?])?,
            all(vec![equal(0, inet6)?, differs(1, tcp)?])?,
            all(vec![equal(0, packet)?, differs(1, raw)?])?,
            all(vec![equal(0, packet)?, differs(2, 0)?])?,
            all(vec![equal(0, xdp)?, differs(1, raw)?])?,
            all(vec![equal(0, xdp)?, differs(2, 0)?])?,
            all(vec![equal(0, netlink)?, differs(1, raw)?])?,
            all(vec![equal(0, netlink)?, differs(2, route)?])?,
        ])
    })();
    let sockets = sockets.map_err(|error: seccompiler::BackendError| unconfined(&error))?;
    rules.insert(SYS_socket, sockets);
    // The program that gives an interface's frames to an uplink's sockets: it is made and attached; nothing that is there is looked at or changed.
    let others = BPF_OF_UPLINKS.into_iter().map(|command| differs(0, command)).collect();
    let others = Built::and_then(others, all);
    rules.insert(SYS_bpf, vec![others.map_err(|error| unconfined(&error))?]);
    // Where interfaces of uplinks are; no other namespace.
    let elsewhere = differs(1, CLONE_NEWNET).and_then(|other| all(vec![other]));
    rules.insert(SYS_setns, vec![elsewhere.map_err(|error| unconfined(&error))?]);
    apply(&[compile(rules, SeccompAction::Allow, SeccompAction::Errno(EPERM as u32))?])
}

fn unconfined(error: &dyn std::fmt::Display) -> Unconfined {
    Unconfined(format!("seccomp: {error}"))
}

type Built<T> = Result<T, seccompiler::BackendError>;

fn equal(argument: u8, value: u64) -> Built<SeccompCondition> {
    SeccompCondition::new(argument, Len::Dword, Op::Eq, value)
}

/// As [`equal`], of a pointer.
fn whole(argument: u8, value: u64) -> Built<SeccompCondition> {
    SeccompCondition::new(argument, Len::Qword, Op::Eq, value)
}

fn masked(argument: u8, mask: u64, value: u64) -> Built<SeccompCondition> {
    SeccompCondition::new(argument, Len::Qword, Op::MaskedEq(mask), value)
}

fn all(conditions: Vec<SeccompCondition>) -> Built<SeccompRule> {
    SeccompRule::new(conditions)
}

fn any<const N: usize>(argument: u8, values: [u64; N]) -> Built<Vec<SeccompRule>> {
    values.into_iter().map(|value| all(vec![equal(argument, value)?])).collect()
}

/// A filter: what it does with calls that the rules do not name, and with those that they do.
fn compile(
    rules: Rules,
    otherwise: SeccompAction,
    named: SeccompAction,
) -> Result<BpfProgram, Unconfined> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| unconfined(&error))?;
    let filter = SeccompFilter::new(rules, otherwise, named, arch);
    filter.and_then(BpfProgram::try_from).map_err(|error| unconfined(&error))
}

fn apply(filters: &[BpfProgram]) -> Result<(), Unconfined> {
    filters
        .iter()
        .try_for_each(|filter| apply_filter_all_threads(filter))
        .map_err(|error| unconfined(&error))
}
