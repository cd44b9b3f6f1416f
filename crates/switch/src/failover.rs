//! Failover: which of two shared Ethernet adapters bridges which VLAN to the world outside. A state machine without a clock, a lock or a network.
//!
//! ```text
//!               beat, beacon heard, partner gone, link, settings
//!                                  │
//!                                  ▼
//!                             ┌─────────┐  Take ──► the token of each VLAN ──► Got
//!       Say (a beacon) ◄───── │ Machine │  Open ──► the data path bridges
//!                             └─────────┘  Close ─► the data path stops ─────► Quiet
//!                                          GiveBack ► the token
//! ```
//!
//! Of each VLAN:
//!
//! ```text
//!          wanted: Take             Got: Open
//!   idle ───────────────► (asked) ───────────► open
//!    ▲                        │ not got          │ not wanted: Close
//!    │◄───────────────────────┘                  ▼
//!    └──────────────────────────────────────── closing
//!                   Quiet: GiveBack
//! ```
//!
//! # Safety
//!
//! A VLAN is bridged by who has its *token*, which one at most has at any time, and which goes with the death of its holder: a lock. The machine opens what
//! it was given the token of, and gives a token back when the data path has said that nothing of the VLAN is on its way any more. So whatever is lost,
//! doubled, late or stopped, and whoever is started, no VLAN has two bridges.
//!
//! # Preference
//!
//! *Beacons* and beats say who should have it, and nothing else. Of two that hear each other one is the better (the truth table): `disabled`, which never yields;
//! then who reaches the address that it asks for (`netaddr`), or asks for none; then `auto` and `sharing` before `standby`; of the same, the lower priority number;
//! then the lower identity. The better one claims what it wants and says so in its beacons; the other wants what is left. From this follow:
//!
//! - failover: the better one claims all, and the other nothing;
//! - *limbo*: whose link is down claims nothing, so the other has all, until the link is back;
//! - whose address does not answer yields to one whose does; if neither is answered, or nobody else is there, it is as if no address was asked for: what is
//!   bridged to a part of the world is better than nothing;
//! - sharing, if both are set to it, and both or neither are answered: the better one leaves every second trunk adapter to the other, as far as that one has its VLANs;
//! - sets that differ: a VLAN that only one of them has is bridged by that one.
//!
//! Who hears nobody for [`PATIENCE`] beats wants all, and gets that of which nobody has the token. So a partner that was killed is followed at once, and one that is
//! stopped keeps its VLANs: it forwards nothing, and would again in the middle of a packet.
//!
//! # Going back
//!
//! The better one that returns may have to wait ([`Failback`]): meanwhile it wants nothing that the partner claims. It waits for a time, not for a fault, so not if
//! the partner claims nothing (it yields, has ended, its link is down) or is answered less well; and not if a mode or a priority was changed, which is somebody's hand.
//! Of two that start together the worse one gives the other [`PATIENCE`] beats to say what it claims. Once the better one need not wait it is *firm* until it has to yield, whatever
//! beacons are late: else both could defer to each other without end.
//!
//! # Left to others
//!
//! Time between beats, where beacons go, what a token is, telling the neighbourhood where stations are now.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Vid;

/// Beats without a beacon after which a partner is not there.
pub const PATIENCE: u8 = 3;

/// VLANs, in order.
pub type VidSet = BTreeSet<Vid>;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// Its word in output.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }
    };
}

words! {
    /// How an adapter takes part (`ha_mode`).
    Mode {
        /// It wants all, whatever others do.
        Disabled = "disabled",
        /// By priority.
        Auto = "auto",
        /// It yields to one that is not.
        Standby = "standby",
        /// It shares with a partner that does; else as `Auto`.
        Sharing = "sharing",
    }
}

words! {
    /// What an adapter is.
    State {
        /// It bridges all of its VLANs.
        Primary = "PRIMARY",
        /// It bridges none.
        Backup = "BACKUP",
        /// It bridges none, as it was told.
        Standby = "STANDBY",
        /// It bridges its part, and is the better one.
        PrimarySharing = "PRIMARY_SH",
        /// It bridges its part.
        BackupSharing = "BACKUP_SH",
        /// It bridges none: its link is down.
        Limbo = "LIMBO",
    }
}

