//! The control queue: task management and asynchronous notification (virtio 1.3, clause 5.6.6.2).

use memory::IoBuf;
use scsi::Lun;
use scsi::management::Function;

use super::{Place, Response};

/// Bytes of the readable part of a task management function; asynchronous notification has fewer.
const REQUEST_BYTES: usize = 24;
/// Bytes of the readable part of an asynchronous notification request.
const NOTIFY_BYTES: usize = 16;

/// A task management function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Management {
    /// Which.
    pub function: Function,
    /// At which target.
    pub target: u8,
    /// At which logical unit; [`Function::NexusReset`] goes to all of the target.
    pub lun: Option<Lun>,
    /// Which command, for [`Function::AbortTask`] and [`Function::QueryTask`].
    pub id: u64,
}

impl Management {
    /// Whether its client's own command at a logical unit is meant.
    pub(crate) fn covers(&self, target: u8, lun: Lun, id: u64) -> bool {
        self.target == target
            && self.lun.is_none_or(|it| it == lun)
            && (self.function != Function::AbortTask || self.id == id)
    }
}

/// A request of the control queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Control {
    /// A task management function.
    Manage(Management),
    /// Asks for, or subscribes to, asynchronous notification at an address. There is none.
    Notify(Place),
    /// Is to be answered at once with this.
    Refused(Response),
    /// Of no known type: the answer is the last byte.
    Unknown,
}

/// What is written for a request: `len` bytes from the start of the writable part, or the last one for [`Control::Unknown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The bytes.
    pub bytes: [u8; 5],
    /// How many of them.
    pub len: usize,
}

impl Control {
    /// Judges the readable part of a chain. `None`: it is too short.
    #[must_use]
    pub fn parse(readable: &[IoBuf]) -> Option<Control> {
        let mut bytes = [0; REQUEST_BYTES];
        let filled = gather(readable, &mut bytes);
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let eight = |at: usize| -> [u8; 8] { bytes[at..at + 8].try_into().expect("8 bytes") };
        match word(0) {
            0 if filled == REQUEST_BYTES => {
                Some(manage(word(4), Place::decode(eight(8)), u64::from_le_bytes(eight(16))))
            }
            1 | 2 if filled >= NOTIFY_BYTES => Some(Control::Notify(Place::decode(eight(4)))),
            0..=2 => None,
            _ if filled >= 4 => Some(Control::Unknown),
            _ => None,
        }
    }

    /// The bytes of its answer. No notification is supported, so `event_actual` is 0.
    #[must_use]
    pub fn answer(&self, response: Response) -> Answer {
        match self {
            Control::Notify(_) => Answer { bytes: [0, 0, 0, 0, response as u8], len: 5 },
            _ => Answer { bytes: [response as u8, 0, 0, 0, 0], len: 1 },
        }
    }
}

fn manage(subtype: u32, place: Place, id: u64) -> Control {
    let function = match subtype {
        0 => Function::AbortTask,
        1 => Function::AbortTaskSet,
        3 => Function::ClearTaskSet,
        4 => Function::NexusReset,
        5 => Function::LogicalUnitReset,
        6 => Function::QueryTask,
        7 => Function::QueryTaskSet,
        // 2 is CLEAR ACA: there is no ACA.
        _ => return Control::Refused(Response::FunctionRejected),
    };
    let whole = function == Function::NexusReset;
    match place {
        Place::Nowhere | Place::ReportLuns { target: None } => {
            Control::Refused(Response::BadTarget)
        }
        Place::Unit { target, lun } => {
            Control::Manage(Management { function, target, lun: (!whole).then_some(lun), id })
        }
        Place::Nothing { target } | Place::ReportLuns { target: Some(target) } if whole => {
            Control::Manage(Management { function, target, lun: None, id })
        }
        Place::Nothing { .. } | Place::ReportLuns { .. } => {
            Control::Refused(Response::IncorrectLun)
        }
    }
}

/// Copies the first bytes of `bufs` into `to`; how many there were.
fn gather(bufs: &[IoBuf], to: &mut [u8]) -> usize {
    let mut filled = 0;
    for buf in bufs {
        let count = buf.len().min(to.len() - filled);
        buf.read(0, &mut to[filled..filled + count]);
        filled += count;
    }
    filled
}

