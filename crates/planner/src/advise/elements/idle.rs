//! A client's adapter that is short while another one to the same disks does nothing.

use super::Usage;
use crate::advise::thresholds::{IDLE_SHARE, IDLE_TIMES};
use crate::advise::view::View;
use crate::capture::At;
use crate::trace::number;

/// What the others of the client did meanwhile, where that was next to nothing and disks are set to use one path at a time;
/// and the lines that show it.
pub(super) fn sister(view: &View<'_>, usage: &Usage<'_>) -> Option<(String, Vec<At>)> {
    let grown =
        |usage: &Usage<'_>| usage.requests.iter().filter_map(|read| read.growth()).sum::<f64>();
    let own = grown(usage);
    let others = view.usages().iter().filter(|other| {
        (other.host, other.is_virtual) == (usage.host, Some(true)) && other.device != usage.device
    });
    let idle: Vec<&Usage<'_>> = others
        .filter(|other| !other.requests.is_empty() && grown(other) <= own * IDLE_SHARE)
        .collect();
    let other = idle.first().filter(|_| own > IDLE_TIMES)?;
    let disks = view.devices(usage.host, "hdisk").into_iter();
    let set = disks.filter_map(|disk| {
        let set = view.attribute(usage.host, disk, "algorithm")?;
        (set.value == "fail_over").then_some((disk, set.at))
    });
    let (disks, mut places): (Vec<&str>, Vec<At>) = set.unzip();
    let first = disks.first()?;
    let many = if disks.len() > 1 {
        format!(" and {} disks more have", disks.len() - 1)
    } else {
        " has".to_owned()
    };
    places.truncate(4);
    places.extend(other.requests.iter().map(|read| read.last.at));
    let why = format!(
        "{} did {} requests meanwhile where this one did {}: {first}{many} algorithm=fail_over, which takes one path and leaves the others. With algorithm=shortest_queue (reserve_policy=no_reserve first) all adapters carry the load: that may be enough.",
        other.device,
        number(grown(other)),
        number(own)
    );
    Some((why, places))
}
