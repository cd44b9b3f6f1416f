//! Values of attributes: reading, judging, writing; and what a user is told when one is wrong.

use super::{Attribute, Kind, Object};
use crate::san::{self, LunMap, Luns, Prefix, Wwpn};
use crate::{suggest, units};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A value as files, the API and the store carry it.
///
/// Each attribute has one form: sizes are numbers of bytes, CPU lists and modes are texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Switch(bool),
    /// A number, or a size in bytes.
    Number(u64),
    /// Everything else.
    Text(String),
}

impl Value {
    /// The switch in it, if it is one.
    pub fn as_switch(&self) -> Option<bool> {
        if let Value::Switch(on) = self { Some(*on) } else { None }
    }

    /// The number in it, if it is one.
    pub fn as_number(&self) -> Option<u64> {
        if let Value::Number(n) = self { Some(*n) } else { None }
    }

    /// The text in it, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Switch(on) => write!(f, "{on}"),
            Value::Number(n) => write!(f, "{n}"),
            Value::Text(text) => f.write_str(text),
        }
    }
}

/// Why an attribute was refused, and what mends it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object} attribute `{attribute}`: {problem}")]
pub struct AttributeError {
    /// Whose attribute.
    pub object: Object,
    /// The name as it was given.
    pub attribute: String,
    /// What is wrong.
    pub problem: String,
    /// What is expected, and the fix where there is an obvious one.
    pub help: String,
}

impl AttributeError {
    /// No such attribute.
    pub fn unknown(object: Object, name: &str) -> AttributeError {
        AttributeError::unknown_of(object, None, name)
    }

    /// As [`AttributeError::unknown`], of an object whose kind is known: it names what that kind has.
    pub fn unknown_of(object: Object, kind: Option<&str>, name: &str) -> AttributeError {
        if let (Some(attribute), Some(kind)) = (object.attribute(name), kind)
            && !attribute.is_of(Some(kind))
        {
            return AttributeError::not_of(attribute, kind);
        }
        let all = || object.attributes().filter(|a| kind.is_none() || a.is_of(kind));
        let known = all().filter(|a| !a.hidden).map(|a| a.name);
        let help = match suggest::nearest(name, all().map(|a| a.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are: {}", known.collect::<Vec<_>>().join(", ")),
        };
        AttributeError {
            object,
            attribute: name.to_owned(),
            problem: "there is no such attribute".to_owned(),
            help,
        }
    }

    /// A required attribute is not there.
    pub fn missing(attribute: &Attribute) -> AttributeError {
        attribute.refuse("it must be set".to_owned())
    }

    /// The object is of a kind that does not have it.
    pub fn not_of(attribute: &Attribute, kind: &str) -> AttributeError {
        let Attribute { object, name, kinds, .. } = attribute;
        let article = if *object == Object::Adapter { "an" } else { "a" };
        AttributeError {
            object: *object,
            attribute: (*name).to_owned(),
            problem: format!("{article} {object} of kind `{kind}` has no `{name}`"),
            help: format!("leave `{name}` out: it is for the kind `{}`", kinds.join("` or `")),
        }
    }
}

impl Attribute {
    /// An error about this attribute that says what is expected.
    pub fn refuse(&self, problem: String) -> AttributeError {
        AttributeError {
            object: self.object,
            attribute: self.name.to_owned(),
            problem,
            help: format!("expected {}", self.kind.expectation()),
        }
    }

    /// Reads the notation that people write on the command line.
    pub fn parse(&self, text: &str) -> Result<Value, AttributeError> {
        let value = match self.kind {
            Kind::Switch => match text {
                "true" | "on" | "yes" => Value::Switch(true),
                "false" | "off" | "no" => Value::Switch(false),
                _ => return Err(self.refuse(format!("`{text}` is neither true nor false"))),
            },
            Kind::Number { .. } | Kind::PowerOfTwo { .. } | Kind::NumberOf(_) => {
                let number = text.parse();
                Value::Number(number.map_err(|_| self.refuse(format!("`{text}` is no number")))?)
            }
            Kind::NumberOrAuto { .. } => {
                text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Number)
            }
            _ => Value::Text(text.to_owned()),
        };
        self.accept(&value)
    }

