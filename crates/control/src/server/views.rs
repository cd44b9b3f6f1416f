//! What the API shows of each object: what was set, what holds, and how it is.

use super::links::LinkView;
use super::looked::named;
use super::objects::{FailoverView, MemberView, ObjectView};
use super::pools::{Lost, PoolView, count_lus};
use super::shared::Server;
use super::short;
use super::snapshots::SnapshotView;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::model::loss::{has_client, stays_away};
use crate::model::pools::trouble_beside;
use crate::model::resolve::network::aggregate_of;
use crate::model::{Desired, Home, MAIN, Users, home, resolve};
use crate::paths::Paths;
use crate::reconcile::Subject;
use crate::supervisor::{Ailment, View};
use crate::trail::{Links, Trail};
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attributes, Object, attr};
use fabric::negotiate::Term;
use protocol::message::{AdapterStatus, OpeningStatus, PvState, Status, VolumeStatus};
use protocol::now_ms;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use utoipa::ToSchema;

/// A volume.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct VolumeView {
    /// Its name.
    pub name: String,
    /// `open`, `degraded` where it is open and something is wrong with it, `full` or `gone` where requests failed of late for want of
    /// space or of the file, `opening`, `failed`, or `pending` while the data plane is not there.
    pub state: String,
    /// Why it is not open, or what is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Capacity in bytes, while it is open.
    pub bytes: Option<u64>,
    /// How it is accessed: `direct`, `buffered`, `memory`, `none`.
    pub access: Option<String>,
    /// How many seconds old its state is, while its data plane does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
    /// The data plane that has it.
    pub dataplane: String,
    /// Block adapters on it.
    pub adapters: Vec<String>,
    /// Targets that have it as a LUN (`array0:3`), and virtual target devices on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub luns: Vec<String>,
    /// What SCSI clients know it by, where it is a LUN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naa: Option<String>,
    /// Attributes that were set.
    #[schema(value_type = Object)]
    pub attributes: Attributes,
    /// Attributes as they hold, defaults included.
    #[schema(value_type = Object)]
    pub effective: Attributes,
}

/// An adapter.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AdapterView {
    /// Its name.
    pub name: String,
    /// `listening`, `connected`, `running`, `broken`, `failed`, or `pending` while the data plane
    /// does not answer.
    pub state: String,
    /// Why it is broken or failed, or why the last client was disconnected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `block`, `fc` or `scsi`.
    pub kind: String,
    /// The volume of a block adapter.
    pub volume: String,
    /// The port that a virtual Fibre Channel adapter is mapped to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The WWPNs of a virtual Fibre Channel adapter; the first logs in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wwpns: Vec<String>,
    /// The link of a virtual Fibre Channel adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkView>,
    /// What it asks for and what cannot run so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The virtual target devices of a virtual SCSI adapter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vtds: Vec<String>,
    /// Its vhost-user socket.
    pub socket: String,
    /// The serial number that the client of a block adapter sees.
    pub serial: String,
    /// How many seconds old its state is, while its data plane does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
    /// The data plane that serves it.
    pub dataplane: String,
    /// Queues that the client uses now.
    pub client_queues: u32,
    /// Queues that the client has, of which its driver uses `client_queues`: `num_io_queues` of the original, `num_queues` of QEMU. 0 without a client
    /// or where it does not say.
    #[serde(default)]
    pub client_num_io_queues: u32,
    /// Channels that serve them now; fewer than `channels_max` where placement folds queues together.
    pub channels: u32,
    /// CPUs that those channels are bound to; 0 where they are bound to none.
    #[serde(default)]
    pub cpus: u32,
    /// Channels that may serve them, or would, of a client with all queues: the queue contract.
    pub channels_max: u32,
    /// Who sets `channels_max`: `client`, `adapter`, `data_plane` or another term of the queue contract.
    #[schema(value_type = String)]
    pub limited_by: Term,
    /// The channel of each of the client's queues.
    pub channel_of_queue: Vec<u32>,
    /// Whether the client does not connect again when its data plane ends, as far as can be told: the SCSI device of QEMU before 8.2.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays_away: bool,
    /// How many clients have connected since the data plane has the adapter.
    pub connections: u64,
    /// Features negotiated with the client that is connected.
    pub features: Vec<String>,
    /// The process that is connected, where the data plane can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Caller>,
    /// Attributes that were set.
    #[schema(value_type = Object)]
    pub attributes: Attributes,
    /// Attributes as they hold, defaults and inheritance included.
    #[schema(value_type = Object)]
    pub effective: Attributes,
}

