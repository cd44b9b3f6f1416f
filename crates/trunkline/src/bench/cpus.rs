//! Which CPUs the two sides of a measurement get.
//!
//! One half of the cores is the server's, the other half the clients'. A core that runs two threads (SMT) is in one half
//! with both, and its second thread is used after all cores have work: two channels on one core are no two cores.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// CPUs of one side, in the order in which they are to be used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Side {
    /// CPUs.
    pub(crate) cpus: Vec<usize>,
    /// How many of them, from the first on, are cores of their own.
    pub(crate) cores: usize,
}

impl Side {
    /// CPUs that the user chose: taken as cores.
    pub(crate) fn chosen(cpus: Vec<usize>) -> Side {
        Side { cores: cpus.len(), cpus }
    }

    /// One thread of each core first, then the others.
    fn of(cores: &[Vec<usize>]) -> Side {
        let threads = cores.iter().map(Vec::len).max().unwrap_or(0);
        let nth = |thread: usize| cores.iter().filter_map(move |core| core.get(thread).copied());
        Side { cpus: (0..threads).flat_map(nth).collect(), cores: cores.len() }
    }
}

/// The CPUs that this process may use.
pub(crate) fn allowed() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Server and clients. With a single core both are on it.
pub(crate) fn halves() -> (Side, Side) {
    split(&cores(&allowed(), Path::new("/sys/devices/system/cpu")))
}

fn split(cores: &[Vec<usize>]) -> (Side, Side) {
    if cores.len() < 2 {
        return (Side::of(cores), Side::of(cores));
    }
    let (server, clients) = cores.split_at(cores.len() / 2);
    (Side::of(server), Side::of(clients))
}

/// The allowed CPUs by core. A kernel that does not tell has one CPU for each core.
fn cores(allowed: &[usize], system: &Path) -> Vec<Vec<usize>> {
    let mut left: BTreeSet<usize> = allowed.iter().copied().collect();
    let mut cores = Vec::new();
    while let Some(first) = left.first().copied() {
        let path = system.join(format!("cpu{first}/topology/thread_siblings_list"));
        let siblings = fs::read_to_string(path)
            .ok()
            .and_then(|text| fabric::units::parse_cpus(text.trim()).ok())
            .unwrap_or_default();
        left.remove(&first);
        let others = siblings.into_iter().filter(|cpu| left.remove(cpu));
        cores.push(std::iter::once(first).chain(others).collect());
    }
    cores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_core_stay_together_and_come_last() {
        let cores = [vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]];
        let (server, clients) = split(&cores);
        assert_eq!(server, Side { cpus: vec![0, 1, 4, 5], cores: 2 });
        assert_eq!(clients, Side { cpus: vec![2, 3, 6, 7], cores: 2 });
    }

    #[test]
    fn a_single_core_is_shared() {
        let (server, clients) = split(&[vec![3]]);
        assert_eq!(server, clients);
        assert_eq!(server.cpus, [3]);
    }

    #[test]
    fn a_machine_that_does_not_tell_has_cores() {
        assert_eq!(cores(&[0, 2], Path::new("/nonexistent")), [[0], [2]]);
    }

    #[test]
    fn this_machine_has_cpus() {
        let all = allowed();
        assert!(!all.is_empty());
        let (server, clients) = halves();
        assert!(!server.cpus.is_empty() && !clients.cpus.is_empty());
        assert!(server.cpus.iter().chain(&clients.cpus).all(|cpu| all.contains(cpu)));
    }
}
