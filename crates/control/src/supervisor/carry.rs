//! Making a data plane what it shall be: what of both has changed is compared, and what differs is sent.

use super::refusal::refusal;
use super::{SupervisorThread, close, grants};
use crate::error::{ApiError, Code};
use crate::link::LinkError;
use crate::model::files::{self, Found};
use crate::model::pools;
use crate::model::resolve::{NOT_KNOWN, Wanted};
use crate::reconcile::{Action, Names, Subject, reconcile_of, selection, without};
use crate::supervisor::view::lock;
use protocol::message::{Failure, FailureCode, Reply};
use protocol::opener::Grants;
use spec::{UnitKind, UnitSpec, VolumeKind, VolumeSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

/// What to do about something that no message carries.
pub(crate) const FEWER: &str = "give its client fewer LUNs, or restart the data plane if it is of an older version: \
     `trunkline dataplane restart`";

/// What a data plane has to open to be what it shall be; of its files and sockets all, or those that are among some.
pub(super) fn granted(wanted: &Wanted, own: &Path, of: Option<&Grants>) -> Grants {
    let mut grants = Grants::default();
    grants.own_socket(own);
    let is_file = |path: &Path| of.is_none_or(|of| of.has_file(path));
    let volumes = wanted.volumes.values();
    let volumes = volumes.filter(|spec| spec.kind.path().is_some_and(is_file));
    volumes.for_each(|spec| grants.volume(spec));
    let adapters = wanted.adapters.values();
    let adapters = adapters.filter(|spec| of.is_none_or(|of| of.has_socket(&spec.socket)));
    adapters.for_each(|spec| grants.adapter(spec));
    wanted.uplinks.values().for_each(|spec| grants.uplink(spec));
    wanted.pools.values().for_each(|spec| grants.pool(spec));
    grants
}

/// What is not done, and why.
#[derive(Default)]
pub(super) struct Undone {
    pub(super) failures: BTreeMap<Subject, ApiError>,
    pub(super) opening: BTreeMap<Subject, ApiError>,
}

impl Undone {
    /// Where what waits for a volume belongs.
    fn list(&mut self, volume: &Subject) -> &mut BTreeMap<Subject, ApiError> {
        let opening = self.opening.contains_key(volume);
        if opening { &mut self.opening } else { &mut self.failures }
    }

    fn is_empty(&self) -> bool {
        self.failures.is_empty() && self.opening.is_empty()
    }
}

impl SupervisorThread {
    /// Compares, and sends what is to be done; what follows from a failed action is left out.
    pub(super) fn carry_out(&mut self) -> Result<Undone, LinkError> {
        self.learn()?;
        let about = std::mem::take(&mut self.about);
        // What goes is closed with what it was granted, so that goes last.
        grants(&self.grants).add(&granted_to(&self.wanted, &about));
        let mut opened = false;
        let mut undone = Undone::default();
        let mut failed = Names::new();
        for action in reconcile_of(&self.wanted, &self.has, &about) {
            if failed.contains(&action.subject()) {
                continue;
            }
            if let Some((volume, refusal)) = follows(&action, &failed, &self.has) {
                let awaited = self.awaits(&action, undone.opening.contains_key(&volume))?;
                if awaited { &mut self.about } else { &mut failed }.insert(action.subject());
                undone.list(&volume).insert(action.subject(), refusal);
                continue;
            }
            // Before a client can write to it, it is known which file a volume has.
            if opened && matches!(action, Action::PutUnit(_) | Action::PutAdapter(_)) {
                self.learn()?;
                opened = false;
            }
            let action = self.named(action);
            if !is_named(&action) {
                failed.insert(action.subject());
                continue;
            }
            if let Action::RemoveVolume { name, .. } = &action {
                // Nobody takes what an earlier volume of the name had for a new one's.
                Arc::make_mut(&mut lock(&self.view).opened).remove(name);
            }
            // Until it is heard that it is so, it is compared once more; so is a client that is spared something.
            self.about.insert(action.subject());
            let action = spared(action, &failed);
            match self.send(&action)? {
                Some(failure) => {
                    let opening = failure.code == FailureCode::Opening;
                    let refusal = refusal(&self.spec.name, action.subject(), failure);
                    // A volume that keeps the size that it had is there: its clients have it.
                    if !matches!(action, Action::ResizeVolume { .. }) {
                        failed.insert(action.subject());
                    }
                    if opening {
                        undone.opening.insert(action.subject(), refusal);
                    } else {
                        tracing::warn!(dataplane = %self.spec.name, "{refusal}");
                        undone.failures.insert(action.subject(), refusal);
                    }
                }
                None => {
                    opened |= matches!(
                        action,
                        Action::PutVolume(_) | Action::PutPool(_) | Action::ResizeVolume { .. }
                    );
                }
            }
        }
        if self.stale || !self.taken.is_empty() {
            self.let_go(&failed, undone.is_empty());
        }
        self.about.append(&mut failed);
        if opened {
            self.learn()?;
        }
        Ok(undone)
    }

    /// The unit of an LU that was made since it was compared has its name of it.
    fn named(&self, action: Action) -> Action {
        match action {
            Action::PutUnit(spec) if spec.naa == NOT_KNOWN => {
                Action::PutUnit(self.wanted.units.get(&spec.name).cloned().unwrap_or(spec))
            }
            action => action,
        }
    }

    /// Whether the clients of a LUN are told that it is becoming ready, until its volume is open: those that were there before the data plane
    /// died have connected again, and what is sent to a LUN that is not there fails for good. What cannot be opened at all is no LUN, so that
    /// clients with another way to it take that one; but what they were told is becoming ready is not taken from them. A drive is there without
    /// its medium.
    fn awaits(&mut self, action: &Action, opening: bool) -> Result<bool, LinkError> {
        let Action::PutUnit(spec) = action else { return Ok(false) };
        if self.has.unit(&spec.name).is_some_and(|unit| unit.spec.volume.is_none()) {
            return Ok(true);
        }
        let opening = (opening || spec.kind == UnitKind::Optical) && is_named(action);
        let awaited = Action::PutUnit(UnitSpec { volume: None, ..spec.clone() });
        // A data plane of an older version knows no such disk.
        Ok(opening && self.send(&awaited)?.is_none())
    }

    /// Hears what the data plane has now: what has changed is to be compared, and of volumes it is noted which files they have. Nobody else changes what it
    /// has, so that it is asked for what it was told, and for what is to be compared; and for all of it where something is tried again.
    fn learn(&mut self) -> Result<(), LinkError> {
        let of = selection(&self.about, &self.wanted);
        let Some(link) = &mut self.link else { return Ok(()) };
        let again = std::mem::take(&mut self.again);
        let account = if again { link.account()? } else { link.account_of(of)? };
        self.about.append(&mut self.has.hear(account));
        let mut view = lock(&self.view);
        let mut learned = false;
        for subject in &self.about {
            if let Subject::Pool(name) = subject {
                let open = self.has.pool(name);
                open.into_iter().for_each(|open| self.wanted.settle_pool(open));
                learned |= match open {
                    Some(open) => {
                        let open = pools::Open::of(open);
                        view.pools.insert(name.clone(), open).as_ref() != view.pools.get(name)
                    }
                    None => view.pools.remove(name).is_some(),
                };
            }
            let Subject::Volume(name) = subject else { continue };
            let open = self.has.volume(name);
            if let Some(open) = open {
                self.wanted.settle(open);
            }
            let found = open.filter(|open| files::is_made(&open.spec.kind)).map(|open| Found {
                path: open.spec.kind.path().map(Path::to_owned),
                identity: open.identity.clone(),
            });
            match found {
                Some(found) if view.opened.get(name) != Some(&found) => {
                    Arc::make_mut(&mut view.opened).insert(name.clone(), found);
                    learned = true;
                }
                Some(_) => {}
                None if view.opened.contains_key(name) => {
                    Arc::make_mut(&mut view.opened).remove(name);
                    learned = true;
                }
                None => {}
            }
        }
        if learned {
            self.learned.notify_one();
        }
        Ok(())
    }

    /// Sends an action. Why it was not done, if it was not.
    fn send(&mut self, action: &Action) -> Result<Option<Failure>, LinkError> {
        let listener = match action {
            Action::PutAdapter(spec) => self.listeners.get(&spec.name),
            _ => None,
        };
        let fds: Vec<BorrowedFd<'_>> = listener.iter().map(|fd| fd.as_fd()).collect();
        let Some(link) = &mut self.link else { return Err(LinkError::Absent) };
        match link.call(&action.request(), &fds) {
            Ok((Reply::Done, _)) => Ok(None),
            Ok((Reply::Error(failure), _)) => Ok(Some(failure)),
            Ok((other, _)) => Err(LinkError::OutOfTurn(format!("{other:?}"))),
            Err(error @ LinkError::TooLong { .. }) => Ok(Some(Failure {
                code: FailureCode::Invalid,
                message: error.to_string(),
                help: Some(FEWER.to_owned()),
            })),
            Err(error) => Err(error),
        }
    }

    /// What is not wanted any more is granted no longer, once all is done. A witness goes with the volume; what could not be closed or
    /// exchanged is still written.
    fn let_go(&mut self, failed: &Names, done: bool) {
        let own = self.launcher.socket();
        let taken = Some(&self.taken).filter(|_| !self.stale);
        let granted = granted(&self.wanted, own, taken);
        let stays = failed.iter().filter_map(|subject| match subject {
            Subject::Volume(name) => self.has.volume(name)?.spec.kind.path(),
            _ => None,
        });
        let stay: BTreeSet<&Path> = stays.collect();
        close(self.witnesses.keep(|path| {
            let untouched = taken.is_some_and(|taken| !taken.has_file(path));
            untouched || granted.writes(path) || stay.contains(path)
        }));
        if done {
            match taken {
                Some(taken) => grants(&self.grants).take(taken, &granted),
                None => *grants(&self.grants) = granted,
            }
            (self.stale, self.taken) = (false, Grants::default());
        }
    }
}

/// What a data plane has to open for what is wanted of these.
fn granted_to(wanted: &Wanted, about: &Names) -> Grants {
    let mut grants = Grants::default();
    for subject in about {
        match subject {
            Subject::Volume(name) => {
                wanted.volumes.get(name).into_iter().for_each(|spec| grants.volume(spec));
            }
            Subject::Adapter(name) => {
                wanted.adapters.get(name).into_iter().for_each(|spec| grants.adapter(spec));
            }
            Subject::Uplink(name) => {
                wanted.uplinks.get(name).into_iter().for_each(|spec| grants.uplink(spec));
            }
            Subject::Pool(name) => {
                wanted.pools.get(name).into_iter().for_each(|spec| grants.pool(spec));
            }
            Subject::Unit(_) | Subject::Port(_) => {}
        }
    }
    grants
}

/// What of these was to be opened, and may not have to be any more.
pub(super) fn taken(before: &Wanted, after: &Wanted, about: &Names) -> Grants {
    let [was, is] = [before, after].map(|wanted| granted_to(wanted, about));
    if was == is { Grants::default() } else { was }
}

/// An action that cannot succeed because its volume, or its volume's pool, could not be opened.
fn follows(
    action: &Action,
    failed: &Names,
    has: &crate::reconcile::Inventory,
) -> Option<(Subject, ApiError)> {
    let (what, volume) = match action {
        Action::PutAdapter(spec) => (format!("adapter `{}`", spec.name), &spec.block()?.volume),
        Action::PutUnit(spec) => (format!("LUN `{}`", spec.name), spec.volume.as_ref()?),
        Action::PutVolume(VolumeSpec { name, kind: VolumeKind::Lu(lu), .. })
            if has.pool(&lu.pool).is_none() =>
        {
            let message = format!("volume `{name}`: pool `{}` is not open", lu.pool);
            let pool = Subject::Pool(lu.pool.clone());
            return failed.contains(&pool).then(|| (pool, ApiError::new(Code::Failed, message)));
        }
        _ => return None,
    };
    let message = format!("{what}: volume `{volume}` is not open");
    let volume = Subject::Volume(volume.clone());
    failed.contains(&volume).then(|| (volume, ApiError::new(Code::Failed, message)))
}

/// Not a unit of an LU of which it is not known which that is: a client would know its disk by something else later.
fn is_named(action: &Action) -> bool {
    !matches!(action, Action::PutUnit(spec) if spec.naa == NOT_KNOWN)
}

/// A client gets the LUNs that there are; those that could not be made come when they can be.
fn spared(action: Action, failed: &Names) -> Action {
    let Action::PutAdapter(spec) = action else { return action };
    // Looked up one by one: where a file system is missing, all units have failed, and each adapter sees a few.
    let targets = spec.scsi().into_iter().flat_map(|scsi| &scsi.targets);
    let seen = targets.flat_map(|target| target.luns.values());
    let gone: BTreeSet<&str> = seen
        .filter(|unit| failed.contains(&Subject::Unit((*unit).clone())))
        .map(String::as_str)
        .collect();
    let spared = (!gone.is_empty()).then(|| without(&spec, &gone));
    Action::PutAdapter(spared.unwrap_or(spec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{resolve, samples};
    use crate::reconcile::{Inventory, differences};
    use proptest::prelude::*;
    use spec::LuSpec;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// What is taken back change by change leaves what is granted to who asks for all at once.
        #[test]
        fn what_is_granted_is_what_is_wanted(
            states in proptest::collection::vec((samples::desired(), any::<bool>()), 1..6),
        ) {
            let own = Path::new("/run/own.sock");
            let mut before = Wanted::default();
            let (mut all, mut gone) = (granted(&before, own, None), Grants::default());
            let last = states.len() - 1;
            for (index, (desired, done)) in states.iter().enumerate() {
                let next = resolve::wanted(desired, "main", &samples::paths());
                let about = differences(&before, &next);
                gone.add(&taken(&before, &next, &about));
                all.add(&granted_to(&next, &about));
                // Something may not be done yet; then nothing is taken back.
                if *done || index == last {
                    all.take(&gone, &granted(&next, own, Some(&gone)));
                    gone = Grants::default();
                    prop_assert_eq!(&all, &granted(&next, own, None));
                }
                before = next;
            }
        }
    }

    /// A pool that waits for a PV is no failure, and neither are its LUs.
    #[test]
    fn an_lu_waits_with_its_pool() {
        let action = Action::PutVolume(VolumeSpec::new("v", LuSpec::of("p")));
        let (pool, mut failed) = (Subject::Pool("p".to_owned()), Names::new());
        assert!(follows(&action, &failed, &Inventory::default()).is_none());
        failed.insert(pool.clone());
        let mut undone = Undone::default();
        undone.opening.insert(pool.clone(), ApiError::new(Code::Failed, "it is being opened"));
        let (whose, refusal) = follows(&action, &failed, &Inventory::default()).unwrap();
        assert_eq!(refusal.message, "volume `v`: pool `p` is not open");
        undone.list(&whose).insert(action.subject(), refusal);
        assert_eq!((undone.opening.len(), undone.failures.len()), (2, 0));
        // A volume of another kind waits for none.
        let other = Action::PutVolume(VolumeSpec::new("w", spec::FileSpec::new("/w")));
        assert!(follows(&other, &failed, &Inventory::default()).is_none());
    }
}
