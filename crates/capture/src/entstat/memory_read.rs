//! Reads what a virtual Ethernet adapter says of its memory.

use super::VirtualEthernet;
use crate::page::put;
use crate::text::{Plain, number};
use crate::{At, Read};

/// Parts of it, which nothing needs; anything else is not known.
pub(super) fn memory(text: &str) -> bool {
    let names = [
        "Virtual Memory",
        "I/O Memory",
        "Transmit Buffers",
        "History",
        "Total (KB)",
        "VRM Minimum (KB)",
        "VRM Desired (KB)",
        "DMA Max Min (KB)",
        "Buffer Size",
        "Buffers",
        "No Buffers",
        "Minimum (KB)",
        "Maximum (KB)",
        "Total KB",
        "LPAR Active Memory Sharing:",
    ];
    names.iter().any(|name| text.starts_with(name))
}

/// What it says of all of it: `Buffer Mode: Min`, `Total VRM Minimum (KB)    15716`.
pub(super) fn total(own: &mut VirtualEthernet, text: &str, at: At) -> bool {
    if let Some(mode) = text.strip_prefix("Buffer Mode:").map(Plain::bare) {
        return !mode.is_empty() && put(&mut own.buffer_mode, mode.to_owned(), at);
    }
    let fields: [(&str, &mut Option<Read<u64>>); 3] = [
        ("Total VRM Minimum (KB)", &mut own.vrm_minimum_kb),
        ("Total VRM Desired (KB)", &mut own.vrm_desired_kb),
        ("Total DMA Max Min (KB)", &mut own.dma_max_min_kb),
    ];
    let found =
        fields.into_iter().find_map(|(name, place)| Some((text.strip_prefix(name)?, place)));
    found.is_some_and(|(value, place)| {
        number(value.bare()).is_some_and(|value| put(place, value, at))
    })
}
