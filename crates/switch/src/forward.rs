//! Forwarding: from a frame that came in by one port to its destinations, with everything counted.

use core::net::IpAddr;
use std::collections::BTreeSet;

use crate::address::{Mac, Vid};
use crate::announce::Announcement;
use crate::claim::{Claim, Claims};
use crate::edit::{Pieces, Scratch, TagEdit, adapt, as_it_came};
use crate::group::{Audience, Groups};
use crate::news::{Heard, News, Sighting};
use crate::offload::{NetHeader, Offload};
use crate::packet::Packet;
use crate::port::{PortId, PortSpec};
use crate::reason::{Counters, Reason};
use crate::table::{Learned, MacTable};
use crate::view::{ETHERNET_BYTES, View};

/// How large a switch's tables are. All memory is taken at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// MAC addresses.
    pub macs: usize,
    /// Seconds after which a station that keeps quiet is forgotten, 1 or more; 300 is usual.
    pub age_s: u32,
    /// Multicast memberships of all ports.
    pub groups: usize,
    /// IP addresses that stations say are theirs.
    pub claims: usize,
    /// A number that clients do not know: without it they could choose addresses that slow the table.
    pub seed: u64,
}

/// One destination of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Egress {
    /// Where it goes.
    pub port: PortId,
    /// What happens to its tag.
    pub edit: TagEdit,
    /// A copy of what others get; it may be lost without harm.
    pub mirror: bool,
}

#[derive(Debug)]
struct Port {
    spec: PortSpec,
    came: Counters,
    went: Counters,
    unlearned: u64,
}

/// One channel's switch: all ports, and this channel's replica of the tables.
#[derive(Debug)]
pub struct Switch {
    ports: Vec<Option<Port>>,
    table: MacTable,
    groups: Groups,
    claims: Claims,
    /// What was learned of the last frame, until it is told.
    news: Option<News>,
    /// Whose the guarded addresses are; two ports in different VLANs may have the same.
    owners: BTreeSet<(Mac, PortId)>,
    /// What the next frame may be one more of.
    run: Option<Run>,
}

/// Frames one after the other, by the same port from one station to another, which was seen, and has them to itself. What was found out of the last one from its Ethernet header
/// alone is true of the next one, while nobody has learned or changed anything in between, and in the same second.
#[derive(Debug, Clone, Copy)]
struct Run {
    from: PortId,
    /// Without a tag.
    header: [u8; ETHERNET_BYTES],
    now_s: u32,
    egress: Egress,
    /// Nothing of the port's is judged by more than that.
    is_free: bool,
}

/// What is known of a frame once its sender was judged.
struct Admitted {
    vid: Vid,
    came: Option<crate::address::Tag>,
    /// Nothing was learned of it.
    is_known: bool,
}

impl Switch {
    /// A switch without ports.
    #[must_use]
    pub fn new(sizes: Sizes) -> Switch {
        let age_s = sizes.age_s.max(1);
        Switch {
            ports: Vec::new(),
            table: MacTable::new(sizes.macs, age_s, sizes.seed),
            groups: Groups::new(sizes.groups),
            claims: Claims::new(sizes.claims, (age_s / 4).max(1)),
            news: None,
            owners: BTreeSet::new(),
            run: None,
        }
    }

    /// Adds a port or changes one. What was learned behind it is forgotten; its counters stay. It gets all multicast until what it wants is known again.
    pub fn set_port(&mut self, id: PortId, spec: PortSpec) {
        let at = usize::from(id.0);
        if self.ports.len() <= at {
            self.ports.resize_with(at + 1, || None);
        }
        self.table.add_port(id);
        self.groups.add_port(id);
        self.flush(id);
        self.owners.retain(|(_, owner)| *owner != id);
        self.owners.extend(spec.guard.macs.iter().map(|mac| (*mac, id)));
        let counters = self.ports[at].take().map(|old| (old.came, old.went));
        let (came, went) = counters.unwrap_or((Counters::NEW, Counters::NEW));
        self.ports[at] = Some(Port { spec, came, went, unlearned: 0 });
        self.run = None;
    }

