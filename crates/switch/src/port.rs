//! A port: its VLANs, what it may send, what it takes.

use crate::address::{CUSTOMER_TPID, SERVICE_TPID, Tag, Vid, Vids};
use crate::edit::{TagEdit, Takes};
use crate::guard::Guard;
use crate::limit::{Limit, Meter};
use crate::offload::Offloads;
use crate::reason::Reason;
use crate::view::View;

/// A port's number; ports are kept by it in one array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// Which tags of a frame are the port's: a frame without one of these belongs to the PVID, whatever else it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tagging {
    /// 802.1Q tags.
    Customer,
    /// 802.1ad service tags; a customer's tags pass through behind them.
    Service,
    /// None: all is the PVID's, and passes as it came (a dot1q tunnel).
    None,
}

/// Bounds on what reaches many, in frames a second.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storm {
    /// Broadcasts.
    pub broadcast: Option<Meter>,
    /// Other groups.
    pub multicast: Option<Meter>,
    /// Destinations that nobody has been seen behind.
    pub unknown: Option<Meter>,
}

/// All that is configured of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    /// The VLAN of frames without a tag of the port's, which leave without one; none refuses them.
    pub pvid: Option<Vid>,
    /// More VLANs, whose frames come and leave with a tag.
    pub vids: Vids,
    /// VLANs of it that pass nothing now, in neither direction: another server bridges them.
    pub standby: Vids,
    /// Which tags are looked at.
    pub tagging: Tagging,
    /// It exchanges frames with ports that are not private, and no others.
    pub private: bool,
    /// What may be left to it.
    pub takes: Takes,
    /// What it may leave to us.
    pub may: Offloads,
    /// Its word that checksums are right is taken: an uplink.
    pub trusted: bool,
    /// MAC addresses that are learned of it.
    pub macs_max: usize,
    /// Multicast groups that are kept of it.
    pub groups_max: usize,
    /// IP addresses that are kept of those that stations behind it say are theirs.
    pub claims_max: usize,
    /// What it may say of itself.
    pub guard: Guard,
    /// Bounds on what it sends to many.
    pub storm: Storm,
    /// Bounds on what it sends.
    pub limit_in: Option<Limit>,
    /// Bounds on what it gets.
    pub limit_out: Option<Limit>,
    /// Where copies of all that it sends and gets go.
    pub mirror: Option<PortId>,
    /// It gets mirrored frames and nothing else, and sends nothing.
    pub mirror_only: bool,
}

impl PortSpec {
    /// An access port of a VLAN: an ordinary client without offloads and without bounds.
    #[must_use]
    pub fn access(vid: Vid) -> PortSpec {
        PortSpec {
            pvid: Some(vid),
            vids: Vids::NONE,
            standby: Vids::NONE,
            tagging: Tagging::Customer,
            private: false,
            takes: Takes { offloads: Offloads::NONE, mtu: 1500 },
            may: Offloads::NONE,
            trusted: false,
            macs_max: 64,
            groups_max: 64,
            claims_max: 16,
            guard: Guard::default(),
            storm: Storm::default(),
            limit_in: None,
            limit_out: None,
            mirror: None,
            mirror_only: false,
        }
    }

    fn tpid(&self) -> Option<u16> {
        match self.tagging {
            Tagging::Customer => Some(CUSTOMER_TPID),
            Tagging::Service => Some(SERVICE_TPID),
            Tagging::None => None,
        }
    }

    /// Whether frames of that VLAN reach it.
    pub(crate) fn is_member(&self, vid: Vid) -> bool {
        self.pvid == Some(vid) || (self.tagging != Tagging::None && self.vids.has(vid))
    }

    /// The VLAN of a frame that it sent, and the tag that says so, if one does (a priority tag does not).
    pub(crate) fn classify(&self, view: &View<'_>) -> Result<(Vid, Option<Tag>), Reason> {
        let tag = view.tag().filter(|tag| Some(tag.tpid) == self.tpid());
        let vid = match tag.map(Tag::vid) {
            None | Some(0) => self.pvid,
            Some(vid) => Vid::new(vid).filter(|vid| self.is_member(*vid)),
        };
        Ok((vid.ok_or(Reason::VlanFilter)?, tag))
    }

    /// The VLAN of a frame that leaves by this port with such an edit.
    #[inline]
    pub(crate) fn leaves_in(&self, view: &View<'_>, edit: TagEdit) -> Option<Vid> {
        let tag = match edit {
            TagEdit::Keep => view.tag().filter(|tag| Some(tag.tpid) == self.tpid()),
            TagEdit::Strip => None,
            TagEdit::Insert(tag) | TagEdit::Replace(tag) => Some(tag),
        };
        tag.map_or(self.pvid, |tag| Vid::new(tag.vid()).or(self.pvid))
    }

    /// How a frame of a VLAN that is made here without a tag, as if this port had sent it, arrives at another; none if it does not.
    #[must_use]
    pub fn reaches(&self, other: &PortSpec, vid: Vid) -> Option<TagEdit> {
        let members = self.is_member(vid) && other.is_member(vid);
        let standby = self.standby.has(vid) || other.standby.has(vid);
        let stopped = standby || (self.private && other.private);
        let mirror = self.mirror_only || other.mirror_only;
        (members && !stopped && !mirror).then(|| other.edit(vid, None))
    }

    /// How a frame of a VLAN that came with that tag leaves by this port. Its priority stays.
    pub(crate) fn edit(&self, vid: Vid, came: Option<Tag>) -> TagEdit {
        let tpid = self.tpid().filter(|_| self.pvid != Some(vid));
        let leaves =
            tpid.map(|tpid| Tag { tpid, tci: came.map_or(0, |tag| tag.tci & 0xf000) | vid.get() });
        match (came, leaves) {
            (None, None) => TagEdit::Keep,
            (Some(_), None) => TagEdit::Strip,
            (None, Some(tag)) => TagEdit::Insert(tag),
            (Some(came), Some(tag)) if came == tag => TagEdit::Keep,
            (Some(_), Some(tag)) => TagEdit::Replace(tag),
        }
    }
}
