//! The store as the server has it, watched: what was kept, and what may have been.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use control::error::ApiError;
use control::model::Desired;
use control::operation::{Journal, Step, Work};
use control::store::{RedbStore, Store, StoreError};
use fabric::attribute::{Attributes, Object, attr};
use memory::sim;

use super::asks::{self, End};

/// What the store may hold.
#[derive(Default)]
struct Book {
    /// What was kept last.
    certain: (Desired, Journal),
    /// What was to be kept since then, where that failed or the process died in the middle of it.
    maybe: Vec<(Desired, Journal)>,
    /// WWPNs by whose they were.
    wwpns: BTreeMap<String, (Object, String)>,
    /// How often a volume of this name was made.
    volumes: BTreeMap<String, u64>,
    finding: Option<String>,
    commits: u64,
}

thread_local! {
    static BOOK: RefCell<Book> = RefCell::default();
}

pub(super) fn new() {
    BOOK.set(Book::default());
}

/// What was wrong.
pub(super) fn finding() -> Option<String> {
    BOOK.with_borrow(|book| book.finding.clone())
}

/// How often something was kept.
pub(super) fn commits() -> u64 {
    BOOK.with_borrow(|book| book.commits)
}

/// What is kept for certain.
pub(super) fn certain() -> Desired {
    BOOK.with_borrow(|book| book.certain.0.clone())
}

/// Whether the end of an operation or what was learned is not kept: a disk that failed then did not take it, and the next change writes it.
pub(super) fn lags() -> bool {
    BOOK.with_borrow(|book| {
        let goes_on = book.certain.1.operations.values().any(|it| !it.step.has_ended());
        goes_on || !book.maybe.is_empty()
    })
}

/// Whether a change was refused since the store could not keep it.
pub(super) fn is_of_the_store(refusal: &ApiError) -> bool {
    refusal.message.starts_with("the store ")
}

/// Which volume of this name there is now: each that is made has another number.
pub(super) fn volume(name: &str) -> u64 {
    BOOK.with_borrow(|book| book.volumes.get(name).copied().unwrap_or(0))
}

fn find(what: String) {
    BOOK.with_borrow_mut(|book| book.finding = book.finding.take().or(Some(what)));
}

/// WWPNs that were given to it.
fn wwpns(object: Object, set: &Attributes) -> Vec<String> {
    let text = match object {
        Object::Adapter => attr::adapter::WWPNS.of(set),
        Object::Target => attr::target::WWPN.of(set),
        _ => None,
    };
    text.into_iter().flat_map(|text| text.split(',')).map(|one| one.trim().to_owned()).collect()
}

impl Book {
    /// Something was kept.
    fn keep(&mut self, next: &Desired, journal: &Journal) {
        let before = std::mem::replace(&mut self.certain, (next.clone(), journal.clone()));
        let journals = [&before.1, journal];
        self.maybe.clear();
        self.commits += 1;
        // What comes again because its removal is undone is what it was.
        let undone: BTreeSet<(Object, &str)> = journals
            .into_iter()
            .flat_map(|journal| journal.operations.values())
            .filter_map(|operation| match &operation.work {
                Work::Change { edits, .. } => Some(edits),
                Work::Restart { .. }
                | Work::Detach { .. }
                | Work::Scrub { .. }
                | Work::Image(_) => None,
            })
            .flatten()
            .filter(|edit| edit.before.is_some() && edit.after.is_none())
            .map(|edit| (edit.object, edit.name.as_str()))
            .collect();
        let fresh = |object: Object| {
            let is_new = |name: &&String| {
                !before.0[object].contains_key(name) && !undone.contains(&(object, name.as_str()))
            };
            next[object].keys().filter(is_new).cloned().collect::<Vec<_>>()
        };
        for name in fresh(Object::Volume) {
            *self.volumes.entry(name).or_default() += 1;
        }
        for object in [Object::Adapter, Object::Target] {
            for name in fresh(object) {
                for wwpn in next[object].get(&name).into_iter().flat_map(|set| wwpns(object, set)) {
                    // Whoever names one has it.
                    let is_named = asks::with(|asked| {
                        let mut named = asked.iter().flat_map(|it| it.of(object, &name));
                        named.any(|set| wwpns(object, set).contains(&wwpn))
                    });
                    if is_named {
                        continue;
                    }
                    let whose = (object, name.clone());
                    if let Some((of, other)) = self.wwpns.insert(wwpn.clone(), whose) {
                        let what = format!(
                            "WWPN {wwpn} of a new {object} {name} was that of {of} {other} before"
                        );
                        self.finding.get_or_insert(what);
                    }
                }
            }
        }
    }
}

/// The store of one life of the server.
pub(super) struct Kept {
    pub store: RedbStore,
    pub life: u64,
}

impl Kept {
    fn lives(&self) -> bool {
        super::lives(self.life)
    }
}

impl Store for Kept {
    fn load(&mut self) -> Result<Desired, StoreError> {
        let loaded = self.store.load();
        if !self.lives() {
            return loaded;
        }
        match &loaded {
            Ok(state) => BOOK.with_borrow_mut(|book| {
                let found = (state.clone(), self.store.journal());
                let known = std::iter::once(&book.certain).chain(&book.maybe);
                if !known.into_iter().any(|it| *it == found) {
                    let what = "the store holds another state than was kept last".to_owned();
                    book.finding.get_or_insert(what);
                }
                if found != book.certain {
                    sim::tell(|| "store: has what was not kept for certain".to_owned());
                    asks::with(|asked| {
                        let refused = asked.iter_mut().filter(|it| it.unsure);
                        refused.for_each(|it| it.end = End::Unknown);
                    });
                    book.keep(&found.0, &found.1);
                }
                book.maybe.clear();
            }),
            Err(error) => find(format!("the store cannot be read: {error}")),
        }
        loaded
    }

    fn journal(&self) -> Journal {
        self.store.journal()
    }

    fn commit(&mut self, next: &Desired, journal: &Journal) -> Result<(), StoreError> {
        if !self.lives() {
            return self.store.commit(next, journal);
        }
        let same = BOOK.with_borrow(|book| {
            book.maybe.is_empty() && book.certain.0 == *next && book.certain.1 == *journal
        });
        BOOK.with_borrow_mut(|book| book.maybe.push((next.clone(), journal.clone())));
        let kept = self.store.commit(next, journal);
        if self.lives() {
            if kept.is_ok() {
                asks::with(|asked| asked.iter_mut().for_each(|it| it.unsure = false));
            }
            match &kept {
                Ok(()) if same => BOOK.with_borrow_mut(|book| book.maybe.clear()),
                Ok(()) => {
                    BOOK.with_borrow_mut(|book| book.keep(next, journal));
                    sim::tell(|| {
                        let steps: Vec<(u64, &str)> = journal
                            .operations
                            .values()
                            .filter(|it| it.step != Step::Done)
                            .map(|it| (it.id, it.step.as_str()))
                            .collect();
                        format!("store: keeps {} with operations {steps:?}", super::short(next))
                    });
                }
                Err(error) => sim::tell(|| super::clean(&format!("store: {error}"))),
            }
        }
        kept
    }

    fn is_unsure(&self) -> bool {
        self.store.is_unsure()
    }

    fn mend(&mut self) -> Option<String> {
        self.store.mend()
    }
}
