//! The client's connection, as it is seen by others than the adapter's thread, which listens to it.
//!
//! A client is not to find its connection closed before its queues have stopped: QEMU drops what a network card has in its ring when that happens, and two
//! would use the ring at once. So who removes an adapter has its thread listen no more, and that closes the connection in the end.

use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::lock::locked;

/// How long a client may take to end a message when its adapter is removed.
const MESSAGE: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Connection {
    /// While somebody listens to it.
    stream: Mutex<Option<UnixStream>>,
    /// Nobody does any more.
    left: Condvar,
}

impl Connection {
    /// The adapter's thread listens from now on.
    pub(super) fn begins(&self, stream: &UnixStream) {
        *locked(&self.stream) = stream.try_clone().ok();
    }

    /// It listens no more.
    pub(super) fn is_left(&self) {
        *locked(&self.stream) = None;
        self.left.notify_all();
    }

    /// Waits until nobody listens, after the thread was told so. A client that is in the middle of a message is not waited for.
    pub(super) fn end(&self) {
        let stream = locked(&self.stream);
        let left = self.left.wait_timeout_while(stream, MESSAGE, |stream| stream.is_some());
        if let Some(stream) = &*left.expect("a panic ends the process").0 {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}
