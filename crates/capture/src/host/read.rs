//! Reads what names a partition and its machine.

use super::{About, Host};
use crate::clean::is_host_name;
use crate::page::{Page, put};
use crate::text::Line;
use crate::{At, Read, Report};

/// What one line of `hostname` or `uname` says, by the flags that the command had.
pub(crate) fn line(program: &str, flags: &[&str], line: Line<'_>) -> Option<About> {
    // Asked of every line behind a command.
    if !matches!(program, "uname" | "hostname") {
        return None;
    }
    let mut about = About::default();
    let (text, at) = (line.trimmed(), line.at);
    let has =
        |letter: char| flags.iter().any(|flag| flag.starts_with('-') && flag.contains(letter));
    let word = !text.is_empty() && !text.contains(' ');
    let letters: String = flags.iter().flat_map(|flag| flag.strip_prefix('-')).collect();
    let several = letters.len() > 1 && letters.bytes().all(|letter| b"nMum".contains(&letter));
    let understood = match program {
        "uname" if several => each(&mut about, text, at, &letters),
        "hostname" => is_host_name(text) && put(&mut about.hostname, text.to_owned(), at),
        "uname" if has('L') => partition(&mut about, text, at),
        "uname" if has('a') => all(&mut about, text, at),
        "uname" if has('n') => is_host_name(text) && put(&mut about.hostname, text.to_owned(), at),
        "uname" if has('M') => word && model(&mut about, text, at),
        "uname" if has('u') => word && serial(&mut about, text, at),
        "uname" if has('m') => word && put(&mut about.machine_id, text.to_owned(), at),
        "uname" if has('s') => word && put(&mut about.system, text.to_owned(), at),
        _ => false,
    };
    understood.then_some(about)
}

/// What several flags at once print on one line, known by its form: `uname -nMu`.
fn each(about: &mut About, text: &str, at: At, letters: &str) -> bool {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let asked = |letter: char| letters.contains(letter);
    let machine_id = |word: &str| word.len() == 12 && word.bytes().all(|b| b.is_ascii_hexdigit());
    words.len() == letters.len()
        && words.into_iter().all(|word| match word.strip_prefix("IBM,") {
            Some(rest) if rest.contains('-') => asked('M') && model(about, word, at),
            Some(_) => asked('u') && serial(about, word, at),
            None if asked('m') && machine_id(word) => {
                put(&mut about.machine_id, word.to_owned(), at)
            }
            None => {
                asked('n') && is_host_name(word) && put(&mut about.hostname, word.to_owned(), at)
            }
        })
}

/// `5 payroll`
fn partition(about: &mut About, text: &str, at: At) -> bool {
    let Some((id, name)) = text.split_once(' ') else { return false };
    let Ok(id) = id.parse() else { return false };
    put(&mut about.partition_id, id, at) && put(&mut about.partition_name, name.to_owned(), at)
}

/// `AIX payroll 3 7 00F78A1B4C00`; Linux prints more words and another order.
fn all(about: &mut About, text: &str, at: At) -> bool {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words[..] {
        ["AIX", node, release, version, machine] if is_host_name(node) => {
            put(&mut about.system, "AIX".to_owned(), at)
                && put(&mut about.hostname, node.to_owned(), at)
                && put(&mut about.version, format!("{version}.{release}"), at)
                && put(&mut about.machine_id, machine.to_owned(), at)
        }
        ["Linux", node, kernel, ..] if is_host_name(node) => {
            put(&mut about.system, "Linux".to_owned(), at)
                && put(&mut about.hostname, node.to_owned(), at)
                && put(&mut about.version, kernel.to_owned(), at)
        }
        _ => false,
    }
}

/// `IBM,9009-42A`
fn model(about: &mut About, text: &str, at: At) -> bool {
    put(&mut about.machine_model, text.trim_start_matches("IBM,").to_owned(), at)
}