impl AdapterView {
    /// Whether a client is connected.
    pub fn has_client(&self) -> bool {
        matches!(self.state.as_str(), "connected" | "running" | "broken")
    }

    /// How many queues and channels it has, from what is offered to what runs, by the word for each. All but the first are 0 without a client.
    pub fn queue_numbers(&self) -> [(&'static str, u64); 6] {
        let negotiated = if self.client_queues == 0 { 0 } else { self.channels_max };
        [
            ("offered", attr::adapter::QUEUES.value(&self.effective)),
            ("num_io_queues", self.client_num_io_queues.into()),
            ("used", self.client_queues.into()),
            ("negotiated", negotiated.into()),
            ("running", self.channels.into()),
            ("cpus", self.cpus.into()),
        ]
    }
}

/// A channel of a data plane.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ChannelView {
    /// Its number.
    pub index: u32,
    /// The CPU that it is bound to.
    pub cpu: Option<u32>,
    /// Queues that it owns.
    pub queues: u32,
}

/// A data plane.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DataPlaneView {
    /// Its name.
    pub name: String,
    /// `running`, `unresponsive` while its process is there and does not answer, or `down`.
    pub state: String,
    /// How many seconds old is what is shown of it, its volumes and its adapters, while it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
    /// Why it is not running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// Version of its program.
    pub version: Option<String>,
    /// What it gave up before it served anybody: `Landlock, seccomp`, or what of it this kernel could not do. Empty: nothing, as data planes of earlier
    /// versions.
    #[serde(default)]
    pub confinement: String,
    /// Seconds since it was started.
    pub uptime_s: Option<u64>,
    /// How often this control plane has started it again after it died.
    pub restarts: u64,
    /// Whether attributes were changed that wait for its restart.
    pub restart_needed: bool,
    /// Its channels.
    pub channels: Vec<ChannelView>,
    /// What it asks for and what cannot run so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Attributes that were set.
    #[schema(value_type = Object)]
    pub attributes: Attributes,
    /// Attributes as they hold, defaults included.
    #[schema(value_type = Object)]
    pub effective: Attributes,
}

/// The whole server.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StatusView {
    /// Version of the control plane.
    pub version: String,
    /// Process of the control plane.
    pub pid: u32,
    /// Folder of the sockets.
    pub run_dir: String,
    /// Folder of the state.
    pub state_dir: String,
    /// The server's own number, six hexadecimal digits that it drew once. They are in the WWPNs that it gives out, where a data plane has no prefix of its
    /// own, and in location codes. Nothing while it has not drawn one.
    #[serde(default)]
    pub server_number: Option<String>,
    /// The server is not done with its start: what is `pending` may have to be told yet, and changes wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub starting: bool,
    /// Data planes.
    pub dataplanes: Vec<DataPlaneView>,
    /// Volumes.
    pub volumes: Vec<VolumeView>,
    /// Adapters.
    pub adapters: Vec<AdapterView>,
    /// Uplinks.
    #[serde(default)]
    pub uplinks: Vec<ObjectView>,
    /// Storage pools.
    #[serde(default)]
    pub pools: Vec<ObjectView>,
    /// What data planes could not do; it is tried again.
    pub failures: Vec<ApiError>,
}

/// An object as the API shows it: those that a data plane has with how they are, the others as they were set.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum AnyView {
    /// A volume.
    Volume(Box<VolumeView>),
    /// An adapter.
    Adapter(Box<AdapterView>),
    /// A data plane.
    DataPlane(Box<DataPlaneView>),
    /// Another one.
    Object(Box<ObjectView>),
}

impl AnyView {
    /// The tag of its attributes: who changes what was read names it (`If-Match`).
    pub fn tag(&self) -> String {
        super::edit::tag(match self {
            AnyView::Volume(view) => &view.attributes,
            AnyView::Adapter(view) => &view.attributes,
            AnyView::DataPlane(view) => &view.attributes,
            AnyView::Object(view) => &view.attributes,
        })
    }
}

