//! Volumes: opened, opened anew, resized, removed.

use std::ops::ControlFlow::{self, Break, Continue};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};

use block::{Files, Geometry, OpenEvent, VolumeError};
use channel::device::Resized;
use protocol::message::{Failure, FailureCode, Reply, Request, VolumeStatus};
use spec::{Change, FileIdentity, VolumeKind, VolumeSpec, change};

use super::going::{self, Subject};
use super::opening::{Plan, not_shared};
use super::{Plane, Renewal, State, at_once, failure, in_use, not_found};
use crate::lock::locked;
use crate::storage::{Identity, OpenVolume};
use crate::turns;

pub(super) fn identity(spec: &VolumeSpec) -> Option<Identity> {
    let found = std::fs::metadata(spec.kind.path()?).ok()?;
    Some((found.dev(), found.ino()))
}

impl OpenVolume {
    pub(super) fn status(&self) -> VolumeStatus {
        // One without trouble has its file, and is not looked at twice.
        let trouble = self.volume.trouble();
        VolumeStatus {
            spec: self.spec.clone(),
            bytes: self.volume.geometry().bytes,
            access: self.notes.join("; "),
            removed: trouble.is_some() && self.volume.removed(),
            trouble,
            lost: self.volume.lost(),
            identity: self.known.clone(),
        }
    }
}

/// What whoever asks is told.
type Told = Result<Reply, Failure>;

impl State {
    /// The volume as it is that is to get this form, if there is one; or what there is to say at once.
    fn changed_by(&mut self, then: &VolumeSpec) -> ControlFlow<Told, Option<VolumeSpec>> {
        let about = Subject::Volume(then.name.clone());
        if let Some(told) = self.told(&about, &Request::PutVolume(then.clone())) {
            return Break(told);
        }
        if let Some(failure) = self.opening_of(then) {
            return Break(Err(failure));
        }
        let Some(open) = self.storage.volumes.get(&then.name) else { return Continue(None) };
        if change::volume(&open.spec, then) == Change::Same {
            return Break(Ok(Reply::Done));
        }
        // What those have under way could end up behind the change.
        if let Err(failure) = self.check_settled(self.users(&then.name)) {
            return Break(Err(failure));
        }
        Continue(Some(open.spec.clone()))
    }
}

impl Plane {
    pub(super) fn put_volume(&self, spec: VolumeSpec) -> Result<Reply, Failure> {
        let changing = locked(&self.changes);
        let mut state = self.state();
        let now = match state.changed_by(&spec) {
            Continue(Some(now)) => now,
            Continue(None) => return self.begin(changing, state, Plan::New(spec)),
            Break(told) => return told,
        };
        drop((state, changing));
        let [is_at, was_at] = self.look(&spec, &now)?;
        let changing = locked(&self.changes);
        let mut state = self.state();
        match state.changed_by(&spec) {
            Continue(Some(still)) if still == now => {}
            Break(told) => return told,
            Continue(_) => {
                let what = format!("volume {}: was changed meanwhile", spec.name);
                return Err(failure(FailureCode::Opening, what, "put it again"));
            }
        }
        let name = spec.name.clone();
        let open = state.storage.volumes.get(&name).ok_or_else(|| not_found("volume", &name))?;
        let used =
            state.users(&name).next().is_some() || state.storage.units_on(&name).next().is_some();
        // A size comes by a message of its own.
        let live =
            change::volume(&open.spec, &spec) <= Change::Live && open.spec.bytes == spec.bytes;
        let moves = change::moves(&open.spec, &spec) && !state.is_block_disk(&name);
        let elsewhere = is_at != open.identity;
        if used && moves && elsewhere {
            return self.exchange(changing, state, spec);
        }
        if used && !moves && !live {
            return Err(in_use(
                format!("volume {name}"),
                "an adapter or a logical unit",
                "remove its adapters and units first",
            ));
        }
        if elsewhere && open.identity != was_at {
            let what =
                format!("volume {name}: its file was removed or replaced since it was opened");
            let help = "put the file back, or remove the volume's adapters and the volume first";
            return Err(failure(FailureCode::System, what, help));
        }
        // The file is locked by whoever has it open, so the old volume has to go before the new one comes.
        let (now, known) = (Box::new(now), open.known.clone());
        self.begin(changing, state, Plan::Again { then: spec, now, known })
    }

