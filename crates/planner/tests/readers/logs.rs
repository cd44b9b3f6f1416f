//! The error log, memory, and the lists of an HMC.

use super::{assert_whole, only, read, read_bytes, value};

#[test]
fn the_error_log_in_short() {
    let captures = read("errpt");
    assert_whole(&captures);
    let report = only(captures.errpts());
    assert_eq!(report.entries.len(), 3);
    let entry = &report.entries[1];
    assert_eq!((entry.at.line, entry.identifier.as_str()), (4, "D5676F6F"));
    assert_eq!(
        (entry.kind.as_str(), entry.class.as_str(), entry.resource.as_str()),
        ("T", "H", "fscsi1")
    );
    assert_eq!(entry.description, "ATTACHED SCSI TARGET DEVICE ERROR");
    // 27 May 2026, 03:40.
    assert_eq!(entry.logged.as_ref().map(|taken| taken.seconds), Some(1_779_853_200));
    let captures = read_bytes(b"DE3B8540   0527034126 P H hdisk3         PATH HAS FAILED\n");
    assert_eq!(only(captures.errpts()).entries[0].resource, "hdisk3");
}

#[test]
fn the_error_log_in_full() {
    let captures = read("errpt-a");
    assert_whole(&captures);
    let report = only(captures.errpts());
    assert_eq!(value(&report.head.partition), "prgvio1");
    assert_eq!(value(&report.machine_id), "00F78A1B4C00");
    let [link, path] = &report.entries[..] else { panic!("two entries") };
    assert_eq!((link.at.line, link.label.as_deref()), (3, Some("FCA_ERR4")));
    assert_eq!(
        (link.kind.as_str(), link.class.as_str(), link.resource.as_str()),
        ("TEMP", "H", "fcs0")
    );
    assert_eq!((link.description.as_str(), link.duplicates), ("LINK ERROR", Some(17)));
    assert_eq!(link.logged.as_ref().and_then(|taken| taken.zone.as_deref()), Some("CET"));
    assert_eq!((path.at.line, path.description.as_str()), (41, "PATH HAS FAILED"));
}

#[test]
fn memory_by_vmstat_and_svmon() {
    let captures = read("vmstat");
    assert_whole(&captures);
    let report = only(captures.vmstats());
    assert_eq!((value(&report.memory_mb), report.samples.len()), (4096, 2));
    let sample = &report.samples[1];
    assert_eq!((sample.at.line, sample.paged_in, sample.paged_out), (9, Some(112.0), Some(181.0)));
    assert_eq!((sample.system, sample.idle, sample.physical), (Some(23.0), Some(67.0), Some(0.33)));
    assert_eq!((sample.active_frames, sample.free_frames), (Some(1_200_301.0), Some(981.0)));

    let captures = read("svmon");
    assert_whole(&captures);
    let report = only(captures.svmons());
    assert_eq!((value(&report.size), value(&report.computational)), (1_048_576.0, 1_200_280.0));
    assert_eq!((value(&report.paging_size), value(&report.paging_in_use)), (262_144.0, 160_411.0));
    assert_eq!(report.unit, None);
}

#[test]
fn rows_of_an_hmc_with_names_and_without() {
    let captures = read("lshwres");
    assert_whole(&captures);
    let report = only(captures.hmc_lists());
    assert_eq!((value(&report.system).as_str(), report.rows.len()), ("DEL-S924", 2));
    assert_eq!(report.head.partition, None);
    assert_eq!(report.rows[0].field("vios_lpar_name"), Some("delvio1"));
    assert_eq!(
        (report.rows[0].field("desired"), report.rows[1].field("desired")),
        (Some("a,b"), None)
    );
    let fields: Vec<(&str, &str)> = report.rows[1].fields().collect();
    assert_eq!(
        (fields.len(), fields[0], fields[8]),
        (9, ("lpar_name", "delapp1"), ("desired", "none"))
    );
    // Each field with its line, as the reports of others have them.
    let printed = serde_json::to_value(&report.rows[1]).unwrap();
    let at = serde_json::json!({"file": 0, "line": 3});
    let first = serde_json::json!({"at": at, "name": "lpar_name", "value": "delapp1"});
    assert_eq!((&printed["at"], &printed["fields"][0]), (&at, &first));

    let captures = read("lssyscfg-F");
    assert_whole(&captures);
    let report = only(captures.hmc_lists());
    assert_eq!(report.rows.len(), 2);
    assert_eq!(report.rows[0].field("os_version"), Some("AIX 7.3, 7300-02-01-2346"));
    assert_eq!((report.rows[1].at.line, report.rows[1].field("state")), (4, Some("Not Activated")));
}

