//! Off-path requests: what a command needs and a channel may not do, since it would block or concerns other channels.
//!
//! The handler gives the request, with an [`Answer`], to somebody on another thread. The command waits in its slot, its queue goes on with
//! others, and cannot leave the channel before the answer came.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::queue::QueueId;

/// An answer on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Returned {
    pub(crate) queue: QueueId,
    pub(crate) head: u16,
    /// Tells it from answers for an earlier command of the same head.
    pub(crate) ticket: u64,
    pub(crate) answer: u32,
}

/// Where answers and news are posted: the mailbox of a channel, whatever its handlers are.
pub(crate) trait Returns: Send + Sync {
    fn post_returned(&self, returned: Returned);

    /// A queue that waits for command elements has some.
    fn post_elements(&self, queue: QueueId);
}

/// What an off-path request can be answered with: something small, as a word.
pub trait Reply: Copy {
    /// What a command is told whose request nobody did.
    const LOST: Self;

    /// As the handler gets it.
    fn word(self) -> u32;
}

impl Reply for bool {
    const LOST: bool = false;
    fn word(self) -> u32 {
        u32::from(self)
    }
}

impl Reply for () {
    const LOST: () = ();
    fn word(self) -> u32 {
        0
    }
}

/// The way back to the command that waits. Its queue cannot leave the channel before. Dropped unused, the command is told that its
/// request failed.
pub struct Answer<T: Reply> {
    to: Option<Arc<dyn Returns>>,
    queue: QueueId,
    head: u16,
    ticket: u64,
    kind: PhantomData<fn(T)>,
}

impl<T: Reply> std::fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("queue", &self.queue).field("head", &self.head).finish()
    }
}

impl<T: Reply> Answer<T> {
    pub(crate) fn new(to: Arc<dyn Returns>, queue: QueueId, head: u16, ticket: u64) -> Answer<T> {
        Answer { to: Some(to), queue, head, ticket, kind: PhantomData }
    }

    /// Gives the answer. Any thread; does not wait.
    pub fn send(mut self, result: T) {
        self.post(result);
    }

    fn post(&mut self, result: T) {
        let Some(to) = self.to.take() else { return };
        let Answer { queue, head, ticket, .. } = *self;
        to.post_returned(Returned { queue, head, ticket, answer: result.word() });
    }
}

impl<T: Reply> Drop for Answer<T> {
    fn drop(&mut self) {
        self.post(T::LOST);
    }
}
