//! Leases in etcd, kept for data planes: who bridges a VLAN, where partners are on two hosts ([`protocol::opener::Tokens`]).
//!
//! ```text
//!  data plane ── Wants ──► Keeper ─► one thread a holder:   look, one step, look, …
//!             ◄── Holds ──            Session (pure) ◄──► Etcd ──► /v3/kv/txn, /v3/lease/grant
//! ```
//!
//! What is promised: whoever is told that it holds a VLAN *for a time* is the only one for that time. How, the module `session` says. Nobody is waited for: what is
//! known is told.
//!
//! A holder that does not ask any more is not renewed, and one that has ended is taken out at once: its end of a socket hangs up.

mod etcd;
mod session;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd::Etcd;
pub use etcd::Place;
use protocol::opener::{Holds, Tokens, Wants};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use session::Session;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Who has not asked for so long is not renewed: it is stopped, or another control plane keeps its leases.
const ASKS_NS: u64 = 1_000_000_000;
/// Between two troubles in the log.
const TOLD_NS: u64 = 60_000_000_000;

/// Holders of one data plane, each of which costs a thread and some descriptors.
const HOLDERS_MAX: usize = 64;
/// The longest beacon.
const BEACON_BYTES_MAX: usize = 4096;
/// The highest VLAN.
const VID_MAX: u16 = 4094;

/// Nanoseconds since the system was started, in which the time that it slept counts.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each is whole at any moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the leases of one data plane.
#[derive(Default)]
pub struct Keeper(Mutex<BTreeMap<Holder, Arc<Mutex<Desk>>>>);

/// Its place, and who it is there.
type Holder = (String, u64);

/// What a holder and its thread tell each other.
struct Desk {
    wants: Wants,
    holder: OwnedFd,
    asked_ns: u64,
    session: Session,
    trouble: Option<String>,
    ended: bool,
}

impl Tokens for Keeper {
    fn exchange(&self, wants: Wants, holder: OwnedFd) -> io::Result<Holds> {
        // It goes to etcd, which others use as well, and to the partner.
        if wants.beacon.len() > BEACON_BYTES_MAX {
            return Err(io::Error::other("its beacon is too long"));
        }
        if wants.vids.len() > usize::from(VID_MAX) || wants.vids.iter().any(|vid| *vid > VID_MAX) {
            return Err(io::Error::other("it wants a VLAN that there is not"));
        }
        let mut desks = locked(&self.0);
        desks.retain(|_, desk| !locked(desk).ended);
        let key = (wants.place.clone(), wants.identity);
        let now = now_ns();
        if let Some(desk) = desks.get(&key) {
            let mut desk = locked(desk);
            (desk.wants, desk.holder, desk.asked_ns) = (wants, holder, now);
            return Ok(desk.holds(now));
        }
        if desks.len() >= HOLDERS_MAX {
            let what = format!("a data plane has at most {HOLDERS_MAX} adapters with a token");
            return Err(io::Error::other(what));
        }
        let place = Place::parse(&wants.place).map_err(io::Error::other)?;
        let session = Session::new(wants.identity);
        let desk = Desk { wants, holder, asked_ns: now, session, trouble: None, ended: false };
        let desk = Arc::new(Mutex::new(desk));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let its = Arc::clone(&desk);
        let keep = move || runtime.block_on(keep(&its, Etcd::new(place)));
        std::thread::Builder::new().name("etcd-lease".to_owned()).spawn(keep)?;
        desks.insert(key, desk);
        Ok(Holds::default())
    }
}

impl Desk {
    fn holds(&self, now: u64) -> Holds {
        let vids = self.session.has().map(|has| {
            let wanted = self.wants.vids.iter().copied();
            wanted.filter(|vid| has.contains(vid)).collect()
        });
        Holds {
            vids,
            for_ns: self.session.until_ns().saturating_sub(now),
            partner: self.session.partner().map(<[u8]>::to_vec),
            trouble: self.trouble.clone(),
        }
    }

    /// The data plane, or its uplink, has ended.
    fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.holder, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok()
            && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
}

/// What the log was told: a trouble once until it is mended, whichever of the servers has it, and seldom if it comes and goes.
#[derive(Default)]
struct Told {
    this: bool,
    last_ns: Option<u64>,
}

impl Told {
    fn is_news(&mut self, fails: bool, now_ns: u64) -> bool {
        let seldom = self.last_ns.is_none_or(|last| now_ns.saturating_sub(last) >= TOLD_NS);
        let news = fails && !self.this && seldom;
        if news {
            self.last_ns = Some(now_ns);
        }
        self.this = fails && (self.this || news);
        news
    }
}

