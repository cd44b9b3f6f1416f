//! What an administrator meets on ordinary days, and what a report of one number alone does not show.

use super::disks::{Disk, QUICK, pool, pv_list};
use super::{silent, timed, top};
use planner::advise::{Severity, advise};
use planner::facts::Facts;

/// A port that has received so many packets and lost so many of them.
fn port(hours: u64, packets: u64, lost: u64) -> String {
    format!(
        "linz1:/> entstat -d ent2
ETHERNET STATISTICS (ent2) :
Device Type: PCIe3 2-Port 10GbE SR Adapter
Hardware Address: 00:0a:f7:31:22:c0
Elapsed Time: 3 days {hours} hours 0 minutes 0 seconds

Transmit Statistics:                          Receive Statistics:
--------------------                          -------------------
Packets: 700100{hours}                             Packets: {packets}
Bytes: 4410230012                             Bytes: 99211204410
Max Collision Errors: 0                       No Resource Errors: {lost}

PCIe3 2-Port 10GbE SR Adapter Specific Statistics:
--------------------------------------------------
Link Status: Up
Media Speed Running: 10 Gbps Full Duplex
"
    )
}

/// A small share of many packets is many packets a second; a smaller one, or of few packets, is noise.
#[test]
fn packets_lost_are_counted_by_the_second_too() {
    let found = |clocks: bool, packets: u64, lost: u64| {
        let (one, two) = (port(1, 5_000_000, 300), port(2, 5_000_000 + packets, 300 + lost));
        let at = if clocks { [0, 3600] } else { [7, 7] };
        let captures = timed(&[("a.txt", &one, at[0]), ("b.txt", &two, at[1])]);
        let found = advise(&captures, &Facts::builtin()).findings;
        found.first().map(|one| (one.rule, one.severity))
    };
    let told = Some(("net-receive-loss", Severity::Warning));
    // 0.03 %, 83 a second; by the ages of the counters where the clocks say nothing.
    assert_eq!(found(true, 1_000_000_000, 300_000), told);
    assert_eq!(found(false, 1_000_000_000, 300_000), told);
    // 0.03 % of a thousandth, and 0.005 % of as many.
    assert_eq!(found(true, 1_000_000, 300), None);
    assert_eq!(found(true, 1_000_000_000, 50_000), None);
    // 0.01 % over a day, whose bursts a second does not show.
    let day = |lost: u64| {
        let one = port(1, 5_000_000, 300);
        let two = port(1, 415_000_000, 300 + lost).replace("3 days", "4 days");
        let captures = timed(&[("a.txt", &one, 0), ("b.txt", &two, 86_400)]);
        let found = advise(&captures, &Facts::builtin()).findings;
        found.first().map(|one| (one.rule, one.severity))
    };
    assert_eq!(day(47_053), told);
    assert_eq!(day(20_000), None);
}

/// The mean of all requests hides slow writes behind many fast reads.
#[test]
fn one_direction_alone_can_be_slow() {
    let one_way = |what: &str, per_second: f64| {
        let text = Disk { tps: 900.0, service: 0.5, ..QUICK }.text();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let at = lines.iter().position(|line| line.trim_start().starts_with(what)).unwrap() + 1;
        lines[at] =
            format!("     {per_second:.1}     36.5      0.2    210.4           0          0");
        lines.join("\n") + "\n"
    };
    let finding = top(&[("a.txt", &one_way("write:", 120.0))], "disk-slow");
    let said = finding.reasoning.join(" ");
    assert!(said.contains("writes alone is 36.5 ms") && said.contains("its log"), "{said}");
    let finding = top(&[("a.txt", &one_way("read:", 120.0))], "disk-slow");
    assert!(finding.reasoning[0].contains("reads alone"), "{:?}", finding.reasoning);
    // A few of them say nothing.
    silent(&[("a.txt", &one_way("write:", 4.0))]);
}

