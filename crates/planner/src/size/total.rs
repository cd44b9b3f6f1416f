//! The parts of a sizing, and their sum.

use serde::Serialize;

use super::given::Given;
use super::input::{Processors, Vios, Workloads};
use crate::facts::{Contradiction, Facts, id};
use crate::trace::{Figure, Term, number};

/// One load and what it takes.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// Its kind and number: `SEA 1`.
    pub id: String,
    /// What the user calls it.
    pub name: Option<String>,
    /// Every step, in order.
    pub figures: Vec<Figure>,
    /// What to mind.
    pub notes: Vec<String>,
    /// Processors, not rounded.
    pub processors: Option<Term>,
    /// Memory of the VIOS, in MB.
    pub vios_memory: Option<Term>,
    /// Memory of the hypervisor, in MB.
    pub hypervisor_memory: Option<Term>,
    /// The least processors that a VIOS with this load must have, whatever the load.
    pub least_processors: Option<Term>,
    /// The least memory that a VIOS with this load must have, in GB.
    pub least_memory: Option<Term>,
}

/// The name of the step from which processors follow.
const CYCLES: &str = "cycles/s";

impl Part {
    pub(super) fn new(id: String, name: Option<&str>) -> Part {
        Part {
            id,
            name: name.map(str::to_owned),
            figures: Vec::new(),
            notes: Vec::new(),
            processors: None,
            vios_memory: None,
            hypervisor_memory: None,
            least_processors: None,
            least_memory: None,
        }
    }

    /// Adds a step and returns it as a term for the next one.
    pub(super) fn step(&mut self, name: &str, unit: &str, formula: &str, terms: Vec<Term>) -> Term {
        let figure = Figure::new(name, unit, formula, terms);
        let term = Term::of(&figure);
        self.figures.push(figure);
        term
    }

    /// A value of the load as a term, after the step that reckons it from captures, where there is one.
    pub(super) fn given<T: Copy + Into<f64>>(
        &mut self,
        given: &Given<T>,
        name: &str,
        unit: &str,
    ) -> Term {
        let (term, step) = given.term(name, unit);
        self.figures.extend(step.filter(|step| !self.figures.contains(step)));
        term
    }

    /// Adds a fact as a step of its own.
    pub(super) fn fact(&mut self, facts: &Facts, id: &str, name: &str) -> Term {
        let figure = Figure::plain(facts.term(id, name));
        let term = Term::of(&figure);
        self.figures.push(figure);
        term
    }

    /// The cycles of the whole part: the sum of its kinds of load, or the last step itself where there is one kind.
    pub(super) fn cycles(&mut self, parts: Vec<Term>) {
        if let ([_], Some(last)) = (parts.as_slice(), self.figures.last_mut()) {
            CYCLES.clone_into(&mut last.name);
            return;
        }
        let formula: Vec<&str> = parts.iter().map(|term| term.name.as_str()).collect();
        let formula = formula.join(" + ");
        self.step(CYCLES, "cycles/s", &formula, parts);
    }

    /// The load's own name beside its number.
    pub fn heading(&self) -> String {
        match &self.name {
            Some(name) => format!("{}: {name}", self.id),
            None => self.id.clone(),
        }
    }
}

/// Processors for the cycles of a part: at the clock of the tables, then scaled to the clock of the server.
pub(super) fn processors(facts: &Facts, vios: &Vios, part: &mut Part) {
    let Some(cycles) = part.figures.last().map(Term::of) else { return };
    let reference = facts.term(id::SEA_REFERENCE_CLOCK, "reference clock");
    let Some(clock) = &vios.clock_ghz else {
        let terms = vec![cycles, reference];
        part.processors =
            Some(part.step("processors", "processors", "cycles/s ÷ reference clock", terms));
        return;
    };
    let at_reference = part.step(
        "processors of the reference clock",
        "processors",
        "cycles/s ÷ reference clock",
        vec![cycles, reference.clone()],
    );
    let clock = part.given(clock, "GHz", "GHz");
    let clock = part.step("clock", "cycles/s", "GHz × 1000000000", vec![clock]);
    part.processors = Some(part.step(
        "processors",
        "processors",
        "processors of the reference clock × reference clock ÷ clock",
        vec![at_reference, reference, clock],
    ));
}

