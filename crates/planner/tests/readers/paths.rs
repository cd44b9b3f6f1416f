//! Paths to disks: `lspath`, `lsmpio`, `pcmpath`.

use planner::capture::{DiskPath, PathState};

use super::{assert_whole, only, read, read_bytes};

fn brief(path: &DiskPath) -> (&str, PathState, Option<&str>, Option<u32>, u32) {
    (&path.disk, path.state, path.parent.as_deref(), path.id, path.at.line)
}

#[test]
fn lspath_by_its_usual_columns() {
    let captures = read("lspath");
    assert_whole(&captures);
    let report = only(captures.disk_paths_all());
    let found: Vec<_> = report.paths.iter().map(brief).collect();
    assert_eq!(
        found,
        [
            ("hdisk0", PathState::Usable, Some("vscsi0"), None, 2),
            ("hdisk0", PathState::Usable, Some("vscsi1"), None, 3),
            ("hdisk1", PathState::Failed, Some("fscsi0"), None, 4),
            ("hdisk1", PathState::Missing, Some("fscsi1"), None, 5),
        ]
    );
    // Without the command.
    let captures = read_bytes(b"Enabled hdisk0 vscsi0\nEnabled hdisk0 vscsi1\n");
    assert_eq!(only(captures.disk_paths_all()).paths.len(), 2);
}

#[test]
fn lspath_by_a_heading_and_by_a_format() {
    let captures = read("lspath-vios");
    let report = only(captures.disk_paths_all());
    assert_eq!(report.paths[0].connection.as_deref(), Some("5000c5007f2a1b33,0"));
    assert_eq!(brief(&report.paths[1]), ("hdisk3", PathState::Defined, Some("fscsi1"), None, 4));

    let captures = read("lspath-F");
    assert_whole(&captures);
    let report = only(captures.disk_paths_all());
    assert_eq!(
        brief(&report.paths[1]),
        ("hdisk4", PathState::Disabled, Some("fscsi1"), Some(1), 3)
    );
    assert_eq!(report.paths[0].connection.as_deref(), Some("500507680b214c01,1000000000000"));
    let captures = read_bytes(b"# lspath -l hdisk7 -F'status:path_id:parent'\nFailed:3:fscsi2\n");
    let report = only(captures.disk_paths_all());
    assert_eq!(brief(&report.paths[0]), ("hdisk7", PathState::Failed, Some("fscsi2"), Some(3), 2));
}

#[test]
fn lsmpio_and_pcmpath() {
    let captures = read("lsmpio");
    assert_whole(&captures);
    let report = only(captures.disk_paths_all());
    assert_eq!(brief(&report.paths[1]), ("hdisk4", PathState::Failed, Some("fscsi0"), Some(1), 5));
    assert_eq!(report.paths[1].detail.as_deref(), Some("Deg,Fai"));
    assert_eq!(brief(&report.paths[2]), ("hdisk4", PathState::Usable, Some("fscsi1"), Some(2), 6));
    assert_eq!(report.paths[2].detail, None);

    let captures = read("pcmpath");
    assert_whole(&captures);
    let report = only(captures.disk_paths_all());
    let path = &report.paths[1];
    assert_eq!(brief(path), ("hdisk2", PathState::Failed, Some("fscsi1"), Some(1), 10));
    assert_eq!((path.selected, path.errors), (Some(17), Some(9)));
    assert_eq!(path.serial.as_deref(), Some("60050768018205E1200000000000010A"));
    assert_eq!(path.status, "FAILED NORMAL");
}

/// The columns in the order that was asked for; a connection has a comma of its own, whatever stands between the columns.
#[test]
fn lspath_with_signs_between_the_columns() {
    let told = |typed: &str, rows: &str| -> Vec<String> {
        let captures = super::read_bytes(format!("sofiadb2:/ # {typed}\n{rows}\n").as_bytes());
        let report = only(captures.disk_paths_all());
        let told = report.paths.iter().map(|path| {
            let (parent, connection) = (path.parent.as_deref(), path.connection.as_deref());
            format!("{} {} {parent:?} {:?} {connection:?}", path.disk, path.status, path.id)
        });
        told.collect()
    };
    let whole = "hdisk3 Missing Some(\"fscsi1\") Some(2) Some(\"5005076810210b01,3000000000000\")";
    let columns = ["name", "parent", "path_id", "connection", "status"];
    let values = ["hdisk3", "fscsi1", "2", "5005076810210b01,3000000000000", "Missing"];
    let typed = format!("lspath -F \"{}\"", columns.join(":"));
    assert_eq!(told(&typed, &values.join(":")), [whole]);
    let behind = "Failed:hdisk1:fscsi0:0:5005076810110a01,0000000000000";
    assert_eq!(
        told("lspath -F status:name:parent:path_id:connection", behind),
        ["hdisk1 Failed Some(\"fscsi0\") Some(0) Some(\"5005076810110a01,0000000000000\")"]
    );
    let short = "hdisk1 Failed Some(\"fscsi0\") None None";
    assert_eq!(told("lspath -fmt :", "Failed:hdisk1:fscsi0"), [short]);
}

#[test]
fn pcmpath_that_calls_a_device_by_the_whole_word() {
    let text = "root@db1:/ # pcmpath query device\n\nTotal Dual Active and Active/Asymmetric Devices : 1\n\nDEVICE#: 0  DEVICE NAME: hdisk2  TYPE: 2107900  ALGORITHM:  Load Balance\nSERIAL: 75ABC\n====\nPath#      Adapter/Path Name          State     Mode     Select     Errors\n    0           fscsi0/path0          OPEN    NORMAL     881220          0\n    1           fscsi1/path1          OPEN    NORMAL     881220          0\n\nroot@db1:/ # pcmpath query adapter\n\nTotal Dual Active and Active/Asymmetric Adapters : 2\n\nAdpt#     Name   State     Mode\n    0   fscsi0  NORMAL   ACTIVE\n";
    let captures = read_bytes(text.as_bytes());
    let found: Vec<_> = only(captures.disk_paths_all()).paths.iter().map(brief).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], ("hdisk2", PathState::Usable, Some("fscsi0"), Some(0), 9));
    // The other form is told of, and hides nothing.
    assert_eq!(captures.refused.len(), 1);
}
