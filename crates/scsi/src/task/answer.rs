//! Commands that are answered at once: they tell something, or change a bit of state.

use super::decode::{Extent, OUT_OF_RANGE};
use super::medium::Stage;
use super::{Context, Done, Step, Task};
use crate::attention::Attention;
use crate::data::Data;
use crate::nexus::Lun;
use crate::reservation::{Order, Refusal, parse};
use crate::sense::{SENSE_BYTES_MAX, Sense, SenseKey, Status, code};
use crate::table::{self, Spec, Verb, cdb_len};
use crate::unit::{LogicalUnit, Ordered, UnitKind, flag};
use crate::wire::{be16, be32, be64, clip32, put};
use crate::{inquiry, log, mode, optical, ports, report};

/// Gives the client as much of an answer as it has asked for (SPC-4, 4.2.5.6) and has room for.
fn give(data_in: &Data<'_>, bytes: &[u8], allocation: u64) -> Done {
    let wanted = allocation.min(bytes.len() as u64);
    // At most the answer's length.
    let moved = data_in.write(0, &bytes[..wanted as usize]);
    Done::good(wanted, moved as u64)
}

fn reply(cx: &Context<'_>, answer: Result<Vec<u8>, Sense>, allocation: u64) -> Done {
    match answer {
        Ok(bytes) => give(&cx.data_in, &bytes, allocation),
        Err(sense) => Done::check(sense),
    }
}

pub(super) fn answer(cx: &Context<'_>, spec: &Spec, cdb: &[u8; 16]) -> Done {
    let unit = cx.nexus.unit();
    let (two, four) = (u64::from(be16(cdb, 7)), u64::from(be32(cdb, 6)));
    match spec.verb {
        Verb::TestUnitReady => Done::good(0, 0),
        Verb::RequestSense => request_sense(cx, cdb),
        Verb::Inquiry => reply(cx, inquire(cx, cdb), be16(cdb, 3).into()),
        Verb::ReportLuns => {
            let answer = report::luns(cdb[2], cx.luns);
            if answer.is_ok() {
                cx.nexus.forget(Attention::LunsChanged);
            }
            reply(cx, answer, four)
        }
        Verb::ReadCapacity10 => reply(cx, capacity10(unit, cdb), 8),
        Verb::ReadCapacity16 => reply(cx, capacity16(unit, cdb), be32(cdb, 10).into()),
        Verb::GetLbaStatus => reply(cx, lba_status(unit, cdb), be32(cdb, 10).into()),
        Verb::PreFetch => match Extent::of(cdb).to_the_end(unit) {
            // GOOD and not CONDITION MET: the blocks are not promised to be in a cache (SBC-3, 5.6).
            Ok(_) => Done::good(0, 0),
            Err(sense) => Done::check(sense),
        },
        Verb::ModeSense => {
            let allocation = if cdb[0] == 0x1a { cdb[4].into() } else { two };
            reply(cx, mode::sense(unit, cdb), allocation)
        }
        Verb::ModeSelect => mode_select(cx, cdb),
        Verb::PreventAllow => {
            cx.nexus.prevent(cdb[4] & 0x03 != 0);
            Done::good(0, 0)
        }
        Verb::ReportOpcodes => reply(cx, report::opcodes(unit, cdb), four),
        Verb::ReportFunctions => reply(cx, Ok(report::functions(cdb[2] & 0x80 != 0)), four),
        Verb::ReportPortGroups => reply(cx, port_groups(cx, cdb), four),
        Verb::ReservationsIn => reservations_in(cx, cdb, two),
        Verb::Reserve | Verb::Release => reserve(cx, cdb, spec.verb == Verb::Reserve),
        Verb::SendDiagnostic => send_diagnostic(cdb),
        Verb::ReadDefects => {
            let ten = cdb[0] == 0x37;
            reply(cx, defects(cdb), if ten { two } else { four })
        }
        Verb::LogSense => reply(cx, log::sense(cdb), two),
        _ => answer_optical(cx, spec, cdb),
    }
}

