//! What people write above and before values to say of what they are: a host, a device, a day.

use super::read_bytes;
use planner::capture::{Captures, DiskPaths, Head, PathState};

fn host(head: &Head) -> Option<&str> {
    head.partition.as_ref().map(|read| read.value.as_str())
}

fn device(head: &Head) -> Option<&str> {
    head.device.as_ref().map(|read| read.value.as_str())
}

const PICKED: &str = "Error Frames:  88\nLink Failure Count: 7\nInvalid CRC Count: 120\n";

/// Host, device and CRCs of each `fcstat`.
fn ports(captures: &Captures) -> Vec<(Option<&str>, Option<&str>, Option<u64>)> {
    let one = |one: &'_ planner::capture::Fcstat| one.invalid_crcs.map(|read| read.value);
    captures.fcstats().map(|stat| (host(&stat.head), device(&stat.head), one(stat))).collect()
}

#[test]
fn a_line_above_values_says_of_which_port_they_are() {
    for heading in [
        "lodz1 fcs3",
        "lodz1:fcs3",
        "lodz1: fcs3",
        "== lodz1 fcs3 ==",
        "--- lodz1 / fcs3 ---",
        "fcs3 on lodz1",
        "### fcs3 (lodz1)",
        "[lodz1] fcs3",
        "host lodz1 adapter fcs3",
        "Adapter fcs3, VIOS lodz1:",
        "# lodz1 fcs3",
        "lodz1_fcs3",
        "fcs3@lodz1",
        "2026-11-22 lodz1 fcs3",
    ] {
        let text = format!("{heading}\n{PICKED}{}\n{PICKED}", heading.replace("fcs3", "fcs4"));
        let captures = read_bytes(text.as_bytes());
        let wanted = ["fcs3", "fcs4"].map(|port| (Some("lodz1"), Some(port), Some(120)));
        assert_eq!(ports(&captures), wanted, "{heading}");
    }
    // A name alone says nothing where nothing follows that is of such a device, and a command is no label.
    for text in ["lodz1 fcs3\nis the port in question\n", "fcs3\n\nInventory: done\n"] {
        assert_eq!(read_bytes(text.as_bytes()).reports, [], "{text}");
    }
    let list = "pvid_adapter  ent6  Default virtual adapter to use True\n".repeat(3);
    assert!(read_bytes(list.as_bytes()).reports.iter().all(|one| host(one.head()).is_none()));
}

#[test]
fn a_file_that_is_called_by_its_port_holds_that_ports_values() {
    for name in
        ["lodz1_fcs3.txt", "fcs3-lodz1-20261122.log", "lodz1.fcs3.20261122", "lodz1/fcs3.txt"]
    {
        let mut captures = Captures::new();
        captures.read(name, PICKED.as_bytes(), None);
        assert_eq!(
            captures.fcstats().filter_map(|one| device(&one.head)).collect::<Vec<_>>(),
            ["fcs3"],
            "{name}"
        );
    }
}

#[test]
fn words_before_values_may_stand_in_any_order() {
    for form in [
        "2026-11-@ lodz1 fcs3 Invalid CRC Count: #",
        "2026-11-@;lodz1;fcs3;Invalid CRC Count;#",
        "2026-11-@,lodz1,fcs3,Invalid CRC Count,#",
        "2026-11-@ 08:00:01 lodz1 fcs3 Invalid CRC Count: #",
        "[2026-11-@ 08:00:01] lodz1 fcs3 CRC=#",
        "lodz1 2026-11-@ fcs3 Invalid CRC Count: #",
        "@.11.2026 lodz1 fcs3 Invalid CRC Count: #",
        "202611@ lodz1:fcs3: Invalid CRC Count: #",
        "lodz1 fcs3 2026-11-@ Invalid CRC Count #",
    ] {
        let rows = [("20", "120"), ("21", "340"), ("22", "900")];
        let row = |(day, crcs): (&str, &str)| form.replace('@', day).replace('#', crcs) + "\n";
        let text: String = rows.into_iter().map(row).collect();
        let captures = read_bytes(text.as_bytes());
        let wanted = [120, 340, 900].map(|crcs| (Some("lodz1"), Some("fcs3"), Some(crcs)));
        assert_eq!(ports(&captures), wanted, "{form}");
        let mut times = captures.fcstats().map(|one| one.head.taken.as_ref().unwrap().seconds);
        let (first, second) = (times.next().unwrap(), times.next().unwrap());
        assert_eq!(second - first, 86_400, "{form}");
    }
    // The next value of the same name is one of a later time, though no line tells it.
    let text = "lodz1 fcs3 Invalid CRC Count: 5\nlodz1 fcs3 Invalid CRC Count: 9\n";
    assert_eq!(read_bytes(text.as_bytes()).fcstats().count(), 2);
}

