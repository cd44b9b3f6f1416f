//! What lists of an HMC say of both sides, and what an HMC refuses.

use super::{advice, silent, top};
use planner::advise::Severity;

/// Trunk adapters of two VIOS and an adapter of a client.
fn ethernet(priority: u8, of_second: &str, client: u16) -> String {
    let trunk = |name: &str, id: u8, priority: u8, vlans: &str| {
        format!(
            "lpar_name={name},lpar_id={id},slot_num=11,state=1,is_required=0,is_trunk=1,trunk_priority={priority},ieee_virtual_eth=1,port_vlan_id=1,vswitch=ETHERNET0,\"addl_vlan_ids={vlans}\",mac_addr=4A7B2{id}000A0B\n"
        )
    };
    format!(
        "hscroot@hmc1:~> lshwres -r virtualio -m S924 --rsubtype eth --level lpar\n{}{}lpar_name=db1,lpar_id=5,slot_num=2,state=1,is_required=0,is_trunk=0,ieee_virtual_eth=0,port_vlan_id={client},vswitch=ETHERNET0,addl_vlan_ids=none,mac_addr=4A7B25000A0C\n",
        trunk("viosa", 1, 1, "101,102,103"),
        trunk("viosb", 2, priority, of_second),
    )
}

#[test]
fn trunk_adapters_have_different_priorities_and_the_same_vlans() {
    let all = "101,102,103";
    silent(&[("a.txt", &ethernet(2, all, 101))]);
    let finding = top(&[("a.txt", &ethernet(1, all, 101))], "sea-priority");
    assert_eq!(finding.object, "viosa and viosb");
    let finding = top(&[("a.txt", &ethernet(2, "101,102", 103))], "sea-vlan");
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.title, "VLAN 103 is on viosa and not on viosb");
    assert!(finding.reasoning.iter().any(|why| why.contains("db1")), "{finding:#?}");
    // Nobody is in it.
    let finding = top(&[("a.txt", &ethernet(2, "101,102", 101))], "sea-vlan");
    assert_eq!(finding.severity, Severity::Note);
    // Other VLANs altogether are another pair's.
    let apart = ethernet(1, "201,202", 101).replacen("port_vlan_id=1,", "port_vlan_id=9,", 1);
    silent(&[("a.txt", &apart)]);
}

#[test]
fn a_client_adapter_without_its_server_adapter_is_told() {
    let list = |slot: u8, of: u8| {
        format!(
            "hscroot@hmc1:~> lshwres -r virtualio -m S924 --rsubtype fc --level lpar -F lpar_name,slot_num,adapter_type,remote_lpar_name,remote_slot_num\ndb1,10,client,viosa,110\ndb1,11,client,viosb,111\nviosa,110,server,db1,10\nviosb,{slot},server,db1,{of}\n"
        )
    };
    silent(&[("a.txt", &list(111, 11))]);
    let finding = top(&[("a.txt", &list(119, 11))], "client-adapter-partner");
    assert_eq!(finding.object, "slot 11 of db1");
    top(&[("a.txt", &list(111, 12))], "client-adapter-partner");
    // The adapters of that VIOS are not in the list.
    let (before, _) =
        list(111, 11).split_once("viosb,111").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    silent(&[("a.txt", &before)]);
}

#[test]
fn a_vios_that_may_borrow_nothing_beside_one_that_may_is_told() {
    let list = |mode: &str, weight: u8| {
        format!(
            "hscroot@hmc1:~> lshwres -r proc -m S924 --level lpar -F lpar_name,curr_proc_mode,curr_proc_units,curr_procs,curr_sharing_mode,curr_uncap_weight\nvios1,shared,1.0,4,uncap,255\nvios2,shared,1.0,4,{mode},{weight}\ndb1,shared,2.0,8,cap,0\n"
        )
    };
    silent(&[("a.txt", &list("uncap", 255))]);
    assert_eq!(top(&[("a.txt", &list("uncap", 0))], "vios-cpu").object, "vios2");
    assert_eq!(top(&[("a.txt", &list("cap", 0))], "vios-cpu").title, "vios2 is capped");
    // Where both are so, it is how they are meant.
    silent(&[("a.txt", &list("cap", 0).replace("uncap,255", "cap,0"))]);
}

