//! How `trunkline lu explain` says how an LU lies, and what its clients have waited for.

use crate::output::table;
use control::server::{LuLayoutView, LuWaitsView};
use fabric::units::{format_size, percent};

/// How an LU lies on the PVs, and what of it is being done now.
pub(super) fn layout_text(layout: &LuLayoutView) -> String {
    let size = |chunks: u64| format_size(chunks * layout.chunk_bytes);
    let mut lines = vec![match layout.mapped {
        0 => "nothing of it was written: it has no chunks".to_owned(),
        chunks => format!(
            "it has {chunks} chunks of {}, {} in all, in {}",
            format_size(layout.chunk_bytes),
            size(chunks),
            match layout.copies {
                2 => "two copies each",
                _ => "one copy each",
            }
        ),
    }];
    if layout.copies > 1 && layout.mapped > 0 {
        lines.push(match layout.half {
            0 => "all of them have both copies".to_owned(),
            half => format!(
                "{} have both copies, {half} lack one: its PV is away, or has not got what it missed",
                layout.whole
            ),
        });
    }
    let doing = [
        (layout.mending, "are copied to a PV that lacks them, or will be"),
        (
            layout.differ,
            "of those with both copies may differ since the host died: the first counts, and is copied over the second",
        ),
        (layout.moving, "are on their way to another PV"),
        (layout.astray, "are in another tier than its own, and move there"),
        (
            layout.active,
            "were changed lately: after a crash they would be copied from one failure group to the other",
        ),
    ];
    let doing = doing.into_iter().filter(|(chunks, _)| *chunks > 0);
    lines.extend(doing.map(|(chunks, what)| format!("{chunks} {what}")));
    lines.push(match layout.paused {
        0 => "none of its writes waits for space now".to_owned(),
        paused => format!("{paused} of its writes wait for space now"),
    });
    let mut page = lines.join("\n");
    if !layout.pvs.is_empty() {
        let rows = layout.pvs.iter().map(|on| {
            vec![on.pv.clone(), on.failgrp.clone(), on.chunks.to_string(), size(on.chunks)]
        });
        let heading = ["PV", "FAILGRP", "CHUNKS", "SIZE"];
        page += &format!("\n\n{}\n", table(&heading, &[2, 3], rows.collect()));
    }
    page
}

/// What the commands of an adapter that has an LU have waited for.
pub(super) fn waits_text(waits: &LuWaitsView) -> String {
    let LuWaitsView { adapter, commands, wait_pool, wait_pool_full } = waits;
    if *commands == 0 {
        return format!("adapter {adapter} has it, and has asked for nothing so far");
    }
    let part = |count: u64| format!("{count} ({} %)", percent(count, *commands));
    format!(
        "adapter {adapter} has it: of {commands} commands to all its disks, {} waited for the pool (wait_pool), and {} for space (wait_pool_full)",
        part(*wait_pool),
        part(*wait_pool_full)
    )
}

#[cfg(test)]
mod tests {
    use super::super::pools::explanation;
    use super::*;
    use control::server::{LuOnPvView, PoolExplanation};

    #[test]
    fn an_explanation_of_an_lu_says_how_it_lies_and_what_it_waits_for() {
        let on = |pv: &str, failgrp: &str, chunks| LuOnPvView {
            pv: pv.to_owned(),
            failgrp: failgrp.to_owned(),
            chunks,
        };
        let layout = LuLayoutView {
            chunk_bytes: 64 << 20,
            copies: 2,
            mapped: 20,
            pvs: vec![on("/srv/a", "Default", 20), on("/srv/b", "Mirror", 13)],
            whole: 13,
            half: 7,
            mending: 7,
            moving: 1,
            active: 2,
            paused: 3,
            ..LuLayoutView::default()
        };
        let waits = |adapter: &str, commands, wait_pool, wait_pool_full| LuWaitsView {
            adapter: adapter.to_owned(),
            commands,
            wait_pool,
            wait_pool_full,
        };
        let told = PoolExplanation {
            pool: "p0".to_owned(),
            lu: Some("db".to_owned()),
            state: "degraded".to_owned(),
            copies: 2,
            failgrps: Vec::new(),
            findings: Vec::new(),
            layout: Some(layout),
            waits: vec![waits("vhost0", 1000, 400, 12), waits("vhost1", 0, 0, 0)],
        };
        insta::assert_snapshot!("lu_explained", explanation(&told, None));
    }
}
