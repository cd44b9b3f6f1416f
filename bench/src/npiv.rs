//! Virtual Fibre Channel: native I/O, one queue and many, in the tables of PowerVM's article on NPIV multi-queue.
//!
//! *Single* is a client with one queue, and so on one channel, as `limit_intr` makes it. *Multi* has as many queues and channels as there are CPUs for the server, and at least
//! [`QUEUES_MIN`] queues. Both have the same number of requests outstanding in all, so that only the queues differ. *Native* is fio on
//! the same file.
//!
//! Beside these, the null volume with a client that sleeps, against qemu-storage-daemon: what a wake-up costs decides there.
//!
//! With one CPU for the server, channels share it and throughput cannot grow with their number: then the cost of an I/O is what can be compared, and
//! [`note`] says so.

use std::fmt::Write as _;

use partition::load::{LoadOptions, ScsiLun};
use protocol::message::{CacheMode, VolumeKind};

use crate::cases::PEER;
use crate::chart::{Chart, Line};
use crate::figure::{Figure, Series, short};
use crate::native::Fio;
use crate::ours::{self, Plan, Served};
use crate::peer::{Node, Settings};
use crate::report::Played;
use crate::stage::{self, Contestant, Seat, Settled, Stage, VOLUME_BYTES};
use anyhow::Result;

/// Queues of *multi* on a small machine.
const QUEUES_MIN: u16 = 4;
/// OLTP: two reads for each write and some, of a database's page.
const OLTP: (u8, u32) = (70, 8192);

/// A case of this module.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Npiv {
    /// Native, single and multi on a disk.
    Disk { read_percent: u8, outstanding: u16 },
    /// So many clients of one port at once, each with its adapter.
    Clients { count: u16 },
    /// Single against multi without a disk, with this depth in each queue.
    Cost { depth: u16 },
    /// A SCSI disk against a block device, without a disk.
    Scsi { read_percent: u8 },
    /// Both against the peer, without a disk, with a client that sleeps.
    Peer { depth: u16 },
}

/// All cases: name, title, kind.
pub(crate) fn cases() -> Vec<(String, String, Npiv)> {
    let disk = |read_percent, outstanding| Npiv::Disk { read_percent, outstanding };
    let mut cases = vec![
        ("npiv-throughput".into(), "70 % reads of 4 KiB, 128 outstanding".into(), disk(70, 128)),
        ("npiv-write".into(), "4 KiB random writes, 128 outstanding".into(), disk(0, 128)),
        ("npiv-read".into(), "4 KiB random reads, 128 outstanding".into(), disk(100, 128)),
    ];
    cases.extend([1, 4, 16, 64, 256].map(|outstanding| {
        let title = format!("70 % reads of 4 KiB, {outstanding} outstanding");
        (format!("npiv-response-{outstanding}"), title, disk(70, outstanding))
    }));
    cases.extend([1, 2, 4].map(|count| {
        let title = format!("OLTP (70 % reads of 8 KiB, 32 outstanding each), {count} clients");
        (format!("npiv-oltp-{count}"), title, Npiv::Clients { count })
    }));
    cases.extend((0..=8).map(|power| 1u16 << power).map(|depth| {
        let title = format!("null volume, depth {depth} in each queue");
        (format!("npiv-cost-{depth}"), title, Npiv::Cost { depth })
    }));
    for (word, read_percent) in [("read", 100), ("write", 0)] {
        let title = format!("null volume, 4 KiB {word}s, depth 32: SCSI against block");
        cases.push((format!("npiv-scsi-{word}"), title, Npiv::Scsi { read_percent }));
    }
    cases.extend([1, 32, 128].map(|depth| {
        let title = format!("null volume, sleeping client, depth {depth}: against the peer");
        (format!("npiv-peer-{depth}"), title, Npiv::Peer { depth })
    }));
    cases
}