    /// Where the paths of a volume's next and present form lead. One may lead to what hangs: nothing else waits for it.
    fn look(&self, then: &VolumeSpec, now: &VolumeSpec) -> Result<[Option<Identity>; 2], Failure> {
        let name = &then.name;
        if !self.state().looking.insert(name.clone()) {
            return Err(does_not_answer(name));
        }
        let (tell, told) = mpsc::channel();
        let (all, forms) = (Arc::clone(&self.state), [then.clone(), now.clone()]);
        let look = move || {
            let seen = forms.each_ref().map(identity);
            locked(&all).looking.remove(&forms[0].name);
            // Whoever asked may wait no more.
            let _ = tell.send(seen);
        };
        if let Err(error) = turns::spawn("opening", look) {
            self.state().looking.remove(name);
            return Err(no_thread(name, &error));
        }
        turns::wait(&told, going::GRACE).ok_or_else(|| does_not_answer(name))
    }

    /// Puts another file in the place of a volume's, under the units on it: another path to the same disk. The units stay, with everything that
    /// they know of their clients; commands that are out on the old path end with TASK ABORTED when that lets go of them.
    fn exchange(
        &self,
        changing: MutexGuard<'_, ()>,
        mut state: MutexGuard<'_, State>,
        spec: VolumeSpec,
    ) -> Result<Reply, Failure> {
        let name = spec.name.clone();
        let open = state.storage.volumes.get(&name).ok_or_else(|| not_found("volume", &name))?;
        // Until nothing is out on the old path, it is what there is.
        let status = open.status();
        state.away.insert(name.clone(), status);
        let (about, asked) = (Subject::Volume(name), Request::PutVolume(spec.clone()));
        let what = "gets another path, waits for its disks";
        let change = going::Change { holds: vec![about.clone()], about, asked, what };
        let (files, owner) = (Arc::clone(&self.context.outside), self.owner());
        self.go_on(changing, state, change, move |all| {
            let name = spec.name.clone();
            let exchanged = exchange(&*files, all, spec, owner);
            locked(all).away.remove(&name);
            exchanged
        })
    }

    /// Which data plane this is, to the kernel's marks on files.
    pub(super) fn owner(&self) -> Option<String> {
        owner(&self.socket)
    }

    pub(super) fn resize_volume(
        &self,
        name: &str,
        bytes: u64,
        shrink: bool,
    ) -> Result<Reply, Failure> {
        let changing = locked(&self.changes);
        let mut state = self.state();
        let about = Subject::Volume(name.to_owned());
        let asked = Request::ResizeVolume { name: name.to_owned(), bytes, shrink };
        if let Some(told) = state.told(&about, &asked) {
            return told;
        }
        if let Some(opening) = state.opening.get(name) {
            return Err(opening.goes_on());
        }
        let open = state.storage.volumes.get(name).ok_or_else(|| not_found("volume", name))?;
        let before = open.volume.geometry().bytes;
        let cuts = open.is_cut_by(bytes);
        if cuts && !shrink {
            let what =
                format!("volume {name} has {before} bytes; {bytes} would cut off what lies behind");
            return Err(failure(FailureCode::Invalid, what, "say explicitly that it may shrink"));
        }
        if cuts {
            state.check_settled(state.users(name))?;
        }
        // One that grows stays where it is.
        let holds = if cuts { vec![about.clone()] } else { Vec::new() };
        let change =
            going::Change { about, asked, what: "changes its size, waits for its disk", holds };
        let name = name.to_owned();
        self.go_on(changing, state, change, move |all| {
            if cuts {
                cut(all, &name, bytes)?
            } else {
                grow(all, &name, bytes)?
            }
            tell_size(all, &name, bytes);
            Ok(())
        })
    }

    pub(super) fn remove_volume(&self, name: &str, forget: bool) -> Result<Reply, Failure> {
        let changing = locked(&self.changes);
        let mut state = self.state();
        if forget {
            state.storage.left.retain(|_, left| left.volume.as_deref() != Some(name));
        }
        let about = Subject::Volume(name.to_owned());
        let asked = Request::RemoveVolume { name: name.to_owned(), forget };
        if let Some(told) = state.told(&about, &asked) {
            return told;
        }
        if !state.storage.volumes.contains_key(name) && !state.opening.contains_key(name) {
            return Err(not_found("volume", name));
        }
        let volume = || format!("volume {name}");
        state.check_settled(state.users(name))?;
        if let Some(unit) = state.storage.units_on(name).next() {
            return Err(in_use(volume(), &format!("unit {unit}"), "remove the unit first"));
        }
        if let Some((user, _)) = state.users(name).next() {
            return Err(in_use(volume(), &format!("adapter {user}"), "remove the adapter first"));
        }
        state.opening.remove(name);
        state.named.forget_volume(name);
        let Some(gone) = state.storage.take_volume(name) else { return Ok(Reply::Done) };
        // It is seen until it is gone: closing it may wait for what the kernel has yet to bring to the disk.
        state.away.insert(name.to_owned(), gone.status());
        let change = going::Change {
            holds: vec![about.clone()],
            about,
            asked,
            what: "removed, waits for its disk",
        };
        let name = name.to_owned();
        self.go_on(changing, state, change, move |all| {
            drop(gone);
            locked(all).away.remove(&name);
            Ok(())
        })
    }
}

