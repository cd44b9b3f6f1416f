//! What is printed is read again by the planner, and every number is compared.

use super::devices::{self, AttributeRow};
use super::fcstat::{self, Counts, Detail, FcReport};
use super::maps::{self, ListOptions, ScsiMap, Vtd};
use control::statistics::{AdapterFile, MORE};
use fabric::attribute::{Attributes, Object, Value};
use planner::capture::{Allowed, Captures, Read, Settable, Wwn};

/// Reads a text behind the command that prints it; everything must be understood.
pub(super) fn read(command: &str, text: &str) -> Captures {
    let mut captures = Captures::new();
    captures.read("capture.txt", format!("$ {command}\n{text}").as_bytes(), None);
    assert_eq!(captures.unread, [], "{text}");
    assert_eq!(captures.refused, [], "{text}");
    assert_eq!(captures.reports.len(), 1, "{text}");
    let head = captures.reports[0].head();
    assert_eq!((&head.unread[..], &head.incomplete), (&[][..], &None), "{text}");
    captures
}

pub(super) fn value<T: Clone>(read: &Option<Read<T>>) -> Option<T> {
    read.as_ref().map(|read| read.value.clone())
}

/// Every field has a number of its own, so that no two can be exchanged.
pub(super) fn counts() -> Counts {
    Counts {
        reads: 913_004_418,
        writes: 401_772_093,
        control: 271_155,
        read_bytes: 36_464_002_244_608,
        written_bytes: 13_220_611_219_456,
        no_dma: 31,
        no_elements: 70_412,
        no_command: 18,
        active: 12,
        active_max: 200,
        pending: 3,
        pending_max: 811,
        waiting: 2,
        waiting_max: 9,
        interrupts: 5_150,
    }
}

fn report() -> FcReport {
    FcReport {
        device: "fcs0".to_owned(),
        device_type: "Trunkline NPIV port (trunkline/port)".to_owned(),
        wwpn: Some(0x1000_0000_0000_0001),
        link_gbit: Some(32),
        link_up: true,
        link_failures: 3,
        seconds: 86_411,
        counts: counts(),
        max_transfer: Some(0x10_0000),
    }
}

#[test]
fn fcstat_is_read_again() {
    for detail in [Detail::Plain, Detail::Driver] {
        let text = fcstat::report(&report(), detail);
        let captures = read("fcstat -e fcs0", &text);
        let found = captures.reports[0].fcstat().unwrap();
        let wanted = report();
        let c = wanted.counts;
        assert_eq!(found.head.device.as_ref().unwrap().value, "fcs0");
        assert_eq!(value(&found.wwpn), wanted.wwpn.map(Wwn));
        assert_eq!(value(&found.device_type), Some(wanted.device_type));
        assert_eq!(value(&found.is_virtual), Some(false));
        assert_eq!(value(&found.speed_running_gbit), Some(32));
        assert_eq!(value(&found.attention_type).as_deref(), Some("Link Up"));
        assert_eq!(value(&found.seconds_since_reset), Some(86_411));
        assert_eq!(value(&found.link_failures), Some(3));
        let (resources, traffic) = (&found.resources, &found.traffic);
        assert_eq!(value(&resources.no_dma), Some(c.no_dma));
        assert_eq!(value(&resources.no_elements), Some(c.no_elements));
        assert_eq!(value(&resources.no_command), Some(c.no_command));
        assert_eq!(value(&traffic.input_requests), Some(c.reads));
        assert_eq!(value(&traffic.output_requests), Some(c.writes));
        assert_eq!(value(&traffic.control_requests), Some(c.control));
        assert_eq!(value(&traffic.input_bytes), Some(c.read_bytes));
        assert_eq!(value(&traffic.output_bytes), Some(c.written_bytes));
        assert_eq!(value(&found.max_transfer_bytes), Some(0x10_0000));
        let driver = (detail == Detail::Driver).then_some(c);
        let queue = &found.adapter_queue;
        assert_eq!(value(&found.interrupts), driver.map(|c| c.interrupts));
        assert_eq!(value(&queue.active), driver.map(|c| c.active));
        assert_eq!(value(&queue.active_high), driver.map(|c| c.active_max));
        assert_eq!(value(&queue.pending), driver.map(|c| c.waiting));
        assert_eq!(value(&queue.pending_high), driver.map(|c| c.waiting_max));
        let queue = &found.protocol_queue;
        assert_eq!(value(&queue.active), driver.map(|c| c.active));
        assert_eq!(value(&queue.active_high), driver.map(|c| c.active_max));
        assert_eq!(value(&queue.pending), driver.map(|c| c.pending));
        assert_eq!(value(&queue.pending_high), driver.map(|c| c.pending_max));
    }
    insta::assert_snapshot!(fcstat::report(&report(), Detail::Driver));
}

