//! What there is to tell of a pool.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use memory::clock;
use pool::format::MemberState;
use pool::{Balance, Fault};

use super::Work;
use crate::table::{Progress, PvView, TierView};
use spec::Traffic;

/// While chunks change all the time the account is made so that it takes one part in so many of the time, and at least so often.
const SHARE: u32 = 20;
const ACCOUNT_MAX: Duration = Duration::from_millis(500);

/// Blocks of a chunk.
const BLOCKS: u64 = pool::format::BLOCKS as u64;

/// What takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Of {
    Pv(u16),
    Balance,
    Resync,
    Lu(u32),
    Scrub,
}

impl Work {
    /// Tells how it stands, for whoever asks.
    pub(super) fn tell(&mut self) {
        let (paused, slowed) = (self.core.paused() as u64, self.core.slowed() as u64);
        let was = self.shared.full.load(Relaxed);
        let began = clock::instant();
        let changed = self.changed && self.account.is_none_or(|due| due <= began);
        if !self.stale && !changed && (paused > 0) == was && self.paused == (paused, slowed) {
            return;
        }
        (self.stale, self.changed, self.paused) = (false, false, (paused, slowed));
        let removals: Vec<pool::Removal> = self.core.removals().collect();
        let due: Vec<u16> = self.removals.due().collect();
        self.removals
            .stuck
            .retain(|pv, _| due.contains(pv) || removals.iter().any(|removal| removal.pv == *pv));
        let mut leaving: BTreeMap<u16, Progress> = BTreeMap::new();
        for pool::Removal { pv, planned, moved, failed } in removals {
            let parts = self.core.removal_parts(pv);
            let now = in_blocks(planned, (moved, parts), failed);
            leaving.insert(pv, self.paced(Of::Pv(pv), now));
            // Of one that is away nothing is wanted any more.
            if self.core.is_away(pv) {
                self.mirror.lets_go_of(pv);
            }
        }
        // Nothing of what is on them has moved.
        let waits = self.core.pvs().filter(|space| due.contains(&space.pv));
        leaving.extend(waits.map(|space| (space.pv, in_blocks(space.used, (0, 0), 0))));
        let Balance { planned, over, failed } = self.core.balance();
        let (moved, parts) = (over - failed, self.core.balance_parts());
        let balance = in_blocks(planned, (moved, parts), failed);
        let balance = (over < planned || failed > 0).then(|| self.paced(Of::Balance, balance));
        let pool::Resync { planned, over, failed } = self.core.resync();
        let lacks = over < planned || failed > 0;
        let pool::ResyncBlocks { planned, copied, failed } = self.core.resync_blocks();
        let resync = Progress { planned, moved: copied, failed, left_s: None };
        let resync = lacks.then(|| self.paced(Of::Resync, resync));
        let partings = self.all_partings();
        self.left.retain(|of, _| match of {
            Of::Pv(pv) => leaving.contains_key(pv),
            Of::Balance => balance.is_some(),
            Of::Resync => resync.is_some(),
            Of::Lu(lu) => partings.contains_key(lu),
            Of::Scrub => self.core.scrubbing().is_some(),
        });
        let mut view = self.shared.view();
        let pv = |mut space: pool::PvSpace| {
            let path = self.shared.path_of(space.pv)?;
            if self.core.is_away(space.pv) && space.state != MemberState::Dismissed {
                space.state = MemberState::Stale;
            }
            let (leaving, waits) = (leaving.get(&space.pv).copied(), due.contains(&space.pv));
            Some(PvView { path, leaving, waits, space, traffic: Traffic::default() })
        };
        view.pvs = self.core.pvs().filter_map(pv).collect();
        let lacks = view.pvs.iter().any(PvView::may_return);
        view.pvs.extend(self.going());
        view.balance = balance;
        view.resync = resync;
        view.detaching = partings;
        view.checks = self.checks.view();
        view.active = (self.core.active_chunks() + self.core.ending_chunks()) as u64;
        view.lus = self.core.lu_spaces().collect();
        let free = |tier: pool::TierSpace| match self.shared.mirrors {
            true => self.core.room(tier.tier),
            false => tier.free.saturating_sub(tier.set_aside),
        };
        let tier = |tier: pool::TierSpace| TierView {
            tier: tier.tier,
            free: free(tier),
            paused: tier.waiting as u64,
            slowed: tier.slowed as u64,
            slowed_at: self.full.slowed(tier.tier),
        };
        view.tiers = self.core.tiers().into_iter().map(tier).collect();
        view.free = view.tiers.iter().map(|tier| tier.free).sum();
        view.pauses += paused.saturating_sub(view.paused);
        view.paused = paused;
        view.paused_lus.clear();
        for lu in self.core.paused_requests().into_values() {
            *view.paused_lus.entry(lu).or_default() += 1;
        }
        view.trouble = self.core.stopped().map(|why| match why {
            Fault::Fenced => "another server has taken it over, and what clients ask for is held until its data plane is restarted: see that no other server has it, and then restart that (`trunkline dataplane restart`)",
            _ => "its own blocks could not be written, and nothing is written any more until its data plane is restarted (`trunkline dataplane restart`): look for the PV that failed",
        }).map(str::to_owned);
        let stuck = self.removals.stuck.iter().next().and_then(|(pv, fault)| {
            let path = self.shared.pv(*pv)?.path;
            Some(format!(
                "PV {} cannot be removed so far: {fault}; it is tried again by itself",
                path.display()
            ))
        });
        let short = self.short.as_ref().map(|error| {
            format!("writes above snapshots fail: there is no memory to keep them over a restart: {error}; enlarge the file system of its data plane's run directory")
        });
        view.trouble = view.trouble.or(short).or(stuck);
        self.shared.set_view(view);
        self.shared.set_away(lacks);
        let now = clock::instant();
        self.account = Some(now + (now.saturating_duration_since(began) * SHARE).min(ACCOUNT_MAX));
    }

