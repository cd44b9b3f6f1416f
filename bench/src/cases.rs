//! The cases: who takes part in what.

use partition::load::{LoadOptions, WaitMode};
use protocol::message::{CacheMode, RamSpec, VolumeKind};

use crate::figure::Series;
use crate::native::Fio;
use crate::neighbours::{self, Neighbours};
use crate::net::{self, Net};
use crate::net_gso;
use crate::net_neighbours::{self, Bad};
use crate::npiv::{self, Npiv};
use crate::ours::{self, Plan};
use crate::peer::{Node, Settings};
use crate::pools::{self, Pools};
use crate::stage::{self, Contestant, Settled, Stage, VOLUME_BYTES};
use crate::{control, idle, ring, sizing};
use anyhow::{Context as _, Result, anyhow};

/// Label of our server.
pub(crate) const OURS: &str = "trunkline";
/// Label of the peer as the shortest command line makes it.
pub(crate) const PEER: &str = "qsd";
/// Label of the peer with the settings that were fastest here.
pub(crate) const PEER_BEST: &str = "qsd-best";

/// A case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    /// Its name on the command line and in bars.toml.
    pub(crate) name: String,
    /// What it is, for readers.
    pub(crate) title: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Null { depth: u16, wait: WaitMode },
    Ram,
    TmpfsBuffered,
    Disk { writes: bool, depth: u16 },
    Queues { depth: u16 },
    Idle,
    Ring,
    Control,
    Sizing,
    Npiv(Npiv),
    Neighbours(Neighbours),
    Pools(Pools),
    Net(Net),
    NetNeighbours(Bad),
    NetGso,
}

/// All cases, in the order in which they are run.
pub(crate) fn all() -> Vec<Case> {
    let case =
        |name: &str, title: &str, kind| Case { name: name.into(), title: title.into(), kind };
    let null = |depth, wait| Kind::Null { depth, wait };
    let (sleep, poll) = (WaitMode::Sleep, WaitMode::Poll);
    let mut cases = vec![
        case("null-sleeping", "null volume, sleeping client", null(32, sleep)),
        case("null-polling", "null volume, polling client", null(32, poll)),
        case("null-depth1-polling", "null volume, depth 1, polling client", null(1, poll)),
        case("null-depth1-sleeping", "null volume, depth 1, sleeping client", null(1, sleep)),
        case("ram", "RAM volume; the peer: file in tmpfs", Kind::Ram),
        case("tmpfs-buffered", "file in tmpfs, buffered", Kind::TmpfsBuffered),
    ];
    for depth in [1, 32, 128] {
        for (order, writes) in [("read", false), ("write", true)] {
            cases.push(Case {
                name: format!("disk-{order}-{depth}"),
                title: format!("file on disk, O_DIRECT, {order}s, depth {depth}"),
                kind: Kind::Disk { writes, depth },
            });
        }
    }
    for depth in (0..=8).map(|power| 1u16 << power) {
        cases.push(Case {
            name: format!("queues-{depth}"),
            title: format!("null volume, two queues against one, depth {depth} in each"),
            kind: Kind::Queues { depth },
        });
    }
    cases.extend(of(npiv::cases(), Kind::Npiv));
    cases.extend(of(neighbours::cases(), Kind::Neighbours));
    cases.extend(of(pools::cases(), Kind::Pools));
    cases.extend(of(net::cases(), Kind::Net));
    cases.extend(of(net_neighbours::cases(), Kind::NetNeighbours));
    cases.push(case(
        "net-gso",
        "a stream of uncut frames of 64 KB; the peer: a bridge of the kernel with two TAPs",
        Kind::NetGso,
    ));
    cases.push(case("idle", "200 idle adapters with 4 queues each", Kind::Idle));
    cases.push(case("ring", "ring cost of a request", Kind::Ring));
    cases.push(case("control", "a state of 12,000 objects, and one of 120", Kind::Control));
    cases.push(case(
        "sea-sizing",
        "what a shared Ethernet adapter takes, and what sizing says",
        Kind::Sizing,
    ));
    cases
}

