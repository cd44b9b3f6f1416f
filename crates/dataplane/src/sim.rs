//! The rooms of a data plane for the simulator: its channels, its devices and the queues of its clients, as they are. What a session reads from
//! its socket the simulator says; volumes it has opened.

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use block::Volume;
use channel::{ChannelConfig, Drain, StopReason};
use device_scsi::Unit;
use protocol::stats::{QueueCounter, StatsRegion};
use spec::{AdapterSpec, UnitSpec, VolumeSpec};
use vring::driver::{DriverAddresses, DriverConfig};
use vring::{InflightRegion, RegionSpec};

use crate::devices::{AnyDevice, Backing, Channel, Services};
use crate::journal::{Journal, Relay};
use crate::queues::{AdapterContext, Queues, RingAddress, feature};
use crate::storage::{OpenVolume, Storage};

/// What a data plane has for all its clients.
pub struct House {
    channels: Arc<Vec<Channel>>,
    services: Arc<Services>,
    stats: Arc<StatsRegion>,
    storage: Storage,
}

/// The log of all simulations: its thread hears of queues that break.
static RELAY: OnceLock<Relay> = OnceLock::new();

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
        let (services, stats) = (Arc::new(services), Arc::clone(stats));
        Ok(House { channels, services, stats, storage: Storage::default() })
    }

    /// How many channels there are.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
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
        self.services.scsi.add_unit(&unit.unit, &name, keep);
        self.storage.put_unit(unit);
        Ok(())
    }

    /// An adapter whose client has connected.
    ///
    /// # Errors
    ///
    /// When its specification makes no sense.
    pub fn connect(&self, spec: AdapterSpec, front: Front) -> Result<Session, String> {
        let whose = spec.name.clone();
        let on_stop = move |queue: u16, reason: StopReason| {
            panic!("queue {queue} of {whose} stops: {reason}")
        };
        let adapter = Arc::new(channel::Adapter::new(&spec.name, Box::new(on_stop)));
        adapter.set_wait(spec.wait);
        let backing = Backing::of(&spec, &self.storage);
        let device = AnyDevice::new(&spec, &backing, &adapter, &self.services, &self.stats)?;
        let device = Arc::new(device);
        let relay = RELAY.get_or_init(|| Relay::start().expect("a thread")).clone();
        let whose = spec.name.clone();
        let context = AdapterContext {
            channels: Arc::clone(&self.channels),
            known_as: Arc::clone(&adapter),
            device: Arc::clone(&device),
            stats: Arc::clone(&self.stats),
            journal: Arc::new(Journal::new(&spec.name, relay)),
            on_failure: Box::new(move |queue, what| {
                panic!("queue {queue} of {whose} does not start: {what}")
            }),
        };
        let mut queues = Queues::new(context, spec.queues + device.fixed_queues(), Vec::new());
        let Front { config, regions, inflight } = front;
        let mut features = feature::VERSION_1 | feature::PROTOCOL_FEATURES | device.features(&spec);
        for (has, bit) in [
            (config.event_idx, feature::EVENT_IDX),
            (config.indirect_max > 0, feature::INDIRECT_DESC),
            (config.in_order, feature::IN_ORDER),
        ] {
            features |= if has { bit } else { 0 };
        }
        device.negotiated(features);
        queues.set_features(features);
        queues.set_memory(regions)?;
        if let Some(region) = inflight {
            queues.set_inflight(region);
        }
        Ok(Session { queues, device, spec })
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.services.stop();
    }
}

/// What a front end says before it speaks of its rings.
#[derive(Debug)]
pub struct Front {
    /// What its driver has negotiated of rings.
    pub config: DriverConfig,
    /// Its memory.
    pub regions: Vec<RegionSpec>,
    /// The in-flight region that it keeps.
    pub inflight: Option<InflightRegion>,
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

/// The session of a client. Its methods wait for channels as a session's thread does.
pub struct Session {
    queues: Queues,
    device: Arc<AnyDevice>,
    spec: AdapterSpec,
}

impl Session {
    /// Everything about a ring, but whether it is enabled.
    pub fn set_ring(&mut self, ring: Ring) {
        let Ring { number, size, addresses, base, kick, call } = ring;
        let index = usize::from(number);
        let DriverAddresses { desc, avail, used, used_guest } = addresses;
        self.queues.name(index);
        self.queues.set_size(index, size);
        self.queues.set_base(index, base);
        let address = RingAddress { desc, used, avail, used_log: Some(used_guest) };
        self.queues.set_address(index, address);
        self.queues.set_call(index, Some(call));
        self.queues.set_kick(index, Some(kick));
    }

    /// `VHOST_USER_SET_VRING_ENABLE`.
    pub fn enable(&mut self, number: u16, enabled: bool) {
        self.queues.set_enabled(usize::from(number), enabled);
    }

    /// A queue goes to another channel.
    pub fn place(&mut self, number: u16, channel: usize) {
        self.queues.place_one(usize::from(number), channel);
    }

    /// The client tells its memory anew.
    ///
    /// # Errors
    ///
    /// When it cannot be mapped.
    pub fn set_memory(&mut self, regions: Vec<RegionSpec>) -> Result<(), String> {
        self.queues.set_memory(regions)
    }

    /// The adapter gets another specification while its client is there.
    ///
    /// # Errors
    ///
    /// When its channels cannot serve it.
    pub fn change(&mut self, house: &House, spec: AdapterSpec) -> Result<(), String> {
        let backing = Backing::of(&spec, &house.storage);
        self.device.set_backing(&spec, &backing, &mut self.queues)?;
        self.spec = spec;
        Ok(())
    }

    /// The specification now.
    #[must_use]
    pub fn spec(&self) -> &AdapterSpec {
        &self.spec
    }

    /// How often a command of a queue had to wait for a segment list.
    #[must_use]
    pub fn waits_for_lists(&self, number: u16) -> u64 {
        let counted = self.queues.counted(usize::from(number));
        counted.map_or(0, |stats| stats.get(QueueCounter::WaitNoDma))
    }

    /// High-water marks begin again.
    pub fn reset_marks(&self) {
        self.queues.reset_marks();
        self.device.reset_marks();
    }

    /// The client goes, or its adapter is removed. Nothing of it is in flight afterwards.
    pub fn leave(&mut self, removed: bool) {
        self.queues.end_session(if removed { Drain::SkipWaits } else { Drain::Ordinary });
        self.device.client_lost();
        self.queues.release_stats();
        self.device.removed();
    }

    /// After [`Session::leave`]: the client comes again, to the same adapter or to one like it.
    ///
    /// # Errors
    ///
    /// As [`House::connect`].
    pub fn come(&mut self, house: &House, front: Front) -> Result<(), String> {
        *self = house.connect(self.spec.clone(), front)?;
        Ok(())
    }
}
