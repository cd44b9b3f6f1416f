//! What is known about who supports multi-queue, and the worlds that what is unknown leaves open.

use fabric::negotiate::{Levels, Policy, Subqueues};

use super::plan::{LpmError, Plan, Server};
use crate::facts::{Facts, Level, Product, Verdict, id};
use crate::trace::Source;

/// The feature that the requirements are asked for.
pub(super) const FEATURE: &str = "npiv-multi-queue";

/// One thing that decides, with all values that it may have; one value when it is known.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// Whose, and what: `VIOS of a`.
    pub(super) what: String,
    /// What it may be.
    pub(super) options: Vec<Ability>,
    /// The fact that decided, or that would.
    pub(super) source: Source,
}

/// One value of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ability {
    /// Whether it supports multi-queue.
    Able(bool),
    /// What the firmware does.
    Firmware(Subqueues),
    /// How the client negotiates again.
    Policy(Policy),
}

impl Ability {
    /// As a condition, after the words of the question.
    pub(super) fn words(self) -> &'static str {
        match self {
            Ability::Able(true) | Ability::Firmware(Subqueues::Yes) => "has multi-queue",
            Ability::Able(false) => "has a single queue",
            Ability::Firmware(Subqueues::No) => "is older than 930",
            Ability::Firmware(Subqueues::NoUncounted) => "is of release 930",
            Ability::Policy(Policy::Aix) => "never grows back by itself",
            Ability::Policy(Policy::Linux) => "grows back by itself",
        }
    }
}

/// All questions in a fixed order: the client's level, its policy, then three of each server.
#[derive(Debug, Clone)]
pub(super) struct Questions {
    pub(super) all: Vec<Question>,
    servers: Vec<String>,
}

/// One answer to each question, by its place among the options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct World(Vec<usize>);

/// The most stages that are followed in all worlds together.
const STAGES_MAX: usize = 100_000;

const CLIENT: usize = 0;
const POLICY: usize = 1;
const OF_SERVERS: usize = 2;
const PER_SERVER: usize = 3;

impl Questions {
    pub(super) fn of(plan: &Plan, facts: &Facts) -> Result<Questions, LpmError> {
        let mut all = vec![client_level(plan, facts)?, policy(plan, facts)];
        for (name, server) in &plan.server {
            all.push(vios(name, server, facts)?);
            all.push(firmware(name, server, facts)?);
            all.push(port(name, server, facts));
        }
        Ok(Questions { all, servers: plan.server.keys().cloned().collect() })
    }

    /// Every combination of what is open, for a plan of so many steps.
    pub(super) fn worlds(&self, steps: usize) -> Result<Vec<World>, LpmError> {
        let mut worlds = vec![World(Vec::new())];
        for question in &self.all {
            if worlds.len() * question.options.len() * (steps + 1) > STAGES_MAX {
                let open = self.all.iter().filter(|question| question.options.len() > 1);
                let names: Vec<&str> = open.map(|question| question.what.as_str()).collect();
                return Err(LpmError::TooManyUnknown(names.join(", ")));
            }
            worlds = worlds
                .into_iter()
                .flat_map(|world| {
                    (0..question.options.len()).map(move |option| {
                        let mut chosen = world.0.clone();
                        chosen.push(option);
                        World(chosen)
                    })
                })
                .collect();
        }
        Ok(worlds)
    }

    fn ability(&self, world: &World, place: usize) -> Option<Ability> {
        self.all.get(place)?.options.get(*world.0.get(place)?).copied()
    }

    fn able(&self, world: &World, place: usize) -> bool {
        self.ability(world, place) == Some(Ability::Able(true))
    }

    fn place_of(&self, server: &str) -> usize {
        let index = self.servers.iter().position(|name| name == server).unwrap_or_default();
        OF_SERVERS + PER_SERVER * index
    }

    /// Who supports multi-queue at a server, in this world.
    pub(super) fn levels(&self, world: &World, server: &str) -> Levels {
        let place = self.place_of(server);
        let firmware = match self.ability(world, place + 1) {
            Some(Ability::Firmware(subqueues)) => subqueues,
            _ => Subqueues::No,
        };
        Levels {
            client: self.able(world, CLIENT),
            server: self.able(world, place),
            firmware,
            port: self.able(world, place + 2),
        }
    }

    /// How the client negotiates again, in this world.
    pub(super) fn policy(&self, world: &World) -> Policy {
        match self.ability(world, POLICY) {
            Some(Ability::Policy(policy)) => policy,
            _ => Policy::Aix,
        }
    }

    /// The facts that decide about the client's level, and about VIOS, firmware and adapter of a server.
    pub(super) fn client_source(&self) -> &Source {
        &self.all[CLIENT].source
    }

    pub(super) fn server_sources(&self, server: &str) -> [&Source; PER_SERVER] {
        let place = self.place_of(server);
        [place, place + 1, place + 2].map(|place| &self.all[place].source)
    }

    /// What all of `some` have in common that not all of `every` have, as conditions.
    pub(super) fn conditions(&self, some: &[&World], every: &[&World]) -> Vec<String> {
        let mut conditions = Vec::new();
        for (place, question) in self.all.iter().enumerate() {
            let seen = |worlds: &[&World]| -> Vec<usize> {
                let all = 0..question.options.len();
                all.filter(|option| worlds.iter().any(|w| w.0.get(place) == Some(option))).collect()
            };
            let (here, anywhere) = (seen(some), seen(every));
            if here.len() < anywhere.len() {
                let words = here.iter().map(|option| question.options[*option].words());
                conditions.push(format!(
                    "{} {}",
                    question.what,
                    words.collect::<Vec<_>>().join(" or ")
                ));
            }
        }
        conditions
    }

