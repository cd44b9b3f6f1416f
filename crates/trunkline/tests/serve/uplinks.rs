//! Uplinks of a server that has confined itself, in a network namespace of the test's own.

use super::*;

#[test]
fn an_uplink_stays_over_the_death_of_a_data_plane() {
    testkit::in_network_namespace("uplinks::in_a_namespace");
}

/// What `ip` says of an interface; nothing if it is not there.
fn interface() -> String {
    let run = Command::new("ip").args(["-o", "link", "show", "up0"]).output().unwrap();
    String::from_utf8(run.stdout).unwrap()
}

#[test]
#[ignore = "in a namespace"]
fn in_a_namespace() {
    let server = Server::start(&[]);
    server.ok("network create net0 --mtu 9000");
    server.ok("adapter create ent0 --kind ethernet --network net0");
    server.ok("uplink create up0 --network net0");
    let connected = |_: &Server| interface().contains("LOWER_UP");
    server.until("a descriptor of the interface", connected);
    assert!(interface().contains("mtu 9000"), "{}", interface());
    server.ok("uplink wait up0");
    let state = |server: &Server| server.try_status().unwrap()["uplinks"][0]["state"].clone();
    assert_eq!(state(&server), "connected");
    assert!(server.ok("uplink list").contains("connected"));
    server.ok("status --exit-code");
    // Statistics are by name.
    let same = server.run("uplink create ent0 --network net0 --pvid 2");
    assert_eq!(same.status.code(), Some(2), "{same:?}");
    let same = server.run("adapter create up0 --kind ethernet --network net0");
    assert_eq!(same.status.code(), Some(2), "{same:?}");
    // Somebody has it: what could be a loop is refused.
    let second = server.run("uplink create up1 --network net0 --interface up0");
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    let used = server.run("network remove net0");
    let help = String::from_utf8_lossy(&used.stderr).into_owned();
    assert!(help.contains("`trunkline adapter remove ent0`"), "{help}");
    server.kill_plane();
    server.until("its descriptor", connected);
    // One that cannot be connected any more is seen in the status.
    // The data plane that has just come may make it once more in between.
    server.until("another kind of interface", |_| {
        let ip = |words: &str| Command::new("ip").args(words.split(' ')).output().unwrap().status;
        ip("link del up0");
        ip("link add up0 type bridge").success()
    });
    server.kill_plane();
    server.until("the failure", |server| state(server) == "failed");
    let status = server.run("status --exit-code");
    let page = String::from_utf8(status.stdout).unwrap();
    assert!(!status.status.success() && page.contains("ip tuntap add up0"), "{page}");
    ip("link del up0");
    server.until("another interface", connected);
    server.ok("uplink wait up0");
    server.ok("stats up0");
    server.ok("uplink remove up0");
    server.until("nobody behind the interface", |_| interface().contains("NO-CARRIER"));
}

#[test]
fn several_uplinks_are_one() {
    testkit::in_network_namespace("uplinks::several_are_one_inside");
}

