//! Storage pools by the original's names: `cluster`, `lssp`, `lu`, `pv`, `tier`, `failgrp`, `alert`, `snapshot`.

mod alerts;
mod groups;
mod tiers;

pub(super) use alerts::{ALERT, alert};
#[cfg(test)]
pub(super) use alerts::{AlertType, alerts};
pub(super) use groups::{Group, failgrp, pv};
#[cfg(test)]
pub(super) use groups::{list, pvs};
#[cfg(test)]
pub(super) use tiers::list as tiers;
pub(super) use tiers::{Tier, tier};

use super::act::patch;
use super::maps::{ListOptions, picked};
use super::media::{create, make_vtd, remove, remove_vtds};
use super::system::{System, number, text};
use super::text::{columns, delimited};
use super::words::Words;
use super::{Context, wrong};
use crate::commands::objects;
use crate::exit::Failure;
use control::api::{DoneView, ItemList};
use control::error::{ApiError, Code};
use control::server::{AdapterView, FrozenLuView, LuView, ObjectView, PvView};
use fabric::attribute::words::VolumeKind;
use fabric::attribute::{Object, attr};
use hyper::Method;
use serde_json::json;

/// The one cluster there is: this server.
const CLUSTER: &str = "trunkline";
/// The machine type of its node, where the original has that of a system; its serial number is the node's name.
const MACHINE: &str = "TRUNKLINE";

/// Fields of `lssp` for `-field`, in the order of `-fmt`.
const POOL_FIELDS: &[&str] = &["pool", "size", "free", "total", "overcommit", "lus", "type", "id"];

/// A storage pool, sizes in MB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) open: bool,
    /// Something that it has two copies of has one now.
    pub(super) degraded: bool,
    pub(super) size: u64,
    pub(super) free: u64,
    /// What its LUs have in all.
    pub(super) total: u64,
    pub(super) overcommit: u64,
    pub(super) id: String,
    /// Of its size, so much may be free at least before it warns.
    pub(super) threshold: u64,
    /// In percent of its size, from so much overcommitment on it warns; 0: never.
    pub(super) promised: u64,
    pub(super) groups: Vec<Group>,
    /// Of each, the first of them first.
    pub(super) tiers: Vec<Tier>,
    pub(super) pvs: Vec<Pv>,
    pub(super) lus: Vec<Lu>,
}

/// A PV of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pv {
    pub(super) path: String,
    /// Its failure group.
    pub(super) group: String,
    /// Its tier.
    pub(super) tier: String,
    pub(super) size: u64,
    /// As `-list` has it.
    pub(super) state: &'static str,
    pub(super) udid: String,
}

/// An LU of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lu {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) unused: u64,
    pub(super) used_percent: u64,
    pub(super) thick: bool,
    /// Its tier.
    pub(super) tier: String,
    pub(super) udid: String,
    /// Snapshots of it.
    pub(super) snapshots: Vec<String>,
}

/// What stands for the name of an LU that is nobody's begins so; no volume's does.
const NOBODY: char = '(';

fn megabytes(bytes: u64) -> u64 {
    bytes >> 20
}

impl Pv {
    fn of(pv: &PvView) -> Pv {
        Pv {
            path: pv.path.clone(),
            group: pv.failgrp.clone(),
            tier: pv.tier.clone(),
            size: megabytes(pv.size_bytes),
            state: groups::state_of(pv),
            udid: pv.uuid.replace('-', ""),
        }
    }
}

impl Lu {
    /// 27 is what the identifiers of LUs begin with in the original.
    fn of(lu: &LuView, pool: &str, snapshots: &[FrozenLuView]) -> Lu {
        let used = lu.used_bytes.min(lu.size_bytes);
        let of_it = |it: &&FrozenLuView| lu.volume.as_ref() == Some(&it.volume);
        Lu {
            name: lu.volume.clone().unwrap_or_else(|| format!("{NOBODY}{})", lu.number)),
            size: megabytes(lu.size_bytes),
            unused: megabytes(lu.size_bytes - used),
            used_percent: used * 100 / lu.size_bytes.max(1),
            thick: lu.thick,
            tier: lu.tier.clone(),
            udid: format!("27{pool}{:08x}", lu.number),
            snapshots: snapshots.iter().filter(of_it).map(|it| it.snapshot.clone()).collect(),
        }
    }

