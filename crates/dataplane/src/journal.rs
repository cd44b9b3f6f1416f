//! What the process says of an adapter and its client, in the log.
//!
//! A client causes most of it, as often as it likes: each adapter has an [`Allowance`] of lines, and says how many it left out.
//! A channel never writes to the log, since whoever reads that may be slow: what a channel sees goes through [`Relay`].
//!
//! | line | level |
//! |---|---|
//! | a client connects, begins to use queues, leaves in good order | info |
//! | it leaves otherwise; a message is refused; a queue breaks or cannot start | warn |
//! | a queue starts with commands that an earlier process had in flight | info |
//! | a queue starts or stops otherwise | debug |

use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use protocol::message::ClientStatus;
use tracing::{debug, info, warn};

use crate::lock::locked;

/// Lines that an adapter may cause at once.
const LINES: u32 = 20;
/// After how long it may cause one more.
const REGAIN: Duration = Duration::from_secs(5);

/// Lines that may still be written.
#[derive(Debug)]
struct Allowance {
    left: u32,
    /// When `left` was counted; up to [`REGAIN`] ago.
    counted: Instant,
    left_out: u64,
}

impl Allowance {
    fn new(now: Instant) -> Allowance {
        Allowance { left: LINES, counted: now, left_out: 0 }
    }

    /// Whether a line may be written, and then how many were left out before it.
    fn take(&mut self, now: Instant) -> Option<u64> {
        let since = now.saturating_duration_since(self.counted);
        let regained = (since.as_millis() / REGAIN.as_millis()).min(u128::from(LINES)) as u32;
        if regained == LINES {
            (self.left, self.counted) = (LINES, now);
        } else {
            self.left = (self.left + regained).min(LINES);
            self.counted += regained * REGAIN;
        }
        if self.left == 0 {
            self.left_out += 1;
            return None;
        }
        self.left -= 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// The way of what channels see to the log: a thread of its own, asleep otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Relay(Sender<Broken>);

/// A queue that broke.
#[derive(Debug)]
struct Broken {
    adapter: String,
    queue: u16,
    why: String,
    /// Lines before this one.
    left_out: u64,
}

impl Relay {
    pub(crate) fn start() -> std::io::Result<Relay> {
        let (sender, lines) = mpsc::channel::<Broken>();
        let write = move || {
            for Broken { adapter, queue, why, left_out } in lines {
                say_left_out(&adapter, left_out);
                warn!(adapter, queue, why, "queue broke");
            }
        };
        std::thread::Builder::new().name("log".into()).spawn(write)?;
        Ok(Relay(sender))
    }
}

/// The log of one adapter.
#[derive(Debug)]
pub(crate) struct Journal {
    adapter: String,
    allowance: Mutex<Allowance>,
    relay: Relay,
}

impl Journal {
    pub(crate) fn new(adapter: &str, relay: Relay) -> Journal {
        let allowance = Mutex::new(Allowance::new(Instant::now()));
        Journal { adapter: adapter.to_owned(), allowance, relay }
    }

    /// Whether a line may be written.
    fn may(&self) -> bool {
        let left_out = self.take();
        left_out.inspect(|lines| say_left_out(&self.adapter, *lines)).is_some()
    }

    fn take(&self) -> Option<u64> {
        locked(&self.allowance).take(Instant::now())
    }

    pub(crate) fn connected(&self, client: Option<ClientStatus>, connection: u64) {
        if self.may() {
            let (pid, uid) = (client.map(|who| who.pid), client.map(|who| who.uid));
            info!(adapter = self.adapter, connection, pid, uid, "client connected");
        }
    }

    /// The socket's file was removed, and is there again.
    pub(crate) fn socket_renewed(&self) {
        if self.may() {
            warn!(adapter = self.adapter, "the socket's file was removed; it is made again");
        }
    }

    /// The client's first queue runs.
    pub(crate) fn serves(&self, features: u64, named: &[String]) {
        if self.may() {
            let named = named.join(",");
            info!(adapter = self.adapter, features = %format_args!("{features:#x}"), named, "client uses its queues");
        }
    }

    pub(crate) fn left(&self, queues: u16, why: Option<&str>) {
        if !self.may() {
            return;
        }
        match why {
            Some(why) => warn!(adapter = self.adapter, queues, why, "client left"),
            None => info!(adapter = self.adapter, queues, "client left"),
        }
    }

    pub(crate) fn refused(&self, what: &str) {
        if self.may() {
            warn!(adapter = self.adapter, what, "client refused");
        }
    }

    /// `recovered`: commands that an earlier process had in flight, which are done again.
    pub(crate) fn queue_starts(&self, queue: u16, channel: usize, recovered: u16) {
        let adapter = &self.adapter;
        if recovered == 0 {
            debug!(adapter, queue, channel, "queue starts");
        } else if self.may() {
            info!(
                adapter,
                queue, channel, recovered, "queue starts with commands of an earlier process"
            );
        }
    }

    pub(crate) fn queue_stops(&self, queue: u16, channel: usize) {
        debug!(adapter = self.adapter, queue, channel, "queue stops");
    }

    pub(crate) fn queue_failed(&self, queue: u16, why: &str) {
        if self.may() {
            warn!(adapter = self.adapter, queue, why, "queue cannot start");
        }
    }

    /// Said by a channel.
    pub(crate) fn queue_broke(&self, queue: u16, why: String) {
        // A simulation has one thread.
        if let Some(left_out) = self.take().filter(|_| !cfg!(feature = "sim")) {
            let adapter = self.adapter.clone();
            // The thread ends with the process.
            let _ = self.relay.0.send(Broken { adapter, queue, why, left_out });
        }
    }
}

fn say_left_out(adapter: &str, lines: u64) {
    if lines > 0 {
        warn!(adapter, lines, "its client caused too many lines: left out");
    }
}

/// The process at the other end.
pub(crate) fn peer(stream: &UnixStream) -> Option<ClientStatus> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    // From the outside of our PID namespace there is no number.
    let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).ok()?;
    Some(ClientStatus { pid, uid: peer.uid.as_raw() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_allowance_are_counted() {
        let start = Instant::now();
        let mut allowance = Allowance::new(start);
        for _ in 0..LINES {
            assert_eq!(allowance.take(start), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(allowance.take(start + REGAIN / 2), None);
        }
        assert_eq!(allowance.take(start + REGAIN), Some(7), "the next says how many there were");
        assert_eq!(allowance.take(start + REGAIN), None);
        assert_eq!(allowance.take(start + 3 * REGAIN), Some(1));
        assert_eq!(allowance.take(start + 3 * REGAIN), Some(0));
        assert_eq!(allowance.take(start + 3 * REGAIN), None);
    }

    #[test]
    fn an_allowance_never_grows_beyond_its_size() {
        let start = Instant::now();
        let mut allowance = Allowance::new(start);
        let later = start + 1000 * REGAIN + REGAIN / 3;
        assert_eq!((0..100).filter(|_| allowance.take(later).is_some()).count(), LINES as usize);
        let next = later + REGAIN;
        assert_eq!((0..100).filter(|_| allowance.take(next).is_some()).count(), 1);
    }
}
