//! A running Trunkline server, read by its statistics: a source beside the texts of PowerVM's commands.
//!
//! The caller asks the server; what it got becomes a report like any other, with a line for each value, so that
//! findings can show what they rest on.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{At, Captures, FileInfo, Head, Read, Report, Taken};

/// One reading of a server, as the caller got it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The host that the server runs on.
    pub host: String,
    /// Seconds since the first reading, by a clock that nobody sets.
    pub seconds: f64,
    /// Its adapters.
    pub adapters: Vec<AdapterReading>,
}

/// One adapter in a reading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AdapterReading {
    /// Its name.
    pub name: String,
    /// The volume behind it; empty for an adapter of several.
    pub volume: String,
    /// Channels that it has.
    pub channels: u32,
    /// The most that it may have.
    pub channels_max: u32,
    /// Who sets that: `data plane`.
    pub limited_by: String,
    /// What lifts it, as a sentence without its end.
    pub remedy: String,
    /// The limits of its volume, by their attributes.
    pub limits: BTreeMap<String, String>,
    /// Its command elements; nothing where it has none, as a block adapter.
    pub elements: Option<Elements<u64>>,
    /// The port that it is mapped to.
    pub port: Option<OnPort<u64>>,
    /// Its counters, by their names.
    pub counters: BTreeMap<String, u64>,
    /// Commands that its device completed, and the nanoseconds that they took together.
    pub device: Option<(u64, u64)>,
    /// Nanoseconds that each channel which serves it has worked, by its number.
    pub busy_ns: BTreeMap<u32, u64>,
}

/// The command elements of an adapter, or of a port for all its adapters, each value with its line once it is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Elements<T> {
    /// `num_cmd_elems` as it is in force.
    pub now: T,
    /// The most that may be set.
    pub most: T,
    /// The most commands that were active at once.
    pub active_max: T,
    /// The most commands that waited for an element at once.
    pub pending_max: T,
}

/// A port, as one of its adapters sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OnPort<T> {
    /// Its name.
    pub name: String,
    /// Its command elements, for all its adapters together.
    pub elements: Elements<T>,
    /// The adapter that has most beyond its part, while others wait.
    pub held_up_by: Option<String>,
}

/// The report of one reading.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerStats {
    /// Where it came from; the partition is the host that the server runs on.
    pub head: Head,
    /// Seconds since the first reading.
    pub seconds: Read<f64>,
    /// Its adapters, in the order of the reading.
    pub adapters: Vec<Served>,
}

/// One adapter of a running server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Served {
    /// The line of its name.
    pub at: At,
    /// Its name.
    pub name: String,
    /// The volume behind it; empty for an adapter of several.
    pub volume: String,
    /// Channels that it has.
    pub channels: Read<u32>,
    /// The most that it may have.
    pub channels_max: Read<u32>,
    /// Who sets that.
    pub limited_by: String,
    /// What lifts it.
    pub remedy: String,
    /// The limits of its volume, by their attributes.
    pub limits: BTreeMap<String, Read<String>>,
    /// Its command elements.
    pub elements: Option<Elements<Read<u64>>>,
    /// The port that it is mapped to.
    pub port: Option<OnPort<Read<u64>>>,
    /// Its counters.
    pub counters: BTreeMap<String, Read<u64>>,
    /// Commands that its device completed.
    pub device_commands: Option<Read<u64>>,
    /// The nanoseconds that they took together.
    pub device_ns: Option<Read<u64>>,
    /// Nanoseconds that each channel which serves it has worked, by its number.
    pub busy_ns: BTreeMap<u32, Read<u64>>,
}

/// The lines of a reading while they are written.
struct Lines {
    file: u32,
    text: Vec<String>,
}

impl Lines {
    fn elements(&mut self, of: &str, elements: Elements<u64>) -> Elements<Read<u64>> {
        Elements {
            now: self.put(&format!("{of} num_cmd_elems"), elements.now),
            most: self.put(&format!("{of} num_cmd_elems at most"), elements.most),
            active_max: self.put(&format!("{of} high-water mark of active"), elements.active_max),
            pending_max: self
                .put(&format!("{of} high-water mark of pending"), elements.pending_max),
        }
    }

    fn put<T: ToString>(&mut self, name: &str, value: T) -> Read<T> {
        self.text.push(format!("{name} {}", value.to_string()));
        let line = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        Read { value, at: At { file: self.file, line } }
    }
}

impl Captures {
    /// Takes a reading of a running Trunkline server in, under a name; gives the lines that stand for it.
    pub fn take_server(
        &mut self,
        name: &str,
        taken: Option<Taken>,
        reading: &Reading,
    ) -> Vec<String> {
        let file = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        let mut lines = Lines { file, text: Vec::new() };
        let host = lines.put("host", reading.host.clone());
        let seconds = lines.put("seconds", reading.seconds);
        let adapters = reading.adapters.iter().map(|adapter| served(adapter, &mut lines)).collect();
        let last = u32::try_from(lines.text.len()).unwrap_or(u32::MAX);
        self.reports.push(Report::Server(Box::new(ServerStats {
            head: Head {
                first: host.at,
                last,
                command: None,
                partition: Some(host),
                device: None,
                taken: taken.clone(),
                incomplete: None,
                unread: Vec::new(),
                masked: Vec::new(),
            },
            seconds,
            adapters,
        })));
        let bytes = lines.text.iter().map(|line| line.len() + 1).sum::<usize>();
        self.files.push(FileInfo {
            name: name.to_owned(),
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            lines: last,
            taken,
            notes: Vec::new(),
            left_out_from: None,
        });
        lines.text
    }
}

fn served(adapter: &AdapterReading, lines: &mut Lines) -> Served {
    let name = lines.put("adapter", adapter.name.clone());
    let own = |text: &str| format!("{} {text}", adapter.name);
    let channels = lines.put(&own("channels"), adapter.channels);
    let channels_max = lines.put(&own("channels_max"), adapter.channels_max);
    let mut limits = BTreeMap::new();
    for (limit, value) in &adapter.limits {
        let of = format!("volume {} {limit}", adapter.volume);
        limits.insert(limit.clone(), lines.put(&of, value.clone()));
    }
    let elements = adapter.elements.map(|elements| lines.elements(&adapter.name, elements));
    let port = adapter.port.as_ref().map(|port| OnPort {
        name: port.name.clone(),
        elements: lines.elements(&port.name, port.elements),
        held_up_by: port.held_up_by.clone(),
    });
    let mut counters = BTreeMap::new();
    for (counter, value) in &adapter.counters {
        counters.insert(counter.clone(), lines.put(&own(counter), *value));
    }
    let device_commands =
        adapter.device.map(|(count, _)| lines.put(&own("device commands"), count));
    let device_ns = adapter.device.map(|(_, sum)| lines.put(&own("device nanoseconds"), sum));
    let mut busy_ns = BTreeMap::new();
    for (channel, value) in &adapter.busy_ns {
        busy_ns.insert(*channel, lines.put(&format!("channel {channel} busy_ns"), *value));
    }
    Served {
        at: name.at,
        name: name.value,
        volume: adapter.volume.clone(),
        channels,
        channels_max,
        limited_by: adapter.limited_by.clone(),
        remedy: adapter.remedy.clone(),
        limits,
        elements,
        port,
        counters,
        device_commands,
        device_ns,
        busy_ns,
    }
}
