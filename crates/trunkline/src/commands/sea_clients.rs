//! What has passed a shared Ethernet adapter.

use super::objects::path;
use crate::cli::Global;
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{or_dash, print, table};
use control::server::{PassedView, SeaClientsView};
use fabric::attribute::Object;
use hyper::Method;

/// What has passed it; with `clear` it is forgotten after that.
pub(crate) fn ask(client: &Client, sea: &str, clear: bool) -> Result<SeaClientsView, Failure> {
    let path = path(Object::Sea, sea)?;
    if clear {
        client.send(Method::POST, &format!("{path}/clear-clients"), None)
    } else {
        client.get(&format!("{path}/clients"))
    }
}

/// `sea clients`
pub(crate) fn clients(global: &Global, sea: &str, clear: bool) -> Result<(), Failure> {
    let view = ask(&Client::new(global)?, sea, clear)?;
    print(global, &view, text)
}

fn text(view: &SeaClientsView) -> String {
    let passed = |passed: &PassedView| {
        let PassedView { sent_frames, sent_bytes, received_frames, received_bytes } = passed;
        [sent_frames, sent_bytes, received_frames, received_bytes].map(u64::to_string)
    };
    let clients = view.clients.iter().map(|one| {
        let head = [one.mac.clone(), one.vlan.to_string(), or_dash(one.ip.as_ref())];
        head.into_iter().chain(passed(&one.passed)).collect()
    });
    let trunks = view.trunks.iter().map(|one| {
        std::iter::once(one.trunk.clone()).chain(passed(&one.passed)).collect::<Vec<_>>()
    });
    let counts = ["SENT", "BYTES", "RECEIVED", "BYTES"];
    let of = |head: &[&'static str]| [head, &counts].concat();
    let clients = table(&of(&["CLIENT", "VLAN", "IP"]), &[1, 3, 4, 5, 6], clients.collect());
    let trunks = table(&of(&["TRUNK"]), &[1, 2, 3, 4], trunks.collect());
    format!("{clients}\n\n{trunks}")
}
