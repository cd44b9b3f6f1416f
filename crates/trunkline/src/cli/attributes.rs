//! Options of `create` and `set`, made from the table of attributes.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgMatches, Command};
use fabric::attribute::{Attribute, Attributes, Kind, Object, Value};

/// Adds the options of an object.
pub(super) fn augment(object: Object, command: Command) -> Command {
    object.attributes().fold(command.next_help_heading("Attributes"), |command, attribute| {
        let kinds = match attribute.kinds {
            [] => String::new(),
            list => format!("kind: {}; ", list.join(", ")),
        };
        let help = format!(
            "{} [{kinds}default: {}; takes effect: {}]",
            attribute.meaning,
            attribute.default_text().replace('`', ""),
            attribute.effect.word()
        );
        let option = Arg::new(attribute.name)
            .long(attribute.name.replace('_', "-"))
            .value_name(attribute.kind.placeholder())
            .hide(attribute.hidden)
            .hide_possible_values(matches!(attribute.kind, Kind::Switch))
            .help(help.replace('`', ""))
            .value_parser(parser(attribute));
        // `--create` alone means `--create true`.
        let option = match attribute.kind {
            Kind::Switch => option.num_args(0..=1).default_missing_value("true"),
            _ => option,
        };
        command.arg(option)
    })
}

/// Judges the value at once, so that a wrong one is a usage error with what is expected. Words and
/// switches go through clap's own list, which completions know.
fn parser(attribute: &'static Attribute) -> ValueParser {
    match attribute.kind {
        Kind::Word(list) => {
            let values = list.iter().map(|word| PossibleValue::new(*word));
            let parser = PossibleValuesParser::new(values);
            ValueParser::new(parser.try_map(move |word| value(attribute, &word)))
        }
        Kind::Switch => {
            let parser = PossibleValuesParser::new(["true", "false"]);
            ValueParser::new(parser.try_map(move |word| value(attribute, &word)))
        }
        _ => ValueParser::new(move |text: &str| value(attribute, text)),
    }
}

fn value(attribute: &'static Attribute, text: &str) -> Result<Value, String> {
    let absolute = match attribute.kind {
        // The server has another working folder than whoever types this.
        Kind::Path => {
            std::path::absolute(text).ok().and_then(|path| path.to_str().map(str::to_owned))
        }
        _ => None,
    };
    let text = absolute.as_deref().unwrap_or(text);
    attribute.parse(text).map_err(|error| format!("{}; {}", error.problem, error.help))
}

/// The attributes that were given.
pub(super) fn read(object: Object, matches: &ArgMatches) -> Attributes {
    object
        .attributes()
        .filter_map(|attribute| {
            let value = matches.get_one::<Value>(attribute.name)?;
            Some((attribute.name.to_owned(), value.clone()))
        })
        .collect()
}
