//! The list of devices: the one place where they stand side by side. What a channel calls is chosen by a `match` here, so that nothing is
//! called through a table on the path of an I/O.

use block::{Outcome, Tag};
use channel::{After, BadChain, Handler, Io, Opened, QueueResources, RunningQueue, Walked};
use protocol::stats::{Latency, Span};
use vring::{Head, QueueError};

/// One enum of all devices for each type that a handler brings, and the handler of all of them.
macro_rules! devices {
    ($($(#[$about:meta])* $name:ident => $handler:ty),+ $(,)?) => {
        /// The handler of a queue of any device.
        #[derive(Debug)]
        pub enum AnyHandler { $($(#[$about])* $name($handler)),+ }

        /// What is behind a queue of any device.
        #[derive(Debug)]
        pub enum Behind { $($(#[$about])* $name(<$handler as Handler>::Device)),+ }

        /// What the queues of a channel share, by device.
        #[derive(Debug, Default)]
        #[allow(non_snake_case, reason = "named as the device")]
        pub struct Shared { $($name: <$handler as Handler>::Shared),+ }

        /// What a queue is told.
        #[derive(Debug)]
        pub enum Message { $($(#[$about])* $name(<$handler as Handler>::Message)),+ }

        /// Commands that are to be aborted or counted.
        #[derive(Debug)]
        pub enum Scope { $($(#[$about])* $name(<$handler as Handler>::Scope)),+ }

        impl Handler for AnyHandler {
            type Device = Behind;
            type Shared = Shared;
            type Message = Message;
            type Scope = Scope;

            fn open(
                device: Behind,
                shared: &mut Shared,
                io: &mut Io,
                queue: &QueueResources,
            ) -> Result<Opened<AnyHandler>, String> {
                match device {
                    $(Behind::$name(device) => {
                        <$handler>::open(device, &mut shared.$name, io, queue)
                            .map(|opened| opened.map(AnyHandler::$name))
                    })+
                }
            }

            fn close(&mut self, io: &mut Io) {
                match self { $(AnyHandler::$name(handler) => handler.close(io)),+ }
            }

            #[inline]
            fn admit(&mut self, queue: &RunningQueue) -> bool {
                match self { $(AnyHandler::$name(handler) => handler.admit(queue)),+ }
            }

            #[inline]
            fn begin(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, walked: Walked) {
                match self { $(AnyHandler::$name(handler) => handler.begin(io, queue, head, walked)),+ }
            }

            fn begin_bad(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, bad: BadChain) {
                match self { $(AnyHandler::$name(handler) => handler.begin_bad(io, queue, head, bad)),+ }
            }

            fn recover(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) -> bool {
                match self { $(AnyHandler::$name(handler) => handler.recover(io, queue, head)),+ }
            }

            #[inline]
            fn completed(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, outcome: Outcome) {
                match self { $(AnyHandler::$name(handler) => handler.completed(io, queue, head, outcome)),+ }
            }

            fn try_again(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) {
                match self { $(AnyHandler::$name(handler) => handler.try_again(io, queue, head)),+ }
            }

            fn answered(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, answer: u32) {
                match self { $(AnyHandler::$name(handler) => handler.answered(io, queue, head, answer)),+ }
            }

            fn message(
                &mut self,
                io: &mut Io,
                queue: &mut RunningQueue,
                message: Message,
            ) -> Result<Option<After<Message>>, QueueError> {
                match (self, message) {
                    $((AnyHandler::$name(handler), Message::$name(message)) => {
                        let after = handler.message(io, queue, message)?;
                        Ok(after.map(|after| after.map(Message::$name)))
                    })+
                    (handler, message) => unreachable!("{message:?} is not for {handler:?}"),
                }
            }

            fn buffers_came(&mut self, io: &mut Io, queue: &mut RunningQueue) -> Result<(), QueueError> {
                match self { $(AnyHandler::$name(handler) => handler.buffers_came(io, queue)),+ }
            }

            fn concerns(&self, scope: &Scope) -> bool {
                match (self, scope) {
                    $((AnyHandler::$name(handler), Scope::$name(scope)) => handler.concerns(scope),)+
                    _ => false,
                }
            }

            fn abort(
                &mut self,
                io: &mut Io,
                queue: &mut RunningQueue,
                scope: &Scope,
                left: &mut Vec<Tag>,
            ) -> u32 {
                match (self, scope) {
                    $((AnyHandler::$name(handler), Scope::$name(scope)) => {
                        handler.abort(io, queue, scope, left)
                    })+
                    (handler, scope) => unreachable!("{scope:?} is not for {handler:?}"),
                }
            }

            #[inline]
            fn record(&self, part: u16, which: Latency, span: Span, count: u64) {
                match self { $(AnyHandler::$name(handler) => handler.record(part, which, span, count)),+ }
            }
        }
    };
}

devices! {
    /// The block device.
    Block => device_blk::BlkHandler,
    /// The SCSI host device.
    Scsi => device_scsi::ScsiHandler,
}

/// Channels of this data plane.
pub(crate) type Channel = channel::Channel<AnyHandler>;
