//! Leases that stand for the right to bridge: a data plane has no network, so the control plane keeps them, and tells it how long it has them.
//!
//! ```text
//!  data plane, ten times a second                     control plane
//!  Wants: these VLANs, and my beacon   ──────────►    takes, renews, gives up, in etcd
//!                                      ◄──────────    Holds: which it has, for how long from now; the partner's beacon
//! ```
//!
//! A time *from now* is one that both clocks have in common: the data plane counts it from before it asked, so that whatever an answer took makes it shorter.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};

use super::{Answer, Opener, Question, locked, out_of_turn};

/// From this [`crate::message::MINOR`] on a control plane keeps leases.
const KEEPS_TOKENS: u32 = 15;

/// What the holder of leases at a place wants: the right to bridge these VLANs. What is not among them is given up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wants {
    /// Where the leases are ([`spec::FailoverSpec::lease`]).
    pub place: String,
    /// Who: another number with each start.
    pub identity: u64,
    /// What it says of itself to its partner.
    pub beacon: Vec<u8>,
    /// The VLANs.
    pub vids: Vec<u16>,
}

/// What the holder of leases has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    /// Those VLANs of the wanted ones that it may bridge; nothing: that is not known yet.
    pub vids: Option<Vec<u16>>,
    /// For how long from now, in nanoseconds.
    pub for_ns: u64,
    /// What the partner says of itself, if it is there; with `trouble`, what it said before.
    pub partner: Option<Vec<u8>>,
    /// What is in the way.
    pub trouble: Option<String>,
}

/// Who keeps leases for data planes, which have no network.
pub trait Tokens: Send + Sync {
    /// Takes in what a holder wants, and says what it has, without waiting. What hangs up when that holder ends comes with it.
    ///
    /// # Errors
    ///
    /// When nobody keeps leases there.
    fn exchange(&self, wants: Wants, holder: OwnedFd) -> io::Result<Holds>;
}

/// Nobody keeps leases.
#[derive(Debug, Clone, Copy)]
pub struct NoTokens;

impl Tokens for NoTokens {
    fn exchange(&self, _: Wants, _: OwnedFd) -> io::Result<Holds> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "nobody keeps leases here"))
    }
}

impl Opener {
    /// As [`Tokens::exchange`].
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn tokens(&self, wants: Wants, holder: BorrowedFd<'_>) -> io::Result<Holds> {
        let minor = {
            let line = locked(&self.line);
            line.connection.as_ref().map(|_| line.minor)
        };
        if minor.is_some_and(|minor| minor < KEEPS_TOKENS) {
            return Err(io::Error::other("the control plane is of an earlier version"));
        }
        match self.ask(&Question::Tokens(wants), Some(holder))?.0 {
            Answer::Tokens(holds) => Ok(holds),
            _ => Err(out_of_turn()),
        }
    }
}
