//! Reads `lsmap`, as it is printed for people and with `-fmt`.

mod formatted;

use super::{LsmapNet, LsmapNpiv, LsmapScsi, NetMap, NpivMap, ScsiMap, Vtd};
use crate::page::{Page, put};
use crate::recognise::words;
use crate::text::{Line, Plain, is_device, number};
use crate::{At, Read, Report};

const BAD_VALUE: &str = "the value is not understood";

pub(crate) fn scsi(page: &mut Page<'_>) -> Option<Report> {
    let mut adapters: Vec<ScsiMap> = Vec::new();
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        let done = scsi_heading(page, text)
            || scsi_adapter(page, &mut adapters, line)
            || adapters.last_mut().is_some_and(|adapter| scsi_field(page, adapter, line))
            || scsi_formatted(page, &mut adapters, line);
        if !done && !page.goes_on(line) {
            break;
        }
    }
    if adapters.is_empty() {
        return None;
    }
    if let Some(vtd) = adapters.last().and_then(|last| last.devices.last())
        && page.format.is_empty()
        && (vtd.status.is_none() || vtd.backing.is_none())
    {
        page.incomplete(&format!("{} has no status or no backing device", vtd.name));
    }
    Some(Report::LsmapScsi(LsmapScsi { head: page.close(), adapters }))
}

fn scsi_heading(page: &mut Page<'_>, text: &str) -> bool {
    let heading = words(text, &["SVSA", "Physloc"])
        || is_rule(text)
        || text == "NO VIRTUAL TARGET DEVICE FOUND";
    heading && page.take().is_some()
}

/// `--------- ------`; web pages make other dashes of it.
fn is_rule(text: &str) -> bool {
    let dash = |c: char| matches!(c, '-' | '\u{2013}' | '\u{2014}');
    text.starts_with(dash) && text.chars().all(|c| dash(c) || c == ' ')
}

/// `vhost0   U9117.MMA.1234567-V1-C11   0x00000003`
fn scsi_adapter(page: &mut Page<'_>, adapters: &mut Vec<ScsiMap>, line: Line<'_>) -> bool {
    let fields: Vec<&str> = line.text.split_ascii_whitespace().collect();
    let (name, physloc, client) = match fields[..] {
        [name, physloc] => (name, physloc, None),
        [name, physloc, client] => (name, physloc, Some(client)),
        _ => return false,
    };
    if !is_device(name, "vhost") || !physloc.starts_with('U') {
        return false;
    }
    page.take();
    let client_partition = client.and_then(|text| partition(text, line.at));
    if client_partition.is_none() {
        page.doubt(line, "the client's partition is missing or no number");
    }
    adapters.push(ScsiMap {
        at: line.at,
        name: name.to_owned(),
        physloc: Some(Read { value: physloc.to_owned(), at: line.at }),
        client_partition,
        devices: Vec::new(),
    });
    true
}

/// `0x0000000e`, or decimal with `-dec`.
fn partition(text: &str, at: At) -> Option<Read<u32>> {
    let value = u32::try_from(number(text)?).ok()?;
    Some(Read { value, at })
}

fn scsi_field<'t>(page: &mut Page<'t>, adapter: &mut ScsiMap, line: Line<'t>) -> bool {
    let text = line.trimmed();
    if let Some(name) = after(text, "VTD") {
        page.take();
        if !name.is_empty() && name != "NO VIRTUAL TARGET DEVICE FOUND" {
            adapter.devices.push(vtd(name, line.at));
        }
        return true;
    }
    let Some(vtd) = adapter.devices.last_mut() else { return false };
    let keys = ["Status", "LUN", "Backing device", "Physloc", "Mirrored"];
    let Some((key, value)) = keys.iter().find_map(|key| Some((*key, after(text, key)?))) else {
        return false;
    };
    let value = with_below(page, value, &keys);
    let fits = match key {
        "Status" => text_field(&mut vtd.status, value, line.at),
        "LUN" => number(value).is_some_and(|lun| put(&mut vtd.lun, lun, line.at)),
        "Backing device" => text_field(&mut vtd.backing, value, line.at),
        "Physloc" => text_field(&mut vtd.physloc, value, line.at),
        _ => mirrored(&mut vtd.mirrored, value, line.at),
    };
    if !fits {
        page.doubt(line, BAD_VALUE);
    }
    true
}

