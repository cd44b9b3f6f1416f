//! More than two captures: what happens now is told by the newest of them, and what is over is not told as if it went on.

use super::{PHYSICAL, Port, VIRTUAL, advice, lsattr, timed};
use planner::advise::{Advice, Severity, advise};
use planner::facts::Facts;

/// Captures of an adapter, an hour apart, ten million requests each.
fn series(first: Port, change: impl Fn(usize, &mut Port), beside: &str) -> Advice {
    let texts: Vec<String> = (0..6)
        .map(|hour| {
            let seconds = u64::try_from(hour).unwrap();
            let mut port = first.later(seconds * 3600, seconds * 10_000_000);
            change(hour, &mut port);
            port.text() + beside
        })
        .collect();
    let files: Vec<(String, u64)> =
        (0..6).map(|hour| (format!("{hour}.txt"), 1_780_000_000 + hour * 3600)).collect();
    let files: Vec<(&str, &str, u64)> = files
        .iter()
        .zip(&texts)
        .map(|((name, at), text)| (name.as_str(), text.as_str(), *at))
        .collect();
    advise(&timed(&files), &Facts::builtin())
}

fn elements() -> String {
    lsattr("payroll", "fcs0", &[("num_cmd_elems", "200")])
}

/// `fc-virtual-elements`, if it is found: how bad it is, whether there is a command, and the first reason.
fn waits(advice: &Advice) -> Option<(Severity, bool, String)> {
    let found = advice.findings.iter().find(|finding| finding.rule == "fc-virtual-elements")?;
    Some((found.severity, found.command.is_some(), found.reasoning[0].clone()))
}

#[test]
fn what_begins_in_the_last_interval_is_told() {
    let full = Port { active_high: 200, pending_high: 180, ..VIRTUAL };
    let advice = series(
        full,
        |hour, port| port.no_command = if hour == 5 { 20_012 } else { 12 },
        &elements(),
    );
    let (severity, command, why) = waits(&advice).expect("it happens now");
    assert_eq!((severity, command), (Severity::Warning, true));
    assert!(why.contains("grew by 20,000") && why.contains("happens now"), "{why}");
}

#[test]
fn what_stands_still_since_is_a_note() {
    let full = Port { active_high: 200, pending_high: 180, ..VIRTUAL };
    for still_from in [2, 4] {
        let count = |hour| if hour >= still_from { 520_012 } else { 12 };
        let advice = series(full, |hour, port| port.no_command = count(hour), &elements());
        let (severity, command, why) = waits(&advice).expect("a note");
        assert_eq!((severity, command), (Severity::Note, false), "{still_from}");
        assert!(!why.contains("happens now"), "{why}");
    }
    // Nobody asked for anything in the newest interval: the counter had nothing to grow by.
    let advice = series(
        full,
        |hour, port| {
            port.no_command = [12, 100_012, 200_012, 300_012, 400_012, 400_012][hour];
            if hour == 5 {
                port.reads -= 9_999_000;
            }
        },
        &elements(),
    );
    let (severity, command, _) = waits(&advice).expect("it goes on under load");
    assert_eq!((severity, command), (Severity::Warning, true));
}

#[test]
fn a_burst_on_a_link_that_is_over_is_a_note() {
    let link = |from: usize, each: u64| {
        series(PHYSICAL, |hour, port| port.crcs = u64::from(hour >= from) * each, "")
    };
    let over = link(2, 5210);
    let found = over.findings.iter().find(|finding| finding.rule == "fc-link-errors").unwrap();
    assert_eq!(found.severity, Severity::Note);
    assert!(found.reasoning.iter().any(|why| why.contains("it is over")), "{:?}", found.reasoning);
    let now = link(5, 5210);
    assert_eq!(
        (now.findings[0].rule, now.findings[0].severity),
        ("fc-link-errors", Severity::Critical)
    );
}

fn log(date: &str, entries: &[(&str, &str)]) -> String {
    let rows: String = entries
        .iter()
        .map(|(time, disk)| format!("DCB47997   {time} T H {disk}         DISK OPERATION ERROR\n"))
        .collect();
    format!(
        "mesdb:/> hostname\nmesdb\n{date}mesdb:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n{rows}"
    )
}