    /// Takes a port away, with its counters.
    pub fn remove_port(&mut self, id: PortId) {
        if self.port(id).is_some() {
            self.flush(id);
            self.owners.retain(|(_, owner)| *owner != id);
            self.ports[usize::from(id.0)] = None;
        }
    }

    /// Forgets all that was learned behind a port.
    pub fn flush(&mut self, id: PortId) {
        self.run = None;
        self.table.flush(id);
        self.groups.flush(id);
        self.claims.flush(id);
    }

    /// Another channel learned something. What it says of a port that is not here is of no use.
    pub fn learn(&mut self, now_ns: u64, news: News) {
        let (News::Station(Sighting { port, .. }) | News::Group(Heard { port, .. })) = news;
        let Some(Port { spec, .. }) = self.port(port) else { return };
        let quota = spec.groups_max;
        match news {
            News::Station(seen) => self.learn_station(seconds(now_ns), seen),
            News::Group(heard) => self.groups.learn(heard, quota),
        }
    }

    fn learn_station(&mut self, now_s: u32, seen: Sighting) {
        self.run = None;
        let Some(Port { spec, .. }) = self.port(seen.port) else { return };
        let (macs_max, claims_max) = (spec.macs_max, spec.claims_max);
        // Who is beyond a VLAN in standby is heard of, and not sent to.
        if !spec.standby.has(seen.vid) {
            self.table.learn(now_s, seen.mac, seen.vid, seen.port, macs_max);
        }
        if let Some(claim) = seen.claim {
            self.claims.hear(now_s, seen, claim, claims_max);
        }
    }

    /// Something that another channel learned of groups was lost: nothing is withheld from anybody until all have been heard again.
    pub fn miss(&mut self) {
        self.groups.miss();
    }

