//! Uplinks: a client exchanges frames with sockets of the kernel behind a TAP, in a network namespace of the test's own.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;

use crate::common::Server;
use crate::common::net::{Client, How, OFFLOADS, PLAIN, card, ip, mac, quiet, wait};
use crate::common::segments::sum;
use partition::net::Received;
use protocol::message::{AdapterSpec, Reply, Request, UplinkSpec};
use protocol::stats::{ChannelCounter, QueueCounter};

const HOST: [u8; 4] = [10, 0, 0, 1];
const GUEST: [u8; 4] = [10, 0, 0, 2];

/// An IPv4 packet of the client's to the host, without its frame.
fn packet(protocol: u8, upper: &[u8]) -> Vec<u8> {
    let total = ((20 + upper.len()) as u16).to_be_bytes();
    let mut packet = vec![0x45, 0, total[0], total[1], 0, 1, 0x40, 0, 64, protocol, 0, 0];
    packet.extend(GUEST);
    packet.extend(HOST);
    let sum = sum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(upper);
    packet
}

fn pseudo(from: [u8; 4], to: [u8; 4], protocol: u8, length: usize) -> Vec<u8> {
    [&from[..], &to, &[0, protocol], &(length as u16).to_be_bytes()].concat()
}

/// The client's end of what goes over the wire.
struct Peer {
    client: Client,
    host: [u8; 6],
}

impl Peer {
    /// Asks for the host's address, and the host gets to know the client's.
    fn greet(client: Client) -> Peer {
        let mut peer = Peer { client, host: [0xff; 6] };
        let mac = peer.client.mac();
        let ask = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &mac, &GUEST, &[0; 6], &HOST].concat();
        peer.send_as(&PLAIN, [8, 6], &ask);
        let answer = peer.receive(|frame| frame[12..14] == [8, 6] && frame[20..22] == [0, 2]);
        assert_eq!(answer.frame[28..32], HOST);
        peer.host.copy_from_slice(&answer.frame[6..12]);
        peer
    }

    fn send_as(&mut self, header: &[u8], kind: [u8; 2], payload: &[u8]) {
        let frame = [&self.host[..], &self.client.mac(), &kind, payload].concat();
        self.client.send(header, &frame);
    }

    /// The next frame that is meant; questions for the client's address are answered meanwhile.
    #[track_caller]
    fn receive(&mut self, is_meant: impl Fn(&[u8]) -> bool) -> Received {
        loop {
            let received = self.client.receive();
            let frame = &received.frame;
            if is_meant(frame) {
                return received;
            }
            if frame[12..14] == [8, 6] && frame[20..22] == [0, 1] {
                let (mac, theirs) = (self.client.mac(), frame[22..32].to_vec());
                let is = [&[0, 1, 8, 0, 6, 4, 0, 2][..], &mac, &GUEST, &theirs].concat();
                self.send_as(&PLAIN, [8, 6], &is);
            }
        }
    }

    /// Until the host answers. Without a descriptor the interface has no carrier, and for up to a second after it has one again the kernel drops
    /// what is to be sent there.
    #[track_caller]
    fn wake_host(&mut self) {
        let mac = self.client.mac();
        let ask = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &mac, &GUEST, &[0; 6], &HOST].concat();
        wait("an answer of the host", || {
            self.send_as(&PLAIN, [8, 6], &ask);
            let answer = self.client.receive_within(std::time::Duration::from_millis(100))?;
            (answer.frame[12..14] == [8, 6] && answer.frame[20..22] == [0, 2]).then_some(())
        });
        // Answers to what was asked meanwhile.
        while self.client.receive_within(std::time::Duration::from_millis(100)).is_some() {}
    }

    /// The kernel echoes so many bytes.
    #[track_caller]
    fn ping(&mut self, number: u16, bytes: usize) {
        let payload: Vec<u8> = (0..bytes).map(|at| (at * 7 + usize::from(number)) as u8).collect();
        let mut echo = [&[8, 0, 0, 0, 0, 9][..], &number.to_be_bytes(), &payload].concat();
        let checksum = sum(&echo);
        echo[2..4].copy_from_slice(&checksum.to_be_bytes());
        self.send_as(&PLAIN, [8, 0], &packet(1, &echo));
        let back = self.receive(|frame| frame[12..14] == [8, 0] && frame[23] == 1);
        assert_eq!(sum(&back.frame[34..]), 0, "the checksum of the echo");
        assert_eq!((back.frame[34], &back.frame[40..42]), (0, &number.to_be_bytes()[..]));
        assert!(back.frame[42..] == payload, "{bytes} bytes came back otherwise");
    }
}

