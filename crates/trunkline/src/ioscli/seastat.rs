//! `seastat`: how it is typed, and what it prints.

use std::net::IpAddr;

use super::text::lines;
use super::words::Takes::{Nothing, One};
use super::words::{Syntax, flag};
use super::wrong;
use crate::exit::Failure;
use control::server::{PassedView, SeaClientView};

pub(super) const SEASTAT: Syntax = Syntax {
    name: "seastat",
    about: "what each client sends and gets by a shared Ethernet adapter",
    usage: &["-d SEA [-n | -s CRITERION=VALUE …]", "-d SEA -c"],
    flags: &[
        flag("-d", One, "SEA", "the shared Ethernet adapter"),
        flag("-n", Nothing, "", "taken, and changes nothing: no name is asked for"),
        flag("-s", One, "CRITERION=VALUE", "those alone of which this is printed: mac, vlan or ip; of several all"),
        flag("-c", Nothing, "", "clear: the counts begin anew with nothing"),
    ],
    plain: 0,
    notes: "\
Nothing is counted before `chdev -dev SEA -attr accounting=enabled`. Transmit Statistics are what the client sent to the world outside, Receive Statistics what came from there for it; \
what is sent to groups is counted for who sends it, and for nobody who gets it. IP is the last address that the client said to be its own (ARP, neighbour advertisements), one of IPv4 before others. \
VLAN is None for frames that have no tag outside, and VLAN Priority that of the last frame with a tag. A frame that is cut into segments on its way is one packet. `trunkline sea clients SEA` has the same, and sums \
by trunk adapter.
",
};

/// What `-s` names: those clients are shown of which all of it is printed.
pub(super) fn criteria(typed: &[String]) -> Result<Vec<Criterion>, Failure> {
    typed.iter().map(|typed| Criterion::read(typed)).collect()
}

/// What a client is looked for by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Criterion {
    Mac(u64),
    /// None: its frames have no tag outside.
    Vlan(Option<u16>),
    Ip(IpAddr),
}

impl Criterion {
    fn read(typed: &str) -> Result<Criterion, Failure> {
        let help = "`-s mac=02:00:5e:00:00:01`, `-s vlan=20`, `-s vlan=None` or `-s ip=10.0.0.7`";
        let no = |what: String| wrong(what, help);
        let (name, value) =
            typed.split_once('=').ok_or_else(|| no(format!("`{typed}` is no CRITERION=VALUE")))?;
        let odd = || no(format!("`{value}` is no {name}"));
        match name {
            "mac" => mac(value).map(Criterion::Mac).ok_or_else(odd),
            "vlan" if value.eq_ignore_ascii_case("none") => Ok(Criterion::Vlan(None)),
            "vlan" => value.parse().map(|vlan| Criterion::Vlan(Some(vlan))).map_err(|_| odd()),
            "ip" => value.parse().map(Criterion::Ip).map_err(|_| odd()),
            "host" => Err(wrong(
                "there are no names of hosts",
                "look for `-s ip=ADDRESS` or `-s mac=MAC`",
            )),
            _ => Err(no(format!("there is no criterion `{name}`"))),
        }
    }

    /// Whether it is printed of a client.
    pub(super) fn fits(self, one: &SeaClientView) -> bool {
        match self {
            Criterion::Mac(wanted) => mac(&one.mac) == Some(wanted),
            Criterion::Vlan(wanted) => wanted == (!one.untagged).then_some(one.vlan),
            Criterion::Ip(wanted) => one.ip.as_ref().and_then(|ip| ip.parse().ok()) == Some(wanted),
        }
    }
}

/// A MAC address, with or without what stands between its bytes.
fn mac(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|c| !matches!(c, ':' | '-' | '.')).collect();
    let is_one = digits.len() == 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| u64::from_str_radix(&digits, 16).ok()).flatten()
}

const RULE: &str =
    "================================================================================";

/// `seastat` of a shared adapter.
pub(super) fn report(sea: &str, clients: &[SeaClientView]) -> String {
    let mut all = vec![
        RULE.to_owned(),
        String::new(),
        "Advanced Statistics for SEA".to_owned(),
        format!("Device Name: {sea}"),
        String::new(),
        RULE.to_owned(),
    ];
    clients.iter().for_each(|one| all.extend(client(one)));
    lines(&all)
}

fn client(one: &SeaClientView) -> Vec<String> {
    let two = |left: String, right: String| format!("{left:<42}{right}");
    let tagged = |number: String| if one.untagged { "None".to_owned() } else { number };
    let heading = format!("MAC: {}", one.mac.to_uppercase());
    let PassedView { sent_frames, sent_bytes, received_frames, received_bytes } = one.passed;
    let mut all = vec![
        String::new(),
        heading.clone(),
        "-".repeat(heading.len()),
        String::new(),
        format!("VLAN: {}", tagged(one.vlan.to_string())),
        format!("VLAN Priority: {}", tagged(one.priority.to_string())),
    ];
    all.extend(one.ip.as_ref().map(|ip| format!("IP: {ip}")));
    all.extend([
        String::new(),
        two("Transmit Statistics:".to_owned(), "Receive Statistics:".to_owned()),
        two("-".repeat(20), "-".repeat(19)),
        two(format!("Packets: {sent_frames}"), format!("Packets: {received_frames}")),
        two(format!("Bytes: {sent_bytes}"), format!("Bytes: {received_bytes}")),
        String::new(),
        RULE.to_owned(),
    ]);
    all
}
