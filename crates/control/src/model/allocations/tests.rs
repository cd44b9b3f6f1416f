//! What is given out, and kept.

use super::*;
use crate::model::{samples, validate::validate};

const PREFIX: &str = "[dataplane.main]\nwwpn_prefix=\"c0:50:76:00:00:01\"\n";

fn state(text: &str, before: &Desired) -> Result<Desired, ApiError> {
    let mut desired = crate::config::read(&format!("{PREFIX}{text}")).unwrap();
    settle(before, &mut desired, 42)?;
    validate(&desired, &samples::paths())
}

fn adapters(names: &[&str]) -> String {
    names.iter().map(|name| format!("[adapter.{name}]\nkind=\"fc\"\n")).collect()
}

fn pair(desired: &Desired, adapter: &str) -> String {
    attr::adapter::WWPNS.of(&desired[Object::Adapter][adapter]).unwrap().to_owned()
}

#[test]
fn an_object_keeps_what_it_was_given() {
    let first = state(&adapters(&["f", "g"]), &Desired::default()).unwrap();
    assert_eq!(pair(&first, "f"), "c0:50:76:00:00:01:00:00,c0:50:76:00:00:01:00:01");
    let second = state(&adapters(&["e", "f", "g"]), &first).unwrap();
    assert_eq!((pair(&second, "f"), pair(&second, "g")), (pair(&first, "f"), pair(&first, "g")));
    assert_eq!(pair(&second, "e"), "c0:50:76:00:00:01:00:04,c0:50:76:00:00:01:00:05");
    assert_eq!(state(&adapters(&["e", "f", "g"]), &second).unwrap(), second);
}

/// Its name is made of it, and must not change when the first adapter comes.
#[test]
fn a_server_with_a_port_alone_has_its_number() {
    let first = state("[port.fcs0]\n", &Desired::default()).unwrap();
    assert_eq!((first.allocations.system, of_system(&first)), (Some(42), Prefix::of_system(42)));
    let none = state("", &Desired::default()).unwrap();
    assert_eq!(none.allocations.system, None);
}

#[test]
fn nothing_is_given_again_after_a_removal() {
    let first = state(&adapters(&["f"]), &Desired::default()).unwrap();
    let none = state("", &first).unwrap();
    let again = state(&adapters(&["f"]), &none).unwrap();
    assert_eq!(pair(&again, "f"), "c0:50:76:00:00:01:00:02,c0:50:76:00:00:01:00:03");
}

#[test]
fn what_people_chose_is_given_to_nobody_else() {
    let chosen = "[adapter.f]\nkind=\"fc\"\nwwpns=\"c050760000010000,c050760000010002\"\n";
    let first = state(chosen, &Desired::default()).unwrap();
    let second = state(&adapters(&["g"]), &first).unwrap();
    assert_eq!(pair(&second, "g"), "c0:50:76:00:00:01:00:04,c0:50:76:00:00:01:00:05");
    // And what was given to one cannot be chosen for another.
    let both = format!("{}{chosen}", adapters(&["g"])).replace("10000,", "10004,");
    let refusal = state(&both, &second).unwrap_err();
    assert!(refusal.message.contains("c0:50:76:00:00:01:00:04 is a WWPN of"), "{refusal}");
}

#[test]
fn a_prefix_that_is_used_up_is_refused_with_another() {
    let mut before = state("", &Desired::default()).unwrap();
    let main: Prefix = "c0:50:76:00:00:01".parse().unwrap();
    while before.allocations.wwpns.take_pair(main).is_ok() {}
    assert_eq!(pairs_left(&state("", &before).unwrap()), 0);
    let refusal = state(&adapters(&["f"]), &before).unwrap_err();
    assert_eq!(
        refusal.message,
        "adapter `f`: all WWPNs of the prefix c0:50:76:00:00:01 were given out"
    );
    assert!(refusal.help.unwrap().contains("--wwpn-prefix c0:50:76:00:00:02"));
}

