//! `lsattr`, `lsdev`, `lsmap`.

use planner::capture::{Allowed, Attribute, Captures, Settable};

use super::{assert_whole, at, only, read, value};

fn attribute<'a>(captures: &'a Captures, device: &'a str, name: &str) -> &'a Attribute {
    captures
        .attributes(None, device)
        .find(|attribute| attribute.name == name)
        .expect("the attribute is there")
}

/// With headings `lsattr` begins as `lsdev -attr` does, which a VIOS alone has.
#[test]
fn attributes_with_headings_are_of_the_device_asked_for() {
    let list = "attribute       value        description        user_settable\n\n\
                queue_depth     32           Queue DEPTH        True+\n\
                reserve_policy  no_reserve   Reserve Policy     True+\n";
    let text =
        format!("app1:/ # lsattr -EHl hdisk1\n{list}app1:/ # lsattr -H -E -l hdisk2\n{list}");
    let mut captures = Captures::new();
    captures.read("a.txt", text.as_bytes(), None);
    let of =
        |report: &planner::capture::Lsattr| (value(&report.head.device), report.attributes.len());
    let read: Vec<_> = captures.lsattrs().map(of).collect();
    assert_eq!(read, [("hdisk1".to_owned(), 2), ("hdisk2".to_owned(), 2)]);
    assert_eq!(captures.lsdev_attrs().count(), 0);
}

#[test]
fn attributes_with_empty_values() {
    let captures = read("lsattr");
    assert_whole(&captures);
    let devices: Vec<String> =
        captures.lsattrs().map(|report| value(&report.head.device)).collect();
    assert_eq!(devices, ["fcs0", "hdisk4", "fscsi0"]);
    assert!(captures.lsattrs().all(|report| value(&report.head.partition) == "payroll"));
    assert_eq!(
        captures.lsattrs().map(|report| report.attributes.len()).collect::<Vec<_>>(),
        [9, 2, 4]
    );
    let elements = attribute(&captures, "fcs0", "num_cmd_elems");
    assert_eq!((elements.number(), elements.at.line), (Some(500), 8));
    assert_eq!(elements.description, "Maximum Number of COMMAND Elements");
    assert_eq!(elements.settable, Some(Settable::Yes));
    let level = attribute(&captures, "fcs0", "bus_intr_lvl");
    assert_eq!((level.value.as_str(), level.description.as_str()), ("", "Bus interrupt level"));
    assert_eq!(level.settable, Some(Settable::No));
    assert_eq!(attribute(&captures, "fcs0", "max_xfer_size").number(), Some(0x20_0000));
    assert_eq!(attribute(&captures, "fcs0", "tme").settable, Some(Settable::Live));
    assert_eq!(attribute(&captures, "hdisk4", "queue_depth").number(), Some(20));
    let policy = attribute(&captures, "hdisk4", "reserve_policy");
    assert_eq!(
        (policy.value.as_str(), policy.description.as_str()),
        ("no_reserve", "Reserve Policy")
    );
    assert_eq!(attribute(&captures, "fscsi0", "fc_err_recov").value, "fast_fail");
    assert_eq!(captures.attributes(Some("elsewhere"), "fcs0").count(), 0);
}

#[test]
fn attributes_in_eighty_columns() {
    let captures = read("lsattr-wrapped");
    assert_whole(&captures);
    let report = only(captures.lsattrs());
    let found: Vec<(&str, &str)> = report
        .attributes
        .iter()
        .map(|attribute| (attribute.name.as_str(), attribute.value.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("PCM", "PCM/friend/fcpother"),
            ("algorithm", "fail_over"),
            ("hcheck_cmd", "test_unit_rdy"),
            ("location", ""),
            ("lun_id", "0x3000000000000"),
            ("queue_depth", "32"),
            ("unique_id", "332136005076810820C0A9800000000000C2304214503IBMfcp"),
        ]
    );
    let descriptions: Vec<&str> =
        report.attributes.iter().map(|attribute| attribute.description.as_str()).collect();
    assert_eq!(descriptions[0], "Path Control Module");
    assert_eq!(descriptions[3], "Location Label");
    assert_eq!(descriptions[6], "Unique device identifier");
    assert_eq!(report.attributes[5].at.line, 12);
}

