//! What is committed survives: reopening, a crash at any write, torn writes, a killed process.

use super::*;
use crate::model::samples;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::io;
use std::sync::{Arc, Mutex};

/// A disk with a volatile cache: what was not synced may be lost or torn in a crash.
#[derive(Debug, Clone, Default)]
struct Disk(Arc<Mutex<DiskState>>);

#[derive(Debug, Default)]
struct DiskState {
    durable: Vec<u8>,
    /// Since the last sync: `None` sets the length.
    cached: Vec<Write>,
    /// Operations until the power fails.
    left: Option<usize>,
}

#[derive(Debug, Clone)]
enum Write {
    Data(u64, Vec<u8>),
    Length(u64),
}

fn place(bytes: &mut Vec<u8>, write: &Write) {
    match write {
        Write::Length(len) => bytes.resize(usize::try_from(*len).unwrap(), 0),
        Write::Data(offset, data) => {
            let start = usize::try_from(*offset).unwrap();
            let end = start + data.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[start..end].copy_from_slice(data);
        }
    }
}

impl DiskState {
    fn spend(&mut self) -> io::Result<()> {
        match &mut self.left {
            Some(0) => Err(io::Error::other("no power")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn visible(&self) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        self.cached.iter().for_each(|write| place(&mut bytes, write));
        bytes
    }
}

impl Disk {
    fn state(&self) -> std::sync::MutexGuard<'_, DiskState> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What is on the disk when power comes back: of each write since the last sync, by the bits of
    /// `luck`, all of it, nothing of it, or its first sectors.
    fn after_power_failure(&self, luck: u64) -> Disk {
        let state = self.state();
        let mut durable = state.durable.clone();
        for (index, write) in state.cached.iter().enumerate() {
            let fate = luck.rotate_right(u32::try_from(index * 2 % 64).unwrap()) & 3;
            match (write, fate) {
                (_, 0) => {}
                (Write::Data(offset, data), 1) => {
                    let torn = data.len() / 2 / 512 * 512;
                    place(&mut durable, &Write::Data(*offset, data[..torn].to_vec()));
                }
                _ => place(&mut durable, write),
            }
        }
        Disk(Arc::new(Mutex::new(DiskState { durable, ..DiskState::default() })))
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().visible().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.state().visible();
        let start = usize::try_from(offset).unwrap();
        let found = bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.spend()?;
        state.cached.push(Write::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        state.spend()?;
        state.durable = state.visible();
        state.cached.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        state.spend()?;
        state.cached.push(Write::Data(offset, data.to_vec()));
        Ok(())
    }
}

#[test]
fn what_was_committed_is_loaded_by_the_next_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.redb");
    let desired = crate::config::read("[volume.v]\nkind=\"null\"\nsize=4096\n").unwrap();
    let mut store = RedbStore::open(&path).unwrap();
    assert_eq!(store.load().unwrap(), Desired::default());
    store.commit(&desired, &Journal::default()).unwrap();
    assert!(matches!(RedbStore::open(&path), Err(StoreError::Busy(_))));
    drop(store);
    let mut store = RedbStore::open(&path).unwrap();
    assert_eq!(store.load().unwrap(), desired);
    store.commit(&Desired::default(), &Journal::default()).unwrap();
    assert_eq!(store.load().unwrap(), Desired::default());
}

#[test]
fn a_record_of_a_later_program_is_an_error_that_names_it() {
    let mut store = RedbStore::on(Disk::default()).unwrap();
    let write = store.database().unwrap().begin_write().unwrap();
    let mut table = write.open_table(OBJECTS).unwrap();
    table.insert(("volume", "v"), &br#"{"version":9,"attributes":{}}"#[..]).unwrap();
    drop(table);
    write.commit().unwrap();
    let problem = store.load().unwrap_err().to_string();
    assert!(problem.contains("volume `v`") && problem.contains("version 9"), "{problem}");
}

/// Three states, committed one after the other on a disk that loses power after `operations`
/// writes, lengths and syncs. Returns how many commits were acknowledged and the disk.
fn commits_until_power_fails(states: &[Desired], operations: usize) -> (usize, Disk) {
    let disk = Disk::default();
    disk.state().left = Some(operations);
    let mut acknowledged = 0;
    // A store that fails in the middle may not be usable further; that is what is tested.
    if let Ok(mut store) = RedbStore::on(disk.clone()) {
        for state in states {
            if store.commit(state, &Journal::default()).is_err() {
                break;
            }
            acknowledged += 1;
        }
        // Its files are closed in good order by a process that lives; this one has no power.
        disk.state().left = Some(0);
    }
    (acknowledged, disk)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn a_power_failure_loses_nothing_that_was_acknowledged(
        states in proptest::collection::vec(samples::desired(), 3),
        operations in 0usize..90,
        luck: u64,
    ) {
        let (acknowledged, disk) = commits_until_power_fails(&states, operations);
        let disk = disk.after_power_failure(luck);
        let found = RedbStore::on(disk).and_then(|mut store| store.load());
        let mut history = vec![Desired::default()];
        history.extend(states);
        match found {
            Ok(found) => {
                let last = &history[acknowledged];
                let next = history.get(acknowledged + 1);
                prop_assert!(&found == last || Some(&found) == next, "found {found:?}");
            }
            // Only a store that was never made whole may be unreadable.
            Err(error) => prop_assert_eq!(acknowledged, 0, "{}", error),
        }
    }
}

proptest! {
    #[test]
    fn sums_that_followed_are_those_of_the_state(
        states in proptest::collection::vec(samples::desired(), 1..5),
    ) {
        let (mut now, mut sums) = (Desired::default(), seal::Sums::of(&Desired::default()));
        for next in states {
            sums.follow(&now, &next);
            prop_assert_eq!(&sums, &seal::Sums::of(&next));
            prop_assert_eq!(sums.seal(&next.allocations), seal::of_state(&next));
            now = next;
        }
    }
}

#[test]
fn the_disk_of_these_tests_does_lose_what_was_not_synced() {
    let disk = Disk::default();
    disk.write(0, &[1; 1024]).unwrap();
    assert_eq!(disk.after_power_failure(0).len().unwrap(), 0);
    disk.sync_data().unwrap();
    assert_eq!(disk.after_power_failure(0).len().unwrap(), 1024);
}

#[test]
fn a_medium_that_fails_for_a_while_costs_that_while_only() {
    let state = |name: &str| {
        crate::config::read(&format!("[volume.{name}]\nkind=\"null\"\nsize=4096\n")).unwrap()
    };
    let (before, refused, after) = (state("before"), state("refused"), state("after"));
    let mut refusals = 0;
    for operations in 0..24 {
        let disk = Disk::default();
        let mut store = RedbStore::on(disk.clone()).unwrap();
        store.commit(&before, &Journal::default()).unwrap();
        disk.state().left = Some(operations);
        let written = store.commit(&refused, &Journal::default());
        refusals += usize::from(written.is_err());
        // As long as it lasts, the answer is an error and no panic.
        assert!(written.is_ok() || store.commit(&after, &Journal::default()).is_err());
        disk.state().left = None;
        store.commit(&after, &Journal::default()).unwrap();
        assert_eq!(store.load().unwrap(), after, "after {operations} operations");
        drop(store);
        assert_eq!(RedbStore::on(disk).unwrap().load().unwrap(), after);
    }
    assert!(refusals > 4, "{refusals}");
}

#[test]
fn what_was_refused_is_not_there_once_it_is_settled() {
    let [before, refused] = [1, 2].map(volumes);
    let mut landed = 0;
    for operations in 0..24 {
        let disk = Disk::default();
        let mut store = RedbStore::on(disk.clone()).unwrap();
        store.commit(&before, &Journal::default()).unwrap();
        assert!(!store.is_unsure());
        disk.state().left = Some(operations);
        if store.commit(&refused, &Journal::default()).is_ok() {
            continue;
        }
        assert!(store.is_unsure());
        disk.state().left = None;
        let there = disk.after_power_failure(u64::MAX);
        landed += usize::from(RedbStore::on(there).unwrap().load().unwrap() == refused);
        store.commit(&before, &Journal::default()).unwrap();
        assert!(!store.is_unsure());
        drop(store);
        assert_eq!(RedbStore::on(disk).unwrap().load().unwrap(), before, "{operations}");
    }
    assert!(landed > 0, "none of the commits that failed came to the disk");
}

#[test]
fn the_file_is_its_owners_only_and_one_that_is_there_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.redb");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    drop(RedbStore::open(&path).unwrap());
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    drop(RedbStore::open(&path).unwrap());
    assert_eq!(mode(), 0o640);
}

#[test]
fn a_long_history_is_replaced_record_by_record() {
    let mut runner = TestRunner::deterministic();
    let mut store = RedbStore::on(Disk::default()).unwrap();
    for _ in 0..20 {
        let state = samples::desired().new_tree(&mut runner).unwrap().current();
        store.commit(&state, &Journal::default()).unwrap();
        assert_eq!(store.load().unwrap(), state);
    }
}

/// A state with something of everything, in a store of its own.
fn full(dir: &Path) -> (PathBuf, Desired) {
    let path = dir.join("control.redb");
    let text = "[volume.v]\nkind=\"file\"\npath=\"/srv/v.img\"\nsize=\"1GiB\"\n[volume.w]\nkind=\"file\"\npath=\"/srv/w.img\"\n\
        [adapter.a]\nvolume=\"v\"\n[adapter.f]\nkind=\"fc\"\nwwpns=\"c0:50:76:00:00:01:00:00,c0:50:76:00:00:01:00:01\"\n";
    let mut desired = crate::config::read(text).unwrap();
    crate::model::allocations::settle(&Desired::default(), &mut desired, 7).unwrap();
    RedbStore::open(&path).unwrap().commit(&desired, &Journal::default()).unwrap();
    (path, desired)
}

#[test]
fn no_bit_that_flips_becomes_another_state() {
    let dir = tempfile::tempdir().unwrap();
    let (path, desired) = full(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    let found = |what: &[u8]| bytes.windows(what.len()).position(|at| at == what).unwrap();
    let (mut refused, mut unharmed) = (0, 0);
    for what in [
        &b"/srv/v.img"[..],
        b"/srv/w.img",
        b"volume",
        b"adapter",
        b"c0:50:76",
        b"\"version\":2",
        b"objects",
    ] {
        for bit in 0..what.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[found(what) + bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &flipped).unwrap();
            match RedbStore::open(&path).and_then(|mut store| store.load()) {
                Ok(loaded) => {
                    assert_eq!(loaded, desired, "bit {bit} of {}", String::from_utf8_lossy(what));
                    unharmed += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 10 * unharmed, "{refused} refused, {unharmed} unharmed");
}

#[test]
fn a_store_that_was_emptied_is_refused_and_comes_back_from_its_copy() {
    let dir = tempfile::tempdir().unwrap();
    let (path, desired) = full(dir.path());
    let whole = std::fs::read(&path).unwrap();
    for damage in [Some(vec![]), Some(vec![0; whole.len()]), Some(whole[..4096].to_vec()), None] {
        match &damage {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let problem = RedbStore::open(&path).and_then(|mut store| store.load()).unwrap_err();
        assert!(!matches!(problem, StoreError::Busy(_)), "{problem}");
        let mut store = RedbStore::restore(&path).unwrap();
        assert_eq!(store.load().unwrap(), desired);
        drop(store);
        assert_eq!(RedbStore::open(&path).unwrap().load().unwrap(), desired);
    }
    // A copy that is damaged itself is not believed.
    std::fs::write(copy_of(&path), b"{}").unwrap();
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(RedbStore::restore(&path), Err(StoreError::Damaged { .. })));
}

#[test]
fn what_cannot_be_read_is_neither_damaged_nor_taken_for_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = full(dir.path());
    // A folder cannot be read as a file, whoever reads.
    let log = good::log_of(&copy_of(&path));
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    let problem = last_good(&path).unwrap_err();
    assert!(matches!(problem, StoreError::Engine { .. }), "an earlier state: {problem}");
    // Whether there is a store is not known here, so none is made in its place.
    let other = dir.path().join("other.redb");
    std::os::unix::fs::symlink(&other, &other).unwrap();
    assert!(matches!(RedbStore::open(&other), Err(StoreError::Engine { .. })));
    assert!(std::fs::symlink_metadata(&other).unwrap().is_symlink());
}

#[test]
fn a_state_of_the_first_version_is_read_and_sealed_with_the_next_change() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.redb");
    let store = RedbStore::open(&path).unwrap();
    let write = store.database().unwrap().begin_write().unwrap();
    let mut table = write.open_table(OBJECTS).unwrap();
    let record = br#"{"version":1,"attributes":{"kind":"null","size":4096}}"#;
    table.insert(("volume", "v"), &record[..]).unwrap();
    drop(table);
    write.commit().unwrap();
    drop(store);
    let mut store = RedbStore::open(&path).unwrap();
    let mut desired = store.load().unwrap();
    assert_eq!(desired[Object::Volume].len(), 1);
    let copy = desired[Object::Volume]["v"].clone();
    desired[Object::Volume].insert("w".to_owned(), copy);
    store.commit(&desired, &Journal::default()).unwrap();
    assert_eq!(store.load().unwrap(), desired);
}

/// As version 2 was written when each object had a field of its own.
const COPY: &str = r#"{"version":2,"desired":{"dataplane":{"main":{"channels":2}},"volume":{"v":{"kind":"ram","size":4096}},"adapter":{"a":{"volume":"v"}},"given":{"system":7,"wwpns":{"next":{},"chosen":[]},"maxima":{},"vports":[],"files":{}}},"seal":{"objects":3,"sum":10992576757416745989}}"#;

#[test]
fn a_copy_of_an_earlier_program_is_read_and_what_it_cannot_have_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.redb");
    std::fs::write(copy_of(&path), COPY).unwrap();
    let desired = last_good(&path).unwrap();
    let names = |object| desired[object].keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((names(Object::Volume), names(Object::Adapter)), (vec!["v"], vec!["a"]));
    assert_eq!((names(Object::DataPlane), names(Object::Zone)), (vec!["main"], vec![]));
    assert_eq!(desired.allocations.system, Some(7));
    std::fs::write(copy_of(&path), COPY.replace("\"adapter\"", "\"adaptor\"")).unwrap();
    let problem = last_good(&path).unwrap_err().to_string();
    assert!(problem.contains("no objects `adaptor`"), "{problem}");
}

/// So many volumes with files that were opened.
fn volumes(count: usize) -> Desired {
    let mut desired = Desired::default();
    for n in 0..count {
        let set = [("kind", "file"), ("path", "/srv/some/file")]
            .map(|(name, value)| (name.to_owned(), fabric::attribute::Value::Text(value.into())));
        desired[Object::Volume].insert(format!("v{n:06}"), set.into());
        let identity =
            spec::FileIdentity::File { inode: Some(7), born_ns: Some(1 << 60), bytes: 4096 };
        let made = crate::model::files::Made::Is(identity);
        desired.allocations.files.insert(format!("v{n:06}"), made);
    }
    desired
}

#[test]
fn what_is_written_for_a_change_does_not_grow_with_what_is_beside_it() {
    let change = |count: usize| {
        let dir = tempfile::tempdir().unwrap();
        let mut store = RedbStore::open(&dir.path().join("control.redb")).unwrap();
        let mut state = volumes(count);
        store.commit(&state, &Journal::default()).unwrap();
        let written = |store: &RedbStore| {
            (store.written.get(), store.copy.as_ref().map_or(0, |copy| copy.written))
        };
        let mut one = || {
            let before = written(&store);
            let size = fabric::attribute::Value::Number(8192);
            let name = state[Object::Volume].keys().nth(7).unwrap().clone();
            state[Object::Volume].get_mut(&name).unwrap().insert("size".to_owned(), size);
            state.allocations.files.remove(&name);
            store.commit(&state, &Journal::default()).unwrap();
            let after = written(&store);
            (after.0 - before.0, after.1 - before.1)
        };
        one()
    };
    let (few, many) = (change(10), change(3000));
    // The numbers of what there is have more digits.
    assert!(many.0 <= few.0 + 64 && many.1 <= few.1 + 64, "{few:?} {many:?}");
    assert!(few.0 < 1024 && few.1 < 1024, "{few:?}");
}

#[test]
fn the_copy_is_the_last_state_after_each_change_and_stays_as_long_as_the_state() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.redb");
    let mut runner = TestRunner::deterministic();
    let mut store = RedbStore::open(&path).unwrap();
    let (mut lines, mut anew, mut before) = (0, 0, 0);
    for n in 0..300_u32 {
        let mut state = samples::desired().new_tree(&mut runner).unwrap().current();
        let maximum = crate::model::allocations::Maximum { channels: n, connection: 1 };
        state.allocations.maxima.insert(format!("a{}", n % 3), maximum);
        store.commit(&state, &Journal::default()).unwrap();
        let copy = last_good(&path).unwrap();
        assert_eq!((&copy.allocations, copy.touched(&state)), (&state.allocations, vec![]));
        let log = std::fs::metadata(path.with_extension("good-log")).unwrap().len();
        assert!(log < 200 << 10, "{log}");
        (lines, anew) = (lines + u32::from(log > before), anew + u32::from(log < before));
        before = log;
    }
    assert!(lines > 100 && anew > 0, "{lines} lines, {anew} times anew");
}

#[test]
fn of_a_copy_whose_log_is_cut_or_damaged_what_is_before_that_is_good() {
    let dir = tempfile::tempdir().unwrap();
    let (path, first) = full(dir.path());
    let mut store = RedbStore::open(&path).unwrap();
    assert_eq!(store.load().unwrap(), first);
    let mut states = vec![first];
    for n in 0..3 {
        let mut state = states[states.len() - 1].clone();
        state[Object::Volume].remove(["v", "w"][n % 2]);
        state[Object::Zone].insert(format!("z{n}"), Attributes::new());
        store.commit(&state, &Journal::default()).unwrap();
        states.push(state);
    }
    drop(store);
    let log = path.with_extension("good-log");
    let bytes = std::fs::read(&log).unwrap();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 3);
    let holds = |written: &[u8], expected: &Desired| {
        std::fs::write(&log, written).unwrap();
        assert_eq!(&last_good(&path).unwrap(), expected);
    };
    let two = lines[0].len() + lines[1].len();
    for cut in two..bytes.len() {
        holds(&bytes[..cut], &states[2]);
        let mut flipped = bytes.clone();
        flipped[cut] ^= 1;
        holds(&flipped, &states[2]);
    }
    holds(&bytes, &states[3]);
    // Lines of another copy.
    holds(&[lines[1], lines[2]].concat(), &states[0]);
    holds(&[lines[0], lines[2]].concat(), &states[1]);
    // One of an earlier program, beside which a later one has left its log.
    std::fs::write(copy_of(&path), COPY).unwrap();
    assert_eq!(last_good(&path).unwrap()[Object::Volume].len(), 1);
}

