//! The rules of virtual Ethernet adapters and uplinks.

use super::super::{Desired, home, resolve::network, seas};
use crate::error::ApiError;
use fabric::attribute::words::{AdapterKind, Tagging};
use fabric::attribute::{Attribute, Attributes, Object, attr};
use std::collections::BTreeMap;

/// Each adapter by itself, with its network, and beside the others of it.
pub(super) fn check(desired: &Desired) -> Result<(), ApiError> {
    own_names(desired)?;
    vlans(desired)?;
    let cards = desired[Object::Adapter]
        .iter()
        .filter(|(_, set)| attr::adapter::KIND.value(set) == AdapterKind::Ethernet);
    let mut owners: BTreeMap<(&str, [u8; 6]), &str> = BTreeMap::new();
    for (name, set) in cards {
        card(desired, name, set)?;
        let network = attr::adapter::NETWORK.of(set).unwrap_or_default();
        let mac = attr::adapter::MAC.of(set).and_then(network::mac);
        if let Some(mac) = mac
            && let Some(other) = owners.insert((network, mac), name)
        {
            let problem = format!("has the MAC address of adapter `{other}`, in the same network");
            return refuse(
                name,
                &attr::adapter::MAC,
                &problem,
                "leave `mac` out: it is given one of its own",
            );
        }
    }
    mirrors(desired)?;
    seas::check(desired)?;
    uplinks(desired)
}

/// Copies go to an adapter of the same network that waits for them.
fn mirrors(desired: &Desired) -> Result<(), ApiError> {
    use attr::{adapter as a, uplink as u};
    let cards = desired[Object::Adapter].iter().filter_map(|(name, set)| {
        Some((Object::Adapter, name, a::MIRROR.of(set)?, a::NETWORK.of(set)?))
    });
    let uplinks = desired[Object::Uplink].iter().filter_map(|(name, set)| {
        let whose = network::connection(desired, name, set).map(|way| way.network);
        Some((Object::Uplink, name, u::MIRROR.of(set)?, whose.unwrap_or_default()))
    });
    for (object, name, to, whose) in cards.chain(uplinks) {
        let refuse = |problem: String, help: String| {
            let problem = format!("{object} `{name}`: {problem}");
            Err(ApiError::invalid(problem).on(a::MIRROR.name).help(help))
        };
        let Some(monitor) = desired[Object::Adapter].get(to) else {
            let problem = format!("there is no adapter `{to}`, which its `mirror` names");
            return refuse(problem, "take `mirror` off it, or name one that is there".to_owned());
        };
        if a::KIND.value(monitor) != AdapterKind::Ethernet || !a::MONITOR.value(monitor) {
            let problem = format!("adapter `{to}` does not wait for copies");
            return refuse(problem, format!("set `monitor` of `{to}`, or name one that has it"));
        }
        if a::NETWORK.of(monitor) != Some(whose) {
            let there = a::NETWORK.of(monitor).unwrap_or_default();
            let problem = format!("adapter `{to}` is of another network, `{there}`");
            return refuse(problem, "name an adapter of the same network".to_owned());
        }
        if to == name {
            let problem = "it cannot watch itself".to_owned();
            return refuse(problem, "name another adapter of the same network".to_owned());
        }
    }
    Ok(())
}

/// By these names devices of networks are known in statistics and to the original's commands.
fn own_names(desired: &Desired) -> Result<(), ApiError> {
    let kinds = [Object::Adapter, Object::Uplink, Object::Trunk, Object::Sea];
    for (at, object) in kinds.iter().enumerate() {
        for (name, _) in &desired[*object] {
            let Some(other) = kinds[..at].iter().find(|other| desired[**other].contains_key(name))
            else {
                continue;
            };
            let problem = format!("{object} `{name}`: {other} `{name}` has this name");
            return Err(ApiError::invalid(problem).on("name").help("choose another name"));
        }
    }
    Ok(())
}

/// Lists of VLANs can be read.
fn vlans(desired: &Desired) -> Result<(), ApiError> {
    use attr::{adapter, trunk, uplink};
    let lists = [
        (Object::Adapter, adapter::VLANS),
        (Object::Uplink, uplink::VLANS),
        (Object::Trunk, trunk::VLANS),
    ];
    for (object, attribute) in lists {
        for (name, set) in &desired[object] {
            let text = attribute.value(set);
            if network::vlans(text).is_none() {
                let problem =
                    format!("{object} `{name}`: `{text}` is no list of VLANs from 1 to 4094");
                return Err(ApiError::invalid(problem)
                    .on(attribute.name)
                    .help("write it as 10,20-29"));
            }
            if !text.is_empty() && tunnels(object, set) {
                let problem = format!("{object} `{name}`: all of a tunnel is of the VLAN `pvid`");
                return Err(ApiError::invalid(problem)
                    .on(attribute.name)
                    .help("leave `vlans` out, or set another `tagging`"));
            }
        }
    }
    Ok(())
}

