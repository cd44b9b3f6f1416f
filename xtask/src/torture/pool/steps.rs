//! What is done to the pools.

use std::time::{Duration, Instant};

use super::client::{Client, Ended, Kind};
use super::media::Medium;
use super::model::{
    Change, Lu, PATIENCE, PVS, Pool, Pv, SIDES, Snapshot, TIERS, World, has_pv, is_there,
};
use anyhow::{Result, anyhow};

/// Most LUs at a time.
const LUS_MAX: usize = 7;
const SNAPSHOTS_MAX: usize = 5;
/// LUs grow up to that.
const MIB_MAX: u64 = 640;
/// A pool that is not whole by then loses nothing.
const AS_LONG: Duration = Duration::from_secs(10);

/// What is done, and how often of all times.
type Step = fn(&mut World) -> Result<Option<String>>;
const STEPS: &[(usize, Step)] = &[
    (8, World::create),
    (5, World::remove),
    (24, World::attach),
    (9, World::snapshot),
    (5, World::remove_snapshot),
    (9, World::roll_back),
    (6, World::clone_lu),
    (3, World::detach),
    (5, World::grow),
    (8, World::go_to_tier),
    (11, World::lose_or_return),
    (3, World::hang),
    (4, World::slow),
    (6, World::flip),
    (3, World::add),
    (4, World::remove_pv),
    (3, World::replace_pv),
    (3, World::fill),
    (10, World::kill_the_data_plane),
    (5, World::kill_the_control_plane),
    (2, World::kill_both),
];

