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

    fn root(&self) -> PathBuf {
        self.0.path().join("sys")
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    fn sysfs(&self) -> Sysfs {
        Sysfs::at(self.root())
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
    fs::remove_dir_all(tree.root().join("class/fc_host/host7")).unwrap();
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
    tree.file("class/scsi_device/7:0:1:2/device/wwid", "naa.600507680100\n");
    tree.file("class/scsi_device/7:0:1:2/device/block/sdc/queue/logical_block_size", "4096\n");
    let first = Disk {
        host: 7,
        id: 0,
        target: Wwpn(0x5005_0768_0100_0000),
        lun: 0,
        device: tree.0.path().join("dev/sdb"),
        block_size: 512,
        wwid: "c0:50:76:00:00:01:00:00.50:05:07:68:01:00:00:00.0".to_owned(),
    };
    let second = Disk {
        id: 1,
        target: Wwpn(0x5005_0768_0100_0001),
        lun: 2,
        device: tree.0.path().join("dev/sdc"),
        block_size: 4096,
        wwid: "naa.600507680100".to_owned(),
        ..first.clone()
    };
    assert_eq!(tree.sysfs().disks(VPORT).unwrap(), [first, second]);
}

#[test]
fn what_is_no_hba_with_npiv_is_named() {
    let tree = Tree::new();
    fs::remove_file(tree.root().join(HBA).join("vport_create")).unwrap();
    for host in ["host3", "host4", "../fc_host/host3", "host3/..", ""] {
        let error = tree.sysfs().create(host, VPORT).unwrap_err();
        assert!(error.to_string().contains("is no Fibre Channel HBA with NPIV"), "{error}");
    }
    // The kernel's own word is passed on.
    fs::create_dir(tree.root().join(HBA).join("vport_create")).unwrap();
    assert!(matches!(tree.sysfs().create("host3", VPORT), Err(HbaError::System { .. })));
    assert!(tree.sysfs().delete("host9", VPORT).is_ok());
}

#[test]
fn what_the_host_does_not_hold_is_free() {
    let tree = Tree::new();
    tree.file("disk", "data");
    assert!(!is_held(&tree.root().join("disk")));
    assert!(!is_held(&tree.root().join("nowhere")));
}
