//! Commands about the server as a whole.

use super::objects::{
    adapter_table, dataplane_table, goes_on, object_table, volume_table, waiting,
};
use crate::cli::{ApplyArgs, AttributesArgs, ExportArgs, Format, Global, StatusArgs, StopArgs};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{self, print, put, table, tell};
use control::api::{AppliedView, AttributeView};
use control::error::ApiError;
use control::server::StatusView;
use control::store::last_good;
use fabric::attribute::Object;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// `trunkline apply`
pub(crate) fn apply(global: &Global, args: &ApplyArgs) -> Result<(), Failure> {
    let text = if args.file.as_os_str() == "-" {
        control::config::text(std::io::stdin())
    } else {
        std::fs::File::open(&args.file).and_then(control::config::text)
    };
    let text = text.map_err(|error| Failure::other(format!("{}: {error}", args.file.display())))?;
    // A server of an earlier program does not know it, and refuses what it does not know.
    let wait = if args.no_wait { "&wait=false" } else { "" };
    let path = format!(
        "/v1/apply?dry_run={}&prune={}&force={}&shrink={}{wait}&folder={}",
        args.dry_run,
        args.prune,
        args.force,
        args.shrink,
        escaped(&folder_of(&args.file)?)
    );
    let applied = Client::new(global)?.send_toml(&path, text);
    let applied: AppliedView = applied.map_err(|failure| match failure {
        // What is wrong with a line says in which file.
        Failure::Refused(refusal) if refusal.message.starts_with("line ") => {
            let message = format!("{}: {}", args.file.display(), refusal.message);
            ApiError { message, ..refusal }.into()
        }
        failure => failure,
    })?;
    print(global, &applied, |applied| {
        let mut text = output::changes(&applied.changes, &applied.losses, args.dry_run);
        if !applied.others.is_empty() {
            let others = applied.others.join(", ");
            text += &format!(
                "\nnot in the file, and left as they are: {others} (--prune removes them)"
            );
        }
        text
    })?;
    output::warn(&applied.warnings);
    goes_on(applied.operation);
    match applied.failures.into_iter().next() {
        Some(failure) => Err(failure.into()),
        None => waiting(&applied.waiting),
    }
}

/// The folder from which a configuration's relative paths are taken: its own, or, from standard input, the caller's.
fn folder_of(file: &Path) -> Result<String, Failure> {
    let file = std::path::absolute(file)
        .map_err(|error| Failure::other(format!("{}: {error}", file.display())))?;
    let folder = file.parent().unwrap_or(&file);
    folder
        .to_str()
        .map(str::to_owned)
        .ok_or_else(|| Failure::other(format!("{} is no UTF-8 text", folder.display())))
}

/// A text as part of a query (RFC 3986, 2.1).
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// `trunkline export`: as a configuration, or the same for programs.
pub(crate) fn export(global: &Global, args: &ExportArgs) -> Result<(), Failure> {
    let text = if args.last_good {
        let good = last_good(&global.paths().store()).map_err(Failure::other)?;
        control::config::write(&good)
    } else {
        Client::new(global)?.get_text("/v1/export")?
    };
    if global.output == Format::Table {
        return put(text.trim_end());
    }
    let state: serde_json::Value = toml::from_str(&text).map_err(Failure::other)?;
    if global.output == Format::Name {
        let tables = state.as_object().into_iter().flat_map(serde_json::Map::values);
        let names = tables.filter_map(serde_json::Value::as_object).flat_map(serde_json::Map::keys);
        let names: Vec<&str> = names.map(String::as_str).collect();
        return if names.is_empty() { Ok(()) } else { put(&names.join("\n")) };
    }
    print(global, &state, |_| text.clone())
}

/// `trunkline status`
pub(crate) fn status(global: &Global, args: &StatusArgs) -> Result<(), Failure> {
    let status: StatusView = Client::new(global)?.get("/v1/status")?;
    print(global, &status, status_page)?;
    if args.exit_code && !is_well(&status) { Err(Failure::Found) } else { Ok(()) }
}

/// Whether everything is as it should be.
fn is_well(status: &StatusView) -> bool {
    let bad = ["failed", "broken", "pending", "down"];
    !status.starting
        && status.failures.is_empty()
        && status.dataplanes.iter().all(|one| one.state == "running" && one.reason.is_none())
        && status.volumes.iter().all(|one| one.state == "open" && one.reason.is_none())
        && status.adapters.iter().all(|one| !bad.contains(&one.state.as_str()))
        && status.uplinks.iter().all(|one| !bad.contains(&one.state.as_deref().unwrap_or_default()))
        && status
            .pools
            .iter()
            .all(|one| one.state.as_deref() == Some("open") && one.reason.is_none())
        && troubles(status).is_empty()
}

