//! What has to be mended first comes first, and what waits for it has no command.

use super::{PHYSICAL, Port, SHORT, advice, lsattr, lsdev, npiv, top};
use planner::advise::Finding;

fn client() -> String {
    SHORT.text()
        + &lsattr("payroll", "fcs0", &[("num_cmd_elems", "200"), ("max_xfer_size", "0x100000")])
}

fn server(port: Port, elements: &str) -> String {
    port.text()
        + &lsdev("viosa1", "fcs0", &[("num_cmd_elems", elements), ("max_xfer_size", "0x100000")])
        + &npiv("viosa1", &[("vfchost0", 5, "payroll", "fcs0", "fcs0", 6)])
}

fn of<'a>(findings: &'a [Finding], rule: &str) -> &'a Finding {
    findings
        .iter()
        .find(|finding| finding.rule == rule)
        .unwrap_or_else(|| panic!("{rule}: {findings:#?}"))
}

#[test]
fn a_port_that_is_short_comes_before_its_client() {
    let short = Port { no_elements: 4_128_362, active_high: 500, pending_high: 800, ..PHYSICAL };
    let found = advice(&[("a.txt", &client()), ("b.txt", &server(short, "500"))]).findings;
    assert_eq!(found[0].rule, "fc-physical-elements", "{found:#?}");
    assert!(found[0].command.as_deref().is_some_and(|command| command.contains("=1536")));
    let client = of(&found, "fc-virtual-elements");
    assert_eq!(client.command, None);
    assert!(client.look_up[0].contains("fcs0 on viosa1"), "{:?}", client.look_up);
}

#[test]
fn a_client_is_not_raised_beyond_its_port() {
    let files = |elements| [client(), server(PHYSICAL, elements)];
    let of = |elements| {
        let [one, two] = files(elements);
        top(&[("a.txt", &one), ("b.txt", &two)], "fc-virtual-elements")
    };
    let less = of("1024");
    assert_eq!(less.command, None);
    assert!(less.look_up[0].contains("2,048 at least"), "{:?}", less.look_up);
    assert_eq!(of("2048").command.as_deref(), Some("chdev -l fcs0 -a num_cmd_elems=2048 -P"));
}

#[test]
fn behind_a_broken_link_nothing_is_set() {
    let bad =
        Port { crcs: 40, no_elements: 4_128_362, active_high: 614, pending_high: 993, ..PHYSICAL };
    let later =
        Port { crcs: 940, no_elements: bad.no_elements + 500_000, ..bad.later(600, 900_000) };
    let port = lsdev("viosa1", "fcs0", &[("num_cmd_elems", "1024")]);
    let found = advice(&[("a.txt", &(bad.text() + &port)), ("b.txt", &later.text())]).findings;
    let elements = of(&found, "fc-physical-elements");
    assert_eq!(elements.command, None);
    assert!(elements.look_up[0].contains("once the link is mended"), "{:?}", elements.look_up);
}

fn paging(system: &str, used: u32, killed: bool, level: &str) -> String {
    let log = "C5C09FFA   0301101026 P S SYSVMM         SOFTWARE PROGRAM ABNORMALLY TERMINATED\n";
    let log = if killed { log } else { "" };
    format!(
        "{system}:/> {level}\n{system}:/> vmstat 5 3\n\nSystem configuration: lcpu=16 mem=8192MB ent=1.00\n\n\
         kthr    memory              page              faults              cpu          \n\
         ----- ----------- ------------------------ ------------ -----------------------\n\
         \x20r  b   avm   fre  re  pi  po  fr   sr  cy  in   sy  cs us sy id wa    pc    ec\n\
         \x201  0 900000  1000   0 210 300 400  900   0 100 2000 900 10  5 80  5  0.20  20.0\n\
         \x201  0 900000  1000   0 220 310 400  900   0 100 2000 900 10  5 80  5  0.20  20.0\n\
         \x201  0 900000  1000   0 230 320 400  900   0 100 2000 900 10  5 80  5  0.20  20.0\n\
         {system}:/> lsps -a\nPage Space      Physical Volume   Volume Group    Size %Used   Active    Auto    Type   Chksum\n\
         hd6             hdisk0            rootvg        8192MB    {used}     yes     yes     lv       0\n\
         {system}:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n{log}"
    )
}