    fn kind(&self) -> &'static str {
        if self.thick { "THICK" } else { "THIN" }
    }
}

impl Pool {
    fn of(view: &ObjectView) -> Pool {
        let id = text(&view.effective, attr::pool::UUID.name).unwrap_or_default().replace('-', "");
        let warns = number(&view.effective, attr::pool::WARN_PERCENT.name).unwrap_or_default();
        let threshold = 100_u64.saturating_sub(warns);
        let promised = number(&view.effective, attr::pool::WARN_OVERCOMMIT_PERCENT.name);
        let promised = promised.unwrap_or_default();
        let degraded = view.state.as_deref() == Some("degraded");
        let open = degraded || view.state.as_deref() == Some("open");
        let name = view.name.clone();
        let Some(space) = &view.space else {
            let (groups, tiers) = (Group::named(&view.effective), Tier::named(&view.effective));
            let pool = Pool { name, open, degraded, id, threshold, promised, ..Pool::default() };
            return Pool { groups, tiers, ..pool };
        };
        let mut lus: Vec<Lu> =
            space.lus.iter().map(|lu| Lu::of(lu, &id, &space.snapshots)).collect();
        lus.sort_by(|one, other| one.name.cmp(&other.name));
        Pool {
            name,
            open,
            degraded,
            size: megabytes(space.size_bytes),
            free: megabytes(space.free_bytes),
            total: megabytes(space.allocated_bytes),
            overcommit: megabytes(space.overcommit_bytes),
            groups: space.failgrps.iter().map(Group::of).collect(),
            tiers: space.tiers.iter().map(Tier::of).collect(),
            pvs: space.pvs.iter().map(Pv::of).collect(),
            lus,
            id,
            threshold,
            promised,
        }
    }

    fn is_well(&self) -> bool {
        self.open && !self.degraded
    }

    fn values(&self) -> [String; 8] {
        [
            self.name.clone(),
            self.size.to_string(),
            self.free.to_string(),
            self.total.to_string(),
            self.overcommit.to_string(),
            self.lus.len().to_string(),
            "CLPOOL".to_owned(),
            self.id.clone(),
        ]
    }
}

/// `lssp`
pub(super) fn pools(pools: &[Pool], form: ListOptions<'_>) -> String {
    if let Some(delimiter) = form.delimiter {
        let line = |pool: &Pool| picked(POOL_FIELDS, &pool.values(), form, delimiter) + "\n";
        return pools.iter().map(line).collect();
    }
    let names = [
        "POOL_NAME:",
        "POOL_SIZE:",
        "FREE_SPACE:",
        "TOTAL_LU_SIZE:",
        "OVERCOMMIT_SPACE:",
        "TOTAL_LUS:",
        "POOL_TYPE:",
        "POOL_ID:",
    ];
    let one = |pool: &Pool| {
        let values = pool.values();
        let all = POOL_FIELDS.iter().zip(names).zip(&values);
        let wanted = all.filter(|((field, _), _)| form.wants(field));
        let rows: Vec<Vec<String>> =
            wanted.map(|((_, name), value)| vec![name.to_owned(), value.clone()]).collect();
        columns(&rows, &[18])
    };
    pools.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// The rows of a table below where they are; with a delimiter the rows alone.
fn table(
    place: &[(&str, &str)],
    heading: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    delimiter: Option<&str>,
) -> String {
    if let Some(delimiter) = delimiter {
        return rows.map(|row| delimited(&row, delimiter) + "\n").collect();
    }
    let heading: Vec<String> = heading.iter().map(|word| (*word).to_owned()).collect();
    let rows: Vec<Vec<String>> = [heading].into_iter().chain(rows).collect();
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0) + 2
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(wide).collect();
    let place = place.iter().map(|(name, value)| format!("{name}:{value}\n"));
    place.collect::<String>() + &columns(&rows, &widths)
}

