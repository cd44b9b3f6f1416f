//! Levels of products: how they are written, and which is newer.
//!
//! A level is a row of whole numbers, most significant first: AIX `7.2 TL5 SP3` and `7200-05-03-2135` are both 7, 2, 5,
//! 3; firmware `FW950.20` is 950, 20; IBM i `7.4 TR6` is 7, 4, 6. What cannot be read is an error, never a guess.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// What has a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// The server's processor generation.
    Server,
    /// Power firmware.
    Firmware,
    /// Virtual I/O Server.
    Vios,
    /// AIX.
    Aix,
    /// IBM i.
    Ibmi,
    /// SUSE Linux Enterprise Server.
    Sles,
    /// Red Hat Enterprise Linux.
    Rhel,
    /// The Linux kernel.
    Linux,
}

impl Product {
    /// All of them.
    pub const ALL: [Product; 8] = [
        Product::Server,
        Product::Firmware,
        Product::Vios,
        Product::Aix,
        Product::Ibmi,
        Product::Sles,
        Product::Rhel,
        Product::Linux,
    ];

    /// The word in data files.
    pub fn word(self) -> &'static str {
        match self {
            Product::Server => "server",
            Product::Firmware => "firmware",
            Product::Vios => "vios",
            Product::Aix => "aix",
            Product::Ibmi => "ibmi",
            Product::Sles => "sles",
            Product::Rhel => "rhel",
            Product::Linux => "linux",
        }
    }

    /// How a level of it is written.
    pub(super) fn example(self) -> &'static str {
        match self {
            Product::Server => "POWER9",
            Product::Firmware => "FW950.20",
            Product::Vios => "3.1.2.10",
            Product::Aix => "7.2 TL5 SP3 or 7200-05-03-2135",
            Product::Ibmi => "7.4 TR6",
            Product::Sles => "15 SP3",
            Product::Rhel => "8.5",
            Product::Linux => "5.14",
        }
    }
}

impl std::fmt::Display for Product {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Product::Server => "server",
            Product::Firmware => "firmware",
            Product::Vios => "VIOS",
            Product::Aix => "AIX",
            Product::Ibmi => "IBM i",
            Product::Sles => "SLES",
            Product::Rhel => "RHEL",
            Product::Linux => "Linux kernel",
        })
    }
}

/// A level that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a level of {product}: expected something like {}; write it so, or leave it out", product.example())]
pub struct LevelError {
    /// What was given.
    pub text: String,
    /// Of what.
    pub product: Product,
}

/// A level of a product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Level {
    product: Product,
    text: String,
    parts: Vec<u32>,
}

/// Whether a level is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Met,
    /// It is not.
    NotMet,
    /// The level says too little: `7.2` where the technology level decides.
    Unknown,
}

/// The most parts that mean anything; `7200-05-03-2135` has a fourth, the build date, which AIX sorts by as well.
const PARTS_MAX: usize = 6;

impl Level {
    /// Reads a level as it is written by people or printed by commands.
    pub fn read(product: Product, text: &str) -> Result<Level, LevelError> {
        let error = || LevelError { text: text.to_owned(), product };
        let plain = text.trim().to_ascii_uppercase();
        let parts = match product {
            Product::Aix => aix(&plain),
            Product::Firmware => firmware(&plain),
            Product::Ibmi => ibmi(&plain),
            _ => words(&plain, prefixes(product)),
        };
        let parts =
            parts.filter(|parts| (1..=PARTS_MAX).contains(&parts.len())).ok_or_else(error)?;
        Ok(Level { product, text: text.trim().to_owned(), parts })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The numbers, most significant first.
    pub fn parts(&self) -> &[u32] {
        &self.parts
    }

    /// The release: all but the last part of a requirement, as long as the requirement is.
    fn release(&self, length: usize) -> &[u32] {
        &self.parts[..length.min(self.parts.len())]
    }

    /// Whether it is at least one of `at_least`: the one of the same release, or, when no release is the same, newer than
    /// all of them.
    pub fn judge(&self, at_least: &[Level]) -> Verdict {
        let mut newest = None::<&Level>;
        for least in at_least {
            let release = least.parts.len() - 1;
            if self.parts.len() < release {
                return self.judge_short(at_least);
            }
            if self.release(release) == least.release(release) {
                return match self.parts.len().cmp(&least.parts.len()) {
                    // Says the release only, and the release decides nothing.
                    Ordering::Less => Verdict::Unknown,
                    _ if self.parts >= least.parts => Verdict::Met,
                    _ => Verdict::NotMet,
                };
            }
            if newest.is_none_or(|newest| newest.parts < least.parts) {
                newest = Some(least);
            }
        }
        match newest {
            None => Verdict::Unknown,
            Some(newest) if self.parts > newest.parts => Verdict::Met,
            Some(_) => Verdict::NotMet,
        }
    }

    /// A level with fewer parts than name a release: decided only when all its releases are newer, or older.
    fn judge_short(&self, at_least: &[Level]) -> Verdict {
        let order = |least: &Level| self.parts.as_slice().cmp(least.release(self.parts.len()));
        if at_least.iter().all(|least| order(least) == Ordering::Greater) {
            Verdict::Met
        } else if at_least.iter().all(|least| order(least) == Ordering::Less) {
            Verdict::NotMet
        } else {
            Verdict::Unknown
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Words that may stand before the number.
fn prefixes(product: Product) -> &'static [&'static str] {
    match product {
        Product::Server => &["POWER", "P"],
        Product::Vios => &["VIOS", "IOSLEVEL", "V"],
        Product::Ibmi => &["IBM I", "IBMI", "V"],
        Product::Sles => &["SLES"],
        Product::Rhel => &["RHEL"],
        Product::Linux => &["LINUX"],
        Product::Firmware | Product::Aix => &[],
    }
}

/// Numbers with dots, dashes, spaces and the words TL, SP, TR, R and M between them.
fn words(text: &str, prefixes: &[&str]) -> Option<Vec<u32>> {
    let text = prefixes.iter().find_map(|p| text.strip_prefix(p)).unwrap_or(text);
    let spaced =
        ["TL", "SP", "TR", "R", "M"].iter().fold(text.to_owned(), |t, w| t.replace(w, " "));
    let numbers = spaced.split([' ', '.', '-', ',']).filter(|part| !part.is_empty());
    numbers.map(|part| part.parse().ok()).collect()
}

/// `7200-05-03-2135` as `oslevel -s` prints it, or words.
fn aix(text: &str) -> Option<Vec<u32>> {
    let text = text.strip_prefix("AIX").unwrap_or(text).trim();
    let mut parts = words(text, &[])?;
    let first = *parts.first()?;
    // Four digits with two zeros: version and release in one. 6100 to 7999 are AIX 6.1 to 7.9.
    if (5000..10_000).contains(&first) && first % 100 == 0 {
        parts.splice(..1, [first / 1000, first / 100 % 10]);
    }
    Some(parts)
}

/// `7.4 TR6`, or `V7R4M0 TR6`, whose modification level orders nothing here.
fn ibmi(text: &str) -> Option<Vec<u32>> {
    let plain = text.split_once('M').filter(|_| text.starts_with('V')).map(|(release, rest)| {
        format!("{release} {}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
    });
    words(plain.as_deref().unwrap_or(text), prefixes(Product::Ibmi))
}

/// `FW950.20`, `VM950_092`, `950`: the release and, after a dot, the service pack. The number after `_` counts builds.
fn firmware(text: &str) -> Option<Vec<u32>> {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let release = digits.split('_').next()?.trim();
    words(release, &[])
}