    /// Judges a value and brings it into its one form. Of a number out of its bounds the error says what it would be, where these are explained.
    pub fn accept(&self, value: &Value) -> Result<Value, AttributeError> {
        match (self.judge(value), value) {
            (Ok(value), _) => Ok(value),
            (Err(Some(problem)), _) => Err(self.refuse(problem)),
            (Err(None), Value::Text(text)) => Err(self.refuse(format!("`{text}` does not fit"))),
            (Err(None), Value::Number(number)) => {
                let error = self.refuse(format!("{number} does not fit"));
                Err(AttributeError { help: format!("{}. {}", error.help, self.meaning), ..error })
            }
            (Err(None), other) => Err(self.refuse(format!("{other} does not fit"))),
        }
    }

    /// `Err(None)`: wrong type or out of bounds, where the expectation says it all.
    fn judge(&self, value: &Value) -> Result<Value, Option<String>> {
        let keep = |good: bool| if good { Ok(value.clone()) } else { Err(None) };
        match (self.kind, value) {
            (Kind::Switch, Value::Switch(_)) => keep(true),
            (Kind::Number { min, max }, Value::Number(n)) => keep((min..=max).contains(n)),
            (Kind::NumberOrAuto { min, max }, Value::Number(n)) => keep((min..=max).contains(n)),
            (Kind::NumberOrAuto { .. }, Value::Text(text)) => keep(text == AUTO),
            (Kind::PowerOfTwo { min, max }, Value::Number(n)) => {
                keep(n.is_power_of_two() && (min..=max).contains(n))
            }
            (Kind::NumberOf(list), Value::Number(n)) => keep(list.contains(n)),
            (Kind::Size { .. }, Value::Text(text)) => {
                self.judge(&Value::Number(units::parse_size(text)?))
            }
            (Kind::Size { min, max }, Value::Number(n)) => keep((min..=max).contains(n)),
            (Kind::Word(list), Value::Text(text)) => keep(list.contains(&text.as_str())),
            (Kind::Text { bytes_max }, Value::Text(text)) => {
                keep(text.len() <= bytes_max && text.bytes().all(|b| (0x20..0x7f).contains(&b)))
            }
            (Kind::Name(_), Value::Text(text)) => {
                check_name(text).map(|()| value.clone()).map_err(Some)
            }
            (Kind::Names(_), Value::Text(text)) => {
                let words: BTreeSet<&str> = san::words(text).collect();
                words.iter().try_for_each(|word| check_name(word))?;
                Ok(Value::Text(san::join(words.into_iter().map(str::to_owned))))
            }
            (Kind::Members, Value::Text(text)) => {
                Ok(Value::Text(san::write_members(&san::read_members(text)?)))
            }
            (Kind::LunMap, Value::Text(text)) => {
                Ok(Value::Text(text.parse::<LunMap>()?.to_string()))
            }
            (Kind::Luns, Value::Text(text)) => Ok(Value::Text(text.parse::<Luns>()?.to_string())),
            (Kind::Luns, Value::Number(n)) => self.judge(&Value::Text(n.to_string())),
            (Kind::Wwpn, Value::Text(text)) => Ok(Value::Text(text.parse::<Wwpn>()?.to_string())),
            (Kind::WwpnPair, Value::Text(text)) => {
                let [first, second] = san::read_pair(text)?;
                Ok(Value::Text(format!("{first},{second}")))
            }
            (Kind::WwpnPrefix, Value::Text(text)) => {
                Ok(Value::Text(text.parse::<Prefix>()?.to_string()))
            }
            (Kind::Naa, Value::Text(text)) => {
                let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
                let good = digits && text.starts_with(['2', '3', '5']);
                if good { Ok(Value::Text(text.to_ascii_lowercase())) } else { Err(None) }
            }
            (Kind::Path, Value::Text(text)) => {
                keep(!text.is_empty() && !text.chars().any(char::is_control))
            }
            (Kind::Cpus, Value::Text(text)) => {
                Ok(Value::Text(units::format_cpus(&units::parse_cpus(text)?)))
            }
            (Kind::Cpus, Value::Number(n)) => self.judge(&Value::Text(n.to_string())),
            (Kind::Mode, Value::Text(text)) => {
                Ok(Value::Text(units::format_mode(units::parse_mode(text)?)))
            }
            (Kind::Mode, Value::Number(n)) => Err(Some(format!(
                "{n} is a decimal number; write the mode as a text, such as \"0660\""
            ))),
            _ => Err(None),
        }
    }

