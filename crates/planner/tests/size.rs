//! Sizing: the article's worked example with every number between, the tables against the measurements that they came
//! from, and properties against plain arithmetic.

mod common;

use common::captures_of;
use planner::facts::Facts;
use planner::report::{Answer, text};
use planner::size::{Sizing, Workloads, captured};
use planner::trace::{Figure, Origin};
use proptest::prelude::*;

fn sized(text: &str) -> Sizing {
    let facts = Facts::builtin();
    let loads = Workloads::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    loads.size(&facts).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn figure<'s>(figures: &'s [Figure], name: &str) -> &'s Figure {
    figures.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Relative difference of a billionth at most.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-9)
}

const SEA: &str = "[[sea]]\nstreaming_mb = 200\n";

#[test]
fn the_articles_example_comes_out_with_every_number_between() {
    let sizing = sized(SEA);
    let steps = &sizing.parts[0].figures;
    let exact = |name: &str| {
        let figure = figure(steps, name);
        assert_eq!(figure.low, figure.high);
        figure
    };
    assert_eq!(exact("bytes/s").low, 209_715_200.0);
    assert_eq!(exact("bytes/s").put_in(), "200 × 1024 × 1024");
    assert!(near(exact("cycles/s").low, 2_348_810_240.0));
    assert_eq!(exact("cycles/s").value(), "2,348,810,240");
    assert_eq!(exact("cycles/s").put_in(), "209,715,200 × 11.2");
    assert_eq!(exact("processors").value(), "1.42");
    assert_eq!(exact("processors").put_in(), "2,348,810,240 ÷ 1,650,000,000");
    assert_eq!(sizing.shared.as_ref().unwrap().low, 1.5);
    assert_eq!(sizing.dedicated.as_ref().unwrap().low, 2.0);
    let explained = planner::trace::explain(exact("cycles/s"));
    assert!(explained.contains("cycles/byte = 11.2 cycles/byte: IBM documentation"), "{explained}");
    assert!(sizing.summary().starts_with("2 dedicated or 1.5 shared processors"));
}

#[test]
fn another_clock_scales_as_the_article_says() {
    // 1.65 / 1.5 = 1.1: ten percent more for a clock that is ten percent slower.
    let slower = sized(&format!("[vios]\nclock_ghz = 1.5\n{SEA}"));
    let same = sized(&format!("[vios]\nclock_ghz = 1.65\n{SEA}"));
    let of = |sizing: &Sizing| figure(&sizing.parts[0].figures, "processors").low;
    assert!(near(of(&slower), 1.1 * of(&sized(SEA))));
    assert!(near(of(&same), of(&sized(SEA))));
}

/// (threaded, MTU, direction, MB/s, utilisation): what the tables say was measured, with the cycles per byte beside.
const STREAMING: [(bool, u32, &str, f64, f64, f64); 8] = [
    (true, 1500, "simplex", 112.8, 0.806, 11.2),
    (true, 1500, "duplex", 162.2, 0.888, 8.6),
    (true, 9000, "simplex", 117.8, 0.377, 5.0),
    (true, 9000, "duplex", 217.0, 0.525, 3.8),
    (false, 1500, "simplex", 112.8, 0.664, 9.3),
    (false, 1500, "duplex", 161.6, 0.764, 7.4),
    (false, 9000, "simplex", 117.8, 0.267, 3.6),
    (false, 9000, "duplex", 216.8, 0.396, 2.9),
];

#[test]
fn a_measured_throughput_takes_about_the_processor_that_was_measured() {
    for (threaded, mtu, direction, rate, utilisation, cycles) in STREAMING {
        let sizing = sized(&format!(
            "[[sea]]\nstreaming_mb = {rate}\nmtu = {mtu}\ndirection = \"{direction}\"\nthreaded = {threaded}\n"
        ));
        let processors = figure(&sizing.parts[0].figures, "processors").low;
        // The table rounds cycles per byte to one decimal: 0.05 of 2.9 is 1.7 %.
        assert!((processors / utilisation - 1.0).abs() < 0.02, "{mtu} {direction}: {processors}");
        assert!(near(processors, rate * 1024.0 * 1024.0 * cycles / 1.65e9));
    }
    for (threaded, bytes, rate, utilisation) in [
        (true, 64, 59_722.0, 0.834),
        (true, 1024, 51_956.0, 0.80),
        (false, 64, 60_249.0, 0.656),
        (false, 1024, 53_104.0, 0.65),
    ] {
        let sizing = sized(&format!(
            "[[sea]]\ntransactions = {rate}\ntransaction_bytes = {bytes}\nthreaded = {threaded}\n"
        ));
        let processors = figure(&sizing.parts[0].figures, "processors").low;
        assert!((processors / utilisation - 1.0).abs() < 0.005, "{bytes}: {processors}");
        assert!(!sizing.parts[0].notes.iter().any(|note| note.contains("interpolated")));
    }
}

