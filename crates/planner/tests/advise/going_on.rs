//! What an error log says of now: errors that began within the last hours, an adapter that is broken, a file system that is full.

use planner::advise::Severity;

use super::{silent, top};

/// A log printed at 16:14, with an entry at each of these minutes before it.
fn log(kind: &str, resource: &str, text: &str, ago: &[u32]) -> String {
    let mut all = "lyra1:/> ioslevel\n3.1.4.31\nlyra1:/> date\nTue Jun 10 16:14:07 CEST 2025\nlyra1:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n".to_owned();
    for ago in ago {
        let at = 16 * 60 + 14 - ago;
        all += &format!(
            "7BFEEA1F   0610{:02}{:02}25 {kind} {resource:<14} {text}\n",
            at / 60,
            at % 60
        );
    }
    all
}

fn every(minutes: u32, times: u32) -> Vec<u32> {
    (0..times).map(|time| 3 + time * minutes).collect()
}

/// Errors of a link that are longer than the restart of a switch, and not over.
#[test]
fn a_link_with_errors_since_an_hour_is_told() {
    let link = |ago: &[u32]| log("T H", "fcs1", "LINK ERROR", ago);
    let finding = top(&[("a", &link(&every(8, 9)))], "adapter-errors");
    assert!(finding.reasoning[0].contains("9 different minutes"), "{finding:#?}");
    top(&[("a", &link(&every(5, 12)))], "adapter-errors");
    top(&[("a", &log("T H", "ent4", "ETHERNET DOWN", &every(5, 12)))], "adapter-errors");
    // A switch that was restarted, twelve entries in as many minutes; few; and some that have ended.
    silent(&[("a", &link(&every(1, 12)))]);
    silent(&[("a", &link(&every(15, 5)))]);
    let over: Vec<u32> = every(6, 9).iter().map(|ago| ago + 55).collect();
    silent(&[("a", &link(&over))]);
}

/// An adapter that says that it is broken needs no hours of history.
#[test]
fn a_broken_adapter_is_told_at_the_second_entry() {
    let broken = |ago: &[u32]| log("P H", "fcs3", "ADAPTER ERROR", ago);
    let finding = top(&[("a", &broken(&[9, 2]))], "adapter-errors");
    assert_eq!(
        (finding.severity, &*finding.title),
        (Severity::Critical, "fcs3 has permanent errors of its hardware")
    );
    assert!(finding.effect.contains("diag -d fcs3"), "{finding:#?}");
    silent(&[("a", &broken(&[2]))]);
    silent(&[("a", &log("T H", "fcs3", "ADAPTER ERROR", &[9, 2]))]);
    // Of a restart, when adapters come up one by one.
    let restart = "9DBCFDEE   0610161025 T O errdemon       ERROR LOGGING TURNED ON\n2BFA76F6   0610160425 T S SYSPROC        SYSTEM SHUTDOWN BY USER\n";
    silent(&[("a", &(broken(&[9, 2]) + restart))]);
}

/// Paths that are down over a broken adapter are its effect.
#[test]
fn paths_over_a_broken_adapter_are_told_by_it() {
    let paths = "lyra1:/> lspath\nEnabled hdisk2 fscsi2\nFailed  hdisk2 fscsi3\nEnabled hdisk3 fscsi2\nFailed  hdisk3 fscsi3\n";
    let files = log("P H", "fcs3", "ADAPTER ERROR", &[9, 2]) + paths;
    let finding = top(&[("a", &files)], "adapter-errors");
    assert_eq!(
        finding.reasoning.last().map(String::as_str),
        Some("For that reason 2 of 4 paths of lyra1, all those over fscsi3, are down.")
    );
    assert_eq!(super::advice(&[("a", &files)]).findings.len(), 1);
    // Errors of the link are what the paths' finding has as evidence.
    let link = log("T H", "fcs3", "LINK ERROR", &every(8, 9)) + paths;
    top(&[("a", &link)], "disk-paths-failed");
    assert_eq!(super::advice(&[("a", &link)]).findings.len(), 1);
}

/// A full file system of a server stops its configuration.
#[test]
fn a_full_file_system_is_told_by_the_log() {
    let full = |ago: &[u32]| log("I O", "SYSPFS", "UNABLE TO ALLOCATE SPACE IN FILE SYSTEM", ago);
    let finding = top(&[("a", &full(&[63, 3]))], "file-system-full");
    assert!(finding.reasoning.join(" ").contains("no log and no dump"), "{finding:#?}");
    // Of a client it is its own affair, and what has room again is over.
    silent(&[("a", &full(&[63, 3]).replace("ioslevel\n3.1.4.31", "oslevel -s\n7200-05-03-2148"))]);
    silent(&[("a", &(full(&[63, 3]) + &df("20%")))]);
    let before = full(&[63, 3]).replace(" 0610", " 0606").replace("   0610", "   0606");
    silent(&[("a", &before)]);
}

