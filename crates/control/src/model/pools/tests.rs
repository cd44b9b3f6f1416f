use super::*;
use crate::config;
use crate::model::transition::{Allow, transition};
use crate::model::{allocations, files, resolve, samples};

/// As a server learns it whose folders these are.
fn learn(desired: &mut Desired, opened: &Opened) -> bool {
    super::learn(desired, opened, &samples::paths())
}

const LU: &str = "[pool.p]\npvs=\"/a,/b\"\n[volume.lu]\nkind=\"lu\"\npool=\"p\"\nsize=4096\n";

#[test]
fn a_pool_is_made_once_and_its_lus_are_removed_by_number() {
    let mut desired = config::read(LU).unwrap();
    allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
    let wanted = |desired: &Desired| resolve::wanted(desired, "main", &samples::paths());
    let pool = &wanted(&desired).pools["p"];
    assert!(pool.fresh && pool.pvs.len() == 2 && pool.uuid.len() == 32, "{pool:?}");
    assert_eq!(uuid("p", 1), attr::pool::UUID.of(&desired[Object::Pool]["p"]).unwrap());
    assert_ne!(uuid("q", 1), uuid("p", 1));
    let open = |pvs: &[&str]| {
        let members = pvs.iter().map(PathBuf::from).collect();
        Opened::from([("p".to_owned(), Open { members, ..Open::default() })])
    };
    let other = Opened::from([("other".to_owned(), Open::default())]);
    assert!(!learn(&mut desired, &other));
    assert!(learn(&mut desired, &open(&["/a", "/b"])));
    assert!(!learn(&mut desired, &open(&["/a", "/b"])), "nothing new");
    assert!(!learn(&mut desired, &open(&[])), "nothing is said of them");
    assert!(!wanted(&desired).pools["p"].fresh);
    let spec::VolumeKind::Lu(lu) = &wanted(&desired).volumes["lu"].kind else { panic!() };
    assert!(lu.fresh && lu.identity.is_none());
    let identity = FileIdentity::Lu { pool: pool.uuid.clone(), number: 7, bytes: 4096 };
    let found = files::Found { path: None, identity: Some(identity) };
    files::learn(&mut desired, &[("lu".to_owned(), found)].into(), &samples::paths());
    let mut without = desired.clone();
    without[Object::Volume].remove("lu");
    allocations::settle(&desired, &mut without, 2).unwrap();
    assert_eq!(wanted(&without).pools["p"].doomed, [7]);
    // Another of the name is another, and a pool that is gone keeps nothing.
    let mut again = desired.clone();
    allocations::settle(&without, &mut again, 3).unwrap();
    assert_eq!(again.allocations.files["lu"], Made::New);
    let mut none = without.clone();
    none[Object::Pool].remove("p");
    allocations::settle(&without, &mut none, 4).unwrap();
    assert!(none.allocations.pools.is_empty());
}

