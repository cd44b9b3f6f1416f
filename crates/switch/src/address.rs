//! MAC addresses and VLANs.

use std::fmt;

/// A MAC address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// Whether it names a group; the broadcast is one.
    #[inline]
    #[must_use]
    pub fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether no bridge may forward it: 01:80:c2:00:00:00 to 0f (802.1Q table 8-1).
    #[inline]
    #[must_use]
    pub fn is_reserved(self) -> bool {
        self.0[..5] == [0x01, 0x80, 0xc2, 0, 0] && self.0[5] < 16
    }

    /// Its 48 bits.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A VLAN's number, 1 to 4094.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vid(u16);

impl Vid {
    /// None for 0 (a priority tag) and 4095 (reserved), and for what has more than 12 bits.
    #[must_use]
    pub const fn new(vid: u16) -> Option<Vid> {
        if vid >= 1 && vid <= 4094 { Some(Vid(vid)) } else { None }
    }

    /// The number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A set of VLANs.
#[derive(Clone, PartialEq, Eq)]
pub struct Vids([u64; 64]);

impl Vids {
    /// No VLAN.
    pub const NONE: Vids = Vids([0; 64]);
    /// All 4094.
    pub const ALL: Vids = {
        let mut words = [u64::MAX; 64];
        words[0] &= !1;
        words[63] &= !(1 << 63);
        Vids(words)
    };

    /// Whether it has that VLAN.
    #[inline]
    #[must_use]
    pub fn has(&self, vid: Vid) -> bool {
        self.0[usize::from(vid.0 / 64)] >> (vid.0 % 64) & 1 != 0
    }

    /// Adds a VLAN.
    pub fn insert(&mut self, vid: Vid) {
        self.0[usize::from(vid.0 / 64)] |= 1 << (vid.0 % 64);
    }
}

impl FromIterator<Vid> for Vids {
    fn from_iter<I: IntoIterator<Item = Vid>>(vids: I) -> Vids {
        let mut set = Vids::NONE;
        vids.into_iter().for_each(|vid| set.insert(vid));
        set
    }
}

impl fmt::Debug for Vids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries((1..4095).filter_map(Vid::new).filter(|vid| self.has(*vid))).finish()
    }
}

/// TPID of a customer's tag (802.1Q).
pub const CUSTOMER_TPID: u16 = 0x8100;
/// TPID of a provider's tag (802.1ad).
pub const SERVICE_TPID: u16 = 0x88a8;

/// A tag as it stands in a frame: TPID, then priority (3 bits), drop eligible (1), VLAN (12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// [`CUSTOMER_TPID`] or [`SERVICE_TPID`].
    pub tpid: u16,
    /// Priority, drop eligible, VLAN.
    pub tci: u16,
}

impl Tag {
    /// The 12 bits of the VLAN, 0 and 4095 included.
    #[inline]
    #[must_use]
    pub fn vid(self) -> u16 {
        self.tci & 0xfff
    }

    pub(crate) fn bytes(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.tpid.to_be_bytes(), self.tci.to_be_bytes());
        [a, b, c, d]
    }
}
