//! Storage pools by the original's commands, with both processes.

use super::super::Server;
use super::super::pools::{CHUNK, json, pool, pv};
use super::super::snapshots::refused;

/// What a list has of each, by its first column.
fn first_of_each(server: &Server, line: &str) -> Vec<String> {
    let text = server.ok(line);
    text.lines().filter_map(|line| line.split(':').next()).map(str::to_owned).collect()
}

#[test]
fn logical_units_are_made_mapped_resized_and_removed() {
    let server = Server::start(&[]);
    server.ok(&format!("pool create p0 --pvs {}", pv(&server, "pv", 24).display()));
    server.ok("adapter create vhost0 --kind scsi");
    let made = server.ok("ioscli lu -create -clustername trunkline -sp p0 -lu db -size 128");
    assert!(made.starts_with("Lu Name:db\nLu Udid:"), "{made}");
    let udid = made.lines().nth(1).and_then(|line| line.split(':').nth(1)).unwrap().to_owned();
    let made = server.ok("ioscli lu -create -lu log -size 1G -thick -vadapter vhost0 -vtd vlog");
    assert!(made.trim_end().ends_with("VTD:vlog"), "{made}");
    refused(&server, "ioscli lu -create -lu big -size 1T -thick", "space");
    refused(&server, "ioscli lu -create -lu odd -size 64 -vadapter none", "none");
    assert_eq!(first_of_each(&server, "ioscli lu -list -fmt :"), ["db", "log"]);
    let attributes = json(&server, "volume show log -o json")["attributes"].clone();
    assert_eq!((&attributes["size"], &attributes["thick"]), (&(1 << 30).into(), &true.into()));
    // By its identifier as well, and a running client sees the new size.
    server.ok(&format!("ioscli lu -map -luudid {udid} -vadapter vhost0"));
    let mapped = server.ok("ioscli lsmap -vadapter vhost0 -field vtd backing -fmt :");
    assert!(mapped.contains("vlog:log") && mapped.contains(":db"), "{mapped}");
    server.ok("ioscli lu -resize -lu db -size 256");
    assert_eq!(json(&server, "volume show db -o json")["attributes"]["size"], 256 << 20);
    refused(&server, "ioscli lu -resize -lu db -size 64", "would shrink");
    refused(&server, "ioscli lu -remove -lu log", "vlog");
    server.ok("ioscli lu -unmap -lu log -vadapter vhost0");
    server.ok("ioscli lu -remove -lu log");
    server.ok("ioscli lu -unmap -lu db");
    server.ok("ioscli lu -remove -all -sp p0");
    assert_eq!(pool(&server)["space"]["lus"], serde_json::json!([]));
}

#[test]
fn pvs_and_tiers_come_and_go_and_alerts_are_set() {
    let server = Server::start(&[]);
    let pvs = ["a", "b", "c", "d", "e"].map(|name| pv(&server, name, 16).display().to_string());
    let [a, b, c, d, e] = &pvs;
    server.ok(&format!("pool create p0 --pvs {a}"));
    server.ok("ioscli lu -create -lu db -size 64M");
    let paths = |server: &Server| -> Vec<String> {
        let all = pool(server)["space"]["pvs"].as_array().unwrap().clone();
        all.iter().filter_map(|pv| pv["path"].as_str()).map(str::to_owned).collect()
    };
    server.ok(&format!("ioscli pv -add {b} {c} -sp p0"));
    assert_eq!(paths(&server), [a, b, c].map(String::as_str));
    server.ok(&format!("ioscli pv -replace -oldpv {b} -newpv {d}"));
    server.until("the new one alone", |server| {
        paths(server).contains(d) && !paths(server).contains(b)
    });
    server.ok(&format!("ioscli pv -remove -pv {c}"));
    server.until("its removal", |server| !paths(server).contains(c));
    refused(&server, "ioscli pv -remove -pv /nowhere", "/nowhere");
    // A tier.
    server.ok(&format!("ioscli tier -create -tier fast: {e}"));
    refused(&server, "ioscli tier -create -tier empty:", "PVs behind it");
    assert_eq!(first_of_each(&server, "ioscli tier -list -fmt :"), ["SYSTEM", "fast"]);
    server.ok("ioscli tier -modify -tier fast -attr tier_name=nvme");
    server.ok("ioscli tier -modify -tier nvme -attr default=yes");
    server.ok("ioscli lu -create -lu log -size 64M");
    assert_eq!(pool(&server)["space"]["lus"][1]["tier"], "nvme");
    refused(&server, "ioscli tier -remove -tier nvme", "default tier");
    server.ok("ioscli tier -modify -tier SYSTEM -attr default=yes");
    refused(&server, "ioscli tier -remove -tier nvme", "what is on it has no room");
    server.ok("ioscli lu -remove -lu log");
    server.until("nobody in it", |server| {
        pool(server)["space"]["lus"].as_array().is_some_and(|lus| lus.len() == 1)
    });
    server.ok("ioscli tier -remove -tier nvme");
    server.until("one tier", |server| paths(server) == [a, d].map(String::as_str));
    // Alerts.
    server.ok("ioscli alert -set -type threshold -value 30");
    server.ok("ioscli alert -set -type overcommit -value 50");
    let attributes = json(&server, "pool show p0 -o json")["attributes"].clone();
    assert_eq!(attributes["warn_percent"], 70);
    assert_eq!(attributes["warn_overcommit_percent"], 50);
    server.ok("ioscli alert -unset");
    server.ok("ioscli alert -unset -type overcommit");
    let attributes = json(&server, "pool show p0 -o json")["attributes"].clone();
    assert!(attributes["warn_percent"].is_null(), "{attributes}");
    assert!(pool(&server)["space"]["free_bytes"].as_u64().unwrap() > CHUNK);
}
