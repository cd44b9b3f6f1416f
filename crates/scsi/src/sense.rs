//! Status and sense data (SAM-5, 5.3; SPC-4, 4.5).
//!
//! A [`Sense`] is a small plain value that says what is wrong. It becomes bytes only when it is delivered, in the fixed format
//! or, where the client chose it by D_SENSE or by the DESC bit of REQUEST SENSE, in the descriptor format.

use crate::wire::put;

/// Status of a command (SAM-5, 5.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// Success.
    Good = 0x00,
    /// Sense data says what is wrong.
    CheckCondition = 0x02,
    /// Try again later.
    Busy = 0x08,
    /// Another I_T nexus has reserved the logical unit.
    ReservationConflict = 0x18,
    /// The task set has no room.
    TaskSetFull = 0x28,
    /// Aborted on behalf of another I_T nexus.
    TaskAborted = 0x40,
}

/// Sense keys (SPC-4, 4.5.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SenseKey {
    /// Nothing to say.
    NoSense = 0x0,
    /// The logical unit cannot be accessed.
    NotReady = 0x2,
    /// The medium failed.
    MediumError = 0x3,
    /// The server failed.
    HardwareError = 0x4,
    /// The command or its parameters are wrong.
    IllegalRequest = 0x5,
    /// Something happened that the client has to know.
    UnitAttention = 0x6,
    /// Writes are refused.
    DataProtect = 0x7,
    /// Aborted by the server.
    AbortedCommand = 0xb,
    /// The compared data differ.
    Miscompare = 0xe,
}

