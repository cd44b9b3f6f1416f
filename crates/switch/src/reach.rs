//! Whether an address outside answers.

use core::net::Ipv4Addr;

use crate::address::Mac;
use crate::announce::{ANNOUNCEMENT_BYTES, arp};
use crate::packet::{Arp, Packet};
use crate::view::{ETHERNET_BYTES, View};

/// A question for an address, by a station that is nobody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Who asks: without an address, so that nobody learns one of it.
    pub station: Mac,
    /// Who is asked.
    pub address: Ipv4Addr,
}

/// What a frame from outside says to a [`Question`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Whoever has the address is there.
    Alive,
    /// Likewise, and the frame is for who asked, and nobody else.
    Answer,
}

impl Question {
    /// The frame, without a tag: an ARP probe (RFC 5227 clause 2.1.1), which everybody answers who has the address.
    #[must_use]
    pub fn frame<'a>(&self, room: &'a mut [u8; ANNOUNCEMENT_BYTES]) -> &'a [u8] {
        *room = [0; ANNOUNCEMENT_BYTES];
        let asked = self.address.octets();
        let len = arp(room, self.station.0, [0x08, 0x06, 1], [[0; 4], asked], [0; 6]);
        &room[..len]
    }

    /// What a frame says, if it has no tag. Each ARP packet of the address counts, whoever it is meant for.
    #[must_use]
    pub fn hear(&self, frame: &View<'_>) -> Option<Said> {
        let Packet::Arp(Arp { sender, .. }) = Packet::of(frame) else { return None };
        let untagged = frame.l3() == ETHERNET_BYTES;
        let theirs = sender.1 == self.address && sender.0 != self.station;
        let said = if frame.destination() == self.station { Said::Answer } else { Said::Alive };
        (untagged && theirs).then_some(said)
    }
}

/// Whether an address counts as one that answers: so by default, and otherwise when [`IN_A_ROW`] questions say so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    lost: bool,
    against: u8,
}

/// Questions with the same outcome that change what counts.
pub const IN_A_ROW: u8 = 3;

impl Reach {
    /// Of one that starts: no, until the first answer. Who comes back must not take the bridge from one that is answered to find out that it is not.
    #[must_use]
    pub fn unknown() -> Reach {
        Reach { lost: true, against: IN_A_ROW - 1 }
    }

    /// A question was answered in time, or was not; whether the address answers from now on.
    pub fn asked(&mut self, answered: bool) -> bool {
        self.against = if answered == self.lost { self.against + 1 } else { 0 };
        if self.against == IN_A_ROW {
            *self = Reach { lost: !self.lost, against: 0 };
        }
        self.answers()
    }

    /// Whether it counts as one that answers.
    #[must_use]
    pub fn answers(&self) -> bool {
        !self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: Mac = Mac([2, 0, 0, 0, 0, 7]);
    const QUESTION: Question = Question { station: STATION, address: Ipv4Addr::new(10, 1, 2, 3) };

    fn said(frame: &[u8]) -> Option<Said> {
        QUESTION.hear(&View::new(frame, frame.len()).expect("a frame"))
    }

    fn arp(destination: [u8; 6], tag: &[u8], operation: u8, sender: ([u8; 6], [u8; 4])) -> Vec<u8> {
        let fixed = [8, 6, 0, 1, 8, 0, 6, 4, 0, operation];
        let parts: [&[u8]; 7] =
            [&destination, &sender.0, tag, &fixed, &sender.0, &sender.1, &[0; 10]];
        parts.concat()
    }

    #[test]
    fn a_question_is_an_arp_probe_that_claims_no_address() {
        let mut room = [7; ANNOUNCEMENT_BYTES];
        let frame = QUESTION.frame(&mut room);
        let read = etherparse::ArpPacketSlice::from_slice(&frame[14..]).expect("ARP");
        assert_eq!((&frame[..6], &frame[6..12]), (&[0xff; 6][..], &STATION.0[..]));
        assert_eq!((read.operation().0, frame.len()), (1, 60));
        assert_eq!(
            (read.sender_hw_addr(), read.sender_protocol_addr()),
            (&STATION.0[..], &[0; 4][..])
        );
        assert_eq!(
            (read.target_hw_addr(), read.target_protocol_addr()),
            (&[0; 6][..], &[10, 1, 2, 3][..])
        );
        assert_eq!(said(frame), None, "its own question is no answer");
    }

    #[test]
    fn who_has_the_address_is_heard_by_whatever_it_says_by_arp() {
        let there = ([2, 0, 0, 0, 0, 9], [10, 1, 2, 3]);
        assert_eq!(said(&arp(STATION.0, &[], 2, there)), Some(Said::Answer));
        assert_eq!(said(&arp([0xff; 6], &[], 1, there)), Some(Said::Alive));
        assert_eq!(said(&arp([2, 0, 0, 0, 0, 8], &[], 2, there)), Some(Said::Alive));
        // In another VLAN, of another address, cut off, of no ARP, or our own come back.
        assert_eq!(said(&arp(STATION.0, &[0x81, 0, 0, 10], 2, there)), None);
        assert_eq!(said(&arp(STATION.0, &[], 2, (there.0, [10, 1, 2, 4]))), None);
        assert_eq!(said(&arp(STATION.0, &[], 2, there)[..30]), None);
        assert_eq!(said(&[0x45; 60]), None);
        assert_eq!(said(&arp([0xff; 6], &[], 1, (STATION.0, there.1))), None);
    }

    #[test]
    fn three_in_a_row_change_what_counts_and_fewer_do_not() {
        let mut reach = Reach::default();
        let mut tell = |all: &str| -> String {
            let word = |answered| if reach.asked(answered == '+') { '+' } else { '-' };
            all.chars().map(word).collect()
        };
        assert_eq!(tell("+--+--+--"), "+++++++++");
        assert_eq!(tell("-"), "-");
        assert_eq!(tell("++-++-"), "------");
        assert_eq!(tell("+++"), "--+");
        assert!(Reach::unknown().asked(true));
        let mut reach = Reach::unknown();
        assert_eq!(
            [false, true, true, true].map(|it| reach.asked(it)),
            [false, false, false, true]
        );
    }
}
