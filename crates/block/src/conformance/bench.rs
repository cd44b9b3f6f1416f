//! [`TestBench`]: one lane, its ring, and memory for the client's buffers.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use memory::{IoBuf, Lasting};
use uring::{Ring, RingConfig};

use crate::{Finish, IoError, Lane, LaneId, OpKind, Outcome, Request, Submit, Tag, Volume, Wait};

/// A request that takes longer than this is lost.
const LOST: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Command {
    lane: usize,
    op: OpKind,
    offset: u64,
    len: u64,
    bufs: Vec<IoBuf>,
    done: u64,
    passed: u8,
    parked: bool,
    parked_until: Option<Instant>,
}

/// A lane of a volume in use, and lanes of others beside it on the same ring ([`TestBench::add`]). Requests are begun with
/// [`TestBench::start`] and taken with [`TestBench::finished`].
pub struct TestBench {
    ring: Ring,
    lanes: Vec<(LaneId, Box<dyn Lane>)>,
    memory: Lasting,
    next_tag: u32,
    commands: BTreeMap<Tag, Command>,
    finishes: Vec<Finish>,
    answered: VecDeque<(Tag, Result<(), IoError>)>,
    parks: [u64; 6],
    completions: u64,
}

impl TestBench {
    /// A lane with `memory` bytes for buffers.
    ///
    /// # Panics
    ///
    /// When there is no ring, no memory or no lane to be had.
    #[must_use]
    pub fn new(volume: &dyn Volume, memory: usize) -> TestBench {
        TestBench::with_id(volume, memory, LaneId(7))
    }

    /// The same with a number of one's own.
    ///
    /// # Panics
    ///
    /// As [`TestBench::new`].
    #[must_use]
    pub fn with_id(volume: &dyn Volume, memory: usize, id: LaneId) -> TestBench {
        // Small: an ordinary user's rings count against the locked-memory limit, and tests make many.
        let config = RingConfig { entries: 64, cq_entries: 512, fixed_files: 16, restrict: true };
        let mut ring = Ring::new(&config).unwrap_or_else(|error| panic!("no ring: {error}"));
        let lane = volume.lane(&mut ring, id).unwrap_or_else(|error| panic!("no lane: {error}"));
        TestBench {
            ring,
            lanes: vec![(id, lane)],
            memory: Lasting::new(memory).expect("memory for buffers"),
            next_tag: 0,
            commands: BTreeMap::new(),
            finishes: Vec::with_capacity(8192),
            answered: VecDeque::new(),
            parks: [0; 6],
            completions: 0,
        }
    }

    /// A lane of another volume beside it, as on a channel that serves both; its place, for [`TestBench::start_on`].
    ///
    /// # Panics
    ///
    /// When there is no lane to be had.
    pub fn add(&mut self, volume: &dyn Volume) -> usize {
        let place = self.lanes.len();
        let id = LaneId(self.lanes[0].0.0 + u16::try_from(place).expect("few lanes"));
        let lane = volume.lane(&mut self.ring, id);
        self.lanes.push((id, lane.unwrap_or_else(|error| panic!("no lane: {error}"))));
        place
    }

    /// A part of the bench's memory.
    ///
    /// # Panics
    ///
    /// When it is outside.
    #[must_use]
    pub fn buf(&self, offset: usize, len: usize) -> IoBuf {
        self.memory.buf(offset, len).expect("inside the bench's memory")
    }

