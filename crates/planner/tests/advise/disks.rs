//! Disks, virtual SCSI, pools and the processors of the VIOS.

use super::{advice, lsattr, lsdev, silent, timed, top};
use planner::advise::{Severity, advise};
use planner::facts::Facts;

/// One disk of an `iostat -D`.
pub(super) struct Disk {
    pub(super) tps: f64,
    pub(super) service: f64,
    pub(super) wait: f64,
    pub(super) waiting: f64,
    pub(super) in_service: f64,
    pub(super) full: f64,
    pub(super) bytes: &'static str,
}

pub(super) const QUICK: Disk = Disk {
    tps: 900.0,
    service: 1.5,
    wait: 0.0,
    waiting: 0.0,
    in_service: 1.0,
    full: 0.1,
    bytes: "14.4M",
};

impl Disk {
    pub(super) fn text(&self) -> String {
        let Disk { tps, service, wait, waiting, in_service, full, bytes } = self;
        let reads = tps * 0.7;
        let writes = tps - reads;
        format!(
            "payroll:/> iostat -D hdisk4

System configuration: lcpu=16 drives=12 paths=48 vdisks=2

hdisk4          xfer:  %tm_act      bps      tps      bread      bwrtn
                          71.3    {bytes}    {tps:.1}    {bytes}       0.0
                read:      rps  avgserv  minserv  maxserv   timeouts      fails
                         {reads:.1}     {service:.1}      0.1     88.0           0          0
               write:      wps  avgserv  minserv  maxserv   timeouts      fails
                         {writes:.1}      {service:.1}      0.2     88.4           0          0
               queue:  avgtime  mintime  maxtime  avgwqsz    avgsqsz     sqfull
                          {wait:.1}      0.0    310.2      {waiting:.1}        {in_service:.1}       {full:.1}
--------------------------------------------------------------------------------
"
        )
    }
}

fn depth(value: &str) -> String {
    lsattr("payroll", "hdisk4", &[("queue_depth", value), ("reserve_policy", "no_reserve")])
}

#[test]
fn a_full_queue_before_a_quick_disk_wants_depth() {
    let disk =
        Disk { tps: 3000.0, wait: 3.5, waiting: 11.0, in_service: 5.0, full: 410.0, ..QUICK };
    let finding = top(&[("a.txt", &(disk.text() + &depth("8")))], "disk-queue-depth");
    assert_eq!(finding.command.as_deref(), Some("chdev -l hdisk4 -a queue_depth=16 -P"));
    assert_eq!(finding.undo.as_deref(), Some("chdev -l hdisk4 -a queue_depth=8 -P"));
}

#[test]
fn a_disk_at_depth_over_service_time_is_at_its_limit() {
    // A depth of 3 at 10 ms is 300 I/O a second.
    let disk = Disk {
        tps: 298.0,
        service: 10.0,
        wait: 22.0,
        waiting: 6.0,
        in_service: 3.0,
        full: 40.0,
        ..QUICK
    };
    let finding = top(&[("a.txt", &(disk.text() + &depth("3")))], "disk-iops-limit");
    let limit = finding
        .figures
        .iter()
        .find(|figure| figure.name == "limit of the queue depth")
        .expect("the limit");
    assert!((limit.low - 300.0).abs() < 0.5, "{limit}");
    assert_eq!(finding.command.as_deref(), Some("chdev -l hdisk4 -a queue_depth=12 -P"));
}

#[test]
fn a_slow_disk_gets_no_deeper_queue() {
    let disk = Disk { tps: 120.0, service: 48.0, in_service: 6.0, ..QUICK };
    let finding = top(&[("a.txt", &(disk.text() + &depth("20")))], "disk-slow");
    assert_eq!(finding.command, None);
    // Nor where its queue is full because it is slow.
    let full = Disk { tps: 400.0, wait: 20.0, waiting: 9.0, in_service: 19.0, full: 60.0, ..disk };
    top(&[("a.txt", &(full.text() + &depth("20")))], "disk-slow");
}