/// Everything that is known at one moment; the views are made of it. What is asked for each object is found by its name.
struct Moment<'a> {
    desired: &'a Desired,
    supervisors: &'a BTreeMap<String, View>,
    accounts: BTreeMap<&'a str, Account<'a>>,
    /// What data planes could not do.
    failures: BTreeMap<&'a Subject, &'a ApiError>,
    homes: BTreeMap<String, Vec<Home<'a>>>,
    luns: BTreeMap<String, Vec<(&'a str, u16)>>,
    users: Users<'a>,
    links: Arc<Links>,
    trail: &'a Trail,
}

/// A data plane's account of itself, the last one if it does not answer, by name.
struct Account<'a> {
    status: &'a Status,
    volumes: BTreeMap<&'a str, &'a VolumeStatus>,
    adapters: BTreeMap<&'a str, &'a AdapterStatus>,
    opening: BTreeMap<&'a str, &'a OpeningStatus>,
}

impl<'a> Account<'a> {
    fn of(status: &'a Status) -> Account<'a> {
        Account {
            status,
            volumes: status.volumes.iter().map(|v| (v.spec.name.as_str(), v)).collect(),
            adapters: adapters_of(status),
            opening: status.opening.iter().map(|one| (one.name.as_str(), one)).collect(),
        }
    }
}

impl<'a> Moment<'a> {
    fn new(
        desired: &'a Desired,
        supervisors: &'a BTreeMap<String, View>,
        trail: &'a Trail,
    ) -> Moment<'a> {
        let account = |(name, view): (&'a String, &'a View)| {
            Some((name.as_str(), Account::of(&view.account()?.status)))
        };
        Moment {
            desired,
            supervisors,
            accounts: supervisors.iter().filter_map(account).collect(),
            failures: supervisors.values().flat_map(|view| &view.failures).collect(),
            homes: desired.homes(),
            luns: desired.luns(),
            users: desired.users(),
            links: trail.link_counts(),
            trail,
        }
    }

