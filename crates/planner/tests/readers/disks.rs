//! `iostat -D`, `lssp`, `lu -list`, `pv -list`.

use super::{assert_whole, at, fixture, only, read, read_bytes, value};

#[test]
fn disks_in_blocks_with_suffixes() {
    let captures = read("iostat-D");
    assert_whole(&captures);
    let report = only(captures.iostat_ds());
    assert_eq!(
        (value(&report.lcpu), value(&report.drives), value(&report.paths), value(&report.vdisks)),
        (16, 12, 48, 2)
    );
    let names: Vec<(&str, u32)> =
        report.disks.iter().map(|disk| (disk.name.as_str(), disk.sample)).collect();
    assert_eq!(names, [("hdisk4", 1), ("hdisk5", 1), ("hdisk4", 2)]);
    let disk = &report.disks[0];
    assert_eq!(value(&disk.active_percent), 71.3);
    assert_eq!(at(&disk.bytes_per_second), (52.4e6, 6));
    assert_eq!(
        (value(&disk.transfers_per_second), value(&disk.read_bytes_per_second)),
        (901.5, 40.1e6)
    );
    assert_eq!(
        (value(&disk.read.per_second), value(&disk.read.average_ms), value(&disk.read.max_ms)),
        (650.0, 4.2, 1200.0)
    );
    assert_eq!(
        (value(&disk.write.per_second), value(&disk.write.max_ms), value(&disk.write.timeouts)),
        (251.5, 88.4, 1.0)
    );
    let queue = &disk.queue;
    assert_eq!((value(&queue.average_ms), value(&queue.max_ms)), (12.5, 310.2));
    assert_eq!(
        (value(&queue.waiting), value(&queue.in_service), at(&queue.full_per_second)),
        (8.0, 3.0, (410.7, 12))
    );
    let later = &report.disks[2];
    assert_eq!(value(&later.bytes_per_second), 1.5e9);
    assert_eq!((value(&later.read.max_ms), value(&later.read.fails)), (120_000.0, 3.0));
    assert_eq!(value(&later.queue.max_ms), 3_600_000.0);
}

#[test]
fn disks_in_rows() {
    for name in ["iostat-Dl", "iostat-Dl-80"] {
        let captures = read(name);
        assert_whole(&captures);
        let report = only(captures.iostat_ds());
        assert_eq!(report.disks.len(), 2, "{name}");
        let disk = &report.disks[0];
        assert_eq!((value(&disk.active_percent), value(&disk.bytes_per_second)), (1.5, 20.5e3));
        assert_eq!((value(&disk.read.per_second), value(&disk.read.average_ms)), (1.0, 0.5));
        assert_eq!((value(&disk.write.average_ms), value(&disk.write.max_ms)), (1.5, 20.0));
        assert_eq!((value(&disk.queue.average_ms), value(&disk.queue.full_per_second)), (0.1, 2.5));
        let busy = &report.disks[1];
        assert_eq!(
            (value(&busy.written_bytes_per_second), value(&busy.read.average_ms)),
            (200.0e3, 3.5)
        );
        assert_eq!(
            (
                value(&busy.queue.waiting),
                value(&busy.queue.in_service),
                value(&busy.queue.full_per_second)
            ),
            (1.0, 2.0, 33.0)
        );
    }
}

#[test]
fn pools() {
    let captures = read("lssp");
    assert_whole(&captures);
    let reports: Vec<_> = captures.lssps().collect();
    let [shared, local] = reports[..] else { panic!("two reports") };
    let pool = &shared.pools[0];
    assert_eq!(
        (pool.name.as_str(), value(&pool.size_mb), at(&pool.free_mb)),
        ("prodpool", 4_194_304, (524_288, 4))
    );
    assert_eq!(
        (value(&pool.lu_total_mb), value(&pool.overcommit_mb), value(&pool.lus)),
        (6_291_456, 2_621_440, 96)
    );
    assert_eq!(
        (value(&pool.kind).as_str(), value(&pool.id).as_str()),
        ("CLPOOL", "00000000092A0B120000000056C1D2E3")
    );
    assert_eq!(local.pools.len(), 2);
    let pool = &local.pools[1];
    assert_eq!(
        (pool.name.as_str(), value(&pool.size_mb), value(&pool.free_mb)),
        ("clientvg", 307_200, 102_400)
    );
    assert_eq!(
        (value(&pool.alloc_mb), value(&pool.backing_devices), value(&pool.kind).as_str()),
        (128, 4, "LVPOOL")
    );
}

#[test]
fn the_older_table_of_pools_in_eighty_columns() {
    let captures = read("lssp-old");
    assert_whole(&captures);
    let pool = &only(captures.lssps()).pools[0];
    assert_eq!(
        (pool.name.as_str(), value(&pool.lu_total_mb), value(&pool.lus)),
        ("labpool", 40_960, 2)
    );
    assert_eq!(value(&pool.id), "00000000092A0B120000000056C1D2E4");
    assert_eq!(pool.overcommit_mb, None);
}

