//! Held against a data plane that keeps the books and holds to its rules.

use super::*;
use crate::fake::Books;
use crate::model::resolve;
use crate::model::samples;
use proptest::prelude::*;
use protocol::message::Reply;

fn wanted() -> impl Strategy<Value = Wanted> {
    samples::desired().prop_map(|desired| resolve::wanted(&desired, "main", &samples::paths()))
}

/// Carries out all actions; every one must be allowed when its turn comes.
fn carry_out(books: &mut Books, wanted: &Wanted) -> Vec<Action> {
    let actions = reconcile(wanted, &books.status);
    for action in &actions {
        assert_eq!(books.handle(&action.request()), Reply::Done, "{action:?}");
    }
    actions
}

fn assert_reached(books: &Books, wanted: &Wanted) {
    let volumes: BTreeMap<String, VolumeSpec> =
        books.status.volumes.iter().map(|v| (v.spec.name.clone(), v.spec.clone())).collect();
    let adapters: BTreeMap<String, AdapterSpec> =
        books.status.adapters.iter().map(|a| (a.spec.name.clone(), a.spec.clone())).collect();
    assert_eq!(adapters, wanted.adapters);
    assert_eq!(volumes, wanted.volumes);
}

proptest! {
    #[test]
    fn reaches_what_is_wanted_from_nothing_and_from_anything(first in wanted(), second in wanted()) {
        let mut books = Books::new();
        carry_out(&mut books, &first);
        assert_reached(&books, &first);
        carry_out(&mut books, &second);
        assert_reached(&books, &second);
    }

    #[test]
    fn does_nothing_when_there_is_nothing_to_do(wanted in wanted()) {
        let mut books = Books::new();
        carry_out(&mut books, &wanted);
        prop_assert_eq!(reconcile(&wanted, &books.status), vec![]);
    }

    #[test]
    fn leaves_alone_what_is_as_wanted(first in wanted(), second in wanted()) {
        let mut books = Books::new();
        carry_out(&mut books, &first);
        let actions = reconcile(&second, &books.status);
        for (name, spec) in &second.adapters {
            let same_adapter = first.adapters.get(name) == Some(spec);
            let same_volume = { let volume = &spec.block().expect("all are").volume; first.volumes.get(volume) == second.volumes.get(volume) };
            if same_adapter && same_volume {
                let subject = Subject::Adapter(name.clone());
                prop_assert!(actions.iter().all(|action| action.subject() != subject));
            }
        }
    }

    #[test]
    fn goes_on_after_any_interruption(first in wanted(), second in wanted(), done in 0usize..8) {
        let mut books = Books::new();
        carry_out(&mut books, &first);
        for action in reconcile(&second, &books.status).iter().take(done) {
            books.handle(&action.request());
        }
        carry_out(&mut books, &second);
        assert_reached(&books, &second);
    }
}

#[test]
fn a_grown_volume_is_resized_under_its_running_adapter() {
    let desired = |size: u64| {
        let text = format!("[volume.v]\nkind=\"null\"\nsize={size}\n[adapter.a]\nvolume=\"v\"\n");
        resolve::wanted(&crate::config::read(&text).unwrap(), "main", &samples::paths())
    };
    let mut books = Books::new();
    carry_out(&mut books, &desired(4096));
    let resize = |bytes, shrink| Action::ResizeVolume { name: "v".to_owned(), bytes, shrink };
    assert_eq!(carry_out(&mut books, &desired(8192)), [resize(8192, false)]);
    assert_eq!(carry_out(&mut books, &desired(4096)), [resize(4096, true)]);
}

#[test]
fn an_adapter_whose_socket_failed_is_made_again() {
    let text = "[volume.v]\nkind=\"null\"\nsize=4096\n[adapter.a]\nvolume=\"v\"\n";
    let wanted = resolve::wanted(&crate::config::read(text).unwrap(), "main", &samples::paths());
    let mut books = Books::new();
    carry_out(&mut books, &wanted);
    books.status.adapters[0].state = AdapterState::Failed;
    assert_eq!(carry_out(&mut books, &wanted).len(), 2);
}