#[test]
fn a_snapshot_is_asked_for_until_it_is_known_to_be_made_and_a_clone_waits_for_it() {
    let text = format!("{LU}[snapshot.s]\nvolumes=\"lu\"\n");
    let clone = "[volume.c]\nkind=\"lu\"\npool=\"p\"\nsnapshot=\"s\"\n";
    let mut desired = config::read(&format!("{text}{clone}")).unwrap();
    allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
    let wanted = |desired: &Desired| resolve::wanted(desired, "main", &samples::paths());
    let asked = |desired: &Desired| wanted(desired).pools["p"].snapshots.clone();
    let origin = |desired: &Desired| {
        let volume = wanted(desired).volumes["c"].clone();
        let spec::VolumeKind::Lu(lu) = &volume.kind else { panic!("{volume:?}") };
        (lu.snapshot, volume.bytes)
    };
    assert_eq!(asked(&desired), [], "its LU is not there yet");
    let pool = wanted(&desired).pools["p"].uuid.clone();
    let identity = FileIdentity::Lu { pool, number: 7, bytes: 4096 };
    let found = files::Found { path: None, identity: Some(identity) };
    files::learn(&mut desired, &[("lu".to_owned(), found)].into(), &samples::paths());
    let spec = |id, given_up| SnapshotSpec { id, lus: vec![7], given_up };
    assert_eq!(asked(&desired), [spec(1, false)]);
    assert_eq!(origin(&desired), (Some(0), None), "it is of no snapshot that there is");
    let made = |id, number| {
        let lus = vec![protocol::message::FrozenStatus { lu: 7, number, bytes: 4096 }];
        let snapshots = vec![SnapshotStatus { id, made_ms: 12, lus }];
        Opened::from([("p".to_owned(), Open { snapshots, ..Open::default() })])
    };
    assert!(learn(&mut desired, &made(1, 9)));
    assert!(!learn(&mut desired, &made(1, 9)), "nothing new");
    assert!(!learn(&mut desired, &made(1, 11)), "it was made once");
    assert_eq!((asked(&desired), origin(&desired)), (Vec::new(), (Some(9), Some(4096))));
    // One that nobody asked for, or wants any more, goes.
    learn(&mut desired, &made(2, 13));
    let mut without = desired.clone();
    without[Object::Snapshot].remove("s");
    allocations::settle(&desired, &mut without, 2).unwrap();
    assert_eq!(wanted(&without).pools["p"].doomed, [9, 13]);
    // Another of the name is another.
    let mut again = desired.clone();
    allocations::settle(&without, &mut again, 3).unwrap();
    assert_eq!(asked(&again), [spec(2, false)]);
    // One that is given up before that is known: whether it was made is asked for, until it is.
    let mut given_up = again.clone();
    given_up[Object::Snapshot].remove("s");
    allocations::settle(&again, &mut given_up, 4).unwrap();
    assert_eq!(asked(&given_up), [spec(2, true)]);
    let mut nothing = given_up.clone();
    let none = SnapshotStatus { id: 2, made_ms: 12, lus: Vec::new() };
    let open = Open { snapshots: vec![none], ..Open::default() };
    learn(&mut nothing, &Opened::from([("p".to_owned(), open)]));
    learn(&mut given_up, &made(2, 15));
    assert_eq!((asked(&nothing), asked(&given_up)), (Vec::new(), Vec::new()));
    let doomed = |desired: &Desired| wanted(desired).pools["p"].doomed.contains(&15);
    assert_eq!((doomed(&nothing), doomed(&given_up)), (false, true));
}

/// Numbers are those of a pool: an LU of another one that has the same is not what a snapshot is of.
#[test]
fn a_snapshot_is_of_the_lu_of_its_own_pool() {
    let text = "[pool.a]\npvs=\"/a\"\n[pool.b]\npvs=\"/b\"\n\
        [volume.a0]\nkind=\"lu\"\npool=\"a\"\nsize=\"1GiB\"\n\
        [volume.b0]\nkind=\"lu\"\npool=\"b\"\nsize=\"1GiB\"\n[snapshot.s]\nvolumes=\"b0\"\n";
    let mut desired = config::read(text).unwrap();
    allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
    for (volume, pool) in [("a0", "a"), ("b0", "b")] {
        let pool = resolve::wanted(&desired, "main", &samples::paths()).pools[pool].uuid.clone();
        let identity = Some(FileIdentity::Lu { pool, number: 7, bytes: 4096 });
        let found = files::Found { path: None, identity };
        files::learn(&mut desired, &[(volume.to_owned(), found)].into(), &samples::paths());
    }
    let lus = vec![protocol::message::FrozenStatus { lu: 7, number: 9, bytes: 4096 }];
    let snapshots = vec![SnapshotStatus { id: 1, made_ms: 12, lus }];
    learn(&mut desired, &Opened::from([("b".to_owned(), Open { snapshots, ..Open::default() })]));
    let lus = &desired.frozen("s").unwrap().lus;
    assert_eq!(lus.keys().collect::<Vec<_>>(), ["b0"]);
}

