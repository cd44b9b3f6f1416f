//! Reads nmon files.

use super::{Nmon, NmonRow, NmonSection, NmonTime, stem};
use crate::page::{Page, put};
use crate::prompt::{self, days};
use crate::text::Line;
use crate::{At, Head, Report, Taken};

/// Sections that are kept.
const KEPT: [&str; 21] = [
    "CPU_ALL",
    "MEM",
    "MEMNEW",
    "MEMUSE",
    "PAGE",
    "LPAR",
    "PROC",
    "FILE",
    "NET",
    "NETPACKET",
    "NETERROR",
    "SEA",
    "SEAPACKET",
    "FCREAD",
    "FCWRITE",
    "FCXFERIN",
    "FCXFEROUT",
    "DISKREAD",
    "DISKWRITE",
    "DISKXFER",
    "DISKSERV",
];

/// More intervals than any file has.
const MOST: usize = 1 << 20;

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut report = Nmon {
        head: Head::new(page.first()),
        host: None,
        machine_serial: None,
        machine_model: None,
        partition_id: None,
        partition_name: None,
        interval_seconds: None,
        times: Vec::new(),
        sections: Vec::new(),
    };
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if text.starts_with("AAA,progname") && report.host.is_some() {
            break;
        }
        if take(&mut report, text, line) {
            page.take();
        } else if !page.goes_on(line) {
            break;
        }
    }
    if report.sections.is_empty() && report.host.is_none() {
        return None;
    }
    if report.times.is_empty() {
        page.incomplete("no interval follows the headings");
    }
    if let Some(host) = &report.host {
        page.partition_is(&host.value, host.at);
    }
    report.head = page.close();
    if let (None, Some(first)) = (&report.head.taken, report.times.first()) {
        report.head.taken = Some(first.taken.clone());
    }
    Some(Report::Nmon(Box::new(report)))
}

/// Whether the line is one of nmon's.
fn take(report: &mut Nmon, text: &str, line: Line<'_>) -> bool {
    let Some((name, rest)) = text.split_once(',') else { return false };
    let word = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if !name.starts_with(|c: char| c.is_ascii_uppercase()) || !name.bytes().all(word) {
        return false;
    }
    match name {
        "AAA" => about(report, rest, line.at),
        "ZZZZ" => report.times.extend(time(rest, line).filter(|_| report.times.len() < MOST)),
        // A number at the end of a file may be cut.
        _ if KEPT.contains(&stem(name)) && line.ended => section(report, name, rest, line.at),
        _ => {}
    }
    true
}

fn about(report: &mut Nmon, rest: &str, at: At) {
    let (key, value) = rest.split_once(',').unwrap_or((rest, ""));
    let own = || value.to_owned();
    match key {
        "host" => drop(put(&mut report.host, own(), at)),
        "SerialNumber" => drop(put(&mut report.machine_serial, own(), at)),
        "MachineType" => {
            let model = value.rsplit(',').next().unwrap_or(value).to_owned();
            put(&mut report.machine_model, model, at);
        }
        "LPARNumberName" => {
            if let Some((id, name)) = value.split_once(',')
                && let Ok(id) = id.parse()
            {
                put(&mut report.partition_id, id, at);
                put(&mut report.partition_name, name.to_owned(), at);
            }
        }
        "interval" => {
            if let Ok(seconds) = value.parse() {
                put(&mut report.interval_seconds, seconds, at);
            }
        }
        _ => {}
    }
}

/// `T0001,10:00:01,12-NOV-2026`
fn time(rest: &str, line: Line<'_>) -> Option<NmonTime> {
    let mut fields = rest.split(',');
    let (tag, clock, date) = (fields.next()?, fields.next()?, fields.next()?);
    let mut date = date.split('-');
    let day: u64 = date.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = date.next()?;
    let year: u64 = date.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let month = (1u64..).zip(prompt::MONTHS).find(|(_, name)| name.eq_ignore_ascii_case(month))?.0;
    let mut clock = clock.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    // Numbers beyond a clock's would overflow below.
    if hour >= 24 || minute >= 60 || second > 60 {
        return None;
    }
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let taken = Taken { seconds, zone: Some(String::new()) };
    Some(NmonTime { at: line.at, tag: tag.to_owned(), taken })
}

fn section(report: &mut Nmon, name: &str, rest: &str, at: At) {
    let (first, values) = rest.split_once(',').unwrap_or((rest, ""));
    let is_tag = first.starts_with('T') && first[1..].bytes().all(|byte| byte.is_ascii_digit());
    let known = report.sections.iter_mut().find(|section| section.name == name);
    let is_tag = is_tag && first.len() > 1;
    match known {
        Some(section) if is_tag && section.rows.len() < MOST => {
            let value =
                |text: &str| text.trim().parse().ok().filter(|value: &f64| value.is_finite());
            let values = values.split(',').map(value).collect();
            section.rows.push(NmonRow { at, tag: first.to_owned(), values });
        }
        None if !is_tag => report.sections.push(NmonSection {
            at,
            name: name.to_owned(),
            columns: values.split(',').map(|name| name.trim().to_owned()).collect(),
            rows: Vec::new(),
        }),
        // Values before their heading, or a heading twice.
        _ => {}
    }
}
