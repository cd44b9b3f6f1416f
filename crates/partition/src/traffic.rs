//! Traffic between two network cards of one server, or one and the host behind a TAP, as TCP makes it: streams with their acknowledgements, and requests with
//! their responses.
//!
//! One thread plays both clients, in bursts: both send what they have to, and the next burst follows when all of that has come. So no frame is lost for want of
//! room, and what a burst costs does not depend on who was quicker: a server that is woken for each frame where it is slow, and for a hundred where it
//! is not, is no measure of anything. This side touches no more of a frame than its head.
//!
//! ```text
//!  client 0 ── data ──────► client 1        client 0 ── request ───► client 1
//!           ◄── one ack ──                           ◄── response ──
//!               for two
//! ```
//!
//! What is measured, beside frames and bytes, is the caller's business: it is told when the measurement begins and ends.
//!
//! Promises: nothing that the server does makes this panic; a frame that does not come is an error after [`LOST_AFTER`].
//! Leaves to others: what frames hold. Payloads are whatever is in the buffers.

mod end;
mod wire;

use std::path::Path;
use std::time::Duration;

use memory::clock;

use crate::cpu;
use crate::net::NetError;
use crate::session::SessionError;

use end::End;
pub use end::Kind;

/// Bytes of the headers of IPv4, and of TCP with the option of time stamps: what of a packet is no payload.
pub const HEADERS: u32 = 52;
/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// Longest packet that IPv4 has.
pub const PACKET_MAX: u32 = 65535;
/// Frames of which none comes for this time are lost.
pub const LOST_AFTER: Duration = Duration::from_millis(500);
/// How long the two may take to hear each other.
pub const GREET_WITHIN: Duration = Duration::from_secs(5);
/// Frames on their way to one card at most: what a queue of the server holds for a receiver on another channel.
pub const WINDOW_MAX: u16 = 60;

/// Data that flows all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Bytes of a packet, headers and all.
    pub packet: u32,
    /// What packets are cut to on their way; no less than `packet` if none has to be.
    pub mtu: u32,
    /// Whether data flows both ways.
    pub duplex: bool,
    /// Packets of a burst, each way.
    pub window: u16,
}

/// Requests and their responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Bytes of a request, and of its response, without headers.
    pub bytes: u32,
    /// Requests without a response at a time.
    pub window: u16,
}

/// Where one of the two clients is.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// A network card, behind this socket.
    Card(&'a Path),
    /// The host, behind a TAP of this name, which an uplink has open. It is there no longer than the uplink, from now on.
    Tap(&'a str),
}

/// What is to flow, and for how long.
#[derive(Clone, Debug)]
pub struct TrafficOptions {
    /// The stream, if any.
    pub stream: Option<Stream>,
    /// The transactions, if any.
    pub requests: Option<Requests>,
    /// The cards' addresses.
    pub macs: [[u8; 6]; 2],
    /// How long to run before measuring.
    pub warm_up: Duration,
    /// How long to measure.
    pub duration: Duration,
    /// The CPU of the thread that plays the clients.
    pub cpu: Option<usize>,
}

/// What is told to the caller, on the thread that plays the clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// The measurement begins.
    Begin,
    /// Such a part of the measurement is over; told a few times a second.
    Part(f64),
    /// It ends.
    End,
}

/// What was carried while measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Payload of the stream that arrived, both ways together.
    pub stream_bytes: u64,
    /// Responses that arrived.
    pub transactions: u64,
    /// Frames of all kinds that arrived.
    pub frames: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// CPU time of the thread that played the clients.
    pub client_cpu: Duration,
}

/// Why there was no traffic.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// The server.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// What it did with the rings.
    #[error(transparent)]
    Net(#[from] NetError),
    /// What is to flow cannot.
    #[error("{0}")]
    Options(String),
    /// The host's side of the TAP.
    #[error("the interface {interface}: {source}")]
    Tap {
        /// Its name.
        interface: String,
        /// The reason.
        source: std::io::Error,
    },
    /// Frames are missing.
    #[error("{0} frames did not arrive within {ms} ms", ms = LOST_AFTER.as_millis())]
    Lost(u64),
    /// The two never heard each other.
    #[error("no frame arrived within {seconds} s", seconds = GREET_WITHIN.as_secs())]
    Unheard,
    /// The thread could not be placed.
    #[error("cannot run on CPU {cpu}: {source}")]
    Cpu {
        /// The CPU.
        cpu: usize,
        /// The reason.
        source: std::io::Error,
    },
}

impl TrafficOptions {
    fn check(&self) -> Result<(), TrafficError> {
        let refuse = |text: String| Err(TrafficError::Options(text));
        if self.stream.is_none() && self.requests.is_none() {
            return refuse("neither a stream nor requests".into());
        }
        let mut to_one = 0;
        if let Some(Stream { packet, mtu, duplex, window }) = self.stream {
            if !(HEADERS + 1..=PACKET_MAX).contains(&packet) || mtu <= HEADERS {
                return refuse(format!("packets of {packet} bytes on an MTU of {mtu}"));
            }
            if window < 2 {
                return refuse("a stream needs two packets on their way".into());
            }
            to_one += window + if duplex { window / 2 } else { 0 };
        }
        if let Some(Requests { bytes, window }) = self.requests {
            if bytes == 0 || bytes > PACKET_MAX - HEADERS || window == 0 {
                return refuse(format!("{window} requests of {bytes} bytes"));
            }
            if self.stream.is_some_and(|stream| stream.packet == bytes + HEADERS) {
                return refuse("requests as long as the packets of the stream".into());
            }
            to_one += window;
        }
        match to_one > WINDOW_MAX {
            true => refuse(format!("{to_one} frames to one card, {WINDOW_MAX} at most")),
            false => Ok(()),
        }
    }

