//! What hangs on what.

use std::collections::BTreeMap;

use super::{Section, Table, Tone, tone};
use crate::advise::{Finding, Map};
use crate::report::{Block, Chart, Detail, Spot, WAYS_MAX, Way, Ways};

/// What was found, by the objects as the findings name them.
struct Found<'a>(BTreeMap<&'a str, Tone>);

impl<'a> Found<'a> {
    fn new(findings: &'a [Finding]) -> Self {
        let mut of: BTreeMap<&str, Tone> = BTreeMap::new();
        for finding in findings {
            let (object, tone) = (finding.object.as_str(), tone(finding.severity));
            let known = of.entry(object).or_insert(tone);
            *known = if tone.rank() > known.rank() { tone } else { *known };
        }
        Self(of)
    }

    /// A device of a system, as a box.
    fn of(&self, system: &str, device: &str) -> Spot {
        let name = |text: &str| if text.is_empty() { "?".to_owned() } else { text.to_owned() };
        let found = self.0.get(format!("{device} on {system}").as_str());
        let text = format!("{} {}", name(system), name(device));
        Spot { text, of: String::new(), tone: found.copied().unwrap_or_default() }
    }
}

/// The ways of a kind as a drawing, unless they are more than a drawing can show.
fn drawn(title: &str, columns: &[&str], ways: Vec<Way>) -> Option<Block> {
    let columns = columns.iter().map(|name| (*name).to_owned()).collect();
    (ways.len() <= WAYS_MAX)
        .then(|| Block::Chart(Chart::Ways(Ways { title: title.to_owned(), columns, ways })))
}

fn fibre(map: &Map, found: &Found<'_>) -> Vec<Way> {
    let way = |row: &crate::advise::FibreRow| {
        let (fabric, tone) = match row.fabric.as_str() {
            _ if row.port.is_empty() => ("", Tone::Warning),
            "none" => ("no fabric", Tone::Critical),
            "yes" => ("fabric", Tone::Plain),
            other => (other, Tone::Plain),
        };
        // Which ports are on the same fabric is not known.
        let fabric =
            Spot { text: fabric.to_owned(), of: format!("{} {}", row.vios, row.port), tone };
        let port = match row.port.is_empty() {
            true => Spot { text: "not mapped".to_owned(), of: row.server.clone(), tone },
            false => found.of(&row.vios, &row.port),
        };
        let logged_in = row.state == "LOGGED_IN" || row.state.is_empty();
        Way {
            boxes: vec![
                found.of(&row.client, &row.adapter),
                found.of(&row.vios, &row.server),
                port,
                fabric,
            ],
            tone: match (logged_in, tone) {
                (_, Tone::Critical) => Tone::Critical,
                (false, _) => Tone::Warning,
                _ => Tone::Plain,
            },
        }
    };
    map.fibre.iter().map(way).collect()
}

fn scsi(map: &Map, found: &Found<'_>) -> Vec<Way> {
    let way = |row: &crate::advise::ScsiRow| Way {
        boxes: vec![
            found.of(&row.client, &row.disk),
            found.of(&row.vios, &row.server),
            found.of(&row.vios, &row.target),
            match row.backing.is_empty() {
                true => Spot::default(),
                false => found.of(&row.vios, &row.backing),
            },
        ],
        tone: Tone::Plain,
    };
    map.scsi.iter().map(way).collect()
}

fn ethernet(map: &Map, found: &Found<'_>) -> Vec<Way> {
    let of = |system: &str, device: &str| match device.is_empty() {
        true => Spot::default(),
        false => found.of(system, device),
    };
    let way = |row: &crate::advise::EthernetRow| Way {
        boxes: vec![
            of(&row.vios, &row.adapter),
            of(&row.vios, &row.bridge),
            of(&row.vios, &row.uplink),
        ],
        tone: Tone::Plain,
    };
    map.ethernet.iter().map(way).collect()
}

/// A drawing and a table for each kind of path that was captured.
pub(super) fn sections(map: &Map, findings: &[Finding]) -> Option<Section> {
    let found = Found::new(findings);
    let mut section = Section::new("Map", Tone::Plain).only(Detail::Full);
    let known = |text: &str| if text.is_empty() { "?".to_owned() } else { text.to_owned() };
    if !map.fibre.is_empty() {
        let drawing = drawn(
            "Fibre Channel, drawn",
            &["client adapter", "vfchost", "port", "fabric"],
            fibre(map, &found),
        );
        section = drawing.into_iter().fold(section, Section::block);
        let columns = ["client", "adapter", "→ VIOS", "adapter", "→ port", "→ fabric", "state"];
        let mut table =
            Table::new("Fibre Channel: client adapter → vfchost → port → fabric", &columns);
        for row in &map.fibre {
            let port = if row.port.is_empty() { "not mapped" } else { &row.port };
            let cells = [&row.client, &row.adapter, &row.vios, &row.server];
            let mut cells: Vec<String> = cells.into_iter().map(|cell| known(cell)).collect();
            cells.extend([port.to_owned(), known(&row.fabric), row.state.clone()]);
            table.row(cells);
        }
        section = section.block(Block::Table(table));
    }
    if !map.scsi.is_empty() {
        let drawing = drawn(
            "Virtual SCSI, drawn",
            &["client disk", "vhost", "target device", "backing device"],
            scsi(map, &found),
        );
        section = drawing.into_iter().fold(section, Section::block);
        let columns = ["client", "disk", "→ VIOS", "adapter", "→ target", "→ backing"];
        let mut table =
            Table::new("Virtual SCSI: client disk → vhost → target → backing device", &columns);
        for row in &map.scsi {
            let cells = [&row.client, &row.disk, &row.vios, &row.server, &row.target, &row.backing];
            table.row(cells.into_iter().map(|cell| known(cell)));
        }
        section = section.block(Block::Table(table));
    }
    if !map.ethernet.is_empty() {
        let drawing = drawn(
            "Ethernet, drawn",
            &["virtual adapter", "shared adapter", "uplink"],
            ethernet(map, &found),
        );
        section = drawing.into_iter().fold(section, Section::block);
        let columns = ["VIOS", "virtual adapter", "→ bridge", "→ uplink"];
        let mut table =
            Table::new("Ethernet: virtual adapter → shared Ethernet adapter → uplink", &columns);
        for row in &map.ethernet {
            let bridge = if row.bridge.is_empty() { "none" } else { &row.bridge };
            table.row([
                row.vios.clone(),
                row.adapter.clone(),
                bridge.to_owned(),
                row.uplink.clone(),
            ]);
        }
        section = section.block(Block::Table(table));
    }
    if !map.talkers.is_empty() {
        let columns = ["VIOS", "bridge", "client", "MAC", "VLAN", "#bytes", "#share", "of"];
        let mut table = Table::new("Ethernet: who sends and receives most, by seastat", &columns);
        for row in &map.talkers {
            let of = if row.between_captures { "between captures" } else { "since its reset" };
            table.row([
                row.vios.clone(),
                row.bridge.clone(),
                row.client.clone(),
                row.mac.clone(),
                row.vlan.map_or_else(String::new, |vlan| vlan.to_string()),
                crate::trace::number(row.bytes),
                format!("{:.0} %", row.percent),
                of.to_owned(),
            ]);
        }
        section = section.block(Block::Table(table));
    }
    (!section.blocks.is_empty()).then_some(section)
}
