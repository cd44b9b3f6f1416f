//! The rooms of a data plane for the simulator: its channels, its devices, its sessions and the queues of its clients, as they are. The threads of
//! sessions are the simulator's; volumes it has opened.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock};

use block::Volume;
use channel::device::Resized;
use channel::{ChannelConfig, Drain};
use device_scsi::Unit;
use protocol::stats::{QueueCounter, StatsRegion};
use spec::{AdapterSpec, UnitSpec, VolumeSpec};
use vring::driver::{DriverAddresses, DriverConfig};
use vring::{InflightRegion, RegionSpec};

use crate::acceptor::Acceptor;
use crate::adapter::{Condition, PlaneContext, Shared};
use crate::carrier::Carriers;
use crate::devices::{Backing, Channel, Services};
use crate::journal::{Journal, Relay};
use crate::outside::Outside;
use crate::queues::{RingAddress, feature};
use crate::storage::{OpenVolume, Storage};

mod plane;
mod wire;

pub use plane::{Handler, end_threads, hold};
pub(crate) use plane::{belongs, held, stats};

use wire::Wire;

/// What a data plane has for all its clients.
pub struct House {
    context: PlaneContext,
    storage: Storage,
}

/// What all simulations have: the thread of the log, and an acceptor, to which nobody comes.
static COMMON: OnceLock<(Relay, Acceptor)> = OnceLock::new();

pub(crate) fn common() -> (Relay, Acceptor) {
    let common = || (Relay::start().expect("a thread"), Acceptor::start().expect("a thread"));
    COMMON.get_or_init(common).clone()
}

impl House {
    /// Starts channels and services.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn start(
        channels: impl IntoIterator<Item = ChannelConfig>,
        stats: &Arc<StatsRegion>,
    ) -> Result<House, String> {
        stats.renew();
        let start = |config: ChannelConfig| {
            let stats = stats.channel(config.index as usize);
            Channel::start(config, stats).map_err(|error| error.to_string())
        };
        let channels: Vec<Channel> =
            channels.into_iter().map(start).collect::<Result<_, String>>()?;
        let channels = Arc::new(channels);
        let services = Services::start(&channels).map_err(|error| error.to_string())?;
        let (relay, acceptor) = common();
        let outside = Arc::new(Outside::of(false));
        let context = PlaneContext {
            channels,
            stats: Arc::clone(stats),
            services: Arc::new(services),
            relay,
            carriers: Carriers::new(&outside),
            outside,
            acceptor,
            // Whoever simulates opens LUs, as it does volumes.
            pools: None,
            keeps_one: Arc::default(),
        };
        Ok(House { context, storage: Storage::default() })
    }

    /// How many channels there are.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.context.channels.len()
    }

    /// A volume that is open.
    pub fn put_volume(&mut self, spec: VolumeSpec, volume: Arc<dyn Volume>) {
        let open = OpenVolume { spec, volume, notes: Vec::new(), identity: None, known: None };
        self.storage.put_volume(open);
    }

    /// A unit, on a volume that is there.
    ///
    /// # Errors
    ///
    /// When it makes no sense.
    pub fn put_unit(&mut self, spec: UnitSpec) -> Result<(), String> {
        let volume = spec.volume.as_ref().and_then(|name| self.storage.volumes.get(name));
        let volume = volume.map(|open| Arc::clone(&open.volume));
        let (name, keep) = (spec.name.clone(), spec.keep.clone());
        let unit = Unit::new(spec, volume, None).map_err(|failure| failure.message)?;
        self.context.services.scsi.add_unit(&unit.unit, &name, keep);
        self.storage.put_unit(unit);
        Ok(())
    }

    /// A unit is made anew, as where its mask or its path changes: nobody sees it.
    ///
    /// # Errors
    ///
    /// As [`House::put_unit`].
    ///
    /// # Panics
    ///
    /// When there is none of this name.
    pub fn remake_unit(&mut self, name: &str) -> Result<(), String> {
        let old = self.storage.units[name].clone();
        let before = (!memory::planted("unit-anew")).then_some(&*old.unit);
        let volume = old.medium.volume().map(Arc::clone);
        let unit =
            Unit::new(old.spec.clone(), volume, before).map_err(|failure| failure.message)?;
        self.context.services.scsi.add_unit(&unit.unit, name, old.spec.keep.clone());
        self.storage.put_unit(unit);
        Ok(())
    }

    /// A volume gets another size, under the clients of these sessions; `done` is called as soon as it has it.
    ///
    /// # Errors
    ///
    /// When it cannot have it.
    ///
    /// # Panics
    ///
    /// When there is none of this name.
    pub fn resize(
        &mut self,
        sessions: &[Session],
        name: &str,
        bytes: u64,
        done: &mut dyn FnMut(),
    ) -> Result<(), String> {
        let open = self.storage.volumes.get_mut(name).expect("a volume");
        if open.is_cut_by(bytes) && !memory::planted("cut-running") {
            let mut open = self.storage.take_out(name).expect("it was there");
            self.renew(sessions)?;
            let resized = open.resize(bytes);
            done();
            self.storage.put_in(open);
            self.renew(sessions)?;
            resized.map_err(|error| error.to_string())?;
        } else {
            open.resize(bytes).map_err(|error| error.to_string())?;
            done();
        }
        let (geometry, units) = self.storage.resized(name);
        let resized = Resized { volume: name, geometry: &geometry, units: &units };
        sessions.iter().for_each(|session| session.shared.resized(&resized));
        Ok(())
    }

    /// Puts what there is now behind the adapters.
    fn renew(&self, sessions: &[Session]) -> Result<(), String> {
        let renew = |session: &Session| {
            let spec = session.shared.spec();
            session.shared.set_backing(&spec, &Backing::of(&spec, &self.storage))
        };
        sessions.iter().map(renew).fold(Ok(()), Result::and)
    }

    /// An adapter whose client has connected.
    ///
    /// # Errors
    ///
    /// When its specification makes no sense, or what the client says.
    pub fn connect(&self, spec: AdapterSpec, front: Front) -> Result<Session, String> {
        let shared = self.adapter(spec)?;
        let wire = front.in_bytes.then(|| Wire::new(&shared));
        let mut session = Session { shared, wire };
        session.greet(front)?;
        Ok(session)
    }

    fn adapter(&self, spec: AdapterSpec) -> Result<Arc<Shared>, String> {
        let condition = Arc::new(Mutex::new(Condition::default()));
        let journal = Arc::new(Journal::new(&spec.name, self.context.relay.clone()));
        let backing = Backing::of(&spec, &self.storage);
        Shared::new(&self.context, spec, &backing, condition, journal, Vec::new()).map(Arc::new)
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.context.services.stop();
    }
}