/// Takes a field's line; a value that mail has put on the line below belongs to it.
fn with_below<'t>(page: &mut Page<'t>, value: &'t str, keys: &[&str]) -> &'t str {
    let below = value.is_empty().then(|| page.below(keys)).flatten();
    let below = below
        .filter(|(word, _)| *word != "VTD" && !is_device(word, "vhost") && !is_device(word, "ent"));
    page.take_lines(below.map_or(1, |(_, lines)| lines));
    below.map_or(value, |(word, _)| word)
}

fn vtd(name: &str, at: At) -> Vtd {
    Vtd {
        at,
        name: name.to_owned(),
        status: None,
        lun: None,
        backing: None,
        physloc: None,
        mirrored: None,
    }
}

/// The value behind a key and white space, or behind a colon.
fn after<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(key)?;
    if rest.is_empty() {
        return Some("");
    }
    rest.starts_with([' ', '\t', ':']).then(|| rest.trim_start_matches(':').bare())
}

/// A text; an empty one is known and nothing to keep.
fn text_field(place: &mut Option<Read<String>>, value: &str, at: At) -> bool {
    value.is_empty() || put(place, value.to_owned(), at)
}

fn mirrored(place: &mut Option<Read<bool>>, value: &str, at: At) -> bool {
    match value {
        "true" => put(place, true, at),
        "false" => put(place, false, at),
        "N/A" | "" => true,
        _ => false,
    }
}

/// The delimiter of a line made with `-fmt`: the command's, or the character behind the first field.
fn delimiter(page: &Page<'_>, text: &str) -> Option<char> {
    page.delimiter.or_else(|| text.find([':', ',', ';']).and_then(|end| text[end..].chars().next()))
}

/// The fields of such a line. `lsmap` leaves the commas between the names of flags, `a<LOGGED_IN,STRIP_MERGE>`, as they
/// are.
fn fields(text: &str, delimiter: char) -> impl Iterator<Item = &str> {
    let mut inside = false;
    let end = move |c: char| {
        inside = (inside || c == '<') && c != '>';
        c == delimiter && !inside
    };
    text.split(end).map(str::trim)
}

/// How many fields the line has.
pub(crate) fn field_count(text: &str, delimiter: char) -> usize {
    fields(text, delimiter).count()
}

fn scsi_formatted(page: &mut Page<'_>, adapters: &mut Vec<ScsiMap>, line: Line<'_>) -> bool {
    delimiter(page, line.trimmed())
        .is_some_and(|delimiter| formatted::scsi(page, adapters, line, delimiter))
}

pub(crate) fn npiv(page: &mut Page<'_>) -> Option<Report> {
    let mut adapters: Vec<NpivMap> = Vec::new();
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        let heading = words(text, &["Name", "Physloc"]) || is_rule(text);
        let done = (heading && page.take().is_some())
            || npiv_adapter(page, &mut adapters, line)
            || adapters.last_mut().is_some_and(|adapter| npiv_fields(page, adapter, line))
            || npiv_formatted(page, &mut adapters, line);
        if !done && !page.goes_on(line) {
            break;
        }
    }
    let last = adapters.last()?;
    if page.format.is_empty() && (last.status.is_none() || last.flags.is_none()) {
        page.incomplete(&format!("{} has no status or no flags", last.name));
    }
    Some(Report::LsmapNpiv(LsmapNpiv { head: page.close(), adapters }))
}

fn npiv_map(name: &str, at: At) -> NpivMap {
    NpivMap {
        at,
        name: name.to_owned(),
        physloc: None,
        client_id: None,
        client_name: None,
        client_os: None,
        status: None,
        port: None,
        port_physloc: None,
        ports_logged_in: None,
        flags: None,
        flag_names: Vec::new(),
        client_adapter: None,
        client_drc: None,
    }
}

/// `vfchost0   U9009.42A.7812345-V1-C20   3   erp1   AIX`; name and system come only from clients that are up, and a
/// long line goes on in the next.
fn npiv_adapter(page: &mut Page<'_>, adapters: &mut Vec<NpivMap>, line: Line<'_>) -> bool {
    if !line.text.starts_with("vfchost") {
        return false;
    }
    let mut fields: Vec<&str> = line.text.split_ascii_whitespace().collect();
    if fields.len() < 2 || !is_device(fields[0], "vfchost") || !fields[1].starts_with('U') {
        return false;
    }
    page.take();
    if let Some(next) = page.peek_raw()
        && !next.is_blank()
        && !next.text.contains([':', '-'])
        && fields.len() < 5
    {
        page.take();
        fields.extend(next.text.split_ascii_whitespace());
    }
    let at = line.at;
    let mut map = npiv_map(fields[0], at);
    map.physloc = Some(Read { value: fields[1].to_owned(), at });
    let mut rest = &fields[2..];
    if let Some(id) = rest.first().and_then(|text| text.parse().ok()) {
        map.client_id = Some(Read { value: id, at });
        rest = &rest[1..];
    } else {
        page.doubt(line, "the client's partition is missing or no number");
    }
    let read = |value: String| (!value.is_empty()).then_some(Read { value, at });
    if let Some((name, os)) = rest.split_first() {
        map.client_name = read((*name).to_owned());
        map.client_os = read(os.join(" "));
    }
    adapters.push(map);
    true
}