/// Additional sense codes with their qualifiers, `ASC << 8 | ASCQ` (SPC-4, annex F).
pub mod code {
    /// NO ADDITIONAL SENSE INFORMATION.
    pub const NOTHING: u16 = 0x0000;
    /// LOGICAL UNIT IS IN PROCESS OF BECOMING READY.
    pub const BECOMING_READY: u16 = 0x0401;
    /// LOGICAL UNIT NOT READY, MANUAL INTERVENTION REQUIRED.
    pub const MANUAL_INTERVENTION: u16 = 0x0403;
    /// LOGICAL UNIT NOT ACCESSIBLE, ASYMMETRIC ACCESS STATE TRANSITION.
    pub const ACCESS_STATE_TRANSITION: u16 = 0x040a;
    /// LOGICAL UNIT NOT ACCESSIBLE, TARGET PORT IN STANDBY STATE.
    pub const PORT_STANDBY: u16 = 0x040b;
    /// LOGICAL UNIT NOT ACCESSIBLE, TARGET PORT IN UNAVAILABLE STATE.
    pub const PORT_UNAVAILABLE: u16 = 0x040c;
    /// LOGICAL UNIT NOT READY, OFFLINE.
    pub const OFFLINE: u16 = 0x0412;
    /// WRITE ERROR.
    pub const WRITE_ERROR: u16 = 0x0c00;
    /// UNRECOVERED READ ERROR.
    pub const READ_ERROR: u16 = 0x1100;
    /// PARAMETER LIST LENGTH ERROR.
    pub const PARAMETER_LIST_LENGTH: u16 = 0x1a00;
    /// MISCOMPARE DURING VERIFY OPERATION.
    pub const MISCOMPARE: u16 = 0x1d00;
    /// INVALID COMMAND OPERATION CODE.
    pub const INVALID_OPCODE: u16 = 0x2000;
    /// LOGICAL BLOCK ADDRESS OUT OF RANGE.
    pub const LBA_OUT_OF_RANGE: u16 = 0x2100;
    /// INVALID FIELD IN CDB.
    pub const INVALID_FIELD_IN_CDB: u16 = 0x2400;
    /// LOGICAL UNIT NOT SUPPORTED.
    pub const LUN_NOT_SUPPORTED: u16 = 0x2500;
    /// INVALID FIELD IN PARAMETER LIST.
    pub const INVALID_FIELD_IN_PARAMETERS: u16 = 0x2600;
    /// INVALID RELEASE OF PERSISTENT RESERVATION.
    pub const INVALID_RELEASE: u16 = 0x2604;
    /// WRITE PROTECTED.
    pub const WRITE_PROTECTED: u16 = 0x2700;
    /// LOGICAL UNIT SOFTWARE WRITE PROTECTED.
    pub const SOFTWARE_WRITE_PROTECTED: u16 = 0x2702;
    /// SPACE ALLOCATION FAILED WRITE PROTECT.
    pub const SPACE_ALLOCATION_FAILED: u16 = 0x2707;
    /// NOT READY TO READY CHANGE, MEDIUM MAY HAVE CHANGED.
    pub const MEDIUM_CHANGED: u16 = 0x2800;
    /// POWER ON, RESET, OR BUS DEVICE RESET OCCURRED.
    pub const POWER_ON: u16 = 0x2900;
    /// SCSI BUS RESET OCCURRED.
    pub const BUS_RESET: u16 = 0x2902;
    /// BUS DEVICE RESET FUNCTION OCCURRED.
    pub const DEVICE_RESET: u16 = 0x2903;
    /// I_T NEXUS LOSS OCCURRED.
    pub const NEXUS_LOSS: u16 = 0x2907;
    /// MODE PARAMETERS CHANGED.
    pub const MODE_CHANGED: u16 = 0x2a01;
    /// RESERVATIONS PREEMPTED.
    pub const RESERVATIONS_PREEMPTED: u16 = 0x2a03;
    /// RESERVATIONS RELEASED.
    pub const RESERVATIONS_RELEASED: u16 = 0x2a04;
    /// REGISTRATIONS PREEMPTED.
    pub const REGISTRATIONS_PREEMPTED: u16 = 0x2a05;
    /// ASYMMETRIC ACCESS STATE CHANGED.
    pub const ACCESS_STATE_CHANGED: u16 = 0x2a06;
    /// CAPACITY DATA HAS CHANGED.
    pub const CAPACITY_CHANGED: u16 = 0x2a09;
    /// CANNOT READ MEDIUM - INCOMPATIBLE FORMAT.
    pub const INCOMPATIBLE_FORMAT: u16 = 0x3002;
    /// SAVING PARAMETERS NOT SUPPORTED.
    pub const SAVING_NOT_SUPPORTED: u16 = 0x3900;
    /// MEDIUM NOT PRESENT.
    pub const NO_MEDIUM: u16 = 0x3a00;
    /// MEDIUM NOT PRESENT - TRAY CLOSED.
    pub const NO_MEDIUM_TRAY_CLOSED: u16 = 0x3a01;
    /// MEDIUM NOT PRESENT - TRAY OPEN.
    pub const NO_MEDIUM_TRAY_OPEN: u16 = 0x3a02;
    /// INQUIRY DATA HAS CHANGED.
    pub const INQUIRY_CHANGED: u16 = 0x3f03;
    /// REPORTED LUNS DATA HAS CHANGED.
    pub const LUNS_CHANGED: u16 = 0x3f0e;
    /// INTERNAL TARGET FAILURE.
    pub const INTERNAL_FAILURE: u16 = 0x4400;
    /// MEDIUM REMOVAL PREVENTED.
    pub const REMOVAL_PREVENTED: u16 = 0x5302;
    /// INSUFFICIENT REGISTRATION RESOURCES.
    pub const NO_REGISTRATION_RESOURCES: u16 = 0x5504;
    /// ILLEGAL MODE FOR THIS TRACK.
    pub const ILLEGAL_MODE_FOR_TRACK: u16 = 0x6400;
}

/// Where in the CDB or the parameter list the error is (SPC-4, 4.5.2.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldPointer {
    /// In the CDB (C/D is one) or in the parameter list.
    pub in_cdb: bool,
    /// The byte.
    pub byte: u16,
    /// Most significant bit of the field, if it is not whole bytes.
    pub bit: Option<u8>,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sense {
    /// The key.
    pub key: SenseKey,
    /// One of [`code`].
    pub code: u16,
    /// The INFORMATION field.
    pub information: Option<u64>,
    /// The wrong field.
    pub field: Option<FieldPointer>,
}

/// Sense data in the fixed format without vendor's bytes.
pub const FIXED_BYTES: usize = 18;
/// More than the descriptor format takes with both descriptors that are used.
pub const SENSE_BYTES_MAX: usize = 32;

