//! Volume groups, file systems, the nodes of a cluster, and the paths of Linux.

use super::{assert_whole, only, read};
use planner::capture::PathState;

#[test]
fn volume_groups_with_their_disks_and_volumes() {
    let captures = read("lsvg");
    assert_whole(&captures);
    let groups: Vec<_> = captures.lsvgs().flat_map(|list| &list.groups).collect();
    assert_eq!(groups.len(), 3);
    assert!(groups.iter().all(|group| group.name.as_deref() == Some("rootvg")));
    let stale = groups[0].stale_pps.expect("it stands there");
    assert_eq!((stale.value, stale.at.line), (40, 9));
    assert_eq!(groups[0].stale_pvs.map(|read| read.value), Some(1));
    let states = |members: &[planner::capture::Member]| {
        let each = members.iter().map(|one| format!("{} {}", one.name, one.state));
        each.collect::<Vec<_>>()
    };
    assert_eq!(states(&groups[1].disks), ["hdisk0 active", "hdisk1 missing"]);
    assert_eq!(
        states(&groups[2].volumes),
        ["hd5 closed/syncd", "hd6 open/syncd", "hd9var open/stale"]
    );
}

#[test]
fn file_systems() {
    let captures = read("df");
    assert_whole(&captures);
    let list = only(captures.dfs());
    let rows: Vec<_> =
        list.systems.iter().map(|of| (of.mounted.as_str(), of.used_percent, of.at.line)).collect();
    assert_eq!(rows, [("/", 21, 3), ("/var", 99, 4), ("/opt", 53, 6)]);
    // What Linux prints has other columns, and is none of these.
    let linux = b"$ df -h\nFilesystem      Size  Used Avail Use% Mounted on\n/dev/sda2        40G   38G  1.0G  98% /\n";
    assert!(super::read_bytes(linux).reports.is_empty());
    assert_eq!(super::read_bytes(linux).refused, []);
}

#[test]
fn nodes_of_a_cluster() {
    let captures = read("cluster-status");
    assert_whole(&captures);
    let list = only(captures.cluster_statuses());
    assert_eq!(list.clusters[0].1.value, "DEGRADED");
    let nodes: Vec<_> = list
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.state.as_str(), node.pool_state.as_deref()))
        .collect();
    assert_eq!(nodes, [("lyra1", "OK", Some("OK")), ("lyra2", "DOWN", None)]);
}

#[test]
fn paths_of_linux() {
    let captures = read("multipath");
    assert_whole(&captures);
    let list = only(captures.disk_paths_all());
    let rows: Vec<_> = list
        .paths
        .iter()
        .map(|path| (path.disk.as_str(), path.parent.as_deref(), path.state, path.at.line))
        .collect();
    let host = |number: u32| if number == 1 { Some("host1") } else { Some("host3") };
    assert_eq!(
        rows,
        [
            ("mpatha", host(1), PathState::Usable, 5),
            ("mpatha", host(3), PathState::Failed, 6),
            ("mpatha", host(1), PathState::Usable, 8),
            ("mpatha", host(3), PathState::Usable, 9),
        ]
    );
}
