//! Text as it comes out of mail, browsers, logs and tools that ask several hosts.

use planner::capture::{Captures, Head, Report};
use planner::model::Model;

use super::{assert_whole, fixture, only, read_bytes, value};

pub(super) fn text(name: &str) -> String {
    String::from_utf8(fixture(name)).expect("fixtures are UTF-8")
}

/// Reports in which every place is line 1, to compare what stands on other lines.
fn shape(captures: &Captures) -> Vec<serde_json::Value> {
    fn flatten(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(map) => {
                for name in ["at", "first", "last", "command", "partition"] {
                    map.remove(name);
                }
                map.values_mut().for_each(flatten);
            }
            serde_json::Value::Array(list) => list.iter_mut().for_each(flatten),
            _ => {}
        }
    }
    let mut all: Vec<serde_json::Value> =
        captures.reports.iter().map(|r| serde_json::to_value(r).expect("JSON")).collect();
    all.iter_mut().for_each(flatten);
    all
}

pub(super) fn host(head: &Head) -> Option<&str> {
    head.partition.as_ref().map(|read| read.value.as_str())
}

/// The article of which the numbers were lost: every gap in it is a non-breaking space.
const ARTICLE: &str = "\u{a0} FC SCSI Adapter Driver Queue Statistics\n\
\u{a0} \u{a0} \u{a0} High water mark\u{a0} of active commands:\u{a0} \u{a0} 180\n\
\u{a0} \u{a0} \u{a0} High water mark of pending commands:\u{a0} \u{a0} 1\n\
\n\
\u{a0} FC SCSI Protocol Driver Queue Statistics\n\
\u{a0} \u{a0} \u{a0} High water mark\u{a0} of active commands:\u{a0} \u{a0} 180\n\
\u{a0} \u{a0} \u{a0} High water mark of pending commands:\u{a0} \u{a0} 2022\n\
\n\
FC SCSI Adapter Driver Information\n\
\u{a0} No DMA Resource Count: 0\u{a0} \u{a0} \u{a0} \u{a0}\n\
\u{a0} No Adapter Elements Count: 0\u{a0} \u{a0} \u{a0}  \u{a0}\n\
\u{a0} No Command Resource Count: 4419300\u{a0} \u{a0} \u{a0}  \u{a0} \n";

#[test]
fn non_breaking_spaces_lose_no_number() {
    let text = format!(
        "# lsattr -Rl fcs0 -a num_cmd_elems\n20\u{2026}2048 (+1)\n# fcstat -D fcs0\n\nFIBRE CHANNEL STATISTICS REPORT: fcs0\n\n{ARTICLE}"
    );
    let latin1: Vec<u8> = text
        .replace('\u{2026}', "...")
        .chars()
        .map(|c| u8::try_from(u32::from(c)).expect("ISO 8859-1"))
        .collect();
    for bytes in [text.as_bytes(), &latin1] {
        let captures = read_bytes(bytes);
        let report = only(captures.fcstats());
        assert_eq!(value(&report.protocol_queue.active_high), 180);
        assert_eq!(value(&report.protocol_queue.pending_high), 2022);
        assert_eq!(value(&report.resources.no_command), 4_419_300);
        assert_eq!(report.head.unread, []);
        assert_eq!(only(captures.lsattr_ranges()).max(), Some(2048));
    }
}

#[test]
fn spaces_quotes_and_dashes_of_editors_change_nothing() {
    for name in [
        "fcstat-physical",
        "fcstat-virtual-D",
        "lsattr",
        "lsmap-npiv",
        "lsmap-all",
        "iostat-D",
        "lparstat",
        "lssp",
    ] {
        let plain = text(name);
        let wanted = read_bytes(plain.as_bytes());
        for space in ["\u{a0}", "\u{2007}", "\u{202f}", "\u{3000}"] {
            let found = read_bytes(plain.replace(' ', space).as_bytes());
            assert_eq!(found.reports, wanted.reports, "{name} {space:?}");
        }
        let typeset =
            plain.replace('-', "\u{2013}").replace('\'', "\u{2019}").replace("fcs", "fc\u{200b}s");
        assert_eq!(read_bytes(typeset.as_bytes()).reports, wanted.reports, "{name}");
        let utf16: Vec<u8> = plain.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(read_bytes(&utf16).reports, wanted.reports, "{name} in UTF-16 without a mark");
        let utf16: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read_bytes(&utf16).reports, wanted.reports, "{name} in UTF-16 without a mark");
    }
    let captures = read_bytes("$ ssh padmin@vios1 \u{201c}ioscli lsattr \u{2013}El fcs0\u{201d}\na 1 A True\nb 2 B True\n".as_bytes());
    let report = only(captures.lsattrs());
    assert_eq!((host(&report.head), value(&report.head.device).as_str()), (Some("vios1"), "fcs0"));
}