/// Whether no tag of its frames says their VLAN.
fn tunnels(object: Object, set: &Attributes) -> bool {
    match object {
        Object::Adapter => attr::adapter::TAGGING.value(set) == Tagging::Tunnel,
        Object::Uplink => attr::uplink::TAGGING.value(set) == Tagging::Tunnel,
        _ => false,
    }
}

/// Each uplink by itself, and beside the others: no interface has two, and no VLAN of a network has two ways to the world outside, which would be a
/// loop if they meet there.
fn uplinks(desired: &Desired) -> Result<(), ApiError> {
    use attr::uplink as u;
    let mut owners: BTreeMap<_, &str> = BTreeMap::new();
    let mut ways: BTreeMap<(&str, u16), &str> = BTreeMap::new();
    for (name, set) in &desired[Object::Uplink] {
        let refuse = |attribute: &Attribute, problem: String, help: &str| {
            refuse_uplink(name, attribute, &problem, help)
        };
        match u::MEMBERS.of(set) {
            Some(_) => aggregate(desired, name, set)?,
            None => {
                interface(name, set)?;
                let its = (network::netns(set), network::interface(name, set));
                if let Some(other) = owners.insert(its.clone(), name) {
                    let problem = format!("uplink `{other}` has the interface `{}`", its.1);
                    return refuse(&u::INTERFACE, problem, "give it an interface of its own");
                }
            }
        }
        let has_vlans = u::VLANS.of(set).is_some() || u::PVID.of(set).is_some();
        if u::MODE.is_set(set) && u::MEMBERS.of(set).is_none() {
            let problem = "it has no members, and so no mode".to_owned();
            return refuse(&u::MODE, problem, "name `members`, or leave `mode` out");
        }
        if u::NETWORK.of(set).is_none() && has_vlans {
            let problem = "it has no network of its own, and so no VLANs".to_owned();
            return refuse(&u::PVID, problem, "set `network`, or `pvid` of the shared adapter");
        }
        let Some(way) = network::connection(desired, name, set) else { continue };
        let (whose, pvid) = (way.network, way.pvid);
        for vlan in way.vids.into_iter().filter(|vlan| *vlan != pvid).chain([pvid]) {
            if let Some(other) = ways.insert((whose, vlan), name) {
                let problem = format!(
                    "uplink `{other}` carries VLAN {vlan} of network `{whose}`, too: that may be a loop"
                );
                return refuse(&u::VLANS, problem, "let each VLAN of a network have one uplink");
            }
        }
    }
    Ok(())
}

/// The names of an uplink's interface and of its namespace.
fn interface(name: &str, set: &Attributes) -> Result<(), ApiError> {
    use attr::uplink as u;
    let interface = network::interface(name, set);
    let is_name = |c: char| c.is_ascii_graphic() && !"/:%".contains(c);
    if interface.is_empty() || interface.len() > 15 || !interface.chars().all(is_name) {
        let problem = format!("`{interface}` is no name of an interface");
        let help = "set `interface` to one of 1 to 15 letters and digits";
        return refuse_uplink(name, &u::INTERFACE, &problem, help);
    }
    if let Some(netns) = u::NETNS.of(set) {
        let is_name = !netns.is_empty() && !netns.contains('/') && ![".", ".."].contains(&netns);
        if !is_name && !netns.starts_with('/') {
            let problem = format!("`{netns}` is no network namespace");
            let help = "name one as of `ip netns add NAME`, or the whole path of its file";
            return refuse_uplink(name, &u::NETNS, &problem, help);
        }
    }
    Ok(())
}