/// `lu -list`
pub(super) fn lus(pool: &Pool, delimiter: Option<&str>) -> String {
    let row = |lu: &Lu| {
        vec![lu.name.clone(), lu.size.to_string(), lu.unused.to_string(), lu.udid.clone()]
    };
    let heading = ["LU_NAME", "SIZE(MB)", "UNUSED(MB)", "UDID"];
    let of_tier = |tier: &Tier| {
        let place = [("POOL_NAME", pool.name.as_str()), ("TIER_NAME", tier.name.as_str())];
        let rows = pool.lus.iter().filter(|lu| lu.tier == tier.name).map(row);
        table(&place, &heading, rows, delimiter)
    };
    let tables: Vec<String> = pool.tiers.iter().map(of_tier).collect();
    tables.join(if delimiter.is_some() { "" } else { "\n" })
}

/// `lssp -bd`
pub(super) fn backing_devices(pool: &Pool, delimiter: Option<&str>) -> String {
    let row = |lu: &Lu| {
        let (size, used, unused) = (lu.size, lu.used_percent, lu.unused);
        vec![
            lu.name.clone(),
            size.to_string(),
            lu.kind().to_owned(),
            format!("{used}%"),
            unused.to_string(),
            lu.udid.clone(),
        ]
    };
    let heading = ["Lu Name", "Size(mb)", "ProvisionType", "%Used", "Unused(mb)", "Lu Udid"];
    let text = table(&[], &heading, pool.lus.iter().map(row), delimiter);
    if delimiter.is_some() { text } else { with_snapshots(&text, &pool.lus) }
}

/// Snapshots stand below the line of their LU.
fn with_snapshots(text: &str, lus: &[Lu]) -> String {
    let mut lines = text.lines();
    let mut all: String = lines.next().map(|line| format!("{line}\n")).unwrap_or_default();
    for (line, lu) in lines.zip(lus) {
        all += &format!("{line}\n");
        if !lu.snapshots.is_empty() {
            all += &format!("Snapshot\n{}\n", lu.snapshots.join("\n"));
        }
    }
    all
}

/// `snapshot -list`
pub(super) fn snapshots(pool: &Pool, delimiter: Option<&str>) -> String {
    if delimiter.is_some() {
        let rows = pool.lus.iter().flat_map(|lu| {
            lu.snapshots.iter().map(|snapshot| vec![lu.name.clone(), snapshot.clone()])
        });
        return table(&[], &[], rows, delimiter);
    }
    let row =
        |lu: &Lu| vec![lu.name.clone(), lu.size.to_string(), lu.kind().to_owned(), lu.udid.clone()];
    let heading = ["Lu Name", "Size(mb)", "ProvisionType", "Lu Udid"];
    with_snapshots(&table(&[], &heading, pool.lus.iter().map(row), None), &pool.lus)
}

/// The pools of the server, or the one that is named.
fn load(context: &Context<'_>, words: &Words) -> Result<Vec<Pool>, Failure> {
    if let Some(other) = words.one("-clustername").filter(|name| *name != CLUSTER) {
        let what = format!("there is no cluster {other}");
        let help = format!("this server is the cluster `{CLUSTER}`, or leave out -clustername");
        return Err(ApiError::new(Code::NotFound, what).help(help).into());
    }
    let path = format!("/v1/{}", Object::Pool.collection());
    let list: ItemList<ObjectView> = context.client.get(&path)?;
    let mut pools: Vec<Pool> = list.items.iter().map(Pool::of).collect();
    if let Some(name) = named(words) {
        pools.retain(|pool| pool.name == name);
        if pools.is_empty() {
            let what = format!("there is no storage pool {name}");
            let help = "`trunkline ioscli lssp` lists them";
            return Err(ApiError::new(Code::NotFound, what).help(help).into());
        }
    }
    Ok(pools)
}

fn named(words: &Words) -> Option<&str> {
    words.one("-sp").or_else(|| words.one("-spname"))
}

