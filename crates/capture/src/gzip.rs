//! Files compressed by gzip (RFC 1952), as nmon files are delivered.

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use super::limits::{LAYERS_MAX, UNPACKED_FREE, UNPACKED_MAX, UNPACKED_TIMES};
use super::text;

/// The bytes of the last checksum and length of a member.
const TRAILER: usize = 8;
/// So much room the first step has at least.
const STEP: usize = 1 << 16;

/// The content, and what is odd about it; `None` when the file is none of gzip's. Nothing comes out where it holds no
/// text.
pub(super) fn unpack(bytes: &[u8]) -> Option<(Vec<u8>, String)> {
    body(bytes)?;
    let most = UNPACKED_MAX.min(UNPACKED_FREE.max(bytes.len().saturating_mul(UNPACKED_TIMES)));
    let mut end = End::Whole;
    let mut content = Vec::new();
    let mut layers = 0;
    while layers < LAYERS_MAX {
        let packed = if layers == 0 { bytes } else { &content };
        if body(packed).is_none() {
            break;
        }
        let (inner, how) = members(packed, most);
        end = end.max(how);
        content = inner;
        layers += 1;
    }
    let mut note = match layers {
        1 => "is compressed (gzip)".to_owned(),
        _ => format!("is compressed (gzip) {layers} times"),
    };
    let left_out = match what(&content) {
        Content::Text => {
            let read = content.len();
            match end {
                End::Whole => {}
                End::Damaged => note += &format!(", and damaged: its first {read} bytes are read"),
                End::TooLong => {
                    note += &format!(
                        ", and too long: its first {read} bytes are read, the rest is left out; unpack and divide it"
                    );
                }
            }
            return Some((content, note));
        }
        Content::Packed => {
            note = format!("is compressed (gzip) more than {LAYERS_MAX} times");
            ": nothing of it is read; unpack it"
        }
        Content::Archive => {
            " and holds an archive (tar): nothing of it is read; unpack it and give the folder"
        }
        Content::Binary => " and holds no text: nothing of it is read",
    };
    Some((Vec::new(), note + left_out))
}

/// How an unpacking ended; the worst of several counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Whole,
    Damaged,
    TooLong,
}

/// What came out.
enum Content {
    Text,
    Packed,
    Archive,
    Binary,
}

fn what(content: &[u8]) -> Content {
    if body(content).is_some() {
        Content::Packed
    } else if content.get(257..262) == Some(b"ustar") {
        Content::Archive
    } else if text::is_binary(content) {
        Content::Binary
    } else {
        Content::Text
    }
}

/// The members of a file, one after the other: `cat a.gz b.gz` is a file of gzip's too. The checksums behind the data
/// are not looked at: text that is damaged shows it.
fn members(mut packed: &[u8], most: usize) -> (Vec<u8>, End) {
    let mut out = Vec::new();
    let mut end = End::Whole;
    while let Some(data) = body(packed) {
        let (used, how) = inflate(data, &mut out, most);
        end = how;
        if how != End::Whole {
            break;
        }
        packed = data.get(used + TRAILER..).unwrap_or_default();
    }
    (out, end)
}

/// Unpacks one member behind what is there, which then has `most` bytes at most; with how many bytes it took.
fn inflate(data: &[u8], out: &mut Vec<u8>, most: usize) -> (usize, End) {
    let start = out.len();
    let (mut used, mut written) = (0, start);
    let mut state = Box::new(DecompressorOxide::new());
    loop {
        let room = (written - start).max(STEP).min(most - written);
        out.resize(written + room, 0);
        let flags = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let rest = data.get(used..).unwrap_or_default();
        // What this member has unpacked is what it may copy from.
        let (status, took, more) =
            decompress(&mut state, rest, &mut out[start..], written - start, flags);
        used += took;
        written += more;
        out.truncate(written);
        match status {
            TINFLStatus::Done => return (used, End::Whole),
            TINFLStatus::HasMoreOutput if written < most => {}
            TINFLStatus::HasMoreOutput => return (used, End::TooLong),
            _ => return (used, End::Damaged),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::deflate::compress_to_vec;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut out = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
        out.extend(compress_to_vec(text, 6));
        out.extend([0; TRAILER]);
        out
    }

    fn text_of(bytes: &[u8]) -> (String, String) {
        let (text, note) = unpack(bytes).expect("gzip");
        (String::from_utf8(text).expect("UTF-8"), note)
    }

    #[test]
    fn one_that_unpacks_to_a_thousand_times_its_size_is_cut() {
        let bomb = packed(&b"7200-05-03-2148\n".repeat((64 << 20) / 16));
        assert!(bomb.len() < 400_000, "{}", bomb.len());
        let (text, note) = unpack(&bomb).expect("gzip");
        assert_eq!(text.len(), UNPACKED_FREE.max(bomb.len() * UNPACKED_TIMES));
        assert!(text.capacity() <= 2 * text.len(), "{}", text.capacity());
        assert!(note.contains("too long: its first"), "{note}");
    }

    #[test]
    fn a_bomb_within_a_bomb_is_cut_as_well() {
        let inner = packed(&vec![b'a'; 64 << 20]);
        let (text, note) = unpack(&packed(&inner.repeat(20))).expect("gzip");
        assert_eq!(text.len(), UNPACKED_FREE);
        assert!(note.starts_with("is compressed (gzip) 2 times, and too long"), "{note}");
    }

    #[test]
    fn layers_are_unpacked_up_to_a_limit() {
        let mut bytes = b"$ fcstat fcs0\n".to_vec();
        for layers in 1..=LAYERS_MAX {
            bytes = packed(&bytes);
            let (text, note) = text_of(&bytes);
            assert_eq!(text, "$ fcstat fcs0\n", "{layers}");
            assert!(note.starts_with("is compressed (gzip)"), "{note}");
        }
        let (text, note) = text_of(&packed(&bytes));
        assert_eq!(text, "");
        assert_eq!(
            note,
            "is compressed (gzip) more than 3 times: nothing of it is read; unpack it"
        );
    }

    #[test]
    fn all_members_are_read() {
        let both = [packed(b"one\n"), packed(b"two\n"), b"\0\0\0".to_vec()].concat();
        assert_eq!(text_of(&both), ("one\ntwo\n".to_owned(), "is compressed (gzip)".to_owned()));
    }

    #[test]
    fn what_is_no_text_is_left_out_and_said() {
        let mut tar = vec![0; 1024];
        tar[257..262].copy_from_slice(b"ustar");
        let binary = b"\x7fELF\x02\x01\x01\0\0\0\0\0".to_vec();
        for (content, said) in [(tar, "archive (tar)"), (binary, "holds no text")] {
            let (text, note) = text_of(&packed(&content));
            assert_eq!(text, "");
            assert!(note.contains(said), "{note}");
        }
    }

    #[test]
    fn what_is_cut_off_is_read_as_far_as_it_goes() {
        let text = (0..4000).map(|line| format!("line {line}\n")).collect::<String>();
        let whole = packed(text.as_bytes());
        let (read, note) = text_of(&whole[..whole.len() / 2]);
        assert!(text.starts_with(&read) && read.len() > 1000, "{}", read.len());
        assert!(note.contains("damaged: its first"), "{note}");
        assert!(unpack(&whole[..5]).is_none());
    }
}