#[test]
fn healthy_disks_are_left_alone() {
    silent(&[("a.txt", &(QUICK.text() + &depth("20")))]);
    // Idle and slow: a handful of requests says nothing.
    silent(&[("a.txt", &(Disk { tps: 2.0, service: 31.0, ..QUICK }.text() + &depth("20")))]);
    // Large requests of a backup take their time.
    silent(&[(
        "a.txt",
        &(Disk { tps: 200.0, service: 24.0, bytes: "200.0M", ..QUICK }.text() + &depth("20")),
    )]);
    // Now and then a full queue.
    silent(&[(
        "a.txt",
        &(Disk { full: 1.2, waiting: 0.1, wait: 0.1, ..QUICK }.text() + &depth("3")),
    )]);
}

/// `lsmap -all` with one target for each backing device.
fn lsmap(backing: &[&str]) -> String {
    let mut text = "viosa1:/home/padmin> lsmap -all
SVSA            Physloc                                      Client Partition ID
--------------- -------------------------------------------- ------------------
vhost0          U9009.42A.78A1B2C-V1-C10                     0x00000005

"
    .to_owned();
    for (at, disk) in backing.iter().enumerate() {
        text.push_str(&format!(
            "VTD                   vtscsi{at}
Status                Available
LUN                   0x81{at:02}000000000000
Backing device        {disk}
Physloc               U78D3.001.WZS0ABC-P1-C4-T1-W500507680B215662-L{at}000000000000
Mirrored              false

"
        ));
    }
    text
}

fn vios_disk(name: &str, sets: &[(&str, &str)]) -> String {
    lsdev("viosa1", name, sets)
}

#[test]
fn a_client_deeper_than_its_backing_disk_waits_in_the_vios() {
    let id = "00f6db0a1c2d3e4f0000000000000000";
    let vios = lsmap(&["hdisk7"])
        + &vios_disk(
            "hdisk7",
            &[("queue_depth", "3"), ("pvid", id), ("reserve_policy", "no_reserve")],
        );
    let client = lsattr("payroll", "hdisk0", &[("queue_depth", "32"), ("pvid", id)]);
    let finding = top(&[("a.txt", &vios), ("b.txt", &client)], "disk-depth-chain");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev hdisk7 -attr queue_depth=32 -perm"));
    let even = lsattr("payroll", "hdisk0", &[("queue_depth", "3"), ("pvid", id)]);
    silent(&[("a.txt", &vios), ("b.txt", &even)]);
    // Another disk, by its id.
    let other = lsattr(
        "payroll",
        "hdisk0",
        &[("queue_depth", "32"), ("pvid", "00f6db0affffffff0000000000000000")],
    );
    silent(&[("a.txt", &vios), ("b.txt", &other)]);
}

#[test]
fn a_mapped_disk_must_not_be_reserved() {
    let disk = vios_disk("hdisk7", &[("queue_depth", "20"), ("reserve_policy", "single_path")]);
    let finding = top(&[("a.txt", &(lsmap(&["hdisk7"]) + &disk))], "disk-reserve-policy");
    assert_eq!(
        finding.command.as_deref(),
        Some("chdev -dev hdisk7 -attr reserve_policy=no_reserve -perm")
    );
    // The VIOS's own disk may be.
    silent(&[("a.txt", &(lsmap(&["hdisk9"]) + &disk))]);
}

#[test]
fn disks_beyond_the_elements_of_virtual_scsi_are_counted() {
    let names: Vec<String> = (0..16).map(|at| format!("hdisk{at}")).collect();
    let backing: Vec<&str> = names.iter().map(String::as_str).collect();
    let client: String = (0..3)
        .map(|at| lsattr("payroll", &format!("hdisk{at}"), &[("queue_depth", "32")]))
        .collect();
    // The mapping over Fibre Channel names the partition that the mapping over SCSI numbers.
    let map = super::npiv("viosa1", &[("vfchost0", 5, "payroll", "fcs0", "fcs0", 6)]);
    let finding =
        top(&[("a.txt", &(lsmap(&backing) + &map)), ("b.txt", &client)], "vscsi-elements");
    let fits = finding
        .figures
        .iter()
        .find(|figure| figure.name == "disks that fit")
        .expect("how many fit");
    assert_eq!(fits.low, 14.0);
    assert_eq!(finding.command.as_deref(), Some("chdev -l hdisk0 -a queue_depth=28 -P"));
    silent(&[("a.txt", &(lsmap(&backing[..14]) + &map)), ("b.txt", &client)]);
    silent(&[("a.txt", &lsmap(&backing)), ("b.txt", &client)]);
}

