//! What few commands need: a part of their buffers, scratch memory, time, errands, an answer that is not GOOD; and commands to nothing.

use std::time::{Duration, Instant};

use device::scsi::{
    Chain, Fault, Header, Parsed, Place, Range, Response, outcome, parse, response, scatter,
};
use memory::IoBuf;
use protocol::stats::QueueCounter;
use scsi::{
    BlockRequest, Data, Done, Input, Memory, SENSE_BYTES_MAX, Sense, SenseKey, Status, Step,
};
use vring::Head;

use super::super::Io;
use super::super::io::{Timer, Walked, tag_of};
use super::Tally;
use crate::command::State;
use crate::lists;
use crate::queue::{Active, Kind, NO_BINDING, QueueId};
use crate::scsi::{AbortScope, Admission, Answer, CommandRef, Errand, Pause, Verdict, Whom};

/// How long a task waits that another command is in the way of.
const RETRY: Duration = Duration::from_micros(100);

/// A chain that was looked at without a slot for it. Off the path of an I/O: it has memory of its own.
pub(super) struct Peeked {
    bufs: Vec<IoBuf>,
    pub(super) header: Header,
    response: Range,
    data_bytes: u64,
}

impl Io {
    /// Whether a command may become active; if not it is held.
    #[inline]
    pub(in super::super) fn admit(&mut self, queue: &mut Active, head: Head) -> bool {
        let Kind::Request(requests) = &mut queue.kind else {
            return !matches!(queue.kind, Kind::Control(_)) || self.admit_function(queue, head);
        };
        match requests.admit() {
            Admission::Own => true,
            Admission::Global => {
                queue.count(QueueCounter::GlobalCommands, 1);
                true
            }
            Admission::Wait => {
                requests.held.push_back(head.0);
                queue.seat.commands[usize::from(head.0)].state = State::Held;
                queue.parked += 1;
                queue.count(QueueCounter::WaitNoCommand, 1);
                queue.show_levels();
                false
            }
        }
    }

    /// Takes up held commands and functions, as far as they may be active now.
    pub(in super::super) fn take_held(&mut self, id: u16, queue: &mut Active) {
        while let Kind::Request(requests) = &mut queue.kind {
            let Some(head) = requests.held.front().copied().map(Head) else { return };
            match requests.admit() {
                Admission::Wait => return,
                Admission::Global => queue.count(QueueCounter::GlobalCommands, 1),
                Admission::Own => {}
            }
            let Kind::Request(requests) = &mut queue.kind else { return };
            requests.held.pop_front();
            queue.parked -= 1;
            queue.seat.commands[usize::from(head.0)].state = State::Unread;
            self.read(id, queue, head);
        }
        self.take_held_functions(id, queue);
    }

    /// A chain that is no request, or that needs another place for a buffer.
    #[cold]
    pub(super) fn faulty(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        fault: Fault,
        walked: Walked,
    ) {
        let command = &mut queue.seat.commands[usize::from(head.0)];
        if fault == Fault::NoRoom {
            match command.list {
                None => return self.read_long(id, queue, head),
                Some(list) if list.is_own() => {
                    command.list = None;
                    if let Kind::Request(requests) = &mut queue.kind {
                        requests.lists.push(list);
                    }
                    return self.read_shared(id, queue, head);
                }
                Some(_) => {}
            }
        }
        self.spoilt_command(id, queue, head, walked.readable, walked.total);
    }

    /// A chain that breaks the rules. Where there is room for it, the response says FAILURE.
    #[cold]
    pub(in super::super) fn spoilt_command(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        readable: usize,
        total: usize,
    ) {
        queue.count(QueueCounter::BadChains, 1);
        queue.count(QueueCounter::Errors, 1);
        let bytes = response(Response::Failure, Status::Good, 0, 0);
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let bufs = command.all(&mut self.lists);
        let writable = &bufs[readable.min(bufs.len())..total.min(bufs.len())];
        let room: usize = writable.iter().map(|buf| buf.len()).sum();
        let mut written = 0;
        if room >= bytes.len() {
            written = scatter(&bytes, writable);
            writable.iter().for_each(|buf| queue.seat.ring.mark_written(*buf));
        }
        self.leave(id, queue, head, written as u64);
    }