/// Puts something before every line that is not blank.
fn dress(text: &str, line: impl Fn(usize, &str) -> String) -> String {
    text.lines()
        .enumerate()
        .map(|(index, text)| line(index, text).trim_end().to_owned() + "\n")
        .collect()
}

#[test]
fn what_stands_before_every_line_is_taken_off() {
    for name in [
        "fcstat-physical",
        "fcstat-virtual-D",
        "lsattr",
        "lsmap-npiv",
        "lsmap-all",
        "iostat-D",
        "lparstat",
        "lparstat-i",
        "lssp",
        "entstat-aix",
        "lsnports",
    ] {
        let plain = text(name);
        let wanted = read_bytes(plain.as_bytes());
        let ways: Vec<(&str, String)> = vec![
            ("quotation", dress(&plain, |_, line| format!("> {line}"))),
            ("of a quotation", dress(&plain, |_, line| format!("> > {line}"))),
            ("xdsh", dress(&plain, |_, line| format!("vios1: {line}"))),
            ("pssh", dress(&plain, |_, line| format!("[vios1] out: {line}"))),
            (
                "syslog",
                dress(&plain, |_, line| format!("Nov 22 14:05:09 vios1 user:notice root: {line}")),
            ),
            (
                "syslog of a browser",
                dress(&plain, |_, line| format!("Nov 22 14:05:09 vios1\u{a0} root[17]: {line}\r")),
            ),
            (
                "rfc 5424",
                dress(&plain, |_, line| {
                    format!("<13>2026-11-22T14:05:09+01:00 vios1 root[17]: {line}")
                }),
            ),
            ("clock", dress(&plain, |_, line| format!("[14:05:09] {line}"))),
            ("date", dress(&plain, |_, line| format!("2026-11-22 14:05:09.120 {line}"))),
            ("numbers", dress(&plain, |index, line| format!("{:6}\t{line}", index + 1))),
            ("indent", dress(&plain, |_, line| format!("    {line}"))),
            (
                "json",
                dress(&plain, |_, line| {
                    format!("        \"{}\",", line.replace('\t', "\\t").replace('"', "\\\""))
                }),
            ),
            ("mail of a log", dress(&plain, |_, line| format!("> vios1: {line}"))),
        ];
        for (way, dressed) in ways {
            let found = read_bytes(dressed.as_bytes());
            assert_eq!(shape(&found), shape(&wanted), "{name} {way}:\n{dressed}");
            let lines = |captures: &Captures| {
                captures
                    .reports
                    .iter()
                    .map(|report| (report.head().first.line, report.head().last))
                    .collect::<Vec<_>>()
            };
            assert_eq!(lines(&found), lines(&wanted), "{name} {way}");
            if matches!(
                way,
                "xdsh" | "pssh" | "syslog" | "syslog of a browser" | "rfc 5424" | "mail of a log"
            ) && host(wanted.reports[0].head()).is_none()
            {
                assert_eq!(
                    found.reports.iter().map(|report| host(report.head())).next(),
                    Some(Some("vios1")),
                    "{name} {way}"
                );
            }
        }
    }
}

