//! `fcstat`, `fcstat -D`, `fcstat -client`, `lsnports`, `lsnportlogin`, the statistics of a virtual server adapter.

use planner::capture::{LoggedIn, NpivPort, Wwn, WwpnLogin, WwpnStatus};

use super::{assert_whole, at, fixture, only, read, read_bytes, value};

#[test]
fn a_physical_adapter() {
    let captures = read("fcstat-physical");
    assert_whole(&captures);
    let report = only(captures.fcstats());
    assert_eq!(at(&report.head.partition), ("viosa1".to_owned(), 1));
    assert_eq!(at(&report.head.device), ("fcs2".to_owned(), 4));
    assert_eq!(at(&report.head.command), ("fcstat fcs2".to_owned(), 2));
    assert_eq!((report.head.first.line, report.head.last), (4, 71));
    assert!(!value(&report.is_virtual));
    assert_eq!(value(&report.serial_number), "1D6470B2C1");
    assert_eq!(value(&report.firmware), "12.4.257.27");
    assert_eq!(at(&report.wwpn), (Wwn(0x1000_0010_9b4c_71d2), 11));
    assert_eq!(value(&report.wwpn).to_string(), "10:00:00:10:9b:4c:71:d2");
    assert_eq!(value(&report.wwnn), Wwn(0x2000_0010_9b4c_71d2));
    assert_eq!((value(&report.speed_supported_gbit), value(&report.speed_running_gbit)), (16, 8));
    assert_eq!(value(&report.port_fc_id), 0x002a_0c40);
    assert_eq!(value(&report.port_type), "Fabric");
    assert_eq!(value(&report.attention_type), "Link Up");
    assert_eq!(value(&report.seconds_since_reset), 2_592_311);
    assert_eq!(at(&report.frames.transmitted), (7_731_204_117, 34));
    assert_eq!(at(&report.frames.received), (18_446_220_093, 34));
    assert_eq!(value(&report.words.received), 9_116_002_385_920);
    let link = [
        &report.lip,
        &report.nos,
        &report.error_frames,
        &report.dumped_frames,
        &report.link_failures,
        &report.sync_losses,
        &report.signal_losses,
        &report.sequence_errors,
        &report.invalid_words,
        &report.invalid_crcs,
    ];
    assert_eq!(link.map(value), [0, 2, 11, 0, 3, 17, 5, 0, 219, 4]);
    assert_eq!(at(&report.resources.no_dma), (31, 53));
    assert_eq!(at(&report.resources.no_elements), (70_412, 54));
    assert_eq!(at(&report.resources.no_command), (18, 55));
    assert_eq!(value(&report.ip_resources.no_dma), 0);
    assert_eq!(report.ip_resources.no_command, None);
    assert_eq!(value(&report.traffic.input_requests), 913_004_418);
    assert_eq!(value(&report.traffic.output_requests), 401_772_093);
    assert_eq!(value(&report.traffic.control_requests), 271_155);
    assert_eq!(value(&report.traffic.input_bytes), 36_464_002_244_608);
    assert_eq!(value(&report.traffic.output_bytes), 13_220_611_219_456);
    assert_eq!(value(&report.ip_traffic.input_bytes), 0);
    assert_eq!(report.nvme_traffic.input_requests, None);
    assert_eq!(value(&report.max_transfer_bytes), 0x20_0000);
    assert_eq!(report.adapter_queue.active_high, None);
}

#[test]
fn a_virtual_adapter_with_its_queues_and_wrapped_lines() {
    let captures = read("fcstat-virtual-D");
    assert_whole(&captures);
    let report = only(captures.fcstats());
    assert_eq!(report.head.partition, None);
    assert!(value(&report.is_virtual));
    let kind = "Virtual Fibre Channel Client Adapter (adapter/vdevice/IBM,vfc-client)";
    assert_eq!(value(&report.device_type), kind);
    assert_eq!(report.speed_supported_gbit, None);
    assert_eq!(value(&report.speed_running_gbit), 16);
    assert_eq!(value(&report.long_term_dma_bytes), 0x80_0000);
    let queue = &report.adapter_queue;
    assert_eq!(
        [&queue.active, &queue.active_high, &queue.pending, &queue.pending_high, &queue.held_off]
            .map(value),
        [12, 200, 3, 811, 0]
    );
    assert_eq!(at(&queue.held_off_high), (7, 52));
    let queue = &report.protocol_queue;
    assert_eq!(
        [&queue.active, &queue.active_high, &queue.pending, &queue.pending_high].map(value),
        [14, 205, 1, 640]
    );
    assert_eq!(value(&report.resources.no_command), 88_123);
    assert_eq!(value(&report.traffic.output_bytes), 5_006_950_400);
    assert_eq!(report.max_transfer_bytes, None);
}

