//! What a client may have the server map: its memory is its own, but the process's addresses and mappings are everybody's.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Regions that every client may have. Guests without memory hot-plug have four or so.
const OWN_REGIONS: usize = 16;
/// Regions beyond these, of all clients of the process together. One client has as many at the most as it leaves to others.
const SHARED_REGIONS: usize = 4096;

/// How many of the shared ones are taken. One number for the process, as the kernel's limit of mappings is.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

static HOST: OnceLock<u64> = OnceLock::new();

/// Bytes of this host's memory and swap space: no guest has more that it could use. Without a bound where that is not known.
pub(crate) fn host_bytes() -> u64 {
    *HOST.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        sum_of(&text).unwrap_or(u64::MAX)
    })
}

/// Memory and swap space by /proc/meminfo (proc(5)).
fn sum_of(meminfo: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib = line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?;
        kib.checked_mul(1024)
    };
    field("MemTotal")?.checked_add(field("SwapTotal").unwrap_or(0))
}

/// What one client has.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Of the shared regions.
    taken: usize,
}

impl Share {
    /// The client wants these regions, by their sizes, in the place of what it has.
    ///
    /// # Errors
    ///
    /// Says what is too much; then nothing has changed.
    pub(crate) fn change(&mut self, sizes: &[u64]) -> Result<(), String> {
        check_bytes("memory", sizes.iter().fold(0, |sum, size| sum.saturating_add(*size)))?;
        let wanted = sizes.len().saturating_sub(OWN_REGIONS);
        let mine = self.taken;
        let fits = |taken: usize| {
            let others = taken.saturating_sub(mine);
            let left = SHARED_REGIONS.saturating_sub(others);
            (wanted <= mine || wanted <= left / 2).then_some(others + wanted)
        };
        let changed = TAKEN.fetch_update(Relaxed, Relaxed, fits);
        self.taken = changed.map(|_| wanted).map_err(|_| {
            format!(
                "the client shares {} memory regions, and the clients of this data plane have too many already; give the guest fewer, larger \
                 memory devices, or use another data plane",
                sizes.len()
            )
        })?;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.taken, Relaxed);
    }
}

/// Whether a client may share so many bytes.
///
/// # Errors
///
/// Says that it is more than this host has.
pub(crate) fn check_bytes(what: &str, bytes: u64) -> Result<(), String> {
    let most = host_bytes();
    if bytes <= most {
        return Ok(());
    }
    Err(format!(
        "the client shares {bytes} bytes of {what}, and this host has {most} of memory and swap space; give the guest less, or the host more swap space"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_what_the_kernel_says() {
        let text = "MemTotal:       16384 kB\nMemFree: 12 kB\nSwapTotal:  1024 kB\n";
        assert_eq!(sum_of(text), Some(17 << 20));
        assert_eq!(sum_of("MemTotal: 8 kB\n"), Some(8192));
        assert_eq!(sum_of("MemTotal: 99999999999999999999 kB\n"), None);
        assert_eq!(sum_of(""), None);
        assert!((1 << 20..1 << 60).contains(&host_bytes()));
    }

    #[test]
    fn a_client_takes_as_many_regions_as_it_leaves_and_has_some_of_its_own() {
        let mut shares: Vec<Share> = Vec::new();
        for _ in 0..100 {
            let mut share = Share::default();
            let most = (0..=509).rev().find(|count| share.change(&vec![4096; *count]).is_ok());
            assert!(most >= Some(OWN_REGIONS));
            shares.push(share);
        }
        assert!(TAKEN.load(Relaxed) <= SHARED_REGIONS);
        assert!(shares[0].change(&vec![4096; 509]).is_ok(), "what it has stays");
        drop(shares);
        assert!(Share::default().change(&[host_bytes() / 2; 3]).is_err());
        assert!(Share::default().change(&[u64::MAX; 2]).is_err());
        assert_eq!(TAKEN.load(Relaxed), 0);
    }
}