/// One or two `key:value` on a line.
fn npiv_fields<'t>(page: &mut Page<'t>, map: &mut NpivMap, line: Line<'t>) -> bool {
    const KEYS: [&str; 7] = [
        "Status:",
        "FC name:",
        "FC loc code:",
        "Ports logged in:",
        "Flags:",
        "VFC client name:",
        "VFC client DRC:",
    ];
    let text = line.trimmed();
    if !KEYS.iter().any(|key| text.starts_with(key)) {
        return false;
    }
    let below = text.ends_with(':').then(|| page.below(&[])).flatten();
    page.take_lines(below.map_or(1, |(_, lines)| lines));
    let mut rest = text;
    while let Some(key) = KEYS.iter().find(|key| rest.starts_with(**key)) {
        let body = &rest[key.len()..];
        // Most lines have one key.
        let more = body.split_key().is_some();
        let keys = KEYS.iter().filter(|_| more);
        let end = keys.filter_map(|other| body.find(other)).min().unwrap_or(body.len());
        let value = match (body[..end].bare(), below) {
            ("", Some((word, _))) if end == body.len() => word,
            (value, _) => value,
        };
        if !npiv_field(map, key, value, line.at) {
            page.doubt(line, BAD_VALUE);
        }
        rest = &body[end..];
    }
    true
}

fn npiv_field(map: &mut NpivMap, key: &str, value: &str, at: At) -> bool {
    match key {
        "Status:" => text_field(&mut map.status, value, at),
        "FC name:" => text_field(&mut map.port, value, at),
        "FC loc code:" => text_field(&mut map.port_physloc, value, at),
        "Ports logged in:" => {
            value.parse().is_ok_and(|count| put(&mut map.ports_logged_in, count, at))
        }
        "Flags:" => flags(map, value, at),
        "VFC client name:" => text_field(&mut map.client_adapter, value, at),
        _ => text_field(&mut map.client_drc, value, at),
    }
}

/// `a<LOGGED_IN,STRIP_MERGE>`, or the number alone with `-fmt`.
fn flags(map: &mut NpivMap, value: &str, at: At) -> bool {
    let (digits, names) = value.split_once('<').unwrap_or((value, ""));
    let names = names.trim_end_matches('>');
    map.flag_names = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    let digits = digits.bare().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).is_ok_and(|flags| put(&mut map.flags, flags, at))
}

/// The fields of `-fmt` where the command names none.
const NPIV_FIELDS: [&str; 12] = [
    "name",
    "physloc",
    "clntid",
    "clntname",
    "clntos",
    "status",
    "fc",
    "fcphysloc",
    "ports",
    "flags",
    "vfcclient",
    "vfcclientdrc",
];

