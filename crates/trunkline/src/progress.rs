//! The progress bar of commands that take a while. On standard error, and only if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use partition::load::{Progress, Stage};

/// Parts of a step that the bar can show.
const PARTS: u64 = 1000;

/// A bar over steps of the same length.
pub(crate) struct Bar {
    bar: ProgressBar,
    step: u64,
}

impl Bar {
    /// A bar of so many steps. indicatif draws nothing where standard error is no terminal.
    pub(crate) fn new(steps: usize) -> Bar {
        let bar = ProgressBar::new(PARTS * u64::try_from(steps).unwrap_or(1).max(1));
        let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {wide_msg}")
            .expect("the template is well-formed");
        bar.set_style(style);
        Bar { bar, step: 0 }
    }

    /// Says what begins now.
    pub(crate) fn begin(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.set_position(self.step * PARTS);
    }

    /// The present step is done.
    pub(crate) fn done(&mut self) {
        self.step += 1;
        self.bar.set_position(self.step * PARTS);
    }

    /// Where the present step stands; `what` stands before the rate.
    pub(crate) fn show(&self, what: &str, progress: &Progress) {
        let stage = match progress.stage {
            Stage::WarmUp => ", warming up",
            Stage::Measuring => "",
            Stage::Finishing => ", finishing",
            Stage::Reconnecting => ", waiting for the server to come back",
        };
        let fraction = (progress.fraction.clamp(0.0, 1.0) * PARTS as f64) as u64;
        self.bar.set_position(self.step * PARTS + fraction);
        self.bar.set_message(format!("{what}: {:.0} IOPS{stage}", progress.iops));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