/// The client's end of a TCP connection.
struct Tcp<'a> {
    peer: &'a mut Peer,
    port: u16,
    sequence: u32,
    next: u32,
    /// Longest payload of a segment.
    mss: usize,
    /// Whether more than one segment goes in one frame, and checksums are left out.
    offloads: bool,
}

const SYN: u8 = 2;
const PSH: u8 = 8;
const ACK: u8 = 16;

impl<'a> Tcp<'a> {
    fn connect(peer: &'a mut Peer, port: u16, mtu: usize, offloads: bool) -> Tcp<'a> {
        let (sequence, mss) = (0x1000, mtu - 40);
        let mut tcp = Tcp { peer, port, sequence, next: 0, mss, offloads };
        tcp.send(SYN, &[]);
        let answer = tcp.receive();
        assert_eq!(answer[13] & (SYN | ACK), SYN | ACK);
        tcp.next = u32::from_be_bytes(answer[4..8].try_into().unwrap()).wrapping_add(1);
        tcp.sequence += 1;
        tcp.send(ACK, &[]);
        tcp
    }

    fn send(&mut self, flags: u8, payload: &[u8]) {
        let options: &[u8] =
            if flags & SYN == 0 { &[] } else { &[2, 4, (self.mss >> 8) as u8, self.mss as u8] };
        let mut segment = [0x30, 0x39].to_vec();
        segment.extend(self.port.to_be_bytes());
        segment.extend(self.sequence.to_be_bytes());
        segment.extend(self.next.to_be_bytes());
        segment.extend([((20 + options.len()) as u8 / 4) << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend(options);
        segment.extend(payload);
        let pseudo = pseudo(GUEST, HOST, 6, segment.len());
        let mut header = PLAIN;
        if self.offloads {
            let partial = !sum(&pseudo);
            segment[16..18].copy_from_slice(&partial.to_be_bytes());
            (header[0], header[6], header[8]) = (1, 34, 16);
            if payload.len() > self.mss {
                (header[1], header[2]) = (1, 54);
                header[4..6].copy_from_slice(&(self.mss as u16).to_le_bytes());
            }
        } else {
            let checksum = sum(&[&pseudo[..], &segment].concat());
            segment[16..18].copy_from_slice(&checksum.to_be_bytes());
        }
        self.peer.send_as(&header, [8, 0], &packet(6, &segment));
    }

    /// The next segment.
    #[track_caller]
    fn receive(&mut self) -> Vec<u8> {
        let port = self.port.to_be_bytes();
        let received = self
            .peer
            .receive(|frame| frame[12..14] == [8, 0] && frame[23] == 6 && frame[34..36] == port);
        let upper = &received.frame[34..];
        if !self.offloads {
            assert_eq!(received.header[..10], [0; 10], "nothing is left to it");
            assert!(upper.len() <= self.mss + 40, "{} bytes", upper.len());
        }
        if received.header[0] & 1 == 0 {
            assert_eq!(
                sum(&[&pseudo(HOST, GUEST, 6, upper.len())[..], upper].concat()),
                0,
                "its checksum"
            );
        }
        upper.to_vec()
    }

    /// All of this arrives.
    #[track_caller]
    fn write(&mut self, bytes: &[u8]) {
        let most = if self.offloads { 30_000 } else { self.mss };
        for piece in bytes.chunks(most) {
            self.send(ACK | PSH, piece);
            let end = self.sequence.wrapping_add(piece.len() as u32);
            while self.sequence != end {
                let answer = self.receive();
                self.sequence = u32::from_be_bytes(answer[8..12].try_into().unwrap());
            }
        }
    }

    /// So many bytes come; and the longest segment.
    #[track_caller]
    fn read(&mut self, bytes: usize) -> (Vec<u8>, usize) {
        let (mut all, mut longest) = (Vec::new(), 0);
        while all.len() < bytes {
            let segment = self.receive();
            let payload = &segment[usize::from(segment[12] >> 4) * 4..];
            let sequence = u32::from_be_bytes(segment[4..8].try_into().unwrap());
            if sequence == self.next && !payload.is_empty() {
                all.extend(payload);
                longest = longest.max(payload.len());
                self.next = self.next.wrapping_add(payload.len() as u32);
            }
            if !payload.is_empty() {
                self.send(ACK, &[]);
            }
        }
        (all, longest)
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 13 + at / 251) as u8).collect()
}

/// Both directions of a connection with a socket of the kernel.
#[track_caller]
fn stream(peer: &mut Peer, mtu: usize, offloads: bool) {
    let listener = TcpListener::bind("10.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let bytes = pattern(300_000);
    let wanted = bytes.clone();
    let host = std::thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        let mut got = vec![0; wanted.len()];
        stream.read_exact(&mut got).unwrap();
        assert!(got == wanted, "what the host received");
        stream.write_all(&wanted).unwrap();
        stream
    });
    let mut tcp = Tcp::connect(peer, port, mtu, offloads);
    tcp.write(&bytes);
    let (got, longest) = tcp.read(bytes.len());
    assert!(got == bytes, "what the client received");
    assert_eq!(longest > tcp.mss, offloads, "segments of {longest} bytes, MSS {}", tcp.mss);
    drop(host.join().unwrap());
}

fn uplink(mtu: u16) -> UplinkSpec {
    UplinkSpec { mtu, vids: vec![20], ..UplinkSpec::on("net", "up0") }
}

/// The host's address, on the VLAN of a client.
fn address(mtu: u16, pvid: u16) {
    if pvid == 1 {
        return ip("addr add 10.0.0.1/24 dev up0");
    }
    ip(&format!("link add link up0 name vlan0 type vlan id {pvid}"));
    ip(&format!("link set vlan0 mtu {mtu} up"));
    ip("addr add 10.0.0.1/24 dev vlan0");
}

#[test]
#[ignore = "in a namespace"]
fn a_client_reaches_the_host_inside() {
    quiet();
    for (channels, mtu, pvid, without, thread) in [
        (1, 1500, 1, 0, false),
        (1, 1500, 1, 0, true),
        (2, 1500, 1, OFFLOADS, false),
        (2, 1500, 1, OFFLOADS, true),
        (2, 9000, 1, 0, false),
        (2, 9000, 1, 0, true),
        (1, 1500, 20, 0, false),
        (2, 9000, 20, 0, false),
        (2, 9000, 20, 0, true),
        (2, 9000, 20, OFFLOADS, false),
        (2, 9000, 20, OFFLOADS, true),
    ] {
        let server = Server::new(channels);
        server.must(Request::PutUplink(UplinkSpec { thread, ..uplink(mtu) }));
        let status = server.status();
        let on = |number| if thread { channels - 1 } else { number };
        assert_eq!(status.uplinks[0].channel_of_queue, (0..channels).map(on).collect::<Vec<_>>());
        if pvid != 1 && !has_vlans() {
            server.must(Request::RemoveUplink { name: "up0".to_owned() });
            ip("link del up0");
            testkit::not_tested(
                "sockets of the host on a VLAN: this kernel has no such interfaces",
            );
            continue;
        }
        address(mtu, pvid);
        let how = How { without, ..How::default() };
        let client = server.client(1, how, |card| (card.mtu, card.pvid) = (mtu, pvid));
        let mut peer = Peer::greet(client);
        for (number, bytes) in (0..).zip([0, 1, 18, 214, 215, 1000, usize::from(mtu) - 28]) {
            peer.ping(number, bytes);
        }
        // They are counted when a batch is over, and may have arrived by another channel before.
        wait("what came to be counted", || {
            (server.count_of("up0", QueueCounter::RxFrames) >= 8).then_some(())
        });
        stream(&mut peer, usize::from(mtu), without == 0);
        // And then nobody looks: no thread of the server is woken.
        let awake = || -> u64 {
            let of =
                |counter| server.stats().channels.iter().map(|it| it.get(counter)).sum::<u64>();
            of(ChannelCounter::Turns) + of(ChannelCounter::Wakeups)
        };
        wait("an end of what the connection's end brings", || {
            let before = awake();
            std::thread::sleep(std::time::Duration::from_millis(300));
            (awake() == before).then_some(())
        });
        // What the kernel does not take is counted.
        let sent = server.count_of("ent1", QueueCounter::TxFrames);
        wait("all to be handed over", || {
            (server.count_of("up0", QueueCounter::TxFrames) == sent).then_some(())
        });
        ip("link set up0 down");
        peer.send_as(&PLAIN, [8, 0], &packet(17, &[0; 8]));
        wait("the failure", || {
            (server.count_of("up0", QueueCounter::DropFailure) == 1).then_some(())
        });
        server.must(Request::RemoveUplink { name: "up0".to_owned() });
        assert_eq!(server.status().uplinks, []);
        ip("link del up0");
    }
}

/// Whether this kernel has interfaces of a VLAN.
fn has_vlans() -> bool {
    let add = ["link", "add", "link", "lo", "name", "vlan-try", "type", "vlan", "id", "2"];
    let run = Command::new("ip").args(add).output().unwrap();
    if run.status.success() {
        ip("link del vlan-try");
    }
    run.status.success()
}

#[test]
#[ignore = "in a namespace"]
fn tags_pass_the_host_inside() {
    quiet();
    for (channels, without) in [(1, 0), (2, OFFLOADS)] {
        let server = Server::new(channels);
        let other = |spec: UplinkSpec| UplinkSpec { network: "other".to_owned(), ..spec };
        let second = UplinkSpec { vids: vec![20], ..UplinkSpec::on("net", "up1") };
        server.must(Request::PutUplink(uplink(1500)));
        server.must(Request::PutUplink(other(second)));
        // A bridge of the kernel that knows no VLANs passes tags as they are. With snooping it would join groups itself.
        ip("link add br0 type bridge mcast_snooping 0");
        for port in ["up0", "up1"] {
            ip(&format!("link set {port} master br0"));
        }
        ip("link set br0 up");
        let how = How { without, ..How::default() };
        let mut near = server.client(1, how, |card| card.pvid = 20);
        let mut far =
            server.client(2, how, |card| (card.pvid, card.network) = (20, "other".to_owned()));
        let mut trunk = server.client(3, how, |card| {
            (card.vids, card.network) = (vec![20], "other".to_owned());
        });
        let mut untagged = server.client(4, how, |card| card.network = "other".to_owned());
        for (number, len) in (0..).zip([60, 300, 1514]) {
            let frame = near.frame([0xff; 6], number, len);
            // The bridge forwards once its ports do.
            wait("the frame at the other end", || {
                near.send(&PLAIN, &frame);
                std::thread::sleep(std::time::Duration::from_millis(5));
                far.pairs[0].rx.receive().unwrap().map(|it| assert_eq!(it.frame, frame))
            });
            let tagged = [&frame[..12], &[0x81, 0, 0, 20], &frame[12..]].concat();
            assert_eq!(trunk.receive().frame, tagged);
            far.pairs[0].rx.post(usize::MAX, crate::common::net::BUFFER_BYTES).unwrap();
            let back = far.frame(mac(1), number, len);
            far.send(&PLAIN, &back);
            assert_eq!(near.receive().frame, back);
            while far.pairs[0].rx.receive().unwrap().is_some() {}
            while trunk.pairs[0].rx.receive().unwrap().is_some() {}
        }
        // UDP that is to be cut goes uncut from one TAP to the other.
        let payload = pattern(30_500);
        let mut upper =
            [&[0, 7, 0, 9][..], &(30_508_u16).to_be_bytes(), &[0, 0], &payload].concat();
        let partial = !sum(&pseudo(GUEST, HOST, 17, upper.len()));
        upper[6..8].copy_from_slice(&partial.to_be_bytes());
        let frame = [&mac(2)[..], &mac(1), &[8, 0], &packet(17, &upper)].concat();
        if without == 0 {
            let mut header = PLAIN;
            (header[0], header[1], header[2], header[6], header[8]) = (1, 5, 42, 34, 6);
            header[4..6].copy_from_slice(&1000_u16.to_le_bytes());
            near.send(&header, &frame);
            let came = far.receive();
            assert_eq!((came.header[1], came.frame), (5, frame), "it was cut");
        }
        untagged.has_nothing();
        for name in ["up0", "up1"] {
            server.must(Request::RemoveUplink { name: name.to_owned() });
            ip(&format!("link del {name}"));
        }
        ip("link del br0");
    }
}

#[test]
fn tags_pass_the_host() {
    testkit::in_network_namespace("tap::tags_pass_the_host_inside");
}

#[test]
fn a_client_reaches_the_host() {
    testkit::in_network_namespace("tap::a_client_reaches_the_host_inside");
}

#[test]
#[ignore = "in a namespace"]
fn each_channel_has_its_own_way_out_inside() {
    quiet();
    let server = Server::new(2);
    server.must(Request::PutUplink(uplink(1500)));
    address(1500, 1);
    let queues_of = |adapter: &str| {
        let mut queues = server.stats().queues;
        queues.retain(|queue| queue.adapter == adapter);
        queues
    };
    // Each with the queue by which it sends on a channel: both are there.
    let mut clients: Vec<Client> =
        (1..=2).map(|number| server.client(number, How::default(), |_| ())).collect();
    let mut channels: Vec<u32> = Vec::new();
    for (number, client) in (1..).zip(&mut clients) {
        let frame = client.frame([2, 9, 9, 9, 9, 9], number, 100);
        for sent in 1..=50 {
            client.send(&PLAIN, &frame);
            wait("the frame outside", || {
                let all: u64 =
                    queues_of("up0").iter().map(|queue| queue.get(QueueCounter::TxFrames)).sum();
                (all >= 50 * u64::from(number - 1) + sent).then_some(())
            });
        }
        let its = queues_of(&format!("ent{number}"));
        let sends = its.iter().find(|queue| queue.get(QueueCounter::TxFrames) > 0).unwrap();
        channels.push(sends.channel);
        let left = queues_of("up0").into_iter().find(|queue| queue.channel == sends.channel);
        assert!(left.is_some_and(|it| it.get(QueueCounter::TxFrames) >= 50), "{number}");
    }
    channels.sort_unstable();
    assert_eq!(channels, [0, 1]);
    assert_eq!(server.count_of("up0", QueueCounter::HandedOver), 0);
}

#[test]
fn each_channel_has_its_own_way_out() {
    testkit::in_network_namespace("tap::each_channel_has_its_own_way_out_inside");
}

#[test]
#[ignore = "in a namespace"]
fn what_comes_is_in_order_inside() {
    quiet();
    let server = Server::new(2);
    server.must(Request::PutUplink(uplink(1500)));
    address(1500, 1);
    let mut peer = Peer::greet(server.client(1, How::default(), |_| ()));
    ip("neigh replace 10.0.0.2 lladdr 02:00:00:00:00:01 dev up0 nud permanent");
    let socket = UdpSocket::bind("10.0.0.1:0").unwrap();
    socket.connect("10.0.0.2:9").unwrap();
    let (mut sent, mut came) = (0_u32, 0_u32);
    while came < 5000 {
        // No more at once than fit the inbox of a receiver on another channel.
        while sent < 5000 && sent - came < 60 {
            let bytes = [&sent.to_be_bytes()[..], &pattern(sent as usize % 1400)].concat();
            socket.send(&bytes).unwrap();
            sent += 1;
        }
        let frame = peer.receive(|frame| frame[12..14] == [8, 0] && frame[23] == 17).frame;
        assert_eq!(frame[42..46], came.to_be_bytes());
        assert!(frame[46..] == pattern(came as usize % 1400));
        came += 1;
    }
    // An interface that is taken away is no end of anything else.
    ip("link del up0");
    let mut other = server.client(2, How::default(), |_| ());
    let frame = other.frame([0xff; 6], 7, 100);
    other.send(&PLAIN, &frame);
    assert_eq!(peer.client.receive().frame, frame);
    let other = UplinkSpec { interface: "up1".to_owned(), ..uplink(1500) };
    let refused = server.ask(Request::PutUplink(other.clone()));
    let Reply::Error(failure) = refused else { panic!("{refused:?}") };
    assert!(failure.message.contains("in use"), "{failure:?}");
    server.must(Request::RemoveUplink { name: "up0".to_owned() });
    server.must(Request::PutUplink(other));
}

#[test]
fn what_comes_is_in_order() {
    testkit::in_network_namespace("tap::what_comes_is_in_order_inside");
}

#[test]
#[ignore = "in a namespace"]
fn what_cannot_be_opened_is_told_inside() {
    quiet();
    let server = Server::new(1);
    ip("link add up0 type bridge");
    let refused = server.ask(Request::PutUplink(uplink(1500)));
    let Reply::Error(failure) = refused else { panic!("{refused:?}") };
    assert!(failure.help.unwrap().contains("ip tuntap add up0"), "{}", failure.message);
    // One that was made before, for one descriptor, stays as it is.
    ip("link del up0");
    ip("tuntap add up0 mode tap vnet_hdr");
    ip("link set up0 mtu 1400 up");
    let server = Server::new(2);
    server.must(Request::PutUplink(uplink(1500)));
    assert_eq!(server.status().uplinks[0].channel_of_queue, [0]);
    assert_eq!(std::fs::read_to_string("/proc/net/dev").unwrap().matches("up0").count(), 1);
    address(1400, 1);
    // Whichever channel the client's queues are on.
    for number in 1..=3 {
        let mut peer = Peer::greet(server.client(number, How::default(), |_| ()));
        peer.ping(1, 1372);
    }
}

#[test]
fn what_cannot_be_opened_is_told() {
    testkit::in_network_namespace("tap::what_cannot_be_opened_is_told_inside");
}

#[test]
#[ignore = "in a namespace"]
fn the_host_is_reached_after_a_data_plane_was_killed_inside() {
    quiet();
    let dir = tempfile::tempdir().unwrap();
    let folder: &Path = dir.path();
    let spec: AdapterSpec = card(folder, 1, |_| ());
    // By turns bridged by the channel of the client, and by one of its own.
    let setups = [false, true].map(|thread| {
        let uplink = UplinkSpec { thread, ..uplink(1500) };
        [Request::PutUplink(uplink), Request::PutAdapter(spec.clone())]
    });
    let setup = &setups[0];
    let mut process = crate::common::process::Process::start(folder, setup);
    assert_eq!(process.status().confinement, protocol::message::CONFINED);
    address(1500, 1);
    let how = How {
        mask_protocol: partition::session::protocol_feature::INFLIGHT_SHMFD,
        ..How::default()
    };
    let mut peer = Peer::greet(Client::connect(&spec.socket, 1, how));
    for round in 0..5 {
        peer.ping(round, 1000);
        process.kill();
        let setup = &setups[usize::from(round) % 2];
        process = crate::common::process::Process::start(folder, setup);
        peer.client.session.reconnect(std::time::Duration::from_secs(60)).unwrap();
        // The address is still the interface's: nobody sets it again.
        peer.wake_host();
        peer.ping(round + 100, 1000);
        stream(&mut peer, 1500, true);
    }
    assert_eq!(mac(1), peer.client.mac());
    process.shut_down();
}

#[test]
fn the_host_is_reached_after_a_data_plane_was_killed() {
    testkit::in_network_namespace("tap::the_host_is_reached_after_a_data_plane_was_killed_inside");
}
