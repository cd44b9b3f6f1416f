//! Why a count is what it is, and what brings more.

use fabric::negotiate::{NpivNegotiated, Policy, Term as Limit};

use super::outcome::{Reached, Stage};
use super::plan::{Plan, Step, System};
use super::unknown::FEATURE;
use crate::facts::{Contradiction, Facts, Level, Product, Verdict};

/// The source's sentence on that move against its table.
const FIRST_MOVE: &str = "lpm-first-move-to-power9";

/// The name of a term in a formula.
pub(super) fn name(limit: Limit) -> String {
    match limit {
        Limit::ClientLevel => "client's level".to_owned(),
        Limit::ServerLevel => "VIOS level".to_owned(),
        Limit::Earlier => "negotiated earlier".to_owned(),
        Limit::Port => "port's num_io_queues".to_owned(),
        Limit::PortLevel => "port's adapter".to_owned(),
        Limit::Client => "queues the client asks for".to_owned(),
        other => other.to_string(),
    }
}

fn reason(plan: &Plan, at: &str, limit: Limit) -> String {
    let client = plan.client.system.product();
    match limit {
        Limit::ClientLevel => format!("{client} at this level has a single queue"),
        Limit::ServerLevel => format!("the VIOS of {at} has a single queue"),
        Limit::Firmware => format!("the firmware of {at} has no sub-queues"),
        Limit::PortLevel => format!("the Fibre Channel adapter of {at} has a single queue"),
        Limit::LimitIntr => format!("`limit_intr` is true at {at}"),
        Limit::Client => "the client asks for no more".to_owned(),
        Limit::ClientAttribute => "the client's `num_io_queues` allows no more".to_owned(),
        Limit::NumPerRange => {
            format!("`num_per_range` of the virtual adapter at {at} allows no more")
        }
        Limit::Inherited => format!("`num_per_range` of `viosnpiv0` at {at} allows no more"),
        Limit::Port => format!("`num_io_queues` of the port at {at} allows no more"),
        Limit::Earlier => "the client does not go above what it negotiated before".to_owned(),
        Limit::Adapter | Limit::DataPlane => format!("{at} has no more channels"),
    }
}

/// The first thing that limits, as a sentence.
pub(super) fn brief(plan: &Plan, at: &str, limits: &[Limit]) -> String {
    sentence(&limits.first().map(|limit| reason(plan, at, *limit)).unwrap_or_default())
}

/// All that limits, as a sentence; where several worlds end at the same count, each way that is not a longer form of
/// another one.
pub(super) fn why(plan: &Plan, at: &str, answers: &[&NpivNegotiated]) -> String {
    let mut ways: Vec<Vec<Limit>> = answers
        .iter()
        .map(|answer| answer.offers.iter().filter(|o| o.limits).map(|o| o.term).collect())
        .collect();
    ways.sort_by_key(Vec::len);
    let mut shortest: Vec<Vec<Limit>> = Vec::new();
    for way in ways {
        if !shortest.iter().any(|short| short.iter().all(|limit| way.contains(limit))) {
            shortest.push(way);
        }
    }
    let reasons = |way: &Vec<Limit>| {
        way.iter().map(|limit| reason(plan, at, *limit)).collect::<Vec<_>>().join(", and ")
    };
    sentence(&shortest.iter().map(reasons).collect::<Vec<_>>().join("; or "))
}

