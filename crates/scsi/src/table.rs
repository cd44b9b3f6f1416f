//! The commands, in one table.
//!
//! From it come the dispatch of a CDB, the answer to REPORT SUPPORTED OPERATION CODES, and what a reservation allows (SPC-4, table
//! 66; SBC-3, table 13; for RESERVE and RELEASE, SPC-2, table 10).

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    TestUnitReady,
    RequestSense,
    Inquiry,
    ReportLuns,
    ReadCapacity10,
    ReadCapacity16,
    GetLbaStatus,
    Read,
    Write,
    WriteAndVerify,
    Verify,
    WriteSame,
    Unmap,
    CompareAndWrite,
    SynchronizeCache,
    PreFetch,
    ModeSense,
    ModeSelect,
    StartStop,
    PreventAllow,
    SendDiagnostic,
    ReportOpcodes,
    ReportFunctions,
    ReportPortGroups,
    ReservationsIn,
    ReservationsOut,
    Reserve,
    Release,
    ReadDefects,
    LogSense,
    ReadToc,
    GetConfiguration,
    EventStatus,
    DiscInformation,
    TrackInformation,
    DvdStructure,
    SetSpeed,
    MechanismStatus,
    ReadCd,
}

/// What a command is for who counts it and carries it to its logical unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// It takes data from the medium to the client.
    Read,
    /// It takes data from the client to the medium.
    Write,
    /// COMPARE AND WRITE.
    CompareAndWrite,
    /// It makes earlier writes durable.
    Flush,
    /// UNMAP.
    Discard,
    /// WRITE SAME.
    WriteSame,
    /// It tells which logical units there are.
    ReportLuns,
    /// It changes reservations or registrations.
    Reserve,
    /// Any other, known or not.
    Other,
}

impl Class {
    /// Of a command with this operation code.
    #[inline]
    #[must_use]
    pub fn of(opcode: u8) -> Class {
        CLASSES[usize::from(opcode)]
    }

    /// Whether it must not be done a second time where nobody knows how far the first one came: its answer depends on what the first one changed.
    #[must_use]
    pub fn happens_once(self) -> bool {
        matches!(self, Class::CompareAndWrite | Class::Reserve)
    }
}

impl Verb {
    const fn class(self) -> Class {
        match self {
            Verb::Read => Class::Read,
            Verb::Write | Verb::WriteAndVerify => Class::Write,
            Verb::CompareAndWrite => Class::CompareAndWrite,
            Verb::SynchronizeCache => Class::Flush,
            Verb::Unmap => Class::Discard,
            Verb::WriteSame => Class::WriteSame,
            Verb::ReportLuns => Class::ReportLuns,
            Verb::ReservationsOut | Verb::Reserve | Verb::Release => Class::Reserve,
            _ => Class::Other,
        }
    }
}

/// Whom a reservation of another I_T nexus keeps from a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// Nobody.
    Always,
    /// Who may not read: exclusive access.
    Read,
    /// Who may not write.
    Write,
    /// The command has rules of its own.
    Own,
}

/// What a logical unit must have for a command to exist, as bits: whether it lacks any of it is one instruction on the path of
/// an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Needs(u8);

impl Needs {
    pub(crate) const NOTHING: Needs = Needs(0);
    pub(crate) const THIN_PROVISIONING: Needs = Needs(1);
    pub(crate) const REMOVABLE_MEDIUM: Needs = Needs(2);
    /// It is a disk.
    pub(crate) const DISK: Needs = Needs(4);
    /// It is an optical drive.
    pub(crate) const OPTICAL: Needs = Needs(8);
    /// It can be reserved.
    pub(crate) const RESERVATIONS: Needs = Needs(16);

    pub(crate) const fn and(self, other: Needs) -> Needs {
        Needs(self.0 | other.0)
    }

    /// Whether nothing of it is lacking.
    #[inline]
    pub(crate) const fn met(self, lacks: Needs) -> bool {
        self.0 & lacks.0 == 0
    }
}

/// By which ways a command comes through: the access state of the target port group decides (SPC-4, 5.15.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Path {
    /// Active ones.
    Active,
    /// Also one in standby.
    Standby,
    /// All.
    Any,
}

