//! The two WWPNs of each client adapter after a login of all, from `lsnportlogin` of the HMC.
//!
//! A client uses one WWPN of a pair; the other is for migration and inactive until the HMC's login operation
//! (`chnportlogin -o login`) activates it. So an inactive one says something only where that operation is known to have
//! run: some pair of the partition has both active, or a VIOS holds a second one. Which of a pair the client uses says
//! nothing, as a migration swaps them. Source: IBM's reference pages of `chnportlogin` and `lsnportlogin`.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Draft, Severity};
use super::mapping::Npiv;
use super::out::Out;
use super::rule::Object;
use super::view::View;
use crate::capture::{LoggedIn, Lsnportlogin, Wwn, WwpnLogin, WwpnStatus};
use crate::report::clean::{is_partition_name, is_word};

const RULE: &str = "fc-wwpn-second-missing";

/// The WWPNs of a virtual adapter, the lesser first: the HMC gives them out in this order.
type Pair<'a> = [&'a WwpnLogin; 2];

/// A client as the fabric sees it: the adapters that serve it, or the list of its WWPNs.
pub(super) enum OnFabric<'a> {
    /// From `lsmap -all -npiv`: its adapters that have a port, as places in the list of mappings.
    Mapped(Vec<Npiv<'a>>),
    /// From `lsnportlogin`.
    Listed(Client<'a>),
}

impl OnFabric<'_> {
    pub(super) fn host(&self) -> usize {
        match self {
            Self::Mapped(maps) => maps.first().map_or(0, |map| map.vios),
            Self::Listed(client) => client.host,
        }
    }

    pub(super) fn spoken(&self) -> String {
        match self {
            Self::Mapped(maps) => maps.first().map_or_else(String::new, Npiv::client_spoken),
            Self::Listed(client) => client.spoken(),
        }
    }
}

/// A partition as it was listed last.
pub(super) struct Client<'a> {
    host: usize,
    system: Option<&'a str>,
    id: Option<u32>,
    name: Option<&'a str>,
    pairs: Vec<Pair<'a>>,
}

/// Every client of which the captures show its state on the fabric.
pub(super) fn on_fabric<'a>(view: &View<'a>) -> Vec<OnFabric<'a>> {
    let mut mapped: BTreeMap<usize, Vec<Npiv<'a>>> = BTreeMap::new();
    for map in view.npiv().iter().filter(|map| map.port().is_some()) {
        if let Some(client) = map.client {
            mapped.entry(client).or_default().push(*map);
        }
    }
    let mapped = mapped.into_values().map(OnFabric::Mapped);
    mapped.chain(clients(view).into_iter().map(OnFabric::Listed)).collect()
}

/// `fc-wwpn-second-missing`, by what the VIOS or the HMC says of a client.
pub(super) fn judge(view: &View<'_>, client: &Object<'_>, out: &mut Out) {
    match view.on_fabric().get(client.index) {
        Some(OnFabric::Mapped(maps)) => siblings(view, maps, out),
        Some(OnFabric::Listed(client)) => listed(client, out),
        None => {}
    }
}

/// The HMC's list.
fn listed(client: &Client<'_>, out: &mut Out) {
    if !client.all_were_logged_in() {
        let about = format!("the second WWPN of each pair of {}", client.spoken());
        out.lack(about, format!("{} on the HMC", client.login_and_list().join(", then ")));
        return;
    }
    for [first, second] in &client.pairs {
        for (bad, good) in [(first, second), (second, first)] {
            if is(good, WwpnStatus::Active) {
                out.drafts.extend(finding(client, bad, good));
            }
        }
    }
}