    fn account(&self, dataplane: &str) -> Option<&Account<'a>> {
        self.accounts.get(dataplane)
    }

    /// How old that is in seconds, if it does not answer.
    fn age_s(&self, dataplane: &str) -> Option<u64> {
        let view = self.supervisors.get(dataplane).filter(|view| view.silent.is_some())?;
        Some(view.account()?.at.elapsed().as_secs())
    }

    /// Why something waits for a volume that is being opened.
    fn opening(&self, subject: &Subject) -> Option<String> {
        let mut all = self.supervisors.values().filter_map(|view| view.opening.get(subject));
        all.next().map(|refusal| refusal.message.clone())
    }

    /// For how long a volume has been opened, and for whom it waits.
    fn opening_volume(&self, dataplane: &str, name: &str) -> Option<String> {
        let opening = self.account(dataplane)?.opening.get(name)?;
        let waits = opening.waits_for.as_ref().map(|who| format!(", waits for {who}"));
        let seconds = opening.since_ms / 1000;
        Some(format!("opening for {seconds} s{}", waits.unwrap_or_default()))
    }

    fn failure(&self, subject: &Subject) -> Option<String> {
        self.failures.get(subject).map(|refusal| refusal.message.clone())
    }

    /// What is wrong with the virtual port of an adapter, or with a disk behind it.
    fn trouble(&self, adapter: &str) -> Option<String> {
        self.desired.discovered.troubles.get(adapter).map(|refusal| match &refusal.help {
            Some(help) => format!("{}; {help}", refusal.message),
            None => refusal.message.clone(),
        })
    }

    fn volume(&self, name: &str, set: &Attributes) -> VolumeView {
        let homes = self.homes.get(name).map_or(&[][..], Vec::as_slice);
        let home = homes.first().map_or(MAIN, |(_, _, home)| home).to_owned();
        let of =
            |object| homes.iter().filter(move |home| home.0 == object).map(|(_, name, _)| *name);
        let status = self.account(&home).map(|account| account.volumes.get(name).copied());
        let failure = self.failure(&Subject::Volume(name.to_owned()));
        let opening = self.opening_volume(&home, name);
        let ailing = self.supervisors.get(&home).and_then(|view| {
            of(Object::Adapter).find_map(|adapter| view.ailing.get(adapter).copied())
        });
        let trouble = status.flatten().and_then(|open| open.trouble.as_deref());
        let open = match (trouble, ailing) {
            (Some(_), _) => "degraded",
            (None, Some(Ailment::NoSpace)) => "full",
            (None, Some(Ailment::Gone)) => "gone",
            (None, Some(Ailment::Errors) | None) => "open",
        };
        let luns = self.luns.get(name).into_iter().flatten();
        let luns = luns.map(|(target, lun)| format!("{target}:{lun}"));
        let luns: Vec<String> = luns.chain(of(Object::Vtd).map(str::to_owned)).collect();
        VolumeView {
            name: name.to_owned(),
            state: match &opening {
                Some(_) => "opening".to_owned(),
                None => state(status.map(|found| found.map(|_| open)), failure.is_some()),
            },
            reason: opening
                .or(failure)
                .or_else(|| trouble.map(str::to_owned))
                .or_else(|| ailing.map(|ailment| ailment.as_str().to_owned())),
            bytes: status.flatten().map(|open| open.bytes),
            access: status.flatten().map(|open| open.access.clone()),
            age_s: self.age_s(&home),
            dataplane: home,
            adapters: of(Object::Adapter).map(str::to_owned).collect(),
            naa: resolve::naa(self.desired, name, set)
                .filter(|_| !luns.is_empty())
                .map(|naa| format!("{naa:016x}")),
            luns,
            attributes: set.clone(),
            effective: self.desired.effective_all(Object::Volume, set),
        }
    }

    fn adapter(&self, name: &str, set: &Attributes, paths: &Paths) -> AdapterView {
        let home = self.desired.dataplane_of_adapter(name).to_owned();
        let account = self.account(&home);
        let status = account.map(|account| account.adapters.get(name).copied());
        let adapter = status.flatten();
        let account = account.map(|account| account.status);
        let failure = self.failure(&Subject::Adapter(name.to_owned()));
        let answer = super::explain::negotiated(self.desired, name, set, adapter, account);
        let client = adapter.filter(|adapter| has_client(adapter));
        let hidden = adapter.and_then(|adapter| adapter.hidden.as_ref());
        let channel_of_queue = client.map(|a| a.channel_of_queue.clone()).unwrap_or_default();
        let in_use: BTreeSet<u32> = channel_of_queue.iter().copied().collect();
        AdapterView {
            name: name.to_owned(),
            state: state(status.map(|a| a.map(|a| a.state.as_str())), failure.is_some()),
            reason: failure
                .or_else(|| self.opening(&Subject::Adapter(name.to_owned())))
                .or_else(|| self.trouble(name))
                .or_else(|| adapter.and_then(|a| a.reason.clone())),
            kind: attr::adapter::KIND.value(set).word().to_owned(),
            volume: attr::adapter::VOLUME.of(set).unwrap_or_default().to_owned(),
            port: attr::adapter::PORT.of(set).map(str::to_owned),
            wwpns: crate::model::san::wwpns(set)
                .map(|pair| pair.map(|wwpn| wwpn.to_string()).to_vec())
                .unwrap_or_default(),
            link: LinkView::of(self.desired, &self.links, (Object::Adapter, name, set)),
            warnings: short::of_adapter(self.desired, name, set, account)
                .into_iter()
                .chain(hidden.map(|why| format!("adapter `{name}`: {why}")))
                .collect(),
            vtds: self
                .users
                .of(Object::Adapter, name)
                .into_iter()
                .filter(|(object, _)| *object == Object::Vtd)
                .map(|(_, vtd)| vtd.to_owned())
                .collect(),
            socket: resolve::adapter_socket(name, set, paths).display().to_string(),
            serial: resolve::adapter_serial(set),
            age_s: self.age_s(&home),
            dataplane: home,
            client_queues: client.map_or(0, |a| a.client_queues.into()),
            client_num_io_queues: client.map_or(0, |a| a.client_num_io_queues.into()),
            channels: u32::try_from(in_use.len()).unwrap_or(u32::MAX),
            cpus: account.map_or(0, |account| cpus(account, &in_use)),
            channels_max: answer.channels,
            limited_by: answer.limit,
            channel_of_queue,
            stays_away: adapter.is_some_and(stays_away),
            connections: adapter.map_or(0, |a| a.connections),
            features: client.map(|a| a.features.clone()).unwrap_or_default(),
            client: client.and_then(|a| a.client).map(Caller::from),
            attributes: set.clone(),
            effective: self.desired.effective_all(Object::Adapter, set),
        }
    }

    fn dataplane(&self, name: String) -> DataPlaneView {
        let set = self.desired.dataplane(&name).clone();
        let supervisor = self.supervisors.get(&name).cloned().unwrap_or_default();
        let status = self.account(&name).map(|account| account.status);
        let spec = resolve::dataplane(self.desired, &name);
        let state = match (supervisor.pid, supervisor.silent) {
            (None, _) => "down",
            (Some(_), Some(_)) => "unresponsive",
            (Some(_), None) if status.is_none() => "unresponsive",
            _ => "running",
        };
        DataPlaneView {
            state: state.to_owned(),
            reason: supervisor.reason(),
            age_s: self.age_s(&name),
            pid: supervisor.pid,
            version: status.map(|status| status.version.clone()),
            confinement: status.map(|status| status.confinement.clone()).unwrap_or_default(),
            uptime_s: status.map(|status| status.uptime_s),
            restarts: supervisor.restarts,
            restart_needed: supervisor.started_with.is_some_and(|with| with != spec),
            channels: status.map(channels).unwrap_or_default(),
            warnings: short::of_dataplane(self.desired, &name).into_iter().collect(),
            effective: self.desired.effective_all(Object::DataPlane, &set),
            attributes: set,
            name,
        }
    }
}

