//! What was written to eventfds that are polled or read.

use std::os::fd::OwnedFd;

use memory::sim;
use rustix::event::{PollFd, PollFlags, epoll};

use super::{Flight, Work, kernel};

/// Takes up what was written to the files that are polled.
pub(super) fn listen() {
    let bells = sim::bells();
    kernel(|kernel| {
        // A poll or a read that begins sees what was written before.
        if std::mem::replace(&mut kernel.heard, bells) == bells {
            return;
        }
        for Flight { file, work, .. } in &mut kernel.flights {
            if let (Work::Hear { rung, .. }, Some(file)) = (work, file) {
                *rung = *rung || has_count(file);
            }
        }
        let Some(edges) = &kernel.edges else { return };
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 32];
        let none = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = epoll::wait(edges, &mut events[..], Some(&none)).unwrap_or(0);
        let mut ids: Vec<u64> = events[..count].iter().map(|event| event.data.u64()).collect();
        ids.sort_unstable();
        for id in ids {
            if !kernel.rung.contains(&id) {
                kernel.rung.push(id);
            }
        }
    });
}

/// Whether an eventfd can be read.
fn has_count(file: &OwnedFd) -> bool {
    let none = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::new(file, PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&none)) == Ok(1)
}
