//! Files as people save them: prompts, line ends, colours, languages, ends that are missing.

use planner::capture::{Captures, Report};

use super::{assert_whole, fixture, only, read, read_bytes, value};

fn text(name: &str) -> String {
    String::from_utf8(fixture(name)).expect("fixtures are UTF-8")
}

/// Reports without the lines they came from, to compare what was read from differently dressed text.
fn commands(captures: &Captures) -> Vec<(&'static str, Option<String>, Option<String>)> {
    let name = |read: &Option<planner::capture::Read<String>>| {
        read.as_ref().map(|read| read.value.clone())
    };
    captures
        .reports
        .iter()
        .map(|report| {
            (report.command(), name(&report.head().partition), name(&report.head().device))
        })
        .collect()
}

const EVERY: &[&str] = &[
    "fcstat-physical",
    "fcstat-virtual-D",
    "fcstat-old",
    "fcstat-client",
    "fcstat-client-80",
    "lsattr",
    "lsattr-wrapped",
    "lsattr-range",
    "lsdev-attr",
    "lsmap-all",
    "lsmap-fmt",
    "lsmap-npiv",
    "lsmap-net",
    "lsnports",
    "lsnports-label",
    "lsnports-fmt",
    "lsnportlogin",
    "lsnportlogin-80",
    "vfchost-stats",
    "vfchost-single",
    "iostat-D",
    "iostat-Dl",
    "iostat-Dl-80",
    "entstat-sea",
    "entstat-aix",
    "seastat",
    "lparstat",
    "lparstat-dedicated",
    "lparstat-i",
    "lparstat-H",
    "lssp",
    "lssp-old",
    "lu-list",
    "lssp-bd",
    "pv-list",
    "pv-list-80",
    "pv-verbose",
    "lspv-pool",
    "lu-verbose",
    "level",
    "lspath",
    "lspath-vios",
    "lspath-F",
    "lsmpio",
    "pcmpath",
    "errpt",
    "errpt-a",
    "lscfg",
    "prtconf",
    "lsmap-vnic",
    "vmstat",
    "svmon",
    "lshwres",
    "lssyscfg-F",
];

/// Whose a report is, in the ways in which people and their scripts write it.
#[test]
fn a_command_may_be_announced_with_its_host() {
    for form in [
        "@: lspath",
        "# @ - lspath",
        "@ - lspath",
        "@ lspath",
        ">>> @ lspath",
        "---- @: lspath ----",
        "==== @ ==== lspath ====",
        "--- @ 20260302-2215 --- lspath",
        "lspath on @:",
        "lspath (@)",
        "Output of lspath on @:",
        "=== lspath on @ ===",
        "[@] lspath",
        "<@> lspath",
        "@@root# lspath",
        "[10:11:12]@:/> lspath",
        "[1] 10:11:12 [SUCCESS] @",
    ] {
        let rows = "Enabled hdisk0 fscsi0\nEnabled hdisk1 fscsi0\n";
        let text =
            ["lyra1", "lyra2"].map(|host| format!("{}\n{rows}\n", form.replacen('@', host, 1)));
        let mut captures = Captures::new();
        captures.read("a.txt", text.concat().as_bytes(), None);
        let hosts: Vec<_> = captures
            .reports
            .iter()
            .map(|report| report.head().partition.as_ref().map(|read| read.value.as_str()))
            .collect();
        assert_eq!(hosts, [Some("lyra1"), Some("lyra2")], "{form}");
    }
    // Each line with its host before it.
    for between in [": ", ":", "| ", " | ", ";", "\t"] {
        let lines = ["lyra1", "lyra2"].map(|host| {
            format!("{host}{between}Enabled hdisk0 fscsi0\n{host}{between}Enabled hdisk1 fscsi0\n")
        });
        let mut captures = Captures::new();
        captures.read("a.txt", lines.concat().as_bytes(), None);
        let hosts: Vec<_> = captures
            .reports
            .iter()
            .map(|report| report.head().partition.as_ref().map(|read| read.value.as_str()))
            .collect();
        assert_eq!(hosts, [Some("lyra1"), Some("lyra2")], "{between:?}");
    }
}

