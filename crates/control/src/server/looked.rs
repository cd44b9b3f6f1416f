//! How things are, for a change: what is known of data planes, and, asked for now, what they have of what the change has to do with.
//!
//! ```text
//!  what is known ──► judge ──► what it has to do with ──► asked of data planes ─┐
//!                      ▲                                                        │
//!                      └────────────────── judged again with that ◄─────────────┘
//! ```
//!
//! So a change costs what it touches, however much there is beside it; what is not touched is known as the last look at all found it.

use super::change::Judged;
use super::shared::{Server, WantedOfAll};
use crate::model::loss::{Client, Connected, has_client};
use crate::reconcile::{Subject, differences};
use crate::supervisor::View;
use protocol::message::{AdapterStatus, Changes, DeviceSpec, Named, Selection, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Of more than so many, all there is is asked for.
const NAMED_MAX: usize = 256;

/// See the module.
pub(super) struct Looked {
    views: BTreeMap<String, View>,
    /// All was looked at.
    all: bool,
    /// What was asked for by name.
    adapters: BTreeSet<String>,
    volumes: BTreeSet<String>,
    /// What data planes have of that; those that did not say are known by their views.
    now: BTreeMap<String, Found>,
}

#[derive(Default)]
struct Found {
    adapters: BTreeMap<String, AdapterStatus>,
    volumes: BTreeSet<String>,
}

impl Found {
    fn take(&mut self, changes: Changes) {
        let Changes { adapters, volumes, .. } = changes;
        self.adapters.extend(adapters.now.into_iter().map(|one| (one.name().to_owned(), one)));
        self.volumes.extend(volumes.now.into_iter().map(|one| one.name().to_owned()));
    }
}

/// Adapters that a data plane has, and is to have otherwise or no more.
pub(super) fn adapters_of(before: &WantedOfAll, after: &WantedOfAll) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (dataplane, was) in before.iter() {
        let is = after.get(dataplane).cloned().unwrap_or_default();
        let differ = differences(was, &is).into_iter().filter_map(|subject| match subject {
            Subject::Adapter(name) => Some(name),
            _ => None,
        });
        names.extend(differ.filter(|name| was.adapters.contains_key(name)));
    }
    names
}

impl Looked {
    /// By what is known.
    pub(super) fn new(server: &Server) -> Looked {
        let (adapters, volumes) = (BTreeSet::new(), BTreeSet::new());
        let views = server.supervisor_views();
        Looked { views, all: false, adapters, volumes, now: BTreeMap::new() }
    }

    /// Whether it was asked for all that a change has to do with.
    pub(super) fn suffices(&self, judged: &Judged) -> bool {
        self.all
            || (judged.adapters.is_subset(&self.adapters)
                && judged.volumes.is_subset(&self.volumes))
    }

    /// Asks for what a change has to do with. Those that are known to be silent are not waited for.
    pub(super) async fn look(&mut self, server: &Server, judged: &Judged) {
        if judged.adapters.len() + judged.volumes.len() > NAMED_MAX {
            self.views = server.look_for_a_change().await;
            self.all = true;
            return;
        }
        let Judged { adapters, volumes, .. } = judged;
        let new = |all: &BTreeSet<String>, known| all.difference(known).cloned().collect();
        let of = Selection {
            adapters: new(adapters, &self.adapters),
            volumes: new(volumes, &self.volumes),
            ..Selection::default()
        };
        self.adapters.extend(of.adapters.iter().cloned());
        self.volumes.extend(of.volumes.iter().cloned());
        let mut looks = tokio::task::JoinSet::new();
        for (name, supervisor) in server.supervisors() {
            let of = of.clone();
            looks.spawn(async move {
                let found = supervisor.look_at(of).await;
                (name, found, supervisor.view())
            });
        }
        for (name, found, view) in looks.join_all().await {
            match found {
                Some(changes) => self.now.entry(name.clone()).or_default().take(changes),
                // What it said before is not what is known now.
                None => drop(self.now.remove(&name)),
            }
            self.views.insert(name, view);
        }
    }