    /// Whether something was learned of the last frame.
    #[inline]
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.news.is_some()
    }

    /// What was learned of the last frame, wherever it went: to be told to the other channels, in this order, until there is no more.
    pub fn take_news(&mut self) -> Option<News> {
        let news = self.news.take();
        if news.is_some() {
            self.news = self.groups.take_told().map(News::Group);
        }
        news
    }

    /// To be called about once a second: frees a part of what is too old. What is too old is not used in any case.
    pub fn age(&mut self, now_ns: u64) {
        let now_s = seconds(now_ns);
        self.table.age(now_s);
        self.groups.age(now_s);
        let Switch { claims, table, owners, .. } = self;
        claims.age(|mac, vid| {
            table.knows(now_s, mac, vid) || owners_of(owners, mac).next().is_some()
        });
    }

    /// Finds the destinations of a frame that came in by `from`, and counts it there. `to` is emptied first; it grows to the number of ports at
    /// most. What was learned from it is then to be [taken](Switch::take_news), whatever became of it.
    ///
    /// With an error it has no destination, and is counted with that reason.
    #[inline(always)] // For a run it is short: a call would cost a third of it.
    pub fn forward(
        &mut self,
        now_ns: u64,
        from: PortId,
        view: &View<'_>,
        to: &mut Vec<Egress>,
    ) -> Result<(), Reason> {
        to.clear();
        let found = match self.goes_on(now_ns, from, view) {
            Some(run) => self.admit_one_more(now_ns, run, view).map(|()| to.push(run.egress)),
            None => self.find(now_ns, from, view, to),
        };
        match found {
            Ok(()) => self.port_mut(from).map(|port| port.came.pass(view.len())),
            Err(reason) => self.port_mut(from).map(|port| port.came.drop(reason)),
        };
        found
    }

    /// The run that a frame is one more of.
    #[inline]
    fn goes_on(&self, now_ns: u64, from: PortId, view: &View<'_>) -> Option<Run> {
        let run = self.run.filter(|run| run.from == from && run.header == view.ethernet())?;
        (run.now_s == seconds(now_ns) && !Claim::may_be_in(view)).then_some(run)
    }

    /// What is judged of each frame by more than its Ethernet header.
    #[inline]
    fn admit_one_more(&self, now_ns: u64, run: Run, view: &View<'_>) -> Result<(), Reason> {
        if run.is_free { Ok(()) } else { self.judge_one_more(now_ns, run, view) }
    }

    fn judge_one_more(&self, now_ns: u64, run: Run, view: &View<'_>) -> Result<(), Reason> {
        let port = self.port(run.from).ok_or(Reason::PortDown)?;
        port.spec.guard.check(view)?;
        match &port.spec.limit_in {
            Some(limit) if !limit.passes(now_ns, view.len()) => Err(Reason::QosDrop),
            _ => Ok(()),
        }
    }

    /// Finds the destinations of a frame that is the first of its kind.
    #[inline(never)]
    fn find(
        &mut self,
        now_ns: u64,
        from: PortId,
        view: &View<'_>,
        to: &mut Vec<Egress>,
    ) -> Result<(), Reason> {
        self.run = None;
        let admitted = self.admit(now_ns, from, view)?;
        let was_seen = self.destinations(now_ns, from, view, &admitted, to)?;
        self.mirror(from, to);
        if let [egress] = to[..]
            && was_seen
            && admitted.is_known
            && view.l3() == ETHERNET_BYTES
        {
            let (header, now_s) = (view.ethernet(), seconds(now_ns));
            let is_free = |spec: &PortSpec| spec.guard.is_open() && spec.limit_in.is_none();
            let is_free = self.spec(from).is_some_and(is_free);
            self.run = Some(Run { from, header, now_s, egress, is_free });
        }
        Ok(())
    }

    /// The net header of a frame that one of its destinations gets as it came. None: [`Switch::adapt`] says what it gets, if it does.
    #[inline(always)] // Of each frame: a call would cost a twentieth of what it takes to deliver one.
    #[must_use]
    pub fn as_it_came(
        &self,
        egress: Egress,
        view: &View<'_>,
        offload: &Offload,
    ) -> Option<NetHeader> {
        let spec = self.spec(egress.port)?;
        let its = as_it_came(view, offload, egress.edit, spec.takes)?;
        let left = spec.leaves_in(view, egress.edit);
        (egress.mirror || !left.is_some_and(|vid| spec.standby.has(vid))).then_some(its)
    }

    /// Makes a frame into what one of its destinations takes. An error is counted there. What comes of the pieces is then
    /// to be told: [`Switch::delivered`] or [`Switch::lost`], once for the frame.
    pub fn adapt<'a>(
        &mut self,
        egress: Egress,
        view: View<'a>,
        offload: Offload,
        scratch: &'a mut Scratch,
    ) -> Result<Pieces<'a>, Reason> {
        let port = self.port_mut(egress.port).ok_or(Reason::PortDown)?;
        // It was forwarded before, perhaps on another channel; the bridge may have gone to another server meanwhile.
        let left = port.spec.leaves_in(&view, egress.edit);
        if !egress.mirror && left.is_some_and(|vid| port.spec.standby.has(vid)) {
            port.went.drop(Reason::Standby);
            return Err(Reason::Standby);
        }
        let adapted = adapt(view, offload, egress.edit, port.spec.takes, scratch);
        adapted.inspect_err(|reason| port.went.drop(*reason))
    }

    /// In how many pieces one of its destinations gets a frame, as far as that is more than one.
    #[must_use]
    pub fn cuts(&self, egress: Egress, view: &View<'_>, offload: &Offload) -> usize {
        let (Offload::Segment(gso), Some(spec)) = (offload, self.spec(egress.port)) else {
            return 0;
        };
        if spec.takes.offloads.consistent().has(gso.needs()) {
            return 0;
        }
        (view.len() - gso.payload()).div_ceil(gso.size())
    }

    /// Whether a frame is within what its destination may get. To be asked once for each destination, before the first try: a frame that waits has been
    /// let through.
    #[inline]
    pub fn admits(&self, now_ns: u64, egress: Egress, bytes: usize) -> Result<(), Reason> {
        let limit = self.spec(egress.port).and_then(|spec| spec.limit_out.as_ref());
        match limit {
            Some(limit) if !limit.passes(now_ns, bytes) => Err(Reason::RxQosDrop),
            _ => Ok(()),
        }
    }

    /// A frame reached its destination.
    #[inline]
    pub fn delivered(&mut self, to: PortId, bytes: usize) {
        if let Some(port) = self.port_mut(to) {
            port.went.pass(bytes);
        }
    }

    /// A frame did not reach its destination.
    pub fn lost(&mut self, to: PortId, reason: Reason) {
        if let Some(port) = self.port_mut(to) {
            port.went.drop(reason);
        }
    }

    /// A frame was refused before it could be forwarded.
    pub fn refused(&mut self, from: PortId, reason: Reason) {
        if let Some(port) = self.port_mut(from) {
            port.came.drop(reason);
        }
    }

    /// What a port sent and what it got.
    #[must_use]
    pub fn counters(&self, id: PortId) -> Option<(&Counters, &Counters)> {
        self.port(id).map(|port| (&port.came, &port.went))
    }

    /// MAC addresses that are known of a port, and how often one was not learned for want of room.
    #[must_use]
    pub fn learned(&self, id: PortId) -> Option<(usize, u64)> {
        self.port(id).map(|port| (self.table.entries(id), port.unlearned))
    }

    /// How a frame without a tag that is made here leaves by a port, in a VLAN.
    #[must_use]
    pub fn towards(&self, id: PortId, vid: Vid) -> Option<Egress> {
        let spec = self.spec(id).filter(|spec| spec.is_member(vid))?;
        Some(Egress { port: id, edit: spec.edit(vid, None), mirror: false })
    }

    /// What is to be said by a port in some VLANs of the stations that are not behind it: of each that was seen or whose address is guarded that it is there,
    /// and then with which addresses.
    #[must_use]
    pub fn announcements(
        &self,
        now_ns: u64,
        by: PortId,
        is_meant: impl Fn(Vid) -> bool,
    ) -> Vec<Announcement> {
        let seen = self.table.stations(seconds(now_ns));
        let seen = seen.filter(|(_, _, id)| *id != by).map(|(mac, vid, _)| (mac, vid));
        let guarded = self.owners.iter().filter(|(_, id)| *id != by);
        let guarded = guarded.filter_map(|(mac, id)| Some((*mac, self.spec(*id)?.pvid?)));
        let stations: BTreeSet<(Mac, Vid)> =
            seen.chain(guarded).filter(|(_, vid)| is_meant(*vid)).collect();
        let claims = self.claims.all().filter(|(mac, vid, _)| stations.contains(&(*mac, *vid)));
        let with =
            claims.map(|(station, vid, claim)| Announcement { station, vid, claim: Some(claim) });
        let alone = stations.iter().map(|(station, vid)| Announcement {
            station: *station,
            vid: *vid,
            claim: None,
        });
        alone.chain(with).collect()
    }

    /// What is to be said of a station that is behind a port from now on, wherever it was before: with which addresses it is there, in the port's VLANs.
    #[must_use]
    pub fn announcements_of(&self, station: Mac, at: PortId) -> Vec<Announcement> {
        let Some(spec) = self.spec(at) else { return Vec::new() };
        let own = self.claims.all().filter(|(mac, vid, claim)| {
            *mac == station && spec.is_member(*vid) && spec.guard.may_have(claim.address)
        });
        own.map(|(_, vid, claim)| Announcement { station, vid, claim: Some(claim) }).collect()
    }

    /// Whether a station was seen in a VLAN, or its address is guarded.
    #[must_use]
    pub fn knows(&self, now_ns: u64, station: Mac, vid: Vid) -> bool {
        self.table.knows(seconds(now_ns), station, vid)
            || owners_of(&self.owners, station).next().is_some()
    }

    /// The IP addresses that a station in a VLAN said to be its own.
    pub fn addresses_of(&self, station: Mac, vid: Vid) -> impl Iterator<Item = IpAddr> {
        let own = self.claims.all().filter(move |(mac, its, _)| (*mac, *its) == (station, vid));
        own.map(|(.., claim)| claim.address)
    }

    /// The VLAN of a frame that came by a port, if the port is in it.
    #[must_use]
    pub fn came_in(&self, from: PortId, view: &View<'_>) -> Option<Vid> {
        self.spec(from)?.classify(view).ok().map(|(vid, _)| vid)
    }

    /// The VLAN in which a frame leaves.
    #[must_use]
    pub fn leaves_in(&self, egress: Egress, view: &View<'_>) -> Option<Vid> {
        self.spec(egress.port)?.leaves_in(view, egress.edit)
    }

    /// A port as it is configured.
    #[inline]
    #[must_use]
    pub fn spec(&self, id: PortId) -> Option<&PortSpec> {
        self.port(id).map(|port| &port.spec)
    }

    #[inline]
    fn port(&self, id: PortId) -> Option<&Port> {
        self.ports.get(usize::from(id.0))?.as_ref()
    }

    #[inline]
    fn port_mut(&mut self, id: PortId) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(id.0))?.as_mut()
    }

    /// Judges the sender, and learns where it is.
    fn admit(&mut self, now_ns: u64, from: PortId, view: &View<'_>) -> Result<Admitted, Reason> {
        let (source, owners) = (view.source(), &self.owners);
        let port = self.ports.get_mut(usize::from(from.0)).and_then(Option::as_mut);
        let port = port.ok_or(Reason::PortDown)?;
        if port.spec.mirror_only {
            return Err(Reason::MirrorOnly);
        }
        if source.is_group() || source == Mac::default() {
            return Err(Reason::MacInvalidSource);
        }
        if view.destination().is_reserved() {
            return Err(Reason::MacIeeeMacControl);
        }
        let (vid, came) = port.spec.classify(view)?;
        // A guarded address behind another port: a thief, or a reflection.
        let stolen =
            owners_of(owners, source).next().is_some() && !owners.contains(&(source, from));
        if port.spec.standby.has(vid) {
            // What was known of an address may be otherwise there now.
            if !stolen {
                self.hear(now_ns, Sighting { mac: source, vid, port: from, claim: None }, view);
            }
            return Err(Reason::Standby);
        }
        if stolen {
            return Err(Reason::SpoofMac);
        }
        port.spec.guard.check(view)?;
        if let Some(limit) = &port.spec.limit_in
            && !limit.passes(now_ns, view.len())
        {
            return Err(Reason::QosDrop);
        }
        let seen = Sighting { mac: source, vid, port: from, claim: None };
        let learned = self.table.learn(seconds(now_ns), source, vid, from, port.spec.macs_max);
        match learned {
            Learned::Tell => self.news = Some(News::Station(seen)),
            Learned::Known => {}
            Learned::Refused => port.unlearned += 1,
        }
        if Claim::may_be_in(view) {
            self.hear(now_ns, seen, view);
        }
        Ok(Admitted { vid, came, is_known: learned == Learned::Known })
    }

    /// Hears what the sender of a frame says of itself.
    #[cold]
    fn hear(&mut self, now_ns: u64, seen: Sighting, view: &View<'_>) {
        let quota = self.port(seen.port).map_or(0, |port| port.spec.claims_max);
        if let Some(claim) = Claim::of(view)
            && self.claims.hear(seconds(now_ns), seen, claim, quota)
        {
            self.news = Some(News::Station(Sighting { claim: Some(claim), ..seen }));
        }
    }

    /// Whom a frame reaches; whether it is one whose place is known, and that by its Ethernet header.
    fn destinations(
        &mut self,
        now_ns: u64,
        from: PortId,
        view: &View<'_>,
        admitted: &Admitted,
        to: &mut Vec<Egress>,
    ) -> Result<bool, Reason> {
        let (now_s, vid, destination) = (seconds(now_ns), admitted.vid, view.destination());
        if !destination.is_group() {
            let known = self.table.look_up(now_s, destination, vid);
            let known = known.or_else(|| {
                let mut owners = owners_of(&self.owners, destination);
                owners.find(|id| self.spec(*id).is_some_and(|spec| spec.is_member(vid)))
            });
            let known = known.and_then(|id| Some((id, self.spec(id)?)));
            if let Some((id, spec)) = known
                && spec.is_member(vid)
                && !spec.mirror_only
            {
                if id == from {
                    return Err(Reason::SamePort);
                }
                if spec.standby.has(vid) {
                    return Err(Reason::Standby);
                }
                if spec.private && self.port(from).is_some_and(|port| port.spec.private) {
                    return Err(Reason::PrivatePort);
                }
                to.push(Egress { port: id, edit: spec.edit(vid, admitted.came), mirror: false });
                return Ok(true);
            }
        }
        let port = self.port(from).ok_or(Reason::PortDown)?;
        let storm = &port.spec.storm;
        let (meter, reason) = match destination {
            Mac::BROADCAST => (&storm.broadcast, Reason::StormBroadcast),
            group if group.is_group() => (&storm.multicast, Reason::StormMulticast),
            _ => (&storm.unknown, Reason::StormUnknown),
        };
        if let Some(meter) = meter
            && !meter.take(now_ns, 1)
        {
            return Err(reason);
        }
        let (private, quota) = (port.spec.private, port.spec.groups_max);
        let router = port.spec.guard.router;
        let audience = match Packet::of(view) {
            Packet::Ip(ip) if reason == Reason::StormMulticast => {
                // Other private ports do not hear what a private one asks.
                let may = (quota, router, router && !private);
                let audience = self.groups.hear(now_s, (from, vid), view, &ip, may);
                self.news = self.news.or_else(|| self.groups.take_told().map(News::Group));
                audience
            }
            _ => Audience::Everybody,
        };
        let mut standby = false;
        for (index, port) in self.ports.iter().enumerate() {
            let (id, Some(Port { spec, .. })) = (PortId(index as u16), port) else { continue };
            let reaches = id != from && spec.is_member(vid) && !spec.mirror_only;
            let may = reaches && !(private && spec.private);
            standby |= may && spec.standby.has(vid);
            if may && !spec.standby.has(vid) && self.groups.is_of(now_s, vid, id, audience) {
                to.push(Egress { port: id, edit: spec.edit(vid, admitted.came), mirror: false });
            }
        }
        match to.is_empty() {
            true if standby => Err(Reason::Standby),
            true => Err(Reason::NoTxTarget),
            false => Ok(false),
        }
    }

    /// Adds one copy, as it came, for each port that watches one of those that have to do with the frame.
    fn mirror(&self, from: PortId, to: &mut Vec<Egress>) {
        let targets = to.len();
        for index in 0..=targets {
            let id = if index == targets { from } else { to[index].port };
            let Some(port) = self.port(id).and_then(|port| port.spec.mirror) else { continue };
            let watches = self.port(port).is_some_and(|port| port.spec.mirror_only);
            if watches && !to[targets..].iter().any(|egress| egress.port == port) {
                to.push(Egress { port, edit: TagEdit::Keep, mirror: true });
            }
        }
    }
}

/// The ports that have that guarded address.
fn owners_of(owners: &BTreeSet<(Mac, PortId)>, mac: Mac) -> impl Iterator<Item = PortId> {
    owners.range((mac, PortId(0))..=(mac, PortId(u16::MAX))).map(|(_, id)| *id)
}

/// Tables count in seconds.
fn seconds(now_ns: u64) -> u32 {
    (now_ns / 1_000_000_000) as u32
}

#[cfg(test)]
mod tests;
