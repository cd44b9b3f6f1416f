//! The way of a SCSI command: judge, begin its task, ask the volume, go on, answer.
//!
//! A READ or WRITE takes the short way ([`Plain`]): it asks for one request on the client's own buffers, its answer is GOOD with nothing
//! left over, and it has a task only while the volume works on it. Everything else may go through several requests, and what it waits for is
//! in `slow_path`.

use block::{IoError, Lane, Outcome, Request, Submit};
use channel::{Command, Io, Lists, NO_PART, RunningQueue, State, Walked};
use memory::IoBuf;
use protocol::stats::{LunStats, QueueCounter};
use scsi::{BlockRequest, Class, Context, Data, Done, Input, Memory, Plain, Status, Step, Task};
use vring::Head;

use crate::requests::Requests;
use crate::{Chain, Header, Parsed, RESPONSE_BYTES, Range, parse};

impl Requests {
    /// Calls a method of a command's task with its context.
    #[inline(always)]
    pub(crate) fn with_task<R>(
        &mut self,
        command: &mut Command,
        lists: &mut Lists,
        head: Head,
        call: impl FnOnce(&mut Task, &Context<'_>) -> R,
    ) -> R {
        let Requests { slots, bindings, map, shared, .. } = self;
        let slot = &mut slots[usize::from(head.0)];
        let binding = bindings[usize::from(slot.binding)].as_ref();
        let binding = binding.expect("a binding stays while commands use it");
        let bufs = command.all(lists);
        let scratch = match slot.scratch {
            None => IoBuf::EMPTY,
            Some(scratch) => shared.scratches.borrow().get(scratch),
        };
        let cx = Context {
            nexus: &binding.nexus,
            writer: &binding.writer,
            // Nothing else looks at them.
            luns: if slot.class == Class::ReportLuns { map.luns(binding.target) } else { &[] },
            data_out: Data { bufs: slot.data_out.of_bufs(bufs), len: slot.out_bytes },
            data_in: Data { bufs: slot.data_in.of_bufs(bufs), len: slot.in_bytes },
            scratch,
        };
        call(&mut slot.task, &cx)
    }

    /// Judges the chain of a command and begins its task.
    #[inline]
    pub(crate) fn judge(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        walked: Walked,
    ) {
        let command = &mut queue.resources.commands[usize::from(head.0)];
        let Walked { readable, total, readable_bytes, writable_bytes } = walked;
        let bufs = command.all(&mut io.lists);
        let mut header = Header::EMPTY;
        let mut chain = Chain { bufs, total, readable, readable_bytes, writable_bytes };
        let parsed = match parse(&self.limits.sizes, &mut chain, &mut header) {
            Ok(parsed) => parsed,
            Err(error) => return self.parse_error(io, queue, head, error, walked),
        };
        let Parsed { data_out, data_in, response, out_bytes, in_bytes } = parsed;
        // A scattered response is written from its range.
        let whole = if response.len() == 1 { bufs_at(chain.bufs, response) } else { IoBuf::EMPTY };
        command.status = whole;
        let both = out_bytes != 0 && in_bytes != 0 && !self.limits.inout;
        let found = if both { None } else { self.find(header.address()) };
        let slot = &mut self.slots[usize::from(head.0)];
        (slot.data_out, slot.data_in, slot.response) = (data_out, data_in, response);
        (slot.out_bytes, slot.in_bytes) = (out_bytes, in_bytes);
        (slot.id, slot.class, slot.reason) = (header.id(), header.class(), None);
        let Some(binding) = found else {
            return self.no_such_lun(io, queue, head, &header);
        };
        slot.binding = binding;
        self.begin_task(io, queue, head, &header);
    }

    /// Begins a command. What a plain READ or WRITE asks for is given to the lane here, and ends here if that answers at once.
    #[inline(always)]
    fn begin_task(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, header: &Header) {
        let Requests { slots, bindings, .. } = self;
        let slot = &mut slots[usize::from(head.0)];
        let binding = bindings[usize::from(slot.binding)].as_ref();
        let binding = binding.expect("an entry of the map has a binding");
        slot.lane = binding.lane;
        let Io { ring, lanes, lists, .. } = io;
        let (Some(lane), Some(cdb), true) =
            (binding.lane, header.cdb().first_chunk(), ring.space() >= <dyn Lane>::SQES)
        else {
            return self.begin_slowly(io, queue, head, header);
        };
        let bytes = (slot.out_bytes, slot.in_bytes);
        let Some(plain) = Plain::of(&binding.nexus, &binding.writer, cdb, bytes) else {
            return self.begin_slowly(io, queue, head, header);
        };
        let lane = lanes.get(lane).expect("a lane lives as long as its binding");
        let (reads, op, offset, len) = (plain.reads(), plain.op, plain.offset, plain.len);
        let range = if reads { slot.data_in } else { slot.data_out };
        let tag = queue.tag(head);
        let command = &mut queue.resources.commands[usize::from(head.0)];
        let bufs = range.of_bufs(command.all(lists));
        let mut asked = Request { op, offset, len, bufs, tag, done: 0, passed: 0 };
        let submit = lane.submit(ring, &mut asked);
        let passed = asked.passed;
        if submit == Submit::Done(Ok(())) {
            plain.end(&binding.writer);
            let moved = if reads { Moved::Read } else { Moved::Written };
            return self.conclude_plain(io, queue, head, moved, len);
        }
        slot.task.take_over(plain);
        (command.op, command.offset, command.len) = (op, offset, len);
        (command.first, command.end) = (range.first, range.end);
        if let Some(result) = io.submitted(queue, head, submit, passed) {
            self.answered(io, queue, head, result);
        } else if matches!(submit, Submit::Park { .. }) {
            self.set_aside(io, queue, head);
        }
    }

    /// Begins the task of any other command.
    #[inline(never)]
    fn begin_slowly(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, header: &Header) {
        let command = &mut queue.resources.commands[usize::from(head.0)];
        let step =
            self.with_task(command, &mut io.lists, head, |task, cx| task.begin(cx, header.cdb()));
        self.drive(io, queue, head, step);
    }

    /// Does what a task asks for until it waits or has ended.
    #[inline(always)]
    fn drive(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, mut step: Step) {
        loop {
            let input = match step {
                Step::Submit(request) => match self.ask(io, queue, head, &request) {
                    Some(result) => self.came_back(io, queue, head, result),
                    None => return,
                },
                Step::Done(done) => return self.conclude(io, queue, head, &done),
                other => match self.slow_step(io, queue, head, other) {
                    Some(input) => input,
                    None => return,
                },
            };
            step = self.proceed(io, queue, head, input);
        }
    }

    #[inline(always)]
    pub(crate) fn proceed(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        input: Input,
    ) -> Step {
        let command = &mut queue.resources.commands[usize::from(head.0)];
        self.with_task(
            command,
            &mut io.lists,
            head,
            #[inline(always)]
            |task, cx| task.resume(cx, input),
        )
    }

    /// A task goes on with what it waited for.
    pub(crate) fn go_on(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        input: Input,
    ) {
        let step = self.proceed(io, queue, head, input);
        self.drive(io, queue, head, step);
    }

    /// Puts a task's request into the command's slot and hands it to the lane. The answer, if it is there at once.
    #[inline(always)]
    fn ask(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        request: &BlockRequest,
    ) -> Option<Result<(), IoError>> {
        let slot = &mut self.slots[usize::from(head.0)];
        queue.command(head).ask(request.op, request.offset, request.len, request.passed);
        let range = match request.memory {
            Memory::DataIn(0) if request.len == slot.in_bytes => slot.data_in,
            Memory::DataOut(0) if request.len == slot.out_bytes => slot.data_out,
            Memory::None => Range::default(),
            _ => self.part_of_memory(io, queue, head, request),
        };
        let command = queue.command(head);
        (command.first, command.end) = (range.first, range.end);
        self.offer(io, queue, head)
    }

    /// Hands the request in the command's slot to the lane.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
    ) -> Option<Result<(), IoError>> {
        let slot = &self.slots[usize::from(head.0)];
        let Some(lane) = slot.lane else { return Some(Err(IoError::Gone)) };
        let result = io.submit(queue, head, lane, slot.from_scratch.then_some(&slot.piece));
        if result.is_none() && queue.state(head) == State::Parked {
            self.set_aside(io, queue, head);
        }
        result
    }

