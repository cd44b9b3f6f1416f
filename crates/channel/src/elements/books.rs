//! Who has lent what to whom. All of it under the lock of the port; reached when a queue lacks an element, has too many, or is pressed.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use protocol::now_ms;
use protocol::stats::{AdapterStats, PortStats, SHORT_MS, SHORT_STILL};

use super::{Local, Share, Shortage, Wake};
use contest::Contest;

mod contest;

/// A queue: its adapter's account, and its number there.
pub(super) type Member = (usize, usize);

/// So many queues of a port are looked at as often as one.
const MANY: u64 = 1024;

/// A turn of an adapter whose weight is 1, in virtual time: others' are shorter.
const TURN: u64 = 1 << 16;

/// Of so many elements of a port, one is kept back for adapters that have less than their part.
const KEPT_BACK: u32 = 32;

fn running_queues(accounts: &mut [Option<Account>]) -> impl Iterator<Item = &mut Borrower> {
    let borrowers = accounts.iter_mut().flatten().flat_map(|account| &mut account.borrowers);
    borrowers.filter(|borrower| borrower.wake.is_some())
}

/// What a queue has.
pub(super) struct Borrower {
    local: Arc<Local>,
    /// At hand or in use.
    lent: u32,
    /// It waits for so many.
    wanted: u32,
    /// It was woken and has not looked yet.
    told: bool,
    /// When it had an element last, as [`Books::turn`] counts.
    turn: u64,
    /// How many of its commands were active in the look at a mark that goes on.
    seen: u32,
    /// None: it does not run.
    wake: Option<Wake>,
}

impl std::fmt::Debug for Borrower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Borrower").field("lent", &self.lent).field("wanted", &self.wanted).finish()
    }
}

/// What an adapter has.
#[derive(Debug)]
struct Account {
    share: Share,
    /// All its queues together.
    lent: u32,
    /// The sum of its turns: the virtual time up to which it was served.
    pass: u64,
    /// How many of its queues wait.
    waiting: u32,
    /// One of them for the port.
    short: bool,
    mark: Option<AdapterStats>,
    borrowers: Box<[Borrower]>,
}

impl Account {
    fn weight(&self) -> u64 {
        u64::from(self.share.weight.max(1))
    }

    fn room(&self) -> u32 {
        self.share.elements.saturating_sub(self.lent)
    }

    /// The queue that waits and has least, but for one; of several the one that has gone without for longest.
    fn neediest(&self, but: Option<usize>) -> Option<usize> {
        let waits =
            |(queue, borrower): &(usize, &Borrower)| borrower.wanted > 0 && Some(*queue) != but;
        let borrowers = self.borrowers.iter().enumerate().filter(waits);
        let need = |borrower: &Borrower| (borrower.lent, borrower.turn);
        borrowers.min_by_key(|(_, borrower)| need(borrower)).map(|(queue, _)| queue)
    }
}

/// When a mark is looked at, in ticks.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// From then on before commands end.
    pub(super) due: u64,
    /// From then on by a queue with more than its part.
    pub(super) again: u64,
    /// So long after the look before.
    pause: u64,
}

impl Pace {
    /// Somebody has looked, and need not before commands end for so long.
    pub(super) fn looked(&mut self, now: u64, every: u64) {
        self.due = now.saturating_add(every);
    }

    /// A queue with more than its part has looked. While that finds nothing new it is done less and less often, from every `least` to every `most`;
    /// after a calm it begins again.
    pub(super) fn looked_beyond(&mut self, now: u64, found: bool, (least, most): (u64, u64)) {
        let calm = now.saturating_sub(self.again) > most;
        let longer = if calm { 0 } else { 2 * self.pause };
        self.pause = if found { 0 } else { longer.clamp(least, most) };
        self.again = now.saturating_add(self.pause);
    }
}

/// Of a port, for all its queues: each of them costs a look the same again.
#[derive(Debug, Default)]
struct PortWatch {
    pace: Pace,
    /// How many queues run.
    queues: u64,
    #[cfg(test)]
    looks: u64,
}

