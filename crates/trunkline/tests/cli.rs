//! The command line against a server whose data plane keeps the books: what it prints, how it ends.

use control::fake::FakeLauncher;
use control::operation::Journal;
use control::paths::Paths;
use control::server::Server;
use control::store::{RedbStore, Store};
use control::supervisor::ProcessLauncher;
use protocol::stats::{ChannelCounter, Latency, QueueCounter};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[path = "cli/guide.rs"]
mod guide;
#[path = "cli/ioscli.rs"]
mod ioscli;
#[path = "cli/scripts.rs"]
mod scripts;

/// A server in this process, in a folder of its own.
struct Bench {
    dir: tempfile::TempDir,
    launcher: FakeLauncher,
    server: Arc<Server>,
    _runtime: tokio::runtime::Runtime,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(true)
    }

    /// With a data plane, or with a program that is none.
    fn with(data_plane: bool) -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::in_one(dir.path());
        let launcher = FakeLauncher::new(paths.dataplane("main"));
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let mut store = Box::new(RedbStore::open(&paths.store()).unwrap());
        // A number that others draw, so that names are the same each time.
        let mut numbered = store.load().unwrap();
        numbered.allocations.system = Some(0x5e_e3c1);
        store.commit(&numbered, &Journal::default()).unwrap();
        let make = {
            let (launcher, paths) = (launcher.clone(), paths.clone());
            Box::new(move |name: &str| -> Box<dyn control::supervisor::Launcher> {
                let (socket, log) = (paths.dataplane(name), paths.dataplane_log(name));
                match data_plane {
                    true => Box::new(launcher.clone()),
                    false => Box::new(ProcessLauncher::new(
                        "/bin/false".into(),
                        socket,
                        log,
                        paths.reservations_folder(),
                    )),
                }
            })
        };
        let server = runtime.block_on(async {
            let listener = tokio::net::UnixListener::bind(paths.api()).unwrap();
            let server = Server::start(paths, store, make, BTreeMap::new()).await.unwrap();
            let router = control::api::router(Arc::clone(&server));
            tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
            server
        });
        Bench { dir, launcher, server, _runtime: runtime }
    }

    /// A volume `disk0` and an adapter `vhost0` on it.
    fn with_disk() -> Bench {
        let bench = Bench::new();
        bench.ok("volume create disk0 --kind null --size 10GiB");
        bench.ok("adapter create vhost0 --volume disk0 --queues 8");
        bench
    }

    /// Runs a command line, cut at blanks; gives the exit code and everything printed, with the
    /// folder and the process id replaced.
    fn run_with(&self, line: &str, input: &str) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.env("TRUNKLINE_DIR", self.dir.path()).args(line.split_whitespace());
        command.env("COLUMNS", "100").current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text =
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        let dir = self.dir.path().to_str().unwrap();
        let pid = format!("process {}", std::process::id());
        (output.status.code().unwrap(), text.replace(dir, "DIR").replace(&pid, "process PID"))
    }

    fn run(&self, line: &str) -> (i32, String) {
        self.run_with(line, "")
    }

    fn ok(&self, line: &str) -> String {
        let (code, text) = self.run(line);
        assert_eq!(code, 0, "{line}: {text}");
        text
    }

    fn refused(&self, line: &str, code: i32) -> String {
        let (found, text) = self.run(line);
        assert_eq!(found, code, "{line}: {text}");
        text
    }
}

#[test]
fn nouns_and_verbs() {
    let bench = Bench::with_disk();
    insta::assert_snapshot!("volume_list", bench.ok("volume list"));
    insta::assert_snapshot!("volume_show", bench.ok("volume show disk0"));
    insta::assert_snapshot!("adapter_list", bench.ok("adapter list"));
    insta::assert_snapshot!("adapter_show", bench.ok("adapter show vhost0"));
    insta::assert_snapshot!("adapter_explain", bench.ok("adapter explain vhost0"));
    insta::assert_snapshot!("dataplane_show", bench.ok("dataplane show main"));
    insta::assert_snapshot!(
        "set",
        bench.ok("adapter set vhost0 --queues 4 --read-only --wait poll")
    );
    insta::assert_snapshot!("unset", bench.ok("adapter set vhost0 --unset queues --dry-run"));
    insta::assert_snapshot!("resize", bench.ok("volume resize disk0 20GiB"));
    insta::assert_snapshot!("export", bench.ok("export"));
    insta::assert_snapshot!("remove", bench.ok("adapter remove vhost0"));
}