fn status_page(status: &StatusView) -> String {
    let mut page = format!(
        "trunkline {}, process {}, sockets in {}, state in {}\n\n{}",
        status.version,
        status.pid,
        status.run_dir,
        status.state_dir,
        dataplane_table(&status.dataplanes)
    );
    if !status.volumes.is_empty() {
        page += &format!("\n\n{}", volume_table(&status.volumes));
    }
    if !status.adapters.is_empty() {
        page += &format!("\n\n{}", adapter_table(&status.adapters));
    }
    if !status.pools.is_empty() {
        page += &format!("\n\n{}", object_table(Object::Pool, &status.pools));
    }
    if !status.uplinks.is_empty() {
        page += &format!("\n\n{}", object_table(Object::Uplink, &status.uplinks));
    }
    if status.starting {
        page +=
            "\n\nthe server is starting: data planes are told what they shall be, and changes wait";
    }
    let troubles = troubles(status);
    if !troubles.is_empty() {
        page += &format!("\n\n{}", troubles.join("\n"));
    }
    page
}

/// What is wrong, a line each.
fn troubles(status: &StatusView) -> Vec<String> {
    let broken =
        status.adapters.iter().filter(|adapter| adapter.state == "broken").map(|adapter| {
            format!(
                "adapter `{}` is broken: {}",
                adapter.name,
                adapter.reason.as_deref().unwrap_or("no reason given")
            )
        });
    // Those that failed are among the failures.
    let is_open = |state: &str| matches!(state, "open" | "degraded");
    let pools = status.pools.iter().filter(|pool| pool.state.as_deref().is_some_and(is_open));
    let pools = pools.filter_map(|pool| {
        let (whose, why) = (format!("pool `{}`: ", pool.name), pool.reason.as_ref()?);
        Some(if why.starts_with(&whose) { why.clone() } else { whose + why })
    });
    let failures = status.failures.iter().map(|failure| match &failure.help {
        Some(help) => format!("{failure}; {help}"),
        None => failure.to_string(),
    });
    let silent = status.dataplanes.iter().filter(|plane| plane.state == "unresponsive");
    let silent = silent.map(|plane| {
        let age = plane.age_s.map_or_else(String::new, |age| {
            format!("; what is shown of its volumes and adapters is {age} s old")
        });
        let reason = plane.reason.as_deref().unwrap_or("it does not answer");
        format!(
            "data plane `{0}` is unresponsive: {reason}{age}; `trunkline dataplane restart {0}` kills it and starts another",
            plane.name
        )
    });
    let open = status.dataplanes.iter().filter(|plane| {
        !plane.confinement.is_empty() && plane.confinement != protocol::message::CONFINED
    });
    let open = open.map(|plane| {
        format!("data plane `{}` is not fully confined: {}", plane.name, plane.confinement)
    });
    let short = status.dataplanes.iter().flat_map(|plane| &plane.warnings);
    let short = short.chain(status.adapters.iter().flat_map(|adapter| &adapter.warnings)).cloned();
    let ill = status.volumes.iter().filter(|volume| volume.state != "failed");
    let ill = ill.filter_map(|volume| {
        let reason = volume.reason.as_ref()?;
        Some(format!("volume `{}` is {}: {reason}", volume.name, volume.state))
    });
    silent.chain(failures).chain(pools).chain(ill).chain(broken).chain(open).chain(short).collect()
}

/// `trunkline stop`: returns when the server has ended, so that what follows in a script finds its sockets and locks free.
pub(crate) fn stop(global: &Global, args: &StopArgs) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let status: StatusView = match client.get("/v1/status") {
        Err(Failure::Unreachable { path, problem }) if args.with_dataplanes => {
            let ended = control::serve::end_without_server(&global.paths());
            let ended = ended.map_err(Failure::other)?;
            if ended.is_empty() {
                return Err(Failure::Unreachable { path, problem });
            }
            tell(&format!("no server is there; ended its data planes: {}", ended.join(", ")));
            return Ok(());
        }
        status => status?,
    };
    // Before the request: afterwards the number may be another process's.
    let server = process_behind(&client, status.pid);
    client.post(&format!("/v1/stop?dataplanes={}", args.with_dataplanes))?;
    let Some(server) = server else { return Ok(()) };
    while let Err(Errno::INTR) = poll(&mut [PollFd::new(&server, PollFlags::IN)], None) {}
    Ok(())
}

/// The server's process, if the kernel says that the number it gave means the same process here: not through a container's wall,
/// and not where somebody else made its socket.
fn process_behind(client: &Client, pid: u32) -> Option<OwnedFd> {
    let stream = UnixStream::connect(client.socket()).ok()?;
    let owner = rustix::net::sockopt::socket_peercred(&stream).ok()?.pid;
    let same = u32::try_from(owner.as_raw_nonzero().get()) == Ok(pid);
    same.then(|| pidfd_open(owner, PidfdFlags::empty()).ok()).flatten()
}

/// `trunkline attributes`: from this program's own table, so that it needs no server.
pub(crate) fn attributes(global: &Global, args: &AttributesArgs) -> Result<(), Failure> {
    if args.markdown {
        return put(fabric::attribute::markdown().trim_end());
    }
    print(global, &AttributeView::all(), |all| {
        let rows = all.iter().map(|a| {
            vec![
                a.object.clone(),
                a.kinds.join(","),
                a.name.clone(),
                a.takes.clone(),
                a.default.clone(),
                a.takes_effect.clone(),
            ]
        });
        table(
            &["OBJECT", "KIND", "ATTRIBUTE", "TAKES", "DEFAULT", "TAKES EFFECT"],
            &[],
            rows.collect(),
        )
    })
}
