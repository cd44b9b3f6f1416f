//! What became of storage pools.

use super::book::Book;
use super::filling::Filling;
use super::{Event, Kind, Trail};
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};

impl Trail {
    /// Notes what became of a storage pool, or of a PV of it.
    pub fn of_pool(&self, kind: Kind, pool: &str, pv: Option<String>, message: String) {
        let (subject, of) = (Some(pool.to_owned()), pv.into_iter().collect());
        self.add(Event { subject, of, ..Event::new(kind, message) });
    }

    /// Since when PVs of a storage pool are away, by path, as far as that was noted.
    pub fn lost_pvs(&self, pool: &str) -> BTreeMap<String, u64> {
        self.lasting(pool, Kind::PvLost, Kind::PvReturned)
    }

    /// What is warned of a storage pool, by word, as far as that was noted.
    pub fn alerts(&self, pool: &str) -> Vec<String> {
        self.lasting(pool, Kind::PoolAlert, Kind::PoolAlertOver).into_keys().collect()
    }

    /// Of what of a pool something has begun that is not over, and when.
    fn lasting(&self, pool: &str, begun: Kind, over: Kind) -> BTreeMap<String, u64> {
        let mut lasting = BTreeMap::new();
        let kept = self.kept();
        for event in kept.all().filter(|event| event.subject.as_deref() == Some(pool)) {
            let Some(what) = event.of.first() else { continue };
            if event.kind == begun {
                lasting.insert(what.clone(), event.at_ms);
            } else if event.kind == over {
                lasting.remove(what);
            }
        }
        lasting
    }

    /// What of their tiers is taken of all pools there are; nothing of those of which that is not known.
    pub fn filled(&self, at_ms: u64, pools: BTreeMap<String, Option<BTreeMap<String, u64>>>) {
        let mut filling = self.filling();
        let all = Arc::make_mut(&mut filling.all);
        let mut news = all.retain(|pool| pools.contains_key(pool));
        for (pool, taken) in pools {
            news |= taken.is_some_and(|taken| all.sample(&pool, at_ms, taken));
        }
        if news {
            filling.keep();
        }
    }

    /// Seconds until a tier of a pool is full, at the pace of the last day or week.
    pub fn full_in_s(&self, of: (&str, &str), at_ms: u64, space: (u64, u64)) -> Option<u64> {
        self.filling().all.left_s(of, at_ms, space)
    }

    pub(super) fn filling(&self) -> MutexGuard<'_, Book<Filling>> {
        self.filling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
