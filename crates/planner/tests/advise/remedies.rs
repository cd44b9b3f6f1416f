//! What is advised fits the place and the thing: each system its own command, and no remedy for something else.

use planner::advise::{Finding, Severity};

use super::{advice, lsattr, silent, top};

/// A VIOS of the machine whose ports take so much, with the clients on its `fcs0` and their adapters.
pub(super) fn server(vios: u32, transfer: &str, clients: &[(&str, u32)]) -> String {
    let mut text = format!("$ hostname\nlyra{vios}\n$ ioslevel\n3.1.4.31\n$ lsmap -all -npiv\n");
    for (at, (name, id)) in clients.iter().enumerate() {
        text += &format!(
            "Name          Physloc                            ClntID ClntName       ClntOS\n------------- ---------------------------------- ------ -------------- -------\nvfchost{at}      U9009.42A.78F11AB-V{vios}-C4{at}            {id:>6} {name:<14} AIX\n\nStatus:LOGGED_IN\nFC name:fcs0                    FC loc code:U78D3.001.WZS0F{vios}C-P1-C4-T1\nPorts logged in:3\nFlags:a<LOGGED_IN,STRIP_MERGE>\nVFC client name:fcs{adapter}            VFC client DRC:U9009.42A.78F11AB-V{id}-C1{vios}\n\n",
            adapter = vios - 1,
        );
    }
    text + &format!(
        "$ lsdev -dev fcs0 -attr\nattribute       value      description                         user_settable\n\nmax_xfer_size   {transfer}   Maximum Transfer Size               True\n"
    )
}

fn client(name: &str, transfer: &str) -> String {
    [0, 1]
        .iter()
        .map(|adapter| lsattr(name, &format!("fcs{adapter}"), &[("max_xfer_size", transfer)]))
        .collect()
}

fn commands(files: &[(&str, &str)], rule: &str) -> Vec<(String, String)> {
    let of = |one: &Finding| Some((one.place.clone()?, one.command.clone()?));
    let mut all: Vec<_> = advice(files)
        .findings
        .iter()
        .inspect(|one| assert_eq!(one.rule, rule, "{one:#?}"))
        .filter_map(of)
        .collect();
    all.sort();
    all
}

/// Two servers' ports have one name: each gets its command, and gets it once however many clients ask for it.
#[test]
fn each_server_gets_its_own_command() {
    let names = [("altair", 3), ("deneb", 4)];
    let one = server(1, "0x200000", &names);
    let two = server(2, "0x200000", &names);
    let (altair, deneb) = (client("altair", "0x400000"), client("deneb", "0x400000"));
    let files = [("1", &*one), ("2", &*two), ("a", &*altair), ("b", &*deneb)];
    let set = "chdev -dev fcs0 -attr max_xfer_size=0x400000 -perm";
    assert_eq!(
        commands(&files, "fc-max-xfer-mismatch"),
        [
            ("as padmin on lyra1".to_owned(), set.to_owned()),
            ("as padmin on lyra2".to_owned(), set.to_owned())
        ]
    );
}

/// Where one client differs from all others and from all ports, that client is changed.
#[test]
fn the_one_client_that_differs_is_the_one_that_is_changed() {
    let names = [("altair", 3), ("deneb", 4)];
    let one = server(1, "0x200000", &names);
    let two = server(2, "0x200000", &names);
    let (altair, deneb) = (client("altair", "0x400000"), client("deneb", "0x100000"));
    let files = [("1", &*one), ("2", &*two), ("a", &*altair), ("b", &*deneb)];
    let all = commands(&files, "fc-max-xfer-mismatch");
    let command = |adapter: u32| {
        (
            "as root on altair".to_owned(),
            format!("chdev -l fcs{adapter} -a max_xfer_size=0x200000 -P"),
        )
    };
    assert_eq!(all, [command(0), command(1)]);
}

/// Fast failure is for ports at a switch.
#[test]
fn a_port_at_a_loop_or_without_a_cable_keeps_its_error_recovery() {
    let fscsi = |attach: &str| {
        lsattr(
            "altair",
            "fscsi0",
            &[("attach", attach), ("dyntrk", "no"), ("fc_err_recov", "delayed_fail")],
        )
    };
    silent(&[("a", &fscsi("al"))]);
    silent(&[("a", &fscsi("none"))]);
    top(&[("a", &fscsi("switch"))], "fc-error-recovery");
}

