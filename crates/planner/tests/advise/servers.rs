//! What two servers of one machine give to its clients: one disk to two of them, all to one over one server, a VLAN to nobody.

use planner::advise::Severity;

use super::remedies::server;
use super::{advice, silent, top};

/// `lsmap -all` of a server: adapters with the client's number, and for each the target and what is behind it.
fn targets(vios: u32, adapters: &[(u32, &[(&str, &str)])]) -> String {
    let mut text = format!("$ hostname\nlyra{vios}\n$ ioslevel\n3.1.4.31\n$ lsmap -all\n");
    for (at, (client, devices)) in adapters.iter().enumerate() {
        text += &format!(
            "SVSA            Physloc                                      Client Partition ID\n--------------- -------------------------------------------- ------------------\nvhost{at}          U9009.42A.78F11AB-V{vios}-C2{at}                     0x{client:08x}\n\n"
        );
        for (lun, (name, behind)) in devices.iter().enumerate() {
            text += &format!(
                "VTD                   {name}\nStatus                Available\nLUN                   0x8{lun}00000000000000\nBacking device        {behind}\nPhysloc               U78D3.001.WZS0F1C-P1-C4-T1-W500507680B214C01-L{lun}000000000000\nMirrored              false\n\n"
            );
        }
    }
    text
}

/// A disk's attributes, printed on the server before.
fn disk(name: &str, policy: &str, id: &str) -> String {
    format!(
        "$ lsdev -dev {name} -attr\nattribute       value       description     user_settable\n\nreserve_policy  {policy} Reserve Policy  True\nunique_id       {id} Unique device identifier False\n"
    )
}

/// Two clients with one disk lose it, whatever the server thinks of reservations.
#[test]
fn a_disk_of_two_clients_is_told() {
    let twice = targets(
        1,
        &[
            (3, &[("a_rvg", "hdisk5"), ("a_data", "hdisk7")]),
            (4, &[("b_rvg", "hdisk6"), ("b_data", "hdisk7")]),
        ],
    );
    let finding = top(&[("a", &twice)], "vscsi-shared-backing");
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(finding.object, "hdisk7 on lyra1");
    assert!(finding.reasoning[0].contains("vhost0 on lyra1 (a_data, partition 3)"), "{finding:#?}");
    // A logical volume is no better; a disc in two drives is no harm, and what one client has twice is its own affair.
    top(
        &[("a", &targets(1, &[(3, &[("a", "lv_data")]), (4, &[("b", "lv_data")])]))],
        "vscsi-shared-backing",
    );
    silent(&[(
        "a",
        &targets(
            1,
            &[
                (3, &[("vtopt0", "/var/vio/VMLibrary/aix73.iso")]),
                (4, &[("vtopt1", "/var/vio/VMLibrary/aix73.iso")]),
            ],
        ),
    )]);
    silent(&[("a", &targets(1, &[(3, &[("a", "hdisk7")]), (3, &[("b", "hdisk7")])]))]);
    silent(&[(
        "a",
        &targets(
            1,
            &[
                (3, &[("cd_a", "/var/vio/VMLibrary/AIX73_DVD1")]),
                (4, &[("cd_b", "/var/vio/VMLibrary/AIX73_DVD1")]),
            ],
        ),
    )]);
    // An adapter whose client is gone, as after a migration, has nobody who writes.
    silent(&[("a", &targets(1, &[(3, &[("a", "hdisk7")]), (0, &[("b", "hdisk7")])]))]);
}

/// The same LUN has another name on the second server.
#[test]
fn a_disk_of_two_clients_is_told_over_two_servers() {
    let one = |client| {
        targets(1, &[(client, &[("a", "hdisk7")])]) + &disk("hdisk7", "no_reserve", "3321LUN7")
    };
    let two = |client, id: &str| {
        targets(2, &[(client, &[("b", "hdisk9")])]) + &disk("hdisk9", "no_reserve", id)
    };
    let finding = top(&[("1", &one(3)), ("2", &two(4, "3321LUN7"))], "vscsi-shared-backing");
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(advice(&[("1", &one(3)), ("2", &two(4, "3321LUN7"))]).findings.len(), 1);
    silent(&[("1", &one(3)), ("2", &two(3, "3321LUN7"))]);
    silent(&[("1", &one(3)), ("2", &two(4, "3321LUN8"))]);
}

/// A cluster's clients have several disks together, which nothing reserves.
#[test]
fn disks_of_a_cluster_are_a_note() {
    let cluster = |policy: &str| {
        targets(
            1,
            &[
                (3, &[("a1", "hdisk7"), ("a2", "hdisk8")]),
                (4, &[("b1", "hdisk7"), ("b2", "hdisk8")]),
            ],
        ) + &disk("hdisk7", policy, "3321LUN7")
            + &disk("hdisk8", policy, "3321LUN8")
    };
    let notes = advice(&[("a", &cluster("no_reserve"))]).findings;
    assert_eq!(notes.len(), 2);
    assert!(notes.iter().all(|note| note.severity == Severity::Note), "{notes:#?}");
    silent(&[("a", &cluster("PR_shared"))]);
}

