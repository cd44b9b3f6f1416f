//! A request queue inside its channel: the task of each command, and what leads to each logical unit.

use std::rc::Rc;
use std::sync::Arc;

use block::{LaneId, Volume};
use channel::elements::{QueueElements, Wake};
use channel::{Adapter, Io, NO_PART};
use memory::IoBuf;
use protocol::stats::LunStats;
use scsi::{Class, LogicalUnit, Nexus, Task, Writer};
use vring::Head;

use crate::control::Management;
use crate::handler::{Behind, OfChannel, Shared};
use crate::limits::ScsiLimits;
use crate::link::{LinkState, Seat};
use crate::luns::{LunEntry, LunMap};
use crate::off_path::{AbortReason, Services};
use crate::scratch::{OwnScratch, ScratchId};
use crate::{Place, Range};

/// What a paused task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// A moment.
    Time,
    /// Scratch memory.
    Scratch,
    /// Its reservations to be stored.
    Store,
    /// Commands to be aborted everywhere.
    Abort,
}

/// What a command has besides its [`channel::Command`]: that of the same head. Read and written by its channel alone.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Slot {
    pub(crate) task: Task,
    pub(crate) out_bytes: u64,
    pub(crate) in_bytes: u64,
    pub(crate) data_out: Range,
    pub(crate) data_in: Range,
    /// The client's name for it.
    pub(crate) id: u64,
    pub(crate) lane: Option<LaneId>,
    /// What leads to its logical unit; [`NO_PART`]: it is for none.
    pub(crate) binding: u16,
    pub(crate) class: Class,
    /// It is being aborted.
    pub(crate) reason: Option<AbortReason>,
    /// The request that is out works on `piece`.
    pub(crate) from_scratch: bool,
    pub(crate) is_cut: bool,
    pub(crate) scratch: Option<ScratchId>,
    pub(crate) pause: Pause,
    pub(crate) response: Range,
    pub(crate) piece: IoBuf,
    /// Buffers that were shortened for the request that is out, and where they belong.
    pub(crate) cut: [Option<(u16, IoBuf)>; 2],
}

impl Slot {
    fn free() -> Slot {
        Slot {
            task: Task::new(),
            out_bytes: 0,
            in_bytes: 0,
            data_out: Range::default(),
            data_in: Range::default(),
            id: 0,
            lane: None,
            binding: NO_PART,
            class: Class::Other,
            reason: None,
            from_scratch: false,
            is_cut: false,
            scratch: None,
            pause: Pause::Time,
            response: Range::default(),
            piece: IoBuf::EMPTY,
            cut: [None, None],
        }
    }
}

/// What leads from a queue to a logical unit that its client sees, or saw, while commands are under way.
pub(crate) struct Binding {
    pub(crate) target: u8,
    pub(crate) lun: u16,
    pub(crate) nexus: Arc<Nexus>,
    pub(crate) volume: Option<Arc<dyn Volume>>,
    pub(crate) lane: Option<LaneId>,
    pub(crate) writer: Rc<Writer>,
    /// Where the LUN is counted on this channel.
    pub(crate) stats: Option<LunStats>,
    /// It is not in the map any more.
    pub(crate) gone: bool,
}

/// A request queue.
pub(crate) struct Requests {
    /// By head.
    pub(crate) slots: Box<[Slot]>,
    pub(crate) bindings: Vec<Option<Binding>>,
    /// Binding of each entry of the map.
    pub(crate) places: Vec<u16>,
    pub(crate) map: Arc<LunMap>,
    /// The address that was asked for last, and its binding. Address 0 names nothing.
    last: (u64, u16),
    pub(crate) limits: ScsiLimits,
    pub(crate) elements: QueueElements,
    link: Seat,
    /// The link was down when the queue last looked, and no more awaited: no address leads anywhere.
    pub(crate) is_cut: bool,
    /// It stays so, since the queue stops while its link is awaited.
    stays_cut: bool,
    adapter: Arc<Adapter>,
    pub(crate) services: Arc<Services>,
    pub(crate) shared: Rc<OfChannel>,
    /// Scratch memory of its own.
    pub(crate) scratch: OwnScratch,
    /// What was said of its ring before it came.
    pub(crate) owed: Vec<Management>,
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Requests").field("adapter", &self.adapter.name).finish_non_exhaustive()
    }
}

impl Requests {
    /// Without any logical unit yet.
    pub(crate) fn new(
        size: u16,
        behind: &Behind,
        shared: &Shared,
        adapter: &Arc<Adapter>,
        wakes: [Wake; 2],
    ) -> Requests {
        let [wake, of_link] = wakes;
        let limits = ScsiLimits { local: behind.limits.local.max(1), ..behind.limits };
        let elements = QueueElements::new(&behind.elements, behind.place, limits.local, wake);
        Requests {
            slots: std::iter::repeat_with(Slot::free).take(usize::from(size)).collect(),
            bindings: Vec::new(),
            places: Vec::new(),
            map: Arc::new(LunMap::empty()),
            last: (0, 0),
            limits,
            elements,
            link: behind.link.sit(of_link),
            is_cut: false,
            stays_cut: false,
            adapter: Arc::clone(adapter),
            services: Arc::clone(&behind.services),
            shared: Rc::clone(&shared.0),
            scratch: OwnScratch::default(),
            owed: Vec::new(),
        }
    }