/// The books of a port.
#[derive(Debug)]
pub(super) struct Books {
    elements: u32,
    lent: u32,
    /// How many queues wait.
    waiting: u32,
    /// Counts whose turn it was among the queues of an adapter: who has none is given one when all others that have none have had theirs.
    turn: u64,
    /// The virtual time: who begins to wait is no further back.
    pass: u64,
    /// As it stood when an element was given last.
    contest: Contest,
    /// The weights of all adapters.
    weights: u64,
    accounts: Vec<Option<Account>>,
    mark: Option<PortStats>,
    watch: PortWatch,
}

impl Books {
    pub(super) fn new(elements: u32) -> Books {
        Books {
            elements,
            lent: 0,
            waiting: 0,
            turn: 0,
            pass: 0,
            contest: Contest::default(),
            weights: 0,
            accounts: Vec::new(),
            mark: None,
            watch: PortWatch::default(),
        }
    }

    fn account(&mut self, account: usize) -> &mut Account {
        self.accounts[account].as_mut().expect("an adapter has its account until it goes")
    }

    fn borrower(&mut self, (account, queue): Member) -> &mut Borrower {
        &mut self.account(account).borrowers[queue]
    }

    pub(super) fn open(&mut self, share: Share, queues: u16) -> usize {
        let borrower = || Borrower {
            local: Arc::new(Local::new()),
            lent: 0,
            wanted: 0,
            told: false,
            turn: 0,
            seen: 0,
            wake: None,
        };
        let borrowers = std::iter::repeat_with(borrower).take(usize::from(queues)).collect();
        let account =
            Account { share, lent: 0, pass: 0, waiting: 0, short: false, mark: None, borrowers };
        self.weights += account.weight();
        let free = self.accounts.iter().position(Option::is_none);
        let place = free.unwrap_or(self.accounts.len());
        if place == self.accounts.len() {
            self.accounts.push(None);
        }
        self.accounts[place] = Some(account);
        place
    }

    /// None of its queues runs.
    pub(super) fn close(&mut self, account: usize) {
        let gone = self.accounts[account].take().expect("an account is closed once");
        debug_assert_eq!((gone.lent, gone.waiting), (0, 0));
        self.weights -= gone.weight();
    }

    /// It stands for no port.
    pub(super) fn is_unbounded(&self) -> bool {
        self.elements == u32::MAX
    }

    pub(super) fn set_elements(&mut self, elements: u32) {
        // Each adapter that comes to the port says it anew.
        if self.elements == elements {
            return;
        }
        self.elements = elements;
        for account in 0..self.accounts.len() {
            self.call_in(account);
        }
        self.serve();
    }

    pub(super) fn set_share(&mut self, account: usize, share: Share) {
        let before = self.account(account).weight();
        self.account(account).share = share;
        self.weights = self.weights - before + self.account(account).weight();
        self.call_in(account);
        self.serve();
    }

    /// Takes back what an adapter has beyond what it may have: what is idle at once, the rest as commands end.
    fn call_in(&mut self, account: usize) {
        let Some(queues) = self.accounts[account].as_ref().map(|account| account.borrowers.len())
        else {
            return;
        };
        for queue in 0..queues {
            let over = self.over(account);
            self.retire((account, queue), over);
        }
        if self.over(account) > 0 {
            self.press(account);
        }
    }

    /// How many an adapter has to give back.
    fn over(&mut self, account: usize) -> u32 {
        let over = self.lent.saturating_sub(self.elements);
        let account = self.account(account);
        over.max(account.lent.saturating_sub(account.share.elements))
    }

    #[cfg(test)]
    pub(super) fn lent(&self) -> u32 {
        self.lent
    }

    #[cfg(test)]
    pub(super) fn looks_at_port(&self) -> u64 {
        self.watch.looks
    }

    pub(super) fn active(&mut self, account: usize) -> u32 {
        let borrowers = &self.account(account).borrowers;
        borrowers.iter().map(|borrower| borrower.local.active.load(Relaxed)).sum()
    }

