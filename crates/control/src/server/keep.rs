//! What is kept beside the state, and what is learned for it, when its file system has no room: said as long as it lasts, and tried again.

use super::shared::Server;
use crate::error::{ApiError, Code};
use crate::turns;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

/// How often it is tried.
const EVERY: Duration = Duration::from_secs(2);

impl Server {
    /// Begins to look whether everything is kept.
    pub(super) fn mend_what_is_kept(&self) {
        let (server, ended) = (Weak::clone(&self.myself), Arc::clone(&self.ended));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                let Some(server) = server.upgrade() else { return };
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                server.mend().await;
            }
        });
    }

    async fn mend(&self) {
        let mut ledger = self.change.lock().await;
        let files = if ledger.unrecorded { self.record_files(&mut ledger).err() } else { None };
        // What was refused since it could not be stored is not to be there at the next start.
        let unsure = ledger.store.is_unsure();
        let refused = if unsure { self.commit(&mut ledger, &self.desired()).err() } else { None };
        let store = match refused {
            Some(refusal) => Some(refusal.message),
            None => turns::blocking(|| ledger.store.mend()),
        };
        drop(ledger);
        let events = turns::blocking(|| self.trail.mend());
        let not_kept = |what: &str, why: String| {
            ApiError::new(Code::Failed, format!("{what}: {why}"))
                .help("free some space or mend the disk; it is tried again by itself")
        };
        let store =
            store.map(|why| ApiError::new(Code::Failed, why).help(super::shared::STORE_MENDS));
        let all = [
            files.map(|why| not_kept("the files of new volumes are not recorded", why.message)),
            store,
            events.map(|why| not_kept("events are not kept over a restart", why)),
        ];
        let all = all.into_iter().flatten().collect();
        *self.not_kept.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// What `status` says of it.
    pub(super) fn not_kept(&self) -> Vec<ApiError> {
        self.not_kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
