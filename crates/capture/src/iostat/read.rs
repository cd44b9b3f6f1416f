//! Reads `iostat -D`, in blocks and, with `-l`, in rows.
//!
//! Suffixes are those of the AIX commands reference: `K`, `M`, `G`, `T` are powers of 1000; behind a time, which is in
//! milliseconds without one, `S` is seconds, `M` minutes and `H` hours.

use std::collections::HashMap;

use super::{DiskQueue, DiskSample, IostatD, Service};
use crate::page::Page;
use crate::recognise::is_disk_heading;
use crate::text::{Line, Lines};
use crate::{At, Read, Report};

const DOUBT: &str = "a value is missing or no number";

/// What follows a heading of a block.
#[derive(Clone, Copy)]
enum Group {
    Transfer,
    Read,
    Write,
    Queue,
}

/// What is read so far.
struct Reading {
    report: IostatD,
    samples: HashMap<String, u32>,
    group: Option<Group>,
    /// The heading of the long form was seen.
    long: bool,
    /// No row has followed it yet.
    in_long_heading: bool,
}

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let report = IostatD {
        head: crate::Head::new(page.first()),
        lcpu: None,
        drives: None,
        paths: None,
        vdisks: None,
        disks: Vec::new(),
    };
    let mut reading = Reading {
        report,
        samples: HashMap::new(),
        group: None,
        long: false,
        in_long_heading: false,
    };
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        let done = reading.configuration(page, line)
            || reading.heading(page, line)
            || reading.values(page, line)
            || reading.row(page, line)
            || (is_rule(text) && page.take().is_some());
        if !done && !page.goes_on(line) {
            break;
        }
    }
    if reading.report.disks.is_empty() {
        return None;
    }
    let unfinished = reading.report.disks.iter().find(|disk| disk.queue.full_per_second.is_none());
    if let Some(disk) = unfinished {
        page.incomplete(&format!("{} has no numbers of its queue", disk.name));
    }
    reading.report.head = page.close();
    Some(Report::IostatD(reading.report))
}

fn is_rule(text: &str) -> bool {
    text.starts_with('-') && text.bytes().all(|byte| matches!(byte, b'-' | b' '))
}

/// Names of columns, whole or cut.
fn is_heading_text(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b' ' | b'%' | b'-'))
}

impl Reading {
    /// `System configuration: lcpu=8 drives=3 paths=6 vdisks=0`
    fn configuration(&mut self, page: &mut Page<'_>, line: Line<'_>) -> bool {
        let Some(rest) = line.trimmed().strip_prefix("System configuration:") else { return false };
        if !self.report.disks.is_empty() || rest.contains("type=") {
            return false;
        }
        page.take();
        for word in rest.split_ascii_whitespace() {
            let read = |value: &str| Some(Read { value: value.parse().ok()?, at: line.at });
            match word.split_once('=') {
                Some(("lcpu", value)) => self.report.lcpu = read(value),
                Some(("drives", value)) => self.report.drives = read(value),
                Some(("paths", value)) => self.report.paths = read(value),
                Some(("vdisks", value)) => self.report.vdisks = read(value),
                _ => {}
            }
        }
        true
    }

    /// The heading of a block or of a group in it.
    fn heading(&mut self, page: &mut Page<'_>, line: Line<'_>) -> bool {
        let text = line.trimmed();
        if is_disk_heading(text) {
            let name = text.split_ascii_whitespace().next().unwrap_or("");
            self.open(name, line.at);
            self.group = Some(Group::Transfer);
        } else if text.starts_with("Disks:") && text.contains("xfers") {
            self.long = true;
            self.in_long_heading = true;
        } else {
            let group = match text.split_ascii_whitespace().next() {
                Some("read:") => Group::Read,
                Some("write:") => Group::Write,
                Some("queue:") => Group::Queue,
                // The heading has three lines, of which a terminal may make six.
                Some(_) if self.in_long_heading && is_heading_text(text) => {
                    page.take();
                    return true;
                }
                _ => return false,
            };
            if self.report.disks.is_empty() {
                return false;
            }
            self.group = Some(group);
        }
        page.take();
        true
    }

    fn open(&mut self, name: &str, at: At) -> &mut DiskSample {
        let count = self.samples.entry(name.to_owned()).or_insert(0);
        *count += 1;
        self.report.disks.push(DiskSample {
            at,
            name: name.to_owned(),
            sample: *count,
            active_percent: None,
            bytes_per_second: None,
            transfers_per_second: None,
            read_bytes_per_second: None,
            written_bytes_per_second: None,
            read: Service::default(),
            write: Service::default(),
            queue: DiskQueue::default(),
        });
        let last = self.report.disks.len() - 1;
        &mut self.report.disks[last]
    }

