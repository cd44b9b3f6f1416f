//! Names that a server gives, beside those of another server.

use super::*;

/// What `lsdev -vpd` says of the first port: its WWPN and its location code.
fn names(server: &Server) -> [String; 2] {
    let vpd = server.ok("ioscli lsdev -dev fcs0 -vpd");
    ["Network Address", "Hardware Location Code"].map(|what| {
        let line = vpd.lines().find_map(|line| line.trim().strip_prefix(what));
        line.unwrap_or_else(|| panic!("{vpd}")).trim_start_matches('.').to_owned()
    })
}

#[test]
fn names_and_location_codes_of_ports_differ_between_servers_and_are_kept() {
    let mut servers = [Server::start(&[]), Server::start(&[])];
    servers.iter().for_each(|server| drop(server.ok("port create fcs0")));
    let first = servers.each_ref().map(names);
    for (one, other) in first[0].iter().zip(&first[1]) {
        assert_ne!(one, other, "of a port that is all that there is");
    }
    let kept = |servers: &[Server; 2], after: &str| {
        assert_eq!(servers.each_ref().map(names), first, "{after}");
    };
    for server in &servers {
        server.ok("adapter create vfchost0 --kind fc --port fcs0");
    }
    kept(&servers, "the first WWPNs were given out");
    let maps = servers.each_ref().map(|server| {
        server.ok("ioscli lsmap -npiv -all -field physloc fcphysloc -fmt :").trim().to_owned()
    });
    assert_ne!(maps[0], maps[1]);
    assert!(maps[0].ends_with(&first[0][1]), "{maps:?} and {first:?}");
    for server in &servers {
        server.ok("dataplane set main --wwpn-prefix c0:50:76:12:34:56");
    }
    kept(&servers, "its data plane gives out other WWPNs");
    for server in &mut servers {
        server.ok("stop --with-dataplanes");
        server.child.take().unwrap().wait().unwrap();
        server.serve(&[]);
    }
    kept(&servers, "a restart");
    for server in &servers {
        server.ok("adapter remove vfchost0");
        server.ok("port remove fcs0");
        server.ok("port create fcs0");
    }
    kept(&servers, "it was made again");
}
