//! One disk behind several ways is one disk.

use super::*;
use crate::model::{Desired, resolve, samples};

fn disk(host: u32, id: u8, lun: u16, wwid: &str) -> Disk {
    Disk {
        host,
        id,
        target: Wwpn(0x5005_0768_0100_0000 + u64::from(id)),
        lun,
        device: format!("/dev/sd{host}{id}{lun}").into(),
        block_size: 512,
        wwid: wwid.to_owned(),
    }
}

fn desired(found: Discovered) -> Desired {
    let text = "[port.fcs0]\nhost=\"host3\"\n[adapter.f]\nkind=\"fc\"\nport=\"fcs0\"\n\
                [adapter.g]\nkind=\"fc\"\nport=\"fcs0\"\n";
    Desired { discovered: found.into(), ..crate::config::read(text).unwrap() }
}

#[test]
fn all_paths_to_a_disk_are_one_unit_on_the_oldest_of_them() {
    let wwid = "naa.60050768010000000000000000000001";
    let paths = vec![disk(8, 0, 0, wwid), disk(8, 1, 0, wwid), disk(8, 1, 3, "place")];
    let seen = [("f".to_owned(), paths), ("g".to_owned(), vec![disk(7, 2, 5, wwid)])];
    let desired = desired(Discovered { seen: seen.into(), ..Discovered::default() });
    let units = desired.discovered.units(&desired, "main");
    assert_eq!(units.len(), 2);
    let shared = unit(&disk(7, 2, 5, wwid));
    assert_eq!(units[&shared].device.to_str(), Some("/dev/sd725"));
    let visible = &desired.discovered.visible()["f"];
    assert_eq!((&visible[&0].luns[&0], &visible[&1].luns[&0]), (&shared, &shared));
    assert_ne!(visible[&1].luns[&3], shared);
    let wanted = resolve::wanted(&desired, "main", &samples::paths());
    assert_eq!(wanted.units[&shared].naa, naa_of_unit(&shared).unwrap());
    assert_eq!(wanted.volumes.len(), 2);
    assert!(resolve::wanted(&desired, "side", &samples::paths()).volumes.is_empty());
}

#[test]
fn a_short_identifier_of_the_disk_is_its_own() {
    let own = disk(7, 0, 0, "naa.5000c500deadbeef");
    assert_eq!(unit(&own), "hba.5000c500deadbeef");
    for wwid in ["naa.6000c500deadbeef", "naa.5000c5", "t10.ATA", "naa.5éééééééé"] {
        let unit = unit(&disk(7, 0, 0, wwid));
        assert!(unit.starts_with("hba.3"), "{wwid}: {unit}");
    }
}

#[test]
fn reservations_of_a_disk_hold_only_where_every_port_says_so() {
    use spec::Reservations::{Local, Refuse};
    let wwid = "naa.5000c500deadbeef";
    let seen =
        [("f".to_owned(), vec![disk(8, 0, 0, wwid)]), ("g".to_owned(), vec![disk(9, 0, 0, wwid)])];
    for (first, second, expected) in [
        ("", "", Refuse),
        ("reservations=\"local\"", "", Refuse),
        ("reservations=\"local\"", "reservations=\"refuse\"", Refuse),
        ("reservations=\"local\"", "reservations=\"local\"", Local),
    ] {
        let text = format!(
            "[port.fcs0]\nhost=\"host3\"\n{first}\n[port.fcs1]\nhost=\"host4\"\n{second}\n\
             [adapter.f]\nkind=\"fc\"\nport=\"fcs0\"\n[adapter.g]\nkind=\"fc\"\nport=\"fcs1\"\n"
        );
        let found = Discovered { seen: seen.clone().into(), ..Discovered::default() };
        let desired = Desired { discovered: found.into(), ..crate::config::read(&text).unwrap() };
        let wanted = resolve::wanted(&desired, "main", &samples::paths());
        assert_eq!(wanted.units["hba.5000c500deadbeef"].reservations, expected, "{first} {second}");
    }
}
