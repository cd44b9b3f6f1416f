//! What a Virtual I/O Server was seen to carry, as loads to size: shared Ethernet, virtual Fibre Channel, virtual SCSI
//! and pools.
//!
//! Rates are measured between the first and the last capture of a counter; where there is one capture, or a reset
//! between two, the average since the reset stands for them, which hides peaks and is said so. What the captures do
//! not tell is not guessed: it is listed with what is reckoned with instead, and the command whose output would tell.

mod rates;
mod scsi;

use super::disk;
use super::mapping::Npiv;
use super::sea::Bridge;
use super::thresholds::BOTH_WAYS;
use super::view::{Role, View, as_f64, count, is_numbered, rounded, shown, stem};
use super::{ssp, ssp_luns};
use crate::capture::{At, Captures, Entstat, Ethernet, Read, Report, ScsiMap};
use crate::facts::{Facts, id};
use crate::report::inputs::{Input, Missing};
use crate::size::{Captured, Direction, Given, Processors, Sea, Ssp, VirtualFc};
use crate::trace::{Figure, Term};
use rates::{Requests, Traffic};

/// The loads of every Virtual I/O Server that printed something.
pub(crate) fn loads(captures: &Captures, facts: &Facts) -> Vec<Captured> {
    let view = View::new(captures, facts);
    let printed = |host: &usize| view.of(*host).next().is_some();
    let servers = view.hosts().filter(|host| view.role(*host) == Role::Vios).filter(printed);
    servers.map(|host| Server::new(&view, host).all()).collect()
}

/// One server while its loads are gathered.
struct Server<'v, 'a> {
    view: &'v View<'a>,
    host: usize,
    found: Captured,
    /// Whether a rate is an average since the reset of its counter.
    averages: bool,
}

impl<'v, 'a> Server<'v, 'a> {
    fn new(view: &'v View<'a>, host: usize) -> Self {
        let system = view.system(host);
        let pair = system.and_then(|system| system.machine.clone().zip(system.name().map(stem)));
        let found = Captured { vios: view.spoken(host).to_owned(), pair, ..Captured::default() };
        Self { view, host, found, averages: false }
    }

    fn all(mut self) -> Captured {
        self.partition();
        let (view, host) = (self.view, self.host);
        for bridge in view.bridges().iter().filter(|bridge| bridge.host == host) {
            self.bridge(bridge);
        }
        self.fibre();
        self.scsi();
        self.pool();
        self.not_captured();
        if self.averages {
            self.found.notes.push(
                "Some rates are averages since the counters' reset, which hide peaks: capture twice under the load that counts."
                    .to_owned(),
            );
        }
        self.found
    }

    /// The mappings that say what a server carries at all.
    fn not_captured(&mut self) {
        let reports = || self.view.of(self.host);
        let npiv = reports().any(|report| matches!(report, Report::LsmapNpiv(_)));
        let scsi = reports().any(|report| matches!(report, Report::LsmapScsi(_)));
        let net = reports().any(|report| matches!(report, Report::LsmapNet(_)))
            || self.view.bridges().iter().any(|bridge| bridge.host == self.host);
        for (known, load, captures) in [
            (npiv, "virtual FC", "lsmap -all -npiv, and fcstat -D of each port twice with date"),
            (scsi, "virtual SCSI and pools", "lsmap -all, and iostat -D 30 4"),
            (net, "SEA", "lsmap -all -net, and entstat -all of each SEA twice with date"),
        ] {
            if !known {
                let what = "whether there is any, and its load";
                let capture = format!("{captures}, on {}", self.on());
                self.lack(load, what, "nothing: it is left out", capture);
            }
        }
    }

    /// Notes where an input comes from.
    fn input(&mut self, load: &str, name: &str, figure: &Figure) {
        self.found.inputs.push(Input::reckoned(load, name, figure));
    }

    fn value<T: Copy + Into<f64>>(&mut self, load: &str, value: T, figure: Figure) -> Given<T> {
        self.input(load, &figure.name.clone(), &figure);
        Given::captured(value, figure)
    }

    /// The same, with all lines that the figure rests on.
    fn value_of<T: Copy + Into<f64>>(
        &mut self,
        load: &str,
        value: T,
        (figure, lines): (Figure, &[At]),
    ) -> Given<T> {
        let given = self.value(load, value, figure);
        if let Some(input) = self.found.inputs.last_mut() {
            input.lines.extend(lines);
            input.lines.sort_unstable();
            input.lines.dedup();
        }
        given
    }

