//! Virtual Fibre Channel: native I/O, one queue and many, in the tables of PowerVM's article on NPIV multi-queue.
//!
//! *Single* is an adapter with `limit_intr`, one queue on one channel. *Multi* has as many queues and channels as there are CPUs for the server, and at least
//! [`QUEUES_MIN`] queues. Both have the same number of requests outstanding in all, so that only the queues differ. *Native* is fio on
//! the same file.
//!
//! With one CPU for the server, channels share it and throughput cannot grow with their number: then the cost of an I/O is what can be compared, and
//! [`note`] says so.

use std::fmt::Write as _;

use partition::load::{LoadOptions, ScsiLun};
use protocol::message::{CacheMode, VolumeKind};

use crate::figure::{Figure, Series, short};
use crate::native::Fio;
use crate::ours::{self, Plan, Served};
use crate::report::Played;
use crate::stage::{self, Contestant, Seat, Settled, Stage};
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
    cases
}

/// The tables of the article, each over the cases whose names begin like that.
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
        let rows: Vec<&Played> =
            cases.iter().filter(|case| case.name.starts_with(prefix)).collect();
        let Some(first) = rows.first() else { continue };
        let labels: Vec<&str> = first.series.iter().map(|series| series.label.as_str()).collect();
        // Writing to a string cannot fail.
        let _ = table(&mut text, title, head, &labels, figures, &rows, prefix);
    }
    text
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
            let series = case.series.iter().find(|series| series.label == label);
            let cell = series.and_then(|series| series.spread(figure));
            write!(text, " {} |", cell.map_or("–".to_owned(), |cell| short(cell.median)))?;
        }
        writeln!(text)?;
    }
    writeln!(text)
}

/// Runs a case.
pub(crate) fn run(stage: &mut Stage<'_>, case: &Npiv) -> Result<Vec<Series>> {
    match *case {
        Npiv::Disk { read_percent, outstanding } => disk(stage, read_percent, outstanding),
        Npiv::Clients { count } => clients(stage, count),
        Npiv::Cost { depth } => cost(stage, depth),
        Npiv::Scsi { read_percent } => scsi(stage, read_percent),
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
    let single = stage.ours(&plan)?;
    let many = stage.ours(&multi(settled, &plan))?;
    let load = |queues| LoadOptions { read_percent, ..over(settled, queues, outstanding) };
    let fio = Fio {
        file: path,
        read_percent,
        block_bytes: 4096,
        depth: outstanding,
        cpus: settled.server_cpus.clone(),
    };
    stage.play(&[
        Contestant::native("native", fio),
        Contestant::driven("single", &single, load(1)),
        Contestant::driven("multi", &many, load(multi_queues(settled))),
    ])
}

fn clients(stage: &mut Stage<'_>, count: u16) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let path = stage::disk_file(settled)?;
    let plan = plan(ours::file(&path, CacheMode::Direct));
    let single = stage.ours_for(&plan, usize::from(count))?;
    let many = stage.ours_for(&multi(settled, &plan), usize::from(count))?;
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
        Contestant::native("native", fio),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_cases() {
        for (title, prefix, ..) in TABLES {
            assert!(cases().iter().any(|(name, ..)| name.starts_with(prefix)), "{title}");
        }
    }
}
