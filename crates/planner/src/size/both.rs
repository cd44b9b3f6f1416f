//! One load, sized twice: by the published tables, and by what was measured on a host of our own.

use super::answer::marked;
use super::{SizeError, Sizing, Workloads};
use crate::facts::{Facts, id};
use crate::report::{Answer, Block, Section, Table, Tone};
use crate::trace::number;

/// The two answers.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Both {
    /// By the published tables.
    pub published: Sizing,
    /// By what was measured.
    pub measured: Sizing,
    /// What each of the two is to be given, in a sentence.
    pub advice: [String; 2],
    /// The clock of the host that was measured.
    #[serde(skip)]
    clock_hz: f64,
}

impl Both {
    /// Sizes a load by both.
    ///
    /// # Errors
    /// A value that cannot be, for one of the two.
    pub fn size(
        workloads: &Workloads,
        published: &Facts,
        measured: &Facts,
    ) -> Result<Both, SizeError> {
        let clock_hz = measured.number(id::SEA_REFERENCE_CLOCK).high;
        let one = workloads.size(published)?;
        let other = workloads.size(measured)?;
        let advice = [advice(&one, published), advice(&other, measured)];
        Ok(Both { published: one, measured: other, advice, clock_hz })
    }
}

/// Whole processors or a share, by the rule of the source: a share for little or uneven work.
fn advice(sizing: &Sizing, facts: &Facts) -> String {
    let load = sizing.totals.first().map_or(f64::NAN, |load| load.high);
    let below = facts.number(id::SEA_SHARED_BELOW).high;
    let dedicated = sizing.dedicated.as_ref().map(|figure| format!("{} dedicated", marked(figure)));
    let shared = sizing.entitlement.as_ref().map(|figure| {
        let entitled = marked(figure);
        format!("a shared partition, uncapped, with an entitlement of {entitled}")
    });
    let load_is = format!("The load takes {} processors", number(load));
    match (dedicated, shared) {
        (Some(dedicated), Some(shared)) if load < below => format!(
            "{load_is}, less than {}: take {shared}; or {dedicated} if nothing else may delay it.",
            number(below)
        ),
        (Some(dedicated), Some(shared)) => {
            format!("{load_is}: take {dedicated}; or, where it is inconsistent, {shared}.")
        }
        (Some(one), None) | (None, Some(one)) => format!("{load_is}: take {one}."),
        (None, None) => format!("{load_is}."),
    }
}

impl Answer for Both {
    fn kind(&self) -> &'static str {
        "size"
    }

    fn title(&self) -> String {
        "Size of a shared Ethernet adapter".to_owned()
    }

    fn summary(&self) -> String {
        format!(
            "By the published tables: {} As measured: {}",
            self.published.summary(),
            self.measured.summary()
        )
    }

    fn sections(&self) -> Vec<Section> {
        let columns = [
            "by",
            "#processors",
            "#dedicated processors",
            "#shared processors",
            "#entitlement with contingency",
        ];
        let mut table = Table::new("", &columns);
        let here = format!("what was measured, {} GHz", number(self.clock_hz / 1e9));
        let rows = [("the published tables".to_owned(), &self.published), (here, &self.measured)];
        for (by, sizing) in rows {
            let value = |figure: &Option<_>| figure.as_ref().map_or("–".to_owned(), marked);
            table.row([
                by,
                sizing.totals.first().map_or("–".to_owned(), marked),
                value(&sizing.dedicated),
                value(&sizing.shared),
                value(&sizing.entitlement),
            ]);
        }
        let [published, measured] = &self.advice;
        let mut sections = vec![
            Section::new("Both", Tone::Plain).block(Block::Table(table)).block(Block::List(vec![
                format!("By the published tables: {published}"),
                format!("As measured: {measured}"),
                "Of our own server, a dedicated processor is a CPU that the data plane has to itself (`--cpus`), and a shared one is a CPU that others use too."
                    .to_owned(),
            ])),
        ];
        for (by, sizing) in [("published", &self.published), ("measured", &self.measured)] {
            sections.extend(sizing.sections().into_iter().map(|section| Section {
                heading: format!("{by}: {}", section.heading),
                ..section
            }));
        }
        sections
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(self)
    }
}
