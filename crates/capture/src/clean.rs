//! Text out of captures, made harmless for a terminal and a page.
//!
//! A capture may hold anything: escape sequences that repaint a terminal, direction overrides that make a
//! command read as another one, control characters that break a table. None of it is ever printed as it stands.

/// The text with every character that could act rather than show replaced by `·`.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars().map(|one| if acts(one) { '·' } else { one }).collect()
}

/// Whether a character acts instead of showing: controls, line and paragraph separators, direction and join
/// controls, the byte order mark, tags and private use.
fn acts(one: char) -> bool {
    one.is_control()
        || matches!(one,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}'
            | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
}

/// Text from a capture that is to stand inside a command: only what a device, attribute or value can hold.
/// Anything else makes the whole unusable: a command is never made of a name that was mended.
#[must_use]
pub fn is_word(text: &str) -> bool {
    let inside = |one: u8| one.is_ascii_alphanumeric() || b"_.,:+-/".contains(&one);
    !text.is_empty() && text.len() <= 64 && !text.starts_with('-') && text.bytes().all(inside)
}

/// Whether the text can be the name of a host: RFC 1123, section 2.1, and `_`, which many use.
#[must_use]
pub fn is_host_name(text: &str) -> bool {
    let inside = |one: u8| one.is_ascii_alphanumeric() || matches!(one, b'-' | b'_');
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    name.len() <= 253 && name.split('.').all(label)
}

/// Whether the text can be the name of a partition: letters, digits, and signs and blanks inside that mean nothing to a shell.
#[must_use]
pub fn is_partition_name(text: &str) -> bool {
    let inside = |one: char| one.is_alphanumeric() || " ._-:+,@/".contains(one);
    let length = text.chars().take(65).count();
    (1..=64).contains(&length) && !text.starts_with('-') && text.chars().all(inside)
}

/// What a reader may type or paste, with every character that could act in a shell replaced by `·`, unless it stands as the
/// advisor's own text has it: `date; errpt`, `--filter "…"`, `the client's`. No command is made of such a name; what is to be
/// looked up names it all the same.
#[must_use]
pub fn tame(text: &str) -> String {
    let own = |before: Option<char>, one: char, after: &str| match one {
        '$' | '`' | '<' | '>' | '|' | '&' | '\\' => false,
        ';' => after.starts_with(' '),
        '\'' => {
            after.strip_prefix('s').is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        }
        '"' => {
            let inside = |one: char| !one.is_whitespace() && !matches!(one, '(' | ')' | '.' | ',');
            !(before.is_some_and(inside) && after.starts_with(inside))
        }
        _ => true,
    };
    let mut before = None;
    let tamed = text.char_indices().map(|(at, one)| {
        let after = &text[at + one.len_utf8()..];
        let own = own(before.replace(one), one, after);
        if own && !acts(one) { one } else { '·' }
    });
    tamed.collect()
}
