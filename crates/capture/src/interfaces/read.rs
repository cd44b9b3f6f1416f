//! Reads `netstat -i` and `ip link`.

use super::{Interface, Interfaces, Packets};
use crate::page::Page;
use crate::recognise::words;
use crate::text::Line;
use crate::{At, Read, Report};

/// What the rows are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `Name  Mtu  Network  Address  Ipkts Ierrs Opkts Oerrs Coll`
    Aix,
    /// `Iface  MTU  RX-OK RX-ERR RX-DRP RX-OVR  TX-OK …`
    NetTools,
}

fn form(text: &str) -> Option<Form> {
    match () {
        () if words(text, &["Name", "Mtu", "Network"]) => Some(Form::Aix),
        () if words(text, &["Iface", "MTU"]) => Some(Form::NetTools),
        () => None,
    }
}

fn number(text: &str, at: At) -> Option<Read<u64>> {
    text.parse().ok().map(|value| Read { value, at })
}

fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(fits)
}

/// `b2.4a.7f.b2.d1.4b` of AIX, which leaves leading zeros out, and `fa:33:91:2b:0c:20`.
fn mac(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(['.', ':']).collect();
    let is_byte = |part: &&str| {
        matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let padded = || parts.iter().map(|part| format!("{part:0>2}").to_ascii_lowercase());
    (parts.len() == 6 && parts.iter().all(is_byte)).then(|| padded().collect::<Vec<_>>().join(":"))
}

/// A row of AIX: the counters stand last, and an address may be missing before them.
fn of_aix(found: &[&str], at: At) -> Option<Interface> {
    let [name, mtu, network, .., received, lost, sent, unsent, _] = found else { return None };
    let read = |text: &str| number(text, at);
    // An interface that is down has a star.
    let name = name.trim_end_matches('*');
    let address = (found.len() == 9).then(|| found[3]);
    let of_link = network.starts_with("link#");
    Some(Interface {
        name: Read { value: name.to_owned(), at },
        mtu: Some(read(mtu)?),
        mac: address.filter(|_| of_link).and_then(mac).map(|value| Read { value, at }),
        networks: (!of_link).then(|| (*network).to_owned()).into_iter().collect(),
        up: None,
        received: Packets {
            packets: Some(read(received)?),
            errors: Some(read(lost)?),
            dropped: None,
        },
        sent: Packets { packets: Some(read(sent)?), errors: Some(read(unsent)?), dropped: None },
    })
}

fn of_net_tools(found: &[&str], at: At) -> Option<Interface> {
    // Older ones have `Met` behind the MTU.
    let counters = found.get(found.len().checked_sub(9)?..found.len() - 1)?;
    let values: Option<Vec<Read<u64>>> = counters.iter().map(|text| number(text, at)).collect();
    let values = values?;
    let [received, lost, dropped, _, sent, unsent, unsent_dropped, _] = values[..] else {
        return None;
    };
    Some(Interface {
        name: Read { value: (*found.first()?).to_owned(), at },
        mtu: Some(number(found.get(1)?, at)?),
        mac: None,
        networks: Vec::new(),
        up: None,
        received: Packets { packets: Some(received), errors: Some(lost), dropped: Some(dropped) },
        sent: Packets { packets: Some(sent), errors: Some(unsent), dropped: Some(unsent_dropped) },
    })
}

/// `2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP …`: the name, and what follows it.
fn ip_row(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=5).contains(&digits) {
        return None;
    }
    let (name, rest) = text[digits..].strip_prefix(": ")?.split_once(": <")?;
    // `eth0@if5`
    let name = name.split('@').next()?;
    (is_name(name) && rest.contains("> mtu ")).then_some((name, rest))
}

/// Whether a line begins an interface of `ip link`.
pub(crate) fn is_ip_row(text: &str) -> bool {
    ip_row(text).is_some()
}

fn of_ip(name: &str, rest: &str, at: At) -> Interface {
    let (flags, rest) = rest.split_once('>').unwrap_or((rest, ""));
    let has = |flag: &str| flags.split(',').any(|other| other == flag);
    let mut found = rest.split_ascii_whitespace();
    let mtu = found.by_ref().find(|word| *word == "mtu").and_then(|_| found.next());
    // Taken out of use by somebody, it has no link either: nothing is said of it then.
    let up = match (has("UP"), has("LOWER_UP"), has("NO-CARRIER")) {
        (true, true, false) => Some(true),
        (true, _, true) => Some(false),
        _ => None,
    };
    Interface {
        name: Read { value: name.to_owned(), at },
        mtu: mtu.and_then(|text| number(text, at)),
        mac: None,
        networks: Vec::new(),
        up: up.map(|value| Read { value, at }),
        received: Packets::default(),
        sent: Packets::default(),
    }
}

/// `bytes  packets  errors  dropped …`, in the order in which the heading has them.
fn of_direction(columns: &str, row: &str, at: At) -> Option<Packets> {
    let names: Vec<&str> = columns.split_ascii_whitespace().collect();
    let values: Option<Vec<Read<u64>>> =
        row.split_ascii_whitespace().map(|text| number(text, at)).collect();
    let values = values.filter(|values| values.len() + 1 >= names.len() && values.len() >= 4)?;
    let of = |name: &str| {
        let place = names.iter().position(|other| *other == name)?;
        values.get(place).copied()
    };
    Some(Packets { packets: of("packets"), errors: of("errors"), dropped: of("dropped") })
}

