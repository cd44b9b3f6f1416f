//! Which report belongs to which system: joined by what identifies, apart without it, whatever the order of files.

use super::{PHYSICAL, Port, SHORT, VIRTUAL, advice, captures, lsattr, lsdev, npiv};
use planner::advise::{Advice, advise};
use planner::capture::Captures;
use planner::facts::Facts;
use planner::model::Model;
use planner::report::trends::trends;
use proptest::prelude::*;

/// A machine of its own: serial numbers and WWPNs that no other has.
#[derive(Clone, Copy)]
struct Machine(usize);

impl Machine {
    fn own(self, text: &str) -> String {
        let Self(at) = self;
        text.replace("0xC05076069D61000A", &format!("0xC0507606{at:02X}61000A"))
            .replace("78A1B2C", &format!("78A1B{at:02}"))
            .replace("WZS0ABC", &format!("WZS0A{at:02}"))
            .replace("payroll", &format!("payroll{at}"))
            .replace("viosa", &format!("vio{at}s"))
    }

    /// What was captured of it, command by command; each with its host and time.
    fn blocks(self) -> Vec<String> {
        let busy = |port: Port| [port.text(), port.later(600, 9_000_000).text()];
        let pair = [("vfchost0", 5, "payroll", "fcs0", "fcs0", 6)];
        let attributes = [("num_cmd_elems", "200"), ("num_io_queues", "8")];
        let mut blocks: Vec<String> = match self.0 % 5 {
            0 => {
                let grown =
                    Port { no_command: SHORT.no_command + 90_000, ..SHORT.later(600, 100_000) };
                vec![SHORT.text(), grown.text()]
            }
            1 => {
                let port = Port { crcs: 5, link_failures: 2, words: 10, ..PHYSICAL };
                let later = Port { crcs: 900, link_failures: 11, ..port.later(600, 1000) };
                vec![port.text(), later.text()]
            }
            2 => busy(VIRTUAL).into(),
            3 => vec![
                PHYSICAL.text(),
                npiv("viosa1", &[pair[0], ("vfchost1", 5, "payroll", "fcs1", "fcs1", 0)]),
            ],
            _ => {
                vec![lsdev("viosa1", "vfchost0", &[("limit_intr", "true"), ("num_per_range", "0")])]
            }
        };
        blocks.push(lsattr("payroll", "fcs0", &attributes));
        blocks.push(npiv("viosa1", &pair[..usize::from(self.0 % 5 != 3)]));
        blocks.push(lsattr(
            "payroll",
            "fscsi0",
            &[("dyntrk", "yes"), ("fc_err_recov", "fast_fail")],
        ));
        let timed = blocks.iter().enumerate().map(|(minute, block)| {
            let host = if block.starts_with("viosa1") { "viosa1" } else { "payroll" };
            self.own(&format!("{host}:/> date\nTue Mar  3 10:{minute:02}:00 UTC 2026\n{block}"))
        });
        timed.collect()
    }
}

fn read(files: &[String]) -> Captures {
    let mut captures = Captures::new();
    for (at, text) in files.iter().enumerate() {
        captures.read(&format!("{at}.txt"), text.as_bytes(), None);
    }
    captures
}

/// What is said, without the lines that it was read from.
fn said(advice: &Advice) -> Vec<String> {
    let mut all: Vec<String> = advice
        .findings
        .iter()
        .map(|finding| {
            let figures: Vec<String> = finding
                .figures
                .iter()
                .map(|figure| format!("{}={}", figure.name, figure.value()))
                .collect();
            format!(
                "{} {} {:?} {} {:?} {:?} {:.3} {figures:?} {:?}",
                finding.rule,
                finding.object,
                finding.severity,
                finding.title,
                finding.command,
                finding.place,
                finding.confidence,
                finding.look_up,
            )
        })
        .chain(advice.coverage.iter().map(|judged| format!("{judged:?}")))
        .collect();
    all.sort();
    all
}