#[test]
fn values_that_are_allowed() {
    let captures = read("lsattr-range");
    assert_whole(&captures);
    let reports: Vec<_> = captures.lsattr_ranges().collect();
    let [elements, transfer, queues] = reports[..] else { panic!("three reports") };
    assert_eq!(
        (value(&elements.head.device).as_str(), elements.attribute.as_deref()),
        ("fcs0", Some("num_cmd_elems"))
    );
    assert_eq!(elements.max(), Some(4096));
    let Allowed::Span { at, low, high, step } = elements.allowed[0] else { panic!("a span") };
    assert_eq!((at.line, low, high, step), (2, 20, 4096, 1));
    assert_eq!(transfer.allowed.len(), 3);
    assert!(matches!(&transfer.allowed[2], Allowed::Value { value, .. } if value == "0x400000"));
    assert_eq!(
        (value(&queues.head.device).as_str(), queues.attribute.as_deref()),
        ("vfchost3", Some("num_per_range"))
    );
    assert_eq!(value(&queues.head.partition), "viosa1");
    assert_eq!(queues.max(), Some(64));
}

#[test]
fn attributes_of_a_server() {
    let captures = read("lsdev-attr");
    assert_whole(&captures);
    assert_eq!(
        captures.lsdev_attrs().map(|report| report.attributes.len()).collect::<Vec<_>>(),
        [6, 1, 3]
    );
    assert_eq!(attribute(&captures, "fcs2", "num_cmd_elems").number(), Some(2048));
    assert_eq!(attribute(&captures, "fcs2", "intr_msi_1").value, "");
    assert_eq!(attribute(&captures, "fcs2", "io_dma").description, "IO_DMA");
    let queues = attribute(&captures, "vfchost3", "num_per_range");
    assert_eq!((queues.value.as_str(), queues.at.line, queues.settable), ("0", 13, None));
    assert_eq!(attribute(&captures, "viosnpiv0", "num_per_range").number(), Some(8));
    assert_eq!(attribute(&captures, "viosnpiv0", "bufs_per_cmd").number(), Some(10));
}

#[test]
fn virtual_scsi() {
    let captures = read("lsmap-all");
    assert_whole(&captures);
    let report = only(captures.lsmap_scsis());
    let [first, second] = &report.adapters[..] else { panic!("two adapters") };
    assert_eq!((first.name.as_str(), first.at.line), ("vhost0", 4));
    assert_eq!(value(&first.physloc), "U9009.42A.78A1B2C-V1-C12");
    assert_eq!(value(&first.client_partition), 14);
    let [disk, lu] = &first.devices[..] else { panic!("two devices") };
    assert_eq!((disk.name.as_str(), value(&disk.status).as_str()), ("vtscsi0", "Available"));
    assert_eq!(value(&disk.lun), 0x8100_0000_0000_0000);
    assert_eq!(at(&disk.backing), ("hdisk7".to_owned(), 9));
    assert!(!value(&disk.mirrored));
    assert_eq!(value(&lu.backing), "lu_web7.0a41c7e2b5d94cf38812e4f7b8c2d001");
    assert_eq!((lu.physloc.as_ref(), lu.mirrored), (None, None));
    assert_eq!((value(&second.client_partition), second.devices.len()), (0, 0));
}

