//! INQUIRY (SPC-4, 6.6): standard data and the vital product data pages 00, 80, 83, 86, B0, B1 and B2.

use crate::nexus::InitiatorId;
use crate::sense::SENSE_BYTES_MAX;
use crate::unit::{
    LogicalUnit, Nexus, UNMAP_BLOCKS_MAX, UNMAP_DESCRIPTORS_MAX, UnitKind, WRITE_SAME_BLOCKS_MAX,
};
use crate::wire::{ascii, clip16, clip32, put};

/// Standard data with version descriptors.
const STANDARD_BYTES: usize = 96;
/// SPC-4.
const VERSION: u8 = 0x06;
/// Version descriptors (SPC-4, table 143): SAM-5, SPC-4, and SBC-3 or MMC-6.
const STANDARDS: [u16; 2] = [0x00a0, 0x0460];
const SBC: u16 = 0x04c0;
const MMC: u16 = 0x04e0;
/// FCP-4 and SRP.
const FCP: u16 = 0x0a40;
const SRP: u16 = 0x0940;

/// PERIPHERAL QUALIFIER 011b and DEVICE TYPE 1Fh: nothing can be at this address.
pub(crate) const NOTHING_THERE: u8 = 0x7f;
/// A well-known logical unit.
pub(crate) const WELL_KNOWN: u8 = 0x1e;

/// PERIPHERAL DEVICE TYPE (SPC-4, table 139).
fn device(unit: &LogicalUnit) -> u8 {
    match unit.kind {
        UnitKind::Disk => 0x00,
        UnitKind::Optical => 0x05,
    }
}

/// Standard data of something without a name of its own.
pub(crate) fn bare(device: u8) -> Vec<u8> {
    let mut data = vec![0; 36];
    // Response data format 2; HISUP, since LUNs may be flat.
    put(&mut data, 0, &[device, 0, VERSION, 0x12, 31]);
    put(&mut data, 8, &ascii::<8>("TRUNKLIN"));
    put(&mut data, 16, &ascii::<16>("NO LOGICAL UNIT"));
    put(&mut data, 32, &ascii::<4>("0001"));
    data
}

/// Standard data of a logical unit.
pub(crate) fn standard(nexus: &Nexus) -> Vec<u8> {
    let unit = nexus.unit();
    let identity = &unit.identity;
    let mut data = vec![0; STANDARD_BYTES];
    let disk = unit.kind == UnitKind::Disk;
    data[0] = device(unit);
    data[1] = u8::from(unit.removable) << 7;
    data[2] = VERSION;
    // HISUP, response data format 2.
    data[3] = 0x12;
    data[4] = (STANDARD_BYTES - 5) as u8;
    // TPGS: the state of target port groups changes by itself only.
    data[5] = u8::from(disk) << 4;
    // MULTIP: other ports may lead here as well; CMDQUE.
    put(&mut data, 6, &[0x10, 0x02]);
    put(&mut data, 8, &ascii::<8>(&identity.vendor));
    put(&mut data, 16, &ascii::<16>(&identity.product));
    put(&mut data, 32, &ascii::<4>(&identity.revision));
    let own = if disk { SBC } else { MMC };
    for (index, standard) in STANDARDS.into_iter().chain([own, transport(nexus)]).enumerate() {
        put(&mut data, 58 + 2 * index, &standard.to_be_bytes());
    }
    data
}

fn transport(nexus: &Nexus) -> u16 {
    match nexus.id().initiator {
        InitiatorId::Fc(_) => FCP,
        InitiatorId::Srp(_) => SRP,
    }
}

/// Pages that there are, ascending: the last three are SBC-3's.
const PAGES: [u8; 7] = [0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2];
const COMMON_PAGES: usize = 4;

/// A vital product data page; `None` if there is no such page.
pub(crate) fn page(nexus: &Nexus, page: u8) -> Option<Vec<u8>> {
    let unit = nexus.unit();
    let count = if unit.kind == UnitKind::Disk { PAGES.len() } else { COMMON_PAGES };
    let pages = PAGES.get(..count).filter(|pages| pages.contains(&page))?;
    let body = match page {
        0x00 => pages.to_vec(),
        0x80 => printable(&unit.identity.serial),
        0x83 => designators(nexus),
        0x86 => extended(unit),
        0xb0 => block_limits(unit),
        0xb1 => {
            // MEDIUM ROTATION RATE 1: does not rotate (SBC-3, 6.6.3).
            let mut body = vec![0; 60];
            body[1] = 1;
            body
        }
        0xb2 => provisioning(unit).to_vec(),
        _ => return None,
    };
    let mut data = vec![device(unit), page];
    data.extend(clip16(body.len() as u64).to_be_bytes());
    data.extend(body);
    Some(data)
}

