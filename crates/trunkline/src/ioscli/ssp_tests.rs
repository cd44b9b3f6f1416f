//! What is printed of storage pools is read again by the planner, and every number is compared.

use super::maps::ListOptions;
use super::ssp::{self, AlertType, Group, Lu, Pool, Pv, Tier};
use super::tests::{read, value};

fn group(name: &str, state: &'static str) -> Group {
    Group { name: name.to_owned(), size: 131_072, state }
}

fn tier(name: &str, size: u64, free: u64) -> Tier {
    Tier { name: name.to_owned(), size, free }
}

fn pv(path: &str, group: &str, state: &'static str, size: u64) -> Pv {
    let udid = format!("{size:032x}");
    let (path, group, tier) = (path.to_owned(), group.to_owned(), "SYSTEM".to_owned());
    Pv { path, group, tier, size, state, udid }
}

fn pool(name: &str) -> Pool {
    let lu = |name: &str, size, unused, used_percent, thick| Lu {
        name: name.to_owned(),
        size,
        unused,
        used_percent,
        thick,
        tier: "SYSTEM".to_owned(),
        udid: format!("27c4d5{size:034x}"),
        snapshots: if thick {
            vec!["nightly".to_owned(), "before-upgrade".to_owned()]
        } else {
            Vec::new()
        },
    };
    Pool {
        name: name.to_owned(),
        open: true,
        size: 3_145_728,
        free: 1_730_150,
        total: 2_936_012,
        overcommit: 7_168,
        id: "5b2b7d95de2f73ee21005da1fa67bc6e".to_owned(),
        threshold: 20,
        promised: 0,
        degraded: false,
        groups: vec![group("Default", "ONLINE")],
        tiers: vec![tier("SYSTEM", 3_145_728, 1_730_150)],
        pvs: vec![
            pv("/dev/sdb", "Default", "ONLINE", 131_072),
            pv("/srv/a-long-folder/with-a-file-as-pv.img", "Default", "REMOVING", 65_536),
        ],
        lus: vec![
            lu("db", 40_960, 0, 100, true),
            lu("a-volume-with-a-long-name-01234567", 20_480, 10_240, 50, false),
        ],
    }
}

#[test]
fn pools_are_read_again() {
    let all = [pool("p0"), Pool { lus: Vec::new(), size: 17, ..pool("archive") }];
    let text = ssp::pools(&all, ListOptions::default());
    insta::assert_snapshot!("lssp", text);
    let lines = ssp::pools(&all, ListOptions { delimiter: Some(":"), fields: &[] });
    for (command, text) in
        [("lssp -clustername trunkline", &text), ("lssp -clustername trunkline -fmt :", &lines)]
    {
        let captures = read(command, text);
        let found = captures.reports[0].lssp().unwrap();
        assert_eq!(found.pools.len(), 2, "{command}");
        for (found, wanted) in found.pools.iter().zip(&all) {
            assert_eq!(found.name, wanted.name);
            assert_eq!(value(&found.size_mb), Some(wanted.size));
            assert_eq!(value(&found.free_mb), Some(wanted.free));
            assert_eq!(value(&found.lu_total_mb), Some(wanted.total));
            assert_eq!(value(&found.overcommit_mb), Some(wanted.overcommit));
            assert_eq!(value(&found.lus), Some(wanted.lus.len() as u64));
            assert_eq!(value(&found.kind).as_deref(), Some("CLPOOL"));
            assert_eq!(value(&found.id).as_ref(), Some(&wanted.id));
        }
    }
    let fields = ["free".to_owned(), "pool".to_owned()];
    let some = ssp::pools(&all[..1], ListOptions { delimiter: Some(","), fields: &fields });
    assert_eq!(some, "p0,1730150\n");
}

#[test]
fn the_cluster_and_its_node_are_read_again() {
    let failed = Pool { degraded: true, ..pool("p1") };
    for (pools, state) in [
        (vec![], None),
        (vec![pool("p0")], Some("OK")),
        (vec![pool("p0"), failed], Some("DEGRADED")),
    ] {
        let text = ssp::nodes("host-1", &pools, None);
        let captures = read("cluster -status -clustername trunkline", &text);
        let found = captures.reports[0].cluster_status().unwrap();
        let [(name, cluster)] = &found.clusters[..] else { panic!("{text}") };
        assert_eq!((name.as_str(), cluster.value.as_str()), ("trunkline", state.unwrap_or("OK")));
        let [node] = &found.nodes[..] else { panic!("{text}") };
        assert_eq!((node.name.as_str(), node.state.as_str()), ("host-1", "OK"));
        assert_eq!(node.pool_state.as_deref(), state, "{text}");
    }
    let line = ssp::nodes("host-1", &[pool("p0")], Some(":"));
    assert_eq!(line, "trunkline:OK:host-1:TRUNKLINE-host-1:1:OK:OK\n");
}

