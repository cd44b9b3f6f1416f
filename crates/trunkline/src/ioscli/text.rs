//! Small things that every report is made of.

/// Lines, each ended.
pub(super) fn lines(all: &[String]) -> String {
    all.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// A WWPN as `fcstat -client` writes it.
pub(super) fn wwn(wwn: u64) -> String {
    format!("0x{wwn:016x}")
}

/// A size as attributes write it.
pub(super) fn hex(bytes: u64) -> String {
    format!("0x{bytes:x}")
}

/// Fields with a delimiter between them.
pub(super) fn delimited(fields: &[String], delimiter: &str) -> String {
    fields.join(delimiter)
}

/// The number at the end of a name, such as 3 of `vfchost3`.
pub(super) fn number_of(name: &str) -> Option<u32> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name[name.len() - digits..].parse().ok()
}

/// A table of columns with fixed widths, whose last column is not padded.
pub(super) fn columns(rows: &[Vec<String>], widths: &[usize]) -> String {
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(index, cell)| {
            let width = widths.get(index).copied().unwrap_or(0);
            format!("{cell:width$}")
        });
        let line = cells.collect::<Vec<_>>().join(" ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Paragraphs with lines of at most so many characters, where words allow it.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let paragraph = |paragraph: &str| {
        let mut lines = vec![String::new()];
        for word in paragraph.split_whitespace() {
            let line = lines.last_mut().expect("one from the start");
            if line.is_empty() {
                line.push_str(word);
            } else if line.chars().count() + 1 + word.chars().count() <= width {
                *line += " ";
                *line += word;
            } else {
                lines.push(word.to_owned());
            }
        }
        lines.join("\n")
    };
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n")
}
