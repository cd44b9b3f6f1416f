//! `plan` and `size` through the real program, on captures whose right answer is known.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The planner's captures; see its `tests/corpus/README.md`.
fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../planner/tests/corpus")
}

/// Runs a command line, cut at blanks, in a folder; gives the exit code, what was printed, and the errors.
fn run_in(folder: &Path, line: &str, input: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(line.split_whitespace()).current_dir(folder);
    command.env_remove("TRUNKLINE_DIR").env("COLUMNS", "100");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses its options does not read.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[track_caller]
fn ok(line: &str) -> String {
    let (code, out, err) = run_in(&corpus(), line, "");
    assert_eq!((code, err.as_str()), (0, ""), "{line}: {out}");
    out
}

#[track_caller]
fn json(line: &str) -> Value {
    serde_json::from_str(&ok(&format!("{line} -o json"))).unwrap()
}

#[track_caller]
fn refused_in(folder: &Path, line: &str, input: &str, code: i32) -> String {
    let (found, out, err) = run_in(folder, line, input);
    assert_eq!((found, out.as_str()), (code, ""), "{line}: {err}");
    err
}

const FULL_PORT: &str = "faults/02-port-elements-growing";

#[test]
fn a_capture_is_judged_with_its_lines_and_the_command_to_run() {
    let text = ok("plan advise faults/01-vfc-default-elements/capture.txt");
    for part in ["fc-virtual-elements", "chdev -l fcs0 -a num_cmd_elems=", "capture.txt:", "undo"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("No Command Resource Count: 2946113"), "the line itself: {text}");
    assert!(text.contains("`fcstat` ×2"), "what was read: {text}");
}

#[test]
fn numbers_are_explained_on_demand() {
    let line = format!("plan advise {FULL_PORT}");
    let (brief, long) = (ok(&line), ok(&format!("{line} --explain")));
    assert!(long.len() > brief.len());
    assert!(long.contains("vios2-20260302-2215.txt, line "), "{long}");
    assert!(long.contains("Not understood:") && !brief.contains("Not understood:"), "{long}");
}

#[test]
fn the_exit_code_tells_of_findings_only_when_asked_to() {
    let codes = [
        ("plan advise faults/02-port-elements-growing", 0),
        ("plan advise faults/02-port-elements-growing --exit-code", 8),
        ("plan advise healthy/04-sea-failover-pair --exit-code", 0),
    ];
    for (line, expected) in codes {
        let (code, out, err) = run_in(&corpus(), line, "");
        assert_eq!((code, err.as_str()), (expected, ""), "{line}: {out}");
    }
}

#[test]
fn programs_get_json_with_what_was_read() {
    let document = json(&format!("plan advise {FULL_PORT}"));
    assert_eq!((&document["version"], &document["kind"]), (&1.into(), &"advice".into()));
    let finding = &document["answer"]["findings"][0];
    assert_eq!(finding["rule"], "fc-physical-elements");
    assert!(finding["command"].as_str().unwrap().starts_with("chdev "), "{finding}");
    let file = &document["inputs"][1];
    assert_eq!(file["reports"]["fcstat"], 1);
    assert_eq!(
        (&file["taken"], &file["time_from"]),
        (&"2026-03-02 22:00:01 EST".into(), &"date_line".into())
    );
    let yaml = ok(&format!("plan advise {FULL_PORT} -o yaml"));
    assert!(yaml.contains("rule: fc-physical-elements"), "{yaml}");
}

#[test]
fn the_time_of_a_capture_comes_from_the_capture_its_name_or_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let report = "$ lsnports\nname             physloc                        fabric tports aports swwpns  awwpns\n\
                  fcs0             U78D2.001.WZS0ABC-P1-C3-T1          1     64     62   2048    2040\n";
    put("a-20260302-2215.txt", report);
    put("b-20260302-2215.txt", &format!("$ date\nMon Mar  2 23:30:00 UTC 2026\n{report}"));
    put("c.txt", report);
    let (code, out, err) = run_in(dir.path(), "plan advise . -o json", "");
    assert_eq!((code, err.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&out).unwrap();
    let from: Vec<&str> =
        (0..3).map(|file| document["inputs"][file]["time_from"].as_str().unwrap()).collect();
    assert_eq!(from, ["file_name", "date_line", "file_time"]);
    assert_eq!(document["inputs"][0]["taken"], "2026-03-02 22:15:00");
    assert!(document["inputs"][1]["taken"].as_str().unwrap().starts_with("2026-03-02 23:30:00"));
}

#[test]
fn a_capture_comes_through_a_pipe() {
    let file = corpus().join("faults/01-vfc-default-elements/capture.txt");
    let text = std::fs::read_to_string(file).unwrap();
    let (code, out, err) = run_in(&corpus(), "plan advise - -o json", &text);
    assert_eq!((code, err.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["answer"]["findings"][0]["rule"], "fc-virtual-elements");
    assert_eq!(document["inputs"][0]["name"], "standard input");
    assert_eq!(document["inputs"][0]["time_from"], Value::Null);
}

#[test]
fn the_page_needs_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("advice.html");
    let line = format!("plan advise {FULL_PORT} --html {}", path.display());
    assert!(ok(&line).contains("fc-physical-elements"), "the text is printed, too");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("What was read"), "{page}");
    for loads in ["<script", "src=", "<link", "@import", "url("] {
        assert!(!page.contains(loads), "{loads}");
    }
    let printed = ok(&format!("plan advise {FULL_PORT} --html -"));
    assert_eq!(printed.trim_end(), page.trim_end());
}