#[test]
#[ignore = "in a namespace"]
fn several_are_one_inside() {
    let server = Server::start(&[]);
    server.ok("network create net0");
    for name in ["ent1", "ent2"] {
        server.ok(&format!("uplink create {name}"));
    }
    let refused = server.run("ioscli mkvdev -lnagg ent1,ent2 -attr mode=8023ad -dev ent3");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("there is no LACP"), "{refused:?}");
    let made = server.ok("ioscli mkvdev -lnagg ent1,ent2 -attr mode=netif_backup -dev ent3");
    assert_eq!(made, "ent3 Available\n");
    let attributes = server.ok("ioscli lsdev -dev ent3 -attr");
    for (name, value) in [("members", "ent1,ent2"), ("mode", "active-backup")] {
        let is_it = |row: &str| row.split_whitespace().take(2).eq([name, value]);
        assert!(attributes.lines().any(is_it), "{attributes}");
    }
    server.ok("trunk create ent5 --network net0");
    server.ok("adapter create ent0 --kind ethernet --network net0");
    server.ok("ioscli mkvdev -sea ent3 -vadapter ent5 -default ent5 -defaultid 1 -dev ent6");
    server.ok("uplink wait ent3");
    server.ok("uplink wait ent1 --for active");
    server.ok("uplink wait ent2 --for backup");
    assert!(server.ok("uplink show ent3").contains("ent1 active, ent2 backup"));
    let devices = server.ok("ioscli lsdev -dev ent3");
    assert!(devices.contains("EtherChannel / 802.3ad Link Aggregation"), "{devices}");
    server.ok("sea check");
    let trunk = |server: &Server| {
        let shown = server.ok("ioscli entstat -all ent6");
        assert!(shown.contains("Statistics for every adapter in the EtherChannel:"), "{shown}");
        assert!(shown.contains("ETHERNET STATISTICS (ent2)"), "{shown}");
        shown.split_once("Virtual Adapter: ent5").unwrap().1.contains("Receive Statistics:")
    };
    assert!(!trunk(&server), "nothing is counted by trunk adapter");
    server.ok("ioscli chdev -dev ent6 -attr accounting=enabled");
    assert!(trunk(&server), "it is counted now");
    server.ok("ioscli seastat -d ent6 -s vlan=None -s ip=192.0.2.1");
    server.ok("stats ent2");
    let ip = |words: &str| {
        assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success());
    };
    ip("link set ent1 down");
    server.ok("uplink wait ent1 --for down");
    server.ok("uplink wait ent2 --for active");
    let says = |words: &str| {
        let run = server.run(words);
        let said = String::from_utf8([run.stdout, run.stderr].concat()).unwrap();
        assert!(said.contains("ent1 is down: it has no carrier"), "{words}: {said}");
    };
    says("sea check");
    says("adapter explain ent0");
    says("uplink show ent3");
    assert_eq!(server.run("status --exit-code").status.code(), Some(8));
    let used = server.run("uplink remove ent1");
    assert!(!used.status.success(), "{used:?}");
    ip("link set ent1 up");
    server.ok("uplink wait ent1 --for active");
    server.ok("sea check");
    // Connected anew.
    server.ok("ioscli chdev -dev ent3 -attr mode=standard");
    server.ok("uplink wait ent2 --for active");
    server.kill_plane();
    server.ok("uplink wait ent1 ent2 --for active");
    server.ok("ioscli rmvdev -sea ent6");
    assert!(!server.run("ioscli rmvdev -lnagg ent1").status.success(), "it is none");
    assert_eq!(server.ok("ioscli rmvdev -lnagg ent3"), "ent3 deleted\n");
    server.ok("uplink remove ent1");
}

/// With `thread=1` the uplink is on the last of two channels, and that is told wherever one asks.
fn has_a_channel_of_its_own(server: &Server) {
    server.ok("dataplane set main --channels 2");
    server.ok("dataplane restart main");
    let channels = |wanted: [u32; 2]| {
        server.until("the channels of the uplink", |server| {
            let uplink: serde_json::Value =
                serde_json::from_str(&server.ok("uplink show ent1 -o json")).unwrap();
            uplink["channels"] == serde_json::json!(wanted)
        });
    };
    channels([1, 1]);
    let thread = |value: &str| {
        let attributes = server.ok("ioscli lsdev -dev ent2 -attr");
        let line = attributes.lines().find(|line| line.starts_with("thread")).unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some(value), "{line}");
    };
    thread("1");
    assert!(server.ok("ioscli entstat -all ent2").contains("    < THREAD >\n"));
    let explained = server.ok("adapter explain ent0");
    assert!(explained.contains("runs, without that of ent2 (thread=1)"), "{explained}");
    assert_eq!(server.ok("ioscli chdev -dev ent2 -attr thread=0"), "ent2 changed\n");
    channels([0, 1]);
    thread("0");
    assert!(!server.ok("ioscli entstat -all ent2").contains("THREAD"));
    assert!(!server.ok("adapter explain ent0").contains("without"));
    server.ok("dataplane set main --channels 0");
    server.ok("dataplane restart main");
    server.ok("uplink wait ent1");
}

/// What passes is counted by client where that is enabled, and said with the commands of either.
fn counts_its_clients(server: &Server) {
    let not_yet = server.run("ioscli seastat -d ent2");
    let why = String::from_utf8_lossy(&not_yet.stderr).into_owned();
    assert_eq!(not_yet.status.code(), Some(2), "{not_yet:?}");
    assert!(why.contains("`trunkline sea set ent2 --accounting enabled`"), "{why}");
    assert_eq!(server.ok("ioscli chdev -dev ent2 -attr accounting=enabled"), "ent2 changed\n");
    assert_eq!(server.ok("ioscli lsdev -dev ent2 -attr accounting"), "value\n\nenabled\n");
    assert!(server.ok("ioscli seastat -d ent2 -n").contains("Device Name: ent2\n"));
    assert!(server.ok("sea clients ent2").contains("\nent7 "));
    assert_eq!(server.ok("ioscli seastat -d ent2 -c"), "");
    server.ok("sea clients ent2 --clear");
    server.ok("sea set ent2 --accounting disabled");
}

