//! Who is given an element next: among the adapters of a port.

use std::cmp::Ordering;

use super::Account;

/// Where adapters have elements in turn, no weight counts as less than one of so many parts of the mean.
const LIGHTEST: u64 = 3;

impl Account {
    /// Whether it has less with one more than another one has now, in relation to their weights.
    fn is_poorer(&self, than: &Account) -> bool {
        (u64::from(self.lent) + 1) * than.weight() < u64::from(than.lent) * self.weight()
    }

    /// Which of two would have less with one more, in relation to their weights.
    fn compare(&self, other: &Account) -> Ordering {
        let (one, two) = (u64::from(self.lent) + 1, u64::from(other.lent) + 1);
        (one * other.weight()).cmp(&(two * self.weight()))
    }
}

/// Among whom the elements of a port are divided while some wait.
///
/// As long as the part of each is an element or more, who has none is next, and then who has least for its weight. Where somebody's part is less, weights count in
/// turns: of those that have less than their part, or none, the one is next that is furthest back in virtual time, in which a turn is the shorter the more the adapter
/// weighs. A disk that hangs keeps no more than its adapter's part. So that nobody's commands wait for minutes, no weight counts as less than a third of the
/// mean one, and so nobody has less than a quarter of an even part.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Contest {
    elements: u64,
    /// The least that counts as a weight.
    least: u64,
    /// Of all together.
    weights: u64,
    /// Somebody's part is less than an element.
    in_turns: bool,
}

impl Contest {
    pub(super) fn among<'a>(
        elements: u32,
        accounts: impl Iterator<Item = &'a Account> + Clone,
    ) -> Contest {
        let (count, sum) = accounts
            .clone()
            .fold((0, 0), |(count, sum), account| (count + 1, sum + account.weight()));
        let contest = Contest {
            elements: elements.into(),
            least: sum / (LIGHTEST * count).max(1),
            ..Contest::default()
        };
        let weights = accounts.clone().map(|account| contest.weight(account));
        let (weights, lightest) = (weights.clone().sum(), weights.min().unwrap_or(1));
        Contest { weights, in_turns: contest.elements * lightest < weights, ..contest }
    }

    pub(super) fn weight(&self, account: &Account) -> u64 {
        account.weight().max(self.least)
    }

    /// Whether an adapter that had so many would have less than its part, or none.
    fn is_below(&self, account: &Account, lent: u32) -> bool {
        let part = self.elements * self.weight(account) / self.weights.max(1);
        u64::from(lent) < part.max(1)
    }

    /// Which of two that wait is given one first.
    pub(super) fn before(&self, one: &Account, two: &Account) -> Ordering {
        let is_first = |account: &Account| match self.in_turns {
            true => self.is_below(account, account.lent),
            false => account.lent == 0,
        };
        match (is_first(one), is_first(two)) {
            (true, true) => one.pass.cmp(&two.pass),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => one.compare(two),
        }
    }

    /// Whether one that waits has what another one has at hand and could use itself.
    pub(super) fn takes_from(&self, one: &Account, giver: &Account) -> bool {
        if !self.in_turns {
            return one.lent == 0 || one.is_poorer(giver);
        }
        match (self.is_below(one, one.lent), self.is_below(giver, giver.lent.saturating_sub(1))) {
            (true, true) => one.pass < giver.pass,
            (true, false) => true,
            (false, true) => false,
            (false, false) => one.is_poorer(giver),
        }
    }
}
