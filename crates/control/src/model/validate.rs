//! Whether a desired state makes sense: every attribute by the table, and the rules between objects.

mod san;

use super::{Desired, Home, MAIN, is_on, number, resolve, text};
use crate::paths::{Paths, SOCKET_PATH_BYTES_MAX};
use crate::refusal::Refusal;
use fabric::attribute::{self, Attributes, Object, Value};
use fabric::suggest;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The state with every value in its one form, or the first thing that is wrong with it.
pub fn validate(desired: &Desired, paths: &Paths) -> Result<Desired, Refusal> {
    let mut checked = Desired {
        given: desired.given.clone(),
        found: desired.found.clone(),
        ..Desired::default()
    };
    for object in Object::ALL {
        for (name, set) in desired.of(object) {
            attribute::check_name(name)
                .map_err(|problem| Refusal::invalid(format!("{object}: {problem}")).on("name"))?;
            let set =
                attribute::check(object, set).map_err(|error| Refusal::attribute(name, error))?;
            checked.of_mut(object).insert(name.clone(), set);
        }
    }
    nothing_missing(&checked)?;
    for (name, set) in &checked.volumes {
        volume(name, set)?;
    }
    for (name, set) in &checked.adapters {
        adapter(&checked, name, set, paths)?;
    }
    unique_files(&checked, paths)?;
    unique_naas(&checked)?;
    unique_sockets(&checked, paths)?;
    for (volume, homes) in checked.homes() {
        sharing(&checked, &volume, &homes)?;
    }
    san::check(&checked)?;
    Ok(checked)
}

/// The rules within one volume.
fn volume(name: &str, set: &Attributes) -> Result<(), Refusal> {
    let kind = text(set, "kind").unwrap_or_default();
    if kind == "file" && !set.contains_key("path") {
        return refuse(name, "path", "a file volume needs its file or block device", "set `path`");
    }
    if is_on(set, "preallocate") && !is_on(set, "create") {
        let problem = "only a file that is made can be preallocated";
        return refuse(name, "preallocate", problem, "set `create = true`");
    }
    volume_size(name, kind, set)?;
    if number(set, "delay_us_min").unwrap_or(0) > number(set, "delay_us_max").unwrap_or(0) {
        let problem = "`delay_us_min` is longer than `delay_us_max`";
        return refuse(name, "delay_us_max", problem, "raise `delay_us_max`");
    }
    for (burst, rate) in
        [("limit_iops_burst", "limit_iops"), ("limit_bytes_burst", "limit_bytes_per_s")]
    {
        if set.contains_key(burst) && number(set, rate).unwrap_or(0) == 0 {
            let problem = format!("`{burst}` means nothing without `{rate}`");
            return refuse(name, burst, &problem, &format!("set `{rate}`, or leave `{burst}` out"));
        }
    }
    Ok(())
}

