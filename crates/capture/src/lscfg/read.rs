//! Reads vital product data.

use super::{Device, Lscfg};
use crate::page::Page;
use crate::text::{Line, is_device};
use crate::{Info, Report};

const KINDS: [&str; 10] =
    ["fcs", "fscsi", "ent", "hdisk", "vscsi", "cd", "rmt", "sas", "vhost", "vfchost"];

/// `  fcs0   U78D2.001.WZS000W-P1-C2-T1  8Gb PCI Express Dual Port FC Adapter (df1000f114108a03)`
pub(crate) fn is_device_row(text: &str) -> bool {
    device(text).is_some()
}

fn device(text: &str) -> Option<(&str, Option<&str>, &str)> {
    let mark = |byte: u8| matches!(byte, b'*' | b'+' | b'-' | b' ');
    let text = &text[text.bytes().take_while(|byte| mark(*byte)).count()..];
    let end = memchr::memchr(b' ', text.as_bytes())?;
    let (name, rest) = (&text[..end], &text[end + 1..]);
    // Most words do not end as the name of a device.
    if !name.ends_with(|c: char| c.is_ascii_digit())
        || !KINDS.iter().any(|kind| is_device(name, kind))
    {
        return None;
    }
    let rest = rest.trim_start();
    let (location, description) = rest.split_once(' ')?;
    let fits = location.starts_with('U') && location.contains(['.', '-']);
    let description = description.trim_start();
    (fits && description.starts_with(|c: char| c.is_ascii_alphanumeric()))
        .then_some((name, Some(location), description))
        .filter(|(_, _, text)| {
            // The third word of other lists is a number.
            text.contains(' ')
                && !text.split(' ').all(|word| word.bytes().all(|b| b.is_ascii_digit()))
        })
}

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut devices: Vec<Device> = Vec::new();
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if let Some((name, location, description)) = device(text) {
            page.take();
            devices.push(Device {
                at: line.at,
                name: name.to_owned(),
                location: location.map(str::to_owned),
                description: description.to_owned(),
                fields: Vec::new(),
            });
        } else if let Some(field) = field(text, line)
            && let Some(device) = devices.last_mut()
        {
            page.take();
            page.mask(&field.name, &field.value, line.at);
            device.fields.push(field);
        } else if is_platform(text) && !devices.is_empty() {
            page.take();
        } else if !page.goes_on(line) {
            break;
        }
    }
    let first = devices.first()?;
    if devices.len() == 1 {
        page.device_is(&first.name, first.at);
    }
    Some(Report::Lscfg(Lscfg { head: page.close(), devices }))
}

/// `Serial Number...............1A5120E8A8`, `Device Specific.(Z0)........31004549`
fn field(text: &str, line: Line<'_>) -> Option<Info> {
    let (name, rest) = text.split_at(text.find("..")?);
    let name = name.replace(".(", " (");
    let value = rest.trim_start_matches('.').trim();
    let fits = name.starts_with(|c: char| c.is_ascii_uppercase()) && name.len() < 48;
    fits.then(|| Info { at: line.at, name: name.into(), value: value.to_owned() })
}

/// What `-p` adds below the device.
fn is_platform(text: &str) -> bool {
    ["PLATFORM SPECIFIC", "Name:", "Model:", "Node:", "Device Type:", "Physical Location:"]
        .iter()
        .any(|start| text.starts_with(start))
}