#[test]
fn the_older_names_of_fields() {
    let captures = read("fcstat-old");
    assert_whole(&captures);
    let report = only(captures.fcstats());
    assert_eq!(report.head.command, None);
    assert_eq!(value(&report.head.device), "fcs1");
    assert_eq!(value(&report.wwpn), Wwn(0x1000_0000_c95e_f010));
    assert_eq!(value(&report.port_fc_id), 0x0001_1e00);
    assert_eq!(value(&report.firmware), "Z1F2.70A5");
    assert_eq!((value(&report.frames.transmitted), value(&report.frames.received)), (640, 1280));
    assert_eq!(
        (value(&report.words.transmitted), value(&report.words.received)),
        (81_920, 163_840)
    );
    assert_eq!(value(&report.sequence_errors), 6);
    let resources = [
        &report.ip_resources.no_dma,
        &report.ip_resources.no_elements,
        &report.resources.no_dma,
        &report.resources.no_elements,
        &report.resources.no_command,
    ];
    assert_eq!(resources.map(value), [1, 2, 3, 4, 5]);
    assert_eq!(value(&report.ip_traffic.output_bytes), 10);
    assert_eq!(value(&report.traffic.input_requests), 11);
    assert_eq!(value(&report.traffic.output_bytes), 15);
}

#[test]
fn the_clients_of_a_server() {
    let captures = read("fcstat-client");
    assert_whole(&captures);
    let report = only(captures.fcstat_clients());
    assert_eq!(value(&report.head.partition), "viosa1");
    let [server, payroll, web] = &report.rows[..] else { panic!("three rows") };
    assert_eq!(
        (server.hostname.as_str(), server.device.as_str(), server.at.line),
        ("viosa1", "fcs0", 4)
    );
    assert_eq!(server.wwpn, Some(Wwn(0x1000_0010_9b4c_71d0)));
    assert_eq!(
        (server.input_requests, server.output_requests, server.control_requests),
        (55_120_031, 22_110_044, 10_021)
    );
    assert_eq!((server.input_bytes, server.output_bytes), (1_800_200_300_400, 900_100_200_300));
    assert_eq!(
        (server.no_dma, server.no_elements, server.no_command),
        (Some(0), Some(115), Some(0))
    );
    assert_eq!((payroll.hostname.as_str(), payroll.no_command), ("payroll", Some(88_123)));
    assert_eq!((web.device.as_str(), web.no_dma, web.output_bytes), ("fcs1", Some(4), 287_006_720));
}

#[test]
fn the_clients_of_a_server_in_eighty_columns_and_without_errors() {
    let captures = read("fcstat-client-80");
    assert_whole(&captures);
    let report = only(captures.fcstat_clients());
    let [server, payroll] = &report.rows[..] else { panic!("two rows") };
    assert_eq!((server.input_bytes, server.output_bytes, server.no_dma), (409_600, 819_200, None));
    assert_eq!((payroll.input_bytes, payroll.output_bytes, payroll.at.line), (167_936, 172_032, 5));
}

#[test]
fn ports_for_npiv() {
    let captures = read("lsnports");
    assert_whole(&captures);
    let report = only(captures.lsnports_all());
    let [first, second] = &report.ports[..] else { panic!("two ports") };
    let wanted = NpivPort {
        at: first.at,
        name: "fcs0".to_owned(),
        physloc: "U78D3.001.WZS0ABC-P1-C4-T1".to_owned(),
        fabric: true,
        ports_total: 64,
        ports_free: 61,
        wwpns_total: 2048,
        wwpns_free: 2040,
        label: None,
    };
    assert_eq!((first, first.at.line), (&wanted, 3));
    assert!(!second.fabric);
    assert_eq!(only(captures.levels()).level.value, "3.1.4.21");
}

#[test]
fn ports_with_labels_and_formatted() {
    let captures = read("lsnports-label");
    assert_whole(&captures);
    let report = only(captures.lsnports_all());
    assert_eq!(report.ports[0].label.as_deref(), Some("SAN A"));
    assert_eq!(
        (report.ports[1].ports_total, report.ports[1].ports_free, report.ports[1].label.as_deref()),
        (255, 251, None)
    );

    let captures = read("lsnports-fmt");
    assert_whole(&captures);
    let report = only(captures.lsnports_all());
    assert_eq!(value(&report.head.partition), "viosb2");
    assert_eq!((report.ports[0].name.as_str(), report.ports[0].wwpns_free), ("fcs0", 2040));
}

