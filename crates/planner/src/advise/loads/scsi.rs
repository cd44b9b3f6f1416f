//! Virtual SCSI: over disks of the server, and over its logical volumes and files.

use std::collections::BTreeSet;

use super::{Server, is_disk, is_volume, whole};
use crate::advise::disk::mean;
use crate::advise::disk_behind;
use crate::advise::view::{Value, View, count, shown};
use crate::capture::{At, Nmon, Read, Report, ScsiMap};
use crate::size::{Backing, Given, Vscsi};
use crate::trace::{Figure, Term};

/// What a disk moves, in the mean.
struct Moved {
    per_second: Option<Value>,
    bytes_per_second: Option<Value>,
}

impl Moved {
    /// By the last `iostat -D` of the system that shows the disk, else by its last file of nmon that does.
    fn of(view: &View<'_>, host: usize, disk: &str) -> Option<Self> {
        if let Some(samples) = view.disk_samples(host).get(disk) {
            return Some(Self {
                per_second: mean(samples, |sample| sample.transfers_per_second),
                bytes_per_second: mean(samples, |sample| sample.bytes_per_second),
            });
        }
        view.of(host).filter_map(Report::nmon).filter_map(|nmon| Self::of_nmon(nmon, disk)).last()
    }

    /// `DISKXFER` counts transfers; `DISKREAD` and `DISKWRITE` are in KB, of 1024 bytes.
    fn of_nmon(nmon: &Nmon, disk: &str) -> Option<Self> {
        let mean = |section: &str| {
            let series = nmon.series(section, disk);
            let last = series.last()?;
            let sum = series.iter().map(|read| read.value).sum::<f64>();
            Some(Read { value: sum / count(series.len()), at: last.at })
        };
        let transfers = mean("DISKXFER")?;
        let both = mean("DISKREAD").zip(mean("DISKWRITE"));
        Some(Self {
            per_second: Some((transfers.value, transfers.at)),
            bytes_per_second: both
                .map(|(read, written)| ((read.value + written.value) * 1024.0, written.at)),
        })
    }
}

