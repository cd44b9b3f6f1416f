//! Numbers as SCSI writes them: most significant byte first (SPC-4, 3.5).

/// Two bytes at `at`.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Three bytes at `at`.
pub(crate) fn be24(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

/// Four bytes at `at`.
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Eight bytes at `at`.
pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4))
}

/// Puts bytes at `at`.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// A number that does not fit a field is shown as the largest that does.
pub(crate) fn clip16(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

/// A number that does not fit a field is shown as the largest that does.
pub(crate) fn clip32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The length of something that a data-in buffer holds, far below 4 GiB.
pub(crate) fn len32(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Text in a field of fixed width, left-aligned and filled with spaces (SPC-4, 4.3.1).
pub(crate) fn ascii<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    for (to, from) in field.iter_mut().zip(text.bytes()) {
        *to = if (0x20..=0x7e).contains(&from) { from } else { b'?' };
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_most_significant_byte_first() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(be16(&bytes, 1), 0x0203);
        assert_eq!(be24(&bytes, 0), 0x01_0203);
        assert_eq!(be32(&bytes, 5), 0x0607_0809);
        assert_eq!(be64(&bytes, 1), 0x0203_0405_0607_0809);
    }

    #[test]
    fn text_is_padded_cut_and_kept_printable() {
        assert_eq!(ascii::<4>("ab"), *b"ab  ");
        assert_eq!(ascii::<2>("abc"), *b"ab");
        assert_eq!(ascii::<2>("\n\u{7f}"), *b"??");
    }
}