/// A client whose adapters are logged in unequally.
///
/// A client that is down has none logged in; one that runs has all. One of several missing means that the fabric does
/// not know that WWPN: its zone or its mask is missing, on this path.
fn siblings(view: &View<'_>, maps: &[Npiv<'_>], out: &mut Out) {
    // Outside a migration the second WWPN of a pair is not logged in, and nothing is wrong with that.
    if !view.on_fabric().iter().any(|client| matches!(client, OnFabric::Listed(_))) {
        out.hint(
            "the second WWPN of each pair, before a migration",
            "lsnportlogin on the HMC after a login of all, or the fabric's own zoning",
        );
    }
    let targets = |map: &Npiv<'_>| map.map.ports_logged_in.map_or(0, |read| read.value);
    let Some(best) = maps.iter().filter(|map| map.logged_in()).max_by_key(|map| targets(map))
    else {
        return;
    };
    for map in maps {
        // An adapter logged in to the fabric alone counts one port: itself.
        let alone = map.logged_in()
            && map.map.ports_logged_in.is_some()
            && targets(map) <= 1
            && targets(best) > 2;
        if map.logged_in() && !alone {
            continue;
        }
        let status = map
            .map
            .status
            .as_ref()
            .map(|read| read.at)
            .or(map.map.ports_logged_in.map(|read| read.at));
        let client = map.client_spoken();
        let why = if alone {
            "It is logged in to the fabric and to no storage: its WWPN is in no zone with a target, or the storage does not know it."
        } else {
            "The client runs and its other adapter is logged in, so this WWPN is not let in: it is not zoned, not masked, or its port has no link."
        };
        // What is logged in has a port, and one that fits.
        let behind = match alone {
            true => Vec::new(),
            false => {
                let of_client = map
                    .client
                    .zip(map.client_adapter())
                    .map(|(host, name)| view.object(host, name));
                map.port()
                    .map(|port| view.object(map.vios, port))
                    .into_iter()
                    .chain(of_client)
                    .collect()
            }
        };
        let place = |map: &Npiv<'_>| map.map.status.as_ref().map_or(map.map.at, |read| read.at);
        out.push(
            Draft::new(RULE, map.vios, view.object(map.vios, &map.map.name), Severity::Critical, format!("one WWPN of {client} is not logged in"))
                .see([map.map.at])
                .see(status)
                .see(map.map.ports_logged_in.map(|read| read.at))
                .see([best.map.at, place(best)])
                .because(format!("{} serves {client} and is not in use, while {} of the same client is.", map.map.name, best.map.name))
                .because(why)
                .because("The client has lost the redundancy of this path, and a migration fails its validation: both WWPNs of every adapter must be zoned and masked.")
                .effect("No command on the VIOS mends it. Compare the zones and the masks of both WWPNs of the pair (the HMC lists them; chnportlogin logs them in for the check), add the missing one, then run cfgmgr on the client.")
                .harm("Zoning changes touch the fabric: have them checked against the WWPNs that the HMC lists, of which the second is used only while migrating.")
                .through(map.port().map(|port| view.object(map.vios, port)))
                .may_follow(behind)
                .weigh(if alone { 0.8 } else { 0.9 }, 1.0),
        );
    }
}

fn is(login: &WwpnLogin, status: WwpnStatus) -> bool {
    login.status.as_ref().is_some_and(|read| read.value == status)
}

impl Client<'_> {
    /// Whether the captures show that the HMC's login operation was run, and not undone.
    fn all_were_logged_in(&self) -> bool {
        let active = |login: &&WwpnLogin| is(login, WwpnStatus::Active);
        let by_vios = |login: &WwpnLogin| {
            login.logged_in.as_ref().is_some_and(|read| read.value == LoggedIn::Vios)
        };
        // One active WWPN alone may be what a login that ran into its end has left.
        let several = self.pairs.iter().flatten().copied().filter(active).count() > 1;
        several
            && self
                .pairs
                .iter()
                .any(|[first, second]| active(second) && (active(first) || by_vios(second)))
    }

    fn spoken(&self) -> String {
        match (self.name.filter(|name| is_partition_name(name)), self.id) {
            (Some(name), _) => name.to_owned(),
            (None, Some(id)) => format!("partition {id}"),
            (None, None) => "an unknown client".to_owned(),
        }
    }

    /// `-m SYSTEM --id N`, with the words themselves where the captures do not tell.
    fn target(&self) -> (String, String) {
        let system = self.system.filter(|name| is_word(name)).unwrap_or("SYSTEM");
        (system.to_owned(), self.id.map_or_else(|| "ID".to_owned(), |id| id.to_string()))
    }

    /// The two commands that log all WWPNs in and show what came of it.
    fn login_and_list(&self) -> [String; 2] {
        let (system, id) = self.target();
        [
            format!("chnportlogin -o login -m {system} --id {id}"),
            format!("lsnportlogin -m {system} --filter \"lpar_ids={id}\""),
        ]
    }
}

