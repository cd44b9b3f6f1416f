//! Requests end: when all their parts are over, and what has to be durable before is.

use super::*;

impl Pool {
    /// A part of a request is over.
    pub(super) fn piece_done(&mut self, piece: &Piece, fault: Option<Fault>) {
        let settled = self.slots.get(&piece.key).map_or(0, |slot| slot.settled);
        let Some(job) = self.jobs.get_mut(&piece.job) else { return };
        job.left -= 1;
        job.fault = job.fault.or(fault);
        // Reads show what is there and need not wait for it to be durable.
        if piece.kind != PieceKind::Read {
            job.txn = job.txn.max(settled);
        }
        if job.left > 0 {
            return;
        }
        if job.fault.is_none() && !job.then_sync.is_empty() {
            // What was written to another layer, before a snapshot was made, is durable since then.
            let space = piece.key.0;
            let scope = std::mem::take(&mut job.then_sync).into_iter();
            let scope = scope.filter(|key| key.0 == space).map(|(_, vchunk)| vchunk).collect();
            return self.begin_sync(piece.job, space, Some(scope));
        }
        self.answer_when_durable(piece.job);
    }

    /// The answer, when the transaction is durable that it waits for.
    pub(super) fn answer_when_durable(&mut self, number: u64) {
        let Some(job) = self.jobs.get(&number) else { return };
        let waits =
            job.fault.is_none() && job.txn > self.log.durable && self.keeps(Rule::AnswerAfterMap);
        if waits {
            self.waiters.entry(job.txn).or_default().push(Waiter::Job(number));
            return;
        }
        if self.holds_answer(number) {
            return;
        }
        if let Some(job) = self.jobs.remove(&number) {
            if let Asker::Leaving(_, key) | Asker::Balance(key) | Asker::Mend(key) = job.owner {
                self.settling.remove(&key);
            }
            match job.owner {
                Asker::Tag(tag) => self.answer(tag, job.fault.map_or(Ok(Reply::Done), Err)),
                Asker::Leaving(pv, key) => self.moved_away(pv, key, job.fault),
                Asker::Balance(key) => self.balanced(key, job.fault),
                Asker::Cut => self.cut_flushed(job.fault),
                Asker::Merge(step) => self.merge_went(step, job.fault),
                Asker::Mend(key) => self.mended(key, job.fault),
                Asker::Check(key, repairs) => self.checked(key, repairs, job.fault),
                Asker::Sums(key, step) => self.sums_over(key, step, job.fault),
                Asker::Quiet => self.activity.said(),
                Asker::Untold => self.telling -= 1,
            }
        }
    }
}
