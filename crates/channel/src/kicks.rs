//! Who is asked to kick, and who is listened to.
//!
//! The kernel tells the channel of each kick, also where a client was asked not to kick, and each is an event that the channel's other clients wait for. So a queue whose client kicks again and again
//! for nothing is not listened to until it is *armed*, asked to kick, again: then the kernel tells at once of kicks that nobody heard.

use uring::Op;

use crate::io::{Io, token};
use crate::lanes::Lanes;
use crate::queue::RunningQueue;

/// Kicks in a row that nobody had asked for, before nobody listens to a queue that looks by itself. A client that has not seen yet that it need not kick makes one or two.
const NEEDLESS_MAX: u32 = 32;

impl RunningQueue {
    /// Its client need not kick: the caller looks by itself.
    pub fn disarm(&mut self) {
        self.armed = false;
        self.resources.ring.disable_kicks();
    }
}

impl Io {
    /// Asks the client of a queue to kick when it makes the next head available. True: it has done so already, or heads wait to be resubmitted, and the caller must not wait for it.
    pub fn arm(&mut self, queue: &mut RunningQueue) -> bool {
        self.listen(queue);
        queue.resources.ring.enable_kicks()
    }

    /// The same of a head beyond those that [`vring::Queue::pending`] saw.
    pub fn arm_for_more(&mut self, queue: &mut RunningQueue) -> bool {
        self.listen(queue);
        queue.resources.ring.enable_kicks_for_more()
    }

    fn listen(&mut self, queue: &mut RunningQueue) {
        queue.armed = true;
        if std::mem::take(&mut queue.deaf) && !queue.watched {
            // It is told at once of kicks that nobody heard.
            self.watch(queue);
        }
    }

    /// Has the kernel tell of each kick.
    pub(crate) fn watch(&mut self, queue: &mut RunningQueue) {
        queue.watched = true;
        let user_data = Lanes::OWN.user_data(token::KICK + u64::from(queue.id.0));
        self.push(Op::PollMulti { file: queue.kick }, user_data);
    }

    /// A queue was kicked. Each kick is an event, also where a client was asked not to kick: one that does so again and again is not listened to until it is asked again.
    pub(crate) fn was_kicked(&mut self, queue: &mut RunningQueue) {
        if queue.armed || !queue.is_asked {
            queue.needless = 0;
            return;
        }
        queue.needless += 1;
        if queue.needless > NEEDLESS_MAX && !queue.deaf {
            queue.deaf = true;
            let user_data = Lanes::OWN.user_data(token::KICK + u64::from(queue.id.0));
            self.push(Op::Cancel { user_data }, Lanes::OWN.user_data(token::IGNORED));
        }
    }
}