/// What a filter left of a list says nothing of what it took away.
#[test]
fn a_list_that_was_cut_does_not_tell_which_paths_are_left() {
    let list = |command: &str| {
        format!(
            "altair# hostname\naltair\naltair# {command}\nFailed  hdisk2  fscsi3\nFailed  hdisk3  fscsi3\n"
        )
    };
    for cut in [
        "lspath | grep -v Enabled",
        "lspath -s failed",
        "lspath|awk '/Failed/'",
        "date; lspath | grep -v Enabled",
        "lspath | sort | head -2",
    ] {
        let files = [("a", &*list(cut))];
        let finding = top(&files, "disk-paths-failed");
        let said = finding.reasoning.join(" ");
        assert_eq!(finding.title, "2 paths of altair are down", "{cut}");
        assert!(
            !said.contains("No path is left") && said.contains("cut by its command"),
            "{cut}: {said}"
        );
        let asked = advice(&files).not_checked;
        assert!(asked.iter().any(|not| not.capture == "lspath on altair, whole"), "{cut}");
    }
    for whole in
        ["lspath", "lspath | more", "lspath; errpt | head -5", "/usr/sbin/lspath -l hdisk2 | sort"]
    {
        let finding = top(&[("a", &list(whole))], "disk-paths-failed");
        assert_eq!(finding.title, "2 of 2 paths of altair are down", "{whole}");
        assert!(
            finding.reasoning.join(" ").contains("No path is left to hdisk2, hdisk3"),
            "{whole}"
        );
    }
    // One disk of which the filter left one path.
    let rows = "Enabled hdisk1 fscsi0\nEnabled hdisk1 fscsi1\nEnabled hdisk2 fscsi0\n";
    silent(&[("a", &format!("altair# lspath | head -3\n{rows}"))]);
    top(&[("a", &format!("altair# lspath\n{rows}"))], "disk-single-path");
}

/// A health check that is off on a disk with several ways gets its command, before a path has failed.
#[test]
fn a_health_check_that_is_off_gets_its_command() {
    let disk = lsattr("altair", "hdisk0", &[("hcheck_interval", "0"), ("queue_depth", "8")]);
    let paths = "altair:/> lspath\nEnabled hdisk0 vscsi0\nEnabled hdisk0 vscsi1\n";
    let finding = top(&[("a", &(disk.clone() + paths))], "disk-health-check");
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.command.as_deref(), Some("chdev -l hdisk0 -a hcheck_interval=60 -P"));
    silent(&[("a", &(disk + "altair:/> lspath\nEnabled hdisk0 vscsi0\n"))]);
}

/// A drive of the machine is no LUN: no array is behind it, and no second server sees it.
#[test]
fn a_drive_of_the_machine_is_no_lun() {
    let log = |disk: &str| {
        let entry = |hour: u32| {
            format!("DCB47997   06101{hour}4225 T H {disk}         DISK OPERATION ERROR\n")
        };
        let entries: String = (0..6).rev().map(entry).collect();
        format!(
            "lyra1:/> date\nTue Jun 10 16:14:07 CEST 2025\nlyra1:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n{entries}"
        )
    };
    let with = |paths: &str| log("hdisk1") + paths;
    let drive = top(&[("a", &with("lyra1:/> lspath\nEnabled hdisk1 sas0\n"))], "disk-errors");
    assert!(drive.effect.starts_with("Replace the drive"), "{}", drive.effect);
    let lscfg = "lyra1:/> lscfg -vl hdisk1\n  hdisk1           U78D3.001.WZS0ABC-P2-D3  SAS Disk Drive (300000 MB)\n";
    let drive = top(&[("a", &with(lscfg))], "disk-errors");
    assert!(drive.effect.starts_with("Replace the drive"), "{}", drive.effect);
    let lun = top(&[("a", &with("lyra1:/> lspath\nEnabled hdisk1 fscsi0\n"))], "disk-errors");
    assert!(lun.effect.starts_with("Ask the storage side"), "{}", lun.effect);
    let unknown = top(&[("a", &log("hdisk1"))], "disk-errors");
    assert!(unknown.effect.contains("lscfg -vl hdisk1"), "{}", unknown.effect);
}

/// Of a server with one drive in it, which a client has.
#[test]
fn a_drive_of_the_machine_may_be_reserved() {
    let vios = |parent: &str| {
        format!(
            "$ hostname\nlyra1\n$ ioslevel\n3.1.4.31\n$ lsmap -all\nSVSA            Physloc                                      Client Partition ID\n--------------- -------------------------------------------- ------------------\nvhost0          U9009.42A.78F11AB-V1-C12                     0x00000005\n\nVTD                   v1\nStatus                Available\nLUN                   0x8100000000000000\nBacking device        hdisk2\nPhysloc               U78D3.001.WZS0F1C-P1-T9-LFE0100-L0\nMirrored              false\n\n$ lspath\nEnabled hdisk2 {parent}\n$ lsdev -dev hdisk2 -attr\nattribute       value       description     user_settable\n\nreserve_policy  single_path Reserve Policy  True\n"
        )
    };
    silent(&[("a", &vios("sas0"))]);
    top(&[("a", &vios("fscsi0"))], "disk-reserve-policy");
}

