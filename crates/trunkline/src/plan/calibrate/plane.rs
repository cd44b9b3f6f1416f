//! A data plane with a network and two cards, or one and an uplink, for as long as the measurement lasts.

use crate::exit::Failure;
use crate::scratch::{START_TIMEOUT, Scratch};
use control::error::{ApiError, Code};
use control::link::{Link, SocketLink};
use partition::traffic::Place;
use protocol::message::{AdapterSpec, EthernetSpec, Placement, Reply, Request, UplinkSpec};
use protocol::stats::StatsReader;
use std::fs::File;
use std::path::PathBuf;

/// The cards' addresses.
pub(super) const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// A running data plane; it ends with the scratch.
pub(super) struct Plane<'a> {
    scratch: &'a Scratch,
    name: &'static str,
    pub(super) pid: u32,
    link: SocketLink,
    /// The cards' sockets.
    cards: Vec<PathBuf>,
    /// The interface of the uplink, if there is one in place of the second card.
    tap: Option<String>,
}

/// The network's longest packet.
const MTU: u16 = 9000;

impl Plane<'_> {
    /// Starts one with so many channels, with an uplink or with two cards.
    pub(super) fn start<'a>(
        scratch: &'a Scratch,
        name: &'static str,
        channels: u16,
        cpus: &[usize],
        with_uplink: bool,
    ) -> Result<Plane<'a>, Failure> {
        let messages = scratch.path(&format!("dataplane-{name}.sock"));
        let pid = scratch.start_data_plane(name, &messages, cpus, channels)?;
        let link = scratch
            .wait_for(pid, "the data plane", START_TIMEOUT, || SocketLink::connect(&messages))?;
        let mut plane = Plane { scratch, name, pid, link, cards: Vec::new(), tap: None };
        plane.put_card(0)?;
        match with_uplink {
            true => plane.put_uplink(channels)?,
            false => plane.put_card(1)?,
        }
        Ok(plane)
    }

    /// Who talks to whom.
    pub(super) fn places(&self) -> Option<[Place<'_>; 2]> {
        let one = Place::Card(self.cards.first()?);
        let other = match &self.tap {
            Some(tap) => Place::Tap(tap),
            None => Place::Card(self.cards.get(1)?),
        };
        Some([one, other])
    }

    fn put_uplink(&mut self, channels: u16) -> Result<(), Failure> {
        // Of this process, so that two measurements do not meet; at most 15 bytes.
        let interface = format!("tl{}p{channels}", std::process::id());
        // Two channels are there for frames to be handed over between them.
        let thread = channels > 1;
        let spec = UplinkSpec { mtu: MTU, thread, ..UplinkSpec::on("net", &interface) };
        self.must(&Request::PutUplink(spec)).map_err(|error| {
            ApiError::new(Code::Failed, format!("--uplink: no TAP: {error}")).help(
                "it needs CAP_NET_ADMIN and CAP_NET_RAW: run it as root, or in a namespace of its own by `unshare -Urn trunkline size calibrate --uplink`",
            )
        })?;
        self.tap = Some(interface);
        Ok(())
    }

    fn must(&mut self, request: &Request) -> Result<(), Failure> {
        match self.link.call(request, &[]).map_err(Failure::other)?.0 {
            Reply::Done => Ok(()),
            Reply::Error(failure) => Err(Failure::other(failure.message)),
            other => Err(Failure::other(format!("the data plane answered with {other:?}"))),
        }
    }

    fn put_card(&mut self, number: usize) -> Result<(), Failure> {
        let device = EthernetSpec { mtu: MTU, ..EthernetSpec::on("net", MACS[number]) };
        let socket = self.scratch.path(&format!("{}{number}.sock", self.name));
        let spec = AdapterSpec {
            socket_mode: 0o600,
            queues: 2,
            // The channel with the fewest queues, whatever the load: each card its own where there are two.
            channels: 1,
            placement: Placement::Spread,
            ..AdapterSpec::new(format!("ent{number}"), &socket, device)
        };
        self.must(&Request::PutAdapter(spec))?;
        self.cards.push(socket);
        Ok(())
    }

    /// Its statistics.
    pub(super) fn stats(&mut self) -> Result<StatsReader, Failure> {
        let (reply, mut fds) = self.link.call(&Request::Stats, &[]).map_err(Failure::other)?;
        match (reply, fds.pop()) {
            (Reply::Stats, Some(fd)) => StatsReader::open(&File::from(fd)).map_err(|error| {
                Failure::other(format!("cannot read the data plane's statistics: {error}"))
            }),
            (other, _) => Err(Failure::other(format!("the data plane answered with {other:?}"))),
        }
    }
}