pub(super) fn pool(size: u64, free: u64, promised: u64) -> String {
    format!(
        "viosa1:/home/padmin> lssp -clustername prodclu
POOL_NAME:         prodpool
POOL_SIZE:         {size}
FREE_SPACE:        {free}
TOTAL_LU_SIZE:     {promised}
OVERCOMMIT_SPACE:  {}
TOTAL_LUS:         96
POOL_TYPE:         CLPOOL
POOL_ID:           00000000092A0B120000000056C1D2E3
",
        promised.saturating_sub(size)
    )
}

#[test]
fn a_pool_without_space_is_critical() {
    let finding = top(&[("a.txt", &pool(4_194_304, 104_858, 4_500_000))], "ssp-full");
    assert_eq!(finding.severity, planner::advise::Severity::Critical);
    silent(&[("a.txt", &pool(4_194_304, 1_300_000, 4_500_000))]);
}

#[test]
fn the_days_to_full_come_from_two_captures() {
    let (before, now) =
        (pool(4_194_304, 1_400_000, 4_194_304), pool(4_194_304, 1_000_000, 4_194_304));
    let captures = timed(&[("a.txt", &before, 0), ("b.txt", &now, 4 * 86_400)]);
    let advice = advise(&captures, &Facts::builtin());
    assert_eq!(advice.findings[0].rule, "ssp-full");
    let days = advice.findings[0]
        .figures
        .iter()
        .find(|figure| figure.name == "days to full")
        .expect("the days");
    assert_eq!(days.low, 10.0);
    // A year is nothing to speak of.
    let slow = timed(&[
        ("a.txt", &before, 0),
        ("b.txt", &pool(4_194_304, 1_396_000, 4_194_304), 4 * 86_400),
    ]);
    assert_eq!(advise(&slow, &Facts::builtin()).findings, []);
}

#[test]
fn promises_far_beyond_the_pool_are_a_warning() {
    top(&[("a.txt", &pool(4_194_304, 900_000, 12_582_912))], "ssp-overcommit");
    silent(&[("a.txt", &pool(4_194_304, 2_500_000, 5_800_000))]);
}

#[test]
fn shallow_luns_of_a_pool_hold_all_clients_up() {
    let luns: String = (4..8)
        .map(|at| {
            vios_disk(
                &format!("hdisk{at}"),
                &[("queue_depth", "3"), ("reserve_policy", "no_reserve")],
            )
        })
        .collect();
    let healthy_pool = pool(4_194_304, 2_500_000, 4_194_304);
    let finding = top(&[("a.txt", &(healthy_pool.clone() + &luns))], "ssp-depth");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev hdisk4 -attr queue_depth=16 -perm"));
    let deep: String =
        (4..8).map(|at| vios_disk(&format!("hdisk{at}"), &[("queue_depth", "20")])).collect();
    silent(&[("a.txt", &(healthy_pool + &deep))]);
}

/// `pv -list` of LUNs of so many MB each.
pub(super) fn pv_list(luns: usize, each: u64) -> String {
    let rows: String = (0..luns)
        .map(|at| {
            format!("hdisk{:<10} {each:<11} ONLINE          3321360050768{at:04}IBMfcp\n", at + 4)
        })
        .collect();
    format!(
        "viosa1:/home/padmin> pv -list -clustername ssp1 -sp prodpool\nPOOL_NAME: prodpool\nTIER_NAME: SYSTEM\nFG_NAME: Default\nPV_NAME          SIZE(MB)    STATE           UDID\n{rows}\n"
    )
}

#[test]
fn a_pool_of_few_luns_has_few_queues() {
    let finding = top(
        &[("a.txt", &(pool(2_097_152, 1_500_000, 2_000_000) + &pv_list(4, 524_288)))],
        "ssp-lun-count",
    );
    assert_eq!(finding.object, "pool prodpool");
    assert!(finding.title.contains("4 LUNs; 16"), "{}", finding.title);
    // A large pool needs more than the least: twenty for 40 TB are a sixteenth of what is advised.
    let finding = top(
        &[("a.txt", &(pool(41_943_040, 30_000_000, 40_000_000) + &pv_list(20, 2_097_152)))],
        "ssp-lun-count",
    );
    assert!(finding.title.contains("320 are advised"), "{}", finding.title);
    // Nearly the advised number, and a size that asks for a little more.
    silent(&[("a.txt", &(pool(2_097_152, 1_500_000, 2_000_000) + &pv_list(12, 174_762)))]);
    silent(&[("a.txt", &(pool(6_291_456, 4_500_000, 6_000_000) + &pv_list(16, 393_216)))]);
}