#[test]
fn every_case_of_the_corpus_goes_through_the_program() {
    for kind in ["faults", "healthy"] {
        for case in std::fs::read_dir(corpus().join(kind)).unwrap() {
            let name = case.unwrap().file_name().into_string().unwrap();
            let document = json(&format!("plan advise {kind}/{name}"));
            let findings = document["answer"]["findings"].as_array().unwrap();
            assert!(findings.iter().all(|finding| finding["rule"].is_string()), "{name}");
        }
    }
}

#[test]
fn trends_are_drawn_over_a_folder() {
    let document = json("plan trends faults/29-pool-filling-up");
    assert_eq!(document["kind"], "trends");
    assert_eq!(document["inputs"].as_array().unwrap().len(), 5);
    let text = ok("plan trends faults/29-pool-filling-up");
    assert!(text.contains("4 captures over 3 days") && text.contains("618,659"), "{text}");
}

#[test]
fn what_cannot_be_a_capture_is_refused_by_name_with_a_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    put("a.gz", b"\x1f\x8b\x08\0\0\0");
    put("core", b"\x7fELF\x02\x01\0\0");
    put("note.txt", b"the system is slow since monday\n");
    put("facts.toml", b"[number.\"disk.service-ms-max\"]\nvalu = 3\n");
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    let lines = [
        ("plan advise missing.txt", 1),
        ("plan advise a.gz", 2),
        ("plan advise core", 2),
        ("plan advise empty", 2),
        ("plan advise note.txt", 2),
        ("plan advise note.txt --facts facts.toml", 2),
        ("plan advise --server --dir missing", 4),
        ("plan lpm missing.toml", 1),
        ("plan lpm facts.toml", 2),
        ("size facts.toml", 2),
    ];
    let said: Vec<String> =
        lines.iter().map(|(line, code)| refused_in(dir.path(), line, "", *code)).collect();
    let said = said.join("\n").replace(dir.path().to_str().unwrap(), "DIR");
    insta::assert_snapshot!("plan_refusals", said);
}

#[test]
fn a_folder_may_hold_other_things() {
    let dir = tempfile::tempdir().unwrap();
    let from = corpus().join("faults/01-vfc-default-elements/capture.txt");
    std::fs::copy(from, dir.path().join("capture.txt")).unwrap();
    std::fs::write(dir.path().join("old.gz"), b"\x1f\x8b\x08\0").unwrap();
    let (code, out, err) = run_in(dir.path(), "plan advise .", "");
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("fc-virtual-elements"), "{out}");
    assert_eq!(err, "warning: passed over ./old.gz: compressed (gzip), and cut off\n");
}