    /// A command to something that is no logical unit of the client's, or in both directions when that was not negotiated.
    #[cold]
    pub(super) fn elsewhere(&mut self, id: u16, queue: &mut Active, head: Head, header: &Header) {
        let Kind::Request(requests) = &mut queue.kind else { return };
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let slot = &requests.slots[usize::from(head.0)];
        let both = slot.out_bytes != 0 && slot.in_bytes != 0;
        let map = &requests.map;
        let (target, well_known) = match Place::decode(header.address()) {
            Place::Unit { target, .. } | Place::Nothing { target } => (Some(target), false),
            Place::ReportLuns { target: Some(target) } => (Some(target), true),
            Place::ReportLuns { target: None } => (map.first_target(), true),
            Place::Nowhere => (None, false),
        };
        if both && !requests.limits.inout {
            return self.respond(id, queue, head, Response::Failure);
        }
        let Some(target) = target.filter(|target| map.has_target(*target)) else {
            return self.respond(id, queue, head, Response::BadTarget);
        };
        let bufs = slot.data_in.of_bufs(command.all(&mut self.lists));
        let data_in = Data { bufs, len: slot.in_bytes };
        let done = scsi::unattached(well_known, map.luns(target), &data_in, header.cdb());
        if header.opcode() == 0xa0 && done.status == Status::Good {
            requests.forget_changed_luns(target);
        }
        self.conclude_with(id, queue, head, &done, false);
    }

    /// Ends a command that has no status.
    #[cold]
    pub(super) fn respond(&mut self, id: u16, queue: &mut Active, head: Head, what: Response) {
        let Kind::Request(requests) = &queue.kind else { return };
        let slot = &requests.slots[usize::from(head.0)];
        let residual = u32::try_from(slot.out_bytes + slot.in_bytes).unwrap_or(u32::MAX);
        match what {
            Response::Aborted | Response::Reset => {}
            // Clients ask every target that there could be whether it is there.
            Response::BadTarget => queue.count(QueueCounter::ControlRequests, 1),
            _ => Tally::of(queue, slot.binding).add(QueueCounter::Errors, 1),
        }
        let bytes = response(what, Status::Good, residual, 0);
        let written = self.write_response(queue, head, &[&bytes]);
        self.leave(id, queue, head, written);
    }

    /// Where a request's memory is, if it is not all of the client's buffers in one direction.
    #[cold]
    pub(super) fn part_of_memory(
        &mut self,
        queue: &mut Active,
        head: Head,
        request: &BlockRequest,
    ) -> Range {
        let Kind::Request(requests) = &mut queue.kind else { return Range::default() };
        let slot = &mut requests.slots[usize::from(head.0)];
        let (range, skip) = match request.memory {
            Memory::DataIn(skip) => (slot.data_in, skip),
            Memory::DataOut(skip) => (slot.data_out, skip),
            Memory::Scratch => {
                let whole = slot.scratch.map_or(IoBuf::EMPTY, |id| self.scratches.get(id));
                // At most the scratch memory's length, as the task promises.
                slot.piece = whole.slice(0, request.len as usize);
                slot.from_scratch = true;
                return Range::default();
            }
            Memory::None => return Range::default(),
        };
        let command = &mut queue.seat.commands[usize::from(head.0)];
        slot.is_cut = true;
        cut(command.all(&mut self.lists), range, skip, request.len, &mut slot.cut)
    }

    /// Puts shortened buffers back.
    #[cold]
    pub(super) fn mend(&mut self, queue: &mut Active, head: Head) {
        let Kind::Request(requests) = &mut queue.kind else { return };
        let slot = &mut requests.slots[usize::from(head.0)];
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let bufs = command.all(&mut self.lists);
        // The latest first: both may be the same buffer.
        for (index, whole) in slot.cut.iter_mut().rev().filter_map(Option::take) {
            bufs[usize::from(index)] = whole;
        }
        slot.is_cut = false;
    }

