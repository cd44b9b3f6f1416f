//! The texts, as they are pasted.

use super::*;
use fabric::attribute::Value;
use fabric::negotiate::Term;

fn adapter(state: &str) -> AdapterView {
    let effective = [
        ("queues", Value::Number(2)),
        ("queue_size", Value::Number(1024)),
        ("mode", Value::Text("0660".to_owned())),
    ];
    AdapterView {
        name: "vhost0".to_owned(),
        state: state.to_owned(),
        reason: None,
        kind: "block".to_owned(),
        volume: "disk0".to_owned(),
        port: None,
        wwpns: Vec::new(),
        link: None,
        warnings: Vec::new(),
        vtds: Vec::new(),
        socket: "/run/a,b/vhost0.sock".to_owned(),
        serial: "disk0".to_owned(),
        dataplane: "main".to_owned(),
        age_s: None,
        client_queues: 0,
        client_num_io_queues: 0,
        channels: 0,
        cpus: 0,
        channels_max: 1,
        limited_by: Term::DataPlane,
        channel_of_queue: Vec::new(),
        stays_away: false,
        connections: 0,
        features: Vec::new(),
        client: None,
        attributes: Default::default(),
        effective: effective.map(|(name, value)| (name.to_owned(), value)).into(),
    }
}

fn machine(qemu: (u32, u32)) -> Machine {
    Machine { vcpus: 4, memory: 4 << 30, qemu }
}

fn args(target: EmitTarget) -> EmitArgs {
    EmitArgs {
        target,
        adapters: Vec::new(),
        device_only: false,
        vcpus: 4,
        memory: "4GiB".to_owned(),
        qemu_version: "7.2".to_owned(),
    }
}

#[test]
fn qemu_gets_shared_memory_reconnection_and_queues() {
    assert_eq!(
        qemu(&[adapter("listening")], &machine((7, 2))),
        "-accel kvm \\\n\
         -smp 4 \\\n\
         -m 4096M \\\n\
         -object memory-backend-memfd,id=trunkline-memory,size=4096M,share=on \\\n\
         -machine q35,memory-backend=trunkline-memory \\\n\
         -chardev socket,id=vhost0,path=/run/a,,b/vhost0.sock,reconnect=1 \\\n\
         -device vhost-user-blk-pci,chardev=vhost0,num-queues=2,queue-size=256"
    );
    assert!(qemu(&[adapter("listening")], &machine((10, 0))).contains(",reconnect-ms=1000 "));
}

#[test]
fn a_machine_that_listens_is_told_so() {
    let mut adapter = adapter("connecting");
    adapter.effective.insert("socket_role".to_owned(), Value::Text("client".to_owned()));
    let text = qemu(&[adapter.clone()], &machine((10, 0)));
    assert!(text.contains("path=/run/a,,b/vhost0.sock,server=on,wait=off "), "{text}");
    let all = notes(&args(EmitTarget::Libvirt), &[adapter.clone()], &machine((7, 2)));
    assert!(all.iter().any(|note| note.starts_with("missing: libvirt's disks")), "{all:?}");
}

