//! Ports and virtual Fibre Channel adapters as the commands see them.

use super::baseline::{Baseline, Baselines, counts, on_port};
use super::fcstat::{Counts, FcReport};
use super::npiv::{ClientRow, Login, NpivMap, NpivPort};
use super::system::{System, client_name, link_failures, number, numbered, text};
use control::server::{AdapterView, LinkView, ObjectView};
use fabric::san::Wwpn;

/// Target numbers that a client can have.
const TARGETS_MAX: u64 = 256;

impl System {
    /// A port by its name.
    pub(super) fn port(&self, name: &str) -> Option<&ObjectView> {
        self.ports.iter().find(|port| port.name == name)
    }

    /// The adapters that are mapped to a port.
    pub(super) fn adapters_on(&self, port: &str) -> Vec<&AdapterView> {
        let mapped = |adapter: &&AdapterView| adapter.port.as_deref() == Some(port);
        self.status.adapters.iter().filter(mapped).collect()
    }

    /// The adapter on a port that has a WWPN, also the one that waits for a migration.
    pub(super) fn adapter_with(&self, port: &str, wwpn: Wwpn) -> Option<&AdapterView> {
        let has = |adapter: &&AdapterView| adapter.wwpns.iter().any(|own| own.parse() == Ok(wwpn));
        self.adapters_on(port).into_iter().find(has)
    }

    /// `fcstat` of a port: what all adapters did on it, wherever they are now.
    pub(super) fn port_report(&self, port: &ObjectView, base: Option<&Baseline>) -> FcReport {
        let home = text(&port.effective, "dataplane").unwrap_or_default();
        let dataplane = self.dataplane(home);
        let pid = dataplane.and_then(|dataplane| dataplane.pid);
        FcReport {
            device: port.name.clone(),
            device_type: "NPIV port (trunkline/port)".to_owned(),
            wwpn: Some(port_wwpn(port)),
            link_gbit: number(&port.effective, "link_speed"),
            link_up: dataplane.is_some_and(|dataplane| dataplane.state == "running")
                && port.link.as_ref().is_none_or(LinkView::is_up),
            link_failures: link_failures(port.link.as_ref(), base),
            seconds: self.seconds(home, base),
            // An adapter's own bound is nothing that more elements of the port would lift.
            counts: Counts { no_command: 0, ..self.port_counts(&port.name, "", base, pid) },
            max_transfer: number(&port.effective, "max_xfer_size"),
        }
    }

    /// What an adapter did on a port, or all of them.
    fn port_counts(
        &self,
        port: &str,
        adapter: &str,
        base: Option<&Baseline>,
        pid: Option<u32>,
    ) -> Counts {
        let known = on_port(port, adapter);
        let now = self.queues(&known);
        counts(base.map_or(now.clone(), |base| base.since(&known, &now, pid)).values())
    }

    /// The rows of `fcstat -client`: each port, then what the adapters on it did there; all since the port was reset.
    pub(super) fn client_rows(&self, host: &str, baselines: &Baselines) -> Vec<ClientRow> {
        let mut rows = Vec::new();
        for port in &self.ports {
            let base = baselines.get(&port.name);
            let report = self.port_report(port, base);
            rows.push(ClientRow {
                host: host.to_owned(),
                device: port.name.clone(),
                wwpn: port_wwpn(port),
                counts: report.counts,
            });
            for adapter in self.adapters_on(&port.name) {
                let pid = self.dataplane(&adapter.dataplane).and_then(|dataplane| dataplane.pid);
                rows.push(ClientRow {
                    host: client_name(adapter).unwrap_or(&adapter.name).to_owned(),
                    device: adapter.name.clone(),
                    wwpn: adapter_wwpn(adapter).unwrap_or_default(),
                    counts: self.port_counts(&port.name, &adapter.name, base, pid),
                });
            }
        }
        rows
    }

    /// `lsmap -npiv` of an adapter.
    pub(super) fn npiv_map(&self, adapter: &AdapterView) -> NpivMap {
        let port = adapter.port.as_deref().and_then(|port| self.port(port));
        let is_up = adapter.link.as_ref().is_none_or(LinkView::is_up);
        let login = match port {
            None => Login::NotMapped,
            Some(_) if is_up && adapter.has_client() => Login::LoggedIn,
            Some(_) => Login::NotLoggedIn,
        };
        let targets = self.logins.iter().find(|login| login.adapter == adapter.name);
        // A client whose port is down has its adapter as before.
        let there = port.is_some() && adapter.has_client();
        let if_there = |text: String| if there { text } else { String::new() };
        let client = super::system::client_id(adapter);
        let queues = adapter.queue_numbers().map(|(_, count)| count);
        NpivMap {
            name: adapter.name.clone(),
            physloc: self.adapter_place(adapter),
            client_id: client,
            client_name: client_name(adapter).unwrap_or_default().to_owned(),
            client_os: String::new(),
            login,
            port: port.map(|port| port.name.clone()).unwrap_or_default(),
            port_physloc: port.map(|port| self.port_place(port)).unwrap_or_default(),
            logins: match targets {
                Some(seen) if login == Login::LoggedIn => {
                    u32::try_from(seen.targets.len()).unwrap_or(u32::MAX)
                }
                _ => 0,
            },
            client_adapter: if_there(adapter.name.clone()),
            queues,
            client_drc: if_there(self.place_at(&adapter.dataplane, &format!("V{}-C0", client + 1))),
        }
    }

    /// `lsnports` of a port.
    pub(super) fn npiv_port(&self, port: &ObjectView) -> NpivPort {
        let home = text(&port.effective, "dataplane");
        let reached = self.targets.iter().filter(|target| {
            let ports = text(&target.effective, "ports").unwrap_or_default();
            text(&target.effective, "dataplane") == home
                && (ports.is_empty() || ports.split(',').any(|name| name == port.name))
        });
        let most = number(&port.effective, "max_adapters").unwrap_or(0);
        let used = u64::try_from(self.adapters_on(&port.name).len()).unwrap_or(u64::MAX);
        let reached = u64::try_from(reached.count()).unwrap_or(u64::MAX);
        NpivPort {
            name: port.name.clone(),
            physloc: self.port_place(port),
            adapters_max: most,
            adapters_free: most.saturating_sub(used),
            targets_max: TARGETS_MAX,
            targets_free: TARGETS_MAX.saturating_sub(reached),
        }
    }

    /// The location code of a port.
    pub(super) fn port_place(&self, port: &ObjectView) -> String {
        let home = text(&port.effective, "dataplane").unwrap_or_default();
        let place = numbered(&port.name, "fcs");
        let place = place.map_or_else(|| format!("T-{}", port.name), |number| format!("T{number}"));
        self.place_at(home, &format!("P1-{place}"))
    }
}

/// The WWPN with which an adapter logs in.
pub(super) fn adapter_wwpn(adapter: &AdapterView) -> Option<u64> {
    let wwpn: Wwpn = adapter.wwpns.first()?.parse().ok()?;
    Some(wwpn.0)
}

/// The name of a port, which logs in nowhere itself.
pub(super) fn port_wwpn(port: &ObjectView) -> u64 {
    let wwpn = port.wwpn.as_ref().and_then(|wwpn| wwpn.parse::<Wwpn>().ok());
    wwpn.map_or(0, |wwpn| wwpn.0)
}
