//! When it is looked which chunks nobody changes any more, so that they are not copied after a crash ([`Pool::look_at_activity`](pool::Pool::look_at_activity)).

use std::time::{Duration, Instant};

use memory::clock;
use pool::Request;

use super::{Asker, Work};

/// Nobody has changed anything for so long: then all of it is quiet. While clients write it is looked half as often, and a chunk is quiet that nobody changed between two looks.
const QUIET: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 30_000 });

/// Since when there is something to look for.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// What the core says of changes, and when that was new.
    changes: u64,
    changed: Option<Instant>,
    /// When it was looked last, or there was something to look for.
    since: Option<Instant>,
    /// It was looked because the pool closes.
    last: bool,
}

impl Activity {
    /// When it is looked next; never while there is nothing to look for.
    pub(super) fn due(&self) -> Option<Instant> {
        Some((self.changed? + QUIET).min(self.since? + 2 * QUIET))
    }
}

impl Work {
    /// Looks when it is time.
    pub(super) fn look_at_activity(&mut self) {
        if !self.core.wants_look() {
            (self.activity.changed, self.activity.since) = (None, None);
            return;
        }
        let now = clock::instant();
        let changes = self.core.changes();
        let activity = &mut self.activity;
        if std::mem::replace(&mut activity.changes, changes) != changes
            || activity.changed.is_none()
        {
            activity.changed = Some(now);
        }
        activity.since.get_or_insert(now);
        if activity.due().is_none_or(|due| now < due) {
            return;
        }
        let idle = activity.changed.is_some_and(|changed| changed + QUIET <= now);
        activity.since = Some(now);
        if idle {
            activity.changed = Some(now);
        }
        self.core.look_at_activity(idle);
    }

    /// All is flushed before it closes: of what is the same on both legs nothing is copied when it is opened again. Whether that takes a while.
    pub(super) fn ends_activity(&mut self) -> bool {
        let closes = self.closing.is_some() && !std::mem::replace(&mut self.activity.last, true);
        let wants = closes && self.core.wants_look() && self.core.look_at_activity(true);
        if wants {
            self.submit(Asker::Last, Request::Checkpoint);
        }
        wants
    }
}