/// One WWPN that is not active although its sibling is.
fn finding(client: &Client<'_>, bad: &WwpnLogin, good: &WwpnLogin) -> Option<Draft> {
    let known = match bad.status.as_ref()?.value {
        WwpnStatus::Active => return None,
        WwpnStatus::Inactive => true,
        WwpnStatus::Unknown => false,
    };
    let (spoken, wwpn) = (client.spoken(), called(bad));
    let slot =
        bad.slot.as_ref().map_or_else(String::new, |slot| format!(" in slot {}", slot.value));
    let title = match known {
        true => format!("one WWPN of {spoken} is not logged in after a login of all"),
        false => {
            format!("whether one WWPN of {spoken} is logged in is not known after a login of all")
        }
    };
    let why = match known {
        true => {
            "All WWPNs of the partition were logged in and this one stayed inactive: it is not zoned, or not masked, on this path."
        }
        false => {
            "All WWPNs of the partition were logged in and the HMC does not know what became of this one: it may be missing in the zone or the mask, or the VIOS did not answer."
        }
    };
    let told = bad.reason.as_ref().map_or_else(String::new, |reason| {
        format!("The HMC gives as the reason: {}.", reason.value.trim_end_matches('.'))
    });
    let ask = if known { "" } else { "See first that the VIOS answers the HMC (RMC is up). " };
    let [login, list] = client.login_and_list();
    let (system, id) = client.target();
    let proof = client.pairs.iter().find(|pair| pair.iter().all(|one| is(one, WwpnStatus::Active)));
    Some(
        Draft::new(RULE, client.host, format!("WWPN {wwpn} of {spoken}"), Severity::Warning, title)
            .see([bad.at, good.at])
            .see(proof.into_iter().flatten().map(|one| one.at))
            .because(format!("{wwpn}{slot} is not active, while {} of the same adapter is.", called(good)))
            .because(why)
            .because(told)
            .because("A migration fails its validation: the other side logs in with the WWPN that is not in use here, so both of every pair must be zoned and masked.")
            .effect(format!("{ask}No command on the VIOS mends it. Next step: zone {wwpn} to the same storage ports as {}, and add it to the same masks. Then run {login} and {list}: its wwpn_status is 1.", called(good)))
            .harm("Zones and masks belong to the whole fabric: add this WWPN only, to what its sibling has. WWPNs that stay logged in are logged out by the HMC when the client starts.")
            .weigh(if known { 0.9 } else { 0.45 }, 1.1)
            .undone_by(format!("Log the WWPNs out again (chnportlogin -o logout -m {system} --id {id}; those in use stay) and take {wwpn} out of the zone and the masks.")),
    )
}

/// Every partition that has at least one pair, from the last list that names it.
fn clients<'a>(view: &View<'a>) -> Vec<Client<'a>> {
    type Key<'a> = (Option<&'a str>, Option<u32>, Option<&'a str>);
    let mut latest: BTreeMap<Key<'a>, (usize, Vec<&'a WwpnLogin>)> = BTreeMap::new();
    for (host, report) in view.reports() {
        let Some(list) = report.lsnportlogin() else { continue };
        let system = system(list);
        let mut here: BTreeMap<Key<'a>, (usize, Vec<&'a WwpnLogin>)> = BTreeMap::new();
        for login in &list.wwpns {
            let id = login.partition_id.as_ref().map(|read| read.value);
            let name = login.partition.as_ref().map(|read| read.value.as_str());
            if id.is_some() || name.is_some() {
                here.entry((system, id, name)).or_insert((host, Vec::new())).1.push(login);
            }
        }
        latest.extend(here);
    }
    let clients = latest.into_iter().map(|((system, id, name), (host, logins))| Client {
        host,
        system,
        id,
        name,
        pairs: pairs(&logins),
    });
    clients.filter(|client| !client.pairs.is_empty()).collect()
}

fn system(list: &Lsnportlogin) -> Option<&str> {
    list.system.as_ref().map(|read| read.value.as_str())
}

/// The pairs of a partition: two WWPNs of one slot; where profiles give a slot others, two of one profile.
fn pairs<'a>(logins: &[&'a WwpnLogin]) -> Vec<Pair<'a>> {
    let mut slots: BTreeMap<u32, Vec<&'a WwpnLogin>> = BTreeMap::new();
    for login in logins {
        if let Some(slot) = &login.slot {
            slots.entry(slot.value).or_default().push(login);
        }
    }
    let mut pairs = Vec::new();
    for logins in slots.values() {
        if let Some(pair) = pair(logins) {
            pairs.push(pair);
            continue;
        }
        let profile = |login: &&WwpnLogin| login.profile.as_ref().map(|read| read.value.clone());
        let profiles: BTreeSet<_> = logins.iter().map(profile).collect();
        let mut seen: BTreeSet<[Option<Wwn>; 2]> = BTreeSet::new();
        for one in profiles {
            let of_one: Vec<_> =
                logins.iter().copied().filter(|login| profile(login) == one).collect();
            // Profiles may share a pair.
            pairs.extend(pair(&of_one).filter(|pair| seen.insert(pair.map(|login| login.wwpn))));
        }
    }
    pairs
}

/// A WWPN as a user reads it; one that was made unreadable is told by its line.
fn called(login: &WwpnLogin) -> String {
    match login.wwpn {
        Some(wwpn) => wwpn.to_string(),
        None => format!("the WWPN of line {}, which was made unreadable,", login.at.line),
    }
}

/// The two WWPNs among these lines, where there are two; of one that stands there twice the last line. One that was made
/// unreadable is no other's, so it counts by its line.
fn pair<'a>(logins: &[&'a WwpnLogin]) -> Option<Pair<'a>> {
    let key = |login: &WwpnLogin| (login.wwpn, login.wwpn.is_none().then_some(login.at));
    let mut all: Vec<&WwpnLogin> = logins
        .iter()
        .map(|login| (key(login), *login))
        .collect::<BTreeMap<_, _>>()
        .into_values()
        .collect();
    if all.iter().any(|login| login.wwpn.is_none()) {
        all.sort_by_key(|login| login.at);
    }
    <[&WwpnLogin; 2]>::try_from(all).ok()
}
