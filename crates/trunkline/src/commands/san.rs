//! The verbs of ports, targets, zones, masks, virtual target devices and media.

use super::objects::{create, page, patch, path, remove, set};
use crate::cli::Global;
use crate::cli::san::{
    MaskCommand, MediaCommand, ObjectCommand, PortCommand, TargetCommand, VtdCommand, ZoneCommand,
};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{or_dash, print, table};
use clap::Args;
use control::api::ItemList;
use control::server::{LoginView, ObjectView};
use fabric::attribute::{Attributes, Object};
use serde_json::json;

/// A command of one of these nouns.
#[derive(Debug)]
pub(crate) enum Noun {
    Port(PortCommand),
    Target(TargetCommand),
    Zone(ZoneCommand),
    Mask(MaskCommand),
    Vtd(VtdCommand),
    Media(MediaCommand),
}

/// `trunkline port …` and the like.
pub(crate) fn run(global: &Global, noun: Noun) -> Result<(), Failure> {
    match noun {
        Noun::Port(command) => port(global, command),
        Noun::Target(TargetCommand::Object(command)) => object(global, Object::Target, command),
        Noun::Zone(ZoneCommand::Object(command)) => object(global, Object::Zone, command),
        Noun::Mask(MaskCommand::Object(command)) => object(global, Object::Mask, command),
        Noun::Vtd(VtdCommand::Object(command)) => object(global, Object::Vtd, command),
        Noun::Media(command) => media(global, command),
    }
}

fn port(global: &Global, command: PortCommand) -> Result<(), Failure> {
    let adapter = Object::Adapter;
    match command {
        PortCommand::Object(command) => object(global, Object::Port, command),
        PortCommand::Map { adapter: name, port, how } => {
            patch(global, adapter, &[name], json!({ "port": port }), how)
        }
        PortCommand::Unmap(args) => {
            patch(global, adapter, &args.names, json!({ "port": null }), args.how)
        }
        PortCommand::Top(args) => super::top::top(global, &args),
        PortCommand::Logins => {
            let list: ItemList<LoginView> = Client::new(global)?.get("/v1/logins")?;
            print(global, &list.items, |logins| login_table(logins))
        }
    }
}

fn media(global: &Global, command: MediaCommand) -> Result<(), Failure> {
    let drive = Object::Vtd;
    match command {
        MediaCommand::Object(command) => object(global, Object::Medium, command),
        MediaCommand::Load { medium, drive: name, how } => {
            patch(global, drive, &[name], json!({ "medium": medium }), how)
        }
        MediaCommand::Unload(args) => {
            patch(global, drive, &args.names, json!({ "medium": null }), args.how)
        }
    }
}

fn object<O: Args + Into<Attributes>>(
    global: &Global,
    object: Object,
    command: ObjectCommand<O>,
) -> Result<(), Failure> {
    match command {
        ObjectCommand::Create { object: new, options } => {
            create(global, object, &new, options.into())
        }
        ObjectCommand::List => {
            let all = format!("/v1/{}", object.collection());
            let list: ItemList<ObjectView> = Client::new(global)?.get(&all)?;
            print(global, &list.items, |objects| object_table(object, objects))
        }
        ObjectCommand::Show(arg) => {
            let view: ObjectView = Client::new(global)?.get(&path(object, &arg.name)?)?;
            print(global, &view, |view| object_page(object, view))
        }
        ObjectCommand::Set { object: edit, options } => set(global, object, &edit, options.into()),
        ObjectCommand::Remove(args) => remove(global, object, &args),
    }
}

/// The attributes that stand in the list of a noun.
fn columns(object: Object) -> &'static [&'static str] {
    match object {
        Object::Port => &["dataplane", "link_speed", "num_io_queues", "max_adapters"],
        Object::Target => &["id", "wwpn", "ports", "luns"],
        Object::Zone => &["members"],
        Object::Mask => &["initiators", "targets", "luns"],
        Object::Vtd => &["kind", "adapter", "lun", "volume", "medium"],
        _ => &["path", "copy"],
    }
}

fn object_table(object: Object, objects: &[ObjectView]) -> String {
    let columns = columns(object);
    let mut heading = vec![object.noun().to_uppercase()];
    heading.extend(columns.iter().map(|name| name.to_uppercase().replace('_', " ")));
    heading.push("USED BY".to_owned());
    let rows = objects.iter().map(|view| {
        let mut row = vec![view.name.clone()];
        let value = |name: &&str| or_dash(view.effective.get(*name).filter(|v| !is_empty(v)));
        row.extend(columns.iter().map(value));
        row.push(or_dash(Some(view.used_by.join(", ")).filter(|users| !users.is_empty())));
        row
    });
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    table(&heading, &[], rows.collect())
}

fn is_empty(value: &fabric::attribute::Value) -> bool {
    value.as_text() == Some("")
}

fn object_page(object: Object, view: &ObjectView) -> String {
    let rows = object.attributes().filter_map(|attribute| {
        let value = attribute.write(view.effective.get(attribute.name)?);
        let source = view.sources.get(attribute.name).filter(|source| *source != "set");
        let source = source.map(|source| format!("  ({source})")).unwrap_or_default();
        Some((attribute.name.to_owned(), format!("{value}{source}")))
    });
    let head = vec![(object.noun(), view.name.clone()), ("used by", view.used_by.join(", "))];
    page(head, rows.collect())
}

fn login_table(logins: &[LoginView]) -> String {
    let mut rows = Vec::new();
    for login in logins {
        let mut head = [
            login.adapter.clone(),
            or_dash(login.port.as_ref()),
            login.state.clone(),
            login.wwpn.clone(),
            login.waiting_wwpn.clone(),
        ];
        let mut row = |target: String, luns: String| {
            let first = std::mem::take(&mut head);
            rows.push(first.into_iter().chain([target, luns]).collect::<Vec<_>>());
        };
        if login.targets.is_empty() {
            row("-".to_owned(), "-".to_owned());
        }
        for target in &login.targets {
            let luns = target.luns.iter().map(|lun| format!("{}={}", lun.lun, lun.volume));
            let luns = luns.collect::<Vec<_>>().join(",");
            let name = format!("{}: {} {}", target.id, target.target, target.wwpn);
            row(name, or_dash(Some(luns).filter(|luns| !luns.is_empty())));
        }
    }
    table(&["ADAPTER", "PORT", "STATE", "WWPN", "WAITING WWPN", "TARGET", "LUNS"], &[], rows)
}