    /// The longest frame.
    fn longest(&self) -> u32 {
        let stream = self.stream.map_or(0, |stream| stream.packet);
        let request = self.requests.map_or(0, |requests| requests.bytes + HEADERS);
        stream.max(request) + ETHERNET
    }
}

/// Runs it between two places.
///
/// # Errors
/// What is to flow cannot, a server that does not serve, or one that loses frames.
pub fn run(
    places: [Place<'_>; 2],
    options: &TrafficOptions,
    watch: &mut (dyn FnMut(Moment) + Send),
) -> Result<Tally, TrafficError> {
    options.check()?;
    let [one, other] = places;
    let mut ends = [End::new(one, options, 0)?, End::new(other, options, 1)?];
    let [one, other] = &mut ends;
    one.leave_room(other);
    other.leave_room(one);
    std::thread::scope(|scope| {
        let clients = scope.spawn(|| {
            if let Some(cpu) = options.cpu {
                cpu::pin(cpu).map_err(|source| TrafficError::Cpu { cpu, source })?;
            }
            play(&mut ends, options, watch)
        });
        clients.join().expect("it does not panic")
    })
}

/// Looks at the rings between two looks at the clock.
const LOOKS: u32 = 256;
/// How long nothing comes before greetings are over.
const QUIET_NS: u64 = 20_000_000;
/// How often the caller is told how far it is.
const TELL_NS: u64 = 100_000_000;

fn play(
    ends: &mut [End; 2],
    options: &TrafficOptions,
    watch: &mut (dyn FnMut(Moment) + Send),
) -> Result<Tally, TrafficError> {
    greet(ends)?;
    let ticks = |time: Duration| clock::from_ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    exchange(ends, ticks(options.warm_up), |_| ())?;
    watch(Moment::Begin);
    let cpu_before = cpu::thread_ns();
    let all = ticks(options.duration).max(1);
    let mut told = 0;
    let tally = exchange(ends, all, |passed| {
        if passed - told >= clock::from_ns(TELL_NS) {
            told = passed;
            watch(Moment::Part((passed as f64 / all as f64).min(1.0)));
        }
    })?;
    let client_cpu = Duration::from_nanos(cpu::thread_ns() - cpu_before);
    watch(Moment::End);
    Ok(Tally { client_cpu, ..tally })
}

/// Until each has heard the other: a TAP that has just got its descriptors loses frames for up to a second.
fn greet([one, other]: &mut [End; 2]) -> Result<(), TrafficError> {
    let begin = clock::ticks();
    let patience = clock::from_ns(GREET_WITHIN.as_nanos() as u64);
    loop {
        let (heard, is_heard) = (one.greet()?, other.greet()?);
        if heard && is_heard {
            break;
        }
        if clock::ticks().wrapping_sub(begin) > patience {
            return Err(TrafficError::Unheard);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut quiet_since = clock::ticks();
    while clock::ticks().wrapping_sub(quiet_since) < clock::from_ns(QUIET_NS) {
        if one.forget()? | other.forget()? {
            quiet_since = clock::ticks();
        }
    }
    Ok(())
}

/// Lets bursts follow each other for so many ticks; `passed` is called now and then with those that are over.
fn exchange(
    ends: &mut [End; 2],
    ticks: u64,
    mut passed: impl FnMut(u64),
) -> Result<Tally, TrafficError> {
    let begin = clock::ticks();
    let mut tally = Tally::default();
    loop {
        burst(ends, &mut tally)?;
        let over = clock::ticks().wrapping_sub(begin);
        passed(over);
        if over >= ticks {
            tally.elapsed = Duration::from_nanos(clock::to_ns(over));
            return Ok(tally);
        }
    }
}

/// Both send what they have to, and wait until all of it has come.
fn burst([one, other]: &mut [End; 2], tally: &mut Tally) -> Result<(), TrafficError> {
    one.send()?;
    other.send()?;
    let (mut before, mut quiet_since) = (tally.frames, clock::ticks());
    loop {
        for _ in 0..LOOKS {
            one.receive(tally)?;
            other.receive(tally)?;
            if one.on_their_way(other) == 0 && other.on_their_way(one) == 0 {
                return Ok(());
            }
        }
        let now = clock::ticks();
        if tally.frames > before {
            (before, quiet_since) = (tally.frames, now);
        } else if now.wrapping_sub(quiet_since) > clock::from_ns(LOST_AFTER.as_nanos() as u64) {
            return Err(TrafficError::Lost(one.on_their_way(other) + other.on_their_way(one)));
        }
    }
}

#[cfg(test)]
mod tests;
