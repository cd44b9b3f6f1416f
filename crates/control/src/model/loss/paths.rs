//! Links that go down. A client with another path to what is behind one goes on by that, as multipath is there for: it loses nothing.

use super::{Between, luns};
use protocol::message::AdapterSpec;
use spec::LinkSpec;
use std::collections::BTreeSet;

/// What a client has no path to any more, as far as its paths are known.
pub(super) fn lost(
    between: &Between<'_>,
    before: &AdapterSpec,
    after: &AdapterSpec,
) -> Option<String> {
    let (LinkSpec::Up, LinkSpec::Down { hold_ms }) = (before.scsi()?.link, after.scsi()?.link)
    else {
        return None;
    };
    let reached = between.others(&before.name).filter(|other| is_up(other));
    let reached: BTreeSet<&str> = reached.flat_map(|other| luns(other).into_values()).collect();
    let units: BTreeSet<&str> = luns(before).into_values().collect();
    let cut: Vec<String> = units.difference(&reached).map(|unit| format!("`{unit}`")).collect();
    if cut.is_empty() {
        return None;
    }
    let then = match hold_ms / 1000 {
        0 => "its commands would fail".to_owned(),
        seconds => format!("its commands would wait {seconds} s for the link, and then fail"),
    };
    Some(format!("its path to {}, and no other one of it is known: {then}", cut.join(", ")))
}

fn is_up(spec: &AdapterSpec) -> bool {
    spec.scsi().is_some_and(|scsi| scsi.link == LinkSpec::Up)
}
