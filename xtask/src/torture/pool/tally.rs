//! What was done, in figures.

use std::fmt;

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) kills: [u64; 2],
    pub(super) deaths_seen: u64,
    pub(super) lost: u64,
    pub(super) hung: u64,
    pub(super) slow: u64,
    /// Bits that turned on a PV.
    pub(super) flipped: u64,
    /// … that were mended, of those that were counted when a scrub was over: a data plane that dies forgets them.
    pub(super) mended: u64,
    pub(super) pvs: [u64; 3],
    pub(super) lus: [u64; 2],
    pub(super) snapshots: [u64; 2],
    pub(super) rollbacks: u64,
    pub(super) clones: u64,
    pub(super) detached: u64,
    /// LUs that grew that shared nothing, and others.
    pub(super) grown: [u64; 2],
    /// LUs that went to a tier without snapshots, and with some.
    pub(super) moved: [u64; 2],
    pub(super) orphans: u64,
    pub(super) called_back: u64,
    pub(super) full: u64,
    pub(super) refused: u64,
    pub(super) clients: u64,
    pub(super) first_writes: u64,
    pub(super) compared: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            kills: [data, control],
            deaths_seen,
            lost,
            hung,
            slow,
            flipped,
            mended,
            pvs: [added, removed, replaced],
            ..
        } = self;
        let Tally {
            lus: [made, gone],
            grown: [alone, shared],
            moved: [bare, cut_before],
            orphans,
            snapshots: [cut, dropped],
            rollbacks,
            clones,
            ..
        } = self;
        let Tally { detached, called_back, full, refused, clients, first_writes, compared, .. } =
            self;
        writeln!(
            f,
            "{data} kills of the data plane and {control} of the control plane; {deaths_seen} seen by clients"
        )?;
        writeln!(
            f,
            "{lost} PVs went and returned, {hung} hung, {slow} became slow, {flipped} bits turned ({mended} seen mended); {added} added, {removed} removed, {replaced} replaced, {called_back} removals called back"
        )?;
        writeln!(
            f,
            "{made} LUs made, {gone} removed, {orphans} purged that were nobody's; {clones} clones, {detached} detached"
        )?;
        writeln!(f, "{alone} LUs grew that shared nothing, {shared} that did")?;
        writeln!(f, "{bare} LUs went to a tier without snapshots, {cut_before} with some")?;
        writeln!(f, "{cut} snapshots, {dropped} removed, {rollbacks} rolled back")?;
        writeln!(
            f,
            "{full} times full and extended; {refused} changes refused for want of space, or because something is in use"
        )?;
        write!(
            f,
            "{clients} clients: {first_writes} first writes at least, {compared} blocks compared, 0 wrong"
        )
    }
}
