//! LUs that are to share nothing any more.

use super::change::Begun;
use super::drive::PROGRESS_LOOK;
use super::shared::{Done, Server};
use super::trace::refusal;
use crate::error::{ApiError, Code};
use crate::model::pools::pool_of;
use crate::model::transition::Change;
use crate::model::{MAIN, home};
use crate::operation::{Kind, Operation, Step, Work};
use crate::supervisor::Supervisor;
use fabric::attribute::Object;
use protocol::message::{DetachSpec, Failure, FailureCode};
use protocol::now_ms;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Server {
    /// All that an LU shares with snapshots and clones is copied into its own space, while its clients work. Who asks while that goes on waits for the same.
    ///
    /// # Errors
    ///
    /// It is no LU, others need what it has, there is no space, or somebody has cancelled it.
    pub async fn detach_lu(
        &self,
        name: String,
        dry_run: bool,
        wait: bool,
    ) -> Result<Done, ApiError> {
        let work = move |server: Arc<Server>, begun| async move {
            server.detach_now(&name, dry_run, &begun).await
        };
        self.to_the_end(dry_run, wait, work).await
    }

    async fn detach_now(&self, name: &str, dry_run: bool, begun: &Begun) -> Result<Done, ApiError> {
        let (supervisor, spec) = self.parting(name, 0)?;
        if !shares(&supervisor, &spec).await {
            return Ok(Done::default());
        }
        let (on, off) = (Some("on".to_owned()), "off".to_owned());
        let change = Change::live(Object::Volume, name, "shares", on, off);
        let done = Done { changes: vec![change], ..Done::default() };
        if dry_run {
            return Ok(done);
        }
        let is = |work: &Work| matches!(work, Work::Detach { volume, .. } if volume == name);
        let work = Work::Detach { volume: name.to_owned(), asked: now_ms() };
        // The data plane goes on also where there is no room to write that down.
        let own = self.have_done(begun, is, (Kind::Detach, Step::Detaching, work), &done).await?;
        Ok(if own { done } else { Done::default() })
    }

    /// Whose data plane is asked, and for what.
    pub(super) fn parting(
        &self,
        name: &str,
        id: u64,
    ) -> Result<(Arc<Supervisor>, DetachSpec), ApiError> {
        let desired = self.desired();
        let set = desired[Object::Volume]
            .get(name)
            .ok_or_else(|| self.not_found(Object::Volume, name))?;
        let Some(pool) = pool_of(set) else {
            let problem = format!("volume `{name}` is no LU");
            let help =
                "only what is cut from a storage pool shares anything: see `trunkline lu list`";
            return Err(ApiError::new(Code::Invalid, problem).help(help));
        };
        let Some(lu) = desired.lu_number(name) else {
            let problem = format!("LU `{name}` is not made yet");
            let help = format!("see `trunkline lu show {name}`");
            return Err(ApiError::new(Code::Unavailable, problem).help(help));
        };
        let home = desired[Object::Pool].get(pool).map_or(MAIN, home);
        let supervisor = self.supervisor_of(home)?;
        Ok((supervisor, DetachSpec { pool: pool.to_owned(), lu, id, stop: false }))
    }

    /// Has an LU detached: what became of it, or nothing if somebody has cancelled it or this server ends. A data plane that is away comes back, if it ever knew of it.
    pub(super) async fn detach(
        &self,
        operation: &Operation,
        resumed: bool,
    ) -> Option<Result<(), ApiError>> {
        let Work::Detach { volume, asked } = &operation.work else { return Some(Ok(())) };
        let mut begun = resumed;
        loop {
            let id = operation.id;
            if self.is_given_up(id) {
                return None;
            }
            let (supervisor, spec) = match self.parting(volume, *asked) {
                Ok(parting) => parting,
                Err(error) => return Some(Err(error)),
            };
            match supervisor.detach(spec).await {
                Ok(Ok(None)) => return Some(Ok(())),
                Ok(Ok(Some(now))) => {
                    begun = true;
                    self.tell_progress(id, now.planned_bytes, now.moved_bytes);
                }
                Ok(Err(failure)) if !begun || failure.code != FailureCode::NotFound => {
                    let message = format!("LU `{volume}`: {}", failure.message);
                    return Some(Err(refusal(Failure { message, ..failure })));
                }
                Err(error) if !begun => return Some(Err(error)),
                Ok(Err(_)) | Err(_) => {}
            }
            self.before_next_look(id).await;
        }
    }

    /// Has an LU that is being detached go on sharing; true if it came too late.
    pub(super) async fn stop_detach(&self, operation: &Operation) -> bool {
        let Work::Detach { volume, asked } = &operation.work else { return false };
        while !self.ended.load(Ordering::Relaxed) {
            let Ok((supervisor, spec)) = self.parting(volume, *asked) else { return false };
            match supervisor.detach(DetachSpec { stop: true, ..spec.clone() }).await {
                Ok(Ok(None)) => return !shares(&supervisor, &spec).await,
                Ok(Err(failure)) if failure.code != FailureCode::NotFound => return false,
                _ => tokio::time::sleep(PROGRESS_LOOK).await,
            }
        }
        false
    }
}

/// Whether an LU shares anything, as far as that is known.
async fn shares(supervisor: &Supervisor, spec: &DetachSpec) -> bool {
    supervisor.look().await.known.is_none_or(|known| {
        let pools = known.status.pools.iter().filter(|pool| pool.spec.name == spec.pool);
        let mut lus = pools.flat_map(|pool| &pool.lus).filter(|lu| lu.number == spec.lu);
        lus.all(|lu| lu.shares)
    })
}