#[test]
fn only_the_luns_of_the_pool_count_for_its_depth() {
    let pool = pool(4_194_304, 2_500_000, 4_194_304);
    let disks = |of_pool: &str| -> String {
        // Sixteen LUNs, of which four were looked at, and two disks of the VIOS itself.
        (4..8)
            .map(|at| (at, of_pool))
            .chain([(0, "3"), (1, "3")])
            .map(|(at, depth)| vios_disk(&format!("hdisk{at}"), &[("queue_depth", depth)]))
            .collect()
    };
    let finding =
        top(&[("a.txt", &(pool.clone() + &pv_list(16, 262_144) + &disks("3")))], "ssp-depth");
    let taken = finding
        .figures
        .iter()
        .find(|figure| figure.name == "commands that the LUNs take")
        .expect("what the LUNs take");
    assert!((taken.low - 48.0).abs() < 0.1, "{taken}");
    silent(&[("a.txt", &(pool + &pv_list(16, 262_144) + &disks("20")))]);
}

fn lparstat(mode: &str, rows: &[(f64, f64)]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|(physc, entc)| {
            format!(
                "  3.1  60.2    0.1   36.6  {physc:.2} {entc:.1}   12.5 11.20  5120     4   101"
            )
        })
        .collect();
    format!(
        "viosa1:/home/padmin> lparstat 2 3

System configuration: type=Shared mode={mode} smt=8 lcpu=16 mem=16384MB psize=24 ent=1.50 

%user  %sys  %wait  %idle physc %entc  lbusy   app  vcsw phint  %nsp
----- ----- ------ ------ ----- ----- ------   --- ----- ----- -----
{}
",
        rows.join("\n")
    )
}

#[test]
fn an_exhausted_entitlement_is_told_with_what_to_add() {
    let finding = top(
        &[(
            "a.txt",
            &(lparstat("Capped", &[(1.49, 99.3), (1.5, 100.0), (1.48, 98.7)])
                + &pool(4_194_304, 2_500_000, 4_194_304)),
        )],
        "vios-cpu",
    );
    // Neither the machine nor the virtual processors are known: no command, but what to look up.
    assert_eq!(finding.command, None);
    assert_eq!(finding.to_set.as_deref(), Some("0.3 processing units more"));
    assert!(finding.look_up.iter().any(|what| what.contains("lparstat -i on viosa1")));
    let with = |virtual_cpus: u32, most: u32| {
        let info = format!(
            "viosa1:/home/padmin> lparstat -i\nNode Name                                  : viosa1\nPartition Name                             : viosa1\nPartition Number                           : 1\nOnline Virtual CPUs                        : {virtual_cpus}\nMaximum Virtual CPUs                       : {most}\nMaximum Capacity                           : 8.00\n"
        );
        let text = lparstat("Capped", &[(1.49, 99.3), (1.5, 100.0), (1.48, 98.7)])
            + &info
            + &lsmap(&["hdisk4"]);
        top(&[("a.txt", &text)], "vios-cpu")
    };
    assert_eq!(
        with(2, 8).command.as_deref(),
        Some("chhwres -r proc -m 9009-42A*78A1B2C -o a --id 1 --procunits 0.3")
    );
    assert_eq!(with(2, 8).place.as_deref(), Some("as hscroot on the HMC"));
    // A virtual processor runs one unit at most.
    assert_eq!(
        with(1, 8).command.as_deref(),
        Some("chhwres -r proc -m 9009-42A*78A1B2C -o a --id 1 --procunits 0.3 --procs 1")
    );
    assert_eq!(with(1, 1).command, None);
    let worked_out = Some("0.3 processing units more, with 2 virtual processors in all");
    assert_eq!(with(1, 1).to_set.as_deref(), worked_out);
    assert!(with(2, 8).effect.contains("Make it uncapped"), "{}", with(2, 8).effect);
    let uncapped =
        top(&[("vios.txt", &lparstat("Uncapped", &[(2.1, 140.0), (2.3, 153.0)]))], "vios-cpu");
    assert!(!uncapped.effect.contains("uncapped"), "it is: {}", uncapped.effect);
    // A peak in one interval is what uncapped is for.
    silent(&[("a.txt", &lparstat("Uncapped", &[(0.4, 26.0), (1.9, 126.0), (0.5, 33.0)]))]);
}

