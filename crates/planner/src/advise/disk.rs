//! Disks: whether the queue in front of one is too short, the disk too slow, or the chain of depths uneven.
//!
//! The three are told apart by two numbers. Requests that find the queue full while the disk answers quickly want more
//! depth. A disk that answers slowly wants another cure: more depth would only move the wait into the storage. A disk
//! whose rate equals depth ÷ service time is at the limit that its depth sets.

use std::collections::BTreeMap;

use super::change::Change;
use super::disk_behind;
use super::disk_nmon;
use super::disk_transfer;
use super::finding::{Array, Draft, NoCommand, Severity, SlowDisk};
use super::multipath;
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::thresholds::{
    AT_LIMIT, FULL_PER_SECOND, FULL_SHARE, IDLE_TPS, LARGE_IO, SLOW_FACTOR, WAIT_MS, WAITING, fact,
    own,
};
use super::view::{Role, Value, View, as_f64};
use crate::capture::{At, DiskSample, Read, Report};
use crate::facts::id::DISK_SERVICE_MS_MAX;
use crate::trace::{Figure, Term, number};

/// What `disk-slow` says, and where to look.
pub(super) const SLOW: &str = "the disk answers slowly";
pub(super) const SLOW_EFFECT: &str = "No queue setting makes a disk faster: a greater queue_depth only moves the wait into the storage. Look there: the volume's own latency, its pool and cache, the other users of its ranks, the paths (lsmpio -Sl), the fabric's credits.";
const IOSTAT: &str = "iostat -D 30 4 on the client (or the VIOS) under load";

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "disk-queue-depth",
        about: "requests find the disk's queue full",
        on: Kind::Disk,
        evidence: IOSTAT,
        weight: 1.1,
        applies: measured,
        judge: |view, disk, out| judge(view, disk, Verdict::Full, out),
    },
    Rule {
        name: "disk-iops-limit",
        about: "a disk runs at the limit of its queue depth",
        on: Kind::Disk,
        evidence: IOSTAT,
        weight: 1.1,
        applies: measured,
        judge: |view, disk, out| judge(view, disk, Verdict::AtLimit, out),
    },
    Rule {
        name: "disk-slow",
        about: "a disk answers slowly, and not for want of queue depth",
        on: Kind::Disk,
        evidence: "iostat -D 30 4 on the client (or the VIOS) under load, or a file of nmon -d",
        weight: 1.1,
        applies: |view, disk| match disk_nmon::shows(view, disk) {
            true => Applicability::Judged,
            false => measured(view, disk),
        },
        judge: |view, disk, out| match view.disk_samples(disk.host).contains_key(disk.device) {
            true => judge(view, disk, Verdict::Slow, out),
            false => disk_nmon::judge(view, disk, out),
        },
    },
    Rule {
        name: "disk-depth-chain",
        about: "a client's disk has a deeper queue than its backing disk",
        on: Kind::Disk,
        evidence: "lsmap -all and lsdev -dev hdiskN -attr on the VIOS, lsattr -El hdiskN on the client",
        weight: 1.1,
        applies: |view, disk| Applicability::where_that(view.backs(disk.host, disk.device)),
        judge: disk_behind::depth_chain,
    },
    Rule {
        name: "disk-reserve-policy",
        about: "a shared disk is reserved by one path",
        on: Kind::Disk,
        evidence: "lsdev -dev hdiskN -attr of the mapped disks, and lsmap -all, on each VIOS",
        weight: 1.1,
        applies: |view, disk| {
            let known = view.attribute(disk.host, disk.device, "reserve_policy").is_some();
            Applicability::where_that(
                view.role(disk.host) == Role::Vios && (known || view.backs(disk.host, disk.device)),
            )
        },
        judge: reserve_policy,
    },
    Rule {
        name: "disk-max-transfer",
        about: "a LUN has another greatest transfer on a second VIOS",
        on: Kind::Disk,
        evidence: "lsdev -dev hdiskN -attr of the mapped disks, and lsmap -all, on each VIOS",
        weight: 1.1,
        applies: transfers,
        judge: disk_transfer::judge,
    },
];

/// A disk that a VIOS gives to clients, and whose greatest transfer is known.
fn transfers(view: &View<'_>, disk: &Object<'_>) -> Applicability {
    let known = view.attribute(disk.host, disk.device, "max_transfer").is_some();
    Applicability::where_that(known && view.backs(disk.host, disk.device))
}