#[test]
fn sizes_between_are_interpolated_and_sizes_beyond_are_bounded_and_both_say_so() {
    let of = |bytes: u32| {
        let sizing = sized(&format!("[[sea]]\ntransactions = 1000\ntransaction_bytes = {bytes}\n"));
        let cost = figure(&sizing.parts[0].figures, "cycles/transaction");
        (cost.low, cost.high, sizing.parts[0].notes.join(" "))
    };
    let (low, high, note) = of(544);
    assert!(near(low, (23_022.0 + 25_406.0) / 2.0) && low == high, "{low}");
    assert!(note.contains("interpolated between 64 and 1024 bytes"));
    let (low, _, note) = of(16);
    assert!(low == 23_022.0 && note.contains("smallest size"));
    let (low, high, note) = of(2048);
    assert!(note.contains("extrapolation"));
    assert!(near(low, 25_406.0 + 1024.0 * (25_406.0 - 23_022.0) / 960.0));
    assert!(near(high, 25_406.0 + 1024.0 * 11.2));
}

#[test]
fn virtual_scsi_follows_its_published_example() {
    // 7,000 and 10,000 I/Os of 8 KiB and 5,000 of 128 KiB: 0.85 of a 1.65 GHz processor.
    let load = |iops: u32, bytes: u32| format!("[[vscsi]]\niops = {iops}\nblock_bytes = {bytes}\n");
    let text = [load(7000, 8192), load(10_000, 8192), load(5000, 131_072)].concat();
    let sizing = sized(&text);
    assert!(near(sizing.totals[0].low, 1_399_000_000.0 / 1.65e9));
    assert_eq!(sizing.totals[0].value(), "0.848");
    assert_eq!(sizing.dedicated.as_ref().unwrap().low, 1.0);
    assert!(sizing.summary().contains('~'), "unconfirmed figures are marked");
}

#[test]
fn elements_of_a_virtual_scsi_adapter_bound_its_disks() {
    for (depth, most) in
        [(3, 85.0), (8, 46.0), (20, 22.0), (32, 14.0), (64, 7.0), (100, 4.0), (256, 1.0)]
    {
        let sizing = sized(&format!(
            "[[vscsi]]\niops = 1\nblock_bytes = 4096\ndisks = 100\nqueue_depth = {depth}\n"
        ));
        let steps = &sizing.parts[0].figures;
        assert_eq!(figure(steps, "disks of an adapter").low, most);
        let adapters = figure(steps, "virtual SCSI adapters of a client").low;
        assert_eq!(adapters, (100.0 / most).ceil());
    }
}

#[test]
fn virtual_fc_is_a_range_that_says_it_is_an_assumption() {
    let text = "[[virtual_fc]]\nadapters = 40\niops = 200000\nblock_bytes = 8192\nqueues = 8\nlatency_ms = 0.5\n";
    let sizing = sized(text);
    let part = &sizing.parts[0];
    let processors = part.processors.as_ref().unwrap();
    assert!(processors.low < processors.high && !processors.origin.confirmed());
    // 40 adapters take 5.6 GB: the source's own sum.
    assert_eq!(sizing.hypervisor_memory.as_ref().unwrap().low, 5600.0);
    assert!(sizing.hypervisor_memory.as_ref().unwrap().confirmed());
    assert!(part.notes.iter().any(|note| note.contains("No source gives the cost")));
    // 200,000 × 0.0005 s = 100 in flight, over 40 adapters and 8 queues.
    assert_eq!(figure(&part.figures, "I/Os in flight of an adapter").low, 2.5);
    assert_eq!(figure(&part.figures, "I/Os in a queue").low, 0.3125);
    assert_eq!(figure(&part.figures, "queues that have enough to do").low, 1.0);
    // A figure of the user's own makes it exact and confirmed.
    let mut facts = Facts::builtin();
    let own = |id: &str, value: f64, unit: &str| {
        format!(
            "[number.\"{id}\"]\nvalue = {value}\nunit = \"{unit}\"\nmeaning = \"measured\"\nsource = \"me\"\nconfirmed = true\n"
        )
    };
    let file = [
        "[source.me]\ntext = \"measured here\"\n".to_owned(),
        own("vfc.cycles-per-io.multi-queue", 30_000.0, "cycles/I/O"),
        own("vfc.cycles-per-byte", 0.0, "cycles/byte"),
    ]
    .concat();
    facts.extend(&file).unwrap();
    let measured = Workloads::read(text).unwrap().size(&facts).unwrap();
    let processors = measured.parts[0].processors.as_ref().unwrap();
    assert!(
        near(processors.low, 200_000.0 * 30_000.0 / 1.65e9) && processors.low == processors.high
    );
    assert!(processors.origin.confirmed());
}