words! {
    /// Why it is what it is.
    Cause {
        /// It was started, and listens for a partner.
        Listening = "listens for a partner",
        /// Nobody else is there.
        Alone = "no partner is heard",
        /// It is the better one.
        Preferred = "its mode or priority is the better one",
        /// The other is the better one.
        PartnerPreferred = "the partner's mode or priority is the better one",
        /// The partner's link is down.
        PartnerInLimbo = "the partner's link is down",
        /// Its own link is down.
        LinkDown = "its link is down",
        /// The partner is answered, and it is not.
        Unanswered = "its netaddr does not answer, and the partner's does",
        /// It is answered, and the partner is not.
        PartnerUnanswered = "the partner's netaddr does not answer",
        /// Both have their part.
        Shared = "shared with the partner",
        /// It never yields.
        Disabled = "failover is disabled: it does not yield",
        /// Somebody has what it wants: a partner that yields now, that is stopped, or a stranger.
        TokenTaken = "somebody else has the token",
        /// It yields, and something is still on its way.
        Yielding = "it yields",
        /// It is the better one and waits, for [`Event::Waited`].
        Waiting = "it waits before it takes the bridge back (fb_delay)",
        /// It is the better one and was told to leave it at that.
        StaysBack = "it does not take the bridge back by itself (noauto_failback)",
        /// The partner is the better one and does not claim it: it waits, or was started just now.
        PartnerWaits = "the partner does not take the bridge back yet",
    }
}

/// How the better one comes to what its partner bridges when it returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Failback {
    /// It takes it.
    #[default]
    AtOnce,
    /// It waits for [`Event::Waited`].
    Delayed,
    /// Not by itself.
    ByHand,
}

/// How an adapter is configured.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Settings {
    /// How it takes part.
    pub mode: Mode,
    /// The lower one is preferred.
    pub priority: u8,
    /// How it comes back.
    pub failback: Failback,
    /// Its VLANs, each with the number of its trunk adapter, of which the odd ones are left to a partner that shares.
    pub vlans: BTreeMap<Vid, u16>,
}

/// What an adapter says of itself with each beat.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Beacon {
    /// A number of its own, another one after each start.
    pub identity: u64,
    /// As it is configured.
    pub mode: Mode,
    /// As it is configured.
    pub priority: u8,
    /// Its link is up.
    pub fit: bool,
    /// The address that it asks for answers; true as well if it asks for none.
    pub reaches: bool,
    /// The VLANs that it has.
    pub has: VidSet,
    /// Those that it wants to bridge.
    pub claims: VidSet,
}

/// What happens to an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Time goes on.
    Beat,
    /// The partner has said something.
    Heard(Beacon),
    /// The partner is known to have ended.
    Gone,
    /// The link is up, or down.
    Link(bool),
    /// The address that it asks for answers, or does not.
    Reaches(bool),
    /// It has held off for as long as it should.
    Waited,
    /// It is configured anew.
    Settings(Settings),
    /// Of the tokens that were asked for it has these.
    Got(VidSet),
    /// It has the tokens of these no longer, and somebody else may have them: the data path bridges none of them since their deadline.
    Lost(VidSet),
    /// Nothing of the VLANs that were closed is on its way.
    Quiet,
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Ask for the tokens of these VLANs, without waiting; the answer is [`Event::Got`].
    Take(VidSet),
    /// The data path bridges these, too, and the neighbourhood is told.
    Open(VidSet),
    /// The data path bridges these no more; when that is true everywhere, [`Event::Quiet`]. None are closed before that but what was lost: then it is
    /// said once, of all.
    Close(VidSet),
    /// The tokens of these are free.
    GiveBack(VidSet),
    /// The partner is told.
    Say(Beacon),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Partner {
    /// Nothing was heard since the start, for so many beats.
    Unknown(u8),
    /// What it said, so many beats ago.
    Heard(Box<Beacon>, u8),
    Gone,
}

