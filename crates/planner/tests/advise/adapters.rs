//! Fibre Channel adapters: elements, DMA, links, error recovery, logins, transfer sizes.

use super::{PHYSICAL, Port, SHORT, VIRTUAL, advice, lsattr, lsdev, npiv, silent, timed, top};
use planner::advise::{Severity, advise};
use planner::facts::Facts;

fn elements(value: &str) -> String {
    lsattr("payroll", "fcs0", &[("num_cmd_elems", value), ("max_xfer_size", "0x100000")])
}

#[test]
fn a_virtual_adapter_out_of_elements_gets_what_both_rules_ask_for() {
    let finding = top(&[("a.txt", &(SHORT.text() + &elements("200")))], "fc-virtual-elements");
    assert_eq!(finding.command.as_deref(), Some("chdev -l fcs0 -a num_cmd_elems=2048 -P"));
    assert_eq!(finding.undo.as_deref(), Some("chdev -l fcs0 -a num_cmd_elems=200 -P"));
    assert_eq!(finding.object, "fcs0 on payroll");
    let sum = finding
        .figures
        .iter()
        .find(|figure| figure.name.contains("high-water rule"))
        .expect("the rule's sum");
    assert_eq!(sum.low, 2202.0);
    assert!(
        finding.reasoning.iter().any(|why| why.contains("Both rules agree")),
        "{:?}",
        finding.reasoning
    );
    assert!(finding.effect.contains("More is not allowed"), "{}", finding.effect);
}

#[test]
fn growth_weighs_more_than_a_count_seen_once() {
    let once = top(&[("a.txt", &(SHORT.text() + &elements("200")))], "fc-virtual-elements");
    let later = Port { no_command: SHORT.no_command + 90_000, ..SHORT.later(600, 120_000) };
    let twice = top(
        &[("a.txt", &(SHORT.text() + &elements("200"))), ("b.txt", &later.text())],
        "fc-virtual-elements",
    );
    assert!(twice.score > once.score);
    assert!(once.reasoning.iter().any(|why| why.contains("Take a second one")));
    assert!(twice.reasoning.iter().any(|why| why.contains("grew by 90,000")));
}

#[test]
fn a_counter_that_stands_still_is_history() {
    silent(&[
        ("a.txt", &(SHORT.text() + &elements("2048"))),
        ("b.txt", &SHORT.later(600, 120_000).text()),
    ]);
    // Also where only the later capture is the first one given.
    silent(&[
        ("b.txt", &(SHORT.later(600, 120_000).text() + &elements("2048"))),
        ("a.txt", &SHORT.text()),
    ]);
}

#[test]
fn a_count_before_a_reset_is_not_compared() {
    let reset = Port { seconds: 600, no_command: 0, reads: 100_000, writes: 10, ..SHORT };
    let captures = timed(&[
        ("a.txt", &SHORT.text(), 1000),
        ("b.txt", &(reset.text() + &elements("200")), 5000),
    ]);
    assert_eq!(advise(&captures, &Facts::builtin()).findings, []);
}

/// Files that were copied have the times of their copies, and after a reset the later one has the younger counters.
#[test]
fn which_file_was_first_is_told_by_its_name_where_it_says_so() {
    let reset = Port { seconds: 600, no_command: 0, reads: 10, writes: 1, ..SHORT };
    let found = |earlier: &str, later: &str| {
        let later = (later, &*(reset.text() + &elements("200")), 5000);
        let captures = timed(&[(earlier, &SHORT.text(), 5000), later]);
        !advise(&captures, &Facts::builtin()).findings.is_empty()
    };
    for (earlier, later) in [
        ("vios1_before.txt", "vios1_after.txt"),
        ("post/fcstat.txt", "pre/fcstat.txt"),
        ("fcstat-old.txt", "fcstat-new.txt"),
    ] {
        let told = earlier.starts_with("post");
        assert_eq!(found(earlier, later), told, "{earlier}, {later}");
    }
    // It says nothing, or two things: their ages tell.
    for (earlier, later) in [("y.txt", "x.txt"), ("a_before.txt", "b_after.txt")] {
        assert!(found(earlier, later), "{earlier}, {later}");
    }
}