/// A disk whose service is shown; its load decides whether it is worth a word.
fn measured(view: &View<'_>, disk: &Object<'_>) -> Applicability {
    match view.disk_samples(disk.host).contains_key(disk.device) {
        true => Applicability::Judged,
        false => Applicability::Lacking {
            why: "its service was not captured".to_owned(),
            capture: format!("iostat -D 30 4 on {} under load", view.spoken(disk.host)),
        },
    }
}

/// What a disk's figures come to; they are told apart, so that one is said at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Full,
    AtLimit,
    Slow,
}

/// The samples of each disk in the host's last `iostat`. Of several samples the first is the average since boot and
/// is left out.
pub(super) fn latest_run<'a>(
    view: &View<'a>,
    host: usize,
) -> BTreeMap<&'a str, Vec<&'a DiskSample>> {
    let mut disks: BTreeMap<&str, Vec<&DiskSample>> = BTreeMap::new();
    for report in view.of(host).filter_map(Report::iostat_d) {
        let mut of_report: BTreeMap<&str, Vec<&DiskSample>> = BTreeMap::new();
        for sample in &report.disks {
            of_report.entry(&sample.name).or_default().push(sample);
        }
        for (name, mut samples) in of_report {
            if samples.len() > 1 {
                samples.retain(|sample| sample.sample > 1);
            }
            disks.insert(name, samples);
        }
    }
    disks.retain(|name, samples| !samples.is_empty() && name.starts_with("hdisk"));
    disks
}