/// An uplink of several: its members have interfaces and nothing else, and belong to nobody beside it.
fn aggregate(desired: &Desired, name: &str, set: &Attributes) -> Result<(), ApiError> {
    use attr::uplink as u;
    let refuse = |problem: &str, help: &str| refuse_uplink(name, &u::MEMBERS, problem, help);
    let own = [u::KIND.is_set(set), u::INTERFACE.is_set(set), u::NETNS.is_set(set)];
    if own.contains(&true) {
        let problem = "it has members, and so no interface of its own";
        return refuse(problem, "set `kind`, `interface` and `netns` of its members");
    }
    let members: Vec<&str> = network::members(set).collect();
    if !(2..=64).contains(&members.len()) {
        let problem = format!("it has {} members", members.len());
        return refuse(&problem, "name 2 to 64 uplinks");
    }
    for member in members {
        let Some(its) = desired[Object::Uplink].get(member) else { continue };
        let mut said = its.keys().map(String::as_str);
        let interface = [u::KIND.name, u::INTERFACE.name, u::NETNS.name];
        if let Some(more) = said.find(|said| !interface.contains(said)) {
            let problem = format!("its member `{member}` has `{more}`");
            return refuse(&problem, "set that of the uplink that it is a member of");
        }
        let others = desired[Object::Uplink].iter().filter(|(other, _)| *other != name);
        let mut others = others.filter(|(_, set)| network::members(set).any(|it| it == member));
        if let Some((other, _)) = others.next() {
            let problem = format!("`{member}` is a member of uplink `{other}`, too");
            return refuse(&problem, "name it in one of them");
        }
    }
    Ok(())
}

fn refuse_uplink(
    name: &str,
    attribute: &Attribute,
    problem: &str,
    help: &str,
) -> Result<(), ApiError> {
    let problem = format!("uplink `{name}`: {problem}");
    Err(ApiError::invalid(problem).on(attribute.name).help(help))
}

fn card(desired: &Desired, name: &str, set: &Attributes) -> Result<(), ApiError> {
    use attr::adapter as a;
    if let Some(text) = a::MAC.of(set)
        && network::mac(text).is_none()
    {
        let problem = format!("`{text}` is no MAC address of a station");
        return refuse(name, &a::MAC, &problem, "write it as 02:00:5e:00:00:01, or leave it out");
    }
    if let Err(problem) = network::addresses(a::ADDRESSES.value(set)) {
        return refuse(name, &a::ADDRESSES, &problem, "write them as 10.0.0.5,fd00::/64");
    }
    let queues = a::QUEUES.value(set);
    let most = super::queues_max(AdapterKind::Ethernet);
    if queues > most {
        let problem = format!("{queues} pairs of queues are more than vhost-user can name");
        return refuse(name, &a::QUEUES, &problem, &format!("use at most {most}"));
    }
    let whose = a::NETWORK.of(set).unwrap_or_default();
    let there = desired[Object::Network].get(whose).map(home);
    if let Some(there) = there.filter(|there| *there != home(set)) {
        let problem = format!("its network `{whose}` is in data plane `{there}`");
        return refuse(name, &a::DATAPLANE, &problem, &format!("set `dataplane = \"{there}\"`"));
    }
    Ok(())
}

fn refuse(name: &str, attribute: &Attribute, problem: &str, help: &str) -> Result<(), ApiError> {
    let problem = format!("adapter `{name}`: {problem}");
    Err(ApiError::invalid(problem).on(attribute.name).help(help))
}

#[cfg(test)]
mod tests {
    use super::super::validate;
    use crate::model::samples;

