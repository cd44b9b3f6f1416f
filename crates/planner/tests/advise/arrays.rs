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