#[test]
fn each_host_of_a_command_for_several_has_its_own_report() {
    let rows = |host: &str, elements: u32| {
        format!("{host}: num_cmd_elems {elements} Maximum True\n{host}: dyntrk yes Tracking True\n")
    };
    let text = format!(
        "# xdsh vios1,vios2 lsattr -El fcs0\n{}{}# date\n",
        rows("vios1", 500),
        rows("vios2", 1024)
    );
    let found: Vec<_> = read_bytes(text.as_bytes())
        .lsattrs()
        .map(|report| {
            (
                host(&report.head).map(str::to_owned),
                value(&report.head.device),
                report.attributes[0].number(),
                report.head.first.line,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (Some("vios1".to_owned()), "fcs0".to_owned(), Some(500), 2),
            (Some("vios2".to_owned()), "fcs0".to_owned(), Some(1024), 4)
        ]
    );
    // One line each.
    let captures = read_bytes(b"# clsh ioslevel\nvios1: 3.1.4.21\nvios2: 4.1.0.10\n");
    let levels: Vec<_> =
        captures.levels().map(|level| (host(&level.head), level.level.value.as_str())).collect();
    assert_eq!(levels, [(Some("vios1"), "3.1.4.21"), (Some("vios2"), "4.1.0.10")]);
    // Headings instead of prefixes.
    for (one, two) in [
        ("vios1 | CHANGED | rc=0 >>", "vios2 | CHANGED | rc=0 >>"),
        ("ok: [vios1] => {", "ok: [vios2] => {"),
        (
            "-------------------------------\nNODE vios1\n-------------------------------",
            "-------------------------------\nNODE vios2\n-------------------------------",
        ),
        (
            "====================================\nvios1\n====================================",
            "====================================\nvios2\n====================================",
        ),
    ] {
        let rows = "a 1 A True\nb 2 B True\n";
        let captures = read_bytes(format!("{one}\n{rows}\n{two}\n{rows}").as_bytes());
        let hosts: Vec<_> = captures.lsattrs().map(|report| host(&report.head)).collect();
        assert_eq!(hosts, [Some("vios1"), Some("vios2")], "{one}");
    }
    let captures = read_bytes(b"$ ansible vios -m raw -a \"lsattr -El fcs0\"\nvios1 | CHANGED | rc=0 >>\na 1 A True\nb 2 B True\n");
    assert_eq!(value(&only(captures.lsattrs()).head.device), "fcs0");
}

#[test]
fn lines_that_only_look_dressed_stay() {
    let entstat = text("entstat-sea");
    let captures = read_bytes(entstat.as_bytes());
    assert!(only(captures.entstats()).sea.is_some());
    // Three fields of the same name are no host's lines.
    let captures = read_bytes(b"Note: one\nNote: two\nNote: three\n");
    assert_eq!(captures.unread[0].text, "Note: one\nNote: two\nNote: three");
    let captures = read_bytes(b"> hostname\nvios1\n> lsattr -El fcs0\na 1 A True\nb 2 B True\n");
    assert_eq!(host(&only(captures.lsattrs()).head), Some("vios1"));
}

#[test]
fn here_documents_of_scripts_are_read() {
    let fcstat = text("fcstat-old");
    for (begin, end) in [
        ("my $fcstat = <<'EOF';", "EOF"),
        ("$lsattr{vios1} = <<\"END\";", "END"),
        ("cat > vios1.txt <<EOF", "EOF"),
        ("    out=$(cat <<-'_EOT_'", "_EOT_"),
    ] {
        let text =
            format!("#!/usr/bin/perl\nuse strict;\n{begin}\n{fcstat}{end}\nprint $fcstat;\n");
        let captures = read_bytes(text.as_bytes());
        let report = only(captures.fcstats());
        assert_eq!(value(&report.resources.no_command), 5, "{begin}");
        assert_eq!((host(&report.head), &report.head.unread[..]), (None, &[][..]), "{begin}");
    }
}

#[test]
fn a_table_from_a_browser_or_a_wiki_is_read() {
    let plain = text("lsnports");
    let plain = plain.split("$ ioslevel").next().expect("the list");
    let wanted = shape(&read_bytes(plain.as_bytes()));
    let cells =
        |line: &str, between: &str| line.split_whitespace().collect::<Vec<_>>().join(between);
    let tabs: String = plain
        .lines()
        .map(
            |line| {
                if line.starts_with('$') { format!("{line}\n") } else { cells(line, "\t") + "\n" }
            },
        )
        .collect();
    let bars: String = plain
        .lines()
        .map(|line| match () {
            () if line.starts_with('$') => format!("{line}\n"),
            () => format!("| {} |\n", cells(line, " | ")),
        })
        .collect();
    let boxed = bars.replace('|', "\u{2502}");
    for (way, text) in [("tabs", tabs), ("bars", bars), ("box", boxed)] {
        assert_eq!(shape(&read_bytes(text.as_bytes())), wanted, "{way}:\n{text}");
    }
}

#[test]
fn headings_may_be_in_any_case() {
    let cases = [
        ("lsnports", "name             physloc"),
        ("lsmap-npiv", "Name          Physloc"),
        ("lsmap-all", "SVSA            Physloc"),
        ("lsmap-net", "SVEA   Physloc"),
        ("fcstat-client", "hostname"),
        ("fcstat-physical", "FIBRE CHANNEL STATISTICS REPORT"),
        ("entstat-aix", "ETHERNET STATISTICS ("),
    ];
    for (name, heading) in cases {
        let plain = text(name);
        let wanted = read_bytes(plain.as_bytes());
        let change = |to: fn(&str) -> String| -> String {
            plain
                .lines()
                .map(|line| {
                    if line.trim_start().starts_with(heading.trim_end())
                        || line.contains(heading.split(' ').next().unwrap_or(""))
                            && line.contains("hysloc")
                            && !line.starts_with("Physloc")
                    {
                        to(line) + "\n"
                    } else {
                        line.to_owned() + "\n"
                    }
                })
                .collect()
        };
        let device = |captures: &Captures| captures.reports.len();
        for text in [change(str::to_uppercase), change(str::to_lowercase)] {
            let found = read_bytes(text.as_bytes());
            assert_eq!(device(&found), device(&wanted), "{name}");
            assert_eq!(found.unread, [], "{name}:\n{text}");
        }
    }
}

#[test]
fn a_masked_name_keeps_its_row() {
    let text = text("fcstat-client").replace("0xc05076071a2b0010", "0xC050760XXXXXXXXX");
    let captures = read_bytes(text.as_bytes());
    let report = only(captures.fcstat_clients());
    assert_eq!(report.rows.len(), 3);
    let row = &report.rows[1];
    assert_eq!((row.hostname.as_str(), row.wwpn, row.no_command), ("payroll", None, Some(88123)));
    let masked: Vec<_> = report
        .head
        .masked
        .iter()
        .map(|masked| (masked.at.line, masked.field.as_str(), masked.text.as_str()))
        .collect();
    assert_eq!(masked, [(row.at.line, "wwpn", "0xC050760XXXXXXXXX")]);

    let text = fixture("fcstat-physical");
    let text = String::from_utf8(text).expect("UTF-8");
    let wwpn = text
        .lines()
        .find_map(|line| line.strip_prefix("World Wide Port Name: "))
        .expect("it is there");
    let captures = read_bytes(text.replace(wwpn, "0x10000000XXXXXXXX").as_bytes());
    let report = only(captures.fcstats());
    assert_eq!((report.wwpn, &report.head.unread[..]), (None, &[][..]));
    assert_eq!(report.head.masked[0].field, "World Wide Port Name");
}

#[test]
fn a_row_without_host_name_is_read() {
    let text = text("fcstat-client").replace("payroll", "       ");
    let captures = read_bytes(text.as_bytes());
    let report = only(captures.fcstat_clients());
    assert_whole(&captures);
    assert_eq!(
        (
            report.rows[1].hostname.as_str(),
            report.rows[1].device.as_str(),
            report.rows[1].no_command
        ),
        ("", "fcs0", Some(88123))
    );
}

#[test]
fn a_list_without_the_column_of_names_is_read() {
    let whole = text("fcstat-client");
    let named = read_bytes(whole.as_bytes());
    let named = only(named.fcstat_clients());
    // As `cut` and `awk` leave it.
    let cut: String = whole
        .lines()
        .map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [_, _, _, _, _, _, _, ..] => {
                line.trim_start().split_once(' ').unwrap().1.trim_start().to_owned() + "\n"
            }
            _ => format!("{line}\n"),
        })
        .collect();
    for masked in [false, true] {
        let cut = match masked {
            true => cut.replace("0xc05076071a2b0022", "0xC050760XXXXXXXXX"),
            false => cut.clone(),
        };
        let captures = read_bytes(cut.as_bytes());
        let report = only(captures.fcstat_clients());
        assert_whole(&captures);
        let rows: Vec<_> =
            report.rows.iter().map(|row| (row.hostname.as_str(), row.no_command)).collect();
        let wanted: Vec<_> = named.rows.iter().map(|row| ("", row.no_command)).collect();
        assert_eq!(rows, wanted);
        let own: Vec<bool> = report.owned().map(|(own, _)| own).collect();
        assert_eq!(own, [true, false, false]);
    }
}

