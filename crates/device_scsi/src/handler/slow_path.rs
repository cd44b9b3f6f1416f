//! What few commands need: a part of their buffers, scratch memory, time, off-path requests, an answer that is not GOOD; and commands to
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use block::IoError;
use channel::elements::{Admission, Shortage};
use channel::{Io, LIST_SEGMENTS, NO_PART, Read, Reply, RunningQueue, Walked};
use memory::{IoBuf, clock};
use protocol::stats::QueueCounter;
use scsi::{
    BlockRequest, Class, Data, Done, Input, LogicalUnit, Memory, SENSE_BYTES_MAX, Sense, SenseKey,
    Status, Step,
};
use vring::Head;

use super::command::{Tally, log_range};
use crate::off_path::{AbortReason, AbortScope, AbortTarget, OffPath};
use crate::requests::{Pause, Requests};
use crate::{
    Chain, Header, ParseError, Parsed, Place, Range, Response, outcome, parse, response, scatter,
};

/// How long a task waits that another command is in the way of.
const RETRY: Duration = Duration::from_micros(100);

/// What a look at a chain without a slot for it has found. Its buffers are where it was looked at.
pub(crate) struct Look {
    pub(crate) header: Header,
    response: Range,
    data_bytes: u64,
}

/// A look, with the buffers of the response.
pub(crate) struct Peeked {
    response: Vec<IoBuf>,
    data_bytes: u64,
}

impl Look {
    /// With what it needs of the buffers.
    pub(crate) fn keep(&self, bufs: &[IoBuf]) -> Peeked {
        Peeked { response: self.response.of_bufs(bufs).to_vec(), data_bytes: self.data_bytes }
    }
}

impl Requests {
    /// Whether one more command may become active.
    #[inline]
    pub(crate) fn may_begin(&mut self, queue: &RunningQueue) -> Result<(), QueueCounter> {
        match self.elements.admit(|| queue.held()) {
            Admission::Own => Ok(()),
            Admission::Global => {
                queue.count(QueueCounter::GlobalCommands, 1);
                Ok(())
            }
            Admission::Wait(Shortage::Adapter) => Err(QueueCounter::WaitNoCommand),
            Admission::Wait(Shortage::Port) => Err(QueueCounter::WaitNoElement),
        }
    }

    /// A chain that is no request, or that needs another place for a buffer.
    #[cold]
    pub(crate) fn parse_error(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        error: ParseError,
        walked: Walked,
    ) {
        let longer = match error {
            ParseError::NoRoom => io.read_longer(queue, head, walked.total + 1),
            ParseError::TooShort => None,
        };
        match longer {
            Some(Read::Whole(walked)) => self.judge(io, queue, head, walked),
            Some(Read::Bad(bad)) => self.bad_chain(io, queue, head, bad.readable, bad.total),
            Some(Read::Waits) => {}
            None => self.bad_chain(io, queue, head, walked.readable, walked.total),
        }
    }

    /// A chain that breaks the rules. Where there is room for it, the response says FAILURE.
    #[cold]
    pub(crate) fn bad_chain(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        readable: usize,
        total: usize,
    ) {
        queue.count(QueueCounter::BadChains, 1);
        queue.count(QueueCounter::Errors, 1);
        let bytes = response(Response::Failure, Status::Good, 0, 0);
        let resources = &mut queue.resources;
        let bufs = resources.commands[usize::from(head.0)].all(&mut io.lists);
        let writable = &bufs[readable.min(bufs.len())..total.min(bufs.len())];
        let room: usize = writable.iter().map(|buf| buf.len()).sum();
        let mut written = 0;
        if room >= bytes.len() {
            written = scatter(&bytes, writable);
            writable.iter().for_each(|buf| resources.ring.mark_written(*buf));
        }
        self.leave(io, queue, head, written as u64);
    }

    /// A command to something that is no logical unit of the client's, or in both directions when that was not negotiated.
    #[cold]
    pub(crate) fn no_such_lun(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        header: &Header,
    ) {
        if self.is_cut {
            // Linux tries again elsewhere at once, or, without another path, a few times here.
            return self.respond(io, queue, head, Response::TransportFailure);
        }
        let command = &mut queue.resources.commands[usize::from(head.0)];
        let slot = &self.slots[usize::from(head.0)];
        let both = slot.out_bytes != 0 && slot.in_bytes != 0;
        let map = &self.map;
        let (target, well_known) = match Place::decode(header.address()) {
            Place::Unit { target, .. } | Place::Nothing { target } => (Some(target), false),
            Place::ReportLuns { target: Some(target) } => (Some(target), true),
            Place::ReportLuns { target: None } => (map.first_target(), true),
            Place::Nowhere => (None, false),
        };
        if both && !self.limits.inout {
            return self.respond(io, queue, head, Response::Failure);
        }
        let Some(target) = target.filter(|target| map.has_target(*target)) else {
            return self.respond(io, queue, head, Response::BadTarget);
        };
        let bufs = slot.data_in.of_bufs(command.all(&mut io.lists));
        let data_in = Data { bufs, len: slot.in_bytes };
        let done = scsi::unattached(well_known, map.luns(target), &data_in, header.cdb());
        if header.class() == Class::ReportLuns && done.status == Status::Good {
            self.forget_changed_luns(target);
        }
        self.conclude_with(io, queue, head, &done, false);
    }

