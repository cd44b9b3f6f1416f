//! Reads `seastat`.

use super::{SeaClient, Seastat};
use crate::page::{Page, put};
use crate::text::{Line, number};
use crate::{Read, Report};

const DOUBT: &str = "the value is not understood";

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut clients: Vec<SeaClient> = Vec::new();
    let mut headings = 0;
    let mut known = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if text.starts_with("Advanced Statistics for SEA") {
            headings += 1;
            if headings > 1 {
                break;
            }
            known = page.take().is_some();
        } else if let Some(name) = text.strip_prefix("Device Name:") {
            page.device_is(name.trim(), line.at);
            known = page.take().is_some();
        } else if text.bytes().all(|byte| matches!(byte, b'=' | b'-' | b' ')) {
            // The rule above the next report's heading belongs to that one.
            let mut ahead = page.ahead();
            ahead.next();
            if known
                && ahead
                    .peek_text()
                    .is_some_and(|next| next.trimmed().starts_with("Advanced Statistics"))
            {
                break;
            }
            page.take();
        } else if let Some(mac) = text.strip_prefix("MAC:") {
            page.take();
            clients.push(client(mac.trim(), line));
        } else if !field(page, clients.last_mut(), line) && !page.goes_on(line) {
            break;
        }
    }
    if !known && clients.is_empty() {
        return None;
    }
    if clients.is_empty() {
        page.incomplete("no client follows the heading; is accounting=enabled on the SEA?");
    } else if clients.last().is_some_and(|last| last.transmitted_bytes.is_none()) {
        page.incomplete("the last client has no numbers");
    }
    Some(Report::Seastat(Seastat { head: page.close(), clients }))
}

fn client(mac: &str, line: Line<'_>) -> SeaClient {
    SeaClient {
        at: line.at,
        mac: mac.to_owned(),
        vlan: None,
        vlan_priority: None,
        hostname: None,
        ip: None,
        transmitted_packets: None,
        transmitted_bytes: None,
        received_packets: None,
        received_bytes: None,
    }
}

fn field(page: &mut Page<'_>, client: Option<&mut SeaClient>, line: Line<'_>) -> bool {
    let text = line.trimmed();
    if text.starts_with("Transmit Statistics:") {
        return page.take().is_some();
    }
    let Some(client) = client else { return false };
    let at = line.at;
    let Some((key, value)) = text.split_once(':') else { return false };
    let value = value.trim();
    let small = || value.parse().ok().map(|value| Read { value, at });
    let fits = match key.trim_end() {
        "VLAN" if value == "None" => true,
        "VLAN" => {
            client.vlan = small();
            client.vlan.is_some()
        }
        "VLAN Priority" if value == "None" => true,
        "VLAN Priority" => {
            client.vlan_priority = small();
            client.vlan_priority.is_some()
        }
        "Hostname" => put(&mut client.hostname, value.to_owned(), at),
        "IP" => put(&mut client.ip, value.to_owned(), at),
        "Packets" => both(value, "Packets:").is_some_and(|(sent, received)| {
            put(&mut client.transmitted_packets, sent, at)
                && put(&mut client.received_packets, received, at)
        }),
        "Bytes" => both(value, "Bytes:").is_some_and(|(sent, received)| {
            put(&mut client.transmitted_bytes, sent, at)
                && put(&mut client.received_bytes, received, at)
        }),
        _ => return false,
    };
    page.take();
    if !fits {
        page.doubt(line, DOUBT);
    }
    true
}

/// `7      Packets: 2752`
fn both(value: &str, key: &str) -> Option<(u64, u64)> {
    let (sent, received) = value.split_once(key)?;
    Some((number(sent.trim())?, number(received.trim())?))
}