#[test]
fn where_the_rules_disagree_it_says_which_decides() {
    let marks_fit = Port { active_high: 175, pending_high: 20, ..SHORT };
    let later = Port { no_command: marks_fit.no_command + 50_000, ..marks_fit.later(600, 120_000) };
    let growing = top(
        &[("a.txt", &(marks_fit.text() + &elements("200"))), ("b.txt", &later.text())],
        "fc-virtual-elements",
    );
    assert!(
        growing
            .reasoning
            .iter()
            .any(|why| why.contains("disagree") && why.contains("counter decides"))
    );
    assert_eq!(growing.command.as_deref(), Some("chdev -l fcs0 -a num_cmd_elems=400 -P"));
    let once = top(&[("a.txt", &(marks_fit.text() + &elements("200")))], "fc-virtual-elements");
    assert_eq!(once.severity, Severity::Note);
    assert!(once.reasoning.iter().any(|why| why.contains("second capture decides")));
    // High marks without a single wait: a peak that is over.
    silent(&[("a.txt", &(Port { no_command: 0, ..SHORT }.text() + &elements("200")))]);
}

#[test]
fn at_the_end_of_the_range_it_says_so_and_gives_the_next_step() {
    let full = Port { active_high: 2048, ..SHORT };
    let finding = top(&[("a.txt", &(full.text() + &elements("2048")))], "fc-virtual-elements");
    assert_eq!(finding.command, None);
    assert!(
        finding.effect.contains("greatest value") && finding.effect.contains("Next step"),
        "{}",
        finding.effect
    );
}

#[test]
fn the_range_of_the_capture_goes_before_that_of_the_data_files() {
    let range = "payroll:/> lsattr -Rl fcs0 -a num_cmd_elems\n20...1000 (+1)\n";
    let finding =
        top(&[("a.txt", &(SHORT.text() + &elements("200") + range))], "fc-virtual-elements");
    assert_eq!(finding.command.as_deref(), Some("chdev -l fcs0 -a num_cmd_elems=1000 -P"));
}

/// The numbers of the comment below the article: 614 and 993 of 1024, and 4,128,362 waits.
const PORT_SHORT: Port =
    Port { no_elements: 4_128_362, active_high: 614, pending_high: 993, ..PHYSICAL };

fn port(value: &str) -> String {
    lsdev(
        "viosa1",
        "fcs0",
        &[("num_cmd_elems", value), ("max_xfer_size", "0x100000"), ("num_io_queues", "8")],
    )
}

#[test]
fn a_physical_port_out_of_elements_is_told_from_a_virtual_one() {
    let finding = top(&[("a.txt", &(PORT_SHORT.text() + &port("1024")))], "fc-physical-elements");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev fcs0 -attr num_cmd_elems=1792 -perm"));
    assert_eq!(finding.undo.as_deref(), Some("chdev -dev fcs0 -attr num_cmd_elems=1024 -perm"));
    let sum = finding
        .figures
        .iter()
        .find(|figure| figure.name.contains("high-water rule"))
        .expect("the rule's sum");
    assert_eq!(sum.low, 1607.0);
}

#[test]
fn clients_that_oversubscribe_a_port_under_pressure_are_named() {
    let map = npiv(
        "viosa1",
        &[
            ("vfchost0", 5, "payroll", "fcs0", "fcs0", 6),
            ("vfchost1", 6, "web7", "fcs0", "fcs0", 6),
        ],
    );
    let web = lsattr("web7", "fcs0", &[("num_cmd_elems", "2048")]);
    let files = [
        ("a.txt", PORT_SHORT.text() + &port("1024") + &map),
        ("b.txt", elements("2048")),
        ("c.txt", web),
    ];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let finding = top(&files, "fc-port-oversubscribed");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev fcs0 -attr num_cmd_elems=4096 -perm"));
    assert!(
        finding.title.contains("4,096") && finding.title.contains("1,024"),
        "{}",
        finding.title
    );
    // Without pressure the same sum is what most sites have.
    let calm = PHYSICAL.text() + &port("1024") + &map;
    silent(&[("a.txt", &calm), files[1], files[2]]);
}