/// One client of three that was given to one server only.
#[test]
fn a_client_that_one_server_has_is_told_by_the_mappings() {
    let all = [("altair", 3), ("deneb", 4), ("vega", 5)];
    let [one, two] = [server(1, "0x100000", &all), server(2, "0x100000", &all[..2])];
    let finding = top(&[("1", &one), ("2", &two)], "client-one-vios");
    assert_eq!((&*finding.object, &*finding.system), ("vega", "lyra1"));
    assert!(finding.reasoning[0].contains("2 other clients"), "{finding:#?}");
    // Its disks over the second server may come another way.
    let scsi =
        two.clone() + &targets(2, &[(5, &[("v", "hdisk3")])]) + &disk("hdisk3", "no_reserve", "1");
    silent(&[("1", &(one.clone() + &targets(1, &[]))), ("2", &scsi)]);
    // Where every second client has one server, it is how the site does it; and of one server alone nothing is known.
    silent(&[("1", &one), ("2", &server(2, "0x100000", &all[..1]))]);
    silent(&[("1", &one)]);
}

/// Adapters to two servers, and paths over one of them.
#[test]
fn paths_over_one_server_of_two_are_told() {
    let all = [("altair", 3), ("deneb", 4)];
    let [one, two] = [server(1, "0x100000", &all), server(2, "0x100000", &all)];
    let cut = |last: &str| {
        format!("altair:/> lspath\nEnabled hdisk0 fscsi0\nEnabled hdisk1 fscsi0\n{last}")
    };
    let paths = |last: &str| cut(last) + "altair:/> oslevel -s\n7200-05-03-2148\n";
    let finding = top(&[("1", &one), ("2", &two), ("a", &paths(""))], "client-paths-one-vios");
    assert_eq!(finding.title, "all disks of altair are reached over lyra1 alone");
    assert!(finding.reasoning[0].contains("fscsi1 of lyra2"), "{finding:#?}");
    // A list at the end of a file may go on.
    silent(&[("1", &one), ("2", &two), ("a", &cut(""))]);
    let both = paths("Enabled hdisk0 fscsi1\nEnabled hdisk1 fscsi1\n");
    silent(&[("1", &one), ("2", &two), ("a", &both)]);
    // Over an adapter that no mapping names there may be another server.
    silent(&[
        ("1", &one),
        ("2", &two),
        ("a", &paths("Enabled hdisk0 fscsi5\nEnabled hdisk1 fscsi5\n")),
    ]);
    // A list that was cut says nothing of what is not in it.
    silent(&[
        ("1", &one),
        ("2", &two),
        ("a", &paths("").replace("lspath\n", "lspath | grep fscsi0\n")),
    ]);
}

/// An adapter of a client, and the trunk adapter of a shared one.
fn network(vlan: u32, received: u64) -> [String; 2] {
    let adapter = |name: &str,
                   mac: &str,
                   packets: (u64, u64),
                   own: u32,
                   more: &str,
                   trunk: &str| {
        format!(
            "ETHERNET STATISTICS ({name}) :\nDevice Type: Virtual I/O Ethernet Adapter (l-lan)\nHardware Address: {mac}\nElapsed Time: 12 days 0 hours 0 minutes 0 seconds\n\nTransmit Statistics:                          Receive Statistics:\n--------------------                          -------------------\nPackets: {sent:<45} Packets: {heard}\n\nVirtual I/O Ethernet Adapter (l-lan) Specific Statistics:\n---------------------------------------------------------\n{trunk}LAN State: Operational\n\nInvalid VLAN ID Packets: 0\n\nPort VLAN ID: {own:>5}\nVLAN Tag IDs:  {more}\n\nSwitch ID: ETHERNET0\n\n",
            sent = packets.0,
            heard = packets.1
        )
    };
    let place = |vios: u32| {
        format!("  ent5  U9009.42A.78F11AB-V{vios}-C5-T1  Virtual I/O Ethernet Adapter (l-lan)\n")
    };
    let client = format!(
        "altair:/> lscfg -l ent0\n  ent0             U9009.42A.78F11AB-V3-C4-T1  Virtual I/O Ethernet Adapter (l-lan)\naltair:/> entstat -d ent0\n{}",
        adapter("ent0", "3a:11:20:0c:41:02", (8812, received), vlan, "None", "")
    );
    let vios = format!(
        "lyra1:/> lscfg -l ent5\n{}lyra1:/> entstat -all ent8\nETHERNET STATISTICS (ent8) :\nDevice Type: Shared Ethernet Adapter\nHardware Address: 98:be:94:6b:21:10\nElapsed Time: 85 days 0 hours 0 minutes 0 seconds\n\nStatistics for adapters in the Shared Ethernet Adapter ent8\n-----------------------------------------------------------\nNumber of adapters: 1\nSEA Flags: 00000001\n    < THREAD >\nVLAN Ids :\n    ent5: 1 110 120\n\nVirtual Adapter: ent5\n\n{}",
        place(1),
        adapter(
            "ent5",
            "3a:11:20:0c:41:05",
            (70_000_000, 90_000_000),
            1,
            "110 120",
            "Trunk Adapter: True\n  Priority: 1  Active: True\n"
        )
    );
    [client, vios]
}

