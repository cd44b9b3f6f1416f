//! What scripts ask of the command line.

use super::Bench;
use control::trail::Kind;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn names_alone_and_tables_without_headings() {
    let bench = Bench::with_disk();
    bench.ok("volume create disk1 --kind null --size 1GiB");
    assert_eq!(bench.ok("volume list -o name"), "disk0\ndisk1\n");
    assert_eq!(bench.ok("volume show disk1 disk0 -o name"), "disk1\ndisk0\n");
    assert_eq!(bench.ok("volume create disk2 --kind null --size 1GiB -o name"), "disk2\n");
    assert_eq!(bench.ok("zone list -o name"), "");
    assert!(bench.refused("status -o name", 2).contains("no names"));
    let (with, without) = (bench.ok("volume list"), bench.ok("volume list --no-headers"));
    assert_eq!(with.lines().count(), without.lines().count() + 1, "{without}");
    assert!(!without.contains("VOLUME") && without.starts_with("disk0 "), "{without}");
}

#[test]
fn several_are_shown_and_those_that_are_not_there_are_named() {
    let bench = Bench::with_disk();
    bench.ok("volume create disk1 --kind null --size 1GiB");
    let text = bench.ok("volume show disk0 disk1");
    assert_eq!(text.matches("volume  ").count(), 2, "{text}");
    let text = bench.refused("volume show disk0 nothing disk1", 3);
    assert!(text.contains("no volume `nothing`") && text.contains("disk1"), "{text}");
    let text = bench.ok("volume show disk0 disk1 -o json");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json[1]["name"], "disk1");
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let bench = Bench::with_disk();
    for (line, code) in [
        ("volume nosuch -o json", 2),
        ("status --nosuch --output json", 2),
        ("-ojson operation show abc", 2),
        ("size vscsi --output=json", 2),
        ("volume wait disk0 --for full --timeout 1s -o json", 1),
    ] {
        let text = bench.refused(line, code);
        let error: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{line}: {text}"));
        assert_eq!(error["exit_code"], code, "{line}: {error}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{line}: {error}");
    }
    let text = bench.refused("volume nosuch -- -o json", 2);
    assert!(text.starts_with("error: "), "{text}");
}

#[test]
fn names_alone_are_those_of_what_there_is() {
    let bench = Bench::with_disk();
    assert_eq!(bench.ok("export -o name"), "vhost0\ndisk0\n");
    assert_eq!(bench.ok("operation ls -o name"), bench.ok("operation list -o name"));
}

#[test]
fn a_machine_gets_each_adapter_once_and_has_a_cpu() {
    let bench = Bench::with_disk();
    let once = bench.ok("emit qemu vhost0");
    assert_eq!(bench.ok("emit qemu vhost0 vhost0"), once);
    assert!(bench.refused("emit qemu vhost0 --vcpus 0", 2).contains("0 is not in 1.."));
    assert!(!once.contains("the same serial number"), "{once}");
    for name in ["customer-database-volume-1", "customer-database-volume-2"] {
        bench.ok(&format!("volume create {name} --kind null --size 1GiB"));
        bench.ok(&format!("adapter create {name}-disk --volume {name}"));
    }
    let both = "customer-database-volume-1-disk customer-database-volume-2-disk";
    let text = bench.ok(&format!("emit qemu {both}"));
    assert!(text.contains("have the same serial number, customer-database-vo"), "{text}");
}

#[test]
fn lists_are_of_what_was_asked_for() {
    let bench = Bench::with_disk();
    bench.ok("volume create disk1 --kind null --size 1GiB");
    assert_eq!(bench.ok("volume list --where size=1GiB -o name"), "disk1\n");
    assert_eq!(bench.ok("volume list --where adapters=vhost0 -o name"), "disk0\n");
    assert_eq!(bench.ok("volume list --where state!=open -o name"), "");
    let text = bench.refused("volume list --where stat=open", 2);
    assert!(text.contains("did you mean `state`?"), "{text}");
}