#[test]
fn a_migration_that_the_hmc_refuses_is_told_with_its_words() {
    let refused = "hscroot@hmc1:~> migrlpar -o v -m S922A -t S922B -p erp1\nErrors:\nHSCLA319 The migrating partition's virtual fibre channel client adapter 10 cannot be hosted by the existing Virtual I/O Server (VIOS) partitions on the destination managed system.\n\nDetails:\nThere are no FC adapters on this VIOS that can see all of the client's target WWPNs\n";
    let finding = top(&[("a.txt", refused)], "hmc-refused");
    assert_eq!(finding.object, "erp1");
    assert_eq!(finding.title, "the migration of erp1 (LPM) is refused: HSCLA319");
    assert!(finding.effect.contains("zoned"), "{finding:#?}");
    let text = "see HSCLA319 in the documentation\n".repeat(2);
    assert_eq!(
        advice(&[("a.txt", &format!("{text}vios1$ ioslevel\n3.1.4.31\n"))]).findings.len(),
        0
    );
}

#[test]
fn a_vios_in_open_firmware_is_told_and_a_client_there_is_not() {
    let list = |vios: &str, client: &str| {
        format!(
            "hscroot@hmc1:~> lssyscfg -r lpar -m S924 -F name,state,lpar_env,rmc_state\nvios1,Running,vioserver,active\nvios2,{vios},vioserver,inactive\ndb1,Running,aixlinux,active\ndb2,{client},aixlinux,inactive\n"
        )
    };
    silent(&[(
        "a.txt",
        &list("Running", "Open Firmware")
            .replace("vios2,Running,vioserver,inactive", "vios2,Running,vioserver,active"),
    )]);
    assert_eq!(
        top(&[("a.txt", &list("Open Firmware", "Not Activated"))], "partition-state").object,
        "vios2"
    );
}

#[test]
fn what_an_hmc_says_of_a_migration_that_may_go_on_is_no_refusal() {
    let told = "As part of the migration process, the HMC will create a new migration profile containing the partition's current state.";
    for (heading, code) in
        [("Warnings:\n", "HSCLA295"), ("", "HSCLA295"), ("Warnings:\n", "HSCLA2FF")]
    {
        let text = format!(
            "hscroot@hmc1:~> migrlpar -o v -m S922A -t S922B -p erp1\n{heading}{code} {told}\n"
        );
        silent(&[("a.txt", &text)]);
        let refused = format!("{text}Errors:\nHSCLA319 The client adapter 10 cannot be hosted.\n");
        let finding = top(&[("a.txt", &refused)], "hmc-refused");
        assert_eq!(finding.title, "the migration of erp1 (LPM) is refused: HSCLA319");
    }
}

#[test]
fn two_partitions_of_a_machine_with_the_same_wwpns() {
    let row = |name: &str, id: u8, slot: u8, wwpns: &str| {
        format!(
            "lpar_name={name},lpar_id={id},slot_num={slot},adapter_type=client,state=1,is_required=1,remote_lpar_id=1,remote_lpar_name=vioa,remote_slot_num=70,\"wwpns={wwpns}\"\n"
        )
    };
    let list = |machine: &str, rows: &[String]| {
        format!(
            "hscroot@hmc1:~> lshwres -r virtualio --rsubtype fc --level lpar -m {machine} | grep client\n{}",
            rows.concat()
        )
    };
    let one = row("erp", 7, 30, "c0507609aa100010,c0507609aa100011");
    let two = row("erp_test", 8, 30, "c0507609aa100010,c0507609aa100011");
    let finding =
        top(&[("a.txt", &list("S924", &[one.clone(), two.clone()]))], "client-wwpn-twice");
    assert_eq!(
        (finding.object.as_str(), finding.severity),
        ("erp and erp_test", Severity::Critical)
    );
    assert!(finding.reasoning[0].contains("c0:50:76:09:aa:10:00:10"), "{finding:?}");
    // Their own, one that was given another name, and a copy that waits on another machine.
    let own = row("erp_test", 8, 30, "c0507609aa100012,c0507609aa100013");
    silent(&[("a.txt", &list("S924", &[one.clone(), own]))]);
    let renamed = row("erp2", 7, 30, "c0507609aa100010,c0507609aa100011");
    silent(&[
        ("a.txt", &list("S924", std::slice::from_ref(&one))),
        ("b.txt", &list("S924", &[renamed])),
    ]);
    silent(&[("a.txt", &list("S924", &[one])), ("b.txt", &list("S922", &[two]))]);
}

#[test]
fn adapters_of_a_client_that_lead_to_one_vios_by_names_alone() {
    let list = |second: &str| {
        format!(
            "hscroot@hmc1:~> lshwres -r virtualio --rsubtype fc -m S924 --level lpar -F lpar_name,slot_num,adapter_type,remote_lpar_name,remote_slot_num\ndb1,20,client,vioa,20\ndb1,21,client,viob,21\napp1,30,client,vioa,30\napp1,31,client,{second},31\n"
        )
    };
    let finding = top(&[("a.txt", &list("vioa"))], "client-one-vios");
    assert_eq!(finding.title, "all virtual Fibre Channel adapters of app1 lead to vioa");
    silent(&[("a.txt", &list("viob"))]);
}