/// One shared Ethernet adapter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Machine {
    identity: u64,
    settings: Settings,
    fit: bool,
    reaches: bool,
    /// It need not wait for what it wants.
    firm: bool,
    /// Beats since the start, to [`PATIENCE`].
    listened: u8,
    partner: Partner,
    /// It has the tokens of these, and bridges.
    open: VidSet,
    /// It has the tokens of these, and waits for what is on its way.
    closing: VidSet,
    #[cfg(test)]
    planted: Option<Planted>,
    /// Whether tokens are leases in the world of a search.
    #[cfg(test)]
    leases: bool,
}

/// Defects that the search over all orders has to find.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Planted {
    GivesBackAtOnce,
    OpensWithoutToken,
    ForgetsAtReload,
    NeverYields,
    StaysInLimbo,
    IgnoresAnswers,
    WaitsForever,
    /// Of who carries the machine out: the deadline is later than the end of the lease.
    OutlivesItsLease,
    /// Likewise: the deadline moves before what was lost is told.
    RenewsWithoutLoss,
    /// Likewise: it moves while the data path may not have heard of the loss.
    RenewsBeforeQuiet,
}

impl Machine {
    /// An adapter that was started just now, with its link up, and bridges nothing. The identity is its own.
    #[must_use]
    pub fn new(identity: u64, settings: Settings) -> Machine {
        Machine {
            identity,
            settings,
            fit: true,
            reaches: true,
            firm: false,
            listened: 0,
            partner: Partner::Unknown(0),
            open: VidSet::new(),
            closing: VidSet::new(),
            #[cfg(test)]
            planted: None,
            #[cfg(test)]
            leases: false,
        }
    }

    /// Takes an event in.
    #[must_use]
    pub fn step(&mut self, event: Event) -> Vec<Act> {
        let beat = event == Event::Beat;
        match event {
            Event::Beat => self.grow_older(),
            Event::Heard(beacon) => self.heard(beacon),
            Event::Gone => self.partner = Partner::Gone,
            Event::Link(up) => self.fit = up,
            Event::Reaches(answered) => self.reaches = answered,
            Event::Waited => self.firm |= self.waits() == Some(Failback::Delayed),
            Event::Settings(settings) => {
                #[cfg(test)]
                if self.planted == Some(Planted::ForgetsAtReload) {
                    self.open.clear();
                }
                let before = (self.settings.mode, self.settings.priority);
                self.firm |= before != (settings.mode, settings.priority);
                self.settings = settings;
            }
            Event::Got(got) => return self.got(got),
            Event::Lost(lost) => {
                let lost = &self.open & &lost;
                self.open = &self.open - &lost;
                self.closing.extend(&lost);
                self.firm &= lost.is_empty();
                return some(lost, Act::Close).into_iter().collect();
            }
            Event::Quiet => {
                let quiet = std::mem::take(&mut self.closing);
                let mut acts: Vec<Act> = some(quiet, Act::GiveBack).into_iter().collect();
                acts.extend(self.close());
                return acts;
            }
        }
        let worse = self.partner().is_some_and(|partner| !self.is_better_than(partner));
        self.firm &= self.fit && !worse;
        #[cfg(test)]
        if self.planted == Some(Planted::WaitsForever) {
            self.firm = false;
        }
        let mut acts: Vec<Act> = self.close().into_iter().collect();
        if beat {
            let wanted = &self.wanted() - &(&self.open | &self.closing);
            acts.extend(some(wanted, Act::Take));
            acts.push(Act::Say(self.beacon()));
        }
        acts
    }

    fn grow_older(&mut self) {
        self.listened = PATIENCE.min(self.listened + 1);
        match &mut self.partner {
            Partner::Unknown(beats) | Partner::Heard(_, beats) if *beats < PATIENCE => *beats += 1,
            Partner::Unknown(_) | Partner::Heard(..) => self.partner = Partner::Gone,
            Partner::Gone => {}
        }
    }