#[test]
fn attributes_behind_a_host_and_a_device() {
    for form in ["@ # ", "@: # ", "@:#:", "@;#;", "@ #: "] {
        let row = |disk: &str, row: &str| form.replace('@', "db7").replace('#', disk) + row + "\n";
        let sign = if form.ends_with(';') { ";" } else { " " };
        let text: String = ["hdisk1", "hdisk2"]
            .iter()
            .flat_map(|disk| {
                [
                    row(disk, &format!("hcheck_interval{sign}0")),
                    row(disk, &format!("queue_depth{sign}20")),
                ]
            })
            .collect();
        let captures = read_bytes(text.as_bytes());
        let found: Vec<_> = captures
            .lsattrs()
            .map(|one| {
                (
                    host(&one.head),
                    device(&one.head),
                    one.attributes.len(),
                    &*one.attributes[1].value,
                )
            })
            .collect();
        let wanted = ["hdisk1", "hdisk2"].map(|disk| (Some("db7"), Some(disk), 2, "20"));
        assert_eq!(found, wanted, "{form}");
    }
    // What is assigned in a program or in settings is no capture.
    let text =
        "wrong = \"fscsi0 fc_err_recov delayed_fail\"\nright = \"fscsi0 fc_err_recov fast_fail\"\n";
    assert_eq!(read_bytes(text.as_bytes()).reports, []);
}

#[test]
fn tables_of_values_are_read_row_by_row() {
    let tables = [
        "date        host   port  Error Frames  Invalid CRC Count  Link Failure Count\n2026-11-22  lodz1  fcs3  12  120  3\n2026-11-23  lodz1  fcs3  19  340  3\n",
        "date;host;port;Invalid CRC Count\n2026-11-22;lodz1;fcs3;120\n2026-11-23;lodz1;fcs3;340\n",
        "| date | host | adapter | crc errors |\n|---|---|---|---|\n| 2026-11-22 | lodz1 | fcs3 | 120 |\n| 2026-11-23 | lodz1 | fcs3 | 340 |\n",
    ];
    for text in tables {
        let captures = read_bytes(text.as_bytes());
        let wanted = [120, 340].map(|crcs| (Some("lodz1"), Some("fcs3"), Some(crcs)));
        assert_eq!(ports(&captures), wanted, "{text}");
        // Each value has the line of its row.
        let last = captures.fcstats().last().unwrap();
        let line = u32::try_from(text.lines().count()).unwrap();
        assert_eq!(last.invalid_crcs.unwrap().at.line, line, "{text}");
        assert_eq!(captures.files[0].lines, line);
    }
    let text = "host  disk    queue_depth  hcheck_interval\ndb7   hdisk1  20           0\n";
    let captures = read_bytes(text.as_bytes());
    let list = captures.lsattrs().next().unwrap();
    assert_eq!(
        (host(&list.head), device(&list.head), list.attributes.len()),
        (Some("db7"), Some("hdisk1"), 2)
    );
}

fn down(list: &DiskPaths) -> Vec<(&str, &str)> {
    let failed = list.paths.iter().filter(|path| path.state == PathState::Failed);
    failed.map(|path| (path.disk.as_str(), path.parent.as_deref().unwrap())).collect()
}

