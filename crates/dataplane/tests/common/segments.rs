//! Packets with what their sender leaves to others, and what must come of them: by sums of this file's own.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use partition::net::HEADER_BYTES;

use super::net::PLAIN;

/// Bytes of each segment.
pub const MSS: usize = 1000;

pub fn tagged(frame: &[u8], tag: [u8; 4]) -> Vec<u8> {
    [&frame[..12], &tag, &frame[12..]].concat()
}

pub fn sum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A frame of IPv4 with that upper header and payload, whose checksum at `field` is left out but for the pseudo header's sum; and the net header that says so.
pub fn left_out(
    (from, to): ([u8; 6], [u8; 6]),
    protocol: u8,
    upper: &[u8],
    field: usize,
) -> ([u8; HEADER_BYTES], Vec<u8>) {
    let (source, destination) = ([10, 0, 0, from[5]], [10, 0, 0, to[5]]);
    let total = (20 + upper.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend(source);
    packet.extend(destination);
    let own = sum(&packet);
    packet[10..12].copy_from_slice(&own.to_be_bytes());
    let pseudo = [&source[..], &destination, &[0, protocol], &(total - 20).to_be_bytes()].concat();
    packet.extend(upper);
    packet[20 + field..22 + field].copy_from_slice(&(!sum(&pseudo)).to_be_bytes());
    let mut header = PLAIN;
    (header[0], header[6], header[8]) = (1, 34, field as u8);
    (header, [&to[..], &from, &[8, 0], &packet].concat())
}

pub fn udp(ends: ([u8; 6], [u8; 6]), payload: &[u8]) -> ([u8; HEADER_BYTES], Vec<u8>) {
    let length = ((8 + payload.len()) as u16).to_be_bytes();
    left_out(ends, 17, &[&[0, 7, 0, 9, length[0], length[1], 0, 0], payload].concat(), 6)
}

/// One that is to be cut into datagrams of [`MSS`].
pub fn udp_uncut(ends: ([u8; 6], [u8; 6]), payload: &[u8]) -> ([u8; HEADER_BYTES], Vec<u8>) {
    let (mut header, frame) = udp(ends, payload);
    (header[1], header[2]) = (5, 42);
    header[4..6].copy_from_slice(&(MSS as u16).to_le_bytes());
    (header, frame)
}

/// One that is to be cut into segments of [`MSS`].
pub fn tcp(ends: ([u8; 6], [u8; 6]), payload: &[u8]) -> ([u8; HEADER_BYTES], Vec<u8>) {
    let segment = [0, 7, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0];
    let (mut header, frame) = left_out(ends, 6, &[&segment, payload].concat(), 16);
    (header[1], header[2]) = (1, 54);
    header[4..6].copy_from_slice(&(MSS as u16).to_le_bytes());
    (header, frame)
}

/// The frame with its checksum filled in, if that was left out; where it begins is where it must.
#[track_caller]
pub fn filled(header: &[u8], mut frame: Vec<u8>, l4: usize) -> Vec<u8> {
    if header[0] & 1 != 0 {
        let half = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let (start, field) = (half(6), half(6) + half(8));
        assert_eq!(start, l4, "where the checksum begins");
        let checksum = sum(&frame[start..]);
        frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    }
    frame
}

/// The payload of a frame of IPv4 whose checksum is right.
#[track_caller]
pub fn payload(frame: &[u8], l3: usize, upper: usize) -> Vec<u8> {
    let end = l3 + usize::from(u16::from_be_bytes([frame[l3 + 2], frame[l3 + 3]]));
    let bytes = &frame[l3 + 20..end];
    let length = (bytes.len() as u16).to_be_bytes();
    let pseudo = [&frame[l3 + 12..l3 + 20], &[0, frame[l3 + 9]], &length].concat();
    assert_eq!(sum(&[&pseudo[..], bytes].concat()), 0, "its checksum");
    assert_eq!(sum(&frame[l3..l3 + 20]), 0, "the packet's");
    bytes[upper..].to_vec()
}

pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 13 + at / 251) as u8).collect()
}
