//! `vios-memory`: a VIOS, or a partition of which nothing says that it is none, that pages or has little paging space left.

use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::Object;
use crate::advise::thresholds::{PAGES_PER_SECOND, PAGING_CRITICAL, PAGING_WARNING, own};
use crate::advise::view::{Role, View, as_f64, count, shown};
use crate::capture::{At, LoggedError, Read, Report, VmSample};
use crate::trace::{Figure, Origin, Term, number};

/// Pages to and from paging space a second in each interval, of `vmstat`, else of nmon.
pub(super) fn paging(view: &View<'_>, host: usize) -> Vec<Read<f64>> {
    let of_vmstat = view.of(host).filter_map(Report::vmstat).last().map(|run| {
        let sum = |sample: &VmSample| {
            Some(Read { value: sample.paged_in? + sample.paged_out?, at: sample.at })
        };
        run.samples.iter().filter_map(sum).collect::<Vec<_>>()
    });
    let of_nmon = || {
        let run = view.of(host).filter_map(Report::nmon).last()?;
        let (pages_in, pages_out) = (run.series("PAGE", "pgsin"), run.series("PAGE", "pgsout"));
        let sum =
            |(one, two): (Read<f64>, Read<f64>)| Read { value: one.value + two.value, at: one.at };
        (pages_in.len() == pages_out.len())
            .then(|| pages_in.into_iter().zip(pages_out).map(sum).collect())
    };
    of_vmstat.or_else(of_nmon).unwrap_or_default()
}

pub(super) fn pages(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let samples = paging(view, system.host);
    let Some(last) = samples.last().filter(|_| samples.len() >= 2) else { return };
    let mean = samples.iter().map(|read| read.value).sum::<f64>() / count(samples.len());
    let always = samples.iter().all(|read| read.value > 0.0);
    if !always || mean < PAGES_PER_SECOND {
        return;
    }
    let spoken = view.spoken(system.host).to_owned();
    let mut draft = Draft::new(
        "vios-memory",
        system.host,
        spoken.clone(),
        Severity::Critical,
        format!("{spoken} has too little memory: it pages all the time"),
    )
    .see(samples.iter().take(8).map(|read| read.at))
    .because(format!(
        "In every interval it pages; the mean is {} pages a second.",
        number(mean.round())
    ))
    .figure(shown("pages in and out, last interval", last.value, "pages/s", last.at))
    .figure(Figure::new(
        "threshold",
        "pages/s",
        "threshold",
        vec![own("threshold", PAGES_PER_SECOND, "pages/s")],
    ));
    if let Some(svmon) = view.of(system.host).filter_map(Report::svmon).last()
        && let (Some(size), Some(needed)) = (svmon.size, svmon.computational)
    {
        draft = draft.see([size.at]).figure(shown(
            "computational memory in use",
            needed.value,
            svmon.unit.as_ref().map_or("frames", |unit| &unit.value),
            needed.at,
        ));
        if needed.value > size.value {
            draft = draft.because("It needs more memory than it has: that is no file cache.");
        }
    }
    let memory =
        view.of(system.host).filter_map(Report::vmstat).last().and_then(|run| run.memory_mb);
    if let Some(memory) = memory {
        draft = draft.see([memory.at]).because(format!("It has {} MB.", memory.value));
    }
    let space = Space::of(view, system.host);
    let first = if space.as_ref().is_some_and(Space::is_critical) { ADD_SPACE } else { "" };
    if let Some(space) = space {
        let percent = number(space.percent.round());
        draft = draft
            .see(space.lines)
            .because(format!("Its paging space is {percent} % full."))
            .figure(space.figure);
    }
    let kind = spoken_kind(view, system.host);
    out.push(
        tell_ended(view, system.host, draft)
            .effect(format!("{first}Give {kind} more memory on the HMC, in steps while it runs up to its maximum, then look whether it still pages. How much is not known from this, so no command is given."))
            .harm("The machine has that much less for its partitions.")
            .weigh(0.95, 1.0),
    );
}

/// How full the paging spaces in use are, all of them together.
struct Space {
    percent: f64,
    lines: Vec<At>,
    figure: Figure,
}