/// Who sends what the adapter has no VLAN for: its own system where Transmit Errors grow by as many.
#[test]
fn packets_of_other_vlans_are_those_that_could_not_be_sent() {
    let adapter = |strays: u64, errors: u64| {
        format!(
            "linz2:/> entstat -d ent0
ETHERNET STATISTICS (ent0) :
Device Type: Virtual I/O Ethernet Adapter (l-lan)
Hardware Address: 3a:11:20:0c:41:02
Elapsed Time: 12 days 0 hours 0 minutes 0 seconds

Transmit Statistics:                          Receive Statistics:
--------------------                          -------------------
Packets: 810443                               Packets: 910220
Transmit Errors: {errors}                     Receive Errors: 0

Virtual I/O Ethernet Adapter (l-lan) Specific Statistics:
---------------------------------------------------------
Invalid VLAN ID Packets: {strays}
Port VLAN ID:    20
VLAN Tag IDs:  None
"
        )
    };
    let title = |errors: u64| {
        let (one, two) = (adapter(100, 100), adapter(5100, errors));
        let captures = timed(&[("a.txt", &one, 0), ("b.txt", &two, 600)]);
        let found = advise(&captures, &Facts::builtin()).findings;
        assert_eq!(found.first().map(|one| one.rule), Some("net-vlan"), "{found:?}");
        found[0].title.clone()
    };
    assert_eq!(title(5100), "ent0 sends packets of VLANs that it is not in");
    assert_eq!(title(100), "ent0 has packets of VLANs that it is not in");
}

/// A list of an HMC: names, environments, states, connections, levels.
fn partitions(rows: &[&str]) -> String {
    let asked = "lpar_id,name,lpar_env,state,rmc_state,os_version";
    let rows: Vec<String> = (1..).zip(rows).map(|(id, row)| format!("{id},{row}")).collect();
    format!(
        "hscroot@hmc7:~> lssyscfg -r lpar -m Srv-9009-42A-SN78A1B2C -F {asked}\n{}\n",
        rows.join("\n")
    )
}

#[test]
fn partitions_out_of_order_are_told_by_the_hmcs_list() {
    const VIOS1: &str = "lzvio1,vioserver,Running,active,VIOS 3.1.4.31";
    const AIX: &str = "lzdb1,aixlinux,Running,active,AIX 7.3 7300-02-01-2346";
    let found = |rows: &[&str]| {
        let found = super::advice(&[("h.txt", &partitions(rows))]).findings;
        found.into_iter().map(|one| (one.object, one.severity)).collect::<Vec<_>>()
    };
    let told = |name: &str, severity| vec![(name.to_owned(), severity)];
    let vios2 = "lzvio2,vioserver,Running,inactive,VIOS 3.1.4.31";
    assert_eq!(found(&[VIOS1, vios2, AIX]), told("lzvio2", Severity::Warning));
    let failed = "lzapp1,aixlinux,Error,inactive,Unknown";
    assert_eq!(found(&[VIOS1, failed, AIX]), told("lzapp1", Severity::Critical));
    // Linux may have no such connection at all.
    let linux = "lzlnx1,aixlinux,Running,inactive,Unknown";
    assert_eq!(found(&[VIOS1, linux, AIX]), told("lzlnx1", Severity::Note));
    let off = "lzvio2,vioserver,Not Activated,inactive,VIOS 3.1.4.31";
    assert_eq!(found(&[VIOS1, off, AIX]), told("lzvio2", Severity::Note));
    // All in order; off, as its clients; IBM i has none; nobody has one: it is the HMC's network.
    let client = "lztst1,aixlinux,Not Activated,inactive,AIX 7.2 7200-05-03-2148";
    assert_eq!(found(&[VIOS1, AIX, client]), []);
    assert_eq!(found(&[VIOS1, "lzi1,os400,Running,inactive,IBM i 7.5", AIX]), []);
    assert_eq!(found(&[&VIOS1.replace(",active", ",inactive"), vios2]), []);
}

/// The VIOS that is off is what the paths that are down have in common.
#[test]
fn paths_that_are_down_name_the_server_that_is_off() {
    let list = partitions(&[
        "lzvio1,vioserver,Running,active,VIOS 3.1.4.31",
        "lzvio2,vioserver,Not Activated,inactive,VIOS 3.1.4.31",
        "lzdb1,aixlinux,Running,active,AIX 7.3 7300-02-01-2346",
    ]);
    let paths = "lzdb1:/> lspath\nEnabled hdisk0 vscsi0\nFailed hdisk0 vscsi1\n";
    let finding = top(&[("h.txt", &list), ("c.txt", paths)], "disk-paths-failed");
    assert!(finding.reasoning.iter().any(|why| why.contains("lists lzvio2")), "{finding:#?}");
}

