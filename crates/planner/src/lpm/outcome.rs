//! Follows the steps through every world that is open, and gathers what comes out.

use std::collections::BTreeMap;

use fabric::negotiate::{NpivNegotiated, NpivTerms, Policy, Term as Limit, negotiate_npiv};
use serde::Serialize;

use super::check::{Check, checks};
use super::plan::{LpmError, Plan, Server, Step};
use super::unknown::{Questions, World};
use super::words;
use crate::facts::{Contradiction, Facts};
use crate::trace::{Figure, Origin, Source, Term};

/// What becomes of the queues.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// What was asked.
    pub plan: Plan,
    /// Before the first step, and after each.
    pub stages: Vec<Stage>,
    /// Every level, adapter and limit against what multi-queue needs.
    pub checks: Vec<Check>,
    /// What was not given and is not in the data, though it decides.
    pub unknown: Vec<String>,
    /// What to mind.
    pub notes: Vec<String>,
    /// Where the text of a source says something else than the table that the outcome goes by.
    pub contradictions: Vec<Contradiction>,
}

/// How things stand at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct Stage {
    /// What happened.
    pub event: String,
    /// The server where the client is then.
    pub server: String,
    /// What can be the case; one when all that decides is known. Most queues first.
    pub cases: Vec<Case>,
}

impl Stage {
    /// The count, when it is known.
    pub fn queues(&self) -> Option<u32> {
        match self.cases.as_slice() {
            [only] => Some(only.queues),
            _ => None,
        }
    }
}

/// One possible count.
#[derive(Debug, Clone, Serialize)]
pub struct Case {
    /// Queues of the client.
    pub queues: u32,
    /// On what it depends that this is the case; empty when it is certain.
    pub conditions: Vec<String>,
    /// How the number comes about.
    pub figure: Figure,
    /// The terms that limit it, first the one that is named first.
    pub limits: Vec<Limit>,
    /// Why it is so, in a sentence.
    pub why: String,
    /// What brings more; empty when the client has all that it asks for.
    pub brings_back: Vec<String>,
    /// The most that the client takes from now on, until its adapter is configured anew.
    pub maximum: Option<u32>,
}

/// One stage in one world.
pub(super) struct Reached {
    pub(super) answer: NpivNegotiated,
    pub(super) terms: NpivTerms,
    /// What a client whose adapter is configured anew at this moment would get.
    pub(super) anew: NpivNegotiated,
}

impl Plan {
    /// Works the plan out.
    pub fn outcome(&self, facts: &Facts) -> Result<Outcome, LpmError> {
        self.check(facts)?;
        let questions = Questions::of(self, facts)?;
        let mut histories = Vec::new();
        let mut most = 0;
        for world in questions.worlds(self.steps.len())? {
            match self.follow(facts, &questions, &world) {
                Ok(history) => histories.push((world, history)),
                Err(possible) => most = most.max(possible),
            }
        }
        if histories.is_empty() {
            let (queues, at) = (self.client.queues.unwrap_or_default(), self.client.at.clone());
            return Err(LpmError::Contradiction { queues, at, most });
        }
        let stages: Vec<Stage> = (0..=self.steps.len())
            .map(|number| self.stage(facts, &questions, &histories, number))
            .collect();
        let worlds: Vec<&World> = histories.iter().map(|(world, _)| world).collect();
        let undecided = stages.iter().any(|stage| stage.cases.len() > 1);
        let open = questions.open(&worlds).map(|question| question.what.clone());
        Ok(Outcome {
            unknown: if undecided { open.collect() } else { Vec::new() },
            notes: words::notes(self, &stages),
            contradictions: words::contradictions(self, facts),
            checks: checks(self, facts)?,
            stages,
            plan: self.clone(),
        })
    }