/// One command.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) opcode: u8,
    pub(crate) action: Option<u8>,
    pub(crate) verb: Verb,
    pub(crate) access: Access,
    /// Allowed while another I_T nexus holds a RESERVE of SPC-2.
    pub(crate) despite_reserve: bool,
    /// Refused while there is no medium.
    pub(crate) needs_medium: bool,
    pub(crate) needs: Needs,
    pub(crate) path: Path,
    /// Bits that are evaluated (CDB USAGE DATA); its length is that of the CDB.
    pub(crate) usage: &'static [u8],
}

const fn spec(opcode: u8, verb: Verb, access: Access, usage: &'static [u8]) -> Spec {
    assert!(usage[0] == opcode);
    let (needs, path) = (Needs::NOTHING, Path::Active);
    let (action, despite_reserve, needs_medium) = (None, false, false);
    Spec { opcode, action, verb, access, despite_reserve, needs_medium, needs, path, usage }
}

/// With a service action in the low five bits of byte 1.
const fn action(opcode: u8, verb: Verb, access: Access, usage: &'static [u8]) -> Spec {
    let mut spec = spec(opcode, verb, access, usage);
    spec.action = Some(usage[1] & 0x1f);
    spec
}

/// A command to the medium.
const fn medium(opcode: u8, verb: Verb, access: Access, usage: &'static [u8]) -> Spec {
    let mut spec = spec(opcode, verb, access, usage);
    spec.needs_medium = true;
    spec
}

/// A command to the medium of a disk.
const fn disk(opcode: u8, verb: Verb, access: Access, usage: &'static [u8]) -> Spec {
    with(medium(opcode, verb, access, usage), Needs::DISK)
}

/// A command of optical drives.
const fn drive(opcode: u8, verb: Verb, access: Access, usage: &'static [u8]) -> Spec {
    with(spec(opcode, verb, access, usage), Needs::OPTICAL)
}

/// A command to the medium of an optical drive.
const fn disc(opcode: u8, verb: Verb, usage: &'static [u8]) -> Spec {
    with(medium(opcode, verb, Access::Read, usage), Needs::OPTICAL)
}

const fn despite(mut spec: Spec) -> Spec {
    spec.despite_reserve = true;
    spec
}

const fn on_medium(mut spec: Spec) -> Spec {
    spec.needs_medium = true;
    spec
}

const fn with(mut spec: Spec, needs: Needs) -> Spec {
    spec.needs = spec.needs.and(needs);
    spec
}

const fn by(mut spec: Spec, path: Path) -> Spec {
    spec.path = path;
    spec
}

