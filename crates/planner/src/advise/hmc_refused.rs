//! `hmc-refused`: what an HMC says of a command that it does not carry out, above all of a migration.

use std::collections::BTreeSet;

use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::view::View;
use crate::capture::{HmcMessage, HmcMessages, Report};
use crate::report::clean::clean;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "hmc-refused",
    about: "the HMC refuses a migration, or another command",
    on: Kind::System,
    evidence: "migrlpar -o v on the HMC, with all that it answers",
    weight: 1.0,
    applies: |view, system| {
        let told = view.of(system.host).any(|report| report.hmc_messages().is_some());
        Applicability::where_that(told)
    },
    judge,
}];

/// So much of a message is told in a line.
const TOLD: usize = 300;

/// What messages have in common that are refused for one reason: words that stand in them in small letters, and what is to
/// be looked at. The first that fits is told.
const CAUSES: [(&[&str], &str); 10] = [
    (
        &["fibre channel", "fiber channel", "wwpn", "target wwpns"],
        "Both WWPNs of each of the client's virtual Fibre Channel adapters have to be zoned and mapped to the LUNs in the array, and a port of a VIOS there has to reach them: chnportlogin -o login of the client, lsnportlogin, and lsnports on each VIOS of the destination.",
    ),
    (
        &["virtual scsi", "find_devices -t vscsi", "reserve"],
        "Each disk behind the client's virtual SCSI has to be known to a VIOS of the destination, with reserve_policy=no_reserve on both sides: lspv and lsdev -dev hdiskN -attr reserve_policy there.",
    ),
    (
        &["mover service", "msp"],
        "A VIOS of each side has to be a mover service partition (lssyscfg -r lpar -F name,msp), run, and be reached by the HMC.",
    ),
    (
        &["rmc", "communicat"],
        "The HMC does not reach the partition or the VIOS over RMC: lssyscfg -r lpar -F name,state,rmc_state, its network to the HMC (port 657, both ways), and rmcdomainstatus -s ctrmc on it.",
    ),
    (
        &["vlan", "virtual ethernet", "virtual switch", "vswitch"],
        "A VIOS of the destination has to bridge the client's VLANs on a virtual switch of the same name: lshwres -r virtualio --rsubtype eth --level lpar on both.",
    ),
    (
        &["physical i/o", "physical adapter", "logical host ethernet", "sr-iov"],
        "Physical adapters do not move: take them out of the partition, or make them vNICs.",
    ),
    (
        &["memory"],
        "The destination has too little memory that is free, or another size of memory regions: lshwres -r mem --level sys on both.",
    ),
    (
        &["processor", "compatibility mode"],
        "The destination has too few processors that are free, or does not know the compatibility mode: lshwres -r proc --level sys, lssyscfg -r sys -F lpar_proc_compat_modes.",
    ),
    (&["profile"], "The partition's profile does not fit the destination: lssyscfg -r prof."),
    (
        &["licens", "capab", "activat", "code"],
        "The machine lacks what is asked for: lssyscfg -r sys -F name,capabilities.",
    ),
];

fn cause(text: &str) -> &'static str {
    let text = text.to_ascii_lowercase();
    let found = CAUSES.iter().find(|(words, _)| words.iter().any(|word| text.contains(word)));
    found.map_or("Read what the message names, and mend that; lssvcevents -t console shows what the HMC logged beside it.", |(_, effect)| effect)
}

/// The partition that a command is about: `-p erp1`, `-n erp1`.
fn asked_for(list: &HmcMessages) -> Option<&str> {
    let typed = list.head.command.as_ref()?;
    let words: Vec<&str> = typed.value.split_ascii_whitespace().collect();
    let pair = words.windows(2).find(|pair| matches!(pair[0], "-p" | "-n"))?;
    Some(pair[1].trim_matches(['"', '\'']))
}

fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let mut told = BTreeSet::new();
    for list in view.of(system.host).filter_map(Report::hmc_messages) {
        let all: Vec<&HmcMessage> = list.messages.iter().filter(|one| one.refuses()).collect();
        let Some(first) = all.first() else { continue };
        let text = all.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join(" ");
        let moves =
            list.program() == Some("migrlpar") || text.to_ascii_lowercase().contains("migrat");
        let whose = asked_for(list).map_or_else(String::new, |name| format!(" of {name}"));
        if !told.insert((first.code.as_str(), whose.clone())) {
            continue;
        }
        let what = match (moves, list.program()) {
            (true, _) => format!("the migration{whose} (LPM) is refused: {}", first.code),
            (false, Some(program)) => format!("the HMC refuses {program}{whose}: {}", first.code),
            (false, None) => format!("the HMC refuses a command: {}", first.code),
        };
        let object = asked_for(list).unwrap_or("the HMC").to_owned();
        let mut draft = Draft::new("hmc-refused", system.host, object, Severity::Warning, what)
            .see(all.iter().take(8).map(|one| one.at));
        for one in all.iter().take(3) {
            let shown: String = clean(&one.text).chars().take(TOLD).collect();
            draft = draft.because(format!("{}: {shown}", one.code));
        }
        out.push(
            draft
                .effect(cause(&text))
                .harm("None by looking. A validation (migrlpar -o v) moves nothing and can be run again.")
                .weigh(0.9, 0.9),
        );
    }
}