#[test]
fn logical_units() {
    let captures = read("lu-list");
    assert_whole(&captures);
    let report = only(captures.lu_lists());
    let [payroll, web, redo] = &report.lus[..] else { panic!("three LUs") };
    assert_eq!(
        (payroll.name.as_str(), value(&payroll.size_mb), value(&payroll.unused_mb)),
        ("lu_payroll_data", 512_000, 100_864)
    );
    assert_eq!(
        (value(&payroll.pool).as_str(), value(&payroll.tier).as_str()),
        ("prodpool", "SYSTEM")
    );
    assert_eq!(value(&web.udid), "0a41c7e2b5d94cf38812e4f7b8c2d001");
    assert_eq!((value(&redo.tier).as_str(), value(&redo.unused_mb), redo.at.line), ("FAST", 0, 10));
}

#[test]
fn luns_of_a_pool_by_tier_and_failure_group() {
    let captures = read("pv-list");
    assert_whole(&captures);
    let report = only(captures.pv_lists());
    assert_eq!(value(&report.head.partition), "viosa1");
    assert_eq!((report.head.first.line, report.head.last), (2, 13));
    let [first, second, third] = &report.luns[..] else { panic!("three LUNs") };
    assert_eq!((first.name.as_str(), first.at.line), ("hdisk4", 6));
    assert_eq!((at(&first.pool), at(&first.tier)), (("prodpool".into(), 2), ("SYSTEM".into(), 3)));
    assert_eq!(
        (at(&first.failure_group), at(&first.size_mb)),
        (("Default".into(), 4), (524_288, 6))
    );
    assert_eq!(value(&first.state), "ONLINE");
    assert_eq!(value(&first.udid), "332136005076810820C0A9800000000000C2304214503IBMfcp");
    assert_eq!((second.name.as_str(), value(&second.state).as_str()), ("hdisk5", "OFFLINE"));
    assert_eq!(
        (third.name.as_str(), value(&third.size_mb), third.at.line),
        ("hdisk9", 102_400, 13)
    );
    assert_eq!(
        (value(&third.pool).as_str(), value(&third.tier).as_str(), at(&third.failure_group)),
        ("prodpool", "FAST", ("east".into(), 11))
    );
}

#[test]
fn luns_of_a_pool_in_eighty_columns() {
    let captures = read("pv-list-80");
    assert_whole(&captures);
    let report = only(captures.pv_lists());
    let found: Vec<(&str, u64, String)> = report
        .luns
        .iter()
        .map(|lun| (lun.name.as_str(), value(&lun.size_mb), value(&lun.udid)))
        .collect();
    let udid = |number: &str| format!("332136005076810820C0A9800000000000C2{number}04214503IBMfcp");
    assert_eq!(found, [("hdisk4", 524_288, udid("3")), ("hdisk5", 524_288, udid("4"))]);
}

#[test]
fn luns_of_a_pool_in_blocks() {
    let captures = read("pv-verbose");
    assert_whole(&captures);
    let [first, second] = &only(captures.pv_lists()).luns[..] else { panic!("two LUNs") };
    assert_eq!((first.name.as_str(), at(&first.size_mb)), ("hdisk2", (20_480, 7)));
    assert_eq!(value(&first.udid), "3E213600A0B8000291B080000C5D04C2B0F1815      FAStT03IBMfcp");
    assert_eq!((second.name.as_str(), value(&second.size_mb)), ("hdisk3", 30_720));
    assert_eq!(
        (value(&second.pool).as_str(), value(&second.failure_group).as_str()),
        ("labpool", "Default")
    );
    assert_eq!(value(&second.state), "ONLINE");
}

#[test]
fn luns_of_a_pool_that_the_command_names() {
    let captures = read("lspv-pool");
    assert_whole(&captures);
    let report = only(captures.pv_lists());
    let [first, second] = &report.luns[..] else { panic!("two LUNs") };
    assert_eq!((first.name.as_str(), at(&first.size_mb)), ("hdisk11", (1_048_576, 4)));
    assert_eq!(at(&first.pool), ("prodpool".into(), 1));
    assert_eq!((&first.tier, &first.failure_group, &first.state), (&None, &None, &None));
    assert_eq!(value(&second.udid), "332136005076810820C0A9800000000000C2404214503IBMfcp");
    assert_eq!(value(&report.head.partition), "viosa2");
}