#[test]
fn a_script_waits_for_a_state() {
    let bench = Bench::with_disk();
    bench.ok("volume wait disk0");
    bench.ok("adapter wait vhost0 --for listening");
    bench.ok("dataplane wait main");
    let text = bench.refused("adapter wait vhost0 --for running --timeout 1s", 1);
    assert!(text.contains("adapter `vhost0` is listening after 1 s"), "{text}");
    assert!(bench.refused("adapter wait vhost0 --for well", 2).contains("no state `well`"));
    bench.ok("volume wait nothing --for gone");
    let waits = ["adapter", "wait", "vhost0", "--for", "gone", "--timeout", "10m"];
    let mut waiting = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    let mut waiting = waiting.env("TRUNKLINE_DIR", bench.dir.path()).args(waits).spawn().unwrap();
    bench.ok("adapter remove vhost0");
    assert!(waiting.wait().unwrap().success());
}

#[test]
fn who_follows_events_hears_of_what_has_an_earlier_time() {
    let bench = Bench::with_disk();
    let mut follow = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    follow.env("TRUNKLINE_DIR", bench.dir.path()).args(["events", "--follow", "--since", "1h"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let told = lines.find(|line| line.as_ref().unwrap().contains("create adapter vhost0"));
    assert!(told.is_some());
    // As after the clock was set back by years.
    bench.server.trail().note_at(Some(1000), Kind::VolumeError, Some("disk0"), "of 1970");
    // What has the time of now, so that the test ends.
    bench.server.trail().note(Kind::VolumeError, Some("disk0"), "of today");
    let next = lines.next().unwrap().unwrap();
    follow.kill().unwrap();
    follow.wait().unwrap();
    assert_eq!(next, "1970-01-01T00:00:01Z volume_error disk0: of 1970");
}

#[test]
fn every_change_that_may_take_long_can_be_left_alone() {
    let bench = Bench::with_disk();
    let goes_on = |line: &str, input: &str| {
        let (code, text) = bench.run_with(line, input);
        assert_eq!(code, 0, "{line}: {text}");
        let id = text.rsplit("`trunkline operation wait ").next().unwrap();
        let id = id.trim_end_matches(['`', '\n']);
        bench.ok(&format!("operation wait {id}"));
    };
    goes_on("volume resize disk0 20GiB --no-wait", "");
    goes_on("volume create disk1 --kind null --size 1GiB --no-wait", "");
    goes_on("apply - --no-wait", "[volume.disk2]\nkind = \"null\"\nsize = \"1GiB\"\n");
    assert_eq!(bench.ok("volume list -o name"), "disk0\ndisk1\ndisk2\n");
}

#[test]
fn the_state_is_exported_for_programs_too() {
    let bench = Bench::with_disk();
    let json: serde_json::Value = serde_json::from_str(&bench.ok("export -o json")).unwrap();
    assert_eq!(json["adapter"]["vhost0"]["queues"], 8);
    assert_eq!(json["volume"]["disk0"]["size"], "10GiB");
    let yaml = bench.ok("export -o yaml");
    assert!(yaml.contains("vhost0:\n") && yaml.contains("queues: 8"), "{yaml}");
}

#[test]
fn output_that_nobody_reads_ends_every_command_in_order() {
    let bench = Bench::with_disk();
    for line in [
        "--help",
        "completions bash",
        "status",
        "status -o json",
        "export",
        "volume list",
        "volume show nothing",
        "adapter create vhost0 --volume disk0",
        "events",
        "events --follow",
        "stats --watch 0.1",
        "port top --watch 0.1",
        "emit libvirt vhost0",
        "attributes --markdown",
    ] {
        let pipes = [std::io::pipe().unwrap(), std::io::pipe().unwrap()];
        let [out, error] = pipes.map(|(reader, writer)| {
            drop(reader);
            writer
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.env("TRUNKLINE_DIR", bench.dir.path()).args(line.split_whitespace());
        let status = command.stdin(Stdio::null()).stdout(out).stderr(error).status().unwrap();
        // 101 is a panic.
        assert!(status.code().is_some_and(|code| code < 10), "{line}: {status}");
    }
}

#[test]
fn the_unit_of_the_guide_is_taken_by_systemd_and_exposes_little() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let unit = page.split("```ini\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    // Data planes go on, and it comes up again with the machine.
    for line in ["KillMode=process", "User=trunkline", "LimitMEMLOCK=", "WantedBy="] {
        assert!(unit.lines().any(|found| found.starts_with(line)), "{line} is missing");
    }
    // Its processes confine themselves, and open what they do not name by descriptors of each other: what is not among systemd's sets.
    let filter = unit.lines().filter_map(|line| line.strip_prefix("SystemCallFilter="));
    let calls: Vec<&str> = filter.flat_map(str::split_whitespace).collect();
    for call in
        ["seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"]
    {
        assert!(calls.contains(&call), "{call} is not let through: {calls:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trunkline.service");
    std::fs::write(&file, unit.replace("/usr/bin/trunkline", env!("CARGO_BIN_EXE_trunkline")))
        .unwrap();
    let analyze = |arguments: &[&str]| {
        let output = Command::new("systemd-analyze").args(arguments).arg(&file).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let known = text.lines().filter(|line| line.contains("trunkline.service")).count();
        (output.status.success(), known, text)
    };
    let (good, remarks, text) = analyze(&["verify"]);
    assert!(good && remarks == 0, "{text}");
    // In tenths: an exposure of 2.0 at most.
    let (good, _, text) = analyze(&["security", "--offline=true", "--threshold=20"]);
    assert!(good, "{text}");
}

#[test]
fn who_follows_ends_with_his_reader() {
    let bench = Bench::with_disk();
    // Nothing happens meanwhile that would have to be written.
    for line in ["events --follow", "stats --watch 3600", "port top --watch 3600"] {
        let mut follow = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        follow.env("TRUNKLINE_DIR", bench.dir.path()).args(line.split(' '));
        let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
        drop(follow.stdout.take());
        assert!(follow.wait().unwrap().success(), "{line}");
    }
}

#[test]
fn what_cannot_be_written_is_an_error_of_the_output() {
    let bench = Bench::with_disk();
    for line in ["--help", "volume create --help", "--version", "volume set disk0 --limit-iops 7"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.env("TRUNKLINE_DIR", bench.dir.path()).args(line.split(' '));
        let ended = command.stdout(full).output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.code() == Some(1), "{line}: {told}");
        assert!(
            told.contains("standard output cannot be written: No space left"),
            "{line}: {told}"
        );
    }
    assert!(bench.ok("volume show disk0").contains("limit_iops"));
    // Nor does anything panic where errors cannot be written.
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut advise = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    advise.env("TRUNKLINE_DIR", bench.dir.path()).args(["plan", "advise", "--server"]);
    assert!(advise.stderr(full).output().unwrap().status.code().is_some_and(|code| code < 100));
}

#[test]
fn a_flight_recorder_that_is_named_is_there() {
    let bench = Bench::with_disk();
    bench.ok("flight 0");
    assert!(bench.refused("flight 99", 3).contains("there is no channel 99"));
    assert!(bench.refused("flight --dataplane nothing", 3).contains("no dataplane `nothing`"));
}

#[test]
fn a_document_without_an_end_is_refused() {
    let bench = Bench::with_disk();
    for line in ["apply /dev/zero", "size vscsi /dev/zero"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.env("TRUNKLINE_DIR", bench.dir.path()).args(line.split(' '));
        let ended = command.output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.code().is_some_and(|code| code < 10) && !told.is_empty(), "{told}");
    }
    assert!(bench.refused("apply /dev/zero", 1).contains("longer than 16777216 bytes"));
}