    fn lack(&mut self, load: &str, what: &str, instead: &str, capture: String) {
        self.found.missing.push(Missing::new(load, what, instead, capture));
    }

    fn on(&self) -> String {
        self.view.spoken(self.host).to_owned()
    }

    /// Clock, kind of processors, and what it has and uses now.
    fn partition(&mut self) {
        const LOAD: &str = "VIOS";
        let (view, host) = (self.view, self.host);
        match self.clock() {
            Some(figure) => {
                self.found.workloads.vios.clock_ghz = Some(self.value(LOAD, figure.low, figure));
            }
            None => {
                let capture = format!("prtconf on {}", self.on());
                self.lack(LOAD, "clock of the processors", "that of the tables, 1.65 GHz", capture);
            }
        }
        let runs = || view.of(host).filter_map(Report::lparstat);
        let kind = runs().filter_map(|run| run.kind.as_ref()).last();
        let lower = kind.map(|read| read.value.to_ascii_lowercase()).unwrap_or_default();
        self.found.workloads.vios.processors = match lower.as_str() {
            word if word.starts_with("shared") => Some(Processors::Shared),
            word if word.starts_with("dedicated") => Some(Processors::Dedicated),
            _ => None,
        };
        match (kind, self.found.workloads.vios.processors) {
            (Some(read), Some(_)) => self.word(LOAD, "processors", &read.value, read.at),
            _ => {
                let capture = format!("lparstat -i on {}", self.on());
                self.lack(LOAD, "shared or dedicated processors", "both are told", capture);
            }
        }
        self.now();
    }

    /// An input that is a word.
    fn word(&mut self, load: &str, name: &str, value: &str, at: At) {
        self.found.inputs.push(Input::read(load, name, value, at));
    }

    /// The clock, as this system printed it or another one on the same machine.
    fn clock(&self) -> Option<Figure> {
        let (view, host) = (self.view, self.host);
        let others = view.hosts().filter(|other| view.same_machine(*other, host));
        let by = |name: &str, formula: &str, value: f64, unit: &str, at: At| {
            Figure::new("GHz", "GHz", formula, vec![Term::read(name, value, unit, at)])
        };
        std::iter::once(host).chain(others).find_map(|host| {
            let about = view.of(host).filter_map(Report::host);
            let mhz = about.filter_map(|report| report.about.clock_mhz).last();
            let hertz = || view.number(host, "proc0", "frequency");
            mhz.map(|read| by("MHz", "MHz ÷ 1000", as_f64(read.value), "MHz", read.at))
                .or_else(|| hertz().map(|(hz, at)| by("Hz", "Hz ÷ 1000000000", hz, "Hz", at)))
        })
    }

    fn now(&mut self) {
        let runs = || self.view.of(self.host).filter_map(Report::lparstat);
        let mut now = Vec::new();
        let entitled = runs().filter_map(|run| run.entitlement).last();
        now.extend(entitled.map(|read| shown("entitlement", read.value, "processors", read.at)));
        let virtual_cpus = runs().filter_map(|run| run.virtual_cpus).last();
        now.extend(virtual_cpus.map(|read| {
            shown("virtual processors", as_f64(read.value), "virtual processors", read.at)
        }));
        let measured = runs().filter(|run| !run.samples.is_empty()).last();
        let used: Vec<Read<f64>> = measured
            .into_iter()
            .flat_map(|run| &run.samples)
            .filter_map(|sample| sample.physical)
            .collect();
        if let Some(last) = used.last() {
            let mean = used.iter().map(|read| read.value).sum::<f64>() / count(used.len());
            self.found.used = Some(mean);
            now.push(shown(
                "processors in use, mean of the intervals",
                mean,
                "processors",
                last.at,
            ));
        }
        let memory = runs().filter_map(|run| run.memory_mb).last();
        now.extend(memory.map(|read| shown("memory", as_f64(read.value), "MB", read.at)));
        self.found.now = now;
    }