/// Uncapped with a weight of 0 is capped by another name.
#[test]
fn an_uncapped_server_without_weight_gets_nothing_beyond_its_entitlement() {
    let info = |weight: u32| {
        format!(
            "viosa1:/home/padmin> lparstat -i\nNode Name                                  : viosa1\nPartition Name                             : viosa1\nOnline Virtual CPUs                        : 4\nVariable Capacity Weight                   : {weight}\n"
        )
    };
    let run = lparstat("Uncapped", &[(1.49, 99.3), (1.5, 100.0), (1.48, 98.7)]);
    let finding = top(&[("vios.txt", &(run.clone() + &info(0)))], "vios-cpu");
    let said = format!("{finding:?}");
    assert!(finding.reasoning.iter().any(|why| why.contains("uncapped weight is 0")), "{said}");
    assert!(finding.effect.starts_with("First raise its uncapped weight"), "{said}");
    assert!(!said.contains("borrows") && !said.contains("Make it uncapped"), "{said}");
    silent(&[("vios.txt", &(run + &info(128)))]);
}

#[test]
fn what_is_missing_is_named_for_every_rule() {
    let advice = advice(&[]);
    let missing: std::collections::BTreeSet<&str> =
        advice.not_checked.iter().map(|not| not.rule).collect();
    let of_powervm = |rule: &&planner::advise::Rule| rule.on != planner::advise::Kind::Served;
    for rule in planner::advise::rules().filter(of_powervm) {
        assert!(missing.contains(rule.name), "{rule:?}");
    }
}

#[test]
fn a_paging_space_that_fills_up_is_told() {
    let lsps = |first: u32, second: u32| {
        format!(
            "viosa1:/home/padmin> lsps -a
Page Space      Physical Volume   Volume Group    Size %Used   Active    Auto    Type   Chksum
paging00        hdisk1            rootvg        2048MB    {first}     yes      no      lv       0
hd6             hdisk0            rootvg        1024MB    {second}     yes     yes      lv       0
"
        )
    };
    let finding = top(&[("a.txt", &lsps(80, 65))], "vios-memory");
    assert_eq!((finding.severity, finding.command.as_deref()), (Severity::Warning, None));
    assert!(finding.title.contains("75 %"), "{}", finding.title);
    assert_eq!(finding.evidence.len(), 2);
    assert_eq!(top(&[("a.txt", &lsps(95, 90))], "vios-memory").severity, Severity::Critical);
    silent(&[("a.txt", &lsps(40, 69))]);
    // A client's own paging is not the planner's.
    silent(&[(
        "a.txt",
        &lsps(95, 90)
            .replace("viosa1:/home/padmin> ", "aix1:/> oslevel -s\n7300-01-02-2320\naix1:/> "),
    )]);
}

#[test]
fn slow_commands_are_told_with_the_layer_that_takes_the_time() {
    let report = |san: u32, vios: u32, unit: &str| {
        format!(
            "aix1:/> oslevel -s\n7300-02-01-2346\naix1:/> fcstat -l 20 5 fcs0\nCompletion  Count  Avg{unit}  SAN{unit}  VIOS{unit}  Hypervisor{unit}  Adapter{unit}\nRead  81230  {}  {san}  {vios}  250  150\n",
            san + vios + 400
        )
    };
    let finding = top(&[("a.txt", &report(22_800, 900, "(us)"))], "fc-latency");
    assert!(finding.title.contains("24.1 ms, most of it in the SAN"), "{}", finding.title);
    assert_eq!((finding.object.as_str(), finding.command.as_deref()), ("fcs0 on aix1", None));
    let finding = top(&[("a.txt", &report(900, 22_800, "(us)"))], "fc-latency");
    assert!(finding.effect.contains("lparstat 30 4"), "{}", finding.effect);
    silent(&[("a.txt", &report(2_800, 900, "(us)"))]);
    // Without its unit a time is none.
    let unknown = advice(&[("a.txt", &report(22_800, 900, ""))]);
    assert!(unknown.findings.is_empty());
    assert!(
        unknown
            .not_checked
            .iter()
            .any(|not| not.rule == "fc-latency" && not.about.contains("unit"))
    );
}