/// Opens another file for a volume, and puts it in its place. It is opened first, so that nothing has changed if it cannot be had.
fn exchange(
    files: &dyn Files,
    all: &Mutex<State>,
    spec: VolumeSpec,
    owner: Option<String>,
) -> Result<(), Failure> {
    not_shared(all, &spec)?;
    let name = spec.name.clone();
    let opened = open_volume(files, all, spec, owner, &mut |_| ())?;
    let mut state = locked(all);
    let open = state.storage.volumes.get(&name).ok_or_else(|| not_found("volume", &name))?;
    if state.is_block_disk(&name) {
        let user = "a block adapter";
        return Err(in_use(format!("volume {name}"), user, "remove its adapter first"));
    }
    if !serves_as(&opened.volume.geometry(), &open.volume.geometry()) {
        let what = format!("volume {name}: what is at its new path cannot do what the old one can");
        let help = "name a path to the same disk, or remove the volume's units first";
        return Err(failure(FailureCode::Invalid, what, help));
    }
    let old = state.storage.put_in(opened);
    let renewal = state.renewal_of(&name);
    drop(state);
    let renewed = renewal.carry_out_at_once(all);
    // They had it a moment ago.
    if let (Err(_), Some(old)) = (&renewed, old) {
        let mut state = locked(all);
        let new = state.storage.put_in(old);
        let renewal = state.renewal_of(&name);
        drop(state);
        renewal.carry_out_at_once(all)?;
        drop(new);
    }
    renewed
}

/// Cuts a volume, with nothing of it under way.
fn cut(all: &Mutex<State>, name: &str, bytes: u64) -> Result<(), Failure> {
    let mut open = take_out(all, name)?;
    let result = open.resize(bytes);
    let mut state = locked(all);
    state.put_in(open);
    let renewal = state.renewal_of(name);
    drop(state);
    renewal.carry_out(all)?;
    result.map_err(|error| volume_failure(&error))
}

fn grow(all: &Mutex<State>, name: &str, bytes: u64) -> Result<(), Failure> {
    let volume = locked(all).storage.volumes.get(name).map(|open| Arc::clone(&open.volume));
    let volume = volume.ok_or_else(|| not_found("volume", name))?;
    volume.resize(bytes).map_err(|error| volume_failure(&error))
}

/// Whoever uses a volume is told its size.
fn tell_size(all: &Mutex<State>, name: &str, bytes: u64) {
    let mut state = locked(all);
    let Some(open) = state.storage.volumes.get_mut(name) else { return };
    open.has_size(bytes);
    let (geometry, units) = state.storage.resized(name);
    let Renewal(users) = state.renewal_of(name);
    drop(state);
    // One of them may wait for another disk.
    at_once(&users, |adapter| {
        adapter.resized(&Resized { volume: name, geometry: &geometry, units: &units });
    });
}

/// Takes a volume from everybody who uses it; dropped, it is closed. Their queues stop until there is another one of this name.
pub(super) fn take_out(all: &Mutex<State>, name: &str) -> Result<OpenVolume, Failure> {
    let mut state = locked(all);
    let old = state.storage.take_out(name).ok_or_else(|| not_found("volume", name))?;
    state.away.insert(name.to_owned(), old.status());
    let renewal = state.renewal_of(name);
    drop(state);
    renewal.carry_out(all).map(|()| old).inspect_err(|_| drop(locked(all).away.remove(name)))
}

impl State {
    /// Puts an open volume in its place, and under the units on it; what was there before.
    pub(super) fn put_in(&mut self, open: OpenVolume) -> Option<OpenVolume> {
        self.away.remove(&open.spec.name);
        self.storage.put_in(open)
    }