impl Moment<'_> {
    /// One object.
    fn show(&self, object: Object, name: &str, set: &Attributes, paths: &Paths) -> AnyView {
        match object {
            Object::Volume => AnyView::Volume(Box::new(self.volume(name, set))),
            Object::Adapter => AnyView::Adapter(Box::new(self.adapter(name, set, paths))),
            Object::DataPlane => AnyView::DataPlane(Box::new(self.dataplane(name.to_owned()))),
            Object::Uplink => AnyView::Object(Box::new(self.uplink(name, set))),
            Object::Sea => AnyView::Object(Box::new(self.sea(name, set))),
            Object::Pool => AnyView::Object(Box::new(self.pool(name, set))),
            Object::Snapshot => AnyView::Object(Box::new(self.snapshot(name, set))),
            _ => AnyView::Object(Box::new(self.object(object, name, set))),
        }
    }

    fn object(&self, object: Object, name: &str, set: &Attributes) -> ObjectView {
        ObjectView::of(self.desired, (&self.users, &self.links), object, name, set)
    }

    fn sea(&self, name: &str, set: &Attributes) -> ObjectView {
        let uplink = attr::sea::REAL_ADAPTER.of(set).unwrap_or_default();
        let its = self.desired[Object::Uplink].get(uplink);
        let failover = its.and_then(|set| self.uplink(uplink, set).failover);
        ObjectView { failover, ..self.object(Object::Sea, name, set) }
    }

    fn pool(&self, name: &str, set: &Attributes) -> ObjectView {
        let home = home(set);
        let account = self.account(home).map(|account| &account.status.pools);
        let status = account.map(|all| all.iter().find(|pool| pool.spec.name == name));
        let failure = self.failure(&Subject::Pool(name.to_owned()));
        let space = status.flatten().map(|status| {
            let whole = status.pvs.iter().all(|pv| pv.state == PvState::Active);
            let lost = if whole { Lost::new() } else { self.trail.lost_pvs(name) };
            let mut space = PoolView::of(self.desired, set, status, &lost);
            let now = now_ms();
            let uuid = super::pools::uuid(name, set);
            space.judge(set, |tier, space| self.trail.full_in_s((uuid, tier), now, space));
            space
        });
        let trouble = status.flatten().and_then(trouble_beside).cloned();
        let degraded = space.as_ref().and_then(PoolView::degraded);
        let warning = space.as_ref().and_then(|space| space.warning.clone());
        let pending = self.opening(&Subject::Pool(name.to_owned()));
        let open = if degraded.is_some() { "degraded" } else { "open" };
        ObjectView {
            state: Some(state(status.map(|it| it.map(|_| open)), failure.is_some())),
            reason: failure.or(pending).or(trouble).or(degraded).or(warning),
            space,
            ..self.object(Object::Pool, name, set)
        }
    }

    fn snapshot(&self, name: &str, set: &Attributes) -> ObjectView {
        let view = self.object(Object::Snapshot, name, set);
        let Some(pool) = self.desired.pool_of_snapshot(name) else { return view };
        let of_pool = self.desired[Object::Pool].get(pool);
        let account = of_pool.and_then(|set| self.account(home(set)));
        let pools = account.map(|account| &account.status.pools);
        let status = pools.and_then(|all| all.iter().find(|one| one.spec.name == pool));
        let snapshot = SnapshotView::of(self.desired, name, pool, status);
        let made = snapshot.made_ms.is_some();
        let pool = Subject::Pool(pool.to_owned());
        let reason = if made { None } else { self.failure(&pool).or(self.opening(&pool)) };
        let state = if made { "made" } else { "pending" };
        ObjectView { state: Some(state.to_owned()), reason, snapshot: Some(snapshot), ..view }
    }

    fn uplink(&self, name: &str, set: &Attributes) -> ObjectView {
        let Some(home) = self.desired.dataplane_of_uplink(name) else {
            let state = Some("unused".to_owned());
            return ObjectView { state, ..self.object(Object::Uplink, name, set) };
        };
        let whole = aggregate_of(self.desired, name);
        let connected = whole.unwrap_or(name);
        let account = self.account(home).map(|account| &account.status.uplinks);
        let status = account.map(|all| all.iter().find(|uplink| uplink.spec.name == connected));
        let reason = self.failure(&Subject::Uplink(connected.to_owned()));
        let members = status.flatten().map(|it| it.members.as_slice()).unwrap_or_default();
        if whole.is_some() {
            let view = self.object(Object::Uplink, name, set);
            let Some(its) = members.iter().find(|member| member.name == name) else {
                let state = state(status.map(|_| None), reason.is_some());
                return ObjectView { state: Some(state), reason, ..view };
            };
            let MemberView { state, reason, .. } = MemberView::of(its);
            return ObjectView { state: Some(state), reason, way: its.way.clone(), ..view };
        }
        ObjectView {
            state: Some(state(status.map(|it| it.map(|_| "connected")), reason.is_some())),
            reason: reason.or_else(|| MemberView::trouble(members)),
            members: members.iter().map(MemberView::of).collect(),
            channels: status.flatten().map(|it| it.channel_of_queue.clone()).unwrap_or_default(),
            way: status.flatten().and_then(|it| it.way.clone()),
            failover: status.flatten().and_then(FailoverView::of),
            ..self.object(Object::Uplink, name, set)
        }
    }
}

