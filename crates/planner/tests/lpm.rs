//! What becomes of the queues when a client moves: the article's table row by row, chains, and what is unknown.

use fabric::negotiate::Term as Limit;
use planner::facts::Facts;
use planner::lpm::{Judgement, Outcome, Plan, Server};
use planner::report::{Answer, text};
use proptest::prelude::*;

/// One row of the table "number of supported queues after LPM": client, source and destination.
struct Row {
    client: bool,
    source_vios: bool,
    queues: u32,
    source_firmware: &'static str,
    vios: bool,
    supported: u32,
    firmware: &'static str,
}

/// A client that asks for 16, so that servers decide.
fn plan_of(row: &Row) -> String {
    let aix = if row.client { "7.2 TL5" } else { "7.2 TL4 SP2" };
    let server = |vios: bool, queues: u32, firmware: &str| {
        let vios = if vios { "3.1.2.10" } else { "3.1.1.25" };
        let level = match firmware.strip_prefix("POWER") {
            Some(_) => format!("generation = \"{firmware}\""),
            None => format!("firmware = \"{firmware}\""),
        };
        format!(
            "vios = \"{vios}\"\n{level}\nadapter = \"EN1A\"\nnum_per_range = {queues}\nnum_io_queues = {queues}\n"
        )
    };
    // A source that has more than the client's one queue: what the client has is the observation.
    let source_queues = row.queues.max(8);
    format!(
        "steps = [{{ move = \"b\" }}]\n[client]\nsystem = \"aix\"\nlevel = \"{aix}\"\nat = \"a\"\nqueues = {}\nnum_io_queues = 16\n[server.a]\n{}[server.b]\n{}",
        row.queues,
        server(row.source_vios, source_queues, row.source_firmware),
        server(row.vios, row.supported, row.firmware),
    )
}