    /// All that there are; one that changes is what it was.
    pub(super) fn volumes(&self) -> Vec<VolumeStatus> {
        let stay = self.storage.volumes.values();
        let stay = stay.filter(|open| !self.away.contains_key(&open.spec.name));
        stay.map(OpenVolume::status).chain(self.away.values().cloned()).collect()
    }

    /// One, if it is there.
    pub(super) fn volume(&self, name: &str) -> Option<VolumeStatus> {
        let stays = || self.storage.volumes.get(name).map(OpenVolume::status);
        self.away.get(name).cloned().or_else(stays)
    }

    /// Whether it is the disk of a block adapter, now or in its next form.
    pub(super) fn is_block_disk(&self, volume: &str) -> bool {
        let named = self.named.of(Some(volume), []).into_iter();
        let mut named = named.filter_map(|name| self.adapters.get(name));
        named.any(|adapter| adapter.is(|spec| spec.uses_volume(volume)))
    }
}

/// Whether a volume can take another's place under units that have told their clients what it can do.
fn serves_as(new: &Geometry, old: &Geometry) -> bool {
    let Geometry { bytes, physical_block_size, optimal_io_size, discard, write_zeroes, .. } = *old;
    let can = (new.discard || !discard) && (new.write_zeroes || !write_zeroes);
    let (discard, write_zeroes) = (new.discard, new.write_zeroes);
    let like =
        Geometry { bytes, physical_block_size, optimal_io_size, discard, write_zeroes, ..*new };
    can && like == Geometry { discard, write_zeroes, ..*old }
}

/// Which data plane this is, for the one that comes after it: its socket's name in that very folder. Other machines' or containers' folders may
/// have the same path, and share read-only files with this one.
fn owner(socket: &Path) -> Option<String> {
    let folder = socket.parent().filter(|folder| !folder.as_os_str().is_empty());
    let found = std::fs::metadata(folder.unwrap_or(Path::new("."))).ok()?;
    Some(format!("{}:{}:{}", found.dev(), found.ino(), socket.file_name()?.display()))
}

/// Opens a volume again that was just closed: it is the same file, and nothing is made.
pub(super) fn reopen_volume(
    files: &dyn Files,
    state: &Mutex<State>,
    told: VolumeSpec,
    known: Option<FileIdentity>,
    owner: Option<String>,
    waits: &mut dyn FnMut(String),
) -> Result<OpenVolume, Failure> {
    let mut spec = told.clone();
    spec.kind.settle(known);
    Ok(OpenVolume { spec: told, ..open_volume(files, state, spec, owner, waits)? })
}

/// Opens a volume; `waits` is told who has its file.
pub(super) fn open_volume(
    files: &dyn Files,
    state: &Mutex<State>,
    spec: VolumeSpec,
    owner: Option<String>,
    waits: &mut dyn FnMut(String),
) -> Result<OpenVolume, Failure> {
    let mut notes = Vec::new();
    let mut known = None;
    let mut note = |event: OpenEvent| match event {
        OpenEvent::WaitsForLock { holder } => {
            tracing::warn!(volume = spec.name, holder, "waits for its file");
            waits(holder);
        }
        OpenEvent::Identity(identity) => known = Some(identity),
        OpenEvent::Access(access) => notes.insert(0, access.to_owned()),
        OpenEvent::Note(note) => notes.push(note),
    };
    let volume = match &spec.kind {
        VolumeKind::Lu(lu) => {
            let pool = locked(state).pool_of(&spec, lu);
            let opened = pool.and_then(|pool| pool.open_lu(&spec, lu));
            opened.map(|(volume, identity)| {
                note(OpenEvent::Access("pool"));
                note(OpenEvent::Identity(identity));
                volume
            })
        }
        _ => block::open_for(files, owner.as_deref(), &spec, &mut note),
    };
    let volume = volume.map_err(|error| volume_failure(&error))?;
    let identity = identity(&spec);
    Ok(OpenVolume { spec, volume, notes, identity, known })
}

fn does_not_answer(volume: &str) -> Failure {
    let what = format!("volume {volume}: its path does not answer");
    failure(FailureCode::Opening, what, "it is changed as soon as that does")
}

pub(super) fn no_thread(volume: &str, error: &std::io::Error) -> Failure {
    let what = format!("volume {volume}: no thread to open it: {error}");
    failure(FailureCode::System, what, "let the process have more threads")
}

fn volume_failure(error: &VolumeError) -> Failure {
    use std::error::Error;
    let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    let message = format!("volume {}: {}{source}", error.volume, error.what);
    Failure { code: FailureCode::System, message, help: error.help.clone() }
}