#[test]
fn busy_queues_are_left_as_they_are() {
    let sizing =
        sized("[[virtual_fc]]\niops = 200000\nblock_bytes = 4096\nlatency_ms = 1\nqueues = 8\n");
    let part = &sizing.parts[0];
    assert_eq!(figure(&part.figures, "I/Os in a queue").low, 25.0);
    assert!(part.notes.iter().all(|note| !note.contains("do as well")));
    let full = sized("[[virtual_fc]]\niops = 500000\nblock_bytes = 4096\nlatency_ms = 5\n");
    assert!(full.parts[0].notes.iter().any(|note| note.contains("at most 2048 command elements")));
}

#[test]
fn a_pool_needs_its_least_node_and_says_when_its_luns_queue_up() {
    let pool = |clients: u32, rest: &str| {
        sized(&format!(
            "[[ssp]]\niops = 100\nblock_bytes = 8192\nclients = {clients}\npool_tb = 2\n{rest}"
        ))
    };
    let small = pool(100, "");
    assert_eq!(small.dedicated.as_ref().unwrap().low, 1.0);
    assert_eq!(
        figure(&small.parts[0].figures, "I/Os that clients send at a time, at most").low,
        800.0
    );
    assert_eq!(figure(&small.parts[0].figures, "I/Os that the pool takes at a time").low, 48.0);
    assert_eq!(figure(&small.parts[0].figures, "LUN depth that takes them all").low, 50.0);
    let large = pool(300, "");
    assert_eq!(large.dedicated.as_ref().unwrap().low, 4.0);
    assert_eq!(large.memory.low, 8.0);
    assert!(pool(500, "").parts[0].notes.iter().any(|n| n.contains("at most 400 clients")));
    let fed = pool(10, "luns = 40\nlun_depth = 16\n");
    assert!(fed.parts[0].notes.iter().all(|note| !note.contains("raise")));
    let ten_tb =
        sized("[[ssp]]\niops = 1\nblock_bytes = 8192\nclients = 1\npool_tb = 10\nluns = 20\n");
    assert_eq!(figure(&ten_tb.parts[0].figures, "LUNs of the pool, recommended").low, 80.0);
    assert!(ten_tb.parts[0].notes.iter().any(|note| note.contains("80 are recommended")));
}

#[test]
fn threads_are_asked_for_beside_storage_and_not_without() {
    let with = |threaded: bool, storage: &str| {
        let text = format!("[[sea]]\nstreaming_mb = 100\nthreaded = {threaded}\n{storage}");
        sized(&text).parts[0].notes.join(" ")
    };
    let storage = "[[vscsi]]\niops = 1\nblock_bytes = 4096\n";
    assert!(with(false, storage).contains("set thread=1"));
    assert!(with(true, "").contains("threads add 20.43 %"));
    assert_eq!(with(true, storage), "");
    assert_eq!(with(false, ""), "");
}

#[test]
fn what_cannot_be_is_refused_with_its_key() {
    let facts = Facts::builtin();
    for (text, message) in [
        ("", "expected at least one of [[sea]]"),
        ("[[sea]]\nmtu = 1499\n", "sea[0].mtu: expected 1500 to 9000, not 1499"),
        ("[[sea]]\nmtu = 9001\n", "sea[0].mtu: expected 1500 to 9000, not 9001"),
        ("[[sea]]\nmtu = 0\n", "sea[0].mtu: expected 1500 to 9000, not 0"),
        ("[[sea]]\nstreaming_mb = -1\n", "sea[0].streaming_mb: expected 0 to"),
        ("[[sea]]\nstreaming_mb = nan\n", "sea[0].streaming_mb"),
        ("[[sea]]\nstreaming_mb = inf\n", "sea[0].streaming_mb"),
        ("[[sea]]\ntransactions = 1\ntransaction_bytes = 0\n", "sea[0].transaction_bytes"),
        ("[[sea]]\nstreamin = 1\n", "unknown field `streamin`"),
        (
            "[vios]\nclock_ghz = 3800\n[[sea]]\nstreaming_mb = 1\n",
            "vios.clock_ghz: expected 0.1 to 20",
        ),
        ("[[virtual_fc]]\niops = 1\nblock_bytes = 0\n", "virtual_fc[0].block_bytes"),
        ("[[virtual_fc]]\niops = 1\nblock_bytes = 1\nlatency_ms = 0\n", "virtual_fc[0].latency_ms"),
        ("[[virtual_fc]]\nblock_bytes = 1\n", "missing field `iops`"),
        ("[[vscsi]]\niops = 1\nblock_bytes = 1\nqueue_depth = 257\n", "vscsi[0].queue_depth"),
        ("[[ssp]]\niops = 1\nblock_bytes = 1\nclients = 0\npool_tb = 1\n", "ssp[0].clients"),
    ] {
        let error = Workloads::read(text).and_then(|loads| loads.size(&facts)).unwrap_err();
        assert!(error.to_string().contains(message), "{text}\n{error}\nlacks {message}");
    }
}

