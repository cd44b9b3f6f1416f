//! What an HMC answers to a command that it does not carry out: `HSCLA319 The migrating partition's …`.
//!
//! Layout: the HMC commands reference and public articles on migrations that were refused: a code of `HSCL` and up to five
//! signs, the text behind it, on one line or on several.

use serde::Serialize;

use super::page::Page;
use super::text::{self, Line};
use super::{At, Head, Report};

/// Messages that follow each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HmcMessages {
    /// Where it came from.
    pub head: Head,
    /// In the order printed.
    pub messages: Vec<HmcMessage>,
}

impl HmcMessages {
    /// What the command does that was answered so, where it was captured: `migrlpar`.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        let typed = &self.head.command.as_ref()?.value;
        typed.split_ascii_whitespace().next()
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HmcMessage {
    /// Its line.
    pub at: At,
    /// `HSCLA319`.
    pub code: String,
    /// What stands behind it, and on the lines below as far as they are read.
    pub text: String,
    /// It stands below the heading of warnings: the command is carried out all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warning: bool,
}

impl HmcMessage {
    /// Said of every migration that is to go on: no reason why it does not.
    const INFORMS: [&str; 1] = ["HSCLA295"];

    /// Whether the command is refused by it.
    #[must_use]
    pub fn refuses(&self) -> bool {
        !self.warning && !Self::INFORMS.contains(&self.code.as_str())
    }
}

/// So much of a message is kept.
const KEPT: usize = 1024;
/// So many lines below a message are its details.
const DETAILS: usize = 40;

/// The code that a line begins with, and what follows it; `Error: HSCL…` and bullets are left out.
fn message(text: &str) -> Option<(&str, &str)> {
    let at = match text.strip_prefix("HSCL") {
        Some(_) => 0,
        None => text.find("HSCL").filter(|at| *at <= 12)?,
    };
    let rest = &text[at..];
    let end = rest.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (code, text) = rest.split_at(end);
    let fits = (7..=9).contains(&code.len())
        && code.bytes().skip(4).all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    fits.then(|| (code, text.trim_start_matches([':', '-', ' ', '\t'])))
}

/// Whether a line begins a message.
pub(super) fn is_message(text: &str) -> bool {
    message(text).is_some()
}

fn is_heading(text: &str) -> bool {
    matches!(text.trim_end_matches(':'), "Errors" | "Error" | "Warnings" | "Warning" | "Details")
}

pub(super) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut messages: Vec<HmcMessage> = Vec::new();
    let mut below = 0;
    let mut warning = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if let Some((code, rest)) = message(text) {
            page.take();
            below = 0;
            let (code, text) = (code.to_owned(), rest.to_owned());
            messages.push(HmcMessage { at: line.at, code, text, warning });
        } else if is_heading(text) {
            // Details are of the message above them.
            if !text.starts_with("Details") {
                warning = text.starts_with("Warning");
            }
            page.take();
        } else if let Some(last) = messages.last_mut()
            && below < DETAILS
            && page.passes(line)
        {
            below += 1;
            add(last, line);
        } else {
            break;
        }
    }
    if messages.is_empty() {
        return None;
    }
    page.of_no_partition();
    Some(Report::HmcMessages(HmcMessages { head: page.close(), messages }))
}

fn add(to: &mut HmcMessage, line: Line<'_>) {
    let text = line.trimmed();
    if to.text.len() + text.len() < KEPT && !text::is_masked(text) {
        if !to.text.is_empty() {
            to.text.push(' ');
        }
        to.text.push_str(text);
    }
}