#[test]
fn pvs_that_come_and_go_are_told_until_they_have() {
    let mut desired = config::read(LU).unwrap();
    allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
    let told = |desired: &Desired| {
        let PoolSpec { pvs, joining, leaving, .. } =
            resolve::wanted(desired, "main", &samples::paths()).pools["p"].clone();
        let names = |paths: Vec<PathBuf>| {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            names.join(" ")
        };
        [pvs, joining, leaving].map(names)
    };
    assert_eq!(told(&desired), ["/a /b", "", ""], "all of it is new");
    let open = |pvs: &[&str]| {
        let members = pvs.iter().map(PathBuf::from).collect();
        Opened::from([("p".to_owned(), Open { members, ..Open::default() })])
    };
    learn(&mut desired, &open(&["/a", "/b"]));
    assert_eq!(told(&desired), ["/a /b", "", ""]);
    let list = |desired: &mut Desired, pvs: &str| {
        let mut set = desired[Object::Pool]["p"].clone();
        attr::pool::PVS.put(&mut set, pvs);
        desired[Object::Pool].insert("p".to_owned(), set);
    };
    list(&mut desired, "/b,/c");
    assert_eq!(told(&desired), ["/b /c", "/c", "/a"]);
    learn(&mut desired, &open(&["/a", "/b", "/c"]));
    assert_eq!(told(&desired), ["/b /c", "", "/a"]);
    learn(&mut desired, &open(&["/b", "/c"]));
    assert_eq!(told(&desired), ["/b /c", "", ""]);
    // It is called back before it has begun, or while it goes on.
    list(&mut desired, "/b");
    list(&mut desired, "/b,/c");
    assert_eq!(told(&desired), ["/b /c", "", ""]);
}

