//! The way of frames into and out of a client: the queues of a card, or a packet socket of the host's.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::{Place, TrafficError};
use crate::blk::SlotPlan;
use crate::net::{HEADER_BYTES, Pair};
use crate::session::{Device, Session, SessionOptions, StartPlan};

/// Frames that a card has buffers for, each way.
const SLOTS: u16 = 80;

/// One of the two ways.
pub(super) enum Wire {
    Card(Box<Card>),
    Line(Line),
}

/// A card's queues.
pub(super) struct Card {
    /// Ends when this is dropped.
    _session: Session,
    pair: Pair,
    buffer: u32,
}

/// The host's side of a TAP.
pub(super) struct Line {
    interface: String,
    socket: OwnedFd,
    /// What follows the head of a frame.
    payload: Vec<u8>,
}

impl Wire {
    /// For frames of so many bytes, with the header before them.
    pub(super) fn new(place: Place<'_>, buffer: u32) -> Result<Wire, TrafficError> {
        match place {
            Place::Card(socket) => {
                let options = SessionOptions { device: Device::Net, ..SessionOptions::default() };
                let mut session = Session::connect(socket, &options)?;
                let data_bytes = buffer.next_multiple_of(512);
                let slots =
                    SlotPlan { slots: SLOTS, data_bytes, data_segments: 1, indirect: false };
                let plan = StartPlan { queues: 2, queue_size: 256, threads: 1, slots };
                let pairs = session.start_net(&plan)?;
                let mut pair = pairs.into_iter().next().expect("the plan has a pair");
                pair.rx.post(usize::MAX, buffer)?;
                Ok(Wire::Card(Box::new(Card { _session: session, pair, buffer })))
            }
            Place::Tap(interface) => {
                let open = || {
                    memory::tap::until_closed(interface)?;
                    memory::packet::open(interface, None, false)
                };
                let interface = interface.to_owned();
                match open() {
                    Ok(socket) => Ok(Wire::Line(Line {
                        interface,
                        socket,
                        payload: vec![0; buffer as usize],
                    })),
                    Err(source) => Err(TrafficError::Tap { interface, source }),
                }
            }
        }
    }

    /// Bytes of frames that may wait to be taken, where the kernel has a limit.
    pub(super) fn room(&self) -> Option<usize> {
        match self {
            Wire::Card(_) => None,
            Wire::Line(line) => rustix::net::sockopt::socket_recv_buffer_size(&line.socket).ok(),
        }
    }

    /// The length of the next frame that came.
    pub(super) fn next(&mut self) -> Result<Option<u32>, TrafficError> {
        match self {
            Wire::Card(card) => Ok(card.pair.rx.skim()?),
            Wire::Line(line) => line.next(),
        }
    }

    /// After what came, if anything did: there is room again.
    pub(super) fn settle(&mut self, came: bool) -> Result<(), TrafficError> {
        if let Wire::Card(card) = self {
            if came {
                card.pair.rx.post(usize::MAX, card.buffer)?;
            }
            card.pair.tx.reap()?;
        }
        Ok(())
    }

    /// Sends a frame of so many bytes that begins so, if there is room.
    pub(super) fn add(
        &mut self,
        header: &[u8; HEADER_BYTES],
        head: &[u8],
        bytes: u32,
    ) -> Result<bool, TrafficError> {
        match self {
            Wire::Card(card) => Ok(card.pair.tx.add_head(header, head, bytes)?),
            Wire::Line(line) => line.add(header, head, bytes),
        }
    }

    /// Shows what was added.
    pub(super) fn publish(&mut self) -> Result<(), TrafficError> {
        match self {
            Wire::Card(card) => Ok(card.pair.tx.publish()?),
            Wire::Line(_) => Ok(()),
        }
    }
}

impl Line {
    fn next(&mut self) -> Result<Option<u32>, TrafficError> {
        let mut head = [0; 128];
        // The rest of the frame is left to the kernel, which says how long it was.
        match rustix::net::recv(&self.socket, &mut head[..], RecvFlags::TRUNC) {
            Ok((_, whole)) => {
                Ok(Some(u32::try_from(whole.saturating_sub(HEADER_BYTES)).unwrap_or(u32::MAX)))
            }
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn add(
        &mut self,
        header: &[u8; HEADER_BYTES],
        head: &[u8],
        bytes: u32,
    ) -> Result<bool, TrafficError> {
        let payload = &self.payload[..bytes as usize - head.len()];
        let parts = [header, head, payload].map(std::io::IoSlice::new);
        match rustix::io::writev(&self.socket, &parts) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: Errno) -> TrafficError {
        TrafficError::Tap { interface: self.interface.clone(), source: error.into() }
    }
}