impl<'a> Server<'_, 'a> {
    pub(super) fn own_vhosts(&self) -> Vec<&'a ScsiMap> {
        let own = self.view.vhosts().iter().filter(|(host, _)| *host == self.host);
        own.map(|(_, adapter)| *adapter).collect()
    }

    /// Virtual SCSI over disks of the server.
    pub(super) fn scsi(&mut self) {
        const LOAD: &str = "virtual SCSI";
        let view = self.view;
        let vhosts = self.own_vhosts();
        let behind = |adapter: &&ScsiMap, wanted: fn(&str) -> bool| {
            let backing = adapter.devices.iter().filter_map(|device| device.backing.as_ref());
            backing.filter(|read| wanted(&read.value)).count()
        };
        self.volumes(LOAD, &vhosts);
        let disks: Vec<&str> = view
            .backing()
            .iter()
            .filter(|(host, _)| *host == self.host)
            .map(|(_, disk)| *disk)
            .collect();
        if disks.is_empty() {
            return;
        }
        let Some((iops, block_bytes)) = self.disks(LOAD, &disks) else { return };
        let most = vhosts.iter().max_by_key(|adapter| behind(adapter, is_disk));
        let most =
            most.map(|adapter| (behind(adapter, is_disk), adapter.at)).filter(|most| most.0 > 0);
        let of_client = most.map(|(disks, at)| {
            self.value(LOAD, whole(count(disks)), shown("disks", count(disks), "", at))
        });
        let queue_depth = self.client_depth(LOAD, "queue_depth");
        if queue_depth.is_none() {
            let capture = "lsattr -El hdiskN on the clients".to_owned();
            self.lack(LOAD, "queue_depth of the clients' disks", "the default", capture);
        }
        self.found.workloads.vscsi.push(Vscsi {
            name: None,
            iops,
            block_bytes,
            backing: Backing::Disk,
            disks: of_client,
            queue_depth,
        });
    }

    /// Virtual SCSI over logical volumes and files: no command of the server tells their I/O, but that of the client
    /// whose disk each of them is does.
    fn volumes(&mut self, load: &str, vhosts: &[&ScsiMap]) {
        let view = self.view;
        let mut found: Vec<Moved> = Vec::new();
        let (mut volumes, mut unknown) = (0_usize, BTreeSet::new());
        for adapter in vhosts {
            let client = view.model.named_at(adapter.at);
            for device in &adapter.devices {
                let backing = device.backing.as_ref().filter(|read| is_volume(&read.value));
                let Some(backing) = backing.map(|read| read.value.as_str()) else { continue };
                volumes += 1;
                let moved = client.and_then(|client| {
                    let disk = disk_behind::in_front_of(view, (self.host, backing), client)?;
                    Moved::of(view, client, disk)
                });
                match moved {
                    Some(moved) => found.push(moved),
                    None => {
                        unknown.insert(client.map_or_else(
                            || {
                                let id = adapter.client_partition.map_or(0, |read| read.value);
                                format!("partition {id}")
                            },
                            |client| view.spoken(client).to_owned(),
                        ));
                    }
                }
            }
        }
        if found.len() < volumes {
            let clients: Vec<String> = unknown.into_iter().collect();
            let capture = format!(
                "iostat -D 30 4, lscfg | grep hdisk and lsattr -El hdiskN of each disk, on {}",
                clients.join(", ")
            );
            let what =
                format!("I/O of {} of {volumes} logical volumes or files", volumes - found.len());
            self.lack(load, &what, "nothing: it is left out", capture);
        }
        if let Some((iops, block_bytes)) = self.transfers(load, "volumes", &found) {
            self.found.workloads.vscsi.push(Vscsi {
                name: Some("logical volumes".to_owned()),
                iops,
                block_bytes,
                backing: Backing::Volume,
                disks: None,
                queue_depth: None,
            });
        }
    }

    /// The deepest queue of the clients' disks.
    pub(super) fn client_depth(&mut self, load: &str, name: &str) -> Option<Given<u32>> {
        let view = self.view;
        let clients = view.clients_of(self.host).into_iter();
        let depths = clients.flat_map(|host| {
            let disks = view.devices(host, "hdisk").into_iter();
            disks.filter_map(move |disk| view.number(host, disk, "queue_depth"))
        });
        let (depth, at) = depths.max_by(|one, two| one.0.total_cmp(&two.0))?;
        Some(self.value(load, whole(depth), shown(name, depth, "", at)))
    }

    /// Transfers a second and their size, of some disks of the server together.
    pub(super) fn disks(&mut self, load: &str, disks: &[&str]) -> Option<(Given<f64>, Given<u32>)> {
        let view = self.view;
        let found: Vec<Moved> =
            disks.iter().filter_map(|disk| Moved::of(view, self.host, disk)).collect();
        if found.len() < disks.len() {
            let what = format!("I/O of {} of {} disks", disks.len() - found.len(), disks.len());
            let capture = format!("iostat -D 30 4 on {} under load, as root", self.on());
            self.lack(load, &what, "nothing: it is left out", capture);
        }
        self.transfers(load, "disks", &found)
    }

    /// What some disks move together.
    fn transfers(
        &mut self,
        load: &str,
        what: &str,
        disks: &[Moved],
    ) -> Option<(Given<f64>, Given<u32>)> {
        let rates: Vec<Value> = disks.iter().filter_map(|disk| disk.per_second).collect();
        let bytes: Vec<Value> = disks.iter().filter_map(|disk| disk.bytes_per_second).collect();
        let sum = |values: &[(f64, At)]| values.iter().map(|(value, _)| value).sum::<f64>();
        let (rate, moved) = (sum(&rates), sum(&bytes));
        let (_, at) = rates.first()?;
        let (_, of_bytes) = bytes.first()?;
        if rate <= 0.0 {
            self.found.notes.push(format!("{load}: its {what} were idle, so they are left out."));
            return None;
        }
        let name = format!("transfers of {} {what}", rates.len());
        let transfers = Term::read(&name, rate, "I/O/s", *at);
        let figure = Figure::new("I/O/s", "1/s", &name, vec![transfers.clone()]);
        let terms =
            vec![Term::read("bytes/s", moved, "bytes/s", *of_bytes), transfers.named("I/O/s")];
        let size = Figure::new("bytes of an I/O", "bytes", "bytes/s ÷ I/O/s", terms);
        let lines =
            |values: &[(f64, At)]| -> Vec<At> { values.iter().map(|(_, at)| *at).collect() };
        let (of_rate, of_size) = (lines(&rates), [lines(&rates), lines(&bytes)].concat());
        let block = whole(size.low);
        Some((
            self.value_of(load, rate, (figure, &of_rate)),
            self.value_of(load, block, (size, &of_size)),
        ))
    }
}
