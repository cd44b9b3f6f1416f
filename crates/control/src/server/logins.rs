//! Who is logged in where.

use super::links::is_down;
use super::looked::Looked;
use super::shared::{ApplyOutcome, Done, Server};
use super::views::adapters_of;
use crate::error::ApiError;
use crate::model::Desired;
use crate::model::allocations::Maximum;
use crate::model::loss::has_client;
use crate::model::map::SharedMap;
use crate::model::resolve::{self, narrow32};
use crate::model::san::{san, wwpns};
use crate::model::transition::Change;
use crate::reconcile::Subject;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Object, attr};
use fabric::negotiate::{Policy, negotiate_npiv};
use fabric::san::Visible;
use protocol::message::{AdapterStatus, Status};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use utoipa::ToSchema;

/// A LUN as a client has it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LunView {
    /// Its number at the client.
    pub lun: u16,
    /// The volume behind it.
    pub volume: String,
    /// What the client knows it by; none while the LU behind it is being made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naa: Option<String>,
}

/// A target that an adapter is logged in to.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LoginTargetView {
    /// Its number at the client.
    pub id: u8,
    /// Its name.
    pub target: String,
    /// Its WWPN.
    pub wwpn: String,
    /// The LUNs that masks give.
    pub luns: Vec<LunView>,
}

/// The logins of a virtual Fibre Channel adapter.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LoginView {
    /// The adapter.
    pub adapter: String,
    /// The port that it is mapped to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// `logged_in` with a client, `no_client`, `not_mapped`, `link_down` while its port is down, or `pending` while the data plane does not answer.
    pub state: String,
    /// The WWPN that logs in.
    pub wwpn: String,
    /// The WWPN that waits for a migration.
    pub waiting_wwpn: String,
    /// The targets that it sees, or would with a client.
    pub targets: Vec<LoginTargetView>,
}

impl Server {
    /// The logins of all virtual Fibre Channel adapters.
    pub async fn logins(&self) -> Vec<LoginView> {
        let desired = self.desired();
        let statuses = self.statuses().await;
        let adapters: BTreeMap<&str, BTreeMap<&str, &AdapterStatus>> =
            statuses.iter().map(|(plane, status)| (plane.as_str(), adapters_of(status))).collect();
        let fabric = san(&desired);
        let fabric = fabric.expand();
        let all = desired[Object::Adapter]
            .iter()
            .filter(|(_, set)| attr::adapter::KIND.value(set) == AdapterKind::Fc);
        let all = all.map(|(name, set)| {
            let account = adapters.get(desired.dataplane_of_adapter(name));
            let adapter = account.and_then(|adapters| adapters.get(name.as_str()).copied());
            let port = attr::adapter::PORT.of(set).map(str::to_owned);
            let state = match (&port, adapter) {
                (None, _) => "not_mapped",
                (Some(port), _) if is_down(&desired, port) => "link_down",
                (_, None) => "pending",
                (_, Some(adapter)) if has_client(adapter) => "logged_in",
                _ => "no_client",
            };
            let [wwpn, waiting] =
                wwpns(set).map_or_else(Default::default, |pair| pair.map(|wwpn| wwpn.to_string()));
            let targets = fabric.visible(name).into_iter();
            LoginView {
                adapter: name.clone(),
                port,
                state: state.to_owned(),
                wwpn,
                waiting_wwpn: waiting,
                targets: targets.map(|(id, seen)| target(&desired, id, seen)).collect(),
            }
        });
        all.collect()
    }

    /// Forgets the maximum of the client of an adapter under the policy `aix`: its channels are negotiated anew. What changes by it.
    pub async fn reconfigure(&self, name: &str, dry_run: bool) -> Result<Done, ApiError> {
        let name = name.to_owned();
        let work = move |server: Arc<Server>, _| async move {
            server.reconfigure_now(&name, dry_run).await
        };
        self.to_the_end(dry_run, true, work).await
    }

    async fn reconfigure_now(&self, name: &str, dry_run: bool) -> Result<Done, ApiError> {
        let mut ledger = self.change.lock().await;
        let now = self.desired();
        let set =
            now[Object::Adapter].get(name).ok_or_else(|| self.not_found(Object::Adapter, name))?;
        if attr::adapter::KIND.value(set) != AdapterKind::Fc {
            let problem = format!("adapter `{name}` is no virtual Fibre Channel adapter");
            return Err(ApiError::invalid(problem).help("only those remember what was negotiated"));
        }
        let mut next = now.clone();
        next.allocations.maxima.remove(name);
        let channels = |desired| resolve::channels(desired, name, set).to_string();
        let (from, to) = (channels(&now), channels(&next));
        let changed = from != to;
        let change = Change::live(Object::Adapter, name, "channels", Some(from), to);
        let mut done = Done::default();
        done.changes.extend(changed.then_some(change));
        if !dry_run && next.allocations != now.allocations {
            self.commit(&mut ledger, &next)?;
            drop(ledger);
            let home = BTreeSet::from([next.dataplane_of_adapter(name).to_owned()]);
            let ApplyOutcome { mut failures, down, .. } = self.tell(Some(&home)).await;
            if let Some(failure) = failures.remove(&Subject::Adapter(name.to_owned())) {
                return Err(failure);
            }
            let home = next.dataplane_of_adapter(name);
            done.waiting = down.get(home).map(|home| self.waits(home)).into_iter().collect();
        }
        Ok(done)
    }

    /// The channels that clients under the policy `aix` have now: their maximum as long as they stay connected.
    pub(super) fn maxima(
        &self,
        now: &Desired,
        statuses: &BTreeMap<String, Arc<Status>>,
        looked: &Looked,
    ) -> SharedMap<Maximum> {
        let aix = now[Object::Adapter]
            .iter()
            .filter(|(_, set)| attr::adapter::POLICY.value(set) == Policy::Aix);
        let aix: Vec<_> = aix.collect();
        if aix.is_empty() {
            return SharedMap::default();
        }
        let maxima = aix.into_iter().filter_map(|(name, set)| {
            let known = now.allocations.maxima.get(name).copied();
            let dataplane = now.dataplane_of_adapter(name);
            let account = statuses.get(dataplane);
            // What is not known now stays as it was.
            let Some(status) = account else { return known.map(|m| (name.clone(), m)) };
            let adapter = looked.adapter(dataplane, status, name);
            let adapter = adapter.filter(|adapter| has_client(adapter))?;
            let connection = adapter.connections;
            let same = known.filter(|maximum| maximum.connection == connection);
            let mut terms = resolve::npiv_terms(
                now,
                name,
                set,
                Some(u32::from(adapter.client_queues)),
                Some(narrow32(status.channels.len() as u64)),
            );
            terms.earlier = same.map(|maximum| maximum.channels);
            let channels =
                negotiate_npiv(&terms).maximum.filter(|_| terms.policy == Policy::Aix)?;
            Some((name.clone(), Maximum { channels, connection }))
        });
        maxima.collect()
    }
}

fn target(desired: &Desired, id: u8, seen: Visible) -> LoginTargetView {
    let luns = seen.luns.into_iter().map(|(lun, volume)| {
        let set = desired[Object::Volume].get(&volume).cloned().unwrap_or_default();
        let naa = resolve::naa(desired, &volume, &set).map(|naa| format!("{naa:016x}"));
        LunView { lun, naa, volume }
    });
    LoginTargetView { id, target: seen.target, wwpn: seen.wwpn.to_string(), luns: luns.collect() }
}
