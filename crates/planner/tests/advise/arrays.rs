//! Disks that answer slowly, and the array that they are of.

use super::advice;
use super::disks::{Disk, QUICK};

/// Eight LUNs of one array that answer slowly are the array's trouble; a ninth behind other ports is another's.
#[test]
fn slow_disks_of_one_array_are_one_finding() {
    let slow = Disk { service: 32.0, ..QUICK };
    let sample = |disk: u32| slow.text().replace("hdisk4", &format!("hdisk{disk}"));
    let samples: String = (2..11).map(sample).collect();
    let paths: String = (2..11)
        .map(|disk| {
            let array = if disk == 10 { "2" } else { "1" };
            format!("0:fscsi0:hdisk{disk}:Enabled:50050768010{array}40aa,{disk}000000000000\n")
        })
        .collect();
    let paths = format!("payroll:/> lspath -F path_id:parent:name:status:connection\n{paths}");
    let of = |files: &[(&str, &str)]| {
        let advice = advice(files);
        let slow = advice.findings.into_iter().filter(|finding| finding.rule == "disk-slow");
        slow.collect::<Vec<_>>()
    };
    let found = of(&[("a.txt", &samples), ("b.txt", &paths)]);
    let objects: Vec<&str> = found.iter().map(|finding| finding.object.as_str()).collect();
    assert_eq!(
        objects,
        [
            "hdisk2, hdisk3, hdisk4, hdisk5, hdisk6, hdisk7, hdisk8, hdisk9 on payroll",
            "hdisk10 on payroll"
        ]
    );
    let together = &found[0];
    assert!(together.title.starts_with("8 disks of one array answer slowly"), "{}", together.title);
    assert!(together.reasoning[0].contains("50050768010140aa"), "{:?}", together.reasoning);
    assert_eq!(together.command, None);
    // A line of each disk.
    assert!(together.evidence.len() >= 8, "{:?}", together.evidence);
    // Without a word of their array they are still one, and what would tell is named.
    let found = of(&[("a.txt", &samples)]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].reasoning[0].contains("lspath and lscfg"), "{:?}", found[0].reasoning);
    // Two systems that see the array by the same port.
    let other = |text: &str| text.replace("payroll", "billing");
    let found = of(&[
        ("a.txt", &samples),
        ("b.txt", &paths),
        ("c.txt", &other(&samples)),
        ("d.txt", &other(&paths)),
    ]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|finding| finding.is_of("payroll") && finding.is_of("billing")));
}

#[test]
fn disks_that_have_errors_at_the_same_minutes_are_one_finding() {
    let row = |minute: u32, disk: u32| {
        format!("DCB47997   081312{minute:02}26 T H hdisk{disk}         DISK OPERATION ERROR\n")
    };
    let at = |minutes: [u32; 3], disks: &[u32]| -> String {
        minutes.iter().flat_map(|minute| disks.iter().map(|disk| row(*minute, *disk))).collect()
    };
    let log = |rows: &str| {
        format!(
            "db3:/> date\nThu Aug 13 13:00:00 CEST 2026\ndb3:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n{rows}db3:/> lspath\nEnabled hdisk2 fscsi0\nEnabled hdisk2 fscsi1\n"
        )
    };
    let many: Vec<u32> = (2..16).collect();
    let one = advice(&[("a.txt", &log(&at([50, 30, 10], &many)))]).findings;
    assert_eq!(one.len(), 1, "{one:?}");
    assert_eq!(one[0].title, "14 disks have errors at the same minutes");
    assert!(one[0].object.starts_with("hdisk2, hdisk3, hdisk4, "), "{}", one[0].object);
    assert!(one[0].object.ends_with("hdisk13, 2 more on db3"), "{}", one[0].object);
    assert!(!one[0].reasoning.iter().any(|why| why.contains("it is the LUN")), "{one:?}");
    // A minute's turn lies between the entries of one event; other hours are another trouble.
    let rows = at([51, 30, 11], &[2]) + &at([50, 30, 10], &[3]) + &at([45, 25, 5], &[4]);
    let two = advice(&[("a.txt", &log(&rows))]).findings;
    let titles: Vec<&str> = two.iter().map(|finding| finding.title.as_str()).collect();
    let expected = ["2 disks have errors at the same minutes", "hdisk4 has disk errors that go on"];
    assert_eq!(titles, expected);
}