    /// Writes a value the way people write it: sizes with units.
    pub fn write(&self, value: &Value) -> String {
        match (self.kind, value) {
            (Kind::Size { .. }, Value::Number(n)) => units::format_size(*n),
            _ => value.to_string(),
        }
    }
}

/// What stands for a number that the server finds out.
pub(super) const AUTO: &str = "auto";

impl Kind {
    /// What this kind takes, to follow "expected".
    pub fn expectation(self) -> String {
        match self {
            Kind::Switch => "true or false".to_owned(),
            Kind::Number { min, max } => format!("a number from {min} to {max}"),
            Kind::NumberOrAuto { min, max } => format!("`{AUTO}` or a number from {min} to {max}"),
            Kind::PowerOfTwo { min, max } => format!("a power of two from {min} to {max}"),
            Kind::NumberOf(list) => {
                list.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ")
            }
            Kind::Size { min: 0, max } => {
                format!("a size up to {}, such as `64MiB`", units::format_size(max))
            }
            Kind::Size { min, max } => format!(
                "a size from {} to {}, such as `64MiB`",
                units::format_size(min),
                units::format_size(max)
            ),
            Kind::Word(list) => format!("one of {}", list.join(", ")),
            Kind::Text { bytes_max } => format!("at most {bytes_max} printable ASCII characters"),
            Kind::Name(object) => format!("the name of {}", object.one()),
            Kind::Names(object) => format!("names of {}, separated by commas", object.collection()),
            Kind::Members => {
                "names of adapters and targets, or WWPNs, separated by commas".to_owned()
            }
            Kind::LunMap => "LUNs and their volumes, such as `0=data,1=logs`".to_owned(),
            Kind::Luns => {
                "LUNs, such as `0-3,7=5` (number 7 for the target's LUN 5), or `all`".to_owned()
            }
            Kind::Wwpn => "a WWPN, such as `c0:50:76:12:34:56:00:00`".to_owned(),
            Kind::WwpnPair => "two WWPNs, separated by a comma".to_owned(),
            Kind::WwpnPrefix => "six bytes, such as `c0:50:76:12:34:56`".to_owned(),
            Kind::Naa => "sixteen hexadecimal digits that begin with 2, 3 or 5".to_owned(),
            Kind::Path => "a path without control characters".to_owned(),
            Kind::Cpus => "a CPU list, such as `2-5,8`".to_owned(),
            Kind::Mode => "three octal digits in quotes, such as \"0660\"".to_owned(),
        }
    }

    /// A word for the value in usage lines.
    pub fn placeholder(self) -> &'static str {
        match self {
            Kind::Switch => "BOOL",
            Kind::Number { .. } | Kind::PowerOfTwo { .. } | Kind::NumberOf(_) => "N",
            Kind::NumberOrAuto { .. } => "N|auto",
            Kind::Size { .. } => "SIZE",
            Kind::Word(_) => "WORD",
            Kind::Text { .. } => "TEXT",
            Kind::Name(_) => "NAME",
            Kind::Names(_) => "NAMES",
            Kind::Members => "MEMBERS",
            Kind::LunMap | Kind::Luns => "LUNS",
            Kind::Wwpn => "WWPN",
            Kind::WwpnPair => "WWPNS",
            Kind::WwpnPrefix => "PREFIX",
            Kind::Naa => "NAA",
            Kind::Path => "PATH",
            Kind::Cpus => "CPUS",
            Kind::Mode => "MODE",
        }
    }
}

/// The longest name of an object: that of a name in the DNS, which other systems name their volumes by.
pub const NAME_BYTES_MAX: usize = 253;

/// Names of objects become file names, label values and words on a command line: a letter or a digit, then letters, digits, `-`, `_` and
/// `.`. What is written as a WWPN is one, and no name.
pub fn check_name(name: &str) -> Result<(), String> {
    let good = name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if !good {
        let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
        return Err(format!(
            "`{shown}` is not a name; a name is a letter or a digit and then at most {} letters, digits, `-`, `_` or `.`",
            NAME_BYTES_MAX - 1
        ));
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) && name.parse::<Wwpn>().is_ok() {
        return Err(format!("`{name}` is a WWPN, and cannot be a name"));
    }
    Ok(())
}