#[test]
fn line_ends_colours_and_marks_change_nothing() {
    for name in EVERY {
        let plain = text(name);
        let wanted = read_bytes(plain.as_bytes());
        assert!(!wanted.reports.is_empty(), "{name}");
        let dressed = [
            plain.replace('\n', "\r\n"),
            plain.replace('\n', "\r\r\n"),
            plain.lines().map(|line| format!("\x1b[1;32m{line}\x1b[0m\n")).collect(),
            format!("\u{feff}{plain}"),
            format!("\x1b]0;padmin@viosa1\x07{plain}"),
            plain.lines().map(|line| format!("{line}\0\n")).collect(),
        ];
        for (way, dressed) in dressed.iter().enumerate() {
            let found = read_bytes(dressed.as_bytes());
            assert_eq!(found.reports, wanted.reports, "{name}, way {way}");
        }
        let utf16: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain(plain.encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        assert_eq!(read_bytes(&utf16).reports, wanted.reports, "{name} in UTF-16");
    }
}

#[test]
fn several_reports_in_one_file_stay_apart() {
    let mut all = String::new();
    let mut wanted = Vec::new();
    for name in EVERY {
        // What a prompt before it says would hold for the next file's bare prompts as well.
        all.push_str("$ \n");
        all.push_str(&text(name));
        if !all.ends_with('\n') {
            all.push('\n');
        }
        wanted.extend(commands(&read(name)));
    }
    let captures = read_bytes(all.as_bytes());
    assert_eq!(commands(&captures), wanted);
    assert_eq!(captures.refused, []);
}

#[test]
fn prompts_and_commands_name_partition_and_device() {
    let cases = [
        ("$ fcstat fcs0", None, "fcstat fcs0"),
        ("# /usr/bin/fcstat fcs0", None, "/usr/bin/fcstat fcs0"),
        ("vios1:/home/padmin>fcstat fcs0", Some("vios1"), "fcstat fcs0"),
        ("vios1:/home/padmin> ioscli fcstat fcs0", Some("vios1"), "ioscli fcstat fcs0"),
        ("padmin@vios1:~ $ fcstat fcs0", Some("vios1"), "fcstat fcs0"),
        ("[root@aix-db2] / # LC_ALL=C fcstat fcs0", Some("aix-db2"), "LC_ALL=C fcstat fcs0"),
        ("root@aix1:/root # fcstat fcs0", Some("aix1"), "fcstat fcs0"),
        ("(0)root @ aix1: /\n# fcstat fcs0", Some("aix1"), "fcstat fcs0"),
        ("(127) root @ aix1: /tmp # fcstat fcs0", Some("aix1"), "fcstat fcs0"),
        ("padmin@VIOS1:[/home/padmin]fcstat fcs0", Some("VIOS1"), "fcstat fcs0"),
        ("aix1# fcstat fcs0", Some("aix1"), "fcstat fcs0"),
        (
            "$ ssh -l padmin vios7 ioscli fcstat fcs0",
            Some("vios7"),
            "ssh -l padmin vios7 ioscli fcstat fcs0",
        ),
        (
            "hscroot@hmc1:~> viosvrcmd -m S924 -p vios8 -c \"fcstat fcs0\"",
            Some("vios8"),
            "viosvrcmd -m S924 -p vios8 -c \"fcstat fcs0\"",
        ),
        ("+ fcstat fcs0", None, "fcstat fcs0"),
        ("===== fcstat fcs0 =====", None, "fcstat fcs0"),
        ("$ hostname\naix9\n$ fcstat fcs0", Some("aix9"), "fcstat fcs0"),
    ];
    let attributes = "num_cmd_elems 500 Maximum Number of COMMAND Elements True\n";
    for (prompt, partition, command) in cases {
        let prompt = prompt.replace("fcstat fcs0", "lsattr -El fcs0");
        let captures = read_bytes(format!("{prompt}\n{attributes}").as_bytes());
        let report = only(captures.lsattrs());
        assert_eq!(
            report.head.partition.as_ref().map(|read| read.value.as_str()),
            partition,
            "{prompt}"
        );
        assert_eq!(value(&report.head.device), "fcs0", "{prompt}");
        assert_eq!(
            value(&report.head.command),
            command.replace("fcstat fcs0", "lsattr -El fcs0"),
            "{prompt}"
        );
        assert_eq!(captures.unread, [], "{prompt}");
    }
}

/// What stands in the quotes of `ssh` ran there, also behind a `;`.
#[test]
fn commands_in_quotes_ran_where_the_quotes_went() {
    let rows = "num_cmd_elems 500 Maximum Number of COMMAND Elements True\n";
    let paths = "Enabled hdisk0 vscsi0\n";
    for (typed, host) in [
        ("ssh padmin@vios7 'ioscli lspath; lsattr -El fcs0'", Some("vios7")),
        ("ssh vios7 \"lspath; lsattr -El fcs0\"", Some("vios7")),
        ("viosvrcmd -m S924 -p vios7 -c \"lspath; lsattr -El fcs0\"", Some("vios7")),
        // What stands behind the quotes ran here.
        ("ssh vios7 \"lspath\"; lsattr -El fcs0", Some("nim1")),
    ] {
        let captures = read_bytes(format!("nim1:/> {typed}\n{paths}{rows}").as_bytes());
        let of = |head: &planner::capture::Head| head.partition.as_ref().map(|on| on.value.clone());
        let lists: Vec<_> = captures.lsattrs().map(|list| of(&list.head)).collect();
        assert_eq!(lists, [host.map(str::to_owned)], "{typed}");
        let paths: Vec<_> = captures.disk_paths_all().map(|list| of(&list.head)).collect();
        assert_eq!(paths, [host.map(|_| "vios7".to_owned())], "{typed}");
    }
}

/// Of what a loop prints on several hosts, each report is of the host that a line before it names, else of nobody.
#[test]
fn a_loop_over_hosts_names_them_or_is_refused() {
    let paths = |host: &str, say: &str| {
        format!(
            "{say}Enabled hdisk0 vscsi0\n{} hdisk0 vscsi1\n",
            if host == "lpa" { "Enabled" } else { "Failed" }
        )
    };
    let host = |head: &planner::capture::Head| head.partition.as_ref().map(|on| on.value.clone());
    for (typed, say) in [
        ("for h in lpa lpb; do echo $h; ssh $h lspath; done", "HOST\n"),
        ("for h in lpa lpb; do echo \"== $h ==\"; ssh root@$h lspath; done", "== HOST ==\n"),
        ("for h in lpa lpb; do echo Host: $h; ssh ${h} lspath; done", "Host: HOST\n"),
        ("for h in lpa lpb\n> do\n> echo \"--- $h\"; ssh \"$h\" lspath\n> done", "--- HOST\n"),
        ("for h in $(cat hosts); do echo \"[$h]\"; ssh $h lspath; done", "[HOST]\n"),
        ("while read h; do echo $h; ssh $h lspath </dev/null; done < hosts", "HOST\n"),
        ("for h in 10.1.1.7 10.1.1.8; do ssh $h \"hostname; lspath\"; done", "HOST.example.com\n"),
        ("for h in $HOSTS; do ssh $h \"uname -a; lspath\"; done", "AIX HOST 3 7 00F78A1B4C00\n"),
    ] {
        let text: String =
            ["lpa", "lpb"].map(|host| paths(host, &say.replace("HOST", host))).concat();
        let captures = read_bytes(
            format!("nim1:/> {typed}\n{text}nim1:/> lspath\nEnabled hdisk9 vscsi0\n").as_bytes(),
        );
        let lists: Vec<_> = captures
            .disk_paths_all()
            .map(|list| (host(&list.head).unwrap_or_default(), list.paths.len()))
            .map(|(host, paths)| (host.split('.').next().unwrap_or("").to_owned(), paths))
            .collect();
        let of = |host: &str, paths| (host.to_owned(), paths);
        assert_eq!(lists, [of("lpa", 2), of("lpb", 2), of("nim1", 1)], "{typed}");
        assert_eq!((&captures.refused[..], &captures.unread[..]), (&[][..], &[][..]), "{typed}");
    }
    for typed in [
        "for h in lpa lpb; do ssh $h lspath; done",
        "for h in lpa lpb\n> do\n> ssh -n \"$h\" lspath\n> done",
        // A name behind what it is of would be taken for that of the next.
        "for h in lpa lpb; do ssh $h lspath; echo $h; done",
        "ssh $HOST lspath",
    ] {
        let say = if typed.contains("echo") { "lpa\n" } else { "" };
        let text = [paths("lpa", ""), say.to_owned(), paths("lpb", "")].concat();
        let captures = read_bytes(
            format!("nim1:/> {typed}\n{text}nim1:/> lspath\nEnabled hdisk9 vscsi0\n").as_bytes(),
        );
        let lists: Vec<_> = captures.disk_paths_all().map(|list| host(&list.head)).collect();
        assert_eq!(lists, [Some("nim1".to_owned())], "{typed}: {captures:?}");
        assert!(captures.refused.iter().all(|one| one.why.contains("echo == $h")), "{captures:?}");
        let refused: u32 = captures.refused.iter().map(|one| one.lines).sum();
        assert!(refused >= 4, "{typed}: {captures:?}");
    }
    // Who says who he is needs no heading; what stands beside it does.
    let info = |name: &str| {
        format!(
            "Node Name                                  : {name}\nPartition Name                             : {name}\nPartition Number                           : 5\nType                                       : Shared-SMT-8\n"
        )
    };
    let text = format!(
        "nim1:/> for h in lpa lpb; do ssh $h \"lparstat -i; lspath\"; done\n{}{}{}{}",
        info("lpa"),
        paths("lpa", ""),
        info("lpb"),
        paths("lpb", "")
    );
    let captures = read_bytes(text.as_bytes());
    let hosts: Vec<_> = captures.reports.iter().map(|report| host(report.head())).collect();
    assert_eq!(hosts, [Some("lpa".to_owned()), Some("lpb".to_owned())], "{captures:?}");
    assert_eq!(captures.refused.len(), 2, "{captures:?}");
}

/// A list without a heading ends where the rows of another one begin that was asked for with it.
#[test]
fn a_row_of_another_list_ends_a_report() {
    let row = "num_cmd_elems 200 Maximum Number of COMMAND Elements True\n";
    let paths = "Enabled hdisk0 fscsi0\nFailed hdisk0 fscsi1\n";
    let statistics = text("fcstat-old").lines().skip(1).collect::<Vec<_>>().join("\n") + "\n";
    for (typed, printed, kinds) in [
        (
            "lsattr -El fcs0 -a num_cmd_elems; lspath",
            [row, paths].concat(),
            ["lsattr -El", "lspath"],
        ),
        (
            "lspath; lsattr -El fcs0 -a num_cmd_elems",
            [paths, row].concat(),
            ["lspath", "lsattr -El"],
        ),
        (
            "fcstat fcs0; lsattr -El fcs0 -a num_cmd_elems",
            [&statistics, row].concat(),
            ["fcstat", "lsattr -El"],
        ),
        ("fcstat fcs0; lspath", [&statistics, paths].concat(), ["fcstat", "lspath"]),
    ] {
        let captures = read_bytes(format!("lpa:/> {typed}\n{printed}").as_bytes());
        let found: Vec<&str> = captures.reports.iter().map(Report::command).collect();
        assert_eq!(found, kinds, "{typed}: {captures:#?}");
        assert!(
            captures.reports.iter().all(|report| report.head().unread.is_empty()),
            "{typed}: {captures:#?}"
        );
        assert_eq!(captures.unread, [], "{typed}");
    }
}

#[test]
fn a_prompt_without_host_does_not_inherit_one() {
    let captures = read_bytes(b"vios1:/> lsattr -El fcs0\na 1 A True\nb 2 B True\n$ lsattr -El fcs1\na 1 A True\nb 2 B True\n");
    let partitions: Vec<bool> =
        captures.lsattrs().map(|report| report.head.partition.is_some()).collect();
    assert_eq!(partitions, [true, false]);
}

#[test]
fn lines_of_reports_are_no_prompts() {
    for line in [
        "    < THREAD >",
        "\tThread .............. #0",
        "Flags:a<LOGGED_IN,STRIP_MERGE>",
        "    SEA Default Queue #8 ",
        "%user  %sys  %wait  %idle physc %entc",
        "                 %tm    bps   tps  bread  bwrtn",
        "num_cmd_elems 500 Number # of COMMAND Elements True",
    ] {
        let text = format!("lsattr -El fcs0\nx 1 X True\n{line}\ny 2 Y True\n");
        let captures = read_bytes(text.as_bytes());
        let commands: Vec<_> =
            captures.reports.iter().filter_map(|report| report.head().command.as_ref()).collect();
        assert!(commands.iter().all(|read| read.value == "lsattr -El fcs0"), "{line}");
    }
}

#[test]
fn reports_without_a_command_are_known_by_their_content() {
    let captures = read_bytes(b"fc_err_recov delayed_fail FC Fabric Event Error RECOVERY Policy True\ndyntrk no Dynamic Tracking True\n");
    let report = only(captures.lsattrs());
    assert_eq!((report.attributes.len(), report.head.device.as_ref()), (2, None));
    let captures = read_bytes(b"512...2048 (+1)\n");
    assert_eq!(only(captures.lsattr_ranges()).attribute, None);
    // Words alone could be anything.
    let captures = read_bytes(b"no\nyes\nmaybe\n");
    assert!(captures.reports.is_empty());
    assert!(captures.unread[0].why.contains("could be"), "{}", captures.unread[0].why);
}

#[test]
fn what_is_not_understood_is_kept_with_its_line() {
    let text = text("fcstat-old")
        .replace("LIP Count: 1\n", "LIP Count: 1\nQuantum Flux Count: 7\nLIP Count: many\n");
    let captures = read_bytes(text.as_bytes());
    let report = only(captures.fcstats());
    let unread: Vec<(u32, &str)> =
        report.head.unread.iter().map(|unread| (unread.at.line, unread.text.as_str())).collect();
    assert_eq!(unread, [(27, "Quantum Flux Count: 7"), (28, "LIP Count: many")]);
    assert_eq!(value(&report.lip), 1);
    let captures = read_bytes(b"$ lsvg -o\nrootvg\n\nDear colleague,\n$ fcstat fcs0\n");
    assert_eq!(
        (captures.unread[0].at.line, captures.unread[0].why.as_str()),
        (2, "printed by `lsvg -o`, which is not read")
    );
}

#[test]
fn a_filter_explains_what_is_missing() {
    let captures = read_bytes(b"vios1$ fcstat fcs3 | grep -i \"no \"\n  No DMA Resource Count: 1\n  No Adapter Elements Count: 2\n  No DMA Resource Count: 5\n  No Adapter Elements Count: 12\n  No Command Resource Count: 3\n");
    let report = only(captures.fcstats());
    assert_eq!(value(&report.head.device), "fcs3");
    let why = report.head.incomplete.as_deref().expect("it says so");
    assert!(why.contains("grep"), "{why}");
    // Only SCSI counts three: they are known without their heading, the two of IP over FC before them are not its.
    let found =
        [&report.resources.no_dma, &report.resources.no_elements, &report.resources.no_command];
    assert_eq!(
        found.map(|read| read.map(|read| (read.value, read.at.line))),
        [Some((5, 4)), Some((12, 5)), Some((3, 6))]
    );
    assert_eq!(report.ip_resources.no_elements, None);
}

#[test]
fn a_report_that_ends_early_says_so() {
    for name in [
        "fcstat-physical",
        "fcstat-virtual-D",
        "lsmap-npiv",
        "lsmap-all",
        "iostat-D",
        "entstat-aix",
        "vfchost-stats",
    ] {
        let whole = text(name);
        assert_eq!(read_bytes(whole.as_bytes()).reports[0].head().incomplete, None, "{name}");
        let cut: String = whole.lines().take(6).map(|line| format!("{line}\n")).collect();
        let captures = read_bytes(cut.as_bytes());
        let incomplete = captures.reports.iter().any(|report| report.head().incomplete.is_some());
        assert!(incomplete, "{name}: {:?}", captures.reports);
    }
}

#[test]
fn a_number_that_may_be_cut_is_not_believed() {
    let whole = text("fcstat-physical");
    let at = whole.find("70412").expect("the count is there");
    let captures = read_bytes(&whole.as_bytes()[..at + 2]);
    let report = only(captures.fcstats());
    assert_eq!(report.resources.no_elements, None);
    assert_eq!(value(&report.resources.no_dma), 31);
    assert!(report.head.incomplete.is_some());
    assert!(report.head.unread.iter().any(|unread| unread.why.contains("cut")));
    assert!(captures.files[0].notes.iter().any(|note| note.contains("no end")));
    // A whole report whose last line only lacks its end is believed.
    let captures = read_bytes(whole.trim_end().as_bytes());
    assert_eq!(value(&only(captures.fcstats()).max_transfer_bytes), 0x20_0000);
}

#[test]
fn other_languages_are_refused_by_name() {
    let captures = read("fcstat-german");
    let refused = only(captures.refused.iter());
    assert_eq!(refused.why, "this fcstat output is in German; run it with LC_ALL=C");
    assert_eq!((refused.at.line, refused.lines), (3, 7));
    // Descriptions may be in any language: the columns are the same.
    assert_eq!(only(captures.lsattrs()).attributes[0].number(), Some(200));
    assert_eq!(captures.fcstats().count(), 0);

    let captures = read("entstat-japanese");
    assert_eq!(
        only(captures.refused.iter()).why,
        "this entstat -all output is in Japanese; run it with LC_ALL=C"
    );
    assert!(captures.reports.is_empty());

    let captures = read("lparstat-french");
    assert_eq!(
        only(captures.refused.iter()).why,
        "this lparstat output is in French; run it with LC_ALL=C"
    );
}

#[test]
fn forms_that_are_not_read_say_which_are() {
    let captures = read_bytes(b"$ lsattr -El fcs0 -F attribute:value\nnum_cmd_elems:500\n$ iostat 1 1\nSystem configuration: lcpu=8 drives=2\n\ntty: tin tout\n");
    let whys: Vec<&str> = captures.refused.iter().map(|refused| refused.why.as_str()).collect();
    assert_eq!(whys.len(), 2, "{whys:?}");
    assert!(whys[0].contains("lsattr -El"));
    assert!(whys[1].contains("iostat -D"));
}

#[test]
fn bytes_that_are_no_text_are_reported() {
    let mut bytes = fixture("fcstat-old");
    bytes.extend_from_slice(b"\xff\xfe\xe9\n\0\0\n");
    let captures = read_bytes(&bytes);
    assert_eq!(captures.fcstats().count(), 1);
    let notes = &captures.files[0].notes;
    assert!(
        notes.iter().any(|note| note.contains("UTF-8"))
            && notes.iter().any(|note| note.contains("NUL")),
        "{notes:?}"
    );
    assert!(Captures::new().files.is_empty());
    assert!(read_bytes(b"").reports.is_empty());
}

#[test]
fn every_fixture_is_read_whole() {
    for name in EVERY.iter().filter(|name| !matches!(**name, "entstat-sea" | "level")) {
        let captures = read(name);
        assert_whole(&captures);
        for report in &captures.reports {
            let head = report.head();
            assert!(head.first.line <= head.last && head.last <= captures.files[0].lines, "{name}");
            assert!(
                !matches!(report, Report::Fcstat(report) if report.resources.no_command.is_none())
            );
        }
    }
}

#[test]
fn a_loop_names_the_device_before_its_rows() {
    let captures = read_bytes(b"db1:/> for d in hdisk1 hdisk2; do echo $d; lsattr -El $d -a queue_depth -a reserve_policy; done\nhdisk1\nqueue_depth 8 Queue DEPTH True+\nreserve_policy no_reserve Reserve Policy True+\nhdisk2\nqueue_depth 32 Queue DEPTH True+\nreserve_policy no_reserve Reserve Policy True+\n");
    let found: Vec<_> = captures
        .lsattrs()
        .map(|report| (value(&report.head.device), report.attributes[0].number()))
        .collect();
    assert_eq!(found, [("hdisk1".to_owned(), Some(8)), ("hdisk2".to_owned(), Some(32))]);
    assert_eq!(captures.unread, []);
}

/// Headings are made up by whoever writes the loop; on three lines, the shell's second prompt stands before two of them.
#[test]
fn a_loop_may_print_any_heading_around_the_device() {
    for (echo, before, after) in [
        ("== $d", "== ", ""),
        ("=== $d ===", "=== ", " ==="),
        ("--- $d", "--- ", ""),
        ("$d:", "", ":"),
        ("[$d]", "[", "]"),
        ("'*** '$d' ***'", "*** ", " ***"),
        ("Adapter $d", "Adapter ", ""),
    ] {
        let one = format!(
            "db1:/> for d in fscsi0 fscsi1; do echo {echo}; lsattr -El $d -a dyntrk -a attach; done\n"
        );
        let several = format!(
            "db1:/> for d in fscsi0 fscsi1\n> do\n> echo {echo}; lsattr -El $d -a dyntrk -a attach\n> done\n"
        );
        for typed in [one, several] {
            let of = |device: &str, dyntrk: &str| {
                format!(
                    "{before}{device}{after}\ndyntrk {dyntrk} Dynamic Tracking True+\nattach switch How CONNECTED False\n"
                )
            };
            let text = format!("{typed}{}{}", of("fscsi0", "yes"), of("fscsi1", "no"));
            let captures = read_bytes(text.as_bytes());
            let found: Vec<_> = captures
                .lsattrs()
                .map(|report| {
                    let head = &report.head;
                    let dyntrk = report.attributes[0].value.to_string();
                    (value(&head.partition), value(&head.device), dyntrk)
                })
                .collect();
            let of =
                |device: &str, value: &str| ("db1".to_owned(), device.to_owned(), value.to_owned());
            assert_eq!(found, [of("fscsi0", "yes"), of("fscsi1", "no")], "{text}");
            assert_eq!(captures.unread, [], "{text}");
        }
    }
}

#[test]
fn a_prompt_in_brackets_names_the_host() {
    let captures =
        read_bytes(b"[tallin01:root:/home/root:] lsattr -El fcs0\na 1 A True\nb 2 B True\n");
    assert_eq!(value(&only(captures.lsattrs()).head.partition), "tallin01");
}

#[test]
fn prompts_without_a_path_name_the_host_before_a_known_command() {
    for prompt in ["vios1:padmin$ ", "[vios1:padmin] ", "vios1@/# "] {
        let text = format!(
            "{prompt}lsattr -El fcs0 -a num_cmd_elems\nnum_cmd_elems 200 Elements True\n{prompt}lspath\nEnabled hdisk0 fscsi0\n"
        );
        let captures = read_bytes(text.as_bytes());
        let hosts: Vec<String> =
            captures.reports.iter().map(|report| value(&report.head().partition)).collect();
        assert_eq!(hosts, ["vios1", "vios1"], "{prompt}: {captures:?}");
        assert_whole(&captures);
    }
}

#[test]
fn prompts_of_root_on_a_server_are_that_servers() {
    let level = |prompt: &str| format!("{prompt} lspath\nEnabled hdisk0 fscsi0\n");
    let text = [
        "vios1:/home/padmin> oem_setup_env\n",
        &level("#"),
        &level("#"),
        "# exit\n",
        &level("#"),
        "vios2:/home/padmin> oem_setup_env\n",
        &level("#"),
        &level("aix1:/>"),
        &level("#"),
    ]
    .concat();
    let hosts: Vec<Option<String>> = read_bytes(text.as_bytes())
        .reports
        .iter()
        .map(|report| report.head().partition.as_ref().map(|read| read.value.clone()))
        .collect();
    let on = |name: &str| Some(name.to_owned());
    assert_eq!(hosts, [on("vios1"), on("vios1"), None, on("vios2"), on("aix1"), None]);
}

#[test]
fn the_end_of_a_connection_ends_a_report() {
    let text = "vios1:/> lspath\nEnabled hdisk0 fscsi0\nShared connection to vios1 closed.\n";
    let captures = read_bytes(text.as_bytes());
    assert_eq!(captures.reports.len(), 1);
    assert!(captures.reports[0].head().unread.is_empty(), "{captures:?}");
}