/// With a capital at the start, unless a name in backticks stands there, and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// What has to be done, in order, for more queues than there are; empty when nothing gives more.
pub(super) fn brings_back(plan: &Plan, facts: &Facts, at: &str, reached: &Reached) -> Vec<String> {
    let Reached { answer, terms, anew } = reached;
    let reconfigure = match plan.client.system {
        System::Aix => {
            "configure the client's adapter anew (`rmdev -Rl fcsN`, then `cfgmgr`), or restart the client"
        }
        _ => "configure the client's adapter anew, or restart the client",
    };
    if anew.channels > answer.channels {
        return vec![format!("{reconfigure}: {} queues", anew.channels)];
    }
    let Some((then, _)) = anew.then else { return Vec::new() };
    let limits = anew.offers.iter().filter(|offer| offer.limits);
    let mut steps: Vec<String> = limits.map(|offer| remedy(facts, at, offer.term)).collect();
    let remembers = terms.policy == Policy::Aix && answer.maximum.is_some_and(|most| most < then);
    if remembers || !terms.levels.client {
        steps.push(reconfigure.to_owned());
    }
    if let Some(last) = steps.last_mut() {
        last.push_str(&format!(": {then} queues"));
    }
    steps
}

fn remedy(facts: &Facts, at: &str, limit: Limit) -> String {
    let least = |product: Product| {
        let levels = facts.requirement(FEATURE, product).map(|r| r.at_least.as_slice());
        let texts: Vec<&str> = levels.unwrap_or_default().iter().map(Level::text).collect();
        if texts.is_empty() { "a level with multi-queue".to_owned() } else { texts.join(" or ") }
    };
    match limit {
        Limit::ServerLevel => {
            format!("bring the VIOS of {at} to {} or later", least(Product::Vios))
        }
        Limit::Firmware => format!(
            "move to a server of {} or later with firmware {} or later",
            least(Product::Server),
            least(Product::Firmware)
        ),
        Limit::PortLevel => format!("map the adapter at {at} to a port with multi-queue"),
        Limit::LimitIntr => {
            format!("set `limit_intr` of the virtual adapter at {at} to false and restart the VIOS")
        }
        Limit::Port => format!("raise `num_io_queues` of the port at {at}"),
        Limit::NumPerRange => format!("raise `num_per_range` of the virtual adapter at {at}"),
        Limit::Inherited => format!("raise `num_per_range` of `viosnpiv0` at {at}"),
        other => other.remedy().to_owned(),
    }
}

/// The contradictions of the sources on which a count rests: a client's first move from a generation without
/// multi-queue to one with it.
pub(super) fn contradictions(plan: &Plan, facts: &Facts) -> Vec<Contradiction> {
    let generation = |name: &str| -> Option<Verdict> {
        let server = plan.server.get(name)?;
        let of_machine = || Some(facts.machine(server.machine.as_deref()?)?.generation.as_str());
        let text = server.generation.as_deref().or_else(of_machine)?;
        let level = Level::read(Product::Server, text).ok()?;
        Some(facts.requirement(FEATURE, Product::Server)?.judge(&level))
    };
    let mut at = plan.client.at.as_str();
    let mut touched = false;
    for step in &plan.steps {
        let Step::Move(to) = step else { continue };
        touched |= generation(at) == Some(Verdict::NotMet) && generation(to) == Some(Verdict::Met);
        at = to;
    }
    let one =
        facts.contradiction(FIRST_MOVE).filter(|_| touched && plan.client.system == System::Aix);
    one.cloned().into_iter().collect()
}

/// What to mind, whatever the counts.
pub(super) fn notes(plan: &Plan, stages: &[Stage]) -> Vec<String> {
    let mut notes = Vec::new();
    let most = |stage: &Stage| stage.cases.first().map_or(0, |case| case.queues);
    let drop = stages.windows(2).any(|pair| most(&pair[0]) > 1 && most(&pair[1]) == 1);
    if drop {
        notes.push(
            "The move to a single queue may cost performance: what went through several queues goes through one."
                .to_owned(),
        );
    }
    if plan.steps.iter().any(|step| matches!(step, Step::Move(_))) {
        notes.push(
            "Both WWPNs of the client's adapter must be zoned and masked; a move uses the second one."
                .to_owned(),
        );
    }
    if plan.client.system == System::Aix {
        notes.push(
            "What AIX gave up in a negotiation it does not take back by itself. The source's sentence on this can also be read so that it would grow back to the first number; configure the adapter anew to be sure."
                .to_owned(),
        );
    }
    notes
}
