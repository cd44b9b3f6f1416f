//! Whether a desired state makes sense: every attribute by the table, and the rules between objects.

mod network;
mod pools;
mod san;

use super::discovered::HBA_UNIT;
use super::{Desired, Home, MAIN, resolve};
use crate::config;
use crate::error::ApiError;
use crate::paths::{Paths, SOCKET_PATH_BYTES_MAX};
use fabric::attribute::words::{AdapterKind, Reservations, VolumeKind};
use fabric::attribute::{self, Attributes, Object, attr};
use fabric::suggest;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The state with every value in its one form, or the first thing that is wrong with it.
pub fn validate(desired: &Desired, paths: &Paths) -> Result<Desired, ApiError> {
    // What has its one form already stays shared with the state that it came from.
    let mut checked = desired.clone();
    for object in Object::ALL {
        for (name, set) in &desired[object] {
            attribute::check_name(name)
                .map_err(|problem| ApiError::invalid(format!("{object}: {problem}")).on("name"))?;
            let whole =
                attribute::check(object, set).map_err(|error| ApiError::attribute(name, error))?;
            if whole != *set {
                checked[object].insert(name.clone(), whole);
            }
        }
    }
    nothing_missing(&checked)?;
    for (name, set) in &checked[Object::Volume] {
        not_reserved(name)?;
        volume(name, set)?;
    }
    for (name, set) in &checked[Object::Adapter] {
        adapter(&checked, name, set, paths)?;
    }
    unique_files(&checked, paths)?;
    unique_naas(&checked)?;
    unique_sockets(&checked, paths)?;
    for (volume, homes) in checked.homes() {
        sharing(&checked, &volume, &homes)?;
    }
    pools::check(&checked, paths)?;
    san::check(&checked)?;
    network::check(&checked)?;
    Ok(checked)
}

/// Names by which data planes know what is no volume of the state.
fn not_reserved(name: &str) -> Result<(), ApiError> {
    let reserved = [resolve::MEDIUM_UNIT, HBA_UNIT];
    let Some(start) = reserved.into_iter().find(|start| name.starts_with(start)) else {
        return Ok(());
    };
    let problem = format!("volume `{name}`: names of volumes do not begin with `{start}`");
    Err(ApiError::invalid(problem).on("name").help("choose another name"))
}

/// The rules within one volume.
fn volume(name: &str, set: &Attributes) -> Result<(), ApiError> {
    let kind = attr::volume::KIND.of(set).unwrap_or(VolumeKind::File);
    if kind == VolumeKind::File && !attr::volume::PATH.is_set(set) {
        return refuse(name, "path", "a file volume needs its file or block device", "set `path`");
    }
    if attr::volume::PREALLOCATE.value(set) && !attr::volume::CREATE.value(set) {
        let problem = "only a file that is made can be preallocated";
        return refuse(name, "preallocate", problem, "set `create = true`");
    }
    volume_size(name, kind, set)?;
    if attr::volume::DELAY_US_MIN.value(set) > attr::volume::DELAY_US_MAX.value(set) {
        let problem = "`delay_us_min` is longer than `delay_us_max`";
        return refuse(name, "delay_us_max", problem, "raise `delay_us_max`");
    }
    let bursts = [
        (attr::volume::LIMIT_IOPS_BURST, attr::volume::LIMIT_IOPS),
        (attr::volume::LIMIT_BYTES_BURST, attr::volume::LIMIT_BYTES_PER_S),
    ];
    for (burst, rate) in bursts {
        if burst.is_set(set) && rate.value(set) == 0 {
            let (burst, rate) = (burst.name, rate.name);
            let problem = format!("`{burst}` means nothing without `{rate}`");
            return refuse(name, burst, &problem, &format!("set `{rate}`, or leave `{burst}` out"));
        }
    }
    Ok(())
}

/// Whether a volume needs a size, and whether the one that it has can be.
fn volume_size(name: &str, kind: VolumeKind, set: &Attributes) -> Result<(), ApiError> {
    let block_size = attr::volume::BLOCK_SIZE.value(set);
    let example = "set `size`, such as `10GiB`";
    // It has that of its snapshot, or it is there.
    let has_size = attr::volume::SNAPSHOT.is_set(set) || attr::volume::NUMBER.is_set(set);
    match attr::volume::SIZE.of(set) {
        None if has_size => Ok(()),
        None if kind != VolumeKind::File => refuse(
            name,
            "size",
            &format!("a {} volume has no size of its own", kind.word()),
            example,
        ),
        None if attr::volume::CREATE.value(set) => {
            refuse(name, "size", "a file that is to be made needs a size", example)
        }
        Some(0) => {
            refuse(name, "size", "a volume of no size cannot be used", "set at least one block")
        }
        Some(size) if !size.is_multiple_of(block_size) => {
            let problem =
                format!("{size} bytes are not a whole number of {block_size}-byte blocks");
            let next = size.next_multiple_of(block_size);
            refuse(name, "size", &problem, &format!("the next size is {next}"))
        }
        _ => Ok(()),
    }
}

