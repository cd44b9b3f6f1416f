//! What names of people's own say: those of files, and of headings that their scripts print.
//!
//! Captures are filed as `vios1_lsmap_all_npiv.txt`, `lspath.erpdb`, `sv1-20260302-2215.log`; scripts print
//! `######## vios1 ########` between what they asked each host. Such a name is a host's where it looks like one and like
//! nothing else; words that people call files and sections by are none.

mod headings;

pub(super) use headings::headings;

use super::{prompt, text};
use crate::clean::is_host_name;

/// What the name of a file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Called {
    /// The host that it may be of, in small letters.
    pub host: Option<String>,
    /// Whether it looks like a host's name by itself: else it is one where somebody else calls a system so.
    pub sure: bool,
    /// The command that printed it, where the name spells it.
    pub(super) command: Option<String>,
    /// The device that it is of, where it spells no command.
    pub(super) device: Option<String>,
}

/// Endings that tell of the form of a file.
const ENDINGS: [&str; 26] = [
    "gz",
    "txt",
    "text",
    "log",
    "out",
    "lst",
    "list",
    "dat",
    "cap",
    "snap",
    "md",
    "dsh",
    "csv",
    "nmon",
    "err",
    "stdout",
    "typescript",
    "term",
    "rep",
    "eml",
    "msg",
    "html",
    "htm",
    "xml",
    "json",
    "bak",
];

/// What files and sections are called that is no host's name, without digits behind it.
const WORDS: [&str; 119] = [
    "adapter",
    "adapters",
    "after",
    "aix",
    "all",
    "ansible",
    "attr",
    "attributes",
    "backup",
    "before",
    "begin",
    "both",
    "capture",
    "captures",
    "case",
    "chapter",
    "check",
    "checks",
    "client",
    "clients",
    "cluster",
    "cmd",
    "collect",
    "command",
    "commands",
    "config",
    "console",
    "cpu",
    "customer",
    "data",
    "day",
    "details",
    "device",
    "disk",
    "disks",
    "dlpar",
    "dump",
    "end",
    "errors",
    "etc",
    "ethernet",
    "evening",
    "example",
    "export",
    "fc",
    "file",
    "fragment",
    "from",
    "general",
    "health",
    "healthcheck",
    "host",
    "hosts",
    "info",
    "input",
    "inventory",
    "item",
    "konsole",
    "later",
    "level",
    "levels",
    "listing",
    "lpar",
    "lpars",
    "lv",
    "mail",
    "mem",
    "memory",
    "midday",
    "morning",
    "net",
    "network",
    "new",
    "night",
    "node",
    "noon",
    "note",
    "notes",
    "npiv",
    "old",
    "output",
    "page",
    "part",
    "paste",
    "pasted",
    "path",
    "paths",
    "perf",
    "phase",
    "pool",
    "port",
    "ports",
    "problem",
    "putty",
    "pv",
    "report",
    "result",
    "run",
    "sample",
    "san",
    "sea",
    "section",
    "server",
    "session",
    "slot",
    "start",
    "step",
    "storage",
    "sys",
    "system",
    "tcpip",
    "terminal",
    "test",
    "ticket",
    "today",
    "vg",
    "vios",
    "vlan",
    "yesterday",
];

fn is_plain_word(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let stem = lower.trim_end_matches(|c: char| c.is_ascii_digit());
    // `vios1` and `lpar5` are what hosts are called, `vios` and `lpar` are not.
    let numbered =
        matches!(stem, "vios" | "lpar" | "aix" | "host" | "node" | "server" | "client" | "backup")
            && stem.len() < lower.len();
    stem.is_empty() || !numbered && WORDS.binary_search(&stem).is_ok() || stem.ends_with("vg")
}

/// Whether a word may be a host's name: no program, no device, no word of everyday.
pub(super) fn may_be_host(word: &str) -> bool {
    word.len() > 1
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && is_host_name(word)
        && !is_plain_word(word)
        && !prompt::is_asked(word)
        && !is_device(word)
        && !matches!(word, "root" | "padmin" | "hscroot")
}