/// A client whose VLAN no shared adapter of its machine is in, and that hears nobody.
#[test]
fn a_vlan_that_is_bridged_nowhere_is_told() {
    let [client, vios] = network(210, 0);
    let finding = top(&[("a", &client), ("b", &vios)], "net-vlan");
    assert_eq!(finding.title, "no shared adapter of the machine bridges VLAN 210 of ent0");
    // Who hears somebody is in a network within the machine.
    let [client, vios] = network(210, 400);
    silent(&[("a", &client), ("b", &vios)]);
    let [client, vios] = network(120, 0);
    silent(&[("a", &client), ("b", &vios)]);
    // Of another machine nothing is known.
    let [client, vios] = network(210, 0);
    silent(&[("a", &client.replace("78F11AB", "78F11AC")), ("b", &vios)]);
}

/// The same by the HMC's list, where an adapter is alone in its VLAN.
#[test]
fn an_adapter_that_is_alone_in_its_vlan_is_told() {
    let row = |name: &str, id: u32, slot: u32, trunk: u32, vlan: u32, more: &str| {
        let more = if more == "none" {
            "addl_vlan_ids=none".to_owned()
        } else {
            format!("\"addl_vlan_ids={more}\"")
        };
        format!(
            "lpar_name={name},lpar_id={id},slot_num={slot},state=1,is_required=0,is_trunk={trunk},ieee_virtual_eth=1,port_vlan_id={vlan},vswitch=ETHERNET0,{more},mac_addr=3A112{id}0C41{slot:02}\n"
        )
    };
    let list = |rows: &str, command: &str| {
        format!(
            "hscroot@hmc1:~> {command}\n{}{}{}{}{rows}",
            row("lyra1", 1, 5, 1, 1, "110,120"),
            row("lyra2", 2, 5, 1, 1, "110,120"),
            row("lyra1", 1, 7, 0, 99, "none"),
            row("lyra2", 2, 7, 0, 99, "none")
        )
    };
    let all = "lshwres -r virtualio --rsubtype eth -m S922 --level lpar";
    let alone = row("altair", 3, 4, 0, 210, "none");
    let finding = top(&[("a", &list(&alone, all))], "net-vlan");
    assert_eq!(finding.object, "altair");
    assert!(finding.reasoning[0].contains("in slot 4 is in VLAN 210"), "{finding:#?}");
    let beside = alone.clone() + &row("deneb", 4, 4, 0, 210, "none");
    silent(&[("a", &list(&beside, all))]);
    silent(&[("a", &list(&row("altair", 3, 4, 0, 120, "none"), all))]);
    silent(&[("a", &list(&alone, &format!("{all} --filter lpar_names=lyra1,lyra2,altair")))]);
}

/// What keeps the client's path out is told before the path.
#[test]
fn a_reservation_that_a_path_may_be_down_for_comes_first() {
    let one = targets(1, &[(3, &[("a", "hdisk7")])]) + &disk("hdisk7", "single_path", "3321LUN7");
    let two = targets(2, &[(3, &[("a", "hdisk7")])]) + &disk("hdisk7", "no_reserve", "3321LUN7");
    let paths =
        |host: &str| format!("{host}:/> lspath\nEnabled hdisk0 vscsi0\nFailed  hdisk0 vscsi1\n");
    let files = [("1", &*one), ("2", &*two), ("a", &*paths("altair"))];
    let finding = top(&files, "disk-reserve-policy");
    assert_eq!(finding.severity, Severity::Critical);
    assert!(
        finding
            .reasoning
            .last()
            .unwrap()
            .starts_with("1 of 2 paths of altair, all those over vscsi1, are down now"),
        "{finding:#?}"
    );
    let all = advice(&files).findings;
    assert!(
        all[1].reasoning.last().unwrap().contains("hdisk7 on lyra1 may be the cause"),
        "{:#?}",
        all[1]
    );
    // Of two clients it is not known which one it is.
    let other = paths("deneb").replace("Failed ", "Enabled");
    top(&[("1", &one), ("2", &two), ("a", &paths("altair")), ("b", &other)], "disk-paths-failed");
}

/// Where no server moves partitions, that is worth knowing and no fault.
#[test]
fn a_machine_without_a_mover_service_partition_is_a_note() {
    let list = |one: u32, two: u32| {
        format!(
            "hscroot@hmc1:~> lssyscfg -r lpar -m S922 -F name,lpar_id,lpar_env,state,msp,rmc_state\nlyra1,1,vioserver,Running,{one},active\nlyra2,2,vioserver,Running,{two},active\naltair,3,aixlinux,Running,null,active\n"
        )
    };
    let finding = top(&[("a", &list(0, 0))], "partition-state");
    assert_eq!(finding.severity, Severity::Note);
    assert!(finding.title.ends_with("is a mover service partition"), "{finding:#?}");
    silent(&[("a", &list(0, 1))]);
}
