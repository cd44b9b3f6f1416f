//! The internet checksum (RFC 1071), over pieces.

/// A sum under way: bytes may come in pieces of any length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    total: u64,
    odd: bool,
}

impl Sum {
    /// Adds the next bytes.
    pub fn add(&mut self, mut bytes: &[u8]) {
        if let (true, [first, rest @ ..]) = (self.odd, bytes) {
            self.total += u64::from(*first);
            self.odd = false;
            bytes = rest;
        }
        // Big-endian words of 32 bits: their sum has the same remainder as that of words of 16 bits, and 64 bits
        // are room for sixteen gigabytes.
        let (words, rest) = bytes.as_chunks::<4>();
        self.total += words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum::<u64>();
        for (at, byte) in rest.iter().enumerate() {
            self.total += u64::from(*byte) << if at % 2 == 0 { 8 } else { 0 };
        }
        self.odd ^= rest.len() % 2 == 1;
    }

    /// The sum in 16 bits, as a partial checksum stands in a frame.
    #[must_use]
    pub fn fold(self) -> u16 {
        let mut total = self.total;
        while total > 0xffff {
            total = (total >> 16) + (total & 0xffff);
        }
        total as u16
    }

    /// The checksum. Where 0 would be read as "none" (UDP, RFC 768) its other form stands, which every receiver takes.
    #[must_use]
    pub fn checksum(self, zero_is_none: bool) -> u16 {
        match !self.fold() {
            0 if zero_is_none => 0xffff,
            sum => sum,
        }
    }
}