    fn heard(&mut self, beacon: Beacon) {
        let by_hand = self.partner().is_some_and(|before| {
            let of = |beacon: &Beacon| (beacon.identity, beacon.mode, beacon.priority);
            before.identity == beacon.identity && of(before) != of(&beacon)
        });
        self.partner = Partner::Heard(Box::new(beacon), 0);
        self.firm |= by_hand || self.waits().is_none();
    }

    fn got(&mut self, got: VidSet) -> Vec<Act> {
        #[cfg(test)]
        let got = if self.planted == Some(Planted::OpensWithoutToken) {
            &self.wanted() - &self.closing
        } else {
            got
        };
        let wanted = self.wanted();
        let (keeps, surplus): (VidSet, VidSet) =
            got.into_iter().partition(|vid| wanted.contains(vid));
        self.open.extend(&keeps);
        some(keeps, Act::Open).into_iter().chain(some(surplus, Act::GiveBack)).collect()
    }

    /// Begins to yield what is not wanted any more, if nothing is being closed.
    fn close(&mut self) -> Option<Act> {
        if !self.closing.is_empty() {
            return None;
        }
        let closing = &self.open - &self.wanted();
        #[cfg(test)]
        if self.planted == Some(Planted::GivesBackAtOnce) {
            self.open = &self.open - &closing;
            return some(closing, Act::GiveBack);
        }
        self.open = &self.open - &closing;
        self.closing.clone_from(&closing);
        some(closing, Act::Close)
    }

    fn partner(&self) -> Option<&Beacon> {
        match &self.partner {
            Partner::Heard(beacon, _) => Some(beacon),
            _ => None,
        }
    }

    /// Lower is better; no two are equal.
    fn rank(mode: Mode, reaches: bool, priority: u8, identity: u64) -> (bool, bool, bool, u8, u64) {
        let yields = mode != Mode::Disabled;
        (yields, yields && !reaches, mode == Mode::Standby, priority, identity)
    }

    fn is_better_than(&self, other: &Beacon) -> bool {
        let Settings { mode, priority, .. } = self.settings;
        let reaches = (self.reaches, other.reaches);
        #[cfg(test)]
        let reaches =
            if self.planted == Some(Planted::IgnoresAnswers) { (true, true) } else { reaches };
        Machine::rank(mode, reaches.0, priority, self.identity)
            < Machine::rank(other.mode, reaches.1, other.priority, other.identity)
    }

    fn shares_with(&self, other: &Beacon) -> bool {
        let both = self.settings.mode == Mode::Sharing && other.mode == Mode::Sharing;
        both && other.fit && other.reaches == self.reaches
    }

    /// What it would bridge if it need not wait: all but what it leaves to one that it shares with.
    fn preferred(&self, partner: &Beacon) -> VidSet {
        let shares = self.shares_with(partner);
        let leaves =
            |vid: &Vid| shares && self.settings.vlans[vid] % 2 == 1 && partner.has.contains(vid);
        self.settings.vlans.keys().copied().filter(|vid| !leaves(vid)).collect()
    }

    /// What of that it may have to wait for: a partner that is as well as it is claims it.
    fn held_off(&self, partner: &Beacon) -> VidSet {
        let well = partner.fit && partner.reaches == self.reaches;
        if !well {
            return VidSet::new();
        }
        &(&self.preferred(partner) & &partner.claims) - &self.open
    }

    /// It holds off from what it would bridge as the better one, until when.
    #[must_use]
    pub fn waits(&self) -> Option<Failback> {
        let Settings { mode, failback, .. } = self.settings;
        let partner = self.partner()?;
        let waits = failback != Failback::AtOnce
            && !self.firm
            && self.fit
            && mode != Mode::Disabled
            && self.is_better_than(partner)
            && !self.held_off(partner).is_empty();
        waits.then_some(failback)
    }

