//! The queue contract of a virtual Fibre Channel adapter.

use super::parts::{narrow16, narrow32};
use crate::model::{Desired, home};
use fabric::attribute::{Attributes, Object, attr};
use fabric::negotiate::{Levels, NpivTerms, negotiate_npiv};

/// The terms of an adapter that its attributes, its data plane and its port bring. `client` are the queues that its client
/// uses, `data_plane` the channels that the data plane runs, where these are known.
pub fn npiv_terms(
    desired: &Desired,
    name: &str,
    set: &Attributes,
    client: Option<u32>,
    data_plane: Option<u32>,
) -> NpivTerms {
    let port = attr::adapter::PORT.of(set).and_then(|port| desired[Object::Port].get(port));
    let dataplane = desired.dataplane(home(set));
    NpivTerms {
        client,
        client_num_io_queues: None,
        num_per_range: narrow32(attr::adapter::NUM_PER_RANGE.value(set)),
        inherited: narrow32(attr::dataplane::NUM_PER_RANGE.value(dataplane)),
        data_plane,
        port: port.map(|port| narrow32(attr::port::NUM_IO_QUEUES.value(port))),
        limit_intr: attr::adapter::LIMIT_INTR.value(set),
        levels: Levels::ALL,
        policy: attr::adapter::POLICY.value(set),
        earlier: desired.allocations.maxima.get(name).map(|maximum| maximum.channels),
    }
}

/// Most channels that may serve an adapter, whatever its client and its data plane have.
pub fn channels(desired: &Desired, name: &str, set: &Attributes) -> u16 {
    narrow16(negotiate_npiv(&npiv_terms(desired, name, set, None, None)).channels.into())
}
