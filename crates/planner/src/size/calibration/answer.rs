//! A calibration as the reports show it: the published tables, with ours beside.

use super::{Calibration, Check, Cost, Load, Spread, THREADS, rate_of};
use crate::report::{Answer, Block, Section, Table, Tone};
use crate::trace::number;

impl Answer for Calibration {
    fn kind(&self) -> &'static str {
        "calibration"
    }

    fn title(&self) -> String {
        "What a shared Ethernet adapter costs on this host".to_owned()
    }

    fn summary(&self) -> String {
        let host = &self.host;
        let measured = format!(
            "{}, {} GHz ({}), {} loads measured {}.",
            host.processor,
            number(host.clock_hz / 1e9),
            host.clock_by,
            self.costs.len(),
            host.between.words()
        );
        match self.checked() {
            Some(checked) => format!("{measured} {checked}"),
            None => measured,
        }
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        for (threaded, _) in THREADS {
            if !self.costs.iter().any(|cost| cost.case.threaded == threaded) {
                continue;
            }
            let what = self.host.between.thread(threaded);
            let section = Section::new(what, Tone::Plain)
                .block(self.table(threaded, "stream", "MB/s here", |load| {
                    !matches!(load, Load::Transactions { .. })
                }))
                .block(self.table(threaded, "request and response", "a second here", |load| {
                    matches!(load, Load::Transactions { .. })
                }));
            sections.push(section);
        }
        sections.extend(self.check_section());
        sections.extend(Section::to_mind(&self.notes));
        if let Some(file) = &self.file {
            let command = format!("trunkline size sea --streaming 200 --measured {file}");
            let next = Section::new("Next", Tone::Plain);
            sections.push(next.block(Block::Command(command)));
        }
        sections
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        let mut data = serde_json::to_value(self)?;
        let clock = self.host.clock_hz;
        let costs = self.costs.iter().map(|cost| {
            let mut value = serde_json::to_value(cost)?;
            value["title"] = cost.case.title().into();
            value["key"] = cost.case.key().into();
            value["cycles"] = serde_json::to_value(cost.cycles(clock))?;
            value["published"] = serde_json::to_value(self.published(cost))?;
            value["units_per_second"] = serde_json::to_value(cost.rate())?;
            value["processors"] = serde_json::to_value(cost.processors())?;
            Ok(value)
        });
        data["costs"] = costs.collect::<Result<Vec<_>, serde_json::Error>>()?.into();
        let checks = self.checks.iter().map(|check| {
            let mut value = serde_json::to_value(check)?;
            value["title"] = check.mix.title().into();
            Ok(value)
        });
        data["checks"] = checks.collect::<Result<Vec<_>, serde_json::Error>>()?.into();
        data["worst_error_percent"] = serde_json::to_value(self.worst_error_percent())?;
        Ok(data)
    }
}

impl Calibration {
    /// What the built-in table, or that of the user, says.
    fn published(&self, cost: &Cost) -> Option<f64> {
        self.published.find(&cost.case.key()).map(|number| number.high)
    }

    fn table(&self, threaded: bool, what: &str, rate: &str, wanted: fn(Load) -> bool) -> Block {
        let columns = [
            what,
            "#cycles published",
            "#cycles here",
            "#lowest to highest",
            &format!("#{rate}"),
            "#% of a processor",
        ];
        let mut table = Table::new("", &columns);
        let of = |cost: &&Cost| cost.case.threaded == threaded && wanted(cost.case.load);
        for cost in self.costs.iter().filter(of) {
            let cycles = cost.cycles(self.host.clock_hz);
            let rate = cost.rate().map(|rate| rate_of(cost.case.load, rate.median));
            // The unit stands in the head.
            let rate = rate.and_then(|rate| Some(rate.split_once(' ')?.0.to_owned()));
            table.row([
                cost.case.load.title(),
                value(self.published(cost)),
                value(cycles.map(|cycles| cycles.median)),
                reach(cycles.as_ref()),
                rate.unwrap_or_default(),
                value(cost.processors().map(|used| used.median * 100.0)),
            ]);
        }
        Block::Table(table)
    }

    fn check_section(&self) -> Option<Section> {
        let columns =
            ["mix", "#processors predicted", "#measured", "#error %", "#lowest to highest"];
        let mut table = Table::new("", &columns);
        for Check { mix, measured, predicted, error_percent, .. } in &self.checks {
            table.row([
                mix.title(),
                number(predicted.median),
                number(measured.median),
                number(error_percent.median),
                reach(Some(error_percent)),
            ]);
        }
        let section = || {
            Section::new(
                "Predicted against measured, of mixes that are not in the tables",
                Tone::Plain,
            )
            .block(Block::Table(table))
        };
        (!self.checks.is_empty()).then(section)
    }
}

fn value(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), number)
}

fn reach(spread: Option<&Spread>) -> String {
    spread.map_or_else(String::new, |spread| {
        format!("{} to {}", number(spread.low), number(spread.high))
    })
}