    /// The line of numbers below a heading.
    fn values(&mut self, page: &mut Page<'_>, line: Line<'_>) -> bool {
        let Some(group) = self.group else { return false };
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        if !words.iter().all(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
            return false;
        }
        self.group = None;
        page.take();
        let Some(disk) = self.report.disks.last_mut() else { return false };
        let fits = match group {
            Group::Transfer => transfer(disk, &words, line.at),
            Group::Read => service(&words, line.at).map(|read| disk.read = read),
            Group::Write => service(&words, line.at).map(|write| disk.write = write),
            Group::Queue => queue(&words, line.at).map(|queue| disk.queue = queue),
        };
        if fits.is_none() {
            page.doubt(line, DOUBT);
        }
        true
    }

    /// A row of the long form: the name and 23 numbers, perhaps a time.
    fn row(&mut self, page: &mut Page<'_>, line: Line<'_>) -> bool {
        if !self.long || self.group.is_some() {
            return false;
        }
        let Some((text, lines)) = long_row(line, page.ahead()) else { return false };
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let at = line.at;
        let [name, numbers @ ..] = &words[..] else { return false };
        self.in_long_heading = false;
        page.take_lines(lines);
        let disk = self.open(name, at);
        let fits = transfer(disk, &numbers[..5], at).is_some();
        let read = service(&numbers[5..11], at).map(|read| disk.read = read).is_some();
        let write = service(&numbers[11..17], at).map(|write| disk.write = write).is_some();
        let queue = queue(&numbers[17..23], at).map(|queue| disk.queue = queue).is_some();
        if !(fits && read && write && queue) {
            page.doubt(line, DOUBT);
        }
        true
    }
}

/// Numbers in a row of the long form.
const LONG: usize = 23;

/// A row, put together from as many lines as a terminal made of it.
fn long_row(line: Line<'_>, mut ahead: Lines<'_>) -> Option<(String, usize)> {
    let starts = line.text.starts_with(|c: char| c.is_ascii_alphabetic());
    let second = line.text.split_ascii_whitespace().nth(1)?;
    if !starts || !second.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut text = String::new();
    for lines in 1..=3 {
        let part = ahead.next()?;
        text.push_str(part.text);
        let count =
            text.split_ascii_whitespace().skip(1).filter(|word| !word.contains(':')).count();
        if count == LONG {
            return Some((text, lines));
        }
        // What was cut off at the end of a line were spaces, if any.
        if part.width > part.text.len() || ahead.peek()?.text.starts_with(' ') {
            text.push(' ');
        }
        if count > LONG {
            return None;
        }
    }
    None
}

fn transfer(disk: &mut DiskSample, words: &[&str], at: At) -> Option<()> {
    let [active, bytes, transfers, read, written] = words else { return None };
    disk.active_percent = Some(amount(active, at)?);
    disk.bytes_per_second = Some(amount(bytes, at)?);
    disk.transfers_per_second = Some(amount(transfers, at)?);
    disk.read_bytes_per_second = Some(amount(read, at)?);
    disk.written_bytes_per_second = Some(amount(written, at)?);
    Some(())
}

fn service(words: &[&str], at: At) -> Option<Service> {
    let [rate, average, min, max, timeouts, fails] = words else { return None };
    Some(Service {
        per_second: Some(amount(rate, at)?),
        average_ms: Some(time(average, at)?),
        min_ms: Some(time(min, at)?),
        max_ms: Some(time(max, at)?),
        timeouts: Some(amount(timeouts, at)?),
        fails: Some(amount(fails, at)?),
    })
}

fn queue(words: &[&str], at: At) -> Option<DiskQueue> {
    let [average, min, max, waiting, in_service, full] = words else { return None };
    Some(DiskQueue {
        average_ms: Some(time(average, at)?),
        min_ms: Some(time(min, at)?),
        max_ms: Some(time(max, at)?),
        waiting: Some(amount(waiting, at)?),
        in_service: Some(amount(in_service, at)?),
        full_per_second: Some(amount(full, at)?),
    })
}

/// A number and the factor of its suffix.
fn scaled(text: &str, factors: &[(char, f64)], at: At) -> Option<Read<f64>> {
    let (digits, factor) = match factors.iter().find(|(suffix, _)| text.ends_with(*suffix)) {
        Some((_, factor)) => (&text[..text.len() - 1], *factor),
        None => (text, 1.0),
    };
    let plain =
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = digits.parse::<f64>().ok().filter(|_| plain)? * factor;
    Some(Read { value, at })
}

fn amount(text: &str, at: At) -> Option<Read<f64>> {
    scaled(text, &[('K', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12)], at)
}

fn time(text: &str, at: At) -> Option<Read<f64>> {
    scaled(text, &[('S', 1e3), ('M', 60e3), ('H', 3600e3)], at)
}
