//! A monotonic tick counter for the I/O path.
//!
//! Where the processor's time stamp counter runs at a constant rate in all power states (CPUID 8000_0007h, EDX bit 8) a
//! tick is one of its steps, read in some 20 ns; elsewhere it is a nanosecond of `CLOCK_MONOTONIC`. Ticks of different
//! threads can be compared; ticks of different processes on one machine too.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

#[cfg_attr(feature = "sim", allow(dead_code, reason = "a simulation has its own time"))]
struct Scale {
    tsc: bool,
    per_second: u64,
    /// Nanoseconds per tick in 32.32 fixed point, so that a conversion is one multiplication.
    ns_shift32: u64,
}

/// How long the counter is compared with the kernel's clock, once in a process.
const CALIBRATION: Duration = Duration::from_millis(10);

static SCALE: OnceLock<Scale> = OnceLock::new();
#[cfg_attr(feature = "sim", allow(dead_code, reason = "as above"))]
static START: OnceLock<Instant> = OnceLock::new();

#[cfg(target_arch = "x86_64")]
fn has_constant_tsc() -> bool {
    use std::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has RDTSC; it has no preconditions.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn has_constant_tsc() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc() -> u64 {
    monotonic()
}

#[cfg_attr(feature = "sim", allow(dead_code, reason = "as above"))]
fn monotonic() -> u64 {
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[inline]
fn scale() -> &'static Scale {
    SCALE.get_or_init(|| {
        if cfg!(feature = "sim") || !has_constant_tsc() {
            return Scale { tsc: false, per_second: 1_000_000_000, ns_shift32: 1 << 32 };
        }
        let (begin, first) = (Instant::now(), tsc());
        std::thread::sleep(CALIBRATION);
        let (elapsed, last) = (begin.elapsed(), tsc());
        let ticks = u128::from(last.wrapping_sub(first).max(1));
        let per_second = ticks * 1_000_000_000 / elapsed.as_nanos().max(1);
        let ns_shift32 = (elapsed.as_nanos() << 32) / ticks;
        Scale {
            tsc: true,
            per_second: u64::try_from(per_second).unwrap_or(u64::MAX),
            ns_shift32: u64::try_from(ns_shift32).unwrap_or(u64::MAX),
        }
    })
}

/// Now, in ticks. The first call in a process takes some 10 ms: make it before the I/O begins.
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(feature = "sim")]
    return crate::sim::now_ns();
    #[cfg(not(feature = "sim"))]
    if scale().tsc { tsc() } else { monotonic() }
}

/// Now, for deadlines and timers: `Instant::now`, or what a simulation says.
#[inline]
#[must_use]
pub fn instant() -> Instant {
    #[cfg(feature = "sim")]
    return crate::sim::instant();
    #[cfg(not(feature = "sim"))]
    Instant::now()
}

/// Nanoseconds since the system was started, in which the time that it slept counts (`CLOCK_BOOTTIME`): for what others on other machines count on. Some 40 ns.
#[inline]
#[must_use]
pub fn boot_ns() -> u64 {
    #[cfg(feature = "sim")]
    return crate::sim::now_ns();
    #[cfg(not(feature = "sim"))]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
    }
}

/// Sleeps on this thread: `std::thread::sleep`, or the others of a simulation go on meanwhile.
pub fn sleep(time: Duration) {
    #[cfg(not(feature = "sim"))]
    std::thread::sleep(time);
    #[cfg(feature = "sim")]
    crate::sim::sleep(time);
}

/// Ticks in a second.
#[must_use]
pub fn ticks_per_second() -> u64 {
    scale().per_second
}

/// A span of ticks in nanoseconds; saturates beyond 584 years.
#[inline]
#[must_use]
pub fn to_ns(ticks: u64) -> u64 {
    let ns = (u128::from(ticks) * u128::from(scale().ns_shift32)) >> 32;
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// A span of nanoseconds in ticks.
#[must_use]
pub fn from_ns(ns: u64) -> u64 {
    let ticks = u128::from(ns) * u128::from(scale().per_second) / 1_000_000_000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_never_run_backwards() {
        let mut last = ticks();
        for _ in 0..100_000 {
            let now = ticks();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn conversions_are_inverse_within_rounding() {
        for ns in [0, 1, 1_000, 1_000_000_000, 3_600_000_000_000] {
            let back = to_ns(from_ns(ns));
            assert!(back.abs_diff(ns) <= 2 + ns / 1_000_000, "{ns} became {back}");
        }
    }
}