    /// The VLANs that it should bridge.
    fn wanted(&self) -> VidSet {
        let all = || self.settings.vlans.keys().copied();
        if self.settings.mode == Mode::Disabled {
            return all().collect();
        }
        #[cfg(test)]
        let fit = self.fit || self.planted == Some(Planted::StaysInLimbo);
        #[cfg(not(test))]
        let fit = self.fit;
        if !fit || matches!(self.partner, Partner::Unknown(_)) {
            return VidSet::new();
        }
        #[cfg(test)]
        if self.planted == Some(Planted::NeverYields) {
            return all().collect();
        }
        let Some(partner) = self.partner() else { return all().collect() };
        if !self.is_better_than(partner) {
            let may_claim = partner.fit && partner.claims.is_empty();
            if may_claim && self.listened < PATIENCE {
                return VidSet::new();
            }
            return all().filter(|vid| !partner.claims.contains(vid)).collect();
        }
        let preferred = self.preferred(partner);
        match self.waits() {
            Some(_) => &preferred - &self.held_off(partner),
            None => preferred,
        }
    }

    fn beacon(&self) -> Beacon {
        Beacon {
            identity: self.identity,
            mode: self.settings.mode,
            priority: self.settings.priority,
            fit: self.fit,
            reaches: self.reaches,
            has: self.settings.vlans.keys().copied().collect(),
            claims: self.wanted(),
        }
    }

    /// The VLANs that it bridges.
    #[must_use]
    pub fn open(&self) -> &VidSet {
        &self.open
    }

    /// How it is configured.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The partner that it hears: mode and priority.
    #[must_use]
    pub fn hears(&self) -> Option<(Mode, u8)> {
        self.partner().map(|beacon| (beacon.mode, beacon.priority))
    }

    /// It bridges what a better partner has and does not claim.
    fn is_left_to(&self, partner: &Beacon) -> bool {
        let left = &(&self.open & &partner.has) - &partner.claims;
        !left.is_empty() && (partner.claims.is_empty() || !self.shares_with(partner))
    }

    /// What it is, and why.
    #[must_use]
    pub fn state(&self) -> (State, Cause) {
        let (mode, partner) = (self.settings.mode, self.partner());
        let better = partner.is_none_or(|partner| self.is_better_than(partner));
        let whole = self.open.len() == self.settings.vlans.len();
        let state = match (self.open.is_empty(), whole) {
            (true, _) if !self.fit && mode != Mode::Disabled => State::Limbo,
            (true, _) if mode == Mode::Standby => State::Standby,
            (true, _) => State::Backup,
            (false, true) => State::Primary,
            (false, false) if better => State::PrimarySharing,
            (false, false) => State::BackupSharing,
        };
        let cause = match partner {
            _ if !self.closing.is_empty() => Cause::Yielding,
            _ if mode != Mode::Disabled && !self.fit => Cause::LinkDown,
            _ if matches!(self.partner, Partner::Unknown(_)) && mode != Mode::Disabled => {
                Cause::Listening
            }
            _ if !self.wanted().is_subset(&self.open) => Cause::TokenTaken,
            _ if mode == Mode::Disabled => Cause::Disabled,
            None => Cause::Alone,
            Some(partner) if !partner.fit && partner.mode != Mode::Disabled => {
                Cause::PartnerInLimbo
            }
            Some(_) if self.waits() == Some(Failback::ByHand) => Cause::StaysBack,
            Some(_) if self.waits().is_some() => Cause::Waiting,
            Some(partner) if !better && self.is_left_to(partner) => Cause::PartnerWaits,
            Some(partner) if self.shares_with(partner) => Cause::Shared,
            Some(partner) if partner.mode != Mode::Disabled && partner.reaches != self.reaches => {
                if better {
                    Cause::PartnerUnanswered
                } else {
                    Cause::Unanswered
                }
            }
            Some(_) if better => Cause::Preferred,
            Some(_) => Cause::PartnerPreferred,
        };
        (state, cause)
    }
}

fn some(vids: VidSet, act: impl FnOnce(VidSet) -> Act) -> Option<Act> {
    (!vids.is_empty()).then(|| act(vids))
}

#[cfg(test)]
mod search;
#[cfg(test)]
mod tests;
