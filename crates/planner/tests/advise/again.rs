//! What comes again day by day, what was reset, and what was left as it was for maintenance.

use super::{Advice, advice, silent, top};
use planner::advise::Severity;

fn log(rows: &str) -> String {
    format!(
        "vios1:/> date\nThu Nov 26 08:00:44 CET 2026\nvios1:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n{rows}"
    )
}

/// Errors of a link at these times, `MMDDhhmm`.
fn links(times: &[&str]) -> String {
    times.iter().map(|at| format!("7BFEEA1F   {at}26 T H fcs2           LINK ERROR\n")).collect()
}

#[test]
fn a_link_that_is_lost_once_a_day_is_told() {
    let daily = ["11260312", "11251840", "11250709", "11242115", "11240204", "11231333"];
    let finding = top(&[("a.txt", &log(&links(&daily)))], "adapter-errors");
    assert_eq!(finding.object, "fcs2 on vios1");
    assert_eq!(finding.title, "the link of fcs2 comes and goes, day by day");
    // Over since two days, one day's trouble, and a few in a week.
    silent(&[(
        "a.txt",
        &log(&links(&["11240204", "11231333", "11222101", "11220301", "11211201"])),
    )]);
    silent(&[(
        "a.txt",
        &log(&links(&["11260312", "11260212", "11260112", "11252340", "11252230"])),
    )]);
    silent(&[("a.txt", &log(&links(&["11260312", "11231333", "11201201"])))]);
}

#[test]
fn an_ethernet_link_that_is_lost_again_within_an_hour_is_told() {
    let down = |times: &[&str]| -> String {
        times
            .iter()
            .map(|at| format!("EC0BCCD4   1126{at}26 T H ent0           ETHERNET DOWN\n"))
            .collect()
    };
    let finding = top(&[("a.txt", &log(&down(&["0758", "0738", "0718"])))], "adapter-errors");
    assert_eq!(finding.title, "the link of ent0 comes and goes");
    // A switch that is restarted takes less time.
    silent(&[("a.txt", &log(&down(&["0758", "0753", "0748"])))]);
}

#[test]
fn errors_of_an_array_controller_are_those_of_its_hardware() {
    let rows = "4B97B439   1126070126 P H sissas0        DISK ARRAY CONTROLLER ERROR\n4B97B439   1126063126 P H sissas0        DISK ARRAY CONTROLLER ERROR\n";
    let finding = top(&[("a.txt", &log(rows))], "adapter-errors");
    assert_eq!(finding.severity, Severity::Critical);
}

fn fcstat(age: u64, requests: u64, failures: u64, lost: u64) -> String {
    format!(
        "# fcstat fcs0\n\nFIBRE CHANNEL STATISTICS REPORT: fcs0\n\nDevice Type: PCIe3 2-Port 16Gb FC Adapter (df1000e21410f103) (adapter/pciex/df1000e21410f10)\nWorld Wide Port Name: 0x10000090FA5C0D10\nPort Speed (supported): 16 GBIT\nPort Speed (running):   16 GBIT\nPort FC ID: 0x021100\nPort Type: Fabric\nAttention Type:   Link Up\n\nSeconds Since Last Reset: {age}\n\nError Frames:  0\nDumped Frames: 0\nLink Failure Count: {failures}\nLoss of Sync Count: {}\nLoss of Signal: 0\nInvalid Tx Word Count: 77\nInvalid CRC Count: {failures}\n\nFC SCSI Adapter Driver Information\n  No DMA Resource Count: 0\n  No Adapter Elements Count: 0\n  No Command Resource Count: {lost}\n\nFC SCSI Traffic Statistics\n  Input Requests:   {requests}\n  Output Requests:  {requests}\n  Control Requests: 5136\n  Input Bytes:  23787277516800\n  Output Bytes: 5986300723200\n\n",
        failures * 3
    )
}

#[test]
fn counters_that_are_younger_further_below_in_a_file_were_reset() {
    let (before, after) =
        (fcstat(18_144_000, 749_347_200, 9, 9120), fcstat(165_600, 6_839_279, 1, 0));
    silent(&[("a.txt", &format!("vios1:/> hostname\nvios1\n{before}{after}"))]);
    // In the other order they grow.
    top(&[("a.txt", &format!("vios1:/> hostname\nvios1\n{after}{before}"))], "fc-link-errors");
}

#[test]
fn a_counter_behind_a_filter_is_whole_in_the_last_line() {
    let one = |age: u64, lost: u64| {
        format!(
            "db1:/ # fcstat fcs0 | grep -E \"Seconds|No \"\nSeconds Since Last Reset: {age}\n  No DMA Resource Count: 0\n  No Adapter Elements Count: 0\n  No Command Resource Count: {lost}\n"
        )
    };
    top(&[("a.txt", &(one(1_000_000, 100_000) + &one(1_000_900, 180_000)))], "fc-virtual-elements");
    silent(&[("a.txt", &(one(1_000_000, 100_000) + &one(1_000_900, 100_000)))]);
}