/// The VLANs of a shared adapter are listed with what bridges them.
fn vlans_are_listed(server: &Server) {
    let list = server.ok("vlan list net0");
    let row = |vlan: &str| {
        let mut rows = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.find(|row| row[1] == vlan).unwrap_or_default().join(" ")
    };
    assert_eq!(row("30"), "net0 30 - ent2 ent1 3 bridges (PRIMARY)", "{list}");
    assert!(row("1").ends_with("ent2 ent1 3 bridges (PRIMARY)"), "{list}");
    let one = server.ok("vlan show 30");
    assert!(one.contains("ent1, with a tag") && one.contains("ent7"), "{one}");
    assert_eq!(server.run("vlan show 31").status.code(), Some(3));
}

#[test]
fn a_shared_adapter_is_made_with_the_commands_of_the_original() {
    testkit::in_network_namespace("uplinks::a_shared_adapter_inside");
}

#[test]
#[ignore = "in a namespace"]
fn a_shared_adapter_inside() {
    let server = Server::start(&[]);
    server.ok("network create net0 --mtu 9000");
    server.ok("uplink create ent1");
    server.ok("trunk create ent5 --network net0 --vlans 10,20");
    server.ok("trunk create ent7 --network net0 --pvid 99 --vlans 30");
    server.ok("adapter create ent0 --kind ethernet --network net0");
    assert_eq!(server.try_status().unwrap()["uplinks"][0]["state"], "unused");
    let without = server.run("ioscli mkvdev -sea ent1 -vadapter ent5 -default ent5 -defaultid 2");
    let why = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(!without.status.success() && why.contains("port VLAN ID"), "{why}");
    for refused in ["thread=2", "nthreads=7"] {
        let make = "ioscli mkvdev -sea ent1 -vadapter ent5 -default ent5 -defaultid 1 -attr";
        let threads = server.run(&format!("{make} {refused}"));
        assert_eq!(threads.status.code(), Some(2), "{threads:?}");
    }
    let made = server
        .ok("ioscli mkvdev -sea ent1 -vadapter ent5 -default ent5 -defaultid 1 -attr thread=1");
    assert_eq!(made, "ent2 Available\n");
    server.ok("uplink wait ent1");
    has_a_channel_of_its_own(&server);
    let link = Command::new("ip").args(["-o", "link", "show", "ent1"]).output().unwrap();
    assert!(String::from_utf8(link.stdout).unwrap().contains("mtu 9000"));
    let map = server.ok("ioscli lsmap -all -net");
    assert!(
        map.contains("SEA                   ent2") && map.contains("Backing device        ent1"),
        "{map}"
    );
    assert!(map.contains("NO SHARED ETHERNET ADAPTER FOUND"), "{map}");
    assert_eq!(server.ok("ioscli chdev -dev ent2 -attr virt_adapters=ent5,ent7"), "ent2 changed\n");
    let attributes = server.ok("ioscli lsdev -dev ent2 -attr");
    assert!(
        attributes.contains("ent5,ent7") && attributes.contains("pvid_adapter"),
        "{attributes}"
    );
    let stat = server.ok("ioscli entstat -all ent2");
    assert!(stat.contains("    ent5: 1 10 20") && stat.contains("    ent7: 99 30"), "{stat}");
    counts_its_clients(&server);
    // A second way for a VLAN to the world outside is refused.
    let way = server.run("uplink create up0 --network net0 --pvid 30");
    assert_eq!(way.status.code(), Some(2), "{way:?}");
    server.ok("sea check");
    // Failover needs the file that partners share; alone in it, the adapter bridges.
    let without = server.run("ioscli chdev -dev ent2 -attr ha_mode=auto");
    let why = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(!without.status.success() && why.contains("ctl_chan"), "{why}");
    let wrong = server.run("sea set ent2 --ha-mode auto --token etcd:https://10.0.0.1:2379/net0");
    let why = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success() && why.contains("no TLS"), "{why}");
    let control = server.dir.path().join("net0.sea");
    let both = format!("--ctl-chan {} --token etcd:http://10.0.0.1:2379/net0", control.display());
    let both = server.run(&format!("sea set ent2 {both}"));
    let why = String::from_utf8_lossy(&both.stderr).into_owned();
    assert!(!both.status.success() && why.contains("ctl_chan and token together"), "{why}");
    server
        .ok(&format!("sea set ent2 --ctl-chan {} --ha-mode auto --priority 3", control.display()));
    server.until("a bridge that has its tokens", |server| {
        let page = server.ok("sea show ent2");
        page.contains("PRIMARY: no partner is heard; bridges VLANs 1,10,20,30")
    });
    let stat = server.ok("ioscli entstat -all ent2");
    assert!(
        stat.contains("    State: PRIMARY") && stat.contains("Priority: 3  Active: True"),
        "{stat}"
    );
    vlans_are_listed(&server);
    server.until("the event", |server| server.ok("events --of ent2").contains("failover"));
    server.ok("sea set ent2 --link lo");
    let asked = server.run("sea set ent2 --netaddr gateway");
    let why = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert_eq!(asked.status.code(), Some(2), "{asked:?}");
    assert!(why.contains("netaddr gateway is no IPv4 address"), "{why}");
    assert_eq!(server.ok("ioscli chdev -dev ent2 -attr netaddr=192.0.2.1"), "ent2 changed\n");
    server.until("the address to be given up", |server| {
        server.ok("sea show ent2").contains("netaddr does not answer; takeovers")
    });
    assert_eq!(server.ok("ioscli lsdev -dev ent2 -attr netaddr"), "value\n\n192.0.2.1\n");
    server.ok("ioscli chdev -dev ent2 -attr netaddr=0");
    server.ok("ioscli chdev -dev ent2 -attr fb_delay=10 noauto_failback=yes");
    let attributes = server.ok("ioscli lsdev -dev ent2 -attr");
    assert!(attributes.contains("noauto_failback"), "{attributes}");
    assert_eq!(server.ok("ioscli lsdev -dev ent2 -attr fb_delay"), "value\n\n10\n");
    server.until("limbo: lo is down", |server| server.ok("sea show ent2").contains("LIMBO"));
    server.ok("sea set ent2 --link ent1");
    server.ok("sea check");
    server.ok("adapter set ent0 --pvid 99");
    let check = server.run("sea check");
    let text = String::from_utf8_lossy(&check.stdout).into_owned();
    assert_eq!(check.status.code(), Some(8), "{check:?}");
    assert!(text.contains("client-on-trunk-pvid") && text.contains("ent0"), "{text}");
    let used = server.run("ioscli rmdev -dev ent5");
    assert!(!used.status.success(), "{used:?}");
    assert_eq!(server.ok("ioscli rmvdev -sea ent2"), "ent2 deleted\n");
    server.until("the end of the bridge", |server| {
        server.try_status().unwrap()["uplinks"][0]["state"] == "unused"
    });
}