#[test]
fn from_nothing_to_a_client_with_two_luns() {
    let bench = Bench::new();
    bench.ok("dataplane set main --wwpn-prefix c0:50:76:00:00:01");
    for line in [
        "volume create data --kind null --size 10GiB",
        "volume create logs --kind null --size 1GiB",
        "port create fcs0",
        "port create fcs1 --link-speed 16",
        "target create array0 --luns 0=data,1=logs",
        "adapter create vfchost0 --kind fc --port fcs0",
        "zone create zone0 --members vfchost0,array0",
    ] {
        bench.ok(line);
    }
    let made = bench.ok("mask create mask0 --initiators vfchost0 --targets array0");
    let shown = [
        made,
        bench.ok("port list"),
        bench.ok("port show fcs1"),
        bench.ok("target list"),
        bench.ok("zone list"),
        bench.ok("mask list"),
        bench.ok("adapter list"),
        bench.ok("port logins"),
        bench.ok("adapter explain vfchost0"),
        bench.ok("emit qemu vfchost0 --vcpus 2"),
        bench.ok("port map vfchost0 fcs1"),
        bench.ok("port unmap vfchost0"),
        bench.refused("port map vfchost0 fcs9", 2),
        bench.refused("port remove fcs2", 3),
        bench.refused("adapter create a --kind fc --volume data", 2),
    ];
    insta::assert_snapshot!("san", shown.join("\n"));
}

#[test]
fn a_virtual_scsi_adapter_with_a_disk_and_a_drive() {
    let bench = Bench::new();
    let iso = bench.dir.path().join("debian.iso");
    std::fs::write(&iso, [0; 2048]).unwrap();
    bench.ok(&format!("media create debian --path {}", iso.display()));
    bench.ok("volume create data --kind null --size 10GiB");
    bench.ok("adapter create vhost0 --kind scsi");
    bench.ok("vtd create vtscsi0 --adapter vhost0 --volume data");
    bench.ok("vtd create vtopt0 --adapter vhost0 --kind optical");
    let shown = [
        bench.ok("media load debian vtopt0"),
        bench.ok("media list"),
        bench.ok("vtd list"),
        bench.refused("media remove debian", 5),
        bench.ok("media unload vtopt0"),
        bench.ok("media remove debian"),
    ];
    insta::assert_snapshot!("vscsi", shown.join("\n"));
}

#[test]
fn of_several_names_all_are_tried_and_each_failure_is_reported() {
    let bench = Bench::with_disk();
    bench.ok("volume create disk1 --kind null --size 1GiB");
    bench.ok("volume create disk2 --kind null --size 1GiB");
    let text = bench.refused("volume remove disk0 disk1 nothing disk2", 5);
    for part in ["- volume disk1", "- volume disk2", "`disk0` is used by", "no volume `nothing`"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!bench.ok("volume list").contains("disk2"));
}

#[test]
fn errors_are_json_where_output_is_and_name_the_file() {
    let bench = Bench::with_disk();
    let text = bench.refused("volume show disk9 -o json", 3);
    assert!(text.contains("\"code\":\"not_found\"") && text.contains("\"exit_code\":3"), "{text}");
    let text = bench.refused("--dir /nowhere status -o json", 4);
    assert!(text.contains("\"exit_code\":4"), "{text}");
    let file = bench.dir.path().join("t.toml");
    std::fs::write(&file, "[volume.v]\nknid = \"null\"\n").unwrap();
    let text = bench.refused(&format!("apply {}", file.display()), 2);
    assert!(text.contains("DIR/t.toml: line 2:"), "{text}");
}