/// The driver's part has the lines of a capture of the original, in its order and with its spelling.
#[test]
fn the_drivers_part_is_line_by_line_that_of_the_original() {
    let lines = [
        "Driver Statistics",
        "  Number of interrupts:",
        "  Number of spurious interrupts:",
        "  Long term DMA pool size:",
        "  I/O DMA pool size:",
        "  FC SCSI Adapter Driver Queue Statistics",
        "    Number of active commands:",
        "    High water mark  of active commands:",
        "    Number of pending commands:",
        "    High water mark of pending commands:",
        "    Number of commands in the Adapter Driver Held off queue:",
        "    High water mark of number of commands in the Adapter Driver Held off queue:",
        "  FC SCSI Protocol Driver Queue Statistics",
        "    Number of active commands:",
        "    High water mark  of active commands:",
        "    Number of pending commands:",
        "    High water mark of pending commands:",
        "FC SCSI Adapter Driver Information",
        "  No DMA Resource Count:",
        "  No Adapter Elements Count:",
        "  No Command Resource Count:",
        "FC SCSI Traffic Statistics",
        "  Input Requests:",
        "  Output Requests:",
        "  Control Requests:",
        "  Input Bytes:",
        "  Output Bytes:",
        "Adapter Effective max transfer value:",
    ];
    let text = fcstat::report(&report(), Detail::Driver);
    let ours = text.lines().skip_while(|line| *line != lines[0]).filter(|line| !line.is_empty());
    let ours: Vec<&str> = ours
        .map(|line| line.split_once(':').map_or(line, |(name, _)| &line[..=name.len()]))
        .collect();
    assert_eq!(ours, lines);
}

#[test]
fn an_unknown_speed_and_a_client_are_read_again() {
    let mut client = report();
    client.device_type = super::VFC_CLIENT.to_owned();
    (client.link_gbit, client.max_transfer) = (None, None);
    let captures = read("fcstat vfchost0", &fcstat::report(&client, Detail::Plain));
    let found = captures.reports[0].fcstat().unwrap();
    assert_eq!((value(&found.is_virtual), &found.speed_running_gbit), (Some(true), &None));
}

#[test]
fn the_statistics_file_is_read_again() {
    let report = AdapterFile {
        command_queues: vec![5],
        channels: vec![881_200, 790_114],
        more: MORE.iter().zip(17..).map(|((_, name), value)| (*name, value)).collect(),
    };
    let text = report.text();
    let captures = read("cat /proc/sys/adapter/vfc/vfchost3/stats", &text);
    let found = captures.reports[0].vfc_stats().unwrap();
    assert_eq!((value(&found.command_queues), value(&found.channels)), (Some(1), Some(2)));
    let received: Vec<u64> = found.commands_received.iter().map(|read| read.value).collect();
    assert_eq!(received, [5, 881_200, 790_114]);
    let more: Vec<(&str, u64)> =
        found.named[5..].iter().map(|named| (named.name.as_str(), named.value)).collect();
    assert_eq!(more, report.more);
    insta::assert_snapshot!(text);
}

#[test]
fn lsmap_of_virtual_scsi_is_read_again() {
    let vtd = |name: &str, lun, backing: &str| Vtd {
        name: name.to_owned(),
        available: true,
        lun,
        backing: backing.to_owned(),
        physloc: String::new(),
    };
    let map = |name: &str, client_id, devices| ScsiMap {
        name: name.to_owned(),
        physloc: "UTRUNKLINE.5EE3C1-main-V1-C0".to_owned(),
        client_id,
        devices,
    };
    let maps = [
        map("vhost0", 14, vec![vtd("vtscsi0", 0, "/srv/disk0.img"), vtd("cd", 200, "install.iso")]),
        map("vhost1", 0, Vec::new()),
    ];
    let text = maps::scsi(&maps, ListOptions::default(), false);
    let decimal = maps::scsi(&maps, ListOptions::default(), true);
    let formatted = maps::scsi(&maps, ListOptions { delimiter: Some(":"), fields: &[] }, false);
    for (command, text) in
        [("lsmap -all", &text), ("lsmap -all -dec", &decimal), ("lsmap -all -fmt :", &formatted)]
    {
        let captures = read(command, text);
        let found = &captures.reports[0].lsmap_scsi().unwrap().adapters;
        for (found, map) in found.iter().zip(&maps) {
            assert_eq!(
                (&found.name, value(&found.client_partition)),
                (&map.name, Some(map.client_id))
            );
            let devices: Vec<(String, String, u64)> = found
                .devices
                .iter()
                .map(|device| {
                    (
                        device.name.clone(),
                        value(&device.backing).unwrap(),
                        value(&device.lun).unwrap(),
                    )
                })
                .collect();
            let luns = [0x8100 << 48, 0x80c8 << 48];
            let wanted: Vec<(String, String, u64)> = map
                .devices
                .iter()
                .zip(luns)
                .map(|(device, lun)| (device.name.clone(), device.backing.clone(), lun))
                .collect();
            assert_eq!(devices, wanted);
        }
        assert_eq!(found.len(), 2);
    }
    insta::assert_snapshot!(text);
}