#[test]
fn logical_units_are_read_again() {
    let pool = pool("p0");
    let text = ssp::lus(&pool, None);
    insta::assert_snapshot!("lu_list", text);
    let more = ssp::backing_devices(&pool, None);
    insta::assert_snapshot!("lssp_bd", more);
    for (command, text) in [("lu -list", &text), ("lssp -clustername trunkline -sp p0 -bd", &more)]
    {
        let captures = read(command, text);
        let found = captures.reports[0].lu_list().unwrap();
        assert_eq!(found.lus.len(), 2, "{command}");
        let bd = command.contains("-bd");
        for (found, wanted) in found.lus.iter().zip(&pool.lus) {
            assert_eq!(found.name, wanted.name);
            assert_eq!(value(&found.size_mb), Some(wanted.size));
            assert_eq!(value(&found.unused_mb), Some(wanted.unused));
            assert_eq!(value(&found.udid).as_ref(), Some(&wanted.udid));
            assert_eq!(value(&found.thin), bd.then_some(!wanted.thick));
            assert_eq!(value(&found.used_percent), bd.then_some(wanted.used_percent));
            assert_eq!(value(&found.pool).as_deref(), (!bd).then_some("p0"));
        }
    }
    let snapshots = ssp::snapshots(&pool, None);
    insta::assert_snapshot!("snapshot_list", snapshots);
    let captures = read("snapshot -list -spname p0", &snapshots);
    let found = captures.reports[0].lu_list().unwrap();
    let names: Vec<&str> = found.lus.iter().map(|lu| lu.name.as_str()).collect();
    assert_eq!(names, ["db", "a-volume-with-a-long-name-01234567"], "snapshots are no LUs");
    assert_eq!(ssp::snapshots(&pool, Some(":")), "db:nightly\ndb:before-upgrade\n");
    assert_eq!(ssp::lus(&pool, Some(":")).lines().next().unwrap().split(':').count(), 4);
}

#[test]
fn physical_volumes_are_read_again() {
    let plain = pool("p0");
    let mut pvs = plain.pvs.clone();
    pvs.extend([
        pv("/dev/sdc", "south", "OFFLINE", 131_072),
        pv("/dev/sdd", "south", "SYNCING", 4096),
    ]);
    let groups = vec![group("Default", "ONLINE"), group("south", "DEGRADED")];
    let mirrored = Pool { groups, pvs, degraded: true, ..pool("p0") };
    for (name, pool) in [("pv_list", &plain), ("pv_list_of_groups", &mirrored)] {
        let text = ssp::pvs(pool, None);
        insta::assert_snapshot!(name, text);
        let captures = read("pv -list", &text);
        let found = captures.reports[0].pv_list().unwrap();
        assert_eq!(found.luns.len(), pool.pvs.len());
        for (found, wanted) in found.luns.iter().zip(&pool.pvs) {
            assert_eq!(found.name, wanted.path);
            assert_eq!(value(&found.size_mb), Some(wanted.size));
            assert_eq!(value(&found.state).as_deref(), Some(wanted.state));
            assert_eq!(value(&found.udid).as_ref(), Some(&wanted.udid));
            let places = [&found.pool, &found.tier, &found.failure_group].map(value);
            let wanted = ["p0", "SYSTEM", &wanted.group].map(|name| Some(name.to_owned()));
            assert_eq!(places, wanted);
        }
    }
    let text = ssp::list(&mirrored, None);
    insta::assert_snapshot!("failgrp_list", text);
    let captures = read("failgrp -list", &text);
    let found = captures.reports[0].failure_group_list().unwrap();
    assert_eq!(found.groups.len(), 2);
    for (found, wanted) in found.groups.iter().zip(&mirrored.groups) {
        assert_eq!(found.name, wanted.name);
        assert_eq!((found.size_mb.value, &*found.state.value), (wanted.size, wanted.state));
        let places = [&found.pool, &found.tier].map(value);
        assert_eq!(places, ["p0", "SYSTEM"].map(|name| Some(name.to_owned())));
    }
    assert_eq!(ssp::list(&mirrored, Some(":")), "Default:131072:ONLINE\nsouth:131072:DEGRADED\n");
}