/// The cases of a module that has several.
fn of<K>(cases: Vec<(String, String, K)>, kind: fn(K) -> Kind) -> impl Iterator<Item = Case> {
    let case = move |(name, title, own)| Case { name, title, kind: kind(own) };
    cases.into_iter().map(case)
}

/// The cases with these names, or whose names begin like that; all when there are no words.
pub(crate) fn select(words: &[String]) -> Result<Vec<Case>> {
    let all = all();
    let names: Vec<String> = all.iter().map(|case| case.name.clone()).collect();
    // A whole name means that case only: `queues-1` is not `queues-16`.
    let means = |word: &String, name: &String| {
        if names.contains(word) { name == word } else { name.starts_with(word.as_str()) }
    };
    for word in words {
        if !names.iter().any(|name| means(word, name)) {
            return Err(anyhow!("no case begins with {word}; there are {}", names.join(", ")));
        }
    }
    let wanted = |case: &Case| words.is_empty() || words.iter().any(|word| means(word, &case.name));
    Ok(all.into_iter().filter(wanted).collect())
}

impl Case {
    /// Runs it.
    pub(crate) fn run(&self, settled: &Settled) -> Result<Vec<Series>> {
        let mut stage = Stage::new(settled);
        match self.kind.clone() {
            Kind::Null { depth, wait } => null(&mut stage, depth, wait),
            Kind::Ram => ram(&mut stage),
            Kind::TmpfsBuffered => tmpfs_buffered(&mut stage),
            Kind::Disk { writes, depth } => disk(&mut stage, writes, depth),
            Kind::Queues { depth } => queues(&mut stage, depth),
            Kind::Idle => idle::run(settled),
            Kind::Ring => ring::run(),
            Kind::Control => control::run(settled),
            Kind::Sizing => sizing::run(settled),
            Kind::Npiv(kind) => npiv::run(&mut stage, &kind),
            Kind::Pools(kind) => pools::run(&mut stage, kind),
            Kind::Neighbours(kind) => neighbours::run(&mut stage, kind),
            Kind::Net(kind) => net::run(settled, kind),
            Kind::NetNeighbours(bad) => net_neighbours::run(settled, bad),
            Kind::NetGso => net_gso::run(settled),
        }
        .with_context(|| format!("case {}", self.name))
    }
}

fn plan(volume: VolumeKind) -> Plan {
    Plan::null().on(volume)
}

/// Plays our contestants against the peer as it is by default and with its fastest settings; `load` is the peer's.
fn against_peer(
    stage: &mut Stage<'_>,
    mut contestants: Vec<Contestant>,
    node: &Node,
    load: &LoadOptions,
) -> Result<Vec<Series>> {
    let best = stage.fastest(node, load)?;
    let plain = stage.peer(node, Settings::PLAIN)?;
    contestants.push(Contestant::driven(PEER, &plain, load.clone()));
    if best != Settings::PLAIN {
        let seat = stage.peer(node, best)?;
        contestants.push(Contestant::driven(PEER_BEST, &seat, load.clone()));
    }
    let mut series = stage.play(&contestants)?;
    if best == Settings::PLAIN {
        let plain = series.iter().find(|series| series.label == PEER).cloned();
        series.extend(plain.map(|plain| Series {
            label: PEER_BEST.to_owned(),
            about: "the same: no other settings are faster".to_owned(),
            ..plain
        }));
    }
    Ok(series)
}

fn null(stage: &mut Stage<'_>, depth: u16, wait: WaitMode) -> Result<Vec<Series>> {
    let sleeping = LoadOptions { depth, ..stage.settled.load() };
    let load = LoadOptions { wait, ..sleeping.clone() };
    let seat = stage.ours(&plan(ours::NULL))?;
    let contestants = vec![Contestant::driven(OURS, &seat, load)];
    against_peer(stage, contestants, &Node::Null { bytes: VOLUME_BYTES }, &sleeping)
}