fn one_by_one() -> (Vec<String>, Vec<String>) {
    let facts = Facts::builtin();
    let (mut blocks, mut alone) = (Vec::new(), Vec::new());
    for machine in (0..10).map(Machine) {
        let own = machine.blocks();
        alone.extend(said(&advise(&read(&[own.concat()]), &facts)));
        blocks.extend(own);
    }
    alone.sort();
    (blocks, alone)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Ten machines' captures, shuffled, split and joined into files in any way, give what the ten give one by one.
    #[test]
    fn the_order_and_the_number_of_files_decide_nothing(
        order in Just((0..one_by_one().0.len()).collect::<Vec<_>>()).prop_shuffle(),
        ends in proptest::collection::vec(any::<bool>(), 80),
    ) {
        let (blocks, alone) = one_by_one();
        let mut files = vec![String::new()];
        for (at, ends) in order.into_iter().zip(ends.into_iter().cycle()) {
            if ends {
                files.push(String::new());
            }
            if let Some(file) = files.last_mut() {
                file.push_str(&blocks[at]);
            }
        }
        let together = said(&advise(&read(&files), &Facts::builtin()));
        prop_assert_eq!(together, alone);
    }
}

#[test]
fn the_ten_machines_have_something_to_say() {
    let (_, alone) = one_by_one();
    for rule in
        ["fc-virtual-elements", "fc-link-errors", "fc-wwpn-second-missing", "mq-single-queue"]
    {
        assert_eq!(
            alone.iter().filter(|line| line.starts_with(rule)).count(),
            2,
            "{rule}: {alone:#?}"
        );
    }
}

/// Without a host's name, and with a WWPN of its own.
fn unnamed(port: Port, wwpn: &str) -> String {
    let text = port.text();
    let bare = text.split_once('\n').map_or("", |(_, report)| report);
    bare.replace("0xC05076069D61000A", wwpn)
}

#[test]
fn two_adapters_of_two_machines_do_not_grow_into_each_other() {
    let (one, two) = (
        unnamed(Port { no_elements: 12_000, ..PHYSICAL }, "0x10000090FAE1F001"),
        unnamed(
            Port { no_elements: 328_538, ..PHYSICAL.later(86_400, 70_000_000) },
            "0x10000090FAE1F7C2",
        ),
    );
    let files = [("a.txt", one.as_str()), ("b.txt", two.as_str())];
    for finding in advice(&files).findings {
        assert!(!finding.reasoning.iter().any(|why| why.contains("grew")), "{finding:?}");
        assert_eq!(finding.command, None);
    }
    // Pasted into one file they are still two.
    let pasted = format!("{one}{two}");
    for finding in advice(&[("a.txt", &pasted)]).findings {
        assert!(!finding.reasoning.iter().any(|why| why.contains("grew")), "{finding:?}");
    }
    let timed = super::timed(&[("a.txt", one.as_str(), 1000), ("b.txt", two.as_str(), 87_400)]);
    assert_eq!(trends(&timed, &Facts::builtin()).things, []);
    // The same WWPN is the same port, whatever the files are called, and then it grows.
    let later = unnamed(
        Port { no_elements: 328_538, ..PHYSICAL.later(86_400, 70_000_000) },
        "0x10000090FAE1F001",
    );
    let advice = advice(&[("x.txt", &one), ("b.txt", &later)]);
    assert!(
        advice
            .findings
            .iter()
            .any(|finding| finding.reasoning.iter().any(|why| why.contains("grew")))
    );
}

#[test]
fn a_name_with_another_wwpn_is_another_system() {
    let one = VIRTUAL.text();
    let two = VIRTUAL.text().replace("0xC05076069D61000A", "0xC05076069D6100FF");
    let model = Model::of(&captures(&[("a.txt", &one), ("b.txt", &two)]));
    assert_eq!(model.systems.len(), 2);
    assert_eq!(model.spoken(0), "payroll (c0:50:76:06:9d:61:00:0a)");
    assert_eq!(model.spoken(1), "payroll (c0:50:76:06:9d:61:00:ff)");
    // And the same one is one system.
    let model = Model::of(&captures(&[("a.txt", &one), ("b.txt", &one)]));
    assert_eq!(model.systems.len(), 1);
}