/// Every attribute that there is, with its default; what has none is given.
fn rows(object: Object) -> Vec<AttributeRow> {
    let none = Attributes::new();
    let effective: Attributes = object
        .attributes()
        .filter_map(|attribute| {
            let value = fabric::attribute::effective(attribute, &none, &|_| None)?;
            Some((attribute.name.to_owned(), value))
        })
        .collect();
    let rows = object.attributes().map(|attribute| {
        let mut row = AttributeRow::of(attribute, &effective);
        if !effective.contains_key(attribute.name) {
            row.value = "disk0".to_owned();
        }
        row
    });
    rows.collect()
}

#[test]
fn attributes_are_read_again() {
    // Those that are devices.
    for object in [Object::Volume, Object::Adapter, Object::DataPlane] {
        let rows = rows(object);
        if rows.len() < 2 {
            continue;
        }
        let lsattr = devices::lsattr(&rows);
        let lsdev = devices::lsdev(&rows);
        let by_lsattr = read("lsattr -El x0", &lsattr);
        let by_lsdev = read("lsdev -dev x0 -attr", &lsdev);
        let found = [
            &by_lsattr.reports[0].lsattr().unwrap().attributes,
            &by_lsdev.reports[0].lsdev_attr().unwrap().attributes,
        ];
        for found in found {
            assert_eq!(found.len(), rows.len(), "{lsattr}");
            for (found, row) in found.iter().zip(&rows) {
                let settable = match row.settable {
                    "True+" => Settable::Live,
                    "True" => Settable::Yes,
                    _ => Settable::No,
                };
                assert_eq!(
                    (found.name.as_str(), found.value.as_str()),
                    (row.name, row.value.as_str()),
                    "{lsattr}"
                );
                assert_eq!(
                    (found.description.as_str(), found.settable),
                    (row.description.as_str(), Some(settable))
                );
            }
        }
    }
}

#[test]
fn columns_are_printed_as_the_format_says() {
    let row = |name, value: &str, settable| AttributeRow {
        name,
        value: value.to_owned(),
        default: "8".to_owned(),
        description: "a text of words".to_owned(),
        settable,
    };
    let rows = [row("queues", "64", "True"), row("num_cmd_elems", "1024", "True+")];
    let shown = |format: &str| devices::formatted(&rows, format);
    assert_eq!(shown("value").unwrap(), "64\n1024\n");
    assert_eq!(shown("value attribute").unwrap(), "64   queues\n1024 num_cmd_elems\n");
    assert_eq!(shown("attribute:value,").unwrap(), "queues:64,\nnum_cmd_elems:1024,\n");
    assert_eq!(shown("deflt;user_settable").unwrap(), "8;True\n8;True+\n");
    assert_eq!(shown("valeu").unwrap_err(), "there is no column `valeu`");
    assert!(shown(" : ").is_err());
}

#[test]
fn one_attribute_is_read_again() {
    let row = AttributeRow {
        name: "num_per_range",
        value: "0".to_owned(),
        default: "0".to_owned(),
        description: String::new(),
        settable: "True",
    };
    let captures = read("lsdev -dev vfchost3 -attr num_per_range", &devices::value(&row));
    let found = &captures.reports[0].lsdev_attr().unwrap().attributes;
    assert_eq!((found[0].name.as_str(), found[0].value.as_str()), ("num_per_range", "0"));
}

/// As many as an adapter of its kind is not refused.
#[test]
fn the_range_of_queues_is_that_of_the_kind() {
    for (kind, most) in [("fc", 254), ("scsi", 254), ("block", 256), ("ethernet", 128)] {
        let effective: Attributes = [("kind".to_owned(), Value::Text(kind.to_owned()))].into();
        let (object, name) = (Object::Adapter, "a");
        let thing = super::system::Thing { object, name, effective: &effective, in_use: false };
        let attribute = thing.attribute("queues").unwrap_or_else(|_| panic!("{kind} has queues"));
        let range = devices::range(thing.values_of(attribute)).unwrap();
        assert_eq!(range, format!("1...{most} (+1)\n"));
    }
}

#[test]
fn ranges_are_read_again() {
    for attribute in Object::ALL.into_iter().flat_map(Object::attributes) {
        let Ok(text) = devices::range(attribute.kind) else { continue };
        let captures = read(&format!("lsattr -Rl x0 -a {}", attribute.name), &text);
        let found = captures.reports[0].lsattr_range().unwrap();
        assert_eq!(found.attribute.as_deref(), Some(attribute.name));
        use fabric::attribute::Kind;
        match attribute.kind {
            Kind::Number { min, max } | Kind::Size { min, max } => {
                let [Allowed::Span { low, high, step, .. }] = found.allowed[..] else {
                    panic!("{text}")
                };
                assert_eq!((low, high, step), (min, max, 1));
            }
            Kind::PowerOfTwo { max, .. } => assert_eq!(found.max(), Some(max)),
            Kind::NumberOf(list) => assert_eq!(found.max(), list.iter().max().copied()),
            Kind::Word(list) => assert_eq!(found.allowed.len(), list.len()),
            _ => assert_eq!(found.allowed.len(), 2, "{text}"),
        }
    }
}
