//! The server of the demo: `trunkline serve` as a child process, and its objects, made through the API.

use super::Plan;
use crate::cli::{Format, Global};
use crate::client::Client;
use crate::exit::Failure;
use crate::scratch::{START_TIMEOUT, Scratch};
use control::api::{DoneView, ItemList};
use control::paths::Paths;
use control::server::{DataPlaneView, StatusView, VolumeView};
use control::statistics::StatsView;
use hyper::Method;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The data plane with one channel.
const ONE: &str = "one";
/// Every server has this one.
const MAIN: &str = "main";

/// The data planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// One channel.
    One,
    /// Several channels.
    Several,
}

impl Side {
    /// Its data plane.
    pub(super) fn dataplane(self) -> &'static str {
        match self {
            Side::One => ONE,
            Side::Several => MAIN,
        }
    }

    /// The disks of the two clients.
    pub(super) fn disks(self) -> impl Iterator<Item = &'static Disk> {
        DISKS.iter().filter(move |disk| disk.side == self)
    }
}

/// A backing file, its volume and its adapter.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) volume: &'static str,
    pub(super) adapter: &'static str,
    side: Side,
}

/// The four of them.
pub(super) const DISKS: [Disk; 4] = [
    Disk { volume: "disk0", adapter: "vhost0", side: Side::One },
    Disk { volume: "disk1", adapter: "vhost1", side: Side::One },
    Disk { volume: "disk2", adapter: "vhost2", side: Side::Several },
    Disk { volume: "disk3", adapter: "vhost3", side: Side::Several },
];

/// The running server; it ends with the scratch.
pub(super) struct Server<'a> {
    scratch: &'a Scratch,
    client: Client,
    paths: Paths,
    pid: u32,
}

impl Server<'_> {
    /// Starts the control plane and waits until it answers. One that is kept leaves its data planes alone when it ends,
    /// as any other server does.
    pub(super) fn start(scratch: &Scratch, keep: bool) -> Result<Server<'_>, Failure> {
        let folder = scratch.folder();
        let global =
            Global { dir: Some(folder.to_owned()), output: Format::Table, no_headers: false };
        let client = Client::new(&global)?;
        let dir = folder.to_str().ok_or_else(|| {
            Failure::other(format!("{}: the path is not UTF-8; see --dir", folder.display()))
        })?;
        let mut args = vec!["serve", "--dir", dir, "--log", "info"];
        if !keep {
            args.push("--with-dataplanes");
        }
        let pid = scratch.start("serve", args)?;
        scratch.wait_for(pid, "the control plane", START_TIMEOUT, || {
            client.get::<StatusView>("/v1/status")
        })?;
        Ok(Server { scratch, client, paths: global.paths(), pid })
    }

    /// The control plane's process.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Where a disk's client connects.
    pub(super) fn socket(&self, disk: &Disk) -> PathBuf {
        self.paths.adapter(disk.adapter)
    }

    /// Makes everything.
    pub(super) fn create(&mut self, plan: &Plan, file_bytes: u64) -> Result<(), Failure> {
        self.post("dataplanes", ONE, &json!({ "channels": 1 }))?;
        // `main` runs already, with a channel for each CPU; it takes another number when it starts again.
        let attributes = json!({ "attributes": { "channels": plan.channels() } });
        let path = format!("/v1/dataplanes/{MAIN}");
        let _: DoneView = self.client.send(Method::PATCH, &path, Some(&attributes))?;
        self.client.post(&format!("/v1/dataplanes/{MAIN}/restart"))?;
        for disk in &DISKS {
            let path = self.scratch.path(&format!("{}.img", disk.volume));
            let volume =
                json!({ "kind": "file", "path": path, "size": file_bytes, "create": true });
            self.post("volumes", disk.volume, &volume)?;
            let adapter = json!({
                "volume": disk.volume,
                "dataplane": disk.side.dataplane(),
                // Several channels are to be seen at work whatever the load is.
                "placement": "spread",
            });
            self.post("adapters", disk.adapter, &adapter)?;
        }
        self.scratch.wait_for(self.pid, "the data plane", START_TIMEOUT, || self.all_listen())
    }

    fn post(&self, noun: &str, name: &str, attributes: &Value) -> Result<DoneView, Failure> {
        let body = json!({ "name": name, "attributes": attributes });
        self.client.send(Method::POST, &format!("/v1/{noun}"), Some(&body))
    }

    fn all_listen(&self) -> Result<(), Failure> {
        let status: StatusView = self.client.get("/v1/status")?;
        match status.adapters.iter().find(|adapter| adapter.state != "listening") {
            None => Ok(()),
            Some(adapter) => Err(Failure::other(format!(
                "{} is {}{}",
                adapter.name,
                adapter.state,
                adapter.reason.as_ref().map(|reason| format!(", {reason}")).unwrap_or_default()
            ))),
        }
    }

    /// The process of a data plane.
    pub(super) fn dataplane_pid(&self, side: Side) -> Result<u32, Failure> {
        let path = format!("/v1/dataplanes/{}", side.dataplane());
        let dataplane: DataPlaneView = self.client.get(&path)?;
        dataplane.pid.ok_or_else(|| {
            let reason = dataplane.reason.unwrap_or_else(|| "no reason given".to_owned());
            Failure::other(format!("data plane `{}` is not running: {reason}", dataplane.name))
        })
    }

    /// All counters.
    pub(super) fn stats(&self) -> Result<StatsView, Failure> {
        self.client.get("/v1/stats")
    }

    /// How the backing files are accessed.
    pub(super) fn access(&self) -> Result<String, Failure> {
        let volumes: ItemList<VolumeView> = self.client.get("/v1/volumes")?;
        let mut ways: Vec<String> =
            volumes.items.into_iter().filter_map(|volume| volume.access).collect();
        ways.sort();
        ways.dedup();
        Ok(ways.join("; "))
    }
}