#[test]
fn a_map_of_vnics() {
    let captures = read("lsmap-vnic");
    assert_whole(&captures);
    let [first, second] = &only(captures.lsmap_vnics()).adapters[..] else { panic!("two") };
    assert_eq!((first.name.as_str(), first.at.line), ("vnicserver0", 4));
    assert_eq!((value(&first.client_id), value(&first.client_name).as_str()), (5, "delapp1"));
    assert_eq!(
        (value(&first.backing).as_str(), value(&first.status).as_str()),
        ("ent10", "Available")
    );
    assert_eq!(value(&first.client_physloc), "U9009.42A.78EE0C1-V5-C6");
    assert_eq!(
        (second.client_name.as_ref(), second.backing.as_ref(), value(&second.status).as_str()),
        (None, None, "Defined")
    );
}

fn field(path: &str) -> Vec<u8> {
    let path = format!("{}/tests/field/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_file_of_nmon() {
    let path = "faulty/50-nmon-of-a-server-that-pages/kirvio1_261112_1000.nmon";
    let captures = read_bytes(&field(path));
    assert_whole(&captures);
    let report = only(captures.nmons());
    assert_eq!(
        (value(&report.head.partition).as_str(), value(&report.machine_serial).as_str()),
        ("kirvio1", "78BB1C0")
    );
    assert_eq!(
        (value(&report.partition_id), value(&report.machine_model).as_str()),
        (1, "9009-42A")
    );
    assert_eq!((report.times.len(), value(&report.interval_seconds)), (12, 300));
    let paged = report.series("PAGE", "pgsin");
    assert_eq!((paged.len(), paged[0].value, paged[11].value), (12, 80.0, 201.0));
    assert!(report.series("PAGE", "nothing").is_empty());
    let gap = report.times[1].taken.seconds - report.times[0].taken.seconds;
    assert_eq!(gap, 300);
}

#[test]
fn a_compressed_file_is_read_as_it_is_delivered() {
    let packed = field("faulty/68-compressed-nmon-of-a-short-server/dohvio1_261208_0900.nmon.gz");
    let captures = read_bytes(&packed);
    assert!(!only(captures.nmons()).times.is_empty());
    assert!(captures.files[0].notes.iter().any(|note| note == "is compressed (gzip)"));
    // One that is cut gives what it has, and says so.
    let captures = read_bytes(&packed[..packed.len() / 2]);
    assert!(
        captures.files[0].notes.iter().any(|note| note.contains("damaged")),
        "{:?}",
        captures.files[0].notes
    );
    // A header that lies is no text.
    for bytes in [
        &b"\x1f\x8b\x08\x04"[..],
        b"\x1f\x8b\x08\x08\0\0\0\0\0\0name",
        b"\x1f\x8b\x08\x1f\0\0\0\0\0\0\xff\xff",
    ] {
        assert!(read_bytes(bytes).reports.is_empty());
    }
}

/// `vmstat -Iwt`: a column for threads that wait for raw I/O, wide groups, and the time behind each row.
#[test]
fn memory_by_vmstat_with_the_time_of_each_row() {
    let text = "vios1:/> vmstat -Iwt 10 2\n\nSystem configuration: lcpu=8 mem=6144MB ent=0.50\n\n   kthr             memory                             page                       faults                 cpu             time\n----------- --------------------- ------------------------------------ ------------------ ----------------------- --------\n  r   b   p        avm        fre    fi    fo    pi    po    fr     sr    in     sy    cs us sy id wa    pc    ec hr mi se\n  3   4   0    1892411       1101     2    31   412   688   702   2911  1211   4312  6011  9 41 28 22  0.41  82.1 13:05:10\n  4   6   0    1893998        998     0    22   511   802   811   4012  1422   4991  6844  8 47 20 25  0.46  91.9 13:05:20\n";
    let captures = super::read_bytes(text.as_bytes());
    let report = only(captures.vmstats());
    assert_eq!(report.head.incomplete, None);
    let pages: Vec<_> = report
        .samples
        .iter()
        .map(|one| (one.paged_in, one.paged_out, one.system, one.entitlement_percent))
        .collect();
    let row = |into: f64, out: f64, system: f64, share: f64| {
        (Some(into), Some(out), Some(system), Some(share))
    };
    assert_eq!(pages, [row(412.0, 688.0, 41.0, 82.1), row(511.0, 802.0, 47.0, 91.9)]);
}
