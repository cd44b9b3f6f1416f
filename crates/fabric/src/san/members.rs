//! Lists as people write them: members of zones, LUNs of targets, LUNs of masks.
//!
//! Each reader has a writer that gives the list's one form, which is read back as the same list.

use super::Wwpn;
use crate::attribute::check_name;
use std::collections::{BTreeMap, BTreeSet};

/// The highest LUN: what the flat addressing of SAM-5 (4.7.7.3) can name.
pub const LUN_MAX: u16 = 16_383;

/// A member of a zone or a mask.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    /// An adapter, for both of its WWPNs, or a target.
    Name(String),
    /// A WWPN, whoever has it.
    Wwpn(Wwpn),
}

impl std::fmt::Display for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Member::Name(name) => f.write_str(name),
            Member::Wwpn(wwpn) => wwpn.fmt(f),
        }
    }
}

impl std::str::FromStr for Member {
    type Err = String;

    /// What can be a WWPN is one.
    fn from_str(text: &str) -> Result<Member, String> {
        if text.contains(':') || text.starts_with("0x") {
            return text.parse().map(Member::Wwpn);
        }
        match text.parse() {
            Ok(wwpn) => Ok(Member::Wwpn(wwpn)),
            Err(_) => check_name(text).map(|()| Member::Name(text.to_owned())),
        }
    }
}

/// The words of a list.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// Reads `vfchost0,array0,50:05:07:68:01:00:00:01`.
pub fn read_members(text: &str) -> Result<BTreeSet<Member>, String> {
    words(text).map(str::parse).collect()
}

/// Writes what [`read_members`] reads.
pub fn write_members(members: &BTreeSet<Member>) -> String {
    join(members.iter().map(ToString::to_string))
}

pub(crate) fn join(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(",")
}

fn lun(text: &str) -> Result<u16, String> {
    let number = text.trim().parse::<u16>().ok().filter(|lun| *lun <= LUN_MAX);
    number.ok_or_else(|| format!("`{text}` is not a LUN; LUNs are numbers from 0 to {LUN_MAX}"))
}

/// The LUNs of a target: number and volume, written `0=data,1=logs`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LunMap(pub BTreeMap<u16, String>);

impl std::str::FromStr for LunMap {
    type Err = String;

    fn from_str(text: &str) -> Result<LunMap, String> {
        let mut map = BTreeMap::new();
        for word in words(text) {
            let (number, volume) = word.split_once('=').ok_or_else(|| {
                format!("`{word}` is not a LUN with its volume; write `0=NAME,1=NAME`")
            })?;
            let (number, volume) = (lun(number)?, volume.trim());
            check_name(volume)?;
            if map.insert(number, volume.to_owned()).is_some() {
                return Err(format!("LUN {number} stands twice"));
            }
        }
        Ok(LunMap(map))
    }
}

impl std::fmt::Display for LunMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&join(self.0.iter().map(|(number, volume)| format!("{number}={volume}"))))
    }
}

/// The LUNs that a mask gives: `all`, or numbers and ranges, with `7=3` for the target's LUN 3 under the number 7.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Luns {
    /// Every one under its own number.
    All,
    /// The number for the initiator, and the target's.
    Some(BTreeMap<u16, u16>),
}

impl std::str::FromStr for Luns {
    type Err = String;

    fn from_str(text: &str) -> Result<Luns, String> {
        if text.trim() == "all" {
            return Ok(Luns::All);
        }
        let mut map = BTreeMap::new();
        let mut put = |shown: u16, behind: u16| match map.insert(shown, behind) {
            Some(_) => Err(format!("LUN {shown} stands twice")),
            None => Ok(()),
        };
        for word in words(text) {
            if let Some((shown, behind)) = word.split_once('=') {
                put(lun(shown)?, lun(behind)?)?;
                continue;
            }
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let (first, last) = (lun(first)?, lun(last)?);
            if first > last {
                return Err(format!("the range `{word}` runs backwards; write `{last}-{first}`"));
            }
            for number in first..=last {
                put(number, number)?;
            }
        }
        Ok(Luns::Some(map))
    }
}

impl std::fmt::Display for Luns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let map = match self {
            Luns::All => return f.write_str("all"),
            Luns::Some(map) => map,
        };
        // Ranges of LUNs under their own numbers, and the others one by one, by the number that is shown.
        let mut parts: Vec<(u16, u16, u16)> = Vec::new();
        for (&shown, &behind) in map {
            match parts.last_mut() {
                Some((first, last, from))
                    if *first == *from && shown == behind && *last + 1 == shown =>
                {
                    *last = shown;
                }
                _ => parts.push((shown, shown, behind)),
            }
        }
        f.write_str(&join(parts.into_iter().map(|(first, last, behind)| {
            if first != behind {
                format!("{first}={behind}")
            } else if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })))
    }
}