/// The pool that is meant: the one that is named, or the only one.
fn one(context: &Context<'_>, words: &Words) -> Result<Pool, Failure> {
    let mut pools = load(context, words)?;
    match (pools.pop(), pools.is_empty()) {
        (Some(pool), true) => Ok(pool),
        (None, _) => {
            let help = "`trunkline pool create NAME --pvs PATH,…` makes one";
            Err(ApiError::new(Code::NotFound, "there is no storage pool").help(help).into())
        }
        (Some(_), false) => {
            Err(wrong("there are several storage pools", "say which with -sp POOL"))
        }
    }
}

/// A list of each pool, by a delimiter if one was given.
fn of_each(
    context: &Context<'_>,
    words: &Words,
    list: impl Fn(&Pool, Option<&str>) -> String,
) -> Result<String, Failure> {
    let delimiter = words.one("-fmt");
    let pools = load(context, words)?.into_iter();
    let pools: Result<Vec<Pool>, Failure> = pools.map(|pool| only_of_tier(pool, words)).collect();
    let lists: Vec<String> = pools?.iter().map(|pool| list(pool, delimiter)).collect();
    Ok(lists.join(if delimiter.is_some() { "" } else { "\n" }))
}

/// `lssp`
pub(super) fn lssp(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    if words.has("-bd") {
        return Ok(backing_devices(&one(context, words)?, words.one("-fmt")));
    }
    let fields = words.fields(POOL_FIELDS)?;
    let form = ListOptions { delimiter: words.one("-fmt"), fields };
    Ok(pools(&load(context, words)?, form))
}

/// Of what a command does exactly one is asked for.
fn verb<'a>(words: &Words, verbs: &[&'a str], command: &str) -> Result<&'a str, Failure> {
    let mut asked = verbs.iter().filter(|verb| words.has(verb));
    match (asked.next(), asked.next()) {
        (Some(verb), None) => Ok(verb),
        _ => Err(wrong(
            format!("{command} does one thing at a time"),
            &format!("give one of {}", verbs.join(", ")),
        )),
    }
}

/// Pools with what is in the tier that is named, if one is.
fn only_of_tier(mut pool: Pool, words: &Words) -> Result<Pool, Failure> {
    let Some(name) = words.one("-tier") else { return Ok(pool) };
    tiers::of(&pool, name)?;
    pool.tiers.retain(|tier| tier.name == name);
    pool.pvs.retain(|pv| pv.tier == name);
    pool.lus.retain(|lu| lu.tier == name);
    Ok(pool)
}

/// `lu`
pub(super) fn lu(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let verbs = ["-list", "-create", "-remove", "-resize", "-move", "-map", "-unmap"];
    match verb(words, &verbs, "lu")? {
        "-list" => of_each(context, words, lus),
        "-create" => {
            let pool = one(context, words)?;
            let name = needed(words, "-lu", "NAME")?;
            let size = size(needed(words, "-size", "SIZE")?);
            let mut lu = json!({
                "kind": VolumeKind::Lu.word(), "pool": pool.name, "size": size,
                "thick": words.has("-thick"),
            });
            if let Some(tier) = words.one("-tier") {
                lu[attr::volume::TIER.name] = json!(tiers::of(&pool, tier)?.name);
            }
            // What cannot be mapped is not made either.
            let adapter = words.one("-vadapter").map(|_| adapter(context, words)).transpose()?;
            create(context, Object::Volume, name, lu)?;
            let made = one(context, words)?.lus.into_iter().find(|lu| lu.name == name);
            let made = made.map(|lu| format!("Lu Udid:{}\n", lu.udid)).unwrap_or_default();
            let vtd = adapter.map(|adapter| map(context, words, name, &adapter)).transpose()?;
            Ok(format!("Lu Name:{name}\n{made}{}", vtd.unwrap_or_default()))
        }
        "-resize" => {
            let name = &found(context, words)?;
            let path = objects::path(Object::Volume, name)?;
            let body = json!({ "size": size(needed(words, "-size", "SIZE")?), "shrink": false });
            let path = format!("{path}/resize{}", context.how());
            let done: DoneView = context.client.send(Method::POST, &path, Some(&body))?;
            objects::waiting(&done.waiting)?;
            Ok(format!("Logical unit {name} is resized."))
        }
        "-move" => {
            let name = &found(context, words)?;
            let tier = needed(words, "-dsttier", "TIER")?;
            let pools = load(context, words)?;
            let pool = pools.iter().find(|pool| pool.lus.iter().any(|lu| lu.name == *name));
            pool.map(|pool| tiers::of(pool, tier)).transpose()?;
            patch(context, Object::Volume, name, json!({ attr::volume::TIER.name: tier }))?;
            Ok(format!("Logical unit {name} goes to tier {tier}."))
        }
        "-map" => {
            let name = &found(context, words)?;
            map(context, words, name, &adapter(context, words)?)
        }
        "-unmap" => {
            let name = &found(context, words)?;
            unmap(context, words, name)
        }
        _ => {
            let names = match words.has("-all") {
                true => {
                    let lus = only_of_tier(one(context, words)?, words)?.lus.into_iter();
                    lus.filter(|lu| !lu.name.starts_with(NOBODY)).map(|lu| lu.name).collect()
                }
                false => vec![found(context, words)?],
            };
            let gone = |name: &String| {
                remove(context, Object::Volume, name)?;
                Ok(format!("Logical unit {name} is removed."))
            };
            let lines: Result<Vec<String>, Failure> = names.iter().map(gone).collect();
            Ok(lines?.join("\n"))
        }
    }
}

