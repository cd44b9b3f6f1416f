//! How long 100 MB take. Run by hand, with optimised code:
//! `cargo test --release -p planner --test readers -- --ignored --nocapture a_hundred_megabytes`

use std::time::Instant;

use planner::capture::Captures;

use super::fixture;

#[test]
#[ignore = "a measurement, to be run with --release"]
fn a_hundred_megabytes() {
    let sources: [(&str, Vec<&str>); 5] = [
        ("fcstat", vec!["fcstat-physical"]),
        ("entstat", vec!["entstat-sea"]),
        ("lsattr", vec!["lsattr"]),
        ("iostat", vec!["iostat-D"]),
        (
            "all",
            vec![
                "fcstat-physical",
                "fcstat-virtual-D",
                "entstat-sea",
                "lsattr",
                "lsmap-npiv",
                "lsmap-all",
                "iostat-D",
                "lparstat",
                "lu-list",
            ],
        ),
    ];
    for (name, files) in sources {
        let unit: Vec<u8> = files.iter().flat_map(|file| fixture(file)).collect();
        let bytes = unit.repeat(100_000_000 / unit.len() + 1);
        let started = Instant::now();
        let mut captures = Captures::new();
        captures.read("large", &bytes, None);
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{name}: {} bytes, {} reports, {seconds:.3} s",
            bytes.len(),
            captures.reports.len()
        );
        assert!(captures.reports.len() > 1000);
        drop(captures);
    }
    let noise =
        b"nothing that anybody knows stands in this line of text, number 4711\n".repeat(1_500_000);
    let started = Instant::now();
    let mut captures = Captures::new();
    captures.read("noise", &noise, None);
    println!("unknown text: {} bytes, {:.3} s", noise.len(), started.elapsed().as_secs_f64());
    assert_eq!(captures.unread.len(), 1);
}
