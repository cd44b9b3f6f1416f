//! What a run is to be, and what it was.

use memory::sim::Story;

use crate::controls::Control;
use crate::counts::Counts;
use crate::less::Less;
use crate::options::Part;

/// What a run is to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    /// Of what.
    pub part: Part,
    /// Says everything.
    pub seed: u64,
    /// A control.
    pub control: Option<Control>,
    /// How many lines of the story are kept.
    pub story_lines: usize,
    /// All lines are printed at once.
    pub trace: bool,
    /// What there is less than the seed has drawn.
    pub less: Less,
}

impl Plan {
    /// Runs it.
    pub(crate) fn run(&self) -> Outcome {
        match self.part {
            Part::Data | Part::Pool => crate::world::run(self),
            Part::Control => crate::control::run(self),
        }
    }
}

/// What a run was.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What was wrong.
    pub finding: Option<String>,
    /// Its story.
    pub story: Story,
    /// What it went through.
    pub counts: Counts,
}
