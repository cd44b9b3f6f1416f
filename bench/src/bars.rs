//! Bars: reading `bench/bars.toml` and judging results by it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::figure::{Figure, Series, Spread};
use anyhow::{Context as _, Result};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    bar: Vec<Bar>,
}

/// One bar, as it stands in the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bar {
    pub(crate) case: String,
    pub(crate) figure: Figure,
    pub(crate) of: String,
    pub(crate) against: Option<String>,
    pub(crate) at_least: Option<f64>,
    pub(crate) at_most: Option<f64>,
    /// The quotient is the median of those of neighbouring rounds, and not one of medians: what changes on the machine meanwhile meets both of a pair.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pairs: bool,
    pub(crate) why: String,
}

/// A bar and what was reached.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Verdict {
    pub(crate) bar: Bar,
    /// A quotient is taken of the medians, or is the median of all ([`Bar::pairs`]); it reaches from the lowest to the highest quotient of two neighbouring rounds. None: nothing was measured.
    pub(crate) reached: Option<Spread>,
    /// How it was judged.
    pub(crate) judgement: Judgement,
}

/// What a bar says about a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Judgement {
    Met,
    Missed,
    /// The rounds of one contestant differ so much that their median says nothing, whether it is good or bad.
    Unsteady,
    /// The contestants ran, and the figure was not measured: rounds so short that nothing was done in them.
    Unmeasured,
    /// The bar only shows.
    Shown,
}

/// Rounds of one contestant may differ by this factor.
const STEADY: f64 = 3.0;

/// All bars of the file.
pub(crate) fn read(path: &Path) -> Result<Vec<Bar>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file: File =
        toml::from_str(&text).with_context(|| format!("{} is not understood", path.display()))?;
    Ok(file.bar)
}

impl Bar {
    fn is_for(&self, case: &str) -> bool {
        match self.case.strip_suffix('*') {
            Some(prefix) => case.starts_with(prefix),
            None => self.case == case,
        }
    }

    /// The limit as readers know it.
    pub(crate) fn limit(&self) -> String {
        let times = if self.against.is_some() { " ×" } else { "" };
        match (self.at_least, self.at_most) {
            (Some(least), _) => format!("≥ {least}{times}"),
            (None, Some(most)) => format!("≤ {most}{times}"),
            (None, None) => "–".to_owned(),
        }
    }

    fn is_met_by(&self, value: f64) -> bool {
        let high = self.at_least.is_none_or(|least| value >= least);
        high && self.at_most.is_none_or(|most| value <= most)
    }

    /// What was reached, and whether the contestant and the one it is compared with are steady.
    fn judge(&self, reached: Option<Spread>, steady: bool, against_steady: bool) -> Judgement {
        if self.at_least.is_none() && self.at_most.is_none() {
            return Judgement::Shown;
        }
        let Some(reached) = reached else { return Judgement::Unmeasured };
        let met = self.is_met_by(reached.median);
        // Figures that vary still tell when the best and the worst of them tell the same.
        let agree = met == self.is_met_by(reached.min) && met == self.is_met_by(reached.max);
        match (against_steady && (steady || agree), met) {
            (false, _) => Judgement::Unsteady,
            (true, true) => Judgement::Met,
            (true, false) => Judgement::Missed,
        }
    }
}

/// Judges a case. A bar whose contestants were not run says nothing.
pub(crate) fn judge(bars: &[Bar], case: &str, series: &[Series]) -> Vec<Verdict> {
    let find = |label: &str| series.iter().find(|series| series.label == label);
    let verdict = |bar: &Bar| {
        let of = find(&bar.of)?;
        let mut against_steady = true;
        let reached = match &bar.against {
            None => of.spread(bar.figure),
            Some(label) => {
                let against = find(label)?;
                against_steady = is_steady(against, bar.figure);
                quotient(of, against, bar)
            }
        };
        let reached = reached.filter(|reached| reached.is_finite());
        let judgement = bar.judge(reached, is_steady(of, bar.figure), against_steady);
        Some(Verdict { bar: bar.clone(), reached, judgement })
    };
    bars.iter().filter(|bar| bar.is_for(case)).filter_map(verdict).collect()
}

fn is_steady(series: &Series, figure: Figure) -> bool {
    series.spread(figure).is_none_or(|spread| spread.max <= spread.min * STEADY)
}