    /// What data planes that run said of themselves, when all was looked at last.
    pub(super) fn accounts(&self) -> BTreeMap<String, Arc<Status>> {
        super::shared::accounts(&self.views)
    }

    /// An adapter as a data plane has it.
    pub(super) fn adapter<'a>(
        &'a self,
        dataplane: &str,
        account: &'a Status,
        name: &str,
    ) -> Option<&'a AdapterStatus> {
        match self.now.get(dataplane).filter(|_| self.adapters.contains(name)) {
            Some(found) => found.adapters.get(name),
            None => super::views::adapter_of(account, name),
        }
    }

    /// Which of these have a client, as far as it is known: one whose data plane does not answer counts as it was seen last, and so does one of a data plane
    /// that died, whose clients wait for the next.
    pub(super) fn connected(&self, adapters: &BTreeSet<String>) -> Connected {
        let mut connected = Connected::new();
        for (dataplane, view) in &self.views {
            let Some(known) = &view.known else { continue };
            let there = adapters.iter().filter_map(|it| self.adapter(dataplane, &known.status, it));
            let with = there.filter(|adapter| has_client(adapter));
            connected.extend(with.map(|adapter| {
                let queues = adapter.client_queues.max(adapter.client_num_io_queues);
                let client = Client { queues, process: adapter.client, ..Client::default() };
                (adapter.spec.name.clone(), client)
            }));
        }
        connected
    }

    /// Adds adapters that stay as they are, where it matters who else is connected: a link that goes down has other paths of its client beside it, and a way
    /// out of the host belongs to all cards.
    pub(super) fn add_beside(
        &self,
        adapters: &mut BTreeSet<String>,
        (before, after): (&WantedOfAll, &WantedOfAll),
    ) {
        let uplinks = |all: &WantedOfAll| -> Vec<_> {
            all.iter()
                .map(|(dataplane, wanted)| (dataplane.clone(), wanted.uplinks.clone()))
                .collect()
        };
        let ways = uplinks(before) != uplinks(after);
        let link = |all: &WantedOfAll, name: &str| {
            let spec = all.values().find_map(|wanted| wanted.adapters.get(name))?;
            Some(spec.scsi()?.link)
        };
        let down = adapters.iter().any(|name| link(before, name) != link(after, name));
        if !ways && !down {
            return;
        }
        let clients = self.connected(adapters);
        let clients: BTreeSet<u32> =
            clients.values().filter_map(|client| Some(client.process?.pid)).collect();
        let known = self.views.values().filter_map(|view| view.known.as_ref());
        let others = known.flat_map(|known| &known.status.adapters).filter(|adapter| {
            let card = matches!(adapter.spec.device, DeviceSpec::Ethernet(_));
            let same = adapter.client.is_some_and(|client| clients.contains(&client.pid));
            (ways && card) || same
        });
        adapters.extend(others.map(|adapter| adapter.spec.name.clone()));
    }

    /// The data plane that has a volume open.
    pub(super) fn holder_of(&self, volume: &str) -> Option<(&str, &View)> {
        let has = |dataplane: &str, view: &View| {
            if let Some(found) = self.now.get(dataplane).filter(|_| self.volumes.contains(volume)) {
                return found.volumes.contains(volume);
            }
            // It may have been opened since the last account.
            let opened = view.pid.is_some() && view.opened.contains_key(volume);
            let known = view.account();
            opened || known.is_some_and(|known| named(&known.status.volumes, volume).is_some())
        };
        let mut views = self.views.iter().map(|(name, view)| (name.as_str(), view));
        views.find(|(name, view)| has(name, view))
    }
}

/// One of a list in the order of names, as all of a [`crate::supervisor::Known`] are.
pub(super) fn named<'a, T: Named>(list: &'a [T], name: &str) -> Option<&'a T> {
    list.binary_search_by(|one| one.name().cmp(name)).ok().map(|at| &list[at])
}