#[test]
fn dma_waits_ask_for_a_larger_transfer_size() {
    let finding = top(
        &[("a.txt", &(Port { no_dma: 9_000_000, ..PHYSICAL }.text() + &port("2048")))],
        "fc-dma-resource",
    );
    assert_eq!(
        finding.command.as_deref(),
        Some("chdev -dev fcs0 -attr max_xfer_size=0x200000 -perm")
    );
}

/// A client above its port does not find its disks at its next start.
#[test]
fn a_clients_transfer_size_is_raised_behind_its_ports() {
    let short = Port { no_command: 0, no_dma: 9_000_000, ..SHORT }.text() + &elements("1024");
    let map = npiv("viosa1", &[("vfchost0", 5, "payroll", "fcs0", "fcs0", 6)]);
    let of_port = |size| lsdev("viosa1", "fcs0", &[("max_xfer_size", size)]);
    let of = |vios: &str| top(&[("a.txt", &short), ("b.txt", vios)], "fc-dma-resource");
    let alone = top(&[("a.txt", &short)], "fc-dma-resource");
    for finding in [alone, of(&map)] {
        assert_eq!(finding.command, None, "{finding:?}");
        assert!(finding.look_up[0].contains("the port behind it"), "{finding:?}");
    }
    let lower = of(&(map.clone() + &of_port("0x100000")));
    let server = "chdev -dev fcs0 -attr max_xfer_size=0x200000 -perm";
    assert_eq!(lower.command.as_deref(), Some(server));
    assert_eq!(lower.place.as_deref(), Some("as padmin on viosa1"));
    assert!(lower.effect.starts_with("First the server"), "{}", lower.effect);
    let enough = of(&(map + &of_port("0x200000")));
    assert_eq!(enough.command.as_deref(), Some("chdev -l fcs0 -a max_xfer_size=0x200000 -P"));
}

#[test]
fn a_link_with_growing_errors_comes_first() {
    let bad = Port { crcs: 40, ..PORT_SHORT };
    let later =
        Port { crcs: 940, no_elements: bad.no_elements + 500_000, ..bad.later(600, 900_000) };
    let files = [("a.txt", bad.text() + &port("1024")), ("b.txt", later.text())];
    let found = advice(&[(files[0].0, &files[0].1), (files[1].0, &files[1].1)]);
    let rules: Vec<&str> = found.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["fc-link-errors", "fc-physical-elements"]);
    assert!(found.findings[1].reasoning.iter().any(|why| why.contains("Mend the link first")));
}

#[test]
fn error_recovery_is_one_command_for_both_attributes() {
    let finding = top(
        &[(
            "a.txt",
            &lsattr("payroll", "fscsi0", &[("dyntrk", "no"), ("fc_err_recov", "delayed_fail")]),
        )],
        "fc-error-recovery",
    );
    assert_eq!(
        finding.command.as_deref(),
        Some("chdev -l fscsi0 -a fc_err_recov=fast_fail -a dyntrk=yes -P")
    );
    assert_eq!(
        finding.undo.as_deref(),
        Some("chdev -l fscsi0 -a fc_err_recov=delayed_fail -a dyntrk=no -P")
    );
    let vios = top(
        &[(
            "a.txt",
            &lsdev("viosa1", "fscsi0", &[("dyntrk", "yes"), ("fc_err_recov", "delayed_fail")]),
        )],
        "fc-error-recovery",
    );
    assert_eq!(
        vios.command.as_deref(),
        Some("chdev -dev fscsi0 -attr fc_err_recov=fast_fail -perm")
    );
}

/// Where there is nothing to fail over to, a delayed command comes through and a failed one does not.
#[test]
fn one_path_alone_keeps_delayed_fail() {
    let fscsi = lsattr("payroll", "fscsi0", &[("dyntrk", "yes"), ("fc_err_recov", "delayed_fail")]);
    let paths = "payroll:/> lspath\nEnabled hdisk0 fscsi0\nEnabled hdisk1 fscsi0\n";
    silent(&[("a.txt", &(fscsi.clone() + paths))]);
    let more = "Enabled hdisk0 fscsi1\nEnabled hdisk1 fscsi1\n";
    top(&[("a.txt", &(fscsi + paths + more))], "fc-error-recovery");
}