/// `fcs0`, `hdisk12`, `en0`
fn is_device(word: &str) -> bool {
    let stem = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let kinds = [
        "en", "et", "lun", "vlun", "vtscsi", "sissas", "sas", "proc", "sys", "inet", "rmt", "cd",
        "usb", "sfwcomm", "pci", "vasi", "hba", "lhea", "nvme", "pdisk", "vty", "tty", "dac",
    ];
    text::is_device_alone(word) || stem.len() < word.len() && kinds.contains(&stem)
}

/// Whether a name looks like a host's by itself: a number in it, or one letter behind a dash.
pub(super) fn looks_like_host(word: &str) -> bool {
    // What most words are not, first.
    let one = || word.rsplit_once('-').is_some_and(|(_, last)| last.len() == 1);
    (word.bytes().any(|byte| byte.is_ascii_digit()) || one()) && may_be_host(word)
}

/// A date or a time of day, as files' names have them.
fn is_time(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let sign = |byte: u8| {
        byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'T' | b'Z' | b'h' | b'm' | b's')
    };
    digits > 0 && word.bytes().all(sign)
}

/// What the name of a file says of the system that it is of, and of the command that printed it.
#[must_use]
pub fn of_file(name: &str) -> Called {
    let base = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let (stem, other) = without_endings(base);
    // Dashes are inside of names, too: they divide only where a command follows.
    let parts: Vec<&str> = stem.split(['_', '.', ' ']).filter(|part| !part.is_empty()).collect();
    let found = parts.iter().enumerate().find_map(|(at, part)| {
        let mut start = 0;
        for word in part.split('-') {
            if prompt::is_asked(word) || word == "ioscli" {
                return Some((at, part[..start].trim_end_matches('-'), &part[start..]));
            }
            start += word.len() + 1;
        }
        None
    });
    let Some((at, before, rest)) = found else {
        return of_device(&parts, other).unwrap_or_else(|| plain(&parts, other));
    };
    let mut words: Vec<&str> = rest.split('-').collect();
    words.extend(parts[at + 1..].iter().flat_map(|part| part.split('-')));
    words.retain(|word| !word.is_empty());
    let of_host = |word: &str| looks_like_host(word);
    if words.len() > 1
        && words.last().copied() == other
        && other.is_some_and(|ending| !is_device(ending))
    {
        words.pop();
    }
    let ahead: Vec<&str> =
        parts[..at].iter().copied().chain(Some(before)).filter(|part| !part.is_empty()).collect();
    // `lspath_erpdb1`, `lspath_erpdb1_20260302`
    while words.len() > 2 && words.last().is_some_and(|last| is_time(last) && last.len() > 3) {
        words.pop();
    }
    // `entstat.vios1.ent8`
    let mut like = words.iter().skip(1).copied().filter(|word| of_host(word));
    let behind = like
        .next()
        .filter(|_| like.next().is_none() && ahead.is_empty() && !other.is_some_and(may_be_host));
    // `lsmap_npiv_muc-vio-1`
    let whole = || {
        let mut like = parts[at + 1..].iter().filter(|part| part.contains('-') && of_host(part));
        like.next().copied().filter(|_| like.next().is_none() && ahead.is_empty())
    };
    let behind = behind.or_else(whole);
    if let Some(behind) = behind {
        words.retain(|word| *word != behind && !behind.split('-').any(|part| part == *word));
    }
    let named = match (&ahead[..], other) {
        ([before], _) if may_be_host(before) => Some(*before),
        // `prod_vios1_lspath`, `vios1.example.com_lspath`
        ([_, _, ..], _) => ahead.iter().rev().copied().find(|word| looks_like_host(word)),
        ([], Some(ending)) if may_be_host(ending) => Some(ending),
        ([], _) => behind.or_else(|| of_folder(name)),
        _ => None,
    };
    Called {
        host: named.map(str::to_ascii_lowercase),
        sure: named.is_some(),
        command: command(&words),
        device: None,
    }
}