/// The tables of the article and one more, each over the cases whose names begin like that.
pub(crate) const TABLES: &[(&str, &str, &str, &[Figure])] = &[
    ("Throughput", "npiv-throughput", "", &[Figure::Iops, Figure::LatencyUs]),
    ("4 KiB random write", "npiv-write", "", &[Figure::Iops, Figure::LatencyUs]),
    ("4 KiB random read", "npiv-read", "", &[Figure::Iops, Figure::LatencyUs]),
    (
        "Response time over throughput",
        "npiv-response-",
        "outstanding",
        &[Figure::Iops, Figure::LatencyUs],
    ),
    ("OLTP", "npiv-oltp-", "clients", &[Figure::Iops, Figure::LatencyUs, Figure::ServerCpuUs]),
    (
        "Server CPU per I/O over queue depth",
        "npiv-cost-",
        "depth",
        &[Figure::ServerCpuUs, Figure::Iops],
    ),
    (
        "Null volume with a sleeping client, against qemu-storage-daemon",
        "npiv-peer-",
        "depth",
        &[Figure::Iops, Figure::ServerCpuUs],
    ),
];

/// What a reader has to know of this machine.
pub(crate) fn note(settled: &Settled) -> String {
    let (servers, clients) = (settled.server_cpus.len(), settled.client_cpus.len());
    if servers == 1 {
        "one CPU for the server, one for the clients: channels share it, so no gain in throughput can be seen here; \
         compare the cost of an I/O (CPU time; `cargo xtask cost` counts the instructions)"
            .into()
    } else {
        format!("{servers} CPUs for the server, a channel on each, and {clients} for the clients")
    }
}

/// The article's tables of the cases that were run, as Markdown: a row for each case, medians.
pub(crate) fn tables(cases: &[Played]) -> String {
    let mut text = String::new();
    for (title, prefix, head, figures) in TABLES {
        let Some((rows, labels)) = rows(cases, prefix) else { continue };
        // Writing to a string cannot fail.
        let _ = table(&mut text, title, head, &labels, figures, &rows, prefix);
    }
    text
}

/// The cases of a table that were run, if any were, and what its series are called.
fn rows<'a>(cases: &'a [Played], prefix: &str) -> Option<(Vec<&'a Played>, Vec<&'a str>)> {
    let rows: Vec<&Played> = cases.iter().filter(|case| case.name.starts_with(prefix)).collect();
    let labels = rows.first()?.series.iter().map(|series| series.label.as_str()).collect();
    Some((rows, labels))
}

fn table(
    text: &mut String,
    title: &str,
    head: &str,
    labels: &[&str],
    figures: &[Figure],
    rows: &[&Played],
    prefix: &str,
) -> std::fmt::Result {
    write!(text, "**{title}**\n\n| {head} |")?;
    let columns = || labels.iter().flat_map(|label| figures.iter().map(move |f| (*label, *f)));
    columns().try_for_each(|(label, figure)| write!(text, " {label}: {} |", figure.title()))?;
    writeln!(text, "\n|---|{}", "---|".repeat(columns().count()))?;
    for case in rows {
        write!(text, "| {} |", &case.name[prefix.len()..])?;
        for (label, figure) in columns() {
            let cell = median(case, label, figure);
            write!(text, " {} |", cell.map_or("–".to_owned(), short))?;
        }
        writeln!(text)?;
    }
    writeln!(text)
}

/// A plot beside the document.
#[derive(Debug)]
pub(crate) struct Plot {
    /// Name of its file.
    pub(crate) file: String,
    pub(crate) svg: String,
}

/// The tables with their plots and with what limits each curve. `cpus`: how many the servers have, and the clients.
pub(crate) fn section(cases: &[Played], cpus: (usize, usize), folder: &str) -> (String, Vec<Plot>) {
    let (mut text, mut plots) = (String::new(), Vec::new());
    for (title, prefix, head, figures) in TABLES {
        let Some((rows, labels)) = rows(cases, prefix) else { continue };
        // Writing to a string cannot fail.
        let _ = table(&mut text, title, head, &labels, figures, &rows, prefix);
        for label in &labels {
            let _ =
                writeln!(text, "- {label} is limited by {}", limits(label, &rows, prefix, cpus));
        }
        let file = format!("{}.svg", prefix.trim_end_matches('-'));
        let _ = writeln!(text, "\n![{title}]({folder}/{file})\n");
        plots.push(Plot { file, svg: plot(title, prefix, head, &labels, &rows).svg() });
    }
    (text, plots)
}