#[test]
fn a_pool_keeps_the_failure_groups_that_it_was_made_with() {
    let text = "[pool.p]\npvs=\"/a,/b\"\nmirror=\"/c,/d\"\n";
    let paths = samples::paths();
    let made = |text: &str, members: &[&str], mirror: &[&str]| {
        let mut desired = config::read(text).unwrap();
        allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
        let set = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        let open = Open { members: set(members), mirror: set(mirror), ..Open::default() };
        learn(&mut desired, &Opened::from([("p".to_owned(), open)]));
        desired
    };
    let mirrored = made(text, &["/a", "/b", "/c", "/d"], &["/c", "/d"]);
    let told = &resolve::wanted(&mirrored, "main", &paths).pools["p"];
    let names = |paths: &[PathBuf]| {
        paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!([names(&told.pvs), names(&told.mirror)], ["/a /b /c /d", "/c /d"]);
    let change = |now: &Desired, pvs: &str, mirror: &str| {
        let mut next = now.clone();
        let mut set = next[Object::Pool]["p"].clone();
        attr::pool::PVS.put(&mut set, pvs);
        attr::pool::MIRROR.put(&mut set, mirror);
        next[Object::Pool].insert("p".to_owned(), set);
        transition(now, &next, &paths, Allow::default())
    };
    for (pvs, mirror) in [("/a,/e", "/c,/d"), ("/a", "/c,/e"), ("/a,/b", "/e")] {
        change(&mirrored, pvs, mirror).unwrap();
    }
    let plain = made("[pool.p]\npvs=\"/a,/b\"\n", &["/a", "/b"], &[]);
    for (now, pvs, mirror, told) in [
        (&mirrored, "/a,/b,/c", "/d", "has /c in its failure group `Mirror`"),
        (&mirrored, "/a", "/b,/c,/d", "has /b in its failure group `Default`"),
        (&mirrored, "/a,/b", "", "cannot be without its second failure group"),
        (&plain, "/a,/b", "/c", "is not mirrored, and cannot be any more"),
        (&plain, "/a", "/b", "is not mirrored"),
        (&plain, "/a,/b", "/b", "/b is in both of its failure groups"),
        (&plain, "", "/b", "its failure group `Default` has no PV"),
    ] {
        let refused = change(now, pvs, mirror).unwrap_err();
        assert!(refused.message.contains(told) && refused.help.is_some(), "{refused:?}");
    }
    // One that is taken out is its group's until it has left, and one that says where its PVs really are is right.
    let mut leaving = change(&mirrored, "/a", "/c,/d").unwrap().next;
    leaving.allocations = mirrored.allocations.clone();
    change(&leaving, "/a,/b", "/c,/d").unwrap();
    let refused = change(&leaving, "/a", "/b,/c,/d").unwrap_err();
    assert!(refused.message.contains("/b in its failure group"), "{refused:?}");
    let found = made("[pool.p]\npvs=\"/a,/b,/c,/d\"\n", &["/a", "/b", "/c", "/d"], &["/c", "/d"]);
    change(&found, "/a,/b", "/c,/d").unwrap();
    // Before it is there, it may be anything.
    let mut fresh = plain.clone();
    fresh.allocations.pools = SharedMap::default();
    change(&fresh, "/a", "/b").unwrap();
}

#[test]
fn failure_groups_have_names_of_their_own() {
    let of = |names: &str| {
        let text = format!("[pool.p]\npvs=\"/a\"\nmirror=\"/b\"\n{names}");
        let next = config::read(&text).unwrap();
        transition(&Desired::default(), &next, &samples::paths(), Allow::default())
    };
    assert!(of("").is_ok() && of("failgrp=\"north\"\nmirror_failgrp=\"south\"\n").is_ok());
    let refused = of("mirror_failgrp=\"Default\"\n").unwrap_err();
    assert!(refused.message.contains("both of its failure groups are called"), "{refused:?}");
    let refused = of("failgrp=\"a b\"\n").unwrap_err();
    assert!(refused.message.contains("`a b` is not a name"), "{refused:?}");
}

/// A pool as it is told, and what is known of the tiers of its PVs.
fn open(desired: &mut Desired, pvs: &[(&str, u8)], mirror: &[&str]) {
    let members = pvs.iter().map(|(path, _)| PathBuf::from(path)).collect();
    let tiers = pvs.iter().filter(|(_, tier)| *tier > 0);
    let tiers = tiers.map(|(path, tier)| (PathBuf::from(path), *tier)).collect();
    let mirror = mirror.iter().map(PathBuf::from).collect();
    learn(
        desired,
        &Opened::from([("p".to_owned(), Open { members, mirror, tiers, ..Open::default() })]),
    );
}

/// As a server changes what is wanted.
fn change(now: &Desired, attribute: impl FnOnce(&mut Attributes)) -> Result<Desired, ApiError> {
    let mut next = now.clone();
    let mut set = next[Object::Pool]["p"].clone();
    attribute(&mut set);
    next[Object::Pool].insert("p".to_owned(), set);
    allocations::settle(now, &mut next, 9)?;
    Ok(transition(now, &next, &samples::paths(), Allow::default())?.next)
}

fn list(now: &Desired, pvs: &str) -> Result<Desired, ApiError> {
    change(now, |set| attr::pool::PVS.put(set, pvs))
}

/// The tiers of the PVs as a data plane is told, and that of an LU.
fn placed(desired: &Desired) -> (String, Option<u8>) {
    let wanted = resolve::wanted(desired, "main", &samples::paths());
    let tiers = wanted.pools["p"]
        .tiers
        .iter()
        .flat_map(|tier| tier.pvs.iter().map(|path| format!("{}{}", tier.tier, path.display())));
    let spec::VolumeKind::Lu(lu) = &wanted.volumes["lu"].kind else { panic!() };
    (tiers.collect::<Vec<_>>().join(" "), lu.tier)
}

#[test]
fn tiers_have_numbers_that_stay_whatever_they_are_called() {
    let mut desired = config::read(LU).unwrap();
    allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
    assert_eq!(placed(&desired), (String::new(), Some(0)), "it is new");
    let mut desired = list(&desired, "/a,/b,fast:/c,slow:/d").unwrap();
    assert_eq!(placed(&desired), ("1/c 2/d".to_owned(), Some(0)));
    let default = |name: &str| change(&desired, |set| attr::pool::DEFAULT_TIER.put(set, name));
    assert_eq!(placed(&default("slow").unwrap()).1, Some(2));
    let refused = default("none").unwrap_err();
    assert!(refused.message.contains("default tier `none` has no PV"), "{refused:?}");
    open(&mut desired, &[("/a", 0), ("/b", 0), ("/c", 1), ("/d", 2)], &[]);
    let identity = FileIdentity::Lu { pool: "x".to_owned(), number: 7, bytes: 4096 };
    let found = files::Found { path: None, identity: Some(identity) };
    files::learn(&mut desired, &[("lu".to_owned(), found)].into(), &samples::paths());
    assert_eq!(placed(&desired).1, None, "it stays where it is");
    // Another name, and another PV under it in the same step.
    let renamed = list(&desired, "/a,/b,quick:/c,slow:/d,quick:/e").unwrap();
    assert_eq!(placed(&renamed).0, "1/c 1/e 2/d");
    // The last PV of a tier is replaced: it is the same one.
    let mut replaced = list(&desired, "/a,/b,fast:/f,slow:/d").unwrap();
    assert_eq!(placed(&replaced).0, "1/f 2/d");
    open(&mut replaced, &[("/a", 0), ("/b", 0), ("/c", 1), ("/d", 2), ("/f", 1)], &[]);
    assert_eq!(placed(&replaced).0, "1/f 2/d");
    // A number is given out again when nothing of it is left.
    let mut gone = list(&desired, "/a,/b,slow:/d").unwrap();
    let early = list(&gone, "/a,/b,slow:/d,new:/g").unwrap();
    assert_eq!(placed(&early).0, "2/d 3/g", "/c is still about to leave");
    open(&mut gone, &[("/a", 0), ("/b", 0), ("/d", 2)], &[]);
    assert_eq!(placed(&list(&gone, "/a,/b,slow:/d,new:/g").unwrap()).0, "1/g 2/d");
    for (pvs, told) in [
        ("/a,/b,/c,slow:/d", "has /c in its tier `fast`: it cannot go to `SYSTEM`"),
        ("/a,/b,fast:/c,fast:/d", "has /d in its tier `slow`: it cannot go to `fast`"),
        ("/a,fast:/b,fast:/c,slow:/d", "has /b in its tier `SYSTEM`: it cannot go to `fast`"),
        ("/a,/b,slow:/c,fast:/d", "it cannot go to"),
        ("/a,/b,a b:/c", "`a b` is not a name"),
        ("fast:/c", "its first tier `SYSTEM` has no PV"),
        ("/a,fast:/a", "/a is already of"),
        ("/a,1:/1,2:/2,3:/3,4:/4,5:/5,6:/6,7:/7,8:/8,9:/9,x:/x", "it has 11 tiers"),
    ] {
        let refused = list(&desired, pvs).unwrap_err();
        assert!(refused.message.contains(told) && refused.help.is_some(), "{pvs}: {refused:?}");
    }
}

#[test]
fn what_the_pvs_say_of_their_tiers_holds_where_nothing_is_known() {
    // Its store was lost: `fast` is tier 3 there.
    let mut desired = config::read(&LU.replace("/a,/b", "/a,fast:/b")).unwrap();
    allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
    assert_eq!(placed(&desired).0, "1/b");
    open(&mut desired, &[("/a", 0), ("/b", 3)], &[]);
    assert_eq!(placed(&desired).0, "3/b");
    // Nobody knew that there are tiers.
    let mut desired = config::read(LU).unwrap();
    allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
    open(&mut desired, &[("/a", 0), ("/b", 3)], &[]);
    let kept = &desired.allocations.pools["p"];
    assert_eq!(tiers::name(kept, &desired[Object::Pool]["p"], 3), "tier-3");
    let mut named = list(&desired, "/a,fast:/b").unwrap();
    open(&mut named, &[("/a", 0), ("/b", 3)], &[]);
    assert_eq!(placed(&named).0, "3/b");
}

#[test]
fn lus_are_in_tiers_that_their_pool_has() {
    let text = LU.replace("/a,/b", "/a,fast:/b") + "tier=\"fast\"\n";
    let mut desired = config::read(&text).unwrap();
    allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
    transition(&Desired::default(), &desired, &samples::paths(), Allow::default()).unwrap();
    assert_eq!(placed(&desired), ("1/b".to_owned(), Some(1)));
    let refused = list(&desired, "/a").unwrap_err();
    assert!(refused.message.contains("`lu` is in tier `fast`, which pool `p`"), "{refused:?}");
    let first = change(&desired, |set| attr::pool::TIER.put(set, "base")).unwrap();
    assert_eq!(tiers::names(&first[Object::Pool]["p"]), ["base", "fast"]);
}

#[test]
fn each_tier_of_a_mirrored_pool_has_both_failure_groups() {
    let of = |pvs: &str, mirror: &str| {
        let text = format!("[pool.p]\npvs=\"{pvs}\"\nmirror=\"{mirror}\"\n");
        let next = config::read(&text).unwrap();
        transition(&Desired::default(), &next, &samples::paths(), Allow::default())
    };
    of("/a,fast:/b", "/c,fast:/d").unwrap();
    for (pvs, mirror, told) in [
        ("/a,fast:/b", "/c", "tier `fast` has no PV in failure group `Mirror`"),
        ("/a", "/c,fast:/d", "tier `fast` has no PV in failure group `Default`"),
        ("/a,fast:/b", "fast:/d", "tier `SYSTEM` has no PV in failure group `Mirror`"),
    ] {
        let refused = of(pvs, mirror).unwrap_err();
        assert!(refused.message.contains(told), "{refused:?}");
    }
}

/// Who dies while it makes an LU asks for it again with the same mark; of one that nobody wants any more nothing is left.
#[test]
fn an_lu_is_asked_for_with_one_mark_until_its_number_is_known() {
    let mut desired = config::read(LU).unwrap();
    allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
    let wanted = |desired: &Desired| resolve::wanted(desired, "main", &samples::paths());
    let mark = |desired: &Desired| {
        let spec::VolumeKind::Lu(lu) = &wanted(desired).volumes["lu"].kind else { panic!() };
        lu.asked
    };
    let asked = mark(&desired);
    assert_ne!(asked, 0);
    let mut changed = desired.clone();
    attr::volume::LIMIT_IOPS.put(changed[Object::Volume].get_mut("lu").unwrap(), 9);
    allocations::settle(&desired, &mut changed, 2).unwrap();
    assert_eq!(mark(&changed), asked);
    assert_eq!(changed.being_made("p", asked, None), Some((Object::Volume, "lu")));
    assert_eq!(changed.being_made("p", 0, None), None);
    // Its volume goes: whenever that LU is found, it is doomed, and another of the name is another.
    let mut without = changed.clone();
    without[Object::Volume].remove("lu");
    allocations::settle(&changed, &mut without, 3).unwrap();
    let mut again = changed.clone();
    allocations::settle(&without, &mut again, 4).unwrap();
    let next = mark(&again);
    assert!(![0, asked].contains(&next));
    let marks = BTreeMap::from([(asked, 5), (next, 6), (77, 7)]);
    let open = Opened::from([("p".to_owned(), Open { marks, ..Open::default() })]);
    assert!(learn(&mut again, &open));
    assert_eq!(wanted(&again).pools["p"].doomed, [5]);
    // It is known by its number from then on.
    let pool = wanted(&again).pools["p"].uuid.clone();
    let identity = FileIdentity::Lu { pool, number: 6, bytes: 4096 };
    let found = files::Found { path: None, identity: Some(identity) };
    files::learn(&mut again, &[("lu".to_owned(), found)].into(), &samples::paths());
    assert!(learn(&mut again, &open));
    assert_eq!((mark(&again), again.being_made("p", next, None)), (0, None));
    let mut gone = again.clone();
    gone[Object::Volume].remove("lu");
    allocations::settle(&again, &mut gone, 5).unwrap();
    assert_eq!(wanted(&gone).pools["p"].doomed, [5, 6]);
}

/// What clients know an LU by is the same on each server that has its pool, and stays what it was where it was another.
#[test]
fn an_lu_has_its_name_of_the_pool_and_its_number() {
    let pool = "12345678-9abc-def0-0123-456789abcdef";
    let server = |system, volume: &str| {
        let lu = LU.replace("[volume.lu]\n", &format!("uuid=\"{pool}\"\n[volume.{volume}]\n"));
        let text = format!("{lu}[target.t]\nluns=\"0={volume}\"\n");
        let mut desired = config::read(&text).unwrap();
        allocations::settle(&Desired::default(), &mut desired, system).unwrap();
        desired
    };
    let unit = |desired: &Desired, volume: &str| {
        let wanted = resolve::wanted(desired, "main", &samples::paths());
        let unit = &wanted.units[volume];
        (unit.naa, unit.serial.clone())
    };
    let made = |desired: &mut Desired, volume: &str| {
        let identity = FileIdentity::Lu { pool: pool.to_owned(), number: 7, bytes: 4096 };
        let found = files::Found { path: None, identity: Some(identity) };
        files::learn(desired, &[(volume.to_owned(), found)].into(), &samples::paths());
    };
    let [mut one, mut two] = [server(1, "lu"), server(2, "db")];
    assert_eq!(unit(&one, "lu"), (resolve::NOT_KNOWN, String::new()));
    made(&mut one, "lu");
    made(&mut two, "db");
    let (naa, serial) = unit(&one, "lu");
    assert_eq!((naa >> 60, serial), (3, format!("{naa:016x}")));
    assert_eq!(unit(&two, "db").0, naa);
    // One that came before.
    let mut older = one.allocations.pools["p"].clone();
    older.named.clear();
    one.allocations.pools.insert("p".to_owned(), older);
    assert_eq!(Some(unit(&one, "lu").0), Some(crate::model::naa::local_naa(1, "lu")));
}
