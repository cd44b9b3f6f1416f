//! `lsattr` and `lsdev -attr`: the attributes of a device and the values that they may have.

mod read;

pub(super) use read::{lsattr, lsdev, range, value};

use serde::Serialize;
use smol_str::SmolStr;

use super::{At, Head};

/// `lsattr -El DEVICE`, whole or with `-a`; or `lsattr -Pl DEVICE`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lsattr {
    /// Where it came from; the device stands in the command only.
    pub head: Head,
    /// In the order printed.
    pub attributes: Vec<Attribute>,
    /// `-P`: the values that the device was configured with, which it works by; not those that are set for later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_force: bool,
}

/// `lsdev -dev DEVICE -attr`, on a VIOS.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LsdevAttr {
    /// Where it came from; the device stands in the command only.
    pub head: Head,
    /// In the order printed. `-attr NAME` prints the value alone; the name is then the command's.
    pub attributes: Vec<Attribute>,
}

/// One attribute. Its texts are short ones, which a list of hundreds of thousands has no memory of their own for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attribute {
    /// The line.
    pub at: At,
    /// Its name.
    pub name: SmolStr,
    /// Its value, as printed; empty when none is set.
    pub value: SmolStr,
    /// What the system says about it; empty when not printed.
    pub description: SmolStr,
    /// Whether a user can set it.
    pub settable: Option<Settable>,
    /// It was changed for later (`chdev -P`, `-perm`) by a command above, or `lsattr -P` shows another value: the device
    /// does not work by it yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

impl Attribute {
    /// A value that was printed without anything beside it.
    pub(super) fn alone(at: At, name: &str, value: &str) -> Self {
        let description = SmolStr::default();
        Self {
            at,
            name: name.into(),
            value: value.into(),
            description,
            settable: None,
            pending: false,
        }
    }

    /// The value as a number: decimal, or hexadecimal with `0x`.
    pub fn number(&self) -> Option<u64> {
        match self.value.strip_prefix("0x").or_else(|| self.value.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => self.value.parse().ok(),
        }
    }
}

/// The last column of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Settable {
    /// `True`.
    Yes,
    /// `True+`: also while the device is in use, with `-U`.
    Live,
    /// `False`.
    No,
}

/// The values that an attribute may have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LsattrRange {
    /// Where it came from; device and attribute stand in the command only.
    pub head: Head,
    /// The attribute, from the command.
    pub attribute: Option<String>,
    /// What is allowed: any of these.
    pub allowed: Vec<Allowed>,
}

impl LsattrRange {
    /// The greatest number allowed.
    pub fn max(&self) -> Option<u64> {
        let number = |allowed: &Allowed| match allowed {
            Allowed::Span { high, .. } => Some(*high),
            Allowed::Value { value, .. } => value.parse().ok(),
        };
        self.allowed.iter().filter_map(number).max()
    }
}

/// One value or one span of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allowed {
    /// A value on a line of its own.
    Value {
        /// The line.
        at: At,
        /// As printed.
        value: String,
    },
    /// `LOW...HIGH (+STEP)`.
    Span {
        /// The line.
        at: At,
        /// The least.
        low: u64,
        /// The greatest.
        high: u64,
        /// The step; 1 when not printed.
        step: u64,
    },
}