/// A name with a device in it and no command: `vios1_fcs0`, `fcs0-vios1-20261124`.
fn of_device(parts: &[&str], other: Option<&str>) -> Option<Called> {
    let words = || parts.iter().flat_map(|part| part.split('-')).filter(|word| !word.is_empty());
    let mut devices = words().filter(|word| text::is_device_alone(word));
    let (device, None) = (devices.next()?, devices.next()) else { return None };
    let without: Vec<String> = parts
        .iter()
        .map(|part| {
            let words = part.split('-').filter(|word| *word != device);
            words.collect::<Vec<_>>().join("-")
        })
        .filter(|part| !part.is_empty())
        .collect();
    let without: Vec<&str> = without.iter().map(String::as_str).collect();
    Some(Called { device: Some(device.to_owned()), ..plain(&without, other) })
}

/// A host's folder holds files that are called by commands alone: `vios1/lsmap_all.txt`, `vios1_before/lsmap_all.txt`.
fn of_folder(name: &str) -> Option<&str> {
    let (folders, _) = name.rsplit_once(['/', '\\'])?;
    let folder = folders.rsplit(['/', '\\']).next()?;
    let mut parts = folder.split('_').filter(|part| !is_time(part) && !is_plain_word(part));
    let one = parts.next().filter(|_| parts.next().is_none());
    let folder = one.unwrap_or(folder);
    let dashes = folder.matches(['-', '_', '.']).count();
    (dashes <= 1 && looks_like_host(folder)).then_some(folder)
}

/// The name without the endings that tell of its form, and the ending that tells of none.
fn without_endings(base: &str) -> (&str, Option<&str>) {
    let mut stem = base;
    while let Some((before, ending)) =
        stem.rsplit_once('.').filter(|(before, _)| !before.is_empty())
    {
        if !ENDINGS.contains(&ending.to_ascii_lowercase().as_str()) {
            return (stem, Some(ending));
        }
        stem = before;
    }
    (stem, None)
}

/// A name without a command: one word, but for times and what people call files by.
fn plain(parts: &[&str], ending: Option<&str>) -> Called {
    let mut left: Vec<&str> =
        parts.iter().copied().filter(|part| !is_time(part) && !is_plain_word(part)).collect();
    // The form of the file may be of somebody's own.
    if ending.is_some()
        && left.len() > 1
        && left.last().copied() == ending
        && !looks_like_host(left[left.len() - 1])
    {
        left.pop();
    }
    let mut like = left.iter().copied().filter(|part| looks_like_host(part));
    let mut name = match (&left[..], like.next(), like.next()) {
        ([name], ..) => *name,
        (_, Some(name), None) => name,
        _ => return Called::default(),
    };
    // `gvio1-sea`, `sv1-20260302-2215`
    while let Some((before, last)) = name.rsplit_once('-').filter(|(_, last)| {
        is_time(last) && last.len() > 3
            || is_plain_word(last) && last.bytes().any(|byte| byte.is_ascii_alphabetic())
    }) {
        let _ = last;
        name = before;
    }
    match may_be_host(name) {
        true => Called {
            host: Some(name.to_ascii_lowercase()),
            sure: looks_like_host(name),
            command: None,
            device: None,
        },
        false => Called::default(),
    }
}

/// The command in a file's name, as far as it can be spelt again: `lsdev_dev_ent6_attr`.
fn command(words: &[&str]) -> Option<String> {
    let mut words = words.iter().copied().skip_while(|word| *word == "ioscli");
    let mut typed = words.next()?.to_owned();
    for word in words {
        // A list of fields is written with the sign that divides words here, and times are when it was printed.
        if matches!(word, "F" | "fmt" | "head" | "tail" | "grep" | "egrep") {
            return None;
        }
        if is_time(word) && word.len() > 3 {
            break;
        }
        let bare = is_device(word) || word.bytes().all(|byte| byte.is_ascii_digit());
        typed.push(' ');
        if !bare {
            typed.push('-');
        }
        // `lsattr-el-fcs0`
        typed.push_str(if word == "el" { "El" } else { word });
    }
    Some(typed)
}

