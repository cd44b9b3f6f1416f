//! Virtual target devices and the media repository: `mkvdev`, `rmvdev`, `mkvopt`, `loadopt` and the like.

use super::act::patch;
use super::system::{System, text};
use super::text::columns;
use super::words::Words;
use super::{Context, wrong};
use crate::commands::objects;
use crate::exit::Failure;
use control::api::DoneView;
use control::error::{ApiError, Code};
use control::server::ObjectView;
use fabric::attribute::Object;
use hyper::Method;
use serde_json::{Value, json};

/// `mkvdev`
pub(super) fn mkvdev(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    if words.has("-sea") {
        return super::sea::make(context, words);
    }
    if words.has("-lnagg") {
        return super::lnagg::make(context, words);
    }
    let help = "`mkvdev -vdev VOLUME -vadapter ADAPTER`, or `mkvdev -fbo -vadapter ADAPTER`";
    let Some(adapter) = words.one("-vadapter") else {
        return Err(wrong("mkvdev needs -vadapter ADAPTER", help));
    };
    let (prefix, mut attributes) = match (words.one("-vdev"), words.has("-fbo")) {
        (Some(volume), false) => ("vtscsi", json!({ "kind": "disk", "volume": volume })),
        (None, true) => ("vtopt", json!({ "kind": "optical" })),
        _ => return Err(wrong("mkvdev needs -vdev VOLUME or -fbo", help)),
    };
    attributes["adapter"] = json!(adapter);
    let name = make_vtd(context, words.one("-dev"), prefix, attributes)?;
    Ok(format!("{name} Available"))
}

/// Makes a virtual target device of this name, or of the first that is free behind the prefix; gives its name.
pub(super) fn make_vtd(
    context: &Context<'_>,
    named: Option<&str>,
    prefix: &str,
    attributes: Value,
) -> Result<String, Failure> {
    let system = System::load(context)?;
    let name = named.map_or_else(|| free_name(&system.vtds, prefix), str::to_owned);
    create(context, Object::Vtd, &name, attributes)?;
    Ok(name)
}

/// The first of `vtscsi0`, `vtscsi1`, … that is free.
fn free_name(vtds: &[ObjectView], prefix: &str) -> String {
    let names = (0_u32..).map(|number| format!("{prefix}{number}"));
    let free = |name: &String| !vtds.iter().any(|vtd| vtd.name == *name);
    names.into_iter().find(free).expect("there are fewer devices than numbers")
}

/// `rmvdev`
pub(super) fn rmvdev(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    if let Some(sea) = words.one("-sea") {
        remove(context, Object::Sea, sea)?;
        return Ok(format!("{sea} deleted"));
    }
    if let Some(name) = words.one("-lnagg") {
        return super::lnagg::delete(context, name);
    }
    let help = "`rmvdev -vtd NAME`, or `rmvdev -vdev VOLUME` for every device on the volume";
    let system = System::load(context)?;
    let names: Vec<&str> = match (words.one("-vtd"), words.one("-vdev")) {
        (Some(vtd), None) => vec![vtd],
        (None, Some(volume)) => system.vtds_on(volume).map(|vtd| vtd.name.as_str()).collect(),
        _ => return Err(wrong("rmvdev needs -vtd, -vdev, -sea or -lnagg", help)),
    };
    remove_vtds(context, &names, words.one("-vdev").unwrap_or(""))
}

/// Removes virtual target devices; there must be some on this volume.
pub(super) fn remove_vtds(
    context: &Context<'_>,
    names: &[&str],
    volume: &str,
) -> Result<String, Failure> {
    if names.is_empty() {
        let what = format!("there is no virtual target device on {volume}");
        return Err(ApiError::new(Code::NotFound, what).help("`lsmap -all` shows them").into());
    }
    let gone = |name: &&str| {
        remove(context, Object::Vtd, name)?;
        Ok(format!("{name} deleted"))
    };
    let lines: Result<Vec<String>, Failure> = names.iter().map(gone).collect();
    Ok(lines?.join("\n"))
}

/// `mkrep`
pub(super) fn mkrep(context: &Context<'_>, _: &Words) -> Result<String, Failure> {
    let folder = context.global.paths().state.join("media");
    Ok(format!("The media repository needs no making: media are kept in {}.", folder.display()))
}

