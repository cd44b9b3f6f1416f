//! `client-cpu`: a client that uses all processors it may have. More of them is a question of what runs there, so this is a
//! note unless threads are seen to wait for a processor.

use super::cpu::{mean, of_vmstat};
use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::thresholds::{CAPPED_PERCENT, CLIENT_BUSY_PERCENT, WHOLE_SHARE, own};
use super::view::{Role, Value, View, as_f64, count};
use crate::capture::{Lparstat, Report};
use crate::trace::{Figure, Term, number};

const RULE: &str = "client-cpu";

pub(super) const RULES: &[Rule] = &[Rule {
    name: RULE,
    about: "a client uses all processors that it may have",
    on: Kind::System,
    evidence: "lparstat -i, lparstat 30 4 and vmstat 30 4 on the client under load",
    weight: 0.8,
    applies: |view, system| {
        let client = match view.role(system.host) {
            Role::Client => true,
            Role::Unknown => view.name(system.host).is_some(),
            Role::Vios | Role::Trunkline => false,
        };
        Applicability::where_that(client && measured(view, system.host).is_some())
    },
    judge,
}];

/// The last run that has intervals.
fn measured(view: &View<'_>, host: usize) -> Option<Lparstat> {
    let runs = view.of(host).filter_map(Report::lparstat);
    let run = runs.filter(|run| !run.samples.is_empty()).last().cloned();
    run.or_else(|| of_vmstat(view, host))
}

/// The virtual processors: as `lparstat -i` has them, or the logical ones by the threads of each.
fn virtual_cpus(info: Option<&Lparstat>, run: &Lparstat) -> Option<Figure> {
    if let Some(read) = info.and_then(|info| info.virtual_cpus) {
        let value = as_f64(read.value);
        return Some(Figure::plain(Term::read("virtual processors", value, "processors", read.at)));
    }
    let (threads, all) = (run.smt.as_ref()?, run.lcpu?);
    let of_each: f64 = threads.value.parse().ok().filter(|of_each| *of_each >= 1.0)?;
    let terms = vec![
        Term::read("lcpu", as_f64(all.value), "threads", all.at),
        Term::read("smt", of_each, "threads", threads.at),
    ];
    Some(Figure::new("virtual processors", "processors", "lcpu ÷ smt", terms))
}

/// What it may use at most, where it uses that much.
fn used_up(info: Option<&Lparstat>, run: &Lparstat, out: &mut Out) -> Option<Vec<Figure>> {
    let is = |word: &str| {
        let mode = run.mode.as_ref().or(info.and_then(|info| info.mode.as_ref()));
        mode.is_some_and(|mode| mode.value.to_ascii_lowercase().starts_with(word))
    };
    let (physical, percent) =
        (mean(run, |sample| sample.physical), mean(run, |sample| sample.entitlement_percent));
    let (Some((used, at)), Some((percent, percent_at))) = (physical, percent) else {
        // Dedicated ones: there is nothing to borrow.
        return Some(Vec::new());
    };
    if is("capped") {
        let used = Term::read("mean use of the entitlement", percent, "%", percent_at);
        return (percent >= CAPPED_PERCENT).then(|| vec![Figure::plain(used)]);
    }
    let Some(all) = virtual_cpus(info, run) else {
        out.lack("how many virtual processors it has", "lparstat -i");
        return None;
    };
    (used >= WHOLE_SHARE * all.low)
        .then(|| vec![Figure::plain(Term::read("used", used, "processors", at)), all])
}

/// Threads that are ready to run and have no processor, by `vmstat`: the mean, and the logical processors.
fn queue(view: &View<'_>, host: usize) -> Option<(Value, Value)> {
    let run = view.of(host).filter_map(Report::vmstat).last()?;
    let ready: Vec<f64> = run.samples.iter().filter_map(|sample| sample.ready).collect();
    let last = run.samples.last()?.at;
    let all = run.lcpu.filter(|_| ready.len() > 1)?;
    let mean = ready.iter().sum::<f64>() / count(ready.len());
    Some(((mean, last), (as_f64(all.value), all.at)))
}

fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let Some(run) = measured(view, system.host) else { return };
    let (Some((user, at)), Some((sys, _))) =
        (mean(&run, |sample| sample.user), mean(&run, |sample| sample.system))
    else {
        return;
    };
    if user + sys < CLIENT_BUSY_PERCENT {
        return;
    }
    let infos = view.of(system.host).filter_map(Report::lparstat);
    let info = infos.filter(|info| info.virtual_cpus.is_some()).last();
    let Some(figures) = used_up(info, &run, out) else { return };
    let queue = queue(view, system.host);
    let waits = queue.filter(|((ready, _), (all, _))| ready > all);
    let severity = if waits.is_some() { Severity::Warning } else { Severity::Note };
    let spoken = view.spoken(system.host);
    let terms = vec![Term::read("user", user, "%", at), Term::read("sys", sys, "%", at)];
    let title = format!("{spoken} uses all processors that it may have");
    let object = format!("processors of {spoken}");
    let mut draft = Draft::new(RULE, system.host, object, severity, title)
        .see([at])
        .see(run.mode.as_ref().map(|read| read.at))
        .figure(Figure::new("busy", "%", "user + sys", terms))
        .figure(Figure::plain(own("use from which this rule speaks", CLIENT_BUSY_PERCENT, "%")))
        .because("There is nothing left that it could borrow: its virtual processors, or what it is capped at, are used.");
    draft = figures.into_iter().fold(draft, Draft::figure);
    match (waits, queue) {
        (Some(((ready, ready_at), (all, all_at))), _) => {
            draft = draft.see([ready_at, all_at]).because(format!(
                "On average {} threads are ready to run on {} logical processors: work waits for a processor, and disks look slow from there that are not.",
                number(ready.round()),
                number(all)
            ));
        }
        (None, Some(_)) => {
            draft = draft.because(
                "No more threads are ready to run than there are logical processors: nothing waits.",
            );
        }
        (None, None) => out.lack("whether work waits for a processor", "vmstat 30 4"),
    }
    out.push(
        draft
            .effect("See first what runs there (topas -P) and whether it should. If it should: more virtual processors, and entitlement for what it uses all the time, on the HMC and in the profile; uncap it where it is capped. How many it would use is not known from this, so no command is given.")
            .harm("More processors come out of the shared pool: others can borrow less. Licences may be counted by them.")
            .weigh(if waits.is_some() { 0.85 } else { 0.7 }, 0.9),
    );
}
