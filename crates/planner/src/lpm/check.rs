//! Every level, adapter and limit of a plan against what multi-queue needs.

use serde::Serialize;

use super::plan::{LpmError, Plan, Server};
use super::unknown::{FEATURE, generation, judge};
use crate::facts::{Adapter, Facts, Level, Product, Verdict, id};
use crate::trace::Source;

/// What came of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// It is enough.
    Met,
    /// It is not.
    NotMet,
    /// Not given, or given too coarsely to decide.
    NotGiven,
    /// Given, and not in the data.
    NotInData,
}

impl std::fmt::Display for Judgement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Judgement::Met => "met",
            Judgement::NotMet => "not met",
            Judgement::NotGiven => "unknown: not given",
            Judgement::NotInData => "unknown: not in the data",
        })
    }
}

/// One line of the check.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// Of what: `client`, or the name of a server.
    pub object: String,
    /// What was looked at.
    pub what: String,
    /// What was given.
    pub given: Option<String>,
    /// What is needed.
    pub needed: String,
    /// Whether it is.
    pub judgement: Judgement,
    /// Where the need comes from; none where the data has none.
    pub source: Option<Source>,
}

pub(super) fn checks(plan: &Plan, facts: &Facts) -> Result<Vec<Check>, LpmError> {
    let client = &plan.client;
    let product = client.system.product();
    let mut all = vec![level(facts, "client", product, client.level.as_deref())?];
    for (name, server) in &plan.server {
        all.push(machine(facts, name, server)?);
        all.push(level(facts, name, Product::Firmware, server.firmware.as_deref())?);
        all.push(level(facts, name, Product::Vios, server.vios.as_deref())?);
        let adapter = server.adapter.as_deref().and_then(|feature| facts.adapter(feature));
        all.push(adapter_check(name, server, adapter));
        all.extend(clients_check(facts, name, server, adapter));
    }
    Ok(all)
}

fn level(
    facts: &Facts,
    object: &str,
    product: Product,
    given: Option<&str>,
) -> Result<Check, LpmError> {
    let (verdict, _) = judge(facts, product, given, &format!("{object}: {product}"))?;
    let requirement = facts.requirement(FEATURE, product);
    let levels = requirement.map(|needed| needed.at_least.as_slice()).unwrap_or_default();
    let least: Vec<&str> = levels.iter().map(Level::text).collect();
    let judgement = match (verdict, requirement) {
        (Some(Verdict::Met), _) => Judgement::Met,
        (Some(Verdict::NotMet), _) => Judgement::NotMet,
        (_, None) => Judgement::NotInData,
        (Some(Verdict::Unknown) | None, _) => Judgement::NotGiven,
    };
    Ok(Check {
        object: object.to_owned(),
        what: product.to_string(),
        given: given.map(str::to_owned),
        needed: if least.is_empty() { "?".to_owned() } else { least.join(" or ") },
        judgement,
        source: requirement.map(|needed| needed.source.clone()),
    })
}

fn machine(facts: &Facts, name: &str, server: &Server) -> Result<Check, LpmError> {
    let known = generation(server, facts);
    let mut check = level(facts, name, Product::Server, known)?;
    check.given = match (&server.machine, known) {
        (Some(machine), Some(generation)) => Some(format!("{machine}: {generation}")),
        (Some(machine), None) => Some(machine.clone()),
        (None, known) => known.map(str::to_owned),
    };
    if server.machine.is_some() && known.is_none() {
        check.judgement = Judgement::NotInData;
    }
    Ok(check)
}

fn adapter_check(name: &str, server: &Server, adapter: Option<&Adapter>) -> Check {
    let judgement = match (adapter.and_then(|adapter| adapter.multi_queue), &server.adapter) {
        (Some(true), _) => Judgement::Met,
        (Some(false), _) => Judgement::NotMet,
        (None, Some(_)) => Judgement::NotInData,
        (None, None) => Judgement::NotGiven,
    };
    let words = |adapter: &Adapter| format!("{} {}", adapter.feature, adapter.name);
    Check {
        object: name.to_owned(),
        what: "Fibre Channel adapter".to_owned(),
        given: adapter.map(words).or_else(|| server.adapter.clone()),
        needed: "16 Gbit or more, with multi-queue".to_owned(),
        judgement,
        source: adapter.map(|adapter| adapter.source.clone()),
    }
}

/// Whether the port takes one client more, where it is said how many it has.
fn clients_check(
    facts: &Facts,
    name: &str,
    server: &Server,
    adapter: Option<&Adapter>,
) -> Option<Check> {
    let active = server.port_adapters?;
    let limit = adapter.map(|adapter| match adapter.link_gbit {
        ..=16 => facts.number(id::NPIV_CLIENTS_16G),
        _ => facts.number(id::NPIV_CLIENTS_32G),
    });
    let judgement = match limit {
        Some(limit) if f64::from(active) + 1.0 <= limit.high => Judgement::Met,
        Some(_) => Judgement::NotMet,
        None => Judgement::NotInData,
    };
    Some(Check {
        object: name.to_owned(),
        what: "clients of the port".to_owned(),
        given: Some(format!("{active} and this one")),
        needed: limit.map_or("?".to_owned(), |limit| format!("at most {}", limit.high)),
        judgement,
        source: limit.map(|limit| limit.source.clone()),
    })
}
