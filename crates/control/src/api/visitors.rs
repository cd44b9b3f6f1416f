//! Who may be connected to the API at once, and for how long.
//!
//! The control plane keeps guests alive, and needs descriptors for that. So callers have a limited number of places. Who comes when
//! all are taken gets the place of the one that has been idle longest. An idle connection ends after a while, and so does one whose
//! peer does not take its answer.

use crate::caller::Caller;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use protocol::place::Place;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

/// Connections at once. What they use of a process's usual 1,024 descriptors leaves the rest to data planes and files.
pub const VISITORS_MAX: usize = 256;
/// How long a connection may be idle, and how long its peer may take nothing of an answer.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// How long its peer may take nothing while somebody waits for a place.
const STUCK_MAX: Duration = Duration::from_secs(3);
/// How long nobody is let in after the system had no descriptor.
const PAUSE: Duration = Duration::from_millis(50);

/// How often it is looked whether the socket's file is there still, while nobody comes.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Permission bits of the socket.
const MODE: u32 = 0o660;

/// The place of a connection.
#[derive(Debug)]
struct Seat {
    /// Tells it to go.
    leave: Notify,
    state: Mutex<SeatState>,
}

#[derive(Debug)]
struct SeatState {
    /// Requests that are being answered.
    busy: u32,
    /// Since when it has been as it is.
    since: Instant,
}

impl Seat {
    fn state(&self) -> MutexGuard<'_, SeatState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A connection as requests see it.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// Who is at its other end.
    pub caller: Option<Caller>,
    seat: Arc<Seat>,
}

/// As long as it lives, a connection is not idle.
#[derive(Debug)]
pub struct Busy(Arc<Seat>);

impl Visitor {
    /// A request is being answered.
    pub fn busy(&self) -> Busy {
        self.seat.state().busy += 1;
        Busy(Arc::clone(&self.seat))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.busy -= 1;
        state.since = Instant::now();
    }
}

/// The API's socket with its places.
#[derive(Debug)]
pub struct Visitors {
    listener: UnixListener,
    /// The socket's file, if it is ours to make again.
    file: Option<Place>,
    places: usize,
    seats: Arc<Mutex<Vec<Arc<Seat>>>>,
    freed: Arc<Notify>,
}

fn seats(seats: &Mutex<Vec<Arc<Seat>>>) -> MutexGuard<'_, Vec<Arc<Seat>>> {
    seats.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Visitors {
    /// So many places at a socket that somebody else has made.
    ///
    /// # Errors
    ///
    /// When it is none that this runtime can wait at.
    pub fn at(listener: std::os::unix::net::UnixListener, places: usize) -> io::Result<Visitors> {
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        let (seats, freed) = Default::default();
        Ok(Visitors { listener, file: None, places, seats, freed })
    }

    /// So many places at a socket of its own, which is made again when its file is removed.
    ///
    /// # Errors
    ///
    /// When the socket cannot be made.
    pub fn listen(path: &Path, places: usize) -> io::Result<Visitors> {
        let (listener, file) =
            protocol::place::listen(path, &protocol::place::Access::of_mode(MODE))?;
        Ok(Visitors { file: Some(file), ..Visitors::at(listener, places)? })
    }

    async fn knock(&mut self) -> io::Result<UnixStream> {
        loop {
            match tokio::time::timeout(LOOK_EVERY, self.listener.accept()).await {
                Ok(accepted) => return accepted.map(|(stream, _)| stream),
                Err(_) => self.look_after_file(),
            }
        }
    }

    fn look_after_file(&mut self) {
        let Some(file) = self.file.as_ref().filter(|file| !file.is_there()) else { return };
        let path = file.path().to_owned();
        match Visitors::listen(&path, self.places) {
            Ok(Visitors { listener, file, .. }) => {
                (self.listener, self.file) = (listener, file);
                tracing::warn!(path = %path.display(), "the API's socket was removed; it is made again");
            }
            Err(error) => {
                tracing::warn!(%error, "the API's socket was removed and cannot be made again");
            }
        }
    }

    /// Waits until there is a place.
    async fn place(&self) {
        loop {
            let freed = self.freed.notified();
            {
                let all = seats(&self.seats);
                if all.len() < self.places {
                    return;
                }
                let idle = all.iter().filter(|seat| seat.state().busy == 0);
                if let Some(longest) = idle.min_by_key(|seat| seat.state().since) {
                    longest.leave.notify_one();
                }
            }
            freed.await;
        }
    }
}

