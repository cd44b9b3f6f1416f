//! No input makes a reader panic, and every line has its place.

use planner::capture::{Captures, Report, readers};
use proptest::prelude::*;

use super::{fixture, fixtures};

/// The fixtures, all in one.
fn corpus() -> Vec<Vec<u8>> {
    fixtures().iter().map(|name| fixture(name)).collect()
}

/// What must hold of any file: reports lie within it, do not overlap, and come in order.
fn check(bytes: &[u8]) -> Captures {
    let mut captures = Captures::new();
    captures.read("any", bytes, None);
    let lines = captures.files[0].lines;
    // Hosts that take turns: their reports lie between each other's lines.
    if captures.files[0].notes.iter().any(|note| note.contains("host by host")) {
        assert!(captures.reports.iter().all(|report| report.head().last <= lines));
        return captures;
    }
    let mut end = 0;
    for report in &captures.reports {
        let head = report.head();
        assert!(
            head.first.line > end,
            "{} begins in line {}, after {end}",
            report.command(),
            head.first.line
        );
        assert!(head.last >= head.first.line && head.last <= lines);
        end = head.last;
        for unread in &head.unread {
            assert!(
                unread.at.line >= head.first.line && unread.at.line + unread.lines - 1 <= head.last
            );
        }
    }
    for unread in &captures.unread {
        let inside = |report: &Report| {
            let head = report.head();
            (head.first.line..=head.last).contains(&unread.at.line)
        };
        assert!(
            !captures.reports.iter().any(inside),
            "line {} is in a report and unread",
            unread.at.line
        );
        assert!(unread.at.line + unread.lines - 1 <= lines);
    }
    captures
}

/// Headings with nothing below them make a reader look at all that follow, each time in vain; and many hosts that are
/// said to have printed the same make copies. Neither costs the square of what was captured: that would take hours here.
#[test]
fn what_is_repeated_without_end_is_read_in_the_end() {
    for heading in [
        "%user  %sys  %wait  %idle",
        "<?xml-stylesheet type=\"text/xsl\" href=\"vios_advisor.xsl\"?>",
        "           Detailed information on Hypervisor Calls",
        "DEV#:   2  DEVICE NAME: hdisk2  TYPE: 2145  ALGORITHM:  Load Balance",
        "Name          Physloc                            ClntID ClntName       ClntOS",
        "Disks:  xfers",
        "AAA,x",
        "# lssp",
    ] {
        let captures = check(format!("{heading}\n").repeat(40_000).as_bytes());
        assert!(captures.reports.len() <= 40_000, "{heading}");
    }
    let hosts: Vec<String> = (0..20_000).map(|host| format!("vios{host}")).collect();
    let rule = "-".repeat(16);
    let text =
        format!("{rule}\n{}\n{rule}\n{}", hosts.join(","), "7200-05-03-2148\n".repeat(2_000));
    let mut captures = Captures::new();
    captures.read("a.txt", text.as_bytes(), None);
    assert!(captures.reports.len() < 70_000, "{}", captures.reports.len());
    assert!(captures.files[0].notes.iter().any(|note| note.contains("too many hosts")));
}

/// A restart puts into force what was changed before it, and what was changed on others is not looked through for that.
#[test]
fn changes_and_restarts_without_end_are_read_in_the_end() {
    let count = 60_000;
    let changes: String = (0..count)
        .map(|disk| {
            format!("vios1:/# chdev -l hdisk{disk} -a queue_depth=8 -P\nhdisk{disk} changed\n")
        })
        .collect();
    let restarts = "vios2:/# shutdown -Fr\nvios1:/# rmdev -l fcs9\n".repeat(count);
    let end = "vios1:/# rmdev -l hdisk7\n";
    let captures = check(format!("{changes}{restarts}{end}").as_bytes());
    let pending =
        |change: &&planner::capture::Chdev| change.attributes.iter().all(|one| one.pending);
    assert_eq!(captures.chdevs().count(), count);
    assert_eq!(captures.chdevs().filter(pending).count(), count - 1);
}