#[test]
fn what_ibms_advisor_says_stands_beside_what_is_said_here() {
    let part = "<?xml version=\"1.0\"?>\n<vios_advisor>\n<hostname>viosa1</hostname>\n<cpu><cpu_entitlement risk=\"3\"><value>1.5</value><suggested_value>2.0</suggested_value></cpu_entitlement></cpu>\n<disk name=\"hdisk4\"><queue_depth value=\"3\" suggested_value=\"16\"/></disk>\n<varied><colour value=\"red\" suggested_value=\"blue\"/></varied>\n<same value=\"1\" suggested_value=\"1\"/>\n</vios_advisor>\n";
    let busy = lparstat("Capped", &[(1.49, 99.3), (1.5, 100.0), (1.48, 98.7)]);
    let answer = advice(&[("part.xml", part), ("a.txt", &busy)]);
    let said: Vec<(&str, &str, &str)> = answer
        .compared
        .iter()
        .map(|one| (one.system.as_str(), one.about.as_str(), one.here.as_str()))
        .collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!((said[0].0, said[0].1), ("viosa1", "cpu/cpu_entitlement"));
    assert!(said[0].2.starts_with("found too:") && said[0].2.ends_with("(vios-cpu)"), "{said:?}");
    assert!(
        said[1].1 == "disk/queue_depth of hdisk4" && said[1].2.contains("nothing was captured"),
        "{said:?}"
    );
    assert_eq!(said[2].2, "no rule here is about it");
    assert_eq!(answer.compared[0].weight, "risk 3");
}

#[test]
fn a_disk_that_is_only_defined_has_lost_no_path() {
    let paths = "aix8:/> lspath\nEnabled hdisk0 vscsi0\nEnabled hdisk0 vscsi1\nMissing hdisk1 vscsi0\nEnabled hdisk1 vscsi1\nDefined hdisk9 fscsi0\n";
    let finding = top(&[("a.txt", paths)], "disk-paths-failed");
    assert!(!finding.reasoning.iter().any(|why| why.contains("hdisk9")), "{:?}", finding.reasoning);
    let lost = paths.replace("Enabled hdisk1 vscsi1", "Failed hdisk1 vscsi1");
    let finding = top(&[("a.txt", &lost)], "disk-paths-failed");
    assert!(finding.reasoning.iter().any(|why| why.contains("No path is left to hdisk1.")));
}

#[test]
fn duplicates_of_a_disks_error_are_errors() {
    let log = |again: u32| {
        format!(
            "aix7:/> date\nThu Nov 12 14:00:00 CET 2026\naix7:/> errpt -a\n---------------------------------------------------------------------------\nLABEL:          SC_DISK_ERR2\nIDENTIFIER:     B6267342\n\nDate/Time:       Thu Nov 12 11:30:02 CET 2026\nSequence Number: 4711\nMachine Id:      00F6A2B04C00\nNode Id:         aix7\nClass:           H\nType:            PERM\nResource Name:   hdisk7\n\nDescription\nDISK OPERATION ERROR\n\nDuplicates\nNumber of duplicates\n         {again}\n"
        )
    };
    let few = advice(&[("a.txt", &log(1))]);
    assert!(few.findings.is_empty(), "{:?}", few.findings);
    let finding = top(&[("a.txt", &log(117))], "disk-errors");
    let why = "118 errors were logged in the day before the capture: 1 entry, and 117 duplicates";
    assert!(finding.reasoning[0].starts_with(why), "{:?}", finding.reasoning);
}

