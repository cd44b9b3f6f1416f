//! The README and the guide as somebody types them: commands one after the other, and what they print beside what the page shows.

use super::Bench;
use protocol::message::AdapterState;
use protocol::stats::ChannelCounter;
use std::path::Path;

/// A fenced block: its language, and what is in it.
struct Block {
    language: String,
    text: String,
}

/// What is in a page, in its order.
fn blocks(page: &str) -> Vec<Block> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(page);
    let page = std::fs::read_to_string(path).unwrap();
    let (mut all, mut inside) = (Vec::<Block>::new(), false);
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            inside = !inside;
            if inside {
                all.push(Block { language: language.to_owned(), text: String::new() });
            }
        } else if inside {
            let block = all.last_mut().unwrap();
            block.text += line;
            block.text.push('\n');
        }
    }
    all
}

/// The commands of a block for a shell, without `trunkline` and without what a test cannot have: a server of its own, a terminal, an HBA, frames, captures
/// of other systems, or a guest.
fn commands(bench: &Bench, block: &Block) -> Vec<String> {
    let not_begun = ["serve", "stop", "bench", "--version", "plan ", "size "];
    let without = [
        "--watch",
        "net trace",
        "--host",
        "vfchost4",
        "volume accept",
        "volume recreate",
        "main --cpus",
    ];
    let dir = bench.dir.path().to_str().unwrap();
    let lines = block.text.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line));
    let ours = lines.filter_map(|line| line.strip_prefix("trunkline "));
    let ours = ours.map(|line| line.split(" #").next().unwrap().trim_end());
    let ours = ours.filter(|line| {
        let goes = not_begun.iter().any(|word| line.starts_with(word));
        !goes && !without.iter().any(|word| line.contains(word))
    });
    ours.map(|line| line.replace("$TRUNKLINE_DIR", dir).replace("/tmp/t/", &format!("{dir}/")))
        .map(|line| line.replace("/srv/debian.iso", &format!("{dir}/debian.iso")))
        .collect()
}

/// Types a command; what is behind `>` is a file of the server's folder.
fn type_in(bench: &Bench, line: &str) -> String {
    let dir = bench.dir.path().to_str().unwrap();
    match line.split_once(" > ") {
        Some((line, file)) => {
            let text = bench.ok(line);
            // The helpers of the bench have put a word in the place of the folder.
            std::fs::write(bench.dir.path().join(file), text.replace("DIR", dir)).unwrap();
            text
        }
        None => bench.ok(&line.replace("apply ", &format!("apply {dir}/"))),
    }
}

/// Types in all that a page says, after what it takes for granted. What was printed last for each block.
fn follow(bench: &Bench, page: &str, granted: &[&str]) -> Vec<(Block, String)> {
    std::fs::write(bench.dir.path().join("debian.iso"), b"disc").unwrap();
    granted.iter().for_each(|line| drop(bench.ok(line)));
    let mut printed = String::new();
    let mut all = Vec::new();
    for block in blocks(page) {
        if matches!(block.language.as_str(), "sh" | "console") {
            for line in commands(bench, &block) {
                printed = type_in(bench, &line);
            }
        }
        all.push((block, printed.clone()));
    }
    all
}

/// A line whose numbers are all alike, with one blank between words.
fn plain(line: &str) -> String {
    let alike = |word: &str| {
        let mut alike: String =
            word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        while alike.contains("00") {
            alike = alike.replace("00", "0");
        }
        alike
    };
    let words: Vec<String> = line.split_whitespace().map(alike).collect();
    words.join(" ")
}

/// Every line of a sample is one of those that were printed.
fn assert_shown(sample: &str, printed: &str) {
    let there: Vec<String> = printed.lines().map(plain).collect();
    for line in sample.lines().filter(|line| !line.is_empty()) {
        assert!(
            there.contains(&plain(line)),
            "the page has `{line}`, and this was printed:\n{printed}"
        );
    }
}