#[test]
fn columns_of_paths_may_stand_in_any_order() {
    for form in [
        "$d $s $p",
        "$d $p $s",
        "$p $d $s",
        "$d $s $p 500507680b31e4c1,0",
        "db7 $d $s $p",
        "db7 $s $d $p",
        "db7: $d $p $s",
        "db7,$d,$p,$s",
        "2026-11-25 db7 $s $d $p",
        "| db7 | $d | $p | $s |",
    ] {
        let row = |disk: &str, parent: &str, state: &str| {
            form.replace("$d", disk).replace("$p", parent).replace("$s", state) + "\n"
        };
        let text = row("hdisk1", "fscsi0", "Enabled") + &row("hdisk1", "fscsi1", "Failed");
        let captures = read_bytes(text.as_bytes());
        let list = captures.disk_paths_all().next().unwrap_or_else(|| panic!("{form}"));
        assert_eq!(list.paths.len(), 2, "{form}");
        assert_eq!(down(list), [("hdisk1", "fscsi1")], "{form}");
        if form.contains("db7") {
            assert_eq!(host(&list.head), Some("db7"), "{form}");
        }
    }
    // When it was asked is no column of what was asked for.
    let text = "lspath -F 'name status parent connection'   2026-11-25 09:15\n\ndb7: hdisk0 Enabled fscsi0 500507680b31e4c0,0\ndb7: hdisk0 Missing fscsi1 500507680b35e4c1,0\n";
    let captures = read_bytes(text.as_bytes());
    let list = captures.disk_paths_all().next().unwrap();
    assert_eq!(list.paths[1].state, PathState::Missing);
    assert_eq!(list.paths[1].storage_port(), Some("500507680b35e4c1"));
}

#[test]
fn a_sentence_above_an_output_names_its_command_and_host() {
    let rows = "Enabled hdisk0 fscsi0\nFailed hdisk0 fscsi1\n";
    for heading in [
        "Output of \"lspath\" from db7:",
        "db7, 24.11.2026 08:00, lspath:",
        "Here is lspath of db7 as of this morning:",
        "-- lspath (db7) --",
        "**db7** `lspath`",
        "+ ssh db7 lspath",
        "== db7 ==\n$ lspath",
        "## db7",
        "System: db7\nReported by: J. Doe\nPriority: high\n\nlspath",
    ] {
        let captures = read_bytes(format!("{heading}\n{rows}").as_bytes());
        let list = captures.disk_paths_all().next().unwrap_or_else(|| panic!("{heading}"));
        assert_eq!(host(&list.head), Some("db7"), "{heading}");
    }
    let text = "vios4: vmstat 5 3\nkthr memory\n";
    assert_eq!(read_bytes(text.as_bytes()).reports, []);
}

#[test]
fn values_of_a_host_each_below_an_indent_or_behind_the_name_of_a_file() {
    let rows = ["lodz1: FIBRE CHANNEL STATISTICS REPORT: fcs3", "lodz1: Invalid CRC Count: 120"];
    let indented: String = rows.iter().map(|row| format!("    {row}\n")).collect();
    assert_eq!(ports(&read_bytes(indented.as_bytes())), [(Some("lodz1"), Some("fcs3"), Some(120))]);
    // A name may head the block, or a command that asks another host.
    for heading in ["### lodz1 ###", "$ ssh lodz1 fcstat fcs3"] {
        let text = format!(
            "As asked:\n\n    {heading}\n    FIBRE CHANNEL STATISTICS REPORT: fcs3\n    Invalid CRC Count: 120\n"
        );
        let captures = read_bytes(text.as_bytes());
        assert_eq!(ports(&captures), [(Some("lodz1"), Some("fcs3"), Some(120))], "{heading}");
    }
    let quoted = "> $ ansible prod -b -a lspath\n> db7 | CHANGED | rc=0 >>\n> Enabled hdisk0 fscsi0\n> Failed hdisk0 fscsi1\n";
    let captures = read_bytes(quoted.as_bytes());
    assert_eq!(host(captures.reports[0].head()), Some("db7"));
    let text =
        "lodz1.fcstat:FIBRE CHANNEL STATISTICS REPORT: fcs3\nlodz1.fcstat:Invalid CRC Count: 120\n";
    assert_eq!(ports(&read_bytes(text.as_bytes())), [(Some("lodz1"), Some("fcs3"), Some(120))]);
}
