//! `entstat`, `seastat`.

use super::{assert_whole, at, only, read, read_bytes, value};

#[test]
fn a_shared_adapter_and_everything_below_it() {
    let captures = read("entstat-sea");
    let report = only(captures.entstats());
    assert_eq!(value(&report.head.device), "ent12");
    assert_eq!(report.head.incomplete, None);
    assert_eq!(captures.unread, []);
    // The one line that no reader knows is kept with its number.
    let unread: Vec<(u32, &str)> =
        report.head.unread.iter().map(|unread| (unread.at.line, unread.text.as_str())).collect();
    assert_eq!(unread, [(137, "Device-Specific Widget Count: 12")]);
    let names: Vec<&str> =
        report.adapters.iter().map(|adapter| adapter.name.value.as_str()).collect();
    assert_eq!(names, ["ent12", "ent0", "ent8", "ent9"]);
    let shared = &report.adapters[0];
    assert_eq!(value(&shared.device_type), "Shared Ethernet Adapter");
    assert_eq!(value(&shared.mac), "98:be:94:11:22:33");
    assert_eq!(at(&shared.elapsed_seconds), (12 * 86_400 + 3 * 3_600 + 4 * 60 + 5, 6));
    assert_eq!(
        (value(&shared.transmitted.packets), value(&shared.received.packets)),
        (410_223, 520_334)
    );
    assert_eq!(
        (value(&shared.transmitted.bytes), value(&shared.received.bytes)),
        (61_533_450, 104_066_800)
    );
    assert_eq!((value(&shared.transmitted.errors), value(&shared.received.errors)), (1, 2));
    assert_eq!((value(&shared.transmitted.dropped), value(&shared.received.dropped)), (3, 4));
    assert_eq!((value(&shared.queue_max), value(&shared.queue_overflow)), (9, 7));
    assert_eq!((value(&shared.received.no_resource), shared.transmitted.no_resource), (66, None));
    assert_eq!((value(&shared.reset_count), value(&shared.data_rate)), (2, 20_000));
    let flags = [
        "Up",
        "Broadcast",
        "Running",
        "Simplex",
        "64BitSupport",
        "ChecksumOffload",
        "LargeSend",
        "DataRateSet",
    ];
    assert_eq!(shared.driver_flags, flags);
    assert_eq!(shared.virtual_adapter, None);
    let real = &report.adapters[1];
    assert_eq!(
        (value(&real.link_status).as_str(), value(&real.speed).as_str()),
        ("Up", "10 Gbps Full Duplex")
    );
    assert_eq!((value(&real.received.bytes), value(&real.no_mbuf_errors)), (903, 5));
}

#[test]
fn the_bridge_itself() {
    let captures = read("entstat-sea");
    let sea = only(captures.entstats()).sea.as_ref().expect("a shared adapter");
    assert_eq!(at(&sea.name), ("ent12".to_owned(), 46));
    assert_eq!((value(&sea.adapter_count), value(&sea.flags)), (3, 0x13));
    let flags: Vec<&str> = sea.flag_names.iter().map(|read| read.value.as_str()).collect();
    assert_eq!(flags, ["THREAD", "LARGESEND", "LARGE_RECEIVE"]);
    let vlans: Vec<(&str, &[u16], u32)> = sea
        .vlans
        .iter()
        .map(|trunk| (trunk.adapter.as_str(), trunk.vlans.as_slice(), trunk.at.line))
        .collect();
    assert_eq!(vlans, [("ent8", &[100_u16][..], 54), ("ent10", &[101, 200, 201], 55)]);
    let real = &sea.real_side;
    let real = [
        &real.received,
        &real.bridged,
        &real.consumed,
        &real.fragmented,
        &real.transmitted,
        &real.dropped,
        &real.filtered_vlan,
        &real.filtered_reserved,
    ];
    assert_eq!(real.map(value), [1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008]);
    assert_eq!(
        (value(&sea.virtual_side.received), value(&sea.virtual_side.filtered_vlan)),
        (2001, 2007)
    );
    assert_eq!(sea.virtual_side.filtered_reserved, None);
    let other = [
        &sea.output_generated,
        &sea.output_dropped,
        &sea.output_failures,
        &sea.memory_failures,
        &sea.icmp_errors_sent,
        &sea.larger_than_mtu,
        &sea.thread_overflow,
    ];
    assert_eq!(other.map(value), [3001, 3002, 3003, 3004, 3005, 3006, 3007]);
    let threads: Vec<(u32, u64, u64, u64, u64, u64)> = sea
        .threads
        .iter()
        .map(|thread| {
            let all =
                [&thread.dropped, &thread.queued, &thread.average, &thread.count, &thread.max]
                    .map(value);
            (thread.index, all[0], all[1], all[2], all[3], all[4])
        })
        .collect();
    assert_eq!(threads, [(0, 40, 41, 42, 43, 44), (1, 50, 51, 52, 53, 54)]);
    assert_eq!(value(&sea.real_adapter), "ent0");
    assert_eq!(sea.virtual_adapters[0].value, "ent8");
    assert_eq!(value(&sea.control_adapter), "ent9");
}