/// A path that is down, by `lspath` and by the error log, is one finding with both as evidence.
#[test]
fn a_failed_path_is_told_once() {
    let paths = "payroll:/> lspath\nEnabled hdisk3 fscsi0\nFailed hdisk3 fscsi1\nEnabled hdisk4 fscsi0\nFailed hdisk4 fscsi1\n";
    let entries: String = (0..10)
        .map(|hour| format!("7BFEEA1F   03020{hour}1526 T H fcs1           LINK ERROR\n"))
        .collect();
    let log = format!(
        "payroll:/> date\nMon Mar  2 10:00:00 CET 2026\npayroll:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n{entries}"
    );
    let alone = advice(&[("a.txt", &log)]).findings;
    assert_eq!(alone.iter().map(|one| one.rule).collect::<Vec<_>>(), ["adapter-errors"]);
    let both = advice(&[("a.txt", &(log + paths))]).findings;
    assert_eq!(both.iter().map(|one| one.rule).collect::<Vec<_>>(), ["disk-paths-failed"]);
    let evidence = both[0].evidence.iter().filter(|at| at.line > 4 && at.line < 15).count();
    assert_eq!(evidence, 4, "{:?}", both[0].evidence);
    assert!(both[0].reasoning.iter().any(|why| why.contains("link error on fcs1")), "{both:?}");
}

fn mapped(server: &str, machine: &str, clients: &[u32]) -> String {
    let mut text = format!("{server}:/home/padmin> lsmap -all\n");
    for (slot, client) in clients.iter().enumerate() {
        let slot_id = slot + 10;
        text += &format!(
            "SVSA            Physloc                                      Client Partition ID\n--------------- -------------------------------------------- ------------------\nvhost{slot}          U9009.41A.{machine}-V{}-C{slot_id}                     {client:#010x}\n\nVTD                   root{client}\nStatus                Available\nLUN                   0x8100000000000000\nBacking device        hdisk{slot}\nPhysloc               U78D2.001.WZS00XT-P1-C6-T1-W5005-L{slot}\nMirrored              false\n\n",
            if server.ends_with('1') { 1 } else { 2 },
        );
    }
    text
}

#[test]
fn a_client_that_one_of_two_servers_has_alone_is_told() {
    let one = mapped("viosa1", "13D7E80", &[3, 4, 5, 6]);
    let two = mapped("viosa2", "13D7E80", &[3, 4, 5]);
    let finding = top(&[("a.txt", &one), ("b.txt", &two)], "client-one-vios");
    assert_eq!(finding.object, "partition 6");
    assert_eq!(finding.command, None);
    // Two machines, as many alone as not, and a server of which nothing is known: nothing is forgotten there.
    silent(&[("a.txt", &one), ("b.txt", &mapped("viosb2", "13D7E99", &[3, 4, 5]))]);
    silent(&[("a.txt", &one), ("b.txt", &mapped("viosa2", "13D7E80", &[3, 4]))]);
    silent(&[("a.txt", &one)]);
}

/// The files of a folder of the field: their names and what stands in them.
fn field(folder: &str, files: &[&str]) -> Vec<(String, String)> {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/field/faulty").join(folder);
    let read = |name: &&str| {
        let text = std::fs::read_to_string(folder.join(name)).expect("a capture");
        ((*name).to_owned(), text)
    };
    files.iter().map(read).collect()
}

fn advised(files: &[(String, String)]) -> planner::advise::Advice {
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    advice(&files)
}

/// Paths over an adapter that is not logged in, and over one of a port without a fabric: told by these.
#[test]
fn paths_that_are_down_are_told_by_what_they_lead_over() {
    for (folder, files, rule, told) in [
        (
            "115-one-of-four-kept-out-of-one-fabric",
            &["1-tromvio1.txt", "2-tromvio2.txt", "3-tromdb2.txt", "4-tromdb1.txt"][..],
            "fc-wwpn-second-missing",
            "For that reason 3 of 6 paths of tromdb2, all those over fscsi1, are down.",
        ),
        (
            "10-port-logged-out",
            &["prgdb1.txt", "prgvio1.txt"][..],
            "fc-port-logged-out",
            "For that reason 6 of 12 paths of prgdb1, all those over fscsi0, are down.",
        ),
    ] {
        // A VIOS that has seen the client since its start names the client's adapter, another does not.
        let mut captured = field(folder, files);
        for named in [false, true] {
            if named {
                let (unnamed, named) =
                    ("client name:                VFC", "client name:fcs0            VFC");
                captured.iter_mut().for_each(|(_, text)| *text = text.replace(unnamed, named));
            }
            let findings = advised(&captured).findings;
            let [only] = &findings[..] else { panic!("{folder}, {named}: {findings:#?}") };
            assert_eq!(only.rule, rule);
            assert!(only.reasoning.iter().any(|why| why == told), "{:?}", only.reasoning);
            let of_client = captured.iter().position(|(name, _)| name.contains("db")).unwrap();
            let lines = only.evidence.iter().filter(|at| at.file as usize == of_client);
            assert!(lines.count() >= 3, "the paths' lines: {:?}", only.evidence);
            let client = told.split("paths of ").nth(1).unwrap().split([',', ' ']).next().unwrap();
            let state = advised(&captured).systems.into_iter().find(|one| one.name == client);
            let found = state.map(|state| state.critical + state.warnings);
            assert_eq!(found, Some(1), "the client's own state");
        }
        // Without the servers' captures the paths speak for themselves.
        captured.retain(|(name, _)| name.contains("db"));
        let alone = advised(&captured).findings;
        assert!(alone.iter().any(|one| one.rule == "disk-paths-failed"), "{alone:#?}");
    }
}