/// Sorted by operation code and service action.
pub(crate) static COMMANDS: &[Spec] = &[
    on_medium(spec(0x00, Verb::TestUnitReady, Access::Always, &[0x00, 0, 0, 0, 0, 0])),
    by(
        despite(spec(0x03, Verb::RequestSense, Access::Always, &[0x03, 1, 0, 0, 0xff, 0])),
        Path::Any,
    ),
    medium(0x08, Verb::Read, Access::Read, &[0x08, 0x1f, 0xff, 0xff, 0xff, 0]),
    disk(0x0a, Verb::Write, Access::Write, &[0x0a, 0x1f, 0xff, 0xff, 0xff, 0]),
    by(
        despite(spec(0x12, Verb::Inquiry, Access::Always, &[0x12, 1, 0xff, 0xff, 0xff, 0])),
        Path::Any,
    ),
    by(spec(0x15, Verb::ModeSelect, Access::Write, &[0x15, 0x11, 0, 0, 0xff, 0]), Path::Standby),
    reserve(Verb::Reserve, &[0x16, 0x11, 0, 0, 0, 0]),
    despite(reserve(Verb::Release, &[0x17, 0x11, 0, 0, 0, 0])),
    by(
        spec(0x1a, Verb::ModeSense, Access::Read, &[0x1a, 0x08, 0xff, 0xff, 0xff, 0]),
        Path::Standby,
    ),
    spec(0x1b, Verb::StartStop, Access::Own, &[0x1b, 1, 0, 0x0f, 0xf7, 0]),
    by(
        with(
            spec(0x1d, Verb::SendDiagnostic, Access::Write, &[0x1d, 0xff, 0, 0xff, 0xff, 0]),
            Needs::DISK,
        ),
        Path::Standby,
    ),
    with(
        spec(0x1e, Verb::PreventAllow, Access::Own, &[0x1e, 0, 0, 0, 0x03, 0]),
        Needs::REMOVABLE_MEDIUM,
    ),
    // In standby as well, which the standard leaves open: a client that meets the disk this way first knows how large it is.
    by(
        despite(medium(
            0x25,
            Verb::ReadCapacity10,
            Access::Always,
            &[0x25, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0],
        )),
        Path::Standby,
    ),
    medium(
        0x28,
        Verb::Read,
        Access::Read,
        &[0x28, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0],
    ),
    disk(
        0x2a,
        Verb::Write,
        Access::Write,
        &[0x2a, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0],
    ),
    disk(
        0x2e,
        Verb::WriteAndVerify,
        Access::Write,
        &[0x2e, 0xf6, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0],
    ),
    medium(
        0x2f,
        Verb::Verify,
        Access::Read,
        &[0x2f, 0xf6, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0],
    ),
    disk(
        0x34,
        Verb::PreFetch,
        Access::Read,
        &[0x34, 0x02, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0],
    ),
    disk(
        0x35,
        Verb::SynchronizeCache,
        Access::Write,
        &[0x35, 0x02, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0],
    ),
    disk(0x37, Verb::ReadDefects, Access::Read, &[0x37, 0, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0]),
    disk(
        0x41,
        Verb::WriteSame,
        Access::Write,
        &[0x41, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0],
    ),
    with(
        disk(0x42, Verb::Unmap, Access::Write, &[0x42, 1, 0, 0, 0, 0, 0x1f, 0xff, 0xff, 0]),
        Needs::THIN_PROVISIONING,
    ),
    disc(0x43, Verb::ReadToc, &[0x43, 0x02, 0x0f, 0, 0, 0, 0xff, 0xff, 0xff, 0xc0]),
    despite(drive(
        0x46,
        Verb::GetConfiguration,
        Access::Always,
        &[0x46, 0x03, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0],
    )),
    despite(drive(
        0x4a,
        Verb::EventStatus,
        Access::Always,
        &[0x4a, 0x01, 0, 0, 0x7e, 0, 0, 0xff, 0xff, 0],
    )),
    by(
        despite(spec(
            0x4d,
            Verb::LogSense,
            Access::Always,
            &[0x4d, 0x03, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, 0],
        )),
        Path::Standby,
    ),
    disc(0x51, Verb::DiscInformation, &[0x51, 0x07, 0, 0, 0, 0, 0, 0xff, 0xff, 0]),
    disc(0x52, Verb::TrackInformation, &[0x52, 0x03, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0]),
    by(
        spec(0x55, Verb::ModeSelect, Access::Write, &[0x55, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, 0]),
        Path::Standby,
    ),
    reserve(Verb::Reserve, &[0x56, 0x11, 0, 0, 0, 0, 0, 0, 0, 0]),
    despite(reserve(Verb::Release, &[0x57, 0x11, 0, 0, 0, 0, 0, 0, 0, 0])),
    by(
        spec(
            0x5a,
            Verb::ModeSense,
            Access::Read,
            &[0x5a, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0],
        ),
        Path::Standby,
    ),
    reservations_in(&[0x5e, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0]),
    reservations_in(&[0x5e, 1, 0, 0, 0, 0, 0, 0xff, 0xff, 0]),
    reservations_in(&[0x5e, 2, 0, 0, 0, 0, 0, 0xff, 0xff, 0]),
    reservations_in(&[0x5e, 3, 0, 0, 0, 0, 0, 0xff, 0xff, 0]),
    reservations_out(&[0x5f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]),
    reservations_out(&[0x5f, 1, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]),
    reservations_out(&[0x5f, 2, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]),
    reservations_out(&[0x5f, 3, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]),
    reservations_out(&[0x5f, 4, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]),
    reservations_out(&[0x5f, 5, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]),
    reservations_out(&[0x5f, 6, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]),
    reservations_out(&[0x5f, 7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]),
    disk(0x88, Verb::Read, Access::Read, &sixteen(0x88, 0xf8)),
    disk(
        0x89,
        Verb::CompareAndWrite,
        Access::Write,
        &[0x89, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0xff, 0x1f, 0],
    ),
    disk(0x8a, Verb::Write, Access::Write, &sixteen(0x8a, 0xf8)),
    disk(0x8e, Verb::WriteAndVerify, Access::Write, &sixteen(0x8e, 0xf6)),
    disk(0x8f, Verb::Verify, Access::Read, &sixteen(0x8f, 0xf6)),
    disk(0x90, Verb::PreFetch, Access::Read, &sixteen(0x90, 0x02)),
    disk(0x91, Verb::SynchronizeCache, Access::Write, &sixteen(0x91, 0x02)),
    disk(0x93, Verb::WriteSame, Access::Write, &sixteen(0x93, 0xf9)),
    by(
        despite(disk_action(Verb::ReadCapacity16, Access::Always, &action_in(0x10, 1))),
        Path::Standby,
    ),
    disk_action(Verb::GetLbaStatus, Access::Read, &action_in(0x12, 0)),
    by(
        despite(spec(
            0xa0,
            Verb::ReportLuns,
            Access::Always,
            &[0xa0, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0],
        )),
        Path::Any,
    ),
    // Optical drives have no port groups.
    with(
        by(
            action(
                0xa3,
                Verb::ReportPortGroups,
                Access::Always,
                &[0xa3, 0xea, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0],
            ),
            Path::Any,
        ),
        Needs::DISK,
    ),
    action(
        0xa3,
        Verb::ReportOpcodes,
        Access::Read,
        &[0xa3, 0x0c, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0],
    ),
    action(
        0xa3,
        Verb::ReportFunctions,
        Access::Read,
        &[0xa3, 0x0d, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0],
    ),
    medium(0xa8, Verb::Read, Access::Read, &twelve(0xa8, 0xf8)),
    disk(0xaa, Verb::Write, Access::Write, &twelve(0xaa, 0xf8)),
    disc(
        0xad,
        Verb::DvdStructure,
        &[0xad, 0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc0, 0],
    ),
    disk(0xae, Verb::WriteAndVerify, Access::Write, &twelve(0xae, 0xf6)),
    disk(0xaf, Verb::Verify, Access::Read, &twelve(0xaf, 0xf6)),
    disk(
        0xb7,
        Verb::ReadDefects,
        Access::Read,
        &[0xb7, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0],
    ),
    drive(
        0xbb,
        Verb::SetSpeed,
        Access::Read,
        &[0xbb, 0x03, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0],
    ),
    drive(
        0xbd,
        Verb::MechanismStatus,
        Access::Always,
        &[0xbd, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0],
    ),
    disc(
        0xbe,
        Verb::ReadCd,
        &[0xbe, 0x1e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x07, 0],
    ),
];

