//! Network namespaces: interfaces of another one than that of the process.
//!
//! A namespace is a thread's. What has to do with another one is done by a thread that enters it, makes descriptors, which stay there, and ends: no other
//! thread is ever elsewhere, nor what it starts.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::interface::result;

/// Does something in a network namespace, such as `/run/netns/NAME`; without one, here.
///
/// # Errors
///
/// Those of what is done. Those of entering the namespace say so in words and have no number: there is none (`NotFound`), the file is something else (`InvalidInput`), or
/// the process has no `CAP_SYS_ADMIN` there and in its own user namespace (`PermissionDenied`).
pub fn within<T: Send>(
    namespace: Option<&Path>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let Some(path) = namespace else { return work() };
    let inside = || enter(path).and_then(|()| work());
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("namespace".to_owned());
        match thread.spawn_scoped(scope, inside)?.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// The calling thread is in it from now on.
fn enter(path: &Path) -> io::Result<()> {
    let failed = |error: &io::Error, why: &str| {
        let what = format!("the network namespace {}: {error}{why}", path.display());
        io::Error::new(error.kind(), what)
    };
    // Whatever the path names, its opening waits for nobody.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|error| failed(&error, ""))?;
    // SAFETY: a descriptor that is open and a number; nothing of this process's memory.
    let entered = result(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) });
    let why = |error: &io::Error| match error.raw_os_error() {
        Some(libc::EPERM) => "; who enters it needs CAP_SYS_ADMIN",
        Some(libc::EINVAL) => "; it is none",
        _ => "",
    };
    entered.map(drop).map_err(|error| failed(&error, why(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_namespace_is_told_and_not_waited_for() {
        assert_eq!(within(None, || Ok(7)).unwrap(), 7);
        let enters = |path: &str| within(Some(Path::new(path)), || Ok(())).unwrap_err();
        let missing = enters("/run/netns/no-such");
        assert_eq!((missing.kind(), missing.raw_os_error()), (io::ErrorKind::NotFound, None));
        assert!(missing.to_string().contains("/run/netns/no-such"), "{missing}");
        for other in ["/dev/null", "/proc/self/ns/uts", "/"] {
            let error = enters(other);
            assert_eq!(error.raw_os_error(), None);
            assert!(error.to_string().contains(other), "{error}");
        }
    }
}
