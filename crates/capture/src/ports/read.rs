//! Reads `lsnports`, as it is printed for people and with `-fmt`.

use super::{Lsnports, NpivPort};
use crate::page::Page;
use crate::recognise::words;
use crate::text::is_device;
use crate::{At, Report};

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut ports = Vec::new();
    let mut headed = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if words(text, &["name", "physloc", "fabric"]) {
            if headed {
                break;
            }
            headed = true;
            page.take();
        } else if let Some(port) =
            port(text, line.at).or_else(|| formatted(page.delimiter, text, line.at))
        {
            page.take();
            ports.push(port);
        } else if is_device(text.split([' ', '\t', ':', ',']).next().unwrap_or(""), "fcs") {
            if !page.stray("a row of a port that is not whole") {
                break;
            }
        } else if !page.goes_on(line) {
            break;
        }
    }
    if ports.is_empty() && !headed {
        return None;
    }
    if ports.is_empty() {
        page.incomplete("no port follows the heading");
    }
    Some(Report::Lsnports(Lsnports { head: page.close(), ports }))
}

fn port(text: &str, at: At) -> Option<NpivPort> {
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let (fields, label) = fields.split_at_checked(7)?;
    row(fields, label.join(" "), at)
}

/// `fcs0:PHYSLOC:1:64:62:2048:2040`, with `::` where the command asks for it.
fn formatted(delimiter: Option<char>, text: &str, at: At) -> Option<NpivPort> {
    let delimiter = delimiter.or_else(|| text.chars().find(|c| matches!(c, ':' | ',' | ';')))?;
    let double: String = [delimiter, delimiter].iter().collect();
    let fields: Vec<&str> = if text.contains(&double) {
        text.split(double.as_str()).map(str::trim).collect()
    } else {
        text.split(delimiter).map(str::trim).collect()
    };
    let (fields, label) = fields.split_at_checked(7)?;
    row(fields, label.join(" "), at)
}

fn row(fields: &[&str], label: String, at: At) -> Option<NpivPort> {
    let [name, physloc, fabric, total, free, wwpns_total, wwpns_free] = fields[..] else {
        return None;
    };
    if !is_device(name, "fcs") {
        return None;
    }
    Some(NpivPort {
        at,
        name: name.to_owned(),
        physloc: physloc.to_owned(),
        fabric: match fabric {
            "1" => true,
            "0" => false,
            _ => return None,
        },
        ports_total: total.parse().ok()?,
        ports_free: free.parse().ok()?,
        wwpns_total: wwpns_total.parse().ok()?,
        wwpns_free: wwpns_free.parse().ok()?,
        label: (!label.is_empty()).then_some(label),
    })
}