#[test]
fn failover() {
    let captures = read("entstat-sea");
    let sea = only(captures.entstats()).sea.as_ref().expect("a shared adapter");
    let failover = sea.failover.as_ref().expect("failover is configured");
    assert_eq!(value(&failover.control_vlan), 4000);
    let counts = [
        &failover.control_in,
        &failover.control_out,
        &failover.keep_alive,
        &failover.recovery,
        &failover.notify,
        &failover.limbo,
        &failover.became_backup,
        &failover.became_primary,
    ];
    assert_eq!(counts.map(value), [605, 44_164, 456, 1, 2, 3, 6, 5]);
    assert_eq!(
        (value(&failover.state).as_str(), value(&failover.bridge_mode).as_str()),
        ("BACKUP", "None")
    );
    assert_eq!((value(&failover.mode).as_str(), value(&failover.priority)), ("Auto", 2));
}

#[test]
fn virtual_adapters() {
    let captures = read("entstat-sea");
    let report = only(captures.entstats());
    let trunk = report.adapters[2].virtual_adapter.as_ref().expect("virtual");
    assert_eq!((value(&trunk.port_vlan), value(&trunk.vlans)), (100, vec![101, 200, 201]));
    assert_eq!(
        (value(&trunk.trunk), value(&trunk.priority), value(&trunk.active)),
        (true, 2, false)
    );
    assert_eq!(value(&trunk.switch), "ETHERNET0");
    assert_eq!((value(&trunk.send_failures), value(&trunk.receive_failures)), (21, 22));
    let kinds: Vec<&str> = trunk.buffers.iter().map(|buffers| buffers.kind.as_str()).collect();
    assert_eq!(kinds, ["Tiny", "Small", "Medium", "Large", "Huge"]);
    let huge = &trunk.buffers[4];
    let huge = [
        &huge.min,
        &huge.max,
        &huge.allocated,
        &huge.registered,
        &huge.max_allocated,
        &huge.lowest_registered,
    ];
    assert_eq!(huge.map(value), [25, 65, 24, 23, 64, 21]);
    assert_eq!(value(&trunk.buffers[1].max), 2049);
    let control = report.adapters[3].virtual_adapter.as_ref().expect("virtual");
    assert_eq!(
        (value(&control.trunk), value(&control.port_vlan), value(&control.vlans)),
        (false, 4000, vec![])
    );
    assert_eq!(control.priority, None);
}

#[test]
fn an_adapter_of_a_client() {
    let captures = read("entstat-aix");
    assert_whole(&captures);
    let report = only(captures.entstats());
    assert_eq!(
        (value(&report.head.partition).as_str(), value(&report.head.device).as_str()),
        ("web7", "en0")
    );
    assert_eq!(report.sea, None);
    let adapter = &report.adapters[0];
    assert_eq!(value(&adapter.elapsed_seconds), 630);
    assert_eq!((value(&adapter.transmitted.dropped), value(&adapter.received.dropped)), (15, 16));
}