/// The commands of optical drives (MMC-6, clause 6).
fn answer_optical(cx: &Context<'_>, spec: &Spec, cdb: &[u8; 16]) -> Done {
    let unit = cx.nexus.unit();
    let (at_seven, at_eight) = (u64::from(be16(cdb, 7)), u64::from(be16(cdb, 8)));
    match spec.verb {
        Verb::ReadToc => reply(cx, optical::toc(unit, cdb), at_seven),
        Verb::GetConfiguration => reply(cx, optical::configuration(unit, cdb), at_seven),
        Verb::EventStatus => reply(cx, optical::event_status(cx.nexus, cdb), at_seven),
        Verb::DiscInformation => reply(cx, optical::disc_information(cdb), at_seven),
        Verb::TrackInformation => reply(cx, optical::track_information(unit, cdb), at_seven),
        Verb::DvdStructure => reply(cx, optical::dvd_structure(unit, cdb), at_eight),
        Verb::MechanismStatus => reply(cx, Ok(optical::mechanism(unit)), at_eight),
        // All that is read comes from a volume, as fast as it can.
        Verb::SetSpeed => Done::good(0, 0),
        _ => Done::check(Sense::illegal(code::INVALID_OPCODE)),
    }
}

/// READ DEFECT DATA (SBC-3, 5.17 and 5.18): an empty list in the format that was asked for.
fn defects(cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let at = if cdb[0] == 0x37 { 2 } else { 1 };
    if cdb[usize::from(at)] & 0x07 == 7 {
        return Err(Sense::cdb_bit(at, 2));
    }
    // REQ_PLIST and REQ_GLIST become PLISTV and GLISTV.
    let lists = cdb[usize::from(at)] & 0x1f;
    Ok(if at == 2 { vec![0, lists, 0, 0] } else { vec![0, lists, 0, 0, 0, 0, 0, 0] })
}

/// SPC-4, 6.39. A pending unit attention is told here, and is then no longer pending.
fn request_sense(cx: &Context<'_>, cdb: &[u8; 16]) -> Done {
    let unit = cx.nexus.unit();
    let pending = cx.nexus.gate().take().map(Attention::sense);
    let no_medium = unit.flags() & flag::NO_MEDIUM != 0;
    let sense = pending.unwrap_or(if no_medium { unit.not_ready() } else { Sense::NONE });
    let mut bytes = [0; SENSE_BYTES_MAX];
    let len = sense.encode(cdb[1] & 1 != 0, &mut bytes);
    give(&cx.data_in, &bytes[..len], cdb[4].into())
}

fn inquire(cx: &Context<'_>, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    match (cdb[1] & 1 != 0, cdb[2]) {
        (false, 0) => Ok(inquiry::standard(cx.nexus)),
        (false, _) => Err(Sense::cdb(2)),
        (true, page) => inquiry::page(cx.nexus, page).ok_or(Sense::cdb(2)),
    }
}

/// SBC-3, 5.15.
fn capacity10(unit: &LogicalUnit, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    if cdb[8] & 1 == 0 && be32(cdb, 2) != 0 {
        // An LBA without PMI.
        return Err(Sense::cdb(2));
    }
    let mut bytes = clip32(unit.blocks().saturating_sub(1)).to_be_bytes().to_vec();
    bytes.extend(unit.block_size().to_be_bytes());
    Ok(bytes)
}

/// SBC-3, 5.16.
fn capacity16(unit: &LogicalUnit, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    if cdb[14] & 1 == 0 && be64(cdb, 2) != 0 {
        return Err(Sense::cdb(2));
    }
    let mut bytes = vec![0; 32];
    put(&mut bytes, 0, &unit.blocks().saturating_sub(1).to_be_bytes());
    put(&mut bytes, 8, &unit.block_size().to_be_bytes());
    let blocks = unit.physical_block_size / unit.block_size();
    bytes[13] = blocks.checked_ilog2().map_or(0, |exponent| exponent.min(15) as u8);
    // LBPME, LBPRZ.
    let zero = unit.thin && unit.unmapped_is_zero;
    bytes[14] = u8::from(unit.thin) << 7 | u8::from(zero) << 6;
    Ok(bytes)
}