/// The host before a command, as somebody announces it: `vios1: `, and behind marks `vios1 20260302-2215 --- `. `Some(None)`
/// where what stands there is a word for the command that follows.
pub(super) fn before_command(text: &str) -> Option<Option<&str>> {
    let marks = |c: char| matches!(c, '+' | '=' | '#' | '*' | '-' | '>' | ' ' | ':' | '|');
    let text = text.trim_end_matches(marks);
    let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty());
    let first = words.next()?.trim_end_matches(':');
    if !words.all(|word| is_time(word) || is_of_date(word)) {
        return None;
    }
    match may_be_host(first) {
        true => Some(Some(first)),
        false => {
            matches!(first.to_ascii_lowercase().as_str(), "command" | "cmd" | "run" | "output")
                .then_some(None)
        }
    }
}

/// A word of what `date` prints.
fn is_of_date(word: &str) -> bool {
    ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].contains(&word)
        || prompt::MONTHS.contains(&word)
        || (3..=5).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_order() {
        assert!(WORDS.is_sorted());
    }

    #[test]
    fn hosts_and_commands_of_files() {
        for (name, host, sure, command) in [
            ("/a/b/vioA.ioscli_lsmap_all_npiv", Some("vioa"), true, Some("lsmap -all -npiv")),
            ("erpdb.lsattr", Some("erpdb"), true, Some("lsattr")),
            ("lspath_erpdb1_20260302.txt", Some("erpdb1"), true, Some("lspath")),
            ("prod_vios1_lsmap_all.txt", Some("vios1"), true, Some("lsmap -all")),
            ("vios1.example.com_lsnports.out", Some("vios1"), true, Some("lsnports")),
            ("check_vios1_20260302.txt", Some("vios1"), true, None),
            ("vios1_vios2.txt", None, false, None),
            ("entstat.vios1.ent8.txt", Some("vios1"), true, Some("entstat ent8")),
            ("fcstat.vios1.fcs0.0900.txt", Some("vios1"), true, Some("fcstat fcs0")),
            ("case/vios1/lsmap_all_net.txt", Some("vios1"), true, Some("lsmap -all -net")),
            ("case-of-11-may/lsmap_all.txt", None, false, Some("lsmap -all")),
            ("tvio2_entstat_all_ent12.txt", Some("tvio2"), true, Some("entstat -all ent12")),
            ("phx-vios-b-lspath.log", Some("phx-vios-b"), true, Some("lspath")),
            ("entstat_all_ent6.jv1", Some("jv1"), true, Some("entstat -all ent6")),
            ("lspath_erpdb1.txt", Some("erpdb1"), true, Some("lspath")),
            ("lsattr-el-fcs0.dsh", None, false, Some("lsattr -El fcs0")),
            ("ansible_lsattr-el-fcs0.out", None, false, Some("lsattr -El fcs0")),
            ("cvio1_lparstat_10_8.out", Some("cvio1"), true, Some("lparstat 10 8")),
            ("hmc7_lshwres_r_proc_F_lpar_name.out", Some("hmc7"), true, None),
            ("sv1_20190614-0900.txt", Some("sv1"), true, None),
            ("vios1-20260302-2215.txt", Some("vios1"), true, None),
            ("bvio1.tcpip.snap", Some("bvio1"), true, None),
            ("lsmap_npiv_muc-vio-1.txt", Some("muc-vio-1"), true, Some("lsmap -npiv")),
            ("gvio1-sea.txt", Some("gvio1"), true, None),
            ("bwprd_morning.txt", Some("bwprd"), false, None),
            ("finprod.txt", Some("finprod"), false, None),
            ("phx-vios-b.txt", Some("phx-vios-b"), true, None),
            ("RE_health_check_data.txt", Some("re"), false, None),
        ] {
            let host = host.map(str::to_owned);
            let command = command.map(str::to_owned);
            assert_eq!(of_file(name), Called { host, sure, command, device: None }, "{name}");
        }
    }

    #[test]
    fn what_is_no_host() {
        for name in [
            "before.txt",
            "capture1.txt",
            "0.txt",
            "a.txt",
            "step2.log",
            "20260302T221500Z",
            "fcs0.txt",
            "datavg1.txt",
            "-",
            "",
        ] {
            assert_eq!(of_file(name).host, None, "{name}");
        }
    }
}