fn ram(stage: &mut Stage<'_>) -> Result<Vec<Series>> {
    let load = stage.settled.load();
    let polling = LoadOptions { wait: WaitMode::Poll, ..load.clone() };
    let file =
        tempfile::NamedTempFile::new_in(&stage.settled.tmpfs).context("cannot make a file")?;
    stage::fill(file.path())?;
    let seat = stage.ours(&plan(RamSpec::new(file.path()).into()))?;
    let contestants = vec![
        Contestant::driven(OURS, &seat, load.clone()),
        Contestant::driven("trunkline, polling client", &seat, polling),
    ];
    against_peer(stage, contestants, &Node::Buffered(file.path().to_owned()), &load)
}

fn tmpfs_buffered(stage: &mut Stage<'_>) -> Result<Vec<Series>> {
    let load = stage.settled.load();
    let file =
        tempfile::NamedTempFile::new_in(&stage.settled.tmpfs).context("cannot make a file")?;
    stage::fill(file.path())?;
    let seat = stage.ours(&plan(ours::file(file.path(), CacheMode::Buffered)))?;
    let contestants = vec![Contestant::driven(OURS, &seat, load.clone())];
    against_peer(stage, contestants, &Node::Buffered(file.path().to_owned()), &load)
}

fn disk(stage: &mut Stage<'_>, writes: bool, depth: u16) -> Result<Vec<Series>> {
    let settled = stage.settled;
    let path = stage::disk_file(settled)?;
    let load = LoadOptions { depth, read_percent: if writes { 0 } else { 100 }, ..settled.load() };
    let node = Node::Direct(path.clone());
    let best = stage.fastest(&node, &load)?;
    let polling = LoadOptions { wait: WaitMode::Poll, ..load.clone() };
    let direct = plan(ours::file(&path, CacheMode::Direct));
    let ours = stage.ours(&direct)?;
    let peer = stage.peer(&node, best)?;
    let fio = Fio {
        file: path,
        read_percent: if writes { 0 } else { 100 },
        block_bytes: 4096,
        depth,
        cpus: vec![settled.server_cpu],
    };
    stage.play(&[
        Contestant::driven(OURS, &ours, load.clone()),
        Contestant::driven("trunkline, polling client", &ours, polling),
        Contestant::driven(PEER_BEST, &peer, load),
        Contestant::native("fio", fio),
    ])
}

fn queues(stage: &mut Stage<'_>, depth: u16) -> Result<Vec<Series>> {
    let one = LoadOptions { depth, ..stage.settled.load() };
    let two = LoadOptions { queues: 2, ..one.clone() };
    let two_queues = Plan { queues: 2, ..plan(ours::NULL) };
    let seat = stage.ours(&two_queues)?;
    let two_channels = stage.ours(&Plan { channels: 2, ..two_queues })?;
    stage.play(&[
        Contestant::driven("one queue", &seat, one),
        Contestant::driven("two queues", &seat, two.clone()),
        Contestant::driven("two queues, two channels", &two_channels, two),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_selected_by_their_beginning() {
        let mut names: Vec<String> = all().into_iter().map(|case| case.name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(select(&["disk-read".into()]).unwrap().len(), 3);
        assert_eq!(select(&["queues-1".into()]).unwrap().len(), 1);
        assert_eq!(select(&[]).unwrap().len(), count);
        assert!(select(&["nothing".into()]).is_err());
    }

    #[test]
    fn every_bar_is_for_a_case() {
        let bars =
            crate::bars::read(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("bars.toml"))
                .unwrap();
        for bar in bars {
            let name = bar.case.trim_end_matches('*');
            assert!(select(&[name.to_owned()]).is_ok(), "{name}");
        }
    }
}
