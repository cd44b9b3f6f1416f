//! `seastat`: how it is typed, and what it prints.

use super::text::lines;
use super::words::Takes::{Nothing, One};
use super::words::{Syntax, flag};
use control::server::{PassedView, SeaClientView};

pub(super) const SEASTAT: Syntax = Syntax {
    name: "seastat",
    about: "what each client sends and gets by a shared Ethernet adapter",
    usage: &["-d SEA [-n]", "-d SEA -c"],
    flags: &[
        flag("-d", One, "SEA", "the shared Ethernet adapter"),
        flag("-n", Nothing, "", "taken, and changes nothing: no name is asked for"),
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
