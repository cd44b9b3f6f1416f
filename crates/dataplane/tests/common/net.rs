//! Clients with a network card.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use partition::blk::SlotPlan;
use partition::net::{HEADER_BYTES, Pair, Received, feature};
use partition::session::{Device, Session, SessionOptions, StartPlan};
use protocol::message::{
    AdapterSpec, EthernetSpec, Failure, Placement, Reply, Request, UplinkSpec,
};

use super::Server;
use super::segments::tagged;

/// Longest frame that a client sends or takes in one buffer.
pub const BUFFER_BYTES: u32 = 66048;
/// Frames that may be cut or summed on their way.
pub const OFFLOADS: u64 = feature::CSUM
    | feature::GUEST_CSUM
    | feature::GUEST_TSO4
    | feature::GUEST_TSO6
    | feature::HOST_TSO4
    | feature::HOST_TSO6;
/// Nothing to be done to a frame.
pub const PLAIN: [u8; HEADER_BYTES] = [0; HEADER_BYTES];

/// The tool of that name, in the namespace of the test.
#[track_caller]
pub fn ip(words: &str) {
    let run = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(run.status.success(), "ip {words}: {}", String::from_utf8_lossy(&run.stderr));
}

/// Only what the tests send is on the interfaces that come.
pub fn quiet() {
    for path in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{path}/disable_ipv6");
        std::fs::write(path, "1").unwrap();
    }
    ip("link set lo up");
}

/// The MAC address of a client.
pub fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

/// A network card.
pub fn card(folder: &Path, number: u8, change: impl FnOnce(&mut EthernetSpec)) -> AdapterSpec {
    let name = format!("ent{number}");
    let mut device = EthernetSpec::on("net", mac(number));
    change(&mut device);
    let socket = folder.join(format!("{name}.sock"));
    let spec = AdapterSpec::new(name, socket, device);
    AdapterSpec { queues: 2, queue_size: 256, placement: Placement::Adaptive, ..spec }
}

pub struct Client {
    pub session: Session,
    pub pairs: Vec<Pair>,
    pub number: u8,
}

/// How a client is.
#[derive(Clone, Copy)]
pub struct How {
    /// Features that it does not use.
    pub without: u64,
    /// Buffers that it posts at the start, and their length.
    pub post: (usize, u32),
    pub queues: u16,
    /// Protocol features that it does not use.
    pub mask_protocol: u64,
    /// Says 0 of its rings when it connects again.
    pub forgets_base: bool,
}

impl Default for How {
    fn default() -> How {
        let post = (usize::MAX, BUFFER_BYTES);
        How { without: 0, post, queues: 2, mask_protocol: 0, forgets_base: false }
    }
}

impl Client {
    #[track_caller]
    pub fn connect(socket: &Path, number: u8, how: How) -> Client {
        let options = SessionOptions {
            device: Device::Net,
            mask_features: how.without,
            mask_protocol: how.mask_protocol,
            forgets_base: how.forgets_base,
            ..SessionOptions::default()
        };
        let mut session = Session::connect(socket, &options).unwrap();
        let slots =
            SlotPlan { slots: 80, data_bytes: BUFFER_BYTES, data_segments: 1, indirect: false };
        let plan = StartPlan { queues: how.queues, queue_size: 256, threads: 1, slots };
        let mut pairs = session.start_net(&plan).unwrap();
        for pair in &mut pairs {
            pair.rx.post(how.post.0, how.post.1).unwrap();
        }
        Client { session, pairs, number }
    }

    pub fn mac(&self) -> [u8; 6] {
        mac(self.number)
    }

    /// A frame from this client with a number in it.
    pub fn frame(&self, to: [u8; 6], number: u32, len: usize) -> Vec<u8> {
        frame(self.mac(), to, number, len)
    }

    /// Sends a frame, waiting for room.
    #[track_caller]
    pub fn send(&mut self, header: &[u8], frame: &[u8]) {
        let tx = &mut self.pairs[0].tx;
        wait("a free buffer", || {
            tx.reap().unwrap();
            tx.add(header, frame).unwrap().then_some(())
        });
        tx.publish().unwrap();
    }

    /// The next frame that comes.
    #[track_caller]
    pub fn receive(&mut self) -> Received {
        let rx = &mut self.pairs[0].rx;
        let received = wait("a frame", || rx.receive().unwrap());
        rx.post(usize::MAX, BUFFER_BYTES).unwrap();
        received
    }

    /// The next frame, if one comes in this time.
    pub fn receive_within(&mut self, time: Duration) -> Option<Received> {
        let end = Instant::now() + time;
        let rx = &mut self.pairs[0].rx;
        let received = loop {
            match rx.receive().unwrap() {
                None if Instant::now() < end => std::thread::sleep(Duration::from_micros(50)),
                received => break received?,
            }
        };
        rx.post(usize::MAX, BUFFER_BYTES).unwrap();
        Some(received)
    }

