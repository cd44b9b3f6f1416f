//! CPU time of this thread and of another process, and placing threads on CPUs.

use std::fs;
use std::io;

use rustix::thread::CpuSet;
use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread in nanoseconds.
pub(super) fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither is negative for a CPU clock.
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// CPU time of all threads of a process in nanoseconds: from the scheduler's own counters where the kernel has them, else
/// from the process's user and system time, which has a resolution of 10 ms.
pub(super) fn process_ns(pid: u32) -> io::Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        match fs::read_to_string(task?.path().join("schedstat")) {
            Ok(text) => sum += first_number(&text).unwrap_or(0),
            // A thread that ended while we looked, or a kernel without schedstat.
            Err(_) => continue,
        }
    }
    if sum > 0 { Ok(sum) } else { process_ticks_ns(pid) }
}

fn first_number(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

fn process_ticks_ns(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything; utime and stime are the 12th and 13th field after it (proc_pid_stat(5)).
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields =
        fields.split_ascii_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
    let ticks = fields.next().unwrap_or(0) + fields.next().unwrap_or(0);
    Ok(ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

/// Ties the calling thread to one CPU.
pub(super) fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from(rustix::io::Errno::INVAL));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burn() -> u64 {
        let start = thread_ns();
        let mut sum = 0u64;
        while thread_ns() < start + 30_000_000 {
            sum = sum.wrapping_add(1);
        }
        sum
    }

    #[test]
    fn cpu_time_of_this_process_covers_what_this_thread_burnt() {
        let before = process_ns(std::process::id()).expect("own /proc");
        assert!(burn() > 0);
        let after = process_ns(std::process::id()).expect("own /proc");
        assert!(after >= before + 20_000_000, "{before} to {after}");
        assert!(process_ticks_ns(std::process::id()).expect("own /proc") > 0);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        assert!(process_ns(u32::MAX).is_err());
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        assert!(pin(usize::MAX).is_err());
        assert!(pin(CpuSet::MAX_CPU - 1).is_err());
    }
}