/// RESERVE and RELEASE of SPC-2; of byte 1, third-party reservations and extents are looked at, and refused.
const fn reserve(verb: Verb, usage: &'static [u8]) -> Spec {
    with(spec(usage[0], verb, Access::Own, usage), Needs::RESERVATIONS)
}

const fn reservations_out(usage: &'static [u8]) -> Spec {
    let out = action(0x5f, Verb::ReservationsOut, Access::Own, usage);
    with(by(out, Path::Standby), Needs::RESERVATIONS)
}

const fn reservations_in(usage: &'static [u8]) -> Spec {
    let answer = action(0x5e, Verb::ReservationsIn, Access::Always, usage);
    with(by(answer, Path::Standby), Needs::RESERVATIONS)
}

/// SERVICE ACTION IN(16) to a disk.
const fn disk_action(verb: Verb, access: Access, usage: &'static [u8]) -> Spec {
    with(on_medium(action(0x9e, verb, access, usage)), Needs::DISK)
}

const fn action_in(action: u8, flags: u8) -> [u8; 16] {
    let mut usage = [0xff; 16];
    (usage[0], usage[1], usage[14], usage[15]) = (0x9e, action, flags, 0);
    usage
}

const fn sixteen(opcode: u8, flags: u8) -> [u8; 16] {
    let mut usage = [0xff; 16];
    (usage[0], usage[1], usage[14], usage[15]) = (opcode, flags, 0x1f, 0);
    usage
}

