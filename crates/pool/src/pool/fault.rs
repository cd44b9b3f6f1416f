//! Why a request is not carried out, and what the machine must not do.

/// Why a request was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No such LU.
    #[error("there is no such LU")]
    NoSuchLu,
    /// Beyond the end of the LU, or not in sectors of 512 bytes.
    #[error("the request is not within the LU, or not in sectors of 512 bytes")]
    Range,
    /// No space for a thick LU, no such tier, or no place on the PV that a leg is to move to.
    #[error("there is no space for it: add a PV to the tier")]
    NoSpace,
    /// The LU is just being resized, or a PV added, or removed for good.
    #[error(
        "the LU is just being resized, or a PV being added or removed: try again when that is done"
    )]
    Busy,
    /// A snapshot is not written to.
    #[error("it is a snapshot, which nobody writes to: make a clone of it")]
    Frozen,
    /// It is no snapshot, or not one of such an LU.
    #[error("that is no snapshot of an LU of this size in this tier")]
    NoSnapshot,
    /// The LU shares what it holds.
    #[error(
        "the LU shares what it holds with a snapshot, or is a clone, and cannot become smaller: remove its snapshots, or detach it"
    )]
    Shares,
    /// What a snapshot has does not fit into the LU.
    #[error("the LU is smaller than when the snapshot was made: make it as large first")]
    Smaller,
    /// It shares with another LU, which would go to another tier as well.
    #[error(
        "the LU shares what it holds with another LU, of which one is a clone, and stays in its tier: detach the clone"
    )]
    SharesTier,
    /// Chunks with two legs do not go from one tier to another.
    #[error(
        "LUs of a mirrored pool stay in their tier: make one in the other tier, and let the guest copy"
    )]
    MirrorTier,
    /// What has one leg has no checksums.
    #[error(
        "there are checksums only where the pool has two failure groups: make the pool with a mirror, or the LU without checksums"
    )]
    NoLegs,
    /// There are no snapshots of what has checksums.
    #[error(
        "the LU has checksums, and there are no snapshots of such: make a copy of it in the guest"
    )]
    HasSums,
    /// Others need what is in its own space.
    #[error("snapshots or clones need what the LU has: remove those first, or detach the clones")]
    Needed,
    /// No such PV.
    #[error("the pool has no such PV")]
    NoSuchPv,
    /// A PV with that UUID is or was in the pool.
    #[error("a PV with that UUID is in the pool, or was: give it another")]
    PvKnown,
    /// Too small, or one too many.
    #[error(
        "the PV has no room for more than the pool's own blocks, or the pool has as many PVs as it can ever have"
    )]
    PvUnfit,
    /// The PV is there again, and lacks chunks.
    #[error("the PV has not got yet what it missed: try again when that is over")]
    Away,
    /// The PV was away when it was removed.
    #[error(
        "the PV is being removed while it is away, and what is on it counts no more: when it has left, erase it, and add it as a new one"
    )]
    Dismissed,
    /// It is not the PV that it is said to be.
    #[error("that is not the PV of the pool that was away")]
    OtherPv,
    /// A PV that returns was written to elsewhere.
    #[error(
        "the PV was written to apart from the others of the pool while it was away: give up what is on it, or the pool with the others"
    )]
    Forked,
    /// A PV failed.
    #[error("a PV failed")]
    Medium,
    /// It was called back, while it waited for space or a PV was leaving.
    #[error("the request was called back")]
    Cancelled,
    /// The pool's own blocks could not be written; it does nothing any more.
    #[error(
        "the pool's own blocks cannot be written: look for the PV that failed, and open the pool again"
    )]
    Stopped,
    /// Another server has the pool. No client is told: its request is held.
    #[error(
        "another server has taken the pool over: see that no other has it, and open the pool again"
    )]
    Fenced,
}

/// What a part of the machine must not do; tests break one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// 1: a write is answered after its mapping is durable.
    AnswerAfterMap,
    /// 1: a write is answered after its blocks are live.
    AnswerAfterLive,
    /// 2: bits are said after a flush of the data.
    BitsAfterData,
    /// 2: a flush is answered after its bits are durable.
    FlushAfterBits,
    /// 3: a block without a bit is zeros.
    NoBitNoData,
    /// 3: a first write writes zeros around.
    ZerosAround,
    /// 4: a chunk is given out again after the record that frees it is durable.
    ReuseAfterCommit,
    /// 4: … and after everything that was begun is over.
    ReuseAfterDrain,
    /// 5: a copy is mapped after it is durable.
    MapAfterCopy,
    /// What a process before left in caches is made durable before anything is built on it.
    FlushFirst,
    /// A checkpoint's root is written after its pages are durable.
    RootAfterPages,
    /// A PV is gone when nothing is on it any more.
    EmptyBeforeGone,
    /// A PV that is added has superblocks before others name it.
    AddedFirst,
    /// The checkpoint of a change of members has a number of its own.
    NewRoot,
    /// A home record that cannot be read is written all the same.
    HomeUnread,
    /// Only what is present in a slot is read from it.
    PresentOnly,
    /// A part of a layer is placed when no channel can take a slot for it any more.
    PlaceAfterClose,
    /// A snapshot is of a moment at which nothing is under way.
    CutAfterDrain,
    /// … and what is in it was made durable, and said.
    CutAfterFlush,
    /// A chunk that was a container is given out again after the next root.
    ContainersUntilRoot,
    /// What was copied out of a layer is durable, and said, before nobody looks there any more.
    CoalesceAfterSync,
    /// Only what is present in a layer is copied out of it.
    CoalescePresent,
    /// What is written while the last of a layer is copied waits for that.
    CoalesceHeld,
    /// A write that a PV missed is answered after it is durable that this is away.
    AnswerAfterStale,
    /// A chunk with two legs is changed after it is durable that these may differ.
    ActiveBeforeWrite,
    /// A block of a chunk with two legs is written if that is said of both.
    WrittenOnAll,
    /// … and a leg of which nobody knows what is written there is made of the other.
    KnownFirst,
    /// Legs that may differ are read after they were made the same.
    ReadAfterMend,
    /// Where the first of two legs that may differ cannot be read, the second is what counts.
    EitherLeg,
    /// What a PV that returns has of a chunk counts only if that was not changed meanwhile.
    ClaimsOfQuiet,
    /// A checkpoint that failed on a PV ended no activity.
    ActivityGoesOn,
    /// While a PV is away no activity ends.
    QuietTogether,
    /// Activity ends when nobody changes the chunk.
    QuietAtRest,
    /// … and what was written is durable on both legs.
    QuietAfterFlush,
    /// … as far as that is known.
    QuietUnsure,
    /// A chunk is forgotten when nobody writes to it.
    ForgetAtRest,
    /// Of a PV that is away the others say in which epoch they saw it last.
    SeenBefore,
    /// A superblock that failed on a PV is followed by another, and not by one beside it.
    FollowFailed,
    /// What was written and not flushed when a PV was lost may not be there.
    MissedCached,
    /// … nor what was being written.
    MissedUnderWay,
    /// … nor what was written since.
    MissedSince,
    /// The activity of a chunk ends when its checksums are there.
    SumsBeforeRoot,
    /// … and durable.
    SumsDurable,
    /// … and nobody has changed it since they were made.
    SumsOfUnchanged,
    /// What has checksums is held against them.
    ReadsVerified,
    /// A PV that was away is gone when what was on it is elsewhere.
    WholeBeforeGone,
}