    /// The stages in one world; the count that would be possible when it contradicts what was observed.
    fn follow(
        &self,
        facts: &Facts,
        questions: &Questions,
        world: &World,
    ) -> Result<Vec<Reached>, u32> {
        let mut at = self.client.at.as_str();
        let mut terms = self.terms(facts, questions, world, at);
        let mut answer = negotiate_npiv(&terms);
        if let Some(queues) = self.client.queues {
            if queues > answer.channels {
                return Err(answer.channels);
            }
            if queues < answer.channels {
                // It has fewer than it could: an earlier negotiation, or what its driver asks for.
                match terms.policy {
                    Policy::Aix => terms.earlier = Some(queues),
                    Policy::Linux => terms.client = Some(queues),
                }
                answer = negotiate_npiv(&terms);
            }
        }
        let asked = terms.client;
        let mut history = vec![reached(terms, answer)];
        for step in &self.steps {
            let before = history.last().and_then(|reached| reached.answer.maximum);
            let earlier = match step {
                Step::Move(to) => {
                    at = to;
                    before
                }
                Step::Renegotiate => before,
                Step::Reconfigure => None,
            };
            let mut terms = self.terms(facts, questions, world, at);
            (terms.earlier, terms.client) = (earlier, asked);
            let answer = negotiate_npiv(&terms);
            history.push(reached(terms, answer));
        }
        Ok(history)
    }

    /// What the parties bring at a server, without a history.
    fn terms(&self, facts: &Facts, questions: &Questions, world: &World, at: &str) -> NpivTerms {
        let none = Server::default();
        let server = self.server.get(at).unwrap_or(&none);
        let or_default = |given: Option<u32>, device: &str, name: &str| {
            given.or_else(|| default_of(facts, device, name))
        };
        let adapter = server.adapter.as_deref().and_then(|feature| facts.adapter(feature));
        let most = adapter.and_then(|adapter| adapter.io_queues_max);
        let port = or_default(server.num_io_queues, "fcs", "num_io_queues");
        NpivTerms {
            client: None,
            client_num_io_queues: or_default(
                self.client.num_io_queues,
                "fcs-client",
                "num_io_queues",
            ),
            num_per_range: or_default(server.num_per_range, "vfchost", "num_per_range")
                .unwrap_or_default(),
            inherited: or_default(server.viosnpiv0_num_per_range, "viosnpiv0", "num_per_range")
                .unwrap_or(1),
            data_plane: None,
            port: port.map(|queues| most.map_or(queues, |most| most.min(queues))),
            limit_intr: server.limit_intr.unwrap_or(false),
            levels: questions.levels(world, at),
            policy: questions.policy(world),
            earlier: None,
        }
    }

    fn place(&self, number: usize) -> (&str, String) {
        let mut at = self.client.at.as_str();
        let mut event = "now".to_owned();
        for step in &self.steps[..number] {
            event = match step {
                Step::Move(to) => {
                    at = to;
                    format!("move to {to}")
                }
                Step::Reconfigure => "client's adapter configured anew".to_owned(),
                Step::Renegotiate => "server restarted or adapter mapped anew".to_owned(),
            };
        }
        (at, event)
    }

    fn stage(
        &self,
        facts: &Facts,
        questions: &Questions,
        histories: &[(World, Vec<Reached>)],
        number: usize,
    ) -> Stage {
        let (at, event) = self.place(number);
        let every: Vec<&World> = histories.iter().map(|(world, _)| world).collect();
        let mut by_count: BTreeMap<u32, Vec<(&World, &Reached)>> = BTreeMap::new();
        for (world, history) in histories {
            let reached = &history[number];
            by_count.entry(reached.answer.channels).or_default().push((world, reached));
        }
        let cases = by_count.into_iter().rev().map(|(queues, some)| {
            let worlds: Vec<&World> = some.iter().map(|(world, _)| *world).collect();
            let reached: Vec<&Reached> = some.iter().map(|(_, reached)| *reached).collect();
            let shown = simplest(&reached);
            let limits = shown.answer.offers.iter().filter(|offer| offer.limits);
            Case {
                queues,
                conditions: questions.conditions(&worlds, &every),
                figure: self.figure(facts, questions, at, shown),
                limits: limits.map(|offer| offer.term).collect(),
                why: words::why(self, at, &reached.iter().map(|r| &r.answer).collect::<Vec<_>>()),
                brings_back: self.brings_back(facts, at, &reached),
                maximum: shown.answer.maximum,
            }
        });
        Stage { event, server: at.to_owned(), cases: cases.collect() }
    }

