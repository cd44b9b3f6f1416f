//! What a data plane hears of the witnesses ([`super::Witnesses`]) of its files, and says of them.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Weak};

use super::{Answer, Opener, Question, locked, out_of_turn};

/// From this [`crate::message::MINOR`] on a control plane keeps witnesses.
const KEEPS_WITNESSES: u32 = 3;
/// … and hears that a loss is made up for.
const HEARS_MADE_UP_FOR: u32 = 22;

/// What is known of a file by its witness.
#[derive(Debug, Default)]
pub struct Testimony {
    /// A write to it was lost since a data plane first opened it, and not every client has been told.
    pub lost: bool,
    /// The witness, to be kept as long as the file is open; none where the control plane keeps none.
    pub witness: Option<Arc<OwnedFd>>,
}

impl Opener {
    /// One that cannot be brought back is as if there had been none.
    pub(super) fn bring_back(&self, path: &Path, witness: &Weak<OwnedFd>, lost: bool) {
        if locked(&self.line).minor >= KEEPS_WITNESSES
            && let Some(witness) = witness.upgrade()
        {
            let question = Question::BringBack { path: path.to_owned(), lost };
            let _ = self.ask(&question, Some(witness.as_fd()));
        }
    }

    /// What is known of a file that is opened at this path, to be written. To be asked when all open files that are to learn of losses are there.
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn testimony(&self, path: &Path, file: BorrowedFd<'_>) -> io::Result<Testimony> {
        let count = {
            let line = locked(&self.line);
            if line.minor < KEEPS_WITNESSES {
                return Ok(Testimony::default());
            }
            line.count
        };
        let (answer, witness) =
            self.ask(&Question::Witness { path: path.to_owned() }, Some(file))?;
        let (Answer::Witness { lost }, Some(witness)) = (answer, witness) else {
            return Err(out_of_turn());
        };
        let witness = Arc::new(witness);
        let known = (Arc::downgrade(&witness), lost);
        {
            let mut all = locked(&self.witnesses);
            all.retain(|_, (witness, _)| witness.strong_count() > 0);
            all.insert(path.to_owned(), known.clone());
        }
        if locked(&self.line).count != count {
            // Another control plane came meanwhile, which may not have got this one.
            self.bring_back(path, &known.0, lost);
        }
        Ok(Testimony { lost, witness: Some(witness) })
    }

    /// What was lost of a file is nothing that its clients have to be told: whoever uses it has it elsewhere, and writes it again. A control plane of an earlier version does not hear of it, and tells
    /// the next data plane of the loss.
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn made_up_for(&self, path: &Path) -> io::Result<()> {
        if let Some((_, lost)) = locked(&self.witnesses).get_mut(path) {
            *lost = false;
        }
        if locked(&self.line).minor < HEARS_MADE_UP_FOR {
            return Ok(());
        }
        self.ask(&Question::MadeUpFor { path: path.to_owned() }, None).map(drop)
    }
}