/// A change to a file that mail, terminals and editors make, or somebody who means harm.
#[derive(Debug, Clone)]
enum Change {
    Drop(prop::sample::Index),
    Double(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Cut(prop::sample::Index),
    Wrap(usize),
    Insert(prop::sample::Index, Vec<u8>),
    Byte(prop::sample::Index, u8),
    Squeeze,
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        index().prop_map(Change::Drop),
        index().prop_map(Change::Double),
        (index(), index()).prop_map(|(a, b)| Change::Swap(a, b)),
        index().prop_map(Change::Cut),
        (5_usize..140).prop_map(Change::Wrap),
        (index(), prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (index(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        Just(Change::Squeeze),
    ]
}

fn apply(bytes: Vec<u8>, change: &Change) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    match change {
        Change::Drop(index) => drop(lines.remove(index.index(lines.len()))),
        Change::Double(index) => {
            let at = index.index(lines.len());
            lines.insert(at, lines[at].clone());
        }
        Change::Swap(a, b) => {
            let count = lines.len();
            lines.swap(a.index(count), b.index(count));
        }
        Change::Cut(index) => return bytes[..index.index(bytes.len() + 1)].to_vec(),
        Change::Wrap(width) => {
            lines = lines
                .iter()
                .flat_map(|line| {
                    let chunks: Vec<Vec<u8>> = line.chunks(*width).map(<[u8]>::to_vec).collect();
                    if chunks.is_empty() { vec![Vec::new()] } else { chunks }
                })
                .collect();
        }
        Change::Insert(index, more) => {
            let mut bytes = bytes;
            let at = index.index(bytes.len() + 1);
            bytes.splice(at..at, more.iter().copied());
            return bytes;
        }
        Change::Byte(index, byte) => {
            let mut bytes = bytes;
            if !bytes.is_empty() {
                let at = index.index(bytes.len());
                bytes[at] = *byte;
            }
            return bytes;
        }
        Change::Squeeze => {
            for line in &mut lines {
                let words: Vec<&[u8]> =
                    line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
                *line = words.join(&b' ');
            }
        }
    }
    lines.join(&b'\n')
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_captures(picks in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
                        changes in prop::collection::vec(change(), 0..12)) {
        let corpus = corpus();
        let mut bytes: Vec<u8> = picks.iter().flat_map(|pick| pick.get(&corpus).clone()).collect();
        for change in &changes {
            bytes = apply(bytes, change);
        }
        check(&bytes);
    }

    #[test]
    fn whatever_a_command_is_said_to_have_printed(pick in any::<prop::sample::Index>(), change in change(),
                                                  lines in prop::collection::vec(words(), 0..6)) {
        let corpus = corpus();
        for reader in readers() {
            let printed = apply(pick.get(&corpus).clone(), &change);
            let mut bytes = format!("vios1:/> {}\n{}\n", reader.typed, lines.join("\n")).into_bytes();
            bytes.extend(printed.split(|byte| *byte == b'\n').skip(pick.index(3)).flat_map(|line| [line, b"\n"]).flatten());
            check(&bytes);
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        check(&bytes);
    }

    #[test]
    fn any_lines_of_words(lines in prop::collection::vec(words(), 0..40)) {
        check(lines.join("\n").as_bytes());
    }

    #[test]
    fn a_value_is_read_as_it_stands(count in any::<u64>(), age in any::<u64>()) {
        let text = String::from_utf8(fixture("fcstat-old")).expect("UTF-8");
        let text = text.replace("Command Resource Count: 5", &format!("Command Resource Count: {count}"));
        let text = text.replace("Reset: 4402", &format!("Reset: {age}"));
        let captures = check(text.as_bytes());
        let report = captures.fcstats().next().expect("a report");
        prop_assert_eq!(report.resources.no_command.map(|read| read.value), Some(count));
        prop_assert_eq!(report.seconds_since_reset.map(|read| read.value), Some(age));
    }
}

/// The first line of an entry of `errpt -a` is one, whatever it looks like: it was looked at for ever.
#[test]
fn an_entry_that_begins_like_a_prompt_ends() {
    for line in ["v1:/# ls", "/> ls", "[root@v1 /]# ls", "v1:/home/padmin $ ls -l"] {
        let listed = "12345678   1112093326 P H sysplanar0     X";
        let entry = format!("LABEL: {line}\nIDENTIFIER: 12345678");
        check(format!("v1:/> errpt -a\n{listed}\n{entry}\n").as_bytes());
    }
}

/// Lines made of words that readers look for.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "fcstat",
        "lsattr",
        "-El",
        "fcs0",
        "$",
        "#",
        "vios1:/>",
        "FIBRE CHANNEL STATISTICS REPORT:",
        "ETHERNET STATISTICS (ent0) :",
        "xfer:",
        "%tm_act",
        "read:",
        "queue:",
        "1.0K",
        "9999999999999999999999",
        "True",
        "False",
        "SVSA",
        "Physloc",
        "vhost0",
        "U8-V1",
        "0x",
        "0x3",
        ":",
        "=",
        "(",
        ")",
        "vfchost0",
        "Name",
        "ClntID",
        "POOL_NAME:",
        "LU_NAME",
        "PV_NAME",
        "lpar_name=a",
        ",wwpn=c0507609aa100010,",
        "wwpn_status=1,",
        "\"",
        "PV NAME",
        "PV_NAME: hdisk4",
        "FG_NAME:",
        "UDID",
        "SIZE(MB)",
        "-",
        "...",
        "(+1)",
        "MAC:",
        "System configuration:",
        "type=Shared",
        "lcpu=8",
        "%user",
        "%sys",
        "%wait",
        "Node Name",
        "attribute",
        "value",
        "description",
        "hostname",
        "dev",
        "wwpn",
        "Buffer Type",
        "Min Buffers",
        "VLAN Ids :",
        "Number of CMD queues",
        "Commands received",
        "é",
        "装置",
        "\u{fffd}",
        "Seconds Since Last Reset:",
        "FC SCSI Traffic Statistics",
        "Frames:",
        "Disks:",
        "xfers",
        "date",
        "Sun Nov 22 14:05:09 CET 2026",
        "|",
        ";",
        ">",
        "> ",
        "vios1: ",
        "<<EOF",
        "EOF",
        "xdsh",
        "Enabled",
        "hdisk4",
        "fscsi0",
        "path_id",
        "parent",
        "LABEL:",
        "IDENTIFIER",
        "DE3B8540   0527034126 P H hdisk3  X",
        "Number of duplicates",
        "kthr memory",
        "r b avm fre",
        "size inuse free pin",
        "memory",
        "System Model: IBM,9009-42A",
        "uname -L",
        "lpar_name=a,lpar_id=5,x=\"",
        "DEV#: 0 DEVICE NAME: hdisk2",
        "vnicserver0",
        "fcstat -l 20 5 fcs0",
        "SAN(us) VIOS(us)",
        "Read 1 2",
        "Page Space Physical",
        "4096MB",
        "yes",
        "02:15PM up 41 days, 3:22, 2 users, load average: 1",
        "<?xml version=\"1.0\"?>",
        "<vios_advisor>",
        "<disk name=\"hdisk4\" suggested='1'>",
        "</disk>",
        "<!--",
        "-F value",
        "$(lsattr",
    ]);
    prop::collection::vec(
        (word, prop::sample::select(vec![" ", "  ", "\t", "", "            "])),
        0..8,
    )
    .prop_map(|parts| parts.into_iter().flat_map(|(word, gap)| [word, gap]).collect())
}

/// Numbers that no clock and no editor has.
#[test]
fn numbers_beyond_every_range_do_no_harm() {
    let great = u64::MAX;
    for text in [
        format!("{great} vios1:/> lsattr -El fcs0\n{great} num_cmd_elems 200 Elements True\n")
            .repeat(3),
        format!(
            "AAA,progname,nmon_aix\nAAA,host,v1\nPAGE,Paging v1,pgsin\nZZZZ,T0001,{great}:{great}:{great},12-NOV-2026\nPAGE,T0001,{great}\n"
        ),
    ] {
        check(text.as_bytes());
    }
}