    pub(super) fn set_mark(&mut self, account: usize, mark: AdapterStats) {
        self.account(account).mark = Some(mark);
        self.look(account, 0);
    }

    pub(super) fn set_port_mark(&mut self, mark: PortStats) {
        if mark.active_max_at_ms() == 0 {
            mark.set_active_max(0, now_ms());
        }
        self.mark = Some(mark);
        self.look_at_port(0);
    }

    pub(super) fn reset_port_mark(&mut self, [pending, waiting]: [u32; 2]) {
        if let Some(mark) = self.mark {
            mark.set_active_max(0, now_ms());
            mark.set_pending_max(pending.into());
            mark.set_waiting_max(waiting.into());
            self.look_at_port(0);
        }
    }

    /// More commands of an adapter or of the port are held, or wait in the server, than ever before.
    pub(super) fn raise(&mut self, account: usize, of_adapter: [u32; 2], of_port: [u32; 2]) {
        if let Some(mark) = self.account(account).mark {
            let [pending, waiting] = of_adapter.map(u64::from);
            mark.set_pending_max(mark.pending_max().max(pending));
            mark.set_waiting_max(mark.waiting_max().max(waiting));
        }
        if let Some(mark) = self.mark {
            let [pending, waiting] = of_port.map(u64::from);
            mark.set_pending_max(mark.pending_max().max(pending));
            mark.set_waiting_max(mark.waiting_max().max(waiting));
        }
    }

    pub(super) fn reset_mark(&mut self, account: usize, [pending, waiting]: [u32; 2]) {
        if let Some(mark) = self.account(account).mark {
            mark.set_active_max(0, 0);
            mark.set_pending_max(pending.into());
            mark.set_waiting_max(waiting.into());
            self.look(account, 0);
        }
    }

    /// Raises the high-water mark of an adapter to what is active now, `least` if that is more, and gives each queue its part of it; whether it
    /// is higher than it was.
    pub(super) fn look(&mut self, account: usize, least: u32) -> bool {
        let account = self.account(account);
        let Some(mark) = account.mark else { return false };
        let (mut active, mut running) = (0, 0);
        for borrower in &mut account.borrowers {
            borrower.seen = borrower.local.active.load(Relaxed);
            active += borrower.seen;
            running += u32::from(borrower.wake.is_some());
        }
        let highest = u64::from(active.max(least));
        let found = highest > mark.active_max();
        if found {
            mark.set_active_max(highest, now_ms());
        }
        let left = u32::try_from(mark.active_max()).unwrap_or(u32::MAX) - active;
        for Borrower { local, wake, seen, .. } in &account.borrowers {
            let part = if wake.is_some() { *seen + left / running } else { 0 };
            local.part.store(part, Relaxed);
        }
        found
    }

    /// As [`Books::look`], for the mark of the port: over the queues of all its adapters.
    fn look_at_port(&mut self, least: u32) -> bool {
        let Some(mark) = self.mark else { return false };
        let (mut active, mut running) = (0_u64, 0_u64);
        for borrower in running_queues(&mut self.accounts) {
            borrower.seen = borrower.local.active.load(Relaxed);
            active += u64::from(borrower.seen);
            running += 1;
        }
        self.watch.queues = running;
        #[cfg(test)]
        {
            self.watch.looks += 1;
        }
        let highest = active.max(least.into());
        let found = highest > mark.active_max();
        if found {
            mark.set_active_max(highest, now_ms());
        }
        let left = (mark.active_max() - active) / running.max(1);
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        for Borrower { local, seen, .. } in running_queues(&mut self.accounts) {
            local.port_part.store(seen.saturating_add(left), Relaxed);
        }
        found
    }

    /// Before commands of a queue end that were active for `every`, if nobody has looked for so long.
    pub(super) fn look_at_port_in_time(&mut self, now: u64, every: u64) {
        if self.mark.is_some() && now >= self.watch.pace.due {
            self.look_at_port(1);
            self.watch.pace.looked(now, every * (1 + self.watch.queues / MANY));
        }
    }