    /// A shared Ethernet adapter, by the traffic of its real adapter.
    fn bridge(&mut self, bridge: &Bridge<'a>) {
        let load = format!("SEA {}", bridge.name);
        let capture = format!("entstat -all {} on {} twice, under load", bridge.name, self.on());
        let named = bridge.sea().and_then(|sea| sea.real_adapter.as_ref()).map(|read| &*read.value);
        let attribute = bridge.attribute(self.view, "real_adapter").map(|read| &*read.value);
        let Some(real) = named.or(attribute) else {
            return self.lack(&load, "its traffic", "nothing: it is left out", capture);
        };
        let of = |run: &&'a Entstat| {
            let adapter = run.adapters.iter().find(|adapter| adapter.name.value == *real)?;
            Some((*run, adapter))
        };
        let samples: Vec<(&Entstat, &Ethernet)> = bridge.runs.iter().filter_map(of).collect();
        let Some(traffic) = Traffic::of(&samples) else {
            return self.lack(&load, "its traffic", "nothing: it is left out", capture);
        };
        self.averages |= !traffic.measured;
        let [sent, received] = traffic.bytes;
        let direction = match sent.min(received) >= sent.max(received) * BOTH_WAYS {
            true => Direction::Duplex,
            false => Direction::Simplex,
        };
        let (mtu, threaded) = self.bridge_attributes(bridge, &load);
        let packet = traffic.bytes_of_a_packet();
        // As small as the requests that were measured: each packet costs, not each byte.
        let transactions = packet.low <= largest_transaction(self.view.facts);
        let mut sea = Sea {
            name: Some(bridge.name.to_owned()),
            streaming_mb: 0.0.into(),
            direction,
            mtu,
            threaded,
            transactions: 0.0.into(),
            transaction_bytes: 64.into(),
        };
        match transactions && packet.low > 0.0 {
            true => {
                let (rate, size) = (traffic.transactions(), whole(packet.low));
                sea.transactions = self.value_of(&load, rate.low, (rate, &traffic.lines));
                sea.transaction_bytes = self.value_of(&load, size, (packet, &traffic.lines));
            }
            false => {
                let rate = traffic.megabytes();
                sea.streaming_mb = self.value_of(&load, rate.low, (rate, &traffic.lines));
                let word = if direction == Direction::Duplex { "both ways" } else { "one way" };
                if let Some(at) = traffic.lines.last() {
                    self.word(&load, "direction", word, *at);
                }
            }
        }
        self.found.workloads.sea.push(sea);
        let state = bridge.failover().and_then(|failover| failover.state.as_ref());
        if state.is_some_and(|state| state.value.starts_with("BACKUP")) {
            self.found.notes.push(format!(
                "{} is the backup of its pair: after a failover it carries the load of the other server, which is to be added.",
                bridge.name
            ));
        }
    }

    /// MTU by `jumbo_frames`, and `thread`.
    fn bridge_attributes(&mut self, bridge: &Bridge<'a>, load: &str) -> (u32, Option<bool>) {
        let capture = format!("lsdev -dev {} -attr on {}", bridge.name, self.on());
        let mtu = match bridge.attribute(self.view, "jumbo_frames") {
            Some(read) => {
                self.word(load, "jumbo_frames", &read.value, read.at);
                if read.value == "yes" { 9000 } else { 1500 }
            }
            None => {
                self.lack(load, "jumbo_frames", "no: MTU 1500, which costs more", capture.clone());
                1500
            }
        };
        let threaded = match bridge.attribute(self.view, "thread") {
            Some(read) => {
                self.word(load, "thread", &read.value, read.at);
                Some(read.value != "0")
            }
            None => {
                self.lack(load, "thread", "its default, 1", capture);
                None
            }
        };
        (mtu, threaded)
    }

    /// Virtual Fibre Channel, by port: its own counters, or those of the clients behind it.
    fn fibre(&mut self) {
        let view = self.view;
        let here: Vec<&Npiv<'a>> =
            view.npiv().iter().filter(|map| map.vios == self.host && map.logged_in()).collect();
        let mut ports: Vec<&str> = here.iter().filter_map(|map| map.port()).collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            let maps: Vec<&Npiv<'a>> =
                here.iter().copied().filter(|map| map.port() == Some(port)).collect();
            let own = Requests::of(view.fcstats(self.host, port));
            let (mut clients, mut unknown) = (Vec::new(), Vec::new());
            for map in &maps {
                match requests_of(view, map, own.as_ref()) {
                    Some(requests) => clients.push((*map, requests)),
                    None => unknown.push(*map),
                }
            }
            let measured = || clients.iter().filter(|(_, requests)| requests.measured);
            let now: f64 = measured().map(|(_, requests)| requests.rate.low).sum();
            let all = measured().count() == maps.len();
            // An average of the port is worth less than a measurement of every client on it, or of some that alone
            // ask for more.
            let kept = own.filter(|own| own.measured || !(all || now > own.rate.low));
            if let Some(requests) = kept {
                self.fibre_load(port, requests, &maps);
                continue;
            }
            if !unknown.is_empty() {
                let names: Vec<String> = unknown
                    .iter()
                    .map(|map| format!("{} of {}", map.map.name, map.client_spoken()))
                    .collect();
                let what = match clients.is_empty() {
                    true => "requests and bytes a second".to_owned(),
                    false => format!("requests and bytes a second of {}", names.join(", ")),
                };
                let capture = format!("fcstat -D {port} on {} twice, each with date", self.on());
                let load = format!("virtual FC {port}");
                self.lack(&load, &what, "nothing: it is left out", capture);
            }
            for (map, requests) in clients {
                let adapter = map.client.zip(map.client_adapter());
                let name = match adapter {
                    Some((client, adapter)) => view.object(client, adapter),
                    None => format!("{} of {}", map.map.name, map.client_spoken()),
                };
                self.fibre_load(&name, requests, &[map]);
            }
        }
        self.not_logged_in();
    }

    /// Clients that carry nothing now and may later.
    fn not_logged_in(&mut self) {
        let out =
            self.view.npiv().iter().filter(|map| {
                map.vios == self.host && !map.logged_in() && map.client_key().is_some()
            });
        let names: Vec<String> =
            out.map(|map| format!("{} of {}", map.map.name, map.client_spoken())).collect();
        if !names.is_empty() {
            self.found.notes.push(format!(
                "Not logged in when captured, so their load is left out: {}.",
                names.join(", ")
            ));
        }
    }

    fn fibre_load(&mut self, name: &str, requests: Requests, maps: &[&Npiv<'a>]) {
        let view = self.view;
        let load = format!("virtual FC {name}");
        if requests.rate.low <= 0.0 {
            return self
                .found
                .notes
                .push(format!("{load}: not a request was counted, so it is left out."));
        }
        self.averages |= !requests.measured;
        let Some(first) = maps.first() else { return };
        let adapters = shown("adapters", count(maps.len()), "", first.map.at);
        let paths = || {
            let of = |map: &&Npiv<'a>| view.path(map.vios, map.map.name.as_str());
            maps.iter().filter_map(of)
        };
        let most = paths()
            .filter_map(|path| path.queues)
            .max_by(|one, two| one.0.total_cmp(&two.0))
            .filter(|(queues, _)| *queues >= 1.0);
        let service = maps
            .iter()
            .filter_map(|map| disk::mean_service(view, map.client?))
            .max_by(|one, two| one.low.total_cmp(&two.low));
        let queues = match most {
            Some((queues, at)) => {
                let figure = shown("queues", queues, "", at);
                Some(self.value(&load, whole(queues), figure))
            }
            None => {
                let capture = format!(
                    "cat /proc/sys/adapter/vfc/{}/stats on {}, as root",
                    first.map.name,
                    self.on()
                );
                self.lack(&load, "queues of an adapter", "the default", capture);
                None
            }
        };
        let latency_ms = match service.filter(|figure| figure.low >= 0.001) {
            Some(figure) => {
                let figure = Figure { name: "response time".to_owned(), ..figure };
                Some(self.value(&load, figure.low, figure))
            }
            None => {
                let of = first.client_spoken();
                let capture = format!("iostat -D 30 4 on {of} under load");
                self.lack(&load, "response time of an I/O", "the range of the facts", capture);
                None
            }
        };
        let adapters = self.value(&load, whole(adapters.low), adapters);
        let iops = self.value_of(&load, requests.rate.low, (requests.rate, &requests.lines[0]));
        let block_bytes = match requests.bytes {
            Some(bytes) => self.value_of(&load, whole(bytes.low), (bytes, &requests.lines[1])),
            None => {
                let of = first.client_spoken();
                let adapter = first.client_adapter().unwrap_or("fcsN");
                let instead = "the smallest whose cost is known, which costs least";
                let capture = format!("fcstat -D {adapter} on {of}");
                self.lack(&load, "bytes of an I/O", instead, capture);
                smallest_io(view.facts).into()
            }
        };
        let fc = VirtualFc {
            name: Some(name.to_owned()),
            adapters,
            iops,
            block_bytes,
            queues,
            latency_ms,
        };
        self.found.workloads.virtual_fc.push(fc);
    }

    /// Clients of a shared storage pool.
    fn pool(&mut self) {
        const LOAD: &str = "shared storage pool";
        let view = self.view;
        let vhosts = self.own_vhosts();
        let has_lu = |adapter: &&&ScsiMap| {
            let mut backing = adapter.devices.iter().filter_map(|device| device.backing.as_ref());
            backing.any(|read| ssp::is_lu(&read.value))
        };
        let clients: Vec<&&ScsiMap> = vhosts.iter().filter(has_lu).collect();
        let Some(first) = clients.first() else { return };
        let Some(size) = ssp::size(view, self.host) else {
            let capture = format!("lssp -clustername CLUSTER on {}", self.on());
            return self.lack(LOAD, "size of the pool", "nothing: it is left out", capture);
        };
        let listed = ssp_luns::on_host(view, self.host);
        let names: Vec<&str> =
            listed.iter().flat_map(|list| &list.luns).map(|lun| lun.name.as_str()).collect();
        let load = match names.is_empty() {
            true => None,
            false => self.disks(LOAD, &names),
        };
        let (iops, block_bytes) = load.unwrap_or_else(|| {
            if names.is_empty() {
                let capture = format!("pv -list, and iostat -D 30 4, on {}", self.on());
                let instead = "none: what a node must have at least is told";
                self.lack(LOAD, "I/O of the pool's LUNs", instead, capture);
            }
            (0.0.into(), smallest_io(view.facts).into())
        });
        let luns = listed.and_then(|list| Some((count(list.luns.len()), list.luns.first()?.at)));
        let luns =
            luns.map(|(luns, at)| self.value(LOAD, whole(luns), shown("LUNs", luns, "", at)));
        let depths = names.iter().filter_map(|lun| view.number(self.host, lun, "queue_depth"));
        let least = depths.min_by(|one, two| one.0.total_cmp(&two.0));
        let lun_depth = match least {
            Some((depth, at)) => {
                Some(self.value(LOAD, whole(depth), shown("LUN depth", depth, "", at)))
            }
            None => {
                let capture =
                    format!("lsdev -dev hdiskN -attr of the pool's LUNs on {}", self.on());
                self.lack(LOAD, "queue_depth of the pool's LUNs", "the default", capture);
                None
            }
        };
        let lu_depth = self.client_depth(LOAD, "LU depth");
        if lu_depth.is_none() {
            let capture = "lsattr -El hdiskN on the clients".to_owned();
            self.lack(LOAD, "queue_depth of the clients' LUs", "the default", capture);
        }
        let of_clients = shown("clients", count(clients.len()), "", first.at);
        let pool_tb = self.value(LOAD, size.low, size);
        let clients = self.value(LOAD, whole(of_clients.low), of_clients);
        self.found.workloads.ssp.push(Ssp {
            name: None,
            iops,
            block_bytes,
            clients,
            pool_tb,
            luns,
            lun_depth,
            lu_depth,
        });
    }
}