fn printable(text: &str) -> Vec<u8> {
    text.bytes().take(252).map(|c| if (0x20..=0x7e).contains(&c) { c } else { b'?' }).collect()
}

/// What a designator names (SPC-4, 7.8.6.1).
const OF_UNIT: u8 = 0x00;
const OF_PORT: u8 = 0x10;
const BINARY: u8 = 1;
const ASCII: u8 = 2;

/// Device identification (SPC-4, 7.8.6): the logical unit's name first, as clients expect it.
fn designators(nexus: &Nexus) -> Vec<u8> {
    let unit = nexus.unit();
    let identity = &unit.identity;
    let protocol = match nexus.id().initiator {
        InitiatorId::Fc(_) => 0x00,
        InitiatorId::Srp(_) => 0x40,
    };
    let mut body = Vec::new();
    let mut add = |set: u8, kind: u8, name: &[u8]| {
        // With PIV the protocol is valid, which it may be for ports only.
        let (protocol, valid) = if kind & OF_PORT != 0 { (protocol, 0x80) } else { (0, 0) };
        // Names are at most 44 bytes.
        body.extend([protocol | set, valid | kind, 0, name.len() as u8]);
        body.extend(name);
    };
    const T10_VENDOR: u8 = 1;
    const NAA: u8 = 3;
    const RELATIVE_PORT: u8 = 4;
    const PORT_GROUP: u8 = 5;
    add(BINARY, OF_UNIT | NAA, &identity.naa.bytes());
    let mut vendor = ascii::<8>(&identity.vendor).to_vec();
    vendor.extend(printable(&identity.serial).into_iter().take(36));
    add(ASCII, OF_UNIT | T10_VENDOR, &vendor);
    if let Some(name) = nexus.port_name() {
        add(BINARY, OF_PORT | NAA, &name.to_be_bytes());
    }
    let port = nexus.id().port;
    add(BINARY, OF_PORT | RELATIVE_PORT, &u32::from(port).to_be_bytes());
    let groups = if unit.kind == UnitKind::Disk { nexus.port_groups() } else { Vec::new() };
    if let Some(group) = groups.iter().find(|group| group.ports.contains(&port)) {
        add(BINARY, OF_PORT | PORT_GROUP, &u32::from(group.id).to_be_bytes());
    }
    body
}

/// Extended INQUIRY data (SPC-4, 7.8.7).
fn extended(unit: &LogicalUnit) -> Vec<u8> {
    let mut body = vec![0; 60];
    // SIMPSUP: commands are simple ones.
    body[1] = 0x01;
    // V_SUP: there is a volatile cache.
    body[2] = u8::from(unit.volatile_cache);
    // MAXIMUM SUPPORTED SENSE DATA LENGTH.
    body[9] = SENSE_BYTES_MAX as u8;
    body
}

/// Block limits (SBC-3, 6.6.4).
fn block_limits(unit: &LogicalUnit) -> Vec<u8> {
    let mut body = vec![0; 60];
    let block = unit.block_size();
    let physical = u64::from(unit.physical_block_size / block);
    body[1] = unit.compare_blocks_max();
    put(&mut body, 2, &clip16(physical).to_be_bytes());
    put(&mut body, 4, &unit.transfer_blocks_max.to_be_bytes());
    put(&mut body, 8, &(unit.optimal_io_size / block).to_be_bytes());
    if unit.thin {
        put(&mut body, 16, &UNMAP_BLOCKS_MAX.to_be_bytes());
        put(&mut body, 20, &UNMAP_DESCRIPTORS_MAX.to_be_bytes());
        put(&mut body, 24, &clip32(physical).to_be_bytes());
        // UGAVALID: aligned from block 0.
        body[28] = 0x80;
    }
    put(&mut body, 32, &u64::from(WRITE_SAME_BLOCKS_MAX).to_be_bytes());
    body
}

/// Logical block provisioning (SBC-3, 6.6.5).
fn provisioning(unit: &LogicalUnit) -> [u8; 4] {
    if !unit.thin {
        return [0; 4];
    }
    // LBPU, LBPWS, LBPWS10, LBPRZ; thin.
    [0, 0xe0 | u8::from(unit.unmapped_is_zero) << 2, 2, 0]
}
