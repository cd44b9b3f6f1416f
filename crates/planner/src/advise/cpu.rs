//! `vios-cpu`: a VIOS that uses all of its processors. It is the cause behind many slow disks and networks.

use super::finding::{Draft, NoCommand, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::thresholds::{CAPPED_PERCENT, DEDICATED_PERCENT, UNCAPPED_PERCENT, WHOLE_SHARE, own};
use super::view::{Role, Value, View, count};
use crate::capture::{CpuSample, Lparstat, Read, Report, VmSample};
use crate::report::clean::is_word;
use crate::trace::{Figure, Term, number};

const RULE: &str = "vios-cpu";

pub(super) const RULES: &[Rule] = &[Rule {
    name: RULE,
    about: "the VIOS uses all of its processors",
    on: Kind::System,
    evidence: "lparstat 30 4 (or vmstat 30 4) on each VIOS under load, or a file of nmon",
    weight: 1.0,
    applies,
    judge: |view, system, out| {
        let runs = || view.of(system.host).filter_map(Report::lparstat);
        let run = runs().filter(|run| !run.samples.is_empty()).last().cloned();
        let other = || of_nmon(view, system.host).or_else(|| of_vmstat(view, system.host));
        let Some(run) = run.or_else(other) else { return };
        let info = runs().filter(|run| run.virtual_cpus.is_some()).last();
        judge(view, system.host, &run, info, out);
    },
}];

fn applies(view: &View<'_>, system: &Object<'_>) -> Applicability {
    // A named system that nothing shows to be a VIOS is more likely a client.
    let could_be = match view.role(system.host) {
        Role::Vios => true,
        Role::Unknown => view.name(system.host).is_none(),
        Role::Client | Role::Trunkline => false,
    };
    let mut runs = view.of(system.host).filter_map(Report::lparstat);
    let measured = runs.any(|run| !run.samples.is_empty())
        || of_nmon(view, system.host).is_some()
        || of_vmstat(view, system.host).is_some();
    match (could_be, measured, view.role(system.host)) {
        (true, true, _) => Applicability::Judged,
        (true, false, Role::Vios) => Applicability::Lacking {
            why: "the use of its processors was not captured".to_owned(),
            capture: format!("lparstat 30 4 on {} under load", view.spoken(system.host)),
        },
        _ => Applicability::Elsewhere,
    }
}

/// The last file of nmon as `lparstat` would have printed it: of a partition with shared processors.
fn of_nmon(view: &View<'_>, host: usize) -> Option<Lparstat> {
    let run = view.of(host).filter_map(Report::nmon).last()?;
    let column = |name: &str| run.series("LPAR", name);
    let (used, entitled, free) = (column("PhysicalCPU"), column("entitled"), column("PoolIdle"));
    let (shared, capped) = (column("SharedCPU").pop()?, column("Capped").pop()?);
    if shared.value < 1.0 || used.len() < 2 || used.len() != entitled.len() {
        return None;
    }
    let mut as_lparstat = Lparstat::empty(run.head.clone());
    let mode = if capped.value > 0.0 { "Capped" } else { "Uncapped" };
    as_lparstat.kind = Some(Read { value: "Shared".to_owned(), at: shared.at });
    as_lparstat.mode = Some(Read { value: mode.to_owned(), at: capped.at });
    as_lparstat.entitlement = entitled.last().copied();
    let all = used.iter().zip(&entitled).enumerate();
    as_lparstat.samples = all
        .map(|(index, (used, entitled))| CpuSample {
            physical: Some(*used),
            entitlement_percent: (entitled.value > 0.0)
                .then(|| Read { value: used.value / entitled.value * 100.0, at: used.at }),
            pool_free: free.get(index).copied(),
            ..CpuSample::default()
        })
        .collect();
    Some(as_lparstat)
}

/// The last `vmstat` as `lparstat` would have printed it: of a partition with shared processors, with an interval, since the
/// first line without one is the average since the start.
pub(super) fn of_vmstat(view: &View<'_>, host: usize) -> Option<Lparstat> {
    let run = view.of(host).filter_map(Report::vmstat).last()?;
    let infos = view.of(host).filter_map(Report::lparstat);
    let info = infos.filter(|info| info.mode.is_some()).last();
    let sample = |sample: &VmSample| {
        let read = |value| Read { value, at: sample.at };
        Some(CpuSample {
            physical: Some(read(sample.physical?)),
            entitlement_percent: Some(read(sample.entitlement_percent?)),
            user: sample.user.map(read),
            system: sample.system.map(read),
            ..CpuSample::default()
        })
    };
    let samples: Vec<CpuSample> = run.samples.iter().filter_map(sample).collect();
    if samples.len() < 2 || samples.len() != run.samples.len() {
        return None;
    }
    let mut as_lparstat = Lparstat::empty(run.head.clone());
    as_lparstat.mode = info.and_then(|info| info.mode.clone());
    as_lparstat.entitlement = run.entitlement;
    as_lparstat.samples = samples;
    Some(as_lparstat)
}

/// The mean over the samples, and the line of the last one.
pub(super) fn mean(
    run: &Lparstat,
    pick: impl Fn(&CpuSample) -> Option<Read<f64>>,
) -> Option<Value> {
    let values: Vec<Read<f64>> =
        run.samples.iter().filter_map(pick).filter(|read| read.value.is_finite()).collect();
    let last = values.last()?;
    Some((values.iter().map(|read| read.value).sum::<f64>() / count(values.len()), last.at))
}

/// `Variable Capacity Weight`: what an uncapped partition's part of the pool's rest is reckoned by.
fn weight(info: Option<&Lparstat>) -> Option<Value> {
    let row = info?.info.iter().find(|row| &*row.name == "Variable Capacity Weight")?;
    Some((row.value.trim().parse().ok()?, row.at))
}

fn judge(view: &View<'_>, host: usize, run: &Lparstat, info: Option<&Lparstat>, out: &mut Out) {
    let word = |read: &Option<Read<String>>| {
        read.as_ref().map(|read| read.value.to_ascii_lowercase()).unwrap_or_default()
    };
    let dedicated = word(&run.kind).starts_with("dedicated")
        || mean(run, |sample| sample.entitlement_percent).is_none();
    if dedicated {
        return dedicated_processors(view, host, run, out);
    }
    let Some((percent, at)) = mean(run, |sample| sample.entitlement_percent) else { return };
    // A weight of nothing lets an uncapped partition have nothing beyond its entitlement.
    let no_weight = weight(info).filter(|(weight, _)| *weight == 0.0).map(|(_, at)| at);
    let no_weight = no_weight.filter(|_| !word(&run.mode).starts_with("capped"));
    let capped = word(&run.mode).starts_with("capped") || no_weight.is_some();
    let from = if capped { CAPPED_PERCENT } else { UNCAPPED_PERCENT };
    if percent < from {
        return;
    }
    let physical = mean(run, |sample| sample.physical);
    let pool = mean(run, |sample| sample.pool_free);
    let virtual_cpus = info.and_then(|info| info.virtual_cpus);
    let whole = physical
        .zip(virtual_cpus)
        .is_some_and(|((used, _), all)| used >= WHOLE_SHARE * super::view::as_f64(all.value));
    let tight = pool.is_some_and(|(free, _)| free < 0.5);
    let severity = if capped || whole || tight { Severity::Critical } else { Severity::Warning };
    let confidence = match () {
        () if capped || whole || tight => 0.92,
        () if percent >= 120.0 => 0.85,
        () => 0.7,
    };
    let mut draft = Draft::new(RULE, host, format!("processors of {}", view.spoken(host)), severity, format!("{} % of the entitlement is in use", number(percent.round())))
        .see([at])
        .see(run.mode.as_ref().map(|read| read.at))
        .see(run.entitlement.map(|read| read.at))
        .figure(Figure::plain(Term::read("mean use of the entitlement", percent, "%", at)))
        .figure(Figure::plain(own("use from which this rule speaks", from, "%")))
        .see(no_weight)
        .because(if no_weight.is_some() {
            "The VIOS is uncapped, but its uncapped weight is 0: beyond its entitlement it gets nothing, as if it were capped. Every disk and network of its clients waits for its processors."
        } else if capped {
            "The VIOS is capped: beyond its entitlement it gets nothing. Every disk and network of its clients waits for its processors."
        } else {
            "The VIOS lives on processors that it borrows. As soon as others need theirs, every disk and network of its clients waits."
        });
    if whole {
        draft = draft
            .because(
                "It uses all of its virtual processors, so borrowing cannot give it more either.",
            )
            .see(virtual_cpus.map(|read| read.at));
    }
    if capped && no_weight.is_none() {
        draft = draft.because(
            "What it would use without its cap is not known: what is worked out here is the least.",
        );
    }
    if tight {
        draft = draft
            .because("The shared pool has next to nothing left to lend.")
            .see(pool.map(|(_, at)| at));
    }
    let sharing = match (no_weight.is_some(), capped) {
        (true, _) => Sharing::Weightless,
        (false, true) => Sharing::Capped,
        (false, false) => Sharing::Uncapped,
    };
    out.push(entitle(view, host, (run, info), physical, sharing, draft).weigh(confidence, 1.05));
}

/// What a partition may have of the pool beyond its entitlement.
#[derive(Debug, Clone, Copy)]
enum Sharing {
    /// Nothing.
    Capped,
    /// Nothing, since its weight is 0.
    Weightless,
    /// What the pool has left.
    Uncapped,
}

/// The entitlement to add: what is used and a fifth more.
fn entitle(
    view: &View<'_>,
    host: usize,
    (run, info): (&Lparstat, Option<&Lparstat>),
    physical: Option<Value>,
    sharing: Sharing,
    draft: Draft,
) -> Draft {
    let harm = "The processors come out of the shared pool: others can borrow less.";
    let draft = draft.harm(harm);
    let (Some((used, at)), Some(entitled)) = (physical, run.entitlement) else {
        return draft.effect(match sharing {
            Sharing::Weightless => "First raise its uncapped weight on the HMC (255 is the most), then the entitlement to what is used and a fifth more.",
            Sharing::Uncapped => "Raise the entitlement on the HMC to what is used and a fifth more.",
            Sharing::Capped => "Raise the entitlement on the HMC to what is used and a fifth more, and make the VIOS uncapped with a high weight.",
        });
    };
    let terms = vec![
        Term::read("used", used, "processors", at),
        Term::read("entitled", entitled.value, "processors", entitled.at),
        own("room", 1.2, "times"),
    ];
    let more = Figure::new(
        "entitlement to add",
        "processors",
        "round_up(used × room − entitled, 0.1)",
        terms,
    );
    let effect = match sharing {
        Sharing::Weightless => {
            "First raise its uncapped weight on the HMC (255 is the most): then it may borrow what the pool has left. With more units it no longer waits for processors; write both into its profile."
        }
        Sharing::Uncapped => {
            "What the VIOS uses is its own, whatever others need; write the same into its profile."
        }
        Sharing::Capped => {
            "The VIOS no longer waits for processors. Make it uncapped with a high weight; write the same into its profile."
        }
    };
    let draft = draft.effect(effect).figure(more.clone());
    if more.low <= 0.0 {
        return draft;
    }
    match command(view, host, info, entitled.value, more.low) {
        Ok([add, remove]) => draft.run(add, "as hscroot on the HMC", remove),
        Err(look_up) => {
            let values = match processors(info, entitled.value + more.low) {
                Some((now, more_of_them)) if more_of_them > 0.0 => format!(
                    "{:.1} processing units more, with {:.0} virtual processors in all",
                    more.low,
                    now + more_of_them
                ),
                _ => format!("{:.1} processing units more", more.low),
            };
            draft.unknown(NoCommand { values, look_up, already: None })
        }
    }
}

/// The virtual processors that there are, and how many so many units need beyond them: each runs one unit at most.
fn processors(info: Option<&Lparstat>, units: f64) -> Option<(f64, f64)> {
    let now = super::view::as_f64(info?.virtual_cpus?.value);
    Some((now, (units.ceil() - now).max(0.0)))
}

/// The HMC's commands that add these units and take them away; else what has to be known first.
///
/// Units beyond the virtual processors need more of them; and nothing goes beyond what the profile allows.
fn command(
    view: &View<'_>,
    host: usize,
    info: Option<&Lparstat>,
    entitled: f64,
    more: f64,
) -> Result<[String; 2], Vec<String>> {
    let on = view.spoken(host);
    let system = view.system(host);
    let machine = system.and_then(|system| system.machine.as_deref());
    let machine =
        machine.filter(|machine| machine.contains('*') && is_word(&machine.replace('*', "")));
    let id = system.and_then(|system| system.partition_id);
    let row = |name: &str| {
        let found = info?.info.iter().find(|row| &*row.name == name)?;
        found.value.split_ascii_whitespace().next()?.parse::<f64>().ok()
    };
    let units = entitled + more;
    let most =
        info.and_then(|info| info.virtual_cpus_max).map(|read| super::view::as_f64(read.value));
    let mut look_up = Vec::new();
    if machine.is_none() || id.is_none() {
        look_up.push(format!("the machine and the partition's id: lsmap -all -npiv on {on} (its location codes name them)"));
    }
    let (Some((now, added)), Some(most), Some(capacity)) =
        (processors(info, units), most, row("Maximum Capacity"))
    else {
        look_up.push(format!(
            "virtual processors and the most that the profile allows: lparstat -i on {on}"
        ));
        return Err(look_up);
    };
    let needed = now + added;
    if needed > most || units > capacity {
        look_up.push(format!(
            "the profile: it allows {} units and {} virtual processors, which is less than is needed; raise its maximum and restart the partition",
            number(capacity),
            number(most)
        ));
    }
    let (Some(machine), Some(id), true) = (machine, id, look_up.is_empty()) else {
        return Err(look_up);
    };
    let processors = match added {
        0.0 => String::new(),
        more => format!(" --procs {more:.0}"),
    };
    let spell = |operation: &str| {
        format!(
            "chhwres -r proc -m {machine} -o {operation} --id {id} --procunits {more:.1}{processors}"
        )
    };
    Ok([spell("a"), spell("r")])
}

fn dedicated_processors(view: &View<'_>, host: usize, run: &Lparstat, out: &mut Out) {
    let (Some((user, at)), Some((system, _))) =
        (mean(run, |sample| sample.user), mean(run, |sample| sample.system))
    else {
        return;
    };
    if user + system < DEDICATED_PERCENT {
        return;
    }
    let terms = vec![Term::read("user", user, "%", at), Term::read("sys", system, "%", at)];
    out.push(
        Draft::new(
            RULE,
            host,
            format!("processors of {}", view.spoken(host)),
            Severity::Critical,
            format!("the processors are {} % busy", number((user + system).round())),
        )
        .see([at])
        .because("Every disk and network of its clients waits for the processors of the VIOS.")
        .figure(Figure::new("busy", "%", "user + sys", terms))
        .figure(Figure::plain(own("use from which this rule speaks", DEDICATED_PERCENT, "%")))
        .effect("Add a processor on the HMC, or move clients to another VIOS.")
        .harm("A dedicated processor is taken from the shared pool.")
        .weigh(0.9, 1.05),
    );
}