/// Of an aggregation whose last link is gone nothing carries anything.
#[test]
fn of_an_aggregation_without_links_nothing_is_left() {
    let member = |name: &str, mac: u32, link: &str| {
        format!(
            "ETHERNET STATISTICS ({name}) :\nDevice Type: PCIe3 4-Port 10GbE SR Adapter\nHardware Address: 98:be:94:61:22:0{mac}\nElapsed Time: 21 days 2 hours 11 minutes 8 seconds\n\nPackets: 88120331                             Packets: 99120331\n\nGeneral Statistics:\n-------------------\nAdapter Reset Count: 0\nDriver Flags: Up Broadcast Running\n\nPCIe3 4-Port 10GbE SR Adapter Specific Statistics:\n--------------------------------------------------\nLink Status: {link}\nMedia Speed Running: {speed}\n\n",
            speed = if link == "Up" { "10 Gbps Full Duplex" } else { "Unknown" }
        )
    };
    let all = |one: &str, two: &str| {
        format!(
            "lyra1:/> entstat -d ent6\nETHERNET STATISTICS (ent6) :\nDevice Type: IEEE 802.3ad Link Aggregation\nHardware Address: 98:be:94:61:22:00\nElapsed Time: 21 days 2 hours 11 minutes 8 seconds\n\nPackets: 176240662                            Packets: 198240662\n\nStatistics for every adapter in the IEEE 802.3ad Link Aggregation:\n------------------------------------------------------------------\n\nNumber of adapters: 2\nOperating mode: Standard mode (IEEE 802.3ad)\nHash mode: Source and destination TCP/UDP ports\n\n{}{}",
            member("ent0", 1, one),
            member("ent4", 2, two)
        )
    };
    let said = |text: &str| top(&[("a", text)], "net-link-down").reasoning.join(" ");
    let both = said(&all("Down", "Down"));
    assert!(both.contains("nothing goes over ent6") && !both.contains("what is left"), "{both}");
    let one = said(&all("Up", "Down"));
    assert!(one.contains("what is left of the aggregation"), "{one}");
}

/// The speed of a server's port is no measure of a client's virtual adapter.
#[test]
fn a_ports_speed_is_compared_with_ports() {
    let port = |host: &str, device: &str, kind: &str, wwpn: &str, running: u32| {
        format!(
            "{host}:/> fcstat {device}\nFIBRE CHANNEL STATISTICS REPORT: {device}\n\nDevice Type: {kind}\nWorld Wide Port Name: {wwpn}\n\nPort Speed (supported): 16 GBIT\nPort Speed (running): {running} GBIT\nPort FC ID: 0x0b0{last}00\n\nSeconds Since Last Reset: 884211\n\n",
            last = &wwpn[17..18]
        )
    };
    let real = "PCIe3 4-Port 16Gb FC Adapter (df1000e314101406)";
    let slow = port("lyra1", "fcs1", real, "0x10000090FA6E2B01", 8);
    let quick = port("lyra1", "fcs2", real, "0x10000090FA6E2B02", 16);
    let client = "altair:/> lscfg -l fcs0\n  fcs0             U9009.42A.78F11AB-V5-C10-T1  Virtual Fibre Channel Client Adapter\n".to_owned()
        + &port("altair", "fcs0", "Virtual Fibre Channel Client Adapter (adapter/vdevice/IBM,vfc-client)", "0xC05076081A2B0003", 16);
    let place = "lyra1:/> lsnports\nname             physloc                        fabric tports aports swwpns  awwpns\nfcs1             U78D3.001.WZS0F1C-P1-C4-T2          1     64     62   2048    2040\n$ lsmap -all -npiv\nName          Physloc                            ClntID ClntName       ClntOS\n------------- ---------------------------------- ------ -------------- -------\nvfchost0      U9009.42A.78F11AB-V1-C40                5 altair         AIX\n\nStatus:LOGGED_IN\nFC name:fcs1                    FC loc code:U78D3.001.WZS0F1C-P1-C4-T2\nPorts logged in:3\nFlags:a<LOGGED_IN,STRIP_MERGE>\nVFC client name:fcs0            VFC client DRC:U9009.42A.78F11AB-V5-C10\n\n";
    let alone = place.to_owned() + &slow;
    silent(&[("1", &alone), ("a", &client)]);
    let both = alone + &quick;
    let finding = top(&[("1", &both), ("a", &client)], "fc-speed");
    assert!(finding.title.contains("where fcs2 runs at 16"), "{}", finding.title);
}