fn series<'a>(case: &'a Played, label: &str) -> Option<&'a Series> {
    case.series.iter().find(|series| series.label == label)
}

fn median(case: &Played, label: &str, figure: Figure) -> Option<f64> {
    Some(series(case, label)?.spread(figure)?.median)
}

fn plot(title: &str, prefix: &str, head: &str, labels: &[&str], rows: &[&Played]) -> Chart {
    // Response time is drawn over throughput, everything else over what the rows are of.
    let (across, up) = match prefix {
        "npiv-response-" => (Figure::Iops.title(), Figure::LatencyUs),
        "npiv-cost-" => (head, Figure::ServerCpuUs),
        _ => (head, Figure::Iops),
    };
    let point = |case: &Played, label: &str| {
        let number = case.name[prefix.len()..].parse().unwrap_or(0.0);
        let x = if across == head { number } else { median(case, label, Figure::Iops)? };
        Some((x, median(case, label, up)?))
    };
    let line = |label: &&str| Line {
        label: (*label).to_owned(),
        points: rows.iter().filter_map(|case| point(case, label)).collect(),
    };
    Chart {
        title: match rows {
            [one] => format!("{title}: {}", one.title),
            _ => title.to_owned(),
        },
        across: across.to_owned(),
        up: up.title().to_owned(),
        doubling: across == head,
        lines: labels.iter().map(line).collect(),
    }
}

/// So much more with the next row: it was not the top.
const RISES: f64 = 1.15;
/// From this share on, a CPU is full and a disk reached.
const FULL: f64 = 0.9;

/// What limits a contestant, row by row, neighbours with the same limit together.
fn limits(label: &str, rows: &[&Played], prefix: &str, cpus: (usize, usize)) -> String {
    let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
    for (at, case) in rows.iter().enumerate() {
        // Of clients each brings its own requests; more of anything else is more outstanding.
        let next = rows.get(at + 1).filter(|_| prefix != "npiv-oltp-");
        let next = next.and_then(|next| median(next, label, Figure::Iops));
        let limit = limit(case, label, next, cpus);
        let row = &case.name[prefix.len()..];
        match told.last_mut() {
            Some((same, places)) if *same == limit => places.push(row),
            _ => told.push((limit, vec![row])),
        }
    }
    let part = |(limit, places): &(&str, Vec<&str>)| match (places.first(), places.last()) {
        (Some(first), Some(last)) if first != last => format!("{limit} ({first} to {last})"),
        (Some(only), _) if !only.is_empty() => format!("{limit} ({only})"),
        _ => (*limit).to_owned(),
    };
    told.iter().map(part).collect::<Vec<_>>().join(", ")
}

fn limit(
    case: &Played,
    label: &str,
    next: Option<f64>,
    (servers, clients): (usize, usize),
) -> &'static str {
    let Some(iops) = median(case, label, Figure::Iops) else { return "nothing that was measured" };
    if next.is_some_and(|next| next > iops * RISES) {
        return "the number of requests outstanding";
    }
    let cores = |figure| median(case, label, figure).map_or(0.0, |us| us * iops / 1e6);
    let (server, client) = (cores(Figure::ServerCpuUs), cores(Figure::ClientCpuUs));
    let on_disk = case.series.iter().any(|series| series.label == NATIVE);
    if label == NATIVE {
        let full = client >= FULL * servers as f64;
        return if full { "the CPUs that fio has" } else { "the disk" };
    }
    // One channel runs on one CPU; with several CPUs only these have a channel on each.
    let spread = label.starts_with("multi") && (on_disk || label != "multi");
    if server >= FULL * if spread { servers as f64 } else { 1.0 } {
        return "the CPU of its channels";
    }
    if client >= FULL * clients as f64 {
        return "the client's CPU";
    }
    let native = median(case, NATIVE, Figure::Iops);
    match native {
        Some(native) if iops >= FULL * native => "the disk",
        _ => "wake-ups between client and server",
    }
}