/// Keeps the leases of a holder until it ends.
async fn keep(desk: &Mutex<Desk>, mut etcd: Etcd) {
    let mut told = Told::default();
    loop {
        let (ended, asks) = {
            let desk = locked(desk);
            (desk.has_ended(), now_ns().saturating_sub(desk.asked_ns) < ASKS_NS)
        };
        if ended {
            leave(desk, &mut etcd).await;
            locked(desk).ended = true;
            return;
        }
        let again = asks && {
            let turn = turn(desk, &mut etcd).await;
            let mut desk = locked(desk);
            if told.is_news(turn.is_err(), now_ns())
                && let Err(what) = &turn
            {
                tracing::warn!(place = %desk.wants.place, "no lease: {what}");
            }
            let (again, trouble) = match turn {
                Ok((again, trouble)) => (again, trouble),
                Err(what) => (false, Some(what)),
            };
            desk.trouble = trouble;
            again
        };
        if !again {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Looks, and does the next thing. Whether there may be another, and what is in the way.
async fn turn(desk: &Mutex<Desk>, etcd: &mut Etcd) -> Result<(bool, Option<String>), String> {
    let seen = etcd.look().await?;
    let next = {
        let mut desk = locked(desk);
        let Desk { wants, session, .. } = &mut *desk;
        session.next(&seen, wants, now_ns())
    };
    let put = match next {
        Ok(Some(put)) => put,
        Ok(None) => return Ok((false, None)),
        Err(what) => return Ok((false, Some(what))),
    };
    // Whatever the server does after this, the lease runs for longer.
    let before = now_ns();
    let done = etcd.put(&put).await?;
    locked(desk).session.done(&put, done, before);
    // Somebody else is at it, or the server does not do what it says: not at once.
    Ok((done.succeeded, None))
}

/// Takes a holder out that has ended. What fails is left to the lease's end.
async fn leave(desk: &Mutex<Desk>, etcd: &mut Etcd) {
    let Ok(seen) = etcd.look().await else { return };
    let leave = locked(desk).session.leave(&seen);
    if let Some(leave) = leave {
        let _ = etcd.put(&leave).await;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn wants(server: &str, identity: u64) -> Wants {
        Wants { place: format!("etcd:http://{server}/x"), identity, ..Wants::default() }
    }

    #[tokio::test]
    async fn whose_request_was_not_carried_out_looks_again_later() {
        let server = etcd::tests::server(|path| {
            let granted = r#"{"header": {"cluster_id": "1"}, "ID": "7", "TTL": "3"}"#;
            // Nothing succeeds.
            (200, if path.contains("grant") { granted.to_owned() } else { etcd::tests::nothing(1) })
        });
        let wants = wants(&server, 7);
        let mut etcd = Etcd::new(Place::parse(&wants.place).unwrap());
        let (_held, holder) = UnixStream::pair().unwrap();
        let (session, holder) = (Session::new(7), holder.into());
        let desk = Desk { wants, holder, asked_ns: 0, session, trouble: None, ended: false };
        assert_eq!(turn(&Mutex::new(desk), &mut etcd).await, Ok((false, None)));
    }

    #[test]
    fn a_data_plane_has_a_bound_to_its_holders_and_to_what_they_say() {
        let keeper = Keeper::default();
        let ask = |wants: Wants, holder| keeper.exchange(wants, OwnedFd::from(holder));
        let mut held = Vec::new();
        for identity in 0..64 {
            let (one, holder) = UnixStream::pair().unwrap();
            ask(wants("127.0.0.1:1", identity), holder).unwrap();
            held.push(one);
        }
        let refused =
            |wants: Wants| ask(wants, UnixStream::pair().unwrap().1).unwrap_err().to_string();
        assert!(refused(wants("127.0.0.1:1", 64)).contains("64"));
        let beacon = vec![0; 1 << 20];
        let why = refused(Wants { beacon, ..wants("127.0.0.1:1", 1) });
        assert!(why.contains("beacon"), "{why}");
        let vids = (0..=u16::MAX).collect();
        let why = refused(Wants { vids, ..wants("127.0.0.1:1", 1) });
        assert!(why.contains("VLAN"), "{why}");
        ask(wants("127.0.0.1:1", 1), UnixStream::pair().unwrap().1).unwrap();
    }

    #[test]
    fn the_log_has_a_trouble_once_and_one_that_comes_and_goes_once_a_minute() {
        let mut told = Told::default();
        let mut times = |fails: &dyn Fn(u64) -> bool, seconds: std::ops::Range<u64>| {
            seconds.filter(|at| told.is_news(fails(*at), at * 1_000_000_000)).count()
        };
        assert_eq!(times(&|_| true, 0..86_400), 1);
        assert_eq!(times(&|at| at % 2 == 1, 86_400..90_000), 60);
    }
}