#[test]
fn one_of_two_adapters_that_is_not_logged_in_is_a_missing_zone() {
    let map = npiv(
        "viosa1",
        &[
            ("vfchost0", 5, "payroll", "fcs0", "fcs0", 6),
            ("vfchost1", 5, "payroll", "fcs1", "fcs1", 0),
        ],
    );
    let finding = top(&[("a.txt", &map)], "fc-wwpn-second-missing");
    assert_eq!(finding.object, "vfchost1 on viosa1");
    // A client that is down has none logged in.
    silent(&[(
        "a.txt",
        &npiv(
            "viosa1",
            &[("vfchost0", 5, "payroll", "fcs0", "", 0), ("vfchost1", 5, "payroll", "fcs1", "", 0)],
        ),
    )]);
}

#[test]
fn a_larger_transfer_size_on_the_client_is_a_mismatch() {
    let map = npiv("viosa1", &[("vfchost0", 5, "payroll", "fcs0", "fcs0", 6)]);
    let client =
        lsattr("payroll", "fcs0", &[("max_xfer_size", "0x200000"), ("num_cmd_elems", "1024")]);
    let finding =
        top(&[("a.txt", &(port("2048") + &map)), ("b.txt", &client)], "fc-max-xfer-mismatch");
    assert_eq!(
        finding.command.as_deref(),
        Some("chdev -dev fcs0 -attr max_xfer_size=0x200000 -perm")
    );
}

#[test]
fn rows_of_clients_tell_the_layers_apart() {
    let rows = "viosa1:/home/padmin> fcstat -client
              hostname   dev                wwpn      inreqs     outreqs    ctrlreqs         inbytes        outbytes    DMA_errs   Elem_errs   Comm_errs

                viosa1  fcs0  0x100000109b4c71d0    55120031    22110044       10021  1800200300400   900100200300          0         115          0
               payroll  fcs0  0xc05076071a2b0010    33000100    11000050         801  1200000000512   500000000512          0           0     880123
                  web7  fcs1  0xc05076071a2b0022       10010        7007          12      410009600     287006720          4           0          0
";
    let finding = top(&[("a.txt", rows)], "fc-virtual-elements");
    assert_eq!(finding.object, "fcs0 on payroll");
    assert_eq!(advice(&[("a.txt", rows)]).findings.len(), 1);
}

#[test]
fn a_healthy_port_and_its_clients_get_no_advice() {
    let map = npiv(
        "viosa1",
        &[
            ("vfchost0", 5, "payroll", "fcs0", "fcs0", 6),
            ("vfchost1", 6, "web7", "fcs0", "fcs1", 6),
        ],
    );
    let recovery = lsdev("viosa1", "fscsi0", &[("dyntrk", "yes"), ("fc_err_recov", "fast_fail")]);
    // What booting and a pulled cable leave behind.
    let port_text =
        Port { no_elements: 41, no_command: 18, no_dma: 31, crcs: 4, ..PHYSICAL }.text();
    let client = Port { no_command: 12, active_high: 200, pending_high: 15, ..VIRTUAL }.text();
    silent(&[
        ("vios.txt", &(port_text + &port("2048") + &map + &recovery)),
        ("client.txt", &(client + &elements("200"))),
    ]);
}

