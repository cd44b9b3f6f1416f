//! Storage pools of which all that is written is read from every leg.

use super::change::Begun;
use super::drive::PROGRESS_LOOK;
use super::shared::{Done, Server};
use super::trace::refusal;
use crate::error::{ApiError, Code};
use crate::model::pools::scrubs::LastScrub;
use crate::model::transition::Change;
use crate::model::{MAIN, home};
use crate::operation::{Kind, Operation, Step, Work};
use crate::supervisor::Supervisor;
use fabric::attribute::Object;
use protocol::message::{Failure, FailureCode, ScrubSpec, ScrubStatus};
use protocol::now_ms;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Server {
    /// All that is written in a pool is read from every PV that has it, while clients work, and compared. Who asks while that goes on waits for the same.
    ///
    /// # Errors
    ///
    /// There is no such pool, it is not open, or somebody has cancelled it.
    pub async fn scrub_pool(
        &self,
        name: String,
        dry_run: bool,
        wait: bool,
    ) -> Result<Done, ApiError> {
        let work = move |server: Arc<Server>, begun| async move {
            server.scrub_now(&name, dry_run, &begun).await
        };
        self.to_the_end(dry_run, wait, work).await
    }

    async fn scrub_now(&self, name: &str, dry_run: bool, begun: &Begun) -> Result<Done, ApiError> {
        self.scrubbing(name, 0)?;
        let done = |found: String| {
            let change = Change::live(Object::Pool, name, "scrub", None, found);
            Done { changes: vec![change], ..Done::default() }
        };
        let going = done("all that is written is read".to_owned());
        if dry_run {
            return Ok(going);
        }
        let is = |work: &Work| matches!(work, Work::Scrub { pool, .. } if pool == name);
        let work = Work::Scrub { pool: name.to_owned(), asked: now_ms() };
        // The data plane goes on also where there is no room to write that down.
        self.have_done(begun, is, (Kind::Scrub, Step::Scrubbing, work), &going).await?;
        let desired = self.desired();
        let last = desired.allocations.pools.get(name).and_then(|kept| kept.scrub.as_ref());
        Ok(done(last.map(LastScrub::text).unwrap_or_default()))
    }

    /// Whose data plane is asked, and for what.
    fn scrubbing(&self, name: &str, id: u64) -> Result<(Arc<Supervisor>, ScrubSpec), ApiError> {
        let desired = self.desired();
        let set = desired[Object::Pool].get(name);
        let home = home(set.ok_or_else(|| self.not_found(Object::Pool, name))?);
        let supervisor = self.supervisors().get(home).cloned();
        let supervisor = supervisor.ok_or_else(|| self.not_found(Object::DataPlane, MAIN))?;
        Ok((supervisor, ScrubSpec { pool: name.to_owned(), id, stop: false }))
    }

    /// Has a pool scrubbed: what became of it, or nothing if somebody has cancelled it or this server ends. A data plane that died begins anew.
    pub(super) async fn scrub(
        &self,
        operation: &Operation,
        resumed: bool,
    ) -> Option<Result<(), ApiError>> {
        let Work::Scrub { pool, asked } = &operation.work else { return Some(Ok(())) };
        let mut begun = resumed;
        loop {
            let id = operation.id;
            if self.is_given_up(id) {
                return None;
            }
            let (supervisor, spec) = match self.scrubbing(pool, *asked) {
                Ok(scrubbing) => scrubbing,
                Err(error) => return Some(Err(error)),
            };
            match supervisor.scrub(spec).await {
                Ok(Ok(now)) if now.over && now.stopped => {
                    let what = format!("the scrub of pool `{pool}` was stopped");
                    return Some(Err(ApiError::new(Code::Failed, what)));
                }
                Ok(Ok(now)) if now.over => {
                    self.keep_scrub(operation, &now).await;
                    return Some(Ok(()));
                }
                Ok(Ok(now)) => {
                    begun = true;
                    let read = now.progress.moved_bytes + now.progress.failed_bytes;
                    self.tell_progress(id, now.progress.planned_bytes, read);
                }
                Ok(Err(failure)) if !begun || failure.code != FailureCode::NotFound => {
                    let message = format!("pool `{pool}`: {}", failure.message);
                    return Some(Err(refusal(Failure { message, ..failure })));
                }
                Err(error) if !begun => return Some(Err(error)),
                Ok(Err(_)) | Err(_) => {}
            }
            self.before_next_look(id).await;
        }
    }

    /// Has a scrub end; true if it came too late.
    pub(super) async fn stop_scrub(&self, operation: &Operation) -> bool {
        let Work::Scrub { pool, asked } = &operation.work else { return false };
        while !self.ended.load(Ordering::Relaxed) {
            let Ok((supervisor, spec)) = self.scrubbing(pool, *asked) else { return false };
            match supervisor.scrub(ScrubSpec { stop: true, ..spec }).await {
                Ok(Ok(now)) if now.over => {
                    // One that did not come to its end says nothing of what it did not read.
                    if !now.stopped {
                        self.keep_scrub(operation, &now).await;
                    }
                    return !now.stopped;
                }
                // It knows nothing of it, or does not run any more.
                Ok(Err(_)) => return false,
                _ => tokio::time::sleep(PROGRESS_LOOK).await,
            }
        }
        false
    }

    /// Keeps what a scrub has found.
    async fn keep_scrub(&self, operation: &Operation, now: &ScrubStatus) {
        let Work::Scrub { pool, .. } = &operation.work else { return };
        let ledger = &mut *self.change.lock().await;
        let mut next = self.desired();
        let times = (operation.started_ms, now_ms());
        let last = LastScrub::of(&next, pool, now, times);
        let Some(mut kept) = next.allocations.pools.get(pool).cloned() else { return };
        kept.scrub = Some(last);
        next.allocations.pools.insert(pool.clone(), kept);
        if let Err(error) = self.commit(ledger, &next) {
            tracing::warn!(pool, "what a scrub has found was not stored: {error}");
        }
    }
}