    /// Ends a command that has no status.
    #[cold]
    pub(crate) fn respond(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        what: Response,
    ) {
        let slot = &self.slots[usize::from(head.0)];
        let residual = u32::try_from(slot.out_bytes + slot.in_bytes).unwrap_or(u32::MAX);
        match what {
            Response::Aborted | Response::Reset => {}
            // Clients ask every target that there could be whether it is there.
            Response::BadTarget => queue.count(QueueCounter::ControlRequests, 1),
            _ => Tally::of(self, queue, slot.binding).add(QueueCounter::Errors, 1),
        }
        let bytes = response(what, Status::Good, residual, 0);
        let written = self.write_response(io, queue, head, &[&bytes]);
        self.leave(io, queue, head, written);
    }

    /// Where a request's memory is, if it is not all of the client's buffers in one direction.
    #[cold]
    pub(crate) fn part_of_memory(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        request: &BlockRequest,
    ) -> Range {
        let slot = &mut self.slots[usize::from(head.0)];
        let (range, skip) = match request.memory {
            Memory::DataIn(skip) => (slot.data_in, skip),
            Memory::DataOut(skip) => (slot.data_out, skip),
            Memory::Scratch => {
                let scratch = slot.scratch.expect("a task has the memory that it uses");
                let whole = self.shared.scratches.borrow().get(scratch);
                // At most the scratch memory's length, as the task promises.
                slot.piece = whole.slice(0, request.len as usize);
                slot.from_scratch = true;
                return Range::default();
            }
            Memory::None => return Range::default(),
        };
        slot.is_cut = true;
        let bufs = queue.command(head).all(&mut io.lists);
        cut(bufs, range, skip, request.len, &mut slot.cut)
    }

    /// Puts shortened buffers back.
    #[cold]
    pub(crate) fn restore_buffers(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) {
        let slot = &mut self.slots[usize::from(head.0)];
        let bufs = queue.command(head).all(&mut io.lists);
        // The latest first: both may be the same buffer.
        for (index, whole) in slot.cut.iter_mut().rev().filter_map(Option::take) {
            bufs[usize::from(index)] = whole;
        }
        slot.is_cut = false;
    }

    /// What a task asks for besides the volume. The answer, if it is there at once.
    #[cold]
    pub(crate) fn slow_step(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        step: Step,
    ) -> Option<Input> {
        let pause = &mut self.slots[usize::from(head.0)].pause;
        match step {
            Step::Scratch => return self.find_scratch(io, queue, head),
            Step::Wait => {
                *pause = Pause::Time;
                io.pause_until(queue, head, clock::instant() + RETRY);
            }
            Step::Store(state) => {
                *pause = Pause::Store;
                let answer = io.off_path(queue, head);
                let unit = self.unit_of(head);
                (self.services.off_path)(OffPath::Store { unit, state, answer });
            }
            Step::Abort(whose) => {
                *pause = Pause::Abort;
                let answer = io.off_path(queue, head);
                let scope = AbortScope {
                    unit: self.unit_of(head),
                    target: AbortTarget::Nexuses(whose),
                    except: Some(io.name_of(queue, head)),
                    reason: AbortReason::TaskAborted,
                };
                (self.services.off_path)(OffPath::Abort { scope, answer });
            }
            Step::Submit(_) | Step::Done(_) => unreachable!("no slow step"),
        }
        None
    }

    fn unit_of(&self, head: Head) -> Arc<LogicalUnit> {
        let binding = self.binding(self.slots[usize::from(head.0)].binding);
        Arc::clone(binding.expect("a task has a logical unit").nexus.unit())
    }

    fn find_scratch(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) -> Option<Input> {
        let slot = &mut self.slots[usize::from(head.0)];
        slot.scratch = self.shared.scratches.borrow_mut().take(&mut self.scratch);
        if slot.scratch.is_some() {
            return Some(Input::Ready);
        }
        slot.pause = Pause::Scratch;
        io.pause_for_room(queue, head);
        None
    }

