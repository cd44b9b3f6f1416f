//! The medium of a removable logical unit: what the server and its clients do with it, and what an optical drive tells of that.
//!
//! A medium lies in the drive or does not, and the tray is open or closed. The server brings another medium and takes it away
//! ([`LogicalUnit::set_medium`], [`LogicalUnit::remove_medium`]); a client opens the tray and closes it, by START STOP UNIT, and finds again what
//! the server left there. The server asks with [`LogicalUnit::medium`] what became of it.

use std::sync::atomic::Ordering;

use super::{LogicalUnit, Nexus, Shared, UnitKind, flag};
use crate::attention::Attention;
use crate::sense::{Sense, SenseKey, code};

/// Bytes of a block of an optical medium.
pub(crate) const OPTICAL_BLOCK_BYTES: u32 = 2048;

/// What became of the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Medium {
    /// It is there, and clients can use it.
    Loaded,
    /// A client has ejected it. It lies in the open tray; a client that closes the tray has it again.
    Ejected,
    /// There is none.
    Empty,
}

/// The medium stays, since a client prevents its removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a client prevents the removal of the medium")]
pub struct RemovalPrevented;

/// Events of the media class (MMC-6, 6.6.2.6), by their codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum MediaEvent {
    /// Somebody wants the medium out; a client that has locked it is to let it go.
    EjectRequest = 1,
    /// A medium can be used.
    NewMedium = 2,
    /// The medium is gone.
    Removal = 3,
}

impl MediaEvent {
    /// In the order in which they are told: a pending request first.
    const ALL: [MediaEvent; 3] =
        [MediaEvent::EjectRequest, MediaEvent::NewMedium, MediaEvent::Removal];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Shared {
    /// Every I_T nexus is told of an event when it asks. Coming and going supersede what was not told yet.
    fn media_event(&self, event: MediaEvent) {
        for view in &self.nexuses {
            match event {
                MediaEvent::EjectRequest => view.events.fetch_or(event.bit(), Ordering::Relaxed),
                _ => view.events.swap(event.bit(), Ordering::Relaxed),
            };
        }
    }
}

impl LogicalUnit {
    /// What became of the medium.
    #[must_use]
    pub fn medium(&self) -> Medium {
        match self.flags() {
            flags if flags & flag::EMPTY != 0 => Medium::Empty,
            flags if flags & flag::TRAY_OPEN != 0 => Medium::Ejected,
            _ => Medium::Loaded,
        }
    }

    /// Whether clients can use a medium.
    #[must_use]
    pub fn medium_loaded(&self) -> bool {
        self.medium() == Medium::Loaded
    }

    /// Loads a medium of so many bytes, in place of the one that is there, or takes it away, from the server's side and whatever
    /// clients prevent. A tray that is open closes over a new medium. Every I_T nexus is told of a new one.
    ///
    /// The volume that requests go to is the caller's: it is changed before a medium is loaded and after one was taken away.
    pub fn set_medium(&self, medium: Option<u64>) {
        let shared = self.shared();
        match medium {
            Some(bytes) => {
                // The capacity first: whoever sees the medium sees what belongs to it.
                self.hot.bytes.store(bytes, Ordering::Relaxed);
                self.clear_flags(flag::EMPTY | flag::TRAY_OPEN | flag::NO_MEDIUM);
                shared.tell(|_| true, Attention::MediumChanged);
                shared.media_event(MediaEvent::NewMedium);
            }
            None => {
                let before = self.set_flag(flag::EMPTY | flag::NO_MEDIUM, true);
                if before & flag::NO_MEDIUM == 0 {
                    shared.media_event(MediaEvent::Removal);
                }
            }
        }
    }

    /// Takes the medium away from the server's side, unless a client prevents it.
    ///
    /// # Errors
    ///
    /// When a client prevents it. Clients of an optical drive are told that the medium is wanted, and may let it go or eject it; then it
    /// can be asked for again.
    pub fn remove_medium(&self) -> Result<(), RemovalPrevented> {
        {
            let shared = self.shared();
            if !shared.prevent.is_empty() && self.medium_loaded() {
                shared.media_event(MediaEvent::EjectRequest);
                return Err(RemovalPrevented);
            }
        }
        self.set_medium(None);
        Ok(())
    }

    /// Whether a client prevents the removal of the medium.
    #[must_use]
    pub fn removal_prevented(&self) -> bool {
        !self.shared().prevent.is_empty()
    }

    /// Whether the tray is open.
    pub(crate) fn tray_open(&self) -> bool {
        self.flags() & flag::TRAY_OPEN != 0
    }

    /// What a command that needs a medium is told when there is none, and any that needs an awaited logical unit.
    pub(crate) fn not_ready(&self) -> Sense {
        let code = match self.tray_open() {
            _ if self.awaited => code::BECOMING_READY,
            true => code::NO_MEDIUM_TRAY_OPEN,
            false => code::NO_MEDIUM_TRAY_CLOSED,
        };
        Sense::new(SenseKey::NotReady, code)
    }
}

impl Nexus {
    /// START STOP UNIT opens the tray.
    pub(crate) fn eject(&self) -> Result<(), Sense> {
        let unit = self.unit();
        let shared = unit.shared();
        if !shared.prevent.is_empty() {
            return Err(Sense::illegal(code::REMOVAL_PREVENTED));
        }
        let before = unit.set_flag(flag::TRAY_OPEN | flag::NO_MEDIUM, true);
        if before & flag::NO_MEDIUM == 0 {
            shared.media_event(MediaEvent::Removal);
        }
        Ok(())
    }

    /// START STOP UNIT closes the tray; others are told of the medium that is in it.
    pub(crate) fn load(&self) -> Result<(), Sense> {
        let unit = self.unit();
        let shared = unit.shared();
        // SBC-3, 5.21, refuses both ways; to a drive, closing the tray is no removal (MMC-6, 6.42).
        if unit.kind == UnitKind::Disk && !shared.prevent.is_empty() {
            return Err(Sense::illegal(code::REMOVAL_PREVENTED));
        }
        let before = unit.clear_flags(flag::TRAY_OPEN);
        if before & flag::EMPTY == 0 && before & flag::NO_MEDIUM != 0 {
            unit.clear_flags(flag::NO_MEDIUM);
            let me = self.id();
            shared.tell(|each| each != me, Attention::MediumChanged);
            shared.media_event(MediaEvent::NewMedium);
        }
        Ok(())
    }

    /// The first event that this I_T nexus was not told yet, which then is told.
    pub(crate) fn take_media_event(&self) -> Option<MediaEvent> {
        let events = &self.view.events;
        MediaEvent::ALL
            .into_iter()
            .find(|event| events.fetch_and(!event.bit(), Ordering::Relaxed) & event.bit() != 0)
    }
}
