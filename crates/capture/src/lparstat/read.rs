//! Reads `lparstat`, with and without `-i` and `-H`.

use super::{CpuSample, HypervisorCall, Info, Lparstat};
use crate::page::{Page, put};
use crate::prompt;
use crate::recognise::words;
use crate::text::{Line, decimal};
use crate::{At, Head, Read, Report};

const DOUBT: &str = "the value is not understood";

/// A column of the list of intervals.
type Column = fn(&mut CpuSample) -> Option<&mut Option<Read<f64>>>;

struct Reading {
    report: Lparstat,
    columns: Vec<Column>,
    calls: bool,
}

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut reading = Reading {
        report: Lparstat::empty(Head::new(page.first())),
        columns: Vec::new(),
        calls: false,
    };
    let mut any = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        let again =
            any && (text.starts_with("System configuration:") || text.starts_with("Node Name"));
        // A configuration that changes while the command runs is printed again, between its rows.
        let ours = again
            && text.starts_with("System configuration:")
            && page.ahead().nth(1).is_some_and(|next| !next.is_blank());
        if again && !ours && reading.begins_anew(text) {
            break;
        }
        let done = reading.configuration(page, line)
            || reading.heading(page, line)
            || reading.sample(page, line)
            || reading.call(page, line)
            || reading.info(page, line)
            || (text.bytes().all(|byte| matches!(byte, b'-' | b' ')) && page.take().is_some());
        any |= done;
        if !done && !page.goes_on(line) {
            break;
        }
    }
    let report = &mut reading.report;
    let nothing =
        report.samples.is_empty() && report.info.is_empty() && report.hypervisor.is_empty();
    if nothing && report.kind.is_none() {
        return None;
    }
    if nothing {
        page.incomplete("no numbers follow the configuration");
    }
    if let Some(name) = report.info.iter().find(|info| &*info.name == "Node Name") {
        page.partition_is(&name.value, name.at);
    }
    reading.report.head = page.close();
    Some(Report::Lparstat(Box::new(reading.report)))
}

impl Reading {
    /// Whether the line is the first of another run.
    fn begins_anew(&self, text: &str) -> bool {
        let report = &self.report;
        match text.starts_with("Node Name") {
            true => !report.info.is_empty() || !report.samples.is_empty(),
            false => {
                !report.samples.is_empty()
                    || !report.info.is_empty()
                    || !report.hypervisor.is_empty()
            }
        }
    }

