//! Uplinks, of which nothing but the account is there.

use super::{Books, failure};
use protocol::message::{FailureCode, Reply, UplinkSpec, UplinkStatus};
use spec::{Change, change};

impl Books {
    pub(super) fn put_uplink(&mut self, spec: UplinkSpec) -> Reply {
        let uplinks = &mut self.status.uplinks;
        match uplinks.iter_mut().find(|uplink| uplink.spec.name == spec.name) {
            Some(old) if change::uplink(&old.spec, &spec) == Change::Recreate => {
                return failure(FailureCode::InUse, format!("uplink `{}` is in use", spec.name));
            }
            Some(old) => old.spec = spec,
            None => uplinks.push(UplinkStatus {
                spec,
                channel_of_queue: vec![0, 1],
                failover: None,
                way: None,
            }),
        }
        Reply::Done
    }

    pub(super) fn remove_uplink(&mut self, name: &str) -> Reply {
        let before = self.status.uplinks.len();
        self.status.uplinks.retain(|uplink| uplink.spec.name != name);
        if self.status.uplinks.len() == before {
            return failure(FailureCode::NotFound, format!("no uplink `{name}`"));
        }
        Reply::Done
    }
}
