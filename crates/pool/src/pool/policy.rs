//! What a shell chooses.

#[cfg(doc)]
use super::Pool;

/// What is a matter of taste.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// A checkpoint is made when the journal has so many blocks since the last; at most half of the journal is used for them.
    pub checkpoint_blocks: u64,
    /// … or when so many home records have changed.
    pub checkpoint_homes: usize,
    /// Chunks that were written to and of which no flush has said what, at most when a checkpoint is over: if there are more, all is flushed unasked, so that a client who never does takes no memory
    /// for all that it ever wrote to.
    pub untold: usize,
    /// The shell keeps of layers what a successor has to know. Without it no pool that has layers is opened.
    pub layers: bool,
    /// Parts of a layer that are copied while writes of its LU wait, at most: more are copied before.
    pub held_parts: usize,
    /// Chunks that get at once what a leg of them missed, besides those that somebody waits for: what clients write to them goes to both legs from the beginning. Of each some kilobytes are in memory.
    pub mends: usize,
    /// Blocks of chunks that move or miss a leg are copied when the shell lets them ([`Pool::let_copy`]), and not at once.
    pub paced: bool,
    /// The pool is opened also without PVs that may have gone on alone: whoever wants that says that they have not, or gives up what they answered since.
    pub alone: bool,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            checkpoint_blocks: 8192,
            checkpoint_homes: 4096,
            untold: 2048,
            layers: false,
            held_parts: 512,
            mends: 1024,
            paced: false,
            alone: false,
        }
    }
}
