//! What callers ask of the server: objects that are made, changed and removed, one by one or as a configuration.

use std::cell::RefCell;
use std::collections::BTreeMap;

use control::error::ApiError;
use control::model::Desired;
use control::model::transition::Allow;
use control::server::{ChangeOptions, Done, Expected, OnFailure};
use fabric::attribute::{Attributes, Object, Value};
use memory::sim;

/// What a caller asks.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    Create(Object, String, Attributes),
    Set(Object, String, BTreeMap<String, Option<Value>>),
    Remove(Object, String),
    Apply(Desired, bool),
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Refused,
    /// It may have been done or not.
    Unknown,
}

/// An ask in the course of a run.
#[derive(Debug)]
pub(super) struct Asked {
    pub number: u64,
    pub ask: Ask,
    pub options: ChangeOptions,
    pub from: u64,
    /// From when on nothing of it happens any more.
    pub to: Option<u64>,
    pub end: End,
    /// What each object has by it that is known by a mark: nothing where it goes.
    pub marks: BTreeMap<(Object, String), Option<u64>>,
    /// Somebody waits for its answer.
    pub waits: bool,
    /// It was refused since the store's disk failed: what did not get there for certain may be there after the next start.
    pub unsure: bool,
}

thread_local! {
    static ASKED: RefCell<Vec<Asked>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn new() {
    ASKED.take();
}

pub(super) fn with<T>(act: impl FnOnce(&mut Vec<Asked>) -> T) -> T {
    ASKED.with_borrow_mut(act)
}

/// The next mark: no two objects ever have the same.
fn mark() -> u64 {
    MARKS.set(MARKS.get() + 1);
    MARKS.get()
}

thread_local! {
    static MARKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

pub(super) fn begin_marks() {
    MARKS.set(0);
}

/// The attribute in which an object has its mark.
pub(super) fn marked(object: Object) -> Option<&'static str> {
    match object {
        Object::Volume => Some("limit_iops"),
        Object::Adapter => Some("client_name"),
        _ => None,
    }
}

fn marking(object: Object, mark: u64) -> Value {
    match object {
        Object::Volume => Value::Number(1_000_000_000 + mark),
        _ => Value::Text(format!("m{mark}")),
    }
}

/// The mark of an object, if it has one.
pub(super) fn mark_of(object: Object, set: &Attributes) -> Option<u64> {
    match set.get(marked(object)?)? {
        Value::Number(number) => number.checked_sub(1_000_000_000),
        Value::Text(text) => text.strip_prefix('m')?.parse().ok(),
        Value::Switch(_) => None,
    }
}

/// Objects that there may be.
pub(super) const NAMES: [(Object, &str); 15] = [
    (Object::Volume, "v0"),
    (Object::Volume, "v1"),
    (Object::Volume, "v2"),
    (Object::Volume, "v3"),
    (Object::Adapter, "b0"),
    (Object::Adapter, "b1"),
    (Object::Adapter, "c0"),
    (Object::Adapter, "c1"),
    (Object::Port, "p0"),
    (Object::Target, "t0"),
    (Object::Target, "t1"),
    (Object::Zone, "z0"),
    (Object::Mask, "m0"),
    (Object::Mask, "m1"),
    (Object::Vtd, "d0"),
];

fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

fn size() -> Value {
    Value::Number([32, 64, 96][sim::pick(3)] << 10)
}

fn volume() -> String {
    format!("v{}", sim::pick(4))
}

/// An object as somebody would make it.
fn made(object: Object, name: &str, folder: &str) -> Attributes {
    let mut set = Attributes::new();
    let mut put = |attribute: &str, value: Value| drop(set.insert(attribute.to_owned(), value));
    match object {
        Object::Volume => match sim::pick(3) {
            0 => {
                put("kind", text("ram"));
                put("size", size());
            }
            1 => {
                put("kind", text("file"));
                put("path", text(format!("{folder}/{name}")));
                put("size", size());
                put("create", Value::Switch(!sim::once_in(4)));
            }
            _ => {
                put("kind", text("null"));
                put("size", size());
            }
        },
        Object::Adapter if name.starts_with('b') => {
            put("volume", text(volume()));
            put("queues", Value::Number(1 + sim::pick(4) as u64));
        }
        Object::Adapter if name == "c1" => {
            put("kind", text("scsi"));
            put("queues", Value::Number(2));
        }
        Object::Adapter => {
            put("kind", text("fc"));
            put("queues", Value::Number(2));
            put("port", text("p0"));
        }
        Object::Target => {
            let luns = (0..1 + sim::pick(2)).map(|lun| format!("{lun}={}", volume()));
            put("luns", text(luns.collect::<Vec<_>>().join(",")));
        }
        Object::Zone => put("members", text(["c0,t0", "c0,t0,t1"][sim::pick(2)])),
        Object::Mask => {
            put("initiators", text("c0"));
            put("targets", text(["t0", "t1", "t0,t1"][sim::pick(3)]));
        }
        Object::Vtd => {
            put("adapter", text("c1"));
            put("volume", text(volume()));
        }
        _ => {}
    }
    set
}

/// What a set would change.
fn changed(object: Object, folder: &str) -> Option<(String, Option<Value>)> {
    let (attribute, value) = match object {
        Object::Volume => match sim::pick(3) {
            0 => ("size", Some(size())),
            1 => ("delay_us_max", Some(Value::Number(sim::pick(5) as u64))),
            _ => ("path", Some(text(format!("{folder}/other")))),
        },
        Object::Adapter => ("queues", Some(Value::Number(1 + sim::pick(4) as u64))),
        Object::Target => ("luns", made(object, "", folder).remove("luns")),
        Object::Mask => ("targets", made(object, "", folder).remove("targets")),
        Object::Zone => ("members", made(object, "", folder).remove("members")),
        _ => return None,
    };
    Some((attribute.to_owned(), value))
}

/// A configuration with everything that goes together: no volume is written by two.
pub(super) fn whole(folder: &str) -> Desired {
    let mut wanted = Desired::default();
    for (object, name) in NAMES.into_iter().filter(|(_, name)| !["b1", "m1"].contains(name)) {
        wanted[object].insert(name.to_owned(), made(object, name, folder));
    }
    for (object, name, attribute, value) in [
        (Object::Adapter, "b0", "volume", "v0"),
        (Object::Target, "t0", "luns", "0=v1"),
        (Object::Target, "t1", "luns", "0=v2"),
        (Object::Vtd, "d0", "volume", "v3"),
        (Object::Zone, "z0", "members", "c0,t0,t1"),
        (Object::Mask, "m0", "targets", "t0,t1"),
    ] {
        wanted[object].or_default(name).insert(attribute.to_owned(), text(value));
    }
    for name in ["v0", "v1", "v2", "v3"] {
        let volume = wanted[Object::Volume].or_default(name);
        volume.entry("create".to_owned()).and_modify(|create| *create = Value::Switch(true));
    }
    wanted
}

/// Draws what is asked next; `known` is what the caller read a while ago.
pub(super) fn draw(number: u64, known: &Desired, folder: &str) -> Asked {
    let mut marks = BTreeMap::new();
    let mut give = |object: Object, name: &str, set: &mut Attributes| {
        if let Some(attribute) = marked(object) {
            let mark = mark();
            set.insert(attribute.to_owned(), marking(object, mark));
            marks.insert((object, name.to_owned()), Some(mark));
        }
    };
    let (object, name) = NAMES[sim::pick(NAMES.len())];
    let there = known[object].contains_key(name);
    let kind = if known[Object::Volume].is_empty() { 0 } else { sim::pick(12) };
    let ask = match kind {
        0 | 1 => {
            let prune = sim::once_in(3);
            let mut wanted =
                if prune || sim::once_in(2) { known.clone() } else { Desired::default() };
            if known[Object::Volume].is_empty() && sim::once_in(2) {
                wanted = whole(folder);
            }
            for _ in 0..1 + sim::pick(4) {
                let (object, name) = NAMES[sim::pick(NAMES.len())];
                if prune && sim::once_in(3) {
                    wanted[object].remove(name);
                } else {
                    wanted[object].insert(name.to_owned(), made(object, name, folder));
                }
            }
            for object in [Object::Volume, Object::Adapter] {
                let names: Vec<String> = wanted[object].keys().cloned().collect();
                for name in names {
                    if let Some(set) = wanted[object].get_mut(&name) {
                        give(object, &name, set);
                    }
                }
            }
            if prune {
                for (object, name) in
                    NAMES.into_iter().filter(|(object, _)| marked(*object).is_some())
                {
                    marks.entry((object, name.to_owned())).or_insert(None);
                }
            }
            Ask::Apply(wanted, prune)
        }
        _ if !there || kind == 2 => {
            let mut set = made(object, name, folder);
            give(object, name, &mut set);
            Ask::Create(object, name.to_owned(), set)
        }
        3..=5 => {
            if marked(object).is_some() {
                marks.insert((object, name.to_owned()), None);
            }
            Ask::Remove(object, name.to_owned())
        }
        _ => {
            let mut changes = BTreeMap::new();
            let mut set = Attributes::new();
            give(object, name, &mut set);
            changes.extend(set.into_iter().map(|(attribute, value)| (attribute, Some(value))));
            if changes.is_empty() || sim::once_in(2) {
                changes.extend(changed(object, folder));
            }
            Ask::Set(object, name.to_owned(), changes)
        }
    };
    let applies = matches!(ask, Ask::Apply(..));
    let options = ChangeOptions {
        dry_run: sim::once_in(20),
        allow: Allow { shrink: sim::once_in(3), force: sim::once_in(4) },
        on_failure: if applies { OnFailure::Keep } else { OnFailure::Revert },
        wait: !sim::once_in(4),
    };
    let (from, to) = (sim::now_ns(), None);
    Asked { number, ask, options, from, to, end: End::Unknown, marks, waits: true, unsure: false }
}

impl Asked {
    /// What it gives to an object.
    pub(super) fn of(&self, object: Object, name: &str) -> Option<&Attributes> {
        match &self.ask {
            Ask::Create(of, its, set) => (*of == object && its == name).then_some(set),
            Ask::Apply(wanted, _) => wanted[object].get(name),
            Ask::Set(..) | Ask::Remove(..) => None,
        }
    }

    /// Whether it may take an adapter from its client.
    pub(super) fn takes(&self, adapter: &str) -> bool {
        match &self.ask {
            // It is taken back.
            Ask::Create(object, name, _) => *object == Object::Adapter && name == adapter,
            Ask::Remove(_, name) => name == adapter,
            Ask::Set(Object::Adapter, name, _) => name == adapter,
            // What is below it is made anew.
            Ask::Set(..) | Ask::Apply(..) => true,
        }
    }

    pub(super) fn tell(&self) -> String {
        let of = |set: &Attributes| {
            let all = set.iter().map(|(name, value)| format!("{name}={value}"));
            all.collect::<Vec<_>>().join(" ")
        };
        let what = match &self.ask {
            Ask::Create(object, name, set) => format!("create {object} {name} {}", of(set)),
            Ask::Set(object, name, changes) => {
                let all = changes.iter().map(|(name, value)| {
                    let value = value.as_ref().map(ToString::to_string).unwrap_or_default();
                    format!("{name}={value}")
                });
                format!("set {object} {name} {}", all.collect::<Vec<_>>().join(" "))
            }
            Ask::Remove(object, name) => format!("remove {object} {name}"),
            Ask::Apply(wanted, prune) => {
                let prune = if *prune { " --prune" } else { "" };
                format!("apply{prune} {}", super::short(wanted))
            }
        };
        let ChangeOptions { dry_run, allow, wait, .. } = self.options;
        let flag = |is: bool, name: &str| if is { format!(" --{name}") } else { String::new() };
        let flags = [
            flag(dry_run, "dry-run"),
            flag(allow.force, "force"),
            flag(allow.shrink, "shrink"),
            flag(!wait, "no-wait"),
        ];
        format!("caller {}: {what}{}", self.number, flags.concat())
    }
}

/// What is asked of a server; the answer.
pub(super) async fn carry_out(
    server: &control::server::Server,
    ask: Ask,
    options: ChangeOptions,
) -> Result<Done, ApiError> {
    match ask {
        Ask::Create(object, name, set) => server.create(object, &name, set, options).await,
        Ask::Set(object, name, changes) => {
            server.set(object, &name, changes, Expected::default(), options).await
        }
        Ask::Remove(object, name) => {
            server.remove(object, &name, Expected::default(), options).await
        }
        Ask::Apply(wanted, prune) => {
            server.apply(wanted, prune, options).await.map(|(done, _)| done)
        }
    }
}