/// `mkvopt`
pub(super) fn mkvopt(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let help = "`mkvopt -name NAME -file ISO`";
    let name = words.one("-name").ok_or_else(|| wrong("mkvopt needs -name NAME", help))?;
    let file = words.one("-file").ok_or_else(|| wrong("mkvopt needs -file ISO", help))?;
    let path = std::path::absolute(file).map_err(Failure::other)?;
    create(context, Object::Medium, name, json!({ "path": path, "copy": !words.has("-link") }))?;
    Ok(String::new())
}

/// `rmvopt`
pub(super) fn rmvopt(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let name = words
        .one("-name")
        .ok_or_else(|| wrong("rmvopt needs -name NAME", "`rmvopt -name NAME`"))?;
    remove(context, Object::Medium, name)?;
    Ok(String::new())
}

/// `loadopt`
pub(super) fn loadopt(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let help = "`loadopt -vtd NAME -disk MEDIUM`";
    let medium = words.one("-disk").ok_or_else(|| wrong("loadopt needs -disk MEDIUM", help))?;
    put_medium(context, words, json!(medium), help)
}

/// `unloadopt`
pub(super) fn unloadopt(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    put_medium(context, words, Value::Null, "`unloadopt -vtd NAME`")
}

fn put_medium(
    context: &Context<'_>,
    words: &Words,
    medium: Value,
    help: &str,
) -> Result<String, Failure> {
    let name = words.one("-vtd").ok_or_else(|| wrong("-vtd NAME is missing", help))?;
    patch(context, Object::Vtd, name, json!({ "medium": medium }))?;
    Ok(String::new())
}

/// `lsvopt`
pub(super) fn lsvopt(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let system = System::load(context)?;
    let mut rows = vec![["VTD", "Media", "Size(mb)"].map(str::to_owned).to_vec()];
    let drives = system.vtds.iter().filter(|vtd| text(&vtd.effective, "kind") == Some("optical"));
    for drive in drives.filter(|drive| words.one("-vtd").is_none_or(|only| only == drive.name)) {
        let medium = text(&drive.effective, "medium").unwrap_or("");
        let size = system.media.iter().find(|one| one.name == medium);
        let size = size.and_then(|medium| megabytes(context, medium));
        let (medium, size) = match medium {
            "" => ("No Media", "n/a".to_owned()),
            medium => (medium, size.map_or("unknown".to_owned(), |size| size.to_string())),
        };
        rows.push(vec![drive.name.clone(), medium.to_owned(), format!("{size:>8}")]);
    }
    Ok(columns(&rows, &[15, 32, 8]))
}

/// `lsrep`
pub(super) fn lsrep(context: &Context<'_>, _: &Words) -> Result<String, Failure> {
    let system = System::load(context)?;
    let mut rows = vec![["Name", "File Size", "Optical", "Access"].map(str::to_owned).to_vec()];
    for medium in &system.media {
        let size = megabytes(context, medium).map_or("unknown".to_owned(), |size| size.to_string());
        let users: Vec<&str> =
            medium.used_by.iter().filter_map(|user| user.strip_prefix("vtd ")).collect();
        let users = if users.is_empty() { "None".to_owned() } else { users.join(",") };
        rows.push(vec![medium.name.clone(), format!("{size:>9}"), users, "ro".to_owned()]);
    }
    Ok(columns(&rows, &[42, 9, 15]))
}

/// The size of a medium's file, where this process can see it.
fn megabytes(context: &Context<'_>, medium: &ObjectView) -> Option<u64> {
    let path = context.global.paths().medium(&medium.name, &medium.attributes);
    Some(std::fs::metadata(path).ok()?.len().div_ceil(1 << 20))
}

pub(super) fn create(
    context: &Context<'_>,
    object: Object,
    name: &str,
    attributes: Value,
) -> Result<(), Failure> {
    let path = format!("/v1/{}{}", object.collection(), context.how());
    let body = json!({ "name": name, "attributes": attributes });
    let done: DoneView = context.client.send(Method::POST, &path, Some(&body))?;
    objects::waiting(&done.waiting)
}

pub(super) fn remove(context: &Context<'_>, object: Object, name: &str) -> Result<(), Failure> {
    let path = format!("{}{}", objects::path(object, name)?, context.how());
    let done: DoneView = context.client.send(Method::DELETE, &path, None)?;
    objects::waiting(&done.waiting)
}