impl Listener for Visitors {
    type Io = Guest;
    type Addr = Visitor;

    async fn accept(&mut self) -> (Guest, Visitor) {
        loop {
            let stream = match self.knock().await {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%error, "the API lets nobody in for a moment");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            // Only now: as long as nobody waits, nobody has to go.
            self.place().await;
            let peer = stream.peer_cred().ok();
            let caller = peer.map(|peer| Caller {
                uid: peer.uid(),
                pid: peer.pid().and_then(|pid| u32::try_from(pid).ok()),
            });
            let state = Mutex::new(SeatState { busy: 0, since: Instant::now() });
            let seat = Arc::new(Seat { leave: Notify::new(), state });
            seats(&self.seats).push(Arc::clone(&seat));
            let guest = Guest {
                stream,
                timer: Box::pin(tokio::time::sleep(IDLE_MAX)),
                told: Box::pin(told(Arc::clone(&seat))),
                stuck: None,
                seat: Arc::clone(&seat),
                seats: Arc::clone(&self.seats),
                freed: Arc::clone(&self.freed),
            };
            return (guest, Visitor { caller, seat });
        }
    }

    fn local_addr(&self) -> io::Result<Visitor> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Connected<IncomingStream<'_, Visitors>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, Visitors>) -> Visitor {
        stream.remote_addr().clone()
    }
}

async fn told(seat: Arc<Seat>) {
    seat.leave.notified().await;
}

/// The stream of a connection.
pub struct Guest {
    stream: UnixStream,
    timer: Pin<Box<Sleep>>,
    told: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Since when the peer has taken nothing of its answer, and when it has to have.
    stuck: Option<(Instant, Pin<Box<Sleep>>)>,
    seat: Arc<Seat>,
    seats: Arc<Mutex<Vec<Arc<Seat>>>>,
    freed: Arc<Notify>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        seats(&self.seats).retain(|seat| !Arc::ptr_eq(seat, &self.seat));
        self.freed.notify_one();
    }
}

impl Guest {
    /// Whether it has to go.
    fn must_go(&mut self, context: &mut Context<'_>) -> bool {
        while self.told.as_mut().poll(context).is_ready() {
            if self.seat.state().busy == 0 {
                return true;
            }
            // Another one goes, or this one when it is told again.
            self.told = Box::pin(told(Arc::clone(&self.seat)));
        }
        while self.timer.as_mut().poll(context).is_ready() {
            let SeatState { busy, since } = *self.seat.state();
            if busy == 0 && since.elapsed() >= IDLE_MAX {
                return true;
            }
            let from = if busy == 0 { since } else { Instant::now() };
            self.timer.as_mut().reset(from + IDLE_MAX);
        }
        false
    }

    fn taken(
        &mut self,
        context: &mut Context<'_>,
        taken: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if taken.is_ready() {
            self.stuck = None;
            return taken;
        }
        let begin = || (Instant::now(), Box::pin(tokio::time::sleep(IDLE_MAX)));
        let (since, stuck) = self.stuck.get_or_insert_with(begin);
        // Requests may be there that are not read while their answers cannot be written.
        while self.told.as_mut().poll(context).is_ready() {
            stuck.as_mut().reset(*since + STUCK_MAX);
            self.told = Box::pin(told(Arc::clone(&self.seat)));
        }
        match stuck.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Guest {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(context, buffer) {
            self.seat.state().since = Instant::now();
            return Poll::Ready(read);
        }
        // As if the peer had closed it: what is under way is not cut.
        if self.must_go(context) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl AsyncWrite for Guest {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.taken(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