/// SBC-3, 5.4. The volume does not say what it has given back, so all is "mapped or unknown" (table 68).
fn lba_status(unit: &LogicalUnit, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let lba = be64(cdb, 2);
    let rest = unit.blocks().checked_sub(lba).filter(|rest| *rest > 0).ok_or(OUT_OF_RANGE)?;
    let mut bytes = vec![0; 24];
    put(&mut bytes, 0, &20_u32.to_be_bytes());
    put(&mut bytes, 8, &lba.to_be_bytes());
    put(&mut bytes, 16, &clip32(rest).to_be_bytes());
    Ok(bytes)
}

fn mode_select(cx: &Context<'_>, cdb: &[u8; 16]) -> Done {
    match mode::select(cx.nexus.unit(), cdb, &cx.data_out) {
        Ok((bytes, changed)) => {
            if changed {
                cx.nexus.tell_others(Attention::ModeChanged);
            }
            Done::good(bytes, bytes)
        }
        Err(sense) => Done::check(sense),
    }
}

fn port_groups(cx: &Context<'_>, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    match cdb[1] >> 5 {
        format @ (0 | 1) => Ok(ports::report(&cx.nexus.port_groups(), format == 1)),
        _ => Err(Sense::cdb_bit(1, 7)),
    }
}

/// RESERVE and RELEASE of the whole logical unit, for oneself (SPC-2, 7.21 to 7.24): an extent would be less than was asked for, and a third
/// party somebody else.
fn reserve(cx: &Context<'_>, cdb: &[u8; 16], reserve: bool) -> Done {
    match cdb[1] & 0x11 {
        0 => Done::status(cx.nexus.reserve(reserve)),
        extent if extent & 1 != 0 => Done::check(Sense::cdb_bit(1, 0)),
        _ => Done::check(Sense::cdb_bit(1, 4)),
    }
}

/// SEND DIAGNOSTIC (SPC-4): the default self-test, which a disk without parts of its own passes. There are no other tests and no pages.
fn send_diagnostic(cdb: &[u8; 16]) -> Done {
    match (cdb[1] >> 5, be16(cdb, 3)) {
        (0, 0) => Done::good(0, 0),
        (0, _) => Done::check(Sense::cdb(3)),
        _ => Done::check(Sense::cdb_bit(1, 7)),
    }
}

fn reservations_in(cx: &Context<'_>, cdb: &[u8; 16], allocation: u64) -> Done {
    let kept = cx.nexus.unit().keeps;
    // SPC-2, 5.5.1: not while a RESERVE is in force, whoever asks.
    let answer = cx.nexus.reservations_in(|state| {
        state.reserve.is_none().then(|| state.report(cdb[1] & 0x1f, kept))
    });
    match answer {
        Some(bytes) => give(&cx.data_in, &bytes, allocation),
        None => Done::status(Status::ReservationConflict),
    }
}

