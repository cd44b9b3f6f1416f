//! The WWPNs of a client as the HMC lists them.

use super::{advice, npiv, silent, top};
use planner::advise::Severity;

const RULE: &str = "fc-wwpn-second-missing";

/// A list of partition 5: slot, last digits of the WWPN, status, who logged it in.
fn list(rows: &[(u32, &str, u32, &str)]) -> String {
    let mut text = "hscroot@hmc1:~> lsnportlogin -m S924-B --filter \"lpar_ids=5\"\n".to_owned();
    for (slot, wwpn, status, by) in rows {
        text += &format!(
            "lpar_name=payroll,lpar_id=5,profile_name=default,slot_num={slot},wwpn=c0507609aa1000{wwpn},wwpn_status={status},logged_in={by},wwpn_status_reason=\n"
        );
    }
    text
}

/// Two adapters after a login of all; the last WWPN has this status.
fn after_login(last: u32) -> String {
    let by = if last == 1 { "vios" } else { "none" };
    list(&[
        (20, "10", 1, "client"),
        (20, "11", 1, "vios"),
        (21, "12", 1, "client"),
        (21, "13", last, by),
    ])
}

/// Two adapters whose second WWPNs nobody has logged in.
fn in_use_only() -> String {
    list(&[
        (20, "10", 1, "client"),
        (20, "11", 0, "none"),
        (21, "12", 1, "client"),
        (21, "13", 0, "none"),
    ])
}

#[test]
fn a_second_wwpn_that_stays_inactive_after_a_login_of_all_is_named() {
    let finding = top(&[("hmc.txt", &after_login(0))], RULE);
    assert_eq!(finding.object, "WWPN c0:50:76:09:aa:10:00:13 of payroll");
    assert_eq!((finding.severity, finding.command.as_deref()), (Severity::Warning, None));
    let lines: Vec<u32> = finding.evidence.iter().map(|at| at.line).collect();
    assert_eq!(lines, [5, 4, 2, 3]);
    for part in [
        "zone c0:50:76:09:aa:10:00:13",
        "chnportlogin -o login -m S924-B --id 5",
        "lsnportlogin -m S924-B",
    ] {
        assert!(finding.effect.contains(part), "{part}: {}", finding.effect);
    }
    let undo = finding.undo.expect("an undo");
    assert!(undo.contains("chnportlogin -o logout -m S924-B --id 5"), "{undo}");
    assert_eq!(advice(&[("hmc.txt", &after_login(0))]).findings.len(), 1);
}

#[test]
fn a_first_wwpn_can_be_the_missing_one() {
    let down = list(&[
        (20, "10", 0, "none"),
        (20, "11", 1, "vios"),
        (21, "12", 1, "vios"),
        (21, "13", 1, "vios"),
    ]);
    let finding = top(&[("hmc.txt", &down)], RULE);
    assert_eq!(finding.object, "WWPN c0:50:76:09:aa:10:00:10 of payroll");
}

#[test]
fn an_unknown_status_weighs_less() {
    let unknown = top(&[("hmc.txt", &after_login(2))], RULE);
    let inactive = top(&[("hmc.txt", &after_login(0))], RULE);
    assert!(unknown.score < inactive.score);
    assert!(unknown.effect.starts_with("See first that the VIOS answers"), "{}", unknown.effect);
}

#[test]
fn pairs_that_are_all_active_are_left_alone() {
    silent(&[("hmc.txt", &after_login(1))]);
    // What was mended is history.
    silent(&[("a.txt", &after_login(0)), ("b.txt", &after_login(1))]);
}

#[test]
fn second_wwpns_that_nobody_logged_in_are_asked_for() {
    silent(&[("hmc.txt", &in_use_only())]);
    let advice = advice(&[("hmc.txt", &in_use_only())]);
    let asked: Vec<&str> = advice
        .not_checked
        .iter()
        .filter(|not| not.rule == RULE && not.about.contains("payroll"))
        .map(|not| not.capture.as_str())
        .collect();
    assert_eq!(
        asked,
        [
            "chnportlogin -o login -m S924-B --id 5, then lsnportlogin -m S924-B --filter \"lpar_ids=5\" on the HMC"
        ]
    );
}

#[test]
fn a_client_that_was_migrated_uses_its_second_wwpns() {
    silent(&[(
        "hmc.txt",
        &list(&[
            (20, "10", 0, "none"),
            (20, "11", 1, "client"),
            (21, "12", 0, "none"),
            (21, "13", 1, "client"),
        ]),
    )]);
    // An adapter that was added after the migration uses its first.
    silent(&[(
        "hmc.txt",
        &list(&[
            (20, "10", 0, "none"),
            (20, "11", 1, "client"),
            (21, "12", 1, "client"),
            (21, "13", 0, "none"),
        ]),
    )]);
}