/// The size as the API takes it; the original's `10G` is 10 GiB, and a number alone is MB.
fn size(typed: &str) -> String {
    match typed.bytes().last() {
        Some(b'0'..=b'9') => format!("{typed}MiB"),
        Some(b'K' | b'M' | b'G' | b'T' | b'k' | b'm' | b'g' | b't') => {
            format!("{}iB", typed.to_ascii_uppercase())
        }
        _ => typed.to_owned(),
    }
}

fn needed<'a>(words: &'a Words, flag: &str, value: &str) -> Result<&'a str, Failure> {
    words.one(flag).ok_or_else(|| wrong(format!("{flag} {value} is missing"), "see -help"))
}

/// The LU that is meant, by its name or its identifier.
fn found(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let (name, udid) = (words.one("-lu"), words.one("-luudid"));
    if name.is_none() && udid.is_none() {
        return Err(wrong("-lu NAME is missing", "or -luudid, as `lu -list` has it"));
    }
    let pools = load(context, words)?;
    let fits =
        |lu: &&Lu| name.is_none_or(|name| lu.name == name) && udid.is_none_or(|it| lu.udid == it);
    let lu = pools.iter().flat_map(|pool| &pool.lus).find(fits);
    lu.map(|lu| lu.name.clone()).ok_or_else(|| {
        let what = format!("there is no logical unit {}", name.or(udid).unwrap_or_default());
        ApiError::new(Code::NotFound, what).help("`trunkline ioscli lu -list` lists them").into()
    })
}

/// `snapshot`
pub(super) fn snapshot(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let lus = words.all("-lu");
    let verb = verb(words, &["-list", "-create", "-delete", "-rollback"], "snapshot")?;
    if verb == "-list" {
        return of_each(context, words, |pool, delimiter| {
            let mut pool = pool.clone();
            pool.lus.retain(|lu| lus.is_empty() || lus.contains(&lu.name));
            snapshots(&pool, delimiter)
        });
    }
    if verb == "-create" {
        if lus.is_empty() {
            return Err(wrong("-lu NAME is missing", "the LUs of which a snapshot is to be made"));
        }
        // The pool that is named has to be theirs.
        let known: Vec<Lu> = load(context, words)?.into_iter().flat_map(|pool| pool.lus).collect();
        if let Some(other) = lus.iter().find(|name| known.iter().all(|lu| lu.name != **name)) {
            let what = format!("there is no logical unit {other}");
            let help = "`trunkline ioscli lu -list` lists them";
            return Err(ApiError::new(Code::NotFound, what).help(help).into());
        }
        let taken = |name: &String| known.iter().any(|lu| lu.snapshots.contains(name));
        let free = || (1..).map(|number| format!("snapshot{number}")).find(|name| !taken(name));
        let name = words.one("-create").map(str::to_owned).or_else(free).unwrap_or_default();
        create(context, Object::Snapshot, &name, json!({ "volumes": lus.join(",") }))?;
        return Ok(name);
    }
    let name = needed(words, verb, "NAME")?;
    let path = objects::path(Object::Snapshot, name)?;
    if verb == "-rollback" {
        let path = format!("{path}/rollback{}", context.how());
        let body = json!({ "volumes": lus });
        let done: DoneView = context.client.send(Method::POST, &path, Some(&body))?;
        objects::waiting(&done.waiting)?;
        return Ok(format!("Snapshot {name} is rolled back."));
    }
    let view: ObjectView = context.client.get(&path)?;
    let of: Vec<String> =
        view.snapshot.iter().flat_map(|it| &it.lus).map(|it| it.volume.clone()).collect();
    if !lus.is_empty() && of.iter().any(|lu| !lus.contains(lu)) {
        let what = format!("snapshot {name} is of {} together", of.join(", "));
        return Err(wrong(what, "name all of them, or leave -lu out"));
    }
    remove(context, Object::Snapshot, name)?;
    Ok(format!("Snapshot {name} is deleted."))
}

