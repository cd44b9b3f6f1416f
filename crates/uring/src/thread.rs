//! How the kernel shares a CPU between the threads of a data plane: those that do I/O come before those that make ready for it.
//!
//! Both kinds have the same weight, and so their part of a CPU in the long run; what differs is who waits for whom at a wake-up. No
//! privilege is needed for any of it, nothing depends on it, and a thread hands on what it has to those that it starts.

/// The slice of a thread that does I/O, in nanoseconds: the least that the kernel takes. Where one wakes it does not wait for the end of a
/// slice of the usual 3 ms (from Linux 6.12; an older kernel ignores it).
const SLICE_NS: u64 = 100_000;

/// Has the calling thread, which does I/O, take the CPU soon after it wakes.
pub fn first() {
    ask(libc::SCHED_OTHER, SLICE_NS);
}

/// Has the calling thread never take the CPU from another in the middle of its slice: for what maps memory, or makes files.
pub fn behind() {
    ask(libc::SCHED_BATCH, 0);
}

fn ask(policy: i32, slice_ns: u64) {
    let attr = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: policy as u32,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: slice_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the structure is valid for the call, has its own size in it, and the kernel keeps no pointer to it.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
}