fn refuse(name: &str, attribute: &str, problem: &str, help: &str) -> Result<(), ApiError> {
    Err(ApiError::invalid(format!("volume `{name}`: {problem}")).on(attribute).help(help))
}

/// Most `queues` of an adapter. vhost-user names a queue with eight bits (`VHOST_USER_VRING_IDX_MASK`); two of a SCSI host are not for I/O, and a network
/// card has them in pairs. The devices could have more: virtio-scsi counts them with 32 bits, QEMU allows 1022 (`VIRTIO_QUEUE_MAX` less two).
pub fn queues_max(kind: AdapterKind) -> u64 {
    match kind {
        AdapterKind::Block => 256,
        AdapterKind::Fc | AdapterKind::Scsi => 254,
        AdapterKind::Ethernet => 128,
    }
}

/// The rules of one adapter towards what it names.
fn adapter(desired: &Desired, name: &str, set: &Attributes, paths: &Paths) -> Result<(), ApiError> {
    let refuse = |attribute: &str, problem: String, help: String| {
        Err(ApiError::invalid(format!("adapter `{name}`: {problem}")).on(attribute).help(help))
    };
    let volume_name = attr::adapter::VOLUME.of(set).unwrap_or_default();
    let volume_read_only =
        desired[Object::Volume].get(volume_name).is_some_and(|v| attr::volume::READ_ONLY.value(v));
    if volume_read_only && attr::adapter::READ_ONLY.of(set) == Some(false) {
        return refuse(
            "read_only",
            format!("its volume `{volume_name}` is read-only"),
            "leave `read_only` out, or make the volume writable".to_owned(),
        );
    }
    let queues = attr::adapter::QUEUES.value(set);
    let kind = attr::adapter::KIND.value(set);
    let is_scsi = matches!(kind, AdapterKind::Fc | AdapterKind::Scsi);
    if is_scsi && queues > queues_max(kind) {
        return refuse(
            "queues",
            format!(
                "{queues} queues for I/O do not go with its control queue and its event queue: vhost-user has eight \
                 bits for a queue's number, so 256 in all (virtio-scsi itself and QEMU would take more)"
            ),
            format!("use at most {}", queues_max(kind)),
        );
    }
    let socket = resolve::adapter_socket(name, set, paths);
    if socket.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        return refuse(
            "socket",
            format!(
                "the path {} is longer than the {SOCKET_PATH_BYTES_MAX} bytes that a socket's \
                 address can hold",
                socket.display()
            ),
            "set `socket` to a shorter path, or use a shorter --dir".to_owned(),
        );
    }
    Ok(())
}

/// What is named is there.
fn nothing_missing(desired: &Desired) -> Result<(), ApiError> {
    for mention in desired.mentions() {
        let (by, whose) = mention.by;
        let name = mention.of.name.as_str();
        let main = mention.of.objects == [Object::DataPlane] && name == MAIN;
        let there = |object: &Object| desired[*object].contains_key(name);
        if main || mention.of.objects.iter().any(there) {
            continue;
        }
        let known = mention.of.objects.iter().flat_map(|object| desired[*object].keys());
        let nouns: Vec<String> = mention.of.objects.iter().map(Object::to_string).collect();
        return Err(ApiError::invalid(format!(
            "{by} `{whose}`: there is no {} `{name}`",
            nouns.join(" or ")
        ))
        .on(mention.attribute)
        .help(missing_help(name, known.map(String::as_str), &nouns[0])));
    }
    Ok(())
}

fn missing_help<'a>(given: &str, known: impl Iterator<Item = &'a str>, noun: &str) -> String {
    match suggest::nearest(given, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "make it first: `trunkline {noun} create {given} …`, or a table [{noun}.{}]",
            config::key(given)
        ),
    }
}

/// Two volumes on one file destroy each other's data, unless nobody writes.
fn unique_files(desired: &Desired, paths: &Paths) -> Result<(), ApiError> {
    let mut owners: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for (name, set) in &desired[Object::Volume] {
        let Some(path) = resolve::volume_path(name, set, paths) else { continue };
        let Some(other) = owners.insert(path.clone(), name) else { continue };
        let read_only = |name: &str| attr::volume::READ_ONLY.value(&desired[Object::Volume][name]);
        if !(read_only(name) && read_only(other)) {
            return Err(ApiError::invalid(format!(
                "volumes `{other}` and `{name}` are both on {}",
                path.display()
            ))
            .on("path")
            .help("give each its own file, or make both `read_only`"));
        }
    }
    for (name, set) in &desired[Object::Medium] {
        let path = paths.medium(name, set);
        if let Some(other) = owners.get(&path)
            && !attr::volume::READ_ONLY.value(&desired[Object::Volume][*other])
        {
            return Err(ApiError::invalid(format!(
                "medium `{name}` and volume `{other}` are both on {}",
                path.display()
            ))
            .on("path")
            .help("make the volume `read_only`, or the medium a `copy`"));
        }
    }
    Ok(())
}

