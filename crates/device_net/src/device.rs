//! The network device of an adapter: what it is for the session of its client.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU16, AtomicU64};
use std::sync::{Arc, Mutex};

use channel::Never;
use channel::device::{
    AskChannels, Device, Making, Party, Presence, Queues, Resized, Tell, Written,
};
use protocol::message::{AdapterSpec, DeviceSpec};
use spec::{EthernetSpec, GuardSpec};
use switch::{Guard, Mac, Offloads, PortSpec, Prefix, Takes, Vid, Vids};

use crate::bounds::Bounds;
use crate::config::{self, feature};
use crate::handler::{Behind, NetHandler};
use crate::network::{Network, Networks, Port};

/// The network device of an adapter.
#[derive(Debug)]
pub struct NetDevice {
    network: Arc<Network>,
    port: Arc<Port>,
    spec: Mutex<EthernetSpec>,
    /// Made anew where they change and kept where they do not: a client that connects again has no more for that.
    bounds: Mutex<Bounds>,
    features: AtomicU64,
    /// The MTU that the front end has told its guest.
    mtu: AtomicU16,
}

impl NetDevice {
    /// The port as its client negotiated it.
    fn port_spec(&self, features: u64) -> PortSpec {
        let spec = self.spec.lock().expect("a panic ends the process").clone();
        let asked = (spec.limit_tx, spec.limit_rx, spec.storm);
        let bounds = self.bounds.lock().expect("a panic ends the process").kept(asked);
        let takes = if spec.guest_offloads { config::takes(features) } else { Offloads::NONE };
        let told = self.mtu.load(Relaxed);
        let macs = if spec.any_mac { Vec::new() } else { vec![Mac(spec.mac)] };
        PortSpec {
            pvid: Vid::new(spec.pvid),
            vids: spec.vids.iter().copied().filter_map(Vid::new).collect::<Vids>(),
            takes: Takes { offloads: takes, mtu: usize::from(spec.mtu.min(told)) },
            may: config::may(features),
            guard: Guard { macs, ..guard(&spec.guard) },
            limit_in: bounds.limit_in,
            limit_out: bounds.limit_out,
            storm: bounds.storm,
            private: spec.private,
            mirror_only: spec.monitor,
            tagging: config::tagging(spec.tagging),
            ..PortSpec::access(Vid::new(1).expect("a VLAN"))
        }
    }

    /// The port takes part with what was negotiated, or not at all.
    fn show(&self) {
        let features = self.features.load(Relaxed);
        let mirror = self.spec.lock().expect("a panic ends the process").mirror.clone();
        let spec = (features != 0).then(|| self.port_spec(features));
        let _ = self.network.set(&self.port, spec, mirror.as_deref());
    }
}

/// What a client may say of itself, beside its MAC address.
fn guard(spec: &GuardSpec) -> Guard {
    let GuardSpec { addresses, dhcp_server, router } = spec;
    let addresses =
        addresses.iter().map(|it| Prefix { address: it.address, bits: it.bits }).collect();
    Guard { macs: Vec::new(), addresses, dhcp_server: *dhcp_server, router: *router }
}

impl Drop for NetDevice {
    fn drop(&mut self) {
        self.network.leave(&self.port);
    }
}

impl Device for NetDevice {
    type Handler = NetHandler;
    type Backing = ();
    type Service = Networks;

    // A pair: what comes by the one is answered by the other.
    const TOGETHER: u16 = 2;

    // QEMU 7.2 has a vhost device for each pair of queues, and says of each of them again which regions are added and removed.
    const ONE_TABLE: bool = true;

    const IN_RING_ORDER: bool = true;

    fn service(_: AskChannels<Never>) -> std::io::Result<Networks> {
        Ok(Networks::default())
    }

    fn new(
        spec: &AdapterSpec,
        (): &(),
        making: &Making<'_, Networks>,
    ) -> Result<Arc<NetDevice>, String> {
        let DeviceSpec::Ethernet(ethernet) = &spec.device else {
            return Err("it is no network device".to_owned());
        };
        let network = making.service.named(&ethernet.network);
        let port = network.join(&spec.name, spec.queues / 2);
        let (spec, features) = (Mutex::new(ethernet.clone()), AtomicU64::new(0));
        let mtu = AtomicU16::new(u16::MAX);
        let bounds = Mutex::default();
        Ok(Arc::new(NetDevice { network, port, spec, bounds, features, mtu }))
    }