    /// A queue has more active than its part of the port's mark. When it is to look again, if it still has.
    pub(super) fn look_beyond_at_port(&mut self, now: u64, every: u64) -> u64 {
        if now >= self.watch.pace.again {
            let found = self.look_at_port(1);
            let queues = self.watch.queues;
            let pauses = (every / 512 * (1 + queues / 16), every * (1 + queues / MANY));
            self.watch.pace.looked_beyond(now, found, pauses);
        }
        self.watch.pace.again
    }

    /// A queue runs.
    pub(super) fn seat(&mut self, who: Member, wake: Wake) -> Arc<Local> {
        let part = if self.mark.is_some() { 0 } else { u32::MAX };
        let borrower = self.borrower(who);
        assert!(borrower.wake.is_none(), "a queue runs once");
        borrower.wake = Some(wake);
        // What it had of the port's mark others may have now.
        borrower.local.port_part.store(part, Relaxed);
        Arc::clone(&borrower.local)
    }

    /// A queue runs no more, and none of its commands is active.
    pub(super) fn leave(&mut self, who: Member) {
        self.wait(who, 0);
        self.retire(who, u32::MAX);
        let borrower = self.borrower(who);
        debug_assert_eq!(borrower.lent, 0);
        borrower.wake = None;
        borrower.local.release();
        self.look(who.0, 0);
        self.serve();
    }

    /// Gives one to a queue, and puts more at its hand: `lot` in all while nobody waits, else what it wants. Or notes that it waits.
    pub(super) fn borrow(&mut self, who: Member, wanted: u32, lot: u32) -> Result<(), Shortage> {
        self.wait(who, 0);
        let most = if self.waiting == 0 { wanted.max(lot) } else { wanted };
        let count = self.left_for(who.0).min(most);
        if count > 0 {
            self.lend(who, count);
        }
        let got = if count > 0 { count } else { self.collect(who, wanted, false) };
        if got > 0 {
            return self.hand_over(who);
        }
        self.wait(who, wanted);
        if self.collect(who, wanted, true) > 0 {
            self.wait(who, 0);
            return self.hand_over(who);
        }
        if self.account(who.0).room() == 0 {
            return Err(Shortage::Adapter);
        }
        self.note_shortage(who.0);
        Err(Shortage::Port)
    }

    /// An adapter waits for the port. Of the others, who has most beyond its part holds it up, if anybody has: else the port is too small.
    fn note_shortage(&mut self, account: usize) {
        let (elements, weights) = (u64::from(self.elements), self.weights);
        let others = self.accounts.iter().enumerate().filter(|(number, _)| *number != account);
        let beyond = others.filter_map(|(_, other)| {
            let other = other.as_ref()?;
            let part = elements * other.weight() / weights;
            Some((u64::from(other.lent).checked_sub(part + 1)?, other.mark?))
        });
        if let Some((_, culprit)) = beyond.max_by_key(|(beyond, _)| *beyond) {
            culprit.holds_up();
        }
        let victim = self.account(account);
        let was_short = std::mem::replace(&mut victim.short, true);
        if let Some(mark) = victim.mark.filter(|_| !was_short) {
            let (now, (since, last)) = (now_ms(), mark.short());
            let goes_on = now.saturating_sub(last) < SHORT_MS;
            mark.set_short(if goes_on { since } else { now }, SHORT_STILL);
        }
    }

    /// Of what was put at a queue's hand, one is for the command that it asked for.
    fn hand_over(&mut self, who: Member) -> Result<(), Shortage> {
        // Others take from it under the lock alone.
        let taken = self.borrower(who).local.take();
        debug_assert!(taken, "it was put there a moment ago");
        Ok(())
    }

    /// How many of those that are not lent an adapter may have.
    fn left_for(&mut self, account: usize) -> u32 {
        let left = self.elements.saturating_sub(self.lent);
        let (elements, weights) = (u64::from(self.elements), self.weights);
        let account = self.account(account);
        // At most `elements`.
        let part = (elements * account.weight() / weights) as u32;
        let kept_back = if account.weight() == weights { 0 } else { elements as u32 / KEPT_BACK };
        let up_to_part = left.min(part.saturating_sub(account.lent));
        up_to_part.max(left.saturating_sub(kept_back)).min(account.room())
    }