/// What a client was seen to ask for through one adapter: between two captures of anything that shows its path, else
/// on average. How large the requests are, its own counters tell, else those of the port.
fn requests_of(view: &View<'_>, map: &Npiv<'_>, port: Option<&Requests>) -> Option<Requests> {
    let own = map.client.zip(map.client_adapter());
    let counted = own.and_then(|(client, adapter)| Requests::of(view.fcstats(client, adapter)));
    let seen = || view.path(map.vios, &map.map.name)?.measured_rate();
    match counted.as_ref().is_some_and(|own| own.measured) {
        true => counted,
        false => match seen() {
            Some(rate) => Some(Requests::seen(rate, counted.as_ref().or(port))),
            None => counted,
        },
    }
}

/// The largest request whose cost was measured.
fn largest_transaction(facts: &Facts) -> f64 {
    let sizes = facts.numbers("sea.cycles-per-transaction.").filter_map(|one| id::size_of(&one.id));
    sizes.max().map_or(0.0, f64::from)
}

/// The smallest I/O whose cost is known.
fn smallest_io(facts: &Facts) -> u32 {
    let sizes = facts.numbers("vscsi.cycles-per-io.disk.").filter_map(|one| id::size_of(&one.id));
    sizes.min().unwrap_or(1)
}

fn is_disk(name: &str) -> bool {
    is_numbered(name, "hdisk")
}

/// A logical volume or a file, not an optical drive.
fn is_volume(name: &str) -> bool {
    let optical = is_numbered(name, "cd") || name.to_ascii_lowercase().ends_with(".iso");
    !is_disk(name) && !ssp::is_lu(name) && !optical && !is_numbered(name, "rmt")
}

/// A count that is at least one.
fn whole(value: f64) -> u32 {
    rounded(value).and_then(|value| u32::try_from(value).ok()).unwrap_or(0).max(1)
}