/// What a front end says before it speaks of its rings.
#[derive(Debug)]
pub struct Front {
    /// What its driver has negotiated of rings.
    pub config: DriverConfig,
    /// Its memory.
    pub regions: Vec<RegionSpec>,
    /// The in-flight region that it keeps, and its file, of so many queues of such a size.
    pub inflight: Option<(InflightRegion, File, u16, u16)>,
    /// It speaks in bytes, through a socket.
    pub in_bytes: bool,
}

/// What it says of a ring.
#[derive(Debug)]
pub struct Ring {
    /// Which it is.
    pub number: u16,
    /// Its size.
    pub size: u16,
    /// Where it is.
    pub addresses: DriverAddresses,
    /// Where the server begins.
    pub base: u16,
    /// What it kicks.
    pub kick: OwnedFd,
    /// What it hears.
    pub call: OwnedFd,
}

/// The session of a client. Its methods wait for channels as a session's thread does. What the client says comes in bytes through a socket, which the
/// shipped session reads, or is told to the queues at once, which takes less time.
pub struct Session {
    shared: Arc<Shared>,
    wire: Option<Wire>,
}

impl Session {
    /// What a front end says first.
    fn greet(&mut self, front: Front) -> Result<(), String> {
        let Front { config, regions, inflight, .. } = front;
        let mut features = feature::VERSION_1 | feature::PROTOCOL_FEATURES;
        features |= self.shared.device.features(&self.shared.spec());
        for (has, bit) in [
            (config.event_idx, feature::EVENT_IDX),
            (config.indirect_max > 0, feature::INDIRECT_DESC),
        ] {
            features |= if has { bit } else { 0 };
        }
        if let Some(wire) = &mut self.wire {
            wire.greet(&self.shared, features)?;
            wire.set_memory(&self.shared, &regions)?;
        } else {
            self.shared.device.negotiated(features);
            let mut queues = self.shared.queues();
            queues.set_features(features);
            queues.set_memory(regions)?;
        }
        if config.in_order {
            // Queues can; no session offers it.
            let features = features | feature::IN_ORDER;
            self.shared.queues().set_features(features);
        }
        match (inflight, &mut self.wire) {
            (Some((_, file, count, size)), Some(wire)) => {
                wire.set_inflight(&self.shared, &file, (count, size))?;
            }
            (Some((region, ..)), None) => self.shared.queues().set_inflight(region),
            (None, _) => {}
        }
        Ok(())
    }