#[test]
fn a_virtual_server_adapter_with_channels() {
    let captures = read("vfchost-stats");
    assert_whole(&captures);
    let report = only(captures.vfc_stats_all());
    assert_eq!(value(&report.head.device), "vfchost3");
    assert_eq!((value(&report.command_queues), value(&report.channels)), (1, 2));
    let received: Vec<(u64, u32)> =
        report.commands_received.iter().map(|read| (read.value, read.at.line)).collect();
    assert_eq!(received, [(5, 6), (881_200, 7), (790_114, 8)]);
    let last = report.named.last().expect("lines");
    assert_eq!((last.name.as_str(), last.value), ("Commands from global pool", 17));
}

#[test]
fn a_virtual_server_adapter_with_one_queue() {
    let captures = read("vfchost-single");
    assert_whole(&captures);
    let report = only(captures.vfc_stats_all());
    assert_eq!(report.head.device, None);
    assert_eq!(value(&report.channels), 0);
    assert_eq!(report.commands_received[0].value, 4_100_200_300);
}

/// Number, slot, status and who logged in.
fn login(login: &WwpnLogin) -> (u64, u32, WwpnStatus, LoggedIn) {
    (
        login.wwpn.expect("a name").0,
        value(&login.slot),
        value(&login.status),
        value(&login.logged_in),
    )
}

#[test]
fn logins_of_both_wwpns() {
    let captures = read("lsnportlogin");
    assert_whole(&captures);
    let report = only(captures.lsnportlogins());
    assert_eq!(at(&report.system), ("S924-B".to_owned(), 1));
    assert_eq!(report.head.partition, None);
    assert_eq!((report.head.first.line, report.head.last), (2, 5));
    assert_eq!(
        report.wwpns.iter().map(login).collect::<Vec<_>>(),
        [
            (0xc050_7609_aa10_0010, 20, WwpnStatus::Active, LoggedIn::Client),
            (0xc050_7609_aa10_0011, 20, WwpnStatus::Inactive, LoggedIn::None),
            (0xc050_7609_aa10_0012, 21, WwpnStatus::Active, LoggedIn::Vios),
            (0xc050_7609_aa10_0013, 21, WwpnStatus::Unknown, LoggedIn::None),
        ]
    );
    let [first, _, third, fourth] = &report.wwpns[..] else { panic!("four WWPNs") };
    assert_eq!(at(&first.partition), ("payroll".to_owned(), 2));
    assert_eq!((value(&first.partition_id), value(&first.profile).as_str()), (5, "default"));
    assert_eq!((first.reason.as_ref(), third.at.line), (None, 4));
    assert_eq!(value(&third.profile), "last*valid*configuration");
    assert_eq!(at(&fourth.reason), ("no answer from viosa2, RMC is down".to_owned(), 5));
}

#[test]
fn logins_in_eighty_columns() {
    let captures = read("lsnportlogin-80");
    assert_whole(&captures);
    let report = only(captures.lsnportlogins());
    assert_eq!((report.head.first.line, report.head.last), (2, 8));
    assert_eq!(
        report.wwpns.iter().map(login).collect::<Vec<_>>(),
        [
            (0xc050_7609_aa10_0010, 20, WwpnStatus::Active, LoggedIn::Client),
            (0xc050_7609_aa10_0011, 20, WwpnStatus::Inactive, LoggedIn::None),
            (0xc050_7609_aa10_0013, 21, WwpnStatus::Unknown, LoggedIn::None),
        ]
    );
    assert_eq!(value(&report.wwpns[2].reason), "no answer from viosa2, RMC is down");
}

#[test]
fn logins_without_their_command_and_with_values_nobody_knows() {
    let text = String::from_utf8(fixture("lsnportlogin")).expect("UTF-8");
    let (_, rows) = text.split_once('\n').expect("a command");
    let captures = read_bytes(rows.as_bytes());
    assert_whole(&captures);
    let report = only(captures.lsnportlogins());
    assert_eq!((report.wwpns.len(), &report.system), (4, &None));

    let odd = rows.replacen("wwpn_status=1", "wwpn_status=7", 1);
    let captures = read_bytes(odd.as_bytes());
    let report = only(captures.lsnportlogins());
    assert_eq!((report.wwpns.len(), report.wwpns[0].status), (4, None));
    assert_eq!(report.head.unread.iter().map(|unread| unread.at.line).collect::<Vec<_>>(), [1]);

    let captures = read_bytes(format!("{rows}and then we rang the storage team\n").as_bytes());
    let report = only(captures.lsnportlogins());
    assert_eq!((report.wwpns.len(), report.head.unread[0].at.line), (4, 5));
    assert_eq!(value(&report.wwpns[3].reason), "no answer from viosa2, RMC is down");
}

#[test]
fn logins_in_fields_of_ones_own_are_refused() {
    let text = b"hscroot@hmc1:~> lsnportlogin -m S1 -F wwpn,wwpn_status\nc0507609aa100010,1\n";
    let captures = read_bytes(text);
    assert_eq!((captures.reports.len(), captures.refused.len()), (0, 1));
    assert!(captures.refused[0].why.contains("without -F"));
}

