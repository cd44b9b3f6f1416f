//! Target port groups and REPORT TARGET PORT GROUPS (SPC-4, 6.36 and 5.15).

use crate::sense::code;
use crate::wire::len32;

/// Asymmetric access states (SPC-4, table 246).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AccessState {
    /// The best way.
    ActiveOptimized = 0x0,
    /// Works, and another way is better.
    ActiveNonOptimized = 0x1,
    /// Takes over if asked.
    Standby = 0x2,
    /// Does not work now.
    Unavailable = 0x3,
    /// The way is down.
    Offline = 0xe,
    /// Changing.
    Transitioning = 0xf,
}

impl AccessState {
    /// What a command is told that this state does not let through; nothing for the active ones (SPC-4, 5.15.2.4 and 5.15.2.5).
    pub(crate) fn refusal(self) -> Option<u16> {
        match self {
            AccessState::ActiveOptimized | AccessState::ActiveNonOptimized => None,
            AccessState::Standby => Some(code::PORT_STANDBY),
            AccessState::Unavailable => Some(code::PORT_UNAVAILABLE),
            AccessState::Offline => Some(code::OFFLINE),
            AccessState::Transitioning => Some(code::ACCESS_STATE_TRANSITION),
        }
    }
}

/// Target ports that always have the same access state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortGroup {
    /// Its number.
    pub id: u16,
    /// The state.
    pub state: AccessState,
    /// The one to prefer.
    pub preferred: bool,
    /// Relative identifiers of its ports.
    pub ports: Vec<u16>,
}

impl PortGroup {
    /// The only group.
    pub(crate) fn only(ports: Vec<u16>) -> PortGroup {
        PortGroup { id: 1, state: AccessState::ActiveOptimized, preferred: false, ports }
    }
}

/// The states that are reported: all.
const SUPPORTED: u8 = 0xcf;
/// STATUS CODE: changed implicitly, since there is no SET TARGET PORT GROUPS.
const IMPLICITLY: u8 = 0x02;

/// The whole answer. `extended`: with the header of the extended format.
pub(crate) fn report(groups: &[PortGroup], extended: bool) -> Vec<u8> {
    let mut list = Vec::new();
    if extended {
        // Format 001b; no implicit transition time.
        list.extend([0x10, 0, 0, 0]);
    }
    for group in groups {
        let ports = &group.ports[..group.ports.len().min(255)];
        let [high, low] = group.id.to_be_bytes();
        let state = u8::from(group.preferred) << 7 | group.state as u8;
        // At most 255.
        list.extend([state, SUPPORTED, high, low, 0, IMPLICITLY, 0, ports.len() as u8]);
        for port in ports {
            let [high, low] = port.to_be_bytes();
            list.extend([0, 0, high, low]);
        }
    }
    let mut bytes = len32(list.len()).to_be_bytes().to_vec();
    bytes.extend(list);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_listed_with_their_ports_spc4_6_36() {
        let groups = [
            PortGroup {
                id: 0x102,
                state: AccessState::ActiveOptimized,
                preferred: true,
                ports: vec![1, 0x203],
            },
            PortGroup { id: 3, state: AccessState::Offline, preferred: false, ports: vec![] },
        ];
        let plain = report(&groups, false);
        let (head, rest) = plain.split_at(4);
        assert_eq!(head, [0, 0, 0, 24]);
        assert_eq!(rest[..16], [0x80, 0xcf, 1, 2, 0, 2, 0, 2, 0, 0, 0, 1, 0, 0, 2, 3]);
        assert_eq!(rest[16..], [0x0e, 0xcf, 0, 3, 0, 2, 0, 0]);
        let extended = report(&groups, true);
        assert_eq!(extended[..8], [0, 0, 0, 28, 0x10, 0, 0, 0]);
        assert_eq!(extended[8..], *rest);
    }
}
