//! Who wants to know whether interfaces of the host have a carrier.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use protocol::opener::Interface;
use rustix::io::Errno;

use crate::outside::Outside;

/// How often it is asked.
const EVERY: Duration = Duration::from_millis(250);

/// How an interface is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// It has one.
    Up,
    /// It has none.
    Down,
    /// There is no interface.
    Gone,
}

/// Asks for the carrier of what is `asked` for each time, for as long as somebody wants to know; where nothing is, all is well. Who does not answer says nothing new.
/// On a thread of its own, since the question could hang.
pub(crate) fn watch(
    outside: &Arc<Outside>,
    asked: impl Fn() -> Option<Option<Interface>> + Send + 'static,
    told: impl Fn(Carrier) + Send + 'static,
) -> io::Result<()> {
    let outside = Arc::clone(outside);
    let run = move || {
        while let Some(link) = asked() {
            let gone = Some(Errno::NODEV.raw_os_error());
            let carrier = match link.map(|link| outside.link(link)) {
                None | Some(Ok(true)) => Some(Carrier::Up),
                Some(Ok(false)) => Some(Carrier::Down),
                Some(Err(error)) if error.raw_os_error() == gone => Some(Carrier::Gone),
                Some(Err(_)) => None,
            };
            if let Some(carrier) = carrier {
                told(carrier);
            }
            std::thread::sleep(EVERY);
        }
    };
    std::thread::Builder::new().name("link".into()).spawn(run).map(drop)
}