#[test]
fn libvirt_gets_the_same_in_its_words() {
    let text = libvirt(&[adapter("listening")], &machine((7, 2)));
    for part in [
        "<access mode='shared'/>",
        "<driver name='qemu' type='raw' queues='2' queue_size='256'/>",
        "<source type='unix' path='/run/a,b/vhost0.sock'>",
        "<reconnect enabled='yes' timeout='1'/>",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let all = notes(&args(EmitTarget::Qemu), &[adapter("pending")], &machine((7, 2)));
    assert!(all.iter().any(|note| note.starts_with("missing: the data plane does not answer")));
    assert!(all.iter().any(|note| note.contains("--queues 4")));
    let all = notes(&args(EmitTarget::Libvirt), &[adapter("running")], &machine((7, 2)));
    assert!(all.iter().any(|note| note.contains("connected already")));
    assert!(all.iter().any(|note| note.contains("libvirt refuses")));
}

#[test]
fn a_scsi_adapter_is_another_device() {
    let mut adapter = adapter("listening");
    adapter.kind = "fc".to_owned();
    adapter.effective.insert("queue_depth".to_owned(), Value::Number(64));
    adapter.effective.insert("max_xfer_size".to_owned(), Value::Number(1 << 20));
    let device = "vhost-user-scsi-pci,chardev=vhost0,num_queues=2,virtqueue_size=256,cmd_per_lun=64,\
                  max_sectors=2048";
    assert!(qemu(&[adapter.clone()], &machine((7, 2))).ends_with(&format!("-device {device}")));
    let text = libvirt(&[adapter.clone()], &machine((7, 2)));
    assert!(text.contains(&format!("<qemu:arg value='{device}'/>")), "{text}");
    assert!(text.contains("path=/run/a,,b/vhost0.sock'/>"), "{text}");
    let all = notes(&args(EmitTarget::Qemu), &[adapter.clone()], &machine((7, 2)));
    assert!(all[0].contains("trunkline port map vhost0"), "{all:?}");
    assert!(all.iter().any(|note| note.contains("does not connect again")));
    adapter.port = Some("fcs0".to_owned());
    adapter.wwpns = vec!["c0:50:76:00:00:00:00:00".to_owned()];
    let all = notes(&args(EmitTarget::Libvirt), &[adapter.clone()], &machine((10, 0)));
    assert!(all[0].contains("c0:50:76:00:00:00:00:00 on port fcs0"), "{all:?}");
}

#[test]
fn a_network_card_has_a_back_end_of_its_own() {
    let mut card = AdapterView { kind: "ethernet".to_owned(), ..adapter("listening") };
    card.effective.insert("mac".to_owned(), Value::Text("02:00:5e:00:00:01".to_owned()));
    let text = lines(devices(&[card.clone()], &machine((7, 2))));
    for part in [
        "socket,id=vhost0,path=/run/a,,b/vhost0.sock,reconnect=1",
        "vhost-user,id=vhost0-net,chardev=vhost0,queues=2",
        "virtio-net-pci,netdev=vhost0-net,mac=02:00:5e:00:00:01,mq=on,vectors=6,rx_queue_size=256",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let text = elements(&[card.clone()], &machine((7, 2))).unwrap();
    assert!(text.starts_with("<interface type='vhostuser'>\n  <mac address='02:00:5e:00:00:01'/>"));
    assert!(text.contains("mode='client'>\n    <reconnect enabled='yes' timeout='1'/>"), "{text}");
    assert!(!libvirt(&[card], &machine((7, 2))).contains("qemu:arg"));
}

#[test]
fn a_network_card_says_its_mtu_where_it_is_not_the_usual_one() {
    let machine = machine((7, 2));
    let mut card = AdapterView { kind: "ethernet".to_owned(), ..adapter("listening") };
    let all = |card: &AdapterView| {
        let card = [card.clone()];
        let qemu = lines(devices(&card, &machine));
        [
            qemu,
            elements(&card, &machine).unwrap(),
            cloud_hypervisor::devices(&card, &machine).unwrap(),
        ]
    };
    assert!(all(&card).iter().all(|text| !text.contains("mtu")));
    card.effective.insert("mtu".to_owned(), Value::Number(1500));
    assert!(all(&card).iter().all(|text| !text.contains("mtu")));
    card.effective.insert("mtu".to_owned(), Value::Number(9000));
    let parts =
        [",rx_queue_size=256,host_mtu=9000", "\n  <mtu size='9000'/>\n</interface>", ",mtu=9000"];
    for (text, part) in all(&card).iter().zip(parts) {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn cloud_hypervisor_gets_its_own_options() {
    let machine = machine((7, 2));
    let mut card = AdapterView { kind: "ethernet".to_owned(), ..adapter("listening") };
    (card.name, card.socket) = ("ent0".to_owned(), "/run/ent0.sock".to_owned());
    card.effective.insert("mac".to_owned(), Value::Text("02:00:5e:00:00:01".to_owned()));
    let all = [card.clone(), adapter("listening"), adapter("listening")];
    let disk =
        r#"'id=vhost0,vhost_user=on,socket="/run/a,b/vhost0.sock",num_queues=2,queue_size=256'"#;
    let net = "id=ent0,vhost_user=on,socket=/run/ent0.sock,mac=02:00:5e:00:00:01,num_queues=4,queue_size=256";
    assert_eq!(
        cloud_hypervisor::machine(&all, &machine).unwrap(),
        format!(
            "--cpus boot=4 \\\n--memory size=4096M,shared=on \\\n--disk {disk} \\\n  {disk} \\\n--net {net}"
        )
    );
    // Cards may listen; disks may not.
    card.effective.insert("socket_role".to_owned(), Value::Text("client".to_owned()));
    let text = cloud_hypervisor::devices(&[card.clone()], &machine).unwrap();
    assert!(text.contains(",socket=/run/ent0.sock,vhost_mode=server,mac="), "{text}");
    let to_it = args(EmitTarget::CloudHypervisor);
    let all = notes(&to_it, &[card.clone()], &machine);
    assert!(all.iter().any(|note| note.starts_with("cloud-hypervisor makes /run/ent0.sock")));
    card.kind = "block".to_owned();
    let all = notes(&to_it, &[card.clone()], &machine);
    assert!(
        all.iter().any(|note| note.starts_with("missing: cloud-hypervisor's disks")),
        "{all:?}"
    );
    for kind in ["scsi", "fc"] {
        card.kind = kind.to_owned();
        let refused = cloud_hypervisor::machine(&[adapter("listening"), card.clone()], &machine);
        assert!(format!("{:?}", refused.unwrap_err()).contains("no SCSI device"));
    }
}

#[test]
fn what_a_shell_would_take_apart_is_quoted() {
    let mut adapter = adapter("listening");
    adapter.name = "0a.b".to_owned();
    adapter.socket = "/run/my disks/$x'.sock".to_owned();
    let text = lines(devices(&[adapter], &machine((7, 2))));
    // As a shell reads it.
    let script = format!("printf '%s\\n' {text}");
    let words = std::process::Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
    assert_eq!(
        String::from_utf8(words).unwrap(),
        "-chardev\nsocket,id=trunkline-0a.b,path=/run/my disks/$x'.sock,reconnect=1\n-device\n\
         vhost-user-blk-pci,chardev=trunkline-0a.b,num-queues=2,queue-size=256\n"
    );
}

#[test]
fn several_adapters_are_one_machine() {
    let mut scsi = adapter("listening");
    (scsi.name, scsi.kind) = ("vhost1".to_owned(), "scsi".to_owned());
    let all = [adapter("listening"), scsi, adapter("listening")];
    let text = qemu(&all, &machine((7, 2)));
    assert_eq!(text.matches("-object ").count(), 1, "{text}");
    assert_eq!(text.matches("-device vhost-user-blk-pci,").count(), 2, "{text}");
    let text = libvirt(&all, &machine((7, 2)));
    let places = ["dev='vda'", "dev='vdb'", "</devices>", "<qemu:commandline>", "</domain>"];
    let places = places.map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}")));
    assert!(places.is_sorted(), "{text}");
    assert_eq!([target(25), target(26), target(702)], ["vdz", "vdaa", "vdaaa"]);
}

#[test]
fn a_disk_alone_is_what_libvirt_attaches() {
    let text = elements(&[adapter("listening")], &machine((7, 2))).unwrap();
    assert!(text.starts_with("<disk type='vhostuser'") && text.ends_with("</disk>\n"), "{text}");
    let mut scsi = adapter("listening");
    scsi.kind = "scsi".to_owned();
    assert!(elements(&[scsi], &machine((7, 2))).is_err());
}