    /// What a task asks for besides the volume. The answer, if it is there at once.
    #[cold]
    pub(super) fn rare(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        step: Step,
    ) -> Option<Input> {
        match step {
            Step::Scratch => self.find_scratch(id, queue, head),
            Step::Wait => {
                self.pause(queue, head, Pause::Time);
                queue.parked += 1;
                self.timers.push(Timer { at: Instant::now() + RETRY, tag: tag_of(id, head) });
                None
            }
            Step::Store(state) => {
                let ticket = self.next_ticket(queue, head)?;
                let unit = self.unit_of(queue, head)?;
                let answer = Answer::new(self.inbox.clone(), QueueId(id), head.0, ticket);
                (queue.seat.adapter.errands)(Errand::Store { unit, state, answer });
                None
            }
            Step::Abort(whose) => {
                let ticket = self.next_ticket(queue, head)?;
                let unit = self.unit_of(queue, head)?;
                let me = CommandRef { channel: self.channel, queue: QueueId(id), head: head.0 };
                let scope = AbortScope {
                    unit,
                    whom: Whom::Nexuses(whose),
                    except: Some(me),
                    verdict: Verdict::TaskAborted,
                };
                let answer = Answer::new(self.inbox.clone(), QueueId(id), head.0, ticket);
                (queue.seat.adapter.errands)(Errand::Abort { scope, answer });
                None
            }
            Step::Submit(_) | Step::Done(_) => None,
        }
    }

    fn unit_of(&self, queue: &Active, head: Head) -> Option<std::sync::Arc<scsi::LogicalUnit>> {
        let Kind::Request(requests) = &queue.kind else { return None };
        let slot = &requests.slots[usize::from(head.0)];
        Some(requests.binding(slot.binding)?.nexus.unit().clone())
    }

    /// Notes that a command waits for an errand.
    fn next_ticket(&mut self, queue: &mut Active, head: Head) -> Option<u64> {
        self.tickets += 1;
        self.pause(queue, head, Pause::Errand);
        queue.errands += 1;
        let Kind::Request(requests) = &mut queue.kind else { return None };
        requests.slots[usize::from(head.0)].ticket = self.tickets;
        Some(self.tickets)
    }

    fn pause(&mut self, queue: &mut Active, head: Head, pause: Pause) {
        queue.seat.commands[usize::from(head.0)].state = State::Paused;
        let Kind::Request(requests) = &mut queue.kind else { return };
        requests.slots[usize::from(head.0)].pause = pause;
    }

    fn find_scratch(&mut self, id: u16, queue: &mut Active, head: Head) -> Option<Input> {
        if let Some(scratch) = self.scratches.take() {
            let Kind::Request(requests) = &mut queue.kind else { return None };
            requests.slots[usize::from(head.0)].scratch = Some(scratch);
            return Some(Input::Ready);
        }
        self.pause(queue, head, Pause::Scratch);
        queue.parked += 1;
        queue.count(QueueCounter::WaitNoDma, 1);
        self.waiting.push_back(tag_of(id, head));
        None
    }

    /// A paused command is tried again.
    pub(in super::super) fn unpause(&mut self, id: u16, queue: &mut Active, head: Head) {
        let Kind::Request(requests) = &queue.kind else { return };
        let input = match requests.slots[usize::from(head.0)].pause {
            Pause::Scratch => self.find_scratch(id, queue, head),
            Pause::Time => Some(Input::Ready),
            Pause::Errand => None,
        };
        if let Some(input) = input {
            self.go_on(id, queue, head, input);
        }
    }

    /// A command ends in another way than with GOOD and all of its data.
    #[cold]
    pub(super) fn conclude_rarely(&mut self, id: u16, queue: &mut Active, head: Head, done: &Done) {
        let Kind::Request(requests) = &queue.kind else { return };
        let slot = &requests.slots[usize::from(head.0)];
        if let Some(verdict) = slot.verdict {
            return self.aborted(id, queue, head, verdict);
        }
        let Some(binding) = requests.binding(slot.binding) else { return };
        if slot.opcode == 0xa0 && done.status == Status::Good {
            requests.forget_changed_luns(binding.target);
        }
        let descriptors = binding.nexus.descriptor_sense();
        self.conclude_with(id, queue, head, done, descriptors);
    }