    /// A command whose request was parked is tried again.
    pub(crate) fn unpark(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) {
        if self.slots[usize::from(head.0)].task.is_aside() {
            self.go_on(io, queue, head, Input::Ready);
        } else {
            self.offer_again(io, queue, head);
        }
    }

    fn offer_again(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) {
        if let Some(result) = self.offer(io, queue, head) {
            self.answered(io, queue, head, result);
        }
    }

    /// The volume has answered a request.
    #[inline]
    pub(crate) fn answered(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        result: Result<(), IoError>,
    ) {
        let input = self.came_back(io, queue, head, result);
        self.go_on(io, queue, head, input);
    }

    /// A lane finished a round of a request.
    pub(crate) fn finished(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        outcome: Outcome,
    ) {
        match outcome {
            Outcome::Done(result) => self.answered(io, queue, head, result),
            Outcome::Again { done } => {
                queue.count(QueueCounter::Rounds, 1);
                if self.slots[usize::from(head.0)].reason.is_some() {
                    // Its rest is not asked for. The task ends whatever the answer is.
                    return self.answered(io, queue, head, Err(IoError::Io));
                }
                // A request has at most 2^32 bytes, and these are fewer.
                queue.command(head).done = done as u32;
                self.offer_again(io, queue, head);
            }
        }
    }

    /// The volume has answered a request, and why it could not is counted.
    #[inline(always)]
    fn came_back(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        result: Result<(), IoError>,
    ) -> Input {
        if let Err(error) = result {
            queue.count_failure(error);
        }
        self.request_over(io, queue, head, result)
    }

