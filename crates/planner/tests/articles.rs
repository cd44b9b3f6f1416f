//! The figures of the published articles, one by one, against what the program says. Each row names the article by its
//! key in the data files, the figure, and how the article prints it; where an article's text says something else than its
//! own numbers the row has what the numbers come to.

use planner::advise::{Advice, advise};
use planner::capture::{Captures, Read};
use planner::facts::{Facts, Level, Number, Product, Verdict};
use planner::lpm::Plan;
use planner::size::{Sizing, Workloads};
use planner::trace::Figure;

/// Article, figure, as printed, as the program has it.
type Row = (&'static str, String, String, String);

#[derive(Default)]
struct Table {
    article: &'static str,
    rows: Vec<Row>,
}

impl Table {
    fn of(article: &'static str) -> Self {
        Self { article, rows: Vec::new() }
    }

    fn row(&mut self, figure: &str, printed: impl ToString, got: impl ToString) {
        self.rows.push((self.article, figure.to_owned(), printed.to_string(), got.to_string()));
    }

    #[track_caller]
    fn holds(self, least: usize) {
        assert!(self.rows.len() >= least, "{} rows", self.rows.len());
        let wrong: Vec<&Row> =
            self.rows.iter().filter(|(_, _, printed, got)| printed != got).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

fn facts() -> Facts {
    Facts::builtin()
}

fn number(id: &str) -> f64 {
    facts().number(id).low
}

fn sized(text: &str) -> Sizing {
    Workloads::read(text).unwrap().size(&facts()).unwrap()
}

fn figure<'s>(figures: &'s [Figure], name: &str) -> &'s Figure {
    figures.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn read(text: &str) -> Captures {
    let mut captures = Captures::new();
    captures.read("article.txt", text.as_bytes(), None);
    captures
}

fn advised(text: &str) -> Advice {
    advise(&read(text), &facts())
}

fn shown<T: ToString + Copy>(read: &Option<Read<T>>) -> String {
    read.map_or_else(|| "nothing".to_owned(), |read| read.value.to_string())
}

fn met(feature: &str, product: Product, level: &str) -> bool {
    let facts = facts();
    let needed = facts.requirement(feature, product).expect("it is among the data files");
    needed.judge(&Level::read(product, level).expect("a level")) == Verdict::Met
}

#[test]
fn several_queues_attributes_and_requirements() {
    let facts = facts();
    let mut table = Table::of("npiv-mq");
    for (device, name, printed) in [
        ("fcs", "num_io_queues", "1 16 8"),
        ("viosnpiv0", "num_per_range", "4 64 8"),
        ("viosnpiv0", "num_local_cmds", "1 64 5"),
        ("viosnpiv0", "bufs_per_cmd", "1 64 10"),
        ("vfchost", "num_per_range", "0 64 0"),
        ("fcs-client", "num_cmd_elems", "512 2048 1024"),
        ("fcs-client", "num_io_queues", "1 16 8"),
        ("fcs-client", "num_sp_cmd_elem", "512 2048 512"),
    ] {
        let known = facts.attribute(device, name).unwrap();
        let default = known.default.as_ref().unwrap();
        let got = format!("{} {} {default}", known.min.unwrap(), known.max.unwrap());
        table.row(&format!("{name} of {device}: least, most, default"), printed, got);
    }
    let limit_intr = facts.attribute("vfchost", "limit_intr").unwrap();
    table.row("limit_intr, default", "false", limit_intr.default.as_ref().unwrap());
    for (what, product, enough, less) in [
        ("processors", Product::Server, "POWER9", "POWER8"),
        ("firmware", Product::Firmware, "FW940", "FW930"),
        ("firmware that is recommended", Product::Firmware, "FW950", "FW930"),
        ("VIOS", Product::Vios, "3.1.2", "3.1.1.25"),
        ("AIX", Product::Aix, "7.2 TL5", "7.2 TL4 SP6"),
        ("IBM i 7.4", Product::Ibmi, "7.4 TR6", "7.4 TR5"),
        ("IBM i 7.3", Product::Ibmi, "7.3 TR12", "7.3 TR11"),
    ] {
        let of = |level| met("npiv-multi-queue", product, level);
        table.row(what, "true false", format!("{} {}", of(enough), of(less)));
    }
    table.row("IOPS below which it gains nothing", "150000", number("mq.iops-min"));
    table.row(
        "I/Os in a queue below which threads gain nothing",
        "6",
        number("mq.ios-per-queue-min"),
    );
    table.row("queues by default", "8", number("mq.queues-usual"));
    table.row("virtual adapters on a port", "255", number("npiv.clients-max.32gbit"));
    for feature in ["EN1A", "EN1C", "EN1E", "EN1G", "EN1J", "EN1K", "EN1L", "EN1N", "EN2A"] {
        table.row("adapter of the comments", true, facts.adapter(feature).is_some());
    }
    for feature in ["EN1A", "EN1K"] {
        let several = facts.adapter(feature).unwrap().multi_queue;
        table.row("adapter that the comments confirm", "Some(true)", format!("{several:?}"));
    }
    for (feature, gbit) in [("EN1A", 32), ("EN1C", 16), ("EN1K", 32), ("EN1N", 64)] {
        table.row("speed, Gbit/s", gbit, facts.adapter(feature).unwrap().link_gbit);
    }
    for (key, printed) in [
        ("mq.gain-percent.oltp.1", "68"),
        ("mq.gain-percent.oltp.2", "77"),
        ("mq.gain-percent.writes.few", "34"),
        ("mq.gain-percent.reads.1", "83"),
        ("mq.gain-percent.reads.2", "98"),
        ("mq.gap-closed-percent", "56"),
        ("mq.gain-times", "1.8"),
    ] {
        table.row(key, printed, number(key));
    }
    table.holds(37);
}

#[test]
fn several_queues_outputs() {
    let mut table = Table::of("npiv-mq-faq");
    let stats = read(
        "vios1:/# cat /proc/sys/adapter/vfc/vfchost0/stats | head -3\n\nNumber of CMD queues    = 1\nNumber of SUBQ channels = 8\n",
    );
    let stats = stats.vfc_stats_all().next().expect("statistics");
    table.row("CMD queues", 1, shown(&stats.command_queues));
    table.row("SUBQ channels", 8, shown(&stats.channels));
    let received = [
        0,
        8_692_844,
        10_236_718,
        11_848_144,
        13_025_270,
        11_541_206,
        10_606_106,
        6_627_340,
        8_881_815_u64,
    ];
    let lines: String =
        received.iter().map(|count| format!("Commands received  = {count}\n")).collect();
    let typed = "vios1:/# cat /proc/sys/adapter/vfc/vfchost0/stats | grep \"Commands received\"\n";
    let stats = read(&format!("{typed}{lines}"));
    let stats = stats.vfc_stats_all().next().expect("statistics");
    for (index, count) in received.iter().enumerate() {
        let got = stats.commands_received.get(index).map_or(0, |read| read.value);
        table.row(&format!("commands received by queue {index}"), count, got);
    }
    let fcstat = read(
        "# fcstat fcs0\nFIBRE CHANNEL STATISTICS REPORT: fcs0\nSeconds Since Last Reset: 1125567\nFC SCSI Adapter Driver Information\n  No DMA Resource Count: 0\n  No Adapter Elements Count: 0\n  No Command Resource Count: 0\nFC SCSI Traffic Statistics\n  Input Requests:   175045\n  Output Requests:  166363\n  Control Requests: 1103\n  Input Bytes:  654498534\n  Output Bytes: 657114112\n",
    );
    let fcstat = fcstat.fcstats().next().expect("a report");
    for (figure, printed, got) in [
        ("seconds since the reset", "1125567", fcstat.seconds_since_reset),
        ("no DMA resource", "0", fcstat.resources.no_dma),
        ("no adapter elements", "0", fcstat.resources.no_elements),
        ("no command resource", "0", fcstat.resources.no_command),
        ("input requests", "175045", fcstat.traffic.input_requests),
        ("output requests", "166363", fcstat.traffic.output_requests),
        ("control requests", "1103", fcstat.traffic.control_requests),
        ("input bytes", "654498534", fcstat.traffic.input_bytes),
        ("output bytes", "657114112", fcstat.traffic.output_bytes),
    ] {
        table.row(figure, printed, shown(&got));
    }
    table.holds(20);
}

/// The queues at each stage of a plan: servers with so many queues each, AIX with multi-queue.
fn stages(queues: u32, servers: &[(&str, u32)], steps: &str) -> String {
    let servers: String = servers
        .iter()
        .map(|(name, queues)| {
            format!(
                "[server.{name}]\nvios = \"3.1.2.10\"\nfirmware = \"FW940\"\nadapter = \"EN1A\"\nnum_per_range = {queues}\nnum_io_queues = {queues}\n"
            )
        })
        .collect();
    let text = format!(
        "steps = [{steps}]\n[client]\nsystem = \"aix\"\nlevel = \"7.2 TL5\"\nat = \"a\"\nqueues = {queues}\nnum_io_queues = 16\n{servers}"
    );
    let outcome = Plan::read(&text, &facts()).unwrap().outcome(&facts()).unwrap();
    let counts: Vec<String> = outcome
        .stages
        .iter()
        .map(|stage| {
            let cases: Vec<String> =
                stage.cases.iter().map(|case| case.queues.to_string()).collect();
            cases.join("/")
        })
        .collect();
    counts.join(" ")
}

#[test]
fn queues_that_are_agreed_on_again() {
    let mut table = Table::of("npiv-mq-faq");
    let to = |name: &str| format!("{{ move = \"{name}\" }}");
    table.row("8, and the VIOS offers 16", "8 8", stages(8, &[("a", 8), ("b", 16)], &to("b")));
    table.row("8, and the VIOS offers 4", "8 4", stages(8, &[("a", 8), ("b", 4)], &to("b")));
    let back = format!("{}, {}, \"reconfigure\"", to("b"), to("a"));
    table.row(
        "8, then 4, then 8 again: the client is to be configured anew",
        "8 4 4 8",
        stages(8, &[("a", 8), ("b", 4)], &back),
    );
    table.row("16 to a VIOS with 8", "16 8", stages(16, &[("a", 16), ("b", 8)], &to("b")));
    table.holds(4);
}

const SEA: &str = "[[sea]]\nstreaming_mb = 200\n";

#[test]
fn processors_of_a_shared_ethernet_adapter() {
    let mut table = Table::of("sea-sizing");
    for (key, printed) in [
        ("sea.cycles-per-byte.threaded.1500.simplex", "11.2"),
        ("sea.cycles-per-byte.threaded.1500.duplex", "8.6"),
        ("sea.cycles-per-byte.threaded.9000.simplex", "5"),
        ("sea.cycles-per-byte.threaded.9000.duplex", "3.8"),
        ("sea.cycles-per-byte.plain.1500.simplex", "9.3"),
        ("sea.cycles-per-byte.plain.1500.duplex", "7.4"),
        ("sea.cycles-per-byte.plain.9000.simplex", "3.6"),
        ("sea.cycles-per-byte.plain.9000.duplex", "2.9"),
        ("sea.cycles-per-transaction.threaded.64", "23022"),
        ("sea.cycles-per-transaction.threaded.1024", "25406"),
        ("sea.cycles-per-transaction.plain.64", "17956"),
        ("sea.cycles-per-transaction.plain.1024", "20196"),
        ("sea.reference-clock", "1650000000"),
        ("sea.shared-below", "0.5"),
    ] {
        table.row(key, printed, number(key));
    }
    let sizing = sized(SEA);
    let steps = &sizing.parts[0].figures;
    table.row("200 MB, cycles", "2,348,810,240", figure(steps, "cycles/s").value());
    table.row("200 MB, processors", "1.42", figure(steps, "processors").value());
    table.row("200 MB, shared", "1.5", sizing.shared.as_ref().unwrap().low);
    table.row("200 MB, dedicated", "2", sizing.dedicated.as_ref().unwrap().low);
    let processors = |text: &str| figure(&sized(text).parts[0].figures, "processors").low;
    let slower = processors(&format!("[vios]\nclock_ghz = 1.5\n{SEA}")) / processors(SEA);
    table.row("a clock of 1.5 GHz, times", "1.1", format!("{slower:.1}"));
    // What the tables measured, in percent of a processor, from their rates.
    for (rate, mtu, direction, threaded, printed) in [
        (112.8, 1500, "simplex", true, 80.6),
        (162.2, 1500, "duplex", true, 88.8),
        (117.8, 9000, "simplex", true, 37.7),
        (217.0, 9000, "duplex", true, 52.5),
        (112.8, 1500, "simplex", false, 66.4),
        (161.6, 1500, "duplex", false, 76.4),
        (117.8, 9000, "simplex", false, 26.7),
        (216.8, 9000, "duplex", false, 39.6),
    ] {
        let got = 100.0
            * processors(&format!(
                "[[sea]]\nstreaming_mb = {rate}\nmtu = {mtu}\ndirection = \"{direction}\"\nthreaded = {threaded}\n"
            ));
        // The cycles of the tables are rounded to a tenth.
        let near = (got / printed - 1.0_f64).abs() < 0.02;
        table.row(
            &format!("{rate} MB, MTU {mtu}, {direction}: {printed} %, not {got}"),
            true,
            near,
        );
    }
    for (rate, bytes, threaded, printed) in [
        (59_722, 64, true, 83.4),
        (51_956, 1024, true, 80.0),
        (60_249, 64, false, 65.6),
        (53_104, 1024, false, 65.0),
    ] {
        let got = 100.0
            * processors(&format!(
                "[[sea]]\ntransactions = {rate}\ntransaction_bytes = {bytes}\nthreaded = {threaded}\n"
            ));
        let near = (got / printed - 1.0_f64).abs() < 0.005;
        table.row(&format!("{rate} a second of {bytes} bytes: {printed} %, not {got}"), true, near);
    }
    // What threads add: 16 to 20 % at an MTU of 1500, 31 to 38 % at 9000.
    for (kind, printed) in [
        ("1500.simplex", "20"),
        ("1500.duplex", "16"),
        ("9000.simplex", "38"),
        ("9000.duplex", "31"),
    ] {
        let with = number(&format!("sea.cycles-per-byte.threaded.{kind}"));
        let without = number(&format!("sea.cycles-per-byte.plain.{kind}"));
        table.row("threads add", printed, ((with / without - 1.0) * 100.0).floor());
    }
    // One processor for each Gigabit adapter at its measured rate, half of one with jumbo frames; two for two.
    let whole = |text: &str| sized(text).dedicated.as_ref().unwrap().low;
    table.row("one adapter", "1", whole("[[sea]]\nstreaming_mb = 112.8\n"));
    table.row("ten of 100 Mbit", "1", whole(&"[[sea]]\nstreaming_mb = 11.28\n".repeat(10)));
    table.row("two adapters", "2", whole("[[sea]]\nstreaming_mb = 225.6\n"));
    let jumbo = sized("[[sea]]\nstreaming_mb = 117.8\nmtu = 9000\n");
    let jumbo = figure(&jumbo.parts[0].figures, "processors").low;
    table.row("jumbo frames, at most half of one", true, jumbo <= 0.5);
    table.row(
        "small packets, one",
        "1",
        whole("[[sea]]\ntransactions = 59722\ntransaction_bytes = 64\n"),
    );
    table.holds(35);
}

/// The client's adapter as the article prints it, and what it is set to.
fn elements(set: u32, marks: [u64; 3], waits: u64, traffic: [u64; 5]) -> String {
    let [adapter, protocol, pending] = marks;
    let [reads, writes, control, read, written] = traffic;
    format!(
        "erp1:/> oslevel -s\n7200-00-00-0000\nerp1:/> lsattr -El fcs0\nmax_xfer_size 0x100000 Maximum Transfer Size              True\nnum_cmd_elems {set}      Maximum Number of COMMAND Elements True\nerp1:/> fcstat -D fcs0\n\nFIBRE CHANNEL STATISTICS REPORT: fcs0\n\nDevice Type: Virtual Fibre Channel Client Adapter (adapter/vdevice/IBM,vfc-client)\nWorld Wide Port Name: 0xC05076069D61000A\n\nSeconds Since Last Reset: 86400\n\n  FC SCSI Adapter Driver Queue Statistics\n    Number of active commands:   0\n    High water mark  of active commands:   {adapter}\n    Number of pending commands:   0\n    High water mark of pending commands:   1\n\n  FC SCSI Protocol Driver Queue Statistics\n    Number of active commands:   0\n    High water mark  of active commands:   {protocol}\n    Number of pending commands:   0\n    High water mark of pending commands:   {pending}\n\nFC SCSI Adapter Driver Information\n  No DMA Resource Count: 0\n  No Adapter Elements Count: 0\n  No Command Resource Count: {waits}\n\nFC SCSI Traffic Statistics\n  Input Requests:   {reads}\n  Output Requests:  {writes}\n  Control Requests: {control}\n  Input Bytes:  {read}\n  Output Bytes: {written}\n\nAdapter Effective max transfer value:   0x100000\n"
    )
}

const BUSY: [u64; 5] = [5_662_994, 120_070, 141_655, 23_424_304_056, 603_911_680];

#[test]
fn elements_of_a_virtual_adapter() {
    let facts = facts();
    let mut table = Table::of("num-cmd-elems");
    let known = facts.attribute("fcs-client-single", "num_cmd_elems").unwrap();
    table.row("default", "200", known.default.as_ref().unwrap());
    let range = read("erp1:/> lsattr -Rl fcs0 -a num_cmd_elems\n20\u{2026}2048 (+1)\n");
    let range = range.lsattr_ranges().next().and_then(|range| range.max());
    table.row(
        "range",
        "20 2048 Some(2048)",
        format!("{} {} {range:?}", known.min.unwrap(), known.max.unwrap()),
    );
    let first = elements(200, [180, 180, 2022], 4_419_300, BUSY);
    let captures = read(&first);
    let report = captures.fcstats().next().unwrap();
    let queue = (report.adapter_queue, report.protocol_queue);
    for (figure, printed, got) in [
        ("active, adapter driver", "180", queue.0.active_high),
        ("pending, adapter driver", "1", queue.0.pending_high),
        ("active, protocol driver", "180", queue.1.active_high),
        ("pending, protocol driver", "2022", queue.1.pending_high),
        ("waits", "4419300", report.resources.no_command),
        ("input requests", "5662994", report.traffic.input_requests),
        ("output requests", "120070", report.traffic.output_requests),
        ("control requests", "141655", report.traffic.control_requests),
        ("input bytes", "23424304056", report.traffic.input_bytes),
        ("output bytes", "603911680", report.traffic.output_bytes),
    ] {
        table.row(figure, printed, shown(&got));
    }
    let set = |advice: &Advice| {
        let first = advice.findings.first();
        first.and_then(|first| first.command.clone()).unwrap_or_default()
    };
    table.row("what is set", "chdev -l fcs0 -a num_cmd_elems=2048 -P", set(&advised(&first)));
    // After the change: 1,894 and 1,895 active, one pending, no waits. Nothing is left to say.
    let second =
        elements(2048, [1894, 1895, 1], 0, [4_945_548, 3464, 311, 20_391_759_980, 41_137_280]);
    let captures = read(&second);
    let report = captures.fcstats().next().unwrap();
    table.row("active after", "1894", shown(&report.adapter_queue.active_high));
    table.row("active after, protocol", "1895", shown(&report.protocol_queue.active_high));
    table.row("pending after", "1", shown(&report.protocol_queue.pending_high));
    table.row("waits after", "0", shown(&report.resources.no_command));
    table.row("requests after", "4945548", shown(&report.traffic.input_requests));
    table.row("transfer size", 0x10_0000, shown(&report.max_transfer_bytes));
    table.row("findings after", 0, advised(&second).findings.len());
    // The comments' sums: 626 is printed for the first.
    for (marks, printed) in [([512, 512, 104], "616"), ([614, 614, 993], "1607")] {
        let advice = advised(&elements(512, marks, 4_128_362, BUSY));
        let sum = figure(&advice.findings[0].figures, "elements by the high-water rule");
        table.row("high active + high pending", printed, sum.low);
    }
    // The commenter's own port: 1024 are set, 614 + 993 at the most, and 4,128,362 requests waited for an element.
    let port = elements(1024, [614, 614, 993], 0, BUSY)
        .replace("erp1:/> oslevel -s\n7200-00-00-0000", "erp1:/> oslevel -s\n7100-03-07-1614")
        .replace(
            "Virtual Fibre Channel Client Adapter (adapter/vdevice/IBM,vfc-client)",
            "8Gb PCI Express Dual Port FC Adapter (df1000f114108a03) (adapter/pciex/df1000f114108a0)",
        )
        .replace("No Adapter Elements Count: 0", "No Adapter Elements Count: 4128362");
    let advice = advised(&port);
    table.row("the rule", "fc-physical-elements", advice.findings[0].rule);
    let sum = figure(&advice.findings[0].figures, "elements by the high-water rule");
    table.row("614 + 993, of 1024", "1607", sum.low);
    let asked = set(&advice);
    table.row("at least that many are set", true, asked.ends_with("num_cmd_elems=1792 -P"));
    let contradiction = facts.contradiction("high-water-sum").unwrap();
    table.row("what the comment prints", true, contradiction.says.ends_with("626"));
    // From these levels on an adapter may have 2048.
    for (enough, less) in [
        ("6100-09-06", "6100-09-05"),
        ("7100-03-07", "7100-03-06"),
        ("7100-04-00", "7100-03-06"),
        ("7200-00-00", "6100-09-05"),
    ] {
        let of = |level| met("vfc-2048-elements", Product::Aix, level);
        table.row(enough, "true false", format!("{} {}", of(enough), of(less)));
    }
    table.holds(24);
}

#[test]
fn a_level_before_2048_elements_gets_no_command_unless_its_range_was_captured() {
    let old = elements(200, [180, 180, 2022], 4_419_300, BUSY)
        .replace("7200-00-00-0000", "7100-03-05-1524");
    let finding = &advised(&old).findings[0];
    assert_eq!((finding.rule, finding.command.as_deref()), ("fc-virtual-elements", None));
    assert!(finding.look_up.iter().any(|what| what.contains("lsattr -Rl fcs0 -a num_cmd_elems")));
    let with = format!("{old}erp1:/> lsattr -Rl fcs0 -a num_cmd_elems\n20...2048 (+1)\n");
    assert!(advised(&with).findings[0].command.is_some());
}

#[test]
fn shared_storage_pools() {
    let facts = facts();
    let mut table = Table::of("ssp-speed");
    for (key, printed) in [
        ("ssp.luns-min", "16"),
        ("ssp.luns-per-tb", "8"),
        ("ssp.luns-per-tb-above", "2"),
        ("ssp.chunk-mib", "64"),
        ("ssp.lun-depth-min", "16"),
        ("ssp.measured.direct-mb", "118"),
        ("ssp.measured.direct-ms", "5.2"),
        ("ssp.measured.pool-mb", "81"),
        ("ssp.measured.pool-ms", "7.7"),
        ("ssp.measured.vscsi-mb", "68"),
        ("ssp.measured.vscsi-ms", "9.2"),
    ] {
        table.row(key, printed, number(key));
    }
    for (device, printed) in [("hdisk-vios", "20"), ("hdisk-lu", "8"), ("hdisk-pool", "3")] {
        let known = facts.attribute(device, "queue_depth").unwrap();
        table.row(&format!("queue_depth of {device}"), printed, known.default.as_ref().unwrap());
    }
    let pool = "[[ssp]]\niops = 100\nblock_bytes = 8192\nclients = 100\npool_tb = 2\n";
    let sizing = sized(pool);
    let steps = &sizing.parts[0].figures;
    table.row("16 LUNs of depth 3", "48", figure(steps, "I/Os that the pool takes at a time").low);
    let boost = number("ssp.measured.pool-mb") / number("ssp.measured.vscsi-mb");
    table.row("about 20 % more than over virtual SCSI", "19", ((boost - 1.0) * 100.0).round());
    let deeper = sized(&format!("{pool}lu_depth = 16\nlun_depth = 16\n"));
    let deeper = figure(&deeper.parts[0].figures, "I/Os that the pool takes at a time").low;
    table.row("16 LUNs of depth 16", "256", deeper);
    let sent = sized(&format!("{pool}lu_depth = 10\n"));
    let sent = figure(&sent.parts[0].figures, "I/Os that clients send at a time, at most").low;
    table.row("100 clients with 10 I/Os each, printed as 4,000", "1000", sent);
    let said = facts.contradiction("pool-outstanding").unwrap().says.clone();
    table.row("the answer says so", true, said.contains("4,000"));
    let pages = number("ssp.chunk-mib") * 1024.0 / 4.0;
    table.row("pages of 4 KB in a block, printed as 16", "16384", pages);
    let said = facts.contradiction("pool-chunk").unwrap().numbers.clone();
    table.row("the data files say so", true, said.contains("16,384"));
    let five = sized("[[ssp]]\niops = 1\nblock_bytes = 8192\nclients = 1\npool_tb = 5\n");
    table.row(
        "LUNs of 5 TB",
        "40",
        figure(&five.parts[0].figures, "LUNs of the pool, recommended").low,
    );
    table.holds(20);
}

/// Pages of which one figure or two are used.
#[test]
fn other_pages() {
    let facts = facts();
    for (article, key, low, high) in [
        ("npiv-limits", "npiv.clients-max.16gbit", 64.0, 64.0),
        ("npiv-mq-lpm", "lpm.firmware-uncounted", 930.0, 930.0),
        ("npiv-wwpn", "npiv.wwpns-per-adapter", 2.0, 2.0),
        ("sea-sizing", "sea.rounding", 0.5, 0.5),
        ("ssp-nodes", "ssp.node-processors-min", 1.0, 1.0),
        ("ssp-nodes", "ssp.node-memory-gb-min", 4.0, 4.0),
        ("ssp-nodes", "ssp.clients-at-min", 250.0, 250.0),
        ("ssp-nodes", "ssp.clients-at-large", 400.0, 400.0),
        ("ssp-nodes", "ssp.processors-at-large", 4.0, 4.0),
        ("ssp-nodes", "ssp.memory-gb-at-large", 8.0, 8.0),
        ("unixadminschool", "disk.service-ms-max", 15.0, 15.0),
        ("vfc-memory", "vfc.hypervisor-memory-mb", 140.0, 140.0),
        ("vios-rules", "vios.virtual-processors-above", 1.0, 2.0),
        ("vscsi-timeout", "vscsi.path-timeout-seconds", 30.0, 30.0),
    ] {
        let known = facts.number(key);
        let mut table = Table::of(article);
        table.row(key, format!("{low} to {high}"), format!("{} to {}", known.low, known.high));
        table.row("its source", article, &known.source.id);
        table.holds(2);
    }
    // "40 adapters take 5.6 GB".
    let forty = number("vfc.hypervisor-memory-mb") * 40.0 / 1000.0;
    let mut table = Table::of("vfc-memory");
    table.row("40 adapters, GB", "5.6", forty);
    table.holds(1);
}

/// Every figure of the data files that was read in a source is asked for here, by its key or its family's.
#[test]
fn no_figure_that_was_read_is_left_out() {
    const SOURCE: &str = include_str!("articles.rs");
    let read: Vec<&str> = SOURCE.split('"').filter(|text| text.contains('.')).collect();
    let asked = |key: &str| {
        let family = |text: &&str| text.split_once('{').is_some_and(|(of, _)| key.starts_with(of));
        read.iter().any(|text| *text == key || (text.contains(".{") && family(text)))
    };
    let facts = facts();
    // The server's own thresholds are of no article.
    let of_article = |number: &&Number| number.source.confirmed && number.source.id != "trunkline";
    let all: Vec<&Number> = facts.numbers("").filter(of_article).collect();
    assert!(all.len() > 40, "{}", all.len());
    let left_out: Vec<&Number> = all.into_iter().filter(|number| !asked(&number.id)).collect();
    assert!(left_out.is_empty(), "{left_out:#?}");
}
