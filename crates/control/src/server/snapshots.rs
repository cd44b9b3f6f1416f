//! Snapshots: what the API shows of them, and rollbacks.

use super::shared::{Done, Server};
use super::trace::refusal;
use crate::error::{ApiError, Code};
use crate::model::pools::{pool_of, volumes_of};
use crate::model::transition::Change;
use crate::model::{Desired, MAIN, home};
use fabric::attribute::Object;
use protocol::message::{Failure, FailureCode, PoolStatus, RollbackSpec};
use protocol::now_ms;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// How often it is looked whether a rollback that takes long is over.
const LOOK: Duration = Duration::from_millis(100);

/// What a snapshot has.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SnapshotView {
    /// The storage pool that it is in.
    pub pool: String,
    /// When it was made, in milliseconds since 1970; nothing while it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_ms: Option<u64>,
    /// What it has of each LU.
    pub lus: Vec<FrozenLuView>,
}

/// What a snapshot has of an LU.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FrozenLuView {
    /// The snapshot.
    pub snapshot: String,
    /// The volume.
    pub volume: String,
    /// Its number in the pool, which is never given out again.
    pub number: u32,
    /// The size of the LU.
    pub size_bytes: u64,
    /// What it alone has, and its removal gives back, when its data plane says so: what its LU needs as well is counted there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
}

impl FrozenLuView {
    fn of_snapshot(
        desired: &Desired,
        name: &str,
        status: Option<&PoolStatus>,
    ) -> Vec<FrozenLuView> {
        let lus = desired.frozen(name).into_iter().flat_map(|frozen| &frozen.lus);
        let used = |number: u32| {
            let lu = status?.lus.iter().find(|lu| lu.number == number)?;
            Some(lu.mapped_bytes)
        };
        lus.map(|(volume, lu)| FrozenLuView {
            snapshot: name.to_owned(),
            volume: volume.clone(),
            number: lu.number,
            size_bytes: lu.bytes,
            used_bytes: used(lu.number),
        })
        .collect()
    }

    /// Those of a pool.
    pub(super) fn all(desired: &Desired, status: &PoolStatus) -> Vec<FrozenLuView> {
        let pool = status.spec.name.as_str();
        let names = desired[Object::Snapshot].keys();
        let names = names.filter(|name| desired.pool_of_snapshot(name) == Some(pool));
        names.flat_map(|name| FrozenLuView::of_snapshot(desired, name, Some(status))).collect()
    }
}

impl SnapshotView {
    pub(super) fn of(
        desired: &Desired,
        name: &str,
        pool: &str,
        status: Option<&PoolStatus>,
    ) -> SnapshotView {
        let made = desired.frozen(name).map(|frozen| frozen.made_ms);
        SnapshotView {
            pool: pool.to_owned(),
            made_ms: made.filter(|made| *made != 0),
            lus: FrozenLuView::of_snapshot(desired, name, status),
        }
    }
}

impl Server {
    /// The LUs of a snapshot, or these of them, hold again what it holds, all of them or none; what was written since is gone.
    ///
    /// # Errors
    ///
    /// It is not made, or not of such an LU; clients use the LU and nobody says `force`; its pool is not open.
    pub async fn rollback(
        &self,
        name: String,
        volumes: Vec<String>,
        (force, dry_run): (bool, bool),
    ) -> Result<Done, ApiError> {
        let work = move |server: Arc<Server>, _| async move {
            server.rollback_now(&name, &volumes, (force, dry_run)).await
        };
        self.to_the_end(dry_run, true, work).await
    }

    async fn rollback_now(
        &self,
        name: &str,
        volumes: &[String],
        (force, dry_run): (bool, bool),
    ) -> Result<Done, ApiError> {
        let desired = self.desired();
        let set = desired[Object::Snapshot]
            .get(name)
            .ok_or_else(|| self.not_found(Object::Snapshot, name))?;
        let of = volumes_of(set);
        if let Some(other) = volumes.iter().find(|volume| !of.contains(volume)) {
            let problem = format!("snapshot `{name}` is not of `{other}`");
            let help = format!("it is of {}", of.join(", "));
            return Err(ApiError::new(Code::NotFound, problem).help(help));
        }
        let volumes = if volumes.is_empty() { &of[..] } else { volumes };
        let mut rollbacks: Vec<(&String, u32, u32)> = Vec::new();
        for volume in volumes {
            if rollbacks.iter().any(|(named, ..)| *named == volume) {
                continue;
            }
            let made = desired.frozen(name).and_then(|frozen| frozen.lus.get(volume));
            let its = desired.lu_number(volume);
            let (Some(made), Some(lu)) = (made, its) else {
                let problem = format!("snapshot `{name}` is not made yet");
                let help = format!("see `trunkline snapshot show {name}`");
                return Err(ApiError::new(Code::Unavailable, problem).help(help));
            };
            if desired.lu_bytes(volume).is_some_and(|bytes| bytes < made.bytes) {
                let problem =
                    format!("LU `{volume}` is smaller than it was when snapshot `{name}` was made");
                let help = format!(
                    "make it as large first: `trunkline lu resize {volume} {}`",
                    made.bytes
                );
                return Err(ApiError::invalid(problem).help(help));
            }
            rollbacks.push((volume, lu, made.number));
        }
        let change = |volume: &str| {
            Change::live(Object::Volume, volume, "content", None, format!("snapshot {name}"))
        };
        let done = Done {
            changes: rollbacks.iter().map(|(volume, ..)| change(volume)).collect(),
            ..Done::default()
        };
        if dry_run {
            return Ok(done);
        }
        // All of a snapshot are in one pool.
        if let [(volume, lu, snapshot), rest @ ..] = &rollbacks[..] {
            let pool = desired[Object::Volume].get(volume).and_then(pool_of).unwrap_or_default();
            let home = desired[Object::Pool].get(pool).map_or(MAIN, home);
            let also = rest.iter().map(|(_, lu, snapshot)| (*lu, *snapshot)).collect();
            let (pool, lu, snapshot, id) = (pool.to_owned(), *lu, *snapshot, now_ms());
            let spec = RollbackSpec { pool, lu, snapshot, also, force, id };
            self.roll_back(home, name, spec).await?;
        }
        Ok(done)
    }

    async fn roll_back(
        &self,
        home: &str,
        snapshot: &str,
        spec: RollbackSpec,
    ) -> Result<(), ApiError> {
        let supervisor = self.supervisor_of(home)?;
        let over = until_over(|| supervisor.rollback(spec.clone())).await?;
        over.map_err(|failure| {
            let message = format!("snapshot `{snapshot}`: {}", failure.message);
            refusal(Failure { message, ..failure })
        })
    }
}

/// Asks a data plane until what it does by itself is over.
pub(super) async fn until_over<F>(ask: impl Fn() -> F) -> Result<Result<(), Failure>, ApiError>
where
    F: Future<Output = Result<Result<(), Failure>, ApiError>>,
{
    loop {
        match ask().await? {
            Err(failure) if failure.code == FailureCode::Opening => tokio::time::sleep(LOOK).await,
            over => return Ok(over),
        }
    }
}