    fn lend(&mut self, who: Member, count: u32) {
        self.lent += count;
        self.account(who.0).lent += count;
        self.put(who, count);
    }

    /// A queue has `count` that it can use: it is the turn of others.
    fn had_its_turn(&mut self, (account, queue): Member, count: u32) {
        self.turn += 1;
        let (turn, contest, waiting) = (self.turn, self.contest, self.waiting);
        let account = self.account(account);
        account.borrowers[queue].turn = turn;
        // What nobody else wanted is no turn.
        if count > 0 && waiting > 0 {
            let begun = account.pass;
            account.pass += u64::from(count) * TURN / contest.weight(account);
            self.pass = self.pass.max(begun);
        }
    }

    /// Those among whom elements are divided now.
    fn contest(&self) -> Contest {
        let accounts = self.accounts.iter().flatten();
        Contest::among(self.elements, accounts.filter(|one| one.lent > 0 || one.waiting > 0))
    }

    /// Puts elements that its adapter has at a queue's hand.
    fn put(&mut self, who: Member, count: u32) {
        self.had_its_turn(who, count);
        let pressed = self.waiting > 0;
        let borrower = self.borrower(who);
        borrower.lent += count;
        if pressed {
            borrower.local.press();
        }
        borrower.local.put(count);
    }

    /// Takes up to so many idle ones from a queue, out of the books of its adapter.
    fn take(&mut self, from: Member, most: u32) -> u32 {
        let borrower = self.borrower(from);
        let taken = borrower.local.take_up_to(most);
        borrower.lent -= taken;
        self.account(from.0).lent -= taken;
        taken
    }

    /// Takes up to so many idle ones from a queue back to what is not lent.
    fn retire(&mut self, from: Member, most: u32) -> u32 {
        let taken = self.take(from, most);
        self.lent -= taken;
        taken
    }

    /// Takes what lies idle at other queues, as far as this one may have it; or also presses those that it comes by.
    fn collect(&mut self, who: Member, wanted: u32, press: bool) -> u32 {
        let mut got = 0;
        // Its own adapter's first.
        let (first, count) = (who.0, self.accounts.len());
        for account in (first..count).chain(0..first) {
            let Some(Account { borrowers, lent, .. }) = &self.accounts[account] else { continue };
            if *lent == 0 {
                continue;
            }
            for queue in 0..borrowers.len() {
                let room = if account == who.0 { u32::MAX } else { self.account(who.0).room() };
                let most = room.min(wanted - got);
                if most == 0 {
                    break;
                }
                let borrower = self.borrower((account, queue));
                if borrower.lent == 0 {
                    continue;
                }
                if press {
                    borrower.local.press();
                }
                // Who waits, or was woken, is about to use what it has at hand.
                if (account, queue) == who || borrower.wanted > 0 || borrower.told {
                    continue;
                }
                let taken = self.take((account, queue), most);
                self.account(who.0).lent += taken;
                self.put(who, taken);
                got += taken;
            }
        }
        got
    }

    fn press(&mut self, account: usize) {
        for borrower in self.account(account).borrowers.iter().filter(|borrower| borrower.lent > 0)
        {
            borrower.local.press();
        }
    }

    /// A queue waits for so many, or for none.
    fn wait(&mut self, (account, queue): Member, wanted: u32) {
        let pass = self.pass;
        let of = self.account(account);
        if wanted > 0 && of.waiting == 0 {
            of.pass = of.pass.max(pass);
        }
        let borrower = &mut of.borrowers[queue];
        let (before, now) = (u32::from(borrower.wanted > 0), u32::from(wanted > 0));
        (borrower.wanted, borrower.told) = (wanted, false);
        of.waiting = of.waiting - before + now;
        if of.waiting == 0
            && std::mem::take(&mut of.short)
            && let Some(mark) = of.mark
        {
            mark.set_short(mark.short().0, now_ms());
        }
        self.waiting = self.waiting - before + now;
    }