#[test]
fn disks_that_are_in_no_pool_are_no_luns_of_one() {
    let table = "PV_NAME          SIZE(MB)    UDID\nhdisk7           10240       1D0667\n";
    for command in ["pv -list -capable", "lspv -clustername c -sp p -capable"] {
        let captures = read_bytes(format!("$ {command}\n{table}").as_bytes());
        assert_eq!(captures.reports, [], "{command}");
        assert_eq!(captures.refused.len(), 1, "{command}");
        let captures = read_bytes(format!("$ lssp; {command}\n{table}").as_bytes());
        assert_eq!(captures.reports, [], "{command}");
    }
}

#[test]
fn another_report_of_the_pool_ends_the_list_of_its_luns() {
    let luns = fixture("pv-list");
    let with = |more: &[u8]| {
        let captures = read_bytes(&[&luns[..], more].concat());
        assert_whole(&captures);
        assert_eq!(only(captures.pv_lists()).luns.len(), 3);
        captures
    };
    let captures = with(b"POOL_NAME: prodpool\nPOOL_SIZE: 1150976\nFREE_SPACE: 1024\n");
    assert_eq!(value(&only(captures.lssps()).pools[0].free_mb), 1024);
    let captures = with(
        b"POOL_NAME: p\nTIER_NAME: FAST\nLU_NAME  SIZE(MB)  UNUSED(MB)  UDID\nlu_a  10240  0  0a41\n",
    );
    let lu = &only(captures.lu_lists()).lus[0];
    assert_eq!((lu.name.as_str(), value(&lu.pool).as_str()), ("lu_a", "p"));
    let groups =
        b"POOL_NAME: q\nTIER_NAME: FAST\nFG_NAME  FG_SIZE(MB)  FG_STATE\neast  10240  ONLINE\n";
    let lus = b"POOL_NAME: p\nTIER_NAME: FAST\nLU_NAME  SIZE(MB)  UNUSED(MB)  UDID\nlu_a  10240  0  0a41\n";
    for before in [&luns[..], lus] {
        let captures = read_bytes(&[before, &groups[..]].concat());
        assert_whole(&captures);
        let east = &only(captures.failure_group_lists()).groups[0];
        assert_eq!((east.name.as_str(), value(&east.pool).as_str()), ("east", "q"));
    }
}

#[test]
fn failure_groups_tiers_and_alerts_one_after_the_other() {
    let captures = read("pool-shape");
    assert_whole(&captures);
    let groups = &only(captures.failure_group_lists()).groups;
    let [south, east] = &groups[1..] else { panic!("three failure groups") };
    assert_eq!((south.name.as_str(), south.size_mb.value, south.at.line), ("south", 524_288, 6));
    assert_eq!((south.state.value.as_str(), at(&south.tier)), ("DEGRADED", ("SYSTEM".into(), 3)));
    assert_eq!((east.name.as_str(), value(&east.tier).as_str()), ("east", "FAST"));
    assert_eq!(at(&east.pool), ("prodpool".into(), 8));
    let [_, fast] = &only(captures.tier_lists()).tiers[..] else { panic!("two tiers") };
    assert_eq!((fast.name.as_str(), fast.pool.value.as_str()), ("FAST", "prodpool"));
    assert_eq!((fast.size_mb.value, fast.free_mb.value), (102_400, 4096));
    assert_eq!((fast.mirror_state.value.as_str(), fast.at.line), ("NOT_MIRRORED", 15));
    let [alert] = &only(captures.alert_lists()).alerts[..] else { panic!("one alert") };
    assert_eq!((alert.pool.as_str(), value(&alert.free_percent)), ("prodpool", 25));
    assert_eq!(alert.overcommit_percent, None);
    let captures = read_bytes(b"$ tier -list -fmt :\nSYSTEM:1:1:SYNCED:p\n");
    assert_eq!((captures.reports.len(), captures.refused.len()), (0, 1));
}

#[test]
fn a_table_that_is_cut_says_so() {
    let text = b"PoolName   Threshold%\nprodpool   2";
    let captures = read_bytes(text);
    let alert = &only(captures.alert_lists()).head.incomplete;
    assert!(alert.as_deref().is_some_and(|why| why.contains("may be cut")), "{alert:?}");
    let text = b"FG_NAME   FG_SIZE(MB)   FG_STATE\n";
    let captures = read_bytes(text);
    let groups = &only(captures.failure_group_lists()).head.incomplete;
    assert!(groups.as_deref().is_some_and(|why| why.contains("nothing follows")), "{groups:?}");
}

#[test]
fn an_id_with_spaces_in_a_table_of_luns() {
    let text = b"PV_NAME SIZE(MB) STATE UDID\nhdisk2 20480 ONLINE 3E2136 0F1815  FAStT03IBMfcp\n";
    let captures = read_bytes(text);
    assert_whole(&captures);
    let lun = &only(captures.pv_lists()).luns[0];
    assert_eq!(
        (value(&lun.size_mb), value(&lun.udid).as_str()),
        (20_480, "3E2136 0F1815  FAStT03IBMfcp")
    );
    assert_eq!((value(&lun.state).as_str(), &lun.pool), ("ONLINE", &None));
}

