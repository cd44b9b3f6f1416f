//! The operations of a server that runs: the journal as it is in memory, and what is not kept of those that go on.

use crate::operation::{Journal, Kind, Operation, Step, Work};
use fabric::attribute::Object;
use protocol::now_ms;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use utoipa::ToSchema;

/// An object by kind and name.
pub(super) type Key = (Object, String);

/// How much is done of what is in sight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// So much.
    pub done: u64,
    /// Of so much.
    pub total: u64,
    /// Of what: `bytes` or `steps`.
    pub unit: String,
}

/// An operation and how far it is.
#[derive(Debug, Clone)]
pub struct Shown {
    /// What is kept of it.
    pub operation: Operation,
    /// How much of it is done.
    pub progress: Progress,
}

/// What is known of an operation only as long as this server goes on with it.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// Bytes that were copied, and bytes in all.
    pub(super) copied: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) cancelled: AtomicBool,
    /// What it was to make has its name.
    pub(super) settled: AtomicBool,
    /// What it has changed, and what that names: nobody else changes these by name meanwhile.
    footprint: BTreeSet<Key>,
}

#[derive(Debug, Default)]
struct Inner {
    journal: Journal,
    live: BTreeMap<u64, Arc<Live>>,
}

/// The operations of a server.
#[derive(Debug)]
pub(super) struct Registry {
    inner: Mutex<Inner>,
    /// Counts what happens to operations.
    turns: watch::Sender<u64>,
}