    /// A copy of a part of the bench's memory.
    #[must_use]
    pub fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.buf(offset, len).read(0, &mut bytes);
        bytes
    }

    /// How often requests were parked for this reason.
    #[must_use]
    pub fn parks(&self, reason: Wait) -> u64 {
        self.parks[index(reason)]
    }

    /// How many operations of the ring have completed.
    #[must_use]
    pub fn completions(&self) -> u64 {
        self.completions
    }

    /// How often the kernel was entered by the ring.
    #[must_use]
    pub fn enters(&self) -> u64 {
        self.ring.enters()
    }

    /// Requests that were begun and are not answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.commands.len()
    }

    /// Begins a request. The answer comes from [`TestBench::finished`], also when the volume had it at once.
    pub fn start(&mut self, op: OpKind, offset: u64, len: u64, bufs: &[IoBuf]) -> Tag {
        self.start_on(0, op, offset, len, bufs)
    }

    /// The same on another of its lanes.
    pub fn start_on(
        &mut self,
        lane: usize,
        op: OpKind,
        offset: u64,
        len: u64,
        bufs: &[IoBuf],
    ) -> Tag {
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        let bufs = bufs.to_vec();
        let command = Command {
            lane,
            op,
            offset,
            len,
            bufs,
            done: 0,
            passed: 0,
            parked: false,
            parked_until: None,
        };
        self.commands.insert(tag, command);
        self.submit(tag);
        tag
    }

    /// The next answer, waiting for it; `None` when nothing is under way.
    ///
    /// # Panics
    ///
    /// When nothing is answered for a minute, or the lane breaks its contract.
    pub fn finished(&mut self) -> Option<(Tag, Result<(), IoError>)> {
        let deadline = Instant::now() + LOST;
        loop {
            if let Some(answer) = self.answered.pop_front() {
                return Some(answer);
            }
            if self.commands.is_empty() {
                return None;
            }
            assert!(Instant::now() < deadline, "lost: {:?}", self.commands);
            self.turn();
        }
    }

    /// Takes what has come to its end so far, without waiting for any.
    ///
    /// # Panics
    ///
    /// When the ring fails.
    pub fn look(&mut self) {
        self.ring.wait(Some(std::time::Duration::ZERO)).expect("wait");
        self.reap();
    }

    /// One request from beginning to end, with nothing else under way.
    ///
    /// # Errors
    ///
    /// What the volume answers.
    ///
    /// # Panics
    ///
    /// As [`TestBench::finished`], and when something is under way.
    pub fn run(
        &mut self,
        op: OpKind,
        offset: u64,
        len: u64,
        bufs: &[IoBuf],
    ) -> Result<(), IoError> {
        assert!(self.commands.is_empty() && self.answered.is_empty(), "something is under way");
        let tag = self.start(op, offset, len, bufs);
        let (answered, result) = self.finished().expect("one is under way");
        assert_eq!(answered, tag);
        result
    }

    /// Writes bytes through the start of the bench's memory.
    ///
    /// # Errors
    ///
    /// What the volume answers.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), IoError> {
        let buf = self.buf(0, bytes.len());
        buf.write(0, bytes);
        self.run(OpKind::Write { fua: false }, offset, bytes.len() as u64, &[buf])
    }

    /// Reads bytes through the start of the bench's memory.
    ///
    /// # Errors
    ///
    /// What the volume answers.
    pub fn read(&mut self, offset: u64, len: usize) -> Result<Vec<u8>, IoError> {
        let buf = self.buf(0, len);
        self.run(OpKind::Read, offset, len as u64, &[buf])?;
        Ok(self.bytes(0, len))
    }

    /// Waits for everything and takes the lane off its ring.
    ///
    /// # Panics
    ///
    /// When an answer was not taken.
    pub fn close(mut self) {
        assert!(self.finished().is_none(), "an answer was not taken");
        assert!(self.ring.next().is_none(), "a completion that nobody waits for");
        self.lanes.iter_mut().for_each(|(_, lane)| lane.detach(&mut self.ring));
    }

    fn submit(&mut self, tag: Tag) {
        if self.ring.space() < <dyn Lane>::SQES {
            self.ring.submit().expect("submit");
        }
        let command = self.commands.get_mut(&tag).expect("begun and not answered");
        command.parked = false;
        let mut request = Request {
            op: command.op,
            offset: command.offset,
            len: command.len,
            bufs: &command.bufs,
            tag,
            done: command.done,
            passed: command.passed,
        };
        let lane = &mut self.lanes[command.lane].1;
        let answer = lane.submit(&mut self.ring, &mut request);
        assert_eq!(request.tag, tag, "a lane must leave the tag alone");
        command.passed = request.passed;
        match answer {
            Submit::Pending => {}
            Submit::Held { reason } => self.parks[index(reason)] += 1,
            Submit::Done(result) => self.answer(tag, result),
            Submit::Park { reason, until } => {
                command.parked = true;
                command.parked_until = until;
                self.parks[index(reason)] += 1;
            }
        }
    }

    fn answer(&mut self, tag: Tag, result: Result<(), IoError>) {
        assert!(self.commands.remove(&tag).is_some(), "{tag:?} finished and was not under way");
        self.answered.push_back((tag, result));
    }

    /// What a channel does in a turn: the parked whose time has come, one submission, the completions.
    fn turn(&mut self) {
        let now = Instant::now();
        let due: Vec<Tag> = self
            .commands
            .iter()
            .filter(|(_, c)| c.parked && c.parked_until.is_some_and(|until| until <= now))
            .map(|(tag, _)| *tag)
            .collect();
        for tag in &due {
            self.submit(*tag);
        }
        if !self.answered.is_empty() {
            self.ring.submit().expect("submit");
            return;
        }
        let next = self.commands.values().filter(|c| c.parked).filter_map(|c| c.parked_until).min();
        for (lane, (id, _)) in self.lanes.iter().enumerate() {
            let mut own = self.commands.values().filter(|c| c.lane == lane);
            assert!(
                own.clone().next().is_none() || own.any(|c| !c.parked || c.parked_until.is_some()),
                "{id:?}: parked without a time, and nothing is in flight to wait for: {:?}",
                self.commands
            );
        }
        let sleep = next.map_or(LOST, |until| until.saturating_duration_since(Instant::now()));
        self.ring.wait(Some(sleep)).expect("wait");
        self.reap();
    }

    fn reap(&mut self) {
        let mut any = false;
        while let Some(completion) = self.ring.next() {
            any = true;
            self.completions += 1;
            let (id, token) = LaneId::split(completion.user_data);
            let lane = self.lanes.iter_mut().find(|(lane, _)| *lane == id);
            let (_, lane) = lane.expect("the completion of a lane of this bench");
            lane.complete(&mut self.ring, token, completion.result, &mut self.finishes);
            while let Some(finish) = self.finishes.pop() {
                self.finish(finish);
            }
        }
        if any {
            let parked = |c: &Command| c.parked && c.parked_until.is_none();
            let waiting: Vec<Tag> =
                self.commands.iter().filter(|(_, c)| parked(c)).map(|(tag, _)| *tag).collect();
            waiting.into_iter().for_each(|tag| self.submit(tag));
        }
    }

    fn finish(&mut self, finish: Finish) {
        let command = self.commands.get_mut(&finish.tag);
        let command = command.unwrap_or_else(|| panic!("{finish:?} was not under way"));
        assert!(!command.parked, "{finish:?} was parked");
        match finish.outcome {
            Outcome::Done(result) => self.answer(finish.tag, result),
            Outcome::Again { done } => {
                let more = done < command.len || command.op == OpKind::Flush;
                assert!(done >= command.done && more, "{finish:?} of {command:?}");
                command.done = done;
                self.submit(finish.tag);
            }
        }
    }
}

fn index(reason: Wait) -> usize {
    match reason {
        Wait::Throttled => 0,
        Wait::NoDma => 1,
        Wait::BackEndFull => 2,
        Wait::Delay => 3,
        Wait::Pool => 4,
        Wait::PoolFull => 5,
    }
}
