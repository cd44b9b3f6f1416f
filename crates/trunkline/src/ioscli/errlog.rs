//! `errlog`: what happened, as the error log of the original.

use super::words::Words;
use super::{Context, wrong};
use crate::commands::events::time;
use crate::exit::Failure;
use control::api::EventsView;
use control::trail::Event;

/// Classes of the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grade {
    /// Lasts until somebody looks at it.
    Permanent,
    /// Was over by itself.
    Temporary,
    /// Is to be known.
    Informational,
}

impl Grade {
    fn of(event: &Event) -> Grade {
        match event.kind.as_str() {
            "dataplane_died" | "volume_error" | "pool_error" => Grade::Permanent,
            "dataplane_silent" | "client_left" | "pool_full" | "pool_alert" | "pv_lost" => {
                Grade::Temporary
            }
            _ if event.result.as_deref() == Some("failed") => Grade::Permanent,
            _ => Grade::Informational,
        }
    }

    fn letter(self) -> char {
        match self {
            Grade::Permanent => 'P',
            Grade::Temporary => 'T',
            Grade::Informational => 'I',
        }
    }

    fn word(self) -> &'static str {
        match self {
            Grade::Permanent => "PERM",
            Grade::Temporary => "TEMP",
            Grade::Informational => "INFO",
        }
    }
}

/// Hardware is what is behind a volume; an operator is whoever changes something; the rest is software.
fn class(event: &Event) -> char {
    match event.kind.as_str() {
        "volume_error" | "pool_error" | "pv_lost" | "pv_returned" => 'H',
        "change" | "operation" => 'O',
        _ => 'S',
    }
}

/// A number for the kind of event, the same on every server (FNV-1a).
fn identifier(event: &Event) -> u32 {
    let name = event.kind.as_str().bytes();
    name.fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// `errlog`
pub(super) fn run(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    if words.has("-rm") {
        let help = "the newest 2,000 events are kept; nothing has to be removed";
        return Err(wrong("events are not removed by hand", help));
    }
    let mut events = context.client.get::<EventsView>("/v1/events")?.events;
    events.reverse();
    Ok(if words.has("-ls") { details(&events) } else { summary(&events) })
}

/// A line for each event, the newest first.
fn summary(events: &[Event]) -> String {
    let mut text = "IDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n".to_owned();
    for event in events {
        // 2026-11-22T16:00:00Z as 1122160026.
        let time = time(event.at_ms);
        let part = |at: usize| time.get(at..at + 2).unwrap_or_default();
        text += &format!(
            "{:08X}   {}{}{}{}{} {} {} {:<14} {}\n",
            identifier(event),
            part(5),
            part(8),
            part(11),
            part(14),
            part(2),
            Grade::of(event).letter(),
            class(event),
            resource(event),
            one_line(&event.message),
        );
    }
    text
}

fn resource(event: &Event) -> &str {
    event.subject.as_deref().unwrap_or("trunkline")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn details(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        let by = event.by.map(|by| format!("By:              {by}\n")).unwrap_or_default();
        let result = event.result.as_deref().map(|result| format!("Result:          {result}\n"));
        text += &format!(
            "{}\nLABEL:           {}\nIDENTIFIER:      {:08X}\n\n\
             Date/Time:       {}\n\
             Sequence Number: {}\nClass:           {}\nType:            {}\nResource Name:   {}\n{by}{}\n\
             Description\n{}\n\n",
            "-".repeat(75),
            event.kind.as_str().to_uppercase(),
            identifier(event),
            time(event.at_ms),
            event.number,
            class(event),
            Grade::of(event).word(),
            resource(event),
            result.unwrap_or_default(),
            one_line(&event.message),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::trail::Kind;

    #[test]
    fn events_are_lines_of_an_error_log() {
        let event = |number, at_ms, kind, subject: Option<&str>, message: &str| Event {
            number,
            at_ms,
            kind,
            subject: subject.map(str::to_owned),
            of: Vec::new(),
            message: message.to_owned(),
            result: None,
            by: None,
        };
        let events = [
            event(3, 1_709_209_859_000, Kind::VolumeError, Some("disk0"), "12 writes failed:\nEIO"),
            event(2, 951_782_400_000, Kind::DataplaneSilent, Some("main"), "does not answer"),
            event(1, 0, Kind::ServerStarted, None, "process 1"),
        ];
        insta::assert_snapshot!(summary(&events) + "\n" + &details(&events[..1]));
    }
}