const MIXED: &str = r#"
[vios]
clock_ghz = 3.8
[[sea]]
name = "a + b"
streaming_mb = 400
transactions = 20000
transaction_bytes = 3000
[[sea]]
name = "a + b"
streaming_mb = 10
mtu = 9000
direction = "duplex"
[[virtual_fc]]
iops = 120000
block_bytes = 8192
[[vscsi]]
iops = 3000
block_bytes = 262144
backing = "volume"
disks = 30
[[ssp]]
iops = 5000
block_bytes = 1024
clients = 100
pool_tb = 5
"#;

#[test]
fn every_computed_value_is_traced_to_a_figure_before_it() {
    let sizing = sized(MIXED);
    let mut before: Vec<f64> = Vec::new();
    let parts = sizing.parts.iter().flat_map(|part| &part.figures);
    for figure in parts.chain(&sizing.totals) {
        assert!(figure.low.is_finite() && figure.low <= figure.high, "{figure}");
        for term in &figure.terms {
            let computed = matches!(term.origin, Origin::Computed | Origin::Assumed);
            let traced = before.contains(&term.low) && before.contains(&term.high);
            assert!(!computed || traced, "{} in {figure}", term.name);
        }
        before.extend([figure.low, figure.high]);
    }
    let shown = text::text(&sizing, &text::Options { explain: true, ..Default::default() });
    assert!(shown.contains("a + b") && shown.contains("To mind"));
    assert!(planner::report::json(&sizing).unwrap().contains("\"kind\": \"size\""));
}

#[test]
fn the_sum_is_the_sum_of_the_parts() {
    let sizing = sized(MIXED);
    let sum = |pick: fn(&planner::trace::Term) -> f64| -> f64 {
        sizing.parts.iter().map(|part| pick(part.processors.as_ref().unwrap())).sum()
    };
    assert!(near(sizing.totals[0].low, sum(|term| term.low)));
    assert!(near(sizing.totals[0].high, sum(|term| term.high)));
    assert_eq!(sizing.totals[0].terms.len(), 5);
}

proptest! {
    #[test]
    fn a_sea_is_what_plain_arithmetic_says(
        case in 0usize..STREAMING.len(),
        rate in 0.0f64..100_000.0,
        ghz in 1.0f64..6.0,
    ) {
        let (threaded, mtu, direction, _, _, cycles) = STREAMING[case];
        let sizing = sized(&format!(
            "[vios]\nclock_ghz = {ghz:?}\n[[sea]]\nstreaming_mb = {rate:?}\nmtu = {mtu}\ndirection = \"{direction}\"\nthreaded = {threaded}\n"
        ));
        let expected = rate * 1_048_576.0 * cycles / (ghz * 1e9);
        prop_assert!(near(figure(&sizing.parts[0].figures, "processors").low, expected));
        let shared = sizing.shared.as_ref().unwrap().low;
        prop_assert!(shared >= expected - 1e-6 && shared < expected + 0.5 + 1e-6);
        prop_assert!(near((shared * 2.0).round(), shared * 2.0));
        let dedicated = sizing.dedicated.as_ref().unwrap().low;
        prop_assert!(dedicated >= shared && dedicated < expected + 1.0 + 1e-6);
    }

    #[test]
    fn more_load_never_takes_less(
        iops in 0.0f64..1e6,
        more in 0.0f64..1e5,
        bytes in 1u32..2_000_000,
        larger in 0u32..100_000,
    ) {
        let of = |kind: &str, iops: f64, bytes: u32| {
            let rest = if kind == "ssp" { "clients = 1\npool_tb = 1\n" } else { "" };
            let sizing = sized(&format!("[[{kind}]]\niops = {iops:?}\nblock_bytes = {bytes}\n{rest}"));
            let processors = sizing.parts[0].processors.clone().unwrap();
            (processors.low, processors.high)
        };
        for kind in ["virtual_fc", "vscsi", "ssp"] {
            let (low, high) = of(kind, iops, bytes);
            let after = of(kind, iops + more, bytes + larger);
            prop_assert!(low <= high && after.0 >= low - 1e-12 && after.1 >= high - 1e-12);
        }
    }
}

