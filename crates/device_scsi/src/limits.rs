//! What the queues of a SCSI adapter are allowed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use channel::elements::{Elements, Port, Share};
use spec::{CommandSpec, PortShare};

use crate::Sizes;

/// What a queue of a SCSI adapter carries (virtio 1.3, clause 5.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScsiRole {
    /// Task management.
    Control,
    /// Events, from the server to the client.
    Event,
    /// Commands.
    Request,
}

/// What a queue of a SCSI adapter is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScsiLimits {
    /// So many of the adapter's command elements the queue keeps at hand when it is idle (`num_local_cmds`), at least 1. Each active command
    /// beyond is counted as `GlobalCommands`.
    pub local: u16,
    /// Data segments for which each of its own commands has room (`bufs_per_cmd`). Longer lists are shared by all queues of the channel,
    /// counted as `GlobalBuffers`.
    pub buffers: u16,
    /// Most task management functions of a control queue that are under way at once (`num_sp_cmd_elem`), at least 1. More wait in order,
    /// counted as `WaitNoCommand`.
    pub functions: u16,
    /// VIRTIO_SCSI_F_INOUT was negotiated.
    pub inout: bool,
    /// Sizes that the driver has set.
    pub sizes: Sizes,
}

/// The ports of a data plane that its adapters name.
#[derive(Debug, Default)]
pub(crate) struct Ports(Mutex<BTreeMap<String, Weak<Port>>>);

impl Ports {
    /// One of them, as large as it is now.
    fn port(&self, share: &PortShare) -> Arc<Port> {
        let mut ports = self.0.lock().expect("a panic ends the process");
        ports.retain(|_, port| port.strong_count() > 0);
        let port = ports.get(&share.name).and_then(Weak::upgrade);
        let port = port.unwrap_or_else(|| Port::new(share.num_cmd_elems));
        port.set_elements(share.num_cmd_elems);
        ports.insert(share.name.clone(), Arc::downgrade(&port));
        port
    }

    /// One of them, if some adapter is on it.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Port>> {
        self.0.lock().expect("a panic ends the process").get(name).and_then(Weak::upgrade)
    }

    /// The elements of an adapter with so many queues: those that it had, with other bounds, unless it is on another port now.
    pub(crate) fn elements(
        &self,
        commands: &CommandSpec,
        share: Option<&PortShare>,
        queues: u16,
        before: Option<&Arc<Elements>>,
    ) -> Arc<Elements> {
        let own = Share { elements: commands.num_cmd_elems.max(1), weight: 1 };
        let (port, share) = match share {
            Some(port) => (Some(self.port(port)), Share { weight: port.share, ..own }),
            None => (None, own),
        };
        let same = before.filter(|before| match &port {
            Some(port) => Arc::ptr_eq(before.port(), port),
            None => before.is_alone(),
        });
        match (same, port) {
            (Some(same), _) => {
                same.set_share(share);
                Arc::clone(same)
            }
            (None, Some(port)) => Elements::new(&port, share, queues),
            (None, None) => Elements::alone(share, queues),
        }
    }
}
