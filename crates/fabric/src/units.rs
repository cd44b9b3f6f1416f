//! Sizes, CPU lists and socket modes as people write them.
//!
//! Each reader has a writer that gives back what it reads, so that an exported configuration is the
//! configuration.

use std::collections::BTreeSet;

/// The highest CPU number a list may name; `CPU_SETSIZE` of the C library has the same limit.
pub const CPU_MAX: usize = 1023;

/// Binary units, largest first.
const UNITS: [(&str, u32); 6] =
    [("EiB", 60), ("PiB", 50), ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

/// Reads `64MiB`, `10 GiB`, `1.5GiB`, `4096` or `4096B`.
///
/// Only binary units are taken: `10GB` could mean two things and is refused with both spelled out.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    let expected = || format!("`{text}` is not a size; write bytes or a unit, such as `10GiB`");
    let shift = match unit {
        "" | "B" => 0,
        _ => match UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
            Some((_, shift)) => *shift,
            None => return Err(unknown_unit(number, unit).unwrap_or_else(expected)),
        },
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (fraction.is_empty() && number.contains('.')) || fraction.contains('.') {
        return Err(expected());
    }
    let whole: u64 = whole.parse().map_err(|_| expected())?;
    let too_large = || format!("`{text}` is larger than 2^64-1 bytes");
    let bytes = whole.checked_mul(1 << shift).ok_or_else(too_large)?;
    if fraction.is_empty() {
        return Ok(bytes);
    }
    // A fraction of a unit, in whole bytes: 1.5GiB is exact, 1.3GiB is not and is refused.
    if fraction.len() > 9 {
        return Err(expected());
    }
    let digits = u32::try_from(fraction.len()).map_err(|_| expected())?;
    let numerator: u128 = fraction.parse::<u128>().map_err(|_| expected())? << shift;
    let denominator = 10u128.pow(digits);
    if !numerator.is_multiple_of(denominator) {
        return Err(format!("`{text}` is not a whole number of bytes"));
    }
    let rest = u64::try_from(numerator / denominator).map_err(|_| too_large())?;
    bytes.checked_add(rest).ok_or_else(too_large)
}

/// Names both readings of a decimal or one-letter unit.
fn unknown_unit(number: &str, unit: &str) -> Option<String> {
    let letter = unit.chars().next()?.to_ascii_uppercase();
    let plain = unit.len() == 1 || (unit.len() == 2 && unit.ends_with(['b', 'B']));
    (plain && "KMGTPE".contains(letter)).then(|| {
        format!("`{unit}` can mean powers of 1000 or of 1024; write `{number}{letter}iB`, or bytes")
    })
}

/// Percent of a whole, rounded down.
pub fn percent(part: u64, whole: u64) -> u64 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// A long time in words, in whole days or hours, such as `3 days`.
pub fn format_days(seconds: u64) -> String {
    match seconds / 3600 {
        hours @ 48.. => format!("{} days", hours / 24),
        1 => "1 hour".to_owned(),
        hours => format!("{hours} hours"),
    }
}

/// Writes a size so that [`parse_size`] reads it back: the largest unit that divides it.
pub fn format_size(bytes: u64) -> String {
    UNITS
        .iter()
        .find(|(_, shift)| bytes != 0 && bytes.is_multiple_of(1 << shift))
        .map_or_else(|| bytes.to_string(), |(name, shift)| format!("{}{name}", bytes >> shift))
}

/// Reads a CPU list such as `2-5,8`; the empty text is the empty set.
pub fn parse_cpus(text: &str) -> Result<BTreeSet<usize>, String> {
    let mut cpus = BTreeSet::new();
    if text.trim().is_empty() {
        return Ok(cpus);
    }
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |word: &str| {
            word.trim().parse::<usize>().map_err(|_| {
                format!("`{text}` is not a CPU list; write numbers and ranges, such as `2-5,8`")
            })
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("the range `{part}` runs backwards; write `{last}-{first}`"));
        }
        if last > CPU_MAX {
            return Err(format!("CPU {last} is beyond {CPU_MAX}, the highest that can be named"));
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

/// Writes a CPU set in its shortest form.
pub fn format_cpus(cpus: &BTreeSet<usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let words: Vec<String> = ranges
        .into_iter()
        .map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") })
        .collect();
    words.join(",")
}

/// Reads the permission bits of a socket, in octal: `0660`, `660` or `0o660`.
pub fn parse_mode(text: &str) -> Result<u32, String> {
    let digits = text.trim().trim_start_matches("0o");
    u32::from_str_radix(digits, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| format!("`{text}` is not a mode; write three octal digits, such as `0660`"))
}

/// Writes permission bits as `0660`.
pub fn format_mode(mode: u32) -> String {
    format!("0{mode:03o}")
}

#[cfg(test)]
mod tests;