impl Server {
    /// What is known now, as far as some objects need it.
    async fn known(&self, objects: &[Object]) -> (Desired, BTreeMap<String, View>) {
        let with_state = [
            Object::Volume,
            Object::Adapter,
            Object::DataPlane,
            Object::Uplink,
            Object::Sea,
            Object::Pool,
            Object::Snapshot,
        ];
        let supervisors = match objects.iter().any(|object| with_state.contains(object)) {
            true => self.look().await,
            false => BTreeMap::new(),
        };
        (self.desired(), supervisors)
    }

    /// All objects of a kind.
    pub async fn objects(&self, object: Object) -> Vec<AnyView> {
        let (desired, supervisors) = self.known(&[object]).await;
        let moment = Moment::new(&desired, &supervisors, &self.trail);
        let show =
            |(name, set): (&String, &Attributes)| moment.show(object, name, set, self.paths());
        let unnamed = object == Object::DataPlane && !desired[object].contains_key(MAIN);
        let main =
            unnamed.then(|| moment.show(object, MAIN, desired.dataplane(MAIN), self.paths()));
        desired[object].iter().map(show).chain(main).collect()
    }

    /// One object.
    pub async fn object(&self, object: Object, name: &str) -> Result<AnyView, ApiError> {
        let (desired, supervisors) = self.known(&[object]).await;
        let moment = Moment::new(&desired, &supervisors, &self.trail);
        let set = match desired[object].get(name) {
            Some(set) => set,
            None if object == Object::DataPlane && name == MAIN => desired.dataplane(MAIN),
            None => return Err(self.not_found(object, name)),
        };
        let mut view = moment.show(object, name, set, self.paths());
        if let AnyView::Object(view) = &mut view
            && let Some(space) = &mut view.space
        {
            let stats = supervisors.get(home(set)).and_then(|view| view.stats.as_ref());
            if let Some((account, stats)) = moment.account(home(set)).zip(stats) {
                count_lus(&mut space.lus, account.status, &stats.snapshot());
            }
        }
        Ok(view)
    }