fn df(var: &str) -> String {
    format!(
        "lyra1:/> df -g\nFilesystem    GB blocks      Free %Used    Iused %Iused Mounted on\n/dev/hd4           2.00      1.61   20%    15211     4% /\n/dev/hd2           8.00      0.02  100%    71233    11% /usr\n/dev/hd9var        4.00      0.00 {var:>5}     9877    91% /var\n/proc                 -         -    -         -     -  /proc\n/dev/VMLibrary    40.00      0.00  100%       14     1% /var/vio/VMLibrary\n"
    )
}

/// The same by `df`, of what a server needs room in.
#[test]
fn a_full_file_system_is_told_by_df() {
    let vios = |var: &str| "lyra1:/> ioslevel\n3.1.4.31\n".to_owned() + &df(var);
    let finding = top(&[("a", &vios("100%"))], "file-system-full");
    assert_eq!(finding.title, "/var of lyra1 is full");
    // Programs and images may fill theirs.
    silent(&[("a", &vios("93%"))]);
    silent(&[("a", &vios("100%").replace("ioslevel\n3.1.4.31", "oslevel -s\n7200-05-03-2148"))]);
}

/// A mirror that lost a half days ago stands in the lists, when the log of the day says nothing any more.
#[test]
fn a_volume_group_without_a_disk_is_told_by_its_lists() {
    let list = |state: &str| {
        format!(
            "lyra1:/> lsvg -p rootvg\nrootvg:\nPV_NAME           PV STATE          TOTAL PPs   FREE PPs    FREE DISTRIBUTION\nhdisk0            active            546         412         109..88..00..106..109\nhdisk1            {state:<17} 546         412         109..88..00..106..109\n"
        )
    };
    let group = |stale: u32| {
        format!(
            "lyra1:/> lsvg rootvg\nVOLUME GROUP:       rootvg                   VG IDENTIFIER:  00f7b1c100004c0000000152c1e4a7b2\nVG STATE:           active                   PP SIZE:        512 megabyte(s)\nTOTAL PVs:          2                        VG DESCRIPTORS: 3\nSTALE PVs:          {}                        STALE PPs:      {stale}\n",
            u32::from(stale > 0)
        )
    };
    let volumes = |state: &str| {
        format!(
            "lyra1:/> lsvg -l rootvg\nrootvg:\nLV NAME             TYPE       LPs     PPs     PVs  LV STATE      MOUNT POINT\nhd5                 boot       1       2       2    closed/syncd  N/A\nhd9var              jfs2       9       18      2    open/{state}    /var\n"
        )
    };
    let finding = top(&[("a", &(group(94) + &list("missing")))], "volume-group-disks");
    assert_eq!(
        (finding.severity, &*finding.title),
        (Severity::Critical, "rootvg of lyra1 has lost a disk")
    );
    assert_eq!(finding.reasoning[0], "By lsvg hdisk1 is missing, 94 partitions are stale.");
    for stale in [group(94), volumes("stale")] {
        let finding = top(&[("a", &stale)], "volume-group-disks");
        assert_eq!(finding.severity, Severity::Warning);
    }
    silent(&[("a", &(group(0) + &list("active") + &volumes("syncd")))]);
    // The last list counts.
    silent(&[("a", &(list("missing") + &list("active")))]);
}

/// A node that is down, and one whose pool is.
#[test]
fn a_node_of_a_cluster_that_is_down_is_told() {
    let status = |rows: &str| {
        format!(
            "lyra1:/> cluster -status -clustername prod\nCluster Name         State\nprod                 DEGRADED\n\n    Node Name        MTM           Partition Num  State  Pool State\n    lyra1            9009-42A0278F11AB       1    OK     OK\n{rows}"
        )
    };
    let down = status("    lyra2            9009-42A0278F11AB       2    DOWN\n");
    let finding = top(&[("a", &down)], "ssp-node-down");
    assert_eq!((&*finding.object, &*finding.title), ("lyra2", "lyra2 is DOWN in the cluster prod"));
    let pool = status("    lyra2            9009-42A0278F11AB       2    OK     DOWN\n");
    assert_eq!(
        top(&[("a", &pool)], "ssp-node-down").title,
        "lyra2 is DOWN with the pool in the cluster prod"
    );
    silent(&[("a", &status("    lyra2            9009-42A0278F11AB       2    OK     OK\n"))]);
}

/// The paths of a Linux client, by its own command.
#[test]
fn paths_of_linux_are_told() {
    let list = |state: &str| {
        format!(
            "alcor:~ # multipath -ll\nmpatha (3600507680b21480e50000000000c301) dm-0 IBM,2145\nsize=200G features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n|-+- policy='service-time 0' prio=50 status=active\n| |- 1:0:0:0 sda 8:0 active ready running\n| `- 3:0:0:0 sdc 8:32 {state}\n`-+- policy='service-time 0' prio=10 status=enabled\n  |- 1:0:1:0 sde 8:64 active ready running\n  `- 3:0:1:0 sdg 8:96 {state}\n"
        )
    };
    let finding = top(&[("a", &list("failed faulty offline"))], "disk-paths-failed");
    assert_eq!(finding.title, "2 of 4 paths of alcor, all those over host3, are down");
    let said = finding.reasoning.join(" ");
    assert!(
        said.contains("all those over host3") && finding.effect.contains("multipathd"),
        "{finding:#?}"
    );
    silent(&[("a", &list("active ready running"))]);
}