    /// `System configuration: type=Shared mode=Uncapped smt=8 lcpu=16 mem=32768MB psize=24 ent=2.00`
    fn configuration(&mut self, page: &mut Page<'_>, line: Line<'_>) -> bool {
        let Some(rest) = line.trimmed().strip_prefix("System configuration:") else { return false };
        page.take();
        let (report, at) = (&mut self.report, line.at);
        let mut fits = true;
        for word in rest.split_ascii_whitespace() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let count = |text: &str| text.parse().ok().map(|value| Read { value, at });
            let text = || Some(Read { value: value.to_owned(), at });
            match key {
                "type" => report.kind = text(),
                "mode" => report.mode = text(),
                "smt" => report.smt = text(),
                "lcpu" => report.lcpu = count(value),
                "mem" => report.memory_mb = count(value.trim_end_matches("MB")),
                "psize" => report.pool_size = count(value),
                "ent" => report.entitlement = value.parse().ok().map(|value| Read { value, at }),
                _ => fits = false,
            }
        }
        if !fits {
            page.doubt(line, "a part of the configuration is not known");
        }
        true
    }

    /// The names of the columns; levels and modes print different ones.
    fn heading(&mut self, page: &mut Page<'_>, line: Line<'_>) -> bool {
        let text = line.trimmed();
        if words(text, &["%user", "%sys"]) {
            self.columns = text.split_ascii_whitespace().map(column).collect();
            self.calls = false;
        } else if text.starts_with("Detailed information on Hypervisor Calls")
            || words(text, &["Hypervisor", "Number"])
        {
            self.calls = true;
        } else if !(self.calls && words(text, &["Call", "Calls"])) {
            return false;
        }
        page.take();
        true
    }

    fn sample(&mut self, page: &mut Page<'_>, line: Line<'_>) -> bool {
        if self.columns.is_empty() || self.calls {
            return false;
        }
        let mut sample = CpuSample::default();
        let mut count = 0;
        for word in line.text.split_ascii_whitespace() {
            let Some(value) = decimal(word) else {
                if count == 0 || !is_clock(word) {
                    return false;
                }
                count += 1;
                continue;
            };
            if let Some(place) = self.columns.get(count).and_then(|column| column(&mut sample)) {
                *place = Some(Read { value, at: line.at });
            }
            count += 1;
        }
        page.take();
        match count == self.columns.len() {
            true => self.report.samples.push(sample),
            false => page.doubt(line, "not as many numbers as columns"),
        }
        true
    }

    /// `send_crq   1234   0.0   1.2   700   15000`
    fn call(&mut self, page: &mut Page<'_>, line: Line<'_>) -> bool {
        if !self.calls {
            return false;
        }
        let fields: Vec<&str> = line.text.split_ascii_whitespace().collect();
        let Some(call) = hypervisor_call(&fields, line.at) else { return false };
        page.take();
        self.report.hypervisor.push(call);
        true
    }

    /// `Node Name                                  : vios1`
    fn info(&mut self, page: &mut Page<'_>, line: Line<'_>) -> bool {
        let Some((name, value)) = line.trimmed().split_once(':') else { return false };
        let (name, value) = (name.trim(), value.trim());
        // `(0) root @ vios1: /` looks like a row.
        if prompt::prompt(line.text).is_some() {
            return false;
        }
        // Behind a filter the list begins anywhere.
        let asked = page.filter.is_some() && self.columns.is_empty() && !self.calls;
        let report_empty = self.report.info.is_empty();
        let listed = !report_empty || name == "Node Name" || asked;
        // A long name leaves no room before the colon.
        let spaced = line.text.contains(" : ") || line.text.ends_with(" :");
        if !listed || !(spaced || (!report_empty && line.text.contains(": "))) {
            return false;
        }
        page.take();
        let at = line.at;
        self.report.info.push(Info { at, name: name.into(), value: value.to_owned() });
        if !self.named(name, value, at) {
            page.doubt(line, DOUBT);
        }
        true
    }

    fn named(&mut self, name: &str, value: &str, at: At) -> bool {
        let report = &mut self.report;
        let count = |place: &mut Option<Read<u64>>| match value {
            "-" => true,
            _ => value.trim_end_matches(" MB").parse().is_ok_and(|value| put(place, value, at)),
        };
        match name {
            "Type" => put(&mut report.kind, value.to_owned(), at),
            "Mode" => put(&mut report.mode, value.to_owned(), at),
            "Partition Name" => put(&mut report.partition_name, value.to_owned(), at),
            "Partition Number" => count(&mut report.partition_number),
            "Entitled Capacity" => {
                decimal(value).is_some_and(|value| put(&mut report.entitlement, value, at))
            }
            "Online Virtual CPUs" => count(&mut report.virtual_cpus),
            "Maximum Virtual CPUs" => count(&mut report.virtual_cpus_max),
            "Online Memory" => count(&mut report.memory_mb),
            "Variable Capacity Weight" => count(&mut report.weight),
            "Active Physical CPUs in system" | "Node Name" => true,
            "Shared Physical CPUs in system" | "Active CPUs in Pool" => true,
            _ => true,
        }
    }
}

/// `16:00:30`, which `-t` puts into a column of its own.
fn is_clock(word: &str) -> bool {
    word.len() == 8
        && word.bytes().enumerate().all(|(at, byte)| match at {
            2 | 5 => byte == b':',
            _ => byte.is_ascii_digit(),
        })
}

fn hypervisor_call(fields: &[&str], at: At) -> Option<HypervisorCall> {
    let [name, calls, total, share, average, max] = fields else { return None };
    Some(HypervisorCall {
        at,
        name: (*name).to_owned(),
        calls: calls.parse().ok()?,
        total_percent: decimal(total)?,
        hypervisor_percent: decimal(share)?,
        average_ns: average.parse().ok()?,
        max_ns: max.parse().ok()?,
    })
}

fn column(name: &str) -> Column {
    match name {
        "%user" => |sample| Some(&mut sample.user),
        "%sys" => |sample| Some(&mut sample.system),
        "%wait" => |sample| Some(&mut sample.wait),
        "%idle" => |sample| Some(&mut sample.idle),
        "physc" => |sample| Some(&mut sample.physical),
        "%entc" => |sample| Some(&mut sample.entitlement_percent),
        "lbusy" => |sample| Some(&mut sample.logical_busy),
        "app" => |sample| Some(&mut sample.pool_free),
        "vcsw" => |sample| Some(&mut sample.context_switches),
        "phint" => |sample| Some(&mut sample.phantom_interrupts),
        _ => |_| None,
    }
}
