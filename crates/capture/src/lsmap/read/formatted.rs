//! `lsmap -all -fmt`: a line for each adapter, with all fields or those that `-field` names, in its order; those of target
//! devices come again for each.

use super::{BAD_VALUE, Line, Page, ScsiMap};
use super::{is_device, mirrored, number, partition, put, text_field, vtd};

/// The fields that are of the adapter and not of what is behind it.
const OF_ADAPTER: [&str; 3] = ["svsa", "physloc", "clientid"];

/// All fields, in the order of the command. Older levels do not print the last one.
const ALL: [&str; 9] =
    ["svsa", "physloc", "clientid", "vtd", "status", "lun", "backing", "bdphysloc", "mirrored"];

/// `vhost0:PHYSLOC:0x3:vtscsi0:Available:0x81…:hdisk2:PHYSLOC:false:…`
pub(super) fn scsi(
    page: &mut Page<'_>,
    adapters: &mut Vec<ScsiMap>,
    line: Line<'_>,
    delimiter: char,
) -> bool {
    if page.format.is_empty() {
        let without_last = &ALL[..ALL.len() - 1];
        return row(page, adapters, line, delimiter, &ALL)
            || row(page, adapters, line, delimiter, without_last);
    }
    let names: Vec<String> = page.format.iter().map(|name| name.to_ascii_lowercase()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    row(page, adapters, line, delimiter, &names)
}

/// A line with these fields.
fn row(
    page: &mut Page<'_>,
    adapters: &mut Vec<ScsiMap>,
    line: Line<'_>,
    delimiter: char,
    names: &[&str],
) -> bool {
    let at = line.at;
    let (own, of_device): (Vec<&str>, Vec<&str>) =
        names.iter().partition(|name| OF_ADAPTER.contains(name));
    let values: Vec<&str> = line.trimmed().split(delimiter).map(str::trim).collect();
    // Fields of the adapter stand before those of the devices, or no one can tell where these begin.
    let in_order = names.iter().take(own.len()).all(|name| OF_ADAPTER.contains(name));
    let Some((first, devices)) = values.split_at_checked(own.len()).filter(|_| in_order) else {
        return false;
    };
    let value = |name: &str| own.iter().position(|own| *own == name).map(|place| first[place]);
    let Some(name) = value("svsa").filter(|name| is_device(name, "vhost")) else { return false };
    let devices = match devices {
        [] | [""] | ["NO VIRTUAL TARGET DEVICE FOUND"] => &[],
        devices => devices,
    };
    if !devices.is_empty()
        && (of_device.first() != Some(&"vtd") || !devices.len().is_multiple_of(of_device.len()))
    {
        return false;
    }
    let client_partition = value("clientid").and_then(|text| partition(text, at));
    // A line that nobody asked for by its fields is known by all that stands in it.
    if page.format.is_empty() && client_partition.is_none() {
        return false;
    }
    page.take();
    let mut map =
        ScsiMap { at, name: name.to_owned(), physloc: None, client_partition, devices: Vec::new() };
    text_field(&mut map.physloc, value("physloc").unwrap_or_default(), at);
    for chunk in devices.chunks(of_device.len().max(1)) {
        let mut device = vtd(chunk[0], at);
        for (name, value) in of_device.iter().zip(chunk).skip(1) {
            let fits = match *name {
                "status" => text_field(&mut device.status, value, at),
                "lun" => number(value).is_some_and(|lun| put(&mut device.lun, lun, at)),
                "backing" => text_field(&mut device.backing, value, at),
                "bdphysloc" => text_field(&mut device.physloc, value, at),
                "mirrored" => mirrored(&mut device.mirrored, value, at),
                _ => true,
            };
            if !fits {
                page.doubt(line, BAD_VALUE);
            }
        }
        map.devices.push(device);
    }
    adapters.push(map);
    true
}