#[test]
fn the_exit_code_of_status_says_whether_all_is_well() {
    let bench = Bench::with_disk();
    bench.ok("status --exit-code");
    let broken = protocol::message::AdapterState::Broken;
    bench.launcher.current().unwrap().books().status.adapters[0].state = broken;
    bench.refused("status --exit-code", 8);
    // And of each trouble that is printed.
    let bench = Bench::with_disk();
    bench.ok("adapter set vhost0 --channels 8");
    let text = bench.refused("status --exit-code", 8);
    assert!(text.contains("vhost0") && text.contains("`channels`"), "{text}");
    bench.ok("adapter set vhost0 --unset channels");
    let trouble = "its file was removed";
    bench.launcher.current().unwrap().books().status.volumes[0].trouble = Some(trouble.to_owned());
    let text = bench.refused("status --exit-code", 8);
    assert!(text.contains(&format!("volume `disk0` is degraded: {trouble}")), "{text}");
    let text = bench.ok("events --of disk0");
    assert!(text.contains(&format!("volume_error disk0: {trouble}")), "{text}");
}

#[test]
fn status_says_what_is_there() {
    insta::assert_snapshot!("status", Bench::with_disk().ok("status"));
}

#[test]
fn the_same_as_json_and_yaml() {
    let bench = Bench::with_disk();
    insta::assert_snapshot!("volume_json", bench.ok("volume show disk0 -o json"));
    insta::assert_snapshot!("adapter_yaml", bench.ok("adapter list -o yaml"));
}

#[test]
fn a_configuration_is_applied_from_standard_input() {
    let bench = Bench::with_disk();
    let text = "[volume.disk0]\nkind = \"null\"\nsize = \"20GiB\"\n\n[adapter.vhost1]\nvolume = \"disk0\"\n";
    let (code, plan) = bench.run_with("apply - --prune --dry-run", text);
    assert_eq!(code, 0, "{plan}");
    insta::assert_snapshot!("apply_dry_run", plan);
    assert_eq!(bench.run_with("apply - --prune", text).0, 0);
    assert_eq!(bench.run_with("apply -", text), (0, "nothing to do\n".to_owned()));
    assert_eq!(bench.ok("export"), text);
    let (code, refused) = bench.run_with("apply -", "[adapter.vhost1]\nqueus = 4\n");
    assert_eq!(code, 2);
    insta::assert_snapshot!("apply_unknown_key", refused);
}

#[test]
fn a_disk_is_taken_from_a_client_only_by_force() {
    let bench = Bench::with_disk();
    let running = protocol::message::AdapterState::Running;
    bench.launcher.current().unwrap().books().status.adapters[0].state = running;
    let shown = [
        bench.refused("adapter remove vhost0", 5),
        bench.ok("adapter remove vhost0 --dry-run"),
        bench.run_with("apply - --prune --force --dry-run", "").1,
        bench.run_with("apply --prune -", "# nothing\n").1,
        bench.run_with("apply -", "[volume.disk1]\nkind = \"null\"\nsize = \"1GiB\"\n").1,
        bench.ok("adapter remove vhost0 --force"),
    ];
    insta::assert_snapshot!("force", shown.join("\n"));
}

#[test]
fn every_refusal_has_its_exit_code_and_says_what_mends_it() {
    let bench = Bench::with_disk();
    let all = [
        bench.refused("volume create disk1 --kind flie", 2),
        bench.refused("volume create disk1 --kind null --size 10GB", 2),
        bench.refused("volume create disk1 --kind null", 2),
        bench.refused("adapter create vhost1 --volume disk", 2),
        bench.refused("volume resize disk0 1GiB", 2),
        bench.refused("volume show disk1", 3),
        bench.refused("adapter explain vhost9", 3),
        bench.refused("volume create disk0 --kind null --size 4096", 5),
        bench.refused("volume remove disk0", 5),
        bench.refused("adapter set vhost0 --socket-role client", 5),
        bench.refused("volume set disk0 --block-size 4096", 5),
        bench.refused("adapter set vhost0 --unset queus", 2),
        bench.refused("volume create m --kind file --path /missing/m", 1),
        bench.refused("--dir /nowhere status", 4),
    ];
    insta::assert_snapshot!("refusals", all.join("\n"));
}