/// Two volumes with one designator are one disk to a client's multipath, which writes to either.
fn unique_naas(desired: &Desired) -> Result<(), ApiError> {
    let volumes = || desired[Object::Volume].iter();
    if !volumes().any(|(_, set)| attr::volume::NAA.is_set(set)) {
        return Ok(());
    }
    let mut owners: BTreeMap<u64, &str> = BTreeMap::new();
    for (name, set) in volumes() {
        let Some(naa) = resolve::naa(desired, name, set) else { continue };
        if let Some(other) = owners.insert(naa, name) {
            let problem = format!("volumes `{other}` and `{name}` have the same naa {naa:016x}");
            return Err(ApiError::invalid(problem)
                .on("naa")
                .help("clients with several paths would take both for one disk: give each its own, or leave `naa` out"));
        }
    }
    Ok(())
}

/// One socket is one adapter, and none is a socket of the server itself.
fn unique_sockets(desired: &Desired, paths: &Paths) -> Result<(), ApiError> {
    let mut owners: BTreeMap<PathBuf, String> =
        BTreeMap::from([(paths.api(), "the API".to_owned())]);
    for name in desired.dataplane_names() {
        owners.insert(paths.dataplane(&name), format!("data plane `{name}`"));
    }
    for (name, set) in &desired[Object::Adapter] {
        let socket = resolve::adapter_socket(name, set, paths);
        let owner = format!("adapter `{name}`");
        if let Some(other) = owners.insert(socket.clone(), owner) {
            return Err(ApiError::invalid(format!(
                "adapter `{name}`: {} is the socket of {other}",
                socket.display()
            ))
            .on("socket")
            .help("set another `socket`, or choose another name"));
        }
    }
    Ok(())
}

/// Who may use a volume together with others.
fn sharing(desired: &Desired, volume: &str, homes: &[Home<'_>]) -> Result<(), ApiError> {
    if let [(object, first, home), rest @ ..] = homes
        && let Some((other, stray, _)) = rest.iter().find(|(_, _, other)| other != home)
    {
        return Err(ApiError::invalid(format!(
            "{object} `{first}` and {other} `{stray}` use volume `{volume}` from two data planes"
        ))
        .on("dataplane")
        .help(format!(
            "a volume is open in one data plane: set `dataplane = \"{home}\"` on both"
        )));
    }
    // To SCSI clients it is one logical unit, which they share under reservations.
    let unit = homes.iter().find(|(object, _, _)| *object != Object::Adapter);
    let adapters: Vec<&str> = homes
        .iter()
        .filter(|(object, _, _)| *object == Object::Adapter)
        .map(|(_, name, _)| *name)
        .collect();
    let (first, second) = match (adapters.as_slice(), unit) {
        ([first, second, ..], _) | ([first], Some((_, second, _))) => (first, second),
        _ => return Ok(()),
    };
    let set = &desired[Object::Volume][volume];
    let read_only = |adapter: &&str| {
        let adapter = &desired[Object::Adapter][*adapter];
        attr::volume::READ_ONLY.value(set) || attr::adapter::READ_ONLY.of(adapter) == Some(true)
    };
    let unit_writes = unit.is_some() && !attr::volume::READ_ONLY.value(set);
    if attr::volume::SHAREABLE.value(set) || adapters.iter().all(read_only) && !unit_writes {
        let fences =
            unit_writes && attr::volume::RESERVATIONS.of(set) != Some(Reservations::Refuse);
        return if fences { passes_by(volume, first) } else { Ok(()) };
    }
    let noun = match unit {
        Some(_) if adapters.len() == 1 => "both as a disk and as a LUN",
        _ => "through several adapters",
    };
    Err(ApiError::invalid(format!(
        "volume `{volume}` would be written {noun} (`{first}`, `{second}`)"
    ))
    .on("volume")
    .help(
        "give each adapter its own volume; set `shareable = true` on the volume only if its guests \
         use a cluster file system; or set `read_only = true` on every one of its adapters",
    ))
}

/// A block adapter knows nothing of what clients of the LUN have reserved.
fn passes_by(volume: &str, adapter: &str) -> Result<(), ApiError> {
    let problem = format!(
        "volume `{volume}` is a LUN, and adapter `{adapter}` would pass by its reservations"
    );
    Err(ApiError::invalid(problem).on("volume").help(
        "give that client the LUN as well; or, if no client reserves it, set `reservations = \"refuse\"` on the \
         volume",
    ))
}
