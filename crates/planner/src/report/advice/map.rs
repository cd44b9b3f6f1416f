//! What hangs on what.

use super::{Section, Table, Tone};
use crate::advise::Map;
use crate::report::{Block, Detail};

/// One table for each kind of path that was captured.
pub(super) fn sections(map: &Map) -> Option<Section> {
    let mut section = Section::new("Map", Tone::Plain).only(Detail::Full);
    let known = |text: &str| if text.is_empty() { "?".to_owned() } else { text.to_owned() };
    if !map.fibre.is_empty() {
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
