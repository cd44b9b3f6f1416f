//! `partition-state`: what the HMC's list says of partitions that is out of order. `partition-profile`: what they lose when they
//! are activated again.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::thresholds::{PROFILE_LESS, own as own_term};
use super::view::View;
use crate::capture::{At, HmcList, HmcRow, Report};
use crate::trace::{Figure, Term, number};

const RULE: &str = "partition-state";

const PROFILE: &str = "partition-profile";

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: PROFILE,
        about: "a partition runs with more than its profile gives it at the next activation",
        on: Kind::System,
        evidence: "lssyscfg -r prof, lssyscfg -r lpar, lshwres -r mem --level lpar and lshwres -r proc --level lpar of the machine on the HMC",
        weight: 0.8,
        applies: |view, system| {
            Applicability::where_that(profiles(view, system.host).next().is_some())
        },
        judge: profile,
    },
    Rule {
        name: RULE,
        about: "the HMC shows a partition in error, without its connection, a VIOS that is off, or no mover service partition",
        on: Kind::System,
        evidence: "lssyscfg -r lpar -m MACHINE -F name,lpar_id,lpar_env,state,rmc_state on the HMC",
        weight: 1.0,
        applies: |view, system| Applicability::where_that(!newest(view, system.host).is_empty()),
        judge,
    },
];

/// Of each machine the partitions as they were listed last, with their states.
fn newest<'a>(view: &View<'a>, host: usize) -> BTreeMap<Option<&'a str>, Vec<&'a HmcRow>> {
    let mut lists = BTreeMap::new();
    for list in view.of(host).filter_map(Report::hmc_list) {
        let has = |row: &&HmcRow| ["name", "state"].iter().all(|name| row.field(name).is_some());
        let rows: Vec<&HmcRow> = list.rows.iter().filter(has).collect();
        if !rows.is_empty() {
            lists.insert(list.system.as_ref().map(|read| read.value.as_str()), rows);
        }
    }
    lists
}

type Listed<'a> = (Option<&'a str>, &'a HmcRow);

/// The rows of an HMC's lists that have all of these fields, each with its machine.
fn rows_with<'a>(
    view: &View<'a>,
    host: usize,
    fields: &'static [&'static str],
) -> impl Iterator<Item = Listed<'a>> {
    let lists: Vec<&HmcList> = view.of(host).filter_map(Report::hmc_list).collect();
    let has = move |row: &&HmcRow| fields.iter().all(|name| row.field(name).is_some());
    lists.into_iter().flat_map(move |list| {
        let machine = list.system.as_ref().map(|read| read.value.as_str());
        list.rows.iter().filter(has).map(move |row| (machine, row))
    })
}

fn profiles<'a>(view: &View<'a>, host: usize) -> impl Iterator<Item = Listed<'a>> {
    rows_with(view, host, &["name", "lpar_name", "desired_mem"])
}

/// What a profile asks for and what runs: the words for it, the profile's field, and those of the running partition.
const KEPT: [(&str, &str, [&str; 2]); 3] = [
    ("MB of memory", "desired_mem", ["run_mem", "curr_mem"]),
    ("processing units", "desired_proc_units", ["run_proc_units", "curr_proc_units"]),
    ("processors", "desired_procs", ["run_procs", "curr_procs"]),
];