    fn is_whole((): &()) -> bool {
        true
    }

    fn take_live_part(live: &mut AdapterSpec, next: &AdapterSpec) {
        if let (DeviceSpec::Ethernet(live), DeviceSpec::Ethernet(next)) =
            (&mut live.device, &next.device)
        {
            // What the client was told stays.
            let EthernetSpec { network, mac, mtu, .. } = live.clone();
            *live = EthernetSpec { network, mac, mtu, ..next.clone() };
        }
    }

    fn features(&self, spec: &AdapterSpec) -> u64 {
        let features = config::features(spec.queues);
        if spec.withholds("mq") { features & !feature::MQ } else { features }
    }

    fn config_space(&self, spec: &AdapterSpec) -> Vec<u8> {
        let ethernet = self.spec.lock().expect("a panic ends the process");
        config::space(&ethernet, spec.queues).to_vec()
    }

    fn set_config(&self, _: usize, _: &[u8], _: u64) -> Written {
        Written::No
    }

    fn negotiated(&self, features: u64) {
        self.features.store(features, Relaxed);
        self.show();
    }

    fn feature_names(&self) -> Vec<&'static str> {
        let named = [
            (feature::MRG_RXBUF, "mrg_rxbuf"),
            (feature::GUEST_CSUM, "guest_csum"),
            (feature::GUEST_TSO4, "guest_tso4"),
            (feature::HOST_TSO4, "host_tso4"),
            (feature::GUEST_USO4, "guest_uso4"),
            (feature::HOST_USO, "host_uso"),
            (feature::IN_ORDER, "in_order"),
            (feature::MQ, "mq"),
        ];
        let features = self.features.load(Relaxed);
        named.iter().filter(|(bit, _)| features & bit != 0).map(|(_, name)| *name).collect()
    }

    fn set_mtu(&self, mtu: u64) -> Result<(), String> {
        const MTU_MIN: u16 = 68;
        let most = self.spec.lock().expect("a panic ends the process").mtu;
        let fits = u16::try_from(mtu).ok().filter(|mtu| (MTU_MIN..=most).contains(mtu));
        let Some(mtu) = fits else {
            return Err(format!(
                "the front end tells its guest an MTU of {mtu}, and the network has {most}: \
                 set `host_mtu` of the device to that, or the network's `mtu`"
            ));
        };
        self.mtu.store(mtu, Relaxed);
        self.show();
        Ok(())
    }

    fn announce(&self, station: [u8; 6]) -> Result<(), String> {
        self.network.announce(&self.port, Mac(station));
        Ok(())
    }

    fn reset(&self) {
        self.network.reset(&self.port);
    }

    fn client_lost(&self) {
        self.reset();
        self.features.store(0, Relaxed);
        self.mtu.store(u16::MAX, Relaxed);
        self.show();
    }

    fn presence(&self, queue: u16, presence: Presence) {
        if queue.is_multiple_of(2) {
            let open = presence != Presence::Absent;
            self.port.pairs[usize::from(queue / 2)].open.store(open, Relaxed);
        }
    }

    fn behind(&self, index: u16, features: u64) -> Option<Behind> {
        if index.is_multiple_of(2) {
            self.port.pairs[usize::from(index / 2)].make_inbox().ok()?;
        }
        let (network, port) = (Arc::clone(&self.network), Arc::clone(&self.port));
        Some(Behind { network, port, features, uplink: None })
    }

    fn party(&self) -> Option<Party> {
        Some(Party { network: self.network.number(), port: self.port.id.0, unit: 0 })
    }

    fn talks(&self, each: &mut dyn FnMut(Party, Party, u64)) {
        let network = self.network.number();
        for (unit, pair) in (0..).zip(&self.port.pairs) {
            let from = Party { network, port: self.port.id.0, unit };
            for (port, unit, frames) in pair.talks.each() {
                each(from, Party { network, port: port.0, unit }, frames);
            }
        }
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn set_backing(
        &self,
        spec: &AdapterSpec,
        (): &(),
        _: &mut dyn Queues<Never>,
    ) -> Result<(), String> {
        if let DeviceSpec::Ethernet(ethernet) = &spec.device {
            self.spec.lock().expect("a panic ends the process").clone_from(ethernet);
            self.show();
        }
        Ok(())
    }

    fn resized(&self, _: &AdapterSpec, _: &Resized<'_>) -> Tell<Never> {
        Tell::Nothing
    }
}
