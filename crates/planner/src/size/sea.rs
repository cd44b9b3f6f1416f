//! Processors of a shared Ethernet adapter, by the published tables and formula.

use super::input::{Direction, Sea, SizeError, Vios};
use super::table::{Beyond, by_size};
use super::total::{Part, processors};
use crate::facts::{Facts, Number, id};
use crate::trace::{Figure, Term};

fn word(threaded: bool) -> &'static str {
    if threaded { "threaded" } else { "plain" }
}

fn ways(sea: &Sea) -> &'static str {
    match sea.direction {
        Direction::Simplex => "simplex",
        Direction::Duplex => "duplex",
    }
}

/// The costs of a byte that are known, by MTU, ascending.
fn points<'f>(facts: &'f Facts, sea: &Sea, threaded: bool) -> Vec<(u32, &'f Number)> {
    let direction = ways(sea);
    let mut points: Vec<(u32, &Number)> = facts
        .numbers(id::OF_STREAMS)
        .filter_map(|number| {
            let of = id::streamed(&number.id)?;
            let wanted = of.thread == word(threaded) && of.direction == direction;
            Some((of.mtu.filter(|_| wanted)?, number))
        })
        .collect();
    points.sort_by_key(|(mtu, _)| *mtu);
    points
}

/// What a byte costs at the load's MTU: of the table, or between two of its MTUs by what a packet costs there. None beyond the table.
fn cycles_per_byte(facts: &Facts, sea: &Sea, threaded: bool, name: &str) -> Option<Figure> {
    let points = points(facts, sea, threaded);
    let above = points.iter().position(|(mtu, _)| *mtu >= sea.mtu)?;
    let (mtu_high, high) = points[above];
    if mtu_high == sea.mtu {
        return Some(Figure::plain(high.term(name)));
    }
    let (mtu_low, low) = points[above.checked_sub(1)?];
    let (cost_low, cost_high) = (format!("cost at {mtu_low}"), format!("cost at {mtu_high}"));
    let formula = format!(
        "({mtu_low} × {cost_low} + (MTU − {mtu_low}) ÷ ({mtu_high} − {mtu_low}) × ({mtu_high} × {cost_high} − {mtu_low} × {cost_low})) ÷ MTU"
    );
    let mtu = Term::given("MTU", sea.mtu.into(), "bytes");
    let terms = vec![mtu, low.term(&cost_low), high.term(&cost_high)];
    Some(Figure::new(name, &high.unit, &formula, terms))
}

/// A cost as a term: where it is one of the table, with its source.
fn cost_term(figure: &Figure) -> Term {
    match figure.terms.as_slice() {
        [only] => only.clone(),
        _ => Term::of(figure),
    }
}

/// An MTU is within those that were measured.
fn check_mtu(facts: &Facts, number: usize, sea: &Sea) -> Result<(), SizeError> {
    if [true, false].iter().all(|threaded| cycles_per_byte(facts, sea, *threaded, "").is_some()) {
        return Ok(());
    }
    let points = points(facts, sea, true);
    let least = points.first().map_or(0, |(mtu, _)| *mtu);
    let most = points.last().map_or(0, |(mtu, _)| *mtu);
    let expected = format!("expected {least} to {most}, not {}", sea.mtu);
    let fix = "nothing was measured beyond; take the nearer";
    Err(SizeError::value(format!("sea[{}].mtu", number - 1), &expected, fix))
}

/// Sizes one SEA; `stored` says whether virtual SCSI or a pool is served by the same VIOS.
pub(super) fn size(
    facts: &Facts,
    number: usize,
    sea: &Sea,
    stored: bool,
    vios: &Vios,
) -> Result<Part, SizeError> {
    check_mtu(facts, number, sea)?;
    let threaded = sea.threaded.unwrap_or_else(|| default_threaded(facts));
    let mut part = Part::new(format!("SEA {number}"), sea.name.as_deref());
    let mut cycles = Vec::new();
    if sea.streaming_mb.value() > 0.0 || sea.transactions.value() <= 0.0 {
        cycles.push(streaming(facts, sea, threaded, &mut part));
    }
    if sea.transactions.value() > 0.0 {
        cycles.push(transactions(facts, sea, threaded, &mut part));
    }
    part.cycles(cycles);
    processors(facts, vios, &mut part);
    threading_notes(facts, sea, threaded, stored, &mut part);
    uncut_note(facts, sea, threaded, &mut part);
    Ok(part)
}

