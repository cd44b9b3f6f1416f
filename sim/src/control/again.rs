//! Clients of a data plane that died connect again as soon as they can. What they had, and are to have as before, they find: a LUN that is not there
//! ends what is sent to it for good. Only what could not be had after the start, since somebody refused it, is excused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use control::model::resolve::{self, Wanted};
use memory::random::mix;
use memory::sim;
use protocol::message::Status;
use spec::AdapterSpec;

use super::{Drawn, World, planes};
use crate::less::Less;

/// A target and a LUN.
type Place = (u8, u16);

/// What a client had at a place: the unit, its volume, and the file of that.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Had {
    unit: String,
    volume: String,
    path: Option<PathBuf>,
}

/// What the clients of data planes that died have not found again, by adapter.
#[derive(Default)]
pub(super) struct Again(BTreeMap<String, BTreeMap<Place, Had>>);

/// The units that an adapter shows.
fn units(spec: &AdapterSpec) -> BTreeMap<Place, &String> {
    let targets = spec.scsi().into_iter().flat_map(|scsi| &scsi.targets);
    targets
        .flat_map(|target| target.luns.iter().map(|(lun, unit)| ((target.id, *lun), unit)))
        .collect()
}

/// What an adapter is to show.
fn is_to_show(wanted: &Wanted, adapter: &str) -> BTreeMap<Place, Had> {
    let spec = wanted.adapters.get(adapter);
    let all = spec.map(|spec| units(spec)).unwrap_or_default();
    let of = |unit: &String| {
        let volume = wanted.units.get(unit)?.volume.clone()?;
        let path = wanted.volumes.get(&volume)?.kind.path().map(PathBuf::from);
        Some(Had { unit: unit.clone(), volume, path })
    };
    all.into_iter().filter_map(|(place, unit)| Some((place, of(unit)?))).collect()
}

fn shows(status: &Status, adapter: &str) -> Option<BTreeSet<Place>> {
    let found = status.adapters.iter().find(|it| it.spec.name == adapter)?;
    Some(units(&found.spec).into_keys().collect())
}

impl Again {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The data plane is about to die: who has a client now, and what it has.
    pub(super) fn part(&mut self, wanted: &Wanted, status: &Status) {
        for adapter in planes::adapters().0 {
            let Some(there) = shows(status, &adapter) else { continue };
            let mut had = is_to_show(wanted, &adapter);
            had.retain(|place, _| there.contains(place));
            if !had.is_empty() {
                self.0.insert(adapter, had);
            }
        }
    }

    /// Whoever can connects again.
    pub(super) fn come(&self) {
        let Some(handler) = planes::handler().filter(|_| !planes::is_silent()) else { return };
        for name in self.0.keys() {
            let is_there = planes::with(|plane| plane.clients.contains_key(name));
            if !is_there && sim::once_in(2) && handler.client(name, true) {
                sim::met("a client comes again");
                sim::tell(|| format!("adapter {name}: its client comes again"));
                planes::with(|plane| plane.clients.insert(name.clone(), sim::now_ns()));
            }
        }
    }

    /// Those that have come again find what they had, where they are to have it still.
    pub(super) fn look(&mut self, wanted: &Wanted, status: &Status) -> Result<(), String> {
        let (connected, _) = planes::adapters();
        let mut wrong = None;
        self.0.retain(|adapter, had| {
            let still = is_to_show(wanted, adapter);
            had.retain(|place, had| still.get(place) == Some(had));
            let there = shows(status, adapter).filter(|_| connected.contains(adapter));
            let Some(there) = there else { return !had.is_empty() };
            let missing = had.iter().find(|(place, had)| {
                let fails = |name: &str| planes::with(|plane| plane.failed.contains(name));
                !there.contains(place) && !fails(&had.unit) && !fails(&had.volume)
            });
            if let Some(((target, lun), Had { volume, .. })) = missing {
                let opens = status.opening.iter().any(|opening| opening.name == *volume);
                let how = if opens { "being opened" } else { "there, or still to come" };
                wrong = Some(format!(
                    "the client of adapter {adapter} comes again after a death of the data plane, and finds no LUN {lun} at target {target}: \
                     volume {volume} is {how}, and nothing has failed"
                ));
            }
            false
        });
        wrong.map_or(Ok(()), Err)
    }
}

/// Once in so many seeds, a matter of the seed's number, a run is about clients of data planes that die, which has nothing else go wrong with the data
/// plane.
const SINGLED_OUT: u64 = 4;

impl Drawn {
    pub(super) fn single_out(&mut self, seed: u64, less: &Less) {
        if !mix(seed).is_multiple_of(SINGLED_OUT) {
            return;
        }
        let with = |part: &str, every: u64| if less.has(part) { every } else { 0 };
        (self.whole, self.holds) = (true, less.has("holds"));
        self.plane_dies_every = with("planes", 300);
        self.clients_every = with("clients", 12);
        (self.cuts, self.refuses, self.files_every) = (0, 0, 0);
    }
}

impl World {
    /// What the data plane is to be.
    fn wanted(&self) -> Option<Wanted> {
        Some(resolve::wanted(&self.server()?.desired(), "main", &self.paths))
    }

    /// The data plane is about to die, and its clients will come again.
    pub(super) fn part(&mut self) {
        // A change that is under way may take a LUN which a later one, that is stored already, gives again.
        let operations = self.server().map(|server| server.operations()).unwrap_or_default();
        if operations.iter().any(|it| !it.operation.step.has_ended()) {
            return;
        }
        if let (Some(wanted), Some(status)) = (self.wanted(), planes::status()) {
            self.again.part(&wanted, &status);
        }
    }

    /// Clients of data planes that died come again, and find what they had.
    pub(super) fn come_again(&mut self) -> Result<(), String> {
        if self.again.is_empty() {
            return Ok(());
        }
        self.again.come();
        match (self.wanted(), planes::status()) {
            (Some(wanted), Some(status)) => self.again.look(&wanted, &status),
            _ => Ok(()),
        }
    }
}