/// One disk's means over the samples.
struct Disk<'a> {
    host: usize,
    name: &'a str,
    rate: Option<Figure>,
    /// Of reads and writes, by their numbers.
    service: Option<Figure>,
    /// Reads and writes alone: their number a second, their service time.
    each: [(&'static str, Option<Value>, Option<Value>); 2],
    full: Option<Value>,
    wait_ms: Option<Value>,
    waiting: Option<Value>,
    in_service: Option<Value>,
    bytes: Option<Value>,
    depth: Option<Value>,
}

impl<'a> Disk<'a> {
    fn new(view: &View<'_>, host: usize, name: &'a str, samples: &[&DiskSample]) -> Self {
        let mean = |pick: fn(&DiskSample) -> Option<Read<f64>>| mean(samples, pick);
        let reads = mean(|sample| sample.read.per_second);
        let writes = mean(|sample| sample.write.per_second);
        let terms = |both: [(&str, Option<Value>, &str); 2]| -> Vec<Term> {
            let [one, two] = both;
            let term = |(name, value, unit): (&str, Option<Value>, &str)| {
                value.map(|(value, at)| Term::read(name, value, unit, at))
            };
            [one, two].into_iter().filter_map(term).collect()
        };
        let rates = terms([("reads", reads, "I/O/s"), ("writes", writes, "I/O/s")]);
        let rate = match rates.len() {
            2 => Some(Figure::new("requests a second", "I/O/s", "reads + writes", rates.clone())),
            _ => mean(|sample| sample.transfers_per_second).map(|(value, at)| {
                Figure::plain(Term::read("transfers a second", value, "I/O/s", at))
            }),
        };
        let read = weighted(samples, |sample| (sample.read.per_second, sample.read.average_ms));
        let write = weighted(samples, |sample| (sample.write.per_second, sample.write.average_ms));
        let services = terms([("read service", read, "ms"), ("write service", write, "ms")]);
        let service = match (services.len(), rates.len()) {
            (2, 2) => Some(Figure::new(
                "average service time",
                "ms",
                "(read service × reads + write service × writes) ÷ (reads + writes)",
                services.into_iter().chain(rates).collect(),
            )),
            (1, _) => services.into_iter().next().map(Figure::plain),
            _ => None,
        };
        Self {
            host,
            name,
            rate,
            service: service.filter(|figure| figure.low.is_finite()),
            each: [("reads", reads, read), ("writes", writes, write)],
            full: mean(|sample| sample.queue.full_per_second),
            wait_ms: mean(|sample| sample.queue.average_ms),
            waiting: mean(|sample| sample.queue.waiting),
            in_service: mean(|sample| sample.queue.in_service),
            bytes: mean(|sample| sample.bytes_per_second),
            depth: view.number(host, name, "queue_depth"),
        }
    }

    fn tps(&self) -> f64 {
        self.rate.as_ref().map_or(0.0, |figure| figure.low)
    }

    fn service_ms(&self) -> f64 {
        self.service.as_ref().map_or(0.0, |figure| figure.low)
    }

    /// The direction that is slow by itself, with its service time: what is fast in the other one hides it in the mean.
    fn slow_direction(&self, from: f64) -> Option<(&'static str, f64)> {
        self.each.iter().find_map(|(what, rate, service)| {
            let (rate, _) = (*rate)?;
            let (service, _) = (*service)?;
            (rate >= IDLE_TPS && service >= from).then_some((*what, service))
        })
    }

    /// Requests find the queue full, and wait for it.
    fn queue_is_full(&self) -> bool {
        let Some((full, _)) = self.full else { return false };
        let often = full >= FULL_PER_SECOND && full >= FULL_SHARE * self.tps();
        let waits = |value: Option<Value>, least: f64| value.map(|(value, _)| value >= least);
        let waiting = [waits(self.wait_ms, WAIT_MS), waits(self.waiting, WAITING)];
        often && (waiting.contains(&Some(true)) || waiting == [None, None])
    }

    /// The rate that depth and service time allow.
    fn limit(&self) -> Option<Figure> {
        let (depth, at) = self.depth?;
        let service = self.service.as_ref().filter(|figure| figure.low > 0.0)?;
        let terms = vec![
            Term::read("queue_depth", depth, "commands", at),
            Term::of(service).named("service time"),
            Term::new("ms in a second", 1000.0, "ms", crate::trace::Origin::Given),
        ];
        let terms: Vec<Term> = terms.into_iter().take(2).collect();
        Some(Figure::new(
            "limit of the queue depth",
            "I/O/s",
            "queue_depth × 1000 ÷ service time",
            terms,
        ))
    }

    fn lines(&self) -> Vec<At> {
        let of = |value: Option<Value>| value.map(|(_, at)| at);
        let figures = self.rate.iter().chain(&self.service);
        let terms = figures.flat_map(|figure| &figure.terms).filter_map(|term| match term.origin {
            crate::trace::Origin::Capture(at) => Some(at),
            _ => None,
        });
        let others = [
            of(self.full),
            of(self.wait_ms),
            of(self.waiting),
            of(self.in_service),
            of(self.depth),
        ];
        terms.chain(others.into_iter().flatten()).collect()
    }

    fn draft(&self, view: &View<'_>, rule: &'static str, title: &str) -> Draft {
        let draft = Draft::new(
            rule,
            self.host,
            view.object(self.host, self.name),
            Severity::Warning,
            title.to_owned(),
        )
        .see(self.lines());
        self.rate.iter().chain(&self.service).cloned().fold(draft, Draft::figure)
    }
}

/// Where requests find the queue of a disk full, and wait: the line that says so.
pub(super) fn waits_at(view: &View<'_>, host: usize, name: &str) -> Option<At> {
    let (name, samples) = view.disk_samples(host).get_key_value(name)?;
    let disk = Disk::new(view, host, name, samples);
    disk.full.filter(|_| disk.queue_is_full()).map(|(_, at)| at)
}

/// A mean over the samples, and the line of the last one.
pub(super) fn mean(
    samples: &[&DiskSample],
    pick: impl Fn(&DiskSample) -> Option<Read<f64>>,
) -> Option<Value> {
    let values: Vec<Read<f64>> = samples
        .iter()
        .filter_map(|sample| pick(sample))
        .filter(|read| read.value.is_finite())
        .collect();
    let last = values.last()?;
    Some((
        values.iter().map(|read| read.value).sum::<f64>() / super::view::count(values.len()),
        last.at,
    ))
}

/// The mean service time, each sample by its requests.
fn weighted(
    samples: &[&DiskSample],
    pick: impl Fn(&DiskSample) -> (Option<Read<f64>>, Option<Read<f64>>),
) -> Option<Value> {
    let pairs: Vec<(f64, Read<f64>)> = samples
        .iter()
        .filter_map(|sample| {
            let (rate, service) = pick(sample);
            Some((rate?.value, service?))
        })
        .collect();
    let last = pairs.last()?.1.at;
    let rates: f64 = pairs.iter().map(|(rate, _)| rate).sum();
    let total: f64 = pairs.iter().map(|(rate, service)| rate * service.value).sum();
    let value = if rates > 0.0 { total / rates } else { 0.0 };
    value.is_finite().then_some((value, last))
}

/// The mean service time of all disks of a system, each by its requests.
pub(super) fn mean_service(view: &View<'_>, host: usize) -> Option<Figure> {
    let disks = view.disk_samples(host).iter();
    let disks = disks.map(|(name, samples)| Disk::new(view, host, name, samples));
    let (mut requests, mut weighted, mut at) = (0.0, 0.0, None);
    for disk in disks {
        let (Some(rate), Some(service)) = (&disk.rate, &disk.service) else { continue };
        if rate.low.is_finite() {
            requests += rate.low;
            weighted += rate.low * service.low;
            at = disk.lines().first().copied().or(at);
        }
    }
    let at = at.filter(|_| requests > 0.0)?;
    let terms = vec![
        Term::read("busy time", weighted, "ms/s", at),
        Term::read("requests", requests, "I/O/s", at),
    ];
    let name = "mean service time of the client's disks";
    Some(Figure::new(name, "ms", "busy time ÷ requests", terms))
}

fn judge(view: &View<'_>, object: &Object<'_>, wanted: Verdict, out: &mut Out) {
    let Some(samples) = view.disk_samples(object.host).get(object.device) else { return };
    let disk = &Disk::new(view, object.host, object.device, samples);
    if disk.tps() < IDLE_TPS {
        return;
    }
    let slow_from = fact(view.facts, DISK_SERVICE_MS_MAX) * SLOW_FACTOR;
    let per_io = disk.bytes.map(|(bytes, _)| bytes / disk.tps());
    let large = per_io.is_some_and(|bytes| bytes >= LARGE_IO);
    let slow_from = if large { slow_from * 2.0 } else { slow_from };
    let is_slow = disk.service_ms() >= slow_from;
    // Of a disk with large requests it is not known which direction has them.
    let one_way = disk.slow_direction(slow_from).filter(|_| !is_slow && !large);
    let limit = disk.limit();
    let share = limit.as_ref().map(|limit| disk.tps() / limit.low);
    // More in service than the depth allows means that the depth captured is not the one in use.
    let at_limit = share.is_some_and(|share| (AT_LIMIT..=1.15).contains(&share));
    if wanted == Verdict::AtLimit && disk.depth.is_none() && disk.queue_is_full() {
        out.lack("queue_depth", view.show_attributes(disk.host, disk.name));
    }
    let verdict = match () {
        () if at_limit && !(is_slow && disk.depth.is_some_and(|(depth, _)| depth >= 16.0)) => {
            Verdict::AtLimit
        }
        () if is_slow => Verdict::Slow,
        () if disk.queue_is_full() => Verdict::Full,
        () if one_way.is_some() => Verdict::Slow,
        () => return,
    };
    match verdict {
        _ if verdict != wanted => {}
        Verdict::AtLimit => iops_limit(view, disk, limit, share.unwrap_or(1.0), is_slow, out),
        Verdict::Slow => slow(view, disk, large, one_way, out),
        Verdict::Full => queue_depth(view, disk, limit, out),
    }
}

/// The depth to set: what was in service and waiting, at least half as much again, at most four times as much.
fn deeper(view: &View<'_>, disk: &Disk<'_>, mut draft: Draft) -> Draft {
    let kinds: &[&str] =
        if view.role(disk.host) == Role::Vios { &["hdisk-vios", "hdisk"] } else { &["hdisk"] };
    let limits = view.allowed(disk.host, disk.name, kinds, "queue_depth");
    let outstanding = disk.in_service.zip(disk.waiting);
    let mut wanted = 0.0;
    if let Some(((in_service, at), (waiting, waiting_at))) = outstanding {
        let terms = vec![
            Term::read("in service", in_service, "requests", at),
            Term::read("waiting", waiting, "requests", waiting_at),
        ];
        let figure = Figure::new(
            "requests outstanding",
            "requests",
            "round_up(in service + waiting, 4)",
            terms,
        );
        wanted = figure.low;
        draft = draft.figure(figure);
    }
    let next = "spread the data over more disks: each brings a queue of its own";
    let Some((depth, at)) = disk.depth else {
        return draft.effect("Capture queue_depth; it tells the value to set.".to_owned());
    };
    if limits.max.is_some_and(|max| depth >= as_f64(max)) {
        let figure = limits.max_term("greatest value allowed", "commands").map(Figure::plain);
        return figure.into_iter().fold(draft, Draft::figure).effect(format!("queue_depth is already at the greatest value, so no command raises it. Next step: {next}."));
    }
    let terms = vec![Term::read("queue_depth", depth, "commands", at)];
    let least = Figure::new(
        "half as much again",
        "commands",
        "round_up(queue_depth × 1.5, 1)",
        terms.clone(),
    );
    let most = Figure::new("four times as much", "commands", "queue_depth × 4", terms);
    let wanted = wanted.clamp(least.low, most.low.max(least.low));
    let Some(target) = limits.fit_or_max(wanted).filter(|target| as_f64(*target) > depth) else {
        return draft.effect(format!("No greater queue_depth is allowed. Next step: {next}."));
    };
    let change = Change::new(view, disk.host, disk.name).set("queue_depth", target.to_string());
    let draft = draft.figure(least).figure(most);
    let open = disk_behind::over_scsi(view, (disk.host, disk.name), as_f64(target))
        .or_else(|| disk_behind::under_scsi(view, (disk.host, disk.name)));
    let draft = match open {
        Some(look_up) => {
            draft.unknown(NoCommand { values: change.values(), look_up, already: None })
        }
        None => draft.change(&change),
    };
    draft.effect(format!(
        "Up to {} commands are at the disk at a time instead of {}; requests wait less in front of it. It takes effect when the disk is configured again.",
        number(as_f64(target)),
        number(depth)
    ))
}

const DEPTH_HARM: &str = "More commands reach the storage at a time; when it is busy already, service times rise. Over virtual SCSI the depth must not be larger than that of the backing disk on the VIOS, and takes command elements of the adapter.";

fn queue_depth(view: &View<'_>, disk: &Disk<'_>, limit: Option<Figure>, out: &mut Out) {
    let full = disk.full.map_or(0.0, |(full, _)| full);
    let mut draft = disk
        .draft(view, "disk-queue-depth", "requests find the disk's queue full")
        .because(format!(
            "{} times a second a request found the queue full (sqfull), and waited.",
            number(full)
        ))
        .because("The disk itself answers quickly, so it could take more at a time.")
        .harm(DEPTH_HARM)
        .weigh(if disk.service.is_some() { 0.9 } else { 0.7 }, 1.0);
    if let Some((full, at)) = disk.full {
        draft = draft.figure(Figure::plain(Term::read("sqfull", full, "times/s", at)));
    }
    draft = limit.into_iter().fold(draft, Draft::figure);
    if disk.depth.is_none() {
        out.lack("queue_depth", view.show_attributes(disk.host, disk.name));
    }
    out.push(deeper(view, disk, draft));
}

fn iops_limit(
    view: &View<'_>,
    disk: &Disk<'_>,
    limit: Option<Figure>,
    share: f64,
    is_slow: bool,
    out: &mut Out,
) {
    let mut draft = disk
        .draft(view, "disk-iops-limit", "the disk runs at the limit of its queue depth")
        .because(format!("A disk with queue_depth commands at a time, each taking the service time, cannot do more than their quotient. This one runs at {} % of it.", number((share * 100.0).round())))
        .harm(DEPTH_HARM)
        .weigh(0.88, 1.05);
    draft = limit.into_iter().fold(draft, Draft::figure);
    if is_slow {
        draft = draft.because(
            "Its service time is high, too; but with so small a depth the depth comes first.",
        );
    }
    out.push(deeper(view, disk, draft));
}

fn slow(
    view: &View<'_>,
    disk: &Disk<'_>,
    large: bool,
    one_way: Option<(&str, f64)>,
    out: &mut Out,
) {
    let service = one_way.map_or_else(|| disk.service_ms(), |(_, service)| service);
    let usual = number(fact(view.facts, DISK_SERVICE_MS_MAX));
    let ms = number(service);
    let mut draft = disk
        .draft(view, "disk-slow", SLOW)
        .because(match one_way {
            Some((what, _)) => format!("The average service time of {what} alone is {ms} ms; below {usual} ms is usual. In the mean of all requests the others, which are fast, hide it."),
            None => format!("The average service time is {ms} ms; below {usual} ms is usual."),
        })
        .figure(Figure::plain(view.facts.term(DISK_SERVICE_MS_MAX, "usual service time, at most")))
        .figure(Figure::plain(own("margin before this rule speaks", SLOW_FACTOR, "times")))
        .effect(SLOW_EFFECT)
        .harm("Nothing is changed here.");
    if !disk.queue_is_full() {
        draft = draft
            .because("Requests do not wait in front of the disk, so its depth is not the cause.");
    } else {
        draft = draft.because("Its queue is full, too, because each request stays so long: depth is the effect, not the cause.");
    }
    if large {
        draft = draft.because(
            "The requests are large, which takes time by itself; this is more than that explains.",
        );
    }
    if one_way.is_some_and(|(what, _)| what == "writes") {
        draft = draft.because("Writes that are slower than reads do not go into a cache: its battery, a full cache, or a mirror over a distance. A database waits for its log so long.");
    }
    let draft = draft.slow(slow_disk(view, disk.host, disk.name, service));
    out.push(draft.weigh(if service >= 30.0 { 0.9 } else { 0.75 }, 1.0));
}

/// A slow disk with what tells its array: the port that its paths lead to, else what it says that it is.
pub(super) fn slow_disk(view: &View<'_>, host: usize, disk: &str, ms: f64) -> SlowDisk {
    let lists = view.of(host).filter_map(Report::disk_paths);
    let paths = lists.flat_map(|list| &list.paths).filter(|path| path.disk == disk);
    let is_port =
        |text: &&str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let ports = paths.filter_map(|path| path.storage_port()).filter(is_port);
    let lists = view.of(host).filter_map(Report::lscfg);
    let device = lists.flat_map(|list| &list.devices).filter(|device| device.name == disk).last();
    let array = match (ports.min(), device) {
        (Some(port), _) => Array::Port(port.to_owned()),
        (None, Some(device)) => Array::Model(device.description.clone()),
        (None, None) => Array::Unknown,
    };
    SlowDisk { name: disk.to_owned(), ms, array }
}

/// `disk-reserve-policy`: a disk that several VIOS give to clients, reserved by one path of one of them.
fn reserve_policy(view: &View<'_>, disk: &Object<'_>, out: &mut Out) {
    const RULE: &str = "disk-reserve-policy";
    let Some(policy) = view.attribute(disk.host, disk.device, "reserve_policy") else {
        return out.lack("reserve_policy", view.show_attributes(disk.host, disk.device));
    };
    let reserved = policy.value == "single_path" || policy.value == "PR_exclusive";
    if !reserved {
        return;
    }
    let twin = !twins(view, (disk.host, disk.device)).is_empty();
    // What is built into the machine no second VIOS can see; what is written on a disk can be on two, as one that was copied.
    let known = view.attribute(disk.host, disk.device, "unique_id").is_some();
    if !(twin && known) && multipath::is_built_in(view, disk.host, disk.device) == Some(true) {
        return;
    }
    // A disk that is given to nobody is the VIOS's own, and may be reserved.
    let listed = view.of(disk.host).any(|report| report.lsmap_scsi().is_some());
    if !view.backs(disk.host, disk.device) && (listed || !twin) {
        if !listed {
            out.lack(
                "whether it is given to clients",
                format!("lsmap -all on {}", view.spoken(disk.host)),
            );
        }
        return;
    }
    let change = Change::new(view, disk.host, disk.device).set("reserve_policy", "no_reserve");
    let draft =
        Draft::new(RULE, disk.host, disk.label.clone(), Severity::Warning, format!("a disk that is given to clients has reserve_policy={}", policy.value))
            .see([policy.at])
            .because("The VIOS that opens the disk first reserves it: through the other VIOS its clients get no access, and a migration or a failover fails.")
            .because(if twin { "The same disk is seen by a second VIOS." } else { "It is mapped to a client. With a single VIOS it would do no harm until a second one is added." })
            .change(&change)
            .effect("Every VIOS and path can open the disk. It takes effect when the disk is configured again: unmap it or restart the VIOS, one of the pair at a time.")
            .harm("Nothing guards the disk against two users any more: make sure that only one client, or a cluster file system, has it.")
            .weigh(if twin { 0.95 } else { 0.75 }, 1.0);
    out.push(match listed {
        true => draft,
        false => draft.in_doubt(format!(
            "whether it is given to clients: lsmap -all on {}",
            view.spoken(disk.host)
        )),
    });
}

/// The disks of other VIOS that are the same LUN, by the id that the storage gives it, else by the one written on it.
pub(super) fn twins<'a>(view: &View<'a>, (host, disk): (usize, &str)) -> Vec<(usize, &'a str)> {
    let id = |host, disk: &str, name| {
        let value = view.attribute(host, disk, name).map(|attribute| attribute.value.as_str());
        value.filter(|value| !value.is_empty() && *value != "none")
    };
    let same = |(other, twin): &(usize, &str)| {
        let pair = |name| id(host, disk, name).zip(id(*other, twin, name));
        pair("unique_id").or_else(|| pair("pvid")).is_some_and(|(one, two)| one == two)
    };
    let others = view.hosts().filter(|other| *other != host && view.role(*other) == Role::Vios);
    others
        .flat_map(|other| view.devices(other, "hdisk").into_iter().map(move |twin| (other, twin)))
        .filter(same)
        .collect()
}
