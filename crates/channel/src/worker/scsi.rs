//! The way of a SCSI command: judge, begin its task, ask the volume, go on, answer.
//!
//! A READ or WRITE takes the short way: its task asks for one request on the client's own buffers, and its answer is GOOD with nothing
//! left over. Everything else may go through several requests, and what it waits for is in `rare.rs`.

mod abort;
mod control;
mod rare;

use block::{IoError, Lane, Outcome, Request, Submit};
use device::scsi::{Chain, Header, Parsed, RESPONSE_BYTES, Range, parse};
use memory::IoBuf;
use protocol::stats::{LunStats, QueueCounter};
use scsi::{BlockRequest, Context, Data, Done, Input, Memory, Status, Step, Task};
use vring::Head;

use super::Io;
use super::io::{Walked, tag_of};
use crate::command::{Command, State};
use crate::lists::Lists;
use crate::queue::{Active, Kind, NO_BINDING};
use crate::scratch::Scratches;
use crate::scsi::Requests;

pub(super) use abort::Abort;

/// Calls a task's method with its context. `luns`: the command may tell the client's logical units.
#[inline(always)]
fn with_task<R>(
    command: &mut Command,
    lists: &mut Lists,
    scratches: &Scratches,
    requests: &mut Requests,
    head: Head,
    call: impl FnOnce(&mut Task, &Context<'_>) -> R,
) -> R {
    let Requests { slots, bindings, map, .. } = requests;
    let slot = &mut slots[usize::from(head.0)];
    let binding = bindings[usize::from(slot.binding)].as_ref();
    let binding = binding.expect("a binding stays while commands use it");
    let bufs = command.all(lists);
    let scratch = match slot.scratch {
        None => IoBuf::EMPTY,
        Some(scratch) => scratches.get(scratch),
    };
    let cx = Context {
        nexus: &binding.nexus,
        writer: &binding.writer,
        // Only REPORT LUNS looks at them.
        luns: if slot.opcode == 0xa0 { map.luns(binding.target) } else { &[] },
        data_out: Data { bufs: slot.data_out.of_bufs(bufs), len: slot.out_bytes },
        data_in: Data { bufs: slot.data_in.of_bufs(bufs), len: slot.in_bytes },
        scratch,
    };
    call(&mut slot.task, &cx)
}

impl Io {
    /// Judges the chain of a command and begins its task.
    #[inline]
    pub(super) fn judge_command(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        walked: Walked,
    ) {
        let Kind::Request(requests) = &mut queue.kind else { return };
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let Walked { readable, total, readable_bytes, writable_bytes } = walked;
        let bufs = command.all(&mut self.lists);
        let mut header = Header::EMPTY;
        let mut chain = Chain { bufs, total, readable, readable_bytes, writable_bytes };
        let parsed = match parse(&requests.limits.sizes, &mut chain, &mut header) {
            Ok(parsed) => parsed,
            Err(fault) => return self.faulty(id, queue, head, fault, walked),
        };
        let Parsed { data_out, data_in, response, out_bytes, in_bytes } = parsed;
        // A scattered response is written from its range.
        let whole = if response.len() == 1 { bufs_at(chain.bufs, response) } else { IoBuf::EMPTY };
        command.status = whole;
        let both = out_bytes != 0 && in_bytes != 0 && !requests.limits.inout;
        let found = if both { None } else { requests.find(header.address()) };
        let slot = &mut requests.slots[usize::from(head.0)];
        (slot.data_out, slot.data_in, slot.response) = (data_out, data_in, response);
        (slot.out_bytes, slot.in_bytes) = (out_bytes, in_bytes);
        (slot.id, slot.opcode, slot.verdict) = (header.id(), header.opcode(), None);
        let Some(binding) = found else { return self.elsewhere(id, queue, head, &header) };
        slot.binding = binding;
        self.begin_task(id, queue, head, &header);
    }

    /// Begins a task. What a plain READ or WRITE asks for is given to the lane here; all else goes through [`Io::drive`].
    #[inline(always)]
    fn begin_task(&mut self, id: u16, queue: &mut Active, head: Head, header: &Header) {
        let Kind::Request(requests) = &mut queue.kind else { return };
        let Requests { slots, bindings, map, .. } = &mut **requests;
        let slot = &mut slots[usize::from(head.0)];
        let binding = bindings[usize::from(slot.binding)].as_ref();
        let binding = binding.expect("an entry of the map has a binding");
        slot.lane = binding.lane;
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let bufs: &[IoBuf] = match command.list {
            None => &command.bufs,
            Some(list) => self.lists.get(list),
        };
        let cx = Context {
            nexus: &binding.nexus,
            writer: &binding.writer,
            // Only REPORT LUNS looks at them.
            luns: if slot.opcode == 0xa0 { map.luns(binding.target) } else { &[] },
            data_out: Data { bufs: slot.data_out.of_bufs(bufs), len: slot.out_bytes },
            data_in: Data { bufs: slot.data_in.of_bufs(bufs), len: slot.in_bytes },
            scratch: IoBuf::EMPTY,
        };
        let step = slot.task.begin(&cx, header.cdb());
        let (request, range, data) = match &step {
            Step::Submit(request) if request.memory == Memory::DataIn(0) => {
                (*request, slot.data_in, cx.data_in)
            }
            Step::Submit(request) if request.memory == Memory::DataOut(0) => {
                (*request, slot.data_out, cx.data_out)
            }
            _ => return self.drive_slowly(id, queue, head, step),
        };
        let Io { ring, lanes, .. } = self;
        let (Some(lane), true) = (binding.lane, ring.space() >= <dyn Lane>::SQES) else {
            return self.drive_slowly(id, queue, head, step);
        };
        if data.len != request.len {
            return self.drive_slowly(id, queue, head, step);
        }
        let lane = lanes.get(lane).expect("a lane lives as long as its binding");
        let BlockRequest { op, offset, len, .. } = request;
        let tag = tag_of(id, head);
        let mut asked = Request { op, offset, len, bufs: data.bufs, tag, done: 0, passed: 0 };
        let submit = lane.submit(ring, &mut asked);
        let passed = asked.passed;
        let step = match submit {
            Submit::Done(Ok(())) => Some(slot.task.resume(&cx, Input::Block(Ok(())))),
            _ => None,
        };
        match step {
            Some(Step::Done(done)) => return self.conclude(id, queue, head, &done),
            Some(step) => return self.drive_slowly(id, queue, head, step),
            None => {}
        }
        (command.op, command.offset, command.len) = (op, offset, len);
        (command.first, command.end) = (range.first, range.end);
        match submit {
            Submit::Done(result) => self.answered(id, queue, head, result),
            Submit::Pending => {
                command.state = State::Submitted;
                command.submitted = self.now;
            }
            Submit::Park { reason, until } => {
                command.passed = passed;
                self.park(id, queue, head, reason, until);
            }
        }
    }

    #[inline(never)]
    fn drive_slowly(&mut self, id: u16, queue: &mut Active, head: Head, step: Step) {
        self.drive(id, queue, head, step);
    }

    /// Does what a task asks for until it waits or has ended.
    #[inline(always)]
    fn drive(&mut self, id: u16, queue: &mut Active, head: Head, mut step: Step) {
        loop {
            let input = match step {
                Step::Submit(request) => match self.ask(id, queue, head, &request) {
                    Some(result) => self.came_back(queue, head, result),
                    None => return,
                },
                Step::Done(done) => return self.conclude(id, queue, head, &done),
                other => match self.rare(id, queue, head, other) {
                    Some(input) => input,
                    None => return,
                },
            };
            step = self.proceed(queue, head, input);
        }
    }

    #[inline(always)]
    fn proceed(&mut self, queue: &mut Active, head: Head, input: Input) -> Step {
        let Kind::Request(requests) = &mut queue.kind else { unreachable!("a task's queue") };
        let command = &mut queue.seat.commands[usize::from(head.0)];
        with_task(
            command,
            &mut self.lists,
            &self.scratches,
            requests,
            head,
            #[inline(always)]
            |task, cx| task.resume(cx, input),
        )
    }

    /// A task goes on with what it waited for.
    pub(super) fn go_on(&mut self, id: u16, queue: &mut Active, head: Head, input: Input) {
        let step = self.proceed(queue, head, input);
        self.drive(id, queue, head, step);
    }

    /// Puts a task's request into the command's slot and hands it to the lane. The answer, if it is there at once.
    #[inline(always)]
    fn ask(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        request: &BlockRequest,
    ) -> Option<Result<(), IoError>> {
        let Kind::Request(requests) = &mut queue.kind else { return None };
        let slot = &mut requests.slots[usize::from(head.0)];
        let command = &mut queue.seat.commands[usize::from(head.0)];
        (command.op, command.offset, command.len) = (request.op, request.offset, request.len);
        (command.done, command.passed) = (0, 0);
        let range = match request.memory {
            Memory::DataIn(0) if request.len == slot.in_bytes => slot.data_in,
            Memory::DataOut(0) if request.len == slot.out_bytes => slot.data_out,
            Memory::None => Range::default(),
            _ => self.part_of_memory(queue, head, request),
        };
        let command = &mut queue.seat.commands[usize::from(head.0)];
        (command.first, command.end) = (range.first, range.end);
        self.offer(id, queue, head)
    }

    /// Hands the request in the command's slot to the lane.
    #[inline]
    pub(super) fn offer(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
    ) -> Option<Result<(), IoError>> {
        if self.ring.space() < <dyn Lane>::SQES && self.ring.submit().is_err() {
            panic!("io_uring_enter failed");
        }
        let Kind::Request(requests) = &queue.kind else { return None };
        let slot = &requests.slots[usize::from(head.0)];
        let Some(lane) = slot.lane else { return Some(Err(IoError::Gone)) };
        let Io { ring, lanes, lists, .. } = self;
        let lane = lanes.get(lane).expect("a lane lives as long as its binding");
        let command = &queue.seat.commands[usize::from(head.0)];
        let bufs = match slot.from_scratch {
            false => command.data(lists),
            true => std::slice::from_ref(&slot.piece),
        };
        let mut request = Request {
            op: command.op,
            offset: command.offset,
            len: command.len,
            bufs,
            tag: tag_of(id, head),
            done: u64::from(command.done),
            passed: command.passed,
        };
        let submit = lane.submit(ring, &mut request);
        let passed = request.passed;
        let command = &mut queue.seat.commands[usize::from(head.0)];
        match submit {
            Submit::Done(result) => return Some(result),
            Submit::Pending => {
                command.state = State::Submitted;
                command.submitted = self.now;
            }
            Submit::Park { reason, until } => {
                command.passed = passed;
                self.park(id, queue, head, reason, until);
            }
        }
        None
    }

    /// A command whose request was parked is tried again.
    pub(super) fn offer_again(&mut self, id: u16, queue: &mut Active, head: Head) {
        if let Some(result) = self.offer(id, queue, head) {
            self.answered(id, queue, head, result);
        }
    }

    /// The volume has answered a request.
    #[inline]
    pub(super) fn answered(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        result: Result<(), IoError>,
    ) {
        let input = self.came_back(queue, head, result);
        self.go_on(id, queue, head, input);
    }

    /// A lane finished a round of a request.
    pub(super) fn finished_command(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        outcome: Outcome,
    ) {
        match outcome {
            Outcome::Done(result) => self.answered(id, queue, head, result),
            Outcome::Again { done } => {
                queue.count(QueueCounter::Rounds, 1);
                if self.is_aborted(queue, head) {
                    // Its rest is not asked for. The task ends whatever the answer is.
                    return self.answered(id, queue, head, Err(IoError::Io));
                }
                // A request has at most 2^32 bytes, and these are fewer.
                queue.seat.commands[usize::from(head.0)].done = done as u32;
                self.offer_again(id, queue, head);
            }
        }
    }

    fn is_aborted(&self, queue: &Active, head: Head) -> bool {
        match &queue.kind {
            Kind::Request(requests) => requests.slots[usize::from(head.0)].verdict.is_some(),
            _ => false,
        }
    }

    /// The request is over: its memory is as it was.
    #[inline(always)]
    fn came_back(&mut self, queue: &mut Active, head: Head, result: Result<(), IoError>) -> Input {
        let Kind::Request(requests) = &mut queue.kind else { return Input::Block(result) };
        let slot = &mut requests.slots[usize::from(head.0)];
        slot.from_scratch = false;
        if slot.is_cut {
            self.mend(queue, head);
        }
        if let Err(error) = result {
            super::io::count_failure(queue, error);
        }
        Input::Block(result)
    }

    /// A task has ended.
    #[inline]
    fn conclude(&mut self, id: u16, queue: &mut Active, head: Head, done: &Done) {
        let Kind::Request(requests) = &queue.kind else { return };
        let slot = &requests.slots[usize::from(head.0)];
        let command = &queue.seat.commands[usize::from(head.0)];
        let (total, whole) = (slot.out_bytes + slot.in_bytes, command.status);
        let plain = done.status == Status::Good && done.wanted == total && done.moved == total;
        if !plain || whole.is_empty() {
            return self.conclude_rarely(id, queue, head, done);
        }
        let (opcode, data_in, binding) = (slot.opcode, slot.data_in, slot.binding);
        let written = requests.limits.sizes.response_bytes() as u64 + slot.in_bytes;
        // No residual, no sense data, GOOD, OK. What is behind, the driver does not look at.
        whole.write(0, &[0; RESPONSE_BYTES]);
        queue.seat.ring.mark_written(whole);
        self.log_range(queue, head, data_in);
        Tally::of(queue, binding).good(opcode, done.moved);
        self.leave(id, queue, head, written);
    }

    /// Records buffers of a command in the dirty log, if there is one.
    #[inline(always)]
    fn log_range(&mut self, queue: &mut Active, head: Head, range: Range) {
        let command = &mut queue.seat.commands[usize::from(head.0)];
        for buf in range.of_bufs(command.all(&mut self.lists)) {
            queue.seat.ring.mark_written(*buf);
        }
    }

    /// The end of every command that was active. `written` bytes of the writable part are.
    #[inline(always)]
    fn leave(&mut self, id: u16, queue: &mut Active, head: Head, written: u64) {
        let Kind::Request(requests) = &mut queue.kind else { return };
        requests.dismiss();
        let slot = &mut requests.slots[usize::from(head.0)];
        if let Some(scratch) = slot.scratch.take() {
            self.scratches.give_back(scratch);
        }
        // The next command of this head may be for nothing.
        let binding = std::mem::replace(&mut slot.binding, NO_BINDING);
        self.settle(id, queue, head, binding, written);
    }

    /// Gives a head back and puts its queue on the list of those to be published. Its time counts for its queue and for what `binding`
    /// leads to.
    #[inline]
    fn settle(&mut self, id: u16, queue: &mut Active, head: Head, binding: u16, written: u64) {
        let command = &mut queue.seat.commands[usize::from(head.0)];
        if let Some(list) = command.list.take() {
            match &mut queue.kind {
                Kind::Request(requests) if list.is_own() => requests.lists.push(list),
                _ => self.lists.give_back(list),
            }
        }
        self.list(id, queue);
        queue.settle(head, binding, u32::try_from(written).unwrap_or(u32::MAX), self.now);
    }
}

#[inline]
fn bufs_at(bufs: &[IoBuf], range: Range) -> IoBuf {
    bufs[usize::from(range.first)]
}

/// Where a command is counted: its queue, and the LUN that it is for.
struct Tally<'a> {
    queue: &'a Active,
    lun: Option<LunStats>,
}

