//! Reports in another language: whose they are, and what is said of them.

use super::{Refused, Unread};

/// Whether the text is the heading of a report of this file that was refused for the same language.
pub(super) fn heads_refused(reports: &mut [Refused], text: &Unread, language: &str) -> bool {
    let end = text.at.line + text.lines;
    let below = reports.partition_point(|refused| refused.at.line < end);
    let below = reports.get_mut(below).filter(|refused| refused.at.line <= end + 1);
    let Some(refused) = below.filter(|refused| refused.why.contains(language)) else {
        return false;
    };
    refused.lines += refused.at.line - text.at.line;
    refused.at = text.at;
    true
}

/// Why it is refused and how to mend it.
pub(super) fn why(command: &str, language: &str) -> String {
    match command {
        "" => format!("this output is in {language}; run the command with LC_ALL=C"),
        command => format!("this {command} output is in {language}; run it with LC_ALL=C"),
    }
}

/// The command whose report a text in another language is, by names that no language translates.
pub(super) fn command_of(text: &Unread) -> &'static str {
    let upper = text.text.to_ascii_uppercase();
    let has = |word: &str| upper.contains(word);
    if has("FIBRE CHANNEL") || has("FCS") {
        "fcstat"
    } else if has("ETHERNET") || has("(ENT") {
        "entstat"
    } else if has("LCPU=") && has("ENT=") {
        "lparstat"
    } else if has("XFER:") || has("DRIVES=") || has("%TM_ACT") || has("VDISKS=") {
        "iostat"
    } else if ["SVSA", "SVEA", "VTD", "VHOST"].iter().any(|word| has(word)) {
        "lsmap"
    } else {
        ""
    }
}
