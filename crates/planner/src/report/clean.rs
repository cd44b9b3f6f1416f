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