impl<'a> Tally<'a> {
    #[inline]
    fn of(queue: &'a Active, binding: u16) -> Tally<'a> {
        Tally { queue, lun: queue.lun_stats(binding) }
    }

    #[inline]
    fn add(&self, counter: QueueCounter, by: u64) {
        self.queue.count(counter, by);
        if let Some(lun) = self.lun {
            lun.add(counter, by);
        }
    }

    /// Counts a command that ended with GOOD.
    #[inline]
    fn good(&self, opcode: u8, moved: u64) {
        match opcode {
            0x08 | 0x28 | 0x88 | 0xa8 => self.moved(Moved::Read, moved),
            0x0a | 0x2a | 0x8a | 0xaa | 0x2e | 0x8e | 0xae => self.moved(Moved::Written, moved),
            _ => self.other(opcode, moved),
        }
    }

    #[inline]
    fn moved(&self, what: Moved, bytes: u64) {
        let (commands, moved) = match what {
            Moved::Read => (QueueCounter::Reads, QueueCounter::ReadBytes),
            Moved::Written => (QueueCounter::Writes, QueueCounter::WrittenBytes),
        };
        self.queue.count(commands, 1);
        self.queue.count(moved, bytes);
        if let Some(lun) = self.lun {
            lun.add(commands, 1);
            lun.add(moved, bytes);
        }
    }

    #[cold]
    fn other(&self, opcode: u8, moved: u64) {
        if opcode != 0x89 {
            self.add(QueueCounter::ControlRequests, 1);
        }
        match opcode {
            0x35 | 0x91 => self.add(QueueCounter::Flushes, 1),
            0x42 => self.add(QueueCounter::Discards, 1),
            0x41 | 0x93 => self.add(QueueCounter::WriteZeroes, 1),
            // COMPARE AND WRITE: half of its data is compared with.
            0x89 => self.moved(Moved::Written, moved / 2),
            _ => {}
        }
    }
}

/// Which way the data of a command went.
#[derive(Clone, Copy)]
enum Moved {
    Read,
    Written,
}
