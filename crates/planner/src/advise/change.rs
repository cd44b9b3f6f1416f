//! A change of attributes of one device, and when a command for it may be printed.
//!
//! A command that is run changes a system. So it is printed only where the captures tell all of it: which system it is,
//! the value that stands there now, and what the level allows (the level itself, or the range as the system prints it).
//! It never lowers a number that was to be raised. Where something is not known, the change says what to look up and
//! with which command, and which value was worked out.

use super::finding::NoCommand;
use super::view::{Role, View, parse_number};
use crate::capture::{At, Attribute, Settable};
use crate::report::clean::is_word;

/// A change of attributes of one device.
pub(super) struct Change<'v, 'a> {
    view: &'v View<'a>,
    host: usize,
    device: String,
    sets: Vec<Set<'a>>,
    /// Whether it waits for the next configuration of the device.
    later: bool,
    /// Whether lower numbers are meant.
    lowers: bool,
    /// A feature without which the data files' range does not hold.
    needs: Option<&'static str>,
}

/// What a command sets, and where: the system is not always the one that the finding is about.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) host: usize,
    pub(super) device: String,
    pub(super) attribute: &'static str,
    pub(super) value: String,
}

/// One attribute.
struct Set<'a> {
    name: &'static str,
    /// As it was captured.
    now: Option<&'a Attribute>,
    /// As it was set for later.
    later: Option<&'a Attribute>,
    new: String,
}

impl Set<'_> {
    /// Whether it is set for later to what is wanted, or beyond.
    fn is_set(&self, lowers: bool) -> bool {
        let Some(later) = self.later else { return false };
        let numbers = parse_number(&later.value).zip(parse_number(&self.new));
        match numbers {
            Some((later, new)) => {
                if lowers {
                    later <= new
                } else {
                    later >= new
                }
            }
            None => later.value == self.new,
        }
    }
}

impl<'v, 'a> Change<'v, 'a> {
    pub(super) fn new(view: &'v View<'a>, host: usize, device: &str) -> Self {
        let device = device.to_owned();
        Self { view, host, device, sets: Vec::new(), later: true, lowers: false, needs: None }
    }

    /// The change is made on the running device.
    pub(super) fn live(mut self) -> Self {
        self.later = false;
        self
    }

    /// Lower numbers are meant.
    pub(super) fn lowering(mut self) -> Self {
        self.lowers = true;
        self
    }

    /// The data files' range holds for levels with this feature.
    pub(super) fn needing(mut self, feature: Option<&'static str>) -> Self {
        self.needs = feature;
        self
    }

    pub(super) fn set(mut self, name: &'static str, new: impl Into<String>) -> Self {
        let now = self.view.attribute(self.host, &self.device, name);
        let later = self.view.for_later(self.host, &self.device, name);
        self.sets.push(Set { name, now, later, new: new.into() });
        self
    }

    /// Like [`set`](Self::set), where the device's own statistics say which value it works with: another one that is set is
    /// for later.
    pub(super) fn set_running(mut self, name: &'static str, running: u64, new: String) -> Self {
        self = self.set(name, new);
        if let Some(set) = self.sets.last_mut()
            && let Some(now) = set.now.filter(|now| parse_number(&now.value) != Some(running))
        {
            set.later = set.later.or(Some(now));
        }
        self
    }

