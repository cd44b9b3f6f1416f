//! World-wide port names, and how they are given out.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// The name of a port in a Fibre Channel fabric.
///
/// Read as `c0:50:76:00:00:00:00:01`, `c050760000000001` or `0xc050760000000001`; written with colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Wwpn(pub u64);

impl Wwpn {
    /// The name of a port that is no initiator: the last three bytes of its server's prefix, and three of its own name. Those called `fcs` with a
    /// number below 2^23 have that, so that they differ.
    pub fn of_port(prefix: Prefix, port: &str) -> Wwpn {
        let number = port.strip_prefix("fcs").and_then(|number| number.parse::<u32>().ok());
        let number = number.filter(|number| *number < 1 << 23 && port == format!("fcs{number}"));
        // FNV-1a, folded, where there is none.
        let own = number.unwrap_or_else(|| {
            let hash = port.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
                (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
            });
            1 << 23 | (hash ^ hash >> 23) & ((1 << 23) - 1)
        });
        Wwpn(0x1000 << 48 | (prefix.0 & 0xff_ffff) << 24 | u64::from(own))
    }
}

impl fmt::Display for Wwpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        colons(f, &self.0.to_be_bytes())
    }
}

impl From<Wwpn> for String {
    fn from(wwpn: Wwpn) -> String {
        wwpn.to_string()
    }
}

impl TryFrom<String> for Wwpn {
    type Error = String;

    fn try_from(text: String) -> Result<Wwpn, String> {
        text.parse()
    }
}

impl FromStr for Wwpn {
    type Err = String;

    fn from_str(text: &str) -> Result<Wwpn, String> {
        let wrong = || {
            format!(
                "`{text}` is not a WWPN; write eight bytes, such as `c0:50:76:00:00:00:00:01`, or \
                 sixteen hexadecimal digits"
            )
        };
        let number = hex::<8>(text).map(u64::from_be_bytes).ok_or_else(wrong)?;
        // The names of nobody and of everybody.
        if number == 0 || number == u64::MAX { Err(wrong()) } else { Ok(Wwpn(number)) }
    }
}

/// Reads the two WWPNs of an adapter, separated by a comma.
pub fn read_pair(text: &str) -> Result<[Wwpn; 2], String> {
    let wrong = || format!("`{text}` is no pair of WWPNs; write two different ones with a comma");
    let (first, second) = text.split_once(',').ok_or_else(wrong)?;
    let pair = [first.trim().parse()?, second.trim().parse()?];
    if pair[0] == pair[1] { Err(wrong()) } else { Ok(pair) }
}

/// The first six bytes of the WWPNs that one server gives out; the last two are counted.
///
/// Read as `c0:50:76:12:34:56` or as twelve hexadecimal digits; written with colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(u64);

/// WWPNs that one prefix has.
pub const WWPNS_OF_PREFIX: u32 = 1 << 16;

impl Prefix {
    /// The prefix of a server whose identity has these low 24 bits, below the three bytes with which virtual adapters begin on
    /// PowerVM.
    pub fn of_system(system: u64) -> Prefix {
        Prefix(0xc0_5076 << 24 | (system & 0xff_ffff))
    }

    /// The WWPN with this number, below [`WWPNS_OF_PREFIX`].
    pub fn wwpn(self, number: u16) -> Wwpn {
        Wwpn(self.0 << 16 | u64::from(number))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        colons(f, &self.0.to_be_bytes()[2..])
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> String {
        prefix.to_string()
    }
}

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Prefix, String> {
        text.parse()
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Prefix, String> {
        let wrong = || {
            format!(
                "`{text}` is not a prefix of WWPNs; write six bytes, such as `c0:50:76:12:34:56`"
            )
        };
        let bytes = hex::<6>(text).ok_or_else(wrong)?;
        let number = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        if number == 0 || number == (1 << 48) - 1 { Err(wrong()) } else { Ok(Prefix(number)) }
    }
}

fn colons(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for (index, byte) in bytes.iter().enumerate() {
        let colon = if index == 0 { "" } else { ":" };
        write!(f, "{colon}{byte:02x}")?;
    }
    Ok(())
}

/// Exactly `N` bytes in hexadecimal, with a colon between all of them or none.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let byte = |text: &str| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits.then(|| u8::from_str_radix(text, 16).ok()).flatten()
    };
    if text.contains(':') {
        let mut parts = text.split(':');
        for slot in &mut bytes {
            *slot = byte(parts.next()?)?;
        }
        return parts.next().is_none().then_some(bytes);
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.len() != 2 * N || !digits.is_ascii() {
        return None;
    }
    for (index, slot) in bytes.iter_mut().enumerate() {
        *slot = byte(&digits[2 * index..2 * index + 2])?;
    }
    Some(bytes)
}

/// What was given out. It only ever grows, so that nothing is given out twice: not after a removal, and, kept by
/// whoever stores it, not after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ledger {
    /// The next number of each prefix.
    next: BTreeMap<Prefix, u32>,
    /// WWPNs that people chose themselves; they are passed over.
    chosen: BTreeSet<Wwpn>,
}

/// A prefix has no WWPN left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all WWPNs of the prefix {0} were given out")]
pub struct UsedUp(pub Prefix);

impl Ledger {
    /// A pair: the one with which an adapter logs in, and the one that a migration logs in with at the other side.
    pub fn take_pair(&mut self, prefix: Prefix) -> Result<[Wwpn; 2], UsedUp> {
        self.take(prefix, 2).map(|first| [first, Wwpn(first.0 + 1)])
    }

    /// One for a target.
    pub fn take_one(&mut self, prefix: Prefix) -> Result<Wwpn, UsedUp> {
        self.take(prefix, 1)
    }

    /// Notes WWPNs that people chose, so that they are not given to others.
    pub fn note(&mut self, chosen: impl IntoIterator<Item = Wwpn>) {
        for wwpn in chosen {
            let prefix = Prefix(wwpn.0 >> 16);
            let number = u32::try_from(wwpn.0 & 0xffff).unwrap_or(0);
            if number >= self.next.get(&prefix).copied().unwrap_or(0) {
                self.chosen.insert(wwpn);
            }
        }
    }

    /// How many pairs a prefix has left, those apart that people chose.
    pub fn pairs_left(&self, prefix: Prefix) -> u32 {
        (WWPNS_OF_PREFIX - self.next.get(&prefix).copied().unwrap_or(0)) / 2
    }

    /// The first of `count` neighbours, aligned.
    fn take(&mut self, prefix: Prefix, count: u32) -> Result<Wwpn, UsedUp> {
        let mut number = self.next.get(&prefix).copied().unwrap_or(0).next_multiple_of(count);
        loop {
            let end = number + count;
            if end > WWPNS_OF_PREFIX {
                return Err(UsedUp(prefix));
            }
            let name = |number: u32| prefix.wwpn(u16::try_from(number).unwrap_or(u16::MAX));
            if (number..end).all(|number| !self.chosen.contains(&name(number))) {
                self.next.insert(prefix, end);
                return Ok(name(number));
            }
            number = end;
        }
    }
}