    /// What brings more. Of several ways to this count it is what all of them need; where they need more than that, which
    /// of them it is comes first.
    fn brings_back(&self, facts: &Facts, at: &str, reached: &[&Reached]) -> Vec<String> {
        let ways = reached.iter().map(|reached| words::brings_back(self, facts, at, reached));
        let ways: Vec<Vec<String>> = ways.collect();
        let Some((first, others)) = ways.split_first() else { return Vec::new() };
        if others.iter().all(|other| other == first) {
            return first.clone();
        }
        // To how many queues a step leads may differ where the step does not.
        let step = |text: &String| match text.rsplit_once(": ") {
            Some((step, count)) if count.ends_with(" queues") => step.to_owned(),
            _ => text.clone(),
        };
        let ways: Vec<Vec<String>> =
            ways.iter().map(|way| way.iter().map(step).collect()).collect();
        let all = |step: &&String| ways.iter().all(|way| way.contains(step));
        let mut common: Vec<String> =
            ways.iter().flatten().filter(all).cloned().collect::<Vec<_>>();
        let mut seen = std::collections::BTreeSet::new();
        common.retain(|step| seen.insert(step.clone()));
        match common.is_empty() {
            true => vec!["find out first which of these it is".to_owned()],
            false => {
                if ways.iter().any(|way| way.len() > common.len()) {
                    let then = "find out which of these it is: some need more than that";
                    common.push(then.to_owned());
                }
                common
            }
        }
    }

    /// The minimum with every term and where each comes from.
    fn figure(&self, facts: &Facts, questions: &Questions, at: &str, reached: &Reached) -> Figure {
        let none = Server::default();
        let server = self.server.get(at).unwrap_or(&none);
        let [vios, firmware, port] = questions.server_sources(at);
        let given = |key: &str| match self.lines.get(key) {
            Some(at) => Origin::Capture(*at),
            None => Origin::Given,
        };
        let here = |name: &str| given(&format!("server.{at}.{name}"));
        let attribute = |known: bool, key: &str, device: &str, name: &str| match facts
            .attribute(device, name)
        {
            Some(fact) if !known => Origin::Fact(Source {
                text: format!("not given; the default, by {}", fact.source.text),
                ..fact.source.clone()
            }),
            _ => given(key),
        };
        let offers = reached.answer.offers.iter();
        let terms = offers.filter_map(|offer| {
            let origin = match offer.term {
                Limit::ClientLevel => Origin::Fact(questions.client_source().clone()),
                Limit::ServerLevel => Origin::Fact(vios.clone()),
                Limit::Firmware => Origin::Fact(firmware.clone()),
                Limit::PortLevel => Origin::Fact(port.clone()),
                Limit::ClientAttribute => {
                    let (known, name) = (self.client.num_io_queues.is_some(), "num_io_queues");
                    attribute(known, "client.num_io_queues", "fcs-client", name)
                }
                Limit::Inherited => {
                    let known = server.viosnpiv0_num_per_range.is_some();
                    let key = format!("server.{at}.viosnpiv0_num_per_range");
                    attribute(known, &key, "viosnpiv0", "num_per_range")
                }
                Limit::Port => {
                    let (known, name) = (server.num_io_queues.is_some(), "num_io_queues");
                    attribute(known, &format!("server.{at}.{name}"), "fcs", name)
                }
                Limit::Earlier => Origin::Computed,
                Limit::NumPerRange => here("num_per_range"),
                Limit::LimitIntr => here("limit_intr"),
                Limit::Client | Limit::Adapter | Limit::DataPlane => Origin::Given,
            };
            let count = f64::from(offer.count?.max(1));
            Some(Term::new(&words::name(offer.term), count, "", origin))
        });
        let terms: Vec<Term> = terms.collect();
        let names: Vec<&str> = terms.iter().map(|term| term.name.as_str()).collect();
        Figure::new(&format!("queues at {at}"), "", &format!("min({})", names.join(", ")), terms)
    }
}

/// Of several ways to the same count, the one with the fewest limits.
fn simplest<'a>(some: &[&'a Reached]) -> &'a Reached {
    let limits = |reached: &&&Reached| reached.answer.offers.iter().filter(|o| o.limits).count();
    some.iter().min_by_key(limits).unwrap_or(&some[0])
}

fn reached(terms: NpivTerms, answer: NpivNegotiated) -> Reached {
    let anew = negotiate_npiv(&NpivTerms { earlier: None, ..terms });
    Reached { answer, terms, anew }
}

/// The default of an attribute that is a number.
fn default_of(facts: &Facts, device: &str, name: &str) -> Option<u32> {
    let default = facts.attribute(device, name)?.default.as_ref()?.as_number()?;
    u32::try_from(default).ok()
}