/// The whole answer.
#[derive(Debug, Clone, Serialize)]
pub struct Sizing {
    /// What was asked.
    pub workloads: Workloads,
    /// Each load.
    pub parts: Vec<Part>,
    /// Sum and rounding, step by step.
    pub totals: Vec<Figure>,
    /// Processors of a dedicated partition: whole ones.
    pub dedicated: Option<Figure>,
    /// Entitlement of a shared partition, without contingency.
    pub shared: Option<Figure>,
    /// Entitlement of a shared partition with contingency.
    pub entitlement: Option<Figure>,
    /// Memory of the VIOS, in GB.
    pub memory: Figure,
    /// Memory of the hypervisor, in MB; none without virtual Fibre Channel.
    pub hypervisor_memory: Option<Figure>,
    /// What to mind.
    pub notes: Vec<String>,
    /// Where the text of a source says something else than the numbers that the sizing goes by.
    pub contradictions: Vec<Contradiction>,
}

/// One term of each part that has it, under the part's own name.
fn of_parts(parts: &[Part], pick: impl Fn(&Part) -> Option<&Term>) -> Vec<Term> {
    let named = parts.iter().filter_map(|part| Some(pick(part)?.clone().named(&part.id)));
    named.collect()
}

fn joined(terms: &[Term], sign: &str) -> String {
    let names: Vec<&str> = terms.iter().map(|term| term.name.as_str()).collect();
    names.join(sign)
}

impl Sizing {
    pub(super) fn of(facts: &Facts, workloads: &Workloads, parts: Vec<Part>) -> Sizing {
        let vios = &workloads.vios;
        let of_load = of_parts(&parts, |part| part.processors.as_ref());
        let formula = joined(&of_load, " + ");
        let load = Figure::new("processors of the load", "processors", &formula, of_load);
        let mut totals = vec![load];
        let needed = least_of_nodes(&parts, &mut totals);
        let shared = (vios.processors != Some(Processors::Dedicated)).then(|| {
            let step = facts.term(id::SEA_ROUNDING, "step");
            let formula = format!("round_up({}, step)", needed.name);
            Figure::new("shared processors", "processors", &formula, vec![needed.clone(), step])
        });
        let entitlement = shared.as_ref().map(|shared| entitlement(facts, vios, shared));
        let dedicated = (vios.processors != Some(Processors::Shared)).then(|| {
            let formula = format!("round_up({}, 1)", needed.name);
            Figure::new("dedicated processors", "processors", &formula, vec![needed.clone()])
        });
        totals.extend(dedicated.iter().chain(&shared).chain(&entitlement).cloned());
        if let Some(entitlement) = &entitlement {
            totals.push(virtual_processors(facts, entitlement));
        }
        let memory = memory(facts, &parts, &mut totals);
        let of_adapters = of_parts(&parts, |part| part.hypervisor_memory.as_ref());
        let hypervisor_memory = (!of_adapters.is_empty()).then(|| {
            let formula = joined(&of_adapters, " + ");
            Figure::new("hypervisor memory", "MB", &formula, of_adapters)
        });
        totals.push(memory.clone());
        totals.extend(hypervisor_memory.clone());
        let notes = notes(facts, workloads, &parts, &totals);
        let all = parts.iter().flat_map(|part| &part.figures).chain(&totals);
        let contradictions = facts.contradictions_of(all);
        let workloads = workloads.clone();
        Sizing {
            workloads,
            parts,
            totals,
            dedicated,
            shared,
            entitlement,
            memory,
            hypervisor_memory,
            notes,
            contradictions,
        }
    }
}