/// Takes a line below the first one of an interface of `ip`.
fn below(page: &mut Page<'_>, one: &mut Interface, line: Line<'_>) -> bool {
    let text = line.trimmed();
    let columns = |start: &str| text.strip_prefix(start);
    let taken = if let Some(rest) = text.strip_prefix("link/") {
        let address = rest.split_ascii_whitespace().nth(1).and_then(mac);
        one.mac = address.map(|value| Read { value, at: line.at });
        true
    } else if let Some((columns, is_received)) =
        columns("RX:").map(|rest| (rest, true)).or_else(|| columns("TX:").map(|rest| (rest, false)))
    {
        let mut ahead = page.ahead();
        ahead.next();
        let Some(row) = ahead.peek() else { return false };
        let Some(packets) = of_direction(columns, row.trimmed(), row.at) else { return false };
        page.take();
        *if is_received { &mut one.received } else { &mut one.sent } = packets;
        true
    } else {
        ["inet ", "inet6 ", "valid_lft ", "altname ", "vf ", "alias ", "RX errors:", "TX errors:"]
            .iter()
            .any(|start| text.starts_with(start))
    };
    taken && page.take().is_some()
}

/// The counters of `ethtool -S` that drivers call differently: of each the first of these names.
const OF_DRIVER: [(&str, Counted); 12] = [
    ("rx_packets", |one| &mut one.received.packets),
    ("rx_errors", |one| &mut one.received.errors),
    ("rx_crc_errors", |one| &mut one.received.errors),
    ("rx_crc_errors_phy", |one| &mut one.received.errors),
    // That of a virtual Ethernet adapter (ibmveth).
    ("rx_no_buffer", |one| &mut one.received.dropped),
    ("rx_dropped", |one| &mut one.received.dropped),
    ("rx_out_of_buffer", |one| &mut one.received.dropped),
    ("rx_missed_errors", |one| &mut one.received.dropped),
    ("tx_packets", |one| &mut one.sent.packets),
    ("tx_errors", |one| &mut one.sent.errors),
    ("tx_send_failed", |one| &mut one.sent.errors),
    ("tx_dropped", |one| &mut one.sent.dropped),
];

type Counted = fn(&mut Interface) -> &mut Option<Read<u64>>;

/// `ethtool -S eth0`, `ethtool eth0`: of the interface that the command names, or the heading.
pub(crate) fn ethtool(page: &mut Page<'_>) -> Option<Report> {
    let first = page.peek()?;
    let named =
        first.trimmed().strip_prefix("Settings for ").map(|rest| rest.trim_end_matches(':'));
    let name = named.or(page.device())?.to_owned();
    let mut one = Interface {
        name: Read { value: name.clone(), at: first.at },
        mtu: None,
        mac: None,
        networks: Vec::new(),
        up: None,
        received: Packets::default(),
        sent: Packets::default(),
    };
    if named.is_none() && first.trimmed() != "NIC statistics:" {
        return None;
    }
    page.take();
    page.device_is(&name, first.at);
    while let Some(line) = page.peek() {
        let Some((key, value)) = line.trimmed().split_once(':') else {
            // Lists of link modes go on below their key.
            match page.passes(line) {
                true => continue,
                false => break,
            }
        };
        if key == "Link detected" {
            one.up = Some(Read { value: value.trim() == "yes", at: line.at });
        } else if let Some((_, place)) = OF_DRIVER.iter().find(|(name, _)| *name == key)
            && let Some(read) = number(value.trim(), line.at)
        {
            let place = place(&mut one);
            if place.is_none_or(|known| known.value < read.value) {
                *place = Some(read);
            }
        }
        if !page.passes(line) {
            break;
        }
    }
    let told =
        one.up.is_some() || one.received != Packets::default() || one.sent != Packets::default();
    told.then(|| Report::Interfaces(Interfaces { head: page.close(), interfaces: vec![one] }))
}

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut table: Option<Form> = None;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if let Some(found) = form(text) {
            if table.is_some() || !interfaces.is_empty() {
                break;
            }
            table = Some(found);
            page.take();
        } else if let Some((name, rest)) = ip_row(text).filter(|_| table.is_none()) {
            // The list begins again.
            if interfaces.iter().any(|one| one.name.value == name) {
                break;
            }
            page.take();
            interfaces.push(of_ip(name, rest, line.at));
        } else if let Some(one) = table.and_then(|form| row(form, text, line.at)) {
            page.take();
            add(&mut interfaces, one);
        } else if table.is_none()
            && let Some(one) = interfaces.last_mut()
            && below(page, one, line)
        {
        } else if !page.goes_on(line) {
            break;
        }
    }
    (!interfaces.is_empty())
        .then(|| Report::Interfaces(Interfaces { head: page.close(), interfaces }))
}

fn row(form: Form, text: &str, at: At) -> Option<Interface> {
    let found: Vec<&str> = text.split_ascii_whitespace().collect();
    if !found.first().is_some_and(|name| is_name(name.trim_end_matches('*'))) {
        return None;
    }
    match form {
        Form::Aix => of_aix(&found, at),
        Form::NetTools => of_net_tools(&found, at),
    }
}

/// The rows of one interface tell the same counters again.
fn add(interfaces: &mut Vec<Interface>, one: Interface) {
    match interfaces.iter_mut().find(|known| known.name.value == one.name.value) {
        Some(known) => {
            if known.mac.is_none() {
                known.mac = one.mac;
            }
            known.networks.extend(one.networks);
        }
        None => interfaces.push(one),
    }
}
