//! Held against [`reconcile`], which looks at everything.

use super::*;
use crate::fake::Books;
use crate::model::resolve;
use crate::model::samples;
use proptest::prelude::*;
use protocol::message::{Account, AdapterState, Reply};

fn wanted() -> impl Strategy<Value = Wanted> {
    samples::desired().prop_map(|desired| resolve::wanted(&desired, "main", &samples::paths()))
}

/// A data plane, and what is known of it.
struct Told {
    books: Books,
    has: Inventory,
    told: Account,
    wanted: Wanted,
    about: Names,
    /// It is asked for what is to be compared, and for nothing else.
    by_name: bool,
}

impl Told {
    fn new(by_name: bool) -> Told {
        Told {
            books: Books::new(),
            has: Inventory::default(),
            told: Account::default(),
            wanted: Wanted::default(),
            about: Names::new(),
            by_name,
        }
    }

    fn hear(&mut self) {
        let reply = if self.by_name {
            let of = selection(&self.about, &self.wanted);
            let part = self.books.part(&of);
            self.told.tell_of(of, part)
        } else {
            self.told.tell(self.books.status.clone())
        };
        let Reply::Changes(changes) = reply else { panic!("changes") };
        self.about.append(&mut self.has.hear(changes));
    }

    /// Carries out so many actions of those that lead to what is wanted; the others have failed.
    fn make(&mut self, wanted: &Wanted, most: usize) {
        self.about.append(&mut differences(&self.wanted, wanted));
        self.wanted = wanted.clone();
        self.hear();
        let actions = reconcile_of(wanted, &self.has, &self.about);
        // A data plane tells what it has in the order of names.
        let mut all = self.books.status.clone();
        all.volumes.sort_by(|a, b| a.name().cmp(b.name()));
        all.units.sort_by(|a, b| a.name().cmp(b.name()));
        all.adapters.sort_by(|a, b| a.name().cmp(b.name()));
        all.uplinks.sort_by(|a, b| a.name().cmp(b.name()));
        all.pools.sort_by(|a, b| a.name().cmp(b.name()));
        assert_eq!(actions, reconcile(wanted, &all), "about {:?}", self.about);
        self.about = Names::new();
        for (count, action) in actions.iter().enumerate() {
            self.about.insert(action.subject());
            if count < most {
                assert_eq!(self.books.handle(&action.request()), Reply::Done, "{action:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// What has changed on either side, and what could not be done, is all there is to compare.
    #[test]
    fn what_has_changed_leads_to_the_same_actions(
        changes in proptest::collection::vec((wanted(), 0usize..12, any::<prop::sample::Index>()), 1..6),
    ) {
        let mut told = Told::new(false);
        for (wanted, most, index) in &changes {
            told.make(wanted, *most);
            // It has troubles of its own.
            let adapters = &mut told.books.status.adapters;
            if !adapters.is_empty() {
                index.get_mut(&mut adapters[..]).state = AdapterState::Failed;
                adapters.swap_remove(index.index(adapters.len() + 1) % adapters.len());
            }
        }
        let last = &changes[changes.len() - 1].0;
        told.make(last, usize::MAX);
        told.make(last, 0);
        prop_assert!(told.about.is_empty(), "something was left: {:?}", told.about);
    }

    /// The same where nothing changes by itself, and only what is to be compared is asked for.
    #[test]
    fn what_is_asked_for_by_name_leads_to_the_same_actions(
        changes in proptest::collection::vec((wanted(), 0usize..12), 1..6),
    ) {
        let mut told = Told::new(true);
        for (wanted, most) in &changes {
            told.make(wanted, *most);
        }
        let last = &changes[changes.len() - 1].0;
        told.make(last, usize::MAX);
        told.make(last, usize::MAX);
        assert_eq!(reconcile(last, &told.books.status), []);
    }
}

#[test]
fn what_is_beside_a_change_is_not_compared() {
    let compared = |beside: usize, by_name: bool, change: &dyn Fn(&mut Wanted)| {
        let mut text = String::new();
        for n in 0..beside {
            text += &format!(
                "[volume.v{n}]\nkind=\"null\"\nsize=4096\n[adapter.a{n}]\nvolume=\"v{n}\"\n"
            );
        }
        let desired = crate::config::read(&text).unwrap();
        let mut wanted = resolve::wanted(&desired, "main", &samples::paths());
        let mut told = Told::new(by_name);
        told.make(&wanted, usize::MAX);
        // That it was done is heard, once.
        told.make(&wanted, usize::MAX);
        change(&mut wanted);
        told.about.append(&mut differences(&told.wanted, &wanted));
        told.hear();
        assert!(!reconcile_of(&wanted, &told.has, &told.about).is_empty());
        let part = told.has.part(&told.about);
        (told.about.len(), part.volumes.len() + part.adapters.len())
    };
    let changes: [&dyn Fn(&mut Wanted); 3] = [
        &|wanted| wanted.adapters.get_mut("a1").unwrap().queues = 2,
        &|wanted| wanted.volumes.get_mut("v1").unwrap().bytes = Some(8192),
        &|wanted| drop(wanted.adapters.remove("a1")),
    ];
    for change in changes {
        for (beside, by_name) in [(10, false), (1000, false), (1000, true)] {
            assert_eq!(compared(beside, by_name, change), (1, 1));
        }
    }
}