#[test]
fn clients_of_the_bridge() {
    let captures = read("seastat");
    assert_whole(&captures);
    let report = only(captures.seastats());
    assert_eq!(value(&report.head.device), "ent12");
    let [plain, tagged] = &report.clients[..] else { panic!("two clients") };
    assert_eq!(
        (plain.mac.as_str(), plain.vlan, plain.hostname.as_ref()),
        ("42:D0:7A:00:55:02", None, None)
    );
    assert_eq!((value(&plain.transmitted_packets), value(&plain.received_packets)), (70, 2752));
    assert_eq!(
        (value(&tagged.vlan), value(&tagged.vlan_priority), value(&tagged.ip).as_str()),
        (200, 3, "192.0.2.40")
    );
    assert_eq!(value(&tagged.hostname), "payroll.example.com");
    assert_eq!((value(&tagged.transmitted_bytes), at(&tagged.received_bytes)), (3, (4, 33)));
}

/// Files of the systems from the field.
fn field_files(folder: &std::path::Path, out: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            field_files(&path, out);
        } else if !path
            .extension()
            .is_some_and(|ext| ["toml", "md", "eml", "log"].iter().any(|other| ext == *other))
        {
            out.push(path);
        }
    }
}

#[test]
fn reports_from_the_field_are_read_line_by_line() {
    let folder = format!("{}/tests/field", env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    field_files(folder.as_ref(), &mut files);
    files.sort();
    let mut left = Vec::new();
    for file in &files {
        let captures = super::read_bytes(&std::fs::read(file).expect("readable"));
        for report in &captures.reports {
            for unread in &report.head().unread {
                left.push(format!(
                    "{}:{} {}: {} ({})",
                    file.display(),
                    unread.at.line,
                    report.command(),
                    unread.text,
                    unread.why
                ));
            }
        }
    }
    // What a mail says below, an error's number, and a number that is cut are no lines of a report.
    let said = ["Gruß", "errno: 00000045", "the file ends in this line; its value may be cut"];
    left.retain(|one| !said.iter().any(|words| one.contains(words)));
    assert_eq!(left, [] as [String; 0]);
}

/// The only aggregation and its members.
#[test]
fn an_aggregation_and_its_members() {
    let path = format!(
        "{}/tests/field/faulty/08-lacp-one-side-without-partner/viohel2.txt",
        env!("CARGO_MANIFEST_DIR")
    );
    let captures = super::read_bytes(&std::fs::read(path).expect("readable"));
    let report = only(captures.entstats());
    let named = |name: &str| {
        report.adapters.iter().find(|adapter| adapter.name.value == name).expect("the adapter")
    };
    let of = named("ent7").aggregation.as_ref().expect("an aggregation");
    assert_eq!((value(&of.adapters), value(&of.status).as_str()), (2, "Aggregated"));
    assert_eq!(of.members, ["ent0", "ent1"]);
    let (good, bad) =
        (named("ent0").lacp.as_ref().expect("LACP"), named("ent1").lacp.as_ref().expect("LACP"));
    assert_eq!(value(&good.partner.system), "00-23-04-EE-BE-0A");
    assert_eq!((value(&good.actor.defaulted), value(&good.received)), (false, 120_961));
    assert_eq!(value(&bad.partner.system), "00-00-00-00-00-00");
    assert_eq!((value(&bad.actor.defaulted), value(&bad.actor.expired)), (true, true));
    assert_eq!(
        (value(&bad.partner.in_sync), value(&bad.received), value(&bad.transmitted)),
        (false, 0, 120_966)
    );
    assert!(report.sea.is_some());
    // The part that the driver prints is kept line by line.
    assert!(named("ent0").details.iter().any(|detail| detail.name.as_ref() == "Physical Port MTU"));
    assert_eq!(value(&named("ent0").logical_link_status), "Up");
}

#[test]
fn counters_of_both_directions() {
    let text = "ETHERNET STATISTICS (ent0) :\nDevice Type: 2-Port Adapter\n\nTransmit Statistics:                          Receive Statistics:\n--------------------                          -------------------\nPackets: 10                                   Packets: 20\nNo Carrier Sense: 1                           CRC Errors: 2\nDMA Underrun: 3                               DMA Overrun: 4\nLost CTS Errors: 0                            Alignment Errors: 0\nMax Collision Errors: 0                       No Resource Errors: 5\nTimeout Errors: 6                             Packets Discarded by Adapter: 7\n\nGeneral Statistics:\n-------------------\nDriver Flags: Up Broadcast Running\n\tSimplex\n";
    let captures = super::read_bytes(text.as_bytes());
    let adapter = &only(captures.entstats()).adapters[0];
    let (sent, received) = (adapter.transmitted, adapter.received);
    assert_eq!((value(&sent.no_carrier), value(&sent.dma), value(&sent.timeouts)), (1, 3, 6));
    assert_eq!(
        (
            value(&received.crc),
            value(&received.dma),
            value(&received.no_resource),
            value(&received.discarded)
        ),
        (2, 4, 5, 7)
    );
}

#[test]
fn what_a_virtual_adapter_says_of_its_memory_is_read() {
    let captures = read("entstat-memory");
    assert_whole(&captures);
    let adapter = &only(captures.entstats()).adapters[0];
    let own = adapter.virtual_adapter.as_ref().unwrap();
    let mode = own.buffer_mode.as_ref().unwrap();
    assert_eq!((mode.value.as_str(), mode.at.line), ("Min", 84));
    let totals =
        [own.vrm_minimum_kb, own.vrm_desired_kb, own.dma_max_min_kb].map(|read| value(&read));
    assert_eq!(totals, [15716, 61540, 69760]);
    assert_eq!(own.buffers[1].max_allocated.map(|read| read.value), Some(1138));
    // Fewer of its lines, as `grep -v` or another level leaves them.
    let text = String::from_utf8(super::fixture("entstat-memory")).unwrap();
    let few: String =
        text.split_inclusive('\n').filter(|line| !line.contains("Information")).collect();
    let captures = super::read_bytes(few.as_bytes());
    let own = only(captures.entstats()).adapters[0].virtual_adapter.clone().unwrap();
    assert_eq!(own.buffer_mode.map(|read| read.value).as_deref(), Some("Min"));
    assert_eq!(own.vrm_minimum_kb.map(|read| read.value), Some(15716));
}

/// What `grep` leaves of a shared adapter: its failover is told by its own words, and a trunk's priority is none of it.
#[test]
fn failover_as_grep_leaves_it() {
    let text = "vio1:/ # entstat -d ent9 | grep -E 'State|Priority|Mode|Control Ch'\nLAN State: Operational\n  Priority: 3  Active: True\n    Control Channel PVID: 4093\n    State: BACKUP\n    Bridge Mode: None\n    High Availability Mode: Auto\n    Priority: 2\nLAN State: Operational\n  Priority: 3  Active: True\n";
    for text in [text.to_owned(), text.replace("\nLAN", "\nETHERNET STATISTICS (ent9) :\nLAN")] {
        let captures = super::read_bytes(text.as_bytes());
        let report = captures.entstats().next().unwrap();
        let of = report.sea.as_ref().unwrap().failover.as_ref().unwrap();
        assert_eq!(report.head.device.as_ref().unwrap().value, "ent9");
        assert_eq!(of.state.as_ref().unwrap().value, "BACKUP");
        assert_eq!((of.priority.unwrap().value, of.control_vlan.unwrap().value), (2, 4093));
        assert!(report.head.incomplete.is_some());
    }
    // Without a filter these lines are of no report that is known.
    let whole = text.replace(" | grep -E 'State|Priority|Mode|Control Ch'", "");
    assert_eq!(super::read_bytes(whole.as_bytes()).entstats().count(), 0);
}

/// The part that a driver prints ends where somebody types the next command, on whatever host.
#[test]
fn a_prompt_behind_the_drivers_part_is_none_of_it() {
    let of = |host: &str| {
        format!(
            "padmin@{host}:/home/padmin$ entstat -d ent4\n-------------------------------------------------------------\nETHERNET STATISTICS (ent4) :\nDevice Type: PCIe3 4-Port 10GbE SR Adapter (df1020e21410e304)\n\nPCIe3 4-Port 10GbE SR Adapter (df1020e21410e304) Specific Statistics:\n---------------------------------------------------------------------\nLink Status: Up\nMedia Speed Running: 10 Gbps Full Duplex\n"
        )
    };
    let captures = read_bytes([of("lodz1"), of("lodz2")].concat().as_bytes());
    let hosts = captures.entstats().map(|one| value(&one.head.partition));
    assert_eq!(hosts.collect::<Vec<_>>(), ["lodz1", "lodz2"]);
}