#[test]
fn the_login_of_one_partition_says_nothing_of_another() {
    let other = in_use_only().replace("payroll", "web7").replace("lpar_id=5", "lpar_id=6");
    let other = other.replace("c0507609aa", "c0507609bb");
    let rows = other.lines().skip(1).map(|row| format!("{row}\n")).collect::<String>();
    silent(&[("hmc.txt", &(after_login(1) + &rows))]);
}

/// Three clients with an adapter on each of two ports.
fn two_ports(logged_in: [u32; 2]) -> String {
    let maps: Vec<(String, u32, String, &str, &str, u32)> = (0..6u32)
        .map(|at| {
            let (client, port) = (at / 2, if at % 2 == 0 { "fcs0" } else { "fcs1" });
            let ports = if at % 2 == 0 { logged_in[0] } else { logged_in[1] };
            (format!("vfchost{at}"), 5 + client, format!("client{client}"), port, port, ports)
        })
        .collect();
    let maps: Vec<_> = maps
        .iter()
        .map(|(host, id, client, port, adapter, ports)| {
            (host.as_str(), *id, client.as_str(), *port, *adapter, *ports)
        })
        .collect();
    npiv("viosa1", &maps)
}

#[test]
fn a_port_that_every_client_lost_is_one_finding() {
    let advice = super::advice(&[("a.txt", &two_ports([0, 6]))]);
    let said: Vec<(&str, &str)> =
        advice.findings.iter().map(|finding| (finding.rule, finding.object.as_str())).collect();
    assert_eq!(said, [("fc-port-logged-out", "fcs0 on viosa1")]);
    assert_eq!(advice.findings[0].command, None);
    // Clients that are down are logged out everywhere.
    super::silent(&[("a.txt", &two_ports([0, 0]))]);
    super::silent(&[("a.txt", &two_ports([6, 6]))]);
}

#[test]
fn an_adapter_without_a_port_is_given_the_one_that_is_left() {
    let mapped = two_ports([6, 6]);
    let (before, own) = mapped.split_once("vfchost1 ").unwrap();
    let own = own
        .replacen("LOGGED_IN", "NOT_LOGGED_IN", 1)
        .replacen("FC name:fcs1", "FC name:    ", 1)
        .replacen("Flags:a<LOGGED_IN,STRIP_MERGE>", "Flags:1<NOT_MAPPED,NOT_CONNECTED>", 1);
    let map = format!("{before}vfchost1 {own}");
    assert!(map.contains("NOT_MAPPED"), "{map}");
    let finding = super::top(&[("a.txt", &map)], "fc-adapter-unmapped");
    assert_eq!(finding.object, "vfchost1 on viosa1");
    assert_eq!(finding.command.as_deref(), Some("vfcmap -vadapter vfchost1 -fcp fcs1"));
    assert_eq!(finding.place.as_deref(), Some("as padmin on viosa1"));
    assert_eq!(finding.undo.as_deref(), Some("vfcmap -vadapter vfchost1 -fcp"));
}

/// Where a capture ends within a record, its port was not captured; that is no adapter without a port.
#[test]
fn a_record_that_was_cut_off_is_not_without_a_port() {
    let whole = two_ports([6, 6]);
    let (before, _) = whole.rsplit_once("FC name:").unwrap();
    let advice = super::advice(&[("a.txt", before)]);
    assert!(advice.findings.is_empty(), "{:?}", advice.findings);
    let open = |judged: &&planner::advise::Judged| {
        judged.rule == "fc-adapter-unmapped" && judged.object == "vfchost5 on viosa1"
    };
    let judged = advice.coverage.iter().find(open).unwrap();
    assert_eq!(judged.state, planner::advise::State::NotJudged);
    // A filter that keeps names and states does the same to every record.
    let kept = |line: &&str| {
        ["vfchost0", "FC name:fcs0", "vfchost1 "].iter().any(|word| line.contains(word))
    };
    let kept: Vec<&str> = whole.lines().filter(kept).take(3).collect();
    super::silent(&[("a.txt", &(kept.join("\n") + "\n"))]);
}

#[test]
fn a_name_that_was_made_unreadable_is_told_by_its_line() {
    let text = after_login(0).replace("c0507609aa100013", "c0507609aaXXXXXX");
    let finding = top(&[("hmc.txt", &text)], RULE);
    assert!(finding.effect.contains("the WWPN of line 5"), "{}", finding.effect);
    // Two that were made unreadable are two.
    let text = text.replace("c0507609aa100012", "c0507609aaXXXXXX");
    let finding = top(&[("hmc.txt", &text)], RULE);
    assert!(finding.object.contains("line 5"), "{}", finding.object);
}