impl Task {
    /// START STOP UNIT (SBC-3, 5.21; MMC-6, 6.42). Stopping writes the cache out and no more: other clients use the disk. A power condition
    /// changes nothing, since there is no power to save, and is accepted.
    pub(super) fn begin_start_stop(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Step {
        let unit = cx.nexus.unit();
        let (eject_or_load, start) = (cdb[4] & 2 != 0, cdb[4] & 1 != 0);
        let optical = unit.kind == UnitKind::Optical;
        let no_flush = cdb[4] & 4 != 0 && !optical;
        self.job = super::Job::NOTHING;
        if optical && cdb[4] & 4 != 0 {
            // FL: there are no format layers to choose from (MMC-6, 6.42).
            return Step::Done(Done::check(Sense::cdb_bit(4, 2)));
        }
        if cdb[4] & 0xf0 != 0 {
            return Step::Done(Done::good(0, 0));
        }
        if eject_or_load {
            if !unit.removable {
                return Step::Done(Done::check(Sense::cdb_bit(4, 1)));
            }
            let moved = if start { cx.nexus.load() } else { cx.nexus.eject() };
            if let Err(sense) = moved {
                return Step::Done(Done::check(sense));
            }
        } else if optical && start && unit.flags() & flag::NO_MEDIUM != 0 {
            return Step::Done(Done::check(unit.not_ready()));
        }
        if start || no_flush {
            return Step::Done(Done::good(0, 0));
        }
        self.flush()
    }

    /// PERSISTENT RESERVE OUT (SPC-4, 6.16).
    pub(super) fn begin_reservations_out(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Step {
        let order: Order = match parse(cdb, &cx.data_out) {
            Ok(order) => order,
            Err(sense) => return Step::Done(Done::check(sense)),
        };
        let bytes = u64::from(be32(cdb, 5));
        self.job = super::Job { wanted: bytes, moved: bytes, ..super::Job::NOTHING };
        if let Some(at) = order.aptpl_at().filter(|_| !cx.nexus.unit().keeps) {
            return Step::Done(Done::check(Sense::parameter(at)));
        }
        let (from, ports) = (cx.nexus.id(), cx.nexus.target_ports());
        match cx.nexus.reservations_out(|state| state.apply(from, &ports, &order)) {
            Ok(Ordered::Done(abort)) => self.abort_others(cx, abort),
            Ok(Ordered::Busy) => Step::Done(Done::status(Status::Busy)),
            Ok(Ordered::Store(state)) => {
                self.stage = Stage::Store;
                Step::Store(Box::new(state))
            }
            Err(Refusal::Conflict) => Step::Done(Done::status(Status::ReservationConflict)),
            Err(Refusal::Sense(sense)) => Step::Done(Done::check(sense)),
        }
    }
}

/// See [`super::unattached`].
pub(super) fn unattached(well_known: bool, luns: &[Lun], data_in: &Data<'_>, cdb: &[u8]) -> Done {
    let mut bytes = [0; 16];
    let len = cdb.len().min(16);
    bytes[..len].copy_from_slice(&cdb[..len]);
    let nothing = Done::check(Sense::illegal(code::LUN_NOT_SUPPORTED));
    let unknown = Done::check(Sense::illegal(code::INVALID_OPCODE));
    let refused = if well_known { unknown } else { nothing };
    let verb = table::find(bytes[0], bytes[1]).ok().map(|spec| spec.verb);
    if cdb_len(bytes[0]).is_none_or(|needed| cdb.len() < needed) {
        return refused;
    }
    match verb {
        Some(Verb::Inquiry) if bytes[1] & 1 == 0 && bytes[2] == 0 => {
            let device = if well_known { inquiry::WELL_KNOWN } else { inquiry::NOTHING_THERE };
            give(data_in, &inquiry::bare(device), be16(&bytes, 3).into())
        }
        Some(Verb::Inquiry) if well_known && bytes[1] & 1 == 1 && bytes[2] == 0 => {
            give(data_in, &[inquiry::WELL_KNOWN, 0, 0, 1, 0], be16(&bytes, 3).into())
        }
        Some(Verb::Inquiry) => Done::check(Sense::cdb(2)),
        // LUN 0 has to answer it, there or not (SPC-4, 6.33), and so it is answered everywhere.
        Some(Verb::ReportLuns) => match report::luns(bytes[2], luns) {
            Ok(list) => give(data_in, &list, be32(&bytes, 6).into()),
            Err(sense) => Done::check(sense),
        },
        Some(Verb::RequestSense) => {
            let sense = if well_known {
                Sense::NONE
            } else {
                Sense::new(SenseKey::IllegalRequest, code::LUN_NOT_SUPPORTED)
            };
            let mut encoded = [0; SENSE_BYTES_MAX];
            let len = sense.encode(bytes[1] & 1 != 0, &mut encoded);
            give(data_in, &encoded[..len], bytes[4].into())
        }
        Some(Verb::TestUnitReady) if well_known => Done::good(0, 0),
        _ => refused,
    }
}
