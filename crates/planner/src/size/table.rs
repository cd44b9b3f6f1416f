//! A cost by size, out of a published table: between two sizes it is interpolated, beyond them it is bounded, and both
//! is told.

use crate::facts::{Facts, Number, id};
use crate::trace::{Figure, Term};

/// The cost of one unit of a given size.
pub(super) struct Cost {
    /// Every step; the last one is the cost.
    pub(super) figures: Vec<Figure>,
    /// What is to be said about it.
    pub(super) note: Option<String>,
}

/// What is known about sizes that are larger than the largest of the table.
pub(super) struct Beyond {
    /// What each further byte costs at most, besides what the table's last two sizes say.
    pub(super) per_byte: Option<Term>,
}

/// Looks a size up in the family of facts `prefix`.
pub(super) fn by_size(
    facts: &Facts,
    prefix: &str,
    what: &str,
    size: &Term,
    beyond: &Beyond,
) -> Cost {
    let bytes = size.high;
    let mut points: Vec<(u32, &Number)> = facts
        .numbers(prefix)
        .filter_map(|number| id::size_of(&number.id).map(|size| (size, number)))
        .collect();
    points.sort_by_key(|(size, _)| *size);
    if let Some((_, exact)) = points.iter().find(|(size, _)| f64::from(*size) == bytes) {
        return Cost { figures: vec![plain(what, exact)], note: None };
    }
    let above = points.iter().position(|(size, _)| f64::from(*size) > bytes);
    match (above, points.as_slice()) {
        (Some(0), [smallest, ..]) => Cost {
            figures: vec![plain(what, smallest.1)],
            note: Some(format!(
                "{what}: {} bytes is less than the smallest size of the table, {}; its cost is taken.",
                size.value(),
                smallest.0
            )),
        },
        (Some(next), _) => between(what, size, points[next - 1], points[next]),
        (None, [.., last_but_one, last]) => larger(what, size, *last_but_one, *last, beyond),
        (None, [only]) => Cost { figures: vec![plain(what, only.1)], note: Some(one_size(what)) },
        (None, []) => Cost { figures: vec![plain(what, facts.number(prefix))], note: None },
    }
}

fn one_size(what: &str) -> String {
    format!("{what}: the table has one size only; its cost is taken for every size.")
}

fn plain(what: &str, number: &Number) -> Figure {
    Figure::plain(number.term(what))
}

fn between(what: &str, size: &Term, low: (u32, &Number), high: (u32, &Number)) -> Cost {
    let (cost_low, cost_high) = (format!("cost at {}", low.0), format!("cost at {}", high.0));
    let formula = format!(
        "{cost_low} + (size − {}) ÷ ({} − {}) × ({cost_high} − {cost_low})",
        low.0, high.0, low.0
    );
    let terms = vec![low.1.term(&cost_low), size.clone().named("size"), high.1.term(&cost_high)];
    Cost {
        figures: vec![Figure::new(what, &low.1.unit, &formula, terms)],
        note: Some(format!(
            "{what}: interpolated between {} and {} bytes; the table has no value for {}.",
            low.0,
            high.0,
            size.value()
        )),
    }
}

fn larger(
    what: &str,
    size: &Term,
    before: (u32, &Number),
    last: (u32, &Number),
    beyond: &Beyond,
) -> Cost {
    let (cost_before, cost_last) = (format!("cost at {}", before.0), format!("cost at {}", last.0));
    let slope = Figure::new(
        "slope of the table's end",
        "cycles/byte",
        &format!("({cost_last} − {cost_before}) ÷ ({} − {})", last.0, before.0),
        vec![before.1.term(&cost_before), last.1.term(&cost_last)],
    );
    let other = beyond.per_byte.as_ref().map_or((slope.low, slope.high), |t| (t.low, t.high));
    // From the one to the other, in whichever order they are.
    let mut further = Term::of(&slope).named("cycles of a further byte");
    further.low = further.low.min(other.0);
    further.high = further.high.max(other.1);
    let mut figures = vec![slope];
    if let Some(term) = &beyond.per_byte {
        figures.push(Figure::plain(term.clone()));
    }
    let formula = format!("{cost_last} + (size − {}) × cycles of a further byte", last.0);
    let terms = vec![last.1.term(&cost_last), size.clone().named("size"), further];
    figures.push(Figure::new(what, &last.1.unit, &formula, terms));
    Cost {
        figures,
        note: Some(format!(
            "{what}: {} bytes is more than the largest size of the table, {}; nothing was measured there, so it is an extrapolation.",
            size.value(),
            last.0
        )),
    }
}