impl Registry {
    /// With those that an earlier server began.
    pub(super) fn new(journal: Journal) -> Registry {
        let inner = Mutex::new(Inner { journal, live: BTreeMap::new() });
        Registry { inner, turns: watch::Sender::new(0) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be kept.
    pub(super) fn journal(&self) -> Journal {
        self.inner().journal.clone()
    }

    /// Adds an operation.
    pub(super) fn begin(
        &self,
        (kind, step, work): (Kind, Step, Work),
        footprint: BTreeSet<Key>,
        set: impl FnOnce(&mut Operation),
    ) -> u64 {
        let mut inner = self.inner();
        let id = inner.journal.begin(kind, step, work, now_ms());
        set(inner.journal.operations.get_mut(&id).expect("it was just added"));
        inner.live.insert(id, Arc::new(Live { footprint, ..Live::default() }));
        drop(inner);
        self.turns.send_modify(|turn| *turn += 1);
        id
    }

    /// One that was not even stored.
    pub(super) fn forget(&self, id: u64) {
        let mut inner = self.inner();
        inner.journal.operations.remove(&id);
        inner.live.remove(&id);
        drop(inner);
        self.turns.send_modify(|turn| *turn += 1);
    }

    /// An operation of an earlier server goes on.
    pub(super) fn resume(&self, id: u64) {
        let mut inner = self.inner();
        let footprint = inner.journal.operations.get(&id).into_iter();
        let footprint = footprint
            .flat_map(Operation::touches)
            .map(|(object, name)| (object, name.to_owned()))
            .collect();
        inner.live.insert(id, Arc::new(Live { footprint, ..Live::default() }));
    }

    /// What is known of one that goes on.
    pub(super) fn live(&self, id: u64) -> Option<Arc<Live>> {
        self.inner().live.get(&id).cloned()
    }

    /// An operation as it is now.
    pub(super) fn get(&self, id: u64) -> Option<Operation> {
        self.inner().journal.operations.get(&id).cloned()
    }

    /// This server does not go on with it.
    pub(super) fn abandon(&self, id: u64) {
        self.inner().live.remove(&id);
        self.turns.send_modify(|turn| *turn += 1);
    }

    /// Changes one. What was in it before.
    pub(super) fn update(&self, id: u64, change: impl FnOnce(&mut Operation)) -> Option<Operation> {
        let mut inner = self.inner();
        let operation = inner.journal.operations.get_mut(&id)?;
        let before = operation.clone();
        change(operation);
        if operation.step.has_ended() && operation.ended_ms.is_none() {
            operation.ended_ms = Some(now_ms());
        }
        if operation.step.has_ended() {
            inner.live.remove(&id);
            inner.journal.prune();
        }
        drop(inner);
        self.turns.send_modify(|turn| *turn += 1);
        Some(before)
    }

    /// Puts one back as it was.
    pub(super) fn restore(&self, before: Operation) {
        self.inner().journal.operations.insert(before.id, before);
    }

    /// Those that there are.
    pub(super) fn all(&self) -> Vec<Shown> {
        let inner = self.inner();
        let shown = |operation: &Operation| Shown {
            operation: operation.clone(),
            progress: progress(operation, inner.live.get(&operation.id).map(|live| &**live)),
        };
        inner.journal.operations.values().map(shown).collect()
    }

    /// One that goes on and has to do with what a change touches, or what that names.
    pub(super) fn in_the_way(
        &self,
        touched: &BTreeSet<Key>,
        footprint: &BTreeSet<Key>,
        own: Option<u64>,
    ) -> Option<u64> {
        let inner = self.inner();
        let clashes = |operation: &&Operation| {
            let Some(live) = inner.live.get(&operation.id) else { return false };
            if operation.lasting && operation.step == Step::Waiting {
                return false;
            }
            operation.touches().any(|(o, name)| footprint.contains(&(o, name.to_owned())))
                || !live.footprint.is_disjoint(touched)
        };
        let others = |operation: &&Operation| Some(operation.id) != own;
        inner.journal.running().filter(others).find(clashes).map(|operation| operation.id)
    }

    /// Somebody else wants these as they are: they are not taken back. Those whose records this changed, as they were.
    pub(super) fn keep(&self, wanted: &BTreeSet<Key>) -> Vec<Operation> {
        let mut inner = self.inner();
        let mut before = Vec::new();
        for operation in inner.journal.operations.values_mut() {
            let was = operation.clone();
            if let Work::Change { edits, .. } = &mut operation.work
                && !operation.step.has_ended()
            {
                let named = |edit: &&mut crate::operation::Edit| {
                    edit.after.is_some() && wanted.contains(&(edit.object, edit.name.clone()))
                };
                edits.iter_mut().filter(named).for_each(|edit| edit.kept = true);
            }
            if *operation != was {
                before.push(was);
            }
        }
        before
    }

    /// The first operation of such work that goes on.
    pub(super) fn running(&self, is: impl Fn(&Work) -> bool) -> Option<u64> {
        let inner = self.inner();
        inner.journal.running().find(|it| is(&it.work)).map(|operation| operation.id)
    }

    /// Whether changes or restarts are under way.
    pub(super) fn busy(&self) -> bool {
        let inner = self.inner();
        inner.journal.running().any(|operation| inner.live.contains_key(&operation.id))
    }

    /// Returns when something is so.
    pub(super) async fn until(&self, mut so: impl FnMut(&Registry) -> bool) {
        let mut turns = self.turns.subscribe();
        while !so(self) {
            // An error is the end of the server.
            if turns.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns when an operation has ended, or this server does not go on with it.
    pub(super) async fn ended(&self, id: u64) {
        self.until(|all| all.live(id).is_none()).await;
    }

    /// By state: how many there are.
    pub(super) fn counts(&self) -> BTreeMap<Step, u64> {
        let mut counts: BTreeMap<Step, u64> = Step::ALL.map(|step| (step, 0)).into();
        for operation in self.inner().journal.operations.values() {
            *counts.entry(operation.step).or_default() += 1;
        }
        counts
    }
}

fn progress(operation: &Operation, live: Option<&Live>) -> Progress {
    let bytes = live.map_or(0, |live| live.bytes.load(Ordering::Relaxed));
    if operation.step.copies() && bytes > 0 {
        let done = live.map_or(0, |live| live.copied.load(Ordering::Relaxed)).min(bytes);
        return Progress { done, total: bytes, unit: "bytes".to_owned() };
    }
    let total = if operation.kind == Kind::Copy { 2 } else { 1 };
    let done = match operation.step {
        Step::Done => total,
        Step::Waiting => total - 1,
        _ => 0,
    };
    Progress { done, total, unit: "steps".to_owned() }
}
