//! Files compressed by gzip (RFC 1952), as nmon files are delivered.

use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// So much comes out of one file at most: a small file may claim to be endless.
const MOST: usize = 1 << 28;

/// The content, and what is odd about it; `None` when the file is none of gzip's.
pub(super) fn unpack(bytes: &[u8]) -> Option<(Vec<u8>, String)> {
    let packed = body(bytes)?;
    // The check sum and the length behind the data are not looked at: text that is damaged shows it.
    Some(match decompress_to_vec_with_limit(packed, MOST) {
        Ok(text) => (text, "is compressed (gzip)".to_owned()),
        Err(error) => {
            let kept = format!(
                "is compressed (gzip), damaged or too long: its first {} bytes are read",
                error.output.len()
            );
            (error.output, kept)
        }
    })
}

/// What follows the header: name, comment and more may be in it.
fn body(bytes: &[u8]) -> Option<&[u8]> {
    let [0x1f, 0x8b, 8, flags, _, _, _, _, _, _, rest @ ..] = bytes else { return None };
    let mut rest = rest;
    if flags & 4 != 0 {
        let (length, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = memchr::memchr(0, rest)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & 2 != 0 { rest.get(2..) } else { Some(rest) }
}