/// Files of one command each, called by host and command: the host, the device and what belongs together stand in the names.
#[test]
fn files_may_be_called_by_host_and_command() {
    let attributes = |jumbo: &str| {
        format!(
            "attribute     value  description  user_settable\n\nha_mode auto High Availability Mode True\njumbo_frames {jumbo} Jumbo Frames True\npvid_adapter ent4 Default adapter True\nvirt_adapters ent4 Adapters True\n"
        )
    };
    let bridge = |mac: &str| {
        format!(
            "ETHERNET STATISTICS (ent6) :\nDevice Type: Shared Ethernet Adapter\nHardware Address: {mac}\nStatistics for adapters in the Shared Ethernet Adapter ent6\nVLAN Ids :\n    ent4: 10 11\n"
        )
    };
    let (yes, no) = (attributes("yes"), attributes("no"));
    let (one, two) = (bridge("5c:f3:fc:10:22:01"), bridge("5c:f3:fc:10:22:02"));
    let said = |names: [&str; 4]| {
        let advice =
            advice(&[(names[0], &yes), (names[1], &one), (names[2], &no), (names[3], &two)]);
        advice
            .findings
            .into_iter()
            .map(|finding| (finding.rule, finding.object, finding.command))
            .collect::<Vec<_>>()
    };
    let both = ("sea-mtu", "ent6 on seinvio1 and ent6 on seinvio2".to_owned(), None);
    for names in [
        [
            "seinvio1_lsdev_dev_ent6_attr.txt",
            "seinvio1_entstat_all_ent6.txt",
            "seinvio2_lsdev_dev_ent6_attr.txt",
            "seinvio2_entstat_all_ent6.txt",
        ],
        [
            "lsdev_dev_ent6_attr.seinvio1",
            "entstat_all_ent6.seinvio1",
            "lsdev_dev_ent6_attr.seinvio2",
            "entstat_all_ent6.seinvio2",
        ],
        [
            "seinvio1/lsdev-dev-ent6-attr.out",
            "seinvio1/entstat-all-ent6.out",
            "seinvio2/lsdev-dev-ent6-attr.out",
            "seinvio2/entstat-all-ent6.out",
        ],
    ] {
        assert_eq!(said(names), std::slice::from_ref(&both), "{names:?}");
    }
    // Of names that are no hosts' nothing follows.
    assert_eq!(said(["a.txt", "b.txt", "c.txt", "d.txt"]), []);
}

#[test]
fn no_command_rests_on_the_name_of_a_file() {
    let attributes = lsattr("payroll", "fcs0", &[("num_cmd_elems", "200")]);
    let bare: String = attributes
        .lines()
        .filter(|line| !line.contains("oslevel") && !line.starts_with('7'))
        .collect::<Vec<_>>()
        .join("\n");
    let bare = bare.replace("payroll:/>", "$");
    let advice = advice(&[("vios1.txt", &SHORT.text()), ("payroll.txt", &bare)]);
    let finding = &advice.findings[0];
    // The value that stands in the other file is this adapter's by nothing but what that is called.
    assert_eq!(finding.command, None);
    assert_eq!(finding.to_set.as_deref(), Some("num_cmd_elems=2048"));
    let looked_up = |advice: &Advice, what: &str| {
        advice.findings[0].look_up.iter().any(|look_up| look_up.contains(what))
    };
    assert!(looked_up(&advice, "of payroll"), "{:?}", finding.look_up);
    // One that is called by nobody's name stands apart.
    let apart = super::advice(&[("vios1.txt", &SHORT.text()), ("capture.txt", &bare)]);
    assert_eq!(apart.findings[0].command, None);
    assert!(looked_up(&apart, "lsattr -El fcs0 on payroll"), "{:?}", apart.findings[0].look_up);
    assert!(finding.look_up.iter().any(|what| what.contains("oslevel")), "{:?}", finding.look_up);
}

#[test]
fn a_client_is_known_by_machine_and_number() {
    let vios = npiv("viosa1", &[("vfchost0", 5, "", "fcs0", "fcs0", 6)]);
    let client = "$ lsattr -El sys0 -a systemid\nsystemid IBM,0278A1B2C Hardware system identifier False\n$ lparstat -i\nNode Name                                  : payroll\nPartition Name                             : PRD_PAY\nPartition Number                           : 5\n";
    let model = Model::of(&captures(&[("a.txt", &vios), ("b.txt", client)]));
    let names: Vec<Option<&str>> = model.systems.iter().map(|system| system.name()).collect();
    assert_eq!(names, [Some("payroll"), Some("viosa1")]);
    let payroll = &model.systems[0];
    assert_eq!((payroll.partition.as_deref(), payroll.partition_id), (Some("PRD_PAY"), Some(5)));
    assert_eq!(payroll.machine.as_deref(), Some("9009-42A*78A1B2C"));
    assert_eq!(model.systems[1].machine.as_deref(), Some("9009-42A*78A1B2C"));
}