    /// The request of a command was parked. What its task has that others may need does not wait with it. Rounds that are behind it stay.
    #[cold]
    pub(crate) fn set_aside(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) {
        let command = &mut queue.resources.commands[usize::from(head.0)];
        let passed = command.passed();
        if command.done > 0
            || !self.with_task(command, &mut io.lists, head, |task, cx| task.set_aside(cx, passed))
        {
            return;
        }
        let _ = self.request_over(io, queue, head, Err(IoError::Io));
        if self.give_scratch_back(head) {
            io.room_came();
        }
    }

    /// A command no longer needs scratch memory; whether it had some.
    #[cold]
    pub(crate) fn give_scratch_back(&mut self, head: Head) -> bool {
        let scratch = self.slots[usize::from(head.0)].scratch.take();
        if let Some(scratch) = scratch {
            self.shared.scratches.borrow_mut().give_back(&mut self.scratch, scratch);
        }
        scratch.is_some()
    }

    /// A paused command is tried again.
    pub(crate) fn unpause(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) {
        let input = match self.slots[usize::from(head.0)].pause {
            Pause::Scratch => self.find_scratch(io, queue, head),
            Pause::Time => Some(Input::Ready),
            pause @ (Pause::Store | Pause::Abort) => unreachable!("{pause:?} has an answer"),
        };
        if let Some(input) = input {
            self.go_on(io, queue, head, input);
        }
    }

    /// An off-path request was answered.
    pub(crate) fn off_path_done(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        answer: u32,
    ) {
        let input = match self.slots[usize::from(head.0)].pause {
            Pause::Store => Input::Stored(answer == true.word()),
            Pause::Abort => Input::Ready,
            pause @ (Pause::Scratch | Pause::Time) => unreachable!("{pause:?} has no answer"),
        };
        self.go_on(io, queue, head, input);
    }

    /// A command ends in another way than with GOOD and all of its data.
    #[cold]
    pub(crate) fn conclude_slowly(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        done: &Done,
    ) {
        let slot = &self.slots[usize::from(head.0)];
        if let Some(reason) = slot.reason {
            return self.aborted(io, queue, head, reason);
        }
        let binding = self.binding(slot.binding).expect("a task has a logical unit");
        if slot.class == Class::ReportLuns && done.status == Status::Good {
            self.forget_changed_luns(binding.target);
        }
        let descriptors = binding.nexus.descriptor_sense();
        self.conclude_with(io, queue, head, done, descriptors);
    }

    /// The whole of a response: status, sense data, residual.
    fn conclude_with(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        done: &Done,
        descriptors: bool,
    ) {
        let slot = &self.slots[usize::from(head.0)];
        let (out_bytes, in_bytes, data_in) = (slot.out_bytes, slot.in_bytes, slot.data_in);
        let (class, binding) = (slot.class, slot.binding);
        let (what, residual) = outcome(done, out_bytes + in_bytes);
        let mut sense = [0; SENSE_BYTES_MAX];
        let len = done.sense.map_or(0, |it| it.encode(descriptors, &mut sense));
        let len = len.min(usize::from(self.limits.sizes.sense()));
        // At most a few dozen.
        let fixed = response(what, done.status, residual, len as u32);
        let mut written = self.write_response(io, queue, head, &[&fixed, &sense[..len]]);
        log_range(io, queue, head, data_in);
        // In both directions it is not known which one was used; fewer bytes may be said than were written.
        if out_bytes == 0 {
            written += done.moved.min(in_bytes);
        }
        let tally = Tally::of(self, queue, binding);
        match done.status {
            Status::Good if what == Response::Ok => tally.good(class, done.moved),
            Status::Good => tally.add(QueueCounter::Errors, 1),
            status => count_status(&tally, status, done.sense),
        }
        self.leave(io, queue, head, written);
    }