/// fio, without a server.
const NATIVE: &str = "native";

/// Runs a case.
pub(crate) fn run(stage: &mut Stage<'_>, case: &Npiv) -> Result<Vec<Series>> {
    match *case {
        Npiv::Disk { read_percent, outstanding } => disk(stage, read_percent, outstanding),
        Npiv::Clients { count } => clients(stage, count),
        Npiv::Cost { depth } => cost(stage, depth),
        Npiv::Scsi { read_percent } => scsi(stage, read_percent),
        Npiv::Peer { depth } => peer(stage, depth),
    }
}

fn plan(volume: VolumeKind) -> Plan {
    Plan { served: Served::Scsi, ..Plan::null() }.on(volume)
}

fn multi(settled: &Settled, plan: &Plan) -> Plan {
    let channels = settled.server_cpus.len() as u32;
    Plan { queues: multi_queues(settled), channels, ..plan.clone() }
}

fn multi_queues(settled: &Settled) -> u16 {
    QUEUES_MIN.max(settled.server_cpus.len() as u16)
}

/// A load over so many queues, with all requests outstanding divided among them.
fn over(settled: &Settled, queues: u16, outstanding: u16) -> LoadOptions {
    let queues = queues.min(outstanding);
    let mut load = LoadOptions {
        queues,
        depth: outstanding / queues,
        threads: Some((settled.client_cpus.len() as u16).min(queues)),
        cpus: settled.client_cpus.clone(),
        ..settled.load()
    };
    load.scsi = Some(ScsiLun { target: 0, lun: 0 });
    load
}

fn disk(stage: &mut Stage<'_>, read_percent: u8, outstanding: u16) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let path = stage::disk_file(settled)?;
    let plan = plan(ours::file(&path, CacheMode::Direct));
    // One data plane may have the file, so both are adapters of it; the one that has no client costs nothing.
    let mut seats = stage.ours_for(&multi(settled, &plan), 2)?;
    let (many, single) = (seats.remove(1), seats.remove(0));
    let load = |queues| LoadOptions { read_percent, ..over(settled, queues, outstanding) };
    let fio = Fio {
        file: path,
        read_percent,
        block_bytes: 4096,
        depth: outstanding,
        cpus: settled.server_cpus.clone(),
    };
    stage.play(&[
        Contestant::native(NATIVE, fio),
        Contestant::driven("single", &single, load(1)),
        Contestant::driven("multi", &many, load(multi_queues(settled))),
    ])
}

fn clients(stage: &mut Stage<'_>, count: u16) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let path = stage::disk_file(settled)?;
    let plan = plan(ours::file(&path, CacheMode::Direct));
    let mut single = stage.ours_for(&multi(settled, &plan), 2 * usize::from(count))?;
    let many = single.split_off(usize::from(count));
    let (read_percent, block_bytes) = OLTP;
    let load = |queues| LoadOptions { read_percent, block_bytes, ..over(settled, queues, 32) };
    let fio = Fio {
        file: path,
        read_percent,
        block_bytes,
        depth: 32 * count,
        cpus: settled.server_cpus.clone(),
    };
    stage.play(&[
        Contestant::native(NATIVE, fio),
        Contestant::crowd("single", &single, load(1)),
        Contestant::crowd("multi", &many, load(multi_queues(settled))),
    ])
}

fn cost(stage: &mut Stage<'_>, depth: u16) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let plan = plan(ours::NULL);
    let queues = multi_queues(settled);
    let single = stage.ours(&plan)?;
    let one_channel = stage.ours(&Plan { queues, ..plan.clone() })?;
    let mut contestants = vec![
        Contestant::driven("single", &single, over(settled, 1, depth)),
        Contestant::driven("multi", &one_channel, over(settled, queues, depth * queues)),
    ];
    if settled.server_cpus.len() > 1 {
        let spread: Seat = stage.ours(&multi(settled, &plan))?;
        let load = over(settled, queues, depth * queues);
        contestants.push(Contestant::driven("multi, a channel on each CPU", &spread, load));
    }
    stage.play(&contestants)
}