    /// All that it sent came back.
    #[track_caller]
    pub fn sent(&mut self) {
        let tx = &mut self.pairs[0].tx;
        wait("the end of sending", || {
            tx.reap().unwrap();
            (tx.outstanding() == 0).then_some(())
        });
    }

    /// Takes what has come: how many frames.
    pub fn empty(&mut self) -> usize {
        std::iter::from_fn(|| self.receive_within(Duration::ZERO)).count()
    }

    /// Nothing has come.
    #[track_caller]
    pub fn has_nothing(&mut self) {
        assert_eq!(self.pairs[0].rx.receive().unwrap(), None);
    }
}

/// A station tells everybody that an IPv4 address is its own: an ARP announcement.
pub fn arp_announcement(station: [u8; 6], address: [u8; 4]) -> Vec<u8> {
    let fixed = [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
    let mut frame =
        [&[0xff; 6][..], &station, &fixed, &station, &address, &[0; 6], &address].concat();
    frame.resize(60, 0);
    frame
}

/// A station tells everybody that an IPv6 address is its own: an unsolicited neighbour advertisement.
pub fn neighbour_advertisement(station: [u8; 6], address: [u8; 16]) -> Vec<u8> {
    let nodes = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let mut message = [136, 0, 0, 0, 0x20, 0, 0, 0].to_vec();
    message.extend(address);
    message.extend([2, 1]);
    message.extend(station);
    let summed = [&address[..], &nodes, &[0, 0, 0, 32, 0, 0, 0, 58], &message].concat();
    let words = summed.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let ip = [0x60, 0, 0, 0, 0, 32, 58, 255];
    let link = [&[0x33, 0x33, 0, 0, 0, 1][..], &station, &[0x86, 0xdd]].concat();
    [&link[..], &ip, &address, &nodes, &message].concat()
}

/// A frame with a number in it.
pub fn frame(from: [u8; 6], to: [u8; 6], number: u32, len: usize) -> Vec<u8> {
    let mut frame = [&to[..], &from, &[0x88, 0xb5]].concat();
    frame.extend(number.to_be_bytes());
    frame.extend((frame.len()..len).map(|at| (at as u32 * 31).wrapping_add(number) as u8));
    frame
}

/// The same frame in a VLAN; 1 is that of frames without a tag.
pub fn in_vlan(frame: Vec<u8>, vid: u16) -> Vec<u8> {
    let [high, low] = vid.to_be_bytes();
    if vid == 1 { frame } else { tagged(&frame, [0x81, 0, high, low]) }
}

#[track_caller]
pub fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_micros(50));
    }
}

impl Server {
    /// A network card and its client.
    #[track_caller]
    pub fn client(&self, number: u8, how: How, change: impl FnOnce(&mut EthernetSpec)) -> Client {
        let spec = card(self.dir.path(), number, change);
        let spec = AdapterSpec { queues: how.queues, ..spec };
        let socket = spec.socket.clone();
        self.must(Request::PutAdapter(spec));
        Client::connect(&socket, number, how)
    }

    /// Another specification for a card, under its client.
    #[track_caller]
    pub fn change(&self, number: u8, change: impl FnOnce(&mut EthernetSpec)) {
        self.must(Request::PutAdapter(card(self.dir.path(), number, change)));
    }

    /// Why an uplink is not opened.
    #[track_caller]
    pub fn refused(&self, uplink: UplinkSpec) -> Failure {
        match self.ask(Request::PutUplink(uplink)) {
            Reply::Error(failure) => failure,
            reply => panic!("{reply:?}"),
        }
    }

    /// … with the way out.
    #[track_caller]
    pub fn refusal(&self, uplink: UplinkSpec) -> String {
        let failure = self.refused(uplink);
        format!("{}; {}", failure.message, failure.help.unwrap())
    }

    /// An uplink to a card, of which there is only `v0`, and that is down.
    #[track_caller]
    pub fn refuses_what_is_no_card(&self, uplink: &UplinkSpec) {
        let refusal = |interface: &str| {
            self.refusal(UplinkSpec { interface: interface.to_owned(), ..uplink.clone() })
        };
        let missing = refusal("v7");
        assert!(missing.contains("No such device") && missing.contains("`ip link`"), "{missing}");
        let down = refusal("v0");
        assert!(down.contains("Network is down") && down.contains("ip link set v0 up"), "{down}");
        let other = refusal("lo");
        assert!(other.contains("name an Ethernet interface"), "{other}");
    }
}
