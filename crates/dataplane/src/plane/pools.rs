//! Storage pools: opened, told of LUs that go, closed; and their LUs as volumes.

use block::{Files, OpenEvent, VolumeError};
use pool_io::{PoolError, PoolHandle};
use protocol::message::{Failure, FailureCode, LuStatus, PoolStatus, PvStatus, Reply};
use spec::{LuSpec, PoolSpec, VolumeKind, VolumeSpec};

use super::{Plane, State, failure, in_use, not_found};
use crate::lock::locked;
use crate::storage::OpenVolume;

/// Bytes of a chunk.
const CHUNK: u64 = pool::format::CHUNK_BYTES;

/// A pool that is open.
#[derive(Clone)]
pub(crate) struct OpenPool {
    spec: PoolSpec,
    handle: PoolHandle,
}

impl Plane {
    pub(super) fn put_pool(&self, spec: PoolSpec) -> Result<Reply, Failure> {
        let _changing = locked(&self.changes);
        let open = self.state().pools.get(&spec.name).cloned();
        let mut open = match open {
            Some(open) => {
                let PoolSpec { fresh, doomed, .. } = open.spec.clone();
                if (PoolSpec { fresh, doomed, ..spec.clone() }) != open.spec {
                    let what = "what it was made with: its PVs";
                    let pool = format!("pool {}", spec.name);
                    return Err(in_use(pool, what, "remove the pool first"));
                }
                open
            }
            None => {
                let doomed = Vec::new();
                let handle = self.open_pool(&spec)?;
                OpenPool { spec: PoolSpec { doomed, ..spec.clone() }, handle }
            }
        };
        // It is there, whatever becomes of its LUs.
        self.state().pools.insert(spec.name.clone(), open.clone());
        let used = self.state().lus_of(&spec.name);
        if let Some((number, volume)) = used.iter().find(|(number, _)| spec.doomed.contains(number))
        {
            let what = format!("LU {number} of pool {}", spec.name);
            return Err(in_use(what, &format!("volume {volume}"), "remove the volume first"));
        }
        let removed = open.handle.remove_lus(&spec.doomed);
        removed.map_err(|error| pool_failure(&spec.name, &error))?;
        open.spec = spec;
        self.state().pools.insert(open.spec.name.clone(), open);
        Ok(Reply::Done)
    }

    fn open_pool(&self, spec: &PoolSpec) -> Result<PoolHandle, Failure> {
        let Some(pools) = &self.context.pools else {
            let what = format!("pool {}: this data plane serves none", spec.name);
            return Err(failure(FailureCode::System, what, "see its log, and restart it"));
        };
        let mut event = |event: OpenEvent| {
            if let OpenEvent::WaitsForLock { holder } = event {
                tracing::warn!(pool = spec.name, holder, "waits for a PV");
            }
        };
        let opened = pools.open(&*self.context.outside, self.owner().as_deref(), spec, &mut event);
        opened.map_err(|error| pool_failure(&spec.name, &error))
    }

    pub(super) fn remove_pool(&self, name: &str) -> Result<Reply, Failure> {
        let _changing = locked(&self.changes);
        let mut state = self.state();
        if let Some((_, volume)) = state.lus_of(name).first() {
            let user = format!("volume {volume}");
            return Err(in_use(format!("pool {name}"), &user, "remove its volumes first"));
        }
        let open = state.pools.remove(name).ok_or_else(|| not_found("pool", name))?;
        drop(state);
        open.handle.close();
        // All of it is on the PVs now.
        let _ = self.context.outside.remove(&open.spec.shadow);
        Ok(Reply::Done)
    }
}

impl State {
    /// LUs of a pool that are open, with their volumes.
    fn lus_of(&self, pool: &str) -> Vec<(u32, String)> {
        let number = |open: &OpenVolume| {
            let VolumeKind::Lu(LuSpec { pool: of, .. }) = &open.spec.kind else { return None };
            let Some(spec::FileIdentity::Lu { number, .. }) = open.known else { return None };
            (of == pool).then(|| (number, open.spec.name.clone()))
        };
        self.storage.volumes.values().filter_map(number).collect()
    }

    /// The pool of an LU.
    pub(super) fn pool_of(
        &self,
        spec: &VolumeSpec,
        lu: &LuSpec,
    ) -> Result<PoolHandle, VolumeError> {
        let open = self.pools.get(&lu.pool).map(|open| open.handle.clone());
        open.ok_or_else(|| VolumeError {
            volume: spec.name.clone(),
            what: format!("its pool {} is not open", lu.pool),
            help: Some(format!("see `trunkline pool show {}`", lu.pool)),
            source: None,
        })
    }
}

impl OpenPool {
    pub(super) fn status(&self) -> PoolStatus {
        let view = self.handle.view();
        let pv = |pv: &pool_io::PvView| PvStatus {
            path: pv.path.clone(),
            uuid: pv.space.uuid.to_string(),
            bytes: u64::from(pv.space.chunks) * CHUNK,
            free_bytes: u64::from(pv.space.free) * CHUNK,
        };
        let lu = |lu: &pool::LuSpace| LuStatus {
            number: lu.lu,
            bytes: u64::from(lu.chunks) * CHUNK,
            mapped_bytes: u64::from(lu.allocated) * CHUNK,
            thick: lu.thick,
        };
        PoolStatus {
            spec: self.spec.clone(),
            pvs: view.pvs.iter().map(pv).collect(),
            lus: view.lus.iter().map(lu).collect(),
            free_bytes: view.free * CHUNK,
            paused: view.paused,
            pauses: view.pauses,
            trouble: view.trouble,
        }
    }

    /// Closes it at the end of the process's work.
    pub(super) fn close(self) {
        self.handle.close();
    }
}

fn pool_failure(name: &str, error: &PoolError) -> Failure {
    let message = format!("pool {name}: {}", error.what);
    Failure { code: FailureCode::System, message, help: error.help.clone() }
}
