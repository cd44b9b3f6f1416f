use super::*;

fn adapter(name: &str, pvid: u16, vids: &[u16], trunk: Option<u8>) -> VirtualAdapter {
    VirtualAdapter {
        name: name.to_owned(),
        vswitch: "ETHERNET0".to_owned(),
        pvid,
        vids: vids.to_vec(),
        trunk,
        active: None,
        control_buffers: None,
    }
}

/// A server of a pair that is as it should be: a default trunk, another with two VLANs, a control channel.
fn server(name: &str, priority: u8) -> Server {
    Server {
        name: name.to_owned(),
        adapters: vec![
            adapter("ent4", 1, &[], Some(priority)),
            adapter("ent5", 900, &[10, 20], Some(priority)),
            adapter("ent6", 99, &[], None),
        ],
        seas: vec![SharedAdapter {
            name: "ent10".to_owned(),
            pvid: 1,
            pvid_adapter: "ent4".to_owned(),
            virt_adapters: vec!["ent4".to_owned(), "ent5".to_owned()],
            ctl_chan: Some("ent6".to_owned()),
            ha_mode: HaMode::Auto,
            adapter_reset: Some(false),
            state: Some(if priority == 1 { State::Primary } else { State::Backup }),
            bridge_mode: Some(if priority == 1 { BridgeMode::All } else { BridgeMode::None }),
            down: None,
        }],
    }
}

fn pair() -> Vec<Server> {
    vec![server("vios1", 1), server("vios2", 2)]
}