fn sea(day: u8, host: &str, state: &str, mode: &str, priority: u8) -> String {
    format!(
        "{host}:/home/padmin> date\nThu Nov {day} 11:30:01 CET 2026\n{host}:/home/padmin> entstat -all ent9 | grep -E \"State|Mode|Priority|Control Channel\"\n    Control Channel PVID: 4000\n    State: {state}\n    Bridge Mode: {}\n    High Availability Mode: {mode}\n    Priority: {priority}\n",
        if state == "PRIMARY" { "All" } else { "None" }
    )
}

fn pair(first: &str, mode: &str) -> Advice {
    let other = sea(26, "viosa2", "PRIMARY", "Auto", 2);
    let last = sea(26, "viosa1", "BACKUP", mode, 1);
    advice(&[("viosa1_18.txt", first), ("viosa1_26.txt", &last), ("viosa2_26.txt", &other)])
}

#[test]
fn a_bridge_that_was_left_standing_by_is_told() {
    let days = pair(&sea(19, "viosa1", "BACKUP", "Standby", 1), "Standby");
    let finding = &days.findings[0];
    assert_eq!((finding.rule, finding.severity), ("sea-failover", Severity::Warning));
    assert_eq!(finding.title, "ent9 on viosa1 is set to stand by");
    // Today alone, it may be maintenance.
    for first in [sea(19, "viosa1", "PRIMARY", "Auto", 1), String::from("\n")] {
        assert_eq!(pair(&first, "Standby").findings.len(), 0);
    }
}

#[test]
fn paging_space_that_fills_up_is_told_by_svmon_too() {
    let svmon = |used: &str| {
        format!(
            "vios7:/> ioslevel\n3.1.4.31\nvios7:/> svmon -G -O unit=MB\nUnit: MB\n--------------------------------------------------------------------------------------\n               size       inuse        free         pin     virtual  available   mmode\nmemory      4096.00     4088.11        7.89     2201.11     6903.55      12.10     Ded\npg space    4096.00     {used}\n\n               work        pers        clnt       other\npin         1201.44           0        0.00      999.67\nin use      3901.22           0      186.89\n"
        )
    };
    let finding = top(&[("a.txt", &svmon("3711.44"))], "vios-memory");
    assert_eq!(finding.title, "the paging space of vios7 is 91 % full");
    silent(&[("a.txt", &svmon(" 811.44"))]);
}

#[test]
fn a_vnic_on_one_server_where_others_have_two_is_told() {
    let row = |id: u8, second: &str| {
        format!(
            "lpar_name=web{id},lpar_id={id},slot_num=6,auto_priority_failover=1,\"backing_devices=sriov/vios1/1/1/1/2700401{id}/4.0/4.0/50/100.0/100.0,sriov/{second}/2/2/1/2700801{id}/4.0/4.0/60/100.0/100.0\",\"backing_device_states=sriov/2700401{id}/1/Operational,sriov/2700801{id}/0/Operational\"\n"
        )
    };
    let list = |rows: &[(u8, &str)]| -> String {
        let rows: String = rows.iter().map(|(id, second)| row(*id, second)).collect();
        format!("hscroot@hmc1:~> lshwres -r virtualio --rsubtype vnic -m E1080\n{rows}")
    };
    let finding = top(
        &[("a.txt", &list(&[(1, "vios2"), (2, "vios2"), (3, "vios1")]))],
        "vnic-backing-device",
    );
    assert_eq!(finding.title, "all backing devices of the vNIC of web3 lie on vios1");
    silent(&[("a.txt", &list(&[(1, "vios2"), (2, "vios2"), (3, "vios2")]))]);
    // Where as many are so, it is how they are meant.
    silent(&[("a.txt", &list(&[(1, "vios2"), (3, "vios1")]))]);
}

#[test]
fn a_member_that_is_out_of_sync_beside_one_that_is_in_sync_is_told() {
    let list = |second: &str| {
        format!(
            "vios1:/home/padmin> entstat -all ent10 | grep -E \"ETHERNET STAT|Synchronization\"\nETHERNET STATISTICS (ent10) :\nETHERNET STATISTICS (ent0) :\n\tSynchronization: IN_SYNC\n\tSynchronization: IN_SYNC\nETHERNET STATISTICS (ent1) :\n\tSynchronization: {second}\n\tSynchronization: {second}\n"
        )
    };
    let finding = top(&[("a.txt", &list("OUT_OF_SYNC"))], "net-lacp-partner");
    assert_eq!(finding.object, "ent1 on vios1");
    silent(&[("a.txt", &list("IN_SYNC"))]);
}

#[test]
fn an_internal_drive_is_given_to_nobody_whatever_is_written_on_it() {
    let server = |name: &str| {
        format!(
            "{name}:/ # ioslevel\n3.1.4.31\n{name}:/ # lspath\nEnabled hdisk0 sas0\nEnabled hdisk1 sas0\n{name}:/ # lsattr -El hdisk0\npvid            00fb12c7a1a0c0de0000000000000000 Physical volume identifier False\nqueue_depth     16                               Queue DEPTH                True+\nreserve_policy  single_path                      Reserve Policy             True+\n"
        )
    };
    silent(&[("a.txt", &server("muvio1")), ("b.txt", &server("muvio2"))]);
}