    /// The whole of a response: status, sense data, residual.
    fn conclude_with(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        done: &Done,
        descriptors: bool,
    ) {
        let Kind::Request(requests) = &queue.kind else { return };
        let slot = &requests.slots[usize::from(head.0)];
        let (out_bytes, in_bytes, data_in) = (slot.out_bytes, slot.in_bytes, slot.data_in);
        let (opcode, binding) = (slot.opcode, slot.binding);
        let (what, residual) = outcome(done, out_bytes + in_bytes);
        let mut sense = [0; SENSE_BYTES_MAX];
        let len = done.sense.map_or(0, |it| it.encode(descriptors, &mut sense));
        let len = len.min(usize::from(requests.limits.sizes.sense()));
        // At most a few dozen.
        let fixed = response(what, done.status, residual, len as u32);
        let mut written = self.write_response(queue, head, &[&fixed, &sense[..len]]);
        self.log_range(queue, head, data_in);
        // In both directions it is not known which one was used; fewer bytes may be said than were written.
        if out_bytes == 0 {
            written += done.moved.min(in_bytes);
        }
        let tally = Tally::of(queue, binding);
        match done.status {
            Status::Good if what == Response::Ok => tally.good(opcode, done.moved),
            Status::Good => tally.add(QueueCounter::Errors, 1),
            status => count_status(&tally, status, done.sense),
        }
        self.leave(id, queue, head, written);
    }