impl Sense {
    /// Nothing to say.
    pub const NONE: Sense = Sense::new(SenseKey::NoSense, code::NOTHING);

    /// A key and a code.
    #[must_use]
    pub const fn new(key: SenseKey, code: u16) -> Sense {
        Sense { key, code, information: None, field: None }
    }

    /// ILLEGAL REQUEST with this code.
    #[must_use]
    pub const fn illegal(code: u16) -> Sense {
        Sense::new(SenseKey::IllegalRequest, code)
    }

    /// INVALID FIELD IN CDB at this byte.
    #[must_use]
    pub const fn cdb(byte: u16) -> Sense {
        Sense::illegal(code::INVALID_FIELD_IN_CDB).at(FieldPointer {
            in_cdb: true,
            byte,
            bit: None,
        })
    }

    /// INVALID FIELD IN CDB at this byte, the field's most significant bit being `bit`.
    #[must_use]
    pub const fn cdb_bit(byte: u16, bit: u8) -> Sense {
        Sense::illegal(code::INVALID_FIELD_IN_CDB).at(FieldPointer {
            in_cdb: true,
            byte,
            bit: Some(bit),
        })
    }

    /// INVALID FIELD IN PARAMETER LIST at this byte.
    #[must_use]
    pub const fn parameter(byte: u16) -> Sense {
        Sense::illegal(code::INVALID_FIELD_IN_PARAMETERS).at(FieldPointer {
            in_cdb: false,
            byte,
            bit: None,
        })
    }

    /// The same with a field pointer.
    #[must_use]
    pub const fn at(mut self, field: FieldPointer) -> Sense {
        self.field = Some(field);
        self
    }

    /// The same with the INFORMATION field.
    #[must_use]
    pub const fn with_information(mut self, information: u64) -> Sense {
        self.information = Some(information);
        self
    }

    /// As bytes, in the descriptor format or in the fixed one. Returns their number.
    pub fn encode(&self, descriptors: bool, bytes: &mut [u8; SENSE_BYTES_MAX]) -> usize {
        *bytes = [0; SENSE_BYTES_MAX];
        if descriptors { self.encode_descriptors(bytes) } else { self.encode_fixed(bytes) }
    }

    /// The three bytes of the sense-key specific field (SPC-4, table 33); all zero when there is no field pointer.
    fn specific(&self) -> [u8; 3] {
        let Some(field) = self.field else { return [0; 3] };
        let [high, low] = field.byte.to_be_bytes();
        let bit = field.bit.map_or(0, |bit| 0x08 | bit & 0x07);
        [0x80 | u8::from(field.in_cdb) << 6 | bit, high, low]
    }

    /// SPC-4, 4.5.3. An INFORMATION that needs more than four bytes is not valid there.
    fn encode_fixed(&self, bytes: &mut [u8; SENSE_BYTES_MAX]) -> usize {
        bytes[0] = 0x70;
        bytes[2] = self.key as u8;
        if let Some(Ok(information)) = self.information.map(u32::try_from) {
            bytes[0] |= 0x80;
            put(bytes, 3, &information.to_be_bytes());
        }
        bytes[7] = 10;
        put(bytes, 12, &self.code.to_be_bytes());
        put(bytes, 15, &self.specific());
        FIXED_BYTES
    }

    /// SPC-4, 4.5.2: the INFORMATION descriptor (type 0) and the sense-key specific one (type 2).
    fn encode_descriptors(&self, bytes: &mut [u8; SENSE_BYTES_MAX]) -> usize {
        bytes[0] = 0x72;
        bytes[1] = self.key as u8;
        put(bytes, 2, &self.code.to_be_bytes());
        let mut at = 8;
        if let Some(information) = self.information {
            put(bytes, at, &[0x00, 0x0a, 0x80]);
            put(bytes, at + 4, &information.to_be_bytes());
            at += 12;
        }
        if self.field.is_some() {
            put(bytes, at, &[0x02, 0x06]);
            put(bytes, at + 4, &self.specific());
            at += 8;
        }
        // At most 28.
        bytes[7] = (at - 8) as u8;
        at
    }
}

#[cfg(test)]
mod tests;
