//! The format of a data file, and what is checked when one is taken over.

use std::collections::BTreeMap;

use fabric::negotiate::Policy;
use fabric::suggest::nearest;
use serde::Deserialize;

use super::id::{BY_SIZE, OF_STREAMS, size_of, streamed};
use super::{
    Adapter, Attribute, ClientPolicy, Contradiction, DEVICES, Facts, FactsError, Level, Machine,
    Number, Product, Requirement, Setting,
};
use crate::trace::Source;

/// Who wrote a file: the ones that come with the program may name numbers for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    Users,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    source: BTreeMap<String, RawSource>,
    #[serde(default)]
    number: BTreeMap<String, RawNumber>,
    #[serde(default)]
    attribute: BTreeMap<String, BTreeMap<String, RawAttribute>>,
    #[serde(default)]
    adapter: BTreeMap<String, RawAdapter>,
    #[serde(default)]
    requirement: BTreeMap<String, BTreeMap<String, RawRequirement>>,
    #[serde(default)]
    machine: BTreeMap<String, RawMachine>,
    #[serde(default)]
    policy: BTreeMap<String, RawPolicy>,
    #[serde(default)]
    contradiction: BTreeMap<String, RawContradiction>,
    #[serde(default)]
    rule: BTreeMap<String, RawRule>,
}