/// The load, or what a node of a pool must have whatever its load, if that is more.
fn least_of_nodes(parts: &[Part], totals: &mut Vec<Figure>) -> Term {
    let load = totals.last().map_or_else(|| Term::given("", 0.0, ""), Term::of);
    let nodes = of_parts(parts, |part| part.least_processors.as_ref());
    if nodes.is_empty() {
        return load;
    }
    let mut terms = vec![load];
    terms.extend(nodes);
    let formula = format!("max({})", joined(&terms, ", "));
    let figure = Figure::new("processors needed", "processors", &formula, terms);
    let term = Term::of(&figure);
    totals.push(figure);
    term
}

fn entitlement(facts: &Facts, vios: &Vios, shared: &Figure) -> Figure {
    let contingency = match vios.contingency {
        Some(part) => Term::given("contingency", part, ""),
        None => facts.term(id::SEA_CONTINGENCY, "contingency"),
    };
    let formula = "shared processors × (1 + contingency)";
    let terms = vec![Term::of(shared), contingency];
    Figure::new("entitlement with contingency", "processors", formula, terms)
}

fn virtual_processors(facts: &Facts, entitlement: &Figure) -> Figure {
    let above = facts.term(id::VIOS_VIRTUAL_PROCESSORS_ABOVE, "above");
    let formula = "round_up(entitlement, 1) + above";
    let terms = vec![Term::of(entitlement).named("entitlement"), above];
    Figure::new("virtual processors, uncapped", "virtual processors", formula, terms)
}

fn memory(facts: &Facts, parts: &[Part], totals: &mut Vec<Figure>) -> Figure {
    let mut terms = vec![facts.term(id::VIOS_MEMORY_GB_BASE, "base")];
    let mut formula = "base".to_owned();
    let of_queues = of_parts(parts, |part| part.vios_memory.as_ref());
    if !of_queues.is_empty() {
        let of_queues_sum =
            Figure::new("VIOS memory of queues", "MB", &joined(&of_queues, " + "), of_queues);
        terms.push(Term::of(&of_queues_sum).named("memory of queues"));
        formula = "base + memory of queues ÷ 1024".to_owned();
        totals.push(of_queues_sum);
    }
    let nodes = of_parts(parts, |part| part.least_memory.as_ref());
    if !nodes.is_empty() {
        formula = format!("max({formula}, {})", joined(&nodes, ", "));
        terms.extend(nodes);
    }
    Figure::new("VIOS memory", "GB", &formula, terms)
}

fn notes(facts: &Facts, workloads: &Workloads, parts: &[Part], totals: &[Figure]) -> Vec<String> {
    let mut notes = Vec::new();
    let all = parts.iter().flat_map(|part| &part.figures).chain(totals);
    if all.into_iter().any(|figure| !figure.confirmed()) {
        notes.push(
            "Numbers marked with ~ rest on facts that were not read in a source: ranges and common lore, not measurements."
                .to_owned(),
        );
    }
    let reference = facts.number(id::SEA_REFERENCE_CLOCK);
    let is_published = reference.source.id == "sea-sizing";
    notes.push(match (workloads.vios.clock_ghz.is_some(), is_published) {
        (false, true) => {
            "No clock was given: processors are those of the tables, 1.65 GHz. Give clock_ghz for yours."
                .to_owned()
        }
        (false, false) => format!(
            "No clock was given: processors are those of the host that was measured, {} GHz.",
            number(reference.high / 1e9)
        ),
        (true, true) => {
            "Scaling by the clock alone is an approximation: the tables are from POWER5, and a newer processor does more in a cycle."
                .to_owned()
        }
        (true, false) => {
            "Scaling by the clock alone is an approximation: another processor does more or less in a cycle than the one that was measured."
                .to_owned()
        }
    });
    let below = facts.number(id::SEA_SHARED_BELOW);
    let load = totals.first().map_or(0.0, |load| load.high);
    if !workloads.sea.is_empty()
        && workloads.vios.processors == Some(Processors::Shared)
        && load > below.high
    {
        notes.push(format!(
            "The source recommends a shared partition for less than {} processors or an inconsistent load; let it be uncapped.",
            below.high
        ));
    }
    notes
}