#[test]
fn statistics() {
    let bench = Bench::with_disk();
    insta::assert_snapshot!("stats_none", bench.ok("stats"));
    let fake = bench.launcher.current().unwrap();
    for queue in 0..2 {
        let stats = fake.queue_stats("vhost0", queue).unwrap();
        stats.add(QueueCounter::Reads, 1000);
        stats.add(QueueCounter::ReadBytes, 4096 * 1000);
        stats.add(QueueCounter::WaitThrottled, 3);
        stats.set_with_high_water(QueueCounter::Active, QueueCounter::ActiveMax, 17);
        stats.record(Latency::Ring, 900, 1000);
        stats.record(Latency::Device, 85_000, 1000);
    }
    fake.channel_stats(0).add(ChannelCounter::Commands, 2000);
    fake.channel_stats(0).add(ChannelCounter::Wakeups, 100);
    fake.channel_stats(0).add(ChannelCounter::Busy, 12_345_678);
    insta::assert_snapshot!("stats", bench.ok("stats"));
    insta::assert_snapshot!("stats_adapter", bench.ok("stats vhost0"));
    let watched = bench.ok("stats --watch 1 --count 1");
    assert!(watched.contains("READS/s"), "{watched}");
    bench.refused("stats vhost9", 3);
}

#[test]
fn a_server_is_judged_by_what_it_does_meanwhile() {
    let bench = Bench::with_disk();
    let idle = bench.ok("plan advise --server --seconds 1");
    assert!(idle.contains("no adapter has had a client yet"), "{idle}");
    let fake = bench.launcher.current().unwrap();
    let stats = fake.queue_stats("vhost0", 0).unwrap();
    stats.add(QueueCounter::CommandsReceived, 1000);
    stats.add(QueueCounter::WaitNoDma, 1000);
    // What waited before the first reading is history.
    let text = bench.ok("plan advise --server --seconds 1 --exit-code");
    assert!(text.contains("Nothing was found in what could be judged"), "{text}");
    assert!(text.contains("too little work to judge"), "{text}");
}

#[test]
fn what_to_paste() {
    let bench = Bench::with_disk();
    insta::assert_snapshot!("emit_qemu", bench.ok("emit qemu vhost0 --vcpus 2"));
    insta::assert_snapshot!("emit_libvirt", bench.ok("emit libvirt vhost0 --vcpus 16"));
    bench.ok("network create net0 --mtu 9000");
    bench.ok("adapter create ent0 --kind ethernet --network net0 --mac 02:00:5e:00:00:01");
    let text = bench.ok("emit cloud-hypervisor vhost0 ent0 --vcpus 2");
    insta::assert_snapshot!("emit_cloud_hypervisor", text);
    let text = bench.ok("emit qemu ent0 --device-only");
    assert!(text.contains("mac=02:00:5e:00:00:01") && text.contains(",host_mtu=9000"), "{text}");
    assert!(bench.ok("emit libvirt ent0 --device-only").contains("<mtu size='9000'/>"));
}

#[test]
fn help_teaches() {
    let bench = Bench::new();
    insta::assert_snapshot!("help", bench.ok("--help"));
    insta::assert_snapshot!("help_adapter_create", bench.ok("adapter create --help"));
    insta::assert_snapshot!("attributes", bench.ok("attributes"));
    assert_eq!(bench.ok("attributes --markdown"), fabric::attribute::markdown());
}