    /// Writes the parts of a response; how many bytes of the writable part are then accounted for.
    fn write_response(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        parts: &[&[u8]],
    ) -> u64 {
        let slot = &self.slots[usize::from(head.0)];
        let resources = &mut queue.resources;
        let command = &mut resources.commands[usize::from(head.0)];
        let bufs = slot.response.of_bufs(command.all(&mut io.lists));
        // At most a fixed part and some dozens of bytes of sense data: one copy.
        let mut bytes = [0; 12 + SENSE_BYTES_MAX];
        let mut len = 0;
        for part in parts {
            bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        scatter(&bytes[..len], bufs);
        bufs.iter().for_each(|buf| resources.ring.mark_written(*buf));
        self.limits.sizes.response_bytes() as u64
    }

    /// Ends an aborted command.
    #[cold]
    pub(crate) fn aborted(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        reason: AbortReason,
    ) {
        let binding = self.slots[usize::from(head.0)].binding;
        let uncounted = memory::planted("abort-uncounted");
        Tally::of(self, queue, binding).add(QueueCounter::Aborted, u64::from(!uncounted));
        io.ended_early(queue, head);
        match reason {
            AbortReason::Aborted => self.respond(io, queue, head, Response::Aborted),
            AbortReason::Reset => self.respond(io, queue, head, Response::Reset),
            AbortReason::TaskAborted => {
                let status = Status::TaskAborted;
                let done = Done { status, sense: None, wanted: 0, moved: 0 };
                self.conclude_with(io, queue, head, &done, false);
            }
        }
    }

    /// Looks at the chain of a head without beginning its command, and at how many segments that was. `None`: it is no request. Off the path of an I/O: there is memory for it, and
    /// since there may be thousands of heads, it is used again.
    pub(crate) fn peek(
        &self,
        queue: &mut RunningQueue,
        head: Head,
        bufs: &mut Vec<IoBuf>,
    ) -> (Option<Look>, usize) {
        bufs.resize(LIST_SEGMENTS, IoBuf::EMPTY);
        let mut walk = vring::Chain::new(bufs);
        let whole = queue.resources.ring.chain(head, &mut walk);
        // Of one that is broken it is not known where.
        let segments = if whole.is_ok() { walk.total } else { LIST_SEGMENTS };
        let Walked { readable, total, readable_bytes, writable_bytes } = Walked::of(&walk);
        let mut chain = Chain { bufs, total, readable, readable_bytes, writable_bytes };
        let mut header = Header::EMPTY;
        let parsed = whole.ok().and_then(|()| {
            let parsed = parse(&self.limits.sizes, &mut chain, &mut header).ok()?;
            let Parsed { response, out_bytes, in_bytes, .. } = parsed;
            Some((response, out_bytes + in_bytes))
        });
        let look = parsed.map(|(response, data_bytes)| Look { header, response, data_bytes });
        (look, segments)
    }

    /// Ends a command that was only looked at.
    pub(crate) fn end_peeked(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        peeked: &Peeked,
        reason: AbortReason,
    ) {
        // At most some 64 KiB.
        let written = self.limits.sizes.response_bytes() as u32;
        let (what, status) = match reason {
            AbortReason::Aborted => (Response::Aborted, Status::Good),
            AbortReason::Reset => (Response::Reset, Status::Good),
            AbortReason::TaskAborted => (Response::Ok, Status::TaskAborted),
        };
        let residual = u32::try_from(peeked.data_bytes).unwrap_or(u32::MAX);
        scatter(&response(what, status, residual, 0), &peeked.response);
        peeked.response.iter().for_each(|buf| queue.resources.ring.mark_written(*buf));
        queue.count(QueueCounter::Aborted, 1);
        io.settle(queue, head, NO_PART, written);
    }

    /// A command that was in the ring when its queue came: a function that was answered before may have ended it. Its end alone is left.
    #[cold]
    pub(crate) fn ended_before(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
    ) -> bool {
        let mut bufs = Vec::new();
        let (Some(look), _) = self.peek(queue, head, &mut bufs) else { return false };
        let Place::Unit { target, lun } = Place::decode(look.header.address()) else {
            return false;
        };
        let mut owed = self.owed.iter().filter(|it| it.covers(target, lun, look.header.id()));
        let Some(reason) = owed.find_map(|it| AbortReason::of(it.function)) else { return false };
        io.note_taken(queue, head);
        self.end_peeked(io, queue, head, &look.keep(&bufs), reason);
        true
    }

    /// A command that an earlier process took and did not finish. Most are done again; what must not happen twice ends as a reset
    /// ends it, which the unit attention POWER ON explains.
    #[cold]
    pub(crate) fn recover(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) -> bool {
        let mut bufs = Vec::new();
        let once =
            |look: &Look| look.header.class().happens_once() && !memory::planted("once-again");
        let Some(look) = self.peek(queue, head, &mut bufs).0.filter(once) else { return false };
        io.note_taken(queue, head);
        self.end_peeked(io, queue, head, &look.keep(&bufs), AbortReason::Reset);
        true
    }
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
    use memory::Lasting;

    use super::*;

    #[test]
    fn a_part_of_buffers_is_cut_and_mended() {
        let memory = Lasting::new(4096).unwrap();
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