#[test]
fn an_uplink_by_packet_sockets_is_made_with_its_command() {
    testkit::in_network_namespace("uplinks::by_packet_sockets");
}

#[test]
#[ignore = "in a namespace"]
fn by_packet_sockets() {
    let server = Server::start(&[]);
    server.ok("network create net0");
    let create = "uplink create v0 --network net0 --kind packet";
    let refusal = || {
        let refused = server.run(create);
        assert!(!refused.status.success(), "{refused:?}");
        String::from_utf8_lossy(&refused.stderr).into_owned()
    };
    let missing = refusal();
    assert!(missing.contains("the interface v0: No such device"), "{missing}");
    ip("link add v0 type veth peer name v1");
    ip("link set v1 up");
    let down = refusal();
    assert!(down.contains("Network is down") && down.contains("ip link set v0 up"), "{down}");
    ip("link set v0 up");
    server.ok(create);
    server.ok("uplink wait v0");
    let heard = || {
        let run = Command::new("ip").args(["-o", "-d", "link", "show", "v0"]).output().unwrap();
        let text = String::from_utf8(run.stdout).unwrap();
        let (_, after) = text.split_once("promiscuity ").expect("it is told");
        !after.starts_with('0')
    };
    assert!(heard(), "only what is for the interface would come");
    let list = server.ok("ioscli lsdev");
    assert!(list.contains("Ethernet uplink (packet sockets)"), "{list}");
    let stat = server.ok("ioscli entstat v0");
    assert!(stat.contains("Ethernet uplink (packet sockets)"), "{stat}");
    let again = server.run("uplink set v0 --kind tap");
    assert_eq!(again.status.code(), Some(5), "{again:?}");
    // A data plane that finds the interface down is told when it is up again.
    ip("link set v0 down");
    server.kill_plane();
    let state = |server: &Server| server.try_status().unwrap()["uplinks"][0]["state"].clone();
    server.until("the failure", |server| state(server) == "failed");
    let why = server.ok("uplink show v0");
    assert!(why.contains("Network is down"), "{why}");
    let page = String::from_utf8(server.run("status --exit-code").stdout).unwrap();
    assert!(page.contains("ip link set v0 up"), "{page}");
    ip("link set v0 up");
    server.until("the interface", |server| state(server) == "connected");
    server.ok("uplink remove v0");
    server.until("nobody behind the interface", |_| !heard());
}