fn quotient(of: &Series, against: &Series, bar: &Bar) -> Option<Spread> {
    let figure = bar.figure;
    let pairs = of.values(figure).zip(against.values(figure)).map(|(of, against)| of / against);
    let median = of.spread(figure)?.median / against.spread(figure)?.median;
    Spread::of(pairs).map(|pairs| if bar.pairs { pairs } else { Spread { median, ..pairs } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Round;

    fn series(label: &str, values: &[f64]) -> Series {
        let rounds = values.iter().map(|value| Round::from([(Figure::Iops, *value)])).collect();
        Series { label: label.to_owned(), about: String::new(), rounds }
    }

    fn bar(case: &str, at_least: Option<f64>, against: Option<&str>) -> Bar {
        Bar {
            case: case.to_owned(),
            figure: Figure::Iops,
            of: "a".to_owned(),
            against: against.map(str::to_owned),
            at_least,
            at_most: None,
            pairs: false,
            why: String::new(),
        }
    }

    #[test]
    fn a_quotient_of_pairs_is_the_median_of_the_rounds_quotients() {
        // The machine is slower in each round: medians would say 0.75.
        let series = [series("a", &[40.0, 15.0, 9.0]), series("b", &[40.0, 20.0, 10.0])];
        let paired = Bar { pairs: true, ..bar("x", Some(0.8), Some("b")) };
        let verdict = &judge(&[paired], "x", &series)[0];
        assert_eq!(verdict.reached, Some(Spread { median: 0.9, min: 0.75, max: 1.0 }));
        let medians = &judge(&[bar("x", Some(0.8), Some("b"))], "x", &series)[0];
        assert_eq!(medians.reached.unwrap().median, 0.75);
    }

    #[test]
    fn the_file_of_this_repository_is_understood() {
        let bars = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("bars.toml")).unwrap();
        assert!(bars.iter().all(|bar| bar.at_least.is_none() || bar.at_most.is_none()));
        assert!(bars.len() > 10);
    }

    #[test]
    fn a_quotient_is_of_medians_and_reaches_over_the_rounds() {
        let series = [series("a", &[10.0, 30.0, 20.0]), series("b", &[10.0, 10.0, 10.0])];
        let bars = [bar("x", Some(2.0), Some("b")), bar("y", Some(0.0), None)];
        let verdicts = judge(&bars, "x", &series);
        assert_eq!(verdicts.len(), 1);
        assert_eq!(verdicts[0].reached, Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(verdicts[0].judgement, Judgement::Met);
        let judged = |bar| judge(&[bar], "x", &series)[0].judgement;
        assert_eq!(judged(bar("x", Some(2.1), Some("b"))), Judgement::Missed);
        assert_eq!(judged(bar("x", None, Some("b"))), Judgement::Shown);
        assert!(judge(&[bar("x", None, Some("c"))], "x", &series).is_empty());
    }

    #[test]
    fn rounds_that_differ_too_much_prove_nothing() {
        let [wild, calm] = [[10.0, 31.0, 20.0], [10.0; 3]];
        let judged = |of, against, least| {
            let series = [series("a", of), series("b", against)];
            judge(&[bar("x", Some(least), Some("b"))], "x", &series)[0].judgement
        };
        assert_eq!(judged(&wild, &calm, 1.5), Judgement::Unsteady);
        // Every round says the same.
        assert_eq!(judged(&wild, &calm, 0.9), Judgement::Met);
        assert_eq!(judged(&wild, &calm, 9.0), Judgement::Missed);
        // But not if it is the other one who varies.
        assert_eq!(judged(&calm, &wild, 0.1), Judgement::Unsteady);
    }

    /// Whoever ran is judged or said not to be: a bar does not vanish with its figure.
    #[test]
    fn what_was_not_measured_is_not_judged() {
        let [idle, still, calm] = [&[][..], &[0.0], &[10.0]].map(|values| series("a", values));
        let other = |values| Series { label: "b".to_owned(), ..series("a", values) };
        let judged = |of: &Series, against: Series, least| {
            let verdicts = judge(&[bar("x", least, Some("b"))], "x", &[of.clone(), against]);
            assert_eq!(verdicts.len(), 1);
            (verdicts[0].judgement, verdicts[0].reached)
        };
        let unmeasured = (Judgement::Unmeasured, None);
        assert_eq!(judged(&idle, other(&[10.0]), Some(1.0)), unmeasured);
        assert_eq!(judged(&calm, other(&[]), Some(1.0)), unmeasured);
        // Nothing by nothing, and something by nothing.
        assert_eq!(judged(&still, other(&[0.0]), Some(1.0)), unmeasured);
        assert_eq!(judged(&calm, other(&[0.0]), Some(1.0)), unmeasured);
        assert_eq!(judged(&idle, other(&[10.0]), None), (Judgement::Shown, None));
        let alone = judge(&[bar("x", Some(1.0), None)], "x", &[idle]);
        assert_eq!(alone[0].judgement, Judgement::Unmeasured);
    }

    #[test]
    fn a_star_stands_for_the_rest() {
        assert!(bar("disk-*", None, None).is_for("disk-read-1"));
        assert!(!bar("disk-*", None, None).is_for("ram"));
        assert!(!bar("ram", None, None).is_for("ram2"));
    }
}
