//! What data planes get.

use super::*;
use crate::model::samples;
use crate::model::validate::validate;
use crate::model::{allocations::settle, resolve};
use protocol::message::{CommandSpec, PortShare};

fn state(text: &str) -> Desired {
    let mut desired = crate::config::read(text).unwrap();
    settle(&Desired::default(), &mut desired, 42).unwrap();
    validate(&desired, &samples::paths()).unwrap()
}

const SAN: &str = "[volume.a]\nkind=\"null\"\nsize=4096\n[port.fcs0]\nnum_io_queues=6\nnum_cmd_elems=300\n\
    max_xfer_size=\"256KiB\"\n[target.t]\nluns=\"3=a\"\nwwpn=\"5005076801000001\"\nid=9\n\
    [dataplane.main]\nnum_per_range=7\nnum_local_cmds=11\n\
    [adapter.f]\nkind=\"fc\"\nport=\"fcs0\"\nbufs_per_cmd=3\nwwpns=\"c050760000000002,c050760000000003\"\n\
    limit_iops=100\n[zone.z]\nmembers=\"f,t\"\n[mask.m]\ninitiators=\"f\"\ntargets=\"t\"\n";

#[test]
fn an_adapter_gets_what_the_fabric_shows_it() {
    let desired = state(SAN);
    let wanted = resolve::wanted(&desired, "main", &samples::paths());
    let adapter = &wanted.adapters["f"];
    let scsi = adapter.scsi().unwrap();
    assert_eq!(scsi.initiator, Initiator::Fc { wwpn: 0xc050_7600_0000_0002 });
    let luns = BTreeMap::from([(3, "a".to_owned())]);
    let wwpn = Some(0x5005_0768_0100_0001);
    assert_eq!(scsi.targets, [TargetSpec { id: 9, wwpn, port: 10, luns }]);
    let commands = CommandSpec {
        num_cmd_elems: 1024,
        num_sp_cmd_elem: 512,
        num_local_cmds: 11,
        bufs_per_cmd: 3,
        queue_depth: 64,
        max_xfer_bytes: 256 << 10,
    };
    assert_eq!(scsi.commands, commands);
    let port = PortShare { name: "fcs0".to_owned(), num_cmd_elems: 300, share: 100 };
    assert_eq!(scsi.port, Some(port));
    assert_eq!(scsi.limit.unwrap().iops, 100);
    // The least of the data plane's 7, which it inherits, and the port's 6.
    assert_eq!(adapter.channels, 6);
    let unit = &wanted.units["a"];
    assert_eq!(unit.keep.as_deref(), Some(std::path::Path::new("/run/t/reservations/a")));
    assert_eq!(unit.serial, format!("{:016x}", unit.naa));
    assert_eq!(unit.naa >> 60, 3);
}

#[test]
fn channels_follow_the_queue_contract() {
    let channels = |more: &str| {
        let text = SAN.replace("bufs_per_cmd=3\n", more);
        resolve::wanted(&state(&text), "main", &samples::paths()).adapters["f"].channels
    };
    assert_eq!(channels("num_per_range=5\n"), 5);
    assert_eq!(channels("num_per_range=40\n"), 6);
    assert_eq!(channels("limit_intr=true\n"), 1);
    let mut desired = state(&SAN.replace("bufs_per_cmd=3\n", "policy=\"aix\"\n"));
    let maximum = allocations::Maximum { channels: 2, connection: 1 };
    desired.allocations.maxima.insert("f".to_owned(), maximum);
    assert_eq!(resolve::wanted(&desired, "main", &samples::paths()).adapters["f"].channels, 2);
}

#[test]
fn names_of_units_never_change() {
    // Guests have these in their configuration: a later version must give the same.
    assert_eq!(local_naa(42, "data"), 0x33ff9d097980ebe1);
    assert_ne!(local_naa(43, "data"), local_naa(42, "data"));
    let own =
        state(&SAN.replace(
            "kind=\"null\"",
            "kind=\"null\"\nnaa=\"3000000000000007\"\nunit_serial=\"S1\"",
        ));
    let unit = resolve::wanted(&own, "main", &samples::paths()).units["a"].clone();
    assert_eq!((unit.naa, unit.serial.as_str()), (0x3000_0000_0000_0007, "S1"));
    let pool = "12345678-9abc-def0-0123-456789abcdef".to_owned();
    let lu = |number, bytes| naa_of_lu(&FileIdentity::Lu { pool: pool.clone(), number, bytes });
    assert_eq!((lu(7, 4096), lu(7, 8192)), (Some(0x3af76b38e722ec76), Some(0x3af76b38e722ec76)));
    assert_ne!(lu(8, 4096), lu(7, 4096));
}

#[test]
fn a_virtual_scsi_adapter_has_one_target_with_its_devices() {
    let desired = state(
        "[volume.a]\nkind=\"null\"\nsize=4096\n[medium.m]\npath=\"/iso/m\"\n[adapter.s]\nkind=\"scsi\"\n\
         channels=2\n[vtd.disk]\nadapter=\"s\"\nvolume=\"a\"\n\
         [vtd.cd]\nadapter=\"s\"\nkind=\"optical\"\nmedium=\"m\"\nlun=4\n",
    );
    let wanted = resolve::wanted(&desired, "main", &samples::paths());
    let adapter = &wanted.adapters["s"];
    let targets = &adapter.scsi().unwrap().targets;
    let luns = [(0, "a".to_owned()), (4, "optical.cd".to_owned())].into();
    assert_eq!(*targets, [TargetSpec { id: 0, wwpn: None, port: 1, luns }]);
    assert_eq!(adapter.channels, 2);
    assert_eq!(wanted.units["optical.cd"].volume.as_deref(), Some("optical.m"));
    assert!(wanted.volumes["optical.m"].read_only);
    assert!(resolve::wanted(&desired, "side", &samples::paths()).units.is_empty());
}

#[test]
fn reservations_are_refused_where_they_could_be_no_promise() {
    use spec::Reservations::{Local, Refuse};
    let of = |more: &str| {
        let text = format!("[volume.v]\nkind=\"file\"\n{more}\n[target.t]\nluns=\"0=v\"\n");
        let desired = crate::config::read(&text).unwrap();
        resolve::wanted(&desired, "main", &samples::paths()).units["v"].reservations
    };
    let naa = "naa=\"5000c500deadbeef\"";
    for (path, expected) in [("/dev/disk/by-id/x", Refuse), ("/dev/shm/x", Local), ("/x", Local)] {
        assert_eq!(of(&format!("path=\"{path}\"")), Local, "{path}");
        assert_eq!(of(&format!("path=\"{path}\"\n{naa}")), expected, "{path}");
        assert_eq!(of(&format!("path=\"{path}\"\n{naa}\nreservations=\"local\"")), Local);
        assert_eq!(of(&format!("path=\"{path}\"\nreservations=\"refuse\"")), Refuse);
    }
}
