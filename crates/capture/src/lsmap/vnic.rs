//! Reads `lsmap -all -vnic`.

use super::{LsmapVnic, VnicMap};
use crate::page::{Page, put};
use crate::recognise::words;
use crate::text::{Line, is_device};
use crate::{Read, Report};

pub(crate) fn vnic(page: &mut Page<'_>) -> Option<Report> {
    let mut adapters: Vec<VnicMap> = Vec::new();
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        let rule = text.bytes().all(|byte| matches!(byte, b'-' | b' '));
        let done = ((rule || words(text, &["Name", "Physloc"])) && page.take().is_some())
            || adapter(page, &mut adapters, line)
            || adapters.last_mut().is_some_and(|adapter| field(page, adapter, line));
        if !done && !page.goes_on(line) {
            break;
        }
    }
    let last = adapters.last()?;
    if last.status.is_none() {
        page.incomplete(&format!("{} has no status", last.name));
    }
    Some(Report::LsmapVnic(LsmapVnic { head: page.close(), adapters }))
}

/// `vnicserver0   U9009.42A.78A1B2C-V1-C32897   5 payroll   AIX`
fn adapter(page: &mut Page<'_>, adapters: &mut Vec<VnicMap>, line: Line<'_>) -> bool {
    let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
    let [name, physloc, rest @ ..] = &words[..] else { return false };
    if !is_device(name, "vnicserver") || !physloc.starts_with('U') {
        return false;
    }
    page.take();
    let at = line.at;
    let read = |text: String| (!text.is_empty()).then_some(Read { value: text, at });
    let id = rest.first().and_then(|id| id.parse().ok());
    let rest = if id.is_some() { &rest[1..] } else { rest };
    adapters.push(VnicMap {
        at,
        name: (*name).to_owned(),
        physloc: Some(Read { value: (*physloc).to_owned(), at }),
        client_id: id.map(|value| Read { value, at }),
        client_name: rest.first().and_then(|name| read((*name).to_owned())),
        client_os: rest.get(1..).and_then(|os| read(os.join(" "))),
        backing: None,
        status: None,
        backing_physloc: None,
        client_device: None,
        client_physloc: None,
    });
    true
}

fn field(page: &mut Page<'_>, map: &mut VnicMap, line: Line<'_>) -> bool {
    let Some((key, value)) = line.trimmed().split_once(':') else { return false };
    let place = match key.trim_end() {
        "Backing device" => &mut map.backing,
        "Status" => &mut map.status,
        "Physloc" => &mut map.backing_physloc,
        "Client device name" => &mut map.client_device,
        "Client device physloc" => &mut map.client_physloc,
        _ => return false,
    };
    page.take();
    let value = value.trim();
    if !value.is_empty() && !put(place, value.to_owned(), line.at) {
        page.doubt(line, "the value stands there twice");
    }
    true
}
