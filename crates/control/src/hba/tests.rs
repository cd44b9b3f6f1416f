//! Against a tree that looks as the kernel's.

use super::*;

const HBA: &str = "class/fc_host/host3";
const VPORT: Wwpn = Wwpn(0xc050_7600_0001_0000);

struct Tree(tempfile::TempDir);

impl Tree {
    /// An HBA with NPIV.
    fn new() -> Tree {
        let tree = Tree(tempfile::tempdir().unwrap());
        tree.file(&format!("{HBA}/port_name"), "0x10000090fa000001\n");
        tree.file(&format!("{HBA}/node_name"), "0x20000090fa000001\n");
        tree.file(&format!("{HBA}/vport_create"), "");
        tree.file(&format!("{HBA}/vport_delete"), "");
        tree
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.0.path().join(path)).unwrap()
    }

    fn sysfs(&self) -> Sysfs {
        Sysfs::at(self.0.path())
    }

    /// What the kernel does after `vport_create`.
    fn appear(&self) {
        self.file("class/fc_host/host7/port_name", "0xc050760000010000\n");
    }

    fn disk(&self, host: u32, target: u32, lun: u32, device: &str) {
        self.file(
            &format!("class/fc_transport/target{host}:0:{target}/port_name"),
            &format!("0x500507680100000{target}\n"),
        );
        let folder = format!("class/scsi_device/{host}:0:{target}:{lun}/device");
        match device {
            "" => self.file(&format!("{folder}/type"), "3\n"),
            device => self.file(&format!("{folder}/block/{device}/size"), "8\n"),
        }
    }
}

#[test]
fn a_virtual_port_is_made_once_and_removed_once() {
    let tree = Tree::new();
    tree.sysfs().create("host3", VPORT).unwrap();
    assert_eq!(tree.read(&format!("{HBA}/vport_create")), "c050760000010000:20000090fa000001");
    tree.file(&format!("{HBA}/vport_create"), "");
    tree.appear();
    tree.sysfs().create("host3", VPORT).unwrap();
    assert_eq!(tree.read(&format!("{HBA}/vport_create")), "");
    tree.sysfs().delete("host3", VPORT).unwrap();
    assert_eq!(tree.read(&format!("{HBA}/vport_delete")), "c050760000010000:20000090fa000001");
    fs::remove_dir_all(tree.0.path().join("class/fc_host/host7")).unwrap();
    tree.file(&format!("{HBA}/vport_delete"), "");
    tree.sysfs().delete("host3", VPORT).unwrap();
    assert_eq!(tree.read(&format!("{HBA}/vport_delete")), "");
}

#[test]
fn disks_are_found_under_their_own_virtual_port() {
    let tree = Tree::new();
    assert_eq!(tree.sysfs().disks(VPORT).unwrap(), []);
    tree.appear();
    assert_eq!(tree.sysfs().disks(VPORT).unwrap(), []);
    tree.disk(7, 1, 2, "sdc");
    tree.disk(7, 0, 0, "sdb");
    // Another host's, what is no disk, and a LUN that cannot be named.
    tree.disk(3, 0, 0, "sda");
    tree.disk(7, 1, 0, "");
    tree.disk(7, 1, 70_000, "sdd");
    tree.file("class/scsi_device/odd/device/block/sde/size", "8\n");
    let disk = |target: u64, lun, device: &str| Disk {
        target: Wwpn(0x5005_0768_0100_0000 + target),
        lun,
        device: Path::new("/dev").join(device),
    };
    assert_eq!(tree.sysfs().disks(VPORT).unwrap(), [disk(0, 0, "sdb"), disk(1, 2, "sdc")]);
}

#[test]
fn what_is_no_hba_with_npiv_is_named() {
    let tree = Tree::new();
    fs::remove_file(tree.0.path().join(HBA).join("vport_create")).unwrap();
    for host in ["host3", "host4", "../fc_host/host3", "host3/..", ""] {
        let error = tree.sysfs().create(host, VPORT).unwrap_err();
        assert!(error.to_string().contains("is no Fibre Channel HBA with NPIV"), "{error}");
    }
    // The kernel's own word is passed on.
    fs::create_dir(tree.0.path().join(HBA).join("vport_create")).unwrap();
    assert!(matches!(tree.sysfs().create("host3", VPORT), Err(HbaError::System { .. })));
    assert!(tree.sysfs().delete("host9", VPORT).is_ok());
}