    /// How what an LU has lies on the PVs.
    pub(crate) fn layout(&self, lu: u32) -> Option<pool::Layout> {
        self.core.layout(lu)
    }

    /// PVs that are out of the pool and not erased so far: who hears that one has gone may give it away. One that was away is not waited for.
    fn going(&self) -> impl Iterator<Item = PvView> {
        let members = (0..).zip(&self.core.superblock().members).zip(&self.lanes);
        let going = members
            .filter(|((_, member), lane)| member.state == MemberState::Gone && lane.is_some())
            .filter(|((_, member), _)| !member.left_while_away());
        going.filter_map(|((pv, member), _)| {
            let pool::format::Member { pv: uuid, tier, group, state, chunks, .. } = *member;
            let space =
                pool::PvSpace { pv, uuid, tier, group, state, chunks, own: 0, used: 0, free: 0 };
            let moved = in_blocks(1, (1, 0), 0);
            let path = self.shared.pv(pv)?.path;
            let (leaving, traffic) = (Some(moved), Traffic::default());
            Some(PvView { path, leaving, waits: false, space, traffic })
        })
    }

    /// With the time that it takes, if it goes on as it went lately.
    pub(super) fn paced(&mut self, of: Of, now: Progress) -> Progress {
        let moved = now.moved.min(now.planned);
        let left = self.left.entry(of).or_default();
        let left_s = left.after(self.pacing.now(), moved, now.planned);
        Progress { moved, left_s, ..now }
    }
}

/// So many chunks that are planned, moved with 1,024ths of others, and failed.
pub(super) fn in_blocks(planned: u32, (moved, parts): (u32, u32), failed: u32) -> Progress {
    let [planned, moved, failed] = [planned, moved, failed].map(|all| u64::from(all) * BLOCKS);
    Progress { planned, moved: moved + u64::from(parts), failed, left_s: None }
}