#[test]
fn what_is_in_several_tiers_is_read_again_with_its_tier() {
    let one = pool("p0");
    let fast =
        |pv: &Pv| Pv { path: format!("{}-fast", pv.path), tier: "fast".to_owned(), ..pv.clone() };
    let pvs: Vec<Pv> = one.pvs.iter().cloned().chain(one.pvs.iter().map(fast)).collect();
    let mut lus = one.lus.clone();
    lus[1].tier = "fast".to_owned();
    let tiers = vec![one.tiers[0].clone(), tier("fast", 65_536, 4096)];
    let pool = Pool { pvs, lus, tiers, ..one };
    let text = ssp::lus(&pool, None);
    insta::assert_snapshot!("lu_list_of_tiers", text);
    let captures = read("lu -list", &text);
    let found: Vec<_> =
        captures.reports.iter().flat_map(|one| one.lu_list().unwrap().lus.clone()).collect();
    let tiers =
        |name: &str| found.iter().find(|lu| lu.name == name).map(|lu| value(&lu.tier).unwrap());
    assert_eq!(tiers("db").as_deref(), Some("SYSTEM"));
    assert_eq!(tiers("a-volume-with-a-long-name-01234567").as_deref(), Some("fast"));
    let text = ssp::pvs(&pool, None);
    insta::assert_snapshot!("pv_list_of_tiers", text);
    let captures = read("pv -list", &text);
    let found: Vec<_> =
        captures.reports.iter().flat_map(|one| one.pv_list().unwrap().luns.clone()).collect();
    assert_eq!(found.len(), 4);
    for (found, wanted) in found.iter().zip(&pool.pvs) {
        assert_eq!(
            (found.name.as_str(), value(&found.tier)),
            (wanted.path.as_str(), Some(wanted.tier.clone()))
        );
    }
    let lists = [pool];
    let text = ssp::tiers(&lists, None);
    insta::assert_snapshot!("tier_list", text);
    let captures = read("tier -list", &text);
    let found = captures.reports[0].tier_list().unwrap();
    assert_eq!(found.tiers.len(), 2);
    for (found, wanted) in found.tiers.iter().zip(&lists[0].tiers) {
        assert_eq!((&found.name, &*found.pool.value), (&wanted.name, "p0"));
        assert_eq!((found.size_mb.value, found.free_mb.value), (wanted.size, wanted.free));
        assert_eq!(found.mirror_state.value, "NOT_MIRRORED");
    }
    assert_eq!(
        ssp::tiers(&lists, Some(":")).lines().last(),
        Some("fast:65536:4096:NOT_MIRRORED:p0")
    );
}

#[test]
fn alerts_are_read_again() {
    let pools = [pool("p0"), Pool { threshold: 5, promised: 150, ..pool("archive") }];
    let text = ssp::alerts(&pools, None, None);
    insta::assert_snapshot!("alert_list", text);
    let (threshold, overcommit) = (Some(AlertType::Threshold), Some(AlertType::Overcommit));
    for (of, command) in [
        (None, "alert -list -clustername trunkline"),
        (threshold, "alert -list -type threshold"),
        (overcommit, "alert -list -type overcommit"),
    ] {
        let captures = read(command, &ssp::alerts(&pools, of, None));
        let found = captures.reports[0].alert_list().unwrap();
        assert_eq!(found.alerts.len(), 2, "{command}");
        for (found, wanted) in found.alerts.iter().zip(&pools) {
            assert_eq!(found.pool, wanted.name);
            let free = Some(wanted.threshold).filter(|_| of != overcommit);
            assert_eq!(value(&found.free_percent), free, "{command}");
            let promised = Some(wanted.promised).filter(|it| of != threshold && *it > 0);
            assert_eq!(value(&found.overcommit_percent), promised, "{command}");
        }
    }
    assert_eq!(ssp::alerts(&pools, None, Some(":")), "p0:20:-\narchive:5:150\n");
}