#[test]
fn targets_have_numbers_that_stay() {
    let all = "[target.a]\n[target.b]\n[target.c]\n";
    let first = state(all, &Desired::default()).unwrap();
    let id = |desired: &Desired, name: &str| attr::target::ID.of(&desired[Object::Target][name]);
    assert_eq!(["a", "b", "c"].map(|name| id(&first, name)), [Some(0), Some(1), Some(2)]);
    let second = state(&all.replace("[target.a]\n", ""), &first).unwrap();
    assert_eq!(["b", "c"].map(|name| id(&second, name)), [Some(1), Some(2)]);
    let third = state("[target.0a]\n".replace("0a", "d").as_str(), &second).unwrap();
    assert_eq!(id(&third, "d"), Some(0));
    let many: String = (0..257).map(|n| format!("[target.t{n}]\n")).collect();
    assert!(state(&many, &Desired::default()).unwrap_err().message.contains("256"));
}

#[test]
fn devices_have_luns_that_stay() {
    let text = "[adapter.s]\nkind=\"scsi\"\n[vtd.a]\nkind=\"optical\"\nadapter=\"s\"\n\
                [vtd.b]\nkind=\"optical\"\nadapter=\"s\"\n";
    let first = state(text, &Desired::default()).unwrap();
    assert_eq!(attr::vtd::LUN.of(&first[Object::Vtd]["b"]), Some(1));
    let rest = text.replace("[vtd.a]\nkind=\"optical\"\nadapter=\"s\"\n", "");
    assert_eq!(attr::vtd::LUN.of(&state(&rest, &first).unwrap()[Object::Vtd]["b"]), Some(1));
}

const CARDS: &str = r#"
    [network.net0]
    mtu = 9000
    [adapter.ent0]
    kind = "ethernet"
    network = "net0"
    [adapter.ent1]
    kind = "ethernet"
    network = "net0"
    pvid = 10
    vlans = "20-21"
    queues = 2
"#;

#[test]
fn a_network_card_keeps_the_address_that_it_was_given() {
    let mac = |desired: &Desired, name: &str| {
        attr::adapter::MAC.of(&desired[Object::Adapter][name]).unwrap().to_owned()
    };
    let first = state(CARDS, &Desired::default()).unwrap();
    let (one, two) = (mac(&first, "ent0"), mac(&first, "ent1"));
    assert!(one.starts_with("02:") && one != two, "{one} {two}");
    // Applied again, and after a removal: what was given out is nobody else's.
    let again = state(CARDS, &first).unwrap();
    assert_eq!((mac(&again, "ent0"), mac(&again, "ent1")), (one.clone(), two.clone()));
    let fewer = state("[network.net0]", &again).unwrap();
    let anew = state(CARDS, &fewer).unwrap();
    assert!(![&one, &two].contains(&&mac(&anew, "ent0")), "{one} was given out twice");

    let wanted = crate::model::resolve::wanted(&first, "main", &samples::paths());
    let spec::DeviceSpec::Ethernet(card) = &wanted.adapters["ent1"].device else {
        panic!("{:?}", wanted.adapters["ent1"]);
    };
    assert_eq!((card.mtu, card.pvid, &card.vids[..]), (9000, 10, &[20, 21][..]));
    assert_eq!(wanted.adapters["ent1"].queues, 4, "two for each pair");
}

#[test]
fn what_is_wrong_with_a_network_card_is_said() {
    let refused =
        |text: &str| state(&format!("{CARDS}{text}"), &Desired::default()).unwrap_err().message;
    let card = "[adapter.ent2]\nkind = \"ethernet\"\nnetwork = \"net0\"\n";
    for (line, what) in [
        ("mac = \"01:00:5e:00:00:01\"", "no MAC address of a station"),
        ("vlans = \"5-\"", "no list of VLANs"),
        ("queues = 129", "more than vhost-user can name"),
        (
            "mac = \"02:00:00:00:00:07\"\n[adapter.ent3]\nkind = \"ethernet\"\nnetwork = \"net0\"\nmac = \"02:00:00:00:00:07\"",
            "has the MAC address of adapter `ent2`",
        ),
        ("dataplane = \"side\"\n[dataplane.side]", "its network `net0` is in data plane `main`"),
    ] {
        let error = refused(&format!("{card}{line}"));
        assert!(error.contains(what), "{line}: {error}");
    }
}