/// `fcstat -client | grep -E "hostname|payroll"`: nothing is left of the VIOS but its prompt.
#[test]
fn the_rows_of_one_client_alone_are_not_the_servers_own() {
    let whole = text("fcstat-client");
    let left: String = whole
        .lines()
        .filter(|line| !line.contains("0x100000"))
        .map(|line| format!("{line}\n"))
        .collect();
    for text in [left.clone(), left.replace("0xc05076071a2b0010", "0xC050760XXXXXXXXX")] {
        let captures = read_bytes(text.as_bytes());
        let report = only(captures.fcstat_clients());
        assert!(report.owned().all(|(own, _)| !own), "{:?}", report.rows);
        let model = Model::of(&captures);
        let owner = &model.systems[model.owner(0)];
        assert_eq!((owner.host.as_deref(), owner.wwpns.len()), (Some("viosa1"), 0));
        let named = model.named_at(report.rows[0].at).expect("a system");
        assert_eq!(model.systems[named].name(), Some("payroll"));
    }
}

#[test]
fn a_value_may_stand_on_the_next_line() {
    let below = |name: &str, keys: &[&str]| -> Captures {
        let mut plain = text(name);
        for key in keys {
            let start = plain.find(key).unwrap_or_else(|| panic!("{key} in {name}"));
            let value = start + key.len();
            let gap = plain[value..].len() - plain[value..].trim_start().len();
            plain.replace_range(value..value + gap, "\n    ");
        }
        read_bytes(plain.as_bytes())
    };
    let captures = below(
        "fcstat-virtual-D",
        &["World Wide Port Name:", "No Command Resource Count:", "Seconds Since Last Reset:"],
    );
    let wanted = read_bytes(&fixture("fcstat-virtual-D"));
    assert_eq!(shape(&captures)[0], shape(&wanted)[0]);
    let captures = below("entstat-aix", &["Adapter Reset Count:"]);
    assert_eq!(shape(&captures)[0], shape(&read_bytes(&fixture("entstat-aix")))[0]);
    let captures = below("lsmap-all", &["Backing device", "Status"]);
    assert_eq!(shape(&captures)[0], shape(&read_bytes(&fixture("lsmap-all")))[0]);
    let captures = below("lsmap-npiv", &["Status:", "Ports logged in:"]);
    assert_eq!(shape(&captures)[0], shape(&read_bytes(&fixture("lsmap-npiv")))[0]);
}