/// Whether a volume needs a size, and whether the one that it has can be.
fn volume_size(name: &str, kind: &str, set: &Attributes) -> Result<(), Refusal> {
    let block_size = number(set, "block_size").unwrap_or(512);
    let example = "set `size`, such as `10GiB`";
    match number(set, "size") {
        None if kind != "file" => {
            refuse(name, "size", &format!("a {kind} volume has no size of its own"), example)
        }
        None if is_on(set, "create") => {
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

fn refuse(name: &str, attribute: &str, problem: &str, help: &str) -> Result<(), Refusal> {
    Err(Refusal::invalid(format!("volume `{name}`: {problem}")).on(attribute).help(help))
}

/// The rules of one adapter towards what it names.
fn adapter(desired: &Desired, name: &str, set: &Attributes, paths: &Paths) -> Result<(), Refusal> {
    let refuse = |attribute: &str, problem: String, help: String| {
        Err(Refusal::invalid(format!("adapter `{name}`: {problem}")).on(attribute).help(help))
    };
    let volume_name = text(set, "volume").unwrap_or_default();
    let volume_read_only = desired.volumes.get(volume_name).is_some_and(|v| is_on(v, "read_only"));
    if volume_read_only && set.get("read_only") == Some(&Value::Switch(false)) {
        return refuse(
            "read_only",
            format!("its volume `{volume_name}` is read-only"),
            "leave `read_only` out, or make the volume writable".to_owned(),
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
fn nothing_missing(desired: &Desired) -> Result<(), Refusal> {
    for mention in desired.mentions() {
        let (by, whose) = mention.by;
        let name = mention.of.name.as_str();
        let main = mention.of.objects == [Object::DataPlane] && name == MAIN;
        let there = |object: &Object| desired.of(*object).contains_key(name);
        if main || mention.of.objects.iter().any(there) {
            continue;
        }
        let known = mention.of.objects.iter().flat_map(|object| desired.of(*object).keys());
        let nouns: Vec<String> = mention.of.objects.iter().map(Object::to_string).collect();
        return Err(Refusal::invalid(format!(
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
            "make it first: `trunkline {noun} create {given} …`, or a table [{noun}.{given}]"
        ),
    }
}

/// Two volumes on one file destroy each other's data, unless nobody writes.
fn unique_files(desired: &Desired, paths: &Paths) -> Result<(), Refusal> {
    let mut owners: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for (name, set) in &desired.volumes {
        let Some(path) = resolve::volume_path(name, set, paths) else { continue };
        let Some(other) = owners.insert(path.clone(), name) else { continue };
        let read_only = |name: &str| is_on(&desired.volumes[name], "read_only");
        if !(read_only(name) && read_only(other)) {
            return Err(Refusal::invalid(format!(
                "volumes `{other}` and `{name}` are both on {}",
                path.display()
            ))
            .on("path")
            .help("give each its own file, or make both `read_only`"));
        }
    }
    for (name, set) in &desired.media {
        let path = paths.medium(name, set);
        if let Some(other) = owners.get(&path)
            && !is_on(&desired.volumes[*other], "read_only")
        {
            return Err(Refusal::invalid(format!(
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
fn unique_naas(desired: &Desired) -> Result<(), Refusal> {
    let volumes = || desired.volumes.iter();
    if !volumes().any(|(_, set)| set.contains_key("naa")) {
        return Ok(());
    }
    let mut owners: BTreeMap<u64, &str> = BTreeMap::new();
    for (name, set) in volumes() {
        let naa = resolve::naa(desired, name, set);
        if let Some(other) = owners.insert(naa, name) {
            let problem = format!("volumes `{other}` and `{name}` have the same naa {naa:016x}");
            return Err(Refusal::invalid(problem)
                .on("naa")
                .help("clients with several paths would take both for one disk: give each its own, or leave `naa` out"));
        }
    }
    Ok(())
}

/// One socket is one adapter, and none is a socket of the server itself.
fn unique_sockets(desired: &Desired, paths: &Paths) -> Result<(), Refusal> {
    let mut owners: BTreeMap<PathBuf, String> =
        BTreeMap::from([(paths.api(), "the API".to_owned())]);
    for name in desired.dataplane_names() {
        owners.insert(paths.dataplane(&name), format!("data plane `{name}`"));
    }
    for (name, set) in &desired.adapters {
        let socket = resolve::adapter_socket(name, set, paths);
        let owner = format!("adapter `{name}`");
        if let Some(other) = owners.insert(socket.clone(), owner) {
            return Err(Refusal::invalid(format!(
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
fn sharing(desired: &Desired, volume: &str, homes: &[Home<'_>]) -> Result<(), Refusal> {
    if let [(object, first, home), rest @ ..] = homes
        && let Some((other, stray, _)) = rest.iter().find(|(_, _, other)| other != home)
    {
        return Err(Refusal::invalid(format!(
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
    let set = &desired.volumes[volume];
    let read_only = |adapter: &&str| {
        let adapter = &desired.adapters[*adapter];
        is_on(set, "read_only") || is_on(adapter, "read_only")
    };
    let unit_writes = unit.is_some() && !is_on(set, "read_only");
    if is_on(set, "shareable") || adapters.iter().all(read_only) && !unit_writes {
        let fences = unit_writes && text(set, "reservations") != Some("refuse");
        return if fences { passes_by(volume, first) } else { Ok(()) };
    }
    let noun = match unit {
        Some(_) if adapters.len() == 1 => "both as a disk and as a LUN",
        _ => "through several adapters",
    };
    Err(Refusal::invalid(format!(
        "volume `{volume}` would be written {noun} (`{first}`, `{second}`)"
    ))
    .on("volume")
    .help(
        "give each adapter its own volume; set `shareable = true` on the volume only if its guests \
         use a cluster file system; or set `read_only = true` on every one of its adapters",
    ))
}

/// A block adapter knows nothing of what clients of the LUN have reserved.
fn passes_by(volume: &str, adapter: &str) -> Result<(), Refusal> {
    let problem = format!(
        "volume `{volume}` is a LUN, and adapter `{adapter}` would pass by its reservations"
    );
    Err(Refusal::invalid(problem).on("volume").help(
        "give that client the LUN as well; or, if no client reserves it, set `reservations = \"refuse\"` on the \
         volume",
    ))
}