    /// Adapters of a kind as they are known without asking a data plane.
    pub(super) fn known_adapters(&self, kind: AdapterKind) -> Vec<AdapterView> {
        let (desired, supervisors) = (self.desired(), self.supervisor_views());
        let moment = Moment::new(&desired, &supervisors, &self.trail);
        let adapters = desired[Object::Adapter].iter();
        let of_kind = adapters.filter(|(_, set)| attr::adapter::KIND.value(set) == kind);
        of_kind.map(|(name, set)| moment.adapter(name, set, self.paths())).collect()
    }

    /// Everything, from one account of each data plane.
    pub async fn status(&self) -> StatusView {
        let (desired, supervisors) = self.known(&Object::ALL).await;
        let moment = Moment::new(&desired, &supervisors, &self.trail);
        let paths = self.paths();
        let volumes = desired[Object::Volume].iter().map(|(name, set)| moment.volume(name, set));
        let adapters =
            desired[Object::Adapter].iter().map(|(name, set)| moment.adapter(name, set, paths));
        let uplinks = desired[Object::Uplink].iter().map(|(name, set)| moment.uplink(name, set));
        let pools = desired[Object::Pool].iter().map(|(name, set)| moment.pool(name, set));
        let dataplanes = desired.dataplane_names().into_iter().map(|name| moment.dataplane(name));
        StatusView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            run_dir: paths.run.display().to_string(),
            state_dir: paths.state.display().to_string(),
            server_number: desired
                .allocations
                .system
                .map(|number| format!("{:06x}", number & 0xff_ffff)),
            starting: !self.is_started(),
            dataplanes: dataplanes.collect(),
            volumes: volumes.collect(),
            adapters: adapters.collect(),
            uplinks: uplinks.collect(),
            pools: pools.collect(),
            failures: moment
                .failures
                .values()
                .copied()
                .chain(desired.discovered.troubles.values())
                .cloned()
                .chain(self.not_kept())
                .collect(),
        }
    }
}

/// On how many CPUs these channels run, as far as they are bound to one.
fn cpus(status: &Status, channels: &BTreeSet<u32>) -> u32 {
    let used = status.channels.iter().filter(|channel| channels.contains(&channel.index));
    used.filter_map(|channel| channel.cpu).collect::<BTreeSet<_>>().len() as u32
}

fn channels(status: &Status) -> Vec<ChannelView> {
    let view = |c: &protocol::message::ChannelStatus| ChannelView {
        index: c.index,
        cpu: c.cpu,
        queues: c.queues,
    };
    status.channels.iter().map(view).collect()
}

/// The adapters of a data plane by name.
pub(super) fn adapters_of(status: &Status) -> BTreeMap<&str, &AdapterStatus> {
    status.adapters.iter().map(|adapter| (adapter.spec.name.as_str(), adapter)).collect()
}

pub(super) fn adapter_of<'a>(status: &'a Status, name: &str) -> Option<&'a AdapterStatus> {
    named(&status.adapters, name)
}

/// The outer option: whether the data plane answers; the inner one: whether it has the object.
fn state(status: Option<Option<&str>>, failed: bool) -> String {
    match status {
        Some(Some(state)) => state,
        _ if failed => "failed",
        _ => "pending",
    }
    .to_owned()
}
