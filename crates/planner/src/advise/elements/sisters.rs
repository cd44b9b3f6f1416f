//! Ports beside one that waits: where a sister has more of what it waits for and does not wait, few waits are a want, too.

use super::Usage;
use crate::advise::measure::Counter;
use crate::advise::thresholds::{GROWTH_SHARE, MANY_LEAST, SHOWN_SHARE};
use crate::advise::view::View;

/// The share of the requests from which waits are told; `of` is the counter, and these attributes say how much there is of
/// what they are for.
pub(super) fn least_share<'a>(
    view: &View<'a>,
    usage: &Usage<'a>,
    counter: Counter,
    of: fn(&Usage<'a>) -> Option<Counter>,
    attributes: &[&str],
) -> f64 {
    let many = counter.growth().is_some_and(|growth| growth >= MANY_LEAST);
    let has_more = |other: &Usage<'a>| {
        attributes.iter().any(|name| {
            let of = |port: &Usage<'a>| view.number(port.host, port.device, name);
            of(other).zip(of(usage)).is_some_and(|((more, _), (own, _))| more > own)
        })
    };
    let waits = |other: &Usage<'a>| of(other).is_some_and(|counter| counter.growth() != Some(0.0));
    let shown = view.usages().iter().any(|other| {
        let beside = other.host == usage.host && other.device != usage.device;
        beside && other.is_virtual == usage.is_virtual && has_more(other) && !waits(other)
    });
    if many && shown { SHOWN_SHARE } else { GROWTH_SHARE }
}