#[test]
fn an_uplink_by_af_xdp_is_made_with_its_command() {
    testkit::in_network_namespace("uplinks::by_af_xdp");
}

#[test]
#[ignore = "in a namespace"]
fn by_af_xdp() {
    let server = Server::start(&[]);
    server.ok("network create net0");
    let create = "uplink create v0 --network net0 --kind xdp";
    ip("link add v0 type veth peer name v1");
    ip("link set v1 up");
    let refused = server.run(create);
    let down = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(down.contains("Network is down") && down.contains("ip link set v0 up"), "{down}");
    ip("link set v0 up");
    let told = |word: &str| {
        let run = Command::new("ip").args(["-o", "-d", "link", "show", "v0"]).output().unwrap();
        String::from_utf8(run.stdout).unwrap().contains(word)
    };
    let text = "[network.net0]\n[uplink.v0]\nnetwork = \"net0\"\nkind = \"xdp\"\n";
    let file = server.dir.path().join("wanted.toml");
    std::fs::write(&file, text).unwrap();
    server.ok(&format!("apply {}", file.display()));
    server.ok("uplink wait v0");
    assert!(told("prog/xdp") && !told("promiscuity 0"), "nothing is given to the sockets");
    let shown = server.ok("uplink show v0");
    assert!(shown.contains("AF_XDP by its driver, copied, 1 queue"), "{shown}");
    let list = server.ok("ioscli lsdev");
    assert!(list.contains("Ethernet uplink (AF_XDP sockets)"), "{list}");
    assert!(server.ok("ioscli entstat v0").contains("Ethernet uplink (AF_XDP sockets)"));
}

#[test]
fn an_interface_is_in_another_network_namespace() {
    testkit::in_network_namespace("uplinks::elsewhere_inside");
}

#[test]
#[ignore = "in a namespace"]
fn elsewhere_inside() {
    let other = testkit::Elsewhere::new();
    let path = other.path().display().to_string();
    let server = Server::start(&[]);
    server.ok("network create net0");
    server.ok("network create net1");
    let wrong = server.run("uplink create up0 --network net0 --netns run/blue");
    let why = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && why.contains("is no network namespace"), "{why}");
    server.ok(&format!("uplink create up0 --network net0 --netns {path}"));
    server.ok("uplink wait up0");
    other.run("ip link show up0");
    let here = Command::new("ip").args(["link", "show", "up0"]).output().unwrap();
    assert!(!here.status.success(), "it is here: {here:?}");
    // That interface has its uplink; one of its name here is another one.
    let twice =
        server.run(&format!("uplink create up1 --network net1 --interface up0 --netns {path}"));
    assert_eq!(twice.status.code(), Some(2), "{twice:?}");
    server.ok("uplink create up1 --network net1 --interface up0");
    server.ok("uplink wait up1");
    server.ok("uplink remove up1");
    // Whoever dies comes back to it.
    server.kill_plane();
    server.until("its descriptor", |server| {
        server.try_status().is_some_and(|status| status["uplinks"][0]["state"] == "connected")
    });
    other.run("ip link del up0");
    // A namespace that is not there is told, and not waited for.
    let missing = server.run("uplink create up2 --network net1 --netns no-such");
    let why = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(!missing.status.success() && why.contains("/run/netns/no-such"), "{why}");
}

/// Whom systemd gives a capability hands it on to what it starts.
#[test]
fn what_the_server_may_its_data_plane_may_not() {
    if !testkit::is_root("capabilities") {
        return;
    }
    let server = Server::started_by(
        "setpriv",
        &[
            "--securebits=+noroot",
            "--inh-caps=-all,+net_admin,+sys_admin",
            "--ambient-caps=-all,+net_admin,+sys_admin",
        ],
    );
    let own = server.child.as_ref().unwrap().id();
    let has = |process: u32| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let all = status.lines().filter_map(|line| line.strip_prefix("CapPrm:\t"));
        all.map(|set| u64::from_str_radix(set, 16).unwrap()).next().unwrap()
    };
    assert_eq!(has(own), 1 << 12 | 1 << 21);
    assert_eq!(has(server.plane_pid().as_raw_nonzero().get().cast_unsigned()), 0);
    server.kill_plane();
    assert_eq!(has(server.plane_pid().as_raw_nonzero().get().cast_unsigned()), 0);
}