const fn twelve(opcode: u8, flags: u8) -> [u8; 12] {
    let mut usage = [0xff; 12];
    (usage[0], usage[1], usage[10], usage[11]) = (opcode, flags, 0x1f, 0);
    usage
}

const NO_COMMAND: u8 = u8::MAX;

/// The first row of each operation code.
static FIRST: [u8; 256] = {
    let mut first = [NO_COMMAND; 256];
    let mut row = COMMANDS.len();
    assert!(row < NO_COMMAND as usize);
    while row > 0 {
        row -= 1;
        first[COMMANDS[row].opcode as usize] = row as u8;
    }
    first
};

/// All commands of an operation code are of one class.
static CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut row = 0;
    while row < COMMANDS.len() {
        classes[COMMANDS[row].opcode as usize] = COMMANDS[row].verb.class();
        row += 1;
    }
    classes
};

/// All rows of an operation code.
pub(crate) fn rows(opcode: u8) -> &'static [Spec] {
    let first = FIRST[usize::from(opcode)];
    if first == NO_COMMAND {
        return &[];
    }
    let rows = &COMMANDS[usize::from(first)..];
    let count = rows.iter().take_while(|row| row.opcode == opcode).count();
    &rows[..count]
}

/// Why a CDB names no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    Opcode,
    Action,
}

/// The row of a CDB.
#[inline]
pub(crate) fn find(opcode: u8, byte1: u8) -> Result<&'static Spec, Unknown> {
    let first = FIRST[usize::from(opcode)];
    let Some(row) = COMMANDS.get(usize::from(first)) else {
        return Err(Unknown::Opcode);
    };
    if row.action.is_none() {
        return Ok(row);
    }
    let action = Some(byte1 & 0x1f);
    rows(opcode).iter().find(|row| row.action == action).ok_or(Unknown::Action)
}

/// How long the CDB of an operation code is (SPC-4, 4.2.5.1); `None` for those of variable length or a vendor's own.
pub(crate) fn cdb_len(opcode: u8) -> Option<usize> {
    match opcode >> 5 {
        0 => Some(6),
        1 | 2 => Some(10),
        4 => Some(16),
        5 => Some(12),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_unique_and_of_the_length_that_their_group_says() {
        let key = |row: &Spec| (row.opcode, row.action);
        assert!(COMMANDS.windows(2).all(|pair| key(&pair[0]) < key(&pair[1])));
        for row in COMMANDS {
            assert_eq!(cdb_len(row.opcode), Some(row.usage.len()), "{:#x}", row.opcode);
            assert!(row.action.is_none_or(|action| action == row.usage[1] & 0x1f));
        }
    }

    #[test]
    fn every_command_of_an_operation_code_is_of_its_class() {
        for row in COMMANDS {
            assert_eq!(Class::of(row.opcode), row.verb.class(), "{:#x}", row.opcode);
        }
        assert_eq!(Class::of(0xff), Class::Other);
        let once: Vec<u8> = (0..=255).filter(|opcode| Class::of(*opcode).happens_once()).collect();
        assert_eq!(once, [0x16, 0x17, 0x56, 0x57, 0x5f, 0x89]);
    }

    #[test]
    fn every_row_is_found_and_nothing_else() {
        for opcode in 0..=255 {
            for byte1 in 0..32 {
                let expected = COMMANDS.iter().find(|row| {
                    row.opcode == opcode && row.action.is_none_or(|action| action == byte1)
                });
                match (find(opcode, byte1), expected) {
                    (Ok(found), Some(row)) => assert!(std::ptr::eq(found, row)),
                    (Err(Unknown::Action), None) => assert!(!rows(opcode).is_empty()),
                    (Err(Unknown::Opcode), None) => assert!(rows(opcode).is_empty()),
                    (found, expected) => panic!("{opcode:#x}: {found:?}, not {expected:?}"),
                }
            }
        }
    }
}
