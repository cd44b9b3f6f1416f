//! Reads `vmstat`, `svmon -G` and `lsps`.

use super::{Lsps, PagingSpace, Svmon, VmSample, Vmstat};
use crate::page::Page;
use crate::recognise::words;
use crate::text::{Line, decimal};
use crate::{At, Head, Read, Report};

pub(crate) fn vmstat(page: &mut Page<'_>) -> Option<Report> {
    let mut report = Vmstat {
        head: Head::new(page.first()),
        lcpu: None,
        memory_mb: None,
        entitlement: None,
        samples: Vec::new(),
    };
    let mut columns = Columns::default();
    let mut configured = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if let Some(rest) = text.strip_prefix("System configuration:") {
            if configured {
                break;
            }
            configured = page.take().is_some();
            configuration(&mut report, rest, line.at);
        } else if words(text, &["r", "b"]) && text.contains("fre") {
            columns = Columns::of(text);
            page.take();
        } else if words(text, &["kthr"]) || text.bytes().all(|byte| matches!(byte, b'-' | b' ')) {
            page.take();
        } else if let Some(sample) = columns.sample(text, line.at) {
            page.take();
            report.samples.push(sample);
        } else if !page.goes_on(line) {
            break;
        }
    }
    if columns.kept.is_empty() {
        return None;
    }
    if report.samples.is_empty() {
        page.incomplete("no numbers follow the heading");
    }
    report.head = page.close();
    Some(Report::Vmstat(report))
}

/// `lcpu=16 mem=65536MB ent=2.00`
fn configuration(report: &mut Vmstat, text: &str, at: At) {
    for word in text.split_ascii_whitespace() {
        match word.split_once('=') {
            Some(("lcpu", value)) => {
                report.lcpu = value.parse().ok().map(|value| Read { value, at })
            }
            Some(("mem", value)) => {
                let value = value.trim_end_matches("MB").parse().ok();
                report.memory_mb = value.map(|value| Read { value, at });
            }
            Some(("ent", value)) => {
                report.entitlement = decimal(value).map(|value| Read { value, at });
            }
            _ => {}
        }
    }
}

/// The columns of a heading: for each, where its value is kept.
#[derive(Default)]
struct Columns {
    kept: Vec<Option<usize>>,
}

/// In the order of [`VmSample`]. `sy` counts system calls under faults, and time under cpu, which comes last.
const KEPT: [&str; 12] = ["r", "b", "avm", "fre", "pi", "po", "us", "sy", "id", "wa", "pc", "ec"];

impl Columns {
    fn of(heading: &str) -> Self {
        let mut kept: Vec<Option<usize>> = Vec::new();
        // `vmstat -t`: hours, minutes and seconds stand below as one word.
        let heading = heading.strip_suffix("hr mi se").unwrap_or(heading);
        for word in heading.split_ascii_whitespace() {
            let place = KEPT.iter().position(|name| *name == word);
            let before = kept.iter().position(|before| place.is_some() && *before == place);
            kept.push(place.filter(|_| before.is_none() || word == "sy"));
            if let Some(before) = before.filter(|_| word == "sy") {
                kept[before] = None;
            }
        }
        Self { kept }
    }

    /// A row of numbers; a time may stand behind them.
    fn sample(&self, text: &str, at: At) -> Option<VmSample> {
        let mut kept = [None; KEPT.len()];
        let mut found = 0;
        for word in text.split_ascii_whitespace() {
            if let Some(place) = self.kept.get(found) {
                let value = decimal(word)?;
                if let Some(place) = place {
                    kept[*place] = Some(value);
                }
            }
            found += 1;
        }
        let columns = self.kept.len();
        if columns == 0 || found < columns || found > columns + 1 {
            return None;
        }
        let [
            ready,
            blocked,
            active_frames,
            free_frames,
            paged_in,
            paged_out,
            user,
            system,
            idle,
            wait,
            physical,
            entitlement_percent,
        ] = kept;
        Some(VmSample {
            at,
            ready,
            blocked,
            active_frames,
            free_frames,
            paged_in,
            paged_out,
            user,
            system,
            idle,
            wait,
            physical,
            entitlement_percent,
        })
    }
}

