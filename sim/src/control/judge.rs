//! What is looked at when everything is at rest.

use std::cell::Cell;
use std::collections::BTreeMap;

use control::error::ApiError;
use control::model::Desired;
use control::model::resolve::own_file;
use control::model::transition::Allow;
use control::operation::Step;
use control::paths::Paths;
use control::server::{ChangeOptions, Done, OnFailure, Server};
use fabric::attribute::words::VolumeKind;
use fabric::attribute::{Object, Value, attr};
use memory::sim;

use super::asks::{self, Ask, Asked, End};
use super::{clean, kept, planes};

/// How an ask has ended by its answer. One that was not to wait for the end is followed to it.
pub(super) async fn end_of(
    server: &Server,
    answer: &Result<Done, ApiError>,
    dry_run: bool,
    life: u64,
    number: u64,
) -> End {
    let said = |text: String| {
        if super::lives(life) {
            sim::tell(|| clean(&format!("caller {number}: {text}")));
        }
    };
    match answer {
        Ok(_) if dry_run => {
            said("it would be done".to_owned());
            End::Refused
        }
        Ok(Done { operation: Some(id), .. }) => {
            said(format!("operation {id} has begun"));
            match server.operation_ended(*id).await.map(|it| it.operation.step) {
                Ok(Step::Done) => {
                    said(format!("operation {id} is done"));
                    End::Done
                }
                Ok(Step::Undone) => {
                    said(format!("operation {id} is undone"));
                    End::Refused
                }
                _ => End::Unknown,
            }
        }
        Ok(done) => {
            let failures = done.failures.iter().chain(&done.waiting).map(ToString::to_string);
            let failures: Vec<String> = failures.collect();
            said(format!("done, {} changes; {}", done.changes.len(), failures.join("; ")));
            End::Done
        }
        Err(refusal) => {
            said(format!("{refusal}; {}", refusal.help.clone().unwrap_or_default()));
            let help = refusal.help.clone().unwrap_or_default();
            let stays = ["could not be taken back", "it stays", "goes on with operation"];
            let text = format!("{} {help}", refusal.message);
            if stays.iter().any(|words| text.contains(words)) { End::Unknown } else { End::Refused }
        }
    }
}

/// What is there is asked for again.
pub(super) fn idle(number: u64, state: &Desired) -> Asked {
    apply(number, state.clone())
}

/// A configuration is asked for, all of it.
pub(super) fn apply(number: u64, state: Desired) -> Asked {
    let of = |(object, name): (Object, &str)| {
        let mark = state[object].get(name).and_then(|set| asks::mark_of(object, set));
        asks::marked(object).is_some().then(|| ((object, name.to_owned()), mark))
    };
    let marks = asks::NAMES.into_iter().filter_map(of).collect();
    Asked { marks, ..plain(number, Ask::Apply(state, true)) }
}

/// A volume of RAM was to become smaller while nobody was there to say that it cannot: somebody corrects that.
pub(super) fn correction(number: u64, desired: &Desired) -> Option<Asked> {
    let status = planes::status()?;
    let larger = status.volumes.iter().find_map(|volume| {
        let set = desired[Object::Volume].get(&volume.spec.name)?;
        let is_ram = attr::volume::KIND.of(set) == Some(VolumeKind::Ram);
        let wanted = attr::volume::SIZE.of(set)?;
        (is_ram && wanted < volume.bytes).then(|| (volume.spec.name.clone(), volume.bytes))
    });
    let (name, bytes) = larger?;
    let size = BTreeMap::from([("size".to_owned(), Some(Value::Number(bytes)))]);
    Some(plain(number, Ask::Set(Object::Volume, name, size)))
}

/// An ask whose answer is waited for, with no object that is known by a mark.
fn plain(number: u64, ask: Ask) -> Asked {
    let options = ChangeOptions {
        dry_run: false,
        allow: Allow { shrink: false, force: true },
        on_failure: OnFailure::Keep,
        wait: true,
    };
    Asked {
        number,
        ask,
        options,
        from: sim::now_ns(),
        to: None,
        end: End::Unknown,
        marks: BTreeMap::new(),
        waits: true,
        unsure: false,
    }
}