#[test]
fn other_languages_of_maps_and_disks_are_refused_by_name() {
    let lsmap_german = "SVSA            Physische Position                           Client-Partitions-ID\n--------------- -------------------------------------------- ------------------\nvhost0          U9009.42A.78A1B2C-V1-C12                     0x0000000e\n\nVTD                   vtscsi0\nStatus                Verfügbar\nLUN                   0x8100000000000000\nSicherungseinheit     hdisk7\nPhysische Position    U78D3.001.WZS0ABC-P1-C4-T2\nGespiegelt            falsch\n";
    let lsmap_french = "SVSA            Emplacement physique                         ID partition client\n--------------- -------------------------------------------- ------------------\nvhost0          U9009.42A.78A1B2C-V1-C12                     0x0000000e\n\nVTD                   vtscsi0\nEtat                  Disponible\nLUN                   0x8100000000000000\nUnité de sauvegarde   hdisk7\nEmplacement physique  U78D3.001.WZS0ABC-P1-C4-T2\nMiroir                faux\n";
    let lsmap_japanese = "SVSA            物理ロケーション                             クライアント区画 ID\n--------------- -------------------------------------------- ------------------\nvhost0          U9009.42A.78A1B2C-V1-C12                     0x0000000e\n\nVTD                   vtscsi0\n状況                  使用可能\nLUN                   0x8100000000000000\nバッキング・デバイス  hdisk7\n物理ロケーション      U78D3.001.WZS0ABC-P1-C4-T2\nミラーリング          false\n";
    let iostat = |heading: &str, read: &str, write: &str, queue: &str| {
        format!(
            "{heading}\n\nhdisk4          xfer:  %tm_act      bps      tps      bread      bwrtn\n                          71.3     52.4M   901.5      40.1M      12.3M\n                {read}\n                         650.0      4.2      0.1      1.2S          0          0\n               {write}\n                         251.5      0.9      0.2     88.4           1          0\n               {queue}\n                          12.5      0.0    310.2      8.0        3.0       410.7\n"
        )
    };
    let iostat_german = iostat(
        "Systemkonfiguration: lcpu=16 Laufwerke=12 Pfade=48 vdisks=2",
        "lesen:      rps  mittlZeit",
        "schreiben:  wps  mittlZeit",
        "Warteschlange: mittlZeit",
    );
    let iostat_french = iostat(
        "Configuration système : lcpu=16 unités=12 chemins=48 vdisks=2",
        "lecture :   rps  tpsmoy",
        "écriture :  wps  tpsmoy",
        "file attente :  tpsmoy",
    );
    let iostat_japanese = iostat(
        "システム構成: lcpu=16 ドライブ=12 パス=48 vdisks=2",
        "読み取り:  rps",
        "書き込み:  wps",
        "キュー:  avgtime",
    );
    for (text, command, language) in [
        (lsmap_german, "lsmap", "German"),
        (lsmap_french, "lsmap", "French"),
        (lsmap_japanese, "lsmap", "Japanese"),
        (&iostat_german, "iostat", "German"),
        (&iostat_french, "iostat", "French"),
        (&iostat_japanese, "iostat", "Japanese"),
    ] {
        let typed =
            format!("$ {}\n{text}", if command == "lsmap" { "lsmap -all" } else { "iostat -D" });
        for text in [text, &typed] {
            let captures = read_bytes(text.as_bytes());
            let whys: Vec<&str> =
                captures.refused.iter().map(|refused| refused.why.as_str()).collect();
            assert_eq!(whys.len(), 1, "{whys:?} {:?}\n{text}", captures.unread);
            assert!(
                whys[0].contains(command)
                    && whys[0].contains(language)
                    && whys[0].contains("LC_ALL=C"),
                "{whys:?}"
            );
            assert!(
                captures
                    .reports
                    .iter()
                    .all(|report| !matches!(report, Report::LsmapScsi(_) | Report::IostatD(_)))
            );
        }
    }
}