fn rules(servers: &[Server]) -> Vec<Rule> {
    let mut rules: Vec<Rule> = check(servers, &[]).iter().map(|finding| finding.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn nothing_is_wrong_with_a_right_pair_or_a_lone_server_without_failover() {
    assert_eq!(check(&pair(), &[]), []);
    let mut lone = server("vios1", 1);
    (lone.seas[0].ha_mode, lone.seas[0].ctl_chan) = (HaMode::Disabled, None);
    assert_eq!(check(&[lone], &[]), []);
    assert_eq!(check(&[], &[]), []);
}

#[test]
fn each_rule_is_broken_by_one_change() {
    type Change = fn(&mut Vec<Server>);
    let cases: &[(Change, &[Rule])] = &[
        (
            |all| all[0].seas[0].ctl_chan = Some("ent7".into()),
            &[Rule::ControlDiffers, Rule::UnknownAdapter],
        ),
        (|all| all.iter_mut().for_each(|one| one.seas[0].pvid = 2), &[Rule::PvidDiffers]),
        (|all| all[0].seas[0].adapter_reset = Some(true), &[Rule::AdapterReset]),
        (|all| all[0].seas[0].down = Some("ent1: no carrier".into()), &[Rule::MemberDown]),
        (|all| all[0].adapters[1].trunk = None, &[Rule::NotATrunk]),
        (|all| all[0].adapters[2].trunk = Some(1), &[Rule::ControlIsTrunk]),
        (
            |all| all.iter_mut().for_each(|one| one.adapters[1].vids.push(99)),
            &[Rule::ControlIsBridged],
        ),
        (
            |all| {
                all.iter_mut().for_each(|one| one.seas[0].ctl_chan = None);
                all[0].adapters[0].control_buffers = Some(false);
            },
            &[Rule::ControlBuffers],
        ),
        (|all| all[1].seas[0].state = Some(State::Primary), &[Rule::StateAgainstMode]),
        (|all| all[1].adapters[0].active = Some(true), &[Rule::ActiveAgainstMode]),
        (|all| all[0].adapters[0].active = Some(false), &[Rule::ActiveAgainstMode]),
        (|all| all.iter_mut().for_each(|one| one.adapters[0].vids.push(10)), &[Rule::VlanTwice]),
        (|all| all[0].adapters.push(adapter("ent8", 20, &[], Some(1))), &[Rule::VlanTwice]),
        (
            |all| all.iter_mut().for_each(|one| one.adapters[1].vswitch = "OTHER".into()),
            &[Rule::SwitchesDiffer],
        ),
        (|all| all[0].adapters[1].trunk = Some(3), &[Rule::PrioritiesDiffer]),
        (|all| drop(all.pop()), &[Rule::NoMate]),
        (|all| all[1].seas[0].ha_mode = HaMode::Disabled, &[Rule::FailoverOff]),
        (|all| all.push(server("vios3", 3)), &[Rule::BridgedByStrangers]),
        (|all| all[0].adapters[2].pvid = 98, &[Rule::ControlDiffers]),
        (|all| all[0].seas[0].ctl_chan = None, &[Rule::ControlDiffers]),
        (
            |all| all[1].adapters.iter_mut().for_each(|one| one.trunk = one.trunk.map(|_| 1)),
            &[Rule::PriorityEqual],
        ),
        (|all| all[0].adapters[1].vids.push(30), &[Rule::VlansDiffer]),
        (
            |all| {
                all[1].seas[0].bridge_mode = Some(BridgeMode::All);
                all[1].seas[0].state = Some(State::Primary);
            },
            &[Rule::BothBridge],
        ),
        (
            |all| {
                all[0].seas[0].bridge_mode = Some(BridgeMode::None);
                all[0].seas[0].state = Some(State::Standby);
            },
            &[Rule::NeitherBridges],
        ),
        (|all| all[0].seas[0].ha_mode = HaMode::Sharing, &[Rule::SharingAlone]),
        (
            |all| {
                for one in all {
                    one.seas[0].ha_mode = HaMode::Sharing;
                    one.seas[0].virt_adapters.pop();
                }
            },
            &[Rule::SharingOneTrunk],
        ),
        (
            |all| {
                for one in all {
                    one.seas[0].pvid_adapter = "ent6".into();
                    one.seas[0].pvid = 99;
                }
            },
            &[Rule::DefaultNotBridged],
        ),
    ];
    let mut broken = vec![Rule::ClientOnTrunkPvid];
    for (index, (change, expected)) in cases.iter().enumerate() {
        let mut servers = pair();
        change(&mut servers);
        assert_eq!(rules(&servers), *expected, "case {index}");
        broken.extend(*expected);
    }
    let untried: Vec<&Rule> = Rule::ALL.iter().filter(|rule| !broken.contains(rule)).collect();
    assert!(untried.is_empty(), "no case for {untried:?}");
}

#[test]
fn a_client_may_use_the_default_pvid_and_no_other_trunk_s() {
    let client = |pvid| ClientAdapter { client: "lpar1".into(), vswitch: "ETHERNET0".into(), pvid };
    for (pvid, findings) in [(1, 0), (10, 0), (900, 1)] {
        assert_eq!(check(&pair(), &[client(pvid)]).len(), findings, "VLAN {pvid}");
    }
    assert_eq!(check(&pair(), &[client(900)])[0].rule, Rule::ClientOnTrunkPvid);
}

#[test]
fn another_pair_s_control_channel_may_not_have_the_same_vlan() {
    let mut servers = pair();
    for (server, priority) in servers.iter_mut().zip([1, 2]) {
        server.adapters.push(adapter("ent7", 2, &[], Some(priority)));
        let mut second = server.seas[0].clone();
        (second.name, second.pvid, second.pvid_adapter) = ("ent11".into(), 2, "ent7".into());
        second.virt_adapters = vec!["ent7".into()];
        server.seas.push(second);
    }
    assert_eq!(rules(&servers), [Rule::ControlIsBridged]);
}

#[test]
fn what_loops_comes_first_and_every_rule_has_its_words() {
    let mut servers = pair();
    servers[0].seas[0].adapter_reset = Some(true);
    servers[1].seas[0].ha_mode = HaMode::Disabled;
    let found = check(&servers, &[]);
    assert_eq!(found[0].rule.severity(), Severity::Loop);
    assert_eq!(found[0].place, "vios1/ent10 and vios2/ent10");
    assert_eq!(found[0].about, "VLAN 1, 10, 20, 900");
    let words: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.word()).collect();
    assert_eq!(words.len(), Rule::ALL.len());
}