#[test]
fn logical_units_by_older_and_longer_lists() {
    let captures = read("lssp-bd");
    assert_whole(&captures);
    let report = only(captures.lu_lists());
    let [first, second] = &report.lus[..] else { panic!("two LUs, a snapshot is none") };
    assert_eq!(
        (first.name.as_str(), value(&first.thin), value(&first.used_percent)),
        ("lab_a", true, 35)
    );
    assert_eq!(
        (value(&first.unused_mb), value(&first.udid).as_str()),
        (13_312, "5f0e1d2c3b4a596871625344f5e6d7c8")
    );
    assert_eq!((value(&second.thin), value(&second.unused_mb)), (false, 0));

    let captures = read("lu-verbose");
    assert_whole(&captures);
    let lu = &only(captures.lu_lists()).lus[0];
    assert_eq!(
        (lu.name.as_str(), value(&lu.size_mb), value(&lu.unused_mb), value(&lu.thin)),
        ("lu_web7", 40_960, 40_000, true)
    );
    assert_eq!(
        (value(&lu.tier).as_str(), value(&lu.udid).as_str()),
        ("SYSTEM", "0a41c7e2b5d94cf38812e4f7b8c2d001")
    );
}

#[test]
fn values_that_a_loop_prints_behind_the_devices() {
    let text = "aix1:/> for d in $(lspv|awk '{print $1}'); do echo $d $(lsattr -El $d -a queue_depth -F value); done\nhdisk0 32\nhdisk1 8\naix1:/> lsattr -El hdisk7 -a queue_depth -F value\n20\naix1:/> date\n";
    let captures = super::read_bytes(text.as_bytes());
    assert_eq!((&captures.unread[..], &captures.refused[..]), (&[][..], &[][..]));
    let depths: Vec<_> = ["hdisk0", "hdisk1", "hdisk7"]
        .iter()
        .map(|disk| captures.attributes(Some("aix1"), disk).next().and_then(|one| one.number()))
        .collect();
    assert_eq!(depths, [Some(32), Some(8), Some(20)]);
}

/// Several attributes of each device, by one command or by several, with and without the device's name before them: each
/// value is of the attribute that was asked for.
#[test]
fn values_of_several_attributes_are_not_mixed_up() {
    let two =
        "do lsattr -El $d -a hcheck_interval -F value; lsattr -El $d -a queue_depth -F value; done";
    let loops = [
        (two.replace("do ", "do echo $d; "), "hdisk0\n60\n32\nhdisk1\n0\n8\n"),
        (
            "do echo $d; lsattr -El $d -a hcheck_interval -a queue_depth -F value; done".into(),
            "hdisk0\n60\n32\nhdisk1\n0\n8\n",
        ),
        (
            "do echo $d $(lsattr -El $d -a hcheck_interval -a queue_depth -F value); done".into(),
            "hdisk0 60 32\nhdisk1 0 8\n",
        ),
        // A disk that has no such attribute says so instead.
        (
            two.replace("do ", "do echo $d; "),
            "hdisk9\nlsattr: 0514-528 The \"hcheck_interval\" attribute does not exist in the predefined\n        device configuration database.\n4\nhdisk0\n60\n32\nhdisk1\n0\n8\n",
        ),
    ];
    for (body, printed) in loops {
        let text = format!(
            "aix1:/> for d in $(lspv | awk '{{print $1}}'); {body}\n{printed}aix1:/> date\n"
        );
        let captures = super::read_bytes(text.as_bytes());
        for (disk, interval, depth) in [("hdisk0", 60, 32), ("hdisk1", 0, 8)] {
            let all: Vec<_> = captures
                .attributes(Some("aix1"), disk)
                .map(|one| (one.name.as_str(), one.number()))
                .collect();
            assert_eq!(
                all,
                [("hcheck_interval", Some(interval)), ("queue_depth", Some(depth))],
                "{text}"
            );
        }
    }
    // Without names nothing is known of the devices, and still each value is of its attribute.
    let text = format!("aix1:/> for d in hdisk0 hdisk1; {two}\n60\n32\n0\n8\naix1:/> date\n");
    let captures = super::read_bytes(text.as_bytes());
    let all: Vec<_> = captures
        .lsattrs()
        .flat_map(|list| &list.attributes)
        .map(|one| (one.name.as_str(), one.number()))
        .collect();
    let (interval, depth) = ("hcheck_interval", "queue_depth");
    assert_eq!(
        all,
        [(interval, Some(60)), (depth, Some(32)), (interval, Some(0)), (depth, Some(8))]
    );
}