/// Looks at everything.
pub(super) fn look(server: &Server, folder: &str, paths: &Paths) -> Result<(), String> {
    let now = sim::now_ns();
    let desired = server.desired();
    // What nobody has an answer of is decided by now.
    asks::with(|asked| asked.iter_mut().for_each(|it| it.to = it.to.or(Some(now))));
    asks::with(|asked| {
        for object in [Object::Volume, Object::Adapter] {
            for (_, name) in asks::NAMES.into_iter().filter(|(of, _)| *of == object) {
                let set = desired[object].get(name);
                let seen = set.and_then(|set| asks::mark_of(object, set));
                registers(asked, (object, name), seen)?;
            }
        }
        parted(asked)
    })?;
    REST.set(now);
    data(&desired, folder, paths)
}

/// Whether an object may be as it is, by what was asked and answered.
fn registers(asked: &[Asked], key: (Object, &str), seen: Option<u64>) -> Result<(), String> {
    let (object, name) = (key.0, key.1.to_owned());
    let of = |it: &Asked| it.marks.get(&(object, name.clone())).copied();
    let covered =
        |by: u64| asked.iter().find(|it| it.end == End::Done && of(it).is_some() && it.from > by);
    let writers: Vec<&Asked> = asked.iter().filter(|it| of(it) == Some(seen)).collect();
    let may = |it: &&&Asked| it.end != End::Refused && covered(it.to.unwrap_or(u64::MAX)).is_none();
    if writers.iter().find(may).is_some() || (seen.is_none() && covered(0).is_none()) {
        return Ok(());
    }
    let is = seen.map_or("absent".to_owned(), |mark| format!("as mark {mark} says"));
    let last = asked.iter().rev().find(|it| it.end == End::Done && of(it).is_some());
    let last =
        last.map(|it| format!("; the last answered change of it was caller {}'s", it.number));
    match writers.iter().find(|it| it.end == End::Refused) {
        Some(writer) if writers.len() == 1 => Err(format!(
            "{object} {name} is {is}, and that was refused to caller {}{}",
            writer.number,
            last.unwrap_or_default()
        )),
        _ => Err(format!(
            "{object} {name} is {is}, and has changed since{}",
            last.unwrap_or_default()
        )),
    }
}

thread_local! {
    /// When everything was as it was asked for, the last time.
    static REST: Cell<u64> = const { Cell::new(0) };
}

/// A run begins.
pub(super) fn new() {
    REST.set(0);
}

/// Whoever lost his adapter lost it by force, or came after it was judged. What was answered before everything was at rest did nothing after that.
fn parted(asked: &[Asked]) -> Result<(), String> {
    let rest = REST.get();
    for (at, name, since) in planes::with(|plane| std::mem::take(&mut plane.parted)) {
        let mut may = asked
            .iter()
            .filter(|it| it.from <= at && !it.options.dry_run && it.to.is_none_or(|to| to > rest));
        let allowed = may.any(|it| {
            let lasts =
                it.to.is_none_or(|to| to >= since) || it.options.on_failure == OnFailure::Keep;
            (it.options.allow.force || it.from <= since && lasts) && it.takes(&name)
        });
        if !allowed {
            return Err(format!(
                "adapter {name} was taken from its client, and nobody has forced that"
            ));
        }
    }
    Ok(())
}

/// Each volume has its own data, and none of an earlier one's.
fn data(desired: &Desired, _: &str, paths: &Paths) -> Result<(), String> {
    for (name, set) in desired[Object::Volume].iter() {
        let Some(path) = own_file(name, set, paths) else { continue };
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let number = kept::volume(name);
        let found = u64::from_le_bytes(bytes.first_chunk::<8>().copied().unwrap_or_default());
        if found != 0 && found != number {
            return Err(format!(
                "volume {name} has the data of an earlier volume of this name ({found}, and is {number})"
            ));
        }
        let mut bytes = bytes;
        if bytes.len() >= 8 {
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            // The file itself is written to: a data plane has it mapped or open.
            let file = std::fs::OpenOptions::new().write(true).open(&path);
            let written = file.and_then(|file| {
                std::os::unix::fs::FileExt::write_all_at(&file, &number.to_le_bytes(), 0)
            });
            written.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