fn scsi(stage: &mut Stage<'_>, read_percent: u8) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let scsi = stage.ours(&plan(ours::NULL))?;
    let block = stage.ours(&Plan::null())?;
    let load = LoadOptions { read_percent, ..over(settled, 1, 32) };
    let mut block_load = load.clone();
    block_load.scsi = None;
    stage.play(&[
        Contestant::driven("block", &block, block_load),
        Contestant::driven("scsi", &scsi, load),
    ])
}

/// The peer serves block devices only. *auto* is ours with `poll_us_max = auto`.
fn peer(stage: &mut Stage<'_>, depth: u16) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let measuring = |plan: Plan| Plan { measures_sleep: true, ..plan };
    let block = stage.ours(&Plan::null())?;
    let learnt = stage.ours(&measuring(Plan::null()))?;
    let scsi = stage.ours(&measuring(plan(ours::NULL)))?;
    let scsi_load = over(settled, 1, depth);
    let load = LoadOptions { scsi: None, ..scsi_load.clone() };
    let peer = stage.peer(&Node::Null { bytes: VOLUME_BYTES }, Settings::PLAIN)?;
    stage.play(&[
        Contestant::driven("block", &block, load.clone()),
        Contestant::driven("block, auto", &learnt, load.clone()),
        Contestant::driven("SCSI, auto", &scsi, scsi_load),
        Contestant::driven(PEER, &peer, load),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(name: &str, series: &[(&str, f64, f64, f64)]) -> Played {
        let series = series.iter().map(|(label, iops, server, client)| Series {
            label: (*label).to_owned(),
            about: String::new(),
            rounds: vec![
                [
                    (Figure::Iops, *iops),
                    (Figure::LatencyUs, 1e6 / iops),
                    (Figure::ServerCpuUs, *server),
                    (Figure::ClientCpuUs, *client),
                ]
                .into(),
            ],
        });
        Played {
            name: name.to_owned(),
            title: name.to_owned(),
            others_percent: 0.0,
            series: series.collect(),
            verdicts: Vec::new(),
        }
    }

    #[test]
    fn a_section_has_tables_limits_and_plots() {
        let cases = [
            played("npiv-throughput", &[("native", 1e5, 0.0, 2.0), ("single", 99e3, 5.0, 2.0)]),
            played("npiv-cost-1", &[("single", 5e5, 2.0, 1.0), ("multi", 4e5, 1.0, 1.0)]),
            played("npiv-cost-2", &[("single", 1e6, 1.0, 0.5), ("multi", 4e5, 1.0, 2.5)]),
            played("npiv-cost-4", &[("single", 1e6, 1.0, 0.5), ("multi", 4e5, 1.0, 1.0)]),
        ];
        let (text, plots) = section(&cases, (1, 1), "npiv");
        for line in [
            "- native is limited by the disk",
            "- single is limited by the disk",
            "- single is limited by the number of requests outstanding (1), the CPU of its channels (2 to 4)",
            "- multi is limited by wake-ups between client and server (1), the client's CPU (2), wake-ups between client and server (4)",
            "![Throughput](npiv/npiv-throughput.svg)",
            "| 4 | 1.00 | 1 000 000 | 1.00 | 400 000 |",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        }
        let files: Vec<&str> = plots.iter().map(|plot| plot.file.as_str()).collect();
        assert_eq!(files, ["npiv-throughput.svg", "npiv-cost.svg"]);
        assert!(plots[1].svg.contains("<polyline") && plots[0].svg.contains(">99 000<"));
    }

    #[test]
    fn every_table_has_cases() {
        for (title, prefix, ..) in TABLES {
            assert!(cases().iter().any(|(name, ..)| name.starts_with(prefix)), "{title}");
        }
    }
}
