//! What a user is told when something is not done.

use fabric::attribute::AttributeError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Kinds of refusal. The API makes HTTP statuses of them, the command line exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// A value, a combination of values or a request is wrong.
    Invalid,
    /// There is no such object.
    NotFound,
    /// An object of that name is there already.
    Exists,
    /// Something uses the object.
    InUse,
    /// The attribute cannot be changed on an existing object.
    Fixed,
    /// The object is not any more what the caller has read.
    Changed,
    /// The data plane does not answer.
    Unavailable,
    /// The data plane or the system could not do it.
    Failed,
}

/// Why something was not done: what, why, which attribute, and what mends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// What kind of refusal.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// The attribute or key that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// What mends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// A text that says what somebody sent may be printed and logged: control characters, which drive a terminal or begin a line of their own, become escapes.
pub(crate) fn printable(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    let escaped = |one: char| match one.is_control() {
        true => one.escape_default().to_string(),
        false => one.to_string(),
    };
    text.chars().map(escaped).collect()
}

impl ApiError {
    /// A refusal without attribute and help.
    pub fn new(code: Code, message: impl Into<String>) -> ApiError {
        ApiError { code, message: printable(message.into()), attribute: None, help: None }
    }

    /// [`Code::Invalid`].
    pub fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(Code::Invalid, message)
    }

    /// [`Code::Invalid`], in several lines: what a parser says of a file that the caller himself reads, with the place shown.
    pub fn excerpt(message: &str) -> ApiError {
        let lines: Vec<String> = message.lines().map(|line| printable(line.to_owned())).collect();
        ApiError { message: lines.join("\n"), ..ApiError::invalid("") }
    }

    /// Names the attribute.
    pub fn on(self, attribute: impl Into<String>) -> ApiError {
        ApiError { attribute: Some(printable(attribute.into())), ..self }
    }

    /// Says what mends it.
    pub fn help(self, help: impl Into<String>) -> ApiError {
        ApiError { help: Some(printable(help.into())), ..self }
    }

    /// An attribute of a named object was refused.
    pub fn attribute(name: &str, error: AttributeError) -> ApiError {
        ApiError::invalid(format!(
            "{} `{name}`: attribute `{}`: {}",
            error.object, error.attribute, error.problem
        ))
        .on(error.attribute)
        .help(error.help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_sent_drives_no_terminal_and_forges_no_line_of_the_log() {
        let sent = "a\u{1b}[31m\nb\u{9b}ä";
        let refusal = ApiError::invalid(format!("`{sent}`")).on(sent).help(sent);
        assert_eq!(refusal.message, "`a\\u{1b}[31m\\nb\\u{9b}ä`");
        let all = format!("{refusal}{:?}{:?}", refusal.attribute, refusal.help);
        assert!(!all.contains(char::is_control), "{all:?}");
    }
}