#[test]
fn maps_made_for_scripts() {
    let captures = read("lsmap-fmt");
    assert_whole(&captures);
    assert!(captures.reports.iter().all(|report| value(&report.head().partition) == "viosa1"));
    let scsi = only(captures.lsmap_scsis());
    assert_eq!(scsi.adapters.len(), 2);
    let devices = &scsi.adapters[0].devices;
    assert_eq!(
        devices.iter().map(|device| value(&device.backing)).collect::<Vec<_>>(),
        ["hdisk7", "hdisk8"]
    );
    assert_eq!(
        (value(&devices[1].lun), devices[1].physloc.is_none()),
        (0x8200_0000_0000_0000, true)
    );
    assert!(scsi.adapters[1].devices.is_empty());
    let npiv = only(captures.lsmap_npivs());
    let adapter = &npiv.adapters[0];
    assert_eq!((value(&adapter.client_id), value(&adapter.client_name).as_str()), (5, "payroll"));
    assert_eq!(
        (value(&adapter.port).as_str(), value(&adapter.ports_logged_in), value(&adapter.flags)),
        ("fcs0", 6, 0xa)
    );
    assert_eq!(value(&adapter.client_drc), "U9009.42A.78A1B2C-V5-C20");
    let net = only(captures.lsmap_nets());
    assert_eq!(
        (value(&net.adapters[0].sea).as_str(), value(&net.adapters[0].backing).as_str()),
        ("ent12", "ent0")
    );
}

#[test]
fn virtual_fibre_channel() {
    let captures = read("lsmap-npiv");
    assert_whole(&captures);
    let report = only(captures.lsmap_npivs());
    let [first, second, third] = &report.adapters[..] else { panic!("three adapters") };
    assert_eq!(
        (first.name.as_str(), value(&first.client_id), value(&first.client_os).as_str()),
        ("vfchost0", 5, "AIX")
    );
    assert_eq!(at(&first.status), ("LOGGED_IN".to_owned(), 6));
    assert_eq!(value(&first.port_physloc), "U78D3.001.WZS0ABC-P1-C4-T1");
    assert_eq!((value(&first.ports_logged_in), value(&first.flags)), (6, 0xa));
    assert_eq!(first.flag_names, ["LOGGED_IN", "STRIP_MERGE"]);
    assert_eq!(
        (value(&first.client_adapter).as_str(), value(&first.client_drc).as_str()),
        ("fcs0", "U9009.42A.78A1B2C-V5-C20")
    );
    assert_eq!(
        (value(&second.client_name).as_str(), value(&second.client_os).as_str()),
        ("as400prod", "IBM i")
    );
    assert_eq!((second.client_adapter.as_ref(), second.client_drc.as_ref()), (None, None));
    assert_eq!(
        (value(&third.client_id), third.client_name.as_ref(), third.port.as_ref()),
        (7, None, None)
    );
    assert_eq!(third.flag_names, ["NOT_MAPPED", "NOT_CONNECTED"]);
}

#[test]
fn virtual_ethernet() {
    let captures = read("lsmap-net");
    assert_whole(&captures);
    let report = only(captures.lsmap_nets());
    let [bridged, alone] = &report.adapters[..] else { panic!("two adapters") };
    assert_eq!((bridged.name.as_str(), at(&bridged.sea)), ("ent8", ("ent12".to_owned(), 6)));
    assert_eq!(
        (value(&bridged.backing).as_str(), value(&bridged.status).as_str()),
        ("ent0", "Available")
    );
    assert_eq!(value(&bridged.backing_physloc), "U78D3.001.WZS0ABC-P1-C7-T1");
    assert_eq!((alone.name.as_str(), alone.sea.as_ref()), ("ent9", None));
}

/// Flags have commas of their own between their names, also where a comma is the delimiter.
#[test]
fn npiv_with_commas_between_the_fields_and_in_the_flags() {
    let rows = "vfchost3,U9080.M9S.78C0FFE-V1-C43,12,db2,AIX,LOGGED_IN,fcs1,U78D2.001.RCH0042-P1-C4-T2,5,a<LOGGED_IN,STRIP_MERGE>,fcs1,U9080.M9S.78C0FFE-V12-C43\n";
    for typed in ["vio1:/home/padmin $ lsmap -all -npiv -fmt ,\n", ""] {
        let captures = super::read_bytes(format!("{typed}{rows}").as_bytes());
        let report = captures.lsmap_npivs().next().unwrap();
        let [map] = &report.adapters[..] else { panic!("{typed}") };
        assert_eq!(map.flag_names, ["LOGGED_IN", "STRIP_MERGE"]);
        assert_eq!(map.client_adapter.as_ref().unwrap().value, "fcs1");
        assert!(report.head.unread.is_empty());
    }
}