fn outcome(text: &str) -> Outcome {
    let facts = Facts::builtin();
    let plan = Plan::read(text, &facts).unwrap_or_else(|error| panic!("{error}\n{text}"));
    plan.outcome(&facts).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn counts(outcome: &Outcome) -> Vec<Vec<u32>> {
    outcome.stages.iter().map(|s| s.cases.iter().map(|case| case.queues).collect()).collect()
}

fn holds(row: &Row, after: u32) {
    let outcome = outcome(&plan_of(row));
    assert_eq!(counts(&outcome), [vec![row.queues], vec![after]], "{}", plan_of(row));
    assert!(outcome.unknown.is_empty());
    for stage in &outcome.stages {
        let case = &stage.cases[0];
        assert_eq!(case.figure.low, f64::from(case.queues));
        assert!(!case.why.is_empty() && !case.limits.is_empty());
    }
}

const EIGHT: Row = Row {
    client: true,
    source_vios: true,
    queues: 8,
    source_firmware: "FW940",
    vios: true,
    supported: 8,
    firmware: "FW940",
};

#[test]
fn row_1_eight_to_eight_stays_eight() {
    holds(&EIGHT, 8);
    holds(&Row { source_firmware: "FW950.20", firmware: "FW1010", ..EIGHT }, 8);
}

#[test]
fn row_2_eight_to_sixteen_stays_eight() {
    holds(&Row { supported: 16, ..EIGHT }, 8);
}

#[test]
fn row_3_sixteen_to_eight_becomes_eight() {
    holds(&Row { queues: 16, ..EIGHT }, 8);
}

#[test]
fn row_4_one_to_one_stays_one() {
    // `num_per_range` of an adapter may be 1; that of viosnpiv0 starts at 4.
    holds(&Row { queues: 1, supported: 1, ..EIGHT }, 1);
}

#[test]
fn row_5_eight_to_a_single_queue_vios_becomes_one() {
    holds(&Row { vios: false, supported: 1, ..EIGHT }, 1);
}

#[test]
fn row_6_one_to_a_single_queue_vios_stays_one() {
    holds(&Row { queues: 1, vios: false, supported: 1, ..EIGHT }, 1);
}

#[test]
fn row_7_eight_to_older_firmware_or_processors_becomes_one() {
    for firmware in ["FW930.40", "FW920", "POWER8", "POWER7"] {
        for supported in [8, 16] {
            holds(&Row { firmware, supported, ..EIGHT }, 1);
        }
    }
}

#[test]
fn row_8_one_from_firmware_below_930_stays_one() {
    for source_firmware in ["FW920.30", "FW910", "FW860", "POWER8", "POWER7"] {
        for supported in [8, 16] {
            holds(&Row { queues: 1, source_firmware, supported, ..EIGHT }, 1);
        }
    }
}

#[test]
fn row_9_one_from_firmware_930_becomes_what_the_destination_has() {
    for source_firmware in ["FW930", "FW930.40", "VM930_068"] {
        for supported in [8, 16] {
            holds(&Row { queues: 1, source_firmware, supported, ..EIGHT }, supported);
        }
    }
}

#[test]
fn row_10_one_from_a_single_queue_vios_becomes_what_the_destination_has() {
    for supported in [8, 16] {
        holds(&Row { queues: 1, source_vios: false, supported, ..EIGHT }, supported);
    }
}

#[test]
fn row_11_a_single_queue_client_stays_at_one() {
    for supported in [8, 16] {
        holds(&Row { client: false, queues: 1, supported, ..EIGHT }, 1);
    }
}

#[test]
fn row_12_a_single_queue_client_from_a_single_queue_vios_stays_at_one() {
    for supported in [8, 16] {
        holds(&Row { client: false, source_vios: false, queues: 1, supported, ..EIGHT }, 1);
    }
}

#[test]
fn the_first_move_from_power8_behind_an_old_vios_brings_multi_queue() {
    // The article's last scenario: a multi-queue client that never met a multi-queue VIOS.
    let row = Row { source_vios: false, source_firmware: "POWER8", queues: 1, ..EIGHT };
    holds(&row, 8);
}

#[test]
fn a_move_from_power8_to_power9_names_the_contradiction_of_its_source() {
    let told = |row: &Row| {
        let outcome = outcome(&plan_of(row));
        let shown = text::text(&outcome, &text::Options::default());
        let told = !outcome.contradictions.is_empty();
        assert_eq!(told, shown.contains("Where the sources contradict themselves"), "{shown}");
        told
    };
    let old = Row { source_firmware: "POWER8", queues: 1, firmware: "POWER9", ..EIGHT };
    assert!(told(&old));
    assert!(!told(&Row { source_firmware: "POWER9", ..old }), "both have multi-queue");
    assert!(!told(&Row { source_firmware: "POWER9", firmware: "POWER8", ..old }), "the other way");
}

const CHAIN: &str = r#"
steps = [{ move = "old" }, { move = "new" }, "reconfigure", "renegotiate"]
[client]
system = "SYSTEM"
level = "LEVEL"
at = "new"
[server.new]
firmware = "FW950"
vios = "3.1.3"
adapter = "EN1K"
[server.old]
firmware = "FW950"
vios = "3.1.0"
adapter = "EN1K"
"#;

fn chain(system: &str, level: &str) -> Outcome {
    outcome(&CHAIN.replace("SYSTEM", system).replace("LEVEL", level))
}

#[test]
fn aix_comes_back_only_when_configured_anew_and_the_answer_says_so() {
    let outcome = chain("aix", "7300-01");
    assert_eq!(counts(&outcome), [[8], [1], [1], [8], [8]]);
    let back = &outcome.stages[2].cases[0];
    assert_eq!(back.limits, [Limit::Earlier]);
    assert!(back.brings_back[0].contains("restart the client: 8 queues"), "{:?}", back.brings_back);
    let old = &outcome.stages[1].cases[0];
    assert!(old.brings_back[0].contains("VIOS of old to 3.1.2 or later"), "{:?}", old.brings_back);
    assert!(old.brings_back[1].contains("configure the client's adapter anew"));
    assert_eq!(outcome.stages[3].cases[0].maximum, Some(8));
}

#[test]
fn linux_comes_back_by_itself() {
    let outcome = chain("linux", "6.4");
    assert_eq!(counts(&outcome), [[8], [1], [8], [8], [8]]);
    assert_eq!(chain("sles", "15 SP4").stages[2].queues(), Some(8));
}

#[test]
fn how_ibm_i_behaves_is_unknown_and_both_ways_are_told() {
    let outcome = chain("ibmi", "7.4 TR6");
    assert_eq!(counts(&outcome), [vec![8], vec![1], vec![8, 1], vec![8], vec![8]]);
    assert_eq!(outcome.unknown, ["the client"]);
    let cases = &outcome.stages[2].cases;
    assert_eq!(cases[0].conditions, ["the client grows back by itself"]);
    assert_eq!(cases[1].conditions, ["the client never grows back by itself"]);
}

#[test]
fn unknown_levels_open_both_ways_and_are_named() {
    let text = CHAIN.replace("SYSTEM", "aix").replace("level = \"LEVEL\"\n", "");
    let outcome = outcome(&text);
    assert_eq!(counts(&outcome)[0], [8, 1]);
    assert_eq!(outcome.unknown, ["AIX of the client"]);
    assert_eq!(outcome.stages[0].cases[0].conditions, ["AIX of the client has multi-queue"]);
    let check = outcome.checks.iter().find(|check| check.object == "client").unwrap();
    assert_eq!((check.judgement, check.needed.as_str()), (Judgement::NotGiven, "7.2 TL5"));
    // The observation of several queues decides what the level would have.
    let observed = text.replace("at = \"new\"", "at = \"new\"\nqueues = 8");
    assert_eq!(counts(&self::outcome(&observed))[2], [1]);
    assert!(self::outcome(&observed).unknown.is_empty());
}

#[test]
fn an_adapter_that_no_source_judges_is_unknown_not_guessed() {
    let text = plan_of(&EIGHT).replace("EN1A", "EN1J").replace("num_io_queues = 8\n", "");
    let outcome = outcome(&text);
    assert_eq!(counts(&outcome), [vec![8], vec![8, 1]]);
    assert_eq!(outcome.unknown, ["Fibre Channel adapter of b"]);
    let check = |what: &str| outcome.checks.iter().find(|c| c.object == "b" && c.what == what);
    assert_eq!(check("Fibre Channel adapter").unwrap().judgement, Judgement::NotInData);
    // A port that is said to have several queues answers it.
    let said = plan_of(&EIGHT).replace("EN1A", "EN1J");
    assert_eq!(counts(&self::outcome(&said)), [[8], [8]]);
    let strange = text.replace("EN1J", "ZZ99");
    assert_eq!(counts(&self::outcome(&strange))[1], [8, 1]);
}

#[test]
fn a_machine_that_is_not_in_the_data_is_told() {
    let with = |machine: &str| {
        let text = plan_of(&EIGHT)
            .replace("[server.b]\n", &format!("[server.b]\nmachine = \"{machine}\"\n"));
        let checks = outcome(&text).checks;
        checks.into_iter().find(|c| c.object == "b" && c.what == "server").unwrap().judgement
    };
    assert_eq!(with("9080-M9S"), Judgement::Met);
    assert_eq!(with("9999-XYZ"), Judgement::NotInData);
}

#[test]
fn attributes_bind_and_are_named() {
    let base = "steps = [{ move = \"b\" }]\n[client]\nsystem = \"aix\"\nlevel = \"7.3 TL1\"\nat = \"a\"\n[server.a]\nfirmware = \"FW950\"\nvios = \"3.1.3\"\nadapter = \"EN1A\"\n[server.b]\nfirmware = \"FW950\"\nvios = \"3.1.3\"\nadapter = \"EN1A\"\n";
    let of = |line: &str| {
        let outcome = outcome(&format!("{base}{line}\n"));
        let case = outcome.stages[1].cases[0].clone();
        (case.queues, case.limits[0], case.brings_back.join("; "))
    };
    assert_eq!(of("").0, 8);
    let (queues, limit, more) = of("limit_intr = true");
    assert_eq!((queues, limit), (1, Limit::LimitIntr));
    assert!(more.contains("set `limit_intr`") && more.contains("8 queues"), "{more}");
    assert_eq!(of("num_per_range = 4").1, Limit::NumPerRange);
    assert_eq!(of("viosnpiv0_num_per_range = 4").1, Limit::Inherited);
    let (queues, limit, more) = of("num_io_queues = 2");
    assert_eq!((queues, limit), (2, Limit::Port));
    assert!(
        more.contains("raise `num_io_queues` of the port at b; ") || more.contains("port at b"),
        "{more}"
    );
}

#[test]
fn a_full_port_is_told() {
    let full = |active: u32| {
        let text = plan_of(&EIGHT).replace(
            "adapter = \"EN1A\"",
            &format!("adapter = \"EN1C\"\nport_adapters = {active}"),
        );
        let checks = outcome(&text).checks;
        checks.into_iter().rfind(|c| c.what == "clients of the port").unwrap().judgement
    };
    assert_eq!(full(63), Judgement::Met);
    assert_eq!(full(64), Judgement::NotMet);
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let facts = Facts::builtin();
    let good = plan_of(&EIGHT);
    let cases = [
        (
            good.replace("at = \"a\"", "at = \"aa\""),
            "client.at: expected the name of a server, not `aa` (did you mean `a`?)",
        ),
        (good.replace("move = \"b\"", "move = \"c\""), "steps[0].move"),
        (good.replace("steps = [{ move = \"b\" }]", "steps = []"), "expected 1 to 100 steps"),
        (good.replace("move", "moove"), "unknown variant `moove`"),
        (
            good.replace("num_io_queues = 16", "num_io_queues = 17"),
            "client.num_io_queues: expected 1 to 16, not 17",
        ),
        (good.replace("num_io_queues = 16", "queues_max = 16"), "unknown field `queues_max`"),
        (
            good.replace("FW940", "new"),
            "server.a.firmware: `new` is not a level of firmware: expected something like FW950.20",
        ),
        (good.replace("\"aix\"", "\"aixx\""), "unknown variant `aixx`"),
        (
            good.replace("3.1.2.10", "3.1.0"),
            "client.queues: 8 queues cannot be at `a`, where at most 1 come about",
        ),
    ];
    for (text, message) in cases {
        let error = Plan::read(&text, &facts).and_then(|plan| plan.outcome(&facts)).unwrap_err();
        assert!(error.to_string().contains(message), "{error}\nlacks {message}");
    }
    let mut plan = Plan::read(&good, &facts).unwrap();
    for number in 0..12 {
        plan.server.insert(format!("s{number}"), Server::default());
    }
    let error = plan.outcome(&facts).unwrap_err().to_string();
    assert!(error.contains("too much is unknown") && error.contains("VIOS of s0"), "{error}");
}

#[test]
fn the_answer_reads_well() {
    let outcome = chain("aix", "7.3 TL1");
    assert_eq!(outcome.summary(), "Queues: 8 → 1 → 1 → 8 → 8.");
    let shown = text::text(&outcome, &text::Options { explain: true, ..Default::default() });
    for words in ["move to old", "the VIOS of old has a single queue", "met", "min("] {
        assert!(shown.to_lowercase().contains(&words.to_lowercase()), "{shown}\nlacks {words}");
    }
    let json = planner::report::json(&outcome).unwrap();
    assert!(json.contains("\"kind\": \"lpm\""));
}

/// A server of the oracle: VIOS with multi-queue, firmware, queues.
#[derive(Debug, Clone, Copy)]
struct Known {
    vios: bool,
    firmware: u32,
    queues: u32,
}

fn known() -> impl Strategy<Value = Known> {
    (
        any::<bool>(),
        prop::sample::select(vec![920, 930, 940, 950]),
        prop::sample::select(vec![4, 8, 16]),
    )
        .prop_map(|(vios, firmware, queues)| Known { vios, firmware, queues })
}

/// The article's rules in words of one line each, over a history; none of the planner's code.
fn told_by_hand(client: bool, servers: &[Known], route: &[usize]) -> Vec<u32> {
    let mut memory: Option<u32> = None;
    let mut counts = Vec::new();
    for stop in route {
        let server = servers[*stop];
        let multi = client && server.vios && server.firmware >= 940;
        let offered = if multi { server.queues } else { 1 };
        let count = memory.map_or(offered, |memory| memory.min(offered));
        let agreed = client && server.vios && server.firmware != 930;
        if memory.is_some() || agreed {
            memory = Some(count);
        }
        counts.push(count);
    }
    counts
}

proptest! {
    #[test]
    fn chains_of_moves_follow_the_rules(
        client in any::<bool>(),
        servers in prop::collection::vec(known(), 3),
        route in prop::collection::vec(0usize..3, 2..10),
    ) {
        let mut text = String::from("steps = [");
        for stop in &route[1..] {
            text.push_str(&format!("{{ move = \"s{stop}\" }}, "));
        }
        let aix = if client { "7.2 TL5" } else { "7.1 TL5" };
        text.push_str(&format!("]\n[client]\nsystem = \"aix\"\nlevel = \"{aix}\"\nat = \"s{}\"\nnum_io_queues = 16\n", route[0]));
        for (number, server) in servers.iter().enumerate() {
            let vios = if server.vios { "3.1.2" } else { "2.2.6" };
            text.push_str(&format!(
                "[server.s{number}]\nvios = \"{vios}\"\nfirmware = \"FW{}\"\nnum_io_queues = 16\nviosnpiv0_num_per_range = {}\nadapter = \"EN1A\"\n",
                server.firmware, server.queues
            ));
        }
        let outcome = outcome(&text);
        let counts: Vec<u32> = outcome.stages.iter().map(|stage| stage.queues().unwrap()).collect();
        prop_assert_eq!(counts, told_by_hand(client, &servers, &route));
    }

    #[test]
    fn what_is_unknown_is_the_union_of_what_it_could_be(
        servers in prop::collection::vec(known(), 2),
        route in prop::collection::vec(0usize..2, 2..6),
    ) {
        let text = |vios: &dyn Fn(usize) -> Option<bool>| {
            let mut text = String::from("steps = [");
            for stop in &route[1..] {
                text.push_str(&format!("{{ move = \"s{stop}\" }}, "));
            }
            text.push_str(&format!("]\n[client]\nsystem = \"aix\"\nlevel = \"7.2 TL5\"\nat = \"s{}\"\nnum_io_queues = 16\n", route[0]));
            for (number, server) in servers.iter().enumerate() {
                text.push_str(&format!("[server.s{number}]\nfirmware = \"FW{}\"\nnum_io_queues = {}\n", server.firmware, server.queues));
                text.push_str(match vios(number) {
                    Some(true) => "vios = \"3.1.2\"\n",
                    Some(false) => "vios = \"3.1.1\"\n",
                    None => "",
                });
            }
            text
        };
        let open = counts(&outcome(&text(&|_| None)));
        let mut union = vec![std::collections::BTreeSet::new(); route.len()];
        for bits in 0..4usize {
            let known = outcome(&text(&|number| Some(bits >> number & 1 == 1)));
            for (stage, counts) in counts(&known).into_iter().enumerate() {
                union[stage].extend(counts);
            }
        }
        let union: Vec<Vec<u32>> = union.into_iter().map(|set| set.into_iter().rev().collect()).collect();
        prop_assert_eq!(open, union);
    }
}

#[test]
fn a_client_and_its_server_come_out_of_captures() {
    let vios = "viosa1:/home/padmin> ioslevel
3.1.2.10
viosa1:/home/padmin> lsdev -dev fcs0 -attr
attribute       value    description                 user_settable

num_io_queues   16       Desired number of IO queues True
viosa1:/home/padmin> lsmap -all -npiv
Name          Physloc                            ClntID ClntName       ClntOS
------------- ---------------------------------- ------ -------------- -------
vfchost0      U9009.42A.78A1B2C-V1-C20                5 payroll        AIX

Status:LOGGED_IN
FC name:fcs0                    FC loc code:U78D3.001.WZS0ABC-P1-C4-T1
Ports logged in:6
Flags:a<LOGGED_IN,STRIP_MERGE>
VFC client name:fcs1            VFC client DRC:U9009.42A.78A1B2C-V5-C20

";
    let client = "payroll:/> oslevel -s
7200-05-03-2148
payroll:/> lsattr -El fcs1
num_io_queues 12 Desired number of IO queues True
";
    let mut captures = planner::capture::Captures::new();
    captures.read("a.txt", vios.as_bytes(), None);
    captures.read("b.txt", client.as_bytes(), None);
    let paths = planner::lpm::captured_paths(&captures).paths;
    let [path] = &paths[..] else { panic!("{paths:?}") };
    assert_eq!((path.client.as_str(), path.adapter.as_deref()), ("payroll", Some("fcs1")));
    let old = planner::lpm::Server {
        generation: Some("POWER8".to_owned()),
        vios: Some("2.2.6".to_owned()),
        ..planner::lpm::Server::default()
    };
    let plan = path.moves(&[("old".to_owned(), old)]);
    let here = &plan.server["viosa1"];
    let line = |key: &str| {
        captures.files.iter().zip(0..).find_map(|(file, number)| {
            let at = plan.lines.get(key)?;
            (at.file == number).then(|| format!("{}:{}", file.name, at.line))
        })
    };
    assert_eq!(line("server.viosa1.num_io_queues").as_deref(), Some("a.txt:6"));
    assert_eq!(line("client.num_io_queues").as_deref(), Some("b.txt:4"));
    let missing: Vec<&str> = path.missing.iter().map(|missing| missing.capture.as_str()).collect();
    for command in [
        "cat /proc/sys/adapter/vfc/vfchost0/stats on viosa1, as root",
        "prtconf on viosa1",
        "lsdev -dev vfchost0 -attr on viosa1",
    ] {
        assert!(missing.contains(&command), "{command}: {missing:?}");
    }
    assert_eq!(
        (here.machine.as_deref(), here.vios.as_deref()),
        (Some("9009-42A"), Some("3.1.2.10"))
    );
    assert_eq!((here.num_io_queues, plan.client.num_io_queues), (Some(16), Some(12)));
    assert_eq!(plan.client.level.as_deref(), Some("7200-05-03-2148"));
    let outcome = plan.outcome(&Facts::builtin()).expect("an outcome");
    assert_eq!(outcome.stages.last().and_then(planner::lpm::Stage::queues), Some(1));
    // The port's queues are of a line, what was said by hand is not.
    let origin = |plan: &planner::lpm::Plan| {
        let outcome = plan.outcome(&Facts::builtin()).expect("an outcome");
        let terms = outcome.stages[0].cases[0].figure.terms.clone();
        terms.into_iter().find(|term| term.name == "port's num_io_queues").unwrap().origin
    };
    assert!(matches!(origin(&plan), planner::trace::Origin::Capture(at) if at.line == 6));
    let mut said = path.clone();
    said.take(&"num_io_queues = 4\nadapter = \"EN1A\"".parse().unwrap()).unwrap();
    assert!(!said.missing.iter().any(|missing| missing.what == "adapter"), "{said:?}");
    assert!(said.take(&"num_io_queue = 4".parse().unwrap()).is_err());
    let said = said.moves(&[]);
    assert_eq!(said.server["viosa1"].adapter.as_deref(), Some("EN1A"));
    assert!(!said.lines.contains_key("server.viosa1.num_io_queues"));
}

#[test]
fn a_client_without_channels_has_one_queue() {
    let vios = "v1:/> lsmap -all -npiv
Name          Physloc                            ClntID ClntName       ClntOS
------------- ---------------------------------- ------ -------------- -------
vfchost0      U9009.42A.78A1B2C-V1-C20                5 payroll        AIX

Status:LOGGED_IN
FC name:fcs0                    FC loc code:U78D3.001.WZS0ABC-P1-C4-T1
Ports logged in:6
Flags:a<LOGGED_IN,STRIP_MERGE>
VFC client name:fcs1            VFC client DRC:U9009.42A.78A1B2C-V5-C20

v1:/> cat /proc/sys/adapter/vfc/vfchost0/stats
Number of CMD queues    = 1
Number of SUBQ channels = 0
";
    let mut captures = planner::capture::Captures::new();
    captures.read("v1.txt", vios.as_bytes(), None);
    let paths = planner::lpm::captured_paths(&captures).paths;
    let queues = paths[0].inputs.iter().find(|input| input.name == "queues").unwrap();
    assert_eq!((queues.value.as_str(), queues.lines[0].line), ("1", 14));
}

#[test]
fn an_adapter_without_a_port_is_no_path() {
    let row = |number: u32, state: &str| {
        format!(
            "vfchost{number}      U9009.42A.78A1B2C-V1-C2{number}                5 payroll        AIX\n\n{state}\n"
        )
    };
    let mapped = "Status:LOGGED_IN
FC name:fcs0                    FC loc code:U78D3.001.WZS0ABC-P1-C4-T1
Ports logged in:6
Flags:a<LOGGED_IN,STRIP_MERGE>
VFC client name:fcs1            VFC client DRC:U9009.42A.78A1B2C-V5-C20
";
    let unmapped = "Status:NOT_MAPPED
FC name:                        FC loc code:
Ports logged in:0
Flags:1<NOT_MAPPED>
VFC client name:                VFC client DRC:
";
    let text = format!(
        "v1:/> lsmap -all -npiv
Name          Physloc                            ClntID ClntName       ClntOS
------------- ---------------------------------- ------ -------------- -------
{}{}",
        row(0, mapped),
        row(1, unmapped)
    );
    let mut captures = planner::capture::Captures::new();
    captures.read("v1.txt", text.as_bytes(), None);
    let found = planner::lpm::captured_paths(&captures);
    let servers: Vec<&str> = found.paths.iter().map(|path| path.server.as_str()).collect();
    assert_eq!(servers, ["vfchost0 on v1"]);
    let [left] = &found.unmapped[..] else { panic!("{:?}", found.unmapped) };
    assert_eq!((left.server.as_str(), left.client.as_deref()), ("vfchost1 on v1", Some("payroll")));
    let outcomes = planner::lpm::Outcomes {
        paths: Vec::new(),
        unmapped: found.unmapped,
        files: vec!["v1.txt".to_owned()],
    };
    let text = planner::report::text::text(&outcomes, &planner::report::text::Options::default());
    assert!(text.contains("vfchost1 on v1 of payroll (v1.txt:12)"), "{text}");
}

/// The VIOS of the destination has a single queue for certain, its firmware perhaps: what is certain is said.
#[test]
fn what_every_way_to_a_count_needs_is_said_where_it_is_open_which_of_them_it_is() {
    let text = "steps = [{ move = \"target\" }, { move = \"source\" }]\n[client]\nsystem = \"aix\"\nlevel = \"7200-05-03\"\nat = \"source\"\nqueues = 8\n[server.source]\nmachine = \"9009-42A\"\nfirmware = \"FW950\"\nvios = \"3.1.2.10\"\n[server.target]\ngeneration = \"POWER8\"\nvios = \"2.2.6\"\n";
    let outcome = outcome(text);
    let [case] = outcome.stages[1].cases.as_slice() else { panic!("{outcome:?}") };
    let [first, .., last] = case.brings_back.as_slice() else { panic!("{case:?}") };
    assert!(first.starts_with("bring the VIOS of target to 3.1.2"), "{case:?}");
    assert_eq!(last, "find out which of these it is: some need more than that");
}