/// What a user wants of a rule of the advisor.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    silent: bool,
    why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSource {
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNumber {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    unit: String,
    meaning: String,
    source: String,
    confirmed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAttribute {
    min: Option<i64>,
    max: Option<i64>,
    #[serde(default)]
    words: Vec<String>,
    default: Option<Setting>,
    meaning: String,
    effect: Option<String>,
    source: String,
    confirmed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAdapter {
    name: String,
    link_gbit: u32,
    ports: Option<u32>,
    multi_queue: Option<bool>,
    io_queues_max: Option<u32>,
    source: String,
    confirmed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRequirement {
    at_least: Vec<String>,
    source: String,
    confirmed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMachine {
    name: String,
    generation: String,
    source: String,
    confirmed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    policy: Policy,
    source: String,
    confirmed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawContradiction {
    says: String,
    numbers: String,
    used: String,
    figures: Vec<String>,
    source: String,
}

impl Facts {
    /// Takes the facts of one file over.
    pub(super) fn merge(&mut self, text: &str, whose: Whose) -> Result<(), FactsError> {
        let document: Document =
            toml::from_str(text).map_err(|error| FactsError::Syntax(error.to_string()))?;
        for (id, source) in document.source {
            self.sources.insert(id, source.text);
        }
        for (id, raw) in document.number {
            let number = self.accept_number(&id, raw, whose)?;
            self.numbers.insert(id, number);
        }
        for (device, attributes) in document.attribute {
            for (name, raw) in attributes {
                let attribute = self.accept_attribute(&device, &name, raw)?;
                self.attributes.entry(device.clone()).or_default().insert(name, attribute);
            }
        }
        for (feature, raw) in document.adapter {
            let adapter = self.accept_adapter(&feature, raw)?;
            self.adapters.insert(adapter.feature.clone(), adapter);
        }
        for (feature, products) in document.requirement {
            for (product, raw) in products {
                let requirement = self.accept_requirement(&feature, &product, raw)?;
                let of_feature = self.requirements.entry(feature.clone()).or_default();
                of_feature.insert(requirement.product, requirement);
            }
        }
        for (model, raw) in document.machine {
            let machine = self.accept_machine(&model, raw)?;
            self.machines.insert(machine.model.clone(), machine);
        }
        for (system, raw) in document.policy {
            let policy = self.accept_policy(&system, raw)?;
            self.policies.insert(policy.system, policy);
        }
        for (id, raw) in document.contradiction {
            let source = self.source(&format!("contradiction.{id}"), raw.source, true)?;
            let RawContradiction { says, numbers, used, figures, .. } = raw;
            let one = Contradiction { id: id.clone(), says, numbers, used, figures, source };
            self.contradictions.insert(id, one);
        }
        for (name, RawRule { silent, why }) in document.rule {
            if crate::advise::rule(&name).is_none() {
                let all = crate::advise::rules().map(|rule| rule.name);
                let meant = nearest(&name, all).map(|known| format!(" (did you mean `{known}`?)"));
                return Err(FactsError::key(
                    format!("rule.{name}"),
                    "expected the name of a rule",
                    format!("take the name that stands in a finding{}", meant.unwrap_or_default()),
                ));
            }
            match silent {
                true => self.silenced.insert(name, why),
                false => self.silenced.remove(&name),
            };
        }
        Ok(())
    }

    fn source(&self, key: &str, id: String, confirmed: bool) -> Result<Source, FactsError> {
        match self.sources.get(&id) {
            Some(text) => Ok(Source { text: text.clone(), id, confirmed }),
            None => {
                let known = nearest(&id, self.sources.keys().map(String::as_str));
                let meant = known.map(|known| format!(" (did you mean `{known}`?)"));
                Err(FactsError::key(
                    format!("{key}.source"),
                    "expected the name of a source",
                    format!("add [source.{id}] with its text{}", meant.unwrap_or_default()),
                ))
            }
        }
    }

    fn accept_number(&self, id: &str, raw: RawNumber, whose: Whose) -> Result<Number, FactsError> {
        let key = format!("number.\"{id}\"");
        self.check_number_id(&key, id, whose)?;
        let (low, high) = match (raw.value, raw.low, raw.high) {
            (Some(value), None, None) => (value, value),
            (None, Some(low), Some(high)) => (low, high),
            _ => {
                let expected = "expected either `value`, or `low` and `high`";
                return Err(FactsError::key(key, expected, "give one of the two"));
            }
        };
        if !(low.is_finite() && high.is_finite() && 0.0 <= low && low <= high) {
            let expected = "expected numbers from 0, `low` not above `high`";
            return Err(FactsError::key(key, expected, "correct the values"));
        }
        if let Some(there) = self.numbers.get(id).or_else(|| self.sibling(id))
            && there.unit != raw.unit
        {
            return Err(FactsError::key(
                format!("{key}.unit"),
                &format!("expected `{}`", there.unit),
                "convert the value to that unit",
            ));
        }
        let source = self.source(&key, raw.source, raw.confirmed)?;
        Ok(Number { id: id.to_owned(), low, high, unit: raw.unit, meaning: raw.meaning, source })
    }

    /// Another number of the same family, for a size that is new.
    fn sibling(&self, id: &str) -> Option<&Number> {
        let sized = BY_SIZE.into_iter().find(|family| id.starts_with(family));
        self.numbers(sized.or(streamed(id).map(|_| OF_STREAMS))?).next()
    }

    /// A number that nothing reads would be a typing error that goes unseen.
    fn check_number_id(&self, key: &str, id: &str, whose: Whose) -> Result<(), FactsError> {
        if whose == Whose::Ours
            || size_of(id).is_some()
            || streamed(id).is_some()
            || self.numbers.contains_key(id)
        {
            return Ok(());
        }
        let fix = match nearest(id, self.numbers.keys().map(String::as_str)) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "see docs/guide/planner-sizing.md for the keys".to_owned(),
        };
        Err(FactsError::key(key, "expected the key of a number that is used", fix))
    }

    fn accept_attribute(
        &self,
        device: &str,
        name: &str,
        raw: RawAttribute,
    ) -> Result<Attribute, FactsError> {
        let key = format!("attribute.{device}.{name}");
        if !DEVICES.contains(&device) {
            let expected = format!("expected one of {}", DEVICES.join(", "));
            return Err(FactsError::key(key, &expected, "correct the kind of device"));
        }
        let number = raw.default.as_ref().and_then(Setting::as_number);
        let below = |a: Option<i64>, b: Option<i64>| a.zip(b).is_some_and(|(a, b)| a < b);
        if below(raw.max, raw.min) || below(number, raw.min) || below(raw.max, number) {
            let expected = "expected `min` ≤ `default` ≤ `max`";
            return Err(FactsError::key(key, expected, "correct the values"));
        }
        if let Some(Setting::Word(word)) = &raw.default
            && !raw.words.is_empty()
            && !raw.words.contains(word)
        {
            let expected = format!("expected one of {}", raw.words.join(", "));
            let fix = "correct `default` or add the word to `words`";
            return Err(FactsError::key(format!("{key}.default"), &expected, fix));
        }
        let source = self.source(&key, raw.source, raw.confirmed)?;
        Ok(Attribute {
            device: device.to_owned(),
            name: name.to_owned(),
            min: raw.min,
            max: raw.max,
            words: raw.words,
            default: raw.default,
            meaning: raw.meaning,
            effect: raw.effect,
            source,
        })
    }

    fn accept_adapter(&self, feature: &str, raw: RawAdapter) -> Result<Adapter, FactsError> {
        let key = format!("adapter.{feature}");
        if raw.link_gbit == 0 || raw.ports == Some(0) || raw.io_queues_max == Some(0) {
            let expected = "expected `link_gbit`, `ports` and `io_queues_max` from 1";
            return Err(FactsError::key(
                key,
                expected,
                "correct the value, or leave `io_queues_max` out",
            ));
        }
        let source = self.source(&key, raw.source, raw.confirmed)?;
        Ok(Adapter {
            feature: feature.to_ascii_uppercase(),
            name: raw.name,
            link_gbit: raw.link_gbit,
            ports: raw.ports,
            multi_queue: raw.multi_queue,
            io_queues_max: raw.io_queues_max,
            source,
        })
    }

    fn accept_requirement(
        &self,
        feature: &str,
        product: &str,
        raw: RawRequirement,
    ) -> Result<Requirement, FactsError> {
        let key = format!("requirement.{feature}.{product}");
        let product = product_of(&key, product)?;
        let levels = raw.at_least.iter().map(|text| Level::read(product, text));
        let at_least: Vec<Level> = levels.collect::<Result<_, _>>().map_err(|error| {
            FactsError::key(format!("{key}.at_least"), &error.to_string(), "correct the level")
        })?;
        if at_least.is_empty() {
            let expected = "expected at least one level";
            return Err(FactsError::key(
                format!("{key}.at_least"),
                expected,
                "add the least level",
            ));
        }
        let source = self.source(&key, raw.source, raw.confirmed)?;
        Ok(Requirement { feature: feature.to_owned(), product, at_least, source })
    }

    fn accept_policy(&self, system: &str, raw: RawPolicy) -> Result<ClientPolicy, FactsError> {
        let key = format!("policy.{system}");
        let system = product_of(&key, system)?;
        let source = self.source(&key, raw.source, raw.confirmed)?;
        Ok(ClientPolicy { system, policy: raw.policy, source })
    }

    fn accept_machine(&self, model: &str, raw: RawMachine) -> Result<Machine, FactsError> {
        let key = format!("machine.{model}");
        if let Err(error) = Level::read(Product::Server, &raw.generation) {
            let key = format!("{key}.generation");
            return Err(FactsError::key(key, &error.to_string(), "correct the generation"));
        }
        let source = self.source(&key, raw.source, raw.confirmed)?;
        Ok(Machine {
            model: model.to_ascii_uppercase(),
            name: raw.name,
            generation: raw.generation,
            source,
        })
    }
}

fn product_of(key: &str, word: &str) -> Result<Product, FactsError> {
    Product::ALL.into_iter().find(|known| known.word() == word).ok_or_else(|| {
        let expected = format!("expected one of {}", Product::ALL.map(Product::word).join(", "));
        FactsError::key(key, &expected, "correct the name")
    })
}