#[cfg(test)]
mod tests {
    use memory::Lasting;

    use super::*;

    /// Parses bytes that are spread over pieces of these lengths.
    fn parse(bytes: &[u8], lengths: &[usize]) -> Option<Control> {
        let memory = Lasting::new(4096).unwrap();
        let mut at = 0;
        let mut bufs = Vec::new();
        for length in lengths {
            let buf = memory.buf(2 * at, *length).unwrap();
            buf.write(0, &bytes[at..at + length]);
            bufs.push(buf);
            at += length;
        }
        Control::parse(&bufs)
    }

    fn request(subtype: u32, address: [u8; 8], id: u64) -> Vec<u8> {
        [&[0; 4], &subtype.to_le_bytes()[..], &address, &id.to_le_bytes()].concat()
    }

    #[test]
    fn clause_5_6_6_2_functions() {
        let known = [
            (0, Function::AbortTask),
            (1, Function::AbortTaskSet),
            (3, Function::ClearTaskSet),
            (5, Function::LogicalUnitReset),
            (6, Function::QueryTask),
            (7, Function::QueryTaskSet),
        ];
        for (subtype, function) in known {
            let bytes = request(subtype, [1, 2, 0x40, 3, 0, 0, 0, 0], 0x1122_3344_5566_7788);
            let lun = Lun::new(3);
            let expected = Management { function, target: 2, lun, id: 0x1122_3344_5566_7788 };
            assert_eq!(parse(&bytes, &[24]), Some(Control::Manage(expected)));
            assert_eq!(parse(&bytes, &[3, 1, 9, 11]), Some(Control::Manage(expected)));
            assert_eq!(parse(&bytes, &[23]), None);
        }
        let rejected = Some(Control::Refused(Response::FunctionRejected));
        assert_eq!(parse(&request(2, [1, 2, 0, 3, 0, 0, 0, 0], 0), &[24]), rejected);
        assert_eq!(parse(&request(8, [1, 2, 0, 3, 0, 0, 0, 0], 0), &[24]), rejected);
    }

    #[test]
    fn a_nexus_reset_ignores_the_logical_unit() {
        for address in [[1, 2, 0, 3, 0, 0, 0, 0], [1, 2, 0x80, 3, 9, 9, 0, 0]] {
            let function = Function::NexusReset;
            let expected = Management { function, target: 2, lun: None, id: 9 };
            assert_eq!(parse(&request(4, address, 9), &[24]), Some(Control::Manage(expected)));
        }
    }

    #[test]
    fn addresses_of_nothing_are_refused() {
        let nothing = request(5, [1, 2, 0x80, 3, 0, 0, 0, 0], 0);
        assert_eq!(parse(&nothing, &[24]), Some(Control::Refused(Response::IncorrectLun)));
        let nowhere = request(5, [0, 2, 0, 3, 0, 0, 0, 0], 0);
        assert_eq!(parse(&nowhere, &[24]), Some(Control::Refused(Response::BadTarget)));
    }

    #[test]
    fn notification_is_asked_for_and_there_is_none() {
        let bytes = [&1_u32.to_le_bytes()[..], &[1, 2, 0, 3, 0, 0, 0, 0], &[0xff; 4]].concat();
        let place = Place::Unit { target: 2, lun: Lun::new(3).unwrap() };
        let control = parse(&bytes, &[16]).unwrap();
        assert_eq!(control, Control::Notify(place));
        assert_eq!(control.answer(Response::Ok), Answer { bytes: [0; 5], len: 5 });
        assert_eq!(parse(&bytes, &[15]), None);
    }

    #[test]
    fn unknown_types_are_told_apart_from_short_ones() {
        assert_eq!(parse(&[3, 0, 0, 0], &[4]), Some(Control::Unknown));
        assert_eq!(parse(&[3, 0, 0, 0], &[3]), None);
        assert_eq!(parse(&[], &[]), None);
        assert_eq!(Control::Unknown.answer(Response::Failure).bytes[0], 9);
    }
}
