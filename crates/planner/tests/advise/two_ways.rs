//! Disks that are reached in two ways: paths that are disabled, and a LUN that two servers give differently.

use planner::advise::Severity;

use super::{silent, top};

/// A path that somebody took out of use stays so: it is told, with the command where there is one path and a client by name.
#[test]
fn paths_that_are_disabled_are_told() {
    let list = |rows: &str| format!("aix1:/> lspath\n{rows}");
    let one = list("Enabled  hdisk0 vscsi0\nDisabled hdisk0 vscsi1\n");
    let finding = top(&[("a.txt", &one)], "disk-paths-disabled");
    assert_eq!(finding.command.as_deref(), Some("chpath -l hdisk0 -p vscsi1 -s enable"));
    assert_eq!(finding.undo.as_deref(), Some("chpath -l hdisk0 -p vscsi1 -s disable"));
    assert_eq!(finding.place.as_deref(), Some("as root on aix1"));
    let rows = "Enabled  hdisk0 vscsi0\nEnabled  hdisk1 vscsi0\nDisabled hdisk0 vscsi1\nDisabled hdisk1 vscsi1\n";
    let finding = top(&[("a.txt", &list(rows))], "disk-paths-disabled");
    assert_eq!(finding.command, None);
    assert!(finding.effect.contains("hdisk0, hdisk1"), "{finding:#?}");
    // Without a name there is no place to type it.
    let nameless = one.replace("aix1:/> ", "$ ");
    assert_eq!(top(&[("a.txt", &nameless)], "disk-paths-disabled").command, None);
    silent(&[(
        "a.txt",
        &list("Enabled hdisk0 vscsi0\nEnabled hdisk0 vscsi1\nDefined hdisk0 vscsi2\n"),
    )]);
}

/// A LUN with two greatest transfers is raised where it is smaller, as the other has it printed.
#[test]
fn a_luns_greatest_transfer_is_the_same_on_both_servers() {
    let server = |name: &str, disk: &str, transfer: &str, lun: &str| {
        format!(
            "{name}:/home/padmin $ ioslevel\n3.1.4.31\n{name}:/home/padmin $ lsmap -all\nSVSA            Physloc                                      Client Partition ID\n--------------- -------------------------------------------- ------------------\nvhost0          U9009.42A.78A1B2C-V1-C12                     0x00000005\n\nVTD                   v1\nStatus                Available\nLUN                   0x8100000000000000\nBacking device        {disk}\nPhysloc               U78D3.001.WZS0ABC-P1-C4-T2-W500507680B214C01-L5000000000000\nMirrored              false\n\n{name}:/home/padmin $ lsdev -dev {disk} -attr\nattribute       value description user_settable\n\nmax_transfer    {transfer} Maximum TRANSFER Size True\nreserve_policy  no_reserve Reserve Policy True\nunique_id       {lun} Unique device identifier False\n"
        )
    };
    let first = server("vios1", "hdisk7", "0x100000", "3321LUN5");
    let second = server("vios2", "hdisk9", "0x40000", "3321LUN5");
    let finding = top(&[("1.txt", &first), ("2.txt", &second)], "disk-max-transfer");
    assert_eq!(finding.object, "hdisk9 on vios2");
    let command = "chdev -dev hdisk9 -attr max_transfer=0x100000 -perm";
    assert_eq!(finding.command.as_deref(), Some(command));
    // Another LUN may have another size.
    silent(&[("1.txt", &first), ("2.txt", &server("vios2", "hdisk9", "0x40000", "3321LUN6"))]);
}

