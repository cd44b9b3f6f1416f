//! [`Identity`]: who a logical unit says it is.

/// What INQUIRY says about a logical unit. Text is cut to its field and filled with spaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// T10 VENDOR IDENTIFICATION, eight characters.
    pub vendor: String,
    /// PRODUCT IDENTIFICATION, sixteen characters.
    pub product: String,
    /// PRODUCT REVISION LEVEL, four characters.
    pub revision: String,
    /// The unit serial number, as text. The same wherever the logical unit is seen.
    pub serial: String,
    /// Its name, an NAA identifier of eight or sixteen bytes (SPC-4, 7.8.6.6). The same wherever it is seen.
    pub naa: Naa,
}

/// An NAA identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Naa {
    /// Eight bytes: NAA 2, 3 or 5.
    Short(u64),
    /// Sixteen bytes: NAA 6, IEEE registered extended.
    Long(u128),
}

impl Naa {
    /// A name made from 64 bits that are unique here: locally assigned (NAA 3, SPC-4, 7.8.6.6.3), since Trunkline has no company
    /// identifier of its own.
    #[must_use]
    pub fn local(unique: u64) -> Naa {
        Naa::Short(0x3 << 60 | unique & (u64::MAX >> 4))
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        match self {
            Naa::Short(name) => name.to_be_bytes().to_vec(),
            Naa::Long(name) => name.to_be_bytes().to_vec(),
        }
    }
}

impl Identity {
    /// A Trunkline disk with this serial number and name.
    #[must_use]
    pub fn new(serial: impl Into<String>, naa: Naa) -> Identity {
        Identity {
            vendor: "TRUNKLIN".to_owned(),
            product: "VIRTUAL DISK".to_owned(),
            revision: "0001".to_owned(),
            serial: serial.into(),
            naa,
        }
    }

    /// A Trunkline optical drive with this serial number and name.
    #[must_use]
    pub fn optical(serial: impl Into<String>, naa: Naa) -> Identity {
        Identity { product: "VIRTUAL OPTICAL".to_owned(), ..Identity::new(serial, naa) }
    }
}
