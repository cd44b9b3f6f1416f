//! `trunkline network trace`: what becomes of frames, as it happens.

mod pcapng;

use super::events::time;
use super::objects::path;
use crate::cli::objects::TraceArgs;
use crate::cli::{Format, Global};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{end_when_unread, put, tell};
use control::api::ItemList;
use control::error::ApiError;
use control::server::{TraceEvent, TraceQuery, TraceView};
use fabric::attribute::Object;
use hyper::Method;
use std::fs::File;
use std::io::BufWriter;
use std::time::{Duration, Instant};

/// How often it is asked when nothing happens.
const PAUSE: Duration = Duration::from_millis(100);

/// `trunkline network trace`
pub(crate) fn trace(global: &Global, args: &TraceArgs) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let network = match &args.network {
        Some(name) => name.clone(),
        None => network_of(&client, args.port.as_deref())?,
    };
    let path = format!("{}/trace", path(Object::Network, &network)?);
    let id = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64
        ^ u64::from(std::process::id()) << 32;
    let ask = |stop: bool| -> Result<TraceView, Failure> {
        let query = TraceQuery {
            id,
            mac: args.mac.clone(),
            port: args.port.clone(),
            vlan: args.vlan,
            lost: args.lost,
            stop,
        };
        let body = serde_json::to_value(query).map_err(Failure::other)?;
        client.send(Method::POST, &path, Some(&body))
    };
    ask(false)?;
    let mut capture = match &args.write {
        None => None,
        Some(path) => {
            let begin = || pcapng::Capture::new(BufWriter::new(File::create(path)?), args.size);
            let failed =
                |error| Failure::other(format!("cannot write {}: {error}", path.display()));
            Some(begin().map_err(failed)?)
        }
    };
    end_when_unread();
    let end = args.time.map(|time| Instant::now() + time);
    let mut left = args.count.unwrap_or(u64::MAX);
    let (mut room, mut last) = (true, false);
    while !last && room && left > 0 {
        last = end.is_some_and(|end| Instant::now() >= end);
        let TraceView { events, missed } = ask(last)?;
        if missed > 0 {
            tell(&format!("{missed} events came too fast and are not shown; narrow it down"));
        }
        let idle = events.is_empty();
        for event in &events {
            if left == 0 {
                break;
            }
            left -= 1;
            match &mut capture {
                Some(capture) => {
                    room = capture.add(event).map_err(Failure::other)?;
                    if !room {
                        tell("the capture has reached its size");
                        break;
                    }
                }
                None if global.output == Format::Table => put(&line(event))?,
                None => put(&serde_json::to_string(event).map_err(Failure::other)?)?,
            }
        }
        if let Some(capture) = &mut capture {
            capture.flush().map_err(Failure::other)?;
        }
        if idle && !last {
            std::thread::sleep(PAUSE);
        }
    }
    if !last {
        ask(true)?;
    }
    Ok(())
}

/// The network of an adapter or uplink, or the only one.
fn network_of(client: &Client, port: Option<&str>) -> Result<String, Failure> {
    let networks: ItemList<serde_json::Value> = client.get("/v1/networks")?;
    if let [one] = &networks.items[..]
        && let Some(name) = one["name"].as_str()
    {
        return Ok(name.to_owned());
    }
    for object in [Object::Adapter, Object::Uplink].into_iter().filter(|_| port.is_some()) {
        let set = client.get::<serde_json::Value>(&path(object, port.unwrap_or_default())?);
        let name = set.ok().and_then(|set| Some(set["attributes"]["network"].as_str()?.to_owned()));
        if let Some(name) = name {
            return Ok(name);
        }
    }
    let what = if networks.items.is_empty() { "there is no network" } else { "which network?" };
    Err(ApiError::invalid(what).help("name it: `trunkline network trace NETWORK`").into())
}

/// What became of it, in words.
fn decision(event: &TraceEvent) -> String {
    match (&event.reason, event.copies) {
        (Some(reason), _) => format!("{}: {reason}", event.decision),
        (None, Some(copies)) => format!("{} to {copies}", event.decision),
        (None, None) => event.decision.clone(),
    }
}

/// An event in one line.
fn line(event: &TraceEvent) -> String {
    let at = time(event.at_ns / 1_000_000);
    let at = at.split_once('T').map_or(at.as_str(), |(_, clock)| clock.trim_end_matches('Z'));
    let mac = |at: usize| {
        let digits = event.head.get(at..at + 12)?;
        let bytes: Vec<&str> = (0..6).map(|byte| &digits[2 * byte..2 * byte + 2]).collect();
        Some(bytes.join(":"))
    };
    let way = match &event.to {
        Some(to) => format!("{} > {to}", event.from),
        None => event.from.clone(),
    };
    let number = if event.frame == 0 { "-".to_owned() } else { event.frame.to_string() };
    let macs = mac(12).zip(mac(0)).map(|(from, to)| format!(" {from} > {to}")).unwrap_or_default();
    let kind = event.head.get(24..28).map(|kind| format!(" type {kind}")).unwrap_or_default();
    let vlan = event.vlan.map(|vlan| format!(" vlan {vlan}")).unwrap_or_default();
    format!(
        "{at}.{:06} {number} {way}{macs}{kind}{vlan} {} bytes {}",
        event.at_ns / 1000 % 1_000_000,
        event.bytes,
        decision(event)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line() {
        let mut event = TraceEvent {
            at_ns: 3_723_000_042_000,
            frame: 12,
            from: "ent0".into(),
            to: None,
            vlan: Some(10),
            bytes: 60,
            decision: "sent".into(),
            copies: Some(2),
            reason: None,
            head: "ffffffffffff0200000000020806".into(),
        };
        let sent = "01:02:03.000042 12 ent0 02:00:00:00:00:02 > ff:ff:ff:ff:ff:ff type 0806 vlan 10 60 bytes sent to 2";
        assert_eq!(line(&event), sent);
        event = TraceEvent {
            frame: 0,
            to: Some("up0".into()),
            vlan: None,
            decision: "lost".into(),
            copies: None,
            reason: Some("failure".into()),
            head: "ff".into(),
            ..event
        };
        assert_eq!(line(&event), "01:02:03.000042 - ent0 > up0 60 bytes lost: failure");
    }
}