/// Both adapters of a client on one port, while another port of that server has a fabric and room.
#[test]
fn a_client_whose_adapters_share_a_port_is_told_where_nothing_else_is_its_way() {
    let map = |slot: u32, fcs: u32, port: &str, tail: u32| {
        format!(
            "Name          Physloc                            ClntID ClntName       ClntOS\n------------- ---------------------------------- ------ -------------- -------\nvfchost{slot}      U9009.42A.50BFC80-V1-C10{slot}               5 erpdb          AIX\n\nStatus:LOGGED_IN\nFC name:{port}                    FC loc code:U78D3.001.WZSFC80-P1-C8-T{tail}\nPorts logged in:2\nFlags:a<LOGGED_IN,STRIP_MERGE>\nVFC client name:fcs{fcs}            VFC client DRC:U9009.42A.50BFC80-V5-C1{slot}\n\n"
        )
    };
    let ports = |fabric: u32| {
        format!(
            "vioA:/> lsnports\nname             physloc                        fabric tports aports swwpns  awwpns\nfcs0             U78D3.001.WZSFC80-P1-C8-T1          1     64     62   2048    2044\nfcs1             U78D3.001.WZSFC80-P1-C8-T2          {fabric}     64     64   2048    2048\n"
        )
    };
    let vios = |second: &str, fabric: u32| {
        let tail = if second == "fcs0" { 1 } else { 2 };
        let maps = map(0, 0, "fcs0", 1) + &map(1, 1, second, tail);
        format!("vioA:/> lsmap -all -npiv\n{maps}{}", ports(fabric))
    };
    let client = |third: &str| {
        format!(
            "erpdb:/ # lspath\nEnabled hdisk0 fscsi0\nEnabled hdisk0 fscsi1\nEnabled hdisk0 {third}\n"
        )
    };
    let one = vios("fcs0", 1);
    let finding = top(&[("v.txt", &one), ("c.txt", &client("fscsi1"))], "vfchost-one-port");
    assert_eq!(finding.title, "all adapters of erpdb hang on fcs0");
    assert_eq!(finding.command, None);
    assert!(
        finding.reasoning[0]
            .ends_with("erpdb has paths over fscsi0 and fscsi1 and no other adapter."),
        "{finding:?}"
    );
    assert!(finding.reasoning[1].starts_with("fcs1 of the same VIOS"), "{finding:?}");
    // An adapter that leads elsewhere, no other port with a fabric, two ports: nothing is to be said.
    silent(&[("v.txt", &one), ("c.txt", &client("fscsi2"))]);
    silent(&[("v.txt", &vios("fcs0", 0)), ("c.txt", &client("fscsi1"))]);
    silent(&[("v.txt", &vios("fcs1", 1)), ("c.txt", &client("fscsi1"))]);
    silent(&[("v.txt", &one)]);
    let row = |slot: u32| {
        format!(
            "lpar_name=erpdb,lpar_id=5,slot_num={slot},adapter_type=client,state=1,is_required=0,remote_lpar_id=1,remote_lpar_name=vioA,remote_slot_num=10{slot},\"wwpns=c0507604a1b20{slot}0,c0507604a1b20{slot}1\",topology=1\n"
        )
    };
    let list = |slots: &[u32]| -> String {
        let rows: String = slots.iter().map(|slot| row(*slot)).collect();
        format!(
            "hscroot@hmc:~> lshwres -r virtualio --rsubtype fc --level lpar -m S-SN50BFC80\n{rows}"
        )
    };
    let listed = top(&[("v.txt", &one), ("h.txt", &list(&[10, 11]))], "vfchost-one-port");
    assert!(
        listed.reasoning[0].ends_with("the HMC lists no other adapter of erpdb."),
        "{listed:?}"
    );
    silent(&[("v.txt", &one), ("h.txt", &list(&[10, 11, 12]))]);
}

/// A client that uses all it may have: worth a word, and a warning where threads wait.
#[test]
fn a_client_that_uses_all_of_its_processors_is_told() {
    let run = |physc: &str, user: &str| {
        format!(
            "crm:/> lparstat 30 2\n\nSystem configuration: type=Shared mode=Uncapped smt=8 lcpu=16 mem=32768MB psize=20 ent=0.60 \n\n%user  %sys  %wait  %idle physc %entc  lbusy   app  vcsw phint  %nsp\n----- ----- ------ ------ ----- ----- ------   --- ----- ----- -----\n{user}  14.0  0.0    2.0    {physc}  333.0 98.1   3.11  3120  900     101\n{user}  14.0  0.0    2.0    {physc}  333.0 98.1   3.11  3120  900     101\n"
        )
    };
    let who = "crm:/> lparstat -i\nNode Name                                  : crm\nPartition Name                             : crm\nPartition Number                           : 9\nType                                       : Shared-SMT-8\nMode                                       : Uncapped\nOnline Virtual CPUs                        : 2\n";
    let queue = |ready: u32| {
        format!(
            "crm:/> vmstat 30 2\n\nSystem configuration: lcpu=16 mem=32768MB ent=0.60\n\nkthr    memory              page              faults              cpu          \n----- ----------- ------------------------ ------------ -----------------------\n r  b   avm   fre  re  pi  po  fr   sr  cy  in   sy  cs us sy id wa    pc    ec\n {ready}  1 3002331  81011   0   0   0    0     0   0 1820 99110 81200 84 14  2  0   2.0 333.1\n {ready}  1 3002331  81011   0   0   0    0     0   0 1820 99110 81200 84 14  2  0   2.0 333.1\n"
        )
    };
    let busy = run("2.00", "84.0");
    let waits = busy.clone() + who + &queue(22);
    let finding = top(&[("a.txt", &waits)], "client-cpu");
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.reasoning.iter().any(|why| why.starts_with("On average 22 threads")),
        "{finding:?}"
    );
    assert_eq!(finding.command, None);
    let calm = busy.clone() + who + &queue(9);
    assert_eq!(top(&[("a.txt", &calm)], "client-cpu").severity, Severity::Note);
    // Without `lparstat -i` the threads of each processor tell how many there are.
    assert_eq!(top(&[("a.txt", &busy)], "client-cpu").severity, Severity::Note);
    // It may borrow more, or it has some left.
    silent(&[("a.txt", &run("1.20", "84.0"))]);
    silent(&[("a.txt", &run("2.00", "70.0"))]);
}