fn default_threaded(facts: &Facts) -> bool {
    let default = facts.attribute("sea", "thread").and_then(|thread| thread.default.as_ref());
    default.and_then(|default| default.as_number()).is_none_or(|thread| thread != 0)
}

fn streaming(facts: &Facts, sea: &Sea, threaded: bool, part: &mut Part) -> Term {
    let streamed = part.given(&sea.streaming_mb, "MB/s", "MB/s");
    let bytes = part.step("bytes/s", "bytes/s", "MB/s × 1024 × 1024", vec![streamed]);
    let mut cost = Term::given("cycles/byte", f64::NAN, "cycles/byte");
    if let Some(figure) = cycles_per_byte(facts, sea, threaded, "cycles/byte") {
        cost = cost_term(&figure);
        if figure.terms.len() > 1 {
            part.notes.push(format!(
                "cycles/byte: interpolated by the cost of a packet; the table has no value for an MTU of {}.",
                sea.mtu
            ));
            part.figures.push(figure);
        }
    }
    part.step("cycles/s of streaming", "cycles/s", "bytes/s × cycles/byte", vec![bytes, cost])
}

fn transactions(facts: &Facts, sea: &Sea, threaded: bool, part: &mut Part) -> Term {
    let prefix = format!("sea.cycles-per-transaction.{}.", word(threaded));
    let streamed = cycles_per_byte(facts, sea, threaded, "cycles/byte of streaming");
    let beyond = Beyond { per_byte: streamed.as_ref().map(cost_term) };
    let what = "cycles/transaction";
    let size = part.given(&sea.transaction_bytes, "bytes of a transaction", "bytes");
    let cost = by_size(facts, &prefix, what, &size, &beyond);
    let each = cost.figures.last().map(Term::of);
    part.figures.extend(cost.figures);
    part.notes.extend(cost.note);
    let rate = part.given(&sea.transactions, "transactions/s", "1/s");
    let mut terms = vec![rate];
    terms.extend(each);
    part.step("cycles/s of transactions", "cycles/s", "transactions/s × cycles/transaction", terms)
}

/// What the stream costs if clients leave the cutting of packets to others, where that was measured.
fn uncut_note(facts: &Facts, sea: &Sea, threaded: bool, part: &mut Part) {
    let key = format!("{}{}.uncut.{}", id::OF_STREAMS, word(threaded), ways(sea));
    let (Some(cost), Some(cut)) =
        (facts.find(&key), cycles_per_byte(facts, sea, threaded, "cycles/byte"))
    else {
        return;
    };
    if sea.streaming_mb.value() <= 0.0 {
        return;
    }
    let terms = vec![cost.term("uncut"), cost_term(&cut)];
    let formula = "uncut ÷ cycles/byte × 100";
    let figure = Figure::new("what uncut packets cost", "% of the stream", formula, terms);
    part.notes.push(format!(
        "Clients with segmentation offload (largesend) send packets of up to 64 KB, which are not cut between them: the stream then costs {} % of that.",
        figure.value()
    ));
    part.figures.push(figure);
}

/// Threads are needed beside virtual SCSI and pools, and cost cycles where they are not needed.
fn threading_notes(facts: &Facts, sea: &Sea, threaded: bool, stored: bool, part: &mut Part) {
    if stored && !threaded {
        part.notes.push(
            "`thread` is 0, but virtual SCSI or a shared storage pool is in the same VIOS: set thread=1 (chdev -dev entN -attr thread=1), or network load delays storage."
                .to_owned(),
        );
    }
    if !stored && threaded && sea.streaming_mb.value() > 0.0 {
        let both = [(true, "threaded"), (false, "not threaded")];
        let cost =
            |(threaded, name)| Some(cost_term(&cycles_per_byte(facts, sea, threaded, name)?));
        let terms = both.into_iter().filter_map(cost).collect();
        let more = Figure::new(
            "what threads cost more",
            "%",
            "(threaded ÷ not threaded − 1) × 100",
            terms,
        );
        if more.high <= 0.0 {
            return;
        }
        part.notes.push(format!(
            "No virtual SCSI and no shared storage pool is in this VIOS: with thread=0 streaming costs less; threads add {} %.",
            more.value()
        ));
        part.figures.push(more);
    }
}
