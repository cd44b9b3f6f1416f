//! What is printed for virtual Fibre Channel is read again by the planner, and every number is compared.

use super::maps::ListOptions;
use super::npiv::{self, ClientRow, Login, NpivMap, NpivPort};
use super::tests::{counts, read, value};
use planner::capture::Wwn;

#[test]
fn fcstat_client_is_read_again() {
    let row = |host: &str, device: &str, wwpn| ClientRow {
        host: host.to_owned(),
        device: device.to_owned(),
        wwpn,
        counts: counts(),
    };
    let rows = [
        row("vios1.example.org", "fcs0", 0x1000_0000_0000_0001),
        row("vfchost0", "vfchost0", 0xc050_7607_1a2b_0010),
        row("a-name-that-is-longer-than-its-column", "longer-than-nine", 0xc050_7607_1a2b_0012),
    ];
    let text = npiv::clients(&rows);
    let captures = read("fcstat -client", &text);
    let found = &captures.reports[0].fcstat_client().unwrap().rows;
    assert_eq!(found.len(), rows.len());
    for (found, row) in found.iter().zip(&rows) {
        let c = row.counts;
        assert_eq!(
            (&found.hostname, &found.device, found.wwpn),
            (&row.host, &row.device, Some(Wwn(row.wwpn)))
        );
        let numbers = [
            found.input_requests,
            found.output_requests,
            found.control_requests,
            found.input_bytes,
            found.output_bytes,
        ];
        assert_eq!(numbers, [c.reads, c.writes, c.control, c.read_bytes, c.written_bytes]);
        let waits = [found.no_dma, found.no_elements, found.no_command];
        assert_eq!(waits, [c.no_dma, c.no_elements, c.no_command].map(Some));
    }
    insta::assert_snapshot!(text);
}

fn npiv_maps() -> Vec<NpivMap> {
    let up = NpivMap {
        name: "vfchost0".to_owned(),
        physloc: "UTRUNKLINE.5EE3C1-main-V1-C0".to_owned(),
        client_id: 1,
        client_name: String::new(),
        client_os: String::new(),
        login: Login::LoggedIn,
        port: "fcs0".to_owned(),
        port_physloc: "UTRUNKLINE.5EE3C1-main-P1-T0".to_owned(),
        logins: 6,
        client_adapter: "vfchost0".to_owned(),
        client_drc: "UTRUNKLINE.5EE3C1-main-V2-C0".to_owned(),
        queues: [64, 16, 8, 4, 2, 1],
    };
    let down = NpivMap {
        name: "vfchost1".to_owned(),
        login: Login::NotLoggedIn,
        logins: 0,
        client_adapter: String::new(),
        client_drc: String::new(),
        ..up.clone()
    };
    let unmapped = NpivMap {
        name: "vfchost2".to_owned(),
        login: Login::NotMapped,
        port: String::new(),
        port_physloc: String::new(),
        ..down.clone()
    };
    vec![up, down, unmapped]
}

#[test]
fn lsmap_npiv_is_read_again() {
    let maps = npiv_maps();
    let text = npiv::maps(&maps, ListOptions::default());
    let formatted = npiv::maps(&maps, ListOptions { delimiter: Some(":"), fields: &[] });
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    for (command, text) in [("lsmap -all -npiv", &text), ("lsmap -all -npiv -fmt :", &formatted)] {
        let captures = read(command, text);
        let found = &captures.reports[0].lsmap_npiv().unwrap().adapters;
        assert_eq!(found.len(), maps.len());
        for (found, map) in found.iter().zip(&maps) {
            assert_eq!(found.name, map.name);
            assert_eq!(value(&found.physloc), some(&map.physloc));
            assert_eq!(value(&found.client_id), Some(map.client_id));
            assert_eq!(value(&found.port), some(&map.port));
            assert_eq!(value(&found.port_physloc), some(&map.port_physloc));
            assert_eq!(value(&found.ports_logged_in), Some(map.logins));
            assert_eq!(value(&found.client_adapter), some(&map.client_adapter));
            assert_eq!(value(&found.client_drc), some(&map.client_drc));
        }
        let flags: Vec<u64> = found.iter().map(|found| value(&found.flags).unwrap()).collect();
        assert_eq!(flags, [0xa, 4, 1]);
        let up: Vec<bool> =
            found.iter().map(|found| value(&found.status).unwrap() == "LOGGED_IN").collect();
        assert_eq!(up, [true, false, false]);
    }
    let fields = ["name".to_owned(), "ports".to_owned()];
    let picked = npiv::maps(&maps, ListOptions { delimiter: Some(":"), fields: &fields });
    assert_eq!(picked, "vfchost0:6\nvfchost1:0\nvfchost2:0\n");
    let fields = ["offered", "num_io_queues", "used", "negotiated", "running", "cpus"];
    let fields = fields.map(str::to_owned);
    let picked = npiv::maps(&maps[..1], ListOptions { delimiter: Some(":"), fields: &fields });
    assert_eq!(picked, "64:16:8:4:2:1\n");
    insta::assert_snapshot!(text);
}

#[test]
fn lsnports_is_read_again() {
    let port = |name: &str, max| NpivPort {
        name: name.to_owned(),
        physloc: "UTRUNKLINE.5EE3C1-main-P1-T0".to_owned(),
        adapters_max: max,
        adapters_free: max - 3,
        targets_max: 256,
        targets_free: 250,
    };
    let ports = [port("fcs0", 64), port("fcs1", 255)];
    let text = npiv::ports(&ports, None);
    let formatted = npiv::ports(&ports, Some("::"));
    for (command, text) in [("lsnports", &text), ("lsnports -fmt ::", &formatted)] {
        let captures = read(command, text);
        let found = &captures.reports[0].lsnports().unwrap().ports;
        assert_eq!(found.len(), 2);
        for (found, port) in found.iter().zip(&ports) {
            assert_eq!(
                (&found.name, &found.physloc, found.fabric),
                (&port.name, &port.physloc, true)
            );
            let numbers =
                [found.ports_total, found.ports_free, found.wwpns_total, found.wwpns_free];
            let wanted =
                [port.adapters_max, port.adapters_free, port.targets_max, port.targets_free];
            assert_eq!(numbers.map(u64::from), wanted);
        }
    }
    insta::assert_snapshot!(text);
}
