//! Forms in which rows come out of commands: signs between columns, chosen fields, filters.

use crate::read_bytes;
use planner::capture::PathState;

fn states(text: &str) -> Vec<(String, Option<String>, PathState)> {
    let captures = read_bytes(text.as_bytes());
    let lists = captures.disk_paths_all();
    lists
        .flat_map(|list| &list.paths)
        .map(|path| (path.disk.clone(), path.parent.clone(), path.state))
        .collect()
}

#[test]
fn signs_in_the_quotes_of_a_format_divide_columns_and_no_commands() {
    let expected = [
        ("hdisk1".to_owned(), Some("fscsi0".to_owned()), PathState::Usable),
        ("hdisk1".to_owned(), Some("fscsi1".to_owned()), PathState::Failed),
    ];
    for (format, sign) in [
        ("\"status;name;parent\"", ';'),
        ("'status|name|parent'", '|'),
        ("status\\;name\\;parent", ';'),
        ("\"status:name:parent\"", ':'),
    ] {
        let text = format!(
            "aix1:/> lspath -F {format}\nEnabled{sign}hdisk1{sign}fscsi0\nFailed{sign}hdisk1{sign}fscsi1\n"
        );
        assert_eq!(states(&text), expected, "{text}");
    }
}

#[test]
fn commands_behind_a_format_are_others() {
    let text = "aix1:/> lspath -F \"status;name;parent\"; oslevel -s\nFailed;hdisk1;fscsi1\n7200-05-03-2148\n";
    let captures = read_bytes(text.as_bytes());
    assert_eq!(captures.disk_paths_all().count(), 1);
    assert_eq!(captures.levels().count(), 1);
}

#[test]
fn rows_of_lspath_are_known_by_their_fields() {
    let rows = "hdisk1,fscsi0,Enabled,500507680c210001,1000000000000\nhdisk1,fscsi1,Failed,500507680c210002,1000000000000\n";
    for command in ["", "vios1:/home/padmin> lspath -fmt ,\n"] {
        let text = format!("{command}{rows}");
        let failed: Vec<_> =
            states(&text).into_iter().filter(|row| row.2 == PathState::Failed).collect();
        let expected = ("hdisk1".to_owned(), Some("fscsi1".to_owned()), PathState::Failed);
        assert_eq!(failed, [expected], "{text}");
    }
}

#[test]
fn a_pool_is_known_by_its_cluster_where_its_name_was_filtered_away() {
    let text = "vios1:/home/padmin> lssp -clustername prod | grep -E \"SIZE|FREE\"\nPOOL_SIZE:  102400\nFREE_SPACE: 4000\n";
    let captures = read_bytes(text.as_bytes());
    let pool = &captures.lssps().next().expect("a pool").pools[0];
    assert_eq!(pool.name, "of prod");
    assert_eq!(pool.free_mb.map(|read| read.value), Some(4000));
}

#[test]
fn a_row_of_lssp_is_read_without_its_heading() {
    let text = "vios1:/home/padmin> lssp | grep rootvg\nrootvg   139776    60160     256       0       LVPOOL\n";
    let captures = read_bytes(text.as_bytes());
    let pool = &captures.lssps().next().expect("a pool").pools[0];
    assert_eq!((pool.name.as_str(), pool.free_mb.map(|read| read.value)), ("rootvg", Some(60160)));
}

#[test]
fn fields_of_lsmap_are_those_that_were_asked_for() {
    let text = "vios1:/home/padmin> lsmap -all -field svsa clientid vtd backing -fmt :\nvhost0:0x00000003:vtscsi0:hdisk5:vtscsi1:hdisk6\nvios1:/home/padmin> lsmap -all -npiv -field name clntid status fc -fmt :\nvfchost0:3:LOGGED_IN:fcs0\n";
    let captures = read_bytes(text.as_bytes());
    let scsi = &captures.lsmap_scsis().next().expect("lsmap").adapters[0];
    let backing: Vec<_> =
        scsi.devices.iter().filter_map(|one| Some(one.backing.as_ref()?.value.as_str())).collect();
    assert_eq!(backing, ["hdisk5", "hdisk6"]);
    assert_eq!(scsi.client_partition.map(|read| read.value), Some(3));
    let npiv = &captures.lsmap_npivs().next().expect("lsmap -npiv").adapters[0];
    assert_eq!(npiv.port.as_ref().map(|read| read.value.as_str()), Some("fcs0"));
}

#[test]
fn what_was_filtered_away_is_said() {
    let text = "vios1:/home/padmin> lsmap -all | grep -E \"VTD|Backing\"\nVTD                   vtscsi0\nBacking device        hdisk5\n";
    let captures = read_bytes(text.as_bytes());
    let why = &captures.unread[0].why;
    assert!(why.contains("filtered away"), "{why}");
}

#[test]
fn syslog_as_rfc_5424_has_it_is_taken_off() {
    let head = "<13>1 2026-11-22T14:05:09.123Z aix1 capt 4411 - - ";
    let text = format!("{head}+ oslevel -s\n{head}7200-05-03-2148\n");
    let captures = read_bytes(text.as_bytes());
    let level = captures.levels().next().expect("a level");
    assert_eq!(level.head.partition.as_ref().map(|read| read.value.as_str()), Some("aix1"));
}

#[test]
fn lsmap_in_german_is_refused_by_name() {
    let text = "vios1:/home/padmin> lsmap -all\nSVSA            Physische Position                             Client-Partitions-ID\n--------------- -------------------------------------------- ------------------\nvhost0          U9009.42A.78A1B2C-V1-C3                      0x00000003\n\nVTD                   vtscsi0\nStatus                Verfügbar\nLUN                   0x8100000000000000\nSicherungseinheit     hdisk5\n";
    let captures = read_bytes(text.as_bytes());
    assert!(captures.refused[0].why.contains("German"), "{:?}", captures.refused);
}
