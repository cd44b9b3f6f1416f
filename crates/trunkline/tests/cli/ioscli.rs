//! The commands of the original: what they print, and what they change.

use super::*;

#[test]
fn it_shows_an_adapter_as_the_original_would() {
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
    insta::assert_snapshot!("fcstat", report);
    insta::assert_snapshot!("cat", bench.ok("ioscli cat vhost0/stats"));
    insta::assert_snapshot!("lsmap", bench.ok("ioscli lsmap -all"));
    insta::assert_snapshot!("lsdev", bench.ok("ioscli lsdev"));
    insta::assert_snapshot!("lsattr", bench.ok("ioscli lsattr -El vhost0"));
    let reset = bench.ok("ioscli fcstat -z vhost0");
    assert!(report.contains("Input Requests:   120") && reset.contains("Input Requests:   0"));
    queues[1].add(QueueCounter::Reads, 7);
    assert!(bench.ok("ioscli fcstat vhost0").contains("Input Requests:   7"));
    // Nobody else's counters were touched.
    assert!(bench.ok("stats vhost0 -o json").contains("\"reads\": 127"));
    assert!(bench.ok("ioscli fcstat -l 1 vhost0").contains("SAN (the volume)"));
}

#[test]
fn it_changes_at_once_or_keeps_the_change_for_later() {
    let bench = Bench::with_disk();
    assert_eq!(bench.ok("ioscli chdev -dev vhost0 -attr queues=0x4"), "vhost0 changed\n");
    assert_eq!(bench.ok("ioscli lsdev -dev vhost0 -attr queues"), "value\n\n4\n");
    assert_eq!(bench.ok("ioscli chdev -l vhost0 -a queues="), "vhost0 changed\n");
    let busy = bench.refused("ioscli chdev -dev main -attr channels=2 num_workers=2", 2);
    assert!(busy.contains("num_workers"), "{busy}");
    insta::assert_snapshot!("busy", bench.refused("ioscli chdev -dev main -attr channels=2", 1));
    let kept = bench.ok("ioscli chdev -dev main -attr channels=2 -perm");
    assert_eq!(kept, "main changed\nchannels takes effect with the restart of the data plane\n");
    assert_eq!(bench.ok("ioscli lsattr -Rl vhost0 -a wait"), "poll\nadaptive\ninterrupt\n");
}

#[test]
fn it_teaches() {
    let bench = Bench::with_disk();
    let mut refusals = String::new();
    for (line, code) in [
        ("ioscli fcstat fcs9", 1),
        ("ioscli fcstta", 2),
        ("ioscli lsmap", 2),
        ("ioscli lsmap -al", 2),
        ("ioscli lsdev -dev nothing", 3),
        ("ioscli lsdev -attr", 2),
        ("ioscli lsdev -range queues", 2),
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
    insta::assert_snapshot!("refusals", refusals);
    let mut help = bench.ok("ioscli");
    for command in [
        "fcstat", "cat", "lsmap", "lsnports", "vfcmap", "lsdev", "lsattr", "chdev", "mkvdev",
        "mkvopt",
    ] {
        help += &format!("\n{}", bench.ok(&format!("ioscli {command} -help")));
    }
    insta::assert_snapshot!("help", help);
}

#[test]
fn it_writes_switches_as_the_original_and_takes_them_so() {
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
    assert!(places[0].starts_with("vfchost0:UTRUNKLINE.5EE3C1-main-V1-C0:"), "{}", places[0]);
    assert!(places[1].starts_with("vhost0:UTRUNKLINE.5EE3C1-main-V1-C10000:"), "{}", places[1]);
}

#[test]
fn it_shows_ports_and_virtual_fibre_channel() {
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
    insta::assert_snapshot!("npiv", shown);
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
    // What an adapter waits for by its own bound is not a shortage of the port.
    assert!(bench.ok("ioscli fcstat vfchost0").contains("No Command Resource Count: 4\n"));
    assert!(bench.ok("ioscli fcstat fcs0").contains("No Command Resource Count: 0\n"));
    let of_port = rows.lines().find(|row| row.contains(" fcs0 ")).unwrap();
    assert!(of_port.ends_with(" 0"), "{of_port}");
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
fn it_identifies_devices_and_removes_them() {
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
        "lsdev -vpd",
        "lsdev -vpd -type disk",
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
    insta::assert_snapshot!("identity", shown);
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
fn it_times_reads_and_writes_apart() {
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
    // Each LUN apart, and one of them by its name.
    for (lun, reads) in [(0, 1_000), (7, 500)] {
        let stats = fake.lun_stats("vhost0", (0, lun), 0).unwrap();
        stats.add(QueueCounter::Reads, reads);
        let (way, server_ns) = (protocol::stats::Way::Read, 1_000);
        let (count, device_ns) = (reads, 4_000_000);
        stats.record_timed(&protocol::stats::Timed { way, count, server_ns, device_ns });
    }
    let heads = |line: &str| {
        let shown = bench.ok(&format!("ioscli {line}"));
        let heads = shown.lines().filter(|line| line.contains("xfer:"));
        heads.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(heads("iostat -D -lun vhost0"), ["vhost0/0/0", "vhost0/0/7"]);
    assert_eq!(heads("viostat -extdisk -lun"), ["vhost0/0/0", "vhost0/0/7"]);
    assert_eq!(heads("iostat -D vhost0/0/7 vhost0"), ["vhost0", "vhost0/0/7"]);
    let shown = bench.ok("ioscli iostat -D vhost0/0/7");
    let row = shown.lines().skip_while(|line| !line.contains("rps")).nth(1).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1..], ["4.0", "4.0", "4.0", "0", "0"], "{shown}");
    for lun in ["vhost0/0/8", "vhost0/1/7", "nothing/0/0"] {
        bench.refused(&format!("ioscli iostat -D {lun}"), 3);
    }
    bench.refused("ioscli iostat", 2);
    bench.refused("ioscli iostat -D nothing", 3);
}

#[test]
fn it_makes_virtual_target_devices_and_media() {
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
    insta::assert_snapshot!("media", shown);
    bench.refused("ioscli rmvdev -vdev data", 3);
    bench.refused("ioscli loadopt -vtd vtopt0 -disk debian", 3);
}