    /// The request is over: its memory is as it was.
    #[inline(always)]
    pub(crate) fn request_over(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        result: Result<(), IoError>,
    ) -> Input {
        let slot = &mut self.slots[usize::from(head.0)];
        slot.from_scratch = false;
        if slot.is_cut {
            self.restore_buffers(io, queue, head);
        }
        Input::Block(result)
    }

    /// A task has ended.
    #[inline]
    pub(crate) fn conclude(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        done: &Done,
    ) {
        let slot = &self.slots[usize::from(head.0)];
        let command = &queue.resources.commands[usize::from(head.0)];
        let (total, whole) = (slot.out_bytes + slot.in_bytes, command.status);
        let plain = done.status == Status::Good && done.wanted == total && done.moved == total;
        if !plain || whole.is_empty() {
            return self.conclude_slowly(io, queue, head, done);
        }
        let (class, binding) = (slot.class, slot.binding);
        Tally::of(self, queue, binding).good(class, done.moved);
        self.answer_good(io, queue, head, whole);
    }

    /// A plain READ or WRITE has ended at once.
    #[inline(always)]
    fn conclude_plain(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        what: Moved,
        bytes: u64,
    ) {
        let whole = queue.resources.commands[usize::from(head.0)].status;
        if whole.is_empty() {
            let (status, sense) = (Status::Good, None);
            let done = Done { status, sense, wanted: bytes, moved: bytes };
            return self.conclude_slowly(io, queue, head, &done);
        }
        Tally::of(self, queue, self.slots[usize::from(head.0)].binding).moved(what, bytes);
        self.answer_good(io, queue, head, whole);
    }

    /// Ends a command with GOOD and nothing left over, in a response that is in one buffer.
    #[inline(always)]
    fn answer_good(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, whole: IoBuf) {
        let slot = &self.slots[usize::from(head.0)];
        let written = self.limits.sizes.response_bytes() as u64 + slot.in_bytes;
        // No residual, no sense data, GOOD, OK. What is behind, the driver does not look at.
        whole.write(0, &[0; RESPONSE_BYTES]);
        if queue.resources.ring.is_logged() {
            self.log_answer(io, queue, head, whole);
        }
        self.leave(io, queue, head, written);
    }

    #[cold]
    fn log_answer(&self, io: &mut Io, queue: &mut RunningQueue, head: Head, whole: IoBuf) {
        queue.resources.ring.mark_written(whole);
        log_range(io, queue, head, self.slots[usize::from(head.0)].data_in);
    }

    /// The end of every command that was active. `written` bytes of the writable part are.
    #[inline(always)]
    pub(crate) fn leave(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        written: u64,
    ) {
        self.elements.dismiss();
        let slot = &mut self.slots[usize::from(head.0)];
        // The next command of this head may be for nothing.
        let binding = std::mem::replace(&mut slot.binding, NO_PART);
        if slot.scratch.is_some() {
            self.give_scratch_back(head);
        }
        io.settle(queue, head, binding, u32::try_from(written).unwrap_or(u32::MAX));
    }
}

/// Records buffers of a command in the dirty log, if there is one.
#[inline(always)]
pub(crate) fn log_range(io: &mut Io, queue: &mut RunningQueue, head: Head, range: Range) {
    let resources = &mut queue.resources;
    let command = &mut resources.commands[usize::from(head.0)];
    for buf in range.of_bufs(command.all(&mut io.lists)) {
        resources.ring.mark_written(*buf);
    }
}

#[inline]
fn bufs_at(bufs: &[IoBuf], range: Range) -> IoBuf {
    bufs[usize::from(range.first)]
}

/// Where a command is counted: its queue, and the LUN that it is for.
pub(crate) struct Tally<'a> {
    queue: &'a RunningQueue,
    lun: Option<LunStats>,
}

impl<'a> Tally<'a> {
    #[inline]
    pub(crate) fn of(requests: &Requests, queue: &'a RunningQueue, binding: u16) -> Tally<'a> {
        Tally { queue, lun: requests.lun_stats(binding) }
    }

    #[inline]
    pub(crate) fn add(&self, counter: QueueCounter, by: u64) {
        self.queue.count(counter, by);
        if let Some(lun) = self.lun {
            lun.add(counter, by);
        }
    }

    /// Counts a command that ended with GOOD.
    #[inline]
    pub(crate) fn good(&self, class: Class, moved: u64) {
        match class {
            Class::Read => self.moved(Moved::Read, moved),
            Class::Write => self.moved(Moved::Written, moved),
            _ => self.other(class, moved),
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
    fn other(&self, class: Class, moved: u64) {
        if class == Class::CompareAndWrite {
            // Half of its data is compared with.
            return self.moved(Moved::Written, moved / 2);
        }
        self.add(QueueCounter::ControlRequests, 1);
        match class {
            Class::Flush => self.add(QueueCounter::Flushes, 1),
            Class::Discard => self.add(QueueCounter::Discards, 1),
            Class::WriteSame => self.add(QueueCounter::WriteZeroes, 1),
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