const MOVE: &str = "plan lpm --level 7200-05-03 --queues 8 --from machine=9009-42A,firmware=FW950,vios=3.1.2.10 \
                    --to generation=POWER8,vios=2.2.6 --back";

#[test]
fn a_move_and_back_is_foretold() {
    let queues = |document: &Value| document["summary"].as_str().unwrap().to_owned();
    assert!(queues(&json(MOVE)).starts_with("Queues: 8 → 1 → 1."));
    let mended = json(&format!("{MOVE} --reconfigure"));
    assert!(queues(&mended).starts_with("Queues: 8 → 1 → 1 → 8."), "{mended}");
    insta::assert_snapshot!("plan_lpm", ok(MOVE));
}

#[test]
fn a_plan_is_a_file_or_options() {
    let text = "steps = [{ move = \"b\" }, { move = \"a\" }]\n[client]\nsystem = \"aix\"\nlevel = \"7200-05-03\"\n\
                at = \"a\"\nqueues = 8\n[server.a]\nmachine = \"9009-42A\"\nfirmware = \"FW950\"\nvios = \"3.1.2.10\"\n\
                [server.b]\ngeneration = \"POWER8\"\nvios = \"2.2.6\"\n";
    let (code, out, err) = run_in(&corpus(), "plan lpm - -o json", text);
    assert_eq!((code, err.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["summary"], json(MOVE)["summary"]);
    for (line, part) in [
        ("plan lpm --from vios=3.1 --to vois=2", "did you mean `vios`?"),
        ("plan lpm --from vios=3.1", "--to"),
        ("plan lpm plan.toml --queues 8", "cannot be used with"),
        ("plan lpm --from vios=3.1.x --to vios=3.1.2", "server.source.vios"),
    ] {
        let said = refused_in(&corpus(), line, "", 2);
        assert!(said.contains(part), "{line}: {said}");
    }
}

#[test]
fn a_move_by_captures_shows_its_lines_and_what_is_missing() {
    let line = "plan lpm ../field/faulty/23-single-queue-since-the-move --client kaudwh \
                --to machine=9105-42A,firmware=FW1030,vios=4.1.0";
    let document = json(line);
    let path = &document["answer"][0];
    assert!(path["inputs"][0]["lines"][0]["line"].is_u64(), "{path}");
    let missing = |path: &Value| path["missing"].to_string();
    assert!(missing(path).contains("prtconf on kauvio1"), "{path}");
    let said = format!("{line} --from firmware=FW950,adapter=EN1A");
    assert!(!missing(&json(&said)["answer"][0]).contains("prtconf"), "{said}");
    let text = ok(line);
    assert!(text.contains("vio-0.txt:") && text.contains("what would tell it"), "{text}");
    let said = refused_in(&corpus(), &format!("{line} --from firmwear=FW950"), "", 2);
    assert!(said.contains("did you mean `firmware`"), "{said}");
    let said = refused_in(&corpus(), "plan lpm plan.toml --from vios=3.1 --to vios=3.1", "", 2);
    assert!(said.contains("a plan says by itself"), "{said}");
}

#[test]
fn the_worked_example_of_the_sizing_guide() {
    let text = ok("size sea --streaming 200 --explain");
    for part in [
        "2,348,810,240 cycles/s",
        "200 × 1024 × 1024",
        "1.42 processors",
        "2 dedicated or 1.5 shared",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn loads_are_options_or_a_file() {
    let file = "[vios]\nclock_ghz = 3.8\n[[virtual_fc]]\niops = 150000\nblock_bytes = 8192\nadapters = 12\n\
                [[ssp]]\niops = 20000\nblock_bytes = 16384\nclients = 40\npool_tb = 8\n";
    let (code, both, err) = run_in(&corpus(), "size - -o json", file);
    assert_eq!((code, err.as_str()), (0, ""));
    let both: Value = serde_json::from_str(&both).unwrap();
    let one = json("size vfc --iops 150000 --block 8KiB --adapters 12 --clock-ghz 3.8");
    let two = json("size ssp --iops 20000 --block 16KiB --clients 40 --pool-tb 8 --clock-ghz 3.8");
    assert_eq!(both["answer"]["parts"][0]["processors"], one["answer"]["parts"][0]["processors"]);
    assert_eq!(both["answer"]["parts"][1]["processors"], two["answer"]["parts"][0]["processors"]);
    let scsi = ok("size vscsi --iops 20000 --block 4KiB --disks 24 --queue-depth 32");
    assert!(scsi.contains("(512 − 2) ÷ (32 + 3)"), "command elements: {scsi}");
    for (line, part) in [
        ("size", "<FILE>"),
        ("size sea", "--streaming"),
        ("size vfc --iops 10 --block 8KB", "write `8KiB`"),
        ("size sea --streaming 200 --mtu 576", "expected 1500 to 9000"),
        ("size sea --streaming 1e15", "streaming"),
    ] {
        let said = refused_in(&corpus(), line, "", 2);
        assert!(said.contains(part), "{line}: {said}");
    }
}

#[test]
fn this_host_is_measured_and_sized_by_that() {
    let folder = tempfile::tempdir().unwrap();
    let run = |line: &str| {
        let (code, out, err) = run_in(folder.path(), line, "");
        assert_eq!((code, err.as_str()), (0, ""), "{line}: {out}");
        out
    };
    let little = "--rounds 1 --time 20ms --clock-ghz 2.5";
    let line = format!("size calibrate {little} --check -o json");
    let document: Value = serde_json::from_str(&run(&line)).unwrap();
    let answer = &document["answer"];
    assert_eq!(
        (&document["kind"], &answer["file"]),
        (&"calibration".into(), &"sea-costs.toml".into())
    );
    let count = |key: &str| answer[key].as_array().unwrap().len();
    assert_eq!((count("costs"), count("checks")), (16, 8), "{answer}");
    for cost in answer["costs"].as_array().unwrap() {
        assert!(cost["cycles"]["median"].as_f64().unwrap() > 0.0, "{cost}");
    }
    let text =
        run("size sea --streaming 200 --transactions 5000 --measured sea-costs.toml --explain");
    for part in ["11.2", "[measured]", "2.5 GHz", "take 2 dedicated", "an entitlement of"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // What was corrected by hand is not lost to a second measurement.
    let line = format!("size calibrate {little}");
    let said = refused_in(folder.path(), &line, "", 5);
    assert!(said.contains("sea-costs.toml") && said.contains("--force"), "{said}");
    let costs = run(&format!("{line} --costs -"));
    std::fs::write(folder.path().join("mine.toml"), &costs).unwrap();
    let one = run("size sea --streaming 200 --facts mine.toml --json");
    let one: Value = serde_json::from_str(&one).unwrap();
    let both = run("size sea --streaming 200 --measured mine.toml --json");
    let both: Value = serde_json::from_str(&both).unwrap();
    assert_eq!(both["answer"]["measured"]["parts"], one["answer"]["parts"]);
    let tables = run(&format!("{line} --costs other.toml --thread 0"));
    assert!(tables.contains("17,956") && !tables.contains("23,022"), "{tables}");
    assert!(tables.contains("size sea --streaming 200 --measured other.toml"), "{tables}");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn a_measurement_that_cannot_be_is_refused_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.toml"), "[number.\"sea.cycles\"]\nvalue = 1\n").unwrap();
    for (line, part) in [
        ("size calibrate --clock-ghz 2500", "expected 0.1 to 20, not 2500"),
        ("size calibrate --server-cpus 1023", "CPU 1023 cannot be used"),
        ("size calibrate --client-cpu 70000", "CPU 70000 cannot be used"),
        ("size calibrate --time 1ms", "at least 10 ms"),
        ("size calibrate --facts none.toml", "none.toml"),
        ("size sea --streaming 1 --measured none.toml", "size calibrate"),
        ("size sea --streaming 1 --measured bad.toml", "--measured bad.toml"),
    ] {
        let (code, out, said) = run_in(folder.path(), line, "");
        assert!(code != 0 && out.is_empty(), "{line}: {out}");
        assert!(said.contains(part), "{line}: {said}");
    }
    let gone = refused_in(folder.path(), "size calibrate --costs no/such/costs.toml", "", 1);
    assert!(gone.contains("no/such"), "{gone}");
}

#[test]
fn captures_are_sized_and_written_as_loads() {
    let from = "size --from ../field/faulty/01-client-elements-at-200";
    let document = json(from);
    let server = &document["answer"][0]["captured"];
    assert_eq!((&document["kind"], &server["vios"]), (&"size".into(), &"krkvio1".into()));
    let input = &server["inputs"][0];
    assert!(input["lines"][0]["line"].as_u64().unwrap() > 0, "{input}");
    assert!(server["missing"][0]["capture"].as_str().unwrap().contains("prtconf"), "{server}");
    let text = ok(from);
    assert!(text.contains("1-vios.txt:") && text.contains("What was read"), "{text}");
    // The loads as a file give the same.
    let loads = ok(&format!("{from} --loads -"));
    let (code, again, err) = run_in(&corpus(), "size - -o json", &loads);
    assert_eq!((code, err.as_str()), (0, ""), "{loads}");
    let again: Value = serde_json::from_str(&again).unwrap();
    let memory = |sizing: &Value| sizing["hypervisor_memory"]["high"].as_f64();
    assert_eq!(memory(&again["answer"]), memory(&document["answer"][0]["sizing"]));
    for (line, part) in [
        ("size --from ../field/faulty/01-client-elements-at-200 --vios vio9", "there are krkvio1"),
        ("size --from faults/15-three-commands-at-ten-ms", "of a Virtual I/O Server"),
        ("size loads.toml --vios vios1", "cannot be used with"),
        ("size --loads -", "--from"),
        ("size loads.toml --from faults/15-three-commands-at-ten-ms", "cannot be used with"),
    ] {
        let said = refused_in(&corpus(), line, "", 2);
        assert!(said.contains(part), "{line}: {said}");
    }
}

#[test]
fn a_users_facts_replace_the_built_in_ones() {
    let dir = tempfile::tempdir().unwrap();
    let facts = dir.path().join("facts.toml");
    let text = "[source.measured]\ntext = \"our own measurement\"\n\
                [number.\"sea.cycles-per-byte.threaded.1500.simplex\"]\nvalue = 5.6\nunit = \"cycles/byte\"\n\
                meaning = \"What ours takes.\"\nsource = \"measured\"\nconfirmed = true\n";
    std::fs::write(&facts, text).unwrap();
    let said = ok(&format!("size sea --streaming 200 --explain --facts {}", facts.display()));
    assert!(said.contains("0.712 processors") && said.contains("our own measurement"), "{said}");
}

#[test]
fn an_answer_has_no_names_to_list() {
    for line in [
        "plan advise faults -o name",
        "plan trends faults -o name",
        "plan show faults -o name",
        "size --from faults -o name",
    ] {
        let error = refused_in(&corpus(), line, "", 2);
        assert!(error.contains("an answer has no names to list"), "{error}");
        assert!(error.contains("use -o table, json or yaml"), "{error}");
    }
}

#[test]
fn help_teaches_planning() {
    let helps = [
        "plan --help",
        "plan advise --help",
        "plan trends --help",
        "plan lpm --help",
        "size --help",
        "size sea --help",
    ];
    let said: Vec<String> = helps.iter().map(|line| ok(line)).collect();
    insta::assert_snapshot!("plan_help", said.join("\n────\n"));
}