    /// Whether nothing is taken, since the link may come back.
    #[inline]
    pub(crate) fn pauses(&mut self) -> bool {
        let state = self.link.state();
        if self.is_cut != (self.stays_cut || state == LinkState::Down) {
            (self.is_cut, self.last) = (!self.is_cut, (0, 0));
        }
        state == LinkState::Held
    }

    /// What is begun from now on came while the link was awaited, which nobody does any longer.
    pub(crate) fn cut(&mut self) {
        (self.is_cut, self.stays_cut, self.last) = (true, true, (0, 0));
    }

    /// The binding of an address.
    #[inline]
    pub(crate) fn find(&mut self, address: [u8; 8]) -> Option<u16> {
        let word = u64::from_ne_bytes(address);
        if word == self.last.0 && word != 0 {
            return Some(self.last.1);
        }
        if self.is_cut {
            return None;
        }
        let binding = self.search(address)?;
        self.last = (word, binding);
        Some(binding)
    }

    /// As [`Requests::find`], without a memory.
    pub(crate) fn search(&self, address: [u8; 8]) -> Option<u16> {
        let Place::Unit { target, lun } = Place::decode(address) else { return None };
        self.places.get(self.map.find(target, lun)?).copied()
    }

    pub(crate) fn binding(&self, binding: u16) -> Option<&Binding> {
        self.bindings.get(usize::from(binding))?.as_ref()
    }

    /// The way of a command to its volume.
    pub(crate) fn lane_of(&self, head: Head) -> Option<LaneId> {
        self.binding(self.slots[usize::from(head.0)].binding)?.lane
    }

    /// Where what a binding leads to is counted, if it is.
    #[inline]
    pub(crate) fn lun_stats(&self, binding: u16) -> Option<LunStats> {
        self.binding(binding)?.stats
    }

    /// The shortest and the longest times of all its LUNs begin again on this channel.
    pub(crate) fn reset_extremes(&self) {
        let counted = self.bindings.iter().flatten().filter_map(|binding| binding.stats);
        counted.for_each(LunStats::reset_extremes);
    }

    /// Makes way to the entries of another map, and puts it in the place of the old one. The bindings that are gone are returned,
    /// and stay until [`Requests::release`].
    pub(crate) fn remap(&mut self, map: Arc<LunMap>, io: &mut Io) -> Result<Vec<u16>, String> {
        let live = self.bindings.iter().flatten().count();
        if live + map.entries().len() > usize::from(u16::MAX) {
            return Err("more logical units than a queue can have".to_owned());
        }
        let mut places = Vec::with_capacity(map.entries().len());
        let mut made = Vec::new();
        for (target, lun, entry) in map.entries() {
            let same = self.map.find(target, lun).and_then(|number| self.places.get(number));
            let same = same.copied().filter(|place| {
                self.binding(*place).is_some_and(|binding| {
                    Arc::ptr_eq(&binding.nexus, &entry.nexus)
                        && same_volume(binding.volume.as_ref(), entry.volume.as_ref())
                })
            });
            let place = match same {
                Some(place) => place,
                None => match self.bind(io, (target, lun.number()), entry) {
                    Ok(binding) => {
                        let place = self.insert(binding);
                        made.push(place);
                        place
                    }
                    Err(what) => {
                        made.iter().for_each(|place| self.release(*place, io));
                        return Err(what);
                    }
                },
            };
            places.push(place);
        }
        let kept: std::collections::BTreeSet<u16> = places.iter().copied().collect();
        let mut gone = Vec::new();
        for (place, binding) in (0..).zip(&mut self.bindings) {
            let Some(binding) = binding else { continue };
            if !binding.gone && !kept.contains(&place) {
                binding.gone = true;
                gone.push(place);
            }
        }
        (self.places, self.map, self.last) = (places, map, (0, 0));
        Ok(gone)
    }

    fn insert(&mut self, binding: Binding) -> u16 {
        let free = self.bindings.iter().position(Option::is_none);
        let place = free.unwrap_or(self.bindings.len());
        if place == self.bindings.len() {
            self.bindings.push(None);
        }
        self.bindings[place] = Some(binding);
        // `remap` has seen that it fits.
        place as u16
    }