#[test]
fn a_pool_names_the_contradiction_of_its_source_and_others_do_not() {
    let ids = |text: &str| -> Vec<String> {
        sized(text).contradictions.into_iter().map(|one| one.id).collect()
    };
    let pool = "[[ssp]]\niops = 5000\nblock_bytes = 16384\nclients = 100\npool_tb = 2\n";
    assert_eq!(ids(pool), ["pool-outstanding"]);
    assert_eq!(ids("[[sea]]\nstreaming_mb = 200\n"), Vec::<String>::new());
}

fn folder(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

#[test]
fn a_bridge_that_was_captured_twice_is_sized_by_what_went_through_it() {
    let captures = captures_of(&folder("corpus/faults/20-jumbo-client-on-1500-sea"));
    let sizings = captured(&captures, &Facts::builtin()).unwrap();
    let [(server, Some(sizing))] = sizings.servers.as_slice() else { panic!("{sizings:?}") };
    // (90,099,781 + 81,089,803) packets in an hour, two of them a transaction, of 663.6 bytes each.
    let [sea] = server.workloads.sea.as_slice() else { panic!("{:?}", server.workloads) };
    assert!(near(sea.transactions.value(), 171_189_584.0 / 2.0 / 3600.0), "{sea:?}");
    assert_eq!((sea.transaction_bytes.value(), sea.mtu, sea.threaded), (664, 1500, Some(true)));
    let rate = server.inputs.iter().find(|input| input.name == "transactions/s").unwrap();
    let files: Vec<&str> = rate.lines.iter().map(|at| captures.file_name(*at)).collect();
    assert!(files.contains(&"1-vios-0800.txt") && files.contains(&"2-vios-0900.txt"), "{files:?}");
    let missing: Vec<&str> =
        server.missing.iter().map(|missing| missing.capture.as_str()).collect();
    assert!(missing.contains(&"prtconf on viosn1"), "{missing:?}");
    // 23,022 + (663.6 - 64) / (1024 - 64) * (25,406 - 23,022) cycles for each.
    let each = figure(&sizing.parts[0].figures, "cycles/transaction");
    assert!(near(each.low.round(), 24_511.0), "{each}");
}

/// One load of several was captured: its processors are a twentieth of what the server was seen to use.
#[test]
fn a_server_that_uses_more_than_its_loads_come_to_is_not_made_smaller_in_silence() {
    let captures = captures_of(&folder("field").join("faulty/41-trunk-buffers-on-the-server"));
    let sizings = captured(&captures, &Facts::builtin()).unwrap();
    let (server, sizing) = &sizings.servers[0];
    let sizing = sizing.as_ref().unwrap();
    let used = figure(&server.now, "processors in use, mean of the intervals").high;
    assert!(used > sizing.shared.as_ref().unwrap().high, "{used}");
    assert!(sizing.notes[0].contains("no less than it uses"), "{:?}", sizing.notes);
    let said = planner::report::Answer::summary(&sizings);
    assert!(said.contains("It uses 0.99 processors now, more than that."), "{said}");
}

#[test]
fn every_system_of_the_field_is_sized_or_says_what_is_missing() {
    let facts = Facts::builtin();
    let (mut sized, mut servers, mut pairs) = (0, 0, 0);
    for kind in ["faulty", "healthy"] {
        for system in std::fs::read_dir(folder("field").join(kind)).unwrap() {
            let path = system.unwrap().path();
            let captures = captures_of(&path);
            let sizings = captured(&captures, &facts).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            // While one of a pair is down the other carries the loads of both.
            for (names, both) in &sizings.pairs {
                pairs += 1;
                let of_pair = sizings
                    .servers
                    .iter()
                    .filter(|(server, _)| names.split(" and ").any(|name| name == server.vios));
                let loads: Vec<f64> = of_pair
                    .map(|(_, one)| {
                        figure(&one.as_ref().unwrap().totals, "processors of the load").high
                    })
                    .collect();
                let sum = figure(&both.totals, "processors of the load").high;
                assert_eq!(loads.len(), 2, "{path:?}: {names}");
                assert!(loads.iter().all(|one| *one <= sum), "{path:?}: {loads:?}, together {sum}");
            }
            for (server, sizing) in &sizings.servers {
                servers += 1;
                assert!(
                    server.inputs.iter().all(|input| !input.lines.is_empty()),
                    "{path:?}: an input without a line: {:?}",
                    server.inputs
                );
                let complete = server.missing.iter().all(|missing| !missing.capture.is_empty());
                assert!(complete, "{path:?}: {:?}", server.missing);
                let Some(sizing) = sizing else {
                    assert!(!server.missing.is_empty(), "{path:?}: nothing, and nothing missing");
                    continue;
                };
                sized += 1;
                let all = sizing.parts.iter().flat_map(|part| &part.figures).chain(&sizing.totals);
                for figure in all {
                    assert!(figure.low.is_finite() && figure.low >= 0.0, "{path:?}: {figure}");
                }
                // As a file the same loads give the same size.
                let text = toml::to_string(&server.workloads).unwrap();
                let again = Workloads::read(&text).unwrap().size(&facts).unwrap();
                let processors =
                    |sizing: &Sizing| figure(&sizing.totals, "processors of the load").high;
                let (one, two) = (processors(sizing), processors(&again));
                assert!((one - two).abs() <= one * 0.01, "{path:?}: {one} and {two}\n{text}");
            }
        }
    }
    assert!(servers > 150 && sized > 60 && pairs > 5, "{sized} of {servers}, {pairs} pairs");
}

#[test]
fn one_capture_gives_averages_and_says_so() {
    let captures = captures_of(&folder("corpus/healthy/27-sea-accounting"));
    let sizings = captured(&captures, &Facts::builtin()).unwrap();
    let shown = text::text(&sizings, &text::Options::default());
    assert!(shown.contains("averages since the counters' reset"), "{shown}");
    assert!(shown.contains("lsmap -all -npiv"), "what is missing: {shown}");
    assert!(shown.contains("v.txt:"), "the lines: {shown}");
}

/// A virtual SCSI adapter over two logical volumes, of which the client's `iostat` shows one or both.
#[test]
fn volumes_are_sized_by_what_their_clients_measured() {
    let vtd = |name: &str, lun: u64, volume: &str| {
        format!(
            "VTD                   {name}\nStatus                Available\nLUN                   {lun:#018x}\nBacking device        {volume}\nPhysloc\nMirrored              N/A\n\n"
        )
    };
    let vios = format!(
        "viosa1:/home/padmin> lsmap -all\nSVSA            Physloc                                      Client Partition ID\n--------------- -------------------------------------------- ------------------\nvhost0          U9009.41A.13D7E80-V1-C31                     0x00000003\n\n{}{}",
        vtd("root", 0x8100_0000_0000_0000, "lv_root"),
        vtd("data", 0x8200_0000_0000_0000, "lv_data"),
    );
    let disk = |disk: u32| {
        format!(
            "payroll:/> lsattr -El hdisk{disk}\nqueue_depth 3 Queue DEPTH True\nreserve_policy no_reserve Reserve Policy True\n\n"
        )
    };
    let client = format!(
        "payroll:/> uname -L\n3 payroll\npayroll:/> lscfg\n* hdisk4 U9009.41A.13D7E80-V3-C2-T1-L8100000000000000 Virtual SCSI Disk Drive\n* hdisk5 U9009.41A.13D7E80-V3-C2-T1-L8200000000000000 Virtual SCSI Disk Drive\n{}{}",
        disk(4),
        disk(5)
    );
    let measured = include_str!("readers/iostat-D.txt");
    let sizes = |client: &str| {
        let mut captures = planner::capture::Captures::new();
        captures.read("vios.txt", vios.as_bytes(), None);
        captures.read("client.txt", client.as_bytes(), None);
        captured(&captures, &Facts::builtin()).unwrap()
    };
    let sizings = sizes(&(client.clone() + measured));
    let [(server, Some(sizing))] = sizings.servers.as_slice() else { panic!("{sizings:?}") };
    let [load] = server.workloads.vscsi.as_slice() else { panic!("{:?}", server.workloads) };
    // 9,000 and 1.5 transfers a second in the second interval; the first is the average since the start.
    assert!(near(load.iops.value(), 9001.5), "{load:?}");
    assert_eq!(load.backing, planner::size::Backing::Volume);
    assert!(sizing.dedicated.is_some(), "{sizing:?}");
    assert!(!server.missing.iter().any(|missing| missing.what.contains("logical volumes")));
    // Without a measurement the client's commands are asked for, and nothing is reckoned.
    let sizings = sizes(&client);
    let [(server, None)] = sizings.servers.as_slice() else { panic!("{sizings:?}") };
    let missing = server.missing.iter().find(|missing| missing.what.contains("logical volumes"));
    let missing = missing.expect("it is said");
    assert_eq!(missing.what, "I/O of 2 of 2 logical volumes or files");
    assert!(missing.capture.contains("payroll"), "{missing:?}");
}

/// The disks behind virtual SCSI by the server's file of nmon, whose columns are divided over two sections; an `iostat`
/// of the same disks goes before it.
#[test]
fn disks_are_sized_by_a_file_of_nmon() {
    let disk = |name: &str| {
        format!(
            "VTD                   {name}_vtd\nStatus                Available\nLUN                   0x8100000000000000\nBacking device        {name}\nPhysloc\nMirrored              N/A\n\n"
        )
    };
    let maps = format!(
        "viosa1:/home/padmin> lsmap -all\nSVSA            Physloc                                      Client Partition ID\n--------------- -------------------------------------------- ------------------\nvhost0          U9009.41A.13D7E80-V1-C31                     0x00000003\n\n{}{}{}",
        disk("hdisk1"),
        disk("hdisk2"),
        disk("hdisk7"),
    );
    // DISKREAD and DISKWRITE in KB a second.
    let nmon = "AAA,progname,topas_nmon\nAAA,host,viosa1\nAAA,interval,300\n\
        DISKREAD,Disk Read KB/s viosa1,hdisk1,hdisk2\nDISKWRITE,Disk Write KB/s viosa1,hdisk1,hdisk2\n\
        DISKXFER,Disk transfers per second viosa1,hdisk1,hdisk2\nDISKREAD1,Disk Read KB/s viosa1,hdisk7\n\
        DISKWRITE1,Disk Write KB/s viosa1,hdisk7\nDISKXFER1,Disk transfers per second viosa1,hdisk7\n\
        ZZZZ,T0001,10:00:00,02-NOV-2026\nDISKREAD,T0001,800.0,0.0\nDISKWRITE,T0001,0.0,400.0\n\
        DISKXFER,T0001,100.0,50.0\nDISKREAD1,T0001,0.0\nDISKWRITE1,T0001,80.0\nDISKXFER1,T0001,10.0\n\
        ZZZZ,T0002,10:05:00,02-NOV-2026\nDISKREAD,T0002,2400.0,0.0\nDISKWRITE,T0002,0.0,800.0\n\
        DISKXFER,T0002,300.0,100.0\nDISKREAD1,T0002,0.0\nDISKWRITE1,T0002,240.0\nDISKXFER1,T0002,30.0\n";
    let sized = |files: &[(&str, &str)]| {
        let mut captures = planner::capture::Captures::new();
        for (name, text) in files {
            captures.read(name, text.as_bytes(), None);
        }
        captured(&captures, &Facts::builtin()).unwrap()
    };
    let sizings = sized(&[("vios.txt", &maps), ("viosa1.nmon", nmon)]);
    let [(server, Some(_))] = sizings.servers.as_slice() else { panic!("{sizings:?}") };
    let [load] = server.workloads.vscsi.as_slice() else { panic!("{:?}", server.workloads) };
    // 200, 75 and 20 transfers a second; 1600, 600 and 160 KB/s: 8 KB each.
    assert!(near(load.iops.value(), 295.0), "{load:?}");
    assert_eq!(load.block_bytes.value(), 8192, "{load:?}");
    assert!(!server.missing.iter().any(|missing| missing.what.starts_with("I/O of")));
    let rate = server.inputs.iter().find(|input| input.name == "I/O/s").expect("an input");
    assert_eq!(rate.lines.len(), 2, "the last line of both sections: {rate:?}");
    let iostat = "viosa1:/> iostat -D hdisk1\n\nSystem configuration: lcpu=8 drives=3 paths=6 vdisks=0\n\nhdisk1          xfer:  %tm_act      bps      tps      bread      bwrtn\n                          1.0   819.2K   200.0     819.2K       0.0\n                read:      rps  avgserv  minserv  maxserv   timeouts      fails\n                        200.0      0.5      0.1      9.0           0          0\n               write:      wps  avgserv  minserv  maxserv   timeouts      fails\n                          0.0      0.0      0.0      0.0           0          0\n               queue:  avgtime  mintime  maxtime  avgwqsz    avgsqsz     sqfull\n                          0.0      0.0      0.0      0.0        0.0         0.0\n";
    let sizings = sized(&[("vios.txt", &maps), ("viosa1.nmon", nmon), ("disk.txt", iostat)]);
    let [(server, _)] = sizings.servers.as_slice() else { panic!("{sizings:?}") };
    let [load] = server.workloads.vscsi.as_slice() else { panic!("{:?}", server.workloads) };
    assert!(near(load.iops.value(), 295.0) && load.block_bytes.value() < 8192, "{load:?}");
}

/// Two clients on a port: one was captured twice, of the other nothing, and of the port the average of ten days.
#[test]
fn what_is_asked_for_now_goes_before_the_mean_of_ten_days_and_who_is_left_out_is_named() {
    let map = |name: &str, id: u32, client: &str, state: &str| {
        format!(
            "Name          Physloc                            ClntID ClntName       ClntOS\n------------- ---------------------------------- ------ -------------- -------\n{name:<13} U9009.42A.78A1B2C-V1-C2{id}           {id:>6} {client:<14} AIX\n\nStatus:{state}\nFC name:fcs0                    FC loc code:U78D3.001.WZS0ABC-P1-C4-T1\nPorts logged in:4\nFlags:a<LOGGED_IN,STRIP_MERGE>\nVFC client name:fcs0            VFC client DRC:U9009.42A.78A1B2C-V{id}-C20\n\n"
        )
    };
    let port = "FIBRE CHANNEL STATISTICS REPORT: fcs0\nSeconds Since Last Reset: 864000\n\nFC SCSI Traffic Statistics\n  Input Requests:   600000000\n  Output Requests:  264000000\n  Control Requests: 1\n  Input Bytes:  4915200000000\n  Output Bytes: 2162688000000\n";
    let commands = |minute: u32, each: u64| {
        format!(
            "viosa1:/ # date\nMon Nov  2 10:{minute:02}:00 UTC 2026\nviosa1:/ # cat /proc/sys/adapter/vfc/vfchost0/stats\nNumber of CMD queues    = 1\nNumber of SUBQ channels = 2\n\nCommands received  = 3\nCommands received  = {each}\nCommands received  = {each}\n"
        )
    };
    let maps = [
        ("vfchost0", 5, "payroll", "LOGGED_IN"),
        ("vfchost1", 6, "billing", "LOGGED_IN"),
        ("vfchost2", 7, "archive", "NOT_LOGGED_IN"),
    ];
    let maps: String =
        maps.into_iter().map(|(name, id, of, state)| map(name, id, of, state)).collect();
    // 2 × 57,300,000 commands in ten minutes.
    let text = format!(
        "viosa1:/ # date\nMon Nov  2 09:59:00 UTC 2026\nviosa1:/ # ioscli lsmap -all -npiv\n{maps}viosa1:/ # fcstat fcs0\n{port}{}{}",
        commands(0, 1_000_000),
        commands(10, 58_300_000)
    );
    let mut captures = planner::capture::Captures::new();
    captures.read("vios.txt", text.as_bytes(), None);
    let sizings = captured(&captures, &Facts::builtin()).unwrap();
    let [(server, Some(sizing))] = sizings.servers.as_slice() else { panic!("{sizings:?}") };
    let [load] = server.workloads.virtual_fc.as_slice() else { panic!("{:?}", server.workloads) };
    assert!(near(load.iops.value(), 191_000.0), "{load:?}");
    // The requests are as large as those that the port has counted.
    assert_eq!(load.block_bytes.value(), 8192, "{load:?}");
    let left_out = server.missing.iter().find(|missing| missing.what.contains("billing"));
    assert!(left_out.expect("it is named").capture.contains("fcstat -D fcs0 on viosa1"));
    assert!(!server.missing.iter().any(|missing| missing.what.contains("payroll")));
    assert!(sizing.notes.iter().any(|note| note.contains("vfchost2 of archive")), "{sizing:?}");
    // Where the port's own mean is more than was measured of some, it stands.
    let calm = text.replace("58300000", "1100000");
    let mut captures = planner::capture::Captures::new();
    captures.read("vios.txt", calm.as_bytes(), None);
    let sizings = captured(&captures, &Facts::builtin()).unwrap();
    let [(server, _)] = sizings.servers.as_slice() else { panic!("{sizings:?}") };
    let [load] = server.workloads.virtual_fc.as_slice() else { panic!("{:?}", server.workloads) };
    assert!(near(load.iops.value(), 1000.0) && near(load.adapters.value().into(), 2.0), "{load:?}");
}