    /// The questions to which `worlds` give more than one answer.
    pub(super) fn open<'a>(&'a self, worlds: &'a [&World]) -> impl Iterator<Item = &'a Question> {
        self.all.iter().enumerate().filter_map(|(place, question)| {
            let first = worlds.first()?.0.get(place)?;
            worlds.iter().any(|world| world.0.get(place) != Some(first)).then_some(question)
        })
    }
}

fn options_of(verdict: Option<Verdict>) -> Vec<Ability> {
    match verdict {
        Some(Verdict::Met) => vec![Ability::Able(true)],
        Some(Verdict::NotMet) => vec![Ability::Able(false)],
        Some(Verdict::Unknown) | None => vec![Ability::Able(true), Ability::Able(false)],
    }
}

/// The verdict on a level, where there is one, and the source of what it was measured against.
pub(super) fn judge(
    facts: &Facts,
    product: Product,
    level: Option<&str>,
    key: &str,
) -> Result<(Option<Verdict>, Source), LpmError> {
    let requirement = facts.requirement(FEATURE, product);
    let level = level.map(|text| Level::read(product, text)).transpose();
    let level = level.map_err(|error| LpmError::level(key.to_owned(), &error))?;
    let source = requirement.map_or_else(unknown_source, |needed| needed.source.clone());
    Ok((level.zip(requirement).map(|(level, needed)| needed.judge(&level)), source))
}

fn unknown_source() -> Source {
    Source { id: "unknown".to_owned(), text: "not in the data".to_owned(), confirmed: false }
}

fn client_level(plan: &Plan, facts: &Facts) -> Result<Question, LpmError> {
    let product = plan.client.system.product();
    let (verdict, source) = judge(facts, product, plan.client.level.as_deref(), "client.level")?;
    Ok(Question { what: format!("{product} of the client"), options: options_of(verdict), source })
}

fn policy(plan: &Plan, facts: &Facts) -> Question {
    let known = facts.policy(plan.client.system.product());
    let source = known.map_or_else(unknown_source, |known| known.source.clone());
    let options = match plan.client.policy.or(known.map(|known| known.policy)) {
        Some(policy) => vec![Ability::Policy(policy)],
        None => vec![Ability::Policy(Policy::Aix), Ability::Policy(Policy::Linux)],
    };
    Question { what: "the client".to_owned(), options, source }
}

fn vios(name: &str, server: &Server, facts: &Facts) -> Result<Question, LpmError> {
    let key = format!("server.{name}.vios");
    let (verdict, source) = judge(facts, Product::Vios, server.vios.as_deref(), &key)?;
    Ok(Question { what: format!("VIOS of {name}"), options: options_of(verdict), source })
}

/// The processor generation of a server: what was given, or that of the machine.
pub(super) fn generation<'a>(server: &'a Server, facts: &'a Facts) -> Option<&'a str> {
    let machine = || facts.machine(server.machine.as_deref()?).map(|m| m.generation.as_str());
    server.generation.as_deref().or_else(machine)
}

/// Firmware at the needed level connects queues. Below it, the release decides whether the single queue counts as
/// negotiated (rows 8 and 9 of the table). A processor that is too old decides alone.
fn firmware(name: &str, server: &Server, facts: &Facts) -> Result<Question, LpmError> {
    let what = format!("firmware of {name}");
    let key = format!("server.{name}.generation");
    let (processor, of_server) = judge(facts, Product::Server, generation(server, facts), &key)?;
    if processor == Some(Verdict::NotMet) {
        return Ok(Question {
            what,
            options: vec![Ability::Firmware(Subqueues::No)],
            source: of_server,
        });
    }
    let key = format!("server.{name}.firmware");
    let (verdict, source) = judge(facts, Product::Firmware, server.firmware.as_deref(), &key)?;
    let options = match verdict {
        Some(Verdict::Met) => vec![Subqueues::Yes],
        Some(Verdict::NotMet) => older_firmware(server.firmware.as_deref(), facts),
        Some(Verdict::Unknown) | None => {
            vec![Subqueues::Yes, Subqueues::NoUncounted, Subqueues::No]
        }
    };
    Ok(Question { what, options: options.into_iter().map(Ability::Firmware).collect(), source })
}

fn older_firmware(level: Option<&str>, facts: &Facts) -> Vec<Subqueues> {
    let level = level.and_then(|text| Level::read(Product::Firmware, text).ok());
    let release = level.and_then(|level| level.parts().first().copied()).map(f64::from);
    let uncounted = facts.number(id::LPM_FIRMWARE_UNCOUNTED).low;
    match release {
        Some(release) if release < uncounted => vec![Subqueues::No],
        Some(release) if release <= uncounted => vec![Subqueues::NoUncounted],
        _ => vec![Subqueues::NoUncounted, Subqueues::No],
    }
}

/// Whether the physical adapter has multi-queue: a port that is said to have several queues has.
fn port(name: &str, server: &Server, facts: &Facts) -> Question {
    let adapter = server.adapter.as_deref().and_then(|feature| facts.adapter(feature));
    let options = match (adapter.and_then(|adapter| adapter.multi_queue), server.num_io_queues) {
        (Some(able), _) => vec![Ability::Able(able)],
        (None, Some(_)) => vec![Ability::Able(true)],
        (None, None) => options_of(None),
    };
    Question {
        what: format!("Fibre Channel adapter of {name}"),
        options,
        source: adapter.map_or_else(unknown_source, |adapter| adapter.source.clone()),
    }
}