    /// System, device, attribute and value of each.
    pub(super) fn sets(&self) -> Vec<Setting> {
        let each = |set: &Set<'_>| Setting {
            host: self.host,
            device: self.device.clone(),
            attribute: set.name,
            value: set.new.clone(),
        };
        self.sets.iter().map(each).collect()
    }

    /// What is to be set: `num_cmd_elems=2048`.
    pub(super) fn values(&self) -> String {
        let sets: Vec<String> =
            self.sets.iter().map(|set| format!("{}={}", set.name, set.new)).collect();
        sets.join(" ")
    }

    /// The command, where and as whom to run it, and the one that takes it back; else what keeps it from being printed.
    pub(super) fn command(&self) -> Result<[String; 3], NoCommand> {
        if let Some(already) = self.already() {
            return Err(NoCommand { already: Some(already), ..NoCommand::default() });
        }
        let look_up = self.unknown();
        if !look_up.is_empty() {
            return Err(NoCommand { values: self.values(), look_up, already: None });
        }
        let words = self.sets.iter().flat_map(|set| {
            let now = set.now.map(|now| now.value.as_str());
            now.into_iter().chain([set.new.as_str()])
        });
        let usable = is_word(&self.device)
            && !self.sets.is_empty()
            && words.into_iter().all(is_word)
            && self.sets.iter().all(|set| self.may(set));
        match usable {
            true => Ok([
                self.spell(|set| &set.new),
                self.place(),
                self.spell(|set| set.later.or(set.now).map_or(&set.new, |now| &now.value)),
            ]),
            false => Err(NoCommand::default()),
        }
    }

    /// The values and their lines, where all that is wanted was set before and waits to take effect.
    fn already(&self) -> Option<(String, Vec<At>)> {
        let done = !self.sets.is_empty() && self.sets.iter().all(|set| set.is_set(self.lowers));
        let later = || self.sets.iter().filter_map(|set| Some((set.name, set.later?)));
        let values: Vec<String> =
            later().map(|(name, later)| format!("{name}={}", later.value)).collect();
        done.then(|| (values.join(" "), later().map(|(_, later)| later.at).collect()))
    }

    /// What would have to be known, each with its command.
    fn unknown(&self) -> Vec<String> {
        let (view, host) = (self.view, self.host);
        let mut look_up = Vec::new();
        if view.name(host).is_none() {
            look_up.push("which system it is: hostname".to_owned());
        }
        let by_name = |set: &Set<'_>| {
            let files = view.system(host).map(|system| &system.by_name);
            set.now.zip(files).is_some_and(|(now, files)| files.contains(&now.at.file))
        };
        if look_up.is_empty() && self.sets.iter().any(by_name) {
            look_up.push(format!(
                "whether the values are of {}, which the name of their file alone says: hostname",
                view.spoken(host)
            ));
        }
        if self.sets.iter().any(|set| set.now.is_none()) {
            let names: Vec<&str> = self.sets.iter().map(|set| set.name).collect();
            let show = view.show_attributes(host, &self.device);
            look_up.push(format!("{} as it stands now: {show}", names.join(" and ")));
        }
        let ranged = |set: &Set<'_>| view.range_captured(host, &self.device, set.name);
        if view.level(host).is_none() && !self.sets.iter().all(ranged) {
            let level = match view.role(host) {
                Role::Vios => "ioslevel",
                Role::Client => "oslevel -s",
                Role::Unknown | Role::Trunkline => "ioslevel on a VIOS, oslevel -s on AIX",
            };
            look_up.push(format!("the level, which says what may be set: {level}"));
        }
        let too_old = self.needs.is_some_and(|feature| view.too_old_for(host, feature));
        for set in self.sets.iter().filter(|set| too_old && !ranged(set)) {
            let (device, name) = (&self.device, set.name);
            let on = view.spoken(host);
            look_up.push(format!("what this level allows, which is too old for the known range: lsattr -Rl {device} -a {name} on {on}"));
        }
        look_up
    }

    /// Whether the attribute can be set, and is not lowered by accident.
    fn may(&self, set: &Set<'_>) -> bool {
        let Some(now) = set.now else { return false };
        let lowers = parse_number(&now.value)
            .zip(parse_number(&set.new))
            .is_some_and(|(now, new)| new <= now);
        now.settable != Some(Settable::No) && (self.lowers || !lowers)
    }

    /// Whether it can be set in use and kept, as `True+` says.
    fn in_use(&self) -> bool {
        let live = |set: &Set<'_>| set.now.is_some_and(|now| now.settable == Some(Settable::Live));
        self.later && self.sets.iter().all(live)
    }

    /// A VIOS's own shell has no `-U`.
    fn as_padmin(&self) -> bool {
        self.view.role(self.host) == Role::Vios && !self.in_use()
    }

    fn spell<'s>(&'s self, value: impl Fn(&'s Set<'a>) -> &'s str) -> String {
        let sets: Vec<String> =
            self.sets.iter().map(|set| format!("{}={}", set.name, value(set))).collect();
        let device = &self.device;
        if self.as_padmin() {
            let perm = if self.later { " -perm" } else { "" };
            return format!("chdev -dev {device} -attr {}{perm}", sets.join(" "));
        }
        let how = match (self.in_use(), self.later) {
            (true, _) => " -U",
            (false, true) => " -P",
            (false, false) => "",
        };
        format!("chdev -l {device} -a {}{how}", sets.join(" -a "))
    }

    fn place(&self) -> String {
        let on = self.view.spoken(self.host);
        match (self.view.role(self.host), self.as_padmin()) {
            (Role::Vios, true) => format!("as padmin on {on}"),
            (Role::Vios, false) => format!("as root (oem_setup_env) on {on}"),
            _ => format!("as root on {on}"),
        }
    }
}