pub(crate) fn svmon(page: &mut Page<'_>) -> Option<Report> {
    let mut report = Svmon {
        head: Head::new(page.first()),
        unit: None,
        size: None,
        in_use: None,
        free: None,
        pinned: None,
        computational: None,
        paging_size: None,
        paging_in_use: None,
    };
    let mut columns: Vec<&str> = Vec::new();
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        let unit = text.strip_prefix("Unit:");
        if let Some(unit) = unit.filter(|_| report.size.is_none()) {
            let value = unit.trim().trim_end_matches('-').trim().to_owned();
            report.unit = Some(Read { value, at: line.at });
            page.take();
        } else if words(text, &["size", "inuse", "free"]) {
            if report.size.is_some() {
                break;
            }
            columns = text.split_ascii_whitespace().collect();
            page.take();
        } else if words(text, &["memory"]) && !columns.is_empty() {
            page.take();
            memory(page, &mut report, &columns, text, line);
        } else if let Some(rest) = text.strip_prefix("pg space").filter(|_| !columns.is_empty()) {
            let mut numbers = rest.split_ascii_whitespace().map(decimal);
            let mut read = || numbers.next().flatten().map(|value| Read { value, at: line.at });
            (report.paging_size, report.paging_in_use) = (read(), read());
            page.take();
        } else if is_other(text) {
            page.take();
        } else if !page.goes_on(line) {
            break;
        }
    }
    report.size?;
    report.head = page.close();
    Some(Report::Svmon(report))
}

fn memory(page: &mut Page<'_>, report: &mut Svmon, columns: &[&str], text: &str, line: Line<'_>) {
    let values: Vec<&str> = text.split_ascii_whitespace().skip(1).collect();
    let read = |name: &str| {
        let index = columns.iter().position(|column| *column == name)?;
        Some(Read { value: decimal(values.get(index)?)?, at: line.at })
    };
    report.size = read("size");
    report.in_use = read("inuse");
    report.free = read("free");
    report.pinned = read("pin");
    report.computational = read("virtual");
    if report.size.is_none() || report.free.is_none() {
        page.doubt(line, "the value is no number");
    }
}

pub(crate) fn lsps(page: &mut Page<'_>) -> Option<Report> {
    let mut spaces = Vec::new();
    let mut heading = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if words(text, &["page", "space"]) || words(text, &["total", "paging", "space"]) {
            if heading {
                break;
            }
            heading = page.take().is_some();
        } else if let Some(space) = paging_space(text, line.at) {
            page.take();
            spaces.push(space);
        } else if !page.goes_on(line) {
            break;
        }
    }
    if spaces.is_empty() {
        return None;
    }
    Some(Report::Lsps(Lsps { head: page.close(), spaces }))
}

/// `hd6  hdisk0  rootvg  4096MB  5  yes  yes  lv  0`, where older levels end before the check sum; `4096MB  5%`.
fn paging_space(text: &str, at: At) -> Option<PagingSpace> {
    let found: Vec<&str> = text.split_ascii_whitespace().collect();
    let (name, size, used, active) = match found[..] {
        [size, used] => ("", size, used.strip_suffix('%')?, "yes"),
        [name, _, _, size, used, active, _, ..] if found.len() <= 9 => (name, size, used, active),
        _ => return None,
    };
    let size_mb = size.strip_suffix("MB")?.parse().ok()?;
    let active = match active {
        "yes" => true,
        "no" => false,
        _ => return None,
    };
    let used_percent = used.parse().ok()?;
    Some(PagingSpace { at, name: name.to_owned(), size_mb, used_percent, active })
}

/// Lines by the kind and the size of pages.
fn is_other(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'-' | b'=' | b' '))
        || ["work", "pin", "in use", "PageSize", "s ", "m ", "L ", "S ", "ame", "True Memory"]
            .iter()
            .any(|start| text.starts_with(start))
}