#[test]
fn a_store_of_the_second_version_is_read_and_written_anew_with_the_next_change() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut desired) = full(dir.path());
    desired.allocations.files.insert("v".to_owned(), crate::model::files::Made::Taken);
    let store = RedbStore::open(&path).unwrap();
    let write = store.database().unwrap().begin_write().unwrap();
    write.delete_table(GIVEN).unwrap();
    let mut table = write.open_table(GIVEN).unwrap();
    let given = given::Rest { version: 2, allocations: desired.allocations.clone() };
    table.insert(GIVEN_KEY, &seal::json(&given)[..]).unwrap();
    table.insert(SEAL_KEY, &seal::json(&seal::of_state_2(&desired))[..]).unwrap();
    drop(table);
    write.commit().unwrap();
    drop(store);
    let mut store = RedbStore::open(&path).unwrap();
    assert_eq!(store.load().unwrap(), desired);
    desired[Object::Zone].insert("z".to_owned(), Attributes::new());
    store.commit(&desired, &Journal::default()).unwrap();
    assert_eq!(store.load().unwrap(), desired);
    drop(store);
    assert_eq!(RedbStore::open(&path).unwrap().load().unwrap(), desired);
}

#[test]
fn a_store_that_somebody_removes_is_made_again_with_all_that_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let (path, first) = full(dir.path());
    let journal = Journal { last: 7, ..Journal::default() };
    let mut store = RedbStore::open(&path).unwrap();
    assert_eq!(store.load().unwrap(), first);
    let reopened = |state: &Desired| {
        let mut other = RedbStore::open(&path).unwrap();
        assert_eq!(other.load().unwrap(), *state);
        assert_eq!(other.journal(), journal);
        assert_eq!(last_good(&path).unwrap(), *state);
    };
    // With the next change, and its copy with it.
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(copy_of(&path)).unwrap();
    let second = volumes(5);
    store.commit(&second, &journal).unwrap();
    drop(store);
    reopened(&second);
    // Without one.
    let mut store = RedbStore::open(&path).unwrap();
    store.load().unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(path.with_extension("good-log")).unwrap();
    assert_eq!(store.mend(), None);
    let third = volumes(6);
    store.commit(&third, &journal).unwrap();
    drop(store);
    reopened(&third);
    // What cannot be made is not made by half: an empty store would be an empty state.
    let mut store = RedbStore::open(&path).unwrap();
    store.load().unwrap();
    std::fs::remove_file(&path).unwrap();
    let draft = path.with_extension("restored");
    std::fs::create_dir(&draft).unwrap();
    store.commit(&first, &journal).unwrap_err();
    assert!(store.mend().is_some() && !path.exists());
    std::fs::remove_dir(&draft).unwrap();
    assert_eq!(store.mend(), None);
    drop(store);
    reopened(&third);
}

