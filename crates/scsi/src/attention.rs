//! [`Attention`]: unit attention conditions (SAM-5, 5.14), and [`Gate`], the one word that the I/O path looks at.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::ports::AccessState;
use crate::sense::{Sense, SenseKey, code};

/// Something that an I_T nexus has to be told with its next command. The order is that in which several are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Attention {
    /// The logical unit is new to this I_T nexus, or the server was started.
    PowerOn,
    /// The target was reset.
    TargetReset,
    /// The logical unit was reset.
    UnitReset,
    /// The I_T nexus was lost and is back.
    NexusLoss,
    /// Another medium may be loaded.
    MediumChanged,
    /// The client's LUNs are others now.
    LunsChanged,
    /// The capacity changed.
    CapacityChanged,
    /// Another I_T nexus changed mode parameters.
    ModeChanged,
    /// Another I_T nexus removed the reservations with CLEAR.
    ReservationsPreempted,
    /// The reservation that this I_T nexus took part in was released.
    ReservationsReleased,
    /// Another I_T nexus removed this one's registration.
    RegistrationsPreempted,
    /// The access state of a target port group changed.
    AccessStateChanged,
    /// INQUIRY data changed.
    InquiryChanged,
}

impl Attention {
    /// All of them, in the order in which they are told.
    pub const ALL: [Attention; 13] = [
        Attention::PowerOn,
        Attention::TargetReset,
        Attention::UnitReset,
        Attention::NexusLoss,
        Attention::MediumChanged,
        Attention::LunsChanged,
        Attention::CapacityChanged,
        Attention::ModeChanged,
        Attention::ReservationsPreempted,
        Attention::ReservationsReleased,
        Attention::RegistrationsPreempted,
        Attention::AccessStateChanged,
        Attention::InquiryChanged,
    ];

    /// How it is told.
    #[must_use]
    pub fn sense(self) -> Sense {
        let code = match self {
            Attention::PowerOn => code::POWER_ON,
            Attention::TargetReset => code::BUS_RESET,
            Attention::UnitReset => code::DEVICE_RESET,
            Attention::NexusLoss => code::NEXUS_LOSS,
            Attention::MediumChanged => code::MEDIUM_CHANGED,
            Attention::LunsChanged => code::LUNS_CHANGED,
            Attention::CapacityChanged => code::CAPACITY_CHANGED,
            Attention::ModeChanged => code::MODE_CHANGED,
            Attention::ReservationsPreempted => code::RESERVATIONS_PREEMPTED,
            Attention::ReservationsReleased => code::RESERVATIONS_RELEASED,
            Attention::RegistrationsPreempted => code::REGISTRATIONS_PREEMPTED,
            Attention::AccessStateChanged => code::ACCESS_STATE_CHANGED,
            Attention::InquiryChanged => code::INQUIRY_CHANGED,
        };
        Sense::new(SenseKey::UnitAttention, code)
    }

    fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// What a reservation leaves to an I_T nexus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Level {
    /// Everything.
    Full,
    /// What does not change the medium: write exclusive, held by others.
    Read,
    /// Neither reading nor writing: exclusive access, held by others.
    Nothing,
    /// What SPC-2 allows while another I_T nexus holds a RESERVE.
    Reserved,
}

const LEVEL_SHIFT: u32 = 16;
const LEVEL_MASK: u32 = 0b11 << LEVEL_SHIFT;
/// The state of the way, 0 if it is an active one.
const WAY_SHIFT: u32 = 18;
const WAY_MASK: u32 = 0b111 << WAY_SHIFT;
/// The logical unit is becoming ready: nothing passes without a look.
const AWAITED: u32 = 1 << 21;
/// The states that are no active ones, by the number in the word, from 1.
const WAYS: [AccessState; 4] = [
    AccessState::Standby,
    AccessState::Unavailable,
    AccessState::Offline,
    AccessState::Transitioning,
];

impl Level {
    fn bits(self) -> u32 {
        (match self {
            Level::Full => 0,
            Level::Read => 1,
            Level::Nothing => 2,
            Level::Reserved => 3,
        }) << LEVEL_SHIFT
    }
}

/// What stands between an I_T nexus and a logical unit, as one word: pending unit attentions, the level, and the
/// state of the way. It is 0 on every ordinary day, and written only when something happens, so that all channels can read it from their own caches.
///
/// The line is its own: 128 bytes, since processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Gate(AtomicU32);

impl Gate {
    pub(crate) fn new(attention: Attention) -> Gate {
        Gate(AtomicU32::new(attention.bit()))
    }