/// `IBM,0278A1B2C`: the plant's two digits stand before the serial number.
fn serial(about: &mut About, text: &str, at: At) -> bool {
    let text = text.trim_start_matches("IBM,");
    let serial = if text.len() == 9 { &text[2..] } else { text };
    put(&mut about.machine_serial, serial.to_owned(), at)
}

/// `02:15PM   up 41 days,  3:22,  2 users,  load average: 1.23, 1.10, 1.05`
pub(crate) fn is_uptime(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains(" load average:")
        && text.split_ascii_whitespace().nth(1) == Some("up")
}

pub(crate) fn uptime(page: &mut Page<'_>) -> Option<Report> {
    let line = page.peek()?;
    let (_, since) = line.trimmed().split_once(" up ")?;
    let mut seconds = 0_u64;
    for part in since.split(',').map(str::trim).take_while(|part| !part.contains("user")) {
        let (count, unit) = part.split_once(' ').unwrap_or((part, ""));
        let each = match unit.trim_end_matches('s') {
            "day" => 86_400,
            "hr" | "hour" => 3600,
            "min" | "minute" => 60,
            "sec" | "second" => 1,
            _ => 0,
        };
        seconds = seconds.checked_add(match count.split_once(':') {
            Some((hours, minutes)) => {
                let minutes: u64 = minutes.parse().ok().filter(|minutes| *minutes < 60)?;
                hours.parse::<u64>().ok()?.checked_mul(3600)? + minutes * 60
            }
            None => count.parse::<u64>().ok().filter(|_| each > 0)?.checked_mul(each)?,
        })?;
    }
    let about =
        About { up_seconds: Some(Read { value: seconds, at: line.at }), ..About::default() };
    page.take();
    Some(Report::Host(Host { head: page.close(), about }))
}

/// Headings of `prtconf` behind what is looked for.
const PASSED: [&str; 5] = [
    "Network Information",
    "Paging Space Information",
    "Volume Groups Information",
    "INSTALLED RESOURCE LIST",
    "The following resources are installed",
];

pub(crate) fn prtconf(page: &mut Page<'_>) -> Option<Report> {
    let mut about = About::default();
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if text.starts_with("System Model:") && about.machine_model.is_some() {
            break;
        }
        let known = text
            .split_once(':')
            .is_some_and(|(key, value)| field(page, &mut about, key.trim(), value.trim(), line.at));
        let listed = PASSED.iter().any(|start| text.starts_with(start))
            || text.starts_with(['*', '+', '-'])
            || text.contains(": ")
            || text.ends_with(':');
        if known || (listed && !crate::recognise::is_boundary(line, page.ahead())) {
            page.take();
        } else if !page.goes_on(line) {
            break;
        }
    }
    if about == About::default() {
        return None;
    }
    if let Some(name) = about.hostname.clone().or_else(|| about.partition_name.clone())
        && !page.has_partition()
    {
        page.partition_is(&name.value, name.at);
    }
    Some(Report::Host(Host { head: page.close(), about }))
}

/// Whether the line says what is looked for.
fn field(page: &mut Page<'_>, about: &mut About, key: &str, value: &str, at: At) -> bool {
    if value.is_empty() {
        return false;
    }
    let masked = page.mask(key, value, at);
    let megabytes = |place: &mut Option<Read<u64>>| {
        let number = value.split(' ').next().and_then(|word| word.parse().ok());
        number.is_some_and(|number| put(place, number, at))
    };
    match key {
        "System Model" => model(about, value, at),
        "Machine Serial Number" => masked || put(&mut about.machine_serial, value.to_owned(), at),
        "Number Of Processors" => megabytes(&mut about.processors),
        "Processor Clock Speed" => megabytes(&mut about.clock_mhz),
        "Memory Size" => megabytes(&mut about.memory_mb),
        "LPAR Info" => partition(about, value, at),
        "Platform Firmware level" | "Firmware Version" => {
            let firmware = value.trim_start_matches("IBM,").to_owned();
            about.firmware.get_or_insert(Read { value: firmware, at });
            true
        }
        "Host Name" => put(&mut about.hostname, value.to_owned(), at),
        _ => false,
    }
}
