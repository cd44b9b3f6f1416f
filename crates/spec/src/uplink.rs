//! Uplinks: what connects a network to the world outside.

use core::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{StormSpec, Tagging, is_default};

/// An uplink: a port of a network, behind which is an interface of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UplinkSpec {
    /// Its name.
    pub name: String,
    /// The virtual switch that it is connected to.
    pub network: String,
    /// What the interface is to it.
    #[serde(default, skip_serializing_if = "UplinkKind::is_tap")]
    pub kind: UplinkKind,
    /// The interface of the host.
    pub interface: String,
    /// The file of the network namespace that the interface is in, and [`FailoverSpec::link`]; none: that of whoever opens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<PathBuf>,
    /// Longest packet behind the Ethernet header, in bytes.
    pub mtu: u16,
    /// VLAN of its frames without a tag.
    pub pvid: u16,
    /// VLANs of its frames with a tag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vids: Vec<u16>,
    /// How it takes part in failover; none: it bridges whatever others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverSpec>,
    /// How much of what comes by it may go to many.
    #[serde(default, skip_serializing_if = "is_default")]
    pub storm: StormSpec,
    /// The card of its network, by name, that gets a copy of all that comes and goes by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<String>,
    /// Which tags say the VLAN of its frames.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tagging: Tagging,
    /// Its frames are handed over between the channels of clients and one that is its own, as far as there are two; else each channel bridges for the queues that it has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub thread: bool,
    /// What passes it is counted by station and VLAN.
    #[serde(default, skip_serializing_if = "is_default")]
    pub accounting: bool,
    /// The interfaces that stand for one, if it has several: the first one is [`UplinkSpec::interface`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<AggregateSpec>,
}

/// Several interfaces that are one uplink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AggregateSpec {
    /// Which of them a frame takes.
    pub mode: AggregateMode,
    /// They, in the order in which they are preferred.
    pub members: Vec<MemberSpec>,
}

/// Which member of an aggregated uplink a frame takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AggregateMode {
    /// The first one that is up, in both directions.
    ActiveBackup,
    /// All frames of a flow the same of those that are up; they come by any.
    Hash,
}

/// A member of an aggregated uplink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSpec {
    /// Its name, by which its frames are counted.
    pub name: String,
    /// As [`UplinkSpec::kind`].
    #[serde(default, skip_serializing_if = "UplinkKind::is_tap")]
    pub kind: UplinkKind,
    /// As [`UplinkSpec::interface`].
    pub interface: String,
    /// As [`UplinkSpec::netns`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<PathBuf>,
}

/// What the interface of the host is to an uplink.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UplinkKind {
    /// A TAP, behind which is the host; made if it is not there.
    #[default]
    Tap,
    /// One that is there, such as a network card, by packet sockets.
    Packet,
    /// The same by AF_XDP sockets: the host has nothing of it.
    Xdp,
}

impl UplinkKind {
    /// What was there before there was a choice.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_tap(&self) -> bool {
        *self == UplinkKind::Tap
    }
}

/// How a shared Ethernet adapter takes part in failover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailoverSpec {
    /// The name of the shared adapter.
    pub sea: String,
    /// `ha_mode`.
    pub mode: FailoverMode,
    /// The lower one is preferred.
    pub priority: u8,
    /// What the partners share: a file of their host, or, with `etcd:` before it, a place in etcd ([`FailoverSpec::lease`]).
    pub control: PathBuf,
    /// The interface without whose carrier it bridges nothing; empty: that of any member of an aggregated uplink.
    pub link: String,
    /// Its VLANs that it leaves to a partner, if both share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<u16>,
    /// An address outside that is asked for; whom it answers is preferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netaddr: Option<Ipv4Addr>,
    /// How it takes the bridge back when it is the preferred one and returns.
    #[serde(default, skip_serializing_if = "Failback::is_at_once")]
    pub failback: Failback,
}

/// When the preferred one of two takes the bridge back from a partner that is well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failback {
    /// As soon as it can.
    #[default]
    AtOnce,
    /// After so many seconds, `fb_delay`.
    After(u16),
    /// Not by itself, `noauto_failback`.
    Never,
}

impl Failback {
    /// What was there before there was a choice.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_at_once(&self) -> bool {
        *self == Failback::AtOnce
    }
}

impl FailoverSpec {
    /// Where the leases are that stand for the right to bridge, if they do: [`FailoverSpec::control`] as it is.
    #[must_use]
    pub fn lease(&self) -> Option<&str> {
        self.control.to_str().filter(|place| place.starts_with("etcd:"))
    }
}

/// How an adapter takes part in failover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailoverMode {
    /// It does not yield.
    Disabled,
    /// By priority.
    Auto,
    /// It yields to one that is not.
    Standby,
    /// It shares with a partner that does.
    Sharing,
}

impl UplinkSpec {
    /// Whether it asks for no more of its port than the first data planes knew that had uplinks.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let default = UplinkSpec::on(&self.network, &self.name);
        (self.storm, &self.mirror, self.tagging)
            == (default.storm, &default.mirror, default.tagging)
    }

    /// What it is made of, each as an uplink by one interface: itself, unless it is aggregated.
    #[must_use]
    pub fn members(&self) -> Vec<UplinkSpec> {
        let alone = || UplinkSpec { aggregate: None, ..self.clone() };
        let Some(aggregate) = &self.aggregate else { return vec![alone()] };
        let member = |MemberSpec { name, kind, interface, netns }: MemberSpec| UplinkSpec {
            name,
            kind,
            interface,
            netns,
            ..alone()
        };
        aggregate.members.iter().cloned().map(member).collect()
    }

    /// An uplink of a network, by an interface of its name, with what nobody set.
    #[must_use]
    pub fn on(network: &str, name: &str) -> UplinkSpec {
        let (name, network) = (name.to_owned(), network.to_owned());
        UplinkSpec {
            kind: UplinkKind::Tap,
            interface: name.clone(),
            netns: None,
            name,
            network,
            mtu: 1500,
            pvid: 1,
            vids: Vec::new(),
            failover: None,
            storm: StormSpec::default(),
            mirror: None,
            tagging: Tagging::Dot1q,
            thread: false,
            accounting: false,
            aggregate: None,
        }
    }
}