#[test]
fn nothing_is_committed_beside_another_file_that_somebody_put_there() {
    let dir = tempfile::tempdir().unwrap();
    let (path, first) = full(dir.path());
    let (backup, journal) = (dir.path().join("backup"), Journal::default());
    std::fs::copy(&path, &backup).unwrap();
    let mut store = RedbStore::open(&path).unwrap();
    store.load().unwrap();
    let second = volumes(5);
    store.commit(&second, &journal).unwrap();
    std::fs::rename(&backup, &path).unwrap();
    // It would be lost with the next start, which takes what is there.
    let refused = store.commit(&volumes(6), &journal).unwrap_err();
    assert!(matches!(refused, StoreError::Replaced(_)), "{refused}");
    assert!(store.mend().unwrap().contains("another file"));
    assert_eq!(last_good(&path).unwrap(), second);
    std::fs::remove_file(&path).unwrap();
    store.commit(&volumes(7), &journal).unwrap();
    drop(store);
    let state = RedbStore::open(&path).unwrap().load().unwrap();
    assert_eq!(state, volumes(7));
    assert_ne!(state, first);
}

/// Whoever is killed while the first store is being made leaves a draft behind, and no store that nobody can open.
#[test]
fn the_first_store_is_whole_before_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.redb");
    let draft = draft_of(&path);
    std::fs::create_dir(&draft).unwrap();
    RedbStore::open(&path).map(drop).unwrap_err();
    assert!(!path.exists());
    std::fs::remove_dir(&draft).unwrap();
    std::fs::write(&draft, [0; 5000]).unwrap();
    let mut store = RedbStore::open(&path).unwrap();
    assert_eq!(store.load().unwrap(), Desired::default());
    assert!(path.exists() && !draft.exists());
}
