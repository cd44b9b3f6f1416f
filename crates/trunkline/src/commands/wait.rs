//! `wait`: until objects are as somebody needs them.

use super::objects::path;
use crate::cli::{Global, WaitArgs};
use crate::client::Client;
use crate::exit::Failure;
use control::error::{ApiError, Code};
use fabric::attribute::Object;
use serde_json::Value;
use std::time::{Duration, Instant};

/// How often it looks.
const LOOK: Duration = Duration::from_millis(200);
/// What is waited for when an object is to be removed.
const GONE: &str = "gone";

/// The states that there are, those in which it serves first.
fn states(object: Object) -> (&'static [&'static str], &'static [&'static str]) {
    match object {
        Object::Volume => {
            (&["open"], &["degraded", "full", "gone", "opening", "failed", "pending"])
        }
        Object::Adapter => {
            (&["listening", "connecting", "connected", "running"], &["broken", "failed", "pending"])
        }
        Object::Uplink => {
            (&["connected", "active", "backup"], &["down", "failed", "pending", "unused"])
        }
        Object::Pool => (&["open"], &["degraded", "failed", "pending"]),
        _ => (&["running"], &["unresponsive", "down"]),
    }
}

/// `trunkline NOUN wait`
pub(super) fn wait(global: &Global, object: Object, args: &WaitArgs) -> Result<(), Failure> {
    let (serves, others) = states(object);
    let known = |state: &str| serves.contains(&state) || others.contains(&state) || state == GONE;
    if let Some(unknown) = args.states.iter().find(|state| !known(state)) {
        let mut all = [serves, others].concat();
        if !all.contains(&GONE) {
            all.push(GONE);
        }
        let all = all.join(", ");
        let refusal = ApiError::invalid(format!("{} has no state `{unknown}`", object.one()));
        return Err(refusal.help(format!("one of {all}")).into());
    }
    let wanted: Vec<&str> = match args.states.as_slice() {
        [] => serves.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    let (client, until) = (Client::new(global)?, Instant::now() + args.timeout);
    let mut late = Vec::new();
    for name in &args.names {
        let path = path(object, name)?;
        loop {
            let state = match client.get::<Value>(&path) {
                Ok(view) => view["state"].as_str().unwrap_or_default().to_owned(),
                Err(Failure::Refused(refusal)) if refusal.code == Code::NotFound => GONE.to_owned(),
                Err(failure) => return Err(failure),
            };
            if wanted.contains(&state.as_str()) {
                break;
            }
            if Instant::now() >= until {
                let seconds = args.timeout.as_secs();
                late.push(format!("{object} `{name}` is {state} after {seconds} s"));
                break;
            }
            std::thread::sleep(LOOK);
        }
    }
    if late.is_empty() {
        return Ok(());
    }
    let wanted = wanted.join(" or ");
    Err(Failure::other(format!("waited in vain for {wanted}: {}", late.join("; "))))
}
