//! `disk-slow` by a file of nmon: the service time of a disk in each interval, where it was told to write it (`nmon -d`).
//!
//! An average over a day says little of a disk that is slow by night, so the intervals are counted.

use super::disk;
use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::Object;
use super::thresholds::{
    IDLE_TPS, LARGE_IO, SLOW_FACTOR, SLOW_INTERVALS, SLOW_INTERVALS_LEAST, fact, own,
};
use super::view::{View, count, shown};
use crate::capture::{At, Nmon, Read, Report};
use crate::facts::id::DISK_SERVICE_MS_MAX;
use crate::trace::{Figure, Origin, Term, number};

/// KB/s in nmon are of 1,024 bytes.
const KB: f64 = 1024.0;
const SERVICE: &str = "DISKSERV";

/// The disks of a system whose service its files of nmon show.
pub(super) fn names<'a>(view: &View<'a>, host: usize) -> impl Iterator<Item = &'a str> {
    let sections = view.of(host).filter_map(Report::nmon).flat_map(|nmon| &nmon.sections);
    let columns = sections.filter(|of| of.is_of(SERVICE)).flat_map(|section| &section.columns);
    columns.map(String::as_str).filter(|name| name.starts_with("hdisk"))
}

/// The last file of nmon that shows the disk's service.
fn run<'a>(view: &View<'a>, disk: &Object<'_>) -> Option<&'a Nmon> {
    let shows = |run: &&Nmon| !run.series(SERVICE, disk.device).is_empty();
    view.of(disk.host).filter_map(Report::nmon).filter(shows).last()
}

pub(super) fn shows(view: &View<'_>, disk: &Object<'_>) -> bool {
    run(view, disk).is_some()
}

pub(super) fn judge(view: &View<'_>, disk: &Object<'_>, out: &mut Out) {
    let Some(run) = run(view, disk) else { return };
    let service = run.series(SERVICE, disk.device);
    let transfers = run.series("DISKXFER", disk.device);
    if transfers.is_empty() {
        return out.lack("how many requests it has", "nmon -f -d with DISKXFER");
    }
    let moved = ["DISKREAD", "DISKWRITE"].map(|section| run.series(section, disk.device));
    let from = fact(view.facts, DISK_SERVICE_MS_MAX) * SLOW_FACTOR;
    // A row of each section for each interval.
    let rows = service.len().min(transfers.len());
    let is_slow = |at: usize| {
        let bytes: f64 = moved.iter().filter_map(|of| of.get(at)).map(|read| read.value * KB).sum();
        let large = bytes / transfers[at].value >= LARGE_IO;
        transfers[at].value >= IDLE_TPS
            && service[at].value >= if large { from * 2.0 } else { from }
    };
    let slow: Vec<usize> = (0..rows).filter(|at| is_slow(*at)).collect();
    let busy = (0..rows).filter(|at| transfers[*at].value >= IDLE_TPS).count();
    if slow.len() < SLOW_INTERVALS_LEAST || count(slow.len()) < SLOW_INTERVALS * count(busy) {
        return;
    }
    let of = |series: &[Read<f64>]| -> (f64, At) {
        let sum: f64 = slow.iter().map(|at| series[*at].value).sum();
        (sum / count(slow.len()), series[slow[slow.len() - 1]].at)
    };
    let ((time, at), (rate, line)) = (of(&service), of(&transfers));
    let terms = vec![
        Term::new("slow", count(slow.len()), "intervals", Origin::Computed),
        Term::new("with load", count(busy), "intervals", Origin::Computed),
    ];
    let draft = Draft::new(
        "disk-slow",
        disk.host,
        disk.label.clone(),
        Severity::Warning,
        disk::SLOW.to_owned(),
    );
    out.push(
        draft
            .see(slow.iter().take(4).map(|at| service[*at].at))
            .because(format!(
                "In {} of {} intervals in which it had {} requests a second and more its service time was {} ms in the mean; below {} ms is usual.",
                slow.len(),
                busy,
                number(IDLE_TPS),
                number((time * 10.0).round() / 10.0),
                number(fact(view.facts, DISK_SERVICE_MS_MAX))
            ))
            .figure(shown("service time in those intervals", time, "ms", at))
            .figure(shown("requests in those intervals", rate, "I/O/s", line))
            .figure(Figure::plain(view.facts.term(DISK_SERVICE_MS_MAX, "usual service time, at most")))
            .figure(Figure::plain(own("margin before this rule speaks", SLOW_FACTOR, "times")))
            .figure(Figure::new("share of the intervals", "", "slow ÷ with load", terms))
            .figure(Figure::plain(own("share from which this rule speaks", SLOW_INTERVALS, "")))
            .effect(disk::SLOW_EFFECT)
            .harm("Nothing is changed here.")
            .slow(disk::slow_disk(view, disk.host, disk.device, time))
            .weigh(if time >= 30.0 { 0.85 } else { 0.7 }, 1.0),
    );
}
