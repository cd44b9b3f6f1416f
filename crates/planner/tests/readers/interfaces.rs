//! `netstat -in`, `ip -s link`, `ethtool` and what an HMC refuses.

use super::{only, read};
use planner::capture::Interface;

fn said(one: &Interface) -> (&str, Option<u64>, Option<&str>, Option<bool>) {
    let mac = one.mac.as_ref().map(|read| read.value.as_str());
    (&one.name.value, one.mtu.map(|read| read.value), mac, one.up.map(|read| read.value))
}

#[test]
fn interfaces_of_aix_have_a_row_for_each_address() {
    let captures = read("netstat-in");
    let list = only(captures.interfaces_all());
    let all: Vec<_> = list.interfaces.iter().map(said).collect();
    assert_eq!(
        all,
        [
            ("en0", Some(1500), Some("fa:2b:c9:89:57:0b"), None),
            ("en1", Some(9000), Some("fa:2b:c9:89:57:0c"), None),
            ("lo0", Some(16896), None, None),
        ]
    );
    let one = &list.interfaces[0];
    assert_eq!(one.networks, ["10.41.0"]);
    assert_eq!(one.received.packets.map(|read| (read.value, read.at.line)), Some((84_637_372, 3)));
    assert_eq!(one.sent.packets.map(|read| read.value), Some(300_552_564));
    assert_eq!(list.head.unread, []);
}

#[test]
fn interfaces_of_linux_tell_their_link_and_what_they_drop() {
    let captures = read("ip-link");
    let list = only(captures.interfaces_all());
    let all: Vec<_> = list.interfaces.iter().map(said).collect();
    let eth = |last: char| format!("fa:33:91:2b:0c:2{last}");
    assert_eq!(
        all,
        [
            ("lo", Some(65536), Some("00:00:00:00:00:00"), Some(true)),
            ("eth0", Some(1500), Some(eth('0').as_str()), Some(true)),
            ("eth1", Some(9000), Some(eth('1').as_str()), Some(false)),
        ]
    );
    let one = &list.interfaces[1];
    let values =
        [one.received.packets, one.received.errors, one.received.dropped, one.sent.dropped];
    assert_eq!(
        values.map(|read| read.map(|read| read.value)),
        [Some(812_345_678), Some(1), Some(9_912_345), Some(2)]
    );
    assert_eq!(list.head.unread, []);
}

#[test]
fn counters_of_a_driver_and_its_link_are_of_the_interface_that_was_asked() {
    let captures = read("ethtool");
    let all: Vec<_> = captures.interfaces_all().collect();
    assert_eq!(all.len(), 2);
    let one = &all[0].interfaces[0];
    assert_eq!(
        (
            one.name.value.as_str(),
            one.received.dropped.map(|read| read.value),
            one.sent.errors.map(|read| read.value)
        ),
        ("eth0", Some(112_345), Some(3))
    );
    assert_eq!(said(&all[1].interfaces[0]), ("eth1", None, None, Some(false)));
}

#[test]
fn what_an_hmc_refuses_has_a_code_and_its_details() {
    let captures = read("migrlpar");
    let list = only(captures.hmc_messages_all());
    let codes: Vec<&str> = list.messages.iter().map(|one| one.code.as_str()).collect();
    assert_eq!(codes, ["HSCLA319", "HSCLA29A"]);
    assert!(list.messages[0].text.ends_with("on the destination managed system."), "{list:#?}");
    assert!(list.messages[1].text.ends_with("The OS command return code is: 69"), "{list:#?}");
}

#[test]
fn counts_whose_digits_are_grouped_are_read() {
    let plain = String::from_utf8(super::fixture("entstat-memory")).unwrap();
    let number = |word: &str| word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    let grouped = |word: &str| {
        let places = word.char_indices().map(|(at, digit)| match (word.len() - at) % 3 {
            0 if at > 0 => format!(",{digit}"),
            _ => digit.to_string(),
        });
        places.collect::<String>()
    };
    let mut other = String::new();
    for line in plain.lines() {
        let text = match line.split_once(": ") {
            // Counters, and neither identifiers nor sizes.
            Some(_)
                if ["Packets", "Bytes", "Failures", "Errors"]
                    .iter()
                    .any(|word| line.contains(word)) =>
            {
                line.split(' ')
                    .map(|word| if number(word) { grouped(word) } else { word.to_owned() })
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            _ => line.to_owned(),
        };
        other += &text;
        other.push('\n');
    }
    assert_ne!(plain, other);
    let counters = |text: &str| {
        let captures = super::read_bytes(text.as_bytes());
        let all: Vec<_> = captures.entstats().flat_map(|run| run.adapters.clone()).collect();
        all.iter()
            .map(|one| (one.received.packets, one.transmitted.bytes, one.received.no_resource))
            .collect::<Vec<_>>()
    };
    assert_eq!(counters(&plain), counters(&other));
}

#[test]
fn a_cluster_is_read_as_verbose_prints_it() {
    let captures = read("cluster-status-verbose");
    let list = only(captures.cluster_statuses());
    assert_eq!(
        list.clusters
            .iter()
            .map(|(name, state)| (name.as_str(), state.value.as_str()))
            .collect::<Vec<_>>(),
        [("prod", "DEGRADED")]
    );
    let nodes: Vec<_> = list
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.state.as_str(), node.pool_state.as_deref()))
        .collect();
    assert_eq!(nodes, [("lyra1", "OK", Some("OK")), ("lyra2", "DOWN", None)]);
}
