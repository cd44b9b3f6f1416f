//! The configuration file: one TOML document that says the whole desired state.
//!
//! ```toml
//! [volume.disk0]
//! kind = "file"
//! path = "/var/lib/trunkline/disk0.img"
//! size = "10GiB"
//! create = true
//!
//! [adapter.vhost0]
//! volume = "disk0"
//! queues = 8
//! ```
//!
//! Every key that is not known is an error with its line, what was expected and the nearest known
//! key. [`write()`] is the inverse of [`read`].

use crate::error::ApiError;
use crate::model::Desired;
use fabric::attribute::{AttributeError, Attributes, Object, Value, attr, check_name};
use fabric::suggest;
use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The longest document that is read: tens of thousands of objects.
pub const BYTES_MAX: usize = 16 << 20;

/// The text of a document, which may come from something that has no end.
///
/// # Errors
///
/// Those of the reader; [`std::io::ErrorKind::InvalidData`] when it is no text, [`std::io::ErrorKind::FileTooLarge`] when it is longer than any document.
pub fn text(from: impl Read) -> std::io::Result<String> {
    let text = std::io::read_to_string(from.take(BYTES_MAX as u64 + 1))?;
    if text.len() > BYTES_MAX {
        let what = format!("it is longer than {BYTES_MAX} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, what));
    }
    Ok(text)
}

/// Reads a document. Rules between objects are [`crate::model::validate`]'s.
pub fn read(text: &str) -> Result<Desired, ApiError> {
    if text.len() > BYTES_MAX {
        return Err(ApiError::invalid(format!(
            "the configuration is longer than {BYTES_MAX} bytes"
        )));
    }
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(0, |span| Lines::of(text).at(span.start));
        ApiError::invalid(format!("line {line}: {}", error.message().trim()))
            .help("the configuration is TOML; see docs/guide/configuration.md")
    })?;
    let lines = Lines::of(text);
    let mut desired = Desired::default();
    for (key, value) in document.get_ref() {
        let line = lines.at(key.span().start);
        let Some(object) = Object::of_noun(key.get_ref()) else {
            return Err(unknown_table(key.get_ref(), line));
        };
        let DeValue::Table(objects) = value.get_ref() else {
            return Err(not_a_table(object, key.get_ref(), line));
        };
        for (name, value) in objects {
            let line = lines.at(name.span().start);
            let DeValue::Table(table) = value.get_ref() else {
                return Err(not_a_table(object, name.get_ref(), line));
            };
            check_name(name.get_ref())
                .map_err(|problem| ApiError::invalid(format!("line {line}: {problem}")))?;
            let set = attributes(object, name.get_ref(), table, &lines)?;
            desired[object].insert(name.get_ref().to_string(), set);
        }
    }
    Ok(desired)
}

/// Takes relative paths of files from a folder, that of the document for one. Sockets stay relative: theirs is the server's.
pub fn resolve_paths(desired: &mut Desired, folder: &Path) {
    let files = [attr::volume::PATH.line(), attr::medium::PATH.line()];
    for attribute in files {
        let names: Vec<String> = desired[attribute.object].keys().cloned().collect();
        for name in names {
            let Some(set) = desired[attribute.object].get_mut(&name) else { continue };
            if let Some(Value::Text(path)) = set.get_mut(attribute.name)
                && Path::new(path.as_str()).is_relative()
                && let Some(joined) = folder.join(path.as_str()).to_str()
            {
                *path = joined.to_owned();
            }
        }
    }
}

/// One object's attributes, each judged where it stands so that errors carry its line.
fn attributes(
    object: Object,
    name: &str,
    table: &DeTable<'_>,
    lines: &Lines,
) -> Result<Attributes, ApiError> {
    let mut set = Attributes::new();
    for (key, value) in table {
        let line = lines.at(key.span().start);
        let refuse = |error: AttributeError| {
            let refusal = ApiError::attribute(name, error);
            ApiError { message: format!("line {line}: {}", refusal.message), ..refusal }
        };
        let attribute = object
            .attribute(key.get_ref())
            .ok_or_else(|| refuse(AttributeError::unknown(object, key.get_ref())))?;
        let value = scalar(value)
            .ok_or_else(|| refuse(attribute.refuse("this is no plain value".to_owned())))?;
        set.insert(attribute.name.to_owned(), attribute.accept(&value).map_err(refuse)?);
    }
    Ok(set)
}

/// A string, a switch or a number that is not negative.
fn scalar(value: &Spanned<DeValue<'_>>) -> Option<Value> {
    match value.get_ref() {
        DeValue::String(text) => Some(Value::Text(text.to_string())),
        DeValue::Boolean(on) => Some(Value::Switch(*on)),
        DeValue::Integer(number) => {
            u64::from_str_radix(number.as_str(), number.radix()).ok().map(Value::Number)
        }
        _ => None,
    }
}

fn unknown_table(key: &str, line: usize) -> ApiError {
    let known = Object::ALL.map(Object::noun);
    let help = match suggest::nearest(key, known) {
        Some(near) => format!("did you mean `[{near}.NAME]`?"),
        None => format!("expected tables [NOUN.NAME]; nouns are {}", known.join(", ")),
    };
    ApiError::invalid(format!("line {line}: unknown key `{key}`")).on(key).help(help)
}

fn not_a_table(object: Object, key: &str, line: usize) -> ApiError {
    ApiError::invalid(format!("line {line}: `{key}` is no table")).on(key).help(format!(
        "write a table [{object}.NAME] with the attributes of {object} NAME below it"
    ))
}

/// Where the lines of a text end.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect(),
        )
    }

    /// The number of the line, from 1, in which an offset lies.
    fn at(&self, offset: usize) -> usize {
        1 + self.0.partition_point(|end| *end < offset)
    }
}

/// Writes a state as a document that [`read`] reads back.
pub fn write(desired: &Desired) -> String {
    let mut text = String::new();
    for object in Object::in_order() {
        for (name, set) in &desired[object] {
            if !text.is_empty() {
                text.push('\n');
            }
            // Writing into a String cannot fail.
            let _ = writeln!(text, "[{object}.{}]", key(name));
            for attribute in object.attributes() {
                if let Some(value) = set.get(attribute.name) {
                    let _ = writeln!(text, "{} = {}", attribute.name, literal(attribute, value));
                }
            }
        }
    }
    text
}

/// A name as a key of TOML, where a dot is the border of a table.
pub fn key(name: &str) -> String {
    if name.contains('.') { format!("\"{name}\"") } else { name.to_owned() }
}

fn literal(attribute: &fabric::attribute::Attribute, value: &Value) -> String {
    let shown = attribute.write(value);
    match value {
        Value::Switch(_) => shown,
        Value::Number(_) if shown.bytes().all(|byte| byte.is_ascii_digit()) => shown,
        _ => toml::Value::String(shown).to_string(),
    }
}

#[cfg(test)]
mod tests;
