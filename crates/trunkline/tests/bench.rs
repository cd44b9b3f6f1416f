//! `bench` and `demo` through the real program, with data planes and sockets, in little time.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

fn trunkline(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(line.split_whitespace()).env_remove("TRUNKLINE_DIR").env("COLUMNS", "100");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(line: &str) -> Output {
    trunkline(line).output().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[track_caller]
fn json(line: &str) -> Value {
    let output = run(line);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{line}: {err}");
    assert_eq!(err, "", "no progress bar and no warning where there is no terminal");
    serde_json::from_str(&out).unwrap()
}

#[track_caller]
fn refused(line: &str, code: i32) -> String {
    let output = run(line);
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(code), "{line}: {err}");
    err
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The advice for the server behind a demo, by a reading before a load and one in it.
fn advice_under(kept: &Kept, load: &str) -> Value {
    let mut bench = trunkline(&format!("bench {} {load}", kept.socket(0))).spawn().unwrap();
    let connected = format!("--dir {} adapter show vhost0 -o json", kept.folder());
    until("the client", || texts(&run(&connected)).0.contains("\"running\""));
    let advice = json(&format!("--dir {} plan advise --server --seconds 1 -o json", kept.folder()));
    bench.kill().unwrap();
    bench.wait().unwrap();
    advice
}

/// What commands made in their folder.
fn entries(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// A demo that goes on, ended with the test.
struct Kept {
    dir: tempfile::TempDir,
    shown: Value,
}

impl Kept {
    fn new() -> Kept {
        let dir = tempfile::tempdir().unwrap();
        let line =
            format!("demo --keep --time 30ms --size 8MiB -o json --dir {}", dir.path().display());
        Kept { shown: json(&line), dir }
    }

    fn folder(&self) -> &str {
        self.shown["folder"].as_str().unwrap()
    }

    fn socket(&self, index: usize) -> &str {
        self.shown["kept"]["adapters"][index][1].as_str().unwrap()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let stop = self.shown["kept"]["stop"].as_str().unwrap_or_default();
        let _ = Command::new("sh").args(["-c", stop]).output();
    }
}

#[test]
fn the_demo_verifies_measures_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let line = format!("demo --time 1s --size 8MiB -o json --dir {}", dir.path().display());
    let shown = json(&line);
    assert_eq!(shown["verified"]["blocks_wrong"], 0);
    assert_eq!(shown["verified"]["bytes"], 4 * (8 << 20));
    let rows = shown["rows"].as_array().unwrap();
    let operations: Vec<&str> = rows.iter().map(|row| row["operation"].as_str().unwrap()).collect();
    assert_eq!(operations, ["read", "write", "read", "write"]);
    let channels: Vec<u64> = rows.iter().map(|row| row["channels"].as_u64().unwrap()).collect();
    assert_eq!(channels[..2], [1, 1]);
    assert!(channels[2] > 1 && channels[3] > 1, "{channels:?}");
    for row in rows {
        assert!(row["iops"].as_f64().unwrap() > 0.0);
        assert!(row["p999_ns"].as_u64() >= row["p50_ns"].as_u64());
        assert!(row["server_cpu_ns_per_io"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(entries(dir.path()), Vec::<PathBuf>::new(), "everything is cleaned up");
}

#[test]
fn a_demo_that_is_kept_can_be_loaded_shown_and_stopped() {
    let kept = Kept::new();
    let line = format!("bench run {} --time 100ms --queues 2 -o json", kept.socket(0));
    let report = json(&line);
    assert_eq!(report["failure_count"], 0);
    assert_eq!(report["options"]["read_percent"], 100);
    assert_eq!(report["queues"].as_array().unwrap().len(), 2);
    assert!(report["server_cost"]["cpu_ns"].as_u64().unwrap() > 0, "its process was found out");

    let line = format!(
        "bench {} --time 100ms --mix 50 --verify --depth 4 --flush-every 10 --indirect",
        kept.socket(3)
    );
    let (page, _) = texts(&run(&line));
    for expected in ["8MiB", "reads", "writes", "both", "P99.9", "server, process", "0 wrong"] {
        assert!(page.contains(expected), "{expected} in {page}");
    }

    let yaml = format!("bench {} --operations 50 --without event-idx -o yaml", kept.socket(2));
    assert!(texts(&run(&yaml)).0.contains("iops:"));

    let refusal = refused(&format!("bench {} --queues 250", kept.socket(1)), 2);
    assert!(refusal.contains("use --queues 64"), "{refusal}");

    let stop = kept.shown["kept"]["stop"].as_str().unwrap();
    assert!(Command::new("sh").args(["-c", stop]).status().unwrap().success());
    assert!(!Path::new(kept.folder()).exists());
    until("the end of the sockets", || entries(kept.dir.path()).is_empty());
}

#[test]
fn what_a_disk_holds_before_a_run_is_compared() {
    let kept = Kept::new();
    let line = |more: &str| {
        let socket = kept.socket(0);
        format!(
            "bench {socket} --verify --size 64KiB --order sequential --length 2MiB --depth 4 --operations 32 {more}"
        )
    };
    json(&line("--mix 0 --seed 7 -o json"));
    let again = json(&line("--mix 100 --seed 7 --holds written -o json"));
    // What was asked for, and all once more at the end.
    assert_eq!(again["verify"]["blocks_checked"], 64, "{again}");
    let foreign = refused(&line("--mix 100 --seed 8 --holds written"), 1);
    assert!(foreign.contains("no block of this run there"), "{foreign}");
    let not_zero = refused(&line("--mix 100 --seed 7 --holds zeros"), 1);
    assert!(not_zero.contains("nothing was written there"), "{not_zero}");
    let unverified = refused(&format!("bench {} --holds zeros", kept.socket(0)), 2);
    assert!(unverified.contains("only while verifying"), "{unverified}");
}

#[test]
fn a_server_that_goes_away_is_a_failure() {
    let kept = Kept::new();
    let line = format!("bench {} --time 60s -o json", kept.socket(0));
    let bench = trunkline(&line).spawn().unwrap();
    let connected = format!("--dir {} adapter show vhost0 -o json", kept.folder());
    until("the client", || texts(&run(&connected)).0.contains("\"running\""));
    let stop = format!("--dir {} stop --with-dataplanes", kept.folder());
    assert!(run(&stop).status.success());
    let output = bench.wait_with_output().unwrap();
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    let refusal: Value = serde_json::from_str(&err).unwrap();
    assert!(refusal["message"].as_str().unwrap().contains("the run found"), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert!(report["failure_count"].as_u64().unwrap() > 0);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let text = refused("bench /nonexistent/vhost0.sock", 6);
    assert!(text.contains("cannot connect to /nonexistent/vhost0.sock"), "{text}");
    assert!(text.contains("trunkline adapter list"), "{text}");
}

#[test]
fn values_that_cannot_be_are_usage_errors() {
    for (options, expected) in [
        ("--size 100", "a multiple of 512 bytes"),
        ("--size 4kb", "4KiB"),
        ("--time 5", "a number and a unit"),
        ("--time 0s", "no time"),
        ("--mix 101", "0..=100"),
        ("--depth 0", "1..=1024"),
        ("--cpus 5-2", "runs backwards"),
        ("--wait busy", "poll, sleep"),
        ("--without everything", "event-idx"),
    ] {
        let text = refused(&format!("bench run /nonexistent.sock {options}"), 2);
        assert!(text.contains(expected), "{options}: {text}");
    }
    assert!(refused("bench", 2).contains("SOCKET"));
    assert!(refused("demo --size 1MiB", 2).contains("at least 8MiB"));
    assert!(refused("demo --time 1us", 2).contains("at least 10ms"));
}

#[test]
fn scaling_is_measured_with_a_data_plane_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    for volume in ["null", "ram"] {
        let shown = json(&format!(
            "bench scale --channels 2,1 --oversubscribe --rounds 2 --time 50ms --warm-up 10ms \
             --volume {volume} --wait sleep -o json --dir {}",
            dir.path().display()
        ));
        let points = shown["points"].as_array().unwrap();
        assert_eq!(points.len(), 2);
        for (point, channels) in points.iter().zip([1, 2]) {
            assert_eq!(point["channels"], channels);
            let number = |name: &str| point[name].as_f64().unwrap();
            assert!(number("iops_min") > 0.0);
            assert!(number("iops_min") <= number("iops") && number("iops") <= number("iops_max"));
            assert!(number("efficiency") > 0.0 && number("server_cpu_ns_per_io") > 0.0);
        }
        assert_eq!(points[0]["efficiency"], 1.0);
        assert_eq!(entries(dir.path()), Vec::<PathBuf>::new());
    }
}

#[test]
fn scaling_says_what_it_cannot_measure() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..).find(|cpu| allowed.is_set(*cpu)).unwrap();
    let cpus = format!("--server-cpus {cpu} --client-cpus {cpu}");
    let line = format!("bench scale --channels 1,8 --rounds 1 --time 50ms {cpus}");
    let (page, err) = texts(&run(&line));
    assert!(page.contains("8 channels: not measured, needs 8 CPUs"), "{page} {err}");
    assert!(page.contains("1*"), "one CPU for both sides is marked: {page}");
    let text = refused(&format!("bench scale --channels 2,8 {cpus}"), 2);
    assert!(text.contains("nothing to measure") && text.contains("--oversubscribe"), "{text}");
}

#[test]
fn an_interrupted_demo_cleans_up() {
    for signal in [Signal::INT, Signal::TERM] {
        let dir = tempfile::tempdir().unwrap();
        let line = format!("demo --time 60s --size 8MiB --dir {}", dir.path().display());
        let demo = trunkline(&line).spawn().unwrap();
        until("an adapter", || {
            let folder = entries(dir.path()).pop();
            folder.is_some_and(|folder| folder.join("vhost3.sock").exists())
        });
        let pid = Pid::from_raw(i32::try_from(demo.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let output = demo.wait_with_output().unwrap();
        let (_, err) = texts(&output);
        assert_eq!(output.status.code(), Some(128 + signal.as_raw()), "{err}");
        assert!(err.contains("interrupted") && !err.contains("error:"), "{err}");
        assert_eq!(entries(dir.path()), Vec::<PathBuf>::new());
        let left = dir.path().to_str().unwrap();
        assert_eq!(processes(left), [0; 0], "of {left}");
    }
}

/// Processes with a text in their command line.
fn processes(text: &str) -> Vec<u32> {
    let pid = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let names = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    };
    let all = std::fs::read_dir("/proc").unwrap();
    all.flatten().filter_map(pid).filter(names).collect()
}

#[test]
fn a_failure_names_its_step_and_its_log() {
    let text = refused("demo --dir /proc", 1);
    assert!(text.contains("cannot make the folder /proc/trunkline-demo-"), "{text}");

    // A folder whose name is too long for a socket's address.
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("x".repeat(100));
    let text = refused(&format!("demo --dir {}", long.display()), 1);
    assert!(text.contains("start the control plane: "), "{text}");
    let log = text.lines().find_map(|line| line.strip_prefix("log: ")).expect("a log is named");
    assert!(Path::new(log).exists(), "{log}");
}

#[test]
fn advice_on_a_running_server_names_the_limit_that_its_client_feels() {
    let kept = Kept::new();
    let of_adapter = json(&format!("--dir {} adapter show vhost0 -o json", kept.folder()));
    let volume = of_adapter["volume"].as_str().unwrap();
    let set = format!("--dir {} volume set {volume} --limit-iops 2000", kept.folder());
    assert!(run(&set).status.success(), "{set}");
    let document = advice_under(&kept, "--time 30s --depth 16 -o json");
    assert_eq!(document["kind"], "advice");
    let answer = &document["answer"];
    let finding = answer["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["rule"] == "server-throttled")
        .unwrap_or_else(|| panic!("{answer}"));
    let title = finding["title"].as_str().unwrap();
    assert!(title.contains(&format!("limit_iops=2000 of volume {volume}")), "{title}");
    assert!(!finding["evidence"].as_array().unwrap().is_empty(), "{finding}");
    assert_eq!(document["files"], serde_json::json!(["first reading", "second reading"]));
    assert_eq!(answer["systems"][0]["role"], "trunkline");
    let judged = answer["coverage"].as_array().unwrap();
    assert!(judged.iter().all(|one| one["kind"] == "served"), "{judged:?}");
}