/// Frames are dumped by a line that is full, by a fabric that holds them back, or with the light: three causes.
#[test]
fn dumped_frames_have_three_causes() {
    let port = |at: u64, dumped: u64, read: u64, crcs: u64| {
        let text = Port { crcs, ..PHYSICAL.later(600 * at, 10_000) }.text();
        let of = |key: &str| text.lines().find(|line| line.trim().starts_with(key)).unwrap();
        let bytes = format!("  Input Bytes:  {read}");
        text.replace("Dumped Frames: 0", &format!("Dumped Frames: {dumped}"))
            .replace(of("Input Bytes:"), &bytes)
            .replace("LIP Count:", "Port Speed (running): 8 GBIT\n\nLIP Count:")
    };
    // 8 Gbit/s carry 800 MB/s: 480 GB in ten minutes.
    let rules = |read, crcs| {
        let files = [("a.txt", port(0, 10, 1_000, 0)), ("b.txt", port(1, 90, read, crcs))];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        let findings = advice(&files).findings;
        let said: Vec<(&str, String)> =
            findings.iter().map(|one| (one.rule, one.reasoning.join(" "))).collect();
        said
    };
    let full = rules(470_000_000_000, 0);
    assert_eq!(full.len(), 1, "one cause, one finding: {full:?}");
    assert_eq!(full[0].0, "fc-line-rate");
    assert!(full[0].1.contains("Dumped Frames grew by 80 meanwhile"), "{full:?}");
    let held_back = rules(100_000_000_000, 0);
    assert_eq!(held_back.len(), 1, "{held_back:?}");
    assert!(held_back[0].1.contains("want of buffer credits"), "{held_back:?}");
    let damaged = rules(100_000_000_000, 900);
    assert!(damaged[0].0 == "fc-link-errors" && !damaged[0].1.contains("credits"), "{damaged:?}");
}

/// The last line of a report that ends early may be cut, also where an editor put an end of line behind it.
#[test]
fn a_count_in_the_last_line_of_a_cut_report_is_not_judged() {
    let text = Port { no_command: 90_441, ..PHYSICAL.later(600, 10_000) }.text();
    let end = text.find("FC SCSI Traffic Statistics").unwrap();
    let cut = text[..end].trim_end();
    assert!(cut.ends_with("No Command Resource Count: 90441"));
    silent(&[("a.txt", &PHYSICAL.text()), ("b.txt", &format!("{cut}\n"))]);
}

/// A full adapter whose counter grows gets the double at least: what waits in front of its queue is not counted.
#[test]
fn a_full_virtual_adapter_gets_the_double_at_least() {
    let full = Port { active_high: 500, pending_high: 212, no_command: 1_000, ..SHORT };
    let later = Port { no_command: 703_114, ..full.later(600, 9_200_000) };
    let finding = top(
        &[("a.txt", &full.text()), ("b.txt", &(later.text() + &elements("500")))],
        "fc-virtual-elements",
    );
    assert_eq!(finding.command.as_deref(), Some("chdev -l fcs0 -a num_cmd_elems=1024 -P"));
}

/// What is changed in use needs no restart, and each of the two attributes has its own words.
#[test]
fn a_target_that_moves_is_told_apart_from_a_path_that_breaks() {
    let text = |dyntrk: &str, recovery: &str, settable: &str| {
        format!(
            "aix1:/> oslevel -s\n7200-05-08-2419\naix1:/> lsattr -El fscsi0\nattach       switch    How this adapter is CONNECTED         False\ndyntrk       {dyntrk}       Dynamic Tracking of FC Devices        {settable}\nfc_err_recov {recovery} FC Fabric Event Error RECOVERY Policy {settable}\n"
        )
    };
    let moves = top(&[("a.txt", &text("no", "fast_fail", "True+"))], "fc-error-recovery");
    assert!(moves.title.contains("moves"), "{moves:#?}");
    assert_eq!(moves.command.as_deref(), Some("chdev -l fscsi0 -a dyntrk=yes -U"));
    assert!(moves.effect.contains("at once") && !moves.effect.contains("restarted"), "{moves:#?}");
    assert!(!moves.harm.contains("fast_fail"), "{moves:#?}");
    let breaks = top(&[("a.txt", &text("yes", "delayed_fail", "True"))], "fc-error-recovery");
    assert!(breaks.title.contains("late") && breaks.harm.contains("fast_fail"), "{breaks:#?}");
    assert_eq!(breaks.command.as_deref(), Some("chdev -l fscsi0 -a fc_err_recov=fast_fail -P"));
    assert!(breaks.effect.contains("restarted"), "{breaks:#?}");
}