/// A log of a day; what its rows are about.
fn log(rows: &str) -> String {
    format!(
        "linz3:/> date\nThu Nov 12 18:30:00 CET 2026\nlinz3:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n{rows}"
    )
}

#[test]
fn a_volume_group_that_has_lost_a_disk_is_told() {
    let missing = "F7DDA124   1112140226 U H LVDD           PHYSICAL VOLUME DECLARED MISSING\n";
    let stale = "EAA3D429   1112140326 U S LVDD           PHYSICAL PARTITION MARKED STALE\n";
    let finding = top(&[("a.txt", &log(&(stale.to_owned() + missing)))], "volume-group-disks");
    assert_eq!(finding.severity, Severity::Critical);
    let finding = top(&[("a.txt", &log(stale))], "volume-group-disks");
    assert_eq!(finding.severity, Severity::Warning);
    // Last month's, and one of a file system.
    silent(&[("a.txt", &log(&missing.replace("1112", "1009")))]);
    silent(&[(
        "a.txt",
        &log("5DFED6F1   1112140226 I O SYSPFS         UNABLE TO ALLOCATE SPACE IN FILE SYSTEM\n"),
    )]);
}

#[test]
fn permanent_errors_of_the_machine_are_told() {
    let entry = "BFE4C025   1112093326 P H sysplanar0     UNDETERMINED ERROR\n";
    let finding = top(&[("a.txt", &log(entry))], "platform-errors");
    assert!(finding.effect.contains("errpt -aj BFE4C025"), "{}", finding.effect);
    for other in [
        entry.replace(" P H ", " I H "),
        entry.replace("1112093326", "1101093326"),
        entry.replace("sysplanar0 ", "rmt0       "),
        entry.replace("sysplanar0 ", "SYSPROC    "),
    ] {
        silent(&[("a.txt", &log(&other))]);
    }
}

#[test]
fn paths_that_come_and_go_are_told_and_one_outage_is_not() {
    let at = |hours: &[u32]| {
        let row = |hour: &u32| {
            format!(
                "F31FFAC3   1112{hour:02}0626 I H hdisk6         PATH HAS RECOVERED\nDE3B8540   1112{hour:02}0126 P H hdisk6         PATH HAS FAILED\n"
            )
        };
        log(&hours.iter().map(row).collect::<String>())
    };
    let up = "linz3:/> lspath\nEnabled hdisk6 fscsi0\nEnabled hdisk6 fscsi1\n";
    let finding = top(&[("a.txt", &(at(&[16, 12, 9]) + up))], "disk-paths-flap");
    assert!(finding.reasoning[0].contains("3 different hours"), "{:?}", finding.reasoning);
    silent(&[("a.txt", &(at(&[16, 9]) + up))]);
    // Down now: that is the finding.
    let down = up.replace("Enabled hdisk6 fscsi1", "Failed hdisk6 fscsi1");
    let found = super::advice(&[("a.txt", &(at(&[16, 12, 9]) + &down))]).findings;
    assert_eq!(found.iter().map(|one| one.rule).collect::<Vec<_>>(), ["disk-paths-failed"]);
}

/// Few LUNs are a fault where somebody waits for them.
#[test]
fn a_pool_of_few_luns_is_a_warning_where_requests_wait() {
    let text = pool(2_097_152, 1_500_000, 2_000_000) + &pv_list(4, 524_288);
    assert_eq!(top(&[("a.txt", &text)], "ssp-lun-count").severity, Severity::Note);
    let full =
        Disk { tps: 3000.0, wait: 3.5, waiting: 11.0, in_service: 5.0, full: 410.0, ..QUICK };
    let full = full.text().replace("payroll:/>", "viosa1:/home/padmin>");
    let found = super::advice(&[("a.txt", &(text + &full))]).findings;
    let severity = found.iter().find(|one| one.rule == "ssp-lun-count").map(|one| one.severity);
    assert_eq!(severity, Some(Severity::Warning));
}