    /// Whether anything at all has to be looked at.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        // Acquire: who sees that a reservation was released also sees the writes that came before.
        self.0.load(Ordering::Acquire) == 0
    }

    pub(crate) fn level(&self) -> Level {
        match (self.0.load(Ordering::Acquire) & LEVEL_MASK) >> LEVEL_SHIFT {
            0 => Level::Full,
            1 => Level::Read,
            2 => Level::Nothing,
            _ => Level::Reserved,
        }
    }

    /// Called under the lock of the logical unit's reservations: levels have one writer at a time.
    pub(crate) fn set_level(&self, level: Level) {
        let change = |word: u32| Some(word & !LEVEL_MASK | level.bits());
        let changed = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        debug_assert!(changed.is_ok());
    }

    /// The access state of the way, if it is not an active one.
    pub(crate) fn way(&self) -> Option<AccessState> {
        let number = (self.0.load(Ordering::Acquire) & WAY_MASK) >> WAY_SHIFT;
        WAYS.get((number as usize).checked_sub(1)?).copied()
    }

    /// Called under the lock of the logical unit, as [`Gate::set_level`].
    pub(crate) fn set_way(&self, state: AccessState) {
        // At most four.
        let number = WAYS.iter().position(|each| *each == state).map_or(0, |at| at as u32 + 1);
        let change = |word: u32| Some(word & !WAY_MASK | number << WAY_SHIFT);
        let changed = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        debug_assert!(changed.is_ok());
    }

    /// Called before the I_T nexus is served.
    pub(crate) fn set_awaited(&self, awaited: bool) {
        self.0.fetch_or(if awaited { AWAITED } else { 0 }, Ordering::AcqRel);
    }

    pub(crate) fn establish(&self, attention: Attention) {
        self.0.fetch_or(attention.bit(), Ordering::AcqRel);
    }

    /// Clears one without telling it.
    pub(crate) fn clear(&self, attention: Attention) {
        self.0.fetch_and(!attention.bit(), Ordering::AcqRel);
    }

    /// Takes the first pending one. Two channels never take the same.
    pub(crate) fn take(&self) -> Option<Attention> {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let first = Attention::ALL.into_iter().find(|each| word & each.bit() != 0)?;
            let before = self.0.fetch_and(!first.bit(), Ordering::AcqRel);
            if before & first.bit() != 0 {
                return Some(first);
            }
            word = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attentions_are_told_once_in_order_and_leave_the_level_alone() {
        let gate = Gate::new(Attention::PowerOn);
        gate.set_level(Level::Nothing);
        for attention in [Attention::ModeChanged, Attention::UnitReset, Attention::UnitReset] {
            gate.establish(attention);
        }
        gate.establish(Attention::LunsChanged);
        gate.clear(Attention::LunsChanged);
        let told: Vec<_> = std::iter::from_fn(|| gate.take()).collect();
        assert_eq!(told, [Attention::PowerOn, Attention::UnitReset, Attention::ModeChanged]);
        assert_eq!(gate.level(), Level::Nothing);
        gate.set_level(Level::Full);
        assert!(gate.is_open());
        for state in WAYS {
            gate.set_way(state);
            assert!(!gate.is_open());
            assert_eq!((gate.way(), gate.level()), (Some(state), Level::Full));
        }
        gate.set_way(AccessState::ActiveNonOptimized);
        assert_eq!(gate.way(), None);
        assert!(gate.is_open());
    }

    #[test]
    fn every_attention_has_a_bit_below_the_level_and_a_code_of_its_own() {
        let mut codes: Vec<u16> = Attention::ALL.iter().map(|each| each.sense().code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Attention::ALL.len());
        for (index, each) in Attention::ALL.into_iter().enumerate() {
            assert_eq!(each.bit(), 1 << index);
            assert_eq!(each.bit() & (LEVEL_MASK | WAY_MASK | AWAITED), 0);
        }
    }

    #[test]
    fn threads_never_take_the_same_attention() {
        let gate = Gate::new(Attention::PowerOn);
        for _ in 0..200 {
            Attention::ALL.into_iter().for_each(|each| gate.establish(each));
            let taken: usize = std::thread::scope(|scope| {
                let take = || std::iter::from_fn(|| gate.take()).count();
                let threads: Vec<_> = (0..3).map(|_| scope.spawn(take)).collect();
                threads.into_iter().map(|thread| thread.join().expect("thread")).sum()
            });
            assert_eq!(taken, Attention::ALL.len());
        }
    }
}