    #[test]
    fn uplinks_that_could_be_a_loop_are_refused() {
        let judge = |uplinks: &str| {
            let text = format!("[network.n]\n[network.m]\n{uplinks}");
            let desired = crate::config::read(&text).unwrap();
            validate(&desired, &samples::paths()).map(drop).map_err(|error| error.message)
        };
        let two = |a: &str, b: &str| {
            judge(&format!("[uplink.a]\nnetwork=\"n\"\n{a}\n[uplink.b]\nnetwork={b}\n"))
        };
        assert_eq!(two("vlans=\"20-29\"", "\"m\"\nvlans=\"20\""), Ok(()));
        assert_eq!(two("vlans=\"1,20-29\"", "\"n\"\npvid=30"), Ok(()));
        for (a, b, problem) in [
            ("", "\"n\"", "uplink `a` carries VLAN 1 of network `n`, too"),
            ("vlans=\"20-29\"", "\"n\"\npvid=2\nvlans=\"25\"", "carries VLAN 25"),
            ("vlans=\"20-29\"", "\"n\"\npvid=29", "carries VLAN 29"),
            ("interface=\"t\"", "\"m\"\ninterface=\"t\"", "uplink `a` has the interface `t`"),
            ("", "\"m\"\ninterface=\"a\"", "uplink `a` has the interface `a`"),
            ("", "\"m\"\ninterface=\"a/b\"", "is no name of an interface"),
            ("", "\"m\"\nvlans=\"x\"", "is no list of VLANs"),
            ("", "\"m\"\ntagging=\"tunnel\"\nvlans=\"7\"", "all of a tunnel is of the VLAN `pvid`"),
        ] {
            let refused = two(a, b).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
        let adapter = "[adapter.a]\nkind=\"ethernet\"\nnetwork=\"m\"\n";
        let refused = judge(&format!("[uplink.a]\nnetwork=\"n\"\n{adapter}")).unwrap_err();
        assert_eq!(refused, "uplink `a`: adapter `a` has this name");
    }

    #[test]
    fn members_of_an_uplink_have_interfaces_and_belong_to_nobody_else() {
        let judge = |uplinks: &str| {
            let text = format!("[network.n]\n[uplink.e0]\nkind=\"packet\"\n[uplink.e1]\n{uplinks}");
            let desired = crate::config::read(&text).unwrap();
            validate(&desired, &samples::paths()).map(drop).map_err(|error| error.message)
        };
        let whole = "[uplink.up-of-a-very-long-name]\nnetwork=\"n\"\nmembers=\"e0,e1\"\n";
        assert_eq!(judge(&format!("netns=\"n\"\n{whole}mode=\"hash\"")), Ok(()));
        let sea = "[trunk.t]\nnetwork=\"n\"\npvid=2\n[sea.s]\nvirt_adapters=\"t\"\npvid_adapter=\"t\"\npvid=2\n";
        let behind = |real: &str| format!("{sea}real_adapter=\"{real}\"\n");
        let free = "[uplink.u]\nmembers=\"e0,e1\"\n";
        assert_eq!(judge(&format!("{free}{}", behind("u"))), Ok(()));
        for (uplinks, problem) in [
            (format!("{whole}kind=\"packet\""), "no interface of its own"),
            (format!("{whole}interface=\"e7\""), "no interface of its own"),
            (whole.replace("e0,e1", "e0"), "it has 1 members"),
            (format!("network=\"n\"\n{whole}"), "its member `e1` has `network`"),
            (format!("storm_unknown=7\n{whole}"), "its member `e1` has `storm_unknown`"),
            (
                format!("{whole}[uplink.u]\nmembers=\"e1,e2\"\n[uplink.e2]"),
                "`e1` is a member of uplink",
            ),
            (
                format!("{free}[uplink.v]\nmembers=\"u,e2\"\n[uplink.e2]"),
                "its member `u` has `members`",
            ),
            (format!("{free}{}", behind("e1")), "its uplink `e1` is a member of `u`"),
            ("mode=\"hash\"".to_owned(), "no members, and so no mode"),
        ] {
            let refused = judge(&uplinks).expect_err(&uplinks);
            assert!(refused.contains(problem), "{uplinks}: {refused}");
        }
    }

    #[test]
    fn copies_go_to_a_monitor_of_the_same_network() {
        let judge = |more: &str| {
            let card = |name: &str, network: &str, more: &str| {
                format!("[adapter.{name}]\nkind=\"ethernet\"\nnetwork=\"{network}\"\n{more}\n")
            };
            let all = [
                "[network.n]\n[network.m]\n[volume.v]\nkind=\"null\"\nsize=4096\n[adapter.disk]\nvolume=\"v\"\n",
                &card("ear", "n", "monitor=true"),
                &card("far", "m", "monitor=true"),
                &card("open", "n", ""),
                more,
            ];
            let desired = crate::config::read(&all.concat()).unwrap();
            validate(&desired, &samples::paths()).map(drop).map_err(|error| error.message)
        };
        let of = |mirror: &str| {
            format!("[adapter.a]\nkind=\"ethernet\"\nnetwork=\"n\"\nmirror=\"{mirror}\"\n")
        };
        let up = |mirror: &str| format!("[uplink.u]\nnetwork=\"n\"\nmirror=\"{mirror}\"\n");
        assert_eq!(judge(&of("ear")), Ok(()));
        assert_eq!(judge(&up("ear")), Ok(()));
        for (wrong, problem) in [
            (of("open"), "adapter `open` does not wait for copies"),
            (of("disk"), "adapter `disk` does not wait for copies"),
            (of("far"), "is of another network, `m`"),
            (up("far"), "is of another network, `m`"),
            (format!("{}monitor=true\n", of("a")), "it cannot watch itself"),
            (of("nobody"), "there is no adapter `nobody`"),
        ] {
            let refused = judge(&wrong).unwrap_err();
            assert!(refused.contains(problem), "{wrong}: {refused}");
        }
    }

    #[test]
    fn shared_adapters_that_cannot_work_or_could_loop_are_refused() {
        let judge = |more: &str| {
            let text = format!(
                "[dataplane.side]\n[network.far]\ndataplane=\"side\"\n\
                 [network.n]\n[network.m]\n[uplink.ent1]\n[trunk.ent5]\nnetwork=\"n\"\nvlans=\"10,20\"\n{more}"
            );
            let desired = crate::config::read(&text).unwrap();
            validate(&desired, &samples::paths()).map(drop).map_err(|error| error.message)
        };
        let sea = |virt: &str, pvid: u16| {
            format!(
                "[sea.ent6]\nreal_adapter=\"ent1\"\nvirt_adapters=\"{virt}\"\npvid_adapter=\"ent5\"\npvid={pvid}\n"
            )
        };
        let trunk = |network: &str, pvid: u16, vlans: &str| {
            format!("[trunk.ent7]\nnetwork=\"{network}\"\npvid={pvid}\nvlans=\"{vlans}\"\n")
        };
        // The networks of partners are one virtual switch.
        let partners = |one: &str, trunk: &str| {
            let shared = "ha_mode=\"auto\"\nctl_chan=\"/run/c\"\n";
            format!(
                "{one}{shared}{trunk}[uplink.ent2]\n[trunk.ent9]\nnetwork=\"far\"\npvid=1\n[sea.ent8]\nreal_adapter=\"ent2\"\n\
                 virt_adapters=\"ent9\"\npvid_adapter=\"ent9\"\npvid=1\npriority=2\n{shared}"
            )
        };
        let second = "[uplink.ent2]\n[sea.ent8]\nreal_adapter=\"ent2\"\nvirt_adapters=\"ent7\"\npvid_adapter=\"ent7\"\n";
        let good = sea("ent5", 1);
        assert_eq!(judge(&good), Ok(()));
        assert_eq!(judge(&(sea("ent5,ent7", 1) + &trunk("n", 99, "30"))), Ok(()));
        assert_eq!(judge(&format!("{good}{}{second}pvid=99\n", trunk("n", 99, "30"))), Ok(()));
        assert_eq!(judge(&format!("{good}{}{second}pvid=1\n", trunk("m", 1, "10"))), Ok(()));
        for (wrong, problem) in [
            (sea("ent5", 2), "pvid-differs"),
            (sea("ent7", 1) + &trunk("n", 99, ""), "default-not-bridged"),
            (sea("ent5,ent7", 1) + &trunk("m", 99, ""), "switches-differ"),
            (sea("ent5,ent7", 1) + &trunk("far", 99, ""), "switches-differ"),
            (partners(&sea("ent5,ent7", 1), &trunk("far", 99, "")), "switches-differ"),
            (sea("ent5,ent7", 1) + &trunk("n", 99, "20"), "vlan-twice"),
            (format!("{good}{}{second}pvid=99\n", trunk("n", 99, "20")), "vlan-twice"),
            (
                format!(
                    "{good}[uplink.ent2]\n[sea.ent8]\nreal_adapter=\"ent2\"\nvirt_adapters=\"ent5\"\npvid_adapter=\"ent5\"\npvid=1\n"
                ),
                "bridged-by-strangers",
            ),
            (
                format!(
                    "{good}[sea.ent8]\nreal_adapter=\"ent1\"\nvirt_adapters=\"ent7\"\npvid_adapter=\"ent7\"\npvid=99\n{}",
                    trunk("n", 99, "30")
                ),
                "has the uplink `ent1`",
            ),
            (format!("{good}[uplink.up0]\nnetwork=\"n\"\npvid=20\n"), "carries VLAN 20"),
            (
                good.replace("ent1", "up0") + "[uplink.up0]\nnetwork=\"n\"\npvid=30\n",
                "has a network of its own",
            ),
            (good.clone() + "[uplink.ent2]\npvid=7\n", "no network of its own"),
            (good + "[trunk.ent6]\nnetwork=\"n\"\n", "has this name"),
        ] {
            let refused = judge(&wrong).unwrap_err();
            assert!(refused.contains(problem), "{wrong}: {refused}");
        }
    }
}
