//! The command line against a server whose data plane keeps the books: what it prints, how it ends.

use control::fake::FakeLauncher;
use control::paths::Paths;
use control::server::Server;
use control::store::RedbStore;
use control::supervisor::ProcessLauncher;
use protocol::stats::{ChannelCounter, Latency, QueueCounter};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[path = "cli/scripts.rs"]
mod scripts;

/// A server in this process, in a folder of its own.
struct Bench {
    dir: tempfile::TempDir,
    launcher: FakeLauncher,
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
        let store = Box::new(RedbStore::open(&paths.store()).unwrap());
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
        runtime.block_on(async {
            let listener = tokio::net::UnixListener::bind(paths.api()).unwrap();
            let server = Server::start(paths, store, make, BTreeMap::new()).await.unwrap();
            let router = control::api::router(server);
            tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        });
        Bench { dir, launcher, _runtime: runtime }
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
        bench.refused("adapter set vhost0 --mode 0600", 5),
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

#[test]
fn ioscli_shows_an_adapter_as_the_original_would() {
    let bench = Bench::with_disk();
    let fake = bench.launcher.current().unwrap();
    let queues = [0, 1].map(|queue| fake.queue_stats("vhost0", queue).unwrap());
    for (stats, more) in queues.iter().zip(0..) {
        stats.add(QueueCounter::CommandsReceived, 100 + more);
        stats.add(QueueCounter::Reads, 60);
        stats.add(QueueCounter::ReadBytes, 60 * 4096);
        stats.add(QueueCounter::Flushes, 3);
        stats.record(Latency::Device, 5_000, 10);
    }
    let report = bench.ok("ioscli fcstat -e vhost0");
    insta::assert_snapshot!("ioscli_fcstat", report);
    insta::assert_snapshot!("ioscli_cat", bench.ok("ioscli cat vhost0/stats"));
    insta::assert_snapshot!("ioscli_lsmap", bench.ok("ioscli lsmap -all"));
    insta::assert_snapshot!("ioscli_lsdev", bench.ok("ioscli lsdev"));
    insta::assert_snapshot!("ioscli_lsattr", bench.ok("ioscli lsattr -El vhost0"));
    let reset = bench.ok("ioscli fcstat -z vhost0");
    assert!(report.contains("Input Requests:   120") && reset.contains("Input Requests:   0"));
    queues[1].add(QueueCounter::Reads, 7);
    assert!(bench.ok("ioscli fcstat vhost0").contains("Input Requests:   7"));
    // Nobody else's counters were touched.
    assert!(bench.ok("stats vhost0 -o json").contains("\"reads\": 127"));
    assert!(bench.ok("ioscli fcstat -l 1 vhost0").contains("SAN (the volume)"));
}

#[test]
fn ioscli_changes_at_once_or_keeps_the_change_for_later() {
    let bench = Bench::with_disk();
    assert_eq!(bench.ok("ioscli chdev -dev vhost0 -attr queues=0x4"), "vhost0 changed\n");
    assert_eq!(bench.ok("ioscli lsdev -dev vhost0 -attr queues"), "value\n\n4\n");
    assert_eq!(bench.ok("ioscli chdev -l vhost0 -a queues="), "vhost0 changed\n");
    let busy = bench.refused("ioscli chdev -dev main -attr channels=2 num_workers=2", 2);
    assert!(busy.contains("num_workers"), "{busy}");
    insta::assert_snapshot!(
        "ioscli_busy",
        bench.refused("ioscli chdev -dev main -attr channels=2", 1)
    );
    let kept = bench.ok("ioscli chdev -dev main -attr channels=2 -perm");
    assert_eq!(kept, "main changed\nchannels takes effect with the restart of the data plane\n");
    assert_eq!(bench.ok("ioscli lsattr -Rl vhost0 -a wait"), "poll\nadaptive\ninterrupt\n");
}

#[test]
fn ioscli_teaches() {
    let bench = Bench::with_disk();
    let mut refusals = String::new();
    for (line, code) in [
        ("ioscli fcstat fcs9", 1),
        ("ioscli fcstta", 2),
        ("ioscli lsmap", 2),
        ("ioscli lsmap -al", 2),
        ("ioscli lsdev -dev nothing", 3),
        ("ioscli lsdev -dev vhost0 -attr queus", 2),
        ("ioscli lsattr -Rl vhost0 -a socket", 2),
        ("ioscli chdev -dev vhost0", 2),
        ("ioscli chdev -dev vhost0 -attr queues=1000", 2),
        ("ioscli cat /etc/passwd", 2),
        ("ioscli lsdev -o json", 2),
        ("-o json ioscli lsdev", 2),
    ] {
        refusals += &format!("$ trunkline {line}\n{}\n", bench.refused(line, code));
    }
    insta::assert_snapshot!("ioscli_refusals", refusals);
    let mut help = bench.ok("ioscli");
    for command in [
        "fcstat", "cat", "lsmap", "lsnports", "vfcmap", "lsdev", "lsattr", "chdev", "mkvdev",
        "mkvopt",
    ] {
        help += &format!("\n{}", bench.ok(&format!("ioscli {command} -help")));
    }
    insta::assert_snapshot!("ioscli_help", help);
}

#[test]
fn ioscli_writes_switches_as_the_original_and_takes_them_so() {
    let bench = Bench::new();
    for line in ["adapter create vfchost0 --kind fc", "adapter create vhost0 --kind scsi"] {
        bench.ok(line);
    }
    let value = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(value(&bench.ok("ioscli lsattr -El vfchost0"), "limit_intr"), "False");
    assert_eq!(bench.ok("ioscli lsattr -Rl vfchost0 -a limit_intr"), "True\nFalse\n");
    bench.ok("ioscli chdev -dev vfchost0 -attr limit_intr=True");
    assert_eq!(value(&bench.ok("adapter show vfchost0"), "limit_intr"), "true");
    // An adapter is told what adapters of its kind have.
    let refused = bench.refused("ioscli chdev -dev vfchost0 -attr volume=data", 2);
    assert!(refused.contains("an adapter of kind `fc` has no `volume`"), "{refused}");
    let places = ["-npiv", ""].map(|npiv| bench.ok(&format!("ioscli lsmap -all {npiv} -fmt :")));
    assert!(places[0].starts_with("vfchost0:UTRUNKLINE-main-V1-C0:"), "{}", places[0]);
    assert!(places[1].starts_with("vhost0:UTRUNKLINE-main-V1-C10000:"), "{}", places[1]);
}

#[test]
fn ioscli_shows_ports_and_virtual_fibre_channel() {
    let bench = Bench::new();
    assert!(bench.refused("ioscli lsnports", 62).starts_with("E_NO_NPIV_PORTS(62)"));
    bench.ok("dataplane set main --wwpn-prefix c0:50:76:00:00:01");
    for line in [
        "volume create data --kind null --size 10GiB",
        "port create fcs0 --link-speed 16",
        "port create fcs1",
        "target create array0 --luns 0=data",
        "adapter create vfchost0 --kind fc",
        "adapter create vfchost1 --kind fc --port fcs0",
        "zone create zone0 --members vfchost0,array0",
    ] {
        bench.ok(line);
    }
    assert_eq!(bench.ok("ioscli vfcmap -vadapter vfchost0 -fcp fcs0"), "vfchost0 changed\n");
    let fake = bench.launcher.current().unwrap();
    // Queues 0 and 1 are the control and the event queue.
    for (queue, reads) in [(0, 0), (1, 0), (2, 30), (3, 12)] {
        let stats = fake.queue_stats("vfchost0", queue).unwrap();
        stats.add(QueueCounter::CommandsReceived, reads + 1);
        stats.add(QueueCounter::Reads, reads);
        stats.add(QueueCounter::ReadBytes, reads * 4096);
        stats.add(QueueCounter::ControlRequests, 1);
        stats.add(QueueCounter::WaitNoCommand, reads / 10);
        stats.add(QueueCounter::GlobalCommands, reads / 2);
        stats.add(QueueCounter::ActiveMax, reads / 2);
    }
    for (channel, reads) in [(0, 30), (1, 12)] {
        let stats = fake.lun_stats("vfchost0", (0, 0), channel).unwrap();
        stats.add(QueueCounter::Reads, reads);
        stats.add(QueueCounter::ReadBytes, reads * 4096);
        stats.record(Latency::Server, 5_000, reads);
        stats.record(Latency::Device, 85_000, reads);
    }
    // The most that was active at once is one figure, and not the sum of what each queue had at most.
    fake.adapter_stats("vfchost0").unwrap().set_active_max(20, 1_700_000_000_000);
    insta::assert_snapshot!("stats_luns", bench.ok("stats vfchost0"));
    let watched = bench.ok("stats vfchost0 --watch 1 --count 1");
    assert!(watched.contains("TARGET  LUN  READS/s"), "{watched}");
    let client = "fcstat -client";
    let lines = [
        "lsnports",
        "lsmap -all -npiv",
        "lsmap -all -npiv -fmt :",
        "fcstat fcs0",
        "cat vfchost0/stats",
    ];
    let rest = ["lsdev", "lsdev -dev viosnpiv0 -attr", "lsattr -El vfchost0", "lsattr -El fcs0"];
    let mut shown = String::new();
    for line in lines.into_iter().chain(rest) {
        shown += &format!("$ trunkline ioscli {line}\n{}\n", bench.ok(&format!("ioscli {line}")));
    }
    insta::assert_snapshot!("ioscli_npiv", shown);
    // The same as a file, for whoever reads files.
    let file = bench.dir.path().join("adapter/vfc/vfchost0/stats");
    let shown = bench.ok("ioscli cat vfchost0/stats");
    let end = Instant::now() + Duration::from_secs(60);
    while std::fs::read_to_string(&file).unwrap_or_default() != shown {
        assert!(Instant::now() < end, "{} is not as {shown}", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(shown.contains("Number of CMD queues    = 1\n"), "{shown}");
    assert_eq!(bench.ok(&format!("ioscli cat {}", file.display())), shown);
    let rows = bench.ok(&format!("ioscli {client}"));
    let row = rows.lines().find(|row| row.contains("vfchost0")).unwrap();
    let numbers: Vec<&str> = row.split_whitespace().skip(2).collect();
    assert_eq!(numbers, ["0xc050760000010002", "42", "0", "4", "172032", "0", "0", "0", "4"]);
    let of_one = bench.ok("ioscli fcstat -n c050760000010003 fcs0");
    assert!(
        of_one.contains("REPORT: vfchost0") && of_one.contains("Input Requests:   42"),
        "{of_one}"
    );
    let top = bench.ok("port top fcs0 --by commands");
    let first = top.lines().nth(1).unwrap();
    assert!(first.starts_with("fcs0  vfchost0") && !top.contains("fcs1"), "{top}");
    assert!(bench.ok("port top -o json").contains("\"waits_per_s\": 0"));
    bench.refused("port top fcs9", 3);
    bench.ok("ioscli fcstat -z fcs0");
    assert!(bench.ok("ioscli fcstat fcs0").contains("Input Requests:   0"));
    assert!(bench.ok("ioscli fcstat vfchost0").contains("Input Requests:   42"));
    bench.ok("ioscli vfcmap -vadapter vfchost0 -fcp");
    assert!(
        bench.ok("ioscli lsmap -vadapter vfchost0").contains("Flags:1<NOT_MAPPED,NOT_CONNECTED>")
    );
    bench.refused("ioscli fcstat -n c050760000010003 fcs0", 1);
    bench.refused("ioscli vfcmap -vadapter vfchost0 -fcp fcs7", 2);
}

/// What tells an administrator who is who, and what happened.
#[test]
fn ioscli_identifies_devices_and_removes_them() {
    let bench = Bench::with_disk();
    bench.ok("dataplane set main --wwpn-prefix c0:50:76:00:00:01");
    bench.ok("port create fcs0");
    bench.ok("adapter create vfchost0 --kind fc --port fcs0");
    bench.ok("adapter set vfchost0 --client-name aixdb1");
    let map = bench.ok("ioscli lsmap -all -npiv -fmt :");
    assert!(map.contains(":1:aixdb1:"), "{map}");
    let rows = bench.ok("ioscli fcstat -client");
    let row = rows.lines().find(|row| row.contains("vfchost0")).unwrap();
    assert_eq!(row.split_whitespace().next(), Some("aixdb1"));
    let mut shown = String::new();
    for line in [
        "lsdev -slots",
        "lsdev -dev vfchost0 -vpd",
        "lsdev -dev fcs0 -vpd",
        "lsdev -dev vhost0 -vpd",
        "lsdev -dev disk0 -vpd",
        "lsattr -El vfchost0 -a queues -a limit_intr -F attribute=value",
        "lsattr -Dl vhost0 -a queues -a read_only",
        "cfgdev -dev vfchost0",
    ] {
        shown += &format!("$ trunkline ioscli {line}\n{}\n", bench.ok(&format!("ioscli {line}")));
    }
    insta::assert_snapshot!("ioscli_identity", shown);
    let host = bench.ok("ioscli hostinfo vfchost0");
    assert_eq!(bench.ok("ioscli cat /proc/sys/adapter/fc/vfchost0/hostinfo"), host);
    for line in [
        "Client partition name                     : aixdb1",
        "FC adapter name on VIOS                   : fcs0",
    ] {
        assert!(host.lines().any(|other| other == line), "{host}");
    }
    bench.refused("ioscli hostinfo vhost0", 2);
    assert_eq!(bench.ok("ioscli cfgdev"), "");
    let log = bench.ok("ioscli errlog");
    assert!(log.starts_with("IDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n"), "{log}");
    assert!(
        log.lines().any(|line| line.contains(" I O ") && line.contains("client_name")),
        "{log}"
    );
    assert!(bench.ok("ioscli errlog -ls").contains("LABEL:           CHANGE\n"));
    bench.refused("ioscli errlog -rm 3", 2);
    bench.refused("ioscli rmdev -dev vfchost0 -ucfg", 2);
    bench.refused("ioscli rmdev -dev fcs0", 5);
    assert_eq!(bench.ok("ioscli rmdev -dev vfchost0"), "vfchost0 deleted\n");
    assert_eq!(bench.ok("ioscli rmdev -dl fcs0"), "fcs0 deleted\n");
    bench.refused("ioscli rmdev -dev vfchost0", 3);
    for line in [
        "adapter create vhost1 --kind scsi",
        "volume create disk1 --kind null --size 1GiB",
        "ioscli mkvdev -vdev disk1 -vadapter vhost1",
    ] {
        bench.ok(line);
    }
    let gone = bench.ok("ioscli rmdev -dev vhost1 -recursive");
    assert_eq!(gone, "vtscsi0 deleted\nvhost1 deleted\n");
}

#[test]
fn ioscli_times_reads_and_writes_apart() {
    let bench = Bench::with_disk();
    let fake = bench.launcher.current().unwrap();
    let stats = fake.queue_stats("vhost0", 0).unwrap();
    let add = |reads: u64| {
        stats.add(QueueCounter::CommandsReceived, reads);
        stats.add(QueueCounter::Reads, reads);
        stats.add(QueueCounter::TimedReads, reads);
        stats.add(QueueCounter::ReadDevice, reads * 4_000_000);
    };
    add(1_000);
    stats.note_extremes([QueueCounter::ReadShortest, QueueCounter::ReadLongest], 2_500_000);
    stats.note_extremes([QueueCounter::ReadShortest, QueueCounter::ReadLongest], 171_200_000);
    for line in ["iostat -D vhost0", "viostat -extdisk"] {
        let shown = bench.ok(&format!("ioscli {line}"));
        let row = shown.lines().skip_while(|line| !line.contains("rps")).nth(1).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[1..], ["4.0", "2.5", "171.2", "0", "0"], "{shown}");
    }
    // The first report is of all time, the second of an interval in which nothing happened.
    let twice = bench.ok("ioscli iostat -D vhost0 1 2");
    let rates = twice.lines().zip(twice.lines().skip(1)).filter(|(head, _)| head.contains("rps"));
    let rates: Vec<&str> = rates.map(|(_, row)| row.split_whitespace().next().unwrap()).collect();
    assert_eq!((rates.len(), rates[1]), (2, "0.0"), "{twice}");
    bench.refused("ioscli iostat", 2);
    bench.refused("ioscli iostat -D nothing", 3);
}

#[test]
fn ioscli_makes_virtual_target_devices_and_media() {
    let bench = Bench::new();
    let iso = bench.dir.path().join("debian.iso");
    std::fs::write(&iso, [0; 2048]).unwrap();
    bench.ok("volume create data --kind null --size 10GiB");
    bench.ok("adapter create vhost0 --kind scsi");
    let mut shown = String::new();
    for line in [
        "mkrep -sp rootvg -size 10G",
        &format!("mkvopt -name debian -file {}", iso.display()),
        "mkvdev -vdev data -vadapter vhost0",
        "mkvdev -fbo -vadapter vhost0",
        "lsvopt",
        "loadopt -vtd vtopt0 -disk debian",
        "lsvopt",
        "lsrep",
        "lsmap -vadapter vhost0",
        "unloadopt -vtd vtopt0",
        "rmvopt -name debian",
        "rmvdev -vdev data",
        "rmvdev -vtd vtopt0",
        "lsmap -all -fmt :",
    ] {
        let text = bench.ok(&format!("ioscli {line}"));
        let line = line.replace(bench.dir.path().to_str().unwrap(), "DIR");
        shown += &format!("$ trunkline ioscli {line}\n{text}");
    }
    insta::assert_snapshot!("ioscli_media", shown);
    bench.refused("ioscli rmvdev -vdev data", 3);
    bench.refused("ioscli loadopt -vtd vtopt0 -disk debian", 3);
}