/// The time of a file may be that of its copying: it outweighs no `date`.
#[test]
fn a_log_without_a_date_silences_none_that_has_one() {
    let entries = [("0601120026", "hdisk5"), ("0601110026", "hdisk5"), ("0601100026", "hdisk5")];
    let dated = log("mesdb:/> date\nMon Jun  1 12:10:00 CEST 2026\n", &entries);
    let (undated, november) = (log("", &entries), 1_795_000_000);
    let both = timed(&[("a.txt", &dated, november), ("b.txt", &undated, november)]);
    let advice = advise(&both, &Facts::builtin());
    assert_eq!(advice.findings.iter().map(|one| one.rule).collect::<Vec<_>>(), ["disk-errors"]);
    // Alone it is not judged by a time that may be any.
    let alone = advise(&timed(&[("b.txt", &undated, november)]), &Facts::builtin());
    assert_eq!(alone.findings.len(), 0);
    let open = alone.not_checked.iter().find(|not| not.rule == "disk-errors" && !not.absent);
    assert_eq!(
        open.map(|not| not.capture.as_str()),
        Some("date; errpt"),
        "{:?}",
        alone.not_checked
    );
}

#[test]
fn an_adapter_and_its_protocol_device_are_one_finding_with_a_number() {
    let rows: String = (0..12)
        .map(|at| {
            let (what, resource) = match at % 2 {
                0 => ("LINK ERROR", "fcs2"),
                _ => ("COMMUNICATION PROTOCOL ERROR", "fscsi2"),
            };
            format!("7BFEEA1F   0616{:02}{:02}26 T H {resource:<14} {what}\n", 4 + at / 2, 10 + at)
        })
        .collect();
    let text = format!(
        "pxvio1:/> hostname\npxvio1\npxvio1:/> date\nTue Jun 16 14:30:00 CEST 2026\npxvio1:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n{rows}"
    );
    let advice = advice(&[("a.txt", &text)]);
    let found: Vec<(&str, &str)> =
        advice.findings.iter().map(|one| (one.rule, one.object.as_str())).collect();
    assert_eq!(found, [("adapter-errors", "fcs2 on pxvio1")]);
    assert_eq!(advice.findings[0].figures[0].low, 12.0);
}

/// A port that no client is mapped to and that has no fabric: its link is nobody's.
#[test]
fn the_link_of_a_port_that_nobody_uses_is_a_note() {
    let rows: String = (0..12)
        .map(|hour| format!("7BFEEA1F   0616{hour:02}1026 T H fcs3           LINK ERROR\n"))
        .collect();
    let log = format!(
        "viosa1:/> date\nTue Jun 16 12:30:00 CEST 2026\nviosa1:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n{rows}"
    );
    let ports = |fabric: u32| {
        format!(
            "viosa1:/> ioscli lsnports\nname             physloc                        fabric tports aports swwpns  awwpns\nfcs3             U78D3.001.WZS0ABC-P1-C4-T1          {fabric}     64     64   2048    2048\n"
        )
    };
    let severity = |text: &str| {
        let found = advice(&[("a.txt", text)]).findings;
        found.iter().find(|one| one.rule == "adapter-errors").map(|one| one.severity)
    };
    assert_eq!(severity(&(log.clone() + &ports(0))), Some(Severity::Note));
    assert_eq!(severity(&(log + &ports(1))), Some(Severity::Warning));
    let idle = Port { reads: 0, writes: 0, ..PHYSICAL };
    let link = |port: Port, requests: u64| {
        let later = Port { crcs: 900, ..port.later(3600, requests) };
        let found = advise(
            &timed(&[("a.txt", &port.text(), 0), ("b.txt", &later.text(), 3600)]),
            &Facts::builtin(),
        );
        found.findings.iter().find(|one| one.rule == "fc-link-errors").map(|one| one.severity)
    };
    assert_eq!(link(idle, 0), Some(Severity::Note));
    assert_eq!(link(PHYSICAL, 1000), Some(Severity::Critical));
}