/// A system's own port without a link is the cause of the paths over it; one that never carried anything is left unplugged.
#[test]
fn a_port_without_a_link_is_told_and_explains_its_paths() {
    let port = |requests: u32, state: &str| {
        format!(
            "db7:/> fcstat fcs1\n\nFIBRE CHANNEL STATISTICS REPORT: fcs1\n\nWorld Wide Port Name: 0x10000090FA8E1235\nPort Speed (supported): 16 GBIT\nAttention Type:   {state}\n\nSeconds Since Last Reset: 864000\n\nFC SCSI Traffic Statistics\n  Input Requests:   {requests}\n  Output Requests:  {requests}\n  Control Requests: 8812\n"
        )
    };
    let list = |state: &str| {
        format!(
            "db7:/> lspath\nEnabled hdisk0 fscsi0\n{state} hdisk0 fscsi1\nEnabled hdisk1 fscsi0\n{state} hdisk1 fscsi1\n"
        )
    };
    let down = port(4711, "Link Down");
    let finding = top(&[("a.txt", &down)], "fc-link-down");
    assert_eq!(finding.object, "fcs1 on db7");
    let both = top(&[("a.txt", &(down.clone() + &list("Failed")))], "fc-link-down");
    assert!(
        both.reasoning
            .iter()
            .any(|why| why
                == "For that reason 2 of 4 paths of db7, all those over fscsi1, are down.")
    );
    silent(&[("a.txt", &port(0, "Link Down"))]);
    silent(&[("a.txt", &port(4711, "Link Up"))]);
    // By the list of NPIV ports: given to clients, and without a fabric.
    let ports = |fabric: u32, free: u32| {
        format!(
            "vio7:/> lsnports\nname             physloc                        fabric tports aports swwpns  awwpns\nfcs0             U78D3.001.WZSABC1-P1-C8-T1          1     64     60   2048    2040\nfcs1             U78D3.001.WZSABC1-P1-C8-T2          {fabric}     64     {free}   2048    2040\n"
        )
    };
    let listed = top(&[("a.txt", &ports(0, 60))], "fc-link-down");
    assert_eq!(listed.object, "fcs1 on vio7");
    silent(&[("a.txt", &ports(0, 64))]);
    silent(&[("a.txt", &ports(1, 60))]);
    // Paths over another adapter are another trouble, and what is missing is not brought back by a check.
    let other = down + &list("Enabled").replace("Enabled hdisk0 fscsi0", "Missing hdisk0 fscsi0");
    let rules = super::advice(&[("a.txt", &other)]).findings;
    let rules: Vec<&str> = rules.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules.len(), 2, "{rules:?}");
    let missing = top(&[("a.txt", &list("Missing"))], "disk-paths-failed");
    assert!(missing.effect.contains("cfgmgr"), "{missing:?}");
}

#[test]
fn degraded_paths_are_told_unless_paths_are_down() {
    let list = |one: &str, two: &str| {
        format!(
            "db2c:/> lsmpio\nname    path_id  status   path_status  parent  connection\n\nhdisk1  0        Enabled  Sel,Opt      fscsi0  500507680c1134ab,1000000000000\nhdisk1  1        {one}  {two}  fscsi1  500507680c2134ab,1000000000000\n"
        )
    };
    let finding = top(&[("a.txt", &list("Enabled", "Deg"))], "disk-paths-degraded");
    assert_eq!(finding.title, "1 of 2 paths of db2c are degraded");
    assert!(finding.reasoning[1].contains("all those over fscsi1"), "{finding:?}");
    silent(&[("a.txt", &list("Enabled", "Opt"))]);
    top(&[("a.txt", &list("Failed", "Deg"))], "disk-paths-failed");
}

/// The client that has most of a port's waits is named, if one has more than all others.
#[test]
fn the_client_with_most_of_a_ports_waits_is_named() {
    let text = |waits: [u32; 3]| {
        let maps = super::npiv(
            "viox",
            &[("vfchost0", 10, "p1", "fcs0", "fcs0", 3), ("vfchost1", 11, "p2", "fcs0", "fcs0", 3)],
        );
        let row = |name: &str, wwpn: &str, waits: u32| {
            format!(
                "{name:>22}  fcs0  {wwpn}  100334112   52231987     1981    2000000000000    1000000000000         0 {waits:>9}         0\n"
            )
        };
        let [own, one, two] = waits;
        format!(
            "{maps}viox:/home/padmin> fcstat -client\n              hostname   dev                wwpn     inreqs    outreqs ctrlreqs          inbytes         outbytes  DMA_errs Elem_errs Comm_errs\n\n{}{}{}",
            row("viox", "0x10000010EF87F1D2", own),
            row("p1", "0xC0507609F1120000", one),
            row("p2", "0xC0507609F1120004", two)
        )
    };
    let named = |waits: [u32; 3]| {
        let findings = super::advice(&[("a.txt", &text(waits))]).findings;
        let port = findings.into_iter().find(|finding| finding.rule == "fc-physical-elements");
        let port = port.expect("the port");
        port.reasoning.into_iter().find(|why| why.starts_with("By fcstat -client"))
    };
    let why = named([819_871, 3000, 815_000]).expect("p2 has most");
    assert!(why.contains("p2 met 815,000 of the 818,000"), "{why}");
    assert_eq!(named([819_871, 400_000, 400_000]), None);
}
