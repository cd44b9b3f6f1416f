//! Held against a data plane that keeps the books and holds to its rules.

use super::*;
use crate::fake::Books;
use crate::model::map::SharedMap;
use crate::model::samples;
use crate::model::{Desired, pools, resolve};
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
    let volumes: SharedMap<VolumeSpec> =
        books.status.volumes.iter().map(|v| (v.spec.name.clone(), v.spec.clone())).collect();
    let units: SharedMap<UnitSpec> =
        books.status.units.iter().map(|u| (u.spec.name.clone(), u.spec.clone())).collect();
    let adapters: SharedMap<AdapterSpec> = books
        .status
        .adapters
        .iter()
        .map(|a| (a.spec.name.clone(), AdapterSpec::clone(&a.spec)))
        .collect();
    assert_eq!(adapters, wanted.adapters);
    assert_eq!(units, wanted.units);
    let same = |(name, spec): (&String, &VolumeSpec)| {
        wanted.volumes.get(name).is_some_and(|wanted| change::volume(spec, wanted) == Change::Same)
    };
    assert!(volumes.iter().all(same), "{volumes:?} {:?}", wanted.volumes);
    assert_eq!(volumes.len(), wanted.volumes.len());
}

/// Everything that an adapter stands on, as it is wanted.
fn below<'a>(
    wanted: &'a Wanted,
    spec: &AdapterSpec,
) -> Vec<(Option<&'a UnitSpec>, Option<&'a VolumeSpec>)> {
    let volume = |name: &String| wanted.volumes.get(name);
    if let Some(block) = spec.block() {
        return vec![(None, volume(&block.volume))];
    }
    let targets = &spec.scsi().expect("it is one of both").targets;
    let units = targets.iter().flat_map(|target| target.luns.values());
    let below = units.map(|name| {
        let unit = wanted.units.get(name);
        (unit, unit.and_then(|unit| volume(unit.volume.as_ref()?)))
    });
    below.collect()
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
            if same_adapter && below(&first, spec) == below(&second, spec) {
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

/// PVs of a pool by numbers, of each failure group; those of the second one are 10 and above.
fn pvs() -> impl Strategy<Value = [BTreeSet<u8>; 2]> {
    use proptest::collection::btree_set;
    (btree_set(0u8..6, 1..4), btree_set(10u8..16, 1..4)).prop_map(|(first, second)| [first, second])
}

/// What a data plane is told of such a pool.
fn pool_of(now: &Desired, [first, second]: &[BTreeSet<u8>; 2]) -> (Wanted, Desired) {
    let list =
        |pvs: &BTreeSet<u8>| pvs.iter().map(|pv| format!("/pv{pv}")).collect::<Vec<_>>().join(",");
    settled(&format!("[pool.p]\npvs=\"{}\"\nmirror=\"{}\"\n", list(first), list(second)), now)
}

proptest! {
    /// Whatever PVs come and go: the pool stays open, each comes into its group, and it ends.
    #[test]
    fn pvs_come_and_go_in_their_groups_under_an_open_pool(
        mirrored in any::<bool>(),
        steps in proptest::collection::vec(pvs(), 1..5),
    ) {
        let mut books = Books::new();
        let mut desired = Desired::default();
        for mut step in steps {
            if !mirrored {
                step[1].clear();
            }
            let (wanted, next) = pool_of(&desired, &step);
            desired = next;
            let actions = carry_out(&mut books, &wanted);
            prop_assert!(actions.iter().all(|it| matches!(it, Action::PutPool(_))), "{actions:?}");
            let opened = books.status.pools.iter();
            let opened = opened.map(|pool| (pool.spec.name.clone(), pools::Open::of(pool)));
            pools::learn(&mut desired, &opened.collect(), &samples::paths());
            // What it has said is what it is told then.
            let mut wanted = resolve::wanted(&desired, "main", &samples::paths());
            wanted.settle_pool(&books.status.pools[0]);
            carry_out(&mut books, &wanted);
            prop_assert_eq!(reconcile(&wanted, &books.status), vec![]);
            let has = |group: u8| -> BTreeSet<String> {
                let pvs = books.status.pools[0].pvs.iter().filter(|pv| pv.group == group);
                pvs.map(|pv| pv.path.display().to_string()).collect()
            };
            let wants = step.map(|pvs| pvs.iter().map(|pv| format!("/pv{pv}")).collect());
            prop_assert_eq!([has(0), has(1)], wants);
        }
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

/// Its file has the size that it had: it is opened with that, not refused, and then resized.
#[test]
fn a_volume_that_was_resized_while_no_data_plane_was_there_is_resized_after_its_opening() {
    let text = "[volume.v]\nkind=\"file\"\npath=\"/d/v\"\nsize=8192\n[adapter.a]\nvolume=\"v\"\n";
    let text_of = crate::config::read(text).unwrap();
    let wanted_with = |before: u64| {
        let mut wanted = resolve::wanted(&text_of, "main", &samples::paths());
        let mut spec = wanted.volumes["v"].clone();
        let identity = spec::FileIdentity::File { inode: Some(1), born_ns: None, bytes: before };
        spec.kind.settle(Some(identity));
        wanted.volumes.insert("v".to_owned(), spec);
        wanted
    };
    for (before, shrink) in [(4096, false), (16384, true)] {
        let actions = reconcile(&wanted_with(before), &Books::new().status);
        let resize = Action::ResizeVolume { name: "v".to_owned(), bytes: 8192, shrink };
        assert!(
            matches!(&actions[..], [Action::PutVolume(_), found, Action::PutAdapter(_)] if *found == resize),
            "{actions:?}"
        );
    }
    let actions = reconcile(&wanted_with(8192), &Books::new().status);
    assert!(matches!(&actions[..], [Action::PutVolume(_), Action::PutAdapter(_)]), "{actions:?}");
}

/// Its client is to notice a change, which was taken back before the next one came.
#[test]
fn an_adapter_that_is_about_to_be_another_is_told_to_stay_as_it_is() {
    let text = "[volume.v]\nkind=\"null\"\nsize=4096\n[adapter.a]\nvolume=\"v\"\n";
    let wanted = resolve::wanted(&crate::config::read(text).unwrap(), "main", &samples::paths());
    let mut books = Books::new();
    carry_out(&mut books, &wanted);
    assert_eq!(reconcile(&wanted, &books.status), []);
    books.status.adapters[0].becoming = true;
    let stay = Action::PutAdapter(wanted.adapters["a"].clone());
    assert_eq!(reconcile(&wanted, &books.status), [stay]);
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

const SAN: &str = "[volume.a]\nkind=\"null\"\nsize=4096\n[volume.b]\nkind=\"null\"\nsize=4096\n[port.fcs0]\n\
    [target.t]\nluns=\"0=a,1=b\"\n[adapter.f]\nkind=\"fc\"\nport=\"fcs0\"\n[zone.z]\nmembers=\"f,t\"\n\
    [mask.m]\ninitiators=\"f\"\ntargets=\"t\"\n";

/// What a data plane shall have by a configuration, after an earlier one.
fn settled(text: &str, before: &Desired) -> (Wanted, Desired) {
    let mut desired = crate::config::read(text).unwrap();
    crate::model::allocations::settle(before, &mut desired, 42).unwrap();
    let desired = crate::model::validate::validate(&desired, &samples::paths()).unwrap();
    (resolve::wanted(&desired, "main", &samples::paths()), desired)
}

fn luns(books: &Books) -> Vec<(u16, String)> {
    let scsi = books.status.adapters[0].spec.scsi().unwrap();
    scsi.targets.iter().flat_map(|target| target.luns.clone()).collect()
}

#[test]
fn masks_zones_and_luns_change_under_a_running_client() {
    let mut books = Books::new();
    let (wanted, before) = settled(SAN, &Desired::default());
    carry_out(&mut books, &wanted);
    assert_eq!(luns(&books), [(0, "a".to_owned()), (1, "b".to_owned())]);
    // One message each, and never a new adapter.
    let masked = format!("{SAN}luns=\"7=1\"\n");
    let (wanted, before) = settled(&masked, &before);
    let actions = carry_out(&mut books, &wanted);
    assert!(matches!(actions[..], [Action::PutAdapter(_)]), "{actions:?}");
    assert_eq!(luns(&books), [(7, "b".to_owned())]);
    let unzoned = SAN.replace("f,t", "f");
    let (wanted, before) = settled(&unzoned, &before);
    let actions = carry_out(&mut books, &wanted);
    assert!(matches!(actions[..], [Action::PutAdapter(_)]), "{actions:?}");
    assert!(luns(&books).is_empty());
    // A LUN that goes is taken from its clients before its unit goes.
    let (wanted, before) = settled(SAN, &before);
    carry_out(&mut books, &wanted);
    let (wanted, _) = settled(&SAN.replace(",1=b", ""), &before);
    let actions = carry_out(&mut books, &wanted);
    assert!(
        matches!(&actions[..], [Action::PutAdapter(_), Action::RemoveUnit(unit)] if unit == "b"),
        "{actions:?}"
    );
}

#[test]
fn media_are_changed_in_a_drive_that_stays() {
    let text = "[medium.m0]\npath=\"/iso/0\"\n[medium.m1]\npath=\"/iso/1\"\n[adapter.s]\nkind=\"scsi\"\n\
                [vtd.cd]\nkind=\"optical\"\nadapter=\"s\"\n";
    let mut books = Books::new();
    let (wanted, empty) = settled(text, &Desired::default());
    carry_out(&mut books, &wanted);
    assert_eq!(books.status.units[0].spec.volume, None);
    let (wanted, first) = settled(&format!("{text}medium=\"m0\"\n"), &empty);
    carry_out(&mut books, &wanted);
    assert_eq!(books.status.units[0].spec.volume.as_deref(), Some("optical.m0"));
    let (wanted, _) = settled(&format!("{text}medium=\"m1\"\n"), &first);
    let actions = carry_out(&mut books, &wanted);
    let names: Vec<Subject> = actions.iter().map(Action::subject).collect();
    let unit = Subject::Unit("optical.cd".to_owned());
    let volume = |name: &str| Subject::Volume(format!("optical.{name}"));
    assert_eq!(names, [unit.clone(), volume("m0"), volume("m1"), unit]);
}

/// An HBA's disk goes from one path to another, vanishes, and comes again.
#[test]
fn another_path_to_a_disk_is_put_under_its_unit() {
    use crate::hba::Disk;
    use crate::model::discovered::{Discovered, unit};
    let text = "[port.fcs0]\nhost=\"host3\"\n[adapter.f]\nkind=\"fc\"\nport=\"fcs0\"\n";
    let path = |host: u32| Disk {
        host,
        id: 0,
        target: fabric::san::Wwpn(0x5005_0768_0100_0000),
        lun: 0,
        device: format!("/dev/sd{host}").into(),
        block_size: 512,
        wwid: "naa.5000c500deadbeef".to_owned(),
    };
    let shown = |disks: Vec<Disk>| {
        let found = Discovered { seen: [("f".to_owned(), disks)].into(), ..Discovered::default() };
        let desired = Desired { discovered: found.into(), ..crate::config::read(text).unwrap() };
        resolve::wanted(&desired, "main", &samples::paths())
    };
    let mut books = Books::new();
    carry_out(&mut books, &shown(vec![path(4), path(5)]));
    let name = unit(&path(4));
    let after = shown(vec![path(5)]);
    let actions = carry_out(&mut books, &after);
    let [Action::PutVolume(spec)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(spec, &after.volumes[&name]);
    // It is gone: the volume is closed, and who is registered is not forgotten.
    let actions = carry_out(&mut books, &shown(Vec::new()));
    let closed = Action::RemoveVolume { name: name.clone(), forget: false };
    assert_eq!(actions[1..3], [Action::RemoveUnit(name), closed]);
    assert_eq!(carry_out(&mut books, &after).len(), 3);
    assert_reached(&books, &after);
}

#[test]
fn registrations_are_forgotten_with_their_volume_and_not_with_a_change_of_it() {
    let mut books = Books::new();
    let text = SAN.replace("null", "ram").replace("[volume.b]", "block_size=512\n[volume.b]");
    let (wanted, before) = settled(&text, &Desired::default());
    carry_out(&mut books, &wanted);
    let (wanted, _) = settled(&text.replace("=512", "=4096"), &before);
    let removed = |actions: Vec<Action>| -> Vec<bool> {
        let forget = |action: &Action| match action {
            Action::RemoveVolume { forget, .. } => Some(*forget),
            _ => None,
        };
        actions.iter().filter_map(forget).collect()
    };
    assert_eq!(removed(carry_out(&mut books, &wanted)), [false]);
    assert_eq!(removed(carry_out(&mut books, &Wanted::default())), [true, true]);
}

#[test]
fn an_uplink_comes_changes_and_goes() {
    let wanted = |uplink: &str| {
        let text = format!("[network.n]\nmtu=9000\n{uplink}");
        resolve::wanted(&crate::config::read(&text).unwrap(), "main", &samples::paths())
    };
    let spec = |vids: &[u16], interface: &str| UplinkSpec {
        interface: interface.to_owned(),
        mtu: 9000,
        vids: vids.to_vec(),
        ..UplinkSpec::on("n", "up")
    };
    let mut books = Books::new();
    let none = wanted("");
    let plain = wanted("[uplink.up]\nnetwork=\"n\"\n");
    let tagged = wanted("[uplink.up]\nnetwork=\"n\"\nvlans=\"20-21\"\n");
    let other = wanted("[uplink.up]\nnetwork=\"n\"\nvlans=\"20-21\"\ninterface=\"tap7\"\n");
    let put = Action::PutUplink;
    assert_eq!(carry_out(&mut books, &plain), [put(spec(&[], "up"))]);
    assert_eq!(carry_out(&mut books, &plain), []);
    assert_eq!(carry_out(&mut books, &tagged), [put(spec(&[20, 21], "up"))]);
    let remove = Action::RemoveUplink("up".to_owned());
    assert_eq!(carry_out(&mut books, &other), [remove.clone(), put(spec(&[20, 21], "tap7"))]);
    assert_eq!(carry_out(&mut books, &none), [remove]);
}