#[test]
fn a_login_whose_name_was_made_unreadable_keeps_its_row() {
    let text = String::from_utf8(fixture("lsnportlogin")).expect("UTF-8");
    let captures = read_bytes(text.replace("c0507609aa100013", "0xC050760XXXXXXXXX").as_bytes());
    assert_whole(&captures);
    let report = only(captures.lsnportlogins());
    assert_eq!(report.wwpns.len(), 4);
    let row = &report.wwpns[3];
    assert_eq!((row.wwpn, value(&row.slot), value(&row.status)), (None, 21, WwpnStatus::Unknown));
    let masked = &report.head.masked[0];
    assert_eq!((masked.at.line, masked.field.as_str()), (5, "wwpn"));
    assert_eq!(masked.text, "0xC050760XXXXXXXXX");
    // What is neither a name nor a mask is no row.
    let captures = read_bytes(text.replace("c0507609aa100013", "c05076").as_bytes());
    assert_eq!(only(captures.lsnportlogins()).wwpns.len(), 3);
}

#[test]
fn where_the_time_of_commands_goes() {
    // Composed: the layout is known by words and pictures only.
    let captures = read("fcstat-l");
    assert_whole(&captures);
    let report = only(captures.fc_latencies());
    assert_eq!(value(&report.head.device), "fcs0");
    assert_eq!(report.rows.len(), 3);
    let row = &report.rows[0];
    assert_eq!((row.completion.as_str(), row.unit_ms, row.at.line), ("Read", Some(0.001), 7));
    assert_eq!((value(&row.count), value(&row.average)), (81_230.0, 24_100.0));
    assert_eq!((value(&row.san), value(&row.vios)), (22_800.0, 900.0));
    assert_eq!((value(&row.hypervisor), value(&row.adapter)), (250.0, 150.0));
    assert_eq!(value(&row.longest), 310_220.0);
    // What does not fit the columns is kept.
    let text = String::from_utf8(fixture("fcstat-l")).expect("UTF-8");
    let odd = text.replace("Write          10022 ", "Write ");
    let captures = read_bytes(odd.as_bytes());
    let report = only(captures.fc_latencies());
    assert_eq!((report.rows.len(), report.head.unread.len()), (2, 1));
}

/// The order of what stands under headings is always the same: `egrep` may take the headings away.
#[test]
fn queues_and_traffic_without_their_headings() {
    let queue = |high: u32| {
        format!(
            "    High water mark  of active commands:   {high}\n    High water mark of pending commands:   {}\n",
            high / 2
        )
    };
    let requests = |count: u32| format!("  Input Requests:   {count}\n  Output Requests:  7\n");
    let typed = "db1:/ # fcstat -D fcs1 | egrep 'High water|Requests'\n";
    let read = |text: String| super::read_bytes(format!("{typed}{text}").as_bytes());
    let captures = read(format!("{}{}{}{}", queue(500), queue(902), requests(0), requests(4711)));
    let report = captures.fcstats().next().unwrap();
    assert_eq!(report.adapter_queue.active_high.unwrap().value, 500);
    assert_eq!(report.protocol_queue.pending_high.unwrap().value, 451);
    assert_eq!(report.ip_traffic.input_requests.unwrap().value, 0);
    assert_eq!(report.traffic.input_requests.unwrap().value, 4711);
    assert!(report.head.unread.is_empty());
    // Of one alone nobody can say which it is.
    let captures = read(format!("{}{}", queue(500), requests(4711)));
    let report = captures.fcstats().next().unwrap();
    assert!(report.adapter_queue.active_high.is_none() && report.traffic.input_requests.is_none());
    assert!(report.head.incomplete.as_ref().unwrap().contains("cannot be told"));
}

/// A loop over the numbers of adapters prints a report of each, also where nothing but single lines is left of it.
#[test]
fn a_loop_over_numbers() {
    for typed in ["fcstat fcs$i", "fcstat fcs${i}", "fcstat \"fcs$i\""] {
        let text = format!(
            "vio1:/ # for i in 0 1; do echo fcs$i; {typed} | egrep 'Speed|Invalid'; done\nfcs0\nPort Speed (running):   8 GBIT\nInvalid Tx Word Count: 12\nfcs1\nPort Speed (running):   16 GBIT\nInvalid Tx Word Count: 3\n"
        );
        let captures = super::read_bytes(text.as_bytes());
        let told = captures.fcstats().map(|report| {
            let device = report.head.device.as_ref().unwrap().value.as_str();
            (device, report.invalid_words.unwrap().value)
        });
        assert_eq!(told.collect::<Vec<_>>(), [("fcs0", 12), ("fcs1", 3)], "{typed}");
    }
}
