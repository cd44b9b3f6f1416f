//! `trunkline events`: what happened.

use crate::cli::{EventsArgs, Global};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{end_when_unread, print};
use control::api::EventsView;
use control::error::ApiError;
use control::trail::Event;
use fabric::attribute::check_name;
use std::time::{Duration, SystemTime};

/// How long the server waits for the next event before it answers that there is none.
const WAIT_S: u64 = 30;

/// Prints events, and, when told to, goes on.
pub(crate) fn run(global: &Global, args: &EventsArgs) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let begin = args.since.map_or(Duration::ZERO, |since| {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        now.saturating_sub(since)
    });
    let since = format!("since_ms={}", begin.as_millis());
    args.of.as_deref().map_or(Ok(()), check_name).map_err(ApiError::invalid)?;
    let of = args.of.as_ref().map(|name| format!("&of={name}")).unwrap_or_default();
    let mut answer: EventsView = client.get(&format!("/v1/events?{since}{of}"))?;
    let mut after = 0;
    if args.follow {
        end_when_unread();
    }
    loop {
        if !answer.events.is_empty() || !args.follow {
            print(global, &answer.events, |events| lines(events))?;
        }
        if !args.follow {
            return Ok(());
        }
        // From here on by numbers alone: what happens after a clock was set back has an earlier time.
        let told = answer.events.last().map_or(after, |event| event.number);
        after = told.max(answer.last);
        answer = client.get(&format!("/v1/events?after={after}&wait_s={WAIT_S}{of}"))?;
    }
}

fn lines(events: &[Event]) -> String {
    let line = |event: &Event| {
        let subject = event.subject.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let result = event.result.as_deref().map(|result| format!(" {result}")).unwrap_or_default();
        let by = event.by.map(|by| format!(" ({by})"));
        let (kind, message) = (event.kind.as_str(), &event.message);
        format!(
            "{} {kind}{subject}{result}: {message}{}",
            time(event.at_ms),
            by.unwrap_or_default()
        )
    };
    events.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A length of time: a number and `s`, `m`, `h` or `d`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; such as `90s`, `10m`, `2h`, `7d`");
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

/// A moment as RFC 3339 has it, in UTC.
pub(crate) fn time(at_ms: u64) -> String {
    let (year, month, day) = planner::report::date(at_ms / 86_400_000);
    let seconds = at_ms / 1000 % 86400;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        assert_eq!(parse_time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("2d"), Ok(Duration::from_secs(172_800)));
        for wrong in ["", "5", "s", "5y", "-5s", "99999999999999999d"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(951_782_399_000), "2000-02-28T23:59:59Z");
        assert_eq!(time(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(time(4_107_542_400_000), "2100-03-01T00:00:00Z");
        assert_eq!(time(1_795_363_200_000), "2026-11-22T16:00:00Z");
    }
}