/// An adapter that is mapped to no port has no name on the VIOS: the paths that are missing are told by it, with `vfcmap`.
#[test]
fn missing_paths_over_an_adapter_without_a_port_are_told_by_vfcmap() {
    let map = |number: u32, client: u32, port: &str| {
        let used = |text: &str| if port.is_empty() { String::new() } else { text.to_owned() };
        format!(
            "vfchost{number}      U9009.42A.78A1B2C-V1-C{}               {client} {}        {}

Status:{}
FC name:{port}                     FC loc code:{}
Ports logged in:{}
Flags:{}
VFC client name:{}             VFC client DRC:{}

",
            20 + number,
            if client == 5 { "payroll" } else { "website" },
            used("AIX"),
            if port.is_empty() { "NOT_LOGGED_IN" } else { "LOGGED_IN" },
            used(&format!("U78D2.001.WZS00XT-P1-C6-T{number}")),
            if port.is_empty() { 0 } else { 5 },
            if port.is_empty() {
                "1<NOT_MAPPED,NOT_CONNECTED>"
            } else {
                "a<LOGGED_IN,STRIP_MERGE>"
            },
            used("fcs0"),
            used(&format!("U9009.42A.78A1B2C-V{client}-C20")),
        )
    };
    let vios = [
        "viosa1:/home/padmin> lsmap -all -npiv
Name          Physloc                            ClntID ClntName       ClntOS
------------- ---------------------------------- ------ -------------- -------
",
        &map(0, 5, "fcs2"),
        &map(1, 5, ""),
        &map(2, 6, "fcs3"),
    ]
    .concat();
    let client = "payroll:/> lparstat -i\nNode Name                                  : payroll\nPartition Name                             : payroll\nPartition Number                           : 5\npayroll:/> lspath\nEnabled hdisk0 fscsi0\nMissing hdisk0 fscsi1\nEnabled hdisk1 fscsi0\nMissing hdisk1 fscsi1\n";
    let findings = advice(&[("v.txt", &vios), ("c.txt", client)]).findings;
    let [only] = &findings[..] else { panic!("{findings:#?}") };
    assert_eq!(only.rule, "fc-adapter-unmapped");
    let command = only.command.as_deref().unwrap_or_default();
    assert!(command.contains("vfcmap -vadapter vfchost1 -fcp fcs3"), "{only:#?}");
    let told = "For that reason 2 of 4 paths of payroll, all those over fscsi1, are down.";
    assert!(only.reasoning.iter().any(|why| why == told), "{:?}", only.reasoning);
    let alone = advice(&[("c.txt", client)]).findings;
    assert_eq!(alone.iter().map(|one| one.rule).collect::<Vec<_>>(), ["disk-paths-failed"]);
}

#[test]
fn a_disk_with_errors_says_its_paths() {
    let files = ["bud_1.txt", "bud_2.txt", "budapp1.txt", "budvio1.txt"];
    let findings = advised(&field("31-disk-errors-growing", &files)).findings;
    let first = findings.first().expect("a finding");
    assert_eq!(first.rule, "disk-errors");
    let ways = "Its paths: 2 × fscsi0 (Enabled), 2 × fscsi1 (Enabled).";
    assert!(first.reasoning.iter().any(|why| why == ways), "{:?}", first.reasoning);
}