    /// A queue has elements at hand and `wanted` commands for them: what it does not need goes to whoever waits, and of what it needs some
    /// to who has less, or to who has none. When nobody waits it keeps up to `keep`.
    pub(super) fn settle(&mut self, who: Member, wanted: u32, keep: u32) {
        self.wait(who, 0);
        if self.waiting > 0 {
            self.contest = self.contest();
        }
        let over = self.over(who.0);
        if over > 0 {
            self.retire(who, over);
        }
        let mut free = self.borrower(who).local.free();
        let mut gave_away = false;
        while free > 0
            && self.waiting > 0
            && let Some(to) = self.next(who, free <= wanted)
        {
            gave_away |= to.0 != who.0;
            let taken = self.take(who, 1);
            debug_assert_eq!(taken, 1, "others take from it under the lock alone");
            self.grant(to);
            free -= 1;
        }
        self.had_its_turn(who, free.min(wanted));
        let idle = free.saturating_sub(wanted.max(keep));
        if idle > 0 {
            self.retire(who, idle);
        }
        self.wait(who, wanted.saturating_sub(free));
        if idle > 0 || (gave_away && self.account(who.0).waiting > 0) {
            // Who could have nothing of others as long as its adapter had all that it may have can now.
            self.serve();
        }
        if self.over(who.0) == 0 && !self.anybody_for(who) {
            self.borrower(who).local.release();
        }
    }

    /// Who waits and may have an element of a queue: of those that it needs itself only who comes before it ([`Contest`]), and of its own adapter who has less, or none
    /// at all. Where there are fewer elements than queues that is how each comes to its turn.
    fn next(&self, who: Member, needed: bool) -> Option<Member> {
        let giver = self.accounts[who.0].as_ref()?;
        let own = giver.neediest(Some(who.1)).filter(|queue| {
            let (has, gives) = (giver.borrowers[*queue].lent, giver.borrowers[who.1].lent);
            !needed || has == 0 || has + 1 < gives
        });
        let others = self.accounts.iter().enumerate().filter_map(|(number, account)| {
            let account = account.as_ref()?;
            let may = number != who.0 && account.waiting > 0 && account.room() > 0;
            may.then_some((number, account))
        });
        let other = others.min_by(|(_, one), (_, two)| self.contest.before(one, two));
        let other = other.filter(|(_, account)| {
            self.contest.takes_from(account, giver) || (!needed && own.is_none())
        });
        match other {
            Some((number, account)) => Some((number, account.neediest(None)?)),
            None => own.map(|queue| (who.0, queue)),
        }
    }

    /// Whether somebody waits who could have what a queue puts back.
    fn anybody_for(&mut self, who: Member) -> bool {
        self.waiting > 0 && (self.borrower(who).wanted > 0 || self.next(who, false).is_some())
    }

    /// Gives one, out of the books of whoever had it, to a queue that waits.
    fn grant(&mut self, to: Member) {
        self.account(to.0).lent += 1;
        self.put(to, 1);
        self.tell(to, 1);
    }

    /// Wakes a queue that waited and got some.
    fn tell(&mut self, who: Member, got: u32) {
        let borrower = self.borrower(who);
        let (wanted, told) = (borrower.wanted.saturating_sub(got), borrower.told);
        self.wait(who, wanted);
        let borrower = self.borrower(who);
        borrower.told = true;
        if !told && let Some(wake) = &borrower.wake {
            wake();
        }
    }

    /// Gives those that wait what they may have, after something has changed.
    fn serve(&mut self) {
        if self.waiting == 0 {
            return;
        }
        for account in 0..self.accounts.len() {
            while let Some(queue) =
                self.accounts[account].as_ref().and_then(|account| account.neediest(None))
            {
                let who = (account, queue);
                let wanted = self.borrower(who).wanted;
                let count = self.left_for(account).min(wanted);
                if count > 0 {
                    self.lend(who, count);
                }
                let got = if count > 0 { count } else { self.collect(who, wanted, true) };
                if got == 0 {
                    break;
                }
                self.tell(who, got);
            }
        }
    }
}