    /// Everything about a ring, but whether it is enabled.
    ///
    /// # Errors
    ///
    /// When the session refuses it.
    pub fn set_ring(&mut self, ring: Ring) -> Result<(), String> {
        if let Some(wire) = &mut self.wire {
            return wire.set_ring(&self.shared, &ring);
        }
        let Ring { number, size, addresses, base, kick, call } = ring;
        let index = usize::from(number);
        let DriverAddresses { desc, avail, used, used_guest } = addresses;
        let mut queues = self.shared.queues();
        queues.name(index);
        queues.set_size(index, size);
        queues.set_base(index, base);
        let address = RingAddress { desc, used, avail, used_log: Some(used_guest) };
        queues.set_address(index, address);
        queues.set_call(index, Some(call));
        queues.set_kick(index, Some(kick));
        Ok(())
    }

    /// `VHOST_USER_SET_VRING_ENABLE`.
    ///
    /// # Errors
    ///
    /// When the session refuses it.
    pub fn enable(&mut self, number: u16, enabled: bool) -> Result<(), String> {
        match &mut self.wire {
            Some(wire) => wire.enable(&self.shared, number, enabled),
            None => {
                self.shared.queues().set_enabled(usize::from(number), enabled);
                Ok(())
            }
        }
    }

    /// A queue goes to another channel.
    pub fn place(&mut self, number: u16, channel: usize) {
        self.shared.queues().place_one(usize::from(number), channel);
    }

    /// The client tells its memory anew.
    ///
    /// # Errors
    ///
    /// When it cannot be mapped.
    pub fn set_memory(&mut self, regions: Vec<RegionSpec>) -> Result<(), String> {
        match &mut self.wire {
            Some(wire) => wire.set_memory(&self.shared, &regions),
            None => self.shared.queues().set_memory(regions),
        }
    }

    /// The adapter gets another specification while its client is there.
    ///
    /// # Errors
    ///
    /// When its channels cannot serve it.
    pub fn change(&mut self, house: &House, spec: AdapterSpec) -> Result<(), String> {
        let backing = Backing::of(&spec, &house.storage);
        self.shared.become_live(spec, &backing)
    }

    /// The specification now.
    #[must_use]
    pub fn spec(&self) -> Arc<AdapterSpec> {
        self.shared.spec()
    }

    /// What the client broke. One that keeps the rules breaks nothing.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble()
    }

    /// What was counted for a queue; 0 while somebody was in the middle of something with the queues when the process died.
    #[must_use]
    pub fn counted(&self, number: u16, counter: QueueCounter) -> u64 {
        let Some(queues) = self.shared.queues_now() else { return 0 };
        let counted = queues.counted(usize::from(number));
        counted.map_or(0, |stats| stats.get(counter))
    }

    /// High-water marks begin again.
    pub fn reset_marks(&self) {
        self.shared.queues().reset_marks();
        self.shared.device.reset_marks();
    }

    /// The client goes, or its adapter is removed. Nothing of it is in flight afterwards.
    pub fn leave(&mut self, removed: bool) {
        let drain = if removed { Drain::SkipWaits } else { Drain::Ordinary };
        self.shared.queues().end_session(drain);
        self.shared.device.client_lost();
        if self.trouble().is_some() {
            self.shared.left();
        }
        if removed {
            self.shared.queues().release_stats();
            self.shared.device.removed();
        }
    }

    /// After [`Session::leave`]: the client comes again, to the same adapter, or to one like it if that was removed.
    ///
    /// # Errors
    ///
    /// As [`House::connect`].
    pub fn come(&mut self, house: &House, front: Front, removed: bool) -> Result<(), String> {
        if removed {
            self.shared = house.adapter(AdapterSpec::clone(&self.shared.spec()))?;
        }
        self.wire = front.in_bytes.then(|| Wire::new(&self.shared));
        self.greet(front)
    }
}