#[test]
fn a_full_paging_space_is_told_beside_the_paging() {
    let full = paging("batch07", 93, true, "oslevel -s\n7200-05-06-2320");
    let advice = advice(&[("a.txt", &full)]);
    let found = advice.findings.iter().find(|finding| finding.rule == "vios-memory");
    if let Some(found) = found {
        let all = found.reasoning.join(" ");
        assert!(all.contains("93 % full") && all.contains("PGSP_KILL"), "{all}");
        assert!(found.effect.starts_with("First add paging space"), "{}", found.effect);
        assert!(!found.effect.contains("the VIOS"), "{}", found.effect);
    }
    let vios = top(&[("a.txt", &paging("viosa1", 93, true, "ioslevel\n3.1.4.21"))], "vios-memory");
    let all = vios.reasoning.join(" ");
    assert!(
        all.contains("it pages") && all.contains("93 % full") && all.contains("PGSP_KILL"),
        "{all}"
    );
    assert!(vios.effect.starts_with("First add paging space"), "{}", vios.effect);
    let calm = top(&[("a.txt", &paging("viosa1", 12, false, "ioslevel\n3.1.4.21"))], "vios-memory");
    assert!(calm.effect.starts_with("Give the VIOS more memory"), "{}", calm.effect);
}

#[test]
fn requests_that_fail_are_told_whatever_the_service_time() {
    let sample = |reads: &str, writes: &str| {
        format!(
            "hdisk6          xfer:  %tm_act      bps      tps      bread      bwrtn   \n\
             \x20                          1.3     52.4K     9.5      40.1K      12.3K\n\
             \x20               read:      rps  avgserv  minserv  maxserv   timeouts      fails\n\
             \x20                          5.0      4.2      0.1     30.2S         9     {reads:>5}\n\
             \x20              write:      wps  avgserv  minserv  maxserv   timeouts      fails\n\
             \x20                          4.5      0.9      0.2     88.4           0     {writes:>5}\n\
             \x20              queue:  avgtime  mintime  maxtime  avgwqsz    avgsqsz     sqfull\n\
             \x20                          0.0      0.0      0.2      0.0        0.0         0.0\n{}\n",
            "-".repeat(80)
        )
    };
    let run = |first: &str, second: &str| {
        format!(
            "aixdb1:/> iostat -D hdisk6 60 2\n\nSystem configuration: lcpu=16 drives=1 paths=1 vdisks=0\n\n{first}{second}"
        )
    };
    let failing = top(&[("a.txt", &run(&sample("0", "0"), &sample("12", "7")))], "disk-errors");
    assert_eq!((failing.object.as_str(), failing.figures[0].low), ("hdisk6 on aixdb1", 19.0));
    // The first sample is of all time.
    super::silent(&[("a.txt", &run(&sample("12", "7"), &sample("0", "0")))]);
}

#[test]
fn the_only_adapter_of_a_client_that_runs_needs_a_port() {
    let map = "viosa1:/home/padmin> lsmap -all -npiv
Name          Physloc                            ClntID ClntName       ClntOS
------------- ---------------------------------- ------ -------------- -------
vfchost4      U9009.42A.78A1B2C-V1-C165             160

Status:NOT_LOGGED_IN
FC name:                        FC loc code:
Ports logged in:0
Flags:1<NOT_MAPPED,NOT_CONNECTED>
VFC client name:                VFC client DRC:
";
    let hmc = |state: &str| {
        format!(
            "hscroot@hmc1:~> lssyscfg -r lpar -m Server-9009-42A-SN78A1B2C -F name,lpar_id,lpar_env,state\nvios1,1,vioserver,Running\nerp,160,aixlinux,{state}\n"
        )
    };
    let runs = top(&[("a.txt", map), ("b.txt", &hmc("Running"))], "fc-adapter-unmapped");
    assert_eq!((runs.object.as_str(), runs.command), ("vfchost4 on viosa1", None));
    super::silent(&[("a.txt", map), ("b.txt", &hmc("Not Activated"))]);
    super::silent(&[("a.txt", map)]);
}

#[test]
fn paths_to_an_enclosure_are_none_to_a_disk() {
    super::silent(&[(
        "a.txt",
        "aix1:/> lspath\nEnabled hdisk0 sas0\nEnabled hdisk1 sas0\nEnabled hdisk1 sas1\nEnabled hdisk0 sas1\nEnabled ses0 sas0\nMissing ses1 sas1\nMissing ses2 sas1\n",
    )]);
}