impl Space {
    /// Where enough of them is in use to be told.
    fn of(view: &View<'_>, host: usize) -> Option<Self> {
        let (size, used, lines) = listed(view, host).or_else(|| counted(view, host))?;
        let percent = used / size * 100.0;
        let terms = vec![
            Term::new("used", used, "", Origin::Computed),
            Term::read("size", size, "", *lines.first()?),
        ];
        let figure = Figure::new("share in use", "%", "used × 100 ÷ size", terms);
        (percent >= PAGING_WARNING).then_some(Self { percent, lines, figure })
    }

    fn is_critical(&self) -> bool {
        self.percent >= PAGING_CRITICAL
    }
}

/// Size and use of the paging spaces in use, and their lines, by `lsps`, in MB.
fn listed(view: &View<'_>, host: usize) -> Option<(f64, f64, Vec<At>)> {
    let list = view.of(host).filter_map(Report::lsps).last()?;
    let active = || list.spaces.iter().filter(|space| space.active && space.size_mb > 0);
    let size = active().map(|space| as_f64(space.size_mb)).sum();
    let used = active().map(|space| as_f64(space.size_mb) * as_f64(space.used_percent) / 100.0);
    active().next()?;
    Some((size, used.sum(), active().map(|space| space.at).collect()))
}

/// The same by `svmon -G`, in its unit.
fn counted(view: &View<'_>, host: usize) -> Option<(f64, f64, Vec<At>)> {
    let run = view.of(host).filter_map(Report::svmon).last()?;
    let (size, used) = (run.paging_size?, run.paging_in_use?);
    (size.value > 0.0).then(|| (size.value, used.value, vec![size.at]))
}

/// What the error log has of processes that AIX ended because the paging space was used up: `PGSP_KILL`.
fn ended<'a>(view: &View<'a>, host: usize) -> Vec<&'a LoggedError> {
    let entries = view.of(host).filter_map(Report::errpt).flat_map(|log| &log.entries);
    let of_space = |entry: &&LoggedError| {
        entry.identifier == "C5C09FFA" || entry.label.as_deref() == Some("PGSP_KILL")
    };
    entries.filter(of_space).collect()
}

/// Says of processes that were ended.
fn tell_ended(view: &View<'_>, host: usize, draft: Draft) -> Draft {
    let ended = ended(view, host);
    match ended.len() {
        0 => draft,
        entries => draft.see(ended.iter().take(4).map(|entry| entry.at)).because(format!(
            "The error log has {entries} of processes that were ended for want of paging space (PGSP_KILL)."
        )),
    }
}

/// What gets the memory.
fn spoken_kind(view: &View<'_>, host: usize) -> &'static str {
    match view.role(host) {
        Role::Vios => "the VIOS",
        _ => "the partition",
    }
}

/// What ends the danger at once; the paging space itself is not known by name where `lsps -s` alone was captured.
const ADD_SPACE: &str = "First add paging space, which can be done at once (lsps -a names it, chps -s PARTITIONS NAME makes it larger): when it is used up, processes are ended. ";

pub(super) fn paging_space(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let Some(space) = Space::of(view, system.host) else { return };
    let severity = if space.is_critical() { Severity::Critical } else { Severity::Warning };
    let spoken = view.spoken(system.host).to_owned();
    let title = format!("the paging space of {spoken} is {} % full", number(space.percent.round()));
    let served = match view.role(system.host) {
        Role::Vios => ", and with them what serves the clients",
        _ => "",
    };
    let first = if space.is_critical() { ADD_SPACE } else { "" };
    let draft = Draft::new("vios-memory", system.host, spoken, severity, title)
        .see(space.lines)
        .because(format!("What lies there did not fit into memory at some time. When the rest is used up, processes are ended{served}."))
        .figure(space.figure)
        .figure(Figure::plain(own("share from which this rule speaks", PAGING_WARNING, "%")))
        .effect(format!("{first}See with vmstat 5 4 whether it pages now and with svmon -G what it needs; give {} more memory on the HMC where it does. A process that grows (ps, svmon -P) is to be found first where it does not.", spoken_kind(view, system.host)))
        .harm("None by looking.")
        .weigh(0.85, 1.0);
    out.push(tell_ended(view, system.host, draft));
}
