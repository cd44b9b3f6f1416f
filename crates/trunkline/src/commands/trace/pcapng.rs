//! A capture file as analysers of packets read it (pcapng, draft-ietf-opsawg-pcapng): one interface for each adapter or uplink.

use control::server::TraceEvent;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Frames are known by so many of their first bytes.
const SNAP_BYTES: u32 = 256;
/// Ethernet.
const LINK_TYPE: u16 = 1;

/// Options.
mod option {
    pub(super) const COMMENT: u16 = 1;
    pub(super) const APPLICATION: u16 = 4;
    pub(super) const NAME: u16 = 2;
    pub(super) const RESOLUTION: u16 = 9;
    pub(super) const FLAGS: u16 = 2;
    pub(super) const PACKET_ID: u16 = 5;
}

/// A capture that is being written. Nothing is written beyond its bound.
pub(super) struct Capture<W> {
    out: W,
    left: u64,
    interfaces: BTreeMap<String, u32>,
}

impl<W: Write> Capture<W> {
    /// Begins one of at most so many bytes.
    pub(super) fn new(out: W, bytes_max: u64) -> io::Result<Capture<W>> {
        let mut capture = Capture { out, left: bytes_max, interfaces: BTreeMap::new() };
        let mut body = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        body.extend([1, 0, 0, 0]);
        // The length of what follows is not known.
        body.extend([0xff; 8]);
        put_option(&mut body, option::APPLICATION, b"trunkline");
        end_options(&mut body);
        capture.block(0x0a0d_0d0a, &body)?;
        capture.out.flush()?;
        Ok(capture)
    }

    /// Adds an event; false: there is no room for it, nor for any other.
    pub(super) fn add(&mut self, event: &TraceEvent) -> io::Result<bool> {
        // What waits is told of again.
        if event.decision == "waits" {
            return Ok(true);
        }
        let (place, flags) = match &event.to {
            None => (&event.from, 1_u32),
            Some(to) => (to, 2),
        };
        let Some(interface) = self.interface(place)? else { return Ok(false) };
        let head: Vec<u8> = bytes_of(&event.head);
        let mut body = interface.to_le_bytes().to_vec();
        body.extend(((event.at_ns >> 32) as u32).to_le_bytes());
        body.extend((event.at_ns as u32).to_le_bytes());
        body.extend((head.len() as u32).to_le_bytes());
        body.extend(u32::try_from(event.bytes).unwrap_or(u32::MAX).to_le_bytes());
        body.extend(&head);
        pad(&mut body);
        let mut comment = super::decision(event);
        if event.to.is_some() {
            comment = format!("from {}: {comment}", event.from);
        }
        put_option(&mut body, option::COMMENT, comment.as_bytes());
        put_option(&mut body, option::FLAGS, &flags.to_le_bytes());
        if event.frame != 0 {
            put_option(&mut body, option::PACKET_ID, &event.frame.to_le_bytes());
        }
        end_options(&mut body);
        self.block(6, &body)
    }

    /// What was added is in the file.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The number of an interface, described first if it is new.
    fn interface(&mut self, name: &str) -> io::Result<Option<u32>> {
        if let Some(number) = self.interfaces.get(name) {
            return Ok(Some(*number));
        }
        let mut body = LINK_TYPE.to_le_bytes().to_vec();
        body.extend([0, 0]);
        body.extend(SNAP_BYTES.to_le_bytes());
        put_option(&mut body, option::NAME, name.as_bytes());
        // Nanoseconds.
        put_option(&mut body, option::RESOLUTION, &[9]);
        end_options(&mut body);
        if !self.block(1, &body)? {
            return Ok(None);
        }
        let number = self.interfaces.len() as u32;
        self.interfaces.insert(name.to_owned(), number);
        Ok(Some(number))
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<bool> {
        let length = body.len() as u64 + 12;
        if length > self.left {
            self.left = 0;
            return Ok(false);
        }
        self.left -= length;
        let length = (length as u32).to_le_bytes();
        for part in [&kind.to_le_bytes()[..], &length, body, &length] {
            self.out.write_all(part)?;
        }
        Ok(true)
    }
}

/// Blocks and options are aligned to 32 bits.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

fn put_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn end_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().as_chunks::<2>().0;
    let digit = |it: u8| char::from(it).to_digit(16).unwrap_or(0) as u8;
    pairs.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(to: Option<&str>, decision: &str) -> TraceEvent {
        TraceEvent {
            at_ns: 0x1_0000_0002,
            frame: 7,
            from: "ent0".into(),
            to: to.map(str::to_owned),
            vlan: Some(1),
            bytes: 1514,
            decision: decision.into(),
            copies: None,
            reason: (decision == "lost").then(|| "mtu_exceeded".into()),
            head: "0200000000010200000000020800ff".into(),
        }
    }

    /// The blocks of a file: kind and body; every length stands at both ends.
    fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |at: &[u8]| u32::from_le_bytes(at[..4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let length = word(&file[4..]) as usize;
            assert_eq!(length % 4, 0);
            let (block, rest) = file.split_at(length);
            assert_eq!(word(&block[length - 4..]) as usize, length);
            blocks.push((word(block), &block[8..length - 4]));
            file = rest;
        }
        blocks
    }

    #[test]
    fn a_capture_has_an_interface_for_each_port_and_a_packet_for_each_event() {
        let mut file = Vec::new();
        let mut capture = Capture::new(&mut file, 1 << 20).unwrap();
        for event in [
            event(None, "sent"),
            event(Some("ent1"), "waits"),
            event(Some("ent1"), "lost"),
            event(Some("ent0"), "delivered"),
        ] {
            assert!(capture.add(&event).unwrap());
        }
        let blocks = blocks(&file);
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [0x0a0d_0d0a, 1, 6, 1, 6, 6]);
        assert!(blocks[1].1.windows(4).any(|it| it == b"ent0"));
        let packet = blocks[4].1;
        let fixed = [1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 15, 0, 0, 0, 0xea, 5, 0, 0, 2, 0];
        assert_eq!(packet[..22], fixed, "interface, time, both lengths, and the frame");
        let text = b"from ent0: lost: mtu_exceeded";
        assert!(packet.windows(text.len()).any(|it| it == text));
        assert_eq!(blocks[5].1[..4], [0; 4], "its first interface");
    }

    #[test]
    fn a_capture_ends_at_its_bound() {
        let mut file = Vec::new();
        let mut capture = Capture::new(&mut file, 1000).unwrap();
        while capture.add(&event(None, "sent")).unwrap() {}
        assert!(
            !capture.add(&event(Some("ent9"), "lost")).unwrap(),
            "nothing comes behind the end"
        );
        assert!(file.len() <= 1000 && blocks(&file).len() > 3);
    }
}