/// One row of a report that somebody quotes says nothing of how it is now; a whole report or its command does.
#[test]
fn a_lone_quoted_row_is_no_report() {
    for row in [
        "Failed hdisk3 fscsi1",
        "B6267342   1014110526 P H hdisk6         DISK OPERATION ERROR",
        "hdisk6 U78D2.001.WZS00ZG-P1-C9-T1-W50050768102077A0-L6000000000000 MPIO IBM 2145 FC Disk",
        "name=payroll,lpar_id=5,lpar_env=aixlinux,state=Running",
        "20...2048 (+1)",
        "3.1.4.41",
    ] {
        for quoted in [
            format!("> {row}\n"),
            format!(">{row}\n"),
            format!("  > {row}\n"),
            format!("> On Monday you wrote:\n> {row}\n"),
            format!("> {row}\n> {row}\n\nThat is mended.\n"),
            format!("> > {row}\n> What became of it?\n"),
        ] {
            let text = format!("Hello,\n\n{quoted}\nnothing of that is left.\n");
            assert_eq!(read_bytes(text.as_bytes()).reports, [], "{text}");
        }
    }
    let whole = "> payroll:/> lspath\n> Failed hdisk3 fscsi1\n> Enabled hdisk3 fscsi0\n";
    let captures = read_bytes(whole.as_bytes());
    assert_eq!(only(captures.disk_paths_all()).paths.len(), 2);
}

/// A code block of Markdown: four blanks before each line, `hostname` first.
#[test]
fn an_indented_block_keeps_its_commands() {
    for indent in ["    ", "\t", "  "] {
        for (prompt, name) in
            [("# ", "payroll"), ("$ ", "payroll"), ("root@payroll:/> ", "payroll")]
        {
            let block = format!(
                "{prompt}hostname\n{name}\n{prompt}lsattr -El fcs0\nnum_cmd_elems 500 Elements True\nlg_term_dma 0x800000 DMA True\n\n{prompt}lspath\nEnabled hdisk0 fscsi0\nEnabled hdisk0 fscsi1\n"
            );
            let block: String = block
                .split_inclusive('\n')
                .map(|line| if line == "\n" { line.to_owned() } else { format!("{indent}{line}") })
                .collect();
            let text = format!("This is what we saw:\n\n{block}\nand nothing else.\n");
            let captures = read_bytes(text.as_bytes());
            let paths = only(captures.disk_paths_all());
            assert_eq!(paths.paths.len(), 2);
            assert_eq!(host(&paths.head), Some(name), "{text}");
            let list = only(captures.lsattrs());
            assert_eq!(list.head.device.as_ref().map(|read| read.value.as_str()), Some("fcs0"));
            assert_eq!(host(&list.head), Some(name), "{text}");
            assert_eq!(list.attributes.len(), 2);
        }
    }
}

/// A quotation of which nothing is left but who and which level it was.
#[test]
fn a_quotation_that_only_asks_which_system_it_is() {
    let text = "Hi,\n\n> # hostname\n> bergweb3\n> # oslevel -s\n> 7300-02-02-2420\n";
    let captures = read_bytes(text.as_bytes());
    let level = only(captures.levels());
    assert_eq!(
        (host(&level.head), level.level.value.as_str()),
        (Some("bergweb3"), "7300-02-02-2420")
    );
}
