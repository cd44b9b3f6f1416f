//! A pool that is written everywhere by the core itself, on files of which nothing exists but the pool's own blocks. Home records, which no opening reads, and clients' bytes are not kept.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use pool::format::{Extent as Area, SystemKind, Uuid};
use pool::{
    Effect, Extent, NewPv, Outcome, Payload, Policy, Pool, ReadFailed, Reply, Request, Source, make,
};

const SERVER: Uuid = Uuid(*b"the only server.");
pub(crate) const CHUNK: u64 = 64 << 20;
/// First writes under way at once.
const AT_ONCE: u32 = 4096;

/// Files, each of which is a PV with nothing but the pool's own blocks.
struct Pvs(Vec<File>);

impl Source for Pvs {
    fn read(&mut self, pv: u16, at: u64, bytes: usize) -> Result<Vec<u8>, ReadFailed> {
        let mut all = vec![0; bytes];
        let read = self.0.get(usize::from(pv)).map(|file| file.read_exact_at(&mut all, at));
        match read {
            Some(Ok(())) => Ok(all),
            _ => Err(ReadFailed { pv, at }),
        }
    }

    fn is_there(&mut self, pv: u16) -> bool {
        usize::from(pv) < self.0.len()
    }
}

/// A pool at work.
pub(crate) struct Filled {
    pub(crate) pool: Pool,
    pvs: Pvs,
    areas: Vec<Area>,
}

impl Filled {
    /// A new pool, with room for so many LUs of so many chunks each; of two legs each or of one.
    pub(crate) fn make(folder: &Path, lus: u32, chunks: u32, two: bool) -> Filled {
        fs::create_dir_all(folder).expect("a folder");
        // What a PV has beside what LUs take of it: its own blocks, and room for PVs that are not used alike.
        let all = chunks + (chunks / 64).max(128);
        let new: Vec<NewPv> = (0..lus * (1 + u32::from(two)))
            .map(|number| {
                let mut pv = *b"a PV of this one";
                pv[..4].copy_from_slice(&number.to_le_bytes());
                let group = u8::from(number >= lus);
                NewPv { pv: Uuid(pv), chunks: all, tier: 0, group }
            })
            .collect();
        let files = (0..new.len()).map(|number| {
            let mut file = File::options();
            let file = file.read(true).write(true).create(true).truncate(true);
            let file = file.open(folder.join(format!("{number:04}"))).expect("a file");
            file.set_len(u64::from(all) * CHUNK).expect("as long as it has to be");
            file
        });
        let pvs = Pvs(files.collect());
        let (superblock, parts) = make(Uuid(*b"a pool of a PiB."), &new).expect("a pool");
        for (pv, at, bytes) in parts.into_iter().flatten() {
            if is_kept(&superblock.extents, pv, at) {
                pvs.0[usize::from(pv)].write_all_at(&bytes, at).expect("there is room");
            }
        }
        Filled::begin(pvs)
    }

    /// One that was made, and nobody works with.
    pub(crate) fn open(folder: &Path) -> Filled {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("one").path()).collect();
        paths.sort();
        let open = |path| File::options().read(true).write(true).open(path).expect("a PV");
        Filled::begin(Pvs(paths.iter().map(open).collect()))
    }

    fn begin(mut pvs: Pvs) -> Filled {
        let mut pool = Pool::open(&mut pvs, SERVER, None, Policy::default()).expect("it opens");
        let areas = pool.superblock().extents.clone();
        pool.start();
        let mut filled = Filled { pool, pvs, areas };
        filled.work();
        assert!(filled.pool.is_serving());
        filled
    }

    /// A new LU, of which each chunk is written to once; nobody flushes it.
    pub(crate) fn write_lu(&mut self, chunks: u32) -> u32 {
        self.pool.submit(1, Request::Create { chunks, thick: false, tier: 0, asked: 0 });
        let made = self.work();
        let [Reply::Created(lu)] = made[..] else { panic!("{made:?}") };
        for first in (0..chunks).step_by(AT_ONCE as usize) {
            let end = chunks.min(first + AT_ONCE);
            for vchunk in (first..end).map(u64::from) {
                let extent = Extent { lu, at: vchunk * CHUNK, bytes: 4096 };
                self.pool.submit(vchunk, Request::Write { extent, durable: false });
            }
            assert_eq!(self.work().len() as u32, end - first, "each is answered");
        }
        lu
    }

    /// Everything is flushed, nobody works with any chunk, and none is active.
    pub(crate) fn rest(&mut self) {
        let lus: Vec<u32> = self.pool.lus().map(|(lu, _)| lu).collect();
        for lu in lus {
            self.pool.submit(1, Request::Flush { lu });
            self.work();
        }
        loop {
            self.pool.submit(1, Request::Checkpoint);
            self.work();
            if self.pool.active_chunks() == 0 {
                break;
            }
            self.pool.look_at_activity(true);
            self.work();
        }
    }

    /// Carries out all that the pool wants; what was answered.
    fn work(&mut self) -> Vec<Reply> {
        let (mut answers, pool) = (Vec::new(), &mut self.pool);
        let mut todo: VecDeque<Effect> = pool.effects().into();
        while let Some(effect) = todo.pop_front() {
            let mut outcome = Outcome::Done;
            match &effect {
                Effect::Write { pv, at, what: Payload::Own(bytes), .. }
                    if is_kept(&self.areas, *pv, *at) =>
                {
                    self.pvs.0[usize::from(*pv)].write_all_at(bytes, *at).expect("there is room");
                }
                Effect::Read { pv, at, bytes, .. } => {
                    let mut all = vec![0; *bytes as usize];
                    self.pvs.0[usize::from(*pv)].read_exact_at(&mut all, *at).expect("it is there");
                    outcome = Outcome::Bytes(all);
                }
                Effect::Answer { result, .. } => answers.push(result.expect("nothing fails here")),
                _ => {}
            }
            if let Some(op) = effect.number() {
                pool.done(op, outcome);
            }
            if todo.is_empty() {
                todo = pool.effects().into();
                // Those of which a shell would show something.
                pool.touched();
            }
        }
        answers
    }
}

/// Whether it is one of the pool's own blocks that an opening reads.
fn is_kept(areas: &[Area], pv: u16, at: u64) -> bool {
    let chunk = at / CHUNK;
    let of = |area: &&Area| {
        let first = u64::from(area.chunk);
        area.pv == pv && (first..first + u64::from(area.count)).contains(&chunk)
    };
    chunk == 0 || areas.iter().find(of).is_some_and(|area| area.kind != SystemKind::Homes)
}