/// `partition-profile`: what was added while the partition ran is not in the profile that it is activated by.
fn profile(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let host = system.host;
    let mut told = BTreeSet::new();
    for (machine, row) in profiles(view, host) {
        let (Some(name), Some(of)) = (row.field("lpar_name"), row.field("name")) else { continue };
        let own =
            |(other, row): &Listed<'_>| *other == machine && row.field("lpar_name") == Some(name);
        let listed = rows_with(view, host, &["name", "default_profile"]);
        let default: Option<&str> = listed
            .filter(|(other, row)| *other == machine && row.field("name") == Some(name))
            .filter_map(|(_, row)| row.field("default_profile"))
            .last();
        let alone = profiles(view, host).filter(own).all(|(_, row)| row.field("name") == Some(of));
        if default.map_or(!alone, |default| default != of) {
            continue;
        }
        let value_of = |row: &HmcRow, field: &str| row.field(field)?.parse::<f64>().ok();
        let mut less = Vec::new();
        for (words, desired, running) in KEPT {
            let Some(wanted) = value_of(row, desired) else { continue };
            let runs = rows_with(view, host, &["lpar_name"]).filter(own).filter_map(|(_, row)| {
                let value = running.iter().find_map(|field| value_of(row, field))?;
                Some((value, row.at))
            });
            let Some((runs, at)) = runs.last() else { continue };
            if wanted > 0.0 && wanted <= runs * PROFILE_LESS {
                less.push((words, wanted, runs, at));
            }
        }
        let Some((words, wanted, runs, at)) = less.first().copied() else { continue };
        if !told.insert((machine, name)) {
            continue;
        }
        let terms = vec![
            Term::read("profile", wanted, words, row.at),
            Term::read("running", runs, words, at),
        ];
        let figure =
            Figure::new("what is left by the profile", "%", "profile × 100 ÷ running", terms);
        let title = format!(
            "{name} runs with {} {words}, its profile has {}",
            number(runs),
            number(wanted)
        );
        let all: Vec<String> = less
            .iter()
            .map(|(words, wanted, runs, _)| {
                format!("{} of {} {words}", number(*wanted), number(*runs))
            })
            .collect();
        out.push(
            Draft::new(PROFILE, host, name.to_owned(), Severity::Warning, title)
                .see([row.at, at])
                .see(less.iter().map(|(.., at)| *at))
                .figure(figure)
                .figure(Figure::plain(own_term("threshold", PROFILE_LESS * 100.0, "%")))
                .because(format!("The profile {of} gives {}.", all.join(" and ")))
                .because("What was added while it ran is not in the profile: activated by it, as after a shutdown or a move without it running, the partition comes up with what stands there.")
                .effect(format!("Where what runs is what is meant, save it: mksyscfg -r prof -m MACHINE -o save -p {name} -n {of} --force on the HMC. Look at the profile first (lssyscfg -r prof): all of it is written anew."))
                .harm("What somebody changed in the profile for later is lost by that.")
                .weigh(0.8, 0.9),
        );
    }
}

fn is_vios(row: &HmcRow) -> bool {
    row.field("lpar_env") == Some("vioserver")
}

fn state(row: &HmcRow) -> &str {
    row.field("state").unwrap_or_default()
}

/// The VIOS of a client's machine that are off by the HMC's list: their names and lines.
pub(super) fn servers_off<'a>(view: &View<'a>, client: usize) -> Vec<(&'a str, At)> {
    let lists = view.hosts().flat_map(|host| newest(view, host).into_values());
    let mut with_client =
        lists.filter(|rows| rows.iter().any(|row| view.model.named_at(row.at) == Some(client)));
    let off = |row: &&HmcRow| is_vios(row) && state(row) == "Not Activated";
    let rows = with_client.next().unwrap_or_default();
    let named = rows.into_iter().filter(off);
    named.filter_map(|row| Some((row.field("name")?, row.at))).collect()
}

/// A machine whose VIOS are none of them mover service partitions: no running partition moves.
fn no_mover(system: &Object<'_>, machine: Option<&str>, rows: &[&HmcRow], out: &mut Out) {
    let servers: Vec<&&HmcRow> =
        rows.iter().filter(|row| is_vios(row) && row.field("msp").is_some()).collect();
    let none = servers.iter().all(|row| row.field("msp") == Some("0"));
    let Some(first) = servers.first().filter(|_| none) else { return };
    let name = machine.unwrap_or("the machine").to_owned();
    let title = format!("no VIOS of {name} is a mover service partition");
    out.push(
        Draft::new(RULE, system.host, name, Severity::Warning, title)
            .see(servers.iter().map(|row| row.at))
            .because("msp is 0 for each of its VIOS: a running partition can move neither to nor from the machine. Partitions that are switched off can.")
            .only_noted("Where nothing is moved while it runs, all is well.")
            .effect(format!("Make one of them that, or both, at any time: chsyscfg -r lpar -m MACHINE -i \"name={},msp=1\" on the HMC.", first.field("name").unwrap_or("VIOS")))
            .harm("None that is known.")
            .weigh(0.8, 0.6),
    );
}

fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    for (machine, rows) in newest(view, system.host) {
        no_mover(system, machine, &rows, out);
        let running = |row: &HmcRow| state(row) == "Running";
        let rmc = |word: &str| {
            let has = |row: &&&HmcRow| running(row) && row.field("rmc_state") == Some(word);
            rows.iter().filter(has).count()
        };
        let (active, inactive) = (rmc("active"), rmc("inactive"));
        let serves = rows.iter().any(|row| is_vios(row) && running(row));
        let served = rows.iter().any(|row| !is_vios(row) && running(row));
        for row in rows {
            let Some(name) = row.field("name") else { continue };
            let draft = |severity, title: String| {
                Draft::new(RULE, system.host, name.to_owned(), severity, title).see([row.at])
            };
            let aix = row.field("os_version").is_some_and(|text| text.starts_with("AIX"));
            let could = is_vios(row) || row.field("lpar_env") == Some("aixlinux");
            let off_air = running(row) && row.field("rmc_state") == Some("inactive");
            match state(row) {
                "Error" => out.push(
                    draft(Severity::Critical, format!("{name} is in error"))
                        .because("The HMC lists it in the state Error: it does not run, and its profile or its hardware does not let it.")
                        .effect("Read its reference code (lsrefcode -r lpar -m MACHINE --filter lpar_names=NAME) and the HMC's serviceable events (lssvcevents -t hardware), and mend what they name before it is activated again.")
                        .harm("None by reading.")
                        .weigh(0.95, 1.1),
                ),
                _ if off_air && could && active > inactive => {
                    let severity = match is_vios(row) || aix {
                        true => Severity::Warning,
                        false => Severity::Note,
                    };
                    out.push(
                        draft(severity, format!("{name} runs, and the HMC does not reach it"))
                            .because(format!("Its rmc_state is inactive, while that of {active} others which run is active: the HMC and its network are not the cause."))
                            .because("Without that connection the HMC changes nothing in it, moves nothing to or from it (for a VIOS: no partition of the machine that it serves), and runs no viosvrcmd.")
                            .effect("Look at its network to the HMC (port 657, both ways) and at the daemons: /usr/sbin/rsct/bin/rmcdomainstatus -s ctrmc, lssrc -s ctrmc. After a start it takes some minutes by itself.")
                            .harm("None by looking.")
                            .weigh(0.85, 0.8),
                    );
                }
                "Not Activated" if is_vios(row) && serves && served => out.push(
                    draft(Severity::Warning, format!("{name} is off while clients run"))
                        .only_noted("The HMC lists this VIOS as Not Activated, and another one and clients of the machine as Running: what it serves has one side left. Where it is switched off on purpose, all is well.")
                        .effect("Activate it, and see with lspath on the clients that their paths come back.")
                        .harm("None.")
                        .weigh(0.6, 0.8),
                ),
                "Open Firmware" if is_vios(row) && serves && served => out.push(
                    draft(Severity::Warning, format!("{name} stands in Open Firmware and has not started"))
                        .because("The HMC lists it as activated and not running: it found nothing to start from, or waits for somebody in its menus. Others of the machine run.")
                        .effect("Open its console (mkvterm -m MACHINE -p NAME) and look at its boot list and its disk; lsrefcode -r lpar names where it stands.")
                        .harm("None by looking.")
                        .weigh(0.85, 0.9),
                ),
                _ => {}
            }
        }
    }
}