#[test]
fn the_readme_leads_to_a_disk_and_to_a_fabric() {
    let bench = Bench::new();
    let all = follow(&bench, "README.md", &[]);
    let (sample, printed) =
        all.iter().find(|(block, _)| block.text.contains("-accel kvm \\")).unwrap();
    assert_eq!(sample.text.replace("/tmp/trunkline", "DIR"), *printed);
    assert_eq!(bench.ok("adapter list -o name"), "vfchost0\nvhost0\n");
}

#[test]
fn getting_started_leads_from_a_disk_to_its_file_of_configuration() {
    let bench = Bench::new();
    // Of the file system of whoever reads it.
    let all = follow(&bench, "docs/guide/getting-started.md", &[]);
    for (sample, printed) in all.iter().filter(|(block, _)| block.language == "text") {
        if sample.text.starts_with("DATA PLANE") {
            assert_shown(sample.text.lines().next().unwrap(), printed);
        } else if sample.text.starts_with("-accel") {
            assert_shown(&sample.text.replace("/tmp/trunkline", "DIR"), printed);
        }
    }
    let file = bench.dir.path().join("trunkline.toml");
    assert!(std::fs::read_to_string(file).unwrap().contains("[adapter.vhost0]"));
}

#[test]
fn every_other_page_can_be_followed() {
    let disk =
        &["volume create disk0 --kind null --size 1GiB", "adapter create vhost0 --volume disk0"];
    for (page, granted) in [
        ("command-line.md", &[][..]),
        ("network.md", &[]),
        ("adapters.md", disk),
        ("volumes.md", &disk[..1]),
        ("measuring.md", &[]),
    ] {
        follow(&Bench::new(), &format!("docs/guide/{page}"), granted);
    }
}

#[test]
fn the_pages_of_a_fabric_can_be_followed() {
    let bench = Bench::new();
    // The second port that a client moves to.
    follow(&bench, "docs/guide/virtual-fc.md", &["port create fcs1"]);
    follow(&bench, "docs/guide/ioscli.md", &[]);
}

#[test]
fn every_configuration_of_the_guide_would_be_applied() {
    let mut held = 0;
    for page in ["configuration.md", "network.md", "virtual-fc.md"] {
        let samples = blocks(&format!("docs/guide/{page}"));
        for sample in samples.iter().filter(|block| block.language == "toml") {
            // A machine with fewer CPUs than the reader's.
            let text = sample.text.replace("cpus = \"2-5\"", "cpus = \"0\"");
            let (code, text) = Bench::new().run_with("apply - --dry-run", &text);
            assert_eq!(code, 0, "{page}:\n{}\n{text}", sample.text);
            held += 1;
        }
    }
    assert_eq!(held, 4);
}

#[test]
fn what_limits_an_adapter_is_printed_as_the_guide_has_it() {
    let bench = Bench::with_disk();
    let fake = bench.launcher.current().unwrap();
    {
        let mut books = fake.books();
        let adapter = &mut books.status.adapters[0];
        (adapter.state, adapter.connections) = (AdapterState::Running, 1);
        (adapter.client_queues, adapter.channel_of_queue) = (1, vec![0]);
    }
    fake.channel_stats(0).set(ChannelCounter::SleepPrice, 32_000);
    let samples = blocks("docs/guide/adapters.md");
    let sample = samples.iter().find(|block| block.text.starts_with("vhost0: at most")).unwrap();
    assert_shown(&sample.text, &bench.ok("adapter explain vhost0"));
}

#[test]
fn an_unknown_key_is_refused_as_the_guide_has_it() {
    let bench = Bench::new();
    let file = bench.dir.path().join("trunkline.toml");
    std::fs::write(&file, "[adapter.vhost1]\nqueus = 8\n").unwrap();
    let text = bench.refused(&format!("apply {}", file.display()), 2);
    let samples = blocks("docs/guide/configuration.md");
    let sample = samples.iter().find(|block| block.text.starts_with("error:")).unwrap();
    assert_eq!(text.replace("DIR/", ""), sample.text);
}
