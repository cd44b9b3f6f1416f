//! The progress bar of commands that take a while. On standard error, and only if that is a terminal.

use control::api::OperationView;
use indicatif::{ProgressBar, ProgressStyle};
use partition::load::{Progress, Stage};
use std::io::IsTerminal;

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

    /// How much of the present step is over.
    pub(crate) fn part(&self, part: f64) {
        let part = (part.clamp(0.0, 1.0) * PARTS as f64) as u64;
        self.bar.set_position(self.step * PARTS + part);
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

/// How far an operation is: a bar where bytes are counted, else how long it has taken.
pub(crate) struct OperationBar(ProgressBar);

impl OperationBar {
    /// Nothing where standard error is no terminal.
    pub(crate) fn new() -> Option<OperationBar> {
        std::io::stderr().is_terminal().then(|| OperationBar(ProgressBar::no_length()))
    }

    /// Draws how it is now.
    pub(crate) fn show(&self, operation: &OperationView) {
        let OperationView { kind, step, subjects, progress, .. } = operation;
        let counts = progress.unit == "bytes";
        let template = match counts {
            true => "{bar:30} {bytes}/{total_bytes} {eta:>4}  {wide_msg}",
            false => "{spinner} {elapsed}  {wide_msg}",
        };
        self.0.set_style(
            ProgressStyle::with_template(template).expect("the template is well-formed"),
        );
        let (kind, step, subjects) = (kind.as_str(), step.as_str(), subjects.join(", "));
        self.0.set_message(format!("{kind} of {subjects}: {step}"));
        if counts {
            self.0.set_length(progress.total);
            self.0.set_position(progress.done);
        }
        self.0.tick();
    }
}

impl Drop for OperationBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