    fn bind(
        &self,
        io: &mut Io,
        (target, lun): (u8, u16),
        entry: &LunEntry,
    ) -> Result<Binding, String> {
        let volume = entry.volume.clone();
        let lane = volume.as_ref().map(|volume| io.lanes.acquire(volume, &mut io.ring));
        let lane = lane.transpose().map_err(|error| error.to_string())?;
        let nexus = Arc::clone(&entry.nexus);
        let writer = self.shared.writers.borrow_mut().acquire(nexus.unit());
        let stats = self.services.region.as_ref().and_then(|region| {
            let mut counted = self.shared.counted.borrow_mut();
            counted.acquire(&self.adapter, region, (target, lun), io.channel())
        });
        Ok(Binding { target, lun, nexus, volume, lane, writer, stats, gone: false })
    }

    /// Lets go of a logical unit that no command uses.
    pub(crate) fn release(&mut self, place: u16, io: &mut Io) {
        let binding = self.bindings.get_mut(usize::from(place)).and_then(Option::take);
        let binding = binding.expect("a binding is released once");
        if let Some(lane) = binding.lane {
            io.lanes.release(lane, &mut io.ring);
        }
        if let (Some(region), Some(_)) = (&self.services.region, binding.stats) {
            let (place, gone) = ((binding.target, binding.lun), binding.gone);
            let mut counted = self.shared.counted.borrow_mut();
            counted.release(&self.adapter, region, place, io.channel(), gone);
        }
        let unit = Arc::clone(binding.nexus.unit());
        drop(binding);
        self.shared.writers.borrow_mut().tidy(&unit);
    }

    /// Lets go of all of them.
    pub(crate) fn release_all(&mut self, io: &mut Io) {
        for place in 0..self.bindings.len() as u16 {
            if self.bindings[usize::from(place)].is_some() {
                self.release(place, io);
            }
        }
        (self.places, self.last) = (Vec::new(), (0, 0));
    }

    /// Every I_T nexus of a target forgets that LUNs have changed: REPORT LUNS has told it (SAM-5, 5.14.6).
    pub(crate) fn forget_changed_luns(&self, target: u8) {
        for binding in self.bindings.iter().flatten().filter(|binding| binding.target == target) {
            binding.nexus.forget(scsi::Attention::LunsChanged);
        }
    }
}

fn same_volume(one: Option<&Arc<dyn Volume>>, other: Option<&Arc<dyn Volume>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

/// The writers of a channel: one for each logical unit that any of its queues leads to.
#[derive(Default)]
pub(crate) struct Writers(Vec<(Arc<LogicalUnit>, Rc<Writer>)>);

impl std::fmt::Debug for Writers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Writers").field(&self.0.len()).finish()
    }
}

impl Writers {
    fn acquire(&mut self, unit: &Arc<LogicalUnit>) -> Rc<Writer> {
        if let Some((_, writer)) = self.0.iter().find(|(each, _)| Arc::ptr_eq(each, unit)) {
            return Rc::clone(writer);
        }
        let writer = Rc::new(unit.writer());
        self.0.push((Arc::clone(unit), Rc::clone(&writer)));
        writer
    }

    /// A queue has let go of the unit.
    fn tidy(&mut self, unit: &Arc<LogicalUnit>) {
        self.0.retain(|(each, writer)| !Arc::ptr_eq(each, unit) || Rc::strong_count(writer) > 1);
    }
}

#[cfg(test)]
mod tests {
    use channel::elements::{Elements, Share};

    use super::*;
    use crate::limits::ScsiRole;

    /// Sessions make them one after the other on one thread, and the allocator puts them side by side.
    #[test]
    fn the_slots_of_two_queues_share_no_cache_line() {
        const LINE: usize = 128;
        let limits = ScsiLimits {
            local: 8,
            buffers: 10,
            functions: 512,
            inout: false,
            sizes: Default::default(),
        };
        let adapter = Arc::new(Adapter::new("a", Box::new(|_, _| ())));
        let services = Services { off_path: Box::new(|_| ()), region: None };
        let elements = Elements::alone(Share { elements: 8, weight: 1 }, 16);
        let behind = Behind {
            role: ScsiRole::Request,
            place: 0,
            luns: Arc::new(LunMap::empty()),
            elements,
            limits,
            link: crate::link::Link::alone(),
            services: Arc::new(services),
            owed: Vec::new(),
        };
        for size in [1, 2, 64, 256] {
            let new = |place| {
                let behind = Behind { place, ..behind.clone() };
                let wakes: [Wake; 2] = [Box::new(|| ()), Box::new(|| ())];
                Requests::new(size, &behind, &Shared::default(), &adapter, wakes)
            };
            let queues: Vec<Requests> = (0..16).map(new).collect();
            let mut lines: Vec<(usize, usize)> = queues
                .iter()
                .map(|queue| queue.slots.as_ptr_range())
                .map(|range| (range.start.addr() / LINE, (range.end.addr() - 1) / LINE))
                .collect();
            lines.sort_unstable();
            for pair in lines.windows(2) {
                assert!(pair[0].1 < pair[1].0, "queues of {size}: {pair:x?}");
            }
        }
    }
}
