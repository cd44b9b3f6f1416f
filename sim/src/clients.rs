//! The clients of a run, of either device.

use std::cell::RefCell;
use std::rc::Rc;

use crate::client::{Client, Count};
use crate::front::Front;
use crate::scsi::ScsiClient;

/// A client of either device.
pub(crate) enum Any {
    Block(Client),
    Scsi(ScsiClient),
}

impl Any {
    pub(crate) fn step(&mut self) -> bool {
        match self {
            Any::Block(client) => client.step(),
            Any::Scsi(client) => client.step(),
        }
    }

    pub(crate) fn front(&self) -> &Front {
        match self {
            Any::Block(client) => &client.front,
            Any::Scsi(client) => &client.front,
        }
    }

    pub(crate) fn front_mut(&mut self) -> &mut Front {
        match self {
            Any::Block(client) => &mut client.front,
            Any::Scsi(client) => &mut client.front,
        }
    }

    pub(crate) fn count(&mut self) -> &mut Count {
        match self {
            Any::Block(client) => &mut client.count,
            Any::Scsi(client) => &mut client.count,
        }
    }

    pub(crate) fn under_way(&self) -> usize {
        match self {
            Any::Block(client) => client.under_way(),
            Any::Scsi(client) => client.under_way(),
        }
    }

    /// The same client after its host has lost its power.
    pub(crate) fn reboot(&mut self) {
        let again = match self {
            Any::Block(client) => Any::Block(client.rebooted()),
            Any::Scsi(client) => Any::Scsi(client.rebooted()),
        };
        *self = again;
    }

    pub(crate) fn is_modest(&self) -> bool {
        match self {
            Any::Block(client) => client.is_modest(),
            Any::Scsi(client) => client.is_modest(),
        }
    }

    /// Queues for I/O.
    pub(crate) fn queues(&self) -> u16 {
        match self {
            Any::Block(_) => 1,
            Any::Scsi(client) => client.queues(),
        }
    }
}

pub(crate) type Clients = Rc<Vec<RefCell<Any>>>;
