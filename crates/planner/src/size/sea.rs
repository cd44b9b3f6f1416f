//! Processors of a shared Ethernet adapter, by the published tables and formula.

use super::input::{Direction, Sea, SizeError, Vios};
use super::table::{Beyond, by_size};
use super::total::{Part, processors};
use crate::facts::{Facts, Number};
use crate::trace::{Figure, Term};

fn word(threaded: bool) -> &'static str {
    if threaded { "threaded" } else { "plain" }
}

fn cycles_per_byte<'f>(facts: &'f Facts, sea: &Sea, threaded: bool) -> &'f Number {
    let direction = match sea.direction {
        Direction::Simplex => "simplex",
        Direction::Duplex => "duplex",
    };
    facts.number(&format!("sea.cycles-per-byte.{}.{}.{direction}", word(threaded), sea.mtu))
}

/// Sizes one SEA; `stored` says whether virtual SCSI or a pool is served by the same VIOS.
pub(super) fn size(
    facts: &Facts,
    number: usize,
    sea: &Sea,
    stored: bool,
    vios: &Vios,
) -> Result<Part, SizeError> {
    if ![1500, 9000].contains(&sea.mtu) {
        let key = format!("sea[{}].mtu", number - 1);
        let expected = format!("expected 1500 or 9000, not {}", sea.mtu);
        return Err(SizeError::value(
            key,
            &expected,
            "the source measured no other; take the nearer",
        ));
    }
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
    Ok(part)
}

fn default_threaded(facts: &Facts) -> bool {
    let default = facts.attribute("sea", "thread").and_then(|thread| thread.default.as_ref());
    default.and_then(|default| default.as_number()).is_none_or(|thread| thread != 0)
}

fn streaming(facts: &Facts, sea: &Sea, threaded: bool, part: &mut Part) -> Term {
    let streamed = part.given(&sea.streaming_mb, "MB/s", "MB/s");
    let bytes = part.step("bytes/s", "bytes/s", "MB/s × 1024 × 1024", vec![streamed]);
    let cost = cycles_per_byte(facts, sea, threaded).term("cycles/byte");
    part.step("cycles/s of streaming", "cycles/s", "bytes/s × cycles/byte", vec![bytes, cost])
}

fn transactions(facts: &Facts, sea: &Sea, threaded: bool, part: &mut Part) -> Term {
    let prefix = format!("sea.cycles-per-transaction.{}.", word(threaded));
    let streamed = cycles_per_byte(facts, sea, threaded).term("cycles/byte of streaming");
    let beyond = Beyond { per_byte: Some(streamed) };
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

/// Threads are needed beside virtual SCSI and pools, and cost cycles where they are not needed.
fn threading_notes(facts: &Facts, sea: &Sea, threaded: bool, stored: bool, part: &mut Part) {
    if stored && !threaded {
        part.notes.push(
            "`thread` is 0, but virtual SCSI or a shared storage pool is in the same VIOS: set thread=1 (chdev -dev entN -attr thread=1), or network load delays storage."
                .to_owned(),
        );
    }
    if !stored && threaded && sea.streaming_mb.value() > 0.0 {
        let terms = vec![
            cycles_per_byte(facts, sea, true).term("threaded"),
            cycles_per_byte(facts, sea, false).term("not threaded"),
        ];
        let more = Figure::new(
            "what threads cost more",
            "%",
            "(threaded ÷ not threaded − 1) × 100",
            terms,
        );
        part.notes.push(format!(
            "No virtual SCSI and no shared storage pool is in this VIOS: with thread=0 streaming costs less; threads add {} %.",
            more.value()
        ));
        part.figures.push(more);
    }
}