fn npiv_formatted(page: &mut Page<'_>, adapters: &mut Vec<NpivMap>, line: Line<'_>) -> bool {
    let Some(delimiter) = delimiter(page, line.trimmed()) else { return false };
    let values: Vec<&str> = fields(line.trimmed(), delimiter).collect();
    if page.format.is_empty() {
        return npiv_row(page, adapters, line, &NPIV_FIELDS, &values);
    }
    let names: Vec<String> = page.format.iter().map(|name| name.to_ascii_lowercase()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    npiv_row(page, adapters, line, &names, &values)
}

/// A row with these fields.
fn npiv_row(
    page: &mut Page<'_>,
    adapters: &mut Vec<NpivMap>,
    line: Line<'_>,
    names: &[&str],
    values: &[&str],
) -> bool {
    let place = names.iter().position(|name| *name == "name");
    let Some(name) = place.and_then(|place| values.get(place)) else { return false };
    if values.len() != names.len() || !is_device(name, "vfchost") {
        return false;
    }
    page.take();
    let at = line.at;
    let (mut map, mut fits) = (npiv_map(name, at), true);
    for (name, value) in names.iter().zip(values) {
        fits &= match *name {
            "physloc" => text_field(&mut map.physloc, value, at),
            "clntid" => value.parse().is_ok_and(|id| put(&mut map.client_id, id, at)),
            "clntname" => text_field(&mut map.client_name, value, at),
            "clntos" => text_field(&mut map.client_os, value, at),
            "status" => text_field(&mut map.status, value, at),
            "fc" | "fcname" => text_field(&mut map.port, value, at),
            "fcphysloc" => text_field(&mut map.port_physloc, value, at),
            "ports" => value.parse().is_ok_and(|count| put(&mut map.ports_logged_in, count, at)),
            "flags" => flags(&mut map, value, at),
            "vfcclient" => text_field(&mut map.client_adapter, value, at),
            "vfcclientdrc" => text_field(&mut map.client_drc, value, at),
            _ => true,
        };
    }
    if !fits {
        page.doubt(line, BAD_VALUE);
    }
    adapters.push(map);
    true
}

pub(crate) fn net(page: &mut Page<'_>) -> Option<Report> {
    let mut adapters: Vec<NetMap> = Vec::new();
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        let heading = words(text, &["SVEA", "Physloc"])
            || is_rule(text)
            || text == "NO SHARED ETHERNET ADAPTER FOUND";
        let done = (heading && page.take().is_some())
            || net_adapter(page, &mut adapters, line)
            || adapters.last_mut().is_some_and(|adapter| net_field(page, adapter, line))
            || net_formatted(page, &mut adapters, line);
        if !done && !page.goes_on(line) {
            break;
        }
    }
    let last = adapters.last()?;
    if last.sea.is_some() && last.backing.is_none() {
        page.incomplete(&format!("{} has no backing device", last.name));
    }
    Some(Report::LsmapNet(LsmapNet { head: page.close(), adapters }))
}

fn net_map(name: &str, physloc: &str, at: At) -> NetMap {
    NetMap {
        at,
        name: name.to_owned(),
        physloc: Some(Read { value: physloc.to_owned(), at }),
        sea: None,
        backing: None,
        status: None,
        backing_physloc: None,
    }
}

fn net_adapter(page: &mut Page<'_>, adapters: &mut Vec<NetMap>, line: Line<'_>) -> bool {
    let mut fields = line.text.split_ascii_whitespace();
    let (Some(name), Some(physloc), None) = (fields.next(), fields.next(), fields.next()) else {
        return false;
    };
    let fits = is_device(name, "ent") && physloc.starts_with('U');
    if fits {
        page.take();
        adapters.push(net_map(name, physloc, line.at));
    }
    fits
}

fn net_field<'t>(page: &mut Page<'t>, map: &mut NetMap, line: Line<'t>) -> bool {
    let keys = ["SEA", "Backing device", "Status", "Physloc"];
    let text = line.trimmed();
    let Some((key, value)) = keys.iter().find_map(|key| Some((*key, after(text, key)?))) else {
        return false;
    };
    let value = with_below(page, value, &keys);
    let place = match key {
        "SEA" if value == "NO SHARED ETHERNET ADAPTER FOUND" => return true,
        "SEA" => &mut map.sea,
        "Backing device" => &mut map.backing,
        "Status" => &mut map.status,
        _ => &mut map.backing_physloc,
    };
    if !text_field(place, value, line.at) {
        page.doubt(line, BAD_VALUE);
    }
    true
}

/// `svea:physloc:sea:backing:status:physloc`
fn net_formatted(page: &mut Page<'_>, adapters: &mut Vec<NetMap>, line: Line<'_>) -> bool {
    let Some(delimiter) = delimiter(page, line.trimmed()) else { return false };
    let fields: Vec<&str> = line.trimmed().split(delimiter).map(str::trim).collect();
    let (name, physloc, rest) = match fields[..] {
        [name, physloc, sea, backing, status, place] => {
            (name, physloc, Some([sea, backing, status, place]))
        }
        [name, physloc] | [name, physloc, "" | "NO SHARED ETHERNET ADAPTER FOUND"] => {
            (name, physloc, None)
        }
        _ => return false,
    };
    if !is_device(name, "ent") || !physloc.starts_with('U') {
        return false;
    }
    page.take();
    let mut map = net_map(name, physloc, line.at);
    if let Some([sea, backing, status, place]) = rest {
        text_field(&mut map.sea, sea, line.at);
        text_field(&mut map.backing, backing, line.at);
        text_field(&mut map.status, status, line.at);
        text_field(&mut map.backing_physloc, place, line.at);
    }
    adapters.push(map);
    true
}