/// The virtual SCSI adapter that shall have an LU.
fn adapter(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let name = needed(words, "-vadapter", "ADAPTER")?;
    let view: AdapterView = context.client.get(&objects::path(Object::Adapter, name)?)?;
    if view.kind == "scsi" {
        return Ok(name.to_owned());
    }
    let help = "`trunkline adapter create NAME --kind scsi` makes one; an LU is also a volume of a block adapter, or of a target";
    Err(wrong(format!("{name} is no virtual SCSI adapter"), help))
}

fn map(context: &Context<'_>, words: &Words, lu: &str, adapter: &str) -> Result<String, Failure> {
    let vtd = json!({ "kind": "disk", "volume": lu, "adapter": adapter });
    let name = make_vtd(context, words.one("-vtd"), "vtscsi", vtd)?;
    Ok(format!("VTD:{name}"))
}

fn unmap(context: &Context<'_>, words: &Words, lu: &str) -> Result<String, Failure> {
    let system = System::load(context)?;
    let is_meant = |vtd: &&ObjectView| {
        let adapter = text(&vtd.effective, "adapter");
        words.one("-vadapter").is_none_or(|wanted| adapter == Some(wanted))
            && words.one("-vtd").is_none_or(|wanted| vtd.name == wanted)
    };
    let names: Vec<&str> =
        system.vtds_on(lu).filter(is_meant).map(|vtd| vtd.name.as_str()).collect();
    remove_vtds(context, &names, lu)
}

/// `cluster`
pub(super) fn cluster(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let pools = load(context, words)?;
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if verb(words, &["-list", "-status"], "cluster")? == "-list" {
        let row = [vec![CLUSTER.to_owned(), node]].into_iter();
        return Ok(table(&[], &["CLUSTER_NAME", "NODE"], row, words.one("-fmt")));
    }
    Ok(nodes(&node, &pools, words.one("-fmt")))
}

/// The cluster and its one node, with the state of its pools where it has some.
pub(super) fn nodes(node: &str, pools: &[Pool], delimiter: Option<&str>) -> String {
    let state = if pools.iter().all(Pool::is_well) { "OK" } else { "DEGRADED" }.to_owned();
    let all = vec![CLUSTER.to_owned(), state.clone()];
    let of_node = [node, &format!("{MACHINE}-{node}"), "1", "OK"].map(str::to_owned);
    let mut row = of_node.to_vec();
    row.extend((!pools.is_empty()).then_some(state));
    if let Some(delimiter) = delimiter {
        return table(&[], &[], [[all, row].concat()].into_iter(), Some(delimiter));
    }
    let head = table(&[], &["Cluster Name", "State"], [all].into_iter(), None);
    let heading = ["Node Name", "MTM", "Partition Num", "State", "Pool State"];
    format!("{head}\n{}", table(&[], &heading, [row].into_iter(), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_original() {
        for (typed, meant) in
            [("10G", "10GiB"), ("500m", "500MiB"), ("64", "64MiB"), ("1GiB", "1GiB"), ("x", "x")]
        {
            assert_eq!(size(typed), meant);
        }
    }
}