impl World {
    /// Steps until the time is over, then all that was begun to its end, and all that is known is compared.
    pub(super) fn run(&mut self, until: Instant) -> Result<()> {
        // One of each kind, with something in it.
        for (pool, thick) in [(0, false), (0, true), (1, false), (2, false)] {
            let number =
                self.create_in(pool, thick)?.ok_or_else(|| anyhow!("an empty pool is full"))?;
            let seed = self.seed();
            self.begin(number, Kind::Write { seed })?;
            self.done(format!(
                "create {number} in {}, thick: {thick}, and write it",
                self.pools[pool].name
            ));
        }
        while Instant::now() < until {
            if let Some(what) = self.dice.weighted(STEPS)(self)? {
                self.done(what);
                self.check()?;
            }
        }
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        self.return_all()?;
        self.wait_for_clients()?;
        // What snapshots hold is compared in clones of them.
        let known: Vec<u32> = self
            .snapshots
            .iter()
            .filter(|(_, it)| it.holds.is_some())
            .map(|(number, _)| *number)
            .collect();
        for number in known {
            self.clone_of(number)?;
        }
        let known: Vec<(u32, u64)> =
            self.lus.iter().filter_map(|(number, lu)| Some((*number, lu.holds?))).collect();
        for (number, seed) in known {
            self.begin(number, Kind::Compare { seed })?;
        }
        self.wait_for_clients()?;
        for number in self.lus.keys().copied().collect::<Vec<_>>() {
            self.look_behind(number)?;
        }
        self.wait_for_clients()?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.check()?;
            let views = self.shown();
            let mut all = self.pools.iter().zip(&views);
            let rests = |pool: &Pool, view| pool.is_whole(view) && Pool::is_gathered(view);
            let Some((pool, view)) = all.find(|(pool, view)| !rests(pool, view)) else {
                return Ok(());
            };
            if Instant::now() > deadline {
                return Err(anyhow!("pool {} does not come to rest: {view}", pool.name));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn wait_for_clients(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.lus.values().any(|lu| lu.client.is_some()) {
            self.check()?;
            if Instant::now() > deadline {
                return Err(anyhow!("a client does not come to its end"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    // Pools and their PVs ---------------------------------------------------------------------------------------------

    pub(super) fn make_pool(
        &mut self,
        name: &'static str,
        mirrored: bool,
        sums: bool,
    ) -> Result<()> {
        let mut pvs = Vec::new();
        for side in 0..SIDES {
            // One of each kind; only mirrored pools can do without one.
            for at in 0..PVS {
                let number = self.next();
                let kind = if mirrored { at } else { at + 1 };
                let medium = Medium::make(&self.server, self.can, number, kind)?;
                pvs.push(Pv::new(medium, side));
            }
        }
        let list = |side: usize, tier: &str| {
            let own = pvs.iter().filter(|pv| pv.side == side);
            own.map(|pv| format!("{tier}{}", pv.path())).collect::<Vec<_>>().join(",")
        };
        let tier = if mirrored { String::new() } else { format!("{}:", TIERS[1]) };
        let (first, second) = (list(0, ""), list(1, &tier));
        let both = format!("{first},{second}");
        let mut words = vec!["pool", "create", name];
        match mirrored {
            true => words.extend(["--pvs", &first, "--mirror", &second]),
            false => words.extend(["--pvs", &both]),
        }
        self.must(&words, |server| is_there(server, "pool", name))?;
        self.pools.push(Pool { name, mirrored, sums, pvs, extended: None });
        self.check()
    }

    /// A pool by chance, of which nothing is away or on its way, and a failure group or tier of it.
    fn whole_pool(&mut self) -> Option<(usize, usize)> {
        let at = self.dice.below(self.pools.len());
        let side = self.dice.below(SIDES);
        let views = self.shown();
        self.pools[at].is_whole(&views[at]).then_some((at, side))
    }

    fn add(&mut self) -> Result<Option<String>> {
        let Some((at, side)) = self.whole_pool() else { return Ok(None) };
        if self.pools[at].pvs.iter().filter(|pv| pv.side == side).count() > PVS {
            return Ok(None);
        }
        self.add_pv(at, side)?;
        let pool = &self.pools[at];
        Ok(Some(format!("add a PV to {} of {}", pool.side(side), pool.name)))
    }

    /// One of a failure group or tier that has others.
    fn one_of(&mut self, at: usize, side: usize, least: usize) -> Option<usize> {
        let pvs = self.pools[at].pvs.iter().enumerate();
        let own: Vec<usize> =
            pvs.filter(|(_, pv)| pv.side == side).map(|(index, _)| index).collect();
        if own.len() < least { None } else { Some(own[self.dice.below(own.len())]) }
    }

    fn remove_pv(&mut self) -> Result<Option<String>> {
        let Some((at, side)) = self.whole_pool() else { return Ok(None) };
        let Some(index) = self.one_of(at, side, PVS) else { return Ok(None) };
        let (name, path) = (self.pools[at].name, self.pools[at].pvs[index].path());
        let gone = |server: &_| has_pv(server, name, &path).map(|there| !there);
        let change = self.change(&["pv", "remove", name, &path], gone)?;
        if change == Change::Done {
            self.leaves(at, &path);
            self.tally.pvs[1] += 1;
        }
        Ok(Some(format!("remove {path} from {name}: {change:?}")))
    }

    fn leaves(&mut self, at: usize, path: &str) {
        let mut pvs = self.pools[at].pvs.iter_mut();
        if let Some(pv) = pvs.find(|pv| pv.path() == path) {
            pv.leaving = true;
        }
    }

    fn replace_pv(&mut self) -> Result<Option<String>> {
        let Some((at, side)) = self.whole_pool() else { return Ok(None) };
        let Some(index) = self.one_of(at, side, 1) else { return Ok(None) };
        let (number, kind) = (self.next(), self.dice.below(3));
        let medium = Medium::make(&self.server, self.can, number, kind)?;
        let new = medium.path().display().to_string();
        let (name, path) = (self.pools[at].name, self.pools[at].pvs[index].path());
        let change = self
            .change(&["pv", "replace", name, &path, &new], |server| has_pv(server, name, &new))?;
        if change == Change::Done {
            self.leaves(at, &path);
            self.pools[at].pvs.push(Pv::new(medium, side));
            self.tally.pvs[2] += 1;
        }
        Ok(Some(format!("replace {path} of {name} by {new}: {change:?}")))
    }

    /// A PV of a mirrored pool goes, under its clients if it can, or one that is away returns.
    fn lose_or_return(&mut self) -> Result<Option<String>> {
        let at = 1 + self.dice.below(self.pools.len() - 1);
        if self.pools.iter().flat_map(|pool| &pool.pvs).any(|pv| pv.away) {
            self.return_all()?;
            return Ok(Some("return what was away".to_owned()));
        }
        // While it is made whole again, and while something moves, it needs all of its PVs.
        let deadline = Instant::now() + AS_LONG;
        loop {
            self.check()?;
            let view = &self.shown()[at];
            if self.pools[at].is_whole(view) && !view["space"]["balance"].is_object() {
                break;
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let index = self.dice.below(self.pools[at].pvs.len());
        let pv = &mut self.pools[at].pvs[index];
        if let Medium::Loop(..) = pv.medium {
            return Ok(None);
        }
        pv.medium.away(true)?;
        pv.away = true;
        self.tally.lost += 1;
        let (path, hot) = (pv.path(), pv.medium.fails());
        // What is open cannot go: it is not there for the next who opens it.
        if !hot {
            self.kill_data();
        }
        Ok(Some(format!(
            "{path} of {} goes, {}",
            self.pools[at].name,
            if hot { "while it is used" } else { "while nothing runs" }
        )))
    }

    /// A PV by chance that does as it is told, and its pool.
    fn some_disk(&mut self, so: impl Fn(&Pool, &Pv) -> bool) -> Option<(usize, usize)> {
        let pools = self.pools.iter().enumerate();
        let all = pools.flat_map(|(at, pool)| {
            let own = pool.pvs.iter().enumerate();
            let fit = own.filter(|(_, pv)| pv.medium.fails() && !pv.away && so(pool, pv));
            fit.map(move |(index, _)| (at, index)).collect::<Vec<_>>()
        });
        self.dice.one_of(all)
    }

    /// A PV hangs and goes on: before a mirrored pool does without it, or after that.
    fn hang(&mut self) -> Result<Option<String>> {
        let Some((at, index)) = self.some_disk(|_, _| true) else { return Ok(None) };
        let long = self.dice.below(3) == 0;
        let least = if long { 10_500 } else { 100 };
        let time = Duration::from_millis(least + self.dice.below(3000) as u64);
        let pv = &self.pools[at].pvs[index];
        pv.medium.hang(time);
        self.tally.hung += 1;
        let (path, name) = (pv.path(), self.pools[at].name);
        Ok(Some(format!("{path} of {name} hangs for {} ms", time.as_millis())))
    }

    /// A PV becomes slow, or is as it was.
    fn slow(&mut self) -> Result<Option<String>> {
        let Some((at, index)) = self.some_disk(|_, _| true) else { return Ok(None) };
        let name = self.pools[at].name;
        let pv = &mut self.pools[at].pvs[index];
        pv.slow = !pv.slow;
        pv.medium.slow(pv.slow);
        self.tally.slow += u64::from(pv.slow);
        Ok(Some(format!("{} of {name} is slow: {}", pv.path(), pv.slow)))
    }

    /// On one PV of the pool whose LUs have checksums bits turn, which no client may see and a scrub mends. That holds for what is quiet: all is, when the pool was closed and nobody has written since.
    fn flip(&mut self) -> Result<Option<String>> {
        let Some((at, index)) = self.some_disk(|pool, pv| pool.sums && !pv.leaving) else {
            return Ok(None);
        };
        let name = self.pools[at].name;
        let known = self.idle(|_, _, lu| lu.pool == at && lu.holds.is_some());
        let busy = self.lus.values().any(|lu| lu.pool == at && lu.client.is_some());
        let (Some(number), false) = (known, busy) else { return Ok(None) };
        let plane = self.server.status().unwrap_or_default()["dataplanes"][0]["name"].clone();
        let plane = plane.as_str().unwrap_or_default().to_owned();
        self.change(&["dataplane", "restart", &plane, "--force"], |_| None)?;
        self.check()?;
        let view = &self.shown()[at];
        let space = &view["space"];
        let moves = space["balance"].is_object() || space["resync"].is_object();
        if space["after_crash_bytes"] != 0 || moves || !self.pools[at].is_whole(view) {
            return Ok(Some(format!("restart {plane}: {name} is not quiet")));
        }
        let path = self.pools[at].pvs[index].path();
        let flipped = self.pools[at].pvs[index].medium.flip(&mut self.dice, 20);
        self.tally.flipped += flipped;
        // Clients find it, or the scrub does.
        let read = self.dice.below(2) == 0;
        if let Some(seed) = self.lus.get(&number).and_then(|lu| lu.holds).filter(|_| read) {
            self.begin(number, Kind::Compare { seed })?;
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.server.ask(&["pool", "scrub", name])?.status.success() {
            self.check()?;
            if Instant::now() > deadline {
                return Err(anyhow!("{name} is not scrubbed"));
            }
        }
        let view = &self.shown()[at];
        let found = &view["space"]["checks"];
        self.tally.mended += found["repaired"].as_u64().unwrap_or_default();
        let wrong = ["lost", "differs"].into_iter().find(|what| found[what].as_u64() > Some(0));
        if let Some(what) = wrong {
            return Err(anyhow!("{name}: {what}, where bits had turned on {path}: {view}"));
        }
        Ok(Some(format!("{flipped} bits turn on {path} of {name}; compared: {read}")))
    }

    fn return_all(&mut self) -> Result<()> {
        for pv in self.pools.iter_mut().flat_map(|pool| &mut pool.pvs).filter(|pv| pv.away) {
            pv.medium.away(false)?;
            pv.away = false;
        }
        Ok(())
    }

    /// An LU takes all the space that there is and wants more. Its writes wait, and go on when a PV comes.
    fn fill(&mut self) -> Result<Option<String>> {
        let at = self.dice.below(self.pools.len());
        let views = self.shown();
        // Of the tier in which LUs are made.
        let tier = self.pools[at].tier(&views[at], 0);
        let Some(free) = tier["free_bytes"].as_u64() else { return Ok(None) };
        if self.lus.len() > LUS_MAX {
            return Ok(None);
        }
        let (number, name) = (self.next(), self.pools[at].name);
        // Two chunks more than there are; a PV that comes has room for them.
        let size_mib = (free >> 20) / 64 * 64 + 128;
        self.make_lu(number, at, size_mib, &[])?;
        let seed = self.seed();
        // Enough that none of its chunks is left out, as good as always.
        let blocks = (size_mib / 64) as usize * 12;
        self.begin(number, Kind::Flood { seed, blocks })?;
        let full = self.tally.full;
        let killed = self.dice.below(2) == 0;
        if killed {
            self.dice.pause(2000);
            self.kill_data();
        }
        let deadline = Instant::now() + PATIENCE;
        while self.lus.get(&number).is_some_and(|lu| lu.client.is_some()) {
            self.check()?;
            if Instant::now() > deadline {
                return Err(anyhow!("{name} was full, and {number} does not come to its end"));
            }
        }
        let times = self.tally.full - full;
        self.remove_lu(number)?;
        Ok(Some(format!("fill {name} with {number} of {size_mib} MiB: {times} times extended")))
    }

    // LUs -------------------------------------------------------------------------------------------------------------

    fn create(&mut self) -> Result<Option<String>> {
        if self.lus.len() >= LUS_MAX {
            return Ok(None);
        }
        let (pool, thick) = (self.dice.below(self.pools.len()), self.dice.below(3) == 0);
        let made = self.create_in(pool, thick)?;
        let what = made.map_or_else(|| "refused".to_owned(), |number| number.to_string());
        Ok(Some(format!("create in {}, thick: {thick}: {what}", self.pools[pool].name)))
    }

    fn create_in(&mut self, pool: usize, thick: bool) -> Result<Option<u32>> {
        let number = self.next();
        let size_mib = 192 + 64 * self.dice.below(2) as u64;
        let made = self.make_lu(number, pool, size_mib, if thick { &["--thick"] } else { &[] })?;
        Ok(made.then_some(number))
    }

    fn make_lu(&mut self, number: u32, pool: usize, size_mib: u64, more: &[&str]) -> Result<bool> {
        let (volume, size) = (format!("v{number}"), format!("{size_mib}MiB"));
        let words = ["lu", "create", &volume, "--pool", self.pools[pool].name, "--size", &size];
        let sums: &[&str] = if self.pools[pool].sums { &["--checksums"] } else { &[] };
        let words = [&words[..], more, sums].concat();
        if self.change(&words, |server| is_there(server, "volume", &volume))? == Change::Refused {
            return Ok(false);
        }
        self.adapter(number)?;
        let (holds, fresh, clone, tier, client) = (None, true, false, 0, None);
        let lu = Lu { pool, size_mib, first_mib: size_mib, holds, fresh, clone, tier, client };
        self.lus.insert(number, lu);
        self.tally.lus[0] += 1;
        Ok(true)
    }

    fn adapter(&mut self, number: u32) -> Result<()> {
        let (volume, adapter) = (format!("v{number}"), format!("a{number}"));
        let words = ["adapter", "create", &adapter, "--volume", &volume, "--queues", "2"];
        self.must(&words, |server| is_there(server, "adapter", &adapter))
    }

    /// By chance one without a client, and with no snapshot if that is wanted.
    fn idle(&mut self, so: impl Fn(&World, u32, &Lu) -> bool) -> Option<u32> {
        let fit = |(number, lu): &(&u32, &Lu)| lu.client.is_none() && so(self, **number, lu);
        let numbers: Vec<u32> = self.lus.iter().filter(fit).map(|(number, _)| *number).collect();
        self.dice.one_of(numbers)
    }

    fn has_snapshot(&self, number: u32) -> bool {
        self.snapshots.values().any(|it| it.lu == number)
    }

    fn remove(&mut self) -> Result<Option<String>> {
        let Some(number) = self.idle(|world, number, _| !world.has_snapshot(number)) else {
            return Ok(None);
        };
        self.remove_lu(number)?;
        Ok(Some(format!("remove {number}")))
    }

    fn remove_lu(&mut self, number: u32) -> Result<()> {
        let (volume, adapter) = (format!("v{number}"), format!("a{number}"));
        let gone = |server: &_, noun, name: &str| is_there(server, noun, name).map(|there| !there);
        self.must(&["adapter", "remove", &adapter], |server| gone(server, "adapter", &adapter))?;
        self.must(&["lu", "remove", &volume], |server| gone(server, "volume", &volume))?;
        self.lus.remove(&number);
        self.tally.lus[1] += 1;
        Ok(())
    }

    fn attach(&mut self) -> Result<Option<String>> {
        let Some(number) = self.idle(|_, _, _| true) else { return Ok(None) };
        let (what, seed) = (self.dice.below(4), self.seed());
        let Some(lu) = self.lus.get(&number) else { return Ok(None) };
        let kind = match (what, lu.holds) {
            (0, _) => Kind::Write { seed },
            (1 | 2, Some(seed)) => Kind::Compare { seed },
            _ => Kind::Random { seed, seconds: 2 + self.dice.below(8), fresh: lu.fresh },
        };
        self.begin(number, kind)?;
        Ok(Some(format!("client of {number}: {kind:?}")))
    }

    /// A client begins. It may find nobody at first.
    fn begin(&mut self, number: u32, kind: Kind) -> Result<()> {
        let name = format!("a{number}");
        let told = match kind {
            // The same size of blocks, and nothing that anybody wrote.
            Kind::Compare { seed } if self.sabotage => Kind::Compare { seed: seed + 3 },
            kind => kind,
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut client = Client::start(&self.server, &name, told)?;
            let begun = loop {
                match client.ended()? {
                    Ended::Not if self.server.is_running(&name) => break true,
                    Ended::Not => std::thread::sleep(Duration::from_millis(20)),
                    Ended::BeforeItBegan(_) => break false,
                    Ended::Well(_) => break true,
                }
            };
            if begun {
                let Some(lu) = self.lus.get_mut(&number) else { return Ok(()) };
                match kind {
                    Kind::Write { .. } => lu.holds = None,
                    Kind::Random { .. } => lu.fresh = false,
                    Kind::Flood { .. } | Kind::Compare { .. } | Kind::Zeros { .. } => {}
                }
                lu.client = Some(client);
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(anyhow!("{name} takes no client"));
            }
        }
    }

    // Snapshots and clones --------------------------------------------------------------------------------------------

    fn snapshot(&mut self) -> Result<Option<String>> {
        if self.snapshots.len() >= SNAPSHOTS_MAX {
            return Ok(None);
        }
        // There are none of what has checksums.
        let lus = self.lus.iter().filter(|(_, lu)| !self.pools[lu.pool].sums);
        let lus: Vec<u32> = lus.map(|(number, _)| *number).collect();
        let Some(lu) = self.dice.one_of(lus) else { return Ok(None) };
        let number = self.next();
        let (name, volume) = (format!("s{number}"), format!("v{lu}"));
        // What a client that is at it has written by then is not known.
        self.collect()?;
        let Some(Lu { holds, fresh, client, size_mib, first_mib, .. }) = self.lus.get(&lu) else {
            return Ok(None);
        };
        let writes = client.as_ref().is_some_and(|it| matches!(it.kind, Kind::Write { .. }));
        let (holds, sizes_mib) = (holds.filter(|_| !writes), [*size_mib, *first_mib]);
        let snapshot = Snapshot { lu, sizes_mib, holds, fresh: *fresh };
        let change = self
            .change(&["snapshot", "create", &name, "--volumes", &volume], |server| {
                is_there(server, "snapshot", &name)
            })?;
        if change == Change::Done {
            self.snapshots.insert(number, snapshot);
            self.tally.snapshots[0] += 1;
        }
        Ok(Some(format!("snapshot {number} of {lu}: {change:?}")))
    }

    fn some_snapshot(&mut self) -> Option<u32> {
        self.dice.one_of(self.snapshots.keys().copied())
    }

    fn remove_snapshot(&mut self) -> Result<Option<String>> {
        let Some(number) = self.some_snapshot() else { return Ok(None) };
        let name = format!("s{number}");
        let gone = |server: &_| is_there(server, "snapshot", &name).map(|there| !there);
        self.must(&["snapshot", "remove", &name], gone)?;
        self.snapshots.remove(&number);
        self.tally.snapshots[1] += 1;
        Ok(Some(format!("remove snapshot {number}")))
    }

    fn roll_back(&mut self) -> Result<Option<String>> {
        let Some(number) = self.some_snapshot() else { return Ok(None) };
        let Some(Snapshot { lu, holds, fresh, .. }) = self.snapshots.get(&number) else {
            return Ok(None);
        };
        let (lu, holds, fresh) = (*lu, *holds, *fresh);
        if self.lus.get(&lu).is_none_or(|lu| lu.client.is_some()) {
            return Ok(None);
        }
        let change = self.change(&["snapshot", "rollback", &format!("s{number}")], |_| None)?;
        if let Some(lu) = self.lus.get_mut(&lu).filter(|_| change == Change::Done) {
            (lu.holds, lu.fresh) = (holds, fresh);
            self.tally.rollbacks += 1;
        }
        Ok(Some(format!("roll {lu} back to {number}: {change:?}")))
    }

    fn clone_lu(&mut self) -> Result<Option<String>> {
        let Some(number) = self.some_snapshot() else { return Ok(None) };
        if self.lus.len() >= LUS_MAX {
            return Ok(None);
        }
        let made = self.clone_of(number)?;
        Ok(Some(format!("clone {number}: {made:?}")))
    }

    fn clone_of(&mut self, snapshot: u32) -> Result<Option<u32>> {
        let number = self.next();
        let (volume, name) = (format!("v{number}"), format!("s{snapshot}"));
        let change = self.change(&["lu", "clone", &volume, &name], |server| {
            is_there(server, "volume", &volume)
        })?;
        let Some(Snapshot { lu, sizes_mib: [size_mib, first_mib], holds, fresh }) =
            self.snapshots.get(&snapshot).filter(|_| change == Change::Done)
        else {
            return Ok(None);
        };
        let Some(Lu { pool, tier, .. }) = self.lus.get(lu) else { return Ok(None) };
        let lu = Lu {
            pool: *pool,
            tier: *tier,
            size_mib: *size_mib,
            first_mib: *first_mib,
            holds: *holds,
            fresh: *fresh,
            clone: true,
            client: None,
        };
        self.adapter(number)?;
        self.lus.insert(number, lu);
        self.tally.clones += 1;
        Ok(Some(number))
    }

    fn detach(&mut self) -> Result<Option<String>> {
        let numbers: Vec<u32> = self
            .lus
            .iter()
            .filter(|(number, lu)| lu.clone && !self.has_snapshot(**number))
            .map(|(number, _)| *number)
            .collect();
        let Some(number) = self.dice.one_of(numbers) else { return Ok(None) };
        let change = self.change(&["lu", "detach", &format!("v{number}")], |_| None)?;
        if change == Change::Done {
            self.tally.detached += 1;
        }
        Ok(Some(format!("detach {number}: {change:?}")))
    }

    /// By a part of a chunk more or less, whoever uses it and whatever it shares. What it has more is zeros.
    fn grow(&mut self) -> Result<Option<String>> {
        let numbers = self.lus.iter().filter(|(_, lu)| lu.size_mib < MIB_MAX);
        let numbers: Vec<u32> = numbers.map(|(number, _)| *number).collect();
        let Some(number) = self.dice.one_of(numbers) else { return Ok(None) };
        let more = [32, 64, 96][self.dice.below(3)];
        let Some(lu) = self.lus.get(&number) else { return Ok(None) };
        let shares = lu.clone || self.has_snapshot(number);
        let (size_mib, idle) = (lu.size_mib + more, lu.client.is_none());
        let words = ["lu", "resize", &format!("v{number}"), &format!("{size_mib}MiB")];
        let change = self.change(&words, |_| None)?;
        if let Some(lu) = self.lus.get_mut(&number).filter(|_| change == Change::Done) {
            lu.size_mib = size_mib;
            self.tally.grown[usize::from(shares)] += 1;
            if idle {
                self.look_behind(number)?;
            }
        }
        Ok(Some(format!("grow {number} to {size_mib} MiB, shares: {shares}: {change:?}")))
    }

    /// To the other tier of the pool that has two, with its snapshots; it stays where it shares with a clone.
    fn go_to_tier(&mut self) -> Result<Option<String>> {
        let numbers = self.lus.iter().filter(|(_, lu)| !self.pools[lu.pool].mirrored);
        let numbers: Vec<u32> = numbers.map(|(number, _)| *number).collect();
        let Some(number) = self.dice.one_of(numbers) else { return Ok(None) };
        let Some(Lu { tier, .. }) = self.lus.get(&number) else { return Ok(None) };
        let (tier, shares) = (1 - tier, self.has_snapshot(number));
        let words = ["lu", "move", &format!("v{number}"), TIERS[tier]];
        let change = self.change(&words, |_| None)?;
        if let Some(lu) = self.lus.get_mut(&number).filter(|_| change == Change::Done) {
            lu.tier = tier;
            self.tally.moved[usize::from(shares)] += 1;
        }
        let tier = TIERS[tier];
        Ok(Some(format!("{number} goes to {tier}, with snapshots: {shares}: {change:?}")))
    }

    /// Compares what an LU has more than at first.
    fn look_behind(&mut self, number: u32) -> Result<()> {
        let Some(Lu { size_mib, first_mib, .. }) = self.lus.get(&number) else { return Ok(()) };
        let (offset_mib, mib) = (*first_mib, size_mib - first_mib);
        if mib > 0 { self.begin(number, Kind::Zeros { offset_mib, mib }) } else { Ok(()) }
    }

    // Processes -------------------------------------------------------------------------------------------------------

    fn kill_the_data_plane(&mut self) -> Result<Option<String>> {
        self.dice.pause(500);
        Ok(self.kill_data().then(|| "kill the data plane".to_owned()))
    }

    fn kill_the_control_plane(&mut self) -> Result<Option<String>> {
        self.kill_control()?;
        Ok(Some("kill the control plane".to_owned()))
    }

    fn kill_both(&mut self) -> Result<Option<String>> {
        self.kill_data();
        self.kill_control()?;
        Ok(Some("kill both".to_owned()))
    }
}