    /// Writes the parts of a response; how many bytes of the writable part are then accounted for.
    fn write_response(&mut self, queue: &mut Active, head: Head, parts: &[&[u8]]) -> u64 {
        let Kind::Request(requests) = &queue.kind else { return 0 };
        let slot = &requests.slots[usize::from(head.0)];
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let bufs = slot.response.of_bufs(command.all(&mut self.lists));
        // At most a fixed part and some dozens of bytes of sense data: one copy.
        let mut bytes = [0; 12 + SENSE_BYTES_MAX];
        let mut len = 0;
        for part in parts {
            bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        scatter(&bytes[..len], bufs);
        bufs.iter().for_each(|buf| queue.seat.ring.mark_written(*buf));
        requests.limits.sizes.response_bytes() as u64
    }

    /// Ends an aborted command.
    #[cold]
    pub(super) fn aborted(&mut self, id: u16, queue: &mut Active, head: Head, verdict: Verdict) {
        let Kind::Request(requests) = &queue.kind else { return };
        let binding = requests.slots[usize::from(head.0)].binding;
        Tally::of(queue, binding).add(QueueCounter::Aborted, 1);
        self.ended_early.push(tag_of(id, head));
        match verdict {
            Verdict::Aborted => self.respond(id, queue, head, Response::Aborted),
            Verdict::Reset => self.respond(id, queue, head, Response::Reset),
            Verdict::TaskAborted => {
                let status = Status::TaskAborted;
                let done = Done { status, sense: None, wanted: 0, moved: 0 };
                self.conclude_with(id, queue, head, &done, false);
            }
        }
    }

    /// Looks at the chain of a head without beginning its command. `None`: it is no request.
    pub(super) fn peek(&mut self, queue: &mut Active, head: Head) -> Option<Peeked> {
        let Kind::Request(requests) = &queue.kind else { return None };
        let mut bufs = vec![IoBuf::EMPTY; lists::LENGTH];
        let mut walk = vring::Chain::new(&mut bufs);
        queue.seat.ring.chain(head, &mut walk).ok()?;
        let Walked { readable, total, readable_bytes, writable_bytes } = Walked::of(&walk);
        let mut chain = Chain { bufs: &mut bufs, total, readable, readable_bytes, writable_bytes };
        let mut header = Header::EMPTY;
        let Parsed { response, out_bytes, in_bytes, .. } =
            parse(&requests.limits.sizes, &mut chain, &mut header).ok()?;
        Some(Peeked { bufs, header, response, data_bytes: out_bytes + in_bytes })
    }

    /// Ends a command that was only looked at.
    pub(super) fn end_peeked(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        peeked: &Peeked,
        verdict: Verdict,
    ) {
        let Kind::Request(requests) = &queue.kind else { return };
        let written = requests.limits.sizes.response_bytes() as u64;
        let (what, status) = match verdict {
            Verdict::Aborted => (Response::Aborted, Status::Good),
            Verdict::Reset => (Response::Reset, Status::Good),
            Verdict::TaskAborted => (Response::Ok, Status::TaskAborted),
        };
        let residual = u32::try_from(peeked.data_bytes).unwrap_or(u32::MAX);
        let bufs = peeked.response.of_bufs(&peeked.bufs);
        scatter(&response(what, status, residual, 0), bufs);
        bufs.iter().for_each(|buf| queue.seat.ring.mark_written(*buf));
        queue.count(QueueCounter::Aborted, 1);
        self.settle(id, queue, head, NO_BINDING, written);
    }

    /// A command that an earlier process took and did not finish. Most are done again; what must not happen twice ends as a reset
    /// ends it, which the unit attention POWER ON explains.
    #[cold]
    pub(in super::super) fn begin_again(&mut self, id: u16, queue: &mut Active, head: Head) {
        match queue.kind {
            Kind::Request(_) => {}
            Kind::Control(_) => return self.refuse_control_again(id, queue, head),
            _ => return self.begin(id, queue, head),
        }
        match self.peek(queue, head) {
            Some(peeked) if happens_once(peeked.header.opcode()) => {
                self.note_taken(queue, head);
                self.end_peeked(id, queue, head, &peeked, Verdict::Reset);
            }
            _ => self.begin(id, queue, head),
        }
    }
}

/// COMPARE AND WRITE, PERSISTENT RESERVE OUT, RESERVE and RELEASE.
fn happens_once(opcode: u8) -> bool {
    matches!(opcode, 0x89 | 0x5f | 0x16 | 0x56 | 0x17 | 0x57)
}

/// Shortens the first and the last buffer of a range so that they hold `len` bytes from `skip` on. What they were is put into `saved`.
fn cut(
    bufs: &mut [IoBuf],
    range: Range,
    skip: u64,
    len: u64,
    saved: &mut [Option<(u16, IoBuf)>; 2],
) -> Range {
    let (mut first, mut skip) = (range.first, skip);
    while first < range.end && skip >= bufs[usize::from(first)].len() as u64 {
        skip -= bufs[usize::from(first)].len() as u64;
        first += 1;
    }
    if first == range.end {
        return Range { first, end: first };
    }
    let whole = bufs[usize::from(first)];
    // Less than the buffer's length.
    let skip = skip as usize;
    saved[0] = Some((first, whole));
    bufs[usize::from(first)] = whole.slice(skip, whole.len() - skip);
    let (mut end, mut left) = (first, len);
    while end < range.end && left > bufs[usize::from(end)].len() as u64 {
        left -= bufs[usize::from(end)].len() as u64;
        end += 1;
    }
    if end < range.end {
        let last = bufs[usize::from(end)];
        saved[1] = Some((end, last));
        // At most the buffer's length.
        bufs[usize::from(end)] = last.slice(0, left as usize);
        end += 1;
    }
    Range { first, end }
}

#[cold]
fn count_status(tally: &Tally<'_>, status: Status, sense: Option<Sense>) {
    match status {
        Status::CheckCondition => tally.add(QueueCounter::CheckConditions, 1),
        Status::ReservationConflict => tally.add(QueueCounter::ReservationConflicts, 1),
        _ => {}
    }
    let Some(sense) = sense else { return };
    match sense.key {
        SenseKey::UnitAttention => tally.add(QueueCounter::UnitAttentions, 1),
        SenseKey::MediumError | SenseKey::HardwareError => tally.add(QueueCounter::Errors, 1),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use memory::Mapping;

    use super::*;

    #[test]
    fn a_part_of_buffers_is_cut_and_mended() {
        let memory = Mapping::anonymous(4096).unwrap();
        let lengths = [7, 0, 5, 0, 12, 1];
        let mut at = 0;
        let whole: Vec<IoBuf> = lengths
            .iter()
            .map(|len| {
                at += len;
                memory.buf(at - len, *len).unwrap()
            })
            .collect();
        let places = |bufs: &[IoBuf]| -> Vec<usize> {
            let each = |buf: &IoBuf| buf.as_ptr().addr()..buf.as_ptr().addr() + buf.len();
            bufs.iter().flat_map(each).collect()
        };
        let all = places(&whole);
        for skip in 0..=25 {
            for len in 1..=25 - skip {
                let (mut bufs, mut saved) = (whole.clone(), [None, None]);
                let range = Range { first: 0, end: 6 };
                let part = cut(&mut bufs, range, skip as u64, len as u64, &mut saved);
                assert_eq!(places(part.of_bufs(&bufs)), all[skip..skip + len], "{skip} {len}");
                for (index, buf) in saved.iter_mut().rev().filter_map(Option::take) {
                    bufs[usize::from(index)] = buf;
                }
                assert_eq!(places(&bufs), all);
            }
        }
    }
}