#[test]
fn a_shell_is_told_options_and_names_of_objects() {
    let bench = Bench::with_disk();
    assert!(bench.ok("completions bash").contains("COMPLETE=\"bash\""));
    // As the script of `completions bash` asks.
    let complete = |line: &str| -> Vec<String> {
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.env("TRUNKLINE_DIR", bench.dir.path()).env("COMPLETE", "bash");
        command.env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
        let output = command.arg("--").args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    let has = |line: &str, candidate: &str| complete(line).iter().any(|one| one == candidate);
    assert!(has("trunkline adapter create a --queue-s", "--queue-size"));
    assert!(has("trunkline adapter show vh", "vhost0"));
    assert!(has("trunkline adapter create a --volume d", "disk0"));
    assert!(has("trunkline volume remove ", "disk0") && !has("trunkline volume remove ", "vhost0"));
    assert!(has("trunkline port unmap ", "vhost0") && has("trunkline emit qemu v", "vhost0"));
    assert!(!has("trunkline volume create d", "disk0"), "a new one has a name of its own");
    // Collections are other names of the nouns.
    assert!(bench.ok("volumes list").contains("disk0"));
}

#[test]
fn without_a_data_plane_changes_are_stored_and_say_so() {
    let bench = Bench::with(false);
    let text = bench.refused("volume create disk0 --kind null --size 1GiB", 7);
    assert!(text.starts_with("+ volume disk0\n"), "{text}");
    let warning =
        "warning: stored; data plane `main` is not running: it ended at once (exit status: 1)";
    assert!(text.contains(warning) && text.contains("see `trunkline status`"), "{text}");
    bench.refused("adapter create vhost0 --volume disk0", 7);
    let (code, text) = bench.run_with("apply -", "[volume.v]\nkind=\"null\"\nsize=4096\n");
    assert_eq!(code, 7, "{text}");
    bench.ok("volume create disk1 --kind null --size 1GiB --dry-run");
    let status = bench.ok("status");
    assert!(status.contains("down") && status.contains("it ended at once"), "{status}");
}

#[test]
fn a_second_server_on_a_folder_is_told_of_the_first() {
    let bench = Bench::new();
    let text = bench.refused("serve", 1);
    assert!(text.contains("in use by another `trunkline serve`"), "{text}");
    bench.ok("status");
}

#[test]
fn of_two_configurations_at_once_one_follows_the_other() {
    let bench = Bench::new();
    let text = |size: u32| {
        let volume = |n| format!("[volume.v{n}]\nkind = \"null\"\nsize = \"{size}GiB\"\n");
        (0..20).map(volume).collect::<Vec<_>>().join("\n")
    };
    let texts = [text(2), text(3)];
    bench.run_with("apply -", &text(1));
    std::thread::scope(|scope| {
        for text in &texts {
            scope.spawn(|| assert_eq!(bench.run_with("apply -", text).0 & !2, 0));
        }
    });
    // Whichever came last; never some of both. The smaller one is refused when it is last: it would shrink volumes.
    let export = bench.ok("export");
    let of = |size: u32| export.matches(&format!("size = \"{size}GiB\"")).count();
    assert!(matches!((of(2), of(3)), (20, 0) | (0, 20)), "{export}");
}

#[test]
fn a_configuration_names_files_from_its_own_folder() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("a folder");
    std::fs::create_dir(&folder).unwrap();
    let text = "[volume.d]\nkind = \"file\"\npath = \"disk.img\"\nsize = \"1GiB\"\ncreate = true\n";
    std::fs::write(folder.join("t.toml"), text).unwrap();
    let path = folder.join("t.toml");
    let args = ["apply", path.to_str().unwrap()];
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    let output = command.env("TRUNKLINE_DIR", bench.dir.path()).args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = format!("path = \"{}\"", "DIR/a folder/disk.img");
    assert!(bench.ok("export").contains(&expected), "{}", bench.ok("export"));
    // The command line shows what it made of a relative path.
    let made = bench.ok("volume create e --kind file --path e.img --size 4096 --create");
    assert!(made.contains("path = /e.img"), "{made}");
}

#[test]
fn the_folder_option_says_what_it_is_for() {
    let bench = Bench::new();
    assert!(bench.ok("demo --help").contains("Put the backing files"));
    for line in ["bench --help", "bench scale --help"] {
        let help = bench.ok(line);
        assert!(help.contains("For `scale`") && !help.contains("sockets and state"), "{help}");
    }
}
